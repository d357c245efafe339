"""One run from the inside, as columns for the page.

`series` has quantities of flows and of the bottleneck's queue over time, `marks` what happened to the senders, `pathchanges` what the path did, with
the bound on the latency spike of each drop of its rate.
"""
