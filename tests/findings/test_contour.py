"""The cliff over two axes and the map of ratios, on surfaces whose answers are known."""

import math

import numpy as np
import pytest

from conftest import bench
from tcpscape.errors import ScenarioError
from tcpscape.findings.cliff import search
from tcpscape.findings.cliff.fit import PairedRuns, ratio_cells, verdict
from tcpscape.findings.cliff.levels import Axis
from tcpscape.stats import Estimate

planes = bench("planes")
MapEffort, SecondAxis, contour, fill = planes.MapEffort, planes.SecondAxis, planes.contour, planes.fill

SHARE = Axis("jitter", "of RTT", 0.0, 1.0, 0.01)


def noise(*seed, sigma=0.05):
    return np.random.default_rng([round(1e6 * s) for s in seed]).lognormal(-sigma * sigma / 2, sigma)


def edge(y):
    """An edge that moves from 33 to 12 % over the second axis."""
    return 0.33 - 0.07 * math.log2(y / 25)


def across(y):
    return lambda levels, seeds: [[40 / (1 + (x / edge(y)) ** 8) * noise(x, y, s) for s in seeds] for x in levels]


def test_a_contour_follows_the_edge_and_saves_runs():
    levels = (25.0, 50.0, 100.0, 200.0)
    result = contour(across, SHARE, SecondAxis("rtt", "ms", levels))
    assert [y for y, _ in result.points] == list(levels)
    for y, found in result.points:
        assert found.edge.low <= edge(y) <= found.edge.high
    assert result.runs < sum(search.find(across(y), SHARE).runs for y in levels)


def test_a_contour_that_begins_where_nothing_falls():
    def measure(y):
        return across(25.0) if y > 1 else lambda levels, seeds: [[40.0 for _ in seeds] for _ in levels]

    result = contour(measure, SHARE, SecondAxis("loss", "%", (0.0, 2.0)))
    assert result.points[0][1].edge is None
    assert result.points[1][1].edge.value == pytest.approx(0.33, abs=0.012)


def test_a_second_axis_needs_levels():
    with pytest.raises(ScenarioError, match="rtt"):
        SecondAxis("rtt", "ms", (25.0, 25.0))


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.2, 1.4, "better"),
        (0.4, 0.9, "worse"),
        (0.96, 1.04, "same"),
        (1.01, 1.04, "same"),
        (0.9, 1.3, "undecided"),
        (0.97, 1.06, "undecided"),
        (math.nan, math.nan, "undecided"),
    ],
)
def test_verdicts(low, high, said):
    assert verdict(Estimate((low + high) / 2, low, high, 10)) == said


def test_a_map_from_runs():
    calm = tuple(10 + 0.01 * i for i in range(8))
    cells = ratio_cells([
        PairedRuns(2, 1, tuple(3 * v for v in calm), calm), PairedRuns(1, 1, calm, calm), PairedRuns(1, 2, (9.0, 1.0, 8.0, 3.0), (3.0, 8.0, 1.0, 9.0)),
    ])  # fmt: skip
    result = planes.RatioMap(cells)
    assert [(c.x, c.y, c.verdict) for c in result.cells] == [(1, 1, "same"), (2, 1, "better"), (1, 2, "undecided")]
    assert (result.xs, result.ys, result.runs) == ((1, 2), (1, 2), 40)
    assert result.at(2, 1).ratio.value == pytest.approx(3)
    with pytest.raises(KeyError):
        result.at(2, 2)


def test_undecided_cells_get_the_runs():
    """Ratios 2 with little noise, 1.1 with some, 1 with much: the second needs runs, the third is capped."""
    truth = {(0.0, 0.0): (2.0, 0.02), (1.0, 0.0): (1.1, 0.15), (2.0, 0.0): (1.0, 0.8)}

    def measure(cells, seeds):
        return [
            ([truth[c][0] * noise(*c, s, 1, sigma=truth[c][1]) for s in seeds], [noise(*c, s, 2, sigma=truth[c][1]) for s in seeds]) for c in cells
        ]

    result = fill(measure, list(truth), MapEffort(seeds=6, most=96))
    first, second, third = result.cells
    assert (first.verdict, first.ratio.n) == ("better", 6)
    assert 6 < second.ratio.n < 96
    assert second.verdict == "better"
    assert (third.verdict, third.ratio.n) == ("undecided", 96)


def test_looking_again_and_again_does_not_mislead():
    """Of 100 cells whose ratio is 1, looked at up to five times, at most 5 % are called better or worse; chance adds three deviations."""
    cells = [(float(i), 0.0) for i in range(100)]
    result = fill(
        lambda some, seeds: [([noise(*c, s, 1, sigma=0.3) for s in seeds], [noise(*c, s, 2, sigma=0.3) for s in seeds]) for c in some], cells
    )
    wrong = sum(c.verdict in ("better", "worse") for c in result.cells)
    assert wrong <= 100 * 0.05 + 3 * math.sqrt(100 * 0.05 * 0.95)


def test_efforts_that_make_no_sense():
    with pytest.raises(ScenarioError, match="seeds"):
        MapEffort(seeds=1)
