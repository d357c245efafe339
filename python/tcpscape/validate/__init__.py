"""Validation: the same conditions on two engines (or one engine and recorded results), and their divergence.

The main type is :class:`tcpscape.validate.validation.Validation`; begin with `validation.complete`, which runs one. In the order of a run:

- `session`: from the options of the command line to a plan, and back from a validation's directory
- `conditions`: the conditions, scenarios with an id each, from files; `draw`: random ones
- `sides`: what runs a condition, an engine or `recorded` results; `runs`: the numbers of its trials
- `rounds`: runs every condition on both sides, and adds seeds while the answer is open
- `compare`: the divergence of a condition and its summary over many; `ranks`, `checks`: judge it
- `bundles`, `parting`: traces of one condition, and the moment at which they part
- `tables`, `output`: the numbers as text, CSV and JSON. :mod:`tcpscape.report.validation` draws the figures and writes the page.
"""

from tcpscape.validate.compare import Divergence, DivergenceSummary
from tcpscape.validate.conditions import NamedScenario
from tcpscape.validate.rounds import ValidationPlan, ValidationResult, run
from tcpscape.validate.session import ValidationOptions, prepare

__all__ = ["Divergence", "DivergenceSummary", "NamedScenario", "ValidationOptions", "ValidationPlan", "ValidationResult", "prepare", "run"]
