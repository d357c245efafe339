"""The question `mix`: how the flows of the state's mixture share the bottleneck, in one run over time and over many seeds."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from tcpscape import metrics
from tcpscape.campaign import outcome, sentences
from tcpscape.campaign.outcome import Outcome
from tcpscape.engines import Capture
from tcpscape.errors import refuse
from tcpscape.findings import fairness
from tcpscape.interchange.base import HEADERS
from tcpscape.stats import Estimate
from tcpscape.trial import Trial
from tcpscape.web.blocks import Block
from tcpscape.web.inside import sharing
from tcpscape.web.questions.base import Question, Seed
from tcpscape.web.state import State
from tcpscape.web.work import FIRST, LATER, Job, Work

MOST_SAMPLES = 4_000_000
"""Most samples of all flows in all runs, which are kept until the question is answered: 600 MB."""


class Mix(Question):
    """Sends `shares` of one run, and after each run a `verdict`.

    A `verdict` has the sentence `text` of the runs so far, their number `n` of `wanted`, Jain's index (`jain` over whole transfers, `jain_overlap`
    while all run), for each group of flows its share (`whole`, `overlap`) with the `equal` one, how long it takes until shares are fair, and how
    often a flow starves.
    """

    kind: ClassVar[str] = "mix"
    seed: Seed = 0
    """The seed of the run whose shares are shown over time."""
    seeds: int = Field(default=20, ge=1, le=100)
    """Runs over which shares are estimated."""

    def answer(self, state: State, work: Work, opened: Any) -> None:
        """Runs the shown seed first."""
        if not state.mix:
            refuse("mix", "there are no flows in it", "add one, for example cubic*2,bbr")
        campaign = state.campaign()
        [case] = campaign.cases()
        _expect_room(case.scenario.flow_count, self.seeds)
        every_ns = sharing.bin_ns(case.scenario.duration, case.scenario.rtt_ns)
        capture = Capture.union([Capture(samples_ns=every_ns // sharing.SAMPLES_PER_BIN), metrics.SAMPLED])
        seeds = [self.seed, *(seed for seed in range(self.seeds) if seed != self.seed)]
        jobs = [Job(case.scenario, seed, FIRST if seed == self.seed else LATER, capture) for seed in seeds]
        trials: list[Trial] = []
        sharings: dict[int, fairness.Sharing] = {}
        for place, trial in work.trials(jobs):
            if place == 0:
                work.send(sharing.over_time(trial, every_ns, case.scenario.mtu - HEADERS))
            if trial.seed >= self.seeds:
                continue
            trials.append(trial)
            sharings[trial.seed] = fairness.measure(trial)
            gathered = outcome.gather(campaign, [case], [sorted(trials, key=lambda t: t.seed)], {"model": trial.version})
            work.send(self._verdict(gathered, fairness.judge([sharings[seed] for seed in sorted(sharings)])))

    def _verdict(self, of: Outcome, judged: fairness.Fairness) -> Block:
        cell = of.cells[0]
        groups = [
            {"name": name, "equal": equal, "whole": _plain(whole), "overlap": _plain(overlap)}
            for name, equal, whole, overlap in zip(judged.names, judged.fair, judged.whole, judged.overlap, strict=True)
        ]
        return Block("verdict", {
            "text": sentences.run_answer(of), "n": len(cell.trials), "wanted": self.seeds, "groups": groups,
            "jain": _plain(cell.mean("jain")), "jain_overlap": _plain(judged.jain_overlap), "fair_after_s": _plain(judged.fair_after_s),
            "became_fair": judged.became_fair, "starved": judged.starved, "caveats": cell.trials[0].caveats,
        })  # fmt: skip


def _expect_room(flows: int, seeds: int) -> None:
    """Refuses runs whose samples would fill the memory. :raises TcpscapeError: one line."""
    most = MOST_SAMPLES // (sharing.BINS * sharing.SAMPLES_PER_BIN)
    if flows * seeds > most:
        refuse("mix", f"{seeds} runs of {flows} flows would be kept, and at most {most} flows are", "take fewer flows or runs")


def _plain(estimate: Estimate) -> dict[str, float]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}
