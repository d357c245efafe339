"""Runs the cells of clauses for a control and its references; whatever a control does in a cell is a result of that cell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tcpscape import metrics
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Runner, TrialsDone
from tcpscape.clauses.clause import CONTROL, Clause, Grid
from tcpscape.controls import spelling
from tcpscape.engines.base import Engine
from tcpscape.errors import ScenarioError, StudyError, TcpscapeError, refuse
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats.estimate import Floats
from tcpscape.trial import Capture, Trial

FAILED = "the control failed: "
"""Begins the caveat of a trial that the control's own code ended."""
TOGETHER = 64
"""Most cells of a part whose trials are in memory together."""
Place = frozenset[tuple[str, str]]
"""Where a case stands: axis and value, the control among them."""


class Tolerant(Engine):
    """An engine on which a Python control that raises or takes too long has a trial without flows, whose caveat says why."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.name, self.about, self.at_once = engine.name, engine.about, engine.at_once
        self.repeatable, self.unobtrusive = engine.repeatable, engine.unobtrusive

    @property
    def version(self) -> str:
        return self._engine.version

    @property
    def spec(self) -> str:
        return self._engine.spec

    def check(self, scenario: Scenario) -> None:
        self._engine.check(scenario)

    def stop(self) -> None:
        self._engine.stop()

    def addresses(self, scenario: Scenario, seeds: Sequence[int]) -> list[str]:
        return self._engine.addresses(scenario, seeds)

    def run(self, scenario: Scenario, seeds: Sequence[int], *, threads: int = 1, capture: Capture = Capture()) -> list[Trial]:
        """The trials; seed by seed where a control is Python code."""
        if not any(map(spelling.is_class, scenario.controls)):
            return self._engine.run(scenario, seeds, threads=threads, capture=capture)
        return [self._one(scenario, seed, capture) for seed in seeds]

    def _one(self, scenario: Scenario, seed: int, capture: Capture) -> Trial:
        try:
            return self._engine.run(scenario, [seed], capture=capture)[0]
        except ScenarioError as e:
            address = self.addresses(scenario, [seed])[0]
            return Trial(scenario.name, scenario.cca, address, seed, self.name, self.version, scenario.duration / 1e9, (), caveats=(f"{FAILED}{e}",))


def tolerant(engine: Engine, controls: Sequence[str]) -> Engine:
    """The engine, tolerant where one of the controls is Python code."""
    return Tolerant(engine) if any(map(spelling.is_class, controls)) else engine


def failure(trial: Trial) -> str:
    """Why a control's own code ended a trial; empty where it did not."""
    return next((caveat.removeprefix(FAILED) for caveat in trial.caveats if caveat.startswith(FAILED)), "")


@dataclass(frozen=True)
class Readings:
    """What is read of the trials of a case; the trials themselves are in the store."""

    values: Mapping[str, Floats]
    """Metric → its value of each trial; NaN where the control failed, or the engine does not see it."""
    addresses: tuple[str, ...]
    """Of the trials."""
    error: str = ""
    """What the control's own code raised."""

    @classmethod
    def of(cls, trials: Sequence[Trial], metric_names: Sequence[str]) -> Readings:
        """The metrics of trials."""
        errors = [failure(trial) for trial in trials]
        values = {
            name: np.array([math.nan if error else metrics.find(name).of(trial) for trial, error in zip(trials, errors, strict=True)])
            for name in metric_names
        }
        return cls(values, tuple(trial.address for trial in trials), next(filter(None, errors), ""))


@dataclass(frozen=True)
class Cells:
    """The cells of a clause's part: their scenarios, and what was read of their trials so far."""

    campaign: Campaign
    scenarios: Mapping[Place, Scenario]
    first: dict[Place, Readings] = field(default_factory=dict)
    later: dict[Place, Readings] = field(default_factory=dict)
    """Of cells near a judgement: further seeds, which alone decide it."""

    def places(self) -> list[dict[str, str]]:
        """Where its cells stand, without the control; each once."""
        each = [dict(place) for place in self.scenarios]
        names = [*self.campaign.axes, *(name for group in self.campaign.zip for name in group)]
        ordered = [{name: at[name] for name in names if name in at and name != CONTROL} for at in each]
        return [dict(items) for items in dict.fromkeys(tuple(at.items()) for at in ordered)]

    def find(self, at: Mapping[str, str], control: str) -> Place | None:
        """The case at these values of its axes under a control; None where there is none."""
        axes = {*self.campaign.axes, *(name for group in self.campaign.zip for name in group)}
        place = frozenset({axis: control if axis == CONTROL else at.get(axis, "") for axis in axes}.items())
        return place if place in self.scenarios else None


@dataclass(frozen=True)
class Measured:
    """A clause with its cells, part by part; `refusal`: why its cells cannot run on the engine."""

    clause: Clause
    parts: Mapping[str, Cells]
    refusal: str = ""


def prepare(clauses: Sequence[Clause], controls: Sequence[str], grid: Grid, engine: Engine) -> list[Measured]:
    """The cells of each clause; those of a clause that the engine cannot run are left out, with the reason.

    :raises TcpscapeError: one line, where the engine can run none of them.
    """
    prepared = [_prepared(clause, controls, grid, engine) for clause in clauses]
    refusals = [one.refusal for one in prepared if one.refusal]
    if refusals and not any(one.parts for one in prepared):
        raise StudyError(refusals[0])
    return prepared


def _prepared(clause: Clause, controls: Sequence[str], grid: Grid, engine: Engine) -> Measured:
    campaigns = clause.campaigns(controls, grid, engine.spec)
    parts = {}
    try:
        for name, campaign in campaigns.items():
            cases = campaign.model_copy(update={"metrics": ()}).cases()  # trials are read one chunk at a time, so their samples need not fit together
            for case in cases:
                engine.check(case.scenario)
            parts[name] = Cells(campaign, {frozenset(case.at.items()): case.scenario for case in cases})
    except TcpscapeError as e:
        return Measured(clause, {}, str(e))
    return Measured(clause, parts)


@dataclass(frozen=True)
class Bench:
    """How cells are run."""

    runner: Runner
    grid: Grid
    seed: int = 0
    """First seed."""

    def first(self, measured: Sequence[Measured]) -> None:
        """Runs every cell with the first seeds."""
        work = [(cells, place) for one in measured for cells in one.parts.values() for place in cells.scenarios]
        for cells, place, readings in self._run(work, range(self.seed, self.seed + self.grid.seeds)):
            cells.first[place] = readings

    def again(self, work: Sequence[tuple[Cells, Place]]) -> None:
        """Runs these cells with further seeds."""
        missing = list({(id(cells), place): (cells, place) for cells, place in work if place not in cells.later}.values())
        begin = self.seed + self.grid.seeds
        for cells, place, readings in self._run(missing, range(begin, begin + self.grid.more)):
            cells.later[place] = readings

    def _run(self, work: Sequence[tuple[Cells, Place]], seeds: range) -> Iterator[tuple[Cells, Place, Readings]]:
        """Runs the cells, :data:`TOGETHER` of a part at a time; what is read of them is all that stays in memory."""
        parts = list({id(cells): cells for cells, _ in work}.values())
        chunks = [(part, chunk) for part in parts for chunk in _chunks([place for cells, place in work if cells is part])]
        done = 0
        for cells, places in chunks:
            show = self._progress(done, len(work) * len(seeds))
            runner = replace(self.runner, capture=cells.campaign.capture(), progress=show)
            trials = runner.run_all([(cells.scenarios[place], seeds) for place in places])
            done += len(places) * len(seeds)
            yield from ((cells, place, Readings.of(own, cells.campaign.metrics)) for place, own in zip(places, trials, strict=True))

    def _progress(self, before: int, total: int) -> TrialsDone | None:
        show = self.runner.progress
        return (lambda done, _: show(before + done, total)) if show else None


def _chunks(places: Sequence[Place]) -> Iterator[Sequence[Place]]:
    return (places[i : i + TOGETHER] for i in range(0, len(places), TOGETHER))


def expect_control(control: str, against: Sequence[str], engine: Engine) -> None:
    """Refuses references that there are not. :raises TcpscapeError: one line."""
    if not against:
        refuse("against", "no control to compare with", "write for example reno,cubic")
    for cca in (control, *against):
        engine.check(Scenario.of({"forward": "netem delay 10ms", "flows": [{"cca": cca}]}, "cca"))


def addresses(measured: Sequence[Measured]) -> set[str]:
    """The addresses of all trials."""
    kept = (readings for one in measured for cells in one.parts.values() for readings in (*cells.first.values(), *cells.later.values()))
    return {address for readings in kept for address in readings.addresses}
