"""`tcpscape cleanup`: what killed commands and administrators left of trials."""

from __future__ import annotations

from typing import Annotated

from tcpscape.cli import terminal
from tcpscape.cli.command import Option, command
from tcpscape.errors import EXIT_USER_ERROR
from tcpscape.text.table import Table


@command(examples=("cleanup", "cleanup --yes"))
def cleanup(yes: Annotated[bool, Option("Remove what is listed; without it nothing is touched.")] = False) -> int | None:
    """List, and with --yes remove, what trials left: named namespaces, directories and processes of killed commands."""
    from tcpscape.engines.host import leftovers

    found = leftovers.find()
    if not found:
        print("nothing to clean up")
        return None
    removable = [leftover for leftover in found if not leftover.is_used]
    if not yes:
        terminal.print_table(Table(("what", "name", "about"), [(f.kind, f.name, f.about) for f in found], left=2, words=("about",)))
        if removable:
            print("\nNext: tcpscape cleanup --yes")
        return None
    problems = {leftover: problem for leftover in removable if (problem := leftover.remove())}
    rows = [(f.kind, f.name, f"not removed: {problems[f]}" if f in problems else f.about if f.is_used else "removed") for f in found]
    terminal.print_table(Table(("what", "name", "outcome"), rows, left=2, words=("outcome",)))
    return EXIT_USER_ERROR if problems else None
