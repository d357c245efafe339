"""What `tcpscape study` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tcpscape.cli import tables
from tcpscape.stats.estimate import number
from tcpscape.studies import Known
from tcpscape.studies.claims import Judged
from tcpscape.studies.run import Cell, Outcome

MARKS = {"reproduced": "[green]yes[/green]", "not reproduced": "[red]no[/red]", "not decidable": "[yellow]open[/yellow]"}


def parts(outcome: Outcome, judged: Sequence[Judged]) -> Iterator[Any]:
    """The table of cells, the claims, the caveats."""
    said = outcome.study
    yield f"[bold]{said.title}[/bold]\n{said.source}\n{said.about.strip()}"
    yield f"{outcome.trials} runs, engine {outcome.engine} {outcome.version}; application rates pooled as published; true Mbit/s\n"
    axis = "jitter ms" if said.axis == "jitter" else "loss %"
    columns = ("cca", "RTT ms", axis, "goodput Mbit/s: mean [95 %]", "kept", "CV", "published", "ours/it", "raw", "ours/it", "raw CV")
    yield tables.table(columns, [_row(outcome, c) for c in _by_cca(outcome)])
    yield "\n[bold]What the study claims[/bold]"
    yield tables.table(("ours say", "claim", "measured"), [(MARKS[j.verdict], j.claim.text, j.measured) for j in judged], left=3)
    count = {v: sum(j.verdict == v for j in judged) for v in MARKS}
    yield "\n" + ", ".join(f"{n} {verdict}" for verdict, n in count.items())
    for caveat in outcome.caveats:
        yield f"caveat: {caveat}"


def _by_cca(outcome: Outcome) -> list[Cell]:
    return [c for rtt in outcome.rtts() for cca in outcome.study.cca for c in outcome.curve(cca, rtt)]


def _row(outcome: Outcome, cell: Cell) -> tuple[str, ...]:
    mean = cell.mean
    return (
        cell.cca, f"{cell.key[1]:g}", f"{outcome.axis(cell):g}", mean.text(), tables.percent(outcome.retention(cell).value),
        tables.percent(cell.cv.value), *_beside(mean.value, cell.published), *_beside(mean.value, cell.raw),
        tables.percent(cell.raw.cv) if cell.raw else "",
    )


def _beside(ours: float, known: Known | None) -> tuple[str, str]:
    return (number(known.mbps), number(ours / known.mbps, 2 if ours < known.mbps else 3)) if known else ("", "")
