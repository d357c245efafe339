"""The answer of a campaign: what a screen and a report say first, and their tables.

:func:`run_screen` is of one point, :func:`sweep_screen` of several. A sentence names the congestion controls that differ, by how much, with the
interval; where the runs do not decide, it says so. Ratios are of means, paired where the seeds are the same; so the table of a run has means too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tcpscape import metrics, stats
from tcpscape.campaign import video
from tcpscape.campaign.outcome import CAVEAT, Cell, CellSummary, Outcome
from tcpscape.metrics.base import Metric
from tcpscape.metrics.flows import jain_index, limits
from tcpscape.scenario import summary
from tcpscape.screen import Screen
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import number
from tcpscape.tables import Table, percent, shares
from tcpscape.trial import FlowResult, Trial

NAMES = {"jain": "Jain's index", "added_rtt": "added RTT (95th percentile)"}
"""Metrics that a sentence calls otherwise."""
APP_LIMITED = 0.5
"""Share of its time from which a flow counts as limited by its application."""
EVEN = 1.1
"""Share over the equal share up to which flows are said to share evenly."""
FULL = 0.9
"""Share of the link's rate that goodput reaches where the link is full: headers take 4 to 5 %."""
RUN_DROP = ("CE marks", "CV", "RTT p50 ms", "retransmits", "limited by")
"""Columns of a run's table that a narrow screen leaves out, the first one first."""


def screen(outcome: Outcome) -> Screen:
    """The screen of an outcome, of one point or of several."""
    points = {tuple(sorted(cell.at.items())) for cell in outcome.cells}
    return run_screen(outcome) if len(points) == 1 and outcome.campaign.metric == "goodput" else sweep_screen(outcome)


def run_screen(outcome: Outcome, next_: Sequence[str] = ()) -> Screen:
    """The screen of a scenario that was run under one or several congestion controls, or with a mixture of them."""
    cells = outcome.cells
    weak = [e.caveat for cell in cells for e in [cell.mean()] if e.caveat]
    caveats = dict.fromkeys((*outcome.caveats, *video.caveats(cells[0].scenarios[0]), *weak))
    count = len(cells[0].trials)
    path = f"{summary.in_words(cells[0].scenarios[0])}; {count} trial{'s' * (count > 1)} each, {outcome.label}"
    tables = (run_table(outcome), *video.tables(outcome))
    return Screen(path, run_answer(outcome), video.sentences(outcome), tables, caveats=tuple(caveats), next=next_)


def run_answer(outcome: Outcome) -> str:
    """The answer of a run as a sentence: who carries more, by which factor, and what it adds to the RTT."""
    cells = outcome.cells
    if len(cells) > 1:
        return _comparison(cells)
    cell = cells[0]
    return _mixture(cell) if "+" in cell.cca else _single(cell)


def _single(cell: Cell) -> str:
    """What one congestion control carries."""
    link = summary.link_mbps(cell.scenarios[0])
    full = f" ({percent(cell.mean().value / link)} of the link)" if link else ""
    return f"{cell.cca} carries {cell.mean().text(most=link)} Mbit/s{full}{_added(cell)}."


def _mixture(cell: Cell) -> str:
    """How the congestion controls of a mixture share the path; flows that their applications limit take what they need, and have no part in that."""
    groups: dict[str, list[FlowResult]] = {}
    for trial in cell.trials:
        for flow in trial.flows:
            groups.setdefault(flow.cca, []).append(flow)
    greedy = [cca for cca, flows in groups.items() if limits(flows).get("app", 0.0) < APP_LIMITED]
    counts = {cca: len(flows) // len(cell.trials) for cca, flows in groups.items()}
    names = {cca: f"{cca}×{count}" if count > 1 else cca for cca, count in counts.items()}
    needs = [f"{names[cca]} takes the {_carried(cell, cca)} of its application" for cca in counts if cca not in greedy]
    adds = f" The flows add {_ms(added)} to the RTT (95th percentile)." if (added := _added_rtt(cell)) else ""
    beside = f"; {', '.join(needs)}" if needs else ""
    if len(greedy) < 2:
        carried = [f"{names[cca]} carries {_carried(cell, cca)}" for cca in greedy]
        text = "; ".join([*carried, *needs])
        return f"{text[0].upper() if not carried else text[0]}{text[1:]}.{adds}"
    total = [sum(f.goodput_mbps for f in trial.flows if f.cca in greedy) for trial in cell.trials]
    shares_of = {cca: stats.ratio([sum(f.goodput_mbps for f in t.flows if f.cca == cca) for t in cell.trials], total) for cca in greedy}
    over_equal = {cca: shares_of[cca].value * sum(counts[c] for c in greedy) / counts[cca] for cca in greedy}
    order = sorted(greedy, key=lambda cca: -over_equal[cca])
    parts = [f"{names[cca]} {_percent(shares_of[cca])}" for cca in order]
    even = over_equal[order[0]] < EVEN
    verdict = "The flows share evenly" if even else f"{names[order[0]]} gets {number(over_equal[order[0]], 2)} × its equal share"
    index = stats.mean([jain_index([f.goodput_mbps for f in trial.flows if f.cca in greedy]) for trial in cell.trials])
    return f"{verdict}: {parts[0]} of {_carried(cell, *greedy)}, {', '.join(parts[1:])}; Jain's index {index.text(2)}{beside}.{adds}"


def _carried(cell: Cell, *ccas: str) -> str:
    """What the flows under these congestion controls carry over the whole trial, with its unit."""
    link = summary.link_mbps(cell.scenarios[0])
    rates = [sum(f.bytes_received for f in trial.flows if f.cca in ccas) * 8e-6 / trial.duration for trial in cell.trials]
    return f"{stats.mean(rates).text(most=link)} Mbit/s"


def _percent(share: Estimate) -> str:
    """A share with its interval in percent, `62 % [60, 64]`."""
    text = percent(share.value)
    return text if share.n < 2 or math.isnan(share.low) else f"{text} [{100 * share.low:.0f}, {100 * share.high:.0f}]"


def _comparison(cells: Sequence[Cell]) -> str:
    """Which cell carries most, against the first one, or against the next where the first is the best."""
    order = sorted(cells, key=lambda cell: -cell.mean().value)
    best = order[0]
    other = cells[0] if cells[0] is not best else order[1]
    a, b = _names(best, other)
    if other.mean().value <= 0:
        return f"{a} carries {best.mean().text()} Mbit/s, {b} nothing." if best.mean().value > 0 else "Nothing gets through this path."
    gain, added = best.over(other), _added(best, other)
    if gain.n > 1 and not gain.excludes(1):
        missing = f" {more[0].upper()}{more[1:]} would probably decide." if (more := stats.missing_text(gain)) else ""
        return f"{a} and {b} do not differ clearly: {a} carries {times(gain, b)}{added}.{missing}"
    return f"{a} carries {times(gain, b)}{added}." + (" One trial has no interval: give --seeds 10." if gain.n < 2 else "")


def times(ratio: Estimate, other: str) -> str:
    """A ratio with its interval behind what it is compared with, `6.42 × cubic [6.03, 6.91]`."""
    value, bracket, interval = ratio.text().partition(" [")
    return f"{value} × {other}{bracket}{interval}"


def _names(a: Cell, b: Cell) -> tuple[str, str]:
    """The names of two cells; with the engine where that is what differs."""
    return (a.cca, b.cca) if a.cca != b.cca else (f"{a.cca} on {a.engine}", f"{b.cca} on {b.engine}")


def _added(cell: Cell, other: Cell | None = None) -> str:
    """What a cell adds to the RTT, and what another one does: ` and adds 17 ms to the RTT (95th percentile; cubic 3 ms)`."""
    own, others = _added_rtt(cell), _added_rtt(other) if other else None
    if not own:
        return ""
    against = f"; {_names(cell, other)[1]} {_ms(others)}" if other and others else ""
    return f" and adds {_ms(own)} to the RTT (95th percentile{against})"


def _added_rtt(cell: Cell) -> Estimate | None:
    """Mean of what queues and jitter add to the RTT, ms; None where the engine does not see it."""
    values = stats.known(cell.values("added_rtt"))
    return stats.mean(values) if values else None


def _ms(added: Estimate) -> str:
    return f"{number(max(0.0, added.value), 2)} ms"


def run_table(outcome: Outcome) -> Table:
    """A row for each congestion control: the sum of its flows, and one for all flows where a trial has several congestion controls."""
    has_marks = any(flow.delivered_ce for trial in outcome.trials for flow in trial.flows)
    has_changes = any(cell.scenarios[0].changes for cell in outcome.cells)
    several = any(len(trial.flows) > 1 for trial in outcome.trials)
    engines = len(outcome.versions) > 1
    shown = {"engine": engines, "flows": several, "highest RTT ms": has_changes, "CE marks": has_marks}
    columns = [name for name in ("cca", "engine", *ROW[1:]) if shown.get(name, True)]
    rows = []
    for cell in outcome.cells:
        for values in _rows(cell):
            kept = dict(zip(ROW, values, strict=True)) | {"engine": cell.engine}
            rows.append([kept[column] for column in columns])
    mixed = any("+" in cell.cca for cell in outcome.cells)
    notes = ("Each row is the sum of its flows.",) if several else ()
    return Table(columns, rows, 1 + engines, notes=notes if mixed or several else (), drop=RUN_DROP, words=("limited by",))


ROW = (
    "cca", "flows", "goodput Mbit/s, mean [95 %]", "CV", "added RTT p95 ms", "highest RTT ms", "retransmits", "CE marks", "RTT p50 ms",
    "limited by",
)  # fmt: skip
"""Columns of a row of :func:`run_table`."""


def _rows(cell: Cell) -> Iterator[tuple[str, ...]]:
    """A row for each congestion control of a cell, and one for all of them where there are several."""
    trials, scenario = cell.trials, cell.scenarios[0]
    link, ccas = summary.link_mbps(scenario), list(dict.fromkeys(flow.cca for flow in cell.trials[0].flows))
    full = bool(link) and stats.mean(cell.values()).value >= FULL * (link or 0)
    for cca in ccas:
        groups = [[flow for flow in trial.flows if flow.cca == cca] for trial in trials]
        yield _row(cca, groups, trials, link, full)
    if len(ccas) > 1:
        carried = stats.mean([sum(f.bytes_received for f in trial.flows) * 8e-6 / trial.duration for trial in trials])
        yield "all", str(len(trials[0].flows)), carried.text(most=link), percent(cell.cv().value), *[""] * (len(ROW) - 4)


def _row(cca: str, groups: Sequence[Sequence[FlowResult]], trials: Sequence[Trial], link: float | None, full: bool) -> tuple[str, ...]:
    """One row: the flows `groups` of each trial."""
    flows = [flow for group in groups for flow in group]
    goodputs = [sum(flow.goodput_mbps for flow in group) for group in groups]
    rtts, p95 = [f.rtt_ms.p50 for f in flows if f.rtt_ms.p50 is not None], [f.rtt_ms.p95 for f in flows if f.rtt_ms.p95 is not None]
    base = trials[0].path_rtt_ms
    added = number(max(0.0, sum(p95) / len(p95) - base)) if p95 and base is not None else "–"
    limited = shares(limits(flows)) + (", link full" if full else "")
    return (
        cca, str(len(groups[0])), stats.mean(goodputs).text(most=link), percent(stats.cv(goodputs).value), added, _highest(groups),
        _mean(sum(f.retransmits for f in group) for group in groups), _mean(sum(f.delivered_ce or 0 for f in group) for group in groups),
        _mean(rtts) if rtts else "–", limited,
    )  # fmt: skip


def _highest(groups: Sequence[Sequence[FlowResult]]) -> str:
    """The highest RTT of any of the flows, mean over the trials, ms."""
    peaks = [max((f.rtt_ms.max for f in group if f.rtt_ms.max is not None), default=math.nan) for group in groups]
    return _mean(known) if (known := stats.known(peaks)) else "–"


def _mean(values: Iterable[float]) -> str:
    return number(stats.mean([float(v) for v in values]).value)


def sweep_screen(outcome: Outcome, summaries: Sequence[CellSummary] = (), next_: Sequence[str] = ()) -> Screen:
    """The screen of a campaign with axes: what they are, which congestion control is the best where, and a row for each cell."""
    table = outcome.table(summaries)
    axes = {axis: levels for axis in outcome.axes if len(levels := outcome.levels(axis)) > 1}
    count = {len(cell.trials) for cell in outcome.cells}
    trials = f"{min(count)}" + (f" to {max(count)}" if len(count) > 1 else "")
    path = f"{summary.together([s for c in outcome.cells for s in c.scenarios], axes)}; {trials} trials a cell, {outcome.label}"
    notes = [note for note in table.notes if not note.startswith(CAVEAT)]
    caveats = [note.removeprefix(CAVEAT) for note in table.notes if note.startswith(CAVEAT)]
    caveats += video.caveats(outcome.cells[0].scenarios[0])
    return Screen(path, sweep_answer(outcome), tables=(replace(table, title="", notes=notes),), caveats=caveats, next=next_)


def sweep_answer(outcome: Outcome) -> str:
    """The answer of a campaign as a sentence: where which congestion control is the best, or from where to where the metric goes."""
    points: dict[tuple[tuple[str, str], ...], list[Cell]] = {}
    for cell in outcome.cells:
        points.setdefault(tuple(cell.at.items()), []).append(cell)
    if len(points) == 1 and outcome.campaign.metric == "goodput":
        return run_answer(outcome)
    metric = metrics.find(outcome.campaign.metric)
    if metric.name == "goodput" and all("+" in cell.cca for cell in outcome.cells):
        return f"{_extremes(outcome, metrics.find('jain'))} {_extremes(outcome, metrics.find('added_rtt'))}"
    if metric.better == "neither" or min(map(len, points.values())) < 2 or len(outcome.versions) > 1:
        return _extremes(outcome, metric)
    return _winners(points, metric, outcome)


def _extremes(outcome: Outcome, metric: Metric) -> str:
    """The lowest and the highest median, and where they are."""
    medians = [(cell.median(metric.name), cell) for cell in outcome.cells]
    known = [pair for pair in medians if math.isfinite(pair[0].value)]
    if not known:
        return f"No cell has a {metric.name}: the engine does not see it."
    low, high = min(known, key=lambda pair: pair[0].value), max(known, key=lambda pair: pair[0].value)
    unit = f" {metric.printed_unit}" if metric.printed_unit else ""
    ends = " to ".join(f"{estimate.text(most=_most(cell, metric))}{unit} ({_where(cell, outcome)})" for estimate, cell in (low, high))
    name = NAMES.get(metric.name, metric.name)
    return f"The median {name} goes from {ends}."


def _winners(points: Mapping[tuple[tuple[str, str], ...], Sequence[Cell]], metric: Metric, outcome: Outcome) -> str:
    """At how many points each congestion control is the best, at how many none is, and the largest clear ratio."""
    sign = 1 if metric.better == "less" else -1
    wins: dict[str, int] = {}
    level = 0
    clear: list[tuple[float, str]] = []
    varied = [axis for axis in outcome.axes if len(outcome.levels(axis)) > 1]
    for at, cells in points.items():
        known = [cell for cell in cells if math.isfinite(cell.mean(metric.name).value)]
        if len(known) < 2:
            continue
        best, other = sorted(known, key=lambda cell: sign * cell.mean(metric.name).value)[:2]
        ratio = best.over(other, metric.name)
        if stats.is_alike(ratio):
            level += 1
        elif ratio.excludes(1):
            wins[best.cca] = wins.get(best.cca, 0) + 1
            place = ", ".join(f"{axis} {value}" for axis, value in at if axis in varied)
            clear.append((-sign * math.log(ratio.value) if ratio.value > 0 else math.inf, f"{best.cca} {times(ratio, other.cca)} at {place}"))
    undecided = len(points) - level - sum(wins.values())
    verb = "carries most" if metric.name == "goodput" else f"has the {'least' if metric.better == 'less' else 'most'} {metric.name}"
    ranked = sorted(wins.items(), key=lambda pair: -pair[1])
    first = [f"{ranked[0][0]} {verb} at {ranked[0][1]} of {len(points)} points"] if ranked else []
    parts = [*first, *(f"{cca} at {count}" for cca, count in ranked[1:])]
    parts += [f"the best two are within 5 % in {metric.name} at {level}{'' if ranked else f' of {len(points)} points'}"] if level else []
    parts += [f"{undecided}{'' if parts else f' of {len(points)} points'} undecided"] if undecided else []
    most = f" The largest difference: {max(clear)[1]}." if clear else ""
    text = f"{'; '.join(parts)}.{most}"
    return f"{text[0].upper()}{text[1:]} {_extremes(outcome, metrics.find('added_rtt'))}" if metric.name == "goodput" and not clear else text


def _where(cell: Cell, outcome: Outcome) -> str:
    """Where a cell stands among the others: what differs between them."""
    parts = [cell.cca] if len(outcome.ccas) > 1 else []
    parts += [cell.engine] if len(outcome.versions) > 1 else []
    return ", ".join([*parts, *(f"{axis} {cell.at[axis]}" for axis in outcome.axes if axis in cell.at and len(outcome.levels(axis)) > 1)])


def _most(cell: Cell, metric: Metric) -> float | None:
    """What the metric of a cell cannot exceed: the link's rate, if it is a goodput."""
    return summary.link_mbps(cell.scenarios[0]) if metric.name == "goodput" else None
