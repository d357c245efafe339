"""What `tcpscape study` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tcpscape.cli import tables
from tcpscape.stats.estimate import number
from tcpscape.studies import Known, Study
from tcpscape.studies.against import Contrast, Pair
from tcpscape.studies.claims import Judged
from tcpscape.studies.run import Cell, Outcome

MARKS = {"reproduced": "[green]yes[/green]", "not reproduced": "[red]no[/red]", "not decidable": "[yellow]open[/yellow]"}


def parts(outcome: Outcome, judged: Sequence[Judged]) -> Iterator[Any]:
    """The table of cells, the claims, the caveats."""
    said = outcome.study
    yield f"[bold]{said.title}[/bold]\n{said.source}\n{said.about.strip()}"
    yield f"{outcome.trials} runs, engine {outcome.engine} {outcome.version}; application rates pooled as published; true Mbit/s\n"
    kept = () if said.profiles else ("kept",)
    columns = (*_places(said), "goodput Mbit/s: mean [95 %]", *kept, "CV", "published", "ours/it", "raw", "ours/it", "raw CV")
    yield tables.table(columns, [_row(outcome, c) for c in outcome.by_cca()], left=2 if said.profiles else 1)
    yield "\n[bold]What the study claims[/bold]"
    yield tables.table(("ours say", "claim", "measured"), [(MARKS[j.verdict], j.claim.text, j.measured) for j in judged], left=3)
    count = {v: sum(j.verdict == v for j in judged) for v in MARKS}
    yield "\n" + ", ".join(f"{n} {verdict}" for verdict, n in count.items())
    for caveat in outcome.caveats:
        yield f"caveat: {caveat}"


def against(contrast: Contrast) -> Iterator[Any]:
    """The table of ratios, the cells that differ, the other engine's caveats."""
    mine, theirs, said, pairs = contrast.ours.label, contrast.other.label, contrast.ours.study, list(contrast.pairs())
    yield f"\n[bold]{mine} against {theirs}[/bold]\n{contrast.other.trials} more runs, engine {contrast.other.engine} {contrast.other.version}"
    yield "median goodput in Mbit/s, its 95 % interval; ratio of the two medians, its 95 % interval (runs not paired); * excludes 1\n"
    columns = (*_places(said), "n", mine, theirs, "ratio [95 %]", "")
    rows = [(*_place(contrast.ours, p.ours), str(p.ratio.n), *(m.text() for m in p.medians), p.ratio.text(), _sign(p)) for p in pairs]
    yield tables.table(columns, rows, left=2 if said.profiles else 1)
    differ = sum(p.differs for p in pairs)
    yield f"\n{differ} of {len(pairs)} cells differ; {number(contrast.chance(), 2)} would by chance alone if the two were the same"
    for caveat in contrast.other.caveats:
        if caveat not in contrast.ours.caveats:
            yield f"caveat ({theirs}): {caveat}"


def _sign(pair: Pair) -> str:
    return "*" if pair.differs else "same runs" if pair.same else ""


def _places(said: Study) -> tuple[str, ...]:
    """The columns of `_place`."""
    if said.profiles:
        return ("cca", "profile")
    return ("cca", "RTT ms", "jitter ms" if said.axis == "jitter" else "loss %")


def _place(outcome: Outcome, cell: Cell) -> tuple[str, ...]:
    """Which cell it is."""
    if outcome.study.profiles:
        return cell.cca, outcome.profile(cell)
    return cell.cca, f"{cell.key[1]:g}", f"{outcome.axis(cell):g}"


def _row(outcome: Outcome, cell: Cell) -> tuple[str, ...]:
    mean = cell.mean
    kept = () if outcome.study.profiles else (tables.percent(outcome.retention(cell).value),)
    return (
        *_place(outcome, cell), mean.text(), *kept, tables.percent(cell.cv.value), *_beside(mean.value, cell.published),
        *_beside(mean.value, cell.raw), tables.percent(cell.raw.cv) if cell.raw else "",
    )


def _beside(ours: float, known: Known | None) -> tuple[str, str]:
    return (number(known.mbps), number(ours / known.mbps, 2 if ours < known.mbps else 3)) if known else ("", "")
