"""Zones, health and signatures: worked arithmetic, and the model."""

import math

import numpy as np
import polars as pl
import pytest

from conftest import bench
from tcpscape import stats
from tcpscape.campaign import execute
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Runner
from tcpscape.engines import make
from tcpscape.errors import ScenarioError
from tcpscape.findings import indicators
from tcpscape.findings.cliff import levels
from tcpscape.report import tables
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import order
from tcpscape.trial import Capture, Cwnd, FlowResult, Rtt, Trial


@pytest.mark.parametrize(
    ("jitter", "rtt", "expected"),
    [(0, 50, "stable"), (4.9, 50, "stable"), (5, 50, "chaos zone"), (15, 50, "chaos zone"), (15.1, 50, "collapsed"), (7, 26, "chaos zone")],
)
def test_zones_are_jitter_over_rtt(jitter, rtt, expected):
    assert indicators.zone(jitter, rtt) == expected


def test_health_is_the_published_thresholds():
    assert [indicators.health(x) for x in (0.149, 0.15, 0.30, 0.301, math.nan)] == ["healthy", "stressed", "stressed", "impaired", "unknown"]


def mid_path(rtt_cv):
    """The CV in mid-path of a sender's value: J = 5 on each of two delays of 25 is 5/25 = 0.2 in mid-path, 5·√2/50 = 0.1414 at the sender."""
    return rtt_cv * math.sqrt(2)


def trial(zero=0, resent=0, rwnd=0.0, mbps=8.0, seconds=10.0, **rest):
    known = {"max_rwnd": 100_000, "zero_windows": zero, "min_rtt_ms": 50.0, "stop_s": seconds}
    flow = FlowResult("cubic", mbps, seconds, resent, 0, Rtt(), Cwnd(), {"rwnd": rwnd, "cwnd": 1 - rwnd}, **known | rest)
    return Trial("s", "cubic", "a", 0, "mock", "1", seconds, (flow,))


@pytest.mark.parametrize(
    ("zero", "resent", "problem"),
    [(5, 10, "neither"), (6, 10, "receiver"), (5, 11, "network"), (6, 11, "both"), (None, 11, "network"), (None, 0, "neither")],
)
def test_the_published_signatures(zero, resent, problem):
    assert indicators.signature(trial(zero, resent)).problem == problem


def test_counts_are_those_of_ten_seconds():
    """12 windows closed and 8 retransmissions in 20 s are 6 and 4 in 10."""
    result = indicators.signature(trial(12, 8, seconds=20.0))
    assert (result.closed, result.resent) == (6, 4)


@pytest.mark.parametrize(
    ("rwnd", "mbps", "rest", "window"),
    [
        (0.9, 3.2, {}, "shrunk window"),  # 3.2 Mbit/s · 50 ms = 20 kB of 100
        (0.9, 15.2, {}, "small window"),  # 95 kB of 100
        (0.4, 3.2, {}, "not the window"),
        (0.9, 3.2, {"max_rwnd": None}, "unknown"),
        (0.9, 3.2, {"limited_by": {}}, "unknown"),
    ],
)
def test_a_window_is_small_or_shrunk(rwnd, mbps, rest, window):
    said = trial(rwnd=rwnd, mbps=mbps, **{k: v for k, v in rest.items() if k != "limited_by"})
    if "limited_by" in rest:
        flow = FlowResult(**{**{f: getattr(said.flows[0], f) for f in FlowResult.__slots__}, "limited_by": {}})
        said = Trial("s", "cubic", "a", 0, "mock", "1", 10.0, (flow,))
    assert indicators.signature(said).window == window


def test_trials_are_judged_together():
    """Three of four are the network's: 0.75, Wilson's interval 0.301 to 0.954."""
    result = indicators.judge([trial(resent=20), trial(resent=30), trial(resent=40), trial(zero=9)])
    assert result.problems["network"].value == 0.75
    assert (result.problems["network"].low, result.problems["network"].high) == pytest.approx((0.30064, 0.95441), abs=1e-4)
    assert (result.problems["receiver"].value, result.resent.value) == (0.25, 25)
    assert (result.rtt_cv.n, result.health) == (0, "unknown")


def test_a_share_of_nothing_is_unknown_and_of_all_is_not_certain():
    assert math.isnan(stats.share(0, 0).value)
    result = stats.share(10, 10)
    assert (result.value, result.high) == (1, 1)
    assert result.low == pytest.approx(0.7225, abs=1e-4)


def run(rtt, loss, delay, n=3):
    """A reader of 8 KiB after each `delay` out of a buffer of 64 KiB."""
    said = Scenario.of(
        {
            "forward": [f"netem delay {rtt / 2}ms loss {loss}% limit 1000"],
            "reverse": [f"netem delay {rtt / 2}ms limit 1000"],
            "duration": "10s",
            "flows": [{"rcvbuf": "64KiB", "read": f"8KiB/{delay}", "app": {"rate": "5MiB/s"}}],
        }
    )
    return Runner(make("model"), 2).run(said, range(n))


def test_a_slow_reader_closes_its_window_on_a_short_path_only(need_model):
    """409 kB/s are read: at 18 ms the window closes a hundred times; at 22 ms never, though it limits the flow all the time."""
    short, long = indicators.judge(run(18, 0, "20ms")), indicators.judge(run(22, 0, "20ms"))
    assert short.closed.value > 100
    assert short.problems["receiver"].value == 1
    assert (long.problems["neither"].value, long.closed.value) == (1, 0)
    assert long.held.value > 0.9
    assert short.windows["shrunk window"].value == long.windows["shrunk window"].value == 1


def test_a_small_window_is_no_slow_reader(need_model):
    result = indicators.judge(run(50, 0, "1ms"))
    assert (result.windows["small window"].value, result.problems["neither"].value) == (1, 1)


def test_loss_hides_a_reader_that_is_faster_than_the_path(need_model):
    """At 50 ms and 2 % loss the path carries less than is read: no window closes, only the network is named."""
    alone, both = indicators.judge(run(2, 0, "20ms")), indicators.judge(run(50, 2, "20ms"))
    assert set(alone.problems) <= {"receiver", "both"}
    assert both.problems["network"].value == 1
    assert both.closed.value == 0


def test_jitter_shows_in_the_rtts(need_model):
    """5 ms on each of two delays of 25 ms, kept in order by nothing: about 5·√2/50 = 0.14 at the sender, 0.2 in mid-path: stressed."""
    said = Scenario.of(
        {
            "forward": ["netem delay 25ms 5ms distribution normal limit 1000"],
            "reverse": ["netem delay 25ms 5ms distribution normal limit 1000"],
            "flows": [{"app": {"rate": "1MiB/s"}}],
            "duration": "5s",
        }
    )
    result = indicators.judge(Runner(make("model"), 2, Capture(packets=True)).run(said, range(2)))
    assert result.rtt_cv.value == pytest.approx(0.14, abs=0.04)
    assert indicators.health(mid_path(result.rtt_cv.value)) == "stressed"


# The table of indicators in a report: zones by the path's words, signatures and video by what the runs did.


def test_cells_are_diagnosed(need_model):
    said = {
        "conditions": {"rtt": "50ms", "distribution": "normal", "duration": "5s", "flow": {"rcvbuf": "128KiB", "app": "10MiB/s"}},
        "zip": [
            {
                "path": ["good", "slow reader", "jitter", "loss"],
                "jitter": "0ms,0ms,12ms,0ms",
                "read": ["64KiB", "8KiB/20ms", "64KiB", "64KiB"],
                "loss": "0,0,0,3%",
            }
        ],
        "cca": "cubic",
        "seeds": 5,
    }
    (table,) = tables.indicator_table("", execute.run(Campaign.of(said)))
    rows = {row[1].text: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert [rows[p]["jitter / RTT"].text for p in rows] == ["", "", "24 %, published as chaos zone", ""]
    assert rows["good"]["the published rule says"].text == "neither"
    assert rows["loss"]["the published rule says"].text == "network"
    assert rows["slow reader"]["receive window"].text == "shrunk window"
    assert float(rows["slow reader"]["time held by the receive window, %"].text) > 90
    assert rows["good"]["video each flow carries"].text in ("1440p", "2160p")
    assert rows["loss"]["video each flow carries"].text in ("360p", "480p")
    runs = {p: int(rows[p]["runs for a mean to ± 5 %"].text) for p in rows}
    assert runs["good"] == 2
    assert runs["jitter"] > 20


def test_many_cells_are_not(need_model):
    said = {"conditions": {"rtt": "50ms"}, "axes": {"jitter": "0..20.1ms/0.1ms"}, "cca": "cubic", "engines": ["mock"], "seeds": 1}
    assert tables.indicator_table("", execute.run(Campaign.of(said))) == []


# The chaos zone, what goes with goodput and how long a path remembers, on made-up runs whose answers are known.


variation = bench("variation")


def spread(cv, n, seed=0):
    sigma = math.sqrt(math.log1p(cv * cv))
    return (20 * np.random.default_rng(seed).lognormal(-sigma * sigma / 2, sigma, n)).tolist()


def test_two_modes_and_one():
    draw = np.random.default_rng(1)
    two = [20 * draw.lognormal(0, 0.03) if draw.random() < 0.5 else 15 * draw.lognormal(0, 0.03) for _ in range(200)]
    assert levels.one_mode(two) < 0.01
    assert levels.one_mode(spread(0.3, 200)) > 0.05
    assert levels.one_mode([1.0, 2.0] * 4) is None
    assert levels.one_mode([0.0] * 20 + [1.0] * 20) is None


def flow(**more):
    said = {"rtos": 1, "fast_recoveries": 10, "undos": 8, "spurious_retransmits": 4, "retransmits": 20, "data_segs_out": 2000, "min_rtt_ms": 3.0}
    return FlowResult("cubic", 8.0, 10.0, rtt_ms=Rtt(), cwnd=Cwnd(), limited_by={}, start_s=0.5, **{**said, **more})


def samples():
    """A window that halves at 2 s, a least RTT that falls to 4 ms at 1 s and 0.9 ms at 3 s; 4 Mbit/s in the first 5 s, 2 after."""
    at = np.arange(0, 10.01, 0.1)
    acked = np.where(at <= 5, at * 500_000, 2_500_000 + (at - 5) * 250_000)
    return pl.DataFrame(
        {
            "t_ns": ((at + 0.5) * 1e9).astype(np.int64),
            "cwnd": np.where(at < 2, 40, 20),
            "ssthresh": np.where(at < 2, 2**31 - 1, 20),
            "min_rtt_us": np.where(at < 1, 50_000, np.where(at < 3, 4_000, 900)),
            "bytes_acked": acked.astype(np.int64),
        }
    )


def test_features():
    trial = Trial("s", "cubic", "a", 0, "model", "1", 10.5, (flow(),), samples=samples())
    result = variation.features(trial, 50.0)
    assert (result["fast recoveries"], result["recoveries that were not undone"]) == (10, 2)
    assert result["least RTT below 10% of the RTT at, s"] == pytest.approx(1.0)
    assert result["least RTT below 2% of the RTT at, s"] == pytest.approx(3.0)
    assert result["slow start left at, s"] == pytest.approx(2.0)
    assert (result["window after 1 s, segments"], result["window after 3 s, segments"]) == (40, 20)
    assert "rtos" not in variation.counters(flow(rtos=None))
    with pytest.raises(ScenarioError, match="flows"):
        variation.features(Trial("s", "c", "a", 0, "model", "1", 1.0, (flow(), flow())), 50.0)


def test_what_explains_goodput():
    draw = np.random.default_rng(2)
    cause, other = draw.normal(size=300), draw.normal(size=300)
    goodput = np.exp(cause + 0.5 * draw.normal(size=300))
    result = variation.explain(goodput, [{"other": o, "cause": c, "same": 1.0, "sometimes": math.nan} for c, o in zip(cause, other, strict=True)])
    assert [s.feature for s in result] == ["cause", "other"]
    first, second = result
    assert first.share.value == pytest.approx(0.78, abs=0.06)  # of two normals with ρ = 1/√1.25: Spearman's is (6/π)·asin(ρ/2) = 0.885
    assert first.share.low <= 0.885**2 <= first.share.high
    assert second.share.low == 0
    with pytest.raises(ScenarioError, match="runs"):
        variation.explain([1.0] * 3, [{}] * 3)


def test_spearman_is_scipys():
    from scipy.stats import spearmanr

    draw = np.random.default_rng(3)
    x, y = draw.integers(0, 5, 50).astype(float), draw.normal(size=50)
    assert order.spearman(x[None], y[None])[0] == pytest.approx(spearmanr(x, y).statistic)


def test_coverage_of_the_share():
    """Intervals of ρ from 100 runs hold the truth about as often as they say: 50 of them, at 95 %, fewer than 42 once in a thousand times."""
    held = 0
    for i in range(50):
        draw = np.random.default_rng([7, i])
        x = draw.normal(size=100)
        result = variation.explain(x + draw.normal(size=100), [{"x": v} for v in x])[0]
        held += result.rho.low <= 6 / math.pi * math.asin(math.sqrt(0.5) / 2) <= result.rho.high
    assert held >= 42


def wander(keeps, n=200, seconds=60, seed=4):
    """Rates whose logarithm forgets a share of itself each second."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=n)
    rows = []
    for _ in range(seconds):
        rows.append(x)
        x = keeps * x + math.sqrt(1 - keeps**2) * draw.normal(size=n)
    return list(np.exp(0.3 * np.stack(rows, axis=1)) * 10)


def test_memory():
    result = variation.memory(wander(0.93), (1, 5, 20), (10, 60))
    assert [rho.value > math.exp(-1) for _, rho in result.correlation] == [True, True, False]
    short = variation.memory(wander(0.2), (1, 2, 5), (10, 60))
    assert short.correlation[0][1].value < math.exp(-1)
    long_cv, short_cv = (dict(m.cv) for m in (result, short))
    assert long_cv[60.0].value > 0.6 * long_cv[10.0].value
    assert short_cv[60.0].value == pytest.approx(short_cv[10.0].value / math.sqrt(6), rel=0.25)
    with pytest.raises(ScenarioError, match="lags"):
        variation.memory(wander(0.2, seconds=5), (10,), (5,))


def test_coverage_of_the_memory():
    """Intervals of a correlation from 60 runs: of 100, at 95 %, less than 88 hold the truth once in a thousand times."""
    found = [dict(variation.memory(wander(0.9, 60, 30, seed), (5,), (30,)).correlation)[5.0] for seed in range(100)]
    assert sum(rho.low <= 0.9**5 <= rho.high for rho in found) >= 88


def test_rates_second_by_second():
    result = variation.rates(samples(), flow())
    assert result == pytest.approx([4.0] * 5 + [2.0] * 5)
