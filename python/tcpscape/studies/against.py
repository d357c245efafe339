"""A study on two engines, a patched kernel and the stock one for example: where do their goodputs differ?

The same seed on two kernels is not the same run: what they do with their random numbers differs from the first changed decision on. So
the runs of a cell are not paired; the ratio of the two medians has an interval from each side's runs resampled by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from tcpscape import stats
from tcpscape.campaign import Runner
from tcpscape.errors import StudyError, refuse
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import CONFIDENCE
from tcpscape.studies import Study
from tcpscape.studies import run as runs
from tcpscape.studies.run import Cell, Outcome


@dataclass(frozen=True)
class Pair:
    """One cell on both engines."""

    ours: Cell
    other: Cell

    @property
    def medians(self) -> tuple[Estimate, Estimate]:
        """Median goodput on each, Mbit/s."""
        return stats.median(self.ours.goodputs, "Mbit/s"), stats.median(self.other.goodputs, "Mbit/s")

    @property
    def ratio(self) -> Estimate:
        """Our median / the other's."""
        return stats.median_ratio(self.ours.goodputs, self.other.goodputs)

    @property
    def differs(self) -> bool:
        """Whether the ratio's interval excludes 1."""
        return self.ratio.excludes(1)

    @property
    def same(self) -> bool:
        """Whether every run came out the same on both, goodput and retransmissions, to the last digit."""
        return (self.ours.goodputs, self.ours.retransmits) == (self.other.goodputs, self.other.retransmits)


@dataclass(frozen=True)
class Contrast:
    """A study that was run on two engines."""

    ours: Outcome
    other: Outcome

    def pairs(self) -> Iterator[Pair]:
        """Every cell on both, in the order of tables."""
        return (Pair(cell, self.other.cells[cell.key]) for cell in self.ours.by_cca())

    def chance(self) -> float:
        """Cells that would differ by chance alone if the engines were the same."""
        return (1 - CONFIDENCE) * len(self.ours.cells)

    def frame(self) -> pl.DataFrame:
        """One row for each cell."""
        return pl.DataFrame([self._row(pair) for pair in self.pairs()], infer_schema_length=None)

    def _row(self, pair: Pair) -> dict[str, object]:
        (mine, theirs), ratio = pair.medians, pair.ratio
        return {
            **self.ours.where(pair.ours), "engine": f"{self.ours.engine} {self.ours.version}", "n": mine.n, "median_mbps": mine.value,
            "median_low": mine.low, "median_high": mine.high, "against": f"{self.other.engine} {self.other.version}", "against_n": theirs.n,
            "against_mbps": theirs.value, "against_low": theirs.low, "against_high": theirs.high, "ratio": ratio.value,
            "ratio_low": ratio.low, "ratio_high": ratio.high, "differs": pair.differs, "same": pair.same,
        }


def run(study: Study, ours: Runner, other: Runner, *, repeats: int | None = None) -> Contrast:
    """Runs every cell on both engines, as often on the one as on the other; what the second cannot run is refused before the first begins."""
    if (ours.engine.name, ours.engine.version) == (other.engine.name, other.engine.version):
        refuse("against", f"{other.engine.name} {other.engine.version} against itself", "name another engine or kernel", StudyError)
    for _, scenario, _ in runs.conditions(study):
        other.engine.check(scenario)
    return Contrast(runs.run(study, ours, repeats=repeats), runs.run(study, other, repeats=repeats))
