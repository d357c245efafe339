"""The page of a validation: its figures drawn, the divergence report in Markdown, and the files beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tcpscape import writing
from tcpscape.plots.validation import agreement, divergence, overlay
from tcpscape.text.table import Table, markdown_text
from tcpscape.validate.compare import worst
from tcpscape.validate.validation import REPORT, Explanation, Validation
from tcpscape.words import divergence as tables
from tcpscape.words import topologies as topology_tables

PICTURE = "divergence.png"
"""The figure of all conditions, beside the page."""
TOPOLOGIES_PICTURE = "topologies.png"
"""The figure of what groups get and probes measure on topologies."""
WORST_LISTED = 10
"""Worst conditions in the page's table."""


@dataclass(frozen=True)
class ValidationPage:
    """A page that was written."""

    file: Path
    pictures: Mapping[str, str]
    """Name of the overlay of each explained condition, beside the page, by the condition's id."""


def write(validation: Validation, out: Path) -> ValidationPage:
    """Draws the figures and writes the report, the numbers, every run and the summary into `out`.

    :raises StoreError: where `out` cannot be written.
    """
    result = validation.result
    pictures = _overlays(validation.explanations, out)
    divergence(result.divergences, (result.a.label, result.b.label), out / PICTURE)
    if topology_tables.drawn(result.divergences):
        agreement(topology_tables.drawn(result.divergences), (result.a.label, result.b.label), out / TOPOLOGIES_PICTURE)
    tables.write(validation, out)
    writing.whole(out / REPORT, page(validation, pictures))
    writing.clear(out)
    return ValidationPage(out / REPORT, pictures)


def write_explanation(validation: Validation, out: Path) -> ValidationPage:
    """Draws and writes the page of the one condition that was looked into, `explain-ID.md`. :raises StoreError: where `out` cannot be written."""
    (explanation,) = validation.explanations
    name = explanation.divergence.condition.id
    file = out / f"explain-{name}.md"
    pictures = _overlays([explanation], out)
    writing.whole(file, explained(explanation, pictures.get(name), "#"))
    return ValidationPage(file, pictures)


def page(validation: Validation, pictures: Mapping[str, str]) -> str:
    """The divergence report as Markdown; `pictures` are the overlays of conditions, by id: paths from the page."""
    result, divergences = validation.result, validation.result.divergences
    labels = (result.a.label, result.b.label)
    runs = [sum(len(r) for r in side) for side in ([d.a for d in divergences], [d.b for d in divergences])]
    parts = [
        f"# Divergence: {labels[0]} against {labels[1]}",
        f"A is {labels[0]} ({result.a.version}, {runs[0]} runs), B is {labels[1]} ({result.b.version}, {runs[1]} runs); "
        f"{len(divergences)} conditions: {markdown_text(validation.session.source)}.",
        tables.DEFINITIONS,
    ]
    parts += ["## Bounds", tables.checks_table(validation.checked).markdown()] if validation.checked else []
    parts += ["## By family and congestion control", f"![error by family]({PICTURE})"]
    parts += [tables.summary_table(divergences).markdown(), tables.matrix_table(divergences).markdown()]
    if table := topology_tables.table(divergences):
        parts += ["## Topologies", topology_tables.DEFINITIONS, f"![groups and delays]({TOPOLOGIES_PICTURE})", table.markdown()]
        parts += [topology_tables.worst_table(divergences, WORST_LISTED, labels).markdown()]
    if table := tables.shared_table(divergences):
        parts += ["## Shared bottlenecks", table.markdown()]
    parts += ["## Rank agreement", tables.ranks_table(validation.ranks).markdown()] if validation.ranks else []
    parts += ["## The worst conditions", tables.worst_table(worst(divergences, WORST_LISTED), labels).markdown()]
    parts += [explained(e, pictures.get(e.divergence.condition.id)) for e in validation.explanations]
    parts += _section("Left out", [f"{name}: {why}" for name, why in result.left_out])
    parts += _section("Caveats", result.caveats)
    return "\n\n".join(parts) + "\n"


def explained(explanation: Explanation, picture: str | None, heading: str = "###") -> str:
    """One condition as Markdown: its numbers, when the traces part, the counters, the picture."""
    d = explanation.divergence
    numbers = f"{d.condition.family}; ln ratio {d.ln.text()}, unexplained {d.unexplained:.2f}."
    parts = [f"{heading} {d.condition.id}: {markdown_text(d.condition.describe())}", numbers]
    if explanation.partings:
        partings = explanation.partings
        parts.append(partings.text)
        parts += ["\n".join(f"- {p.text}" for p in partings.partings)] if partings.partings else []
    parts += [f"![{d.condition.id}]({picture})"] if picture else []
    return "\n\n".join([*parts, Table(("", *explanation.labels), explanation.counters()).markdown()])


def _overlays(explanations: Sequence[Explanation], out: Path) -> dict[str, str]:
    """Draws the overlay of each explained condition that has traces; file names by id."""
    pictures = {}
    for e in explanations:
        bundles = [b for b in e.bundles if b]
        condition = e.divergence.condition
        if bundles:
            title = f"{condition.id}: {condition.describe()}"
            pictures[condition.id] = overlay(bundles, e.partings, title, out / f"overlay-{condition.id}.png")[0].name
    return pictures


def _section(title: str, lines: Sequence[str]) -> list[str]:
    """A section of lines; nothing for none."""
    if not lines:
        return []
    rest = [f"- … and {len(lines) - tables.MAX_LINES} more"] if len(lines) > tables.MAX_LINES else []
    return [f"## {title}", "\n".join([*(f"- {markdown_text(line)}" for line in lines[: tables.MAX_LINES]), *rest])]
