"""The cliff: the level of an impairment at which goodput falls below a share of its value without the impairment.

The main type is :class:`levels.Cliff`, the result of a search. `levels` holds the types and the chaos zone, `search` finds
the edge by runs of any function of a level, gives it its interval, and judges which of two congestion controls is better in each cell of a map.

Begin with :func:`search.on_path`; method and measured coverage are in docs/models/methods/cliff.md.
"""
