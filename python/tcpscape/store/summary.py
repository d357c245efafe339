"""What is known of every trial of a large campaign without making it: its seed, its goodput, and what it has in common with others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpscape.trial import Trial

Kind = tuple[str | None, tuple[str, ...], str]
"""What many trials have in common: kernel, caveats and engine."""


@dataclass(frozen=True)
class Summary:
    """What is known of every trial of a shelf, in the order of its addresses."""

    seeds: NDArray[Any]
    goodputs: NDArray[np.float64]
    """Mbit/s."""
    places: NDArray[Any]
    """Place of what each trial shares with others in :attr:`kinds`."""
    kinds: tuple[Kind, ...]

    @classmethod
    def of(cls, trials: Iterable[Trial]) -> Summary:
        """The summary of trials that are read one by one."""
        kinds: dict[Kind, int] = {}
        rows = [(t.seed, t.goodput_mbps, kinds.setdefault((t.kernel, t.caveats, t.engine), len(kinds))) for t in trials]
        return cls(
            np.array([seed for seed, _, _ in rows]), np.array([g for _, g, _ in rows], dtype=float), np.array([k for *_, k in rows]), tuple(kinds)
        )

    def among(self, begin: int, end: int) -> list[Kind]:
        """The kinds of the trials from a place to another one, each once."""
        return [self.kinds[place] for place in set(self.places[begin:end].tolist())]
