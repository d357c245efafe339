"""The tables of a validation for machines: every condition's numbers and every run as CSV, a summary as JSON."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tcpscape import __version__
from tcpscape.validate import recorded
from tcpscape.validate.compare import Divergence, DivergenceSummary, groups, spread, worst
from tcpscape.validate.conditions import FAMILIES
from tcpscape.validate.parting import Partings
from tcpscape.validate.session import NUMBERS, RESULTS, SUMMARY
from tcpscape.validate.validation import Validation

HEAD = (
    "id", "cca", "family", "combination", "condition", "a_mbps", "a_low", "a_high", "b_mbps", "b_low", "b_high", "ln_ratio", "ln_low", "ln_high",
    "error", "unexplained", "at_most", "chance", "overlap", "a_cv", "b_cv", "a_runs", "b_runs", "a_retransmits", "b_retransmits",
    "retransmit_factor", "a_rtt_ms", "b_rtt_ms", "rtt_ratio", "min_rtt_ratio", "queue", "group_ln_ratios", "larger_alike",
)  # fmt: skip
"""Columns of the table of conditions."""


def write(validation: Validation, out: Path) -> None:
    """Writes the numbers of every condition, every run and the summary into `out`.

    :raises OSError: where a file cannot be written.
    """
    divergences = validation.result.divergences
    write_numbers(divergences, out / NUMBERS)
    by_side = {"a": {c.condition.id: c.a for c in divergences}, "b": {c.condition.id: c.b for c in divergences}}
    recorded.write_results(by_side, out / RESULTS)
    (out / SUMMARY).write_text(json.dumps(summary(validation), indent=1, allow_nan=False) + "\n", "utf-8")


def write_numbers(divergences: Sequence[Divergence], file: Path) -> None:
    """Every condition with its numbers, as CSV."""
    with open(file, "w", newline="", encoding="utf-8") as f:
        rows = csv.writer(f, lineterminator="\n")
        rows.writerow(HEAD)
        for c in divergences:
            rows.writerow(["" if v is None else f"{v:.5g}" if isinstance(v, float) else v for v in numbers(c).values()])


def numbers(c: Divergence) -> dict[str, Any]:
    """A condition's row; unknown values are None."""
    (a, b), condition = c.goodputs, c.condition
    values = (
        condition.id, condition.cca, condition.family, condition.combination, condition.describe(),
        a.value, a.low, a.high, b.value, b.low, b.high, c.ln.value, c.ln.low, c.ln.high, c.error, c.unexplained, c.at_most, c.floor, c.overlap,
        spread(c.a.goodput), spread(c.b.goodput), len(c.a), len(c.b),
        *c.medians_of("retransmits"), c.retransmit_factor, *c.medians_of("mean_rtt_ms"), c.rtt_ratio, c.min_rtt_ratio,
        condition.queue, ";".join(f"{x:.4f}" for x in c.parts) or None, c.larger,
    )  # fmt: skip
    return {k: _known(v) if isinstance(v, float) else v for k, v in zip(HEAD, values, strict=True)}


def summary(validation: Validation) -> dict[str, Any]:
    """The whole divergence as plain values: sides, summaries by group, ranks, bounds, worst conditions."""
    session, result, divergences = validation.session, validation.result, validation.result.divergences
    by_both = groups(divergences, lambda c: (c.family, c.cca))
    return {
        "tcpscape": __version__, "source": session.source, "engines": list(session.engines), "against": session.against,
        "a": {"label": result.a.label, "version": result.a.version}, "b": {"label": result.b.label, "version": result.b.version},
        "all": DivergenceSummary.of(divergences).to_dict(), "families": _each(groups(divergences, lambda c: c.family), FAMILIES),
        "queues": _each(groups(divergences, lambda c: c.queue)),
        "ccas": _each(groups(divergences, lambda c: c.cca)), "families_ccas": _each({f"{f} / {cca}": g for (f, cca), g in by_both.items()}),
        "ranks": validation.ranks.to_dict() if validation.ranks else None,
        "bounds": [{"bound": c.bound.text, "group": c.group, "reached": _known(c.reached), "met": c.met} for c in validation.checked],
        "worst": [c.condition.id for c in worst(divergences, 10)],
        "partings": {e.divergence.condition.id: _parting(e.partings) for e in validation.explanations if e.partings},
        "left_out": dict(result.left_out), "caveats": result.caveats,
        "conditions": [{"id": c.condition.id, "runs": [len(c.a), len(c.b)]} for c in divergences],
    }  # fmt: skip


def _each(grouped: Mapping[str, Sequence[Divergence]], order: Sequence[str] = ()) -> dict[str, Any]:
    names = [n for n in order if n in grouped] or sorted(grouped)
    return {name: DivergenceSummary.of(grouped[name]).to_dict() for name in names}


def _known(x: float) -> float | None:
    return None if math.isnan(x) else x


def _parting(partings: Partings) -> dict[str, Any]:
    rows = [{"quantity": p.quantity.column, "t_s": round(p.t_s, 3), "a": p.a, "b": p.b, "lasting": p.lasting} for p in partings.partings]
    first = partings.first.quantity.column if partings.first else None
    return {"first": first, "chance": partings.chance, "exact": partings.exact, "found": rows}
