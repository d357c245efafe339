"""`tcpscape compare`: whether two results differ."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcpscape.cli import checks, options, tables
from tcpscape.errors import refuse

if TYPE_CHECKING:
    from tcpscape.interchange.compare import ComparedCondition, ResultComparison
    from tcpscape.stats import Estimate


SIDES = ("samples",)
"""Side tables that metrics are made of."""
MOST_SENTENCES = 6
"""Conditions that get a sentence each."""


def compare(
    a: Annotated[Path, typer.Argument(help="A result directory, iperf3's JSON, a Flent file, a table, or a directory of such files.")],
    b: Annotated[Path, typer.Argument(help="Another one.")],
    metric: Annotated[str, typer.Option(help="What to compare: goodput, rtt_p95, retransmits, …; of a table a column.")] = "goodput",
    cca: Annotated[str | None, typer.Option(help="Only these congestion controls: bbr of both sides, or cubic:bbr, A's and B's.")] = None,
    at: Annotated[list[str] | None, typer.Option(metavar="AXIS=VALUE", help="Only conditions with this value of an axis. Repeatable.")] = None,
    as_json: options.OneJson = False,
    check: checks.Checks = None,
) -> None:
    """Say whether two results differ: ratio of medians and win probability with their intervals, condition by condition.

    Checks are of A's and B's metrics, or of the comparison: 'ratio > 0.95', 'ratio.low > 1', 'win > 0.5'.
    """
    from tcpscape.interchange import compare as comparing
    from tcpscape.interchange import sources

    requested = comparing.ComparisonChecks.read(check, metric)
    first, _, second = (cca or "").partition(":")
    where = _at(at or [])
    one, other = sources.load(a, SIDES), sources.load(b, SIDES)
    _expect(where, {name for g in (*one.groups, *other.groups) for name in g.at})
    one, other = one.only(first or None, at=where), other.only(second or first or None, at=where)
    answer = comparing.compare(one, other, metric)
    if as_json:
        print(json.dumps(_plain(answer, a, b), allow_nan=False))
    else:
        _show(answer, a, b)
    checks.finish(requested.verdicts(answer), as_json=as_json)


def _at(said: Sequence[str]) -> dict[str, str]:
    """`--at AXIS=VALUE`, as often as said."""
    pairs = [text.partition("=") for text in said]
    if wrong := [text for text, (name, _, value) in zip(said, pairs, strict=True) if not (name.strip() and value.strip())]:
        refuse("at", f"{wrong[0]!r} is not AXIS=VALUE", "write for example --at jitter=4ms")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _expect(asked: Mapping[str, str], there: Set[str]) -> None:
    """Refuses an axis that neither side has."""
    if unknown := [name for name in asked if name not in there]:
        refuse("at", f"neither side has an axis {unknown[0]!r}", f"choose {', '.join(sorted(there)) or 'conditions with --cca: there are no axes'}")


def _show(answer: ResultComparison, a: Path, b: Path) -> None:
    screen = tables.console()
    unit = f", {answer.unit}" if answer.unit not in ("", "1") else ""
    screen.print(f"A: {a}\nB: {b}\n[bold]{answer.metric}{unit}[/bold]")
    columns = ("condition", "n", "A: median [95 %]", "B: median [95 %]", "A / B, medians", "A / B, means", "A above B", "verdict")
    screen.print(tables.table(columns, [_row(r) for r in answer.rows]))
    for row in answer.rows if len(answer.rows) <= MOST_SENTENCES else ():
        screen.print(sentence(row, answer.metric), soft_wrap=True)
    if len(answer.rows) > 1:
        alike = sum(r.comparison.alike for r in answer.rows)
        screen.print(f"{answer.differs} of {len(answer.rows)} conditions differ; in {alike} the means are surely within 5 %")
    for name in answer.left_out:
        screen.print(f"only in {name}")
    for caveat in answer.caveats:
        screen.print(f"caveat: {caveat}", soft_wrap=True)


def _row(r: ComparedCondition) -> tuple[str, ...]:
    first, second = r.medians
    n = f"{r.pairs} pairs" if r.pairs else f"{len(r.a.numbers)} : {len(r.b.numbers)}"
    c = r.comparison
    return (r.name, n, first.text(), second.text(), c.median_ratio.text(), c.ratio.text(), c.win.text(2), r.verdict)


def sentence(row: ComparedCondition, metric: str) -> str:
    """The answer in words: `cubic: A's goodput is 0.52 [0.48, 0.57] times B's (medians), above it in 3 % of 10 pairs: they differ.`"""
    from tcpscape.interchange import compare as comparing

    c = row.comparison
    times = f"{c.median_ratio.text()} times B's (medians)" if math.isfinite(c.median_ratio.value) else f"B's and {c.difference.text()}"
    among = f"{row.pairs} pairs" if row.pairs else "comparisons, not paired"
    return f"{row.name}: A's {metric} is {times}, above it in {100 * c.win.value:.0f} % of {among}: {comparing.VERDICTS[row.verdict]}."


def _plain(answer: ResultComparison, a: Path, b: Path) -> dict[str, Any]:
    rows = []
    for r in answer.rows:
        first, second = r.medians
        c = r.comparison
        rows.append({
            "condition": r.name, "verdict": r.verdict, "paired": bool(r.pairs), "a": _estimate(first), "b": _estimate(second),
            "ratio_of_medians": _estimate(c.median_ratio), "ratio_of_means": _estimate(c.ratio), "difference_of_means": _estimate(c.difference),
            "win_probability": _estimate(c.win), "text": sentence(r, answer.metric),
        })
    return {
        "a": str(a), "b": str(b), "metric": answer.metric, "unit": answer.unit, "conditions": rows, "left_out": list(answer.left_out),
        "caveats": list(answer.caveats),
    }


def _estimate(e: Estimate) -> dict[str, Any]:
    return {**e.plain(), "n": e.n}
