"""`--check`: expressions about the results of a command, each printed with its value; exit status 1 where one does not hold."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tcpscape.trial import Trial

if TYPE_CHECKING:
    from tcpscape.campaign.campaign import Campaign, Case
    from tcpscape.campaign.checks import Check, Verdict
    from tcpscape.campaign.outcome import Cell, Outcome

FAILED = 1
"""Exit status where a check does not hold."""

Condition = tuple[Mapping[str, str], str, Sequence[Trial]]
"""Axes with `cca`, `engine` and the `part` of a study; a name; the trials."""
Checks = Annotated[
    list[str] | None,
    typer.Option("--check", help="Exit with 1 unless it holds: 'goodput_mbps.median > 5', 'rtt_p95[cca=bbr] < 80ms'. Repeatable."),
]


def read(said: Sequence[str] | None) -> list[Check]:
    """The checks that were asked for; call it before anything runs."""
    from tcpscape.campaign import checks

    return [checks.read(text) for text in said or ()]


def expect(asked: Iterable[Check], conditions: Sequence[tuple[Mapping[str, str], str]]) -> None:
    """Refuses, before anything runs, a check that chooses none of the conditions (axes with `cca`, name)."""
    from tcpscape.campaign import checks

    for check in asked:
        checks.expect(check, conditions)


def settle(asked: Iterable[Check], conditions: Sequence[Condition], *, as_json: bool = False) -> None:
    """Judges the checks on conditions, prints each, and ends the command with 1 where one does not hold."""
    from tcpscape.campaign import checks

    finish([v for check in asked for v in checks.judge(check, conditions)], as_json=as_json)


def finish(verdicts: Sequence[Verdict], *, as_json: bool = False) -> None:
    """Prints verdicts, with --json on stderr so that stdout stays JSON lines of results; ends the command with 1 where one does not hold."""
    for v in verdicts:
        print(json.dumps(v.to_dict()) if as_json else v.line(), file=sys.stderr if as_json else sys.stdout)
    if not all(v.holds for v in verdicts):
        raise typer.Exit(FAILED)


def conditions(outcomes: Mapping[str, Outcome]) -> list[Condition]:
    """The conditions of a campaign, or of a study's parts by their names."""
    every = [(part, cell) for part, outcome in outcomes.items() for cell in outcome.cells]
    several = len({cell.engine for _, cell in every}) > 1
    return [(*_place(cell, part, several), cell.trials) for part, cell in every]


def of_cases(campaign: Campaign, part: str = "") -> list[tuple[Mapping[str, str], str]]:
    """The conditions that a campaign, perhaps a part of a study, will have: axes and name."""
    return [_place(case, part, len(campaign.engines) > 1) for case in campaign.cases()]


def _place(where: Cell | Case, part: str, several: bool) -> tuple[Mapping[str, str], str]:
    """Axes, and a name that says the engine where there are several."""
    engine = [f"engine {where.engine}"] if several else []
    name = ", ".join([*([part] if part else []), where.cca, *(f"{k} {v}" for k, v in where.at.items()), *engine])
    return {**where.at, "cca": where.cca, "engine": where.engine, **({"part": part} if part else {})}, name
