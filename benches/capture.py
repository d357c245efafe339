#!/usr/bin/env python3
"""How fast captures are read and analysed, and in how much memory; beside it tshark's `tcp.analysis` on the same file.

CPU seconds of one process each, so that what else runs on the machine counts little; the machine's load is printed beside. The packets are those of a
recorded transfer (`record`, a virtual-engine trial with jitter, loss and SACK), repeated as many flows that run at the same time; the stream of
gigabytes is made on the way and goes to standard input, so that no disk counts.

    benches/capture.py record FILE          a transfer to start from
    benches/capture.py speed FILE           packets per CPU second, of one flow and of many, and the ratio to tshark
    benches/capture.py memory FILE --gb 10  peak memory and time of a stream
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np

READ = "import sys; from tcpscape import capture; o = capture.read(sys.argv[1]); print(o.facts['packets'], len(o.flows), sum(len(f.segments.get('t', ())) for f in o.flows))"
"""What is measured: the number of packets, of flows, and of rows kept."""
RECORDED = (
    "run",
    "--forward",
    "netem delay 25ms 3ms loss 0.1%",
    "--bottleneck",
    "tbf rate 20mbit burst 10kb limit 200kb",
    "--reverse",
    "netem delay 25ms",
    "--cca",
    "cubic",
    "--duration",
    "30s",
    "--engine",
    "virtual",
    "--seeds",
    "1",
    "--quiet",
)
GOALS = {"packets per second": 1e6, "ratio to tshark": 20.0, "memory, MB": 200.0}
"""Of issue 16."""


class Transfer:
    """The records of a pcap file with raw IPv4 (nanoseconds, little-endian)."""

    def __init__(self, file: Path) -> None:
        raw = file.read_bytes()
        self.header, self.records = raw[:24], []
        at = 24
        while at < len(raw):
            length = 16 + int.from_bytes(raw[at + 8 : at + 12], "little")
            self.records.append(np.frombuffer(raw[at : at + length], np.uint8))
            at += length
        self.server = int.from_bytes(bytes(self.records[0][16 + 22 : 16 + 24]), "big")
        """The port that the first packet, a SYN, goes to."""

    def stream(self, flows: int, most: float) -> Iterator[bytes]:
        """The transfer as so many flows at once, again and again from new ports, until `most` bytes: chunks of about a megabyte."""
        total, waiting, size = len(self.header), [self.header], 0
        for again in range(1 << 20):
            for record in self.records:
                rows = np.tile(record, (flows, 1))
                self._rename(rows, again)
                waiting.append(rows.tobytes())
                size += rows.size
                total += rows.size
                if size >= 1 << 20:
                    yield b"".join(waiting)
                    waiting, size = [], 0
                if total >= most:
                    yield b"".join(waiting)
                    return

    def _rename(self, rows: np.ndarray, again: int) -> None:
        """Each row another client address and, each time, another client port; times go on."""
        number = np.arange(len(rows))
        from_client = int.from_bytes(bytes(rows[0][16 + 22 : 16 + 24]), "big") == self.server
        address, port = (16 + 12, 16 + 20) if from_client else (16 + 16, 16 + 22)
        rows[:, address + 1] = 1 + number // 65_536
        rows[:, address + 2] = number // 256 % 256
        rows[:, address + 3] = number % 256
        rows[:, port : port + 2] = np.frombuffer((1024 + again % 60_000).to_bytes(2, "big"), np.uint8)
        seconds = int.from_bytes(bytes(rows[0][:4]), "little") + 100 * again
        rows[:, :4] = np.frombuffer(seconds.to_bytes(4, "little"), np.uint8)


def measured(command: list[str], stdin: Iterator[bytes] | None = None) -> tuple[float, float, str]:
    """CPU seconds, peak memory in MB and output of a command."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE if stdin else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    feeder = threading.Thread(target=_feed, args=(process, stdin)) if stdin else None
    if feeder:
        feeder.start()
    assert process.stdout is not None
    output = process.stdout.read().decode()
    if feeder:
        feeder.join()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command[0]} ended with {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3, output.strip()


def _feed(process: subprocess.Popen[bytes], chunks: Iterator[bytes]) -> None:
    assert process.stdin is not None
    for chunk in chunks:
        process.stdin.write(chunk)
    process.stdin.close()


def speed(file: Path, repetitions: int) -> None:
    """Prints a row for one flow and for many: packets per CPU second, without the interpreter's start, and the ratio to tshark."""
    transfer = Transfer(file)
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder, "empty.pcap")
        empty.write_bytes(transfer.header + transfer.records[0].tobytes())
        begin = min(measured([sys.executable, "-c", READ, str(empty)])[0] for _ in range(repetitions))
        print(f"load {os.getloadavg()[0]:.1f}; {begin:.2f} CPU s to start, taken off")
        print(f"{'flows':>6} {'packets':>9} {'CPU s':>7} {'M packets/s':>12} {'tshark CPU s':>13} {'ratio':>6}")
        for flows, size in ((1, 100e6), (100, 100e6), (2_000, 300e6)):
            path = Path(folder, "flows.pcap")
            with path.open("wb") as out:
                out.writelines(transfer.stream(flows, size))
            ours = [measured([sys.executable, "-c", READ, str(path)]) for _ in range(repetitions)]
            packets, seconds = int(ours[0][2].split()[0]), min(o[0] for o in ours) - begin
            theirs = tshark(path) if shutil.which("tshark") else float("nan")
            print(f"{flows:>6} {packets:>9} {seconds:>7.2f} {packets / seconds / 1e6:>12.2f} {theirs:>13.2f} {theirs / seconds:>6.1f}", flush=True)


def tshark(file: Path) -> float:
    """CPU seconds in which tshark counts the retransmissions of a file."""
    count = "tcp.analysis.retransmission"
    return measured(["tshark", "-n", "-r", str(file), "-q", "-z", f"io,stat,0,COUNT({count}){count}"])[0]


def memory(file: Path, gb: float, flows: int) -> None:
    """Prints the peak memory of reading a stream of so many GB."""
    seconds, most, output = measured([sys.executable, "-c", READ, "-"], Transfer(file).stream(flows, gb * 1e9))
    packets, kept, rows = (int(n) for n in output.split())
    print(f"{gb:g} GB, {flows} flows at once: {packets} packets, {kept} flows and {rows} rows kept, {most:.0f} MB, {seconds:.1f} CPU s", end=", ")
    print(f"{packets / seconds / 1e6:.2f} M packets/s, load {os.getloadavg()[0]:.1f}")


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "speed", "memory"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--gb", type=float, default=10)
    parser.add_argument("--flows", type=int, default=2_000)
    parser.add_argument("--repetitions", type=int, default=3)
    given = parser.parse_args()
    if given.what == "record":
        subprocess.run([Path(sys.executable).with_name("tcpscape"), *RECORDED, "--pcap", given.file], check=True)
    elif given.what == "speed":
        speed(given.file, given.repetitions)
    else:
        memory(given.file, given.gb, given.flows)


if __name__ == "__main__":
    main()
