"""The steps of an answer that takes long, as data; :mod:`tcpscape.words.steps` says them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

Step = Literal[
    "path",
    "controls",
    "choice",
    "cliff",
    "damage",
    "other order",
    "beside default",
    "lever",
    "assumption",
    "calls",
    "shares",
    "diagnosis",
    "flow",
    "queue",
    "buffer",
    "replay",
    "replayed controls",
    "setting",
    "zone",
]
"""What begins now: a comparison, a search, a replay; and the choice that the comparison leads to, before what may still change it."""
Tell = Callable[[Step, str], None]
"""Told of each step as it begins, and what it is about: a congestion control, a number; empty where nothing tells it from others of its kind."""


def untold(step: Step, about: str) -> None:
    """Nobody is told."""
