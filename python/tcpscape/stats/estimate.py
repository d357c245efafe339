"""An estimate: a value with its interval, the number of measurements behind it, its unit and its caveat.

Caveats are what the values alone show against an interval; measured in docs/models/methods/statistics.md.

The bootstrap of moments behind the intervals works by matrix products and is deterministic. A resample is a row of counts, how often each value was
drawn, so that a resampled mean of any function of the values is one matrix product. The resamples are a function of n alone: the same values give
the same interval, and studies with thousands of cells draw once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from tcpscape.formats import Written
from tcpscape.stats.few import STUDENT
from tcpscape.text.numbers import Number, decimal_places, number, percent

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = Sequence[float] | Floats
Bounds = tuple[Floats, Floats]
"""Lower and upper ends of the intervals of several samples: arrays of their number."""

CONFIDENCE = 0.95
"""Share of intervals that should cover the truth."""
TAIL = (1 - CONFIDENCE) / 2
"""Share of intervals that may lie wholly above the truth, and as many wholly below."""
RESAMPLES = 2000
"""Bootstrap resamples: enough for two digits of an interval's ends."""
NORMAL_BELOW = 5
"""Fewest values whose interval needs no assumption about their distribution: the range of 4 values covers a median in 87.5 %."""
UNSEEN_BELOW = 10
"""Fewest values of which a mode with a share of a quarter is missed no more often than an interval may miss."""
INTERVAL_DIGITS = 2
"""Significant digits that are written of the way from a value to the nearer end of its interval."""
INWARD = 10.0 ** (1 - INTERVAL_DIGITS)
"""Share of the way from a value to an end of its interval by which rounding may make the interval narrower: its second significant digit."""
SKEWNESS = 1.0
"""Sample skewness from which a CV rests on few runs: with heavy tails its interval was measured to cover less than 80 %."""


class Interval(TypedDict):
    """A value with its 95 % interval; what is infinite or not known is null."""

    value: float | None
    """The value, in the unit that the document states."""
    low: float | None
    """Lower end of the interval."""
    high: float | None
    """Upper end of the interval."""


class Measured(Interval):
    """A value with its 95 % interval and the number of measurements behind it."""

    n: int
    """Number of measurements."""


class Weakness(Enum):
    """What the values alone show against an interval."""

    FEW = "few"
    """So few values that the interval holds only where they are near normal."""
    UNSEEN_MODE = "unseen mode"
    """A mode with a share below `limit` may be unseen."""
    SKEWED = "skewed"
    """Seldom runs may raise the CV beyond its interval."""
    OPEN = "open"
    """The values cannot bound the quantile `limit`; `needed` of them can."""
    FEW_PAIRS = "few for a win probability"
    """So few values that a win probability is rough."""
    MEAN_NOT_POSITIVE = "mean not positive"
    """A CV of values whose mean is not positive, which has no interval."""
    NEGATIVE = "negative"
    """A ratio of values of which some are negative, which has no interval."""
    ONE_SAMPLE = "one sample"
    """A single sample, whose rounding alone is the interval."""


@dataclass(frozen=True, slots=True)
class Caveat:
    """Why an interval may cover less than 95 %; its sentence is `words.sentences.caveat`."""

    weakness: Weakness
    n: int
    """Values that there are."""
    limit: float = math.nan
    """Share or quantile that the weakness is about, from 0 to 1; NaN where it is about none."""
    needed: int = 0
    """Values that suffice, where that is known."""


def _sentence(caveat: Caveat | None, text: Callable[[str], str], info: Any) -> str:
    """The sentence of a document, by the words that it is printed with (`formats.printed`)."""
    return text(info.context["caveat"](caveat) if caveat and info.context else "")


if TYPE_CHECKING:
    Said = Caveat | None
else:
    Said = Annotated[str, Written(_sentence)]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value, its 95 % interval, the number of measurements behind it and its unit.

    An end is infinite where so few measurements cannot bound it, NaN where there is no interval at all (one measurement).
    """

    value: float
    """The statistic itself, in `unit`."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    n: int
    """Measurements behind it."""
    unit: str = ""
    """Empty or `1` of a plain number."""
    caveat: Said = field(default=None, metadata={"json_schema_extra": {"default": ""}})
    """Why the interval may cover less than 95 %; nothing where nothing is known against it. A document has its sentence."""

    def text(self, digits: int = 3, most: float | None = None, unit: str = "") -> str:
        """`12.3 [11.8, 12.9]`: the :meth:`cell` as one text."""
        return str(self.cell(digits, most, unit))

    def cell(self, digits: int = 3, most: float | None = None, unit: str = "") -> Number:
        """The value and `[11.8, 12.9]` for a table; an open end is ∞.

        `most`: the rate of the link, which the quantity cannot exceed, in the estimate's unit: an end above it is shown as `≤ link`.
        No digit stands behind the second one of the way from the value to the nearer end: `57 [36, 71]`, not `56.5 [36.4, 70.5]`. An end that
        rounding would move by more than that towards the value is rounded away from it: 55.14 ± 0.03 is `55.1 [55.1, 55.2]`.
        `unit`: what stands between the value and its interval, `12.3 Mbit/s [11.8, 12.9]`, `6.42 × cubic [6.03, 6.91]`.
        """
        if self.n < 2 or math.isnan(self.low):
            return Number(self.value, f"{number(self.value, digits)} {unit}".rstrip())
        places = self._places(digits)
        low, high = (_end(end, min(places, decimal_places(end, digits)), places, self.value) for end in (self.low, self.high))
        high = "≤ link" if most is not None and self.high > most else high
        return Number(self.value, f"{_rounded(self.value, places)} {unit}".rstrip(), f"[{low}, {high}]")

    def _places(self, digits: int) -> int:
        """Decimal places: those of `digits` significant ones of the value, and no more than the way to the nearer end has in its first two."""
        ways = [abs(end - self.value) for end in (self.low, self.high) if math.isfinite(end) and end != self.value]
        own = decimal_places(self.value or min(ways, default=0.0), digits)  # a value of 0 has no digits of its own
        return min(own, decimal_places(min(ways), INTERVAL_DIGITS)) if ways else own

    def percent(self) -> str:
        """A fraction in percent, `62 % [60, 64]`; an open end is ∞."""
        text = percent(self.value)
        if self.n < 2 or math.isnan(self.low):
            return text
        low, high = (_end(100 * end, 0, 0, 100 * self.value, most_places=0) for end in (self.low, self.high))
        return f"{text} [{low}, {high}]"

    def excludes(self, value: float) -> bool:
        """Whether the interval does not hold `value`; no interval excludes nothing."""
        return self.n > 1 and (value < self.low or value > self.high)

    def plain(self) -> Interval:
        """Value and ends for a document; what is infinite or not known is None."""
        return Interval(value=_finite(self.value), low=_finite(self.low), high=_finite(self.high))

    def columns(self, name: str) -> dict[str, float]:
        """Value and ends under the names of a table's columns."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}

    def measured(self) -> Measured:
        """The same with the number of measurements."""
        return Measured(**self.plain(), n=self.n)

    @property
    def precision(self) -> float:
        """Half of the interval's width over the value: 0.05 is ± 5 %. Infinite without an interval, or around 0."""
        half = (self.high - self.low) / 2
        if half == 0:
            return 0.0
        return half / abs(self.value) if self.value and not math.isnan(half) else math.inf


if TYPE_CHECKING:
    WithInterval = Estimate
else:
    WithInterval = Annotated[Interval, Written(lambda estimate, interval: interval(estimate.plain()))]
"""An estimate that a document has as its value and the ends of its interval."""


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _rounded(value: float, places: int) -> str:
    """A number with so many decimal places, or as many as its first significant digit takes."""
    return number(value, 1) if abs(value) <= 10.0**-places / 2 else f"{value:.{places}f}" if math.isfinite(value) else number(value)


def _end(end: float, fewest: int, places: int, value: float, most_places: int = 6) -> str:
    """An end of a value's interval with `fewest` decimal places, or `places` where those would move it far towards the value.

    At most `most_places` where its first significant digit takes more than these.
    """
    if not math.isfinite(end):
        return "∞" if end > 0 else "−∞"
    way = value - end
    for wanted in (fewest, places):
        digits = max(wanted, min(most_places, decimal_places(end, 1))) if abs(end) <= 10.0**-wanted / 2 else wanted
        rounded = round(end, digits)
        if not (math.isfinite(way) and (rounded - end) * math.copysign(1.0, way) > INWARD * abs(way)):
            break
    else:
        rounded = (math.floor if way > 0 else math.ceil)(end * 10.0**digits) / 10.0**digits
    return f"{rounded:.{digits}f}" if rounded else "0"


def known(values: Iterable[float]) -> list[float]:
    """The values that are known, in their order: all but NaN."""
    return [v for v in values if not math.isnan(v)]


def array(values: Numbers) -> Floats:
    """The values as a (1, n) array of floats: what functions over several samples take."""
    return np.asarray(values, dtype=float).reshape(1, -1)


def single(bounds: Bounds) -> tuple[float, float]:
    """The interval of the only sample."""
    return float(bounds[0][0]), float(bounds[1][0])


def ends(which: Flags, bounds: Callable[..., Bounds], *samples: Floats) -> Iterator[tuple[float, float]]:
    """The interval of each sample by `bounds`, which is asked for those of `which` alone; NaN for the others."""
    low, high = np.full(len(which), math.nan), np.full(len(which), math.nan)
    if which.any():
        low[which], high[which] = bounds(*(samples if which.all() else (x[which] for x in samples)))
    return zip(low.tolist(), high.tolist(), strict=True)


def by_number(samples: Sequence[Numbers], of: Callable[[Floats], list[Estimate]]) -> list[Estimate]:
    """What `of` gives of samples (k, n) that are equally long, for samples of any lengths, in their order."""
    places_of: dict[int, list[int]] = {}
    for place, sample in enumerate(samples):
        places_of.setdefault(len(sample), []).append(place)
    estimates: dict[int, Estimate] = {}
    for n, places in places_of.items():
        together = np.array([samples[place] for place in places], dtype=float).reshape(len(places), n)
        estimates |= zip(places, of(together), strict=True)
    return [estimates[place] for place in range(len(samples))]


def without_interval(value: float, n: int, unit: str) -> Estimate:
    """The estimate of no or one measurement, or of several of which one is not known (NaN): no interval."""
    return Estimate(value if n else math.nan, math.nan, math.nan, n, unit)


def caveat_of_number(n: int) -> Caveat | None:
    """What weakens any interval of so few values; None from 5 on."""
    return Caveat(Weakness.FEW, n) if n < NORMAL_BELOW else None


def caveat_of_moments(*samples: Floats) -> Caveat | None:
    """What weakens an interval of a mean, ratio or CV of these samples: few values, and modes unseen.

    Skewness is no caveat: the intervals of means that miss are those of samples that look less skewed than their distribution is.
    """
    n = min(np.size(s) for s in samples)
    if n < NORMAL_BELOW:
        return caveat_of_number(n)
    return Caveat(Weakness.UNSEEN_MODE, n, unseen_share(n)) if n < UNSEEN_BELOW else None


def caveats_of_spread(x: Floats) -> list[Caveat | None]:
    """What weakens an interval of the CV of each of the samples x (k, n): the same, and that it rests on few runs."""
    n = x.shape[1]
    common = caveat_of_moments(x[0]) if len(x) else None
    if common or not len(x):
        return [common] * len(x)
    return [Caveat(Weakness.SKEWED, n) if abs(skew) > SKEWNESS else None for skew in skewness(x)]


def unseen_share(n: int) -> float:
    """The largest share of a mode that n values miss altogether more often than 1 in 20."""
    return 1 - float((1 - CONFIDENCE) ** (1 / n))


def skewness(x: Floats) -> list[float]:
    """Third standardized moment of each of the samples x (k, n); 0 for constant values."""
    d = x - x.mean(1)[:, None]
    spreads, thirds = (d * d).mean(1).tolist(), (d**3).mean(1).tolist()
    return [third / spread**1.5 if spread > 0 else 0.0 for third, spread in zip(thirds, spreads, strict=True)]


LEAST = 5
"""Fewest values to resample: 4 values have 35 distinct resamples, and one resample in 64 has no spread."""
MOST = 500
"""Most values to resample: beyond, Student's t does as well, since skewness moves coverage by less than 1 %."""
CAP = 2.0
"""Largest studentized quantile, in Student's quantiles: two values far apart have resamples without spread, and no bound without this."""
_BLOCK = 8
"""Samples that are resampled together: 0.1 MB for each moment, which stays in a processor's cache."""


@lru_cache(maxsize=32)
def counts(n: int) -> Floats:
    """How often each of n values is in each resample: (n, RESAMPLES), divided by n."""
    drawn = np.random.default_rng(n).integers(0, n, (RESAMPLES, n))
    shares = np.zeros((n, RESAMPLES))
    np.add.at(shares, (drawn, np.arange(RESAMPLES)[:, None]), 1 / n)
    return shares


NORMAL = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""Quantile of the normal distribution for an interval: what :func:`student` tends to."""


@lru_cache(maxsize=256)
def student(n: int) -> float:
    """Quantile of Student's t for the interval of n values."""
    if n in STUDENT:
        return STUDENT[n]
    from tcpscape.stats.special import stdtrit

    return float(stdtrit(n - 1, (1 + CONFIDENCE) / 2))


def steps(statistics: Callable[[slice], Floats], x: Floats) -> Bounds:
    """Lengths of the intervals of samples x (k, n) below and above their values, in standard errors.

    `statistics`: as of :func:`quantiles`. Bootstrap-t (Efron 1981, Hall 1988), not nearer than Student's t, which is better for values that are
    often equal, and not farther than CAP times that.
    """
    least = np.full(len(x), student(x.shape[1]))
    if not LEAST <= x.shape[1] <= MOST:
        return least, least
    low, high = quantiles(statistics, x)
    return np.clip(high, least, CAP * least), np.clip(-low, least, CAP * least)


def quantiles(statistics: Callable[[slice], Floats], x: Floats) -> Bounds:
    """The studentized quantiles at both tails; `statistics` gives the studentized resamples (k, RESAMPLES) of a slice of the samples x (k, n)."""
    rank = int(RESAMPLES * TAIL)
    ends = np.concatenate([np.partition(statistics(part), (rank, -rank - 1), axis=1)[:, (rank, -rank - 1)] for part in _slices(x)])
    return ends[:, 0], ends[:, 1]


def _slices(x: Floats) -> Iterator[slice]:
    """Samples x (k, n) that are resampled together. One that has resamples of zeros alone stands by itself.

    Rounding decides whether such a resample has spread, and a product of matrices rounds by their shapes: the interval of a sample would not be
    the same with others as without them.
    """
    alone = np.mean(x == 0, axis=1) ** x.shape[1] > 1 / RESAMPLES**2
    first = 0
    for place in (*np.flatnonzero(alone).tolist(), len(x)):
        yield from (slice(begin, min(begin + _BLOCK, place)) for begin in range(first, place, _BLOCK))
        if place < len(x):
            yield slice(place, place + 1)
        first = place + 1


def studentize(shift: Floats, variance: Floats) -> Floats:
    """`shift / sqrt(variance)`; infinite where a resample has no spread, 0 where it did not move either."""
    spread = variance > _NOTHING
    if spread.all():
        return np.asarray(shift / np.sqrt(variance), dtype=float)
    studentized: Floats = np.where(spread, shift / np.sqrt(np.where(spread, variance, 1.0)), np.where(shift == 0, 0.0, np.copysign(np.inf, shift)))
    return studentized


_NOTHING = 1e-18
"""Variance, in the sample's own, that is rounding."""
