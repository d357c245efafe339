"""What differs between two dossiers: the verdicts, and where their tables of cells are there, the measures behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tcpscape import stats
from tcpscape.clauses.dossier import KEPT, TABLE, ClauseDocument, CriterionDocument, DossierDocument
from tcpscape.clauses.judging import Verdict
from tcpscape.errors import shown
from tcpscape.reading import documents, files
from tcpscape.reading.files import Origin
from tcpscape.stats.estimate import Estimate, Interval

RANK: Mapping[Verdict, int] = {"fails": 0, "worse": 1, "not shown": 2, "no worse": 3, "better": 4, "by hand": 5}
"""From the worst verdict on, where two dossiers are compared: what was shown and no longer is counts as worse."""


@dataclass(frozen=True)
class Change:
    """A clause whose verdict is not the same in two dossiers."""

    old: ClauseDocument
    new: ClauseDocument

    @property
    def is_worse(self) -> bool:
        """Whether the newer verdict is the worse one."""
        return RANK[self.new["verdict"]] < RANK[self.old["verdict"]]


def changed(old: DossierDocument, new: DossierDocument) -> list[Change]:
    """The clauses of both whose verdicts differ, in the order of `new`; clauses that only one has are left out."""
    before = {clause["name"]: clause for clause in old["clauses"]}
    pairs = [Change(before[clause["name"]], clause) for clause in new["clauses"] if clause["name"] in before]
    return [pair for pair in pairs if pair.old["verdict"] != pair.new["verdict"]]


@dataclass(frozen=True)
class Moved:
    """A criterion in the cells that two dossiers have."""

    section: str
    """Of its clause."""
    criterion: CriterionDocument
    """As the newer dossier has it."""
    cells: int
    """Cells that both have."""
    apart: int
    """Cells of them whose values differ."""
    worse: int
    """Cells in which it is worse by more than the criterion's margin, and the intervals do not overlap."""
    better: int
    """The same, better."""
    old: float
    """Mean over the cells, in the criterion's unit."""
    new: float
    difference: Estimate
    """Mean of the new values less the old ones, cell by cell, with the interval over cells; none of a single cell."""

    @classmethod
    def of(cls, section: str, criterion: CriterionDocument, pairs: Sequence[tuple[Interval, Interval]]) -> Moved:
        """What the control's values in the cells of both, old and new, come to."""
        olds, news = ([_number(one["value"]) for one in side] for side in zip(*pairs, strict=True))
        sides = [_side(a, b, criterion) for a, b in pairs]
        apart, count = sum(a != b for a, b in zip(olds, news, strict=True)), len(pairs)
        means = sum(olds) / count, sum(news) / count
        return cls(section, criterion, count, apart, sides.count("worse"), sides.count("better"), *means, stats.difference(news, olds))


def moved(new: DossierDocument, old_root: Path, new_root: Path) -> list[Moved] | None:
    """The criteria of which both directories' tables have a cell with a value, in the order of `new`; None where one has no table.

    :raises StoreError: one line, where a table is damaged.
    """
    if not all((root / TABLE).is_file() for root in (old_root, new_root)):
        return None
    before, after = (_values(root / TABLE) for root in (old_root, new_root))
    compared: list[Moved] = []
    for clause in new["clauses"]:
        for criterion in clause["criteria"]:
            old, now = (side.get((clause["name"], criterion["what"]), {}) for side in (before, after))
            if pairs := [(old[cell], now[cell]) for cell in now if cell in old]:
                compared.append(Moved.of(clause["section"], criterion, pairs))
    return compared


def _side(old: Interval, new: Interval, criterion: CriterionDocument) -> str:
    """`worse` or `better` where the values of a cell are apart by more than the margin and their intervals do not overlap; otherwise empty."""
    for word, a, b in (("worse", new, old), ("better", old, new)):
        above, below = (a, b) if criterion["better"] == "less" else (b, a)
        if _number(above["value"]) - _number(below["value"]) > criterion["margin"] and _number(above["low"]) > _number(below["high"]):
            return word
    return ""


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _values(file: Path) -> dict[tuple[str, str], dict[str, Interval]]:
    """Clause and criterion → cell → the control's value with its interval, from a table of cells; cells without a value are left out."""
    values: dict[tuple[str, str], dict[str, Interval]] = {}
    origin = Origin(str(file), KEPT)
    for row in documents.from_csv(files.text(file, KEPT), origin):
        value, low, high = (_written_number(row.get(f"value{end}", ""), origin) for end in ("", "_low", "_high"))
        if not math.isnan(value):
            key = row.get("clause", ""), row.get("criterion", "")
            values.setdefault(key, {})[row.get("cell", "")] = Interval(value=value, low=low, high=high)
    return values


def _written_number(text: str, origin: Origin) -> float:
    """A number of a table, NaN where there is none: of a control that stopped, or an interval of one trial."""
    try:
        return float(text or math.nan)
    except ValueError:
        origin.refuse(f"{shown(text)} is no number")
