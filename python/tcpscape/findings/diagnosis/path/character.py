"""What kind of jitter a path has: its distribution, whether it keeps the order of packets, its correlation in time."""

from __future__ import annotations

import numpy as np

from tcpscape.findings.diagnosis.path import base
from tcpscape.findings.diagnosis.path import jitter as jitters
from tcpscape.findings.diagnosis.path.columns import Floats
from tcpscape.findings.diagnosis.path.state import Fit
from tcpscape.stats import Estimate

LARGE = 3.0
"""Ticks of the timestamps' clock that the jitter's standard deviation must have for its distribution to show through the rounding."""


def distribution(f: Fit) -> str | None:
    """tc's name of the jitter's distribution; None with a reason."""
    known = variation(f)
    if known is None or (f.bottleneck is not None and f.jitter_on != "reverse"):
        f.reasons["distribution"] = "the delays of one direction, without a queue's, were not seen well enough"
        return None
    name = jitters.shape(known[1])
    if name is None:
        f.reasons["distribution"] = "too few delays"
    return name


def order_kept(f: Fit) -> bool | None:
    """Whether the jitter keeps the order; None with a reason."""
    if f.jitter_on in (None, "none"):
        f.reasons["order_kept"] = "there is no jitter that could change it" if f.jitter_on == "none" else "it is not known which direction has jitter"
        return None
    if f.jitter_on != "reverse" and base.is_reordered(f):
        return False
    w = f.wire
    sigma = np.sqrt(max(f.forward.variance if f.forward and f.jitter_on != "reverse" else 0.0, f.reverse.variance if f.reverse else 0.0))
    if f.jitter_on == "reverse":
        kept = jitters.order_is_kept(w.ack_stamp, w.ack_t, float(sigma)) if w.tick else None
    else:
        order = np.argsort(w.t, kind="stable")
        place = np.searchsorted(w.ack, (w.seq + w.len)[order]).astype(float)
        kept = jitters.order_is_kept(w.t[order], place, float(sigma))
    if kept is None:
        f.reasons["order_kept"] = "packets were too far apart for the jitter to change their order"
    return kept


def correlation(f: Fit) -> Estimate | None:
    """Time constant of the jitter's correlation, ms; None with a reason."""
    known = variation(f)
    found = jitters.correlation(*known) if known is not None else None
    if found is None or known is None or (f.bottleneck is not None and f.jitter_on != "reverse"):
        f.reasons["correlation_ms"] = "the delays of one direction, without a queue's, were not seen well enough"
        return None
    return Estimate(found[0], min(found), max(found), int(known[0].size), "ms")


def variation(f: Fit) -> tuple[Floats, Floats] | None:
    """Times and delays of the direction with the jitter, in the order of sending, ms; None where they do not stand out of the rounding."""
    s, w = f.behind, f.wire
    if f.jitter_on not in ("forward", "reverse", "both") or not w.tick or s.row.size < jitters.LEAST:
        return None
    one = f.reverse if f.jitter_on == "reverse" else f.forward
    if one is None or one.variance < (LARGE * w.tick) ** 2:
        return None
    x = s.reverse if f.jitter_on == "reverse" else s.forward - f.queue[s.row]
    at = w.ack_stamp[s.ack] if f.jitter_on == "reverse" else s.at
    keep = jitters.inliers(x) & ~np.isnan(x)
    order = np.argsort(at[keep], kind="stable")
    return at[keep][order], x[keep][order]
