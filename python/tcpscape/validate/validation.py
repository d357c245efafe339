"""A whole validation: from a user's options to a plan, its runs, and what was derived from them; and the files of its directory.

The plan has the conditions, the two sides and the numbers of seeds. Every condition runs on both sides, then with further seeds where an interval is
still too wide. Then the bounds are checked, congestion controls ranked, and single conditions explained. To explain a condition is to compare traces
of several seeds of both engines: the moment at which they part, and their counters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, Field

from tcpscape.campaign import campaign
from tcpscape.campaign.campaign import Size
from tcpscape.campaign.checks import Check
from tcpscape.engines import REGISTRY
from tcpscape.errors import StoreError, refuse, shown
from tcpscape.formats import expect
from tcpscape.reading import documents
from tcpscape.reading import files as reading
from tcpscape.reading.files import MIB, Kind, Origin
from tcpscape.scenario.scenario import Scenario
from tcpscape.text.numbers import number
from tcpscape.units import counted
from tcpscape.validate import conditions, sides, topologies
from tcpscape.validate.compare import CheckedBound, Divergence, Ranks, judge, ranks, worst
from tcpscape.validate.conditions import NamedScenario
from tcpscape.validate.draw import CCAS, SHARED_CCAS, ExactDraw, ImpairedDraw, PathDraw, SharedDraw
from tcpscape.validate.parting import Bundle, Partings, bundle, part
from tcpscape.validate.sides import RecordedSet, Say, Side, SideRuns, load_recorded
from tcpscape.validate.topologies import TopologyDraw

ENGINES = ("model", "virtual")
"""Engines that are compared where none is given: ours, and the reference."""
SEEDS = "3"
DETERMINISTIC = 24
"""Paths that `exact` draws."""
ALL = "all"
"""Instead of names of congestion controls: all that both engines have."""
CONDITIONS, RESULTS, NUMBERS, SUMMARY, REPORT = "conditions.yaml", "results.csv", "conditions.csv", "summary.json", "report.md"
"""Files of a validation."""
LEAST_SHARE, FEW = 0.2, 5
"""A side runs further seeds where its scatter makes at least this share of the interval's variance, or where it has fewer runs than this."""
MOST_SEEDS = 24
"""Most seeds of a condition on one side, where `precision` asks for more."""
TRACED_SEEDS = 6
"""Traces of each engine: few enough to look at, enough to tell chance from a difference (924 ways to relabel them)."""


class ListedCondition(BaseModel):
    """A condition in the summary: its id, and its runs on each side."""

    id: str
    runs: tuple[Annotated[int, Field(ge=1, le=1_000_000)], Annotated[int, Field(ge=1, le=1_000_000)]]


class Summary(BaseModel):
    """What is read again of `summary.json`: with what a validation was run."""

    engines: tuple[str, ...]
    against: str | None
    conditions: tuple[ListedCondition, ...]


SUMMARIES = Kind("a validation's summary", "validate with --out again", most=64 * MIB, error=StoreError)


@dataclass(frozen=True)
class ValidationOptions:
    """The options of `tcpscape validate`."""

    out: Path
    engine: Sequence[str] = ()
    against: str | None = None
    conditions: str | None = None
    random: int | None = None
    shared: int | None = None
    topology: int | None = None
    exact: bool = False
    n: int | None = None
    """Of the paths that `exact` draws."""
    impaired: bool = False
    """Whether those have random impairments."""
    seed: int = 0
    cca: Sequence[str] = ()
    paired: bool = False
    seeds: str = SEEDS
    precision: float | None = None
    most_seeds: int = MOST_SEEDS
    jobs: int = 0


@dataclass(frozen=True)
class ValidationSession:
    """A plan, and what is needed to describe and to repeat it."""

    plan: ValidationPlan
    source: str
    """Origin of the conditions, in words."""
    engines: tuple[str, ...]
    """The engines as given; one where the other side is recorded."""
    against: str | None


def prepare(options: ValidationOptions) -> ValidationSession:
    """The plan; everything that can be checked before a run is checked."""
    seeds = seeds_of(options.seeds)
    _expect_size((options.random or options.shared or options.topology or 0) * (len(options.cca) if options.paired else 1), seeds)
    record = load_recorded(options.against) if options.against else None
    specs = engine_specs(options.engine, recorded=record is not None)
    specs = sides.with_host_kernel(specs)
    a = sides.make(specs[0], options.jobs, options.out)
    b = sides.RecordedSide(record) if record else sides.make(specs[1], options.jobs, options.out)
    if tuple(options.cca) == (ALL,):
        options = replace(options, cca=_ccas_of_both(a, b))
    selected, source = _conditions(options, record)
    if options.precision is not None and not 0 < options.precision <= 10:
        refuse("precision", f"{options.precision:g} is no half width of an ln ratio", "write for example 0.05")
    _expect_size(len(selected), seeds)
    for condition in selected:
        condition.scenario.expect_path()
    plan = ValidationPlan(selected, a, b, seeds, options.precision, options.most_seeds)
    return ValidationSession(plan, source, specs, options.against)


def _expect_size(count: int, seeds: tuple[int, int]) -> None:
    """Refuses more conditions than fit into memory with their runs."""
    campaign.expect_fits(Size(2 * count, count * sum(seeds)), "validate", "take fewer conditions or seeds")


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
    match = re.fullmatch(r"\s*([0-9]{1,6})\s*(?:/\s*([0-9]{1,6})\s*)?", text)
    if not match or 0 in (pair := (int(match.group(1)), int(match.group(2) or match.group(1)))):
        refuse("seeds", f"{shown(text)} is no number of seeds", "write 3, or 20/3 for 20 of the first engine and 3 of the second")
    return pair


def _conditions(options: ValidationOptions, record: RecordedSet | None) -> tuple[list[NamedScenario], str]:
    """The conditions, and their origin in words."""
    given = [name for name in ("random", "shared", "topology", "conditions") if getattr(options, name) is not None]
    if len(given) > 1:
        refuse(given[0], "the conditions are named already", "name one of --conditions, --random, --shared, --topology")
    if options.n is not None and (not options.exact or options.conditions):
        refuse("n", "the paths are not those that --exact draws", "add --exact, without --conditions, or write --random N")
    if options.impaired and (not options.exact or options.conditions):
        refuse("impaired", "the paths are not those that --exact draws", "add --exact, without --conditions")
    if options.exact and not options.conditions:
        return _drawn_exact(options, DETERMINISTIC if options.n is None else options.n)
    if options.topology is not None:
        return _drawn_topologies(options, options.topology)
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
        refuse("conditions", "none given", "write --random 60 --seed 1, --shared 40, --topology 20, --exact, --conditions FILE or --against RECORD")
    return conditions.chosen(listed, options.cca, paired=options.paired), source


def _drawn(options: ValidationOptions) -> tuple[list[NamedScenario], str]:
    draw = PathDraw(options.random or 0, options.seed, tuple(options.cca) or CCAS)
    drawn = (replace(draw, ccas=draw.ccas[:1]) if options.paired else draw).conditions()
    source = f"{draw.n} {'paths' if options.paired else 'conditions'} drawn at random (seed {options.seed})"
    return (conditions.pairs(drawn, draw.ccas) if options.paired else drawn), source


def _drawn_exact(options: ValidationOptions, n: int) -> tuple[list[NamedScenario], str]:
    for name in ("paired", "against", "random", "shared", "topology"):
        if getattr(options, name) not in (None, False):
            refuse(name, "--exact draws its own paths, for two engines", "leave one of the two out")
    draw, what = (ImpairedDraw, "impaired") if options.impaired else (ExactDraw, "deterministic")
    return draw(n, options.seed, tuple(options.cca) or CCAS).conditions(), f"{counted(n, f'{what} path')} (seed {options.seed})"


def _drawn_shared(options: ValidationOptions, n: int) -> tuple[list[NamedScenario], str]:
    if options.paired:
        refuse("paired", "shared bottlenecks have two congestion controls already", "leave it out, or use --random")
    draw = SharedDraw(n, options.seed, tuple(options.cca) or SHARED_CCAS)
    return draw.conditions(), f"{n} shared bottlenecks drawn at random (seed {options.seed})"


def _drawn_topologies(options: ValidationOptions, n: int) -> tuple[list[NamedScenario], str]:
    if options.paired:
        refuse("paired", "topologies have several congestion controls already", "leave it out, or use --random")
    draw = TopologyDraw(n, options.seed, tuple(options.cca) or topologies.CCAS)
    return draw.conditions(), f"{n} topologies drawn at random (seed {options.seed})"


def resume(out: Path, id: str, options: ValidationOptions) -> ValidationSession:
    """The session that wrote `out`, for one of its conditions with as many runs as it had."""
    summary = _summary(out)
    matching = [c for c in conditions.read(out / CONDITIONS) if c.id == id]
    if not matching:
        refuse("explain", f"there is no condition {shown(id)} in {out / CONDITIONS}", "choose an id of conditions.csv")
    with_engines = replace(options, engine=options.engine or summary.engines, against=options.against or summary.against)
    listed = replace(with_engines, conditions=str(out / CONDITIONS), random=None, shared=None, topology=None)
    session = prepare(replace(listed, cca=(), paired=False, precision=None))
    runs = next((c.runs for c in summary.conditions if c.id == id), session.plan.seeds)
    return replace(session, plan=replace(session.plan, conditions=matching, seeds=runs))


def keep_conditions(out: Path, listed: Sequence[NamedScenario]) -> None:
    """Writes the conditions into the validation's directory, so that it can be resumed and its conditions looked into."""
    conditions.write(listed, out / CONDITIONS)


def _summary(out: Path) -> Summary:
    file = out / SUMMARY
    if not reading.exists(file, SUMMARIES, "out"):
        raise StoreError(f"out: there is no {file}; validate with --out {out} first")
    summary = documents.json_file(file, SUMMARIES, "out")
    expect("validation", summary, f"out: {file}")
    return documents.as_type(Summary, summary, Origin(str(file), SUMMARIES, "out"))


@dataclass(frozen=True)
class ValidationPlan:
    """The conditions and the two sides of a validation. A is compared with B, the reference."""

    conditions: Sequence[NamedScenario]
    a: Side
    b: Side
    seeds: tuple[int, int] = (3, 3)
    """Of each condition on A and on B, in the first round."""
    precision: float | None = None
    """Half width of the ln ratio's interval that every condition should reach; None: one round."""
    most: int = MOST_SEEDS
    """Most seeds of a condition on one side."""


@dataclass(frozen=True)
class ValidationResult:
    """The divergence of every condition that both sides could run."""

    a: Side
    b: Side
    divergences: tuple[Divergence, ...]
    left_out: tuple[tuple[str, str], ...]
    """Conditions that a side cannot run, with its reason."""

    @property
    def caveats(self) -> list[str]:
        """Whatever weakens the results, each once, with its side and the number of runs; the frequent ones first."""
        counts = Counter(
            f"{side.label}: {caveat}"
            for c in self.divergences
            for side, runs in ((self.a, c.a), (self.b, c.b))
            for t in runs.trials
            for caveat in t.caveats
        )
        return [f"{text} ({counted(n, 'run')})" for text, n in counts.most_common()]

    def find(self, id: str) -> Divergence:
        """The divergence of one condition."""
        for c in self.divergences:
            if c.condition.id == id:
                return c
        refuse("explain", f"there is no condition {shown(id)} that both sides ran", "choose an id of conditions.csv")


def quiet(_: str) -> None:
    """Reports nothing."""


def run(plan: ValidationPlan, say: Say = quiet) -> ValidationResult:
    """Runs the conditions, B first, then adds seeds until every interval is narrow enough or has its most seeds."""
    left_out = [(c.id, why) for c in plan.conditions if (why := plan.a.refuses(c) or plan.b.refuses(c))]
    refused = {id for id, _ in left_out}
    runnable = [c for c in plan.conditions if c.id not in refused]
    if not runnable:
        refuse("conditions", f"no condition can run on both sides ({left_out[0][1] if left_out else 'none given'})", "name others")
    counts = {c.id: plan.seeds for c in runnable}
    compared = _round(plan, runnable, counts, say)
    while plan.precision is not None:
        increased = _increased_seeds(plan, compared)
        if not increased:
            break
        counts |= increased
        repeated = {c.condition.id: c for c in _round(plan, [c for c in runnable if c.id in increased], counts, say)}
        compared = [repeated.get(c.condition.id, c) for c in compared]
    return ValidationResult(plan.a, plan.b, tuple(compared), tuple(left_out))


def _round(plan: ValidationPlan, conditions: Sequence[NamedScenario], counts: dict[str, tuple[int, int]], say: Say) -> list[Divergence]:
    runs: list[list[SideRuns]] = []
    for side, place in ((plan.b, 1), (plan.a, 0)):
        work = [(c, counts[c.id][place]) for c in conditions]
        runs.append(side.measure(work, say(f"{side.label}, {len(conditions)} conditions")))
    return [Divergence(c, a, b) for c, b, a in zip(conditions, *runs, strict=True)]


def _increased_seeds(plan: ValidationPlan, compared: Sequence[Divergence]) -> dict[str, tuple[int, int]]:
    """New numbers of seeds for the conditions whose interval is too wide: twice as many on each side whose scatter matters."""
    increased: dict[str, tuple[int, int]] = {}
    for c in compared:
        if plan.precision is None or c.width <= plan.precision:
            continue
        now = (len(c.a), len(c.b))
        grown = [
            max(n, min(plan.most, 2 * n)) if side.endless and (weight >= LEAST_SHARE or n < FEW) else n
            for n, side, weight in zip(now, (plan.a, plan.b), c.shares, strict=True)
        ]
        if grown != list(now):
            increased[c.condition.id] = (grown[0], grown[1])
    return increased


@dataclass(frozen=True)
class Explanation:
    """The traces and counters of both sides on one condition."""

    divergence: Divergence
    labels: tuple[str, str]
    bundles: tuple[Bundle | None, Bundle | None]
    partings: Partings | None
    """None where a side has no traces."""

    def counters(self) -> list[tuple[str, str, str]]:
        """Each counter with its median and range on A and on B."""
        a, b = self.divergence.a, self.divergence.b
        names = list(dict.fromkeys([*a.counters, *b.counters]))
        rows = [("goodput Mbit/s", _range(a.goodput), _range(b.goodput))]
        rows += [(f"{name} ms", _range(a.known(f"{name}_ms")), _range(b.known(f"{name}_ms"))) for name in ("mean_rtt", "min_rtt")]
        rows += [(name, _counter(a, name), _counter(b, name)) for name in names]
        return [row for row in rows if set(row[1:]) not in ({"–"}, {"0 %"}, {"–", "0 %"})]


@dataclass(frozen=True)
class Validation:
    """A validation that is done: the divergence of its conditions, and what was derived from it."""

    session: ValidationSession
    result: ValidationResult
    checked: Sequence[CheckedBound] = ()
    ranks: Ranks | None = None
    explanations: Sequence[Explanation] = ()


def complete(session: ValidationSession, bounds: Sequence[Check], k: int, out: Path, say: Say = quiet) -> Validation:
    """Runs the validation, checks the bounds, and explains the `k` worst conditions; recorded results have no traces to explain them by.

    The conditions are written into `out`, so that the validation can be resumed.
    """
    keep_conditions(out, session.plan.conditions)
    result = run(session.plan, say)
    checked = judge(bounds, result.divergences)
    explanations = [explain(result, d, say) for d in worst(result.divergences, k) if d.error > 0] if result.b.endless else []
    return Validation(session, result, checked, ranks(result.divergences), explanations)


def look_into(session: ValidationSession, id: str, say: Say = quiet) -> Validation:
    """Runs the plan and explains the condition called `id`."""
    result = run(session.plan, say)
    return Validation(session, result, explanations=[explain(result, result.find(id), say)])


def explain(result: ValidationResult, divergence: Divergence, say: Say = quiet, seeds: int = TRACED_SEEDS) -> Explanation:
    """Runs a condition again with samples and compares the traces."""
    a, b = (_bundle(side, divergence, seeds, say) for side in (result.a, result.b))
    return Explanation(divergence, (result.a.label, result.b.label), (a, b), part(a, b) if a and b else None)


def _bundle(side: Side, divergence: Divergence, seeds: int, say: Say) -> Bundle | None:
    trials = side.traces(divergence.condition, range(seeds), say(f"{side.label}, traces of {divergence.condition.id}"))
    return bundle(side.label, trials)


def _counter(runs: SideRuns, name: str) -> str:
    values = runs.counter(name)
    return _range([100 * v for v in values], " %") if name.startswith("limited_by") else _range(values)


def _range(values: Sequence[float], unit: str = "") -> str:
    """`12 (9–14)`: the median and the range."""
    if not values:
        return "–"
    middle, low, high = (number(float(f(values))) for f in (np.median, np.min, np.max))
    return f"{middle}{unit}" + (f" ({low}–{high})" if low != high else "")
