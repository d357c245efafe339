"""The state of the page: the path as its fields say it, the congestion controls, and the scenario that they make.

Every field is text as a user writes it (`50ms`, `10mbit`, `0.1%`); an empty text is the default. The same texts stand in the page's address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from tcpscape.campaign.campaign import Campaign
from tcpscape.controls import spelling
from tcpscape.errors import refuse, shown
from tcpscape.scenario import changes, host
from tcpscape.scenario.fields import OPTIONS, Spec, validate
from tcpscape.scenario.grammar import parse_mix, parse_transfers
from tcpscape.scenario.scenario import PARTS, Scenario
from tcpscape.scenario.vocabulary import TRIAL
from tcpscape.web import texts

OF_DIRECTIONS = ("rtt", "jitter", "jitter_on", "distribution", "order", "loss", "loss_on", "loss_burst", "limit", "forward_at", "reverse_at")
"""Fields of the two directions, which the words of both replace."""
OF_QUEUE = ("buffer", "queue")
"""Fields of the bottleneck's queue, which make no sense without a rate."""
NETWORK = ("links", "transfers", "probes")
"""Fields that make a network of the path."""
MOST_ITEMS = 50
"""Most congestion controls, changes, links, transfers or probes that a page asks about."""
trusted: set[str] = set()
"""Congestion controls in Python that the command line named: no other file is imported for what a page asks."""


FieldKind = Literal["time", "rate", "share", "size", "buffer", "byterate", "number", "choice", "text"]


Group = Literal["Delay", "Loss", "Bursts", "Bottleneck", "Hosts", "More"]


@dataclass(frozen=True)
class Choice:
    """A value of a field that has a choice."""

    value: str
    title: str


@dataclass(frozen=True)
class PathField:
    """How the page shows a field of the path; values are texts as a user writes them, and an empty choice is the standard one."""

    label: str
    group: Group
    kind: FieldKind = "choice"
    low: str = ""
    high: str = ""
    """The ends of its slider; empty where it has none."""
    standard: str = ""
    """What an empty text stands for, or an example of one; empty where that is no value."""
    zero_text: str = ""
    """What the slider's end is called where it is the empty text: the left one, the right one where that stands for no value."""
    needs: str = ""
    """The field without which this one is not read."""
    choices: tuple[Choice, ...] = ()
    """Those of a queue are the registry's."""


NODES = (Choice("", "a router (each packet by itself)"), Choice("sender", "the sending host (super-packets as one)"))


def _declared(name: str, group: Group, kind: FieldKind = "choice", standard: str = "", zero_text: str = "", *, needs: str = "") -> PathField:
    """A field that every command has, as it is declared for all of them."""
    about = TRIAL[name]
    low, high = about.ends or ("", "")
    choices = tuple(Choice(value if place else "", title) for place, (value, title) in enumerate(about.choices.items()))
    return PathField(about.label, group, kind, low, high, standard, zero_text, needs, choices)


def _parts(words: dict[str, str]) -> dict[str, str]:
    if strange := [part for part in words if part not in PARTS]:
        refuse("words", f"{shown(strange[0])} is no part of a path", f"choose {', '.join(PARTS)}")
    return words


def _labels(controls: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(spelling.label(cca) for cca in controls))


class State(Spec):
    """What the page shows."""

    rtt: Annotated[str, _declared("rtt", "Delay", "time")] = "50ms"
    """Round-trip time without jitter and queues."""
    jitter: Annotated[str, _declared("jitter", "Delay", "time", "0ms", "no jitter")] = ""
    """Spread of each one-way delay."""
    jitter_on: Annotated[str, _declared("jitter_on", "More", needs="jitter")] = ""
    """`both`, `forward`, `reverse`."""
    distribution: Annotated[str, _declared("distribution", "More", needs="jitter")] = ""
    """Distribution of the jitter, in tc's words."""
    order: Annotated[str, _declared("order", "More", needs="jitter")] = ""
    """Whether jitter reorders: `reorder`, `keep`, `clamp`."""
    loss: Annotated[str, _declared("loss", "Loss", "share", "0%", "no loss")] = ""
    """Share of packets lost in each direction."""
    loss_on: Annotated[str, _declared("loss_on", "More", needs="loss")] = ""
    """`both`, `forward`, `reverse`."""
    loss_burst: Annotated[str, _declared("loss_burst", "Bursts", "number", "1", "each by itself")] = ""
    """Mean number of packets lost in a row; empty or 1 is independent loss."""
    limit: Annotated[str, PathField("netem's limit", "More", "number", "10", "100000", "100000")] = ""
    """Packets that netem holds in each direction; empty is 100000."""
    forward_at: Annotated[str, PathField("Data at", "More", choices=NODES)] = ""
    """The node at whose egress the data meet jitter and loss: `router` (empty), where netem treats each packet by itself, or `sender`."""
    reverse_at: Annotated[str, PathField("ACKs at", "More", choices=NODES)] = ""
    """The same of the ACKs."""
    rate: Annotated[str, _declared("rate", "Bottleneck", "rate", "", "no limit")] = "42mbit"
    """Rate of the bottleneck; empty is no limit."""
    buffer: Annotated[str, _declared("buffer", "Bottleneck", "buffer", "1bdp", needs="rate")] = ""
    """Its queue's size; empty is 1bdp. Not read without a rate, as `queue`."""
    queue: Annotated[str, PathField("Queue", "Bottleneck", needs="rate", choices=(Choice("", "a FIFO in bytes"),))] = ""
    """Its queue in tc's words; empty is a FIFO in bytes."""
    rcvbuf: Annotated[str, _declared("rcvbuf", "Hosts", "size", "", "autotuned")] = ""
    """SO_RCVBUF; empty is autotuned."""
    app: Annotated[str, _declared("app", "Hosts", "byterate", "", "as fast as it can")] = ""
    """Rate of the application; empty is as fast as it can."""
    read: Annotated[str, _declared("read", "More", "text", "16KiB/1ms")] = ""
    """The receiver's reads, `16KiB/1ms`."""
    ecn: bool = False
    """Whether both ends negotiate ECN."""
    duration: Annotated[str, _declared("duration", "Hosts", "time", "10s")] = ""
    """How long a trial is; empty is 10s."""
    kernel: Annotated[str, _declared("kernel", "More", "text", "6.1")] = ""
    """Kernel profile with overrides."""
    words: Annotated[dict[str, str], AfterValidator(_parts)] = Field(default_factory=dict)
    """`forward`, `bottleneck`, `reverse` in tc's own words (:mod:`tcpscape.web.texts`): that part of the path, for which no field is read then."""
    changes: tuple[str, ...] = ()
    """Changes of the path on the way, `bottleneck@8s: rate 20mbit`."""
    cca: Annotated[tuple[str, ...], AfterValidator(_labels)] = ("cubic", "bbr")
    """Congestion controls that are compared, as labels: `cubic:hystart=off` becomes `cubic:hystart=0`, each once."""
    links: tuple[str, ...] = ()
    """Further links of the chain, `name home delay 15ms rate 20mbit`."""
    transfers: tuple[str, ...] = ()
    """Connections at random times, `20/s,30kB`."""
    probes: tuple[str, ...] = ()
    """Packets that measure delays, `voice~up`."""
    mix: str = ""
    """Flows that share the bottleneck, `cubic*2,bbr@5s`."""

    @property
    def fixed(self) -> tuple[str, ...]:
        """The fields that the state's words replace."""
        directions = OF_DIRECTIONS[:-2] if {"forward", "reverse"} <= self.words.keys() else ()
        return (*directions, *(("rate", *OF_QUEUE) if "bottleneck" in self.words else ()))

    def conditions(self) -> dict[str, Any]:
        """The path and its flows as conditions of a campaign, as `tcpscape sweep` has them.

        :raises TcpscapeError: words that tc would refuse, a change that cannot be read.
        """
        names = (*OF_DIRECTIONS, "rate", *(OF_QUEUE if self.rate else ()), "duration", "kernel")
        fields: dict[str, Any] = {name: getattr(self, name) for name in names if getattr(self, name)}
        flow = {name: getattr(self, name) for name in ("rcvbuf", "app", "read") if getattr(self, name)}
        fields |= {"flow": flow} if flow else {}
        fields |= {"ecn": True} if self.ecn else {}
        fields |= {"changes": [changes.parse(text) for text in self.changes]} if self.changes else {}
        nodes = {"forward": self.forward_at, "reverse": self.reverse_at}
        return fields | {part: texts.hops(part, self.words[part], nodes.get(part, "")) for part in PARTS if part in self.words}

    @property
    def network(self) -> dict[str, list[str]]:
        """Links, transfers and probes as fields of a campaign; those that are empty left out."""
        return {name: list(entries) for name in NETWORK if (entries := getattr(self, name))}

    def campaign(self, **fields: Any) -> Campaign:
        """The campaign of this path and its congestion controls; `fields`: others of the campaign (`seeds`, `axes`, `zip`).

        :raises TcpscapeError: one line that names the field; also for what is not harmless (:meth:`expect_harmless`), wherever it comes from.
        """
        self.expect_harmless()
        controls = {"mix": self.mix} if self.mix else {"cca": list(self.cca)}
        return Campaign.of({"name": "the explorer", "conditions": self.conditions(), **controls, **self.network, **fields}, OPTIONS)

    def scenario(self, cca: str) -> Scenario:
        """The scenario in which every flow uses `cca`; of a mixture, that mixture. :raises TcpscapeError: one line that names the field."""
        one = self if self.mix else self.model_copy(update={"cca": (cca,)})
        return one.campaign().cases()[0].scenario

    def replace(self, **fields: Any) -> State:
        """The state with other fields."""
        return self.model_copy(update=fields)

    def expect_harmless(self) -> State:
        """Refuses what would read a file of this machine, or say what it is: a state that a page sends may come from anyone's link.

        :raises TcpscapeError: one line that names the field.
        """
        for name in ("cca", "changes", *NETWORK):
            if len(getattr(self, name)) > MOST_ITEMS:
                refuse(name, f"{len(getattr(self, name))} of them", f"choose {MOST_ITEMS} at most")
        mixed = [str(flow["cca"]) for flow in parse_mix(self.mix)] if self.mix else []
        mixed += [str(parse_transfers(text).get("cca", "cubic")) for text in self.transfers]
        for label in (*self.cca, *mixed):
            if spelling.is_class(label) and label not in trusted:
                refuse("cca", f"{shown(label)} is Python code", "name the file on the command line: tcpscape explore SCENARIO")
        if self.kernel.partition(",")[0].strip() == host.NAME:
            refuse("kernel", "host is what this machine is", "choose a profile of `tcpscape kernel list`")
        return self


FIELDS: Mapping[str, PathField] = {
    name: shown for name, known in State.model_fields.items() for shown in known.metadata if isinstance(shown, PathField)
}
"""How the page shows the fields of the path."""
PageState = Annotated[State, AfterValidator(State.expect_harmless)]
"""A state that a page sends, as the type of a request's field."""


def of_page(data: Any) -> State:
    """The state that a page sends. :raises TcpscapeError: one line that names the field."""
    state: State = validate(State, data, "the state")
    return state.expect_harmless()


def of_scenario(scenario: Scenario, cca: Sequence[str] = ()) -> tuple[State, tuple[str, ...]]:
    """The state that says a scenario, and sentences about what it leaves out.

    :param cca: the congestion controls to compare; none: that of the scenario.
    """
    fields, notes = texts.fields(scenario)
    controls = tuple(cca) or tuple(dict.fromkeys(flow.cca for flow in scenario.flows))
    return State(**{"cca": controls, **fields}), notes


def of_campaign(campaign: Campaign) -> tuple[State, tuple[str, ...]]:
    """The state at the first point of a campaign, with its congestion controls."""
    cases = campaign.cases()
    compared = dict.fromkeys(case.cca for case in cases if len({flow.cca for flow in case.scenario.flows}) == 1)
    return of_scenario(cases[0].scenario, () if campaign.mix else tuple(compared))
