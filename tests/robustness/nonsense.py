"""Inputs that must be refused whatever they are mixed with: each was accepted once, ended in a traceback, or did not end."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from robustness.case import DIRECTORY, ENDLESS, FIFO, LOOP, Case
from robustness.documents import needed

PATH = '--forward "netem delay 5ms" --bottleneck "tbf rate 5mbit burst 6056 limit 15000" --reverse "netem delay 5ms"'
RUN = f"run {PATH} --duration 100ms --seeds 1"
DIGITS, ZEROS = "9" * 5000, "0" * 5000
LINES: Mapping[str, tuple[str, ...]] = {
    "counts": (
        f"{RUN} --flows 0", f"{RUN} --flows -1", f"{RUN} --flows 20000000", f"{RUN} --flows {DIGITS}", f"{RUN} --flows ٣", f"{RUN} --mix cubic*0", f"{RUN} --mix cubic*20000000",
        f"{RUN} --mix cubic*٣", f"{RUN} --jobs -1", f"{RUN} --jobs ٣", f"run {PATH} --seeds 1,1", f"run {PATH} --seeds 0", f"run {PATH} --seeds 5..3", f"run {PATH} --seeds ٣", f"run {PATH} --seeds 1e3",
        f"run {PATH} --seeds 1000000000", f"run {PATH} --seeds {DIGITS}", f"run {PATH} --seeds ''", f"run {PATH} --seeds 0..99999999999",
    ),
    "lists": (
        f"{RUN} --mix ''", f"{RUN} --mix ,", f"{RUN} --cca ''", f"{RUN} --cca ,", f"{RUN} --cca cubic,", f"{RUN} --cca cubic,cubic", f"{RUN} --engine ''", f"{RUN} --kernel ''", f"{RUN} --player ''",
        f"{RUN} --listener ''", f"{RUN} --mix 'cubic*2@0s-0s'", f"{RUN} --mix 'cubic@0-0'", f"{RUN} --check ''", "sweep --rtt '' --engine mock", "sweep --rtt 10ms --axis x=", "sweep --rtt 10ms --axis =1", "sweep --rtt 10ms --engine ''", "sweep --rtt 10ms --engine mock,",
        "sweep --rtt 10,10ms --engine mock", "sweep --rtt 10ms --cca '' --engine mock", "sweep --rtt 10ms --mix '' --engine mock",
    ),
    "networks": (
        *(f"{RUN} --mix '{text}'" for text in (
            "cubic~", "cubic~up~up", "cubic~up=1", "cubic~rtt", "cubic~rtt=", "cubic~rtt=0", "cubic~rtt=nan", "cubic~rtt=-1ms", "cubic~rtt=1ms", "cubic~rtt=1ms..2ms", "cubic*2~rtt=2ms..1ms", "cubic*2~rtt=..", "cubic*999999999~rtt=1s..2s",
            "cubic~rtt=٣s", f"cubic~rtt={DIGITS}ms", "cubic~enter=r9", "cubic~enter=r1", "cubic~enter=r1~leave=r0", "cubic~access=", "cubic~access=5", "cubic~access=1ms+1ms", "cubic~access=0mbit", "cubic~app=1", "~up", "cubic~[/x]=1",
        )),
        *(f"{RUN} --probe {shlex.quote(text)}" for text in ("", "x", "voice~", "voice~interval=0", "voice~interval=1ns", "voice~size=0B", "voice~size=1MB", "voice~size=nan", "voice~name=../x", "voice~name=", "voice@1s", "voice@nan", "voice~up~down", "voice,ping")),
        *(f"{RUN} --probe voice --probe voice", f"{RUN} --duration 24h --probe voice~interval=1ms"),
        *(f"{RUN} --transfers {shlex.quote(text)}" for text in ("", "x", "0/s", "-1/s", "nan/s", "inf/s", "1e9/s", "20/s,0B", "20/s,1B,1B", "20/s,30kB~most=1kB", "20/s~shape=0", "20/s~shape=nan", "20/s~cca=nosuch", "20/s@1s", f"{DIGITS}/s", "٣/s")),
        *(f"{RUN} --link {shlex.quote(text)}" for text in ("", "x", "rate", "rate 0mbit", "delay -1ms", "delay nan", "delay 1ms delay 2ms", "buffer 1bdp", "up_rate 1mbit", "name bottleneck", "name ../x delay 1ms", "loss 101% delay 1ms", "queue nosuch rate 1mbit", "rate 1mbit buffer 99999bdp")),
        f"{RUN} --link 'delay 1ms name a' --link 'delay 1ms name a'", " ".join([RUN, *["--link 'delay 1ms'"] * 40]), f"{RUN} --change 'core@50ms: rate 1mbit'", f"{RUN} --link 'delay 1ms name core' --change 'core.9@50ms: delay 1ms'",
        f"{RUN} --engine mock --probe voice", f"{RUN} --engine mock --mix cubic~up", "run --forward 'netem delay 5ms' --mix cubic~up --seeds 1 --duration 100ms",
    ),
    "ranges": (
        "sweep --rtt 1..1e300ms/x1.0000001 --engine mock", "sweep --rtt 0..1s/1ns --engine mock", "sweep --rtt 10ms --jitter 0..24ms/0 --engine mock", "sweep --rtt 10ms --jitter 0..24ms/-1ms --engine mock",
        "sweep --rtt 10ms --jitter 24..0ms/4ms --engine mock", "sweep --rtt 1..4ms/x1 --engine mock", "sweep --rtt 1..4ms/x0 --engine mock", "sweep --rtt 1..nan/1 --engine mock", "sweep --rtt 1..inf/1 --engine mock",
        "sweep --rtt 1..100ms/1ms --engine mock --seeds 1000000", "sweep --rtt 1..1000ms/1ms --jitter 0..1000ms/1ms --loss 0..99%/1% --engine mock",
    ),
    "quantities": tuple(
        f"run {PATH} --seeds 1 --duration {text}" for text in ("0", "0s", "-1s", "nan", "inf", "1e300s", "1e400s", "1e-30s", "0x_", "0x10s", "٣s", "３s", "²s", "1__0s", "1e", f"{DIGITS}s", f"1{ZEROS}ms", "5parsecs", "5mbit", "5%", "''", "' '", "s", "1,5s", "99999999h")
    ) + tuple(
        f"{RUN} {option}" for option in (
            "--rcvbuf -1", "--rcvbuf nan", "--rcvbuf 1e300", "--rcvbuf 5ms", "--rcvbuf ٣KiB", "--sndbuf -1", "--app -1", "--app nan", "--app 1e400MB/s", "--chunk 0", "--chunk -1", "--chunk nan", "--read 0/1ms", "--read /",
            "--read 16KiB/-1ms", "--read 16KiB/nan", "--read 16KiB/", "--rcvbuf 1e-320B", "--app 1e-320MB/s", "--kernel 6.1,host_time=1s", "--kernel 6.1,host_time=-1us", "--samples 1us --duration 24h", "--samples 1ns", "--samples -1ms", "--samples nan", "--player 0", "--player nan", "--player -1mbit", "--abr bola", "--kernel 0", "--kernel nan",
            "--kernel 6.1,hz=nan", "--kernel 6.1,rmem_max=-1", "--kernel 6.1,rmem_max=1e400", "--kernel 6.1,x=1",
        )
    ),
    "tc words": tuple(
        f'run --forward "{words}" --seeds 1 --duration 100ms' for words in (
            "", "netem delay nan", "netem delay -1ms", "netem delay 1e400ms", "netem delay ٣ms", f"netem delay {DIGITS}ms", "netem delay 0x_ms", "netem loss 101%", "netem loss nan", "netem loss -1%",
            "netem delay 5ms delay", "netem nosuch", "tbf rate 0 burst 6056 limit 6000", "tbf rate nan burst 6056 limit 6000", "tbf rate 1mbit burst 0 limit 0", "tbf", "fq_codel quantum nan", "htb rate 10mbit quantum nan",
            "htb rate 10mbit prio abc", "pfifo limit -1", "pfifo limit 1e400", "pfifo limit 1e-320", "bfifo limit 1e-320", "netem delay 1e-320ms", "tbf rate 5mbit burst 1 limit 50000", "nosuch", "netem [/x]", "netem delay 5ms child nosuch",
        )
    ),
    "changes": tuple(
        f"{RUN} --change '{change}'" for change in (
            "bottleneck@50ms: delay 5ms", "forward@50ms: rate nan", "forward@-1s: delay 5ms", "forward@nan: delay 5ms", "forward@5s: delay 5ms", "nowhere@50ms: delay 5ms", "forward@50ms:", "forward: delay 5ms", "forward@50ms: delay",
            "forward@50ms: delay 1ms delay 2ms", "forward@50ms: nosuch 1", "",
        )
    ),
    "checks": tuple(
        f"{RUN} --check {shlex.quote(check)}" for check in ("goodput", "> 5", "goodput >", "goodput > nan", "goodput > ٣", "goodput.nosuch > 5", "nosuch > 5", "goodput > 5parsecs", "goodput[cca=nosuch] > 5", "goodput[ > 5", "goodput = 5", "goodput.p0 > 5", "goodput.p٩٥ > 1", "goodput > 1e400", "goodput > 5 > 3")
    ),
    "bound": (
        *(f"bound --to 20mbit --rtt 50ms --from {text}" for text in ("0", "nan", "-1mbit", "1e400mbit", "60ms", "''", "٣mbit")),
        "bound --from 60mbit --to 20mbit --rtt nan", "bound --from 60mbit --to 20mbit --rtt -1ms", "bound --from 60mbit --to 20mbit --flows 50ms:nan", "bound --from 60mbit --to 20mbit --flows 50ms:-1", "bound --from 60mbit --to 20mbit",
        "bound --from 60mbit --to 20mbit --rtt 50ms --packet 0", "bound --from 60mbit --to 20mbit --rtt 50ms --packet nan", "bound --from 60mbit --to 20mbit --rtt 50ms --max-queue -1ms",
    ),
    "searches": (
        "cliff --rtt 20ms --engine mock --threshold nan", "cliff --rtt 20ms --engine mock --threshold 0", "cliff --rtt 20ms --engine mock --threshold 2", "cliff --rtt 0 --engine mock", "cliff --rtt nan --engine mock", "cliff --rtt 20ms --engine mock --most -1",
        "cliff --rtt 20ms --engine mock --along nosuch", "cliff --rtt 1..1e300ms/x1.0000001 --engine mock", "advise --rtt nan --engine mock", "advise --rtt -5ms --engine mock", "advise --rtt 20ms --engine mock --flows 0", "advise --rtt 20ms --engine mock --flows 20000000",
        "advise --rtt 20ms --engine mock --seeds 1,1", "advise --rtt 20ms --engine mock --cca ''", "advise --rtt 20ms --engine mock --goal nosuch", "advise --rtt 20ms --engine mock --rtt-loss 101%", "advise --rtt 20ms --engine mock --rtt-jitter nan",
        "advise --rtt 20ms --engine mock --rate 0", "validate --engine mock --engine mock --random 0", "validate --engine mock --engine mock --random -1", "validate --engine mock --engine mock --random 99999999999", "validate --engine mock --engine mock --random 2 --seeds 0",
        "validate --engine mock --engine mock --random 2 --seeds 3/0", "validate --engine mock --engine mock --random 2 --precision nan", "validate --engine mock --engine mock --random 2 --precision -1",
        "validate --engine mock --engine mock --random 2 --check median<=nan",
    ),
    "results": (
        "report /dev/zero", "report ''", "plot results --what nosuch", "plot results --what ''", "plot results --formats exe", "plot results --formats ''", "plot results --metric nosuch", "compare results", "compare results results --metric nosuch",
        "diagnose x.yaml", "diagnose ''", "diagnose results --flow ''", "diagnose results --flow 1-2-3", "diagnose results --flows 0", "diagnose results --cca nosuch", "diagnose results --kernel 9", "diagnose results --duration 5s",
        "diagnose --live --duration nan", "diagnose results --check x", "diagnose results --check 'goodput > 1'", "diagnose results --no-replay --annotate x", "diagnose /dev/zero", "diagnose results --out results",
        "compare results results --at x", "compare results results --cca ''", "compare results results --cca :", "compare results results --cca cubic:", "export results --to nosuch", "export results --to ''", "export results --to csv --seed -1", "export results --to csv --seed ٣", "export results --to csv --cca nosuch",
        "export scenario.yaml --to csv", "scenario show ../../etc/passwd", "cca show ''", "metric show ''", "qdisc show ''", "study run nosuch", "study run baseline --part nosuch", "study run baseline --seeds 0", "kernel remove ../x", "kernel info ''",
    ),
    "explorer": (
        "explore nosuch", "explore ''", "explore /dev/zero", "explore /", "explore x.yaml", "explore a b", "explore --port 70000", "explore --port -1", "explore --port x", "explore --port nan nosuch", "explore --no-browser --browser nosuch",
    ),
}  # fmt: skip
"""What is wrong → command lines."""

BASE = "forward: {delay: 5ms}\nbottleneck: {rate: 5mbit}\nreverse: {delay: 5ms}\nduration: 100ms\n"
SCENARIOS: Mapping[str, str | bytes] = {
    "empty": "", "nothing": "{}", "a list": "[]", "a text": "hello", "null": "null", "a key twice": BASE + "duration: 200ms\n", "a key twice inside": BASE + "kernel: {hz: 100, hz: 250}\n", "unknown field": BASE + "nosuch: 1\n",
    "a name with a newline": BASE + 'name: "x\\ntouch PWNED\\n#"\n', "a name with an escape": BASE + 'name: "\\e[31m"\n', "a name with a slash": BASE + "name: /../../x\n", "a name that is a directory": BASE + "name: ..\n", "a name that is a list": BASE + "name: [a]\n",
    "a name of 100 kB": BASE + "name: " + "x" * 100_000 + "\n", "no flows": BASE + "flows: []\n", "a flow without a number": BASE + "flows: [{count: nan}]\n", "no count": BASE + "flows: [{count: 0}]\n", "20 million flows": BASE + "flows: [{count: 20000000}]\n",
    "digits of another script": BASE + "flows: [{count: ٣}]\n", "a child that is not there": BASE + "changes: [{where: bottleneck, child: 99, at: 50ms, set: {rate: 1mbit}}]\n", "a hop that is not there": BASE + "changes: [{where: bottleneck, hop: 99, at: 50ms, set: {rate: 1mbit}}]\n",
    "a delay of tbf": BASE + "changes: [{where: bottleneck, at: 50ms, set: {delay: 1ms}}]\n", "a rate of netem": BASE + "changes: [{where: reverse, at: 50ms, set: {burst: 6000}}]\n",
    "a ramp between two fields": BASE + "changes: [{where: forward, ramp: [10ms, 50ms], start: {delay: 5ms}, end: {loss: 1%}}]\n", "a ramp that ends before it begins": BASE + "changes: [{where: forward, ramp: [50ms, 10ms], start: {delay: 5ms}, end: {delay: 6ms}}]\n",
    "a change after the end": BASE + "changes: [{where: bottleneck, at: 5s, set: {rate: 1mbit}}]\n", "a change of nothing": BASE + "changes: [{where: bottleneck, at: 50ms, set: {}}]\n", "times that run back": BASE + "changes: [{where: bottleneck, trace: [[50ms, 1mbit], [10ms, 2mbit]]}]\n",
    "a repetition of 0 s": BASE + "changes: [{where: bottleneck, trace: [[0s, 1mbit], [10ms, 2mbit]], repeat: 0s}]\n", "a repetition before the end": BASE + "changes: [{where: bottleneck, trace: [[0s, 1mbit], [50ms, 2mbit]], repeat: 20ms}]\n",
    "a period of 0 s": BASE + "changes: [{where: bottleneck, every: 0s, hold: 10ms, set: {outage: true}}]\n", "an outage longer than its period": BASE + "changes: [{where: bottleneck, every: 10ms, hold: 50ms, set: {outage: true}}]\n",
    "steps of 1 ns": BASE + "changes: [{where: forward, ramp: [0s, 100ms], step: 1ns, start: {delay: 5ms}, end: {delay: 6ms}}]\n", "a flow that stops before it starts": BASE + "flows: [{start: 50ms, stop: 10ms}]\n", "a flow that starts after the end": BASE + "flows: [{start: 5s}]\n",
    "aliases without end": "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)), "an alias of itself": "flows: &a [*a]\n", "5,000 levels": "flows: " + "[" * 5000 + "]" * 5000,
    "an object": "!!python/object/apply:os.system ['touch PWNED']\n", "a number that is none": BASE + "mtu: 0x_\n", "5,000 digits": BASE + f"mtu: {DIGITS}\n", "a sexagesimal number": BASE + "mtu: 1:30:00\n", "two documents": BASE + "---\n" + BASE, "UTF-16": BASE.encode("utf-16"),
    "no UTF-8": BASE.encode() + b"about: \xff\n", "a NUL": BASE.encode() + b"about: \0\n", "a control character": BASE.encode() + b"about: \x1b[31m\n", "not YAML": "a: [", "a tab": "a:\n\t- b\n", "a merge": "<<: 5\n" + BASE, "a control that is a path": BASE + "flows: [{cca: ../../x.py:X}]\n",
    "a trace that is a device": BASE.replace("rate: 5mbit", "trace: /dev/zero"), "a trace in bins without end": BASE.replace("rate: 5mbit", "trace: day.up, bin: 1ms"), "a trace that is a directory": BASE.replace("rate: 5mbit", "trace: ."), "a negative delay": BASE.replace("delay: 5ms", "delay: -5ms"), "a delay of nan": BASE.replace("delay: 5ms", "delay: .nan"),
    "a delay of infinity": BASE.replace("delay: 5ms", "delay: .inf"), "a delay that is a flag": BASE.replace("delay: 5ms", "delay: yes"), "a quantum of nan": BASE.replace("rate: 5mbit", "rate: 5mbit, queue: fq_codel quantum nan"), "no rate": BASE.replace("5mbit", "0"), "a reader without a time": BASE + "flows: [{read: 16KiB/}]\n", "a bucket of a byte": BASE.replace("rate: 5mbit", "rate: 5mbit, burst: 1, buffer: 20000B"),
    "a buffer next to 0": BASE.replace("rate: 5mbit", "rate: 5mbit, buffer: 1e-320B"),
}  # fmt: skip
"""What is wrong → a scenario's file."""
CAMPAIGN = "conditions: {rtt: 10ms, rate: 5mbit, duration: 100ms}\n"
CAMPAIGNS: Mapping[str, str] = {
    "no engines": CAMPAIGN + "axes: {jitter: 0..1ms/1ms}\nengines: []\nseeds: 1\n", "an empty axis": CAMPAIGN + "axes: {jitter: []}\nengines: [mock]\n", "a name that leaves": CAMPAIGN + "name: /../../x\naxes: {jitter: 0..1ms/1ms}\nengines: [mock]\n",
    "a name that is ..": CAMPAIGN + "name: ..\naxes: {jitter: 0..1ms/1ms}\nengines: [mock]\n", "a name with a newline": CAMPAIGN + 'name: "a\\nb"\naxes: {jitter: 0..1ms/1ms}\nengines: [mock]\n', "an axis twice": CAMPAIGN + "axes: {jitter: 1ms, jitter: 2ms}\nengines: [mock]\n",
    "too many cells": CAMPAIGN + "axes: {jitter: 0..1000ms/1ms, loss: 0..99%/0.1%}\nengines: [mock]\nseeds: 1\n", "too many seeds": CAMPAIGN + "axes: {jitter: 0..100ms/1ms}\nengines: [mock]\nseeds: 1000000\n", "seeds twice": CAMPAIGN + "axes: {jitter: 1ms}\nengines: [mock]\nseeds: 1,1\n",
    "arithmetic without end": CAMPAIGN + "axes: {r: [2]}\nderive: {jitter: 9**9**9**9}\nengines: [mock]\n", "arithmetic by 0": CAMPAIGN + "axes: {r: [0]}\nderive: {jitter: 1ms / r}\nengines: [mock]\n", "arithmetic over a name of its own": CAMPAIGN + "axes: {r: [1]}\nderive: {jitter: _q0}\nengines: [mock]\n", "seeds that are a flag": CAMPAIGN + "axes: {jitter: 1ms}\nengines: [mock]\nseeds: true\n",
    "arithmetic that calls": CAMPAIGN + "axes: {r: [1]}\nderive: {jitter: __import__('os')}\nengines: [mock]\n",
    "an unknown axis": CAMPAIGN + "axes: {nosuch: [1, 2]}\nengines: [mock]\n", "a template of nothing": CAMPAIGN.replace("10ms", '"${nosuch}"') + "axes: {jitter: 1ms}\nengines: [mock]\n", "groups of two lengths": CAMPAIGN + "zip: [{jitter: [1ms, 2ms], loss: [1%]}]\nengines: [mock]\n",
    "samples of 1 µs over a day": CAMPAIGN.replace("100ms", "24h") + "axes: {jitter: 1ms}\nsamples: 1us\nseeds: 1\n", "neither a path": "axes: {jitter: 1ms}\n", "engines twice": CAMPAIGN + "axes: {jitter: 1ms}\nengines: [mock, mock]\n", "a precision of nan": CAMPAIGN + "axes: {jitter: 1ms}\nengines: [mock]\nprecision: nan\n",
}  # fmt: skip
"""What is wrong → a campaign's file."""
CONTROLS: Mapping[str, str] = {
    "ends the program": "import sys\nsys.exit(0)\n", "ends in a method": "from tcpscape import Control\nclass Mine(Control):\n    def on_ack(self, sample, window):\n        raise SystemExit(0)\n    def ssthresh(self, sample, window):\n        return 2\n",
    "no class": "x = 1\n", "no Python": "def\n", "returns a text": "from tcpscape import Control\nclass Mine(Control):\n    def on_ack(self, sample, window):\n        window.cwnd = 'x'\n    def ssthresh(self, sample, window):\n        return 2\n",
    "recurses": "from tcpscape import Control\nclass Mine(Control):\n    def on_ack(self, sample, window):\n        self.on_ack(sample, window)\n    def ssthresh(self, sample, window):\n        return 2\n",
}  # fmt: skip
"""What is wrong → the file of a user's congestion control."""


def cases() -> Iterator[tuple[str, Case]]:
    """Every one with a name."""
    for group, lines in LINES.items():
        for line in lines:
            words = tuple(shlex.split(line))
            yield f"{group}: {line.removeprefix(RUN).removeprefix(f'run {PATH}').strip()[:70]}", _case(words, needed(words))
    for what, text in SCENARIOS.items():
        content = text if isinstance(text, bytes) else text.encode()
        yield f"scenario: {what}", _case(("run", "s.yaml", "--seeds", "1"), {"s.yaml": content, "day.up": b"86400000\n"})
    for what, text in CAMPAIGNS.items():
        yield f"campaign: {what}", _case(("sweep", "c.yaml"), {"c.yaml": text.encode()})
    for what, text in CONTROLS.items():
        yield f"control: {what}", _case((*shlex.split(RUN), "--cca", "mine.py:Mine", "--check", "goodput > 0"), {"mine.py": text.encode()})
    for kind in (FIFO, DIRECTORY, ENDLESS, LOOP):
        for line in READERS:
            name = next(word for word in line.replace(":", " ").split() if word.startswith("x."))
            yield f"{kind}: {line}", _case(tuple(line.split()), {name: kind})


READERS = (
    "run x.yaml", "sweep x.yaml", "compare x.csv x.csv", "compare x.json x.json", "compare x.flent.gz x.flent.gz", "export x.yaml --to tc", "export x.parquet --to csv", "advise --from x.txt", "run baseline --cca x.py:X",
    "validate --engine mock --engine mock --conditions x.csv",
)  # fmt: skip
"""Command lines that read a file, which is none."""


def _case(words: tuple[str, ...], files: Mapping[str, bytes | str]) -> Case:
    return Case("nonsense", words, files, nonsense=True)
