"""A scenario as the texts of a state: fields where they can say a path, tc's words where they cannot, and a sentence for what neither can.

tc's words are read by the engine's own parser (`scenario.words.parameters`); here its parameters become the fields of :class:`Netem` and of
:class:`Link`. A text of the state's `words` is the hops of one part of the path, `then` between them; `none` is no hop. Its first hop stands at the
node that `forward_at` or `reverse_at` names, as the fields do, where it is a netem that has fields; anything else stands at the host's egress, as
for `tcpscape run`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tcpscape import units
from tcpscape.errors import TcpscapeError, refuse
from tcpscape.scenario import grammar, path
from tcpscape.scenario.changes import Change
from tcpscape.scenario.fields import validate
from tcpscape.scenario.flows import CHUNK, READ_SIZE, Flow
from tcpscape.scenario.options import Conditions
from tcpscape.scenario.path import TBF_BURST, Hop, Link, Netem
from tcpscape.scenario.scenario import PARTS, TIMER_SLACK, Kernel, Part, Scenario
from tcpscape.scenario.words import parameters, within
from tcpscape.web import entries

THEN, NONE = " then ", "none"
"""Between the hops of a part, and a part without hops."""
CERTAIN = 0xFFFF_FFFF
"""netem's scale of probabilities."""
TAU = 50_000_000
"""Time constant of a jitter whose words name none, ns."""
NETEM = frozenset(
    (
        "kind",
        "limit",
        "delay",
        "jitter",
        "delay_correlation",
        "distribution",
        "loss",
        "ecn",
        "duplicate",
        "corrupt",
        "reorder",
        "gap",
        "rate",
        "packet_overhead",
        "cell_size",
        "cell_overhead",
    )
)
"""Parameters of netem that are read here; words with another one (`slot`) have no fields."""
WITHOUT_FIELDS = ("ecn", "packet_overhead", "cell_size", "cell_overhead")
"""Parameters of netem that fields do not have."""


def hops(part: Part, text: str, node: str) -> list[Any]:
    """The hops that a text of the state's `words` says, as plain values of a scenario.

    :raises WordsError: names the part and the word that tc would refuse.
    """
    texts = [] if text.strip() in ("", NONE) else [" ".join(words.split()) for words in text.split(THEN)]
    with within(part):
        parsed = [parameters(words) for words in texts]
    if part == "bottleneck":
        return [_link(queue) or words for words, queue in zip(texts, parsed, strict=True)]
    count, netem = _netem(parsed)
    first = [{"at": node or "router", **netem.model_dump(mode="json", exclude_defaults=True)}] if netem else []
    return [*first, *texts[count:]]


def words(scenario: Scenario, part: Part) -> str:
    """tc's words of a part of a path, as :func:`hops` reads them."""
    texts = [text for hop in getattr(scenario, part) for text in path.words(hop, scenario.rtt_ns)]
    return THEN.join(texts) or NONE


def fields(scenario: Scenario) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The fields of a state that say this scenario but its congestion control, and sentences about what they leave out."""
    _expect_known(scenario)
    notes: list[str] = []
    directions, link = _directions(scenario), _bottleneck(scenario)
    if any(isinstance(hop, path.TracedLink) for part in PARTS for hop in getattr(scenario, part)):
        notes.append("the trace of the link left out: it has its mean rate here")
    in_words = {**directions.pop("words", {}), **link.pop("words", {})}
    said = directions | link | _flows(scenario, notes) | ({"words": in_words} if in_words else {})
    standard = {name: field.default for name, field in Scenario.model_fields.items()}
    said |= {"duration": units.format_time(scenario.duration)} if scenario.duration != standard["duration"] else {}
    said |= {"kernel": kernel(scenario.kernel)} if scenario.kernel != Kernel() else {}
    said |= {"ecn": True} if scenario.ecn else {}
    texts = [_change(change) for change in scenario.changes]
    said |= {name: items for name, items in _network(scenario).items() if items}
    said |= {"changes": tuple(text for text in texts if text)} if texts else {}
    if unsaid := sum(not text for text in texts):
        notes.append(f"{units.counted(unsaid, 'change')} on the way left out: only steps at a time can be said here")
    for name, value in (("mtu", scenario.mtu), ("offload", scenario.offload), ("timer_slack", scenario.timer_slack)):
        if value != (TIMER_SLACK if name == "timer_slack" else standard[name]):
            notes.append(f"{name} left out: it stays at its default here")
    return said, tuple(notes)


def _expect_known(scenario: Scenario) -> None:
    """Refuses what no field and no word of a state can say. :raises ScenarioError: one line that names it, and the command that runs it."""
    kinds: dict[str, Sequence[object]] = {name: [text for text in items if text is None] for name, items in _network(scenario).items()}
    kinds["requests or pauses of applications"] = [flow for flow in scenario.flows if flow.app.response or flow.app.on]
    kinds["access links"] = [flow for flow in scenario.flows if flow.access and _access(flow) is None]
    kinds["receivers that misbehave"] = [flow for flow in scenario.flows if flow.misbehaves]
    if unsaid := [name for name, items in kinds.items() if items]:
        problem = f"{scenario.name} has {' and '.join(unsaid)}, which the explorer cannot show"
        refuse("scenario", problem, "run it with `tcpscape run` or `tcpscape sweep`, and see it with --report")


def _network(scenario: Scenario) -> dict[str, tuple[str | None, ...]]:
    """The links, transfers and probes as the state has them; None for what no text says."""
    return {
        "links": tuple(map(entries.link, scenario.links)),
        "transfers": tuple(map(entries.transfers, scenario.transfers)),
        "probes": tuple(map(entries.probe, scenario.probes)),
    }


def kernel(of: Kernel) -> str:
    """`6.12,rmem_max=4MiB`."""
    settings = of.model_dump(mode="json", exclude_defaults=True, exclude={"profile"})
    return ",".join([of.profile, *(f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in settings.items())])


def _netem(queues: Sequence[Mapping[str, Any]]) -> tuple[int, Netem | None]:
    """How many of these queues in a row, from the first, are one netem that has fields, and that; (0, None) where the first is none."""
    count, said = _fields_of_netem(queues)
    if not count:
        return 0, None
    try:
        netem: Netem = validate(Netem, said, "the words")
        return count, netem
    except TcpscapeError:  # tc takes words that make no sense as fields, such as jitter without a delay
        return 0, None


def _fields_of_netem(queues: Sequence[Mapping[str, Any]]) -> tuple[int, dict[str, Any]]:
    """How many of these queues in a row are one netem, and its fields; (0, {}) where the first has parameters that are none."""
    first: Mapping[str, Any] = queues[0] if queues else {"kind": ""}
    if first["kind"] == "jitter":
        return 1, _jitter(first)
    if first["kind"] != "netem" or set(first) - NETEM or any(first.get(name) for name in WITHOUT_FIELDS):
        return 0, {}
    if (loss := _loss(first["loss"])) is None:
        return 0, {}
    said: dict[str, Any] = {"limit": first["limit"], **loss}
    said |= {name: _percent(first[name]) for name in ("duplicate", "corrupt", "reorder") if first.get(name)}
    said |= {"gap": first["gap"]} if first["gap"] else {}
    said |= {"rate": units.format_rate(first["rate"])} if first.get("rate") else {}
    if not first["delay"] and len(queues) > 1 and queues[1]["kind"] == "jitter" and queues[1]["limit"] == first["limit"]:
        return 2, said | _jitter(queues[1])
    return 1, said | _delay(first) | ({"correlation": _percent(first["delay_correlation"])} if first.get("delay_correlation") else {})


def _delay(queue: Mapping[str, Any]) -> dict[str, Any]:
    said = {"delay": units.format_time(queue["delay"])} if queue["delay"] else {}
    return said | ({"jitter": units.format_time(queue["jitter"]), "distribution": queue["distribution"]} if queue["jitter"] else {})


def _jitter(queue: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the queue `jitter`, which is a netem that keeps the order."""
    said = _delay(queue) | {"order": queue["order"], "limit": queue["limit"]}
    return said | ({"tau": units.format_time(queue["tau"])} if queue["order"] == "correlated" and queue["tau"] != TAU else {})


def _loss(model: Mapping[str, Any]) -> dict[str, Any] | None:
    """Share and bursts of losses; None where fields cannot say them."""
    if model["model"] == "random":
        return None if model["correlation"] else {"loss": _percent(model["p"])} if model["p"] else {}
    if model["model"] != "gemodel" or model["h"] or model["k1"] or not model["p"] or model["r"] in (0, CERTAIN):
        return None
    burst = _shortest(CERTAIN / model["r"], lambda value: 1 / value, model["r"])
    share = _shortest(model["p"] / (model["p"] + model["r"]), lambda value: value / (1 - value) / burst if value < 1 else math.inf, model["p"])
    return {"loss": units.format_percent(share), "loss_burst": f"{burst:.10g}"}


def _percent(probability: int) -> str:
    """A probability of netem's in percent, as a person wrote it."""
    return units.format_percent(_shortest(probability / CERTAIN, float, probability))


def _shortest(value: float, probability: Callable[[float], float], read: int) -> float:
    """The number nearest to `value` with the fewest digits, in percent, for whose `probability` netem reads the number `read`."""
    for digits in range(1, 18):
        near = float(f"{100 * value:.{digits}g}") / 100
        if 0 <= (chance := probability(near)) <= 1 and round(units.parse_percent(units.format_percent(chance)) * CERTAIN) == read:
            return near
    return value


def _link(queue: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fields of a bottleneck that words say; None where it is no token bucket with a FIFO."""
    if queue["kind"] != "tbf" or set(queue) - {"kind", "rate", "burst", "limit"} or queue["burst"] != TBF_BURST:
        return None
    return {"rate": units.format_rate(queue["rate"]), "buffer": units.format_size(queue["limit"])}


def _directions(scenario: Scenario) -> dict[str, Any]:
    """What the state says of both directions: fields, or words where they differ in what fields have once."""
    forward, reverse = _only(scenario, "forward"), _only(scenario, "reverse")
    said = _both(forward, reverse) if forward and reverse else None
    if said is not None:
        return said
    nodes = {f"{part}_at": hop.at for part, hop in (("forward", forward), ("reverse", reverse)) if hop and hop.at != "router"}
    delays = sum(hop.delay for hop in (forward, reverse) if hop)
    return {"words": {part: words(scenario, part) for part in PARTS if part != "bottleneck"}, "rtt": units.format_time(delays or 50_000_000), **nodes}


def _only(scenario: Scenario, part: Part) -> Netem | None:
    """The only hop of a part, where that is a netem that has fields; words stand where the host has them."""
    every: tuple[Hop, ...] = getattr(scenario, part)
    texts = [hop for hop in every if isinstance(hop, str)]
    if len(every) == 1 and isinstance(every[0], Netem):
        return every[0]
    if not every or len(texts) < len(every):
        return None
    count, netem = _netem([parameters(text) for text in texts])
    return netem if netem and count == len(texts) else None


def _both(forward: Netem, reverse: Netem) -> dict[str, Any] | None:
    """The fields of two directions; None where they cannot say them."""
    standard = Netem()
    unsaid = ("correlation", "tau", "floor", "duplicate", "corrupt", "reorder", "gap", "rate")
    if any(getattr(hop, name) != getattr(standard, name) for hop in (forward, reverse) for name in unsaid):
        return None
    if forward.delay != reverse.delay or not forward.delay or forward.limit != reverse.limit:
        return None
    jitter, loss = _once(forward, reverse, ("jitter", "distribution", "order")), _once(forward, reverse, ("loss", "loss_burst"))
    if jitter is None or loss is None:
        return None
    said = {"rtt": units.format_time(forward.delay + reverse.delay), **jitter, **loss}
    said |= {"limit": str(forward.limit)} if forward.limit != standard.limit else {}
    return said | {f"{part}_at": hop.at for part, hop in (("forward", forward), ("reverse", reverse)) if hop.at != "router"}


def _once(forward: Netem, reverse: Netem, names: Sequence[str]) -> dict[str, Any] | None:
    """The fields `names` of an impairment (the first one is its size) of both directions, said once; None where the two differ."""
    size = names[0]
    having = {part: hop for part, hop in (("forward", forward), ("reverse", reverse)) if getattr(hop, size)}
    if not having:
        return {}
    first = next(iter(having.values()))
    if any(getattr(hop, name) != getattr(first, name) for hop in having.values() for name in names):
        return None
    standard = Conditions.model_fields
    plain = first.model_dump(mode="json")
    said = {name: _text(plain[name]) for name in names if name == size or getattr(first, name) != standard[name].default}
    return said | ({f"{size}_on": next(iter(having))} if len(having) == 1 else {})


def _text(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else "keep" if value == "correlated" else str(value)


def _bottleneck(scenario: Scenario) -> dict[str, Any]:
    """What the state says of the bottleneck: `rate` (empty without one), `buffer` and `queue`, or words."""
    if not scenario.bottleneck:
        return {"rate": ""}
    hop = scenario.bottleneck[0]
    if isinstance(hop, str) and (link := _link(parameters(hop))):
        hop = Link.model_validate(link)
    if len(scenario.bottleneck) > 1 or not isinstance(hop, Link) or hop.burst != TBF_BURST:
        return {"rate": "", "words": {"bottleneck": words(scenario, "bottleneck")}}
    return {"rate": units.format_rate(hop.rate), "buffer": hop.buffer or "", "queue": hop.queue or ""}


def _flows(scenario: Scenario, notes: list[str]) -> dict[str, Any]:
    """What the state says of the flows; the congestion control of a single one is the caller's."""
    first = scenario.flows[0]
    single = len(scenario.flows) == 1 and _mixed(first) == first.cca
    said: dict[str, Any] = {} if single else {"mix": ",".join(map(_mixed, scenario.flows))}
    said |= {"rcvbuf": units.format_size(first.rcvbuf)} if first.rcvbuf else {}
    said |= {"app": units.format_byte_rate(first.app.rate)} if first.app.rate else {}
    if first.read.delay or first.read.size != READ_SIZE:
        said["read"] = f"{units.format_size(first.read.size)}/{units.format_time(first.read.delay)}"
    others = {"listener": None, "player": None, "sndbuf": 0, "nodelay": True}
    left = [name for name, default in others.items() if any(getattr(flow, name) != default for flow in scenario.flows)]
    left += [f"app.{name}" for name, default in (("chunk", CHUNK), ("size", 0)) if any(getattr(flow.app, name) != default for flow in scenario.flows)]
    if any((flow.rcvbuf, flow.app, flow.read) != (first.rcvbuf, first.app, first.read) for flow in scenario.flows):
        notes.append("the flows differ in their applications or buffers: all have those of the first one here")
    if left:
        notes.append(f"of the flows left out: {', '.join(left)}")
    return said


def _mixed(flow: Flow) -> str:
    """A flow as `--mix` has it: `cubic*2~up@5s-8s`."""
    until = f"-{units.format_time(flow.stop)}" if flow.stop else ""
    begin = f"@{units.format_time(flow.start)}{until}" if flow.start or flow.stop else ""
    where = f"~{flow.direction}" if flow.direction == "up" else ""
    where += f"~rtt={units.format_time(flow.rtt)}" if flow.rtt is not None else ""
    where += f"~access={_access(flow)}" if flow.access else ""
    where += "".join(f"~{name}={router}" for name, router in (("enter", flow.enter), ("leave", flow.leave)) if router)
    return f"{flow.cca}{f'*{flow.count}' if flow.count > 1 else ''}{where}{begin}"


def _access(flow: Flow) -> str | None:
    """A flow's access link as `--mix` has it: `10ms+20mbit`; None where it has none, or more than that."""
    return grammar.access(flow.access.model_dump(mode="json", exclude_defaults=True)) if flow.access else None


def _change(change: Change) -> str:
    """A change as `--change` has it: `bottleneck@8s: rate 20mbit`; empty where it is no step of a hop's own queue."""
    if change.at is None or change.set is None or change.child:
        return ""
    values = change.set.model_dump(mode="json", exclude_none=True)
    texts = " ".join(f"{name} {'on' if value is True else 'off' if value is False else value}" for name, value in values.items())
    return f"{change.where}{f'.{change.hop}' if change.hop else ''}@{units.format_time(change.at)}: {texts}"
