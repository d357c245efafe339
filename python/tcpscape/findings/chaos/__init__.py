"""The chaos zone: where single runs of one condition cannot be trusted.

`zone.side` says on which side of the cliff a path stands, and `zone.one_mode` tests whether its runs have one mode; the levels of an axis that belong
to the zone are :attr:`tcpscape.findings.cliff.levels.Cliff.zone`. Why the runs scatter is taken apart in docs/models/methods/chaos.md.
"""
