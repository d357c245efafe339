"""The columns of samples of TCP_INFO as the fit reads them, and the rate of delivery that they do not exceed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.stats.estimate import Estimate, Flags, Floats

TICK_MS = 1.0
"""Resolution of RTTs that come from timestamps, as after a retransmission. Linux before 6.7: timestamps count milliseconds."""
BEGIN_ROUNDS = 4.0
"""Round trips after which the smallest RTT should not fall any more: handshake and first data are over."""
SETTLED_S = 3.0
"""Slow start is over then, s."""
NOISE = 0.5
"""Mean deviation of RTTs without jitter, in times that a packet takes on the link: ACKs come for two packets or one."""
WIDTH = 0.02
"""Delivery rates whose logarithms are within this are the same."""
LEAST_SHARE, MOST_ABOVE, LEAST_PART, LEAST_TOGETHER = 0.2, 0.045, 0.05, 0.05
"""A plateau: share of the samples in it, how far the upper tenth is above it (logarithm), share of all samples that are not held by an end,
correlation of RTT and data in flight there."""
LEAST_SAMPLES = 50
"""Fewest samples from which spread and losses are taken."""
FEWEST, FEW_SHARE = 8, 0.6
"""Fewest samples of which a plateau is taken, and the share of them that must be in it where they are fewer than those."""
IPV4, IPV6, TIMESTAMPS, ETHERNET = 40, 60, 12, 14
"""Bytes of headers: RFC 791, 8200, 9293, 7323, IEEE 802.3."""
USUAL_SEGMENT = 1448
"""Bytes: of an Ethernet's full frame with timestamps."""
NEAR_S = 0.1
"""s about a sample that an end held which are left out: the kernel's rate is one of the round trip before."""


@dataclass(frozen=True)
class Series:
    """The columns that are read, with NaN where one is missing; RTTs in ms, rates in Mbit/s of payload."""

    t: Floats
    rtt: Floats
    deviation: Floats
    least: Floats
    """The smallest RTT until then."""
    delivery: Floats
    in_flight: Floats
    phase: Floats
    """`ca_state`."""
    lost: Floats
    """Retransmissions until then, without those that a DSACK called needless."""
    delivered: Floats
    """Segments delivered until then."""
    held: Flags
    """Whether the application, the receive window or the send buffer held the sender about that time."""
    sent: float
    """Segments with data sent."""
    segment: int
    """Payload of a segment, bytes."""
    header: int
    """Bytes of all headers of a frame."""
    reorders: bool
    """Whether the sender saw reordering."""

    @classmethod
    def of(cls, flow: ObservedFlow) -> Series | None:
        """Of a flow; None where its samples have no RTT."""
        columns = flow.samples
        if not len(columns.get("t_s", ())) or "rtt" not in columns:
            return None
        known = np.asarray(columns["rtt"], float) > 0
        n = int(known.sum())
        if not n:
            return None

        def column(name: str, missing: float = np.nan) -> Floats:
            return np.asarray(columns[name], float)[known] if name in columns else np.full(n, missing)

        in_flight = column("in_flight")
        if np.isnan(in_flight).all():
            in_flight = column("unacked") + column("retrans", 0) - column("sacked", 0) - column("lost", 0)
        if np.isnan(in_flight).all():
            in_flight = column("snd_cwnd")  # what may be in flight, where nothing says what is
        needless = np.nan_to_num(column("dsack_dups", 0))
        sent = column("data_segs_out") if "data_segs_out" in columns else np.asarray([float(flow.packets or np.nan)])
        options = columns.get("options")
        has_timestamps = options is None or np.isnan(options[-1]) or bool(int(options[-1]) & 1)
        headers = ETHERNET + (IPV6 if ":" in flow.source.address else IPV4) + (TIMESTAMPS if has_timestamps else 0)
        seen = max(np.nan_to_num(column("reord_seen", 0)).max(), float(flow.facts.get("reorderings") or 0), column("reordering", 0).max() - 3)
        return cls(
            column("t_s"),
            column("rtt") / 1e3,
            column("rttvar") / 1e3,
            column("min_rtt") / 1e3,
            column("delivery_rate") * 8e-6,
            in_flight,
            column("ca_state"),
            np.maximum.accumulate(np.maximum(0, np.nan_to_num(column("total_retrans", 0)) - needless)),
            column("delivered"),
            _held(column),
            float(np.nan_to_num(sent[-1] - (sent[0] if flow.facts.get("begins_in_mid_connection") and n > 1 else 0))),
            int(flow.facts.get("segment_size") or USUAL_SEGMENT),
            headers,
            bool(seen > 0),
        )

    @cached_property
    def settled(self) -> Flags:
        """Samples after slow start."""
        late = self.t > self.t[0] + SETTLED_S
        return late if late.any() else np.ones(len(self.t), bool)

    @property
    def knows_least(self) -> bool:
        """Whether the kernel's smallest RTT is known, and not the smoothed RTT alone."""
        return not bool(np.isnan(self.least).all())

    @cached_property
    def base(self) -> tuple[float, float]:
        """The smallest RTT, and how much larger the resolution of its measurement allows it to be, ms.

        An RTT of a segment that was repeated comes from timestamps, which may count whole milliseconds: it is rounded down.
        """
        known = self.least[~np.isnan(self.least)]
        if not len(known):
            return float(self.rtt.min()), 0.0
        last = float(known[-1])
        if last != round(last):
            return last, 0.0
        finer = known[(known > last) & (known < last + TICK_MS)]
        return (float(finer[-1]), 0.0) if len(finer) else (last, TICK_MS)

    @cached_property
    def has_jitter(self) -> bool:
        """Whether something shows that delays vary by themselves: reordering, or a smallest RTT that goes on falling."""
        begin = self.t[0] + BEGIN_ROUNDS * self.base[0] / 1e3
        later = self.least[(self.t > begin) & ~np.isnan(self.least)]
        falls = len(later) > 1 and later[0] - self.base[0] > max(TICK_MS, 0.003 * self.base[0])
        return self.reorders or bool(falls)

    def samples_in(self, rounds: float) -> int:
        """Samples in so many round trips, at least 1."""
        return max(1, round(rounds * float(np.median(self.rtt)) / 1e3 / max(1e-3, float(np.median(np.diff(self.t))))))

    def per_packet(self, plateau: Plateau | None) -> float:
        """Time of a full frame on the link, ms; where its rate is not known, at the highest rate of delivery."""
        rate = plateau.rate if plateau else float(np.nanmax(self.delivery)) if (self.delivery > 0).any() else np.inf
        return (self.segment + self.header) * 8e-3 / rate

    def own_deviation(self, plateau: Plateau | None, of: float = 0.1) -> float:
        """A low quantile of the RTT's mean deviation, ms, without what the time of packets on the link adds to it."""
        values = self.deviation[self.settled]
        lowest = float(np.nanquantile(values, of)) if (~np.isnan(values)).any() else 0.0
        return float(np.sqrt(max(0.0, lowest**2 - (NOISE * self.per_packet(plateau)) ** 2)))

    def plateau(self) -> Plateau | None:
        """The rate that delivery does not exceed, whatever is in flight; None where there is no such rate."""
        free = ~self.held & (self.delivery > 0) & ~np.isnan(self.in_flight) & (self.t > self.t[0] + 1)
        if free.sum() < max(FEWEST, LEAST_PART * len(self.t)):
            return None
        logs = np.log(np.where(free, self.delivery, 1.0))
        ordered = np.sort(logs[free])
        counts = np.searchsorted(ordered, ordered + WIDTH, side="right") - np.arange(len(ordered))
        first = int(np.argmax(counts))
        centre = float(np.median(ordered[first : first + counts[first]]))
        inside = free & (np.abs(np.where(free, logs, np.inf) - centre) < 0.6 * WIDTH)
        above = float(np.quantile(ordered, 0.9)) - centre
        share = counts[first] / len(ordered)
        least = LEAST_SHARE if len(ordered) >= LEAST_SAMPLES else FEW_SHARE
        if share < least or above > MOST_ABOVE or _together(self.in_flight[inside], self.rtt[inside]) < LEAST_TOGETHER:
            return None
        return Plateau(float(np.exp(centre + max(0.0, above) / 2)), max(0.0, above), int(inside.sum()))

    @property
    def why_no_rate(self) -> str:
        """Why there is no plateau, a sentence."""
        if len(self.t) < FEWEST:
            return f"It takes {FEWEST} samples, and there {'is' if len(self.t) == 1 else 'are'} {len(self.t)}."
        if not (self.delivery > 0).any():
            return "The source has no delivery rate."
        if self.held.mean() > 1 - LEAST_PART:
            return "The application, the receive window or the send buffer held the sender, so that the path was never full."
        return "The delivery rate has no ceiling at which more data in flight only wait: the path was not full, or its rate changes."


@dataclass(frozen=True)
class Plateau:
    """A rate of delivery that is not exceeded."""

    rate: float
    """Of payload, Mbit/s."""
    above: float
    """How far the upper tenth of the rates is above it, logarithm."""
    n: int

    def estimate(self, series: Series) -> Estimate:
        """The link's rate with Ethernet's headers, Mbit/s."""
        rate = self.rate * (series.segment + series.header) / series.segment
        return Estimate(rate, rate * (1 - 0.015 - self.above / 2), rate * (1 + 0.015 + self.above / 2), self.n, "Mbit/s")


def _held(column: Callable[[str, float], Floats]) -> Flags:
    """Whether an end held the sender about each sample."""
    t = column("t_s", 0.0)
    held = column("delivery_rate_app_limited", 0.0) > 0
    if len(t) < 2:
        return held
    reach = max(1, round(NEAR_S / max(1e-3, float(np.median(np.diff(t))))))
    for name in ("rwnd_limited", "sndbuf_limited"):
        grows = np.diff(column(name, 0.0), prepend=column(name, 0.0)[:1]) > 0
        held = held | (np.convolve(grows, np.ones(2 * reach + 1), "full")[reach : reach + len(t)] > 0)
    return held


def _together(x: Floats, y: Floats) -> float:
    """Correlation; 0 where one does not vary."""
    return float(np.corrcoef(x, y)[0, 1]) if len(x) > 2 and x.std() > 0 and y.std() > 0 else 0.0
