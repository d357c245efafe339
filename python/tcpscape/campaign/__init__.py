"""Campaigns: scenarios × axes × congestion controls × seeds × engines, run over all cores and saved trial by trial.

`plan` is what was asked, `execute` runs it, `outcome` is what came out, `record` the directory it is kept in.
"""

from tcpscape.campaign.runner import Progress, Runner

__all__ = ["Progress", "Runner"]
