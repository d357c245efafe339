"""Engines, which run trials: a scenario and seeds in, a :class:`~tcpscape.trial.Trial` for each seed out.

The main type is :class:`Engine` (`base`, where to begin); an engine is one file and one line in :data:`REGISTRY`. `model` is the simulator,
`virtual` a real kernel in virtual time (its processes are in `guest`), `live` this machine's kernel in real time (in `host`), `mock` a stand-in for
tests. `plan` writes a scenario as the plan that they share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcpscape.engines.base import Engine
from tcpscape.engines.live import Live
from tcpscape.engines.mock import Mock
from tcpscape.engines.model import Model
from tcpscape.engines.virtual import Virtual
from tcpscape.errors import EngineError, instead, refuse, shown
from tcpscape.scenario.scenario import Scenario

REGISTRY: dict[str, type[Engine]] = {"model": Model, "mock": Mock, "virtual": Virtual, "live": Live}
"""Every engine by name, the default first."""


def make(name: str) -> Engine:
    """The engine `name` or `name:variant` (`virtual:mine`), ready to run.

    :raises EngineError: there is no such engine, or it cannot run on this machine; the message has the reason.
    """
    kind, colon, variant = name.partition(":")
    if kind not in REGISTRY:
        refuse("engine", f"{shown(name)} is unknown", instead(name, names()), EngineError)
    if colon and not variant:
        raise EngineError(f"engine: {shown(name)} names nothing after the colon; write {kind}, or {kind}:NAME")
    engine = REGISTRY[kind].of(variant or None)
    if reason := engine.unavailable():
        raise EngineError(f"engine: {name} cannot run here: {reason}")
    return engine


def names() -> list[str]:
    """Names of the engines; whether each can run on this machine, :func:`available` says."""
    return list(REGISTRY)


def available() -> list[str]:
    """Names of the engines that can run on this machine."""
    return [name for name, engine in REGISTRY.items() if engine().unavailable() is None]


def verify(work: Mapping[str, Sequence[Scenario]]) -> list[str]:
    """Measures whether this machine can run scenarios, given by the name of their engine, in real time; a line for each engine that can.

    :raises EngineError: it cannot, or no engine among them runs in real time.
    """
    made = [(make(name), scenarios) for name, scenarios in work.items()]
    in_real_time = [(engine, scenarios) for engine, scenarios in made if engine.at_once == 1]
    return [line for engine, scenarios in in_real_time or made for line in engine.verify(scenarios)]


def close() -> None:
    """Ends what the engines keep running in this process: call it where the process ends without Python's own clean-up."""
    for kind in REGISTRY.values():
        kind.close()


__all__ = ["REGISTRY", "Engine", "available", "close", "make"]
