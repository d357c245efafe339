"""The tables of a validation: plain rows of text for the terminal and for Markdown; CSV and JSON for machines."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from typing_extensions import TypedDict

from tcpscape import __version__, writing
from tcpscape.formats import TableFormat, columns, printed
from tcpscape.stats import Estimate
from tcpscape.text.numbers import number, percent
from tcpscape.text.table import Table
from tcpscape.validate.compare import EVERYWHERE, SMALL, CheckedBound, Divergence, DivergenceSummary, Ranks, groups, quantile, spread, worst
from tcpscape.validate.conditions import COMBINATIONS, FAMILIES, MIXED
from tcpscape.validate.parting import Partings
from tcpscape.validate.sides import write_results
from tcpscape.validate.validation import NUMBERS, RESULTS, SUMMARY, Validation
from tcpscape.words import topologies as topology_tables

BOUND_TITLES = {
    "median": "median error",
    "median_low": "median error, unexplained part",
    "p90": "90th percentile of the error",
    "p90_low": "90th percentile, unexplained part",
    "worst": "largest error",
    "overlap": "intervals overlap",
    "group_median": "median error of a group's goodput",
    "group_p90": "90th percentile of a group's",
    "larger_share": "the larger share alike",
    "winner_share": "the right winner per flow",
    "latency_median": "median error of probes' delays",
    "latency_p90": "90th percentile of probes' delays",
    "retransmit_share": "retransmits within 1.5 ×",
    "rtt_share": "mean RTT within 5 %",
}
"""Titles of numbers in a table; others keep their name."""
SIGNS = {"<=": "≤", ">=": "≥"}
"""How tables write what a bound compares by; others are written as they are."""
MAX_LINES = 20
"""Most conditions that could not run, and most caveats, that are listed one by one."""

SUMMARY_HEAD = ("conditions", "n", "median", "p90", "worst", "bias", "chance", "overlap", "retransmits", "mean RTT")
SCATTER, OPEN = "within the runs' scatter", "not explained yet"
"""The last column for a condition without a note."""
DEFINITIONS = """\
The error of a condition is |ln(median goodput of A / median goodput of B)|: 0.05 is 5 %, 0.2 a factor 1.22. Its ln ratio has a 95 %
interval (bootstrap of both medians). In brackets behind a median or 90th percentile: every condition at the end of its interval nearest
to zero (the *unexplained* error, that the runs' own scatter does not excuse), and at its far end. *Chance* (median / p90) is what a
perfect model would show with as many runs, drawn from B's own. *Overlap* is the share of conditions in which the intervals of the two
medians overlap or are less than 1 % apart. The *bias* is the median of the signed ln ratio, positive where A is faster. *Retransmits*:
the share of conditions in which they agree within a factor of 1.5, of those in which B has more than 20; *mean RTT*: within 5 %, of
those in which both are known (the smoothed RTT, sampled). Intervals stand on the runs there are: with three runs a side they cover the
truth in 90 % of cases, from five on in 95 %."""
CONDITIONS = TableFormat(
    "conditions",
    "A row for each condition of a validation: conditions.csv.",
    columns(
        """
    id string -: The condition
    cca string -: Congestion control
    family string -: Family of conditions
    combination string -: Combination of impairments
    condition string -: The condition in words
"""
        + "".join(
            f"""
    {side}_mbps number Mbit/s: Median goodput of {side.upper()}
    {side}_low number Mbit/s: Lower end of its 95 % interval
    {side}_high number Mbit/s: Upper end of its 95 % interval
"""
            for side in ("a", "b")
        )
        + """
    ln_ratio number -: ln(A / B) of the medians
    ln_low number -: Lower end of its 95 % interval
    ln_high number -: Upper end of its 95 % interval
    error number -: |ln(A / B)|
    unexplained number -: The end of the interval nearest to 0, as an error
    at_most number -: The far end of the interval, as an error
    chance number -: Error that a perfect model would show in the median
    overlap boolean -: Whether the intervals of the medians overlap or are less than 1 % apart
    a_cv number -: Coefficient of variation of A's goodput
    b_cv number -: Coefficient of variation of B's goodput
    a_runs integer -: Trials of A
    b_runs integer -: Trials of B
    a_retransmits number segments: Median of A's retransmissions
    b_retransmits number segments: Median of B's retransmissions
    retransmit_factor number -: A's retransmissions / B's; empty where B has few
    a_rtt_ms number ms: Median of A's mean RTT
    b_rtt_ms number ms: Median of B's mean RTT
    rtt_ratio number -: A's RTT / B's
    min_rtt_ratio number -: A's least RTT / B's
    queue string -: Queue of the bottleneck; of a chain of links, those of all links with + between them
    group_ln_ratios string -: ln(A / B) of each group of flows, with ; between them
    larger_alike boolean -: Whether the same of two groups has the larger share
    winner_alike boolean -: Whether the same group gets most per flow; empty where B's runs do not agree which one
    delay_ratios string -: A / B of the median and of the 95th percentile of each probe's delays, with ; between them
"""
    ),
)


class SideDocument(TypedDict):
    """One side of a validation."""

    label: str
    """What it is called."""
    version: str
    """Version of its engine."""


class BoundCheckDocument(TypedDict):
    """A bound that `--check` of `tcpscape validate` asks for."""

    bound: str
    """The bound as it was typed."""
    group: str
    """The group of conditions that it is about; empty for all."""
    reached: float | None
    """The number that was reached."""
    met: bool
    """Whether the bound is met."""


class PartingRow(TypedDict):
    """A quantity in which two engines part."""

    quantity: str
    """A column of the samples."""
    t_s: float
    """When it parts, s."""
    a: float | None
    """Its value on A."""
    b: float | None
    """Its value on B."""
    lasting: float
    """Share of the rest of the trace in which they are apart, a fraction."""


class PartingDocument(TypedDict):
    """The first moments at which two engines part under a condition."""

    first: str | None
    """The quantity that parts first; null where none does."""
    chance: float | None
    """Share of pairs of trials of one engine that part as early."""
    exact: bool
    """Whether both sides have the same random numbers, so that any difference counts."""
    found: list[PartingRow]
    """Every quantity that parts."""


class RunsDocument(TypedDict):
    """How often a condition was run."""

    id: str
    """The condition."""
    runs: tuple[int, int]
    """Trials on A and on B."""


class ValidationDocument(TypedDict):
    """How far two engines are apart over many conditions: `summary.json` of `tcpscape validate`.

    Errors are |ln(goodput of A / goodput of B)| of a condition's medians.
    """

    format: Literal[1]
    """Format of a validation."""
    tcpscape: str
    """Version of tcpscape."""
    source: str
    """Where the conditions come from."""
    engines: list[str]
    """The engines as they were named."""
    against: str | None
    """Recorded results that were B; null where an engine was."""
    a: SideDocument
    """The first side."""
    b: SideDocument
    """The second side, the reference."""
    all: DivergenceSummary
    """The divergence over all conditions."""
    families: dict[str, DivergenceSummary]
    """Family of conditions → its divergence."""
    queues: dict[str, DivergenceSummary]
    """Queue of the bottleneck → its divergence; of a chain of links `codel+bfifo`."""
    links: dict[str, DivergenceSummary]
    """Number of links of random topologies (`2 links`) → their divergence; empty without topologies."""
    ccas: dict[str, DivergenceSummary]
    """Congestion control → its divergence."""
    families_ccas: dict[str, DivergenceSummary]
    """Family and congestion control (`loss / bbr`) → its divergence."""
    ranks: Ranks | None
    """Whether both sides rank congestion controls alike; null where no path ran under several."""
    bounds: list[BoundCheckDocument]
    """The bounds of --check."""
    worst: list[str]
    """Ids of the conditions that are farthest apart, the worst first."""
    partings: dict[str, PartingDocument]
    """Id of a condition that was looked into → where the engines part."""
    left_out: dict[str, str]
    """Id of a condition that did not run → the reason."""
    caveats: list[str]
    """What limits the validity, a sentence each."""
    conditions: list[RunsDocument]
    """Every condition."""


def fixed(x: float, form: str = ".2f") -> str:
    """A number, or a dash where there is none."""
    return format(x, form) if math.isfinite(x) else "–"


def _of(share: float, n: int) -> str:
    return f"{percent(share)} of {n}" if n else "–"


def _summary_row(name: str, s: DivergenceSummary) -> tuple[str, ...]:
    return (
        name,
        str(s.n),
        f"{s.median:.3f} [{s.median_low:.3f}, {s.median_high:.3f}]",
        f"{s.p90:.3f} [{s.p90_low:.3f}, {s.p90_high:.3f}]",
        fixed(s.worst),
        fixed(s.bias, "+.3f"),
        f"{fixed(s.chance_median, '.3f')} / {fixed(s.chance_p90, '.3f')}",
        percent(s.overlap),
        _of(s.retransmit_share, s.retransmit_n),
        _of(s.rtt_share, s.rtt_n),
    )


def summary_table(divergences: Sequence[Divergence], bold: str = "**") -> Table:
    """The divergence by family (each mixture apart), by congestion control and over all."""
    by_family, by_mixture = groups(divergences, lambda c: c.family), groups(divergences, lambda c: c.combination)
    rows = []
    for family in FAMILIES:
        if family in by_family:
            rows.append(_summary_row(family, DivergenceSummary.of(by_family[family])))
            if family == MIXED and len(by_mixture.keys() & set(COMBINATIONS)) > 1:
                mixtures = [name for name in COMBINATIONS if name in by_mixture]
                rows += [_summary_row(f"– {name.split(', ')[1]}", DivergenceSummary.of(by_mixture[name])) for name in mixtures]
    alone = [c for c in divergences if not c.condition.shared]
    rows += [_summary_row(f"{bold}{cca}{bold}", DivergenceSummary.of(group)) for cca, group in sorted(groups(alone, lambda c: c.cca).items())]
    rows.append(_summary_row(f"{bold}all{bold}", DivergenceSummary.of(divergences)))
    return Table(SUMMARY_HEAD, rows)


def shared_table(divergences: Sequence[Divergence], bold: str = "**") -> Table | None:
    """Bottlenecks that groups of flows share, by queue, by congestion control (its own groups) and over all; None where there are none."""
    shared = [c for c in divergences if c.parts and not c.condition.is_topology]
    if not shared:
        return None
    rows = [_shared_row(queue, group) for queue, group in sorted(groups(shared, lambda c: c.queue).items())]
    for cca in sorted({f.cca for c in shared for f in c.condition.scenario.flows}):
        rows.append(_shared_row(f"{bold}{cca}{bold}", [c for c in shared if cca in c.condition.cca.split("+")], cca))
    rows.append(_shared_row(f"{bold}all{bold}", shared))
    head = ("shared by two groups", "n", "total: median", "p90", "groups", "each group: median", "p90", "worst", "larger share alike")
    return Table(head, rows)


def _shared_row(name: str, divergences: Sequence[Divergence], cca: str | None = None) -> tuple[str, ...]:
    s, parts = DivergenceSummary.of(divergences), parts_of(divergences, cca)
    return (
        name,
        str(s.n),
        f"{s.median:.3f}",
        f"{s.p90:.3f}",
        str(len(parts)),
        f"{quantile(parts, 0.5):.3f}",
        f"{quantile(parts, 0.9):.3f}",
        fixed(max(parts)),
        _of(s.larger_share, s.larger_n),
    )


def parts_of(divergences: Sequence[Divergence], cca: str | None = None) -> list[float]:
    """|ln ratio| of each group's goodput, those under one congestion control or all."""
    return [abs(x) for c in divergences for f, x in zip(c.condition.scenario.flows, c.parts, strict=False) if cca in (None, f.cca)]


def matrix_table(divergences: Sequence[Divergence]) -> Table:
    """Median and 90th percentile, family by congestion control."""
    divergences = [c for c in divergences if not c.condition.shared]
    ccas = sorted(groups(divergences, lambda c: c.cca))
    rows = []
    for family, group in sorted(groups(divergences, lambda c: c.family).items(), key=lambda item: FAMILIES.index(item[0])):
        per = {cca: DivergenceSummary.of(alone) for cca, alone in groups(group, lambda c: c.cca).items()}
        rows.append((family, *(f"{per[c].median:.3f} / {per[c].p90:.3f} ({per[c].n})" if c in per else "–" for c in ccas)))
    return Table(("median / p90 (n)", *ccas), rows)


def ranks_table(ranks: Ranks) -> Table:
    """Whether congestion controls are ranked alike."""
    rows = [
        ("paths", str(ranks.paths)),
        ("pairs of congestion controls decided alike", _of(ranks.alike, ranks.pairs)),
        ("of the pairs that B's runs decide", _of(ranks.decided_alike, ranks.decided)),
        ("pairs decided for opposite winners", str(ranks.opposed)),
        ("A's best is B's best, or within 10 % of it", _of(ranks.best, ranks.paths)),
        ("the same of a perfect model", percent(ranks.best_chance)),
        ("Kendall's tau, mean over paths", fixed(ranks.kendall)),
        ("Spearman's rho, mean over paths", fixed(ranks.spearman)),
    ]
    return Table(("rank agreement", ""), rows)


def checks_table(checked: Sequence[CheckedBound]) -> Table:
    """Bounds and the values that were reached."""
    return Table(("what", "bound", "reached", ""), [check_row(c) for c in checked])


def check_row(c: CheckedBound) -> tuple[str, str, str, str]:
    """The cells of a table row: title and group, bound, value reached, verdict."""
    name = c.bound.metric.name
    return f"{BOUND_TITLES.get(name, name)} ({c.group})", _bound(c), fixed(c.reached, ".3f"), "met" if c.met else "missed"


def _bound(c: CheckedBound) -> str:
    return f"{SIGNS.get(c.bound.op, c.bound.op)} {c.bound.number:g}"


def _goodput(e: Estimate) -> str:
    return number(e.value) if e.n < 2 else f"{number(e.value)} ({number(e.low)}–{number(e.high)})"


def worst_table(divergences: Sequence[Divergence], labels: tuple[str, str], notes: Mapping[str, str] | None = None) -> Table:
    """Conditions one by one; `notes` by id become a last column."""
    rows = []
    for c in divergences:
        a, b = c.medians_of("retransmits")
        row = (
            c.condition.id,
            c.condition.describe(),
            *(_goodput(g) for g in c.goodputs),
            f"{c.ln.value:+.2f}",
            fixed(c.unexplained),
            fixed(c.floor),
            f"{len(c.a)} / {len(c.b)}",
            f"{fixed(a, '.0f')} / {fixed(b, '.0f')}",
            fixed(c.rtt_ratio),
        )
        rows.append(row if notes is None else (*row, notes.get(c.condition.id, SCATTER if c.unexplained < SMALL else OPEN)))
    head = ("id", "condition", f"{labels[0]} Mbit/s", f"{labels[1]} Mbit/s", "ln ratio", "unexplained", "chance", "runs", "retransmits", "RTT ratio")
    return Table((*head, "found") if notes is not None else head, rows, left=2)


def write(validation: Validation, out: Path) -> None:
    """Writes the numbers of every condition, every run and the summary into `out`. :raises StoreError: one line, where a file cannot be written."""
    divergences = validation.result.divergences
    write_numbers(divergences, out / NUMBERS)
    by_side = {"a": {c.condition.id: c.a for c in divergences}, "b": {c.condition.id: c.b for c in divergences}}
    write_results(by_side, out / RESULTS)
    writing.whole(out / SUMMARY, json.dumps(document(validation), indent=1, allow_nan=False) + "\n")


def write_numbers(divergences: Sequence[Divergence], file: Path) -> None:
    """Every condition with its numbers, as CSV."""
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(CONDITIONS.names)
    for c in divergences:
        rows.writerow(["" if v is None else f"{v:.5g}" if isinstance(v, float) else v for v in numbers(c).values()])
    writing.whole(file, text.getvalue())


def numbers(c: Divergence) -> dict[str, Any]:
    """A condition's row; unknown values are None."""
    (a, b), condition = c.goodputs, c.condition
    values = (
        condition.id,
        condition.cca,
        condition.family,
        condition.combination,
        condition.describe(),
        a.value,
        a.low,
        a.high,
        b.value,
        b.low,
        b.high,
        c.ln.value,
        c.ln.low,
        c.ln.high,
        c.error,
        c.unexplained,
        c.at_most,
        c.floor,
        c.overlap,
        spread(c.a.goodput),
        spread(c.b.goodput),
        len(c.a),
        len(c.b),
        *c.medians_of("retransmits"),
        c.retransmit_factor,
        *c.medians_of("mean_rtt_ms"),
        c.rtt_ratio,
        c.min_rtt_ratio,
        condition.queue,
        ";".join(f"{x:.4f}" for x in c.parts) or None,
        c.larger,
        c.winner,
        ";".join("" if math.isnan(x) else f"{1 + x:.4f}" for x in c.latencies) or None,
    )
    return {k: _known(v) if isinstance(v, float) else v for k, v in zip(CONDITIONS.names, values, strict=True)}


def document(validation: Validation) -> dict[str, Any]:
    """The whole divergence: sides, summaries by group, ranks, bounds, worst conditions."""
    session, result, divergences = validation.session, validation.result, validation.result.divergences
    by_both = groups(divergences, lambda c: (c.family, c.cca))
    values = ValidationDocument(
        format=1,
        tcpscape=__version__,
        source=session.source,
        engines=list(session.engines),
        against=session.against,
        a=SideDocument(label=result.a.label, version=result.a.version),
        b=SideDocument(label=result.b.label, version=result.b.version),
        all=DivergenceSummary.of(divergences),
        families=_each(groups(divergences, lambda c: c.family), FAMILIES),
        queues=_each(groups(divergences, lambda c: c.queue)),
        links=_each(groups(topology_tables.drawn(divergences), lambda c: c.links)),
        ccas=_each(groups(divergences, lambda c: c.cca)),
        families_ccas=_each({f"{f} / {cca}": g for (f, cca), g in by_both.items()}),
        ranks=validation.ranks,
        bounds=[BoundCheckDocument(bound=_bound_text(c), group=c.group, reached=c.reached, met=c.met) for c in validation.checked],
        worst=[c.condition.id for c in worst(divergences, 10)],
        partings={e.divergence.condition.id: _parting(e.partings) for e in validation.explanations if e.partings},
        left_out=dict(result.left_out),
        caveats=result.caveats,
        conditions=[RunsDocument(id=c.condition.id, runs=(len(c.a), len(c.b))) for c in divergences],
    )
    return printed(ValidationDocument, values)


def _bound_text(c: CheckedBound) -> str:
    """`p90@loss ≤ 0.3`, as it was written."""
    return f"{c.bound.metric.name}{''.join(f'@{group}' for group in c.bound.chosen.values() if group != EVERYWHERE)} {_bound(c)}"


def _each(grouped: Mapping[str, Sequence[Divergence]], order: Sequence[str] = ()) -> dict[str, DivergenceSummary]:
    names = [n for n in order if n in grouped] or sorted(grouped)
    return {name: DivergenceSummary.of(grouped[name]) for name in names}


def _known(x: float) -> float | None:
    return None if math.isnan(x) else x


def _parting(partings: Partings) -> PartingDocument:
    rows = [PartingRow(quantity=p.quantity.column, t_s=round(p.t_s, 3), a=p.a, b=p.b, lasting=p.lasting) for p in partings.partings]
    first = partings.first.quantity.column if partings.first else None
    return PartingDocument(first=first, chance=partings.chance, exact=partings.exact, found=rows)
