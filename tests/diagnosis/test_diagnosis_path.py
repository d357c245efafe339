"""The fitted path: each step on columns whose truth is known, the whole on synthetic flows and on captures of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcpscape import capture
from tcpscape.engines.model import Model
from tcpscape.findings.diagnosis.observed import Endpoint, ObservedFlow
from tcpscape.findings.diagnosis.path import fit
from tcpscape.findings.diagnosis.path.arrivals import exposed, waits
from tcpscape.findings.diagnosis.path.columns import order_of_receiver, tick_of, unwrapped, wire_of
from tcpscape.findings.diagnosis.path.intervals import share
from tcpscape.findings.diagnosis.path.jitter import order_is_kept, shape
from tcpscape.findings.diagnosis.path.losses import quiet_below
from tcpscape.findings.diagnosis.path.samples import first_cover, sampled
from tcpscape.scenario.scenario import Scenario

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
        "t": ns(sent), "frame": np.arange(n), "seq": (np.arange(n) * MSS).astype(np.uint64), "len": u32(np.full(n, MSS)), "segs": np.ones(n, dtype=np.uint16),
        "acked": ns(seen), "sends": (1 + lost).astype(np.uint16), "fate": np.where(lost, 2, overtaken).astype(np.uint8), "tsval": u32(np.floor(sent / clock) + 777),
        "tsecr": u32(np.ones(n)),
    }  # fmt: skip
    columns = {
        "t": ns(back), "frame": np.arange(n), "ack": (np.array(acks) * MSS).astype(np.uint64), "sack_left": np.array(left, dtype=np.uint64),
        "sack_right": np.array(right, dtype=np.uint64), "tsval": u32(np.floor(arrived[order] / clock) + 5_000), "tsecr": u32(np.ones(n)),
    }  # fmt: skip
    events = {"t": ns(again[lost]), "seq": segments["seq"][lost], "kind": np.ones(int(lost.sum()), dtype=np.uint8), "len": segments["len"][lost]}
    ends = Endpoint("10.0.0.1", 1), Endpoint("10.0.0.2", 2)
    return ObservedFlow(
        *ends, n, n * MSS, float(sent[-1]) / 1e3, 0.0, vantage, None, facts={"begins_in_mid_connection": False}, segments=segments,  # type: ignore[arg-type]
        acks={k: v[by_time] for k, v in columns.items()}, events=events,
    )  # fmt: skip


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


def test_reordered_acks_do_not_shorten_samples() -> None:
    """With ACKs that overtake each other each sample is the delay of its own ACK; "first acknowledged" would be biased."""
    random = np.random.default_rng(2)
    sent = np.arange(3000) * 1.0
    reverse = np.maximum(0, random.normal(20, 5, sent.size))
    f = flow(sent, np.full(sent.size, 10.0), reverse)
    s = sampled(wire_of(f))
    assert s.row.size == sent.size
    assert s.rtt.mean() == pytest.approx(30, abs=0.3)
    assert s.rtt.std() == pytest.approx(5, rel=0.05)


def test_segments_behind_a_hole_are_covered_by_their_own_sack() -> None:
    """The first SACK block covers a segment before the cumulative ACK does."""
    sent = np.arange(100) * 1.0
    forward = np.full(100, 10.0)
    forward[50] = 39.5
    place, by_sack = first_cover(wire_of(flow(sent, forward, np.full(100, 5.0))))
    assert by_sack.sum() == 29
    assert not by_sack[50]
    assert place[51] == 50


@pytest.mark.parametrize(("rate", "burst"), [(2.0, 0.0), (20.0, 0.0), (20.0, 10_000.0), (80.0, 40_000.0)])
def test_a_queue_gives_its_rate_and_the_base(rate: float, burst: float) -> None:
    """Without jitter the rate is exact to 0.1 % and the base to half a packet."""
    sent = bursts(6000, rate)
    p = fit(flow(sent, 12.0 + through(sent, rate, burst), np.full(sent.size, 8.0)))
    assert p.rate_mbps is not None
    assert p.rtt_ms is not None
    assert p.rate_mbps.value == pytest.approx(rate, rel=1e-3)
    assert p.rate_mbps.low <= rate <= p.rate_mbps.high
    sending = 0.0 if burst else 1514 * 8e-3 / rate  # a link without a burst delays each packet by its own length: of the base, or of the queue
    assert 20 - 0.4 <= p.rtt_ms.value <= 20 + sending + 0.4
    assert p.queue == "self-induced"


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
    assert p.jitter_on == where
    assert p.jitter_ms is not None
    assert p.rtt_ms is not None
    assert p.jitter_ms.value == pytest.approx(sigma, rel=0.06)
    assert p.jitter_ms.low <= sigma <= p.jitter_ms.high
    assert p.rtt_ms.value == pytest.approx(60, rel=0.01)
    assert p.rate_mbps is None
    assert "rate_mbps" in p.reasons


def test_without_timestamps_the_direction_is_not_guessed() -> None:
    """The reason stands beside the missing value."""
    random = np.random.default_rng(4)
    f = flow(np.arange(3000) * 2.0, 30 + random.normal(0, 3, 3000), np.full(3000, 30.0))
    f.segments["tsval"][:] = 0
    f.acks["tsval"][:] = 0
    p = fit(f)
    assert p.jitter_ms is None
    assert p.jitter_on is None
    assert "timestamps" in p.reasons["jitter_ms"]
    assert p.rtt_ms is not None
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
    assert p.loss_pct is not None
    assert p.queue_loss_pct is not None
    assert p.loss_pct.low <= 1.0 <= p.loss_pct.high
    assert p.queue_loss_pct.value > 0.2


def test_drops_at_many_lengths_are_found() -> None:
    """The length from which on loss is more frequent."""
    passed = np.linspace(0, 100_000, 20_000)
    met = np.concatenate([np.linspace(0, 100_000, 20), np.linspace(60_000, 100_000, 500)])
    assert 55_000 <= quiet_below(passed, met) <= 66_000
    assert quiet_below(passed, np.linspace(0, 100_000, 50)) == np.inf


def test_what_tells_nothing_is_nothing() -> None:
    """Few packets give no path, with reasons."""
    p = fit(flow(np.arange(10) * 1.0, np.full(10, 1.0), np.full(10, 1.0)))
    assert p.rtt_ms is None
    assert p.rate_mbps is None
    assert p.loss_pct is None
    assert "too few" in p.reasons["rtt_ms"]


def test_small_parts() -> None:
    """Shares by Jeffreys' interval; segments exposed to a retransmission; shapes; order."""
    e = share(20, 1000)
    assert e.value == 2.0
    assert e.low == pytest.approx(1.27, abs=0.03)
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
    """A capture of the model engine gives back the scenario that it ran."""
    scenario = Scenario.model_validate({
        "forward": {"at": "router", "delay": "20ms"}, "bottleneck": "tbf rate 12mbit burst 6056 limit 60000",
        "reverse": {"at": "router", "delay": "10ms", "jitter": "1ms"}, "flows": [{"cca": cca}], "duration": "6s",
    })  # fmt: skip
    file = tmp_path / "a.pcapng"
    Model().write_pcap(scenario, 1, file)
    p = fit(capture.read(file).flows[0])
    assert p.rate_mbps is not None
    assert p.rtt_ms is not None
    assert p.jitter_ms is not None
    assert p.rate_mbps.value == pytest.approx(12, rel=0.01)
    assert p.rtt_ms.value == pytest.approx(30, abs=1.1)
    assert p.jitter_on == "reverse"
    assert p.jitter_ms.value == pytest.approx(1, rel=0.15)
