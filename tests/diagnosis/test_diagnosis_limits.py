"""What a diagnosis makes of the intervals that a capture's analysis gives: shares, fewer intervals, and what the congestion control adds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tcpscape.findings.diagnosis import limits
from tcpscape.findings.diagnosis.fitted import Control
from tcpscape.findings.diagnosis.observed import Endpoint, LimitInterval, ObservedFlow


def flow(times_s, vantage="receiver", intervals=(), timeouts_s=()):
    segments = {"t": (np.asarray(times_s) * 1e9).astype(np.uint64), "len": np.full(len(times_s), 1448, np.uint32)}
    events = {"t": (np.asarray(timeouts_s, float) * 1e9).astype(np.uint64), "kind": np.full(len(timeouts_s), limits.TIMEOUT, np.uint8)}
    end = Endpoint("10.0.0.1", 1)
    facts = {"rtt": {"p50_ms": 40.0}, "begins_in_mid_connection": False}
    return ObservedFlow(end, end, len(times_s), 0, 30.0, 0.0, vantage, 1.0, facts, segments, {}, events, limits=intervals)


def probing(*dips_s, until=32.0, length=0.2):
    """A segment each ms, and one each 10 ms for 200 ms from each dip on."""
    t = np.arange(0, until, 0.001)
    slow = np.zeros(len(t), bool)
    for at in dips_s:
        slow |= (t >= at) & (t < at + length)
    return t[~slow | (np.arange(len(t)) % 10 == 0)]


def test_a_flow_that_probes_for_the_least_rtt_every_ten_seconds_paces():
    assert limits.probes(flow(probing(10.1, 20.3, 30.5))) == pytest.approx([10.1, 20.3, 30.5], abs=0.06)
    assert limits.paces(flow(probing(10.1, 20.3, 30.6))) is True


@pytest.mark.parametrize("case", ["steady", "often", "too long", "late", "long ago", "a timeout", "stays low"])
def test_other_dips_are_no_probes(case):
    made = {
        "steady": flow(probing()), "often": flow(probing(10.1, 13.0, 20.3)), "too long": flow(probing(10.1, length=1.5)),
        "late": flow(probing(20.1)), "long ago": flow(probing(10.1)), "a timeout": flow(probing(10.1), timeouts_s=[10.2]), "stays low": flow(probing(10.1, length=30.0)),
    }[case]  # fmt: skip
    assert limits.probes(made) == []
    assert limits.paces(made) is None


def test_the_control_decides_between_a_window_and_a_pace():
    held = (LimitInterval(0, 1, "congestion_window", (1, 2)), LimitInterval(1, 2, "pacing", (3, 4)), LimitInterval(2, 3, "recovery", (5,)))
    bbr, reno, unknown = Control("bbr", 0.9), Control("reno", 0.9), Control("unknown", 0.9)
    far = flow([0.0, 1.0], "receiver", held)
    causes = lambda f, c: [i.cause for i in limits.refined(f, c)]  # noqa: E731
    assert causes(far, bbr) == ["pacing", "recovery"]
    assert limits.refined(far, bbr)[0] == LimitInterval(0, 2, "pacing", (1, 2, 3, 4))
    assert causes(far, reno) == ["congestion_window", "application", "recovery"]
    assert causes(far, unknown) == causes(far, None) == ["congestion_window", "pacing", "recovery"]
    assert causes(replace(far, vantage="sender"), bbr) == ["congestion_window", "pacing", "recovery"]


def test_a_clockwork_at_the_sender_is_an_application_and_turns_of_more_and_less_are_a_pace():
    clockwork = flow(np.arange(0, 9, 0.002), "sender")
    gains = np.tile([1.25, 0.75, 1, 1, 1, 1, 1, 1], 40)
    turns = flow(np.cumsum(np.repeat(0.002 / gains, 20)), "sender")
    assert (limits.paces(clockwork), limits.paces(turns)) == (False, None)
    assert limits.paces(replace(clockwork, vantage="receiver")) is None


def test_without_packets_the_sources_own_intervals_stay():
    held = (LimitInterval(0, 1, "pacing"),)
    assert limits.refined(flow([], "unknown", held), Control("reno", 1.0)) == held


def test_shares_are_of_the_time_and_the_largest_comes_first():
    held = [LimitInterval(0, 1, "recovery"), LimitInterval(1, 4, "application"), LimitInterval(4, 8, "recovery")]
    assert list(limits.shares(held).items()) == [("recovery", 0.625), ("application", 0.375)]
    assert limits.shares([]) is None


def test_few_intervals_for_a_reader_cover_the_same_time():
    causes = ["congestion_window", "application", "congestion_window"]
    held = [LimitInterval(k * 0.003, (k + 1) * 0.003, causes[k % 3], (k + 1,)) for k in range(1000)] + [LimitInterval(3.0, 5.0, "recovery", (2000,))]
    few = limits.readable(held, 60)
    assert [i.cause for i in few] == ["congestion_window", "recovery"]
    assert (few[0].start_s, few[-1].end_s) == (0.0, 5.0)
    assert few[0].end_s == few[1].start_s == pytest.approx(3.0, abs=limits.FINEST_S)
    assert few[1].frames == (2000,)
    assert limits.readable(held[:5], 60) == tuple(held[:5])
