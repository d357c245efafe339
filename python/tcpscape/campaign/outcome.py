"""What came out of a campaign: its cells, each with where it stands on the axes and the trials that it holds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

from tcpscape import metrics, stats
from tcpscape.campaign import axes
from tcpscape.campaign.adaptive import repetition, widened
from tcpscape.campaign.axes import Value
from tcpscape.campaign.campaign import Campaign, Case
from tcpscape.errors import StoreError, TcpscapeError
from tcpscape.formats import INTERVAL, TableFormat, columns
from tcpscape.scenario import bottleneck
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.store.kept import KeptTrials, Shelf
from tcpscape.store.results import flow_rows, labelled_rows
from tcpscape.text.table import ShownAsTable, Table, table_of
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl


class LazyScenarios(Sequence[Scenario]):
    """Scenarios that are made from their plain values when one of them is first read; equal to the tuple of them."""

    def __init__(self, specs: Sequence[Mapping[str, Any]], source: str = "scenario") -> None:
        """`specs`: each as :meth:`Scenario.to_dict` has it; `source`: what the message names where one of them is none."""
        self.specs = tuple(specs)
        self._source = source

    @cached_property
    def _scenarios(self) -> tuple[Scenario, ...]:
        try:
            return tuple(Scenario.of(dict(spec), self._source) for spec in self.specs)
        except TcpscapeError as e:
            raise StoreError(f"{self._source}: a scenario in it is damaged ({e}); move the file away and run again") from None

    @overload
    def __getitem__(self, place: int) -> Scenario: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Scenario, ...]: ...
    def __getitem__(self, place: int | slice) -> Scenario | tuple[Scenario, ...]:
        return self._scenarios[place]

    def __len__(self) -> int:
        return len(self.specs)

    def __eq__(self, other: object) -> bool:
        return self._scenarios == (other._scenarios if isinstance(other, LazyScenarios) else other)

    def __hash__(self) -> int:
        return hash(self._scenarios)

    def __repr__(self) -> str:
        return repr(self._scenarios)


OF_RTTS = ("added_rtt", "rtt_min", "rtt_max")
"""Metrics of the RTTs that a sender reports, besides the percentiles `rtt_p…`."""
SMOOTHED = (
    "a real kernel reports TCP's smoothed RTTs at even times: jitter and single bursts add less to their percentiles than to the model's, which are "
    "of each segment; srtt_p50 is the same on both"
)
"""What weakens RTTs of the virtual engine; docs/models/methods/virtual.md."""


@dataclass(frozen=True, repr=False)
class Cell:
    """One condition under one congestion control on one engine; the runs of pooled axes are together in it."""

    at: Mapping[str, str]
    """Axis → value as written; `cca` and what is pooled are not among them."""
    cca: str
    """Congestion controls of its flows, `cubic` or `bbr+cubic`."""
    engine: str
    """The engine that ran it, `model` or `virtual:6.1`."""
    scenarios: Sequence[Scenario]
    """One for each value of what is pooled."""
    runs: tuple[Sequence[Trial], ...]
    """Of each scenario, its trials in the seeds' order."""
    until_precise: bool = False
    """Whether runs were added until an interval was narrow enough: those of mean, median and ratio are wider for having looked several times."""

    def __repr__(self) -> str:
        name = ", ".join([self.cca, *(f"{axis} {value}" for axis, value in self.at.items()), self.engine])
        return f"Cell({name}: goodput {self.median().text()} Mbit/s of {len(self.trials)} trials)"

    @property
    def specs(self) -> tuple[Mapping[str, Any], ...]:
        """Plain values of its scenarios, as a file has them."""
        return self.scenarios.specs if isinstance(self.scenarios, LazyScenarios) else tuple(s.to_dict() for s in self.scenarios)

    @property
    def has_programs(self) -> bool:
        """Whether it runs commands beside its flows."""
        if isinstance(self.scenarios, LazyScenarios):
            return any(spec.get("programs") for spec in self.scenarios.specs)
        return any(scenario.programs for scenario in self.scenarios)

    @cached_property
    def ccas(self) -> tuple[str, ...]:
        """Congestion controls of its flows, each once, in the order of the flows."""
        return tuple(dict.fromkeys(flow.cca for trial in self.trials[:1] for flow in trial.flows))

    @property
    def addresses(self) -> list[list[str]]:
        """Of each scenario the addresses of its trials."""
        return [[*trials.addresses] if isinstance(trials, KeptTrials) else [trial.address for trial in trials] for trials in self.runs]

    @cached_property
    def trials(self) -> Sequence[Trial]:
        """Every trial, scenario by scenario, seeds in order."""
        if self.runs and isinstance(first := self.runs[0], KeptTrials) and isinstance(last := self.runs[-1], KeptTrials):
            return first.beside(last)
        return tuple(t for trials in self.runs for t in trials)

    def having(self, table: str, run: int | None = None) -> Sequence[Trial]:
        """Its trials, or those of one scenario, that have a side table (`samples`, `probe_samples`, …)."""
        trials = self.trials if run is None else self.runs[run]
        return trials.having(table) if isinstance(trials, KeptTrials) else [t for t in trials if getattr(t, table) is not None]

    def values(self, metric: str = "goodput") -> tuple[float, ...]:
        """The metric of each trial, in the order of `trials`; NaN where the engine does not see it."""
        return self.values_of(metrics.find(metric).of)

    def values_of(self, of: Callable[[Trial], float]) -> tuple[float, ...]:
        """What a metric's function says of each trial, in the order of `trials`."""
        if isinstance(self.trials, KeptTrials):
            return tuple(self.trials.goodputs if of is metrics.goodput else self.trials.values(of))
        return tuple(of(t) for t in self.trials)

    def knows(self, metric: str) -> bool:
        """Whether any of its trials says a metric."""
        of = metrics.find(metric).of
        return any(math.isfinite(of(trial)) for trial in itertools.chain(self.trials[:1], self.trials))

    def mean(self, metric: str = "goodput") -> Estimate:
        """Mean of a metric with its interval."""
        return estimates([self], "mean", metric)[0]

    def median(self, metric: str = "goodput") -> Estimate:
        """Median of a metric with its interval."""
        return estimates([self], "median", metric)[0]

    def cv(self, metric: str = "goodput") -> Estimate:
        """Coefficient of variation of a metric, a fraction, with its interval."""
        return estimates([self], "cv", metric)[0]

    @cached_property
    def estimated(self) -> dict[tuple[Statistic, str], Estimate]:
        """Estimates by statistic and metric: :func:`estimates` makes each once."""
        return {}

    @cached_property
    def compared(self) -> dict[tuple[int, str], tuple[Cell, Estimate]]:
        """Ratios by the other cell's id and the metric, with that cell: :func:`ratios` makes each once."""
        return {}

    @property
    def caveats(self) -> Set[str]:
        """What limits the validity of any of its trials."""
        return self.trials.caveats if isinstance(self.trials, KeptTrials) else {caveat for trial in self.trials for caveat in trial.caveats}

    @property
    def kernels(self) -> Set[str]:
        """Names and releases of the real kernels that ran any of its trials."""
        return self.trials.kernels if isinstance(self.trials, KeptTrials) else {trial.kernel for trial in self.trials if trial.kernel}

    def paired(self, other: Cell) -> bool:
        """Whether its runs and the other's are those of the same seeds on the same engine, one by one."""
        return self.engine == other.engine and self.seeds == other.seeds

    @property
    def seeds(self) -> list[list[int]]:
        """Of each scenario the seeds of its trials."""
        return [trials.seeds if isinstance(trials, KeptTrials) else [t.seed for t in trials] for trials in self.runs]

    def over(self, other: Cell, metric: str = "goodput") -> Estimate:
        """Its mean of a metric over the other's; runs of the same seeds are compared as pairs."""
        return ratios([(self, other)], metric)[0]

    def value(self, axis: str) -> Value:
        """Where it stands on an axis."""
        return axes.read(self.at[axis])

    def stands(self, at: Mapping[str, str]) -> bool:
        """Whether it has these values on these axes (`0` is `0ms`)."""
        return all(k in self.at and axes.same(self.at[k], v) for k, v in at.items())


Statistic = Literal["mean", "median", "cv"]
"""A statistic of every cell."""
STATISTICS: tuple[Statistic, ...] = ("median", "mean", "cv")
"""Every one, in the order of columns."""


def estimates(cells: Sequence[Cell], statistic: Statistic, metric: str = "goodput") -> list[Estimate]:
    """A statistic of a metric of every cell, made once: tables, figures and sentences ask for the same ones. Cells of as many trials go together."""
    new = [cell for cell in cells if (statistic, metric) not in cell.estimated]
    unit = metrics.find(metric).unit if new else ""
    many = {"mean": lambda x: stats.mean_of_each(x, unit), "median": lambda x: stats.median_of_each(x, unit), "cv": stats.cv_of_each}[statistic]
    for cell, estimate in zip(new, stats.by_number([cell.values(metric) for cell in new], many), strict=True):
        cell.estimated[statistic, metric] = widened(estimate) if cell.until_precise and statistic != "cv" else estimate
    return [cell.estimated[statistic, metric] for cell in cells]


def ratios(pairs: Sequence[tuple[Cell, Cell]], metric: str = "goodput") -> list[Estimate]:
    """Ratios of the means of a metric of pairs of cells, each made once; trials of the same seeds are compared as pairs."""
    new = [(a, b) for a, b in pairs if (id(b), metric) not in a.compared]
    paired = [(a, b) for a, b in new if a.paired(b)]
    estimates_of_new = stats.ratio_of_pairs([(a.values(metric), b.values(metric)) for a, b in paired])
    apart = [(a, b) for a, b in new if not a.paired(b)]
    estimates_of_new += [stats.mean_ratio(a.values(metric), b.values(metric)) for a, b in apart]
    for (a, b), ratio in zip([*paired, *apart], estimates_of_new, strict=True):
        a.compared[id(b), metric] = b, widened(ratio) if a.until_precise else ratio
    return [a.compared[id(b), metric][1] for a, b in pairs]


@dataclass(frozen=True)
class CellSummary:
    """A cell in numbers: what tables show of it."""

    cell: Cell
    median: Estimate
    """Of the campaign's metric; where runs were added until they sufficed, its interval accounts for that."""
    cv: Estimate
    """Coefficient of variation of the metric, a fraction."""
    is_precise: bool
    """Whether the median is as precise as asked; where nothing was asked, it is."""
    most: float | None = None
    """What the metric cannot exceed, in its unit: the link's rate, if it is a goodput and the link has one."""


MOST_BOUNDED = 1000
"""Most cells whose goodput is held against their link's rate and has other metrics beside it: those of more take seconds."""


@dataclass(frozen=True, repr=False)
class Outcome(ShownAsTable):
    """A campaign that was run: its cells with their trials.

    In a notebook it shows a table, one row for each cell. :meth:`frame` and :meth:`flows` give Polars frames, :meth:`find` and
    :meth:`select` cells.
    """

    campaign: Campaign
    """What was run."""
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
        return tuple(self.each_trial())

    def each_trial(self) -> Iterator[Trial]:
        """The same one by one: those of many are not in memory together."""
        return itertools.chain.from_iterable(cell.trials for cell in self.cells)

    def keep_numbers(self, metric_names: Iterable[str] = ()) -> None:
        """Keeps what was worked out of trials that are read from a directory, and these metrics of them; of trials that are held, nothing."""
        if self._shelf and self._shelf.can_keep:
            for name in metric_names:
                self.cells[0].values(name)
            self._shelf.keep()

    def rest(self) -> None:
        """Closes the directory that trials are read from, until the next one is asked for."""
        if self._shelf:
            self._shelf.rest()

    @property
    def _shelf(self) -> Shelf | None:
        """The shelf on which all trials stand that are read from a directory; None where they are held."""
        first = next((cell.trials for cell in self.cells), ())
        return first.shelf if isinstance(first, KeptTrials) else None

    @property
    def trial_count(self) -> int:
        """Trials in all."""
        return sum(len(c.trials) for c in self.cells)

    @cached_property
    def caveats(self) -> tuple[str, ...]:
        """Whatever weakens a result, each once."""
        return tuple(sorted({caveat for cell in self.cells for caveat in cell.caveats}))

    @cached_property
    def kernels(self) -> tuple[str, ...]:
        """Names and releases of the real kernels that ran."""
        return tuple(sorted({kernel for cell in self.cells for kernel in cell.kernels}))

    @property
    def label(self) -> str:
        """What to call the engines: `model`, `virtual 6.1 (6.1.192)`."""
        return " ".join([*self.versions, *self.kernels])

    @cached_property
    def ccas(self) -> tuple[str, ...]:
        """Congestion controls, in the order of the cells."""
        return tuple(dict.fromkeys(c.cca for c in self.cells))

    @cached_property
    def flow_ccas(self) -> tuple[str, ...]:
        """Congestion controls of the flows in all cells, sorted: of `bbr+cubic` both."""
        return tuple(sorted({cca for cell in self.cells for cca in cell.ccas}))

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes that tables and figures show."""
        return self.campaign.shown

    def levels(self, axis: str, cells: Iterable[Cell] | None = None) -> tuple[str, ...]:
        """The values on an axis: words in their order, quantities from the lowest."""
        texts = self._by_level(axis) if cells is None else dict.fromkeys(c.at[axis] for c in cells if axis in c.at)
        values = [axes.read(text) for text in texts]
        return tuple(texts) if any(v.is_word for v in values) else tuple(v.text for v in sorted(values, key=lambda v: v.number))

    def points(self, *along: str) -> list[dict[str, str]]:
        """Every point (axis → value) on the axes other than `along`; axes with one value are left out."""
        if along not in self._points:
            others = [a for a in self.axes if a not in along and len(self.levels(a)) > 1]
            levels = [self.levels(a) for a in others]
            ranks = [{level: i for i, level in enumerate(values)} for values in levels]
            present = {tuple(rank[c.at[a]] for a, rank in zip(others, ranks, strict=True)) for c in self.cells if all(a in c.at for a in others)}
            self._points[along] = [{a: values[i] for a, values, i in zip(others, levels, indices, strict=True)} for indices in sorted(present)]
        return self._points[along]

    @cached_property
    def _points(self) -> dict[tuple[str, ...], list[dict[str, str]]]:
        return {}

    @cached_property
    def _ratio_maps(self) -> dict[tuple[str, str], Any]:
        """Ratios of two controls in every cell, by their labels: :mod:`tcpscape.plots.maps` draws a map of them in several sizes."""
        return {}

    @cached_property
    def _by_text(self) -> dict[str, dict[str, list[Cell]]]:
        return {}

    def _by_level(self, axis: str) -> Mapping[str, Sequence[Cell]]:
        """Text of a value on an axis → the cells there. It is kept: figures of thousands of cells ask for it again and again."""
        if axis not in self._by_text:
            by_text: dict[str, list[Cell]] = {}
            for cell in self.cells:
                if axis in cell.at:
                    by_text.setdefault(cell.at[axis], []).append(cell)
            self._by_text[axis] = by_text
        return self._by_text[axis]

    def select(self, cca: str | None = None, engine: str | None = None, **at: str) -> tuple[Cell, ...]:
        """The cells at these values."""
        cells: Sequence[Cell] = self.cells
        for axis, value in at.items():
            by_text = self._by_level(axis)
            texts = [text for text in by_text if axes.same(text, value)]
            cells = by_text[texts[0]] if cells is self.cells and len(texts) == 1 else [c for c in cells if c.at.get(axis) in texts]
        return tuple(c for c in cells if (cca is None or c.cca == cca) and (engine is None or c.engine == engine))

    def find(self, cca: str | None = None, engine: str | None = None, **at: str) -> Cell | None:
        """The only cell at these values; None where there is none or several."""
        cells = self.select(cca, engine, **at)
        return cells[0] if len(cells) == 1 else None

    def curve(self, axis: str, cca: str | None = None, engine: str | None = None, **at: str) -> tuple[Cell, ...]:
        """The cells along an axis, from its lowest value; all else fixed by the caller."""
        cells = [c for c in self.select(cca, engine, **at) if axis in c.at]
        order = {text: i for i, text in enumerate(self.levels(axis, cells))}
        return tuple(sorted(cells, key=lambda c: order[c.at[axis]]))

    def base(self, cell: Cell, axis: str) -> Cell:
        """The cell at the axis' lowest value, everything else alike: what retention is measured against."""
        others = {k: v for k, v in cell.at.items() if k != axis}
        return self.curve(axis, cell.cca, cell.engine, **others)[0]

    def retention(self, cell: Cell, axis: str, metric: str = "goodput") -> Estimate:
        """Mean over the mean at the axis' lowest value; runs of the same seeds are paired."""
        return cell.over(self.base(cell, axis), metric)

    def frame(self, metric_names: Iterable[str] = ()) -> pl.DataFrame:
        """One row for each cell: where it stands, and of each metric (default: the campaign's) n, median, mean and CV with intervals."""
        import polars as pl

        names = tuple(metric_names) or (self.campaign.metric,)
        for name in names:
            for statistic in STATISTICS:
                estimates(self.cells, statistic, name)
        return pl.DataFrame([_row(c, names) for c in self.cells], infer_schema_length=None)

    def flows(self) -> pl.DataFrame:
        """One row for each flow of each trial: `goodput_mbps`, `rtt_ms_p50`, `limited_by_cwnd`, …"""
        if any(isinstance(cell.trials, KeptTrials) for cell in self.cells):
            return labelled_rows(({}, cell.trials) for cell in self.cells)
        return flow_rows(self.trials)

    def summaries(self) -> tuple[CellSummary, ...]:
        """Every cell in numbers, in the order of the campaign."""
        rule, name = repetition(self.campaign), self.campaign.metric
        bounded = metrics.find(name).name == "goodput" and len(self.cells) <= MOST_BOUNDED
        medians, cvs = estimates(self.cells, "median", name), estimates(self.cells, "cv", name)
        return tuple(
            CellSummary(c, median, cv, rule is None or rule.reached(c.values(name)), bottleneck.link_mbps(c.scenarios[0]) if bounded else None)
            for c, median, cv in zip(self.cells, medians, cvs, strict=True)
        )

    def table(self, summaries: Sequence[CellSummary] = (), *, wide: bool = False) -> Table:
        """A row for each cell: where it stands, the median of the campaign's metric with its interval, CV and number of runs.

        Beside it stand the medians of the goodput and of what is added to the RTT; of a mixture also those of the shares and of Jain's index;
        `wide`: with their intervals, for where no width is given.
        """
        return table_of(self, summaries, wide=wide)


FRAME = TableFormat(
    "frame",
    "A row for each cell: outcome.frame() in Python.",
    columns(
        """
    engine string -: Engine that ran it
    cca string -: Congestion controls of the flows
    {axis} string -: Where the cell stands on an axis, as it was written
    n integer -: Number of trials
"""
        + INTERVAL.format("{metric}_median", "(of the metric)", "Median over the trials")
        + INTERVAL.format("{metric}_mean", "(of the metric)", "Mean over the trials")
        + INTERVAL.format("{metric}_cv", "-", "Coefficient of variation over the trials, standard deviation / mean")
    ),
)


def _row(cell: Cell, metric_names: tuple[str, ...]) -> dict[str, Any]:
    row: dict[str, Any] = {"engine": cell.engine, "cca": cell.cca, **cell.at, "n": len(cell.trials)}
    for name in metric_names:
        for statistic in STATISTICS:
            row |= estimates([cell], statistic, name)[0].columns(f"{name}_{statistic}")
    return row


def gather(campaign: Campaign, cases: Iterable[Case], runs: Iterable[Iterable[Trial]], versions: Mapping[str, str]) -> Outcome:
    """The outcome of a campaign from its cases and the trials of each, in the same order; pooled cases become one cell."""
    pooled: dict[tuple[Any, ...], list[tuple[Case, Sequence[Trial]]]] = {}
    for case, trials in zip(cases, runs, strict=True):
        pooled.setdefault(case.cell, []).append((case, trials if isinstance(trials, KeptTrials) else tuple(trials)))
    precise = campaign.precision is not None
    cells = []
    for members in pooled.values():
        first = members[0][0]
        cells.append(Cell(first.at, first.cca, first.engine, tuple(c.scenario for c, _ in members), tuple(t for _, t in members), precise))
    return Outcome(campaign, tuple(cells), dict(versions))


def side_by_side(cases: Sequence[Case]) -> list[int]:
    """Places of the cases, those of a cell one behind the other."""
    cells: dict[tuple[Any, ...], list[int]] = {}
    for place, case in enumerate(cases):
        cells.setdefault(case.cell, []).append(place)
    return [place for places in cells.values() for place in places]


def smoothed(outcome: Outcome, shown: Sequence[str]) -> list[str]:
    """What weakens RTTs among the metrics `shown` where a real kernel measured them: it reports smoothed ones."""
    has_rtt = any(name in OF_RTTS or name.startswith("rtt_p") for name in shown)
    return [SMOOTHED] if has_rtt and any(cell.engine.startswith(("virtual", "live")) for cell in outcome.cells) else []
