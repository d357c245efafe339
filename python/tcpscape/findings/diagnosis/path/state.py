"""What the steps of a fit have found so far."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tcpscape.findings.diagnosis.fitted import Direction
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path import jitter as jitters
from tcpscape.findings.diagnosis.path.bottleneck import Bottleneck, Delays
from tcpscape.findings.diagnosis.path.columns import Floats, Wire
from tcpscape.findings.diagnosis.path.jitter import Spread
from tcpscape.findings.diagnosis.path.samples import Samples, Turns


@dataclass(slots=True)
class Fit:
    """What the steps have found so far."""

    flow: ObservedFlow
    wire: Wire
    behind: Samples
    """Delays from the capture to the receiver and back."""
    before: Turns
    """Delays from the capture to the sender and back."""
    reasons: dict[str, str] = field(default_factory=dict)
    delays: Delays | None = None
    bottleneck: Bottleneck | None = None
    is_before: bool = False
    """Whether the bottleneck lies between the sender and the capture."""
    wait: Floats = field(default_factory=lambda: np.empty(0))
    """Of each segment: delay by the queue and by the change of order, ms; NaN where it is not known."""
    queue: Floats = field(default_factory=lambda: np.empty(0))
    """Of each segment: its time in the queue, ms."""
    hidden: float = jitters.FLOOR
    """Most that a forward jitter that was not seen can have, ms."""
    before_queue: tuple[float, float, float] | None = None
    """Standard deviation of the forward delay before the queue, ms, and its interval."""
    jitter_on: Direction | None = None
    forward: Spread | None = None
    reverse: Spread | None = None

    @property
    def is_receiver(self) -> bool:
        """Whether the capture is where the data arrive."""
        return self.flow.vantage == "receiver"

    @property
    def has_before(self) -> bool:
        """Whether a part of the path lies before the capture."""
        return self.flow.vantage != "sender"
