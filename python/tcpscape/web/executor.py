"""Campaign code on the pool of the explorer: trials of a :class:`~tcpscape.campaign.execute.Runner` as those of a question."""

from __future__ import annotations

from collections.abc import Sequence

from tcpscape.campaign.executors import local
from tcpscape.campaign.executors.local import Executor, Task, Trials
from tcpscape.web.work import LATER, Job, Work


class OnPool(Executor):
    """Runs trials beside those of other questions, the more urgent first; what nobody wants any more ends."""

    def __init__(self, work: Work, urgency: int = LATER) -> None:
        self._work, self._urgency = work, urgency

    def run(self, task: Task, work: Sequence[local.Work]) -> Trials:
        """Each trial as it ends, already saved. :raises Cancelled: the question is stale."""
        wanted = [(place, one.scenario, seed) for place, one in enumerate(work) for seed in one.seeds if task.claim(place, seed)]
        jobs = [Job(scenario, seed, self._urgency, task.capture) for _, scenario, seed in wanted]
        for i, trial in self._work.trials(jobs, task.engine):
            task.keep([trial])
            yield wanted[i][0], trial
