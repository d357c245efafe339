"""The flow analysis of captures: what it says of the model's own captures agrees with the model's counters, and its columns with each other."""

import numpy as np
import pytest

from conftest import need
from tcpscape import capture, engines
from tcpscape.scenario import files, options

CASES = {
    "lossy": lambda: files.load("lossy-dsl"),
    "reordered": lambda: files.load("jitter-cliff"),
    "several flows": lambda: options.scenario(
        {"forward": "netem delay 15ms loss 0.2%", "bottleneck": "tbf rate 20mbit burst 16kb latency 50ms", "reverse": "netem delay 15ms"},
        mix="cubic*2,reno@2s-4s",
    ),
    "copies": lambda: options.scenario({"forward": "netem delay 10ms loss 0.5% duplicate 1%", "reverse": "netem delay 10ms loss 1%"}),
}


@pytest.fixture(scope="module", params=CASES)
def seen(request, tmp_path_factory):
    """A trial's flows, by the model and by its capture."""
    model = engines.make("model")
    need("model")
    scenario = CASES[request.param]().model_copy(update={"duration": 5_000_000_000})
    file = tmp_path_factory.mktemp("flows") / "x.pcapng"
    model.write_pcap(scenario, 3, file)
    trial = model.run(scenario, [3])[0]
    flows = sorted(capture.read(file).flows, key=lambda f: f.source.port)
    assert len(flows) == len(trial.flows)
    return request.param, list(zip(flows, trial.flows, strict=True))


def test_counters_agree_with_the_models_own(seen):
    name, pairs = seen
    for flow, own in pairs:
        facts = flow.facts
        assert (facts["retransmissions"], facts["timeouts"]) == (own.retransmits, own.rtos)
        assert flow.vantage == "sender"
        # What is under way at the end was sent and is not delivered yet, or the other way about.
        assert flow.bytes == pytest.approx(own.bytes_received, abs=2 * max(facts["flight_max"], 65_536))
        if name != "copies":
            assert 0.9 * own.dsacks <= facts["dsacks"] <= own.dsacks  # the receiver's count: some are under way at the end


def test_what_came_twice_was_a_copy_or_sent_needlessly(seen):
    name, pairs = seen
    for flow, own in pairs:
        facts = flow.facts
        assert facts["spurious"] + facts["duplicates"] >= facts["dsacks"]
        if name == "copies":
            assert facts["duplicates"] > 0
        elif own.dsacks == 0:
            assert facts["spurious"] == facts["duplicates"] == 0
        assert facts["losses"] <= facts["retransmissions"]


def test_rows_are_laws_unto_themselves(seen):
    _, pairs = seen
    for flow, _ in pairs:
        rows, acks, facts = flow.segments, flow.acks, flow.facts
        assert facts["segment_stride"] == facts["ack_stride"] == 1
        order = np.argsort(rows["seq"], kind="stable")
        ends = rows["seq"][order] + rows["len"][order]
        assert (ends[:-1] <= rows["seq"][order][1:]).all(), "no two rows overlap"
        assert int(acks["newly"].sum(dtype=np.uint64) + acks["sacked"].sum(dtype=np.uint64)) == pytest.approx(flow.bytes, abs=1)
        timed = rows["rtt"] > 0
        assert (rows["acked"][timed] - rows["t"][timed] == rows["rtt"][timed]).all()
        assert (rows["sends"][timed] == 1).all(), "Karn's rule"
        assert (np.diff(rows["t"].astype(np.int64)) >= 0).all()
        kinds = sum(facts[k] for k in ("fast_retransmissions", "timeouts", "after_timeout", "tail_probes"))
        assert kinds == facts["retransmissions"]
        repeated = np.isin(flow.events["kind"], (1, 2, 3, 15))
        assert int(flow.events["segments"][repeated].sum()) == facts["retransmissions"]
