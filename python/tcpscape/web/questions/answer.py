"""The question `answer`: which congestion control carries how much, as a sentence that becomes surer as the runs come in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tcpscape.campaign import outcome, sentences
from tcpscape.trial import Trial
from tcpscape.web.blocks import Block
from tcpscape.web.questions.base import Question
from tcpscape.web.state import State
from tcpscape.web.work import FIRST, Job, Work


class Answer(Question):
    """The sentence for the state as it is. Sends `answer` blocks: `text`, `n` (trials of each congestion control so far)."""

    kind: ClassVar[str] = "answer"
    seeds: int = 20
    """Trials of each congestion control."""

    def answer(self, state: State, work: Work, opened: Any) -> None:
        """Runs seed after seed of every congestion control and sends the sentence of what is there."""
        campaign = state.campaign()
        cases = campaign.cases()
        jobs = [Job(case.scenario, seed, FIRST) for seed in range(self.seeds) for case in cases]
        runs: list[list[Trial]] = [[] for _ in cases]
        for place, trial in work.trials(jobs):
            runs[place % len(cases)].append(trial)
            if len({len(r) for r in runs}) == 1:
                ordered: Sequence[Sequence[Trial]] = [sorted(r, key=lambda t: t.seed) for r in runs]
                text = sentences.run_answer(outcome.gather(campaign, cases, ordered, {"model": trial.version}))
                work.send(Block("answer", {"text": text, "n": len(runs[0])}))
