"""The path of a page as a diagram: sender → hops of the data → router with the bottleneck → receiver, and the way of the ACKs back.

It is made from the scenarios that were run: :func:`PathView.of` reads what each queue does to packets (`Scenario.queues`) and merges the scenarios of
a sweep, so that a value that changes is shown with its ends. It is drawn twice as SVG, from left to right for a wide page and from top to bottom for
a narrow one. Lines and text are in the page's text colour (`currentColor`); the drawing has a title and a description for those who do not see it.
A congestion control is a small picture (:func:`swatch`): its colour, marker and dash, the same as in the figures.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from markupsafe import Markup

from tcpscape import units
from tcpscape.controls.palette import Look
from tcpscape.scenario import path, topology
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.words import QueueDescription
from tcpscape.units import format_byte_rate, format_size
from tcpscape.words import paths

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
class Box:
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
class Arrow:
    """An arrow and the lines beside it."""

    lines: Sequence[str]
    what: str = "ACKs"
    """What returns along it, where it is the way back."""

    @property
    def width(self) -> float:
        """Length of the arrow from left to right, px."""
        return max(LEAST_LINK, 24 + max(map(_width, self.lines), default=0.0))


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
            parts.append(_arrow([(x, middle), (x + links[i].width, middle)]))
            parts.append(_text_lines(links[i].lines, x + links[i].width / 2, middle))
            x += links[i].width
    below = middle + tallest / 2
    turn = below + 22
    first, last = starts[0] + nodes[0].width / 2, starts[-1] + nodes[-1].width / 2
    parts.append(_arrow([(last, below), (last, turn), (first, turn), (first, below)]))
    parts.append(_text(_ack_text(back), (first + last) / 2, turn + LINE, "middle"))
    return _svg(parts, x + 1, turn + LINE + 8, name, describe(nodes, links, back))


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


def _ack_text(back: Arrow) -> str:
    return ", ".join([back.what, *back.lines]) if back.lines else f"{back.what}, not delayed"


def _box(node: Box, x: float, y: float, width: float, height: float) -> Markup:
    """A box with its title and its lines."""
    parts = [Markup('<rect class="box" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="5"/>').format(x, y, width, height)]
    parts.append(_text(node.title, x + PAD, y + LINE, "start", "title"))
    for i, (text, look) in enumerate(node.lines):
        base = y + LINE * (i + 2)
        if look:
            parts.append(marker(look, x + PAD + MARK / 2, base - FONT / 3, MARK))
        parts.append(_text(text, x + PAD + (MARK + 6 if look else 0), base, "start"))
    return Markup().join(parts)


def _text_lines(lines: Sequence[str], x: float, middle: float) -> Markup:
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


NS_PER_MS = 1e6
MOST_CONTROLS = 4
"""Most congestion controls that the sender's box names."""
MOST_CHARACTERS = 36
"""Most characters of a name in a box."""
DELAYS = ("netem", "jitter")
"""Disciplines that hold packets on their way."""
Chain = tuple[QueueDescription, ...]
"""A queue and its children, from the outside in."""
NO_LOOKS: Mapping[str, Look] = {}


@dataclass(frozen=True, slots=True)
class PlaceQuantity:
    """One property of a place on the path, of all scenarios."""

    before: str
    """The words before the number."""
    unit: str
    values: tuple[float, ...]
    """Its different values."""

    @property
    def text(self) -> str:
        """`loss 0–2 %`; empty where it is 0 everywhere."""
        low, high = min(self.values), max(self.values)
        if not high:
            return ""
        return f"{self.before}{_plain(low)}–{_plain(high)}{self.unit}" if low < high else f"{self.before}{_plain(high)}{self.unit}"


@dataclass(frozen=True)
class PathView:
    """The path of a part of a page: in words, and as a diagram for a wide and for a narrow page."""

    part: str
    words: str
    wide: Markup
    narrow: Markup

    @classmethod
    def of(cls, part: str, scenarios: Sequence[Scenario], words: str = "", *, looks: Mapping[str, Look] = NO_LOOKS, name: str = "path") -> PathView:
        """The path of these scenarios, one or more.

        :param words: the path in words, shown above the diagram.
        :param looks: congestion controls with the look that they have in the figures.
        :param name: the beginning of the ids in the page.
        """
        nodes: Sequence[Box] = (_sender(scenarios, looks), _router(scenarios), _receiver(scenarios))
        links: Sequence[Arrow] = (_link(scenarios, "forward"), Arrow(()))
        back = _link(scenarios, "reverse")
        if any(s.extras for s in scenarios):
            nodes, links, back = _network(scenarios, looks)
        wide = horizontal(nodes, links, back, f"{name}-wide")
        return cls(part, words, wide, vertical(nodes, links, back, f"{name}-narrow"))


def _sender(scenarios: Sequence[Scenario], looks: Mapping[str, Look]) -> Box:
    """The congestion controls with their looks, the number of flows, and what the application sends."""
    mixed = any(len(set(s.ccas)) > 1 for s in scenarios)
    names = list(dict.fromkeys(cca for s in scenarios for cca in s.ccas))
    most = {name: max(s.ccas.count(name) for s in scenarios) for name in names}
    shown = [(_short(f"{most[name]} × {name}" if most[name] > 1 else name), looks.get(name)) for name in names[:MOST_CONTROLS]]
    rest = len(names) - len(shown)
    rates = _ends((f.app.rate for s in scenarios for f in s.flows), format_byte_rate)
    application = f"application {rates}" if rates else ""
    player = "video player" if any(f.player for s in scenarios for f in s.flows) else ""
    title = "Sender" if mixed or len(names) == 1 else "Sender, each in turn"
    return Box(title, (*shown, *((text, None) for text in (f"and {rest} more" if rest else "", application, player) if text)))


def _receiver(scenarios: Sequence[Scenario]) -> Box:
    """The receive buffer, where it is not autotuned."""
    sizes = _ends((f.rcvbuf for s in scenarios for f in s.flows), format_size)
    return Box("Receiver", ((f"buffer {sizes}", None),) if sizes else ())


def _network(scenarios: Sequence[Scenario], looks: Mapping[str, Look]) -> tuple[Sequence[Box], Sequence[Arrow], Arrow]:
    """Hosts at the left, a box for each link of the chain with both its directions, hosts at the right; routers are on the arrows between."""
    first = scenarios[0]
    alike = [s for s in scenarios if len(s.chain) == len(first.chain)]
    boxes = []
    for i in range(len(first.chain)):
        down, up = (
            _lines([[chain for hop in getattr(s.chain[i], way) for chain in path.queues(hop, s.rtt_ns)] for s in alike])
            for way in ("forward", "reverse")
        )
        ways = {"both ways": down} if down and down == up else {"down": down, "up": up}
        lines = [line for way, texts in ways.items() for line in _fitted(f"{way}: ", texts or ("not delayed",))]
        if i == 0 and any(s.changes for s in scenarios):
            lines.append("changes during the trial")
        boxes.append(Box(topology.title(first.chain, i).capitalize(), tuple((line, None) for line in lines)))
    hosts = [Box(f"Hosts, {side}", _hosts(scenarios, way, looks)) for side, way in (("left", "down"), ("right", "up"))]
    routers = [Arrow((name,)) for name in first.routers]
    is_up = any(e.direction == "up" for s in scenarios for e in s.endpoints)
    return [hosts[0], *boxes, hosts[1]], routers, Arrow(("the other way round",), "ACKs, and data that travel up," if is_up else "ACKs")


def _fitted(before: str, texts: Sequence[str]) -> Sequence[str]:
    """The texts with commas between them, behind `before`, as lines that fit into a box of the narrow diagram."""
    lines = [f"{before}{texts[0]}"]
    for text in texts[1:]:
        longer = f"{lines[-1]}, {text}"
        lines = [*lines[:-1], longer] if len(longer) <= MOST_CHARACTERS else [*lines, text]
    return lines


def _hosts(scenarios: Sequence[Scenario], way: str, looks: Mapping[str, Look]) -> Sequence[tuple[str, Look | None]]:
    """What the hosts at one end send: the groups of the first scenario; of others, how many there are."""
    first = scenarios[0]
    sending = [flow for flow in first.flows if flow.direction == way]
    lines: list[tuple[str, Look | None]] = [(_short(paths.group(flow, first)), looks.get(flow.cca)) for flow in sending[:MOST_CONTROLS]]
    if more := len(sending) - len(lines):
        lines.append((f"and {units.counted(more, 'group')} more", None))
    if any([flow.cca for flow in s.flows] != [flow.cca for flow in first.flows] for s in scenarios):
        lines.append(("and other controls in turn", None))
    lines += [(_short(f"{entry.rate:g} transfers a second"), looks.get(entry.cca)) for entry in first.transfers if entry.direction == way]
    lines += [(_short(f"probe {probe.name}"), None) for probe in first.probes if probe.direction == way]
    return lines


def _ends(values: Iterable[int], text: Callable[[int], str]) -> str:
    """The least and the greatest of the values that are not 0, `5MiB/s–10MiB/s`; empty without any."""
    known = sorted({value for value in values if value})
    return "–".join(text(value) for value in known[:: max(1, len(known) - 1)])


def _router(scenarios: Sequence[Scenario]) -> Box:
    """The bottleneck's rate, its queue and its buffer, and what changes on the path during a trial."""
    chains = [s.queues("bottleneck") for s in scenarios]
    rated = any(q.rate_bps for s in scenarios for chain in s.queues("forward") for q in chain)
    lines = _lines(chains) if any(chains) else ("forwards at once" if rated else "no bottleneck",)
    changing = ("changes during the trial",) if any(s.changes for s in scenarios) else ()
    return Box("Router", tuple((line, None) for line in (*lines, *changing)))


def _link(scenarios: Sequence[Scenario], part: Literal["forward", "reverse"]) -> Arrow:
    """What the hops of one direction do to packets."""
    return Arrow(_lines([s.queues(part) for s in scenarios]))


def _lines(chains: Sequence[Sequence[Chain]]) -> tuple[str, ...]:
    """The properties of one place as lines; `chains`: of each scenario, the queues of the place, each with its children."""
    queues = [[q for chain in of_one for q in chain] for of_one in chains]
    rate = _merged("", " Mbit/s", (min((q.rate_bps for q in of_one if q.rate_bps), default=0) / 1e6 for of_one in queues))
    delay = _merged("", " ms", (sum(q.delay_ns for q in of_one) / NS_PER_MS for of_one in queues))
    jitter = _merged("± ", " ms", (max((q.jitter_ns for q in of_one), default=0) / NS_PER_MS for of_one in queues))
    shares = [
        _merged(f"{name} ", " %", (100 * _any(getattr(q, field) for q in of_one) for of_one in queues))
        for name, field in (("loss", "loss"), ("duplicates", "duplicate"), ("corruption", "corrupt"), ("overtaking", "reorder"))
    ]
    packets = _merged("buffer ", " packets", _given(_least(of_one, "limit_packets") for of_one in chains))
    size = _merged("buffer ", " kB", _given(_least(of_one, "limit_bytes") / 1e3 for of_one in chains))
    order = "keeps order" if jitter.text and all(q.in_order for of_one in queues for q in of_one) else ""
    spread = " ".join(filter(None, [delay.text, jitter.text, *_distributions(queues)]))
    marks = [any(q.ecn != "never" for q in of_one) for of_one in queues]
    kinds = list(dict.fromkeys(", ".join(q.kind for q in of_one if q.kind not in paths.PLAIN) for of_one in queues))
    queue = " or ".join(kind or "FIFO" for kind in kinds) if len(kinds) > 1 else kinds[0]
    queue = ", ".join(filter(None, [queue, "ECN" if all(marks) else ""]))
    return tuple(filter(None, [rate.text, spread, order, *(s.text for s in shares), queue, packets.text, size.text]))


def _plain(value: float) -> str:
    """A number with three digits, or all those before its point where it has more."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _short(name: str) -> str:
    """A name that fits into a box of the narrow diagram."""
    return name if len(name) <= MOST_CHARACTERS else f"{name[: MOST_CHARACTERS - 1]}…"


def _distributions(queues: Iterable[Sequence[QueueDescription]]) -> list[str]:
    """The distributions of the jitter."""
    return list(dict.fromkeys(q.distribution for of_one in queues for q in of_one if q.distribution and q.jitter_ns))


def _merged(before: str, unit: str, values: Iterable[float]) -> PlaceQuantity:
    return PlaceQuantity(before, unit, tuple(dict.fromkeys(values)))


def _given(limits: Iterable[float]) -> list[float]:
    """The limits of the scenarios that have one; 0 where none has."""
    return [limit for limit in limits if limit] or [0.0]


def _any(shares: Iterable[float]) -> float:
    """The share of packets to which at least one of several independent things happens."""
    left = 1.0
    for share in shares:
        left *= 1 - share
    return 1 - left


def _least(chains: Iterable[Chain], field: str) -> int:
    """The smallest limit of a place; 0 without one. That of a delay without a rate counts packets on their way, not a buffer."""
    limits = (getattr(q, field) for chain in chains for q in chain if q.kind not in DELAYS or any(p.rate_bps for p in chain))
    return min((limit for limit in limits if limit), default=0)


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
