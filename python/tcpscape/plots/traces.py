"""The quantities of a trial over time that a figure has panels for: window, RTT, rates, queue, …; :func:`panels` reads their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpscape.controls.palette import Look
from tcpscape.errors import StoreError, refuse, shown
from tcpscape.interchange.base import HEADERS
from tcpscape.metrics import queues, samples
from tcpscape.scenario import bottleneck
from tcpscape.scenario.bottleneck import Bottleneck
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats.estimate import Floats
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl

LEAST_BIN_S, BINS = 0.1, 250
"""Throughput of a trace: shortest interval, s; number of intervals of a trial, about."""
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
    scenario: Scenario

    @property
    def bottleneck(self) -> Bottleneck | None:
        """The queue with the lowest rate on its path."""
        return bottleneck.shown(self.scenario)

    @property
    def rows(self) -> pl.DataFrame:
        """Its samples."""
        frame = self.trial.samples
        if frame is None:
            raise StoreError("samples: the trial has none; run with --samples 10ms")
        return frame.filter(frame["flow"] == self.flow)


Reader = Callable[[Trace], tuple[Floats, Floats] | None]
"""A trace → times, s, and values; None where the engine does not measure it."""


@dataclass(frozen=True)
class Panel:
    """One quantity over time."""

    name: str
    """Its name in `--what`."""
    label: str | Callable[[Trace], str]
    """Its name with its unit, which may depend on the path."""
    read: Reader
    of_path: bool = False
    """Whether it belongs to the path, not to a flow."""
    states: bool = False
    """Whether the sender's recoveries, timeouts and PROBE_RTT are marked in it."""

    def label_of(self, trace: Trace) -> str:
        """The label of its axis."""
        return self.label if isinstance(self.label, str) else self.label(trace)


def _column(name: str, factor: float) -> Reader:
    """A column of the samples, in its unit times `factor`."""

    def read(trace: Trace) -> tuple[Floats, Floats] | None:
        rows = trace.rows
        if name not in rows.columns or rows.is_empty():
            return None
        return rows["t_ns"].to_numpy() / 1e9, rows[name].cast(float).fill_null(np.nan).to_numpy() * factor

    return read


def _ssthresh(trace: Trace) -> tuple[Floats, Floats] | None:
    """The slow start threshold, packets; a gap before the first loss."""
    curve = _column("ssthresh", 1.0)(trace)
    return curve and (curve[0], np.where(curve[1] < UNLIMITED, curve[1], np.nan))


def _queue(trace: Trace) -> tuple[Floats, Floats] | None:
    """What the bottleneck's queue holds, packets of all flows together; None where the path has no rate."""
    frame, link = trace.trial.queue_samples, trace.bottleneck
    if frame is None or link is None or trace.flow:
        return None
    rows = frame.filter((frame["pipe"] == queues.pipe(trace.trial, link)) & (frame["stage"] == link.stage) & (frame["depth"] == link.depth))
    return (rows["t_ns"].to_numpy() / 1e9, rows["packets"].cast(float).to_numpy()) if len(rows) else None


def _queue_label(trace: Trace) -> str:
    """The queue's name; a netem with a rate and a delay holds the packets that are on their way, too."""
    link = trace.bottleneck
    if link is None:
        return "queue, packets"
    return f"held by {link.queues[link.depth].kind},\npackets" if link.delays else f"bottleneck queue\n({link.holder.kind}), packets"


def _throughput(trace: Trace) -> tuple[Floats, Floats] | None:
    """What was delivered in intervals of about a 250th of the trial, Mbit/s.

    Packets that a SACK reports count when it does, so that no interval carries more than the link; bytes in order where the samples lack them.
    """
    times, delivered = _delivered(trace)
    if len(times) < 2:
        return None
    step = max(LEAST_BIN_S, (times[-1] - times[0]) / BINS, float(np.median(np.diff(times))))
    edges = np.arange(times[0], times[-1] + step / 2, step)
    return edges[1:], np.diff(np.interp(edges, times, delivered)) * 8e-6 / step


def _delivered(trace: Trace) -> tuple[Floats, Floats]:
    """Times, s, and bytes delivered by then."""
    times, acked = samples.delivered(trace.trial, trace.flow)
    if not len(times) or "delivered" not in trace.rows.columns:
        return times, acked
    packets = trace.rows["delivered"].to_numpy().astype(float)
    return times, np.concatenate(([0.0], packets * (trace.scenario.mtu - HEADERS)))


PANELS: Mapping[str, Panel] = {
    panel.name: panel
    for panel in (
        Panel("cwnd", "cwnd, packets", _column("cwnd", 1.0), states=True),
        Panel("in_flight", "in flight, packets", _column("in_flight", 1.0)),
        Panel("rtt", "smoothed RTT, ms", _column("srtt_us", MS)),
        Panel("queue", _queue_label, _queue, of_path=True),
        Panel("throughput", "throughput, Mbit/s", _throughput),
        Panel("ssthresh", "ssthresh, packets", _ssthresh),
        Panel("pacing_rate", "pacing rate, Mbit/s", _column("pacing_rate", MBIT)),
        Panel("delivery_rate", "delivery rate, Mbit/s", _column("delivery_rate", MBIT)),
        Panel("min_rtt", "least RTT, ms", _column("min_rtt_us", MS)),
        Panel("rto", "RTO, ms", _column("rto_us", MS)),
        Panel("rwnd", "receive window, kB", _column("rwnd", KB)),
        Panel("retransmits", "retransmitted, segments", _column("retransmits", 1.0)),
        Panel("lost", "lost, segments", _column("lost", 1.0)),
    )
}
"""Every panel of a trial over time by its name."""
ALIASES = {"goodput": "throughput"}
"""Other names of panels."""
USUAL = ("cwnd", "in_flight", "rtt", "queue", "throughput")
"""The panels of a figure that names none, from the top."""


def panels(names: Sequence[str] = ()) -> list[Panel]:
    """The panels with these names in their order, each once; the usual ones without any name. :raises TcpscapeError: where a name is unknown."""
    names = [ALIASES.get(name, name) for name in names]
    if unknown := [name for name in names if name not in PANELS]:
        refuse("what", f"{shown(unknown[0])} is unknown", f"choose {', '.join(PANELS)}")
    return [PANELS[name] for name in dict.fromkeys(names or USUAL)]


def names(text: str) -> tuple[str, ...]:
    """The quantities in a list such as `cwnd,rtt`; none where a name is no quantity."""
    listed = tuple(name.strip() for name in text.split(","))
    return listed if all(name in PANELS or name in ALIASES for name in listed) else ()
