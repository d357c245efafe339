"""Engines: Scenario + seed → Trial. One file each, one line each in :data:`REGISTRY`."""

from __future__ import annotations

from tcpscape.engines.base import Capture, Engine
from tcpscape.engines.mock import Mock
from tcpscape.engines.model import Model
from tcpscape.engines.planned import Live
from tcpscape.engines.virtual import Virtual
from tcpscape.errors import EngineError

REGISTRY: dict[str, type[Engine]] = {"model": Model, "mock": Mock, "virtual": Virtual, "live": Live}
"""Every engine by name, the default first."""


def make(name: str) -> Engine:
    """The engine called `name` or `name:variant` (virtual:mine), ready to run; refuses with the reason where it cannot."""
    kind, colon, variant = name.partition(":")
    if kind not in REGISTRY:
        raise EngineError(f"engine: {name!r} is unknown; choose {', '.join(REGISTRY)}")
    if colon and not variant:
        raise EngineError(f"engine: {name!r} names nothing after the colon; write {kind}, or {kind}:NAME")
    engine = REGISTRY[kind].of(variant or None)
    if reason := engine.unavailable():
        raise EngineError(f"engine: {name} cannot run here: {reason}")
    return engine


def available() -> list[str]:
    """Names of the engines that can run here."""
    return [name for name, new in REGISTRY.items() if new().unavailable() is None]


__all__ = ["REGISTRY", "Capture", "Engine", "available", "make"]
