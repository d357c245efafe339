"""What came out of a campaign: its cells, each with where it stands on the axes and the trials that it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpscape import metrics, stats
from tcpscape.campaign import axes
from tcpscape.campaign.adaptive import widened
from tcpscape.campaign.axes import Value
from tcpscape.campaign.campaign import Campaign, Case
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Cell:
    """One condition under one congestion control on one engine; the runs of pooled axes are together in it."""

    at: Mapping[str, str]
    """Axis → value as written; `cca` and what is pooled are not among them."""
    cca: str
    """Congestion controls of its flows, `cubic` or `bbr+cubic`."""
    engine: str
    scenarios: tuple[Scenario, ...]
    """One for each value of what is pooled."""
    runs: tuple[tuple[Trial, ...], ...]
    """Of each scenario, its trials in the seeds' order."""
    until_precise: bool = False
    """Whether runs were added until an interval was narrow enough: those of mean, median and ratio are wider for having looked several times."""

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial, scenario by scenario, seeds in order."""
        return tuple(t for some in self.runs for t in some)

    def values(self, metric: str = "goodput") -> tuple[float, ...]:
        """The metric of each trial, in the order of `trials`; NaN where the engine does not see it."""
        of = metrics.find(metric).of
        return tuple(of(t) for t in self.trials)

    def mean(self, metric: str = "goodput") -> Estimate:
        """Mean of a metric with its interval."""
        return self._widened(stats.mean(self.values(metric), metrics.find(metric).unit))

    def median(self, metric: str = "goodput") -> Estimate:
        """Median of a metric with its interval."""
        return self._widened(stats.median(self.values(metric), metrics.find(metric).unit))

    def cv(self, metric: str = "goodput") -> Estimate:
        """Coefficient of variation of a metric, a fraction, with its interval."""
        return stats.cv(self.values(metric))

    def paired(self, other: Cell) -> bool:
        """Whether its runs and the other's are those of the same seeds on the same engine, one by one."""
        return self.engine == other.engine and [[t.seed for t in some] for some in self.runs] == [[t.seed for t in some] for some in other.runs]

    def over(self, other: Cell, metric: str = "goodput") -> Estimate:
        """Its mean of a metric over the other's; runs of the same seeds are compared as pairs."""
        of = stats.ratio if self.paired(other) else stats.mean_ratio
        return self._widened(of(self.values(metric), other.values(metric)))

    def value(self, axis: str) -> Value:
        """Where it stands on an axis."""
        return axes.read(self.at[axis])

    def _widened(self, estimate: Estimate) -> Estimate:
        return widened(estimate) if self.until_precise else estimate

    def stands(self, at: Mapping[str, str]) -> bool:
        """Whether it has these values on these axes (`0` is `0ms`)."""
        return all(k in self.at and axes.same(self.at[k], v) for k, v in at.items())


@dataclass(frozen=True)
class Outcome:
    """A campaign that was run."""

    campaign: Campaign
    cells: tuple[Cell, ...]
    """In the order of the campaign's cases."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Engine → its version."""

    @property
    def name(self) -> str:
        """The campaign's."""
        return self.campaign.name

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial, cell by cell."""
        return tuple(t for c in self.cells for t in c.trials)

    @property
    def trial_count(self) -> int:
        """Trials in all."""
        return sum(len(c.trials) for c in self.cells)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Whatever weakens a result, each once."""
        return tuple(sorted({c for cell in self.cells for t in cell.trials for c in t.caveats}))

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names and releases of the real kernels that ran."""
        return tuple(sorted({t.kernel for cell in self.cells for t in cell.trials if t.kernel}))

    @property
    def label(self) -> str:
        """What to call the engines: `model`, `virtual 6.1 (6.1.192)`."""
        return " ".join([*self.versions, *self.kernels])

    @property
    def ccas(self) -> tuple[str, ...]:
        """Congestion controls, in the order of the cells."""
        return tuple(dict.fromkeys(c.cca for c in self.cells))

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes that tables and figures show."""
        return self.campaign.shown

    def levels(self, axis: str, cells: Iterable[Cell] | None = None) -> tuple[str, ...]:
        """The values on an axis: words in their order, quantities from the lowest."""
        found = dict.fromkeys(c.at[axis] for c in (self.cells if cells is None else cells) if axis in c.at)
        read = [axes.read(text) for text in found]
        return tuple(found) if any(v.is_word for v in read) else tuple(v.text for v in sorted(read, key=lambda v: v.number))

    def select(self, cca: str | None = None, engine: str | None = None, **at: str) -> tuple[Cell, ...]:
        """The cells at these values."""
        return tuple(c for c in self.cells if cca in (None, c.cca) and engine in (None, c.engine) and c.stands(at))

    def find(self, cca: str | None = None, engine: str | None = None, **at: str) -> Cell | None:
        """The only cell at these values; None where there is none or several."""
        found = self.select(cca, engine, **at)
        return found[0] if len(found) == 1 else None

    def curve(self, axis: str, cca: str | None = None, engine: str | None = None, **at: str) -> tuple[Cell, ...]:
        """The cells along an axis, from its lowest value; all else fixed by the caller."""
        found = [c for c in self.select(cca, engine, **at) if axis in c.at]
        order = {text: i for i, text in enumerate(self.levels(axis, found))}
        return tuple(sorted(found, key=lambda c: order[c.at[axis]]))

    def base(self, cell: Cell, axis: str) -> Cell:
        """The cell at the axis' lowest value, everything else alike: what retention is measured against."""
        others = {k: v for k, v in cell.at.items() if k != axis}
        return self.curve(axis, cell.cca, cell.engine, **others)[0]

    def retention(self, cell: Cell, axis: str, metric: str = "goodput") -> Estimate:
        """Mean over the mean at the axis' lowest value; runs of the same seeds are paired."""
        return cell.over(self.base(cell, axis), metric)

    def frame(self, some: Iterable[str] = ()) -> pl.DataFrame:
        """One row for each cell: where it stands, and of each metric (default: the campaign's) n, median, mean and CV with intervals."""
        import polars as pl

        wanted = tuple(some) or (self.campaign.metric,)
        return pl.DataFrame([_row(c, wanted) for c in self.cells], infer_schema_length=None)


def _row(cell: Cell, wanted: tuple[str, ...]) -> dict[str, Any]:
    row: dict[str, Any] = {"engine": cell.engine, "cca": cell.cca, **cell.at, "n": len(cell.trials)}
    for name in wanted:
        for said, got in (("median", cell.median(name)), ("mean", cell.mean(name)), ("cv", cell.cv(name))):
            row |= {f"{name}_{said}": got.value, f"{name}_{said}_low": got.low, f"{name}_{said}_high": got.high}
    return row


def gather(campaign: Campaign, cases: Iterable[Case], runs: Iterable[Iterable[Trial]], versions: Mapping[str, str]) -> Outcome:
    """The outcome of a campaign from its cases and the trials of each, in the same order; pooled cases become one cell."""
    found: dict[tuple[Any, ...], list[tuple[Case, tuple[Trial, ...]]]] = {}
    for case, trials in zip(cases, runs, strict=True):
        key = (case.engine, case.cca, *sorted(case.at.items()))
        found.setdefault(key, []).append((case, tuple(trials)))
    precise = campaign.precision is not None
    cells = [
        Cell(first.at, first.cca, first.engine, tuple(c.scenario for c, _ in some), tuple(t for _, t in some), precise)
        for some in found.values() for first in [some[0][0]]
    ]
    return Outcome(campaign, tuple(cells), dict(versions))
