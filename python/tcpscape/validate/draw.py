"""Random conditions, the same number from every family and congestion control.

The numbers are drawn as in the reference set (tests/data/reference): RTT log-uniform in 8–250 ms; jitter 2–35 % of the RTT, normal or
uniform, on one or both directions; loss log-uniform in 0.025–4 %; a bottleneck log-uniform in 2–80 Mbit/s with a buffer of 0.25–4
bandwidth-delay products; receive buffers, numbers of flows and application rates from short lists.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from tcpscape.errors import refuse
from tcpscape.scenario.path import TBF_BURST
from tcpscape.validate.conditions import BOTH, COLUMNS, FAMILIES, JITTER, LINK, LOSS, MIXED, Condition, of_row

CCAS = ("cubic", "bbr", "reno")
"""Congestion controls drawn when none is asked for."""
MOST = 100_000
"""Most conditions of one draw."""
RTT_MS = (8.0, 250.0)
JITTER_OF_RTT = (0.02, 0.35)
LOSS_PCT = (0.025, 4.0)
RATE_MBIT = (2.0, 80.0)
BUFFER_BDP = (0.25, 4.0)
LEAST_BUFFER = TBF_BURST * 3 // 2
"""Bytes: six full frames, 9084."""


@dataclass(frozen=True)
class Draw:
    """What to draw: how many, from which seed, under which congestion controls, how long each."""

    n: int
    seed: int = 0
    ccas: Sequence[str] = CCAS
    seconds: tuple[float, float] = (10.0, 10.0)
    """Duration of a condition, s: uniform between these, in whole seconds."""
    prefix: str = "r"
    """Of the ids."""

    def rows(self) -> list[dict[str, str]]:
        """The conditions as CSV rows. The first n of a longer draw are those of a shorter one."""
        if not 1 <= self.n <= MOST:
            refuse("random", f"{self.n} conditions", f"write 1 to {MOST}")
        return [self._row(i) for i in range(self.n)]

    def conditions(self) -> list[Condition]:
        """The conditions."""
        return [of_row(row) for row in self.rows()]

    def _row(self, i: int) -> dict[str, str]:
        """Condition `i`: its own stream of random numbers, so that nothing moves when others are added."""
        rng = random.Random(f"{self.seed}|{i}")
        family, turn = FAMILIES[i % len(FAMILIES)], i // len(FAMILIES)
        cca = self.ccas[turn % len(self.ccas)]
        has = _impairments(family, turn // len(self.ccas))
        rtt = round(_log_uniform(rng, RTT_MS), 1)
        row = {"id": f"{self.prefix}{i:03d}", "cca": cca, "rtt_ms": f"{rtt:g}", "duration_s": f"{round(rng.uniform(*self.seconds)):g}"}
        row |= _jitter(rng, rtt) if "jitter" in has else {}
        row |= {"loss_pct": f"{round(_log_uniform(rng, LOSS_PCT), 3):g}"} if "loss" in has else {}
        row |= _link(rng, rtt) if family in (LINK, MIXED) else _no_link(rng)
        return {k: row.get(k, "") for k in COLUMNS}


def _impairments(family: str, turn: int) -> str:
    """The impairments of a family; the last one takes its three combinations in turn."""
    if family == MIXED:
        return ("loss", "jitter", "loss and jitter")[turn % 3]
    return family if family in (LOSS, JITTER, BOTH) else ""


def _log_uniform(rng: random.Random, between: tuple[float, float]) -> float:
    return math.exp(rng.uniform(math.log(between[0]), math.log(between[1])))


def _jitter(rng: random.Random, rtt_ms: float) -> dict[str, str]:
    return {
        "jitter_ms": f"{max(0.01, round(rtt_ms * rng.uniform(*JITTER_OF_RTT), 2)):g}",
        "distribution": rng.choice(["normal"] * 3 + ["uniform"] * 2),
        "jitter_on": rng.choice(["both", "forward"]),
    }


def _link(rng: random.Random, rtt_ms: float) -> dict[str, str]:
    rate = round(_log_uniform(rng, RATE_MBIT), 2)
    buffer = max(LEAST_BUFFER, int(rate * rtt_ms * 125 * _log_uniform(rng, BUFFER_BDP)))
    return {
        "rate_mbit": f"{rate:g}", "buffer_bytes": str(buffer), "rcvbuf": rng.choice(["0", "262144", "1048576"]),
        "flows": rng.choice(["1", "1", "1", "2", "4"]), "app_MBps": rng.choice(["0", "0", "0", "0", "1"]),
    }


def _no_link(rng: random.Random) -> dict[str, str]:
    return {"rcvbuf": rng.choice(["131072", "262144", "262144", "524288"]), "flows": "1", "app_MBps": rng.choice(["0", "5", "10"])}
