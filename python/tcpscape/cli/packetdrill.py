"""`tcpscape packetdrill`: packetdrill's scripts against the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from tcpscape.cli import options, terminal
from tcpscape.cli.command import Argument, Option, command
from tcpscape.errors import refuse

FAILED = 1
"""Exit status where a script of --check fails."""


@command(examples=("packetdrill tests/packetdrill", "packetdrill tests/packetdrill/rfc5681-slow-start.pkt --check --json"))
def packetdrill(
    scripts: Annotated[tuple[str, ...], Argument("Scripts (.pkt), or directories of them.", metavar="SCRIPT...", complete="file", several=True)],
    output: options.ScreenOptions,
    engine: Annotated[str, Option("What the packets are compared with: model.")] = "model",
    kernel: Annotated[str, Option("Kernel profile of the host: 6.1, 6.6, 6.12, 6.18, 6.19, 7.1.", complete="profile")] = "6.18",
    check: Annotated[bool, Option("Status 1 where a script fails.")] = False,
    as_json: Annotated[bool, options.json_output("One JSON document")] = False,
) -> int:
    """Run packetdrill's scripts, unmodified, against the model's sender and receiver in virtual time.

    What a connection of the model cannot express is not applicable, with its reason; commands of the shell are read for their sysctls, never run.
    """
    from tcpscape.validate import packetdrill as drills
    from tcpscape.words import packetdrill as words

    if engine != "model":
        refuse("engine", f"{engine!r} runs no scripts", "leave --engine out, or write model")
    drill = drills.run([Path(script) for script in scripts], kernel)
    if as_json:
        print(json.dumps(words.document(drill), allow_nan=False))
    else:
        terminal.show(words.screen(drill), output)
    return FAILED if check and drill.of(drills.Verdict.FAILED) else 0
