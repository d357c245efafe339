"""The question `curve`: every metric along one axis, coarse to fine; choosing another metric asks nothing.

Its columns are in SI units (bit/s, s, shares as fractions). `axis` comes once, with `x`: the levels, ascending; the state's own value is one of them
exactly. `points` has a row for each place and congestion control whose number of trials grew; a later row replaces an earlier one of the same place
and control. Its columns are `place` (index into `x`), `control` (index into `controls`), `n` (trials), and of each metric of
:data:`tcpscape.web.questions.runs.METRICS` `NAME`, `NAME.low`, `NAME.high`: the median and its 95 % interval, as in the table of `tcpscape sweep`;
NaN is not known (one trial has no interval), an infinite end is not bounded by so few trials. `runs` has a row for each new trial: `place`,
`control`, `seed`, and each metric but `cv`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from tcpscape import engines
from tcpscape.errors import refuse, shown
from tcpscape.web import axes
from tcpscape.web.axes import AxisDocument
from tcpscape.web.pool import FIRST, LATER, SOON, Work
from tcpscape.web.questions import NoValues, Progress, Question, runs
from tcpscape.web.questions.runs import Planned, Runs, Wanted
from tcpscape.web.state import State
from tcpscape.web.stream import Block

MOST_SEEDS, MOST_LEVELS = 200, 50
"""Most trials of a place, most places."""
MILESTONES = (1, 2, 3, 5, 7, 10, 15, 20)
"""Numbers of trials of each place at which its estimates are sent; after these, every tenth."""
DEAR = 4.0
"""A level whose trial takes this many times that of the state's own is not among the first to run."""


class CurveAxis(AxisDocument):
    """The values of the block `axis`; nothing follows where it has a note."""

    controls: list[str]
    """Labels of the congestion controls; of a mixture one, `bbr+cubic`."""


CURVE: Mapping[str, Any] = {"axis": CurveAxis, "points": NoValues, "runs": NoValues}
"""The blocks of a curve."""


class Curve(Question):
    """What the congestion controls do along one axis of the path."""

    kind: ClassVar[str] = "curve"
    blocks: ClassVar[Mapping[str, Any]] = {**CURVE, "progress": Progress}
    axis: str = "jitter"
    """A name of :data:`tcpscape.web.axes.AXES`."""
    seeds: int = Field(default=10, ge=1, le=MOST_SEEDS)
    """Trials of each level and congestion control."""
    levels: tuple[str, ...] = Field(default=(), max_length=MOST_LEVELS)
    """The levels as written; empty: some around the state's own value."""

    def answer(self, state: State, work: Work, opened: Any) -> None:
        """Runs the state's own value and the ends once, then the levels between them once, then more seeds of all."""
        state.campaign().cases()  # what is wrong with the state is told of it, not of the levels around it
        axis = axes.find(self.axis, state)
        if any(axis.missing(state)):
            work.send(Block("axis", CurveAxis(**axis.document(state, ()), controls=[]), {"x": np.array([], dtype="<f8")}))
            return
        levels = self.levels or axis.levels(state)
        if wrong := [text for text in levels if math.isnan(axes.place(text))]:
            refuse("levels", f"{shown(wrong[0])} is not a quantity", f"write single values, for example {axis.levels(state)[0]}")
        cases = [Planned.of(case) for case in state.campaign(axes={axis.name: list(levels)}).cases()]
        runs.expect_room(len(cases) * self.seeds, cases[0])
        controls = [planned.case.cca for planned in cases[: len(cases) // len(levels)]]
        x = np.array([axes.place(text) for text in levels], dtype="<f8")
        work.send(Block("axis", CurveAxis(**axis.document(state, levels), controls=controls), {"x": x}))
        here = axis.here(state)
        _Curve(cases, len(levels), self.seeds, Runs(work)).run(levels.index(here) if here in levels else len(levels) // 2)


class _Curve:
    """The trials of a curve and the blocks about them."""

    def __init__(self, cases: Sequence[Planned], places: int, seeds: int, done: Runs) -> None:
        self._cases, self._places, self._seeds, self._done = cases, places, seeds, done
        self._controls = len(cases) // places
        self._index = {planned.address: i for i, planned in enumerate(cases)}

    def run(self, here: int) -> None:
        """Runs everything, what is seen first before the rest."""
        first = self._first(here)
        for trial in self._done.run(self._once(first, FIRST)):
            self._send([trial])
        self._send(list(self._done.run(self._once(self._between(first), SOON))))
        known = 1
        for n in (n for n in _milestones(self._seeds) if n > 1):
            self._send(list(self._done.run([Wanted.of(c, seed, LATER) for seed in range(known, n) for c in self._cases])))
            known = n

    def _first(self, here: int) -> list[int]:
        """The places that run first: the ends, without one that takes long, then the state's own, whose trials the answer may have run meanwhile."""
        model = engines.make("model")
        seconds = {place: model.seconds(self._cases[place * self._controls].case.scenario) for place in (self._places - 1, 0, here)}
        ends = [place for place in seconds if place != here and seconds[place] <= DEAR * seconds[here]]
        return [*ends, here]

    def _between(self, first: Sequence[int]) -> list[int]:
        """The other places, those in the middle of the widest gaps first."""
        known, order = sorted(first), []
        left = [place for place in range(self._places) if place not in first]
        while left:
            place = max(left, key=lambda p: (min(abs(p - k) for k in known), p))
            left.remove(place)
            known.append(place)
            order.append(place)
        return order

    def _once(self, places: Iterable[int], urgency: int) -> list[Wanted]:
        """The first trial of each of these places under every congestion control."""
        return [Wanted.of(self._cases[place * self._controls + control], 0, urgency) for place in places for control in range(self._controls)]

    def _send(self, ran: Sequence[Wanted]) -> None:
        """The blocks about trials that have just run."""
        if not ran:
            return
        trials = [(self._index[wanted.address], wanted) for wanted in ran]
        points = [self._point(i) for i in sorted({i for i, _ in trials})]
        rows = [{**self._at(i), "seed": float(wanted.seed), **runs.values(self._done.trial(wanted))} for i, wanted in trials]
        work = self._done.work
        work.send(Block("points", {}, runs.columns(points)))
        work.send(Block("runs", {}, runs.columns(rows)))
        work.send(Block("progress", Progress(done=self._done.done, total=len(self._index) * self._seeds)))

    def _point(self, i: int) -> dict[str, float]:
        """The row of a case in the block `points`."""
        n = self._done.count(self._cases[i])
        return {**self._at(i), "n": float(n), **runs.flat(runs.estimates(self._done.cell(self._cases[i], n)))}

    def _at(self, i: int) -> dict[str, float]:
        """Where a case stands."""
        return {"place": float(i // self._controls), "control": float(i % self._controls)}


def _milestones(seeds: int) -> list[int]:
    """The numbers of trials at which estimates are sent, the last one `seeds`."""
    return sorted({n for n in (*MILESTONES, *range(MILESTONES[-1], seeds, 10)) if n < seeds} | {seeds})
