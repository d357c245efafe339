"""Advice for a path: the congestion control to use by a goal, what would change the answer, its cliff, the damage by ingredient, what to type.

:class:`~tcpscape.findings.advice.adviser.Adviser` runs the trials and returns an :class:`~tcpscape.findings.advice.answer.Advice`; begin there.
`choice` decides by the runs alone. Its words are in :mod:`tcpscape.words.advice`.
"""
