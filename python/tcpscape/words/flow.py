"""A diagnosed flow in three sentences that everyone can act on: what the path is, what limits the flow, what would be better."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tcpscape.findings.advice.choice import ChoiceVerdict
from tcpscape.findings.diagnosis.diagnosis import FlowDiagnosis
from tcpscape.findings.diagnosis.fitted import UNKNOWN, Alternative, FittedPath, RecognisedControl, ReplayAdvice, Withheld
from tcpscape.findings.diagnosis.limits import DEFAULT_SEND_BUFFER
from tcpscape.findings.diagnosis.observed import Cause
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.findings.diagnosis.sender_side import observed_rtt
from tcpscape.stats import Estimate
from tcpscape.text.numbers import joined, number, percent
from tcpscape.words import path_words, reasons

CLEAR = 1.05
"""Gain from which a setting is named beside the congestion control."""
VERDICTS: Mapping[ChoiceVerdict, str] = {
    "better": "{choice} would carry more than {own}",
    "as good": "No other congestion control carries clearly more than {own}",
    "undecided": "Whether another congestion control would carry more is undecided: the intervals are too wide",
    "only": "No other congestion control that can be deployed comes near {choice} on this path",
    "nothing carried": "What would carry more cannot be told: no congestion control carried anything in the replay",
    "none deployable": "What would carry more cannot be told: no congestion control of this kernel can be compared",
}
"""Verdict on the congestion controls → the sentence about it, where no setting is named."""
WITHHELD: Mapping[str, str] = {
    "differs": "the replay differs",
    "impossible": "the replay is impossible",
    "no replay": "there is no replay",
    "too wide": "the replay agrees by the width of its interval alone, which tells too little of this path",
    "served": "the packets come one by one at equal distances, as from a bottleneck that is full, and its rate does not show",
}
"""Why nothing is advised, in words."""
ASIDE: Mapping[str, str] = {
    "rtt_ms": "RTT",
    "jitter_ms": "jitter",
    "loss_pct": "random loss",
    "rate_mbps": "rate of the bottleneck",
    "buffer_bytes": "its buffer",
}
"""Fields of a path that the first sentence names where they are not identifiable."""
FULL = 0.88
"""Goodput / rate of the bottleneck from which on the bottleneck is full: headers take 4 to 5 %, short pauses of the sender some more."""
SURELY_FULL = 0.9
"""The same from which on it is full whatever seems to hold the sender: little more than headers is missing."""
BLOATED_MS, BLOATED_OF_RTT = 50.0, 1.0
"""Queueing delay, ms, and as a share of the base RTT, above both of which a buffer is called bloated."""
NAMES: dict[Cause, str] = {
    "application": "application",
    "send_buffer": "send buffer",
    "receive_window": "receive window",
    "congestion_window": "congestion window",
    "pacing": "pacing",
    "recovery": "loss recovery",
    "timeout": "timeouts",
    "handshake": "handshake",
    "unknown": "not identifiable",
}
"""Cause → what tables call it."""
WINDOWS: tuple[Cause, ...] = ("receive_window", "send_buffer")
"""Causes that leave a full bottleneck full."""
BLAMED: Mapping[Cause, str] = {
    "application": "the sending application",
    "send_buffer": "the sender's socket buffer",
    "receive_window": "the receiver's window",
    "congestion_window": "the congestion window",
    "recovery": "the repair of losses",
    "timeout": "waiting for retransmission timeouts",
    "pacing": "the sender's own pacing",
    "handshake": "the handshake",
}
"""Cause → what a sentence calls it."""
PATH_AND_CONTROL: tuple[Cause, ...] = ("congestion_window", "pacing", "recovery", "timeout")
"""Causes that the path and the congestion control have in common: a flow goes from one to the other all the time, and they count together."""
IN_TURN = 2 / 3
"""Share of the longest cause's time from which another one is named with it, where none held the flow for most of its time."""
AS_LONG = 3 / 4
"""The same where the longest held it for most of its time."""
FEWEST_LOST, SHOWN_LOST_PCT = 3, 0.01
"""Segments that were surely lost, and % of all, from which on a window is explained by losses of which nobody knows what lost them."""
SOMEHOW: Mapping[str, str] = {
    "policed": "as a policer drops them",
    "lost together": "in groups, as a policer, a full queue or a bursty link loses them",
}
"""Why random loss is not identifiable → how packets were lost."""
SMALL = 0.02
"""Share of the time that is not told apart."""
SOME_CONTROL = "the congestion control"
"""What a sentence calls one that was not named: what most do is not said of it."""
WHETHER = "whether its congestion control makes the window smaller for that is not known"
"""What is said of losses where the control has no name."""
IGNORE_LOSS = ("bbr", "bbr3")
"""Congestion controls that do not take a rare loss for congestion: BBR version 1 none, version 3 none below 2 %."""
UNSEEN = "the source does not show it"
"""Why something is missing of which nothing else is said."""
APPLICATION = "Nothing to change on the path or in TCP: only the application could make it faster."
"""What is advised where the application held the flow for nearly all of its time."""
PAUSES = "Whether another congestion control would carry more does not show: the application pauses, and a replay writes as much as it did."
"""What is said of congestion controls where it held the flow for a part of its time that counts."""
BUFFER = "No other congestion control would carry clearly more; how much more a larger buffer would carry does not show."
"""What is said of them where the buffer of an end holds the flow, and no larger one was run."""
ALLOWED = ", if the sender's socket buffer allows as much"
"""What a larger receive buffer hangs on, as the sender's does not show beside a window that is full."""
ALONE, PAUSED = 0.75, 0.2
"""Share of the time that an application has alone, so that nothing else matters, and from which on it matters beside something else."""
WIDE_GAIN = 3.0
"""Ends of a gain's interval, as a ratio, beyond which its lower end is told alone where the bottleneck's rate is assumed."""
DROPPED_PCT = 1.0
"""Share of the packets that a full queue drops, %, from which on the sentence about it says so."""
UNLESS = ", unless the bottleneck, whose rate does not show, ends that before"
"""What a gain hangs on where the flow never filled its bottleneck."""
HELD = 0.5
"""Share of the time from which a cause is what limits a flow."""


def answer(diagnosis: FlowDiagnosis) -> str:
    """The three sentences in one line."""
    return " ".join((path_sentence(diagnosis), limit_sentence(diagnosis), advice_sentence(diagnosis)))


def path_sentence(diagnosis: FlowDiagnosis) -> str:
    """`Your path has a round trip of 50.1 ms with 3.02 ms of jitter that reorders packets, …`."""
    path = diagnosis.path
    if path is None:
        return f"What your path is cannot be told: {reasons.text(diagnosis.reasons.get('path'), UNSEEN)}."
    parts = path_words.known(path)
    if not parts:
        why = path.reasons.get("rtt_ms") or next(iter(path.reasons.values()), None)
        return f"What your path is cannot be told: {clause(reasons.text(why, UNSEEN))}."
    missing = [name for field, name in ASIDE.items() if getattr(path, field) is None and not (field == "rtt_ms" and path_words.longest_trip(path))]
    aside = f" (not identifiable from this measurement: {', '.join(missing)})" if missing else ""
    return f"Your path has {joined(parts)}{aside}{path_words.changes(path)}."


def advice_sentence(diagnosis: FlowDiagnosis) -> str:
    """`bbr would carry 3.20 × as much as cubic [2.80, 3.60].`, or that there is nothing to change, or why nobody knows."""
    advice = diagnosis.advice
    if is_applications_to_change(diagnosis):
        return APPLICATION
    if advice is None or isinstance(advice.verdict, Withheld):
        return _without_advice(diagnosis)
    setting, is_open = best_setting(diagnosis, advice), hangs_on_rate(diagnosis)
    end = (ALLOWED if setting and setting.name.lower().startswith("receive buffer") else "") + (UNLESS if is_open else "")
    if advice.verdict == "better" and advice.choice and advice.gain:
        more = f"; {_setting(setting, is_open)}" if setting else ""
        if is_open and advice.gain.high > WIDE_GAIN * advice.gain.low:
            least = (
                f"at least {number(advice.gain.low)} × as much as {in_use(diagnosis)}, more where the bottleneck, whose rate does not show, is faster"
            )
            return f"{advice.choice} would carry {least}{more}{end if more else ''}."
        return f"{advice.choice} would carry {_times(advice.gain, in_use(diagnosis))}{more}{end}."
    if setting:
        return f"No other congestion control would carry clearly more, but {_setting(setting, is_open)}{end}."
    own = in_use(diagnosis)
    return _beside_an_end(diagnosis, advice) or f"{VERDICTS[advice.verdict].format(choice=advice.choice or own, own=own)}."


def _beside_an_end(diagnosis: FlowDiagnosis, advice: ReplayAdvice) -> str | None:
    """What is said instead of a verdict on congestion controls where an end holds the flow, and what it would do otherwise was not run."""
    if filled(diagnosis):
        return None
    if advice.verdict == "as good" and is_window_held(diagnosis) and not any("buffer" in one.name.lower() for one in advice.settings):
        return BUFFER
    pauses = (diagnosis.limited_by or {}).get("application", 0.0) >= PAUSED
    return PAUSES if pauses and advice.verdict in ("as good", "undecided") else None


def no_advice(withheld: Withheld) -> str:
    """`no advice, because the replay differs: 5.1 Mbit/s was observed, …`."""
    return f"no advice, because {WITHHELD[withheld.why]}{_colon(reasons.text(withheld.reason))}"


def in_use(diagnosis: FlowDiagnosis) -> str:
    """The congestion control of the flow, or words for it."""
    if diagnosis.control.name != UNKNOWN:
        return diagnosis.control.name
    replay = diagnosis.replay
    return f"{replay.control} (assumed)" if replay and replay.is_assumed else "the congestion control in use"


def best_setting(diagnosis: FlowDiagnosis, advice: ReplayAdvice) -> Alternative | None:
    """The setting with the largest gain, where that is clear and more than the chosen congestion control's; a buffer, where one holds the flow."""
    beaten = advice.gain.value if advice.verdict == "better" and advice.gain else CLEAR
    clear = [s for s in advice.settings if s.gain.low >= CLEAR and s.gain.value > beaten]
    if is_window_held(diagnosis):
        clear = [s for s in clear if "buffer" in s.name.lower()]
    return max(clear, key=lambda s: s.gain.value, default=None)


def _without_advice(diagnosis: FlowDiagnosis) -> str:
    """Why nothing is advised; where the bottleneck is full, that nothing has to be."""
    if filled(diagnosis) and not contradicted(diagnosis):
        return "No congestion control can carry much more than that."
    withheld = diagnosis.advice.verdict if diagnosis.advice else None
    if isinstance(withheld, Withheld):
        is_told = diagnosis.path is None or not path_words.known(diagnosis.path)  # the first sentence has the reason
        why = clause(reasons.brief(withheld.reason) if is_told else reasons.text(withheld.reason))
    else:
        why = clause(reasons.text(diagnosis.reasons.get("advice"), "there was no replay"))
    if isinstance(withheld, Withheld) and withheld.why != "no replay":
        why = f"{WITHHELD[withheld.why]}{_colon(why)}"
    if holds(diagnosis, "receive_window") or holds(diagnosis, "send_buffer"):
        return f"How much more that would carry is not known: {why}."
    return f"What would carry more is not known: {why}."


def _setting(setting: Alternative, is_open: bool) -> str:
    name = setting.name[:1].lower() + setting.name[1:]
    gain = f"{setting_gain(setting, is_open)} as much" if is_open else _times(setting.gain)
    return f"this setting would carry {gain}: {name}"


def hangs_on_rate(diagnosis: FlowDiagnosis) -> bool:
    """Whether a gain hangs on the rate of a bottleneck that was not seen."""
    return diagnosis.path is None or diagnosis.path.rate_mbps is None


def setting_gain(setting: Alternative, is_open: bool) -> str:
    """`4.14 × [4.10, 4.18]`; of a bottleneck whose rate is not known, `is_open`, `about 4.14 ×`: its runs are on one assumed rate."""
    return f"about {number(setting.gain.value)} ×" if is_open else setting.gain.text(unit="×")


def _times(gain: Estimate, other: str = "") -> str:
    """`3.20 × as much as cubic [2.80, 3.60]`."""
    return gain.text(unit=f"× as much{f' as {other}' if other else ''}")


def _colon(text: str) -> str:
    return f": {text}" if text else ""


def clause(text: str) -> str:
    """A sentence as a clause: without its full stop, with a small letter where a word begins it."""
    text = text.strip().removesuffix(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def holds(diagnosis: FlowDiagnosis, cause: Cause) -> bool:
    """Whether a cause held the flow most of the time."""
    return bool(diagnosis.limited_by) and (diagnosis.limited_by or {}).get(cause, 0.0) >= HELD


def is_application_alone(diagnosis: FlowDiagnosis) -> bool:
    """Whether the application held the flow for nearly all of its time."""
    return (diagnosis.limited_by or {}).get("application", 0.0) >= ALONE


def is_applications_to_change(diagnosis: FlowDiagnosis) -> bool:
    """Whether only the application could make the flow faster, whatever a replay on the assumed path would carry."""
    return is_application_alone(diagnosis) and not contradicted(diagnosis)


def is_window_held(diagnosis: FlowDiagnosis) -> bool:
    """Whether the buffer of an end held the flow most of the time."""
    return any(holds(diagnosis, cause) for cause in WINDOWS)


def _shares(diagnosis: FlowDiagnosis) -> dict[Cause, float]:
    """Cause → share of the time, with what is unknown where that is a doubt."""
    return {cause: share for cause, share in (diagnosis.limited_by or {}).items() if share > 0 and (cause != "unknown" or diagnosis.doubt)}


def limit_sentence(diagnosis: FlowDiagnosis) -> str:
    """`What limits you is the receive window (82 % of the time): …`, or that it is not identifiable, and which capture would tell."""
    shares = _shares(diagnosis)
    top, second = _longest(shares)
    is_open = top in (None, "congestion_window", "pacing", "recovery")
    if (fill := filled(diagnosis)) and (is_open or _share_of_rate(diagnosis) >= SURELY_FULL):
        get = number(diagnosis.flow.goodput_mbps or 0.0)
        if contradicted(diagnosis):
            held = f"{NAMES['application']} held the flow for {percent(shares['application'])} of the time"
            return f"What limits you is not identifiable here: you get {get} of the bottleneck's {fill} Mbit/s, as if it were full, and yet {held}."
        more = f"{_held_too(diagnosis)}{_drops(diagnosis)}{_bloat(diagnosis)}"
        return f"What limits you is the bottleneck: it is full, you get {get} of its {fill} Mbit/s{more}."
    if top == "unknown" and diagnosis.doubt:
        return f"What limits you is not identifiable here: {reasons.text(Reason(diagnosis.doubt))}."
    if not top:
        return f"What limits you cannot be told: {reasons.text(diagnosis.reasons.get('limited_by'), UNSEEN).removesuffix('.')}."
    return f"What limits you is {_because(diagnosis, top, f'{percent(shares[top])} of the time{_turn(shares, top, second)}')}."


def _turn(shares: Mapping[Cause, float], top: Cause, second: Cause | None) -> str:
    """`, with pacing and repairs 49 %, in turn with the sending application, 45 %`; empty where nothing held the flow nearly as long."""
    if second is None:
        return ""
    together = sum(shares.get(cause, 0.0) for cause in PATH_AND_CONTROL) if top in PATH_AND_CONTROL else 0.0
    more = f", with pacing and repairs {percent(together)}" if together > shares[top] + SMALL else ""
    return f"{more}, in turn with {BLAMED[second]}, {percent(shares[second])}"


def _longest(shares: Mapping[Cause, float]) -> tuple[Cause | None, Cause | None]:
    """What held a flow longest, and what held it nearly as long."""
    sides = [PATH_AND_CONTROL, *((cause,) for cause in shares if cause not in PATH_AND_CONTROL)]
    held = {max(side, key=lambda cause: shares.get(cause, 0.0)): sum(shares.get(cause, 0.0) for cause in side) for side in sides}
    first, second = [*sorted((cause for cause, share in held.items() if share > 0), key=lambda cause: -held[cause]), None, None][:2]
    if first is None or second is None or second not in BLAMED or held[second] < (IN_TURN if held[first] < HELD else AS_LONG) * held[first]:
        return first, None
    return first, second


def _held_too(diagnosis: FlowDiagnosis) -> str:
    """What an end's buffer has to do with a full bottleneck: it held the flow, and a larger one would bring a longer queue alone."""
    held = next((cause for cause in WINDOWS if holds(diagnosis, cause)), None)
    if held is None and diagnosis.doubt and holds(diagnosis, "unknown"):
        return f" (what keeps its queue as it is, the congestion window or {BLAMED['send_buffer']}, does not show here)"
    if held is None:
        return ""
    share = percent((diagnosis.limited_by or {})[held])
    beside = f" or {BLAMED['send_buffer']}, whose default ends about there too," if _may_be_buffer(diagnosis, held) else ""
    return f" ({BLAMED[held]}{beside} held the flow for {share} of the time too: a larger one would only make the queue longer)"


def contradicted(diagnosis: FlowDiagnosis) -> bool:
    """Whether the flow seems to fill the bottleneck, and yet its application had nothing to send for most of the time."""
    return bool(filled(diagnosis)) and holds(diagnosis, "application")


def filled(diagnosis: FlowDiagnosis) -> str:
    """The bottleneck's rate in Mbit/s, where the flow fills it; otherwise empty."""
    rate = diagnosis.path.rate_mbps if diagnosis.path else None
    return number(rate.value) if rate and _share_of_rate(diagnosis) >= FULL else ""


def _share_of_rate(diagnosis: FlowDiagnosis) -> float:
    """Goodput / the bottleneck's rate; 0 where one of them is not known."""
    rate, goodput = diagnosis.path.rate_mbps if diagnosis.path else None, diagnosis.flow.goodput_mbps
    return goodput / rate.value if rate and goodput and rate.value > 0 else 0.0


def _drops(diagnosis: FlowDiagnosis) -> str:
    """`, and its full queue drops 4.2 % of the packets`, where those are many beyond doubt; as in :func:`dropping`, not `full` of a managed one."""
    if (dropped := _dropped_pct(diagnosis)) < DROPPED_PCT:
        return ""
    return f", and its {_filling(diagnosis.path)}queue drops {number(dropped, 2)} % of the packets"


def queueing_ms(diagnosis: FlowDiagnosis) -> float | None:
    """What the median RTT is above that of the empty path, ms; None where one of them is not known."""
    base = diagnosis.path.rtt_ms if diagnosis.path else None
    median = diagnosis.replay.observed_rtt_ms if diagnosis.replay else observed_rtt(diagnosis.flow)
    return None if base is None or median is None else max(0.0, median - base.value)


def is_bloated(diagnosis: FlowDiagnosis) -> bool:
    """Whether the flow's queue adds more delay than the path has."""
    queued, base = queueing_ms(diagnosis), diagnosis.path.rtt_ms if diagnosis.path else None
    return queued is not None and base is not None and queued > max(BLOATED_MS, BLOATED_OF_RTT * base.value)


def _bloat(diagnosis: FlowDiagnosis) -> str:
    """What the queue adds to the RTT, where that is much."""
    if not is_bloated(diagnosis):
        return ""
    added = number(queueing_ms(diagnosis) or 0.0, 2)
    return f"; the queue there adds {added} ms to every round trip (bufferbloat): a smaller buffer or fq_codel would shorten it"


def _because(diagnosis: FlowDiagnosis, cause: Cause, share: str) -> str:
    """The cause with its share of the time, the reason and the remedy."""
    control = _named(diagnosis.control)
    kept = ", and keep-alives alone followed" if diagnosis.flow.facts.get("keep_alives") else ""
    why = {
        "application": f": it offers no more data{', so a faster path would carry no more' if is_application_alone(diagnosis) else ' then'}",
        "send_buffer": f"{_needs(diagnosis)}: allow more there (SO_SNDBUF, net.ipv4.tcp_wmem)",
        "receive_window": _reader(diagnosis),
        "recovery": _why_lost(diagnosis, control),
        "timeout": _why_lost(diagnosis, control),
        "pacing": f": {control} sends at the rate that it has measured, not faster" if control != SOME_CONTROL else ": a timer spaces its segments",
        "handshake": ": all that it had to send left with it" + kept if kept else ": the connection was too short to become fast",
    }.get(cause, _why_small(diagnosis, control))
    if cause == "recovery" and (late := _late(diagnosis, control)):
        return f"the repair of what was not lost ({share}){late}"
    beside = f" or {BLAMED['send_buffer']}, whose default ends about there too" if _may_be_buffer(diagnosis, cause) else ""
    return f"{BLAMED.get(cause, BLAMED['congestion_window'])}{beside} ({share}){why}"


def _may_be_buffer(diagnosis: FlowDiagnosis, cause: Cause) -> bool:
    """Whether a window is so large that Linux's default send buffer ends with it: full segments wait for the one as for the other.

    A congestion window that losses made smaller had not reached that buffer, and a window that was closed is what held the flow.
    """
    facts = diagnosis.flow.facts
    if cause == "receive_window":
        return not facts.get("zero_windows") and max(facts.get("flight_max") or 0, facts.get("window_max") or 0) >= DEFAULT_SEND_BUFFER
    return cause == "congestion_window" and not facts.get("losses") and (facts.get("flight_max") or 0) >= DEFAULT_SEND_BUFFER


def _needs(diagnosis: FlowDiagnosis) -> str:
    """`; the path needs at least 125 kB`, where rate and RTT are known."""
    path = diagnosis.path
    if path is None or path.rate_mbps is None or path.rtt_ms is None:
        return ""
    return f"; the path needs at least {number(path.rate_mbps.value * path.rtt_ms.value / 8)} kB"


def _reader(diagnosis: FlowDiagnosis) -> str:
    closed = diagnosis.flow.facts.get("zero_windows") or 0
    if closed:
        return f": it was closed {'once' if closed == 1 else f'{closed} times'}, since the receiving application reads too slowly"
    larger = "allow a larger receive buffer (SO_RCVBUF, net.ipv4.tcp_rmem)"
    if _may_be_buffer(diagnosis, "receive_window"):
        larger += " and send buffer (net.ipv4.tcp_wmem)"
    return f"{_needs(diagnosis)}: {larger}, unless its application reads too slowly (Recv-Q of `ss -tn` there)"


def _reorders(diagnosis: FlowDiagnosis) -> bool:
    path = diagnosis.path
    return path is not None and path.order_kept is False and path.jitter_on in ("forward", "both")


def _is_past_cliff(diagnosis: FlowDiagnosis) -> bool:
    return diagnosis.zone is not None and diagnosis.zone.side in ("chaos zone", "collapsed") and _reorders(diagnosis)


def _loses(diagnosis: FlowDiagnosis) -> bool:
    """Whether the path loses at random, beyond doubt."""
    path = diagnosis.path
    if path is None or path.loss_pct is None:
        return False
    return path.loss_pct.low > 0 or (math.isnan(path.loss_pct.low) and path.loss_pct.value > 0)


def _why_lost(diagnosis: FlowDiagnosis, control: str) -> str:
    if _is_past_cliff(diagnosis):
        return f": most were none, jitter puts packets out of order and {control} takes that for loss"
    path = diagnosis.path
    parts = []
    if path and path.loss_pct and _loses(diagnosis):
        parts.append(f"the path loses {number(path.loss_pct.value, 2)} % of the packets at random")
    if dropped := _dropped_pct(diagnosis):
        parts.append(f"{dropping(path)} drops {number(dropped, 2)} %{'' if parts else ' of the packets'}{_others_lost(path)}")
    return f": {' and '.join(parts)}" if parts else _lost_somehow(diagnosis)


def _lost_somehow(diagnosis: FlowDiagnosis) -> str:
    """How many packets were lost, where it is not identifiable by what; empty where few surely were. Some of the losses may be no losses."""
    flow, path = diagnosis.flow, diagnosis.path
    share = 100 * flow.surely_lost / max(1, flow.facts.get("segments") or 0)
    if flow.surely_lost < FEWEST_LOST or share < SHOWN_LOST_PCT or flow.answers_reordering:
        return ""
    why = path.reasons.get("loss_pct") if path and path.loss_pct is None else None
    how = SOMEHOW.get(why.why if why else "", "at random or in a full queue")
    most = 100 * (flow.facts.get("losses") or 0) / max(1, flow.facts.get("segments") or 0)
    least, up_to = number(share, 2), number(most, 2)
    return f": {least if least == up_to else f'between {least} and {up_to}'} % of the packets were lost, {how}"


def _late(diagnosis: FlowDiagnosis, control: str) -> str:
    """Why nothing or little of what was sent again had been lost: data came in another order; empty where losses explain most of it.

    Of the losses that are counted, so many as are uncertain may have been segments that came late.
    """
    flow = diagnosis.flow
    if not flow.answers_reordering or _loses(diagnosis) or _dropped_pct(diagnosis):
        return ""
    again, lost = flow.facts["retransmissions"], flow.surely_lost or "none"
    return f": packets came in another order, and {control} takes that for loss; of {again} sent again, {lost} had surely been lost"


def _others_lost(path: FittedPath | None) -> str:
    """What beside a queue's drops was lost too, by what nobody knows."""
    why = path.reasons.get("loss_pct") if path and path.loss_pct is None else None
    return ", others are lost in groups that no delay explains" if why and why.why == "lost together" else ""


def _dropped_pct(diagnosis: FlowDiagnosis) -> float:
    """What full queues dropped beyond doubt, % of the packets; 0 where that is not known."""
    path = diagnosis.path
    lost = path.queue_loss_pct if path else None
    return lost.value if lost and lost.low != 0 else 0.0  # from 0 on: it may as well be the path's


def dropping(path: FittedPath | None) -> str:
    """`the full queue of the bottleneck`, without `full` where active queue management drops at many lengths; or what else drops by load."""
    if path and path.rate_mbps is None:
        return "a full queue, a policer or a bursty link"
    return f"the {_filling(path)}queue of the bottleneck"


def _filling(path: FittedPath | None) -> str:
    """`full `, or nothing of a queue that drops at many lengths."""
    why = path.reasons.get("buffer_bytes") if path else None
    return "" if why and why.why == "drops at many lengths" else "full "


def _named(control: RecognisedControl) -> str:
    """What a sentence calls a congestion control: its name, those of a family that do the same, or words for an unknown one."""
    if control.name != UNKNOWN:
        return control.name
    if control.reason and control.reason.why == "family":
        return f"{SOME_CONTROL} (Reno, LP or DCTCP)"
    return SOME_CONTROL


def _answers(control: str) -> str:
    """What the congestion control does about losses."""
    if control == SOME_CONTROL:
        return f"; {WHETHER}"
    return "" if control in IGNORE_LOSS else f", and {control} makes its window smaller after each loss"


def _why_small(diagnosis: FlowDiagnosis, control: str) -> str:
    if _is_past_cliff(diagnosis):
        return f": jitter puts packets out of order, {control} takes that for loss and keeps its window small (the jitter cliff)"
    path = diagnosis.path
    random = path.loss_pct.value if path and path.loss_pct and _loses(diagnosis) else 0.0
    if (dropped := _dropped_pct(diagnosis)) > random:
        others = f" and the path loses {number(random, 2)} % at random" if random else _others_lost(path)
        return f": {dropping(path)} drops {number(dropped, 2)} % of the packets{others}{_answers(control)}{_bloat(diagnosis)}"
    if random and control == SOME_CONTROL:
        return f": the path loses {number(random, 2)} % of the packets at random{_answers(control)}"
    if random and control not in IGNORE_LOSS:
        return f": {control} takes the random loss of {number(random, 2)} % for congestion and keeps its window small"
    if control not in IGNORE_LOSS and (lost := _lost_somehow(diagnosis)):
        return f"{lost}{_answers(control)}"
    return f": {control} allows no more packets on their way at a time"


def frame_notes(one: FlowDiagnosis) -> list[tuple[int, str]]:
    """What a diagnosis says of single frames: the whole of it at the flow's first frame, and where its path changed."""
    frames = one.flow.segments.get("frame")
    first = [(int(frames[0]), f"diagnosis of this flow: {answer(one)}")] if frames is not None and len(frames) else []
    changes = one.path.changes if one.path else ()
    return [*first, *((change.frame, f"the path changed: {path_words.change_text(change)}") for change in changes if change.frame)]
