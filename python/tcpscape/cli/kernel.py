"""`tcpscape kernel build`, `list`, `info`, `remove`, `diff`."""

from __future__ import annotations

import json
import platform
import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated

import click

from tcpscape import kernels
from tcpscape.cli import options, streams, terminal
from tcpscape.cli.command import Argument, CommandGroup, Option
from tcpscape.cli.terminal import ProgressLine, resumable
from tcpscape.errors import refuse
from tcpscape.kernels.source import BuildProgress
from tcpscape.scenario.vocabulary import FlowFields, PathFields
from tcpscape.text.table import Table

if TYPE_CHECKING:
    from rich.progress import TaskID

    from tcpscape.campaign.execute import TrialsDone as Update
    from tcpscape.validate.conditions import NamedScenario

kernel = CommandGroup("kernel", "Real Linux kernels for the virtual engine.")

MIB = 2**20
DIGITS = 12
"""Digits of a digest in a table."""


@kernel.subcommand("build", examples=("kernel build", "kernel build --source 6.12 --name newer"))
def build(
    source: Annotated[
        str | None, Option("A kernel tarball, your own tree, or a version of Debian's (6.12).  [default: 6.1]", complete="file")
    ] = None,
    config: Annotated[Path | None, Option("A fragment of CONFIG_NAME=value lines; it wins over ours.", complete="file")] = None,
    name: Annotated[str | None, Option("What to call it.  [default: the version, or the tree's directory]")] = None,
    jobs: Annotated[int, Option("Processes that compile; 0 is one for each core.", least=0)] = 0,
) -> None:
    """Build a kernel into the cache; what did not change is not built again."""
    from tcpscape.kernels.build import BuildOptions
    from tcpscape.kernels.build import build as make

    try:
        with _Bar() as bar:
            built = make(BuildOptions(source, config, name, jobs), bar)
    except KeyboardInterrupt as e:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        raise click.exceptions.Exit(streams.status(e)) from None
    print(f"kernel {built.name}: Linux {built.release}, {built.digest[:DIGITS]}, in {built.seconds:.1f} s: {built.path}")


@kernel.subcommand("list", examples=("kernel list", "run baseline --engine virtual:6.1 --seeds 3"))
def list_() -> None:
    """The kernels that are built, and the model's profiles with how near they are."""
    from tcpscape.kernels import config

    built = {kernel.name: kernel for kernel in kernels.built_kernels()}
    rows = []
    for name in kernels.names():
        size = f"{kernels.size_on_disk(kernels.place(name)) // MIB} MiB"
        if name in built:
            kernel = built[name]
            older = "" if kernel.recipe == config.recipe() else " (older configuration: build it again)"
            rows.append((name, kernel.release + older, kernel.source, kernel.built, str(kernel.hz), size))
        else:
            rows.append((name, "not finished", "build it again: it goes on from there", "–", "–", size))
    if rows:
        columns = ("name", "release", "source", "built", "HZ", "size")
        terminal.print_table(Table(columns, rows, words=("release", "source", "built"), drop=("built", "size", "HZ")))
    else:
        print("no kernel is built yet; run `tcpscape kernel build`")
    _print_profiles()


def _print_profiles() -> None:
    """The model's profiles: which kernel each was held against, how near it was, and which one is this machine's."""
    from tcpscape.engines.model import Model
    from tcpscape.scenario import host, profiles

    model = Model()
    if model.unavailable():
        return
    own = host.nearest(platform.release())[0] if platform.system() == "Linux" else None
    rows = []
    for name in model.kernels():
        mark = platform.release() if name == own else ""
        if compared := profiles.COMPARED.get(name):
            values = ((compared.median, compared.chance_median), (compared.p90, compared.chance_p90))
            rows.append((name, compared.release, *(f"{100 * value:.1f} % ({100 * chance:.1f} %)" for value, chance in values), mark))
        else:
            rows.append((name, "no kernel", "–", "–", mark))
    about = f"The model's profiles (--kernel NAME), each held against a kernel on {profiles.PATHS} random paths; in brackets what chance alone shows:"
    print()
    terminal.console().print(about, markup=False, highlight=False)
    columns = ("profile", "held against", "goodput off, median", "90th percentile", "--kernel host")
    terminal.print_table(Table(columns, rows, words=("held against", "--kernel host")))


@kernel.subcommand("info", examples=("kernel info", "kernel info 6.1"))
def info(name: Annotated[str | None, Argument("A kernel's name; the default kernel if none is given.", complete="kernel")] = None) -> None:
    """Everything that is known about a kernel."""
    fields = kernels.find(name).record()
    texts = {name: ", ".join(value) if isinstance(value, tuple) else "–" if value is None else value for name, value in fields.items()}
    rows = [(name.replace("_", " "), text) for name, text in texts.items()]
    terminal.print_table(Table(("what", "value"), [(what, str(value)) for what, value in rows], words=("value",)))


@kernel.subcommand("remove", examples=("kernel list", "kernel remove 6.1"))
def remove(name: Annotated[str, Argument("A kernel's name.", complete="kernel")]) -> None:
    """Remove a kernel with its build and its sources; your own tree is not touched."""
    freed = kernels.remove(name)
    print(f"removed {name}: {freed // MIB} MiB freed")


WORSE = 1
"""Exit status where --check finds the second kernel worse."""


@dataclass(frozen=True, kw_only=True)
class ComparedPaths:
    """The paths that both kernels run: one in numbers, a scenario, a list, or the default ones."""

    conditions: PathFields
    flows: FlowFields
    duration: Annotated[str | None, Option("How long to watch.  [default: 10s]")] = None
    scenario: Annotated[str | None, Option("A .yaml or .toml file or a gallery name instead.", complete="scenario")] = None
    paths: Annotated[str | None, Option("A list of scenarios instead: .yaml, or .csv as of validate.", complete="file")] = None
    cca: Annotated[str | None, Option("Congestion controls: every path under each.  [default: cubic, or the scenario's]", complete="ccas")] = None

    def load(self) -> list[NamedScenario]:
        """The paths. :raises TcpscapeError: where they are said twice, or one is wrong."""
        from tcpscape.scenario import files
        from tcpscape.scenario.options import ScenarioOptions, given
        from tcpscape.validate import conditions, kernel_diff

        ccas = options.ccas(self.cca)
        if self.paths is not None and (self.scenario is not None or given(self.conditions)):
            refuse("paths", "the path is said besides", "leave out one of the two")
        said = ScenarioOptions(flow={**self.flows}, fields={"duration": self.duration}, conditions=self.conditions)
        if self.paths is not None or not (self.scenario or given(self.conditions)):
            if given(self.flows) or self.duration:
                refuse("rtt", "missing, and options of flows need a path", "give it too, for example 50ms")
            listed = kernel_diff.suite(self.paths)
        elif self.scenario is not None:
            listed = [conditions.NamedScenario(Path(self.scenario).stem, said.over(files.load(self.scenario)))]
        else:
            listed = [conditions.NamedScenario("path", said.scenario())]
        return conditions.pairs(listed, ccas) if len(ccas) > 1 else [replace(c, scenario=c.scenario.with_cca(ccas[0])) if ccas else c for c in listed]


@dataclass(frozen=True)
class DiffOutput:
    """What is told, kept and printed."""

    least: Annotated[str, Option("Smallest difference that is told.")] = "1%"
    check: Annotated[bool, Option("Exit with 1 where the second kernel is worse on a path: to gate an update.")] = False
    out: Annotated[Path | None, Option("Keep trials and report.md here and resume from here.", complete="directory")] = None
    as_json: Annotated[bool, options.json_output("One JSON document")] = False


@kernel.subcommand(
    "diff",
    examples=(
        "kernel diff 6.1 6.12 --rtt 80ms --rate 50mbit\n--loss 0.1% --cca cubic,bbr",
        "kernel diff --hunks linux-6.1/ patched/ --rtt 80ms\n--rate 50mbit",
    ),
)
def diff(
    first: Annotated[str, Argument("A kernel of `tcpscape kernel list`; with --hunks a source tree.", complete="kernel")],
    second: Annotated[str, Argument("Another one; the same one tells how often chance raises an alarm.", complete="kernel")],
    *,
    hunks: Annotated[
        bool, Option("Compare two source trees (directories, tarballs or versions of Debian's) and say which hunks between them make the difference.")
    ] = False,
    paths: ComparedPaths,
    results: DiffOutput,
    output: options.ScreenOptions,
    jobs: options.Jobs = 0,
) -> int:
    """Say what changes on a path, or on 24 usual ones, from one kernel to another, and by how much: only what is no chance is told."""
    from tcpscape import engines, units, writing
    from tcpscape.store.results import Store
    from tcpscape.validate import kernel_diff
    from tcpscape.words import kernel_diff as words

    if hunks:
        return _diff_trees(first, second, paths.load(), results, output, jobs)
    built, least = [kernels.find(name) for name in (first, second)], units.parse_percent(results.least, "least")
    listed, out = paths.load(), results.out
    both = tuple(engines.make(f"virtual:{name}") for name in (first, second))
    with nullcontext() if out is None else Store(out) as store, resumable(store), ProgressLine("kernel diff", is_open=True) as progress:

        def say(what: str) -> Update:
            progress.say(what)
            return progress.update

        pair = kernel_diff.KernelPair((both[0], both[1]), (first, second), (built[0].release, built[1].release), jobs, store)
        result = kernel_diff.difference(pair, listed, least, say)
    screen = words.screen(result)
    if out is not None:
        writing.whole(out / "report.md", screen.markdown())
    if results.as_json:
        print(json.dumps(words.document(result), allow_nan=False))
    else:
        terminal.show(replace(screen, kept=f"kept in {out}: report.md and every trial" if out else ""), output)
    return WORSE if results.check and any(d.is_worse for d in result.told) else 0


def _diff_trees(first: str, second: str, listed: list[NamedScenario], results: DiffOutput, output: options.ScreenOptions, jobs: int) -> int:
    """Says which hunks between two source trees make the difference. Kernels and trials are kept: the same command goes on from there."""
    from tcpscape import units, writing
    from tcpscape.kernels import variants
    from tcpscape.store.results import Store
    from tcpscape.validate import hunks
    from tcpscape.words import hunks as words

    least = units.parse_percent(results.least, "least")
    with variants.opened(first, second, jobs) as builder, Store(builder.directory) as store, resumable(store):
        with _Bar() as bar:
            builder.prepare(bar)
        with ProgressLine("kernel diff", is_open=True, steps=hunks.about_steps(builder.hunks)) as progress:

            def say(what: str) -> Update:
                progress.say(what)
                return progress.update

            builder.progress = _StepProgress(progress)
            result = hunks.compare_trees(builder, listed, least, jobs, store, say)
        directory = builder.directory
    screen = words.screen(result)
    if results.out is not None:
        writing.whole(results.out / "report.md", screen.markdown())
    if results.as_json:
        print(json.dumps(words.document(result), allow_nan=False))
    else:
        terminal.show(replace(screen, kept=f"kept in {directory}: {len(result.hunks)} hunks' kernels and every trial"), output)
    return WORSE if results.check and any(d.is_worse for d in result.result.told) else 0


class _StepProgress(BuildProgress):
    """What make does, on the line of a longer work."""

    def __init__(self, line: ProgressLine) -> None:
        self.line = line

    def say(self, line: str) -> None:
        """Shows what make does at the moment."""
        self.line.now(line[:40])


class _Bar(BuildProgress):
    """A bar on stderr, on a terminal only; a spinner where the length is not known."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        screen, line = Console(stderr=True), TextColumn("{task.fields[line]}", markup=False)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), line)
        self.bars = Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)
        self.task: TaskID | None = None

    def __enter__(self) -> _Bar:
        self.bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.bars.stop()

    def stage(self, name: str, total: int | None = None) -> None:
        """Begins a new bar."""
        if self.task is not None:
            self.bars.remove_task(self.task)
        self.task = self.bars.add_task(name, total=total, line="")

    def done(self, amount: int) -> None:
        """Moves the bar."""
        if self.task is not None:
            self.bars.update(self.task, completed=amount)

    def say(self, line: str) -> None:
        """Shows what make does at the moment."""
        if self.task is not None:
            self.bars.update(self.task, line=line[:60])
