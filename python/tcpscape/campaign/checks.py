"""Checks: expressions about results that hold or do not, `goodput_mbps.median > 5`, for the command line's exit status.

METRIC[.STAT] OP NUMBER[UNIT], and [cca=bbr] or [cca=bbr, jitter=8ms] behind the metric chooses among several conditions; without it every
condition has to hold. [cca=bbr over cubic] is the ratio of the means at both, paired where the seeds are the same. METRIC is one of
`metrics.REGISTRY`, as `goodput` or with its unit, `goodput_mbps`, or a column of the result tables, `rtt_ms_p50`. STAT is median (the default),
mean, min, max, cv, n, p5 to p95, or low and high, the ends of the median's 95 % interval (of a ratio: those of the ratio's).
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from typing_extensions import TypedDict

from tcpscape import metrics, stats, units
from tcpscape.errors import TcpscapeError, refuse, shown
from tcpscape.metrics import Metric
from tcpscape.stats import Estimate, Statistic
from tcpscape.stats import statistic as statistics
from tcpscape.text.numbers import number
from tcpscape.trial import Trial

OVER = " over "
"""Between the two values of an axis whose ratio is checked."""
OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
MOST_NAMES = 6
"""Conditions that a refusal names."""
_CHECK = re.compile(
    r"^\s*(?P<metric>[A-Za-z]\w*(?::[^\s.\[\]<>=!]+)?)\s*(?P<chosen>\[[^\]]*\])?(?:\.(?P<stat>\w+))?\s*(?P<after>\[[^\]]*\])?"
    r"\s*(?P<op>>=|<=|==|!=|>|<)\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>%|[A-Za-zµ][\w/]*)?\s*$",
    re.ASCII,
)
_COLUMN = re.compile(r"^(?P<head>\w+?)_(?P<unit>ms|mbps)_(?P<tail>p\d+|min|max|mean)$")
EXAMPLE = "write for example 'goodput_mbps.median > 5', 'rtt_p95[cca=bbr] < 80ms' or 'goodput[cca=bbr over cubic] > 3'"


@dataclass(frozen=True, slots=True)
class Check:
    """An expression that was read."""

    text: str
    metric: Metric
    statistic: Statistic
    op: str
    number: float
    """In the statistic's unit."""
    chosen: Mapping[str, str] = field(default_factory=dict)
    """Axis (or `cca`) → value; of a ratio that of the conditions above."""
    below: Mapping[str, str] | None = None
    """The same of the conditions below, if a ratio is checked."""
    named: str = ""
    """The statistic as it was written; empty where none was."""

    @property
    def unit(self) -> str:
        """The statistic's: the metric's, or none of cv, n and ratios."""
        return "1" if self.below is not None else self.statistic.unit_of(self.metric.unit)

    def judge(self, values: Sequence[float], name: str) -> CheckResult:
        """Whether it holds for the values of the metric in one condition; those that are not known (NaN) do not count."""
        known = stats.known(values)
        if not known:
            refuse("check", f"{name} does not say {self.metric.name}", "run with --samples 100ms, or check another metric", CheckError)
        whole = statistics.STATISTICS["median"] if self.statistic.end else self.statistic
        return self.verdict(name, whole.heading, whole.of(known, self.metric.unit))

    def judge_ratio(self, above: Sequence[Trial], below: Sequence[Trial], name: str) -> CheckResult:
        """Whether it holds for the ratio of the means of two conditions; trials of the same seeds are compared as pairs."""
        a, b = ([self.metric.of(t) for t in trials] for trials in (above, below))
        if any(map(math.isnan, (*a, *b))):
            refuse("check", f"{name} does not say {self.metric.name}", "run with --samples 100ms, or check another metric", CheckError)
        is_paired = [(t.seed, t.engine) for t in above] == [(t.seed, t.engine) for t in below]
        return self.verdict(name, "ratio of means", (stats.ratio if is_paired else stats.mean_ratio)(a, b))

    def verdict(self, name: str, title: str, estimate: Estimate) -> CheckResult:
        """Whether it holds for an estimate of a condition, called `title`: for its value, or for the end of its interval that is checked."""
        value: float = getattr(estimate, self.statistic.end or "value")
        if self.statistic.end and math.isnan(value):
            refuse("check", "one measurement has no interval", "repeat it, or check its median", CheckError)
        return CheckResult(self, name, title, estimate, value, OPERATORS[self.op](value, self.number))


class CheckError(TcpscapeError):
    """An expression that makes no sense, or cannot be judged."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A check of one condition."""

    check: Check
    name: str
    """The condition."""
    title: str
    """What the estimate is called: `median`, `ratio of means`."""
    estimate: Estimate
    """What was measured, with its interval."""
    value: float
    """What was checked: the estimate's value, or an end of its interval."""
    holds: bool

    @property
    def sure(self) -> bool:
        """Whether the number is outside the interval, so that another such measurement would most likely say the same."""
        return self.estimate.excludes(self.check.number)

    @property
    def is_clear(self) -> bool:
        """Whether it is :attr:`sure`, or has no interval that could hold the number."""
        return self.sure or self.estimate.n < 2 or math.isnan(self.estimate.low)

    def line(self) -> str:
        """`holds: goodput_mbps > 5: cubic median 7.20 [6.90, 7.80] Mbit/s (n 10)`; of `.low`: `low end 6.90 of median 7.20 [6.90, 7.80] …`."""
        unit = f" {self.check.unit}" if self.check.unit not in ("", "1") else ""
        doubt = "" if self.is_clear else f"; the interval holds {number(self.check.number)}, so undecided"
        end = f"{self.check.statistic.name} end {number(self.value)} of " if self.check.statistic.end else ""
        text = f"{self.estimate.text()}{unit} (n {self.estimate.n}{doubt})" if self.title != "n" else f"{self.value:.0f}"
        return f"{'holds' if self.holds else 'FAILS'}: {self.check.text}: {self.name} {end}{self.title} {text}"

    def to_dict(self) -> CheckDocument:
        """Plain values; what is infinite or not known is None."""
        ends = self.estimate.plain()
        return CheckDocument(
            format=1,
            check=self.check.text,
            condition=self.name,
            holds=self.holds,
            sure=self.sure,
            statistic=self.title,
            value=self.value if math.isfinite(self.value) else None,
            low=ends["low"],
            high=ends["high"],
            n=self.estimate.n,
            unit=self.check.unit,
        )


class CheckDocument(TypedDict):
    """The verdict of a --check about one condition. With --json it is a line on stderr."""

    format: Literal[1]
    """Format of a check's verdict."""
    check: str
    """The check as it was typed."""
    condition: str
    """The condition that it is about."""
    holds: bool
    """Whether the number holds."""
    sure: bool
    """Whether the number lies outside the interval, so that more such trials would most likely say the same."""
    statistic: str
    """What the value is: `median`, `ratio of means`."""
    value: float | None
    """What was checked, in `unit`: the statistic or the end of its interval that was named."""
    low: float | None
    """Lower end of the statistic's 95 % interval, in `unit`."""
    high: float | None
    """Upper end of the interval, in `unit`."""
    n: int
    """Number of measurements."""
    unit: str
    """Unit of the value; empty where it has none."""


def unmeasured(name: str, unit: str = "1", about: str = "") -> Metric:
    """A number that no single trial has, as a metric, so that checks can be of it."""
    return Metric(name, unit, about or name, lambda trial: math.nan, "neither")


def read(text: str, extra: Mapping[str, Metric] | None = None, *, only: bool = False, example: str = EXAMPLE) -> Check:
    """The check that `text` says, of a metric or of one that `extra` has by its name; `only`: of one of these alone.

    :raises CheckError: for what is no check; one line that names the metrics or statistics there are.
    """
    match = _CHECK.match(text)
    if not match:
        refuse("check", f"{shown(text)} is not METRIC[.STAT] OP NUMBER", example, CheckError)
    stat = match["stat"] or "median"
    statistic = statistics.find(stat)
    if statistic is None:
        refuse("check", f"{shown(stat)} is no statistic", f"choose {', '.join(stats.STATISTICS)}, or a percentile, p5 to p95", CheckError)
    if match["chosen"] and match["after"]:
        refuse("check", f"{shown(text)} chooses twice", example, CheckError)
    metric = (extra or {}).get(match["metric"])
    if metric is None and only:
        refuse("check", f"{shown(match['metric'])} is unknown", f"choose {', '.join(extra or ())}", CheckError)
    metric = metric or metric_of(match["metric"])
    chosen = _chosen(match["chosen"] or match["after"] or "[]")
    above, below = ({axis: value.partition(OVER)[place].strip() or value for axis, value in chosen.items()} for place in (0, 2))
    is_ratio = above != below
    if is_ratio and match["stat"] and not (statistic.end or stat == "mean"):
        refuse("check", f"a ratio is of means, not of {stat}s", "leave the statistic out, or check low or high, the ends of its interval", CheckError)
    value = _number(match["number"], match["unit"] or "", "1" if is_ratio else statistic.unit_of(metric.unit))
    return Check(text.strip(), metric, statistic, match["op"], value, above, below if is_ratio else None, match["stat"] or "")


def metric_of(text: str) -> Metric:
    """The metric that `text` names, also as the columns of the result tables are called: `rtt_ms_p50` is `rtt_p50`."""
    column = _COLUMN.match(text)
    name = f"{column['head']}_{column['tail']}" if column and column["tail"] != "mean" else column["head"] if column else text
    try:
        return metrics.find(name)
    except TcpscapeError as e:
        raise CheckError(str(e)) from None


def judge(check: Check, conditions: Sequence[tuple[Mapping[str, str], str, Sequence[Trial]]]) -> list[CheckResult]:
    """A verdict for each condition that the check chooses; a condition is its axes (`cca` among them), its name and its trials."""
    expect(check, [(at, name) for at, name, _ in conditions])
    if check.below is not None:
        return _judge_ratios(check, check.below, conditions)
    return [check.judge([check.metric.of(t) for t in trials], name) for at, name, trials in conditions if is_chosen(check.chosen, at)]


def _judge_ratios(check: Check, below: Mapping[str, str], conditions: Sequence[tuple[Mapping[str, str], str, Sequence[Trial]]]) -> list[CheckResult]:
    """A verdict for each condition above, over the one below that has the same values of all other axes."""
    varied = {axis for axis in below if below[axis] != check.chosen[axis]}
    verdicts = []
    for at, name, trials in conditions:
        if is_chosen(check.chosen, at):
            wanted = {**{axis: value for axis, value in at.items() if axis not in varied}, **below}
            for other, other_name, others in conditions:
                if is_chosen(wanted, other):
                    verdicts.append(check.judge_ratio(trials, others, f"{name} over {other_name}"))
    if not verdicts:
        refuse("check", f"{shown(check.text)} finds no two conditions that differ in {', '.join(sorted(varied))} alone", EXAMPLE, CheckError)
    return verdicts


def expect(check: Check, conditions: Sequence[tuple[Mapping[str, str], str]]) -> None:
    """Refuses a check that chooses none of the conditions, given by their axes and names; before anything runs, if it can be."""
    if not all(any(is_chosen(chosen, at) for at, _ in conditions) for chosen in (check.chosen, check.below or {})):
        names = [name for _, name in conditions]
        listed = " | ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")
        refuse("check", f"{shown(check.text)} chooses none of the conditions", f"there are {listed or 'none'}", CheckError)


def is_chosen(chosen: Mapping[str, str], at: Mapping[str, str]) -> bool:
    """Whether a condition at these axes (and `cca`) is meant; `0` is `0ms`."""
    from tcpscape.campaign import axes

    return all(k in at and (at[k] == v or axes.same(at[k], v)) for k, v in chosen.items())


def _chosen(text: str) -> Mapping[str, str]:
    """`[cca=bbr, jitter=8ms]` as a mapping."""
    parts = [p.strip() for p in text.strip("[]").split(",") if p.strip()]
    pairs = [p.partition("=") for p in parts]
    if any(not eq or not k.strip() or not v.strip() for k, eq, v in pairs):
        refuse("check", f"{shown(text)} is not [AXIS=VALUE, …]", EXAMPLE, CheckError)
    return {k.strip(): v.strip() for k, _, v in pairs}


def _number(text: str, unit: str, expected: str) -> float:
    """The number in the statistic's unit; a unit that means something else is refused."""
    value = float(text)
    if not math.isfinite(value):
        refuse("check", f"{shown(text)} is beyond every number", EXAMPLE, CheckError)
    if not unit or unit == expected:
        return value
    if unit == "%" and expected == "1":
        return value / 100
    known, base = {"ms": (units.TIME_UNITS, 1e6), "Mbit/s": (units.RATE_UNITS, 1e6)}.get(expected, ({}, 1.0))
    if unit.lower() not in known:
        fix = f"write it in {expected}" if expected not in ("", "1") else "leave the unit out" if not expected else "write a fraction or per cent"
        refuse("check", f"{text}{unit} is not in the unit of what is checked", fix, CheckError)
    return value * known[unit.lower()] / base
