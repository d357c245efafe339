"""The question `network`: what groups of flows, transfers and probes of the state's path get, as `tcpscape run` prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field
from typing_extensions import TypedDict

from tcpscape.campaign import outcome
from tcpscape.text.table import Table
from tcpscape.trial import Trial
from tcpscape.web.pool import FIRST, LATER, Job, Work
from tcpscape.web.questions import Question
from tcpscape.web.questions.runs import Planned, expect_room
from tcpscape.web.state import State
from tcpscape.web.stream import Block
from tcpscape.words import campaign as words


class ShownTable(TypedDict):
    """A table of the answer."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    left: int
    """Number of columns with words; the others have numbers."""


class NetworkAnswer(TypedDict):
    """The values of the block `network`: the answer over the runs so far."""

    n: int
    """Runs so far."""
    wanted: int
    sentences: list[str]
    """What is to be said besides the answer, which the page has above."""
    tables: list[ShownTable]
    caveats: list[str]


class Network(Question):
    """Sends a `network` after the first run of each congestion control, and after all runs."""

    kind: ClassVar[str] = "network"
    blocks: ClassVar[Mapping[str, Any]] = {"network": NetworkAnswer}
    seeds: int = Field(default=5, ge=1, le=100)

    def answer(self, state: State, work: Work, opened: Any) -> None:
        """Runs the first seed of every congestion control first."""
        campaign = state.campaign()
        cases = campaign.cases()
        expect_room(self.seeds * len(cases), Planned.of(cases[0]))
        jobs = [(i, Job(case.scenario, seed, LATER if seed else FIRST)) for seed in range(self.seeds) for i, case in enumerate(cases)]
        trials: list[dict[int, Trial]] = [{} for _ in cases]
        sent = 0
        for place, trial in work.trials([job for _, job in jobs]):
            trials[jobs[place][0]][trial.seed] = trial
            n = next(n for n in range(self.seeds + 1) if n == self.seeds or any(n not in of_case for of_case in trials))
            if n == sent or n not in (1, self.seeds):
                continue
            sent, of_cases = n, [[of_case[seed] for seed in range(n)] for of_case in trials]
            screen = words.run_screen(outcome.gather(campaign, cases, of_cases, {"model": trial.version}), wide=True)
            answer = NetworkAnswer(
                n=n,
                wanted=self.seeds,
                sentences=list(screen.remarks),
                tables=[_shown(table) for table in screen.tables if isinstance(table, Table)],
                caveats=list(screen.caveats),
            )
            work.send(Block("network", answer))


def _shown(table: Table) -> ShownTable:
    """A table of a screen as texts."""
    return ShownTable(title=table.title, columns=list(table.columns), rows=[[str(cell) for cell in row] for row in table.rows], left=table.left)
