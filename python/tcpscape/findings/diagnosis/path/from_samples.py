"""The path behind a flow of which only samples of TCP_INFO are known: sockets, `ss`, Flent, results. Without packets much stays open, and says so.

What can be told, and from what:

| Parameter | From |
|---|---|
| base RTT | the kernel's smallest RTT: exact without jitter, with jitter some deviations below the mean |
| jitter | the lowest mean deviations of the RTT, without what the packets' own time on the link adds; only where something shows that there is any |
| rate | delivery rates that stay the same while the data in flight vary |
| buffer | how far the RTT rises until packets are lost, where that is the same each time and nowhere exceeded |
| random loss | retransmissions that no DSACK calls needless, while the queue was far from full |

Every constant is the measured one of the virtual engine's runs with samples each 10 ms (`benches/from_samples.py` measures again, on other runs).
An interval covers what was seen in 95 % of them, where the flow was sampled from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tcpscape import stats
from tcpscape.findings.diagnosis.fitted import FittedPath
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.stats.estimate import Caveat, Estimate, Flags, Floats, Weakness

FAR_BELOW, BELOW = 16.0, 8.0
"""With jitter, how far the smallest RTT is below the mean, in mean deviations: most, usual."""
FAR_LINK, USUAL_LINK = 3.5, 0.5
"""The same in packets' times on the link, where the mean deviation is too small to say."""
JITTER, LEAST_JITTER, MOST_JITTER = 2.1, 1.1, 4.5
"""Standard deviation of one direction's delay / lowest mean deviation of the RTT: usual, least, most."""
DISTANT = 0.08
"""Peaks of the queue that are the same."""
ABOVE_PEAK = 1.12
"""How far the queue may rise above its peaks at losses."""
NEAR_EMPTY = 0.3
"""Share of the longest wait in the queue below which a loss is not the queue's."""
LAST_PACKET = 0.7
"""What is missing of a full queue in the RTT's rise, packets: one that does not fit is dropped."""
FEWEST_PINGS, FEWEST_SENT = 5, 100
RECOVERY = 3
"""`ca_state` from which on losses are repaired. Linux: TCP_CA_Recovery."""
ROUNDING = 0.004
"""Of the base RTT, and ms: what its interval is wider by, for the resolution of the measurements."""
UNSEEN = 4.0
"""With no sign of jitter, how far the smallest RTT may all the same be below the mean, in mean deviations."""
NEAR_USUAL = 1.06
"""How far the mean without queue may be above the median of the smoothed RTT, which reordered ACKs bias low."""
BIAS = 0.1
"""Where no queue shows, the part of the median smoothed RTT above the smallest one that is not the path's."""
MOST_HELD = 0.3
"""Share of the samples that an end may have held where jitter is told."""
PER_PACKET = ("distribution", "correlation_ms", "jitter_on", "jitter_forward_ms", "jitter_reverse_ms", "order_kept", "ack_loss_pct")
"""Fields that take packets."""
MEASURED = ("rtt_ms", "jitter_ms", "loss_pct", "queue_loss_pct", "rate_mbps", "buffer_bytes", "queue")
"""Fields that samples can give."""


def fit(flow: ObservedFlow) -> FittedPath:
    """What the samples of a flow, and pings before it, say of the path."""
    reasons = dict.fromkeys(PER_PACKET, Reason("samples alone"))
    pings = np.asarray(flow.facts.get("idle_pings_ms", ()), float)
    pinged = _of_pings(pings) if len(pings) >= FEWEST_PINGS else None
    series = Series.of(flow)
    rtt = jitter = rate = buffer = random = dropped = None
    if series is None:
        reasons |= dict.fromkeys(MEASURED, Reason("other direction" if flow.vantage == "receiver" else "no RTTs"))
    else:
        plateau = series.plateau()
        base = base_rtt(series, plateau) if pinged is None else pinged[0]
        rtt, jitter = base if pinged or series.knows_least else None, spread(series, plateau, reasons)
        if rtt is None:
            reasons["rtt_ms"] = Reason("smoothed RTTs", {"ms": base.value})
        queue = Queue.of(series, plateau, base.value) if plateau and rtt else None
        rate = plateau.estimate(series) if plateau else None
        if rate and not rtt:
            reasons["buffer_bytes"] = Reason("needs base RTT")
        buffer = queue.size(reasons) if queue else None
        random, dropped = losses(series, queue, base.value, reasons)
        if plateau is None:
            reasons |= {"rate_mbps": series.why_no_rate, "buffer_bytes": Reason("needs rate"), "queue": Reason("no bottleneck")}
    if pinged:
        rtt, jitter = pinged
        reasons.pop("rtt_ms", None)
        reasons.pop("jitter_ms", None)
    reorders = series is not None and series.reorders
    if reorders:
        reasons.pop("order_kept")
    return FittedPath(
        rtt_ms=rtt,
        jitter_ms=jitter,
        jitter_on=None,
        jitter_forward_ms=None,
        jitter_reverse_ms=None,
        distribution=None,
        order_kept=False if reorders else None,
        correlation_ms=None,
        loss_pct=random,
        queue_loss_pct=dropped,
        rate_mbps=rate,
        buffer_bytes=buffer,
        queue="self-induced" if rate else None,
        reasons=reasons,
    )


@dataclass(frozen=True)
class Queue:
    """The bottleneck's queue over time, as the RTT shows it."""

    series: Series
    rate: float
    """Of the link, Mbit/s."""
    held: Floats
    """Bytes in it at each sample."""
    events: Floats
    """The most that were in it about each begin of a recovery."""

    @classmethod
    def of(cls, series: Series, plateau: Plateau, base: float) -> Queue:
        """Of a flow that filled the bottleneck of a path with this base RTT, ms."""
        rate = plateau.estimate(series).value
        held = np.maximum(0.0, series.rtt - base) * rate * 125
        around = series.samples_in(2)
        begins = np.flatnonzero((series.phase[1:] >= RECOVERY) & (series.phase[:-1] < RECOVERY) & series.settled[1:])
        return cls(series, rate, held, np.array([held[max(0, i - around) : i + around + 1].max() for i in begins]))

    @property
    def full(self) -> tuple[float, Floats]:
        """The highest peak but the highest tenth, and the peaks that are the same."""
        high = float(np.quantile(self.events, 0.9))
        return high, self.events[np.abs(self.events / max(1.0, high) - 1) < DISTANT]

    def size(self, reasons: dict[str, Reason]) -> Estimate | None:
        """The buffer, bytes, where losses begin at the same queue each time; otherwise None and the reason."""
        if len(self.events) < 2:
            reasons["buffer_bytes"] = Reason("few losses of the queue", {"count": len(self.events)})
            return None
        high, same = self.full
        settled = self.held[self.series.settled]
        is_exceeded = float(np.quantile(settled, 0.995)) > ABOVE_PEAK * high
        tight = len(same) >= 0.6 * len(self.events) and (len(self.events) > 2 or float(np.ptp(self.events)) < 0.05 * high)
        if is_exceeded or not tight:
            reasons["buffer_bytes"] = Reason("losses at many lengths")
            return None
        frame = self.series.segment + self.series.header
        value = float(np.median(same)) + LAST_PACKET * frame
        margin = max(0.08 * value, 1.2 * frame, 2 * float(np.std(same)))
        return Estimate(value, value - margin, value + margin, len(same), "bytes")


def base_rtt(series: Series, plateau: Plateau | None) -> Estimate:
    """The round trip without queueing, ms."""
    least, rounded = series.base
    n = max(2, len(series.t), round(series.sent))
    link, deviation = series.per_packet(plateau), series.own_deviation(plateau)
    usual = float(np.quantile(series.rtt[series.settled], 0.5))
    low = max(0.0, least * (1 - ROUNDING) - ROUNDING)
    if len(series.t) == 1:
        return Estimate(least, low, max(least + rounded, float(series.rtt[0])), n, "ms", Caveat(Weakness.ONE_SAMPLE, 1))
    if not series.has_jitter:
        high = max(least + rounded, min(usual, least + rounded + UNSEEN * deviation))
        return Estimate(least + rounded / 2, low, high * (1 + ROUNDING) + ROUNDING, n, "ms")
    if plateau is None and series.held.mean() <= MOST_HELD:  # no queue of its own: the usual RTT is the mean, or other flows' queue adds to it
        value = min(usual - BIAS * (usual - least), least + FAR_BELOW * max(series.own_deviation(None, 0.5), link))
        return Estimate(value, low, usual * NEAR_USUAL, n, "ms")
    below, most = max(BELOW * deviation, USUAL_LINK * link), max(FAR_BELOW * deviation, FAR_LINK * link)
    value = min(max(usual, least), least + below)
    return Estimate(value, low, max(value, min(least + most, usual * NEAR_USUAL)), n, "ms")


def spread(series: Series, plateau: Plateau | None, reasons: dict[str, Reason]) -> Estimate | None:
    """Standard deviation of the delay of the direction that has the jitter, ms."""
    deviation, link = series.own_deviation(plateau), series.per_packet(plateau)
    if len(series.t) < LEAST_SAMPLES or not series.has_jitter:
        reasons["jitter_ms"] = Reason("no sign of jitter")
    elif series.held.mean() > MOST_HELD:
        reasons["jitter_ms"] = Reason("sender paused")
    elif deviation < NOISE * link:
        reasons["jitter_ms"] = Reason("time on the link")
    if "jitter_ms" in reasons:
        return None
    return Estimate(JITTER * deviation, LEAST_JITTER * deviation, MOST_JITTER * deviation, len(series.t), "ms")


def losses(series: Series, queue: Queue | None, base: float, reasons: dict[str, Reason]) -> tuple[Estimate | None, Estimate | None]:
    """Random loss, and loss by the full queue, % of the data packets.

    Random is what is lost while the queue was far from its longest, of what was sent then; what more was lost is the queue's.
    """
    if series.sent < FEWEST_SENT or len(series.t) < LEAST_SAMPLES or np.isnan(series.delivered).any():
        reasons |= dict.fromkeys(("loss_pct", "queue_loss_pct"), Reason("few for losses"))
        return None, None
    if series.reorders:
        reasons |= dict.fromkeys(("loss_pct", "queue_loss_pct"), Reason("repeated needlessly"))
        return None, None
    lost, sent = np.diff(series.lost, prepend=series.lost[0]), np.diff(series.delivered, prepend=series.delivered[0])
    waits = np.maximum(0.0, series.rtt - base)
    longest = float(np.quantile(waits[series.settled], 0.995))
    if queue and len(queue.events):
        longest = min(longest, queue.full[0] / (queue.rate * 125))
    around = series.samples_in(1.5)
    met = np.array([waits[max(0, i - around) : i + 1].max() for i in range(len(waits))])
    is_clear = series.settled & (met < max(NEAR_EMPTY * longest, 2 * series.per_packet(None)))
    of_clear = float(sent[is_clear].sum())
    if of_clear < FEWEST_SENT:
        reasons |= dict.fromkeys(("loss_pct", "queue_loss_pct"), Reason("queue never short"))
        return None, None
    random, total = _percent(float(lost[is_clear].sum()), of_clear), _percent(float(lost.sum()), float(sent.sum()))
    dropped = Estimate(max(0.0, total.value - random.value), max(0.0, total.low - random.high), max(0.0, total.high - random.low), total.n, "%")
    if queue is None:
        reasons["queue_loss_pct"] = Reason("needs queue")
    low = 0.0 if series.has_jitter else random.low  # jitter hides how long the queue was
    return Estimate(random.value, low, random.high, random.n, "%"), dropped if queue else None


def _percent(count: float, of: float) -> Estimate:
    """A share of packets in percent."""
    share = stats.share(min(round(count), round(of)), round(of))
    return Estimate(100 * share.value, 100 * share.low, 100 * share.high, share.n, "%")


def _of_pings(pings: Floats) -> tuple[Estimate, Estimate]:
    """Base RTT and jitter by the pings of the idle path; where the jitter is in one direction, that is its deviation, in both 0.71 of it."""
    n, mean, deviation = len(pings), float(pings.mean()), float(pings.std(ddof=1))
    error = 2 * deviation / np.sqrt(n) + 0.005 * mean
    part = deviation / np.sqrt(2 * n) * 2
    return (
        Estimate(mean, mean - error, mean + error, n, "ms"),
        Estimate(deviation, max(0.0, (deviation - part) / np.sqrt(2)), deviation + part, n, "ms"),
    )


TICK_MS = 1.0
"""Resolution of RTTs that come from timestamps, as after a retransmission. Linux before 6.7: timestamps count milliseconds."""
DSACK_ROUNDS = 1.5
"""Round trips in which the DSACK of a needless retransmission has come, for RTTs that vary."""
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
    """Retransmissions until then, without those that a DSACK called needless later."""
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
            _lost(column("t_s"), column("rtt") / 1e6, np.nan_to_num(column("total_retrans", 0)) - needless),
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
    def why_no_rate(self) -> Reason:
        """Why there is no plateau."""
        if len(self.t) < FEWEST:
            return Reason("few samples", {"least": FEWEST, "count": len(self.t)})
        if not (self.delivery > 0).any():
            return Reason("no delivery rate")
        if self.held.mean() > 1 - LEAST_PART:
            return Reason("held by an end")
        return Reason("no ceiling")


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


def _lost(t: Floats, rtt_s: Floats, repeated: Floats) -> Floats:
    """Retransmissions that repaired losses. A DSACK comes a round trip after a needless one; those of the last round trip do not count yet.

    :param repeated: retransmissions until each time, less those that a DSACK had called needless by then.
    """
    judged = max(1, int(np.searchsorted(t, t[-1] - DSACK_ROUNDS * rtt_s[-1], side="right")) - 1)
    known = np.concatenate([repeated[:judged], np.minimum(repeated[judged:], repeated[judged - 1])])
    return np.maximum(0.0, np.minimum.accumulate(known[::-1])[::-1])


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
