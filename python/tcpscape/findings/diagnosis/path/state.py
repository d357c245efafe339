"""What the steps of a fit have so far (:class:`Fit`), and what several of them ask of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tcpscape.findings.diagnosis.fitted import Direction
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path import jitter as jitters
from tcpscape.findings.diagnosis.path.bottleneck import FittedBottleneck, QueueDelays
from tcpscape.findings.diagnosis.path.columns import REORDERED, Samples, Turns, Wire
from tcpscape.findings.diagnosis.path.jitter import Spread
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.stats.estimate import Floats


@dataclass(slots=True)
class Fit:
    """What the steps of a fit have so far."""

    flow: ObservedFlow
    wire: Wire
    behind: Samples
    """Delays from the capture to the receiver and back."""
    before: Turns
    """Delays from the capture to the sender and back."""
    step: float = 0.0
    """ms by which the capture's clock steps, so that each delay may be too short or too long by as much."""
    reasons: dict[str, Reason] = field(default_factory=dict)
    delays: QueueDelays | None = None
    bottleneck: FittedBottleneck | None = None
    is_before: bool = False
    """Whether the bottleneck lies between the sender and the capture."""
    wait: Floats = field(default_factory=lambda: np.empty(0))
    """Of each segment: delay by the queue and by the change of order, ms; NaN where it is not known."""
    queue: Floats = field(default_factory=lambda: np.empty(0))
    """Of each segment: its time in the queue, ms."""
    hidden: float = jitters.FLOOR
    """Most that a forward jitter that was not seen can have, ms."""
    left: tuple[float, float] = (0.0, 0.0)
    """Most that the jitter of the data and of the ACKs can have beside what was seen, ms."""
    before_queue: tuple[float, float, float] | None = None
    """Standard deviation of the forward delay before the queue, ms, and its interval."""
    beside: Spread | None = None
    """Of the forward delay on the other side of the capture than the queue."""
    jitter_on: Direction | None = None
    varies_in_order: bool = False
    """Whether the forward delay varies, and packets keep an order that independent delays of that size would change."""
    forward: Spread | None = None
    reverse: Spread | None = None
    reverse_behind: Spread | None = None
    """Of the ACKs' delay behind the capture, on the way to it."""

    @property
    def is_receiver(self) -> bool:
        """Whether the capture is where the data arrive."""
        return self.flow.vantage == "receiver"

    @property
    def sigma_before_queue(self) -> float:
        """Standard deviation of the forward delay before the queue, ms; 0 where none was seen."""
        return self.before_queue[0] if self.before_queue else 0.0

    @property
    def has_before(self) -> bool:
        """Whether a part of the path lies before the capture."""
        return self.flow.vantage != "sender"


LEAST_TURNS = 30
"""Turns below which they do not tell the part before the capture."""
SHARP = 0.01
"""ms in which the least delays lie where only queues and waiting lengthen the others."""
CUT_OFF, INDEPENDENT = 0.01, 0.15
"""Share of the delays below which those at the least are few; spread of neighbours, of the median above the least, from which they are independent:
of a normal jitter that is cut off at three deviations it is a third."""
STILL = 0.1
"""ms of a hidden jitter, above which the least round trip is not taken for the base."""
SHORT = 0.5
"""Share of packets that met a short queue, below which a jitter before it is hidden where it keeps the order."""
REACH = 5.5
"""Deviations that the least of many delays lies below their mean, at the most."""
ONE_SIDED = 1.8
"""(q50 − q16) / (q16 − q2.5) above which a delay is longer than its least by waiting: 1.03 of a normal jitter, 2.5 of an even wait."""


def is_reordered(f: Fit) -> bool:
    """Whether data came in another order than they were sent, more often than a path without jitter does."""
    return int(np.sum(f.wire.fate == REORDERED)) > max(10, 0.003 * f.wire.t.size)


def is_varying(f: Fit) -> bool:
    """Whether a jitter was seen, or delays that vary in order."""
    return is_reordered(f) or f.varies_in_order or any(s is not None and s.is_there for s in (f.forward, f.reverse))


def hides_jitter(f: Fit) -> bool:
    """Whether most packets met a queue, which lets them leave at its rate whenever they came: it hides a jitter before it that keeps their order."""
    if f.bottleneck is None:
        return False
    met = f.queue[f.before.row if f.is_before else f.behind.row]
    met = met[~np.isnan(met)]
    return met.size > 0 and float(np.mean(met <= 2 * 1514 * 8e-3 / f.bottleneck.rate)) < SHORT


def is_sharp(x: Floats) -> bool:
    """Whether several delays are the least one to within 0.01 ms, and few are just above: of independent jitter there are fewest at its end.

    A jitter that is cut off where it would be less than nothing has a sharp end too. Few delays are there, and neighbours differ as much as any
    two, while a queue delays neighbours alike.

    :param x: in the order of sending.
    """
    above = x - x.min()
    first, second = int(np.sum(above < SHARP)), int(np.sum((above >= SHARP) & (above < 2 * SHARP)))
    is_cut_off = first < CUT_OFF * x.size and neighbours(x) > INDEPENDENT * float(np.median(above))
    return first >= 5 and first > 3 * second and not is_cut_off


def starts_late(f: Fit) -> bool:
    """Whether the capture begins in mid-connection and the queue, by what it shows, was busy for more than half of the packets."""
    if not f.flow.facts.get("begins_in_mid_connection") or f.bottleneck is None:
        return False
    b = f.bottleneck
    return float(np.mean(b.queue > 1514 * 8e-3 / b.rate)) > 0.5


def neighbours(x: Floats) -> float:
    """Standard deviation of independent delays, by the middle half of the differences of neighbours: jumps between bursts are not in it."""
    low, high = np.quantile(np.diff(x), (0.25, 0.75))
    return float(high - low) / 1.349 / math.sqrt(2)


def is_one_sided(x: Floats, tick: float = 0.0) -> bool:
    """Whether delays are spread by waiting, which has a sharp lower end, rather than by jitter.

    :param tick: ms of the timestamps' tick that rounds them, which alone spreads them so.
    """
    low, lower, middle = np.quantile(x, (0.025, 0.16, 0.5))
    return bool(middle - lower > max(0.02 + ONE_SIDED * (lower - low), 0.6 * tick))
