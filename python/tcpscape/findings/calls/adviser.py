"""The trials that an advice for calls needs: the link without uploads, and each congestion control on it as it is and behind each queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tcpscape import metrics, stats
from tcpscape.campaign.axes import parse_seeds
from tcpscape.campaign.execute import Runner
from tcpscape.findings.calls.answer import CallAdvice
from tcpscape.findings.calls.choice import CallCase, choose
from tcpscape.findings.calls.link import REMEDIES, HomeLink, Remedy
from tcpscape.trial import ProbeResult, Trial

SEEDS = "5"
"""Trials of each case."""


@dataclass
class CallAdviser:
    """Runs the trials, each once, under the same seeds."""

    link: HomeLink
    ccas: Sequence[str]
    runner: Runner
    seeds: str = SEEDS
    remedies: Sequence[Remedy] = REMEDIES
    say: Callable[[str], None] = lambda _: None
    """Called with the name of each stage as it begins."""

    def advise(self) -> CallAdvice:
        """Runs every case and chooses among them."""
        seeds = parse_seeds(self.seeds)
        pairs = self.link.cases(self.ccas, self.remedies)
        self.say("calls beside uploads")
        quiet, *runs = self.runner.run_all([(self.link.scenario(None), seeds), *((self.link.scenario(cca, remedy), seeds) for cca, remedy in pairs)])
        cases = [case_of(cca, remedy, trials) for (cca, remedy), trials in zip(pairs, runs, strict=True)]
        caveats = tuple(sorted({c for trials in (quiet, *runs) for t in trials for c in t.caveats}))
        engine = f"{quiet[0].engine}" if quiet else self.runner.engine.spec
        return CallAdvice(self.link, case_of("", None, quiet), tuple(cases), choose(cases), len(seeds), engine, caveats)


def case_of(cca: str, remedy: Remedy | None, trials: Sequence[Trial]) -> CallCase:
    """What the trials of one case say."""
    score = metrics.find("voice_mos").of
    return CallCase(
        cca, remedy,
        score=stats.mean([score(t) for t in trials], "1"),
        delay=stats.mean([_up(t).delay_ms.p95 or float("nan") for t in trials], "ms"),
        lost=stats.mean([max(p.loss for p in t.probes) for t in trials], "1"),
        upload=stats.mean([sum(f.goodput_mbps for f in t.flows) for t in trials], "Mbit/s"),
    )  # fmt: skip


def _up(trial: Trial) -> ProbeResult:
    """The call's way up."""
    return next(p for p in trial.probes if p.direction == "up")
