"""The cliff as a line over a second axis (RTT, loss, …): each search begins at its neighbour's answer instead of walking the whole axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tcpscape.errors import refuse
from tcpscape.findings.cliff import search
from tcpscape.findings.cliff.axis import Axis
from tcpscape.findings.cliff.levels import Cliff
from tcpscape.findings.cliff.search import Effort, Measure

Across = Callable[[float], Measure]
"""A level of the second axis → what measures along the first one there."""


@dataclass(frozen=True, slots=True)
class Contour:
    """The edge along `axis` at each level of a second axis."""

    axis: Axis
    across: str
    """Name of the second axis."""
    unit: str
    """Its unit."""
    points: tuple[tuple[float, Cliff], ...]
    """(level of the second axis, the cliff there), from the lowest."""

    @property
    def runs(self) -> int:
        """Runs in all."""
        return sum(found.runs for _, found in self.points)


@dataclass(frozen=True, slots=True)
class Second:
    """The second axis of a contour."""

    name: str
    unit: str
    levels: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.levels or len(set(self.levels)) != len(self.levels):
            refuse(self.name, f"levels {list(self.levels)}", "write at least one, each once")


def contour(measure: Across, axis: Axis, second: Second, effort: Effort = Effort()) -> Contour:
    """The edge at every level of the second axis, from the lowest.

    A neighbour without an edge is no start. Express the first axis so that neighbours resemble each other
    (jitter as a share of the RTT, where the RTT is the second axis).
    """
    points: list[tuple[float, Cliff]] = []
    near: float | None = None
    for level in sorted(second.levels):
        found = search.find(measure(level), axis, effort, near)
        points.append((level, found))
        near = found.edge.value if found.edge else None
    return Contour(axis, second.name, second.unit, tuple(points))
