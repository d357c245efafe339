"""Two results side by side, condition by condition: whether they differ, by how much, and how sure that is.

Conditions that both have are compared with each other: the same part, axes and congestion control; where they share none, those at the same place
(one congestion control against another), or of the same congestion control; where each has one, those two. Trials of the same seeds on the same
path (all but the congestion control alike) on the same engine are compared as pairs; measurements of other tools are not.

Measurements of other tools that were made on different paths (`paths`) are different conditions.

The verdict is that of the ratio of medians, which is what is shown. Checks (:class:`ComparisonChecks`) are of the comparison itself
(`ratio > 0.95`, `win.low > 0.5`) or of a metric of both sides (`goodput.median > 5`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tcpscape import stats
from tcpscape.campaign import checks
from tcpscape.campaign.checks import Check, CheckError, Verdict, metric_of
from tcpscape.errors import TcpscapeError
from tcpscape.errors import refuse as refuse_option
from tcpscape.interchange import paths
from tcpscape.interchange.base import refuse
from tcpscape.interchange.sources import ResultSource, TrialGroup, listed
from tcpscape.metrics import Metric
from tcpscape.scenario import summary
from tcpscape.stats import Comparison, Estimate
from tcpscape.stats.comparison import ALIKE
from tcpscape.stats.estimate import number
from tcpscape.tables import ShownAsTable, Table
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl

    from tcpscape.scenario.scenario import Scenario

VERDICTS = {
    "different": "they differ", "slightly different": "they differ, the medians by less than 5 %",
    "alike": "no difference: the medians are within 5 %", "undecided": "undecided: too few measurements to tell",
}
"""Verdict → its sentence."""
CHANCE = 20
"""Of so many comparisons of equals one is called different (95 % intervals)."""
OF_BOTH: Mapping[str, Callable[[ComparedCondition], Estimate]] = {
    "ratio": lambda r: r.comparison.median_ratio, "mean_ratio": lambda r: r.comparison.ratio, "difference": lambda r: r.comparison.difference,
    "win": lambda r: r.comparison.win,
}
"""Ratio of medians and of means (A over B), difference of means (A less B), win probability (A above B)."""
STATS = ("median", "low", "high")
"""Statistics of a comparison: the value itself (where none is named), and the ends of its interval."""


@dataclass(frozen=True, slots=True)
class Measurements:
    """The measurements of one condition of one side."""

    name: str
    cca: str
    place: tuple[object, ...]
    """Part of a study and axes."""
    numbers: tuple[float, ...]
    twins: tuple[tuple[Hashable, ...], ...]
    """Keys that the twins of these on the other side have too, in one or several ways; None where a key is not known."""
    trials: tuple[Trial, ...] = ()
    """Empty for a table."""
    scenario: Scenario | None = field(default=None, compare=False)
    """What the first of them ran; None where it is not known."""
    least_rtt_ms: float = math.nan
    """Least RTT of measurements whose path is not known."""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for the same condition on the other side."""
        return (self.cca, *self.place)


@dataclass(frozen=True, slots=True)
class ComparedCondition:
    """Two conditions compared."""

    a: Measurements = field(repr=False)
    b: Measurements = field(repr=False)
    unit: str
    comparison: Comparison
    pairs: int
    """0 where they are not compared as pairs."""

    @property
    def name(self) -> str:
        """Of the condition: `cubic, jitter 8ms`, `cubic : bbr, jitter 8ms`, or of both where they have more than that to tell them apart."""
        if self.a.name == self.b.name:
            return self.a.name
        both = f"{self.a.cca} : {self.b.cca}"
        same = self.a.name.replace(self.a.cca, both, 1) == self.b.name.replace(self.b.cca, both, 1)
        return self.a.name.replace(self.a.cca, both, 1) if same else f"{self.a.name} : {self.b.name}"

    @property
    def medians(self) -> tuple[Estimate, Estimate]:
        """Of each side."""
        return stats.median(self.a.numbers, self.unit), stats.median(self.b.numbers, self.unit)

    @property
    def differs(self) -> bool:
        """Whether the interval of the ratio of medians leaves out 1; where there is no ratio, that of the difference of means 0."""
        ratio = self.comparison.median_ratio
        return self.comparison.difference.excludes(0) if math.isnan(ratio.low) else ratio.excludes(1)

    @property
    def alike(self) -> bool:
        """Whether the ratio of medians is surely within ± 5 %."""
        ratio = self.comparison.median_ratio
        return ratio.low >= 1 - ALIKE and ratio.high <= 1 + ALIKE

    @property
    def verdict(self) -> str:
        """One of :data:`VERDICTS`."""
        if self.differs:
            return "slightly different" if self.alike else "different"
        return "alike" if self.alike else "undecided"

    @property
    def missing(self) -> int:
        """Further runs of each side after which it will probably be decided; 0 where it is."""
        return stats.runs_missing(self.comparison.median_ratio) if self.verdict == "undecided" else 0


@dataclass(frozen=True, slots=True, repr=False)
class ResultComparison(ShownAsTable):
    """A comparison of two results."""

    metric: str
    unit: str
    rows: tuple[ComparedCondition, ...]
    left_out: tuple[str, ...]
    """Conditions that only one side has."""
    caveats: tuple[str, ...]

    @property
    def differs(self) -> int:
        """Number of conditions in which they differ."""
        return sum(r.differs for r in self.rows)

    def table(self) -> Table:
        """A row for each condition: both medians, their ratio, and the verdict."""
        title = f"{self.metric}, {self.unit}" if self.unit not in ("", "1") else self.metric
        notes = [f"only in {name}" for name in self.left_out] + [f"caveat: {caveat}" for caveat in self.caveats]
        return Table(COLUMNS, [self.row(r) for r in self.rows], title=title, notes=notes, drop=DROP, words=("verdict",))

    def row(self, condition: ComparedCondition) -> tuple[str, ...]:
        """The texts of :data:`COLUMNS`; no goodput is above the rate of the link."""
        sides = zip((condition.a, condition.b), condition.medians, strict=True)
        medians = [m.text(most=summary.link_mbps(side.scenario) if side.scenario and self.metric == "goodput" else None) for side, m in sides]
        n = f"{condition.pairs} pairs" if condition.pairs else f"{len(condition.a.numbers)} : {len(condition.b.numbers)}"
        return condition.name, n, *medians, condition.comparison.median_ratio.text(), condition.verdict


COLUMNS = ("condition", "n", "A, median", "B, median", "A / B of medians [95 %]", "verdict")
DROP = ("n", "B, median", "A, median")
"""Columns that a narrow screen leaves out, the first one first."""


def choose(a: ResultSource, b: ResultSource, cca: str | None = None, at: Mapping[str, str] | None = None) -> tuple[ResultSource, ResultSource]:
    """The chosen conditions of both sides, those of different paths apart.

    :param cca: `bbr` of both sides, or `cubic:bbr`, A's and B's; None for all.
    :param at: axis → value.
    :raises TcpscapeError: for an axis that neither has, and where one has no trial of what is chosen.
    """
    a, b = paths.part([a, b])
    axes = {name for group in (*a.groups, *b.groups) for name in group.at}
    if unknown := [name for name in at or {} if name not in axes]:
        choice = ", ".join(sorted(axes)) or "conditions with --cca: there are no axes"
        refuse_option("at", f"neither side has an axis {unknown[0]!r}", f"choose {choice}")
    first, _, second = (cca or "").partition(":")
    return a.only(first or None, at=at), b.only(second or first or None, at=at)


def compare(a: ResultSource, b: ResultSource, metric: str = "goodput") -> ResultComparison:
    """Compares both sides' measurements of a metric (of a table: its column).

    :raises TcpscapeError: one line, where a side does not contain the metric or the sides have no condition in common.
    """
    unit = unit_of(metric)
    a, b = paths.part([a, b])
    ours, theirs = measurements(a, metric), measurements(b, metric)
    pairs = _match(ours, theirs)
    if not pairs:
        names = f"A has {listed(v.name for v in ours)}; B has {listed(v.name for v in theirs)}"
        refuse("compare", f"no condition is in both: {names}", "choose one of each side with --cca and --at")
    rows = tuple(_compared(x, y, unit) for x, y in pairs)
    matched = {id(v) for p in pairs for v in p}
    left_out = [f"{side}: {m.name}" for side, conditions in (("A", ours), ("B", theirs)) for m in conditions if id(m) not in matched]
    sides = {caveat: [side for side, source in (("A", a), ("B", b)) if caveat in source.caveats] for caveat in (*a.caveats, *b.caveats)}
    caveats = [f"{' and '.join(of)}: {caveat}" for caveat, of in sides.items()]
    return ResultComparison(metric, unit, rows, tuple(left_out), (*_caveats(rows), *caveats))


def measurements(source: ResultSource, metric: str) -> tuple[Measurements, ...]:
    """The measurements of each condition; trials for which the metric is not known are left out."""
    if source.table is not None:
        return _of_table(source, source.table, metric)
    entry = metric_of(metric)
    if source.unknown.intersection(entry.reads):
        refuse(source.path, f"does not say {entry.name}", "choose another --metric")
    conditions = [_of_group(g, entry.of) for g in source.groups]
    if not any(m.numbers for m in conditions):
        refuse(source.path, f"does not say {entry.name}", "choose another --metric, or run with --samples 100ms --out DIR")
    return tuple(m for m in conditions if m.numbers)


def unit_of(metric: str) -> str:
    """The metric's unit; empty for a table's own column, whose unit is not known."""
    try:
        return metric_of(metric).unit
    except TcpscapeError:
        return ""


@dataclass(frozen=True)
class ComparisonChecks:
    """The checks of a comparison."""

    checks: tuple[Check, ...]

    @classmethod
    def read(cls, texts: Sequence[str] | None, metric: str) -> ComparisonChecks:
        """Reads the checks of a comparison of `metric`.

        :raises CheckError: for a check that makes no sense.
        """
        known = {name: Metric(name, unit_of(metric) if name == "difference" else "1", f"{name} of A and B", _no_value, "neither") for name in OF_BOTH}
        parsed = tuple(checks.read(text, known) for text in texts or ())
        for check in parsed:
            name = check.metric.name
            if name in OF_BOTH and check.statistic.name not in STATS:
                refuse_option("check", f"{name} has no {check.statistic.name}", f"write {name} or {name}.low", CheckError)
        return cls(parsed)

    def verdicts(self, comparison: ResultComparison) -> list[Verdict]:
        """A verdict for each check and condition."""
        verdicts: list[Verdict] = []
        for check in self.checks:
            if of := OF_BOTH.get(check.metric.name):
                rows = [r for r in comparison.rows if checks.is_chosen(check.chosen, _axes_of(r))]
                checks.expect(check, [(_axes_of(r), r.name) for r in comparison.rows])
                verdicts += [_check(check, r.name, of(r)) for r in rows]
            else:
                sides = [(side, v) for r in comparison.rows for side, v in (("A", r.a), ("B", r.b))]
                verdicts += checks.judge(check, [({"cca": v.cca}, f"{side}: {v.name}", v.trials) for side, v in sides])
        return verdicts


def _of_group(group: TrialGroup, of: Callable[[Trial], float]) -> Measurements:
    known = [(v, i) for i in group.items if not math.isnan(v := of(i.trial))]
    twins = (tuple(i.twin for _, i in known), tuple(i.itself for _, i in known))
    scenario = known[0][1].scenario if known else None
    least = min((rtt for _, i in known if not math.isnan(rtt := paths.least_rtt(i))), default=math.nan)
    return Measurements(group.name, group.cca, group.place, tuple(v for v, _ in known), twins, tuple(i.trial for _, i in known), scenario, least)


def _of_table(source: ResultSource, rows: pl.DataFrame, metric: str) -> tuple[Measurements, ...]:
    """A column of a table, for each congestion control where it names them."""
    import polars as pl

    numeric = [c for c in rows.columns if rows[c].dtype.is_numeric()]
    column = next((c for c in (metric, f"{metric}_mbps", f"{metric}_ms") if c in numeric), None)
    if column is None:
        refuse(source.path, f"has no column of numbers called {metric!r}", f"choose --metric of {', '.join(numeric) or 'a table with numbers'}")
    parts = rows.partition_by("cca", as_dict=True, maintain_order=True) if "cca" in rows.columns else {("table",): rows}
    conditions = []
    for (cca,), part in parts.items():
        known = [float(v) for v in part[column].cast(pl.Float64).drop_nulls() if not math.isnan(v)]
        conditions += [Measurements(str(cca), str(cca), ("",), tuple(known), ())] if known else []
    if not conditions:
        refuse(source.path, f"has nothing but gaps in {column!r}", "choose another --metric")
    return tuple(conditions)


def _match(ours: Sequence[Measurements], theirs: Sequence[Measurements]) -> list[tuple[Measurements, Measurements]]:
    """The conditions of both sides that belong together."""
    if len(ours) == len(theirs) == 1:
        return [(ours[0], theirs[0])]
    keys: tuple[Callable[[Measurements], Hashable], ...] = (lambda v: v.key, lambda v: v.place, lambda v: v.cca)
    for of in keys:
        a, b = {of(m): m for m in ours}, {of(m): m for m in theirs}
        if len(a) == len(ours) and len(b) == len(theirs) and (common := [k for k in a if k in b]):
            return [(a[k], b[k]) for k in common]
    return []


def _compared(a: Measurements, b: Measurements, unit: str) -> ComparedCondition:
    for keys_a, keys_b in zip(a.twins, b.twins, strict=False):
        first, second = dict(zip(keys_a, a.numbers, strict=True)), dict(zip(keys_b, b.numbers, strict=True))
        if None not in first and first.keys() == second.keys() and len(first) == len(keys_a) and len(second) == len(keys_b):
            return ComparedCondition(a, b, unit, stats.compare(list(first.values()), [second[k] for k in first], paired=True, unit=unit), len(first))
    return ComparedCondition(a, b, unit, stats.compare(a.numbers, b.numbers, paired=False, unit=unit), 0)


def _caveats(rows: Sequence[ComparedCondition]) -> list[str]:
    """Whatever weakens the verdicts."""
    apart = [r for r in rows if paths.differ(r.a.least_rtt_ms, r.b.least_rtt_ms)]
    caveats = sorted({r.comparison.caveat for r in rows if r.comparison.caveat})
    if any(min(len(r.a.numbers), len(r.b.numbers)) == 1 for r in rows):
        caveats.append("a side with one measurement has no interval: nothing is decided; repeat it")
    if apart:
        first, rtts = apart[0], [f"{number(side.least_rtt_ms)} ms" for side in (apart[0].a, apart[0].b)]
        caveats.append(f"{first.name}: the sides were measured on different paths, least RTT {rtts[0]} and {rtts[1]}")
    if len(rows) >= CHANCE:
        caveats.append(f"{len(rows)} comparisons: about {len(rows) / CHANCE:.0f} would be called different even of equals")
    return caveats


def _no_value(_: Trial) -> float:
    """The metric of a comparison, which no single trial has."""
    return math.nan


def _axes_of(row: ComparedCondition) -> Mapping[str, str]:
    return {"cca": row.a.cca}


def _check(check: Check, name: str, estimate: Estimate) -> Verdict:
    """The value itself, or an end of its interval; no interval holds nothing."""
    if check.statistic.end:
        estimate = Estimate(estimate.low if check.statistic.name == "low" else estimate.high, math.nan, math.nan, estimate.n, estimate.unit)
    return Verdict(check, name, estimate, checks.OPERATORS[check.op](estimate.value, check.number))
