"""`tcpscape version`, and `list` and `show` of congestion controls, queues and scenarios."""

from __future__ import annotations

from typing import Annotated

import typer

from tcpscape import __version__
from tcpscape.cli import tables

cca = typer.Typer(help="Congestion controls.", no_args_is_help=True)
qdisc = typer.Typer(help="Queues and impairments, in tc's words.", no_args_is_help=True)
scenario = typer.Typer(help="The gallery of scenarios.", no_args_is_help=True)
ERROR = "error against Linux: median / p90 (n)"
"""A column: |ln ratio| of the goodput on n conditions."""


def version() -> None:
    """Versions of tcpscape, of its model and of the default kernel where there is one."""
    from tcpscape.engines.model import Model
    from tcpscape.engines.virtual import Virtual

    engine = Model()
    print(f"tcpscape {__version__}, model {engine.version if engine.unavailable() is None else 'not built (run `make setup`)'}")
    virtual = Virtual()
    if virtual.unavailable() is None:
        print(f"virtual: kernel {virtual.version}")


@cca.command("list")
def cca_list() -> None:
    """Congestion controls that the model has."""
    from tcpscape.cli import show

    tables.console().print(tables.table(("name", "about", "source", ERROR), show.controls(), left=3))


@cca.command("show")
def cca_show(name: Annotated[str, typer.Argument(help="A congestion control of `cca list`.")]) -> None:
    """What a congestion control is: source, page, parameters, measured fidelity, differences from Linux."""
    from tcpscape.cli import show

    print("\n".join(show.control_text(name)))


@qdisc.command("list")
def qdisc_list() -> None:
    """Queues and impairments that the model has."""
    from tcpscape.cli import show

    tables.console().print(tables.table(("name", "example", ERROR), show.queues(), left=2))


@qdisc.command("show")
def qdisc_show(name: Annotated[str, typer.Argument(help="A queue of `qdisc list`.")]) -> None:
    """What a queue is: page, tc's words with their defaults, an example, measured fidelity, differences from Linux."""
    from tcpscape.cli import show

    print("\n".join(show.queue_text(name)))


@scenario.command("list")
def scenario_list() -> None:
    """Scenarios in the gallery."""
    from tcpscape.scenario import files

    rows = [(name, files.load(name).about.strip()) for name in files.gallery()]
    tables.console().print(tables.table(("name", "about"), rows, left=2))


@scenario.command("show")
def scenario_show(
    name: Annotated[str, typer.Argument(help="A gallery name or a file.")],
    tc: Annotated[bool, typer.Option("--tc", help="As a script that builds its path on Linux.")] = False,
) -> None:
    """A scenario as YAML, to copy and change."""
    from tcpscape.scenario import files

    if tc:
        from tcpscape.interchange import tc as script

        print(script.write(files.load(name)).decode(), end="")
        return
    print(files.dump(files.load(name)), end="")
