"""Judges a clause: each criterion on each cell beside the references on the same cell and seeds, then the clause.

- *Excess* is by how much a value of the control is worse than that of a reference, in the same unit; a cell counts that of the reference to which the
  control is nearest, so that a control may be as bad as the worst standard control is on the same cell, and no worse.
- A cell is *worse* only where the excess is above the criterion's margin over every reference. Cells whose first trials come near that are
  repeated with further seeds, which alone decide: a one-sided paired t-test against each reference, the largest p of them, and Holm's correction
  over all the cells of all clauses that are decided so (5 % for the whole dossier).
- A cell *fails* where the RFC says MUST in a number: the value is beyond the bound by the same test, and no reference is beyond it there.
- A control that stops in a cell by an error of its own, where references run, is worse there.
- Over all cells the mean excess over the nearest reference has a 95 % interval by resampling cells, and seeds within cells. A clause without a worse
  cell is *better* where this interval lies below 0, the mean beyond the margin.

Harm is that of Ware et al. (Beyond Jain's Fairness Index, HotNets 2019).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from tcpscape import stats
from tcpscape.clauses.clause import Criterion, evaluate, number_of
from tcpscape.clauses.measuring import Bench, Cells, Measured, Place
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import RESAMPLES, TAIL, Floats

Verdict = Literal["fails", "worse", "not shown", "better", "no worse", "by hand"]
"""From the gravest on; `by hand` is what no run shows."""
GRAVITY: tuple[Verdict, ...] = ("fails", "worse", "no worse", "better", "not shown", "by hand")
ALPHA = 0.05
"""Chance that any cell of a whole dossier is called worse or failing where none is."""
NEAR = 0.5
"""Part of the margin from which a cell gets further seeds."""


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "harm": lambda solo, shared: np.maximum((solo - shared) / solo, 0.0),
    "delay_harm": lambda solo, shared: np.maximum((shared - solo) / shared, 0.0),
    "log2": np.log2,
    "least": np.minimum,
    "most": np.maximum,
}
"""Functions of criteria: harm where more of a metric is better, harm where less is; logarithm; the smaller and the larger of two."""


@dataclass
class CellJudgement:
    """A criterion on one cell."""

    at: Mapping[str, str]
    """Axis → value, the control left out."""
    scenario: Scenario
    """What the control ran."""
    values: Floats
    """Of the control, seed by seed."""
    references: Mapping[str, Floats]
    """Of each reference that gave a value, the same seeds."""
    sign: float
    """1 where less is better."""
    error: str = ""
    """What the control's own code raised."""
    is_decided: bool = False
    """Whether further seeds decided."""
    p_worse: float = 1.0
    p_beyond: float = 1.0
    verdict: Verdict = "no worse"

    @property
    def value(self) -> Estimate:
        """Mean of the control's values."""
        return stats.mean(self.values)

    def means(self) -> dict[str, Estimate]:
        """Reference → mean of its values."""
        return {name: stats.mean(values) for name, values in self.references.items()}

    @property
    def nearest(self) -> str:
        """The reference to which the control is nearest, which excuses most; empty where there is none."""
        return min(self.references, key=lambda name: float(np.mean(self.differences(name))), default="")

    def differences(self, reference: str) -> Floats:
        """By how much each value is worse than the reference's."""
        return np.asarray(self.sign * (self.values - self.references[reference]), dtype=np.float64)

    @property
    def excess(self) -> Estimate:
        """By how much it is worse than the nearest reference."""
        return stats.mean(self.differences(self.nearest)) if self.references else Estimate(math.nan, math.nan, math.nan, 0)


@dataclass(frozen=True)
class CriterionJudgement:
    """A criterion on all of its cells."""

    criterion: Criterion
    cells: tuple[CellJudgement, ...]
    unknown: int = 0
    """Cells in which the engine shows no value of the control or of any reference."""
    verdict: Verdict = "not shown"
    excess: Estimate = field(default_factory=lambda: Estimate(math.nan, math.nan, math.nan, 0))
    """Mean over the cells, over the reference that is nearest on average."""
    nearest: str = ""

    @property
    def bad(self) -> list[CellJudgement]:
        """The cells that are worse or fail, the worst first."""
        return sorted((cell for cell in self.cells if cell.verdict in ("worse", "fails")), key=lambda c: (not c.error, -_or_zero(c.excess.value)))


@dataclass(frozen=True)
class ClauseJudgement:
    """A clause with its verdict."""

    measured: Measured
    criteria: tuple[CriterionJudgement, ...]

    @property
    def verdict(self) -> Verdict:
        """The gravest of its criteria."""
        if self.measured.clause.level == "by hand":
            return "by hand"
        shown = [one.verdict for one in self.criteria if one.verdict != "not shown"]
        return min(shown, key=GRAVITY.index, default="not shown")

    @property
    def missing(self) -> tuple[str, ...]:
        """What it does not show, with what is missing."""
        unseen = [f"{one.criterion.what}: the engine shows no value of it" for one in self.criteria if one.verdict == "not shown"]
        return (*([self.measured.refusal] if self.measured.refusal else unseen), *self.measured.clause.missing)


def judge(measured: Sequence[Measured], control: str, against: Sequence[str], bench: Bench) -> list[ClauseJudgement]:
    """The verdicts; cells near a judgement are run again before."""
    rows = [(one, criterion, _cells(one, criterion, control, against)) for one in measured for criterion in one.clause.criteria]
    near = [(one, criterion, cells, i) for one, criterion, cells in rows for i, cell in enumerate(cells) if _is_near(cell, criterion)]
    bench.again([place for one, criterion, cells, i in near for place in _behind(one, criterion, cells[i].at, control, against)])
    for one, criterion, cells, i in near:
        cells[i] = _decided(one, criterion, cells[i], control, against)
    _correct([cell for _, _, cells in rows for cell in cells])
    judged = [(one, _criterion(criterion, cells)) for one, criterion, cells in rows]
    return [ClauseJudgement(one, tuple(criterion for of, criterion in judged if of is one)) for one in measured]


def _cells(one: Measured, criterion: Criterion, control: str, against: Sequence[str]) -> list[CellJudgement]:
    """Every cell of a criterion by its first seeds."""
    return [_cell(one, criterion, at, control, against, later=False) for at in _places(one, criterion)]


def _places(one: Measured, criterion: Criterion) -> list[dict[str, str]]:
    """Where the cells of a criterion stand, without the control; none where they cannot run."""
    cells = one.parts.get(criterion.part or next(iter(one.parts), ""))
    return [at for at in cells.places() if all(at.get(axis) in values for axis, values in criterion.where.items())] if cells else []


def _cell(one: Measured, criterion: Criterion, at: Mapping[str, str], control: str, against: Sequence[str], *, later: bool) -> CellJudgement:
    cells = one.parts[criterion.part or next(iter(one.parts))]
    place = cells.find(at, control)
    assert place is not None
    values, error = _values(one, criterion, at, control, later=later)
    references = {name: _values(one, criterion, at, name, later=later)[0] for name in against}
    known = {name: v for name, v in references.items() if not np.isnan(v).any()}
    return CellJudgement(at, cells.scenarios[place], values, known, 1.0 if criterion.better == "less" else -1.0, error)


def _values(one: Measured, criterion: Criterion, at: Mapping[str, str], control: str, *, later: bool) -> tuple[Floats, str]:
    """The criterion's value of each trial under a control, and what its code raised."""
    known: dict[str, Any] = {axis: number_of(value) for axis, value in at.items()}
    error, count = "", 0
    for name, cells, place in _measures(one, criterion, at, control):
        readings = (cells.later if later else cells.first)[place]
        known[name] = readings.values[criterion.measures[name].rpartition("/")[2]]
        error, count = error or readings.error, len(readings.addresses)
    with np.errstate(all="ignore"):
        values = np.broadcast_to(np.asarray(evaluate(criterion.value, known, FUNCTIONS), dtype=np.float64), (count,)).copy()
    values[~np.isfinite(values)] = np.nan
    return values, error


def _measures(one: Measured, criterion: Criterion, at: Mapping[str, str], control: str) -> Iterator[tuple[str, Cells, Place]]:
    """Each measure with the cells that it reads and the place there."""
    for name, text in criterion.measures.items():
        cells = one.parts[text.rpartition("/")[0] or next(iter(one.parts))]
        place = cells.find(at, control)
        assert place is not None, f"{one.clause.name}: {text} has no cell at {dict(at)}"
        yield name, cells, place


def _behind(one: Measured, criterion: Criterion, at: Mapping[str, str], control: str, against: Sequence[str]) -> list[tuple[Cells, Place]]:
    """Everything that a cell's values are of."""
    return [(cells, place) for name in dict.fromkeys((control, *against)) for _, cells, place in _measures(one, criterion, at, name)]


def _thresholds(cell: CellJudgement, criterion: Criterion) -> dict[str, float]:
    """Reference → the least excess over it that matters."""
    return {name: max(criterion.margin, (criterion.factor - 1) * abs(float(v.mean()))) for name, v in cell.references.items()}


def _is_near(cell: CellJudgement, criterion: Criterion) -> bool:
    """Whether the first seeds come near a judgement."""
    if np.isnan(cell.values).any() or not cell.references:
        return False
    beyond = criterion.bound is not None and cell.sign * (float(cell.values.mean()) - criterion.bound) > -NEAR * abs(criterion.bound)
    apart = all(float(cell.differences(name).mean()) > NEAR * least for name, least in _thresholds(cell, criterion).items())
    return apart or (beyond and all(float(cell.differences(name).mean()) > 0 for name in cell.references))


def _decided(one: Measured, criterion: Criterion, cell: CellJudgement, control: str, against: Sequence[str]) -> CellJudgement:
    """A cell by its further seeds."""
    later = _cell(one, criterion, cell.at, control, against, later=True)
    if np.isnan(later.values).any() or not later.references:
        return replace(later, is_decided=True)
    worse = max(_p_above(later.differences(name), least) for name, least in _thresholds(later, criterion).items())
    beyond = 1.0
    if criterion.bound is not None and all(later.sign * (float(v.mean()) - criterion.bound) <= 0 for v in later.references.values()):
        beyond = max(_p_above(later.sign * (later.values - criterion.bound), 0.0), *(_p_above(later.differences(n), 0.0) for n in later.references))
    return replace(later, is_decided=True, p_worse=worse, p_beyond=beyond)


def _p_above(values: Floats, least: float) -> float:
    """One-sided p of Student's t that the mean is above `least`."""
    from tcpscape.stats.special import stdtr

    count, above = len(values), float(values.mean()) - least
    error = float(np.std(values, ddof=1)) / math.sqrt(count) if count > 1 else 0.0
    if error <= 1e-12 * max(1.0, abs(float(values.mean()))):
        return 0.0 if above > 0 and count > 1 else 1.0
    return float(stdtr(count - 1, -above / error))


def _correct(cells: Sequence[CellJudgement]) -> None:
    """Gives every cell its verdict, by Holm's correction for the number of tests that further seeds decide."""
    tests = sorted(((p, place, kind) for place, c in enumerate(cells) if c.is_decided for kind, p in (("worse", c.p_worse), ("fails", c.p_beyond))))
    tests = [test for test in tests if test[0] < 1]
    significant = set()
    for rank, (p, place, kind) in enumerate(tests):
        if p > ALPHA / (len(tests) - rank):
            break
        significant.add((place, kind))
    for place, cell in enumerate(cells):
        if cell.error and cell.references:
            cell.verdict = "worse"
        elif np.isnan(cell.values).any() or not cell.references:
            cell.verdict = "not shown"
        else:
            cell.verdict = "fails" if (place, "fails") in significant else "worse" if (place, "worse") in significant else "no worse"


def _criterion(criterion: Criterion, cells: Sequence[CellJudgement]) -> CriterionJudgement:
    shown = tuple(cell for cell in cells if cell.verdict != "not shown")
    unknown = len(cells) - len(shown)
    valued = [cell for cell in shown if not cell.error]
    nearest, excess = _overall(valued)
    bad = [cell.verdict for cell in shown if cell.verdict in ("worse", "fails")]
    verdict: Verdict = "not shown" if not shown else min(bad, key=GRAVITY.index) if bad else "no worse"
    if verdict == "no worse" and excess.high < 0 and -excess.value > max(criterion.margin, (1 - 1 / criterion.factor) * _mean_of(valued, nearest)):
        verdict = "better"
    return CriterionJudgement(criterion, shown, unknown, verdict, excess, nearest)


def _overall(cells: Sequence[CellJudgement]) -> tuple[str, Estimate]:
    """The reference that is nearest on average, and the mean excess over it with its interval."""
    names = [name for name in (cells[0].references if cells else ()) if all(name in cell.references for cell in cells)]
    if not names:
        return "", Estimate(math.nan, math.nan, math.nan, 0)
    means = {name: float(np.mean([cell.differences(name).mean() for cell in cells])) for name in names}
    nearest = min(means, key=lambda name: means[name])
    random = np.random.default_rng(len(cells))
    each = np.array([_resampled(cell.differences(nearest), random) for cell in cells])
    picked = random.integers(0, len(cells), (len(cells), RESAMPLES))
    drawn = np.take_along_axis(each, picked, axis=0).mean(axis=0)
    low, high = (float(end) for end in np.quantile(drawn, [TAIL, 1 - TAIL]))
    return nearest, Estimate(means[nearest], low, high, sum(len(cell.values) for cell in cells))


def _resampled(values: Floats, random: np.random.Generator) -> Floats:
    """Means of resampled seeds."""
    return np.asarray(values[random.integers(0, len(values), (len(values), RESAMPLES))].mean(axis=0), dtype=np.float64)


def _mean_of(cells: Sequence[CellJudgement], reference: str) -> float:
    return float(np.mean([abs(cell.references[reference].mean()) for cell in cells]))


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value
