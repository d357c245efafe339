"""Campaigns: scenarios × axes × congestion controls × seeds × engines, run over all cores and saved trial by trial.

The main types are :class:`tcpscape.campaign.campaign.Campaign`, what to run, and :class:`tcpscape.campaign.outcome.Outcome`, its cells with
their trials. `source` makes a campaign from what a user names, `campaign` its cases; `execute` runs it on an executor
(`executors`), each cell as often as `adaptive` says; `record` is the directory that keeps it, `checks` judges its numbers. `groups`
are what becomes of an outcome's flows. A single run is a campaign with one point. Begin with `execute`.
"""
