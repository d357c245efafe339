"""Prints circles of files that import one another, crate by crate; exit status 1 if there is any.

Read are `use crate::…`, `use super::…`, those of a module's own children, and such paths inside the code, outside tests. A name that a module
only passes on (`pub use`) counts for the file that defines it. A module may use its own parent's names, since they are one unit: that alone
is no circle.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

CRATES = Path(__file__).parent.parent / "crates"
USE = re.compile(r"(?:^|\n)\s*(pub(?:\([a-z]+\))? )?use ((?:crate|super|self|[a-z_0-9]+)(?:::[^;]*)?);")
INLINE = re.compile(r"(?<![\w:$])[a-z_]\w*(?:::\w+)+")
TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[path = \"[^\"]*\"\]\s*)?mod (\w+);")

Module = tuple[str, ...]
"""A module's place below the crate's root, which is ()."""
Exports = dict[str, tuple[str, ...]]
"""A name that a module passes on, and its path as written."""


def modules(src: Path) -> dict[Module, Path]:
    """The files of a crate by module, without those that exist for tests alone."""
    files: dict[Module, Path] = {}
    for file in sorted(src.rglob("*.rs")):
        parts = file.relative_to(src).with_suffix("").parts
        files[() if parts in (("lib",), ("main",)) else parts[:-1] if parts[-1] == "mod" else parts] = file
    tests = {(*name, test) for name, file in files.items() for test in TEST_MODULE.findall(file.read_text("utf-8"))}
    return {name: file for name, file in files.items() if not any(name[: len(t)] == t for t in tests)}


def code(text: str) -> str:
    """The production code of a file: no comments, no strings, no paths of visibility, no module or item for tests."""
    text = re.sub(r"//[^\n]*", "", text)
    text = text.replace("'\"'", "''")
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', text, flags=re.DOTALL)
    text = re.sub(r"\bpub\(in [^)]*\)", "pub", text)
    kept, at = [], 0
    for test in re.finditer(r"#\[cfg\(test\)\]\s*", text):
        if test.start() < at:
            continue
        kept.append(text[at : test.start()])
        at = _end_of_item(text, test.end())
    return "".join([*kept, text[at:]])


def _end_of_item(text: str, start: int) -> int:
    """Where the item that begins at `start` ends: at its semicolon, or at the brace that closes its body."""
    depth = 0
    for i in range(start, len(text)):
        if text[i] == "{":
            depth += 1
        elif text[i] == "}":
            depth -= 1
            if depth == 0 and not text[start:].lstrip().startswith(("use ", "pub use ", "pub(crate) use ")):
                return i + 1
        elif text[i] == ";" and depth == 0:
            return i + 1
    return len(text)


def paths(tree: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The paths of a use tree, each with the name that it brings in: `a::{b, c::d as e}` gives a::b and a::c::d as e."""
    tree = tree.strip()
    if "{" in tree:
        head, _, rest = tree.partition("{")
        prefix = tuple(p.strip() for p in head.split("::") if p.strip())
        for part in _split(rest.rsplit("}", 1)[0]):
            for tail, name in paths(part):
                yield (prefix, name) if tail == ("self",) else ((*prefix, *tail), name)
        return
    path, _, alias = tree.partition(" as ")
    whole = tuple(p.strip() for p in path.split("::"))
    yield whole, alias.strip() or (whole[-2] if whole[-1] == "self" and len(whole) > 1 else whole[-1])


def _split(text: str) -> Iterator[str]:
    """The parts between commas that are in no inner braces."""
    depth, start = 0, 0
    for i, c in enumerate(f"{text},"):
        depth += (c == "{") - (c == "}")
        if c == "," and depth == 0:
            if part := text[start:i].strip():
                yield part
            start = i + 1


class Crate:
    """The files of a crate and what each of them passes on."""

    def __init__(self, src: Path) -> None:
        self.src = src
        self.files = modules(src)
        self.code = {m: code(f.read_text("utf-8")) for m, f in self.files.items()}
        self.exports: dict[Module, Exports] = {}
        for m, text in self.code.items():
            uses = [tree for public, tree in USE.findall(text) if public]
            self.exports[m] = {name: path for tree in uses for path, name in paths(tree)}

    def target(self, module: Module, path: tuple[str, ...], depth: int = 0) -> Module | None:
        """The module whose file defines what a path in `module` names; None if it is none of this crate's."""
        here, rest = self._start(module, path)
        if here is None:
            return None
        while rest:
            if (*here, rest[0]) in self.files:
                here, rest = (*here, rest[0]), rest[1:]
            elif rest[0] in self.exports[here] and depth < 8:
                passed_on = (*self.exports[here][rest[0]], *rest[1:])
                return here if passed_on[0][0].isupper() else self.target(here, passed_on, depth + 1)  # a type of this file, or a path
            else:
                break
        return here

    def _start(self, module: Module, path: tuple[str, ...]) -> tuple[Module | None, tuple[str, ...]]:
        """Where a path begins, and what is left of it."""
        if path[0] == "crate":
            return (), path[1:]
        if path[0] == "self":
            return module, path[1:]
        if path[0] == "super":
            up = next((i for i, p in enumerate(path) if p != "super"), len(path))
            return module[: len(module) - up], path[up:]
        return (module, path) if (*module, path[0]) in self.files else (None, path)

    def imports(self, module: Module) -> set[Module]:
        """The modules that a file needs, itself and its direct parent left out."""
        text = self.code[module]
        wanted = {path for _, tree in USE.findall(text) for path, _ in paths(tree)}
        wanted |= {tuple(p.split("::")) for p in INLINE.findall(USE.sub("\n", text))}
        targets = {self.target(module, path) for path in wanted}
        return {m for m in targets if m is not None and m != module and m != module[:-1]}

    def circles(self) -> list[list[Module]]:
        """Groups of files of which each reaches every other."""
        edges = {m: self.imports(m) for m in self.files}
        reach = {m: _reachable(edges, m) for m in edges}
        groups = {tuple(sorted(n for n in reach[m] if m in reach[n])) for m in edges if m in reach[m]}
        return [list(g) for g in sorted(groups, key=lambda g: (-len(g), g))]


def _reachable(edges: dict[Module, set[Module]], start: Module) -> set[Module]:
    seen: set[Module] = set()
    todo = list(edges[start])
    while todo:
        m = todo.pop()
        if m not in seen:
            seen.add(m)
            todo.extend(edges[m])
    return seen


def main() -> int:
    """Prints the circles; 1 if there is any."""
    bad = False
    for src in sorted(CRATES.glob("*/src")):
        crate = Crate(src)
        for circle in crate.circles():
            bad = True
            print(f"crates/{src.parent.name}: {len(circle)} files import one another in a circle")
            for m in circle:
                others = sorted("/".join(o) or "lib" for o in crate.imports(m) if o in circle)
                print(f"  {crate.files[m].relative_to(src)} → {', '.join(others)}")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
