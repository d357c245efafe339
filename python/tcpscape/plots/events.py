"""What happened in a trial, for time series: changes of the path, and the sender's recoveries and timeouts where samples show them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcpscape.scenario.changes import Change, Patch
from tcpscape.scenario.scenario import Scenario
from tcpscape.units import NS_PER_S, format_rate

if TYPE_CHECKING:
    import polars as pl

RECOVERY, LOSS = 3, 4
"""Linux's `tcp_ca_state` in fast recovery, and after a retransmission timeout."""
MOST = 40
"""Times of a periodic change that are marked."""


@dataclass(frozen=True, slots=True)
class Event:
    """A change of the path."""

    at_s: float
    text: str
    """Empty for the repetitions of a periodic change."""


def of_path(scenario: Scenario) -> list[Event]:
    """The changes of the path in time, those of one moment together; ramps at both ends, recorded rates not at all."""
    found: dict[float, dict[str, None]] = {}
    for event in (e for change in scenario.changes for e in _events(change, scenario.duration)):
        found.setdefault(event.at_s, {}).update({event.text: None} if event.text else {})
    return [Event(at, "; ".join(found[at])) for at in sorted(found)]


def _events(change: Change, duration_ns: int) -> Iterator[Event]:
    if change.at is not None and change.set:
        yield Event(change.at / NS_PER_S, _words(change.set))
    elif change.ramp and change.start and change.end:
        yield Event(change.ramp[0] / NS_PER_S, f"from {_words(change.start)}")
        yield Event(change.ramp[1] / NS_PER_S, f"to {_words(change.end)}")
    elif change.every and change.set:
        first = change.every if change.first is None else change.first
        for i, at in enumerate(range(first, duration_ns, change.every)):
            if i < MOST:
                yield Event(at / NS_PER_S, "" if i else f"{_words(change.set)}, every {change.every / NS_PER_S:g} s")


def _words(patch: Patch) -> str:
    """`rate 20mbit, delay 40 ms`."""
    said = []
    for name in type(patch).model_fields:
        value = getattr(patch, name)
        if value is None:
            continue
        if name == "rate":
            said.append(f"rate {format_rate(value)}")
        elif name in ("delay", "jitter"):
            said.append(f"{name} {value / 1e6:g} ms")
        elif name == "loss":
            said.append(f"loss {100 * value:g} %")
        else:
            said.append(name if value is True else f"{name} {value}")
    return ", ".join(said)


def entries(samples: pl.DataFrame, state: int) -> NDArray[np.int64]:
    """Rows of one flow's samples at which it is seen to enter a state; empty where the state was not sampled."""
    if "ca_state" not in samples.columns:
        return np.empty(0, dtype=np.int64)
    there = samples["ca_state"].to_numpy() == state
    return np.flatnonzero(there & ~np.concatenate(([False], there[:-1])))
