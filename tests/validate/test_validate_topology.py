"""Validation on random topologies: the draw, what is compared of groups, pings and winners, its screens, its files, the command."""

import json
import math
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from conftest import ROOT
from tcpscape.engines import REGISTRY, plan
from tcpscape.engines.model import core, parameters
from tcpscape.errors import TcpscapeError
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Cwnd, FlowResult, ProbeResult, Rtt, Trial
from tcpscape.validate import compare, conditions, topologies, validation
from tcpscape.validate.agreement import Agreement, probe_medians, right_winner
from tcpscape.validate.compare import Divergence, DivergenceSummary, worst
from tcpscape.validate.conditions import NamedScenario
from tcpscape.validate.sides import SideRuns, TrialNumbers, read_results, write_results
from tcpscape.validate.topologies import TopologyDraw
from tcpscape.words import topologies as topology_tables
from tcpscape.words import validation as answer

TWO_LINKS = [{"name": "a", "delay": "2ms", "rate": "20mbit"}, {"name": "b", "delay": "1ms", "rate": "10mbit", "queue": "fq_codel"}]


def topology(id="n", **fields):
    flows = [{"cca": "cubic", "count": 2, "rtt": "40ms"}, {"cca": "bbr", "direction": "up", "leave": "r1"}]
    return NamedScenario(id, Scenario.of({"links": TWO_LINKS, "flows": flows, "probes": ["ping"], **fields}))


def runs(*trials, delays=()):
    """Runs with these goodputs of each group, and these percentiles of probes' delays."""
    delays = delays or [()] * len(trials)
    return SideRuns(
        tuple(TrialNumbers(sum(parts), 0, parts=parts, seed=i, delays_ms=d) for i, (parts, d) in enumerate(zip(trials, delays, strict=True)))
    )


# The draw


def test_a_draw_is_repeatable_distinct_and_grows_at_its_end():
    long, short = TopologyDraw(78, 4).conditions(), TopologyDraw(20, 4).conditions()
    assert [c.scenario for c in long[:20]] == [c.scenario for c in short]
    assert len({c.scenario.address() for c in long}) == len({c.id for c in long}) == 78
    other = TopologyDraw(78, 5).conditions()
    assert not {c.scenario.address() for c in long} & {c.scenario.address() for c in other}
    for bad in (0, -1, topologies.MOST + 1):
        with pytest.raises(TcpscapeError, match="topology: "):
            TopologyDraw(bad).conditions()


def test_what_is_drawn_keeps_to_its_ranges():
    drawn = TopologyDraw(156, 1).conditions()
    groups = [f for c in drawn for f in c.scenario.flows]
    assert {len(c.scenario.chain) for c in drawn} == {1, 2, 3}
    assert all(2 <= len(c.scenario.flows) <= 4 for c in drawn)
    assert {f.cca for f in groups} == set(topologies.CCAS)
    assert {f.direction for f in groups} == {"down", "up"}
    for c in drawn:
        scenario = c.scenario
        assert [p.kind for p in scenario.probes] == ["icmp_echo"]
        assert 10e9 <= scenario.duration <= 20e9
        assert scenario.span(scenario.flows[0]) == (0, len(scenario.chain))
        assert all(5e6 <= scenario.rtt_of(f) <= 200e6 for f in scenario.flows)
        assert all(f.start < (f.stop or scenario.duration) for f in scenario.flows)
    turns = [c for i, c in enumerate(drawn) if i % 2 == 0]
    assert all({f.direction for f in c.scenario.flows} == {"down", "up"} and c.scenario.ecn for c in turns)
    assert any(f.access for f in groups)
    assert any(f.stop for f in groups)
    assert any(f.start > 2e9 for f in groups)
    shapes = Counter(c.describe().partition(":")[0].removesuffix(" ecn") for c in drawn)
    assert shapes == dict.fromkeys(topologies.SHAPES, 52)


def test_every_queue_comes_about_equally_often_and_on_each_shape():
    drawn = TopologyDraw(156, 2).conditions()
    kinds = Counter((c.describe().split()[0], q.split()[0]) for c in drawn for q in c.queue.split("+"))
    for shape in ("dumbbell", "parking", "cross"):
        with_shape = {queue: n for (name, queue), n in kinds.items() if name.startswith(shape)}
        assert set(with_shape) == set(topologies.QUEUES)
        assert max(n for queue, n in with_shape.items() if queue != "bfifo") <= 3 * min(with_shape.values())


def test_congestion_controls_can_be_chosen():
    assert {f.cca for c in TopologyDraw(12, ccas=("vegas", "lp")).conditions() for f in c.scenario.flows} == {"vegas", "lp"}


def test_every_topology_becomes_a_plan_with_its_places(need_model):
    lib = core()
    for c in TopologyDraw(39, 3).conditions():
        fields = plan.build(c.scenario, parameters(lib))
        assert len(fields.get("links", ())) == len(c.scenario.chain) - 1
        assert (len(fields["flows"]), len(fields["probes"])) == (c.scenario.flow_count, 1)


def test_topologies_written_are_read_back_the_same(tmp_path):
    drawn = TopologyDraw(9, 6).conditions()
    conditions.write(drawn, tmp_path / "c.yaml")
    again = conditions.read(tmp_path / "c.yaml")
    assert [(c.id, c.scenario.address(), c.describe(), c.queue, c.family) for c in again] == [
        (c.id, c.scenario.address(), c.describe(), c.queue, c.family) for c in drawn
    ]


def test_queue_family_and_links_of_a_topology_are_read_from_its_chain():
    c = topology()
    assert (c.queue, c.links, c.family, c.is_topology) == ("bfifo+fq_codel ecn", "2 links", "bottleneck", True)
    assert topology(flows=[{}, {"access": {"delay": "5ms", "loss": "1%"}}]).family == "bottleneck and impairments"
    assert set(c.disciplines) == {"netem", "tbf", "bfifo", "fq_codel"} - ({"bfifo"} if "bfifo" not in c.disciplines else set())


# The comparison


def test_groups_and_delays_are_compared_one_by_one():
    a = runs((4, 6), (4, 6), delays=[(20, 50), (22, 60)])
    b = runs((5, 6), (5, 6), delays=[(20, 50), (20, 50)])
    found = Agreement.of(a, b, 2)
    assert found.groups == pytest.approx((math.log(4 / 5), 0))
    assert found.latencies == pytest.approx((0.05, 0.1))
    assert Agreement.of(a, b, 1).groups == ()


def test_a_side_by_itself_is_its_first_half_against_its_last():
    b = runs((4, 6), (4, 6), (9, 9), (5, 6), (5, 6), delays=[(10, 10)] * 2 + [(99, 99)] + [(20, 40)] * 2)
    found = Agreement.itself(b, 2)
    assert found.groups == pytest.approx((math.log(4 / 5), 0))
    assert found.latencies == pytest.approx((-0.5, -0.75))
    assert Agreement.itself(runs((1, 2)), 2) == Agreement((), ())


def test_delays_that_one_side_did_not_measure_are_as_far_apart_as_can_be():
    nan = math.nan
    known, unknown = runs((1, 1), delays=[(20, 50)]), runs((1, 1), delays=[(nan, nan)])
    assert Agreement.of(unknown, known, 2).latencies == (-1.0, -1.0)
    assert Agreement.of(known, unknown, 2).latencies == (1.0, 1.0)
    assert all(map(math.isnan, Agreement.of(unknown, unknown, 2).latencies))
    assert probe_medians(runs((1, 1), (1, 1), (1, 1), delays=[(nan, 1), (2, 1), (4, nan)])) == [3, 1]
    assert math.isnan(probe_medians(runs((1, 1), (1, 1), (1, 1), delays=[(nan, 1), (nan, 1), (4, 1)]))[0])
    assert Agreement.of(runs((1, 1)), known, 2).latencies == ()


def test_the_winner_is_who_gets_most_per_flow_where_the_kernel_is_decided():
    b = runs((10, 6), (11, 7))
    assert right_winner(runs((8, 7), (9, 7)), b, (2, 1)) is True  # 4 and 4.5 a flow against 7, as 5 and 5.5 against 6 and 7
    assert right_winner(runs((20, 7), (20, 7)), b, (2, 1)) is False
    assert right_winner(runs((20, 7)), runs((10, 6), (13, 6)), (2, 1)) is None
    assert right_winner(runs((20, 7)), runs((10, 6)), (2, 1)) is None
    assert right_winner(runs((20,)), runs((10,), (10,)), (2,)) is None


def test_the_summary_of_topologies():
    c = topology()
    some = [
        Divergence(c, runs((4, 6), (4, 6), delays=[(20, 50)] * 2), runs((4, 6), (4, 6), delays=[(20, 40)] * 2)),
        Divergence(c, runs((6, 2), (6, 2), delays=[(11, 10)] * 2), runs((3, 2), (3, 2), delays=[(10, 10)] * 2)),
    ]
    s = DivergenceSummary.of(some)
    assert (s.group_n, s.latency_n, s.winner_n) == (4, 4, 2)
    assert (s.group_median, s.latency_median) == pytest.approx((0, 0.05))
    assert s.latency_p90 == pytest.approx(0.1 + 0.7 * 0.15)  # between 0.1 and 0.25
    assert s.winner_share == 0.5  # 3 a flow against 2 where the kernel has 1.5 against 2
    assert (s.group_self_median, s.latency_self_p90) == (0, 0)
    assert worst(some, 1) == [some[1]]
    judged = compare.judge(compare.read_bounds("group_median<=0.03,latency_p90<=0.15,winner_share>=0.95"), some)
    assert [(x.bound.metric.name, x.met) for x in judged] == [("group_median", True), ("latency_p90", False), ("winner_share", False)]


def test_a_ping_that_is_far_apart_makes_a_topology_the_worst():
    same = runs((4, 6), (4, 6), delays=[(20, 40)] * 2)
    far = Divergence(topology("far"), runs((4, 6), (4, 6), delays=[(20, 80)] * 2), same)
    near = Divergence(topology("near"), runs((5, 6), (5, 6), delays=[(20, 40)] * 2), same)
    assert [c.condition.id for c in worst([near, far], 2)] == ["far", "near"]


def test_results_written_are_read_back(tmp_path):
    some = {"n": runs((1.5, 2), (2, 3), delays=[(20.5, math.nan), (21, 30)])}
    write_results({"a": some, "b": some}, tmp_path / "results.csv")
    got = read_results(tmp_path / "results.csv")["n"]
    assert [t.parts for t in got.trials] == [(1.5, 2), (2, 3)]
    assert (got.trials[1].delays_ms, got.trials[0].delays_ms[0]) == ((21, 30), 20.5)
    assert math.isnan(got.trials[0].delays_ms[1])


def test_the_delays_of_a_trial_are_its_probes_percentiles():
    flow = FlowResult("cubic", 1.0, 1.0, 0, 0, Rtt(), Cwnd(), {})
    probes = (ProbeResult("ping", "icmp_echo", "down", 5, 5, Rtt(p50=20, p95=30)), ProbeResult("voice", "udp", "up", 5, 0, Rtt()))
    said = TrialNumbers.of(Trial("s", "cubic", "", 0, "x", "1", 1.0, (flow,), probes), (1,)).delays_ms
    assert said[:2] == (20, 30)
    assert all(map(math.isnan, said[2:]))


# Screens and files


def finished(pairs):
    a, b = SimpleNamespace(label="model", version="1"), SimpleNamespace(label="virtual 6.1", version="6.1")
    result = validation.ValidationResult(a, b, tuple(pairs), ())
    session = SimpleNamespace(source="2 topologies drawn at random (seed 1)", engines=("model", "virtual"), against=None)
    return validation.Validation(session, result, compare.judge(compare.read_bounds("group_median<=0.03"), pairs))


def two():
    same = runs((4, 6), (4, 6), delays=[(20, 40)] * 2)
    drawn = TopologyDraw(40, 1).conditions()
    first, second = [c for c in drawn if len(c.scenario.flows) == 2][:2]
    return [Divergence(first, same, same), Divergence(second, runs((5, 6), (5, 6), delays=[(21, 44)] * 2), same)]


@pytest.mark.parametrize("width", [60, 80, 100, 150])
def test_the_screens_fit(width):
    screen = answer.validation_screen(finished(two()))
    assert max(map(len, screen.text(width, verbose=True).splitlines())) <= width
    assert screen.answer.startswith(
        "Groups of flows get goodputs that are 0.0 % (16.9 %) apart on model and virtual 6.1 at the median (90th percentile)"
    )
    assert "delays under load 2.5 % (8.5 %)" in screen.answer
    assert "the same group wins in" in screen.answer
    assert "ln ratios of the groups +0.22, +0.00; delays +5.0%, +10.0%" in screen.remarks[0]
    assert "the larger share" not in screen.text(width)


def test_the_page_and_its_figure(tmp_path):
    from tcpscape.report import validation as pages

    written = pages.write(finished(two()), tmp_path)
    text = written.file.read_text("utf-8")
    assert "## Topologies" in text
    assert "Shared bottlenecks" not in text
    assert (tmp_path / pages.TOPOLOGIES_PICTURE).stat().st_size > 10_000
    said = json.loads((tmp_path / "summary.json").read_text("utf-8"))
    assert set(said["links"]) <= {"1 link", "2 links", "3 links"}
    assert said["all"]["latency_n"] == 4
    lines = (tmp_path / "conditions.csv").read_text("utf-8").splitlines()
    assert lines[2].endswith("1.0500;1.1000")


def test_the_table_has_links_queues_directions_and_controls():
    rows = {row[0].strip("*"): row for row in topology_tables.table(two()).rows}
    assert rows["all"][1:5] == ("2", "4", "0.000", "0.156")
    assert any(name.startswith("with ") for name in rows)
    assert any(name in rows for name in ("groups down", "groups up"))
    assert topology_tables.table([]) is None


# The command


def test_every_topology_is_one_that_the_engine_runs(need_model):
    model = REGISTRY["model"]()
    for c in TopologyDraw(39, 7).conditions():
        model.check(c.scenario)


def test_topologies_are_validated_and_recorded(cli, tmp_path, need_model):
    args = ("validate", "--engine", "model", "--engine", "model:6.12", "--topology", "1", "--seeds", "2", "--worst", "0", "--out", tmp_path / "a")
    got = cli(*args, "--check", "group_median<=9,latency_p90<=9")
    assert (got.status, got.err) == (0, "")
    assert "Groups of flows get goodputs that are" in got.out
    assert "Every bound is met." in got.out
    again = cli("validate", "--engine", "model:6.12", "--against", tmp_path / "a", "--seeds", "2", "--worst", "0", "--out", tmp_path / "b")
    assert (again.status, again.err) == (0, "")
    assert "0.0 % (0.0 %) apart" in again.out
    assert cli(*args, "--check", "group_n<=0").status == 1


# Fidelity by congestion control and queue, as the benches write it.


@pytest.fixture
def kinds(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benches")
    import kinds

    yield kinds
    sys.modules.pop("kinds")


def compared(id, ratio, flows, bottleneck="tbf rate 10mbit burst 6056 limit 64000"):
    one = NamedScenario(id, Scenario.of({"forward": "netem delay 10ms", "bottleneck": bottleneck, "flows": [{"cca": cca} for cca in flows]}))
    sides = [SideRuns(tuple(TrialNumbers(g * len(flows), 0, parts=(g,) * len(flows), seed=i) for i in range(2))) for g in (ratio, 1.0)]
    return Divergence(one, *sides)


def test_alone_and_shared_are_told_apart(kinds, tmp_path):
    codel = "tbf rate 10mbit burst 6056 limit 64000; codel limit 40 ecn"
    some = [compared("a", 1.1, ["cubic"]), compared("b", 1.2, ["cubic", "bbr"], codel), compared("c", 1.0, ["bbr"], ())]
    kinds.write(some, "model-1", "2026-11-21", tmp_path / "f.json")
    said = json.loads((tmp_path / "f.json").read_text())
    assert said["controls"]["cubic"] == {"alone": {"n": 1, "median": 0.0953, "p90": 0.0953}, "shared": {"n": 1, "median": 0.1823, "p90": 0.1823}}
    assert said["controls"]["bbr"]["shared"]["n"] == 1
    assert {name: said["queues"][name]["total"]["n"] for name in ("netem", "tbf")} == {"netem": 3, "tbf": 2}
    assert {name: said["queues"][name] for name in ("bfifo", "codel")} == {
        "bfifo": {"total": {"n": 1, "median": 0.0953, "p90": 0.0953}},
        "codel": {"total": {"n": 1, "median": 0.1823, "p90": 0.1823}, "groups": {"n": 2, "median": 0.1823, "p90": 0.1823}},
    }
    text = kinds.page(some, ["bbr", "cubic", "fixed"])
    assert "| cubic | 1 | 0.095 | 0.095 | +0.095 |" in text
    assert "| codel ecn | 1 | 0.182 |" in text
    assert "fixed" not in text


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benches")
    import topology

    yield topology
    sys.modules.pop("topology")


def test_the_section_of_real_networks_takes_the_place_of_the_old_one(bench, tmp_path):
    page = tmp_path / "fidelity.md"
    page.write_text(f"# Fidelity\n\n{bench.kept_section(page)}\n\n## Further\n")
    bench.insert("## Real networks\n\nfirst\n", page)
    bench.insert("## Real networks\n\nsecond\n", page)
    text = page.read_text()
    assert text.count("## Real networks") == text.count(bench.BEGIN) == text.count(bench.END) == 1
    assert "first" not in text
    assert bench.kept_section(page) == text[text.index(bench.BEGIN) : text.index("\n\n## Further")]
