#!/usr/bin/env python3
"""Programs of this machine in virtual time, measured; docs/how-to/programs.md has what was found.

Is a run repeated to the byte, do they do what our own sockets and the model do, what does it cost, is whatever a program does bounded and named.

CPU time is that of the guests, as the machine accounts it to ended children; wall time is that of a machine with the load that the page names.
Ending by signals at random moments is `benches/kills.py programs`.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import pathlib
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import tcpscape
from tcpscape import engines, stats
from tcpscape.errors import TcpscapeError
from tcpscape.stats import Estimate

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benches"))
from emulated import packets  # noqa: E402
from table import markdown, verdict  # noqa: E402

PATHS, SEEDS = 60, 5
"""Random paths of iperf3 beside our own sockets, and runs of each that has loss."""
PATH = {"rtt": "40ms", "rate": "20mbit", "loss": "0.2%"}
NGINX = """daemon off; master_process off; pid {dir}/pid; error_log /dev/stderr;
events {{}}
http {{ access_log off; server {{ listen 80; root {dir}; }}
  client_body_temp_path {dir}; proxy_temp_path {dir}; fastcgi_temp_path {dir}; uwsgi_temp_path {dir}; scgi_temp_path {dir}; }}
"""
SEND = """
import fcntl, socket, struct, sys, termios, time
size = int(sys.argv[1])
s = socket.create_connection(("far", 9))
begin = time.monotonic()
s.sendall(bytes(size))
while struct.unpack("i", fcntl.ioctl(s, termios.TIOCOUTQ, b"    "))[0]:
    time.sleep(50e-6)
print(time.monotonic() - begin)
"""
TAKE = """
import socket
listener = socket.create_server(("0.0.0.0", 9))
while True:
    c, _ = listener.accept()
    while c.recv(1 << 20):
        pass
"""
BEFORE = """
import socket, sys, time
peer, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 9))
time.sleep(0.3)
for _ in range(count):
    s.sendto(b"before", (peer, 9))
    time.sleep(0.01)
time.sleep(seconds)
"""
"""Sends datagrams, as one end of a connection sends packets before its data, and stays there."""
STARTS_AT = 2
"""When a flow of ours starts behind such datagrams, s."""
BUSY = "while True:\n    pass"
DEADLOCK = "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()"
STUBBORN = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(1e6)"


@dataclass(frozen=True)
class Case:
    """A command with its server."""

    name: str
    command: str
    serve: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def is_here(self) -> bool:
        """Whether all its programs are installed."""
        return all(shutil.which(name) for name in self.needs)


def cases(folder: pathlib.Path) -> list[Case]:
    """The programs that are repeated."""
    (folder / "page").write_bytes(bytes(1_000_000))
    (folder / "nginx.conf").write_text(NGINX.format(dir=folder))
    nginx = f"nginx -p {folder} -c {folder}/nginx.conf"
    return [
        Case("curl, Python's http.server", "curl -s -o /dev/null http://far/page", (f"python3 -m http.server 80 -d {folder}",), ("curl",)),
        Case("iperf3", "iperf3 -c far -t 2 -J", ("iperf3 -s -1",), ("iperf3",)),
        Case("iperf3 --bidir", "iperf3 -c far -t 2 -J --bidir", ("iperf3 -s -1",), ("iperf3",)),
        Case("curl, nginx", "curl -s -o /dev/null http://far/page", (nginx,), ("curl", "nginx")),
        Case("h2load, nginx", "h2load --h1 -n 20 -c 4 http://far/page", (nginx,), ("h2load", "nginx")),
        Case("irtt", "irtt client -i 50ms -d 2s far", ("irtt server -b 0.0.0.0:2112",), ("irtt",)),
    ]


def run(command: str, **options: object) -> tcpscape.api.Emulated:  # type: ignore[name-defined]
    """A command in virtual time."""
    return tcpscape.emulate(command, **{"engine": "virtual", **PATH, **options})  # type: ignore[arg-type]


@contextmanager
def load(processes: int) -> Iterator[None]:
    """Processes that compute beside."""
    beside = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in beside:
            process.kill()
            process.wait()


def repeated(reps: int, folder: pathlib.Path) -> list[tuple]:
    """Rows: how many different captures and outputs the repetitions of each program gave, half of them beside four processes that compute."""
    rows = []
    for case in cases(folder):
        if not case.is_here:
            rows.append((case.name, "–", "–", "not installed"))
            continue
        captures, outputs = set(), set()
        for number in range(reps):
            with load(4 if number >= (reps + 1) // 2 else 0):
                result = run(case.command, serve=list(case.serve), seed=7, pcap=folder / "packets.pcapng")
            captures.add(hashlib.sha256((folder / "packets.pcapng").read_bytes()).hexdigest())
            outputs.add(result.output)
            assert result.status == 0, result
        rows.append((case.name, len(captures), len(outputs), verdict(len(captures) == len(outputs) == 1)))
        print(*rows[-1], flush=True)
    return rows


def goodput_of(pcap: pathlib.Path) -> float:
    """Goodput of the largest flow of a capture from its first data to its last, Mbit/s."""
    facts = tcpscape.diagnose(pcap, replay=False, flows=1).flows[0].flow.facts
    return float(facts["bytes"] * 8e3 / (facts["data_last_ns"] - facts["data_first_ns"]))


def before_data(pcap: pathlib.Path) -> tuple[int, int]:
    """How many packets came to each direction of the path before the first full segment, and before the first that acknowledges it."""
    each = [*packets(pcap)]
    data = next(packet for packet in each if packet.direction == "forward" and packet.payload > 1000)
    back = (packet for packet in each if packet.direction == "reverse" and packet.ports == data.ports[::-1])
    return data.number, next(packet.number for packet in back if 0 < (packet.sequence[1] - data.sequence[0]) % 2**32 < 2**31)


def beside_ours(paths: int, folder: pathlib.Path, before: list[list]) -> Iterator[tuple[int, tuple]]:
    """Places and rows: goodputs of iperf3 and of a flow of ours, each alone on a random path, seed by seed, and how often the data of both met the same draws.

    Behind as many packets each way as iperf3 sends before its data, ours meets the draws of the path that iperf3 does. Every path has one run before any has
    the next, and what is in the rows `before` is not run again.
    """
    draw, rows = random.Random(34), {}
    (folder / "before.py").write_text(BEFORE)
    for number in range(paths):
        rate, rtt = round(draw.uniform(1, 12), 1), round(draw.uniform(5, 150))
        loss, cca = draw.choice(["0%", "0%", "0.1%", "1%"]), draw.choice(["cubic", "bbr", "reno"])
        theirs, ours, same = before[number][2:] if number < len(before) else ([], [], 0)
        rows[number] = ({"rate": f"{rate}mbit", "rtt": f"{rtt}ms", "loss": loss, "cca": cca}, theirs, ours, same)
    for run_, number in itertools.product(range(SEEDS), rows):
        path, theirs, ours, same = rows[number]
        if run_ < (1 if path["loss"] == "0%" else SEEDS) and run_ >= len(theirs):
            goodput, of_ours, is_same = pair(path | {"seed": number + PATHS * run_}, folder)
            rows[number] = path, [*theirs, goodput], [*ours, of_ours], same + is_same
            name = f"{path['rate'].removesuffix('mbit')} Mbit/s, {path['rtt'].removesuffix('ms')} ms, loss {path['loss']}"
            yield number, (name, path["cca"], *rows[number][1:])


def pair(path: dict[str, object], folder: pathlib.Path) -> tuple[float, float, bool]:
    """Goodput of iperf3 and of a flow of ours with one seed, Mbit/s, and whether their data met the same draws of the path."""
    pcap, script = folder / "packets.pcapng", f"python3 {folder}/before.py"
    report = json.loads(run("iperf3 -c far -t 8 -J", serve="iperf3 -s -1", pcap=pcap, **path).output)
    theirs = report["end"]["sum_received"]["bits_per_second"] / 1e6  # of the test's own time: it agrees on it before, silently
    up, down = before_data(pcap)
    near, far = (f"{script} {peer} {count} " for peer, count in (("far", up - 2), ("near", down - 1)))  # a handshake of ours is 2 and 1
    seconds = STARTS_AT + 8 - 0.3 - 0.01 * (up - 2)
    run(f"{near} {seconds:g}", serve=f"{far} 60", mix=f"{path['cca']}~up@{STARTS_AT}s", pcap=pcap, **path)
    return theirs, goodput_of(pcap), before_data(pcap) == (up, down)


def beside_the_model(folder: pathlib.Path) -> list[tuple]:
    """Rows: how long an upload takes from the connection to the last acknowledgement, in the guest and in the model, on paths without chance."""
    (folder / "send.py").write_text(SEND)
    (folder / "take.py").write_text(TAKE)
    rows = []
    for rate, rtt, size in ((10, 20, 200_000), (10, 100, 1_000_000), (20, 40, 500_000), (50, 50, 2_000_000), (5, 300, 300_000), (100, 10, 1_000_000)):
        path = {"rate": f"{rate}mbit", "rtt": f"{rtt}ms", "buffer": "2MB"}
        result = tcpscape.emulate(f"python3 {folder}/send.py {size}", serve=f"python3 {folder}/take.py", engine="virtual", cca="cubic", **path)
        guest = float(result.output)
        hops = {"forward": f"netem delay {rtt / 2:g}ms", "bottleneck": {"rate": f"{rate}mbit", "buffer": "2MB"}}
        hops |= {"reverse": [f"netem delay {rtt / 2:g}ms", {"rate": f"{rate}mbit", "buffer": "2MB"}]}
        fields = {"name": "clean", **hops, "flows": [{"app": {"size": f"{size}B"}}], "offload": True, "duration": "60s"}
        trial = engines.make("model").run(tcpscape.Scenario.of({**fields, "kernel": "6.1,host_time=0s"}), [0])[0]
        model = trial.flows[0].seconds
        rows.append((f"{size / 1e6:g} MB, {rate} Mbit/s, {rtt} ms", f"{guest * 1e3:.2f}", f"{model * 1e3:.2f}", f"{(guest - model) * 1e3:+.2f}"))
        print(*rows[-1], flush=True)
    return rows


def cpu(work: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds of the children that ended meanwhile, and seconds of the clock."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - began


def costs(reps: int) -> dict[str, float]:
    """Simulated seconds for each CPU second, and the start; of iperf3, which waits in a loop before a test, while the test runs."""

    def used(command: str, **options: object) -> float:
        return statistics.median(cpu(lambda: run(command, **{"loss": "0%"} | options))[0] for _ in range(reps))

    start = [cpu(lambda: run("true")) for _ in range(reps)]
    base = statistics.median(seconds for seconds, _ in start)
    shorter, longer = (used(f"iperf3 -c far -t {seconds}", serve="iperf3 -s -1") for seconds in (5, 35))
    figures = {
        "start, CPU s": base,
        "start, s of the clock, least": min(wall for _, wall in start),
        "ours": 60 / (used("sleep 60", mix="cubic~up") - base),
        "ours, jitter": 20 / (used("sleep 20", mix="cubic~up", jitter="2ms") - base),
        "bulk": 30 / (longer - shorter),
        "iperf3's start, CPU s": shorter - 5 * (longer - shorter) / 30 - base,
        "idle": 3000 / max(used("sleep 3000", rtt="600ms") - base, 1e-3),
    }
    print(figures, flush=True)
    return figures


LIMITS = (
    ("a fork bomb", "sh -c 'f() { f | f & }; f 2> /dev/null; sleep 5; echo over'"),
    ("writes 10 GB", "sh -c 'head -c 10G /dev/zero > /tmp/large'"),
    ("reads /dev/zero for ever", "sh -c 'cat /dev/zero > /dev/null'"),
    ("ends before its child", "sh -c 'sleep 1000000 & exit 3'"),
    ("ignores SIGTERM", f'python3 -c "{STUBBORN}"'),
    ("waits in a loop that reads no clock", f'python3 -c "{BUSY}"'),
    ("waits for itself (a deadlock)", f'python3 -c "{DEADLOCK}"'),
)


def limits() -> list[tuple]:
    """Rows: what a program that goes wrong comes to, and after how many seconds of the clock."""
    rows = []
    for name, command in LIMITS:
        began = time.monotonic()
        try:
            result = run(command, duration="30s")
            outcome = f"status {result.status} after {result.seconds:.3g} s of virtual time" + (
                ", ended by `--duration`" * result.summary["timed_out"]
            )
            outcome += "".join(f"; {caveat}" for caveat in result.summary["caveats"])
        except TcpscapeError as e:
            outcome = f"`{e}`"
        rows.append((name, outcome, f"{time.monotonic() - began:.0f}"))
        print(*rows[-1], flush=True)
    return rows


PAGE = """# Programs in virtual time: repeated, right, bounded

Generated by `python benches/programs.py` on {machine}; kernel {kernel}. How to use it: [test a network program in virtual time](how-to/programs.md). The machine's load was {load} (runnable processes over a minute, on
{cores} cores), others among them: times of the clock are those of a busy machine.

| what | target | reached | |
|---|---|---|---|
{targets}

## Repeated to the byte

{reps} repetitions of each with one seed, behind 40 ms, 20 Mbit/s and 0.2 % loss, the second half beside four processes that compute: how many different captures and outputs there were.

{repeated}

## Beside our own sockets

iperf3 for 8 s, and a flow of ours for as long, each alone on the same random path with the same seed; goodput as iperf3's receiver reports it, and of the capture, Mbit/s. iperf3's control connection sends packets before
the data, which use up draws of the path; ours starts behind as many datagrams each way, so that its data meet the same. Paths with loss: means of {seeds} seeds, and the ratio of the means with its 95 % interval; a run in
which the first data did not meet the same draws (a packet of a handshake was lost) counts all the same.

{ours}

## Beside the model

An upload without chance, from the connection to the last acknowledgement, ms.

{model}

## Programs that go wrong

Each with `--duration 30s`, on a path of 40 ms.

{limits}
"""


PARTS: dict[str, Callable[[bool, pathlib.Path, list[tuple]], object]] = {
    "model": lambda _, folder, before: beside_the_model(folder),
    "costs": lambda is_quick, _, before: costs(1 if is_quick else 3),
    "limits": lambda _, folder, before: limits(),
    "repeated": lambda is_quick, folder, before: repeated(2 if is_quick else 5, folder),
    "ours": lambda is_quick, folder, before: beside_ours(2 if is_quick else PATHS, folder, before),
}
"""What is measured, each by itself; the last goes on from the rows that are kept."""


def measure(parts: list[str], is_quick: bool, kept: pathlib.Path) -> dict[str, object]:
    """Measures parts and keeps them with the machine's load, beside what was measured before."""
    figures = json.loads(kept.read_text()) if kept.exists() else {}
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="tcpscape-programs-") as name:
            before = figures.get(part, [])
            measured = PARTS[part](is_quick, pathlib.Path(name), before)
            if isinstance(measured, Iterator):
                figures[part] = [*before]
                for place, row in measured:
                    figures[part][place : place + 1] = [row]
                    kept.write_text(json.dumps(figures))
                    print(*row, flush=True)
            else:
                figures[part] = measured
        figures.setdefault("loads", []).append(os.getloadavg()[0])
        kept.write_text(json.dumps(figures))
    return figures


def apart(row: tuple) -> Estimate:
    """How far iperf3 is from ours on a path, in %: the ratio of the means of its seeds."""
    of = stats.ratio(row[2], row[3])
    return replace(of, value=100 * (of.value - 1), low=100 * (of.low - 1), high=100 * (of.high - 1))


def goodput_targets(rows: list[tuple]) -> Iterator[tuple]:
    """Rows about the goodput of iperf3 beside ours, on the paths without loss and on those with loss."""
    for is_clean, name in ((True, "without"), (False, "with")):
        values = [apart(row) for row in rows if row[0].endswith("loss 0%") == is_clean]
        if not values:
            continue
        near, median = sum(abs(each.value) <= 1 for each in values), statistics.median(each.value for each in values)
        reached = f"{near} of {len(values)}; median {median:+.2f} %, most {max(abs(each.value) for each in values):.2f} %"
        if not is_clean:
            far = [each for each in values if abs(each.value) > 1]
            whole = stats.mean([each.value for each in values])
            reached += f"; of the others {sum(each.low <= 1 and each.high >= -1 for each in far)} have an interval that reaches 1 %"
            reached += f"; mean of all {whole.value:+.2f} % [{whole.low:+.2f}, {whole.high:+.2f}]"
        yield f"goodput of iperf3 beside a flow of ours, {len(values)} paths {name} loss", "within 1 %", reached, verdict(near == len(values))


def goodput_row(row: tuple) -> tuple:
    """A path as the page has it."""
    path, control, theirs, ours, same = row
    of, runs = apart(row), len(theirs)
    interval = f" [{of.low:+.2f}, {of.high:+.2f}]" if runs > 1 else ""
    return (path, control, f"{statistics.fmean(theirs):.3f}", f"{statistics.fmean(ours):.3f}", f"{of.value:+.2f}%{interval}", f"{same} of {runs}")


def page(figures: dict[str, object], is_quick: bool) -> str:
    """The page, from every part."""
    import performance

    engine, costs_ = engines.make("virtual"), figures["costs"]
    late = max(abs(float(row[-1])) for row in figures["model"])
    is_same = all(row[-1] in ("met", "not installed") for row in figures["repeated"])
    clock = costs_["start, s of the clock, least"]
    targets = [
        ("captures and outputs of repetitions", "one of each", "one of each" if is_same else "more", verdict(is_same)),
        *goodput_targets(figures["ours"]),
        ("time of an upload beside the model", "within 1 ms", f"within {late:.2f} ms", verdict(late <= 1)),
        ("simulated s for each CPU s, iperf3 at 20 Mbit/s while it runs", "≥ 20", f"{costs_['bulk']:.0f}", verdict(costs_["bulk"] >= 20)),
        ("simulated s for each CPU s, a flow of ours at 20 Mbit/s", "≥ 20", f"{costs_['ours']:.0f}", verdict(costs_["ours"] >= 20)),
        ("simulated s for each CPU s, idle at 600 ms", "≥ 1,000", f"{costs_['idle']:,.0f}", verdict(costs_["idle"] >= 1000)),
        ("start, CPU", "< 0.5 s", f"{costs_['start, CPU s']:.2f} s", verdict(costs_["start, CPU s"] < 0.5)),
        ("start, by the clock", "< 0.5 s", f"{clock:.2f} s", verdict(clock < 0.5)),
    ]
    return PAGE.format(
        machine=performance.machine(),
        kernel=f"{engine.kernel.name} ({engine.kernel.release})",
        load=f"{min(figures['loads']):.0f} to {max(figures['loads']):.0f}",
        cores=os.cpu_count(),
        targets="\n".join(markdown(("what", "target", "reached", ""), targets).splitlines()[2:]),
        reps=2 if is_quick else 5,
        repeated=markdown(("programs", "captures", "outputs", ""), figures["repeated"]),
        ours=markdown(("path", "control", "iperf3", "ours", "apart", "same draws"), [goodput_row(row) for row in figures["ours"]]),
        seeds=SEEDS,
        model=markdown(("transfer and path", "in the guest", "model", "apart"), figures["model"]),
        limits=markdown(("a program that", "what comes of it", "s of the clock"), figures["limits"]),
    )


def main() -> int:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--quick", action="store_true", help="few repetitions")
    p.add_argument("--parts", nargs="*", choices=list(PARTS), default=list(PARTS), help="what is measured now; the others are as they were kept")
    p.add_argument("--kept", type=pathlib.Path, default=pathlib.Path("programs.json"), help="what was measured before")
    p.add_argument("--out", type=pathlib.Path, default=pathlib.Path("programs.md"), help="the page")
    a = p.parse_args()
    figures = measure(a.parts, a.quick, a.kept)
    if set(PARTS) <= figures.keys():
        a.out.write_text(page(figures, a.quick))
        print(f"wrote {a.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
