"""What happened to the senders of a trial: losses, retransmissions, timeouts, reductions that were undone, and the states they were in.

The model records each event at its moment (`Trial.sender_events`). Where that was not kept, samples show them: an event is then what differs from the
sample before, its time is that of the sample that shows it first, and what began and ended between two samples is not seen. Source of the states:
linux/tcp.h, `enum tcp_ca_state`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import polars as pl

    from tcpscape.trial import Trial

STATES = ("open", "disorder", "CWR", "recovery", "loss")
"""Congestion-avoidance states of Linux by their number (`ca_state`)."""
OPEN, LOSS = STATES.index("open"), STATES.index("loss")
Kind = Literal["loss", "retransmission", "needless", "timeout", "undo"]
"""Segments marked lost, sent again, reported as sent again needlessly (DSACK); entry into the state of a timeout; a reduction taken back."""
COUNTED: dict[Kind, str] = {"loss": "lost", "retransmission": "retransmits", "needless": "spurious_retransmits"}
"""Events that are counted in segments, and the column of their counter."""
RECORDED: dict[Kind, str] = {**COUNTED, "timeout": "rtos", "undo": "undos"}
"""Every event, and its column among those that the model recorded."""


@dataclass(frozen=True, slots=True)
class SenderEvent:
    """Something that happened to a flow."""

    t_ns: int
    """When it happened, or when a sample showed it first, ns from the start of the trial."""
    kind: Kind
    count: int = 1
    """Segments, of what is counted in segments."""


@dataclass(frozen=True, slots=True)
class StateSpan:
    """A stretch of time in one congestion-avoidance state."""

    state: int
    """Place in :data:`STATES`."""
    begin_ns: int
    end_ns: int
    """Where the next state begins; of the last span the last sample."""


def of_trial(trial: Trial, flow: int) -> list[SenderEvent]:
    """The events of a flow in order of time: as they were recorded, otherwise as the samples show them; none where neither was kept."""
    if trial.sender_events is not None:
        recorded = _of(trial.sender_events, flow)
        rows = {kind: recorded.select("t_ns", column).iter_rows() for kind, column in RECORDED.items()}
        return sorted((SenderEvent(t, kind, n) for kind, every in rows.items() for t, n in every if n), key=lambda event: event.t_ns)
    return of_flow(_of(trial.samples, flow)) if trial.samples is not None else []


def states_of_trial(trial: Trial, flow: int) -> list[StateSpan]:
    """The stretches of time in each state, from the flow's first to its last sample or event."""
    import polars as pl

    tables = [table for table in (trial.samples, trial.sender_events) if table is not None and "ca_state" in table.columns]
    parts = [_of(table, flow).select("t_ns", "ca_state") for table in tables]
    return states(pl.concat(parts).sort("t_ns", maintain_order=True)) if parts else []


def of_flow(rows: pl.DataFrame) -> list[SenderEvent]:
    """The events of one flow's samples (in order of time), in order of time; those whose columns were not sampled are left out."""
    times = rows["t_ns"].to_list()
    events = [event for kind, column in COUNTED.items() if column in rows.columns for event in _growth(kind, times, rows[column].to_list())]
    if "ca_state" in rows.columns:
        states = rows["ca_state"].to_list()
        events += [SenderEvent(t, "timeout") for t, (before, now) in zip(times[1:], pairwise(states), strict=True) if now == LOSS != before]
        if "ssthresh" in rows.columns:
            events += _undos(times, states, rows["ssthresh"].to_list())
    return sorted(events, key=lambda event: event.t_ns)


def states(rows: pl.DataFrame) -> list[StateSpan]:
    """The stretches of time in each state, by one flow's samples; empty where the state was not sampled."""
    if "ca_state" not in rows.columns or rows.is_empty():
        return []
    times, now = rows["t_ns"].to_list(), rows["ca_state"].to_list()
    begins = [i for i, state in enumerate(now) if not i or state != now[i - 1]]
    ends = [*(times[i] for i in begins[1:]), times[-1]]
    return [StateSpan(now[i] or OPEN, times[i], end) for i, end in zip(begins, ends, strict=True)]


def _of(table: pl.DataFrame, flow: int) -> pl.DataFrame:
    return table.filter(table["flow"] == flow).sort("t_ns", maintain_order=True)


def _growth(kind: Kind, times: Sequence[int], counter: Sequence[int | None]) -> Iterator[SenderEvent]:
    """Where a counter grew; where a marking was taken back, what grows again counts again."""
    before = 0
    for t, value in zip(times, counter, strict=True):
        if value is not None:
            if value > before:
                yield SenderEvent(t, kind, value - before)
            before = value


def _undos(times: Sequence[int], states: Sequence[int], thresholds: Sequence[int | None]) -> Iterator[SenderEvent]:
    """Where a reduction was taken back: a sender outside of repair whose slow-start threshold rises has its old one again (RFC 4015).

    Controls that leave the threshold alone (BBR) show none.
    """
    steps = zip(times[1:], pairwise(states), pairwise(thresholds), strict=True)
    for t, (before, now), (low, high) in steps:
        if before != OPEN and now < before and low is not None and high is not None and high > low:
            yield SenderEvent(t, "undo")
