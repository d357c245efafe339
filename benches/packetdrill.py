#!/usr/bin/env python3
"""packetdrill's scripts on the model: the tables of docs/packetdrill.md.

The scripts are GPL and not here: `TCPSCAPE_PACKETDRILL=DIR:DIR python benches/packetdrill.py` takes them from directories, for example gtests/net/tcp of
google/packetdrill and tools/testing/selftests/net/packetdrill of Linux.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from table import insert, markdown
from tcpscape.validate import packetdrill
from tcpscape.validate.packetdrill import Drill, ScriptResult, Verdict
from tcpscape.words import packetdrill as words

PAGE = Path(__file__).resolve().parent.parent / "docs" / "packetdrill.md"
VARIABLE = "TCPSCAPE_PACKETDRILL"


def no_scripts() -> str | None:
    """Why there is nothing to run."""
    return None if os.environ.get(VARIABLE) else f"no packetdrill scripts: {VARIABLE} names no directory"


def shown(r: ScriptResult, roots: list[Path]) -> str:
    """A script's name below the directory that was named."""
    path = Path(r.path)
    return next((str(path.relative_to(root)) for root in roots if path.is_relative_to(root)), path.name)


def families(drill: Drill) -> str:
    """The table by family, with its sum."""
    table = words.families_table(drill)
    total = ("all", *(str(len(drill.of(verdict))) for verdict in Verdict))
    return f"{words.answer(drill)}\n\n" + markdown(list(table.columns), [list(map(str, row)) for row in [*table.rows, total]])


def failures(drill: Drill, roots: list[Path]) -> str:
    """Each failure with its first difference."""
    rows = [[f"`{shown(r, roots)}`", str(r.line), r.problem, r.expected, r.actual] for r in drill.of(Verdict.FAILED)]
    return markdown(["script", "line", "differs in", "expected", "actual"], rows)


def reasons(drill: Drill) -> str:
    """Each reason, and how many scripts it keeps out."""
    counts = Counter(r.problem for r in drill.of(Verdict.NOT_APPLICABLE))
    return markdown(["reason", "scripts"], [[why, str(n)] for why, n in counts.most_common()])


def write() -> None:
    """Writes the tables."""
    roots = [Path(part) for part in os.environ[VARIABLE].split(":")]
    drill = packetdrill.run(roots)
    insert(PAGE, "families", families(drill))
    insert(PAGE, "failures", failures(drill, roots))
    insert(PAGE, "reasons", reasons(drill))


def main() -> None:
    """The command."""
    if (why := no_scripts()) is not None:
        raise SystemExit(why)
    write()


if __name__ == "__main__":
    main()
