"""`tcpscape bound`: the latency spike that a drop of capacity must make, without running anything."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tcpscape import units
from tcpscape.cli import options, terminal
from tcpscape.cli.command import Option, command
from tcpscape.errors import refuse, shown

if TYPE_CHECKING:
    from tcpscape.findings.spike import Bound


@dataclass(frozen=True)
class LinkOptions:
    """The link before and after the drop, its queue and its flows."""

    before: Annotated[str, Option("The link's rate before the drop: 60mbit.", name="--from")]
    after: Annotated[str, Option("Its rate after the drop: 20mbit.", name="--to")]
    rtt: Annotated[str | None, Option("Round trip from the bottleneck to the sender and back: 50ms.")] = None
    max_queue: Annotated[str | None, Option("Longest delay that the queue lets a packet wait: 20ms.  [default: no limit]")] = None
    flows: Annotated[str | None, Option("Several flows instead of --rtt, RTT:SHARE of the bandwidth: 50ms:0.7,20ms:0.3")] = None
    packet: Annotated[str | None, Option("A packet as the link counts it.  [default: a full frame, 1514B]")] = None

    def bound(self) -> Bound:
        """The bound for them."""
        from tcpscape.findings.spike import FULL_FRAME, Bound

        return Bound(
            units.parse_rate(self.before, "from", example="60mbit"),
            units.parse_rate(self.after, "to", example="20mbit"),
            self._flows(),
            None if self.max_queue is None else units.parse_time(self.max_queue, "max-queue", example="20ms"),
            FULL_FRAME if self.packet is None else units.parse_size(self.packet, "packet", example="1514B"),
        )

    def _flows(self) -> tuple[tuple[int, float], ...]:
        """Round trip in ns and share of each flow."""
        if (self.rtt is None) == (self.flows is None):
            problem = "none given" if self.rtt is None else "given twice, with --flows"
            refuse("rtt", problem, "write --rtt 50ms, or --flows 50ms:0.7,20ms:0.3")
        if self.rtt is not None:
            return ((units.parse_time(self.rtt, "rtt"), 1.0),)
        return tuple(_flow(text) for text in (self.flows or "").split(","))


@command(examples=("bound --from 60mbit --to 20mbit --rtt 50ms", "bound --from 60mbit --to 20mbit --rtt 50ms --max-queue 20ms"))
def bound(
    link: LinkOptions, output: options.ScreenOptions, as_json: Annotated[bool, options.json_output("One JSON line with every number")] = False
) -> None:
    """The latency spike that a sudden drop of a full link's rate must make, or what must be lost instead. Nothing is run."""
    from tcpscape.words import bound as words

    least = link.bound()
    if as_json:
        print(json.dumps(words.document(least), allow_nan=False))
    else:
        terminal.show(words.screen(least), output)


def _flow(text: str) -> tuple[int, float]:
    """`50ms:0.7`."""
    rtt, colon, share = text.strip().partition(":")
    try:
        if colon:
            return units.parse_time(rtt, "flows"), float(share)
    except ValueError:
        pass
    refuse("flows", f"{shown(text.strip())} is not RTT:SHARE", "write for example 50ms:0.7,20ms:0.3")
