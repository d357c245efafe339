"""Diagnosis: from a capture, a socket or a result to the path, what limits each flow on it, and what would be better by how much.

A source becomes an :class:`~tcpscape.findings.diagnosis.observed.Observation` (what was seen). Each part of the diagnosis adds what it can tell from
it, or why it cannot: `path` fits the path, `control` names the congestion control, `zone` has the indicators, `replay` repeats the observation on
the model, `advice` compares the other congestion controls. Their results are the types of `fitted`.
"""
