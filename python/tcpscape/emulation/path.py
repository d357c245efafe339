"""The emulated path from options: the stages of each direction, and what of them changes.

A value of an option is for both directions, or for one where `up=` or `down=` stands before it: `--rate 20mbit --rate up=2mbit`. Each direction is
a netem (delay, jitter, loss) with the bottleneck behind it, as `sweep` has it for the data; `--up` and `--down` say a direction in tc's own words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any, Literal, cast

from tcpscape import units
from tcpscape.engines import programs
from tcpscape.errors import ScenarioError, refuse, shown
from tcpscape.scenario import changes, path
from tcpscape.scenario.changes import Patch
from tcpscape.scenario.fields import OPTIONS, validate
from tcpscape.scenario.flows import Flow
from tcpscape.scenario.options import expect_owners
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.vocabulary import PathWords
from tcpscape.scenario.words import describe, within

Direction = Literal["up", "down"]
DIRECTIONS: Mapping[Direction, Literal["forward", "reverse"]] = {"up": "forward", "down": "reverse"}
"""As users call the directions → as the engines do: up is from the command to the far end."""
NETEM = ("delay", "jitter", "distribution", "order", "loss")
"""Options that are fields of :class:`tcpscape.scenario.path.Netem`."""
LINK = ("rate", "trace", "buffer", "queue")
"""Options that are fields of a bottleneck."""
BOTH = "both"
EXAMPLE = "write for example 'down@8s: rate 5mbit', or 'both@5s: delay 40ms loss 1%'"
"""What a change on a schedule looks like."""
EXAMPLE_NOW = "write for example 'down: rate 5mbit'"
"""What a change that happens at once looks like."""


@dataclass(frozen=True)
class EmulatedPath:
    """The two directions of a path; every hop is one stage."""

    scenario: Scenario
    """The path with its changes, each hop in tc's words or a link that follows a trace."""
    asked: Scenario
    """The same path as it was asked for, for a description in words."""

    def plan(self, lib: ModuleType, *, offload: bool = True, flows: Sequence[Flow] = (), duration: int | None = None) -> dict[str, Any]:
        """The path as the engines read a plan, checked; every hop is a router's.

        :param flows: those of ours that run on it, for `duration` ns.
        :raises ScenarioError: names the part that is wrong.
        """
        update = {"offload": offload, "flows": tuple(flows), **({"duration": duration} if duration else {})}
        with _named_as_typed():
            return programs.routed(lib, self.scenario.model_copy(update=update))

    def patches(self, where: str, values: Mapping[str, Any], hop: int | None = None) -> list[dict[str, Any]]:
        """New values for a path that runs: for each stage that they are of, its place and its patch. `hop`: this stage alone, from 0.

        :raises ScenarioError: the direction has no such stage, or a value is wrong.
        """
        change = {"where": where, "set": values} | ({} if hop is None else {"hop": hop})
        stages = {name: getattr(self.scenario, part) for name, part in DIRECTIONS.items()}
        return [
            {"direction": each["where"], "stage": each["hop"], "depth": 0, "set": validate(Patch, each["set"], "change").plan()}
            for each in staged(change, stages)
        ]


def build(words: PathWords) -> EmulatedPath:
    """The path that was typed. :raises ScenarioError: one line that names the option that is wrong."""
    hops = {name: _hops(name, words) for name in DIRECTIONS}
    if not any(hops.values()):
        refuse("path", "it is empty: no delay, no rate, no loss", "give it one, for example --delay 25ms")
    with _named_as_typed():
        asked = Scenario.of({"name": "emulated", **{DIRECTIONS[name]: of for name, of in hops.items()}}, OPTIONS)
        rtt_ns = asked.rtt_ns
    plain: dict[str, Any] = {DIRECTIONS[name]: _stages(getattr(asked, DIRECTIONS[name]), name, rtt_ns) for name in DIRECTIONS}
    scenario = asked.model_copy(update=plain)
    typed = [changes.parse(text, EXAMPLE) for text in words.change]
    stages = {name: plain[part] for name, part in DIRECTIONS.items()}
    found = [each for change in typed for each in staged(change, stages)]
    if found:
        checked = Scenario.of({"forward": "netem delay 1ms", "changes": found}, OPTIONS).changes
        scenario = scenario.model_copy(update={"changes": checked})
        asked = asked.model_copy(update={"changes": checked})
    return EmulatedPath(scenario, asked)


@contextmanager
def _named_as_typed() -> Iterator[None]:
    """What is wrong in this block names a direction as the user does."""
    try:
        yield
    except ScenarioError as e:
        typed = next((name for name, known in DIRECTIONS.items() if known == e.field), e.field)
        refuse(typed, e.problem, e.fix, type(e))


def parse_change(text: str) -> dict[str, Any]:
    """The fields `where` and `set` of `down: rate 5mbit`, a change that happens at once.

    :raises ScenarioError: the text does not follow the grammar.
    """
    where, colon, values = text.partition(":")
    if not colon or "@" in where:
        refuse("change", f"{shown(text)} is not WHERE: NAME VALUE", EXAMPLE_NOW)
    fields = changes.parse(f"{where}@0s:{values}", EXAMPLE_NOW)
    del fields["at"]
    return fields


def staged(change: Mapping[str, Any], stages: Mapping[Direction, Sequence[path.Hop]]) -> list[dict[str, Any]]:
    """A change of `up`, `down` or `both` as changes of single stages: each value belongs to the stage that has such a thing.

    :raises ScenarioError: no stage of the direction has it.
    """
    where = change["where"]
    if where not in (*DIRECTIONS, BOTH):
        refuse("change", f"{shown(where)} is no direction", f"choose up, down or both; {EXAMPLE}")
    result = []
    for name in [cast("Direction", where)] if where in DIRECTIONS else list(DIRECTIONS):
        by_stage: dict[int, dict[str, Any]] = {}
        for field, value in change["set"].items():
            stage = change["hop"] if "hop" in change else _stage_with(field, stages[name], name)
            by_stage.setdefault(stage, {})[field] = value
        common = {k: change[k] for k in ("at",) if k in change}
        result += [{**common, "where": DIRECTIONS[name], "hop": stage, "set": values} for stage, values in by_stage.items()]
    return result


def _stage_with(field: str, stages: Sequence[path.Hop], name: Direction) -> int:
    """The number of the stage whose value a change gives."""
    has = [_can_change(hop) for hop in stages]
    found = [i for i, fields in enumerate(has) if field in fields]
    if not found:
        option = {"burst": "rate", "limit": "rate", "outage": "rate"}.get(field, field)
        refuse("change", f"the way {name} has no {field} that could change", f"give it a value from the start, for example with --{option}")
    return found[-1]


def _can_change(hop: path.Hop) -> tuple[str, ...]:
    """What of a stage changes while it runs."""
    if isinstance(hop, path.TracedLink):
        return ("burst", "limit", "outage")
    outer = describe(cast("str", hop))[0]
    delays = ("delay", "jitter") if outer.delay_ns or outer.jitter_ns else ()
    if outer.kind == "netem":
        return (*delays, "loss", "limit", "outage", *(("rate",) if outer.rate_bps else ()))
    if outer.kind == "jitter":
        return (*delays, "limit", "outage")
    return ("rate", "burst", "limit", "outage") if outer.rate_bps else ("limit", "outage")


def _hops(name: Direction, words: PathWords) -> list[Any]:
    """The hops of one direction as a scenario has them."""
    own: Sequence[str] = getattr(words, name)
    if own:
        return list(own)
    typed = {field: _of_direction(field, value, name) for field, value in asdict(words).items() if field in (*NETEM, *LINK)}
    netem: dict[str, Any] = {field: typed[field] for field in NETEM if typed[field] is not None}
    if words.rtt is not None:
        if words.delay:
            refuse("rtt", "it is said by --delay too, which is one way", "say one of the two")
        rtt = units.parse_time(words.rtt, "rtt")
        netem["delay"] = units.format_time(rtt // 2 if name == "up" else rtt - rtt // 2)
    expect_owners(netem, {"jitter"} if words.jitter else ())
    if "jitter" not in netem:
        netem = {k: v for k, v in netem.items() if k not in ("distribution", "order")}
    link = {field: typed[field] for field in LINK if typed[field] is not None}
    if "rate" in link and "trace" in link:
        refuse("trace", f"the way {name} has a --rate too", "a trace has its own rate: say one of the two")
    if not {"rate", "trace"} & link.keys():
        _refuse_without_link(link, words)
        link = {}
    if "trace" in link and "queue" in link:
        refuse("queue", "a link that follows a trace has a FIFO in bytes", "leave it out, and choose the size with --buffer")
    return [*([{"at": "router", **netem}] if netem else []), *([link] if link else [])]


def _refuse_without_link(link: Mapping[str, Any], words: PathWords) -> None:
    for field in link:
        if not words.rate and not words.trace:
            refuse(field, "there is no bottleneck that it could belong to", "give its rate too, for example --rate 10mbit")


def _of_direction(field: str, values: Sequence[str], name: Direction) -> str | None:
    """The value of an option for one direction: its own, or the one for both."""
    by_direction: dict[str, str] = {}
    for text in values:
        before, equals, after = text.partition("=")
        where, value = (before.strip(), after.strip()) if equals and before.strip() in DIRECTIONS else (BOTH, text.strip())
        if where in by_direction:
            refuse(field, f"it is given twice for {'both directions' if where == BOTH else where}", f"say it once, or --{field} up=… and down=…")
        if not value:
            refuse(field, f"{shown(text)} has no value", f"write for example --{field} {where}=VALUE")
        by_direction[where] = value
    return by_direction.get(name, by_direction.get(BOTH))


def _stages(hops: Sequence[path.Hop], name: Direction, rtt_ns: int) -> tuple[path.Hop, ...]:
    """The hops with one stage in each: tc's words, or a link that follows a trace."""
    with within(name):
        return tuple(stage for hop in hops for stage in ([hop] if isinstance(hop, path.TracedLink) else path.words(hop, rtt_ns)))
