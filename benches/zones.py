"""The zone of a path against the cliff of its flow's control: the model on the true path, and the published rule, against a real kernel.

    .venv/bin/python benches/zones.py OUT --cases 37            # virtual runs are kept in OUT

Paths are drawn where the cliff is: RTT 10 to 200 ms, jitter 6 to 25 % of it (the first ten from 1 %), on both directions or on the data, 10 to
60 Mbit/s (the first ten from 3), a buffer of 0.5 to 4 bandwidth-delay products, three of ten with loss. The truth is 12 runs with the jitter and
12 without, of 12 s each, judged as levels of a cliff are.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from replays import settings, side, without_jitter
from tcpscape import engines
from tcpscape.findings.diagnosis.fitted import Direction, FittedPath, RecognisedControl
from tcpscape.findings.diagnosis.observed import ObservedFlow, SocketAddress
from tcpscape.findings.diagnosis.replay import zone
from tcpscape.findings.diagnosis.replay.lab import open_lab
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate

RUNS, SECONDS = 12, 12.0
CCAS = ("cubic", "cubic", "cubic", "bbr", "reno", "reno", "htcp", "westwood", "illinois", "scalable")
GENTLE = 10
"""Cases that are drawn from a wider range."""
SURE = 0.95
"""Share of the resampled runs on one side from which the truth is sure."""


@dataclass(frozen=True)
class Case:
    """A path and a control."""

    rtt: float
    jitter: float
    on: Direction
    rate: float
    buffer: int
    cca: str
    loss: float

    @property
    def plain(self) -> dict[str, Any]:
        """Its scenario."""
        each: dict[str, Any] = {"at": "router", "delay": f"{self.rtt / 2:.4f}ms"}
        jittery = {**each, "jitter": f"{self.jitter:.4f}ms", "distribution": "normal"}
        return {
            "forward": [{**jittery, **({"loss": f"{self.loss:.4f}%"} if self.loss else {})}],
            "reverse": [jittery if self.on == "both" else each],
            "bottleneck": [{"rate": f"{self.rate:.4f}mbit", "buffer": self.buffer}],
            "flows": [{"cca": self.cca}],
            "duration": f"{SECONDS:g}s",
        }

    @property
    def path(self) -> FittedPath:
        """Its path, known exactly."""

        def exactly(value: float, unit: str) -> Estimate:
            return Estimate(value, value * 0.98, value * 1.02, 50, unit)

        back = self.jitter if self.on == "both" else 0.0
        return FittedPath(
            exactly(self.rtt, "ms"),
            exactly(self.jitter, "ms"),
            self.on,
            exactly(self.jitter, "ms"),
            exactly(back, "ms"),
            "normal",
            False,
            None,
            exactly(self.loss, "%"),
            None,
            exactly(self.rate, "Mbit/s"),
            exactly(self.buffer, "bytes"),
            "self-induced",
        )


def draw(i: int) -> Case:
    """Case `i`."""
    r = random.Random(f"zone {i}")
    rtt = math.exp(r.uniform(math.log(10), math.log(200)))
    jitter = rtt * math.exp(r.uniform(math.log(0.01 if i < GENTLE else 0.06), math.log(0.25)))
    on: Direction = r.choice(("both", "forward"))
    rate = math.exp(r.uniform(math.log(3 if i < GENTLE else 10), math.log(40 if i < GENTLE else 60)))
    buffer = max(15_140, int(rate * rtt * 125 * math.exp(r.uniform(math.log(0.5), math.log(4)))))
    cca = r.choice(CCAS)
    loss = 0.0 if r.random() < 0.7 else math.exp(r.uniform(math.log(0.02), math.log(1)))
    return Case(rtt, jitter, on, rate, buffer, cca, loss)


def truth(case: Case, kept: Path) -> dict[str, Any]:
    """The virtual engine's runs with the jitter and without, kept in a file."""
    if not kept.exists():
        engine = engines.make("virtual")
        both = [[t.goodput_mbps for t in engine.run(Scenario.of(plain), range(RUNS))] for plain in (case.plain, without_jitter(case.plain))]
        kept.write_text(json.dumps({"own": case.cca, "goodputs": {case.cca: both[0]}, "calm": both[1]}), "utf-8")
    return dict(json.loads(kept.read_text("utf-8")))


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", type=int, default=37)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for i in range(arguments.cases):
        case = draw(i)
        answer = truth(case, arguments.out / f"{i}.json")
        where, sure = side(answer)
        ends = (SocketAddress("10.0.0.1", 1), SocketAddress("10.0.0.2", 2))
        flow = ObservedFlow(*ends, None, None, SECONDS, 0.0, "sender", answer["goodputs"][case.cca][0])
        lab = open_lab(flow, case.path, RecognisedControl(case.cca, 1.0), settings())
        assert not isinstance(lab, str)
        found = zone.of(lab)
        rows.append((found.side == where, sure >= SURE, found.published == where))
        said = f"{case.cca} jitter/RTT {case.jitter / case.rtt:.3f} true {where} ({sure:.2f}) model {found.side} rule {found.published}"
        print(i, said, "" if found.side == where else "WRONG", flush=True)
    all_, certain = np.array(rows), np.array([r for r in rows if r[1]])
    print(f"zone right {100 * all_[:, 0].mean():.1f} % of {len(all_)}; of the sure {100 * certain[:, 0].mean():.1f} % of {len(certain)};", end=" ")
    print(f"the published rule {100 * all_[:, 2].mean():.1f} %")


if __name__ == "__main__":
    main()
