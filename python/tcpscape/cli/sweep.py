"""`tcpscape sweep`: a campaign, from a file or from options whose values may be lists and ranges."""

from __future__ import annotations

import hashlib
import json
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tcpscape import names, writing
from tcpscape.cli import checks, options, terminal
from tcpscape.cli.command import Argument, Option, command
from tcpscape.cli.terminal import ProgressLine, resumable
from tcpscape.errors import refuse, shown
from tcpscape.scenario.vocabulary import FlowFields, HostFields, PathFields
from tcpscape.units import counted

if TYPE_CHECKING:
    from tcpscape.campaign.campaign import Campaign
    from tcpscape.campaign.outcome import Outcome

DEFAULT_OUT = Path("out")
DIGITS = 6
"""Digits of a digest in a directory's name."""


@dataclass(frozen=True, kw_only=True)
class AxisOptions:
    """Fields of the scenario: one value is a condition, several make an axis."""

    path: PathFields
    flows: Annotated[str | None, options.FLOWS] = None
    each: FlowFields
    hosts: HostFields
    axis: Annotated[tuple[str, ...], Option("Any other field of a scenario or flow, bottleneck.buffer, … or ${NAME}.", metavar="NAME=VALUES")] = ()

    def values(self) -> dict[str, str]:
        """Field → its values as they were typed; those that were not given are left out."""
        flows = {} if self.flows is None else {"flows": self.flows}
        values = {name: str(value) for name, value in {**self.path, **flows, **self.each, **self.hosts}.items()}
        others: dict[str, str] = {}
        for text in self.axis:
            name, equals, levels = text.partition("=")
            if not equals or not name.strip() or name.strip() in others:
                refuse("axis", f"{shown(text)} is not NAME=VALUES, each name once", "write for example --axis mtu=1500,9000")
            others[name.strip()] = levels
        if twice := sorted(values.keys() & others.keys()):
            refuse("axis", f"{twice[0]} is said by --{twice[0].replace('_', '-')} too", "say it once")
        return values | others


@dataclass(frozen=True)
class CellOptions:
    """What each cell of the campaign is: the congestion controls and engines, the trials and what is measured of them."""

    cca: options.Cca = None
    mix: options.Mix = None
    command: Annotated[
        str | None,
        Option('A program at the near end, instead of flows: "curl -s http://far/page". Ended after --duration (10min). Not on the model.'),
    ] = None
    serve: Annotated[
        tuple[str, ...], Option('With --command: a server, "iperf3 -s -1" at the far end, "HOST: COMMAND" at near or a --host. Repeatable.')
    ] = ()
    host: Annotated[tuple[str, ...], Option("With --command: a further host at the far end. Repeatable.", metavar="NAME")] = ()
    router_command: Annotated[str | None, Option("With --command: run this in a router between the command and the path.")] = None
    engine: Annotated[
        str | None, Option("Engines: model, virtual[:KERNEL], live, mock; several to compare.  [default: model]", complete="engines")
    ] = None
    seeds: Annotated[str | None, Option("Trials of each cell: 20 (seeds 0…19), 5..9 or 1,4,7.  [default: 10]")] = None
    precision: Annotated[str | None, Option("Repeat each cell until the interval is ± this of its value: 5%.")] = None
    max_seeds: Annotated[int | None, Option("Most trials of a cell with --precision.  [default: 200]", least=5)] = None
    metric: Annotated[str | None, Option("What is shown, and what --precision is about: goodput, rtt_p95, share:bbr, …", complete="metric")] = None
    samples: Annotated[str | None, Option("Keep samples of flows and queues at this interval (100ms).")] = None

    def fields(self) -> dict[str, Any]:
        """Fields of a campaign; those that were not given are left out."""
        from tcpscape import engines
        from tcpscape.campaign import source
        from tcpscape.controls import spelling

        names = spelling.parse_names(self.engine, "engine") if self.engine is not None else []
        apart = ("cca", "engine", "command", "serve", "host", "router_command")
        fields = {name: value for name, value in asdict(self).items() if name not in apart and value is not None}
        if programs := source.programs(self.command, serve=self.serve, host=self.host, router_command=self.router_command):
            fields["programs"] = programs
        if self.samples is not None:
            fields["queue_samples"] = self.samples
        if names:
            fields["engines"] = tuple(names)
        if self.cca is not None:
            fields["cca"] = tuple(options.ccas(self.cca, engines.make(names[0] if names else "model")))
        return fields


@dataclass(frozen=True)
class PlaceOptions:
    """Where trials run, and where they are kept."""

    out: Annotated[
        Path | None, Option("Keep results here and resume from here.  [default: out/sweep-NAME, or out/sweep-AXES-DIGEST]", complete="directory")
    ] = None
    executor: options.ExecutorName = "local"
    jobs: options.Jobs = 0
    verify: options.Verify = False


@dataclass(frozen=True)
class SweepOutput:
    """What is made of the results."""

    report: options.Report = False
    as_json: Annotated[bool, options.json_output("One JSON line per cell")] = False
    check: checks.Checks = ()
    screen: options.ScreenOptions = field(default_factory=options.ScreenOptions)


@command(
    examples=(
        "sweep --rtt 50ms --jitter 0..12ms/4ms --cca cubic,bbr",
        'sweep lossy-dsl --axis bottleneck.buffer=0.5,1,2bdp\n--mix "cubic*2,bbr" --metric share:bbr',
    )
)
def sweep(
    *,
    source: Annotated[
        str | None, Argument("A campaign (.yaml, .toml; buffers, jitter, step) or a scenario.", complete="campaign", metavar="[FILE]")
    ] = None,
    axes: AxisOptions,
    cell: CellOptions,
    network: options.NetworkOptions,
    place: PlaceOptions,
    output: SweepOutput,
) -> None:
    """Run a scenario at every point of some axes, for each congestion control, and print a row for each cell with its interval.

    A condition is one value, a list (24,50,100ms) or a range (0..24ms/4ms, 1..100mbit/x10): several values make an axis.
    Values that have commas themselves are separated by |: --kernel '6.1|6.12,rmem_max=4MiB'.
    Results are kept: a sweep that was interrupted or killed goes on with the same command, one that is repeated runs nothing.
    """
    from tcpscape.campaign import executors, record
    from tcpscape.campaign.execute import Execution
    from tcpscape.campaign.source import campaign as campaign_of
    from tcpscape.cli import report as reports
    from tcpscape.store.results import Store
    from tcpscape.words import campaign as answer

    campaign = campaign_of(source, axes.values(), cell.fields() | network.fields())
    expected = checks.read(output.check)
    checks.expect(expected, checks.of_cases(campaign))
    root = place.out or DEFAULT_OUT / _directory(campaign)
    executor = executors.make(place.executor, place.jobs, terminal.note)
    terminal.prepare([campaign], place.jobs, verified=place.verify)
    with Store(root) as store, resumable(store):
        with ProgressLine(campaign.name, is_open=campaign.precision is not None) as progress:
            execution = Execution(store=store, progress=progress.update, executor=executor)
            outcome, holds_more = record.measure("sweep", campaign, execution, options.typed())
        with terminal.waiting("working out what a report asks of every trial") if outcome.trial_count > record.AT_ONCE else nullcontext():
            store.close()
    cells = outcome.summaries()
    lines = list(answer.documents(outcome, cells))
    whole = {part: answer.documents(of, of.summaries()) for part, of in record.load(root).parts.items()} if holds_more else {"": lines}
    writing.whole(root / f"{answer.CELLS.name}.csv", answer.frame(whole).write_csv())
    page = reports.write(root) if output.report else None
    if output.as_json:
        for line in lines:
            print(json.dumps(line, allow_nan=False))
    else:
        next_ = terminal.to_open(page) if page else f"tcpscape report {names.argument(root)} (a page with figures and tables)"
        screen = answer.sweep_screen(outcome, cells, [next_])
        terminal.show(replace(screen, kept=_count(outcome, store.saved, root) + terminal.BESIDE * holds_more), output.screen)
    checks.settle(expected, checks.conditions({"": outcome}), as_json=output.as_json, verbose=output.screen.verbose)


def _directory(campaign: Campaign) -> str:
    """Where a campaign is kept: `sweep-NAME`, and of one that options made `sweep-AXES-DIGEST`.

    The digest is of what stays the same, so another sweep has another directory, and more seeds, values or controls go on in theirs.
    """
    from tcpscape.scenario.options import UNNAMED

    if campaign.name != UNNAMED:
        return names.component(f"sweep-{campaign.name}", keep=" %=")
    fixed = campaign.model_dump(mode="json", include={"conditions", "mix", "links", "transfers", "probes", "programs"})
    digest = hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()[:DIGITS]
    return names.component("-".join(("sweep", *campaign.axes, digest)))


def _count(outcome: Outcome, ran: int, root: Path) -> str:
    """How many trials ran, how many were kept already, and where all of them are."""
    every = len({address for cell in outcome.cells for run in cell.addresses for address in run})
    if not ran:
        return f"nothing ran: {f'all {every} trials were' if every > 1 else 'the trial was'} kept in {root}"
    before = f", {every - ran} were kept already" if every > ran else ""
    return f"{counted(every, 'trial')}: {ran} ran{before}; kept in {root}"
