"""What held a flow: what the rules of single gaps cannot know, shares of the time, and fewer intervals for a reader.

The intervals (:func:`refined`) are those of the capture's analysis (`crates/capture/src/limits/`). Away from the sender the path has
changed the spacing of the segments, so that a window and a pace look alike there. What shows a pace at any place is that the flow probes for the
least RTT: BBR (Cardwell et al., ACM Queue 14(5), 2016; draft-ietf-ccwg-bbr §5.3.4.3) sends four packets a round trip for 200 ms every ten seconds,
without a loss, and goes on as before. What samples of TCP_INFO say is in `counters`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tcpscape.findings.diagnosis.bursts import (
    CLOCKED,
    CONSTANT,
    FEWEST_SEGMENTS,
    LEAST_BURSTS,
    NEARLY,
    begins_by_itself,
    comes_evenly,
    echo_ms,
    is_a_turn_apart,
    is_clocked,
    is_late,
    is_of_round_trips,
    is_served,
    keeps_pace,
    never_grows,
    stamps_beat,
    turns_vary,
    windows_of_trips,
)
from tcpscape.findings.diagnosis.fitted import UNKNOWN, FittedPath, RecognisedControl
from tcpscape.findings.diagnosis.growth import LEVEL, STILL, outlasts, stands_still, stays_below_bottleneck, stays_unused, usual_rtt_s
from tcpscape.findings.diagnosis.observed import Cause, Doubt, LimitInterval, ObservedFlow, edges
from tcpscape.stats.estimate import Floats

PACED = ("bbr", "prague")
"""How the names of the congestion controls begin that space their segments themselves. The others send what they may at once, and gather segments
(TSO): their data may wait for a whole burst in spite of room in the window."""
SURE = 0.5
"""Probability from which on a control's name counts."""
LIKELY = 0.8
"""The same from which on the best candidate counts, where none is named."""
PROBE_S = (0.15, 0.5)
"""Length of a probe for the least RTT, s; two round trips more at the most."""
SPARSE_S = 1.0
"""Between segments in the mean, s: where they come more rarely no dip of a probe's length shows, and clocks that jump give any number of bins."""
PROBE_EVERY_S = (9.5, 14.0)
"""Time between probes: ten seconds after the RTT was last as low."""
FIRST_PROBE_S = 9.5
"""When a connection's first probe comes, s."""
BIN_S = 0.05
"""Data rates are taken over so many seconds."""
DEEP, BACK = 0.4, 0.75
"""Share of the rate before it below which a probe begins, and which must be reached again after it."""
STEADY = 0.1
"""Four of five changes of the rate are smaller than this share of it; BBR's are 0.25 in three of eight round trips."""
SEEN = 0.5
"""Share of the data below which most of them are not in the capture."""
BY_HABIT: tuple[Cause, ...] = ("send_buffer", "congestion_window", "pacing")
"""Causes that a sender's habits tell, not one gap alone."""
EMPTIED, UNSTEADY = 0.4, 0.3
"""Flight that is always left, as a share of the largest one, and spread of the rate, above both of which no application writes by itself."""
FINEST_S = 0.01
"""The shortest cells of time that are summed up for a reader, s."""
MOST_CELLS = 100_000
"""Cells of time that are summed up at the most: clocks that are set, and damage, make captures of years."""
SILENCE_S, SILENCE_RTTS = 0.2, 4
"""s and round trips beyond which a pause is no way of an ACK and its answer, as in the capture's analysis."""
SILENT = 0.5
"""Share of the time held by an application that such pauses take at least where they show it, whatever is under way between them."""
PAUSED = 0.1
"""Share of the time that is not a window's or a repair's, from which on a stream pauses: of bulk flows it is 0.05 at the most."""
DEFAULT_SEND_BUFFER = 2_400_000
"""Bytes in flight from which on Linux's default send buffer of 4 MiB may hold the flow as well: what it counts is the memory of packets."""
TIMEOUT = 2
"""The kind of an event that is a timeout."""


def refined(flow: ObservedFlow, control: RecognisedControl | None = None, path: FittedPath = FittedPath()) -> tuple[LimitInterval, ...]:
    """What held a flow, with what the congestion control adds.

    Away from the sender, what looks like a congestion window is `pacing` if the control paces. At the sender, regular gaps that nothing seen ends are
    `application` if it is known not to pace: such a control sends what it may at once. What a clock sends is the application's at every place.

    :param path: as far as it is known: a queue that is never empty is a clock too.
    """
    if not len(flow.segments.get("t", ())):
        return tuple(flow.limits)
    clocked = is_clocked(flow, path)
    paced = False if clocked else paces(flow, control)
    if paced is None:
        return tuple(flow.limits)
    instead: dict[Cause, Cause] = {}
    if paced and flow.vantage != "sender":
        instead = {"congestion_window": "pacing"}
    if not paced:
        instead = {"pacing": "application"}
        if clocked and flow.vantage != "sender":
            is_by_itself = begins_by_itself(flow)
            if is_by_itself or not is_of_round_trips(flow, path):
                instead["congestion_window"] = "application"
            if is_by_itself:
                instead["send_buffer"] = "application"
    return joined(replace(one, cause=instead.get(one.cause, one.cause)) for one in flow.limits)


def doubted(flow: ObservedFlow, control: RecognisedControl | None = None, path: FittedPath = FittedPath()) -> ObservedFlow:
    """The flow as :func:`refined` has it, but without a cause that the rest of what was seen speaks against: that time is unknown, with the doubt.

    A socket buffer of one size holds a flight of one size. What an application that writes without a clock has under way varies as its rate and the
    round trip do: where these vary, and it neither runs out nor varies, a buffer or a pace may be what keeps it. An application that writes by itself
    either lets its flight run out or writes at one rate. Of Linux's congestion controls few pace, and where none of them shows, gaps that no ACK
    ended may be the application's too. Losses and their repair change the rate of what they hold, so that something else holds a sender whose rate
    stays the same, below that of the bottleneck. A congestion window grows without a loss: a flight that stays the same, beside no full bottleneck,
    is that of a pace, a buffer or an application. Segments that are not full and leave one by one, each when the one before it is acknowledged, are
    small writes under Nagle's algorithm (RFC 1122 §4.2.3.4) or a program that waits for its answers as well as a buffer smaller than a segment.
    """
    held = shares(flow.limits) or {}
    about: Mapping[Cause, bool]
    doubt: Doubt
    rows = len(flow.segments.get("t", ()))
    if not rows:
        is_unused = not shares_of(flow) and stays_unused(flow)
        return replace(flow, facts={**flow.facts, "limited_by": {"unknown": 1.0}, "limits_doubt": "unused_window"}) if is_unused else flow
    if lacks_packets(flow):
        return _without(flow, set(held), "packets_missing")
    if int(np.sum(flow.segments.get("segs", rows))) < FEWEST_SEGMENTS:  # a row may be a super-packet
        return _without(flow, {cause for cause in BY_HABIT if held.get(cause, 0.0) > 0}, "few_segments")
    fills = path.rate_mbps is not None and (flow.goodput_mbps or 0.0) > NEARLY * path.rate_mbps.value
    is_seen = flow.vantage == "sender" or path.rate_mbps is not None  # elsewhere a busy bottleneck makes the rate steady
    if held.get("send_buffer", 0.0) >= SURE and is_alone(flow):
        about, doubt = {"send_buffer": True}, "small_writes"
    elif held.get("recovery", 0.0) >= SURE and is_seen and not fills and is_steady(flow):
        about, doubt = {"recovery": True}, "pace_or_application"
    elif flow.vantage == "sender" and _is_held(flow, path, held):
        about, doubt = {"congestion_window": True}, "constant_flight"
    elif flow.vantage == "sender":
        is_pace = (_likely_spaces(control) or probes(flow)) and keeps_pace(flow) and not stays_below_bottleneck(flow, path)
        about, doubt = {"pacing": not (is_pace or fills or is_clocked(flow, path))}, "pace_or_application"
    elif held.get("pacing", 0.0) >= SURE and stays_below_bottleneck(flow, path):
        about, doubt = {"pacing": True}, "pace_or_application"
    elif (seen := windows_of_trips(flow)) is not None:
        about, doubt = _by_flights(flow, path, held, seen)
    elif untold := _untold(flow, path, held):
        return _without(flow, untold, "no_timestamps")
    else:  # too few round trips to show a flight of one size
        about, doubt = {"send_buffer": True, "application": is_served(flow, path)}, "end_of_writes"
    return _without(flow, {cause for cause, is_denied in about.items() if is_denied and held.get(cause, 0.0) >= SURE}, doubt)


def lacks_packets(flow: ObservedFlow) -> bool:
    """Whether the capture has no ACK of the data, or less than half of the data that were acknowledged."""
    seen = float(np.sum(flow.segments.get("len", 0), dtype=np.float64)) * (flow.facts.get("segment_stride") or 1)
    return bool(flow.facts.get("acks_missing")) or seen < SEEN * (flow.bytes or 0)


def _by_flights(
    flow: ObservedFlow, path: FittedPath, held: Mapping[Cause, float], seen: tuple[Floats, Floats, Floats]
) -> tuple[Mapping[Cause, bool], Doubt]:
    """What the flights of round trips (:func:`windows_of_trips`), seen elsewhere than at the sender, speak against, and the doubt."""
    flights, least, rates = seen
    alike = float(np.mean(np.abs(flights / np.median(flights) - 1) < LEVEL))
    is_left = float(np.median(least)) > float(flow.facts.get("segment_size") or 0.0)
    is_same_left = alike >= STILL and is_left and turns_vary(flow)
    is_same = not is_left and float(np.mean(flights == np.median(flights))) >= CONSTANT
    is_released = is_same and not (flow.sends_back or begins_by_itself(flow)) and echo_ms(flow).size >= LEAST_BURSTS  # as many bytes by the last ACKs
    is_by_clock = is_clocked(flow, path) and not is_a_turn_apart(flow, path)
    if held.get("application", 0.0) >= SURE and (is_same_left or is_released) and not is_by_clock:
        return {"application": True}, "constant_flight"
    fills = path.rate_mbps is not None and (flow.goodput_mbps or 0.0) > NEARLY * path.rate_mbps.value
    if held.get("congestion_window", 0.0) >= SURE:
        segments = float(np.median(flights)) / max(float(flow.facts.get("segment_size") or 0.0), 1.0)
        is_still = alike >= STILL and outlasts(alike * flights.size, segments, flow.facts.get("losses") or 0)
        if not flow.facts.get("losses"):
            is_still = is_still or stands_still(flights * segments / np.median(flights))
        if flow.facts.get("losses") and is_left:  # a control that measures delays keeps its window behind a bottleneck that it fills
            is_still = is_still and not comes_evenly(flow)
        return {"congestion_window": is_still and not fills}, "constant_flight"
    low, high = np.quantile(rates, (0.1, 0.9)) / max(float(np.median(rates)), 1.0)
    is_silent = silence(flow, path) >= SILENT * held.get("application", 0.0) > 0
    is_follower = not is_silent and np.median(least / flights) > EMPTIED and high - low > UNSTEADY
    is_timed = fills and stamps_beat(flow)  # the bottleneck has smoothed what tells a clock's bursts from a buffer's
    return {"send_buffer": alike < CONSTANT or is_late(flow) or is_timed, "application": bool(is_follower) or is_served(flow, path)}, "end_of_writes"


def _is_held(flow: ObservedFlow, path: FittedPath, held: Mapping[Cause, float]) -> bool:
    """Whether what seems a congestion window at the sender stays as it is without a loss, below what the default send buffer holds."""
    is_small = (flow.facts.get("flight_max") or 0) < DEFAULT_SEND_BUFFER and not flow.facts.get("losses")
    seen = windows_of_trips(flow) if is_small and held.get("congestion_window", 0.0) >= SURE else None
    return seen is not None and bool(_by_flights(flow, path, {"congestion_window": 1.0}, seen)[0].get("congestion_window"))


def _likely_spaces(control: RecognisedControl | None) -> bool:
    """Whether the control is one that spaces its segments itself, or likely is one."""
    if control is None:
        return False
    likely = next(iter(control.candidates), UNKNOWN) if control.confidence >= LIKELY else UNKNOWN
    return spaces(control.name) or spaces(likely)


def _without(flow: ObservedFlow, denied: set[Cause], doubt: Doubt) -> ObservedFlow:
    """The flow, with the time of these causes unknown for that reason."""
    if not denied:
        return flow
    intervals = joined(replace(one, cause="unknown") if one.cause in denied else one for one in flow.limits)
    return replace(flow, limits=intervals, facts={**flow.facts, "limits_doubt": doubt})


def paces(flow: ObservedFlow, control: RecognisedControl | None = None) -> bool | None:
    """Whether the sender spaces its segments: by the name of its control, or by probes for the least RTT; None where neither tells."""
    if control is not None and control.name != UNKNOWN and control.confidence >= SURE:
        return spaces(control.name)
    if probes(flow):
        return True
    return False if flow.vantage == "sender" and is_steady(flow) else None


def is_alone(flow: ObservedFlow) -> bool:
    """Whether nearly each segment is not full and was sent when nothing else was under way."""
    flight, size = (np.asarray(flow.segments.get(name, ()), dtype=np.float64) for name in ("flight", "len"))
    full = float(flow.facts.get("segment_size") or 0.0)
    return flight.size == size.size > 0 and bool(np.mean((flight <= size) & (size < full)) >= CLOCKED)


def _untold(flow: ObservedFlow, path: FittedPath, held: Mapping[Cause, float]) -> set[Cause]:
    """What a sender seen elsewhere without timestamps may have waited for as well: an application, where an ACK seems to have been, or the reverse.

    Nothing shows which ACK a segment answers, nor for how long a busy path delayed it: only silences longer than that takes are an application's.
    Where a busy bottleneck serves the segments and pauses lie between, it makes a window's even stream of any burst that was written. Where nothing
    is lost and pauses show that no bottleneck is full, a window grows, and the rate with it.
    """
    ends = held.get("application", 0.0) + held.get("send_buffer", 0.0)
    if flow.facts.get("timestamps") is not False or is_clocked(flow, path):
        return set()
    if held.get("congestion_window", 0.0) >= SURE and never_grows(flow, path):
        return {"congestion_window"}
    if held.get("congestion_window", 0.0) >= SURE and ends + held.get("unknown", 0.0) >= PAUSED and is_served(flow, path):
        return {"send_buffer", "application", "congestion_window"}
    return {"send_buffer", "application"} if ends >= SURE and silence(flow, path) < SILENT * ends else set()


def silence(flow: ObservedFlow, path: FittedPath) -> float:
    """Share of the time that is the application's, and between segments that are farther apart than an ACK's way to the sender and back takes."""
    t = np.sort(np.asarray(flow.segments["t"], dtype=np.float64)) / 1e9
    rtt_s = max(usual_rtt_s(flow), path.rtt_ms.value / 1e3 if path.rtt_ms else 0.0)
    gaps = np.diff(t)
    silent = np.concatenate(([0.0], np.cumsum(np.where(gaps > max(SILENCE_S, SILENCE_RTTS * rtt_s), gaps, 0.0))))
    ends = np.array([(one.start_s, one.end_s) for one in flow.limits if one.cause == "application"]).reshape(-1, 2)
    return float(np.sum(np.diff(np.interp(ends, t, silent)))) / max(sum(one.end_s - one.start_s for one in flow.limits), 1e-9)


def spaces(control: str) -> bool:
    """Whether this congestion control spaces its segments itself."""
    return control.startswith(PACED)


def is_steady(flow: ObservedFlow) -> bool:
    """Whether the rate of departures never changes: a control that paces tries more and less in turn, an application that writes by a clock does not.

    Rates are taken over a round trip and compared with the ones before; with fewer than ten segments a round trip nothing can be told.
    """
    t = np.asarray(flow.segments.get("t", ()), dtype=np.float64) / 1e9
    bin_s = usual_rtt_s(flow)
    if len(t) < 2 or t[-1] <= t[0] or not 10 * (t[-1] - t[0]) / len(t) <= bin_s <= (t[-1] - t[0]) / 16:
        return False
    bins = edges(t[0], t[-1], bin_s)
    rates = np.histogram(t, bins, weights=np.asarray(flow.segments["len"], dtype=np.float64))[0]
    changes = np.abs(np.diff(rates)) / max(float(np.median(rates)), 1.0)
    return bool(np.quantile(changes, 0.8) < STEADY)


def probes(flow: ObservedFlow) -> list[float]:
    """When the flow probed for the least RTT, s; empty where its dips come at other intervals than such probes do."""
    t = np.asarray(flow.segments.get("t", ()), dtype=np.float64) / 1e9
    if len(t) < 50 or not FIRST_PROBE_S <= t[-1] - t[0] <= SPARSE_S * len(t):
        return []
    bins = edges(t[0], t[-1] + BIN_S, BIN_S)
    rates = np.histogram(t, bins, weights=np.asarray(flow.segments["len"], dtype=np.float64))[0]
    least_bytes = (flow.facts.get("segment_size") or 0) / (flow.facts.get("segment_stride") or 1)  # of the segments that are kept
    found = [float(bins[k]) for k in _dips(rates, usual_rtt_s(flow), least_bytes) if not _times_out(flow, float(bins[k]))]
    return found if _is_regular(flow, found, float(t[0]), float(t[-1])) else []


def _is_regular(flow: ObservedFlow, found: Sequence[float], start: float, end: float) -> bool:
    """Whether dips come as often as probes do; a single one must be where the first probe of a connection is."""
    if any(not PROBE_EVERY_S[0] <= b - a <= PROBE_EVERY_S[1] for a, b in pairwise(found)) or not found:
        return False
    is_first = not flow.facts.get("begins_in_mid_connection", True) and FIRST_PROBE_S <= found[0] - start <= PROBE_EVERY_S[1]
    return (len(found) > 1 or is_first) and end - found[-1] <= PROBE_EVERY_S[1]


def _dips(rates: NDArray[np.float64], rtt_s: float, least_bytes: float) -> Iterable[int]:
    """Where the rate falls for about 200 ms, not below this many bytes a round trip, and comes back at once."""
    span = max(10, int(3 * rtt_s / BIN_S))
    k = span
    while k < len(rates) - span:
        before = rates[k - span : k].mean()
        if before <= 0 or rates[k] >= DEEP * before:
            k += 1
            continue
        end = k
        while end < len(rates) and rates[end : end + 2].mean() < 0.5 * before:
            end += 1
        after = rates[end : end + span]
        is_back = len(after) == span and after.mean() > BACK * before and after[:3].max() > 0.8 * before
        is_busy = float(rates[k:end].sum()) >= least_bytes * max(1.0, (end - k) * BIN_S / max(rtt_s, BIN_S))
        if is_back and is_busy and PROBE_S[0] <= (end - k) * BIN_S <= PROBE_S[1] + 2 * rtt_s:
            yield k
        k = end + 1


def _times_out(flow: ObservedFlow, at: float) -> bool:
    """Whether a timeout is near."""
    kinds = np.asarray(flow.events.get("kind", ()))
    times = np.asarray(flow.events.get("t", ()), dtype=np.float64)[kinds == TIMEOUT] / 1e9
    return bool(np.any((times > at - 0.3) & (times < at + 0.8)))


def joined(intervals: Iterable[LimitInterval]) -> tuple[LimitInterval, ...]:
    """Adjacent intervals of one cause as one, with the frames of its first and its last part."""
    out: list[LimitInterval] = []
    for one in intervals:
        if out and out[-1].cause == one.cause and one.start_s <= out[-1].end_s + 1e-9:
            last = out[-1]
            frames = tuple(dict.fromkeys((*last.frames[:2], *one.frames[-2:])))
            out[-1] = LimitInterval(last.start_s, max(last.end_s, one.end_s), last.cause, frames)
        else:
            out.append(one)
    return tuple(out)


def coarser(intervals: Sequence[LimitInterval], least_s: float) -> tuple[LimitInterval, ...]:
    """The intervals for a reader: each cell of `least_s` has the cause that holds most of it; the frames are those of that cause's longest part."""
    if not intervals:
        return ()
    start, end = intervals[0].start_s, intervals[-1].end_s
    cells: list[dict[Cause, float]] = [{} for _ in range(max(1, int(np.ceil((end - start) / least_s - 1e-9))))]
    longest: list[dict[Cause, LimitInterval]] = [{} for _ in cells]
    for one in intervals:
        first, last = int((one.start_s - start) / least_s), min(len(cells) - 1, int((one.end_s - start) / least_s))
        for k in range(first, last + 1):
            held = min(one.end_s, start + (k + 1) * least_s) - max(one.start_s, start + k * least_s)
            if held <= 0:
                continue
            cells[k][one.cause] = cells[k].get(one.cause, 0.0) + held
            best = longest[k].get(one.cause)
            if best is None or one.end_s - one.start_s > best.end_s - best.start_s:
                longest[k][one.cause] = one
    out = []
    for k, cell in enumerate(cells):
        if cell:
            cause = max(cell, key=lambda c: cell[c])
            out.append(LimitInterval(start + k * least_s, min(end, start + (k + 1) * least_s), cause, longest[k][cause].frames))
    return joined(out)


def readable(intervals: Sequence[LimitInterval], most: int) -> tuple[LimitInterval, ...]:
    """At most so many intervals: the finest of 10 ms, 20 ms, 40 ms, … that suffices, and that makes no more than :data:`MOST_CELLS` of the time."""
    found, least_s = tuple(intervals), FINEST_S
    while found and (found[-1].end_s - found[0].start_s) / least_s > MOST_CELLS:
        least_s *= 2
    while len(found) > most:
        found = coarser(intervals, least_s)
        least_s *= 2
    return found


def shares(intervals: Iterable[LimitInterval]) -> dict[Cause, float] | None:
    """Cause → share of the time of all intervals, the largest first; None where there is no time."""
    held: dict[Cause, float] = {}
    for one in intervals:
        held[one.cause] = held.get(one.cause, 0.0) + one.end_s - one.start_s
    total = sum(held.values())
    return {cause: s / total for cause, s in sorted(held.items(), key=lambda pair: -pair[1])} if total > 0 else None


def shares_of(flow: ObservedFlow) -> Mapping[Cause, float]:
    """Cause → share of the flow's time, of its intervals or as its source has the shares alone; empty where nothing is known."""
    return shares(flow.limits) or flow.facts.get("limited_by") or {}
