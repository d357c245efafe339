"""Zones, health, signatures and masking: worked arithmetic, and the model."""

import math

import pytest

from tcpscape import stats
from tcpscape.campaign.execute import Runner
from tcpscape.engines import Capture, make
from tcpscape.findings import indicators
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Cwnd, FlowResult, Rtt, Trial


@pytest.mark.parametrize(("jitter", "rtt", "expected"), [
    (0, 50, "stable"), (4.9, 50, "stable"), (5, 50, "chaos zone"), (15, 50, "chaos zone"), (15.1, 50, "collapsed"), (7, 26, "chaos zone"),
])  # fmt: skip
def test_zones_are_jitter_over_rtt(jitter, rtt, expected):
    assert indicators.zone(jitter, rtt) == expected


def test_health_is_the_published_thresholds():
    assert [indicators.health(x) for x in (0.149, 0.15, 0.30, 0.301, math.nan)] == ["healthy", "stressed", "stressed", "impaired", "unknown"]


def mid_path(rtt_cv):
    """The CV in mid-path of a sender's value: J = 5 on each of two delays of 25 is 5/25 = 0.2 in mid-path, 5·√2/50 = 0.1414 at the sender."""
    return rtt_cv * math.sqrt(2)


def trial(zero=0, resent=0, rwnd=0.0, mbps=8.0, seconds=10.0, **rest):
    known = {"max_rwnd": 100_000, "zero_windows": zero, "min_rtt_ms": 50.0, "stop_s": seconds}
    flow = FlowResult("cubic", mbps, seconds, resent, 0, Rtt(), Cwnd(), {"rwnd": rwnd, "cwnd": 1 - rwnd}, **known | rest)
    return Trial("s", "cubic", "a", 0, "mock", "1", seconds, (flow,))


@pytest.mark.parametrize(("zero", "resent", "problem"), [
    (5, 10, "neither"), (6, 10, "receiver"), (5, 11, "network"), (6, 11, "both"), (None, 11, "network"), (None, 0, "neither"),
])  # fmt: skip
def test_the_published_signatures(zero, resent, problem):
    assert indicators.signature(trial(zero, resent)).problem == problem


def test_counts_are_those_of_ten_seconds():
    """12 windows closed and 8 retransmissions in 20 s are 6 and 4 in 10."""
    result = indicators.signature(trial(12, 8, seconds=20.0))
    assert (result.closed, result.resent) == (6, 4)


@pytest.mark.parametrize(
    ("rwnd", "mbps", "rest", "window"),
    [
        (0.9, 3.2, {}, "shrunk window"),  # 3.2 Mbit/s · 50 ms = 20 kB of 100
        (0.9, 15.2, {}, "small window"),  # 95 kB of 100
        (0.4, 3.2, {}, "not the window"),
        (0.9, 3.2, {"max_rwnd": None}, "unknown"),
        (0.9, 3.2, {"limited_by": {}}, "unknown"),
    ],
)
def test_a_window_is_small_or_shrunk(rwnd, mbps, rest, window):
    said = trial(rwnd=rwnd, mbps=mbps, **{k: v for k, v in rest.items() if k != "limited_by"})
    if "limited_by" in rest:
        flow = FlowResult(**{**{f: getattr(said.flows[0], f) for f in FlowResult.__slots__}, "limited_by": {}})
        said = Trial("s", "cubic", "a", 0, "mock", "1", 10.0, (flow,))
    assert indicators.signature(said).window == window


def test_trials_are_judged_together():
    """Three of four are the network's: 0.75, Wilson's interval 0.301 to 0.954."""
    result = indicators.judge([trial(resent=20), trial(resent=30), trial(resent=40), trial(zero=9)])
    assert result.problems["network"].value == 0.75
    assert (result.problems["network"].low, result.problems["network"].high) == pytest.approx((0.30064, 0.95441), abs=1e-4)
    assert result.problems["receiver"].value == 0.25
    assert result.resent.value == 25
    assert (result.rtt_cv.n, result.health) == (0, "unknown")


def test_a_share_of_nothing_is_unknown_and_of_all_is_not_certain():
    assert math.isnan(stats.share(0, 0).value)
    result = stats.share(10, 10)
    assert (result.value, result.high) == (1, 1)
    assert result.low == pytest.approx(0.7225, abs=1e-4)


def test_masking_counts_both_paths():
    result = indicators.masking([trial(zero=50)] * 4, [trial(resent=30), trial(resent=30, rwnd=0.8, mbps=1), trial(zero=8, resent=30), trial()])
    assert (result.closed_alone.value, result.seen_alone.value, result.hidden.value, result.seen_by_window.value) == (50, 1, 0.5, 0.25)


def run(rtt, loss, delay, n=3):
    """A reader of 8 KiB after each `delay` out of a buffer of 64 KiB."""
    said = Scenario.of({
        "forward": [f"netem delay {rtt / 2}ms loss {loss}% limit 1000"], "reverse": [f"netem delay {rtt / 2}ms limit 1000"], "duration": "10s",
        "flows": [{"rcvbuf": "64KiB", "read": f"8KiB/{delay}", "app": {"rate": "5MiB/s"}}],
    })  # fmt: skip
    return Runner(make("model"), 2).run(said, range(n))


def test_a_slow_reader_closes_its_window_on_a_short_path_only(need_model):
    """409 kB/s are read: at 18 ms the window closes a hundred times; at 22 ms never, though it limits the flow all the time."""
    short, long = indicators.judge(run(18, 0, "20ms")), indicators.judge(run(22, 0, "20ms"))
    assert short.closed.value > 100
    assert short.problems["receiver"].value == 1
    assert long.problems["neither"].value == 1
    assert long.closed.value == 0
    assert long.held.value > 0.9
    assert short.windows["shrunk window"].value == long.windows["shrunk window"].value == 1


def test_a_small_window_is_no_slow_reader(need_model):
    result = indicators.judge(run(50, 0, "1ms"))
    assert result.windows["small window"].value == 1
    assert result.problems["neither"].value == 1


def test_loss_hides_a_reader_that_is_faster_than_the_path(need_model):
    """At 50 ms and 2 % loss the path carries less than is read: no window closes, only the network is named."""
    result = indicators.masking(run(2, 0, "20ms"), run(50, 2, "20ms"))
    assert result.seen_alone.value == 1
    assert result.hidden.value == 1
    assert result.closed_both.value == 0


def test_jitter_shows_in_the_rtts(need_model):
    """5 ms on each of two delays of 25 ms, kept in order by nothing: about 5·√2/50 = 0.14 at the sender, 0.2 in mid-path: stressed."""
    said = Scenario.of({
        "forward": ["netem delay 25ms 5ms distribution normal limit 1000"], "reverse": ["netem delay 25ms 5ms distribution normal limit 1000"],
        "flows": [{"app": {"rate": "1MiB/s"}}], "duration": "5s",
    })  # fmt: skip
    result = indicators.judge(Runner(make("model"), 2, Capture(packets=True)).run(said, range(2)))
    assert result.rtt_cv.value == pytest.approx(0.14, abs=0.04)
    assert indicators.health(mid_path(result.rtt_cv.value)) == "stressed"
