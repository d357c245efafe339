"""Bundles of traces (the samples of several seeds of one engine), and the first moment at which two of them part, in which quantity.

Chance may part them as much. Where every seed of each engine gives the same trace, the moment is the first sample that differs (a time slack of one
sample aside), and beside it the first difference of more than 2 % that lasts. Where runs scatter, the bundles are apart at a time when the ranks of
A's seeds among all seeds are beyond what 99 % of all relabellings of the seeds give (the values there, or their means over the next 0.2 s), at that
time and against B a sample earlier and later, and the medians differ by more than 2 %. They part where they are apart for nine tenths of the next
half second at least. The whole is judged by relabelling seeds between the engines (a permutation test over time, Maris and Oostenveld 2007):
`chance` is the share of relabellings that keep some quantity apart for as long.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcpscape.stats.estimate import Flags, Floats
from tcpscape.trial import Trial
from tcpscape.validate.sides import SAMPLE_NS

LABELLINGS = 200
"""Most relabellings tried."""
LEVEL = 0.01
"""Share of relabellings that may be as extreme at one time."""
RELATIVE = 0.02
"""Medians within this share of each other are not apart."""
TRIFLE = 0.05
"""Share of a quantity's quantum (5 µs of smoothed RTT, 150 bytes acknowledged) below which two single traces do not differ at all."""
SMOOTH = 20
"""Samples of a mean: 0.2 s."""
PERSIST_S, PERSIST_SHARE = 0.5, 0.9
"""Apart for this share of so long, s (or a twentieth of the trace, where that is longer)."""
STAYS = 0.8
"""Apart for this share of the rest of the trace: for good."""
SIGNIFICANT = 0.05
"""Chance above this: the engines are not told apart."""


@dataclass(frozen=True)
class SampledQuantity:
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
    SampledQuantity("cwnd", "cwnd, packets", quantum=1),
    SampledQuantity("ssthresh", "ssthresh, packets", quantum=1),
    SampledQuantity("srtt_us", "smoothed RTT, ms", 1e-3, "mean", 0.1),
    SampledQuantity("rttvar_us", "RTT deviation, ms", 1e-3, "mean", 0.1),
    SampledQuantity("min_rtt_us", "minimum RTT, ms", 1e-3, "mean", 0.1),
    SampledQuantity("rto_us", "RTO, ms", 1e-3, "mean", 10),
    SampledQuantity("in_flight", "in flight, packets", quantum=1),
    SampledQuantity("unacked", "unacknowledged, packets", quantum=1),
    SampledQuantity("pacing_rate", "pacing rate, Mbit/s", 8e-6, quantum=0.01),
    SampledQuantity("delivery_rate", "delivery rate, Mbit/s", 8e-6, quantum=0.01),
    SampledQuantity("retransmits", "retransmissions", quantum=1),
    SampledQuantity("spurious_retransmits", "needless retransmissions", quantum=1),
    SampledQuantity("reordering", "reordering metric, packets", flows="mean", quantum=0.5),
    SampledQuantity("lost", "marked lost, packets", quantum=1),
    SampledQuantity("rwnd", "receive window, kB", 1e-3, quantum=1),
    SampledQuantity("delivered", "delivered, packets", quantum=2),
    SampledQuantity("bytes_acked", "acknowledged, MB", 1e-6, quantum=0.003),
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


def _on_grid(samples: pl.DataFrame, columns: Sequence[SampledQuantity], grid: NDArray[np.int64]) -> dict[str, Floats]:
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


@dataclass(frozen=True)
class Parting:
    """One quantity that parts."""

    quantity: SampledQuantity
    t_s: float
    """From when on."""
    a: float
    """A's median then, in the quantity's unit."""
    b: float
    lasting: float
    """Share of the rest of the trace in which they are apart."""

    @property
    def text(self) -> str:
        """One line."""
        return f"{self.t_s:.2f} s: {self.quantity.label}: {self.values}, apart for {100 * self.lasting:.0f} % of the rest"

    @property
    def values(self) -> str:
        """Both medians."""
        unset = UNSET_SSTHRESH if self.quantity.column == "ssthresh" else math.inf
        a, b = ("unset" if v >= unset else f"{v:.4g}" for v in (self.a, self.b))
        return f"{a} against {b}"


@dataclass(frozen=True)
class Partings:
    """All quantities that part, the first one first."""

    partings: tuple[Parting, ...]
    """Differences that last."""
    differing: tuple[Parting, ...]
    """Where exact: the first sample of each quantity that differs at all, by however little."""
    exact: bool
    """Both engines gave one trace whatever the seed."""
    chance: float
    """Share of relabellings that part as much; 0 where exact."""
    seeds: tuple[int, int]

    @property
    def first(self) -> Parting | None:
        """The first quantity to part, None where the bundles do not part beyond chance."""
        return self.partings[0] if self.partings and self.chance <= SIGNIFICANT else None

    @property
    def stays(self) -> Parting | None:
        """The first quantity that parts for good, None for none."""
        return next((p for p in self.partings if p.lasting >= STAYS), None) if self.first else None

    @property
    def text(self) -> str:
        """One sentence or two."""
        if self.exact:
            moments = [_when(self.differing, "differ"), _when(self.partings, "part by more than 2 %")]
            sentences = ["Each engine gives one trace whatever the seed.", *moments]
        elif not self.partings:
            sentences = ["The bundles do not part lastingly."]
        elif not self.first:
            sentences = [f"Not told apart: {100 * self.chance:.0f} % of relabelled seeds part as much.", _when(self.partings, "seem to part")]
        else:
            sentences = [_when(self.partings, "part"), f"Relabelled seeds part as much in {100 * self.chance:.1f} % of cases."]
        if self.stays and self.stays != self.first:
            sentences.append(f"The first to stay apart: {self.stays.quantity.name} at {self.stays.t_s:.2f} s ({self.stays.values}).")
        return " ".join(sentences)


def _when(partings: Sequence[Parting], verb: str) -> str:
    """The sentence about the first moment."""
    if not partings:
        return f"They never {verb}."
    first = partings[0]
    same = [p.quantity.name for p in partings if p.t_s == first.t_s]
    return f"They {verb} at {first.t_s:.2f} s, first in {', '.join(same)} ({first.values})."


def part(a: Bundle, b: Bundle, skip: Sequence[str] = ()) -> Partings:
    """The moments at which the bundles part, and the quantities."""
    quantities = [q for q in QUANTITIES if q.column in a.values and q.column in b.values and q.column not in skip]
    n = min(len(a.t_s), len(b.t_s))
    step = float(a.t_s[1] - a.t_s[0]) if n > 1 else 1.0
    seeds = (len(a.seeds), len(b.seeds))
    if n < 3:
        return Partings((), (), False, 1.0, seeds)
    window = max(2, round(max(PERSIST_S, a.t_s[n - 1] / 20) / step))
    if a.identical and b.identical:
        return _part_exactly(quantities, a, b, n, window)
    labels = labellings(*seeds)
    apart = {q.column: _apart(q, a.values[q.column][:, :n], b.values[q.column][:, :n], labels) for q in quantities}
    longest = np.max([flags.sum(axis=1) for flags in apart.values()], axis=0)
    lasting = [_first_lasting(q, a, b, apart[q.column][0], window) for q in quantities]
    return Partings(_sorted(lasting), (), False, float(np.mean(longest >= longest[0])), seeds)


def labellings(n: int, m: int) -> Flags:
    """Which of the n + m seeds are called A's: first as it is, then all other ways or `LABELLINGS` of them, drawn.

    Of two ways that only swap the names one is left out: what counts is how far the groups are apart, not which is above.
    """
    ways = math.comb(n + m, n) // (2 if n == m else 1)
    if ways <= LABELLINGS:
        labelled = [set(way) for way in itertools.combinations(range(n + m), n) if n != m or 0 in way]
    else:
        rng = np.random.default_rng(n * 1000 + m)
        drawn = {tuple(range(n)): None}
        while len(drawn) < LABELLINGS:
            way = set(rng.permutation(n + m)[:n].tolist())
            drawn[tuple(sorted(way if n != m or 0 in way else set(range(n + m)) - way))] = None
        labelled = [set(way) for way in drawn]
    return np.array([[i in way for i in range(n + m)] for way in labelled])


def _sorted(partings: Sequence[Parting | None]) -> tuple[Parting, ...]:
    return tuple(sorted((p for p in partings if p), key=lambda p: p.t_s))


def _shifted(values: Floats, by: int) -> Floats:
    """Each trace `by` samples later; the ends hold."""
    return values[:, np.clip(np.arange(values.shape[1]) - by, 0, values.shape[1] - 1)]


def _differ(q: SampledQuantity, x: Floats, y: Floats) -> Flags:
    """Whether two values differ by more than 2 % and the quantity's quantum."""
    gap = np.abs(x - y)
    far: Flags = (gap > RELATIVE * np.maximum(np.abs(x), np.abs(y))) & (gap > q.quantum)
    return far


def _apart(q: SampledQuantity, a: Floats, b: Floats, labels: Flags) -> Flags:
    """For each labelling and time whether the two groups are apart: the values themselves, or their means over what follows."""
    pooled = np.vstack([a, b])
    far = np.stack([_differ(q, np.median(pooled[label], axis=0), np.median(pooled[~label], axis=0)) for label in labels])
    apart: Flags = far & (_ranked_apart(a, b, labels) | _ranked_apart(_ahead(a), _ahead(b), labels))
    return apart


def _ahead(values: Floats) -> Floats:
    """Each trace's mean over the next `SMOOTH` samples, for quantities that flutter within a trace; fewer at the end."""
    n = values.shape[1]
    sums = np.hstack([np.zeros((len(values), 1)), np.cumsum(values, axis=1)])
    ends = np.minimum(np.arange(n) + SMOOTH, n)
    means: Floats = (sums[:, ends] - sums[:, :n]) / (ends - np.arange(n))
    return means


def _ranked_apart(a: Floats, b: Floats, labels: Flags) -> Flags:
    """Whether the ranks are extreme on the same side against B a sample earlier, now and later."""
    sides = [_beyond(np.vstack([a, _shifted(b, by)]), labels) for by in (-1, 0, 1)]
    same: Flags = (sides[0] != 0) & (sides[0] == sides[1]) & (sides[1] == sides[2])
    return same


def _beyond(pooled: Floats, labels: Flags) -> NDArray[np.int8]:
    """Each labelling's sign at each time where its rank sum is among the extreme ones of all labellings; else 0."""
    from scipy.stats import rankdata

    deviation = labels.astype(float) @ rankdata(pooled, axis=0) - labels[0].sum() * (len(pooled) + 1) / 2
    size = np.abs(deviation)
    allowed = max(1, math.floor(LEVEL * len(labels)))
    bar = -np.sort(-size, axis=0)[min(allowed, len(labels) - 1)]
    out: NDArray[np.int8] = np.where(size > bar + 1e-9, np.sign(deviation), 0).astype(np.int8)
    return out


def _outside(q: SampledQuantity, x: Floats, y: Floats) -> Flags:
    """Where traces are outside what the other ones say a sample earlier, then and later, by more than a trifle."""
    near = np.stack([_shifted(y, by) for by in (-1, 0, 1)])
    tiny = TRIFLE * q.quantum + 1e-9 * np.abs(x)
    outside: Flags = (x < near.min(axis=0) - tiny) | (x > near.max(axis=0) + tiny)
    return outside


def _part_exactly(quantities: Sequence[SampledQuantity], a: Bundle, b: Bundle, n: int, window: int) -> Partings:
    """Where each engine gave one trace whatever the seed: the first sample that differs at all, and the first difference that counts."""
    first, lasting = [], []
    for q in quantities:
        x, y = a.values[q.column][:1, :n], b.values[q.column][:1, :n]
        outside, ahead = _outside(q, x, y), _outside(q, _ahead(x), _ahead(y)) & _differ(q, _ahead(x), _ahead(y))
        counts = (outside & _differ(q, x, y))[0]
        began = np.flatnonzero(counts)[:1]
        counts |= ahead[0] & (np.arange(n) >= (began[0] if len(began) else n))
        first.append(_parting(q, a, b, outside[0], int(np.argmax(outside[0]))) if outside.any() else None)
        lasting.append(_first_lasting(q, a, b, counts, window))
    return Partings(_sorted(lasting), _sorted(first), True, 0.0, (len(a.seeds), len(b.seeds)))


def _first_lasting(q: SampledQuantity, a: Bundle, b: Bundle, apart: Flags, window: int) -> Parting | None:
    """The first time from which the bundles are apart for most of the window."""
    if len(apart) < window:
        return None
    inside = np.convolve(apart, np.ones(window), "valid")
    starts = np.flatnonzero(apart[: len(inside)] & (inside >= PERSIST_SHARE * window))
    return _parting(q, a, b, apart, int(starts[0])) if len(starts) else None


def _parting(q: SampledQuantity, a: Bundle, b: Bundle, apart: Flags, at: int) -> Parting:
    values = [float(np.median(side.values[q.column][:, at])) for side in (a, b)]
    return Parting(q, float(a.t_s[at]), values[0], values[1], float(np.mean(apart[at:])))
