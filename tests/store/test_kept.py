"""Trials of a large directory, read when they are asked for: the same ones, numbers and pages as of one that is read at once."""

import math
import sys

import pytest

from tcpscape import metrics, report
from tcpscape.campaign import record
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Execution
from tcpscape.errors import StoreError
from tcpscape.interchange import sources
from tcpscape.store.kept import KeptTrials
from tcpscape.store.results import Store

CAMPAIGN = {"conditions": {"rtt": "40ms", "rate": "10mbit"}, "axes": {"jitter": "1,9ms"}, "cca": "cubic,bbr", "seeds": "3", "engines": ["mock"]}


@pytest.fixture
def both(tmp_path, monkeypatch):
    """A directory that is read at once, and when its trials are asked for; pooled scenarios, and samples, are in it."""

    def load(**more):
        with Store(tmp_path) as store:
            record.measure("sweep", Campaign.of({**CAMPAIGN, **more}), Execution(store=store), "tcpscape sweep")
        at_once = record.load(tmp_path)
        monkeypatch.setattr(record, "AT_ONCE", 0)
        return at_once, record.load(tmp_path), tmp_path

    return load


@pytest.mark.parametrize("more", [{}, {"pool": ["jitter"]}, {"samples": "100ms"}])
def test_cells_are_the_same_ones(both, more):
    at_once, lazily, _ = both(**more)
    for a, b in zip(at_once.outcomes[0].cells, lazily.outcomes[0].cells, strict=True):
        assert isinstance(b.trials, KeptTrials)
        assert list(b.trials) == list(a.trials)
        assert [list(run) for run in b.runs] == [list(run) for run in a.runs]
        assert (b.trials[0], b.trials[-1], list(b.trials[:2]), list(b.trials[::2])) == (a.trials[0], a.trials[-1], [*a.trials[:2]], [*a.trials[::2]])
        assert (b.seeds, b.caveats, b.kernels, len(b.trials)) == (a.seeds, a.caveats, a.kernels, len(a.trials))
        assert [t.address for t in b.having("samples")] == [t.address for t in a.having("samples")]
        assert len(b.having("samples")) == ("samples" in more) * len(a.trials)
        for name in metrics.REGISTRY:
            assert all(x == y or (math.isnan(x) and math.isnan(y)) for x, y in zip(a.values(name), b.values(name), strict=True)), name
            assert a.knows(name) == b.knows(name)
        assert (a.mean(), a.median("rtt_p95"), a.cv()) == (b.mean(), b.median("rtt_p95"), b.cv())
    assert record.document(lazily.outcomes[0], {}, "") == record.document(at_once.outcomes[0], {}, "")


def test_a_report_says_the_same_and_names_what_has_a_row_for_each_run(both, monkeypatch):
    monkeypatch.setattr("tcpscape.report.figures.draw", lambda *_: iter(()))
    at_once, lazily, root = both()
    report.build(at_once, root)
    before = {path: path.read_bytes() for path in root.rglob("*.*") if path.suffix in (".csv", ".yaml", ".html")}
    report.build(lazily, root)
    assert len(before) == 7
    assert before == {path: path.read_bytes() for path in before}
    monkeypatch.setattr(sys.modules["tcpscape.report.build"], "MOST_RUNS", 11)
    (root / "tables" / "runs.csv").unlink()
    report.build(lazily, root)
    assert not (root / "tables" / "runs.csv").exists()
    assert "tcpscape export" in (root / "report.html").read_text("utf-8")


def test_an_export_is_the_same(both, monkeypatch):
    _, _, root = both()
    lazily = sources.load(root).rows()
    monkeypatch.setattr(record, "AT_ONCE", 50_000)
    assert lazily.equals(sources.load(root).rows())


def test_a_trial_that_is_gone_or_damaged_is_one_line(both):
    _, lazily, root = both()
    (address, *_) = lazily.outcomes[0].cells[1].trials.addresses
    with Store(root) as store, store._database.transaction() as connection:
        connection.execute("UPDATE trials SET trial = '{' WHERE address = ?", (address,))
    with pytest.raises(StoreError, match=f"trial {address} of its manifest is missing"):
        lazily.outcomes[0].cells[1].values()
    with Store(root) as store, store._database.transaction() as connection:
        connection.execute("DELETE FROM trials WHERE address = ?", (address,))
    with pytest.raises(StoreError, match=f"trial {address} of its manifest is missing"):
        record.load(root)
