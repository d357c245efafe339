"""What is said of connections that were asked for and not established: what was sent, what that means, and where to look next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpscape.findings.diagnosis.observed import Attempt, Observation
from tcpscape.text.numbers import number
from tcpscape.units import counted

NOTHING = "There is no flow with data in it, so there is nothing to diagnose."
SILENCE = (
    "A host on which nobody listens answers with a reset (RST): silence is that of a firewall that drops packets, of an address that no host has"
    " or whose host is down, or of answers that go another way than past this capture."
)
SINGLE = "A second SYN would follow after a second (RFC 6298 §2): the capture, or the program that asked, probably ended before."
REFUSED = "If the other end sent it, packets pass in both directions, and nobody listens there, or a firewall rejects connections."
INCOMPLETE = "The SYN-ACK or the ACK that answers it was lost or filtered, goes another way than past this capture, or is later than its end."
GIVEN_UP = (
    "If whoever asked sent it, they did not want the connection any more or know nothing of it, as in a test whether the port is open;"
    " otherwise the other end or a firewall ended it."
)
KINDS: Mapping[str, str] = {"unanswered": "not answered", "refused": "refused", "half_open": "not completed"}
"""Counter of the source → what became of the connections that it counts."""


def without_flows(observation: Observation) -> str:
    """The answer where no flow has data: why there is none, and what that means."""
    facts, totals = observation.facts, observation.facts.get("flows")
    if totals is None or "frames" not in facts:
        return NOTHING
    if not facts["packets"]:
        among = f" among its {counted(facts['frames'], 'frame')}" if facts["frames"] else ""
        return f"There is no TCP packet{among}, so there is nothing to diagnose."
    attempt, established = observation.attempt, totals["connections"] - _number(totals)
    if attempt is None or established > 0:
        kept = f": of {counted(totals['connections'], 'connection')} none carries any"
        more = f"; {_counts(totals)}" if attempt else ""
        return f"There is no flow with data in it, so there is nothing to diagnose{kept}{more}."
    if _number(totals) > 1:
        which = "Most SYNs" if attempt.syns > 1 else "One of them"
        return f"None of {_number(totals)} connections was established: {_counts(totals)}. {which}: {_told(attempt)}"
    return _told(attempt, "No connection was established: ")


def unread(observation: Observation) -> str:
    """That what says why nothing answered may be in the source, and was not read; empty where it is not."""
    others, attempt = (observation.facts.get("skipped") or {}).get("not_tcp", 0), observation.attempt
    if not others or attempt is None or attempt.answers:
        return ""
    read = "was not read" if others == 1 else "were not read"
    return f"{counted(others, 'packet')} of other protocols {read}: an ICMP error, if one is among them, says who refused the connection, and why"


def caveat(observation: Observation) -> str:
    """That some connections were not established beside those that were; empty where all were."""
    totals = observation.facts.get("flows") or {}
    count = _number(totals)
    return f"{counted(count, 'other connection')} asked for and not established ({_counts(totals)})" if count else ""


def what_to_ask(attempt: Attempt) -> str:
    """What to type, and where, so that it shows why the connection was not established; empty where the capture has all of it."""
    source, destination = attempt.source, attempt.destination
    if attempt.is_reset and attempt.answers:
        return ""
    if attempt.is_reset:
        return f"on {destination.address}: ss -ltn sport = :{destination.port} (whether anybody listens)"
    at, other = (source, destination) if attempt.answers else (destination, source)
    what = "the SYN-ACK arrives, and an ACK leaves" if attempt.answers else "the SYNs arrive, and an answer leaves"
    return f"on {at.address}: tcpdump -n -i any host {other.address} and tcp port {destination.port} (whether {what})"


def _number(totals: Mapping[str, Any]) -> int:
    return sum(totals.get(kind, 0) for kind in KINDS)


def _counts(totals: Mapping[str, Any]) -> str:
    """`3 not answered, 1 refused`."""
    return ", ".join(f"{totals[kind]} {what}" for kind, what in KINDS.items() if totals[kind])


def _told(attempt: Attempt, before: str = "") -> str:
    """What was sent, what answered, and what that means."""
    over = f" in {number(attempt.seconds)} s" if attempt.seconds > 0 else ""
    sent = f"{before}{attempt.name}, {counted(attempt.syns, 'SYN')}"
    if attempt.answers:
        end = "ended by a reset" if attempt.is_reset else "and no ACK completes the handshake"
        return f"{sent} and {counted(attempt.answers, 'SYN-ACK')}{over}, {end}. {GIVEN_UP if attempt.is_reset else INCOMPLETE}"
    if attempt.syns == 1 and not attempt.is_reset:
        return f"{sent} and no answer. {SINGLE}"
    if attempt.is_reset:
        return f"{sent}{over}, ended by a reset (RST). {REFUSED}"
    return f"{sent}{over} and no answer. {SILENCE}"
