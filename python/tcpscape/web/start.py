"""`GET /api/start`: what the page needs to begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import NotRequired, TypedDict

from tcpscape.controls import palette
from tcpscape.engines.model import CcaEntry, Model
from tcpscape.web import axes
from tcpscape.web.axes import AxisChoice
from tcpscape.web.presets import PRESETS, Preset
from tcpscape.web.routes import Get, OpenedDocument
from tcpscape.web.state import FIELDS, Choice, PathField, State

if TYPE_CHECKING:
    from tcpscape.web.opened import Opened


class Parameter(TypedDict):
    """A parameter of a congestion control."""

    name: str
    about: str
    default: int
    values: str
    """A range as text."""


class Control(TypedDict):
    """A congestion control and how it looks."""

    name: str
    colour: str
    dash: int
    """0 solid, 1 dashed, 2 dotted, 3 mixed."""
    marker: str
    about: NotRequired[str]
    parameters: NotRequired[list[Parameter]]


class StartDocument(TypedDict):
    """The document."""

    opened: OpenedDocument | None
    """What the command line named."""
    state: State
    """The standard one."""
    controls: list[Control]
    fields: Mapping[str, PathField]
    """Of the path, in the order of the page."""
    axes: list[AxisChoice]
    """Of curves and maps."""
    presets: Sequence[Preset]


def document(opened: Opened | None = None) -> StartDocument:
    """The document of `/api/start`; `opened`: what the command line named."""
    model = Model()
    return StartDocument(
        opened=opened.document() if opened else None, state=State(), controls=_controls(model.registry()),
        fields={**FIELDS, "queue": _queue(model)}, axes=[axis.choice for axis in axes.AXES.values()], presets=PRESETS,
    )  # fmt: skip


def _controls(entries: list[CcaEntry]) -> list[Control]:
    """The congestion controls, those with a fixed look first."""
    by_name = {entry.name: entry for entry in entries}
    order = [*(name for name in palette.KNOWN if name in by_name), *(name for name in by_name if name not in palette.KNOWN)]
    return [
        Control(
            name=name, colour=look.colour, dash=palette.DASHES.index(look.dash), marker=look.marker, about=by_name[name].about,
            parameters=[Parameter(name=p.name, about=p.about, default=p.default, values=p.range) for p in by_name[name].params],
        )
        for name, look in palette.looks(order).items()
    ]  # fmt: skip


def _queue(model: Model) -> PathField:
    """The bottleneck's queue with every one of the registry."""
    queue = FIELDS["queue"]
    names = [name for name, _ in model.queues() if name not in NO_QUEUES]
    return replace(queue, choices=(*queue.choices, *(Choice(name, QUEUES.get(name, name)) for name in names)))


QUEUES = {
    "fifo": "FIFO in bytes", "pfifo": "FIFO in packets", "bfifo": "FIFO in bytes (tc's bfifo)", "red": "RED: random early detection",
    "codel": "CoDel: drops by the time that packets wait", "fq_codel": "fq_codel: a CoDel queue for each flow",
    "pie": "PIE: a controller of the delay", "fq_pie": "fq_pie: a PIE queue for each flow", "cake": "CAKE: shaper, fair queues and CoDel",
    "dualpi2": "DualPI2: L4S beside classic traffic", "fq": "fq: fair queues", "pfifo_head_drop": "FIFO that drops the oldest",
    "sfq": "SFQ: stochastic fair queues", "choke": "CHOKe: drops what matches a random packet",
}  # fmt: skip
"""Queue of a bottleneck → its title."""
NO_QUEUES = ("netem", "tbf", "htb", "jitter")
"""Disciplines that delay or shape: no queue of a bottleneck."""
ROUTES = (Get("start", lambda pages: document(pages.opened)),)
