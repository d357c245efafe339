"""Settings beside the congestion control that an advice tries: what each one changes in a scenario, where it may matter, and what to type.

A setting is one class here, with a `kind` of its own, and a name in `Setting`. Sources: tcp(7), socket(7), ip-sysctl, tc-fq(8), tc-fq_codel(8),
RFC 3168 (ECN), RFC 7661 (a window after a pause), RFC 8290 (fq_codel). `TCP_NOTSENT_LOWAT` is none of them: it bounds what waits in the sender's
socket, which neither the goodput nor the RTT contains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tcpscape.controls import deployment, spelling
from tcpscape.controls.deployment import Deployment, Host
from tcpscape.reading.files import MIB
from tcpscape.scenario.options import Conditions
from tcpscape.scenario.path import Link
from tcpscape.scenario.scenario import Scenario

Buffer = Literal["receive", "send"]
"""A buffer of TCP: at the host that receives the data, at the host that sends them."""
BLAMED = 0.1
"""Share of the time from which a buffer is to blame."""
SIZE = 64 * MIB
"""Largest size that is tried, bytes, where the path has less …"""
TIMES = 4
"""… and the multiple of what it has otherwise."""
CAUSES: Mapping[Buffer, str] = {"receive": "rwnd", "send": "sndbuf"}
"""Buffer → the cause in what limited a flow."""
PACED = ("bbr", "bbr3", "prague")
"""Congestion controls that pace by themselves."""
OWN_QUEUES = ("fq_codel", "cake")
"""Queues that a bottleneck of the user's own may have instead, the one that every kernel has first."""
MARKING = ("fq_codel", "cake", "dualpi2")
"""Queues that mark packets of connections that negotiate ECN instead of dropping them …"""
MARKING_IF_TOLD = ("codel", "pie", "fq_pie", "red", "choke")
"""… and those that do so with tc's word `ecn`."""


@dataclass(frozen=True, slots=True)
class LargerBuffers:
    """Buffers of TCP that grow by themselves up to a larger size."""

    buffers: tuple[Buffer, ...]
    """What is larger."""
    size: int
    """Largest size of each, bytes."""
    unset: tuple[Buffer, ...] = ()
    """Buffers whose size the program sets on the path as it is, and does not set here."""
    kind: Literal["buffers"] = "buffers"
    """What is set."""

    def on(self, scenario: Scenario) -> Scenario:
        """The scenario with these buffers."""
        kernel: dict[str, Any] = {"tcp_rmem_max": self.size} if "receive" in self.buffers else {}
        kernel |= {"tcp_wmem_max": self.size} if "send" in self.buffers else {}
        fixed = {name: 0 for buffer, name in (("receive", "rcvbuf"), ("send", "sndbuf")) if buffer in self.buffers}
        flows = tuple(flow.model_copy(update=fixed) for flow in scenario.flows)
        return scenario.model_copy(update={"kernel": scenario.kernel.model_copy(update=kernel), "flows": flows})

    def deployments(self) -> tuple[tuple[Host, Deployment], ...]:
        """What to type for each buffer, on its own host."""
        hosts: Mapping[Buffer, Host] = {"receive": "receiver", "send": "sender"}
        return tuple((hosts[buffer], deployment.larger_buffer(buffer, self.size)) for buffer in self.buffers)


@dataclass(frozen=True, slots=True)
class Pacing:
    """The qdisc fq at the sender, which paces every congestion control."""

    kind: Literal["pacing"] = "pacing"
    """What is set."""

    @staticmethod
    def on(scenario: Scenario) -> Scenario:
        """The scenario with fq at the sender's egress."""
        return scenario.model_copy(update={"forward": ("fq", *scenario.forward)})

    @staticmethod
    def deployments() -> tuple[tuple[Host, Deployment], ...]:
        """What to type at the sender."""
        return (("sender", deployment.fq_at_the_sender()),)


@dataclass(frozen=True, slots=True)
class Ecn:
    """Explicit congestion notification: the bottleneck's queue marks packets instead of dropping them."""

    kind: Literal["ecn"] = "ecn"
    """What is set."""

    @staticmethod
    def on(scenario: Scenario) -> Scenario:
        """The scenario in which connections negotiate it."""
        return scenario.model_copy(update={"ecn": True})

    @staticmethod
    def deployments() -> tuple[tuple[Host, Deployment], ...]:
        """What to type at the host that opens the connections."""
        return (("client", deployment.explicit_notification()),)


@dataclass(frozen=True, slots=True)
class WindowAfterPause:
    """The congestion window stays as it is while an application pauses."""

    kind: Literal["window_after_pause"] = "window_after_pause"
    """What is set."""

    @staticmethod
    def on(scenario: Scenario) -> Scenario:
        """The scenario without a slow start after a pause."""
        return scenario.model_copy(update={"kernel": scenario.kernel.model_copy(update={"slow_start_after_idle": False})})

    @staticmethod
    def deployments() -> tuple[tuple[Host, Deployment], ...]:
        """What to type at the sender."""
        return (("sender", deployment.window_after_pause()),)


@dataclass(frozen=True, slots=True)
class OwnQueue:
    """Another queue at the bottleneck, where that is the user's own."""

    queue: str
    """tc's name of the queue."""
    kind: Literal["queue"] = "queue"
    """What is set."""

    def on(self, scenario: Scenario) -> Scenario:
        """The scenario with this queue, of its own size, at the bottleneck."""
        links = tuple(hop.model_copy(update={"queue": self.queue, "buffer": None}) if isinstance(hop, Link) else hop for hop in scenario.bottleneck)
        return scenario.model_copy(update={"bottleneck": links})

    def deployments(self) -> tuple[tuple[Host, Deployment], ...]:
        """What to type at the router whose queue it is."""
        return (("router", deployment.queue_of_a_device(self.queue)),)


Setting = LargerBuffers | Pacing | Ecn | WindowAfterPause | OwnQueue
"""A setting beside the congestion control."""


def blamed(limited_by: Mapping[str, float]) -> tuple[Buffer, ...]:
    """The buffers that held a flow for a good part of its time."""
    return tuple(buffer for buffer, cause in CAUSES.items() if limited_by.get(cause, 0.0) >= BLAMED)


def larger_buffers(path: Conditions, buffers: tuple[Buffer, ...]) -> LargerBuffers:
    """These buffers with a size that is ample for the path."""
    kernel, flow = path.kernel, path.flow
    size = max(SIZE, *(TIMES * (size or 0) for size in (kernel.tcp_rmem_max, kernel.tcp_wmem_max, flow.rcvbuf, flow.sndbuf)))
    fixed = {"receive": flow.rcvbuf, "send": flow.sndbuf}
    return LargerBuffers(buffers, size, tuple(buffer for buffer in buffers if fixed[buffer]))


def may_matter(path: Conditions, cca: str, resent: float, *, own_queue: bool) -> list[Setting]:
    """The settings besides buffers that can change what a congestion control does on a path; `resent`: segments that it sent again."""
    rules: tuple[tuple[Setting, Callable[[], bool]], ...] = (
        (Pacing(), lambda: bool(path.rate) and path.forward_at == "router" and resent > 0 and spelling.split(cca)[0] not in PACED),
        (Ecn(), lambda: bool(path.rate) and _marks(path.queue)),
        (WindowAfterPause(), lambda: path.kernel.slow_start_after_idle is not False and _pauses(path)),
        *((OwnQueue(queue), lambda: own_queue) for queue in OWN_QUEUES if queue != path.queue),
    )
    return [setting for setting, matters in rules if matters()]


def _marks(queue: str | None) -> bool:
    """Whether a queue marks packets of connections that negotiate ECN."""
    words = (queue or "").split()
    if "noecn" in words or not words:
        return False
    return words[0] in MARKING or (words[0] in MARKING_IF_TOLD and "ecn" in words)


def _pauses(path: Conditions) -> bool:
    """Whether the sender has nothing to send from time to time."""
    app = path.flow.app
    return path.flow.player is not None or bool(app.rate or app.response or app.on)
