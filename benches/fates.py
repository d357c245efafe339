"""Loss or reordering, packet by packet: what the flow analysis says of each data segment, against what the captures at both ends of the same trial show.

Truth: a transmission that left the sender and never arrived at the receiver is lost; one that arrived after a later one is reordered. The two
captures are matched by IP identification and sequence number. The analysis sees one capture alone.

    .venv/bin/python benches/fates.py CORPUS [--place sender] [--cases 000,003] [--json FILE]
    .venv/bin/python benches/fates.py CORPUS... --page docs/diagnosis.md       # both places, all sets together, as the page's table

A corpus has a directory for each trial, or for each view of one (`benches/corpus.py --domains`). It
prints, for each case and for all, precision, recall and F1 of the lost and of the reordered segments. At the sender, a reordering that the receiver's
ACKs do not show (they were compressed, merged or lost) counts as missed; how many those are is the last column.
"""

from __future__ import annotations

import argparse
import json
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import table
from tcpscape import capture
from tcpscape.findings.diagnosis.observed import ObservedFlow

PORT = 9000
"""The receiver's port of the flow whose truth is known."""
IN_ORDER, REORDERED, LOST, SPURIOUS, UNKNOWN = range(5)


@dataclass
class Wire:
    """Data packets of one direction as a capture has them; super-packets cut into segments."""

    seq: list[int] = field(default_factory=list)
    length: list[int] = field(default_factory=list)
    ident: list[int] = field(default_factory=list)


def wire(path: Path, ports: tuple[int, int], mss: int) -> Wire:
    """The data packets from the first port to the second; the file is LINKTYPE_RAW, IPv4, as the corpus has it."""
    raw = path.read_bytes()
    out, at, base = Wire(), 24, None
    while at + 16 <= len(raw):
        captured = struct.unpack_from("<I", raw, at + 8)[0]
        ip = at + 16
        at = ip + captured
        header = (raw[ip] & 15) * 4
        tcp = ip + header
        if raw[ip + 9] != 6 or struct.unpack_from(">HH", raw, tcp) != ports:
            continue
        size, ident = struct.unpack_from(">HH", raw, ip + 2)
        seq, flags = struct.unpack_from(">I", raw, tcp + 4)[0], raw[tcp + 13]
        if base is None or flags & 2:
            base = seq + (1 if flags & 2 else 0)
        payload = size - header - (raw[tcp + 12] >> 4) * 4
        for k, offset in enumerate(range(0, payload, mss)):
            out.seq.append((seq + offset - base) & 0xFFFFFFFF)
            out.length.append(min(mss, payload - offset))
            out.ident.append((ident + k) & 0xFFFF)
    return out


@dataclass
class Truth:
    """Of each segment's first transmission, by sequence number: whether it was lost, whether it came after a later one."""

    lost: set[int]
    reordered: set[int]
    arrived_first: dict[int, int]


def truth(sent: Wire, received: Wire) -> Truth:
    """Matches transmissions with arrivals by (sequence number, identification)."""
    arrivals: dict[tuple[int, int], list[int]] = defaultdict(list)
    for i, key in enumerate(zip(received.seq, received.ident, strict=True)):
        arrivals[key].append(i)
    first: dict[int, int] = {}
    lost, late = set(), set()
    order = []
    for i, (seq, ident) in enumerate(zip(sent.seq, sent.ident, strict=True)):
        places = arrivals.get((seq, ident))
        place = places.pop(0) if places else None
        if seq in first:
            if place is not None:
                order.append((place, i, None))
            continue
        first[seq] = i
        if place is None:
            lost.add(seq)
        else:
            order.append((place, i, seq))
    newest = -1
    for _, i, seq in sorted(order):
        if i < newest and seq is not None:
            late.add(seq)
        newest = max(newest, i)
    return Truth(lost, late, first)


@dataclass
class Score:
    """Hits, false alarms and misses."""

    hits: int = 0
    false: int = 0
    missed: int = 0

    def add(self, said: set[int], true: set[int]) -> None:
        """Counts one case."""
        self.hits += len(said & true)
        self.false += len(said - true)
        self.missed += len(true - said)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; NaN without any."""
        total = 2 * self.hits + self.false + self.missed
        return 2 * self.hits / total if total else float("nan")


def said(flow: ObservedFlow, mss: int) -> tuple[set[int], set[int]]:
    """The segments that the analysis holds for lost, and for reordered, by the events' sequence numbers."""
    events = flow.events
    out: list[set[int]] = []
    for kind in (5, 6):
        chosen = events["kind"] == kind
        seqs: set[int] = set()
        for seq, length in zip(events["seq"][chosen].tolist(), events["len"][chosen].tolist(), strict=True):
            seqs.update(range(seq, seq + max(length, 1), mss))
        out.append(seqs)
    return out[0], out[1]


def captures(corpus: Path) -> Iterator[tuple[str, dict[str, Path]]]:
    """Each trial of which the captures at both ends are there, and whole: its name, the captures by place."""
    for folder in sorted(truth.parent for truth in corpus.glob("*/truth.json")):
        name, _, place = folder.name.partition("-")
        files = {"sender": folder / "sender.pcap", "receiver": folder / "receiver.pcap"}
        if place:
            files["receiver"] = folder.with_name(f"{name}-receiver") / "shown.pcap"
            shown = json.loads((folder / "truth.json").read_text("utf-8"))["shown"]
            if shown["cut"] != "no" or "missing_pct" in shown:
                continue
        if place in ("", "sender") and all(file.exists() for file in files.values()):
            yield name, files


def case(name: str, files: Mapping[str, Path], place: str, verbose: bool = False) -> tuple[str, Score, Score, int]:
    """Scores the first flow of a case."""
    flow = next((flow for flow in capture.read(files[place]).flows if flow.destination.port == PORT), None)
    if flow is None:
        return f"{name}: no connection was made", Score(), Score(), 0
    if flow.facts["events_left_out"]:
        return f"{name}: {flow.facts['events_left_out']} events were not kept", Score(), Score(), 0
    mss = int(flow.facts["segment_size"])
    ports = (flow.source.port, flow.destination.port)
    sent, received = (wire(files[end], ports, mss) for end in ("sender", "receiver"))
    true = truth(sent, received)
    starts = set(true.arrived_first)
    lost, reordered = said(flow, mss)
    if place == "receiver":  # what the receiver never saw in any copy is no evidence there
        true.lost.intersection_update(received.seq)
    losses, orders = Score(), Score()
    losses.add(lost & starts, true.lost)
    orders.add(reordered & starts, true.reordered)
    if verbose:
        for name, a, b in (("lost", lost & starts, true.lost), ("reordered", reordered & starts, true.reordered)):
            print(f"  {name}: said wrongly {sorted(a - b)[:8]}, missed {sorted(b - a)[:8]}")
    return "", losses, orders, len(starts)


def scored(corpora: Sequence[Path], place: str, chosen: set[str], verbose: bool) -> tuple[Score, Score, list[dict[str, Any]]]:
    """Scores every case of these sets at a place, and prints each: losses, reorderings, a row of each case."""
    total, rows = (Score(), Score()), []
    for name, files in (pair for corpus in corpora for pair in captures(corpus) if not chosen or pair[0] in chosen):
        note, losses, orders, n = case(name, files, place, verbose)
        if note:
            print(note)
            continue
        for all_, one in zip(total, (losses, orders), strict=True):
            all_.hits, all_.false, all_.missed = all_.hits + one.hits, all_.false + one.false, all_.missed + one.missed
        rows.append({"case": name, "segments": n, "loss": vars(losses) | {"f1": losses.f1}, "reordering": vars(orders) | {"f1": orders.f1}})
        print(
            f"{name} {n:7} segments  loss {losses.hits:6} +{losses.false:<5} -{losses.missed:<5} F1 {losses.f1:5.3f}   "
            f"reordering {orders.hits:6} +{orders.false:<5} -{orders.missed:<5} F1 {orders.f1:5.3f}"
        )
    f1 = [np.median([r[k]["f1"] for r in rows if r[k]["f1"] == r[k]["f1"]] or [np.nan]) for k in ("loss", "reordering")]
    print(f"all, {place}: loss F1 {total[0].f1:.4f} (median of cases {f1[0]:.4f}), reordering F1 {total[1].f1:.4f} (median {f1[1]:.4f})")
    return *total, rows


GOALS = {"sender": 0.99, "receiver": 0.995}
"""F1 that is aimed at, by place."""


def write(page: Path, corpora: Sequence[Path]) -> None:
    """Writes the table `fates` of these sets into the page."""
    cells = []
    for place, goal in GOALS.items():
        losses, orders, rows = scored(corpora, place, set(), False)
        for what, score in (("lost", losses), ("reordered", orders)):
            numbers = (f"{n:,}" for n in (score.hits, score.false, score.missed))
            cells.append([f"{what}, at the {place}", str(len(rows)), *numbers, f"{score.f1:.4f}", f"{goal:g}"])
    table.insert(page, "fates", table.markdown(["", "trials", "said rightly", "said wrongly", "missed", "F1", "goal"], cells))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="+")
    parser.add_argument("--place", default="sender", choices=("sender", "receiver"))
    parser.add_argument("--cases", default="")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path, help="page whose table `fates` is written, of both places")
    options = parser.parse_args()
    if options.page:
        write(options.page, options.corpus)
        return
    losses, orders, rows = scored(options.corpus, options.place, set(options.cases.split(",")) - {""}, options.verbose)
    if options.json:
        options.json.write_text(json.dumps({"place": options.place, "cases": rows, "loss": losses.f1, "reordering": orders.f1}, allow_nan=True))


if __name__ == "__main__":
    main()
