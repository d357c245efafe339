"""The divergence report: tables as plain rows, for the terminal and for Markdown, and the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tcpscape.stats import Estimate
from tcpscape.stats.estimate import number
from tcpscape.validate.checks import Checked
from tcpscape.validate.compare import SMALL, Comparison, Summary, groups, quantile, worst
from tcpscape.validate.conditions import COMBINATIONS, FAMILIES, MIXED
from tcpscape.validate.explain import Explanation
from tcpscape.validate.ranks import Ranks
from tcpscape.validate.rounds import Outcome

PICTURE = "divergence.png"
"""The figure of all conditions, beside the page."""
MAX_LINES = 20
"""Conditions that could not run, and caveats, listed one by one up to so many."""

SUMMARY_HEAD = ("conditions", "n", "median", "p90", "worst", "bias", "chance", "overlap", "retransmits", "mean RTT")
SCATTER, OPEN = "within the runs' scatter", "not explained yet"
"""What is said of a condition that nobody looked into."""
DEFINITIONS = """\
The error of a condition is |ln(median goodput of A / median goodput of B)|: 0.05 is 5 %, 0.2 a factor 1.22. Its ln ratio has a 95 %
interval (bootstrap of both medians). In brackets behind a median or 90th percentile: every condition at the end of its interval nearest
to zero (the *unexplained* error, that the runs' own scatter does not excuse), and at its far end. *Chance* (median / p90) is what a
perfect model would show with as many runs, drawn from B's own. *Overlap* is the share of conditions in which the intervals of the two
medians overlap or are less than 1 % apart. The *bias* is the median of the signed ln ratio, positive where A is faster. *Retransmits*:
the share of conditions in which they agree within a factor of 1.5, of those in which B has more than 20; *mean RTT*: within 5 %, of
those in which both are known (the smoothed RTT, sampled). Intervals stand on the runs there are: with three runs a side they cover the
truth in 90 % of cases, from five on in 95 %."""


@dataclass(frozen=True)
class Table:
    """A head and rows of text; the first `left` columns are words."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    left: int = 1

    def markdown(self) -> str:
        """As Markdown."""
        return markdown(self.head, self.rows)


def markdown(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(_cell(h) for h in head) + " |", "|" + "|".join("---" for _ in head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(_cell(x) for x in row) + " |" for row in rows])


def _cell(x: object) -> str:
    return str(x).replace("|", "\\|").replace("\\\\|", "\\|")


def fixed(x: float, form: str = ".2f") -> str:
    """A number, or a dash where there is none."""
    return format(x, form) if math.isfinite(x) else "–"


def percent(x: float) -> str:
    """A share as a percentage."""
    return "–" if math.isnan(x) else f"{100 * x:.0f} %"


def _of(share: float, n: int) -> str:
    return f"{percent(share)} of {n}" if n else "–"


def _summary_row(name: str, s: Summary) -> tuple[str, ...]:
    return (
        name, str(s.n), f"{s.median:.3f} [{s.median_low:.3f}, {s.median_high:.3f}]", f"{s.p90:.3f} [{s.p90_low:.3f}, {s.p90_high:.3f}]",
        fixed(s.worst), fixed(s.bias, "+.3f"), f"{fixed(s.chance_median, '.3f')} / {fixed(s.chance_p90, '.3f')}", percent(s.overlap),
        _of(s.retransmit_share, s.retransmit_n), _of(s.rtt_share, s.rtt_n),
    )  # fmt: skip


def summary_table(comparisons: Sequence[Comparison], bold: str = "**") -> Table:
    """The divergence by family (its mixtures told apart), by congestion control and over all."""
    by_family, by_mixture = groups(comparisons, lambda c: c.family), groups(comparisons, lambda c: c.combination)
    rows = []
    for family in FAMILIES:
        if family in by_family:
            rows.append(_summary_row(family, Summary.of(by_family[family])))
            if family == MIXED and len(by_mixture.keys() & set(COMBINATIONS)) > 1:
                rows += [_summary_row(f"– {name.split(', ')[1]}", Summary.of(by_mixture[name])) for name in COMBINATIONS if name in by_mixture]
    alone = [c for c in comparisons if not c.condition.shared]
    rows += [_summary_row(f"{bold}{cca}{bold}", Summary.of(group)) for cca, group in sorted(groups(alone, lambda c: c.cca).items())]
    rows.append(_summary_row(f"{bold}all{bold}", Summary.of(comparisons)))
    return Table(SUMMARY_HEAD, rows)


def shared_table(comparisons: Sequence[Comparison], bold: str = "**") -> Table | None:
    """Bottlenecks that groups of flows share, by queue, by congestion control (its own groups) and over all; None where there are none."""
    some = [c for c in comparisons if c.parts]
    if not some:
        return None
    rows = [_shared_row(queue, group) for queue, group in sorted(groups(some, lambda c: c.queue).items())]
    for cca in sorted({f.cca for c in some for f in c.condition.scenario.flows}):
        rows.append(_shared_row(f"{bold}{cca}{bold}", [c for c in some if cca in c.condition.cca.split("+")], cca))
    rows.append(_shared_row(f"{bold}all{bold}", some))
    return Table(("shared by two groups", "n", "total: median", "p90", "groups", "each group: median", "p90", "worst", "larger share alike"), rows)


def _shared_row(name: str, some: Sequence[Comparison], cca: str | None = None) -> tuple[str, ...]:
    s, parts = Summary.of(some), parts_of(some, cca)
    return (
        name, str(s.n), f"{s.median:.3f}", f"{s.p90:.3f}", str(len(parts)), f"{quantile(parts, 0.5):.3f}", f"{quantile(parts, 0.9):.3f}",
        fixed(max(parts)), _of(s.larger_share, s.larger_n),
    )  # fmt: skip


def parts_of(some: Sequence[Comparison], cca: str | None = None) -> list[float]:
    """|ln ratio| of each group's goodput, those under one congestion control or all."""
    return [abs(x) for c in some for f, x in zip(c.condition.scenario.flows, c.parts, strict=False) if cca in (None, f.cca)]


def queues_table(comparisons: Sequence[Comparison], bold: str = "**") -> Table:
    """The divergence by queue discipline at the bottleneck."""
    by_queue = groups(comparisons, lambda c: c.queue)
    rows = [_summary_row(f"{bold}{name}{bold}", Summary.of(by_queue[name])) for name in sorted(by_queue)]
    return Table(("queue", *SUMMARY_HEAD[1:]), rows)


def matrix_table(comparisons: Sequence[Comparison]) -> Table:
    """Median and 90th percentile, family by congestion control."""
    comparisons = [c for c in comparisons if not c.condition.shared]
    ccas = sorted(groups(comparisons, lambda c: c.cca))
    rows = []
    for family, group in sorted(groups(comparisons, lambda c: c.family).items(), key=lambda item: FAMILIES.index(item[0])):
        per = {cca: Summary.of(some) for cca, some in groups(group, lambda c: c.cca).items()}
        rows.append((family, *(f"{per[c].median:.3f} / {per[c].p90:.3f} ({per[c].n})" if c in per else "–" for c in ccas)))
    return Table(("median / p90 (n)", *ccas), rows)


def ranks_table(found: Ranks) -> Table:
    """Whether congestion controls are ranked alike."""
    rows = [
        ("paths", str(found.paths)), ("pairs of congestion controls decided alike", _of(found.alike, found.pairs)),
        ("of the pairs that B's runs decide", _of(found.decided_alike, found.decided)), ("pairs decided for opposite winners", str(found.opposed)),
        ("A's best is B's best, or within 10 % of it", _of(found.best, found.paths)), ("the same of a perfect model", percent(found.best_chance)),
        ("Kendall's tau, mean over paths", fixed(found.kendall)), ("Spearman's rho, mean over paths", fixed(found.spearman)),
    ]  # fmt: skip
    return Table(("rank agreement", ""), rows)


def checks_table(checked: Sequence[Checked]) -> Table:
    """Bounds and what was reached."""
    return Table(("what", "bound", "reached", ""), [c.line() for c in checked])


def _goodput(e: Estimate) -> str:
    return number(e.value) if e.n < 2 else f"{number(e.value)} ({number(e.low)}–{number(e.high)})"


def worst_table(some: Sequence[Comparison], labels: tuple[str, str], notes: Mapping[str, str] | None = None) -> Table:
    """Conditions one by one; `notes` by id become a last column."""
    rows = []
    for c in some:
        a, b = c.medians_of("retransmits")
        row = (
            c.condition.id, c.condition.describe(), *(_goodput(g) for g in c.goodputs), f"{c.ln.value:+.2f}", fixed(c.unexplained), fixed(c.floor),
            f"{len(c.a)} / {len(c.b)}", f"{fixed(a, '.0f')} / {fixed(b, '.0f')}", fixed(c.rtt_ratio),
        )  # fmt: skip
        rows.append(row if notes is None else (*row, notes.get(c.condition.id, SCATTER if c.unexplained < SMALL else OPEN)))
    head = ("id", "condition", f"{labels[0]} Mbit/s", f"{labels[1]} Mbit/s", "ln ratio", "unexplained", "chance", "runs", "retransmits", "RTT ratio")
    return Table((*head, "found") if notes is not None else head, rows, left=2)


@dataclass(frozen=True)
class Said:
    """What a page is made of besides the outcome."""

    source: str
    """Where the conditions are from."""
    checked: Sequence[Checked] = ()
    ranks: Ranks | None = None
    explained: Sequence[Explanation] = ()
    pictures: Mapping[str, str] = field(default_factory=dict)
    """Figure of a condition, by its id: a path from the page."""


def page(outcome: Outcome, said: Said) -> str:
    """The divergence report as Markdown."""
    labels = (outcome.a.label, outcome.b.label)
    runs = [sum(len(r) for r in side) for side in ([c.a for c in outcome.comparisons], [c.b for c in outcome.comparisons])]
    parts = [
        f"# Divergence: {labels[0]} against {labels[1]}",
        f"A is {labels[0]} ({outcome.a.version}, {runs[0]} runs), B is {labels[1]} ({outcome.b.version}, {runs[1]} runs); "
        f"{len(outcome.comparisons)} conditions: {said.source}.",
        DEFINITIONS,
    ]
    parts += ["## Bounds", checks_table(said.checked).markdown()] if said.checked else []
    parts += ["## By family and congestion control", f"![error by family]({PICTURE})"]
    parts += [summary_table(outcome.comparisons).markdown(), matrix_table(outcome.comparisons).markdown()]
    if table := shared_table(outcome.comparisons):
        parts += ["## Shared bottlenecks", table.markdown()]
    parts += ["## Rank agreement", ranks_table(said.ranks).markdown()] if said.ranks else []
    parts += ["## The worst conditions", worst_table(worst(outcome.comparisons, 10), labels).markdown()]
    parts += [explained(e, said.pictures.get(e.comparison.condition.id)) for e in said.explained]
    parts += _listed("Left out", [f"{id}: {why}" for id, why in outcome.left_out])
    parts += _listed("Caveats", outcome.caveats)
    return "\n\n".join(parts) + "\n"


def _listed(title: str, lines: Sequence[str]) -> list[str]:
    """A section of lines; nothing for none."""
    if not lines:
        return []
    more = [f"- … and {len(lines) - MAX_LINES} more"] if len(lines) > MAX_LINES else []
    return [f"## {title}", "\n".join([*(f"- {line}" for line in lines[:MAX_LINES]), *more])]


def explained(e: Explanation, picture: str | None, heading: str = "###") -> str:
    """One condition: its numbers, when the traces part, the counters, the picture."""
    c = e.comparison
    numbers = f"{c.condition.family}; ln ratio {c.ln.text()}, unexplained {c.unexplained:.2f}."
    parts = [f"{heading} {c.condition.id}: {c.condition.describe()}", numbers]
    if e.partings:
        parts.append(e.partings.text)
        parts += ["\n".join(f"- {p.text}" for p in e.partings.found)] if e.partings.found else []
    parts += [f"![{c.condition.id}]({picture})"] if picture else []
    return "\n\n".join([*parts, Table(("", *e.labels), e.counters()).markdown()])
