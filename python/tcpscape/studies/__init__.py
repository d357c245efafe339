"""The catalogue of published studies: one YAML each with its conditions, its published numbers and the claims they make."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from importlib import resources
from typing import Any, Literal

from pydantic import Field

from tcpscape import files, units
from tcpscape.errors import StudyError
from tcpscape.fields import Noun
from tcpscape.findings.conditions import Conditions
from tcpscape.scenario import validate

MBIT_OF = {"KiB/s": 8 * 1024 / 1e6, "KiB/s*8/1000": 1.024, "Mbit/s": 1.0}
"""True Mbit/s of one published unit: "KB/s" is KiB/s, and "Mbps" is KiB/s · 8 / 1000."""


class Claim(Noun):
    """Something a study says, as a check on our own runs."""

    text: str
    kind: Literal["cliff", "goodput", "cv", "ratio", "retention", "gain"]
    cca: str | None = None
    at: dict[str, str]
    """The cell: grid values as written."""
    over: dict[str, str] = Field(default_factory=dict)
    """The cell divided by, for `gain`."""
    value: str | None = None
    """The grid step, for `cliff`."""
    low: float = 0.0
    high: float = 0.0
    """The range that counts as reproduced: Mbit/s as published for `goodput`, fractions and ratios otherwise."""


class Block(Noun):
    """A grid and its repetitions."""

    vary: dict[str, tuple[str, ...]]
    repeats: int = Field(ge=1)


class Study(Noun):
    """A published experiment."""

    name: str
    title: str
    source: str
    about: str
    conditions: Conditions
    vary: dict[str, tuple[str, ...]]
    pool: tuple[str, ...]
    """Application rates, pooled in every published number."""
    cca: tuple[str, ...]
    repeats: int
    also: tuple[Block, ...] = ()
    axis: Literal["jitter", "loss"]
    published: str
    raw: str
    claims: tuple[Claim, ...]

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Every grid."""
        return (Block(vary=self.vary, repeats=self.repeats), *self.also)


class Known(Noun):
    """A number that somebody measured."""

    mbps: float
    """True Mbit/s."""
    n: int | None = None
    cv: float | None = None
    """Fraction."""
    source: str = ""


def names() -> list[str]:
    """Studies there are."""
    return sorted(f.name.removesuffix(".yaml") for f in resources.files(__name__).iterdir() if f.name.endswith(".yaml"))


def get(name: str) -> Study:
    """The study called `name`."""
    if name not in names():
        raise StudyError(f"study: {name!r} is unknown; choose {', '.join(names())}")
    text = (resources.files(__name__) / f"{name}.yaml").read_text("utf-8")
    study: Study = validate(Study, files.read_yaml(text, name), name)
    return study


CellKey = tuple[str, float, float, float]
"""cca, RTT in ms, jitter in ms, loss in percent."""


def key(cca: str, conditions: Conditions) -> CellKey:
    """The cell of some conditions."""
    return cca, conditions.rtt / 1e6, conditions.jitter / 1e6, round(conditions.loss * 100, 6)


def at(study: Study, cca: str, values: Mapping[str, str]) -> CellKey:
    """The cell of grid values as written."""
    parse = {"rtt": units.parse_time, "jitter": units.parse_time, "loss": units.parse_percent}
    return key(cca, study.conditions.model_copy(update={k: parse[k](v, k) for k, v in values.items()}))


def published(study: Study) -> dict[CellKey, Known]:
    """The published means."""
    return {_key(r): Known(mbps=float(r["value"]) * MBIT_OF[r["unit"]], source=r["source"]) for r in _rows(study.published)}


def raw(study: Study, rate: str = "pooled") -> dict[CellKey, Known]:
    """The means of the raw runs behind the published ones; where two campaigns ran a cell, the study's own."""
    found: dict[CellKey, Known] = {}
    for r in _rows(study.raw):
        if r["rate_MiBps"] == rate:
            one = Known(mbps=float(r["thr_mean_Mbps"]), n=int(r["n"]), cv=float(r["cv_pct"]) / 100, source=r["source_file"])
            found.setdefault(_key(r), one)
    return found


def _key(row: dict[str, Any]) -> CellKey:
    return row["cca"], float(row["rtt_ms"]), float(row["jitter_ms"]), float(row["loss_pct"])


def _rows(name: str) -> list[dict[str, Any]]:
    text = (resources.files(__name__) / "data" / name).read_text("utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
