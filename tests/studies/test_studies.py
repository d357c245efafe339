"""The published studies: their data, their claims, and what the model makes of them."""

import csv
from importlib import resources

import pytest

from conftest import with_another_mock
from tcpscape import engines, plots
from tcpscape.campaign import record
from tcpscape.campaign.execute import Execution
from tcpscape.campaign.outcome import gather
from tcpscape.engines.mock import Mock
from tcpscape.errors import EngineError, TcpscapeError
from tcpscape.store.results import Store
from tcpscape.studies import known
from tcpscape.studies import run as runs
from tcpscape.studies import study as studies
from tcpscape.studies.result import Result

LONG = {"latency-spike", "one-percent-loss", "spike-rtts", "ack-congestion"}
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
    assert set(frame["engine"]) == {"mock mock-1"}
    assert set(frame["against"]) == {"other mock-2"}


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
