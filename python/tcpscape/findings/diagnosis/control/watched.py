"""A flow as a congestion control would see it: its ACKs, its round trips with the window that each shows, its reductions.

Everything is read from the columns of an observation alone. The window of a round trip is the most that was in flight after a segment of it was sent:
what a sender that is held back by its congestion window has in flight is that window.

Each candidate watches the flow: what it would have done with the same ACKs, and how far that is from what was seen.

The window that was seen replaces the candidate's own at the begin of each stretch of round trips; what the candidate makes of it until the end of the
stretch is compared with the windows seen, and its reductions with those seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpscape import _core
from tcpscape.controls.spelling import LINUX
from tcpscape.findings.diagnosis.observed import Columns, ObservedFlow
from tcpscape.findings.diagnosis.path.columns import Ints
from tcpscape.findings.diagnosis.sender_side import held_by_sack, plain
from tcpscape.stats.estimate import Flags, Floats
from tcpscape.units import NS_PER_S

OPEN, DISORDER, CWR, RECOVERY, LOSS = 0, 1, 2, 3, 4
"""States of a connection, by the numbers of Linux's `enum tcp_ca_state`."""
FAST, TIMEOUT, SPURIOUS = 1, 2, 4
"""Kinds of events: a fast retransmission, one after a timeout, one of what was not lost (docs/diagnosis.md)."""
TIMESTAMPS = 12
"""Bytes that the timestamps take in each segment."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """Round trips: the first ACK of one acknowledges the last byte that was sent when the one before began. Columns of one length."""

    ack: Ints
    """Its first ACK, by place."""
    peak: Ints
    """The last ACK before its segment with most in flight."""
    start_s: Floats
    seconds: Floats
    window: Floats
    """Most packets in flight after a segment was sent; NaN where none was."""
    is_open: Flags
    """Neither recovery nor reduction, nor held back by the receive window or the application, from its beginning to its end."""
    rtt_ms: Floats
    """Median RTT of the segments acknowledged in it; NaN without."""
    least_rtt_ms: Floats
    sent: Ints
    """Segments sent."""
    longest_pause: Floats
    """Longest time between two of its segments / its length."""
    in_bursts: Floats
    """Share of its segments that left within 100 µs of the one before."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A reduction that the packets show: a recovery, a timeout, or an echo of congestion."""

    first: int
    """ACK that began it, by place."""
    last: int
    """First ACK after it."""
    state: int
    before: float
    """Window before, packets; NaN where it cannot be seen."""
    after: float
    """Window in the first round trip after it, packets; NaN where that cannot be seen."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A flow as the features need it."""

    mss: int
    """Bytes of payload of a full segment."""
    ecn: bool
    t: Ints
    """Time of each ACK, ns."""
    una: Ints
    """Left edge after each ACK."""
    nxt: Ints
    """Next new sequence number at each ACK."""
    newly: Ints
    """Bytes newly acknowledged."""
    delivered: Ints
    """Bytes newly delivered."""
    rtt_ns: Ints
    """RTT of the last segment that each ACK acknowledged; 0 unknown."""
    flight: Floats
    """Packets in flight after the last segment sent between this ACK and the next; NaN where none was."""
    state: Ints
    """State of the connection after each ACK."""
    rounds: Rounds
    cuts: tuple[Cut, ...]
    acks: Columns
    segments: Columns
    since_sent: Ints
    """Packets delivered since the last segment acknowledged was sent."""
    reordered: Flags
    """Whether segments had arrived far out of order by then."""
    limited: Floats
    """Share of the round trips that the receive window, the application or the send buffer held, by cause."""


def watch(flow: ObservedFlow) -> Watched | None:
    """The flow, or None where it has too few segments to say anything."""
    segments, acks = plain(flow.segments), plain(flow.acks)
    if flow.facts.get("events_left_out") and len(flow.events.get("t", ())):
        # What comes after the last event that was kept has reductions of which nothing is known.
        until = int(flow.events["t"][-1])
        segments, acks = _until(segments, until), _until(acks, until)
    if len(segments.get("t", ())) < 100 or len(acks.get("t", ())) < 50:
        return None
    mss = _mss(segments, flow.facts)
    una = np.maximum.accumulate(acks["ack"])
    newly = np.diff(una, prepend=una[:1])
    end = np.maximum.accumulate(segments["seq"] + segments["len"])
    sent_before = np.searchsorted(segments["t"], acks["t"], side="right")
    nxt = np.where(sent_before > 0, end[np.maximum(sent_before - 1, 0)], una)
    before, held_back = held_by_sack(newly, acks["sacked"])
    delivered = np.maximum(newly - before, 0) + acks["sacked"]
    rtt, since = _rtts(segments, acks["t"], delivered)
    flight = _flight(segments, sent_before, mss)
    state, spans = _states(flow.events, acks, una, nxt, held_back)
    state[(state == OPEN) & (held_back > 0)] = DISORDER
    held = _held(flow, acks, nxt, una, mss)
    rounds = _rounds(_Acks(acks["t"], una, nxt, flight, state, held, rtt), segments)
    return Watched(
        mss=mss,
        ecn=bool(flow.facts.get("ecn")),
        t=acks["t"],
        una=una,
        nxt=np.maximum(nxt, una),
        newly=newly,
        delivered=delivered,
        rtt_ns=rtt,
        flight=flight,
        state=state,
        rounds=rounds,
        cuts=_cuts(spans, rounds, state),
        acks=acks,
        segments=segments,
        since_sent=since // mss,
        reordered=_reordered(segments, acks["t"]),
        limited=np.array([float(np.mean(held[rounds.ack] == cause)) if len(rounds.ack) else 0.0 for cause in (1, 2)]),
    )


def _until(columns: Mapping[str, NDArray[Any]], until: int) -> dict[str, NDArray[Any]]:
    kept = columns["t"] <= until
    return {name: values[kept] for name, values in columns.items()}


def _mss(segments: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> int:
    """Payload of a full segment: as the capture says, the most frequent length of those of one segment, or what the handshake leaves room for."""
    if known := facts.get("segment_size"):
        return int(known)
    single = segments["len"][segments["segs"] == 1]
    if len(single) >= 50:
        values, counts = np.unique(single, return_counts=True)
        return int(values[np.argmax(counts)])
    both = facts.get("mss") or 1460
    announced = int(both) if isinstance(both, (int, float)) else min((int(one) for one in both if one), default=1460)
    return announced - TIMESTAMPS if segments["tsval"].any() and announced > 1448 else announced


def _reordered(segments: Mapping[str, NDArray[Any]], t: Ints) -> Flags:
    """For each ACK, whether a segment that was sent once had been delivered after one sent four segments later."""
    delivered = np.where(segments["acked"] > 0, segments["acked"], np.iinfo(np.int64).max)
    least_later = np.minimum.accumulate(delivered[::-1])[::-1]
    late = (segments["sends"][:-4] == 1) & (segments["acked"][:-4] > least_later[4:]) if len(delivered) > 4 else np.zeros(0, bool)
    since = segments["acked"][:-4][late].min() if late.any() else np.iinfo(np.int64).max
    return np.asarray(t >= since)


def _rtts(segments: Mapping[str, NDArray[Any]], t: Ints, delivered: Ints) -> tuple[Ints, Ints]:
    """For each ACK the RTT of the last segment that it acknowledged first, and the bytes delivered since that one was sent."""
    rtt, since = np.zeros(len(t), np.int64), np.zeros(len(t), np.int64)
    usable = np.flatnonzero((segments["acked"] > 0) & (segments["rtt"] > 0))
    place = np.searchsorted(t, segments["acked"][usable], side="right") - 1
    good = place >= 0
    rtt[place[good]] = segments["rtt"][usable[good]]
    total = np.cumsum(delivered)
    since[place[good]] = total[place[good]] - segments["delivered"][usable[good]]
    return rtt, np.maximum(since, 0)


def _flight(segments: Mapping[str, NDArray[Any]], sent_before: Ints, mss: int) -> Floats:
    """Packets in flight after the last segment sent between each ACK and the next."""
    flight = np.full(len(sent_before), np.nan)
    upto = np.append(sent_before[1:], len(segments["t"]))
    sends = np.flatnonzero(upto > sent_before)
    flight[sends] = np.ceil(segments["flight"][upto[sends] - 1] / mss)
    return flight


def _states(events: Columns, acks: Mapping[str, NDArray[Any]], una: Ints, nxt: Ints, held_back: Ints) -> tuple[Ints, list[tuple[int, int, int]]]:
    """The state after each ACK, and the reductions: first ACK, first ACK after, state."""
    state = np.zeros(len(una), np.int64)
    spans: list[tuple[int, int, int]] = []
    over, inside, point, again = 0, OPEN, 0, False
    for at, kind, seq in _signals(events, acks, held_back):
        begin, kind_now = at, kind
        if at < over and not (kind == LOSS and inside != LOSS):
            # Repaired before its end is what was lost after its begin: another recovery follows at once.
            again = again or (kind == RECOVERY and seq >= point)
            if kind == RECOVERY and inside == CWR:
                state[at:over][state[at:over] == CWR] = RECOVERY
            continue
        if again and over < len(una) and at >= over:
            again = False
            inside, point = RECOVERY, int(nxt[over])
            begin, over = over, int(np.searchsorted(una, point, side="left"))
            if over > begin:
                state[begin:over] = RECOVERY
                spans.append((begin, over, RECOVERY))
            if at < over and kind != LOSS:
                again = kind == RECOVERY and seq >= point
                continue
            begin = at
        # RFC 3168 §6.1.2: an echo counts again once what was sent after the reduction is acknowledged.
        end = int(np.searchsorted(una, nxt[begin], side="right" if kind_now == CWR else "left"))
        if end <= begin:
            continue
        if spans and spans[-1][1] > begin:
            spans[-1] = (spans[-1][0], begin, spans[-1][2])
        state[begin:end], over, inside, point, again = kind_now, end, kind_now, int(nxt[begin]), False
        spans.append((begin, end, kind_now))
    for (_, _, kind), (begin, _, next_kind) in itertools.pairwise(spans):
        if begin > 0 and state[begin - 1] == kind == next_kind:
            state[begin - 1] = OPEN  # one that follows at once is another reduction
    return state, spans


def _signals(events: Columns, acks: Mapping[str, NDArray[Any]], held_back: Ints) -> list[tuple[int, int, int]]:
    """What shows a reduction, in the order of time: the ACK, the state that follows, the sequence number repeated."""
    signals: list[tuple[int, int, int]] = []
    if len(events.get("t", ())):
        kinds = np.asarray(events["kind"])
        chosen = np.flatnonzero((kinds == FAST) | (kinds == TIMEOUT) | (kinds == SPURIOUS))
        times, seqs = (np.asarray(events[name]).astype(np.int64)[chosen] for name in ("t", "seq"))
        at = np.maximum(np.searchsorted(acks["t"], times, side="right") - 1, 0)
        signals += [
            (int(a), LOSS if k == TIMEOUT else RECOVERY, int(s))
            for a, k, s in zip(at, kinds[chosen], seqs, strict=True)
            if k != SPURIOUS or held_back[a] > 0  # without a SACKed segment it is a tail probe, or follows a timeout that was none
        ]
    if "ece" in acks:
        signals += [(int(a), CWR, 0) for a in np.flatnonzero(acks["ece"])]
    return sorted(signals)


def _held(flow: ObservedFlow, acks: Mapping[str, NDArray[Any]], nxt: Ints, una: Ints, mss: int) -> Ints:
    """For each ACK: 1 where the receive window holds the sender, 2 where the application or the send buffer does or may do, else 0."""
    held = np.zeros(len(una), np.int64)
    windows = acks["window"]
    # A capture that begins in mid-connection does not have the scale of the windows.
    if windows.any() and "window_scale" not in flow.facts.get("not_identifiable", ()):
        right = np.maximum.accumulate(acks["ack"] + windows)
        held[np.append(nxt[1:], nxt[-1]) + 2 * mss > right] = 1
    seconds = acks["t"] / 1e9
    for interval in flow.limits:
        if interval.cause in ("application", "send_buffer", "unknown"):
            held[(seconds >= interval.start_s) & (seconds < interval.end_s)] = 2
    return held


@dataclass(frozen=True, slots=True)
class _Acks:
    """What is known at each ACK; :class:`Watched` says what the fields are."""

    t: Ints
    una: Ints
    nxt: Ints
    flight: Floats
    state: Ints
    held: Ints
    rtt: Ints


def _rounds(acks: _Acks, segments: Mapping[str, NDArray[Any]]) -> Rounds:
    t, una, nxt, flight, state, held, rtt = acks.t, acks.una, acks.nxt, acks.flight, acks.state, acks.held, acks.rtt
    firsts = [0]
    while (following := int(np.searchsorted(una, nxt[firsts[-1]], side="left"))) < len(una):
        firsts.append(max(following, firsts[-1] + 1))
        if firsts[-1] >= len(una):
            firsts.pop()
            break
    ack = np.array(firsts, np.int64)
    ends = np.append(ack[1:], len(una))
    last = np.minimum(ends, len(t) - 1)
    seen = np.where(np.isnan(flight), -1.0, flight)
    peak = np.array([a + int(seen[a:b].argmax()) for a, b in zip(firsts, ends.tolist(), strict=True)], np.int64)
    is_open = ~np.logical_or.reduceat((state > DISORDER) | (held > 0), ack)
    middle, least = _middle_and_least(rtt, ack)
    sent, pause, bursts = _departures(segments["t"], t[ack], t[last])
    start = t[ack] / 1e9
    return Rounds(
        ack=ack,
        peak=peak,
        start_s=start,
        seconds=t[last] / 1e9 - start,
        window=flight[peak],
        is_open=is_open & ~np.isnan(flight[peak]),
        rtt_ms=middle / 1e6,
        least_rtt_ms=least / 1e6,
        sent=sent,
        longest_pause=pause,
        in_bursts=bursts,
    )


def _middle_and_least(rtt: Ints, begins: Ints) -> tuple[Floats, Floats]:
    """Median and least of the RTTs that are known from each of these ACKs to the next; NaN without any."""
    place = np.searchsorted(begins, np.flatnonzero(rtt > 0), side="right") - 1
    values, n = rtt[rtt > 0], np.bincount(place, minlength=len(begins))
    values = values[np.lexsort((values, place))]
    some = np.flatnonzero(n)
    first = (np.cumsum(n) - n)[some]
    middle, least = np.full((2, len(begins)), np.nan)
    middle[some] = (values[first + (n[some] - 1) // 2] + values[first + n[some] // 2]) / 2
    least[some] = values[first]
    return middle, least


def _departures(sent: Ints, begin: Ints, end: Ints) -> tuple[Ints, Floats, Floats]:
    """Of each time from a begin to an end: the segments sent in it, their longest pause / its length, the share that left at once behind another."""
    first, behind = np.searchsorted(sent, begin, side="right"), np.searchsorted(sent, end, side="right")
    gaps = np.diff(sent, prepend=sent[:1] - NS_PER_S)
    bursty = np.append(0, np.cumsum(gaps < 100_000))
    several = np.flatnonzero(behind - first >= 2)
    a, b = first[several], behind[several]
    pause, bursts = np.full((2, len(begin)), np.nan)
    longest = np.maximum.reduceat(np.append(gaps, 0), np.stack([a + 1, b], axis=1).ravel())[::2] if several.size else np.zeros(0)
    pause[several] = longest / np.maximum(1, (end - begin)[several])
    bursts[several] = (bursty[b] - bursty[a]) / (b - a)
    return behind - first, pause, bursts


def _cuts(spans: list[tuple[int, int, int]], rounds: Rounds, state: Ints) -> tuple[Cut, ...]:
    """The reductions with the windows before and after."""
    cuts = []
    previous = -1
    for first, last, kind in spans:
        before = int(np.searchsorted(rounds.ack, first, side="right")) - 1
        windows = rounds.window[max(0, before - 1) : before + 1]
        after = int(np.searchsorted(rounds.ack, last, side="left"))
        end = rounds.ack[after + 1] if after + 1 < len(rounds.ack) else None
        seen = after < len(rounds.ack) and not (state[rounds.ack[after] : end] > DISORDER).any()
        # Within two round trips of the one before, the window that it begins with cannot be seen: what is in flight is still from earlier.
        follows = previous > rounds.ack[max(0, before - 1)]
        largest = float(np.nanmax(windows)) if not (follows or np.isnan(windows).all()) else float("nan")
        previous = last
        cuts.append(Cut(first, last, kind, largest, float(rounds.window[after]) if seen else float("nan")))
    return tuple(cuts)


CANDIDATES = tuple(name for name in sorted(LINUX) if name != "bbr")
"""Controls of Linux that set a window by ACKs and losses; BBR's window follows from rate samples instead."""
SAME = {"lp": "reno"}
"""Candidates that watch as another one does: what LP makes of delays hangs on a random difference of two clocks, and in nearly every connection it is
Reno (docs/models/controls/lp.md)."""
SHORT, LONG = 8, 48
"""Round trips of a stretch: short enough that small errors do not add up, long enough that slow growth shows."""
HZ = (250,)
"""Ticks a second of the sender's kernel, which hardly matter for most controls."""
UNKNOWN_HZ = (100, 250, 1000)
"""Those that kernels are built with."""
COUNT_TICKS = ("htcp", "westwood")
"""Controls that measure the RTT in ticks, so that they are another control on each of these kernels: the nearest one counts."""
SLOW_START = 1.5
"""Growth of the window in a round trip above which it doubles (with delayed ACKs 1.5)."""
MOST_ERROR = 10.0
"""Errors in tolerances above this one count as this one."""
UNDONE = 0.96
"""A window that is this part of the one before its reduction was restored, or never reduced."""
MEASURES = ("unlikely", "error", "middle", "close", "exact", "bias", "drift")
"""Of the windows that a candidate would have had, for each length of stretch."""
BACKOFFS = ("backoff_unlikely", "backoff_error", "backoff_close", "backoff_bias")
"""Of the windows that its reductions would have left."""


@dataclass(frozen=True)
class Stretches:
    """Where the watched window replaces the candidate's, and what is compared."""

    rows: Ints
    """What the candidate is told of each ACK: the columns of `_core.WatchedAcks`."""
    compared: Ints
    """Round trips whose windows are compared."""
    begun: Ints
    """For each of them the round trip in which its stretch began."""

    @cached_property
    def told(self) -> _core.WatchedAcks:
        """The rows, for each candidate the same."""
        return _core.WatchedAcks(self.rows.tobytes())


def stretches(watched: Watched, length: int) -> Stretches:
    """The ACKs with the watched window at the begin of each stretch of `length` round trips."""
    rounds, n = watched.rounds, len(watched.t)
    window, growth = np.zeros(n, np.int64), np.zeros(n, np.int64)
    compared, begun, start = [], [], -1
    after_loss = False
    for i in range(1, len(rounds.ack)):
        if not rounds.is_open[i]:
            start = -1
            after_loss = bool(watched.state[rounds.ack[i]] == LOSS)
            continue
        if start < 0 or i - start >= length:
            start = i
            at = rounds.peak[i]
            window[at + 1 : at + 2] = round(rounds.window[i])
            if i + 1 < len(rounds.ack) and rounds.is_open[i + 1] and not after_loss:
                growth[at + 1 : at + 2] = 1 if rounds.window[i + 1] > SLOW_START * rounds.window[i] else 2
        else:
            compared.append(i)
            begun.append(start)
    for cut in watched.cuts:
        if not np.isnan(cut.before):
            window[cut.first] = round(cut.before)
    return Stretches(_rows(watched, window, growth), np.array(compared, np.int64), np.array(begun, np.int64))


DELIVERED = 4
"""Column of a candidate's rows: packets newly delivered."""


def _rows(watched: Watched, window: Ints, growth: Ints) -> Ints:
    mss, acks = watched.mss, watched.acks
    flight = np.maximum(watched.nxt - watched.una, 0) // mss
    windows = acks["window"]
    slow = (acks["sacked"] > 0) | (np.diff(windows, prepend=windows[:1]) != 0) | (watched.newly == 0)
    packets = np.diff(watched.una // mss, prepend=watched.una[:1] // mss)
    delivered = np.diff(np.cumsum(watched.delivered) // mss, prepend=0)
    columns = (
        watched.t,
        watched.una,
        watched.nxt,
        packets,
        delivered,
        watched.rtt_ns // 1000,
        flight,
        watched.since_sent,
        watched.state,
        acks["ece"] if "ece" in acks else np.zeros_like(flight),
        slow,
        acks["tsval"],
        acks["tsecr"],
        window,
        growth,
        watched.reordered,
    )
    return np.stack([np.asarray(c).astype(np.int64) for c in columns], axis=1)


def compare(watched: Watched) -> dict[str, dict[str, float]]:
    """Candidate → measure → value; NaN where nothing could be compared.

    `error` is the mean distance in tolerances (1.5 packets or 3 %), `middle` the median, `unlikely` the mean of ln(1 + (error / scale)²) with
    a scale of 0.3 packets and 0.2 % (a Cauchy distribution's), `close` the share within one, `exact` that within a packet, `bias`
    the median of ln(candidate / seen),
    `drift` the same at the ends of stretches alone; of reductions `backoff_error`, `backoff_close`, `backoff_bias` of the window after them.
    """
    long, short = stretches(watched, LONG), stretches(watched, SHORT)
    measures = {name: measure(name, watched, short, long) for name in CANDIDATES if name not in SAME}
    return {name: measures[SAME.get(name, name)] for name in CANDIDATES}


def measure(name: str, watched: Watched, short: Stretches, long: Stretches) -> dict[str, float]:
    """All measures of one candidate, on the kernel under which it is nearest."""
    kernels = UNKNOWN_HZ if name in COUNT_TICKS else HZ
    measures = (_measure(name, hz, watched, short, "short") | _measure(name, hz, watched, long, "long") for hz in kernels)
    return min(measures, key=distance)


OLDER = ("bic", "scalable", "veno", "yeah")
"""Controls that grew by the number of ACKs in Linux before 5.7, whose repair is named after stretched ACKs."""


def counting_acks(watched: Watched, name: str) -> bool:
    """Whether an older law that counts ACKs is at least as near to the flow as the candidate is."""
    plain = (stretches(watched, SHORT), stretches(watched, LONG))
    older = tuple(replace(one, rows=one_each(one.rows)) for one in plain)
    return min(distance(measure(other, watched, *older)) for other in OLDER) <= distance(measure(name, watched, *plain))


def one_each(rows: Ints) -> Ints:
    """What a candidate is told of ACKs, each as if it acknowledged one packet."""
    told: Ints = rows.copy()
    told[:, DELIVERED] = np.minimum(rows[:, DELIVERED], 1)
    return told


def segments_per_ack(watched: Watched) -> float:
    """Segments that an ACK delivers in the mean."""
    delivering = watched.delivered > 0
    return float(watched.delivered[delivering].mean()) / watched.mss if delivering.any() else 0.0


def distance(measures: Mapping[str, float]) -> float:
    """One number of how far a candidate is from what was seen."""
    return sum(0.0 if np.isnan(measures[m]) else measures[m] for m in ("unlikely_short", "unlikely_long", "backoff_unlikely"))


def _measure(name: str, hz: int, watched: Watched, told: Stretches, suffix: str) -> dict[str, float]:
    """What one candidate makes of the stretches."""
    raw, reductions = told.told.watch(name, watched.mss, hz, watched.ecn or name == "dctcp")
    rounds = watched.rounds
    seen, made = rounds.window[told.compared], np.frombuffer(raw, "<u4")[rounds.peak[told.compared]].astype(float)
    result = {f"{measure}_{suffix}": float("nan") for measure in MEASURES}
    if len(seen):
        tolerance = np.maximum(1.5, 0.03 * seen)
        errors, ratio = np.abs(made - seen) / tolerance, np.log(np.maximum(made, 1) / np.maximum(seen, 1))
        ends = np.append(told.begun[1:] != told.begun[:-1], True)
        result = {
            f"unlikely_{suffix}": float(np.log1p((np.abs(made - seen) / (0.3 + 0.002 * seen)) ** 2).mean()),
            f"error_{suffix}": float(np.minimum(errors, MOST_ERROR).mean()),
            f"middle_{suffix}": float(np.median(errors)),
            f"close_{suffix}": float((errors <= 1).mean()),
            f"exact_{suffix}": float((np.abs(made - seen) <= 1).mean()),
            f"bias_{suffix}": float(np.median(ratio)),
            f"drift_{suffix}": float(np.median(ratio[ends])),
        }
    return result | (_backoffs(watched, reductions) if suffix == "short" else {})


def _backoffs(watched: Watched, reductions: list[tuple[int, int, int]]) -> dict[str, float]:
    """How far the candidate's thresholds are from the windows after the reductions seen."""
    made = {ack: after for ack, _, after in reductions}
    seen = [c for c in watched.cuts if c.state not in (OPEN, LOSS) and c.first in made and c.after > 0 and not c.after >= UNDONE * c.before]
    pairs = [(made[c.first], c.after) for c in seen]
    if not pairs:
        return dict.fromkeys(BACKOFFS, float("nan"))
    values: Floats = np.array(pairs, float)
    ratio: Floats = np.log(np.maximum(values[:, 0], 1) / values[:, 1])
    close = np.abs(values[:, 0] - values[:, 1]) <= np.maximum(1.5, 0.05 * values[:, 1])
    return {
        "backoff_unlikely": float(np.log1p((ratio / (0.01 + 1.0 / values[:, 1])) ** 2).mean()),
        "backoff_error": float(np.median(np.abs(ratio))),
        "backoff_close": float(close.mean()),
        "backoff_bias": float(np.median(ratio)),
    }
