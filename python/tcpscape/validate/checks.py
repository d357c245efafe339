"""Bounds on a divergence: `median<=0.04,p90<=0.2,p90@loss<=0.3,overlap>=0.9,p90@each<=0.2`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from tcpscape.errors import refuse
from tcpscape.validate.compare import Divergence, DivergenceSummary, groups
from tcpscape.validate.conditions import FAMILIES

NAMES = tuple(f.name for f in fields(DivergenceSummary))
TITLES = {
    "median": "median error", "median_low": "median error, unexplained part", "p90": "90th percentile of the error",
    "p90_low": "90th percentile, unexplained part", "worst": "largest error", "overlap": "intervals overlap",
    "group_median": "median error of a group's goodput", "group_p90": "90th percentile of a group's", "larger_share": "the larger share alike",
    "retransmit_share": "retransmits within 1.5 ×", "rtt_share": "mean RTT within 5 %",
}
"""Titles of numbers in a table; others keep their name."""
EVERYWHERE, EACH, CCAS = "all", "each", "ccas"
LEAST_OF_CCA = 4
"""Fewest conditions of a congestion control for which `ccas` checks it."""

_BOUND = re.compile(r"^\s*([a-z0-9_]+)\s*(?:@\s*([^<>]+?))?\s*(<=|>=)\s*([\d.]+)\s*$")


@dataclass(frozen=True)
class DivergenceBound:
    """A bound on a field of :class:`DivergenceSummary` for a group of conditions."""

    name: str
    group: str
    at_most: bool
    """Whether `value` is an upper bound; otherwise a lower one."""
    value: float

    @property
    def text(self) -> str:
        """As written."""
        where = "" if self.group == EVERYWHERE else f"@{self.group}"
        return f"{self.name}{where} {'≤' if self.at_most else '≥'} {self.value:g}"


@dataclass(frozen=True)
class CheckedBound:
    """A bound and the value that was reached."""

    bound: DivergenceBound
    group: str
    reached: float

    @property
    def met(self) -> bool:
        """Whether the bound holds; an unknown number meets no bound."""
        return self.reached <= self.bound.value if self.bound.at_most else self.reached >= self.bound.value

    def line(self) -> tuple[str, str, str, str]:
        """The cells of a table row: title and group, bound, value reached, verdict."""
        sign = "≤" if self.bound.at_most else "≥"
        reached = "–" if math.isnan(self.reached) else f"{self.reached:.3f}"
        title = f"{TITLES.get(self.bound.name, self.bound.name)} ({self.group})"
        return title, f"{sign} {self.bound.value:g}", reached, "met" if self.met else "missed"


def read(text: str) -> list[DivergenceBound]:
    """The bounds of a text."""
    return [_bound(part) for part in text.split(",")]


def _bound(part: str) -> DivergenceBound:
    match = _BOUND.match(part)
    if not match:
        refuse("check", f"{part.strip()!r} is not NAME<=NUMBER", "write for example median<=0.04,p90<=0.2")
    name, group, sign, value = match.groups()
    if name not in NAMES:
        refuse("check", f"{name!r} is no number of the divergence", f"choose {', '.join(NAMES)}")
    return DivergenceBound(name, group or EVERYWHERE, sign == "<=", float(value))


def _groups(group: str, families: Mapping[str, object], ccas: Mapping[str, Sequence[Divergence]]) -> list[str]:
    """The groups that a bound is about."""
    if group == EACH:
        return [f for f in FAMILIES if f in families]
    return [cca for cca in sorted(ccas) if len(ccas[cca]) >= LEAST_OF_CCA] if group == CCAS else [group]


def judge(bounds: Sequence[DivergenceBound], divergences: Sequence[Divergence]) -> list[CheckedBound]:
    """Each bound on its group: `all`, a family, a congestion control, `each` family, or each of the `ccas` with four conditions or more."""
    by_family, by_cca = groups(divergences, lambda c: c.family), groups(divergences, lambda c: c.cca)
    known = {EVERYWHERE: list(divergences), **by_cca, **by_family}
    checked = []
    for bound in bounds:
        if bound.group not in (EACH, CCAS) and bound.group not in known:
            refuse("check", f"no condition belongs to {bound.group!r}", f"choose {', '.join([EACH, CCAS, *known])}")
        for group in _groups(bound.group, by_family, by_cca):
            checked.append(CheckedBound(bound, group, float(getattr(DivergenceSummary.of(known[group]), bound.name))))
    return checked
