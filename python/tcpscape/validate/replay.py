"""Random impairments done again: what the netem of a kernel in virtual time did to each packet, from captures before and behind it.

A direction's packets come to netem one by one, and each has a fate: it is lost, or leaves once or several times, each copy after its own delay and at
its place among all that leave. In virtual time both captures have the same clock, so that the delays are exact. The model does the same to the packet
that comes to its netem at the same place in the order; it counts segments, since a super-packet is treated as a whole.

Where packets are seen: forward netem is the egress of the first router, before it is the sender's host, behind it that router's device. Against the
data it is the egress of the last router, before it is the receiver's host, behind it the sender's. Hosts take no time in these trials, and know their
neighbours: the time of one is another delay behind netem, and what asks for an address is a packet that the model has once for the whole path.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import struct
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tcpscape import writing
from tcpscape.engines import plan
from tcpscape.engines.guest import Place
from tcpscape.engines.model import VirtualHostModel, parameters
from tcpscape.engines.virtual import Virtual
from tcpscape.reading import documents, files
from tcpscape.reading.files import MIB, Kind, Origin
from tcpscape.scenario import path
from tcpscape.scenario.scenario import Part, Scenario
from tcpscape.trial import Capture, Trial

if TYPE_CHECKING:
    from tcpscape._core import Plan

Fate = tuple[tuple[int, int], ...]
"""The copies of a segment that left: the place of each among all packets that left, and its delay, ns. None of a lost one."""
Fates = Mapping[str, Sequence[Fate]]
"""Direction → the fates of its segments, in order of arrival."""
RecordedFates = dict[str, list[Fate] | None]
UNCLEAR = "forward: two packets with the same content were in netem at once, so that their copies cannot be told apart; leave this condition out"
"""Why a recorded condition is not replayed."""
RECORD = Kind("a record of what netem did", "remove it and run again", most=256 * MIB)
PCAP = Kind("a capture of a guest", "run again", most=1024 * MIB)
BEFORE_AND_BEHIND: Mapping[str, tuple[Place, Place]] = {"forward": ("sender", "router"), "reverse": ("receiver", "sender")}
"""Direction → where its packets are seen before its netem and behind it."""
STAGES = {"forward": 0, "reverse": 1}
"""Direction → the stage that is its netem: the first router's egress, the one behind the receiver's own queue."""
PARTS: Mapping[str, tuple[Part, ...]] = {"forward": ("forward", "bottleneck"), "reverse": ("reverse",)}
"""Direction → the parts of a scenario that its packets pass."""
KNOWN_NEIGHBOURS: Mapping[str, Any] = {"arp": False}
"""Fields of the plan."""
HEADERS = 52
"""Bytes of the headers of a full segment with timestamps."""
TCP, FIN, SYN, RST = 6, 1, 2, 4
RECORD_HEADER, FILE_HEADER = 16, 24


@dataclass(frozen=True)
class SeenPacket:
    """A TCP packet of a capture."""

    t_ns: int
    source: bytes
    content: bytes
    """What no router changes, but the checksum of TCP."""
    payload: int
    flags: int


def fates(before: bytes, behind: bytes, direction: str, mss: int) -> list[Fate] | None:
    """The fate of each segment of a direction of the only connection, from the captures (pcap, nanoseconds, LINKTYPE_RAW) on both sides of netem.

    None where they cannot be told: two packets with the same content came within the longest stay of any other, so that a copy may be one of either.
    What comes after the end of the connection, where resets are alike, is of the later one.
    """
    arrivals, departures = ([p for p, way in _ways(capture) if way == direction] for capture in (before, behind))
    alike: dict[bytes, list[int]] = defaultdict(list)
    for i, packet in enumerate(arrivals):
        alike[packet.content].append(i)
    copies: list[list[tuple[int, int]]] = [[] for _ in arrivals]
    for place, packet in enumerate(departures):
        known = [i for i in alike[packet.content] if arrivals[i].t_ns <= packet.t_ns]
        if known:  # another one came before the recording began
            copies[known[-1]].append((place, packet.t_ns - arrivals[known[-1]].t_ns))
    longest = max((delay for same in alike.values() if len(same) == 1 for _, delay in copies[same[0]]), default=0)
    end = next((p.t_ns for p in arrivals if p.flags & (FIN | RST)), math.inf)
    times = [[arrivals[i].t_ns for i in same] for same in alike.values()]
    if any(later - earlier <= longest and later < end for same in times for earlier, later in itertools.pairwise(same)):
        return None
    return [tuple(c) for p, c in zip(arrivals, copies, strict=True) for _ in range(max(1, math.ceil(p.payload / mss)))]


def _ways(capture: bytes) -> Iterator[tuple[SeenPacket, str]]:
    """The TCP packets of a capture, each with its direction: data come from the host that sends the first SYN."""
    sender = None
    for packet in _packets(capture):
        if sender is None and packet.flags & SYN:
            sender = packet.source
        yield packet, "forward" if packet.source == sender else "reverse"


def _packets(capture: bytes) -> Iterator[SeenPacket]:
    at = FILE_HEADER
    while at + RECORD_HEADER <= len(capture):
        seconds, ns, kept, _ = struct.unpack_from("<4I", capture, at)
        ip = capture[at + RECORD_HEADER : at + RECORD_HEADER + kept]
        at += RECORD_HEADER + kept
        header = (ip[0] & 15) * 4
        if ip[9] != TCP:
            continue
        tcp = ip[header:]
        total = int.from_bytes(ip[2:4], "big")
        content = ip[2:8] + ip[12:header] + tcp[:16] + tcp[18:]
        yield SeenPacket(seconds * 1_000_000_000 + ns, ip[12:16], content, total - header - (tcp[12] >> 4) * 4, tcp[13])


def impaired(scenario: Scenario) -> list[str]:
    """The directions that have random impairments."""
    return [way for way in PARTS if any(_is_random(queue) for _, queue in _stages(scenario, way))]


def recorded(scenario: Scenario) -> list[str]:
    """The directions whose netem is recorded: of a path with random impairments all that are seen on both sides of it, even if they only delay."""
    return [way for way in PARTS if _unseen(scenario, way) is None] if impaired(scenario) else []


def refusal(scenario: Scenario) -> str | None:
    """Why the impairments of a scenario cannot be replayed; None where they can."""
    if scenario.kernel.host_time:
        return "kernel.host_time: the time of hosts is a delay behind netem; write kernel: {host_time: 0s}"
    if scenario.changes:
        return "changes: a path that changes is not replayed; leave them out"
    return next((why for way in impaired(scenario) if (why := _unseen(scenario, way))), None)


def _unseen(scenario: Scenario, way: str) -> str | None:
    """Why what becomes of the packets of a direction cannot be seen, or not be done again."""
    stages, place = _stages(scenario, way), STAGES[way]
    is_elsewhere = any(_is_random(queue) for i, (_, queue) in enumerate(stages) if i != place)
    if is_elsewhere or len(stages) <= place or stages[place][0] != "router":
        where = "forward: [{at: router, ...}]" if way == "forward" else "reverse: [pfifo, netem ...]"
        return f"{way}: impairments are recorded in one netem, at the first router; write {where}"
    if way == "reverse" and (len(stages) > place + 1 or stages[0][1].get("delay")):
        return "reverse: impairments are recorded in the only queue that delays; write reverse: [pfifo, netem ...]"
    queue = stages[place][1]
    if queue["kind"] != "netem" or queue.get("corrupt") or queue.get("ecn") or queue.get("child"):
        return f"{way}: damaged and marked packets, queues of the model's own and children are not replayed; leave them out"
    return None


def _stages(scenario: Scenario, way: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The queues of a direction, in order, each with the node whose egress it is."""
    hops = [(part, i, hop) for part in PARTS[way] for i, hop in enumerate(getattr(scenario, part))]
    return [(path.node(part, i, hop), queue) for part, i, hop in hops for queue in path.plan(hop, scenario.rtt_ns)]


def _is_random(queue: Mapping[str, Any]) -> bool:
    """Whether a queue of a plan draws at random what becomes of a packet, as netem and `jitter` do."""
    loses = any(value for name, value in (queue.get("loss") or {}).items() if name != "model")
    return loses or any(queue.get(name) for name in ("jitter", "duplicate", "corrupt", "reorder", "slot"))


class RecordingKernel(Virtual):
    """The virtual engine, which keeps in a directory what netem did to each packet of a trial whose path has random impairments."""

    def __init__(self, engine: Virtual, folder: Path) -> None:
        """With the kernel of another engine."""
        super().__init__(engine.kernel_name)
        self.kernel, self._folder = engine.kernel, folder

    def version_for(self, scenario: Scenario) -> str:
        """Marked where a trial is recorded: it has other neighbours than the engine's."""
        return f"{super().version_for(scenario)}{' recording' if impaired(scenario) else ''}"

    def fates(self, scenario: Scenario, seed: int) -> Fates | None:
        """What became of the packets of a trial, which runs again where its record is not there; None where it cannot be told."""
        file = self._file(scenario, seed)
        if not files.exists(file, RECORD, "out"):
            self.run(scenario, [seed], capture=Capture(packets=True))
        recorded = documents.as_type(RecordedFates, documents.json_file(file, RECORD, "out"), Origin(str(file), RECORD, "out"))
        told = {way: of_way for way, of_way in recorded.items() if of_way is not None}
        return told if len(told) == len(recorded) else None

    def _file(self, scenario: Scenario, seed: int) -> Path:
        return self._folder / f"{self.address(scenario, seed)}.json"

    def _job_content(self, scenario: Scenario, seed: int, capture: Capture) -> dict[str, Any]:
        content = super()._job_content(scenario, seed, capture)
        if impaired(scenario):
            content["plan"] |= KNOWN_NEIGHBOURS
        return content

    def _run_one(self, scenario: Scenario, seed: int, capture: Capture, stops: int) -> Trial:
        ways = recorded(scenario)
        if not ways or not capture.packets:
            return super()._run_one(scenario, seed, capture, stops)
        places: dict[Place, None] = dict.fromkeys(("sender", *(place for way in ways for place in BEFORE_AND_BEHIND[way])))
        with tempfile.TemporaryDirectory(prefix="tcpscape-packets-") as folder:
            captures = {place: Path(folder) / f"{place}.pcap" for place in places}
            trial = self._trial(scenario, seed, self._guest_job(scenario, seed, capture, captures, stops=stops), capture)
            if not capture.samples_ns:  # with samples it is another trial
                seen = {place: files.content(file, PCAP) for place, file in captures.items()}
                mss = scenario.mtu - HEADERS
                of_ways: RecordedFates = {}
                for way in ways:
                    before, behind = BEFORE_AND_BEHIND[way]
                    of_ways[way] = fates(seen[before], seen[behind], way, mss)
                writing.whole(self._file(scenario, seed), json.dumps(of_ways, separators=(",", ":")))
        return trial


class ReplayingModel(VirtualHostModel):
    """The simulator beside a kernel in virtual time, whose netem does to each packet what it is told, by the scenario's name."""

    def __init__(self, fates: Mapping[str, Fates], phases: Mapping[str, int] = MappingProxyType({})) -> None:
        super().__init__(phases)
        self._fates = fates
        self._digests = {name: hashlib.sha256(json.dumps(of_ways).encode()).hexdigest()[:12] for name, of_ways in fates.items()}
        self._kept: tuple[Any, Plan] | None = None
        """The last plan: its trials come one after the other, and its fates are many."""

    def at(self, phases: Mapping[str, int]) -> ReplayingModel:
        """The same with other phases."""
        return ReplayingModel(self._fates, phases)

    def version_for(self, scenario: Scenario) -> str:
        """With a digest of the fates."""
        return super().version_for(scenario) + self._digests.get(scenario.name, "")

    def plan(self, scenario: Scenario, capture: Capture = Capture()) -> Plan:
        """The plan with the fates; that of any other scenario is its own."""
        fates = self._fates.get(scenario.name)
        if not fates:
            return super().plan(scenario, capture)
        key, kept = (scenario, capture), self._kept
        if kept is None or kept[0] != key:
            kept = self._kept = key, self._replaying(scenario, capture, fates)
        return kept[1]

    def _replaying(self, scenario: Scenario, capture: Capture, fates: Fates) -> Plan:
        fields = plan.build(scenario, parameters(self._lib), capture, {**self.host(scenario), **KNOWN_NEIGHBOURS})
        for way, of_segments in fates.items():
            fields[way]["stages"][STAGES[way]]["qdisc"]["fates"] = of_segments
        checked: Plan = self._lib.Plan(json.dumps(fields, separators=(",", ":")), None)
        return checked
