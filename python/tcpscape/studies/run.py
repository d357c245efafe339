"""Runs a study under exactly its conditions and lays our numbers beside the published and the raw ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from tcpscape import stats, studies
from tcpscape.campaign import Runner
from tcpscape.findings.conditions import Conditions
from tcpscape.scenario import App, Scenario
from tcpscape.stats import Estimate
from tcpscape.studies import CellKey, Known, Study
from tcpscape.units import parse_byte_rate

QUICK_REPEATS = 2


@dataclass(frozen=True)
class Cell:
    """One condition under one congestion control, both application rates pooled."""

    key: CellKey
    goodputs: tuple[float, ...]
    """Mbit/s; rate by rate, seeds in order."""
    retransmits: tuple[float, ...]
    published: Known | None
    raw: Known | None

    @property
    def mean(self) -> Estimate:
        """Mean goodput, Mbit/s."""
        return stats.mean(self.goodputs, "Mbit/s")

    @property
    def cv(self) -> Estimate:
        """Coefficient of variation, fraction."""
        return stats.cv(self.goodputs)

    @property
    def cca(self) -> str:
        """Congestion control."""
        return self.key[0]


@dataclass(frozen=True)
class Outcome:
    """A study that was run."""

    study: Study
    cells: dict[CellKey, Cell]
    engine: str
    version: str
    trials: int
    caveats: tuple[str, ...]
    kernel: str | None = None
    """Name and release of the real kernel that ran, None where none did."""

    @property
    def label(self) -> str:
        """What to call the engine: `model`, `virtual 6.1 (6.1.192)`."""
        return f"{self.engine} {self.kernel}" if self.kernel else self.engine

    def axis(self, cell: Cell) -> float:
        """Where the cell stands on the study's axis: ms of jitter, % of loss, or the place of its profile."""
        if self.study.axis == "profile":
            return float(list(self.study.profiles).index(self.profile(cell)))
        return cell.key[2] if self.study.axis == "jitter" else cell.key[3]

    def profile(self, cell: Cell) -> str:
        """The name of the cell's profile; `` where the study has a grid."""
        return studies.profile(self.study, cell.key)

    def curve(self, cca: str, rtt_ms: float) -> list[Cell]:
        """The cells of one congestion control at one RTT along the axis."""
        found = [c for c in self.cells.values() if c.key[:2] == (cca, rtt_ms)]
        return sorted(found, key=self.axis)

    def rtts(self) -> list[float]:
        """RTTs in the study, ms."""
        return sorted({k[1] for k in self.cells})

    def by_cca(self) -> list[Cell]:
        """The cells in the order of tables: one congestion control along the axis after the other, RTT by RTT."""
        return [c for rtt in self.rtts() for cca in self.study.cca for c in self.curve(cca, rtt)]

    def base(self, cell: Cell) -> Cell | None:
        """The same path without the impairment; profiles have none."""
        return None if self.study.profiles else self.curve(cell.cca, cell.key[1])[0]

    def retention(self, cell: Cell) -> Estimate:
        """Mean goodput / mean goodput without the impairment; paired where both have the same runs; NaN for a profile."""
        base = self.base(cell)
        if base is None:
            return Estimate(math.nan, math.nan, math.nan, 0, "1")
        if len(base.goodputs) == len(cell.goodputs):
            return stats.ratio(cell.goodputs, base.goodputs)
        mean, below = cell.mean, base.mean.value or float("nan")
        return Estimate(mean.value / below, mean.low / below, mean.high / below, mean.n, "1")

    def frame(self) -> pl.DataFrame:
        """One row for each cell."""
        return pl.DataFrame([self._row(c) for c in self.cells.values()], infer_schema_length=None)

    def where(self, cell: Cell) -> dict[str, Any]:
        """The columns that say which cell it is."""
        cca, rtt, jitter, loss = cell.key
        named = {"profile": self.profile(cell)} if self.study.profiles else {}
        return {"cca": cca, **named, "rtt_ms": rtt, "jitter_ms": jitter, "loss_pct": loss}

    def _row(self, cell: Cell) -> dict[str, Any]:
        mean, cv, kept = cell.mean, cell.cv, self.retention(cell)
        share = {} if self.study.profiles else {"retention": kept.value, "retention_low": kept.low, "retention_high": kept.high}
        return {
            **self.where(cell), "n": mean.n, "mean_mbps": mean.value, "mean_low": mean.low, "mean_high": mean.high,
            "cv": cv.value, "cv_low": cv.low, "cv_high": cv.high, **share, "retransmits": sum(cell.retransmits) / len(cell.retransmits),
            "published_mbps": cell.published.mbps if cell.published else None, "raw_mbps": cell.raw.mbps if cell.raw else None,
            "raw_cv": cell.raw.cv if cell.raw else None,
        }


def run(study: Study, runner: Runner, *, repeats: int | None = None) -> Outcome:
    """Runs every cell; `repeats` replaces the study's own number of runs for each rate."""
    work = [(key, s, range(repeats or n)) for key, s, n in conditions(study)]
    trials = runner.run_all([(scenario, seeds) for _, scenario, seeds in work])
    goodputs: dict[CellKey, list[float]] = {}
    resent: dict[CellKey, list[float]] = {}
    for (key, _, _), some in zip(work, trials, strict=True):
        goodputs.setdefault(key, []).extend(t.goodput_mbps for t in some)
        resent.setdefault(key, []).extend(float(sum(f.retransmits for f in t.flows)) for t in some)
    published, raw = studies.published(study), studies.raw(study)
    cells = {k: Cell(k, tuple(g), tuple(resent[k]), published.get(k), raw.get(k)) for k, g in sorted(goodputs.items(), key=_order)}
    caveats = sorted({c for some in trials for t in some for c in t.caveats})
    kernel = next((t.kernel for some in trials for t in some), None)
    return Outcome(study, cells, runner.engine.name, runner.engine.version, sum(len(t) for t in trials), tuple(caveats), kernel)


def _order(item: tuple[CellKey, Any]) -> tuple[float, float, float, str]:
    cca, rtt, jitter, loss = item[0]
    return rtt, jitter, loss, cca


def conditions(study: Study) -> Iterator[tuple[CellKey, Scenario, int]]:
    """Every cell × application rate with its scenario and repetitions."""
    for values, repeats in study.points():
        here = studies.conditions(study, values)
        for cca, rate in itertools.product(study.cca, study.pool):
            yield studies.key(cca, here), _paced(here, rate).scenario(cca).model_copy(update={"name": study.name}), repeats


def _paced(here: Conditions, rate: str) -> Conditions:
    app = App().model_copy(update={"rate": parse_byte_rate(rate, "pool")})
    return here.model_copy(update={"flow": here.flow.model_copy(update={"app": app})})
