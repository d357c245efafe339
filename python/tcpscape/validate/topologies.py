"""Random topologies: chains of one to three links, groups of flows with round-trip times of their own, data both ways, and a ping over the chain.

Shapes take turns: a *dumbbell* (one link that all groups cross), a *parking lot* (one group crosses all links, each other one a single link) and
*cross traffic* (one group crosses all links, the others enter and leave at routers drawn at random). Two to four groups of one or two flows each;
RTTs log-uniform in 5–200 ms, at least what the links add; a third of the groups send up, in every other topology at least one sends each way; a
group of five starts later, one of six stops earlier, one of four has an access link with a rate of its own.

Links have rates log-uniform in 5–100 Mbit/s and one-way delays log-uniform in 0.5–5 ms; one of three is asymmetric, with a half to a tenth of the
rate against the chain. Queues take turns over the links of all topologies, so that each comes equally often and on every shape; buffers are 0.5–4
bandwidth-delay products of the link's rate and the mean RTT, at least twelve full frames. Queues that can mark do so in every other topology.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tcpscape.errors import refuse
from tcpscape.scenario import path
from tcpscape.scenario.path import TBF_BURST
from tcpscape.scenario.scenario import Scenario
from tcpscape.validate import draw
from tcpscape.validate.conditions import NamedScenario

CCAS = draw.CCAS
"""Congestion controls drawn where none are given."""
MOST = 10_000
"""Most topologies of one draw."""
DUMBBELL, PARKING_LOT, CROSS_TRAFFIC = "dumbbell", "parking lot", "cross traffic"
SHAPES = (DUMBBELL, PARKING_LOT, CROSS_TRAFFIC)
QUEUES = ("bfifo", "fq_codel", "codel", "pie", "pfifo", "red", "cake", "fq", "sfq", "bfifo", "fq_pie", "choke", "pfifo_head_drop")
"""Queues of links in their turns; the FIFO in bytes, the most frequent one in networks, comes twice. Their number is prime, so that every queue
comes on every shape and number of links."""
MARKING = ("fq_codel", "codel", "pie", "red", "fq_pie", "choke")
"""Queues that mark where they are told to; `cake` always does."""
RTT_MS, RATE_MBIT, BUFFER_BDP, DELAY_MS, ACCESS_MBIT = (5.0, 200.0), (5.0, 100.0), (0.5, 4.0), (0.5, 5.0), (2.0, 50.0)
SECONDS = (10, 20)
GROUPS = (2, 4)
UP, LATE, EARLY, HAS_ACCESS, ASYMMETRIC = 1 / 3, 1 / 5, 1 / 6, 1 / 4, 1 / 3
"""Shares: of groups that send up, start later, stop earlier, have an access link with a rate; of links with a lower rate against the chain."""
START_S, LATE_S, EARLY_S = 1.0, (2.0, 5.0), (2.0, 4.0)
"""Groups start within this time of the begin, or so late; those that stop do so this long before the end, s."""
LOWER = (0.1, 0.5)
"""Rate against the chain over the rate along it, where they differ."""
PING_MS = 50
"""Time between two pings: 200 to 400 delays in a trial."""


@dataclass(frozen=True)
class TopologyDraw:
    """A draw of topologies: how many, from which seed, under which congestion controls."""

    n: int
    seed: int = 0
    ccas: Sequence[str] = CCAS
    prefix: str = "n"
    """Of the ids."""

    def conditions(self) -> list[NamedScenario]:
        """The topologies. The first n of a longer draw are those of a shorter one."""
        if not 1 <= self.n <= MOST:
            refuse("topology", f"{self.n} topologies", f"write 1 to {MOST}")
        return [self._condition(i) for i in range(self.n)]

    def _condition(self, i: int) -> NamedScenario:
        """Topology `i`: its own stream of random numbers, so that nothing moves when others are added."""
        rng = random.Random(f"topology|{self.seed}|{i}")
        shape = SHAPES[i % len(SHAPES)]
        count = 1 if shape == DUMBBELL else rng.choice((2, 3))
        marks, seconds = i % 2 == 0, rng.randint(*SECONDS)
        delays = [_round(draw.log_uniform(rng, DELAY_MS)) for _ in range(count)]
        groups = [self._group(rng, span, delays, seconds) for span in _spans(rng, shape, count)]
        if i % 2 == 0:
            _both_ways(groups)
        mean_rtt = sum(g.rtt_ms for g in groups) / len(groups)
        links = [_link(rng, k, QUEUES[(3 * i + k) % len(QUEUES)], delay, mean_rtt, marks=marks) for k, delay in enumerate(delays)]
        id = f"{self.prefix}{i:03d}"
        fields = {
            "name": id,
            "about": _about(shape, groups, links, marks=marks),
            "duration": f"{seconds}s",
            "links": [link.fields() for link in links],
            "flows": [g.fields() for g in groups],
            "probes": [{"preset": "ping", "interval": f"{PING_MS}ms"}],
            "ecn": marks,
        }
        return NamedScenario(id, Scenario.of(fields, id))

    def _group(self, rng: random.Random, span: tuple[int, int], delays: Sequence[float], seconds: int) -> _Group:
        least = 2 * sum(delays[slice(*span)])
        rtt = round(max(draw.log_uniform(rng, RTT_MS), least + 0.1), 1)
        start = rng.uniform(*LATE_S) if rng.random() < LATE else rng.uniform(0, START_S)
        stop = seconds - rng.uniform(*EARLY_S) if rng.random() < EARLY else 0.0
        access = _round(draw.log_uniform(rng, ACCESS_MBIT)) if rng.random() < HAS_ACCESS else 0.0
        buffer = _buffer(access, rtt, draw.log_uniform(rng, BUFFER_BDP))
        cca, count, up = rng.choice(list(self.ccas)), rng.choice((1, 1, 2)), rng.random() < UP
        return _Group(cca, count, span, rtt, up, round(start, 2), round(stop, 2), access, buffer)


@dataclass
class _Group:
    """Equal flows that use the same links."""

    cca: str
    count: int
    span: tuple[int, int]
    rtt_ms: float
    up: bool
    start_s: float
    stop_s: float
    access_mbit: float
    """Rate of its access link; 0 is none."""
    buffer: int
    """Of its access link, bytes."""

    def fields(self) -> dict[str, Any]:
        """As a scenario has it."""
        enter, leave = reversed(self.span) if self.up else self.span
        optional: dict[str, Any] = {"direction": "up"} if self.up else {}
        optional |= {"count": self.count} if self.count > 1 else {}
        optional |= {"stop": f"{self.stop_s:g}s"} if self.stop_s else {}
        optional |= {"access": {"rate": f"{self.access_mbit:g}mbit", "buffer": self.buffer}} if self.access_mbit else {}
        return {"cca": self.cca, "rtt": f"{self.rtt_ms:g}ms", "start": f"{self.start_s:g}s", "enter": f"r{enter}", "leave": f"r{leave}", **optional}

    def text(self) -> str:
        """As in `cubic×2 80 ms up r2–r1 from 3.1 s`."""
        enter, leave = reversed(self.span) if self.up else self.span
        late = f" from {self.start_s:g} s" if self.start_s > START_S else ""
        until = f" to {self.stop_s:g} s" if self.stop_s else ""
        behind = f" behind {self.access_mbit:g} Mbit/s" if self.access_mbit else ""
        times = f"×{self.count}" if self.count > 1 else ""
        return f"{self.cca}{times} {self.rtt_ms:g} ms {'up' if self.up else 'down'} r{enter}–r{leave}{behind}{late}{until}"


@dataclass(frozen=True)
class _Link:
    """A link: the queue and the rate of each direction, and the delay that both have."""

    name: str
    delay_ms: float
    queues: tuple[str, str]
    rates: tuple[float, float]
    words: tuple[str, str]

    def fields(self) -> dict[str, Any]:
        """As a scenario has it."""
        delay = f"netem delay {self.delay_ms:g}ms limit 100000"
        return {"name": self.name, "forward": [delay, self.words[0]], "reverse": [delay, self.words[1]]}

    def text(self) -> str:
        """As in `fq_codel 20 Mbit/s`, `bfifo 50/8 Mbit/s`."""
        rates = f"{self.rates[0]:g}" + (f"/{self.rates[1]:g}" if self.rates[0] != self.rates[1] else "")
        queues = self.queues[0] + (f"/{self.queues[1]}" if self.queues[0] != self.queues[1] else "")
        return f"{queues} {rates} Mbit/s"


def _spans(rng: random.Random, shape: str, links: int) -> list[tuple[int, int]]:
    """The routers between which each group uses the chain; the first group crosses all of it."""
    groups = rng.randint(*GROUPS)
    if shape == DUMBBELL:
        return [(0, 1)] * groups
    if shape == PARKING_LOT:
        return [(0, links), *((k % links, k % links + 1) for k in range(max(groups, links + 1) - 1))]
    spans = [(first, last) for first in range(links) for last in range(first + 1, links + 1)]
    return [(0, links), *(rng.choice(spans) for _ in range(groups - 1))]


def _both_ways(groups: Sequence[_Group]) -> None:
    """Turns the last group round where all send the same way."""
    if len({g.up for g in groups}) == 1:
        groups[-1].up = not groups[-1].up


def _link(rng: random.Random, place: int, name: str, delay: float, rtt_ms: float, *, marks: bool) -> _Link:
    rate = _round(draw.log_uniform(rng, RATE_MBIT))
    lower = _round(rate * draw.log_uniform(rng, LOWER)) if rng.random() < ASYMMETRIC else rate
    against = name if rng.random() < 0.5 else "bfifo"
    buffers = [_buffer(r, rtt_ms, draw.log_uniform(rng, BUFFER_BDP)) for r in (rate, lower)]
    words = (queue_words(name, rate, buffers[0], marks=marks), queue_words(against, lower, buffers[1], marks=marks))
    return _Link("abc"[place], delay, (name, against), (rate, lower), words)


def queue_words(name: str, rate_mbit: float, buffer: int, *, marks: bool) -> str:
    """A link's queue of `buffer` bytes in tc's words: a token bucket with the queue in it, or a queue that shapes by itself."""
    if name in path.SHAPERS:
        return path.queue_words(name, round(rate_mbit * 1e6), buffer, limited=True)
    mark = marks and name in MARKING
    if name == "choke":
        return f"tbf rate {rate_mbit:g}mbit burst {TBF_BURST} limit {buffer}; {_choke(rate_mbit, buffer)}{' ecn' * mark}"
    return draw.shared_bottleneck(name, rate_mbit, buffer, ecn=mark)


def _choke(rate_mbit: float, buffer: int) -> str:
    """The same thresholds as :func:`draw.shared_bottleneck` gives RED, in full frames."""
    high = max(buffer // draw.FRAME // 2, draw.LEAST_MAX_FRAMES)
    low = high // 3
    return f"choke limit {4 * high} min {low} max {high} avpkt 1500 burst {(2 * low + high) // 3 + 1} bandwidth {rate_mbit:g}mbit probability 0.1"


def _buffer(rate_mbit: float, rtt_ms: float, bdp: float) -> int:
    return max(draw.LEAST_FRAMES * draw.FRAME, int(rate_mbit * rtt_ms * 125 * bdp))


def _about(shape: str, groups: Sequence[_Group], links: Sequence[_Link], *, marks: bool) -> str:
    """One line: the shape, the groups and the links."""
    return f"{shape}{' ecn' * marks}: {', '.join(g.text() for g in groups)}; {', '.join(link.text() for link in links)}"


def _round(x: float) -> float:
    """Two decimals: what tc's words say."""
    return round(x, 2)
