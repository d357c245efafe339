"""Laws that hold for every good path and network: nothing is missing, no link carries more than its rate, what is written is read back as it was."""

import json
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tcpscape
from robustness import good, values
from tcpscape import _core, engines, metrics
from tcpscape.campaign import record
from tcpscape.errors import TcpscapeError
from tcpscape.interchange import sources
from tcpscape.report.diagram import PathView
from tcpscape.scenario import bottleneck, files, limits, path
from tcpscape.scenario.words import describe
from tcpscape.words import campaign as answer
from tcpscape.words import paths

PHASES = (Phase.generate, Phase.shrink)
QUICK = settings(max_examples=15, derandomize=True, phases=PHASES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
MODEL = pytest.mark.usefixtures("need_model")


def trial(scenario, seed=0):
    return engines.make("model").run(scenario, [seed])[0]


def balance(queue, children):
    """Packets that came, and what became of them; a child's drops are reported by the child."""
    lost = sum(sum(q["drops"].values()) for q in (queue, *children))
    return queue["packets_in"] + queue["duplicated"], queue["packets_out"] + queue["backlog_packets"] + lost


@MODEL
@QUICK
@given(good.scenarios())
def test_no_packet_is_missing_in_a_queue(scenario):
    queues = trial(scenario).queues
    for i, queue in enumerate(queues):
        if queue["depth"] == 0 and not queue["segmented"]:
            children = []
            for other in queues[i + 1 :]:
                if other["depth"] == 0:
                    break
                children.append(other)
            if not any(child["segmented"] or child["duplicated"] for child in children):
                came, went = balance(queue, children)
                assert came == went, (queue["name"], came, went)


@MODEL
@QUICK
@given(good.scenarios())
def test_what_arrives_left_the_bottleneck_and_goodput_above_its_rate_is_explained(scenario):
    if scenario.changes:
        return
    result = trial(scenario)
    link = next(queue for queue in result.queues if queue["name"] == "tbf" and queue["direction"] == "forward")
    assert sum(flow.bytes_received for flow in result.flows) <= link["bytes_out"]
    rate = next(q.rate_bps for queues in scenario.queues("bottleneck") for q in queues if q.rate_bps) / 1e6
    above = any(flow.goodput_mbps > rate for flow in result.flows) or result.goodput_mbps > rate
    assert above == any("the link's" in caveat for caveat in result.caveats)


@MODEL
@QUICK
@given(good.scenarios(), st.integers(0, 2**62))
def test_the_same_seed_gives_the_same_bytes(scenario, seed):
    first, second = (json.dumps(trial(scenario, seed).to_dict()) for _ in range(2))
    assert first == second


@QUICK
@given(st.one_of(good.scenarios(), good.networks()))
def test_a_scenario_is_read_back_as_it_was_written(scenario):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "drawn.yaml")
        file.write_text(files.dump(scenario))
        again = files.load(file)
    assert (again, again.address()) == (scenario, scenario.address())
    assert files.dump(again) == files.dump(scenario)


@settings(QUICK, max_examples=200)
@given(values.tc_words())
def test_words_mean_the_same_after_they_were_printed(words):
    try:
        described = describe(words)
    except TcpscapeError:
        return
    printed = _core.to_tc(_core.parse_tc(words))
    assert describe(printed) == described
    assert _core.to_tc(_core.parse_tc(printed)) == printed


SHARES = st.sampled_from(["0%", "0.125%", "1%", "10%", "30%"])
NETEMS = st.builds(
    path.Netem,
    delay=st.sampled_from(["1ms", "25.000001ms"]),
    jitter=st.sampled_from(["0s", "8.5ms"]),
    order=st.sampled_from(path.ORDERS),
    floor=st.sampled_from(["0s", "0.5ms"]),
    rate=st.sampled_from([None, "10mbit"]),
    loss_burst=st.sampled_from([1, 2]),
    **dict.fromkeys(("loss", "duplicate", "corrupt", "correlation"), SHARES),
)


@settings(QUICK, max_examples=200)
@given(NETEMS)
def test_fields_are_the_same_queues_as_their_words(netem):
    assert [_core.to_tc(json.dumps(queue)) for queue in netem.plan()] == [_core.to_tc(_core.parse_tc(text)) for text in netem.words()]


@MODEL
@QUICK
@given(good.scenarios())
def test_metrics_are_finite_or_not_known(scenario):
    result = trial(scenario)
    for name, metric in metrics.REGISTRY.items():
        value = metric.of(result)
        assert not math.isinf(value), name
    json.dumps(result.to_dict(), allow_nan=False)


@MODEL
@settings(QUICK, max_examples=4)
@given(good.scenarios())
def test_exported_trials_are_read_back(scenario):
    with tempfile.TemporaryDirectory() as folder:
        outcome = tcpscape.run(scenario, seeds=[0], samples="50ms", out=Path(folder, "kept"))
        (kept,) = outcome.trials
        for name, ending in (("csv", ".csv"), ("parquet", ".parquet"), ("iperf3", ".json")):
            target = Path(folder, f"x{ending}")
            status = _call(["export", str(Path(folder, "kept")), "--to", name, "--out", str(target)])
            assert status == 0, name
            (back,) = (item.trial for item in sources.load(target).items)
            assert [f.cca for f in back.flows] == [f.cca for f in kept.flows]
            assert [f.retransmits for f in back.flows] == [f.retransmits for f in kept.flows]
            assert [f.goodput_mbps for f in back.flows] == pytest.approx([f.goodput_mbps for f in kept.flows], rel=1e-3)
        assert [t.to_dict() for t in record.load(Path(folder, "kept")).outcomes[0].trials] == [t.to_dict() for t in outcome.trials]


def _call(words):
    from tcpscape.cli.main import call

    return call(words)


@MODEL
@settings(QUICK, max_examples=8)
@given(st.one_of(good.scenarios(), good.networks()), st.integers(40, 200))
def test_a_screen_fits_whatever_ran(scenario, width):
    text = answer.run_screen(tcpscape.run(scenario, seeds=2)).text(width)
    too_wide = [
        line for line in text.splitlines() if len(line) > width and not line.startswith("Next: ") and max(map(len, line.split())) < width - 10
    ]
    assert not too_wide


def way(scenario, end):
    """The hops that the data of an end meet, and those that the ACKs meet, in order; an own RTT's delays among them."""
    first, last = scenario.span(end)
    access, links = scenario.access_of(end), scenario.chain[first:last]
    there = tuple(hop for link in links for hop in link.forward)
    back = tuple(hop for link in reversed(links) for hop in link.reverse)
    data, acks = (there, back) if end.direction == "down" else (back, there)
    return (*access.before, *data, *access.after), (*access.acks_before, *acks, *access.acks_after)


@MODEL
@QUICK
@given(good.networks())
def test_a_network_has_words_a_diagram_and_ways(scenario):
    assert paths.in_words(scenario)
    assert PathView.of("", [scenario]).wide
    list(limits.caveats(scenario))
    for end in scenario.endpoints:
        data, acks = way(scenario, end)
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
        data, acks = way(scenario, end)
        if flow.rtt_ms.min is not None and not any(getattr(hop, "jitter", 0) for hop in (*data, *acks)):
            assert flow.rtt_ms.min >= scenario.rtt_of(end) / 1e6 - 0.01
