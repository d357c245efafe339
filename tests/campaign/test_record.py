"""What a result directory holds after several commands: every cell that was ever run into it, or the command is refused before it runs."""

import csv
import io
from dataclasses import replace

import polars as pl
import pytest

from tcpscape.campaign import execute, record
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Execution
from tcpscape.engines.mock import Mock
from tcpscape.errors import StoreError
from tcpscape.interchange import sources
from tcpscape.store.results import Store
from tcpscape.studies import study as studies

RUN = ("run", "--forward", "netem delay 25ms", "--engine", "mock", "--seeds", "2")
SWEEP = ("sweep", "--rtt", "50ms", "--engine", "mock", "--seeds", "2")


@pytest.fixture
def commands(cli, tmp_path):
    """Runs commands with `--out` a directory; returns what it holds."""

    def run(*each):
        for args in each:
            got = cli(*args, "--out", tmp_path)
            assert got.status == 0, got.err
        return record.load(tmp_path)

    return run


def cells(outcome):
    return [(*c.at.values(), c.engine, c.cca, len(c.trials)) for c in outcome.cells]


def contents(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def exported(cli, root):
    return list(csv.DictReader(io.StringIO(cli("export", root, "--to", "csv").out)))


@pytest.fixture
def no_figures(monkeypatch):
    """Reports draw nothing, which takes seconds: what their pages and tables say of the results is the same."""
    monkeypatch.setattr("tcpscape.report.figures.draw", lambda *_: iter(()))


def test_a_run_of_another_congestion_control_stands_beside_the_first(cli, commands, tmp_path, no_figures):
    kept = commands((*RUN, "--cca", "cubic"), (*RUN, "--cca", "bbr"))
    (outcome,) = kept.outcomes
    assert list(kept.parts) == [""]
    assert cells(outcome) == [("mock", "cubic", 2), ("mock", "bbr", 2)]
    assert outcome.campaign.cca == ("cubic", "bbr")
    assert [line.split()[-4:-2] for line in kept.command.splitlines()] == [["--cca", "cubic"], ["--cca", "bbr"]]
    assert [row["cca"] for row in exported(cli, tmp_path)] == ["cubic", "cubic", "bbr", "bbr"]
    assert {(g.cca, len(g.items)) for g in sources.load(tmp_path).groups} == {("cubic", 2), ("bbr", 2)}
    assert cli("report", tmp_path, "--figures", "svg").status == 0
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "--cca cubic --out" in page
    assert "--cca bbr --out" in page
    assert pl.read_csv(tmp_path / "tables" / "cells.csv")["cca"].to_list() == ["cubic", "bbr"]
    first, second = commands((*RUN, "--cca", "reno,cubic")).outcomes[0].cells[:2]
    assert [c.cca for c in (first, second)] == ["cubic", "bbr"]


def test_the_same_campaign_with_other_seeds_replaces_itself(commands):
    for seeds, count in (("3", 3), ("3..7", 5), ("2", 2)):
        kept = commands((*RUN[:-1], seeds, "--cca", "cubic,bbr"))
        assert cells(kept.outcomes[0]) == [("mock", "cubic", count), ("mock", "bbr", count)]
        assert kept.command.count("\n") == 0
        assert f"--seeds {seeds} " in kept.command
    kept = commands((*SWEEP, "--jitter", "0,4ms"), (*SWEEP, "--jitter", "0,4ms", "--precision", "5%", "--max-seeds", "9"))
    assert list(kept.parts) == ["words", "words-2"]
    assert all(c.until_precise for c in kept.parts["words-2"].cells)


def test_more_values_of_an_axis_make_one_table(cli, commands, tmp_path, no_figures):
    kept = commands(
        (*SWEEP, "--jitter", "0,8ms", "--cca", "reno"),
        (*SWEEP, "--jitter", "0,8ms"),
        (*SWEEP[:-1], "3", "--jitter", "0ms,4ms,8ms", "--cca", "cubic,bbr", "--samples", "1s"),
    )
    (outcome,) = kept.outcomes
    every = {"0ms": ("reno", "cubic", "bbr"), "4ms": ("cubic", "bbr"), "8ms": ("reno", "cubic", "bbr")}
    assert cells(outcome) == [(jitter, "mock", cca, 2 if cca == "reno" else 3) for jitter, ccas in every.items() for cca in ccas]
    assert outcome.campaign.axes == {"jitter": ("0ms", "4ms", "8ms")}
    assert [c.trials[0].samples is None for c in outcome.cells] == [c.cca == "reno" for c in outcome.cells]
    assert [c.scenarios[0].forward[0].jitter for c in outcome.cells] == [0] * 3 + [4 * 10**6] * 2 + [8 * 10**6] * 3
    assert outcome.retention(outcome.find("reno", jitter="8ms"), "jitter").n == 2
    assert pl.read_csv(tmp_path / "cells.csv").select("jitter", "cca", "n").rows() == [c[:1] + c[2:] for c in cells(outcome)]
    got = cli("report", tmp_path, "--figures", "svg", "--check", "goodput[jitter=4ms,cca=bbr] > 0")
    assert got.status == 0, got.err
    assert "seeds</dt><dd>2 or 3</dd>" in (tmp_path / "report.html").read_text("utf-8")
    wider = commands((*SWEEP, "--jitter", "0..8ms/4ms", "--cca", "cubic,bbr,reno"))
    assert wider.command.count("\n") == 0
    assert {c[-1] for c in cells(wider.outcomes[0])} == {2}


def test_another_path_is_another_part(cli, commands, tmp_path):
    kept = commands((*SWEEP, "--jitter", "0ms,4ms"), ("sweep", "--rtt", "80ms", *SWEEP[3:], "--jitter", "0ms,4ms"), (*RUN, "--cca", "bbr"))
    assert list(kept.parts) == ["words", "words-2", "words-3"]
    assert (kept.kind, kept.name) == ("sweep, run", "words")
    assert [len(o.cells) for o in kept.outcomes] == [2, 2, 1]
    assert [line.split()[1] for line in kept.command.splitlines()] == ["sweep", "sweep", "run"]
    assert [kept.commands[part].split()[1] for part in kept.parts] == ["sweep", "sweep", "run"]
    assert [(row["part"], row["jitter"]) for row in exported(cli, tmp_path)][::2] == [
        ("words", "0ms"),
        ("words", "4ms"),
        ("words-2", "0ms"),
        ("words-2", "4ms"),
        ("words-3", ""),
    ]
    assert pl.read_csv(tmp_path / "cells.csv")["campaign"].to_list() == ["words", "words", "words-2", "words-2"]
    got = cli("compare", tmp_path, tmp_path)
    assert "All 5 conditions are the same runs on both sides" in " ".join(got.out.split())
    assert cli("report", tmp_path, "--figures", "svg").status == 0
    page = (tmp_path / "report.html").read_text("utf-8")
    assert all(line.replace("'", "&#39;") in page for line in kept.command.splitlines())
    assert 'id="part-words-3"' in page
    assert pl.read_csv(tmp_path / "tables" / "cells.csv")["part"].to_list() == ["words", "words", "words-2", "words-2", "words-3"]
    again = commands((*SWEEP, "--jitter", "0,4,8ms"))
    assert [len(o.cells) for o in again.outcomes] == [3, 2, 1]


def outcome_of(**fields):
    said = {"name": "c", "conditions": {"rtt": "50ms"}, "axes": {"jitter": "0ms,4ms"}, "cca": "cubic", "engines": ["mock"], "seeds": 2}
    return Campaign.of({**said, **fields})


def add(root, campaign, command, **versions):
    """Runs a campaign into a directory and saves its record, as by an engine of these versions."""
    with Store(root) as store:
        record.expect(store, "sweep", campaign.name)
        outcome = execute.run(campaign, Execution(store=store))
    return record.save(record.Record("sweep", campaign.name, command, {"": replace(outcome, versions={**outcome.versions, **versions})}), root)


def test_versions_of_an_engine_are_not_mixed_in_a_part(tmp_path):
    assert not add(tmp_path, outcome_of(), "one", mock="mock-0")
    assert add(tmp_path, outcome_of(axes={"jitter": "8ms"}), "two")
    kept = record.load(tmp_path)
    assert [(o.versions, len(o.cells)) for o in kept.outcomes] == [({"mock": "mock-0"}, 2), ({"mock": "mock-1"}, 1)]
    assert not add(tmp_path, outcome_of(axes={"jitter": "0,4,8ms"}), "three")
    kept = record.load(tmp_path)
    assert [(o.versions, len(o.cells)) for o in kept.outcomes] == [({"mock": "mock-1"}, 3)]
    assert kept.command == "three"


def test_what_moves_together_keeps_its_rows_and_what_is_pooled_its_values(tmp_path):
    group = {
        "zip": [{"kind": ["a", "b", "a"], "order": ["reorder", "clamp", "clamp"]}],
        "axes": {"jitter": "4ms", "app": "200,400kB/s"},
        "pool": ["app"],
    }
    add(tmp_path, outcome_of(**group, cca="bbr"), "one")
    assert add(tmp_path, outcome_of(**group), "two")
    (outcome,) = record.load(tmp_path).outcomes
    assert [(c.at["kind"], c.at["order"], c.cca, len(c.scenarios)) for c in outcome.cells] == [
        (kind, order, cca, 2) for kind, order in (("a", "reorder"), ("b", "clamp"), ("a", "clamp")) for cca in ("bbr", "cubic")
    ]
    other = {**group, "axes": {"jitter": "4ms", "app": "400kB/s"}}
    assert add(tmp_path, outcome_of(**other), "three")
    assert [len(o.cells) for o in record.load(tmp_path).outcomes] == [6, 3]


def test_a_file_that_changed_is_another_campaign(cli, commands, tmp_path):
    file = tmp_path / "path.yaml"
    for rate in ("10mbit", "20mbit"):
        file.write_text(f"forward: netem delay 10ms\nbottleneck: tbf rate {rate} burst 6056 limit 62500\n")
        kept = commands(("sweep", file, "--duration", "2s" if rate == "10mbit" else "2s,4s", "--engine", "mock", "--seeds", "2"))
    assert [len(o.cells) for o in kept.outcomes] == [1, 2]
    assert [{c.scenarios[0].bottleneck[0].split()[2] for c in o.cells} for o in kept.outcomes] == [{"10mbit"}, {"20mbit"}]


def test_names_that_are_no_file_names_are_labels_all_the_same(cli, tmp_path):
    for name in ("..a b", "<i>"):
        add(tmp_path, outcome_of(name=name, conditions={"rtt": "50ms" if name == "<i>" else "60ms"}), name)
    kept = record.load(tmp_path)
    assert list(kept.parts) == ["_a_b", "_i_"]
    assert cli("report", tmp_path, "--figures", "svg").status == 0
    assert {p.name for p in tmp_path.iterdir()} == {"results.sqlite", "report.html", "figures", "tables", "scenarios"}


STUDY = ("study", "run", "baseline", "--engine", "mock", "--seeds", "2", "--no-report")


def test_parts_of_a_study_come_together(cli, tmp_path, no_figures):
    parts = [p.name for p in studies.get("baseline").parts]
    for part in parts:
        assert cli(*STUDY, "--part", part, "--out", tmp_path).status == 0
    for part in reversed(parts):
        got = cli(*STUDY, "--part", part, "--out", tmp_path / "reversed")
        assert got.status == 0, got.err
    apart = record.load(tmp_path / "baseline")
    assert list(record.load(tmp_path / "reversed" / "baseline").parts) == parts
    assert cli(*STUDY, "--out", tmp_path / "whole").status == 0
    whole = record.load(tmp_path / "whole" / "baseline")
    assert (list(apart.parts), apart.parts, apart.study) == (parts, whole.parts, whole.study)
    assert apart.command.count("\n") == len(parts) - 1
    assert len({(tmp_path / where / "baseline" / "baseline.csv").read_text() for where in ("", "reversed", "whole")}) == 1
    for root in (tmp_path, tmp_path / "whole"):
        assert cli("report", root / "baseline", "--figures", "svg").status == 0
    for table in ("cells", "claims", "study", "runs"):
        assert len({(root / "baseline" / "tables" / f"{table}.csv").read_text() for root in (tmp_path, tmp_path / "whole")}) == 1
    assert cli(*STUDY, "--part", parts[0], "--out", tmp_path / "whole").status == 0
    again = record.load(tmp_path / "whole" / "baseline")
    assert again.parts == whole.parts


def test_what_a_directory_cannot_hold_is_refused_before_it_runs(cli, tmp_path, monkeypatch):
    part = ("--part", "rates")
    assert cli(*STUDY, *part, "--out", tmp_path).status == 0
    assert cli(*SWEEP, "--jitter", "0,4ms", "--out", tmp_path / "starlink").status == 0
    assert cli("study", "run", "one-percent-loss", "--quick", "--part", "rtt", "--engine", "mock", "--no-report", "--out", tmp_path).status == 0
    before = contents(tmp_path)
    monkeypatch.setattr(Mock, "run", lambda *args, **options: pytest.fail("it ran"))
    study, line = tmp_path / "baseline", "; choose another "
    refusals = (
        ((*RUN, "--out", study), f"out: {study} holds the study baseline, and a study has a directory of its own{line}one with --out"),
        ((*SWEEP, "--jitter", "0,4ms", "--out", study), f"out: {study} holds the study baseline, and"),
        (("study", "run", "starlink", *STUDY[3:], "--out", tmp_path), f"out: {tmp_path}/starlink holds what `tcpscape sweep --rtt 50ms "),
        (
            ("study", "run", "baseline", *part, "--seeds", "2", "--out", tmp_path),
            f"out: {study} holds this study on mock{line}directory with --out for model",
        ),
        (
            ("study", "run", "one-percent-loss", "--part", "rtt", "--engine", "mock", "--out", tmp_path),
            f"out: {tmp_path}/one-percent-loss holds part rtt under other conditions (`tcpscape study run one-percent-loss --quick --part rtt",
        ),
    )
    for args, error in refusals:
        got = cli(*args)
        assert (got.status, got.out, got.err.count("\n")) == (2, "", 1), got
        assert got.err.startswith(f"error: {error}")
        assert line in got.err
    assert contents(tmp_path) == before


def test_a_quick_look_at_fewer_values_leaves_the_others(tmp_path):
    part, short = outcome_of(axes={"jitter": "0..8ms/2ms"}, seeds=4), outcome_of()
    for campaign in (part, short):
        with Store(tmp_path) as store:
            record.expect(store, "study", "s", {"ramp": campaign}, {"mock": "mock-1"})
            outcome = execute.run(campaign, Execution(store=store))
        record.save(record.Record("study", "s", "study", {"ramp": outcome}, {"parts": [{"name": "ramp"}]}), tmp_path)
    kept = record.load(tmp_path).parts["ramp"]
    assert [(c.at["jitter"], len(c.trials)) for c in kept.cells] == [("0ms", 2), ("2ms", 4), ("4ms", 2), ("6ms", 4), ("8ms", 4)]
    with Store(tmp_path) as store, pytest.raises(StoreError, match="holds part ramp under other conditions"):  # would mix two versions
        record.expect(store, "study", "s", {"ramp": short}, {"mock": "mock-2"})
    with Store(tmp_path) as store:
        record.expect(store, "study", "s", {"ramp": part}, {"mock": "mock-2"})


def test_trials_of_python_alone_are_no_record(tmp_path):
    with Store(tmp_path) as store:
        execute.run(outcome_of(), Execution(store=store))
    assert not record.exists(tmp_path)
    assert len(sources.load(tmp_path).items) == 4
    with pytest.raises(
        StoreError, match=r"no results of run, sweep or study in results.sqlite; run an interrupted one again with the same --out, or name a"
    ):
        record.load(tmp_path)


def test_a_part_whose_cells_are_in_another_part_too_stays(cli, tmp_path):
    """The study of Starlink's path has parts that share cells: each keeps its own document."""
    assert cli("study", "run", "starlink", "--engine", "mock", "--seeds", "1", "--no-report", "--out", tmp_path).status == 0
    assert list(record.load(tmp_path / "starlink").parts) == [part.name for part in studies.get("starlink").parts]


def test_a_sweep_with_a_number_of_flows_is_continued(cli, tmp_path):
    """A number of flows is a text in the conditions, where a scenario has a list."""
    words = (
        "sweep",
        "--rtt",
        "10,20ms",
        "--rate",
        "5mbit",
        "--flows",
        "2",
        "--duration",
        "200ms",
        "--engine",
        "mock",
        "--out",
        tmp_path / "o",
        "--quiet",
    )
    for more in (("--cca", "cubic"), ("--cca", "cubic,bbr"), ("--cca", "cubic", "--seeds", "3")):
        got = cli(*words, *more)
        assert got.status == 0, got.err
    assert cli("export", tmp_path / "o", "--to", "csv").status == 0
