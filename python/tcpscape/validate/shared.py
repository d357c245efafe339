"""Bottlenecks that two groups of flows share: rows of a CSV as scenarios, and random ones.

Rows have the columns :data:`COLUMNS`, as the reference set (tests/data/reference/shared_conditions.csv). What is drawn looks like that set:
RTT log-uniform in 8–150 ms, a bottleneck log-uniform in 4–60 Mbit/s with a buffer of 0.5–4 bandwidth-delay products (at least twelve full
frames) in tbf, one or two flows a group, loss on the data in one condition of four, the second group from the begin or from 5 s on. Queues
take turns, those with a mark to give with and without ECN. Packet limits are the buffer in full frames; RED's thresholds are a sixth and a
half of the buffer, its limit twice the buffer, its burst as tc's page advises: (2·min + max)/(3·avpkt).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcpscape.controls.spelling import LINUX
from tcpscape.errors import refuse
from tcpscape.scenario.path import TBF_BURST

COLUMNS = (
    "id", "first", "second", "n_first", "n_second", "rtt_ms", "rate_mbit", "buffer_bytes", "queue", "ecn", "loss_pct", "second_at_s", "duration_s",
    "bottleneck",
)
"""Columns of a CSV of shared bottlenecks: `bottleneck` is in tc's words; there may be two more, `listener` and `kernel`."""
CCAS = LINUX
"""Congestion controls drawn when none is asked for."""
RIVALS = ("bbr", "cubic")
"""Two of three second groups use one of these."""
QUEUES = ("bfifo", "pfifo", "red", "codel", "fq_codel", "pie", "fq_pie")
FIFOS = ("bfifo", "pfifo")
MOST = 100_000
"""Most conditions of one draw."""
RTT_MS, RATE_MBIT, BUFFER_BDP, LOSS_PCT = (8.0, 150.0), (4.0, 60.0), (0.5, 4.0), (0.02, 1.0)
DURATION_S, LATE_S = 20, 5
FRAME = 1514
"""Bytes of a full Ethernet frame, as queues count them."""
LEAST_FRAMES, LEAST_MAX_FRAMES = 12, 9
"""Frames of the smallest buffer, and of RED's smallest upper threshold."""


def scenario(row: Mapping[str, str]) -> dict[str, Any]:
    """A row's scenario, as plain values."""
    delay, loss, late = float(row["rtt_ms"]) / 2, float(row.get("loss_pct") or 0), float(row.get("second_at_s") or 0)
    lost = f" loss {loss:g}%" if loss else ""
    listener = {"listener": row["listener"]} if row.get("listener") else {}
    first = {"cca": row["first"], "count": int(row.get("n_first") or 1), **listener}
    second = {"cca": row["second"], "count": int(row.get("n_second") or 1), **({"start": f"{late:g}s"} if late else {}), **listener}
    return {
        "name": row["id"], "about": about(row), "duration": f"{float(row.get('duration_s') or DURATION_S):g}s",
        "forward": f"netem delay {delay:g}ms{lost} limit 100000", "bottleneck": row["bottleneck"], "reverse": f"netem delay {delay:g}ms limit 100000",
        "flows": [first, second], "ecn": row.get("ecn") == "1",
    } | ({"kernel": row["kernel"]} if row.get("kernel") else {})  # fmt: skip


def about(row: Mapping[str, str]) -> str:
    """One short line: who against whom, and on what."""
    rtt, rate, buffer = float(row["rtt_ms"]), float(row["rate_mbit"]), int(row["buffer_bytes"])
    who = [row[side] + ("" if (n := row.get(f"n_{side}") or "1") == "1" else f"×{n}") for side in ("first", "second")]
    late = f" from {row['second_at_s']} s" if float(row.get("second_at_s") or 0) else ""
    parts = [f"{who[0]} and {who[1]}{late}", f"{rtt:g} ms", f"{rate:g} Mbit/s, {buffer / (rate * rtt * 125):.2f} BDP"]
    parts.append(row["queue"] + " ecn" * (row.get("ecn") == "1"))
    return ", ".join(parts + ([f"loss {float(row['loss_pct']):g} %"] if float(row.get("loss_pct") or 0) else []))


@dataclass(frozen=True)
class Draw:
    """What to draw: how many, from which seed, under which congestion controls."""

    n: int
    seed: int = 0
    ccas: Sequence[str] = CCAS
    prefix: str = "s"
    """Of the ids."""

    def rows(self) -> list[dict[str, str]]:
        """The conditions as CSV rows. The first n of a longer draw are those of a shorter one."""
        if not 1 <= self.n <= MOST:
            refuse("shared", f"{self.n} conditions", f"write 1 to {MOST}")
        return [self._row(i) for i in range(self.n)]

    def _row(self, i: int) -> dict[str, str]:
        """Condition `i`: its own stream of random numbers, so that nothing moves when others are added."""
        rng = random.Random(f"shared|{self.seed}|{i}")
        queue, turn = QUEUES[i % len(QUEUES)], i // len(QUEUES)
        ecn = queue not in FIFOS and (turn + QUEUES.index(queue)) % 2 == 0
        rtt, rate = round(_log_uniform(rng, RTT_MS), 1), round(_log_uniform(rng, RATE_MBIT), 2)
        buffer = max(LEAST_FRAMES * FRAME, int(rate * rtt * 125 * _log_uniform(rng, BUFFER_BDP)))
        first = self.ccas[i % len(self.ccas)]
        rivals = [c for c in RIVALS if c in self.ccas] if rng.random() < 2 / 3 else []
        n_first, n_second = rng.choice([(1, 1), (1, 1), (1, 2), (2, 1), (2, 2)])
        values = (
            f"{self.prefix}{i:03d}", first, rng.choice(rivals or self.ccas), n_first, n_second, f"{rtt:g}", f"{rate:g}", buffer, queue, int(ecn),
            f"{round(_log_uniform(rng, LOSS_PCT), 3):g}" if rng.random() < 1 / 4 else "0", rng.choice([0, LATE_S]), DURATION_S,
            bottleneck(queue, rate, buffer, ecn=ecn),
        )  # fmt: skip
        return dict(zip(COLUMNS, map(str, values), strict=True))


def _log_uniform(rng: random.Random, between: tuple[float, float]) -> float:
    return math.exp(rng.uniform(math.log(between[0]), math.log(between[1])))


def bottleneck(queue: str, rate_mbit: float, buffer: int, *, ecn: bool) -> str:
    """tbf with this queue in it, in tc's words."""
    return f"tbf rate {rate_mbit:g}mbit burst {TBF_BURST} limit {buffer}; {_words(queue, rate_mbit, buffer, ecn)}"


def _words(queue: str, rate_mbit: float, buffer: int, ecn: bool) -> str:
    mark = " ecn" * ecn
    if queue == "bfifo":
        return f"bfifo limit {buffer}"
    if queue == "red":
        high = max(buffer // 2, LEAST_MAX_FRAMES * FRAME)
        low, avpkt = high // 3, 1500
        burst = (2 * low + high) // (3 * avpkt) + 1
        return f"red limit {4 * high} min {low} max {high} avpkt {avpkt} burst {burst} bandwidth {rate_mbit:g}mbit probability 0.1{mark}"
    if queue == "fq_codel" and not ecn:
        mark = " noecn"  # its default is ecn
    return f"{queue} limit {buffer // FRAME}{mark}"
