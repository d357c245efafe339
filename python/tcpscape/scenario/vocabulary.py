"""The fields of a path and of the flows on it, each declared once: what it is called, what it is, how it is written, and what it may be.

From :class:`TrialFields` derive the options of every command that takes a path, the keyword arguments of the Python functions, and the labels,
sliders and choices of the explorer. What a field does to a scenario is in :class:`~tcpscape.scenario.options.Conditions` and
:class:`~tcpscape.scenario.flows.Flow`, which read the same names. Nothing else is imported here, so that a command line that only prints its help is
quick.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, get_args, get_type_hints

from typing_extensions import TypedDict

Value = str | int | float
"""A value as users write it."""


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a field."""

    label: str
    """Its name in tables and on the page."""
    help: str
    """What it is, a sentence; options that it names are written as they are typed."""
    example: str
    """A value."""
    default: str = ""
    """What holds where it is left out, in words; empty where that needs no word."""
    ends: tuple[str, str] | None = None
    """The smallest and the largest value of a slider; None where the field has none."""
    choices: Mapping[str, str] = field(default_factory=dict)
    """Value → its title, the default first, where there are few."""
    names: str = ""
    """Names that it may have besides, a kind that the shell completes: `queue`."""
    metavar: str | None = None
    """What stands for its value in help; None is the kind of value."""
    kind: str = ""
    """The type of its values by its name here: `Levels`, `Fields` or `Words`."""


DIRECTIONS = {"both": "both directions", "forward": "the data", "reverse": "the ACKs"}
ORDERS = {"reorder": "reorders packets", "keep": "keeps the order", "clamp": "late packets hold up those behind"}
DISTRIBUTIONS = {"normal": "normal", "uniform": "uniform", "pareto": "pareto", "paretonormal": "paretonormal"}
Levels = Value | Sequence[Value] | None
"""A value, or where several are asked for: a list, `["0ms", "4ms"]`, or text, `"0..24ms/4ms"`."""
Fields = Levels | Mapping[str, Any]
"""The same, or the fields of what a text stands for, `{"size": "10MB"}`."""
Words = str | Sequence[str] | None
"""Text, or where several are asked for a list of texts, `["20mbit", "up=2mbit"]`."""


class PathFields(TypedDict, total=False):
    """A path with half of the RTT in each direction. In the order of help and of screens."""

    rtt: Annotated[Levels, About("RTT", "Round-trip time without jitter and queues; half of it each way.", "50ms", ends=("1ms", "1s"))]
    jitter: Annotated[Levels, About("Jitter", "Spread of each one-way delay (normal: standard deviation).", "8ms", ends=("0.1ms", "200ms"))]
    loss: Annotated[Levels, About("Loss", "Random loss of each direction: 0.1%.", "0.1%", ends=("0.01%", "20%"))]
    loss_burst: Annotated[
        Levels, About("Packets lost in a row", "Mean number of packets lost in a row, --loss staying the share.", "3", "1, independent", ("1", "50"))
    ]
    corrupt: Annotated[Levels, About("Damage", "Share of packets with a bit changed each way, which hosts drop.", "0.1%", ends=("0.01%", "20%"))]
    rate: Annotated[Levels, About("Rate", "Rate of the bottleneck; none is no limit.", "10mbit", ends=("500kbit", "1gbit"))]
    buffer: Annotated[
        Levels, About("Buffer", "Buffer of the bottleneck, with --rate: 64KB or 2bdp.", "2bdp", "1bdp, of a --queue its own", ("0.1bdp", "20bdp"))
    ]
    queue: Annotated[
        Levels, About("Queue", "Queue of the bottleneck, with --rate: fq_codel, or tc words.", "fq_codel", "a FIFO in bytes", names="queue")
    ]
    order: Annotated[
        Levels,
        About(
            "Jitter and order", "Jitter and the order: reorder, keep (correlated), clamp (late packets hold up).", "keep", "reorder", choices=ORDERS
        ),
    ]
    distribution: Annotated[
        Levels, About("Jitter's distribution", "Of the jitter: normal, uniform, pareto, paretonormal.", "pareto", "normal", choices=DISTRIBUTIONS)
    ]
    jitter_on: Annotated[Levels, About("Jitter on", "Where jitter is: both, forward, reverse.", "forward", choices=DIRECTIONS)]
    loss_on: Annotated[Levels, About("Loss on", "Where loss is: both, forward, reverse.", "forward", choices=DIRECTIONS)]


class FlowFields(TypedDict, total=False):
    """What each flow of a trial does."""

    rcvbuf: Annotated[Levels, About("Receive buffer", "SO_RCVBUF argument (256KiB); 0 is autotuned.", "256KiB", ends=("16KiB", "16MiB"))]
    sndbuf: Annotated[Levels, About("Send buffer", "SO_SNDBUF argument; 0 is autotuned.", "256KiB")]
    app: Annotated[
        Fields, About("Application rate", "Application's rate (1MB/s, 10mbit); 0 or none is as fast as it can.", "1MB/s", ends=("100kB/s", "100MB/s"))
    ]
    chunk: Annotated[Levels, About("Chunk", "Bytes the application writes at once.", "16KiB", "8192")]
    read: Annotated[Fields, About("Receiver reads", "Receiver's reads: 16KiB/1ms sleeps 1 ms before each.", "16KiB/1ms")]
    player: Annotated[Fields, About("Player", "Receiver is a video player with these bit rates: 1,2.5,5,8,16mbit.", "1,2.5,5,8,16mbit")]
    abr: Annotated[
        Levels,
        About(
            "Bit rates by",
            "What chooses the player's bit rates: bola (buffer), throughput.",
            "throughput",
            "bola",
            choices={"bola": "its buffer", "throughput": "throughput"},
        ),
    ]


class HostFields(TypedDict, total=False):
    """How long the hosts send, and what they are."""

    duration: Annotated[Levels, About("Duration", "How long to watch.", "20s", "10s", ("1s", "60s"))]
    kernel: Annotated[Fields, About("Kernel", "Kernel profile with overrides: 6.1 or 6.12,rmem_max=4MiB.", "6.1", names="profile")]


class TrialFields(PathFields, FlowFields, HostFields, total=False):
    """All that is said of a trial on a path."""


def described(fields: type) -> dict[str, About]:
    """The fields of a declaration such as :class:`PathFields` or :class:`PathWords` by their names, in its order."""
    hints = get_type_hints(fields, include_extras=True).items()
    kinds = {Levels: "Levels", Fields: "Fields", tuple[str, ...]: "Words", str | None: "Words"}
    return {name: replace(next(a for a in hint.__metadata__ if isinstance(a, About)), kind=kinds[get_args(hint)[0]]) for name, hint in hints}


def chosen(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Those of the options that are given and have one of these names."""
    return {name: options[name] for name in names if options.get(name) is not None}


PATH: Mapping[str, About] = described(PathFields)
"""The fields of a path by name."""
FLOW: Mapping[str, About] = described(FlowFields)
"""Those of a flow."""
HOST: Mapping[str, About] = described(HostFields)
"""Those of the hosts."""
TRIAL: Mapping[str, About] = {**PATH, **FLOW, **HOST}
"""All of them."""


@dataclass(frozen=True)
class PathWords:
    """A path as `tcpscape emulate` has it: each value is for both directions, or behind `up=` or `down=` for one."""

    delay: Annotated[tuple[str, ...], About("Delay", "One-way delay of each direction.", "25ms")] = ()
    rtt: Annotated[str | None, PATH["rtt"]] = None
    jitter: Annotated[tuple[str, ...], PATH["jitter"]] = ()
    order: Annotated[tuple[str, ...], PATH["order"]] = ()
    distribution: Annotated[tuple[str, ...], PATH["distribution"]] = ()
    loss: Annotated[tuple[str, ...], PATH["loss"]] = ()
    rate: Annotated[tuple[str, ...], PATH["rate"]] = ()
    trace: Annotated[
        tuple[str, ...], About("Trace", "A mahimahi trace of the bottleneck, instead of --rate.", "lte.trace", names="file", metavar="FILE")
    ] = ()
    buffer: Annotated[tuple[str, ...], PATH["buffer"]] = ()
    queue: Annotated[tuple[str, ...], PATH["queue"]] = ()
    up: Annotated[
        tuple[str, ...], About("Up", 'A hop towards the far end in tc words, instead of all above: "netem delay 25ms".', "netem delay 25ms")
    ] = ()
    down: Annotated[tuple[str, ...], About("Down", "A hop from the far end, in tc words.", "netem delay 25ms")] = ()
    change: Annotated[
        tuple[str, ...],
        About("Change", 'A change on the way: "down@8s: rate 5mbit". Repeatable.', "down@8s: rate 5mbit", metavar="WHERE@TIME: WORDS"),
    ] = ()
