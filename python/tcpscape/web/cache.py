"""Trials that ran, by what they are: a slider that comes back, and two questions about the same point, find theirs at once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING

from tcpscape.reading.files import MIB

if TYPE_CHECKING:
    from tcpscape.engines import Capture, Engine
    from tcpscape.scenario.scenario import Scenario
    from tcpscape.trial import Trial

MOST = 192 * MIB
"""Bytes of the trials that are kept."""
TRIAL, FLOW = 11_264, 4_096
"""Bytes of a trial without its tables (the reports of its queues are most of it), and of each of its flows, about: by the growth of a process that
keeps 16,000 trials of one flow, 15 kB each."""


class Cache:
    """The trials that were used last, as many as fit."""

    def __init__(self, most: int = MOST) -> None:
        """`most`: bytes."""
        self._most = most
        self._lock = threading.Lock()
        self._trials: OrderedDict[Hashable, tuple[Trial, int]] = OrderedDict()
        self.size = 0
        """Of what is kept, about."""

    def find(self, key: Hashable) -> Trial | None:
        """The trial of this key, if it is kept."""
        with self._lock:
            if key not in self._trials:
                return None
            self._trials.move_to_end(key)
            return self._trials[key][0]

    def keep(self, key: Hashable, trial: Trial) -> None:
        """Keeps a trial; those that were not used for longest go. One that is larger than all the room is not kept."""
        size = size_of(trial)
        with self._lock:
            if size > self._most or key in self._trials:
                return
            self._trials[key] = (trial, size)
            self.size += size
            while self.size > self._most:
                _, (_, gone) = self._trials.popitem(last=False)
                self.size -= gone

    def __len__(self) -> int:
        return len(self._trials)


def key_of(engine: Engine, scenario: Scenario, seed: int, capture: Capture) -> Hashable:
    """What a trial is: its content address, what it is called in results, and what is recorded of it."""
    return engine.address(scenario, seed), scenario.name, tuple(scenario.ccas), capture


def size_of(trial: Trial) -> int:
    """Bytes that a trial takes, about."""
    frames = [frame for frame in (trial.samples, trial.queue_samples, trial.packets, trial.sender_events) if frame is not None]
    return TRIAL + FLOW * len(trial.flows) + sum(int(frame.estimated_size()) for frame in frames)
