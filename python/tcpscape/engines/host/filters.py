"""Which sockets a user wants, in the words of ss: `dst 192.0.2.7`, `dport = :443`, `state established ( sport :80 or sport :443 )`.

What is read: `state NAME` and `exclude NAME` (several), `src` and `dst` with an address, a prefix or `HOST:PORT`, `sport` and `dport` with `=`, `!=`,
`<`, `>`, `<=`, `>=` (or their words `eq`, `neq`, `lt`, `gt`, `le`, `ge`), `and`, `or`, `not`, parentheses; what stands beside each other is meant
together. A bare `192.0.2.7`, `192.0.2.7:443` or `:443` is the other end. Ports may be names of /etc/services; addresses are numbers, because to
resolve a name would send packets. Source: ss(8), iproute2.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from tcpscape.errors import refuse, shown

FIELD = "live"
"""The option that messages name."""
EXAMPLE = "write for example dst 192.0.2.7, dport = :443, or state established dst 10.0.0.0/8"
STATES: Mapping[str, int] = {
    "established": 1,
    "syn-sent": 2,
    "syn-recv": 3,
    "fin-wait-1": 4,
    "fin-wait-2": 5,
    "close-wait": 8,
    "last-ack": 9,
    "closing": 11,
}
"""States of sockets that have counters of a transfer → the kernel's numbers."""
GROUPS: Mapping[str, tuple[str, ...]] = {
    "all": tuple(STATES),
    "connected": tuple(STATES),
    "synchronized": tuple(name for name in STATES if name != "syn-sent"),
}
"""ss's names of several states."""
WITHOUT_DATA = ("listening", "listen", "time-wait", "closed", "unconnected", "bucket")
"""States in which a socket carries no data."""
MOST_WORDS = 200
"""Of a filter."""
DEEPEST = 20
"""Parentheses within each other."""
COMPARISONS: Mapping[str, str] = {
    "=": "eq", "==": "eq", "eq": "eq", "!=": "ne", "neq": "ne", "ne": "ne", ">=": "ge", "geq": "ge", "ge": "ge", "<=": "le", "leq": "le", "le": "le",
    ">": "gt", "gt": "gt", "<": "lt", "lt": "lt",
}  # fmt: skip
"""Signs and words → what they mean."""
SIDES: Mapping[str, str] = {"src": "local", "sport": "local", "dst": "remote", "dport": "remote"}
AND, OR = ("and", "&&", "&"), ("or", "||", "|")
LAST_PORT = 65_535
_WORD = re.compile(r"\s*(\(|\)|&&|\|\||[!<>=]=?|[^\s()!<>=&|]+|.)", re.DOTALL)
_PORT = re.compile(r":?([A-Za-z0-9_-]{1,40})", re.ASCII)
Condition = Mapping[str, Any]
"""As the program takes it: `{"port": {"side": "remote", "from": 443, "to": 443}}`; crates/live/src/sockets/filter.rs."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which sockets."""

    states: int
    """Bit 1 << number of the state."""
    condition: Condition


def parse(text: str) -> Filter:
    """What a filter means; an empty one lets every connection through.

    :raises ScenarioError: one line with the word that is wrong.
    """
    words = [match[1] for match in _WORD.finditer(text) if match[1].strip()]
    if len(words) > MOST_WORDS:
        refuse(FIELD, f"the filter has {len(words)} words, and at most {MOST_WORDS} are read", EXAMPLE)
    parser = _Parser(words)
    states = parser.states()
    condition = parser.alternatives(0) if parser.left else {"all": []}
    if parser.left:
        parser.refuse(f"{shown(parser.left[0])} has no opening parenthesis")
    return Filter(sum(1 << STATES[name] for name in states), condition)


class _Parser:
    """Takes the words one by one."""

    def __init__(self, words: Sequence[str]) -> None:
        self.left = list(words)
        self.last = "the filter's begin"

    def refuse(self, problem: str, fix: str = EXAMPLE) -> NoReturn:
        refuse(FIELD, problem, fix)

    def take(self) -> str:
        if not self.left:
            self.refuse(f"something is missing after {shown(self.last)}")
        self.last = self.left.pop(0)
        return self.last

    def took(self, words: Sequence[str]) -> bool:
        """Takes the next word if it is one of these."""
        return bool(self.left) and self.left[0].lower() in words and bool(self.take())

    def states(self) -> Sequence[str]:
        """The states at the beginning: those named, or all."""
        chosen: list[str] = []
        excluded: list[str] = []
        while self.left and self.left[0].lower() in ("state", "exclude"):
            names = chosen if self.take().lower() == "state" else excluded
            names.extend(self._state(self.take().lower()))
        return [name for name in STATES if name in (chosen or STATES) and name not in excluded]

    def _state(self, name: str) -> Sequence[str]:
        if name in WITHOUT_DATA:
            self.refuse(f"sockets in the state {name} carry no data", f"name one of {', '.join((*GROUPS, *STATES))}")
        if name not in GROUPS and name not in STATES:
            self.refuse(f"{shown(name)} is no state", f"name one of {', '.join((*GROUPS, *STATES))}")
        return GROUPS.get(name, (name,))

    def alternatives(self, depth: int) -> Condition:
        """Conditions between `or`."""
        found = [self._together(depth)]
        while self.took(OR):
            found.append(self._together(depth))
        return found[0] if len(found) == 1 else {"any": found}

    def _together(self, depth: int) -> Condition:
        """Conditions beside each other, or between `and`."""
        found = [self._one(depth)]
        while self.left and self.left[0].lower() not in (*OR, ")"):
            self.took(AND)
            found.append(self._one(depth))
        return found[0] if len(found) == 1 else {"all": found}

    def _one(self, depth: int) -> Condition:
        word = self.take()
        lower = word.lower()
        if lower in ("not", "!"):
            return {"not": self._one(self._deeper(depth))}
        if word == "(":
            inner = self.alternatives(self._deeper(depth))
            if not self.took((")",)):
                self.refuse("a parenthesis is not closed")
            return inner
        if lower in ("sport", "dport"):
            return self._port(SIDES[lower], self._comparison(), self.take())
        if lower in ("src", "dst"):
            comparison = self._comparison()
            if comparison not in ("eq", "ne"):
                self.refuse(f"addresses have no order after {shown(lower)}")
            inner = self._end(SIDES[lower], self.take())
            return {"not": inner} if comparison == "ne" else inner
        if lower in ("state", "exclude"):
            self.refuse(f"{lower} stands behind a condition", "write states first, then conditions")
        if lower in ("dev", "fwmark", "cgroup", "autobound"):
            self.refuse(f"{lower} of ss is not read here")
        return self._end("remote", word)

    def _deeper(self, depth: int) -> int:
        if depth >= DEEPEST:
            self.refuse(f"more than {DEEPEST} parentheses within each other")
        return depth + 1

    def _comparison(self) -> str:
        return COMPARISONS[self.last.lower()] if self.took(tuple(COMPARISONS)) else "eq"

    def _port(self, side: str, comparison: str, word: str) -> Condition:
        number = self._number(word)
        ranges = {
            "eq": (number, number), "ne": (number, number), "ge": (number, LAST_PORT), "gt": (number + 1, LAST_PORT), "le": (0, number),
            "lt": (0, number - 1),
        }  # fmt: skip
        begin, end = ranges[comparison]
        if begin > end or end > LAST_PORT:
            return {"any": []}  # no port is below 0 or above the last
        inner = {"port": {"side": side, "from": begin, "to": end}}
        return {"not": inner} if comparison == "ne" else inner

    def _number(self, word: str) -> int:
        match = _PORT.fullmatch(word)
        if not match:
            self.refuse(f"{shown(word)} is no port")
        if match[1].isdigit():
            number = int(match[1])
            return number if number <= LAST_PORT else self.refuse(f"{shown(word)} is no port: the last is {LAST_PORT}")
        try:
            return socket.getservbyname(match[1], "tcp")
        except (OSError, ValueError):
            self.refuse(f"{shown(match[1])} is no port, and no service of /etc/services", "write its number")

    def _end(self, side: str, word: str) -> Condition:
        """`192.0.2.7`, `192.0.2.0/24`, `192.0.2.7:443`, `fe80::1%eth0` on whatever device, `[2001:db8::1]:443`, `2001:db8::/32`, `:443`, `*`."""
        host, port = _parted(word)
        conditions: list[Condition] = []
        if host not in ("", "*"):
            try:
                network = ipaddress.ip_network(host.removeprefix("::ffff:").partition("%")[0], strict=False)
            except ValueError:
                self.refuse(f"{shown(host)} is no address", "write addresses as numbers, for example dst 192.0.2.7:443")
            conditions.append({"address": {"side": side, "address": str(network.network_address), "prefix": network.prefixlen}})
        if port not in ("", "*"):
            conditions.append(self._port(side, "eq", port))
        return conditions[0] if len(conditions) == 1 else {"all": conditions}


def _parted(word: str) -> tuple[str, str]:
    """Host and port; of IPv6 without brackets all is the host."""
    if match := re.fullmatch(r"\[([^\]]*)\](/[0-9]+)?(?::(.*))?", word, re.DOTALL):
        return f"{match[1]}{match[2] or ''}", match[3] or ""
    if word.count(":") > 1:
        return word, ""
    host, _, port = word.partition(":")
    return host, port
