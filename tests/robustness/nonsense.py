"""Inputs that are known to be nonsense: `nonsense.tsv` has a line for each, with what its refusal must say; and files that are none, wherever one is read."""

import gzip
import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from robustness.case import DIRECTORY, EMPTY, ENDLESS, FIFO, LARGE, LOOP, NOWHERE, Case
from robustness.documents import needed

TABLE = Path(__file__).with_suffix(".tsv")
PATH = '--forward "netem delay 5ms" --bottleneck "tbf rate 5mbit burst 6056 limit 15000" --reverse "netem delay 5ms"'
RUN = f"run {PATH} --duration 100ms --seeds 1"
BRACES = {
    "{run}": RUN,
    "{path}": PATH,
    "{digits}": "9" * 5000,
    "{zeros}": "0" * 5000,
    "{long}": "x" * 3000,
    "{links}": " ".join(["--link 'delay 1ms'"] * 40),
}
"""Words of the table in braces → what they stand for."""
DIGITS = BRACES["{digits}"]

BASE = "forward: {delay: 5ms}\nbottleneck: {rate: 5mbit}\nreverse: {delay: 5ms}\nduration: 100ms\n"
SCENARIOS: Mapping[str, str | bytes] = {
    "empty": "",
    "nothing": "{}",
    "a list": "[]",
    "a text": "hello",
    "null": "null",
    "a key twice": BASE + "duration: 200ms\n",
    "a key twice inside": BASE + "kernel: {hz: 100, hz: 250}\n",
    "unknown field": BASE + "nosuch: 1\n",
    "a name with a newline": BASE + 'name: "x\\ntouch PWNED\\n#"\n',
    "a name with an escape": BASE + 'name: "\\e[31m"\n',
    "a name with a slash": BASE + "name: /../../x\n",
    "a name that is a directory": BASE + "name: ..\n",
    "a name that is an option": BASE + 'name: "-x"\n',
    "a name that is a list": BASE + "name: [a]\n",
    "a name of 100 kB": BASE + "name: " + "x" * 100_000 + "\n",
    "no flows": BASE + "flows: []\n",
    "a flow without a number": BASE + "flows: [{count: nan}]\n",
    "no count": BASE + "flows: [{count: 0}]\n",
    "20 million flows": BASE + "flows: [{count: 20000000}]\n",
    "digits of another script": BASE + "flows: [{count: ٣}]\n",
    "a child that is not there": BASE + "changes: [{where: bottleneck, child: 99, at: 50ms, set: {rate: 1mbit}}]\n",
    "a hop that is not there": BASE + "changes: [{where: bottleneck, hop: 99, at: 50ms, set: {rate: 1mbit}}]\n",
    "a delay of tbf": BASE + "changes: [{where: bottleneck, at: 50ms, set: {delay: 1ms}}]\n",
    "a rate of netem": BASE + "changes: [{where: reverse, at: 50ms, set: {burst: 6000}}]\n",
    "a ramp between two fields": BASE + "changes: [{where: forward, ramp: [10ms, 50ms], start: {delay: 5ms}, end: {loss: 1%}}]\n",
    "a ramp that ends before it begins": BASE + "changes: [{where: forward, ramp: [50ms, 10ms], start: {delay: 5ms}, end: {delay: 6ms}}]\n",
    "a change after the end": BASE + "changes: [{where: bottleneck, at: 5s, set: {rate: 1mbit}}]\n",
    "a change of nothing": BASE + "changes: [{where: bottleneck, at: 50ms, set: {}}]\n",
    "times that run back": BASE + "changes: [{where: bottleneck, trace: [[50ms, 1mbit], [10ms, 2mbit]]}]\n",
    "a repetition of 0 s": BASE + "changes: [{where: bottleneck, trace: [[0s, 1mbit], [10ms, 2mbit]], repeat: 0s}]\n",
    "a repetition before the end": BASE + "changes: [{where: bottleneck, trace: [[0s, 1mbit], [50ms, 2mbit]], repeat: 20ms}]\n",
    "a period of 0 s": BASE + "changes: [{where: bottleneck, every: 0s, hold: 10ms, set: {outage: true}}]\n",
    "an outage longer than its period": BASE + "changes: [{where: bottleneck, every: 10ms, hold: 50ms, set: {outage: true}}]\n",
    "steps of 1 ns": BASE + "changes: [{where: forward, ramp: [0s, 100ms], step: 1ns, start: {delay: 5ms}, end: {delay: 6ms}}]\n",
    "a flow that stops before it starts": BASE + "flows: [{start: 50ms, stop: 10ms}]\n",
    "a flow that starts after the end": BASE + "flows: [{start: 5s}]\n",
    "aliases without end": "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "an alias of itself": "flows: &a [*a]\n",
    "5,000 levels": "flows: " + "[" * 5000 + "]" * 5000,
    "an object": "!!python/object/apply:os.system ['touch PWNED']\n",
    "a number that is none": BASE + "mtu: 0x_\n",
    "5,000 digits": BASE + f"mtu: {DIGITS}\n",
    "a sexagesimal number": BASE + "mtu: 1:30:00\n",
    "two documents": BASE + "---\n" + BASE,
    "UTF-16": BASE.encode("utf-16"),
    "no UTF-8": BASE.encode() + b"about: \xff\n",
    "a NUL": BASE.encode() + b"about: \0\n",
    "a control character": BASE.encode() + b"about: \x1b[31m\n",
    "not YAML": "a: [",
    "a tab": "a:\n\t- b\n",
    "a merge": "<<: 5\n" + BASE,
    "a control that is a path": BASE + "flows: [{cca: ../../x.py:X}]\n",
    "a trace that is a device": BASE.replace("rate: 5mbit", "trace: /dev/zero"),
    "a trace in bins without end": BASE.replace("rate: 5mbit", "trace: day.up, bin: 1ms"),
    "a trace that is a directory": BASE.replace("rate: 5mbit", "trace: ."),
    "a negative delay": BASE.replace("delay: 5ms", "delay: -5ms"),
    "a delay of nan": BASE.replace("delay: 5ms", "delay: .nan"),
    "a delay of infinity": BASE.replace("delay: 5ms", "delay: .inf"),
    "a delay that is a flag": BASE.replace("delay: 5ms", "delay: yes"),
    "a quantum of nan": BASE.replace("rate: 5mbit", "rate: 5mbit, queue: fq_codel quantum nan"),
    "no rate": BASE.replace("5mbit", "0"),
    "a reader without a time": BASE + "flows: [{read: 16KiB/}]\n",
    "a bucket of a byte": BASE.replace("rate: 5mbit", "rate: 5mbit, burst: 1, buffer: 20000B"),
    "a buffer next to 0": BASE.replace("rate: 5mbit", "rate: 5mbit, buffer: 1e-320B"),
}
"""What is wrong → a scenario's file."""
CAMPAIGN = "conditions: {rtt: 10ms, rate: 5mbit, duration: 100ms}\n"
CAMPAIGNS: Mapping[str, str] = {
    "no engines": CAMPAIGN + "axes: {jitter: 0..1ms/1ms}\nengines: []\nseeds: 1\n",
    "an empty axis": CAMPAIGN + "axes: {jitter: []}\nengines: [mock]\n",
    "a name that leaves": CAMPAIGN + "name: /../../x\naxes: {jitter: 0..1ms/1ms}\nengines: [mock]\n",
    "a name that is ..": CAMPAIGN + "name: ..\naxes: {jitter: 0..1ms/1ms}\nengines: [mock]\n",
    "a name with a newline": CAMPAIGN + 'name: "a\\nb"\naxes: {jitter: 0..1ms/1ms}\nengines: [mock]\n',
    "an axis twice": CAMPAIGN + "axes: {jitter: 1ms, jitter: 2ms}\nengines: [mock]\n",
    "too many cells": CAMPAIGN + "axes: {jitter: 0..1000ms/1ms, loss: 0..99%/0.1%}\nengines: [mock]\nseeds: 1\n",
    "too many seeds": CAMPAIGN + "axes: {jitter: 0..100ms/1ms}\nengines: [mock]\nseeds: 1000000\n",
    "seeds twice": CAMPAIGN + "axes: {jitter: 1ms}\nengines: [mock]\nseeds: 1,1\n",
    "arithmetic without end": CAMPAIGN + "axes: {r: [2]}\nderive: {jitter: 9**9**9**9}\nengines: [mock]\n",
    "arithmetic by 0": CAMPAIGN + "axes: {r: [0]}\nderive: {jitter: 1ms / r}\nengines: [mock]\n",
    "arithmetic over a name of its own": CAMPAIGN + "axes: {r: [1]}\nderive: {jitter: _q0}\nengines: [mock]\n",
    "seeds that are a flag": CAMPAIGN + "axes: {jitter: 1ms}\nengines: [mock]\nseeds: true\n",
    "arithmetic that calls": CAMPAIGN + "axes: {r: [1]}\nderive: {jitter: __import__('os')}\nengines: [mock]\n",
    "an unknown axis": CAMPAIGN + "axes: {nosuch: [1, 2]}\nengines: [mock]\n",
    "a template of nothing": CAMPAIGN.replace("10ms", '"${nosuch}"') + "axes: {jitter: 1ms}\nengines: [mock]\n",
    "groups of two lengths": CAMPAIGN + "zip: [{jitter: [1ms, 2ms], loss: [1%]}]\nengines: [mock]\n",
    "samples of 1 µs over a day": CAMPAIGN.replace("100ms", "24h") + "axes: {jitter: 1ms}\nsamples: 1us\nseeds: 1\n",
    "neither a path": "axes: {jitter: 1ms}\n",
    "engines twice": CAMPAIGN + "axes: {jitter: 1ms}\nengines: [mock, mock]\n",
    "a precision of nan": CAMPAIGN + "axes: {jitter: 1ms}\nengines: [mock]\nprecision: nan\n",
}
"""What is wrong → a campaign's file."""
METACLASS = "class Meta(type):\n    {1}def {0}(cls, *names):\n        raise RuntimeError('no')\nclass Mine(metaclass=Meta):\n    def on_ack(self, sample, window):\n        pass\n"
METACLASSES = {
    "__getattribute__": "",
    "__getattr__": "",
    "__eq__": "__hash__ = type.__hash__\n    ",
    "__module__": "@property\n    ",
    "__signature__": "@property\n    ",
}
"""A method of a class's own class → what is written before it."""
CONTROLS: Mapping[str, str] = {
    "ends the program": "import sys\nsys.exit(0)\n",
    "ends in a method": "from tcpscape import Control\nclass Mine(Control):\n    def on_ack(self, sample, window):\n        raise SystemExit(0)\n    def ssthresh(self, sample, window):\n        return 2\n",
    "no class": "x = 1\n",
    "no Python": "def\n",
    "returns a text": "from tcpscape import Control\nclass Mine(Control):\n    def on_ack(self, sample, window):\n        window.cwnd = 'x'\n    def ssthresh(self, sample, window):\n        return 2\n",
    "another class": "class C:\n    def on_ack(self, s, w): pass\n",
    "no method": "class Mine: pass\n",
    "no method of its own": "from tcpscape import Control\nclass Mine(Control): pass\n",
    "an import of nothing": "import nothing_of_that_name\n",
    "an argument more": "class Mine:\n    def __init__(self, x): pass\n    def on_ack(self, s, w): pass\n",
    "a flag that is a text": "class Mine:\n    paced = 'no'\n    def on_ack(self, s, w): pass\n",
    **{f"a class whose {part} fails": METACLASS.format(part, body) for part, body in METACLASSES.items()},
    "recurses": "from tcpscape import Control\nclass Mine(Control):\n    def on_ack(self, sample, window):\n        self.on_ack(sample, window)\n    def ssthresh(self, sample, window):\n        return 2\n",
}
"""What is wrong → the file of a user's congestion control."""
ROW = "baseline,0,mock,mock-1,1.0,a,h,0,,{},{},{},1.0,0\n"
TABLES: Mapping[str, str] = {
    what: "scenario,seed,engine,version,duration,address,hash,events,caveats,flow,cca,goodput_mbps,seconds,retransmits\n"
    + "".join(ROW.format(*flow) for flow in flows)
    for what, flows in {
        "the only flow without a control": [(0, "", 5)],
        "one of two flows without a control": [(0, "cubic", 5), (1, "", 5)],
        "a flow without goodput": [(0, "cubic", "")],
        "a flow of seconds alone": [(0, "", "")],
        "a flow twice": [(0, "cubic", 5), (0, "bbr", 5)],
    }.items()
}
"""What is wrong → a table of ours."""


@dataclass(frozen=True)
class Known:
    field: str
    """What the message names first."""
    fix: str
    """How its last words begin: what to do instead."""
    line: str
    """The command line as the table has it, or `scenario:`, `campaign:`, `table:` or `control:` and what is wrong with that file: a name, or fields in braces."""

    @property
    def case(self) -> Case:
        kind, is_file, what = self.line.partition(": ")
        if is_file and kind == "scenario":
            content = with_fields(BASE, what) if what.startswith("{") else SCENARIOS[what]
            files = {"s.yaml": content if isinstance(content, bytes) else content.encode(), "day.up": b"86400000\n"}
            return Case("nonsense", ("run", "s.yaml", "--seeds", "1"), files, nonsense=True)
        if is_file and kind == "campaign":
            content = with_fields(CAMPAIGN + "engines: [mock]\n", what) if what.startswith("{") else CAMPAIGNS[what]
            return Case("nonsense", ("sweep", "c.yaml"), {"c.yaml": content.encode()}, nonsense=True)
        if is_file and kind == "table":
            return Case("nonsense", ("export", "t.csv", "--to", "iperf3", "--out", "out"), {"t.csv": TABLES[what].encode()}, nonsense=True)
        if is_file and kind == "control":
            words = (*shlex.split(RUN), "--cca", "mine.py:Mine", "--check", "goodput > 0")
            return Case("nonsense", words, {"mine.py": CONTROLS[what].encode()}, nonsense=True)
        written = self.line
        for word, meaning in BRACES.items():
            written = written.replace(word, meaning)
        return Case("nonsense", tuple(shlex.split(written)), needed(shlex.split(written)), nonsense=True)

    def said(self, err: str) -> str:
        """What the message says where this line says something, in the words of the table."""
        field, _, rest = err.removeprefix("error: ").rstrip("\n").partition(": ")
        return "\t".join(shown if _begins(text, shown) else text for text, shown in ((field, self.field), (rest.rpartition("; ")[2], self.fix)))


def with_fields(document: str, fields: str) -> str:
    """A YAML document with other fields, or without those that are null."""
    return json.dumps({name: value for name, value in (yaml.safe_load(document) | yaml.safe_load(fields)).items() if value is not None})


def _begins(text: str, shown: str) -> bool:
    """Whether a text is as the table shows it; `…` stands for the rest."""
    return text.startswith(shown[:-1].rstrip()) if shown.endswith("…") else text == shown


def known() -> list[Known]:
    lines = TABLE.read_text("utf-8").splitlines()
    return [Known(*line.split("\t")) for line in lines if line and not line.startswith("#")]


MOCK = "--engine mock"
READERS = (
    f"run bad.yaml {MOCK}",
    f"run bad.toml {MOCK}",
    f"run trace.yaml {MOCK}",
    "run cca.yaml --seeds 1",
    "run --cca bad.py:Mine --rtt 9ms",
    f"sweep bad.yaml {MOCK}",
    "scenario show bad.yaml",
    "export bad.yaml --to tc",
    "export bad.csv --to iperf3",
    "export bad.parquet --to csv",
    "compare bad.csv bad.csv",
    "compare bad.json bad.json",
    "compare bad.flent.gz bad.flent.gz",
    "compare bad.parquet bad.parquet",
    "advise --from bad.txt",
    "advise --from bad.json",
    "advise --from bad.flent",
    "advise --from bad.yaml",
    "validate --conditions bad.csv",
    "validate --conditions bad.yaml",
    "validate --against bad_results.csv",
    "report bad.d",
    "plot bad.d --what bars",
    "export bad.d --to csv",
    "compare bad.d bad.d",
    f"run baseline {MOCK} --out bad.d",
    "kernel build --source bad.tar.xz --name x",
)
"""A command line for each place that reads a file, `bad.…`; `bad.d` is a directory whose database is that file."""
BESIDE: Mapping[str, Mapping[str, bytes]] = {
    "trace.yaml": {"trace.yaml": b"bottleneck: {trace: bad.up, buffer: 20KB}\n"},
    "cca.yaml": {"cca.yaml": b"flows: [{cca: 'bad.py:Mine'}]\n"},
    "bad_results.csv": {"bad_conditions.csv": b"id,cca,rtt_ms\na,cubic,9\n"},
}
"""A word of such a line → the files beside the bad one."""
READ = {"trace.yaml": "bad.up", "cca.yaml": "bad.py", "bad.d": "bad.d/results.sqlite", "bad.py:Mine": "bad.py"}
"""A word of such a line → the file that is bad, where it is another."""
MAY_BE_EMPTY = (EMPTY, DIRECTORY, NOWHERE, LOOP)
"""What a scenario of defaults, or a new place for results, may be."""


@cache
def no_files() -> Mapping[str, bytes | str]:
    """What may be where a file should be."""
    contents = {
        "binary": bytes(range(256)) * 100,
        "UTF-16": "name: x\n".encode("utf-16"),
        "brackets": b"[" * 100_000,
        "a bomb": gzip.compress(bytes(200_000_000), 1),
    }
    return {kind: kind for kind in (FIFO, ENDLESS, DIRECTORY, LOOP, NOWHERE, EMPTY, LARGE)} | contents


def unreadable(line: str, kind: str) -> Case:
    """A reader's command line, and what is no file there."""
    words = tuple(line.split())
    name = next(word for word in words if word.startswith("bad.") or word in BESIDE)
    return Case("nonsense", words, {**BESIDE.get(name, {}), READ.get(name, name): no_files()[kind]}, nonsense=kind not in MAY_BE_EMPTY)


def cases() -> Iterator[tuple[str, Case]]:
    yield from ((one.line[:70], one.case) for one in known())
    yield from ((f"{kind}: {line}", unreadable(line, kind)) for line in READERS for kind in no_files())
