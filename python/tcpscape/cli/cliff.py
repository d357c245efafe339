"""`tcpscape cliff`: where goodput falls through a threshold along jitter or loss, searched by runs, with an interval for the edge."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tcpscape import units
from tcpscape.cli import options, terminal
from tcpscape.cli.command import Option, command
from tcpscape.cli.terminal import ProgressLine
from tcpscape.errors import refuse
from tcpscape.names import with_options
from tcpscape.scenario.vocabulary import FlowFields, HostFields, PathFields

if TYPE_CHECKING:
    from tcpscape.findings.cliff.levels import LevelAxis
    from tcpscape.findings.cliff.search import Impairment
    from tcpscape.scenario.options import Conditions
    from tcpscape.words.cliff import CliffSearch

MOST_RUNS = 1200
"""Runs that a search may take for a narrow interval."""


@dataclass(frozen=True, kw_only=True)
class SearchedPath:
    """The path, and along what it gets worse."""

    path: PathFields
    along: Annotated[str, Option("What gets worse: jitter (loss stays beside it) or loss.", complete="jitter|loss")] = "jitter"
    threshold: Annotated[str, Option("Share of the unimpaired goodput that counts as fallen.")] = "50%"

    def impairment(self) -> Impairment:
        """What the search varies."""
        from tcpscape.findings.cliff.search import impairment

        return impairment(self.along, {"jitter": self.path.get("jitter"), "loss": self.path.get("loss")}, "--")

    def conditions(self, flow: FlowFields, hosts: HostFields) -> list[Conditions]:
        """The paths to search, one for each round-trip time."""
        from tcpscape.campaign import axes
        from tcpscape.scenario.fields import OPTIONS, validate
        from tcpscape.scenario.options import Conditions, expect_owners

        expect_owners(self.path, {*self.path, self.along})
        if "rtt" not in self.path:
            refuse("rtt", "missing", "write for example --rtt 50ms, or several: 24,50,100ms, 20..100ms/20ms")
        fields = {**self.path, **hosts, "flow": flow}
        return [validate(Conditions, {**fields, "rtt": rtt}, OPTIONS) for rtt in axes.levels(str(self.path["rtt"]), "rtt")]


@dataclass(frozen=True, kw_only=True)
class SearchedFlows:
    """The flow whose goodput falls."""

    cca: options.CcaNames = "cubic,bbr"
    each: FlowFields


@dataclass(frozen=True, kw_only=True)
class SearchTrials:
    """The trials of a search."""

    hosts: HostFields
    most: Annotated[int, Option("Runs that each search may take for a narrow interval; 0 is a quick look.", least=0, most=1_000_000)] = MOST_RUNS


@command(examples=("cliff --rtt 50ms", "cliff --rtt 24,100ms --along loss --cca bbr --most 0"))
def cliff(
    path: SearchedPath,
    flows: SearchedFlows,
    trials: SearchTrials,
    *,
    as_json: Annotated[bool, options.json_output("One JSON line per edge")] = False,
    out: Annotated[Path | None, Option("Keep edges.csv and levels.csv in this directory.", complete="directory")] = None,
    report: Annotated[bool, Option("Write report.html and its figure beside them.")] = False,
    runner: options.RunnerOptions,
    output: options.ScreenOptions,
) -> None:
    """Find where a path falls off its cliff: the edge to ± 1 % of the RTT, its interval, and the chaos zone around it."""
    from tcpscape import engines
    from tcpscape.campaign.execute import Runner
    from tcpscape.findings.cliff.search import effort, on_path
    from tcpscape.words import cliff as answer

    if report and not out:
        refuse("report", "there is nowhere to write it", "add --out DIR")
    along, paths = path.impairment(), path.conditions(flows.each, trials.hosts)
    share = units.parse_percent(path.threshold, "threshold", example="50%")
    budget, engine = effort(share, trials.most), engines.make(runner.engine)
    cases, searches = list(itertools.product(options.ccas(flows.cca, engine), paths)), []
    with ProgressLine("cliff", is_open=True, steps=len(cases)) as progress:
        executor = Runner(engine, runner.jobs, progress=progress.update)
        for cca, at in cases:
            progress.say(what := f"{cca}, RTT {units.brief_time(at.rtt)}: cliff")
            found = on_path(executor, at, cca, along, budget, partial(_tell, progress, what))
            searches.append(answer.CliffSearch(cca, at, along, share, found))
    names = {"name": engine.name, "version": engine.version}
    files = answer.write(searches, names, out) if out else []
    page = _page(searches, names, out, files) if out and report else None
    if as_json:
        for search in searches:
            print(json.dumps(answer.document(search, names), allow_nan=False))
        return
    kept = f"kept in {out}: {', '.join(file.name for file in files)}" if out else ""
    rig = [f"{with_options(options.typed(), answer.PUBLISHED_RIG)}  (the published rig)"] if answer.is_unbounded(searches) else []
    next_ = [*rig, terminal.to_open(page or files[0]) if files else "add --out DIR to keep the edges and every level as CSV, --report for a page"]
    terminal.show(replace(answer.cliff_screen(searches, engine.name), kept=kept, next=next_), output)


def _tell(progress: ProgressLine, what: str, axis: LevelAxis, low: float, high: float) -> None:
    """Where the edge is so far, on the line about `what`."""
    from tcpscape.words import cliff as answer

    progress.now(f"{what} {answer.so_far(axis, low, high)}")


def _page(searches: Sequence[CliffSearch], engine: Mapping[str, str], out: Path, files: Sequence[Path]) -> Path:
    """Writes the page of the searches, and returns it."""
    from tcpscape.report import cliff as page

    return page.build(searches, engine, out, options.typed(), files)[0]
