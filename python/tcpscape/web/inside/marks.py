"""Marks of what happened to the senders of a trial, exactly as often as the trial's own counters say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcpscape.metrics.events import STATES
from tcpscape.trial import Trial
from tcpscape.units import NS_PER_S
from tcpscape.web.blocks import Block


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of event."""

    name: str
    """Its column in the events of senders."""
    title: str
    about: str
    """What it means, as a sentence."""
    counter: str = ""
    """The counter of a flow's results that has their number; empty where there is none."""


KINDS: Sequence[Kind] = (
    Kind("lost", "loss", "The sender found packets lost."),
    Kind("retransmits", "retransmission", "The sender sent segments again.", "retransmits"),
    Kind("fast_recoveries", "fast recovery", "The sender began to repair losses, with a smaller window.", "fast_recoveries"),
    Kind("ecn_reductions", "ECN reduction", "The window fell after a congestion mark.", "ecn_reductions"),
    Kind("rtos", "timeout", "The retransmission timer expired: the window begins anew.", "rtos"),
    Kind("undos", "undo", "A reduction was found wrong and taken back.", "undos"),
    Kind("spurious_retransmits", "needless retransmission", "The receiver reported that it had the data already (DSACK).", "spurious_retransmits"),
    Kind("spurious_rtos", "spurious timeout", "F-RTO found that the timeout was wrong."),
    Kind("tlps", "tail loss probe", "The sender repeated the last segment or sent one more, since no ACK came."),
    Kind("reord_seen", "reordering", "The sender saw that packets had overtaken each other.", "reord_seen"),
)
"""Every kind of event that is marked, in the order of the legend."""
SHADED = 2
"""The first of the states in which the window is reduced or losses are repaired: spans of them are sent."""


def of(run: int, trial: Trial, window: tuple[float, float] | None = None) -> Block:
    """The block `marks` of a run: each mark's time, flow, kind (a place in `kinds`), how many at once, and the window then; spans of states."""
    kinds = [{"name": kind.name, "title": kind.title, "about": kind.about} for kind in KINDS]
    values = {"run": run, "kinds": kinds, "states": STATES}
    events = trial.sender_events
    if events is None or events.is_empty():
        return Block("marks", values, {name: np.empty(0, np.float32) for name in (*_MARK, *_SPAN)})
    times, flows, cwnd = (events[name].to_numpy() for name in ("t_ns", "flow", "cwnd"))
    places, kind_of, counts = [], [], []
    for number, kind in enumerate(KINDS):
        grown = events[kind.name].to_numpy()
        rows = np.flatnonzero(grown)
        places.append(rows)
        kind_of.append(np.full(len(rows), number))
        counts.append(grown[rows])
    at, kind_column, count_column = (np.concatenate(parts) for parts in (places, kind_of, counts))
    order = np.argsort(at, kind="stable")
    at = at[order]
    table = {
        "t": times[at] / NS_PER_S, "flow": flows[at], "kind": kind_column[order], "count": count_column[order], "cwnd": cwnd[at],
        **_spans(times / NS_PER_S, flows, events["ca_state"].to_numpy(), trial.duration),
    }  # fmt: skip
    keep = slice(None) if window is None else (table["t"] >= window[0]) & (table["t"] <= window[1])
    marks = {name: table[name][keep] for name in _MARK} | {name: table[name] for name in _SPAN}
    return Block("marks", values, {name: np.ascontiguousarray(column, np.float32) for name, column in marks.items()})


_MARK = ("t", "flow", "kind", "count", "cwnd")
_SPAN = ("span.from", "span.to", "span.state", "span.flow")


def _spans(times: np.ndarray, flows: np.ndarray, states: np.ndarray, end_s: float) -> dict[str, np.ndarray]:
    """The times in each of the shaded states; one that lasts to the end ends there."""
    rows: list[tuple[float, float, float, float]] = []
    for flow in np.unique(flows):
        of_flow = flows == flow
        t, state = times[of_flow], states[of_flow]
        turns = np.flatnonzero(np.diff(state, prepend=0))
        ends = np.append(t[turns[1:]], end_s)
        rows += [(t[i], max(t[i], end), state[i], flow) for i, end in zip(turns, ends, strict=True) if state[i] >= SHADED]
    columns = np.array(sorted(rows), dtype=np.float64).reshape(-1, len(_SPAN)).T
    return dict(zip(_SPAN, columns, strict=True))
