"""`tcpscape compare`: whether two results differ."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tcpscape.cli import checks, options, terminal
from tcpscape.cli.command import Argument, Option, command
from tcpscape.errors import refuse

if TYPE_CHECKING:
    from tcpscape.interchange.compare import ComparedCondition, ResultComparison
    from tcpscape.interchange.sources import ResultSource
    from tcpscape.stats import Estimate

MOST_SENTENCES = 6
"""With more conditions than this, none gets a sentence."""


@dataclass(frozen=True)
class Sides:
    """Both results, and what of them is compared."""

    a: Annotated[Path, Argument("A result directory, iperf3's JSON, a Flent file, a table, or a directory of such files.")]
    b: Annotated[Path, Argument("Another one.")]
    metric: Annotated[str, Option("What to compare: goodput, rtt_p95, retransmits, …; of a table a column.")] = "goodput"
    cca: Annotated[str | None, Option("Only these congestion controls: bbr of both sides, or cubic:bbr, A's and B's.")] = None
    at: options.At = ()

    def load(self) -> tuple[ResultSource, ResultSource]:
        """The chosen conditions of A and of B.

        :raises TcpscapeError: for an axis that neither has, and where one has no trial of what is chosen.
        """
        from tcpscape.interchange import sources

        first, _, second = (self.cca or "").partition(":")
        levels = options.levels(self.at)
        a, b = sources.load(self.a, sources.SAMPLES), sources.load(self.b, sources.SAMPLES)
        axes = {name for group in (*a.groups, *b.groups) for name in group.at}
        if unknown := [name for name in levels if name not in axes]:
            choice = ", ".join(sorted(axes)) or "conditions with --cca: there are no axes"
            refuse("at", f"neither side has an axis {unknown[0]!r}", f"choose {choice}")
        return a.only(first or None, at=levels), b.only(second or first or None, at=levels)


@command(
    examples=(
        "compare out/starlink out/starlink --cca cubic:bbr",
        'compare out/starlink out/starlink --cca cubic:bbr --metric rtt_p95\n--check "ratio < 1.5"',
    ),
)
def compare(
    sides: Sides,
    as_json: Annotated[bool, options.json_output("One JSON document")] = False,
    check: checks.Checks = (),
) -> None:
    """Say whether two results differ: ratio of medians and win probability with their intervals, condition by condition.

    Checks are of A's and B's metrics, or of the comparison: 'ratio > 0.95', 'ratio.low > 1', 'win > 0.5'.
    """
    from tcpscape.interchange import compare as comparison

    expected = comparison.ComparisonChecks.read(check, sides.metric)
    answer = comparison.compare(*sides.load(), sides.metric)
    if as_json:
        print(json.dumps(_plain(answer, sides), allow_nan=False))
    else:
        _show(answer, sides)
    checks.finish(expected.verdicts(answer), as_json=as_json)


def _show(answer: ResultComparison, sides: Sides) -> None:
    screen = terminal.console()
    table = answer.table()
    screen.print(f"A: {sides.a}\nB: {sides.b}\n[bold]{table.title}[/bold]")
    screen.print(table.rich())
    for row in answer.rows if len(answer.rows) <= MOST_SENTENCES else ():
        screen.print(_sentence(row, answer.metric), soft_wrap=True)
    if len(answer.rows) > 1:
        alike = sum(r.comparison.alike for r in answer.rows)
        screen.print(f"{answer.differs} of {len(answer.rows)} conditions differ; in {alike} the means are surely within 5 %")
    for name in answer.left_out:
        screen.print(f"only in {name}")
    for caveat in answer.caveats:
        screen.print(f"caveat: {caveat}", soft_wrap=True)


def _sentence(row: ComparedCondition, metric: str) -> str:
    """The answer in a sentence: `cubic: A's goodput is 0.52 [0.48, 0.57] times B's (medians), above it in 3 % of 10 pairs: they differ.`"""
    from tcpscape.interchange import compare as comparison

    c = row.comparison
    ratio = f"{c.median_ratio.text()} times B's (medians)" if math.isfinite(c.median_ratio.value) else f"B's and {c.difference.text()}"
    pairs = f"{row.pairs} pairs" if row.pairs else "comparisons, not paired"
    return f"{row.name}: A's {metric} is {ratio}, above it in {100 * c.win.value:.0f} % of {pairs}: {comparison.VERDICTS[row.verdict]}."


def _plain(answer: ResultComparison, sides: Sides) -> dict[str, Any]:
    rows = []
    for r in answer.rows:
        first, second = r.medians
        c = r.comparison
        rows.append({
            "condition": r.name, "verdict": r.verdict, "paired": bool(r.pairs), "a": _estimate(first), "b": _estimate(second),
            "ratio_of_medians": _estimate(c.median_ratio), "ratio_of_means": _estimate(c.ratio), "difference_of_means": _estimate(c.difference),
            "win_probability": _estimate(c.win), "text": _sentence(r, answer.metric),
        })
    return {
        "a": str(sides.a), "b": str(sides.b), "metric": answer.metric, "unit": answer.unit, "conditions": rows, "left_out": list(answer.left_out),
        "caveats": list(answer.caveats),
    }


def _estimate(e: Estimate) -> dict[str, Any]:
    return {**e.plain(), "n": e.n}
