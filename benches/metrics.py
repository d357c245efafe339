"""How far the model is from the kernel: one comparison a condition, and their summary."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable

from conditions import Condition, Truth

# Targets of the fidelity benchmark.
MEDIAN_TARGET, P90_TARGET = 0.05, 0.25
RETRANSMIT_FACTOR, RETRANSMIT_MIN, RTT_WITHIN, SHARE_TARGET = 1.5, 20, 0.05, 0.8
# Below this rate (Mbit/s) a ratio says nothing: one chunk in ten seconds.
TINY_MBPS = 0.005


def log_ratio(a: float, b: float) -> float:
    """ln(a/b) with both held above `TINY_MBPS`."""
    return math.log(max(a, TINY_MBPS) / max(b, TINY_MBPS))


def quantile(values: Iterable[float], q: float) -> float:
    """Linear quantile; NaN for nothing."""
    v = sorted(x for x in values if not math.isnan(x))
    if not v:
        return math.nan
    at = q * (len(v) - 1)
    low = int(at)
    high = min(low + 1, len(v) - 1)
    return v[low] + (v[high] - v[low]) * (at - low)


def cv(values: list[float]) -> float:
    """Coefficient of variation, sample standard deviation over mean."""
    mean = statistics.fmean(values) if values else math.nan
    return statistics.stdev(values) / mean if len(values) > 1 and mean else math.nan


@dataclasses.dataclass(frozen=True)
class Trial:
    """What the model did with one seed: sums and means over the flows."""

    goodput: float
    retransmits: float
    mean_rtt_ms: float
    min_rtt_ms: float

    @classmethod
    def of(cls, result: dict) -> Trial:
        """From one result of the engine. A flow's mean RTT is that of its srtt samples where there are any."""
        flows = result["flows"]
        rtts = [m for m in (mean_rtt_ms(result, i) for i in range(len(flows))) if m is not None]
        minima = [f["min_rtt_ms"] for f in flows if f.get("min_rtt_ms")]
        return cls(
            sum(f["goodput_mbps"] for f in flows),
            sum(f["retransmits"] for f in flows),
            statistics.fmean(rtts) if rtts else math.nan,
            min(minima) if minima else math.nan,
        )


def sample_columns(result: dict, flow: int) -> dict[str, list]:
    """The samples of one flow as lists; empty where the engine kept none. A column is `(dtype, buffer)` or a sequence."""
    columns = {name: _values(column) for name, column in (result.get("samples") or {}).items()}
    if "flow" not in columns:
        return columns
    keep = [i for i, f in enumerate(columns["flow"]) if f == flow]
    return {name: [values[i] for i in keep] for name, values in columns.items()}


def _values(column) -> list:
    if isinstance(column, tuple) and isinstance(column[0], str):
        import numpy as np

        return np.frombuffer(column[1], dtype=column[0]).tolist()
    return column.tolist() if hasattr(column, "tolist") else list(column)


def mean_rtt_ms(result: dict, flow: int) -> float | None:
    """Mean of the flow's srtt samples (as the kernel's are taken), else the mean of its RTT samples."""
    srtt = [x for x in sample_columns(result, flow).get("srtt_us", []) if x]
    if srtt:
        return statistics.fmean(srtt) / 1e3
    return (result["flows"][flow].get("rtt_ms") or {}).get("mean")


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One condition: the model's seeds against the kernel's repetitions."""

    condition: Condition
    truth: Truth
    model: tuple[Trial, ...]

    @property
    def goodput(self) -> float:
        """Median of the model's seeds, Mbit/s."""
        return statistics.median(t.goodput for t in self.model)

    @property
    def kernel_goodput(self) -> float:
        """Median of the kernel's repetitions, Mbit/s."""
        return statistics.median(self.truth.goodput)

    @property
    def signed(self) -> float:
        """ln(model/kernel) of the median goodputs: positive where the model is faster."""
        return log_ratio(self.goodput, self.kernel_goodput)

    @property
    def error(self) -> float:
        """|ln(model/kernel)| of the median goodputs."""
        return abs(self.signed)

    @property
    def floor(self) -> float:
        """The kernel against itself: |ln| between the medians of the first and the second part of its repetitions."""
        runs = self.truth.goodput
        half = (len(runs) + 1) // 2
        return abs(log_ratio(statistics.median(runs[:half]), statistics.median(runs[half:]))) if len(runs) > 1 else math.nan

    @property
    def retransmits(self) -> tuple[float, float]:
        """Median retransmits: the model's, the kernel's."""
        return statistics.median(t.retransmits for t in self.model), statistics.median(self.truth.retransmits)

    @property
    def retransmit_factor(self) -> float:
        """Factor between the retransmit counts; NaN where the kernel had `RETRANSMIT_MIN` or fewer."""
        ours, theirs = self.retransmits
        return math.nan if theirs <= RETRANSMIT_MIN else max(ours, 0.5) / theirs

    @property
    def rtt(self) -> tuple[float, float]:
        """Mean RTT in ms: the model's, the kernel's (NaN where it was not recorded)."""
        theirs = statistics.median(self.truth.mean_rtt_ms) if self.truth.mean_rtt_ms else math.nan
        return quantile((t.mean_rtt_ms for t in self.model), 0.5), theirs

    @property
    def rtt_ratio(self) -> float:
        """Model's mean RTT over the kernel's."""
        ours, theirs = self.rtt
        return ours / theirs if theirs else math.nan

    @property
    def min_rtt_ratio(self) -> float:
        """Model's smallest RTT over the kernel's, medians over the seeds and repetitions."""
        theirs = quantile(self.truth.min_rtt_ms, 0.5)
        return quantile((t.min_rtt_ms for t in self.model), 0.5) / theirs if theirs else math.nan


@dataclasses.dataclass(frozen=True)
class Summary:
    """Errors over a group of conditions."""

    n: int
    median: float
    p90: float
    worst: float
    bias: float
    floor_median: float
    floor_p90: float
    retransmit_n: int
    retransmit_share: float
    rtt_n: int
    rtt_share: float

    @classmethod
    def of(cls, group: list[Comparison]) -> Summary:
        """Over these comparisons."""
        errors = [c.error for c in group]
        floors = [c.floor for c in group]
        factors = [f for f in (c.retransmit_factor for c in group) if not math.isnan(f)]
        ratios = [r for r in (c.rtt_ratio for c in group) if not math.isnan(r)]
        return cls(
            n=len(group),
            median=quantile(errors, 0.5),
            p90=quantile(errors, 0.9),
            worst=max(errors, default=math.nan),
            bias=quantile([c.signed for c in group], 0.5),
            floor_median=quantile(floors, 0.5),
            floor_p90=quantile(floors, 0.9),
            retransmit_n=len(factors),
            retransmit_share=share(1 / RETRANSMIT_FACTOR <= f <= RETRANSMIT_FACTOR for f in factors),
            rtt_n=len(ratios),
            rtt_share=share(abs(r - 1) <= RTT_WITHIN for r in ratios),
        )


def share(flags: Iterable[bool]) -> float:
    """Share of true values; NaN for nothing."""
    flags = list(flags)
    return sum(flags) / len(flags) if flags else math.nan


def groups(comparisons: list[Comparison], key) -> dict[str, list[Comparison]]:
    """Comparisons by a key of their condition, in order of first appearance."""
    out: dict[str, list[Comparison]] = {}
    for c in comparisons:
        out.setdefault(key(c.condition), []).append(c)
    return out
