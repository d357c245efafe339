"""Networks of several links, hosts with access links and data both ways, on every engine that has them: what can be said without a second engine."""

import polars as pl
import pytest

from tcpscape import engines
from tcpscape.engines import Capture
from tcpscape.metrics import queues
from tcpscape.scenario import bottleneck
from tcpscape.scenario.scenario import Scenario

pytestmark = pytest.mark.usefixtures("need_model")
ETHERNET_SHARE = 1448 / 1514
"""Payload of a full segment in its frame, which a rate counts."""


@pytest.fixture(params=["model", pytest.param("virtual", marks=pytest.mark.slow)])
def trial(request):
    engine = engines.REGISTRY[request.param]()
    if reason := engine.unavailable():
        pytest.skip(f"engine {request.param}: {reason}")
    return lambda **fields: engine.run(Scenario.of({"duration": "5s", **fields}), [1])[0]


def test_each_group_measures_its_own_rtt(trial):
    """One flow after the other over an idle path: the smallest RTT is what the links add up to, and two packets' time on the link at most."""
    result = trial(
        forward={"delay": "5ms"}, bottleneck={"rate": "20mbit"}, reverse={"delay": "5ms"}, duration="6s",
        flows=[
            {"rtt": "20ms", "stop": "2s"}, {"rtt": "80ms", "start": "2.5s", "stop": "4s"},
            {"access": {"delay": "7ms"}, "direction": "up", "start": "4.5s"},
        ],
    )  # fmt: skip
    assert [flow.path_rtt_ms for flow in result.flows] == [20, 80, 24]
    for flow in result.flows:
        assert flow.path_rtt_ms <= flow.min_rtt_ms < flow.path_rtt_ms + 1.3, flow


def test_data_up_meet_what_the_acks_of_data_down_meet(trial):
    """5 Mbit/s up and 20 Mbit/s down: each direction carries its own rate at most, and both nearly do."""
    result = trial(
        forward=["netem delay 10ms", {"rate": "20mbit"}], reverse=["netem delay 10ms", {"rate": "5mbit"}], duration="10s",
        flows=[{"cca": "cubic"}, {"cca": "cubic", "direction": "up"}],
    )  # fmt: skip
    down, up = (flow.goodput_mbps for flow in result.flows)
    assert 0.5 * 20 < down < 20 * ETHERNET_SHARE * 1.01
    assert 0.8 * 5 < up < 5 * ETHERNET_SHARE * 1.01


def test_a_flow_over_three_links_meets_the_flows_of_each(trial):
    """A parking lot: no link carries more than its rate, each is full, and the flow that crosses all three gets least."""
    link = {"delay": "5ms", "rate": "20mbit"}
    cross = [{"leave": "r1"}, {"enter": "r1", "leave": "r2"}, {"enter": "r2"}]
    result = trial(links=[link, link, link], flows=[{}, *cross], duration="10s")
    long, *others = (flow.goodput_mbps for flow in result.flows)
    for other in others:
        assert long < other
        assert 0.9 * 20 * ETHERNET_SHARE < long + other < 20 * ETHERNET_SHARE * 1.01


def test_a_queue_names_its_link(trial):
    link = {"delay": "5ms", "rate": "20mbit"}
    result = trial(links=[{"name": "home", **link}, link], flows=[{"access": {"delay": "1ms"}}, {}], duration="1s")
    places = {(queue["link"], queue.get("direction") or queue["where"]) for queue in result.queues}
    both = ("forward", "reverse")
    assert {("chain/0", way) for way in both} | {("chain/1", way) for way in both} | {("near/0", way) for way in both} == places


@pytest.mark.parametrize("name", ["model", pytest.param("virtual", marks=pytest.mark.slow)])
def test_the_queue_of_a_host_that_sends_up_is_sampled_where_it_is_looked_for(name):
    """The way up begins with a queue of the right host's own: samples, reports and the path in words mean the same place."""
    engine = engines.REGISTRY[name]()
    if reason := engine.unavailable():
        pytest.skip(f"engine {name}: {reason}")
    scenario = Scenario.of({
        "forward": "netem delay 10ms", "reverse": [{"rate": "5mbit"}, "netem delay 10ms"], "flows": [{"direction": "up"}], "duration": "2s",
    })  # fmt: skip
    link = bottleneck.find(scenario)
    assert link is not None
    result = engine.run(scenario, [1], capture=Capture(queue_samples_ns=100_000_000))[0]
    rows = result.queue_samples.filter((pl.col("pipe") == link.pipe) & (pl.col("stage") == link.stage))
    assert rows["bytes"].max() > 0
    assert (link.pipe, link.stage, 0) in {place for _, place in queues._placed(result)}
