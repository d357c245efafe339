"""What held each flow of the corpus: the analysis of captures against the kernel's own counters, as a confusion matrix.

    .venv/bin/python benches/limits.py CORPUS                     # what each case shows (its vantage point, its cut)
    .venv/bin/python benches/limits.py CORPUS --place sender      # whole captures at one place

The truth, between two samples of TCP_INFO (:func:`truth`), in this order:

1. the share of the time by which `rwnd_limited` grew is `receive_window`, that of `sndbuf_limited` is `send_buffer`;
2. the share by which `busy_time` did not grow is `application`: nothing sent was unacknowledged, nothing waited;
3. of the rest, `ca_state` Loss is `timeout`, and so is the silence before it, from the last byte acknowledged;
4. less than a segment waits (`notsent`) and the flight is below the congestion window: `application`, or `send_buffer` where the scenario's
   application writes as fast as it can. The kernel's `sndbuf_limited` does not count here where each write fits into the buffer as a whole: it
   starts when a write that is blocked half-way pushes its first half;
5. `ca_state` Recovery is `recovery`;
6. the flight fills the congestion window, or the control does not pace: `congestion_window`; otherwise `pacing`.

What is right is counted in bins (default 100 ms): in each, the sum over the causes of the smaller one of the two shares.
"""

from __future__ import annotations

import argparse
import json
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from tcpscape import capture
from tcpscape.findings.diagnosis import diagnosis
from tcpscape.findings.diagnosis.fitted import DiagnosisSettings

CAUSES = ("application", "send_buffer", "receive_window", "congestion_window", "pacing", "recovery", "timeout", "handshake", "unknown")
PACED = ("bbr", "bbr3")
LOSS, RECOVERY = 4, 3
Piece = tuple[float, float, str]
"""From, to (s of the trial), cause."""


def truth(samples: pl.DataFrame, *, is_bulk: bool, is_paced: bool, mss: int = 1_448) -> list[Piece]:
    """What held the flow, by the kernel's counters and the application that the scenario has."""
    rows = samples.sort("t_ns").to_dicts()
    states = [_state(r, is_bulk, is_paced, mss) for r in rows]
    _mark_silence(rows, states)
    pieces: list[Piece] = []
    for i in range(1, len(rows)):
        a, b = rows[i - 1], rows[i]
        start, end = a["t_ns"] / 1e9, b["t_ns"] / 1e9
        length = end - start
        rwnd = min(length, (b["rwnd_limited_us"] - a["rwnd_limited_us"]) / 1e6)
        sndbuf = min(length - rwnd, (b["sndbuf_limited_us"] - a["sndbuf_limited_us"]) / 1e6)
        idle = min(length - rwnd - sndbuf, max(0.0, length - (b["busy_us"] - a["busy_us"]) / 1e6))
        rest = length - rwnd - sndbuf - idle
        shares = [(rwnd, "receive_window"), (sndbuf, "send_buffer"), (idle, "application"), (rest / 2, states[i - 1]), (rest / 2, states[i])]
        at = start
        for share, cause in shares:
            if share > 1e-6:
                pieces.append((at, at + share, cause))
                at += share
    return pieces


def _state(r: dict[str, Any], is_bulk: bool, is_paced: bool, mss: int) -> str:
    if r["ca_state"] == LOSS:
        return "timeout"
    if r["notsent"] < mss and r["in_flight"] < r["cwnd"]:
        return "send_buffer" if is_bulk else "application"
    if r["ca_state"] == RECOVERY:
        return "recovery"
    return "pacing" if is_paced and r["in_flight"] < r["cwnd"] else "congestion_window"


def _mark_silence(rows: Sequence[dict[str, Any]], states: list[str]) -> None:
    """The samples before a timeout in which nothing was acknowledged and nothing sent are the timeout's."""
    for i in range(1, len(rows)):
        if rows[i]["ca_state"] == LOSS and rows[i - 1]["ca_state"] != LOSS:
            k = i - 1
            while (
                k > 0
                and rows[k]["delivered"] == rows[i - 1]["delivered"]
                and rows[k]["retransmits"] == rows[i - 1]["retransmits"]
                and rows[k]["notsent"] >= 0
            ):
                states[k] = "timeout"
                k -= 1


def compared(found: Iterable[Piece], true: Iterable[Piece], start: float, end: float, bin_s: float = 0.1) -> Counter[tuple[str, str]]:
    """Seconds by (true, found) between `start` and `end`; within a bin, equal causes meet first."""
    bins = max(1, round((end - start) / bin_s))
    total: Counter[tuple[str, str]] = Counter()
    for t, f in zip(_binned(true, start, bins, bin_s), _binned(found, start, bins, bin_s), strict=True):
        if length := sum(t.values()):
            total.update(_met(t, _scaled(f, length)))
    return total


def _binned(pieces: Iterable[Piece], start: float, bins: int, bin_s: float) -> list[Counter[str]]:
    """Seconds by cause in each bin."""
    shares: list[Counter[str]] = [Counter() for _ in range(bins)]
    for a, b, cause in pieces:
        first, last = max(0, int((a - start) / bin_s)), min(bins - 1, int((b - start) / bin_s))
        for k in range(first, last + 1):
            held = min(b, start + (k + 1) * bin_s) - max(a, start + k * bin_s)
            if held > 0:
                shares[k][cause] += held
    return shares


def _scaled(found: Counter[str], length: float) -> Counter[str]:
    """As much time as the truth has in this bin."""
    whole = sum(found.values())
    return Counter({c: v * length / whole for c, v in found.items()}) if whole else Counter({"unknown": length})


def _met(t: Counter[str], f: Counter[str]) -> Counter[tuple[str, str]]:
    """Equal causes first; what is left of both, in proportion."""
    total: Counter[tuple[str, str]] = Counter()
    for cause in CAUSES:
        if same := min(t[cause], f[cause]):
            total[cause, cause] += same
            t[cause] -= same
            f[cause] -= same
    left = sum(f.values())
    for ct, vt in t.items():
        for cf, vf in f.items():
            if vt * vf > 1e-12:
                total[ct, cf] += vt * vf / left
    return total


def matrix(total: Counter[tuple[str, str]]) -> str:
    """The confusion matrix in per cent of all the time; a row for each true cause."""
    whole = sum(total.values()) or 1.0
    used = [c for c in CAUSES if any(total[t, c] or total[c, t] for t in CAUSES)]
    lines = ["| true \\ found | " + " | ".join(used) + " | right |", "|---" * (len(used) + 2) + "|"]
    for t in used:
        row = sum(total[t, c] for c in used)
        if row:
            cells = [f"{100 * total[t, c] / whole:.2f}" if total[t, c] else "" for c in used]
            lines.append(f"| {t} | " + " | ".join(cells) + f" | {100 * total[t, t] / row:.1f} % |")
    lines.append(f"right: {100 * sum(total[c, c] for c in CAUSES) / whole:.2f} % of the time")
    return "\n".join(lines)


def passed(path: Path, low: float = 0.0, most: int = 3_000) -> dict[tuple[int, int], float]:
    """Sequence number and port of segments with data after `low` → when they passed, s of the trial."""
    raw, at, seen = path.read_bytes(), 24, {}
    while at + 16 <= len(raw) and len(seen) < most:
        s, ns, kept, _ = struct.unpack_from("<IIII", raw, at)
        p, t = raw[at + 16 : at + 16 + kept], s + ns / 1e9
        at += 16 + kept
        ihl = (p[0] & 15) * 4
        if t >= low and p[9] == 6 and struct.unpack_from(">H", p, 2)[0] > ihl + (p[ihl + 12] >> 4) * 4:
            seen.setdefault((struct.unpack_from(">I", p, ihl + 4)[0], struct.unpack_from(">H", p, ihl)[0]), t)
    return seen


def shift(case: Path, name: str) -> float:
    """How much later than at the sender segments pass the place of a capture, s (median of its first)."""
    if name == "sender.pcap":
        return 0.0
    here = passed(case / name)
    there = passed(case / "sender.pcap", min(here.values(), default=0.0) - 2.0, 30_000)
    times = sorted(here[k] - there[k] for k in here if k in there)
    return max(0.0, times[len(times) // 2]) if times else 0.0


def begin(path: Path) -> float:
    """Time of a capture's first packet, s of the trial."""
    s, ns = struct.unpack_from("<II", path.read_bytes()[:32], 24)
    return float(s + ns / 1e9)


def score(case: Path, name: str, bin_s: float = 0.1) -> Counter[tuple[str, str]]:
    """Seconds by (true, found) of a case's first flow, as one of its captures shows it."""
    case_truth = json.loads((case / "truth.json").read_text("utf-8"))
    plan = case_truth["scenario"]["flows"][0]
    samples = pl.read_parquet(case / "info.parquet").filter(pl.col("flow") == 0)
    true = truth(samples, is_bulk=not plan.get("app"), is_paced=plan["cca"] in PACED)
    flow = capture.read(str(case / name)).flows[0]
    found = diagnosis.of_flow(flow, DiagnosisSettings(replay=None)).flow.limits
    later = begin(case / name) - shift(case, name)
    pieces = [(i.start_s + later, i.end_s + later, str(i.cause)) for i in found]
    if not pieces or not true:
        return Counter()
    return compared(pieces, true, max(true[0][0], pieces[0][0]), min(true[-1][1], pieces[-1][1]), bin_s)


def main() -> None:
    """Scores a corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--place", choices=("shown", "sender", "router", "receiver"), default="shown")
    parser.add_argument("--bin", type=float, default=0.1, help="s")
    parser.add_argument("--cases", type=int, default=1_000, help="at most so many")
    arguments = parser.parse_args()
    totals: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for case in sorted(p.parent for p in arguments.corpus.glob("*/truth.json"))[: arguments.cases]:
        facts = json.loads((case / "truth.json").read_text("utf-8"))
        if facts["kind"] == "crowd":  # which of the flows a capture's largest is, the truth does not say
            continue
        total = score(case, f"{arguments.place}.pcap", arguments.bin)
        seconds = sum(total.values())
        if not seconds:
            print(f"{case.name}: nothing to compare", flush=True)
            continue
        right = sum(total[c, c] for c in CAUSES) / seconds
        wrong = [f"{t} as {f} {v / seconds:.2f}" for (t, f), v in total.most_common() if t != f and v > 0.02 * seconds]
        place = facts["shown"]["place"] if arguments.place == "shown" else arguments.place
        print(f"{case.name} {facts['kind']} {facts['cca'][0]} {place}: {right:.3f} {'; '.join(wrong)}", flush=True)
        for key, v in total.items():  # every case counts the same
            totals[place][key] += v / seconds
            totals["all"][key] += v / seconds
    for place, total in totals.items():
        print(f"\n{place}\n{matrix(total)}")


if __name__ == "__main__":
    main()
