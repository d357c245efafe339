"""The TCP sockets of this process's network namespace, sampled by the program's mode `sockets` while others use them.

Which sockets a user wants is said in the words of ss: `dst 192.0.2.7`, `dport = :443`, `state established ( sport :80 or sport :443 )`. What is read:
`state NAME` and `exclude NAME` (several), `src` and `dst` with an address, a prefix or `HOST:PORT`, `sport` and `dport` with `=`, `!=`, `<`, `>`,
`<=`, `>=` (or their words `eq`, `neq`, `lt`, `gt`, `le`, `ge`), `and`, `or`, `not`, parentheses; what stands beside each other is meant together. A
bare `192.0.2.7`, `192.0.2.7:443` or `:443` is the other end. Ports may be names of /etc/services; addresses are numbers, because to resolve a name
would send packets. Source: ss(8), iproute2.
"""

from __future__ import annotations

import base64
import ipaddress
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tcpscape import units
from tcpscape.engines.host.process import PROGRAM, HostProcess, is_supported
from tcpscape.errors import EngineError, refuse, shown

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
    "=": "eq",
    "==": "eq",
    "eq": "eq",
    "!=": "ne",
    "neq": "ne",
    "ne": "ne",
    ">=": "ge",
    "geq": "ge",
    "ge": "ge",
    "<=": "le",
    "leq": "le",
    "le": "le",
    ">": "gt",
    "gt": "gt",
    "<": "lt",
    "lt": "lt",
}
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
    """What a filter means; an empty one lets every connection through. :raises ScenarioError: one line with the word that is wrong."""
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
            "eq": (number, number),
            "ne": (number, number),
            "ge": (number, LAST_PORT),
            "gt": (number + 1, LAST_PORT),
            "le": (0, number),
            "lt": (0, number - 1),
        }
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


PATIENCE_S = 30.0
"""How long after its time the program may take for its last list and its lines, s."""
LONGEST_S = 3600.0
"""Longest time of sampling, s: the memory for it is bounded, so longer ones have coarser samples."""
MOST_TOLD = 200
"""Sockets whose samples are taken; of the others only their number is known."""


@dataclass(frozen=True, slots=True)
class SampledSocket:
    """A socket that carried data, with its samples."""

    local: tuple[str, int]
    """Address and port of this end."""
    remote: tuple[str, int]
    """The other's."""
    control: str
    """The congestion control of this end; empty where the kernel did not tell, as of sockets that lived between two samples."""
    uid: int
    """User who owns it."""
    was_there: bool
    """Whether it was there before the first sample."""
    ended_s: float | None
    """When it ended, s; None where it was alive at the last sample."""
    columns: Mapping[str, NDArray[np.float64]]
    """`t_s` and fields of TCP_INFO by the kernel's names; NaN where the kernel does not tell."""


@dataclass(frozen=True, slots=True)
class SocketSamples:
    """What was sampled."""

    sockets: tuple[SampledSocket, ...]
    """Those that carried data, the one that carried most first."""
    summary: Mapping[str, Any]
    """What the program says of the whole: `seconds`, `interval_s`, `idle`, …; crates/live/src/sockets/mod.rs."""


def sample(text: str, duration_s: float, interval_s: float = 0.0, say: Callable[[float, int], None] = lambda seconds, sockets: None) -> SocketSamples:
    """Samples for so long, until it is interrupted.

    :param text: the filter in the words of ss; empty for every connection.
    :param interval_s: time between two samples, s; 0 for 20 ms, or longer where there are so many sockets that it would cost more than 5 % of a
        processor.
    :param say: hears the time, s, and how many sockets the filter lets through.
    :raises TcpscapeError: one line: a filter that makes no sense, a machine that is not Linux, a program that is not built.
    """
    chosen = parse(text)
    if not 0 < duration_s <= LONGEST_S:
        refuse("duration", f"{duration_s:g} s is no time to sample for", f"write a time of at most {LONGEST_S:g}s, for example 30s")
    if not is_supported() or not PROGRAM.exists():
        fix = "run `make setup`" if is_supported() else "diagnose a capture instead"
        raise EngineError(f"{FIELD}: {'its program is not built' if is_supported() else 'sockets are listed on Linux alone'}; {fix}")
    return _sampled(_job(chosen, duration_s, interval_s), duration_s + PATIENCE_S, say)


def _job(chosen: Filter, duration_s: float, interval_s: float) -> Mapping[str, Any]:
    return {
        "duration_ns": round(duration_s * units.NS_PER_S),
        "interval_ns": round(interval_s * units.NS_PER_S),
        "states": chosen.states,
        "condition": chosen.condition,
        "most": MOST_TOLD,
    }


def _sampled(job: Mapping[str, Any], most_s: float, say: Callable[[float, int], None]) -> SocketSamples:
    sockets: list[SampledSocket] = []
    with HostProcess("sockets", job) as process:
        try:
            _take(process, sockets, most_s, say)
        except KeyboardInterrupt:  # what was sampled until now is worth an answer; a second one ends it
            process.send({"stop": True})
            _take(process, sockets, PATIENCE_S, say)
        return SocketSamples(tuple(sockets), process.result())


def _take(process: HostProcess, into: list[SampledSocket], most_s: float, say: Callable[[float, int], None]) -> None:
    for event in process.events(most_s):
        if event["event"] == "seen":
            say(event["t_s"], event["sockets"])
        else:
            into.append(_socket(event))


def _socket(event: Mapping[str, Any]) -> SampledSocket:
    columns = {name: np.frombuffer(base64.b64decode(data), "<f8") for name, data in event["columns"].items()}
    local, remote = (tuple(event[end]) for end in ("local", "remote"))
    return SampledSocket(local, remote, event["control"], event["uid"], event["was_there"], event["ended_s"], columns)
