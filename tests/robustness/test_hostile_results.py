"""A result directory of somebody else is data: nothing outside of it is deleted or written, nothing waits, and memory is bounded."""

import io
import shutil
import sqlite3
import time
import zlib
from contextlib import redirect_stderr, redirect_stdout

import pytest

from robustness import directories, judge
from robustness.directories import CONTENT, DATABASE, RESULTS, WITNESS
from tcpscape.cli.main import call
from tcpscape.errors import StoreError
from tcpscape.store.results import Store

PROMPT_S = 10


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working directory of a case."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(case, folder):
    """Writes the case, and a directory beside it to which a link would lead."""
    case.write(folder)
    return {path: path.read_bytes() for path in folder.glob("*") if path.is_file()}


@pytest.mark.parametrize("case", directories.cases(large=False), ids=lambda c: f"{c.words[0]}: {c.group}")
def test_a_hostile_directory_harms_nothing(case, here):
    before, out, err, began = written(case, here), io.StringIO(), io.StringIO(), time.process_time()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = call(list(case.words))
        except SystemExit as e:
            status = int(e.code or 0)
    assert (here / WITNESS).read_bytes() == CONTENT
    assert {path: path.read_bytes() for path in before} == before
    assert status in (0, 2), err.getvalue()
    assert status == 0 or not list(judge.message(err.getvalue()))
    assert time.process_time() - began < PROMPT_S


@pytest.mark.parametrize(
    "name", ["generated columns", "a trigger", "an index of an expression", "a further table", "a column more", "a view instead of a table"]
)
def test_other_tables_than_ours_are_refused(name, here):
    directories.Case("x", (), {**directories.good(), **directories.HOSTILE[name]()}).write(here)
    for create in (False, True):
        with pytest.raises(StoreError, match="has other tables than tcpscape makes"):
            Store(here / RESULTS, create=create)


@pytest.mark.parametrize("create", [False, True])
def test_a_journal_that_names_a_file_is_refused_by_readers_and_writers(here, create):
    files = {**directories.good(), WITNESS: CONTENT, f"{DATABASE}-journal": directories.journal(WITNESS)}
    directories.Case("x", (), files).write(here)
    with pytest.raises(StoreError, match=r"results\.sqlite-journal"):
        Store(here / RESULTS, create=create)
    assert (here / WITNESS).read_bytes() == CONTENT


def test_a_reader_changes_nothing_in_a_directory(here):
    directories.Case("x", (), directories.good()).write(here)
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    with Store(here / RESULTS, create=False) as store:
        assert len(store.load_many(store.addresses())) == 4
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


def test_what_a_killed_writer_left_in_the_log_is_read(here):
    directories.Case("x", (), directories.good()).write(here)
    writer = sqlite3.connect(here / DATABASE, isolation_level=None)
    writer.execute("DELETE FROM trials WHERE address = (SELECT min(address) FROM trials)")
    for end in ("", "-wal"):
        (here / "left").mkdir(exist_ok=True)
        shutil.copy(here / f"{DATABASE}{end}", here / "left" / f"results.sqlite{end}")
    with Store(here / "left", create=False) as store:
        assert len(store.addresses()) == 3
    writer.close()


def test_a_reader_sees_a_writer_that_comes_later(here):
    directories.Case("x", (), directories.good()).write(here)
    with Store(here / RESULTS, create=False) as reader:
        assert len(reader.addresses()) == 4
        writer = sqlite3.connect(here / DATABASE, isolation_level=None)
        writer.execute("DELETE FROM trials WHERE address = (SELECT min(address) FROM trials)")
        assert len(reader.addresses()) == 3
        writer.close()


def test_samples_are_not_written_through_a_link(here, tmp_path):
    (here / "elsewhere").mkdir()
    directories.Case("x", (), directories.good()).write(here)
    shutil.rmtree(here / RESULTS / "samples", ignore_errors=True)
    with Store(here / RESULTS, create=False) as store:
        (trial, *_) = store.load_many(store.addresses(), ["samples"]).values() or [None]
    assert trial is None, "the samples were removed"
    (here / RESULTS / "samples").symlink_to(here / "elsewhere")
    path = ["--forward", "netem delay 5ms", "--duration", "100ms", "--seeds", "1", "--samples", "50ms", "--out", RESULTS]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as err, pytest.raises(SystemExit):
        raise SystemExit(call(["run", *path]))
    assert "is a symbolic link" in err.getvalue()
    assert not list((here / "elsewhere").iterdir())


def test_plots_are_not_drawn_through_a_link(here):
    (here / "elsewhere").mkdir()
    directories.Case("x", (), directories.good()).write(here)
    (here / RESULTS / "plots").symlink_to(here / "elsewhere")
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as err:
        assert call(["plot", RESULTS]) == 2
    assert "is a symbolic link" in err.getvalue()
    assert not list((here / "elsewhere").iterdir())


def test_queues_that_inflate_are_refused():
    from tcpscape.store import rows

    reports = rows.QueueReports(zlib.compress(b"[" + b"[]," * 2_000_000 + b"0]"))
    with pytest.raises(StoreError, match="reports of the queues"):
        len(reports)
