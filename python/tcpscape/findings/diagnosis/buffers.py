"""The size of a socket's buffer that held a flow for most of its time, settled by replays.

What a buffer allows is known from the largest flight or window (:mod:`tcpscape.findings.diagnosis.hosts`), but buffers of several sizes have the same
largest one and differ in how often they reach it. Where the buffer is what the flow's goodput follows from, the size near the first guess whose run
carries what was observed is the flow's.
"""

from __future__ import annotations

import math
from dataclasses import replace

from tcpscape.findings.diagnosis.observed import Cause
from tcpscape.findings.diagnosis.replay import seen_goodput
from tcpscape.findings.diagnosis.runs import Lab

HELD = 0.5
"""Share of its time for which the buffer must have held the flow."""
FACTORS = (1.0, 0.7, 0.8, 0.9, 1.1, 1.2, 1.35, 1.5)
"""Sizes that are tried, as multiples of the guess, which comes first."""
NEARER = 0.02
"""Difference of |ln goodput| from which another size is nearer."""
BUFFERS: tuple[tuple[str, Cause], ...] = (("sndbuf", "send_buffer"), ("rcvbuf", "receive_window"))
"""Field of a flow, and the cause that it is for."""


def fitted(lab: Lab) -> Lab:
    """The same runs with the buffer that carries what was observed."""
    hosts, seen = lab.fit.hosts, seen_goodput(lab)
    held = [name for name, cause in BUFFERS if name in hosts.flow and hosts.shares.get(cause, 0.0) >= HELD]
    if not held or "read" in hosts.flow or not seen:
        return lab
    lab.settings.say("the size of the buffer")
    best, distance = lab, math.inf
    for factor in FACTORS:
        trial = _with(lab, held[0], round(int(hosts.flow[held[0]]) * factor))
        goodput = trial.central(lab.own, [0])[0].goodput_mbps
        away = abs(math.log(goodput / seen)) if goodput > 0 else math.inf
        if away < distance - NEARER:
            best, distance = trial, away
    return best


def _with(lab: Lab, name: str, size: int) -> Lab:
    """The same runs with this size of a buffer, which the kernel allows."""
    hosts = lab.fit.hosts
    limit = "wmem_max" if name == "sndbuf" else "rmem_max"
    kernel = {**hosts.kernel, limit: max(size, int(hosts.kernel.get(limit, 0)))}
    return replace(lab, fit=replace(lab.fit, hosts=replace(hosts, flow={**hosts.flow, name: size}, kernel=kernel)))
