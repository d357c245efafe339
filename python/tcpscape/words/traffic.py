"""What probes, requests, transfers, players and a change of the path came to, over several trials with intervals: sentences, tables and caveats.

The numbers of one trial are the metrics of :mod:`tcpscape.metrics.traffic`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tcpscape import metrics, stats, units
from tcpscape.campaign import groups
from tcpscape.campaign.groups import Viewing
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.metrics import traffic
from tcpscape.metrics.base import only_probe
from tcpscape.stats import Estimate
from tcpscape.text.numbers import UNKNOWN, Number, number, percent
from tcpscape.text.table import Table, TableRow
from tcpscape.trial import Rtt, Trial

MOST_CELLS = 3
"""Most cells whose probes and transfers are said in sentences."""
LEAST_ANSWERED = 100
"""Fewest packets of a probe for its 99th percentile."""
LEAST_COMPLETED = 10
"""Fewest transfers of a size class that a sentence is about."""
MOST_UNFINISHED = 0.02
"""Share of transfers that may be under way at the end without a caveat."""
PROBES = ("probe", "measures", "p50 ms", "p95 ms, mean [95 %]", "p99 ms", "jitter ms", "lost", "MOS")
TRANSFERS = ("transfers", "started", "complete", "p50 ms", "p95 ms, mean [95 %]", "p99 ms", "mean ms")
REQUESTS = ("requests of", "answers", "p50 ms", "p95 ms, mean [95 %]", "p99 ms", "slowest ms")
DROP = ("jitter ms", "p99 ms", "slowest ms", "mean ms")
"""Columns that a narrow screen leaves out, the first one first."""
VIEW_COLUMNS = ("cca", "bit rate Mbit/s, mean [95 %]", "start-up s", "stalls", "stalled s", "without stall", "switches", "QoE Mbit/s")
"""Columns of the table of viewers."""
VIEW_DROP = ("QoE Mbit/s", "switches", "stalls", "without stall")
"""Columns that a narrow screen leaves out, the first one first."""
BEGIN_S = 1.0
"""Start of a trial that does not count, s: the handshake and slow start."""


def sentences(outcome: Outcome) -> list[str]:
    """A sentence each about latency under load, answers to requests and transfers; none of what a scenario has not, or of more cells than few."""
    if len(outcome.cells) > MOST_CELLS:
        return []
    texts = [(subject, [(_title(cell, outcome), text) for cell in outcome.cells if (text := of(cell))]) for subject, of in _SUBJECTS]
    return [f"{subject}: {'; '.join(f'{title} {text}' if title else text for title, text in parts)}." for subject, parts in texts if parts]


def _latency(cell: Cell) -> str:
    """`84 ms [80, 88] (95th percentile), 1210 round trips a minute; a call has an opinion score of 4.1`."""
    latency, rpm, mos = (_estimate(cell, name) for name in ("latency_p95", "rpm", "voice_mos"))
    if latency is None:
        return ""
    kind = "round trips" if any(probe.is_echo for probe in cell.trials[0].probes) else "one way"
    parts = [f"{_cell(latency, 'ms')} (95th percentile of {kind})"]
    parts += [f"{_cell(rpm, 'round trips a minute')} (RPM)"] if rpm else []
    parts += [f"{_call(cell.trials[0])} has an opinion score of {number(mos.value, 2)} of 4.4"] if mos else []
    return ", ".join(parts)


def _call(trial: Trial) -> str:
    """`a call`; `a call's way down` where data travel the other way too, and no probe says what the call meets there."""
    ways = {probe.direction for probe in trial.probes if not probe.is_echo}
    return f"a call's way {min(ways)}" if len(ways) == 1 and {flow.direction for flow in trial.flows} - ways else "a call"


def _answers(cell: Cell) -> str:
    """`50 ms [48, 52], the 95th percentile 120 ms`."""
    return _median_and_tail(cell, "response")


def _transfers(cell: Cell) -> str:
    """`of up to 10 kB take 50 ms [48, 52], the 95th percentile 120 ms; of above 1 MB 2.1 s …`."""
    names = [name for place, name in enumerate(traffic.CLASSES) if _completed(cell, place) >= LEAST_COMPLETED]
    ends = dict.fromkeys([*names[:1], *names[-1:]])
    return "; ".join(f"{traffic.CLASSES[name]} {_median_and_tail(cell, 'fct', f':{name}')}" for name in ends)


def _completed(cell: Cell, place: int) -> int:
    """Transfers of a size class that were complete, of all trials."""
    return sum(entry.classes[place].completed for trial in cell.trials for entry in trial.transfers if place < len(entry.classes))


_SUBJECTS: Sequence[tuple[str, Callable[[Cell], str]]] = (
    ("Latency under load", _latency),
    ("An answer takes", _answers),
    ("Transfers take", _transfers),
)


def _median_and_tail(cell: Cell, name: str, which: str = "") -> str:
    """The median and the 95th percentile of times."""
    median, tail = (_estimate(cell, f"{name}_{percentile}{which}") for percentile in ("p50", "p95"))
    return f"{_cell(median, 'ms')}, the 95th percentile {number(tail.value)} ms" if median and tail else ""


def tables(outcome: Outcome) -> tuple[Table, ...]:
    """A table each of probes, requests and transfers, of what there is: a row for each probe, group of flows or size class of each cell."""
    kinds = ((PROBES, "Probes", _probe_rows), (REQUESTS, "Requests", _request_rows), (TRANSFERS, "Transfers by size", _transfer_rows))
    filled = []
    for columns, title, rows_of in kinds:
        rows = [(_title(cell, outcome), *row) for cell in outcome.cells for row in rows_of(cell)]
        if rows:
            several, left = any(row[0] for row in rows), 2 if columns is PROBES else 1
            table = Table(("with", *columns), rows, 1 + left, title=title, drop=DROP)
            filled.append(table if several else replace(table, columns=columns, rows=[row[1:] for row in rows], left=left))
    return tuple(filled)


def _probe_rows(cell: Cell) -> Iterator[TableRow]:
    for probe in cell.trials[0].probes:
        trials = [only_probe(trial, probe.name) for trial in cell.trials]
        mean = {name: _mean(trials, name) for name in ("latency_p50", "latency_p95", "latency_p99", "probe_jitter", "voice_mos")}
        way = f" {probe.direction}" * (len({p.direction for p in cell.trials[0].probes}) > 1)
        measures = f"{'round trips' if probe.is_echo else 'one way'}{way}"
        lost = Number.percent(stats.mean([metrics.find("probe_loss").of(trial) for trial in trials]).value, 1)
        p50, p95, p99, jitter, mos = mean.values()
        yield probe.name, measures, _number(p50), _cell(p95), _number(p99), _number(jitter), lost, _number(mos, 2)


def _request_rows(cell: Cell) -> Iterator[TableRow]:
    for group in groups.of(cell):
        trials = [replace(trial, flows=tuple(flow for flow in group.of(trial) if flow.responses)) for trial in cell.trials]
        if not trials[0].flows:
            continue
        asked = replace(group, numbers=group.numbers[: len(trials[0].flows)])
        counts = [float(sum(flow.responses.count for flow in trial.flows if flow.responses)) for trial in trials]
        p50, p95, slowest = (_mean(trials, f"response_{name}") for name in ("p50", "p95", "max"))
        p99 = _estimate_of([traffic.response("p99")(trial) for trial in trials])
        yield asked.title, Number.of(stats.mean(counts).value), _number(p50), _cell(p95), _number(p99), _number(slowest)


def _transfer_rows(cell: Cell) -> Iterator[TableRow]:
    for entry in range(len(cell.trials[0].transfers)):
        trials = [replace(trial, transfers=(trial.transfers[entry],)) for trial in cell.trials]
        cca = f" ({trials[0].transfers[0].cca})" * (len(cell.trials[0].transfers) > 1)
        for place in range(len(trials[0].transfers[0].classes)):
            classes = [trial.transfers[0].classes[place] for trial in trials]
            started, complete = sum(c.started for c in classes), sum(c.completed for c in classes)
            if started:
                name, times = f"{[*traffic.CLASSES.values()][place]}{cca}", _times([c.completion_ms for c in classes])
                yield (name, Number.of(started / len(trials)), Number.percent(complete / started), *times)


def _times(each: Sequence[Rtt]) -> Iterator[Number]:
    """Cells of a row: the median, the 95th percentile with its interval, the 99th and the mean of times, each the mean over the trials."""
    for name in ("p50", "p95", "p99", "mean"):
        estimate = _estimate_of([value for times in each if (value := getattr(times, name)) is not None])
        yield _cell(estimate) if name == "p95" else _number(estimate)


def caveats(outcome: Outcome) -> list[str]:
    """What weakens percentiles of probes and of transfers."""
    texts = []
    few = {probe.name for trial in outcome.each_trial() for probe in trial.probes if probe.received < LEAST_ANSWERED}
    if few:
        names = " and ".join(sorted(few))
        texts.append(f"fewer than {LEAST_ANSWERED} packets of {names} arrived: the 99th percentile is nearly the largest; give a longer --duration")
    lacking = stats.known(metrics.find("unfinished").of(trial) for trial in outcome.each_trial())
    if lacking and (share := sum(lacking) / len(lacking)) > MOST_UNFINISHED:
        texts.append(f"{percent(share)} of the transfers were under way at the end: times of completion leave out the slowest")
    return texts


def _title(cell: Cell, outcome: Outcome) -> str:
    """What tells a cell from the others of a run; empty where it is alone."""
    parts = [cell.cca] * (len(outcome.ccas) > 1) + [cell.engine] * (len(outcome.versions) > 1)
    return " on ".join(parts)


def _mean(trials: Sequence[Trial], name: str) -> Estimate | None:
    return _estimate_of([metrics.find(name).of(trial) for trial in trials])


def _estimate(cell: Cell, name: str) -> Estimate | None:
    """The mean of a metric over the trials of a cell; None where it is not known."""
    return _estimate_of(cell.values(name))


def _estimate_of(values: Sequence[float]) -> Estimate | None:
    known = [value for value in values if math.isfinite(value)]
    return stats.mean(known) if known else None


def _number(estimate: Estimate | None, digits: int = 3) -> Number:
    return Number.of(estimate.value, digits) if estimate else UNKNOWN


def _cell(estimate: Estimate | None, unit: str = "") -> Number:
    """The value with its interval, which is left out where it has the same digits as the value."""
    if estimate is None:
        return UNKNOWN
    cell, same = estimate.cell(unit=unit), number(estimate.low) == number(estimate.high) == number(estimate.value)
    return replace(cell, interval="") if same else cell


def view_tables(outcome: Outcome) -> tuple[Table, ...]:
    """The table of what viewers see, a row for each congestion control of each cell; none without players."""
    rows = [row for cell in outcome.cells for row in _view_rows(cell)]
    return (Table(VIEW_COLUMNS, rows, title="What a viewer sees", drop=VIEW_DROP),) if rows else ()


def view_sentences(outcome: Outcome) -> list[str]:
    """What a viewer sees under each congestion control, as one sentence; none without players, or with more than two rows."""
    views = [(cca, view) for cell in outcome.cells for cca in cell.ccas if (view := groups.viewer(cell.trials, cca))]
    if not 1 <= len(views) <= 2:
        return []
    (first, view), *others = views
    return ["; with ".join([f"With {first} a viewer sees {seen(view)}", *(f"{cca} {seen(view)}" for cca, view in others)]) + "."]


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


def _view_rows(cell: Cell) -> list[TableRow]:
    """A row for each congestion control of a cell that has players."""
    rows = []
    for cca in cell.ccas:
        if view := groups.viewer(cell.trials, cca):
            rows.append(view_row(cca, view))
    return rows


def view_row(cca: str, view: Viewing) -> TableRow:
    """A row of :data:`VIEW_COLUMNS`."""
    numbers = (view.bitrate, view.startup, view.stalls, view.stalled)
    return (cca, *(e.cell() for e in numbers), Number.percent(view.smooth.value), view.switches.cell(2), view.qoe.cell())


def change_sentences(outcome: Outcome) -> Iterator[str]:
    """One sentence about the change of a run that has exactly one: means before and after it, and the highest value, mean over the trials."""
    changes = outcome.cells[0].scenarios[0].changes
    if len(changes) != 1 or changes[0].at is None:
        return
    at_s = changes[0].at / units.NS_PER_S
    parts = [text for cell in outcome.cells if (text := _around(cell, at_s))]
    if parts:
        yield f"Smoothed RTT before and after the change at {units.brief_time(changes[0].at)}: {'; '.join(parts)}."


def _around(cell: Cell, at_s: float) -> str:
    """`cubic 84 and 171 ms, at most 201 ms`; empty without samples on both sides of the change."""
    rows = [values for trial in cell.trials for values in _values(trial, at_s)]
    if not rows:
        return ""
    before, after, highest = (number(stats.mean(column).value) for column in zip(*rows, strict=True))
    return f"{cell.cca} {before} and {after} ms, at most {highest} ms"


def _values(trial: Trial, at_s: float) -> Sequence[tuple[float, float, float]]:
    """The mean smoothed RTT of a trial's flows before the change and after it, and the highest after it, ms."""
    if trial.samples is None or "srtt_us" not in trial.samples.columns:
        return ()
    times = trial.samples["t_ns"].to_numpy() / units.NS_PER_S
    rtts = trial.samples["srtt_us"].to_numpy().astype(float) / 1000
    before, after = rtts[(times >= BEGIN_S) & (times < at_s)], rtts[times >= at_s]
    if not len(before) or not len(after) or math.isnan(float(np.sum(before)) + float(np.sum(after))):
        return ()
    return ((float(before.mean()), float(after.mean()), float(after.max())),)
