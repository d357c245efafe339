"""`tcpscape compare`: whether two results differ."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tcpscape.campaign import execute, record
from tcpscape.campaign.campaign import Campaign
from tcpscape.errors import TcpscapeError
from tcpscape.interchange import compare, iperf3, sources
from tcpscape.store.results import Store

DATA = Path(__file__).parent / "data" / "interchange"


def sweep(root: Path, slower: float = 1.0, **campaign) -> Path:
    """A result directory with a manifest: mock trials, their goodputs divided by `slower`."""
    said = {"name": "s", "conditions": {"rtt": "50ms", "flow": {"app": "1MB/s"}}, "axes": {"jitter": "0ms,4ms"}, "cca": "cubic,bbr", "seeds": 8, "engines": ["mock"]}
    outcome = execute.run(Campaign.of({**said, **campaign}))
    store = Store(root)
    cells = tuple(
        replace(c, runs=tuple(tuple(replace(t, flows=tuple(replace(f, goodput_mbps=f.goodput_mbps / slower) for f in t.flows)) for t in some) for some in c.runs))
        for c in outcome.cells
    )
    store.save_many([t for c in cells for t in c.trials])
    store.close()
    record.save(record.Record("sweep", "s", "tcpscape sweep", {"": replace(outcome, cells=cells)}), root)
    return root


def table(path: Path, **columns) -> Path:
    pl.DataFrame(columns).write_csv(path)
    return path


def answer(a: Path, b: Path, metric: str = "goodput"):
    return compare.compare(sources.load(a), sources.load(b), metric)


def test_the_same_result_is_alike_in_every_condition(tmp_path):
    got = answer(sweep(tmp_path / "a"), sweep(tmp_path / "b"))
    assert [(r.name, r.pairs, r.verdict) for r in got.rows] == [
        (f"{cca}, jitter {j}", 8, "alike") for j in ("0ms", "4ms") for cca in ("cubic", "bbr")
    ]
    assert all(r.comparison.median_ratio.value == 1 for r in got.rows)


def test_pairs_find_a_small_difference(tmp_path):
    got = answer(sweep(tmp_path / "a", slower=1.03), sweep(tmp_path / "b"))
    for row in got.rows:
        assert row.verdict == "slightly different"
        assert row.comparison.ratio.value == pytest.approx(1 / 1.03)
        assert row.comparison.win.value == 0
        assert row.pairs == 8


def test_other_seeds_are_not_paired(tmp_path):
    got = answer(sweep(tmp_path / "a"), sweep(tmp_path / "b", seeds="100..111"))
    assert [(len(r.a.numbers), len(r.b.numbers), r.pairs) for r in got.rows] == [(8, 12, 0)] * 4


def test_two_congestion_controls_on_one_path_are_pairs(tmp_path):
    both = sources.load(sweep(tmp_path / "a", axes={}))
    got = compare.compare(both.only("cubic"), both.only("bbr"))
    assert [(r.name, r.pairs) for r in got.rows] == [("cubic : bbr", 8)]


def test_two_congestion_controls_at_every_value_of_an_axis(tmp_path):
    both = sources.load(sweep(tmp_path / "a"))
    got = compare.compare(both.only("cubic"), both.only("bbr"))
    assert [(r.name, r.pairs) for r in got.rows] == [(f"cubic : bbr, jitter {j}", 8) for j in ("0ms", "4ms")]


def test_another_path_is_no_pair(tmp_path):
    one = sweep(tmp_path / "a", axes={}, cca="cubic")
    other = sweep(tmp_path / "b", axes={}, cca="cubic", conditions={"rtt": "60ms", "flow": {"app": "1MB/s"}})
    assert answer(one, other).rows[0].pairs == 0


def test_conditions_of_one_side_are_named(tmp_path):
    got = answer(sweep(tmp_path / "a"), sweep(tmp_path / "b", axes={"jitter": "4ms,8ms"}))
    assert [r.name for r in got.rows] == ["cubic, jitter 4ms", "bbr, jitter 4ms"]
    assert set(got.left_out) == {"A: cubic, jitter 0ms", "A: bbr, jitter 0ms", "B: cubic, jitter 8ms", "B: bbr, jitter 8ms"}


def test_what_was_exported_is_paired_with_what_it_came_from(tmp_path):
    root = sweep(tmp_path / "a", axes={}, cca="cubic")
    (tmp_path / "i").mkdir()
    for item in sources.load(root).items:
        (tmp_path / "i" / f"{item.trial.seed}.json").write_bytes(iperf3.write(item.trial))
    got = answer(root, tmp_path / "i")
    assert (got.rows[0].pairs, got.rows[0].verdict) == (8, "alike")


def test_measurements_of_iperf3_are_compared_but_not_paired():
    got = answer(DATA / "iperf3-up-2.json", DATA / "iperf3-reverse.json")
    assert got.rows[0].comparison.median_ratio.value == pytest.approx(50_644.0987 / 34_016.5498)
    assert (got.rows[0].pairs, got.rows[0].verdict) == (0, "undecided")
    assert any("one measurement" in c for c in got.caveats)


def test_tables_are_compared_by_column(tmp_path):
    a = table(tmp_path / "a.csv", run=[1, 2, 3, 4, 5, 6], speed=[10.0, 11, 12, 10, 11, 12])
    b = table(tmp_path / "b.csv", run=[1, 2, 3, 4, 5, 6], speed=[20.0, 22, 24, 20, 22, 24])
    (row,) = answer(a, b, "speed").rows
    assert row.comparison.median_ratio.value == 0.5
    assert row.verdict == "different"
    with pytest.raises(TcpscapeError, match="no column of numbers called 'goodput'; choose --metric of run, speed"):
        answer(a, b)


def test_a_table_against_a_result_directory(tmp_path):
    root = sweep(tmp_path / "a", axes={})
    b = table(tmp_path / "b.csv", cca=["cubic"] * 6, goodput_mbps=[7.9, 8.0, 8.1, 7.9, 8.0, 8.1])
    got = answer(root, b)
    assert [r.a.name for r in got.rows] == ["cubic"]
    assert got.left_out == ("A: bbr",)


def test_what_a_source_does_not_say_is_refused(tmp_path):
    said = json.loads((DATA / "iperf3-half-second.json").read_text())
    for end in said["end"]["streams"]:
        end["sender"].pop("retransmits")
    (tmp_path / "old.json").write_text(json.dumps(said))
    with pytest.raises(TcpscapeError, match="does not say retransmits"):
        answer(tmp_path / "old.json", DATA / "iperf3-up-2.json", "retransmits")
    with pytest.raises(TcpscapeError, match="does not say rtt"):
        answer(DATA / "iperf3-reverse.json", DATA / "iperf3-up-2.json", "rtt")


def test_nothing_in_common_is_refused(tmp_path):
    with pytest.raises(TcpscapeError, match=r"no condition is in both: A has cubic \| bbr; B has reno \| dctcp"):
        answer(sweep(tmp_path / "a", axes={}), table(tmp_path / "b.csv", cca=["reno", "dctcp"], goodput_mbps=[1.0, 2.0]))


def test_the_command(cli, tmp_path):
    a, b = sweep(tmp_path / "a", slower=2), sweep(tmp_path / "b")
    got = cli("compare", a, b)
    assert got.status == 0
    assert "cubic, jitter 4ms: A's goodput is 0.500 [" in got.out
    assert "4 of 4 conditions differ" in got.out
    assert "caveat: A: mock engine" in got.out
    only = cli("compare", a, b, "--cca", "bbr", "--metric", "rtt")
    assert "cubic" not in only.out


def test_one_condition_against_a_file(cli, tmp_path):
    root = sweep(tmp_path / "a")
    got = cli("compare", root, DATA / "iperf3-up-2.json", "--cca", "cubic", "--at", "jitter=4ms")
    assert got.status == 0
    assert "cubic, jitter 4ms : cubic" in got.out
    for at, says in (("jitter=9ms", "there are cubic, jitter 0ms"), ("jitter", "is not AXIS=VALUE")):
        got = cli("compare", root, root, "--at", at)
        assert (got.status, got.err.count("\n")) == (2, 1)
        assert says in got.err


def test_the_command_as_json(cli, tmp_path):
    got = cli("compare", sweep(tmp_path / "a", slower=2), sweep(tmp_path / "b"), "--json")
    (said,) = got.lines
    first = said["conditions"][0]
    assert (first["verdict"], first["paired"], first["a"]["n"], first["ratio_of_medians"]["value"]) == ("different", True, 8, 0.5)
    assert first["ratio_of_medians"]["low"] <= 0.5 <= first["ratio_of_medians"]["high"]


@pytest.mark.parametrize(
    ("check", "status"),
    [
        ("ratio < 0.6", 0), ("ratio.high < 0.6", 0), ("ratio > 0.95", 1), ("win[cca=bbr] <= 0.5", 0), ("difference < 0", 0), ("mean_ratio > 60%", 1),
        ("goodput > 1kbit", 0), ("goodput > 1gbit", 1), ("ratio.cv > 1", 2), ("ratio[cca=reno] > 1", 2), ("nosuch > 1", 2),
    ],
)
def test_checks_of_a_comparison(check, status, cli, tmp_path):
    a, b = sweep(tmp_path / "a", slower=2, axes={}), sweep(tmp_path / "b", axes={})
    assert cli("compare", a, b, "--check", check).status == status


def test_what_cannot_be_compared_is_one_line(cli, tmp_path):
    root = sweep(tmp_path / "a", axes={})
    (tmp_path / "bad.json").write_text("{")
    for args in ((root, tmp_path / "nosuch"), (root, tmp_path / "bad.json"), (root, root, "--metric", "nosuch"), (root, root, "--cca", "reno"), (root,)):
        got = cli("compare", *args)
        assert (got.status, got.err.count("\n"), got.out) == (2, 1, ""), args


def test_an_axis_that_neither_side_has_is_refused(cli, tmp_path):
    a = sweep(tmp_path / "a")
    got = cli("compare", a, a, "--at", "loss=1%")
    assert (got.status, got.out, got.err) == (2, "", "error: at: neither side has an axis 'loss'; choose jitter\n")
