"""Figures. One function each, from results to a file; never runs an engine."""

from tcpscape.plots.retention import retention
from tcpscape.plots.series import series

__all__ = ["retention", "series"]
