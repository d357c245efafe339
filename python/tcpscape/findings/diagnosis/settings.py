"""What a diagnosis is asked for: which flows, what is known already, and how the model replays them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tcpscape.campaign.execute import Runner
from tcpscape.engines.model import Model
from tcpscape.errors import refuse, shown
from tcpscape.scenario.scenario import Scenario

FLOWS = 3
"""Flows that are diagnosed where nothing says how many."""


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """How the model repeats an observation and compares what would be better."""

    runner: Runner
    """Runs trials."""
    kernel: str | None = None
    """Kernel profile of the sender with overrides, `6.12,rmem_max=4MiB`; None is not known."""
    quick: bool = False
    """Whether few trials are enough: wider intervals in a fraction of the time."""
    say: Callable[[str], None] = lambda _: None
    """Called with what is being run now."""


@dataclass(frozen=True, slots=True)
class DiagnosisSettings:
    """What is asked for."""

    most: int = FLOWS
    """Most flows that are diagnosed, the largest first; the others are counted."""
    flow: str = ""
    """Which flows count at all, as :func:`~tcpscape.findings.diagnosis.selection.matching` reads it; empty is all."""
    cca: str | None = None
    """Congestion control of the senders, where the user knows it."""
    replay: ReplaySettings | None = None
    """None is no replay, hence no advice."""


def expect_known(cca: str | None, kernel: str | None) -> None:
    """Refuses a congestion control or kernel profile that there is not, before anything is read. :raises TcpscapeError: one line."""
    if kernel is not None:
        Model().check(Scenario.of({"forward": "netem delay 1ms", "kernel": kernel}, "kernel"))
    if cca is not None and cca not in (known := [name for name in Model().ccas() if name not in NOT_IN_LINUX]):
        refuse("cca", f"{shown(cca)} is no congestion control of Linux", f"choose {', '.join(sorted(known))}")


NOT_IN_LINUX = ("fixed",)
"""Congestion controls of the model that no sender has."""
