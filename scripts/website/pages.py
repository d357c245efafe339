"""Where each file of the repository is in the site, the navigation, and links between files.

Links in the Markdown files are those of the repository, where an editor and a code host follow them. The site has some files at other places
(README.md is its home page), so each link is resolved in the repository and written anew.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from functools import cache
from itertools import zip_longest
from pathlib import Path

from tcpscape.words import terms

ROOT = Path(__file__).parents[2]
ELSEWHERE: Mapping[str, str] = {
    "README.md": "index.md",
    "docs/README.md": "pages.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "benches/README.md": "project/benchmarks.md",
}
"""File of the repository → page of the site, for those that are not in docs/ or have another name there."""
MOVED_FROM_DOCS = tuple(path.removeprefix("docs/") for path in ELSEWHERE if path.startswith("docs/"))
"""Pages in docs/ that have another name in the site."""
FOLDERS: Mapping[str, str] = {"docs/models": "pages.md#models"}
"""Folder of the repository → the place in the site that lists its pages."""
SOURCE = "source/"
"""Where the site has the files of the repository that are no pages."""
LANGUAGES: Mapping[str, str] = {".py": "python", ".rs": "rust", ".toml": "toml", ".yaml": "yaml", ".sh": "sh"}
"""Ending of a file → its language, for colours."""
GLOSSARY = "glossary.md"
"""The page with the meaning of each term."""
_LINK = re.compile(r"(?P<head>\]\()(?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
_ROW = re.compile(r"\| \[[^\]]+\]\((?P<target>[^)]+)\)")
"""The page that a row of the index begins with."""
_FIXED = re.compile(r"(`[^`]*`|!?\[[^\]]*\](?:\([^)]*\))?|<[^>]*>)")
"""What a link to the glossary is not written into: code, links, pictures, HTML."""
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
_NESTED = re.compile(r" {2,3}(?:[-*]|\d+\.) ")
_FENCE = re.compile(r"^\s*(```|~~~)")


def outside(root: Path = ROOT) -> dict[str, str]:
    """The pages of the site that are not files of docs/: their place in the site → Markdown."""
    written = {uri: (root / path).read_text("utf-8") for path, uri in ELSEWHERE.items() if (root / path).exists()}
    return written | {uri: _as_page(root / path) for path, uri in sources(root).items()}


@cache
def sources(root: Path = ROOT) -> dict[str, str]:
    """The files outside docs/ that pages link to and that are no Markdown → the pages of the site that show them."""
    documents = [*(root / "docs").rglob("*.md"), *(root / path for path in ELSEWHERE if (root / path).exists())]
    found = {_in_repository(match["target"], doc.relative_to(root).as_posix()) for doc in documents for match in links(doc.read_text("utf-8"))}
    files = [path for path in sorted(found - ELSEWHERE.keys()) if not path.startswith(("docs/", "..")) and (root / path).is_file()]
    return {path: f"{SOURCE}{path}.md" for path in files}


def links(markdown: str) -> list[re.Match[str]]:
    """The links of a page to other files, those in code left out."""
    return [match for line in _prose(markdown.splitlines()) for match in _LINK.finditer(line) if not _is_elsewhere(match["target"])]


def navigation(root: Path = ROOT) -> list[object]:
    """The navigation: the headings of docs/README.md, below each the pages of its table, and behind a page those of the folder of its name."""
    index = root / "docs" / "README.md"
    top: list[object] = [{"Home": "index.md"}]
    below: dict[str, list[object]] = {}
    for line in index.read_text("utf-8").splitlines():
        if heading := re.match(r"(##+) (.+)", line):
            entry: list[object] = []
            (below["##"] if len(heading[1]) == 3 else top).append({heading[2]: entry})
            below[heading[1]] = below[""] = entry
        elif (match := _ROW.match(line)) and match["target"].endswith(".md"):
            path = _in_repository(match["target"], "docs/README.md")
            page = ELSEWHERE.get(path, path.removeprefix("docs/"))
            folder = (root / path).with_suffix("")
            below[""] += [page] if page != "index.md" else []
            if folder.is_dir():
                below[""].append({f"Each of the {folder.name}": [file.relative_to(root / "docs").as_posix() for file in sorted(folder.glob("*.md"))]})
    return [*top, {"All pages": "pages.md"}]


def with_links(markdown: str, uri: str) -> str:
    """The page at `uri` of the site with its links to files of the repository written as links of the site."""
    document = {site: path for path, site in ELSEWHERE.items()}.get(uri, f"docs/{uri}")

    def led(match: re.Match[str]) -> str:
        if _is_elsewhere(match["target"]):
            return match[0]
        path = _in_repository(match["target"], document)
        place = ELSEWHERE.get(path) or FOLDERS.get(path) or sources().get(path) or path.removeprefix("docs/")
        return f"]({posixpath.relpath(place, posixpath.dirname(uri) or '.')}{match['anchor'] or ''})"

    lines = markdown.splitlines()
    for number, line in enumerate(_prose(lines)):
        if line:
            lines[number] = _LINK.sub(led, line)
    return "\n".join(lines) + "\n"


def with_terms(markdown: str, uri: str) -> str:
    """The page at `uri` with the first use of each term of the product as a link to the glossary; headings, code and links stay as they are."""
    if uri == GLOSSARY:
        return markdown
    glossary = posixpath.relpath(GLOSSARY, posixpath.dirname(uri) or ".")
    lines, used = markdown.splitlines(), [term for term in terms.GLOSSES if f"{GLOSSARY}#{terms.anchor(term)})" in markdown]
    for number, line in enumerate(_prose(lines)):
        if line and not line.startswith(("#", "    ")):
            pieces = _FIXED.split(line)
            linked = (
                "".join(f"[{part}]({glossary}#{terms.anchor(term)})" if term else part for part, term in terms.first_uses(p, used))
                for p in pieces[::2]
            )
            lines[number] = "".join(part for pair in zip_longest(linked, pieces[1::2], fillvalue="") for part in pair)
    return "\n".join(lines) + "\n"


def with_lists(markdown: str) -> str:
    """The page with its lists as Python's Markdown understands them: after an empty line, and four spaces deep where they are within a list.

    Code hosts, for which the pages are written, need neither.
    """
    lines, led = markdown.splitlines(), []
    for number, line in enumerate(_prose(lines)):
        before = lines[number - 1] if number else ""
        if _ITEM.match(line) and before.strip() and not _ITEM.match(before) and not before.startswith((" ", "#")):
            led.append("")
        nested = _NESTED.match(line)
        led.append(f"    {line.lstrip()}" if nested else lines[number])
    return "\n".join(led) + "\n"


def _prose(lines: list[str]) -> list[str]:
    """The lines, empty where they are inside a block of code."""
    prose, is_code = [], False
    for line in lines:
        is_fence = bool(_FENCE.match(line))
        is_code ^= is_fence
        prose.append("" if is_code or is_fence else line)
    return prose


def _is_elsewhere(target: str) -> bool:
    """Whether a link leads out of the repository."""
    return bool(re.match(r"[a-z]+:|/", target))


def _in_repository(target: str, document: str) -> str:
    """The path in the repository of what a link in `document` leads to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(document), target))


def _as_page(file: Path) -> str:
    """A file as a page that shows it."""
    text = file.read_text("utf-8")
    return f"# {file.name}\n\n`{file.relative_to(ROOT).as_posix()}`\n\n~~~~{LANGUAGES.get(file.suffix, 'text')}\n{text.rstrip()}\n~~~~\n"
