"""Metrics of the flows' summaries, what every engine reports of each connection, and of how the flows share their goodput.

Shares and Jain's index are those of each flow's whole transfer; :mod:`tcpscape.findings.fairness` follows them over time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from tcpscape.metrics.base import UNKNOWN, under
from tcpscape.trial import FlowResult, PlayerResult, Trial


def goodput(trial: Trial) -> float:
    """All flows' goodput, Mbit/s: the sum of each one's bytes over its own time.

    What was on its way when a flow stopped counts (docs/models/methods/engine.md). Of programs without a TCP connection it is not known.
    """
    return trial.goodput_mbps if trial.flows or not trial.program else UNKNOWN


def retransmits(trial: Trial) -> float:
    """Segments sent again."""
    return float(sum(f.retransmits for f in trial.flows))


def retransmit_rate(trial: Trial) -> float:
    """Segments sent again / segments with data sent."""
    segments = _sum(f.data_segs_out for f in trial.flows)
    return retransmits(trial) / segments if segments else UNKNOWN


def sending(trial: Trial) -> float:
    """Segments with data sent in a second of the flows' time, retransmissions among them, all flows together; none before a connection stands."""
    rates = [f.data_segs_out / f.seconds if f.seconds > 0 else 0.0 for f in trial.flows if f.data_segs_out is not None]
    return sum(rates) if rates and len(rates) == len(trial.flows) else UNKNOWN


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


def added_rtt(trial: Trial) -> float:
    """What queues and jitter add to the RTT: the 95th percentile (:func:`rtt_p95`) less the propagation RTT of each flow's path, ms."""
    own = [f for f in trial.flows if f.rtt_ms.p95 is not None]
    if any(f.path_rtt_ms is not None for f in own):
        return _mean(added_to(f, trial) for f in own)
    return rtt_p95(trial) - trial.path_rtt_ms if trial.path_rtt_ms is not None else UNKNOWN


def added_to(flow: FlowResult, trial: Trial) -> float | None:
    """The 95th percentile of a flow's RTT less the propagation RTT of its path, ms; None where either is not known."""
    base = flow.path_rtt_ms if flow.path_rtt_ms is not None else trial.path_rtt_ms
    return flow.rtt_ms.p95 - base if flow.rtt_ms.p95 is not None and base is not None else None


def limits(flows: Sequence[FlowResult]) -> dict[str, float]:
    """Mean share of the time that each cause limited the flows, the largest first."""
    total: dict[str, float] = {}
    for flow in flows:
        for cause, share in flow.limited_by.items():
            total[cause] = total.get(cause, 0.0) + share / len(flows)
    return dict(sorted(total.items(), key=lambda kv: -kv[1]))


def rtt_p99(trial: Trial) -> float:
    """Mean of the flows' 99th percentiles, ms."""
    return _mean(f.rtt_ms.p99 for f in trial.flows)


def cwnd(trial: Trial) -> float:
    """Mean of the flows' mean congestion windows, packets."""
    return _mean(f.cwnd.mean for f in trial.flows)


def gap(trial: Trial) -> float:
    """Mean time between segments with data, ms, as a tap beside the sender measures it: sending time / segments sent, mean over the flows."""
    return _mean(1000 * f.seconds / f.data_segs_out if f.data_segs_out else None for f in trial.flows)


def limited(cause: str) -> Callable[[Trial], float]:
    """A metric: the share of the flows' sending time in which `cause` (rwnd, cwnd, app, …) limited them, mean over the flows."""

    def of(trial: Trial) -> float:
        return _mean(f.limited_by.get(cause, 0.0) if f.limited_by else None for f in trial.flows)

    return of


def jain_index(rates: Sequence[float]) -> float:
    """Jain's fairness index, (Σx)² / (n·Σx²): 1 is equal shares, 1/n one flow has everything (Jain, Chiu, Hawe: DEC-TR-301, 1984)."""
    squares = sum(x * x for x in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else UNKNOWN


def jain(trial: Trial) -> float:
    """Jain's fairness index of the flows' goodputs."""
    return jain_index([f.goodput_mbps for f in trial.flows])


def share_min(trial: Trial) -> float:
    """The smallest flow's share of the goodputs' sum."""
    return min(_shares(trial), default=UNKNOWN)


def one_way(direction: str) -> Callable[[Trial], float]:
    """A metric: the goodput of the flows whose data travel `down` or `up`, Mbit/s; unknown where there is none."""

    def of(trial: Trial) -> float:
        goodputs = [flow.goodput_mbps for flow in trial.flows if flow.direction == direction]
        return sum(goodputs) if goodputs else UNKNOWN

    return of


def rtt_exponent(trial: Trial) -> float:
    """x where a flow's goodput is as 1 / RTT^x, RTT without queues: the slope of a line through the logarithms of both.

    0 is independent of the RTT, 1 inverse to it, below 0 favours long ones. Unknown where all RTTs are the same, or a flow carried nothing.
    """
    points = [(f.path_rtt_ms or trial.path_rtt_ms, f.goodput_mbps) for f in trial.flows]
    if len(points) < 2 or not all(rtt and rate > 0 for rtt, rate in points):
        return UNKNOWN
    rtts, rates = [math.log(rtt or 1) for rtt, _ in points], [math.log(rate) for _, rate in points]
    middle = sum(rtts) / len(rtts), sum(rates) / len(rates)
    spread = sum((x - middle[0]) ** 2 for x in rtts)
    return -sum((x - middle[0]) * (y - middle[1]) for x, y in zip(rtts, rates, strict=True)) / spread if spread > 1e-12 else UNKNOWN


def share_max(trial: Trial) -> float:
    """The largest flow's share of the goodputs' sum."""
    return max(_shares(trial), default=UNKNOWN)


def share(cca: str) -> Callable[[Trial], float]:
    """A metric: the share of all flows' goodput that some flows have (see :func:`under`)."""

    def of(trial: Trial) -> float:
        total = trial.goodput_mbps
        return sum(trial.flows[i].goodput_mbps for i in under(trial, cca)) / total if total else UNKNOWN

    return of


def span(flows: Iterable[FlowResult]) -> tuple[float, float]:
    """From the first flow's start to the last one's stop, s; (0, 0) without flows."""
    results = list(flows)
    return min((f.start_s for f in results), default=0.0), max((f.stop_s for f in results), default=0.0)


def _shares(trial: Trial) -> list[float]:
    total = trial.goodput_mbps
    return [f.goodput_mbps / total for f in trial.flows] if total else []


def _sum(values: Iterable[float | None]) -> float:
    """The sum of the values; unknown where there is none, or one of them is."""
    terms = list(values)
    known = [v for v in terms if v is not None]
    return float(sum(known)) if terms and len(known) == len(terms) else UNKNOWN


def _mean(values: Iterable[float | None]) -> float:
    """The mean of the values that are known."""
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else UNKNOWN


def mean_of(value: Callable[[PlayerResult], float | None]) -> Callable[[Trial], float]:
    """A metric: the mean of `value` over the players of a trial; unknown without players, and where `value` is None for all of them."""

    def of(trial: Trial) -> float:
        known = [v for flow in trial.flows if flow.player and (v := value(flow.player)) is not None]
        return sum(known) / len(known) if known else UNKNOWN

    return of
