"""The pages of the models, docs/models/*/NAME.md: where each is, and its labelled paragraphs (**What it is.**, **Differences from Linux.**).

In a checkout they are read where they are; `make setup` copies them beside this file for a wheel.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
PLACES = (PACKAGE.parents[1] / "docs" / "models", PACKAGE / "data" / "pages")
"""Directories of pages, sorted into sub-directories; the first that exists is read."""
IS, WORDS, DEFAULTS, DIFFERS, NOT_MODELLED = "What it is", "Words", "Defaults", "Differences from Linux", "Not modelled"
MEASURED = "Measured"
"""Labels that most pages have."""

_LABEL = re.compile(r"^\*\*([^*]+?)\.?\*\*\s*", re.MULTILINE)
_END = re.compile(r"\n\s*\n|\n(?=\*\*|#|\||- )")


@dataclass(frozen=True)
class Page:
    """A page: its file, and its text."""

    file: str
    """The path in the repository: docs/models/controls/NAME.md, docs/models/queues/NAME.md."""
    text: str

    def paragraph(self, label: str) -> str:
        """The paragraph that begins with a label (or with one that begins so), in plain text; empty where there is none."""
        for found in _LABEL.finditer(self.text):
            if found.group(1).startswith(label):
                said = _END.split(self.text[found.end() :], maxsplit=1)[0]
                return plain(said)
        return ""

    @property
    def source(self) -> str:
        """The line below the title: the file of the code and what it follows, without the file."""
        lines = self.text.split("\n\n")[1].replace("\n", " ") if "\n\n" in self.text else ""
        parts = [plain(p) for p in lines.split("·") if ".rs" not in p and "crates/" not in p]
        return ", ".join(p for p in parts if p) if lines.startswith("`crates/") else ""


def plain(text: str) -> str:
    """Markdown as plain text on one line."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    return " ".join(re.sub(r"[`*]", "", text).split())


def find(name: str) -> Page | None:
    """The page of a model: the one of its name, else one whose title names it; None where there is none."""
    place = next((p for p in PLACES if p.is_dir()), None)
    if place is None:
        return None
    pages = sorted(place.rglob("*.md"), key=lambda page: page.name)
    files = [page for page in pages if page.stem == name] or [page for page in pages if name in _title(page)]
    return Page(f"docs/models/{files[0].relative_to(place).as_posix()}", files[0].read_text("utf-8")) if files else None


def _title(file: Path) -> list[str]:
    """The words of a page's title."""
    with file.open(encoding="utf-8") as lines:
        return re.findall(r"[a-z0-9_]+", next(lines, "").lower())
