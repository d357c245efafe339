"""Numbers of many trials that are kept beside them: the same as without, and none of them is believed once anything has changed."""

import os
import shutil
import time

import numpy as np
import polars as pl
import pytest

from tcpscape import metrics, report
from tcpscape.campaign import execute, record
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Execution
from tcpscape.store import columns
from tcpscape.store.kept import Shelf
from tcpscape.store.results import FILE, Store

CAMPAIGN = {"conditions": {"rtt": "40ms", "rate": "10mbit"}, "axes": {"jitter": "1,9ms"}, "cca": "cubic,bbr", "seeds": "3", "engines": ["mock"]}
ASKED = ("goodput", "added_rtt")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A directory whose trials are read when they are asked for, last changed a while ago."""
    with Store(tmp_path) as store:
        record.measure("sweep", Campaign.of(CAMPAIGN), Execution(store=store), "tcpscape sweep")
    monkeypatch.setattr(record, "AT_ONCE", 0)
    age(tmp_path)
    return tmp_path


def age(root, seconds=60.0):
    then = time.time_ns() - int(seconds * 1e9) | 1
    os.utime(root / FILE, ns=(then, then))


def read(root):
    """What a reader sees of each cell, and whether it went through the trials for it."""
    went = []
    with pytest.MonkeyPatch.context() as patch:
        scan = Shelf._scan
        patch.setattr(Shelf, "_scan", lambda self, *of: went.append(of) or scan(self, *of))
        outcome = record.load(root).outcomes[0]
        seen = [(cell.seeds, cell.caveats, cell.kernels, cell.trials.engines, *(cell.values(name) for name in ASKED)) for cell in outcome.cells]
    outcome.keep_numbers()
    return seen, bool(went)


def files(root):
    return sorted((root / columns.FOLDER).glob("*")) if (root / columns.FOLDER).is_dir() else []


def test_the_second_reader_goes_through_no_trials(root):
    first, went = read(root)
    assert went
    assert len(files(root)) == 1
    assert read(root) == (first, False)


def test_a_report_has_the_same_bytes(root):
    pages = []
    for _ in range(2):
        report.build(record.load(root), root)
        pages.append([path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file() and path.suffix in (".html", ".csv", ".yaml")])
        assert len(files(root)) == 1
    assert pages[0] == pages[1]


def test_the_end_of_a_campaign_keeps_what_a_report_asks(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "AT_ONCE", 0)
    monkeypatch.setattr(columns, "FINE_NS", 0)
    monkeypatch.setattr(execute, "MOST_HELD", 0)
    with Store(tmp_path) as store:
        outcome, _ = record.measure("sweep", Campaign.of(CAMPAIGN), Execution(store=store), "tcpscape sweep")
        assert not files(tmp_path), "while a writer is there, nothing is kept"
    assert len(files(tmp_path)) == 1
    seen, went = read(tmp_path)
    assert not went
    monkeypatch.delattr(Shelf, "_scan")
    assert [[cell.values(name) for name in ASKED] for cell in outcome.cells] == [list(of[-2:]) for of in seen], (
        "what the command prints needs no look either"
    )


def changed_row(root):
    with Store(root) as store, store._database.transaction() as connection:
        connection.execute("UPDATE trials SET trial = replace(trial, '\"goodput_mbps\":', '\"goodput_mbps\":1')")


def changed_at_the_same_size(root):
    place = os.stat(root / FILE)
    with Store(root) as store, store._database.transaction() as connection:
        connection.execute("UPDATE trials SET trial = replace(trial, '\"seed\":0', '\"seed\":7')")
    assert os.stat(root / FILE).st_size == place.st_size


@pytest.mark.parametrize("change", [changed_row, changed_at_the_same_size])
def test_after_a_change_nothing_is_believed(root, change):
    before, _ = read(root)
    change(root)
    after, went = read(root)
    assert went
    assert after != before
    age(root)
    assert read(root)[0] == after
    assert [path for path in files(root) if path.stat().st_mtime_ns < (root / FILE).stat().st_mtime_ns] == []


def test_another_tcpscape_works_them_out_again(root, monkeypatch):
    read(root)
    monkeypatch.setattr(columns, "_source", lambda: "another")
    assert read(root)[1]


def test_a_copy_of_another_time_is_read_anew(root, tmp_path_factory):
    read(root)
    copy = tmp_path_factory.mktemp("copy")
    shutil.copytree(root, copy, dirs_exist_ok=True, copy_function=shutil.copyfile)
    assert read(copy)[1]


def test_what_may_change_within_a_tick_of_the_clock_is_not_kept(root, monkeypatch):
    monkeypatch.setattr(columns, "FINE_NS", 3600 * 10**9)
    read(root)
    assert not files(root)


def test_a_writer_beside_it_keeps_nothing(root):
    with Store(root) as store:
        store.save_many(list(record.load(root).outcomes[0].cells[0].trials))
        read(root)
        assert not files(root)


@pytest.mark.parametrize(
    "frame",
    [
        None,
        pl.DataFrame({"seed": [1]}),
        pl.DataFrame({"seed": [1] * 12, "goodput_mbps": ["x"] * 12, "kind": ["{}"] * 12}),
        pl.DataFrame(
            {"seed": [1] * 12, "goodput_mbps": [-1.0] * 12, "kind": pl.Series(['[null,[],"mock"]'] * 12, dtype=pl.Enum(['[null,[],"mock"]']))}
        ),
        pl.DataFrame({"seed": [1] * 12, "goodput_mbps": [1.0] * 12, "kind": pl.Series(["{"] * 12, dtype=pl.Enum(["{"]))}),
        pl.DataFrame({"seed": [1] * 12, "goodput_mbps": [1.0] * 12, "kind": pl.Series(["[1,2,3]"] * 12, dtype=pl.Enum(["[1,2,3]"]))}),
        pl.DataFrame({"tcpscape.metrics.flows:added_rtt": [1e300] * 12}),
    ],
)
def test_a_file_that_is_damaged_is_none(root, frame):
    first, _ = read(root)
    (file,) = files(root)
    file.write_bytes(b"PAR1 none PAR1") if frame is None else frame.write_parquet(file)
    assert read(root) == (first, True)
    assert read(root)[0] == first


def test_a_directory_that_cannot_be_written_is_read(root):
    (root / columns.FOLDER).symlink_to(root)
    first, _ = read(root)
    assert read(root) == (first, True)


def test_only_functions_of_tcpscape_have_a_name():
    of = metrics.find("added_rtt").of
    assert columns._name(of) == "tcpscape.metrics.flows:added_rtt"
    assert columns._name(lambda trial: 1.0) == columns._name(metrics.find("goodput:bbr").of) == columns._name(np.mean) == ""
