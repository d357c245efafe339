"""What `advise` promises of a larger buffer, against Linux in virtual time: the gain of the setting that it names, under other seeds.

    .venv/bin/python benches/promises.py OUT --cases 30            # each case is kept in OUT

Paths are drawn whose limit is a buffer: RTT 40 to 300 ms, a bottleneck of 10 to 50 Mbit/s with a BDP of at least 600 kB, `tcp_rmem`, `tcp_wmem` or both
of 0.1 to 0.5 BDP (at least 128 KiB), every second one with 0.005 to 0.05 % loss of the data. The advice is the whole one of cubic and bbr with ten seeds of
its default duration; the best buffer that it names then runs on the kernel, with and without, under ten seeds that the advice has not seen.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tcpscape import engines, stats
from tcpscape.campaign.execute import Runner
from tcpscape.findings.advice.adviser import Adviser
from tcpscape.findings.advice.levers import LargerBuffers, Lever
from tcpscape.plots import style
from tcpscape.scenario.fields import validate
from tcpscape.scenario.options import Conditions
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate

CCAS, PROMISED, FRESH = ("cubic", "bbr"), "0..9", range(100, 110)
LEAST_BDP, LEAST_BUFFER = 600_000, 128 * 1024
CLOSE = 0.01
"""Difference of two gains below which nobody would call the promise broken: a deterministic path has an interval of no width."""
PROMISED_COLOUR, KERNEL_COLOUR = "#1f9ede", "#d55e00"
Verdict = Literal["inside", "overlap", "close", "more", "less"]


@dataclass(frozen=True)
class Promise:
    """A gain that was promised, and the kernel's."""

    about: str
    cca: str
    promised: Estimate
    kernel: Estimate

    @property
    def verdict(self) -> Verdict:
        """Where the kernel's gain lies."""
        a, b = self.promised, self.kernel
        if a.low <= b.value <= a.high:
            return "inside"
        if abs(b.value / a.value - 1) < CLOSE:
            return "close"
        if max(a.low, b.low) <= min(a.high, b.high):
            return "overlap"
        return "more" if b.value > a.value else "less"


def draw(i: int) -> tuple[str, Conditions]:
    """Path `i`, in words and as the adviser takes it."""
    r = random.Random(f"buffers {i}")
    while True:
        rtt = math.exp(r.uniform(math.log(40), math.log(300)))
        rate = math.exp(r.uniform(math.log(10), math.log(50)))
        bdp = rate * rtt * 125
        if bdp >= LEAST_BDP:
            break
    names = r.choice((("tcp_rmem_max",), ("tcp_wmem_max",), ("tcp_rmem_max", "tcp_wmem_max")))
    kernel = {name: max(LEAST_BUFFER, round(bdp * r.uniform(0.1, 0.5))) for name in names}
    loss = math.exp(r.uniform(math.log(0.005), math.log(0.05))) if i % 2 else 0.0
    fields: dict[str, Any] = {"rtt": f"{rtt:.1f}ms", "rate": f"{rate:.1f}mbit", "kernel": kernel}
    fields |= {"loss": f"{loss:.4f}%", "loss_on": "forward"} if loss else {}
    sizes = ", ".join(f"{name} {size / bdp:.2f} BDP" for name, size in kernel.items())
    return f"{rtt:.0f} ms, {rate:.0f} Mbit/s, loss {loss:.3f} %, {sizes}", validate(Conditions, fields, "path")


def named(path: Conditions) -> Lever | None:
    """The best larger buffer that the whole advice names; None where it names none."""
    advice = Adviser(path, CCAS, Runner(engines.make("model"), 1), PROMISED).advise()
    return max(
        (lever for lever in advice.levers if lever.is_worthwhile and isinstance(lever.setting, LargerBuffers)),
        key=lambda lever: lever.lead.value,
        default=None,
    )


def measure(i: int) -> dict[str, Any]:
    """Case `i`, plain values."""
    about, path = draw(i)
    lever = named(path)
    if lever is None:
        return {"about": about, "cca": "", "promised": None}
    engine = engines.make("virtual:6.1")

    def goodputs(scenario: Scenario) -> list[float]:
        return [trial.goodput_mbps for trial in engine.run(scenario, FRESH)]

    plain = path.scenario(lever.cca)
    promised = {"value": lever.gain.value, "low": lever.gain.low, "high": lever.gain.high, "n": lever.gain.n}
    return {"about": about, "cca": lever.cca, "promised": promised, "plain": goodputs(plain), "larger": goodputs(lever.setting.on(plain))}


def kept(i: int, out: Path) -> Promise | None:
    """Case `i`, measured unless it is there; None where nothing was promised."""
    file = out / f"{i}.json"
    if not file.exists():
        file.write_text(json.dumps(measure(i)), "utf-8")
    case = json.loads(file.read_text("utf-8"))
    if not case["promised"]:
        return None
    return Promise(case["about"], case["cca"], Estimate(unit="1", **case["promised"]), stats.ratio(case["larger"], case["plain"]))


def figure(promises: Sequence[Promise], stem: Path) -> list[Path]:
    """Draws the kernel's gain over the promised one, with the intervals of both; returns the files."""
    fig, (ax,) = style.panels(1, width=7.5, height=3.4)
    for at, one in enumerate(sorted(promises, key=lambda one: one.promised.value)):
        a, b = one.promised, one.kernel
        ax.plot([at, at], [a.low / a.value, a.high / a.value], color=PROMISED_COLOUR, linewidth=7, alpha=0.5, label="promised, 95 %")
        ax.plot([at, at], [b.low / a.value, b.high / a.value], color=KERNEL_COLOUR, linewidth=1.2, label="Linux 6.1, 95 %")
        ax.plot([at], [b.value / a.value], "o", color=KERNEL_COLOUR, markersize=4, label="Linux 6.1, mean")
    style.y_label([ax], "gain / promised gain")
    ax.set_xlabel("30 paths, from the smallest promise (× 3) to the largest (× 14)")
    ax.set_xticks([])
    title = "What advise promises of a larger buffer, and what it brings on Linux"
    style.finish(fig, [ax], (title, "10 runs each with and without, seeds that the advice has not seen, virtual time"))
    return style.save(fig, stem)


def main() -> None:
    """Measures, and prints a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", type=int, default=30)
    parser.add_argument("--first", type=int, default=0, help="number of the first path, for a run in pieces")
    parser.add_argument("--figure", type=Path, help="where to draw it, without suffix")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    promises, i = [], arguments.first
    while len(promises) < arguments.cases:
        promise = kept(i, arguments.out)
        i += 1
        if promise is None:
            print(f"{i - 1}: nothing is promised", flush=True)
            continue
        promises.append(promise)
        a, b = promise.promised, promise.kernel
        gains = f"promised {a.value:.3f} [{a.low:.3f}, {a.high:.3f}], kernel {b.value:.3f} [{b.low:.3f}, {b.high:.3f}]"
        print(f"{i - 1}: {promise.about}, {promise.cca}: {gains} {promise.verdict}", flush=True)
    if arguments.figure:
        figure(promises, arguments.figure)
    verdicts = [promise.verdict for promise in promises]
    print({verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}, f"of {len(verdicts)}")


if __name__ == "__main__":
    main()
