"""The question `map`: one number over two axes, coarse to fine, where it changes most first.

`grid` comes once, with columns `x`, `y`: the values at the cells' centres, SI. `cells` has a row for each cell whose value is new; a later row
replaces an earlier one of the same cell. Its columns are `i`, `j` (index into `x` and `y`), `span` (so many of the finest cells to each side this one
stands for until those beside it have run: 5 for the coarse grid, otherwise 1: draw larger spans first), `value`, `low`, `high` (95 % interval, NaN of
one trial), `n` (trials of each congestion control). **Nothing is interpolated**: a cell that has not run has no row.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from tcpscape.errors import refuse, shown
from tcpscape.stats import Estimate
from tcpscape.web import axes
from tcpscape.web.axes import Axis, AxisDocument
from tcpscape.web.pool import LAST, LATER, SOON, Work
from tcpscape.web.questions import NoValues, Progress, Question, runs
from tcpscape.web.questions.answer import impairment
from tcpscape.web.questions.runs import SPREAD, Planned, Runs, Wanted
from tcpscape.web.state import State
from tcpscape.web.stream import Block

COARSE = 5
"""Cells of the finest grid to each side of a cell of the coarse one."""
BATCH = 24
"""Cells that run before it is judged anew where the map changes most."""
SPREAD_SEEDS = 3
"""Trials of a cell at first where its value is their spread."""
REACH = 3
"""Cells to each side among which the change around a cell is judged."""
MOST_RESOLUTION, MOST_SEEDS = 40, 50
Point = tuple[int, int]
"""A cell: its index on x and on y."""
MapQuantity = Literal["ratio", "retention", "cv", "goodput", "rtt", "delay", "retransmissions"]


@dataclass(frozen=True)
class Shown:
    """What a map can show."""

    title: str
    """In the list of choices."""
    quantity: Literal["time", "rate", "share", "ratio", "number"]
    """What its numbers are, in s, bit/s, 1, 1, 1."""
    about: str
    """What a cell is."""
    told: str
    """A cell's value with what it is of."""


QUANTITIES: Mapping[MapQuantity, Shown] = {
    "ratio": Shown(
        "Ratio of two controls", "ratio", "mean goodput of {first} over that of {second}, under the same seeds", "{first} carries {value} {second}"
    ),
    "retention": Shown(
        "Share that is left (retention)",
        "share",
        "mean goodput of {first} over that of the same path without {along}, under the same seeds",
        "{value} of the goodput of {first} is left",
    ),
    "cv": Shown("Variation (CV)", "number", "coefficient of variation of the goodput of {first}", "CV of {first} {value}"),
    "goodput": Shown("Goodput", "rate", "median goodput of {first}", "{first} carries {value}"),
    "rtt": Shown("RTT", "time", "median over the trials of the mean RTT of {first}", "RTT of {first} {value}"),
    "delay": Shown("Delay added", "time", "median over the trials of the added RTT (95th percentile) of {first}", "{first} adds {value}"),
    "retransmissions": Shown("Retransmissions", "share", "median share of segments sent again of {first}", "{first} sends {value} again"),
}
"""Every quantity of a map, in the order of the list."""


class MapGrid(TypedDict):
    """The values of the block `grid`."""

    x: AxisDocument
    y: AxisDocument
    quantity: MapQuantity
    text: str
    """What a cell is, in words."""
    first: str
    second: str
    """The congestion controls; the second one is empty where the quantity is of one."""


class MapProgress(Progress):
    """How far a map is."""

    seconds: float | None
    """Left, about; null at first."""


class Map(Question):
    """One number over two axes of the path."""

    kind: ClassVar[str] = "map"
    blocks: ClassVar[Mapping[str, Any]] = {"grid": MapGrid, "cells": NoValues, "progress": MapProgress}
    x: str = "jitter"
    """A name of :data:`tcpscape.web.axes.AXES`."""
    y: str = "rtt"
    """Another one."""
    quantity: MapQuantity = "ratio"
    """What a cell is: :data:`QUANTITIES`."""
    first: str = ""
    """The congestion control; empty: the state's first one."""
    second: str = ""
    """What a ratio divides by; empty: the state's next one."""
    resolution: int = Field(default=20, ge=4, le=MOST_RESOLUTION)
    """Cells along each axis."""
    seeds: int = Field(default=5, ge=1, le=MOST_SEEDS)
    """Trials of each cell and congestion control."""

    def answer(self, state: State, work: Work, opened: Any) -> None:
        """Runs a coarse grid once, then every cell once, then more seeds of all; each time where the map changes most first."""
        if self.x == self.y:
            refuse("y", f"{shown(self.y)} is the other axis already", f"choose another one of {', '.join(axes.AXES)}")
        if state.mix:
            refuse("mix", "a map compares congestion controls that have the path for themselves", "leave out the mixture")
        state.campaign().cases()  # what is wrong with the state is told of it, not of the levels around it
        controls = self._controls(state)
        grid = _Grid(state, controls, axes.find(self.x, state).expect(state), axes.find(self.y, state).expect(state), self)
        runs.expect_room(grid.count * self.seeds, grid.needs(grid.points[:1])[0, 0][0])
        text = QUANTITIES[self.quantity].about.format(first=controls[0], second=controls[-1], along=grid.along)
        second = controls[-1] if self.quantity == "ratio" else ""
        values = MapGrid(x=grid.document("x"), y=grid.document("y"), quantity=self.quantity, text=text, first=controls[0], second=second)
        work.send(Block("grid", values, {name: np.array([axes.place(t) for t in grid.levels[name]], dtype="<f8") for name in ("x", "y")}))
        _Filling(grid, Runs(work), self.seeds).run()

    def _controls(self, state: State) -> tuple[str, ...]:
        """The congestion controls that a cell needs."""
        first = self.first or next(iter(state.cca), "cubic")
        if self.quantity != "ratio":
            return (first,)
        second = self.second or next((cca for cca in state.cca if cca != first), "")
        if not second or second == first:
            refuse("second", "a ratio needs two congestion controls", "choose another one, or another quantity")
        return first, second


class _Grid:
    """The cells of a map: their scenarios, and their numbers once these have run."""

    def __init__(self, state: State, controls: tuple[str, ...], x: Axis, y: Axis, question: Map) -> None:
        self._state, self._controls, self._axes, self.quantity = state.replace(cca=controls), controls, {"x": x, "y": y}, question.quantity
        self.levels = {name: axis.cells(state, question.resolution) for name, axis in self._axes.items()}
        self.along = next((name for name in ("jitter", "loss") if name in (x.name, y.name)), impairment(state))
        if self.quantity == "retention" and not self.along:
            refuse("quantity", "the path has neither jitter nor loss whose effect could be seen", "give it some, or take one of them as an axis")
        self._cases: dict[Point, list[Planned]] = {}
        self._bases: dict[Point, list[Planned]] = {}

    def document(self, name: str) -> AxisDocument:
        """What the page needs of an axis."""
        return self._axes[name].document(self._state, self.levels[name])

    @property
    def points(self) -> list[Point]:
        """Every cell."""
        return [(i, j) for j in range(len(self.levels["y"])) for i in range(len(self.levels["x"]))]

    @property
    def count(self) -> int:
        """How many different scenarios all cells need: those without the impairment are shared along its axis, and are cells where it has a 0."""
        cells = len(self.points)
        if self.quantity != "retention":
            return cells * len(self._controls)
        other = [len(self.levels[name]) for name, axis in self._axes.items() if axis.name != self.along]
        if len(other) > 1:
            return 2 * cells
        zero = any(axes.place(text) == 0 for name, axis in self._axes.items() if axis.name == self.along for text in self.levels[name])
        return cells + other[0] * (not zero)

    def needs(self, points: Sequence[Point]) -> dict[Point, list[Planned]]:
        """The scenarios of these cells: of each congestion control, then those without the impairment where they are asked for."""
        if missing := [point for point in points if point not in self._cases]:
            self._cases |= self._made(missing, self._state, {})
            if self.quantity == "retention":
                self._bases |= self._calm(missing)
        return {point: [*self._cases[point], *self._bases.get(point, [])] for point in points}

    def _made(self, points: Sequence[Point], state: State, instead: dict[str, str]) -> dict[Point, list[Planned]]:
        """The cases of cells, with the value `instead` of an axis' own."""
        rows = {
            axis.name: [instead.get(axis.name, self.levels[name][point[k]]) for point in points] for k, (name, axis) in enumerate(self._axes.items())
        }
        every = [Planned.of(case) for case in state.campaign(zip=[rows]).cases()]
        return {point: every[k * len(self._controls) : (k + 1) * len(self._controls)] for k, point in enumerate(points)}

    def _calm(self, points: Sequence[Point]) -> dict[Point, list[Planned]]:
        """The cases of cells without the impairment; those that differ in the impairment alone share one."""
        none = {"jitter": "0ms", "loss": "0%"}[self.along]
        instead = {self.along: none} if self.along in (axis.name for axis in self._axes.values()) else {}
        state = self._state if instead else self._state.replace(**{self.along: ""})
        own = [tuple(None if axis.name in instead else point[k] for k, axis in enumerate(self._axes.values())) for point in points]
        unique = dict(zip(own, points, strict=True))
        made = self._made(list(unique.values()), state, instead)
        return {point: made[unique[key]] for point, key in zip(points, own, strict=True)}

    def value(self, point: Point, done: Runs, n: int) -> Estimate:
        """The number of a cell from its first `n` trials."""
        cells = [done.cell(planned, n) for planned in (*self._cases[point], *self._bases.get(point, ()))]
        if self.quantity in ("ratio", "retention"):
            return cells[0].over(cells[1])
        return cells[0].cv() if self.quantity == SPREAD else runs.estimates(cells[0], (self.quantity,))[self.quantity]


class _Filling:
    """The order in which a map is filled, and the blocks about it."""

    def __init__(self, grid: _Grid, done: Runs, seeds: int) -> None:
        self._grid, self._done, self._seeds = grid, done, seeds
        self._values: dict[Point, float] = {}
        self._begin = time.monotonic()
        size = tuple(len(grid.levels[name]) for name in ("x", "y"))
        self._coarse = frozenset((i, j) for i in range(COARSE // 2, size[0], COARSE) for j in range(COARSE // 2, size[1], COARSE))

    def run(self) -> None:
        """Runs everything."""
        every = self._grid.points
        once = range(min(self._seeds, SPREAD_SEEDS if self._grid.quantity == SPREAD else 1))
        self._fill(sorted(self._coarse), once, SOON)
        while left := [point for point in every if point not in self._values]:
            self._fill(self._steepest(left)[:BATCH], once, LATER)
        order = sorted(every, key=lambda point: -self._change(point))
        for begin in range(0, len(order) if self._seeds > once.stop else 0, BATCH):
            self._fill(order[begin : begin + BATCH], range(once.stop, self._seeds), LAST)

    def _fill(self, points: Sequence[Point], seeds: range, urgency: int) -> None:
        """Runs these seeds of cells and sends what they come to."""
        needs = self._grid.needs(points)
        wanted = [Wanted.of(planned, seed, urgency) for point in points for seed in seeds for planned in needs[point]]
        for _ in self._done.run(wanted):
            pass
        rows = [self._row(point, seeds.stop) for point in points]
        work = self._done.work
        work.send(Block("cells", {}, runs.columns(rows)))
        work.send(Block("progress", self._progress()))

    def _row(self, point: Point, n: int) -> dict[str, float]:
        estimate = self._grid.value(point, self._done, n)
        self._values[point] = estimate.value
        span = COARSE if point in self._coarse else 1
        place = {"i": float(point[0]), "j": float(point[1]), "span": float(span)}
        return {**place, "value": estimate.value, "low": estimate.low, "high": estimate.high, "n": float(n)}

    def _progress(self) -> MapProgress:
        """How far it is."""
        total = self._grid.count * self._seeds
        took, left = time.monotonic() - self._begin, total - self._done.done
        seconds = took / self._done.done * left if len(self._values) > len(self._coarse) else None
        return MapProgress(done=self._done.done, total=total, seconds=seconds)

    def _steepest(self, points: Iterable[Point]) -> list[Point]:
        """Cells that have not run: where those around differ most, and farthest from any that has run, first."""
        return sorted(points, key=lambda point: (-self._change(point), point))

    def _change(self, point: Point) -> float:
        """How much the map changes around a cell, times the distance to the nearest cell that has run (1 where it has)."""
        i, j = point
        beside = itertools.product(range(i - REACH, i + REACH + 1), range(j - REACH, j + REACH + 1))
        around = {other: self._values[other] for other in beside if other in self._values}
        near = [scaled for value in around.values() if math.isfinite(scaled := self._scaled(value))]
        distance = min((max(abs(a - i), abs(b - j)) for a, b in around if (a, b) != point), default=REACH + 1)
        return (FLAT + (max(near) - min(near) if near else 0.0)) * distance

    def _scaled(self, value: float) -> float:
        """The scale on which change is judged: factors, for a share differences."""
        if self._grid.quantity in ("retention", "cv", "retransmissions"):
            return value
        return math.log(value) if value > 0 else math.nan


FLAT = 0.02
"""Change that is taken to be anywhere, so that a flat map is filled evenly."""
