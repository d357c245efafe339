"""The look of each congestion control: colour, marker and dash, the same in every figure and on the explorer's page.

The six hues follow Okabe and Ito (2008), moved until each has a contrast of 3 : 1 on white and on a near-black page (WCAG 2.1, 1.4.11), and the
least difference of any two is as large as possible for normal eyes and under simulated protanopia, deuteranopia and tritanopia (Machado, Oliveira
and Fernandes 2009): 25 in CIELAB. No two congestion controls of a chart share a hue while one is free: the first one
keeps its own. Beyond six, those that share a hue differ in marker and dash; bars and areas name theirs or are hatched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

ORANGE, BLUE, GREEN, INDIGO, PINK, VERMILION = HUES = ("#d68000", "#009ede", "#1a7152", "#674dce", "#c280a2", "#b23b16")
SOLID, DASHED, DOTTED, MIXED = DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
HATCHES = ("", "///", "...", "xx")
"""For each dash, the pattern of an area."""
MARKS = (("o", "s", "^", "D", "v", "P"), ("X", "<", "h", "d", ">", "*"), ("s", "v", "P", "o", "D", "^"), ("d", "X", "*", "<", "h", ">"))
"""For each dash, the marker of each hue; no hue has a marker twice."""


@dataclass(frozen=True, slots=True)
class Look:
    """Colour, marker and line style of a congestion control."""

    colour: str
    marker: str
    dash: Any
    """Matplotlib's line style."""

    @property
    def hatch(self) -> str:
        """The pattern of an area, in place of the dash of a line."""
        return HATCHES[DASHES.index(self.dash)]

    def variant(self, place: int) -> Look:
        """The same colour and marker with another dash, for another flow of a congestion control; 0 is the look itself."""
        return replace(self, dash=DASHES[(DASHES.index(self.dash) + place) % len(DASHES)])


LOOKS = tuple(Look(hue, mark, dash) for dash, marks in zip(DASHES, MARKS, strict=True) for hue, mark in zip(HUES, marks, strict=True))
"""Every look, solid lines first."""
KNOWN = (
    "cubic",
    "bbr",
    "reno",
    "bbr3",
    "dctcp",
    "vegas",
    "htcp",
    "prague",
    "westwood",
    "yeah",
    "illinois",
    "bic",
    "hybla",
    "nv",
    "veno",
    "lp",
    "cdg",
    "scalable",
    "highspeed",
    "fixed",
)
"""Congestion controls with a look of their own, the one at the same place in :data:`LOOKS`."""


def looks(names: Iterable[str]) -> Mapping[str, Look]:
    """A look for each name: its own if it is in :data:`KNOWN`, of a free hue where that is taken; else one that no other name here has."""
    unique = list(dict.fromkeys(names))
    fixed: dict[str, Look] = {}
    for name in sorted((name for name in unique if name in KNOWN), key=KNOWN.index):
        own, taken = LOOKS[KNOWN.index(name)], list(fixed.values())
        hues = {look.colour for look in taken}
        of_free_hues = [look for look in LOOKS if look.colour not in hues and look.dash == own.dash]
        spare = of_free_hues or [look for look in (own, *LOOKS) if look not in taken]
        fixed[name] = spare[0] if own.colour in hues else own
    spare = _spare(list(fixed.values()))
    others = [name for name in unique if name not in fixed]
    by_name = fixed | {name: spare[i % len(spare)] for i, name in enumerate(others)}
    return {name: by_name[name] for name in unique}


def _spare(taken: Sequence[Look]) -> list[Look]:
    """The looks that are not taken, those of unused hues first; all of them if none is left."""
    hues = {look.colour for look in taken}
    return sorted((look for look in LOOKS if look not in taken), key=lambda look: (look.colour in hues, LOOKS.index(look))) or list(LOOKS)


def another(look: Look, taken: Sequence[Look]) -> Look | None:
    """A look of the same colour with another marker and dash that is not `taken`: for the same control on another engine; None if there is none."""
    return next((other for other in LOOKS if other.colour == look.colour and other not in taken), None)


def colour(cca: str, place: int = 0) -> str:
    """The colour of a congestion control, the same in every figure; one that is not in :data:`KNOWN` gets a colour by its `place`."""
    return looks([cca])[cca].colour if cca in KNOWN else LOOKS[(place + 3) % len(LOOKS)].colour
