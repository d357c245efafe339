"""What to type, and where, so that the next look shows what a diagnosis leaves open."""

from __future__ import annotations

from collections.abc import Mapping

from tcpscape.findings.diagnosis.bursts import FEWEST_SEGMENTS
from tcpscape.findings.diagnosis.control.classify import LEAST_S
from tcpscape.findings.diagnosis.diagnosis import Diagnosis, FlowDiagnosis
from tcpscape.findings.diagnosis.observed import Doubt
from tcpscape.words import handshakes
from tcpscape.words.flow import contradicted, filled

SOCKET: Mapping[Doubt | None, str] = {
    "small_writes": "app_limited, and sndbuf_limited",
    "pace_or_application": "its congestion control, and app_limited",
    "constant_flight": "app_limited, and sndbuf_limited",
    "unused_window": "app_limited, rwnd_limited and sndbuf_limited",
}
"""Doubt → what the sender's socket says of it."""
LONGER: Mapping[str, str] = {
    "few seconds": "for 30 s and more",
    "few round trips": "for longer than this one",
    "few reductions": "for a minute and more, so that the window falls more often",
    "begins in mid-connection": "begun before the connection",
    "no probes of the RTT": "for 30 s and more",
    "busy at the begin": "begun before the connection",
    "nothing before the capture": "begun before the connection",
}
"""Why something is unknown that another capture at the same place shows → which capture."""
MOST = 0.5
"""Share of a capture's packets whose options are cut off, above which that hides timestamps: blocks of SACK are in few."""
TIMESTAMPS = "sysctl -w net.ipv4.tcp_timestamps=1 at both ends, then capture a new connection (its segments say which ACK they answer)"
"""What to do where a connection has none."""
ANYWHERE = ("application held", "window held", "family", "delays vary in order")
"""Why something is unknown that a capture at no place would show."""


def what_to_ask(diagnosis: Diagnosis) -> str:
    """What to type, and where, so that the next look shows what that of the largest flow leaves open; empty where nothing is, or nothing would.

    Without a flow, what shows why no connection was established. A capture at the sender, where this one is from elsewhere; a longer or earlier one
    at the same place; what the sender's own socket says.
    """
    if diagnosis.flows:
        facts = diagnosis.observation.facts
        return _of_flow(diagnosis.flows[0], (facts.get("options_cut") or 0) / max(1, facts.get("packets") or 0))
    attempt = diagnosis.observation.attempt
    return handshakes.what_to_ask(attempt) if attempt else ""


def _of_flow(one: FlowDiagnosis, cut: float) -> str:
    """The same of a flow; `cut` is the share of the capture's packets whose options it cut off."""
    whys, is_short = _open(one), 0 < (one.flow.packets or 0) < FEWEST_SEGMENTS and one.doubt != "packets_missing"
    if is_short or one.doubt == "few_segments" or not (one.flow.segments or one.doubt in SOCKET) or not (one.doubt or whys):
        return ""
    source, destination = one.flow.source, one.flow.destination
    opened = one.flow.facts.get("sender_opened")
    port = min(source.port, destination.port) if opened is None else (source, destination)[opened].port
    capture = f"tcpdump -i any -s 160 -w sender.pcap host {destination.address} and tcp port {port}"
    is_cut = cut > (MOST if one.doubt == "no_timestamps" else 0.0 if "without SACK" in whys else 1.0)
    if is_cut or one.doubt == "no_timestamps":
        whole = f"at the same place: {capture.replace('sender.pcap', 'whole.pcap')} (this capture cut off options, timestamps and SACK among them)"
        return whole if is_cut else TIMESTAMPS
    if one.doubt == "packets_missing":
        return f"on {source.address}: {capture.replace('-i any', '-i any -B 65536')} (both directions, without drops)"
    how = next((LONGER[why] for why in whys if why in LONGER), "")
    at_sender = f"on {source.address}, the sender: "
    if one.flow.vantage != "sender" and one.doubt not in SOCKET:
        if one.flow.facts.get("timestamps") and not one.doubt and all(why in LONGER for why in whys):
            return f"at the same place: {capture.replace('sender.pcap', 'longer.pcap')}, {how}"
        long = f", {LONGER['few seconds']}" if one.flow.seconds < LEAST_S else ""
        return f"{at_sender}{capture}{long} (only there shows what left, and when)"
    socket = f"{at_sender}ss -tin dst {destination.address} ({SOCKET[one.doubt]})" if one.doubt in SOCKET else ""
    return socket or (f"on {source.address}: {capture}, {how}" if how else "")


def _open(one: FlowDiagnosis) -> list[str]:
    """Why the control, the round trip or what lost packets is not known, where another capture may show it.

    The control does not matter where the bottleneck is full: none would carry more.
    """
    missing = one.not_identifiable
    parts = ("path.rtt_ms",) if filled(one) and not contradicted(one) else ("cca", "path.rtt_ms")
    whys: list[str] = [why.why for part, why in missing.items() if part in parts and why.why not in ANYWHERE]
    lost = missing.get("path.loss_pct")
    return [*whys, lost.why] if lost and lost.why == "queue unseen" and one.flow.vantage != "sender" else whys
