"""What `ss -ti` prints (iproute2), with any of `-n -m -o -e -O -H`, one list or several one after the other: samples of TCP_INFO.

A line with a time before a list (`date +%s.%N`, `date -Is`, `date`, or `12:30:01.5`) is the time of that list. Lists without one have an order but
no times; then the time that a socket was busy stands for it. Values that ss leaves out because they are 0 are 0 where that version would print them.
Source: ss(8) and its output, recorded with iproute2 6.1; older forms as its documents and reports show them.
"""

from __future__ import annotations

import math
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from tcpscape.errors import printable
from tcpscape.findings.diagnosis.observed import Observation, SocketAddress
from tcpscape.interchange import tcp_info
from tcpscape.interchange.base import LONGEST_TEXT, InterchangeError
from tcpscape.reading.files import MIB, Kind, Origin, decoded

FIX = "give the text of `ss -tin`, for example of `while sleep 1; do date +%s.%N; ss -tin; done`"
FILE = Kind("output of ss", FIX, most=64 * MIB, error=InterchangeError)
MOST_ROWS = 500_000
"""Sockets in all lists together."""
MOST = 1e18
"""Largest number that is read."""
_HEAD = re.compile(
    r"\s*(?:(?P<net>tcp|mptcp)\s+)?(?:(?P<state>[A-Z][A-Z0-9-]{3,10})\s+)?(?P<rqueue>\d{1,18})\s+(?P<wqueue>\d{1,18})\s+"
    r"(?P<local>\S{1,100}:\S{1,40})\s+(?P<remote>\S{1,100}:\S{1,40})(?P<rest>\s.*)?",
    re.ASCII,
)
_TITLE = re.compile(r"\s*(?:(?:Netid|State)\s+)*Recv-Q\s+Send-Q\s", re.ASCII)
_NUMBER = r"\d{1,20}(?:\.\d{1,20})?"
_KEYED = re.compile(r"([a-z][a-z_-]{1,20}):(\([^)]{0,400}\)|\S{1,400})", re.ASCII)
_RATE = re.compile(rf"\b(pacing_rate|delivery_rate)\s+({_NUMBER})([KMGT]?)bps", re.ASCII)
_CONTROL = re.compile(r"(?:^|\s)([a-z][a-z0-9_-]{1,30})\s+(?:wscale|rto|backoff):", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d\d):(\d\d(?:[.,]\d{1,9})?)", re.ASCII)
_DATE = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d) (?:[AP]M )?[A-Z+0-9-]{1,6} (\d{4})", re.ASCII)
SCALES: Mapping[str, float] = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
FIELDS: Mapping[str, tuple[str, float]] = {
    "rto": ("rto", 1e3),
    "mss": ("snd_mss", 1),
    "pmtu": ("pmtu", 1),
    "rcvmss": ("rcv_mss", 1),
    "advmss": ("advmss", 1),
    "cwnd": ("snd_cwnd", 1),
    "ssthresh": ("snd_ssthresh", 1),
    "bytes_sent": ("bytes_sent", 1),
    "bytes_retrans": ("bytes_retrans", 1),
    "bytes_acked": ("bytes_acked", 1),
    "bytes_received": ("bytes_received", 1),
    "segs_out": ("segs_out", 1),
    "segs_in": ("segs_in", 1),
    "data_segs_out": ("data_segs_out", 1),
    "data_segs_in": ("data_segs_in", 1),
    "delivered": ("delivered", 1),
    "delivered_ce": ("delivered_ce", 1),
    "unacked": ("unacked", 1),
    "lost": ("lost", 1),
    "sacked": ("sacked", 1),
    "dsack_dups": ("dsack_dups", 1),
    "reordering": ("reordering", 1),
    "reord_seen": ("reord_seen", 1),
    "rcv_rtt": ("rcv_rtt", 1e3),
    "rcv_space": ("rcv_space", 1),
    "notsent": ("notsent_bytes", 1),
    "minrtt": ("min_rtt", 1e3),
    "rcv_ooopack": ("rcv_ooopack", 1),
    "snd_wnd": ("snd_wnd", 1),
    "rcv_wnd": ("rcv_wnd", 1),
    "backoff": ("backoff", 1),
    "busy": ("busy_time", 1e3),
    "rwnd_limited": ("rwnd_limited", 1e3),
    "sndbuf_limited": ("sndbuf_limited", 1e3),
}
"""ss's names → the kernel's, and the factor from ss's unit (ms) to the kernel's (µs)."""
ZEROS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("rto", ("unacked", "retrans", "total_retrans", "lost", "sacked")),
    ("segs_out", ("bytes_acked", "bytes_received", "notsent_bytes")),
    ("segs_in", ("data_segs_out", "data_segs_in")),
    ("min_rtt", ("delivery_rate_app_limited", "busy_time", "rwnd_limited", "sndbuf_limited")),
    ("bytes_sent", ("bytes_retrans", "dsack_dups", "reord_seen", "delivered_ce")),
    ("snd_wnd", ("rcv_ooopack",)),
)
"""A value that a version always prints → those that the same version leaves out where they are 0."""


@dataclass(slots=True)
class _Row:
    """A socket in one list."""

    ends: tuple[SocketAddress, SocketAddress]
    state: str
    list_number: int
    t_s: float
    values: dict[str, float] = field(default_factory=dict)
    control: str = ""


def recognises(head: bytes) -> bool:
    """Whether a text begins as ss prints sockets with their TCP_INFO."""
    text = head.decode("utf-8", "replace")
    lines = text.splitlines()[:40]
    return any(_TITLE.match(line) or (_HEAD.fullmatch(line) and " cwnd:" in text) for line in lines)


def observe(content: bytes, name: str) -> Observation:
    """The flows of the sockets in a text of ss. :raises InterchangeError: one line, where it is no text of ss, or has no socket with TCP_INFO."""
    origin = Origin(name, FILE)
    rows = list(_rows(decoded(content, origin), origin))
    known = [row for row in rows if "rto" in row.values]
    if not known:
        origin.refuse("has no socket with its TCP information" if rows else "has no socket of ss in it", "list them with `ss -tin`")
    is_timed = all(not math.isnan(row.t_s) for row in known)
    lists = len({row.list_number for row in known})
    sockets: dict[tuple[SocketAddress, SocketAddress], list[_Row]] = {}
    for row in known:
        sockets.setdefault(row.ends, []).append(row)
    zero = min(row.t_s for row in known) if is_timed else 0.0
    flows = [flow for each in sockets.values() for part in _connections(each) for flow in tcp_info.flows(_end(part, is_timed, zero))]
    flows.sort(key=lambda flow: -(flow.bytes or 0))
    return Observation("ss", name, tuple(flows), tuple(_notes(lists, is_timed, len(rows) - len(known))), {"lists": lists, "sockets": len(sockets)})


def _notes(lists: int, is_timed: bool, without: int) -> Iterator[str]:
    if lists == 1:
        yield "One list of ss is one moment: rates are means over the time in which each socket had data to send, and nothing is known over time."
    elif not is_timed:
        yield "The lists have no times: the time that each socket was busy stands for it. Print `date +%s.%N` before each list."
    if without:
        yield f"{without} sockets are listed without TCP information (`ss -i`) and left out."


def _rows(text: str, origin: Origin) -> Iterator[_Row]:
    """Every socket of every list, in order."""
    t, number, count = math.nan, 0, 0
    seen: set[tuple[SocketAddress, SocketAddress]] = set()
    row: _Row | None = None
    days = 0.0
    for line in text.splitlines():
        if (time := _time(line.strip())) is not None:
            if time < 86_400 and not math.isnan(t) and time + days < t - 43_200:
                days += 86_400  # a clock without a date passed midnight
            t = time + (days if time < 86_400 else 0)
            number, seen = number + 1, set()
        elif _TITLE.match(line):
            number, seen = number + 1, set()
        elif match := _HEAD.fullmatch(line):
            if row:
                yield row
            ends = _endpoint(match["local"]), _endpoint(match["remote"])
            row = None
            if ends[0] is None or ends[1] is None:
                continue
            both = (ends[0], ends[1])
            if both in seen:  # without a title, a socket that comes again begins the next list
                number, seen = number + 1, set()
            seen.add(both)
            count += 1
            if count > MOST_ROWS:
                origin.refuse(f"has more than {MOST_ROWS} sockets in all lists", "split it")
            row = _Row(both, match["state"] or "ESTAB", number, t)
            row.values |= {"rqueue": float(match["rqueue"]), "wqueue": float(match["wqueue"])}
            _read(match["rest"] or "", row)
        elif row and line[:1].isspace():
            _read(line, row)
    if row:
        yield row


def _time(line: str) -> float | None:
    """A line that is a time, s: since 1970, or of the day; None for any other."""
    if re.fullmatch(r"\d{9,11}(\.\d{1,9})?", line, re.ASCII):
        return float(line)
    if match := _CLOCK.fullmatch(line):
        return int(match[1]) * 3600 + int(match[2]) * 60 + float(match[3].replace(",", "."))
    try:
        if re.match(r"\d{4}-\d\d-\d\d[T ]", line, re.ASCII):
            return datetime.fromisoformat(line.replace(",", ".")).timestamp()
        if dated := _DATE.fullmatch(line):
            return datetime.strptime(" ".join(dated.groups()), "%b %d %H:%M:%S %Y").timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _endpoint(text: str) -> SocketAddress | None:
    """`192.0.2.7:443`, `[::1]:443`, `[::ffff:192.0.2.7]:443`, `10.0.0.1%eth0:443`; None of listening sockets and of ports without a number."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]").partition("%")[0].removeprefix("::ffff:")
    if not port.isdigit():
        try:
            port = str(socket.getservbyname(port, "tcp"))
        except (OSError, ValueError):
            return None
    return SocketAddress(printable(host[:LONGEST_TEXT]), int(port)) if len(port) <= 5 and int(port) < 65_536 else None


def _read(text: str, row: _Row) -> None:
    """Takes in the words of a socket."""
    values = row.values
    for match in _KEYED.finditer(text):
        name, value = match[1], match[2]
        if name == "rtt":
            _pair(value, "/", ("rtt", "rttvar"), 1e3, values)
        elif name == "retrans":
            _pair(value, "/", ("retrans", "total_retrans"), 1, values)
        elif name in FIELDS and (number := re.match(_NUMBER, value, re.ASCII)):
            column, factor = FIELDS[name]
            values[column] = min(MOST, float(number[0]) * factor)
        elif name == "skmem":
            _memory(value, values)
        elif name == "bbr":
            _bbr(value, values)
    for match in _RATE.finditer(text):
        values[match[1]] = min(MOST, float(match[2]) * SCALES[match[3]] / 8)
    if named := _CONTROL.search(text):
        row.control = named[1]
    words = text.split()
    if "ts" in words or "sack" in words:  # some versions print them with -e or -o alone
        values["options"] = float(sum(bit for word, bit in (("ts", 1), ("sack", 2), ("ecn", 8)) if word in words) + (4 if "wscale:" in text else 0))
    if "app_limited" in words:
        values["delivery_rate_app_limited"] = 1.0


def _pair(text: str, between: str, names: tuple[str, str], factor: float, values: dict[str, float]) -> None:
    if match := re.match(rf"({_NUMBER}){between}({_NUMBER})", text, re.ASCII):
        values |= {name: min(MOST, float(match[i + 1]) * factor) for i, name in enumerate(names)}


def _memory(text: str, values: dict[str, float]) -> None:
    """`(r0,rb131072,t0,tb87040,f0,w0,o0,bl0,d0)`."""
    names = {"r": "rmem", "rb": "rcvbuf", "tb": "sndbuf", "w": "wmem_queued", "d": "drops"}
    for match in re.finditer(r"([a-z]+)(\d{1,18})", text, re.ASCII):
        if match[1] in names:
            values[names[match[1]]] = float(match[2])


def _bbr(text: str, values: dict[str, float]) -> None:
    """`(bw:7281765624bps,mrtt:0.034,pacing_gain:2.88672,cwnd_gain:2.88672)`."""
    if match := re.search(rf"bw:({_NUMBER})([KMGT]?)bps", text, re.ASCII):
        values["bbr_bw"] = min(MOST, float(match[1]) * SCALES[match[2]] / 8)
    if least := re.search(rf"mrtt:({_NUMBER})", text, re.ASCII):
        values["bbr_min_rtt"] = float(least[1]) * 1e3


def _connections(rows: list[_Row]) -> Iterator[list[_Row]]:
    """A counter that falls is of another connection with the same ends."""
    part: list[_Row] = []
    for row in rows:
        if part and any(row.values.get(name, 0.0) < part[-1].values.get(name, 0.0) for name in ("bytes_acked", "bytes_received", "segs_out")):
            yield part
            part = []
        part.append(row)
    yield part


def _end(rows: list[_Row], is_timed: bool, zero: float) -> tcp_info.SampledEnd:
    """The rows of one connection as samples."""
    for row in rows:
        for always, others in ZEROS:
            if always in row.values:
                row.values = dict.fromkeys(others, 0.0) | row.values
    names = sorted({name for row in rows for name in row.values})
    columns = {name: np.array([row.values.get(name, np.nan) for row in rows]) for name in names}
    busy = columns.get("busy_time", np.zeros(len(rows)))
    times = np.array([row.t_s - zero for row in rows]) if is_timed else (np.nan_to_num(busy) - np.nan_to_num(busy)[0]) / 1e6
    columns["t_s"] = np.maximum.accumulate(times)  # a clock that is set back stands still
    control = next((row.control for row in reversed(rows) if row.control), None)
    return tcp_info.SampledEnd(rows[0].ends[0], rows[0].ends[1], columns, control)
