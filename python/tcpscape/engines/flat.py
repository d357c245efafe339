"""A chain of links as one path, for an engine whose network is one path between two hosts: the emulator of the live engine.

Where all flows cross the whole chain and none has an access link, the stages one behind the other are the same network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcpscape.errors import refuse

if TYPE_CHECKING:
    import polars as pl

FIX = "use --engine model or virtual"
"""What does have places."""
FORWARD = 1
"""Number in samples of queues of the first link's forward direction; its reverse is the next one, then those of the next link."""


def flatten(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The plan with its chain as one path. A plan of one path stays as it is.

    :raises ScenarioError: an access link, or data that enter or leave within the chain; the sentence names it and the engines that can.
    """
    if not fields.get("places"):
        return dict(fields)
    links = _links(fields)
    for place in fields["places"]:
        if any(place[link][way]["stages"] for link in ("near", "far") for way in ("forward", "reverse")):
            refuse("access", "the emulator is one path between two hosts, and access links and RTTs of flows' own need hosts of their own", FIX)
        if (place["enter"], place["leave"]) != (0, len(links)):
            refuse("links", "the emulator is one path between two hosts, and these data enter or leave within the chain", FIX)
    joining = {name: [_joined_end_to_end(entry) for entry in fields[name]] for name in ("flows", "probes") if name in fields}
    if "transfers" in fields:
        joining["transfers"] = [{**entry, "flow": _joined_end_to_end(entry["flow"])} for entry in fields["transfers"]]
    rest = {name: value for name, value in fields.items() if name not in ("links", "places")}
    paths = {"forward": _path([link["forward"] for link in links]), "reverse": _path([link["reverse"] for link in reversed(links)])}
    return {**rest, **joining, **paths, "arp": False}  # as on every network with places, neighbours are known


def named_queues(fields: Mapping[str, Any], queues: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Reports of the queues of a flattened plan with the link of each, and its stage there; `fields` is the plan before."""
    where = dict(_places(fields))
    named = []
    for queue in queues:
        number, stage = where[queue["direction"], queue["stage"]]
        named.append({"link": f"chain/{number}", **queue, "stage": stage})
    return tuple(named)


def named_samples(fields: Mapping[str, Any], samples: pl.DataFrame) -> pl.DataFrame:
    """Samples of the queues of a flattened plan, numbered as those of a chain; `fields` is the plan before."""
    import polars as pl

    rows = []
    for (direction, place), (number, stage) in _places(fields):
        back = direction == "reverse"
        rows.append({"pipe": FORWARD + back, "stage": place, "of_chain": FORWARD + 2 * number + back, "of_link": stage})
    table = pl.DataFrame(rows, schema={"pipe": pl.UInt8, "stage": pl.UInt32, "of_chain": pl.UInt8, "of_link": pl.UInt32})
    joined = samples.join(table, on=["pipe", "stage"], how="left", maintain_order="left")
    return joined.with_columns(pipe="of_chain", stage="of_link").select(samples.columns)


def _links(fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [{"forward": fields["forward"], "reverse": fields["reverse"]}, *fields.get("links", ())]


def _joined_end_to_end(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "place"}


def _path(directions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One direction of several links, in the order in which packets meet them."""
    stages: list[Any] = []
    schedule: list[Any] = []
    for direction in directions:
        schedule += [{**change, "stage": change["stage"] + len(stages)} for change in direction["schedule"]]
        stages += direction["stages"]
    return {"stages": stages, "schedule": schedule}


def _places(fields: Mapping[str, Any]) -> Iterator[tuple[tuple[str, int], tuple[int, int]]]:
    """Direction and stage of the one path → number of the link and stage there."""
    links = list(enumerate(_links(fields)))
    for direction, order in (("forward", links), ("reverse", links[::-1])):
        stages = [(number, stage) for number, link in order for stage in range(len(link[direction]["stages"]))]
        yield from (((direction, place), of) for place, of in enumerate(stages))
