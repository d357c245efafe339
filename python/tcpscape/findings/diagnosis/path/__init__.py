"""The path of a flow, fitted to what its packets show (:mod:`fitting`), or samples of TCP_INFO where there are no packets: :func:`fit`.

`columns` makes delays of single packets, `bottleneck` finds the packets that entered the bottleneck's queue and fits its rate, `base` has the round
trip without the queue, `jitter`, `losses` and `changes` read the rest. `fitting` is the order in which they are called. The method and its measured
accuracy: docs/models/methods/path-fit.md.
"""

from tcpscape.findings.diagnosis.fitted import FittedPath
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path import fitting, from_samples
from tcpscape.findings.diagnosis.reasons import Reason


def fit(flow: ObservedFlow) -> FittedPath:
    """The path that explains a flow; None in a field that is not identifiable, with the reason in `reasons`."""
    if flow.facts.get("data_missing"):
        return fitting.nothing(Reason("data missing"))
    return fitting.fit(flow) if len(flow.segments.get("t", ())) else from_samples.fit(flow)
