"""Figures. One function each, from results to a file; never runs an engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape.plots.profiles import profiles
from tcpscape.plots.retention import retention
from tcpscape.plots.series import series

if TYPE_CHECKING:
    from tcpscape.studies.run import Outcome

__all__ = ["profiles", "retention", "series", "study"]


def study(outcome: Outcome, stem: Path) -> list[Path]:
    """The picture of a study: retention along its axis, or its profiles side by side. Returns the files (PNG, SVG)."""
    return (profiles if outcome.study.profiles else retention)(outcome, stem)
