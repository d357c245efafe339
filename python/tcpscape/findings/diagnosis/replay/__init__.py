"""The fitted path of a flow repeated by runs: :func:`~tcpscape.findings.diagnosis.replay.judging.judged`.

`scenario` makes a scenario of the fitted path and of the ends (`hosts`), `lab` runs it, `zone` and `advice` read the runs, and
`judging` settles by runs what the packets leave open and is the order in which the others are called.
"""
