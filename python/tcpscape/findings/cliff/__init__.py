"""Where the cliff is: the level of an impairment at which goodput falls below a share of what it is without.

The main type is :class:`tcpscape.findings.cliff.levels.Cliff`. `search` finds the edge by running, `grid` from the runs of a grid that there are,
`fit` gives the edge its interval; `contour` draws it as a line over a second axis, `ratio` says who is better where. Begin with `search`.
"""
