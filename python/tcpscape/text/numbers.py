"""Numbers, shares and lists as people read them. Quantities as people write them are in :mod:`tcpscape.units`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NONE = "–"
"""Stands for what is not known."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a table: what rows are sorted by, and how it is written."""

    value: float
    """NaN where it is not known."""
    text: str
    interval: str = ""
    """`[11.8, 12.9]`; empty where it has none."""

    def __str__(self) -> str:
        return f"{self.text} {self.interval}".rstrip()

    @classmethod
    def of(cls, value: float | None, digits: int = 3) -> Number:
        """A number of `digits` significant digits."""
        return cls(math.nan if value is None else value, number(value, digits))

    @classmethod
    def count(cls, value: int) -> Number:
        """A number of things."""
        return cls(value, str(value))

    @classmethod
    def percent(cls, fraction: float | None, digits: int = 0) -> Number:
        """`12 %` from 0.12."""
        return cls(math.nan if fraction is None else fraction, percent(fraction, digits))


UNKNOWN = Number(math.nan, NONE)
"""A number that is not known."""


def number(value: float | None, digits: int = 3) -> str:
    """`digits` significant digits, no exponent; `–` for what is not known."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    return f"{value:.{decimal_places(value, digits)}f}"


def decimal_places(value: float, digits: int) -> int:
    """Decimal places, at most six, with which a number has `digits` significant digits; none of 0 and of what is not finite."""
    if value == 0 or not math.isfinite(value):
        return 0
    return min(6, max(0, digits - 1 - math.floor(math.log10(abs(value)))))


def percent(fraction: float | None, digits: int = 0) -> str:
    """`12 %` from 0.12; ∞ for an infinite fraction, – for one that is not known."""
    if fraction is None or math.isnan(fraction):
        return NONE
    return "∞" if math.isinf(fraction) else f"{100 * fraction:.{digits}f} %"


def shares(limited_by: Mapping[str, float], least: float = 0.05) -> str:
    """`cwnd 80%, app 20%`, which folds between causes: the share of the time that each cause held a flow back; shares below `least` are left out."""
    return ", ".join(f"{cause} {percent(share).replace(' ', '')}" for cause, share in limited_by.items() if share >= least) or NONE


def joined(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""
