"""A chain of links as one path for the emulator, and what the engines with a kernel refuse of networks."""

import polars as pl
import pytest

from tcpscape.engines import Capture, flat, linux, live, plan
from tcpscape.errors import ScenarioError
from tcpscape.scenario.scenario import Scenario

pytestmark = pytest.mark.usefixtures("need_model")
CHAIN = {
    "forward": "netem delay 5ms", "bottleneck": {"rate": "20mbit", "buffer": "100kB"}, "reverse": "netem delay 5ms",
    "links": [{"name": "last", "delay": "4ms", "rate": "10mbit", "buffer": "60kB"}], "duration": "1s",
}  # fmt: skip


def fields(**values):
    """A plan before it is checked."""
    from tcpscape.engines.model import core

    return plan.build(Scenario.of({**CHAIN, **values}), core().parse_tc, {"cubic": (), "reno": ()})


def words(stages):
    return [stage["qdisc"]["kind"] for stage in stages]


def test_links_follow_each_other_there_and_back():
    change = {"where": "last", "at": "500ms", "set": {"rate": "1mbit"}}
    made = flat.flatten(fields(flows=[{"cca": "cubic"}, {"cca": "reno", "direction": "up"}], probes=["ping"], changes=[change]))
    assert words(made["forward"]["stages"]) == ["netem", "tbf", "netem", "tbf"]
    assert words(made["reverse"]["stages"]) == ["netem", "tbf", "netem"]  # the last link's two come first
    assert [c["stage"] for c in made["forward"]["schedule"]] == [3]
    assert "links" not in made
    assert "places" not in made
    assert [(flow.get("place"), flow.get("up", False)) for flow in made["flows"]] == [(None, False), (None, True)]
    assert "place" not in made["probes"][0]


def test_a_plain_plan_stays_as_it_is():
    plain = fields(links=[])
    assert flat.flatten(plain) == plain


@pytest.mark.parametrize(("flow", "field"), [({"rtt": "40ms"}, "access"), ({"access": {"delay": "1ms"}}, "access"), ({"leave": "r1"}, "links")])
def test_what_needs_hosts_of_its_own_is_refused(flow, field):
    with pytest.raises(ScenarioError) as e:
        flat.flatten(fields(flows=[{"cca": "cubic", **flow}]))
    assert str(e.value).startswith(f"{field}: the emulator is one path between two hosts")
    assert str(e.value).endswith("use --engine model or virtual")


def test_results_name_the_links():
    before = fields(flows=[{"cca": "cubic"}])
    queues = [
        {"direction": "reverse", "stage": 1, "depth": 1},
        {"direction": "reverse", "stage": 2, "depth": 0},
        {"direction": "forward", "stage": 3},
    ]
    named = flat.named_queues(before, queues)
    assert [(q["link"], q["stage"]) for q in named] == [("chain/1", 1), ("chain/0", 0), ("chain/1", 1)]
    types = {"pipe": pl.UInt8, "stage": pl.UInt32, "depth": pl.UInt8}
    samples = flat.named_samples(before, pl.DataFrame({"pipe": [1, 1, 2, 2], "stage": [0, 2, 0, 2], "depth": [0, 1, 0, 0]}, schema=types))
    assert samples.rows() == [(1, 0, 0), (3, 0, 1), (4, 0, 0), (2, 0, 0)]
    assert dict(samples.schema) == types


@pytest.mark.parametrize(("values", "field"), [
    ({"links": [{"forward": "jitter delay 10ms 1ms"}]}, "links"),
    ({"flows": [{"cca": "cubic", "access": {"delay": "10ms", "jitter": "2ms", "order": "clamp", "distribution": "normal"}}]}, "access"),
])  # fmt: skip
def test_queues_of_links_and_places_are_looked_at(values, field):
    with pytest.raises(ScenarioError, match=f"^{field}: the queue 'jitter'"):
        linux.refuse_queues(fields(**values))


@pytest.mark.slow
def test_a_chain_on_this_machine():
    engine = live.Live()
    if reason := engine.unavailable():
        pytest.skip(f"engine live: {reason}")
    scenario = Scenario.of({**CHAIN, "flows": [{"cca": "cubic"}, {"cca": "reno"}], "probes": ["ping"]})
    trial = engine.run(scenario, [1], capture=Capture(queue_samples_ns=100_000_000))[0]
    assert min(flow.min_rtt_ms for flow in trial.flows) >= 18.0
    assert {q["link"] for q in trial.queues} == {"chain/0", "chain/1"}
    assert set(trial.queue_samples["pipe"]) == {1, 2, 3, 4}
    passed = {(q["link"], q["direction"], q["stage"]): q["bytes_out"] for q in trial.queues if not q["depth"]}
    assert passed["chain/1", "forward", 1] <= 1.05 * 10e6 / 8
    assert trial.probes[0].received
