"""How near the model is to a real kernel, as measured by `make bench`: the numbers behind docs/fidelity.md, carried by the package.

An error is |ln(A/B)| of the median goodputs of model and kernel on one condition: 0.05 is 5 %.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "data" / "fidelity.json"
KINDS = {
    "alone": "alone", "shared": "a group of flows on a shared bottleneck", "total": "total goodput", "groups": "each group of flows that share it",
}
"""What was compared."""
UNMEASURED = "not compared with a kernel yet"
NO_KERNEL = "no released Linux has it, so there is nothing to compare it with"


@dataclass(frozen=True)
class Error:
    """The distribution of the error over conditions."""

    kind: str
    n: int
    median: float
    p90: float

    @property
    def text(self) -> str:
        """One short line."""
        return f"{KINDS.get(self.kind, self.kind)}: median {self.median:.3f}, 90th percentile {self.p90:.3f} of {self.n}"


@dataclass(frozen=True)
class Fidelity:
    """What was measured, when, and against what."""

    said: Mapping[str, Any]

    def of(self, what: str, name: str) -> list[Error]:
        """The errors of one of the `controls` or `queues`; none where it was not compared."""
        return [Error(kind, **numbers) for kind, numbers in self.said.get(what, {}).get(name, {}).items()]

    @property
    def where(self) -> str:
        """When, which model, against what."""
        return f"{self.said['date']}, {self.said['model']} against {self.said['against']}" if self.said else "nothing was measured yet (`make bench`)"


def load(file: Path = FILE) -> Fidelity:
    """The package's numbers; empty where the file is missing."""
    return Fidelity(json.loads(file.read_text("utf-8")) if file.exists() else {})
