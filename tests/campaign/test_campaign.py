"""What a campaign's words stand for: axes, templates, derived values, cases, and the directory it is kept in."""

from functools import partial

import numpy as np
import pytest

from tcpscape import errors, stats
from tcpscape.campaign import axes, execute, record
from tcpscape.campaign.adaptive import CAUTION, Repetition, repeat, widened
from tcpscape.campaign.campaign import Campaign, _Cases
from tcpscape.errors import TcpscapeError
from tcpscape.store.results import Store


@pytest.mark.parametrize(
    ("said", "levels"),
    [
        ("0..24ms/4ms", "0ms 4ms 8ms 12ms 16ms 20ms 24ms"),
        ("24,50,100ms", "24ms 50ms 100ms"),
        ("0,0.1%", "0 0.1%"),
        ("0.1%..10%/x10", "0.1% 1% 10%"),
        ("0..1s/250ms", "0s 0.25s 0.5s 0.75s 1s"),
        ("1..3/1", "1 2 3"),
        (["fq_codel", "codel"], "fq_codel codel"),
        ([True, False], "true false"),
        ("5..7ms/1ms,7..8ms/1ms", "5ms 6ms 7ms 8ms"),
    ],
)
def test_levels_of_an_axis(said, levels):
    assert axes.levels(said, "x") == tuple(levels.split())


@pytest.mark.parametrize(
    ("text", "kernels"),
    [
        ("6.1,6.12", ("6.1", "6.12")),
        ("6.12,rmem_max=4MiB", ("6.12,rmem_max=4MiB",)),
        ("6.1|6.12,rmem_max=4MiB", ("6.1", "6.12,rmem_max=4MiB")),
        ("6.12,rmem_max=4MiB,hz=100,6.1", ("6.12,rmem_max=4MiB,hz=100", "6.1")),
        (["6.1", "6.12,rmem_max=4MiB"], ("6.1", "6.12,rmem_max=4MiB")),
    ],
)
def test_kernels_have_commas_of_their_own(text, kernels):
    assert axes.levels(text, "kernel") == kernels
    assert axes.levels("codel|fq_codel limit 100", "queue") == ("codel", "fq_codel limit 100")


def test_where_values_stand():
    assert [(v.number, v.unit) for v in map(axes.read, ("8ms", "10mbit", "0.1%", "64KiB", "5"))] == [
        (8, "ms"),
        (10, "Mbit/s"),
        (0.1, "%"),
        (65536, "B"),
        (5, ""),
    ]
    assert axes.read("fq_codel").is_word
    assert axes.same("0", "0ms")
    assert axes.same("1s", "1000ms")
    assert not axes.same("1ms", "1mbit")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("60mbit / r", "20000000bit"),
        ("2 * rtt + 1ms", "101ms"),
        ("10mbit * rtt", "62500"),
        ("rtt * 10%", "5ms"),
        ("62500B / rtt", "10000000bit"),
        ("rtt / 25ms", "2"),
        ("-(1 - r)", "2"),
        ("(r - 1) * rtt", "100ms"),
        ("62500B / 10mbit", "50ms"),
    ],
)
def test_derived_values(expression, text):
    assert axes.derived(expression, {"r": "3", "rtt": "50ms"}) == text


STEP = {
    "scenario": {
        "bottleneck": "tbf rate 60mbit burst 6056 limit 100000",
        "reverse": "netem delay ${d}",
        "changes": [{"where": "bottleneck", "at": "3s", "set": {"rate": "${after}"}}],
    },
    "axes": {"d": ["25ms", "50ms"], "r": "2,3"},
    "derive": {"after": "60mbit / r"},
    "zip": [{"cca": ["cubic", "bbr"], "ecn": [True, False]}],
}


def test_cases_of_a_template():
    cases = Campaign.of(STEP).cases()
    assert len(cases) == 8
    assert [(c.at["d"], c.at["r"], c.cca, c.scenario.ecn, c.scenario.changes[0].set.rate) for c in cases[1:3]] == [
        ("25ms", "2", "bbr", False, 30 * 10**6),
        ("25ms", "3", "cubic", True, 20 * 10**6),
    ]
    assert Campaign.of(STEP).shown == ("d", "r")


def test_a_point_is_made_once_for_all_congestion_controls(monkeypatch):
    made, make = [], _Cases._of_conditions
    monkeypatch.setattr(_Cases, "_of_conditions", lambda self, *of: made.append(make(self, *of)) or made[-1])
    asked = Campaign.of({"conditions": {"rtt": "20ms"}, "axes": {"jitter": ["1ms", "2ms", "3ms"]}, "cca": "cubic,bbr,reno"})
    cases = asked.cases()
    assert [c.scenario.ccas for c in cases] == [("cubic",), ("bbr",), ("reno",)] * 3
    assert len({c.scenario.address() for c in cases}) == 9
    assert len(made) == 5, "three points, and the first and the last before them, which say how large the campaign is"


def test_cases_of_conditions():
    said = {
        "conditions": {"rtt": "50ms", "flow": {"rcvbuf": "256KiB"}},
        "zip": [{"profile": ["a", "b"], "rtt": ["26ms", "60ms"], "jitter": "7,40ms", "loss": "1%,1%"}],
        "axes": {"app": "5MiB/s,10MiB/s", "ecn": [False, True]},
        "pool": ["app"],
        "cca": "cubic,bbr",
        "engines": ["mock"],
    }
    campaign = Campaign.of(said)
    cases = campaign.cases()
    assert len(cases) == 2 * 2 * 2 * 2
    assert {(c.scenario.flows[0].rcvbuf, c.scenario.duration) for c in cases} == {(2**18, 10**10)}
    assert campaign.shown == ("ecn", "profile")
    outcome = execute.run(Campaign.of({**said, "seeds": 2}))
    assert len(outcome.cells) == 8
    cell = outcome.find("bbr", profile="b", ecn="true")
    assert [s.flows[0].app.rate for s in cell.scenarios] == [5 * 2**20, 10 * 2**20]
    assert [t.seed for t in cell.trials] == [0, 1, 0, 1]
    assert all(s.ecn and s.rtt_ns == 60 * 10**6 for s in cell.scenarios)


def test_a_value_may_come_again_in_a_group():
    said = {"conditions": {"rtt": "50ms"}, "zip": [{"kind": ["a", "b", "c"], "order": ["reorder", "clamp", "clamp"], "jitter": "4,4,8ms"}]}
    cases = Campaign.of(said).cases()
    assert [(c.at["kind"], c.at["order"], c.at["jitter"]) for c in cases] == [("a", "reorder", "4ms"), ("b", "clamp", "4ms"), ("c", "clamp", "8ms")]
    assert Campaign.of(said).shown == ("kind",)


def test_a_group_is_shown_by_what_tells_its_rows_apart():
    said = {"conditions": {"rtt": "50ms"}, "zip": [{"profile": ["a", "a", "b"], "kind": ["x", "y", "x"], "jitter": "4,8,4ms"}]}
    assert Campaign.of(said).shown == ("profile", "kind")
    assert [c.scenario.forward[0].jitter for c in Campaign.of(said).cases()] == [4 * 10**6, 8 * 10**6, 4 * 10**6]


def test_a_campaign_is_written_and_read(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('seeds = 2\nengines = ["mock"]\ncca = "cubic,bbr"\n[conditions]\nrtt = "50ms"\n[axes]\njitter = "0..8ms/4ms"\n')
    campaign = Campaign.load(file)
    assert (campaign.name, len(campaign.cases())) == ("mine", 6)
    assert Campaign.of(campaign.to_dict()) == campaign
    outcome = execute.run(campaign, execute.Execution(store=Store(tmp_path)))
    record.save(record.Record("sweep", "mine", "tcpscape sweep mine.toml", {"": outcome}), tmp_path)
    got = record.load(tmp_path)
    assert (got.parts[""], got.command) == (outcome, "tcpscape sweep mine.toml")
    frame = outcome.frame(["goodput", "rtt"])
    assert frame["jitter"].to_list() == ["0ms", "0ms", "4ms", "4ms", "8ms", "8ms"]
    assert {"goodput_median_low", "rtt_mean_high"} <= set(frame.columns)
    kept = outcome.retention(outcome.find("bbr", jitter="8ms"), "jitter")
    assert kept.value == outcome.find("bbr", jitter="8ms").mean().value / outcome.find("bbr", jitter="0").mean().value
    with pytest.raises(TcpscapeError, match=r"no results.sqlite in it; name a directory"):
        record.load(tmp_path / "nowhere")


def test_intervals_of_repeated_cells_are_wider():
    said = {"conditions": {"rtt": "50ms", "loss": "1%", "jitter": "8ms"}, "cca": "cubic", "engines": ["mock"], "seeds": 5}
    (plain,), (repeated,) = (execute.run(Campaign.of({**said, **more})).cells for more in ({"seeds": 20}, {"precision": "0.001%", "max_seeds": 20}))
    assert repeated.values() == plain.values()
    for one, other in ((plain.median(), repeated.median()), (plain.mean(), repeated.mean())):
        assert other.value == one.value
        assert other.high - other.value == pytest.approx((1 + 2 / 20) * (one.high - one.value))


# Adaptive repetition: the rule, the rounds, and what its intervals cover when it stops.


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
    assert (rule.more([]), rule.more([10.0, 11, 12, 10, 11]), rule.more([10.0] * 6)) == (6, 1, 0)
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
