"""What is refused for its size: files, documents, campaigns, scenarios, messages."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import tcpscape
from tcpscape import errors, names, units
from tcpscape.campaign import axes, campaign
from tcpscape.plots import chosen
from tcpscape.reading import documents, tables
from tcpscape.reading.files import Kind
from tcpscape.scenario import flows
from website.markdown import table

MIB = 2**20
OWN = ("a page", "a table of published numbers", "the measured errors")
"""Kinds of files that come with tcpscape."""


def counts() -> str:
    """The largest numbers that are accepted."""
    shortest, longest = (units.format_time(ns) for ns in flows.SEGMENTS)
    memory = f"Memory of a campaign's cells, trials and samples; `{campaign.MEMORY_VARIABLE}` raises it"
    rows = [
        ("Flows of a trial", flows.MAX_FLOWS),
        (memory, f"{campaign.MEMORY // 2**30} GiB"),
        ("Values of an axis", axes.MAX_LEVELS),
        ("Trials of a cell", axes.MAX_SEEDS),
        ("Digits of a seed", axes.MAX_DIGITS),
        ("Characters of a name", names.MOST_CHARACTERS),
        ("Figures of one `plot`", chosen.MOST_FIGURES),
        ("Time, in hours", units.MAX_TIME_NS // units.TIME_UNITS["h"]),
        ("Length of a video segment", f"{shortest} to {longest}"),
        ("Levels of mappings and lists within each other", documents.DEEPEST),
        ("Values of a YAML or TOML document", documents.MOST_NODES),
        ("Values of a JSON document", documents.MOST_VALUES),
        ("Digits of a whole number", documents.MOST_DIGITS),
        ("Cells of a CSV table", tables.MOST_CELLS),
        ("Values of a Parquet table", tables.MOST_VALUES),
        ("Characters of an error message", errors.MOST_MESSAGE),
        ("Characters of a value in a message", errors.MOST_SHOWN),
    ]
    return table(["What", "At most"], [(what, f"{most:,.0f}" if isinstance(most, int | float) else most) for what, most in rows])


def sizes() -> str:
    """The largest files that are read."""
    rows = {(kind.what, _mib(kind.most), _mib(kind.most_unpacked) if kind.most_unpacked else "") for kind in kinds() if kind.what not in OWN}
    return table(["File", "At most", "Unpacked"], [(what, most, unpacked or "–") for what, most, unpacked in sorted(rows)])


def kinds() -> Iterator[Kind]:
    """Every kind of file that a module of the package reads."""
    package = Path(tcpscape.__file__).parent
    for file in sorted(package.rglob("*.py")):
        name = ".".join(["tcpscape", *file.relative_to(package).with_suffix("").parts]).removesuffix(".__init__")
        if file.stem != "__main__":
            yield from (value for value in vars(importlib.import_module(name)).values() if isinstance(value, Kind))


def _mib(size: int) -> str:
    return f"{size / MIB:,.0f} MiB" if size >= MIB else f"{size / 1024:,.0f} KiB"


PARTS: Mapping[str, Callable[[], str]] = {"limits": counts, "sizes of files": sizes}
"""Name of a part → the function that writes it."""
