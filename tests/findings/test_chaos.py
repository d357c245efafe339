"""The chaos zone, what goes with goodput and how long a path remembers, on made-up runs whose answers are known."""

import math

import numpy as np
import polars as pl
import pytest

from conftest import bench
from tcpscape.errors import ScenarioError
from tcpscape.findings import chaos
from tcpscape.stats import order
from tcpscape.trial import Cwnd, FlowResult, Rtt, Trial

variation = bench("variation")


def spread(cv, n, seed=0):
    sigma = math.sqrt(math.log1p(cv * cv))
    return (20 * np.random.default_rng(seed).lognormal(-sigma * sigma / 2, sigma, n)).tolist()


def test_two_modes_and_one():
    draw = np.random.default_rng(1)
    two = [20 * draw.lognormal(0, 0.03) if draw.random() < 0.5 else 15 * draw.lognormal(0, 0.03) for _ in range(200)]
    assert chaos.one_mode(two) < 0.01
    assert chaos.one_mode(spread(0.3, 200)) > 0.05
    assert chaos.one_mode([1.0, 2.0] * 4) is None
    assert chaos.one_mode([0.0] * 20 + [1.0] * 20) is None


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
    assert result["fast recoveries"] == 10
    assert result["recoveries that were not undone"] == 2
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
