"""Markdown: tables and cells, as generated pages need them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown, in which `|` is escaped."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join("| " + " | ".join(_cell(cell) for cell in line) + " |\n" for line in lines) + "\n"


def code(text: object) -> str:
    """Text in code type; empty text stays empty."""
    return f"`{text}`" if str(text) else ""


def block(text: str, language: str = "text") -> str:
    """A block of code."""
    fence = "~~~~"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n\n"


def sentence(text: str) -> str:
    """The text with a capital and a full stop."""
    text = " ".join(text.split())
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '…', ')')) else '.'}" if text else ""


def without_roles(text: str) -> str:
    """A docstring's text without the roles of Sphinx: :class:`~tcpscape.store.Store` becomes `Store`."""
    import re

    return re.sub(r":\w+:`~?([^`]+)`", lambda match: f"`{match[1].rpartition('.')[2]}`", text)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
