"""How long acknowledgements took from the capture to the sender, with those among them that later ones overtook.

No segment echoes an ACK that a later one overtook (RFC 7323 §4.3), so that echoes show the early ones alone. Each of the others took at least until
the next echoed one came. From delays that are known, and others known to be at least so long, the product-limit estimate (Kaplan and Meier, Journal
of the American Statistical Association 53, 1958) makes their mean.

A sender that waits for its application or its own pace leaves ACKs without an echo too. It echoes the newest one that came: what it waited is less
than the time until the next was sent. Where echoes come later than that, delays vary, and some ACKs were overtaken.
"""

from __future__ import annotations

import numpy as np

from tcpscape.findings.diagnosis.path.columns import Wire, first_echoes
from tcpscape.findings.diagnosis.path.own import product_limit
from tcpscape.findings.diagnosis.path.state import LEAST_TURNS

LEAST = 0.01
"""Share of the echoed ACKs that count as the least: clocks' ticks spread them."""
OVERDUE = 0.05
"""Share of the echoes later than the next ACK allows, from which on delays vary: lost ACKs make some."""


def usual_delay(w: Wire) -> float | None:
    """The mean delay of ACKs to the sender, ms, on the scale of `Turns.reverse`; None where none was overtaken.

    It is at most that: ACKs that came before a sender which waited count as overtaken too.
    """
    sent, row, place = first_echoes(w)
    order = np.argsort(place, kind="stable")
    place, came = place[order], w.stamp[row[order]]
    if place.size < LEAST_TURNS or sent.size < LEAST_TURNS:
        return None
    known = came - sent[place]
    waited = known - np.quantile(known, LEAST)
    after = np.minimum(place + 1, sent.size - 1)
    if float(np.mean(waited > sent[after] - sent[place] + w.sender_tick)) < OVERDUE:
        return None
    others = np.setdiff1d(np.arange(place[0], place[-1]), place)
    at_least = came[np.searchsorted(place, others)] - sent[others]
    delays = np.concatenate([known, at_least])
    return -product_limit(-delays, np.arange(delays.size) >= known.size)
