"""Intervals hold the truth as often as they say: known distributions, fixed seeds, tolerances from the binomial error of the simulation."""

import importlib.util
import math
import sys

import numpy as np
import pytest
import scipy.stats

from conftest import ROOT
from tcpscape import stats
from tcpscape.stats import comparison, means, order, spread
from tcpscape.stats.estimate import counts

SAMPLES = 300
SIGMAS = 4
"""Of some 230 comparisons one in 70 sets would exceed so many standard errors by chance; the seeds are fixed."""
SIZES = (5, 20)


def load():
    """benches/coverage.py under another name: a tool for Python's own coverage has that one."""
    spec = importlib.util.spec_from_file_location("interval_coverage", ROOT / "benches" / "coverage.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    sys.path.remove(str(ROOT / "benches"))
    return module


bench = load()
KNOWN = {(c.statistic, c.distribution, c.n): c for c in bench.read()}
QUICK = ("mean", "median")
"""Cost least; the others are checked by `make test-all`."""
CONTINUOUS = ("normal", "lognormal", "exponential")
UNSEEN = ("bimodal", "rare", "capped")


def error(share, samples):
    """Standard error of a share."""
    return math.sqrt(max(share * (1 - share), 0.05 * 0.95 / 10) / samples)


@pytest.mark.parametrize("statistic", [s if s in QUICK else pytest.param(s, marks=pytest.mark.slow) for s in bench.STATISTICS])
def test_coverage_is_what_the_page_says(statistic):
    """Other samples than the page's, within the error of both."""
    for distribution in bench.DISTRIBUTIONS:
        for n in SIZES:
            known = KNOWN[statistic, distribution, n]
            result = bench.measure(statistic, distribution, n, SAMPLES, seed=" test").coverage
            assert abs(result - known.coverage) <= SIGMAS * math.hypot(error(known.coverage, SAMPLES), error(known.coverage, known.samples)), (
                distribution,
                n,
                result,
                known,
            )


def holds(statistic, distribution, n, most=0.97):
    known = KNOWN[statistic, distribution, n]
    slack = 2 * error(0.95, known.samples)
    return 0.93 - slack <= known.coverage <= most + slack


@pytest.mark.parametrize("n", bench.SIZES)
@pytest.mark.parametrize("distribution", [*CONTINUOUS, "heavy", "bimodal", "rare"])
def test_the_median_holds_whatever_the_distribution(distribution, n):
    assert holds("median", distribution, n)


@pytest.mark.parametrize("n", bench.SIZES)
@pytest.mark.parametrize("distribution", CONTINUOUS)
def test_means_and_ratios_hold_for_normal_and_skewed_values(distribution, n):
    for statistic in ("mean", "ratio"):
        assert holds(statistic, distribution, n), statistic


def excused(c):
    """Modes and tails that no run has seen, in whatever is made of moments or of two sides; CVs of skewed values; 5 skewed differences."""
    unseen = c.distribution in UNSEEN and c.n < 40 and c.statistic not in ("median", "win")
    skewed = c.distribution == "heavy" or (c.statistic, c.distribution) in {("cv", "lognormal"), ("cv", "capped")}
    return unseen or skewed or (c.statistic, c.distribution, c.n) == ("difference", "exponential", 5)


@pytest.mark.parametrize("statistic", bench.STATISTICS)
def test_nothing_covers_too_little_unless_the_page_says_why(statistic):
    for known in KNOWN.values():
        if known.statistic == statistic and not excused(known):
            assert known.coverage >= 0.93 - 3 * error(0.95, known.samples), known


@pytest.mark.parametrize("n", [5, 8, 10])
def test_a_mode_that_was_not_seen_is_all_that_is_missed(n):
    """Of two modes with shares 0.3 and 0.7: what intervals of the mean miss is hardly more than the samples of one mode."""
    missed = 1 - KNOWN["mean", "bimodal", n].coverage
    assert missed <= 0.7**n + 0.3**n + 0.03


def test_one_sample_has_the_interval_that_it_has_among_many():
    rng = np.random.default_rng(1)
    x, y = rng.lognormal(0, 0.4, (3, 12)), rng.lognormal(0, 0.4, (3, 12))
    many = (
        (stats.mean, means.mean_bounds(x), (x,)),
        (stats.median, order.median_bounds(x), (x,)),
        (stats.cv, spread.cv_bounds(x), (x,)),
        (stats.ratio, means.ratio_bounds(x, y), (x, y)),
        (stats.mean_ratio, means.unpaired_bounds(x, y), (x, y)),
        (stats.win_probability, comparison.paired_bounds(x, y), (x, y)),
    )
    for estimate, (low, high), samples in many:
        for i in range(3):
            result = estimate(*(s[i] for s in samples))
            assert (result.low, result.high) == pytest.approx((low[i], high[i])), estimate


def test_resamples_are_scipys():
    """The bootstrap by products and scipy's agree about the standard error of a mean; of 2000 resamples it is known to 1.6 %."""
    values = np.random.default_rng(2).lognormal(0, 0.5, 30)
    theirs = scipy.stats.bootstrap((values,), np.mean, n_resamples=2000, method="percentile", rng=np.random.default_rng(3))
    assert float((values @ counts(30)).std(ddof=1)) == pytest.approx(theirs.standard_error, rel=0.07)
    assert counts(30).sum(0) == pytest.approx(1)


def test_studentized_ends_lie_between_students_t_and_twice_that():
    values = np.random.default_rng(4).normal(10, 1, 8)
    result = stats.difference(values, np.zeros(8))
    t = scipy.stats.ttest_1samp(values, 0).confidence_interval()
    mean = values.mean()
    assert mean - 2 * (mean - t.low) <= result.low <= t.low + 1e-9
    assert t.high - 1e-9 <= result.high <= mean + 2 * (t.high - mean)


def test_a_win_probability_agrees_with_scipys_tests():
    """Where Brunner and Munzel's test is sure, so is the interval; the share is Mann and Whitney's U."""
    rng = np.random.default_rng(5)
    for shift in (0.0, 0.5, 1.5, 3.0):
        a, b = rng.normal(shift, 1, 20), rng.normal(0, 2, 15)
        result = stats.win_probability(a, b, paired=False)
        assert result.value == pytest.approx(scipy.stats.mannwhitneyu(a, b).statistic / 300)
        p = scipy.stats.brunnermunzel(a, b).pvalue
        assert result.excludes(0.5) == (p < 0.05) or 0.02 < p < 0.1


def test_the_share_of_pairs_is_within_clopper_and_pearsons():
    result = stats.win_probability([2.0] * 7 + [0.0] * 3, [1.0] * 10)
    exact = scipy.stats.binomtest(7, 10).proportion_ci()
    assert exact.low < result.low < result.value < result.high < exact.high


@pytest.mark.parametrize(("distribution", "precision"), [("steady", 0.05), ("normal", 0.1)])
def test_intervals_hold_when_repetition_stops(distribution, precision):
    """Adaptive repetition with the package's driver: at least 93 % at the stopping time, within the error of 250 cells."""
    result = bench.stop("mean", distribution, precision, 5, 250)
    assert result.coverage >= 0.93 - 3 * error(0.95, result.samples)
    assert result.reached == 1
    d = bench.QUIET.get(distribution) or bench.DISTRIBUTIONS[distribution]
    assert result.runs <= 2 * stats.runs_needed(d.sd / d.mean, precision)
