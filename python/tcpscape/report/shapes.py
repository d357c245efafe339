"""Shapes of a diagram as SVG: boxes in a chain, arrows, texts, and the small picture of a congestion control's look.

A chain of boxes is drawn twice, from left to right for a wide page and from top to bottom for a narrow one. Lines and text are in the page's text
colour (`currentColor`); a drawing has a title and a description for those who do not see it. A congestion control is a small picture
(:func:`swatch`): its colour, marker and dash, the same as in the figures.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from tcpscape.controls.palette import Look

FONT, LINE = 12.0, 17.0
"""Size of the text, and distance of its lines, px."""
CHARACTER = 0.58
"""Mean width of a character over the font's size; wide enough for DejaVu Sans."""
PAD, MARK = 12.0, 9.0
"""Space inside a box at its sides, and size of a control's marker, px."""
LEAST_LINK, LEAST_BOX = 84.0, 104.0
"""Least length of an arrow, and least width of a box, from left to right, px."""
WIDTH, MARGIN = 340.0, 34.0
"""Width of a drawing from top to bottom, and room at its left for the way back, px."""
ROW = 32.0
"""Height of a span's text and arrow, px."""
HEAD = 7.0
"""Length of an arrow's head, px."""


@dataclass(frozen=True)
class Box:
    """A box: its title, and its lines, each with the look whose marker stands before it."""

    title: str
    lines: Sequence[tuple[str, Look | None]] = ()
    field: str = ""
    """The field of the scenario that it shows, `links.0`, for a page where it can be changed."""

    @property
    def width(self) -> float:
        """Width of its text with the space around it, px."""
        widths = [width_of(self.title), *(width_of(text) + (MARK + 6 if look else 0) for text, look in self.lines)]
        return max(LEAST_BOX, 2 * PAD + max(widths))

    @property
    def height(self) -> float:
        """Height of its text with the space around it, px."""
        return LINE * (len(self.lines) + 1) + PAD


@dataclass(frozen=True)
class Arrow:
    """An arrow and the lines beside it."""

    lines: Sequence[str]
    what: str = "ACKs"
    """What returns along it, where it is the way back."""

    @property
    def width(self) -> float:
        """Length of the arrow from left to right, px."""
        return max(LEAST_LINK, 24 + max(map(width_of, self.lines), default=0.0))


@dataclass(frozen=True)
class Span:
    """What travels along a chain of routers, from one of them to another."""

    text: str
    look: Look | None
    start: int
    """Number of the router at which it enters."""
    end: int
    """Number of the router at which it leaves; less than `start` against the chain."""
    field: str = ""
    """The field of the scenario that it shows, `probes.0`."""


def describe(nodes: Sequence[Box], links: Sequence[Arrow], back: Arrow) -> str:
    """The drawing in words."""
    boxes = [": ".join(filter(None, [node.title, ", ".join(text for text, _ in node.lines)])) for node in nodes]
    steps = [f"{box} → {', '.join(link.lines)}".removesuffix(" → ") for box, link in zip(boxes, links, strict=False)]
    return f"{'; then '.join([*steps, boxes[-1]])}. {back.what} return: {', '.join(back.lines) or 'without delay'}."


def horizontal(nodes: Sequence[Box], links: Sequence[Arrow], back: Arrow, name: str) -> Markup:
    """The chain from left to right; `name`: the beginning of its ids."""
    tallest, above = max(node.height for node in nodes), LINE * max(len(link.lines) for link in links) - LINE
    height = max(tallest, 2 * above + LINE)
    middle, x, parts, starts = 1 + height / 2, 1.0, [], []
    for i, node in enumerate(nodes):
        parts.append(_box(node, x, middle - tallest / 2, node.width, tallest))
        starts.append(x)
        x += node.width
        if i < len(links):
            parts.append(arrow_along([(x, middle), (x + links[i].width, middle)]))
            parts.append(_text_lines(links[i].lines, x + links[i].width / 2, middle))
            x += links[i].width
    below = middle + tallest / 2
    turn = below + 22
    first, last = starts[0] + nodes[0].width / 2, starts[-1] + nodes[-1].width / 2
    parts.append(arrow_along([(last, below), (last, turn), (first, turn), (first, below)]))
    parts.append(text_at(_ack_text(back), (first + last) / 2, turn + LINE, "middle"))
    return svg(parts, x + 1, turn + LINE + 8, name, describe(nodes, links, back))


def vertical(nodes: Sequence[Box], links: Sequence[Arrow], back: Arrow, name: str) -> Markup:
    """The chain from top to bottom, at most 340 px wide; `name`: the beginning of its ids."""
    y, parts, middles = 1.0, [], []
    width = WIDTH - MARGIN - 1
    for i, node in enumerate(nodes):
        parts.append(_box(node, MARGIN, y, width, node.height))
        middles.append(y + node.height / 2)
        y += node.height
        if i < len(links):
            length = max(30.0, LINE * len(links[i].lines) + 10)
            parts.append(arrow_along([(MARGIN + 24, y), (MARGIN + 24, y + length)]))
            parts += [text_at(text, MARGIN + 40, y + 4 + LINE * (k + 1) - 3, "start") for k, text in enumerate(links[i].lines)]
            y += length
    parts.append(arrow_along([(MARGIN, middles[-1]), (10, middles[-1]), (10, middles[0]), (MARGIN, middles[0])]))
    lines = _wrapped(_ack_text(back), width)
    parts += [text_at(text, 4, y + LINE * (k + 1), "start") for k, text in enumerate(lines)]
    return svg(parts, WIDTH, y + LINE * len(lines) + 8, name, describe(nodes, links, back))


def along_routers(routers: Sequence[str], links: Sequence[Box], spans: Sequence[Span], rest: Sequence[str], name: str, description: str) -> Markup:
    """Routers in a row with the links between them, and below, an arrow for each span from where it enters to where it leaves.

    :param links: one fewer than routers; the title stands above the link, its lines below it.
    :param rest: lines below the spans.
    :param name: the beginning of its ids; `description`: what it shows, in words.
    """
    halves = [width_of(router) / 2 for router in routers]
    places = [max(PAD, halves[0] + 2)]
    for i, link in enumerate(links):
        beside = width_of(link.title) + 2 * max(halves[i], halves[i + 1]) + 2 * PAD
        places.append(places[-1] + max(LEAST_LINK, beside, *(width_of(text) + 2 * PAD for text, _ in link.lines)))
    parts, rail = [], 2 * LINE
    below = rail + LINE * (max(len(link.lines) for link in links) + 1)
    bottom = below + ROW * len(spans)
    for i, link in enumerate(links):
        middle = (places[i] + places[i + 1]) / 2
        rails = Markup('<polyline class="link" points="{:.1f},{:.1f} {:.1f},{:.1f}"/>').format(places[i], rail, places[i + 1], rail)
        title = text_at(link.title, middle, rail - 8, "middle", "title")
        texts = [text_at(text, middle, rail + LINE * (k + 1), "middle") for k, (text, _) in enumerate(link.lines)]
        parts.append(_of_field(link.field, [rails, title, *texts]))
    for x, router in zip(places, routers, strict=True):
        parts.append(Markup('<polyline class="guide" points="{:.1f},{:.1f} {:.1f},{:.1f}"/>').format(x, rail, x, bottom))
        parts.append(Markup('<circle class="box" cx="{:.1f}" cy="{:.1f}" r="6"/>').format(x, rail))
        parts.append(text_at(router, x, rail - 12, "middle"))
    for i, span in enumerate(spans):
        y = below + ROW * i
        parts.append(_span(span, places, y))
    parts += [text_at(text, places[0] + PAD / 2, bottom + LINE * (i + 1) - 3, "start") for i, text in enumerate(rest)]
    ends = [min(places[span.start], places[span.end]) + PAD + width_of(span.text) for span in spans]
    ends += [places[0] + PAD + width_of(text) for text in rest]
    return svg(parts, max(places[-1] + max(PAD, halves[-1] + 2), *ends) + 1, bottom + 6 + LINE * len(rest), name, description)


def _span(span: Span, places: Sequence[float], y: float) -> Markup:
    """Its text, and below it the arrow in its colour."""
    start, end = places[span.start], places[span.end]
    colour = span.look.colour if span.look else "currentColor"
    arrow = arrow_along([(start, y + ROW - 10), (end, y + ROW - 10)])
    mark = marker(span.look, start, y + ROW - 10, MARK) if span.look else Markup()
    text = text_at(span.text, min(start, end) + PAD / 2, y + ROW - 16, "start")
    return _of_field(span.field, [text, Markup('<g color="{}" fill="currentColor">{}{}</g>').format(colour, arrow, mark)])


def _of_field(field: str, parts: Sequence[Markup]) -> Markup:
    """The parts as one that says which field it shows."""
    whole = Markup().join(parts)
    return Markup('<g data-field="{}">{}</g>').format(field, whole) if field else whole


def width_of(text: str) -> float:
    """Width of a text, px, somewhat more than it takes."""
    return CHARACTER * FONT * len(text)


def _wrapped(text: str, width: float) -> list[str]:
    """A text as lines that fit into a width in px."""
    from tcpscape.plots.style import wrap

    return wrap(text, int(width / (CHARACTER * FONT)))


def _ack_text(back: Arrow) -> str:
    return ", ".join([back.what, *back.lines]) if back.lines else f"{back.what}, not delayed"


def _box(node: Box, x: float, y: float, width: float, height: float) -> Markup:
    """A box with its title and its lines."""
    parts = [Markup('<rect class="box" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="5"/>').format(x, y, width, height)]
    parts.append(text_at(node.title, x + PAD, y + LINE, "start", "title"))
    for i, (text, look) in enumerate(node.lines):
        base = y + LINE * (i + 2)
        if look:
            parts.append(marker(look, x + PAD + MARK / 2, base - FONT / 3, MARK))
        parts.append(text_at(text, x + PAD + (MARK + 6 if look else 0), base, "start"))
    return _of_field(node.field, parts)


def _text_lines(lines: Sequence[str], x: float, middle: float) -> Markup:
    """Lines around an arrow: the first half above it, the others below it."""
    above = -(-len(lines) // 2)
    parts = [text_at(text, x, middle - 6 - LINE * (above - 1 - i), "middle") for i, text in enumerate(lines[:above])]
    return Markup().join([*parts, *(text_at(text, x, middle + LINE * (i + 1), "middle") for i, text in enumerate(lines[above:]))])


def text_at(text: str, x: float, y: float, anchor: str, kind: str = "") -> Markup:
    """A text at a point; `anchor`: `start`, `middle` or `end`, `kind`: its class."""
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>').format(x, y, anchor, kind, text)


def arrow_along(points: Sequence[tuple[float, float]]) -> Markup:
    """A line through these points with a head at its end."""
    (x0, y0), (x1, y1) = points[-2:]
    length = abs(x1 - x0) + abs(y1 - y0)
    dx, dy = (x1 - x0) / length, (y1 - y0) / length
    base_x, base_y, half = x1 - HEAD * dx, y1 - HEAD * dy, HEAD / 2
    head = [(x1, y1), (base_x - half * dy, base_y - half * dx), (base_x + half * dy, base_y + half * dx)]
    line, tip = (" ".join(f"{x:.1f},{y:.1f}" for x, y in corners) for corners in (points, head))
    return Markup('<polyline class="way" points="{}"/><polygon points="{}"/>').format(line, tip)


def svg(parts: Sequence[Markup], width: float, height: float, name: str, description: str) -> Markup:
    """The parts as one drawing; `name`: the beginning of its ids, `description`: what it shows, in words."""
    return Markup(
        '<svg class="chain" viewBox="0 0 {w:.0f} {h:.0f}" width="{w:.0f}" role="img" aria-labelledby="{name}-title {name}-desc">'
        '<title id="{name}-title">The path of the packets</title><desc id="{name}-desc">{text}</desc>{parts}</svg>'
    ).format(w=width, h=height, name=name, text=description, parts=Markup().join(parts))


SWATCH, SWATCH_HEIGHT = 26, 12
"""Size of the picture of a look, px."""
SWATCH_LINE, SWATCH_MARK = 1.8, 8.0
"""Width of its line, and size of its marker, px."""


@functools.cache
def swatch(look: Look) -> Markup:
    """An inline SVG of a line with the look's colour, dash and marker; it says nothing to a screen reader, because a name stands beside it."""
    mark = marker(look, SWATCH / 2, SWATCH_HEIGHT / 2, SWATCH_MARK)
    return Markup(
        '<svg class="swatch" width="{w}" height="{h}" viewBox="0 0 {w} {h}" aria-hidden="true">'
        '<path d="M0 {y}H{w}" stroke="{colour}" stroke-width="{line}"{dash}/>{mark}</svg>'
    ).format(w=SWATCH, h=SWATCH_HEIGHT, y=SWATCH_HEIGHT / 2, colour=look.colour, line=SWATCH_LINE, dash=_dash(look), mark=mark)


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
