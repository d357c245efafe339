"""The flow analysis beside tshark (`tcp.analysis`) and tcptrace, on the captures at the sender and at the receiver of the same trials.

    .venv/bin/python benches/flows.py CORPUS [--cases 000,003] [--place sender]

prints, for each case, retransmissions, segments out of order, spurious retransmissions, RTT and throughput as each tool counts them, and the truth: kernel
counters (retransmitted segments), both captures (segments that were lost, and that came after later ones), TCP_INFO. What tshark calls a
retransmission of any kind is added up; tcptrace's retransmissions are its packets that repeat, its RTT is its average.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import fates
from tcpscape import capture

TSHARK = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order", "lost_segment", "duplicate_ack")


def tshark(path: Path, port: int) -> dict[str, float]:
    """Flags of `tcp.analysis` on data packets from `port`, and its least and mean RTT of the ACKs, ms."""
    fields = ["tcp.srcport", "tcp.len", *(f"tcp.analysis.{name}" for name in TSHARK), "tcp.analysis.ack_rtt"]
    command = ["tshark", "-r", str(path), "-Y", f"tcp.port=={port}", "-T", "fields", *(x for f in fields for x in ("-e", f))]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    counts: Counter[str] = Counter()
    rtts = []
    for line in lines:
        source, _, *flags, rtt = line.split("\t")
        if int(source) == port:
            counts.update(name for name, flag in zip(TSHARK, flags, strict=True) if flag)
        elif rtt:
            rtts.append(float(rtt) * 1e3)
    # A fast or spurious retransmission has the flag `retransmission` too.
    return {
        "repeated": counts["retransmission"],
        "spurious": counts["spurious_retransmission"],
        "out_of_order": counts["out_of_order"],
        "rtt_min": min(rtts, default=0.0),
        "rtt_mean": sum(rtts) / max(len(rtts), 1),
    }


def tcptrace(path: Path, port: int) -> dict[str, float]:
    """The same by `tcptrace -lr`, of the direction whose data is of the flow from `port`."""
    text = subprocess.run(["tcptrace", "-lrn", str(path)], capture_output=True, text=True, check=False).stdout
    for block in text.split("TCP connection ")[1:]:
        if f":{port}" not in block:
            continue
        is_first = re.search(r"host \w+:\s+\S+:(\d+)", block)
        column = 0 if is_first and int(is_first.group(1)) == port else 1

        def value(name: str, block: str = block, column: int = column) -> float:
            row = re.search(rf"^\s*{name}:\s+([\d.]+).*?{name}:\s+([\d.]+)", block, re.MULTILINE)
            return float(row.group(1 + column)) if row else float("nan")

        return {
            "repeated": value("rexmt data pkts"),
            "out_of_order": value("outoforder pkts"),
            "rtt_min": value("RTT min"),
            "rtt_mean": value("RTT avg"),
            "mbps": value("throughput") * 8 / 1e6,
        }
    return {}


def case(folder: Path, place: str) -> str:
    """One case's lines."""
    path = folder / f"{place}.pcap"
    flow = capture.read(path).flows[0]
    facts = flow.facts
    ports = (flow.source.port, flow.destination.port)
    sent, received = (fates.wire(folder / f"{end}.pcap", ports, int(facts["segment_size"])) for end in ("sender", "receiver"))
    true = fates.truth(sent, received)
    kernel = json.loads((folder / "truth.json").read_text("utf-8"))["flows"]
    near = min(kernel, key=lambda k: abs(k["goodput_mbps"] - (flow.goodput_mbps or 0)))
    rtt = facts.get("rtt", {})
    ours = {
        "repeated": facts["retransmissions"],
        "out_of_order": facts["reordered"],
        "spurious": facts["spurious"],
        "lost": facts["losses"],
        "rtt_min": rtt.get("min_ms", 0),
        "rtt_mean": rtt.get("mean_ms", 0),
        "mbps": flow.goodput_mbps or 0,
    }
    truth = {
        "repeated": near["retransmits"],
        "out_of_order": len(true.reordered),
        "spurious": near["spurious_retransmits"],
        "lost": len(true.lost),
        "rtt_min": near["min_rtt_ms"],
        "rtt_mean": near["rtt_ms"]["mean"],
        "mbps": near["goodput_mbps"],
    }
    rows = {"truth": truth, "tcpscape": ours, "tshark": tshark(path, ports[0]), "tcptrace": tcptrace(path, ports[0])}
    names = ("repeated", "lost", "out_of_order", "spurious", "rtt_min", "rtt_mean", "mbps")
    lines = [f"{folder.name} {place:8} " + " ".join(f"{n:>12}" for n in names)]
    for tool, values in rows.items():
        cells = (f"{values[n]:12.2f}" if n in values and n in names[4:] else f"{values[n]:12.0f}" if n in values else f"{'-':>12}" for n in names)
        lines.append(f"    {tool:12}" + " ".join(cells))
    return "\n".join(lines)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--place", default="sender", choices=("sender", "receiver"))
    parser.add_argument("--cases", default="")
    options = parser.parse_args()
    chosen = set(options.cases.split(",")) - {""}
    for folder in sorted(p for p in options.corpus.iterdir() if p.is_dir() and (not chosen or p.name in chosen)):
        print(case(folder, options.place), flush=True)


if __name__ == "__main__":
    main()
