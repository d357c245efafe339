"""Numbers → estimates: a value with its interval, its n and its unit. Nothing shown to a user is a bare mean."""

from tcpscape.stats.compare import Comparison, compare
from tcpscape.stats.estimate import Estimate, known
from tcpscape.stats.means import difference, mean, mean_ratio, ratio
from tcpscape.stats.order import median, median_ratio, quantile
from tcpscape.stats.power import runs_needed, runs_needed_from
from tcpscape.stats.shape import Mode, Shape, shape
from tcpscape.stats.spread import cv
from tcpscape.stats.wins import win_probability

__all__ = [
    "Comparison", "Estimate", "Mode", "Shape", "compare", "cv", "difference", "known", "mean", "mean_ratio", "median", "median_ratio", "quantile",
    "ratio", "runs_needed", "runs_needed_from", "shape", "win_probability",
]
