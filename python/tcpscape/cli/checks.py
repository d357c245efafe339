"""`--check`: expressions about the results of a command; exit status 1 unless all hold.

What fails is printed with its value, what holds with --verbose.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import click

from tcpscape.cli.command import Option

if TYPE_CHECKING:
    from tcpscape.campaign.campaign import Campaign, Case
    from tcpscape.campaign.checks import Check, CheckResult
    from tcpscape.campaign.outcome import Cell, Outcome
    from tcpscape.trial import Trial

    Condition = tuple[Mapping[str, str], str, Sequence[Trial]]
    """Axes with `cca`, `engine` and the `part` of a study; a name; the trials."""

FAILED = 1
"""Exit status where a check does not hold."""

Checks = Annotated[
    tuple[str, ...],
    Option(
        "Exit with 1 unless it holds: 'goodput_mbps.median > 5', 'rtt_p95[cca=bbr] < 80ms', 'goodput[cca=bbr over cubic] > 3'. Repeatable.",
        name="--check",
        complete="check",
    ),
]


def read(texts: Sequence[str]) -> list[Check]:
    """The checks as they were typed; call it before anything runs."""
    from tcpscape.campaign import checks

    return [checks.read(text) for text in texts]


def expect(checks: Iterable[Check], conditions: Sequence[tuple[Mapping[str, str], str]]) -> None:
    """Refuses, before anything runs, a check that chooses none of the conditions (axes with `cca`, name)."""
    from tcpscape.campaign.checks import expect as expect_one

    for check in checks:
        expect_one(check, conditions)


def settle(checks: Iterable[Check], conditions: Sequence[Condition], *, as_json: bool = False, verbose: bool = False) -> None:
    """Judges the checks on conditions, prints them as :func:`finish` does, and ends the command with exit status 1 unless all hold."""
    from tcpscape.campaign.checks import judge

    finish([v for check in checks for v in judge(check, conditions)], as_json=as_json, verbose=verbose)


def finish(verdicts: Sequence[CheckResult], *, as_json: bool = False, mark: str = "", verbose: bool = False) -> None:
    """Prints what fails or holds by chance, `verbose` every verdict, and how many hold; exit status 1 unless all do.

    With --json every verdict is a line on stderr, so that stdout stays JSON lines of results. `mark` begins each line: `- ` makes a list in Markdown.
    """
    if as_json:
        print(*(json.dumps(v.to_dict()) for v in verdicts), sep="\n", file=sys.stderr, end="\n" * bool(verdicts))
        verdicts_shown: Sequence[CheckResult] = ()
    else:
        verdicts_shown = [v for v in verdicts if verbose or not v.holds or not v.is_clear]
    for v in verdicts_shown:
        print(f"{mark}{v.line()}")
    if len(verdicts_shown) < len(verdicts) and not as_json:
        print(f"{mark}{_count(verdicts)}: --verbose shows each")
    if not all(v.holds for v in verdicts):
        raise click.exceptions.Exit(FAILED)


def _count(verdicts: Sequence[CheckResult]) -> str:
    """`the check holds`, `2 of 3 checks hold`: a check counts once for each condition that it is about."""
    holding = sum(v.holds for v in verdicts)
    if holding == len(verdicts):
        return "the check holds" if holding == 1 else f"all {holding} checks hold"
    return f"{holding} of {len(verdicts)} checks hold"


def conditions(outcomes: Mapping[str, Outcome]) -> list[Condition]:
    """The conditions of a campaign, or of a study's parts by their names."""
    cells = [(part, cell) for part, outcome in outcomes.items() for cell in outcome.cells]
    several = len({cell.engine for _, cell in cells}) > 1
    return [(*_place(cell, part, several), cell.trials) for part, cell in cells]


def of_cases(campaign: Campaign, part: str = "") -> list[tuple[Mapping[str, str], str]]:
    """The conditions that a campaign, perhaps a part of a study, will have: axes and name."""
    return [_place(case, part, len(campaign.engines) > 1) for case in campaign.cases()]


def _place(place: Cell | Case, part: str, several: bool) -> tuple[Mapping[str, str], str]:
    """The axes of a cell, and a name, with the engine where there are several."""
    engine = [f"engine {place.engine}"] if several else []
    name = ", ".join([*([part] if part else []), place.cca, *(f"{k} {v}" for k, v in place.at.items()), *engine])
    return {**place.at, "cca": place.cca, "engine": place.engine, **({"part": part} if part else {})}, name
