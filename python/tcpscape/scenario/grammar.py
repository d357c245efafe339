"""What is typed in one word: flows (`--mix`), probes (`--probe`), transfers (`--transfers`) and links (`--link`), as the fields that they stand for.

    CCA[*COUNT][~FIELD…][@START[-STOP]]          cubic*2~rtt=20ms,bbr~up@5s-8s
    PROBE[~FIELD…][@START[-STOP]]                voice~up, ping~interval=100ms
    RATE[,SIZE][~FIELD…][@START[-STOP]]          20/s,30kB~up~cca=bbr
    NAME VALUE …                                 delay 5ms rate 50mbit queue fq_codel

A field behind `~` is `up`, `down`, or NAME=VALUE: `rtt`, `access` (a delay, a rate or both, `10ms+20mbit`), `enter`, `leave`. Values are checked
where they become fields of a scenario; what does not follow the grammar is refused here, with the part that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tcpscape import units
from tcpscape.errors import UnitError, refuse, shown

WAYS = ("up", "down")
"""Fields of an endpoint that are words by themselves."""
PLACE = ("rtt", "access", "enter", "leave")
"""Fields of an endpoint with a value."""
OF_PROBES = ("name", "kind", "size", "interval", "least", "most")
"""Further fields of a probe."""
OF_TRANSFERS = ("cca", "shape", "most")
"""Further fields of transfers."""
OF_LINKS = ("name", "between", "delay", "jitter", "loss", "rate", "up_rate", "buffer", "queue")
"""Words of a link that a value follows."""
BETWEEN = ".."
"""Between the least and the greatest RTT of flows that share an entry of a mixture."""
MOST_SPREAD = 1000
"""Most flows of an entry with a range of RTTs, each of which has an access link of its own."""
LINK_EXAMPLE = "write for example 'delay 5ms rate 50mbit'"

_TAIL = r"(?P<fields>(?:~[^~@]*)*)(?:@(?P<start>[^-@\s]+)(?:-(?P<stop>[^@\s]+))?)?"
MIX = re.compile(rf"(?P<cca>(?:~/)?[^:*@~\s]+(?::[^*@~\s]+)?)(?:\*(?P<count>[0-9]{{1,9}}))?{_TAIL}")
"""An entry of a mixture; the page reads it by the same pattern."""
_HEADED = re.compile(rf"(?P<head>[^~@\s]+){_TAIL}")


def parse_mix(text: str) -> list[dict[str, Any]]:
    """The fields of the flows that `CCA[*COUNT][~FIELD…][@START[-STOP]],…` describes, as in `cubic*2~rtt=20ms,bbr~up@5s-8s`.

    Flows with a range of RTTs (`cubic*4~rtt=20ms..160ms`) are an entry each, with equal ratios between their RTTs.

    :raises ScenarioError: names the part that does not follow the grammar.
    """
    flows = []
    for part in text.split(","):
        match = MIX.fullmatch(part.strip())
        if not match:
            refuse("mix", f"{shown(part.strip())} is not CCA[*COUNT][~FIELD][@START[-STOP]]", "write for example cubic*2~rtt=20ms,bbr@5s")
        flow = {"cca": match["cca"], "count": int(match["count"] or 1), **_tail(match, "mix", PLACE)}
        flows += _spread(flow, part.strip())
    return flows


def parse_probe(text: str) -> dict[str, Any]:
    """The fields of the probe that `PROBE[~FIELD…][@START[-STOP]]` describes: a preset and what differs from it.

    :raises ScenarioError: names the part that does not follow the grammar.
    """
    match = _HEADED.fullmatch(text.strip())
    if not match:
        refuse("probe", f"{shown(text)} is not PROBE[~FIELD][@START[-STOP]]", "write for example voice, or ping~interval=100ms")
    return {"preset": match["head"], **_tail(match, "probe", (*PLACE, *OF_PROBES))}


def parse_transfers(text: str) -> dict[str, Any]:
    """The fields of the transfers that `RATE[,SIZE][~FIELD…][@START[-STOP]]` describes, as in `20/s,30kB~up`.

    :raises ScenarioError: names the part that does not follow the grammar.
    """
    match = _HEADED.fullmatch(text.strip())
    head = match["head"].split(",") if match else []
    if not match or not 1 <= len(head) <= 2 or not all(head):
        refuse("transfers", f"{shown(text)} is not RATE,SIZE[~FIELD][@START[-STOP]]", "write for example 20/s,30kB or 5/s,100kB~up")
    sizes = {"size": head[1]} if len(head) > 1 else {}
    return {"rate": head[0], **sizes, **_tail(match, "transfers", (*PLACE, *OF_TRANSFERS))}


def parse_link(text: str) -> dict[str, Any]:
    """The fields of the link that `NAME VALUE …` describes; a value goes on to the next name, as tc's words of a `queue` do.

    :raises ScenarioError: names the word that does not follow the grammar.
    """
    values: dict[str, str] = {}
    name = ""
    for word in text.split():
        if word in OF_LINKS and not (name and not values[name]):
            if word in values:
                refuse("link", f"{shown(word)} is there twice", "say it once")
            name, values[word] = word, ""
        elif not name:
            refuse("link", f"{shown(word)} is no field of a link", f"choose {', '.join(OF_LINKS)}; {LINK_EXAMPLE}")
        else:
            values[name] = f"{values[name]} {word}".strip()
    if not values or not all(values.values()):
        without = next((name for name, value in values.items() if not value), "")
        refuse("link", f"{shown(without)} has no value" if without else "it is empty", LINK_EXAMPLE)
    if "between" not in values:
        return values
    ends = [end.strip() for end in values["between"].split(",")]
    if len(ends) != 2 or not all(ends):
        refuse("link", f"between {shown(values['between'])} is not two routers", "name both, for example 'between r1,r2 delay 5ms'")
    return {**values, "between": ends}


def _tail(match: re.Match[str], field: str, names: Sequence[str]) -> dict[str, Any]:
    """The fields behind the head: those of `~`, and the times."""
    fields: dict[str, Any] = {}
    for text in match["fields"].split("~")[1:]:
        name, _, value = text.partition("=")
        added = _way(name, text, field) if name in WAYS else {name: _value(name, value.strip(), match[0], field, names)}
        if twice := fields.keys() & added.keys():
            refuse(field, f"{shown(match[0])} says {min(twice)} twice", "say it once")
        fields |= added
    if match["stop"] and not units.parse_time(match["stop"], field):
        refuse(field, f"{shown(match[0])} stops at 0, before it starts", "write a later time, or leave it out: then it stops at the end")
    return fields | {name: match[name] for name in ("start", "stop") if match[name]}


def _way(name: str, text: str, field: str) -> dict[str, Any]:
    if name != text:
        refuse(field, f"{shown(f'~{text}')} has a value", f"write ~{name}")
    return {"direction": name}


def _value(name: str, value: str, whole: str, field: str, names: Sequence[str]) -> Any:
    if name not in names:
        refuse(field, f"{shown(f'~{name}')} in {shown(whole)} is no field", f"choose {', '.join((*WAYS, *names))}; write for example ~rtt=20ms")
    if not value:
        refuse(field, f"{shown(f'~{name}')} in {shown(whole)} has no value", f"write ~{name}=VALUE")
    return _access(value, field) if name == "access" else value


def _access(text: str, field: str) -> Mapping[str, str]:
    """The fields of an access link, `10ms`, `20mbit` or `10ms+20mbit`: the same each way."""
    fields: dict[str, str] = {}
    for item in text.split("+"):
        for name, parse in (("delay", units.parse_time), ("rate", units.parse_rate)):
            try:
                parse(item, name)
            except UnitError:
                continue
            if name in fields:
                refuse(field, f"{shown(f'~access={text}')} has two values for its {name}", "write for example ~access=10ms+20mbit")
            fields[name] = item
            break
        else:
            refuse(field, f"{shown(item)} in {shown(f'~access={text}')} is no delay and no rate", "write for example ~access=10ms+20mbit")
    return fields


def access(fields: Mapping[str, Any]) -> str | None:
    """An access link as a mixture says it, from what it is written as; None where it has more than a delay and a rate."""
    return "+".join(str(fields[name]) for name in ("delay", "rate") if name in fields) if fields and fields.keys() <= {"delay", "rate"} else None


def _spread(flow: dict[str, Any], part: str) -> list[dict[str, Any]]:
    """A flow with one RTT, or an entry for each of its `count` flows where it has a range of them."""
    least, between, most = str(flow.get("rtt", "")).partition(BETWEEN)
    if not between:
        return [flow]
    low, high, count = units.parse_time(least, "rtt"), units.parse_time(most, "rtt"), flow["count"]
    if count > MOST_SPREAD:
        refuse("mix", f"{shown(part)} has a range of RTTs and {count} flows", f"write at most {MOST_SPREAD}, or one RTT")
    if count < 2 or not 0 < low < high:
        refuse("mix", f"{shown(part)} has a range of RTTs", "give it two flows or more, and the shorter RTT first: cubic*4~rtt=20ms..160ms")
    rtts = [round(low * (high / low) ** (i / (count - 1)) / 1000) * 1000 for i in range(count)]
    return [{**flow, "count": 1, "rtt": units.format_time(rtt)} for rtt in rtts]
