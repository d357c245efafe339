"""From what a user asks to a request: which conditions, which two sides, how many seeds."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tcpscape.engines import REGISTRY
from tcpscape.errors import StoreError, refuse
from tcpscape.scenario.scenario import Scenario
from tcpscape.validate import conditions, recorded, shared, sides
from tcpscape.validate.conditions import Condition
from tcpscape.validate.draw import CCAS, Draw
from tcpscape.validate.rounds import MOST_SEEDS, Request

ENGINES = ("model", "virtual")
"""Compared when nothing else is asked for: ours, and the referee."""
SEEDS = "3"
ALL = "all"
"""Instead of names of congestion controls: all that both engines have."""
CONDITIONS, RESULTS, NUMBERS, SUMMARY, REPORT = "conditions.yaml", "results.csv", "conditions.csv", "summary.json", "report.md"
"""Files of a validation."""


@dataclass(frozen=True)
class Asked:
    """What the command line says."""

    out: Path
    engines: Sequence[str] = ()
    against: str | None = None
    conditions: str | None = None
    random: int | None = None
    shared: int | None = None
    seed: int = 0
    ccas: Sequence[str] = ()
    paired: bool = False
    seeds: str = SEEDS
    precision: float | None = None
    most: int = MOST_SEEDS
    jobs: int = 0


@dataclass(frozen=True)
class Session:
    """A request with where its conditions are from, in words."""

    request: Request
    source: str
    specs: tuple[str, ...]
    """The engines as asked for; one where the other side is recorded."""
    against: str | None


def prepare(asked: Asked) -> Session:
    """The request, everything checked that can be checked before anything runs."""
    record = recorded.load(asked.against) if asked.against else None
    specs = engine_specs(asked.engines, recorded=record is not None)
    a = sides.make(specs[0], asked.jobs, asked.out)
    b = sides.RecordedSide(record) if record else sides.make(specs[1], asked.jobs, asked.out)
    if tuple(asked.ccas) == (ALL,):
        asked = replace(asked, ccas=_everyone(a, b))
    found, source = _conditions(asked, record)
    if asked.precision is not None and not 0 < asked.precision <= 10:
        refuse("precision", f"{asked.precision:g} is no half width of an ln ratio", "write for example 0.05")
    request = Request(found, a, b, seeds_of(asked.seeds), asked.precision, asked.most)
    return Session(request, source, specs, asked.against)


def _everyone(a: sides.EngineSide, b: sides.Side) -> tuple[str, ...]:
    """The congestion controls that both sides have, of those that the model knows."""
    names = REGISTRY["model"]().ccas()
    plain = Scenario.of({"forward": "netem delay 10ms"})
    engines = [side for side in (a, b) if isinstance(side, sides.EngineSide)]
    return tuple(n for n in names if not any(side.refuses(Condition(n, plain.with_cca(n))) for side in engines))


def engine_specs(said: Sequence[str], *, recorded: bool) -> tuple[str, ...]:
    """The engines: two, or one beside recorded results; the defaults fill what is not said."""
    if recorded:
        if len(said) > 1:
            refuse("engine", f"{len(said)} engines against recorded results", "name one")
        return tuple(said) or ENGINES[:1]
    if len(said) > 2:
        refuse("engine", f"{len(said)} engines", "name two")
    specs = tuple(said) if len(said) == 2 else (said[0], ENGINES[1]) if said else ENGINES
    if specs[0] == specs[1]:
        refuse("engine", f"{specs[0]} is compared with itself", "name two engines, for example --engine model --engine model:6.12")
    return specs


def seeds_of(text: str) -> tuple[int, int]:
    """`3` seeds on both sides, `20/3` on the first and on the second."""
    found = re.fullmatch(r"\s*(\d{1,6})\s*(?:/\s*(\d{1,6})\s*)?", text)
    if not found or 0 in (pair := (int(found.group(1)), int(found.group(2) or found.group(1)))):
        refuse("seeds", f"{text!r} is no number of seeds", "write 3, or 20/3 for 20 of the first engine and 3 of the second")
    return pair


def _conditions(asked: Asked, record: recorded.Recorded | None) -> tuple[list[Condition], str]:
    """The conditions and where they are from."""
    if sum(x is not None for x in (asked.conditions, asked.random, asked.shared)) > 1:
        refuse("random" if asked.random is not None else "shared", "the conditions are named already", "name one of --conditions, --random, --shared")
    if asked.shared is not None:
        return _drawn_shared(asked, asked.shared)
    if asked.random is not None:
        return _drawn(asked)
    if asked.conditions:
        found, source = conditions.read(asked.conditions), asked.conditions
    elif record:
        found, source = record.conditions, f"{record.name}, recorded"
    elif (kept := asked.out / CONDITIONS).exists():
        found, source = conditions.read(kept), str(kept)
    else:
        refuse("conditions", "none given", "write --random 60 --seed 1, --shared 40, --conditions FILE or --against RECORD")
    return conditions.chosen(found, asked.ccas, paired=asked.paired), source


def _drawn(asked: Asked) -> tuple[list[Condition], str]:
    draw = Draw(asked.random or 0, asked.seed, tuple(asked.ccas) or CCAS)
    found = (replace(draw, ccas=draw.ccas[:1]) if asked.paired else draw).conditions()
    source = f"{draw.n} {'paths' if asked.paired else 'conditions'} drawn at random (seed {asked.seed})"
    return (conditions.pairs(found, draw.ccas) if asked.paired else found), source


def _drawn_shared(asked: Asked, n: int) -> tuple[list[Condition], str]:
    if asked.paired:
        refuse("paired", "shared bottlenecks have two congestion controls already", "leave it out, or use --random")
    rows = shared.Draw(n, asked.seed, tuple(asked.ccas) or shared.CCAS).rows()
    return [conditions.of_row(row) for row in rows], f"{n} shared bottlenecks drawn at random (seed {asked.seed})"


def resume(out: Path, id: str, asked: Asked) -> Session:
    """The session that wrote `out`, for one of its conditions and the runs that it has had."""
    said = _summary(out)
    found = [c for c in conditions.read(out / CONDITIONS) if c.id == id]
    if not found:
        refuse("explain", f"there is no condition {id!r} in {out / CONDITIONS}", "choose an id of conditions.csv")
    with_engines = replace(asked, engines=asked.engines or said["engines"], against=asked.against or said["against"])
    session = prepare(replace(with_engines, conditions=str(out / CONDITIONS), random=None, shared=None, ccas=(), paired=False, precision=None))
    runs = next((tuple(c["runs"]) for c in said["conditions"] if c["id"] == id), session.request.seeds)
    return replace(session, request=replace(session.request, conditions=found, seeds=runs))


def _summary(out: Path) -> dict[str, Any]:
    try:
        said: dict[str, Any] = json.loads((out / SUMMARY).read_text("utf-8"))
    except (OSError, ValueError) as e:
        raise StoreError(f"out: {out / SUMMARY} cannot be read ({e}); validate with --out {out} first") from None
    return said
