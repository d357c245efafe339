"""Statistics of many samples at once are those of each sample alone, whatever their numbers of values."""

import math

import numpy as np
import pytest

from tcpscape import stats

NUMBERS = (0, 1, 2, 4, 5, 9, 10, 20, 50, 501)
KINDS = {
    "skewed": lambda x: x,
    "zeros": np.zeros_like,
    "equal": lambda x: np.full_like(x, 3.3),
    "one unknown": lambda x: np.where(np.arange(len(x)) == 0, math.nan, x),
    "both signs": lambda x: x - 3,
    "negative": lambda x: -x,
    "half failed": lambda x: np.where(np.arange(len(x)) % 2, x, 0.0),
    "two modes": lambda x: np.where(np.arange(len(x)) % 3, x, 40 * x),
}


@pytest.fixture
def samples():
    rng = np.random.default_rng(5)
    of_each = [of(rng.lognormal(1, 0.5, n)).tolist() for n in NUMBERS for of in KINDS.values() for _ in range(3)]
    return [of_each[place] for place in rng.permutation(len(of_each))]


def expect_same(one, among):
    assert (one.n, one.unit, repr(one.caveat)) == (among.n, among.unit, repr(among.caveat))
    ends = [(e.value, e.low, e.high) for e in (one, among)]
    assert ends[1] == pytest.approx(ends[0], rel=1e-12, abs=0, nan_ok=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("one", "of_each"), [(stats.mean, stats.mean_of_each), (stats.median, stats.median_of_each), (stats.cv, stats.cv_of_each)])
def test_many_samples_are_as_each_alone(samples, one, of_each):
    together = stats.by_number(samples, of_each)
    assert len(together) == len(samples)
    for sample, estimate in zip(samples, together, strict=True):
        expect_same(one(sample), estimate)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_ratios_are_as_each_alone(samples):
    pairs = [(a, b) for a in samples for b in samples[::7] if len(a) == len(b)]
    assert len(pairs) > 500
    for (a, b), estimate in zip(pairs, stats.ratio_of_pairs(pairs), strict=True):
        expect_same(stats.ratio(a, b), estimate)


def test_pairs_have_as_many_values_on_both_sides():
    with pytest.raises(ValueError, match="as many"):
        stats.ratio_of_pairs([([1.0, 2.0], [1.0, 2.0]), ([1.0, 2.0, 3.0], [1.0])])
