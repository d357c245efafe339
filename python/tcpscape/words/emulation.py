"""What a user sees of an emulation: the path in words, a line of what passes now, and the screen at the end."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tcpscape import units
from tcpscape.emulation.path import DIRECTIONS, Direction, EmulatedPath
from tcpscape.emulation.summary import Emulated, EmulationDocument, WayDocument
from tcpscape.scenario import path as hops
from tcpscape.text.screen import Screen
from tcpscape.text.table import Table, table_of
from tcpscape.units import NS_PER_S

MOST_COMMAND = 60
"""Characters of the command that the answer shows."""
FEW = 1000
"""Packets below which a share of losses says little."""
NONE = "–"


def screen(summary: EmulationDocument, path: EmulatedPath) -> Screen:
    """The answer of an emulation."""
    caveats = list(summary["caveats"])
    few = [name for name in DIRECTIONS if 0 < _way(summary, name)["packets"] < FEW and _way(summary, name)["loss_asked"]]
    if few:
        caveats.append(f"fewer than {FEW} packets went {' and '.join(few)}: their share of losses is imprecise")
    if summary["changes"]:
        caveats.append(f"the path was changed ({units.counted(summary['changes'], 'time')}); what was asked for is what held at the start")
    return Screen(f"{in_words(path)}; seed {summary['seed']}", _sentence(summary), tables=[_table(summary)], caveats=caveats)


def in_words(path: EmulatedPath) -> str:
    """Both directions in a phrase: `each way: delay 25ms, jitter 8ms normal (order kept), loss 0.1%, 20mbit with a FIFO of 125kB`."""
    texts = {name: ", ".join(_direction(path, name)) or "nothing" for name in DIRECTIONS}
    whole = f"each way: {texts['up']}" if texts["up"] == texts["down"] else f"up: {texts['up']}; down: {texts['down']}"
    count = len(path.scenario.changes)
    return whole + (f"; {units.counted(count, 'change')} on the way" if count else "")


def _direction(path: EmulatedPath, name: Direction) -> list[str]:
    texts: list[str] = []
    for hop, queue in zip(getattr(path.scenario, DIRECTIONS[name]), path.scenario.queues(DIRECTIONS[name]), strict=True):
        outer, holder = queue[0], queue[-1]
        texts += [f"delay {units.brief_time(q.delay_ns)}" for q in queue if q.delay_ns]
        for q in queue:
            if q.jitter_ns:
                texts.append(f"jitter {units.brief_time(q.jitter_ns)} {q.distribution}{' (order kept)' if q.in_order else ''}")
            texts += [
                f"{what} {units.brief_percent(share)}"
                for what, share in (("loss", q.loss), ("duplicates", q.duplicate), ("damage", q.corrupt), ("reordering", q.reorder))
                if share
            ]
        limit = units.brief_size(holder.limit_bytes) if holder.limit_bytes else f"{holder.limit_packets} packets" if holder.limit_packets else ""
        kind = "a FIFO" if holder.kind in ("tbf", "htb", "bfifo", "pfifo", "netem") else holder.kind
        of = f" of {limit}" if limit else ""
        if isinstance(hop, hops.TracedLink):
            texts.append(f"the trace {hop.trace.file} with {kind}{of}")
        elif outer.rate_bps:
            texts.append(f"{units.format_rate(outer.rate_bps)} with {kind}{of}")
        elif outer.kind not in ("netem", "jitter"):
            texts.append(f"{kind}{of}")
    return texts


def _sentence(summary: EmulationDocument) -> str:
    """How the command ended, and what it sent and received."""
    words = shlex.join(summary["command"]) or "the command"
    name = words if len(words) <= MOST_COMMAND else f"{words[: MOST_COMMAND - 1]}…"
    status = summary["status"]
    ended = f"was ended by signal {status - 128}" if 128 < status < 192 else f"ended with status {status}"
    if summary["timed_out"]:
        ended = "was ended as its time was over,"
    passed = [text for text in (_passed("up", "went up", summary), _passed("down", "came down", summary)) if text]
    return f"{name} {ended} after {units.brief_time(summary['seconds'] * NS_PER_S)}: {' and '.join(passed) or 'nothing passed'}."


def _passed(name: Direction, verb: str, summary: EmulationDocument) -> str:
    way = _way(summary, name)
    if not way["packets_out"]:
        return ""
    rate = f" at {number(way['rate_mbps'])} Mbit/s" if way["rate_mbps"] else ""
    return f"{units.brief_size(way['bytes_out'])} {verb}{rate}"


@table_of.register
def table(emulated: Emulated) -> Table:
    """What passed, under the sentence of the answer."""
    return replace(_table(emulated.summary), title=_sentence(emulated.summary))


def _table(summary: EmulationDocument) -> Table:
    """A row for each figure, a column for each direction."""
    ways = [_way(summary, name) for name in DIRECTIONS]
    rows = [[title, *map(cell, ways)] for title, cell in _ROWS]
    rows += [[title, *(f"{way[key]:,}" for way in ways)] for title, key in _RARE if any(way[key] for way in ways)]  # type: ignore[literal-required]
    rows += [[f"left late {name}, µs", *(number(way["lateness_us"][name]) for way in ways)] for name in ("p50", "p99", "max")]
    if summary["engine"] != "live":
        return Table(["", "up", "down"], rows, notes=[f"In virtual time: {summary['engine']}. With this seed it can be repeated to the byte."])
    priority = f"real-time priority {summary['realtime']}" if summary["realtime"] else "ordinary priority"
    return Table(["", "up", "down"], rows, notes=[f"The emulator took {100 * summary['cpu']:.0f} % of a core, with {priority}."])


def _loss(way: WayDocument) -> str:
    if way["loss"] is None:
        return NONE
    share = units.brief_percent(way["loss"]) if way["loss"] else "0%"
    return f"{share} ({way['lost']:,})"


_ROWS: Sequence[tuple[str, Callable[[WayDocument], str]]] = (
    ("packets", lambda w: f"{w['packets']:,}"),
    ("bytes", lambda w: units.brief_size(w["bytes"]) if w["bytes"] else "0B"),
    ("Mbit/s while active", lambda w: number(w["rate_mbps"])),
    ("delay asked, ms", lambda w: number(w["delay_asked_ms"])),
    ("delay p50, ms", lambda w: number(w["delay_ms"]["p50"])),
    ("delay p99, ms", lambda w: number(w["delay_ms"]["p99"])),
    ("loss asked", lambda w: units.brief_percent(w["loss_asked"]) if w["loss_asked"] else "0%"),
    ("loss", _loss),
    ("dropped by queues", lambda w: f"{w['queue_drops']:,}"),
    ("reordered", lambda w: f"{w['reordered']:,}"),
)
"""What is always shown of a direction."""
_RARE = (("ECN marks", "marked"), ("duplicated", "duplicated"), ("damaged", "corrupted"), ("lost unasked", "unasked_drops"))
"""What is shown where there is some."""


def _way(summary: EmulationDocument, name: Direction) -> WayDocument:
    return summary["up"] if name == "up" else summary["down"]


def number(value: float | None) -> str:
    """Three significant digits, without an exponent; a dash where there is none."""
    if value is None:
        return NONE
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


@dataclass
class LiveLine:
    """What passes now, from the program's figures of this moment and the moment before."""

    before: Mapping[str, Any] = field(default_factory=dict)

    def text(self, figures: Mapping[str, Any]) -> str:
        """`↑ 0.98 ↓ 18.9 Mbit/s  RTT 56 ms  inside ↑ 0 ↓ 31  lost ↑ 3 ↓ 12  12s`."""
        since = (figures["at_ns"] - self.before.get("at_ns", 0)) / NS_PER_S
        rates, delays, held, lost = [], [], [], []
        for part in DIRECTIONS.values():
            now, old = figures["link"][part], self.before.get("link", {}).get(part)
            sent = now["bytes_out"] - (old["bytes_out"] if old else 0)
            rates.append(number(sent * 8 / 1e6 / since) if since > 0 else "0")
            count = now["delay"]["count"] - (old["delay"]["count"] if old else 0)
            whole = now["delay"]["count"] * now["delay"]["mean"] - (old["delay"]["count"] * old["delay"]["mean"] if old else 0)
            delays.append(whole / count / 1e6 if count else None)
            held.append(now["packets_held"])
            lost.append(now["drops"]["loss"] + now["drops"]["limit"] + now["drops"]["aqm"] + now["drops"]["oversize"])
        self.before = figures
        rtt = f"{sum(delays):.3g} ms" if all(d is not None for d in delays) else NONE  # type: ignore[arg-type]
        return (
            f"↑ {rates[0]} ↓ {rates[1]} Mbit/s  RTT {rtt}  inside ↑ {held[0]} ↓ {held[1]}  lost ↑ {lost[0]} ↓ {lost[1]}  "
            f"{units.brief_time(figures['at_ns'] // NS_PER_S * NS_PER_S)}"
        )
