"""Estimates: coverage, pairing, edge cases."""

import math

import numpy as np
import pytest

from tcpscape import stats


@pytest.mark.parametrize(
    ("estimate", "truth"), [(stats.median, math.exp(0)), (stats.mean, math.exp(0.02)), (stats.cv, math.sqrt(math.exp(0.04) - 1))]
)
def test_intervals_cover(estimate, truth):
    """Nominal 95 %: of 200 intervals from n = 20 lognormal values (sigma 0.2), at least 86 % hold the truth."""
    rng = np.random.default_rng(1)
    hits = [got.low <= truth <= got.high for got in (estimate(rng.lognormal(0, 0.2, 20)) for _ in range(200))]
    assert 0.86 <= np.mean(hits) <= 1.0


def test_pairing_takes_the_common_noise_away():
    rng = np.random.default_rng(2)
    common = rng.lognormal(0, 0.5, 20)
    got = stats.ratio(2 * common * rng.normal(1, 0.01, 20), common)
    assert got.value == pytest.approx(2, rel=0.02)
    assert got.high - got.low < 0.05


def test_a_ratio_of_medians_needs_no_pairs():
    """Nominal 95 %: where both sides are the same lognormal (sigma 0.2), at most 10 % of 200 intervals exclude 1; and they see a half."""
    rng = np.random.default_rng(3)
    wrong = [stats.median_ratio(rng.lognormal(0, 0.2, 10), rng.lognormal(0, 0.2, 12)).excludes(1) for _ in range(200)]
    assert np.mean(wrong) <= 0.1
    got = stats.median_ratio(rng.lognormal(0, 0.1, 20), 2 * rng.lognormal(0, 0.1, 30))
    assert (got.n, got.excludes(1)) == (20, True)
    assert got.low < 0.5 < got.high
    assert stats.median_ratio([1.0, 2.0], [4.0]).text() == "0.375"
    assert math.isnan(stats.median_ratio([1.0, 2.0], [0.0, 0.0]).value)


def test_constants_and_singles():
    same = stats.mean([3.0, 3.0, 3.0])
    assert (same.value, same.low, same.high) == (3, 3, 3)
    one = stats.median([7.0])
    assert one.value == 7
    assert math.isnan(one.low)
    assert one.text() == "7.00"
    assert stats.mean([]).n == 0
    assert stats.cv([0.0, 0.0]).value == 0
    assert math.isnan(stats.ratio([1.0, 2.0], [0.0, 0.0]).value)


def test_two_values_still_have_an_interval():
    got = stats.mean([1.0, 2.0])
    assert got.low <= 1.5 <= got.high


def test_estimates_are_deterministic():
    values = list(np.random.default_rng(3).normal(10, 1, 12))
    assert stats.median(values) == stats.median(values)


@pytest.mark.parametrize(("cv", "n"), [(0.0, 2), (0.02, 3), (0.10, 7), (0.66, 170)])
def test_runs_needed(cv, n):
    """cv 10 % for ±10 %: n = 7, since t(6) / sqrt(7) = 0.925 and t(5) / sqrt(6) = 1.049."""
    assert stats.runs_needed(cv) == n


def test_runs_needed_of_nothing():
    assert stats.runs_needed(float("nan")) == 2
