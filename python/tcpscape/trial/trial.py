"""The results of one scenario with one seed on one engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpscape.formats import stamped
from tcpscape.trial.flow import FlowResult
from tcpscape.trial.parts import plain
from tcpscape.trial.traffic import ProbeResult, TransfersResult

if TYPE_CHECKING:
    import polars as pl


LOST = 2**64 - 1
"""Delay of a packet of a probe that did not arrive, in samples, ns."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The results of a scenario with one seed on one engine."""

    scenario: str
    """Name of the scenario."""
    cca: str
    """Congestion controls in it."""
    address: str
    """Content address of scenario, seed, engine and model."""
    seed: int
    """Number from which all random numbers follow."""
    engine: str
    """Engine that ran it."""
    version: str
    """Version of the model, or of the engine."""
    duration: float
    """Simulated or real time, s."""
    flows: tuple[FlowResult, ...]
    """Results of each connection, in the order of the scenario."""
    probes: tuple[ProbeResult, ...] = ()
    """Results of each probe, in the order of the scenario."""
    transfers: tuple[TransfersResult, ...] = ()
    """Results of each entry of the scenario's transfers."""
    caveats: tuple[str, ...] = ()
    """What limits the validity of the result, a sentence each."""
    path_rtt_ms: float | None = None
    """Propagation RTT of the path, without jitter and queues, ms; None where the source of the trial does not know the path."""
    hash: str | None = None
    """Hash of the whole trace: the same scenario and seed give the same hash."""
    events: int | None = None
    """Events that the simulator handled; None of other engines."""
    queues: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    """Reports of the path's queues."""
    kernel: str | None = None
    """Name and release of the real kernel that ran; None where none did."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """A real kernel's counters that are not 0 (`sender.TcpExt.TCPTimeouts`)."""
    check: Mapping[str, Any] = field(default_factory=dict)
    """What a testbed reports about its own validity; each problem in it is a caveat too."""
    hook_cost: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Where a congestion control is Python code: calls of its `on_ack` (`acks`), s in its hooks (`hooks_s`), s in all (`run_s`). These are
    measured times, which differ from run to run."""
    samples: pl.DataFrame | None = field(default=None, compare=False, repr=False)
    """Samples of each flow over time, where they were kept."""
    queue_samples: pl.DataFrame | None = field(default=None, compare=False, repr=False)
    """Samples of each queue over time, where they were kept."""
    packets: pl.DataFrame | None = field(default=None, compare=False, repr=False)
    """Packets at the sender, where they were kept."""
    probe_samples: pl.DataFrame | None = field(default=None, compare=False, repr=False)
    """Each packet of each probe, where samples were kept: `t_ns` (when it was sent), `probe`, `delay_ns` (:data:`LOST` of one that was lost)."""
    sender_events: pl.DataFrame | None = field(default=None, compare=False, repr=False)
    """What happened to the senders and when, where it was recorded: a row for each moment, with by how much each counter grew then."""

    @property
    def goodput_mbps(self) -> float:
        """Sum of the flows' goodputs, each over its own time, Mbit/s."""
        return sum(f.goodput_mbps for f in self.flows)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them (:class:`tcpscape.schemas.trial.TrialDocument`)."""
        return stamped("trial", {
            "scenario": self.scenario, "cca": self.cca, "seed": self.seed, "engine": self.engine, "version": self.version,
            "duration": self.duration, "path_rtt_ms": self.path_rtt_ms, "goodput_mbps": self.goodput_mbps, "flows": [f.to_dict() for f in self.flows],
            "queues": [dict(q) for q in self.queues], "caveats": list(self.caveats), "events": self.events, "hash": self.hash,
            "kernel": self.kernel, "counters": dict(self.counters), "check": dict(self.check), "hook_cost": dict(self.hook_cost),
            **({"probes": plain(self.probes)} if self.probes else {}),
            **({"transfers": plain(self.transfers)} if self.transfers else {}),
        })  # fmt: skip
