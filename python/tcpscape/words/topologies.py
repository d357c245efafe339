"""The tables and the sentence of a validation on random topologies: what each group gets, what a ping measures, which group gets most."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from tcpscape.scenario.flows import Flow
from tcpscape.text.numbers import percent
from tcpscape.text.table import Table
from tcpscape.validate.agreement import probe_medians
from tcpscape.validate.compare import Divergence, DivergenceSummary, groups, quantile, worst

HEAD = ("topologies", "n", "groups", "each group: median", "p90", "B by itself", "right winner", "delays: median", "p90", "B by itself")
DROP = ("n", "right winner", "p90", "B by itself")
"""Columns that a narrow screen leaves out, the first one first."""
WORST_HEAD = ("id", "topology", "each group's ln ratio", "B by itself", "delay p50, ms", "delay p95, ms", "right winner")
WORST_DROP = ("right winner", "B by itself")
DEFINITIONS = """\
On topologies, the error of a group of flows is |ln(median goodput of A / median goodput of B)|, and that of a ping is |A/B − 1| of the
median over the runs of its 50th percentile, and of its 95th. *B by itself* (median / p90) compares the first half of B's runs with the
last one, as two perfect engines with half as many runs would be. The *right winner* is the group that gets most per flow, judged where
all of B's runs agree which one that is."""


def drawn(divergences: Sequence[Divergence]) -> list[Divergence]:
    """Those on topologies."""
    return [c for c in divergences if c.condition.is_topology and c.parts]


def table(divergences: Sequence[Divergence], bold: str = "**") -> Table | None:
    """By number of links, by queue, by direction and by congestion control (their groups alone), and over all; None without topologies."""
    rows_of = drawn(divergences)
    if not rows_of:
        return None
    rows = [_row(links, group) for links, group in sorted(groups(rows_of, lambda c: c.links).items())]
    names = sorted({name for c in rows_of for name in c.condition.queue.split("+")})
    rows += [_row(f"with {name}", [c for c in rows_of if name in c.condition.queue.split("+")]) for name in names]
    flows = [f for c in rows_of for f in c.condition.scenario.flows]
    rows += [_groups_row(f"groups {way}", rows_of, partial(_sends, way)) for way in sorted({f.direction for f in flows})]
    rows += [_groups_row(f"{bold}{cca}{bold}", rows_of, partial(_runs, cca)) for cca in sorted({f.cca for f in flows})]
    return Table(HEAD, [*rows, _row(f"{bold}all{bold}", rows_of)])


def _row(name: str, divergences: Sequence[Divergence]) -> tuple[str, ...]:
    s = DivergenceSummary.of(divergences)
    winner = f"{percent(s.winner_share)} of {s.winner_n}" if s.winner_n else "–"
    return (
        name,
        str(s.n),
        str(s.group_n),
        _fixed(s.group_median),
        _fixed(s.group_p90),
        _pair(s.group_self_median, s.group_self_p90),
        winner,
        _percent(s.latency_median),
        _percent(s.latency_p90),
        f"{_percent(s.latency_self_median)} / {_percent(s.latency_self_p90)}",
    )


def _sends(way: str, flow: Flow) -> bool:
    return flow.direction == way


def _runs(cca: str, flow: Flow) -> bool:
    return flow.cca == cca


def _groups_row(name: str, divergences: Sequence[Divergence], keeps: Callable[[Flow], bool]) -> tuple[str, ...]:
    """A row about some groups only: a probe and a winner belong to no single group."""
    apart, itself = _errors(divergences, "agreement", keeps), _errors(divergences, "itself", keeps)
    having = sum(any(keeps(f) for f in c.condition.scenario.flows) for c in divergences)
    numbers = (_fixed(quantile(apart, 0.5)), _fixed(quantile(apart, 0.9)), _pair(quantile(itself, 0.5), quantile(itself, 0.9)))
    return (name, str(having), str(len(apart)), *numbers, "–", "–", "–", "–")


def _errors(divergences: Sequence[Divergence], of: Literal["agreement", "itself"], keeps: Callable[[Flow], bool]) -> list[float]:
    """The errors of some groups, between the sides or of B by itself."""
    pairs = [pair for c in divergences for pair in zip(c.condition.scenario.flows, getattr(c, of).groups, strict=False)]
    return [abs(error) for flow, error in pairs if keeps(flow)]


def worst_table(divergences: Sequence[Divergence], n: int, labels: tuple[str, str]) -> Table:
    """The topologies with the largest errors of a group or of a ping that scatter does not explain."""
    rows = []
    for c in worst(drawn(divergences), n):
        delays = [" / ".join(_delay(side[k]) for side in map(probe_medians, (c.a, c.b)) if len(side) > k) or "–" for k in (0, 1)]
        alike = {True: "yes", False: "no", None: "undecided"}[c.winner]
        rows.append((c.condition.id, c.condition.describe(), _signed(c.parts), _signed(c.itself.groups), *delays, alike))
    head = tuple(f"{name} {labels[0]} / {labels[1]}" if name.startswith("delay") else name for name in WORST_HEAD)
    return Table(head, rows, left=2)


def answer(divergences: Sequence[Divergence], a: str, b: str) -> str | None:
    """The sentence: how far groups and delays are apart, and how often the same group wins; None without topologies."""
    rows = drawn(divergences)
    if not rows:
        return None
    s = DivergenceSummary.of(rows)
    groups_text = f"Groups of flows get goodputs that are {_factor(s.group_median)} ({_factor(s.group_p90)}) apart on {a} and {b}"
    itself = "" if math.isnan(s.group_self_median) else f", {b} by itself {_factor(s.group_self_median)} ({_factor(s.group_self_p90)})"
    delays = f"; delays under load {_percent(s.latency_median)} ({_percent(s.latency_p90)})" if s.latency_n else ""
    winner = f"; the same group wins in {percent(s.winner_share)} of {s.winner_n} decided topologies" if s.winner_n else ""
    return f"{groups_text} at the median (90th percentile){itself}{delays}{winner}."


def apart(c: Divergence) -> str:
    """The errors of one topology, in words: of each group, and of the ping's percentiles."""
    delays = ", ".join(f"{x:+.1%}" for x in c.latencies if not math.isnan(x))
    return f"ln ratios of the groups {_signed(c.parts)}" + (f"; delays {delays}" if delays else "")


def _factor(ln: float) -> str:
    return "an unknown share" if math.isnan(ln) else percent(math.expm1(ln), 1)


def _percent(x: float) -> str:
    return "–" if math.isnan(x) else percent(x, 1)


def _fixed(x: float) -> str:
    return "–" if math.isnan(x) else f"{x:.3f}"


def _pair(median: float, p90: float) -> str:
    return f"{_fixed(median)} / {_fixed(p90)}"


def _delay(ms: float) -> str:
    return "–" if math.isnan(ms) else f"{ms:.1f}"


def _signed(values: Sequence[float]) -> str:
    return ", ".join(f"{x:+.2f}" for x in values) or "–"
