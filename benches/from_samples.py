"""How well samples of TCP_INFO alone tell a path: `benches/from_samples.py CORPUS [--from N]` on runs with known truth (benches/corpus.py).

Prints a row for each parameter: how many runs, how many were answered, how often the interval holds the truth, errors, widths.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from tcpscape.findings.diagnosis.observed import ObservedFlow, SocketAddress
from tcpscape.findings.diagnosis.path import from_samples
from tcpscape.interchange import trial_flows
from tcpscape.stats import Estimate

FIELDS = ("rtt_ms", "jitter_ms", "rate_mbps", "buffer_bytes", "loss_pct")
ENDS = SocketAddress("10.0.0.1", 1), SocketAddress("10.0.0.2", 2)
Answer = tuple[str, float | None, Estimate | None]
"""Case, truth, what was told."""


def answers(corpus: Path, first: int, every: int) -> Iterator[tuple[str, Answer]]:
    """Each field's answer in each case."""
    for case in sorted(path for path in corpus.iterdir() if (path / "truth.json").exists() and int(path.name) >= first):
        truth = json.loads((case / "truth.json").read_text("utf-8"))
        frame = pl.read_parquet(case / "info.parquet")
        flow = truth["flows"][0]
        columns = {name: values[::every] for name, values in trial_flows.columns(frame.filter(frame["flow"] == 0)).items()}
        columns["options"] = np.full(len(columns["t_s"]), 1.0 if truth["timestamps"] else 0.0)
        facts = {"segment_size": 1448 if truth["timestamps"] else 1460, "reorderings": flow["reord_seen"]}
        seen = ObservedFlow(
            *ENDS, flow["data_segs_out"], flow["bytes_received"], flow["seconds"], 0.0, "sender", flow["goodput_mbps"], facts, samples=columns
        )
        path = from_samples.fit(seen)
        for name in FIELDS:
            if name in ("rtt_ms", "jitter_ms") or not truth["path"]["changes"]:
                yield name, (case.name, truth["path"][name], getattr(path, name))


def row(name: str, found: list[Answer]) -> str:
    """One parameter's line."""
    told = [(case, truth, estimate) for case, truth, estimate in found if estimate is not None]
    known = [(case, truth, estimate) for case, truth, estimate in told if truth is not None]
    held = [estimate.low <= truth <= estimate.high for _, truth, estimate in known]
    errors = np.array([abs(np.log(max(estimate.value, 1e-9) / max(truth, 1e-9))) for _, truth, estimate in known])
    within = ", ".join(f"{share} % {np.mean(errors < share / 100):.2f}" for share in (2, 5, 20))
    missed = ", ".join(case for (case, _, _), holds in zip(known, held, strict=True) if not holds)
    claims = f"{len(told) - len(known)} of what is not there" if len(told) > len(known) else ""
    return f"{name:13} {len(found):4} runs {len(told):4} told {claims:24} interval holds {np.mean(held):.3f}; within {within}; missed: {missed}"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--from", dest="first", type=int, default=0, help="number of the first case")
    parser.add_argument("--every", type=int, default=1, help="one of so many samples is taken, which are 10 ms apart")
    chosen = parser.parse_args()
    found: dict[str, list[Answer]] = {name: [] for name in FIELDS}
    for name, answer in answers(chosen.corpus, chosen.first, chosen.every):
        found[name].append(answer)
    for name, each in found.items():
        print(row(name, each))


if __name__ == "__main__":
    main()
