"""Campaigns: scenarios × axes × congestion controls × seeds × engines, run over all cores and saved trial by trial."""

from tcpscape.campaign.runner import Progress, Runner

__all__ = ["Progress", "Runner"]
