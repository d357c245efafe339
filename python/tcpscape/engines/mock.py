"""A mock engine: closed forms plus noise, computed in microseconds, for tests of everything around an engine.

Its closed forms are the application's rate, window / RTT, the bottleneck's rate, Mathis under loss (a gentler law for bbr), and a cliff at
a fixed jitter / RTT wherever jitter may reorder. Its numbers mean nothing; every trial says so in its caveats.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence

from tcpscape import units
from tcpscape.controls.spelling import Param, name_of
from tcpscape.engines import plan
from tcpscape.engines.base import Capture, Engine
from tcpscape.scenario.flows import Flow
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Cwnd, FlowResult, Rtt, Trial

MSS = 1448
CONTROLS = {"reno": (), "cubic": (Param("hystart", "Whether slow start ends at rising delays", 1, 0, 1),), "bbr": ()}
"""Congestion controls and their parameters, which change nothing but the noise."""
CLIFF = {"bbr": 0.12}
"""Jitter / RTT at which goodput halves, fraction; 0.2 for the others."""
QUEUES = {"netem", "jitter", "tbf", "htb", "bfifo", "pfifo", "pfifo_head_drop", "red", "codel", "fq_codel", "pie", "fq_pie"}
QUEUES |= {"cake", "dualpi2", "fq", "sfq"}
NUMBERS = {"limit", "burst", "gap", "distribution", "order", "tau", "handle", "parent", "minburst", "mtu", "mpu", "overhead", "default"}
NUMBERS |= {"min", "max", "avpkt", "bandwidth", "probability"}
OTHERS = {"latency", "peakrate", "duplicate", "corrupt", "reorder", "slot", "ecn", "random", "gemodel", "state", "root", "noecn"}


def parse_words(words: str) -> str:
    """JSON of the few words the mock understands; ValueError names the first one it does not."""
    seen: dict[str, float | str] = {}
    for part in words.split(";"):
        _parse_part(part.split(), seen)
    return json.dumps(seen)


def _parse_part(said: list[str], seen: dict[str, float | str]) -> None:
    if not said or said[0] not in QUEUES:
        raise ValueError(f"unknown queue {said[0] if said else ''!r}; choose {', '.join(sorted(QUEUES))}")
    seen["queue"] = said.pop(0)
    while said:
        word = said.pop(0)
        if word == "delay":
            seen[word] = units.parse_time(_next(said, word), word)
            if said and said[0][0].isdigit():
                seen["jitter"] = units.parse_time(said.pop(0), "jitter")
                if said and said[0].endswith("%"):
                    said.pop(0)
        elif word == "loss":
            seen["loss"] = units.parse_percent(_next(said, word), word)
        elif word == "rate":
            seen["rate"] = units.parse_rate(_next(said, word), word)
        elif word in NUMBERS:
            seen[word] = _next(said, word)
        elif word in OTHERS:
            while said and said[0][0].isdigit():
                said.pop(0)
        else:
            raise ValueError(f"unknown word {word!r}")


def _next(said: list[str], word: str) -> str:
    if not said:
        raise ValueError(f"{word!r} needs a value")
    return said.pop(0)


class Mock(Engine):
    """Closed forms plus noise."""

    name = "mock"
    about = "closed forms plus noise, for tests of everything around an engine"
    version = "mock-1"

    def check(self, scenario: Scenario) -> None:
        self.refuse_python_controls(scenario)
        plan.build(scenario, parse_words, CONTROLS)

    def run(self, scenario: Scenario, seeds: Sequence[int], *, threads: int = 1, capture: Capture = Capture()) -> list[Trial]:
        self.check(scenario)
        return [self._trial(scenario, seed, capture) for seed in seeds]

    def _trial(self, scenario: Scenario, seed: int, capture: Capture) -> Trial:
        fields = plan.build(scenario, parse_words, CONTROLS)
        path = _Path([s["qdisc"] for s in fields["forward"]["stages"]], [s["qdisc"] for s in fields["reverse"]["stages"]])
        rng = random.Random(f"{seed}|{scenario.address()}")
        flows = [f for flow in scenario.flows for f in [_flow(flow, scenario, path, rng) for _ in range(flow.count)]]
        samples = None
        if capture.samples_ns:
            import polars as pl

            n = min(1000, scenario.duration // capture.samples_ns)
            samples = pl.DataFrame({"t_ns": [i * capture.samples_ns for i in range(n)], "flow": [0] * n, "cwnd": [10.0] * n, "srtt_us": [50e3] * n})
        return Trial(
            scenario=scenario.name, cca=scenario.cca, address=self.address(scenario, seed), seed=seed, engine=self.name, version=self.version,
            duration=scenario.duration / 1e9, flows=tuple(flows), caveats=("mock engine: the numbers mean nothing",),
            hash=self.address(scenario, seed), events=0, samples=samples,
        )


class _Path:
    """Totals of a path, for the closed forms."""

    def __init__(self, forward: list[dict[str, float]], reverse: list[dict[str, float]]) -> None:
        both = forward + reverse
        self.rtt_s = max(1e-4, sum(q.get("delay", 0) for q in both) / 1e9)
        self.jitter_s = max((q.get("jitter", 0) for q in forward), default=0) / 1e9
        self.reorders = all(q.get("order", "reorder") == "reorder" for q in forward)
        self.floored = any(q.get("delay", 0) and not q.get("jitter", 0) for q in forward) and self.jitter_s > 0
        self.loss = 1 - math.prod(1 - q.get("loss", 0) for q in forward)
        self.rate = min((q["rate"] for q in forward if "rate" in q), default=math.inf)


def _flow(flow: Flow, scenario: Scenario, path: _Path, rng: random.Random) -> FlowResult:
    seconds = ((flow.stop or scenario.duration) - flow.start) / 1e9
    window = 2 * min(flow.rcvbuf or 6 << 20, 4 << 20) * 0.6
    limits = {"app": flow.app.rate * 8.0 or math.inf, "rwnd": window * 8 / path.rtt_s, "cwnd": path.rate / scenario.flow_count}
    if path.loss:
        power, scale = (0.1, 0.6) if name_of(flow.cca) == "bbr" else (0.5, 1.22)
        limits["cwnd"] = min(limits["cwnd"], scale * MSS * 8 / path.rtt_s / path.loss**power * (60 if name_of(flow.cca) == "bbr" else 1))
    name = min(limits, key=lambda k: limits[k])
    ratio = path.jitter_s / path.rtt_s / CLIFF.get(name_of(flow.cca), 0.2) * (0.5 if path.floored else 1)
    keep = 1 / (1 + ratio**6) if path.reorders else 1 / (1 + 0.1 * ratio)
    spread = 0.02 + 0.5 * math.exp(-((math.log(max(ratio, 1e-9)) / 0.25) ** 2)) * (0.3 if name_of(flow.cca) == "bbr" else 1) * path.reorders
    rate = 0.0 if path.loss >= 1 else min(1e12, limits[name]) * keep * min(1.0, rng.lognormvariate(0, spread))
    rtt = path.rtt_s * 1e3
    segments = int(rate * seconds / 8 / MSS)
    lost = int(segments * path.loss)
    return FlowResult(
        cca=flow.cca, goodput_mbps=rate / 1e6, seconds=seconds, retransmits=lost, spurious_retransmits=0,
        rtt_ms=Rtt(rtt, rtt, rtt * 1.1, rtt * 1.2, rtt * 1.5, rtt), cwnd=Cwnd(rate * path.rtt_s / 8 / MSS, rate * path.rtt_s / 8 / MSS),
        limited_by={name: 1.0}, start_s=flow.start / 1e9, stop_s=flow.start / 1e9 + seconds, established=path.loss < 1,
        bytes_received=int(rate * seconds / 8), min_rtt_ms=rtt,
    )
