"""Checks of a comparison: of the comparison itself (`ratio > 0.95`, `win.low > 0.5`), or of a metric of both sides (`goodput.median > 5`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tcpscape.campaign import checks
from tcpscape.campaign.checks import Check, CheckError, Verdict
from tcpscape.errors import refuse
from tcpscape.interchange.compare import Answer, Row, unit_of
from tcpscape.metrics import Metric
from tcpscape.stats import Estimate
from tcpscape.trial import Trial

OF_BOTH: Mapping[str, Callable[[Row], Estimate]] = {
    "ratio": lambda r: r.comparison.median_ratio, "mean_ratio": lambda r: r.comparison.ratio, "difference": lambda r: r.comparison.difference,
    "win": lambda r: r.comparison.win,
}
"""Ratio of medians and of means (A over B), difference of means (A less B), win probability (A above B)."""
STATS = ("median", "low", "high")
"""Of a comparison: itself (what is read where none is said), and the ends of its interval."""


@dataclass(frozen=True)
class Judge:
    """The checks that were asked for."""

    asked: tuple[Check, ...]

    @classmethod
    def read(cls, said: Sequence[str] | None, metric: str) -> Judge:
        """Reads them, for a comparison of `metric`; one that makes no sense is refused."""
        known = {name: Metric(name, unit_of(metric) if name == "difference" else "1", f"{name} of A and B", _never, "neither") for name in OF_BOTH}
        asked = tuple(checks.read(text, known) for text in said or ())
        for check in asked:
            name = check.metric.name
            if name in OF_BOTH and check.statistic.name not in STATS:
                refuse("check", f"{name} has no {check.statistic.name}", f"write {name} or {name}.low", CheckError)
        return cls(asked)

    def verdicts(self, answer: Answer) -> list[Verdict]:
        """A verdict for each check and condition."""
        made: list[Verdict] = []
        for check in self.asked:
            if of := OF_BOTH.get(check.metric.name):
                rows = [r for r in answer.rows if checks.is_chosen(check.chosen, _at(r))]
                checks.expect(check, [(_at(r), r.name) for r in answer.rows])
                made += [_judge(check, r.name, of(r)) for r in rows]
            else:
                sides = [(side, v) for r in answer.rows for side, v in (("A", r.a), ("B", r.b))]
                made += checks.judge(check, [({"cca": v.cca}, f"{side}: {v.name}", v.trials) for side, v in sides])
        return made


def _never(_: Trial) -> float:
    """A comparison is of two results, not of a trial."""
    return math.nan


def _at(row: Row) -> Mapping[str, str]:
    return {"cca": row.a.cca}


def _judge(check: Check, name: str, got: Estimate) -> Verdict:
    """The value itself, or an end of its interval; no interval holds nothing."""
    if check.statistic.end:
        got = Estimate(got.low if check.statistic.name == "low" else got.high, math.nan, math.nan, got.n, got.unit)
    return Verdict(check, name, got, checks.OPERATORS[check.op](got.value, check.number))
