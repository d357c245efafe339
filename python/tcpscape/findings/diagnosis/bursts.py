"""Bursts of segments: whether a clock sends them, a window or a buffer each round trip, or a bottleneck serves them one by one."""

from __future__ import annotations

import numpy as np

from tcpscape.findings.diagnosis.fitted import FittedPath
from tcpscape.findings.diagnosis.growth import LEVEL, SLOWEST, usual_rtt_s
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path.state import REACH, SHARP, is_sharp
from tcpscape.stats.estimate import Floats

LEAST_BURSTS = 100
"""Bursts from which on their distances say that a clock sends them."""
BURST = 8
"""Gaps below this part of the longest ones are inside a burst."""
EQUAL, CLOCKED = 0.05, 0.8
"""Distances within this share of the usual one are equal, and so are those of so many bursts that a clock sends."""
TURN_S = 0.02
"""s for which no shared medium gathers packets: IEEE 802.11 has turns of at most 8.2 ms (TXOP limit, 802.11-2020 §9.4.2.28), LTE frames of 10 ms."""
ROUNDED = 0.01
"""Share of a round trip by which its interval may be too narrow where a whole number of distances is compared with it."""
FINEST_STAMP_S = 1e-3
"""The shortest tick of a clock of timestamps, s (RFC 7323 §5.4)."""
LATE, LATE_TICKS = 0.1, 2
"""By how much more than the least an ACK's echo takes that did not release its segment: a share of the usual time, which jitter and others' queues
may add (set, not derived), and ticks of the timestamps: an echo is of the first ACK of a tick, and is rounded, one tick each."""
PARTS = 8
"""Parts of a flow whose segments are counted."""
NEARLY = 0.8
"""Goodput / rate of the bottleneck from which on its queue may be what spaces the packets."""
LEAST_WINDOW_S, PER_WINDOW = 0.02, 12
"""Least length of a window, s, and segments that it has at least in the mean."""
AT_ONCE_S, UNEVEN = 2e-5, 1.0
"""s between segments that leave at once, and how much the middle half of the gaps of a window may differ, by its median, where a pacer makes them."""
FEWEST_SEGMENTS = 30
"""Segments from which on what a sender does again and again shows."""
FEWEST_WINDOWS = 16
"""Round trips from which on the largest flights and the rates of a flow say what holds it."""
CONSTANT = 0.5
"""Share of the largest flights that a buffer of one size keeps the same."""
ANSWERED = 0.3
"""ms in which a host fills a buffer in which there is room."""
SERVED = 0.95
"""Share of the distances between packets that are equal where each is the time that a bottleneck takes for one."""


def is_clocked(flow: ObservedFlow, path: FittedPath) -> bool:
    """Whether data leave by a clock: in bursts that begin at equal distances, as many of them from beginning to end.

    A congestion control that paces tries more and less in turn, and a window that holds a flow grows until its packets queue. Behind a queue that is
    never empty packets come at equal distances too: so the delays must be seen here, and the flow must be slower than the bottleneck that they show.
    Away from the sender timestamps show them, and no queue of a packet that takes less than two of their ticks. A shared medium that gathers packets
    in turns makes such bursts of a window's too, and the sender answers in them; but losses make a window smaller, and change no application's clock.
    Without timestamps bursts must show it whose distances no round trip explains (:func:`_beats`).
    """
    t = np.sort(np.asarray(flow.segments["t"], dtype=np.float64)) / 1e9
    if t.size < LEAST_BURSTS or t[-1] <= t[0] or (path.rate_mbps and (flow.goodput_mbps or 0.0) > NEARLY * path.rate_mbps.value):
        return False
    apart, size = _bursts(t[t >= t[0] + (t[-1] - t[0]) / PARTS])  # without the slow start
    if apart.size < LEAST_BURSTS:
        return False
    share = float(np.mean(np.abs(apart / np.median(apart) - 1) < EQUAL))
    if flow.vantage != "sender" and flow.facts.get("timestamps") is not True:
        is_seen = share >= SERVED and size > 1 and _beats(flow, path, float(np.median(apart)))
    else:
        is_slow = bool(np.median(apart) >= 2 * FINEST_STAMP_S) and (bool(np.median(apart) > TURN_S) or outlives_losses(flow))
        is_seen = flow.vantage == "sender" or (not is_served(flow, path) and is_slow)
    return is_seen and share >= CLOCKED and is_even(t)


def outlives_losses(flow: ObservedFlow) -> bool:
    """Whether nothing was lost, or the largest flights of most round trips were the same though something was."""
    seen = windows_of_trips(flow) if flow.facts.get("losses") else None
    return not flow.facts.get("losses") or (seen is not None and float(np.mean(np.abs(seen[0] / np.median(seen[0]) - 1) < LEVEL)) >= CONSTANT)


def _bursts(t: Floats) -> tuple[Floats, float]:
    """The distances between the beginnings of bursts, s, and how many segments the usual burst has.

    Half of the time lies between segments that are at least so far apart as those by which bursts are told. What is less than half of the usual burst
    is the end of what was written, which left by itself (Nagle's algorithm), or what an ACK released.
    """
    gaps = np.diff(t)
    if not gaps.size:
        return gaps, 0.0
    ordered = np.sort(gaps)
    usual = float(ordered[np.searchsorted(np.cumsum(ordered), ordered.sum() / 2)])
    begins = np.flatnonzero(np.concatenate(([True], gaps > usual / BURST)))
    sizes = np.diff(np.concatenate((begins, [t.size])))
    size = float(np.median(np.repeat(sizes, sizes)))  # of the burst that the usual segment is in
    return np.diff(t[begins[sizes >= size / 2]]), size


def stamps_beat(flow: ObservedFlow) -> bool:
    """Whether the sender's own clock, by the timestamps of its segments, shows bursts at equal distances: a tick more or less is rounding."""
    stamps = np.asarray(flow.segments.get("tsval", ()), dtype=np.uint32)
    if stamps.size < LEAST_BURSTS or flow.facts.get("timestamps") is not True:
        return False
    at = np.sort(np.diff(stamps, prepend=stamps[:1]).astype(np.int32).cumsum(dtype=np.int64))
    apart, _ = _bursts(at.astype(np.float64))
    if apart.size < LEAST_BURSTS or np.median(apart) < 2 * LATE_TICKS:
        return False
    usual = float(np.median(apart))
    return float(np.mean(np.abs(apart - usual) <= max(1.0, EQUAL * usual))) >= CLOCKED


def is_even(t: Floats) -> bool:
    """Whether as many segments come from the second part of a flow to its last one."""
    counts = np.histogram(t, np.linspace(t[0], t[-1], PARTS + 1))[0][1:]  # without the slow start
    return bool(np.ptp(counts) <= max(2.0, 2 * EQUAL * np.median(counts)))


def _beats(flow: ObservedFlow, path: FittedPath, apart_s: float) -> bool:
    """Whether bursts without a loss, so far apart, are those of a clock by their distance alone.

    What a window or a buffer sends comes again a round trip later: in a clock's bursts no whole number of distances is a round trip, and several are
    less than one. A medium that is shared gathers packets too, for less time than that between these bursts.
    """
    return (
        path.rtt_ms is not None and not flow.facts.get("losses") and apart_s > TURN_S and path.rtt_ms.low > 1e3 * apart_s and not _fits(path, apart_s)
    )


def is_of_round_trips(flow: ObservedFlow, path: FittedPath) -> bool:
    """Whether a whole number of the usual distances between bursts is a round trip: a window that does not grow sends so."""
    return path.rtt_ms is not None and _fits(path, _usual_apart_s(flow))


def is_a_turn_apart(flow: ObservedFlow, path: FittedPath) -> bool:
    """Whether the usual distance between bursts is the round trip itself, as of a buffer or a window that is sent as a whole."""
    apart_ms = 1e3 * _usual_apart_s(flow)
    return path.rtt_ms is not None and path.rtt_ms.low * (1 - ROUNDED) <= apart_ms <= path.rtt_ms.high * (1 + ROUNDED)


def _usual_apart_s(flow: ObservedFlow) -> float:
    return float(np.median(_bursts(np.sort(np.asarray(flow.segments["t"], dtype=np.float64)) / 1e9)[0]))


def _fits(path: FittedPath, apart_s: float) -> bool:
    """Whether the round trip may be a whole number of these distances."""
    if path.rtt_ms is None:
        return True
    low, high = path.rtt_ms.low / (1e3 * apart_s), path.rtt_ms.high / (1e3 * apart_s)
    return bool(np.floor(high * (1 + ROUNDED)) >= max(1.0, np.ceil(low * (1 - ROUNDED))))


def begins_by_itself(flow: ObservedFlow) -> bool:
    """Whether most bursts of a clock left when nothing released them: long after the ACK that their first segment echoes had come to the sender.

    Between such bursts nothing is sent, so that no queue delays the first segment, and the way of an ACK to the sender and of its answer back to the
    capture is the shortest that was seen.
    """
    echo = echo_ms(flow)
    if echo.size < LEAST_BURSTS:
        return False
    least = min(float(echo.min()), flow.facts.get("handshake_sender_part_ms") or np.inf)
    return bool(np.mean(echo - least > max(LATE * float(np.median(echo)), LATE_TICKS * 1e3 * FINEST_STAMP_S)) >= CLOCKED)


def is_served(flow: ObservedFlow, path: FittedPath) -> bool:
    """Whether packets come to a capture away from the sender one by one at equal distances, for most of the time, as from a busy bottleneck.

    Where its rate is known, or delays are known not to vary, the goodput and the delays tell.
    """
    return not (flow.vantage == "sender" or path.rate_mbps is not None or path.jitter_on == "none") and comes_evenly(flow)


def comes_evenly(flow: ObservedFlow) -> bool:
    """Whether packets come one by one at equal distances for most of the time."""
    gaps = np.diff(np.sort(np.asarray(flow.segments.get("t", ()), dtype=np.float64)))
    usual = float(np.median(gaps)) if gaps.size >= FEWEST_SEGMENTS else 0.0
    is_equal = np.abs(gaps - usual) <= EQUAL * usual
    return usual > 0 and bool(is_equal.mean() >= SERVED and gaps[is_equal].sum() >= gaps.sum() / 2)  # not what comes at once, pauses between


def echo_ms(flow: ObservedFlow) -> Floats:
    """The times from ACKs at the capture to the segments that echo them first, ms."""
    echo = np.asarray(flow.segments.get("echo", ()), dtype=np.float64) / 1e6
    return np.asarray(echo[echo > 0])


def windows_of_trips(flow: ObservedFlow) -> tuple[Floats, Floats, Floats] | None:
    """The largest and least flight and the bytes of each round trip after the first eighth; None where the flight is not seen, or of few."""
    t, flight, size = (np.asarray(flow.segments.get(name, ()), dtype=np.float64) for name in ("t", "flight_by_echo", "len"))
    if not flight.size or not flight.any() or t.max() <= t.min():
        return None
    order = np.argsort(t, kind="stable")
    t, flight, size = t[order] / 1e9, flight[order], size[order]
    place = ((t - t[0]) / max(usual_rtt_s(flow), LEAST_WINDOW_S, PER_WINDOW * (t[-1] - t[0]) / t.size)).astype(np.int64)
    number = int(place[-1]) + 1
    flights, least, rates = np.zeros(number), np.full(number, np.inf), np.bincount(place, size, number).astype(np.float64)
    np.maximum.at(flights, place, flight)
    np.minimum.at(least, place, flight - size)
    kept = np.arange(number // 8, number - 1)
    kept = kept[flights[kept] > 0]
    return (flights[kept], least[kept], rates[kept]) if kept.size >= FEWEST_WINDOWS else None


def is_late(flow: ObservedFlow) -> bool:
    """Whether most segments left later than the ACK that they echo had come to the sender: a buffer in which that ACK made room is filled at once.

    Later than what is between: a jitter of that way, the time that a segment takes at a bottleneck there, which a least echo of one small packet does
    not have in it, and a tick of the timestamps where it has several ACKs, of which the first counts.
    """
    echo = echo_ms(flow)
    if echo.size < LEAST_BURSTS:
        return False
    gaps = np.diff(np.sort(np.asarray(flow.segments["t"], dtype=np.float64))) / 1e6
    low = float(echo.min())
    lower, upper = np.quantile(echo[echo > low + SHARP], (0.25, 0.75)) if (echo > low + SHARP).any() else (low, low)
    around = REACH * (upper - lower) / 1.349 + (0.0 if is_sharp(echo) else float(np.quantile(gaps, 0.25)))
    steps = np.diff(np.asarray(flow.acks.get("tsval", (0, 0)), dtype=np.int64))
    tick = 0.0 if steps.size and np.median(steps) > 0 else 1e3 * FINEST_STAMP_S
    return bool(np.median(echo) - low > around + tick + ANSWERED)


def never_grows(flow: ObservedFlow, path: FittedPath) -> bool:
    """Whether segments come with pauses, without a loss, at a rate that stays the same where a window's would have grown."""
    t = np.sort(np.asarray(flow.segments["t"], dtype=np.float64)) / 1e9
    rtt_s = max(usual_rtt_s(flow), path.rtt_ms.value / 1e3 if path.rtt_ms else 0.0)
    if t.size < LEAST_BURSTS or t[-1] <= t[0] or flow.facts.get("losses") or not rtt_s or is_served(flow, path) or not is_even(t):
        return False
    trips = (t[-1] - t[0]) / rtt_s
    grown = SLOWEST * trips * (PARTS - 2) / PARTS / (t.size / trips)  # from the second part to the last one, as a share of the window
    gaps = np.sort(np.diff(t))
    pauses = float(gaps[gaps > BURST * np.median(gaps)].sum()) / (t[-1] - t[0])
    return bool(grown > 4 * EQUAL and pauses >= 0.5)  # twice of what counts as even


def keeps_pace(flow: ObservedFlow) -> bool:
    """Whether, at the sender, what is sent at once is followed by a gap as long as its bytes, from one to the next, as a pacer does; True of few.

    A program that writes at times of its own leaves gaps that differ by more than they are long: of random times the middle half by 1.6 times.
    """
    t = np.asarray(flow.segments.get("t", ()), dtype=np.float64)
    order = np.argsort(t, kind="stable")
    begins = np.flatnonzero(np.diff(t[order], prepend=-np.inf) > 1e9 * AT_ONCE_S)
    if begins.size <= 4 * PER_WINDOW:
        return True
    size = np.add.reduceat(np.asarray(flow.segments["len"], dtype=np.float64)[order], begins)
    gaps = np.diff(t[order][begins]) / np.maximum(size[:-1], 1.0)
    low, middle, high = np.quantile(gaps[: gaps.size // PER_WINDOW * PER_WINDOW].reshape(-1, PER_WINDOW), (0.25, 0.5, 0.75), axis=1)
    return bool(np.median((high - low) / middle) < UNEVEN)


def turns_vary(flow: ObservedFlow) -> bool:
    """Whether the times from an ACK at the capture to the segment that echoes it vary more than flights that are the same do."""
    echo = echo_ms(flow)
    return echo.size >= FEWEST_WINDOWS and float(np.std(echo)) > LEVEL * float(np.mean(echo))
