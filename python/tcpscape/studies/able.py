"""Which parts of a study an engine can run: a real kernel has no BBR version 3 and no jitter in order."""

from __future__ import annotations

from collections.abc import Sequence

from tcpscape.campaign.campaign import Campaign
from tcpscape.engines import Engine
from tcpscape.errors import TcpscapeError
from tcpscape.studies.study import Study


def able(study: Study, engines: Sequence[Engine]) -> tuple[Study, tuple[str, ...]]:
    """The study with the parts that every one of `engines` can run, and why the others are left out.

    Where they can run none, the first refusal is raised.
    """
    refused = {part.name: error for part in study.parts if (error := _refusal(part, engines))}
    if len(refused) == len(study.parts):
        raise next(iter(refused.values()))
    if not refused:
        return study, ()
    kept = study.only([p.name for p in study.parts if p.name not in refused])
    return kept, tuple(f"part {name} is left out: {error}" for name, error in refused.items())


def _refusal(part: Campaign, engines: Sequence[Engine]) -> TcpscapeError | None:
    try:
        for case in part.cases():
            for engine in engines:
                engine.check(case.scenario)
    except TcpscapeError as e:
        return e
    return None
