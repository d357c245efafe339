#!/usr/bin/env python3
"""What the chaos zone is made of: the cell of the chaos-zone study (50 ms, 10 ms jitter) run again and again; the tables of docs/models/methods/chaos.md.

`python benches/chaos.py` takes some minutes on two cores; `--only PART` writes a part, `--only kernel` those of a real kernel (`make kernel`), `--quick` prints a look.
"""

from __future__ import annotations

import argparse
import functools
import itertools
from collections.abc import Mapping, Sequence

import variation
from cliff import RIG, at
from table import MODELS, insert, markdown
from tcpscape import stats
from tcpscape.campaign.execute import Runner
from tcpscape.engines import make
from tcpscape.findings import damage
from tcpscape.findings.cliff import levels
from tcpscape.scenario.options import Conditions
from tcpscape.scenario.scenario import TIMER_SLACK, Kernel
from tcpscape.trial import Capture, Trial

CCAS = ("cubic", "bbr")
RATES = (5, 10)
"""Application rates of the study, MiB/s."""
FIRST = 200_000
"""First seed."""
SAMPLES_NS = 10_000_000
LONG_NS, LONG_S = 60_000_000_000, 60
LAGS, LENGTHS = (1, 2, 5, 10, 20, 40), (5, 10, 20, 40, 58)
CELL = at(RIG, jitter=10_000_000)
PAGE = MODELS / "methods" / "chaos.md"
Runs = Mapping[tuple[str, int], list[Trial]]
"""The runs of each control at each application rate."""


def trials(path: Conditions, cca: str, n: int, jobs: int, samples_ns: int = 0, engine: str = "model") -> list[Trial]:
    """Runs of a path."""
    return Runner(make(engine), jobs, Capture(samples_ns=samples_ns)).run(path.scenario(cca), range(FIRST, FIRST + n))


def spread(runs: Runs) -> str:
    """Mean, spread and modes of each control's runs."""
    rows = []
    for (cca, rate), some in runs.items():
        goodputs = [t.goodput_mbps for t in some]
        rtos = stats.mean([float(sum(f.rtos or 0 for f in t.flows)) for t in some])
        rows.append(
            [
                cca,
                f"{rate} MiB/s",
                len(some),
                stats.mean(goodputs).text(),
                stats.cv(goodputs).text(2),
                f"{levels.one_mode(goodputs):.2f}",
                f"{min(goodputs):.1f}–{max(goodputs):.1f}",
                rtos.text(2),
            ]
        )
    return markdown(["control", "application", "runs", "mean Mbit/s", "CV", "p of one mode", "range", "RTOs a run"], rows)


def shares(runs: Runs) -> str:
    """What goes with goodput: ρ² of each feature with the sign of ρ."""
    found = {
        key: {s.feature: s for s in variation.explain([t.goodput_mbps for t in some], [variation.features(t, RIG.rtt / 1e6) for t in some])}
        for key, some in runs.items()
    }

    def cell(share: variation.FeatureShare | None) -> str:
        return f"{'−' if share.rho.value < 0 else '+'} {share.share.text(2)}" if share else "–"

    heads = [f"{cca}, {rate} MiB/s" for cca, rate in runs]
    rows = [[feature, *(cell(each.get(feature)) for each in found.values())] for feature in FEATURES]
    return markdown(["share ρ² (sign of ρ)", *heads], rows)


FEATURES = (
    "window after 1 s, segments",
    "window after 2 s, segments",
    "window after 3 s, segments",
    "least RTT, ms",
    "least RTT below 10% of the RTT at, s",
    "least RTT below 2% of the RTT at, s",
    "recoveries that were not undone",
    "fast recoveries",
    "undos",
    "spurious retransmits",
    "retransmits",
    "slow start left at, s",
    "rtos",
)
"""What may go with goodput, in the order of the table."""


def memories(path: Conditions, n: int, jobs: int, engines: Sequence[str] = ("model",)) -> tuple[str, str]:
    """How long the rate remembers, and the spread over its first seconds, from runs of a minute."""
    found = {}
    for cca, engine in itertools.product(CCAS, engines):
        some = trials(at(path, 10, duration=LONG_NS), cca, n, jobs, 10 * SAMPLES_NS, engine)
        name = f"{cca}, {engine}" if len(engines) > 1 else cca
        found[name] = variation.memory([variation.rates(t.samples, t.flows[0]) for t in some], LAGS, LENGTHS)
    return (
        markdown(["control", *(f"ρ at {k} s" for k in LAGS)], [[cca, *(rho.text(2) for _, rho in m.correlation)] for cca, m in found.items()]),
        markdown(["control", *(f"CV of {k} s" for k in LENGTHS)], [[cca, *(cv.text(2) for _, cv in m.cv)] for cca, m in found.items()]),
    )


def ingredients(n: int, jobs: int) -> str:
    """Mean and spread with each ingredient taken away."""
    rows = []
    for cca in CCAS:
        path = at(CELL, 10)
        full = trials(path, cca, n, jobs)
        for name, some in [("(nothing)", full), *((c.ingredient, trials(c.path, cca, n, jobs)) for c in damage.without(path))]:
            goodputs, moved = [t.goodput_mbps for t in some], damage.achieved(some).data
            rows.append(
                [
                    cca,
                    name,
                    stats.mean(goodputs).text(),
                    stats.ratio(goodputs, [t.goodput_mbps for t in full]).text(),
                    stats.cv(goodputs).text(2),
                    f"{moved.mean_ms:.1f} ± {moved.sd_ms:.1f}" if moved else "–",
                    f"{moved.overtaken:.0%}" if moved else "–",
                ]
            )
    return markdown(["control", "without", "mean Mbit/s", "gain", "CV", "delay of the data, ms", "overtaken"], rows)


def main() -> None:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--quick", action="store_true")
    p.add_argument("--only", choices=("cells", "memory", "kernel", "ingredients"))
    a = p.parse_args()
    wanted = lambda part: a.only in (None, part)  # noqa: E731
    write = (lambda _, text: print(text)) if a.quick else functools.partial(insert, PAGE)
    if wanted("cells"):
        runs = {(cca, rate): trials(at(CELL, rate), cca, 30 if a.quick else 300, a.jobs, SAMPLES_NS) for cca in CCAS for rate in RATES}
        write("spread", spread(runs))
        write("shares", shares(runs))
    if wanted("memory"):
        for name, text in zip(("memory", "lengths"), memories(CELL, 20 if a.quick else 150, a.jobs), strict=True):
            write(name, text)
    if a.only == "kernel":
        path = CELL.model_copy(update={"kernel": Kernel(), "timer_slack": TIMER_SLACK})
        for name, text in zip(
            ("memory of Linux", "lengths of Linux"), memories(path, 20 if a.quick else 80, a.jobs, ("virtual", "model")), strict=True
        ):
            write(name, text)
    if wanted("ingredients"):
        write("ingredients", ingredients(20 if a.quick else 100, a.jobs))


if __name__ == "__main__":
    main()
