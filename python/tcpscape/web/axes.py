"""What a path can be varied along: the axes of curves and maps, and their levels as a user writes them.

An axis is a field of the state (and an axis of a campaign: `tcpscape sweep` has the same). Its levels are texts, so that each can be put into the
state as it is; :func:`place` says where a text stands, in SI units. The levels of a curve hold the state's own value exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from typing_extensions import TypedDict

from tcpscape import units
from tcpscape.campaign import axes
from tcpscape.errors import refuse, shown
from tcpscape.findings.cliff.levels import WALK
from tcpscape.web.state import FIELDS, FieldKind, State

Quantity = Literal["time", "rate", "share", "size", "number"]
"""What the numbers of an axis are, in s, bit/s, 1, bytes, 1."""
SI = {"ms": 1e-3, "Mbit/s": 1e6, "%": 0.01, "B": 1.0, "": 1.0}
"""Unit of :func:`tcpscape.campaign.axes.read` → factor to SI."""
STEPS = ((1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0,))
"""Levels of a decade of a logarithmic axis: the first ones of which there are not too many."""
MOST = 14
"""Most levels of a logarithmic axis, 0 and the state's own value excepted."""
APART = 0.12
"""A level is left out where the state's own value is nearer than this share of it."""
SHARES = (0.0, *(share for share in WALK if share <= 0.4))
"""Levels of jitter, as shares of the RTT: those of the first walk of a search for a cliff."""


class AxisChoice(TypedDict):
    """An axis that can be chosen."""

    axis: str
    title: str
    quantity: Quantity
    log: bool


class AxisDocument(AxisChoice):
    """An axis of an answer."""

    here: float | None
    """The state's own value, SI; null where it is no number, as a rate without a limit."""
    text: str
    """The same as written."""
    note: str
    """Why the axis makes no sense here; empty where it does."""
    words: list[str]
    """Each level as written, which the state's field takes."""


@dataclass(frozen=True)
class Axis:
    """A field of the path that curves and maps vary."""

    name: str
    low: float
    """Where it begins, SI; on a logarithmic axis with `zero`, the least level above 0."""
    high: float
    log: bool = True
    zero: bool = False
    """Whether 0 is a level."""
    kind: FieldKind | None = None
    """How its values are written where that is not the field's own way."""

    @property
    def title(self) -> str:
        """The field's label within a sentence."""
        label = FIELDS[self.name].label
        return label if label[1:2].isupper() else label[:1].lower() + label[1:]

    @property
    def quantity(self) -> Quantity:
        """What its numbers are."""
        return WRITTEN[self.kind or FIELDS[self.name].kind][0]

    def write(self, value: float) -> str:
        """The text of a value in SI."""
        return WRITTEN[self.kind or FIELDS[self.name].kind][1](value)

    @property
    def choice(self) -> AxisChoice:
        """The axis as it can be chosen."""
        return AxisChoice(axis=self.name, title=self.title, quantity=self.quantity, log=self.log)

    def document(self, state: State, words: Sequence[str]) -> AxisDocument:
        """What the page needs to draw the axis; `words`: its levels."""
        here, (problem, fix) = self.here(state), self.missing(state)
        note = f"{problem}; {fix}" if problem else ""
        return AxisDocument(**self.choice, here=place(here) if here else math.nan, text=here, note=note, words=list(words))

    def missing(self, state: State) -> tuple[str, str]:
        """Why the axis makes no sense for a state, and the fix; both are empty where it does."""
        if self.name == "buffer" and not state.rate and "bottleneck" not in state.words:
            return "there is no bottleneck whose queue could vary", "give the path a rate"
        if self.name == "loss_burst" and not state.loss and not state.words:
            return "there is no loss whose bursts could vary", "give the path a loss"
        if self.name in state.fixed:
            return f"tc's words fix the {self.title}", "take it from the path's words"
        return "", ""

    def expect(self, state: State) -> Axis:
        """The axis itself. :raises TcpscapeError: it makes no sense for this state."""
        problem, fix = self.missing(state)
        if problem:
            refuse("axis", problem, fix)
        return self

    def here(self, state: State) -> str:
        """The state's own value as written; its default where the state has none, empty where there is no number for it."""
        return str(getattr(state, self.name)) or FIELDS[self.name].standard

    def ends(self, state: State) -> tuple[float, float]:
        """The first and the last value above 0, with the state's own value between them."""
        own = place(self.here(state))
        high = SHARES[-1] * place(state.rtt) if self.name == "jitter" else self.high
        low = high / 100 if self.name == "jitter" else self.low
        if not own > 0:
            return low, high
        return (_down(own) if own < low else low), (_up(own) if own > high else high)

    def levels(self, state: State) -> tuple[str, ...]:
        """The levels of a curve, ascending, the state's own value among them."""
        low, high = self.ends(state)
        if self.name == "jitter":
            rtt = place(state.rtt)
            lattice = [share * rtt for share in (*SHARES, *(s for s in WALK if s > SHARES[-1])) if share * rtt <= high * (1 + 1e-9)]
        else:
            lattice = [0.0] * self.zero + (_doubled(low, high) if self.quantity == "size" else _lattice(low, high))
        here = self.here(state)
        return self._with_own(lattice, here, place(here) if here else math.nan)

    def _with_own(self, lattice: list[float], here: str, own: float) -> tuple[str, ...]:
        texts = _by_place(self.write(value) for value in lattice if math.isnan(own) or abs(value - own) > APART * max(value, own))
        if not math.isnan(own):
            texts[own] = here
        return tuple(texts[value] for value in sorted(texts))

    def cells(self, state: State, count: int) -> tuple[str, ...]:
        """The levels of a map, `count` of them: even steps of the axis from its first to its last value (from 0 where it is linear)."""
        low, high = self.ends(state)
        if self.log:
            return tuple(_by_place(self.write(low * (high / low) ** (i / (count - 1))) for i in range(count)).values())
        return tuple(_by_place(self.write(high * i / (count - 1)) for i in range(count)).values())


def _by_place(texts: Iterable[str]) -> dict[float, str]:
    """Texts by their place; one where several stand for the same, none for what is no quantity (more than a TiB)."""
    return {at: text for text in texts if not math.isnan(at := place(text))}


def _lattice(low: float, high: float) -> list[float]:
    """Round numbers from `low` to `high`, no more than :data:`MOST` where that is possible."""
    every = [_decades(low, high, steps) for steps in STEPS]
    return next((values for values in every if len(values) <= MOST), every[-1])


def _decades(low: float, high: float, steps: Sequence[float] = STEPS[1]) -> list[float]:
    """The values of `steps` in every decade from `low` to `high`."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    values = [float(f"{step * 10.0**decade:.6g}") for decade in range(first, last + 1) for step in steps]
    return [value for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]


def _doubled(low: float, high: float) -> list[float]:
    """Powers of two from about `low` to about `high`: sizes of buffers are written so."""
    return [2.0**power for power in range(round(math.log2(low)), round(math.log2(high)) + 1)]


def _down(value: float) -> float:
    return max(v for v in _decades(value / 10, value) if v <= value * (1 + 1e-9))


def _up(value: float) -> float:
    return min(v for v in _decades(value, value * 10) if v >= value * (1 - 1e-9))


def place(text: str) -> float:
    """Where a text stands, SI: `8ms` → 0.008, `10mbit` → 1e7, `0.1%` → 0.001, `64KiB` → 65536, `2bdp` → 2; NaN for words."""
    if text.strip().endswith("bdp"):
        return _number(text.strip().removesuffix("bdp"))
    value = axes.read(text)
    return value.number * SI[value.unit]


def _number(text: str) -> float:
    return float(text) if units.is_bare(text.strip()) else math.nan


def find(name: str, state: State) -> Axis:
    """The axis of this name. :raises TcpscapeError: there is none."""
    axis = AXES.get(name)
    if axis is None:
        refuse("axis", f"{shown(name)} is unknown", f"choose {', '.join(AXES)}")
    if name == "buffer" and state.buffer and not state.buffer.strip().endswith("bdp"):
        return _BYTES_OF_BUFFER
    return axis


def _rate(bps: float) -> str:
    return f"{bps / 1e6:.4g}mbit"


def _size(size: float) -> str:
    """In KiB, above 16 KiB whole ones."""
    whole = round(size / 1024)
    return f"{whole}KiB" if whole >= 16 or size % 1024 == 0 else f"{round(size)}B"


WRITTEN: dict[str, tuple[Quantity, Callable[[float], str]]] = {
    "time": ("time", lambda x: units.brief_time(x * 1e9)),
    "rate": ("rate", _rate),
    "byterate": ("rate", _rate),
    "share": ("share", units.brief_percent),
    "size": ("size", _size),
    "number": ("number", lambda x: f"{x:.3g}"),
    "buffer": ("number", lambda x: f"{x:.3g}bdp"),
}
"""Kind of a field → what its numbers are, and the text of one in SI."""
AXES = {
    axis.name: axis
    for axis in (
        Axis("rtt", 0.010, 0.300),
        Axis("jitter", 0.0, 0.02, log=False, zero=True),
        Axis("loss", 1e-4, 0.1, zero=True),
        Axis("loss_burst", 1.0, 50.0),
        Axis("rate", 1e6, 200e6),
        Axis("buffer", 0.1, 10.0),
        Axis("rcvbuf", 16 * 1024.0, 4 * 2**20),
        Axis("app", 1e6, 200e6),
        Axis("duration", 1.0, 50.0),
    )
}
"""Every axis by its name."""
_BYTES_OF_BUFFER = Axis("buffer", 2.0**13, 2.0**22, kind="size")
