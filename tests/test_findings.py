"""Cliffs, sides and damage against an engine whose answers are known."""

import math

import pytest

from tcpscape.campaign import Runner
from tcpscape.engines import make
from tcpscape.findings import chaos, cliff, damage
from tcpscape.findings.advice import Adviser
from tcpscape.findings.conditions import Conditions

RTT = 50_000_000


def logistic(edge: float, noise: float = 0.0):
    """A path whose goodput halves at jitter = edge x RTT."""

    def measure(jitters, n):
        return [[100 / (1 + (j / RTT / edge) ** 8) * (1 + noise * math.sin(7 * s + 1)) for s in range(n)] for j in jitters]

    return measure


@pytest.mark.parametrize("edge", [0.03, 0.1, 0.2, 0.33, 0.6])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_cliff_is_found_within_one_percent_of_the_rtt(edge, noise):
    got = cliff.find(logistic(edge, noise), RTT, 6)
    assert got.jitter_ns / RTT == pytest.approx(edge, abs=0.012)
    low, high = got.bracket_ns
    assert high - low <= 0.02 * RTT


def test_no_cliff_is_said():
    got = cliff.find(lambda jitters, n: [[10.0] * n for _ in jitters], RTT, 4)
    assert got.jitter_ns is None
    assert got.chaos_ns is None


def test_a_dead_path_ends():
    got = cliff.find(lambda jitters, n: [[0.0] * n for _ in jitters], RTT, 4)
    assert got.baseline.value == 0
    assert got.jitter_ns is None


def test_a_path_that_carries_nothing_is_advised_on():
    got = Adviser(path(loss="100%"), ["cubic", "bbr"], Runner(make("mock"))).advise()
    assert {s.side for s in got.ranking} == {"collapsed"}
    assert "nothing gets through" in got.why


def test_open_levels_are_repeated():
    asked = []

    def measure(jitters, n):
        asked.append((tuple(jitters), n))
        return logistic(0.2, 0.5)(jitters, n)

    cliff.find(measure, RTT, 4)
    assert {n for _, n in asked} == {cliff.GLANCE, 4, 12}


def test_sides():
    base = [10.0] * 10
    assert chaos.side(cliff.level(1, [9.5] * 10, base)) == "stable"
    assert chaos.side(cliff.level(1, [1.0, 1.3] * 5, base)) == "collapsed"
    assert chaos.side(cliff.level(1, [9.0] * 5 + [2.0] * 5, base)) == "chaos zone"


def test_the_chaos_zone_is_unbroken_and_agrees_with_the_side():
    base = [10.0] * 8
    calm, torn, dead = [9.5] * 8, [9.0] * 4 + [2.0] * 4, [0.5] * 8
    levels = tuple(cliff.level(j, got, base) for j, got in ((1, calm), (2, torn), (4, torn), (6, dead), (8, torn)))
    got = cliff.Cliff(RTT, cliff.stats.mean(base), levels)
    assert got.bracket_ns is not None
    assert got.chaos_ns == (2, 4)
    here = cliff.level(5, torn, base)
    assert cliff.Cliff(RTT, got.baseline, levels, here).chaos_ns == (2, 5)


def path(**more):
    return Conditions.model_validate({"rtt": "26ms", "jitter": "7ms", "loss": "0.125%", "flow": {"rcvbuf": "256KiB"}, **more})


def test_ingredients_taken_away():
    names = {name: other for name, _, other in damage.without(path())}
    assert list(names) == ["reordering", "low tail of the delay", "delay variation", "loss"]
    assert names["delay variation"].jitter == 0
    assert names["loss"].loss == 0
    assert damage.without(path(jitter="0s", loss="0%")) == []


def test_directions():
    one = path(jitter_on="forward", loss_on="reverse").scenario("bbr")
    assert (one.forward[0].jitter, one.reverse[0].jitter) == (7_000_000, 0)
    assert (one.forward[0].loss, one.reverse[0].loss) == (0, pytest.approx(0.00125))
    assert one.cca == "bbr"


def test_advice_from_the_mock():
    """The mock's cliff is at 12 % of the RTT for bbr and 20 % for cubic; at 27 % both have collapsed."""
    got = Adviser(path(), ["cubic", "bbr"], Runner(make("mock")), range(6)).advise()
    edges = {s.cca: s.cliff.jitter_ns / 26e6 for s in got.ranking}
    assert edges["cubic"] == pytest.approx(0.2, abs=0.02)
    assert edges["bbr"] == pytest.approx(0.12, abs=0.02)
    assert {s.side for s in got.ranking} == {"collapsed"}
    assert got.ranking[0].damage[0].ingredient == "delay variation"
    assert got.choice == "cubic"
    assert got.command == "sysctl -w net.ipv4.tcp_congestion_control=cubic"
    assert got.caveats
