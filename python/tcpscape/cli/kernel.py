"""`tcpscape kernel build`, `list`, `info`, `remove`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated

import typer

from tcpscape import kernels
from tcpscape.cli import tables
from tcpscape.kernels.toolchain import BuildProgress

if TYPE_CHECKING:
    from rich.progress import TaskID

kernel = typer.Typer(help="Real Linux kernels for the virtual engine.", no_args_is_help=True)

INTERRUPTED = 130
MIB = 2**20
DIGITS = 12
"""Digits of a digest in a table."""


@kernel.command("build")
def build(
    source: Annotated[str | None, typer.Option(help="A kernel tarball, your own tree, or a version of Debian's (6.12).  [default: 6.1]")] = None,
    config: Annotated[Path | None, typer.Option(help="A fragment of CONFIG_NAME=value lines; it wins over ours.")] = None,
    name: Annotated[str | None, typer.Option(help="What to call it.  [default: the version, or the tree's directory]")] = None,
    jobs: Annotated[int, typer.Option(min=0, help="Processes that compile; 0 is one for each core.")] = 0,
) -> None:
    """Build a kernel into the cache; what did not change is not built again."""
    from tcpscape.kernels.build import BuildOptions
    from tcpscape.kernels.build import build as make

    try:
        with _Bar() as bar:
            built = make(BuildOptions(source, config, name, jobs), bar)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    print(f"kernel {built.name}: Linux {built.release}, {built.digest[:DIGITS]}, in {built.seconds:.1f} s: {built.path}")


@kernel.command("list")
def list_() -> None:
    """The kernels that are built."""
    from tcpscape.kernels import config

    built = {each.name: each for each in kernels.built_kernels()}
    rows = []
    for name in kernels.names():
        each, size = built.get(name), f"{kernels.size_on_disk(kernels.place(name)) // MIB} MiB"
        if each:
            older = "" if each.recipe == config.recipe() else " (older configuration: build it again)"
            rows.append((name, each.release + older, each.source, each.built, str(each.hz), size))
        else:
            rows.append((name, "not finished", "build it again: it goes on from there", "–", "–", size))
    if not rows:
        print("no kernel is built yet; run `tcpscape kernel build`")
        return
    tables.console().print(tables.table(("name", "release", "source", "built", "HZ", "size"), rows, left=4))


@kernel.command("info")
def info(name: Annotated[str | None, typer.Argument(help="A kernel's name; the default kernel if none is given.")] = None) -> None:
    """Everything that is known about a kernel."""
    said = kernels.find(name).record()
    rows = [(key.replace("_", " "), ", ".join(value) if isinstance(value, tuple) else "–" if value is None else value) for key, value in said.items()]
    tables.console().print(tables.table(("what", "value"), rows, left=2))


@kernel.command("remove")
def remove(name: Annotated[str, typer.Argument(help="A kernel's name.")]) -> None:
    """Remove a kernel with its build and its sources; your own tree is not touched."""
    freed = kernels.remove(name)
    print(f"removed {name}: {freed // MIB} MiB freed")


class _Bar(BuildProgress):
    """A bar on stderr, on a terminal only; a spinner where nobody knows how long it takes."""

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
        """Begins a bar of its own."""
        if self.task is not None:
            self.bars.remove_task(self.task)
        self.task = self.bars.add_task(name, total=total, line="")

    def done(self, amount: int) -> None:
        """Moves the bar."""
        if self.task is not None:
            self.bars.update(self.task, completed=amount)

    def say(self, line: str) -> None:
        """Shows what make does just now."""
        if self.task is not None:
            self.bars.update(self.task, line=line[:60])
