"""What the viewers of video players see over several trials, with intervals: start-up delay, stalls, bit rate, switches, QoE.

The players are flows with the field `player` (docs/models/methods/player.md); the numbers of one trial are the metrics `video_…`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from tcpscape import metrics, stats, units
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.metrics.base import only
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.text.numbers import number, percent
from tcpscape.text.table import Table
from tcpscape.trial import Trial

COLUMNS = ("cca", "bit rate Mbit/s, mean [95 %]", "start-up s", "stalls", "stalled s", "without stall", "switches", "QoE Mbit/s")
"""Columns of the table of viewers."""
DROP = ("QoE Mbit/s", "switches", "stalls", "without stall")
"""Columns that a narrow screen leaves out, the first one first."""


LEAST_BUFFERS = 2
"""Shortest trial whose mean is not that of the start, in lengths of a player's buffer."""


@dataclass(frozen=True, slots=True)
class Viewing:
    """What a viewer sees: means over trials, in each the mean over its players."""

    bitrate: Estimate
    """Mean bit rate of the segments, Mbit/s; 0 in a trial where none came."""
    startup: Estimate
    """From the first request to the first picture, s; where it never came, how long the player waited."""
    stalls: Estimate
    """Stops after the start."""
    stalled: Estimate
    """Time stopped after the start, s."""
    switches: Estimate
    """Changes of the bit rate."""
    qoe: Estimate
    """Linear QoE for each segment, Mbit/s, of the trials where segments came."""
    smooth: Estimate
    """Share of the players, of all trials, that began and never stopped; of as many as its `n`."""
    seconds: float
    """How long each was watched."""


def viewer(trials: Sequence[Trial], cca: str | None = None) -> Viewing | None:
    """What a viewer sees in these trials of one condition; `cca`: of the flows under this congestion control alone. None without players."""
    chosen = [trial if cca is None else only(trial, cca) for trial in trials]
    players = [flow.player for trial in chosen for flow in trial.flows if flow.player]
    if not players:
        return None
    names = [field.name for field in fields(Viewing) if field.name not in ("smooth", "seconds")]
    estimates = {}
    for name in names:
        metric = metrics.find(f"video_{name}")
        estimates[name] = stats.mean(stats.known(metric.of(trial) for trial in chosen), metric.unit)
    smooth = stats.share(sum(p.began and not p.stalls for p in players), len(players))
    return Viewing(**estimates, smooth=smooth, seconds=max(trial.duration for trial in trials))


def tables(outcome: Outcome) -> tuple[Table, ...]:
    """The table of what viewers see, a row for each congestion control of each cell; none without players."""
    rows = [row for cell in outcome.cells for row in _rows(cell)]
    return (Table(COLUMNS, rows, title="What a viewer sees", drop=DROP),) if rows else ()


def sentences(outcome: Outcome) -> list[str]:
    """What a viewer sees under each congestion control, as one sentence; none without players, or with more than two rows."""
    views = [(cca, view) for cell in outcome.cells for cca in cell.ccas if (view := viewer(cell.trials, cca))]
    if not 1 <= len(views) <= 2:
        return []
    (first, view), *others = views
    return ["; with ".join([f"With {first} a viewer sees {seen(view)}", *(f"{cca} {seen(view)}" for cca, view in others)]) + "."]


def caveats(scenario: Scenario) -> list[str]:
    """What weakens the numbers of a scenario's players: a trial that ends before their buffers have long been full."""
    buffers = [flow.player.buffer for flow in scenario.flows if flow.player]
    if not buffers or scenario.duration >= LEAST_BUFFERS * max(buffers):
        return []
    most, least = units.brief_time(max(buffers)), units.brief_time(LEAST_BUFFERS * max(buffers))
    return [f"{units.brief_time(scenario.duration)} show a player's start: a buffer of {most} is hardly full by then; give --duration {least}"]


def seen(view: Viewing) -> str:
    """`9.5 [9.3, 9.7] Mbit/s, the first picture after 0.43 [0.40, 0.50] s and no stall in 20 × 60 s`."""
    return f"{view.bitrate.text()} Mbit/s, the first picture after {view.startup.text(2)} s and {_stalls(view)}"


def seen_against(view: Viewing, cca: str, other: Viewing) -> str:
    """`4.44 Mbit/s [4.25, 4.62] instead of 2.65 with cubic, the first picture after 0.73 s and no stall in 20 × 60 s`; `cca`: of the other."""
    stops = other.stalled.value
    against = f" (with {cca} {number(stops, 2)} s)" if stops > 0 else ""
    first = number(view.startup.value, 2)
    instead = f"instead of {number(other.bitrate.value)} with {cca}"
    return f"{view.bitrate.text(unit='Mbit/s')} {instead}, the first picture after {first} s and {_stalls(view)}{against}"


def _stalls(view: Viewing) -> str:
    """`stopped for 0.5 [0.2, 0.8] s`, or in how many trials of which length nothing stopped."""
    if view.stalled.value > 0:
        return f"stopped for {view.stalled.text(2)} s"
    if view.smooth.value < 1:
        return f"no stall, but {percent(1 - view.smooth.value)} of the viewers never saw a picture"
    return f"no stall in {view.smooth.n} × {number(view.seconds, 2)} s"


def _rows(cell: Cell) -> list[tuple[str, ...]]:
    """A row for each congestion control of a cell that has players."""
    rows = []
    for cca in cell.ccas:
        if view := viewer(cell.trials, cca):
            rows.append(row(cca, view))
    return rows


def row(cca: str, view: Viewing) -> tuple[str, ...]:
    """A row of :data:`COLUMNS`."""
    numbers = (view.bitrate, view.startup, view.stalls, view.stalled)
    return (cca, *(e.text() for e in numbers), percent(view.smooth.value), view.switches.text(2), view.qoe.text())
