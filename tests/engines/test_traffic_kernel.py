"""Probes, requests, pauses and transfers on real sockets: closed forms on an idle path, and the same as the model's on the virtual engine."""

import re

import pytest

from conftest import need
from tcpscape import engines
from tcpscape.errors import TcpscapeError
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture

CLEAN = {"name": "x", "duration": "4s", "forward": "netem delay 25ms", "reverse": "netem delay 25ms", "kernel": "6.1,host_time=0"}
SHORT = {"cca": "cubic", "app": {"size": "1kB"}}
CLOCK_MS = 0.01
"""What readings of the clock and rounding to µs add in virtual time at most, ms."""
LOST = 2**64 - 1

pytestmark = pytest.mark.usefixtures("need_model")


def trial(engine, fields, capture=Capture(), seed=1):
    return engines.make(engine).run(Scenario.model_validate({**CLEAN, **fields}), [seed], capture=capture)[0]


def both(fields):
    return trial("model", fields), trial("virtual", fields)


PROBES = [
    {"preset": preset, "name": f"{preset} {way}", "direction": way, "interval": "20ms", "start": "1s", "stop": "3s"}
    for preset in ("voice", "ping", "udp_ping")
    for way in ("down", "up")
]


def test_a_probe_on_an_idle_path_takes_its_delay_and_nothing_else(need_virtual):
    for t in both({"flows": [SHORT], "probes": PROBES}):
        for probe in t.probes:
            delay = 25 if probe.kind == "udp" else 50
            assert (probe.sent, probe.received, probe.reordered, probe.loss) == (100, 100, 0, 0)
            assert probe.delay_ms.min == pytest.approx(delay, abs=CLOCK_MS)
            assert probe.delay_ms.max == pytest.approx(delay, abs=CLOCK_MS)
            assert probe.jitter_ms == pytest.approx(0, abs=CLOCK_MS)


def test_what_is_under_way_at_the_end_is_not_lost(need_virtual):
    """Of 200 packets in 4 s the 20 of the last 400 ms cannot come; of a path that loses everything from 3 s on, all that had the time are lost."""
    far = {"forward": "netem delay 400ms", "flows": [SHORT], "probes": [{"preset": "voice", "start": "0s", "interval": "20ms"}]}
    for t in both(far):
        probe = t.probes[0]
        # the first waits for a neighbour's address: the longest delay is 425 + 400 ms, and 159 packets are sent before 4 s − 825 ms
        assert (probe.sent, probe.received, probe.due, probe.lost) == (200, 180, 159, 0)
    for t in both({**far, "forward": "netem delay 25ms", "changes": [{"at": "3s", "where": "forward", "set": {"loss": "100%"}}]}):
        probe = t.probes[0]
        assert probe.sent == 200
        assert 45 <= probe.lost <= 50
        assert probe.loss == probe.lost / probe.due


def test_a_probes_packets_have_the_size_of_their_protocol(need_virtual):
    """At 1 Mbit/s, 8 µs a byte: 172 bytes behind 42 of UDP, IPv4 and Ethernet are 1.712 ms, 56 and 32 behind as many 0.784 and 0.592 ms."""
    downs = [probe for probe in PROBES if probe["direction"] == "down"]
    probes = [{**probe, "start": f"{1000 + 5 * k}ms"} for k, probe in enumerate(downs)]
    for t in both({"forward": "netem delay 25ms rate 1mbit", "flows": [SHORT], "probes": probes}):
        delays = [(probe.delay_ms.min, probe.delay_ms.max) for probe in t.probes]
        for least_and_most, expected in zip(delays, (25 + 1.712, 50 + 0.784, 50 + 0.592), strict=True):
            assert least_and_most == pytest.approx((expected, expected), abs=CLOCK_MS)


def test_each_packet_is_in_the_table_and_a_lost_one_is_marked(need_virtual):
    lossy = {"forward": "netem delay 25ms loss 20%", "flows": [SHORT], "probes": [PROBES[0]]}
    t = trial("virtual", lossy, Capture(samples_ns=100_000_000))
    frame = t.probe_samples
    assert frame.columns == ["t_ns", "probe", "delay_ns"]
    sent, delays = frame["t_ns"].to_list(), frame["delay_ns"].to_list()
    assert len(sent) == t.probes[0].sent == 100
    # each at its time: a few readings of the clock of virtual time, which take 256 ns each, are all that is between
    assert all(0 <= at - (1_000_000_000 + 20_000_000 * k) < 10_000 for k, at in enumerate(sent))
    arrived = [delay for delay in delays if delay != LOST]
    assert len(arrived) == t.probes[0].received < 100
    assert min(arrived) / 1e6 == pytest.approx(25, abs=CLOCK_MS)


@pytest.mark.parametrize("app", [{"response": "100kB", "think": "50ms"}, {"response": "100kB", "every": "200ms"}])
def test_requests_take_as_long_as_the_models(need_virtual, app):
    fields = {"bottleneck": "tbf rate 20mbit burst 10kb limit 200kb", "flows": [{"cca": "cubic", "app": app}]}
    model, kernel = (t.flows[0].responses for t in both(fields))
    assert model.count == kernel.count
    for quantile in ("min", "p50", "max"):
        assert getattr(kernel.time_ms, quantile) == pytest.approx(getattr(model.time_ms, quantile), abs=CLOCK_MS)


def test_a_writer_with_pauses_writes_in_its_turns(need_virtual):
    """5 Mbit/s for 300 ms of each 500 ms: 3 Mbit/s, less the RTT of the handshake."""
    turns = {"on": "300ms", "off": "200ms", "rate": "5mbit", "chunk": 1000}
    model, kernel = (t.flows[0] for t in both({"flows": [{"cca": "cubic", "app": turns}]}))
    assert abs(model.bytes_sent - kernel.bytes_sent) <= 8 * turns["chunk"], "one chunk in each of eight turns"
    assert kernel.goodput_mbps == pytest.approx(3, rel=0.03)


def test_transfers_are_those_of_the_model_and_take_as_long(need_virtual):
    """Ten a second on 100 Mbit/s meet no queue but their own."""
    fields = {
        "bottleneck": "tbf rate 100mbit burst 10kb limit 2mb",
        "flows": [SHORT],
        "transfers": [{"cca": "cubic", "rate": "20/s", "size": "30kB", "stop": "3s", "direction": way} for way in ("down", "up")],
    }
    model, kernel = both(fields)
    for a, b in zip(model.transfers, kernel.transfers, strict=True):
        assert [(c.most, c.started, c.completed) for c in a.classes] == [(c.most, c.started, c.completed) for c in b.classes]
        assert sum(c.started for c in a.classes) > 20
        assert a.bytes_received == b.bytes_received
        for x, y in zip(a.classes, b.classes, strict=True):
            if x.completed:
                assert y.completion_ms.p50 == pytest.approx(x.completion_ms.p50, rel=0.01)
                assert y.completion_ms.min == pytest.approx(x.completion_ms.min, rel=0.001)


def test_the_same_trial_has_the_same_hash(need_virtual):
    busy = {"flows": [SHORT], "probes": PROBES, "transfers": [{"cca": "cubic", "rate": "20/s", "size": "30kB"}]}
    first, second = trial("virtual", busy), trial("virtual", busy)
    assert (first.hash, first.probes, first.transfers) == (second.hash, second.probes, second.transfers)


@pytest.mark.parametrize("engine", ["virtual", "live"])
def test_a_control_of_transfers_that_the_kernel_lacks_is_refused_by_name(engine):
    need(engine)
    made = engines.make(engine)
    with pytest.raises(TcpscapeError, match="^" + re.escape("transfers.cca: 'copa'")):
        made.check(Scenario.model_validate({**CLEAN, "flows": [SHORT], "transfers": [{"cca": "copa", "rate": "1/s"}]}))


def test_the_live_engine_measures_this_machines_path():
    """In real time a packet takes no less than the path's delay; how much more is the machine's affair, which the trial's caveats tell."""
    need("live")
    app = {"response": "20kB", "every": "100ms"}
    fields = {
        "duration": "2s",
        "flows": [SHORT, {"cca": "cubic", "app": app}],
        "probes": [{**p, "start": "500ms", "stop": "1s"} for p in PROBES],
        "transfers": [{"cca": "cubic", "rate": "20/s", "size": "10kB", "stop": "1s"}],
    }
    t = trial("live", fields)
    for probe in t.probes:
        assert probe.sent == 25
        assert 0 < probe.received <= 25
        assert probe.delay_ms.min >= (25 if probe.kind == "udp" else 50)
    assert 1 <= t.flows[1].responses.count <= 20
    assert t.flows[1].responses.time_ms.min >= 50
    drawn = trial("model", fields).transfers[0]
    assert [c.started for c in t.transfers[0].classes] == [c.started for c in drawn.classes]


def test_large_buffers_have_the_memory_that_a_server_gives_them(need_virtual):
    """A window of 7.7 MB and the queue behind it: the guest's own sixteenth of memory for TCP, 32 MB, would shrink both buffers."""
    large = "6.1,host_time=0,tcp_rmem_max=64MiB,tcp_wmem_max=64MiB"
    far = {"forward": "netem delay 130ms", "bottleneck": "tbf rate 119mbit burst 15140 limit 7735000", "reverse": "netem delay 130ms"}
    model, kernel = both({**far, "duration": "15s", "kernel": large, "flows": [{"cca": "cubic"}]})
    assert model.goodput_mbps > 90
    assert kernel.goodput_mbps == pytest.approx(model.goodput_mbps, rel=0.01)
