"""The model engine: Linux's TCP and tc's impairments in virtual time (the Rust crates, through `tcpscape._core`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tcpscape.engines import plan
from tcpscape.engines.base import Capture, Engine
from tcpscape.errors import EngineError, ScenarioError
from tcpscape.scenario import Scenario
from tcpscape.trial import FlowResult, Trial

if TYPE_CHECKING:
    import polars as pl


def core() -> ModuleType | None:
    """The extension module, None where it is not built."""
    try:
        from tcpscape import _core
    except ImportError:
        return None
    return _core


def frame(columns: Mapping[str, tuple[str, Any]]) -> pl.DataFrame:
    """Columns of `(dtype, buffer)` as a frame, without copying rows."""
    import numpy as np
    import polars as pl

    return pl.DataFrame({name: pl.Series(name, np.frombuffer(data, dtype=dtype)) for name, (dtype, data) in columns.items()})


class Model(Engine):
    """The simulator."""

    name = "model"
    about = "Linux's TCP and tc's impairments in virtual time (the default)"

    def __init__(self) -> None:
        self._core = core()

    def unavailable(self) -> str | None:
        return None if self._core else "the extension module tcpscape._core is not built; run `make setup`"

    @property
    def version(self) -> str:
        return f"{self._lib.version()}+{self._lib.model_version()}"

    @property
    def _lib(self) -> ModuleType:
        if self._core is None:
            raise EngineError(f"engine: model cannot run here: {self.unavailable()}")
        return self._core

    def registry(self) -> list[tuple[str, str]]:
        """Congestion controls: name, about."""
        return [(row[0], row[1]) for row in self._lib.cca_registry()]

    def queues(self) -> list[tuple[str, str]]:
        """Queues and impairments: name, about."""
        return [(row[0], row[1]) for row in self._lib.qdisc_registry()]

    def plan(self, scenario: Scenario, capture: Capture = Capture()) -> str:
        """The plan as JSON."""
        return json.dumps(plan.build(scenario, self._lib.parse_tc, capture), separators=(",", ":"))

    def check(self, scenario: Scenario) -> None:
        known = [name for name, _ in self.registry()]
        for flow in scenario.flows:
            if flow.cca not in known:
                raise ScenarioError(f"cca: {flow.cca!r} is not built; choose {', '.join(known)}")
        try:
            self._lib.kernel_profile(scenario.kernel.profile)
        except ValueError as e:
            raise ScenarioError(f"{e}; choose one of them") from None
        plan.build(scenario, self._lib.parse_tc)

    def run(self, scenario: Scenario, seeds: Sequence[int], *, threads: int = 1, capture: Capture = Capture()) -> list[Trial]:
        said = self.plan(scenario, capture)
        try:
            raw = self._lib.run(said, list(seeds), max(1, threads))
        except ValueError as e:
            raise ScenarioError(str(e)) from None
        return [self._trial(scenario, seed, r, capture) for seed, r in zip(seeds, raw, strict=True)]

    def write_pcap(self, scenario: Scenario, seed: int, path: Path) -> None:
        try:
            self._lib.write_pcapng(str(path), self.plan(scenario, Capture(packets=True)), seed)
        except (ValueError, OSError) as e:
            raise EngineError(f"pcap: cannot write {path}: {e}; choose another file") from None

    def _trial(self, scenario: Scenario, seed: int, raw: Mapping[str, Any], capture: Capture) -> Trial:
        return Trial(
            scenario=scenario.name, cca=scenario.cca, address=self.address(scenario, seed), seed=seed, engine=self.name, version=self.version,
            duration=raw["duration_ns"] / 1e9, flows=tuple(FlowResult.of(f) for f in raw["flows"]), caveats=tuple(raw["caveats"]),
            hash=raw["hash"], events=raw["events"], queues=tuple(raw["queues"]),
            samples=frame(raw["samples"]) if capture.samples_ns else None,
            queue_samples=frame(raw["queue_samples"]) if capture.queue_samples_ns else None,
            packets=frame(raw["packets"]) if capture.packets else None,
        )
