"""From a user's options to a plan: the conditions, the two sides, the numbers of seeds; and the files of a validation's directory."""

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
from tcpscape.validate import conditions, recorded, sides
from tcpscape.validate.conditions import NamedScenario
from tcpscape.validate.draw import CCAS, SHARED_CCAS, PathDraw, SharedDraw
from tcpscape.validate.rounds import MOST_SEEDS, ValidationPlan

ENGINES = ("model", "virtual")
"""Engines that are compared where none is given: ours, and the reference."""
SEEDS = "3"
ALL = "all"
"""Instead of names of congestion controls: all that both engines have."""
CONDITIONS, RESULTS, NUMBERS, SUMMARY, REPORT = "conditions.yaml", "results.csv", "conditions.csv", "summary.json", "report.md"
"""Files of a validation."""


@dataclass(frozen=True)
class ValidationOptions:
    """The options of `tcpscape validate`."""

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
    """A plan, and what is needed to describe and to repeat it."""

    plan: ValidationPlan
    source: str
    """Origin of the conditions, in words."""
    engines: tuple[str, ...]
    """The engines as given; one where the other side is recorded."""
    against: str | None


def prepare(options: ValidationOptions) -> Session:
    """The plan; everything that can be checked before a run is checked."""
    record = recorded.load(options.against) if options.against else None
    specs = engine_specs(options.engines, recorded=record is not None)
    a = sides.make(specs[0], options.jobs, options.out)
    b = sides.RecordedSide(record) if record else sides.make(specs[1], options.jobs, options.out)
    if tuple(options.ccas) == (ALL,):
        options = replace(options, ccas=_ccas_of_both(a, b))
    selected, source = _conditions(options, record)
    if options.precision is not None and not 0 < options.precision <= 10:
        refuse("precision", f"{options.precision:g} is no half width of an ln ratio", "write for example 0.05")
    plan = ValidationPlan(selected, a, b, seeds_of(options.seeds), options.precision, options.most)
    return Session(plan, source, specs, options.against)


def _ccas_of_both(a: sides.EngineSide, b: sides.Side) -> tuple[str, ...]:
    """The congestion controls that both sides have, of those that the model knows."""
    names = REGISTRY["model"]().ccas()
    plain = Scenario.of({"forward": "netem delay 10ms"})
    engines = [side for side in (a, b) if isinstance(side, sides.EngineSide)]
    return tuple(n for n in names if not any(side.refuses(NamedScenario(n, plain.with_cca(n))) for side in engines))


def engine_specs(names: Sequence[str], *, recorded: bool) -> tuple[str, ...]:
    """The engines: two, or one beside recorded results; defaults take the place of those that are not given."""
    if recorded:
        if len(names) > 1:
            refuse("engine", f"{len(names)} engines against recorded results", "name one")
        return tuple(names) or ENGINES[:1]
    if len(names) > 2:
        refuse("engine", f"{len(names)} engines", "name two")
    specs = tuple(names) if len(names) == 2 else (names[0], ENGINES[1]) if names else ENGINES
    if specs[0] == specs[1]:
        refuse("engine", f"{specs[0]} is compared with itself", "name two engines, for example --engine model --engine model:6.12")
    return specs


def seeds_of(text: str) -> tuple[int, int]:
    """`3` seeds on both sides, `20/3` on the first and on the second."""
    match = re.fullmatch(r"\s*(\d{1,6})\s*(?:/\s*(\d{1,6})\s*)?", text)
    if not match or 0 in (pair := (int(match.group(1)), int(match.group(2) or match.group(1)))):
        refuse("seeds", f"{text!r} is no number of seeds", "write 3, or 20/3 for 20 of the first engine and 3 of the second")
    return pair


def _conditions(options: ValidationOptions, record: recorded.RecordedSet | None) -> tuple[list[NamedScenario], str]:
    """The conditions, and their origin in words."""
    if sum(x is not None for x in (options.conditions, options.random, options.shared)) > 1:
        field = "random" if options.random is not None else "shared"
        refuse(field, "the conditions are named already", "name one of --conditions, --random, --shared")
    if options.shared is not None:
        return _drawn_shared(options, options.shared)
    if options.random is not None:
        return _drawn(options)
    if options.conditions:
        listed, source = conditions.read(options.conditions), options.conditions
    elif record:
        listed, source = record.conditions, f"{record.name}, recorded"
    elif (file := options.out / CONDITIONS).exists():
        listed, source = conditions.read(file), str(file)
    else:
        refuse("conditions", "none given", "write --random 60 --seed 1, --shared 40, --conditions FILE or --against RECORD")
    return conditions.chosen(listed, options.ccas, paired=options.paired), source


def _drawn(options: ValidationOptions) -> tuple[list[NamedScenario], str]:
    draw = PathDraw(options.random or 0, options.seed, tuple(options.ccas) or CCAS)
    drawn = (replace(draw, ccas=draw.ccas[:1]) if options.paired else draw).conditions()
    source = f"{draw.n} {'paths' if options.paired else 'conditions'} drawn at random (seed {options.seed})"
    return (conditions.pairs(drawn, draw.ccas) if options.paired else drawn), source


def _drawn_shared(options: ValidationOptions, n: int) -> tuple[list[NamedScenario], str]:
    if options.paired:
        refuse("paired", "shared bottlenecks have two congestion controls already", "leave it out, or use --random")
    draw = SharedDraw(n, options.seed, tuple(options.ccas) or SHARED_CCAS)
    return draw.conditions(), f"{n} shared bottlenecks drawn at random (seed {options.seed})"


def resume(out: Path, id: str, options: ValidationOptions) -> Session:
    """The session that wrote `out`, for one of its conditions with as many runs as it had."""
    summary = _summary(out)
    matching = [c for c in conditions.read(out / CONDITIONS) if c.id == id]
    if not matching:
        refuse("explain", f"there is no condition {id!r} in {out / CONDITIONS}", "choose an id of conditions.csv")
    with_engines = replace(options, engines=options.engines or summary["engines"], against=options.against or summary["against"])
    session = prepare(replace(with_engines, conditions=str(out / CONDITIONS), random=None, shared=None, ccas=(), paired=False, precision=None))
    runs = next((tuple(c["runs"]) for c in summary["conditions"] if c["id"] == id), session.plan.seeds)
    return replace(session, plan=replace(session.plan, conditions=matching, seeds=runs))


def keep_conditions(out: Path, listed: Sequence[NamedScenario]) -> None:
    """Writes the conditions into the validation's directory, so that it can be resumed and its conditions looked into."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        conditions.write(listed, out / CONDITIONS)
    except OSError as e:
        raise StoreError(f"out: cannot write to {out}: {e.strerror}; choose another directory") from None


def _summary(out: Path) -> dict[str, Any]:
    try:
        summary: dict[str, Any] = json.loads((out / SUMMARY).read_text("utf-8"))
    except (OSError, ValueError) as e:
        raise StoreError(f"out: {out / SUMMARY} cannot be read ({e}); validate with --out {out} first") from None
    return summary
