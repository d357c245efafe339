"""The time of a packet between the wire and TCP (docs/models/tcp/hosts.md)."""

import pytest

from tcpscape import engines
from tcpscape.scenario import limits
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture


def test_a_hosts_time_is_in_every_round_trip_and_every_probe():
    """Data and ACK arrive at a host each: 2 × 500 µs more; a packet of a probe one way arrives once."""
    fields = {
        "name": "x",
        "duration": "1s",
        "forward": "netem delay 5ms",
        "reverse": "netem delay 5ms",
        "flows": [{"cca": "cubic", "app": {"rate": "1mbit"}}],
        "probes": ["voice", "ping"],
    }
    without, own, half = (
        engines.make("model").run(Scenario.of({**fields, **more}), [1])[0]
        for more in ({"kernel": "6.1,host_time=0"}, {}, {"kernel": {"profile": "6.1", "host_time": "500us"}})
    )
    assert own.flows[0].rtt_ms.min == pytest.approx(without.flows[0].rtt_ms.min + 0.03, abs=0.001)
    assert half.flows[0].rtt_ms.min == pytest.approx(without.flows[0].rtt_ms.min + 1, abs=0.001)
    assert [round(b.delay_ms.min - a.delay_ms.min, 3) for a, b in zip(without.probes, half.probes, strict=True)] == [0.5, 1.0]


def test_the_reordering_window_closes_where_hosts_take_time():
    """Packets that pass without delay show an RTT of 0, which counts as a tick; with a host's time they show twice that, and CUBIC recovers more often."""
    path = {"at": "router", "delay": "6.5ms", "jitter": "3.5ms", "loss": "0.15%"}
    fields = {
        "name": "x",
        "duration": "10s",
        "forward": path,
        "reverse": path,
        "flows": [{"cca": "cubic", "app": {"rate": "5MiB/s"}, "rcvbuf": "256KiB"}],
    }
    model = engines.make("model")
    goodputs = [
        sum(t.goodput_mbps for t in model.run(Scenario.of({**fields, "kernel": f"6.12,rmem_max=4MiB,host_time={time}"}), range(6), threads=2))
        for time in ("0", "20us")
    ]
    assert goodputs[1] < 0.9 * goodputs[0]


@pytest.mark.parametrize(
    ("delay", "kernel", "said"), [("100us", "6.1", True), ("290us", "6.1", True), ("310us", "6.1", False), ("50us", "6.1,host_time=0", False)]
)
def test_a_large_part_of_a_short_path_is_a_caveat(delay, kernel, said):
    caveats = [*limits.caveats(Scenario.of({"forward": f"netem delay {delay}", "reverse": f"netem delay {delay}", "kernel": kernel}))]
    assert [c.startswith("hosts add 30us to each RTT of ") and c.endswith("--kernel 6.1,host_time=0") for c in caveats if "RTT" in c] == [True] * said


def test_the_kernel_in_virtual_time_has_the_same_time_and_hides_its_queues(need_virtual):
    fields = {
        "forward": "netem delay 5ms",
        "reverse": "netem delay 5ms",
        "flows": [{"cca": "cubic", "app": {"rate": "1mbit"}}],
        "probes": ["ping"],
        "duration": "2s",
    }
    without, half = (
        engines.make("virtual").run(Scenario.of({**fields, "kernel": f"6.1,host_time={time}"}), [1], capture=Capture(10**8, 10**8))[0]
        for time in ("0", "500us")
    )
    assert half.probes[0].delay_ms.min - without.probes[0].delay_ms.min == pytest.approx(1, abs=0.01)
    assert [(q["where"], q["stage"]) for q in half.queues] == [(q["where"], q["stage"]) for q in without.queues]
    stages = [t.queue_samples.select("pipe", "stage").unique().sort("pipe", "stage").rows() for t in (without, half)]
    assert stages[0] == stages[1]


def test_the_hosts_of_a_network_in_the_kernel_take_it_too(need_virtual):
    """Hosts with and without an access link; a packet of a call one way arrives at one host, each RTT has two arrivals."""
    flows = [{"app": {"rate": "1mbit"}}, {"direction": "up", "access": {"delay": "3ms"}, "app": {"rate": "1mbit"}}]
    fields = {
        "forward": "netem delay 5ms",
        "reverse": "netem delay 5ms",
        "links": ["delay 5ms"],
        "flows": flows,
        "probes": ["voice"],
        "duration": "2s",
    }
    without, half = (
        engines.make("virtual").run(Scenario.of({**fields, "kernel": f"6.1,host_time={time}"}), [1], capture=Capture(10**8, 10**8))[0]
        for time in ("0", "500us")
    )
    assert [b.min_rtt_ms - a.min_rtt_ms for a, b in zip(without.flows, half.flows, strict=True)] == pytest.approx([1, 1], abs=0.01)
    assert half.probes[0].delay_ms.min - without.probes[0].delay_ms.min == pytest.approx(0.5, abs=0.01)
    assert [(q["link"], q["where"], q["stage"]) for q in half.queues] == [(q["link"], q["where"], q["stage"]) for q in without.queues]
    stages = [t.queue_samples.select("pipe", "stage").unique().sort("pipe", "stage").rows() for t in (without, half)]
    assert stages[0] == stages[1]
