"""The chaos zone: where single runs of one condition cannot be trusted.

The main type is :class:`zone.Zone`. `zone` finds the side of the cliff on which a path stands and the levels at which runs scatter, `variation`
why they scatter: the features by which good runs differ from bad ones, and whether a run averages many states or is one draw of a state that
outlives it. Begin with `zone`; page docs/models/methods/chaos.md.
"""
