"""What is known against an interval, from the values alone. Measured in docs/models/methods/statistics.md."""

from __future__ import annotations

import numpy as np

from tcpscape.stats.estimate import CONFIDENCE, Floats

NORMAL_BELOW = 5
"""Values below which no interval stands without an assumption about their distribution: the range of 4 covers a median in 87.5 %."""
UNSEEN_BELOW = 10
"""Values below which a mode with a share of a quarter is unseen more often than intervals may miss."""
SKEWNESS = 1.0
"""Sample skewness from which a CV rests on few runs: of heavy tails its interval was measured to cover less than 80 %."""


def of_number(n: int) -> str:
    """Against any interval of so few values."""
    return f"{n} values: the interval holds only where they are near normal" if n < NORMAL_BELOW else ""


def of_moments(*samples: Floats) -> str:
    """Against an interval of a mean, ratio or CV of these samples: the first of few values and modes unseen.

    Skewness is none: intervals of means that miss are those of samples that look less skewed than their distribution is.
    """
    n = min(np.size(s) for s in samples)
    if n < NORMAL_BELOW:
        return of_number(n)
    return f"{n} values: a mode with a share below {100 * unseen(n):.0f} % may be unseen" if n < UNSEEN_BELOW else ""


def of_spread(x: Floats) -> str:
    """Against an interval of the CV of these values: the same, or that it rests on few runs."""
    return of_moments(x) or ("skewed values: seldom runs may raise the CV beyond its interval" if abs(skewness(np.ravel(x))) > SKEWNESS else "")


def unseen(n: int) -> float:
    """The largest share of a mode that n values miss altogether more often than 1 in 20."""
    return 1 - float((1 - CONFIDENCE) ** (1 / n))


def skewness(x: Floats) -> float:
    """Third standardized moment; 0 for constant values."""
    d = x - x.mean()
    spread = float(np.mean(d * d))
    return float(np.mean(d**3)) / spread**1.5 if spread > 0 else 0.0
