"""The two sides of a validation: an engine, under a kernel perhaps, or recorded results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from tcpscape import engines
from tcpscape.campaign.execute import Progress, Runner
from tcpscape.engines.base import Capture, Engine
from tcpscape.errors import TcpscapeError, refuse
from tcpscape.scenario import host
from tcpscape.scenario.scenario import Kernel, Scenario
from tcpscape.store.results import Store
from tcpscape.trial import Trial
from tcpscape.validate.conditions import NamedScenario
from tcpscape.validate.runs import RecordedSet, Runs, TrialNumbers

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE_NS = 10_000_000
"""Interval of the samples of the smoothed RTT and of the traces, ns."""
EVERY_RTT_SAMPLE = ("model",)
"""Engines whose `rtt_ms` is of every RTT sample; the others' is of the smoothed RTT, sampled."""
SIMULATED = ("model", "mock")
"""Engines that take a kernel after the colon (`model:6.12`); for the others it belongs to the engine's name."""

LIVE = "live"
"""The engine that is this machine's own kernel, whatever kernel a condition names."""
TRACES = "traces"
"""Directory of the trials with samples, in that of the validation."""

Say = Callable[[str], Progress | None]
"""Called with a line about the next step; returns the function that takes its progress, or None."""


class Smoothed(Engine):
    """An engine whose trials report the mean of the smoothed RTT, sampled every 10 ms: every engine can report it, so it can be compared."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self.name, self.about, self.repeatable = inner.name, inner.about, inner.repeatable

    @property
    def version(self) -> str:
        """The engine's, marked: these trials are not those of the engine itself."""
        return f"{self.inner.version}+srtt"

    def check(self, scenario: Scenario) -> None:
        """As the engine."""
        self.inner.check(scenario)

    def run(self, scenario: Scenario, seeds: Sequence[int], *, threads: int = 1, capture: Capture = Capture()) -> list[Trial]:
        """The engine's trials with another mean RTT; samples are kept only where `capture` has them."""
        trials = self.inner.run(scenario, seeds, threads=threads, capture=replace(capture, samples_ns=capture.samples_ns or SAMPLE_NS))
        return [self._smoothed(trial, scenario, keep=capture.samples_ns > 0) for trial in trials]

    def stop(self) -> None:
        """Ends the engine's trials."""
        self.inner.stop()

    def _smoothed(self, trial: Trial, scenario: Scenario, *, keep: bool) -> Trial:
        means = mean_srtt_ms(trial.samples)
        flows = [replace(f, rtt_ms=replace(f.rtt_ms, mean=means.get(i, f.rtt_ms.mean))) for i, f in enumerate(trial.flows)]
        return replace(
            trial, flows=tuple(flows), samples=trial.samples if keep else None, address=self.address(scenario, trial.seed), version=self.version
        )


def mean_srtt_ms(samples: pl.DataFrame | None) -> Mapping[int, float]:
    """Each flow's mean smoothed RTT over its samples, those before the first measurement left out, ms."""
    if samples is None or not {"flow", "srtt_us"} <= set(samples.columns):
        return {}
    known = samples.filter(pl.col("srtt_us") > 0).group_by("flow").agg(pl.col("srtt_us").cast(pl.Float64).mean() / 1e3)
    return {int(flow): float(mean) for flow, mean in known.iter_rows()}


class Side(ABC):
    """One side of a validation: its label, the conditions that it refuses, and its runs."""

    label: str

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of what ran."""

    @abstractmethod
    def refuses(self, condition: NamedScenario) -> str | None:
        """Why it cannot run a condition; None where it can."""

    @abstractmethod
    def measure(self, work: Sequence[tuple[NamedScenario, int]], progress: Progress | None = None) -> list[Runs]:
        """The runs of each condition with its number of seeds; recorded results give all their runs, whatever the number."""

    @property
    def endless(self) -> bool:
        """Whether further runs are possible."""
        return True

    def traces(self, condition: NamedScenario, seeds: Sequence[int], progress: Progress | None = None) -> list[Trial]:
        """Trials with samples every 10 ms; empty where a side has no traces."""
        return []


@dataclass
class EngineSide(Side):
    """An engine; `kernel` replaces the kernel of every condition."""

    label: str
    engine: Engine
    kernel: Kernel | None = None
    jobs: int = 0
    store: Store | None = None
    traced: Store | None = None
    """Where the trials with samples are kept: apart, since not every engine repeats a trial to the last bit."""

    @property
    def version(self) -> str:
        """The engine's, with the kernel that replaces the conditions' own."""
        return self.engine.version + (f", kernel {self.kernel.profile}" if self.kernel else "")

    def scenario(self, condition: NamedScenario) -> Scenario:
        """The scenario that is run for a condition."""
        return condition.scenario.model_copy(update={"kernel": self.kernel}) if self.kernel else condition.scenario

    def refuses(self, condition: NamedScenario) -> str | None:
        """The engine's refusal; None where it can run the condition."""
        try:
            self.engine.check(self.scenario(condition))
        except TcpscapeError as e:
            return str(e)
        return None

    def measure(self, work: Sequence[tuple[NamedScenario, int]], progress: Progress | None = None) -> list[Runs]:
        """Runs what the store does not hold already."""
        runner = Runner(self.engine, self.jobs, store=self.store, progress=progress)
        trials_by_condition = runner.run_all([(self.scenario(c), range(n)) for c, n in work])
        counts = [[f.count for f in c.scenario.flows] for c, _ in work]
        return [Runs(tuple(TrialNumbers.of(t, n) for t in trials)) for trials, n in zip(trials_by_condition, counts, strict=True)]

    def traces(self, condition: NamedScenario, seeds: Sequence[int], progress: Progress | None = None) -> list[Trial]:
        """The same trials again, with samples."""
        runner = Runner(self.engine, self.jobs, Capture(samples_ns=SAMPLE_NS), self.traced, progress)
        return runner.run(self.scenario(condition), seeds)


@dataclass
class RecordedSide(Side):
    """Recorded results: nothing runs."""

    record: RecordedSet
    label: str = "recorded"

    @property
    def version(self) -> str:
        """The set's name."""
        return self.record.name

    @property
    def endless(self) -> bool:
        """There are no more than were recorded."""
        return False

    def refuses(self, condition: NamedScenario) -> str | None:
        """Conditions that it has no results of."""
        return None if condition.id in self.record.runs else f"against: {self.record.name} has no results of {condition.id}; record it"

    def measure(self, work: Sequence[tuple[NamedScenario, int]], progress: Progress | None = None) -> list[Runs]:
        """All that was recorded."""
        return [self.record.runs[c.id] for c, _ in work]


def with_host_kernel(specs: Sequence[str]) -> tuple[str, ...]:
    """The sides of a validation; a model beside this machine's own kernel gets that kernel's profile, unless it names one."""
    is_live = any(spec.partition(":")[0] == LIVE for spec in specs)
    return tuple(f"{spec}:{host.NAME}" if is_live and spec in SIMULATED else spec for spec in specs)


def make(spec: str, jobs: int, out: Path | None) -> EngineSide:
    """A side from `model`, `model:6.12,rmem_max=4MiB`, `virtual`, `virtual:NAME`; results are kept in `out`."""
    name, colon, words = spec.partition(":")
    if colon and not words:
        refuse("engine", f"{spec!r} names nothing after the colon", "write for example model:6.12")
    own_kernel = name in SIMULATED and bool(words)
    engine = engines.make(name if own_kernel else spec)
    if engine.name in EVERY_RTT_SAMPLE:
        engine = Smoothed(engine)
    stores = (Store(out), Store(out / TRACES)) if out else (None, None)
    return EngineSide(spec, engine, _kernel(words) if own_kernel else None, jobs, *stores)


def _kernel(words: str) -> Kernel:
    return Scenario.of({"kernel": words}, "engine").kernel
