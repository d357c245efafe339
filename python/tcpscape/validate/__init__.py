"""Validation: the same conditions on two engines, and their divergence.

`session` reads what is asked, `conditions` and `draw` make the conditions, `sides` run them (an engine, or recorded results), `rounds` adds seeds
where the answer is open, `compare`, `ranks` and `checks` judge, `explain` looks into one condition (`bundles`, `parting`), `report` and
`output` say it.
"""

from tcpscape.validate.compare import Comparison, Summary
from tcpscape.validate.conditions import Condition
from tcpscape.validate.rounds import Outcome, Request, run
from tcpscape.validate.session import Asked, prepare

__all__ = ["Asked", "Comparison", "Condition", "Outcome", "Request", "Summary", "prepare", "run"]
