"""Addresses that identify nobody in place of those of a capture, for results that are shown to others.

Each address gets the next one of a range that no network has: 198.18.0.0/15 (RFC 2544), or 2001:db8::/32 (RFC 3849); those of the flow with most
bytes come first. What an address shares with another, its network, does not show. Ports stay, since they say what the connection is for, and
so do times, sizes, TTLs and everything else in headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_address

from tcpscape.findings.diagnosis.observed import Endpoint, Observation

V4_BASE = IPv4Address("198.18.0.0")
V6_BASE = IPv6Address("2001:db8::")
MOST = 1 << 16
"""Addresses with a pseudonym of their own; all others share the last one, as in `crates/capture/src/annotate.rs`."""
ANONYMOUS_NAME = "capture"
"""What an observation's name becomes: names of files tell where they are from."""


class Pseudonyms:
    """Address → pseudonym, the same each time."""

    def __init__(self) -> None:
        self._known: dict[IPv4Address | IPv6Address, IPv4Address | IPv6Address] = {}

    @property
    def known(self) -> Mapping[IPv4Address | IPv6Address, IPv4Address | IPv6Address]:
        """Those given so far."""
        return self._known

    def address(self, text: str) -> str:
        """The pseudonym of an address; an empty text, where a source has none, stays empty."""
        if not text:
            return ""
        address = ip_address(text)
        if address not in self._known:
            number = min(len(self._known), MOST) + 1
            pseudonym = (V4_BASE if address.version == 4 else V6_BASE) + number
            if len(self._known) == MOST:
                return str(pseudonym)
            self._known[address] = pseudonym
        return str(self._known[address])

    def observation(self, observation: Observation) -> Observation:
        """The same observation with pseudonyms; its name and the names of its interfaces are left out."""
        flows = [replace(flow, source=self._end(flow.source), destination=self._end(flow.destination)) for flow in observation.flows]
        facts = dict(observation.facts)
        if "interfaces" in facts:
            facts["interfaces"] = [{**interface, "name": ""} for interface in facts["interfaces"]]
        return replace(observation, name=ANONYMOUS_NAME, flows=flows, facts=facts)

    def _end(self, end: Endpoint) -> Endpoint:
        return Endpoint(self.address(end.address), end.port)
