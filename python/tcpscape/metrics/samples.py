"""Metrics of the flows' samples and of their packets: goodput second by second, the variation of RTTs, ECN's echoes.

Goodput is as `iperf3 -i 1` reports it: bytes are those that the sender knows to be acknowledged (`tcpi_bytes_acked`); between two samples they are
taken to grow evenly. RTTs of single segments are those that the sender's packets show, as tshark's `ack_rtt` gives them.

:func:`events_of_trial` says what happened to the senders: losses, retransmissions, timeouts, reductions that were undone. The model
records each event at its moment (`Trial.sender_events`). Where that was not kept, samples show them: an event is then what differs from the sample
before, its time is that of the sample that shows it first, and what began and ended between two samples is not seen. Source of the states:
linux/tcp.h, `enum tcp_ca_state`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from tcpscape.metrics.base import UNKNOWN
from tcpscape.stats.estimate import Floats
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl

    from tcpscape.trial import Trial


INTERVAL_S = 1.0
"""iperf3's reporting interval, s."""
HANDSHAKE_S = 1.0
"""Start of a flow that is left out of its smoothed RTT, s: that begins with the handshake's RTT, which may contain address resolution."""
FEWEST_SAMPLES = 2
"""Fewest samples with a standard deviation."""
FEWEST_RTTS = 10
"""Fewest RTTs of a flow for the published indicator, which is unstable below."""
ECE = 0x40
"""The flag's bit in the TCP header (RFC 3168 §6.1)."""


def delivered(trial: Trial, flow: int) -> tuple[Floats, Floats]:
    """Times, s, and bytes acknowledged by then, from the flow's start with 0; both empty where nothing was sampled."""
    if trial.samples is None or "bytes_acked" not in trial.samples.columns or flow >= len(trial.flows):
        return np.empty(0), np.empty(0)
    rows = trial.samples["flow"].to_numpy() == flow
    if not rows.any():
        return np.empty(0), np.empty(0)
    times, acked = trial.samples["t_ns"].to_numpy()[rows] / 1e9, trial.samples["bytes_acked"].to_numpy()[rows].astype(float)
    start = min(trial.flows[flow].start_s, float(times[0]))
    return np.concatenate(([start], times)), np.concatenate(([0.0], acked))


def rates(trial: Trial, edges: Floats) -> Floats:
    """Goodput of each flow between successive `edges` (s), Mbit/s: an array of flows × (edges − 1).

    0 for a flow without samples (it was never established); NaN where nothing was sampled at all.
    """
    rows: list[Floats] = []
    for flow in range(len(trial.flows)):
        times, acked = delivered(trial, flow)
        missing = np.full(len(edges) - 1, np.nan if trial.samples is None else 0.0)
        rows.append(np.diff(np.interp(edges, times, acked)) * 8 / 1e6 / np.diff(edges) if len(times) else missing)
    return np.asarray(rows, dtype=np.float64).reshape(len(trial.flows), len(edges) - 1)


def grid(trial: Trial, every_s: float = INTERVAL_S) -> Floats:
    """Edges of whole intervals from the first flow's start to the last sample, s."""
    series = [times for times, _ in (delivered(trial, flow) for flow in range(len(trial.flows))) if len(times)]
    if not series:
        return np.empty(0)
    start, stop = min(float(t[0]) for t in series), max(float(t[-1]) for t in series)
    return start + every_s * np.arange(int((stop - start) / every_s + 1e-6) + 1, dtype=np.float64)


def intervals(trial: Trial, every_s: float = INTERVAL_S) -> Floats:
    """All flows' goodput together in each whole interval, Mbit/s."""
    edges = grid(trial, every_s)
    return np.asarray(rates(trial, edges).sum(axis=0), dtype=np.float64) if len(edges) > 1 else np.empty(0)


def per_second(statistic: Callable[[Floats], float], fewest: int = 1) -> Callable[[Trial], float]:
    """A metric: a statistic of the goodput's 1-s intervals; unknown with fewer than `fewest` of them."""

    def of(trial: Trial) -> float:
        rates = intervals(trial)
        return float(statistic(rates)) if len(rates) >= fewest else UNKNOWN

    return of


def std(values: Floats) -> float:
    """Sample standard deviation, n − 1."""
    return float(np.std(values, ddof=1))


def quantile(q: float) -> Callable[[Floats], float]:
    """A quantile, between two values by linear interpolation."""
    return lambda values: float(np.quantile(values, q))


def srtt_cv(trial: Trial) -> float:
    """Standard deviation / mean of the smoothed RTT at even times, mean over the flows, their first second left out.

    Smoothing hides most of a packet's own jitter: `rtt_cv` is the measure of the published thresholds.
    """
    return _mean_over_flows(trial, lambda srtt: float(np.std(srtt) / np.mean(srtt)))


def srtt_p50(trial: Trial) -> float:
    """Median of the smoothed RTT at even times, ms, mean over the flows, their first second left out.

    Every engine reports it alike. `rtt_p50` is of single segments on the model, of which a fast second has more, and of the smoothed RTT on a kernel.
    """
    return _mean_over_flows(trial, lambda srtt: float(np.median(srtt)) / 1e3)


def _mean_over_flows(trial: Trial, of: Callable[[Floats], float]) -> float:
    """The mean over the flows of a number of each one's smoothed RTTs at even times, µs, its first second left out; unknown without samples."""
    if trial.samples is None or "srtt_us" not in trial.samples.columns:
        return UNKNOWN
    numbers, times, srtts = (trial.samples[name].to_numpy() for name in ("flow", "t_ns", "srtt_us"))
    values = []
    for number, flow in enumerate(trial.flows):
        srtt = srtts[(numbers == number) & (srtts > 0) & (times >= (flow.start_s + HANDSHAKE_S) * 1e9)]
        if len(srtt) >= FEWEST_SAMPLES:
            values.append(of(srtt))
    return sum(values) / len(values) if values else UNKNOWN


def ack_rtts(trial: Trial, flow: int) -> Floats:
    """RTTs of the segments sent once and acknowledged by an ACK of their own end, ms, in the order of the ACKs.

    Those sent again have none (Karn). Empty where packets were not kept.
    """
    if trial.packets is None:
        return np.empty(0)
    import polars as pl

    packets = trial.packets.filter(pl.col("flow") == flow)
    data = packets.filter((pl.col("received") == 0) & (pl.col("len") > 0)).select("t_ns", end=pl.col("seq") + pl.col("len"), seq="seq")
    once = data.filter(pl.len().over("seq") == 1)
    acks = packets.filter(pl.col("received") == 1).group_by("ack").agg(acked=pl.col("t_ns").min())
    pairs = once.join(acks, left_on="end", right_on="ack").filter(pl.col("acked") > pl.col("t_ns")).sort("acked")
    return np.asarray((pairs["acked"] - pairs["t_ns"]).to_numpy() / 1e6, dtype=np.float64)


def rtt_cv(trial: Trial) -> float:
    """Standard deviation / mean of the RTTs of segments, mean over the flows with ten or more."""
    series = [rtts for rtts in (ack_rtts(trial, flow) for flow in range(len(trial.flows))) if len(rtts) >= FEWEST_RTTS]
    return float(np.mean([np.std(rtts) / np.mean(rtts) for rtts in series])) if series else UNKNOWN


def ece(trial: Trial) -> float:
    """Segments with ECE in either direction, two of each handshake that agrees on ECN among them (RFC 3168 §6.1.1)."""
    if trial.packets is None or "flags" not in trial.packets.columns:
        return UNKNOWN
    return float((trial.packets["flags"] & ECE != 0).sum())


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


def events_of_trial(trial: Trial, flow: int) -> list[SenderEvent]:
    """The events of a flow in order of time: as they were recorded, otherwise as the samples show them; none where neither was kept."""
    if trial.sender_events is not None:
        recorded = _of(trial.sender_events, flow)
        rows = {kind: recorded.select("t_ns", column).iter_rows() for kind, column in RECORDED.items()}
        return sorted((SenderEvent(t, kind, n) for kind, every in rows.items() for t, n in every if n), key=lambda event: event.t_ns)
    return events_of_flow(_of(trial.samples, flow)) if trial.samples is not None else []


def states_of_trial(trial: Trial, flow: int) -> list[StateSpan]:
    """The stretches of time in each state, from the flow's first to its last sample or event."""
    import polars as pl

    tables = [table for table in (trial.samples, trial.sender_events) if table is not None and "ca_state" in table.columns]
    parts = [_of(table, flow).select("t_ns", "ca_state") for table in tables]
    return states(pl.concat(parts).sort("t_ns", maintain_order=True)) if parts else []


def events_of_flow(rows: pl.DataFrame) -> list[SenderEvent]:
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
