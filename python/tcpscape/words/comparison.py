"""The answer of a comparison: the screen of `compare`, and its document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from typing_extensions import TypedDict

from tcpscape.interchange.compare import ComparedCondition, Difference, ResultComparison, differ
from tcpscape.names import argument, with_options
from tcpscape.scenario import bottleneck
from tcpscape.stats.estimate import Measured
from tcpscape.text.numbers import Number, number, percent
from tcpscape.text.screen import Screen
from tcpscape.text.table import RowsOf, Table, TableRow, table_of
from tcpscape.words.paths import differences
from tcpscape.words.sentences import caveat, runs_text

VERDICTS: Mapping[Difference, str] = {
    "different": "they differ",
    "slightly different": "they differ, the means by less than 5 %",
    "alike": "no difference: the means are within 5 %",
    "undecided": "undecided: too few measurements to tell",
}
"""Verdict → its sentence."""
MOST_ROWS = 6
"""Most conditions that the screen shows without `verbose`; the others are in the details."""
MOST_NAMES = 3
"""Most conditions that only one side has and the screen names."""
THE_SAME = "the same runs"
"""The verdict in words where both sides are the very same trials."""
CHANCE = 20
"""Of so many comparisons of equals one is called different (95 % intervals)."""
COLUMNS = ("condition", "n", "mean of A", "mean of B", "A / B of means [95 %]", "verdict")
DROP = ("n", "mean of B", "mean of A")
"""Columns that a narrow screen leaves out, the first one first."""


class ComparedDocument(TypedDict):
    """One condition of a comparison."""

    condition: str
    """Name of the condition."""
    verdict: Difference
    """Whether the means differ: `slightly different` is by less than 5 %, `alike` is surely within 5 %."""
    same_runs: bool
    """Whether both sides are the very same trials."""
    missing_runs: int
    """Further measurements of each side that would probably decide; 0 where it is decided."""
    paired: bool
    """Whether measurements of the same seed were compared as pairs."""
    a: Measured
    """Mean of A, in the comparison's unit."""
    b: Measured
    """Mean of B, in the comparison's unit."""
    a_median: Measured
    """Median of A, in the comparison's unit."""
    b_median: Measured
    """Median of B, in the comparison's unit."""
    ratio_of_means: Measured
    """Mean of A / mean of B."""
    ratio_of_medians: Measured
    """Median of A / median of B."""
    difference_of_means: Measured
    """Mean of A − mean of B, in the comparison's unit."""
    win_probability: Measured
    """How often a measurement of A is above one of B, a fraction."""
    text: str
    """The same as a sentence."""


class ComparisonDocument(TypedDict):
    """Whether two results differ, condition by condition. What `tcpscape compare --json` prints."""

    format: Literal[1]
    """Format of a comparison."""
    a: str
    """The first result, as it was named."""
    b: str
    """The second result, as it was named."""
    metric: str
    """What was compared."""
    unit: str
    """Unit of the metric; empty where it has none or is not known."""
    statistic: Literal["mean"]
    """Statistic that the verdicts are about."""
    conditions: list[ComparedDocument]
    """Every condition that both sides have."""
    left_out: list[str]
    """Conditions that only one side has."""
    caveats: list[str]
    """What limits the validity, a sentence each."""


@table_of.register
def table(comparison: ResultComparison) -> Table:
    """A row for each condition: both means, their ratio, and the verdict."""
    notes = [f"only in {name}" for name in comparison.left_out] + [f"caveat: {caveat}" for caveat in caveats(comparison)]
    return replace(_of_rows(comparison), notes=notes)


def _of_rows(comparison: ResultComparison) -> Table:
    """The table without its notes."""
    title = f"{comparison.metric}, {comparison.unit}" if comparison.unit not in ("", "1") else comparison.metric
    rows = RowsOf(comparison.rows, partial(_row, comparison))
    return Table(COLUMNS, rows, title=title, drop=DROP, brief=DROP[1:], words=("verdict",))


def _row(comparison: ResultComparison, condition: ComparedCondition) -> TableRow:
    """The texts of :data:`COLUMNS`; no goodput is above the rate of the link."""
    sides = zip((condition.a, condition.b), condition.means, strict=True)
    means = [m.cell(most=bottleneck.link_mbps(side.scenarios[0]) if side.scenarios and comparison.metric == "goodput" else None) for side, m in sides]
    n = f"{condition.pairs} pairs" if condition.pairs else f"{len(condition.a.numbers)} : {len(condition.b.numbers)}"
    if condition.is_same:
        return condition.name, n, *means, Number.count(1), THE_SAME
    return condition.name, n, *means, condition.comparison.ratio.cell(), condition.verdict


def caveats(comparison: ResultComparison) -> list[str]:
    """In what the paths differ, and what else weakens the verdicts."""
    return [*_differing_paths(comparison.rows), *_weaknesses(comparison.rows), *comparison.caveats]


def _differing_paths(rows: Sequence[ComparedCondition]) -> Iterator[str]:
    """In what the paths of the two sides differ, each difference once, with the conditions that it is of unless it is of all."""
    names: dict[str, list[str]] = {}
    for row in rows:
        paths_of = () if row.is_of_one_path else zip(row.a.scenarios, row.b.scenarios, strict=False)
        if text := next((", ".join(texts) for a, b in paths_of if (texts := differences(a, b))), ""):
            names.setdefault(text, []).append(row.name)
    for text, of in names.items():
        more = f" and {len(of) - 1} more" if len(of) > 1 else ""
        yield f"{'' if len(of) == len(rows) else f'{of[0]}{more}: '}the paths differ: {text}"


def _weaknesses(rows: Sequence[ComparedCondition]) -> list[str]:
    """Whatever weakens the verdicts."""
    apart = [r for r in rows if differ(r.a.least_rtt_ms, r.b.least_rtt_ms)]
    found = sorted({caveat(r.comparison.caveat) for r in rows if not r.is_same and r.comparison.caveat})
    if any(min(len(r.a.numbers), len(r.b.numbers)) == 1 for r in rows):
        found.append("a side with one measurement has no interval: nothing is decided; repeat it")
    if apart:
        first, rtts = apart[0], [f"{number(side.least_rtt_ms)} ms" for side in (apart[0].a, apart[0].b)]
        found.append(f"{first.name}: the sides were measured on different paths, least RTT {rtts[0]} and {rtts[1]}")
    if len(rows) >= CHANCE:
        found.append(f"{len(rows)} comparisons: about {len(rows) / CHANCE:.0f} would be called different even of equals")
    return found


def screen(comparison: ResultComparison, a: str, b: str, command: str = "", *, most: int | None = MOST_ROWS) -> Screen:
    """The screen of a comparison of the results called `a` and `b`.

    :param command: the command line that compares them.
    :param most: conditions that are shown without `verbose`; None is all.
    """
    whole = _of_rows(comparison)
    most = len(whole.rows) if most is None else most
    rows, more = whole.rows[:most], len(whole.rows) - most
    notes = [f"{more} more conditions: --verbose"] if more > 0 else []
    shown = replace(whole, rows=rows, title="", notes=notes)
    rest = [replace(whole, rows=whole.rows[most:], title="The other conditions", notes=())] if more > 0 else []
    details: list[Table | str] = [*rest, _more_statistics(comparison), *(f"only in {name}" for name in comparison.left_out)]
    return Screen(
        f"A: {a}; B: {b}; {whole.title}",
        answer(comparison),
        tables=(shown,),
        details=details,
        caveats=(*_left_out(comparison), *caveats(comparison)),
        next=_next(comparison, command or f"tcpscape compare {argument(a)} {argument(b)}"),
    )


def answer(comparison: ResultComparison) -> str:
    """The answer as a sentence: of one condition the ratio, of several how many differ."""
    rows = comparison.rows
    if len(rows) == 1:
        return sentence(rows[0], comparison.metric).removesuffix(".") + _not_compared(comparison) + "."
    if all(r.is_same for r in rows):
        return f"All {len(rows)} conditions are {THE_SAME} on both sides, packet for packet{_not_compared(comparison)}."
    alike, open_ = (sum(r.verdict == verdict for r in rows) for verdict in ("alike", "undecided"))
    parts = [f"{comparison.differs} of {len(rows)} conditions differ", *_largest(rows)]
    if alike:
        parts.append(f"in {alike} the means are surely within 5 %")
    if open_:
        missing = max(r.missing for r in rows)
        parts.append(f"{open_} {'are' if open_ > 1 else 'is'} undecided: {_runs(missing)} would probably decide")
    return "; ".join(parts) + _not_compared(comparison) + "."


def _not_compared(comparison: ResultComparison) -> str:
    """How many conditions only one side has: a job must not take them for alike."""
    count = len(comparison.left_out)
    return f"; {count} that only one side has {'are' if count > 1 else 'is'} not compared" if count else ""


def _largest(rows: Sequence[ComparedCondition]) -> list[str]:
    """The difference with the largest ratio, in either direction, if any is clear."""
    clear = [(abs(math.log(r.comparison.ratio.value)), r) for r in rows if r.differs and r.comparison.ratio.value > 0]
    if not clear:
        return []
    row = max(clear, key=lambda pair: pair[0])[1]
    return [f"the largest difference is a ratio of {row.comparison.ratio.text()} ({row.name})"]


def sentence(row: ComparedCondition, metric: str) -> str:
    """The answer for one condition: `cubic: A's goodput is 0.52 [0.48, 0.57] times B's (means), above it in 3 % of 10 pairs: they differ.`"""
    c = row.comparison
    if row.is_same:
        return f"{row.name}: A and B are {THE_SAME}, packet for packet."
    ratio = f"{c.ratio.text()} times B's (means)" if math.isfinite(c.ratio.value) else f"B's plus {c.difference.text()}"
    pairs = f"{row.pairs} pairs" if row.pairs else "comparisons, not paired"
    verdict = f"undecided, {_runs(row.missing)} would probably decide" if row.verdict == "undecided" else VERDICTS[row.verdict]
    return f"{row.name}: A's {metric} is {ratio}, above it in {percent(c.win.value)} of {pairs}: {verdict}."


def document(comparison: ResultComparison, a: str, b: str) -> ComparisonDocument:
    """Every number of a comparison; what is infinite or not known is None."""
    return ComparisonDocument(
        format=1,
        a=a,
        b=b,
        metric=comparison.metric,
        unit=comparison.unit,
        statistic="mean",
        conditions=[_compared(row, comparison.metric) for row in comparison.rows],
        left_out=list(comparison.left_out),
        caveats=caveats(comparison),
    )


def _compared(row: ComparedCondition, metric: str) -> ComparedDocument:
    (a_mean, b_mean), (a_median, b_median), c = row.means, row.medians, row.comparison
    return ComparedDocument(
        condition=row.name,
        verdict=row.verdict,
        same_runs=row.is_same,
        missing_runs=row.missing,
        paired=bool(row.pairs),
        a=a_mean.measured(),
        b=b_mean.measured(),
        a_median=a_median.measured(),
        b_median=b_median.measured(),
        ratio_of_means=c.ratio.measured(),
        ratio_of_medians=c.median_ratio.measured(),
        difference_of_means=c.difference.measured(),
        win_probability=c.win.measured(),
        text=sentence(row, metric),
    )


def _runs(missing: int) -> str:
    """`about 14 more runs a side`."""
    return f"{runs_text(missing)} a side"


def _more_statistics(comparison: ResultComparison) -> Table:
    """The statistics that the verdict is not made of."""

    def row(r: ComparedCondition) -> TableRow:
        return r.name, r.comparison.difference.cell(), r.comparison.win.cell(2), *(m.cell() for m in r.medians), r.comparison.median_ratio.cell()

    title = "Difference of means, how often A is above B, medians and their ratio [95 %]"
    columns = ("condition", "A − B of means", "A above B", "median of A", "median of B", "A / B of medians")
    return Table(columns, RowsOf(comparison.rows, row), title=title, drop=("median of B", "median of A", "A − B of means"))


def _left_out(comparison: ResultComparison) -> list[str]:
    """The conditions that only one side has, as one sentence."""
    names, more = comparison.left_out[:MOST_NAMES], len(comparison.left_out) - MOST_NAMES
    return [f"not compared, only in {'; '.join(names)}{f' and {more} more: --verbose' if more > 0 else ''}"] if names else []


def _next(comparison: ResultComparison, command: str) -> list[str]:
    """What decides, or which other metric to look at; nothing where both sides are the same."""
    if all(r.is_same for r in comparison.rows):
        return []
    if any(r.missing for r in comparison.rows):
        own = all(side.scenarios for r in comparison.rows for side in (r.a, r.b))
        return [f"more {'runs of both sides (--seeds; kept trials do not run again)' if own else 'measurements of both sides'}, then compare again"]
    sides = [side for row in comparison.rows for side in (row.a, row.b)]
    has_delays = all(side.trials and side.trials[0].flows[0].rtt_ms.p95 is not None for side in sides)
    return [f"{with_options(command, '--metric rtt_p95')} (the delay)"] if comparison.metric == "goodput" and has_delays else []
