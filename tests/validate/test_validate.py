"""Validation: conditions, the divergence and its intervals, ranks, bounds, the moment of parting, recorded results, the command."""

import csv
import json
import math
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from conftest import ROOT
from tcpscape.errors import TcpscapeError
from tcpscape.plots.validation import overlay
from tcpscape.scenario.scenario import Scenario
from tcpscape.store.results import FILE
from tcpscape.trial import Cwnd, FlowResult, Rtt, Trial
from tcpscape.validate import compare, conditions, draw, sides, validation
from tcpscape.validate.compare import Divergence, DivergenceSummary, ranks, worst
from tcpscape.validate.conditions import NamedScenario
from tcpscape.validate.parting import Bundle, bundle, labellings, part
from tcpscape.validate.sides import SideRuns, TrialNumbers, load_recorded, read_results, write_results
from tcpscape.words import validation as answer

REFERENCE = ROOT / "tests" / "data" / "reference"


def condition(id="x", cca="cubic", **fields):
    return NamedScenario(id, Scenario.of({"forward": "netem delay 10ms", "flows": [{"cca": cca}], **fields}))


def runs(*goodputs, retransmits=0.0):
    return SideRuns(tuple(TrialNumbers(g, retransmits, seed=i) for i, g in enumerate(goodputs)))


def comparison(a, b, **fields):
    return Divergence(condition(**fields), runs(*a), runs(*b))


# Conditions

FAMILIES = [
    ("clean", {}),
    ("loss", {"forward": "netem delay 5ms loss 0.1%"}),
    ("loss", {"forward": {"delay": "5ms", "loss": "0.1%"}}),
    ("loss", {"forward": "netem delay 5ms loss gemodel 1% 20%"}),
    ("clean", {"forward": "netem delay 5ms 0ms loss 0%"}),
    ("jitter", {"forward": "netem delay 5ms 1ms distribution normal"}),
    ("jitter", {"reverse": "netem delay 5ms 500us"}),
    ("jitter", {"forward": {"delay": "5ms", "jitter": "1ms", "order": "clamp"}}),
    ("loss and jitter", {"forward": "netem delay 5ms 1ms loss 1%"}),
    ("loss", {"forward": "netem d 5ms lo 0.1%"}),
    ("loss", {"reverse": "netem drop 1 la 5ms"}),
    ("loss", {"forward": "netem c 1%"}),
    ("clean", {"forward": "netem la 5ms 0 dr 0.0%"}),
    ("clean", {"forward": "netem d 5ms lo gemodel 0% 20%"}),
    ("jitter", {"forward": "netem d 5ms 1ms di normal"}),
    ("jitter", {"forward": "netem r 20% d 5ms"}),
    ("jitter", {"reverse": "netem du 1%"}),
    ("loss and jitter", {"forward": "netem lat 5ms 500 los state 1%"}),
    ("bottleneck", {"bottleneck": "tbf r 10mbit b 6056 la 50ms"}),
    ("bottleneck", {"forward": "netem d 5ms ra 10mbit"}),
    ("clean", {"bottleneck": "red limit 60000 min 6000 max 18000 avpkt 1500 burst 8 bandwidth 9mbit"}),
    ("bottleneck", {"bottleneck": {"rate": "10mbit", "buffer": "64KB"}}),
    ("bottleneck", {"forward": "netem delay 5ms rate 10mbit"}),
    ("bottleneck and impairments", {"forward": "netem delay 5ms loss 1%", "bottleneck": "tbf rate 10mbit burst 6056 limit 64000"}),
]


@pytest.mark.parametrize(("family", "path"), FAMILIES, ids=lambda x: str(x)[:40])
def test_the_family_is_read_from_the_path(family, path):
    assert condition(**path).family == family


def test_reference_conditions_are_read_and_told_apart():
    found = conditions.read(REFERENCE / "random_conditions.csv")
    assert len(found) == 160
    assert {c.family for c in found} <= set(conditions.FAMILIES)
    first = next(c for c in found if c.id == "c003")
    assert first.describe() == "bbr×4, 59.2 ms, loss 0.412 %, 2.49 Mbit/s, 0.51 BDP, rcvbuf auto, app 1 MB/s"
    assert (first.combination, first.scenario.flow_count) == ("bottleneck, loss", 4)


def test_conditions_written_are_read_back_the_same(tmp_path):
    found = [*draw.PathDraw(12).conditions(), condition("mixed", flows=[{"cca": "cubic"}, {"cca": "bbr", "start": "1s"}])]
    shared = [c for c in conditions.read(REFERENCE / "shared_conditions.csv") if c.id in ("s003", "s020", "s039")]
    conditions.write([*found, *shared], tmp_path / "c.yaml")
    again = conditions.read(tmp_path / "c.yaml")
    for there, here in zip(again, [*found, *shared], strict=True):
        assert (there.id, there.scenario.address(), there.describe(), there.queue) == (here.id, here.scenario.address(), here.describe(), here.queue)
    assert [c.scenario for c in again[-3:]] == [c.scenario for c in shared]


def test_lists_and_pairs_of_scenarios(tmp_path):
    (tmp_path / "c.toml").write_text('[[conditions]]\nid = "one"\nforward = "netem delay 5ms"\n[[conditions]]\nforward = "netem delay 6ms"\n')
    assert [c.id for c in conditions.read(tmp_path / "c.toml")] == ["one", "s001"]
    (tmp_path / "c.yaml").write_text("- baseline\n- {id: two, forward: netem delay 5ms}\n")
    assert [c.id for c in conditions.read(tmp_path / "c.yaml")] == ["baseline", "two"]
    assert [c.id for c in conditions.read("baseline")] == ["baseline"]
    paired = conditions.pairs([condition("p"), condition("q"), condition("r", forward="netem delay 9ms")], ["cubic", "bbr"])
    assert [c.id for c in paired] == ["p-cubic", "p-bbr", "r-cubic", "r-bbr"]
    assert paired[0].path == paired[1].path != paired[2].path


# Random conditions


def test_a_draw_is_even_over_families_and_congestion_controls_and_grows_at_its_end():
    long, short = draw.PathDraw(108, 4).conditions(), draw.PathDraw(20, 4).conditions()
    assert [c.scenario for c in short] == [c.scenario for c in long[:20]]
    assert [c.scenario for c in draw.PathDraw(20, 5).conditions()] != [c.scenario for c in short]
    counts = {(f, cca): 0 for f in conditions.FAMILIES for cca in draw.CCAS}
    for c in long:
        counts[c.family, c.cca] += 1
    assert set(counts.values()) == {6}
    mixtures = [c.combination for c in long if c.family == conditions.MIXED]
    assert {m: mixtures.count(m) for m in mixtures} == dict.fromkeys(conditions.COMBINATIONS, 6)
    assert all(8e6 <= c.scenario.rtt_ns <= 250e6 for c in long)


# The divergence


def test_a_ratio_without_scatter_is_all_unexplained():
    c = comparison([20, 20, 20], [10, 10, 10])
    assert (c.error, c.unexplained) == (pytest.approx(math.log(2)), pytest.approx(math.log(2)))
    assert c.at_most == pytest.approx(math.log(2))
    assert c.overlap is False
    assert c.floor == 0


def test_scatter_explains_a_ratio_and_widens_it():
    c = comparison([8, 10, 14], [7, 9, 13])
    assert (c.error, c.unexplained) == (pytest.approx(math.log(10 / 9)), 0)
    assert (c.ln.low, c.ln.high) == (pytest.approx(math.log(8 / 13)), pytest.approx(math.log(14 / 7)))
    assert c.overlap is True
    assert 0.1 < c.floor < 0.4


def test_single_runs_near_intervals_and_nothing_delivered():
    c = comparison([11], [10])
    assert c.unexplained == c.error == pytest.approx(math.log(1.1))
    assert c.overlap is None
    assert math.isnan(c.floor)
    assert math.isinf(c.width)
    assert comparison([10, 10], [10.05, 10.05]).overlap is True
    assert comparison([10, 10], [10.2, 10.2]).overlap is False
    assert comparison([0, 0], [0, 0]).error == 0
    assert comparison([1, 1], [0, 0]).error == pytest.approx(math.log(200))


def test_a_perfect_model_shows_what_chance_says():
    rng = np.random.default_rng(1)
    some = [comparison(rng.lognormal(2, 0.3, 5), rng.lognormal(2, 0.3, 5)) for _ in range(300)]
    s = DivergenceSummary.of(some)
    assert s.chance_median == pytest.approx(s.median, rel=0.3)
    assert s.chance_p90 == pytest.approx(s.p90, rel=0.2)
    assert s.chance_p90_high > s.chance_p90
    assert np.mean([c.unexplained > 0 for c in some]) < 0.07  # the interval covers no difference in 95 % of cases
    assert s.p90_low == 0
    assert s.median_low <= s.median <= s.median_high


def test_a_summary_of_known_errors():
    some = [comparison([math.exp(x)] * 3, [1] * 3) for x in (0.0, 0.009, -0.02, 0.3, 0.1)]
    s = DivergenceSummary.of(some)
    assert (s.n, s.median, s.worst, s.bias) == (5, pytest.approx(0.02), pytest.approx(0.3), pytest.approx(0.009))
    assert (s.p90, s.overlap) == (pytest.approx(0.22), pytest.approx(2 / 5))
    assert worst(some, 2) == [some[3], some[4]]
    assert DivergenceSummary.of([]).to_dict()["median"] is None


def test_retransmits_and_rtts_are_judged_where_known():
    few = Divergence(condition(), runs(1, 1, retransmits=5), runs(1, 1, retransmits=10))
    many = Divergence(condition(), runs(1, 1, retransmits=60), runs(1, 1, retransmits=30))
    assert math.isnan(few.retransmit_factor)
    assert many.retransmit_factor == 2
    assert (DivergenceSummary.of([few, many]).retransmit_n, DivergenceSummary.of([few, many]).retransmit_share) == (1, 0)
    a, b = SideRuns((TrialNumbers(1, 0, 52.0),)), SideRuns((TrialNumbers(1, 0, 50.0),))
    assert Divergence(condition(), a, b).rtt_ratio == pytest.approx(1.04)


def test_ranks():
    def on(path, cca, a, b):
        return comparison([a, a], [b, b], id=f"{path}-{cca}", cca=cca, forward=f"netem delay {path}ms")

    some = [
        on(10, "cubic", 10, 11),
        on(10, "bbr", 20, 21),
        on(10, "reno", 5, 6),
        on(20, "cubic", 10, 5),
        on(20, "bbr", 5, 10),
        on(30, "cubic", 10, 10),
        on(30, "bbr", 10.1, 9.9),
        on(40, "cubic", 1, 1),
    ]
    found = ranks(some)
    assert (found.paths, found.pairs, found.decided, found.opposed) == (3, 5, 4, 1)
    assert found.alike == pytest.approx(4 / 5)  # the third path is a tie on both
    assert found.decided_alike == pytest.approx(3 / 4)
    assert found.kendall == found.spearman == pytest.approx(1)
    assert ranks(some[-1:]) is None

    def path(name, *pairs):
        ccas = ("cubic", "bbr", "reno")
        return [comparison([a, a], [b, b], id=f"{name}{i}", cca=ccas[i], forward=f"netem delay {name}ms") for i, (a, b) in enumerate(pairs)]

    same, near = path(1, (10, 10), (8, 8), (5, 5)), path(2, (10, 9.2), (9, 10), (5, 5))
    other = path(3, (10, 8), (9, 10), (5, 5))
    found = ranks([*same, *near, *other])
    assert (found.best, found.best_chance) == (pytest.approx(2 / 3), 1.0)
    noisy = [comparison([10] * 3, b, id=cca, cca=cca) for cca, b in (("cubic", [5, 10, 15]), ("bbr", [6, 9, 16]), ("reno", [4, 11, 14]))]
    assert 0.3 < ranks(noisy).best_chance < 0.9


def test_bounds():
    some = [comparison([1.1] * 3, [1] * 3), comparison([1] * 3, [1] * 3, id="y", forward="netem delay 5ms loss 1%")]
    judged = compare.judge(compare.read_bounds("median<=0.04, p90@loss<=0.01,p90@each<=0.05,overlap>=0.5"), some)
    assert [(c.group, c.met) for c in judged] == [("all", False), ("loss", True), ("clean", False), ("loss", True), ("all", True)]

    some = [comparison([10, 10], [10 + i, 10 + i], id=f"{cca}{i}", cca=cca) for cca in ("cubic", "bbr") for i in range(4)]
    few = comparison([1, 1], [3, 3], id="r", cca="reno")
    found = compare.judge(compare.read_bounds("median@ccas<=0.5"), [*some, few])
    assert [c.group for c in found] == ["bbr", "cubic"]


# More seeds where the answer is open


class Dice(sides.Side):
    label, version = "dice", "1"

    def __init__(self, spread):
        self.spread, self.asked = spread, []

    def refuses(self, condition):
        return "flows: too many; leave some out" if condition.scenario.flow_count > 1 else None

    def measure(self, work, progress=None):
        self.asked += [(c.id, n) for c, n in work]
        return [runs(*np.random.default_rng(7).lognormal(0, self.spread if c.id == "wide" else 0, n)) for c, n in work]


def test_precision_gives_more_seeds_to_the_wide_conditions_only():
    a, b = Dice(0.0), Dice(0.9)
    some = [condition("wide"), condition("narrow"), condition("refused", flows=[{"count": 2}])]
    got = validation.run(validation.ValidationPlan(some, a, b, (4, 3), precision=0.1, most=20))
    assert b.asked == [("wide", 3), ("narrow", 3), ("wide", 6), ("wide", 12), ("wide", 20)]
    assert a.asked[-1] == ("wide", 8)  # it does not scatter: more than a few runs would teach nothing
    assert got.left_out == (("refused", "flows: too many; leave some out"),)
    assert [len(c.b) for c in got.divergences] == [20, 3]
    with pytest.raises(TcpscapeError, match="no condition can run"):
        validation.run(validation.ValidationPlan(some[2:], a, b))


# The moment of parting


def made(label, rows, column="cwnd"):
    values = {column: np.array(rows, dtype=float), "srtt_us": np.full((len(rows), len(rows[0])), 50.0)}
    return Bundle(label, np.arange(1, len(rows[0]) + 1) / 100, values, tuple(range(len(rows))), tuple(map(float, range(len(rows)))))


def walks(seed, n=6, length=600):
    return 100 + np.cumsum(np.random.default_rng(seed).normal(0, 1, (n, length)), axis=1)


def test_bundles_of_one_kind_are_not_told_apart():
    told = [part(made("a", walks(s)), made("b", walks(1000 + s))).first for s in range(20)]
    assert sum(t is not None for t in told) <= 3


def test_bundles_part_where_they_part():
    a, b = walks(1), walks(2)
    b[:, 300:] += 60
    found = part(made("a", a), made("b", b))
    assert found.first.quantity.column == "cwnd"
    assert 3.0 <= found.first.t_s <= 3.1
    assert found.chance <= 0.01
    assert "first in cwnd" in found.text
    noise = np.random.default_rng(3).normal(0, 15, (12, 600))
    a, b = 100 + noise[:6], 100 + noise[6:]
    b[:, 200:] += 20
    found = part(made("a", a), made("b", b))
    assert 1.8 <= found.first.t_s <= 2.4
    a, b = walks(1) * 0 + 100.0, walks(2)
    b[:, 100:120] += 200
    assert not [p for p in part(made("a", a), made("b", b)).partings if 0.9 < p.t_s < 1.3]


def test_traces_without_randomness_part_at_the_first_sample_that_differs():
    a = np.tile(np.arange(400.0), (3, 1))
    b = a.copy()
    b[:, 150:] += 2.5  # by little from 1.51 s on
    b[:, 250:] += 50  # by much from 2.51 s on
    found = part(made("a", a), made("b", b))
    assert found.exact
    assert found.differing[0].t_s == pytest.approx(1.52)  # the slack of a sample
    assert found.first.t_s == pytest.approx(2.51)
    same = part(made("a", a), made("b", np.roll(a, 1, axis=1)))  # a sample later: within the time slack
    assert not same.partings
    assert "never differ" in part(made("a", a), made("b", a)).text


def test_labellings_are_distinct_and_the_own_comes_first():
    for n, m, ways in ((3, 3, 10), (2, 4, 15), (6, 6, 200)):
        found = labellings(n, m)
        assert (found.shape, found[0].tolist()) == ((ways, n + m), [True] * n + [False] * m)
        assert len({tuple(row) for row in found}) == ways
        assert set(found.sum(axis=1)) == {n}


def trial(samples, flows=1, seed=0):
    flow = FlowResult("cubic", 1.0, 1.0, 0, 0, Rtt(mean=99.0), Cwnd(), {})
    return Trial("s", "cubic", "x", seed, "e", "1", 0.05, (flow,) * flows, samples=pl.DataFrame(samples))


def test_flows_are_put_together_on_one_grid():
    ms = 1_000_000
    said = trial({"t_ns": [10 * ms, 30 * ms, 30 * ms], "flow": [0, 0, 1], "cwnd": [10, 20, 5], "srtt_us": [0, 40_000, 60_000]}, flows=2)
    got = bundle("a", [said])
    assert got.values["cwnd"].tolist() == [[10, 10, 25, 25, 25]]
    assert got.values["srtt_us"].tolist() == [[0, 0, 50, 50, 50]]
    assert bundle("a", [trial({})]) is None
    samples = pl.DataFrame({"t_ns": [1, 2, 3], "flow": [0, 0, 0], "srtt_us": [0, 40_000, 60_000]})
    assert sides.mean_srtt_ms(samples) == {0: 50.0}


def test_overlays_are_written(tmp_path):
    a, b = walks(1), walks(2)
    b[:, 300:] += 60
    pair = [made("a", a), made("b", b)]
    files = overlay(pair, part(*pair), "x: a condition", tmp_path / "overlay-x.png")
    assert [f.name for f in files] == ["overlay-x.png", "overlay-x.svg"]
    assert all(f.stat().st_size > 10_000 for f in files)


# Recorded results


def test_reference_sets_are_recorded_results():
    record = load_recorded(REFERENCE / "random")
    assert (record.name, len(record.runs["c003"])) == ("random", 5)
    assert record.runs["c003"].goodput[0] == 2.3828
    assert record.runs["c003"].known("mean_rtt_ms") == []  # several flows
    assert load_recorded(REFERENCE / "fresh").runs["t000"].known("mean_rtt_ms")[0] == pytest.approx(23.459)


def test_results_written_are_read_back(tmp_path):
    some = {"x": SideRuns((TrialNumbers(1.5, 3.0, 20.0, math.nan, {"retransmits": 3.0, "limited_by_cwnd": 0.5}, seed=4),))}
    write_results({"a": {"x": runs(9)}, "b": some}, tmp_path / "results.csv")
    assert read_results(tmp_path / "results.csv")["x"].trials == some["x"].trials or math.isnan(some["x"].trials[0].min_rtt_ms)
    got = read_results(tmp_path / "results.csv")["x"].trials[0]
    assert (got.goodput, got.retransmits, got.mean_rtt_ms, got.seed) == (1.5, 3.0, 20.0, 4)
    assert dict(got.counters) == {"retransmits": 3.0, "limited_by_cwnd": 0.5}


# The command

MOCKS = ("validate", "--engine", "mock", "--engine", "mock:6.12")


def rows(file):
    with open(file, newline="") as f:
        return list(csv.DictReader(f))


def test_a_validation_leaves_report_numbers_runs_and_summary(cli, tmp_path):
    out = tmp_path / "o"
    got = cli(*MOCKS, "--random", "12", "--seed", "3", "--out", out, "--worst", "1")
    assert (got.status, got.err) == (0, "")
    lines = got.out.splitlines()
    assert lines[0] == "mock (A) against mock:6.12 (B): 12 conditions drawn at random (seed 3)"
    assert lines[1].startswith("→ mock and mock:6.12 are ")
    assert len(lines) <= 40
    assert lines[-1] == f"Next: open {out / 'report.md'}"
    assert "caveat: mock: mock engine" in got.out
    expected = {"report.md", "conditions.csv", "conditions.yaml", "results.csv", "summary.json", "divergence.png", FILE}
    assert {f.name for f in out.iterdir()} >= expected
    assert len(rows(out / "conditions.csv")) == 12
    assert len(rows(out / "results.csv")) == 12 * 2 * 3
    said = json.loads((out / "summary.json").read_text())
    assert (said["all"]["n"], said["engines"]) == (12, ["mock", "mock:6.12"])
    assert said["families"].keys() == set(conditions.FAMILIES)
    assert "## By family and congestion control" in (out / "report.md").read_text()


@pytest.mark.parametrize("width", [60, 80, 100, 150])
def test_the_screens_fit(width):
    side = SimpleNamespace(label="virtual 6.1 (6.1.192)")
    of = (10.0, 10.5, 11.0)
    pairs = [comparison(of, [f * x for x in of], id=f"r{i:03}", cca="cubic:hystart=off") for i, f in enumerate((1, 1.02, 1.5))]
    result = validation.ValidationResult(side, side, tuple(pairs), (("r009", "no such queue"),))
    done = validation.Validation(SimpleNamespace(source="3 conditions"), result, compare.judge(compare.read_bounds("median<=0.04"), pairs))
    screen = answer.validation_screen(done)
    text = screen.text(width, verbose=True)
    assert max(map(len, text.splitlines())) <= width
    assert [line for line in text.splitlines() if line.startswith("cubic:hystart=0 ")]
    # the ratios are 1, 1.02 and 1.5: the median is 2 % apart; 90 % of the way between 1.02 and 1.5 in ln, e^0.328, is a factor 1.39
    assert "are 2.0 % (a factor 1.39) apart in goodput at the median (90th percentile) condition" in screen.answer
    assert "Worst: r002 " in screen.remarks[0]


def test_what_is_there_is_not_run_again(cli, tmp_path, monkeypatch):
    from tcpscape.engines.mock import Mock

    ran, real = [], Mock.run
    monkeypatch.setattr(Mock, "run", lambda self, scenario, seeds, **rest: ran.extend(seeds) or real(self, scenario, seeds, **rest))
    args = (*MOCKS, "--random", "6", "--out", tmp_path / "o", "--worst", "0")
    first = cli(*args)
    assert sorted(ran) == sorted([0, 1, 2] * 12)
    ran.clear()
    assert cli(*args).out == first.out
    assert ran == []
    cli(*args, "--seeds", "5/3")
    assert sorted(ran) == sorted([3, 4] * 6)


def test_a_missed_bound_is_status_1_and_pairs_have_ranks(cli, tmp_path):
    args = (*MOCKS, "--random", "6", "--out", tmp_path / "o", "--worst", "0")
    assert cli(*args, "--check", "median<=10,overlap>=0").status == 0
    got = cli(*args, "--check", "median<=0")
    assert got.status == 1
    assert " 1 of 1 bounds missed." in got.out
    got = cli(*MOCKS, "--random", "2", "--paired", "--cca", "cubic,bbr", "--out", tmp_path / "o", "--worst", "0")
    assert got.status == 0
    assert "2 paths" in got.out
    assert "pairs of congestion controls decided alike" in got.out


def test_a_validation_is_recorded_results_for_the_next(cli, tmp_path):
    cli(*MOCKS, "--random", "6", "--out", tmp_path / "first", "--worst", "0")
    got = cli("validate", "--engine", "mock:6.12", "--against", tmp_path / "first", "--out", tmp_path / "second")
    assert got.out.startswith("mock:6.12 (A) against recorded (B): 6 conditions, first, recorded")
    assert all(float(r["error"]) < 1e-6 for r in rows(tmp_path / "second" / "conditions.csv"))


def test_bad_files_are_refused(tmp_path):
    for name, text in (
        ("a.csv", "id,cca\nx,cubic\n"),
        ("b.csv", "id,cca,rtt_ms\nx,cubic,fast\n"),
        ("c.csv", "id,cca,rtt_ms\nx,cubic,5\nx,bbr,5\n"),
        ("d.csv", "id,cca,rtt_ms\n../x,cubic,5\n"),
        ("e.yaml", "- 5\n"),
        ("f.yaml", "[]\n"),
        ("g.yaml", "- {id: x, nosuch: 1}\n"),
        ("h.csv", ""),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(TcpscapeError, match="; "):
            conditions.read(tmp_path / name)


def test_two_kernels_of_the_model_part_in_the_receive_window(cli, tmp_path, need_model):
    (tmp_path / "c.yaml").write_text(
        "- {id: open, duration: 3s, forward: netem delay 5ms, reverse: netem delay 5ms, flows: [{rcvbuf: 64KiB}]}\n"
        "- {id: lossy, duration: 3s, forward: netem delay 5ms loss 0.2%, reverse: netem delay 5ms, flows: [{rcvbuf: 128KiB}]}\n"
    )
    out = tmp_path / "o"
    args = ("validate", "--engine", "model", "--engine", "model:6.12", "--out", out, "--jobs", "1")
    got = cli(*args, "--conditions", tmp_path / "c.yaml", "--worst", "1")
    assert (got.status, got.err) == (0, "")
    assert (out / "overlay-open.png").exists()
    said = json.loads((out / "summary.json").read_text())
    first = [p["quantity"] for p in said["partings"]["open"]["found"]]
    assert first.index("rwnd") < first.index("cwnd")
    assert "![open](overlay-open.png)" in (out / "report.md").read_text()
    again = cli("validate", "--explain", "lossy", "--out", out)
    assert (again.status, again.err) == (0, "")
    assert "fast_recoveries" in again.out
    assert "limited_by_cwnd" in again.out
    assert (out / "explain-lossy.md").exists()


def test_the_model_against_a_recorded_set(tmp_path, need_model):
    options = validation.ValidationOptions(tmp_path, engine=("model",), against=str(REFERENCE / "random"), cca=("bbr",), seeds="2")
    ready = validation.prepare(options)
    few = [c for c in ready.plan.conditions if c.family == "bottleneck"]
    got = validation.run(validation.ValidationPlan(few, ready.plan.a, ready.plan.b, (2, 1)))
    assert len(got.divergences) == len(few) >= 3
    assert DivergenceSummary.of(got.divergences).p90 < 0.05


# Shared bottlenecks


def shared_comparison(a, b, queue="tbf rate 10mbit burst 6056 limit 64000"):
    one = condition("s", bottleneck=queue, flows=[{"cca": "cubic"}, {"cca": "bbr", "count": 2}])
    sides = [SideRuns(tuple(TrialNumbers(sum(p), 0, parts=p, seed=i) for i, p in enumerate(some))) for some in (a, b)]
    return Divergence(one, *sides)


def test_groups_that_share_a_bottleneck_are_summed_and_compared_one_by_one():
    c = shared_comparison([(4, 6), (4, 6)], [(5, 5.5), (5, 5.9)])
    assert c.parts == pytest.approx((math.log(4 / 5), math.log(6 / 5.7)))
    assert c.larger is True
    assert shared_comparison([(6, 4)] * 2, [(4, 6), (5, 5.1)]).larger is False
    assert shared_comparison([(6, 4)] * 2, [(4, 6), (6, 5)]).larger is None
    s = DivergenceSummary.of([c, shared_comparison([(6, 4)] * 2, [(4, 6)] * 2)])
    assert (s.group_n, s.larger_n, s.larger_share) == (4, 2, 0.5)
    assert comparison([1, 1], [1, 1]).parts == ()
    assert comparison([1, 1], [1, 1]).larger is None
    flows = tuple(FlowResult(cca, g, 1, 0, 0, Rtt(), Cwnd(), {}) for cca, g in (("cubic", 1.0), ("bbr", 2.0), ("bbr", 4.0)))
    trial = Trial("s", "bbr+cubic", "", 0, "x", "1", 1.0, flows)
    assert (TrialNumbers.of(trial, (1, 2)).parts, TrialNumbers.of(trial).parts) == ((1.0, 6.0), ())


@pytest.mark.parametrize(
    ("path", "queue"),
    [
        ({}, "none"),
        ({"bottleneck": {"rate": "10mbit"}}, "bfifo"),
        ({"forward": "htb rate 1mbit"}, "pfifo"),
        ({"bottleneck": "tbf rate 1mbit burst 6056 limit 9000; codel limit 12 ecn"}, "codel ecn"),
        ({"bottleneck": "tbf rate 1mbit burst 6056 limit 9000; fq_codel limit 12 noecn"}, "fq_codel"),
        ({"bottleneck": "htb r 1mbit; fq_codel"}, "fq_codel ecn"),
        ({"bottleneck": "tbf r 1mbit bu 6056 li 9000"}, "bfifo"),
        ({"bottleneck": "cake bandwidth 1mbit"}, "cake"),
        ({"forward": "netem delay 5ms rate 10mbit limit 50"}, "netem"),
    ],
)
def test_the_queue_is_read_from_the_path(path, queue):
    assert condition(**path).queue == queue


def test_the_shared_reference_set_is_read_and_its_words_follow_the_rules_of_the_draw():
    rows = list(csv.DictReader((REFERENCE / "shared_conditions.csv").open()))
    for r in rows:
        assert draw.shared_bottleneck(r["queue"], float(r["rate_mbit"]), int(r["buffer_bytes"]), ecn=r["ecn"] == "1") == r["bottleneck"]
    record = load_recorded(REFERENCE / "shared")
    first = record.conditions[0]
    assert len(record.conditions) == len(rows) == 60
    assert (first.cca, first.queue, first.shared) == ("htcp+scalable", "bfifo", True)
    assert first.describe() == "htcp×2 and scalable×2, 119.5 ms, 4.33 Mbit/s, 1.32 BDP, bfifo"
    assert record.runs["s000"].trials[0].parts == (0.97209, 3.1799)
    assert record.runs["s000"].goodput[0] == pytest.approx(0.97209 + 3.1799)
    late = next(c for c in record.conditions if c.id == "s003")
    assert (late.scenario.ecn, late.scenario.flows[1].start, late.queue) == (True, 5 * 10**9, "pie ecn")
    assert {f.listener for c in record.conditions for f in c.scenario.flows} == {None, "cubic"}


def test_a_draw_of_shared_bottlenecks_is_even_over_queues_and_grows_at_its_end():
    long, short = draw.SharedDraw(140, 2).rows(), draw.SharedDraw(20, 2).rows()
    assert long[:20] == short
    assert draw.SharedDraw(20, 3).rows() != short
    found = [conditions.of_row(r) for r in long]
    kinds = {(r["queue"], r["ecn"]) for r in long}
    assert kinds == {(q, e) for q in draw.QUEUES for e in "01" if q not in draw.FIFOS or e == "0"}
    assert {sum(r["queue"] == q for r in long) for q in draw.QUEUES} == {20}
    assert {c for r in long for c in (r["first"],)} == set(draw.SHARED_CCAS)
    assert all(c.queue.split()[0] == r["queue"] and c.scenario.ecn == (r["ecn"] == "1") for c, r in zip(found, long, strict=True))
    assert {len(c.scenario.flows) for c in found} == {2}


def test_shared_conditions_are_validated_and_recorded(cli, tmp_path):
    args = ("--seed", "1", "--cca", "cubic,bbr", "--seeds", "3", "--worst", "0")
    flags = ("validate", "--engine", "mock", "--engine", "mock:6.12", "--shared", "14", *args)
    got = cli(*flags, "--out", tmp_path / "a", "--check", "group_median<=2,larger_share>=0,median<=2")
    assert got.status == 0, got.err
    assert "larger share alike" in got.out
    assert "Shared bottlenecks" in (tmp_path / "a" / "report.md").read_text()
    again = cli("validate", "--engine", "mock:6.12", "--against", tmp_path / "a", "--out", tmp_path / "b", "--seeds", "3", "--worst", "0")
    assert again.status == 0, again.err
    assert "larger share alike" in again.out


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        (["model", "live"], ["model:host", "live"]),
        (["live:emulator", "mock"], ["live:emulator", "mock:host"]),
        (["model:6.12", "live"], ["model:6.12", "live"]),
        (["model", "virtual"], ["model", "virtual"]),
    ],
)
def test_beside_this_machines_kernel_the_model_simulates_that_kernel(specs, expected):
    assert sides.with_host_kernel(specs) == tuple(expected)
