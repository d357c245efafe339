"""The cliff: the level of an impairment at which goodput falls below a share of its value without the impairment.

The main type is :class:`levels.Cliff`, the result of a search. `levels` holds the types, `search` finds the edge by runs of any
function of a level, `fit` gives the edge its interval, `runs` binds the search to engines, and `answer` is what commands show and keep of it.
`ratios` judges which of two congestion controls is better in each cell of a map.

Begin with `runs.on_path`; method and measured coverage are in docs/models/methods/cliff.md.
"""
