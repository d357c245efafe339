"""The congestion control of a flow: what it is on runs of the model, where the answer must be "unknown", and what a capture elsewhere shows of the sender."""

import dataclasses
import functools
import importlib
import math
import struct
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tcpscape import _core, capture
from tcpscape.engines.model import Model
from tcpscape.findings.diagnosis import limits
from tcpscape.findings.diagnosis.control import classify, watched
from tcpscape.findings.diagnosis.control.classify import FILE, MOST_HELD, MOST_HELD_ELSEWHERE, _doubt, _held, features, nearer, trained
from tcpscape.findings.diagnosis.control.watched import CANDIDATES, LOSS, compare, counting_acks, watch
from tcpscape.findings.diagnosis.diagnosis import before_replay
from tcpscape.findings.diagnosis.fitted import DiagnosisSettings
from tcpscape.findings.diagnosis.observed import LimitInterval, ObservedFlow
from tcpscape.findings.diagnosis.path import fit
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.findings.diagnosis.sender_side import as_sender, observed_rtt
from tcpscape.scenario.scenario import Scenario
from tcpscape.words import reasons

MS = 1_000_000


@functools.cache
def observed(cca: str, app: str = "") -> ObservedFlow:
    """30 s of a flow at 10 Mbit/s, 40 ms, a buffer of one BDP, as a capture at its sender shows it."""
    flow = {"cca": cca} | ({"app": app} if app else {})
    scenario = Scenario.model_validate(
        {
            "forward": [{"at": "router", "delay": "20ms"}],
            "bottleneck": {"rate": "10mbit", "buffer": "50000"},
            "reverse": {"delay": "20ms"},
            "flows": [flow],
            "duration": "30s",
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.pcapng"
        Model().write_pcap(scenario, 7, file)
        return capture.read(file).flows[0]


@pytest.mark.parametrize("cca", ["bbr", "cubic"])
def test_a_control_whose_law_shows_is_named(cca: str) -> None:
    control = classify(observed(cca))
    assert control.name == cca, (control.candidates, control.reason)
    assert 0.8 < control.confidence <= 1
    assert next(iter(control.candidates)) == cca
    assert control.reason.why == "recognised"
    assert "round trips" in reasons.text(control.reason)


@pytest.mark.parametrize("cca", ["highspeed", "hybla", "illinois", "reno", "scalable"])
def test_a_control_is_named_or_unknown_with_itself_among_the_candidates(cca: str) -> None:
    control = classify(observed(cca))
    assert control.name in (cca, "unknown"), (control.candidates, control.reason)
    assert cca in list(control.candidates)[:2]


@pytest.mark.parametrize("cca", ["cubic", "highspeed", "illinois", "reno", "scalable"])
def test_a_control_that_watches_its_own_flow_has_the_window_that_was_seen(cca: str) -> None:
    watched = watch(observed(cca))
    assert watched is not None
    measures = compare(watched)
    assert measures[cca]["close_short"] > 0.9
    assert measures[cca]["error_long"] < 1.0
    assert measures[cca]["backoff_error"] < 0.06


def test_windows_and_reductions_are_those_of_the_law() -> None:
    watched = watch(observed("cubic"))
    ratios = [c.after / c.before for c in watched.cuts if c.state != LOSS and np.isfinite(c.after)]
    assert len(ratios) >= 3
    # RFC 9438 §4.6: β = 0.7; the first round trip after the reduction has grown by a packet or two.
    assert 0.67 < np.median(ratios) < 0.74
    assert watched.mss == 1448


def test_what_does_not_show_the_window_is_unknown_with_the_reason() -> None:
    flow = observed("cubic")
    bare = {"segments": {**flow.segments, "tsval": np.zeros_like(flow.segments["tsval"])}}
    for change, reason in [
        ({"vantage": "receiver"} | bare, Reason("not at the sender", {"vantage": "receiver"})),
        ({"vantage": "middle"} | bare, Reason("not at the sender", {"vantage": "middle"})),
        ({"seconds": 5.0}, Reason("few seconds", {"seconds": 5.0})),
        ({"segments": {}}, Reason("no packets")),
    ]:
        control = classify(dataclasses.replace(flow, **change))
        assert control.name == "unknown"
        assert control.reason == reason
    assert classify(dataclasses.replace(flow, cca="htcp")).name == "htcp"


def test_bbr_is_not_named_without_its_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    # A forest that takes everything for BBR.
    believer = SimpleNamespace(probabilities=lambda _: {"bbr": 0.99, "cubic": 0.01}, certainty=lambda _: 0.99, least={"bbr": 0.5})
    monkeypatch.setattr(importlib.import_module("tcpscape.findings.diagnosis.control.classify"), "trained", lambda: believer)
    assert classify(observed("bbr")).name == "bbr"
    control = classify(observed("cubic"))
    assert control.name == "unknown"
    assert control.reason == Reason("no probes of the RTT")


def test_a_name_that_others_may_have_is_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without SACK windows were not learnt, and only BBR's pace and probes show; kernels before 5.7 counted ACKs in four more controls; Reno, LP and DCTCP without marks do the same."""
    module = importlib.import_module("tcpscape.findings.diagnosis.control.classify")
    unsure = {"reno": 0.74, "lp": 0.2, "dctcp": 0.05}
    believer = SimpleNamespace(probabilities=lambda _: unsure, certainty=lambda p: p, least=dict.fromkeys(unsure, 0.9))
    monkeypatch.setattr(module, "trained", lambda: believer)
    family = classify(observed("reno"))
    assert (family.name, family.reason, family.confidence) == ("unknown", Reason("family", {"names": ("reno", "lp", "dctcp")}), pytest.approx(0.99))
    monkeypatch.undo()
    flow = observed("cubic")
    bare = classify(dataclasses.replace(flow, facts={**flow.facts, "sack": False}))
    assert (bare.name, bare.reason, next(iter(bare.candidates))) == ("unknown", Reason("without SACK"), "cubic")
    paced = observed("bbr")
    assert classify(dataclasses.replace(paced, facts={**paced.facts, "sack": False})).name == "bbr"


def test_a_control_that_does_not_pace_is_not_named_where_a_timer_spaced_the_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "is_steady", lambda flow: False)  # an application by a clock is steady
    seen = observed("cubic")
    assert before_replay(seen, DiagnosisSettings()).control.name == "cubic"
    spaced = dataclasses.replace(seen, limits=(LimitInterval(0, 30, "pacing"), LimitInterval(30, 50, "recovery")))
    control = before_replay(spaced, DiagnosisSettings()).control
    assert (control.name, next(iter(control.candidates)), control.reason) == (
        "unknown",
        "cubic",
        Reason("spaced by a timer", {"name": "cubic", "share": 0.6}),
    )
    assert before_replay(spaced, DiagnosisSettings(cca="cubic")).control.name == "cubic"


@pytest.mark.parametrize("cca", ["scalable", "bic", "veno"])
def test_a_law_that_counts_acks_is_told_from_highspeed(cca: str) -> None:
    """The window that the older law would have had is nearer to that law than to HighSpeed's, which counts ACKs today; HighSpeed's own is not."""
    own = watch(observed("highspeed"))
    assert own is not None
    assert not counting_acks(own, "highspeed")
    seen = watch(observed(cca))
    assert seen is not None
    told = watched.one_each(watched.stretches(seen, watched.LONG).rows)
    windows = np.frombuffer(_core.WatchedAcks(told.tobytes()).watch(cca, seen.mss, 250, False)[0], "<u4").astype(float)
    older = dataclasses.replace(seen, rounds=dataclasses.replace(seen.rounds, window=windows[seen.rounds.peak]))
    assert counting_acks(older, "highspeed")


def test_a_window_of_a_few_packets_has_no_name() -> None:
    """Half, 0.7 and 0.8 of four packets are two packets, or one more: what is known is that a law of losses moved it."""
    capture_of = observed("cubic")
    seen = watch(capture_of)
    assert seen is not None
    few = dataclasses.replace(seen, rounds=dataclasses.replace(seen.rounds, window=np.minimum(seen.rounds.window, 3.0)))
    assert _doubt(capture_of, few, "cubic") == Reason("small windows", {"packets": 3.0})
    assert _doubt(capture_of, few, "bbr") is None, "its pace shows"
    assert _doubt(capture_of, seen, "cubic") is None


def test_away_from_the_sender_what_it_echoes_tells_no_window_where_it_receives_data_too() -> None:
    seen = observed("cubic")
    columns = {**seen.acks, "len": np.full(len(seen.acks["t"]), 1_448, dtype=np.uint32)}
    both = dataclasses.replace(seen, vantage="receiver", acks=columns)
    told = watch(seen)
    assert told is not None
    assert _doubt(both, told, "cubic") == Reason("both ways")
    assert _doubt(dataclasses.replace(both, vantage="sender"), told, "cubic") is None


def test_a_control_that_others_are_nearer_to_is_no_name() -> None:
    """Behind a policer at windows of seven packets, an H-TCP was called CUBIC: its own shadow was as close, but for the fractions of a packet."""
    values = {f"{name}.{measure}": 0.5 for name in CANDIDATES for measure in ("close_short", "backoff_close")}
    values |= {"cubic.close_short": 0.993, "cubic.backoff_close": 0.975, "htcp.close_short": 1.0, "htcp.backoff_close": 0.987}
    assert nearer(values, "cubic") == ["htcp"]
    assert not nearer(values | {"htcp.backoff_close": 0.96}, "cubic")  # a reduction tells them apart
    assert not nearer(values, "htcp")
    assert not nearer(values | {"cubic.backoff_close": math.nan}, "cubic")  # nothing to compare


def test_a_window_that_answered_reordering_alone_has_no_name(tmp_path: Path) -> None:
    """CUBIC under a jitter of 6 ms that loses nothing moved as Illinois does: of twelve such flows five had a wrong name with 0.96 and more."""
    file, hop = tmp_path / "late.pcapng", {"at": "router", "delay": "20ms"}
    fields = {"forward": [{**hop, "jitter": "6ms"}], "reverse": hop, "bottleneck": "tbf rate 40mbit burst 6056 limit 400000", "duration": "12s"}
    Model().write_pcap(Scenario.model_validate({**fields, "flows": [{"cca": "cubic"}]}), 1, file)
    seen = capture.read(file).flows[0]
    assert seen.answers_reordering
    found = classify(seen)
    assert (found.name, found.reason.why) == ("unknown", "answers reordering")
    other = classify(replace(seen, facts={**seen.facts, "reordered": 0}))
    assert (other.name, next(iter(other.candidates)), other.reason.why) == ("unknown", "illinois", "reductions unseen")


def test_an_application_that_sends_little_hides_the_control() -> None:
    assert classify(observed("cubic", "2mbit")).name == "unknown"


def test_a_capture_that_is_cut_shows_the_same_control() -> None:
    flow = observed("illinois")

    def late(columns):
        chosen = np.asarray(columns["t"]) > 8_000_000_000
        return {name: values[chosen] for name, values in columns.items()}

    cut = dataclasses.replace(flow, segments=late(flow.segments), acks=late(flow.acks), events=late(flow.events), seconds=flow.seconds - 8)
    assert classify(cut).name in ("illinois", "unknown")


def test_the_forest_is_plain_data_and_says_where_it_comes_from() -> None:
    forest = trained()
    assert set(CANDIDATES) | {"bbr"} <= set(forest.controls)
    assert forest.provenance["made_by"] == "benches/control.py train"
    assert FILE.stat().st_size < 4_000_000
    watched = watch(observed("cubic"))
    assert watched is not None
    values = features(watched)
    assert set(values) == set(forest.features)
    probabilities = forest.probabilities(values)
    assert sum(probabilities.values()) == pytest.approx(1)
    assert list(probabilities.values()) == sorted(probabilities.values(), reverse=True)
    assert 0 <= forest.certainty(0.1) <= forest.certainty(0.9) <= 1


# A capture that was not taken at the sender: what the sender saw, made of the timestamps of both ends.


def packets_of(file: Path) -> list[tuple[int, bytes]]:
    """Time, ns, and IP packet of each frame of a capture of the model: one interface, Ethernet, times in ns."""
    data, at, packets = file.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:  # an enhanced packet block
            _, high, low, kept, _ = struct.unpack_from("<5I", data, at + 8)
            packets.append(((high << 32) + low, data[at + 28 + 14 : at + 28 + kept]))
        at += length
    return packets


def on_the_way(file: Path, ms: int) -> ObservedFlow:
    """The flow of a sender's capture as one on the way shows it: data `ms` later, ACKs so much earlier."""
    packets = packets_of(file)
    sender = max(packets, key=lambda packet: struct.unpack_from(">H", packet[1], 2))[1][12:16]
    moved = sorted((t + (ms if packet[12:16] == sender else -ms) * MS + 10**9, packet) for t, packet in packets)
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / "there.pcap"
        rows = [struct.pack("<IIII", t // 10**9, t % 10**9, len(packet), struct.unpack_from(">H", packet, 2)[0]) + packet for t, packet in moved]
        there.write_bytes(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 101) + b"".join(rows))
        flow = capture.read(there).flows[0]
    assert flow.vantage == "middle"
    return flow


@functools.cache
def both(cca: str, ms: int = 15, app: str = "", bottleneck: str = "tbf rate 10mbit burst 3028 limit 50000") -> tuple[ObservedFlow, ObservedFlow]:
    """30 s of a flow at its sender, 40 ms, and on the way."""
    fields = {
        "forward": {"at": "router", "delay": "20ms"},
        "reverse": {"at": "router", "delay": "20ms"},
        "bottleneck": bottleneck,
        "flows": [{"cca": cca} | ({"app": app} if app else {})],
        "duration": "30s",
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.pcapng"
        Model().write_pcap(Scenario.model_validate(fields), 3, file)
        return capture.read(file).flows[0], on_the_way(file, ms)


def test_round_trips_and_flights_are_those_of_the_sender() -> None:
    """Cubic at 10 Mbit/s: each segment leaves with an ACK, and an ACK or two have one timestamp."""
    flow, there = both("cubic")
    seen = as_sender(there)
    assert seen is not None
    assert seen.vantage == "sender"
    place = {int(seq): i for i, seq in enumerate(seen.segments["seq"])}
    rows = np.array([place[int(seq)] for seq in flow.segments["seq"]])
    once = (np.asarray(flow.segments["rtt"]) > 0) & (seen.segments["rtt"][rows] > 0)
    assert once.mean() > 0.9
    rtt = np.asarray(flow.segments["rtt"], np.int64) - seen.segments["rtt"][rows]
    assert np.percentile(np.abs(rtt[once]), 98) < 1 * MS
    flight = (np.asarray(flow.segments["flight"], np.int64) - seen.segments["flight"][rows]) / 1448
    assert np.mean(np.abs(flight[once]) < 1.5) > 0.95
    assert observed_rtt(there) == pytest.approx(observed_rtt(flow), rel=0.01)


@pytest.mark.parametrize("cca", ["bbr", "cubic"])
def test_a_control_has_its_name_on_the_way_too(cca: str) -> None:
    there = both(cca)[1]
    found = classify(there)
    assert found.name == cca, (found.candidates, found.reason)
    assert found.confidence > 0.8
    # BIC at 100 Mbit/s, of whose ACKs every second one was kept, was called Illinois with 0.95.
    thinned = dataclasses.replace(there, facts={**there.facts, "ack_stride": 2})
    assert classify(thinned).name == (cca if cca == "bbr" else "unknown")
    assert observed_rtt(thinned) is None


def test_bbr_behind_a_policer_is_no_cubic_on_the_way() -> None:
    """It sends at a constant rate, and its window falls with no loss: at the sender a timer spaces the segments, which does not show elsewhere."""
    policed = both("bbr", 10, bottleneck="tbf rate 10mbit burst 60000 limit 3028")[1]
    found = classify(policed)
    assert found.name == "unknown", found.candidates
    assert found.reason
    assert found.reason.why in ("reductions unseen", "no probes of the RTT", "would move alike")


def test_what_an_application_kept_back_has_no_round_trip() -> None:
    """64 kB at a time at 4 Mbit/s behind 10: the segments of a write echo an ACK of the one before, 128 ms old."""
    flow, there = both("cubic", app="4mbit")
    writes = dataclasses.replace(there, limits=limits.refined(there, classify(there), fit(there)))
    assert limits.shares_of(writes)["application"] > 0.5
    seen = observed_rtt(writes)
    assert seen is None or seen == pytest.approx(observed_rtt(flow), rel=0.1)
    assert classify(writes).name == "unknown"


def with_stamps(flow: ObservedFlow, ms: int) -> ObservedFlow:
    """The flow with a receiver whose clock has ticks of so many ms; 0: it stands still."""
    coarse = {}
    for name, rows, column in (("acks", flow.acks, "tsval"), ("segments", flow.segments, "tsecr")):
        stamps = np.asarray(rows[column], np.int64)
        coarse[name] = {**rows, column: np.where(stamps > 0, 1000 + (stamps // ms if ms else 0), 0)}
    return dataclasses.replace(flow, **coarse)


def test_a_receivers_clock_that_is_too_coarse_shows_nothing() -> None:
    """Frozen stamps made a bbr of a cubic, with 0.96; a wrap of the clock changes nothing."""
    there = both("cubic")[1]
    assert as_sender(with_stamps(there, 0)) is None
    assert as_sender(with_stamps(there, 100)) is None
    assert observed_rtt(with_stamps(there, 10)) == pytest.approx(observed_rtt(there), rel=0.1)
    wrapping = {}
    for name, rows, column in (("acks", there.acks, "tsval"), ("segments", there.segments, "tsecr")):
        stamps = np.asarray(rows[column], np.int64)
        wrapping[name] = {**rows, column: (stamps + 2**32 - int(np.median(there.acks["tsval"]))) % 2**32}
    assert observed_rtt(dataclasses.replace(there, **wrapping)) == pytest.approx(observed_rtt(there), rel=1e-4)


@pytest.mark.parametrize("stamp", [0, 2**31 + 12_345, 1])
def test_one_ack_with_a_wrong_timestamp_spoils_nothing(stamp: int) -> None:
    there = both("cubic")[1]
    stamps = np.asarray(there.acks["tsval"], np.int64).copy()
    stamps[len(stamps) // 10] = stamp
    spoilt = dataclasses.replace(there, acks={**there.acks, "tsval": stamps})
    assert observed_rtt(spoilt) == pytest.approx(observed_rtt(there), rel=0.01)
    assert classify(spoilt).name == "cubic"


def receiver() -> ObservedFlow:
    """Seven segments: two with the handshake's timestamp, two that one tick's two ACKs released, then one that was lost and came again, last."""
    ms = np.array([100, 101, 140, 141, 181, 182, 240], np.int64)
    seq = np.array([0, 100, 200, 300, 500, 600, 400], np.int64)
    ack = np.array([100, 200, 300, 400, 400, 400, 700], np.int64)
    n = len(seq)
    segments = {
        "t": ms * MS,
        "seq": seq,
        "len": np.full(n, 100),
        "segs": np.ones(n, np.int64),
        "sends": np.ones(n, np.int64),
        "fate": np.array([0, 0, 0, 0, 0, 0, 2], np.int64),
        "tsval": np.arange(1, n + 1),
        "tsecr": np.array([5, 5, 10, 10, 51, 51, 92], np.int64),
        "acked": np.array([100, 101, 140, 141, 181, 182, 240], np.int64) * MS,
        "rtt": np.zeros(n, np.int64),
        "flight": np.zeros(n, np.int64),
        "delivered": np.zeros(n, np.int64),
    }
    acks = {
        "t": ms * MS,
        "ack": ack,
        "tsval": np.array([10, 10, 50, 51, 91, 92, 150], np.int64),
        "sacked": np.array([0, 0, 0, 0, 100, 100, 0], np.int64),
        "window": np.full(n, 60_000),
    }
    events = {"t": np.array([240], np.int64) * MS, "kind": np.array([1], np.int64), "seq": np.array([400], np.int64)}
    return dataclasses.replace(observed("cubic"), vantage="receiver", segments=segments, acks=acks, events=events)


def test_each_segment_leaves_with_the_acknowledgement_that_it_echoes() -> None:
    seen = as_sender(receiver())
    assert seen is not None
    left = dict(zip(seen.segments["seq"].tolist(), seen.segments["t"].tolist(), strict=True))
    # The handshake's ACK has no row; of the two ACKs of one tick the first released the first segment; what was lost left between its neighbours.
    assert left[0] == left[100] == 100 * MS - 1
    assert (left[200], left[300]) == (100 * MS + 1, 101 * MS + 1)
    assert left[300] <= left[400] <= left[500] == 141 * MS + 1
    rtt = dict(zip(seen.segments["seq"].tolist(), seen.segments["rtt"].tolist(), strict=True))
    assert rtt[200] == 40 * MS - 1
    assert rtt[0] == 0, "its departure is not known"
    assert rtt[400] == 0, "its own packet was never seen"
    flight = dict(zip(seen.segments["seq"].tolist(), seen.segments["flight"].tolist(), strict=True))
    assert flight[200] == 200, "100 to 300: the first ACK alone had come"
    assert flight[600] == 300
    sent, delivered = (dict(zip(seen.segments["seq"].tolist(), seen.segments[name].tolist(), strict=True)) for name in ("sends", "delivered"))
    assert (sent[300], sent[400]) == (1, 2), "what was seen once was sent twice"
    assert (delivered[200], delivered[600]) == (0, 300), "since the first ACK"
    # The repetition left with the ACK that it echoes itself, which reported the second SACK.
    assert seen.events["t"].tolist() == [182 * MS + 1]


def test_an_application_may_hold_less_of_the_round_trips_than_at_the_sender() -> None:
    some: Any = SimpleNamespace(limited=(0.0, 0.45))
    assert _held(some, MOST_HELD) is None
    held = _held(some, MOST_HELD_ELSEWHERE)
    assert held
    assert held.why == "application held"


def test_without_timestamps_there_is_nothing_to_go_by() -> None:
    bare = receiver()
    for part in ("segments", "acks"):
        rows = getattr(bare, part)
        assert as_sender(dataclasses.replace(bare, **{part: {**rows, "tsval": np.zeros_like(rows["tsval"])}})) is None
        assert as_sender(dataclasses.replace(bare, **{part: {}})) is None


@pytest.mark.parametrize(
    ("facts", "is_told"),
    [
        ({"losses": 3}, False),
        ({"losses": 0}, True),
        ({"losses": 3, "sack": True}, True),
        ({"losses": 3, "sack": True, "sacks": 0, "timestamps": True}, False),
        ({"losses": 3, "sacks": 9, "timestamps": True}, True),
    ],
)
def test_where_a_capture_cut_the_options_off_losses_give_no_name(facts, is_told):
    """Neither timestamps nor SACK are seen then, and which packets were under way while losses were repaired is a guess."""
    flow = SimpleNamespace(facts={"timestamps": False, **facts}, answers_reordering=False, vantage="sender")
    rounds = SimpleNamespace(cuts=(), rounds=SimpleNamespace(window=np.full(20, 30.0)))
    assert _doubt(flow, rounds, "cubic") == (None if is_told else Reason("without SACK"))
