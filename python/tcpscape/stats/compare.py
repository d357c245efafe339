"""The comparison of two results: ratio, difference, win probability, and whether they differ at all.

Runs of the same seeds meet the same losses and jitter (common random numbers): where they are compared as pairs, what both have in common cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tcpscape.stats.estimate import Estimate, Numbers, number
from tcpscape.stats.means import difference, mean_ratio, ratio
from tcpscape.stats.order import median_ratio
from tcpscape.stats.wins import win_probability

ALIKE = 0.05
"""Two results are called alike if the whole interval of their ratio is within this share of 1."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result A compared with result B: each answer with its interval."""

    ratio: Estimate
    """Mean of A over mean of B."""
    median_ratio: Estimate
    """Median of A over median of B."""
    difference: Estimate
    """Mean of A less mean of B, in the values' unit."""
    win: Estimate
    """P(a > b), ties counted as halves: of the pairs, or of any measurement of A against any of B."""
    paired: bool

    @property
    def differs(self) -> bool:
        """The verdict: whether the interval of the ratio of means leaves out 1 (of their difference, 0, where there is no ratio)."""
        return self.difference.excludes(0) if math.isnan(self.ratio.low) else self.ratio.excludes(1)

    @property
    def alike(self) -> bool:
        """Whether the ratio of means is surely within ± 5 %. Neither alike nor different is undecided."""
        return self.ratio.low >= 1 - ALIKE and self.ratio.high <= 1 + ALIKE

    @property
    def undecided(self) -> bool:
        """Whether this number of measurements decides neither."""
        return not (self.differs or self.alike)

    @property
    def caveat(self) -> str:
        """What weakens the answers."""
        return self.ratio.caveat or self.difference.caveat or self.win.caveat

    @property
    def effect(self) -> str:
        """The answer in words, the two results called A and B."""
        return self.words("A", "B")

    def words(self, a: str, b: str) -> str:
        """The answer in words with the results' own names: `bbr: 1.80 [1.62, 2.04] times cubic, more in 95 % of pairs`."""
        times = f"{a}: {self.ratio.text()} times {b}" if not math.isnan(self.ratio.low) else f"{a} less {b}: {self.difference.text()}"
        often = f"more in {number(100 * self.win.value)} % of {'pairs' if self.paired else 'comparisons'}"
        if self.differs:
            return f"{times}, {often}"
        return f"{times}, {'alike' if self.alike else 'undecided'}"


def compare(a: Numbers, b: Numbers, *, paired: bool = True, unit: str = "") -> Comparison:
    """Compares two sets of measurements; `paired`: a[i] and b[i] are of the same seed, so that both sets are equally long."""
    return Comparison(
        ratio=ratio(a, b) if paired else mean_ratio(a, b), median_ratio=median_ratio(a, b, paired=paired),
        difference=difference(a, b, unit, paired=paired), win=win_probability(a, b, paired=paired), paired=paired,
    )
