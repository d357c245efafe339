"""`--check`: expressions about the results of a command, each printed with its value; exit status 1 where one does not hold."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import typer

from tcpscape import checks, engines, metrics
from tcpscape.checks import Check, Verdict
from tcpscape.trial import Trial

FAILED = 1
"""Exit status where a check does not hold."""

Checks = Annotated[
    list[str] | None,
    typer.Option("--check", help="Exit with 1 unless it holds: 'goodput_mbps.median > 5', 'rtt_p95[cca=bbr] < 80ms'. Repeatable."),
]


def read(said: Sequence[str] | None) -> list[Check]:
    """The checks that were asked for; call it before anything runs."""
    return [checks.read(text) for text in said or ()]


def expect(asked: Iterable[Check], conditions: Sequence[tuple[Mapping[str, str], str]]) -> None:
    """Refuses, before anything runs, a check that chooses none of the conditions (axes with `cca`, name)."""
    for check in asked:
        checks.expect(check, conditions)


def capture(asked: Iterable[Check], samples_ns: int) -> engines.Capture:
    """What to keep of each trial: samples at `samples_ns` (0: none), and what the checks' metrics need."""
    needs = metrics.Needs.of(c.metric for c in asked)
    return engines.Capture(samples_ns=samples_ns or needs.samples_ns, queue_samples_ns=needs.queue_samples_ns, packets=needs.packets)


def settle(asked: Iterable[Check], conditions: Sequence[tuple[Mapping[str, str], str, Sequence[Trial]]], *, as_json: bool = False) -> None:
    """Judges the checks on conditions (axes with `cca`, name, trials), prints each, and ends the command with 1 where one does not hold."""
    finish([v for check in asked for v in checks.judge(check, conditions)], as_json=as_json)


def finish(verdicts: Sequence[Verdict], *, as_json: bool = False) -> None:
    """Prints verdicts, with --json on stderr so that stdout stays JSON lines of results; ends the command with 1 where one does not hold."""
    for v in verdicts:
        print(json.dumps(v.to_dict()) if as_json else v.line(), file=sys.stderr if as_json else sys.stdout)
    if not all(v.holds for v in verdicts):
        raise typer.Exit(FAILED)
