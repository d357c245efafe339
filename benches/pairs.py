#!/usr/bin/env python3
"""Pairs of flows behind dualpi2 beside published runs: the table of docs/models/controls/prague.md.

`python benches/pairs.py` takes a minute. Published: github.com/heistp/l4s-tests, scenario 1, with the L4S kernels of 2020: two flows over `htb rate …; dualpi2` for 180 s,
one run each, the first flow's share of the last minute. Here runs of 90 s, of which the last minute counts. Only these nine of its pairs are at hand.
"""

from __future__ import annotations

import statistics

import numpy as np

from table import MODELS, insert, markdown
from tcpscape.campaign.execute import Runner
from tcpscape.engines import make
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture, Trial

PAGE = MODELS / "controls" / "prague.md"
PUBLISHED = {
    ("10mbit", "cubic 80ms", "prague 80ms"): 0.37,
    ("10mbit", "cubic 20ms", "prague 20ms"): 0.36,
    ("10mbit", "cubic 10ms", "prague 10ms"): 0.32,
    ("10mbit", "cubic 80ms", "prague 20ms"): 0.13,
    ("10mbit", "prague 80ms", "cubic 20ms"): 0.39,
    ("10mbit", "prague 80ms", "prague 20ms"): 0.18,
    ("50mbit", "cubic 80ms", "prague 80ms"): 0.38,
    ("50mbit", "cubic 10ms", "prague 10ms"): 0.27,
    ("50mbit", "prague 80ms", "prague 20ms"): 0.12,
}
"""Rate of the link, the two flows with their RTTs → the first one's share."""
SETTINGS = {
    "`min_qlen_step 2`, `prague_rtt_scaling=0`": ("dualpi2 min_qlen_step 2", "prague:prague_rtt_scaling=0"),
    "`min_qlen_step 2`": ("dualpi2 min_qlen_step 2", "prague"),
    "defaults": ("dualpi2", "prague"),
}
SEEDS = range(4)
SECOND = 1_000_000_000


def scenario(rate: str, pair: tuple[str, str], queue: str, prague: str) -> Scenario:
    """Two flows behind the queue."""
    flows = [{"cca": prague if control == "prague" else control, "rtt": rtt} for control, rtt in (flow.split() for flow in pair)]
    return Scenario.of({"bottleneck": f"htb rate {rate}; {queue}", "flows": flows, "duration": "90s"})


def share(trial: Trial) -> float:
    """The first flow's share of what was acknowledged in the last minute."""
    if trial.samples is None:
        raise ValueError("a trial without samples")
    sums = []
    for number in range(2):
        flow = trial.samples.filter(trial.samples["flow"] == number)
        acked = flow["bytes_acked"].to_numpy().astype(float)
        sums.append(acked[-1] - float(np.interp(30 * SECOND, flow["t_ns"].to_numpy(), acked)))
    return float(sums[0] / sum(sums))


def main() -> None:
    """Runs all pairs and writes the table."""
    runner = Runner(make("model"), 1, Capture(samples_ns=SECOND))
    rows = []
    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in SETTINGS}
    for (rate, first, second), known in PUBLISHED.items():
        row = [f"{rate.removesuffix('mbit')} Mbit/s", f"{first}, {second}", f"{known:.2f}"]
        for name, (queue, prague) in SETTINGS.items():
            ours = statistics.fmean(share(t) for t in runner.run(scenario(rate, (first, second), queue, prague), SEEDS))
            pairs[name].append((known, ours))
            row.append(f"{ours:.2f}")
        rows.append(row)
    rows.append(["", "largest difference", "", *(f"{max(abs(ours - known) for known, ours in each):.2f}" for each in pairs.values())])
    right = [sum((known < 0.5) == (ours < 0.5) for known, ours in each) for each in pairs.values()]
    rows.append(["", "the winner is right", "", *(f"{n} of {len(PUBLISHED)}" for n in right)])
    insert(PAGE, "pairs", markdown(["Link", "flows", "published", *SETTINGS], rows))


if __name__ == "__main__":
    main()
