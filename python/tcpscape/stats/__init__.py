"""Numbers → estimates: a value with its interval, its n and its unit. Nothing shown to a user is a bare mean."""

from tcpscape.stats.estimate import Estimate, cv, mean, mean_ratio, median, median_ratio, ratio
from tcpscape.stats.power import runs_needed

__all__ = ["Estimate", "cv", "mean", "mean_ratio", "median", "median_ratio", "ratio", "runs_needed"]
