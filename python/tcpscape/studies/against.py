"""A study on two engines, a patched kernel and the stock one for example: where do their goodputs differ?

The same seed on two kernels is not the same run: what they do with their random numbers differs from the first changed decision on. So
the runs of a cell are not paired; the ratio of the two medians has an interval from each side's runs resampled by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl

from tcpscape import stats
from tcpscape.campaign.execute import Execution
from tcpscape.campaign.outcome import Cell
from tcpscape.campaign.runner import Progress
from tcpscape.errors import StudyError, refuse
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import CONFIDENCE
from tcpscape.studies import run as runs
from tcpscape.studies.run import Result
from tcpscape.studies.study import Study


@dataclass(frozen=True)
class Pair:
    """One cell on both engines."""

    part: str
    ours: Cell
    other: Cell
    metric: str = "goodput"

    @property
    def medians(self) -> tuple[Estimate, Estimate]:
        """Median of the metric on each."""
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
        """Whether every run came out the same on both, goodput and retransmissions, to the last digit."""
        return all(self.ours.values(m) == self.other.values(m) for m in ("goodput", "retransmits"))


@dataclass(frozen=True)
class Contrast:
    """A study that was run on two engines."""

    ours: Result
    other: Result

    def pairs(self) -> Iterator[Pair]:
        """Every cell on both, in the order of tables."""
        for part, outcome in self.ours.parts.items():
            metric = outcome.campaign.metric
            for mine, theirs in zip(outcome.cells, self.other.parts[part].cells, strict=True):
                yield Pair(part, mine, theirs, metric)

    def chance(self) -> float:
        """Cells that would differ by chance alone if the engines were the same."""
        return (1 - CONFIDENCE) * sum(1 for _ in self.pairs())

    def frame(self) -> pl.DataFrame:
        """One row for each cell."""
        return pl.DataFrame([self._row(pair) for pair in self.pairs()], infer_schema_length=None)

    def _row(self, pair: Pair) -> dict[str, object]:
        (mine, theirs), ratio = pair.medians, pair.ratio
        one, two = (next(iter(r.parts.values())).versions for r in (self.ours, self.other))
        return {
            "part": pair.part, "cca": pair.ours.cca, **pair.ours.at, "metric": pair.metric, "engine": _named(one), "n": mine.n,
            "median": mine.value, "median_low": mine.low, "median_high": mine.high, "against": _named(two), "against_n": theirs.n,
            "against_median": theirs.value, "against_low": theirs.low, "against_high": theirs.high, "ratio": ratio.value,
            "ratio_low": ratio.low, "ratio_high": ratio.high, "differs": pair.differs, "same": pair.same,
        }


def _named(versions: object) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items()) if isinstance(versions, dict) else ""


def run(study: Study, engine: str, other: str, execution: Execution = Execution(), progress: Progress | None = None) -> Contrast:
    """Runs every cell on both engines, as often on the one as on the other; what the second cannot run is refused before the first begins.

    `progress` is told of the second engine's runs.
    """
    one, two = execution.make(engine), execution.make(other)
    if (one.name, one.version) == (two.name, two.version):
        refuse("against", f"{two.name} {two.version} against itself", "name another engine or kernel", StudyError)
    for part in study.parts:
        for case in part.cases():
            two.check(case.scenario)
    ours = runs.run(study.changed({"engines": [engine]}), execution)
    return Contrast(ours, runs.run(study.changed({"engines": [other]}), replace(execution, progress=progress)))
