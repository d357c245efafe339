"""What each cell's runs look like to somebody who diagnoses a path: zone, signatures, video quality, how many measurements it takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tcpscape import stats
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.findings import indicators, video
from tcpscape.report import view
from tcpscape.report.cells import level
from tcpscape.report.view import Field, Table
from tcpscape.scenario.path import Netem
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate

MANY = 200
"""Cells of a part from which the table is left out."""
PRECISION = 0.05
"""Precision for which the number of measurements is given."""
COLUMNS = (
    "jitter / RTT", "windows closed in 10 s", "sent again in 10 s", "time held by the receive window, %", "the published rule says", "receive window",
    "video each flow carries", "runs for a mean to ± 5 %",
)


def table(part: str, outcome: Outcome) -> list[Table]:
    """The table of one part; none where it has too many cells."""
    if len(outcome.cells) > MANY:
        return []
    columns = ["cca", *outcome.axes, *COLUMNS]
    rows = [[view.word(c.cca), *(level(c, a) for a in outcome.axes), *_row(c)] for c in outcome.cells]
    caption = f"{part}: indicators" if part else "Indicators"
    return [Table("indicators", caption, columns, rows, left=1 + len(outcome.axes))]


def _row(cell: Cell) -> list[Field]:
    found = indicators.judge(cell.trials)
    each = [t.goodput_mbps / max(1, len(t.flows)) for t in cell.trials]
    rung = video.carried(stats.median(each).value)
    return [
        view.word(_zone(cell.scenarios[0])), view.estimate(found.closed), view.estimate(found.resent), view.estimate(found.held, 100.0),
        _most(found.problems), _most(found.windows), view.word(rung.name if rung else video.NOTHING),
        _runs(stats.runs_needed_from(cell.values(), PRECISION)),
    ]  # fmt: skip


def _runs(needed: Estimate) -> Field:
    """Whole runs."""
    if not math.isfinite(needed.value):
        return Field("–")
    ends = f"[{needed.low:.0f}, {needed.high:.0f}]" if math.isfinite(needed.low) and math.isfinite(needed.high) else ""
    return Field(f"{needed.value:.0f}", ends, needed.value)


def _zone(scenario: Scenario) -> str:
    """By the words of the data's path: the published zones are of normal jitter that reorders."""
    jitters = [h.jitter for h in scenario.forward if isinstance(h, Netem) and h.jitter]
    if not jitters or not scenario.rtt_ns:
        return ""
    return f"{100 * max(jitters) / scenario.rtt_ns:.0f} %: {indicators.zone(max(jitters), scenario.rtt_ns)}"


def _most(shares: Mapping[str, Estimate] | Mapping[indicators.Problem, Estimate] | Mapping[indicators.Window, Estimate]) -> Field:
    """The judgement of most runs, and the share of them."""
    said: Sequence[tuple[str, Estimate]] = sorted(shares.items(), key=lambda kv: -kv[1].value)
    if not said:
        return view.word("–")
    name, share = said[0]
    return view.word(name if share.value == 1 else f"{name} ({100 * share.value:.0f} %)")
