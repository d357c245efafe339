"""Statistics: the values of several runs → an estimate, a value with its 95 % interval, its n and its unit. No bare mean is shown to a user.

The main type is :class:`Estimate`. `means`, `order` (medians, quantiles, ranks), `spread` (coefficient of variation), `comparison` (two results,
win probability, shares) and `modes` (one mode or two) make estimates of values; `statistic` is the registry of the statistics that tables,
claims and checks name. Begin with `estimate`, which has the bootstrap behind them too, then `means`; measured coverage of the intervals is in
docs/models/methods/statistics.md.
"""

from tcpscape.stats.comparison import MOST_RUNS, Comparison, compare, is_alike, runs_missing, share, win_probability
from tcpscape.stats.estimate import Caveat, Estimate, Weakness, by_number, known
from tcpscape.stats.means import difference, mean, mean_of_each, mean_ratio, ratio, ratio_of_pairs
from tcpscape.stats.modes import Mode, Shape, shape
from tcpscape.stats.order import median, median_of_each, median_ratio, quantile, spearman
from tcpscape.stats.spread import cv, cv_of_each, runs_needed, runs_needed_from
from tcpscape.stats.statistic import STATISTICS, Statistic

__all__ = [
    "MOST_RUNS",
    "STATISTICS",
    "Caveat",
    "Comparison",
    "Estimate",
    "Mode",
    "Shape",
    "Statistic",
    "Weakness",
    "by_number",
    "compare",
    "cv",
    "cv_of_each",
    "difference",
    "is_alike",
    "known",
    "mean",
    "mean_of_each",
    "mean_ratio",
    "median",
    "median_of_each",
    "median_ratio",
    "quantile",
    "ratio",
    "ratio_of_pairs",
    "runs_missing",
    "runs_needed",
    "runs_needed_from",
    "shape",
    "share",
    "spearman",
    "win_probability",
]
