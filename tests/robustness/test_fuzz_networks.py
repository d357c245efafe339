"""Laws that hold for every network: nothing is missing in a queue, the same seed gives the same bytes, what is written is read back as it was."""

import json
import math

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings

import tcpscape
from robustness import good
from tcpscape import engines, metrics
from tcpscape.report.diagram import PathView
from tcpscape.scenario import bottleneck, files, limits, network, path, summary
from tcpscape.scenario.scenario import Scenario
from tcpscape.words import campaign as answer

QUICK = settings(
    max_examples=25, derandomize=True, phases=(Phase.generate, Phase.shrink), deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
MODEL = pytest.mark.usefixtures("need_model")


def trial(scenario, seed=0):
    return engines.make("model").run(scenario, [seed])[0]


@QUICK
@given(good.networks())
def test_a_network_is_read_back_as_it_was_written(scenario):
    again = Scenario.of(yaml.safe_load(files.dump(scenario)), "again")
    assert again == scenario
    assert again.address() == scenario.address()
    assert files.dump(again) == files.dump(scenario)


@MODEL
@QUICK
@given(good.networks())
def test_a_network_has_words_a_diagram_and_ways(scenario):
    assert summary.in_words(scenario)
    assert PathView.of("", [scenario]).wide
    list(limits.caveats(scenario))
    for end in scenario.endpoints:
        data, acks = network.way(scenario, end)
        assert scenario.rtt_of(end) == sum(path.delay_ns(hop) for hop in (*data, *acks))
        assert end.rtt is None or scenario.rtt_of(end) == end.rtt
        lowest = bottleneck.of_flow(scenario, end)
        assert lowest is None or lowest.rate_bps > 0


@MODEL
@QUICK
@given(good.networks())
def test_results_of_a_network_obey_the_laws_of_every_trial(scenario):
    """The model's own accounts are checked in its debug build; here: the same bytes for a seed, no infinite value, RTTs not below the way's."""
    first, second = (trial(scenario) for _ in range(2))
    assert json.dumps(first.to_dict(), allow_nan=False) == json.dumps(second.to_dict(), allow_nan=False)
    for name, metric in metrics.REGISTRY.items():
        assert not math.isinf(metric.of(first)), name
    ends = [flow for flow in scenario.flows for _ in range(flow.count)]
    assert [flow.direction for flow in first.flows] == [end.direction for end in ends]
    for flow, end in zip(first.flows, ends, strict=True):
        data, acks = network.way(scenario, end)
        if flow.rtt_ms.min is not None and not any(getattr(hop, "jitter", 0) for hop in (*data, *acks)):
            assert flow.rtt_ms.min >= scenario.rtt_of(end) / 1e6 - 0.01


@MODEL
@settings(QUICK, max_examples=5)
@given(good.networks())
def test_a_run_of_a_network_has_an_answer(scenario):
    assert answer.run_screen(tcpscape.run(scenario, seeds=2)).text(80)
