"""The path of a page as a diagram: sender → hops of the data → router with the bottleneck → receiver, and the way of the ACKs back; or a network.

It is made from the scenarios that were run: :func:`PathView.of` reads what each queue does to packets (`Scenario.queues`) and merges the scenarios of
a sweep, so that a value that changes is shown with its ends. It is drawn twice as SVG, for a wide and for a
narrow page (:mod:`tcpscape.report.shapes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from tcpscape import units
from tcpscape.controls.palette import Look
from tcpscape.report.shapes import Arrow, Box, Span, along_routers, describe, horizontal, vertical
from tcpscape.scenario import path, topology
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.topology import Endpoint
from tcpscape.scenario.words import QueueDescription
from tcpscape.units import format_byte_rate, format_size
from tcpscape.words import paths

NS_PER_MS = 1e6
MOST_CONTROLS = 4
"""Most congestion controls that the sender's box names."""
MOST_SPANS = 12
"""Most groups of flows that a network is drawn with."""
MOST_CHARACTERS = 36
"""Most characters of a name in a box."""
DELAYS = ("netem", "jitter")
"""Disciplines that hold packets on their way."""
Chain = tuple[QueueDescription, ...]
"""A queue and its children, from the outside in."""
Joining = tuple[str, Look | None, Endpoint]
"""What joins the chain: its text, its look, and where."""
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
            rest = tuple(_left(scenarios, max(0, len(scenarios[0].flows) - MOST_SPANS)))
            text = describe(nodes, links, back)
            wide = along_routers(scenarios[0].routers, nodes[1:-1], tuple(_spans(scenarios, looks)), rest, f"{name}-wide", text)
        else:
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
        place = i - (len(first.chain) - len(first.links))
        boxes.append(
            Box(topology.title(first.chain, i).capitalize(), tuple((line, None) for line in lines), f"links.{place}" if place >= 0 else "rate")
        )
    hosts = [Box(f"Hosts, {side}", _hosts(scenarios, way, looks)) for side, way in (("left", "down"), ("right", "up"))]
    routers = [Arrow((name,)) for name in first.routers]
    is_up = any(e.direction == "up" for s in scenarios for e in s.endpoints)
    return [hosts[0], *boxes, hosts[1]], routers, Arrow(("the other way round",), "ACKs, and data that travel up" if is_up else "ACKs")


def _fitted(before: str, texts: Sequence[str]) -> Sequence[str]:
    """The texts with commas between them, behind `before`, as lines that fit into a box of the narrow diagram."""
    lines = [f"{before}{texts[0]}"]
    for text in texts[1:]:
        longer = f"{lines[-1]}, {text}"
        lines = [*lines[:-1], longer] if len(longer) <= MOST_CHARACTERS else [*lines, text]
    return lines


def _hosts(scenarios: Sequence[Scenario], way: str, looks: Mapping[str, Look]) -> Sequence[tuple[str, Look | None]]:
    """What the hosts at one end send: the groups of the first scenario; of others, how many there are."""
    flows, others = ([entry for entry in entries if entry[2].direction == way] for entries in _joining(scenarios[0], looks))
    lines = [(_short(text), look) for text, look, _ in flows[:MOST_CONTROLS]]
    lines += [(text, None) for text in _left(scenarios, len(flows) - len(lines))]
    return [*lines, *((_short(text), look) for text, look, _ in others)]


def _joining(scenario: Scenario, looks: Mapping[str, Look]) -> tuple[list[Joining], list[Joining]]:
    """Groups of flows, and transfers and probes."""
    flows: list[Joining] = [(paths.group(flow, scenario), looks.get(flow.cca), flow) for flow in scenario.flows]
    transfers: list[Joining] = [
        (f"{entry.rate:g} transfers a second{paths.way(entry, scenario)}", looks.get(entry.cca), entry) for entry in scenario.transfers
    ]
    return flows, [*transfers, *((f"probe {probe.name}{paths.way(probe, scenario)}", None, probe) for probe in scenario.probes)]


def _left(scenarios: Sequence[Scenario], more: int) -> Iterable[str]:
    """What a drawing of the first scenario's groups leaves out."""
    first = [flow.cca for flow in scenarios[0].flows]
    if more:
        yield f"and {units.counted(more, 'group')} more"
    if any([flow.cca for flow in s.flows] != first for s in scenarios):
        yield "and other controls in turn"


def _spans(scenarios: Sequence[Scenario], looks: Mapping[str, Look]) -> Iterable[Span]:
    """What travels along the chain in the first scenario, each from where it enters to where it leaves."""
    first = scenarios[0]
    flows, others = _joining(first, looks)
    fields = [f"{name}.{i}" for name in ("transfers", "probes") for i in range(len(getattr(first, name)))]
    for (text, look, end), field in zip((*flows[:MOST_SPANS], *others), [""] * min(len(flows), MOST_SPANS) + fields, strict=True):
        start, stop = first.span(end)[:: 1 if end.direction == "down" else -1]
        yield Span(text, look, start, stop, field)


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
