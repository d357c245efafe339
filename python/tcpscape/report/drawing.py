"""A chain of boxes with arrows between them, and an arrow back from the last to the first, as SVG: from left to right, or from top to bottom.

Lines and text are in the page's text colour (`currentColor`); the drawing has a title and a description for those who do not see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tcpscape.controls.palette import Look
from tcpscape.report.swatch import marker

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
HEAD = 7.0
"""Length of an arrow's head, px."""


@dataclass(frozen=True)
class Node:
    """A box: its title, and its lines, each with the look whose marker stands before it."""

    title: str
    lines: Sequence[tuple[str, Look | None]] = ()

    @property
    def width(self) -> float:
        """Width of its text with the space around it, px."""
        widths = [_width(self.title), *(_width(text) + (MARK + 6 if look else 0) for text, look in self.lines)]
        return max(LEAST_BOX, 2 * PAD + max(widths))

    @property
    def height(self) -> float:
        """Height of its text with the space around it, px."""
        return LINE * (len(self.lines) + 1) + PAD


@dataclass(frozen=True)
class Link:
    """An arrow and the lines beside it."""

    lines: Sequence[str]
    what: str = "ACKs"
    """What returns along it, where it is the way back."""

    @property
    def width(self) -> float:
        """Length of the arrow from left to right, px."""
        return max(LEAST_LINK, 24 + max(map(_width, self.lines), default=0.0))


def describe(nodes: Sequence[Node], links: Sequence[Link], back: Link) -> str:
    """The drawing in words."""
    boxes = [": ".join(filter(None, [node.title, ", ".join(text for text, _ in node.lines)])) for node in nodes]
    steps = [f"{box} → {', '.join(link.lines)}".removesuffix(" → ") for box, link in zip(boxes, links, strict=False)]
    return f"{'; then '.join([*steps, boxes[-1]])}. {back.what} return: {', '.join(back.lines) or 'without delay'}."


def horizontal(nodes: Sequence[Node], links: Sequence[Link], back: Link, name: str) -> Markup:
    """The chain from left to right; `name`: the beginning of its ids."""
    tallest, above = max(node.height for node in nodes), LINE * max(len(link.lines) for link in links) - LINE
    height = max(tallest, 2 * above + LINE)
    middle, x, parts, starts = 1 + height / 2, 1.0, [], []
    for i, node in enumerate(nodes):
        parts.append(_box(node, x, middle - tallest / 2, node.width, tallest))
        starts.append(x)
        x += node.width
        if i < len(links):
            parts.append(_arrow([(x, middle), (x + links[i].width, middle)]))
            parts.append(_lines(links[i].lines, x + links[i].width / 2, middle))
            x += links[i].width
    below = middle + tallest / 2
    turn = below + 22
    first, last = starts[0] + nodes[0].width / 2, starts[-1] + nodes[-1].width / 2
    parts.append(_arrow([(last, below), (last, turn), (first, turn), (first, below)]))
    parts.append(_text(_ack_text(back), (first + last) / 2, turn + LINE, "middle"))
    return _svg(parts, x + 1, turn + LINE + 8, name, describe(nodes, links, back))


def vertical(nodes: Sequence[Node], links: Sequence[Link], back: Link, name: str) -> Markup:
    """The chain from top to bottom, at most 340 px wide; `name`: the beginning of its ids."""
    y, parts, middles = 1.0, [], []
    width = WIDTH - MARGIN - 1
    for i, node in enumerate(nodes):
        parts.append(_box(node, MARGIN, y, width, node.height))
        middles.append(y + node.height / 2)
        y += node.height
        if i < len(links):
            length = max(30.0, LINE * len(links[i].lines) + 10)
            parts.append(_arrow([(MARGIN + 24, y), (MARGIN + 24, y + length)]))
            parts += [_text(text, MARGIN + 40, y + 4 + LINE * (k + 1) - 3, "start") for k, text in enumerate(links[i].lines)]
            y += length
    parts.append(_arrow([(MARGIN, middles[-1]), (10, middles[-1]), (10, middles[0]), (MARGIN, middles[0])]))
    lines = _wrapped(_ack_text(back), width)
    parts += [_text(text, 4, y + LINE * (k + 1), "start") for k, text in enumerate(lines)]
    return _svg(parts, WIDTH, y + LINE * len(lines) + 8, name, describe(nodes, links, back))


def _width(text: str) -> float:
    return CHARACTER * FONT * len(text)


def _wrapped(text: str, width: float) -> list[str]:
    """A text as lines that fit into a width in px."""
    from tcpscape.plots.style import wrap

    return wrap(text, int(width / (CHARACTER * FONT)))


def _ack_text(back: Link) -> str:
    return ", ".join([back.what, *back.lines]) if back.lines else f"{back.what}, not delayed"


def _box(node: Node, x: float, y: float, width: float, height: float) -> Markup:
    """A box with its title and its lines."""
    parts = [Markup('<rect class="box" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="5"/>').format(x, y, width, height)]
    parts.append(_text(node.title, x + PAD, y + LINE, "start", "title"))
    for i, (text, look) in enumerate(node.lines):
        base = y + LINE * (i + 2)
        if look:
            parts.append(marker(look, x + PAD + MARK / 2, base - FONT / 3, MARK))
        parts.append(_text(text, x + PAD + (MARK + 6 if look else 0), base, "start"))
    return Markup().join(parts)


def _lines(lines: Sequence[str], x: float, middle: float) -> Markup:
    """Lines around an arrow: the first half above it, the others below it."""
    above = -(-len(lines) // 2)
    parts = [_text(text, x, middle - 6 - LINE * (above - 1 - i), "middle") for i, text in enumerate(lines[:above])]
    return Markup().join([*parts, *(_text(text, x, middle + LINE * (i + 1), "middle") for i, text in enumerate(lines[above:]))])


def _text(text: str, x: float, y: float, anchor: str, kind: str = "") -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>').format(x, y, anchor, kind, text)


def _arrow(points: Sequence[tuple[float, float]]) -> Markup:
    """A line through these points with a head at its end."""
    (x0, y0), (x1, y1) = points[-2:]
    length = abs(x1 - x0) + abs(y1 - y0)
    dx, dy = (x1 - x0) / length, (y1 - y0) / length
    base_x, base_y, half = x1 - HEAD * dx, y1 - HEAD * dy, HEAD / 2
    head = [(x1, y1), (base_x - half * dy, base_y - half * dx), (base_x + half * dy, base_y + half * dx)]
    line, tip = (" ".join(f"{x:.1f},{y:.1f}" for x, y in corners) for corners in (points, head))
    return Markup('<polyline class="way" points="{}"/><polygon points="{}"/>').format(line, tip)


def _svg(parts: Sequence[Markup], width: float, height: float, name: str, description: str) -> Markup:
    return Markup(
        '<svg class="chain" viewBox="0 0 {w:.0f} {h:.0f}" style="max-width:{w:.0f}px" role="img" aria-labelledby="{name}-title {name}-desc">'
        '<title id="{name}-title">The path of the packets</title><desc id="{name}-desc">{text}</desc>{parts}</svg>'
    ).format(w=width, h=height, name=name, text=description, parts=Markup().join(parts))
