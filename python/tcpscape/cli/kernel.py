"""`tcpscape kernel build`, `list`, `info`, `remove`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated

import click

from tcpscape import kernels
from tcpscape.cli import streams, terminal
from tcpscape.cli.command import Argument, CommandGroup, Option
from tcpscape.kernels.source import BuildProgress
from tcpscape.text.table import Table

if TYPE_CHECKING:
    from rich.progress import TaskID

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
    """The kernels that are built."""
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
    if not rows:
        print("no kernel is built yet; run `tcpscape kernel build`")
        return
    columns = ("name", "release", "source", "built", "HZ", "size")
    terminal.print_table(Table(columns, rows, words=("release", "source", "built"), drop=("built", "size", "HZ")))


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
