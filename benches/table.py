"""Markdown tables for the generated pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown(head: Sequence, rows: Iterable[Sequence]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(str(h) for h in head) + " |", "|" + "|".join("---" for _ in head) + "|"]
    lines += ["| " + " | ".join(str(x) for x in row) + " |" for row in rows]
    return "\n".join(lines)


def verdict(met: bool) -> str:
    """Whether a target was met."""
    return "met" if met else "missed"
