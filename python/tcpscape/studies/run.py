"""Runs a study under exactly its conditions and lays our numbers beside the published ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from tcpscape import metrics
from tcpscape.campaign import axes, derive, execute
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Execution
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.campaign.record import Record
from tcpscape.errors import StudyError
from tcpscape.stats import Estimate
from tcpscape.studies import known
from tcpscape.studies.known import Known
from tcpscape.studies.study import Claim, Study

if TYPE_CHECKING:
    from tcpscape.studies.verdicts import Judged


@dataclass(frozen=True)
class Row:
    """One line of a study's table."""

    part: str
    cell: Cell
    metric: str
    stat: str
    ours: Estimate
    published: Known | None
    raw: Known | None

    @property
    def unit(self) -> str:
        """The statistic's unit; 1 for plain numbers."""
        return "1" if self.stat == "cv" else self.ours.unit or metrics.find(self.metric).unit

    @property
    def ratio(self) -> float | None:
        """Ours / published (or raw, where nothing was published)."""
        beside = self.published or self.raw
        return self.ours.value / beside.value if beside and beside.value else None


@dataclass(frozen=True)
class Result:
    """A study that was run."""

    study: Study
    parts: Mapping[str, Outcome]
    """Part → its outcome."""

    @cached_property
    def known(self) -> tuple[Known, ...]:
        """Everything that was published."""
        return known.table(self.study)

    @cached_property
    def judged(self) -> tuple[Judged, ...]:
        """Every claim with its verdict."""
        from tcpscape.studies import measures

        return tuple(measures.judge(self, claim) for claim in self.study.claims)

    def record(self, command: str) -> Record:
        """What a result directory keeps of it; `command` runs it again."""
        return Record("study", self.study.name, command, self.parts, self.study.model_dump(mode="json"))

    @property
    def trials(self) -> int:
        """Trials in all."""
        return sum(o.trial_count for o in self.parts.values())

    @property
    def caveats(self) -> tuple[str, ...]:
        """Whatever weakens a result, each once."""
        return tuple(sorted({c for o in self.parts.values() for c in o.caveats}))

    @property
    def label(self) -> str:
        """What to call the engines."""
        return next(iter(self.parts.values())).label

    def outcome(self, part: str = "") -> Outcome:
        """A part's outcome; the first part's where none is named."""
        return self.parts[part] if part else next(iter(self.parts.values()))

    def cells(self, claim: Claim) -> tuple[Cell, ...]:
        """The cells that a claim is about."""
        found = tuple(c for c in self.outcome(claim.part).select(claim.cca) if _said(claim, c))
        if not found:
            raise StudyError(f"claims: {claim.text!r} asks for {claim.cca or 'any'} at {claim.at}, which the study has not; correct the study")
        return found

    def below(self, claim: Claim, cell: Cell) -> Cell:
        """The cell that `cell` is divided by: the same but for what the claim says under `over`."""
        over = dict(claim.over)
        outcome, cca = self.outcome(over.pop("part", claim.part)), over.pop("cca", cell.cca)
        kept = {k: v for k, v in cell.at.items() if k in outcome.axes and k not in over}
        found = outcome.find(cca, cell.engine, **kept, **over)
        if found is None:
            raise StudyError(f"claims: {claim.text!r} divides by {claim.over}, which is not one cell of the study; correct the study")
        return found

    def rows(self) -> tuple[Row, ...]:
        """The study's table: each cell with every number known of it and what the study shows of its part, or else its campaign's metric."""
        return self._rows

    @cached_property
    def _rows(self) -> tuple[Row, ...]:
        return tuple(self._each())

    def _each(self) -> Iterator[Row]:
        for part, outcome in self.parts.items():
            shown = [(metric, stat) for text in self.study.shows.get(part, ()) for metric, _, stat in [text.partition(" ")]]
            for cell in outcome.cells:
                found = known.of(self.known, part, cell)
                pairs = dict.fromkeys([*shown, *((k.metric, k.stat) for k in found)]) or {(outcome.campaign.metric, "mean"): None}
                for metric, stat in pairs:
                    mine = {k.kind: k for k in reversed(found) if (k.metric, k.stat) == (metric, stat)}
                    yield Row(part, cell, metric, stat, known.STATS[stat](cell, metric), mine.get("published"), mine.get("raw"))

    def frame(self) -> pl.DataFrame:
        """The table, one row a line."""
        return pl.DataFrame([_plain(r) for r in self.rows()], infer_schema_length=None)


def _said(claim: Claim, cell: Cell) -> bool:
    """Whether the claim is about this cell."""
    at = all(k in cell.at and any(axes.same(cell.at[k], v) for v in axes.levels(said, k)) for k, said in claim.at.items())
    out = any(cell.stands({axis: value}) for axis, values in claim.but.items() for value in values)
    return at and not out and all(low <= axes.read(derive.value(text, cell.at, "where")).number <= high for text, (low, high) in claim.where.items())


def _plain(row: Row) -> dict[str, object]:
    said = {"part": row.part, "cca": row.cell.cca, **row.cell.at, "metric": row.metric, "stat": row.stat, "n": row.ours.n}
    said |= {"ours": row.ours.value, "ours_low": row.ours.low, "ours_high": row.ours.high}
    for kind, one in (("published", row.published), ("raw", row.raw)):
        said |= {kind: one.value if one else None, f"{kind}_n": one.n if one else None}
    notes = [k.note for k in (row.published, row.raw) if k and k.note]
    return said | {"ratio": row.ratio, "valid": all(k.valid for k in (row.published, row.raw) if k), "note": "; ".join(notes)}


def run(study: Study, execution: Execution = Execution()) -> Result:
    """Runs every part; what the metrics of its claims and of its published numbers need of a trial is kept."""
    return Result(study, {part.name: execute.run(_with_metrics(study, part), execution) for part in study.parts})


def _with_metrics(study: Study, part: Campaign) -> Campaign:
    first = study.parts[0].name
    asked = [c.metric for c in study.claims if (c.part or first) == part.name or c.over.get("part") == part.name]
    asked += [k.metric for k in known.table(study) if k.part == part.name]
    return part.model_copy(update={"metrics": tuple(dict.fromkeys((*part.metrics, *asked)))})
