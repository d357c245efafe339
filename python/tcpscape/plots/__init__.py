"""Figures. One function each, from results to a file; never runs an engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape.plots.profiles import profiles
from tcpscape.plots.retention import retention
from tcpscape.plots.series import series

if TYPE_CHECKING:
    from tcpscape.studies.run import Result

__all__ = ["profiles", "retention", "series", "study"]


def study(result: Result, stem: Path) -> list[Path]:
    """The picture of a study: retention along its axis, or its profiles side by side. Returns the files (PNG, SVG)."""
    outcome = result.outcome()
    words = [a for a in outcome.axes if outcome.cells[0].value(a).is_word]
    return profiles(result, words[0], stem) if words or not outcome.axes else retention(result, stem)
