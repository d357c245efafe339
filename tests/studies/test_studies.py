"""The published studies: their data, their claims, and what the model makes of them."""

import csv
import math
from dataclasses import replace
from importlib import resources

import pytest

from conftest import with_another_mock
from tcpscape import engines, plots, stats
from tcpscape.campaign import record
from tcpscape.campaign.adaptive import widened
from tcpscape.campaign.execute import Execution
from tcpscape.campaign.outcome import Cell, Outcome, gather
from tcpscape.engines.mock import Mock
from tcpscape.errors import EngineError, StudyError, TcpscapeError
from tcpscape.store.results import Store
from tcpscape.studies import known, spikes
from tcpscape.studies import run as runs
from tcpscape.studies import study as studies
from tcpscape.studies.measures import flows
from tcpscape.studies.result import Result
from tcpscape.trial import FlowResult, Rtt, Trial

LONG = {"latency-spike", "one-percent-loss", "spike-rtts", "ack-congestion", "starlink", "jitter-cliff"}
"""Studies whose quick look takes more than five CPU seconds; parts of them run in test_studies_works.py."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in studies.names()])
def test_a_study_runs_and_is_drawn(name, need_model, tmp_path):
    study = studies.get(name)
    result = runs.run(study.changed({**study.quick, "seeds": 1}))
    judged = runs.judge(result).claims
    assert len(judged) == len(result.study.claims)
    assert all(j.measured for j in judged)
    files = plots.save_study(result, tmp_path / name)
    assert [f.suffix for f in files] == [".png", ".svg"]
    assert all(f.stat().st_size > 10_000 for f in files)
    assert result.frame().height >= sum(len(o.cells) for o in result.parts.values())


@pytest.mark.parametrize("name", studies.names())
def test_every_published_number_belongs_to_a_cell(name):
    study = studies.get(name)
    cells = [(p.name, c) for p in study.parts for cases in [p.cases()] for c in gather(p, cases, [[]] * len(cases), {}).cells]
    stray = [k for k in known.table(study) if not any(k.is_of(part, cell) for part, cell in cells)]
    assert not stray, stray[:3]


@pytest.mark.parametrize("file", sorted({f for name in studies.names() for f in studies.get(name).published}))
def test_rows_of_published_tables_have_the_columns_of_their_header(file):
    text = (resources.files("tcpscape.studies") / "data" / file).read_text("utf-8")
    table = list(csv.reader(line for line in text.splitlines() if not line.startswith("#")))
    assert {len(row) for row in table} == {len(table[0])}
    assert len(known.rows(text, file)) == len(table) - 1


@pytest.mark.parametrize("row", ["1,a, b", "1"])
def test_a_shifted_row_is_refused(row):
    with pytest.raises(TcpscapeError, match=r"x.csv: .* are not as many values as columns; quote values that hold a comma"):
        known.rows(f"# about\nvalue,source\n{row}\n", "x.csv")


def test_profiles_are_named_paths():
    case = next(c for c in studies.get("starlink").parts[0].cases() if c.cca == "bbr" and c.at["profile"] == "handover")
    scenario = case.scenario
    assert [(n.at, n.delay, n.jitter, n.loss, n.limit) for n in (*scenario.forward, *scenario.reverse)] == [
        ("router", 30 * 10**6, 40 * 10**6, 0.01, 1000)
    ] * 2
    assert (scenario.duration, scenario.flows[0].rcvbuf, scenario.kernel.rmem_max) == (15 * 10**9, 2**18, 2**22)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"claims": [{"text": "x", "work": "moon", "measure": "mean"}]}, "work: 'moon' is unknown; choose jitter-cliff"),
        (
            {"claims": [{"text": "x", "work": "jitter-cliff", "measure": "mean", "part": "orbit"}]},
            "claims: 'x' asks for part 'orbit'; choose profiles",
        ),
        ({"parts": [{"name": "a", "pool": ["moon"]}]}, "pool: 'moon' is no axis"),
    ],
)
def test_a_study_that_makes_no_sense_is_refused(fields, error):
    with pytest.raises(TcpscapeError, match=error):
        studies.of({**studies.read("starlink"), "pool": [], **fields}, "starlink")


def test_a_claim_about_no_cell_is_refused():
    said = studies.of(
        {**studies.read("starlink"), "claims": [{"text": "x", "work": "jitter-cliff", "measure": "mean", "at": {"profile": "orbit"}}]}, "s"
    )
    result = runs.run(said.changed({"engines": ["mock"], "seeds": 1}))
    with pytest.raises(TcpscapeError, match=r"asks for any at .'profile': 'orbit'."):
        runs.judge(result)


def test_a_study_is_read_back(tmp_path):
    study = studies.get("starlink").only(["profiles"]).changed({"engines": ["mock"], "seeds": 2})
    result = runs.run(study, Execution(store=Store(tmp_path)))
    record.save(record.Record("study", "starlink", "tcpscape study run starlink", result.parts, study.model_dump(mode="json")), tmp_path)
    got = record.load(tmp_path)
    assert got.parts == result.parts
    again = Result(studies.of(got.study, "manifest"), got.parts)
    assert [(j.verdict, j.measured) for j in runs.judge(again).claims] == [(j.verdict, j.measured) for j in runs.judge(result).claims]


def test_a_study_against_another_engine(tmp_path):
    means = Execution(store=Store(tmp_path), make=with_another_mock)
    study = studies.get("baseline").changed({"seeds": 10})
    for _ in range(2):  # the second time from the store, where nothing is mixed
        contrast = runs.contrast(study, "mock", "other", means)
        for pair in contrast.pairs():
            assert pair.ours.cca != "cubic" or (pair.differs and pair.ratio.value == pytest.approx(2))
            assert pair.ours.cca == "cubic" or (pair.same and pair.ratio.value == 1 and not pair.differs)
    assert contrast.expected_by_chance() == pytest.approx(0.05 * 24)
    frame = contrast.frame()
    assert frame["differs"].sum() == frame["same"].sum() == 12
    assert (set(frame["engine"]), set(frame["against"])) == ({"mock mock-1"}, {"other mock-2"})


def test_what_the_other_engine_cannot_run_is_refused_first():
    class Fussy(Mock):
        version = "mock-2"

        def check(self, scenario):
            raise EngineError("engine: no")

        def run(self, *words, **more):
            raise AssertionError

    means = Execution(make=lambda name: Fussy() if name == "fussy" else engines.make(name), progress=lambda *_: pytest.fail("began"))
    with pytest.raises(EngineError, match="no"):
        runs.contrast(studies.get("starlink"), "mock", "fussy", means)


def test_the_comparison_is_printed(cli, need_model, tmp_path):
    got = cli("study", "run", "baseline", "--quick", "--engine", "mock", "--against", "model", "--out", tmp_path)
    assert got.status == 0, got.err
    lines = got.out.splitlines()
    assert lines[1].startswith("→ mock and model differ in ")
    assert "of 24 cells; 1.2 would by chance alone" in got.out
    assert any(line.startswith("cubic  100ms") and line.endswith("*") for line in lines)
    assert (tmp_path / "baseline" / "baseline-against.csv").read_text("utf-8").count("\n") == 25


def test_controls_that_an_engine_lacks_are_left_out_where_others_remain():
    class Few(engines.REGISTRY["mock"]):
        def ccas(self):
            return ["cubic", "bbr"]

        def check(self, scenario):
            if missing := [flow.cca for flow in scenario.flows if flow.cca not in self.ccas()]:
                raise EngineError(f"cca: no {missing[0]}")

    whole = studies.get("latency-spike")
    study, left_out = runs.runnable(whole, [Few()])
    ccas = {case.cca for part in study.parts for case in part.cases()}
    assert ccas == {"cubic", "bbr"}
    assert "part step is run without dctcp, which the engine lacks: its other claims are of fewer cells" in left_out
    assert any(line.startswith("part ideal is left out: ") for line in left_out)
    assert {"step", "load"} <= {part.name for part in study.parts}
    assert not [c for c in study.claims if c.cca == "dctcp"]
    assert [(case.cca, case.scenario.ecn) for case in study.parts[0].cases()][:2] == [("cubic", True), ("bbr", False)]


# Measures on made-up runs: what cannot be known is not told as a number, and runs are pairs only under the same seeds.


CLAIM = {"text": "x", "work": "tcpscape"}


def trial(seed, mbps, queues=()):
    flow = FlowResult("cubic", mbps, 10.0, 7, None, Rtt(), None, {})
    return Trial("t", "cubic", "a", seed, "model", "1", 10.0, (flow,), queues=tuple(queues))


def cell(cca, values, first=0, **fields):
    return Cell({}, cca, "model", (None,), (tuple(trial(first + i, v) for i, v in enumerate(values)),), **fields)


def judged(cells, **claim):
    said = {"name": "s", "title": "t", "source": "s", "about": "", "conditions": {"rtt": "50ms"}, "claims": [{**CLAIM, **claim}]}
    study = studies.of(said, "s")
    return runs.judge(Result(study, {"s": Outcome(study.parts[0], tuple(cells))})).claims[0]


def test_who_carries_nothing_is_the_last():
    cells = [cell("cubic", [5, 6, 5, 6, 5]), cell("dead", [0.0] * 5), cell("bbr", [9, 9, 8, 9, 9])]
    assert judged(cells, measure="rank", cca="dead", low=3, high=3).verdict == "reproduced"
    assert judged(cells, measure="rank", cca="bbr", low=1, high=1).measured == "1.00 [1.00, 1.00] (asked: 1.00–1.00)"


def test_less_is_better_where_the_metric_says_so():
    def with_rtts(cca, values):
        trials = [
            replace(t, flows=tuple(replace(f, rtt_ms=Rtt(mean=v)) for f in t.flows)) for t, v in zip(cell(cca, values).trials, values, strict=True)
        ]
        return Cell({}, cca, "model", (None,), (tuple(trials),))

    cells = [with_rtts("cubic", [50.0, 60.0, 50.0, 60.0, 50.0]), with_rtts("bbr", [22.0, 21.0, 22.0, 21.0, 22.0])]
    assert judged(cells, measure="rank", metric="rtt", cca="bbr", low=1, high=1).measured == "1.00 [1.00, 1.00] (asked: 1.00–1.00)"
    assert judged(cells, measure="rank", metric="rtt", cca="cubic", low=2, high=2).verdict == "reproduced"
    assert judged(cells, measure="near_best", metric="rtt", cca="cubic", low=2, high=3).measured.startswith("2.50 [")


def test_a_rank_among_what_is_not_known_is_open():
    cells = [cell("cubic", [5, 6, 5, 6, 5]), cell("bbr", [9, math.nan, 8, 9, 9])]
    assert judged(cells, measure="rank", cca="cubic", low=1, high=1).verdict == "not decidable"


def test_a_single_run_among_what_is_not_known_is_open():
    values = [float(v) for v in range(20)]
    assert judged([cell("cubic", values)], measure="one_run", cca="cubic", value="30").verdict == "not reproduced"
    assert judged([cell("cubic", [*values, math.nan])], measure="one_run", cca="cubic", value="30").verdict == "not decidable"


def test_runs_are_pairs_under_the_same_seeds_only():
    values = [5.0, 9.0, 4.0, 8.0, 6.0]
    one, twice, later = cell("a", values), cell("b", [2 * v for v in values]), cell("b", [2 * v for v in values], first=5)
    assert twice.paired(one)
    assert twice.over(one).low == pytest.approx(2)
    assert not later.paired(one)
    assert later.over(one).low < 1.5
    assert cell("b", [1.0] * 7).over(one).n == 5


def test_a_ratio_of_cells_that_were_looked_at_often_is_wider():
    above, below = [5.0, 9.0, 4.0, 8.0, 6.0], [4.0, 4.0, 5.0, 3.0, 4.0]
    got = cell("a", above, until_precise=True).over(cell("b", below, until_precise=True))
    assert got == widened(stats.ratio(above, below))
    assert got.high > stats.ratio(above, below).high


def test_what_a_kernels_queues_lost_is_not_known():
    model = [trial(i, 5.0, [{"direction": "forward", "drops": {"loss": 3, "overflow": 1}}]) for i in range(5)]
    kernel = [trial(i, 5.0, [{"where": "forward", "kind": "netem", "dropped": 4}]) for i in range(5)]
    share = [flows.needless(None, None, Cell({}, "cubic", "e", (None,), (tuple(some),))) for some in (model, kernel)]
    assert share[0].value == pytest.approx(3 / 7)
    assert math.isnan(share[1].value)


def test_who_starves_is_not_known_without_samples():
    assert math.isnan(flows.starved(None, None, cell("cubic", [5.0] * 5)).value)


def test_a_table_without_numbers_is_no_claim():
    with pytest.raises(StudyError, match="has no valid published number of goodput; correct the study"):
        judged([cell("cubic", [5.0] * 5)], measure="table", cca="cubic")


def test_a_link_that_is_not_used_has_no_bound_to_be_measured_by():
    assert math.isnan(spikes._over(lambda *_: 3.0, lambda *_: 0.0)(None, None))
    assert spikes._over(lambda *_: 3.0, lambda *_: 2.0)(None, None) == 1.5
