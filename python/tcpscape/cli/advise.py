"""`tcpscape advise`: which congestion control on this path, and where its cliff is."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tcpscape.cli import options
from tcpscape.cli.progress import Progress

On = Annotated[str, typer.Option(help="both, forward or reverse.")]


def advise(
    rtt: Annotated[str, typer.Option(help="Round-trip time without jitter and queues; half of it each way.")],
    jitter: Annotated[str | None, typer.Option(help="Spread of each one-way delay (normal: standard deviation).")] = None,
    loss: Annotated[str | None, typer.Option(help="Random loss of each direction: 0.1%.")] = None,
    rate: Annotated[str | None, typer.Option(help="Rate of the bottleneck; none is no limit.")] = None,
    buffer: Annotated[str | None, typer.Option(help="Buffer of the bottleneck: 64KB or 2bdp.  [default: 1bdp]")] = None,
    distribution: Annotated[str | None, typer.Option(help="Of the jitter: normal, uniform, pareto, paretonormal.  [default: normal]")] = None,
    jitter_on: On = "both",
    loss_on: On = "both",
    cca: Annotated[str, typer.Option(help="Congestion controls to compare.")] = "cubic,bbr,reno",
    flows: Annotated[int, typer.Option(help="Flows that share the path, all under the same congestion control.")] = 1,
    rcvbuf: options.Rcvbuf = None,
    sndbuf: options.Sndbuf = None,
    app: options.AppRate = None,
    chunk: options.Chunk = None,
    read: options.Read = None,
    duration: options.Duration = None,
    kernel: options.Kernel = None,
    seeds: Annotated[str | None, typer.Option(help="Trials of each congestion control: 20, 5..9, 1,4,7.  [default: 20, fewer on fast paths]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line with the answer and nothing else on stdout.")] = False,
    engine: options.EngineName = "model",
    jobs: options.Jobs = 0,
) -> None:
    """Run the congestion controls on this path and say which to use, where their cliffs are and what does the damage."""
    from tcpscape import engines
    from tcpscape.campaign import Runner
    from tcpscape.campaign.seeds import parse_seeds
    from tcpscape.cli import advise_text
    from tcpscape.findings.advice import Adviser
    from tcpscape.scenario.conditions import Conditions
    from tcpscape.scenario.fields import validate
    from tcpscape.scenario.options import flow_fields

    said: dict[str, Any] = {
        "rtt": rtt, "jitter": jitter, "loss": loss, "rate": rate, "buffer": buffer, "distribution": distribution, "jitter_on": jitter_on,
        "loss_on": loss_on, "duration": duration, "kernel": kernel, "flows": flows,
        "flow": flow_fields(rcvbuf=rcvbuf, sndbuf=sndbuf, app=app, chunk=chunk, read=read),
    }
    path = validate(Conditions, {k: v for k, v in said.items() if v is not None}, "the options")
    with Progress("advise") as progress:
        runner = Runner(engines.make(engine), jobs, progress=progress.update)
        adviser = Adviser(path, options.ccas(cca, runner.engine), runner, parse_seeds(seeds) if seeds else None, progress.say)
        advice = adviser.advise()
    advise_text.show(advice, as_json)
