"""An axis along which a path gets harsher, and the lattice of levels on which a cliff is searched."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tcpscape.errors import refuse

WALK = (0.02, 0.05, 0.08, 0.12, 0.16, 0.2, 0.28, 0.4, 0.7, 1.0)
"""Levels of the first walk along a linear axis, as a share of its length: denser where the published cliffs are (jitter / RTT)."""
LOG_WALK = 10
"""Levels of the first walk along a logarithmic axis."""
JITTER_RESOLUTION = 0.01
"""Step of jitter / RTT: the edge is asked for to ± 1 % of the RTT."""
LOSS_FROM, LOSS_TO, LOSS_RESOLUTION = 1e-4, 0.4, 0.05
"""Loss axis: from one packet in ten thousand (the published studies begin at one in a thousand), in steps of 5 % of the level."""


@dataclass(frozen=True, slots=True)
class Axis:
    """From `gentle` to `harsh`, which may be the smaller number (a rate that falls). `gentle` must not be 0 where `log`."""

    name: str
    unit: str
    gentle: float
    harsh: float
    resolution: float
    """Step of the lattice: in the axis' unit, or a fraction of the level where `log`. The edge is searched to ± one step."""
    origin: float | None = 0.0
    """The level without the impairment; None where every level has a base of its own."""
    log: bool = False

    def __post_init__(self) -> None:
        if self.gentle == self.harsh or (self.log and min(self.gentle, self.harsh) <= 0):
            refuse("axis", f"{self.name} from {self.gentle:g} to {self.harsh:g}", "write two different ends, above 0 where the axis is logarithmic")
        if not self.resolution > 0:
            refuse("resolution", f"{self.resolution:g} is no step", "write for example 0.01")

    def level(self, step: float) -> float:
        """The level at a place of the lattice; `gentle` is step 0."""
        sign = 1 if self.harsh > self.gentle else -1
        if self.log:
            return float(self.gentle * (1 + self.resolution) ** (sign * step))
        return self.gentle + sign * step * self.resolution

    def step(self, level: float) -> float:
        """The place of a level on the lattice, not rounded; −∞ for none at all where the axis is logarithmic."""
        sign = 1 if self.harsh > self.gentle else -1
        if self.log and level <= 0:
            return -sign * math.inf
        if self.log:
            return sign * math.log(level / self.gentle) / math.log1p(self.resolution)
        return sign * (level - self.gentle) / self.resolution

    @property
    def first(self) -> int:
        """The gentlest step that is measured: 1 where step 0 is the origin itself."""
        return 1 if self.gentle == self.origin else 0

    @property
    def last(self) -> int:
        """The harshest step."""
        return max(self.first, round(self.step(self.harsh)))

    def walk(self) -> Iterator[int]:
        """Steps of the first walk, the harshest first."""
        shares = [i / (LOG_WALK - 1) for i in range(LOG_WALK)] if self.log else list(WALK)
        yield from sorted({max(self.first, round(share * self.last)) for share in shares}, reverse=True)


def jitter(rtt_ns: int) -> Axis:
    """Jitter from none to the RTT, ns, in steps of 1 % of the RTT."""
    return Axis("jitter", "ns", 0.0, float(rtt_ns), JITTER_RESOLUTION * rtt_ns)


def loss() -> Axis:
    """Random loss, a fraction, in steps of 5 % of the level."""
    return Axis("loss", "1", LOSS_FROM, LOSS_TO, LOSS_RESOLUTION, log=True)
