"""Trials and their results: run a scenario, sweep over conditions, compare, plot and load what was kept."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import Unpack

from tcpscape import engines
from tcpscape.api.arguments import CcaSpecs, Entries, Hops, Seeds, control_labels, more, scenario_of, seeds_text, several
from tcpscape.api.declared import declares
from tcpscape.campaign import execute, executors, record, source
from tcpscape.campaign.campaign import Campaign, by_engine
from tcpscape.campaign.execute import Execution, TrialsDone
from tcpscape.campaign.outcome import Outcome
from tcpscape.campaign.record import Record
from tcpscape.errors import refuse
from tcpscape.scenario import files
from tcpscape.scenario.options import ScenarioOptions, given
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.vocabulary import FLOW, HOST, PATH, Levels, TrialFields, chosen
from tcpscape.store.results import Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tcpscape.interchange.compare import ResultComparison


@declares(TrialFields)
def run(
    scenario: Scenario | str | Path | Mapping[str, Any] | None = None,
    *,
    forward: Hops = None,
    bottleneck: Hops = None,
    reverse: Hops = None,
    change: str | Sequence[str] = (),
    cca: CcaSpecs = None,
    flows: int | None = None,
    mix: str | None = None,
    link: Entries = (),
    transfers: Entries = (),
    probe: Entries = (),
    listener: str | None = None,
    offload: bool | None = None,
    ecn: bool | None = None,
    seeds: Seeds = 10,
    samples: str | None = None,
    queue_samples: str | None = None,
    engine: str = "model",
    executor: str = "local",
    jobs: int = 0,
    out: str | Path | None = None,
    verify: bool = False,
    progress: TrialsDone | None = None,
    **options: Unpack[TrialFields],
) -> Outcome:
    """Runs a scenario once for each congestion control and seed.

    Without `scenario`, the options describe the path and its flows; with it, they change what it says.

    :param scenario: a :class:`tcpscape.Scenario`, a `.yaml` or `.toml` file, a gallery name (`"starlink-baseline"`) or plain values.
    :param forward: hops of the data, the first at the sender, further ones at routers: `"netem delay 25ms 8ms distribution normal loss 0.1%"`.
        At the sender netem treats a super-packet as a whole, so that loss costs less there than at a router, where :func:`sweep` has it:
        `{"at": "router", "delay": "25ms", "loss": "0.1%"}`.
    :param bottleneck: the queue at the router, `"tbf rate 10mbit burst 6056 limit 62500"` or `{"rate": "10mbit", "buffer": "2bdp"}`.
    :param reverse: hops of the ACKs.
    :param change: changes on the way, `"bottleneck@8s: rate 20mbit"`.
    :param cca: congestion controls to compare, one trial each under the same seeds; None: those of the scenario, or cubic.
    :param flows: flows in a trial, all alike.
    :param listener: congestion control of the listening sockets.
    :param offload: whether there are TSO/GSO/GRO bursts.
    :param ecn: whether both ends negotiate ECN.
    :param seeds: trials of each congestion control: 10 are the seeds 0 to 9.
    :param samples: interval of the samples kept of each flow, `"100ms"`: `outcome.trials[0].samples` is a Polars frame.
    :param queue_samples: the same of each queue.
    :param jobs: cores of the local executor; 0 is all.
    :param out: directory that keeps the results; trials that are there already do not run again.
    :return: one cell for each congestion control: `outcome.frame()`, `outcome.flows()`, `outcome.trials`, `outcome.find("bbr").median()`. It prints
        itself as a table of medians; the table of the command `run` has means, to which ratios (`over`) belong.
    :raises TcpscapeError: one line, before anything runs, for what makes no sense or cannot run.
    """
    flow = chosen(options, FLOW) | given({"listener": listener})
    fields = {**chosen(options, HOST), "offload": offload, "ecn": ecn}
    changes = [change] if isinstance(change, str) else change
    words = {"forward": forward, "bottleneck": bottleneck, "reverse": reverse}
    said = ScenarioOptions(words, flows, mix, flow, fields, changes, **more(link, transfers, probe), conditions=chosen(options, PATH))
    labels = control_labels(cca, engine)
    if scenario is None and said.is_empty and not labels:
        refuse("scenario", "none given", 'name a file or a gallery scenario, or give rtt="50ms"')
    compared = bool(labels)
    base = said.scenario(compared=compared) if scenario is None else said.over(scenario_of(scenario), compared=compared)
    interval = samples or source.samples(base, kept=out is not None)
    campaign = source.single(
        base, {"cca": labels, "engines": [engine], "seeds": seeds_text(seeds), "samples": interval, "queue_samples": queue_samples or "0s"}
    )
    if verify:
        engines.verify(by_engine(campaign.cases()))
    return _measure("run", campaign, executor, jobs, out, progress)


@declares(TrialFields)
def sweep(
    campaign: str | Path | Mapping[str, Any] | None = None,
    *,
    flows: Levels | int = None,
    axes: Mapping[str, Levels] | None = None,
    cca: CcaSpecs = None,
    mix: str | None = None,
    link: Entries = (),
    transfers: Entries = (),
    probe: Entries = (),
    command: str | None = None,
    serve: str | Sequence[str] = (),
    host: str | Sequence[str] = (),
    router_command: str | None = None,
    engine: str | Sequence[str] | None = None,
    seeds: Seeds | None = None,
    precision: str | None = None,
    max_seeds: int | None = None,
    metric: str | None = None,
    samples: str | None = None,
    executor: str = "local",
    jobs: int = 0,
    out: str | Path | None = None,
    verify: bool = False,
    progress: TrialsDone | None = None,
    **options: Unpack[TrialFields],
) -> Outcome:
    """Runs a path at every point of some axes, for each congestion control.

    A condition with one value describes the path, one with several is an axis; axes are crossed: `sweep(rtt="50ms", jitter="0..24ms/4ms",
    loss=["0%", "0.1%"], cca="cubic,bbr")` has 7 × 2 × 2 cells.

    :param campaign: a campaign (`.yaml`, `.toml`, a name such as `"jitter"`, or plain values) or a scenario; the options change what it says.
    :param flows: flows in a trial.
    :param command: a program at the near end instead of flows, with its arguments, on the engines `virtual` and `live`; `far` is the other end.
    :param serve: command lines of servers, started before: at the far end, or at a host that is named first, `"cdn: iperf3 -s"`.
    :param host: names of further hosts at the far end.
    :param router_command: a command line that runs in a router between the near end and the path, whose devices are `lan` and `wan`: a shaper.
    :param axes: any other field of a scenario or of its flows, or `${NAME}` in it, and its values.
    :param engine: engines; several are compared.
    :param seeds: trials of each cell, 10 where nothing says another number.
    :param precision: repeats each cell until the interval of `metric` is ± this of its value, `"5%"`.
    :param max_seeds: most trials of a cell with `precision`.
    :param metric: what tables show, and what `precision` is about: `"goodput"`, `"rtt_p95"`, `"share:bbr"`, …
    :param samples: interval of the samples kept of each flow.
    :param jobs: cores of the local executor; 0 is all.
    :param out: directory that keeps the results; trials that are there already do not run again.
    :return: one cell for each point, congestion control and engine: `outcome.frame()`, `outcome.curve("jitter", "bbr")`.
    :raises TcpscapeError: one line, before anything runs, for what makes no sense or cannot run.
    """
    levels = {**chosen(options, PATH), **given({"flows": flows}), **chosen(options, FLOW), **chosen(options, HOST), **(axes or {})}
    names = [engine] if isinstance(engine, str) else list(engine or ())
    fields = {
        "engines": names or None,
        "seeds": None if seeds is None else seeds_text(seeds),
        "precision": precision,
        "max_seeds": max_seeds,
        "metric": metric,
        "samples": samples,
        "mix": mix,
        "cca": control_labels(cca, names[0] if names else "model") or None,
    }
    programs = source.programs(command, serve=several(serve), host=several(host), router_command=router_command)
    plan = source.campaign(campaign, given(levels), given(fields) | more(link, transfers, probe) | ({"programs": programs} if programs else {}))
    if verify:
        engines.verify(by_engine(plan.cases()))
    return _measure("sweep", plan, executor, jobs, out, progress)


def compare(
    a: Outcome | Record | str | Path,
    b: Outcome | Record | str | Path,
    *,
    metric: str = "goodput",
    cca: str | None = None,
    at: Mapping[str, str] | None = None,
) -> ResultComparison:
    """Whether two results differ: ratio of means and win probability with their intervals, condition by condition; runs of the same seeds are pairs.

    :param a: an outcome, a result directory (its path, or what :func:`load` returned), a file of iperf3 or Flent, a table, or a directory of such
        files.
    :param b: another one.
    :param metric: what to compare: `"goodput"`, `"rtt_p95"`, …; of a table a column.
    :param cca: only these congestion controls: `"bbr"` of both, or `"cubic:bbr"`, A's and B's.
    :param at: only conditions with these values of axes, `{"jitter": "4ms"}`.
    :return: `answer.rows`, one for each condition: its `comparison` (`comparison.ratio`, by which it judges), its `verdict`, and `is_same` where both
        sides are the very same trials; `answer.table()` names in what the paths differ, and `answer.table().markdown()` is to paste.
    :raises TcpscapeError: one line, where nothing can be read or compared.
    """
    from tcpscape.interchange import compare as comparing
    from tcpscape.interchange import sources
    from tcpscape.words import comparison  # noqa: F401 (has its table)

    sides = [sources.load(Path(side), sources.SAMPLES) if isinstance(side, str | Path) else sources.of_outcome(_outcome(side)) for side in (a, b)]
    return comparing.compare(*comparing.choose(sides[0], sides[1], cca, at), metric)


def plot(result: Outcome | Record, figure: str | None = None, *, file: str | Path | None = None) -> Figure:
    """Draws a result as a Matplotlib figure.

    :param result: what :func:`run` or :func:`sweep` returned, or :func:`load` of a directory.
    :param figure: its name in :data:`tcpscape.plots.FIGURES` (`"curve"`, `"bars"`, `"strip"`, `"cdf"`, `"series"`, …; what each
        shows: :func:`tcpscape.plots.draw`), or quantities over time, `"cwnd,rtt"`; None is the first that fits the result.
    :param file: where to write it too, `.png`, `.svg` or `.pdf`.
    :raises TcpscapeError: one line, where the figure is unknown or the result lacks the data for it.
    """
    from tcpscape import plots
    from tcpscape.plots import traces

    quantities = traces.names(figure or "")
    drawn = plots.draw(_outcome(result), "series", context=plots.Context(what=quantities)) if quantities else plots.draw(_outcome(result), figure)
    if file is not None:
        plots.save(drawn, Path(file), plots.formats(Path(file).suffix[1:], "file"), named=True)
    return drawn


def load(source: str | Path) -> Scenario | Record:
    """The scenario in a `.yaml` or `.toml` file or of a gallery name; of a directory that `out` or `--out` named, its results.

    :param source: the file, the name or the directory.
    :return: a :class:`tcpscape.Scenario`, or a :class:`tcpscape.Record`, whose `parts` are the outcomes.
    :raises TcpscapeError: one line, where there is no such thing or it cannot be read.
    """
    from tcpscape.words import campaign  # noqa: F401 (has the tables of outcomes)

    return record.load(Path(source)) if os.path.isdir(source) else files.load(source)


def _measure(kind: record.Kind, campaign: Campaign, executor: str, jobs: int, out: str | Path | None, progress: TrialsDone | None) -> Outcome:
    """Runs a campaign, and keeps it in `out` where there is one."""
    from tcpscape.words import campaign as answer  # noqa: F401 (has its table)

    place = executors.make(executor, jobs)
    if out is None:
        return execute.run(campaign, Execution(progress=progress, executor=place))
    with Store(out) as store:
        command = f"tcpscape.{kind}(…, out={str(out)!r}) in Python"
        return record.measure(kind, campaign, Execution(store=store, progress=progress, executor=place), command)[0]


def _outcome(result: Outcome | Record) -> Outcome:
    """The outcome itself, or the only one of a directory; several are refused by name."""
    if isinstance(result, Outcome):
        return result
    if len(result.parts) > 1:
        refuse("result", f"the directory has {len(result.parts)} parts", f"choose one of .parts: {', '.join(result.parts)}")
    return result.outcomes[0]
