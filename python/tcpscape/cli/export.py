"""`tcpscape export`: results and scenarios in the files of other tools."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcpscape.errors import refuse

if TYPE_CHECKING:
    from tcpscape.interchange import Format
    from tcpscape.scenario.scenario import Scenario

SIDES = ("samples",)
"""Side tables that formats are made of."""


def export(
    source: Annotated[str, typer.Argument(help="A result directory, a file of iperf3 or Flent, a table; for tc a scenario (gallery or file).")],
    to: Annotated[str, typer.Option(help="csv, parquet, iperf3, flent, mahimahi or tc.")],
    out: Annotated[Path | None, typer.Option(help="File, or directory where there are several.  [default: stdout]")] = None,
    seed: Annotated[int | None, typer.Option(help="Only the trials of this seed.")] = None,
    cca: Annotated[str | None, typer.Option(help="Only the trials of this congestion control.")] = None,
) -> None:
    """Write results as another tool's files: a table of all trials, one file for each trial, or a path as tc's commands."""
    from tcpscape import interchange

    if to not in interchange.writable():
        fix = "tcpscape run --pcap FILE writes packets" if to.startswith("pcap") else f"choose {', '.join(interchange.writable())}"
        refuse("to", f"{to!r} is no format that is written", fix)
    known = interchange.REGISTRY[to]
    made = _scenarios(source, known) if known.write_scenario else _results(Path(source), known, seed, cca)
    _write(made, known, out)


def _scenarios(source: str, known: Format) -> list[tuple[str, bytes]]:
    """Name and content of a scenario's file, or of each scenario of a result directory whose path differs from the others."""
    from tcpscape.interchange import sources
    from tcpscape.scenario import files

    write = known.write_scenario
    if write is None:
        return []
    if not Path(source).is_dir():
        scenario = files.load(source)
        return [(scenario.name, write(scenario))]
    found: dict[str, tuple[str, Scenario]] = {}
    for group in sources.load(Path(source)).groups:
        for item in group.items:
            if item.scenario and item.path:
                found.setdefault(item.path, (_name([item.scenario.name, *group.at.values()]), item.scenario))
    if not found:
        refuse("source", f"{source} does not say its scenarios", "name the scenario's file or its gallery name")
    return [(name, write(scenario)) for name, scenario in found.values()]


def _results(source: Path, known: Format, seed: int | None, cca: str | None) -> list[tuple[str, bytes]]:
    """Name and content of each file."""
    from tcpscape.interchange import sources

    found = sources.load(source, SIDES if known.write_trial else ()).only(cca, seed)
    if known.write_rows:
        return [(source.name, known.write_rows(found.rows()))]
    if found.table is not None:
        refuse("source", f"{source} is a table, and {known.name} is made of trials", "name a result directory")
    write = known.write_trial
    made = []
    for group in found.groups:
        axes = [f"{k}{v}" for k, v in group.at.items() if k != "scenario"]
        made += [(_name([i.trial.scenario, i.trial.cca, *axes, f"seed{i.trial.seed}"]), write(i.trial, i.mtu)) for i in group.items if write]
    return made


def _name(words: Sequence[str]) -> str:
    return re.sub(r"[^\w.+-]+", "_", "-".join(words))


def _write(made: Sequence[tuple[str, bytes]], known: Format, out: Path | None) -> None:
    """One file or stdout; several into a directory."""
    if out is None:
        if len(made) > 1:
            refuse("out", f"there are {len(made)} {known.name} files to write", "add --out DIR, or choose one trial with --seed and --cca")
        if known.binary:
            refuse("out", f"{known.name} is not text", f"add --out FILE{known.suffixes[0]}")
        sys.stdout.write(made[0][1].decode())
        return
    into = len(made) > 1 or out.is_dir()
    taken: set[str] = set()
    try:
        (out if into else out.parent).mkdir(parents=True, exist_ok=True)
        for i, (name, content) in enumerate(made):
            unique = name if name not in taken else f"{name}-{i}"
            taken.add(unique)
            (out / f"{unique}{known.suffixes[0]}" if into else out).write_bytes(content)
    except OSError as e:
        refuse("out", f"cannot write {e.filename or out}: {e.strerror}", "choose another file or directory")
    print(f"wrote {len(made)} {known.name} file{'s' * (len(made) > 1)}: {out}", file=sys.stderr)
