"""How near the model's kernel profiles are to kernels, as `tcpscape kernel list` tells it.

Each was held against a real kernel in virtual time on the same random paths, six runs a side (docs/kernels.md, "How near the model's profiles are").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcpscape.scenario import host

PATHS = 60
"""Random paths of each comparison."""


@dataclass(frozen=True)
class ProfileComparison:
    """|ln ratio| of the median goodputs of a profile and a kernel, and what two equal engines would show by chance."""

    release: str
    """The kernel."""
    median: float
    p90: float
    chance_median: float
    chance_p90: float


COMPARED: Mapping[str, ProfileComparison] = {
    "6.1": ProfileComparison("6.1.192", 0.006, 0.145, 0.003, 0.214),
    "6.6": ProfileComparison("6.6.87", 0.006, 0.160, 0.003, 0.159),
    "6.12": ProfileComparison("6.12.117", 0.005, 0.120, 0.003, 0.160),
    "6.18": ProfileComparison("6.18.2", 0.004, 0.165, 0.003, 0.166),
    "6.19": ProfileComparison("6.19.0", 0.006, 0.152, 0.004, 0.191),
    "7.1": ProfileComparison("7.1.5", 0.004, 0.204, 0.003, 0.183),
}
"""By the profile's name; a profile that is not here was held against no kernel."""


def nearness(release: str) -> str:
    """Which profile of the model stands for a kernel of this release, and how near it was to the kernel that it was held against, in a sentence."""
    name = host.nearest(release)[0]
    compared = COMPARED.get(name)
    if compared is None:
        return f"in the model, profile {name} stands for this machine's {release}; it was held against no kernel"
    off = f"{100 * compared.median:.1f} % in the median where chance alone shows {100 * compared.chance_median:.1f} %"
    return f"in the model, profile {name} stands for this machine's {release}; held against kernel {compared.release}, its goodput was off by {off}"
