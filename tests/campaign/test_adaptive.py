"""Adaptive repetition: the rule, the rounds, and what its intervals cover when it stops."""

from functools import partial

import numpy as np
import pytest

from tcpscape import errors, stats
from tcpscape.campaign.adaptive import CAUTION, Repetition, repeat, widened


def normal(cv, cell, seed):
    """Run `seed` of a cell whose goodputs scatter by `cv` around 10."""
    return float(np.random.default_rng((cell, seed)).normal(10, 10 * cv))


def rounds(spreads, log):
    def run(wanted):
        log.append(list(wanted))
        return [[normal(spreads[i], i, seed) for seed in seeds] for i, seeds in wanted]

    return run


def test_quiet_cells_cost_few_runs_and_noisy_ones_many():
    log = []
    quiet, noisy, wild = repeat(rounds([0.01, 0.15, 0.9], log), 3, Repetition(0.05, least=5, cap=200))
    assert len(quiet.values) == 5
    assert 30 <= len(noisy.values) <= 80  # (1.96 · 0.15 / 0.05)² = 35, and what caution costs
    assert len(wild.values) == 200
    assert (quiet.reached, noisy.reached, wild.reached) == (True, True, False)
    assert quiet.estimate.precision <= 0.05 < wild.estimate.precision
    assert len(log) <= 10


def test_all_cells_of_a_round_run_together_and_seeds_go_on_from_0():
    log = []
    got = repeat(rounds([0.15, 0.2], log), 2, Repetition(0.05))
    assert log[0] == [(0, range(5)), (1, range(5))]
    for cell in (0, 1):
        assert [s for wanted in log for i, seeds in wanted if i == cell for s in seeds] == list(range(len(got[cell].values)))


def test_the_rule_is_a_function_of_the_values():
    rule = Repetition(0.02, least=6, cap=10)
    assert rule.more([]) == 6
    assert rule.more([10.0, 11, 12, 10, 11]) == 1
    assert rule.more([10.0] * 6) == 0
    assert rule.more([10.0, 20.0] * 3) == 4  # to the cap
    assert rule.more([10.0, 20.0] * 5) == 0  # at the cap
    assert not rule.reached([10.0, 20.0] * 5)


def test_a_cell_at_most_doubles():
    assert Repetition(0.001, cap=10_000).more(list(np.random.default_rng(1).normal(10, 1, 40))) == 40


def test_the_reported_interval_is_wider_than_that_of_one_look():
    values = [9.0, 10.0, 11.0, 10.5, 9.5]
    one, widened = stats.mean(values), Repetition(0.05).estimate(values)
    assert widened.value == one.value
    assert widened.high - widened.value == pytest.approx((1 + CAUTION / 5) * (one.high - one.value))


def test_what_cannot_be_negative_stays_so():
    values = [0.1, 0.2, 5.0, 0.3, 9.0]
    assert stats.median(values).low > 0
    assert Repetition(0.05, statistic=stats.cv).estimate(values).low >= 0
    assert widened(stats.Estimate(1.0, 0.1, 3.0, 5)).low == 0
    assert widened(stats.Estimate(1.0, -1.0, 3.0, 5)).low == pytest.approx(1 - 2 * 1.4)


def test_any_metric_may_decide():
    values = list(np.random.default_rng(5).lognormal(0, 0.3, 40))
    rule = Repetition(0.2, statistic=partial(stats.quantile, q=0.75))
    assert rule.estimate(values).value == pytest.approx(np.quantile(values, 0.75))
    assert rule.more(values[:5]) == 5  # an interval that is open asks for twice the runs


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"precision": 0.0}, "precision"),
        ({"precision": 5}, "precision"),
        ({"precision": 0.1, "least": 3}, "least"),
        ({"precision": 0.1, "cap": 4}, "cap"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(fields, word):
    with pytest.raises(errors.ScenarioError, match=f"^{word}: .+; give"):
        Repetition(**fields)


def test_a_round_that_returns_too_little_is_a_bug():
    with pytest.raises(ValueError, match="cell 0: 4 values for 5 seeds"):
        repeat(lambda wanted: [[1.0] * 4 for _ in wanted], 1, Repetition(0.05))
