"""Format numbers: every document says its own, an unknown newer one is refused in one line, and what was kept without a number is read."""

from __future__ import annotations

import json
import sqlite3

import pytest

from tcpscape import formats
from tcpscape.errors import EngineError, ScenarioError, StoreError
from tcpscape.kernels import cache
from tcpscape.scenario.scenario import Scenario
from tcpscape.store.results import Store
from tcpscape.studies import study
from tcpscape.trial import Trial

NEWER = 99


@pytest.fixture
def kept(cli, tmp_path):
    """A result directory of two trials."""
    assert cli("run", "baseline", "--engine", "mock", "--seeds", "2", "--out", tmp_path / "kept").status == 0
    return tmp_path / "kept"


def rewrite(root, table: str, column: str, change) -> None:
    """Changes the JSON documents in a column of a store's database."""
    with sqlite3.connect(root / "results.sqlite") as database:
        for rowid, text in database.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
            database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (json.dumps(change(json.loads(text)), separators=(",", ":")), rowid))


@pytest.mark.parametrize("kind", formats.FORMATS)
def test_the_number_comes_first_and_is_known(kind):
    document = formats.stamped(kind, {"a": 1})
    assert list(document) == ["format", "a"]
    assert formats.expect(kind, document, "file") == formats.FORMATS[kind]
    assert formats.expect(kind, {"a": 1}, "file") == 1


@pytest.mark.parametrize("number", [NEWER, 0, -1, "1", 1.0, True, None, [1]])
def test_another_number_is_refused_in_one_line(number):
    with pytest.raises(StoreError, match=r"^file: [^\n]+; [^\n]+$"):
        formats.expect("trial", {"format": number}, "file")


@pytest.mark.parametrize("table", ["trials", "manifests"])
def test_a_directory_of_a_newer_format_is_refused(cli, kept, table):
    rewrite(kept, table, {"trials": "trial", "manifests": "document"}[table], lambda document: {**document, "format": NEWER})
    answer = cli("report", kept)
    kind = {"trials": "trial", "manifests": "manifest"}[table]
    assert answer.status == 2
    assert f"{kind} of format {NEWER}, and this tcpscape reads formats up to {formats.FORMATS[kind]}" in answer.err
    assert answer.err.count("\n") == 1


def test_trials_that_were_kept_without_a_number_are_read_and_not_run_again(cli, tmp_path, need_model):
    kept, again = tmp_path / "kept", ("run", "baseline", "--duration", "1s", "--seeds", "2", "--out", tmp_path / "kept", "--json")
    before = cli(*again).out

    def without(document):
        return {name: value for name, value in document.items() if name != "format"}

    rewrite(kept, "trials", "trial", without)
    with Store(kept) as store:
        assert len(store.load_many(store.addresses())) == 2
    assert cli(*again).out == before
    with sqlite3.connect(kept / "results.sqlite") as database:
        assert [text for (text,) in database.execute("SELECT trial FROM trials") if "format" in json.loads(text)] == []


def test_an_answer_and_a_validation_of_a_newer_format_are_refused(cli, tmp_path, need_model):
    out = tmp_path / "advised"
    assert cli("advise", "--rtt", "20ms", "--rate", "5mbit", "--duration", "1s", "--seeds", "2", "--cca", "cubic,reno", "--out", out).status == 0
    (out / "advice.json").write_text(json.dumps({**json.loads((out / "advice.json").read_text()), "format": NEWER}))
    assert f"advice of format {NEWER}" in cli("report", out).err
    validated = tmp_path / "validated"
    assert cli("validate", "--random", "1", "--engine", "model", "--engine", "mock", "--worst", "0", "--out", validated).status == 0
    (validated / "summary.json").write_text(json.dumps({**json.loads((validated / "summary.json").read_text()), "format": NEWER}))
    answer = cli("validate", "--explain", "r0", "--out", validated)
    assert (answer.status, f"validation of format {NEWER}" in answer.err) == (2, True)


def test_a_kernel_of_a_newer_format_is_named_and_hides_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name, number in (("old", None), ("newer", NEWER)):
        record = {"name": name, "path": "", "release": "6.1", "digest": "d", "hz": 250, "source": "s", "source_digest": None, "describe": None, "config_digest": "c",
            "compiler": "gcc", "created": "", "built": "", "seconds": 1.0, "size": 1}  # fmt: skip
        cache.place(name).mkdir(parents=True)
        (cache.place(name) / "linux").write_text("")
        (cache.place(name) / "kernel.json").write_text(json.dumps(record | ({"format": number} if number else {})))
    assert [kernel.name for kernel in cache.built_kernels()] == ["old"]
    with pytest.raises(EngineError, match=f"kernel of format {NEWER}"):
        cache.find("newer")


def test_what_a_user_writes_may_have_its_number():
    assert Scenario.of({"format": 1, "duration": "1s"}) == Scenario.of({"duration": "1s"})
    assert Scenario.of({"format": 1}).address() == Scenario.of({}).address()
    assert study.of({**study.read("baseline"), "format": 1}, "x") == study.get("baseline")
    with pytest.raises(ScenarioError, match=f"format: scenario of format {NEWER}"):
        Scenario.of({"format": NEWER})


def test_a_trial_is_read_back_from_its_row(kept):
    with Store(kept) as store:
        trials = store.load_many(store.addresses()).values()
    assert all(isinstance(trial, Trial) and trial.to_dict()["format"] == 1 for trial in trials)
