"""`tcpscape cliff`: edges as a table and as JSON, and what it refuses."""

import subprocess
import sys

import polars as pl
import pytest

from tcpscape import stats
from tcpscape.findings.cliff.levels import Cliff, jitter_axis, level, loss_axis
from tcpscape.plots import curves
from tcpscape.scenario.options import Conditions
from tcpscape.stats import Estimate
from tcpscape.words import cliff as answer
from tcpscape.words.cliff import CliffSearch

RIG = ("--rcvbuf", "256KiB", "--app", "5MiB/s", "--duration", "5s", "--most", "0")


def test_edges_of_two_paths(cli, need_model):
    got = cli("cliff", "--rtt", "24,50ms", "--cca", "bbr", *RIG, "--json")
    assert got.status == 0, got.err
    for said, rtt in zip(got.lines, (24e6, 50e6), strict=True):
        assert (said["cca"], said["rtt_ns"], said["threshold"]) == ("bbr", rtt, 0.5)
        assert 0.08 < said["edge"] / rtt < 0.25
        assert said["interval"][0] <= said["edge"] <= said["interval"][1]
        assert sum(x["n"] for x in said["levels"]) <= said["runs"]
        assert (said["statistic"], said["engine"], said["scenario"]["flows"][0]["cca"]) == ("mean", "model", "bbr")
        assert said["engine_version"].startswith(said["tcpscape"])


def test_a_search_loads_neither_tables_nor_optimisers():
    """They take as long as a search's first trials, which its first words would wait for."""
    program = "import sys; from tcpscape.cli.main import call; call(sys.argv[1:]); print(sorted({'polars', 'scipy.optimize'} & sys.modules.keys()))"
    ended = subprocess.run([sys.executable, "-c", program, "cliff", "--rtt", "50ms", "--engine", "mock"], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_the_table(cli, need_model):
    got = cli("cliff", "--rtt", "50ms", "--along", "loss", "--threshold", "30%", "--cca", "cubic", *RIG)
    assert got.status == 0, got.err
    lines = got.out.splitlines()
    assert lines[0].startswith(
        "RTT 50ms, no bottleneck, application 5MiB/s, SO_RCVBUF 256KiB, 1 flow, kernel 6.1, 5s; loss is random, of each direction"
    )
    assert lines[1].startswith("→ Mean goodput falls to 30 % of the unimpaired: cubic at ")
    row = next(line for line in got.out.splitlines() if line.startswith("cubic"))
    assert (row.split()[1], row.split()[3]) == ("50ms", "%")


def test_a_path_whose_jitter_keeps_the_order_has_another_edge(cli, need_model):
    edges = [cli("cliff", "--rtt", "50ms", "--cca", "bbr", "--order", order, *RIG, "--json").lines[0] for order in ("reorder", "keep")]
    assert edges[0]["edge"] < 12e6
    assert edges[1]["edge"] is None or edges[1]["edge"] > 2 * edges[0]["edge"]
    assert edges[1]["scenario"] == edges[0]["scenario"] | {"forward": edges[1]["scenario"]["forward"], "reverse": edges[1]["scenario"]["reverse"]}


def test_edges_and_levels_are_kept(cli, tmp_path):
    got = cli("cliff", "--rtt", "24,50ms", "--cca", "cubic", "--engine", "mock", "--most", "0", "--out", tmp_path / "new")
    assert got.out.splitlines()[-1] == f"Next: open {tmp_path / 'new' / 'edges.csv'}"
    edges, levels = (pl.read_csv(tmp_path / "new" / name) for name in ("edges.csv", "levels.csv"))
    assert (edges["rtt_ns"].to_list(), set(edges["statistic"])) == ([24_000_000, 50_000_000], {"mean"})
    assert set(levels["rtt_ns"]) == {24_000_000, 50_000_000}
    assert {"engine", "engine_version", "tcpscape", "first_seed", "scenario"} <= set(edges.columns)
    assert set(levels["first_seed"]) == {0}


def test_each_level_says_its_seeds(cli):
    """A quick look has the same ones everywhere, any other search none twice."""
    edge = cli("cliff", "--rtt", "50ms", "--cca", "cubic", "--engine", "mock", "--json").lines[0]
    first = [level["first_seed"] for level in edge["levels"]]
    assert edge["first_seed"] == 0
    assert len({edge["first_seed"], *first}) == 1 + len(first)


@pytest.mark.parametrize(("low", "high", "said"), [(0.0, 1e-2, "below 1.00% so far"), (1e-3, 2e-3, "between 0.100% and 0.200% so far")])
def test_between_which_levels_an_edge_is_so_far(low, high, said):
    assert answer.so_far(loss_axis(), low, high) == said


def searched(cca="cubic", rtt="50ms", edge=(7e6, 6.5e6, 7.5e6), torn=(8e6,)):
    """A search whose edge is known; the levels `torn` have runs on both sides of the threshold."""
    at = [1e6, 6e6, 8e6, 20e6]
    runs = [[10.0] * 8 if x < 7e6 and x not in torn else [10.0, 1.0] * 4 if x in torn else [1.0] * 8 for x in at]
    path = Conditions(rtt=rtt)
    levels = tuple(level(x, values, [10.0] * 8) for x, values in zip(at, runs, strict=True))
    found = Cliff(jitter_axis(path.rtt), stats.mean([10.0] * 8, "Mbit/s"), levels, Estimate(*edge, 32, "ns") if edge else None, 40)
    return CliffSearch(cca, path, "jitter", 0.5, found)


def test_the_answer_has_the_edge_its_interval_and_its_share_of_the_rtt():
    text = "Mean goodput falls to half of the unimpaired: cubic at 7.00 ms [6.50, 7.50] of jitter (14.0 % of the RTT), bbr nowhere up to 20.0ms (keeps 10 % [10, 10] there)."
    assert answer.cliff_answer([searched(), searched("bbr", edge=None)]) == text
    two = answer.cliff_answer([searched(), searched(rtt="100ms", edge=(9e6, 8e6, 11e6))])
    assert "cubic at 7.00 ms [6.50, 7.50] (RTT 50ms, 14.0 % of it) to 9.00 ms [8.00, 11.0] (RTT 100ms, 9.0 % of it) of jitter" in two


def test_without_an_edge_the_answer_has_the_lowest_retention_and_where_it_is():
    """55 % at 8 ms, 80 % at 20 ms: the axis was searched to 20 ms, the least is at 8 ms."""
    found = searched("bbr", edge=None)
    path, base = found.path, [10.0] * 8
    levels = tuple(level(x, values, base) for x, values in ((8e6, [5.4, 5.6] * 4), (20e6, [8.0] * 8)))
    above = CliffSearch("bbr", path, "jitter", 0.5, Cliff(found.result.axis, found.result.baseline, levels, None, 24))
    said = answer.cliff_answer([above])
    assert said.startswith("Mean goodput falls to half of the unimpaired: bbr nowhere up to 20.0ms (keeps 55 % [5")
    assert said.endswith("] at 8.00ms).")
    assert answer.cliff_answer([CliffSearch("bbr", path, "jitter", 0.5, Cliff(found.result.axis, found.result.baseline, (), None, 4))]).endswith(
        "never, nothing gets through."
    )


def test_a_path_that_falls_and_recovers_has_no_edge_but_says_where_it_fell():
    found = searched("bbr", edge=None)
    levels = tuple(level(x, [kept] * 8, [10.0] * 8) for x, kept in ((8e6, 9.0), (12e6, 4.5), (14e6, 4.0), (20e6, 8.0)))
    dip = CliffSearch("bbr", found.path, "jitter", 0.5, Cliff(found.result.axis, found.result.baseline, levels, None, 32))
    assert answer.cliff_answer([dip]).endswith("bbr from 12.0ms to 14.0ms alone (keeps 40 % [40, 40] at 14.0ms), not at 20.0ms.")


@pytest.mark.parametrize(
    ("flow", "is_named"), [((), True), (("--rate", "20mbit"), False), (("--rcvbuf", "256KiB"), False), (("--app", "10MiB/s"), False)]
)
def test_the_published_rig_is_named_where_nothing_bounds_the_flow(cli, flow, is_named):
    out = cli("cliff", "--rtt", "24ms", "--cca", "cubic", "--engine", "mock", "--most", "0", *flow).out
    rig = [line for line in out.splitlines() if line.startswith("Next: ") and answer.PUBLISHED_RIG in line]
    assert bool(rig) == is_named


def test_the_published_rig_can_be_typed(cli):
    got = cli("cliff", "--rtt", "24ms", "--cca", "cubic", "--engine", "mock", "--most", "0", *answer.PUBLISHED_RIG.split())
    assert got.status == 0, got.err
    assert "application 10MiB/s, SO_RCVBUF 256KiB" in got.out


def test_the_chaos_zone_touches_the_edge():
    # the only chaotic level is 8 ms, above the edge of 7 ms, or 6 ms, below it: the zone reaches from there to the edge
    assert searched().result.zone == (7e6, 8e6)
    assert searched(torn=(6e6,)).result.zone == (6e6, 7e6)
    assert searched(torn=()).result.zone is None


@pytest.mark.parametrize("width", [60, 80, 100, 150])
def test_the_screen_fits(width):
    searches = [searched(cca, rtt) for cca in ("cubic:hystart=off", "bbr") for rtt in ("24ms", "50ms")]
    lines = answer.cliff_screen(searches, "model").text(width, verbose=True).splitlines()
    assert max(len(line) for line in lines if not line.startswith("Next: ")) <= width
    assert sum(line.startswith("cubic:hystart=off ") and "[" in line for line in lines) >= 2
    assert "buffers autotuned" in " ".join(lines)


# The page.


def test_a_search_has_a_page_with_its_figure(cli, tmp_path, need_model):
    result = cli("cliff", "--rtt", "24,50ms", "--cca", "cubic,bbr", *RIG, "--out", tmp_path, "--report")
    assert result.status == 0, result.err
    assert {file.name for file in tmp_path.iterdir()} == {"edges.csv", "levels.csv", "report.html", "figures"}
    assert {file.name for file in (tmp_path / "figures").iterdir()} == {"cliff.svg", "cliff.png"}
    page = (tmp_path / "report.html").read_text("utf-8")
    edges = pl.read_csv(tmp_path / "edges.csv")
    assert "At which jitter does this path fall off its cliff?" in page
    assert page.count("<svg") >= 4  # two paths, and the figure wide and narrow
    assert f"{edges['runs'].sum()}" in page
    assert f"Next: open {tmp_path}/report.html" in result.out.replace("\n", " ")


@pytest.mark.parametrize("along", ["jitter", "loss"])
def test_a_figure_of_what_never_falls_or_has_no_end(along):
    """Without an edge, and with an interval that ends beyond the axis."""
    axis = jitter_axis(50_000_000) if along == "jitter" else loss_axis()
    at = [axis.level(step) for step in (1, 5, 10)]
    levels = tuple(level(x, [9.0, 9.1, 9.2], [10.0, 10.1, 10.2]) for x in at)
    baseline = Estimate(10.0, 9.9, 10.1, 3)
    never = Cliff(axis, baseline, levels, runs=12)
    beyond = Cliff(axis, baseline, levels, Estimate(at[1], float("-inf"), float("inf"), 3), 12)
    path = Conditions.model_validate({"rtt": "50ms"})
    searches = [CliffSearch(cca, path, along, 0.5, cliff) for cca, cliff in (("cubic", never), ("bbr", beyond))]
    (ax,) = [ax for ax in curves.cliffs(searches).axes if ax.get_visible()]
    assert set(ax.get_legend_handles_labels()[1]) == {"cubic", "bbr"}
    assert ax.get_xlabel() == ("jitter, ms" if along == "jitter" else "loss, %")


def test_a_page_of_a_search_needs_a_place(cli):
    assert cli("cliff", "--rtt", "50ms", "--report", "--engine", "mock").err.startswith("error: report: there is nowhere to write it")
