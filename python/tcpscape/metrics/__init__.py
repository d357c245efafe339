"""Metrics: one number of a trial, such as its goodput in Mbit/s.

The main type is :class:`Metric`: name, unit, direction (whether more is better), the function that computes it, and what has to be kept of a
trial for it. :data:`REGISTRY` holds every metric by name, one line each, and :func:`find` reads the names that people write for them: a name stands
alone (`goodput`), has its unit behind it (`goodput_mbps`), is restricted to some flows (`goodput:bbr`, `goodput:up`) or to one probe
(`latency_p95:voice`), or takes an argument (`share:bbr`, `utilisation:60mbit`, `fct_p95:100kB`). Begin with :data:`REGISTRY`; `flows`, `queues`,
`samples` (samples and packets), `sharing` (what flows do to each other and to the network over time) and `traffic` (probes, requests, transfers and
the quality of calls) hold the functions, each file for one part of a trial.

To add a metric: one function in the file of the part that it reads, and one line in :data:`REGISTRY`. The tests of the registry cover it then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from tcpscape import units
from tcpscape.errors import refuse, shown
from tcpscape.metrics import flows, programs, queues, samples, sharing, traffic
from tcpscape.metrics.base import UNKNOWN, Better, Metric, only
from tcpscape.metrics.flows import goodput, jain, mean_rtt, retransmits
from tcpscape.trial import Capture

__all__ = ["REGISTRY", "UNKNOWN", "Better", "Metric", "find", "goodput", "jain", "mean_rtt", "only", "retransmits"]

SAMPLED = Capture(samples_ns=100_000_000)
"""Ten samples a second: enough for intervals of a second and a smoothed RTT."""
WITH_QUEUES = Capture(samples_ns=100_000_000, queue_samples_ns=100_000_000)
"""The same, and the queues' samples."""
PACKETS = Capture(packets=True)
SENT_AGAIN = ("retransmits",)
"""The field of a flow's result that has no value for unknown."""

REGISTRY: Mapping[str, Metric] = {
    m.name: m
    for m in (
        Metric("goodput", "Mbit/s", "bytes delivered to the applications, of each flow over its own time", flows.goodput, "more"),
        Metric("retransmits", "segments", "segments sent again", flows.retransmits, "less", reads=SENT_AGAIN),
        Metric("retransmit_rate", "1", "segments sent again / segments sent", flows.retransmit_rate, "less", reads=SENT_AGAIN),
        Metric("spurious", "segments", "retransmissions reported as needless", flows.spurious, "less"),
        Metric("rtos", "1", "retransmission timeouts", flows.rtos, "less"),
        Metric("fast_recoveries", "1", "entries into fast recovery", flows.fast_recoveries, "less"),
        Metric("undos", "1", "window reductions undone", flows.undos, "neither"),
        Metric("ce_marks", "segments", "segments delivered with a congestion mark", flows.ce_marks, "neither"),
        Metric("ecn_reductions", "1", "window reductions for congestion marks", flows.ecn_reductions, "neither"),
        Metric("ece", "segments", "segments that echo a congestion mark, the handshake's two among them", samples.ece, "neither", PACKETS),
        Metric("gap", "ms", "mean time between segments with data", flows.gap, "neither"),
        Metric("zero_windows", "ACKs", "ACKs that closed the receive window", flows.zero_windows, "less"),
        Metric("rtt", "ms", "mean round-trip time", flows.mean_rtt, "less"),
        Metric("rtt_min", "ms", "smallest round-trip time", flows.rtt_min, "less"),
        Metric("rtt_p50", "ms", "median round-trip time", flows.rtt_p50, "less"),
        Metric("rtt_p95", "ms", "95th percentile of the round-trip time", flows.rtt_p95, "less"),
        Metric("added_rtt", "ms", "95th percentile of the round-trip time less the path's propagation RTT", flows.added_rtt, "less"),
        Metric("rtt_p99", "ms", "99th percentile of the round-trip time", flows.rtt_p99, "less"),
        Metric("rtt_max", "ms", "largest round-trip time", flows.rtt_max, "less"),
        Metric("rtt_cv", "1", "RTTs of segments, standard deviation / mean", samples.rtt_cv, "less", PACKETS),
        Metric("srtt_cv", "1", "smoothed RTT at even times, standard deviation / mean", samples.srtt_cv, "less", SAMPLED),
        Metric("srtt_p50", "ms", "median of the smoothed RTT at even times, alike on every engine", samples.srtt_p50, "less", SAMPLED),
        Metric("cwnd", "packets", "mean congestion window", flows.cwnd, "neither"),
        Metric("rwnd_limited", "1", "share of the time limited by the receive window", flows.limited("rwnd"), "neither"),
        Metric("cwnd_limited", "1", "share of the time limited by the congestion window", flows.limited("cwnd"), "neither"),
        Metric("app_limited", "1", "share of the time without data to send", flows.limited("app"), "neither"),
        Metric("jain", "1", "Jain's fairness index", flows.jain, "more", least_flows=2),
        Metric("share_min", "1", "smallest share of a flow in the goodput", flows.share_min, "more", least_flows=2),
        Metric("share_max", "1", "largest share of a flow in the goodput", flows.share_max, "less", least_flows=2),
        Metric("rtt_exponent", "1", "x where a flow's goodput is as 1 / RTT^x, without queues", flows.rtt_exponent, "neither", least_flows=2),
        Metric("goodput_down", "Mbit/s", "goodput of the flows whose data travel down", flows.one_way("down"), "more"),
        Metric("goodput_up", "Mbit/s", "goodput of the flows whose data travel up", flows.one_way("up"), "more"),
        Metric("latency_p50", "ms", "median delay of probes: latency under load", traffic.latency("p50"), "less", of_flows=False, of_probes=True),
        Metric("latency_p95", "ms", "95th percentile of the delay of probes", traffic.latency("p95"), "less", of_flows=False, of_probes=True),
        Metric("latency_p99", "ms", "99th percentile of the delay of probes", traffic.latency("p99"), "less", of_flows=False, of_probes=True),
        Metric("latency_max", "ms", "largest delay of a probe's packet", traffic.latency("max"), "less", of_flows=False, of_probes=True),
        Metric("probe_jitter", "ms", "interarrival jitter of probes", traffic.probe_jitter, "less", of_flows=False, of_probes=True),
        Metric("probe_loss", "1", "share of the probes' packets that were lost", traffic.probe_loss, "less", of_flows=False, of_probes=True),
        Metric("media_rate", "Mbit/s", "bit rate of media flows that arrived", traffic.media_rate, "more", of_flows=False, of_probes=True),
        Metric("rpm", "1/min", "responsiveness: round trips a minute under load", traffic.rpm, "more"),
        Metric("voice_mos", "1", "mean opinion score of the worst call, 1 to 4.5", traffic.voice_mos, "more", of_flows=False, of_probes=True),
        Metric("voice_r", "1", "E-model's rating of the worst call, 0 to 93", traffic.r_factor, "more", of_flows=False, of_probes=True),
        Metric("response_p50", "ms", "median time of an answer to a request", traffic.response("p50"), "less"),
        Metric("response_p95", "ms", "95th percentile of the time of an answer to a request", traffic.response("p95"), "less"),
        Metric("response_max", "ms", "slowest answer to a request", traffic.response_max, "less"),
        Metric("fct_mean", "ms", "mean completion time of transfers", traffic.fct_mean, "less", of_flows=False),
        Metric("fct_p50", "ms", "median of the smallest transfers' completion time", traffic.fct("p50"), "less", of_flows=False),
        Metric("fct_p95", "ms", "95th percentile of the smallest transfers' completion time", traffic.fct("p95"), "less", of_flows=False),
        Metric("fct_p99", "ms", "99th percentile of the smallest transfers' completion time", traffic.fct("p99"), "less", of_flows=False),
        Metric("unfinished", "1", "share of the transfers that were not complete at the end", traffic.unfinished, "less", of_flows=False),
        Metric("transfer_goodput", "Mbit/s", "bytes that transfers delivered / the whole trial", traffic.transfer_goodput, "more", of_flows=False),
        Metric("video_startup", "s", "from a player's first request to the first picture", flows.mean_of(lambda p: p.startup_s), "less"),
        Metric("video_stalls", "1", "stops of a player after its start", flows.mean_of(lambda p: p.stalls), "less"),
        Metric("video_stalled", "s", "time that a player is stopped after its start", flows.mean_of(lambda p: p.stalled_s), "less"),
        Metric("video_bitrate", "Mbit/s", "mean bit rate of a player's segments", flows.mean_of(lambda p: p.bitrate_mbps or 0.0), "more"),
        Metric("video_switches", "1", "changes of a player's bit rate", flows.mean_of(lambda p: p.switches), "less"),
        Metric("video_qoe", "Mbit/s", "linear QoE for each segment of a player", flows.mean_of(lambda p: p.qoe_mbps), "more"),
        Metric("queue", "ms", "mean delay in the bottleneck's queue", queues.delay("mean"), "less", of_flows=False),
        Metric("queue_p50", "ms", "median delay in the bottleneck's queue", queues.delay("p50"), "less", of_flows=False),
        Metric("queue_p95", "ms", "95th percentile of the delay in the bottleneck's queue", queues.delay("p95"), "less", of_flows=False),
        Metric("queue_p99", "ms", "99th percentile of the delay in the bottleneck's queue", queues.delay("p99"), "less", of_flows=False),
        Metric("queue_max", "ms", "largest delay in the bottleneck's queue", queues.delay("max"), "less", of_flows=False),
        Metric("queue_drops", "packets", "packets that queues dropped", queues.drops, "less", of_flows=False),
        Metric("queue_marks", "packets", "packets that queues marked", queues.marks, "neither", of_flows=False),
        Metric("completion", "s", "time until a command ended that did not fail", programs.completion, "less", of_flows=False),
        Metric("failed", "1", "1 where a command failed or was ended", programs.failed, "less", of_flows=False),
        Metric("carried_down", "Mbit/s", "bytes of all protocols to a command, over its time", programs.carried("down"), "more", of_flows=False),
        Metric("carried_up", "Mbit/s", "bytes of all protocols from a command, over its time", programs.carried("up"), "more", of_flows=False),
        Metric("delay_down", "ms", "mean time on the path of packets to a command", programs.path_delay("down", "mean"), "less", of_flows=False),
        Metric(
            "delay_down_p99",
            "ms",
            "99th percentile of the time on the path of packets to a command",
            programs.path_delay("down", "p99"),
            "less",
            of_flows=False,
        ),
        Metric("delay_up", "ms", "mean time on the path of packets from a command", programs.path_delay("up", "mean"), "less", of_flows=False),
        Metric(
            "delay_up_p99",
            "ms",
            "99th percentile of the time on the path of packets from a command",
            programs.path_delay("up", "p99"),
            "less",
            of_flows=False,
        ),
        Metric("sending", "1/s", "segments with data sent in a second, sent again among them", flows.sending, "neither"),
        Metric(
            "starved",
            "1",
            "share of the flows' time below a tenth of the fair share for 5 s or longer",
            sharing.starved,
            "less",
            SAMPLED,
            least_flows=2,
        ),
        Metric(
            "convergence",
            "s",
            "time from the last start until Jain's index stays at 0.9 or above",
            sharing.convergence,
            "less",
            SAMPLED,
            least_flows=2,
        ),
        Metric(
            "self_loss",
            "1",
            "share of packets that full queues dropped, second half of the trial",
            sharing.self_loss,
            "less",
            WITH_QUEUES,
            of_flows=False,
        ),
        Metric("backoff", "1", "segments sent into a black hole / most that exponential backoff sends", sharing.backoff, "less", SAMPLED),
        Metric("breaker", "1", "1 where a circuit breaker trips: above 10 % lost in three intervals of 3 s", sharing.breaker, "less", SAMPLED),
        Metric("goodput_1s_mean", "Mbit/s", "goodput of 1-s intervals, mean", samples.per_second(lambda x: float(x.mean())), "more", SAMPLED),
        Metric("goodput_1s_std", "Mbit/s", "goodput of 1-s intervals, standard deviation", samples.per_second(samples.std, 2), "less", SAMPLED),
        Metric("goodput_1s_min", "Mbit/s", "goodput of 1-s intervals, smallest", samples.per_second(samples.quantile(0)), "more", SAMPLED),
        Metric("goodput_1s_p25", "Mbit/s", "goodput of 1-s intervals, first quartile", samples.per_second(samples.quantile(0.25)), "more", SAMPLED),
        Metric("goodput_1s_p50", "Mbit/s", "goodput of 1-s intervals, median", samples.per_second(samples.quantile(0.5)), "more", SAMPLED),
        Metric("goodput_1s_p75", "Mbit/s", "goodput of 1-s intervals, third quartile", samples.per_second(samples.quantile(0.75)), "more", SAMPLED),
        Metric("goodput_1s_max", "Mbit/s", "goodput of 1-s intervals, largest", samples.per_second(samples.quantile(1)), "more", SAMPLED),
    )
}
"""Every metric by name, those with an argument excepted."""


@dataclass(frozen=True, slots=True)
class Family:
    """Metrics that differ in an argument, written behind a colon."""

    example: str
    """A metric of the family as it is written."""
    make: Callable[[str], Metric]
    """Argument → metric; refuses an argument that makes no sense."""


def _share(cca: str) -> Metric:
    return Metric(f"share:{cca}", "1", f"share of all flows' goodput that {cca} has", flows.share(cca), "neither", of_flows=False)


def _starvation(which: str) -> Metric:
    about = f"share of the time in which {which} has less than a tenth of its fair share, for 5 s or longer"
    return Metric(f"starvation:{which}", "1", about, sharing.starvation_of(which), "less", SAMPLED, of_flows=False, least_flows=2)


def _utilisation(rate: str) -> Metric:
    bps = units.parse_rate(rate, "utilisation", example="60mbit")
    return Metric(f"utilisation:{rate}", "1", f"share of {rate} that left the last queue", queues.utilisation(bps), "more", of_flows=False)


def _fct(percentile: traffic.Percentile) -> Callable[[str], Metric]:
    def make(size: str) -> Metric:
        if size not in traffic.CLASSES:
            refuse("metric", f"no size class {shown(size)}", f"choose {', '.join(traffic.CLASSES)}")
        about = f"{percentile[1:]}th percentile of the completion time of transfers {traffic.CLASSES[size]}"
        return Metric(f"fct_{percentile}:{size}", "ms", about, traffic.fct(percentile, size), "less", of_flows=False)

    return make


def _output(name: str) -> Metric:
    return Metric(f"output:{name}", "1", f"{name} in a command's output", programs.output(name), "neither", of_flows=False)


FAMILIES: Mapping[str, Family] = {
    "share": Family("share:bbr", _share),
    "starvation": Family("starvation:bbr", _starvation),
    "utilisation": Family("utilisation:60mbit", _utilisation),
    "output": Family("output:time_total", _output),
}
"""Every family by name."""
SIZES: Mapping[str, Callable[[str], Metric]] = {"fct_p50": _fct("p50"), "fct_p95": _fct("p95"), "fct_p99": _fct("p99")}
"""Metrics of a size class of transfers, which is written behind a colon: `fct_p95:100kB`."""
SUFFIXES: Mapping[str, str] = {"Mbit/s": "_mbps", "ms": "_ms"}
"""Units that may follow a name."""


def find(text: str) -> Metric:
    """The metric that `text` names: `goodput`, `goodput_mbps`, `goodput:bbr`, `share:bbr`, `utilisation:60mbit`.

    :raises ScenarioError: one line, where there is no such metric, or its argument makes no sense.
    """
    name, colon, argument = text.strip().partition(":")
    if name in FAMILIES:
        if not argument:
            refuse("metric", f"{shown(name)} needs a word more", f"write for example {FAMILIES[name].example}")
        return FAMILIES[name].make(argument)
    metric = REGISTRY.get(name) or _WITH_UNIT.get(name)
    if metric is None:
        near = get_close_matches(name, [*REGISTRY, *FAMILIES], n=2)
        perhaps = f", perhaps {' or '.join(near)}" if near else ""
        refuse("metric", f"{shown(name)} is unknown", f"choose one of `tcpscape metric list`{perhaps}")
    if not colon:
        return metric
    if argument and name in SIZES:
        return SIZES[name](argument)
    if not argument or not (metric.of_flows or metric.of_probes):
        refuse("metric", f"{shown(text)} is not a metric of some flows", f"write {name}, or for example goodput:bbr")
    return metric.within(argument)


TITLES: Mapping[str, str] = {
    "rtt": "RTT",
    "rtt_p50": "median RTT",
    "rtt_p95": "RTT (95th percentile)",
    "added_rtt": "added RTT (95th percentile)",
    "jain": "Jain's index",
    "goodput": "goodput",
    "latency_p50": "median latency under load",
    "latency_p95": "latency under load (95th percentile)",
    "rpm": "responsiveness",
    "voice_mos": "mean opinion score of a call",
    "video_bitrate": "bit rate a viewer sees",
    "video_startup": "time to the first picture",
    "video_stalled": "time stalled",
}
"""Metric → its name in sentences and figures; any other keeps its own."""


def title(name: str) -> str:
    """A metric in words, `added RTT (95th percentile) of reno`; one without an entry in :data:`TITLES` keeps its name."""
    own, _, cca = name.partition(":")
    return TITLES[own] + f" of {cca}" * bool(cca) if own in TITLES else name


_WITH_UNIT = {m.name + SUFFIXES[m.unit]: m for m in REGISTRY.values() if m.unit in SUFFIXES}
"""The metrics by their names with the unit behind."""
