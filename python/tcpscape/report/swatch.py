"""The look of a congestion control as a small picture in a page: its colour, marker and dash, the same as in the figures."""

from __future__ import annotations

import functools

import numpy as np
from markupsafe import Markup

from tcpscape.controls.palette import Look

WIDTH, HEIGHT = 26, 12
"""Size of the picture, px."""
LINE, MARK = 1.8, 8.0
"""Width of the line, and size of the marker, px."""


@functools.cache
def swatch(look: Look) -> Markup:
    """An inline SVG of a line with the look's colour, dash and marker; it says nothing to a screen reader, because a name stands beside it."""
    return Markup(
        '<svg class="swatch" width="{w}" height="{h}" viewBox="0 0 {w} {h}" aria-hidden="true">'
        '<path d="M0 {y}H{w}" stroke="{colour}" stroke-width="{line}"{dash}/>{mark}</svg>'
    ).format(w=WIDTH, h=HEIGHT, y=HEIGHT / 2, colour=look.colour, line=LINE, dash=_dash(look), mark=marker(look, WIDTH / 2, HEIGHT / 2, MARK))


def _dash(look: Look) -> Markup:
    """The `stroke-dasharray` of a look; nothing for a solid line."""
    lengths = () if isinstance(look.dash, str) else look.dash[1]
    return Markup(' stroke-dasharray="{}"').format(" ".join(f"{length:g}" for length in lengths)) if lengths else Markup()


def marker(look: Look, x: float, y: float, size: float) -> Markup:
    """The marker of a look as an SVG element around (x, y), `size` units wide."""
    if look.marker == "o":
        return Markup('<circle cx="{:g}" cy="{:g}" r="{:g}" fill="{}"/>').format(x, y, size / 2, look.colour)
    from matplotlib.markers import MarkerStyle

    style = MarkerStyle(look.marker)
    outline = np.asarray(style.get_path().transformed(style.get_transform()).to_polygons()[0])
    points = " ".join(f"{x + size * px:.1f},{y - size * py:.1f}" for px, py in outline)
    return Markup('<polygon points="{}" fill="{}"/>').format(points, look.colour)
