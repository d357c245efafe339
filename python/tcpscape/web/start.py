"""`GET /api/start`: what the page needs to begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from typing_extensions import NotRequired, TypedDict

from tcpscape.controls import palette
from tcpscape.engines.model import CcaEntry, Model
from tcpscape.web import axes
from tcpscape.web.axes import AxisChoice
from tcpscape.web.presets import PRESETS, Preset
from tcpscape.web.routes import Get, OpenedDocument
from tcpscape.web.state import State

if TYPE_CHECKING:
    from tcpscape.web.opened import Opened

FieldKind = Literal["time", "rate", "share", "size", "buffer", "byterate", "number"]
"""What a field's texts are."""


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


class Choice(TypedDict):
    """A value of a field that has a choice."""

    value: str
    title: str


@dataclass(frozen=True)
class Slider:
    """A field of the path that has a slider; values are texts as a user writes them."""

    label: str
    kind: FieldKind
    low: str
    high: str
    """The slider's ends."""
    standard: str = ""
    """What an empty text stands for; empty where that is no value."""
    zero_text: str = ""
    """What the slider's end is called where it is the empty text."""


class StartDocument(TypedDict):
    """The document."""

    opened: OpenedDocument | None
    """What the command line named."""
    state: State
    """The standard one."""
    controls: list[Control]
    fields: Mapping[str, Slider]
    """Of each field of the path that has a slider."""
    choices: dict[str, list[Choice]]
    """Of each field with a choice."""
    axes: list[AxisChoice]
    """Of curves and maps."""
    presets: Sequence[Preset]


def document(opened: Opened | None = None) -> StartDocument:
    """The document of `/api/start`; `opened`: what the command line named."""
    model = Model()
    return StartDocument(
        opened=opened.document() if opened else None, state=State(), controls=_controls(model.registry()),
        fields=FIELDS, choices=_choices(model), axes=[axis.choice for axis in axes.AXES.values()], presets=PRESETS,
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


def _choices(model: Model) -> dict[str, list[Choice]]:
    """The fields that have a choice."""
    queues = [Choice(value=name, title=QUEUES.get(name, name)) for name, _ in model.queues() if name not in NO_QUEUES]
    kernels = [Choice(value=name, title=f"Linux {name}") for name in model.kernels()]
    own = {"queue": [Choice(value="", title="a FIFO in bytes"), *queues], "kernel": [Choice(value="", title="Linux 6.1"), *kernels]}
    return {**CHOICES, **own}


def _titled(**titles: str) -> list[Choice]:
    return [Choice(value=value.strip("_"), title=title) for value, title in titles.items()]


FIELDS = {
    "rtt": Slider("RTT", "time", "1ms", "1s"),
    "jitter": Slider("Jitter", "time", "0.1ms", "200ms", "0ms", "no jitter"),
    "loss": Slider("Loss", "share", "0.01%", "20%", "0%", "no loss"),
    "loss_burst": Slider("Packets lost in a row", "number", "1", "50", "1", "each by itself"),
    "rate": Slider("Rate", "rate", "500kbit", "1gbit", "", "no limit"),
    "buffer": Slider("Buffer", "buffer", "0.1bdp", "20bdp", "1bdp"),
    "rcvbuf": Slider("Receive buffer", "size", "16KiB", "16MiB", "", "autotuned"),
    "app": Slider("Application", "byterate", "100kB/s", "100MB/s", "", "as fast as it can"),
    "duration": Slider("Duration", "time", "1s", "60s", "10s"),
    "limit": Slider("netem's limit", "number", "10", "100000", "100000"),
}  # fmt: skip
"""The fields that have a slider."""
DIRECTIONS = _titled(_="both directions", forward="the data", reverse="the ACKs")
NODES = _titled(_="a router (each packet by itself)", sender="the sending host (super-packets as one)")
CHOICES = {
    "distribution": _titled(_="normal", uniform="uniform", pareto="pareto", paretonormal="paretonormal"),
    "order": _titled(_="reorders packets", keep="keeps the order", clamp="late packets hold up those behind"),
    "jitter_on": DIRECTIONS, "loss_on": DIRECTIONS, "forward_at": NODES, "reverse_at": NODES,
}  # fmt: skip
"""Fields with a fixed choice; an empty value is the standard."""
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
