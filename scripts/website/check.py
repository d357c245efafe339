"""Checks a built site: every link and anchor leads somewhere, and no page loads anything from the network.

    python scripts/website/check.py out/site

Lists the links to other sites, which are not followed. Exit status 1 where anything is wrong, with a line for each.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    ("link", "href"),
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("object", "data"),
    ("image", "href"),
    ("use", "href"),
}
"""Element and attribute by which a browser loads a file without being asked."""
HINTS = ("canonical", "prev", "next", "alternate")
"""Kinds of `<link>` that a browser does not load."""


@dataclass
class Document(HTMLParser):
    """The links of a page and the places in it that a link can lead to."""

    links: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps what the attributes of an element say."""
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        for name in ("href", "src", "data"):
            if name in values and tag != "base":
                is_loaded = (tag, name) in LOADED and values.get("rel") not in HINTS
                (self.loaded if is_loaded else self.links).add(values[name])


def read(page: Path) -> Document:
    """The page as it was parsed."""
    document = Document()
    document.feed(page.read_text("utf-8"))
    return document


def problems(site: Path) -> tuple[list[str], list[str]]:
    """A line for each link that leads nowhere or is loaded from elsewhere, and the addresses of other sites."""
    documents = {page.resolve(): read(page) for page in sorted(site.rglob("*.html"))}
    wrong, elsewhere = [], set()
    for page, document in documents.items():
        name = page.relative_to(site.resolve())
        for target in sorted(document.links | document.loaded):
            parts = urlsplit(target)
            if parts.scheme in ("data", "mailto", "javascript"):
                continue
            if parts.scheme or parts.netloc:
                elsewhere.add(target)
                wrong += [f"{name}: loads {target} from the network"] * (target in document.loaded)
                continue
            place = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            place = place / "index.html" if place.is_dir() else place
            if not place.exists() and name.name != "404.html":
                wrong.append(f"{name}: {target} leads nowhere")
            elif parts.fragment and place in documents and unquote(parts.fragment) not in documents[place].anchors:
                wrong.append(f"{name}: {target} has no such anchor")
    return wrong, sorted(elsewhere)


def main(site: Path) -> int:
    """Prints what is wrong; the exit status."""
    wrong, elsewhere = problems(site)
    print(f"{len(list(site.rglob('*.html')))} pages; {len(elsewhere)} addresses of other sites, not followed")
    for address in elsewhere:
        print(f"  {address}")
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
