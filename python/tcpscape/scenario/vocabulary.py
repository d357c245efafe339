"""The fields of a path, each declared once: what it is called, what it is, how it is written, and what it may be.

From :class:`PathFields` derive the options of every command that takes a path, the keyword arguments of the Python functions, and the labels,
sliders and choices of the explorer. What a field does to a scenario is in :class:`~tcpscape.scenario.conditions.Conditions`, which reads the same
names. Nothing else is imported here, so that a command line that only prints its help is quick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, get_type_hints

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


DIRECTIONS = {"both": "both directions", "forward": "the data", "reverse": "the ACKs"}
ORDERS = {"reorder": "reorders packets", "keep": "keeps the order", "clamp": "late packets hold up those behind"}
DISTRIBUTIONS = {"normal": "normal", "uniform": "uniform", "pareto": "pareto", "paretonormal": "paretonormal"}
Levels = Value | Sequence[Value] | None
"""A value, or where several are asked for: a list, `["0ms", "4ms"]`, or text, `"0..24ms/4ms"`."""


class PathFields(TypedDict, total=False):
    """A path with half of the RTT in each direction. In the order of help and of screens."""

    rtt: Annotated[Levels, About("RTT", "Round-trip time without jitter and queues; half of it each way.", "50ms", ends=("1ms", "1s"))]
    jitter: Annotated[Levels, About("Jitter", "Spread of each one-way delay (normal: standard deviation).", "8ms", ends=("0.1ms", "200ms"))]
    loss: Annotated[Levels, About("Loss", "Random loss of each direction: 0.1%.", "0.1%", ends=("0.01%", "20%"))]
    loss_burst: Annotated[
        Levels,
        About("Packets lost in a row", "Mean number of packets lost in a row, --loss staying the share.", "3", "1, independent", ("1", "50")),
    ]
    rate: Annotated[Levels, About("Rate", "Rate of the bottleneck; none is no limit.", "10mbit", ends=("500kbit", "1gbit"))]
    buffer: Annotated[
        Levels,
        About("Buffer", "Buffer of the bottleneck, with --rate: 64KB or 2bdp.", "2bdp", "1bdp, of a --queue its own", ("0.1bdp", "20bdp")),
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


def described(fields: type) -> dict[str, About]:
    """The fields of a declaration such as :class:`PathFields` by their names, in its order."""
    return {
        name: next(one for one in hint.__metadata__ if isinstance(one, About)) for name, hint in get_type_hints(fields, include_extras=True).items()
    }


PATH: Mapping[str, About] = described(PathFields)
"""The fields of a path by name."""
