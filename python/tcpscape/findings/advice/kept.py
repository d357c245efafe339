"""An advice in a result directory: the answer as JSON, and the advice itself made again from the trials that are kept there. Nothing runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpscape import engines, formats, writing
from tcpscape.campaign.execute import Runner
from tcpscape.campaign.executors.local import Executor, Task, Trials, Work
from tcpscape.campaign.record import Record
from tcpscape.errors import StoreError, TcpscapeError
from tcpscape.findings.advice.adviser import Adviser
from tcpscape.findings.advice.answer import Advice
from tcpscape.findings.advice.choice import GOALS
from tcpscape.reading import documents
from tcpscape.reading import files as reading
from tcpscape.reading.files import MIB, Kind, Origin
from tcpscape.scenario.conditions import Conditions
from tcpscape.store.results import Store

KEPT = Kind("a kept advice", "run advise again with the same --out", most=64 * MIB, error=StoreError)
ANSWER = "advice.json"
"""The answer's name in the directory."""


@dataclass(frozen=True)
class KeptAnswer:
    """What is read again of an answer: all else is made again from the trials."""

    goal: str
    taken: tuple[str, ...]


def save(document: Mapping[str, Any], root: Path) -> Path:
    """Writes the document of an answer; returns the file.

    :raises TcpscapeError: one line, where it cannot be written.
    """
    return writing.whole(root / ANSWER, json.dumps(document, allow_nan=False, indent=1) + "\n")


def restore(record: Record, root: Path) -> Advice | None:
    """The advice that `root` was measured for; None where it holds something else too, or not all of its trials under this version.

    :raises StoreError: for an answer of a newer format.
    """
    file = root / ANSWER
    if record.kind != "advise" or len(record.parts) != 1 or not reading.exists(file, KEPT, "out"):
        return None
    outcome = record.outcomes[0]
    if len({tuple(t.seed for t in cell.trials) for cell in outcome.cells}) != 1 or len(outcome.versions) != 1:
        return None
    answer = read(file)
    if answer is None:
        return None
    try:
        path = Conditions.model_validate(outcome.campaign.conditions)
        with Store(root, create=False) as store:
            runner = Runner(engines.make(outcome.campaign.engines[0]), store=store, executor=_OfKept())
            adviser = Adviser(path, outcome.ccas, runner, outcome.campaign.seeds, GOALS[answer.goal], taken=answer.taken, outcome=outcome)
            return adviser.advise()
    except (ValueError, KeyError, TcpscapeError):
        return None


def read(file: Path) -> KeptAnswer | None:
    """The answer in a file; None where it is damaged: the trials are there all the same.

    :raises StoreError: for an answer of a newer format.
    """
    try:
        values = documents.json_file(file, KEPT, "out")
    except StoreError:
        return None
    formats.expect("advice", values, str(file))
    try:
        return documents.as_type(KeptAnswer, values, Origin(str(file), KEPT, "out"))
    except StoreError:
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
