"""The question `kept`: what an open result directory holds, and what lands in it while another process runs a campaign.

While somebody writes (option `follow`) all of its blocks come again whenever trials have landed, and later ones replace earlier ones. The curve along
an axis has the blocks of the question `curve`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import Required, TypedDict

from tcpscape.campaign import axes
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.errors import refuse, shown
from tcpscape.text.screen import Screen
from tcpscape.web.axes import Quantity, place
from tcpscape.web.opened import Kept, KeptPart, Results
from tcpscape.web.pool import Work
from tcpscape.web.questions import Question, runs
from tcpscape.web.questions.curve import CURVE, CurveAxis
from tcpscape.web.state import State, of_scenario
from tcpscape.web.stream import Block
from tcpscape.words import campaign as answer

MOST_ROWS = 500
"""Most rows of the table of cells."""
MOST_RUNS = 20_000
"""Most single trials that are drawn."""
LOOK_S = 0.5
"""How often a directory that is written to is looked at, s."""
SPARED = 4.0
"""A large one is looked at less often: between two looks is this many times what one took."""
PATIENCE_S = 0.05
"""How soon the end of the question is noticed meanwhile, s."""
QUANTITIES: Mapping[str, Quantity] = {"ms": "time", "Mbit/s": "rate", "%": "share", "B": "size", "": "number"}
"""Unit of an axis → what its numbers are."""


class KeptPartValues(TypedDict):
    """A campaign of the directory, or a part of a study."""

    label: str
    done: int
    """Trials."""
    total: int
    state: Literal["finished", "running", "interrupted"]


class KeptAnswer(TypedDict, total=False):
    """What there is as soon as the part that is shown has a trial."""

    path: str
    answer: str
    caveats: list[str]
    axes: dict[str, list[str]]
    """Axis → levels, of those with several."""
    controls: list[str]
    """What the curves are called: congestion controls, with the engine where there are several."""
    ccas: list[str]
    """Their congestion controls alone."""
    axis: str
    """The one that is drawn."""
    at: dict[str, str]
    """The level of each other axis."""


class KeptValues(KeptAnswer):
    """The values of the block `kept`."""

    name: Required[str]
    commands: Required[list[str]]
    running: Required[bool]
    parts: Required[list[KeptPartValues]]
    part: Required[str]
    """The label of the one that is shown."""


class KeptCells(TypedDict):
    """The values of the block `cells`: a table."""

    columns: list[str]
    rows: list[list[str]]
    left: int
    """How many columns are names."""
    notes: list[str]
    more: int
    """Cells that are left out."""


class KeptState(TypedDict):
    """The values of the block `state`, which comes only with the option `cell`: the scenario of that row of the table."""

    state: State
    remarks: list[str]
    """What it leaves out."""
    row: int


class KeptResults(Question):
    """What is shown of a result directory."""

    kind: ClassVar[str] = "kept"
    blocks: ClassVar[Mapping[str, Any]] = {"kept": KeptValues, "cells": KeptCells, "state": KeptState, **CURVE}
    part: str = Field(default="", max_length=200)
    """Which campaign or part; empty is the one that grows, or the first."""
    axis: str = Field(default="", max_length=100)
    """The axis of the curve; empty is the one with most levels."""
    at: dict[str, str] = Field(default_factory=dict)
    """The level of other axes; their first where nothing is said."""
    cell: int = -1
    """The row whose scenario is wanted."""
    follow: bool = True
    """Whether to go on while somebody writes."""

    def answer(self, state: State, work: Work, opened: Any) -> None:
        """Shows what is there, and again whenever it grows."""
        if not isinstance(opened, Results):
            refuse("kept", "no result directory is open", "open one with `tcpscape explore DIR`, or drop its results.sqlite on the page")
        before: object = None
        while True:
            kept = opened.kept()
            now = [(part.label, part.unfinished and (part.unfinished.done, part.unfinished.is_running)) for part in kept.parts]
            began = time.monotonic()
            if now != before:
                with opened.confined():
                    self._send(work, opened.name, kept)
                before = now
            if not (self.follow and kept.is_running):
                return
            _pause(work, max(LOOK_S, SPARED * (time.monotonic() - began)))

    def _send(self, work: Work, name: str, kept: Kept) -> None:
        part = self._part(kept)
        view = _View(part, self.axis, self.at) if part.outcome else None
        shown = view.values() if view else KeptAnswer()
        parts = [_part_values(one) for one in kept.parts]
        work.send(Block("kept", KeptValues(name=name, commands=list(kept.commands), running=kept.is_running, parts=parts, part=part.label, **shown)))
        if view is None:
            return
        work.send(view.table())
        for block in view.curve():
            work.send(block)
        if self.cell >= 0:
            work.send(view.state(self.cell))

    def _part(self, kept: Kept) -> KeptPart:
        if not self.part:
            return next((one for one in kept.parts if one.unfinished and one.unfinished.is_running), kept.parts[0])
        for one in kept.parts:
            if one.label == self.part:
                return one
        refuse("part", f"{shown(self.part)} is not there", f"choose {', '.join(one.label for one in kept.parts)}")


class _View:
    """What is shown of one outcome."""

    def __init__(self, part: KeptPart, axis: str, at: Mapping[str, str]) -> None:
        if part.outcome is None:
            raise ValueError("there is no trial yet")
        self._outcome: Outcome = part.outcome
        self._levels = {name: levels for name in self._outcome.axes if len(levels := list(self._outcome.levels(name))) > 1}
        if axis and axis not in self._levels:
            refuse("axis", f"{shown(axis)} is no axis of it", f"choose {', '.join(self._levels)}")
        numeric = [name for name in self._levels if all(math.isfinite(_place(text)) for text in self._levels[name])]
        self._axis = axis or max(numeric or self._levels, key=lambda name: len(self._levels[name]), default="")
        self._at = {name: at.get(name, levels[0]) for name, levels in self._levels.items() if name != self._axis}
        self._cca = {self._label(cell): cell.cca for cell in self._outcome.cells}
        self._controls = list(self._cca)

    def values(self) -> KeptAnswer:
        """Of the block `kept`."""
        screen: Screen = answer.screen(self._outcome)
        ccas = [self._cca[label] for label in self._controls]
        return KeptAnswer(
            path=screen.path,
            answer=screen.answer,
            caveats=list(screen.caveats),
            axes=self._levels,
            controls=self._controls,
            ccas=ccas,
            axis=self._axis,
            at=self._at,
        )

    def _label(self, cell: Cell) -> str:
        """What the page calls the curve of a cell."""
        return f"{cell.cca} on {cell.engine}" if len(self._outcome.versions) > 1 else cell.cca

    def table(self) -> Block:
        """The block `cells`."""
        cells = self._outcome.summaries()
        table, notes = self._outcome.table(cells, wide=True), answer.notes(self._outcome, cells)  # the block `kept` has the caveats
        rows = [[str(cell) for cell in row] for row in table.rows[:MOST_ROWS]]
        more = max(0, len(table.rows) - MOST_ROWS)
        return Block("cells", KeptCells(columns=list(table.columns), rows=rows, left=table.left, notes=notes, more=more))

    def state(self, row: int) -> Block:
        """The block `state` of a row of the table."""
        cells = self._outcome.cells
        if row >= len(cells):
            refuse("cell", f"there is no row {row}", f"choose one below {len(cells)}")
        ccas = tuple(dict.fromkeys(cell.cca for cell in cells if "+" not in cell.cca))
        state, remarks = of_scenario(cells[row].scenarios[0], ccas)
        return Block("state", KeptState(state=state, remarks=list(remarks), row=row))

    def curve(self) -> Sequence[Block]:
        """The blocks `axis`, `points` and `runs`; none where no axis has several levels."""
        if not self._axis:
            return ()
        levels = self._levels[self._axis]
        x, words, note = self._places(levels)
        shown_cells = [cell for cell in self._outcome.cells if cell.stands(self._at)]
        head = CurveAxis(
            axis=self._axis,
            title=self._axis,
            quantity=self._quantity(levels),
            log=False,
            here=None,
            text="",
            note=note,
            words=words,
            controls=self._controls,
        )
        points: list[dict[str, float]] = []
        single: list[dict[str, float]] = []
        for cell in shown_cells:
            at = {"place": float(self._place_of(cell, levels)), "control": float(self._controls.index(self._label(cell)))}
            points.append({**at, "n": float(len(cell.trials)), **runs.flat(runs.estimates(cell))})
            single += [{**at, "seed": float(trial.seed), **runs.values(trial)} for trial in cell.trials[: MOST_RUNS - len(single)]]
        return Block("axis", head, {"x": x}), Block("points", {}, runs.columns(points)), Block("runs", {}, runs.columns(single))

    def _places(self, levels: Sequence[str]) -> tuple[np.ndarray[Any, Any], list[str], str]:
        """Where the levels stand; the words of an axis without numbers stand one beside the other."""
        places = np.array([_place(text) for text in levels], "<f8")
        if np.isfinite(places).all():
            return places, list(levels), ""
        return np.arange(len(levels), dtype="<f8"), list(levels), "its levels are words"

    def _quantity(self, levels: Sequence[str]) -> Quantity:
        return QUANTITIES.get(axes.read(levels[0]).unit, "number") if math.isfinite(_place(levels[0])) else "number"

    def _place_of(self, cell: Cell, levels: Sequence[str]) -> int:
        return next(i for i, level in enumerate(levels) if axes.same(cell.at[self._axis], level))


def _place(text: str) -> float:
    """Where a level stands, SI; NaN for words."""
    try:
        return place(text)
    except (ValueError, ArithmeticError):
        return math.nan


def _part_values(part: KeptPart) -> KeptPartValues:
    """A part as the page lists it."""
    one = part.unfinished
    if one is None:
        trials = part.outcome.trial_count if part.outcome else 0
        return KeptPartValues(label=part.label, done=trials, total=trials, state="finished")
    return KeptPartValues(label=part.label, done=one.done, total=one.total, state="running" if one.is_running else "interrupted")


def _pause(work: Work, seconds: float) -> None:
    """Waits until the directory is to be looked at again. :raises Cancelled: the question is stale."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        work.expect_wanted()
        time.sleep(PATIENCE_S)
