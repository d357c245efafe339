"""The answer of `tcpscape packetdrill`: how many scripts pass, a table by family, the first difference of each that fails; its document."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from typing_extensions import TypedDict

from tcpscape.text.screen import Lines, Screen
from tcpscape.text.table import Table
from tcpscape.units import counted
from tcpscape.validate.packetdrill import Drill, ScriptResult, Verdict


class DrilledScript(TypedDict):
    """A script, and what became of it."""

    script: str
    """Its path."""
    family: str
    """What it is about, by the names of its directories and its own."""
    verdict: Literal["passed", "failed", "not applicable"]
    """What became of it."""
    line: int | None
    """Line of what differs, or of what the model does not have."""
    problem: str | None
    """What differs, or the reason why the script is not applicable."""
    expected: str | None
    """What the script expects there."""
    actual: str | None
    """What was."""
    ignored: list[str]
    """Settings of the script that were not applied, with their reason."""


class DrillDocument(TypedDict):
    """What `tcpscape packetdrill --json` prints."""

    format: Literal[1]
    """Format of this document."""
    kernel: str
    """Kernel profile of the host."""
    passed: int
    """Scripts that pass."""
    failed: int
    """Scripts in which something differs."""
    not_applicable: int
    """Scripts that ask for something that the model does not have."""
    scripts: list[DrilledScript]
    """Every script, in the order in which it was named."""


def document(drill: Drill) -> DrillDocument:
    """Everything as a document."""
    passed, failed, rest = (len(drill.of(verdict)) for verdict in Verdict)
    return {
        "format": 1,
        "kernel": drill.kernel,
        "passed": passed,
        "failed": failed,
        "not_applicable": rest,
        "scripts": [_script(r) for r in drill.results],
    }


def _script(r: ScriptResult) -> DrilledScript:
    return {
        "script": r.path,
        "family": r.family,
        "verdict": r.verdict.value,
        "line": r.line or None,
        "problem": r.problem or None,
        "expected": r.expected or None,
        "actual": r.actual or None,
        "ignored": list(r.ignored),
    }


def screen(drill: Drill) -> Screen:
    """The screen: the answer, families, failures, and why scripts are not applicable."""
    failures = Lines("failed: the first difference", [failure(r) for r in drill.of(Verdict.FAILED)], most=6)
    reasons = Counter(r.problem for r in drill.of(Verdict.NOT_APPLICABLE))
    rows = [(why, str(n)) for why, n in reasons.most_common()]
    lacking = Table(("not applicable", "scripts"), rows, words=()) if rows else None
    every = Table(("script", "verdict"), [(r.path, _verdict(r)) for r in drill.results], words=("verdict",))
    return Screen(
        f"{counted(len(drill.results), 'script')} of packetdrill on the model's hosts, kernel {drill.kernel}, in virtual time",
        answer(drill),
        tables=[families_table(drill), *([failures] if failures.texts else []), *([lacking] if lacking else [])],
        details=(every,),
    )


def answer(drill: Drill) -> str:
    """How many pass of those that can be asked."""
    passed, failed, rest = (len(drill.of(verdict)) for verdict in Verdict)
    return f"{passed} of {counted(passed + failed, 'script')} {'passes' if passed + failed == 1 else 'pass'}; {rest} not applicable."


def families_table(drill: Drill) -> Table:
    """A row for each family: how many pass, fail, cannot be asked."""
    rows = [(name, *(str(numbers[verdict]) for verdict in Verdict)) for name, numbers in drill.families.items()]
    return Table(("family", *(verdict.value for verdict in Verdict)), rows)


def failure(r: ScriptResult) -> str:
    """The first difference of a script in one line."""
    return f"{r.path}:{r.line}: {r.problem}: expected {r.expected}, actual {r.actual}"


def _verdict(r: ScriptResult) -> str:
    where = f" (line {r.line}: {r.problem})" if r.line else ""
    return f"{r.verdict.value}{where}"
