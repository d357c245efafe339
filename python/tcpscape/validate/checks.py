"""Bounds that a divergence must keep: `median<=0.04,p90<=0.2,p90@loss<=0.3,overlap>=0.9,p90@each<=0.2`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from tcpscape.errors import refuse
from tcpscape.validate.compare import Comparison, Summary, groups
from tcpscape.validate.conditions import FAMILIES

NAMES = tuple(f.name for f in fields(Summary))
WORDS = {
    "median": "median error", "median_low": "median error, unexplained part", "p90": "90th percentile of the error",
    "p90_low": "90th percentile, unexplained part", "worst": "largest error", "overlap": "intervals overlap",
    "group_median": "median error of a group's goodput", "group_p90": "90th percentile of a group's", "larger_share": "the larger share alike",
    "retransmit_share": "retransmits within 1.5 ×", "rtt_share": "mean RTT within 5 %",
}
"""What a number is called in a table; others keep their name."""
EVERYWHERE, EACH, CCAS = "all", "each", "ccas"
LEAST_OF_CCA = 4
"""Conditions of a congestion control that `ccas` asks for."""

_BOUND = re.compile(r"^\s*([a-z0-9_]+)\s*(?:@\s*([^<>]+?))?\s*(<=|>=)\s*([\d.]+)\s*$")


@dataclass(frozen=True)
class Bound:
    """One bound: a field of :class:`Summary`, whose conditions, at most or at least, how much."""

    name: str
    group: str
    most: bool
    value: float

    @property
    def text(self) -> str:
        """As written."""
        where = "" if self.group == EVERYWHERE else f"@{self.group}"
        return f"{self.name}{where} {'≤' if self.most else '≥'} {self.value:g}"


@dataclass(frozen=True)
class Checked:
    """A bound beside what was reached."""

    bound: Bound
    group: str
    reached: float

    @property
    def met(self) -> bool:
        """Whether it is kept; an unknown number keeps nothing."""
        return self.reached <= self.bound.value if self.bound.most else self.reached >= self.bound.value

    def line(self) -> tuple[str, str, str, str]:
        """What, bound, reached, verdict."""
        sign = "≤" if self.bound.most else "≥"
        reached = "–" if math.isnan(self.reached) else f"{self.reached:.3f}"
        what = f"{WORDS.get(self.bound.name, self.bound.name)} ({self.group})"
        return what, f"{sign} {self.bound.value:g}", reached, "met" if self.met else "missed"


def read(text: str) -> list[Bound]:
    """The bounds of a text."""
    return [_bound(part) for part in text.split(",")]


def _bound(part: str) -> Bound:
    found = _BOUND.match(part)
    if not found:
        refuse("check", f"{part.strip()!r} is not NAME<=NUMBER", "write for example median<=0.04,p90<=0.2")
    name, group, sign, value = found.groups()
    if name not in NAMES:
        refuse("check", f"{name!r} is no number of the divergence", f"choose {', '.join(NAMES)}")
    return Bound(name, group or EVERYWHERE, sign == "<=", float(value))


def _groups(group: str, families: Mapping[str, object], ccas: Mapping[str, Sequence[Comparison]]) -> list[str]:
    """The groups that a bound is about."""
    if group == EACH:
        return [f for f in FAMILIES if f in families]
    return [cca for cca in sorted(ccas) if len(ccas[cca]) >= LEAST_OF_CCA] if group == CCAS else [group]


def judge(bounds: Sequence[Bound], comparisons: Sequence[Comparison]) -> list[Checked]:
    """Each bound on its group: `all`, a family, a congestion control, `each` family, or each of the `ccas` with four conditions or more."""
    by_family, by_cca = groups(comparisons, lambda c: c.family), groups(comparisons, lambda c: c.cca)
    known = {EVERYWHERE: list(comparisons), **by_cca, **by_family}
    out = []
    for bound in bounds:
        if bound.group not in (EACH, CCAS) and bound.group not in known:
            refuse("check", f"no condition belongs to {bound.group!r}", f"choose {', '.join([EACH, CCAS, *known])}")
        for group in _groups(bound.group, by_family, by_cca):
            out.append(Checked(bound, group, float(getattr(Summary.of(known[group]), bound.name))))
    return out
