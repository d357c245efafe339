"""Receivers that misbehave and media flows: as they are written, planned, measured and refused."""

from __future__ import annotations

import pytest

import tcpscape
from tcpscape import metrics
from tcpscape.engines import linux, plan
from tcpscape.errors import TcpscapeError
from tcpscape.scenario.scenario import Scenario

PATH = {
    "bottleneck": {"rate": "2mbit", "buffer": "2bdp"},
    "forward": [{"at": "router", "delay": "20ms"}],
    "reverse": [{"at": "router", "delay": "20ms"}],
}
VIDEO = {**PATH, "flows": [{"cca": "cubic", "start": "2s"}], "probes": ["scream"], "duration": "20s"}


def test_what_came_later_leaves_older_addresses():
    flow = {"cca": "cubic"}
    plain, lying = Scenario.of({**PATH, "flows": [flow]}), Scenario.of({**PATH, "flows": [{**flow, "misbehaves": "optimistic"}]})
    assert plain == Scenario.of({**PATH, "flows": [{**flow, "misbehaves": None}]})
    assert "misbehaves" not in str(plain.model_dump(mode="json", context={"address": True}))
    assert lying.model_dump(mode="json", context={"address": True})["flows"][0]["misbehaves"] == "optimistic"
    assert "least" not in str(
        Scenario.of({**PATH, "flows": [flow], "probes": ["voice"]}).model_dump(mode="json", context={"address": True})["probes"]
    )


def test_a_video_takes_what_it_can_and_says_so():
    alone, beside = (tcpscape.run({**VIDEO, "flows": flows}, seeds=1).trials[0] for flows in ([], VIDEO["flows"]))
    rates = [metrics.find("media_rate").of(trial) for trial in (alone, beside)]
    assert 0.5 < rates[0] <= 1.5
    assert 0.1 < rates[1] < rates[0]
    assert (alone.probes[0].media_mbps, alone.probes[0].kind) == (rates[0], "scream")


def test_a_lie_is_not_counted_as_data():
    lossy = {**PATH, "forward": [{"at": "router", "delay": "20ms", "loss": "5%"}], "duration": "10s"}
    trial = tcpscape.run({**lossy, "flows": [{"cca": "reno", "misbehaves": "optimistic"}]}, seeds=1).trials[0]
    assert 1.5 < trial.goodput_mbps < 2.0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"flows": [{"cca": "cubic", "misbehaves": "honest"}]}, "misbehaves"),
        ({"probes": [{"preset": "scream", "least": "2mbit", "most": "1mbit"}]}, "least: a media flow has a least and a largest bit rate"),
        ({"probes": [{"preset": "voice", "most": "1mbit"}]}, "least: a probe of kind udp sends at an even rate"),
    ],
)
def test_what_makes_no_sense_is_refused(fields, message):
    with pytest.raises(TcpscapeError, match=message):
        Scenario.of({**PATH, **fields})


@pytest.mark.parametrize("fields", [{"flows": [{"cca": "cubic", "misbehaves": "dividing"}]}, {"probes": ["scream"]}])
def test_kernels_refuse_what_the_model_alone_has(fields):
    with pytest.raises(TcpscapeError, match="use --engine model"):
        linux.refuse_modelled(plan.build(Scenario.of({**PATH, **fields}), {"cubic": ()}))
