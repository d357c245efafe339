"""An advice in a result directory: the answer as JSON, and the advice itself made again from the trials that are kept there. Nothing runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tcpscape import engines, formats, writing
from tcpscape.campaign.execute import Runner
from tcpscape.campaign.executors.local import Executor, Task, Trials, Work
from tcpscape.campaign.record import Record
from tcpscape.errors import StoreError, TcpscapeError
from tcpscape.findings.advice.adviser import Adviser
from tcpscape.findings.advice.answer import Advice
from tcpscape.findings.advice.choice import GOALS
from tcpscape.scenario.conditions import Conditions
from tcpscape.store.results import Store

ANSWER = "advice.json"
"""The answer's name in the directory."""


def save(advice: Advice, root: Path) -> Path:
    """Writes the answer; returns the file.

    :raises TcpscapeError: one line, where it cannot be written.
    """
    return writing.whole(root / ANSWER, json.dumps(advice.to_dict(), allow_nan=False, indent=1) + "\n")


def restore(record: Record, root: Path) -> Advice | None:
    """The advice that `root` was measured for; None where it holds something else too, or not all of its trials under this version.

    :raises StoreError: for an answer of a newer format.
    """
    file = root / ANSWER
    if record.kind != "advise" or len(record.parts) != 1 or not file.is_file():
        return None
    outcome = record.outcomes[0]
    if len({tuple(t.seed for t in cell.trials) for cell in outcome.cells}) != 1 or len(outcome.versions) != 1:
        return None
    try:
        answer = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    formats.expect("advice", answer, str(file))
    try:
        path = Conditions.model_validate(outcome.campaign.conditions)
        with Store(root, create=False) as store:
            runner = Runner(engines.make(outcome.campaign.engines[0]), store=store, executor=_OfKept())
            adviser = Adviser(path, outcome.ccas, runner, outcome.campaign.seeds, GOALS[answer["goal"]], taken=answer["taken"], outcome=outcome)
            return adviser.advise()
    except (OSError, ValueError, KeyError, TcpscapeError):
        return None


class _OfKept(Executor):
    """Runs nothing: what is not kept is missing."""

    def run(self, task: Task, work: Sequence[Work]) -> Trials:
        """No trial.

        :raises StoreError: where one would have to run.
        """
        if any(w.seeds for w in work):
            raise StoreError("advice: a trial of it is missing; run again with the same --out")
        yield from ()
