"""What limits a flow, as one sentence: the cause that held it longest, why, and what to do about it."""

from __future__ import annotations

import math

from tcpscape.findings.diagnosis.diagnosis import DOUBTS, FlowDiagnosis
from tcpscape.findings.diagnosis.fitted import UNKNOWN
from tcpscape.findings.diagnosis.observed import Cause
from tcpscape.findings.diagnosis.replay import observed_rtt
from tcpscape.text.numbers import number, percent

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
IGNORE_LOSS = ("bbr", "bbr3")
"""Congestion controls that do not take a rare loss for congestion: BBR version 1 none, version 3 none below 2 %."""
HELD = 0.5
"""Share of the time from which a cause is what limits a flow."""


def holds(diagnosis: FlowDiagnosis, cause: Cause) -> bool:
    """Whether a cause held the flow most of the time."""
    return bool(diagnosis.limited_by) and (diagnosis.limited_by or {}).get(cause, 0.0) >= HELD


def sentence(diagnosis: FlowDiagnosis) -> str:
    """`What limits you is the receive window (82 % of the time): …`, or that it is not identifiable, and which capture would tell."""
    shares = {cause: share for cause, share in (diagnosis.limited_by or {}).items() if share > 0 and (cause != "unknown" or diagnosis.doubt)}
    top = max(shares, key=lambda cause: shares[cause], default=None)
    is_open = top in (None, "congestion_window", "pacing", "recovery")
    if (fill := filled(diagnosis)) and (is_open or _share_of_rate(diagnosis) >= SURELY_FULL):
        get = number(diagnosis.flow.goodput_mbps or 0.0)
        return f"What limits you is the bottleneck: it is full, you get {get} of its {fill} Mbit/s{_bloat(diagnosis)}."
    if top == "unknown" and diagnosis.doubt:
        return f"What limits you is not identifiable here: {DOUBTS[diagnosis.doubt]}."
    if not top:
        return f"What limits you cannot be told: {diagnosis.reasons.get('limited_by', 'the source does not show it').removesuffix('.')}."
    return f"What limits you is {_because(diagnosis, top, percent(shares[top]))}."


def filled(diagnosis: FlowDiagnosis) -> str:
    """The bottleneck's rate in Mbit/s, where the flow fills it; otherwise empty."""
    rate = diagnosis.path.rate_mbps if diagnosis.path else None
    return number(rate.value) if rate and _share_of_rate(diagnosis) >= FULL else ""


def _share_of_rate(diagnosis: FlowDiagnosis) -> float:
    """Goodput / the bottleneck's rate; 0 where one of them is not known."""
    rate, goodput = diagnosis.path.rate_mbps if diagnosis.path else None, diagnosis.flow.goodput_mbps
    return goodput / rate.value if rate and goodput and rate.value > 0 else 0.0


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
    return f"; the queue there adds {added} ms to every round trip (bufferbloat): a smaller buffer or fq_codel would end that"


def _because(diagnosis: FlowDiagnosis, cause: Cause, share: str) -> str:
    """The cause with its share of the time, the reason and the remedy."""
    control = "the congestion control" if diagnosis.control.name == UNKNOWN else diagnosis.control.name
    what, why = {
        "application": ("the sending application", ": it offers no more data, so a faster path would carry no more"),
        "send_buffer": ("the sender's socket buffer", f"{_needs(diagnosis)}: allow more there (SO_SNDBUF, net.ipv4.tcp_wmem)"),
        "receive_window": ("the receiver's window", _reader(diagnosis)),
        "recovery": ("the repair of losses", _why_lost(diagnosis, control)),
        "timeout": ("waiting for retransmission timeouts", _why_lost(diagnosis, control)),
        "pacing": ("the sender's own pacing", f": {control} sends at the rate that it has measured, not faster"),
        "handshake": ("the handshake", ": the connection was too short to become fast"),
    }.get(cause, ("the congestion window", _why_small(diagnosis, control)))
    return f"{what} ({share} of the time){why}"


def _needs(diagnosis: FlowDiagnosis) -> str:
    """`; the path needs at least 125 kB`, where rate and RTT are known."""
    path = diagnosis.path
    if path is None or path.rate_mbps is None or path.rtt_ms is None:
        return ""
    return f"; the path needs at least {number(path.rate_mbps.value * path.rtt_ms.value / 8)} kB"


def _reader(diagnosis: FlowDiagnosis) -> str:
    closed = diagnosis.flow.facts.get("zero_windows") or 0
    if closed:
        return f": it was closed {closed} times, since the receiving application reads too slowly"
    return f"{_needs(diagnosis)}: allow a larger receive buffer (SO_RCVBUF, net.ipv4.tcp_rmem)"


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
        parts.append(f"the full queue of the bottleneck drops {number(dropped, 2)} %{'' if parts else ' of the packets'}")
    return f": {' and '.join(parts)}" if parts else ""


def _dropped_pct(diagnosis: FlowDiagnosis) -> float:
    """What full queues dropped, % of the packets; 0 where that is not known."""
    path = diagnosis.path
    return path.queue_loss_pct.value if path and path.queue_loss_pct else 0.0


def _answers(control: str) -> str:
    """What the congestion control does about losses."""
    return "" if control in IGNORE_LOSS else f", and {control} makes its window smaller after each loss"


def _why_small(diagnosis: FlowDiagnosis, control: str) -> str:
    if _is_past_cliff(diagnosis):
        return f": jitter puts packets out of order, {control} takes that for loss and keeps its window small (the jitter cliff)"
    path = diagnosis.path
    random = path.loss_pct.value if path and path.loss_pct and _loses(diagnosis) else 0.0
    if (dropped := _dropped_pct(diagnosis)) > random:
        return f": the full queue of the bottleneck drops {number(dropped, 2)} % of the packets{_answers(control)}{_bloat(diagnosis)}"
    if random and control not in IGNORE_LOSS:
        return f": {control} takes the random loss of {number(random, 2)} % for congestion and keeps its window small"
    if path and path.queue == "standing":
        return ": other traffic fills the queue of the bottleneck"
    return f": {control} allows no more packets on their way at a time"
