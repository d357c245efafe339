"""The answer of `tcpscape kernel diff`: its screen, and its document."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from typing_extensions import TypedDict

from tcpscape.stats.estimate import Measured
from tcpscape.text.numbers import Number, number, percent
from tcpscape.text.screen import Lines, Screen
from tcpscape.text.table import Table, TableRow, table_of
from tcpscape.units import brief_percent, counted
from tcpscape.validate.kernel_diff import ALARM, KernelComparison, KernelDifference
from tcpscape.words.paths import in_words

SETTINGS = re.compile(r"--kernel [^ ,]+,(\S+)")
"""How a trial's caveat names settings of the kernel: by an option that other commands have."""
VERBS: Mapping[str, tuple[str, str]] = {
    "goodput": ("{cca} carries {size} more", "{cca} carries {size} less"),
    "fct_p50": ("the median transfer ends {size} later", "the median transfer ends {size} sooner"),
    "fct_p95": ("the slowest transfers (95th percentile) end {size} later", "the slowest transfers (95th percentile) end {size} sooner"),
    "response_p50": ("the median answer takes {size} longer", "the median answer takes {size} less time"),
    "response_p95": ("the slowest answers (95th percentile) take {size} longer", "the slowest answers (95th percentile) take {size} less time"),
    "rtt_p50": ("the median RTT of {cca} is {size} longer", "the median RTT of {cca} is {size} shorter"),
    "rtt_p95": ("the RTT's 95th percentile of {cca} is {size} longer", "the RTT's 95th percentile of {cca} is {size} shorter"),
    "retransmit_rate": ("{cca} sends {size} more segments again", "{cca} sends {size} fewer segments again"),
    "rtos": ("{cca} has {size} more timeouts", "{cca} has {size} fewer timeouts"),
    "cwnd": ("the mean congestion window of {cca} is {size} larger", "the mean congestion window of {cca} is {size} smaller"),
    "rwnd_limited": ("the receive window limits {cca} {size} longer", "the receive window limits {cca} for {size} less of the time"),
}
"""Metric → what is said where it grows and where it shrinks."""
TIMES = ("fct_p50", "fct_p95", "response_p50", "response_p95")
CHANGES: Sequence[tuple[tuple[int, int], str, Sequence[str]]] = (
    (
        (6, 14),
        "HyStart's start of a round was mended (also in later stable releases of older series).",
        ("goodput", "rtt_p95", "cwnd", "retransmit_rate", *TIMES),
    ),
    ((6, 16), "The receive buffer's limit is overshot less.", ("goodput", "rwnd_limited")),
    (
        (6, 17),
        "Recovery without RACK (RFC 6675) was removed; the receive buffer is checked more strictly.",
        ("goodput", "retransmit_rate", "rtos", "rwnd_limited"),
    ),
    (
        (6, 18),
        "tcp_rmem goes up to 32 MiB by default, rmem_max and wmem_max are 4 MiB, and the receive window grows in another way.",
        ("goodput", "rwnd_limited", "rtt_p95", "cwnd", "retransmit_rate"),
    ),
    ((6, 19), "SACKs are compressed for up to 33 % of the RTT instead of 5 %, at most 1 ms.", ("goodput", "retransmit_rate", "cwnd", "rtos", *TIMES)),
    (
        (7, 1),
        "netem's limit counts all of its packets; its 4-state loss and its slots were corrected.",
        ("goodput", "retransmit_rate", "rtt_p50", "rtt_p95"),
    ),
)
"""Changes of Linux that can show on a path, by the release that brought them, from release notes, and the metrics that they can move."""
SHARES = ("retransmit_rate", "rwnd_limited")
"""Metrics that are written in percent."""
SURE = 0.001
"""A chance below this is not told more exactly."""
MOST_LINES = 4
"""Differences that are told in sentences; all are in the table."""
DROP = ("chance", "first", "second")


class KernelDifferenceDocument(TypedDict):
    """One metric of one path that may differ, judged by fresh runs."""

    path: str
    """Id of the path."""
    cca: str
    """Congestion controls on it."""
    metric: str
    """What was compared."""
    unit: str
    """Unit of the metric; empty where it has none."""
    first: float
    """Mean on the first kernel."""
    second: float
    """Mean on the second kernel."""
    ratio: Measured
    """Second mean / first mean."""
    difference: Measured
    """Second mean − first mean, in the metric's unit."""
    chance: float
    """Probability of such a difference between equal kernels, corrected for the number of comparisons."""
    told: bool
    """Whether it is neither chance nor too small to be told."""
    worse: bool
    """Whether the second kernel is worse by this metric."""
    text: str
    """The same as a sentence."""


class KernelDiffDocument(TypedDict):
    """What another kernel changes on paths. What `tcpscape kernel diff --json` prints."""

    format: Literal[1]
    """Format of a comparison of kernels."""
    first: str
    """The first kernel: name and release."""
    second: str
    """The second kernel."""
    paths: list[str]
    """Ids of the paths that ran on both."""
    metrics_compared: int
    """Metrics of paths that were compared."""
    trials: int
    """Trials that ran."""
    differences: list[KernelDifferenceDocument]
    """Every metric of a path that first runs made a candidate."""
    left_out: list[str]
    """Paths that a kernel cannot run, with the reason."""
    text: str
    """The answer as a sentence."""


def screen(result: KernelComparison) -> Screen:
    """The screen of a comparison of two kernels."""
    one = result.conditions[0]
    path = in_words(one.scenario) if len(result.conditions) == 1 else f"{len(result.conditions)} paths"
    lines = [sentence(d, result) for d in result.told[1 : 1 + MOST_LINES]]
    tables: list[Table | Lines] = [Lines("Also", lines)] if lines else []
    tables += [table(result)] if result.told else []
    tables += (
        [Lines("Changes of Linux between the two that can show so; which it was, runs do not tell", known)] if (known := changes(result)) else []
    )
    return Screen(
        f"{result.kernels[0]} and {result.kernels[1]}: {path}",
        answer(result),
        remarks=tuple(_remarks(result)),
        tables=tuple(tables),
        details=(goodput_table(result), *candidates(result)),
        caveats=tuple(_caveats(result)),
    )


def _caveats(result: KernelComparison) -> Iterator[str]:
    """What weakens the comparison. Settings of the kernel are the path's here, since the command line names two kernels."""
    for caveat in result.caveats:
        yield SETTINGS.sub(lambda found: f"kernel: {{{found[1].replace('=', ': ').replace(',', ', ')}}} in a scenario of --paths", caveat)
    for id, why in result.left_out:
        yield f"{id} is left out: {why}"


def answer(result: KernelComparison) -> str:
    """The answer as a sentence."""
    first, second = result.kernels
    paths = {d.condition.id for d in result.told}
    if not paths:
        where = "on this path" if len(result.conditions) == 1 else f"on any of the {len(result.conditions)} paths"
        return f"No difference between {first} and {second} {where} that is not chance; {_goodput(result)}."
    told = sentence(result.told[0], result).removesuffix(".")
    if len(result.conditions) == 1:
        return f"{told[0].upper()}{told[1:]}."
    return f"{second} differs from {first} on {len(paths)} of {len(result.conditions)} paths: {told}."


def _goodput(result: KernelComparison) -> str:
    """How surely the goodput is the same."""
    alike = sum(c.alike for c in result.goodput)
    if len(result.goodput) == 1:
        return f"the second carries {result.goodput[0].ratio.text()} of the first's goodput"
    return f"the goodput is surely within 5 % on {alike} of {counted(len(result.goodput), 'path')}"


def sentence(difference: KernelDifference, result: KernelComparison) -> str:
    """One difference: `on geo, with 7.1 cubic carries 12 % [9, 15] more (18 Mbit/s → 20.2 Mbit/s).`"""
    first, second = difference.means
    where = f"on {difference.condition.id}, with " if len(result.conditions) > 1 else "with "
    text = VERBS[difference.metric.name][second < first].format(cca=difference.condition.cca, size=_size(difference)).replace("  ", " ")
    return f"{where}{result.kernels[1]} {text} ({_value(difference, 0)} → {_value(difference, 1)})."


def _value(difference: KernelDifference, side: int) -> str:
    metric, mean = difference.metric, difference.means[side]
    return percent(mean, 2) if metric.name in SHARES else f"{number(mean)} {metric.printed_unit}".rstrip()


def _size(difference: KernelDifference) -> str:
    """`12 % [9, 15]`; nothing where the first kernel has none of it."""
    ratio, sign = difference.comparison.ratio, 1 if difference.change > 0 else -1
    if not math.isfinite(difference.change):
        return ""
    interval = (
        f" [{', '.join(_points(end) for end in sorted((sign * (ratio.low - 1), sign * (ratio.high - 1))))}]" if math.isfinite(ratio.low) else ""
    )
    return f"{_points(abs(difference.change))} %{interval}"


def _points(share: float) -> str:
    """A share in percent: whole from 10 % on."""
    return f"{100 * share:.{0 if abs(share) >= 0.1 else 1}f}"


def _remarks(result: KernelComparison) -> Iterator[str]:
    """How sure it is, and which changes of Linux may be behind it."""
    few = f"Means of fresh runs, {percent(ALARM)} for any false alarm among {result.metrics_compared} comparisons ({result.trials} trials)"
    yield f"{few}; differences below {brief_percent(result.least)} are not told."


def changes(result: KernelComparison) -> list[str]:
    """The changes of Linux between the two kernels that can move what differs, each with the release that brought it."""
    moved = {d.metric.name for d in result.told}
    return [f"{a}.{b}: {text}" for (a, b), text, moves in CHANGES if _between((a, b), result.releases) and moved.intersection(moves)]


def _between(release: tuple[int, int], releases: tuple[str, str]) -> bool:
    """Whether a release is newer than the older kernel, and not newer than the other one."""
    older, newer = sorted(_numbers(text) for text in releases)
    return older < release <= newer


def _numbers(release: str) -> tuple[int, int]:
    """The first two numbers of a release."""
    parts = [int(part) for part in release.replace("-", ".").split(".")[:2] if part.isdigit()]
    return (parts[0], parts[1]) if len(parts) == 2 else (0, 0)


@table_of.register
def table(result: KernelComparison) -> Table:
    """The differences that are told."""
    return Table(_columns(result), [_row(d) for d in result.told], title="Differences that are no chance", drop=DROP, words=("metric",))


def _columns(result: KernelComparison) -> Sequence[str]:
    names = dict(zip(("first", "second"), result.kernels, strict=True))
    return ("path", "metric", *(names[side] for side in ("first", "second")), "second / first [95 %]", "chance")


def _row(d: KernelDifference) -> TableRow:
    unit = f", {d.metric.printed_unit}" if d.metric.printed_unit else ""
    means = (Number.percent(m, 2) if d.metric.name in SHARES else Number.of(m) for m in d.means)
    return d.condition.id, f"{d.metric.name}{unit}", *means, d.comparison.ratio.cell(), _chance(d.chance)


def _chance(chance: float) -> Number:
    return Number(chance, f"{chance:.2g}" if chance >= SURE else f"< {SURE:g}")


def candidates(result: KernelComparison) -> list[Table]:
    """The candidates of the first runs that fresh ones did not confirm, or that are too small."""
    rest = [d for d in result.differences if d not in result.told]
    title = "Looked at again, and chance or too small to be told"
    return [Table(_columns(result), [_row(d) for d in rest], title=title, drop=DROP, words=("metric",))] if rest else []


def goodput_table(result: KernelComparison) -> Table:
    """The goodput of every path on both kernels, over all runs."""
    rows = [
        (c.id, c.scenario.about or in_words(c.scenario), g.ratio.cell(), g.ratio.n) for c, g in zip(result.conditions, result.goodput, strict=True)
    ]
    cells: list[TableRow] = [(id, about, ratio, Number.count(n)) for id, about, ratio, n in rows]
    return Table(("path", "what it is", "goodput, second / first [95 %]", "n"), cells, 2, title="Goodput of every path", drop=("n",))


def document(result: KernelComparison) -> KernelDiffDocument:
    """Every number of a comparison of kernels."""
    return KernelDiffDocument(
        format=1,
        first=result.kernels[0],
        second=result.kernels[1],
        paths=[c.id for c in result.conditions],
        metrics_compared=result.metrics_compared,
        trials=result.trials,
        differences=[difference_document(d, result) for d in result.differences],
        left_out=[f"{id}: {why}" for id, why in result.left_out],
        text=answer(result),
    )


def difference_document(d: KernelDifference, result: KernelComparison) -> KernelDifferenceDocument:
    """Every number of one difference."""
    return KernelDifferenceDocument(
        path=d.condition.id,
        cca=d.condition.cca,
        metric=d.metric.name,
        unit=d.metric.printed_unit,
        first=d.means[0],
        second=d.means[1],
        ratio=d.comparison.ratio.measured(),
        difference=d.comparison.difference.measured(),
        chance=d.chance,
        told=d in result.told,
        worse=d.is_worse,
        text=sentence(d, result),
    )
