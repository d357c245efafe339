"""Captures with known truth: conditions drawn at random, run on the virtual engine, recorded at the sender, a router and the receiver.

    .venv/bin/python benches/corpus.py OUT --cases 210 --draw dev        # a development set
    .venv/bin/python benches/corpus.py OUT --cases 210 --draw test       # drawn apart from it: nobody tunes on it

Each case is a directory `OUT/NNN` with `sender.pcap`, `router.pcap` and `receiver.pcap` of one trial (nanoseconds, first 160 bytes of each packet),
`info.parquet` (TCP_INFO of the sender every 10 ms) and `truth.json`: the scenario, its path in numbers, the kernel's counters, and `shown`, the
capture that is to be scored, which may be cut (its beginning, its end, its packets). What is drawn is said in :func:`draw`; the case's number and
the set's name are the seed, so that the same command makes the same captures.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import struct
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tcpscape import engines
from tcpscape.engines.base import Capture
from tcpscape.engines.guest import Place
from tcpscape.engines.virtual import Virtual
from tcpscape.scenario.path import deviation
from tcpscape.scenario.scenario import Scenario

CONTROLS = (
    "bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "reno", "scalable", "vegas", "veno", "westwood", "yeah",
)  # fmt: skip
"""The congestion controls of Linux 6.1."""
PLACES: tuple[Place, ...] = ("sender", "router", "receiver")
MOST_PACKETS = 80_000
"""Packets of a trial, about; a faster path is watched for less long, never below 10 s."""
SAMPLES = 10_000_000
"""Interval of the samples of TCP_INFO, ns."""


@dataclass
class Case:
    """A condition that was drawn."""

    scenario: dict[str, Any]
    """As a scenario file has it."""
    path: dict[str, Any]
    """Its path in numbers; None is not in it, or not comparable."""
    kind: str
    """What loads the path: bulk, rate, reader, rcvbuf, sndbuf, crowd, change."""
    shown: dict[str, Any]
    """Which capture is scored: place, what is cut off."""
    timestamps: bool = True
    sysctls: dict[str, str] = field(default_factory=dict)


def draw(case: int, name: str, only: str | None = None) -> Case:
    """The condition of a case.

    RTT 5 to 300 ms, 1 to 60 Mbit/s, buffer of 0.25 to 4 times the bandwidth-delay product (all evenly in their logarithms), half with jitter,
    half with loss, all congestion controls, bulk and limited applications, other flows, and changes of the path.
    """
    r = random.Random(f"{name} {case}")
    rtt = math.exp(r.uniform(math.log(5), math.log(300)))
    share = r.uniform(0.2, 0.8)
    rate = math.exp(r.uniform(math.log(1), math.log(60)))
    bdp = rate * 1e6 / 8 * rtt / 1e3
    buffer = max(15_140, round(bdp * math.exp(r.uniform(math.log(0.25), math.log(4)))))
    kind = r.choices(("bulk", "rate", "reader", "rcvbuf", "sndbuf", "crowd", "change"), (58, 10, 6, 7, 6, 7, 6))[0]
    has_rate = kind in ("bulk", "crowd", "change") or r.random() < 0.6
    queue = "tbf" if r.random() < 0.9 or not has_rate else r.choice(("fq_codel", "codel", "pie"))
    jitter_on = r.choices(("none", "forward", "reverse", "both"), (45, 25, 10, 20))[0]
    jitter = rtt * math.exp(r.uniform(math.log(0.005), math.log(0.25))) if jitter_on != "none" else 0.0
    forward_ms, reverse_ms = rtt * share, rtt * (1 - share)
    distribution = r.choices(("normal", "pareto", "uniform"), (75, 10, 15))[0] if jitter else "normal"
    # A tail that reaches below 0 is cut off by netem, and the mean and the spread are no more those that it was told.
    jitter = min(jitter, *(d / 3 for d, on in ((forward_ms, "forward"), (reverse_ms, "reverse")) if jitter_on in (on, "both")), rtt)
    loss = math.exp(r.uniform(math.log(0.01), math.log(3))) if r.random() < 0.5 else 0.0
    ack_loss = math.exp(r.uniform(math.log(0.05), math.log(3))) if r.random() < 0.1 else 0.0
    cca = only or r.choices(CONTROLS, [20 if c == "bbr" else 30 if c == "cubic" else 10 if c == "reno" else 40 / 14 for c in CONTROLS])[0]

    def netem(delay: float, jittery: bool, lost: float, at_router: bool) -> dict[str, Any]:
        hop: dict[str, Any] = {"delay": f"{delay:.6f}ms"}
        if at_router:
            hop["at"] = "router"
        if jittery and jitter:
            hop |= {"jitter": f"{jitter:.6f}ms", "distribution": distribution}
        if lost:
            hop["loss"] = f"{lost:.5f}%"
        return hop

    # The receiver's own egress has a queue that does nothing, so that the capture there sees the ACKs before their path.
    before = r.uniform(0.1, 0.9)
    jitter_first = r.random() < 0.5
    # The data pass two routers, so that a capture on the way has a part of the delay before it and a part behind it.
    ahead, behind = forward_ms * before, forward_ms * (1 - before)
    if jitter_on in ("forward", "both"):
        least = 3 * jitter
        ahead, behind = (max(ahead, least), forward_ms - max(ahead, least)) if jitter_first else (forward_ms - max(behind, least), max(behind, least))
    first = netem(ahead, jitter_on in ("forward", "both") and jitter_first, loss, True)
    second = netem(behind, jitter_on in ("forward", "both") and not jitter_first, 0.0, False)
    flow: dict[str, Any] = {"cca": cca}
    speed = rate if has_rate else math.exp(r.uniform(math.log(1), math.log(40)))
    if kind == "rate":
        flow["app"] = {"rate": f"{speed * r.uniform(0.1, 0.7):.4f}mbit", "chunk": r.choice((1_024, 1_448, 4_096, 8_192, 28_960, 65_536, 262_144))}
        flow["nodelay"] = r.random() < 0.5
    elif kind == "reader":
        size = r.choice((4, 8, 16, 32, 64))
        flow["read"] = f"{size}KiB/{max(1, round(size * 8.192 / (speed * r.uniform(0.2, 0.7)))):d}ms"
    elif kind == "rcvbuf":
        flow["rcvbuf"] = f"{max(4_608, round(speed * 125 * rtt * r.uniform(0.2, 0.8)))}B"
    elif kind == "sndbuf":
        flow["sndbuf"] = f"{max(4_608, round(speed * 125 * rtt * r.uniform(0.2, 0.8)))}B"
    seconds = max(10, min(40, round(MOST_PACKETS * 12_000 / (speed * 1e6)))) if has_rate else 30
    scenario: dict[str, Any] = {
        "name": f"{name}-{case:03d}", "duration": f"{seconds}s", "forward": [first, second],
        "reverse": ["pfifo limit 10000", netem(reverse_ms, jitter_on in ("reverse", "both"), ack_loss, False)], "flows": [flow], "offload": r.random() < 0.2,
    }  # fmt: skip
    if kind == "crowd":
        scenario["flows"].append({"cca": r.choice(("cubic", "bbr", "reno")), "count": r.choice((1, 1, 2, 4))})
    if has_rate:
        burst = max(3_028, round(rate * 1e6 / 8 / 250))
        tbf = f"tbf rate {rate:.4f}mbit burst {burst} limit {buffer}"
        scenario["bottleneck"] = [tbf if queue == "tbf" else f"tbf rate {rate:.4f}mbit burst {burst} limit 10mb ; {queue}"]
    path: dict[str, Any] = {
        "rtt_ms": forward_ms + reverse_ms, "jitter_ms": jitter * deviation(distribution), "jitter_on": jitter_on, "distribution": distribution if jitter else None,
        "order_kept": False if jitter else None, "loss_pct": loss, "ack_loss_pct": ack_loss, "rate_mbps": rate if has_rate else None,
        "buffer_bytes": buffer if has_rate and queue == "tbf" else None, "queue": queue if has_rate else None, "changes": [],
    }  # fmt: skip
    if kind == "change":
        at, what = round(seconds * r.uniform(0.35, 0.65), 3), r.choice(("rate", "rtt", "outage"))
        if what == "rate" and queue == "tbf":
            after = rate * r.choice((0.33, 0.5, 2.0))
            scenario["changes"] = [{"where": "bottleneck", "at": f"{at}s", "set": {"rate": f"{after:.4f}mbit"}}]
            path["changes"] = [{"at_s": at, "kind": "rate", "before": rate, "after": after}]
        elif what == "outage":
            length = round(r.uniform(0.3, 2.0), 3)
            steps = ((at, True), (at + length, False))
            scenario["changes"] = [{"where": "bottleneck", "at": f"{t:.3f}s", "set": {"outage": on}} for t, on in steps]
            path["changes"] = [{"at_s": at, "kind": "outage", "before": None, "after": length}]
        else:
            more = rtt * r.choice((0.3, 0.5, 1.0))
            scenario["changes"] = [{"where": "forward", "hop": 1, "at": f"{at}s", "set": {"delay": f"{behind + more:.6f}ms"}}]
            path["changes"] = [{"at_s": at, "kind": "rtt", "before": rtt, "after": rtt + more}]
    timestamps = r.random() < 0.75
    place = r.choices(PLACES, (45, 25, 30))[0]
    cut = r.choices(("no", "begin", "end", "snap"), (75, 12, 5, 8))[0]
    begin, end = r.uniform(0.1, 0.3) * seconds, r.uniform(0.6, 0.9) * seconds
    shown = {"place": place, "cut": cut, "from_s": begin if cut == "begin" else 0.0, "to_s": end if cut == "end" else None}
    return Case(scenario, path, kind, shown, timestamps, {} if timestamps else {"net.ipv4.tcp_timestamps": "0"})


def cut(source: Path, target: Path, shown: dict[str, Any]) -> None:
    """Copies a capture as the case shows it: without its beginning or its end, or of each packet only the first 66 bytes."""
    raw = source.read_bytes()
    parts, at = [raw[:24]], 24
    while at + 16 <= len(raw):
        s, ns, kept, length = struct.unpack_from("<IIII", raw, at)
        t, end = s + ns / 1e9, at + 16 + kept
        if t >= shown["from_s"] and (shown["to_s"] is None or t <= shown["to_s"]):
            least = min(kept, 66) if shown["cut"] == "snap" else kept
            parts += [struct.pack("<IIII", s, ns, least, length), raw[at + 16 : at + 16 + least]]
        at = end
    target.write_bytes(b"".join(parts))


def record(case: Case, seed: int, engine: Virtual, out: Path) -> None:
    """Runs a case and keeps its captures and its truth; what is there already is left alone."""
    if (out / "truth.json").exists():
        return
    out.mkdir(parents=True, exist_ok=True)
    scenario = Scenario.model_validate(case.scenario)
    trial = engine.record(scenario, seed, {p: out / f"{p}.pcap" for p in PLACES}, capture=Capture(samples_ns=SAMPLES), sysctls=case.sysctls)
    assert trial.samples is not None
    trial.samples.write_parquet(out / "info.parquet")
    cut(out / f"{case.shown['place']}.pcap", out / "shown.pcap", case.shown)
    truth = {
        "scenario": case.scenario, "seed": seed, "kind": case.kind, "path": case.path, "shown": case.shown, "timestamps": case.timestamps,
        "cca": [f.cca for f in trial.flows], "flows": [asdict(f) for f in trial.flows], "queues": list(trial.queues), "counters": dict(trial.counters),
        "version": trial.version, "caveats": list(trial.caveats),
    }  # fmt: skip
    (out / "truth.json").write_text(json.dumps(truth, indent=1, default=str), "utf-8")


def main() -> None:
    """Draws and records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", type=int, default=210)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--draw", default="dev", help="name of the set, which is its seed")
    arguments = parser.parse_args()
    engine = engines.make("virtual")
    assert isinstance(engine, Virtual)
    for i in range(arguments.first, arguments.first + arguments.cases):
        case = draw(i, arguments.draw)
        try:
            record(case, i, engine, arguments.out / f"{i:03d}")
        except Exception as e:
            print(f"{i:03d}: {e}", flush=True)
        else:
            print(f"{i:03d} {case.kind} {case.scenario['flows'][0]['cca']}", flush=True)


if __name__ == "__main__":
    main()
