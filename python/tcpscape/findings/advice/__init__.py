"""Advice for a path: the congestion control to use by a goal, what would change the answer, its cliff, the damage by ingredient, what to type.

:class:`~tcpscape.findings.advice.adviser.Adviser` runs the trials and returns an :class:`~tcpscape.findings.advice.answer.Advice`; begin there.
`choice` decides by the runs alone; `kept` finds an advice again in a directory of results. Its words are in :mod:`tcpscape.words.advice`.
"""

from tcpscape.findings.advice.adviser import Adviser
from tcpscape.findings.advice.answer import Advice, Standing
from tcpscape.findings.advice.choice import GOALS, Decision, Goal, goal_of

__all__ = ["GOALS", "Advice", "Adviser", "Decision", "Goal", "Standing", "goal_of"]
