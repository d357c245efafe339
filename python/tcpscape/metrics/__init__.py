"""Metrics: a trial → one number, each with its unit. One function and one registry line each.

`find` understands what people write: a name (`goodput`), a name with its unit (`goodput_mbps`), a name and whose (`goodput:bbr`), and
what needs a word more (`share:bbr`, `utilisation:60mbit`).
"""

from __future__ import annotations

from collections.abc import Callable

from tcpscape import units
from tcpscape.errors import refuse
from tcpscape.metrics import packets, queues, samples, shares, tap
from tcpscape.metrics.base import UNKNOWN, Metric, Needs, only
from tcpscape.metrics.flows import (
    ce_marks,
    cwnd,
    ecn_reductions,
    fast_recoveries,
    goodput,
    limited,
    mean_rtt,
    retransmit_rate,
    retransmits,
    rtos,
    rtt_max,
    rtt_min,
    rtt_p50,
    rtt_p95,
    rtt_p99,
    spurious,
    undos,
    zero_windows,
)
from tcpscape.metrics.shares import jain

__all__ = ["REGISTRY", "UNKNOWN", "Metric", "Needs", "find", "goodput", "jain", "mean_rtt", "only", "retransmits"]

SAMPLED = Needs(samples_ns=100_000_000)
"""Ten samples a second: enough for intervals of a second and a smoothed RTT."""
PACKETS = Needs(packets=True)

REGISTRY: dict[str, Metric] = {
    m.name: m
    for m in (
        Metric("goodput", "Mbit/s", "bytes the applications got", goodput),
        Metric("retransmits", "segments", "segments sent again", retransmits),
        Metric("retransmit_rate", "1", "segments sent again / segments sent", retransmit_rate),
        Metric("spurious", "segments", "retransmissions that were needless", spurious),
        Metric("rtos", "1", "retransmission timeouts", rtos),
        Metric("fast_recoveries", "1", "entries into fast recovery", fast_recoveries),
        Metric("undos", "1", "window reductions undone", undos),
        Metric("ce_marks", "segments", "segments delivered with a congestion mark", ce_marks),
        Metric("ecn_reductions", "1", "window reductions for congestion marks", ecn_reductions),
        Metric("ece", "segments", "segments that echo a congestion mark, the handshake's two among them", tap.ece, PACKETS),
        Metric("gap", "ms", "mean time between segments with data", tap.gap),
        Metric("zero_windows", "ACKs", "ACKs that closed the receive window", zero_windows),
        Metric("rtt", "ms", "mean round-trip time", mean_rtt),
        Metric("rtt_min", "ms", "smallest round-trip time", rtt_min),
        Metric("rtt_p50", "ms", "median round-trip time", rtt_p50),
        Metric("rtt_p95", "ms", "95th percentile of the round-trip time", rtt_p95),
        Metric("rtt_p99", "ms", "99th percentile of the round-trip time", rtt_p99),
        Metric("rtt_max", "ms", "largest round-trip time", rtt_max),
        Metric("rtt_cv", "1", "RTTs of segments, standard deviation / mean", packets.rtt_cv, PACKETS),
        Metric("srtt_cv", "1", "smoothed RTT at even times, standard deviation / mean", samples.srtt_cv, SAMPLED),
        Metric("cwnd", "packets", "mean congestion window", cwnd),
        Metric("rwnd_limited", "1", "share of the time that the receive window held back", limited("rwnd")),
        Metric("cwnd_limited", "1", "share of the time that the congestion window held back", limited("cwnd")),
        Metric("app_limited", "1", "share of the time without data to send", limited("app")),
        Metric("jain", "1", "Jain's fairness index", jain),
        Metric("share_min", "1", "share of the flow that has least", shares.least),
        Metric("share_max", "1", "share of the flow that has most", shares.most),
        Metric("queue", "ms", "mean delay in the bottleneck's queue", queues.delay("mean"), of_flows=False),
        Metric("queue_p50", "ms", "median delay in the bottleneck's queue", queues.delay("p50"), of_flows=False),
        Metric("queue_p95", "ms", "95th percentile of the delay in the bottleneck's queue", queues.delay("p95"), of_flows=False),
        Metric("queue_p99", "ms", "99th percentile of the delay in the bottleneck's queue", queues.delay("p99"), of_flows=False),
        Metric("queue_max", "ms", "largest delay in the bottleneck's queue", queues.delay("max"), of_flows=False),
        Metric("queue_drops", "packets", "packets that queues dropped", queues.drops, of_flows=False),
        Metric("queue_marks", "packets", "packets that queues marked", queues.marks, of_flows=False),
        Metric("goodput_1s_mean", "Mbit/s", "goodput of 1-s intervals, mean", samples.per_second(lambda x: float(x.mean())), SAMPLED),
        Metric("goodput_1s_std", "Mbit/s", "goodput of 1-s intervals, standard deviation", samples.per_second(samples.std, 2), SAMPLED),
        Metric("goodput_1s_min", "Mbit/s", "goodput of 1-s intervals, least", samples.per_second(samples.quantile(0)), SAMPLED),
        Metric("goodput_1s_p25", "Mbit/s", "goodput of 1-s intervals, first quartile", samples.per_second(samples.quantile(0.25)), SAMPLED),
        Metric("goodput_1s_p50", "Mbit/s", "goodput of 1-s intervals, median", samples.per_second(samples.quantile(0.5)), SAMPLED),
        Metric("goodput_1s_p75", "Mbit/s", "goodput of 1-s intervals, third quartile", samples.per_second(samples.quantile(0.75)), SAMPLED),
        Metric("goodput_1s_max", "Mbit/s", "goodput of 1-s intervals, most", samples.per_second(samples.quantile(1)), SAMPLED),
    )
}
"""Every metric by name."""


def _share(cca: str) -> Metric:
    return Metric(f"share:{cca}", "1", f"share of all flows' goodput that {cca} has", shares.share(cca), of_flows=False)


def _utilisation(rate: str) -> Metric:
    bps = units.parse_rate(rate, "utilisation", example="60mbit")
    return Metric(f"utilisation:{rate}", "1", f"share of {rate} that left the last queue", queues.utilisation(bps), of_flows=False)


ASKED: dict[str, Callable[[str], Metric]] = {"share": _share, "utilisation": _utilisation}
"""Metrics that need a word: of whom, of what rate."""
SUFFIXES = {"Mbit/s": "_mbps", "ms": "_ms"}
"""Units that may follow a name."""
EXAMPLES = {"share": "share:bbr", "utilisation": "utilisation:60mbit"}


def find(text: str) -> Metric:
    """The metric that `text` names: `goodput`, `goodput_mbps`, `goodput:bbr`, `share:bbr`, `utilisation:60mbit`."""
    name, colon, word = text.strip().partition(":")
    if name in ASKED:
        if not word:
            refuse("metric", f"{name!r} needs a word more", f"write for example {EXAMPLES[name]}")
        return ASKED[name](word)
    known = REGISTRY | {m.name + SUFFIXES[m.unit]: m for m in REGISTRY.values() if m.unit in SUFFIXES}
    if name not in known:
        refuse("metric", f"{name!r} is unknown", f"choose {', '.join([*REGISTRY, *EXAMPLES.values()])}")
    if not colon:
        return known[name]
    if not word or not known[name].of_flows:
        refuse("metric", f"{text!r} is not a metric of some flows", f"write {name}, or for example goodput:bbr")
    return known[name].within(word)
