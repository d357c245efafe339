"""A mock engine: closed forms plus noise, computed in microseconds, for tests of everything around an engine.

Its closed forms are the application's rate, window / RTT, the bottleneck's rate, Mathis under loss (a gentler law for bbr), and a cliff at
a fixed jitter / RTT wherever jitter may reorder. Its numbers mean nothing; every trial says so in its caveats.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from tcpscape.controls.spelling import Param, name_of
from tcpscape.engines import plan
from tcpscape.engines.base import Engine, trial
from tcpscape.engines.model import core, needed
from tcpscape.scenario.flows import Flow, Player
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture, Cwnd, FlowResult, PlayerResult, Rtt, Trial

MSS = 1448
CONTROLS = {"reno": (), "cubic": (Param("hystart", "Whether slow start ends at rising delays", 1, 0, 1),), "bbr": ()}
"""Congestion controls and their parameters, which change nothing but the noise."""
CLIFF = {"bbr": 0.12}
"""Jitter / RTT at which goodput halves, fraction; 0.2 for the others."""


class Mock(Engine):
    """Closed forms plus noise."""

    name = "mock"
    about = "closed forms plus noise, for tests of everything around an engine"
    version = "mock-1"

    def unavailable(self) -> str | None:
        return None if core() else "it reads tc's words by the extension module tcpscape._core, which is not built; run `make setup`"

    def check(self, scenario: Scenario) -> None:
        self.refuse_python_controls(scenario)
        self.refuse_programs(scenario)
        scenario.expect_plain("and the mock's closed forms know one link with long flows", "use --engine model, or leave them out")
        plan.build_checked(needed(self), scenario, CONTROLS)

    def run(self, scenario: Scenario, seeds: Sequence[int], *, threads: int = 1, capture: Capture = Capture()) -> list[Trial]:
        self.check(scenario)
        return [self._trial(scenario, seed, capture) for seed in seeds]

    def _trial(self, scenario: Scenario, seed: int, capture: Capture) -> Trial:
        path = _Path(scenario)
        rng = random.Random(f"{seed}|{scenario.address()}")
        flows = [f for flow in scenario.flows for f in [_flow(flow, scenario, path, rng) for _ in range(flow.count)]]
        samples = None
        if capture.samples_ns:
            import polars as pl

            n = min(1000, scenario.duration // capture.samples_ns)
            samples = pl.DataFrame({"t_ns": [i * capture.samples_ns for i in range(n)], "flow": [0] * n, "cwnd": [10.0] * n, "srtt_us": [50e3] * n})
        address, caveats = self.address(scenario, seed), ("mock engine: the numbers mean nothing",)
        own = {"flows": tuple(flows), "caveats": caveats, "hash": address, "events": 0, "samples": samples}
        return trial(self, scenario, seed, {"duration_ns": scenario.duration}, {}, capture, address=address, **own)


class _Path:
    """Totals of a path, for the closed forms."""

    def __init__(self, scenario: Scenario) -> None:
        forward, reverse = ([q for queue in scenario.queues(*parts) for q in queue] for parts in (("forward", "bottleneck"), ("reverse",)))
        self.rtt_s = max(1e-4, sum(q.delay_ns for q in forward + reverse) / 1e9)
        self.jitter_s = max((q.jitter_ns for q in forward), default=0) / 1e9
        self.reorders = any(not q.in_order for q in forward)
        self.floored = any(q.delay_ns and not q.jitter_ns for q in forward) and self.jitter_s > 0
        self.loss = 1 - math.prod(1 - q.loss for q in forward)
        self.rate = min((q.rate_bps for q in forward if q.rate_bps), default=math.inf)


def _flow(flow: Flow, scenario: Scenario, path: _Path, rng: random.Random) -> FlowResult:
    seconds = ((flow.stop or scenario.duration) - flow.start) / 1e9
    window = 2 * min(flow.rcvbuf or 6 << 20, 4 << 20) * 0.6
    application = flow.player.ladder[-1] if flow.player else flow.app.rate * 8.0
    limits = {"app": application or math.inf, "rwnd": window * 8 / path.rtt_s, "cwnd": path.rate / scenario.flow_count}
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
        cca=flow.cca,
        goodput_mbps=rate / 1e6,
        seconds=seconds,
        retransmits=lost,
        spurious_retransmits=0,
        rtt_ms=Rtt(rtt, rtt, rtt * 1.1, rtt * 1.2, rtt * 1.5, rtt),
        cwnd=Cwnd(rate * path.rtt_s / 8 / MSS, rate * path.rtt_s / 8 / MSS),
        limited_by={name: 1.0},
        start_s=flow.start / 1e9,
        stop_s=flow.start / 1e9 + seconds,
        established=path.loss < 1,
        bytes_received=int(rate * seconds / 8),
        min_rtt_ms=rtt,
        player=_viewing(flow.player, rate, path.rtt_s, seconds) if flow.player else None,
    )


def _viewing(player: Player, rate: float, rtt_s: float, seconds: float) -> PlayerResult:
    """A player on a steady rate: the highest rung that it carries, and stalls where it carries none."""
    rung = max((r for r in player.ladder if r <= rate), default=player.ladder[0])
    startup = min(seconds, rtt_s + player.ladder[0] * player.segment / 1e9 / max(rate, 1.0))
    played = (seconds - startup) * min(1.0, rate / rung)
    stalled, segments = seconds - startup - played, int(played * 1e9 / player.segment)
    qoe = (rung - player.ladder[-1] * (stalled + startup) / segments) / 1e6 if segments else None
    return PlayerResult(startup, segments > 0, int(stalled > 0), stalled, played, segments, 0, rung / 1e6 if segments else None, qoe)
