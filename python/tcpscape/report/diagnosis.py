"""The table of indicators: what the runs of each cell show to somebody who diagnoses a path.

Zone of the jitter, signatures in the counters, video quality, number of measurements for a precise mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from tcpscape import stats
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.findings import indicators, video
from tcpscape.report import view
from tcpscape.report.view import Field, PageTable
from tcpscape.scenario.path import Netem
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate

MANY = 200
"""Number of cells of a part above which the table is left out."""
PRECISION = 0.05
"""Precision of the mean for which the number of runs is given."""
COLUMNS = (
    "jitter / RTT", "windows closed in 10 s", "sent again in 10 s", "time held by the receive window, %", "the published rule says", "receive window",
    "video each flow carries", "runs for a mean to ± 5 %",
)


def table(part: str, outcome: Outcome) -> list[PageTable]:
    """The table of one part; an empty list where the part has too many cells."""
    if len(outcome.cells) > MANY:
        return []
    columns = ["cca", *outcome.axes, *COLUMNS]
    rows = [[view.word(c.cca), *(view.level(c, a) for a in outcome.axes), *_row(c)] for c in outcome.cells]
    caption = f"{part}: indicators" if part else "Indicators"
    return [PageTable("indicators", caption, columns, rows, left=1 + len(outcome.axes))]


def _row(cell: Cell) -> list[Field]:
    result = indicators.judge(cell.trials)
    goodputs = [t.goodput_mbps / max(1, len(t.flows)) for t in cell.trials]
    rung = video.carried(stats.median(goodputs).value)
    return [
        view.word(_zone(cell.scenarios[0])), view.estimate(result.closed), view.estimate(result.resent), view.estimate(result.held, 100.0),
        _most_frequent(result.problems), _most_frequent(result.windows), view.word(rung.name if rung else video.NOTHING),
        _whole_runs(stats.runs_needed_from(cell.values(), PRECISION)),
    ]  # fmt: skip


def _whole_runs(needed: Estimate) -> Field:
    if not math.isfinite(needed.value):
        return Field("–")
    interval = f"[{needed.low:.0f}, {needed.high:.0f}]" if math.isfinite(needed.low) and math.isfinite(needed.high) else ""
    return Field(f"{needed.value:.0f}", interval, needed.value)


def _zone(scenario: Scenario) -> str:
    """The zone of the data's path; the published zones are of normal jitter that reorders."""
    jitters = [h.jitter for h in scenario.forward if isinstance(h, Netem) and h.jitter]
    if not jitters or not scenario.rtt_ns:
        return ""
    return f"{100 * max(jitters) / scenario.rtt_ns:.0f} %: {indicators.zone(max(jitters), scenario.rtt_ns)}"


def _most_frequent(shares: Mapping[str, Estimate] | Mapping[indicators.Problem, Estimate] | Mapping[indicators.Window, Estimate]) -> Field:
    """The diagnosis of most runs, with their share if it is not all of them."""
    pairs: list[tuple[str, Estimate]] = sorted(shares.items(), key=lambda pair: -pair[1].value)
    if not pairs:
        return view.word("–")
    name, share = pairs[0]
    return view.word(name if share.value == 1 else f"{name} ({100 * share.value:.0f} %)")
