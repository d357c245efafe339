"""Bundles of traces: the samples of several seeds of one engine, every quantity on one grid of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcpscape.trial import Trial
from tcpscape.validate.sides import SAMPLE_NS

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Quantity:
    """A column of the samples."""

    column: str
    label: str
    scale: float = 1.0
    """To the unit in the label."""
    flows: Literal["sum", "mean"] = "sum"
    """How the values of several flows are put together."""
    quantum: float = 0.0
    """Differences up to this, in the label's unit, do not count."""

    @property
    def name(self) -> str:
        """The label without its unit."""
        return self.label.split(",")[0]


QUANTITIES = (
    Quantity("cwnd", "cwnd, packets", quantum=1),
    Quantity("ssthresh", "ssthresh, packets", quantum=1),
    Quantity("srtt_us", "smoothed RTT, ms", 1e-3, "mean", 0.1),
    Quantity("rttvar_us", "RTT deviation, ms", 1e-3, "mean", 0.1),
    Quantity("min_rtt_us", "minimum RTT, ms", 1e-3, "mean", 0.1),
    Quantity("rto_us", "RTO, ms", 1e-3, "mean", 10),
    Quantity("in_flight", "in flight, packets", quantum=1),
    Quantity("unacked", "unacknowledged, packets", quantum=1),
    Quantity("pacing_rate", "pacing rate, Mbit/s", 8e-6, quantum=0.01),
    Quantity("delivery_rate", "delivery rate, Mbit/s", 8e-6, quantum=0.01),
    Quantity("retransmits", "retransmissions", quantum=1),
    Quantity("spurious_retransmits", "needless retransmissions", quantum=1),
    Quantity("reordering", "reordering metric, packets", flows="mean", quantum=0.5),
    Quantity("lost", "marked lost, packets", quantum=1),
    Quantity("rwnd", "receive window, kB", 1e-3, quantum=1),
    Quantity("delivered", "delivered, packets", quantum=2),
    Quantity("bytes_acked", "acknowledged, MB", 1e-6, quantum=0.003),
)
"""The quantities that are compared over time: columns of `FlowSamples` that both engines have."""
UNSET_SSTHRESH = 0x7FFF_FFFF


@dataclass(frozen=True)
class Bundle:
    """Traces of one engine."""

    label: str
    t_s: Floats
    values: dict[str, Floats]
    """By column, one row a seed, one column a time; before a flow's first sample 0."""
    seeds: tuple[int, ...]
    goodputs: tuple[float, ...]

    @property
    def representative(self) -> int:
        """The row whose goodput is nearest to the median."""
        return int(np.argmin(np.abs(np.array(self.goodputs) - np.median(self.goodputs))))

    @property
    def identical(self) -> bool:
        """Whether all seeds gave the same trace."""
        return all(bool(np.all(v == v[0])) for v in self.values.values())


def bundle(label: str, trials: Sequence[Trial], step_ns: int = SAMPLE_NS) -> Bundle | None:
    """The traces of these trials on a grid of `step_ns`; None where none has samples."""
    sampled = [t for t in trials if t.samples is not None and not t.samples.is_empty()]
    if not sampled:
        return None
    columns = [q for q in QUANTITIES if all(t.samples is not None and q.column in t.samples.columns for t in sampled)]
    grid = np.arange(step_ns, round(min(t.duration for t in sampled) * 1e9) + 1, step_ns, dtype=np.int64)
    traces = [_on_grid(t.samples, columns, grid) for t in sampled if t.samples is not None]
    values = {q.column: np.stack([trace[q.column] for trace in traces]) for q in columns}
    return Bundle(label, grid / 1e9, values, tuple(t.seed for t in sampled), tuple(t.goodput_mbps for t in sampled))


def _on_grid(samples: pl.DataFrame, columns: Sequence[Quantity], grid: NDArray[np.int64]) -> dict[str, Floats]:
    """One trial's columns at the grid's times (the last sample up to then, with a tenth of a step's grace), the flows put together."""
    flows = [part.sort("t_ns") for part in samples.partition_by("flow")]
    on_grid = {}
    for q in columns:
        rows = np.stack([_last_value(part["t_ns"].to_numpy(), part[q.column].cast(pl.Float64).to_numpy(), grid) for part in flows])
        if q.column == "ssthresh":
            rows[rows >= UNSET_SSTHRESH] = UNSET_SSTHRESH
        known = np.maximum(np.sum(rows != 0, axis=0), 1)
        on_grid[q.column] = q.scale * (rows.sum(axis=0) if q.flows == "sum" else rows.sum(axis=0) / known)
    return on_grid


def _last_value(t: NDArray[np.int64], values: Floats, grid: NDArray[np.int64]) -> Floats:
    """The last value up to each time; 0 before the first."""
    grace = (grid[1] - grid[0]) // 10 if len(grid) > 1 else 0  # a real kernel samples a little late
    at = np.searchsorted(t.astype(np.int64), grid + grace, side="right") - 1
    values_at: Floats = np.where(at >= 0, values[np.maximum(at, 0)], 0.0)
    return values_at
