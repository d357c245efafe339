"""Prints imports of the Python package that point upwards, and circles of files; exit status 1 if there is any.

A module may import from its own package and from the layers below. Imports inside functions and those for type checkers alone count as any
other: what must be hidden in a function to work is in the wrong place. The package's own `__init__`, which hands on public names, is exempt.
"""

from __future__ import annotations

import ast
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "python" / "tcpscape"
LAYERS = (
    ("errors",),
    ("reading", "names"),
    ("units", "text", "writing", "formats"),
    ("controls",),
    ("scenario",),
    ("queue_reports", "trial", "kernels"),
    ("engines",),
    ("store",),
    ("stats",),
    ("metrics",),
    ("campaign",),
    ("findings",),
    ("capture",),
    ("studies", "clauses", "interchange", "validate", "emulation"),
    ("words",),
    ("plots",),
    ("report",),
    ("schemas", "api"),
    ("web",),
    ("cli",),
    ("__main__",),
)
"""From the ground up. Packages of one layer do not import each other."""
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name below it, `campaign.axes`; a package by its own name."""
    names = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return {name: file for name, file in names.items() if name}


def imports(file: Path, known: dict[str, Path]) -> set[str]:
    """The package's modules that a file imports anywhere."""
    targets = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            targets |= {name if name.removeprefix("tcpscape.") in known else node.module for name in full}
    return {name for target in targets if (name := target.removeprefix("tcpscape.")) in known and target.startswith("tcpscape.")}


def upward(name: str, target: str) -> bool:
    """Whether the import of `target` by `name` points upwards, or sideways into another package."""
    here, there = name.partition(".")[0], target.partition(".")[0]
    return here != there and RANK[there] >= RANK[here]


def main() -> int:
    """Prints the offenders and returns the exit status."""
    known = modules()
    if unknown := {name.partition(".")[0] for name in known} - RANK.keys():
        print(f"  no layer for {', '.join(sorted(unknown))}: give each one in {Path(__file__).name}")
        return 1
    graph = {name: imports(file, known) for name, file in known.items()}
    arrows = [(name, target) for name, targets in graph.items() for target in sorted(targets)]
    problems = [f"{name} imports {target}, which is above it" for name, target in arrows if upward(name, target)]
    try:
        TopologicalSorter({name: targets - {name} for name, targets in graph.items()}).prepare()
    except CycleError as error:
        problems.append(f"a circle: {' → '.join(reversed(error.args[1]))}")
    for problem in problems:
        print(f"  {problem}")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
