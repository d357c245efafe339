"""What an upload does to calls over a home's link, and which queue and which congestion control mend it.

:class:`~tcpscape.findings.calls.adviser.CallAdviser` runs the trials and returns a :class:`~tcpscape.findings.calls.answer.CallAdvice`. `link` is the
link with the queues that can be put before it, `choice` decides by the runs alone. Begin with `link`.
"""

from tcpscape.findings.calls.adviser import SEEDS, CallAdviser
from tcpscape.findings.calls.answer import CallAdvice
from tcpscape.findings.calls.link import REMEDIES, HomeLink, Remedy, remedies

__all__ = ["REMEDIES", "SEEDS", "CallAdvice", "CallAdviser", "HomeLink", "Remedy", "remedies"]
