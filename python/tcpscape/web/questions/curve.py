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
from tcpscape.errors import TcpscapeError, refuse, shown
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
        axis = axes.find(self.axis, state)
        if any(axis.missing(state)):
            state.campaign().cases()  # what is wrong with the state is told of it
            work.send(Block("axis", CurveAxis(**axis.document(state, ()), controls=[]), {"x": np.array([], dtype="<f8")}))
            return
        levels = self.levels or axis.levels(state)
        if wrong := [text for text in levels if math.isnan(axes.place(text))]:
            refuse("levels", f"{shown(wrong[0])} is not a quantity", f"write single values, for example {axis.levels(state)[0]}")
        here = axis.here(state)
        if here not in levels:
            state.campaign().cases()
        cases = _Cases(state, axis.name, levels, levels.index(here) if here in levels else len(levels) // 2)
        if self.levels:
            cases.make(range(len(levels)))  # whoever named them is told at once which one is wrong
        runs.expect_room(cases.count * self.seeds, cases.at(cases.here)[0])
        controls = [planned.case.cca for planned in cases.at(cases.here)]
        x = np.array([axes.place(text) for text in levels], dtype="<f8")
        work.send(Block("axis", CurveAxis(**axis.document(state, levels), controls=controls), {"x": x}))
        _Curve(cases, self.seeds, Runs(work)).run()


class _Cases:
    """The cases of a curve by place, made when they are asked for: what is seen first does not wait for the others."""

    def __init__(self, state: State, axis: str, levels: Sequence[str], here: int) -> None:
        """`here`: the place of the state's own value, or about. :raises TcpscapeError: one line, for what is wrong with the state there."""
        self._state, self._axis, self._levels = state, axis, levels
        self._made: dict[int, list[Planned]] = {}
        self.here = here
        self.places = len(levels)
        try:
            self.make([here])
        except TcpscapeError:
            state.campaign().cases()  # what is wrong with the state itself is told of it, not of the levels around it
            raise

    @property
    def count(self) -> int:
        """Cases of all places."""
        return self.places * len(self.at(self.here))

    def make(self, places: Iterable[int]) -> None:
        """Makes the cases of places, those that are missing at once."""
        if missing := [place for place in places if place not in self._made]:
            every = [Planned.of(case) for case in self._state.campaign(axes={self._axis: [self._levels[place] for place in missing]}).cases()]
            each = len(every) // len(missing)
            self._made |= {place: every[k * each : (k + 1) * each] for k, place in enumerate(missing)}

    def at(self, place: int) -> list[Planned]:
        """The cases of a place, one for each congestion control."""
        self.make([place])
        return self._made[place]


class _Curve:
    """The trials of a curve and the blocks about them."""

    def __init__(self, cases: _Cases, seeds: int, done: Runs) -> None:
        self._cases, self._seeds, self._done = cases, seeds, done
        self._places: dict[str, tuple[int, int]] = {}
        """Address of a scenario → its place and the number of its congestion control."""

    def run(self) -> None:
        """Runs everything, what is seen first before the rest."""
        every = range(self._cases.places)
        first = self._first()
        for trial in self._done.run(self._wanted(first, range(1), FIRST)):
            self._send([trial])
            self._cases.make(every)  # while the others of the first run
        self._send(list(self._done.run(self._wanted(self._between(first), range(1), SOON))))
        known = 1
        for n in (n for n in _milestones(self._seeds) if n > 1):
            self._send(list(self._done.run(self._wanted(every, range(known, n), LATER))))
            known = n

    def _first(self) -> list[int]:
        """The places that run first: the ends, without one that takes long, then the state's own, whose trials the answer may have run meanwhile."""
        model, here = engines.make("model"), self._cases.here
        places = dict.fromkeys((self._cases.places - 1, 0, here))
        self._cases.make(places)
        seconds = {place: model.seconds(self._cases.at(place)[0].case.scenario) for place in places}
        ends = [place for place in seconds if place != here and seconds[place] <= DEAR * seconds[here]]
        return [*ends, here]

    def _between(self, first: Sequence[int]) -> list[int]:
        """The other places, those in the middle of the widest gaps first."""
        known, order = sorted(first), []
        left = [place for place in range(self._cases.places) if place not in first]
        while left:
            place = max(left, key=lambda p: (min(abs(p - k) for k in known), p))
            left.remove(place)
            known.append(place)
            order.append(place)
        return order

    def _wanted(self, places: Iterable[int], seeds: range, urgency: int) -> list[Wanted]:
        """The trials of these places with these seeds under every congestion control, seed by seed."""
        each = [(place, self._cases.at(place)) for place in places]
        self._places |= {planned.address: (place, control) for place, cases in each for control, planned in enumerate(cases)}
        return [Wanted.of(planned, seed, urgency) for seed in seeds for _, cases in each for planned in cases]

    def _send(self, ran: Sequence[Wanted]) -> None:
        """The blocks about trials that have just run."""
        if not ran:
            return
        trials = [(self._places[wanted.address], wanted) for wanted in ran]
        points = [self._point(*at) for at in sorted({at for at, _ in trials})]
        rows = [{**_columns(*at), "seed": float(wanted.seed), **runs.values(self._done.trial(wanted))} for at, wanted in trials]
        work = self._done.work
        work.send(Block("points", {}, runs.columns(points)))
        work.send(Block("runs", {}, runs.columns(rows)))
        work.send(Block("progress", Progress(done=self._done.done, total=self._cases.count * self._seeds)))

    def _point(self, place: int, control: int) -> dict[str, float]:
        """The row of a case in the block `points`."""
        planned = self._cases.at(place)[control]
        n = self._done.count(planned)
        return {**_columns(place, control), "n": float(n), **runs.flat(runs.estimates(self._done.cell(planned, n)))}


def _columns(place: int, control: int) -> dict[str, float]:
    """Where a case stands, as a row has it."""
    return {"place": float(place), "control": float(control)}


def _milestones(seeds: int) -> list[int]:
    """The numbers of trials at which estimates are sent, the last one `seeds`."""
    return sorted({n for n in (*MILESTONES, *range(MILESTONES[-1], seeds, 10)) if n < seeds} | {seeds})
