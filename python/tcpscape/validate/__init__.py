"""Validation: the same conditions on two engines (or one engine and recorded results), and their divergence.

The main type is :class:`tcpscape.validate.validation.Validation`; begin with `validation.complete`, which runs one. The files:

- `validation`: from the options of the command line to a plan, and its run: every condition on both sides, seeds added while the answer is open
- `conditions`: the conditions, scenarios with an id each, from files; `draw`: random ones, `topologies`: random networks
- `sides`: what runs a condition, an engine or recorded results, and the numbers of its trials
- `agreement`: what groups of flows get and probes measure, on two sides and on one by itself
- `compare`: the divergence of a condition, its summary over many, bounds on it, and whether congestion controls are ranked alike
- `exact`: both sides segment by segment on deterministic conditions, and the first difference
- `parting`: traces of one condition, and the moment at which they part

The screens are in `tcpscape.words`; :mod:`tcpscape.report.validation` draws the figures and writes the page.
"""

from tcpscape.validate.compare import Divergence, DivergenceSummary
from tcpscape.validate.conditions import NamedScenario
from tcpscape.validate.validation import ValidationOptions, ValidationPlan, ValidationResult, prepare, run

__all__ = ["Divergence", "DivergenceSummary", "NamedScenario", "ValidationOptions", "ValidationPlan", "ValidationResult", "prepare", "run"]
