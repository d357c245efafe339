"""A jitter that shows as less, or more, than it is: ACKs close together, waiting, and what a jitter that was not seen may have."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tcpscape import capture
from tcpscape.engines.model import Model
from tcpscape.findings.diagnosis.fitted import FittedPath
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path import before, fit, fitting, own
from tcpscape.findings.diagnosis.path import jitter as jitters
from tcpscape.findings.diagnosis.path.columns import REORDERED, Turns, wire_of
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Floats
from tcpscape.words import path_words


@pytest.mark.parametrize("gap_ms", [0.25, 0.6, 1.0, 5.0])
@pytest.mark.parametrize("order", jitters.ORDERS)
@pytest.mark.parametrize("deviation", [jitters.local_deviation, jitters.lower_deviation])
def test_of_dense_packets_less_is_seen_than_each_delay_varies(gap_ms: float, order: jitters.Order, deviation: Callable[[Floats], float]) -> None:
    """Written out packet by packet: a later one waits for the one before it, or an overtaken one is never echoed."""
    random = np.random.default_rng(11)
    sent = np.cumsum(random.uniform(0.5, 1.5, 6_000) * gap_ms)
    delay = random.normal(0, 1.0, sent.size)
    seen, last = [], -np.inf
    if order == "held":
        for t, d in zip(sent, delay, strict=True):
            last = max(last, t + d)
            seen.append(last - t)
    else:
        for i in np.argsort(sent + delay, kind="stable"):
            if sent[i] > last:
                last = sent[i]
                seen.append(delay[i])
    measured = deviation(np.array(seen))
    assert jitters.uncrowded(measured, sent, order, deviation) == pytest.approx(1.0, rel=0.1)
    assert (measured < 0.9) == (gap_ms <= 1.0), "far apart, nothing is missing"


def test_acks_that_wait_for_one_another_have_the_jitter_of_each(tmp_path: Path) -> None:
    """Behind 50 Mbit/s ACKs come every half of a millisecond, and a jitter of 2 ms that keeps their order spreads them by 1.3."""
    fields = {
        "forward": [{"at": "router", "delay": "10ms"}],
        "bottleneck": "tbf rate 50mbit burst 25000 limit 250000",
        "reverse": {"at": "router", "delay": "10ms", "jitter": "2ms", "distribution": "normal", "rate": "1gbit"},
        "flows": [{"cca": "reno"}],
        "duration": "8s",
    }
    file = tmp_path / "a.pcapng"
    Model().write_pcap(Scenario.model_validate(fields), 5, file)
    p = fit(capture.read(file).flows[0])
    assert p.jitter_ms is not None
    assert p.jitter_ms.value == pytest.approx(2.0, rel=0.15)
    assert p.jitter_ms.low <= 2.0 <= p.jitter_ms.high


def turns(wait: Floats, jitter: float, opening_ms: float = 10.0) -> tuple[Turns, float]:
    """Turns of 10 ms with a jitter of the ACKs and with the sender's waiting, whose clock has ticks of 1 ms."""
    random = np.random.default_rng(2)
    at = np.cumsum(random.uniform(1, 3, wait.size))
    rtt = 10.0 + random.normal(0, jitter, wait.size) + wait
    return Turns(np.arange(wait.size), rtt, np.floor(at + rtt) + 0.5 - at), opening_ms


def test_waiting_of_the_sender_is_no_jitter_of_the_acks() -> None:
    """Where the handshake, before which nothing waited, took as long as the least of 5,000 turns, they have waited: a jitter would be far below it."""
    random = np.random.default_rng(3)
    waited, opening = turns(random.triangular(0.0, 6.0, 6.0, 5_000), 0.0)
    assert before.reverse_before(waited, 1.0, np.inf, opening) is None
    jittered, opening = turns(np.zeros(5_000), 1.5)
    spread = before.reverse_before(jittered, 1.0, np.inf, opening)
    assert spread is not None
    assert np.sqrt(spread.variance) == pytest.approx(1.5, rel=0.1)


def test_a_turn_that_no_clock_rounds_bounds_what_rounded_times_show() -> None:
    """Times of sending in ticks of 1 ms that fall into two of them by turns look like 0.4 ms; the turns themselves vary by 0.05 ms."""
    random = np.random.default_rng(4)
    rtt = 10.0 + random.normal(0, 0.05, 4_000)
    two = np.where(np.arange(4_000) % 2, 0.0, 1.0) + random.uniform(-0.01, 0.01, 4_000)
    spread = before.reverse_before(Turns(np.arange(4_000), rtt, two), 1.0, jitters.lower_deviation(rtt) ** 2)
    assert spread is None or spread.variance <= 0.06**2


@pytest.mark.parametrize(("high", "says"), [(0.05, "hardly any jitter"), (0.3, "less than 0.30 ms of jitter")])
def test_no_jitter_is_said_with_what_may_be_there(high: float, says: str) -> None:
    none = Estimate(0.0, 0.0, high, 500, "ms")
    path = FittedPath(rtt_ms=Estimate(10.0, 9.9, 10.1, 500, "ms"), jitter_ms=none, jitter_on="none")
    assert path_words.trip(path) == f"a round trip of 10.0 ms with {says}"


def test_what_errors_leave_open_is_the_bound_of_no_jitter() -> None:
    assert jitters.Spread(-0.02, 0.0, 12, 400).most == 0.0
    unsure = jitters.Spread(0.0004, 0.001, 12, 400)
    assert not unsure.is_there
    assert unsure.most == pytest.approx(np.sqrt(0.0004 + 2.2 * 0.001), rel=0.01)


def test_the_direction_is_that_of_the_delays_themselves_and_of_both_where_either_may_have_them() -> None:
    """What a busy queue leaves of a jitter, or adds to it by a change of order, is not what the data's own delay varies by."""
    spread = lambda sigma, error=0.0001: jitters.Spread(sigma**2, error, 24, 4_000)  # noqa: E731
    about = SimpleNamespace(before_queue=(0.54, 0.45, 0.62), beside=None)
    assert jitters.direction(spread(2.2), spread(0.52)) == "forward"
    assert jitters.direction(fitting.of_data(about, spread(2.2)), spread(0.52)) == "both"  # type: ignore[arg-type]
    assert jitters.direction(spread(1.0), spread(0.1, 0.01)) == "forward"
    assert jitters.direction(spread(1.0), spread(0.1, 0.15)) is None, "the ACKs may have half as much"
    assert jitters.direction(spread(1.0), spread(0.0), (0.0, 0.7)) is None
    assert jitters.direction(spread(0.0), spread(0.0), (0.3, 0.3)) == "none"


def test_what_turns_do_not_vary_by_is_no_jitter_of_the_data() -> None:
    """By a clock of 1 ms the times of sending vary by a little more than its rounding; the turns, which it does not round, by nothing."""
    seen = jitters.Spread(1 / 12 + 0.0012, 0.0001, 24, 4_000)
    assert not jitters.minus(seen, 1.0, bound=1e-8).is_there
    assert jitters.minus(seen, 1.0, bound=1e-8).most < jitters.FLOOR
    skewed = jitters.Spread(1.0 + 1 / 12, 0.01, 24, 4_000)
    assert jitters.minus(skewed, 1.0, bound=0.03).variance == pytest.approx(1.0), "a Pareto's lower half varies little"


def test_without_its_jumps_a_delay_varies_no_more_than_with_them() -> None:
    random = np.random.default_rng(8)
    still = random.uniform(-0.5, 0.5, 4_000)
    whole = jitters.Spread(0.0004, 0.0001, 24, 4_000)
    assert jitters.without_jumps(whole, still, 1.0).most <= whole.most


@pytest.mark.parametrize("acks", [0.0, 0.2, 0.7])
@pytest.mark.parametrize("data", [0.0, 1.0])
def test_turns_bound_the_jitter_of_the_acks_whatever_the_clock_rounds_and_the_data_vary(acks: float, data: float) -> None:
    """The sender's clock has ticks of 1 ms, which alone hide 0.7; the turns tell 0.2, and what the data vary by is not in the bound."""
    random = np.random.default_rng(5)
    at = np.cumsum(random.uniform(1, 3, 6_000))
    left = 10.0 + random.normal(0, acks, at.size)
    seen = Turns(np.arange(at.size), left + 5.0 + random.normal(0, data, at.size), np.floor(at + left) + 0.5 - at)
    about = SimpleNamespace(before=seen, is_before=False, wire=SimpleNamespace(ack_t=at))
    most = before.varies_at_most(about).most  # type: ignore[arg-type]
    assert acks <= most <= 1.3 * acks + 0.15


def test_data_that_change_their_order_have_jitter_also_where_the_acks_alone_show_theirs(tmp_path: Path) -> None:
    """A busy queue hides what the delays of the data vary by, and not in which order they come."""
    hop = {"at": "router", "delay": "15ms", "jitter": "0.35ms"}
    fields = {"forward": [hop], "bottleneck": "tbf rate 6mbit burst 3028 limit 80000", "reverse": hop, "flows": [{"cca": "reno"}], "duration": "12s"}
    file = tmp_path / "a.pcapng"
    Model().write_pcap(Scenario.model_validate(fields), 5, file)
    p = fit(capture.read(file).flows[0])
    assert p.jitter_on == "both"
    assert p.jitter_forward_ms is None
    assert path_words.trip(p).endswith("of jitter of the ACKs and an unknown one of the data that reorders packets")
    assert path_words.jittered(p) == "of the ACKs and an unknown one of the data", "the table says the same as the sentence"
    assert p.jitter_reverse_ms is not None
    assert p.jitter_reverse_ms.value == pytest.approx(0.35, rel=0.15)


def in_order(sent: Floats, delay: Floats) -> tuple[Floats, Floats, Floats]:
    """Of packets that keep their order: their delays, how long after the one before it each was sent, and how long after it it came."""
    came = np.maximum.accumulate(sent + delay)
    return came - sent, np.diff(sent, prepend=-np.inf), np.diff(came, prepend=-np.inf)


@pytest.mark.parametrize("distribution", ["normal", "skewed"])
@pytest.mark.parametrize("gap_ms", [0.7, 2.0, 20.0])
def test_packets_that_were_held_do_not_hide_their_own_delays(gap_ms: float, distribution: str) -> None:
    """Bursts in a jitter of 2 ms that keeps their order: the mean of what is seen is far above the path's, that of the packets' own is not."""
    random = np.random.default_rng(5)
    sent = np.cumsum(random.exponential(gap_ms, 8_000))
    delay = 50 + (random.normal(0, 2.0, sent.size) if distribution == "normal" else 2 * (random.exponential(1.0, sent.size) - 1))
    seen, since, together = in_order(sent, delay)
    found = own.level_of(sent, seen, since, together)
    assert found is not None
    assert found.is_jitter
    assert found.level == pytest.approx(50, abs=max(0.15, 1.5 * found.half))
    assert found.half < 1.0
    assert (seen.mean() > 50.5) == (gap_ms < 5)


def test_a_queue_that_others_keep_busy_is_no_jitter() -> None:
    """Its packets leave a packet's time apart, however they were sent, and what one waited the next one nearly waits too."""
    random = np.random.default_rng(6)
    sent = np.cumsum(random.exponential(4.0, 4_000))
    slow = 20 + 8 * np.sin(sent / 300) + np.cumsum(random.normal(0, 0.2, sent.size))
    came = sent + slow
    for i in range(1, came.size):
        came[i] = max(came[i], came[i - 1] + 1.2)
    found = own.level_of(sent, came - sent, np.diff(sent, prepend=-np.inf), np.diff(came, prepend=-np.inf))
    assert found is not None
    assert not found.is_jitter


def test_values_known_to_be_at_most_so_large_count_as_that() -> None:
    assert own.product_limit(np.array([3.0, 1.0, 2.0]), np.array([False, False, False])) == pytest.approx(2.0)
    assert own.product_limit(np.array([5.0, 1.0]), np.array([True, False])) == pytest.approx(1.0)
    assert own.product_limit(np.array([4.0, 3.0, 1.0]), np.array([False, True, False])) == pytest.approx(4 / 3 + 1 * 2 / 3)


@pytest.mark.parametrize("on", ["forward", "both"])
def test_a_jitter_that_keeps_the_order_leaves_the_round_trip_of_what_an_application_sends(on: str, tmp_path: Path) -> None:
    """Packets that wait for one before them that was late make the mean too long, and the least is many deviations below it."""
    jitter = {"jitter": "2ms", "distribution": "normal", "rate": "1gbit"}
    fields = {
        "forward": [{"at": "router", "delay": "25ms", **jitter}],
        "reverse": {"at": "router", "delay": "25ms", **(jitter if on == "both" else {})},
        "flows": [{"cca": "reno", "app": {"rate": "2mbit", "chunk": 1448}}],
        "duration": "12s",
    }
    file = tmp_path / "a.pcapng"
    Model().write_pcap(Scenario.model_validate(fields), 5, file)
    p = fit(capture.read(file).flows[0])
    assert p.rtt_ms is not None
    assert p.rtt_ms.value == pytest.approx(50, abs=0.5)
    assert p.rtt_ms.low <= 50.03 <= p.rtt_ms.high
    assert p.rtt_ms.high - p.rtt_ms.low < 3


def test_a_small_jitter_beside_a_queue_of_others_does_not_explain_it() -> None:
    """It holds packets that were sent a millisecond apart, and the queue makes the delays of those sent far apart alike."""
    random = np.random.default_rng(6)
    sent = np.cumsum(random.exponential(4.0, 4_000))
    queue = 20 + 8 * np.sin(sent / 300)
    seen, since, together = in_order(sent, 30 + queue + random.normal(0, 1.0, sent.size))
    found = own.level_of(sent, seen, since, together)
    assert found is not None
    assert not found.is_jitter
    alone = own.level_of(*(sent, *in_order(sent, 30 + random.normal(0, 1.0, sent.size))))
    assert alone is not None
    assert alone.is_jitter


def test_a_queue_that_takes_longer_than_whole_turns_is_none() -> None:
    """An application's period of 8.16 ms by a clock of 1 ms drifts as a queue does; the turns took 2 ms."""
    rows = np.arange(100)
    delays = SimpleNamespace(arrivals=SimpleNamespace(row=rows), index=rows, tick=1.0)
    about = SimpleNamespace(wire=SimpleNamespace(t=np.arange(100.0)), before=Turns(rows, np.full(100, 2.0), np.zeros(100)))
    longer = lambda queue_ms: fitting.is_longer_than_turns(about, delays, SimpleNamespace(queue=np.full(100, queue_ms)))  # type: ignore[arg-type]  # noqa: E731
    assert longer(7.0)
    assert not longer(1.5)
    assert not longer(3.5), "within two ticks"


def test_turns_that_may_have_waited_leave_the_handshakes_in_the_interval() -> None:
    level, opening = Estimate(8.1, 8.0, 8.2, 900, "ms"), Estimate(7.7, 7.6, 7.8, 1, "ms")
    about = lambda least: SimpleNamespace(is_before=False, before=Turns(np.arange(100), np.linspace(least, 8.5, 100), np.zeros(100)))  # noqa: E731
    assert before.unwaited(about(7.9), level, opening).low == 7.6  # type: ignore[arg-type]
    assert before.unwaited(about(7.0), level, opening) == level, "one of them"  # type: ignore[arg-type]


def gathered(flow: ObservedFlow, most: int) -> ObservedFlow:
    """The flow as a sender with segmentation offload has it: what was sent at once and never again is one row, which came late if a part did."""
    order = np.argsort(flow.segments["seq"], kind="stable")
    rows = {name: np.asarray(column)[order] for name, column in flow.segments.items()}
    t, once = rows["t"].astype(np.int64), rows["sends"] == 1
    is_next = once[1:] & once[:-1] & (rows["seq"][1:] == rows["seq"][:-1] + rows["len"][:-1]) & (np.abs(np.diff(t)) < 50_000)
    begins = np.append(True, ~is_next)
    start = np.flatnonzero(begins)
    begins |= (np.arange(t.size) - np.repeat(start, np.diff(np.append(start, t.size)))) % most == 0
    at = np.flatnonzero(begins)
    summed = {name: np.add.reduceat(rows[name].astype(np.int64), at).astype(rows[name].dtype) for name in ("len", "segs")}
    is_late = np.logical_or.reduceat(rows["fate"] == REORDERED, at)
    fate = np.where(summed["segs"] == 1, rows["fate"][at], np.where(is_late, REORDERED, 0)).astype(rows["fate"].dtype)
    return replace(flow, segments={**{name: column[at] for name, column in rows.items()}, **summed, "fate": fate})


def test_the_parts_of_super_packets_that_came_late_count_as_late(tmp_path: Path) -> None:
    """At a sender with offload none of them did, and 21.6 [21.6, 21.7] ms without a jitter were told of 35.9 with 3.6."""
    fields = {
        "forward": "netem delay 20ms 3ms distribution normal limit 100000",
        "reverse": "netem delay 20ms",
        "flows": [{"cca": "cubic"}],
        "duration": "4s",
    }
    file = tmp_path / "a.pcapng"
    Model().write_pcap(Scenario.model_validate(fields), 1, file)
    flow = capture.read(file).flows[0]
    seen = gathered(flow, 16)
    single, parts = wire_of(flow), wire_of(seen)
    _, of_single, of_parts = np.intersect1d(single.seq, parts.seq, return_indices=True)
    is_part = np.repeat(seen.segments["segs"], seen.segments["segs"])[of_parts] > 1
    late = single.fate[of_single][is_part] == REORDERED
    assert late.sum() > 500
    assert np.mean(parts.fate[of_parts][is_part][late] == REORDERED) > 0.95
    p = fit(seen)
    assert p.rtt_ms
    assert p.rtt_ms.value == pytest.approx(40.0, rel=0.02)
    assert p.rtt_ms.low <= 40.0 <= p.rtt_ms.high


def test_delays_that_come_again_as_a_queue_does_are_none_of_a_jitter(tmp_path: Path) -> None:
    """Independent delays that are held in order have nothing in common after two deviations; a queue grows and falls with its flows' windows."""
    sent = np.arange(4_000) * 1.0
    held = np.maximum.accumulate(sent + 20 * np.random.default_rng(1).standard_normal(sent.size)) - sent
    queue = 40 * np.abs(sent % 200 / 100 - 1) + np.random.default_rng(2).standard_normal(sent.size)
    assert jitters.are_independent(sent, held, 20.0)
    assert not jitters.are_independent(sent, queue, 20.0)
    fields = {
        "forward": ["netem delay 10ms", "netem delay 20ms 1ms rate 1gbit"],
        "bottleneck": "tbf rate 20mbit burst 3028 limit 120000",
        "reverse": ["netem delay 30ms", "tbf rate 20mbit burst 3028 limit 150000"],
        "flows": [{"cca": "cubic"}, {"cca": "cubic", "direction": "up"}],
        "duration": "10s",
    }
    file = tmp_path / "a.pcapng"
    Model().write_pcap(Scenario.model_validate(fields), 0, file)
    for flow in capture.read(file).flows:
        assert fit(flow).jitter_ms is None, "25 [22, 29] ms were told"
