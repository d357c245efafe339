"""The steps of the capture's clock, and what they add to the errors of what was measured by it.

A time is rounded down to a step. So a delay may be too long or too short by nearly a step, the least of many delays is too short by nearly one, and
the delays vary by √(1/6) of one though they are all the same.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path.columns import MS
from tcpscape.findings.diagnosis.path.state import Fit
from tcpscape.stats import Estimate


def step_of(flow: ObservedFlow) -> float:
    """The clock's step, ms: all times are multiples of it, from the first one on."""
    times = np.concatenate([np.asarray(rows["t"], dtype=np.int64) for rows in (flow.segments, flow.acks)])
    return float(np.gcd.reduce(times - times[0])) / MS


def round_trip(f: Fit, rtt: Estimate | None) -> Estimate | None:
    """A round trip, ms, whose interval has a step for each of its parts."""
    steps = f.step * ((not f.is_receiver) + f.has_before)
    return rtt and replace(rtt, low=max(0.0, rtt.low - steps), high=rtt.high + steps)


def jitter(f: Fit, sigma: Estimate | None) -> Estimate | None:
    """A jitter, ms, whose interval has what rounding may be of it, and what it hides."""
    return sigma and replace(sigma, low=math.sqrt(max(0.0, sigma.low**2 - f.step**2 / 6)), high=max(sigma.high, f.step / 2))


def buffer(f: Fit, size: Estimate, rate: float) -> Estimate:
    """A buffer, bytes, whose interval has what the bottleneck serves in a step. :param rate: Mbit/s."""
    served = f.step * rate * 125
    return replace(size, low=max(0.0, size.low - served), high=size.high + served)
