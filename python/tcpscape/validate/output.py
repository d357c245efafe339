"""What a validation leaves in its directory: the report, the numbers of every condition, every run, a machine's summary, the figures."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpscape import __version__
from tcpscape.errors import StoreError
from tcpscape.validate import conditions, recorded, report
from tcpscape.validate.checks import Bound, judge
from tcpscape.validate.compare import Comparison, Summary, groups, spread, worst
from tcpscape.validate.conditions import FAMILIES, Condition
from tcpscape.validate.explain import Explanation, explain
from tcpscape.validate.parting import Partings
from tcpscape.validate.ranks import ranks
from tcpscape.validate.report import Said
from tcpscape.validate.rounds import Outcome, quiet, run
from tcpscape.validate.session import CONDITIONS, NUMBERS, REPORT, RESULTS, SUMMARY, Session
from tcpscape.validate.sides import Say

HEAD = (
    "id", "cca", "family", "combination", "condition", "a_mbps", "a_low", "a_high", "b_mbps", "b_low", "b_high", "ln_ratio", "ln_low", "ln_high",
    "error", "unexplained", "at_most", "chance", "overlap", "a_cv", "b_cv", "a_runs", "b_runs", "a_retransmits", "b_retransmits",
    "retransmit_factor", "a_rtt_ms", "b_rtt_ms", "rtt_ratio", "min_rtt_ratio", "queue", "group_ln_ratios", "larger_alike",
)  # fmt: skip
"""Columns of the table of conditions."""


@dataclass(frozen=True)
class Finished:
    """A validation that is done, with everything that is said about it."""

    session: Session
    outcome: Outcome
    said: Said


def complete(session: Session, bounds: Sequence[Bound], k: int, out: Path, say: Say = quiet) -> Finished:
    """Runs the validation, judges it, looks into the `k` worst conditions and draws them."""
    begin(out, session.request.conditions)
    outcome = run(session.request, say)
    checked = judge(bounds, outcome.comparisons)
    explained = [explain(outcome, c, say) for c in worst(outcome.comparisons, k) if c.error > 0] if outcome.b.endless else []
    said = Said(session.source, checked, ranks(outcome.comparisons), explained, draw(explained, out))
    distributions(outcome, out)
    return Finished(session, outcome, said)


def distributions(outcome: Outcome, out: Path) -> None:
    """The picture of all conditions, beside the report."""
    from tcpscape.plots.divergence import divergence

    divergence(outcome.comparisons, (outcome.a.label, outcome.b.label), out / report.PICTURE)


def look_into(session: Session, id: str, out: Path, say: Say = quiet) -> Finished:
    """One condition of a validation again, with traces and counters; its page is `explain-ID.md`."""
    outcome = run(session.request, say)
    explained = [explain(outcome, outcome.find(id), say)]
    finished = Finished(session, outcome, Said(session.source, explained=explained, pictures=draw(explained, out)))
    try:
        (out / f"explain-{id}.md").write_text(report.explained(explained[0], finished.said.pictures.get(id), "#"), "utf-8")
    except OSError as e:
        raise StoreError(f"out: cannot write {e.filename}: {e.strerror}; choose another directory") from None
    return finished


def begin(out: Path, listed: Sequence[Condition]) -> None:
    """Keeps the conditions, so that the validation can be resumed and looked into."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        conditions.write(listed, out / CONDITIONS)
    except OSError as e:
        raise StoreError(f"out: cannot write to {out}: {e.strerror}; choose another directory") from None


def draw(explained: Sequence[Explanation], out: Path) -> dict[str, str]:
    """The overlay of each explained condition that has traces: file names by id."""
    from tcpscape.plots.overlay import overlay

    pictures = {}
    for e in explained:
        bundles = [b for b in e.bundles if b]
        c = e.comparison.condition
        if bundles:
            pictures[c.id] = overlay(bundles, e.partings, f"{c.id}: {c.describe()}", out / f"overlay-{c.id}.png")[0].name
    return pictures


def write(finished: Finished, out: Path) -> Path:
    """Writes everything but the figures; returns the report."""
    outcome = finished.outcome
    try:
        write_numbers(outcome.comparisons, out / NUMBERS)
        by_side = {"a": {c.condition.id: c.a for c in outcome.comparisons}, "b": {c.condition.id: c.b for c in outcome.comparisons}}
        recorded.write_results(by_side, out / RESULTS)
        (out / SUMMARY).write_text(json.dumps(summary(finished), indent=1, allow_nan=False) + "\n", "utf-8")
        (out / REPORT).write_text(report.page(outcome, finished.said), "utf-8")
    except OSError as e:
        raise StoreError(f"out: cannot write {e.filename}: {e.strerror}; choose another directory") from None
    return out / REPORT


def write_numbers(comparisons: Sequence[Comparison], file: Path) -> None:
    """Every condition with its numbers, as CSV."""
    with open(file, "w", newline="", encoding="utf-8") as f:
        rows = csv.writer(f, lineterminator="\n")
        rows.writerow(HEAD)
        for c in comparisons:
            rows.writerow(["" if v is None else f"{v:.5g}" if isinstance(v, float) else v for v in numbers(c).values()])


def numbers(c: Comparison) -> dict[str, Any]:
    """A condition's row; what is unknown is None."""
    (a, b), words = c.goodputs, c.condition
    values = (
        words.id, words.cca, words.family, words.combination, words.describe(), a.value, a.low, a.high, b.value, b.low, b.high, c.ln.value, c.ln.low,
        c.ln.high, c.error, c.unexplained, c.at_most, c.floor, c.overlap, spread(c.a.goodput), spread(c.b.goodput), len(c.a), len(c.b),
        *c.medians_of("retransmits"), c.retransmit_factor, *c.medians_of("mean_rtt_ms"), c.rtt_ratio, c.min_rtt_ratio,
        words.queue, ";".join(f"{x:.4f}" for x in c.parts) or None, c.larger,
    )  # fmt: skip
    return {k: _known(v) if isinstance(v, float) else v for k, v in zip(HEAD, values, strict=True)}


def summary(finished: Finished) -> dict[str, Any]:
    """The whole divergence for a machine: sides, summaries by group, ranks, bounds, worst conditions."""
    outcome, said, session = finished.outcome, finished.said, finished.session
    some = outcome.comparisons
    by_both = groups(some, lambda c: (c.family, c.cca))
    return {
        "tcpscape": __version__, "source": said.source, "engines": list(session.specs), "against": session.against,
        "a": {"label": outcome.a.label, "version": outcome.a.version}, "b": {"label": outcome.b.label, "version": outcome.b.version},
        "all": Summary.of(some).to_dict(), "families": _each(groups(some, lambda c: c.family), FAMILIES),
        "queues": _each(groups(some, lambda c: c.queue)),
        "ccas": _each(groups(some, lambda c: c.cca)), "families_ccas": _each({f"{f} / {cca}": g for (f, cca), g in by_both.items()}),
        "ranks": said.ranks.to_dict() if said.ranks else None,
        "bounds": [{"bound": c.bound.text, "group": c.group, "reached": _known(c.reached), "met": c.met} for c in said.checked],
        "worst": [c.condition.id for c in worst(some, 10)],
        "partings": {e.comparison.condition.id: _parting(e.partings) for e in said.explained if e.partings},
        "left_out": dict(outcome.left_out), "caveats": outcome.caveats,
        "conditions": [{"id": c.condition.id, "runs": [len(c.a), len(c.b)]} for c in some],
    }  # fmt: skip


def _each(grouped: Mapping[str, Sequence[Comparison]], order: Sequence[str] = ()) -> dict[str, Any]:
    names = [n for n in order if n in grouped] or sorted(grouped)
    return {name: Summary.of(grouped[name]).to_dict() for name in names}


def _known(x: float) -> float | None:
    return None if math.isnan(x) else x


def _parting(said: Partings) -> dict[str, Any]:
    found = [{"quantity": p.quantity.column, "t_s": round(p.t_s, 3), "a": p.a, "b": p.b, "lasting": p.lasting} for p in said.found]
    return {"first": said.first.quantity.column if said.first else None, "chance": said.chance, "exact": said.exact, "found": found}
