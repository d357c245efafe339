"""Engines that have their place and are not built yet; each says so in one line."""

from __future__ import annotations

from collections.abc import Sequence

from tcpscape.engines.base import Capture, Engine
from tcpscape.errors import EngineError
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Trial


class Planned(Engine):
    """An engine that is not built."""

    version = "0"

    def unavailable(self) -> str | None:
        return "it is not built yet; use --engine model"

    def check(self, scenario: Scenario) -> None:
        raise EngineError(f"engine: {self.name} cannot run here: {self.unavailable()}")

    def run(self, scenario: Scenario, seeds: Sequence[int], *, threads: int = 1, capture: Capture = Capture()) -> list[Trial]:
        raise EngineError(f"engine: {self.name} cannot run here: {self.unavailable()}")


class Live(Planned):
    """The machine's own kernel, in network namespaces."""

    name = "live"
    about = "this machine's kernel, in network namespaces (planned)"
