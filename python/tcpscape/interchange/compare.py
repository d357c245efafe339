"""Two results side by side, condition by condition: whether they differ, by how much, and how sure that is.

Conditions that both have are compared with each other: the same part, axes and congestion control; where they share none, those at the same place
(one congestion control against another), or of the same congestion control; where each has one, those two. Trials of the same seeds on the same
path (all but the congestion control alike) on the same engine are compared as pairs; what anybody measured elsewhere is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpscape import stats
from tcpscape.campaign.checks import metric_of
from tcpscape.errors import TcpscapeError
from tcpscape.interchange.base import refuse
from tcpscape.interchange.sources import Group, Source, listed
from tcpscape.stats import Comparison, Estimate
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl

VERDICTS = {
    "different": "they differ", "slightly different": "they differ, the means by less than 5 %", "alike": "no difference: the means are within 5 %",
    "undecided": "undecided: too few measurements to tell",
}
"""Each with what it says."""
CHANCE = 20
"""Of so many comparisons of equals one is called different (95 % intervals)."""


@dataclass(frozen=True, slots=True)
class Values:
    """The measurements of one condition of one side."""

    name: str
    cca: str
    place: tuple[object, ...]
    """Part of a study and axes."""
    numbers: tuple[float, ...]
    twins: tuple[tuple[Hashable, ...], ...]
    """What the twins of these on the other side have too, in one or several ways; None where that is not known."""
    trials: tuple[Trial, ...] = ()
    """None of a table."""

    @property
    def key(self) -> tuple[object, ...]:
        """What the same condition has on the other side."""
        return (self.cca, *self.place)


@dataclass(frozen=True, slots=True)
class Row:
    """Two conditions compared."""

    a: Values
    b: Values
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
    def verdict(self) -> str:
        """One of :data:`VERDICTS`."""
        if self.comparison.differs:
            return "slightly different" if self.comparison.alike else "different"
        return "alike" if self.comparison.alike else "undecided"


@dataclass(frozen=True, slots=True)
class Answer:
    """A comparison of two results."""

    metric: str
    unit: str
    rows: tuple[Row, ...]
    left_out: tuple[str, ...]
    """Conditions that only one side has."""
    caveats: tuple[str, ...]

    @property
    def differs(self) -> int:
        """In how many conditions they differ."""
        return sum(r.comparison.differs for r in self.rows)


def compare(a: Source, b: Source, metric: str = "goodput") -> Answer:
    """Compares what both sides measured of a metric (of a table: its column).

    :raises TcpscapeError: one line, where a side does not say the metric or the sides have no condition in common.
    """
    unit = unit_of(metric)
    ours, theirs = values(a, metric), values(b, metric)
    pairs = _match(ours, theirs)
    if not pairs:
        there = f"A has {listed(v.name for v in ours)}; B has {listed(v.name for v in theirs)}"
        refuse("compare", f"no condition is in both: {there}", "choose one of each side with --cca and --at")
    rows = tuple(_row(x, y, unit) for x, y in pairs)
    matched = {id(v) for p in pairs for v in p}
    left = [f"{side}: {v.name}" for side, some in (("A", ours), ("B", theirs)) for v in some if id(v) not in matched]
    return Answer(metric, unit, rows, tuple(left), (*_caveats(rows), *(f"{n}: {c}" for n, s in (("A", a), ("B", b)) for c in s.caveats)))


def values(source: Source, metric: str) -> tuple[Values, ...]:
    """The measurements of each condition; what a trial does not know is left out."""
    if source.table is not None:
        return _of_table(source, source.table, metric)
    found = metric_of(metric)
    if source.unknown.intersection(found.reads):
        refuse(source.path, f"does not say {found.name}", "choose another --metric")
    made = [_values(g, found.of) for g in source.groups]
    if not any(v.numbers for v in made):
        refuse(source.path, f"does not say {found.name}", "choose another --metric, or run with --samples 100ms --out DIR")
    return tuple(v for v in made if v.numbers)


def _values(group: Group, of: Callable[[Trial], float]) -> Values:
    known = [(v, i) for i in group.items if not math.isnan(v := of(i.trial))]
    twins = (tuple(i.twin for _, i in known), tuple(i.itself for _, i in known))
    return Values(group.name, group.cca, group.place, tuple(v for v, _ in known), twins, tuple(i.trial for _, i in known))


def _of_table(source: Source, rows: pl.DataFrame, metric: str) -> tuple[Values, ...]:
    """A column of a table, for each congestion control where it names them."""
    import polars as pl

    numeric = [c for c in rows.columns if rows[c].dtype.is_numeric()]
    column = next((c for c in (metric, f"{metric}_mbps", f"{metric}_ms") if c in numeric), None)
    if column is None:
        refuse(source.path, f"has no column of numbers called {metric!r}", f"choose --metric of {', '.join(numeric) or 'a table with numbers'}")
    parts = rows.partition_by("cca", as_dict=True, maintain_order=True) if "cca" in rows.columns else {("table",): rows}
    made = []
    for (cca,), some in parts.items():
        known = [float(v) for v in some[column].cast(pl.Float64).drop_nulls() if not math.isnan(v)]
        made += [Values(str(cca), str(cca), ("",), tuple(known), ())] if known else []
    if not made:
        refuse(source.path, f"has nothing but gaps in {column!r}", "choose another --metric")
    return tuple(made)


def unit_of(metric: str) -> str:
    """The metric's unit; of a table's own column not known."""
    try:
        return metric_of(metric).unit
    except TcpscapeError:
        return ""


def _match(ours: Sequence[Values], theirs: Sequence[Values]) -> list[tuple[Values, Values]]:
    """The conditions of both sides that belong together."""
    if len(ours) == len(theirs) == 1:
        return [(ours[0], theirs[0])]
    keys: tuple[Callable[[Values], Hashable], ...] = (lambda v: v.key, lambda v: v.place, lambda v: v.cca)
    for of in keys:
        there = {of(v): v for v in theirs}
        here = {of(v): v for v in ours}
        if len(there) == len(theirs) and len(here) == len(ours) and (both := [k for k in here if k in there]):
            return [(here[k], there[k]) for k in both]
    return []


def _row(a: Values, b: Values, unit: str) -> Row:
    for mine, other in zip(a.twins, b.twins, strict=False):
        first, second = dict(zip(mine, a.numbers, strict=True)), dict(zip(other, b.numbers, strict=True))
        if None not in first and first.keys() == second.keys() and len(first) == len(mine) and len(second) == len(other):
            return Row(a, b, unit, stats.compare(list(first.values()), [second[k] for k in first], paired=True, unit=unit), len(first))
    return Row(a, b, unit, stats.compare(a.numbers, b.numbers, paired=False, unit=unit), 0)


def _caveats(rows: Sequence[Row]) -> list[str]:
    """What weakens the verdicts."""
    made = sorted({r.comparison.caveat for r in rows if r.comparison.caveat})
    if any(min(len(r.a.numbers), len(r.b.numbers)) == 1 for r in rows):
        made.append("a side with one measurement has no interval: nothing is decided; repeat it")
    if len(rows) >= CHANCE:
        made.append(f"{len(rows)} comparisons: about {len(rows) / CHANCE:.0f} would be called different even of equals")
    return made
