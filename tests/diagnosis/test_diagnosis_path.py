"""The fitted path: each step on columns whose truth is known, the whole on synthetic flows and on captures of the model."""

import math
import tracemalloc
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import erf, ndtr

from tcpscape import capture
from tcpscape.engines.model import Model
from tcpscape.findings.diagnosis import limits
from tcpscape.findings.diagnosis.bursts import is_served
from tcpscape.findings.diagnosis.observed import LimitInterval, ObservedFlow, SocketAddress
from tcpscape.findings.diagnosis.path import base, before, bottleneck, fit, fitting, hidden, losses, overtaken, state
from tcpscape.findings.diagnosis.path import jitter as jitters
from tcpscape.findings.diagnosis.path.bottleneck import (
    Arrivals,
    FittedBottleneck,
    QueueDelays,
    before_bottleneck,
    delays_of,
    delivered_rates,
    exposed,
    waits,
)
from tcpscape.findings.diagnosis.path.changes import parted, rate_step, two_plateaus
from tcpscape.findings.diagnosis.path.columns import order_of_receiver, sampled, tick_of, turns_of, unwrapped, wire_of
from tcpscape.findings.diagnosis.path.fitting import is_queue
from tcpscape.findings.diagnosis.path.jitter import order_is_kept, shape, share
from tcpscape.findings.diagnosis.path.losses import _waited, even_below, frequent_from, is_once_short, last_before, quiet_below
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.words import reasons

MSS = 1448


def flow(sent: Any, forward: Any, reverse: Any, lost: Any = None, vantage: str = "sender", clock: float = 1.0) -> ObservedFlow:
    """A flow whose receiver acknowledges each segment at once, with SACK; times in ms, all known. Lost segments arrive 200 ms later, sent again."""
    n = sent.size
    lost = np.zeros(n, dtype=bool) if lost is None else lost
    again = sent + 200.0
    arrived = np.where(lost, again, sent) + forward
    order = np.argsort(arrived, kind="stable")
    overtaken = np.concatenate([np.minimum.accumulate(arrived[::-1])[::-1][1:] < arrived[:-1], [False]])
    have = np.zeros(n + 1, dtype=bool)
    nxt, acks, left, right = 0, [], [], []
    for i in order:
        have[i] = True
        while have[nxt]:
            nxt += 1
        low = high = i
        if i >= nxt:
            while low > nxt and have[low - 1]:
                low -= 1
            while have[high]:
                high += 1
        acks.append(nxt)
        left.append(low * MSS if i >= nxt else 0)
        right.append(high * MSS if i >= nxt else 0)
    back = arrived[order] + reverse
    seen = np.zeros(n)
    seen[order] = back
    by_time = np.argsort(back, kind="stable")
    ns = lambda x: np.round(np.asarray(x) * 1e6).astype(np.uint64)  # noqa: E731
    u32 = lambda x: np.asarray(x).astype(np.uint32)  # noqa: E731
    segments = {
        "t": ns(sent),
        "frame": np.arange(n),
        "seq": (np.arange(n) * MSS).astype(np.uint64),
        "len": u32(np.full(n, MSS)),
        "segs": np.ones(n, dtype=np.uint16),
        "acked": ns(seen),
        "sends": (1 + lost).astype(np.uint16),
        "fate": np.where(lost, 2, overtaken).astype(np.uint8),
        "tsval": u32(np.floor(sent / clock) + 777),
        "tsecr": u32(np.ones(n)),
    }
    columns = {
        "t": ns(back),
        "frame": np.arange(n),
        "ack": (np.array(acks) * MSS).astype(np.uint64),
        "sack_left": np.array(left, dtype=np.uint64),
        "sack_right": np.array(right, dtype=np.uint64),
        "tsval": u32(np.floor(arrived[order] / clock) + 5_000),
        "tsecr": u32(np.ones(n)),
    }
    events = {"t": ns(again[lost]), "seq": segments["seq"][lost], "kind": np.ones(int(lost.sum()), dtype=np.uint8), "len": segments["len"][lost]}
    ends = SocketAddress("10.0.0.1", 1), SocketAddress("10.0.0.2", 2)
    return ObservedFlow(
        *ends,
        n,
        n * MSS,
        float(sent[-1]) / 1e3,
        0.0,
        vantage,
        None,
        facts={"begins_in_mid_connection": False},
        segments=segments,  # type: ignore[arg-type]
        acks={k: v[by_time] for k, v in columns.items()},
        events=events,
    )


def through(sent: Any, rate: float, burst: float = 0.0) -> Any:
    """Queue's delays of full packets with timestamps at `rate` Mbit/s, one packet after the other."""
    size, free, tokens, last, out = 1514, 0.0, burst, 0.0, []
    for t in sent:
        at = max(t, free)
        tokens = min(burst, tokens + (at - last) * rate * 125) if burst else 0.0
        last = at
        wait = max(0.0, (size - tokens) / (rate * 125)) if burst else size / (rate * 125)
        last = free = at + wait
        tokens = tokens + wait * rate * 125 - size if burst else 0.0
        out.append(free - t)
    return np.array(out)


def bursts(n: int, rate: float, seed: int = 1) -> Any:
    """Times of sending whose mean rate is now above, now below `rate`: the queue fills and drains."""
    random = np.random.default_rng(seed)
    gap = 1514 * 8e-3 / rate
    load = np.where(np.arange(n) // 400 % 2 == 0, 1.25, 0.7)
    return np.cumsum(gap / load * random.uniform(0.6, 1.4, n))


def test_waits_by_hand() -> None:
    """tbf rate 10mbit burst 6056: four full frames at once leave at once, then one each 1.2112 ms (docs/models/queues/tbf.md)."""
    got = waits(np.zeros(6), np.full(6, 1.2112), 6056 * 8e-3 / 10)
    assert got == pytest.approx([0, 0, 0, 0.0, 1.2112, 2.4224], abs=1e-3)


def test_receivers_order_and_ticks() -> None:
    """ACKs that overtook each other come back into order; stamps wrap; ticks are recognised."""
    assert order_of_receiver(np.array([30, 10, 20]), np.array([1, 2, 3]), np.array([100, 200, 200])).tolist() == [0, 1, 2]
    assert unwrapped(np.array([2**32 - 1, 1], dtype=np.uint32)).tolist() == [2**32 - 1, 2**32 + 1]
    t = np.arange(0, 10**9, 10**6)
    assert tick_of(t, t // 10**6) == 1.0
    assert tick_of(t, t // 4_000_000) == 4.0
    assert tick_of(t, np.zeros(t.size, dtype=np.int64)) == 0.0


def test_an_answer_without_timestamps_changes_nothing() -> None:
    """A closed socket answers a late segment without timestamps, and RFC 7323 §3.2 has the sender ignore it: the clocks stay known."""
    random = np.random.default_rng(7)
    sent = np.cumsum(random.uniform(0.5, 1.5, 4_000))
    made = flow(sent, 10 + random.normal(0, 1, 4_000), np.full(4_000, 10.0))
    last = {name: np.append(column, column[-1:]) for name, column in made.acks.items()} | {"tsval": np.append(made.acks["tsval"], np.uint32(0))}
    assert fit(replace(made, acks=last)) == fit(made)
    assert wire_of(replace(made, acks=last)).tick == 1.0


def test_reordered_acks_do_not_shorten_samples() -> None:
    """With ACKs that overtake each other each sample is the delay of its own ACK; "first acknowledged" would be biased."""
    random = np.random.default_rng(2)
    sent = np.arange(3000) * 1.0
    reverse = np.maximum(0, random.normal(20, 5, sent.size))
    f = flow(sent, np.full(sent.size, 10.0), reverse)
    s = sampled(wire_of(f))
    assert (s.row.size, s.rtt.mean()) == (sent.size, pytest.approx(30, abs=0.3))
    assert s.rtt.std() == pytest.approx(5, rel=0.05)


def test_segments_behind_a_hole_are_covered_by_their_own_sack() -> None:
    """The first SACK block covers a segment before the cumulative ACK does."""
    sent = np.arange(100) * 1.0
    forward = np.full(100, 10.0)
    forward[50] = 39.5
    wire = wire_of(flow(sent, forward, np.full(100, 5.0)))
    place, by_sack = wire.cover, wire.by_sack
    assert by_sack.sum() == 29
    assert not by_sack[50]
    assert place[51] == 50


@pytest.mark.parametrize(("rate", "burst"), [(2.0, 0.0), (20.0, 0.0), (20.0, 10_000.0), (80.0, 40_000.0)])
def test_a_queue_gives_its_rate_and_the_base(rate: float, burst: float) -> None:
    """Without jitter the rate is exact to 0.1 % and the base to half a packet."""
    sent = bursts(6000, rate)
    p = fit(flow(sent, 12.0 + through(sent, rate, burst), np.full(sent.size, 8.0)))
    assert p.rate_mbps.value == pytest.approx(rate, rel=1e-3)
    assert p.rate_mbps.low <= rate <= p.rate_mbps.high
    sending = 0.0 if burst else 1514 * 8e-3 / rate  # a link without a burst delays each packet by its own length: of the base, or of the queue
    assert 20 - 0.4 <= p.rtt_ms.value <= 20 + sending + 0.4
    assert p.queue == "self-induced"


def with_bottleneck(observed: ObservedFlow) -> state.Fit:
    """The fit of a flow after its queue was found."""
    wire = wire_of(observed)
    f = state.Fit(observed, wire, sampled(wire), turns_of(wire), wait=np.zeros(wire.t.size), queue=np.zeros(wire.t.size))
    fitting.find_bottleneck(f)
    f.forward, f.reverse = fitting.spreads(f)
    return f


def test_packets_of_an_idle_bottleneck_whose_ack_waited_change_no_burst() -> None:
    """Nine packets met it idle; the ACKs of five of them came 90 ms later, which no burst explains."""
    sent = bursts(6000, 5.0)
    first = np.arange(600, 6000, 600)
    sent += 3_000.0 * np.searchsorted(first, np.arange(6000), side="right")
    reverse = np.full(sent.size, 8.0)
    reverse[first[:5]] += 90.0
    f = with_bottleneck(flow(sent, 12.0 + through(sent, 5.0), reverse))
    base.anchor(f)
    assert f.bottleneck.burst < 2_000


def test_what_an_inexact_rate_adds_up_to_in_a_busy_queue_is_an_error_of_the_base() -> None:
    """A queue that is never empty for 24 s is in the mean 12 s old; a jitter of 24 ms at its ends is 0.1 % of them."""
    sent = np.arange(10_000) * 2.3
    f = with_bottleneck(flow(sent, 12.0 + through(sent, 5.0), np.full(sent.size, 8.0)))
    busy = float(sent[-1])
    f.before_queue = (busy / 1_000, 0.0, busy / 500)
    assert base.rate_error(f, f.bottleneck) == pytest.approx(0.005, rel=0.02)
    assert base.drift(f) == pytest.approx(float(f.delays.arrivals.at[f.delays.index].mean()) / 1_000, rel=0.02)


@pytest.mark.parametrize(("sigma_ms", "is_told"), [(0.3, True), (6.0, False)])
def test_a_rate_is_as_sure_as_the_longest_busy_time_against_the_jitter_before_it(sigma_ms: float, is_told: bool) -> None:
    """A jitter moves the ends of the time in which the queue was never empty: some 300 ms here."""
    sent = bursts(6000, 40.0)
    came = sent + 12.0 + np.abs(np.random.default_rng(4).normal(0, sigma_ms, sent.size))
    order = np.argsort(came, kind="stable")
    forward = np.empty(sent.size)
    forward[order] = came[order] + through(came[order], 40.0) - sent[order]
    p = fit(flow(sent, forward, np.full(sent.size, 8.0)))
    assert (p.rate_mbps is not None) is is_told
    assert p.rate_mbps.low <= 40.0 <= p.rate_mbps.high if is_told else p.reasons["rate_mbps"] == Reason("short bursts")


@pytest.mark.parametrize("where", ["forward", "reverse", "both"])
@pytest.mark.parametrize("sigma", [0.3, 3.0])
def test_jitter_and_its_direction(where: str, sigma: float) -> None:
    """On a path without a queue, also a jitter below a tick of the timestamps."""
    random = np.random.default_rng(3)
    sent = np.cumsum(random.exponential(2.0, 8000))
    forward, reverse = (
        30 + (random.normal(0, sigma, sent.size) if where in (side, "both") else 0) * np.ones(sent.size) for side in ("forward", "reverse")
    )
    p = fit(flow(sent, forward, reverse))
    assert (p.jitter_on, p.jitter_ms.value) == (where, pytest.approx(sigma, rel=0.06))
    assert p.jitter_ms.low <= sigma <= p.jitter_ms.high
    assert p.rtt_ms.value == pytest.approx(60, rel=0.01)
    assert p.rate_mbps is None
    assert "rate_mbps" in p.reasons


def test_what_acknowledgements_wait_behind_the_receivers_own_data_is_no_jitter() -> None:
    random = np.random.default_rng(3)
    sent = np.cumsum(random.exponential(2.0, 8000))
    both = flow(sent, np.full(sent.size, 30.0), 30 + through(sent, 6.2), vantage="sender")
    assert fit(both).jitter_on in ("reverse", None)
    both.acks["len"] = np.full(both.acks["t"].size, MSS, dtype=np.uint32)
    found = fit(both)
    assert (found.jitter_ms, found.jitter_on) == (None, None)
    assert found.rtt_ms is None or found.rtt_ms.low <= 62  # a packet takes 2 ms on that link
    reordered = flow(sent, np.full(sent.size, 30.0), 30 + random.normal(0, 3, sent.size) + through(sent, 6.2))
    reordered.acks["len"] = np.full(sent.size, MSS, dtype=np.uint32)
    assert fit(reordered).jitter_reverse_ms is None
    # Where no handshake shows the way of an acknowledgement alone, that queue may be in all of them.
    busy = flow(sent, 12.0 + through(sent, 20.0), 60 + 20 * np.sin(sent / 5e3) ** 2 + 4 * random.random(sent.size), vantage="sender")
    busy.acks["len"] = both.acks["len"]
    busy.facts["begins_in_mid_connection"] = True
    assert fit(busy).rtt_ms is None or fit(busy).rtt_ms.low == 0
    busy.acks["len"][:] = 0
    assert fit(busy).rtt_ms is None or fit(busy).rtt_ms.low > 60


def test_a_bottleneck_may_be_faster_by_what_the_capture_lacks() -> None:
    sent = bursts(6000, 20.0)
    seen = flow(sent, 12.0 + through(sent, 20.0), np.full(sent.size, 8.0))
    whole = fit(seen).rate_mbps
    seen.facts["not_captured_bytes"] = seen.bytes * 3 // 100
    rate = fit(seen).rate_mbps
    assert (rate.low, rate.high) == (whole.low, pytest.approx(whole.high / 0.97))
    # The acknowledgements of data that come the other way pass the same queue.
    seen.facts["not_captured_bytes"] = 0
    seen.acks["len"] = np.full(sent.size, MSS, dtype=np.uint32)
    seen.facts["segment_size"] = MSS
    assert fit(seen).rate_mbps.high == pytest.approx(whole.high * (1 + 94 / MSS))
    # So may packets that came twice.
    seen.acks["len"][:] = 0
    seen.facts.update(duplicates=120, segments=6_000)
    assert fit(seen).rate_mbps.high == pytest.approx(whole.high * 1.02)


def test_without_timestamps_the_direction_is_not_guessed() -> None:
    random = np.random.default_rng(4)
    f = flow(np.arange(3000) * 2.0, 30 + random.normal(0, 3, 3000), np.full(3000, 30.0))
    f.segments["tsval"][:] = 0
    f.acks["tsval"][:] = 0
    p = fit(f)
    assert p.jitter_ms is None
    assert p.jitter_on is None
    assert p.reasons["jitter_ms"] == Reason("directions alike")
    assert p.rtt_ms.value == pytest.approx(60, rel=0.02)


def test_random_loss_apart_from_the_queues() -> None:
    """Packets lost at any length of the queue are random, those lost at its end are not."""
    random = np.random.default_rng(5)
    rate, n = 10.0, 8000
    sent = bursts(n, rate)
    delay = through(sent, rate)
    lost = random.random(n) < 0.01
    full = (delay > 0.93 * delay.max()) & (random.random(n) < 0.5)
    p = fit(flow(sent, 10 + np.where(lost | full, 0, delay), np.full(n, 10.0), lost | full))
    assert p.loss_pct.low <= 1.0 <= p.loss_pct.high
    assert p.queue_loss_pct.value > 0.2


def test_losses_that_no_delay_explains_are_random_where_they_are_alone() -> None:
    """Groups are a policer's or a queue's that does not show, losses without delays anybody's, few ones perhaps random."""
    n = 8000
    sent, still = np.arange(n) * 2.0, np.full(n, 10.0)
    alone = np.random.default_rng(6).random(n) < 0.01
    together = np.arange(n) % 500 > 495
    few = np.isin(np.arange(n), (1_000, 5_000))
    by = {name: fit(flow(sent, still, still, lost)) for name, lost in (("alone", alone), ("together", together), ("few", few))}
    assert by["alone"].loss_pct.low <= 1.0 <= by["alone"].loss_pct.high
    assert (by["together"].loss_pct, by["together"].reasons["loss_pct"]) == (None, Reason("lost together"))
    assert (by["few"].loss_pct.low, by["few"].loss_pct.value) == (0.0, pytest.approx(0.025))
    unseen = flow(sent, still, still, alone, vantage="receiver")
    unseen.segments["tsval"][:] = unseen.acks["tsval"][:] = 0
    assert (fit(unseen).loss_pct, fit(unseen).reasons["loss_pct"]) == (None, Reason("queue unseen"))


def test_a_lost_packet_of_a_burst_met_what_came_before_it_alone() -> None:
    """Four packets leave at one time: the second, which is lost, met the first, whatever came behind it in the same moment."""
    at, row = np.array([1.0, 5.0, 5.0, 5.0, 9.0]), np.array([0, 1, 3, 4, 5])
    assert last_before(at, row, np.array([5.0, 9.0, 0.5]), np.array([2, 6, 7])).tolist() == [1, 4, 0]


def test_the_end_of_a_burst_that_was_lost_before_the_capture_met_the_burst() -> None:
    """Pairs leave every 10 ms; of the second pair the end is lost, not seen until 40 ms later. 4,542 bytes wait then; half way to the next pair, after
    5 ms of a server of 1.2 Mbit/s, 750 bytes less do. What the capture saw on its way has its own time.
    """
    at, row = np.array([0.0, 0.0, 10.0, 20.0, 20.0]), np.array([0, 1, 2, 4, 5])
    t = np.array([0.0, 0.0, 10.0, 50.0, 20.0, 20.0])
    seen = SimpleNamespace(t=t, stamp=t, seq=np.arange(6) * MSS, sends=np.array([1, 1, 1, 1, 1, 1]))
    lost = np.arange(6) == 3
    times = losses.sent_with(seen, lost, True)  # type: ignore[arg-type]
    assert [x.tolist() for x in times] == [[15.0], [10.0]]
    arrivals = SimpleNamespace(at=at, row=row)
    length = np.array([1514.0, 3028.0, 4542.0, 4556.0, 6070.0])
    assert [losses.lengths_at(arrivals, length, 1.2, x, np.array([3])).tolist() for x in times] == [[4542.0 - 750.0], [4542.0]]  # type: ignore[arg-type]
    passed = SimpleNamespace(t=t, stamp=t, seq=seen.seq, sends=np.array([1, 1, 1, 2, 1, 1]))
    assert [x.tolist() for x in losses.sent_with(passed, lost, False)] == [[50.0], [50.0]]  # type: ignore[arg-type]


def test_random_losses_in_bursts_of_one_time_are_random() -> None:
    """Bursts of four to six at 7 Mbit/s, a short queue each; a link loses 1 % of any packets. None is a queue's for what came behind it."""
    random = np.random.default_rng(5)
    sent = np.repeat(np.cumsum(random.uniform(8.0, 12.0, 3_000)), random.choice((4, 5, 6), 3_000))
    lost = random.random(sent.size) < 0.01
    p = fit(flow(sent, 10 + np.where(lost, 0.0, through(sent, 7.0)), np.full(sent.size, 10.0), lost))
    assert p.rate_mbps is not None
    assert p.loss_pct is not None
    assert p.loss_pct.low <= 100 * lost.mean() <= p.loss_pct.high
    assert p.loss_pct.value == pytest.approx(100 * lost.mean(), rel=0.25)


def policed(sent: Any, rate: float, burst: float) -> Any:
    """Which full packets with timestamps a policer drops that refills `burst` bytes at `rate` Mbit/s."""
    tokens, last, drops = burst, 0.0, []
    for t in sent:
        tokens, last = min(burst, tokens + (t - last) * rate * 125), t
        drops.append(tokens < 1514)
        tokens -= 0 if drops[-1] else 1514
    return np.array(drops)


def test_what_a_policer_drops_is_not_random() -> None:
    """It drops one by one and delays nothing; only how much was sent before explains it. A link that loses as many of the same packets is random."""
    random = np.random.default_rng(8)
    sent, still = bursts(12_000, 20.0), np.full(12_000, 10.0)
    drops = policed(sent, 20.0, 60_000)
    share = 100 * float(drops.mean())
    assert 1 < share < 10
    path = fit(flow(sent, still, still, drops))
    assert path.loss_pct is None or path.loss_pct.value < 0.1 * share
    mixed = fit(flow(sent, still, still, drops | (random.random(drops.size) < 0.01)))
    assert mixed.loss_pct is None or abs(math.log(mixed.loss_pct.value)) < 3 / math.sqrt(0.01 * mixed.loss_pct.n)
    link = fit(flow(sent, still, still, random.random(drops.size) < share / 100))
    assert link.loss_pct.low <= share <= link.loss_pct.high


def test_drops_beside_waits_as_long_as_a_bucket_lacks_tokens_are_a_queues() -> None:
    """One burst of 40 Mbit/s, as of a slow start, fills a queue of 36 ms at 20 Mbit/s: too short for its rate, and no policer. Of all, 1 % are lost."""
    random = np.random.default_rng(3)
    gap = np.full(4_000, 2.5)
    gap[500:750] = 0.3
    sent = np.cumsum(gap * random.uniform(0.6, 1.4, gap.size))
    drops, delay, free = np.zeros(sent.size, dtype=bool), np.zeros(sent.size), 0.0
    for i, t in enumerate(sent):
        drops[i] = free - t > 36.0
        free = max(free, t) + (0.0 if drops[i] else 1514 * 8e-3 / 20.0)
        delay[i] = free - t
    path = fit(flow(sent, 20 + delay, np.full(sent.size, 20.0), drops | (random.random(sent.size) < 0.01)))
    assert path.loss_pct is not None, path.reasons["loss_pct"]
    assert path.loss_pct.low <= 1.0 <= path.loss_pct.high
    assert path.queue_loss_pct.low <= 100 * drops.mean() <= path.queue_loss_pct.high


def test_a_buffer_is_no_longer_than_packets_waited(tmp_path: Path) -> None:
    """A bucket of 139 kB before a queue of 29 kB: who counts from the first packet on finds more than anybody waited for."""
    p = found(tmp_path, bottleneck="tbf rate 6.7mbit burst 139042 limit 29196", duration="30s")
    assert p.buffer_bytes is None or p.buffer_bytes.value == pytest.approx(29_196, rel=0.2)


def test_without_sack_what_was_lost_before_timeouts_is_not_known() -> None:
    sent, still = np.arange(8_000) * 2.0, np.full(8_000, 10.0)
    seen = flow(sent, still, still, np.random.default_rng(6).random(8_000) < 0.01)
    assert fit(seen).loss_pct is not None
    for facts, is_known in (({"sack": False, "after_timeout": 70}, False), ({"sack": True, "after_timeout": 70}, True), ({"sack": False}, True)):
        path = fit(replace(seen, facts={**seen.facts, "retransmissions": 80, **facts}))
        assert (path.loss_pct is not None) == is_known
        assert is_known or path.reasons["loss_pct"] == Reason("repeated without SACK")


def test_delays_that_vary_in_order_are_neither_jitter_nor_the_base() -> None:
    """Others fill a queue: the least round trip is that of a path which was never empty, unless the handshake took just as long."""
    random = np.random.default_rng(7)
    sent = np.cumsum(random.exponential(5.0, 6000))
    queue = 20 + 60 * np.abs(2 * (sent / 9_000 % 1) - 1) ** 0.5
    f = flow(sent, 30 + queue, np.full(sent.size, 10.0))
    p = fit(f)
    assert (p.rtt_ms, p.jitter_ms, p.jitter_on) == (None, None, None)
    assert p.reasons["rtt_ms"].why == "delays vary in order"
    assert (p.queue, p.reasons["queue"].why) == (None, "delays vary in order")
    assert "other flows in a queue" in reasons.text(p.reasons["jitter_ms"])
    assert p.reasons["rtt_ms"].values["ms"] >= 40, "the usual delay is at least the base"
    lossy = fit(flow(sent, 30 + queue, np.full(sent.size, 10.0), random.random(sent.size) < 0.005))
    assert lossy.loss_pct is None or lossy.loss_pct.low == 0, "that queue may have dropped any of them"


def test_a_least_round_trip_that_comes_again_and_again_is_the_base_though_others_fill_the_queue() -> None:
    """Others keep forty packets in a queue, and pause each ten seconds, as BBR's probes for the least RTT do; where they never pause, none is told."""
    random, service = np.random.default_rng(7), 1.2
    sent = np.sort(random.uniform(0, 30_000, 3000))

    def seen(pauses: int) -> Any:
        begins = np.arange(3) * 10_000.0
        ends = begins + np.where(np.arange(3) < pauses, 9_700, 10_000)
        busy = [np.concatenate([np.full(40, t), np.arange(t, end, service * 1.12)]) for t, end in zip(begins, ends, strict=True)]
        sparse = [random.uniform(t + 9_700, t + 10_000, 20) for t in begins[:pauses]]
        others = np.concatenate([*busy, *sparse])
        at = np.concatenate([sent, others])
        order = np.argsort(at, kind="stable")
        queue = np.empty(at.size)
        queue[order] = waits(at[order], np.full(at.size, service), 0.0)
        return fit(flow(sent, 30 + queue[: sent.size], np.full(sent.size, 10.0)))

    again = seen(3)
    assert again.rtt_ms is not None
    assert again.rtt_ms.value == pytest.approx(40 + service, abs=0.05)
    assert again.rtt_ms.high - again.rtt_ms.low < 0.3
    for pauses in (0, 1):
        assert seen(pauses).rtt_ms is None


def test_of_a_capture_in_mid_connection_the_least_round_trip_may_have_a_standing_queue_in_it() -> None:
    """A window of 40 kB at 10 Mbit/s over 10 ms: each round trip takes 32 ms, as long as it stays so. What runs out in each had none."""
    sent = 1.2 * np.arange(4_000)
    seen = flow(sent, np.full(sent.size, 22.0), np.full(sent.size, 10.0))
    seen.facts["begins_in_mid_connection"] = True
    for under_way, least in ((40_000, 0.0), (MSS, 31.0)):
        path = fit(replace(seen, goodput_mbps=9.65, segments={**seen.segments, "flight": np.full(sent.size, under_way, dtype=np.uint32)}))
        assert path.rtt_ms.value == pytest.approx(32, rel=0.01)
        assert (path.rtt_ms.low < 10) is (least == 0.0)
        assert path.rtt_ms.low >= least
    begun = {**seen.facts, "begins_in_mid_connection": False}
    path = fit(replace(seen, facts=begun, goodput_mbps=9.65, segments={**seen.segments, "flight": np.full(sent.size, 40_000, dtype=np.uint32)}))
    assert path.rtt_ms.low > 31


def test_delays_in_whole_steps_above_the_least_are_those_of_a_server_that_is_never_idle() -> None:
    random = np.random.default_rng(3)
    steps = 27.6 + 4.6 * random.integers(0, 6, 500)
    assert base.is_on_grid(np.append(steps, 27.6 + random.uniform(5, 20, 30)))
    assert not base.is_on_grid(np.append(steps, 27.6 + random.uniform(0, 4.6, 30)))
    assert not base.is_on_grid(np.append(steps, [28.5, 29.2, 30.2, 30.8, 31.6])), "five rests of packets before the first step"

    def again(delays: Any, at: Any) -> Estimate | None:
        behind = SimpleNamespace(at=at, rtt=delays)
        return base.least_again(SimpleNamespace(is_receiver=False, has_before=False, behind=behind, flow=SimpleNamespace(facts={})))  # type: ignore[arg-type]

    at = np.sort(random.uniform(0, 30_000, 500))
    rests = np.where(random.random(500) < 0.2, 27.6, 27.6 + random.uniform(0, 20, 500))
    assert again(steps, at) is None
    assert again(rests, at) is not None
    assert again(rests, at / 300) is None, "all within a few of the longest delays"


def test_a_base_above_the_least_round_trip_is_none_without_jitter() -> None:
    def kept(*spreads: jitters.Spread) -> Estimate:
        return base.not_above(Estimate(26.0, 25.0, 27.0, 100, "ms"), about(*spreads))  # type: ignore[arg-type]

    assert (kept().value, kept().high) == (20.0, 27.0)
    seen = kept(jitters.Spread(4.0, 0.1, 10, 100))
    assert (seen.value, seen.low) == (26.0, pytest.approx(19.94))  # the base, less what packets take on the links
    for level, low in ((Estimate(26.0, 25.0, 27.0, 100, "ms"), pytest.approx(19.94)), (Estimate(26.0, 12.0, 27.0, 100, "ms"), 12.0)):
        possible = base.not_above(level, SimpleNamespace(**{**vars(about()), "hidden": 2.0}))  # type: ignore[arg-type]
        assert (possible.value, possible.low, possible.high) == (20.0, low, 27.0), "a jitter that nothing shows makes no base longer"


def test_behind_a_slow_link_the_base_is_the_least_round_trip_though_a_jitter_could_hide_there(tmp_path: Path) -> None:
    """Packets of 200 ms whose queue is hardly ever empty, after a handshake that resolved an address too: only the first packets met no queue."""
    hop = {"at": "router", "delay": "6.5ms"}
    fields: dict[str, Any] = {"forward": [hop], "reverse": hop, "bottleneck": "tbf rate 62kbit burst 3028 limit 15140", "duration": "40s"}
    file = tmp_path / "slow.pcapng"
    Model().write_pcap(Scenario.model_validate(PATH | fields | {"flows": [{"cca": "vegas"}]}), 1, file)
    seen = capture.read(file).flows[0]
    p = fit(replace(seen, facts={**seen.facts, "handshake_receiver_part_ms": 26.0}))
    assert p.rtt_ms is not None
    assert p.rtt_ms.value == pytest.approx(13, abs=0.1)
    assert p.rtt_ms.high > 20, "a jitter of such a size would not show"


def test_a_burst_of_a_bucket_leaves_the_base_no_more_open_than_delays_do() -> None:
    """A level of 20 ms that a burst leaves open by 30 is at most the least round trip; packets that met an idle bucket and took as long have no burst."""
    level = Estimate(20.0, 0.0, 50.0, 100, "ms")
    assert base.not_above(level, about()).high == pytest.approx(20.0, rel=0.01)  # type: ignore[arg-type]
    assert base.not_above(level, about(jitters.Spread(4.0, 0.1, 10, 100))).high == 50.0  # type: ignore[arg-type]
    assert base.agree(np.array([20.001, 20.0]), about())  # type: ignore[arg-type]
    assert not base.agree(np.array([20.001, 20.0]), about(jitters.Spread(4.0, 0.1, 10, 100)))  # type: ignore[arg-type]
    assert not base.agree(np.array([20.1, 20.0]), about())  # type: ignore[arg-type]


def about(*spreads: jitters.Spread) -> SimpleNamespace:
    """What a fit has of a sender without a queue that waited for 20 and 30 ms."""
    wire = wire_of(flow(*[np.arange(20.0)] * 3))
    trips = SimpleNamespace(rtt=np.array([20.0, 30.0]))
    forward, reverse = (*spreads, None, None)[:2]
    facts = SimpleNamespace(facts={})
    return SimpleNamespace(hidden=0.0, behind=trips, flow=facts, wire=wire, varies_in_order=False, forward=forward, reverse=reverse)


def test_losses_beside_segments_that_the_receiver_discarded_are_at_most_random() -> None:
    seen = Estimate(0.07, 0.05, 0.1, 47_600, "%")
    assert losses.beside_others(seen, {"losses_uncertain": 86, "discarded": 27, "segments": 47_600}, None).low == 0.0
    assert losses.beside_others(seen, {"losses_uncertain": 5, "discarded": 1, "segments": 47_600}, None).low == pytest.approx(0.05 - 500 / 47_600)
    assert losses.beside_others(seen, {"losses_uncertain": 86, "discarded": 0, "segments": 47_600}, None) == seen


def test_repetitions_whose_dsack_was_lost_are_no_sure_losses():
    """Of 42 timeouts whose ACKs alone were lost 19 DSACKs come, as 55 % of all ACKs are lost: the other 23 seem losses of 11,000 segments."""
    seen = Estimate(0.135, 0.078, 0.221, 11_000, "%")
    half_lost = Estimate(54.7, 53.3, 56.1, 5_000, "%")
    assert 23 < losses.unseen_needless({"spurious_by_dsack": 19}, half_lost) < 45
    assert losses.beside_others(seen, {"spurious_by_dsack": 19}, half_lost).low == 0.0
    assert losses.beside_others(seen, {"spurious_by_dsack": 19}, Estimate(0.0, 0.0, 0.1, 5_000, "%")).low == pytest.approx(0.078, abs=0.004)
    assert losses.beside_others(seen, {"spurious_by_dsack": 0}, half_lost) == seen


def test_a_queue_that_others_fill_too_has_no_rate_of_its_own(tmp_path: Path) -> None:
    """What a flow gets beside others fits as a rate; packets that wait for others' longer than for their own show that it is a share."""
    both = [{"cca": "hybla", "start": "400ms"}, {"cca": "cubic"}]
    fields: dict[str, Any] = {"forward": [{"at": "router", "delay": "35ms"}], "reverse": {"at": "router", "delay": "23ms"}, "duration": "30s"}
    shared = found(tmp_path, **fields, bottleneck="tbf rate 15mbit burst 7470 limit 295682", flows=both)
    assert (shared.rate_mbps, shared.reasons["rate_mbps"]) == (None, Reason("shared queue"))
    assert (shared.queue, "queue" in shared.reasons) == (None, True)
    assert shared.buffer_bytes is None
    alone = found(tmp_path, **fields, bottleneck="tbf rate 15mbit burst 7470 limit 295682", flows=both[:1])
    assert alone.rate_mbps.value == pytest.approx(15, rel=0.01)


def test_a_jitter_that_a_busy_queue_hides_widens_the_round_trip(tmp_path: Path) -> None:
    """Delays of 60 ± 8 ms in order before a queue that is never empty: the least round trip is not the base, and nothing bounds that jitter."""
    hop = {"at": "router", "delay": "60ms", "jitter": "8ms", "distribution": "normal", "rate": "1gbit"}
    p = found(tmp_path, forward=[hop], reverse={"at": "router", "delay": "40ms"}, bottleneck="tbf rate 4mbit burst 3028 limit 200000", duration="30s")
    assert p.rtt_ms is None or p.rtt_ms.low <= 100 <= p.rtt_ms.high
    assert p.jitter_ms is None
    assert "any that does not" in reasons.text(p.reasons["jitter_ms"]) or p.reasons["jitter_ms"].why == "delays vary in order"


def test_behind_a_queue_that_is_never_short_the_base_is_that_of_packets_that_met_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A burst that the fit has a little too small moves the level of all packets, and no delay says so: a few packets met an idle bottleneck."""
    hop, back = {"at": "router", "delay": "30ms", "jitter": "1.5ms"}, {"at": "router", "delay": "30ms"}
    fields: dict[str, Any] = {"forward": [hop], "reverse": back, "bottleneck": "tbf rate 30mbit burst 5000 limit 450000", "duration": "12s"}
    near = found(tmp_path, **fields)
    assert near.rtt_ms.value == pytest.approx(60, abs=0.5)
    monkeypatch.setattr(base, "is_never_short", lambda fit: False)
    monkeypatch.setattr(base, "drift", lambda fit: 0.0)
    assert abs(found(tmp_path, **fields).rtt_ms.value - 60) > abs(near.rtt_ms.value - 60)


def test_delays_beyond_what_numbers_tell_apart_give_no_rate() -> None:
    """Clocks that are set make times of 10^19 ms, at which 100 ms more is the same number."""
    n = 400
    at = np.full(n, 1e19)
    arrivals = Arrivals(at, at, np.full(n, 1514.0), np.arange(n))
    with np.errstate(divide="raise", invalid="raise"):
        assert delivered_rates(delays_of(arrivals, np.arange(n), at, np.full(n, 40.0))).size == 0


def test_what_leaves_with_the_handshakes_ack_does_not_confirm_it() -> None:
    """Under jitter that keeps the order the first segment arrives with that ACK, and its turn is the handshake's again; later turns decide."""

    def is_exact(later: float) -> bool:
        turns = SimpleNamespace(row=np.arange(100), rtt=np.concatenate([[22.0], np.full(99, later)]))
        about = SimpleNamespace(
            before=turns, wire=wire_of(flow(np.arange(100.0), *[np.zeros(100)] * 2)), flow=SimpleNamespace(facts={"handshake_sender_part_ms": 22.0})
        )
        return before.is_exact(about)  # type: ignore[arg-type]

    assert [is_exact(22.0), is_exact(22.4), is_exact(21.6)] == [True, False, False]


def test_a_turn_shorter_than_the_handshake_is_a_jitter_that_it_had_too() -> None:
    def opening(least: float) -> Estimate:
        turns = SimpleNamespace(row=np.arange(100), rtt=np.linspace(least, 90, 100))
        wire = wire_of(flow(np.arange(100.0), *[np.zeros(100)] * 2))
        facts = SimpleNamespace(facts={"handshake_sender_part_ms": 63.0})
        estimate = before.handshake(SimpleNamespace(before=turns, wire=wire, flow=facts, forward=None, reverse=None, varies_in_order=False))  # type: ignore[arg-type]
        assert estimate is not None
        return estimate

    sure, unsure = opening(63.0), opening(55.5)
    assert sure.high - sure.low < 0.5
    assert (unsure.low, unsure.high) == pytest.approx((55.5, 68.0))


def test_a_delay_that_varies_in_order_at_the_sender_is_no_path_without_jitter(tmp_path: Path) -> None:
    """Of 20 ± 1 ms in order, and packets closer than that: "no jitter", and the least round trip as the base, would both be wrong."""
    hop = {"at": "router", "delay": "20ms", "jitter": "1ms", "distribution": "normal", "rate": "1gbit"}
    bulk = [{"cca": "cubic", "rcvbuf": "60KiB"}]
    p = found(tmp_path, forward=[hop], reverse={"at": "router", "delay": "20ms"}, bottleneck=None, flows=bulk)
    assert p.jitter_on != "none"
    assert p.jitter_ms is None or p.jitter_ms.high > 0.5
    assert p.rtt_ms is None or p.rtt_ms.low <= 40 <= p.rtt_ms.high


def test_a_least_round_trip_that_nothing_explains_is_no_base_without_jitter(tmp_path: Path) -> None:
    """A queue that is never short lets packets leave at its rate whenever they came: the few at the begin alone had the jitter that keeps the order."""
    hop = {"at": "router", "delay": "20ms", "jitter": "2ms", "distribution": "normal", "rate": "1gbit"}
    fields: dict[str, Any] = {"reverse": {"at": "router", "delay": "10ms"}, "bottleneck": "tbf rate 50mbit burst 25000 limit 650000"}
    p = found(tmp_path, forward=[hop], **fields)
    assert (p.jitter_on, p.jitter_ms) == (None, None)
    assert p.rtt_ms is None or p.rtt_ms.low <= 30 <= p.rtt_ms.high
    still = found(tmp_path, forward=[{"at": "router", "delay": "20ms"}], **fields)
    assert still.jitter_on == "none"
    assert still.rtt_ms.low <= 30 <= still.rtt_ms.high <= still.rtt_ms.low + 0.3


def test_where_ends_wait_the_base_is_between_the_least_and_the_middle_of_a_jitter_that_would_spread_so() -> None:
    random = np.random.default_rng(2)
    trips = 40 + np.abs(random.normal(0, 1, 400)) + np.where(random.random(400) < 0.5, random.uniform(0, 30, 400), 0)
    none = jitters.Spread(0.0, 0.0, 12, 400)

    def of(spread: jitters.Spread | None, hidden: float = 0.0) -> Estimate:
        return base.least(trips, SimpleNamespace(forward=spread, reverse=spread, hidden=hidden))  # type: ignore[arg-type]

    seen, unseen = of(none), of(None)
    assert (seen.value, seen.low < trips.min(), seen.high < 41) == (unseen.value, True, True)
    assert unseen.low <= trips.min() < 41 < unseen.high
    assert of(none, hidden=0.5) == unseen, "a jitter that the distances hide is no less there for not being seen"


def test_a_handshakes_single_turn_has_the_jitter_that_a_queue_hides() -> None:
    opening, level = Estimate(50.0, 49.9, 50.1, 1, "ms"), Estimate(50.0, 49.9, 50.1, 400, "ms")

    def widened(queue_ms: float, hidden: float = 0.0, error: float = 0.0, is_before: bool = True) -> Estimate:
        about = SimpleNamespace(is_before=is_before, hidden=hidden, queue=np.full(400, queue_ms), before=SimpleNamespace(row=np.arange(400)))
        about.bottleneck, about.reverse = SimpleNamespace(rate=12.0), jitters.Spread(0.0, error, 12, 400)
        return before.with_hidden(about, level, opening)  # type: ignore[arg-type]

    assert widened(0.0) == widened(20.0, error=0.5, is_before=False) == level
    deviations = 2.0 * np.exp(np.random.default_rng(1).uniform(math.log(jitters.FLOOR / 2.0), 0, 400_000))
    assert np.mean(erf(jitters.reach(2.0) / (deviations * math.sqrt(2)))) == pytest.approx(0.95, abs=0.005)
    assert (jitters.reach(0.0), jitters.reach(jitters.FLOOR)) == (0.0, pytest.approx(1.96 * jitters.FLOOR, rel=1e-3))
    assert widened(20.0, error=0.5).low == pytest.approx(50 - jitters.reach(1.0) - 1514 * 8e-3 / 12.0)  # and one packet of another flow
    assert widened(20.0, hidden=2.0).high == widened(0.0, hidden=2.0).high == pytest.approx(50 + jitters.reach(2.0))


def test_packets_in_a_queue_came_no_later_than_it_took_to_drain() -> None:
    """What a busy queue hides is bounded by its shortest lengths, unless the handshake took as long as the least round trip."""
    at = np.arange(2_000) * 1.0

    def largest(queue_ms: float, opening: float = 200.0) -> float:
        about = SimpleNamespace(is_before=False, forward=None, reverse=None, delays=None, wire=wire_of(flow(at[:20], *[np.zeros(20)] * 2)))
        about.bottleneck, about.queue = SimpleNamespace(rate=12.0), queue_ms + at / 100
        about.behind = SimpleNamespace(row=np.arange(at.size), rtt=100.0 + about.queue)
        about.flow = SimpleNamespace(facts={"handshake_receiver_part_ms": opening})
        return hidden.kept_in_order(about)  # type: ignore[arg-type]

    least = min(range(1, 200), key=lambda sigma: abs(float(np.sum(np.log(ndtr((20 + at[:500] / 100) / sigma)))) - math.log(0.05)))
    assert largest(20.0) == pytest.approx(least, abs=1)
    assert largest(10.0) < largest(20.0) < largest(400.0) == pytest.approx(200 / hidden.UNCUT), "no delay is below nothing"
    assert largest(20.0, opening=120.0) == 0.0


def test_values_of_one_round_trip_count_once_and_few_tell_little() -> None:
    at = np.array([0.0, 1.0, 2.0, 30.0, 31.0, 95.0])
    assert jitters.apart(at, at, 30.0).tolist() == [0.0, 30.0, 95.0]
    assert jitters.largest_deviation(np.array([1.0, 2.0, 3.0])) == pytest.approx(4.415, abs=0.01)
    draws = np.random.default_rng(5).normal(0, 1, (4_000, 6))
    assert np.mean([jitters.largest_deviation(x) > 1 for x in draws]) == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(("sigma_ms", "is_told"), [(0.577, False), (2.0, True)])
def test_what_the_distances_of_the_packets_spread_is_no_jitter_of_the_acks(sigma_ms: float, is_told: bool) -> None:
    """At a receiver behind a queue of 12 Mbit/s, a packet each ms: an ACK of two is answered within two of them."""
    still, queue = jitters.Spread(0.0, 0.0, 12, 400), np.full(400, 20.0)
    about = SimpleNamespace(is_before=True, bottleneck=SimpleNamespace(rate=12.0), hidden=0.02, before_queue=None, jitter_on="reverse", reasons={})
    about.flow, about.wire, about.has_before = (
        SimpleNamespace(vantage="receiver", facts={}),
        SimpleNamespace(tick=1.0, ack_t=np.arange(400.0) * 99),
        True,
    )
    about.left, about.behind, about.before, about.queue = (0.0, 0.0), SimpleNamespace(row=np.arange(0)), SimpleNamespace(row=np.arange(400)), queue
    about.forward, about.reverse = still, jitters.Spread(sigma_ms**2, sigma_ms**2 / 50, 12, 400)
    one, _, _ = fitting.jitter_estimates(about)  # type: ignore[arg-type]
    assert (one is not None) == is_told
    assert about.jitter_on is None, "a busy queue hides what the data have"
    assert about.reasons["jitter_on"].why == ("jitter hidden" if is_told else "ends wait")


def test_a_skewed_jitter_has_its_mean_above_the_usual_delay() -> None:
    random = np.random.default_rng(4)
    trips = 40 + random.pareto(2.5, 4000)
    behind = SimpleNamespace(row=np.arange(4000), rtt=trips)
    about = SimpleNamespace(is_receiver=False, has_before=False, is_before=False, queue=np.zeros(4000), behind=behind)
    usual = base.usual_round_trip(about)  # type: ignore[arg-type]
    assert np.median(trips) < usual < trips.mean() + 0.1


def test_quantiles_of_sorted_values_are_numpys_to_the_bit() -> None:
    rng, of = np.random.default_rng(5), np.linspace(0, 1, 21)
    for count in (1, 2, 3, 19, 20, 21, 500):
        x = np.sort(rng.normal(0, 10, count))
        assert losses.quantiles(x, of).tolist() == np.quantile(x, of).tolist()
        assert all(np.isnan(quantiles(np.append(x, math.nan), of)).all() for quantiles in (losses.quantiles, np.quantile))


def _delays(rng: np.random.Generator, count: int) -> QueueDelays:
    """Delays of most of so many packets behind a bottleneck of 8 Mbit/s."""
    at = rng.exponential(1.0, count).cumsum()
    arrivals = Arrivals(at, at + rng.normal(0, 0.1, count), rng.choice([64.0, 576.0, 1514.0], count), np.arange(count))
    seen = np.flatnonzero(rng.random(count) < 0.8)
    return delays_of(arrivals, seen, at[seen], 50 + arrivals.waits(8.0, 3000.0)[seen] + rng.exponential(0.4, seen.size))


def test_the_deviation_that_many_rates_are_tried_by_is_numpys_to_the_bit() -> None:
    rng = np.random.default_rng(3)
    for count in (40, 41, 100, 777, 3_000, 9_001):
        d = _delays(rng, count)
        for rate, burst, cap in ((8.0, 3000.0, math.inf), (5.0, 0.0, 0.3), (8.7, 100.0, 2.0), (30.0, 9000.0, math.inf)):
            for delays in (d, d.up_to(9.0)) if rate < 9 else (d,):
                left = np.abs(delays.centred(delays.delay - delays.waits(rate, burst)))
                assert bottleneck.deviation(delays, rate, burst, cap) == float(np.mean(np.minimum(left, cap)))


def test_delays_that_overflow_leave_no_deviation_that_is_a_number() -> None:
    d = _delays(np.random.default_rng(4), 100)
    for value in (math.nan, math.inf, 1e300):
        wild = replace(d, delay=np.where(np.arange(d.delay.size) == 7, value, d.delay))
        assert wild.residual is None
        with np.errstate(all="ignore"):
            assert not bottleneck.deviation(wild, 8.0, 3000.0) < 1e290


def test_packets_that_met_an_idle_bottleneck_under_a_skewed_jitter_show_its_mean(tmp_path: Path) -> None:
    """Half of them are below 77 ms: the mean of a Pareto's delays is the base, not their middle."""
    back = {"at": "router", "delay": "55ms", "jitter": "10ms", "distribution": "pareto"}
    fields: dict[str, Any] = {"forward": [{"at": "router", "delay": "25ms"}], "reverse": back, "flows": [{"cca": "reno"}], "duration": "20s"}
    p = found(tmp_path, **fields, bottleneck="tbf rate 18mbit burst 9000 limit 30000")
    assert p.rtt_ms.value == pytest.approx(80, abs=1)
    assert p.rtt_ms.low <= 80 <= p.rtt_ms.high


def test_behind_a_busy_queue_jitter_of_the_acks_does_not_tell_that_the_data_have_none(tmp_path: Path) -> None:
    back = {"at": "router", "delay": "30ms", "jitter": "3ms", "distribution": "normal"}
    fields: dict[str, Any] = {"forward": [{"at": "router", "delay": "20ms"}], "reverse": back}
    busy = found(tmp_path, **fields, bottleneck="tbf rate 30mbit burst 20000 limit 400000")
    assert busy.jitter_on is None
    assert "any that does not" in reasons.text(busy.reasons["jitter_on"])
    assert busy.jitter_ms is not None, "that of the ACKs is seen"
    free = found(tmp_path, **fields, bottleneck=None, flows=[{"cca": "cubic", "app": {"rate": "20mbit"}}])
    assert free.jitter_on == "reverse"


def test_a_jitter_that_is_cut_off_at_nothing_has_no_sharp_least() -> None:
    random = np.random.default_rng(9)
    cut_off = np.maximum(0.0, random.normal(15, 5, 20_000)) + 100
    queue = np.concatenate([np.full(100, 100.0), 100 + 40 * np.abs(np.sin(np.arange(19_900) / 300)) + 0.5])
    assert int(np.sum(cut_off == 100)) > 5
    assert (state.is_sharp(cut_off), state.is_sharp(queue)) == (False, True)


def test_rounding_by_timestamps_is_no_queue() -> None:
    """Millisecond stamps of packets at near distances rise and fall by one: a link would explain it."""
    about = {"burst": 0.0, "error": 1e-4, "burst_error": 0.0, "explained": 0.4, "wait": np.empty(0), "noise": 0.25}
    grown = FittedBottleneck(rate=57.6, queue=np.linspace(0, 1.2, 500), **about)  # type: ignore[arg-type]
    assert (is_queue(grown), is_queue(grown, tick=1.0)) == (True, False)


@pytest.mark.parametrize(("packets", "explained", "is_known"), [(2.6, 0.12, False), (2.6, 0.7, True), (8.0, 0.12, True), (8.0, 0.05, False)])
def test_a_queue_of_two_packets_must_explain_most_of_the_delays(packets: float, explained: float, is_known: bool) -> None:
    """Bursts of a few segments behind a bucket of tokens: a rate that is a quarter too high beside a larger bucket leaves most delays as they are."""
    about = {"burst": 4_600.0, "error": 3e-4, "burst_error": 0.3, "wait": np.empty(0), "noise": 4e-4}
    queue = np.linspace(0, packets * 1514 * 8e-3 / 13.1, 500)
    assert is_queue(FittedBottleneck(rate=13.1, queue=queue, explained=explained, **about)) is is_known  # type: ignore[arg-type]


def test_drops_of_a_queue_that_is_always_full_are_not_random(tmp_path: Path) -> None:
    """Others keep the queue full: drops depend on no delay, as those of a lossy link, and the delays are never short."""
    random = np.random.default_rng(10)
    delay = 40 + 3 * random.beta(8, 1, 4_000)
    assert not is_once_short(delay)
    assert is_once_short(np.full(4_000, 10.0))
    assert is_once_short(random.normal(40, 3, 4_000))


def test_a_super_packet_that_is_sent_again_is_sent_again_whole() -> None:
    """Segments that were lost came with the retransmission: counted at their first sending, they would make the queue too long."""
    seen = flow(np.arange(40) * 1.0, np.full(40, 5.0), np.full(40, 5.0))
    rows = {name: column[::4] for name, column in seen.segments.items()}
    rows["len"], rows["segs"] = rows["len"] * 4, rows["segs"] * 4
    again = {"t": np.array([30_000_000]), "kind": np.array([1]), "seq": np.array([8 * MSS]), "len": np.array([4 * MSS])}
    wire = wire_of(replace(seen, segments=rows, events=again))
    assert wire.again_row.tolist() == [8, 9, 10, 11]
    assert wire.again_t.tolist() == [30.0] * 4
    assert wire.largest > 4 * MSS


def test_parts_of_a_super_packet_arrive_when_they_are_acknowledged() -> None:
    """A full queue took the first two of four: the others came with their retransmission, though their row was acknowledged before."""
    lost = np.isin(np.arange(40), (10, 11))
    seen = flow(np.arange(40) * 1.0, np.full(40, 5.0), np.full(40, 5.0), lost)
    rows = {name: column[::4] for name, column in seen.segments.items()}
    rows["len"], rows["segs"] = rows["len"] * 4, rows["segs"] * 4
    again = {"t": np.array([210_000_000]), "kind": np.array([1]), "seq": np.array([10 * MSS]), "len": np.array([2 * MSS])}
    wire = wire_of(replace(seen, segments=rows, events=again))
    assert wire.seen[8:12].tolist() == pytest.approx([18.0, 18.0, 220.0, 221.0])
    arrivals = before_bottleneck(wire, wire.cover, 10.0)
    assert arrivals.sent[np.argsort(arrivals.row)][8:12].tolist() == pytest.approx([8.0, 8.0, 210.0, 210.0])


@pytest.mark.parametrize("is_discarded", [True, False])
def test_a_segment_that_the_receiver_discarded_passed_the_bottleneck_twice(is_discarded: bool) -> None:
    seen = flow(np.arange(40) * 1.0, np.full(40, 5.0), np.full(40, 5.0))
    again = np.arange(40) == 10
    rows = seen.segments | {"sends": np.where(again, 2, 1), "acked": np.where(again, 80_000_000, seen.segments["acked"])}
    kinds = np.array([18 if is_discarded else 5, 1])
    events = {"t": np.array([12, 60]) * 1_000_000, "kind": kinds, "seq": np.full(2, 10 * MSS), "len": np.full(2, MSS)}
    wire = wire_of(replace(seen, segments=rows, events=events))
    arrivals = before_bottleneck(wire, wire.cover, 10.0)
    assert sorted(arrivals.sent[arrivals.row == 10]) == ([10.0, 60.0] if is_discarded else [60.0])


def test_losses_that_may_be_discards_count_only_beside_sure_discards() -> None:
    facts = {"losses_uncertain": 3_000, "discarded": 100, "segments": 100_000}
    assert losses.may_have_passed(facts) == 0.03 > fitting.UNCOUNTED
    assert losses.may_have_passed(facts | {"discarded": 0}) == 0.0


@pytest.mark.parametrize(("uncertain", "is_told"), [(100, True), (300, False)])
def test_beside_many_segments_that_may_have_been_discarded_neither_rate_nor_buffer_is_told(uncertain: int, is_told: bool) -> None:
    sent = bursts(6_000, 20.0)
    f = flow(sent, 12.0 + through(sent, 20.0), np.full(sent.size, 8.0))
    p = fit(replace(f, facts=f.facts | {"losses_uncertain": uncertain, "discarded": 10, "segments": 6_000}))
    assert (p.rate_mbps is not None) is is_told
    assert is_told or p.reasons["rate_mbps"] == p.reasons["buffer_bytes"] == Reason("segments discarded")


def test_a_buffer_loses_what_no_packet_waited_for() -> None:
    """A burst that the fit has too small makes all waits behind it too long; where few delays were seen, that they are short is none."""
    size = Estimate(20_000.0, 17_000.0, 23_000.0, 100, "B")
    assert _waited(size, 1_000.0, 1_514.0) == (size, None)
    shorter = _waited(size, 4_500.0, 1_514.0)[0]
    assert shorter is not None
    assert (shorter.value, shorter.low, shorter.high) == (15_500.0, 12_500.0, 23_000.0)
    assert _waited(size, 11_000.0, 1_514.0) == (None, Reason("waits shorter"))
    assert _waited(size, -1_000.0, 1_514.0) == (size, None)
    assert _waited(size, -2_000.0, 1_000.0) == (size, None)  # within the interval
    assert _waited(size, size.value - size.high - 1_514.0, 1_514.0) == (None, Reason("waits longer"))  # others' packets were in the queue


def test_acks_that_were_overtaken_are_never_echoed(tmp_path: Path) -> None:
    """At a receiver the ACKs' jitter shortens what the sender echoes, the more the closer they follow each other: the base is inside its interval."""
    forward = [{"at": "router", "delay": "30ms", "jitter": "6ms", "distribution": "normal"}]
    reverse = {"at": "router", "delay": "30ms", "jitter": "6ms", "distribution": "normal"}
    fields = {"forward": forward, "reverse": reverse, "bottleneck": "tbf rate 50mbit burst 30000 limit 400000", "duration": "15s"}
    p = found(tmp_path, flows=[{"cca": "bbr"}], **fields)
    assert p.rtt_ms is None or p.rtt_ms.low <= 60 <= p.rtt_ms.high
    near, far = (
        SimpleNamespace(reverse=jitters.Spread(36.0, 0.1, 12, 500), wire=SimpleNamespace(ack_t=np.arange(500) * gap)) for gap in (0.25, 50.0)
    )
    assert before.overtaken(far) == pytest.approx(3.0)  # type: ignore[arg-type]
    assert 9 < before.overtaken(near) < 15  # type: ignore[arg-type]
    assert before.overtaken(SimpleNamespace(reverse=None)) == 0.0  # type: ignore[arg-type]


def echoes(delay: Any, leaves: Any = None, gap: float = 2.4) -> Any:
    """ACKs each `gap` ms and what a sender echoes that sends when a newer one comes, or at these times; as far as `usual_delay` asks for it."""
    acked = np.arange(delay.size) * gap
    came = acked + delay
    times = np.sort(came) if leaves is None else leaves
    newest = np.array([np.max(np.flatnonzero(came <= t), initial=-1) for t in times])
    first = np.flatnonzero((newest >= 0) & (np.diff(np.maximum.accumulate(newest), prepend=-1) > 0))
    stamps = 100 + np.floor(acked).astype(np.int64)
    return SimpleNamespace(
        ack_t=acked, ack_tsval=stamps, echo=stamps[newest[first]], sends=np.ones(first.size), stamp=np.floor(times[first]) + 0.5, sender_tick=1.0
    )


def test_overtaken_acks_count_towards_the_usual_delay_of_acks() -> None:
    """Of delays of 12 to 28 ms the echoed ones have 16; what an application's period leaves without an echo was not overtaken, lost ACKs included."""
    random = np.random.default_rng(4)
    even = random.uniform(12.0, 28.0, 3_000)
    w = echoes(even)
    early = w.stamp - w.ack_t[np.searchsorted(w.ack_tsval, w.echo)]
    assert float(np.mean(early)) < 18
    assert overtaken.usual_delay(w) == pytest.approx(20.0, abs=0.5)
    still = np.full(3_000, 20.0)
    assert overtaken.usual_delay(echoes(still)) is None
    assert overtaken.usual_delay(echoes(still, np.arange(10.0, 7_000.0, 7.3))) is None
    lost = np.where(random.random(still.size) < 0.03, 1e6, still)
    assert overtaken.usual_delay(echoes(lost, np.arange(10.0, 7_000.0, 7.3))) is None


def test_the_least_delay_of_acks_whose_jitter_is_cut_off_is_no_base() -> None:
    """An application sends each 20 ms; of ACKs with 20 ± 10 ms those that would take less than none take none, each time the same."""
    random = np.random.default_rng(6)
    sent = 100.0 + 20.0 * np.arange(2_000)
    seen = flow(sent + 20.0, np.zeros(sent.size), np.zeros(sent.size), vantage="receiver")
    came = sent + 20.0 + np.maximum(0.0, random.normal(20.0, 10.0, sent.size))
    order = np.argsort(came, kind="stable")
    known = np.concatenate([[-1], np.maximum.accumulate(order)])[np.searchsorted(came[order], sent, side="right")]
    seen.segments["tsval"] = (777 + np.floor(sent)).astype(np.uint32)
    seen.segments["tsecr"] = np.where(known < 0, 1, seen.acks["tsval"][known]).astype(np.uint32)
    seen.facts["handshake_sender_part_ms"] = 31.0
    path = fit(seen)
    assert path.rtt_ms is None or path.rtt_ms.low <= 40 <= path.rtt_ms.high


@pytest.mark.parametrize("is_of_path", [False, True])
def test_an_order_that_only_the_capture_has_is_no_jitter(is_of_path: bool) -> None:
    """Of each eighth pair the second packet is seen first, 10 µs before the other. A path that changed their order would not restore it."""
    sent = np.repeat(np.cumsum(np.where(np.arange(2_000) // 200 % 2 == 0, 1.0, 1.6) * 18.0), 2) + np.tile([0.0, 0.01], 2_000)
    arrived = sent + 20.0 + through(sent, 1.0)
    swapped = np.arange(sent.size).reshape(-1, 2)
    swapped[::8] = swapped[::8, ::-1]
    here = sent[swapped.ravel()]
    arrived = arrived[swapped.ravel()] if is_of_path else arrived
    seen = flow(here, arrived - here, np.full(here.size, 20.0))
    seen.segments["fate"][::16] = 1
    path = fit(seen)
    assert (path.order_kept is False) is is_of_path
    if not is_of_path:
        assert path.jitter_on in (None, "none")
        assert path.jitter_ms is None or path.jitter_ms.high < 1
        assert path.rtt_ms.low <= 40 + 1514 * 8e-3 <= path.rtt_ms.high


def test_packets_at_equal_distances_show_no_rate() -> None:
    """A link that takes as long for each packet as they are apart would explain the little by which their delays differ."""
    sent = np.arange(300) * 300.0
    p = fit(flow(sent, 5 + np.random.default_rng(8).uniform(0, 0.005, sent.size), np.full(sent.size, 3.0)))
    assert (p.rate_mbps, p.reasons["rate_mbps"]) == (None, Reason("no queue grew"))


def test_drops_at_many_lengths_are_found() -> None:
    passed = np.linspace(0, 100_000, 20_000)
    met = np.concatenate([np.linspace(0, 100_000, 20), np.linspace(60_000, 100_000, 500)])
    assert 55_000 <= quiet_below(passed, met) <= 66_000
    assert quiet_below(passed, np.linspace(0, 100_000, 50)) == np.inf


def test_below_a_length_lost_packets_met_what_all_met() -> None:
    """Random losses lie anywhere; those that lie at the longest of the short lengths are the queue's, whose length is not known so well."""
    passed = np.linspace(0.0, 12_000.0, 5_000)
    assert even_below(passed, np.linspace(500.0, 11_500.0, 20), 10_000.0) == 10_000.0
    drops = np.linspace(6_500.0, 11_500.0, 40)
    assert even_below(passed, drops, 10_000.0) < 6_500.0
    assert even_below(passed, np.concatenate([drops, np.linspace(0.0, 6_000.0, 10)]), 10_000.0) == pytest.approx(5_000.0, rel=0.01)


def test_what_tells_nothing_is_nothing() -> None:
    p = fit(flow(np.arange(10) * 1.0, np.full(10, 1.0), np.full(10, 1.0)))
    assert p.rtt_ms is None
    assert p.rate_mbps is None
    assert p.loss_pct is None
    assert p.reasons["rtt_ms"] == Reason("few packets")


def test_small_parts() -> None:
    """Shares by Jeffreys' interval; segments exposed to a retransmission; shapes; order."""
    e = share(20, 1000)
    assert (e.value, e.low) == (2.0, pytest.approx(1.27, abs=0.03))
    assert e.high == pytest.approx(3.0, abs=0.05)
    assert share(0, 100).low == 0
    assert exposed(np.array([0.0, 9.0, 10.5]), np.array([10.0]), 2.0).tolist() == [False, True, False]
    random = np.random.default_rng(6)
    assert shape(random.normal(0, 1, 5000)) == "normal"
    assert shape(random.uniform(-1, 1, 5000)) == "uniform"
    sent = np.arange(2000) * 0.1
    assert order_is_kept(sent, sent + random.normal(0, 3, 2000), 3) is False
    assert order_is_kept(sent, np.maximum.accumulate(sent + random.normal(0, 3, 2000)), 3) is True
    assert order_is_kept(np.arange(100) * 100.0, np.arange(100) * 100.0, 3) is None


@pytest.mark.parametrize("cca", ["cubic", "bbr"])
def test_twin_of_the_model(cca: str, tmp_path: Path) -> None:
    scenario = Scenario.model_validate(
        {
            "forward": {"at": "router", "delay": "20ms"},
            "bottleneck": "tbf rate 12mbit burst 6056 limit 60000",
            "reverse": {"at": "router", "delay": "10ms", "jitter": "1ms"},
            "flows": [{"cca": cca}],
            "duration": "6s",
        }
    )
    file = tmp_path / "a.pcapng"
    Model().write_pcap(scenario, 1, file)
    p = fit(capture.read(file).flows[0])
    assert p.rate_mbps.value == pytest.approx(12, rel=0.01)
    assert p.rtt_ms.value == pytest.approx(30, abs=1.1)
    assert p.jitter_on is None  # in order, in front of a queue that is never empty, the data could have it too
    assert p.jitter_ms.value == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize(
    ("flow", "rtt_ms", "jitter_ms", "also", "bottleneck"),
    [
        # a burst that the jitter spreads is worked off sooner: 97.8 [79, 98.8] ms without that
        (("cubic", 9), 100, 4.0, "4ms distribution normal", "tbf rate 20mbit burst 3000 limit 125000"),
        # packets that met an idle bottleneck came early: 51.5 [36, 54] ms where they stand for all
        (("bbr", 33), 70, 12.6, "", "tbf rate 10mbit burst 3000 limit 87500"),
        # two segments that left as one packet have one delay: σ 5.8 [4.0, 7.4] ms by neighbours, and 52 [35, 64] ms for it
        (("cubic", 32), 70, 12.6, "", "tbf rate 20mbit burst 3000 limit 87500"),
    ],
)
def test_a_jitter_that_reorders_is_in_its_interval_as_is_the_round_trip(
    tmp_path: Path, flow: tuple[str, int], rtt_ms: float, jitter_ms: float, also: str, bottleneck: str
) -> None:
    file, (cca, seed) = tmp_path / "late.pcapng", flow
    forward = f"netem delay {rtt_ms / 2}ms {jitter_ms}ms distribution normal limit 100000"
    fields = {"forward": forward, "reverse": f"netem delay {rtt_ms / 2}ms {also} limit 100000", "bottleneck": bottleneck}
    Model().write_pcap(Scenario.model_validate({**fields, "flows": [{"cca": cca}], "duration": "8s"}), seed, file)
    path = fit(capture.read(file).flows[0])
    assert path.rtt_ms
    assert path.rtt_ms.low <= rtt_ms <= path.rtt_ms.high
    assert path.jitter_forward_ms
    assert path.jitter_forward_ms.low <= jitter_ms <= path.jitter_forward_ms.high


@pytest.mark.parametrize("cca", ["cubic", "bbr"])
def test_a_few_packets_that_went_a_shorter_way_leave_the_usual_one_inside_the_interval(cca: str, tmp_path: Path) -> None:
    """netem's `reorder` sends some of each five packets at once: 20 ms and 1 back; [6.3, 19] and [0, 2.8] ms where the least is what others waited from."""
    fields = {"forward": "netem delay 20ms reorder 2% gap 5", "reverse": "netem delay 1ms", "bottleneck": "tbf rate 20mbit burst 3000 limit 90000"}
    p = found(tmp_path, **fields, flows=[{"cca": cca}], duration="10s")
    assert p.rtt_ms is None or p.rtt_ms.low <= 21 <= p.rtt_ms.high


# Changes of the path: found where captures of the model have one, and not where only the flow changes.


PATH: dict[str, Any] = {
    "forward": [{"at": "router", "delay": "5ms"}, {"at": "router", "delay": "10ms"}],
    "bottleneck": "tbf rate 8mbit burst 6056 limit 40000",
    "reverse": {"at": "router", "delay": "10ms"},
    "flows": [{"cca": "cubic"}],
    "duration": "16s",
}


def found(tmp_path: Path, **fields: Any) -> Any:
    """The path that is fitted to a capture of the model."""
    file = tmp_path / "a.pcapng"
    Model().write_pcap(Scenario.model_validate(PATH | fields), 1, file)
    return fit(capture.read(file).flows[0])


def test_plateaus() -> None:
    """Two steady levels are a step; a ramp, a sawtooth and one level are none."""
    noise = np.random.default_rng(1).normal(0, 0.02, 40)
    step = two_plateaus(np.concatenate([np.zeros(18), [0.4], np.ones(21)]) + noise)
    assert step.place in (17, 18)
    assert step.after - step.before == pytest.approx(1, abs=0.03)
    assert two_plateaus(noise) is None
    assert two_plateaus(np.linspace(0, 1, 40)) is None
    assert two_plateaus(np.tile(np.linspace(0, 1, 8), 5)) is None
    assert two_plateaus(np.ones(5)) is None
    assert parted(np.array([1.0, 1, 1, 1, 5, 5, 5]), 2, 1, 5) == 4


def test_step_of_the_rate(tmp_path: Path) -> None:
    p = found(tmp_path, changes=[{"where": "bottleneck", "at": "8s", "set": {"rate": "4mbit"}}])
    (change,) = p.changes
    assert (change.kind, change.at_s) == ("rate", pytest.approx(8, abs=0.4))
    assert (change.before, change.after) == (pytest.approx(8, rel=0.03), pytest.approx(4, rel=0.03))
    assert change.frame is not None
    assert p.reasons["rate_mbps"].why == "changed"


@pytest.mark.parametrize("start_s", [0.0, 20.3])
def test_a_transfer_shorter_than_a_bin_has_no_step_and_one_that_begins_late_has_its_own_bins(tmp_path: Path, start_s: float) -> None:
    """A transfer that is over within half a second, and a step of a flow that begins in the middle of what would be a bin of the capture."""
    file = tmp_path / "short.pcapng"
    fast = PATH | {"bottleneck": "tbf rate 400mbit burst 60056 limit 4000000", "flows": [{"cca": "cubic", "app": {"size": "1MB"}}], "duration": "3s"}
    Model().write_pcap(Scenario.model_validate(fast), 1, file)
    flow = later(capture.read(file).flows[0], start_s)
    assert flow.seconds < 0.5
    assert list(fit(flow).changes) == []
    changed = PATH | {"changes": [{"where": "bottleneck", "at": "8s", "set": {"rate": "4mbit"}}]}
    Model().write_pcap(Scenario.model_validate(changed), 1, file)
    flow = capture.read(file).flows[0]
    (here,), (there,) = fit(flow).changes, fit(later(flow, start_s)).changes
    assert (there.at_s, there.before, there.after) == (pytest.approx(here.at_s + start_s), pytest.approx(here.before), pytest.approx(here.after))


def test_a_clock_that_jumps_makes_no_bins_without_end(tmp_path: Path) -> None:
    """The first packet is ten years older than all others, which in bins of half a second would take gigabytes."""
    file = tmp_path / "jump.pcapng"
    fast = PATH | {"bottleneck": "tbf rate 400mbit burst 60056 limit 4000000", "flows": [{"cca": "cubic", "app": {"size": "1MB"}}], "duration": "3s"}
    Model().write_pcap(Scenario.model_validate(fast), 1, file)
    flow = capture.read(file).flows[0]
    w = wire_of(flow)
    ten_years_ms = 10 * 365 * 86_400e3
    tracemalloc.start()
    try:
        assert rate_step(flow, replace(w, t=np.concatenate([w.t[:1] - ten_years_ms, w.t[1:]]))) is None
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()


def later(flow: ObservedFlow, seconds: float) -> ObservedFlow:
    """The same flow so many seconds later in its capture."""
    ns = np.uint64(seconds * 1e9)

    def moved(columns: Any) -> dict[str, Any]:
        return {name: np.where(x > 0, x + ns, x) if name in ("t", "acked") else x for name, x in columns.items()}

    return replace(flow, start_s=flow.start_s + seconds, segments=moved(flow.segments), acks=moved(flow.acks), events=moved(flow.events))


def test_step_of_the_round_trip(tmp_path: Path) -> None:
    p = found(tmp_path, changes=[{"where": "forward", "hop": 1, "at": "8s", "set": {"delay": "80ms"}}])
    (change,) = p.changes
    assert (change.kind, change.at_s) == ("rtt", pytest.approx(8, abs=0.7))
    assert change.after - change.before == pytest.approx(70, rel=0.35)


def test_outage(tmp_path: Path) -> None:
    """A bottleneck that holds everything for 0.8 s."""
    steps = [{"where": "bottleneck", "at": f"{t}s", "set": {"outage": on}} for t, on in ((8.0, True), (8.8, False))]
    (change,) = found(tmp_path, changes=steps).changes
    assert (change.kind, change.at_s) == ("outage", pytest.approx(8, abs=0.1))
    assert change.after == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"bottleneck": "tbf rate 8mbit burst 6056 limit 300000"},
        {"forward": {"at": "router", "delay": "15ms", "loss": "1%"}},
        {"flows": [{"cca": "bbr"}]},
    ],
)
def test_no_change(fields: dict[str, Any], tmp_path: Path) -> None:
    """Sawtooth, deep buffer, random loss, probing: the flow's own swings are no change of the path."""
    assert found(tmp_path, **fields).changes == ()


def test_loss_beside_delays() -> None:
    """Loss that is more frequent from a delay on; none where it is the same at all."""
    random = np.random.default_rng(2)
    delay = random.uniform(20, 40, 20_000)
    lost = random.random(delay.size) < np.where(delay > 36, 0.08, 0.01)
    assert frequent_from(delay[~lost], delay[lost])[0] == pytest.approx(36, abs=1.1)
    assert math.isinf(frequent_from(delay[~lost & (delay < 36)], delay[lost & (delay < 36)])[0])
    falls = random.random(delay.size) < np.where(delay < 24, 0.08, 0.01)
    assert math.isinf(frequent_from(delay[~falls], delay[falls])[0])


def test_random_loss_beside_an_overflowing_queue(tmp_path: Path) -> None:
    """A shallow queue and a lossy link: within three standard errors of the 49 packets that 0.3 % of 16,000 are."""
    forward = [{"at": "router", "delay": "5ms", "loss": "0.3%"}, {"at": "router", "delay": "10ms"}]
    p = found(tmp_path, forward=forward, bottleneck="tbf rate 20mbit burst 6056 limit 30000", duration="20s")
    assert abs(math.log(p.loss_pct.value / 0.3)) < 3 / math.sqrt(49)


def test_random_loss_beside_a_queue_of_ten_packets(tmp_path: Path) -> None:
    """A packet met what was in the queue before it: one that passed has its own time of service beside that, one that was lost has not."""
    forward = [{"at": "router", "delay": "10ms", "loss": "0.4%"}, {"at": "router", "delay": "1ms"}]
    p = found(tmp_path, forward=forward, bottleneck="tbf rate 3mbit burst 3028 limit 15140", duration="200s")
    assert p.queue_loss_pct.low > 0.2
    assert p.loss_pct.low <= 0.4 <= p.loss_pct.high
    assert abs(math.log(p.loss_pct.value / 0.4)) < 3 / math.sqrt(0.004 * p.loss_pct.n)


@pytest.mark.parametrize(
    ("vantage", "gaps_ms", "is_doubted"), [("receiver", (2.0,), True), ("sender", (2.0,), False), ("receiver", (0.1, 3.9), False)]
)
def test_packets_one_by_one_at_equal_distances_are_a_bottlenecks_as_well_as_an_applications(
    vantage: str, gaps_ms: tuple[float, ...], is_doubted: bool
) -> None:
    """Seen away from the sender, and where no queue shows the bottleneck's rate; bursts of two are none of it."""
    sent = np.cumsum(np.resize(np.array(gaps_ms), 2_000))
    held = LimitInterval(0.0, float(sent[-1]) / 1e3, "application")
    seen = replace(flow(sent, np.full(sent.size, 12.0), np.full(sent.size, 8.0), vantage=vantage), limits=(held,))
    assert is_served(seen, fitting.nothing(Reason("few packets"))) is is_doubted
    assert {one.cause for one in limits.doubted(seen).limits} == {"unknown" if is_doubted else "application"}
    assert not is_served(seen, replace(fitting.nothing(Reason("few packets")), jitter_on="none"))
    assert not is_served(seen, replace(fitting.nothing(Reason("few packets")), rate_mbps=Estimate(20.0, 19.9, 20.1, 900, "Mbit/s")))


@pytest.mark.parametrize(("packets", "is_made_up_for"), [(3, True), (4, False), (5, False)])
def test_bursts_of_which_one_packet_waited_show_no_rate(packets: int, is_made_up_for: bool) -> None:
    """A bucket takes two packets of each burst: a rate 5 % lower beside a bucket 60 bytes larger makes the third one wait just as long."""
    sent = np.repeat(np.arange(300) * 120.0, packets) + np.tile(np.arange(packets) * 0.01, 300)
    observed = flow(sent, 6 + through(sent, 1.1, 3_028.0), np.full(sent.size, 25.0))
    wire = wire_of(observed)
    f = state.Fit(observed, wire, sampled(wire), turns_of(wire))
    delays = fitting.delays_behind(f)
    right = bottleneck.judged(delays, 1.1, 3_028.0)
    assert right.noise < 0.01
    assert bottleneck.is_made_up_for(delays, right) == is_made_up_for
