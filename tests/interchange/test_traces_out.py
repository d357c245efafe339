"""Perfetto's and qlog's files: what Perfetto's own messages decode, what the drafts of qlog name, and the samples behind both."""

import itertools
import json

import pytest

import tcpscape
from conftest import need
from tcpscape import engines, interchange
from tcpscape.interchange import perfetto, qlog
from tcpscape.interchange.base import HEADERS, InterchangeError
from tcpscape.metrics import samples
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture

MS = 1_000_000
PATH = {
    "name": "rough",
    "forward": "netem delay 20ms 4ms loss 0.2%",
    "bottleneck": "tbf rate 20mbit burst 6056 limit 60000",
    "reverse": "netem delay 20ms",
    "duration": "6s",
    "flows": [{"cca": "cubic"}, {"cca": "bbr", "start": "1s"}],
}


@pytest.fixture(scope="module")
def trial():
    """A trial of two flows with everything kept."""
    engine = engines.make("model")
    need("model")
    return engine.run(Scenario.of(PATH), [3], capture=Capture(MS, MS, packets=True))[0]


@pytest.fixture(scope="module")
def trace(trial):
    """The trial's trace, as Perfetto's own messages decode it."""
    messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="the perfetto package is not installed")
    return messages.Trace.FromString(perfetto.write(trial))


def flow_rows(trial, flow):
    return trial.samples.filter(trial.samples["flow"] == flow).sort("t_ns")


# ---- what happened


@pytest.mark.parametrize("flow", [0, 1])
def test_events_are_what_the_trial_counted(trial, flow):
    happened, result = samples.events_of_flow(flow_rows(trial, flow)), trial.flows[flow]
    segments = {kind: sum(e.count for e in happened if e.kind == kind) for kind in samples.COUNTED}
    last = flow_rows(trial, flow).tail(1).to_dicts()[0]
    assert segments["retransmission"] == last["retransmits"] <= result.retransmits
    assert segments["needless"] == last["spurious_retransmits"] <= result.spurious_retransmits
    assert sum(e.kind == "timeout" for e in happened) == result.rtos
    assert sum(e.kind == "undo" for e in happened) <= result.undos
    assert [e.t_ns for e in happened] == sorted(e.t_ns for e in happened)


@pytest.mark.parametrize("flow", [0, 1])
def test_recorded_events_are_all_that_the_trial_counted(flow):
    engine = engines.make("model")
    need("model")
    trial = engine.run(Scenario.of(PATH), [3], capture=Capture(10 * MS, 0, events=True))[0]
    happened, result = samples.events_of_trial(trial, flow), trial.flows[flow]
    count = {kind: sum(e.count for e in happened if e.kind == kind) for kind in samples.RECORDED}
    assert (count["retransmission"], count["needless"], count["timeout"], count["undo"]) == (
        result.retransmits,
        result.spurious_retransmits,
        result.rtos,
        result.undos,
    )
    spans = samples.states_of_trial(trial, flow)
    assert all(a.end_ns == b.begin_ns and a.state != b.state for a, b in itertools.pairwise(spans))
    assert sum(s.state == 3 for s in spans) >= max(1, sum(s.state == 3 for s in samples.states(flow_rows(trial, flow))))


def test_an_undone_reduction_is_seen_once(trial):
    """One reduction after which the threshold rises as the repair ends; the second repair ends with the reduced threshold."""
    import polars as pl

    rows = pl.DataFrame(
        {"t_ns": [0, 1, 2, 3, 4, 5], "ca_state": [0, 3, 0, 3, 3, 0], "ssthresh": [100, 50, 100, 60, 60, 60], "lost": [0, 2, 2, 3, 3, 3]}
    )
    assert [(e.t_ns, e.kind, e.count) for e in samples.events_of_flow(rows)] == [(1, "loss", 2), (2, "undo", 1), (3, "loss", 1)]
    assert [(s.state, s.begin_ns, s.end_ns) for s in samples.states(rows)] == [(0, 0, 1), (3, 1, 2), (0, 2, 3), (3, 3, 5), (0, 5, 5)]


def test_columns_that_were_not_sampled_give_no_events():
    import polars as pl

    assert samples.events_of_flow(pl.DataFrame({"t_ns": [0, 1], "cwnd": [10, 11]})) == []
    assert samples.states(pl.DataFrame({"t_ns": [0, 1]})) == []


# ---- Perfetto


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**32, 2**63 - 1, 2**64 - 1, -1, -(2**63)])
def test_integers_are_encoded_as_the_guide_says(number):
    """Decoded by the guide's own rule: groups of 7 bits, the least significant first."""
    data = perfetto.varint(number)
    assert all(byte & 0x80 for byte in data[:-1])
    assert not data[-1] & 0x80
    assert sum((byte & 0x7F) << 7 * i for i, byte in enumerate(data)) == number % 2**64


def test_the_guides_own_examples():
    assert perfetto.integer(1, 150) == bytes.fromhex("089601")
    assert perfetto.text(2, "testing") == bytes.fromhex("120774657374696e67")
    assert perfetto.message(3, perfetto.integer(1, 150)) == bytes.fromhex("1a03089601")


def test_the_trace_has_nothing_that_perfetto_does_not_know(trace):
    """A field with a wrong number or type would be kept as unknown, and written again behind the others."""
    known = type(trace)()
    known.CopyFrom(trace)
    known.DiscardUnknownFields()
    assert known.SerializeToString() == trace.SerializeToString()
    assert {packet.trusted_packet_sequence_id for packet in trace.packet} == {1}


def test_every_event_is_on_a_track_that_was_described_before(trace):
    described = set()
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in described
            assert not track.parent_uuid or track.parent_uuid in described
            described.add(track.uuid)
        elif packet.HasField("track_event"):
            assert packet.track_event.track_uuid in described
    times = [packet.timestamp for packet in trace.packet if packet.HasField("track_event")]
    assert times == sorted(times)


def counter(trace, process, name):
    """Times and values of a counter, by its process' name and its own."""
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    parent = next(uuid for uuid, t in tracks.items() if t.process.process_name == process)
    track = next(uuid for uuid, t in tracks.items() if t.parent_uuid == parent and t.name == name)
    values = [(p.timestamp, p.track_event.counter_value) for p in trace.packet if p.track_event.track_uuid == track]
    return tracks[track], values


@pytest.mark.parametrize(
    ("name", "column", "factor"), [("congestion window", "cwnd", 1), ("in flight", "in_flight", 1), ("smoothed RTT", "srtt_us", 1000)]
)
def test_a_counter_holds_what_was_sampled(trial, trace, name, column, factor):
    """Between two values of the counter, every sample has the first."""
    track, values = counter(trace, "flow 0: cubic", name)
    assert track.counter.unit_multiplier == factor
    held, at = dict(values), None
    for t_ns, value in flow_rows(trial, 0).select("t_ns", column).iter_rows():
        at = held.get(t_ns, at)
        assert at == value


def test_queues_and_states_are_there(trial, trace):
    track, values = counter(trace, "path", "forward tbf: packets")
    assert track.counter.unit_name == "packets"
    assert max(value for _, value in values) > 10
    slices = [p.track_event for p in trace.packet if p.track_event.type in (1, 2)]
    assert sum(e.type == 1 for e in slices) == sum(e.type == 2 for e in slices) > 0
    names = {e.name for e in slices if e.type == 1}
    assert names <= set(samples.STATES) - {"open"}
    assert "recovery" in names
    instants = [p.track_event for p in trace.packet if p.track_event.type == 3]
    lost = sum(a.int_value for e in instants if e.name == "loss" for a in e.debug_annotations)
    assert lost == sum(e.count for flow in (0, 1) for e in samples.events_of_flow(flow_rows(trial, flow)) if e.kind == "loss")
    about = next({a.name: a.string_value or a.int_value for a in e.debug_annotations} for e in instants if e.name == "trial")
    assert (about["address"], about["seed"], about["cca"]) == (trial.address, 3, "cubic; bbr")


def test_values_that_say_none_are_left_out(trace):
    """BBR never sets the slow-start threshold, cubic does not before its first reduction."""
    assert (
        counter(trace, "flow 1: bbr", "slow-start threshold")[1] == []
        or max(v for _, v in counter(trace, "flow 1: bbr", "slow-start threshold")[1]) < 2**31 - 1
    )
    assert all(v < 2**31 - 1 for _, v in counter(trace, "flow 0: cubic", "slow-start threshold")[1])


# ---- qlog

FIELDS = {
    "recovery:metrics_updated": {
        "min_rtt",
        "smoothed_rtt",
        "latest_rtt",
        "rtt_variance",
        "pto_count",
        "congestion_window",
        "bytes_in_flight",
        "ssthresh",
        "packets_in_flight",
        "pacing_rate",
    },
    "recovery:congestion_state_updated": {"old", "new", "trigger"},
    "recovery:packet_lost": {"header", "frames", "trigger"},
    "transport:packet_sent": {
        "header",
        "frames",
        "is_coalesced",
        "retry_token",
        "stateless_reset_token",
        "supported_versions",
        "raw",
        "datagram_id",
        "trigger",
    },
    "transport:packet_received": {
        "header",
        "frames",
        "is_coalesced",
        "retry_token",
        "stateless_reset_token",
        "supported_versions",
        "raw",
        "datagram_id",
        "trigger",
    },
}
"""The events of draft-ietf-quic-qlog-quic-events-02 that are written, with their fields: sections 5.5 (transport) and 7.2 to 7.4 (recovery)."""
HEADER = {"packet_type", "packet_number", "flags", "token", "length", "version", "scil", "dcil", "scid", "dcid"}
"""`PacketHeader` of the same draft."""


@pytest.fixture(scope="module")
def log(trial):
    return json.loads(qlog.write(trial, 1500))


def test_the_log_has_the_fields_of_the_drafts(log):
    assert (log["qlog_version"], log["qlog_format"]) == ("0.3", "JSON")
    assert set(log) <= {"qlog_version", "qlog_format", "title", "description", "summary", "traces"}
    assert len(log["traces"]) == 2
    for trace in log["traces"]:
        assert set(trace) <= {"title", "description", "configuration", "common_fields", "vantage_point", "events"}
        assert trace["vantage_point"]["type"] in ("client", "server", "network", "unknown")
        assert set(trace["common_fields"]) <= {"time_format", "reference_time", "protocol_type", "group_id"}
        for event in trace["events"]:
            assert set(event) == {"time", "name", "data"}
            assert event["time"] >= 0
            if not event["name"].startswith("tcpscape:"):
                assert set(event["data"]) <= FIELDS[event["name"]], event
            assert set(event["data"].get("header", {})) <= HEADER
        assert {e["name"] for e in trace["events"]} >= FIELDS.keys()


def test_the_log_has_what_was_sampled(trial, log):
    known: dict[str, float] = {}
    at: dict[float, dict[str, float]] = {}
    for event in log["traces"][0]["events"]:
        if event["name"] == "recovery:metrics_updated":
            known |= event["data"]
            at[event["time"]] = dict(known)
    now: dict[str, float] = {}
    for row in flow_rows(trial, 0).iter_rows(named=True):
        now = at.get(row["t_ns"] / MS, now)
        assert now["congestion_window"] == row["cwnd"] * (1500 - HEADERS)
        assert now["smoothed_rtt"] == pytest.approx(row["srtt_us"] / 1000)
        assert now["pacing_rate"] == row["pacing_rate"] * 8


def test_a_control_without_a_threshold_is_not_said_to_be_in_slow_start(log):
    states = [{e["data"]["new"] for e in t["events"] if e["name"] == "recovery:congestion_state_updated"} for t in log["traces"]]
    assert "recovery" in states[0]
    assert states[0] <= {"slow_start", "congestion_avoidance", "recovery"}


@pytest.mark.parametrize("flow", [0, 1])
def test_every_packet_is_acknowledged_or_lost_at_most_once_and_after_it_was_sent(trial, log, flow):
    sent, over, length = set(), set(), 0
    for event in log["traces"][flow]["events"]:
        data = event["data"]
        if event["name"] == "transport:packet_sent":
            sent.add(data["header"]["packet_number"])
            length += data["raw"]["length"]
        elif event["name"] == "recovery:packet_lost":
            assert data["header"]["packet_number"] in sent - over
            over.add(data["header"]["packet_number"])
        elif event["name"] == "transport:packet_received":
            for first, last in data["frames"][0]["acked_ranges"]:
                numbers = set(range(first, last + 1))
                assert numbers <= sent - over
                over |= numbers
    packets = trial.packets.filter((trial.packets["flow"] == flow) & (trial.packets["received"] == 0))
    assert length == packets["len"].sum()
    assert len(sent - over) <= 0.02 * len(sent)


def test_numbers_follow_bytes():
    """Two full segments as one burst; the second is sent again and then acknowledged, the first by a SACK block."""
    import polars as pl

    none = {"sack0_start": 0, "sack0_end": 0, "sack1_start": 0, "sack1_end": 0, "sack2_start": 0, "sack2_end": 0}
    rows = [
        {"t_ns": 0, "received": 0, "seq": 1, "len": 200, "ack": 1, "nsack": 0},
        {"t_ns": 1 * MS, "received": 0, "seq": 101, "len": 100, "ack": 1, "nsack": 0},
        {"t_ns": 2 * MS, "received": 1, "seq": 1, "len": 0, "ack": 1, "nsack": 1, "sack0_start": 1, "sack0_end": 101},
        {"t_ns": 3 * MS, "received": 1, "seq": 1, "len": 0, "ack": 201, "nsack": 0},
    ]
    got = list(qlog.packet_events(pl.DataFrame([none | {"flow": 0} | row for row in rows]), 0, 100))
    assert [(t, name.partition(":")[2], data["header"].get("packet_number")) for t, name, data in got] == [
        (0, "packet_sent", 0),
        (0, "packet_sent", 1),
        (1, "packet_lost", 1),
        (1, "packet_sent", 2),
        (2, "packet_received", None),
        (3, "packet_received", None),
    ]
    assert [data["frames"][0]["acked_ranges"] for _, name, data in got if name.endswith("received")] == [[[0, 0]], [[2, 2]]]


# ---- both


@pytest.mark.parametrize(("name", "suffix"), [("perfetto", "perfetto-trace"), ("qlog", "qlog")])
def test_a_result_directory_is_exported(cli, tmp_path, name, suffix, need_model):
    out = tmp_path / "o"
    assert cli("run", "lossy-dsl", "--duration", "3s", "--cca", "cubic,bbr", "--seeds", "1", "--samples", "10ms", "--out", out).status == 0
    got = cli("export", out, "--to", name, "--out", tmp_path / "files")
    assert (got.status, got.err.count("\n")) == (0, 1)
    assert sorted(f.name for f in (tmp_path / "files").iterdir()) == [f"lossy-dsl-{cca}-seed0.{suffix}" for cca in ("bbr", "cubic")]
    if name == "perfetto":
        messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="the perfetto package is not installed")
        read = messages.Trace.FromString((tmp_path / "files" / f"lossy-dsl-cubic-seed0.{suffix}").read_bytes())
        assert counter(read, "flow 0: cubic", "congestion window")[1]
        assert counter(read, "path", "forward tbf: packets")[1], "queues were kept and belong into the trace"


@pytest.mark.parametrize("name", ["perfetto", "qlog"])
def test_a_trial_without_samples_is_refused(name, need_model):
    bare = tcpscape.run("baseline", seeds=[0], duration="1s").trials[0]
    write = interchange.REGISTRY[name].write_trial
    with pytest.raises(InterchangeError, match=rf"^{name}: [^\n]+; run with --samples"):
        write(bare, 1500)
