"""Two results side by side, condition by condition: whether they differ, by how much, and how sure that is.

Conditions that both have are compared with each other: the same part, axes and congestion control; where they share none, those at the same place
(one congestion control against another), or of the same congestion control; where each has one, those two. Trials of the same seeds on the same
engine are compared as pairs; measurements of other tools are not.

Measurements of other tools that were made on different paths (:func:`part`) are different conditions.

The verdict is that of the ratio of means, which is what is shown; everything else in tcpscape judges by it, too. Checks of a
comparison are of both sides together (`ratio > 0.95`, `win.low > 0.5`), or of a metric of each side (`goodput.median > 5`).
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from tcpscape import stats
from tcpscape.campaign.adaptive import widened
from tcpscape.campaign.checks import metric_of
from tcpscape.errors import TcpscapeError, shown
from tcpscape.errors import refuse as refuse_option
from tcpscape.interchange.base import refuse
from tcpscape.interchange.sources import Identity, ResultSource, SourceTrial, TrialGroup, listed
from tcpscape.stats import Comparison, Estimate
from tcpscape.text.numbers import number
from tcpscape.text.table import ShownAsTable
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl

    from tcpscape.scenario.scenario import Scenario

from tcpscape.campaign import checks
from tcpscape.campaign.checks import Check, CheckError, CheckResult

Difference = Literal["different", "slightly different", "alike", "undecided"]
"""Whether two means differ: `slightly different` is by less than 5 %, `alike` is surely within 5 %."""


@dataclass(frozen=True, slots=True)
class Measurements:
    """The measurements of one condition of one side."""

    name: str
    cca: str
    place: tuple[object, ...]
    """Part of a study and axes."""
    numbers: Sequence[float]
    group: TrialGroup | None = None
    """What was measured; None for a table."""
    until_precise: bool = False
    """Whether runs were added until an interval was narrow enough."""
    at: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Axis → value as written."""
    least_rtt_ms: float = math.nan
    """Least RTT of measurements whose path is not known."""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for the same condition on the other side."""
        return (self.cca, *self.place)

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """What they ran, one for each of what is pooled; empty where it is not known."""
        return self.group.scenarios if self.group else ()

    @property
    def trials(self) -> Sequence[Trial]:
        """Empty for a table."""
        return self.group.trials if self.group else ()

    @property
    def identities(self) -> tuple[Identity, ...]:
        """By what each trial is paired with one of the other side; empty for a table."""
        return tuple(self.group.identities()) if self.group else ()


@dataclass(frozen=True)
class ComparedCondition:
    """Two conditions compared."""

    a: Measurements = field(repr=False)
    b: Measurements = field(repr=False)
    unit: str
    numbers: tuple[Sequence[float], Sequence[float]] = field(repr=False)
    """What is compared, of each side: where they are pairs, in the same order."""
    pairs: int
    """0 where they are not compared as pairs."""
    is_same: bool = False
    """Whether both sides are the very same trials."""

    @cached_property
    def comparison(self) -> Comparison:
        """How both sides compare; intervals are wider where runs were added until they sufficed, as in a campaign's own table.

        It is made when it is asked for: of thousands of conditions that are the same, nobody does.
        """
        c = stats.compare(*self.numbers, paired=bool(self.pairs), unit=self.unit)
        if not (self.a.until_precise or self.b.until_precise):
            return c
        return replace(c, ratio=widened(c.ratio), median_ratio=widened(c.median_ratio), difference=widened(c.difference))

    @property
    def is_of_one_path(self) -> bool:
        """Whether both sides' paths and flows are the same but for their congestion controls; False where they would have to be made to tell."""
        return self.a.group is not None and self.b.group is not None and self.a.group.has_path_of(self.b.group)

    @property
    def name(self) -> str:
        """Of the condition: `cubic, jitter 8ms`, `cubic : bbr, jitter 8ms`, or of both where they have more than that to tell them apart."""
        if self.a.name == self.b.name:
            return self.a.name
        both = f"{self.a.cca} : {self.b.cca}"
        same = self.a.name.replace(self.a.cca, both, 1) == self.b.name.replace(self.b.cca, both, 1)
        return self.a.name.replace(self.a.cca, both, 1) if same else f"{self.a.name} : {self.b.name}"

    @property
    def means(self) -> tuple[Estimate, Estimate]:
        """Of each side."""
        a, b = (stats.mean(side.numbers, self.unit) for side in (self.a, self.b))
        return widened(a) if self.a.until_precise else a, widened(b) if self.b.until_precise else b

    @property
    def medians(self) -> tuple[Estimate, Estimate]:
        """Of each side."""
        a, b = (stats.median(side.numbers, self.unit) for side in (self.a, self.b))
        return widened(a) if self.a.until_precise else a, widened(b) if self.b.until_precise else b

    @property
    def differs(self) -> bool:
        """Whether the interval of the ratio of means leaves out 1; where there is no ratio, that of the difference of means 0."""
        return self.comparison.differs

    @property
    def alike(self) -> bool:
        """Whether the ratio of means is surely within ± 5 %, or nothing differs at all."""
        difference = self.comparison.difference
        return self.is_same or self.comparison.alike or difference.low == difference.high == 0

    @property
    def verdict(self) -> Difference:
        """Whether the means differ."""
        if self.differs:
            return "slightly different" if self.alike else "different"
        return "alike" if self.alike else "undecided"

    @property
    def missing(self) -> int:
        """Further runs of each side after which it will probably be decided; 0 where it is."""
        return stats.runs_missing(self.comparison.ratio) if self.verdict == "undecided" else 0


@dataclass(frozen=True, slots=True, repr=False)
class ResultComparison(ShownAsTable):
    """A comparison of two results."""

    metric: str
    unit: str
    rows: tuple[ComparedCondition, ...]
    left_out: tuple[str, ...]
    """Conditions that only one side has."""
    caveats: tuple[str, ...]
    """What the sides say of themselves."""

    @property
    def differs(self) -> int:
        """Number of conditions in which they differ."""
        return sum(r.differs for r in self.rows)


TWINS: tuple[Callable[[Identity], Hashable], ...] = (lambda i: i.twin, lambda i: i.itself, lambda i: i.drawn)
"""What the two trials of a pair have in common, the first one first: path and seed, the trial itself, seed."""


def choose(a: ResultSource, b: ResultSource, cca: str | None = None, at: Mapping[str, str] | None = None) -> tuple[ResultSource, ResultSource]:
    """The chosen conditions of both sides, those of different paths apart.

    :param cca: `bbr` of both sides, or `cubic:bbr`, A's and B's; None for all.
    :param at: axis → value.
    :raises TcpscapeError: for an axis that neither has, and where one has no trial of what is chosen.
    """
    a, b = part([a, b])
    axes = {name for group in (*a.groups, *b.groups) for name in group.at}
    if unknown := [name for name in at or {} if name not in axes]:
        choice = ", ".join(sorted(axes)) or "conditions with --cca: there are no axes"
        refuse_option("at", f"neither side has an axis {unknown[0]!r}", f"choose {choice}")
    first, colon, second = (cca or "").partition(":")
    if cca is not None and (not first.strip() or (colon and not second.strip())):
        refuse_option("cca", f"{shown(cca)} has an empty name", "write bbr for both sides, or cubic:bbr")
    return a.only(first or None, at=at), b.only(second or first or None, at=at)


def compare(a: ResultSource, b: ResultSource, metric: str = "goodput") -> ResultComparison:
    """Compares both sides' measurements of a metric (of a table: its column).

    :raises TcpscapeError: one line, where a side does not contain the metric or the sides have no condition in common.
    """
    unit = unit_of(metric)
    a, b = part([a, b])
    ours, theirs = measurements(a, metric), measurements(b, metric)
    pairs = _match(ours, theirs)
    if not pairs:
        names = f"A has {listed(v.name for v in ours)}; B has {listed(v.name for v in theirs)}"
        several = [side for side, source in (("A", a), ("B", b)) if len({group.part for group in source.groups}) > 1]
        mixed = f"{' and '.join(several)} hold{'s' * (len(several) == 1)} the results of several commands: give each its own --out"
        refuse("compare", f"no condition is in both: {names}", mixed if several else "choose one of each side with --cca and --at")
    rows = tuple(_compared(x, y, unit) for x, y in pairs)
    matched = {id(v) for p in pairs for v in p}
    left_out = [f"{side}: {m.name}" for side, conditions in (("A", ours), ("B", theirs)) for m in conditions if id(m) not in matched]
    of_sides = {"A": a.caveats, "B": b.caveats}
    sides = {caveat: [side for side, of in of_sides.items() if caveat in of] for caveat in itertools.chain(*of_sides.values())}
    caveats = [f"{' and '.join(of)}: {caveat}" for caveat, of in sides.items()]
    return ResultComparison(metric, unit, rows, tuple(left_out), tuple(caveats))


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


def _of_group(group: TrialGroup, of: Callable[[Trial], float]) -> Measurements:
    numbers = array("d", group.values(of))
    if any(map(math.isnan, numbers)):
        group = replace(group, items=tuple(item for item, v in zip(group.items, numbers, strict=True) if not math.isnan(v)))
        numbers = array("d", stats.known(numbers))
    least = min(_least_rtts(group), default=math.nan)
    return Measurements(group.name, group.cca, group.place, numbers, group, group.until_precise, group.at, least)


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
        conditions += [Measurements(str(cca), str(cca), ("",), tuple(known))] if known else []
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
    pairs = _pairs(a, b)
    if pairs is None:
        return ComparedCondition(a, b, unit, (a.numbers, b.numbers), 0)
    x, y = array("d", (a.numbers[i] for i, _ in pairs)), array("d", (b.numbers[j] for _, j in pairs))
    return ComparedCondition(a, b, unit, (x, y), len(pairs), x == y and _are_same(a, b, pairs))


def _pairs(a: Measurements, b: Measurements) -> list[tuple[int, int]] | None:
    """The places of the measurements of both sides that are compared with each other; None where they are no pairs."""
    if not (a.group and b.group):
        return None
    addresses = a.group.addresses
    if addresses and addresses == b.group.addresses and len(set(addresses)) == len(addresses):
        return [(i, i) for i in range(len(addresses))]  # the same trials are pairs by whatever they have in common
    ours, theirs = a.identities, b.identities
    is_one = len(a.group.specs) == 1 and a.group.has_path_of(b.group)
    for of in (TWINS[-1],) if is_one else ():  # on one path, trials of one seed are twins
        if pairs := _paired(ours, theirs, of):
            return pairs
    return next((pairs for of in TWINS if (pairs := _paired(ours, theirs, of))), None) if ours and theirs else None


def _paired(ours: Sequence[Identity], theirs: Sequence[Identity], of: Callable[[Identity], Hashable]) -> list[tuple[int, int]]:
    """The pairs of all that have `of` in common; none unless each has exactly one partner."""
    first, second = ({of(identity): i for i, identity in enumerate(side)} for side in (ours, theirs))
    if None in first or first.keys() != second.keys() or len(first) < len(ours) or len(second) < len(theirs):
        return []
    return [(i, second[key]) for key, i in first.items()]


def _are_same(a: Measurements, b: Measurements, pairs: Sequence[tuple[int, int]]) -> bool:
    """Whether the trials of each pair have the same address or the same trace."""
    if a.group and b.group and a.group.addresses and a.group.addresses == b.group.addresses and all(i == j for i, j in pairs):
        return True
    ours, theirs = ([identity.address for identity in side.identities] for side in (a, b))
    apart = [(i, j) for i, j in pairs if ours[i] != theirs[j]]
    hashes = [[trial.hash for trial in side.trials] if apart else [] for side in (a, b)]
    return all(hashes[0][i] is not None and hashes[0][i] == hashes[1][j] for i, j in apart)


AXIS = "least RTT"
"""Axis that parts the measurements of a condition."""
FACTOR, LEAST_GAP_MS = 1.2, 1.0
"""Two paths differ by more than this factor, and by more than so many ms, in their least RTT: that of one path scatters less from file to file."""


def part(sources: Sequence[ResultSource]) -> list[ResultSource]:
    """The sources with a group for each path, by the same paths in all of them; unchanged where each condition of each source has one path."""
    rtts = sorted({rtt for source in sources for group in source.groups for rtt in _least_rtts(group)})
    bounds = [math.sqrt(a * b) for a, b in pairwise(rtts) if differ(a, b)]
    if not any(len(_paths(group, bounds)) > 1 for source in sources for group in source.groups):
        return list(sources)
    names = {place: f"{number(of[len(of) // 2])}ms" for place in range(len(bounds) + 1) if (of := [r for r in rtts if _place(r, bounds) == place])}
    return [replace(source, groups=tuple(new for group in source.groups for new in _parts(group, bounds, names))) for source in sources]


def _least_rtts(group: TrialGroup) -> Iterator[float]:
    """The least RTTs of the trials whose path is not known, ms, where they are known."""
    return (rtt for item in group.pathless if not math.isnan(rtt := least_rtt(item)))


def least_rtt(item: SourceTrial) -> float:
    """The least RTT of any flow of a trial whose path is not known, ms; NaN where it is known, or no RTT is."""
    if item.shared is not None:
        return math.nan
    return min((f.rtt_ms.min for f in item.trial.flows if f.rtt_ms.min is not None), default=math.nan)


def differ(a: float, b: float) -> bool:
    """Whether two least RTTs, ms, are those of two paths; not where one is not known."""
    return max(a, b) > FACTOR * min(a, b) and abs(a - b) > LEAST_GAP_MS


def _parts(group: TrialGroup, bounds: Sequence[float], names: dict[int, str]) -> list[TrialGroup]:
    if not group.pathless:
        return [group]
    by_path: dict[int, list[SourceTrial]] = {}
    for item in group.items:
        by_path.setdefault(_path(item, bounds), []).append(item)
    return [
        replace(group, items=tuple(items), at={**group.at, AXIS: names[place]} if place in names else group.at)
        for place, items in sorted(by_path.items())
    ]


def _paths(group: TrialGroup, bounds: Sequence[float]) -> set[int]:
    """The numbers of the paths of a group's trials."""
    return {_path(item, bounds) for item in group.pathless} | ({-1} if len(group.pathless) < len(group.items) else set())


def _path(item: SourceTrial, bounds: Sequence[float]) -> int:
    """The number of a trial's path; -1 where its RTT is not known."""
    rtt = least_rtt(item)
    return -1 if math.isnan(rtt) else _place(rtt, bounds)


def _place(rtt: float, bounds: Sequence[float]) -> int:
    return sum(rtt > bound for bound in bounds)


@dataclass(frozen=True, slots=True)
class OfBoth:
    """A number of both sides together that checks know."""

    title: str
    """What the line of a check calls it, before the metric: `ratio of means`."""
    of: Callable[[ComparedCondition], Estimate]


MEAN_RATIO = OfBoth("ratio of means", lambda r: r.comparison.ratio)
OF_BOTH: Mapping[str, OfBoth] = {
    "ratio": MEAN_RATIO,
    "mean_ratio": MEAN_RATIO,
    "median_ratio": OfBoth("ratio of medians", lambda r: r.comparison.median_ratio),
    "difference": OfBoth("difference of means", lambda r: r.comparison.difference),
    "win": OfBoth("win probability", lambda r: r.comparison.win),
}
"""Name in a check → ratio of means (A over B, two names), ratio of medians, difference of means (A less B), probability that A is above B."""


@dataclass(frozen=True)
class ComparisonChecks:
    """The checks of a comparison."""

    checks: tuple[Check, ...]

    @classmethod
    def read(cls, texts: Sequence[str] | None, metric: str) -> ComparisonChecks:
        """Reads the checks of a comparison of `metric`. :raises CheckError: for a check that makes no sense."""
        known = {name: checks.unmeasured(name, unit_of(metric) if name == "difference" else "1", f"{name} of A and B") for name in OF_BOTH}
        parsed = tuple(checks.read(text, known) for text in texts or ())
        for check in parsed:
            name, stat = check.metric.name, check.named
            if name in OF_BOTH and stat and not check.statistic.end:
                other = " or median_ratio" if name == "ratio" and stat == "median" else ""
                refuse_option("check", f"{name} has no {stat}", f"write {name}, {name}.low{',' if other else ' or'} {name}.high{other}", CheckError)
        return cls(parsed)

    def verdicts(self, comparison: ResultComparison) -> list[CheckResult]:
        """A verdict for each check and condition."""
        verdicts: list[CheckResult] = []
        for check in self.checks:
            if both := OF_BOTH.get(check.metric.name):
                checks.expect(check, [(_axes_of(r), r.name) for r in comparison.rows])
                chosen = [r for r in comparison.rows if checks.is_chosen(check.chosen, _axes_of(r))]
                verdicts += [check.verdict(r.name, f"{both.title} of {comparison.metric}", both.of(r)) for r in chosen]
            else:
                sides = [(side, v) for r in comparison.rows for side, v in (("A", r.a), ("B", r.b))]
                conditions = [({**v.at, "cca": v.cca, "side": side}, f"{side}: {v.name}", v.trials) for side, v in sides]
                verdicts += checks.judge(check, conditions)
        return verdicts


def _axes_of(row: ComparedCondition) -> Mapping[str, str]:
    """Where a condition stands: A's axes and congestion control."""
    return {**row.a.at, "cca": row.a.cca}
