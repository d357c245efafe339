"""`tcpscape cliff`: where goodput falls through a threshold along jitter or loss, searched by runs, with an interval for the edge."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from tcpscape import units
from tcpscape.cli import options, terminal
from tcpscape.cli.command import Option, command
from tcpscape.cli.terminal import Progress

if TYPE_CHECKING:
    from tcpscape.findings.cliff.levels import Cliff, Level
    from tcpscape.findings.cliff.runs import Impairment
    from tcpscape.scenario.conditions import Conditions

MOST_RUNS = 1200
"""Runs that a search may take for a narrow interval."""


@dataclass(frozen=True)
class SearchedPath:
    """The path, and along what it gets worse."""

    rtt: Annotated[str, Option("Round-trip times, half of each each way: 50ms, 24,50,100ms or 20..100ms/20ms.")]
    along: Annotated[str, Option("What gets worse: jitter or loss.")] = "jitter"
    threshold: Annotated[str, Option("Share of the unimpaired goodput that counts as fallen.")] = "50%"
    jitter: Annotated[str | None, Option("Jitter beside the loss, with --along loss.")] = None
    loss: Annotated[str | None, Option("Loss beside the jitter, with --along jitter.")] = None
    rate: options.Rate = None
    distribution: options.Distribution = None

    def impairment(self) -> Impairment:
        """What the search varies."""
        from tcpscape.findings.cliff.runs import impairment

        return impairment(self.along, {"jitter": self.jitter, "loss": self.loss}, "--")

    def conditions(self, flow: options.FlowOptions, trials: options.TrialOptions) -> list[Conditions]:
        """The paths to search, one for each round-trip time."""
        from tcpscape.campaign import axes
        from tcpscape.scenario.conditions import Conditions
        from tcpscape.scenario.fields import validate

        fields: dict[str, Any] = {"jitter": self.jitter, "loss": self.loss, "rate": self.rate, "distribution": self.distribution}
        fields |= {**trials.fields(), "flow": flow.fields()}
        given = {name: value for name, value in fields.items() if value is not None}
        return [validate(Conditions, {"rtt": rtt, **given}, "the options") for rtt in axes.levels(self.rtt, "rtt")]


@dataclass(frozen=True, kw_only=True)
class SearchedFlows:
    """The flow whose goodput falls."""

    cca: options.CcaNames = "cubic,bbr"
    each: options.FlowOptions


@dataclass(frozen=True)
class SearchTrials(options.TrialOptions):
    """The trials of a search."""

    most: Annotated[int, Option("Runs that each search may take for a narrow interval; 0 is a quick look.", least=0)] = MOST_RUNS


class Search(NamedTuple):
    """A search for an edge along `along`, and its result."""

    cca: str
    path: Conditions
    along: Impairment
    result: Cliff


@command(examples=("cliff --rtt 50ms", "cliff --rtt 24,100ms --along loss --cca bbr --most 0"))
def cliff(
    path: SearchedPath,
    flows: SearchedFlows,
    trials: SearchTrials,
    *,
    as_json: Annotated[bool, options.json_output("One JSON line per edge")] = False,
    runner: options.RunnerOptions,
) -> None:
    """Find where a path falls off its cliff: the edge to ± 1 % of the RTT, its interval, and the chaos zone around it."""
    from tcpscape import engines
    from tcpscape.campaign.execute import Runner
    from tcpscape.findings.cliff.runs import on_path
    from tcpscape.findings.cliff.search import effort

    along, paths = path.impairment(), path.conditions(flows.each, trials)
    share = units.parse_percent(path.threshold, "threshold", example="50%")
    budget, engine = effort(share, trials.most), engines.make(runner.engine)
    with Progress("cliff", is_open=True) as progress:
        executor = Runner(engine, runner.jobs, progress=progress.update)
        cases = itertools.product(options.ccas(flows.cca, engine), paths)
        searches = [Search(cca, conditions, along, on_path(executor, conditions, cca, along, budget)) for cca, conditions in cases]
    if as_json:
        for search in searches:
            print(json.dumps(_plain(search), allow_nan=False))
        return
    screen = terminal.console()
    screen.print(f"[bold]Where {100 * share:g} % of the unimpaired goodput is left, along {along}[/bold]")
    of_rtt = ("of the RTT",) if along == "jitter" else ()
    columns = ("cca", "RTT", f"edge, {along} [95 %]", *of_rtt, "chaos zone", "unimpaired Mbit/s", "runs")
    screen.print(terminal.table(columns, [_row(search) for search in searches], left=2))


def _row(search: Search) -> tuple[str, ...]:
    path, result = search.path, search.result
    edge, *others = result.table().rows[0]
    share = (f"{100 * result.edge.value / path.rtt:.1f} %" if result.edge else "",) if search.along == "jitter" else ()
    return search.cca, units.format_time(path.rtt), edge, *share, *others


def _plain(search: Search) -> dict[str, Any]:
    """The search as plain values."""
    result = search.result
    edge = result.edge.plain() if result.edge else None
    return {
        "cca": search.cca, "rtt_ns": search.path.rtt, "along": search.along, "unit": "ns" if search.along == "jitter" else "fraction",
        "threshold": result.levels[0].threshold if result.levels else None,
        "edge": edge["value"] if edge else None, "interval": [edge["low"], edge["high"]] if edge else None, "chaos": result.zone,
        "unimpaired_mbps": result.baseline.value, "runs": result.runs, "levels": [_plain_level(level) for level in result.levels],
    }  # fmt: skip


def _plain_level(level: Level) -> dict[str, Any]:
    retention, cv = level.retention.plain(), level.cv.plain()["value"]
    return {"at": level.at, "retention": retention["value"], "low": retention["low"], "high": retention["high"], "n": level.retention.n, "cv": cv}
