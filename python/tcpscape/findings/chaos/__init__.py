"""The chaos zone: where single runs of one condition cannot be trusted.

`zone` says on which side of the cliff a path stands and where runs scatter, `modes` what tells good runs from bad ones, `memory` whether a run
is an average over many states or one draw of a state that outlives it. Begin with `zone`; page docs/models/methods/chaos.md.
"""
