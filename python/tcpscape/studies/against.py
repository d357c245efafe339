"""A study on two engines, for example a patched kernel and the stock one: the cells in which their goodputs differ.

The same seed on two kernels is not the same run: from the first changed decision on, the same random numbers meet other packets. So the runs of
a cell are not paired; the ratio of the two medians has an interval for which each side's runs are resampled independently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl

from tcpscape import stats
from tcpscape.campaign.execute import Execution, Progress
from tcpscape.campaign.outcome import Cell
from tcpscape.errors import StudyError, refuse
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import CONFIDENCE
from tcpscape.studies import run as runs
from tcpscape.studies.result import Result
from tcpscape.studies.study import Study


@dataclass(frozen=True)
class CellPair:
    """One cell on both engines."""

    part: str
    ours: Cell
    other: Cell
    metric: str = "goodput"

    @property
    def medians(self) -> tuple[Estimate, Estimate]:
        """Median of the metric on each engine."""
        return self.ours.median(self.metric), self.other.median(self.metric)

    @property
    def ratio(self) -> Estimate:
        """Our median / the other's."""
        return stats.median_ratio(self.ours.values(self.metric), self.other.values(self.metric))

    @property
    def differs(self) -> bool:
        """Whether the ratio's interval excludes 1."""
        return self.ratio.excludes(1)

    @property
    def same(self) -> bool:
        """Whether goodput and retransmissions of every run are the same on both, to the last digit."""
        return all(self.ours.values(m) == self.other.values(m) for m in ("goodput", "retransmits"))


@dataclass(frozen=True)
class Contrast:
    """A study that was run on two engines."""

    ours: Result
    other: Result

    def pairs(self) -> Iterator[CellPair]:
        """Every cell on both, in the order of tables."""
        for part, outcome in self.ours.parts.items():
            metric = outcome.campaign.metric
            for ours, other in zip(outcome.cells, self.other.parts[part].cells, strict=True):
                yield CellPair(part, ours, other, metric)

    def expected_by_chance(self) -> float:
        """Cells that would differ by chance alone if the engines were the same."""
        return (1 - CONFIDENCE) * sum(1 for _ in self.pairs())

    def frame(self) -> pl.DataFrame:
        """One row for each cell."""
        return pl.DataFrame([self._row(pair) for pair in self.pairs()], infer_schema_length=None)

    def _row(self, pair: CellPair) -> dict[str, object]:
        (ours, other), ratio = pair.medians, pair.ratio
        engine, against = (_engine_names(next(iter(r.parts.values())).versions) for r in (self.ours, self.other))
        return {
            "part": pair.part, "cca": pair.ours.cca, **pair.ours.at, "metric": pair.metric, "engine": engine, "n": ours.n,
            "median": ours.value, "median_low": ours.low, "median_high": ours.high, "against": against, "against_n": other.n,
            "against_median": other.value, "against_low": other.low, "against_high": other.high, "ratio": ratio.value,
            "ratio_low": ratio.low, "ratio_high": ratio.high, "differs": pair.differs, "same": pair.same,
        }


def _engine_names(versions: Mapping[str, str]) -> str:
    """`model 0.9, mock 1`, from engine → version."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def run(study: Study, engine: str, other: str, execution: Execution = Execution(), progress: Progress | None = None) -> Contrast:
    """Runs every cell equally often on both engines; a cell that the second cannot run is refused before the first begins.

    `progress` reports the second engine's runs.
    """
    first, second = execution.make(engine), execution.make(other)
    if (first.name, first.version) == (second.name, second.version):
        refuse("against", f"{second.name} {second.version} against itself", "name another engine or kernel", StudyError)
    for part in study.parts:
        for case in part.cases():
            second.check(case.scenario)
    ours = runs.run(study.changed({"engines": [engine]}), execution)
    return Contrast(ours, runs.run(study.changed({"engines": [other]}), replace(execution, progress=progress)))
