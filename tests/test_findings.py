"""Sides, damage and advice against an engine whose answers are known; the search for cliffs is in test_cliff.py."""

from dataclasses import replace

import pytest

from tcpscape import stats
from tcpscape.campaign import Runner
from tcpscape.engines import make
from tcpscape.findings import chaos, cliff, cliff_axis, damage
from tcpscape.findings.advice import Adviser
from tcpscape.findings.conditions import Conditions

RTT = 50_000_000


def test_a_path_that_carries_nothing_is_advised_on():
    got = Adviser(path(loss="100%"), ["cubic", "bbr"], Runner(make("mock"))).advise()
    assert {s.side for s in got.ranking} == {"collapsed"}
    assert "nothing gets through" in got.why


def test_sides():
    base = [10.0] * 10
    assert chaos.side(cliff.level(1, [9.5] * 10, base)) == "stable"
    assert chaos.side(cliff.level(1, [1.0, 1.3] * 5, base)) == "collapsed"
    assert chaos.side(cliff.level(1, [9.0] * 5 + [2.0] * 5, base)) == "chaos zone"


def test_the_chaos_zone_is_unbroken_and_agrees_with_the_side():
    base = [10.0] * 8
    calm, torn, dead = [9.5] * 8, [9.0] * 4 + [2.0] * 4, [0.5] * 8
    levels = tuple(cliff.level(j, got, base) for j, got in ((1, calm), (2, torn), (4, torn), (6, dead), (8, torn)))
    got = cliff.Cliff(cliff_axis.jitter(RTT), stats.mean(base), levels, stats.Estimate(3, 2, 4, 16, "ns"))
    assert got.bracket == (2, 4)
    assert got.zone == (2, 4)
    assert replace(got, here=cliff.level(5, torn, base)).zone == (2, 5)


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
    edges = {s.cca: s.cliff.edge.value / 26e6 for s in got.ranking}
    assert edges["cubic"] == pytest.approx(0.2, abs=0.02)
    assert edges["bbr"] == pytest.approx(0.12, abs=0.02)
    assert {s.side for s in got.ranking} == {"collapsed"}
    assert got.ranking[0].damage[0].ingredient == "delay variation"
    assert got.choice == "cubic"
    assert got.command == "sysctl -w net.ipv4.tcp_congestion_control=cubic"
    assert got.caveats
