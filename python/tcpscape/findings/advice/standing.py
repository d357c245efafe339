"""The results of one congestion control on a path, and those of the path under the other assumption about the order of packets."""

from __future__ import annotations

from dataclasses import dataclass

from tcpscape.campaign.video import Viewing
from tcpscape.findings import damage
from tcpscape.findings.advice.choice import Decision
from tcpscape.findings.chaos import zone
from tcpscape.findings.cliff.levels import Cliff
from tcpscape.stats import Estimate

NEAR = 0.8
"""Share of the jitter at the lower end of the cliff's interval from which a stable path is near the cliff."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The results of one congestion control on the path."""

    cca: str
    obstacle: str
    """Why it cannot be deployed; empty where it can."""
    goodput: Estimate
    """Mean, Mbit/s."""
    added_rtt: Estimate
    """Mean over the runs of the RTT's 95th percentile less the propagation RTT, ms; NaN where the engine does not see it."""
    median: Estimate
    """Of the goodput, Mbit/s."""
    cv: Estimate
    against_best: Estimate
    """Goodput / that of the congestion control with the highest one that can be deployed, paired."""
    retransmits: Estimate
    limited_by: dict[str, float]
    """Mean share of the time that each cause limited the flows, the largest first."""
    needed: int
    """Measurements for ± 10 %."""
    cliff: Cliff
    damage: tuple[damage.Damage, ...]

    @property
    def side(self) -> zone.Side:
        """The side of its measured cliff on which the path stands."""
        return zone.side(self.cliff.here) if self.cliff.here else "stable"

    @property
    def stands(self) -> str:
        """:attr:`side`, or that a stable path is near the cliff."""
        edge, here = self.cliff.edge, self.cliff.here
        is_near = self.side == "stable" and edge is not None and here is not None and here.at >= NEAR * edge.low
        return "near the cliff" if is_near else self.side


@dataclass(frozen=True, slots=True)
class OtherOrder:
    """What the path would carry if jitter treated the order of packets the other way."""

    order: str
    """As `--order` has it: `reorder`, `keep`."""
    decision: Decision | None
    """None where the engine cannot run it."""
    goodputs: dict[str, Estimate]
    """Congestion control → mean, Mbit/s."""
    views: dict[str, Viewing]
    """Congestion control → what a viewer sees; empty without players."""
    changes: bool
    """Whether another congestion control would be recommended, as far as the runs decide."""
