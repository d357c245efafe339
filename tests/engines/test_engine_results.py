"""The rows of an engine as results with a scenario's names."""

from __future__ import annotations

from tcpscape.engines.results import flow_results, probe_results, transfers_results
from tcpscape.scenario.scenario import Scenario

TIMES = {"min": 20.0, "p50": 21.0, "p95": 30.0, "p99": 31.0, "max": 32.0, "mean": 22.0}
NONE = dict.fromkeys(TIMES)


def scenario(**more: object) -> Scenario:
    """40 ms, two groups of flows; the second one sends upwards."""
    flows = [{"cca": "cubic", "count": 2}, {"cca": "bbr", "direction": "up"}]
    return Scenario.model_validate({"forward": ["netem delay 20ms"], "reverse": ["netem delay 20ms"], "flows": flows, **more})


def test_flows_know_their_group_and_direction() -> None:
    flows = flow_results(scenario(), [{"goodput_mbps": g, "seconds": 1.0, "retransmits": 0, "spurious_retransmits": 0} for g in (1.0, 2.0, 3.0)])
    assert [(f.cca, f.group, f.direction, f.goodput_mbps, f.path_rtt_ms) for f in flows] == [
        ("cubic", 0, "down", 1.0, None),
        ("cubic", 0, "down", 2.0, None),
        ("bbr", 1, "up", 3.0, None),
    ]


def test_answers_to_requests_are_read() -> None:
    row = {"goodput_mbps": 1.0, "seconds": 1.0, "retransmits": 0, "spurious_retransmits": 0}
    first, *_ = flow_results(scenario(), [row | {"responses": {"count": 3, "time_ms": TIMES}}, row, row])
    assert first.responses
    assert (first.responses.count, first.responses.time_ms.p95) == (3, 30.0)


def test_probes_have_their_names() -> None:
    heard = {"sent": 50, "received": 25, "due": 48, "lost": 24, "delay_ms": TIMES, "jitter_ms": 0.5, "reordered": 1}
    rows = [heard, heard | {"received": 0, "due": 50, "lost": 50, "delay_ms": NONE, "jitter_ms": 0.0}]
    voice, ping = probe_results(scenario(probes=["voice", {"preset": "ping", "direction": "up"}]), rows)
    assert (voice.name, voice.kind, voice.loss, voice.jitter_ms, voice.delay_ms.max, voice.path_rtt_ms) == ("voice", "udp", 0.5, 0.5, 32.0, 40.0)
    assert (ping.name, ping.direction, ping.jitter_ms, ping.delay_ms.p50, ping.loss) == ("ping-up", "up", None, None, 1.0)


def test_transfers_come_by_size() -> None:
    classes = [{"most": 10_000, "started": 5, "completed": 4, "completion_ms": TIMES}]
    (web,) = transfers_results(scenario(transfers=[{"rate": "20/s"}]), [{"classes": classes, "bytes_received": 9, "retransmits": 1}])
    assert (web.cca, web.bytes_received, web.classes[0].completed, web.classes[0].completion_ms.p50) == ("cubic", 9, 4, 21.0)
