"""Markdown tables for the generated pages, and the generated parts of pages that people write."""

from __future__ import annotations

import pathlib
import re

from tcpscape.text.table import markdown

__all__ = ["MODELS", "insert", "markdown", "parts", "verdict"]

MODELS = pathlib.Path(__file__).resolve().parent.parent / "docs" / "models"
"""The pages of the model."""
PLACE = re.compile(r"(?<=^<!-- from the benches: )([^\n]+) -->\n(.*?)\n(?=<!-- until here -->$)", re.MULTILINE | re.DOTALL)
"""A part of a page that a bench writes: its name, its text."""


def verdict(met: bool) -> str:
    """Whether a target was met."""
    return "met" if met else "missed"


def parts(page: pathlib.Path) -> dict[str, str]:
    """The generated parts of a page: name → text."""
    return {match[1]: match[2] for match in PLACE.finditer(page.read_text("utf-8"))}


def insert(page: pathlib.Path, name: str, text: str) -> None:
    """Puts a text into the place that a page has for it; raises KeyError where it has none."""
    if name not in parts(page):
        raise KeyError(f"{page} has no part {name}")
    print(f"\n{name}:\n{text}", flush=True)
    page.write_text(PLACE.sub(lambda match: f"{name} -->\n{text}\n" if match[1] == name else match[0], page.read_text("utf-8")), "utf-8")
