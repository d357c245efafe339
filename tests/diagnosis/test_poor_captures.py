"""Captures that lack something: options, a clock that is fine enough, their beginning. Each is a changed copy of a whole capture of the model."""

from __future__ import annotations

import functools
import struct
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tcpscape import capture
from tcpscape.engines.model import Model
from tcpscape.findings.diagnosis import path
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path import base, losses
from tcpscape.findings.diagnosis.path import jitter as jitters
from tcpscape.findings.diagnosis.path.bottleneck import Arrivals, delays_of
from tcpscape.findings.diagnosis.path.changes import outages
from tcpscape.findings.diagnosis.path.columns import filling
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.words import reasons

WHOLE, WITHOUT_OPTIONS, WITHOUT_BLOCKS = 65_536, 54, 68
"""Bytes kept of a packet: all that there are; the headers without options; those with timestamps and no whole block of a SACK."""
Frame = tuple[int, bytes, int]
"""Time, ns; the bytes; how many there were."""


@functools.cache
def frames(cca: str, loss: str, rtt_ms: float, buffer: int, seconds: int) -> tuple[Frame, ...]:
    """The packets of a trial of the model at its sender: 10 Mbit/s."""
    scenario: dict[str, Any] = {
        "forward": {"at": "router", "delay": f"{rtt_ms / 2}ms", "loss": loss},
        "bottleneck": f"tbf rate 10mbit burst 3028 limit {buffer}",
        "reverse": {"at": "router", "delay": f"{rtt_ms / 2}ms"},
        "flows": [{"cca": cca}],
        "duration": f"{seconds}s",
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "whole.pcapng")
        Model().write_pcap(Scenario.model_validate(scenario), 1, file)
        raw = file.read_bytes()
    found, at = [], 0
    while at < len(raw):
        kind, length = struct.unpack_from("<II", raw, at)
        if kind == 6:
            high, low, kept, whole = struct.unpack_from("<IIII", raw, at + 12)
            found.append(((high << 32) + low, raw[at + 28 : at + 28 + kept], whole))
        at += length
    return tuple(found)


def seen(
    folder: Path, cca: str = "cubic", loss: str = "0%", rtt_ms: float = 20.0, buffer: int = 60_000, seconds: int = 12, **changes: float
) -> ObservedFlow:
    """The flow as a changed capture shows it.

    :param changes: `snap`, bytes kept of each packet; `step`, of the clock, ns; `begin`, s from when on packets are in it;
        `missing`, each of so many packets is not.
    """
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_536, 1)]
    snap, step = int(changes.get("snap", WHOLE)), int(changes.get("step", 1))
    for number, (t, content, whole) in enumerate(frames(cca, loss, rtt_ms, buffer, seconds), 1):
        if t >= changes.get("begin", 0.0) * 1e9 and number % int(changes.get("missing", 1 << 40)):
            parts.append(struct.pack("<IIII", *divmod(t - t % step, 1_000_000_000), min(snap, len(content)), whole) + content[:snap])
    file = folder / "changed.pcap"
    file.write_bytes(b"".join(parts))
    return capture.read(file).flows[0]


@pytest.mark.parametrize("snap", [WITHOUT_OPTIONS, WITHOUT_BLOCKS])
def test_losses_whose_blocks_were_cut_off_are_as_random_as_they_were(tmp_path: Path, snap: int) -> None:
    """What an ACK covers behind a hole that was filled came long before: 0.305 % beside the drops of a queue were 0.270 % where it counted."""
    whole, cut = (path.fit(seen(tmp_path, "bbr", "0.3%", 12.0, 15_140, snap=kept)).loss_pct for kept in (WHOLE, snap))
    assert whole
    assert cut
    assert cut.value == pytest.approx(whole.value, rel=0.02)


@pytest.mark.parametrize("rtt_ms", [20.3, 20.9])
def test_a_coarse_clock_widens_what_it_measures(tmp_path: Path, rtt_ms: float) -> None:
    """The least of many delays is shorter by nearly a step of 1 ms, and a jitter of half of one does not show."""
    told = path.fit(seen(tmp_path, rtt_ms=rtt_ms, step=1_000_000))
    assert told.rtt_ms
    assert told.rtt_ms.low <= rtt_ms <= told.rtt_ms.high
    assert told.rtt_ms.value == pytest.approx(rtt_ms, abs=0.7)
    assert told.jitter_ms is None or (told.jitter_on == "none" and told.jitter_ms.high >= 0.5)
    assert told.buffer_bytes
    assert told.buffer_bytes.high - told.buffer_bytes.low > 2 * 1.25e3  # of 10 Mbit/s in 1 ms
    fine = path.fit(seen(tmp_path, rtt_ms=rtt_ms)).rtt_ms
    assert fine
    assert fine.high - fine.low < 0.5


def test_rounding_by_the_clock_is_no_jitter(tmp_path: Path) -> None:
    """It was told as one of 0.36 ms."""
    told = path.fit(seen(tmp_path, "cubic", "0.2%", 7.3, 15_140, step=1_000_000))
    assert told.jitter_ms is None
    assert told.reasons["jitter_ms"] == Reason("coarse clock", {"ms": 1.0})
    assert "1.0 ms" in reasons.text(told.reasons["jitter_ms"])


def test_a_queue_that_was_busy_when_the_capture_began_has_no_size(tmp_path: Path) -> None:
    """Its length at the begin is in none of the lengths."""
    late = path.fit(seen(tmp_path, buffer=30_000, begin=4.0))
    assert late.rate_mbps
    assert late.rate_mbps.value == pytest.approx(10.0, rel=0.02)
    assert late.buffer_bytes is None
    assert late.reasons["buffer_bytes"] == Reason("busy at the begin")
    whole = path.fit(seen(tmp_path, buffer=30_000)).buffer_bytes
    assert whole
    assert whole.value == pytest.approx(30_000, rel=0.2)


@pytest.mark.parametrize(("unseen", "high"), [(0.0, 18_000), (0.004, 18_000 + 1_514), (0.016, 18_000 + 1.96 * 2 * 1_514), (0.2, None)])
def test_what_a_capture_lacks_was_in_the_queue(unseen: float, high: float | None) -> None:
    """Of 250 packets in a busy time one is missing, or four more or less than at other times, or too many for a size."""
    found = losses.with_unseen(losses.Losses(None, None, Estimate(15_000.0, 12_000.0, 18_000.0, 30, "B")), unseen, 250 * 1_514)
    assert (found.buffer.high if found.buffer else None) == (pytest.approx(high) if high else None)
    assert high or found.buffer_reason == Reason("not all captured")


def test_a_buffer_that_a_capture_without_some_packets_shows_is_less_sure(tmp_path: Path) -> None:
    """Each 101st packet is missing: the interval reaches further up than the capture's own lengths do."""
    whole, lacking = (path.fit(seen(tmp_path, "reno", rtt_ms=80.0, buffer=40_000, seconds=30, missing=every)).buffer_bytes for every in (10**9, 101))
    assert whole
    assert lacking is None or lacking.high > lacking.value + 2 * (whole.high - whole.value)


@pytest.mark.parametrize("was_idle", [False, True])
def test_a_queue_that_was_never_empty_since_the_capture_began_may_stand_in_the_round_trip(monkeypatch: pytest.MonkeyPatch, was_idle: bool) -> None:
    """Seven packets in a window that never changes, at 70 kbit/s: 1.3 s were told of a path of 13 ms."""
    segments = {"t": np.arange(60) * 170e6, "flight": np.full(60, 7 * 1_448), "len": np.full(60, 1_448)}
    flow = SimpleNamespace(facts={"begins_in_mid_connection": True}, segments=segments, goodput_mbps=0.0674)
    monkeypatch.setattr(base, "was_idle", lambda _: was_idle)
    seen: Any = SimpleNamespace(flow=flow, bottleneck=SimpleNamespace())
    told = base.without_standing(seen, Estimate(1_216.0, 1_204.0, 1_228.0, 60, "ms"))
    assert told
    assert told.low == (1_204.0 if was_idle else pytest.approx(13.0, abs=0.5))


def test_a_bottleneck_that_packets_met_idle_was_empty() -> None:
    def of(times: Any) -> Any:
        arrivals = Arrivals(times, times, np.full(times.size, 1_514.0), np.arange(times.size))
        known = SimpleNamespace(rate=10.0, noise=0.01)
        return SimpleNamespace(bottleneck=known, delays=delays_of(arrivals, np.arange(times.size), times, times * 0), sigma_before_queue=0.0)

    evenly = np.arange(200) * 1.2112
    assert not base.was_idle(of(evenly))
    assert base.was_idle(of(evenly + 50.0 * (np.arange(200) > 150)))
    assert not base.was_idle(of(evenly + 50.0 * (np.arange(200) > 20))), "what is idle at the begin of a capture may only seem so"


def test_steps_of_a_server_that_is_never_idle_are_no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a queue that four others fill, without timestamps: 37.2 [36.7, 37.7] ms were told of 10.4."""
    random = np.random.default_rng(3)
    monkeypatch.setattr(base.own, "behind", lambda _: base.own.Own(37.2, 0.2, True, 4.3, 365))
    steps, jitter = 17.6 + 3.526 * random.integers(0, 8, 400), random.normal(37.2, 4.3, 400)
    shared = {"rate_mbps": Reason("shared queue")}
    for rtt, facts, reasons_, is_told in ((steps, {}, {}, False), (jitter, {}, shared, True), (jitter, {"not_captured_bytes": 1_448}, shared, False)):
        seen: Any = SimpleNamespace(behind=SimpleNamespace(rtt=rtt), flow=SimpleNamespace(facts=facts), reasons=reasons_)
        assert (base.jitter_behind(seen) is not None) is is_told


@pytest.mark.parametrize("opening", [None, 30.0, 47.3])
def test_acks_that_wait_behind_data_of_others_all_the_time_leave_the_base_open(opening: float | None) -> None:
    """Their queue keeps their order and is never empty: the least round trip is no bound of the path's, unless the handshake took just as long."""
    still = np.full(9, 47.3)
    behind, varies = SimpleNamespace(rtt=still), jitters.Spread(100.0, 1.0, 12, 400)
    for reverse, is_open in ((varies, opening != 47.3), (None, opening != 47.3), (jitters.Spread(0.0, 0.0, 12, 400), False)):
        flow = SimpleNamespace(facts={"handshake_receiver_part_ms": opening})
        seen: Any = SimpleNamespace(flow=flow, behind=behind, reverse=reverse, is_receiver=False)
        assert base.may_queue_back(seen) is is_open


def test_a_segment_that_follows_one_the_capture_lacks_was_not_sent_alone() -> None:
    wire: Any = SimpleNamespace(seq=np.array([0, 1_448, 4_344, 5_792]), len=np.full(4, 1_448))
    assert base.own.follows_gap(wire).tolist() == [False, False, True, False]


@pytest.mark.parametrize("has_blocks", [False, True])
def test_an_ack_that_fills_a_hole_tells_when_what_lies_behind_arrived_only_by_blocks(has_blocks: bool) -> None:
    """Segments of one byte: the second was lost and sent again, and the ACK of the first comes again until it is filled."""
    wire: Any = SimpleNamespace(
        seq=np.arange(6), sends=np.array([1, 2, 1, 1, 1, 1]), fate=np.array([0, 2, 0, 0, 0, 0]), ack=np.array([1, 1, 1, 4, 6]), sack_right=np.zeros(5)
    )
    wire.sack_right[1] = 3.0 * has_blocks
    assert filling(wire).tolist() == [False, False, False, not has_blocks, False]


def test_a_timeouts_pause_is_no_outage_though_what_lies_behind_its_hole_was_never_sent_again() -> None:
    """One segment lost and repeated after 400 ms: the nine behind it are acknowledged with it, and nothing says that they came at once."""
    at = np.concatenate([np.arange(2_000) * 2.0, 4_000 + np.arange(10) * 2.0, 4_450 + np.arange(200) * 2.0])
    lost = np.arange(at.size) == 2_000
    acks = np.where(np.arange(at.size) < 2_000, at + 20, np.maximum(at + 20, 4_440))
    wire: Any = SimpleNamespace(
        t=at,
        seq=np.arange(at.size),
        sends=1 + lost,
        fate=2 * lost,
        seen=acks,
        ack=np.concatenate([np.arange(1, 2_001), np.arange(2_010, at.size + 1)]),
        sack_right=np.zeros(0),
        sender_tick=1.0,
        stamp=at,
    )
    wire.ack_t = np.concatenate([acks[:2_000], acks[2_009:]])
    wire.cover = np.searchsorted(wire.ack, wire.seq + 1)
    rows = {"t": (wire.ack_t * 1e6).astype(np.int64), "id": np.arange(wire.ack_t.size) + 1}
    flow: Any = SimpleNamespace(vantage="sender", acks=rows)
    assert outages(flow, wire) == []
    wire.sends, wire.fate = np.ones(at.size), np.zeros(at.size)
    assert len(outages(flow, wire)) == 1, "where nothing had been lost the path held them"
