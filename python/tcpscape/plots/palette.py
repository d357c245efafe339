"""Who looks how: a colour, a marker and a dash for each congestion control, that colour-blind readers can tell apart too.

Six hues after Okabe and Ito (2008), darkened or lightened until each has a contrast of 3 : 1 on white and on a near-black page (WCAG 2.1,
1.4.11), and stays apart from the others under simulated protanopia and deuteranopia. Congestion controls that share a hue differ in marker and
dash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ORANGE, BLUE, GREEN, INDIGO, PINK, VERMILION = HUES = ("#cc8400", "#0088cc", "#00896a", "#6a51c0", "#d070a3", "#c23b00")
SOLID, DASHED, DOTTED, MIXED = DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
MARKS = (("o", "s", "^", "D", "v", "P"), ("X", "<", "h", "d", ">", "*"), ("s", "v", "P", "o", "D", "^"), ("d", "X", "*", "<", "h", ">"))
"""Of each dash, the marker of each hue; no hue has one of them twice."""


@dataclass(frozen=True, slots=True)
class Look:
    """How something is drawn."""

    colour: str
    marker: str
    dash: Any
    """Matplotlib's line style."""


LOOKS = tuple(Look(hue, mark, dash) for dash, marks in zip(DASHES, MARKS, strict=True) for hue, mark in zip(HUES, marks, strict=True))
"""Every look, the plainest first."""
KNOWN = (
    "cubic", "bbr", "reno", "bbr3", "dctcp", "vegas", "htcp", "prague", "westwood", "yeah", "illinois", "bic",
    "hybla", "nv", "veno", "lp", "cdg", "scalable", "highspeed", "fixed",
)  # fmt: skip
"""Congestion controls with a look of their own, the same in every figure; the one in this place of :data:`LOOKS`."""


def looks(names: Iterable[str]) -> Mapping[str, Look]:
    """A look for each of these: its own where it has one, or one that nobody else here has (as long as there are any)."""
    wanted = list(dict.fromkeys(names))
    own = {name: LOOKS[KNOWN.index(name)] for name in wanted if name in KNOWN}
    spare = _spare(list(own.values()))
    others = [name for name in wanted if name not in own]
    found = own | {name: spare[i % len(spare)] for i, name in enumerate(others)}
    return {name: found[name] for name in wanted}


def _spare(taken: Sequence[Look]) -> list[Look]:
    """The looks nobody has, those of unused hues first."""
    hues = {look.colour for look in taken}
    return sorted((look for look in LOOKS if look not in taken), key=lambda look: (look.colour in hues, LOOKS.index(look))) or list(LOOKS)
