"""Programs of this machine on a scenario's path: a command at the near end, servers at the far end, a router between the near end and the path.

The far end is where the scenario's data come from: what a program downloads from `far` meets `forward` and `bottleneck`, what it sends there meets
`reverse`. The product's own flows of the scenario, where there are some, share the path with them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, SerializationInfo, SerializerFunctionWrapHandler, model_serializer, model_validator

from tcpscape.controls.spelling import name_of
from tcpscape.errors import refuse, shown
from tcpscape.scenario.fields import Spec, is_address, without_later, written
from tcpscape.scenario.flows import CcaField

LONGEST = 4096
"""Most characters of a command line."""
DURATION = "10min"
"""Time after which a command is ended where its scenario says no other."""
FAR, ENDS = "far", ("near", "far")
"""Names of the two ends, of which servers run at the far one where nothing else is said."""
MOST_HOSTS = 100
"""Most further hosts. crates/testbed, `network::wire`"""
RESERVED = (*ENDS, "router", "localhost")
"""Names that no further host can have."""
_HOST = re.compile(r"[a-z][a-z0-9-]{0,61}[a-z0-9]|[a-z]")
_PLACED = re.compile(r"([\w-]+):(?:\s+(.*))?", re.DOTALL)


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


def _router(line: str | None) -> str | None:
    if line is not None:
        words(line, "router-command")
    return line


def expect_hosts(hosts: Sequence[str]) -> None:
    """:raises ScenarioError: a further host's name is none, or is there twice."""
    for i, name in enumerate(hosts):
        if not _HOST.fullmatch(name):
            refuse("host", f"{shown(name)} is no name of a host", "write small letters, digits and hyphens, for example cdn")
        if name in RESERVED:
            refuse("host", f"{shown(name)} is one already", "choose another name")
        if name in hosts[:i]:
            refuse("host", f"{shown(name)} is there twice", "leave one out")
    if len(hosts) > MOST_HOSTS:
        refuse("host", f"{len(hosts)} are more than {MOST_HOSTS}", "leave some out")


def placed(line: str, hosts: Sequence[str]) -> tuple[str, str]:
    """The host at which a server runs, and its command line: `cdn: python3 -m http.server 80`; without a name it is the far end.

    :raises ScenarioError: there is no such host, or no command.
    """
    named = _PLACED.fullmatch(line.strip())
    name, command = named.groups("") if named else (FAR, line)
    if name not in (*ENDS, *hosts):
        more = f"add it with --host {name}" if _HOST.fullmatch(name) and name not in RESERVED else "add one with --host, for example cdn"
        refuse("serve", f"there is no host {shown(name)}", f"choose {', '.join((*ENDS, *hosts))}, or {more}")
    words(command, "serve")
    return name, command


def _several(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _named(label: str) -> str:
    if name_of(label) != label:
        refuse("programs.cca", f"{shown(label)} sets a parameter, and programs have the kernel's control", "write its name alone, for example bbr")
    return label


Line = Annotated[str, Field(min_length=1, max_length=LONGEST)]


Lines = written({"type": ["string", "array"]})


class Programs(Spec):
    """A command and its servers; nothing but the path, and the flows beside them, is the scenario's."""

    command: Annotated[Line, AfterValidator(_command)]
    """The command at the near end, as in a shell without its syntax: `curl -s http://far/page`."""
    serve: Annotated[tuple[Line, ...], BeforeValidator(_several, json_schema_input_type=Lines)] = ()
    """Servers, command lines of the shell, started before: at the far end, or at a host that is named first, `cdn: python3 -m http.server 80`."""
    host: Annotated[tuple[str, ...], BeforeValidator(_several, json_schema_input_type=Lines)] = ()
    """Names of further hosts at the far end."""
    router_command: Annotated[Line | None, AfterValidator(_router)] = None
    """A command line of the shell in a router between the near end and the path, whose devices are `lan` and `wan`."""
    cca: Annotated[CcaField, AfterValidator(_named)] = "cubic"
    """Congestion control of both ends' sockets."""

    @model_validator(mode="after")
    def _placed(self) -> Programs:
        expect_hosts(self.host)
        for line in self.serve:
            placed(line, self.host)
        return self

    @model_serializer(mode="wrap")
    def _fields(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        fields: dict[str, Any] = write(self)
        return without_later(fields, self, ("host", "router_command")) if is_address(info) else fields

    def lines(self) -> Iterator[str]:
        """Every command line."""
        yield self.command
        yield from self.serve
        if self.router_command:
            yield self.router_command
