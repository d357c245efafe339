"""Markdown tables for the generated pages."""

from __future__ import annotations

from tcpscape.text.table import markdown

__all__ = ["markdown", "verdict"]


def verdict(met: bool) -> str:
    """Whether a target was met."""
    return "met" if met else "missed"
