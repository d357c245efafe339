"""The tables of a divergence as plain rows of text, for the terminal and for Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tcpscape.stats import Estimate
from tcpscape.stats.estimate import number
from tcpscape.validate.checks import CheckedBound
from tcpscape.validate.compare import SMALL, Divergence, DivergenceSummary, groups, quantile
from tcpscape.validate.conditions import COMBINATIONS, FAMILIES, MIXED
from tcpscape.validate.ranks import Ranks

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


@dataclass(frozen=True)
class TextTable:
    """A head and rows of text; the first `left` columns are words, aligned to the left."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    left: int = 1

    def markdown(self) -> str:
        """As Markdown."""
        return markdown(self.head, self.rows)


def markdown(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table as Markdown."""
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


def _summary_row(name: str, s: DivergenceSummary) -> tuple[str, ...]:
    return (
        name, str(s.n), f"{s.median:.3f} [{s.median_low:.3f}, {s.median_high:.3f}]", f"{s.p90:.3f} [{s.p90_low:.3f}, {s.p90_high:.3f}]",
        fixed(s.worst), fixed(s.bias, "+.3f"), f"{fixed(s.chance_median, '.3f')} / {fixed(s.chance_p90, '.3f')}", percent(s.overlap),
        _of(s.retransmit_share, s.retransmit_n), _of(s.rtt_share, s.rtt_n),
    )  # fmt: skip


def summary_table(divergences: Sequence[Divergence], bold: str = "**") -> TextTable:
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
    return TextTable(SUMMARY_HEAD, rows)


def shared_table(divergences: Sequence[Divergence], bold: str = "**") -> TextTable | None:
    """Bottlenecks that groups of flows share, by queue, by congestion control (its own groups) and over all; None where there are none."""
    shared = [c for c in divergences if c.parts]
    if not shared:
        return None
    rows = [_shared_row(queue, group) for queue, group in sorted(groups(shared, lambda c: c.queue).items())]
    for cca in sorted({f.cca for c in shared for f in c.condition.scenario.flows}):
        rows.append(_shared_row(f"{bold}{cca}{bold}", [c for c in shared if cca in c.condition.cca.split("+")], cca))
    rows.append(_shared_row(f"{bold}all{bold}", shared))
    head = ("shared by two groups", "n", "total: median", "p90", "groups", "each group: median", "p90", "worst", "larger share alike")
    return TextTable(head, rows)


def _shared_row(name: str, divergences: Sequence[Divergence], cca: str | None = None) -> tuple[str, ...]:
    s, parts = DivergenceSummary.of(divergences), parts_of(divergences, cca)
    return (
        name, str(s.n), f"{s.median:.3f}", f"{s.p90:.3f}", str(len(parts)), f"{quantile(parts, 0.5):.3f}", f"{quantile(parts, 0.9):.3f}",
        fixed(max(parts)), _of(s.larger_share, s.larger_n),
    )  # fmt: skip


def parts_of(divergences: Sequence[Divergence], cca: str | None = None) -> list[float]:
    """|ln ratio| of each group's goodput, those under one congestion control or all."""
    return [abs(x) for c in divergences for f, x in zip(c.condition.scenario.flows, c.parts, strict=False) if cca in (None, f.cca)]


def queues_table(divergences: Sequence[Divergence], bold: str = "**") -> TextTable:
    """The divergence by queue discipline at the bottleneck."""
    by_queue = groups(divergences, lambda c: c.queue)
    rows = [_summary_row(f"{bold}{name}{bold}", DivergenceSummary.of(by_queue[name])) for name in sorted(by_queue)]
    return TextTable(("queue", *SUMMARY_HEAD[1:]), rows)


def matrix_table(divergences: Sequence[Divergence]) -> TextTable:
    """Median and 90th percentile, family by congestion control."""
    divergences = [c for c in divergences if not c.condition.shared]
    ccas = sorted(groups(divergences, lambda c: c.cca))
    rows = []
    for family, group in sorted(groups(divergences, lambda c: c.family).items(), key=lambda item: FAMILIES.index(item[0])):
        per = {cca: DivergenceSummary.of(alone) for cca, alone in groups(group, lambda c: c.cca).items()}
        rows.append((family, *(f"{per[c].median:.3f} / {per[c].p90:.3f} ({per[c].n})" if c in per else "–" for c in ccas)))
    return TextTable(("median / p90 (n)", *ccas), rows)


def ranks_table(ranks: Ranks) -> TextTable:
    """Whether congestion controls are ranked alike."""
    rows = [
        ("paths", str(ranks.paths)), ("pairs of congestion controls decided alike", _of(ranks.alike, ranks.pairs)),
        ("of the pairs that B's runs decide", _of(ranks.decided_alike, ranks.decided)), ("pairs decided for opposite winners", str(ranks.opposed)),
        ("A's best is B's best, or within 10 % of it", _of(ranks.best, ranks.paths)), ("the same of a perfect model", percent(ranks.best_chance)),
        ("Kendall's tau, mean over paths", fixed(ranks.kendall)), ("Spearman's rho, mean over paths", fixed(ranks.spearman)),
    ]  # fmt: skip
    return TextTable(("rank agreement", ""), rows)


def checks_table(checked: Sequence[CheckedBound]) -> TextTable:
    """Bounds and the values that were reached."""
    return TextTable(("what", "bound", "reached", ""), [c.line() for c in checked])


def _goodput(e: Estimate) -> str:
    return number(e.value) if e.n < 2 else f"{number(e.value)} ({number(e.low)}–{number(e.high)})"


def worst_table(divergences: Sequence[Divergence], labels: tuple[str, str], notes: Mapping[str, str] | None = None) -> TextTable:
    """Conditions one by one; `notes` by id become a last column."""
    rows = []
    for c in divergences:
        a, b = c.medians_of("retransmits")
        row = (
            c.condition.id, c.condition.describe(), *(_goodput(g) for g in c.goodputs), f"{c.ln.value:+.2f}", fixed(c.unexplained), fixed(c.floor),
            f"{len(c.a)} / {len(c.b)}", f"{fixed(a, '.0f')} / {fixed(b, '.0f')}", fixed(c.rtt_ratio),
        )  # fmt: skip
        rows.append(row if notes is None else (*row, notes.get(c.condition.id, SCATTER if c.unexplained < SMALL else OPEN)))
    head = ("id", "condition", f"{labels[0]} Mbit/s", f"{labels[1]} Mbit/s", "ln ratio", "unexplained", "chance", "runs", "retransmits", "RTT ratio")
    return TextTable((*head, "found") if notes is not None else head, rows, left=2)
