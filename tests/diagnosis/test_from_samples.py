"""The path that samples of TCP_INFO show, on simulated paths that are known."""

import struct
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import forked
from arriving import arriving
from patience import PATIENCE_S
from tcpscape import capture
from tcpscape.findings.diagnosis import bursts, diagnosis, limits
from tcpscape.findings.diagnosis.fitted import FittedPath, RecognisedControl
from tcpscape.findings.diagnosis.observed import LimitInterval, Observation, ObservedFlow, SocketAddress
from tcpscape.findings.diagnosis.path import from_samples
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.interchange import observing
from tcpscape.stats import Estimate
from tcpscape.words import reasons


@cache
def seen(*words: str) -> ObservedFlow:
    """A simulated transfer of 30 s, sampled each 10 ms."""
    with TemporaryDirectory() as place:
        out = str(Path(place) / "out")
        command = [*forked.python(), "-m", "tcpscape", "run", *words, "--duration", "30s", "--seeds", "1", "--samples", "10ms", "--out", out]
        subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE_S)
        return observing.observe(Path(out)).flows[0]


def fitted(*words: str) -> FittedPath:
    return from_samples.fit(seen(*words))


FULL = ("--forward", "netem delay 20ms", "--reverse", "netem delay 20ms", "--bottleneck", "tbf rate 20mbit burst 10kb limit 150kb", "--cca", "cubic")
LOSSY = ("--forward", "netem delay 20ms loss 1%", "--reverse", "netem delay 20ms", "--cca", "reno")
SHAKEN = (
    "--forward",
    "netem delay 40ms 4ms",
    "--reverse",
    "netem delay 40ms",
    "--bottleneck",
    "tbf rate 30mbit burst 10kb limit 300kb",
    "--cca",
    "cubic",
)
FAST = ("--forward", "netem delay 40ms 4ms", "--reverse", "netem delay 40ms", "--cca", "cubic")


class TestPaths:
    def test_a_full_bottleneck_shows_rtt_rate_and_buffer(self) -> None:
        path = fitted(*FULL)
        assert path.rtt_ms.low <= 40 <= path.rtt_ms.high
        assert path.rtt_ms.value == pytest.approx(40, rel=0.02)
        assert path.rate_mbps.low <= 20 <= path.rate_mbps.high
        assert path.rate_mbps.value == pytest.approx(20, rel=0.02)
        assert (path.buffer_bytes.value, path.queue) == (pytest.approx(150_000, rel=0.2), "self-induced")
        assert path.jitter_ms is None
        assert "jitter_ms" in path.reasons

    def test_random_loss_without_a_bottleneck_is_told_and_the_rate_is_not(self) -> None:
        path = fitted(*LOSSY)
        assert path.loss_pct.low <= 1 <= path.loss_pct.high
        assert path.rate_mbps is None
        assert path.buffer_bytes is None
        assert {"rate_mbps", "buffer_bytes", "queue_loss_pct"} <= path.reasons.keys()

    def test_jitter_widens_the_rtt_and_hides_losses(self) -> None:
        path = fitted(*SHAKEN)
        assert path.order_kept is False
        assert path.rtt_ms.low <= 80 <= path.rtt_ms.high
        assert path.jitter_ms.low <= 4 <= path.jitter_ms.high
        fast = fitted(*FAST).rtt_ms
        assert fast.low <= 80 <= fast.high
        assert path.loss_pct is None
        assert path.reasons["loss_pct"] == Reason("repeated needlessly")

    def test_every_field_without_a_value_has_a_reason(self) -> None:
        for words in (FULL, LOSSY, SHAKEN):
            path = fitted(*words)
            missing = {name for name in (*from_samples.MEASURED, *from_samples.PER_PACKET) if getattr(path, name) is None}
            assert missing == path.reasons.keys()

    def test_the_whole_diagnosis_takes_such_a_flow(self) -> None:
        result = diagnosis.diagnose(Observation("sockets", "test", [seen(*FULL)]))
        assert result.flows[0].path
        assert result.flows[0].path.rate_mbps
        assert result.flows[0].control.name == "cubic"


def flow(columns: dict[str, list[float]], **facts: object) -> ObservedFlow:
    samples = {name: np.array(values) for name, values in columns.items()}
    return ObservedFlow(SocketAddress("10.0.0.1", 1), SocketAddress("10.0.0.2", 2), 500, 10**6, 1.0, 0.0, "sender", 8.0, facts, samples=samples)


class TestLittle:
    def test_one_sample_bounds_the_rtt_alone(self) -> None:
        path = from_samples.fit(flow({"t_s": [0.0], "rtt": [60e3], "rttvar": [5e3], "min_rtt": [41.5e3]}))
        assert (path.rtt_ms.value, path.rtt_ms.high) == (41.5, 60)
        assert path.rate_mbps is None
        assert path.reasons["rate_mbps"] == Reason("few samples", {"least": from_samples.FEWEST, "count": 1})

    def test_smoothed_rtts_alone_bound_the_base_rtt_from_above(self) -> None:
        path = from_samples.fit(flow({"t_s": [0.0, 1.0, 2.0], "rtt": [76e3, 80e3, 88e3], "snd_cwnd": [10, 20, 30]}))
        assert path.rtt_ms is None
        assert path.reasons["rtt_ms"] == Reason("smoothed RTTs", {"ms": 76.0})

    def test_one_sample_a_second_shows_a_full_bottleneck_too(self) -> None:
        every = {name: values[::100] for name, values in seen(*FULL).samples.items()}
        path = from_samples.fit(replace(seen(*FULL), samples=every))
        assert path.rate_mbps.value == pytest.approx(20, rel=0.02)

    def test_a_smallest_rtt_of_whole_milliseconds_was_rounded_down(self) -> None:
        later = {"t_s": [0.0, 5.0, 10.0], "rtt": [42e3, 43e3, 43e3], "rttvar": [1e3] * 3}
        finer = from_samples.fit(flow({**later, "min_rtt": [41.6e3, 41.6e3, 41e3]})).rtt_ms
        assert finer.value == 41.6
        coarse = from_samples.fit(flow({**later, "min_rtt": [41e3] * 3})).rtt_ms
        assert coarse.value == 41.5
        assert coarse.high > 42

    def test_a_retransmission_is_a_loss_only_where_no_dsack_follows(self) -> None:
        """Tail loss probes of an idle sender were all needless: each DSACK comes a round trip later, the last one after the last sample."""
        n = 500
        probes = np.arange(n) // 50
        known = np.concatenate([np.zeros(5), probes[:-5]])
        columns = {"t_s": np.arange(n) / 100, "rtt": np.full(n, 30e3), "min_rtt": np.full(n, 30e3), "delivered": np.arange(n) * 20.0}
        columns |= {
            "delivery_rate": np.full(n, 3e6),
            "data_segs_out": np.arange(n) * 20.0,
            "total_retrans": probes + (np.arange(n) >= n - 2),
            "dsack_dups": known,
        }
        counted = from_samples.fit(flow(columns)).loss_pct
        assert (counted.value, counted.low) == (0, 0)
        lost = from_samples.fit(flow(columns | {"total_retrans": probes + np.arange(n) // 20})).loss_pct
        assert lost.value == pytest.approx(100 * 9 / (199 * 20))  # nine in the samples after slow start

    def test_no_samples_are_no_path(self) -> None:
        path = from_samples.fit(flow({}))
        assert path.rtt_ms is None
        assert set(from_samples.MEASURED) <= path.reasons.keys()

    def test_pings_of_the_idle_path_are_its_rtt_and_its_spread(self) -> None:
        draw = np.random.default_rng(2)
        path = from_samples.fit(flow({}, idle_pings_ms=tuple(50 + 3 * draw.standard_normal(100))))
        assert path.rtt_ms.low < 50 < path.rtt_ms.high
        assert path.jitter_ms.low < 3 < path.jitter_ms.high
        assert "rtt_ms" not in path.reasons

    def test_a_held_sender_never_shows_the_rate(self) -> None:
        n = 500
        path = from_samples.fit(
            flow(
                {
                    "t_s": list(np.arange(n) / 100),
                    "rtt": [30e3] * n,
                    "rttvar": [100.0] * n,
                    "min_rtt": [30e3] * n,
                    "delivery_rate": [1e6] * n,
                    "unacked": [20.0] * n,
                    "rwnd_limited": list(np.arange(n) * 1e4),
                }
            )
        )
        assert path.rate_mbps is None
        assert path.reasons["rate_mbps"] == Reason("held by an end")


# What a diagnosis makes of the intervals that a capture's analysis gives: shares, fewer intervals, and what the congestion control adds.


def held(times_s, vantage="receiver", intervals=(), timeouts_s=()):
    segments = {"t": (np.asarray(times_s) * 1e9).astype(np.uint64), "len": np.full(len(times_s), 1448, np.uint32)}
    events = {"t": (np.asarray(timeouts_s, float) * 1e9).astype(np.uint64), "kind": np.full(len(timeouts_s), limits.TIMEOUT, np.uint8)}
    end = SocketAddress("10.0.0.1", 1)
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
    assert limits.probes(held(probing(10.1, 20.3, 30.5))) == pytest.approx([10.1, 20.3, 30.5], abs=0.06)
    assert limits.paces(held(probing(10.1, 20.3, 30.6))) is True


@pytest.mark.parametrize("case", ["steady", "often", "too long", "late", "long ago", "a timeout", "stays low"])
def test_other_dips_are_no_probes(case):
    made = {
        "steady": held(probing()),
        "often": held(probing(10.1, 13.0, 20.3)),
        "too long": held(probing(10.1, length=1.5)),
        "late": held(probing(20.1)),
        "long ago": held(probing(10.1)),
        "a timeout": held(probing(10.1), timeouts_s=[10.2]),
        "stays low": held(probing(10.1, length=30.0)),
    }[case]
    assert limits.probes(made) == []
    assert limits.paces(made) is None


def test_the_control_decides_between_a_window_and_a_pace():
    intervals = (LimitInterval(0, 1, "congestion_window", (1, 2)), LimitInterval(1, 2, "pacing", (3, 4)), LimitInterval(2, 3, "recovery", (5,)))
    bbr, reno, unknown = RecognisedControl("bbr", 0.9), RecognisedControl("reno", 0.9), RecognisedControl("unknown", 0.9)
    far = held([0.0, 1.0], "receiver", intervals)
    causes = lambda f, c: [i.cause for i in limits.refined(f, c)]  # noqa: E731
    assert causes(far, bbr) == ["pacing", "recovery"]
    assert limits.refined(far, bbr)[0] == LimitInterval(0, 2, "pacing", (1, 2, 3, 4))
    assert causes(far, reno) == ["congestion_window", "application", "recovery"]
    assert causes(far, unknown) == causes(far, None) == ["congestion_window", "pacing", "recovery"]
    assert causes(replace(far, vantage="sender"), bbr) == ["congestion_window", "pacing", "recovery"]


def test_a_clockwork_at_the_sender_is_an_application_and_turns_of_more_and_less_are_a_pace():
    clockwork = held(np.arange(0, 9, 0.002), "sender")
    gains = np.tile([1.25, 0.75, 1, 1, 1, 1, 1, 1], 40)
    turns = held(np.cumsum(np.repeat(0.002 / gains, 20)), "sender")
    assert (limits.paces(clockwork), limits.paces(turns)) == (False, None)
    assert limits.paces(replace(clockwork, vantage="receiver")) is None


def test_segments_by_a_clock_are_an_applications_where_no_queue_spaces_them():
    window, pace = ((LimitInterval(0, 9, cause),) for cause in ("congestion_window", "pacing"))
    times = np.arange(0, 9, 0.004)
    far, near = (
        replace(held(times, place, limits_), facts={"rtt": {"p50_ms": 40.0}, "timestamps": True})
        for place, limits_ in (("receiver", window), ("sender", pace))
    )
    first = lambda flow, path: limits.refined(flow, None, path)[0].cause  # noqa: E731
    unseen, wide, full = FittedPath(), FittedPath(rate_mbps=Estimate(8, 7.9, 8.1, 9)), FittedPath(rate_mbps=Estimate(1.1, 1.0, 1.2, 9))
    still = FittedPath(jitter_on="none")
    assert [first(one, path) for one in (far, near) for path in (still, wide)] == ["application"] * 4
    assert [first(one, unseen) for one in (far, near)] == ["congestion_window", "application"]
    assert [first(one, full) for one in (far, near)] == ["congestion_window", "pacing"]
    assert first(replace(far, facts={"rtt": {"p50_ms": 40.0}, "timestamps": False}), unseen) == "congestion_window"
    swift = replace(far, segments=held(np.arange(0, 9, 0.001)).segments)  # timestamps show no queue of packets that take a millisecond each
    assert first(swift, still) == "congestion_window"
    growing = np.sort(9 * np.sqrt(np.arange(2250) / 2250))  # a window that grows by a segment each round trip
    assert first(replace(far, segments=held(growing).segments), unseen) == "congestion_window"


@pytest.mark.parametrize(
    ("cause", "flight", "rate", "is_told"),
    [
        ("send_buffer", "constant", "varies", True),
        ("send_buffer", "sawtooth", "varies", False),
        ("application", "constant", "steady", True),
        ("application", "constant", "varies", False),
        ("application", "runs out", "varies", True),
    ],
)
def test_away_from_the_sender_a_cause_that_flight_and_rate_speak_against_is_a_doubt(cause, flight, rate, is_told):
    """500 round trips of 40 ms, with 20 segments in the mean."""
    numbers = np.tile([14, 26, 17, 23], 125) if rate == "varies" else np.full(500, 20)
    times = np.concatenate([0.04 * k + np.arange(n) * 0.04 / n for k, n in enumerate(numbers)])
    place = np.concatenate([np.arange(n) / n for n in numbers])
    flights = {
        "constant": 29_000 - 4_000 * (place > 0.5),
        "sawtooth": np.interp(times % 4, (0, 4), (15_000, 29_000)),
        "runs out": 1_448 + 27_000 * place,
    }[flight]
    seen = held(times, "middle", (LimitInterval(0, 20, cause),))
    seen = replace(seen, segments={**seen.segments, "flight_by_echo": flights.astype(np.uint32)})
    found = limits.doubted(seen, None, FittedPath(jitter_on="none"))
    assert [one.cause for one in found.limits] == [cause if is_told else "unknown"]
    assert found.limits_doubt == (None if is_told else "end_of_writes")


@pytest.mark.parametrize(("pauses", "is_told"), [(0, False), (2, False), (40, True)])
def test_two_pauses_make_no_application_of_a_sender_whose_flight_never_runs_out(pauses, is_told):
    """500 round trips of 40 ms at a rate that varies, as of a small buffer whose ACKs are lost, with pauses of a second among them."""
    numbers = np.tile([14, 26, 17, 23], 125)
    trips = 0.04 * np.arange(500) + np.searchsorted(np.linspace(2, 498, pauses + 2)[1:-1], np.arange(500)) * 1.0
    times = np.concatenate([t + np.arange(n) * 0.04 / n for t, n in zip(trips, numbers, strict=True)])
    seen = held(times, "receiver", (LimitInterval(0, float(times[-1]), "application"),))
    flights = np.resize([29_000, 27_000, 25_000], times.size)
    seen = replace(seen, facts={**seen.facts, "idles": pauses}, segments={**seen.segments, "flight_by_echo": flights.astype(np.uint32)})
    assert limits.doubted(seen, None, FittedPath(jitter_on="none")).limits_doubt == (None if is_told else "end_of_writes")


@pytest.mark.parametrize(
    ("pause", "stamped", "path", "causes"),
    [
        (0.008, False, FittedPath(), {"unknown"}),
        (0.008, True, FittedPath(), {"application", "send_buffer"}),
        (0.6, False, FittedPath(), {"application", "send_buffer"}),
        (0.6, False, FittedPath(rtt_ms=Estimate(160, 155, 165, 9)), {"unknown"}),
    ],
)
def test_without_timestamps_elsewhere_only_silences_longer_than_an_answers_way_are_an_applications(pause, stamped, path, causes):
    """Bursts of three segments, of which the last is not full: a small buffer that waits for an ACK behind a slow link, or a program's writes."""
    begins = np.arange(0, 30, pause)
    times = np.sort(np.concatenate([begins + k * 0.001 for k in range(3)]))
    ends = [LimitInterval(float(a), float(a + pause), "send_buffer" if k % 4 == 0 else "application") for k, a in enumerate(begins)]
    seen = replace(held(times, "middle", tuple(ends)), facts={"rtt": {"p50_ms": 3.0}, "timestamps": stamped})
    found = limits.doubted(seen, None, path)
    assert {one.cause for one in found.limits} == causes
    assert found.limits_doubt == ("no_timestamps" if causes == {"unknown"} else None)


@pytest.mark.parametrize(("pause", "stamped", "is_told"), [(0.25, False, False), (0.0, False, True), (0.25, True, True)])
def test_writes_that_a_bottleneck_serves_are_no_window_for_sure_without_timestamps(pause, stamped, is_told):
    """64 kB each 0.6 s, of which a slow link makes an even stream of 0.34 s: at the receiver this looks as what a congestion window releases."""
    begins = np.arange(60) * (0.34 + pause)
    times = np.concatenate([at + np.arange(113) * 0.003 for at in begins])
    parts = [
        (LimitInterval(float(at), float(at + 0.34), "congestion_window"), LimitInterval(float(at + 0.34), float(at + 0.34 + pause), "unknown"))
        for at in begins
    ]
    seen = held(times, "receiver", tuple(one for pair in parts for one in pair if one.end_s > one.start_s))
    found = limits.doubted(replace(seen, facts={"rtt": {"p50_ms": 160.0}, "timestamps": stamped, "losses": 1}))
    assert ("congestion_window" in {one.cause for one in found.limits}) is is_told
    assert found.limits_doubt == (None if is_told else "no_timestamps")


def test_a_few_segments_show_no_habits_of_their_sender():
    """Public captures are full of answers of a dozen segments: what looks like a small buffer there is a program that answers."""
    for cause in ("send_buffer", "congestion_window", "pacing", "application", "handshake"):
        few, more = (limits.doubted(held(np.arange(n) * 0.04, "sender", (LimitInterval(0, n * 0.04, cause),))) for n in (29, 300))
        is_habit = cause in ("send_buffer", "congestion_window", "pacing")
        assert (few.limits[0].cause, few.limits_doubt) == (("unknown", "few_segments") if is_habit else (cause, None))
        assert more.limits_doubt != "few_segments"


def written(file: Path, size: int, number: int) -> ObservedFlow:
    """A sender's capture of bare IPv4 packets: so many of this payload, two under way, each sent as an ACK comes."""
    kept = bytearray(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 101))

    def packet(ms: float, is_back: bool, numbers: tuple[int, int], flags: int, payload: int = 0, options: bytes = b"") -> None:
        ends = (b"\x0a\0\0\1", 40_000), (b"\x0a\0\0\2", 9_000)
        (source, port), (destination, other) = ends[::-1] if is_back else ends
        tcp = struct.pack(">HHIIBBHHH", port, other, *numbers, (20 + len(options)) << 2, flags, 65_535, 0, 0) + options
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp) + payload, 0, 0x4000, 64, 6, 0, source, destination)
        kept.extend(struct.pack("<IIII", 0, round(ms * 1e3), len(ip + tcp), len(ip + tcp) + payload) + ip + tcp)

    packet(0, False, (0, 0), 0x02, options=b"\2\4\x05\xb4")
    packet(40, True, (0, 1), 0x12, options=b"\2\4\x05\xb4")
    packet(40.01, False, (1, 1), 0x10)
    for k in range(number + 2):
        if k >= 2:
            packet(40 + 20 * k, True, (1, 1 + (k - 1) * size), 0x10)
        if k < number:
            packet(40.05 + 20 * k, False, (1 + k * size, 1), 0x10, size)
    file.write_bytes(bytes(kept))
    return capture.read(file).flows[0]


def test_what_a_clock_sends_is_no_send_buffers_where_no_ack_released_it(tmp_path):
    """Writes of 8 kB each 128 ms over 145 ms and a slow link, whose flight is always the same; and bursts that the ACKs of the last ones release."""
    sizes = np.tile([1_448] * 5 + [952], 300)
    ways = 81.7, 63.1
    by_clock = arriving(tmp_path / "clock.pcap", np.repeat(1_000 + 128.43 * np.arange(300), 6), sizes, ways, 9.0)
    path = FittedPath(rate_mbps=Estimate(1.34, 1.33, 1.35, 99))
    assert by_clock.vantage == "receiver"
    assert (bursts.is_clocked(by_clock, path), bursts.begins_by_itself(by_clock)) == (True, True)
    both = replace(by_clock, limits=(LimitInterval(0, 38, "send_buffer"),))
    assert [one.cause for one in limits.refined(both, None, path)] == ["application"]
    by_acks = arriving(tmp_path / "acks.pcap", np.repeat(1_000 + (sum(ways) + 18.1) * np.arange(300), 6), sizes, ways, 9.0)
    assert (bursts.is_clocked(by_acks, path), bursts.begins_by_itself(by_acks)) == (True, False)
    both = replace(by_acks, limits=(LimitInterval(0, 38, "send_buffer"),))
    assert [one.cause for one in limits.refined(both, None, path)] == ["send_buffer"]
    # One burst of four leaves as its ACK comes, the others 1.4 ms later: a tenth of the usual time is nothing, but a buffer is filled at once.
    waited = np.where(np.arange(300) % 4, 1.4, 0.0)
    shortly = arriving(tmp_path / "shortly.pcap", np.repeat(1_000 + np.cumsum(sum(ways) + 18.1 + waited), 6), sizes, ways, 9.0)
    assert [bursts.is_late(seen) for seen in (by_acks, shortly)] == [False, True]
    still = np.full(20, 8_192.0), np.full(20, 1_000.0), np.full(20, 8_192.0)
    for seen, is_denied in ((by_acks, False), (shortly, True)):
        about, doubt = limits._by_flights(replace(seen, limits=both.limits), path, {"send_buffer": 1.0}, still)
        assert (about["send_buffer"], doubt) == (is_denied, "end_of_writes")


@pytest.mark.parametrize(("apart", "is_denied"), [(10.0, True), (0.0, False)])
def test_beside_a_nearly_full_bottleneck_a_clock_of_the_sender_may_be_what_a_buffer_looks_like(apart, is_denied, tmp_path):
    """Full segments, seven each 10 ms over a link that takes 9 ms for them: its packets come all at one distance."""
    times = 1_000 + (np.repeat(apart * np.arange(300), 7) if apart else 10 / 7 * np.arange(2_100))
    seen = arriving(tmp_path / "clock.pcap", times, np.full(2_100, 1_448), (20.0, 20.0), 1.25)
    path = FittedPath(rate_mbps=Estimate(9.69, 9.6, 9.8, 99))
    seen = replace(seen, goodput_mbps=0.85 * 9.69)
    still = np.full(20, 40_000.0), np.full(20, 30_000.0), np.full(20, 40_000.0)
    assert bursts.stamps_beat(seen) is is_denied
    about, _ = limits._by_flights(seen, path, {"send_buffer": 1.0}, still)
    assert about["send_buffer"] is (is_denied or bursts.is_late(seen))
    about, _ = limits._by_flights(replace(seen, goodput_mbps=5.0), path, {"send_buffer": 1.0}, still)
    assert about["send_buffer"] is bursts.is_late(seen)


@pytest.mark.parametrize(("apart", "is_stamped", "found"), [(55.5, False, "application"), (53.2, False, "unknown"), (55.5, True, "application")])
def test_bursts_whose_distances_no_round_trip_explains_are_a_clocks(apart, is_stamped, found, tmp_path):
    """Full segments written by a clock over 212.8 ms, seen at the receiver; of 53.2 ms four are a round trip, and bursts of a window would come so."""
    seen = arriving(
        tmp_path / "clock.pcap",
        np.repeat(1_000 + apart * np.arange(240), 20),
        np.full(4_800, 1_448 if is_stamped else 1_460),
        (110.0, 102.8),
        0.05,
        is_stamped=is_stamped,
    )
    assert (seen.vantage, seen.facts["timestamps"]) == ("receiver", is_stamped)
    path = FittedPath(rtt_ms=Estimate(212.8, 209.0, 216.0, 99, "ms"))
    assert bursts.is_clocked(seen, path) is (found == "application")
    held_so = replace(seen, limits=(LimitInterval(0, 9, "congestion_window"),))
    told = limits.doubted(replace(held_so, limits=limits.refined(held_so, None, path)), None, path)
    assert [one.cause for one in told.limits] == [found]


def test_a_last_packet_long_after_all_others_shows_no_clock(tmp_path):
    """All but one of the segments are in the first eighth of the time: a clock that was set, or damage."""
    seen = arriving(tmp_path / "far.pcap", np.append(1_000 + 10.0 * np.arange(200), 1e6), np.full(201, 1_448), (20.0, 20.0), 0.05)
    assert not bursts.is_clocked(seen, FittedPath())


def test_bursts_of_a_shared_mediums_turns_are_no_clocks_where_losses_change_the_flight(tmp_path):
    """Five segments each 10 ms at the receiver: of a window that losses make smaller, a medium gathers them so; an application's flight stays."""
    seen = arriving(tmp_path / "turns.pcap", np.repeat(1_000 + 10.0 * np.arange(600), 5), np.full(3_000, 1_448), (20.0, 20.0), 0.05)
    assert (seen.vantage, seen.facts["timestamps"]) == ("receiver", True)
    sawtooth = (60_000 * (0.7 + 0.3 * (np.arange(3_000) % 500) / 500)).astype(np.uint32)
    lossy = {**seen.facts, "losses": 6}
    for flights, facts, is_clock in (
        (sawtooth, lossy, False),
        (np.full_like(sawtooth, 29_000), lossy, True),
        (sawtooth, {**lossy, "losses": 0}, True),
    ):
        flow = replace(seen, facts=facts, segments={**seen.segments, "flight_by_echo": flights})
        assert bursts.is_clocked(flow, FittedPath()) is is_clock


@pytest.mark.parametrize(("apart", "found"), [(40.1, "congestion_window"), (33.0, "application")])
def test_bursts_a_round_trip_apart_are_a_windows_that_does_not_grow_as_well_as_a_clocks(apart, found, tmp_path):
    """Ten segments each 40.1 ms over a round trip of 40 ms, as a receive window whose scale is in SYNs that the capture lacks holds them."""
    seen = arriving(tmp_path / "still.pcap", np.repeat(1_000 + apart * np.arange(300), 10), np.full(3_000, 1_448), (20.0, 20.0), 0.05)
    path = FittedPath(rtt_ms=Estimate(40.0, 39.8, 40.2, 99, "ms"))
    assert bursts.is_clocked(seen, path)
    held_so = replace(seen, limits=(LimitInterval(0, 12, "congestion_window"),))
    assert [one.cause for one in limits.refined(held_so, None, path)] == [found]


def test_without_a_timestamp_a_rate_that_never_grows_beside_pauses_is_no_congestion_windows(tmp_path):
    """Bursts once a round trip of 100 ms: as many segments in each, one more in each, and the same where a queue leaves no pause."""
    path = FittedPath(rtt_ms=Estimate(100.0, 98.0, 102.0, 99, "ms"))
    at = 1_000 + 100.0 * np.arange(120)
    cases = ((np.full(120, 16), 0.05, "unknown"), (10 + np.arange(120) // 2, 0.05, "congestion_window"), (np.full(120, 16), 6.2, "congestion_window"))
    for sizes, each_ms, found in cases:
        times = np.repeat(at, sizes)
        seen = arriving(tmp_path / "window.pcap", times, np.full(times.size, 1_460), (60.0, 40.0), each_ms, is_stamped=False)
        seen = replace(seen, limits=(LimitInterval(0, 12, "congestion_window"),))
        assert [one.cause for one in limits.doubted(seen, None, path).limits] == [found]


def test_packets_that_come_at_once_were_not_served_one_by_one():
    burst = np.repeat(np.arange(100) * 0.05, 45)
    assert not bursts.is_served(held(burst, "middle"), FittedPath())
    assert bursts.is_served(held(np.arange(4_500) * 0.001, "middle"), FittedPath())


@pytest.mark.parametrize(("is_alone", "doubt"), [(True, "small_writes"), (False, None)])
def test_small_writes_that_leave_one_by_one_are_not_surely_held_by_a_buffer(is_alone, doubt, tmp_path):
    """Nagle's algorithm at an MTU of 9000: each segment leaves as the one before is acknowledged; two at a time are a small buffer."""
    trips = 1_000 + 5.06 * np.arange(600)
    sent = trips if is_alone else np.repeat(trips, 2)
    sizes = np.tile([8_688, 7_240, 8_688], sent.size // 3)
    seen = arriving(tmp_path / "nagle.pcap", sent, sizes, (1.31, 3.71), 0.0, 8_960)
    seen = replace(seen, limits=(LimitInterval(0, 3, "send_buffer"),))
    found = limits.doubted(seen)
    assert (found.limits_doubt == doubt) if is_alone else (found.limits_doubt != "small_writes")
    assert "Nagle" in reasons.text(Reason("small_writes"))


def test_a_flight_of_one_size_while_round_trips_vary_is_not_surely_an_applications():
    """500 round trips of 40 ms that vary by a tenth, seen at the receiver: an application's flight would vary as they do."""
    times = np.concatenate([0.04 * k + np.arange(20) * 0.04 / 20 for k in range(500)])
    times += np.random.default_rng(1).normal(0, 0.0005, times.size)
    seen = held(times, "receiver", (LimitInterval(0, 20, "application"),))
    flights = np.tile(29_000 - 400 * np.arange(20), 500)
    for spread, size, doubt in ((4e6, 1.0, "constant_flight"), (1e5, 1.0, None), (4e6, np.repeat(np.linspace(0.6, 1.4, 500), 20), None)):
        echo = np.random.default_rng(2).normal(4e7, spread, times.size)
        rows = {**seen.segments, "flight_by_echo": (flights * size).astype(np.uint32), "echo": echo.astype(np.uint64)}
        assert limits.doubted(replace(seen, segments=rows), None, FittedPath(jitter_on="none")).limits_doubt == doubt


@pytest.mark.parametrize(("waits_ms", "varies", "doubt"), [(0.0, 0, "constant_flight"), (8.0, 0, None), (0.0, 1, None)])
def test_a_flight_that_each_ack_fills_to_the_byte_is_not_surely_an_applications(waits_ms, varies, doubt):
    """A send buffer of 57,344 bytes in most round trips, between reductions: what is written by itself leaves later than the ACK, or is not as much."""
    times = np.concatenate([0.04 * k + np.arange(20) * 0.0005 for k in range(500)])
    seen = held(times, "receiver", (LimitInterval(0, 20, "application"),))
    rng = np.random.default_rng(4)
    most = np.where(np.arange(500) % 3 == 0, rng.integers(20_000, 57_000, 500), 57_344 - varies * rng.integers(0, 2_000, 500))
    flights = np.concatenate([np.linspace(1_448, size, 20) for size in most])
    echo = 4e7 + 1e6 * waits_ms * (np.arange(times.size) > 0)
    rows = {**seen.segments, "flight_by_echo": flights.astype(np.uint32), "echo": echo.astype(np.uint64)}
    seen = replace(seen, segments=rows, facts={**seen.facts, "segment_size": 1_448, "rtt": {"p50_ms": 40.0}})
    seen = replace(seen, acks={"t": np.arange(3), "len": np.zeros(3)})
    assert limits.doubted(seen, None, FittedPath(jitter_on="none")).limits_doubt == doubt


def test_a_super_packet_is_as_many_segments_as_it_carries(tmp_path):
    few, many = (written(tmp_path / f"{size}.pcap", size, 16) for size in (1_460, 4 * 1_460))
    assert (len(few.segments["t"]), len(many.segments["t"])) == (16, 16)
    assert (few.facts["segments"], many.facts["segments"]) == (16, 64)
    assert limits.shares(few.limits)["congestion_window"] == limits.shares(many.limits)["congestion_window"] > 0.5
    assert limits.doubted(few).limits_doubt == "few_segments"
    assert limits.doubted(many).limits_doubt is None


def test_away_from_the_sender_few_round_trips_show_no_buffer_of_one_size():
    short = held(np.repeat(np.arange(10) * 0.04, 10), "receiver", (LimitInterval(0, 0.4, "send_buffer"),))
    assert limits.doubted(short).limits_doubt == "end_of_writes"
    assert limits.doubted(replace(short, vantage="sender")).limits_doubt is None


def test_intervals_of_a_clock_that_was_set_take_no_memory_for_the_years_between():
    """A capture that lasts 40 years by its times: cells of 10 ms would be 126 thousand million."""
    years = [LimitInterval(k * 1e7, (k + 1) * 1e7, ("application", "recovery")[k % 2]) for k in range(126)]
    assert 1 <= len(limits.readable(years, 60)) <= 60


def test_a_flight_that_stays_the_same_without_a_loss_is_no_congestion_windows():
    times = np.arange(5_000) * 0.004
    grows = np.interp(times, (0, 20), (15_000, 377_000))  # by half a segment each 40 ms
    seen = held(times, "middle", (LimitInterval(0, 20, "congestion_window"),))

    def doubt(flight, losses=0, path=FittedPath(), goodput=2.9):
        facts = {**seen.facts, "losses": losses, "segment_size": 1_448}
        segments = {**seen.segments, "flight_by_echo": flight.astype(np.uint32)}
        return limits.doubted(replace(seen, segments=segments, facts=facts, goodput_mbps=goodput), None, path).limits_doubt

    same = np.full(times.size, 29_000.0)
    full = FittedPath(rate_mbps=Estimate(3.0, 2.9, 3.1, 9))
    assert [doubt(same), doubt(grows), doubt(same, path=full)] == ["constant_flight", None, None]
    # Between losses the largest flight grows by half a segment a round trip: 20 segments stay the same to within 5 % for four of them. What comes
    # as evenly as a bottleneck serves it may be the window of a control that measures delays.
    assert doubt(same, losses=4) is None
    seen = held(np.repeat(np.arange(500) * 0.04, 10), "middle", (LimitInterval(0, 20, "congestion_window"),))
    assert [doubt(same, losses=losses) for losses in (4, 60, 160)] == ["constant_flight", "constant_flight", None]


@pytest.mark.parametrize(("losses", "flight", "doubt"), [(0, 29_000, "constant_flight"), (4, 29_000, None), (0, 3_000_000, None)])
def test_at_the_sender_too_a_flight_that_stays_the_same_is_no_congestion_windows(losses, flight, doubt):
    """Full segments of a small send buffer under BBR; of one as large as the default, both are named."""
    times = np.arange(5_000) * 0.004
    seen = held(times, "sender", (LimitInterval(0, 20, "congestion_window"),))
    segments = {**seen.segments, "flight_by_echo": np.full(times.size, flight, np.uint32)}
    facts = {**seen.facts, "losses": losses, "segment_size": 1_448, "flight_max": flight}
    assert limits.doubted(replace(seen, segments=segments, facts=facts)).limits_doubt == doubt


def test_a_timer_at_the_sender_is_a_pace_where_a_control_that_paces_shows():
    rng = np.random.default_rng(3)
    seen = held(np.cumsum(rng.uniform(0.001, 0.009, 2000)), "sender", (LimitInterval(0, 10, "pacing"),))
    told = [RecognisedControl("bbr", 0.97), RecognisedControl("unknown", 0.85, {"bbr": 0.86, "nv": 0.1})]
    assert all(limits.doubted(seen, control) is seen for control in told)
    assert limits.doubted(seen, RecognisedControl("unknown", 0.57, {"bbr": 0.59, "reno": 0.08})).limits_doubt == "pace_or_application"
    full = FittedPath(rate_mbps=Estimate(1.1, 1.0, 1.2, 9))
    assert limits.doubted(seen, RecognisedControl("unknown", 0.0), full) is seen
    found = limits.doubted(seen, RecognisedControl("unknown", 0.0))
    assert ([one.cause for one in found.limits], found.limits_doubt) == (["unknown"], "pace_or_application")


@pytest.mark.parametrize(
    ("vantage", "rate", "goodput", "steady", "is_told"),
    [
        ("sender", None, 13.0, True, False),
        ("sender", None, 13.0, False, True),
        ("sender", 14.0, 13.0, True, True),
        ("middle", 28.0, 13.0, True, False),
        ("middle", None, 13.0, True, True),
    ],
)
def test_a_repair_that_changes_no_rate_holds_nothing(vantage, rate, goodput, steady, is_told):
    """Twenty segments each 40 ms, or ten and thirty in turn, in losses that are repaired for all of the time: elsewhere the bottleneck must be known."""
    numbers = np.full(500, 20) if steady else np.tile([10, 30], 250)
    times = np.concatenate([0.04 * k + np.arange(n) * 0.04 / n for k, n in enumerate(numbers)])
    seen = replace(held(times, vantage, (LimitInterval(0, 20, "recovery"),)), facts={"rtt": {"p50_ms": 40.0}}, goodput_mbps=goodput)
    found = limits.doubted(seen, None, FittedPath(rate_mbps=Estimate(rate, rate, rate, 9)) if rate else FittedPath())
    assert [one.cause for one in found.limits] == ["recovery" if is_told else "unknown"]
    assert found.limits_doubt == (None if is_told else "pace_or_application")


def test_without_packets_the_sources_own_intervals_stay():
    intervals = (LimitInterval(0, 1, "pacing"),)
    assert limits.refined(held([], "unknown", intervals), RecognisedControl("reno", 1.0)) == intervals


def test_shares_are_of_the_time_and_the_largest_comes_first():
    intervals = [LimitInterval(0, 1, "recovery"), LimitInterval(1, 4, "application"), LimitInterval(4, 8, "recovery")]
    assert list(limits.shares(intervals).items()) == [("recovery", 0.625), ("application", 0.375)]
    assert limits.shares([]) is None


def test_few_intervals_for_a_reader_cover_the_same_time():
    causes = ["congestion_window", "application", "congestion_window"]
    intervals = [LimitInterval(k * 0.003, (k + 1) * 0.003, causes[k % 3], (k + 1,)) for k in range(1000)] + [
        LimitInterval(3.0, 5.0, "recovery", (2000,))
    ]
    few = limits.readable(intervals, 60)
    assert [i.cause for i in few] == ["congestion_window", "recovery"]
    assert (few[0].start_s, few[-1].end_s) == (0.0, 5.0)
    assert few[0].end_s == few[1].start_s == pytest.approx(3.0, abs=limits.FINEST_S)
    assert few[1].frames == (2000,)
    assert limits.readable(intervals[:5], 60) == tuple(intervals[:5])
