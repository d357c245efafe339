"""A study that was run: its outcomes by part, the cells that a claim is about, and the table of our numbers beside the published ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from tcpscape.campaign import axes, derive
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.campaign.record import STUDY, Record
from tcpscape.errors import StudyError
from tcpscape.stats import Estimate
from tcpscape.studies import known
from tcpscape.studies.known import KnownNumber
from tcpscape.studies.study import Claim, Study


@dataclass(frozen=True)
class StudyRow:
    """One line of a study's table: a statistic of one cell, and what was published of it."""

    part: str
    cell: Cell
    metric: str
    stat: str
    """A name of :data:`tcpscape.studies.known.STATISTICS`."""
    ours: Estimate
    published: KnownNumber | None
    raw: KnownNumber | None

    @property
    def unit(self) -> str:
        """The statistic's unit; 1 for plain numbers."""
        return self.ours.unit

    @property
    def ratio(self) -> float | None:
        """Ours / published (or raw, where nothing was published); None where neither is known."""
        reference = self.published or self.raw
        return self.ours.value / reference.value if reference and reference.value else None


@dataclass(frozen=True)
class Result:
    """A study that was run."""

    study: Study
    parts: Mapping[str, Outcome]
    """Part → its outcome."""

    @cached_property
    def known(self) -> tuple[KnownNumber, ...]:
        """Everything that was published."""
        return known.table(self.study)

    def record(self, command: str, whole: Study | None = None) -> Record:
        """What a result directory keeps of it; `command` runs it again. `whole`: the study with all of its parts, where some of them ran."""
        return Record(STUDY, self.study.name, command, self.parts, (whole or self.study).model_dump(mode="json"))

    @property
    def trial_count(self) -> int:
        """Trials in all."""
        return sum(o.trial_count for o in self.parts.values())

    @property
    def caveats(self) -> tuple[str, ...]:
        """Whatever weakens a result, each once."""
        return tuple(sorted({c for o in self.parts.values() for c in o.caveats}))

    @property
    def label(self) -> str:
        """The name of the engines for tables: `model`, `virtual 6.1 (6.1.192)`."""
        return next(iter(self.parts.values())).label

    def outcome(self, part: str = "") -> Outcome:
        """A part's outcome; the first part's where none is named."""
        return self.parts[part] if part else next(iter(self.parts.values()))

    def cells(self, claim: Claim) -> tuple[Cell, ...]:
        """The cells that a claim is about.

        :raises StudyError: where the study has none.
        """
        cells = tuple(c for c in self.outcome(claim.part).select(claim.cca) if _is_about(claim, c))
        if not cells:
            raise StudyError(f"claims: {claim.text!r} asks for {claim.cca or 'any'} at {claim.at}, which the study has not; correct the study")
        return cells

    def below(self, claim: Claim, cell: Cell) -> Cell:
        """The cell that `cell` is divided by: the same cell except for what the claim names under `over`.

        :raises StudyError: where this is not exactly one cell of the study.
        """
        over = dict(claim.over)
        outcome, cca = self.outcome(over.pop("part", claim.part)), over.pop("cca", cell.cca)
        unchanged = {k: v for k, v in cell.at.items() if k in outcome.axes and k not in over}
        divisor = outcome.find(cca, cell.engine, **unchanged, **over)
        if divisor is None:
            raise StudyError(f"claims: {claim.text!r} divides by {claim.over}, which is not one cell of the study; correct the study")
        return divisor

    @cached_property
    def rows(self) -> tuple[StudyRow, ...]:
        """The study's table.

        Each cell has a row for every number known of it and for what the study shows of its part; without either, for its campaign's metric.
        """
        return tuple(row for part, outcome in self.parts.items() for row in self._rows_of(part, outcome))

    def _rows_of(self, part: str, outcome: Outcome) -> Iterator[StudyRow]:
        shown = [(metric, stat) for text in self.study.shows.get(part, ()) for metric, _, stat in [text.partition(" ")]]
        for cell in outcome.cells:
            numbers = known.of_cell(self.known, part, cell)
            statistics = dict.fromkeys([*shown, *((k.metric, k.stat) for k in numbers)]) or {(outcome.campaign.metric, "mean"): None}
            for metric, stat in statistics:
                by_kind = {k.kind: k for k in reversed(numbers) if (k.metric, k.stat) == (metric, stat)}
                ours = known.STATISTICS[stat](cell, metric)
                yield StudyRow(part, cell, metric, stat, ours, by_kind.get("published"), by_kind.get("raw"))

    def frame(self) -> pl.DataFrame:
        """The table as a data frame, one row a line."""
        return pl.DataFrame([_fields(r) for r in self.rows], infer_schema_length=None)


def stands_among(cell: Cell, at: Mapping[str, str]) -> bool:
    """Whether a cell has one of these values on each of these axes: axis → value, or several values (`8ms, 10ms`, `8..12ms/2ms`)."""
    return all(k in cell.at and any(axes.same(cell.at[k], v) for v in axes.levels(text, k)) for k, text in at.items())


def _is_about(claim: Claim, cell: Cell) -> bool:
    """Whether the claim is about this cell: its `at`, not its `but`, and its `where`."""
    at = stands_among(cell, claim.at)
    out = any(cell.stands({axis: value}) for axis, values in claim.but.items() for value in values)
    return at and not out and all(low <= axes.read(derive.value(text, cell.at, "where")).number <= high for text, (low, high) in claim.where.items())


def _fields(row: StudyRow) -> dict[str, object]:
    fields = {"part": row.part, "cca": row.cell.cca, **row.cell.at, "metric": row.metric, "stat": row.stat, "n": row.ours.n}
    fields |= {"ours": row.ours.value, "ours_low": row.ours.low, "ours_high": row.ours.high}
    for kind, number in (("published", row.published), ("raw", row.raw)):
        fields |= {kind: number.value if number else None, f"{kind}_n": number.n if number else None}
    notes = [k.note for k in (row.published, row.raw) if k and k.note]
    return fields | {"ratio": row.ratio, "valid": all(k.valid for k in (row.published, row.raw) if k), "note": "; ".join(notes)}
