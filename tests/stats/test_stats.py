"""Estimates: coverage, pairing, edge cases."""

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import stdtrit

from tcpscape import stats
from tcpscape.stats import Estimate, few, order
from tcpscape.words.sentences import runs_text


@pytest.mark.parametrize(
    ("estimate", "truth"), [(stats.median, math.exp(0)), (stats.mean, math.exp(0.02)), (stats.cv, math.sqrt(math.exp(0.04) - 1))]
)
def test_intervals_cover(estimate, truth):
    """Nominal 95 %: of 200 intervals from n = 20 lognormal values (sigma 0.2), at least 86 % hold the truth."""
    rng = np.random.default_rng(1)
    hits = [result.low <= truth <= result.high for result in (estimate(rng.lognormal(0, 0.2, 20)) for _ in range(200))]
    assert 0.86 <= np.mean(hits) <= 1.0


def test_numbers_for_few_values_are_scipys(monkeypatch):
    assert (len(few.STUDENT), len(few.MEDIAN)) == (29, 26)
    assert list(few.STUDENT.values()) == pytest.approx([float(stdtrit(n - 1, 0.975)) for n in few.STUDENT], rel=1e-14)
    known = dict(few.MEDIAN)
    monkeypatch.setattr(order, "MEDIAN", {})
    of_scipy = {n: order._rank.__wrapped__(n, 0.5) for n in known}
    assert {n: rank for n, (rank, _) in known.items()} == {n: rank for n, (rank, _) in of_scipy.items()}
    assert [part for _, part in known.values()] == pytest.approx([part for _, part in of_scipy.values()], rel=1e-12)


PARTS_OF_SCIPY = """
import sys, threading
from tcpscape.stats import special
assert "numpy.f2py" not in sys.modules, "the whole package was loaded"
whole = []
def load():
    import scipy.special, scipy.stats
    from scipy.special import logsumexp
    whole.append((all(getattr(scipy.special, name) is getattr(special, name) for name in special.__all__), hasattr(scipy.special, "none"), logsumexp([0.0])))
threads = [threading.Thread(target=load) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
assert whole == [(True, False, 0.0)] * 4, whole
"""


def test_special_functions_are_scipys_whose_package_comes_when_it_is_asked_for():
    subprocess.run([sys.executable, "-c", PARTS_OF_SCIPY], check=True)


def test_a_short_command_needs_no_scipy():
    code = "import sys; from tcpscape import stats; x = [*range(1, 21)]; stats.mean(x); stats.median(x); stats.cv(x); stats.ratio(x, x[::-1]); stats.runs_needed(0.1)"
    subprocess.run([sys.executable, "-c", f"{code}; assert not [name for name in sys.modules if name.startswith('scipy')]"], check=True)


def test_pairing_takes_the_common_noise_away():
    rng = np.random.default_rng(2)
    common = rng.lognormal(0, 0.5, 20)
    result = stats.ratio(2 * common * rng.normal(1, 0.01, 20), common)
    assert result.value == pytest.approx(2, rel=0.02)
    assert result.high - result.low < 0.05


def test_a_ratio_of_medians_needs_no_pairs():
    """Nominal 95 %: where both sides are the same lognormal (sigma 0.2), at most 10 % of 200 intervals exclude 1; and they see a half."""
    rng = np.random.default_rng(3)
    wrong = [stats.median_ratio(rng.lognormal(0, 0.2, 10), rng.lognormal(0, 0.2, 12)).excludes(1) for _ in range(200)]
    assert np.mean(wrong) <= 0.1
    result = stats.median_ratio(rng.lognormal(0, 0.1, 20), 2 * rng.lognormal(0, 0.1, 30))
    assert (result.n, result.excludes(1)) == (20, True)
    assert result.low < 0.5 < result.high
    assert stats.median_ratio([1.0, 2.0], [4.0]).text() == "0.375"
    assert math.isnan(stats.median_ratio([1.0, 2.0], [0.0, 0.0]).value)


def test_constants_and_singles():
    same = stats.mean([3.0, 3.0, 3.0])
    assert (same.value, same.low, same.high) == (3, 3, 3)
    one = stats.median([7.0])
    assert one.value == 7
    assert math.isnan(one.low)
    assert one.text() == "7.00"
    assert (stats.mean([]).n, stats.cv([0.0, 0.0]).value) == (0, 0)
    assert math.isnan(stats.ratio([1.0, 2.0], [0.0, 0.0]).value)


def test_two_values_still_have_an_interval():
    result = stats.mean([1.0, 2.0])
    assert result.low <= 1.5 <= result.high


def test_estimates_are_deterministic():
    values = list(np.random.default_rng(3).normal(10, 1, 12))
    assert stats.median(values) == stats.median(values)


@pytest.mark.parametrize(("cv", "n"), [(0.0, 2), (0.02, 3), (0.10, 7), (0.66, 170)])
def test_runs_needed(cv, n):
    """cv 10 % for ±10 %: n = 7, since t(6) / sqrt(7) = 0.925 and t(5) / sqrt(6) = 1.049."""
    assert stats.runs_needed(cv) == n


def test_runs_needed_of_nothing():
    assert stats.runs_needed(float("nan")) == 2


def test_pairs_show_what_unpaired_runs_cannot():
    rng = np.random.default_rng(7)
    common = rng.lognormal(0, 0.5, 12)
    faster = 1.1 * common * rng.normal(1, 0.02, 12)
    paired, apart = stats.compare(faster, common), stats.compare(faster, common, paired=False)
    assert paired.differs
    assert apart.undecided
    assert paired.win.value == 1
    assert paired.win.low > 0.7


def test_equals_are_alike_and_wide_intervals_undecided():
    rng = np.random.default_rng(8)
    same = rng.normal(10, 0.1, 20)
    assert stats.compare(same, rng.normal(10, 0.1, 20), paired=False).alike
    assert stats.compare(same, same).alike
    assert stats.compare(same, same).win.value == 0.5
    assert not stats.compare(same, same).differs


def test_a_starved_side_still_has_a_comparison():
    result = stats.compare([0.0] * 6, [5.0, 6, 5, 5.5, 6, 5])
    assert result.differs
    assert (result.ratio.value, result.ratio.high, result.win.value) == (0, 0, 0)
    other = stats.compare([5.0, 6, 5, 5.5, 6, 5], [0.0] * 6)
    assert other.differs
    assert math.isnan(other.ratio.value)
    assert f"{other.difference.value:.2f}" == "5.42"


def test_an_interval_that_does_not_exist_excludes_nothing():
    nothing = stats.ratio([1.0, 2.0], [0.0, 0.0])
    assert math.isnan(nothing.low)
    assert not nothing.excludes(1)
    assert math.isinf(nothing.precision)


def test_a_quantile_that_few_values_cannot_bound_is_open():
    """0.9 to the 28th is 5.2 % and to the 36th 2.2 %: below the tail of 2.5 %."""
    values = np.random.default_rng(9).lognormal(0, 0.3, 36)
    few, enough = stats.quantile(values[:35], 0.9), stats.quantile(values, 0.9)
    assert math.isinf(few.high)
    assert few.caveat == stats.Caveat(stats.Weakness.OPEN, 35, 0.9, needed=36)
    assert few.text().endswith("∞]")
    assert enough.high == values.max() or math.isfinite(enough.high)
    assert stats.quantile(values[:10], 0.1).low == 0
    assert stats.quantile(-values[:10], 0.1).low == -math.inf
    assert stats.quantile(values, 0.5).value == stats.median(values).value


def test_few_values_carry_a_caveat():
    """A mode with a share of p is missed by n values with (1 - p)^n: 0.549^5 is 5 %."""
    assert stats.mean([1.0, 2.0, 3.0]).caveat.weakness is stats.Weakness.FEW
    five = stats.mean([1.0, 2.0, 3.0, 2.5, 1.5]).caveat
    assert (five.weakness, five.n, five.limit) == (stats.Weakness.UNSEEN_MODE, 5, pytest.approx(0.451, abs=1e-3))
    assert stats.mean(np.arange(12.0)).caveat is None
    assert stats.cv([1.0] * 11 + [9.0]).caveat.weakness is stats.Weakness.SKEWED
    assert stats.cv(np.arange(12.0)).caveat is None


def test_runs_needed_from_values_has_the_interval_of_the_cv():
    values = np.random.default_rng(10).normal(10, 1, 20)
    needed, spread = stats.runs_needed_from(values), stats.cv(values)
    assert needed.value == stats.runs_needed(spread.value)
    assert (needed.low, needed.high) == (stats.runs_needed(spread.low), stats.runs_needed(spread.high))
    assert needed.low <= 7 <= needed.high
    assert math.isnan(stats.runs_needed_from([5.0]).value)


def two_modes(n, seed, share=0.3):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < share, rng.normal(20, 2, n), rng.normal(90, 3, n))


def test_two_modes_are_found_with_their_shares_and_places():
    result = stats.shape(two_modes(60, 1), "Mbit/s")
    low, high = result.modes
    assert result.bimodal
    assert result.p < 0.001
    assert low.share.low < 0.3 < low.share.high
    assert low.location.low < 20 < low.location.high
    assert high.location.low < 90 < high.location.high
    assert 1 < low.spread < 3 < high.spread + 1.5
    assert (low.location.unit, low.share.value + high.share.value) == ("Mbit/s", pytest.approx(1))
    assert stats.shape(two_modes(60, 1), "Mbit/s") == result


def test_modes_cover_their_shares_and_places():
    """Of 60 samples of 30 runs; 3 standard errors below 93 % is 83 %."""
    found = [s.modes for s in (stats.shape(two_modes(30, seed)) for seed in range(60)) if s.bimodal]
    assert len(found) > 45
    for k, place, share in ((0, 20, 0.3), (1, 90, 0.7)):
        assert np.mean([not modes[k].share.excludes(share) for modes in found]) >= 0.83
        assert np.mean([not modes[k].location.excludes(place) for modes in found]) >= 0.83


def test_modes_far_apart_are_fitted_on_the_logarithmic_scale():
    rng = np.random.default_rng(2)
    x = np.where(rng.random(80) < 0.5, rng.lognormal(0, 0.3, 80), rng.lognormal(3, 0.3, 80))
    from tcpscape.stats.modes import fit

    assert fit(x).log
    assert not fit(-x).log
    low, high = stats.shape(x).modes
    assert not low.location.excludes(1)
    assert not high.location.excludes(math.exp(3))


def test_steps_of_a_fit_raise_the_likelihood_and_end_at_its_peak():
    """Expectation–maximization never lowers the likelihood; without a smallest variance, components that are far apart are those of their values."""
    from tcpscape.stats import modes

    x = two_modes(200, 3)
    low = x < 55
    parts, likelihoods = modes.Parts(np.array([[0.5, 0.5]]), np.array([[40.0, 60.0]]), np.array([[900.0, 900.0]])), []
    for _ in range(60):
        likelihood, parts = modes._step(x, np.ones((1, len(x))), parts, 0)
        likelihoods.append(likelihood)
    assert np.all(np.diff(likelihoods) > -1e-12)
    assert parts.shares[0] == pytest.approx([low.mean(), 1 - low.mean()], abs=1e-9)
    assert parts.places[0] == pytest.approx([x[low].mean(), x[~low].mean()])
    assert parts.variances[0] == pytest.approx([x[low].var(), x[~low].var()])


def test_a_resample_is_fitted_as_its_values_are():
    from tcpscape.stats import modes
    from tcpscape.stats.estimate import counts

    x = two_modes(40, 3)
    whole = modes.fit(x)
    shares, places = modes.resampled(x, whole)
    for i in range(5):
        again = modes._fit(np.repeat(x, np.rint(counts(40)[:, i] * 40).astype(int)), log=whole.log)
        assert shares[i] == pytest.approx(again.shares, abs=0.01)
        assert places[i] == pytest.approx(again.places, rel=0.01)


def test_one_mode_is_not_split():
    """The dip at 5 %: of 200 samples of one mode it may refute 22 (3 standard errors), and counts are no lattice of modes."""
    rng = np.random.default_rng(4)
    for draw in (lambda: rng.normal(0, 1, 30), lambda: rng.exponential(1, 30), lambda: rng.poisson(3, 30).astype(float)):
        assert sum(stats.shape(draw()).bimodal for _ in range(200)) <= 22


def test_shapes_of_few_or_equal_values():
    assert stats.shape([]).modes == ()
    assert math.isnan(stats.shape([1.0, 2.0]).p)
    assert (len(stats.shape([1.0, 2.0]).modes), stats.shape([9.5] * 10).p) == (1, 1)
    assert stats.shape([809.9301407437243] * 4 + [809.9301407437245] * 4).p == 1  # equal but for rounding: no two modes
    assert stats.shape([20.0] * 6 + [90.0] * 6).bimodal


def test_what_is_not_known_has_no_interval():
    some, full = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, math.nan], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    result = [
        stats.mean(some),
        stats.median(some),
        stats.quantile(some, 0.5),
        stats.cv(some),
        stats.ratio(some, full),
        stats.mean_ratio(full, some),
        stats.median_ratio(some, full),
        stats.difference(some, full),
        stats.win_probability(some, full),
        stats.win_probability(full, some, paired=False),
        stats.runs_needed_from(some),
    ]
    assert [e for e in result if not (math.isnan(e.value) and math.isnan(e.low) and math.isnan(e.high))] == []
    assert stats.shape(some * 4).modes == ()


def test_missing_runs_follow_the_square_root_of_their_number():
    # ln 1.5 = 0.405, ln 0.9 = -0.105: the lower end is 0.511 below, 1.26 times what it may be, so 10 runs become 15.9
    estimate = Estimate(1.5, 0.9, 2.5, 10)
    assert (stats.runs_missing(estimate), runs_text(6)) == (6, "about 6 more runs")
    # 1.01 with ± 10 %: nearer to being alike within 5 % than to differing; ln 1.05 - ln 1.01 = 0.0388, 0.1/0.0388 = 2.58, squared 6.6
    alike = Estimate(1.01, 1.01 * math.exp(-0.1), 1.01 * math.exp(0.1), 10)
    assert stats.runs_missing(alike) == pytest.approx(57, abs=1)


@pytest.mark.parametrize("decided", [Estimate(1.5, 1.1, 2.0, 10), Estimate(0.5, 0.4, 0.9, 10), Estimate(1.0, 0.98, 1.02, 10)])
def test_no_run_is_missing_where_the_ratio_is_decided(decided):
    assert (stats.runs_missing(decided), runs_text(0)) == (0, "")


def test_missing_runs_are_bounded():
    assert stats.runs_missing(Estimate(1.05, 0.2, 5.0, 10)) == 1000
    assert runs_text(stats.runs_missing(Estimate(1.05, 0.2, 5.0, 10))) == "more than 1000 more runs"
    assert stats.runs_missing(Estimate(2.0, math.nan, math.nan, 1)) == 4


def test_so_many_more_runs_decide_most_pairs():
    rng = np.random.default_rng(1)

    def pairs(n):
        return np.exp(rng.normal(0, 0.4, n)) * 1.5, np.exp(rng.normal(0, 0.4, n))

    decided = []
    while len(decided) < 40:
        a, b = pairs(10)
        if 0 < (missing := stats.runs_missing(stats.ratio(a, b))) < 1000:
            more = pairs(missing)
            decided.append(stats.runs_missing(stats.ratio(np.concatenate([a, more[0]]), np.concatenate([b, more[1]]))) == 0)
    assert sum(decided) >= 24  # of 40: 88 % of 100 in a longer run


def test_an_estimate_says_what_it_is_of_and_shares_in_percent():
    ratio, share = stats.Estimate(6.42, 6.03, 6.91, 10), stats.Estimate(0.62, 0.6, 0.64, 10)
    assert ratio.text(unit="× cubic") == "6.42 × cubic [6.03, 6.91]"
    assert stats.Estimate(6.42, math.nan, math.nan, 1).text(unit="× cubic") == "6.42 × cubic"
    assert share.percent() == "62 % [60, 64]"
    assert stats.Estimate(0.18, 0.15, math.inf, 10).percent() == "18 % [15, ∞]"
    assert stats.Estimate(0.18, math.nan, math.nan, 1).percent() == "18 %"


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (55.14, 55.11, 55.17, "55.1 [55.1, 55.2]"),
        (0.0, 0.0, 0.0243, "0 [0, 0.024]"),
        (0.0, 0.0, 1.4, "0 [0, 1.4]"),
        (99.4, 96.5, 102.4, "99.4 [96.5, 102.4]"),
        (1318.0, 1317.9, 1318.3, "1318 [1317, 1319]"),
        (12.34, 11.84, 12.87, "12.3 [11.8, 12.9]"),
        (5.0, 5.0, 5.0, "5.00 [5.00, 5.00]"),
    ],
)
def test_rounding_does_not_make_an_interval_narrower(value, low, high, text):
    assert Estimate(value, low, high, 5).text() == text


def test_a_written_interval_holds_its_value_and_has_two_ends():
    drawn = np.random.default_rng(1)
    for value, below, above in zip(10 ** drawn.uniform(-3, 5, 3000), 10 ** drawn.uniform(-5, 0, 3000), 10 ** drawn.uniform(-5, 0, 3000), strict=True):
        low, high = value * (1 - below), value * (1 + above)
        shown, ends = Estimate(value, low, high, 5).text().split(" [")
        left, right = map(float, ends.removesuffix("]").split(", "))
        assert left <= float(shown) <= right
        assert left < right
        assert left <= low + 0.10001 * (value - low)
        assert right >= high - 0.10001 * (high - value)


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.7, 0.62, 24, "0.700 [0.620, 24.0]"),
        (1.12, 1.05, 30, "1.12 [1.05, 30.0]"),
        (56.6, 36.4, 70.6, "57 [36, 71]"),
        (1, 1, 1, "1.00 [1.00, 1.00]"),
    ],
)
def test_a_skewed_interval_keeps_the_digits_of_its_nearer_end(value, low, high, text):
    """A loss is not written as equality."""
    assert stats.Estimate(value, low, high, 10).text() == text
