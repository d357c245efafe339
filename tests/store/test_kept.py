"""Trials of a large directory, read when they are asked for: the same ones, numbers and pages as of one that is read at once."""

import math
import sys

import pytest

from tcpscape import metrics, report
from tcpscape.campaign import execute, record
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Execution
from tcpscape.errors import StoreError
from tcpscape.interchange import compare, sources
from tcpscape.store import rows
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


def test_a_comparison_is_the_same_and_makes_no_trial(both, monkeypatch):
    at_once, _, root = both()
    made = []
    decode = rows.decode
    monkeypatch.setattr(rows, "decode", lambda *row: made.append(row) or decode(*row))
    kept = sources.load(root)
    a, b = compare.choose(kept, sources.load(root), "cubic:bbr")
    result = compare.compare(a, b)
    assert not made
    assert [(row.pairs, row.is_same) for row in result.rows] == [(3, False)] * 2
    assert all(row.is_same for row in compare.compare(kept, kept).rows)
    assert not made
    x, y = (sources.of_outcome(outcome).only(cca) for cca in ("cubic", "bbr") for outcome in at_once.outcomes)
    assert shown(compare.compare(x, y)) == shown(result)
    assert [row.a.scenarios for row in compare.compare(x, y).rows] == [row.a.scenarios for row in result.rows]
    made.clear()
    delays = compare.compare(a, b, "rtt_p95")
    assert len(made) == 12 + 9, "none for the metric; for their traces, which are wanted as the RTTs are equal, those from the first of each side on"
    assert shown(compare.compare(x, y, "rtt_p95")) == shown(delays)


def shown(result):
    """What a comparison comes to, whatever its trials are read from."""
    return (
        result.caveats,
        result.left_out,
        [(row.name, row.means, row.medians, row.comparison, row.pairs, row.is_same, row.verdict) for row in result.rows],
    )


def test_an_export_makes_each_trial_once_and_few_at_a_time(both, monkeypatch):
    at_once, _, root = both(axes={"jitter": "1,5,9ms"}, seeds="4")
    at_a_time = []
    of_batch = rows.flow_rows
    monkeypatch.setattr(rows, "AT_A_TIME", 8)
    monkeypatch.setattr(rows, "flow_rows", lambda trials: at_a_time.append(len(batch := list(trials))) or of_batch(batch))
    decode, made = rows.decode, []
    monkeypatch.setattr(rows, "decode", lambda *row: made.append(row) or decode(*row))
    frame = sources.load(root).rows()
    assert (at_a_time, len(made)) == ([8, 8, 8], 24)
    monkeypatch.setattr(rows, "AT_A_TIME", 10_000)
    assert frame.equals(sources.of_outcome(at_once.outcomes[0]).rows())
    assert at_a_time[3:] == [24]
    assert frame["address"].to_list() == [trial.address for trial in at_once.outcomes[0].trials]


@pytest.mark.parametrize("more", [{}, {"pool": ["jitter"]}, {"samples": "100ms"}, {"precision": "20%", "max_seeds": 12, "metric": "rtt_p95"}])
def test_a_campaign_of_many_trials_holds_none_and_says_the_same(tmp_path, monkeypatch, more):
    campaign = Campaign.of({**CAMPAIGN, "engines": ["model"], "conditions": {**CAMPAIGN["conditions"], "duration": "1s"}, **more})
    with Store(tmp_path / "held") as store:
        held, _ = record.measure("sweep", campaign, Execution(store=store), "tcpscape sweep")
    monkeypatch.setattr(execute, "MOST_HELD", 0)
    told = []
    with Store(tmp_path / "forgotten") as store:
        forgotten, _ = record.measure("sweep", campaign, Execution(store=store, progress=lambda *of: told.append(of)), "tcpscape sweep")
        ran = store.saved
    assert told[-1] == (ran, ran) == (held.trial_count, held.trial_count)
    for a, b in zip(held.cells, forgotten.cells, strict=True):
        assert isinstance(b.trials, KeptTrials)
        assert (list(b.trials), [list(run) for run in b.runs]) == (list(a.trials), [list(run) for run in a.runs])
        assert [t.address for t in b.having("samples")] == [t.address for t in a.having("samples")]
    assert forgotten.frame().equals(held.frame())
    assert forgotten.flows().equals(held.flows())
    assert record.document(forgotten, {}, "") == record.document(held, {}, "")
    with Store(tmp_path / "forgotten") as store:
        again, _ = record.measure("sweep", campaign, Execution(store=store), "tcpscape sweep")
        assert store.saved == 0, "what is kept does not run again"
    assert list(again.each_trial()) == list(held.trials)


def test_trials_that_are_not_held_have_the_name_of_their_scenario(tmp_path, monkeypatch):
    campaigns = [Campaign.of({**CAMPAIGN, "name": name}) for name in ("first", "second")]
    monkeypatch.setattr(execute, "MOST_HELD", 0)
    for campaign in campaigns:
        with Store(tmp_path) as store:
            outcome = execute.run(campaign, Execution(store=store))
        assert {trial.scenario for trial in outcome.each_trial()} == {cell.scenarios[0].name for cell in outcome.cells}
        assert {cell.trials[0].scenario for cell in outcome.cells} == {cell.scenarios[0].name for cell in outcome.cells}


def test_a_metric_is_read_without_the_trials(both, monkeypatch):
    at_once, lazily, _ = both()
    decode, made = rows.decode, []
    monkeypatch.setattr(rows, "decode", lambda *row: made.append(row) or decode(*row))
    for name in ("added_rtt", "retransmits", "jain", "rpm", "cwnd_limited", "completion", "goodput:bbr"):
        for a, b in zip(at_once.outcomes[0].cells, lazily.outcomes[0].cells, strict=True):
            assert all(x == y or (math.isnan(x) and math.isnan(y)) for x, y in zip(a.values(name), b.values(name), strict=True)), name
        assert bool(made) == (name == "goodput:bbr"), "a metric of some flows makes another trial of each"
    shelf = lazily.outcomes[0].cells[0].trials._shelf
    with pytest.raises(LookupError, match="queues is not in a row"):
        shelf._excerpted(metrics.find("queue").of)
