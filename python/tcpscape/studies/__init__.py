"""The catalogue of published studies: one YAML each with its conditions, its published numbers and the claims they make."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, Literal

from pydantic import Field, model_validator

from tcpscape import files, units
from tcpscape.errors import StudyError, refuse
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
    """The cell: grid values as written, or `profile` with a name."""
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
    vary: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """The grid."""
    profiles: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Paths by name, instead of a grid."""
    pool: tuple[str, ...]
    """Application rates, pooled in every published number."""
    cca: tuple[str, ...]
    repeats: int
    also: tuple[Block, ...] = ()
    axis: Literal["jitter", "loss", "profile"]
    published: str
    raw: str
    claims: tuple[Claim, ...]

    @model_validator(mode="after")
    def _grid_or_profiles(self) -> Study:
        if bool(self.vary) == bool(self.profiles) or bool(self.profiles) != (self.axis == "profile"):
            refuse("vary", "a study has a grid with an axis of it, or profiles", "write vary with axis jitter or loss, or profiles with axis profile")
        return self

    def points(self) -> Iterator[tuple[dict[str, str], int]]:
        """Each point, as in a claim's `at`, with its repetitions: the profiles, the grid, the blocks beside it."""
        yield from (({"profile": name}, self.repeats) for name in self.profiles)
        grid = (Block(vary=self.vary, repeats=self.repeats),) if self.vary else ()
        for block in (*grid, *self.also):
            for values in itertools.product(*block.vary.values()):
                yield dict(zip(block.vary, values, strict=True)), block.repeats


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


def conditions(study: Study, values: Mapping[str, str]) -> Conditions:
    """The conditions at grid values as written, or of a `profile` by its name; raises StudyError for one that is unknown."""
    parse = {"rtt": units.parse_time, "jitter": units.parse_time, "loss": units.parse_percent}
    name = values.get("profile")
    if name is not None and name not in study.profiles:
        refuse("profile", f"{name!r} is unknown", f"choose {', '.join(study.profiles)}", StudyError)
    said = study.profiles[name] if name is not None else values
    return study.conditions.model_copy(update={k: parse[k](v, k) for k, v in said.items()})


def at(study: Study, cca: str, values: Mapping[str, str]) -> CellKey:
    """The cell of grid values as written, or of a `profile`."""
    return key(cca, conditions(study, values))


def profile(study: Study, cell: CellKey) -> str:
    """The name of a cell's profile; `` where the study has a grid."""
    return next((name for name in study.profiles if at(study, cell[0], {"profile": name}) == cell), "")


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
