"""What was published of a study: tables of numbers, each with its cell, metric, statistic, unit and source.

Columns of a file in `data/`: `part` (left out: the first), `cca`, one for each axis with values as written (empty: any), `metric`, `stat`
(mean, median, cv, …), `value`, `high` (end of a range), `unit`, `kind` (published, or raw: from the raw runs behind it), `n`, `source`,
`note`, `valid` (0 for a number that cannot be right).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from tcpscape.campaign.outcome import Cell
from tcpscape.errors import StudyError
from tcpscape.reading import documents, packaged
from tcpscape.reading.files import Kind, Origin
from tcpscape.stats import Estimate
from tcpscape.studies import spikes
from tcpscape.studies.study import Study

TABLE = Kind("a table of published numbers", "correct the table", error=StudyError)
FACTORS: Mapping[str, float] = {"KiB/s": 8 * 1024 / 1e6, "KiB/s*8/1000": 1.024, "Mbit/s": 1.0, "Gbit/s": 1000.0, "%": 0.01}
"""To the metric's own unit: "KB/s" is KiB/s, and the JitterTrap works' "Mbps" is KiB/s · 8 / 1000. Any other unit is the metric's own."""


Statistic = Callable[[Cell, str], Estimate]
"""A cell and a metric → the estimate, with its unit."""


def _of_spike(name: str) -> Statistic:
    """The median of a quantity of a latency spike; it has its own unit, whatever the metric."""
    return lambda cell, _: spikes.median(cell, name)


STATISTICS: Mapping[str, Statistic] = {
    "mean": lambda cell, metric: cell.mean(metric),
    "median": lambda cell, metric: cell.median(metric),
    "cv": lambda cell, metric: cell.cv(metric),
    **{f"spike_{name}": _of_spike(name) for name in spikes.QUANTITIES},
}
"""Statistics over a cell's runs that a table may give; those of a latency spike read its samples."""
_OWN = frozenset(("part", "cca", "metric", "stat", "value", "high", "unit", "kind", "n", "source", "note", "valid"))


@dataclass(frozen=True, slots=True)
class KnownNumber:
    """A published number, or one from the raw runs behind it: a statistic of a metric in one cell."""

    part: str
    cca: str
    at: Mapping[str, str]
    metric: str
    stat: str
    value: float
    """In the metric's unit; a fraction for `cv`."""
    high: float | None
    """End of a range."""
    kind: str
    """published or raw."""
    n: int | None
    source: str
    note: str
    valid: bool

    def is_of(self, part: str, cell: Cell) -> bool:
        """Whether the number was measured under the conditions of `cell`."""
        return self.part == part and self.cca in ("", cell.cca) and cell.stands(self.at)

    def statistic_of(self, cell: Cell) -> Estimate:
        """The same statistic of our own runs."""
        return STATISTICS[self.stat](cell, self.metric)


def log_distance(ours: float, theirs: float) -> float:
    """|ln(ours / theirs)|; infinite where either value is not positive or not known."""
    return abs(math.log(ours / theirs)) if ours > 0 and theirs > 0 else math.inf


def table(study: Study) -> tuple[KnownNumber, ...]:
    """Everything that was published of a study."""
    return tuple(_number(row, study, file) for file in study.published for row in _rows(file))


def of_cell(numbers: tuple[KnownNumber, ...], part: str, cell: Cell, kind: str | None = None) -> list[KnownNumber]:
    """The numbers known of a cell, of one kind (`published` or `raw`) or of both."""
    return [k for k in numbers if kind in (None, k.kind) and k.is_of(part, cell)]


def _number(row: Mapping[str, str], study: Study, file: str) -> KnownNumber:
    try:
        factor = FACTORS.get(row["unit"], 1.0)
        return KnownNumber(
            part=row.get("part") or study.parts[0].name,
            cca=row.get("cca", ""),
            at={k: v for k, v in row.items() if k not in _OWN and v},
            metric=row.get("metric") or "goodput",
            stat=row.get("stat") or "mean",
            value=float(row["value"]) * factor,
            high=float(row["high"]) * factor if row.get("high") else None,
            kind=row.get("kind") or "published",
            n=int(row["n"]) if row.get("n") else None,
            source=row.get("source", ""),
            note=row.get("note", ""),
            valid=row.get("valid") != "0",
        )
    except (KeyError, ValueError) as e:
        raise StudyError(f"{file}: {e} in {dict(row)}; correct the table") from None


@cache
def _rows(name: str) -> list[dict[str, str]]:
    return rows(packaged.text(f"studies/data/{name}"), name)


def rows(text: str, name: str) -> list[dict[str, str]]:
    """The rows of a table called `name`, column → text.

    :raises StudyError: for a row with more or fewer values than columns, as a comma without quotes makes it.
    """
    return documents.from_csv(text, Origin(name, TABLE))
