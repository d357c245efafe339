"""`tcpscape export`: results and scenarios in the files of other tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tcpscape import names, writing
from tcpscape.cli import streams
from tcpscape.cli.command import Argument, Option, command
from tcpscape.errors import printable, refuse, shown
from tcpscape.units import counted

if TYPE_CHECKING:
    from tcpscape.interchange import Format
    from tcpscape.scenario.scenario import Scenario

STDOUT = Path("-")
"""Stands for standard output as the place of `--out`."""
File = tuple[str, bytes]
"""Name without suffix, and content."""


@command(examples=("export out/starlink --to csv --samples", "export out/starlink --to iperf3 --out out/iperf3"))
def export(
    source: Annotated[
        str, Argument("A result directory, a file of iperf3 or Flent, a table; for tc a scenario (gallery or file).", complete="source")
    ],
    to: Annotated[
        str | None, Option("csv, parquet, markdown, latex, methods, iperf3, flent, mahimahi, perfetto, qlog, tc or bundle.", complete="format")
    ] = None,
    out: Annotated[Path | None, Option("File, or directory where there are several; - is stdout.  [default: stdout]", complete="file")] = None,
    seed: Annotated[int | None, Option("Only the trials of this seed.")] = None,
    cca: Annotated[str | None, Option("Only the trials of this congestion control.", complete="cca")] = None,
    samples: Annotated[bool, Option("A row for each sample of each flow instead of one for each flow (csv, parquet).")] = False,
) -> None:
    """Write results as another tool's files: a table of all trials or samples, one file for each trial, or a path as tc's commands."""
    from tcpscape import interchange

    if to is None or to not in interchange.writable():
        fix = "tcpscape run --pcap FILE writes packets" if (to or "").startswith("pcap") else f"choose {', '.join(interchange.writable())}"
        refuse("to", f"{shown(to)} is no format that is written" if to else "no format is given", fix)
    target = interchange.REGISTRY[to]
    if samples and not target.write_rows:
        refuse("samples", f"{to} has no rows", "choose --to csv or --to parquet")
    if target.write_scenario:
        files = _scenarios(source, target)
    elif target.write_directory:
        files = _directory(Path(source), target, seed, cca)
    elif target.is_answer:
        files = _outcomes(Path(source), target, seed, cca)
    else:
        files = _results(Path(source), target, seed, cca, samples=samples)
    _write(files, target, out)


def _scenarios(source: str, target: Format) -> list[File]:
    """The file of a scenario, or of each scenario of a result directory whose path differs from the others."""
    from tcpscape.interchange import sources
    from tcpscape.scenario import files

    write = target.write_scenario
    if write is None:
        return []
    if not os.path.isdir(source):
        scenario = files.load(source)
        return [(_name([scenario.name]), write(scenario))]
    scenarios: dict[str, tuple[str, Scenario]] = {}
    for group in sources.load(Path(source)).groups:
        for item in group.items:
            if item.scenario and item.path:
                scenarios.setdefault(item.path, (_name([item.scenario.name, *group.at.values()]), item.scenario))
    if not scenarios:
        refuse("source", f"{source} does not say its scenarios", "name the scenario's file or its gallery name")
    return [(name, write(scenario)) for name, scenario in scenarios.values()]


def _directory(path: Path, target: Format, seed: int | None, cca: str | None) -> list[File]:
    """The one file of a result directory."""
    from tcpscape.campaign import record

    if seed is not None or cca:
        refuse("seed" if seed is not None else "cca", f"{target.name} is the whole directory", "leave it out")
    write = target.write_directory
    return [(_name([path.resolve().name]), write(record.load(path), path))] if write else []


def _outcomes(path: Path, target: Format, seed: int | None, cca: str | None) -> list[File]:
    """A file for each campaign of a result directory, or part of its study."""
    from tcpscape.campaign import record
    from tcpscape.campaign.outcome import Outcome
    from tcpscape.words import paper

    if seed is not None:
        refuse("seed", f"{target.name} is about all trials of a condition", "leave it out")
    loaded = record.load(path)
    kept = {part: Outcome(o.campaign, o.select(cca), o.versions) for part, o in loaded.parts.items()}
    chosen = {part: outcome for part, outcome in kept.items() if outcome.cells}
    if not chosen:
        refuse("cca", f"{path} has no trial of {shown(cca)}", "choose a congestion control that it has")
    write = paper.WRITERS[target.name]
    return [
        (_name([part or path.name]), write(outcome, loaded.commands.get(part, loaded.command), loaded.version).encode())
        for part, outcome in chosen.items()
    ]


def _results(path: Path, target: Format, seed: int | None, cca: str | None, *, samples: bool) -> list[File]:
    """The table of all trials or of their samples, or a file for each trial."""
    from tcpscape.interchange import sources

    source = sources.load(path, sources.SAMPLES if target.write_trial or samples else ()).only(cca, seed)
    if target.write_parts and not samples:
        return [(_name([path.resolve().name]), target.write_parts(source.parts()))]
    if target.write_rows:
        return [(_name([path.resolve().name]), target.write_rows(source.samples() if samples else source.rows()))]
    if source.table is not None:
        refuse("source", f"{path} is a table, and {target.name} is made of trials", "name a result directory")
    write = target.write_trial
    files = []
    for group in source.groups:
        axes = [f"{k}{v}" for k, v in group.at.items() if k != "scenario"]
        files += [(_name([i.trial.scenario, i.trial.cca, *axes, f"seed{i.trial.seed}"]), write(i.trial, i.mtu)) for i in group.items if write]
    return files


def _name(words: Sequence[str]) -> str:
    return names.component("-".join(words))


def _write(files: Sequence[File], target: Format, out: Path | None) -> None:
    """One file or stdout; several into a directory."""
    if out is None or out == STDOUT:
        how = "add" if out is None else "write"
        if len(files) > 1:
            refuse("out", f"there are {len(files)} {target.name} files to write", f"{how} --out DIR, or choose one trial with --seed and --cca")
        if target.binary and (out is None or sys.stdout.isatty()):
            where = "" if out is None else ", and standard output is a terminal"
            refuse("out", f"{target.name} is not text{where}", f"{how} --out FILE{target.suffixes[0]}")
        streams.write_bytes(files[0][1])
        return
    several = len(files) > 1 or os.path.isdir(out)
    taken: set[str] = set()
    for i, (name, content) in enumerate(files):
        unique = name if name not in taken else f"{name}-{i}"
        taken.add(unique)
        if several:
            writing.whole(out / f"{unique}{target.suffixes[0]}", content)
            continue
        with writing.replacing(out) as part:
            part.write_bytes(content)
    writing.clear(out if several else out.parent)
    print(f"wrote {counted(len(files), f'{target.name} file')}: {printable(str(out))}", file=sys.stderr)
