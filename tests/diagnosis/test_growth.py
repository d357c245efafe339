"""What would grow if nothing else held a flow: a congestion window without a loss, and the rate of BBR's pace until it fills the path."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arriving import arriving
from tcpscape import capture
from tcpscape.engines.model import Model
from tcpscape.findings.diagnosis import bursts, diagnosis, limits, observed
from tcpscape.findings.diagnosis.control.classify import classify
from tcpscape.findings.diagnosis.fitted import DiagnosisSettings, FittedPath, PathChange, RecognisedControl
from tcpscape.findings.diagnosis.growth import stays_below_bottleneck
from tcpscape.findings.diagnosis.observed import LimitInterval, ObservedFlow
from tcpscape.findings.diagnosis.path.changes import is_of_bottleneck
from tcpscape.findings.diagnosis.path.fitting import fit
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Floats

TRIP_MS = 40.0
EMPTY = FittedPath(rtt_ms=Estimate(TRIP_MS, TRIP_MS, TRIP_MS, 99, "ms"), jitter_on="none", queue="none")
"""A path of which no queue was seen."""
KNOWN = RecognisedControl("bbr", 0.95, {"bbr": 0.95}, Reason("named by the user"))


def spread(counts: Any) -> Floats:
    """Times of so many segments in each round trip, evenly, ms."""
    return np.concatenate([1_000 + TRIP_MS * (trip + np.arange(n) / n) for trip, n in enumerate(counts)])


def seen(file: Path, times: Floats, cause: observed.Cause) -> ObservedFlow:
    """A receiver's capture of these full segments over an empty path, all of whose time the analysis gives to one cause."""
    flow = arriving(file, times, np.full(times.size, 1_448), (TRIP_MS / 2, TRIP_MS / 2), 0.05)
    return replace(flow, limits=(LimitInterval(0, times[-1] / 1e3, cause),))


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ([6] * 150 + [18] * 150, "unknown"),  # a program that writes three times as much from some time on
        (6 + np.arange(300) // 25, "unknown"),  # one that writes more and more, slower than any window grows
        (4 + np.arange(300) // 2, "congestion_window"),
    ],
)
def test_what_grows_less_than_a_window_without_a_loss_is_none(counts: Any, found: str, tmp_path: Path) -> None:
    flow = seen(tmp_path / "a.pcap", spread(counts), "congestion_window")
    assert [one.cause for one in limits.doubted(flow, None, EMPTY).limits] == [found]


@pytest.mark.parametrize(
    ("changed", "is_below"), [({}, True), ({"queue": "self-induced"}, False), ({"queue": None}, False), ({"jitter_on": None}, False)]
)
def test_a_pace_that_never_fills_an_empty_path_is_none_of_bbr(changed: dict[str, Any], is_below: bool, tmp_path: Path) -> None:
    """Segments at random times, as a program writes them, which a pacer's do not have."""
    times = 1_000 + np.random.default_rng(3).exponential(10, 1_200).cumsum()
    flow, path = seen(tmp_path / "a.pcap", times, "pacing"), replace(EMPTY, **changed)
    assert stays_below_bottleneck(flow, path) is is_below
    assert [one.cause for one in limits.doubted(flow, KNOWN, path).limits] == ["unknown" if is_below else "pacing"]


@pytest.mark.parametrize(("counts", "is_below"), [([10] * 50, False), ([10] * 100, True), (np.geomspace(2, 200, 200).astype(int), False)])
def test_bbrs_rate_has_to_stay_for_eight_gain_cycles(counts: Any, is_below: bool, tmp_path: Path) -> None:
    assert stays_below_bottleneck(seen(tmp_path / "a.pcap", spread(counts), "pacing"), EMPTY) is is_below


def test_a_short_round_trip_has_more_gain_cycles_than_a_number_has_room_for(tmp_path: Path) -> None:
    """12 s of 0.1 ms each: numpy warned of an overflow."""
    flow = seen(tmp_path / "a.pcap", spread([10] * 300), "pacing")
    short = replace(flow, facts={**flow.facts, "rtt": {"p50_ms": 0.1}, "echo": None})
    with np.errstate(all="raise", under="ignore"):
        assert stays_below_bottleneck(short, EMPTY)


def test_bbr_is_not_named_where_it_would_have_filled_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Writes at random times were told as BBR's with 0.95."""
    module = sys.modules[classify.__module__]
    monkeypatch.setattr(module, "_answer", lambda *_: KNOWN)
    monkeypatch.setattr(module, "_held", lambda *_: None)
    flow = seen(tmp_path / "a.pcap", 1_000 + np.random.default_rng(3).exponential(10, 1_200).cumsum(), "pacing")
    found = classify(flow, EMPTY)
    assert (found.name, found.reason and found.reason.why) == ("unknown", "below the bottleneck")
    assert classify(flow, replace(EMPTY, queue="self-induced")).name == "bbr"
    monkeypatch.setattr(limits, "probes", lambda _: [10.1])  # such probes are BBR's, whatever else holds it
    assert classify(flow, EMPTY).name == "bbr"


@pytest.mark.parametrize(("times", "is_pace"), [(np.random.default_rng(3).exponential(10, 1_200).cumsum(), False), (np.arange(1_200) * 10.0, True)])
def test_a_pacer_leaves_gaps_as_long_as_the_bytes_before_them(times: Floats, is_pace: bool, tmp_path: Path) -> None:
    """On a path that is not known to be empty writes at random times were told as the pace of a control that is likely BBR."""
    flow = replace(seen(tmp_path / "a.pcap", 1_000 + times, "pacing"), vantage="sender")
    likely = RecognisedControl("unknown", 0.95, {"bbr": 0.95})
    for path in (FittedPath(), FittedPath(rate_mbps=Estimate(1.2, 1.1, 1.3, 9))):
        is_told = is_pace or path.rate_mbps is not None  # behind a bottleneck that is full its queue spaces them
        assert [one.cause for one in limits.doubted(flow, likely, path).limits] == ["pacing" if is_told else "unknown"]


def test_a_pause_of_the_application_is_no_probe_of_bbr() -> None:
    """BBR leaves four packets in flight for 200 ms; where nothing is sent for as long, again and again after ten seconds, a program pauses."""
    t = np.arange(0, 32, 0.001)
    dips = [(t >= at) & (t < at + 0.2) for at in (10.1, 20.3, 30.5)]
    end = observed.SocketAddress("10.0.0.1", 1)
    facts = {"rtt": {"p50_ms": 40.0}, "begins_in_mid_connection": False, "segment_size": 1_448}

    def flow(kept: Any, stride: int = 1) -> ObservedFlow:
        times = (t[kept][::stride] * 1e9).astype(np.uint64)
        segments = {"t": times, "len": np.full(times.size, 1_448, np.uint32)}
        return ObservedFlow(end, end, 1, 0, 32.0, 0.0, "receiver", 1.0, {**facts, "segment_stride": stride}, segments)

    in_dip = np.any(dips, axis=0)
    assert limits.probes(flow(~in_dip)) == []
    for stride in (1, 8):  # of a large capture only each eighth segment is kept
        assert limits.probes(flow(~in_dip | (np.arange(t.size) % 10 == 0), stride)) == pytest.approx([10.1, 20.3, 30.5], abs=0.06)


PATH: dict[str, Any] = {
    "forward": "netem delay 15ms",
    "bottleneck": "tbf rate 8mbit burst 6056 limit 40000",
    "reverse": "netem delay 10ms",
    "flows": [{"cca": "cubic"}],
    "changes": [{"where": "bottleneck", "at": "8s", "set": {"rate": "4mbit"}}],
    "duration": "16s",
}


def test_a_step_of_the_rate_is_the_bottlenecks_where_no_end_holds_the_flow(tmp_path: Path) -> None:
    Model().write_pcap(Scenario.model_validate(PATH), 1, tmp_path / "a.pcapng")
    flow = capture.read(tmp_path / "a.pcapng").flows[0]
    (change,) = fit(flow).changes
    assert change.kind == "rate"
    for ends in ((0.0, 20.0), (0.0, 7.9), (8.1, 20.0)):
        parts = (
            LimitInterval(*ends, "application"),
            *(LimitInterval(*rest, "congestion_window") for rest in ((0.0, 8.0), (8.0, 20.0)) if rest[0] > ends[1]),
        )
        assert fit(replace(flow, limits=parts)).changes == ()


@pytest.mark.parametrize(("known", "rise_ms", "is_told"), [(None, 30.0, True), (8.0, 30.0, True), (20.0, 30.0, False), (None, 1.0, False)])
def test_a_step_of_the_rate_takes_a_queue_and_a_bottleneck_that_is_no_faster(
    known: float | None, rise_ms: float, is_told: bool, tmp_path: Path
) -> None:
    """8 to 4 Mbit/s after 8 s, where the round trips of the second part are longer by so much at times; a packet takes 3 ms there."""
    flow = replace(seen(tmp_path / "a.pcap", spread([6] * 100), "congestion_window"))
    at = np.linspace(0, 16_000, 400)
    rtt = 40.0 + np.where(at > 8_000, np.linspace(0, 1, 400) % 0.1 * 10 * rise_ms, 0.0)
    assert is_of_bottleneck(flow, PathChange(8.0, "rate", 8.0, 4.0), known, [(at, rtt)]) is is_told


def test_data_of_another_connection_that_go_with_the_acknowledgements(tmp_path: Path) -> None:
    """Their queue makes acknowledgements late in order; of a flow whose acknowledgements have a jitter too, its size does not show beside them."""
    flows = [{"cca": "cubic"}, {"cca": "cubic", "direction": "up"}]
    two = PATH | {"reverse": ["netem delay 15ms", "tbf rate 8mbit burst 6056 limit 60000"], "flows": flows, "changes": []}
    Model().write_pcap(Scenario.model_validate(two), 1, tmp_path / "a.pcapng")
    for found in diagnosis.diagnose(capture.read(tmp_path / "a.pcapng"), DiagnosisSettings(replay=None)).flows:
        assert found.path
        assert found.path.jitter_ms is None
        assert found.path.jitter_on is None
    jitter = {"reverse": "netem delay 15ms 3ms distribution normal limit 100000", "bottleneck": "tbf rate 40mbit burst 6056 limit 200000"}
    one = PATH | jitter | {"changes": []}
    Model().write_pcap(Scenario.model_validate(one), 1, tmp_path / "b.pcapng")
    flow = capture.read(tmp_path / "b.pcapng").flows[0]
    alone, beside = fit(flow), fit(replace(flow, others_back=float(flow.facts["acks"])))
    assert alone.jitter_reverse_ms
    assert alone.jitter_reverse_ms.low <= 3 <= alone.jitter_reverse_ms.high
    assert beside.jitter_reverse_ms is None
    assert beside.jitter_on is None
    assert alone.rate_mbps
    assert beside.rate_mbps
    assert beside.rate_mbps.high > alone.rate_mbps.high * 1.02  # this end acknowledges those data through the same bottleneck


def test_segments_that_go_back_count_in_the_time_of_both(tmp_path: Path) -> None:
    flow = seen(tmp_path / "a.pcap", spread([6] * 100), "congestion_window")
    back = replace(flow, source=flow.destination, destination=replace(flow.source, port=1), seconds=flow.seconds / 2)
    assert observed.segments_back(back, flow) == pytest.approx(600, rel=0.02)
    assert observed.segments_back(replace(back, start_s=flow.seconds * 0.75), flow) == pytest.approx(300, rel=0.02)
    for other in (flow, replace(back, destination=flow.source), replace(back, start_s=99.0)):
        assert observed.segments_back(other, flow) == 0.0
    local = replace(flow, destination=replace(flow.destination, address=flow.source.address))
    assert observed.segments_back(local, local) == 0.0, "its own data, though both ends have one address"


def test_the_queue_of_data_that_went_before_may_be_in_every_round_trip(tmp_path: Path) -> None:
    """49.4 [49.3, 49.5] ms were told of 13.4, where another connection kept the way of the acknowledgements full from before the handshake on."""
    Model().write_pcap(Scenario.model_validate(PATH | {"changes": []}), 1, tmp_path / "a.pcapng")
    flow = capture.read(tmp_path / "a.pcapng").flows[0]
    acks = float(flow.facts["acks"])
    beside, behind = (fit(replace(flow, others_back=acks, others_before=is_before)).rtt_ms for is_before in (False, True))
    assert beside
    assert beside.low > 24
    assert behind
    assert behind.low == 0
    back = replace(flow, source=flow.destination, destination=replace(flow.source, port=1))
    late = replace(flow, start_s=0.1)
    for one, other, is_before in ((late, back, True), (flow, replace(back, start_s=0.1), False)):
        seen = observed.Observation("pcap", "a.pcapng", [one, other])
        found = diagnosis.diagnose(seen, DiagnosisSettings(replay=None, most=1)).flows[0].flow
        assert (found.others_load_back, found.others_before) == (True, is_before)


@pytest.mark.parametrize(("apart_ms", "found"), [(40.5, "unknown"), (31.0, "application")])
def test_the_same_bytes_a_round_trip_apart_are_not_surely_written_by_a_clock(apart_ms: float, found: str, tmp_path: Path) -> None:
    """A socket buffer that is sent as a whole each round trip, in a capture without the handshake, was "the sending application, 100 %"."""
    times = np.repeat(1_000 + apart_ms * np.arange(300), 8)
    flow = seen(tmp_path / "a.pcap", times, "application")
    path = replace(EMPTY, rtt_ms=Estimate(TRIP_MS, 39.8, 40.2, 99, "ms"))
    assert bursts.is_clocked(flow, path)
    assert [one.cause for one in limits.doubted(flow, None, path).limits] == [found]
