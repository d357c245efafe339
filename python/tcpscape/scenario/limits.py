"""What is known of a scenario before it runs and is easily overlooked: socket buffers that the kernel caps, times of tc's without a unit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache

from tcpscape import units
from tcpscape.scenario import path
from tcpscape.scenario.scenario import PARTS, Kernel, Scenario

BUFFERS = (("rcvbuf", "SO_RCVBUF", "rmem_max"), ("sndbuf", "SO_SNDBUF", "wmem_max"))
"""A flow's field, the socket option that it is the argument of, and the sysctl of `net.core` that caps it, silently: socket(7)."""
SUGGESTED = 4 << 20
"""The limit that is suggested, bytes: that of the published rigs."""


def caveats(scenario: Scenario) -> Iterator[str]:
    """A sentence for each socket buffer that the kernel caps, with the limit and how to raise it, and for each time in tc's words without a unit."""
    yield from dict.fromkeys(_hints(scenario))
    limits = {**_profile(scenario.kernel.profile), **scenario.kernel.plan()}
    for field, option, sysctl in BUFFERS:
        size, most = max(getattr(flow, field) for flow in scenario.flows), limits.get(sysctl)
        if most is not None and size > most:
            yield (
                f"{option} of {units.format_size(size)} is capped at net.core.{sysctl}, {units.format_size(most)}; "
                f"to have it: --kernel {_raised(scenario.kernel, sysctl, max(size, SUGGESTED))}"
            )


def _hints(scenario: Scenario) -> Iterator[str]:
    """What tc's words of the path mean otherwise than many expect."""
    try:
        from tcpscape import _core
    except ImportError:
        return
    for part in PARTS:
        for hop in getattr(scenario, part):
            for text in path.words(hop, scenario.rtt_ns):
                yield from _core.hints(text)


def _raised(kernel: Kernel, sysctl: str, size: int) -> str:
    """The kernel as an option, with another limit."""
    overrides = kernel.model_dump(mode="json", exclude_none=True, exclude={"profile"}) | {sysctl: units.format_size(size)}
    return ",".join([kernel.profile, *(f"{name}={value}" for name, value in overrides.items())])


@cache
def _profile(name: str) -> Mapping[str, int]:
    """The limits of a profile; none where it is unknown or the extension is not built: the engine refuses that."""
    try:
        from tcpscape import _core
    except ImportError:
        return {}
    try:
        fields: dict[str, int] = json.loads(_core.kernel_profile(name))
    except ValueError:
        return {}
    return fields
