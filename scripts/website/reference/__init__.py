"""The parts of the reference's pages that are written from the source, so that they cannot be out of date.

A page in docs/reference/ has each part between a line `<!-- from the source: NAME -->` and a line `<!-- until here -->`. :data:`PARTS` has the
function of each name, which returns Markdown; links in it are those of a page in docs/reference/. The pages of the commands are written whole.
`UPDATE_PAGES=1 pytest tests/docs/test_site.py` writes all of them, and the same test finds one that is not current.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from website.reference import commands, fields, limits, lists, python, schemas

PARTS: Mapping[str, Callable[[], str]] = {**commands.PARTS, **fields.PARTS, **limits.PARTS, **lists.PARTS, **python.PARTS, **schemas.PARTS}
"""Name of a part → the function that writes it."""
PLACE = re.compile(r"^<!-- from the source: ([^\n]+) -->\n.*?^<!-- until here -->$", re.MULTILINE | re.DOTALL)
"""A part and the two lines around it."""


def written(markdown: str) -> str:
    """A page with its parts as the source has them now; a name that is unknown is a KeyError."""
    return PLACE.sub(lambda match: f"<!-- from the source: {match[1]} -->\n{PARTS[match[1]]().rstrip()}\n\n<!-- until here -->", markdown)


def pages(docs: Path) -> dict[Path, str]:
    """Every page that is written from the source, in part or whole, as it has to be: its file → Markdown."""
    current = {file: written(text) for file in sorted((docs / "reference").glob("*.md")) if PLACE.search(text := file.read_text("utf-8"))}
    return current | {docs / name: text for name, text in commands.pages().items()}
