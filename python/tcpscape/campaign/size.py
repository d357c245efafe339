"""How large a campaign is, judged before anything of it is built: cells, trials, samples, and the memory and time that they would take.

The limit is on memory, not on patience: a campaign holds its scenarios and its trials until the answer is computed. Whoever has more memory
raises the limit with the environment variable `TCPSCAPE_MEMORY`, `16GiB` for example.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from tcpscape import units
from tcpscape.errors import refuse

VARIABLE = "TCPSCAPE_MEMORY"
"""Environment variable with the limit, a size."""
MEMORY = 2 * 2**30
"""Bytes that a campaign may take where :data:`VARIABLE` says nothing else: 2 GiB, about a million trials of one flow without samples."""
CELL, TRIAL, FLOW, SAMPLE, QUEUE_SAMPLE = 6_000, 1_000, 1_000, 150, 400
"""Bytes that a cell, a trial, a flow of a trial, a sample of a flow and one of the path's queues take, rounded up: measured on 10,000 cells, 20,000
trials and 4,000,000 samples."""
TRIAL_S = 0.01
"""Seconds that a trial takes at least, about: ten seconds of one flow at 10 Mbit/s on the model."""


@dataclass(frozen=True)
class Size:
    """What a campaign would build."""

    cells: int
    trials: int
    flows: int = 1
    """Flows in a trial."""
    samples: int = 0
    """Samples of each flow that a trial keeps."""
    queue_samples: int = 0
    """Samples of the queues that a trial keeps."""

    @property
    def memory(self) -> int:
        """Bytes that it would take, about."""
        return self.cells * CELL + self.trials * (TRIAL + self.flows * (FLOW + self.samples * SAMPLE) + self.queue_samples * QUEUE_SAMPLE)

    @property
    def text(self) -> str:
        """`4,000,000 trials in 1,000 cells would take about 8.01GB of memory and at least 11 hours of one core`."""
        many = max(self.samples, self.queue_samples)
        kept = f", each with {many:,} samples of {units.counted(self.flows, 'flow')}" if many else ""
        hours = self.trials * TRIAL_S / 3600
        time = f" and at least {hours:,.0f} hours of one core" if hours >= 1 else ""
        cells = f" in {self.cells:,} cells" if self.cells > 1 else ""
        return f"{self.trials:,} trials{cells}{kept} would take about {units.brief_size(self.memory)} of memory{time}"


def limit() -> int:
    """Bytes that a campaign may take.

    :raises TcpscapeError: where the environment variable is no size.
    """
    text = os.environ.get(VARIABLE, "")
    return units.parse_size(text, VARIABLE, example="16GiB") if text else MEMORY


def expect(size: Size, field: str, fix: str = "take fewer seeds or wider steps") -> None:
    """Refuses what would not fit.

    :raises TcpscapeError: one line with the size, the limit and how to raise it.
    """
    most = limit()
    if size.memory > most:
        refuse(field, f"{size.text} (limit {units.brief_size(most)})", f"{fix}, or raise {VARIABLE}")
