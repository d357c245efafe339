"""Programs of this machine on a scenario's path: a command at the near end, servers at the far end.

The far end is where the scenario's data come from: what a program downloads from `far` meets `forward` and `bottleneck`, what it sends there meets
`reverse`. The product's own flows of the scenario, where there are some, share the path with them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from tcpscape.controls.spelling import name_of
from tcpscape.errors import refuse, shown
from tcpscape.scenario.fields import Spec, written
from tcpscape.scenario.flows import CcaField

LONGEST = 4096
"""Most characters of a command line."""
DURATION = "10min"
"""Time after which a command is ended where its scenario says no other."""


def words(text: str, field: str = "command") -> list[str]:
    """A command line as words, split as a shell does. :raises ScenarioError: it has none, or an open quotation."""
    try:
        parts = shlex.split(text)
    except ValueError as e:
        refuse(field, f"{e}"[:1].lower() + f"{e}"[1:], "close the quotation")
    if not parts:
        refuse(field, "there is none", "name a program, for example 'ping -c 5 far'")
    return parts


def _command(text: str) -> str:
    words(text)
    return text


def _servers(lines: tuple[str, ...]) -> tuple[str, ...]:
    for line in lines:
        words(line, "serve")
    return lines


def _several(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _named(label: str) -> str:
    if name_of(label) != label:
        refuse("programs.cca", f"{shown(label)} sets a parameter, and programs have the kernel's control", "write its name alone, for example bbr")
    return label


Line = Annotated[str, Field(min_length=1, max_length=LONGEST)]


class Programs(Spec):
    """A command and its servers; nothing but the path, and the flows beside them, is the scenario's."""

    command: Annotated[Line, AfterValidator(_command)]
    """The command at the near end, as in a shell without its syntax: `curl -s http://far/page`."""
    serve: Annotated[
        tuple[Line, ...], AfterValidator(_servers), BeforeValidator(_several, json_schema_input_type=written({"type": ["string", "array"]}))
    ] = ()
    """Servers at the far end, command lines of the shell, started before."""
    cca: Annotated[CcaField, AfterValidator(_named)] = "cubic"
    """Congestion control of both ends' sockets."""

    def lines(self) -> Iterator[str]:
        """Every command line."""
        yield self.command
        yield from self.serve
