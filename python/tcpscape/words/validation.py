"""The screens of a validation: how far two engines are apart, over all conditions and on one of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tcpscape.text.numbers import percent
from tcpscape.text.screen import Screen
from tcpscape.text.table import Table
from tcpscape.validate.compare import CheckedBound, DivergenceSummary, worst
from tcpscape.validate.validation import Explanation, Validation
from tcpscape.words import divergence as tables
from tcpscape.words import topologies as topology_tables

WORST_SHOWN = 10
"""Worst conditions among the details."""
A_FACTOR = 0.2
"""|ln ratio| from which a factor is easier to read than a share."""
SUMMARY_DROP = ("mean RTT", "retransmits", "overlap", "bias", "worst", "chance", "p90")
"""Columns of the summary that a narrow screen leaves out, the first one first."""
SHARED_DROP = ("larger share alike", "worst", "groups")
"""Those of shared bottlenecks."""
WORST_DROP = ("RTT ratio", "retransmits", "runs", "chance", "unexplained")
"""Those of the worst conditions."""


def validation_screen(validation: Validation) -> Screen:
    """The screen of a validation of many conditions."""
    result, source = validation.result, validation.session.source
    count = f"{len(result.divergences)} conditions"
    left_out = [f"{name} is left out: {why}" for name, why in result.left_out]
    return Screen(
        f"{result.a.label} (A) against {result.b.label} (B): {source if source.startswith(count) else f'{count}, {source}'}",
        validation_answer(validation),
        remarks=tuple(_worst(validation)),
        tables=tuple(_tables(validation)),
        details=tuple(_details(validation)),
        caveats=(*result.caveats, *left_out),
    )


def _tables(validation: Validation) -> Iterator[Table]:
    """Bounds, the divergence by family and congestion control, that of shared bottlenecks, ranks."""
    divergences = validation.result.divergences
    if validation.checked:
        yield tables.checks_table(validation.checked)
    yield replace(tables.summary_table(divergences, bold=""), title="|ln ratio| of the median goodputs", drop=SUMMARY_DROP)
    if topologies := topology_tables.table(divergences, bold=""):
        yield replace(topologies, drop=topology_tables.DROP)
    if shared := tables.shared_table(divergences, bold=""):
        yield replace(shared, drop=SHARED_DROP)
    if validation.ranks:
        yield tables.ranks_table(validation.ranks)


def _details(validation: Validation) -> Iterator[Table | str]:
    """The worst conditions, when the traces of some part, and what the numbers mean."""
    result = validation.result
    table = tables.worst_table(worst(result.divergences, WORST_SHOWN), (result.a.label, result.b.label))
    yield replace(table, title="The worst conditions, by the error that scatter does not explain", drop=WORST_DROP, words=("condition",))
    if topology_tables.drawn(result.divergences):
        farthest = topology_tables.worst_table(result.divergences, WORST_SHOWN, (result.a.label, result.b.label))
        yield replace(farthest, title="The worst topologies", drop=topology_tables.WORST_DROP, words=("topology",))
    yield from (f"{e.divergence.condition.id}: {e.partings.text}" for e in validation.explanations if e.partings)
    yield tables.DEFINITIONS.replace("\n", " ")
    if topology_tables.drawn(result.divergences):
        yield topology_tables.DEFINITIONS.replace("\n", " ")


def validation_answer(validation: Validation) -> str:
    """How far the engines are apart, how much of it the runs' scatter does not explain, and whether the bounds hold."""
    a, b = validation.result.a.label, validation.result.b.label
    if topologies := topology_tables.answer(validation.result.divergences, a, b):
        return topologies + _bounds(validation.checked)
    s = DivergenceSummary.of(validation.result.divergences)
    apart, unexplained, chance = (
        f"{apart_text(median)} ({apart_text(p90)})" for median, p90 in ((s.median, s.p90), (s.median_low, s.p90_low), (s.chance_median, s.chance_p90))
    )
    equal = "" if math.isnan(s.chance_median) else f"; two equal engines: {chance}"
    return (
        f"{a} and {b} are {apart} apart in goodput at the median (90th percentile) condition; "
        f"scatter leaves {unexplained} unexplained{equal}.{_bounds(validation.checked)}"
    )


def apart_text(ln: float) -> str:
    """An |ln ratio| in words: `4.1 %`, `a factor 1.37`."""
    if math.isnan(ln):
        return "an unknown share"
    return f"a factor {math.exp(ln):.2f}" if ln >= A_FACTOR else percent(math.expm1(ln), 1)


def _bounds(checked: Sequence[CheckedBound]) -> str:
    """Whether the bounds of `--check` hold."""
    if not checked:
        return ""
    missed = sum(not c.met for c in checked)
    return f" {missed} of {len(checked)} bounds missed." if missed else " Every bound is met."


def _worst(validation: Validation) -> Iterator[str]:
    """The condition with the largest unexplained error, in a sentence."""
    for c in worst(validation.result.divergences, 1):
        told = topology_tables.apart(c) if c.condition.is_topology else f"ln ratio {c.ln.text(2)}"
        yield f"Worst: {c.condition.id} ({c.condition.describe()}), {told}."


def explanation_screen(e: Explanation) -> Screen:
    """The screen of one condition: when the traces part, and the counters of both sides."""
    c = e.divergence
    details = [f"{p.text}" for p in e.partings.partings] if e.partings else []
    ln = f"ln ratio {c.ln.text()}, of which {c.unexplained:.2f} is not explained by scatter; {len(c.a)} and {len(c.b)} runs"
    answer = e.partings.text if e.partings else f"No traces of both sides; {ln}."
    return Screen(
        f"{c.condition.id}: {c.condition.describe()} ({c.condition.family})",
        answer,
        remarks=(f"{ln}.",) if e.partings else (),
        tables=(Table(("", *e.labels), e.counters()),),
        details=details,
    )
