"""A study that was run: its outcomes by part, the cells that a claim is about, the table of our numbers beside the published ones, and the verdicts.

The verdict on a claim is reproduced, not reproduced, or not decidable from these runs; the rules that give it and the two kinds of measures are here.
A published number is given once, without its spread. Ours agrees with it where |ln(ours / published)| ≤ max(0.15, 2 · its standard error), where
`published` is any number that prints as the published text. 0.15 is the difference of one cell on one rig between two days. The standard error is
relative; it follows from the CV of our own runs of the cell and the number of runs behind the published number (:mod:`tcpscape.stats.statistic`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Literal

import polars as pl

from tcpscape.campaign import axes
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.campaign.record import STUDY, Record
from tcpscape.errors import StudyError, refuse
from tcpscape.formats import INTERVAL, TableFormat, columns
from tcpscape.stats import Estimate
from tcpscape.studies import known
from tcpscape.studies.known import FACTORS, KnownNumber
from tcpscape.studies.study import Claim, Study
from tcpscape.text.numbers import number


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
        """The cells that a claim is about. :raises StudyError: where the study has none."""
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
    return at and not out and all(low <= axes.read(axes.derived(text, cell.at, "where")).number <= high for text, (low, high) in claim.where.items())


def _fields(row: StudyRow) -> dict[str, object]:
    fields = {"part": row.part, "cca": row.cell.cca, "metric": row.metric, "stat": row.stat, "n": row.ours.n, **row.ours.columns("ours")}
    for kind, entry in (("published", row.published), ("raw", row.raw)):
        fields |= {kind: entry.value if entry else None, f"{kind}_n": entry.n if entry else None}
    notes = [k.note for k in (row.published, row.raw) if k and k.note]
    fields |= {"ratio": row.ratio, "valid": all(k.valid for k in (row.published, row.raw) if k), "note": "; ".join(notes)}
    return PUBLISHED.row(fields, row.cell.at)


PUBLISHED = TableFormat(
    "published",
    "A row for each number of a study beside the published one: NAME.csv of study run NAME.",
    columns(
        """
    part string -: Part of the study
    cca string -: Congestion controls of the flows
    {axis} string -: Where the cell stands on an axis, as it was written
    metric string -: What was measured
    stat string -: Statistic over the trials
    n integer -: Number of our trials
"""
        + INTERVAL.format("ours", "(of the metric)", "Our number")
        + """
    published number (of the metric): The published number; empty where there is none
    published_n integer -: Runs behind it
    raw number (of the metric): The same number from the work's raw data
    raw_n integer -: Runs behind it
    ratio number -: Our number / the published one
    valid boolean -: Whether the published numbers are free of known errors
    note string -: What is known about the published number
"""
    ),
)


ClaimVerdict = Literal["reproduced", "not reproduced", "not decidable"]
VERDICTS: tuple[ClaimVerdict, ...] = ("reproduced", "not reproduced", "not decidable")
DAY_TO_DAY = 0.15
"""|ln ratio| between two days of one rig."""
STANDARD_ERRORS = 2.0
"""Standard errors that a published number may be off."""

CellEstimate = Callable[[Result, Claim, Cell], Estimate]
RelativeError = Callable[[Result, Claim, Cell], float]


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim and the verdict of our runs on it."""

    claim: Claim
    verdict: ClaimVerdict
    measured: str
    """What was measured, with its interval, as text."""

    @property
    def why(self) -> str:
        """Why the published number is what it is; empty where `measured` contains this text already."""
        return "" if self.claim.setup in self.measured else self.claim.setup


@dataclass(frozen=True)
class JudgedStudy:
    """A study's result with a verdict on each of its claims, in the study's order."""

    result: Result
    claims: tuple[JudgedClaim, ...]


def in_range(estimate: Estimate, low: float, high: float) -> ClaimVerdict:
    """The verdict on an estimate that should lie between `low` and `high`.

    A value inside is reproduced. A value outside is not decidable if its interval reaches into the range, if it stands on a single run, or if
    it could not be measured (NaN).
    """
    if low <= estimate.value <= high:
        return "reproduced"
    if estimate.n <= 1 or estimate.value != estimate.value:
        return "not decidable"
    return "not decidable" if estimate.low <= high and estimate.high >= low else "not reproduced"


def all_of(verdicts: Sequence[ClaimVerdict], share: float = 1.0) -> ClaimVerdict:
    """The verdict on a claim about every cell, or about this share of them.

    At least `share` of the verdicts must be `reproduced`. The claim is not decidable while the cells without a decision could still reach it.
    """
    required = share * len(verdicts)
    reproduced = verdicts.count("reproduced")
    if reproduced >= required:
        return "reproduced"
    return "not decidable" if reproduced + verdicts.count("not decidable") >= required else "not reproduced"


def range_text(low: float, high: float) -> str:
    """The range that a claim allows, in words: `2.5–3.7`, `at least 3`."""
    if low == float("-inf"):
        return f"at most {number(high)}"
    return f"at least {number(low)}" if high == float("inf") else f"{number(low)}–{number(high)}"


def unknown_error(_: Result, __: Claim, ___: Cell) -> float:
    """0: nothing is known about the standard error."""
    return 0.0


@dataclass(frozen=True, slots=True)
class CellMeasure:
    """A measure of a cell: an estimate that carries its own unit, held against the claim's range for one cell or for every one of them."""

    estimate: CellEstimate
    standard_error: RelativeError = unknown_error
    """Relative standard error of a published number of this kind, as far as our runs of the cell tell."""

    def judge(self, result: Result, claim: Claim) -> JudgedClaim:
        """The claim's range against its cell, or against every one of its cells, or the share of them under `options: {share: …}`."""
        cells = result.cells(claim)
        if not claim.every and len(cells) > 1:
            raise StudyError(f"claims: {claim.text!r} is about {len(cells)} cells; name one with `at`, or write every: true")
        factor = FACTORS.get(claim.unit, 1.0)
        ranges = [tuple(end * factor for end in self.accepted(result, claim, cell)) for cell in cells]
        estimates = [self.estimate(result, claim, cell) for cell in cells]
        verdicts = [in_range(e, low, high) for e, (low, high) in zip(estimates, ranges, strict=True)]
        unit = "" if estimates[0].unit == "1" else estimates[0].unit
        allowed = f"(asked: {range_text(*ranges[0])})" if len(set(ranges)) == 1 else f"(asked: near {claim.near})"
        if len(estimates) == 1:
            return JudgedClaim(claim, verdicts[0], f"{estimates[0].text()} {unit}".strip() + f" {allowed}")
        ordered = sorted(estimates, key=lambda e: e.value)
        span = f"{verdicts.count('reproduced')} of {len(estimates)} cells, from {ordered[0].text()} to {ordered[-1].text()} {unit}".strip()
        return JudgedClaim(claim, all_of(verdicts, float(claim.options.get("share", 1))), f"{span} {allowed}")

    def accepted(self, result: Result, claim: Claim, cell: Cell) -> tuple[float, float]:
        """The range that counts as reproduced, in the claim's unit: the claim's own, or what is near enough to its one number."""
        if not claim.near:
            return claim.low, claim.high
        low, high = printed_range(claim.near)
        width = math.exp(max(DAY_TO_DAY, STANDARD_ERRORS * self.standard_error(result, claim, cell)))
        return low / width, high * width


@dataclass(frozen=True, slots=True)
class StudyMeasure:
    """A measure of the whole study: a function that gives the verdict itself."""

    judge: Callable[[Result, Claim], JudgedClaim]


AnyMeasure = CellMeasure | StudyMeasure


def printed_range(text: str) -> tuple[float, float]:
    """The numbers that print as `text`: `0.49` is 0.485 to 0.495, `42` is 41.5 to 42.5."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        refuse("near", f"{text!r} is not a number", "write it as printed, for example 0.49", StudyError)
    half = Decimal(1).scaleb(int(number.as_tuple().exponent)) / 2
    return float(number - half), float(number + half)
