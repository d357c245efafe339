"""What a campaign's words stand for: axes, templates, derived values, cases, and the directory it is kept in."""

import pytest

from tcpscape.campaign import axes, derive, execute, record
from tcpscape.campaign.campaign import Campaign
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


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("0..24ms", "x: '0..24ms' is not a range; write for example 0..24ms/4ms"),
        ("24ms..0ms/4ms", "x: a range from 24 to 0 by 4 has no values"),
        ("0..24ms/4mbit", "x: '4mbit' is not in ms"),
        ("1,,2", "x: '1,,2' has an empty value"),
        ("5,5,7ms", "has a value twice; write each once"),
        ("0..1e9/1", "the range has 1,000,000,000 values; write at most 10,000"),
        ("0..8ms/x2", "x: a range from 0 to 8 by ×2 has no values"),
    ],
)
def test_what_is_no_axis(said, error):
    with pytest.raises(TcpscapeError) as got:
        axes.levels(said, "x")
    assert error in str(got.value)


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
    assert derive.value(expression, {"r": "3", "rtt": "50ms"}) == text


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("60mbit +", "is not arithmetic"),
        ("moon * 2", "asks for moon, which is no axis"),
        ("1ms + 1mbit", "mixes time and rate"),
        ("1 / 0", "divides by zero"),
        ("1ms * 1ms", "multiplies time by time"),
        ("__import__('os')", "is more than + - * / over axes"),
        ("2 / 1ms", "divides a number by time"),
    ],
)
def test_what_is_no_arithmetic(expression, error):
    with pytest.raises(TcpscapeError, match="derive: ") as got:
        derive.value(expression, {})
    assert error in str(got.value)


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


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"axes": {"moon": "1,2"}}, "moon: no such field or ${axis}"),
        ({"zip": [{"rtt": "1,2ms", "jitter": "1,2,3ms"}]}, "zip: its axes are not equally long (rtt 2, jitter 3)"),
        ({"axes": {"rtt": "1,2ms"}, "zip": [{"rtt": "3,4ms"}]}, "axes: rtt is said twice"),
        ({"engines": []}, "engines: no engine runs nothing"),
        ({"engines": ["mock", "mock"]}, "engines: one is there twice"),
        ({"scenario": "baseline"}, "conditions: the campaign has a scenario too"),
        ({"derive": {"x": "moon"}}, "asks for moon, which is no axis"),
        ({"seeds": "none"}, "seeds: 'none' is not a number of seeds"),
        ({"cca": "cubic,cubic"}, "cca: 'cubic,cubic' names one twice"),
        ({"metrik": "x"}, "metrik: no such field"),
        ({"axes": {"buffer": "1bdp,2bdp"}}, "buffer: there is no bottleneck that it could belong to; give its rate too"),
    ],
)
def test_what_is_no_campaign(fields, error):
    with pytest.raises(TcpscapeError) as got:
        Campaign.of({"conditions": {"rtt": "50ms"}, **fields}).cases()
    assert error in str(got.value)


def test_a_campaign_is_written_and_read(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('seeds = 2\nengines = ["mock"]\ncca = "cubic,bbr"\n[conditions]\nrtt = "50ms"\n[axes]\njitter = "0..8ms/4ms"\n')
    campaign = Campaign.load(file)
    assert (campaign.name, len(campaign.cases())) == ("mine", 6)
    assert Campaign.of(campaign.to_dict()) == campaign
    outcome = execute.run(campaign, execute.Execution(store=Store(tmp_path)))
    record.save(record.Record("sweep", "mine", "tcpscape sweep mine.toml", {"": outcome}), tmp_path)
    got = record.load(tmp_path)
    assert got.parts[""] == outcome
    assert got.command == "tcpscape sweep mine.toml"
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
