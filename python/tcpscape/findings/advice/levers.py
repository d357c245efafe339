"""Settings that the comparison blames: what a congestion control would carry if the buffers that held it were larger.

A window of TCP is the least of the congestion window, the receiver's window and the room in the send buffer. Where one of the last two held a
flow for more than :data:`BLAMED` of its time, another congestion control cannot help as much as that buffer, whose largest size is a sysctl
(`net.ipv4.tcp_rmem`, `net.ipv4.tcp_wmem`; a size that the program sets itself, by SO_RCVBUF or SO_SNDBUF, ends the kernel's own growth, socket(7)).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tcpscape import metrics, stats
from tcpscape.controls.deployment import Deployment, larger_buffer
from tcpscape.findings.advice.choice import WORTH
from tcpscape.metrics.flows import limits
from tcpscape.reading.files import MIB
from tcpscape.scenario.options import Conditions
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.trial import Trial

Buffer = Literal["receive", "send"]
"""A buffer of TCP: at the host that receives the data, at the host that sends them."""
BLAMED = 0.1
"""Share of the time from which a buffer is to blame."""
FULL = 0.5
"""Share of the time from which a larger buffer still holds the flow."""
SIZE = 64 * MIB
"""Largest size that is tried, bytes, where the path has less …"""
TIMES = 4
"""… and the multiple of what it has otherwise."""
MOST = 3
"""Most congestion controls that run with larger buffers, those with the highest goodput."""
CAUSES: Mapping[Buffer, str] = {"receive": "rwnd", "send": "sndbuf"}
"""Buffer → the cause in what limited a flow."""


@dataclass(frozen=True, slots=True)
class Lever:
    """A congestion control with larger buffers, the rest of the path as it is."""

    cca: str
    """Congestion control."""
    buffers: tuple[Buffer, ...]
    """What is larger."""
    size: int
    """Largest size of each, bytes."""
    unset: tuple[Buffer, ...]
    """Buffers whose size the program sets on the path as it is, and does not set here."""
    goodput: Estimate
    """Mean goodput, Mbit/s."""
    gain: Estimate
    """Goodput / that of the same congestion control on the path as it is, paired."""
    against_choice: Estimate
    """Goodput / that of the recommended congestion control on the path as it is, paired."""
    added_rtt: Estimate
    """Mean over the trials of the RTT's 95th percentile less the propagation RTT, ms; NaN where the engine does not see it."""
    limited_by: dict[str, float]
    """Cause → mean share of the time during which it limits the flows then, a fraction; the largest first."""

    @property
    def is_worthwhile(self) -> bool:
        """Whether more than one run shows a gain over the recommended congestion control as it is that is worth a change.

        What fills the larger buffer too, a program that reads slowly for example, gains nothing that lasts.
        """
        is_full = sum(self.limited_by.get(CAUSES[buffer], 0.0) for buffer in self.buffers) > FULL
        return not is_full and self.against_choice.n > 1 and self.against_choice.value >= WORTH and self.against_choice.low > 1

    @property
    def deployments(self) -> tuple[tuple[Buffer, Deployment], ...]:
        """What to type for each buffer, on its own host."""
        return tuple((buffer, larger_buffer(buffer, self.size)) for buffer in self.buffers)


Run = Callable[[Scenario, int | None], Sequence[Trial]]
"""Trials of a scenario under the first of the comparison's seeds, so many of them; None is as many as a lever takes."""


def blamed(limited_by: Mapping[str, float]) -> tuple[Buffer, ...]:
    """The buffers that held a flow for a good part of its time."""
    return tuple(buffer for buffer, cause in CAUSES.items() if limited_by.get(cause, 0.0) >= BLAMED)


def larger(path: Conditions, buffers: Sequence[Buffer], size: int) -> Conditions:
    """The path with these buffers growing up to `size` bytes by themselves."""
    kernel: dict[str, Any] = {"tcp_rmem_max": size} if "receive" in buffers else {}
    kernel |= {"tcp_wmem_max": size} if "send" in buffers else {}
    flow = {name: 0 for buffer, name in (("receive", "rcvbuf"), ("send", "sndbuf")) if buffer in buffers}
    return path.model_copy(update={"kernel": path.kernel.model_copy(update=kernel), "flow": path.flow.model_copy(update=flow)})


def size_for(path: Conditions) -> int:
    """The size that is tried, bytes."""
    kernel, flow = path.kernel, path.flow
    return max(SIZE, *(TIMES * (size or 0) for size in (kernel.tcp_rmem_max, kernel.tcp_wmem_max, flow.rcvbuf, flow.sndbuf)))


def pull(path: Conditions, cca: str, buffers: Sequence[Buffer], run: Run, choice: str) -> Lever:
    """What `cca` carries with these buffers larger, and with the other one too where that holds it then. `choice`: whose goodput is the measure."""
    size = size_for(path)
    first = run(larger(path, buffers, size).scenario(cca), 1)
    more = tuple(b for b in CAUSES if b in buffers or b in blamed(limits([f for t in first for f in t.flows])))
    trials = run(larger(path, more, size).scenario(cca), None)
    goodputs, added = [t.goodput_mbps for t in trials], metrics.find("added_rtt").of
    own, chosen = ([t.goodput_mbps for t in run(path.scenario(name), None)] for name in (cca, choice))
    fixed = {"receive": path.flow.rcvbuf, "send": path.flow.sndbuf}
    return Lever(
        cca=cca,
        buffers=more,
        size=size,
        unset=tuple(buffer for buffer in more if fixed[buffer]),
        goodput=stats.mean(goodputs, "Mbit/s"),
        gain=stats.ratio(goodputs, own),
        against_choice=stats.ratio(goodputs, chosen),
        added_rtt=stats.mean([added(t) for t in trials], "ms"),
        limited_by=limits([f for t in trials for f in t.flows]),
    )
