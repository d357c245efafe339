"""Checks of a comparison: of both sides together (`ratio > 0.95`, `win.low > 0.5`), or of a metric of each side (`goodput.median > 5`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tcpscape.campaign import checks
from tcpscape.campaign.checks import Check, CheckError, Verdict
from tcpscape.errors import refuse
from tcpscape.interchange.compare import ComparedCondition, ResultComparison, unit_of
from tcpscape.metrics import Metric
from tcpscape.stats import Estimate
from tcpscape.trial import Trial


@dataclass(frozen=True, slots=True)
class OfBoth:
    """A number of both sides together that checks know."""

    title: str
    """What the line of a check calls it, before the metric: `ratio of means`."""
    of: Callable[[ComparedCondition], Estimate]


MEAN_RATIO = OfBoth("ratio of means", lambda r: r.comparison.ratio)
OF_BOTH: Mapping[str, OfBoth] = {
    "ratio": MEAN_RATIO,
    "mean_ratio": MEAN_RATIO,
    "median_ratio": OfBoth("ratio of medians", lambda r: r.comparison.median_ratio),
    "difference": OfBoth("difference of means", lambda r: r.comparison.difference),
    "win": OfBoth("win probability", lambda r: r.comparison.win),
}
"""Name in a check → ratio of means (A over B, two names), ratio of medians, difference of means (A less B), probability that A is above B."""


@dataclass(frozen=True)
class ComparisonChecks:
    """The checks of a comparison."""

    checks: tuple[Check, ...]

    @classmethod
    def read(cls, texts: Sequence[str] | None, metric: str) -> ComparisonChecks:
        """Reads the checks of a comparison of `metric`.

        :raises CheckError: for a check that makes no sense.
        """
        known = {name: Metric(name, unit_of(metric) if name == "difference" else "1", f"{name} of A and B", _no_value, "neither") for name in OF_BOTH}
        parsed = tuple(checks.read(text, known) for text in texts or ())
        for check in parsed:
            name, stat = check.metric.name, check.named
            if name in OF_BOTH and stat and not check.statistic.end:
                other = " or median_ratio" if name == "ratio" and stat == "median" else ""
                refuse("check", f"{name} has no {stat}", f"write {name}, {name}.low{',' if other else ' or'} {name}.high{other}", CheckError)
        return cls(parsed)

    def verdicts(self, comparison: ResultComparison) -> list[Verdict]:
        """A verdict for each check and condition."""
        verdicts: list[Verdict] = []
        for check in self.checks:
            if both := OF_BOTH.get(check.metric.name):
                checks.expect(check, [(_axes_of(r), r.name) for r in comparison.rows])
                chosen = [r for r in comparison.rows if checks.is_chosen(check.chosen, _axes_of(r))]
                verdicts += [check.verdict(r.name, f"{both.title} of {comparison.metric}", both.of(r)) for r in chosen]
            else:
                sides = [(side, v) for r in comparison.rows for side, v in (("A", r.a), ("B", r.b))]
                conditions = [({**v.at, "cca": v.cca, "side": side}, f"{side}: {v.name}", v.trials) for side, v in sides]
                verdicts += checks.judge(check, conditions)
        return verdicts


def _no_value(_: Trial) -> float:
    """The metric of a comparison, which no single trial has."""
    return math.nan


def _axes_of(row: ComparedCondition) -> Mapping[str, str]:
    """Where a condition stands: A's axes and congestion control."""
    return {**row.a.at, "cca": row.a.cca}
