"""A result directory: the store of trials, and a manifest that says what was asked, with which command, and which trials each cell holds.

Whatever is shown later (a report, a comparison, an export) is read from here; nothing has to run again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import tcpscape
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.errors import StoreError
from tcpscape.scenario.scenario import Scenario
from tcpscape.store.results import Store
from tcpscape.trial import Trial

MANIFEST = "manifest.json"
"""Its name in the directory."""
FORMAT = 1
"""Version of its layout."""
Kind = Literal["run", "sweep", "study"]


@dataclass(frozen=True)
class Record:
    """What a result directory holds."""

    kind: Kind
    name: str
    command: str
    """What to type to run it again."""
    parts: Mapping[str, Outcome]
    """Part of a study → its outcome; one part called `` otherwise."""
    study: Mapping[str, Any] | None = None
    """The study's own words."""
    version: str = field(default_factory=lambda: tcpscape.__version__)
    """tcpscape's."""

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcome of each part."""
        return tuple(self.parts.values())


def save(record: Record, root: Path) -> Path:
    """Writes the manifest of `record` into `root`, all of it or nothing; the trials are in the store there."""
    said = {
        "format": FORMAT, "kind": record.kind, "name": record.name, "command": record.command, "tcpscape": record.version,
        "study": record.study, "parts": {name: _part(outcome) for name, outcome in record.parts.items()},
    }
    file, part = root / MANIFEST, root / f".{MANIFEST}.{os.getpid()}.part"
    try:
        root.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(said, indent=1), "utf-8")
        part.replace(file)
    except OSError as e:
        raise StoreError(f"out: cannot write {file}: {e.strerror}; choose another directory") from None
    return file


def _part(outcome: Outcome) -> dict[str, Any]:
    cells = [
        {
            "at": dict(c.at), "cca": c.cca, "engine": c.engine, "scenarios": [s.to_dict() for s in c.scenarios],
            "runs": [[t.address for t in some] for some in c.runs],
        }
        for c in outcome.cells
    ]
    return {"campaign": outcome.campaign.to_dict(), "versions": dict(outcome.versions), "cells": cells}


def load(root: Path) -> Record:
    """The record in `root` with its trials, and their samples and packets where they were kept.

    :raises StoreError: one line, where the manifest or a trial of it is missing, damaged or of another layout.
    """
    file = root / MANIFEST
    try:
        said = json.loads(file.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(f"{root}: no {MANIFEST} in it; name a directory that run, sweep or study wrote with --out") from None
    except (OSError, ValueError) as e:
        raise StoreError(f"{file}: cannot be read ({e}); run again with the same --out") from None
    layout = said.get("format") if isinstance(said, dict) else None
    if layout != FORMAT:
        raise StoreError(f"{file}: its format is {layout!r}, this tcpscape reads {FORMAT}; run again with the same --out")
    store = Store(root)
    try:
        parts = {name: _outcome(part, store, root) for name, part in said["parts"].items()}
        return Record(said["kind"], said["name"], said["command"], parts, said["study"], said["tcpscape"])
    except (KeyError, TypeError, AttributeError, ValueError) as e:
        raise StoreError(f"{file}: is not what this tcpscape writes ({type(e).__name__}: {e}); run again with the same --out") from None


def _outcome(said: Mapping[str, Any], store: Store, root: Path) -> Outcome:
    campaign = Campaign.of(said["campaign"])
    kept = campaign.capture()
    wanted = (("samples", kept.samples_ns), ("queue_samples", kept.queue_samples_ns), ("packets", kept.packets))
    addresses = [a for cell in said["cells"] for some in cell["runs"] for a in some]
    tables = [name for name, asked in wanted if asked]
    found: dict[str, Trial] = {}
    for some in (tables, *([t] for t in tables), []):  # an engine may not see all that was asked for
        if missing := [a for a in addresses if a not in found]:
            found |= store.load_many(missing, some)
    if lost := [a for a in addresses if a not in found]:
        raise StoreError(f"{root}: trial {lost[0]} of its manifest is missing; run again with the same --out")
    return Outcome(campaign, tuple(_cell(c, found, campaign) for c in said["cells"]), said["versions"])


def _cell(said: Mapping[str, Any], trials: Mapping[str, Trial], campaign: Campaign) -> Cell:
    runs = tuple(tuple(trials[address] for address in some) for some in said["runs"])
    return Cell(said["at"], said["cca"], said["engine"], tuple(Scenario.of(s) for s in said["scenarios"]), runs, campaign.precision is not None)
