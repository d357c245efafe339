"""Runs a study under its own conditions, and judges every claim of the result."""

from __future__ import annotations

from collections.abc import Sequence

from tcpscape.campaign import execute
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Execution
from tcpscape.campaign.record import Record
from tcpscape.engines import Engine
from tcpscape.errors import TcpscapeError
from tcpscape.studies import known, measures
from tcpscape.studies.result import Result
from tcpscape.studies.study import Study, of
from tcpscape.studies.verdict import JudgedStudy


def run(study: Study, execution: Execution = Execution()) -> Result:
    """Runs every part; the samples that the metrics of its claims and of its published numbers need are recorded."""
    return Result(study, {part.name: execute.run(_with_metrics(study, part), execution) for part in study.parts})


def read(record: Record) -> Result | None:
    """The study of a record, with the parts that it has and the claims about them; None where the record is not of a study."""
    if record.study is None:
        return None
    study = of(record.study, "manifest")
    names = [part.name for part in study.parts if part.name in record.parts]
    return Result(study if len(names) == len(study.parts) else study.only(names), record.parts)


def judge(result: Result) -> JudgedStudy:
    """The result with a verdict on every claim. This may take seconds: judge a result once and pass the answer on."""
    return JudgedStudy(result, tuple(measures.judge(result, claim) for claim in result.study.claims))


def runnable(study: Study, engines: Sequence[Engine]) -> tuple[Study, tuple[str, ...]]:
    """The study with only those parts that every one of `engines` can run, and a sentence for each part that is left out.

    For example, a real kernel has no BBR version 3 and no jitter that keeps the order of packets.

    :raises TcpscapeError: the first part's refusal, where the engines can run no part at all.
    """
    refusals = {part.name: error for part in study.parts if (error := _refusal(part, engines))}
    if len(refusals) == len(study.parts):
        raise next(iter(refusals.values()))
    if not refusals:
        return study, ()
    remaining = study.only([p.name for p in study.parts if p.name not in refusals])
    return remaining, tuple(f"part {name} is left out: {error}" for name, error in refusals.items())


def _with_metrics(study: Study, part: Campaign) -> Campaign:
    """The part with every metric that a claim or a published number about it needs."""
    first = study.parts[0].name
    needed = [c.metric for c in study.claims if (c.part or first) == part.name or c.over.get("part") == part.name]
    needed += [k.metric for k in known.table(study) if k.part == part.name]
    return part.model_copy(update={"metrics": tuple(dict.fromkeys((*part.metrics, *needed)))})


def _refusal(part: Campaign, engines: Sequence[Engine]) -> TcpscapeError | None:
    """Why one of the engines cannot run the part; None where all can."""
    try:
        for case in part.cases():
            for engine in engines:
                engine.check(case.scenario)
    except TcpscapeError as e:
        return e
    return None
