"""What an engine is. Add one: a file with a class, a line in the registry; the engine contract test does the rest."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tcpscape.controls import spelling
from tcpscape.errors import EngineError
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Trial


@dataclass(frozen=True, slots=True)
class Capture:
    """What to keep of a trial besides its summary. Intervals in ns; 0 is none."""

    samples_ns: int = 0
    queue_samples_ns: int = 0
    packets: bool = False

    @property
    def anything(self) -> bool:
        """Whether anything is kept."""
        return bool(self.samples_ns or self.queue_samples_ns or self.packets)


class Engine(ABC):
    """Scenario + seeds → Trials, in the seeds' order. Same scenario and seed, same trial (see :attr:`repeatable`)."""

    name: str
    about: str
    repeatable: bool = True
    """Whether the same scenario and seed are the same trial to the last bit; otherwise within the run-to-run spread."""
    unobtrusive: bool = True
    """Whether watching (samples, packets) leaves the trial as it is."""

    @classmethod
    def of(cls, variant: str | None) -> Engine:
        """An engine, or its variant where it has some (virtual:NAME)."""
        if variant is not None:
            raise EngineError(f"engine: {cls.name} has no variants; leave out :{variant}")
        return cls()

    def unavailable(self) -> str | None:
        """Why it cannot run on this machine and what to do about it; None where it can."""
        return None

    @property
    @abstractmethod
    def version(self) -> str:
        """Version and model tag; results of different versions are never mixed."""

    @abstractmethod
    def check(self, scenario: Scenario) -> None:
        """Refuses what it cannot run, in one line, before anything runs."""

    @abstractmethod
    def run(self, scenario: Scenario, seeds: Sequence[int], *, threads: int = 1, capture: Capture = Capture()) -> list[Trial]:
        """Runs one trial for each seed."""

    def ccas(self) -> list[str]:
        """Congestion controls that it has, by Linux's names; none where it would take any."""
        return []

    def refuse_own(self, scenario: Scenario) -> None:
        """Refuses congestion controls that are Python code."""
        for flow in scenario.flows:
            if spelling.is_class(flow.cca):
                raise EngineError(f"cca: {flow.cca} is Python code, which the {self.name} engine cannot run; use --engine model")

    def stop(self) -> None:  # noqa: B027 (most engines have nothing to end)
        """Ends what runs, from another thread: a campaign was interrupted. What was running raises an EngineError."""

    def write_pcap(self, scenario: Scenario, seed: int, path: Path) -> None:
        """Writes the packets of one trial, as pcapng or pcap."""
        raise EngineError(f"pcap: the {self.name} engine sees no packets; use --engine model")

    def address(self, scenario: Scenario, seed: int) -> str:
        """Content address of a trial."""
        return self.addresses(scenario, [seed])[0]

    def addresses(self, scenario: Scenario, seeds: Sequence[int]) -> list[str]:
        """Content addresses of a scenario's trials, one for each seed."""
        said = f"{self.name}|{self.version}|{scenario.address()}"
        return [hashlib.sha256(f"{said}|{seed}".encode()).hexdigest()[:24] for seed in seeds]

    @property
    def spec(self) -> str:
        """What `engines.make` reads to make its like: its name, with the variant where it is one."""
        return self.name
