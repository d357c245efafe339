"""A state as people would type it, for values that were estimated."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from tcpscape import units
from tcpscape.errors import TcpscapeError
from tcpscape.web.state import State


def rounded(state: State) -> State:
    """The same with at most four significant digits, as people would type them: for values that were estimated."""
    written: dict[str, str] = {}
    for name, parse, write in _ROUNDED:
        if text := getattr(state, name):
            with suppress(TcpscapeError, ValueError):
                written[name] = write(parse(text, name))
    return state.model_copy(update=written)


def _time(text: str, name: str) -> float:
    return units.parse_time(text, name, example="50ms")


_ROUNDED: tuple[tuple[str, Callable[[str, str], float], Callable[[float], str]], ...] = (
    ("rtt", _time, units.brief_time), ("jitter", _time, units.brief_time), ("duration", _time, units.brief_time),
    ("rate", units.parse_rate, lambda bps: f"{bps / 1e6:.4g}mbit"),
    ("buffer", units.parse_size, units.brief_size),
    ("loss", lambda text, name: float(text.removesuffix("%")) / 100, units.brief_percent),
)  # fmt: skip
"""Field of a state, how it is read, and how it is written shortly."""
