"""What is documented and measured of each model: its page, docs/models/*/NAME.md, and its measured difference from a real kernel.

The labelled paragraphs of a page (**What it is.**, **Differences from Linux.**) are read from the checkout; `make setup` copies the pages into the
package for a wheel. The measured errors are those of docs/fidelity.md: `make bench` writes them, and the package carries them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpscape.reading import documents
from tcpscape.reading import files as reading
from tcpscape.reading.files import Kind

PACKAGE = Path(__file__).parents[1]
DIRECTORIES = (PACKAGE.parents[1] / "docs" / "models", PACKAGE / "data" / "pages")
"""Directories of pages, sorted into sub-directories; the first that exists is read."""
IS, WORDS, DEFAULTS, DIFFERS, NOT_MODELLED = "What it is", "Words", "Defaults", "Differences from Linux", "Not modelled"
MEASURED = "Measured"
"""Labels that most pages have."""
FIDELITY_FILE = PACKAGE / "data" / "fidelity.json"
PAGE = Kind("a page", "see docs/models")
ERRORS = Kind("the measured errors", "write it with `make bench`")
COMPARISONS = {
    "alone": "alone",
    "shared": "a group of flows on a shared bottleneck",
    "total": "total goodput",
    "groups": "each group of flows that share it",
}
"""Kinds of comparisons with a kernel."""
UNMEASURED = "not compared with a kernel yet"
NO_KERNEL = "no released Linux has it, so there is nothing to compare it with"

_LABEL = re.compile(r"^\*\*([^*]+?)\.?\*\*\s*", re.MULTILINE)
_END = re.compile(r"\n\s*\n|\n(?=\*\*|#|\||- )")


@dataclass(frozen=True)
class Page:
    """The page of a model."""

    file: str
    """Path in the repository: docs/models/controls/NAME.md, docs/models/queues/NAME.md."""
    text: str

    def paragraph(self, label: str) -> str:
        """The text whose label is `label` or begins with it, as plain text up to the end of a sentence; empty where there is none.

        A paragraph that ends before its sentence does goes on with the formula, the table or the list below it.
        """
        blocks = iter(self._blocks(label))
        text = next(blocks, "")
        for block in blocks:
            if text.endswith((".", ")")) or block.startswith(("**", "#")):
                break
            text = f"{text} {_joined(block)}"
        return text

    def lead(self, label: str) -> str:
        """The first paragraph of that text alone."""
        return next(iter(self._blocks(label)), "")

    def _blocks(self, label: str) -> Iterator[str]:
        """The paragraph with a label as plain text, then what is below it as it stands in the page."""
        for match in _LABEL.finditer(self.text):
            if match.group(1).startswith(label):
                rest = self.text[match.end() :]
                end = _END.search(rest)
                first = rest[: end.start()] if end else rest
                yield plain(first)
                yield from (block for block in re.split(r"\n\s*?\n", rest[len(first) :].strip("\n")) if block.strip())
                return

    @property
    def source(self) -> str:
        """The documents that the model follows: the line below the title, without the file of its code."""
        lines = self.text.split("\n\n")[1].replace("\n", " ") if "\n\n" in self.text else ""
        parts = [plain(p) for p in lines.split("·") if ".rs" not in p and "crates/" not in p]
        return ", ".join(p for p in parts if p) if lines.startswith("`crates/") else ""


@dataclass(frozen=True)
class ModelError:
    """The distribution of the error over conditions. An error is |ln(A/B)| of the median goodputs of model and kernel: 0.05 is 5 %."""

    kind: str
    """A key of :data:`COMPARISONS`."""
    n: int
    """Conditions."""
    median: float
    p90: float

    @property
    def text(self) -> str:
        """One short line."""
        return f"{COMPARISONS.get(self.kind, self.kind)}: median {self.median:.3f}, 90th percentile {self.p90:.3f} of {self.n}"


@dataclass(frozen=True)
class Fidelity:
    """The measured errors of all models."""

    content: Mapping[str, Any]
    """The content of fidelity.json; empty where nothing was measured."""

    def errors(self, table: str, name: str) -> list[ModelError]:
        """The errors of the model `name` in the table `controls` or `queues`; empty where it was not compared."""
        return [ModelError(kind, **numbers) for kind, numbers in self.content.get(table, {}).get(name, {}).items()]

    @property
    def kernels(self) -> str:
        """The kernels' versions: `6.1, 6.12`; empty where nothing was measured."""
        versions = re.search(r"\(([\d., ]+)\)", self.content.get("against", ""))
        return versions[1] if versions else ""

    @property
    def where(self) -> str:
        """When it was measured, which model, and against which kernel."""
        content = self.content
        return f"{content['date']}, {content['model']} against {content['against']}" if content else "nothing was measured yet (`make bench`)"


def find_page(name: str) -> Page | None:
    """The page with the name of a model, otherwise one whose title names it; None where there is none."""
    directory = next((d for d in DIRECTORIES if d.is_dir()), None)
    if directory is None:
        return None
    pages = sorted(directory.rglob("*.md"), key=lambda page: page.name)
    files = [page for page in pages if page.stem == name] or [page for page in pages if name in _title_words(page)]
    return Page(f"docs/models/{files[0].relative_to(directory).as_posix()}", reading.text(files[0], PAGE)) if files else None


def load_fidelity(file: Path = FIDELITY_FILE) -> Fidelity:
    """The errors that the package carries."""
    return Fidelity(documents.json_file(file, ERRORS) if file.exists() else {})


def plain(text: str) -> str:
    """Markdown as plain text on one line."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    return " ".join(re.sub(r"[`*]", "", text).split())


def _joined(block: str) -> str:
    """A formula, a table or a list as plain text on one line; the rows of a table as `first column: the others; …`"""
    lines = block.splitlines()
    if not block.startswith("|"):
        return plain(block)
    rows = [[plain(cell) for cell in line.strip("|").split("|")] for line in lines[2:]]
    return "; ".join(f"{first}: {', '.join(others)}" for first, *others in rows) + "."


def _title_words(file: Path) -> list[str]:
    return re.findall(r"[a-z0-9_]+", reading.text(file, PAGE).partition("\n")[0].lower())
