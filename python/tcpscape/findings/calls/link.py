"""A home's link with a call and uploads on it, and the queues that a router can put before it.

The queue that fills is in the modem, behind the router, so a better queue in the router does nothing while the modem's is the slower one: the router
shapes to a little below the link's rate, and the queue moves to it (RFC 8290 §7; tc-cake(8), `bandwidth`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcpscape import units
from tcpscape.errors import refuse, shown
from tcpscape.scenario.scenario import Scenario

SHAPED = 0.95
"""Share of the link's rate to which the router shapes."""
DEVICE = "eth0"
"""The router's device towards the modem, in the commands."""
FULL_FRAME = 1514
"""Bytes of a full frame: what a class of htb may send at once."""
MODEM_BUFFER = "256KiB"
"""A modem's buffer of the way up where nobody says: the most frequent one that Netalyzr found behind cable (Kreibich et al., IMC 2010)."""
DURATION = "20s"
"""How long a call is."""
AS_IT_IS = "as it is"
"""Name of the link without a queue in the router."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A queue that the router shapes the way up with."""

    name: str
    """tc's name of the queue."""
    shapes_itself: bool = False
    """Whether it has a rate of its own, as CAKE has; another one is below HTB."""

    def words(self, rate_bps: int) -> str:
        """tc's words of the hop."""
        rate = units.format_rate(rate_bps)
        return f"{self.name} bandwidth {rate}" if self.shapes_itself else f"htb rate {rate} ceil {rate}; {self.name}"

    def commands(self, rate_bps: int) -> tuple[str, ...]:
        """What to type on the router, as root."""
        rate = units.format_rate(rate_bps)
        root = f"tc qdisc replace dev {DEVICE} root"
        if self.shapes_itself:
            return (f"{root} {self.name} bandwidth {rate}",)
        return (
            f"{root} handle 1: htb default 1",
            f"tc class replace dev {DEVICE} parent 1: classid 1:1 htb rate {rate} ceil {rate} quantum {FULL_FRAME}",
            f"tc qdisc replace dev {DEVICE} parent 1:1 {self.name}",
        )


REMEDIES = (Remedy("fq_codel"), Remedy("cake", shapes_itself=True), Remedy("codel"), Remedy("pie"))
"""What a Linux router has. The first of those that are as good is recommended: fq_codel is in every kernel."""


def remedies(names: str | None) -> tuple[Remedy, ...]:
    """The queues of these names, `fq_codel,cake`; all without any."""
    if names is None:
        return REMEDIES
    known = {remedy.name: remedy for remedy in REMEDIES}
    wanted = [name.strip() for name in names.split(",")]
    if unknown := [name for name in wanted if name not in known]:
        refuse("queue", f"{shown(unknown[0])} is no queue that a router is advised to have", f"choose among {', '.join(known)}")
    return tuple(known[name] for name in wanted)


@dataclass(frozen=True, slots=True)
class HomeLink:
    """A link as its provider sells it, rates in bit/s, and what is on it."""

    down_bps: int
    up_bps: int
    rtt_ns: int
    """Round trip to where the call and the uploads go, without queues."""
    buffer: int
    """The modem's buffer of the way up, bytes; down it has as many milliseconds."""
    uploads: int = 1
    """Uploads at the same time."""
    duration_ns: int = 20 * units.NS_PER_S
    kernel: str | None = None

    @classmethod
    def of(cls, words: Mapping[str, str | None], uploads: int = 1) -> HomeLink:
        """A link in a user's words: `rate`, `upload` and `rtt`, and where they are there `buffer`, `duration` and `kernel`.

        :raises ScenarioError: one line for what is missing or wrong.
        """
        if uploads < 1:
            refuse("flows", f"{uploads} uploads: the question is what they do to a call", "write 1 or more, or leave it out")
        for name, example in (("rate", "20mbit"), ("upload", "5mbit"), ("rtt", "30ms")):
            if not words.get(name):
                refuse(name, "an answer about calls needs the link's rates both ways and its RTT", f"write for example --{name} {example}")
        return cls(
            units.parse_rate(str(words["rate"]), "rate"), units.parse_rate(str(words["upload"]), "upload"),
            units.parse_time(str(words["rtt"]), "rtt"), units.parse_size(words.get("buffer") or MODEM_BUFFER, "buffer"), uploads,
            units.parse_time(words.get("duration") or DURATION, "duration"), words.get("kernel"),
        )  # fmt: skip

    @property
    def shaped_bps(self) -> int:
        """The rate to which the router shapes."""
        return int(SHAPED * self.up_bps)

    @property
    def buffer_ms(self) -> float:
        """How long the modem's full buffer takes, ms."""
        return self.buffer * 8e3 / self.up_bps

    def scenario(self, cca: str | None, remedy: Remedy | None = None) -> Scenario:
        """The link with a call both ways, uploads under `cca` (None: no uploads) and the router's queue (None: none)."""
        delay = {"at": "router", "delay": units.format_time(self.rtt_ns // 2)}
        router = [remedy.words(self.shaped_bps)] if remedy else []
        down = max(self.buffer, round(self.buffer * self.down_bps / self.up_bps))
        return Scenario.of({
            "name": "calls", "forward": [delay], "bottleneck": {"rate": units.format_rate(self.down_bps), "buffer": f"{down}B"},
            "reverse": [delay, *router, {"rate": units.format_rate(self.up_bps), "buffer": f"{self.buffer}B"}],
            "flows": [] if cca is None else [{"cca": cca, "count": self.uploads, "direction": "up"}],
            "probes": [{"preset": "voice", "name": "call-down"}, {"preset": "voice", "name": "call-up", "direction": "up"}],
            "duration": units.format_time(self.duration_ns), **({"kernel": self.kernel} if self.kernel else {}),
        })  # fmt: skip

    def cases(self, ccas: Sequence[str], remedies: Sequence[Remedy]) -> list[tuple[str, Remedy | None]]:
        """Every congestion control of the uploads on the link as it is, then behind each queue."""
        return [(cca, remedy) for remedy in (None, *remedies) for cca in ccas]
