"""The advice for a path: which congestion control to use and why, as a screen, as a table, and as plain values."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from tcpscape.findings.advice import remarks, text
from tcpscape.findings.advice.data import AdviceData
from tcpscape.findings.advice.standing import Standing
from tcpscape.findings.cliff.levels import Cliff
from tcpscape.formats import stamped
from tcpscape.scenario import summary
from tcpscape.text.screen import Screen
from tcpscape.text.table import Table


@dataclass(frozen=True, slots=True, repr=False)
class Advice(AdviceData):
    """The advice for a path. An interpreter and a notebook show its ranking."""

    @property
    def why(self) -> str:
        """The reason, as a clause."""
        return text.reason(self)

    @property
    def sentence(self) -> str:
        """The answer: `Use bbr: it carries 1.76 × cubic [1.50, 2.01] and adds 17 ms to the RTT (95th percentile).`"""
        return text.sentence(self)

    def table(self) -> Table:
        """The ranking, a row for each congestion control; the answer is its title."""
        return text.ranking(self, title=self.sentence, notes=[f"caveat: {caveat}" for caveat in self.caveats])

    def screen(self) -> Screen:
        """The answer as the command shows it."""
        scenario = self.path.scenario(self.ranking[0].cca)
        count = len(self.outcome.cells[0].trials)
        path = f"{summary.in_words(scenario)}; {count} trial{'s' * (count > 1)} each, {self.outcome.label}"
        return Screen(
            path, self.sentence, remarks=[*self.taken, *remarks.remarks(self)], tables=text.tables(self),
            details=text.details(self), caveats=self.caveats,
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them; what is infinite or not known is None."""
        d, deploy = self.decision, self.deployment
        plain: dict[str, Any] = _finite(stamped("advice", {
            "path": self.path.model_dump(mode="json"), "jitter_over_rtt": self.jitter_ratio, "goal": self.goal.name, "choice": d.choice,
            "verdict": d.verdict,
            "by": d.by or self.goal.name, "answer": self.sentence, "why": self.why, "leader": d.leader or None, "follower": d.follower or None,
            "gain": asdict(d.gain) if d.gain else None, "more_runs": d.more or None, "command": self.command,
            "deployment": asdict(deploy) if deploy else None, "order": _order(self),
            "share_beside_default": asdict(self.shared) if self.shared else None, "taken": list(self.taken), "trials": self.trials,
            "caveats": list(self.caveats), "best": self.best, "ranking": [_standing(s) for s in self.ranking],
        }))  # fmt: skip
        return plain


def _order(advice: Advice) -> dict[str, Any] | None:
    """What was assumed of the order of packets, and the answer of the other assumption; None without jitter."""
    other = advice.other_order
    if other is None:
        return None
    assumed = "keep" if advice.path.order == "correlated" else advice.path.order
    return {
        "assumed": assumed, "other": other.order, "choice": other.decision.choice if other.decision else None, "changes": other.changes,
        "viewer": {cca: asdict(view) for cca, view in other.views.items()},
        "goodput": {cca: asdict(estimate) for cca, estimate in other.goodputs.items()},
    }  # fmt: skip


def _standing(s: Standing) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(s).items() if name != "cliff"}
    return {**fields, "deployable": not s.obstacle, "side": s.side, "stands": s.stands, "cliff": _cliff(s.cliff)}


def _cliff(cliff: Cliff) -> dict[str, Any]:
    """The edge in ns; an end of its interval is open where the fall may lie beyond the axis."""
    edge = cliff.edge
    interval = (edge.low, edge.high) if edge else None
    return {"jitter_ns": edge.value if edge else None, "interval_ns": interval, "bracket_ns": cliff.bracket, "chaos_ns": cliff.zone}


def _finite(value: Any) -> Any:
    """The same plain value with None for numbers that JSON has not: an open end, no value."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
