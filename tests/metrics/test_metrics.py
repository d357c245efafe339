"""Metrics: worked arithmetic on made trials, what is unknown, how they are named, and all of them on the model."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tcpscape import metrics
from tcpscape.campaign.execute import Runner
from tcpscape.engines import make
from tcpscape.metrics import REGISTRY, find, samples
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture, Cwnd, FlowResult, ResponseResult, Rtt, Trial

QUEUES = (
    {
        "direction": "forward",
        "depth": 0,
        "name": "netem",
        "drops": {"loss": 9, "limit": 1},
        "marked": 0,
        "bytes_out": 700,
        "delay": {"count": 5, "mean": 25e6, "p50": 25e6, "p95": 25e6, "p99": 25e6, "max": 25e6},
    },
    {
        "direction": "forward",
        "depth": 0,
        "name": "tbf",
        "drops": {"limit": 0},
        "marked": 0,
        "bytes_out": 1_250_000,
        "delay": {"count": 5, "mean": 3e6, "p50": 2e6, "p95": 8e6, "p99": 9e6, "max": 10e6},
    },
    {"direction": "forward", "depth": 1, "name": "codel", "drops": {"aqm": 4}, "marked": 7, "delay": {"count": 5, "mean": 3e6}},
    {"direction": "reverse", "depth": 0, "name": "netem", "drops": {"limit": 2}, "marked": 0, "bytes_out": 70, "delay": {"count": 5, "mean": 9e9}},
)
KERNEL_QUEUES = (
    {"where": "forward", "at": "sender", "kind": "netem", "dropped": 9, "marked": 0, "sent_bytes": 700},
    {
        "where": "forward",
        "at": "router",
        "kind": "htb",
        "dropped": 3,
        "marked": 0,
        "sent_bytes": 1_250_000,
        "children": [{"dropped": 5, "marked": 7}],
    },
)


def flow(mbps, cca="cubic", **rest):
    known = {
        "cca": cca,
        "goodput_mbps": mbps,
        "seconds": 10.0,
        "retransmits": 3,
        "spurious_retransmits": 1,
        "rtt_ms": Rtt(20, 30, 40, 45, 50, 32),
        "cwnd": Cwnd(12.0, 20),
        "limited_by": {"cwnd": 0.75, "rwnd": 0.25},
        "stop_s": 10.0,
        "data_segs_out": 300,
        "rtos": 2,
        "fast_recoveries": 4,
        "undos": 1,
        "delivered_ce": 8,
        "ecn_reductions": 5,
        "zero_windows": 6,
    }
    return FlowResult(**known | rest)


def trial(*flows, **rest):
    known = {"scenario": "s", "cca": "cubic", "address": "a", "seed": 0, "engine": "mock", "version": "1", "duration": 10.0, "flows": flows}
    return Trial(**known | rest)


TWO = trial(flow(6.0), flow(2.0, "bbr", rtt_ms=Rtt(10, 50, 60, 65, 90, 52)), queues=QUEUES)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("goodput", 8),
        ("goodput_mbps", 8),
        ("retransmits", 6),
        ("retransmit_rate", 0.01),
        ("spurious", 2),
        ("rtos", 4),
        ("fast_recoveries", 8),
        ("undos", 2),
        ("ce_marks", 16),
        ("ecn_reductions", 10),
        ("zero_windows", 12),
        ("rtt", 42),
        ("rtt_ms", 42),
        ("rtt_min", 10),
        ("rtt_p50", 40),
        ("rtt_p95", 50),
        ("rtt_p99", 55),
        ("rtt_max", 90),
        ("rtt_max_ms", 90),
        ("cwnd", 12),
        ("rwnd_limited", 0.25),
        ("cwnd_limited", 0.75),
        ("app_limited", 0),
        ("jain", 64 / 80),
        ("share_min", 0.25),
        ("share_max", 0.75),
        ("share:bbr", 0.25),
        ("goodput:bbr", 2),
        ("rtt_max:cubic", 50),
        ("queue", 3),
        ("queue_p50", 2),
        ("queue_p95_ms", 8),
        ("queue_p99", 9),
        ("queue_max", 10),
        ("queue_drops", 7),
        ("queue_marks", 7),
        ("utilisation:10mbit", 0.1),
    ],
)
def test_arithmetic(name, value):
    """Two flows of 6 and 2 Mbit/s over 10 s; Jain 8²/(2·40); 1.25 MB leave the last queue: 10 of the 100 Mbit that 10 Mbit/s carry."""
    assert find(name).of(TWO) == pytest.approx(value)


def test_the_exponent_of_the_rtt_is_a_slope():
    """8, 2 and 0.5 Mbit/s at 10, 20 and 40 ms: goodput falls with the square; the same RTT tells nothing, nor does a flow without bytes."""
    flows = [replace(flow(mbps), path_rtt_ms=rtt) for mbps, rtt in ((8.0, 10.0), (2.0, 20.0), (0.5, 40.0))]
    assert find("rtt_exponent").of(trial(*flows)) == pytest.approx(2)
    assert find("rtt_exponent").of(trial(*(replace(f, goodput_mbps=3.0) for f in flows))) == pytest.approx(0)
    assert math.isnan(find("rtt_exponent").of(trial(flow(1.0), flow(2.0))))
    assert math.isnan(find("rtt_exponent").of(trial(replace(flows[0], goodput_mbps=0.0), flows[1])))


def test_the_slowest_answer_is_of_any_flow():
    answered = [replace(flow(1.0), responses=ResponseResult(count=2, time_ms=Rtt(max=most))) for most in (9.0, 21.0)]
    assert find("response_max").of(trial(*answered, flow(1.0))) == 21
    assert math.isnan(find("response_max").of(trial(flow(1.0))))


def test_a_kernels_queues_tell_less():
    """Its outer queue counts 3 drops as they came, its child these and 2 later; netem's 9 may be losses. Nobody knows delays."""
    result = trial(flow(6.0), queues=KERNEL_QUEUES)
    assert find("queue_drops").of(result) == 5
    assert find("queue_marks").of(result) == 7
    assert find("utilisation:10mbit").of(result) == pytest.approx(0.1)
    assert math.isnan(find("queue_p95").of(result))


def test_a_kernels_zero_windows_are_its_counter():
    result = trial(flow(1.0, zero_windows=None), kernel="x", counters={"receiver.TcpExt.TCPToZeroWindowAdv": 3})
    assert find("zero_windows").of(result) == 3


def test_what_nobody_saw_is_unknown():
    blind = FlowResult("cubic", 1.0, 1.0, 0, None, Rtt(), Cwnd(), {})
    seen = {"goodput", "goodput_down", "retransmits", "jain", "share_min", "share_max"}
    assert {n for n, m in REGISTRY.items() if not math.isnan(m.of(trial(blind)))} == seen
    assert {n for n, m in REGISTRY.items() if not math.isnan(m.of(trial()))} == {"goodput", "retransmits"}


def test_a_sum_with_a_gap_is_unknown():
    assert math.isnan(find("rtos").of(trial(flow(1.0), flow(1.0, rtos=None))))


def sampled(*flows, every=0.1, seconds=10.0):
    """Flows that start at `start` and deliver `mbps(t)` from then on."""
    t = np.arange(0, seconds + every / 2, every)
    frames, made = [], []
    for i, (start, mbps) in enumerate(flows):
        mine = t[t >= start]
        rate = np.array([mbps(x) for x in mine[:-1]])
        result = np.concatenate(([0.0], np.cumsum(rate * every * 1e6 / 8)))
        columns = {"t_ns": (mine * 1e9).round().astype(np.uint64), "bytes_acked": result.round().astype(np.uint64)}
        frames.append(pl.DataFrame({**columns, "flow": np.full(len(mine), i, np.uint32), "srtt_us": np.full(len(mine), 50_000, np.uint32)}))
        made.append(flow(result[-1] * 8e-6 / (seconds - start), "cubic" if i == 0 else "bbr", start_s=start, stop_s=seconds))
    return trial(*made, samples=pl.concat(frames).sort("t_ns"))


def test_seconds_are_counted_as_iperf3_counts_them():
    """1, 2, … 10 Mbit/s in ten seconds: mean 5.5, std √(82.5/9), quartiles 3.25, 5.5, 7.75."""
    result = sampled((0.0, lambda t: math.floor(t + 1e-9) + 1))
    values = [find(f"goodput_1s_{s}").of(result) for s in ("mean", "std", "min", "p25", "p50", "p75", "max")]
    assert values == pytest.approx([5.5, math.sqrt(82.5 / 9), 1, 3.25, 5.5, 7.75, 10], rel=1e-5)


def test_a_flow_that_starts_later_has_no_bytes_before():
    """4 Mbit/s all the time and 2 more from 5 s on; whole seconds count from the first flow's start; each flow alone from its own."""
    result = sampled((0.0, lambda t: 4.0), (5.0, lambda t: 2.0))
    assert samples.intervals(result) == pytest.approx([4] * 5 + [6] * 5, rel=1e-4)
    assert find("goodput_1s_mean:bbr").of(result) == pytest.approx(2, rel=1e-4)
    assert len(samples.intervals(metrics.only(result, "bbr"))) == 5


def test_the_rest_of_a_second_is_left_out():
    assert len(samples.intervals(sampled((0.0, lambda t: 1.0), seconds=3.7))) == 3


def test_few_samples_have_no_spread():
    result = sampled((0.0, lambda t: 1.0), seconds=1.0)
    assert find("goodput_1s_mean").of(result) == pytest.approx(1, rel=1e-4)
    assert math.isnan(find("goodput_1s_std").of(result))


def test_the_variation_of_the_smoothed_rtt():
    """30 and 50 ms in turn: mean 40, deviation 10."""
    t = np.arange(20)
    frame = pl.DataFrame({"t_ns": t * 100_000_000, "flow": np.zeros(20, np.uint32), "srtt_us": np.where(t % 2, 50_000, 30_000)})
    assert find("srtt_cv").of(trial(flow(1.0), samples=frame)) == pytest.approx(0.25)


def test_the_median_of_the_smoothed_rtt_is_of_time_not_of_segments():
    """A second of the handshake's 90 ms is left out; then 30 ms for a second and 50 ms for two, whatever was sent in them."""
    t = np.arange(40)
    srtt = np.select([t < 10, t < 20], [90_000, 30_000], 50_000)
    frame = pl.DataFrame({"t_ns": t * 100_000_000, "flow": np.zeros(40, np.uint32), "srtt_us": srtt})
    assert find("srtt_p50").of(trial(flow(1.0), samples=frame)) == pytest.approx(50)
    assert math.isnan(find("srtt_p50").of(trial(flow(1.0))))


def test_rtts_are_those_of_segments_sent_once():
    """Segments of 10 bytes every ms; the ACK of segment i comes 20 ms later, odd ones 40; the third is sent twice and has none."""
    sent = [{"t_ns": i * 1_000_000, "flow": 0, "received": 0, "seq": 10 * i, "len": 10, "ack": 0} for i in [*range(12), 3]]
    acks = [{"t_ns": (i + (40 if i % 2 else 20)) * 1_000_000, "flow": 0, "received": 1, "seq": 0, "len": 0, "ack": 10 * i + 10} for i in range(12)]
    result = trial(flow(1.0), packets=pl.DataFrame(sent + acks))
    rtts = samples.ack_rtts(result, 0)
    assert sorted(rtts) == [20.0] * 6 + [40.0] * 5
    assert find("rtt_cv").of(result) == pytest.approx(float(np.std(rtts) / np.mean(rtts)))


def test_flows_are_found_by_name_and_by_label():
    result = trial(flow(1.0, "cubic:hystart=0"), flow(2.0, "cubic"), flow(4.0, "bbr"))
    assert [find(f"goodput:{c}").of(result) for c in ("cubic", "cubic:hystart=0", "bbr", "reno")] == [3, 1, 4, 0]


def needs(*names):
    return Capture.union(find(name).needs for name in names)


def test_needs_add_up():
    assert needs("goodput", "goodput_1s_std", "rtt_cv") == Capture(100_000_000, 0, True)
    assert needs("goodput") == Capture()
    assert needs("goodput_1s_mean:bbr").samples_ns == 100_000_000


def test_names_and_units_are_said():
    for name, metric in REGISTRY.items():
        assert metric.name == name == name.strip().lower()
        assert metric.about
        assert metric.unit
        assert (metric.of.__doc__ or "").strip() or metric.of.__name__ in {"of", "<lambda>"}


OF_TRAFFIC = {
    *(f"latency_{p}" for p in ("p50", "p95", "p99", "max")),
    *(f"fct_{p}" for p in ("p50", "p95", "p99", "mean")),
    "response_p50",
    "response_p95",
    "response_max",
    "probe_jitter",
    "probe_loss",
    "rpm",
    "voice_mos",
    "voice_r",
    "unfinished",
    "transfer_goodput",
    "goodput_up",
    "completion",
    "failed",
    "carried_down",
    "carried_up",
    *(f"delay_{way}{p}" for way in ("down", "up") for p in ("", "_p99")),
}
"""Metrics of probes, requests, transfers, uploads and programs."""


def test_every_metric_of_a_run(need_model):
    """Three flows over a slow link with ECN, one of them a video: everything is known, in its range, and in order."""
    said = Scenario.of(
        {
            "forward": ["netem delay 10ms limit 1000"],
            "bottleneck": ["htb rate 10mbit ceil 10mbit; fq_codel ecn"],
            "ecn": True,
            "duration": "5s",
            "flows": [{"cca": "cubic"}, {"cca": "bbr"}, {"cca": "cubic", "player": "1,2mbit"}],
        }
    )
    result = Runner(make("model"), 1, needs(*REGISTRY)).run(said, [0])[0]
    values = {name: m.of(result) for name, m in REGISTRY.items()}
    assert {name for name, value in values.items() if math.isnan(value)} == {
        *OF_TRAFFIC,
        "rtt_exponent",
        "media_rate",
        "backoff",
        "breaker",
    }  # nothing but flows, all down and with one RTT, for five seconds without a silence
    assert values["rtt_min"] <= values["rtt_p50"] <= values["rtt_p95"] <= values["rtt_p99"] <= values["rtt_max"]
    assert values["queue_p50"] <= values["queue_p95"] <= values["queue_p99"] <= values["queue_max"]
    assert values["goodput_1s_mean"] == pytest.approx(values["goodput"], rel=0.05)
    assert 0.95 < find("utilisation:10mbit").of(result) <= 1.01
    assert find("share:cubic").of(result) + find("share:bbr").of(result) == pytest.approx(1)
    assert find("goodput:cubic").of(result) + find("goodput:bbr").of(result) == pytest.approx(values["goodput"])
    assert 0 < values["rtt_cv"] < 1
