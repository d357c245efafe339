"""`GET /api/start`: what the page needs to begin, with paths to begin with.

A preset is a path of the gallery, of a published study, or a typical one. It says the fields of the state in which its path differs from the standard
one; the congestion controls stay those of the page unless it names some. Where the source gives a number it is the source's; what is assumed is said
in `note`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from typing_extensions import NotRequired, TypedDict

from tcpscape.controls import palette
from tcpscape.engines.model import CcaEntry, Model
from tcpscape.web import axes
from tcpscape.web.axes import AxisChoice
from tcpscape.web.routes import Get, OpenedDocument
from tcpscape.web.state import FIELDS, Choice, PathField, State

if TYPE_CHECKING:
    from tcpscape.web.opened import Opened

JITTER_CLIFF = "The Jitter Cliff: When TCP Goes Chaotic (JitterTrap, December 2025)"
RIG: dict[str, Any] = {"rate": "", "rcvbuf": "256KiB", "app": "10MiB/s", "read": "16KiB/1ms", "kernel": "6.12,rmem_max=4MiB"}
"""Receiver, application and kernel of the published study; its path has no bottleneck."""
NO_PATH: dict[str, Any] = {"rate": "", "words": {"forward": "none", "reverse": "none"}}
"""A path without hops: its links are all that there is."""
IN_GALLERY, STARLINK, SATELLITE, MOBILE, HOME, CENTRE = "Gallery", "Starlink", "Satellite", "Mobile", "Home", "Data centre"
"""Groups of presets."""


@dataclass(frozen=True)
class Preset:
    """A path to begin with."""

    group: str
    id: str
    """Of a gallery scenario its name."""
    title: str
    note: str
    source: str
    """Where its numbers are from."""
    state: dict[str, Any]
    """Fields that differ from the standard state."""

    def whole(self) -> State:
        """The state with the preset's path."""
        return State.model_validate(self.state)


def _gallery(name: str, title: str, note: str, **state: Any) -> Preset:
    return Preset(IN_GALLERY, name, title, note, f"tcpscape scenario show {name}", state)


def _network(name: str, title: str, note: str, **state: Any) -> Preset:
    return _gallery(name, title, note, **state, duration="30s")


def _published(name: str, title: str, note: str, **state: Any) -> Preset:
    return Preset(STARLINK, name, title, note, JITTER_CLIFF, {**RIG, "limit": "1000", "duration": "15s", **state})


PRESETS = (
    _gallery("baseline", "Published baseline", "50 ms, no impairment; the receive window of 256 KiB is the limit.", **RIG, reverse_at="sender"),
    _gallery(
        "jitter-cliff",
        "On the jitter cliff",
        "10 ms of reordering jitter each way; two runs of CUBIC differ by a factor of ten.",
        **RIG,
        jitter="10ms",
        reverse_at="sender",
    ),
    _gallery(
        "jitter-in-order",
        "The same jitter in order",
        "The order of packets is kept: no cliff.",
        **RIG,
        jitter="10ms",
        order="keep",
        reverse_at="sender",
    ),
    _gallery(
        "lossy-dsl",
        "Lossy DSL",
        "10 Mbit/s with two bandwidth-delay products of buffer and 0.5 % loss of the data.",
        rtt="40ms",
        loss="0.5%",
        loss_on="forward",
        rate="10mbit",
        buffer="2bdp",
        duration="20s",
        reverse_at="sender",
    ),
    _gallery(
        "rate-drop",
        "A drop of the rate",
        "60 to 20 Mbit/s after 15 s.",
        rate="60mbit",
        buffer="1bdp",
        duration="30s",
        forward_at="sender",
        reverse_at="sender",
        changes=("bottleneck@15s: rate 20mbit",),
    ),
    _gallery(
        "shared-bottleneck",
        "A shared bottleneck",
        "Two CUBIC flows meet one BBR flow, which starts 5 s later.",
        rtt="40ms",
        rate="20mbit",
        buffer="1bdp",
        duration="20s",
        forward_at="sender",
        reverse_at="sender",
        mix="cubic*2,bbr@5s",
    ),
    _network(
        "web", "Pages beside a download", "20 pages a second of 30 kB on average.", rtt="40ms", rate="20mbit", buffer="1bdp", transfers=("20/s",)
    ),
    _network(
        "rrul",
        "RRUL at a home link",
        "Flent's test at 20/5 Mbit/s with a large FIFO: four flows each way, pings, a call.",
        **NO_PATH,
        links=("name home delay 15ms rate 20mbit up_rate 5mbit buffer 250KB",),
        probes=("ping", "udp_ping", "voice"),
        mix="cubic*4,cubic*4~up",
    ),
    _network(
        "parking-lot",
        "A parking lot",
        "A long flow crosses three links of 20 Mbit/s, each of which has a flow of its own.",
        **NO_PATH,
        links=tuple(
            f"name {name} between {ends} delay 5ms rate 20mbit buffer 50KB" for name, ends in (("west", "a,b"), ("middle", "b,c"), ("east", "c,d"))
        ),
        transfers=("5/s,20000B",),
        mix="cubic,cubic~rtt=30ms~leave=b,cubic~rtt=30ms~enter=b~leave=c,cubic~rtt=30ms~enter=c",
    ),
    _gallery(
        "starlink-baseline",
        "Starlink, as published",
        "Between handovers; netem's jitter reorders, a real link's queue does not.",
        **RIG,
        rtt="26ms",
        jitter="7ms",
        loss="0.125%",
        limit="1000",
        duration="15s",
        reverse_at="sender",
    ),
    _published(
        "starlink-handover",
        "Handover, as published",
        "40 ms of jitter and 1 % loss without an end: the published profile, no real handover.",
        rtt="60ms",
        jitter="40ms",
        loss="1%",
    ),
    _published("starlink-degraded", "Degraded, as published", "15 ms of jitter and 1.5 % loss each way.", rtt="80ms", jitter="15ms", loss="1.5%"),
    Preset(
        STARLINK,
        "starlink-in-order",
        "With a link that keeps the order",
        "Jitter and loss as cited, in order; the rate of 100 Mbit/s is assumed.",
        "cited in The Jitter Cliff: 25.7 ms, 6.7 ms of jitter, 0.13 % loss",
        {"rtt": "30ms", "jitter": "7ms", "order": "keep", "loss": "0.13%", "loss_on": "forward", "rate": "100mbit", "kernel": "6.12"},
    ),
    Preset(
        SATELLITE,
        "geo",
        "Geostationary satellite",
        "At least 558 ms to the edge of the view and back; rate and loss are assumed.",
        "RFC 2488, section 2",
        {"rtt": "558ms", "rate": "20mbit", "loss": "0.01%", "loss_on": "forward", "duration": "30s"},
    ),
    Preset(
        MOBILE,
        "lte-bufferbloat",
        "LTE with a deep buffer",
        "Half a second of queue at 20 Mbit/s; the numbers are assumed.",
        "Jiang et al.: Tackling Bufferbloat in 3G/4G Networks, IMC 2012",
        {"rate": "20mbit", "buffer": "10bdp", "jitter": "4ms", "order": "keep", "duration": "20s"},
    ),
    Preset(
        MOBILE,
        "5g",
        "5G",
        "All numbers are assumed.",
        "assumed",
        {"rtt": "20ms", "rate": "100mbit", "buffer": "4bdp", "jitter": "2ms", "order": "keep"},
    ),
    Preset(
        HOME,
        "dsl-bufferbloat",
        "DSL with bufferbloat",
        "256 kB of buffer are 128 ms at 16 Mbit/s; the numbers are assumed.",
        "Gettys, Nichols: Bufferbloat: Dark Buffers in the Internet, ACM Queue 2011",
        {"rtt": "30ms", "rate": "16mbit", "buffer": "256KB", "duration": "20s"},
    ),
    Preset(
        HOME,
        "dsl-fq-codel",
        "The same with fq_codel",
        "The cure: a queue that drops by the time that packets wait.",
        "RFC 8290",
        {"rtt": "30ms", "rate": "16mbit", "queue": "fq_codel", "duration": "20s"},
    ),
    Preset(
        HOME,
        "wifi",
        "Wi-Fi with bursts of loss",
        "All numbers are assumed: 0.5 % of the data lost, four packets in a row.",
        "assumed",
        {"rtt": "15ms", "rate": "60mbit", "jitter": "2ms", "order": "keep", "loss": "0.5%", "loss_on": "forward", "loss_burst": "4"},
    ),
    Preset(
        CENTRE,
        "data-centre",
        "Data centre with marks",
        "200 µs at 1 Gbit/s, marks from 100 µs of queue on; the numbers are assumed.",
        "RFC 8257",
        {
            "rtt": "200us",
            "rate": "1gbit",
            "buffer": "150KB",
            "queue": "fq_codel ce_threshold 100us",
            "ecn": True,
            "duration": "500ms",
            "cca": ("cubic", "dctcp"),
            "kernel": "6.12",
        },
    ),
)
"""Every preset, in the order of the list."""


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
        opened=opened.document() if opened else None,
        state=State(),
        controls=_controls(model.registry()),
        fields={**FIELDS, "queue": _queue(model)},
        axes=[axis.choice for axis in axes.AXES.values()],
        presets=PRESETS,
    )


def _controls(entries: list[CcaEntry]) -> list[Control]:
    """The congestion controls, those with a fixed look first."""
    by_name = {entry.name: entry for entry in entries}
    order = [*(name for name in palette.KNOWN if name in by_name), *(name for name in by_name if name not in palette.KNOWN)]
    return [
        Control(
            name=name,
            colour=look.colour,
            dash=palette.DASHES.index(look.dash),
            marker=look.marker,
            about=by_name[name].about,
            parameters=[Parameter(name=p.name, about=p.about, default=p.default, values=p.range) for p in by_name[name].params],
        )
        for name, look in palette.looks(order).items()
    ]


def _queue(model: Model) -> PathField:
    """The bottleneck's queue with every one of the registry."""
    queue = FIELDS["queue"]
    names = [name for name, _ in model.queues() if name not in NO_QUEUES]
    return replace(queue, choices=(*queue.choices, *(Choice(name, QUEUES.get(name, name)) for name in names)))


QUEUES = {
    "fifo": "FIFO in bytes",
    "pfifo": "FIFO in packets",
    "bfifo": "FIFO in bytes (tc's bfifo)",
    "red": "RED: random early detection",
    "codel": "CoDel: drops by the time that packets wait",
    "fq_codel": "fq_codel: a CoDel queue for each flow",
    "pie": "PIE: a controller of the delay",
    "fq_pie": "fq_pie: a PIE queue for each flow",
    "cake": "CAKE: shaper, fair queues and CoDel",
    "dualpi2": "DualPI2: L4S beside classic traffic",
    "fq": "fq: fair queues",
    "pfifo_head_drop": "FIFO that drops the oldest",
    "sfq": "SFQ: stochastic fair queues",
    "choke": "CHOKe: drops what matches a random packet",
}
"""Queue of a bottleneck → its title."""
NO_QUEUES = ("netem", "tbf", "htb", "jitter")
"""Disciplines that delay or shape: no queue of a bottleneck."""
ROUTES = (Get("start", lambda pages: document(pages.opened)),)
