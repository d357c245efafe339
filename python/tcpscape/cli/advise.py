"""`tcpscape advise`: which congestion control to use on a path, where its cliff is and what does the damage."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tcpscape import units
from tcpscape.cli import options, terminal
from tcpscape.cli.command import Option, command
from tcpscape.cli.terminal import Progress

if TYPE_CHECKING:
    from tcpscape.findings.advice import Advice, Standing
    from tcpscape.findings.cliff.levels import Cliff
    from tcpscape.findings.damage import Delay
    from tcpscape.scenario.conditions import Conditions

WORTHWHILE = 1.1
"""A gain below this factor is shown as none."""


@dataclass(frozen=True)
class AdvisedPath:
    """The path."""

    rtt: options.Rtt
    jitter: options.Jitter = None
    loss: options.Loss = None
    rate: options.Rate = None
    buffer: options.Buffer = None
    distribution: options.Distribution = None
    jitter_on: options.JitterOn = "both"
    loss_on: options.LossOn = "both"


@dataclass(frozen=True, kw_only=True)
class AdvisedFlows:
    """The flows on the path."""

    cca: options.CcaNames = "cubic,bbr,reno"
    flows: Annotated[int, Option("Flows that share the path, all under the same congestion control.")] = 1
    each: options.FlowOptions


@dataclass(frozen=True)
class AdvisedTrials(options.TrialOptions):
    """The trials of each congestion control."""

    seeds: Annotated[str | None, Option("Trials of each congestion control: 20, 5..9, 1,4,7.  [default: 20, fewer on fast paths]")] = None


@command(examples=("advise --rtt 60ms --jitter 10ms --loss 0.5%", "advise --rtt 40ms --rate 25mbit --buffer 2bdp --cca cubic,bbr --json"))
def advise(
    path: AdvisedPath,
    flows: AdvisedFlows,
    trials: AdvisedTrials,
    *,
    as_json: Annotated[bool, options.json_output("One JSON line with the answer")] = False,
    runner: options.RunnerOptions,
) -> None:
    """Run the congestion controls on this path and say which to use, where their cliffs are and what does the damage."""
    from tcpscape import engines
    from tcpscape.campaign.axes import parse_seeds
    from tcpscape.campaign.execute import Runner
    from tcpscape.findings.advice import Adviser
    from tcpscape.scenario.conditions import Conditions
    from tcpscape.scenario.fields import validate

    fields = {**asdict(path), **trials.fields(), "flows": flows.flows, "flow": flows.each.fields()}
    conditions = validate(Conditions, {name: value for name, value in fields.items() if value is not None}, "the options")
    engine = engines.make(runner.engine)
    with Progress("advise", is_open=True) as progress:
        executor = Runner(engine, runner.jobs, progress=progress.update)
        seeds = parse_seeds(trials.seeds) if trials.seeds else None
        advice = Adviser(conditions, options.ccas(flows.cca, engine), executor, seeds, progress.say).advise()
    if as_json:
        print(json.dumps(_finite(_plain(advice)), allow_nan=False))
        return
    screen = terminal.console()
    for part in _parts(advice):
        screen.print(part)


def _parts(advice: Advice) -> Iterator[Any]:
    """What is printed: headings, tables and sentences."""
    yield f"[bold]Path[/bold]: {_description(advice.path)}"
    duration = units.format_time(advice.path.duration)
    yield f"jitter / RTT: {terminal.percent(advice.jitter_ratio)}; {advice.trials} trials of {duration}, same seeds for all\n"
    yield "[bold]Ranking[/bold]"
    yield advice.table().rich()
    yield ""
    yield "[bold]Where the cliff is on this path[/bold] (jitter at which half of the goodput is gone, [95 %])"
    yield terminal.table(("cca", "cliff", "chaos zone", "you stand"), [_cliff_row(s) for s in advice.ranking], left=4)
    if any(s.damage for s in advice.ranking):
        yield ""
        yield "[bold]What does the damage[/bold] (goodput on the same path without it)"
        heads = ("cca", "without", "Mbit/s [95 %]", "gain [95 %]", "delay of the data, overtaken", "how it is taken away")
        yield terminal.table(heads, [row for s in advice.ranking for row in _damage_rows(s)], left=2)
    yield f"\n[bold]Use {advice.choice}[/bold]: {advice.why}."
    yield f"  {advice.command}"
    for caveat in advice.caveats:
        yield f"caveat: {caveat}"


def _description(path: Conditions) -> str:
    """The path in one line."""
    flow = path.flow
    jitter = [f"jitter {units.format_time(path.jitter)} ({path.distribution}, {_direction(path.jitter_on)})"] if path.jitter else []
    loss = [f"loss {units.format_percent(path.loss)} ({_direction(path.loss_on)})"] if path.loss else []
    parts = [
        f"RTT {units.format_time(path.rtt)}", *jitter, *loss,
        f"bottleneck {units.format_rate(path.rate)}, buffer {path.buffer}" if path.rate else "no bottleneck",
        f"SO_RCVBUF {units.format_size(flow.rcvbuf)}" if flow.rcvbuf else "receive buffer autotuned",
        f"application {units.format_byte_rate(flow.app.rate)}" if flow.app.rate else "bulk",
        f"{path.flows} flow{'s' * (path.flows > 1)}", f"kernel {path.kernel.profile}",
    ]  # fmt: skip
    return ", ".join(parts)


def _direction(on: str) -> str:
    return "each way" if on == "both" else on


def _cliff_row(s: Standing) -> tuple[str, ...]:
    return s.cca, _edge(s.cliff), _zone(s.cliff), s.side


def _edge(cliff: Cliff) -> str:
    if not cliff.levels:
        return "nothing gets through even without jitter"
    if cliff.edge is None:
        return f"none up to {_ms(cliff.levels[-1].at)} ms"
    low, high = (terminal.percent(x / cliff.axis.harsh) for x in (cliff.edge.low, cliff.edge.high))
    return f"{_ms(cliff.edge.value)} ms [{_ms(cliff.edge.low)}, {_ms(cliff.edge.high)}], {low} to {high} of RTT"


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3g}" if math.isfinite(ns) else "more"


def _zone(cliff: Cliff) -> str:
    if cliff.zone is None:
        return "none seen"
    low, high = cliff.zone
    return f"around {_ms(low)} ms" if low == high else f"{_ms(low)} to {_ms(high)} ms"


def _damage_rows(s: Standing) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for d in s.damage:
        gain = d.gain.text() + (" x" if d.gain.value >= WORTHWHILE else " (none)")
        rows.append((s.cca, d.ingredient, d.goodput.text(), gain, _delay(d.achieved.data), d.how))
    return rows


def _delay(delay: Delay | None) -> str:
    """`13.0 ± 6.9 ms, 82 %`: mean and standard deviation over the packets, and the share that was overtaken."""
    return f"{delay.mean_ms:.1f} ± {delay.sd_ms:.1f} ms, {terminal.percent(delay.overtaken)}" if delay else "–"


def _plain(advice: Advice) -> dict[str, Any]:
    """The answer as plain values."""
    return {
        "path": advice.path.model_dump(mode="json"), "jitter_over_rtt": advice.jitter_ratio, "choice": advice.choice, "why": advice.why,
        "command": advice.command, "trials": advice.trials, "caveats": list(advice.caveats),
        "ranking": [_plain_standing(s) for s in advice.ranking],
    }  # fmt: skip


def _plain_standing(s: Standing) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(s).items() if name != "cliff"}
    return {**fields, "side": s.side, "cliff": _plain_cliff(s.cliff)}


def _plain_cliff(cliff: Cliff) -> dict[str, Any]:
    """The edge in ns; an end of its interval is open where the fall may lie beyond the axis."""
    edge = cliff.edge
    interval = (edge.low, edge.high) if edge else None
    return {"jitter_ns": edge.value if edge else None, "interval_ns": interval, "bracket_ns": cliff.bracket, "chaos_ns": cliff.zone}


def _finite(value: Any) -> Any:
    """The same plain value with None for numbers that JSON has not: an open end, no value."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
