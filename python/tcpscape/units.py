"""Quantities as people write them: `50ms`, `10mbit`, `0.1%`, `256KiB`, `1MB/s`, `2bdp`.

Times are integer nanoseconds, sizes integer bytes, rates of links integer bit/s, rates of applications integer bytes/s,
probabilities fractions of one. A number without a unit is refused where it could mean two things; the message has an example of what to write.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from tcpscape.errors import UnitError, refuse, shown

NS_PER_S = 1_000_000_000
"""Nanoseconds in a second."""
MAX_TIME_NS = 86_400 * NS_PER_S
"""Longest duration or delay accepted: one day."""

TIME_UNITS: Mapping[str, float] = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "sec": 1e9, "min": 60e9, "h": 3600e9, "d": 86_400e9}
SIZE_UNITS: Mapping[str, float] = {
    "b": 1,
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "k": 2**10,
    "m": 2**20,
    "g": 2**30,
}
RATE_UNITS: Mapping[str, float] = {
    "bit": 1,
    "kbit": 1e3,
    "mbit": 1e6,
    "gbit": 1e9,
    "tbit": 1e12,
    "bit/s": 1,
    "kbit/s": 1e3,
    "mbit/s": 1e6,
    "gbit/s": 1e9,
    "b/s": 8,
    "kb/s": 8e3,
    "mb/s": 8e6,
    "gb/s": 8e9,
    "kib/s": 8 * 2**10,
    "mib/s": 8 * 2**20,
    "gib/s": 8 * 2**30,
}
AMBIGUOUS_RATES = {"mbps": ("mbit", "MB/s"), "kbps": ("kbit", "kB/s"), "gbps": ("gbit", "GB/s"), "bps": ("bit", "B/s")}

LEAST = 1e-15
"""Smallest quantity accepted but 0, in base units: what is smaller is a mistake."""
MAX_SIZE = 2**40
"""Largest size accepted, bytes: a TiB."""
MAX_BDP = 10_000
"""Largest buffer in bandwidth-delay products."""
EXAMPLES: Mapping[str, str] = {
    "duration": "10s",
    "start": "5s",
    "stop": "8s",
    "at": "8s",
    "every": "15s",
    "hold": "300ms",
    "first": "15s",
    "repeat": "60s",
    "step": "100ms",
    "samples": "10ms",
    "queue_samples": "10ms",
    "segment": "4s",
    "timer_slack": "50us",
    "jitter": "8ms",
    "rtt_jitter": "12ms",
    "floor": "1ms",
    "player": "1,2.5,5,8,16mbit",
    "read": "16KiB/1ms",
    "app": "1MB/s",
    "precision": "5%",
    "threshold": "50%",
    "packet": "1514B",
}
"""Field → what one writes there, for messages; other fields have the example of their kind."""

NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""Pattern of a number: digits of ASCII, no underscores, no names such as `nan`."""
_QUANTITY = re.compile(rf"\s*({NUMBER})\s*([^0-9\s.,+-].*?)?\s*", re.DOTALL)


def split(text: str, field: str, example: str) -> tuple[float, str]:
    """The number and the unit (lower case, may be empty) of `text`."""
    match = _QUANTITY.fullmatch(text)
    if not match:
        refuse(field, f"{shown(text)} is not a quantity", f"write for example {example}", UnitError)
    value = float(match.group(1))
    if not math.isfinite(value):
        refuse(field, f"{shown(text)} is not finite", f"write for example {example}", UnitError)
    return value, (match.group(2) or "").lower()


def _quantity(value: Any, field: str, units: Mapping[str, float], example: str) -> float:
    """`value` in base units. Zero needs no unit, every other number does."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        refuse(field, f"{shown(value)} is not a quantity", f"write for example {example}", UnitError)
    if isinstance(value, (int, float)):
        if value == 0:
            return 0.0
        refuse(field, f"{shown(value)} has no unit", f"write for example {example}", UnitError)
    number, unit = split(value, field, example)
    if number == 0 and not unit:
        return 0.0
    if not unit:
        refuse(field, f"{shown(value)} has no unit", f"write for example {example}", UnitError)
    if unit not in units:
        if unit in AMBIGUOUS_RATES and units is RATE_UNITS:
            bits, octets = AMBIGUOUS_RATES[unit]
            refuse(field, f"{shown(value)} could be bits or bytes", f"write {number:g}{bits} or {number:g}{octets}", UnitError)
        refuse(field, f"unknown unit {shown(unit)} in {shown(value)}", f"write for example {example}", UnitError)
    if number < 0:
        refuse(field, f"{shown(value)} is negative", f"write for example {example}", UnitError)
    if number and number * units[unit] < LEAST:
        refuse(field, f"{shown(value)} cannot be told from 0", f"write for example {example}", UnitError)
    return number * units[unit]


def parse_time(value: Any, field: str = "time", *, example: str = "") -> int:
    """A time in ns. `50ms`, `1.5s`, `2min`, a `timedelta`, or 0; at most a day."""
    example = example or _example(field, "50ms")
    if isinstance(value, timedelta):
        value = f"{value.total_seconds() * 1e9:.0f}ns"
    ns = _quantity(value, field, TIME_UNITS, example)
    if ns > MAX_TIME_NS:
        refuse(field, f"{shown(value)} is longer than a day", "write at most 24h", UnitError)
    return round(ns)


def parse_size(value: Any, field: str = "size", *, example: str = "") -> int:
    """A size in bytes. `256KiB`, `1MB` (10^6), `1460B`; a bare integer is bytes. At most a TiB."""
    example = example or _example(field, "256KiB")
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        value = f"{min(value, 2 * MAX_SIZE)}b"
    if isinstance(value, str) and re.fullmatch(r"\s*[0-9]+\s*", value):
        value = f"{value.strip()}b"
    size = _quantity(value, field, SIZE_UNITS, example)
    if size > MAX_SIZE:
        refuse(field, f"{shown(value)} is more than a TiB", f"write for example {example}", UnitError)
    return round(size)


def parse_rate(value: Any, field: str = "rate", *, example: str = "") -> int:
    """A link rate in bit/s. `10mbit`, `1gbit`, `1.25MB/s`; zero is refused, since nothing would ever arrive."""
    example = example or _example(field, "10mbit")
    bits = _quantity(value, field, RATE_UNITS, example)
    if bits > 10**13:
        refuse(field, f"{shown(value)} is more than 10 Tbit/s", f"write for example {example}", UnitError)
    if round(bits) <= 0:
        refuse(field, "a link at rate 0 carries nothing", f"write for example {example}, or leave it out for no limit", UnitError)
    return round(bits)


def parse_byte_rate(value: Any, field: str = "rate", *, example: str = "1MB/s") -> int:
    """An application's rate in bytes/s. `1MB/s` is 10^6, `1MiB/s` 2^20, `10mbit` 1 250 000; 0 is as fast as possible."""
    bits = _quantity(value, field, RATE_UNITS, example)
    if bits > 10**13:
        refuse(field, f"{shown(value)} is more than 10 Tbit/s", f"write for example {example}", UnitError)
    if 0 < bits < 8:
        refuse(field, f"{shown(value)} is less than a byte a second", f"write for example {example}", UnitError)
    return round(bits / 8)


def parse_percent(value: Any, field: str = "loss", *, example: str = "") -> float:
    """A probability as a fraction of one, written in percent: `0.1%`. At most 100 %."""
    example = example or _example(field, "0.1%")
    fraction = _quantity(value, field, {"%": 0.01}, example)
    if fraction > 1:
        refuse(field, f"{shown(value)} is more than 100%", f"write for example {example}", UnitError)
    return fraction


def parse_buffer(value: Any, field: str = "buffer", *, example: str = "64KB or 2bdp") -> str:
    """A buffer: a size, or a multiple of the bandwidth-delay product (`2bdp`). Kept as written, see :func:`buffer_bytes`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        refuse(field, f"{shown(value)} is not a quantity", f"write for example {example}", UnitError)
    text = f"{value}".strip() if isinstance(value, str) or abs(value) <= MAX_SIZE else f"{2 * MAX_SIZE}"
    number, unit = split(text, field, example)
    if unit == "bdp":
        if number <= 0:
            refuse(field, f"{shown(text)} holds nothing", f"write for example {example}", UnitError)
        if number > MAX_BDP:
            refuse(field, f"{shown(text)} is more than {MAX_BDP} bandwidth-delay products", f"write for example {example}", UnitError)
        return text
    parse_size(value, field, example=example)
    return text


def buffer_bytes(text: str, rate_bps: int, rtt_ns: int, field: str = "buffer") -> int:
    """The buffer in bytes, given the link's rate in bit/s and the path's RTT in ns; never below two full frames."""
    number, unit = split(text, field, "2bdp")
    if unit != "bdp":
        return parse_size(text, field)
    if rtt_ns <= 0:
        refuse(field, f"{shown(text)} needs a delay on the path", "add a delay or write the buffer in bytes", UnitError)
    return max(3028, round(number * rate_bps / 8 * rtt_ns / NS_PER_S))


def _example(field: str, usual: str) -> str:
    """What one writes in a field; `usual` where none is known."""
    return EXAMPLES.get(field.replace("-", "_"), usual)


def _shortest(value: float, units: list[tuple[str, float]]) -> str:
    for unit, size in units:
        if value >= size and value % size == 0:
            return f"{value / size:.0f}{unit}"
    unit, size = units[-1]
    return f"{value / size:g}{unit}"


def format_time(ns: int) -> str:
    """`50ms` from 50 000 000; exact."""
    return _shortest(ns, [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1)]) if ns else "0s"


def brief_time(ns: float) -> str:
    """`10.6ms` from 10 607 000, three significant digits: for people, where :func:`format_time` is exact."""
    size, unit = next(((size, unit) for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)) if abs(ns) >= size), (1, "ns"))
    return f"{_brief(ns / size)}{unit}" if ns else "0s"


def brief_size(size: float) -> str:
    """`62.5kB` from 62 500, three significant digits: for people, where :func:`format_size` is exact."""
    unit, of = next(((unit, of) for unit, of in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)) if size >= of), ("B", 1))
    return f"{_brief(size / of)}{unit}"


def brief_percent(fraction: float) -> str:
    """`0.25%` from 0.002503, three significant digits: for people, where :func:`format_percent` is exact."""
    return f"{_brief(100 * fraction)}%"


def counted(count: int, noun: str) -> str:
    """`1 trial`, `20 trials`."""
    return f"{count} {noun}{'s' * (count != 1)}"


def _brief(value: float) -> str:
    """Three significant digits, no exponent below a million."""
    return f"{float(f'{value:.3g}'):g}"


def format_size(size: int) -> str:
    """`256KiB` from 262 144; exact."""
    return _shortest(size, [("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1)]) if size else "0B"


def format_rate(bps: int) -> str:
    """`10mbit` from 10 000 000; exact."""
    return _shortest(bps, [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1)])


def format_byte_rate(rate: int) -> str:
    """`1MB/s` from 1 000 000; exact."""
    if not rate:
        return "0B/s"
    return _shortest(rate, [("MiB/s", 2**20), ("MB/s", 1e6), ("KiB/s", 2**10), ("kB/s", 1e3), ("B/s", 1)])


def format_percent(fraction: float) -> str:
    """`0.1%` from 0.001."""
    return f"{fraction * 100:.10g}%"


_BARE = re.compile(NUMBER)
_WITH_UNIT = re.compile(rf"\s*{NUMBER}\s*(?P<unit>[^0-9\s.,+-].*)", re.DOTALL)


def is_bare(text: str) -> bool:
    """Whether it is a number without a unit."""
    return _BARE.fullmatch(text) is not None


def unit_of(text: str) -> str:
    """What stands behind the number; empty where there is nothing, or no number."""
    match = None if is_bare(text) else _WITH_UNIT.fullmatch(text)
    return match.group("unit") if match else ""


def with_units(texts: Sequence[str]) -> list[str]:
    """`24,50,100ms` → 24ms, 50ms, 100ms: a bare number but 0 takes the unit of the next value that has one; a range (`..`) gives none."""
    completed: list[str] = []
    unit = ""
    for text in reversed(texts):
        if ".." not in text:
            unit = unit_of(text) or unit
        completed.append(text + unit if is_bare(text) and unit and float(text) else text)
    return completed[::-1]


Parser = Callable[..., Any]
"""A function `(value, field)` that reads a quantity."""
