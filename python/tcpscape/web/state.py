"""The state of the page: the path as its fields say it, the congestion controls, and the scenario that they make.

Every field is text as a user writes it (`50ms`, `10mbit`, `0.1%`); an empty text is the default. The same texts stand in the page's address.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from tcpscape.campaign.campaign import Campaign
from tcpscape.scenario import changes
from tcpscape.scenario.fields import OPTIONS, Spec
from tcpscape.scenario.scenario import Scenario


class State(Spec):
    """What the page shows."""

    rtt: str = "50ms"
    """Round-trip time without jitter and queues."""
    jitter: str = ""
    """Spread of each one-way delay."""
    jitter_on: str = ""
    """`both`, `forward`, `reverse`."""
    distribution: str = ""
    """Distribution of the jitter, in tc's words."""
    order: str = ""
    """Whether jitter reorders: `reorder`, `keep`, `clamp`."""
    loss: str = ""
    """Share of packets lost in each direction."""
    loss_on: str = ""
    """`both`, `forward`, `reverse`."""
    loss_burst: str = ""
    """Mean number of packets lost in a row; empty or 1 is independent loss."""
    rate: str = "42mbit"
    """Rate of the bottleneck; empty is no limit."""
    buffer: str = ""
    """Its queue's size; empty is 1bdp. Not read without a rate, as `queue`."""
    queue: str = ""
    """Its queue in tc's words; empty is a FIFO in bytes."""
    rcvbuf: str = ""
    """SO_RCVBUF; empty is autotuned."""
    app: str = ""
    """Rate of the application; empty is as fast as it can."""
    read: str = ""
    """The receiver's reads, `16KiB/1ms`."""
    ecn: bool = False
    """Whether both ends negotiate ECN."""
    duration: str = ""
    """How long a trial is; empty is 10s."""
    kernel: str = ""
    """Kernel profile with overrides."""
    words: dict[str, str] = Field(default_factory=dict)
    """`forward`, `bottleneck`, `reverse` in tc's own words, where the fields above cannot say the path; then they are not read for it."""
    changes: tuple[str, ...] = ()
    """Changes of the path on the way, `bottleneck@8s: rate 20mbit`."""
    cca: tuple[str, ...] = ("cubic", "bbr")
    """Congestion controls that are compared, as labels."""
    mix: str = ""
    """Flows that share the bottleneck, `cubic*2,bbr@5s`."""

    def conditions(self) -> dict[str, Any]:
        """The path and its flows as conditions of a campaign, as `tcpscape sweep` has them."""
        of_link = ("buffer", "queue") if self.rate else ()
        names = ("rtt", "jitter", "jitter_on", "distribution", "order", "loss", "loss_on", "rate", *of_link, "duration", "kernel")
        fields: dict[str, Any] = {name: getattr(self, name) for name in names if getattr(self, name)}
        flow = {name: getattr(self, name) for name in ("rcvbuf", "app", "read") if getattr(self, name)}
        fields |= {"flow": flow} if flow else {}
        fields |= {"ecn": True} if self.ecn else {}
        fields |= {"changes": [changes.parse(text) for text in self.changes]} if self.changes else {}
        return fields | dict(self.words)

    def campaign(self, **fields: Any) -> Campaign:
        """The campaign of this path and its congestion controls; `fields`: others of the campaign (`seeds`, `axes`, `zip`).

        :raises TcpscapeError: one line that names the field.
        """
        controls = {"mix": self.mix} if self.mix else {"cca": list(self.cca)}
        return Campaign.of({"name": "explorer", "conditions": self.conditions(), **controls, **fields}, OPTIONS)

    def scenario(self, cca: str) -> Scenario:
        """The scenario in which every flow uses `cca`; of a mixture, that mixture.

        :raises TcpscapeError: one line that names the field.
        """
        one = self if self.mix else self.model_copy(update={"cca": (cca,)})
        return one.campaign().cases()[0].scenario

    def replace(self, **fields: Any) -> State:
        """The state with other fields."""
        return self.model_copy(update=fields)
