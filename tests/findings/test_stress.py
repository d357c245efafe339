"""The search for the worst cell: what it finds without being told, how it makes a cell simple, and what it keeps."""

import pytest

from tcpscape.engines.model import Model
from tcpscape.findings import stress
from tcpscape.findings.stress import INGREDIENTS, KINDS, Search

PLAIN = {i.name: i.plain for i in INGREDIENTS}


def search(control, goal, **options):
    return Search(Model(), control, KINDS[goal], options.pop("against", stress.reference(goal, control)), jobs=2, **options)


@pytest.mark.parametrize(
    ("control", "goal", "cell", "least"),
    [
        ("bbr", "loss", {"buffer": 0.2, "flows": 4}, 0.05),
        ("vegas", "starve", {"rate": 50, "jitter": 1.5, "buffer": 4}, 0.6),
        ("cubic", "stall", {"rtt": 200, "reordering": 0.3}, 0.6),
        ("cubic", "stall", {"pulse": 20, "period": 0.5, "buffer": 0.25}, 0.6),
    ],
)
def test_what_is_known_to_go_wrong_is_among_its_cells(control, goal, cell, least):
    assert search(control, goal)._of([PLAIN | cell])[0] > least


def test_a_plain_path_is_bad_for_nobody():
    assert search("cubic", "stall")._of([PLAIN])[0] < 0.1
    assert search("bbr", "loss")._of([PLAIN])[0] < 0.05
    assert search("reno", "starve")._of([PLAIN])[0] < 0.5


def test_reducing_takes_away_what_the_badness_does_not_need():
    s = search("cubic", "stall", against=None)
    cell = PLAIN | {"rate": 23.456, "loss": 2.0, "jitter": 0.06}
    simple = s._reduced(cell)
    assert simple["jitter"] == 0
    assert simple["loss"] in (2.0, 0.0)
    assert simple["rate"] == 20
    assert s._badness(simple) >= stress.KEPT * s._badness(cell)


@pytest.mark.slow
def test_the_same_seed_finds_the_same_and_more_than_one_cause():
    first, again = (search("cubic", "stall", trials=96, seed=3) for _ in range(2))
    first.run()
    again.run()
    assert [f.cell for f in first.findings] == [f.cell for f in again.findings]
    assert len({f.cause for f in first.findings}) == len(first.findings) >= 2
    assert first.findings[0].badness.value >= first.findings[-1].badness.value >= KINDS["stall"].shows * 0.5


def test_without_time_it_shows_what_it_has():
    s = search("bbr", "loss", seconds=0.0)
    s.run()
    assert s.was_cut
    assert len(s.findings) == 1


def test_an_interrupted_search_keeps_the_worst():
    s = search("bbr", "loss")
    s.worst = (0.3, PLAIN | {"buffer": 0.1, "flows": 4})
    s.keep()
    assert s.findings[0].cause == ("flows",)


def test_the_command_keeps_the_cell_and_its_figure(cli, tmp_path):
    got = cli("stress", "bbr", "--goal", "loss", "--trials", "48", "--no-proof", "--out", tmp_path / "worst", "--json")
    assert got.status == 0
    (document,) = got.lines
    assert document["complete"]
    assert document["findings"][0]["shows"]
    assert {f.name for f in (tmp_path / "worst").iterdir()} == {"worst.yaml", "stress.json", "worst.png", "worst.svg"}
    again = cli("run", tmp_path / "worst" / "worst.yaml", "--seeds", "1001..1003", "--quiet")
    assert again.status == 0


@pytest.mark.parametrize(
    ("args", "line"), [(("cubic", "--goal", "fame"), "goal: 'fame' is unknown; "), (("cubicc",), "cubicc"), (("cubic", "--time", "long"), "time: ")]
)
def test_bad_input_is_one_line_with_status_2(cli, args, line):
    got = cli("stress", *args)
    assert got.status == 2
    assert line in got.err
    assert got.err.count("\n") == 1
