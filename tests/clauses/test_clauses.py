"""Clauses of RFC 9743: their cells, the judgement, planted flaws found in the right clause, and a kept dossier as a gate."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tcpscape import engines
from tcpscape.campaign import axes
from tcpscape.clauses import changes, clause, dossier, judging, measuring
from tcpscape.clauses.clause import GRIDS, Criterion, Sample
from tcpscape.clauses.judging import CellJudgement
from tcpscape.cli.main import call
from tcpscape.errors import StudyError, TcpscapeError
from tcpscape.scenario.scenario import Scenario
from tcpscape.words import dossier as words

TOYS = Path(__file__).parent / "toys.py"
SCENARIO = Scenario.of({"forward": "netem delay 10ms"})


@pytest.fixture
def evaluate(cli, tmp_path):
    """Evaluates a control on a few cells; returns its dossier."""

    def run(control, *options, cells=1, status=0):
        said = cli("evaluate", control, "--cells", str(cells), "--no-report", "--json", "--out", str(tmp_path / "out"), *options)
        assert said.status == status, said.err
        return json.loads(said.out)

    return run


def verdicts(document):
    return {c["name"]: c["verdict"] for c in document["clauses"]}


def test_every_clause_of_the_table_is_there_in_order():
    sections = [section for c in clause.every() for section in c.section.split(", ")]
    assert {"5.1.1", "5.1.2", "5.1.3", "5.1.4", "5.1.5", "5.2", "5.2.1", "5.2.2", "5.2.3"} <= set(sections)
    assert {"6.1", "6.2", "6.3", "6.4", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6"} <= set(sections)
    assert [c.order for c in clause.every()] == sorted(c.order for c in clause.every())
    assert all(c.criteria or c.missing for c in clause.every())


@pytest.mark.parametrize("one", clause.every(), ids=lambda one: one.name)
@pytest.mark.parametrize("grid", GRIDS.values(), ids=lambda grid: grid.name)
def test_every_clause_has_cells_that_the_model_can_run(need_model, one, grid):
    (measured,) = measuring.prepare([one], ["bbr", "reno"], replace(grid, most=2), engines.make("model"))
    assert not measured.refusal
    for criterion in one.criteria:
        first, *_ = judging._places(measured, criterion)
        for control in ("bbr", "reno"):
            assert all(place in cells.scenarios for _, cells, place in judging._measures(measured, criterion, first, control))
        known = {axis for axis, value in first.items() if not math.isnan(clause.number_of(value))}
        assert criterion.names() <= known | set(criterion.measures)


def test_a_sample_fills_its_range_and_is_the_same_each_time():
    sample = Sample.model_validate({"cells": 16, "rate": ["1mbit", "100mbit"], "rtt": ["10ms", "100ms"], "buffer": [0.5, 4], "pipe": 0})
    paths = sample.paths(replace(GRIDS["full"], cells=1))
    assert paths == sample.paths(replace(GRIDS["full"], cells=1))
    rates, rtts, buffers = (np.log([clause.number_of(text) for text in paths[axis]]) for axis in ("rate", "rtt", "buffer"))
    for values, (low, high) in ((rates, (1, 100)), (rtts, (10, 100)), (buffers, (0.5, 4))):
        places = (values - math.log(low)) / math.log(high / low)
        assert sorted(np.floor(places * 4).astype(int)) == sorted([0, 1, 2, 3] * 4)  # four of sixteen in each quarter
    assert all(axes.read(text).number >= 10_000 for text in paths["time"])


def test_paths_with_too_many_packets_or_too_short_a_pipe_are_passed_over():
    sample = Sample.model_validate({"cells": 4})
    for rate, time in zip(*(sample.paths(GRIDS["quick"])[axis] for axis in ("rate", "time")), strict=True):
        assert clause.number_of(rate) * clause.number_of(time) / 1000 * 1e6 <= GRIDS["quick"].packets * clause.FRAME_BITS * 1.01
    for rate, rtt, buffer in zip(*(sample.paths(GRIDS["full"])[axis] for axis in ("rate", "rtt", "buffer")), strict=True):
        bits = clause.number_of(rate) * clause.number_of(rtt) * 1000
        assert bits * (1 + clause.number_of(buffer)) > 9.9 * clause.FRAME_BITS
    with pytest.raises(StudyError, match="lower its rates"):
        Sample.model_validate({"rate": ["900mbit", "1gbit"]}).paths(GRIDS["quick"])


@pytest.mark.parametrize("text", ["__import__('os')", "x.y", "x if x else 1", "open(x)", "x +"])
def test_a_value_is_arithmetic_alone(text):
    with pytest.raises(TcpscapeError):
        Criterion.model_validate({"words": "w", "what": "w", "measures": {"x": "goodput"}, "value": text, "margin": 0})


def test_harm_is_that_of_ware_et_al():
    harm = clause.evaluate("harm(solo, shared)", {"solo": np.array([10.0, 10.0]), "shared": np.array([4.0, 12.0])}, judging.FUNCTIONS)
    delay = clause.evaluate("delay_harm(solo, shared)", {"solo": np.array([20.0]), "shared": np.array([80.0])}, judging.FUNCTIONS)
    assert harm.tolist() == [0.6, 0.0]
    assert delay.tolist() == [0.75]


def cell(values, sign=1.0, **references):
    return CellJudgement({}, SCENARIO, np.array(values), {name: np.array(v) for name, v in references.items()}, sign)


CRITERION = Criterion.model_validate({"words": "w", "what": "w", "measures": {"x": "goodput"}, "value": "x", "margin": 1, "factor": 1.5})


def test_a_cell_is_near_only_where_it_is_worse_than_every_reference():
    assert judging._is_near(cell([9, 9], reno=[1, 1], cubic=[2, 2]), CRITERION)
    assert not judging._is_near(cell([9, 9], reno=[1, 1], cubic=[9, 9]), CRITERION)
    assert not judging._is_near(cell([9, 9], sign=-1.0, reno=[1, 1]), CRITERION)
    assert not judging._is_near(cell([120, 120], reno=[100, 100]), CRITERION)  # a fifth more, and half as much again matters
    assert not judging._is_near(cell([math.nan, 9], reno=[1, 1]), CRITERION)


def test_the_p_of_a_cell_is_that_of_students_t():
    from scipy import stats

    values = np.array([1.2, 0.7, 1.9, 1.1, 0.4, 1.5])
    assert judging._p_above(values, 0.5) == pytest.approx(stats.ttest_1samp(values, 0.5, alternative="greater").pvalue, rel=1e-9)
    assert judging._p_above(np.full(6, 2.0), 1.0) == 0
    assert judging._p_above(np.full(6, 2.0), 2.0) == 1


def test_a_judgement_accounts_for_the_number_of_cells():
    def decided(p, count):
        cells = [replace(cell([5.0], reno=[1.0]), is_decided=True, p_worse=p) for _ in range(count)]
        judging._correct(cells)
        return {one.verdict for one in cells}

    assert decided(0.02, 1) == {"worse"}
    assert decided(0.02, 10) == {"no worse"}
    assert decided(0.001, 10) == {"worse"}


def test_equal_controls_raise_an_alarm_in_at_most_a_twentieth_of_dossiers():
    random, alarms = np.random.default_rng(1), 0
    for _ in range(200):
        cells = []
        for _ in range(20):
            one = cell(random.normal(1, 1, 6), reno=random.normal(0, 1, 6))  # the true excess is the margin
            cells.append(replace(one, is_decided=True, p_worse=judging._p_above(one.differences("reno"), 1.0)))
        judging._correct(cells)
        alarms += any(one.verdict == "worse" for one in cells)
    assert alarms <= 20


@pytest.mark.slow
def test_cubic_clears_what_the_rfc_says_must(need_model, evaluate):
    document = evaluate("cubic", "--against", "reno", "--clause", "collapse", "--clause", "harm")
    assert "fails" not in verdicts(document).values()


@pytest.mark.parametrize(
    ("toy", "name", "expected"),
    [
        ("NoBackoff", "collapse", "fails"),
        pytest.param("IgnoresMarks", "aqm", "worse", marks=pytest.mark.slow),
        ("ShortPathsOnly", "self-fairness", "worse"),
    ],
)
def test_a_planted_flaw_is_found_in_its_clause(need_model, evaluate, toy, name, expected):
    assert verdicts(evaluate(f"{TOYS}:{toy}", "--clause", name, cells=1 + (name == "self-fairness")))[name] == expected


def test_the_control_of_the_planted_flaws_has_none(need_model, evaluate):
    document = evaluate(f"{TOYS}:Reno", "--clause", "collapse", "--clause", "self-fairness")
    assert set(verdicts(document).values()) == {"no worse"}


def test_a_control_that_raises_is_a_finding_of_its_cells(need_model, evaluate):
    document = evaluate(f"{TOYS}:Raises", "--clause", "tail-drop", cells=2)
    (worst, *_) = document["clauses"][0]["criteria"][0]["worst"]
    assert document["clauses"][0]["verdict"] == "worse"
    assert "ValueError: too large" in worst["error"]


def test_an_executor_that_there_is_not_is_one_line(cli, tmp_path):
    said = cli("evaluate", "cubic", "--executor", "nowhere", "--clause", "by-hand", "--out", str(tmp_path))
    assert said.status == 2
    assert said.err.startswith("error: executor: ")


@pytest.mark.slow
def test_a_kept_dossier_is_a_gate(need_model, evaluate, cli, tmp_path):
    options = ("--clause", "loss")
    kept = evaluate("cubic", *options, cells=3)
    file = tmp_path / "kept.json"
    file.write_text(json.dumps(kept), "utf-8")
    evaluate("cubic", *options, "--check", str(file), cells=3)
    assert verdicts(evaluate("bbr", *options, "--check", str(file), cells=3, status=1))["loss"] == "worse"
    assert "§ 5.1.3" in cli("evaluate", "bbr", *options, "--cells", "3", "--no-report", "--out", str(tmp_path / "out"), "--check", str(file)).err


def test_what_is_no_longer_shown_is_worse_than_what_was():
    def is_worse(old, new):
        return [c.is_worse for c in changes.changed(*({"clauses": [{"name": "loss", "verdict": v} for v in one]} for one in (old, new)))]

    assert is_worse(["no worse"], ["not shown"]) == [True]
    assert is_worse(["worse"], ["no worse"]) == [False]
    assert is_worse(["worse"], ["worse"]) == is_worse([], ["fails"]) == []


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Directories of the evaluations of cubic and of bbr under loss."""
    roots = [tmp_path_factory.mktemp("kept") / control for control in ("cubic", "bbr")]
    for root in roots:
        words = ["evaluate", root.name, "--against", "reno", "--clause", "loss", "--cells", "3", "--no-report", "--quiet", "--out", str(root)]
        assert call(words) == 0
    return roots


def test_two_dossiers_are_compared_by_verdict(need_model, kept, cli):
    files = [root / dossier.FILE for root in kept]
    same, worse, better = (cli("compare", *map(str, pair)) for pair in (files[:1] * 2, files, files[::-1]))
    assert (same.status, worse.status, better.status) == (0, 1, 0)
    assert "No verdict differs in the 1 clause" in same.out
    assert "1 became worse and 0 better" in worse.out
    assert "the controls differ: cubic, then bbr" in " ".join(worse.out.split())
    assert "§ 5.1.3" in worse.err
    assert "0 became worse and 1 better" in better.out
    for option in (["--check", "ratio > 1"], ["--metric", "rtt_p95"], ["--json"]):
        refused = cli("compare", *map(str, files), *option)
        assert (refused.status, refused.err.count("\n")) == (2, 1)


def test_two_directories_are_compared_by_their_measures(need_model, kept, cli, tmp_path):
    roots = [shutil.copytree(root, tmp_path / name) for root, name in zip(kept, ("old", "new"), strict=True)]
    same, apart, alone = cli("compare", roots[0], roots[0]), cli("compare", *roots), cli("compare", f"{roots[0]}/dossier.json", roots[1])
    assert "No difference in 1 measure." in " ".join(same.out.split())
    assert "1 of 1 measure changed; of 9 values, intervals are apart in 3: 3 worse, 0 better." in " ".join(apart.out.split())
    assert "name the directories" in " ".join(alone.out.split())
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / dossier.FILE).write_bytes((tmp_path / "old" / dossier.FILE).read_bytes())
    assert f"they are in {dossier.TABLE} beside a dossier" in " ".join(cli("compare", tmp_path / "bare", roots[0]).out.split())
    (tmp_path / "new" / dossier.TABLE).write_text("", "utf-8")
    damaged = cli("compare", *roots)
    assert (damaged.status, damaged.err.count("\n")) == (2, 1)


def test_cells_without_a_value_are_left_out_and_those_of_one_trial_have_no_interval(tmp_path):
    """As `evaluate` writes them: of a control that stopped there is no value; a value, or an end of its interval, may be below 0."""

    def root(name, *cells):
        (tmp_path / name).mkdir()
        rows = [f"loss,rate,cell {i},{cell}" for i, cell in enumerate(cells)]
        (tmp_path / name / dossier.TABLE).write_text("\n".join(["clause,criterion,cell,value,value_low,value_high", *rows, ""]), "utf-8")
        return tmp_path / name

    criterion = {"what": "rate", "better": "more", "unit": "", "margin": 1.0}
    new = {"clauses": [{"name": "loss", "section": "1", "criteria": [criterion]}]}
    before, after = root("before", "5,4,6", "1,-1,3", "9,NaN,NaN", "2,1,3"), root("after", "NaN,NaN,NaN", "8,7,9", "3,NaN,NaN", ",,")
    (one,) = changes.moved(new, before, after)
    assert (one.cells, one.apart, one.worse, one.better) == (2, 2, 0, 1)
    assert (one.old, one.new) == (5, 5.5)
    with pytest.raises(TcpscapeError, match="'many' is no number"):
        changes.moved(new, before, root("damaged", "many,1,2"))


def test_which_side_a_measure_moved_to():
    """Of a rate, with a margin of 2: 10 ± 1 → 15 ± 1 is better, 10 ± 1 → 5 ± 1 worse; 10 ± 4 → 13 ± 4 overlap, and 10 → 11 is below the margin."""

    def cell(value, half):
        return {"value": value, "low": value - half, "high": value + half}

    pairs = [
        (cell(10, 1), cell(15, 1)),
        (cell(10, 1), cell(5, 1)),
        (cell(10, 4), cell(13, 4)),
        (cell(10, 0), cell(11, 0)),
        (cell(10, 1), cell(10, 1)),
    ]
    criterion = {"what": "rate", "better": "more", "unit": "", "margin": 2.0}
    rate, delay = (changes.Moved.of("1", {**criterion, "better": better}, pairs) for better in ("more", "less"))
    assert (rate.cells, rate.apart, rate.worse, rate.better) == (5, 4, 1, 1)
    assert (rate.old, rate.new, rate.difference.value) == (10, 10.8, pytest.approx(0.8))
    assert (delay.worse, delay.better) == (1, 1)
    single = changes.Moved.of("1", {**criterion, "better": "less"}, pairs[:1])
    assert (single.worse, single.better) == (1, 0)
    assert math.isnan(single.difference.low), "the interval is over cells, and one cell has none"


@pytest.mark.slow
def test_the_worst_cell_is_repeated_by_its_command(need_model, evaluate, cli):
    (criterion,) = evaluate("bbr", "--clause", "loss", cells=3)["clauses"][0]["criteria"]
    worst = criterion["worst"][0]
    said = cli(*worst["command"].split()[1:], "--json")
    assert said.status == 0, said.err
    assert len(said.out.splitlines()) == GRIDS["quick"].more


def test_a_bad_request_is_one_line(cli, tmp_path):
    for words_ in (["nocontrol"], ["cubic", "--clause", "9.9"], ["cubic", "--grid", "huge"], ["cubic", "--check", str(tmp_path / "none.json")]):
        said = cli("evaluate", *words_, "--out", str(tmp_path / "o"))
        assert said.status == 2
        assert said.err.count("\n") == 1


def test_the_page_and_the_appendix_say_the_same(need_model, cli, tmp_path):
    said = cli("evaluate", "bbr", "--clause", "loss", "--clause", "by-hand", "--cells", "2", "--out", str(tmp_path))
    assert said.status == 0, said.err
    document = dossier.read(tmp_path)
    page, appendix = ((tmp_path / name).read_text("utf-8") for name in ("report.html", "dossier.md"))
    for text in ("Protection against high packet loss", document["clauses"][0]["verdict"], "incremental deployment"):
        assert text in page
        assert text in appendix
    assert words.answer(document) in page


def test_measures_without_a_cell_in_both_are_not_called_alike():
    assert "no cell has a value in both" in words._moved_answer([])
