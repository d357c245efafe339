"""The quantities of a trial over time that a figure has panels for: window, RTT, rates, queue, …; :func:`panels` reads their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcpscape.errors import StoreError, refuse
from tcpscape.metrics import samples
from tcpscape.plots.style import Look
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float64]
LEAST_BIN_S, BINS = 0.1, 250
"""Throughput of a trace: shortest interval, s; number of intervals of a trial, about."""
BOTTLENECK = 1
"""Number of the router's pipe in the samples of queues; higher ones are on the way of the ACKs."""
UNLIMITED = 2.0**31 - 1
"""`ssthresh` before the first loss: no threshold yet, which no panel shows."""
MBIT, MS, KB = 8e-6, 1e-3, 1e-3
"""Factors from the samples' units to those of the panels: byte/s to Mbit/s, µs to ms, byte to kB."""


@dataclass(frozen=True)
class Trace:
    """One flow of one trial, and how it is drawn."""

    label: str
    look: Look
    trial: Trial
    flow: int

    @property
    def rows(self) -> pl.DataFrame:
        """Its samples."""
        frame = self.trial.samples
        if frame is None:
            raise StoreError("samples: the trial has none; run with --samples 10ms")
        return frame.filter(frame["flow"] == self.flow)


Reader = Callable[[Trace], tuple[Array, Array] | None]
"""A trace → times, s, and values; None where the engine does not measure it."""


@dataclass(frozen=True)
class Panel:
    """One quantity over time."""

    name: str
    """Its name in `--what`."""
    label: str
    """Its name with its unit."""
    read: Reader
    of_path: bool = False
    """Whether it belongs to the path, not to a flow."""
    states: bool = False
    """Whether the sender's recoveries and timeouts are marked in it."""


def _column(name: str, factor: float) -> Reader:
    """A column of the samples, in its unit times `factor`."""

    def read(trace: Trace) -> tuple[Array, Array] | None:
        rows = trace.rows
        if name not in rows.columns or rows.is_empty():
            return None
        return rows["t_ns"].to_numpy() / 1e9, rows[name].cast(float).fill_null(np.nan).to_numpy() * factor

    return read


def _ssthresh(trace: Trace) -> tuple[Array, Array] | None:
    """The slow start threshold, packets; a gap before the first loss."""
    curve = _column("ssthresh", 1.0)(trace)
    return curve and (curve[0], np.where(curve[1] < UNLIMITED, curve[1], np.nan))


def _queue(trace: Trace) -> tuple[Array, Array] | None:
    """The longest queue on the way of the data, packets of all flows together."""
    frame = trace.trial.queue_samples
    if frame is None or trace.flow:
        return None
    queues = [queue for queue in frame.partition_by("pipe", "stage", "depth") if queue["pipe"][0] <= BOTTLENECK]
    if not queues:
        return None
    longest = max(queues, key=lambda queue: float(queue["packets"].sum()))
    return longest["t_ns"].to_numpy() / 1e9, longest["packets"].cast(float).to_numpy()


def _throughput(trace: Trace) -> tuple[Array, Array] | None:
    """Acknowledged bytes in intervals of about a 250th of the trial, Mbit/s."""
    times, delivered = samples.delivered(trace.trial, trace.flow)
    if len(times) < 2:
        return None
    step = max(LEAST_BIN_S, (times[-1] - times[0]) / BINS, float(np.median(np.diff(times))))
    edges = np.arange(times[0], times[-1] + step / 2, step)
    return edges[1:], np.diff(np.interp(edges, times, delivered)) * 8e-6 / step


PANELS: Mapping[str, Panel] = {
    panel.name: panel
    for panel in (
        Panel("cwnd", "cwnd, packets", _column("cwnd", 1.0), states=True), Panel("in_flight", "in flight, packets", _column("in_flight", 1.0)),
        Panel("rtt", "smoothed RTT, ms", _column("srtt_us", MS)), Panel("queue", "queue, packets", _queue, of_path=True),
        Panel("throughput", "throughput, Mbit/s", _throughput), Panel("ssthresh", "ssthresh, packets", _ssthresh),
        Panel("pacing_rate", "pacing rate, Mbit/s", _column("pacing_rate", MBIT)),
        Panel("delivery_rate", "delivery rate, Mbit/s", _column("delivery_rate", MBIT)), Panel("min_rtt", "least RTT, ms", _column("min_rtt_us", MS)),
        Panel("rto", "RTO, ms", _column("rto_us", MS)), Panel("rwnd", "receive window, kB", _column("rwnd", KB)),
        Panel("retransmits", "retransmitted, segments", _column("retransmits", 1.0)), Panel("lost", "lost, segments", _column("lost", 1.0)),
    )
}  # fmt: skip
"""Every panel of a trial over time by its name."""
USUAL = ("cwnd", "in_flight", "rtt", "queue", "throughput")
"""The panels of a figure that names none, from the top."""


def panels(names: Sequence[str] = ()) -> list[Panel]:
    """The panels with these names in their order, each once; the usual ones without any name.

    :raises TcpscapeError: where a name is unknown.
    """
    if unknown := [name for name in names if name not in PANELS]:
        refuse("what", f"{unknown[0]!r} is unknown", f"choose {', '.join(PANELS)}")
    return [PANELS[name] for name in dict.fromkeys(names or USUAL)]
