"""Metrics: one number of a trial, such as its goodput in Mbit/s.

The main type is :class:`Metric`: name, unit, direction (whether more is better), the function that computes it, and what has to be kept of a
trial for it. :data:`REGISTRY` holds every metric by name, :func:`find` reads what people write. Begin with `registry`; `flows`, `queues`
and `samples` (samples and packets) hold the functions, each file for one part of a trial.

To add a metric: one function in the file of the part that it reads, and one line in `registry`. The tests of the registry cover it then.
"""

from tcpscape.metrics.base import UNKNOWN, Better, Metric, Needs, only
from tcpscape.metrics.flows import goodput, jain, mean_rtt, retransmits
from tcpscape.metrics.registry import REGISTRY, find

__all__ = ["REGISTRY", "UNKNOWN", "Better", "Metric", "Needs", "find", "goodput", "jain", "mean_rtt", "only", "retransmits"]
