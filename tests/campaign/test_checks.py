"""Checks: their grammar, what they say of results, the exit status."""

import dataclasses
import json
import math

import pytest

from tcpscape.campaign import checks
from tcpscape.campaign.checks import CheckError
from tcpscape.trial import Cwnd, FlowResult, Rtt, Trial


def trial(mbps: float, p50: float = 50.0, cca: str = "cubic") -> Trial:
    flow = FlowResult(cca, mbps, 10.0, 3, None, Rtt(p50=p50, mean=p50), Cwnd(), {}, bytes_received=int(mbps * 1e6 / 8 * 10))
    return Trial("s", cca, f"{mbps}", 0, "mock", "1", 10.0, (flow,))


def conditions(**of: list[float]):
    return [({"cca": cca, "jitter": "8ms"}, cca, [trial(v, cca=cca) for v in values]) for cca, values in of.items()]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("goodput > 5", ("goodput", "median", ">", 5, "Mbit/s", {})),
        ("goodput_mbps.median>5", ("goodput", "median", ">", 5, "Mbit/s", {})),
        ("goodput_mbps.median >= 5e3kbit", ("goodput", "median", ">=", 5, "Mbit/s", {})),
        ("goodput.mean > 1MB/s", ("goodput", "mean", ">", 8, "Mbit/s", {})),
        ("rtt_ms_p50.p95 < 0.08s", ("rtt_p50", "p95", "<", 80, "ms", {})),
        ("rtt_ms.max <= 100ms", ("rtt", "max", "<=", 100, "ms", {})),
        ("rtt_ms_mean < 9", ("rtt", "median", "<", 9, "ms", {})),
        ("goodput.cv < 10%", ("goodput", "cv", "<", 0.1, "1", {})),
        ("retransmits.n == 20", ("retransmits", "n", "==", 20, "", {})),
        ("jain.low > .9", ("jain", "low", ">", 0.9, "1", {})),
        ("goodput[cca=bbr].high != -1", ("goodput", "high", "!=", -1, "Mbit/s", {"cca": "bbr"})),
        ("goodput.median[cca=bbr, jitter=8ms] > 5", ("goodput", "median", ">", 5, "Mbit/s", {"cca": "bbr", "jitter": "8ms"})),
        ("goodput:bbr.median > 5", ("goodput:bbr", "median", ">", 5, "Mbit/s", {})),
        ("utilisation:10mbit > 90%", ("utilisation:10mbit", "median", ">", 0.9, "1", {})),
    ],
)
def test_the_grammar(text, said):
    metric, stat, op, number, unit, chosen = said
    got = checks.read(text)
    assert (got.metric.name, got.statistic.name, got.op, got.unit, dict(got.chosen)) == (metric, stat, op, unit, chosen)
    assert got.number == pytest.approx(number)


def one(text: str, **of: list[float]):
    return checks.judge(checks.read(text), conditions(**of))


@pytest.mark.parametrize(("stat", "value"), [("median", 3), ("mean", 4), ("min", 1), ("max", 10), ("n", 5), ("p50", 3), ("cv", math.sqrt(12.5) / 4)])
def test_statistics(stat, value):
    (got,) = one(f"goodput.{stat} > 0", cubic=[1, 2, 3, 4, 10])
    assert got.estimate.value == pytest.approx(value)


def test_ends_of_the_interval_are_those_that_are_shown():
    values = [float(v) for v in range(1, 21)]
    ((median,), (low,), (high,)) = (one(f"goodput.{s} > 0", cubic=values) for s in ("median", "low", "high"))
    assert (low.value, high.value) == (median.estimate.low, median.estimate.high)
    assert low.estimate == high.estimate == median.estimate


def test_every_condition_has_to_hold_and_each_is_named():
    got = one("goodput > 5", cubic=[1, 2, 3], bbr=[7, 8, 9])
    assert [(v.name, v.holds) for v in got] == [("cubic", False), ("bbr", True)]
    assert got[0].line().startswith("FAILS: goodput > 5: cubic median 2.0 [")
    assert [v.name for v in one("goodput[cca=bbr,jitter=0.008s] > 5", cubic=[1], bbr=[7])] == ["bbr"]


def test_the_line_names_its_statistic():
    """1 to 20: the median is 10.5, the mean too; an end of an interval comes with the whole interval."""
    values = [float(v) for v in range(1, 21)]
    lines = {s: one(f"goodput{s} > 0", cubic=values)[0].line() for s in ("", ".mean", ".max", ".cv", ".n", ".p90", ".low")}
    assert lines[""].startswith("holds: goodput > 0: cubic median 10.5 [6.2, 14.8] Mbit/s (n 20)")
    assert lines[".mean"].startswith("holds: goodput.mean > 0: cubic mean 10.5 [")
    assert lines[".max"] == "holds: goodput.max > 0: cubic max 20.0 Mbit/s (n 20)"
    assert lines[".cv"].startswith("holds: goodput.cv > 0: cubic CV 0.56 [")
    assert lines[".n"] == "holds: goodput.n > 0: cubic n 20"
    assert lines[".p90"].startswith("holds: goodput.p90 > 0: cubic p90 18.1 [")
    assert lines[".low"] == "holds: goodput.low > 0: cubic low end 6.24 of median 10.5 [6.2, 14.8] Mbit/s (n 20)"
    (low,) = one("goodput.low > 7", cubic=values)
    assert low.line().endswith("(n 20; the interval holds 7.00, so undecided)")
    plain = low.to_dict()
    assert (plain["statistic"], plain["value"], plain["low"]) == ("median", plain["low"], low.estimate.low)


def test_a_number_inside_the_interval_is_said_to_be_undecided():
    near, far = one("goodput > 2.5", cubic=[2, 3, 2.4, 2.7, 2.8, 2.2])[0], one("goodput > 1", cubic=[2, 3, 2.4, 2.7, 2.8, 2.2])[0]
    assert near.holds
    assert "undecided" in near.line()
    assert far.sure
    assert "undecided" not in far.line()


def test_what_no_trial_knows_is_refused_and_not_failed():
    nothing = [({"cca": "cubic"}, "cubic", [trial(1, p50=math.nan)])]
    with pytest.raises(CheckError, match="does not say rtt_p50"):
        checks.judge(checks.read("rtt_p50 < 5"), nothing)
    with pytest.raises(CheckError, match=r"chooses none of the conditions; there are cubic \| bbr"):
        one("goodput[cca=reno] > 5", cubic=[1], bbr=[2])


def test_exit_status(cli):
    args = ("run", "baseline", "--engine", "mock", "--cca", "cubic,bbr", "--seeds", "4")
    for check, status in (("goodput > 1kbit", 0), ("goodput > 1gbit", 1), ("goodput.n == 4", 0), ("goodput > ", 2), ("goodput[cca=reno] > 1", 2)):
        assert cli(*args, "--check", check).status == status, check
    got = cli(*args, "--check", "goodput > 1kbit", "--check", "goodput[cca=bbr] > 1gbit")
    assert got.status == 1
    failing, summary = got.out.splitlines()[-2:]
    assert (failing.split(":")[0], summary) == ("FAILS", "2 of 3 checks hold: --verbose shows each")
    every = cli(*args, "--verbose", "--check", "goodput > 1kbit", "--check", "goodput[cca=bbr] > 1gbit")
    assert [line.split(":")[0] for line in every.out.splitlines()[-3:]] == ["holds", "holds", "FAILS"]
    assert cli(*args, "--check", "goodput[cca=bbr] > 1kbit").out.splitlines()[-1] == "the check holds: --verbose shows each"


def test_json_lines_stay_results(cli):
    got = cli("run", "baseline", "--engine", "mock", "--seeds", "2", "--json", "--check", "goodput > 1gbit")
    assert got.status == 1
    assert [line["seed"] for line in got.lines] == [0, 1]
    said = json.loads(got.err)
    assert (said["holds"], said["n"], said["unit"]) == (False, 2, "Mbit/s")


def test_what_a_metric_needs_is_kept(cli, need_model):
    got = cli("run", "baseline", "--duration", "3s", "--seeds", "2", "--check", "goodput_1s_min > 0", "--check", "srtt_cv < 5", "--verbose")
    assert got.status == 0
    assert "holds: goodput_1s_min > 0" in got.out


def test_the_conditions_of_a_campaign():
    from tcpscape.campaign import execute
    from tcpscape.campaign.campaign import Campaign
    from tcpscape.cli.checks import conditions as of_campaign

    said = {"conditions": {"rtt": "50ms"}, "axes": {"jitter": "0ms,8ms"}, "cca": "cubic,bbr", "seeds": 3, "engines": ["mock"]}
    found = of_campaign({"part": execute.run(Campaign.of(said))})
    got = checks.judge(checks.read("goodput[cca=bbr, jitter=8ms, part=part] > 1kbit"), found)
    assert [(v.name, v.estimate.n, v.holds) for v in got] == [("part, bbr, jitter 8ms", 3, True)]


def test_checks_of_a_sweep_and_of_its_report(cli, tmp_path):
    args = ("sweep", "--rtt", "50ms", "--jitter", "0ms,8ms", "--cca", "cubic,bbr", "--seeds", "3", "--engine", "mock", "--out", tmp_path / "o")
    assert cli(*args, "--check", "goodput[jitter=9ms] > 1").status == 2
    assert not (tmp_path / "o").exists()
    got = cli(*args, "--check", "goodput[jitter=8ms] > 1kbit", "--check", "goodput[cca=bbr, jitter=0].n == 4", "--verbose")
    assert got.status == 1
    assert [line.split(":")[0] for line in got.out.splitlines()[-3:]] == ["holds", "holds", "FAILS"]
    assert cli(*args, "--json", "--check", "goodput > 1kbit").status == 0
    for check, status in (("goodput > 1kbit", 0), ("goodput > 1gbit", 1), ("goodput >", 2)):
        assert cli("report", tmp_path / "o", "--figures", "svg", "--check", check).status == status


def test_checks_of_a_study(cli, tmp_path):
    args = ("study", "run", "baseline", "--quick", "--seeds", "2", "--engine", "mock", "--out", tmp_path)
    got = cli(*args, "--check", "goodput[cca=bbr] > 1kbit", "--check", "goodput > 1gbit", "--verbose")
    assert got.status == 1
    assert "holds: goodput[cca=bbr] > 1kbit" in got.out
    assert "FAILS: goodput > 1gbit" in got.out


def test_conditions_on_several_engines_say_which():
    from tcpscape.campaign import execute
    from tcpscape.campaign.campaign import Campaign
    from tcpscape.cli import checks as door

    campaign = Campaign.of({"conditions": {"rtt": "50ms"}, "cca": "cubic", "engines": ["mock", "model"], "seeds": 2})
    assert [name for _, name in door.of_cases(campaign)] == ["cubic, engine mock", "cubic, engine model"]
    outcome = execute.run(Campaign.of({"conditions": {"rtt": "50ms"}, "cca": "cubic", "engines": ["mock"], "seeds": 2}))
    assert [name for _, name, _ in door.conditions({"": outcome})] == ["cubic"]


def seeded(values: list[float], cca: str, jitter: str = "8ms"):
    trials = [dataclasses.replace(trial(v, cca=cca), seed=i) for i, v in enumerate(values)]
    return {"cca": cca, "jitter": jitter}, f"{cca}, jitter {jitter}", trials


def test_a_ratio_of_two_conditions_is_of_their_means():
    both = [seeded([1.0, 2.0, 3.0, 2.0, 2.0], "cubic"), seeded([5.0, 10.0, 15.0, 10.0, 10.0], "bbr")]
    (verdict,) = checks.judge(checks.read("goodput[cca=bbr over cubic] > 3"), both)
    assert verdict.estimate.value == pytest.approx(5)  # each pair has a ratio of 5, so the interval is that point
    assert (verdict.holds, verdict.sure) == (True, True)
    assert verdict.name == "bbr, jitter 8ms over cubic, jitter 8ms"
    assert "Mbit/s" not in verdict.line()
    (low,) = checks.judge(checks.read("goodput[cca=bbr over cubic].low > 6"), both)
    assert not low.holds


def test_a_ratio_pairs_conditions_that_are_alike_in_all_else():
    cells = [
        seeded([v] * 5, cca, jitter)
        for jitter, values in (("0ms", (4.0, 8.0)), ("8ms", (1.0, 6.0)))
        for cca, v in zip(("cubic", "bbr"), values, strict=True)
    ]
    ratios = checks.judge(checks.read("goodput[cca=bbr over cubic] > 3"), cells)
    assert [(round(v.estimate.value, 6), v.holds) for v in ratios] == [(2, False), (6, True)]
    along = checks.judge(checks.read("goodput[jitter=8ms over 0ms] > 0.5"), cells)
    assert [(v.estimate.value, v.holds) for v in along] == [(0.25, False), (0.75, True)]
