"""A bundle: a result directory as one ZIP file with all that repeats it elsewhere, and the program that does.

It has the trials and samples of the directory (`results/`), what was asked as files (`campaigns/NAME.yaml`), every trial that its tables stand
on with its scenario, seed and goodput (`trials.json`), versions and commands (`README.md`), `repeat.py`, and the SHA-256 of each of
these (`SHA256SUMS`). `python repeat.py` runs every trial again and says which of them are the same. The same directory gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tcpscape.campaign.record import Record
from tcpscape.controls import spelling
from tcpscape.errors import StoreError, refuse
from tcpscape.names import component
from tcpscape.reading import files as reading
from tcpscape.reading import packaged
from tcpscape.reading.files import MIB, Kind
from tcpscape.store import database, side_tables
from tcpscape.trial import Trial

DATE = (1980, 1, 1, 0, 0, 0)
"""Date of every file of the archive: the first one that ZIP knows."""
RESULT = Kind("a file of results", "bundle a smaller directory", most=2048 * MIB, error=StoreError)
SUMS = "SHA256SUMS"
"""Name of the list of digests, as `sha256sum -c` reads it."""


def write(record: Record, root: Path) -> bytes:
    """The archive of a result directory.

    :raises TcpscapeError: one line, where a trial needs a file of its user's, which the directory does not keep, or cannot be repeated at all.
    """
    for problem in _obstacles(record):
        refuse("to", f"a bundle cannot repeat {problem}", "hand over the directory with that file, or export --to parquet")
    files = {f"results/{name}": content for name, content in _results(root)}
    for part, outcome in record.parts.items():
        text = yaml.safe_dump(outcome.campaign.to_dict(), sort_keys=False, allow_unicode=True)
        files[f"campaigns/{component(part or outcome.name)}.yaml"] = text.encode()
    files["trials.json"] = (json.dumps(trials(record), indent=1, allow_nan=False) + "\n").encode()
    files["repeat.py"] = packaged.text("data/repeat.txt").encode()
    files["README.md"] = _about(record).encode()
    files[SUMS] = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()).encode()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in files.items():
            target.writestr(zipfile.ZipInfo(name, DATE), content, zipfile.ZIP_DEFLATED)
    return archive.getvalue()


def trials(record: Record) -> dict[str, Any]:
    """What is run again: each scenario on its engine, with its seeds and what they carried, Mbit/s."""
    work = [
        {
            "engine": cell.engine,
            "version": outcome.versions[cell.engine],
            "scenario": dict(spec),
            "seeds": [trial.seed for trial in runs],
            "goodput_mbps": [trial.goodput_mbps for trial in runs],
            "hash": [trial.hash for trial in runs],
        }
        for outcome in record.outcomes
        for cell in outcome.cells
        for spec, runs in zip(cell.specs, cell.runs, strict=True)
    ]
    return {"tcpscape": record.version, "command": record.command, "work": work}


def _obstacles(record: Record) -> Iterator[str]:
    """What a trial needs that is not in the directory."""
    for outcome in record.outcomes:
        for cell in outcome.cells:
            if cell.engine.startswith("live"):
                yield "trials in real time, which the engine live ran"
            for spec in cell.specs:
                yield from _needs(spec)
            for runs in cell.runs:
                for trial in runs[:1]:
                    yield from _classes(trial)


def _needs(spec: Mapping[str, Any]) -> Iterator[str]:
    if "programs" in spec:
        yield "programs of this machine"
    for file in _traces(spec):
        yield f"the trace {file}"


def _traces(values: Any) -> Iterator[str]:
    """The files of traces in a scenario's values: of its path, its links and the access links of its flows."""
    if isinstance(values, Mapping):
        match values.get("trace"):
            case str(file) | {"file": str(file)}:
                yield file
    for value in values.values() if isinstance(values, Mapping) else values if isinstance(values, (list, tuple)) else ():
        yield from _traces(value)


def _classes(trial: Trial) -> Iterator[str]:
    """Congestion controls of the user's own."""
    for flow in trial.flows:
        if spelling.is_class(flow.cca) or flow.cca.endswith(".o"):
            yield f"the congestion control {flow.cca}"


def _results(root: Path) -> Iterator[tuple[str, bytes]]:
    """The trials and their samples; what else lies in the directory may be its user's own, and pages are made again of these."""
    for file in [root / database.FILE, *(file for table in side_tables.COLUMNS for file in sorted((root / table).glob("*.parquet")))]:
        if file.is_file() and not file.is_symlink():
            yield file.relative_to(root).as_posix(), reading.content(file, RESULT)


def _about(record: Record) -> str:
    """How to repeat it, in the archive itself."""
    versions = dict(pair for outcome in record.outcomes for pair in outcome.versions.items())
    kernels = sorted({kernel for outcome in record.outcomes for kernel in outcome.kernels})
    made_with = [f"- tcpscape {record.version}", *(f"- engine {engine}, version {version}" for engine, version in versions.items())]
    made_with += [f"- kernel {kernel}" for kernel in kernels]
    commands = "\n".join(f"    {line}" for line in record.command.splitlines())
    return f"""# {record.name}

Measured by

{commands}

with

{chr(10).join(made_with)}

To repeat it with that version of tcpscape installed, unpack this archive and run

    python repeat.py

which compares the archive with its digests, runs every trial again and compares what each carried. `results/` is a directory of results:
`tcpscape report results` makes its page, `tcpscape export results` its tables; `campaigns/` has what was asked, for
`tcpscape sweep campaigns/NAME.yaml`.
"""
