"""Networks of several links, hosts with access links and data both ways, on every engine that has them: what can be said without a second engine."""

import polars as pl
import pytest

from conftest import need
from tcpscape import engines
from tcpscape.engines import linux, live, plan
from tcpscape.errors import ScenarioError
from tcpscape.metrics import queues
from tcpscape.scenario import bottleneck
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture

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
        forward={"delay": "5ms"},
        bottleneck={"rate": "20mbit"},
        reverse={"delay": "5ms"},
        duration="6s",
        flows=[
            {"rtt": "20ms", "stop": "2s"},
            {"rtt": "80ms", "start": "2.5s", "stop": "4s"},
            {"access": {"delay": "7ms"}, "direction": "up", "start": "4.5s"},
        ],
    )
    assert [flow.path_rtt_ms for flow in result.flows] == [20, 80, 24]
    for flow in result.flows:
        assert flow.path_rtt_ms <= flow.min_rtt_ms < flow.path_rtt_ms + 1.3, flow


def test_data_up_meet_what_the_acks_of_data_down_meet(trial):
    """5 Mbit/s up and 20 Mbit/s down: each direction carries its own rate at most, and both nearly do."""
    result = trial(
        forward=["netem delay 10ms", {"rate": "20mbit"}],
        reverse=["netem delay 10ms", {"rate": "5mbit"}],
        duration="10s",
        flows=[{"cca": "cubic"}, {"cca": "cubic", "direction": "up"}],
    )
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
    scenario = Scenario.of(
        {"forward": "netem delay 10ms", "reverse": [{"rate": "5mbit"}, "netem delay 10ms"], "flows": [{"direction": "up"}], "duration": "2s"}
    )
    link = bottleneck.find(scenario)
    result = engine.run(scenario, [1], capture=Capture(queue_samples_ns=100_000_000))[0]
    rows = result.queue_samples.filter((pl.col("pipe") == link.pipe) & (pl.col("stage") == link.stage))
    assert rows["bytes"].max() > 0
    assert (link.pipe, link.stage, 0) in {place for _, place in queues._placed(result)}


# A chain of links as one path for the emulator, and what the engines with a kernel refuse of networks.


CHAIN = {
    "forward": "netem delay 5ms",
    "bottleneck": {"rate": "20mbit", "buffer": "100kB"},
    "reverse": "netem delay 5ms",
    "links": [{"name": "last", "delay": "4ms", "rate": "10mbit", "buffer": "60kB"}],
    "duration": "1s",
}


def fields(**values):

    return plan.build(Scenario.of({**CHAIN, **values}), {"cubic": (), "reno": ()})


def words(stages):
    return [stage["qdisc"]["kind"] for stage in stages]


def test_links_follow_each_other_there_and_back():
    change = {"where": "last", "at": "500ms", "set": {"rate": "1mbit"}}
    made = plan.flatten(fields(flows=[{"cca": "cubic"}, {"cca": "reno", "direction": "up"}], probes=["ping"], changes=[change]))
    assert words(made["forward"]["stages"]) == ["netem", "tbf", "netem", "tbf"]
    assert words(made["reverse"]["stages"]) == ["netem", "tbf", "netem"]  # the last link's two come first
    assert [c["stage"] for c in made["forward"]["schedule"]] == [3]
    assert "links" not in made
    assert "places" not in made
    assert [(flow.get("place"), flow.get("up", False)) for flow in made["flows"]] == [(None, False), (None, True)]
    assert "place" not in made["probes"][0]


def test_a_plain_plan_stays_as_it_is():
    plain = fields(links=[])
    assert plan.flatten(plain) == plain


@pytest.mark.parametrize(("flow", "field"), [({"rtt": "40ms"}, "access"), ({"access": {"delay": "1ms"}}, "access"), ({"leave": "r1"}, "links")])
def test_what_needs_hosts_of_its_own_is_refused(flow, field):
    with pytest.raises(ScenarioError) as e:
        plan.flatten(fields(flows=[{"cca": "cubic", **flow}]))
    assert str(e.value).startswith(f"{field}: the emulator is one path between two hosts")
    assert str(e.value).endswith("use --engine model or virtual")


def test_results_name_the_links():
    before = fields(flows=[{"cca": "cubic"}])
    queues = [
        {"direction": "reverse", "stage": 1, "depth": 1},
        {"direction": "reverse", "stage": 2, "depth": 0},
        {"direction": "forward", "stage": 3},
    ]
    named = plan.named_queues(before, queues)
    assert [(q["link"], q["stage"]) for q in named] == [("chain/1", 1), ("chain/0", 0), ("chain/1", 1)]
    types = {"pipe": pl.UInt8, "stage": pl.UInt32, "depth": pl.UInt8}
    samples = plan.named_samples(before, pl.DataFrame({"pipe": [1, 1, 2, 2], "stage": [0, 2, 0, 2], "depth": [0, 1, 0, 0]}, schema=types))
    assert samples.rows() == [(1, 0, 0), (3, 0, 1), (4, 0, 0), (2, 0, 0)]
    assert dict(samples.schema) == types


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"links": [{"forward": "jitter delay 10ms 1ms"}]}, "links"),
        ({"flows": [{"cca": "cubic", "access": {"delay": "10ms", "jitter": "2ms", "order": "clamp", "distribution": "normal"}}]}, "access"),
    ],
)
def test_queues_of_links_and_places_are_looked_at(values, field):
    with pytest.raises(ScenarioError, match=f"^{field}: the queue 'jitter'"):
        linux.refuse_modelled(fields(**values))


@pytest.mark.slow
def test_a_chain_on_this_machine():
    engine = live.Live()
    need("live")
    scenario = Scenario.of({**CHAIN, "flows": [{"cca": "cubic"}, {"cca": "reno"}], "probes": ["ping"]})
    trial = engine.run(scenario, [1], capture=Capture(queue_samples_ns=100_000_000))[0]
    assert min(flow.min_rtt_ms for flow in trial.flows) >= 18.0
    assert {q["link"] for q in trial.queues} == {"chain/0", "chain/1"}
    assert set(trial.queue_samples["pipe"]) == {1, 2, 3, 4}
    passed = {(q["link"], q["direction"], q["stage"]): q["bytes_out"] for q in trial.queues if not q["depth"]}
    assert passed["chain/1", "forward", 1] <= 1.05 * 10e6 / 8
    assert trial.probes[0].received
