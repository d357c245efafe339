"""`tcpscape cliff`: where goodput falls through a threshold along jitter or loss, searched by runs, with an interval for the edge."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tcpscape.cli import options, tables
from tcpscape.cli.progress import Progress

if TYPE_CHECKING:
    from tcpscape.campaign import Runner
    from tcpscape.findings.cliff.levels import Cliff, Level
    from tcpscape.findings.cliff.search import Effort
    from tcpscape.scenario.conditions import Conditions

Along = Literal["jitter", "loss"]
MOST = 1200
"""Runs that a search may take for a narrow interval."""


def cliff(
    rtt: Annotated[str, typer.Option(help="Round-trip times, half of each each way: 50ms, 24,50,100ms or 20..100ms/20ms.")],
    along: Annotated[str, typer.Option(help="What gets worse: jitter or loss.")] = "jitter",
    threshold: Annotated[str, typer.Option(help="Share of the unimpaired goodput that counts as fallen.")] = "50%",
    jitter: Annotated[str | None, typer.Option(help="Jitter beside the loss, with --along loss.")] = None,
    loss: Annotated[str | None, typer.Option(help="Loss beside the jitter, with --along jitter.")] = None,
    rate: Annotated[str | None, typer.Option(help="Rate of the bottleneck; none is no limit.")] = None,
    distribution: Annotated[str | None, typer.Option(help="Of the jitter: normal, uniform, pareto, paretonormal.  [default: normal]")] = None,
    cca: Annotated[str, typer.Option(help="Congestion controls to compare.")] = "cubic,bbr",
    rcvbuf: options.Rcvbuf = None,
    sndbuf: options.Sndbuf = None,
    app: options.AppRate = None,
    chunk: options.Chunk = None,
    read: options.Read = None,
    duration: options.Duration = None,
    kernel: options.Kernel = None,
    most: Annotated[int, typer.Option(min=0, help="Runs that each search may take for a narrow interval; 0 is a quick look.")] = MOST,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line per edge and nothing else on stdout.")] = False,
    engine: options.EngineName = "model",
    jobs: options.Jobs = 0,
) -> None:
    """Find where a path falls off its cliff: the edge to ± 1 % of the RTT, its interval, and the chaos zone around it."""
    from tcpscape import engines, units
    from tcpscape.campaign import Runner, axes
    from tcpscape.errors import refuse
    from tcpscape.findings.cliff.search import QUICK, Effort
    from tcpscape.scenario.conditions import Conditions
    from tcpscape.scenario.fields import validate
    from tcpscape.scenario.options import flow_fields

    if along not in ("jitter", "loss"):
        refuse("along", f"{along!r} is no axis of a cliff", "write jitter or loss")
    if {"jitter": jitter, "loss": loss}[along] is not None:
        refuse(along, "it is what the search varies", f"leave --{along} out")
    said: dict[str, Any] = {
        "jitter": jitter, "loss": loss, "rate": rate, "distribution": distribution, "duration": duration, "kernel": kernel,
        "flow": flow_fields(rcvbuf=rcvbuf, sndbuf=sndbuf, app=app, chunk=chunk, read=read),
    }  # fmt: skip
    given = {k: v for k, v in said.items() if v is not None}
    paths = [validate(Conditions, {"rtt": level, **given}, "the options") for level in axes.levels(rtt, "rtt")]
    share = units.parse_percent(threshold, "threshold", example="50%")
    effort = Effort(threshold=share, most=most) if most else Effort(share, QUICK.seeds, QUICK.glance, QUICK.most)
    made = engines.make(engine)
    with Progress("cliff") as progress:
        runner = Runner(made, jobs, progress=progress.update)
        found = [(one, path, _find(runner, path, one, along, effort)) for one in options.ccas(cca, made) for path in paths]
    if as_json:
        for name, path, edge in found:
            print(json.dumps(_plain(name, path, edge, along), allow_nan=False))
        return
    screen = tables.console()
    screen.print(f"[bold]Where {100 * share:g} % of the unimpaired goodput is left, along {along}[/bold]")
    columns = ("cca", "RTT", f"edge, {along} [95 %]", *(("of the RTT",) if along == "jitter" else ()), "chaos zone", "unimpaired Mbit/s", "runs")
    screen.print(tables.table(columns, [_row(*one, along) for one in found], left=2))


def _find(runner: Runner, path: Conditions, cca: str, along: str, effort: Effort) -> Cliff:
    from tcpscape.findings.cliff.runs import on_path

    return on_path(runner, path, cca, "jitter" if along == "jitter" else "loss", effort)


def _row(cca: str, path: Conditions, found: Cliff, along: str) -> tuple[str, ...]:
    from tcpscape import units

    edge, rtt = found.edge, units.format_time(path.rtt)
    runs, base = str(found.runs), found.baseline.text()
    if edge is None:
        end = _level(found.levels[-1].at, along) if found.levels else "–"
        where = f"none up to {end}" if found.levels else "nothing gets through"
        return cca, rtt, where, *(("",) if along == "jitter" else ()), _zone(found, along), base, runs
    text = f"{_level(edge.value, along)} [{_level(edge.low, along)}, {_level(edge.high, along)}]"
    share = (f"{100 * edge.value / path.rtt:.1f} %",) if along == "jitter" else ()
    return cca, rtt, text, *share, _zone(found, along), base, runs


def _zone(found: Cliff, along: str) -> str:
    return f"{_level(found.zone[0], along)} to {_level(found.zone[1], along)}" if found.zone else "–"


def _level(at: float, along: str) -> str:
    """A level in people's units."""
    from tcpscape.stats.estimate import number

    if math.isinf(at):
        return "∞" if at > 0 else "0"
    return f"{number(at / 1e6)}ms" if along == "jitter" else f"{number(100 * at)}%"


def _plain(cca: str, path: Conditions, found: Cliff, along: str) -> dict[str, Any]:
    unit = "ns" if along == "jitter" else "fraction"
    edge = found.edge.plain() if found.edge else None
    return {
        "cca": cca, "rtt_ns": path.rtt, "along": along, "unit": unit, "threshold": found.levels[0].threshold if found.levels else None,
        "edge": edge["value"] if edge else None, "interval": [edge["low"], edge["high"]] if edge else None, "chaos": found.zone,
        "unimpaired_mbps": found.baseline.value, "runs": found.runs, "levels": [_kept(x) for x in found.levels],
    }  # fmt: skip


def _kept(level: Level) -> dict[str, Any]:
    kept, cv = level.retention.plain(), level.cv.plain()["value"]
    return {"at": level.at, "retention": kept["value"], "low": kept["low"], "high": kept["high"], "n": level.retention.n, "cv": cv}
