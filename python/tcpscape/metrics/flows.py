"""Metrics of the flows' summaries: what every engine reports of each connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tcpscape.metrics.base import UNKNOWN
from tcpscape.trial import FlowResult, Trial


def goodput(trial: Trial) -> float:
    """All flows' goodput, Mbit/s."""
    return trial.goodput_mbps


def retransmits(trial: Trial) -> float:
    """Segments sent again."""
    return float(sum(f.retransmits for f in trial.flows))


def retransmit_rate(trial: Trial) -> float:
    """Segments sent again / segments with data sent."""
    sent = _sum(f.data_segs_out for f in trial.flows)
    return retransmits(trial) / sent if sent else UNKNOWN


def spurious(trial: Trial) -> float:
    """Retransmissions that DSACKs reported needless (RFC 2883), segments."""
    return _sum(f.spurious_retransmits for f in trial.flows)


def rtos(trial: Trial) -> float:
    """Retransmission timeouts (RFC 6298)."""
    return _sum(f.rtos for f in trial.flows)


def fast_recoveries(trial: Trial) -> float:
    """Entries into fast recovery (RFC 6675)."""
    return _sum(f.fast_recoveries for f in trial.flows)


def undos(trial: Trial) -> float:
    """Window reductions undone as needless (RFC 4015)."""
    return _sum(f.undos for f in trial.flows)


def ce_marks(trial: Trial) -> float:
    """Segments whose delivery was reported with a congestion mark (`tcpi_delivered_ce`)."""
    return _sum(f.delivered_ce for f in trial.flows)


def ecn_reductions(trial: Trial) -> float:
    """Window reductions for marks."""
    return _sum(f.ecn_reductions for f in trial.flows)


ZERO_WINDOW = "receiver.TcpExt.TCPToZeroWindowAdv"
"""A kernel's counter of windows that closed, of all flows together."""


def zero_windows(trial: Trial) -> float:
    """ACKs with a window of 0 that the receivers sent; of a real kernel, how often a window closed (fewer, and of all flows together)."""
    if trial.kernel and trial.counters:
        return float(trial.counters.get(ZERO_WINDOW, 0))
    return _sum(f.zero_windows for f in trial.flows)


def mean_rtt(trial: Trial) -> float:
    """Mean of the flows' mean RTTs, ms."""
    return _mean(f.rtt_ms.mean for f in trial.flows)


def rtt_min(trial: Trial) -> float:
    """Smallest RTT of any flow, ms."""
    return min((f.rtt_ms.min for f in trial.flows if f.rtt_ms.min is not None), default=UNKNOWN)


def rtt_max(trial: Trial) -> float:
    """Largest RTT of any flow, ms."""
    return max((f.rtt_ms.max for f in trial.flows if f.rtt_ms.max is not None), default=UNKNOWN)


def rtt_p50(trial: Trial) -> float:
    """Mean of the flows' median RTTs, ms."""
    return _mean(f.rtt_ms.p50 for f in trial.flows)


def rtt_p95(trial: Trial) -> float:
    """Mean of the flows' 95th percentiles, ms."""
    return _mean(f.rtt_ms.p95 for f in trial.flows)


def rtt_p99(trial: Trial) -> float:
    """Mean of the flows' 99th percentiles, ms."""
    return _mean(f.rtt_ms.p99 for f in trial.flows)


def cwnd(trial: Trial) -> float:
    """Mean of the flows' mean congestion windows, packets."""
    return _mean(f.cwnd.mean for f in trial.flows)


def limited(cause: str) -> Callable[[Trial], float]:
    """A metric: the share of the flows' sending time that `cause` (rwnd, cwnd, app, …) held back, mean over the flows."""

    def of(trial: Trial) -> float:
        return _mean(f.limited_by.get(cause, 0.0) if f.limited_by else None for f in trial.flows)

    return of


def span(flows: Iterable[FlowResult]) -> tuple[float, float]:
    """From the first flow's start to the last one's stop, s; (0, 0) without flows."""
    some = list(flows)
    return min((f.start_s for f in some), default=0.0), max((f.stop_s for f in some), default=0.0)


def _sum(values: Iterable[float | None]) -> float:
    """Their sum; unknown where there is none or one is."""
    some = list(values)
    known = [v for v in some if v is not None]
    return float(sum(known)) if some and len(known) == len(some) else UNKNOWN


def _mean(values: Iterable[float | None]) -> float:
    """The mean of those that are known."""
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else UNKNOWN
