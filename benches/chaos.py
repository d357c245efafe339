#!/usr/bin/env python3
"""What the chaos zone is made of: the cell of the chaos-zone study (50 ms, 10 ms jitter) run again and again; the tables of docs/models/methods/chaos.md.

`python benches/chaos.py` takes some minutes on two cores, and runs the real kernel too where it is built (`make kernel`); `--quick` is a look, not a result.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence

import variation
from cliff import RIG, at
from tcpscape import stats
from tcpscape.campaign.execute import Runner
from tcpscape.engines import make
from tcpscape.engines.base import Capture
from tcpscape.findings import chaos, damage
from tcpscape.scenario.conditions import Conditions
from tcpscape.scenario.scenario import TIMER_SLACK, Kernel
from tcpscape.trial import Trial

CCAS = ("cubic", "bbr")
RATES = (5, 10)
"""Application rates of the study, MiB/s."""
FIRST = 200_000
"""First seed."""
SAMPLES_NS = 10_000_000
LONG_NS, LONG_S = 60_000_000_000, 60
LAGS, LENGTHS = (1, 2, 5, 10, 20, 40), (5, 10, 20, 40, 58)
CELL = at(RIG, jitter=10_000_000)
SHOWN = 9
"""Features in a table."""


def trials(path: Conditions, cca: str, n: int, jobs: int, samples_ns: int = 0, engine: str = "model") -> list[Trial]:
    """Runs of a path."""
    return Runner(make(engine), jobs, Capture(samples_ns=samples_ns)).run(path.scenario(cca), range(FIRST, FIRST + n))


def table(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> None:
    """Prints a table in Markdown."""
    print("\n| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def cells(n: int, jobs: int) -> None:
    """Spread, modes and what goes with goodput."""
    runs = {(cca, rate): trials(at(CELL, rate), cca, n, jobs, SAMPLES_NS) for cca in CCAS for rate in RATES}

    def spreads() -> Iterator[Sequence[str]]:
        for (cca, rate), some in runs.items():
            got = [t.goodput_mbps for t in some]
            one_mode = chaos.one_mode(got)
            rtos = stats.mean([float(sum(f.rtos or 0 for f in t.flows)) for t in some])
            yield (
                cca,
                f"{rate} MiB/s",
                str(n),
                stats.mean(got).text(),
                stats.cv(got).text(2),
                f"{one_mode:.2f}",
                f"{min(got):.1f}–{max(got):.1f}",
                rtos.text(2),
            )

    table(("control", "application", "runs", "mean Mbit/s", "CV", "p of one mode", "range", "RTOs a run"), spreads())
    for (cca, rate), some in runs.items():
        shares = variation.explain([t.goodput_mbps for t in some], [variation.features(t, RIG.rtt / 1e6) for t in some])
        print(f"\n{cca}, {rate} MiB/s:")
        keep = [s for s in shares if s.feature in KEPT or s in shares[:SHOWN]]
        table(("feature", "ρ", "share ρ²"), ((s.feature, s.rho.text(2), s.share.text(2)) for s in keep))


KEPT = {
    "rtos",
    "spurious retransmits",
    "least RTT, ms",
    "slow start left at, s",
    "least RTT below 10% of the RTT at, s",
    "least RTT below 2% of the RTT at, s",
}
"""Features shown whatever they explain: the ones that others named as the cause."""


def memories(path: Conditions, n: int, jobs: int, engines: Sequence[str] = ("model",)) -> None:
    """How long the rate remembers, from runs of a minute."""
    found = {}
    for cca, engine in itertools.product(CCAS, engines):
        some = trials(at(path, 10, duration=LONG_NS), cca, n, jobs, 10 * SAMPLES_NS, engine)
        name = f"{cca}, {engine}" if len(engines) > 1 else cca
        found[name] = variation.memory([variation.rates(t.samples, t.flows[0]) for t in some], LAGS, LENGTHS)
    table(("control", *(f"ρ at {k} s" for k in LAGS)), ((cca, *(rho.text(2) for _, rho in m.correlation)) for cca, m in found.items()))
    table(("control", *(f"CV of {k} s" for k in LENGTHS)), ((cca, *(cv.text(2) for _, cv in m.cv)) for cca, m in found.items()))


def ingredients(n: int, jobs: int) -> None:
    """Mean and spread with each ingredient taken away."""

    def rows() -> Iterator[Sequence[str]]:
        for cca in CCAS:
            path = at(CELL, 10)
            full = trials(path, cca, n, jobs)
            for name, some in [("(nothing)", full), *((c.ingredient, trials(c.path, cca, n, jobs)) for c in damage.without(path))]:
                got, moved = [t.goodput_mbps for t in some], damage.achieved(some).data
                delay = f"{moved.mean_ms:.1f} ± {moved.sd_ms:.1f}" if moved else "–"
                yield (
                    cca,
                    name,
                    stats.mean(got).text(),
                    stats.ratio(got, [t.goodput_mbps for t in full]).text(),
                    stats.cv(got).text(2),
                    delay,
                    f"{moved.overtaken:.0%}" if moved else "–",
                )

    table(("control", "without", "mean Mbit/s", "gain", "CV", "delay of the data, ms", "overtaken"), rows())


def main() -> None:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--quick", action="store_true")
    a = p.parse_args()
    cells(30 if a.quick else 300, a.jobs)
    memories(CELL, 20 if a.quick else 150, a.jobs)
    if why := make("virtual").unavailable():
        print(f"\nno real kernel: {why}")
    else:
        memories(CELL.model_copy(update={"kernel": Kernel(), "timer_slack": TIMER_SLACK}), 20 if a.quick else 80, a.jobs, ("virtual", "model"))
    ingredients(20 if a.quick else 100, a.jobs)


if __name__ == "__main__":
    main()
