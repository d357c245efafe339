"""Acknowledgements on their way to the capture: which were lost, by the identification that the receiver counts, and whether others' data delay them.

RFC 6864 §4 leaves an identification to the sender where packets are not fragmented; Linux counts it up by one for each packet of a connection.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path.jitter import are_independent, mean_by_blocks, order_is_kept, share, student
from tcpscape.findings.diagnosis.path.state import Fit
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.stats import Estimate

FARTHEST = 1_000
"""Identifications that may be missing in a row: a larger step may be another count, or an outage of which nothing tells how long it was."""
BLOCKS = 24
"""Parts of the flow by whose differences the interval is told: losses may come in bursts."""
UNSEEN = 2
"""Packets of the receiver that are none of the flow's acknowledgements, such as the answer to a SYN that came again."""


def lost(flow: ObservedFlow) -> Estimate | Reason:
    """The share of the receiver's packets, %, that did not come to the capture; the reason where the identification does not show it.

    A network that thins acknowledgements out looks the same, and so does a capture that drops packets without saying so. What is lost between
    the capture and the sender is not seen.
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
    return _missing(acks)


def _missing(acks: Mapping[str, Any]) -> Estimate | Reason:
    """The share, %, of the identifications in the receiver's count that no packet has; the reason where they are no count."""
    numbers = acks["id"][acks["id"] > 0].astype(np.int64)  # a SYN-ACK has none
    if numbers.size < 2:
        return Reason("identification alike")
    unwrapped = numbers[0] + np.cumsum((np.diff(numbers, prepend=numbers[:1]) + 2**15) % 2**16 - 2**15)
    place = np.unique(unwrapped)
    if np.diff(place).max(initial=0) > FARTHEST:
        return Reason("identification alike")
    of_all = np.arange(place[0], place[-1] + 1)
    are_lost = (~np.isin(of_all, place)).astype(float)
    if "beside" in acks:  # those without a row were numbered before the next one that has one
        beside = acks["beside"][acks["id"] > 0][1:].astype(float)
        np.subtract.at(are_lost, np.maximum(unwrapped[1:] - 1 - of_all[0], 0), beside)
    are_lost = are_lost[of_all % 2**16 > 0]  # the count passes 0, which is left out above
    missing = max(0, round(float(are_lost.sum())))
    found = share(missing, are_lost.size)
    _, error, blocks = mean_by_blocks(are_lost, np.arange(are_lost.size) * BLOCKS // are_lost.size)
    half = 100 * student(blocks) * error if blocks > 1 else 0.0  # losses one after the other
    low, high = (min(found.low, found.value - half), max(found.high, found.value + half)) if missing else (found.low, found.high)
    return Estimate(found.value, max(0.0, low) if missing > UNSEEN else 0.0, min(100.0, high), found.n, found.unit)


def keep_order(f: Fit, sigma: float) -> bool | None:
    """Whether acknowledgements keep their order though independent delays of this spread, ms, would change it; None where it does not show."""
    return order_is_kept(f.wire.ack_stamp, f.wire.ack_t, sigma) if f.wire.tick and not f.is_receiver else None


def are_queued(f: Fit) -> bool:
    """Whether acknowledgements, of which it is not known that they alone have a jitter, keep their order and come as late again and again.

    So does what queues behind data of others, which come and go as their own acknowledgements do.
    """
    w = f.wire
    if f.jitter_on is not None or f.reverse is None or not f.reverse.is_there:
        return False
    sigma = math.sqrt(f.reverse.variance)
    return bool(keep_order(f, sigma)) and not are_independent(w.ack_stamp, w.ack_t - w.ack_stamp, sigma)
