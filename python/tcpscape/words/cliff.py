"""The answer of a search for cliffs: its screen, and its edges and levels as plain values and tables."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import TypedDict

import tcpscape
from tcpscape import units, writing
from tcpscape.findings.cliff.levels import CHAOTIC_CV, HALF, SCALES, Cliff, Level, LevelAxis
from tcpscape.findings.cliff.search import Impairment
from tcpscape.formats import INTERVAL, TableFormat, columns
from tcpscape.scenario import limits
from tcpscape.scenario.options import Conditions, Directions
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.text.numbers import number, percent
from tcpscape.text.screen import Screen
from tcpscape.text.table import Table, table_of
from tcpscape.words import paths, sentences

if TYPE_CHECKING:
    import polars as pl

EDGES = TableFormat(
    "edges",
    "A row for each edge that cliff found: edges.csv.",
    columns(
        """
    cca string -: Congestion control
    rtt_ns integer ns: Round-trip time without jitter
    along string -: What gets worse: jitter, loss
    unit string -: Unit of the edge and of the chaos zone: ns or fraction
    threshold number -: Share of the unimpaired goodput that counts as fallen, a fraction
    statistic string -: Statistic of the goodput: mean
"""
        + INTERVAL.format("edge", "(column unit)", "Where goodput falls through the threshold; empty where it does not")
        + """
    chaos_low number (column unit): Lower end of the chaos zone; empty where there is none
    chaos_high number (column unit): Upper end of the chaos zone
    unimpaired_mbps number Mbit/s: Mean goodput without the impairment
    runs integer -: Number of trials of the search
    first_seed integer -: First seed without the impairment; that of each level is in levels
    tcpscape string -: Version of tcpscape
    engine string -: Engine that ran the trials
    engine_version string -: Version of the model or of the engine
    scenario string -: The path without the impairment, as JSON
"""
    ),
)
LEVELS = TableFormat(
    "levels",
    "A row for each level that cliff measured: levels.csv.",
    columns("""
    cca string -: Congestion control
    rtt_ns integer ns: Round-trip time without jitter
    along string -: What gets worse: jitter, loss
    at number (ns or a fraction): The level
    retention number -: Mean goodput / unimpaired mean goodput
    low number -: Lower end of its 95 % interval
    high number -: Upper end of its 95 % interval
    n integer -: Number of trials at this level
    first_seed integer -: First seed of these trials; the others follow it
    cv number -: Coefficient of variation of the goodput
    below number -: Share of the trials below the threshold, a fraction
    chaotic boolean -: Whether the level is in the chaos zone
"""),
)
"""The tables that :func:`write` keeps."""
PUBLISHED_RIG = "--rcvbuf 256KiB --app 10MiB/s --kernel 6.12,rmem_max=4MiB --read 16KiB/1ms"
"""Options of `tcpscape cliff` for the flow of the published study (its faster application), for which other edges were published."""
WHERE: Mapping[Directions, str] = {"both": "each direction", "forward": "the data", "reverse": "the ACKs"}
"""Directions of an impairment, in words."""


class LevelDocument(TypedDict):
    """A level of jitter or loss that a search measured."""

    at: float
    """The level, in the edge's `unit`."""
    retention: float | None
    """Mean goodput over the unimpaired mean goodput, a fraction."""
    low: float | None
    """Lower end of the 95 % interval of the retention."""
    high: float | None
    """Upper end of the interval."""
    n: int
    """Number of trials at this level."""
    first_seed: int
    """First seed of these trials; the others follow it."""
    cv: float | None
    """Coefficient of variation of the goodput at this level."""


class EdgeDocument(TypedDict):
    """Where goodput falls through a threshold along jitter or loss. A line of `tcpscape cliff --json`."""

    format: Literal[1]
    """Format of an edge."""
    cca: str
    """Congestion control."""
    rtt_ns: int
    """Round-trip time of the path without jitter, ns."""
    along: Literal["jitter", "loss"]
    """What gets worse."""
    unit: Literal["ns", "fraction"]
    """Unit of `edge`, `interval`, `chaos` and of the levels: ns of jitter each way, or a fraction of lost packets each way."""
    threshold: float
    """Share of the unimpaired goodput that counts as fallen, a fraction."""
    statistic: Literal["mean"]
    """Statistic of the goodput that falls."""
    edge: float | None
    """Where it falls, in `unit`; null where it does not fall on the axis."""
    interval: tuple[float | None, float | None] | None
    """Ends of the edge's 95 % interval, in `unit`; an end that lies beyond the axis is null."""
    chaos: tuple[float, float] | None
    """Ends of the chaos zone, where single trials land on both sides, in `unit`; null where there is none."""
    unimpaired_mbps: float
    """Mean goodput without the impairment, Mbit/s."""
    runs: int
    """Number of trials of the search."""
    levels: list[LevelDocument]
    """Every level that was measured, from the lowest."""
    tcpscape: str
    """Version of tcpscape."""
    engine: str
    """Engine that ran the trials."""
    engine_version: str
    """Version of the model or of the engine."""
    first_seed: int
    """First seed without the impairment; each level says its own."""
    scenario: dict[str, Any]
    """The path without the impairment, as `tcpscape schema scenario` describes it."""


@dataclass(frozen=True)
class CliffSearch:
    """A search for the edge of one congestion control on one path, and its result."""

    cca: str
    path: Conditions
    along: Impairment
    threshold: float
    """Share of the unimpaired mean goodput that counts as fallen."""
    result: Cliff

    @property
    def scenario(self) -> Scenario:
        """The path without the impairment."""
        return self.path.scenario(self.cca)

    @property
    def rtt(self) -> str:
        """The path's RTT as people write it."""
        return units.brief_time(self.path.rtt)

    def share_of_rtt(self) -> str:
        """The edge over the RTT, `13.9 %`; empty along loss, or without an edge."""
        edge = self.result.edge
        return percent(edge.value / self.path.rtt, 1) if edge and self.along == "jitter" else ""


def cliff_screen(searches: Sequence[CliffSearch], engine: str) -> Screen:
    """The screen of searches with the same threshold along the same impairment: paths and congestion controls may differ."""
    return Screen(
        f"{_paths(searches)}; {_meaning(searches[0])}; {engine}",
        cliff_answer(searches),
        tables=(_table(searches),),
        details=[_levels(search) for search in searches],
        caveats=tuple(_caveats(searches)),
    )


def so_far(axis: LevelAxis, low: float, high: float) -> str:
    """Between which levels an edge is while it is searched, for one line: `between 2.50ms and 4.00ms so far`."""
    between = f"below {axis.text(high)}" if low == axis.origin else f"between {axis.text(low)} and {axis.text(high)}"
    return f"{between} so far"


def is_unbounded(searches: Sequence[CliffSearch]) -> bool:
    """Whether neither a bottleneck, nor an application, nor a fixed buffer bounds the goodput of some search: its edge is another one than theirs."""
    return any(not (s.path.rate or s.path.flow.rcvbuf or s.path.flow.sndbuf or s.path.flow.app.rate) for s in searches)


def cliff_answer(searches: Sequence[CliffSearch]) -> str:
    """Where goodput falls, as a sentence."""
    first = searches[0]
    fallen = "half" if first.threshold == HALF else percent(first.threshold)
    ccas = dict.fromkeys(search.cca for search in searches)
    phrases = ", ".join(_phrase(cca, [search for search in searches if search.cca == cca]) for cca in ccas)
    return f"Mean goodput falls to {fallen} of the unimpaired: {phrases}."


def _phrase(cca: str, searches: Sequence[CliffSearch]) -> str:
    """Where a congestion control falls: on one path, or from the earliest to the latest edge."""
    fallen = sorted((s for s in searches if s.result.edge), key=_earliness)
    if not fallen:
        return _keeps(cca, searches)
    if len(searches) == 1:
        share = f" ({fallen[0].share_of_rtt()} of the RTT)" if fallen[0].share_of_rtt() else ""
        return f"{cca} at {_edge(fallen[0].result)} of {fallen[0].along}{share}"
    ends = dict.fromkeys(_edge_of_rtt(search) for search in (fallen[0], fallen[-1]))
    return f"{cca} at {' to '.join(ends)} of {fallen[0].along}"


def _keeps(cca: str, searches: Sequence[CliffSearch]) -> str:
    """What a congestion control without an edge keeps at least, and where: `bbr nowhere up to 50.0ms (keeps 54 % [51, 56] there)`.

    A path that falls and recovers at more of the impairment has no edge either: `bbr from 12.0ms to 14.0ms alone (…), not at 20.0ms`.
    """
    levels = [(level, search) for search in searches for level in search.result.levels]
    if not levels:
        return f"{cca} never, nothing gets through"
    farthest = max((s for s in searches if s.result.levels), key=lambda s: s.result.levels[-1].at).result
    least, search = min(levels, key=lambda pair: pair[0].retention.value)
    text = search.result.axis.text
    place = "there" if least is farthest.levels[-1] else f"at {text(least.at)}"
    path = f", RTT {search.rtt}" if len(searches) > 1 else ""
    keeps = f"(keeps {_interval(least.retention)} {place}{path})"
    fallen = [i for i, level in enumerate(search.result.levels) if level.fell]
    if fallen and (recovered := search.result.levels[fallen[-1] + 1 :]):
        first, last = (text(search.result.levels[i].at) for i in (fallen[0], fallen[-1]))
        span = f"at {first}" if first == last else f"from {first} to {last}"
        return f"{cca} {span} alone {keeps}, not at {text(recovered[0].at)}"
    return f"{cca} nowhere up to {farthest.axis.text(farthest.levels[-1].at)} {keeps}"


def _interval(share: Estimate) -> str:
    """A share with its interval in per cent: `54 % [51, 56]`."""
    ends = f" [{100 * share.low:.0f}, {100 * share.high:.0f}]" if math.isfinite(share.low) and math.isfinite(share.high) else ""
    return f"{percent(share.value)}{ends}"


def _edge_of_rtt(search: CliffSearch) -> str:
    """An edge with the RTT at which it is."""
    share = f", {search.share_of_rtt()} of it" if search.share_of_rtt() else ""
    return f"{_edge(search.result)} (RTT {search.rtt}{share})"


def _earliness(search: CliffSearch) -> float:
    return search.result.edge.value if search.result.edge else math.inf


def _paths(searches: Sequence[CliffSearch]) -> str:
    """The paths in words."""
    rtts = list(dict.fromkeys(search.rtt for search in searches))
    varied: Mapping[str, Sequence[str]] = {"RTT": rtts} if len(rtts) > 1 else {}
    flow = searches[0].path.flow
    return paths.together([s.scenario for s in searches], varied) + (", buffers autotuned" if not (flow.rcvbuf or flow.sndbuf) else "")


def _meaning(search: CliffSearch) -> str:
    """What a level of the impairment is."""
    path = search.path
    if search.along == "loss":
        kind = f"comes in bursts of {path.loss_burst:g}" if path.loss_burst > 1 else "is random"
        return f"loss {kind}, of {WHERE[path.loss_on]}"
    return paths.jitter_meaning(path.distribution, path.order) + (f", on {WHERE[path.jitter_on]} alone" if path.jitter_on != "both" else "")


@table_of.register
def table(cliff: Cliff) -> Table:
    """One row: the edge, the chaos zone, the goodput without the impairment, and the runs."""
    text = cliff.axis.text
    nowhere = f"none up to {text(cliff.levels[-1].at)}" if cliff.levels else "nothing gets through"
    zone = f"{text(cliff.zone[0])} to {text(cliff.zone[1])}" if cliff.zone else "–"
    columns = (f"edge, {cliff.axis.name} [95 %]", "chaos zone", "unimpaired Mbit/s, mean", "runs")
    return Table(columns, [(_edge(cliff) or nowhere, zone, cliff.baseline.cell(), str(cliff.runs))], left=2)


def _edge(cliff: Cliff) -> str:
    """The edge with its interval, `6.94 ms [6.50, 7.04]`; ∞ or 0 beyond the ends, empty where there is none."""
    if cliff.edge is None:
        return ""
    factor, unit = SCALES.get(cliff.axis.unit, (1.0, cliff.axis.unit))
    ends = ["∞" if end == math.inf else "0" if math.isinf(end) else number(end * factor) for end in (cliff.edge.low, cliff.edge.high)]
    return f"{number(cliff.edge.value * factor)} {unit} [{', '.join(ends)}]"


def _table(searches: Sequence[CliffSearch]) -> Table:
    """A row for each search."""
    first = searches[0]
    of_rtt = ("of the RTT",) if first.along == "jitter" else ()
    parts = [table(search.result) for search in searches]
    columns = ("cca", "RTT", *parts[0].columns[:1], *of_rtt, *parts[0].columns[1:])
    rows = []
    for search, part in zip(searches, parts, strict=True):
        edge, *others = part.rows[0]
        rows.append((search.cca, search.rtt, edge, *((search.share_of_rtt() or "–",) if of_rtt else ()), *others))
    zones = any(search.result.zone for search in searches)
    notes = [f"chaos zone: single runs land on both sides of the edge, or vary by more than {percent(CHAOTIC_CV)} (CV)"] if zones else []
    return Table(columns, rows, 2, notes=notes, drop=("runs", "unimpaired Mbit/s, mean", "of the RTT"))


def _levels(search: CliffSearch) -> Table:
    """Every level that was measured."""
    text = search.result.axis.text
    rows = [(text(x.at), x.retention.cell(), percent(x.cv.value), percent(x.below), str(x.cv.n)) for x in search.result.levels]
    columns = (str(search.along), "share of the unimpaired mean [95 %]", "CV", "runs below", "runs")
    return Table(columns, rows, title=f"Levels of {search.cca}, RTT {search.rtt}", drop=("runs", "CV"))


def _caveats(searches: Sequence[CliffSearch]) -> Iterator[str]:
    """What weakens the edges."""
    if any(s.result.edge and (math.isinf(s.result.edge.low) or math.isinf(s.result.edge.high)) for s in searches):
        yield "an end of an interval lies beyond the axis"
    yield from dict.fromkeys(caveat for s in searches for caveat in limits.caveats(s.scenario))
    yield from sentences.caveats(s.result.baseline for s in searches)


def document(search: CliffSearch, engine: Mapping[str, str]) -> EdgeDocument:
    """What `--json` prints of a search, with its scenario; `engine`: its name and version."""
    result = search.result
    edge = result.edge.plain() if result.edge else None
    return EdgeDocument(
        format=1,
        cca=search.cca,
        rtt_ns=search.path.rtt,
        along=search.along,
        unit="ns" if search.along == "jitter" else "fraction",
        threshold=search.threshold,
        statistic="mean",
        edge=edge["value"] if edge else None,
        interval=(edge["low"], edge["high"]) if edge else None,
        chaos=result.zone,
        unimpaired_mbps=result.baseline.value,
        runs=result.runs,
        levels=[_level(level) for level in result.levels],
        tcpscape=tcpscape.__version__,
        engine=engine["name"],
        engine_version=engine["version"],
        first_seed=0,
        scenario=search.scenario.to_dict(),
    )


def _level(level: Level) -> LevelDocument:
    retention, cv = level.retention.plain(), level.cv.plain()
    low, high = retention["low"], retention["high"]
    return LevelDocument(at=level.at, retention=retention["value"], low=low, high=high, n=level.cv.n, first_seed=level.first_seed, cv=cv["value"])


def write(searches: Sequence[CliffSearch], engine: Mapping[str, str], root: Path) -> list[Path]:
    """Writes `edges.csv` and `levels.csv` into a directory and returns both. :raises StoreError: where they cannot be written."""
    tables = {root / f"{EDGES.name}.csv": edges_frame(searches, engine), root / f"{LEVELS.name}.csv": levels_frame(searches)}
    for file, frame in tables.items():
        writing.whole(file, frame.write_csv())
    return list(tables)


def edges_frame(searches: Sequence[CliffSearch], engine: Mapping[str, str]) -> pl.DataFrame:
    """A row for each search: edge, interval, chaos zone, what was run and with what."""
    import polars as pl

    rows = []
    for search in searches:
        line: dict[str, Any] = {**document(search, engine)}
        (low, high), (zone_low, zone_high) = line["interval"] or (None, None), line["chaos"] or (None, None)
        ends = {"edge_low": low, "edge_high": high, "chaos_low": zone_low, "chaos_high": zone_high}
        rows.append(EDGES.row({**line, **ends, "scenario": json.dumps(line["scenario"])}))
    return pl.DataFrame(rows, infer_schema_length=None)


def levels_frame(searches: Sequence[CliffSearch]) -> pl.DataFrame:
    """A row for each level of each search; its `n` runs have the seeds from `first_seed` on."""
    import polars as pl

    rows = [
        LEVELS.row({"cca": s.cca, "rtt_ns": s.path.rtt, "along": s.along, **_level(x), "below": x.below, "chaotic": x.chaotic})
        for s in searches
        for x in s.result.levels
    ]
    return pl.DataFrame(rows, infer_schema_length=None)
