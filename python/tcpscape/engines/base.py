"""The interface of an engine. A new engine is a file with a subclass of :class:`Engine` and a line in the registry; the contract test covers it."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tcpscape.controls import spelling
from tcpscape.errors import EngineError
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Trial

INTERRUPTED = "engine: the trial was interrupted; run it again"
"""The message of the EngineError of a trial that :meth:`Engine.stop` ended."""


@dataclass(frozen=True, slots=True)
class Capture:
    """What to record of a trial besides its summary. Intervals are in ns; 0 records nothing."""

    samples_ns: int = 0
    queue_samples_ns: int = 0
    packets: bool = False
    events: bool = False
    """What happens to each sender, which the model alone can tell; no table that results keep."""

    @classmethod
    def union(cls, captures: Iterable[Capture]) -> Capture:
        """What suffices for all of them: the shortest interval of each kind of samples, and packets where one records them."""
        every = list(captures)
        flows = min((c.samples_ns for c in every if c.samples_ns), default=0)
        queues = min((c.queue_samples_ns for c in every if c.queue_samples_ns), default=0)
        return cls(flows, queues, any(c.packets for c in every), any(c.events for c in every))

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of a trial that are kept: `samples`, `queue_samples`, `packets`."""
        is_kept = {"samples": self.samples_ns, "queue_samples": self.queue_samples_ns, "packets": self.packets}
        return tuple(name for name, kept in is_kept.items() if kept)


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
        return addresses_of(self.name, self.version, scenario, seeds)

    @property
    def spec(self) -> str:
        """The text from which `engines.make` makes an equal engine: its name, with the variant where it has one."""
        return self.name


def addresses_of(engine: str, version: str, scenario: Scenario, seeds: Sequence[int]) -> list[str]:
    """Content addresses of a scenario's trials on an engine of this name and version, which need not be here."""
    prefix = f"{engine}|{version}|{scenario.address()}"
    return [hashlib.sha256(f"{prefix}|{seed}".encode()).hexdigest()[:24] for seed in seeds]
