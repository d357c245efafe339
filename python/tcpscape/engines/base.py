"""The interface of an engine. A new engine is a file with a subclass of :class:`Engine` and a line in the registry; the contract test covers it.

Every engine that runs a plan (the model, the virtual and the live engine) gives its rows in the form of `crates/plan/src/results.rs`; :func:`trial`
makes the results of a trial of them: flows, probes and transfers with the names that their scenario gives them.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpscape.controls import spelling
from tcpscape.errors import EngineError
from tcpscape.scenario.flows import Flow
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture, FlowResult, ProbeResult, ResponseResult, Rtt, SizeClass, TransfersResult, Trial

if TYPE_CHECKING:
    import polars as pl


INTERRUPTED = "engine: the trial was interrupted; run it again"
"""The message of the EngineError of a trial that :meth:`Engine.stop` ended."""


class Engine(ABC):
    """Runs a scenario once for each seed. The same scenario and seed give the same trial (see :attr:`repeatable`)."""

    name: str
    about: str
    repeatable: bool = True
    """Whether the same scenario and seed give the same trial to the last bit; otherwise trials differ within the run-to-run spread."""
    unobtrusive: bool = True
    """Whether recording (samples, packets) leaves the trial as it is."""
    at_once: int | None = None
    """Most trials that run beside each other on a machine; None is as many as there are cores."""

    @classmethod
    def of(cls, variant: str | None) -> Engine:
        """The engine, or its variant where it has variants (`virtual:NAME`)."""
        if variant is not None:
            raise EngineError(f"engine: {cls.name} has no variants; leave out :{variant}")
        return cls()

    def seconds(self, scenario: Scenario) -> float:
        """Seconds of a core that a trial takes at most, about; 0 where that is not known."""
        return 0.0

    def unavailable(self) -> str | None:
        """Why it cannot run on this machine, and what to do about that; None where it can."""
        return None

    @property
    @abstractmethod
    def version(self) -> str:
        """Version and model tag; results of different versions are never mixed."""

    @abstractmethod
    def check(self, scenario: Scenario) -> None:
        """Raises a :class:`~tcpscape.errors.TcpscapeError` of one line for a scenario that it cannot run."""

    @abstractmethod
    def run(self, scenario: Scenario, seeds: Sequence[int], *, threads: int = 1, capture: Capture = Capture()) -> list[Trial]:
        """The trials of a scenario, in the order of `seeds`, on up to `threads` threads."""

    def ccas(self) -> list[str]:
        """Names of the congestion controls that it has, as in Linux; empty where it accepts any name."""
        return []

    def refuse_python_controls(self, scenario: Scenario) -> None:
        """Raises EngineError for a congestion control that is Python code."""
        for flow in scenario.flows:
            if spelling.is_class(flow.cca):
                raise EngineError(f"cca: {flow.cca} is Python code, which the {self.name} engine cannot run; use --engine model")

    def refuse_programs(self, scenario: Scenario) -> None:
        """Raises EngineError for a scenario with programs, which take a kernel."""
        if scenario.programs:
            raise EngineError(f"programs: the {self.name} engine has no kernel to run a command; use --engine virtual or live")

    def verify(self, scenarios: Sequence[Scenario]) -> list[str]:
        """Measures, before a campaign, whether the machine can run it; says in a line for each measurement what it found.

        :raises EngineError: it cannot, or the engine has nothing to measure.
        """
        raise EngineError(f"verify: the {self.name} engine does not run in real time, so there is nothing to verify; leave out --verify")

    def stop(self) -> None:  # noqa: B027 (most engines have nothing to end)
        """Ends running trials, from another thread, after an interrupt. Their calls of :meth:`run` raise EngineError."""

    @classmethod  # noqa: B027 (most engines leave nothing running)
    def close(cls) -> None:
        """Ends what engines of this kind keep running in this process beyond a trial. They can be used again afterwards."""

    def write_pcap(self, scenario: Scenario, seed: int, path: Path) -> None:
        """Writes the packets of one trial to `path`, as pcapng or pcap."""
        raise EngineError(f"pcap: the {self.name} engine sees no packets; use --engine model")

    def address(self, scenario: Scenario, seed: int) -> str:
        """Content address of a trial."""
        return self.addresses(scenario, [seed])[0]

    def addresses(self, scenario: Scenario, seeds: Sequence[int]) -> list[str]:
        """Content addresses of a scenario's trials, one for each seed."""
        return addresses_of(self.name, self.version_for(scenario), scenario, seeds)

    def version_for(self, scenario: Scenario) -> str:
        """The version, with all else that decides on a trial of this scenario and is not in it."""
        return self.version

    @property
    def spec(self) -> str:
        """The text from which `engines.make` makes an equal engine: its name, with the variant where it has one."""
        return self.name


def addresses_of(engine: str, version: str, scenario: Scenario, seeds: Sequence[int]) -> list[str]:
    """Content addresses of a scenario's trials on an engine of this name and version, which need not be here."""
    prefix = f"{engine}|{version}|{scenario.address()}"
    return [hashlib.sha256(f"{prefix}|{seed}".encode()).hexdigest()[:24] for seed in seeds]


EngineRow = Mapping[str, Any]
"""A summary as an engine gives it."""
Columns = Mapping[str, tuple[str, Any]]
"""A table: numpy's type and the buffer of each column."""


def trial(engine: Engine, scenario: Scenario, seed: int, summary: EngineRow, tables: Mapping[str, Columns], capture: Capture, **own: Any) -> Trial:
    """The trial that a summary and tables are; `own`: fields that the engine makes itself, in place of those made here or beside them.

    Its caveats are those of the summary, then the engine's own; one that stands twice is kept once.
    """
    asked = {"samples": capture.samples_ns, "queue_samples": capture.queue_samples_ns, "probe_samples": capture.samples_ns and scenario.probes}
    fields: dict[str, Any] = {
        "scenario": scenario.name,
        "cca": scenario.cca,
        "seed": seed,
        "engine": engine.name,
        "version": engine.version,
        "duration": summary["duration_ns"] / 1e9,
        "path_rtt_ms": scenario.rtt_ns / 1e6,
    }
    if scenario.probes:
        fields["probes"] = probe_results(scenario, summary.get("probes", ()))
    if scenario.transfers:
        fields["transfers"] = transfers_results(scenario, summary.get("transfers", ()))
    if "address" not in own:
        fields["address"] = engine.address(scenario, seed)
    if "queues" not in own:
        fields["queues"] = tuple(summary.get("queues", ()))
    fields.update((name, frame(tables[name])) for name, is_kept in asked.items() if is_kept and name in tables)
    caveats = tuple(dict.fromkeys((*summary.get("caveats", ()), *own.pop("caveats", ()))))
    return Trial(**fields, **own, caveats=caveats)


def frame(columns: Columns) -> pl.DataFrame:
    """A frame of columns that are given as `(dtype, buffer)`, without copying rows."""
    import numpy as np
    import polars as pl

    return pl.DataFrame({name: pl.Series(name, np.frombuffer(data, dtype=dtype)) for name, (dtype, data) in columns.items()})


def flow_results(scenario: Scenario, rows: Sequence[EngineRow]) -> tuple[FlowResult, ...]:
    """The flows of a trial, each with the label that the scenario gives its congestion control (`cubic:hystart=0`), its group and its direction."""
    return tuple([_flow(scenario, group, flow, row) for (group, flow), row in zip(_connections(scenario), rows, strict=True)])


def probe_results(scenario: Scenario, rows: Sequence[EngineRow]) -> tuple[ProbeResult, ...]:
    """The probes of a trial, by their names."""
    return tuple(
        ProbeResult(
            name=probe.name,
            kind=probe.kind,
            direction=probe.direction,
            sent=row["sent"],
            received=row["received"],
            delay_ms=_times(row["delay_ms"]),
            jitter_ms=row["jitter_ms"] if row["received"] > 1 else None,
            reordered=row["reordered"],
            path_rtt_ms=scenario.rtt_of(probe) / 1e6,
            due=row["due"],
            lost=row["lost"],
            media_mbps=row["media_bytes"] * 8e3 / probe.span(scenario.duration) if "media_bytes" in row else None,
        )
        for probe, row in zip(scenario.probes, rows, strict=True)
    )


def transfers_results(scenario: Scenario, rows: Sequence[EngineRow]) -> tuple[TransfersResult, ...]:
    """What became of the connections of each entry of the scenario's transfers."""
    return tuple(
        TransfersResult(
            cca=entry.cca,
            classes=tuple(SizeClass(**{**c, "completion_ms": _times(c["completion_ms"])}) for c in row["classes"]),
            bytes_received=row["bytes_received"],
            retransmits=row["retransmits"],
        )
        for entry, row in zip(scenario.transfers, rows, strict=True)
    )


def _connections(scenario: Scenario) -> Iterator[tuple[int, Flow]]:
    """The entry of each connection with its number, in the order of a trial's flows."""
    return ((group, flow) for group, flow in enumerate(scenario.flows) for _ in range(flow.count))


def _flow(scenario: Scenario, group: int, flow: Flow, row: EngineRow) -> FlowResult:
    named = {**row, "cca": flow.cca, "group": group, "direction": flow.direction}
    if scenario.is_topology:
        named["path_rtt_ms"] = scenario.rtt_of(flow) / 1e6
    if responses := row.get("responses"):
        named["responses"] = ResponseResult(count=responses["count"], time_ms=_times(responses["time_ms"]))
    return FlowResult.of(named)


def _times(values: EngineRow) -> Rtt:
    """Percentiles of times, ms; each None where there was no time."""
    return Rtt(**{name: values.get(name) for name in Rtt.__slots__})
