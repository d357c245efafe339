"""The cliff: the level of an impairment at which goodput falls below a share of its value without the impairment.

The main type is :class:`levels.Cliff`, the result of a search. `levels` holds the types, `search` finds the edge by runs of any
function of a level, `fit` gives the edge its interval, `planes` extends both to two axes, and `runs` binds them to engines and campaigns. Begin
with `runs.on_path`; method and measured coverage are in docs/models/methods/cliff.md.
"""
