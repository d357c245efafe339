"""Fairness: worked arithmetic on made trials, and staged starts on the model."""

import math

import numpy as np
import polars as pl
import pytest

from tcpscape.campaign.execute import Runner
from tcpscape.engines import make
from tcpscape.findings import fairness
from tcpscape.findings.fairness import FlowGroup, SharesOverTime
from tcpscape.metrics import samples, sharing
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture, Cwnd, FlowResult, Rtt, Trial


def trial(*flows, samples=True, every=0.1):
    """Flows as (cca, start, stop, rate in Mbit/s at a time)."""
    frames, made = [], []
    for i, (cca, start, stop, mbps) in enumerate(flows):
        t = np.round(np.arange(start, stop + every / 2, every), 6)
        result = np.concatenate(([0.0], np.cumsum([mbps(x + every / 2) * every * 1e6 / 8 for x in t[:-1]])))
        frames.append(pl.DataFrame({"t_ns": (t * 1e9).round().astype(np.uint64), "flow": np.full(len(t), i, np.uint32), "bytes_acked": result}))
        rate = result[-1] * 8e-6 / (stop - start)
        made.append(FlowResult(cca, rate, stop - start, 0, 0, Rtt(), Cwnd(), {}, start_s=start, stop_s=stop))
    return Trial("s", "x", "a", 0, "mock", "1", 60.0, tuple(made), samples=pl.concat(frames) if samples else None)


def staged(**rest):
    """The published case: bbr 60 s, 10 Mbit/s alone and 4 shared; cubic the last 30 s, 6."""
    return trial(("bbr", 0, 60, lambda t: 10 if t < 30 else 4), ("cubic", 30, 60, lambda t: 6), **rest)


def test_whole_transfers_hide_who_has_more():
    """bbr's 60-s mean is 7 Mbit/s: 7/13 of the rates, the larger share as published tables have it, but 4/10 of what was shared."""
    result = fairness.measure(staged())
    assert result.whole == pytest.approx((7 / 13, 6 / 13))
    assert (result.overlap, result.overlap_s) == (pytest.approx((0.4, 0.6)), (30, 60))
    assert result.jain_whole == pytest.approx(13**2 / (2 * (49 + 36)))
    assert result.jain_overlap == pytest.approx(100 / (2 * 52))


def test_stages_are_cut_at_starts_and_stops():
    alone, shared = fairness.measure(staged()).stages
    assert (alone.start_s, alone.stop_s, alone.running, shared.running) == (0, 30, (0,), (0, 1))
    assert alone.mbps == pytest.approx((10, 0))
    assert shared.mbps == pytest.approx((4, 6))
    assert alone.jain == 1


def test_starts_close_together_are_one():
    result = fairness.measure(trial(("bbr", 0, 20, lambda t: 5), ("bbr", 0.2, 20, lambda t: 5), ("cubic", 10, 20, lambda t: 5)))
    assert [round(s.start_s, 1) for s in result.stages] == [0, 10]
    assert result.stages[0].running == (0, 1)


def test_without_samples_only_whole_transfers_are_known():
    result = fairness.measure(staged(samples=False))
    assert result.whole == pytest.approx((7 / 13, 6 / 13))
    assert all(math.isnan(x) for x in (*result.overlap, result.jain_overlap))
    assert (result.fair_after_s, result.settled_after_s, result.starved, result.stages) == (None, None, (), ())


def test_flows_that_never_meet_share_nothing():
    result = fairness.measure(trial(("bbr", 0, 10, lambda t: 5), ("cubic", 20, 30, lambda t: 5)))
    assert result.overlap_s is None
    assert all(math.isnan(x) for x in result.overlap)


def test_shares_settle_where_they_stay():
    """cubic has 2 of 10 until 8 s after its start, half from then on; but for one second at 20 s, when it has 3."""

    def rate(t):
        return 2 if t < 18 else 3 if 30 <= t < 31 else 5

    result = fairness.measure(trial(("bbr", 0, 60, lambda t: 10 - rate(t) if t > 10 else 10), ("cubic", 10, 60, rate)))
    assert (result.fair_after_s, result.settled_after_s) == (pytest.approx(21), pytest.approx(21))


def test_an_unfair_share_may_be_final():
    result = fairness.measure(trial(("bbr", 0, 40, lambda t: 8), ("cubic", 0, 40, lambda t: 2)))
    assert result.fair_after_s is None
    assert result.settled_after_s == 0


def test_the_last_seconds_are_too_few_to_settle():
    edges, half = np.arange(0, 11.0), [0.5] * 4
    shares = np.array([[0.9] * 6 + half, [0.1] * 6 + half])
    assert fairness.settled(SharesOverTime(edges, shares), (0.5, 0.5)) is None
    assert fairness.settled(SharesOverTime(np.arange(0, 12.0), np.hstack([shares, [[0.5], [0.5]]])), (0.5, 0.5)) == 6


def test_starvation_is_long_and_below_a_tenth():
    """Three flows; the fair share is a third of what they have together. The last has 0.2 of 10 for 7 s (0.06 of its fair share), then 4;
    later 0.2 for 3 s: too short."""

    def small(t):
        return 0.2 if 5 <= t < 12 or 20 <= t < 23 else 4

    result = trial(("cubic", 0, 30, lambda t: 5), ("cubic", 0, 30, lambda t: 4.8), ("cubic", 0, 30, small))
    (found,) = sharing.starvation(result)
    assert (found.flow, found.start_s, found.stop_s) == pytest.approx((2, 5, 12))
    assert found.seconds == pytest.approx(7)
    assert not sharing.starvation(result, part=0.05)
    assert len(sharing.starvation(result, least_s=3)) == 2


def test_a_flow_does_not_starve_before_it_starts():
    assert not sharing.starvation(staged())


def test_one_congestion_control_is_a_group_for_each_flow():
    result = fairness.measure(trial(("cubic", 0, 20, lambda t: 6), ("cubic", 0, 20, lambda t: 2)))
    assert [g.name for g in result.groups] == ["cubic 1", "cubic 2"]
    assert result.overlap == pytest.approx((0.75, 0.25))


def test_fair_is_by_flows_not_by_groups():
    """Three of four flows: fair is 0.75."""
    said = trial(*[("bbr", 0, 20, lambda t: 2)] * 3, ("cubic", 0, 20, lambda t: 2))
    result = fairness.measure(said)
    assert result.fair == (0.75, 0.25)
    assert (result.fair_after_s, result.jain_overlap) == (0, pytest.approx(1))
    halves = fairness.measure(said, (FlowGroup("first", (0, 1)), FlowGroup("rest", (2, 3))))
    assert halves.overlap == pytest.approx((0.5, 0.5))


def test_shares_over_time_add_up():
    said = staged()
    edges = samples.grid(said)
    result = SharesOverTime(edges, samples.rates(said, edges))
    assert (result.shares.shape, result.shares.sum(axis=0)) == ((2, 60), pytest.approx(np.ones(60)))
    assert result.shares[0, [0, 29, 30, 59]] == pytest.approx([1, 1, 0.4, 0.4])


def test_trials_are_judged_together():
    fair = trial(("bbr", 0, 20, lambda t: 5), ("cubic", 0, 20, lambda t: 5))
    not_fair = trial(("bbr", 0, 20, lambda t: 9.9), ("cubic", 0, 20, lambda t: 0.1))
    result = fairness.judge([fairness.measure(t) for t in (fair, fair, not_fair)])
    assert result.names == ("bbr", "cubic")
    assert (result.overlap[0].value, result.overlap[0].n) == (pytest.approx((0.5 + 0.5 + 0.99) / 3), 3)
    assert (result.became_fair, result.starved) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert result.fair_after_s.value == 0


def test_the_model_shares_a_bottleneck(need_model):
    """Two cubic flows 10 s apart behind a deep enough buffer: the first alone has the link, both together fill it, and bytes agree with summaries."""
    said = Scenario.of(
        {
            "forward": ["netem delay 10ms limit 1000"],
            "bottleneck": [{"rate": "10mbit", "buffer": "1bdp"}],
            "duration": "40s",
            "flows": [{"cca": "cubic"}, {"cca": "cubic", "start": "10s"}],
        }
    )
    result = [fairness.measure(t) for t in Runner(make("model"), 2, Capture(samples_ns=100_000_000)).run(said, range(4))]
    alone, both = result[0].stages
    assert alone.mbps[0] == pytest.approx(sum(both.mbps), rel=0.05)
    assert 0.3 < fairness.judge(result).overlap[0].value < 0.7
    assert sum(result[0].overlap) == pytest.approx(1)
