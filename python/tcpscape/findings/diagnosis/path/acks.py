"""Acknowledgements that were lost on their way to the capture, by the identification that the receiver counts.

RFC 6864 §4 leaves an identification to the sender where packets are not fragmented; Linux counts it up by one for each packet of a connection.
"""

from __future__ import annotations

import numpy as np

from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path.jitter import share
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.stats import Estimate

FARTHEST = 1_000
"""Identifications that may be missing in a row: a larger step is another count."""
UNSEEN = 2
"""Packets of the receiver that are none of the flow's acknowledgements, such as the answer to a SYN that came again."""


def lost(flow: ObservedFlow) -> Estimate | Reason:
    """The share of the receiver's packets, %, that did not come to the capture; the reason where the identification does not show it.

    A network that thins acknowledgements out looks the same. What is lost between the capture and the sender is not seen.
    """
    facts, acks = flow.facts, flow.acks
    if flow.vantage == "receiver":
        return Reason("seen where it is sent")
    if not (facts.get("id_counts") or (False, False))[1] or "id" not in acks:
        return Reason("identification alike")
    if facts.get("ack_stride", 1) > 1 or facts.get("not_captured_bytes"):
        return Reason("not all captured")
    if acks["len"].max(initial=0) > max((size for size in facts.get("mss") or () if size), default=536):
        return Reason("identification alike")  # parts of a super-packet have one each
    numbers = acks["id"][acks["id"] > 0].astype(np.int64)  # a SYN-ACK has none
    if numbers.size < 2:
        return Reason("identification alike")
    place = np.unique(np.cumsum((np.diff(numbers, prepend=numbers[:1]) + 2**15) % 2**16 - 2**15))
    steps = np.diff(place)
    missing = int(np.sum(steps[steps <= FARTHEST] - 1))
    found = share(missing, int(place.size) + missing)
    return found if missing > UNSEEN else Estimate(found.value, 0.0, found.high, found.n, found.unit)
