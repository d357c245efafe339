"""What an advice assumes of a path that its user did not say, and what the decision would be if it were otherwise.

The buffer of a bottleneck decides what CUBIC and BBR carry (docs/models/methods/advice.md), and few know theirs: without `--buffer` it is one
bandwidth-delay product, and the congestion controls run with a quarter and with four of it, too. Where one of these changes the choice, what lies
between tells where. The receiver's buffer is that of a Linux profile; where the path could use a larger one, they run with a smaller and a larger
one. Without `--rate` nothing but the hosts' buffers limits a flow; they run with two usual bottlenecks, too. Without `--loss` no packet is lost
by chance; they run with 0.1 % on both ways, too, which costs CUBIC most of its rate on a long path and BBR little. Loss without `--loss-on` is
on both ways, as ping measures it: they run with it on the data alone, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tcpscape import units
from tcpscape.controls.deployment import DEFAULT
from tcpscape.findings.advice.choice import Decision
from tcpscape.scenario.options import Conditions

Field = Literal["rate", "buffer", "rcvbuf", "loss", "loss_on"]
"""A field of the path that is assumed where it is not said."""
ASSUMED: dict[Field, str] = {"rate": "none", "buffer": "1bdp", "rcvbuf": "profile", "loss": "0%", "loss_on": "both"}
"""Field → what is assumed of it."""
INSTEAD: dict[Field, tuple[tuple[str, str], ...]] = {
    "rate": (("10mbit", ""), ("100mbit", "")),
    "buffer": (("0.25bdp", "0.5bdp"), ("4bdp", "2bdp")),
    "rcvbuf": (("1MiB", ""), ("32MiB", "")),
    "loss": (("0.1%", "0.01%"),),
    "loss_on": (("forward", ""),),
}
"""Field → what it may be instead, each with what lies between it and what is assumed; empty for nothing."""
MOST = 3
"""Congestion controls that run besides the choice and Linux's default: the best of the ranking."""
Outcome = Literal["same", "other", "alike", "undecided"]
"""The choice under another assumption: the same; another one, which is better; no worthwhile difference; too few runs to tell."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """The decision under another assumption."""

    value: str
    """What the field is instead, as it is written."""
    decision: Decision
    """Which congestion control to use then."""
    outcome: Outcome
    """How the choice compares with that of the path as it is assumed."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """One field that is assumed."""

    field: Field
    """Its name."""
    alternatives: tuple[Alternative, ...]
    """The decisions where it is otherwise: of a buffer the smallest first."""

    @property
    def changes(self) -> bool:
        """Whether the choice depends on it."""
        return any(a.outcome != "same" for a in self.alternatives)


def assumed(path: Conditions) -> tuple[Field, ...]:
    """The fields that are assumed on this path."""
    fields: list[Field] = [] if path.rate else ["rate"]
    if path.rate and path.buffer is None and path.queue is None:
        fields.append("buffer")
    if path.rate and path.kernel.tcp_rmem_max is None and not path.flow.rcvbuf and _may_fill(path, path.rate):
        fields.append("rcvbuf")
    if not path.loss and "loss" not in path.model_fields_set:
        fields.append("loss")
    elif path.loss and path.loss_on == ASSUMED["loss_on"]:
        fields.append("loss_on")
    return tuple(fields)


def _may_fill(path: Conditions, rate: int) -> bool:
    """Whether a window could be larger than the smallest buffer that is tried allows: of a buffer half is window."""
    queue = units.buffer_bytes(path.buffer or ASSUMED["buffer"], rate, path.rtt)
    return 2 * (rate * path.rtt / (8 * units.NS_PER_S) + queue) > units.parse_size(INSTEAD["rcvbuf"][0][0])


def _with(path: Conditions, field: Field, value: str) -> Conditions:
    """The path whose field is otherwise."""
    if field == "rcvbuf":
        return path.model_copy(update={"kernel": path.kernel.model_copy(update={"tcp_rmem_max": units.parse_size(value)})})
    if field == "loss":
        return path.model_copy(update={"loss": units.parse_percent(value), "loss_on": ASSUMED["loss_on"], "loss_burst": 1.0})
    return path.model_copy(update={field: units.parse_rate(value, field) if field == "rate" else value})


def otherwise(path: Conditions, field: Field, choice: str, decide: Callable[[Conditions], Decision | None]) -> Assumption:
    """The decisions where a field is otherwise than assumed.

    :param choice: the congestion control that is chosen on the path as it is assumed.
    :param decide: the decision on a path; None where the engine cannot run it.
    """

    def tried(value: str) -> list[Alternative]:
        decision = decide(_with(path, field, value))
        return [Alternative(value, decision, _outcome(decision, choice))] if decision else []

    found: list[Alternative] = []
    for end, between in INSTEAD[field]:
        far = tried(end)
        near = tried(between) if between and any(one.outcome != "same" for one in far) else []
        found += [*far, *near] if not found else [*near, *far]
    return Assumption(field, tuple(found))


def _outcome(decision: Decision, choice: str) -> Outcome:
    """How a decision compares with the choice: Linux's default is kept where nothing is better, so keeping it says that nothing is."""
    if decision.choice == choice:
        return "same"
    if decision.verdict == "undecided":
        return "undecided"
    return "alike" if decision.choice == DEFAULT and decision.verdict == "as good" else "other"
