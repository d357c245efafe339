"""Runs from which the congestion-control classifier learns, and those by which it is measured: random conditions, captured at the sender.

`python benches/control_runs.py DIR --set train --from 0 --to 680` writes `DIR/SET-NNNNN.pcap.gz` (headers alone) and `.json` (scenario, seed, engine, control).
A run is a function of its set and its number alone, so that the same command draws the same conditions; the sets share no random stream.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import struct
import time
from pathlib import Path

import numpy as np

from corpus import CONTROLS as LINUX
from corpus import draw as draw_wide
from tcpscape.engines.base import Engine
from tcpscape.engines.model import Model
from tcpscape.engines.virtual import Virtual
from tcpscape.errors import TcpscapeError
from tcpscape.scenario.scenario import Scenario

SETS = {"train": 1601, "test": 1602, "model": 1603, "wide": 1604, "widetest": 1605}
"""Set → first word of its random streams. `model` has the controls that no Linux 6.1 has, by the model alone; `wide` and `widetest` are of the
conditions of `corpus.py` (more loss and jitter, limited applications, other flows, changes), each control alike."""
MODEL_ONLY = ("bbr3",)
KEPT = 128
"""Bytes kept of each IP packet: the headers with every option."""


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """A number whose logarithm is uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def draw(name: str, number: int) -> tuple[str, dict[str, object], int, str]:
    """Control, scenario, seed and engine of a run."""
    rng = np.random.default_rng([SETS[name], number])
    controls = MODEL_ONLY if name == "model" else LINUX
    control = controls[number % len(controls)]
    engine = "model" if name == "model" or (name in ("train", "wide") and (number // len(LINUX)) % 2) else "virtual"
    if name.startswith("wide"):
        return control, draw_wide(number, f"control-{name}", control).scenario, int(rng.integers(1, 1 << 30)), engine
    rate, rtt = log_uniform(rng, 2, 100), log_uniform(rng, 5, 200)
    buffer = max(log_uniform(rng, 0.25, 4) * rate * 1e6 * rtt / 1e3 / 8, 6 * 1514)
    hop: dict[str, object] = {"at": "router", "delay": f"{rtt / 2:.3f}ms"}
    if rng.random() < 0.5:
        hop["loss"] = f"{log_uniform(rng, 0.01, 1):.4f}%"
    jitter = rng.random()
    if jitter < 0.3:
        hop["jitter"] = f"{rtt / 2 * log_uniform(rng, 0.005, 0.1):.4f}ms"
        if jitter < 0.15:
            hop["rate"] = "1gbit"  # in netem, a rate keeps the order
    ecn = control == "dctcp" or rng.random() < 0.15
    kind, mark = rng.random(), " ecn" if ecn and rng.random() < 0.6 else ""
    bottleneck: dict[str, object] = {"rate": f"{rate:.3f}mbit"}
    if kind < 0.18 or mark:
        bottleneck["queue"] = f"fq_codel{mark}"
    elif kind < 0.36:
        bottleneck |= {"queue": f"pfifo limit {max(6, round(buffer / 1514))}"}
    else:
        bottleneck["buffer"] = f"{round(buffer)}"
    flow: dict[str, object] = {"cca": control}
    limited = rng.random()
    if limited < 0.05:
        flow["rcvbuf"] = f"{max(20_000, round(rng.uniform(0.3, 1.5) * rate * 1e6 * rtt / 1e3 / 8))}"
    elif limited < 0.09:
        flow["app"] = f"{rate * rng.uniform(0.2, 0.8):.3f}mbit"
    duration = 30 + 30 * rng.random() ** 2
    fields: dict[str, object] = {
        "forward": [hop],
        "bottleneck": bottleneck,
        "reverse": {"delay": f"{rtt / 2:.3f}ms"},
        "flows": [flow],
        "kernel": {"profile": "6.1"},
        "duration": f"{duration:.1f}s",
        "ecn": bool(ecn),
        "offload": bool(rng.random() < 0.3),
    }
    if jitter < 0.3 and rng.random() < 0.5:
        fields["reverse"] = {"delay": f"{rtt / 2:.3f}ms", "jitter": f"{rtt / 2 * log_uniform(rng, 0.005, 0.1):.4f}ms"}
    return control, fields, int(rng.integers(1, 1 << 30)), engine


def trimmed(data: bytes) -> bytes:
    """A capture's packets as classic pcap (nanoseconds, raw IP) with :data:`KEPT` bytes each; of classic pcap of raw IP, or pcapng of Ethernet."""
    out = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, KEPT, 101)]
    at, end = (24, len(data)) if data[:4] == b"\x4d\x3c\xb2\xa1" else (0, len(data))
    classic = at == 24
    while at + 12 < end:
        if classic:
            s, ns, kept, size = struct.unpack_from("<IIII", data, at)
            begin, step = at + 16, 16 + kept
        else:
            kind, step = struct.unpack_from("<II", data, at)
            if kind != 6:
                at += step
                continue
            _, high, low, kept, size = struct.unpack_from("<IIIII", data, at + 8)
            s, ns = divmod((high << 32) | low, 10**9)
            begin, kept, size = at + 28 + 14, kept - 14, size - 14
        kept = min(kept, KEPT)
        out += (struct.pack("<IIII", s, ns, kept, size), data[begin : begin + kept])
        at += step
    return b"".join(out)


def run(engine: Engine, name: str, number: int, folder: Path) -> str:
    """Runs one, keeps its capture."""
    control, fields, seed, kind = draw(name, number)
    stem = folder / f"{name}-{number:05d}"
    raw = stem.with_suffix(".raw")
    engine.write_pcap(Scenario.model_validate(fields), seed, raw)
    with gzip.open(f"{stem}.pcap.gz", "wb", compresslevel=1) as f:
        f.write(trimmed(raw.read_bytes()))
    raw.unlink()
    stem.with_suffix(".json").write_text(json.dumps({"control": control, "engine": kind, "number": number, "seed": seed, "scenario": fields}))
    return control


def main() -> None:
    """Runs what the command line asks for, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", choices=SETS, default="train", dest="name")
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--to", type=int, default=34)
    parser.add_argument("--engine", choices=("model", "virtual"), help="only runs of this engine")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    os.nice(10)
    engines: dict[str, Engine] = {"model": Model(), "virtual": Virtual()}
    for number in range(options.first, options.to):
        kind = draw(options.name, number)[3]
        if (options.folder / f"{options.name}-{number:05d}.json").exists() or options.engine not in (None, kind):
            continue
        begin = time.monotonic()
        try:
            control = run(engines[kind], options.name, number, options.folder)
        except (TcpscapeError, ValueError) as e:
            print(f"{options.name} {number}: {str(e).splitlines()[0]}", flush=True)
            continue
        print(f"{options.name} {number}: {control} by {kind}, {time.monotonic() - begin:.1f} s", flush=True)
    Virtual.close()


if __name__ == "__main__":
    main()
