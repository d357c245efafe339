"""The accuracy of `diagnose` on captures with known truth (benches/corpus.py): one row for each goal.

    .venv/bin/python benches/diagnosis.py run CORPUS OUT [--quick] [--no-replay]     # diagnoses CORPUS/*/shown.pcap, keeps each document in OUT
    .venv/bin/python benches/diagnosis.py score CORPUS OUT                           # compares the documents with the truth
    .venv/bin/python benches/diagnosis.py misses CORPUS OUT rtt                      # the cases that miss a goal

A value that is not identifiable is not counted as wrong, but how many there are is said. The intervals' coverage is of the values that are given.
"""

from __future__ import annotations

import argparse
import json
import math
import struct
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import replays

PORT = 9000
"""The flow whose truth is known: its receiver's port."""
FEWEST_LOSSES = 20
"""Losses from which a rate of loss is compared."""
FAMILIES = ("cubic", "reno", "bbr")
"""Congestion controls that are told apart besides all others."""
SIDES = {"sender": "sender", "router": "middle", "receiver": "receiver"}


@dataclass
class Score:
    """The cases of one goal."""

    goal: str
    right: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    """Not identifiable."""
    covered: int = 0
    """Given values whose interval covers the truth."""
    intervals: int = 0
    errors: list[float] = field(default_factory=list)

    def add(self, case: str, is_right: bool | None) -> None:
        (self.silent if is_right is None else self.right if is_right else self.wrong).append(case)

    def value(self, case: str, given: Mapping[str, Any] | None, truth: float, is_right: Callable[[float], bool]) -> None:
        """A value with its interval."""
        if given is None or given.get("value") is None:
            return self.add(case, None)
        self.add(case, is_right(given["value"]))
        if truth:
            self.errors.append(given["value"] / truth - 1)
        if given.get("low") is not None and given.get("high") is not None:
            self.intervals += 1
            self.covered += given["low"] <= truth <= given["high"]
        return None

    def row(self) -> str:
        answered = len(self.right) + len(self.wrong)
        share = f"{len(self.right)}/{answered} = {100 * len(self.right) / answered:.1f} %" if answered else "–"
        coverage = f"{100 * self.covered / self.intervals:.1f} % of {self.intervals}" if self.intervals else ""
        median = f"median error {100 * float(np.median(np.abs(self.errors))):.2f} %" if self.errors else ""
        return f"{self.goal:58} {share:20} silent {len(self.silent):3}  coverage {coverage:16} {median}"


def diagnose(case: Path, out: Path, quick: bool, replay: bool) -> str:
    """Diagnoses the capture of a case; keeps the document, or what went wrong."""
    target = out / f"{case.name}.json"
    if target.exists():
        return f"{case.name} kept"
    import tcpscape
    from tcpscape.words.diagnosis import document

    try:
        diagnosis = tcpscape.diagnose(case / "shown.pcap", flows=1, flow=f":{PORT}", replay=replay, quick=quick, jobs=1)
        target.write_text(json.dumps(document(diagnosis)), "utf-8")
    except Exception:  # a bug of one case must not hide the others
        target.with_suffix(".error").write_text(traceback.format_exc(), "utf-8")
        return f"{case.name} FAILED"
    return case.name


def cases(corpus: Path, out: Path) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Number, truth and diagnosed flow of each case."""
    for document in sorted(out.glob("*.json")):
        truth = json.loads((corpus / document.stem / "truth.json").read_text("utf-8"))
        flows = json.loads(document.read_text("utf-8"))["flows"]
        for flow in flows:
            if flow["tuple"][3] == PORT:
                yield document.stem, truth, flow


def lost(truth: Mapping[str, Any], case: Path) -> tuple[int, float]:
    """Data packets that the path lost at random, and their share of those that came there, %.

    With offload netem drops super-packets and counts each as one, while it counts what it sent by segments (`gso_segs`): their ratio is no share. The share
    is then of the packets that the sender's own capture shows.
    """
    stage = next(q for q in truth["queues"] if q["where"] == "forward" and q["kind"] == "netem")
    came = data_packets(case / "sender.pcap") if truth["scenario"].get("offload") else stage["dropped"] + stage["sent_packets"]
    return stage["dropped"], 100 * stage["dropped"] / max(1, came)


def data_packets(capture: Path) -> int:
    """Packets with payload to the receiver's port, super-packets as one: of a capture of bare IPv4 packets."""
    raw, at, count = capture.read_bytes(), 24, 0
    while at + 16 <= len(raw):
        kept, length = struct.unpack_from("<II", raw, at + 8)
        packet = raw[at + 16 : at + 16 + kept]
        tcp = 4 * (packet[0] & 15)
        to = int.from_bytes(packet[tcp + 2 : tcp + 4], "big")
        count += packet[9] == 6 and to == PORT and length > tcp + 4 * (packet[tcp + 12] >> 4)
        at += 16 + kept
    return count


def path_scores(corpus: Path, out: Path) -> dict[str, Score]:
    """The goals on the path."""
    s = {
        "rtt": Score("base RTT within max(2 %, 0.5 ms)"),
        "jitter": Score("jitter's standard deviation within 15 %"),
        "direction": Score("jitter's direction (or none) right"),
        "loss": Score("loss within a factor 1.25 (20 losses or more)"),
        "rate": Score("bottleneck's rate within 5 %"),
        "buffer": Score("its buffer within 20 %"),
        "vantage": Score("vantage point right"),
        "order": Score("order kept or not"),
        "change": Score("change of the path found"),
        "stable": Score("no change where there is none"),
    }
    for name, truth, flow in cases(corpus, out):
        true, given = truth["path"], flow["path"]
        changes = {c["kind"] for c in true["changes"]}
        if "rtt" not in changes:
            rtt = true["rtt_ms"]
            s["rtt"].value(name, given["rtt_ms"], rtt, lambda v, rtt=rtt: abs(v - rtt) <= max(0.02 * rtt, 0.5))
        if true["jitter_ms"] > 0:
            jitter = true["jitter_ms"]
            s["jitter"].value(name, given["jitter_ms"], jitter, lambda v, j=jitter: abs(v / j - 1) <= 0.15)
            s["order"].add(name, None if given["order_kept"] is None else given["order_kept"]["value"] is False)
        s["direction"].add(name, None if given["jitter_on"] is None else given["jitter_on"] == true["jitter_on"])
        count, share = lost(truth, corpus / name)
        if count >= FEWEST_LOSSES:
            s["loss"].value(name, given["loss_pct"], share, lambda v, p=share: abs(math.log(max(v, 1e-9) / p)) <= math.log(1.25))
        if true["rate_mbps"] and "rate" not in changes:
            s["rate"].value(name, given["rate_mbps"], true["rate_mbps"], lambda v, r=true["rate_mbps"]: abs(v / r - 1) <= 0.05)
            if true["buffer_bytes"]:
                s["buffer"].value(name, given["buffer_bytes"], true["buffer_bytes"], lambda v, b=true["buffer_bytes"]: abs(v / b - 1) <= 0.2)
        elif not true["rate_mbps"]:
            s["rate"].add(name, None if given["rate_mbps"] is None else False)
        s["vantage"].add(name, None if flow["vantage"] == "unknown" else flow["vantage"] == SIDES[truth["shown"]["place"]])
        found = {c["kind"] for c in given["changes"]}
        if changes:
            s["change"].add(name, changes <= found)
        else:
            s["stable"].add(name, not found)
    return s


def control_scores(corpus: Path, out: Path) -> dict[str, Score]:
    """The goals on the congestion control: captures at the sender of 30 s and more."""
    s = {
        "control": Score("control right, silent counted as wrong (sender, 30 s)"),
        "precise": Score("control right where it answers"),
        "family": Score("cubic, reno, bbr or other where it answers"),
    }
    for name, truth, flow in cases(corpus, out):
        if truth["shown"]["place"] != "sender" or flow["seconds"] < 29:
            continue
        true, given = truth["cca"][0], flow["cca"]["name"]
        s["control"].add(name, given == true)
        s["precise"].add(name, None if given == "unknown" else given == true)
        family = [c if c in FAMILIES else "other" for c in (true, given)]
        s["family"].add(name, None if given == "unknown" else family[0] == family[1])
    return s


def replay_scores(corpus: Path, out: Path) -> dict[str, Score]:
    """The replay of the same control against what was seen."""
    s = {"replay": Score("replay: |ln goodput| at most 0.30"), "agrees": Score("replay agrees by its own verdict")}
    for name, _, flow in cases(corpus, out):
        replay = flow["replay"]
        if not replay or replay["goodput_mbps"] is None or not replay["goodput_mbps"]["value"]:
            s["replay"].add(name, None)
            s["agrees"].add(name, None)
            continue
        error = math.log(replay["goodput_mbps"]["value"] / replay["observed_goodput_mbps"])
        s["replay"].errors.append(error)
        s["replay"].add(name, abs(error) <= 0.30)
        s["agrees"].add(name, replay["verdict"] == "agrees")
    return s


def advice_scores(corpus: Path, out: Path) -> dict[str, Score]:
    """Zone, winner and gain, of the cases whose truth was run (`benches/replays.py truth CORPUS`)."""
    s = {
        "zone": Score("zone right against this control's cliff"),
        "winner": Score("choice carries 95 % of the best control's goodput"),
        "gain": Score("its gain within 25 %"),
    }
    for name, _, flow in cases(corpus, out):
        if (corpus / name / "controls.json").exists():
            for goal, is_right in replays.score_document(replays.truth(corpus / name), flow).items():
                s[goal].add(name, is_right)
    return s


def main() -> None:
    """Runs, or prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "score", "misses"))
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("goal", nargs="?")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="few trials for replays")
    parser.add_argument("--no-replay", action="store_true")
    parser.add_argument("--cases", type=int, default=0, help="only the first ones")
    arguments = parser.parse_args()
    corpus, out = arguments.corpus, arguments.out
    if arguments.what == "run":
        out.mkdir(parents=True, exist_ok=True)
        found = sorted(truth.parent for truth in corpus.glob("*/truth.json"))[: arguments.cases or None]
        with ProcessPoolExecutor(arguments.jobs) as pool:
            futures = [pool.submit(diagnose, case, out, arguments.quick, not arguments.no_replay) for case in found]
            for future in futures:
                print(future.result(), flush=True)
        return
    scores = path_scores(corpus, out) | control_scores(corpus, out) | replay_scores(corpus, out) | advice_scores(corpus, out)
    if arguments.what == "misses":
        print(*scores[arguments.goal].wrong, sep="\n")
        return
    for score in scores.values():
        print(score.row())


if __name__ == "__main__":
    main()
