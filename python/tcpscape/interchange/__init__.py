"""Interchange: files of other tools read as trials, trials written as other tools read them, and results of any origin compared.

The main type is :class:`Format`; :data:`REGISTRY` has every one of them. Begin with :func:`read`. `sources` finds the results at any path (a result
directory, a file of a format, a directory of such files) as groups of trials; `compare` parts them by what can be seen of their paths, compares two
of them and checks the comparison. `observing` reads what shows flows, for a diagnosis. `measured` reads the path of a measurement, for advice on it.

To add a format: one file with the functions that read and write it, and one line in :data:`REGISTRY`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tcpscape.interchange import table
from tcpscape.interchange.base import Format, ImportedFile, InterchangeError, refuse


def _of(module: str, verb: str) -> Callable[..., Any]:
    """The `read` or `write` of a format. Its module is loaded when one is needed: who reads a capture needs none of them."""

    def call(*arguments: Any) -> Any:
        return getattr(import_module(f"{__name__}.{module}"), verb)(*arguments)

    return call


REGISTRY: dict[str, Format] = {
    f.name: f
    for f in (
        Format("csv", "a row for each flow of each trial", (".csv",), read=table.read_csv, write_rows=table.write_csv),
        Format(
            "parquet",
            "a row for each flow of each trial",
            (".parquet",),
            table.read_parquet,
            write_rows=table.write_parquet,
            write_parts=table.write_parquet_parts,
            binary=True,
        ),
        Format("markdown", "the answer of a result and its table", (".md",), is_answer=True),
        Format("latex", "the table of a result for a paper", (".tex",), is_answer=True),
        Format("methods", "how a result was measured, as a paragraph", (".txt",), is_answer=True),
        Format("iperf3", "iperf3 -J, --json-stream", (".json", ".jsonl"), _of("iperf3", "read"), _of("iperf3", "write")),
        Format("flent", "Flent's data files", (".flent.gz", ".flent", ".flent.bz2"), _of("flent", "read"), _of("flent", "write"), binary=True),
        Format("mahimahi", "a trial's throughput as a packet-delivery trace", (".up",), write_trial=_of("mahimahi", "write")),
        Format("perfetto", "a trial as a trace for Perfetto", (".perfetto-trace",), write_trial=_of("perfetto", "write"), binary=True),
        Format("qlog", "a trial as qlog, for qvis", (".qlog",), write_trial=_of("qlog", "write")),
        Format("tc", "a scenario's path as commands", (".sh",), write_scenario=_of("tc", "write")),
        Format("bundle", "a result directory with all that repeats it", (".zip",), write_directory=_of("bundle", "write"), binary=True),
    )
}
"""Every format by name."""


def format_of(path: Path) -> Format:
    """The format that a file's name ends with."""
    for known in REGISTRY.values():
        if known.read and path.name.lower().endswith(known.suffixes):
            return known
    endings = ", ".join(s for f in REGISTRY.values() if f.read for s in f.suffixes)
    refuse(path, "its ending says no format", f"give a result directory, or a file that ends with {endings}")


def read(path: Path) -> ImportedFile:
    """The content of a file, in the format of its ending. :raises InterchangeError: one line with the file, what is wrong with it and what to do."""
    known = format_of(path)
    if known.read is None:  # format_of gives none of these
        refuse(path, f"{known.name} is only written", "give another file")
    return known.read(path)


def writable() -> Sequence[str]:
    """Names of the formats that can be written."""
    return [f.name for f in REGISTRY.values() if f.writes]


__all__ = ["REGISTRY", "Format", "ImportedFile", "InterchangeError", "format_of", "read", "writable"]
