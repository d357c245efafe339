"""The sentences of why a part of a diagnosis is missing or has its value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from tcpscape.findings.diagnosis.reasons import Reason, Why
from tcpscape.stats import Estimate
from tcpscape.text.numbers import number, percent

ALIKE: Mapping[frozenset[str], str] = {
    frozenset(("reno", "lp")): "Reno or LP: Linux's LP is Reno on nearly every path, as its delays are those of two clocks",
    frozenset(("reno", "dctcp")): "Reno or DCTCP: without marks, DCTCP is Reno",
    frozenset(("lp", "dctcp")): "Reno, LP or DCTCP: Linux's LP is Reno on nearly every path, and DCTCP is without marks",
    frozenset(("scalable", "yeah")): "Scalable or YeAH: while the queue is short, YeAH is Scalable",
}
"""Congestion controls that are the same on some paths → why."""

HELD_FOR: Mapping[str, str] = {"time": "for {} of the time without repairs", "round trips": "in {} of the round trips"}
"""What a share is of → how long a flow was held."""


def text(reason: Reason | None, default: str = "") -> str:
    """The sentence of a reason; the default where there is none."""
    if reason is None:
        return default
    sentence = SENTENCES[reason.why]
    return sentence.format(**reason.values) if isinstance(sentence, str) else sentence(**reason.values)


def brief(reason: Reason | None) -> str:
    """The sentence without what another row of the same table says."""
    return "the RTT of the path is not known" if reason is not None and reason.why == "no RTT of the path" else text(reason)


def _recognised(name: str, rounds: int, cuts: int, close: float, ratio: float) -> str:
    parts = [f"{_count(rounds, 'round trip')} and {_count(cuts, 'reduction')}"]
    if math.isfinite(close):
        parts.append(f"in {percent(close)} of them {name}, told the same ACKs, has the window that was seen, within 3 % or 1.5 packets")
    if math.isfinite(ratio):
        parts.append(f"a reduction leaves {ratio:.2f} of the window")
    if name.startswith("bbr"):
        parts.append("the window does not follow losses, and the sending rate moves in cycles")
    return "; ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _together(names: Sequence[str]) -> str:
    return " and ".join(names) or "every control"


def _few_reductions(names: Sequence[str], cuts: int, rounds: int) -> str:
    verb = "does" if cuts == 1 else "do"
    return f"{_count(cuts, 'reduction')} of the window in {rounds} round trips {verb} not tell {_together(names)} apart"


def _not_at_the_sender(vantage: str) -> str:
    where = {"receiver": "at the receiver", "middle": "on the way"}.get(vantage, "at an unknown place")
    return f"the capture was taken {where}; what is in flight shows there by timestamps of both ends alone, finer than the round trip"


def _vary_in_order(ms: float | None) -> str:
    least = "" if ms is None else f"; the round trip of the empty path is at most {number(ms)} ms"
    return f"the delay varies and packets keep their order, so that other flows in a queue, bursts of the sender and jitter look alike{least}"


def _misses(misses: Sequence[tuple[str, float, Estimate]]) -> str:
    return " ".join(
        f"The replay's {what} is {it.text(unit=it.unit)}, and {number(observed)} {it.unit} was observed." for what, observed, it in misses
    )


SENTENCES: Mapping[Why, str | Callable[..., str]] = {
    "limits unseen": "the source does not show what held the flow",
    "far_from_sender": "seen beside the receiver, which opened the connection, all waits of the sender look alike: capture at the sender",
    "no_timestamps": (
        "without TCP timestamps nothing shows which ACK a segment answers: capture a connection with timestamps"
        " (net.ipv4.tcp_timestamps=1 at both ends), and 128 bytes of each packet"
    ),
    "end_of_writes": (
        "the sender stops as if its application had no more to send or its socket buffer were full, and neither explains how much is in flight"
        " and when it leaves: capture at the sender"
    ),
    "pace_or_application": (
        "a timer spaces the segments, the application's or that of a pace, and no congestion control that paces shows:"
        " `ss -tin` on the sender has its control, and says app_limited where the application writes no more"
    ),
    "constant_flight": (
        "the data in flight do not grow, unlike most congestion windows without a loss: a socket buffer, a pace, the application or a congestion"
        " control that measures delays holds them, and which of them does not show here: `ss -tin` on the sender says app_limited and sndbuf_limited"
    ),
    "small_writes": (
        "each segment leaves alone, not full, when the one before it is acknowledged: so Nagle's algorithm sends small writes"
        " (TCP_NODELAY ends that), and so does a program that waits for answers, or a socket buffer smaller than a segment"
    ),
    "unused_window": (
        "the congestion window stays the same without a loss, and a full one would have grown: the application, a socket buffer at either end or"
        " the sender's own interface holds the flow, not the path behind it"
    ),
    "few_segments": "too few segments were sent to show what their sender waits for again and again: capture a longer transfer",
    "packets_missing": (
        "the capture lacks the acknowledgements, most of the data or all packets of a time, so that a pause in it need be none of the sender's:"
        " capture both directions, with a larger buffer (tcpdump -B)"
    ),
    "data missing": "only acknowledgements of these data are in the capture: capture both directions",
    "few packets": "too few packets in both directions",
    "few delays measured": "too few delays of single packets can be measured",
    "busy at the begin": "the capture begins in mid-connection with a queue that is mostly busy: how long it was at the begin is not known",
    "nothing before the capture": "without timestamps and handshake, the part of the path before the capture is not seen",
    "handshake alone": "the handshake alone shows the base, and the path has jitter: data change their order",
    "short bursts": "the queue was never busy for long against the jitter before it: only short bursts queued",
    "segments discarded": (
        "the receiver discarded segments for their timestamp, and of many others it is not known whether they were lost or passed the bottleneck too"
    ),
    "no queue grew": "no queue was seen to grow whose delay would show the rate",
    "shared queue": (
        "packets wait longer and shorter than behind those of this flow alone, as where others fill the same queue: what fits best may be a share"
        " of its rate"
    ),
    "jitter hidden": lambda ms: (
        f"nearly all packets waited in the queue: that hides a jitter of the data of up to {number(ms, 2)} ms that changes their order,"
        " and any that does not"
    ),
    "coarse clock": lambda ms: f"the capture's clock steps by {number(ms, 2)} ms, which looks like a jitter as small",
    "ends wait": "the sender or the receiver waits before it answers, and jitter cannot be told from that",
    "directions alike": "without timestamps, jitter of the data and of the ACKs cannot be told apart",
    "other direction unresolved": lambda ms: f"one direction has jitter, and the other may have up to {number(ms, 2)} ms that do not show",
    "delays unseen": "the delays of one direction, without a queue's, were not seen well enough",
    "few delays": "too few delays",
    "no jitter": "there is no jitter that could change it",
    "direction unknown": "it is not known which direction has jitter",
    "packets far apart": "packets were too far apart for the jitter to change their order",
    "never filled a queue": "the flow never filled a queue",
    "queue of unknown rate": "packets were lost as a full queue or a policer drops them, and its rate is not known",
    "queue always full": "hardly any packet met a short queue: its drops and random loss cannot be told apart",
    "queue unseen": (
        "no delay that is seen here shows how long the queue was where packets were lost: random loss and the drops of a full queue look alike"
    ),
    "lost together": "packets were lost together, as a policer or a full queue drops them, or a link in bursts, and no delay tells which",
    "few lost": "few packets were lost",
    "policed": "packets were lost when more had been sent than a policer's bucket holds: how many were lost at random besides is not known",
    "repeated without SACK": "without SACK nothing shows which of the packets that were repeated after a timeout had been lost",
    "delays vary in order": _vary_in_order,
    "drops at any length": "drops do not depend on the queue's length",
    "drops at many lengths": "packets were dropped at many lengths of the queue, as active queue management does",
    "waits shorter": "no packet waited as long as the queue at its drops would have taken to drain: bursts or super-packets were counted into it",
    "waits longer": "packets waited longer than the flow's own queue would have taken to drain: other flows' packets were in it too",
    "length unsure": "the rate is not known well enough, or packets are too large, to tell how long the queue was at its drops",
    "seen where it is sent": "the capture is where the acknowledgements are sent: whether they are lost on their way shows at the sender",
    "identification alike": "the IP identification of the receiver's packets does not count them, so that nothing shows which of them are missing",
    "not all captured": "the capture has not all packets, so that those that are missing in it need not be lost",
    "changed": "changed at {at_s:.1f} s from about {before:.4g} to about {after:.4g}; one path was fitted to both sides",
    "carried more": "delays speak for a bottleneck of {rate:.3g} Mbit/s, and the flow carried {goodput:.3g} Mbit/s",
    "samples alone": "Samples of a socket do not show single packets.",
    "other direction": "The samples are of the other direction.",
    "no RTTs": "The source has no RTTs of TCP.",
    "smoothed RTTs": "The source has smoothed RTTs alone: the round trip of the empty path is at most {ms:.3g} ms.",
    "needs base RTT": "It needs the base RTT.",
    "needs rate": "It needs the rate of the bottleneck.",
    "needs queue": "It needs the bottleneck's queue, which does not show.",
    "no bottleneck": "No bottleneck shows.",
    "few losses of the queue": lambda count: f"The queue lost packets {('never', 'once')[count]}: its end does not show.",
    "losses at many lengths": "Losses begin at different lengths of the queue: they are not those of a full buffer alone.",
    "no sign of jitter": "Nothing shows whether the RTT varies by the path or by queueing: no reordering, no falling smallest RTT.",
    "sender paused": "The sender paused so often that ACKs came late for other reasons than jitter.",
    "time on the link": "The deviation of the RTT is not larger than what packets' own time on the link makes of it.",
    "few for losses": "Too few packets or samples to part losses by their causes.",
    "repeated needlessly": "Counters do not tell losses from reordered packets that were repeated needlessly.",
    "queue never short": "The queue was never short, so that its losses hide random ones.",
    "few samples": lambda least, count: f"It takes {least} samples, and there {'is' if count == 1 else 'are'} {count}.",
    "no delivery rate": "The source has no delivery rate.",
    "held by an end": "The application, the receive window or the send buffer held the sender, so that the path was never full.",
    "no ceiling": "The delivery rate has no ceiling at which more data in flight only wait: the path was not full, or its rate changes.",
    "named by the user": "You said so.",
    "named by the source": "The source names it.",
    "recognised": _recognised,
    "no packets": "the source has no packets, and only they show how the window moves",
    "not at the sender": _not_at_the_sender,
    "few seconds": "{seconds:.2g} s are too short for the window to show its law; capture 30 s or more",
    "few round trips": "too few round trips for the window to show its law; capture for longer",
    "application held": lambda share, of: (
        f"the application or the send buffer held the flow {HELD_FOR[of].format(percent(share))}, so that the congestion window hardly shows"
    ),
    "window held": lambda share, of: (
        f"the receive window held the flow {HELD_FOR[of].format(percent(share))}, so that the congestion window hardly shows"
    ),
    "no probes of the RTT": "the sending rate is like BBR's, but the flow never drained its queue for the least RTT, as BBR does every 10 s",
    "begins in mid-connection": (
        "the capture begins in mid-connection and may lack the least RTT by which {name} or another control judges the queue"
    ),
    "alike": lambda names: ALIKE[frozenset(names)],
    "few reductions": _few_reductions,
    "would move alike": lambda names: f"on this path {_together(names)} would have moved the window much alike",
    "family": "Reno, LP or DCTCP without marks: they do the same here, and so does the advice",
    "without SACK": (
        "no acknowledgement shows a block of SACK, and without them the window is not seen while losses are repaired, nor was one learnt so: capture"
        " a connection with SACK, and 128 bytes of each packet"
    ),
    "counts ACKs": lambda name, names: (
        f"{name} grows by the number of ACKs, and {', '.join(names[:-1])} and {names[-1]} did so in kernels before 5.7: they may be it as well"
    ),
    "answers reordering": "most of what it sent again may have come late: what it took back of its reductions after that does not show",
    "small windows": "half of its windows are of {packets:.0f} packets or less, where congestion controls hardly differ",
    "thinned": (
        "the capture has more packets than are kept, of the ACKs one in {every}, and away from the sender each of them counts:"
        " capture 30 s of this flow alone"
    ),
    "both ways": (
        "the receiver sends data of its own, and timestamps do not tell then which of its packets the sender had as it sent: capture at the sender"
    ),
    "reductions unseen": "its windows are like those of {name}, but {cuts} repairs of losses did not make them smaller, as they do with {name}",
    "below the bottleneck": (
        "its segments leave at times of their own as BBR's do, but BBR sends more until a queue grows, and none did:"
        " its application writes so, or the host paces (fq)"
    ),
    "spaced by a timer": lambda name, share: (
        f"its windows are like those of {name}, but a timer spaced the segments for {percent(share)} of the time, as {name} does not do by itself:"
        " it is another control, or the host paces (fq)"
    ),
    "no replay": "no replay was asked for",
    "control not known": "The congestion control is not known, so there is nothing to repeat; name it with --cca where you know it.",
    "control not in the engine": "The {engine} engine has no congestion control {name}.",
    "no RTT of the path": lambda reason: f"The RTT of the path is not known: {text(reason, 'nothing shows it').rstrip('.')}.",
    "RTT of 0": "The path's RTT is not above 0.",
    "no goodput": "The source does not show how much the flow carried over a time, so there is nothing to compare a replay with.",
    "nothing carried": "The flow carried nothing that could be repeated.",
    "none repeats": lambda names: (
        f"The congestion control is not known, and {' and '.join(names)} {'does' if len(names) == 1 else 'do'} not repeat the observation; name it"
        " if it is another one (--cca)."
    ),
    "misses": _misses,
    "no cliff of an unknown control": "The congestion control is not known, and each has a cliff of its own.",
    "unlike the observation": "The replay does not repeat the observation, so its runs tell nothing about the side of the cliff.",
    "full segment": "a full segment has {bytes} bytes",
    "negotiated": "negotiated in the handshake",
    "application limited": lambda share: f"the application limited the flow for {100 * share:.0f} % of its time",
    "slow reader": lambda share: f"the receive window limited the flow for {100 * share:.0f} % of its time, far below its largest: a slow reader",
    "largest window": "allows the largest window that was offered, {bytes} bytes, by the model of Linux {profile}",
    "largest flight": "allows the largest flight that was seen, {bytes} bytes, by the model of Linux {profile}",
}
"""Why → the sentence, with the names of its values."""
