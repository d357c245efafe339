"""What `tcpscape advise` prints."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from tcpscape.cli import tables
from tcpscape.findings.advice import Advice, Standing
from tcpscape.findings.cliff.levels import Cliff
from tcpscape.findings.damage import Delay
from tcpscape.scenario.conditions import Conditions
from tcpscape.stats.estimate import number
from tcpscape.units import format_byte_rate, format_percent, format_rate, format_size, format_time

MATTERS = 1.1
"""A gain below this is called none."""


def show(advice: Advice, as_json: bool) -> None:
    """Prints the answer."""
    if as_json:
        print(json.dumps(_finite(_plain(advice)), allow_nan=False))
        return
    screen = tables.console()
    for part in _parts(advice):
        screen.print(part)


def _parts(advice: Advice) -> Iterator[Any]:
    first = advice.ranking[0]
    yield f"[bold]Path[/bold]: {describe(advice.path)}"
    yield f"jitter / RTT: {tables.percent(advice.jitter_ratio)}; {advice.trials} trials of {format_time(advice.path.duration)}, same seeds for all\n"
    columns = ("cca", "goodput Mbit/s: mean [95 %]", f"/ {first.cca} [95 %]", "CV", "runs for ±10 %", "retransmits", "limited by")
    yield "[bold]Ranking[/bold]"
    yield tables.table(columns, [_ranked(s) for s in advice.ranking])
    yield ""
    yield "[bold]Where the cliff is on this path[/bold] (jitter at which half of the goodput is gone, [95 %])"
    yield tables.table(("cca", "cliff", "chaos zone", "you stand"), [_edge(s) for s in advice.ranking], left=4)
    if any(s.damage for s in advice.ranking):
        yield ""
        yield "[bold]What does the damage[/bold] (goodput on the same path without it)"
        heads = ("cca", "without", "Mbit/s [95 %]", "gain [95 %]", "delay of the data, overtaken", "how it is taken away")
        yield tables.table(heads, [row for s in advice.ranking for row in _damage(s)], left=2)
    yield f"\n[bold]Use {advice.choice}[/bold]: {advice.why}."
    yield f"  {advice.command}"
    for caveat in advice.caveats:
        yield f"caveat: {caveat}"


def describe(path: Conditions) -> str:
    """The path in one line."""
    said = [f"RTT {format_time(path.rtt)}"]
    if path.jitter:
        said.append(f"jitter {format_time(path.jitter)} ({path.distribution}, {_on(path.jitter_on)})")
    if path.loss:
        said.append(f"loss {format_percent(path.loss)} ({_on(path.loss_on)})")
    said.append(f"bottleneck {format_rate(path.rate)}, buffer {path.buffer}" if path.rate else "no bottleneck")
    flow = path.flow
    said.append(f"SO_RCVBUF {format_size(flow.rcvbuf)}" if flow.rcvbuf else "receive buffer autotuned")
    said.append(f"application {format_byte_rate(flow.app.rate)}" if flow.app.rate else "bulk")
    return ", ".join([*said, f"{path.flows} flow{'s' * (path.flows > 1)}", f"kernel {path.kernel.profile}"])


def _on(where: str) -> str:
    return "each way" if where == "both" else where


def _ranked(s: Standing) -> tuple[str, ...]:
    spread, resent = tables.percent(s.cv.value), number(s.retransmits.value)
    return s.cca, s.goodput.text(), s.against_best.text(), spread, str(s.needed), resent, tables.shares(s.limited_by)


def _edge(s: Standing) -> tuple[str, ...]:
    return s.cca, _where(s.cliff), _zone(s.cliff), s.side


def _where(cliff: Cliff) -> str:
    if not cliff.levels:
        return "nothing gets through even without jitter"
    if cliff.edge is None:
        return f"none up to {_ms(cliff.levels[-1].at)} ms"
    low, high = (tables.percent(x / cliff.axis.harsh) for x in (cliff.edge.low, cliff.edge.high))
    return f"{_ms(cliff.edge.value)} ms [{_ms(cliff.edge.low)}, {_ms(cliff.edge.high)}], {low} to {high} of RTT"


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3g}" if math.isfinite(ns) else "more"


def _zone(cliff: Cliff) -> str:
    if cliff.zone is None:
        return "none seen"
    low, high = cliff.zone
    return f"around {_ms(low)} ms" if low == high else f"{_ms(low)} to {_ms(high)} ms"


def _damage(s: Standing) -> list[tuple[str, ...]]:
    return [
        (s.cca, d.ingredient, d.goodput.text(), d.gain.text() + (" x" if d.gain.value >= MATTERS else " (none)"), _delay(d.achieved.data), d.how)
        for d in s.damage
    ]


def _delay(found: Delay | None) -> str:
    """`13.0 ± 6.9 ms, 82 %`: mean and standard deviation over the packets, and the share that was overtaken."""
    return f"{found.mean_ms:.1f} ± {found.sd_ms:.1f} ms, {tables.percent(found.overtaken)}" if found else "–"


def _plain(advice: Advice) -> dict[str, Any]:
    """The answer as plain values."""
    return {
        "path": advice.path.model_dump(mode="json"), "jitter_over_rtt": advice.jitter_ratio, "choice": advice.choice, "why": advice.why,
        "command": advice.command, "trials": advice.trials, "caveats": list(advice.caveats),
        "ranking": [_standing(s) for s in advice.ranking],
    }


def _finite(said: Any) -> Any:
    """The same with null for numbers that JSON has not (an open end, no value)."""
    if isinstance(said, dict):
        return {k: _finite(v) for k, v in said.items()}
    if isinstance(said, list | tuple):
        return [_finite(v) for v in said]
    if isinstance(said, float):
        return float(said) if math.isfinite(said) else None
    return said


def _standing(s: Standing) -> dict[str, Any]:
    said = {k: v for k, v in asdict(s).items() if k != "cliff"}
    said["side"] = s.side
    said["cliff"] = _cliff(s.cliff)
    return said


def _cliff(cliff: Cliff) -> dict[str, Any]:
    """The edge in ns; an end of its interval is open where the fall may lie beyond the axis."""
    edge = cliff.edge
    ends = (edge.low, edge.high) if edge else None
    return {"jitter_ns": edge.value if edge else None, "interval_ns": ends, "bracket_ns": cliff.bracket, "chaos_ns": cliff.zone}
