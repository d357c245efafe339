"""Probes, requests, pauses and transfers through Python on the model: a scenario's words come back as results with its names and numbers."""

from tcpscape.engines.model import Model
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture, Trial

PATH = {"forward": ["netem delay 20ms"], "reverse": ["netem delay 30ms"], "duration": "10s", "kernel": "6.1,host_time=0"}


def trial(capture: Capture = Capture(), **fields: object) -> Trial:
    return Model().run(Scenario.model_validate({**PATH, **fields}), [1], capture=capture)[0]


def test_probes_measure_each_way():
    """Both hosts ask for their neighbour's address at once, and learn it from the other one's question: after 30 ms on the left, 20 ms on the right. 10 s are
    500 packets of the call, of which the last one comes as the trial ends, and 50 echoes."""
    voice, ping, up = trial(probes=["voice", "ping", {"preset": "voice", "name": "back", "direction": "up"}]).probes
    assert (voice.name, voice.sent, voice.received, voice.delay_ms.min, voice.delay_ms.max) == ("voice", 500, 499, 20.0, 50.0)
    assert (ping.sent, ping.received, ping.delay_ms.min, ping.path_rtt_ms) == (50, 50, 50.0, 50.0)
    assert (up.name, up.direction, up.received, up.delay_ms.min, up.delay_ms.max) == ("back", "up", 499, 30.0, 50.0)


def test_delays_are_sampled_where_flows_are():
    frame = trial(Capture(samples_ns=1_000_000_000), probes=["ping"]).probe_samples
    assert (frame.columns, len(frame)) == (["t_ns", "probe", "delay_ns"], 50)
    assert frame.row(1) == (200_000_000, 0, 50_000_000)
    assert trial(probes=["ping"]).probe_samples is None


def test_requests_and_pauses_come_back():
    """A request each 200 ms since 0 s, 50 in 10 s; the flow that pauses writes 100 kB/s for the first second of each 4 s: at 0, 4 and 8 s."""
    apps = [{"response": 1000, "every": "200ms"}, {"chunk": 1000, "on": "1s", "off": "3s", "rate": "800kbit"}]
    asked, paused = trial(flows=[{"cca": "reno", "app": app} for app in apps]).flows
    assert (asked.responses.count, asked.bytes_received, asked.group) == (50, 50_000, 0)
    assert 50 <= asked.responses.time_ms.p50 < 51
    assert 290_000 <= paused.bytes_received <= 301_000


def test_transfers_are_the_same_for_a_seed():
    first, again = (trial(transfers=[{"rate": "20/s", "size": "30kB"}]) for _ in range(2))
    assert (first.hash, first.transfers) == (again.hash, again.transfers)
    (web,) = first.transfers
    started = sum(size.started for size in web.classes)
    assert 130 < started < 270, "200 expected, with a standard deviation of 14"
    assert sum(size.completed for size in web.classes) > started * 0.9
