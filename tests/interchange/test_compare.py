"""`tcpscape compare`: whether two results differ."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from conftest import TESTS
from tcpscape import stats
from tcpscape.campaign import execute, record
from tcpscape.campaign.campaign import Campaign
from tcpscape.errors import TcpscapeError
from tcpscape.interchange import compare, iperf3, sources
from tcpscape.store.results import Store
from tcpscape.words import comparison as sentences

DATA = TESTS / "data" / "interchange"


def sweep(root: Path, slower: float = 1.0, **campaign) -> Path:
    """A result directory with a manifest: mock trials, their goodputs divided by `slower`."""
    said = {
        "name": "s",
        "conditions": {"rtt": "50ms", "flow": {"app": "1MB/s"}},
        "axes": {"jitter": "0ms,4ms"},
        "cca": "cubic,bbr",
        "seeds": 8,
        "engines": ["mock"],
    }
    outcome = execute.run(Campaign.of({**said, **campaign}))
    store = Store(root)
    cells = tuple(
        replace(
            c,
            runs=tuple(
                tuple(replace(t, flows=tuple(replace(f, goodput_mbps=f.goodput_mbps / slower) for f in t.flows)) for t in some) for some in c.runs
            ),
        )
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
    assert all(r.comparison.ratio.value == 1 for r in got.rows)
    assert all(r.is_same and r.missing == 0 for r in got.rows)


def test_pairs_find_a_small_difference(tmp_path):
    got = answer(sweep(tmp_path / "a", slower=1.03), sweep(tmp_path / "b"))
    for row in got.rows:
        assert (row.verdict, row.comparison.ratio.value) == ("slightly different", pytest.approx(1 / 1.03))
        assert (row.comparison.win.value, row.pairs) == (0, 8)


def test_other_seeds_are_not_paired(tmp_path):
    got = answer(sweep(tmp_path / "a"), sweep(tmp_path / "b", seeds="100..111"))
    assert [(len(r.a.numbers), len(r.b.numbers), r.pairs) for r in got.rows] == [(8, 12, 0)] * 4


def test_two_congestion_controls_are_pairs_on_one_path_and_at_every_value_of_an_axis(tmp_path):
    for name, axes, ends in (("a", {"axes": {}}, [""]), ("b", {}, [", jitter 0ms", ", jitter 4ms"])):
        both = sources.load(sweep(tmp_path / name, **axes))
        got = compare.compare(both.only("cubic"), both.only("bbr"))
        assert [(r.name, r.pairs) for r in got.rows] == [(f"cubic : bbr{end}", 8) for end in ends]


def test_runs_of_the_same_seeds_are_pairs_on_another_path_too(tmp_path):
    """As in ratios of a sweep's cells; the same runs they are not."""
    one = sweep(tmp_path / "a", axes={}, cca="cubic")
    other = sweep(tmp_path / "b", axes={}, cca="cubic", conditions={"rtt": "60ms", "flow": {"app": "1MB/s"}})
    (row,) = answer(one, other).rows
    assert (row.pairs, row.is_same) == (8, False)


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


def test_a_directory_without_results_says_what_is_missing(cli, tmp_path):
    (tmp_path / "empty").mkdir()
    said = cli("compare", tmp_path / "empty", tmp_path / "empty")
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert "has no results.sqlite, and no file of iperf3, Flent or a table in its place; name a directory that --out wrote" in said.err
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "results.sqlite").touch()
    with pytest.raises(TcpscapeError, match=r"inner, which has one"):
        sources.load(tmp_path)


def test_measurements_of_iperf3_are_compared_but_not_paired():
    got = answer(DATA / "iperf3-up-2.json", DATA / "iperf3-reverse.json")
    assert got.rows[0].comparison.ratio.value == pytest.approx(50_644.0987 / 34_016.5498)
    assert (got.rows[0].pairs, got.rows[0].verdict) == (0, "undecided")
    assert any("one measurement" in c for c in sentences.caveats(got))


def test_tables_are_compared_by_column(tmp_path):
    a = table(tmp_path / "a.csv", run=[1, 2, 3, 4, 5, 6], speed=[10.0, 11, 12, 10, 11, 12])
    b = table(tmp_path / "b.csv", run=[1, 2, 3, 4, 5, 6], speed=[20.0, 22, 24, 20, 22, 24])
    (row,) = answer(a, b, "speed").rows
    assert (row.comparison.ratio.value, row.verdict) == (0.5, "different")
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
    path, line, *rest = got.out.splitlines()
    assert path.replace(str(tmp_path), "").startswith("A: /a; B: /b; goodput, Mbit/s")
    assert line == "→ 4 of 4 conditions differ; the largest difference is a ratio of 0.500 [0.500, 0.500] (cubic, jitter 0ms)."
    assert any(row.startswith("cubic, jitter 4ms  8 pairs  ") and row.rstrip().endswith("different") for row in rest)
    assert "caveat: A and B: mock engine" in got.out
    assert "A above B" not in got.out
    assert "A above B" in cli("compare", a, b, "--verbose").out
    assert cli("compare", a, b, "--quiet").out.splitlines() == [line]
    only = cli("compare", a, b, "--cca", "bbr", "--metric", "rtt")
    assert "cubic" not in only.out


def test_one_condition_against_a_file(cli, tmp_path):
    root = sweep(tmp_path / "a")
    got = cli("compare", root, DATA / "iperf3-up-2.json", "--cca", "cubic", "--at", "jitter=4ms")
    assert got.status == 0
    assert "cubic, jitter 4ms : cubic" in got.out


def test_the_command_as_json(cli, tmp_path):
    got = cli("compare", sweep(tmp_path / "a", slower=2), sweep(tmp_path / "b"), "--json")
    (said,) = got.lines
    first = said["conditions"][0]
    assert (first["verdict"], first["paired"], first["same_runs"], first["a"]["n"]) == ("different", True, False, 8)
    assert [first[name]["value"] for name in ("ratio_of_means", "ratio_of_medians")] == [0.5, 0.5]
    assert first["ratio_of_means"]["low"] <= 0.5 <= first["ratio_of_means"]["high"]
    assert said["statistic"] == "mean"


@pytest.mark.parametrize(
    ("check", "status"),
    [
        ("ratio < 0.6", 0),
        ("ratio.high < 0.6", 0),
        ("ratio > 0.95", 1),
        ("win[cca=bbr] <= 0.5", 0),
        ("difference < 0", 0),
        ("mean_ratio > 60%", 1),
        ("median_ratio < 0.6", 0),
        ("goodput > 1kbit", 0),
        ("goodput > 1gbit", 1),
        ("ratio.cv > 1", 2),
        ("ratio.median < 1", 2),
        ("ratio[cca=reno] > 1", 2),
        ("nosuch > 1", 2),
    ],
)
def test_checks_of_a_comparison(check, status, cli, tmp_path):
    a, b = sweep(tmp_path / "a", slower=2, axes={}), sweep(tmp_path / "b", axes={})
    assert cli("compare", a, b, "--check", check).status == status


def goodputs(root: Path, values: list[float]) -> Path:
    """A result directory with a manifest whose trials, seeds 0 on, have these goodputs."""
    outcome = execute.run(Campaign.of({"name": "s", "conditions": {"rtt": "50ms"}, "cca": "cubic", "seeds": len(values), "engines": ["mock"]}))
    (cell,) = outcome.cells
    runs = tuple(
        replace(t, address=f"{t.address}{root.name}", hash=None, flows=tuple(replace(f, goodput_mbps=v) for f in t.flows))
        for t, v in zip(cell.trials, values, strict=True)
    )
    store = Store(root)
    store.save_many(runs)
    store.close()
    record.save(record.Record("sweep", "s", "tcpscape sweep", {"": replace(outcome, cells=(replace(cell, runs=(runs,)),))}), root)
    return root


SCATTERED = [2.0, 8.0, 3.0, 9.0, 4.0, 7.0, 5.0, 6.0]


def test_equal_pairs_are_alike_however_they_scatter(cli, tmp_path):
    """Each pair has the ratio 1: that of the means is 1.00 [1.00, 1.00] and decides. That of the medians scatters as the runs do."""
    a, b = goodputs(tmp_path / "a", SCATTERED), goodputs(tmp_path / "b", SCATTERED)
    (row,) = answer(a, b).rows
    assert (row.pairs, row.verdict, row.missing, row.comparison.ratio.text()) == (8, "alike", 0, "1.00 [1.00, 1.00]")
    assert row.comparison.median_ratio.low < 0.95
    got = cli("compare", a, b, "--check", "ratio.low >= 0.95", "--check", "mean_ratio.low >= 0.95")
    assert got.status == 0
    assert cli("compare", a, b, "--check", "median_ratio.low >= 0.95").status == 1
    assert "A / B of means" in " ".join(got.out.split())


def test_the_verdict_follows_the_ratio_of_means(tmp_path):
    """One run of eight is a tenth of its twin: the median stays, the mean falls from 5.5 to 44/8 - 5.4/8 = 4.825, by 12 %."""
    a, b = (
        goodputs(tmp_path / "a", [0.6, *[5.0, 6.0, 5.5, 5.4, 5.6, 5.3, 5.2]]),
        goodputs(tmp_path / "b", [6.0, *[5.0, 6.0, 5.5, 5.4, 5.6, 5.3, 5.2]]),
    )
    (row,) = answer(a, b).rows
    assert row.means[0].value / row.means[1].value == pytest.approx(row.comparison.ratio.value) == pytest.approx(38.6 / 44)
    assert (row.verdict, row.missing) == ("undecided", stats.runs_missing(row.comparison.ratio))


def test_the_very_same_runs_are_called_so(cli, tmp_path):
    a, b = sweep(tmp_path / "a", axes={}, cca="cubic"), sweep(tmp_path / "b", axes={}, cca="cubic")
    assert cli("compare", a, b, "--quiet").out == "→ cubic: A and B are the same runs, packet for packet.\n"
    assert (
        cli("compare", sweep(tmp_path / "c"), tmp_path / "c", "--quiet").out
        == "→ All 4 conditions are the same runs on both sides, packet for packet.\n"
    )
    assert [c["same_runs"] for c in cli("compare", a, b, "--json").lines[0]["conditions"]] == [True]
    one = goodputs(tmp_path / "one", [5.0])
    assert answer(one, one).rows[0].verdict == "alike"  # one trial has no interval, and yet it is itself


def test_nothing_on_both_sides_is_alike(tmp_path):
    """0 over 0 is no ratio; a difference of 0 [0, 0] decides."""
    (row,) = answer(goodputs(tmp_path / "a", [0.0] * 6), goodputs(tmp_path / "b", [0.0] * 6)).rows
    assert (row.verdict, row.missing) == ("alike", 0)


def test_the_line_of_a_check_says_what_it_is_of(cli, tmp_path):
    a, b = goodputs(tmp_path / "a", SCATTERED), goodputs(tmp_path / "b", [2 * v for v in SCATTERED])
    lines = cli("compare", a, b, "--check", "ratio.low > 1", "--check", "ratio < 1", "--check", "goodput < 100", "--verbose").out.splitlines()
    assert "FAILS: ratio.low > 1: cubic low end 0.500 of ratio of means of goodput 0.500 [0.500, 0.500] (n 8)" in lines
    assert "holds: ratio < 1: cubic ratio of means of goodput 0.500 [0.500, 0.500] (n 8)" in lines
    assert any(line.startswith("holds: goodput < 100: A: cubic median 5.5 [") for line in lines)


PATH = {"rtt": "50ms", "rate": "10mbit", "flow": {"app": "1MB/s"}}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"rtt": "60ms"}, "RTT 50ms / 60ms, queue a FIFO of 62.5kB (1 BDP) / a FIFO of 75kB (1 BDP)"),
        ({"kernel": "6.1,wmem_max=256KiB"}, "kernel wmem_max default / 256KiB"),
        ({"buffer": "2bdp"}, "queue a FIFO of 62.5kB (1 BDP) / a FIFO of 125kB (2 BDP)"),
        ({"duration": "5s"}, "duration 10s / 5s"),
        ({"flow": {"app": "1MB/s", "read": "16KiB/1ms"}}, "flows read size 64KiB / 16KiB, flows read delay 0s / 1ms"),
    ],
)
def test_paths_that_differ_are_a_caveat_with_both_values(change, text, cli, tmp_path):
    a, b = sweep(tmp_path / "a", conditions=PATH), sweep(tmp_path / "b", conditions={**PATH, **change})
    got = cli("compare", a, b, "--json").lines[0]
    assert f"the paths differ: {text}" in got["caveats"]
    assert f"caveat: the paths differ: {text}" in " ".join(cli("compare", a, b).out.split())


def test_a_path_that_differs_in_some_conditions_names_them(tmp_path):
    """Jitter 0 with 1 MB/s on both sides; with 4 ms B's applications are twice as fast."""
    axes = {"jitter": "0ms,4ms"}
    a, fast = (sources.load(sweep(tmp_path / app[0], axes=axes, conditions={"rtt": "50ms", "flow": {"app": app}})) for app in ("1MB/s", "2MB/s"))
    both = replace(a, groups=tuple(g if g.at["jitter"] == "4ms" else o for o, g in zip(a.groups, fast.groups, strict=True)))
    caveats = sentences.caveats(compare.compare(a, both))
    assert [c for c in caveats if "paths differ" in c] == ["cubic, jitter 4ms and 1 more: the paths differ: application 1MB/s / application 2MB/s"]
    assert not [c for c in sentences.caveats(compare.compare(a, a)) if "paths differ" in c]


def test_congestion_controls_alone_are_no_difference_of_paths(tmp_path):
    both = sources.load(sweep(tmp_path / "a", axes={}))
    assert not [c for c in sentences.caveats(compare.compare(both.only("cubic"), both.only("bbr"))) if "paths" in c]


def test_the_answer_names_the_largest_difference(cli, tmp_path):
    """With half of the goodput at 4 ms and the same at 0 ms, the ratio of the first is named."""
    a, b = sources.load(sweep(tmp_path / "a", slower=2)), sources.load(sweep(tmp_path / "b"))
    mixed = replace(a, groups=tuple(x if (x.cca, x.at["jitter"]) == ("bbr", "4ms") else y for x, y in zip(a.groups, b.groups, strict=True)))
    text = sentences.answer(compare.compare(mixed, b))
    assert (
        text
        == "1 of 4 conditions differ; the largest difference is a ratio of 0.500 [0.500, 0.500] (bbr, jitter 4ms); in 3 the means are surely within 5 %."
    )


def test_a_directory_of_several_commands_is_named(cli, tmp_path):
    """Two commands in one directory are two parts, of which the other side has none."""
    args = ("--cca", "cubic,bbr", "--engine", "mock", "--seeds", "2", "--quiet", "--out")
    cli("run", "baseline", *args, tmp_path / "a")
    cli("run", "baseline", *args, tmp_path / "b")
    cli("run", "baseline", "--duration", "3s", *args, tmp_path / "b")
    got = cli("compare", tmp_path / "a", tmp_path / "b")
    assert got.status == 2
    assert got.err.endswith("; B holds the results of several commands: give each its own --out\n")


def test_intervals_are_those_of_the_campaign(tmp_path):
    """Ratios and means of cells whose runs were added until they sufficed: compare has the same wider intervals as the outcome."""
    said = {"name": "s", "conditions": {"rtt": "50ms"}, "cca": "cubic,bbr", "engines": ["mock"], "precision": "20%", "max_seeds": 12}
    outcome = execute.run(Campaign.of(said))
    cubic, bbr = outcome.cells
    source = sources.of_outcome(outcome)
    (row,) = compare.compare(source.only("cubic"), source.only("bbr")).rows
    assert cubic.until_precise
    assert (row.comparison.ratio, row.means[0], row.medians[1]) == (cubic.over(bbr), cubic.mean(), bbr.median())
    assert row.comparison.ratio.low < stats.ratio(cubic.values(), bbr.values()).low


def test_a_check_chooses_conditions_and_sides(cli, tmp_path):
    """By the axes that the sides have, and by the side: a ratio of two congestion controls is of one side, not of A's over B's."""
    a, b = sweep(tmp_path / "a", slower=2), sweep(tmp_path / "b")

    def checked(text: str) -> list[str]:
        got = cli("compare", a, b, "--verbose", "--check", text)
        assert got.status == 0, got.err
        return [line.split(": ", 2)[2].partition(" median")[0].partition(" ratio")[0] for line in got.out.splitlines() if line.startswith("holds: ")]

    assert checked("ratio[cca=bbr, jitter=4ms] < 0.6") == ["bbr, jitter 4ms"]
    assert checked("goodput[side=A, jitter=0ms] > 1kbit") == ["A: cubic, jitter 0ms", "A: bbr, jitter 0ms"]
    assert checked("goodput[cca=bbr over cubic, jitter=4ms] > 0.1") == [f"{s}: bbr, jitter 4ms over {s}: cubic, jitter 4ms" for s in ("A", "B")]


def flent_file(path: Path, cca: str, least_ms: float, mbps: float) -> Path:
    """A Flent file of one upload with a least RTT."""
    times = [0.2 * i for i in range(1, 60)]
    series = {"TCP upload": [mbps] * 59, "TCP upload::tcp_rtt": [least_ms + i % 3 for i in range(59)]}
    meta = {"TITLE": path.stem, "NAME": "tcp_1up", "SERIES_META": {"TCP upload": {"CONG_CONTROL": cca}}}
    path.write_text(json.dumps({"version": 4, "metadata": meta, "x_values": times, "results": series}))
    return path


def test_measurements_of_two_paths_are_two_conditions(cli, tmp_path):
    """Two files of each congestion control, of 25 and 75 ms: four measurements are two conditions with one run a side, never one with two."""
    for cca, speed in (("cubic", 40), ("bbr", 50)):
        for least, name in ((25.3, "near"), (75.2, "far"), (25.9, "near-again"), (75.4, "far-again")):
            flent_file(tmp_path / f"{cca}-{name}.flent", cca, least, speed * 25 / least)
    got = cli("compare", tmp_path, tmp_path, "--cca", "cubic:bbr", "--json").lines[0]
    assert [(c["condition"], c["a"]["n"], c["b"]["n"]) for c in got["conditions"]] == [
        ("cubic : bbr, least RTT 25.9ms", 2, 2),
        ("cubic : bbr, least RTT 75.4ms", 2, 2),
    ]
    one = cli("compare", tmp_path, tmp_path, "--cca", "cubic:bbr", "--at", "least RTT=75.4ms").out
    assert "cubic : bbr, least RTT 75.4ms: A's goodput is 0.8" in one


def test_two_paths_of_different_sides_are_named(cli, tmp_path):
    a, b = flent_file(tmp_path / "a.flent", "cubic", 25.3, 40), flent_file(tmp_path / "b.flent", "cubic", 75.2, 13)
    assert "caveat: cubic: the sides were measured on different paths, least RTT 25.3 ms and 75.2 ms" in cli("compare", a, b).out
    again = flent_file(tmp_path / "c.flent", "cubic", 26.9, 40)
    assert "different paths" not in cli("compare", a, again).out


def test_a_sweep_that_was_exported_keeps_its_axes(cli, tmp_path):
    """The rows of an axis are conditions of their own, not runs of one."""
    root = sweep(tmp_path / "a")
    cli("export", root, "--to", "csv", "--out", tmp_path / "rows.csv")
    got = answer(root, tmp_path / "rows.csv")
    assert [(r.name, r.pairs, r.verdict) for r in got.rows] == [
        (f"{cca}, jitter {j}", 8, "alike") for j in ("0ms", "4ms") for cca in ("cubic", "bbr")
    ]
    assert len(cli("compare", root, tmp_path / "rows.csv", "--at", "jitter=4ms", "--json").lines[0]["conditions"]) == 2


def test_an_open_question_says_how_many_runs_it_takes(cli, tmp_path):
    a = table(tmp_path / "a.csv", run=range(8), speed=[10.0, 14, 8, 11, 15, 9, 12, 7])
    b = table(tmp_path / "b.csv", run=range(8), speed=[9.0, 13, 8, 10, 13, 8, 11, 9])
    (row,) = answer(a, b, "speed").rows
    assert row.verdict == "undecided"
    assert row.missing > 0
    out = cli("compare", a, b, "--metric", "speed").out
    assert f"undecided, about {row.missing} more runs a side would probably decide." in " ".join(out.split())
    assert "Next: more measurements of both sides, " in out
    assert cli("compare", a, b, "--metric", "speed", "--json").lines[0]["conditions"][0]["missing_runs"] == row.missing


@pytest.mark.parametrize("width", [60, 80, 100, 150])
def test_the_screen_fits(cli, tmp_path, monkeypatch, width):
    """24 conditions: 20 lines (at 60 characters one more), none too wide, no name cut."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.chdir(tmp_path)
    axes = {"jitter": "0..11ms/1ms"}
    sweep(tmp_path / "a", slower=2, axes=axes)
    sweep(tmp_path / "b", axes=axes)
    lines = cli("compare", "a", "b").out.splitlines()
    assert len(lines) <= (21 if width == 60 else 20)
    assert max(len(line.rstrip()) for line in lines if not line.startswith("Next: ")) <= width
    assert lines[1].startswith("→ 24 of 24 conditions differ")
    assert [line for line in lines if line.startswith("cubic, jitter 2ms ")]
    assert any("0.500 [" in line for line in lines)


def test_markdown_has_every_condition_and_the_checks(cli, tmp_path):
    """24 conditions, of which the screen shows 6; a list of caveats and one of checks."""
    axes = {"jitter": "0..11ms/1ms"}
    a, b = sweep(tmp_path / "a", slower=2, axes=axes), sweep(tmp_path / "b", axes=axes)
    got = cli("compare", a, b, "--markdown", "--check", "ratio[cca=bbr] < 0.4")
    assert got.status == 1
    lines = got.out.splitlines()
    assert lines[0] == f"A: {a}; B: {b}; goodput, Mbit/s"
    assert lines[2].startswith("**24 of 24 conditions differ; ")
    assert lines[4] == "| condition | n | mean of A | mean of B | A / B of means [95 %] | verdict |"
    assert len([line for line in lines if line.startswith(("| cubic, ", "| bbr, "))]) == 24
    assert lines[-1].startswith("- FAILS: ratio[cca=bbr] < 0.4: bbr, jitter 11ms ratio of means of goodput 0.500 [")


def test_no_mean_is_above_the_link(cli, tmp_path):
    """Means near the link's 8 Mbit/s: an interval end above it is `≤ link`."""
    root = sweep(tmp_path / "a", slower=0.01, axes={}, cca="cubic", conditions={"rtt": "50ms", "rate": "8mbit", "flow": {"app": "1MB/s"}})
    assert "≤ link]" in cli("compare", root, root).out


def test_the_next_command_compares_the_delay_of_the_same(cli, tmp_path):
    a, b = sweep(tmp_path / "a", slower=2), sweep(tmp_path / "b")
    line = " ".join(cli("compare", a, b, "--cca", "cubic:bbr").out.split()).partition("Next: ")[2]
    assert line == f"tcpscape compare {a} {b} --cca cubic:bbr --metric rtt_p95 (the delay)"
    assert cli(*line.removeprefix("tcpscape ").removesuffix(" (the delay)").split()).status == 0
    speed = table(tmp_path / "s.csv", speed=[1.0] * 6)
    assert "Next" not in cli("compare", speed, speed, "--metric", "speed").out


def test_a_screen_of_many_conditions_makes_the_rows_that_it_shows(tmp_path, monkeypatch):
    root = sweep(tmp_path / "a", axes={"jitter": "0..11ms/1ms"})
    result = answer(root, root)
    made = []
    row = sentences._row
    monkeypatch.setattr(sentences, "_row", lambda *of: made.append(of) or row(*of))
    screen = sentences.screen(result, "a", "b")
    (shown,) = screen.tables
    assert (len(result.rows), not made, len(list(shown.rows)), len(made)) == (24, True, 6, 6)
    assert [*shown.rows, *screen.details[0].rows] == [row(result, one) for one in result.rows]
