"""Random conditions: paths, the same number from every family and congestion control; and bottlenecks that two groups of flows share.

The numbers of a path are drawn as in the reference set (tests/data/reference): RTT log-uniform in 8–250 ms; jitter 2–35 % of the RTT, normal or
uniform, on one or both directions; loss log-uniform in 0.025–4 %; a bottleneck log-uniform in 2–80 Mbit/s with a buffer of 0.25–4
bandwidth-delay products; receive buffers, numbers of flows and application rates from short lists.

Shared bottlenecks are drawn as in their reference set (shared_conditions.csv there): RTT log-uniform in 8–150 ms, a bottleneck log-uniform in
4–60 Mbit/s with a buffer of 0.5–4 bandwidth-delay products (at least twelve full frames) in tbf, one or two flows a group, loss on the data in
one condition of four, the second group from the start or from 5 s on. Queues take turns, those that can mark with and without ECN. Packet limits
are the buffer in full frames; RED's thresholds are a sixth and a half of the buffer, its limit twice the buffer, its burst as tc's page advises:
(2·min + max)/(3·avpkt).
"""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tcpscape.controls.spelling import LINUX
from tcpscape.errors import refuse
from tcpscape.scenario.path import TBF_BURST
from tcpscape.scenario.scenario import Scenario
from tcpscape.validate.conditions import BOTH, COLUMNS, FAMILIES, JITTER, LINK, LOSS, MIXED, SHARED_COLUMNS, SHARED_DURATION_S, NamedScenario, of_row

CCAS, SHARED_CCAS = ("cubic", "bbr", "reno"), LINUX
"""Congestion controls drawn where none are given: for paths, and for shared bottlenecks."""
MOST = 100_000
"""Most conditions of one draw."""
RTT_MS = (8.0, 250.0)
JITTER_OF_RTT = (0.02, 0.35)
LOSS_PCT = (0.025, 4.0)
RATE_MBIT = (2.0, 80.0)
BUFFER_BDP = (0.25, 4.0)
LEAST_BUFFER = TBF_BURST * 3 // 2
"""Bytes: six full frames, 9084."""

RIVALS = ("bbr", "cubic")
"""Two of three second groups use one of these."""
QUEUES = ("bfifo", "pfifo", "red", "codel", "fq_codel", "pie", "fq_pie")
FIFOS = ("bfifo", "pfifo")
EXACT_QUEUES = ("bfifo", "pfifo", "bfifo", "codel", "fq_codel", "fq_codel", "", "")
"""Queues that draw nothing at random."""
IMPAIRED = ("loss", "jitter", "jitter in order", "duplicates", "reordering", "loss in bursts", "loss and jitter", "jitter of ACKs")
"""What impairs paths that are compared segment by segment."""
IMPAIRED_LOSS_PCT, DUPLICATES_PCT, REORDERED_PCT = (0.01, 2.0), (0.05, 2.0), (0.2, 5.0)
IMPAIRED_JITTER_OF_RTT = (0.005, 0.1)
ORDERING_RATE = "1gbit"
"""A rate of netem's own, which keeps order."""
SHARED_RTT_MS, SHARED_RATE_MBIT, SHARED_BUFFER_BDP, SHARED_LOSS_PCT = (8.0, 150.0), (4.0, 60.0), (0.5, 4.0), (0.02, 1.0)
SECONDS = (10.0, 10.0)
"""Duration of a path's condition, s: uniform between these, in whole seconds."""
LATE_S = 5
"""Start of a second group that starts later, s."""
FRAME = 1514
"""Bytes of a full Ethernet frame, as queues count them."""
LEAST_FRAMES, LEAST_MAX_FRAMES = 12, 9
"""Frames of the smallest buffer, and of RED's smallest upper threshold."""


@dataclass(frozen=True)
class _Draw(ABC):
    """How many conditions are drawn, from which seed, under which congestion controls."""

    option: ClassVar[str]
    n: int
    seed: int = 0
    ccas: Sequence[str] = CCAS

    def rows(self) -> list[dict[str, str]]:
        """The conditions as CSV rows. The first n of a longer draw are those of a shorter one."""
        if not 1 <= self.n <= MOST:
            refuse(self.option, f"{self.n} conditions", f"write 1 to {MOST}")
        return [self._row(i) for i in range(self.n)]

    def conditions(self) -> list[NamedScenario]:
        """The conditions."""
        return [of_row(row) for row in self.rows()]

    @abstractmethod
    def _row(self, i: int) -> dict[str, str]:
        """Condition `i`: its own stream of random numbers, so that nothing moves when others are added."""


class PathDraw(_Draw):
    """A draw of paths."""

    option = "random"

    def _row(self, i: int) -> dict[str, str]:
        rng = random.Random(f"{self.seed}|{i}")
        family, turn = FAMILIES[i % len(FAMILIES)], i // len(FAMILIES)
        cca = self.ccas[turn % len(self.ccas)]
        has = _impairments(family, turn // len(self.ccas))
        rtt = round(log_uniform(rng, RTT_MS), 1)
        row = {"id": f"r{i:03d}", "cca": cca, "rtt_ms": f"{rtt:g}", "duration_s": f"{round(rng.uniform(*SECONDS)):g}"}
        row |= _jitter(rng, rtt) if "jitter" in has else {}
        row |= {"loss_pct": f"{round(log_uniform(rng, LOSS_PCT), 3):g}"} if "loss" in has else {}
        row |= _link(rng, rtt) if family in (LINK, MIXED) else _no_link(rng)
        return {k: row.get(k, "") for k in COLUMNS}


@dataclass(frozen=True)
class SharedDraw(_Draw):
    """A draw of bottlenecks that two groups of flows share."""

    option = "shared"
    ccas: Sequence[str] = SHARED_CCAS

    def _row(self, i: int) -> dict[str, str]:
        rng = random.Random(f"shared|{self.seed}|{i}")
        queue, turn = QUEUES[i % len(QUEUES)], i // len(QUEUES)
        ecn = queue not in FIFOS and (turn + QUEUES.index(queue)) % 2 == 0
        rtt, rate = round(log_uniform(rng, SHARED_RTT_MS), 1), round(log_uniform(rng, SHARED_RATE_MBIT), 2)
        buffer = max(LEAST_FRAMES * FRAME, int(rate * rtt * 125 * log_uniform(rng, SHARED_BUFFER_BDP)))
        first = self.ccas[i % len(self.ccas)]
        rivals = [c for c in RIVALS if c in self.ccas] if rng.random() < 2 / 3 else []
        n_first, n_second = rng.choice([(1, 1), (1, 1), (1, 2), (2, 1), (2, 2)])
        values = (
            f"s{i:03d}",
            first,
            rng.choice(rivals or self.ccas),
            n_first,
            n_second,
            f"{rtt:g}",
            f"{rate:g}",
            buffer,
            queue,
            int(ecn),
            f"{round(log_uniform(rng, SHARED_LOSS_PCT), 3):g}" if rng.random() < 1 / 4 else "0",
            rng.choice([0, LATE_S]),
            SHARED_DURATION_S,
            shared_bottleneck(queue, rate, buffer, ecn=ecn),
        )
        return dict(zip(SHARED_COLUMNS, map(str, values), strict=True))


class ExactDraw(_Draw):
    """A draw of paths on which nothing is drawn while a trial runs.

    Delays are those of routers, so that the sender's device has no queue. Three in four have a bottleneck: a FIFO, CoDel or FQ-CoDel, these
    with and without ECN. Windows and applications are as of other paths.
    """

    option = "n"

    def conditions(self) -> list[NamedScenario]:
        """The conditions; without a bottleneck the window or the application is the limit."""
        return [_deterministic(row) for row in self.rows()]

    def _row(self, i: int) -> dict[str, str]:
        rng = random.Random(f"exact|{self.seed}|{i}")
        rtt, queue = round(log_uniform(rng, RTT_MS), 1), rng.choice(EXACT_QUEUES)
        tick = f"{rng.randrange(10_000)}us"
        row = {"id": f"e{i:03d}", "tick_phase": tick, "cca": self.ccas[i % len(self.ccas)], "rtt_ms": f"{rtt:g}", "queue": queue}
        ecn = queue not in ("", *FIFOS) and rng.random() < 0.5
        return row | (_link(rng, rtt) if queue else _no_link(rng)) | {"flows": "1", "ecn": str(int(ecn))}


def _deterministic(row: dict[str, str]) -> NamedScenario:
    """A row's condition, with the delay at routers."""
    of_path, ecn, delay = of_row(row), row["ecn"] == "1", f"{float(row['rtt_ms']) / 2:g}ms"
    link = shared_bottleneck(row["queue"], float(row["rate_mbit"]), int(row["buffer_bytes"]), ecn=ecn) if row["queue"] else ""
    about = of_path.scenario.about + f", {row['queue']}" * bool(link) + " ecn" * ecn
    host = {"ecn": ecn, "tick_phase": row["tick_phase"]}
    update = host | {"forward": [{"at": "router", "delay": delay}], "bottleneck": [link] if link else [], "about": about}
    return NamedScenario(row["id"], Scenario.of({**of_path.scenario.to_dict(), **update}, row["id"]))


class ImpairedDraw(ExactDraw):
    """The paths of :class:`ExactDraw`, each with random impairments at the first router: those of :data:`IMPAIRED` in turn.

    Shares are log-uniform: 0.01–2 % lost, 0.05–2 % twice, 0.2–5 % past the delayed ones; jitter 0.5–10 % of the RTT, normal or uniform.
    """

    def conditions(self) -> list[NamedScenario]:
        """The conditions, whose hosts take no time: that is a delay behind netem."""
        return [self._impaired(i, c) for i, c in enumerate(super().conditions())]

    def _impaired(self, i: int, c: NamedScenario) -> NamedScenario:
        rng, kind = random.Random(f"impaired|{self.seed}|{i}"), IMPAIRED[i // len(self.ccas) % len(IMPAIRED)]
        fields = c.scenario.to_dict()
        delay = fields["forward"][0]["delay"]
        jitter = f"{log_uniform(rng, IMPAIRED_JITTER_OF_RTT) * c.scenario.rtt_ns / 1e6:.3f}ms"
        spread: dict[str, Any] = {"jitter": jitter, "distribution": rng.choice(["normal", "uniform"])}
        lost = {"loss": _percent(rng, IMPAIRED_LOSS_PCT)}
        kinds: dict[str, dict[str, Any]] = {
            "loss": lost,
            "jitter": spread,
            "jitter in order": {**spread, "rate": ORDERING_RATE},
            "duplicates": {"duplicate": _percent(rng, DUPLICATES_PCT)},
            "reordering": {"reorder": _percent(rng, REORDERED_PCT), "gap": rng.choice([1, 5])},
            "loss in bursts": {**lost, "loss_burst": rng.choice([2, 3, 5])},
            "loss and jitter": {**spread, **lost},
            "jitter of ACKs": {},
        }
        back = spread if kind == "jitter of ACKs" else {}
        update: dict[str, Any] = {
            "forward": [{"at": "router", "delay": delay, **kinds[kind]}],
            "reverse": ["pfifo limit 100000", {"delay": delay, **back}],
            "about": f"{c.scenario.about}, {kind}",
        }
        id = f"i{i:03d}"
        return NamedScenario(id, Scenario.of({**fields, **update, "name": id, "kernel": {"host_time": "0s"}}, id))


def _percent(rng: random.Random, between: tuple[float, float]) -> str:
    return f"{log_uniform(rng, between):.3g}%"


def _impairments(family: str, turn: int) -> str:
    """The impairments of a family; the last one takes its three combinations in turn."""
    if family == MIXED:
        return ("loss", "jitter", "loss and jitter")[turn % 3]
    return family if family in (LOSS, JITTER, BOTH) else ""


def log_uniform(rng: random.Random, between: tuple[float, float]) -> float:
    """A number between two, each factor as probable as any other."""
    return math.exp(rng.uniform(math.log(between[0]), math.log(between[1])))


def _jitter(rng: random.Random, rtt_ms: float) -> dict[str, str]:
    return {
        "jitter_ms": f"{max(0.01, round(rtt_ms * rng.uniform(*JITTER_OF_RTT), 2)):g}",
        "distribution": rng.choice(["normal"] * 3 + ["uniform"] * 2),
        "jitter_on": rng.choice(["both", "forward"]),
    }


def _link(rng: random.Random, rtt_ms: float) -> dict[str, str]:
    rate = round(log_uniform(rng, RATE_MBIT), 2)
    buffer = max(LEAST_BUFFER, int(rate * rtt_ms * 125 * log_uniform(rng, BUFFER_BDP)))
    return {
        "rate_mbit": f"{rate:g}",
        "buffer_bytes": str(buffer),
        "rcvbuf": rng.choice(["0", "262144", "1048576"]),
        "flows": rng.choice(["1", "1", "1", "2", "4"]),
        "app_MBps": rng.choice(["0", "0", "0", "0", "1"]),
    }


def _no_link(rng: random.Random) -> dict[str, str]:
    return {"rcvbuf": rng.choice(["131072", "262144", "262144", "524288"]), "flows": "1", "app_MBps": rng.choice(["0", "5", "10"])}


def shared_bottleneck(queue: str, rate_mbit: float, buffer: int, *, ecn: bool) -> str:
    """tbf with this queue in it, in tc's words."""
    return f"tbf rate {rate_mbit:g}mbit burst {TBF_BURST} limit {buffer}; {_queue_words(queue, rate_mbit, buffer, ecn)}"


def _queue_words(queue: str, rate_mbit: float, buffer: int, ecn: bool) -> str:
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
