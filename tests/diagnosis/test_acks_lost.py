"""Acknowledgements that did not come to the capture, by the identification of those that did."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import observations
from observations import flow
from tcpscape import capture
from tcpscape.engines.model import Model
from tcpscape.findings.diagnosis.path import acks, fit
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.words import diagnosis as words


def seen(identifications: Any, vantage: str = "sender", **facts: Any) -> Estimate | Reason:
    """What is said of packets with these identifications, in the order in which they came."""
    known = {"id_counts": [True, True], "ack_stride": 1, "mss": [1460, 1460], **facts}
    columns = {"id": np.asarray(identifications, np.uint16), "len": np.zeros(len(identifications), np.uint32)}
    return acks.lost(replace(flow(facts=known), vantage=vantage, acks=columns))


def test_identifications_that_are_missing_are_acknowledgements_that_were_lost() -> None:
    random = np.random.default_rng(1)
    sent = 65_000 + np.arange(5_000)  # its count wraps
    came = sent[random.random(sent.size) > 0.1]
    found = seen(came % 2**16)
    assert isinstance(found, Estimate)
    assert found.low < 10 < found.high
    assert found.value == pytest.approx(100 * (1 - came.size / (came[-1] - came[0] + 1)), rel=0.01)
    late = np.argsort(np.arange(came.size) + random.normal(0, 3, came.size))
    assert seen(came[late] % 2**16) == found, "in whatever order they came"


def test_none_missing_is_none_lost_and_one_may_have_been_another_packet() -> None:
    whole = seen(np.arange(1, 3_000))
    assert isinstance(whole, Estimate)
    assert (whole.value, whole.low) == (0.0, 0.0)
    one = seen(np.delete(np.arange(1, 3_000), 1_500))
    assert isinstance(one, Estimate)
    assert one.low == 0.0


def test_packets_of_the_receiver_that_acknowledge_nothing_new_are_none_that_were_lost() -> None:
    numbers = np.arange(1, 3_001)
    has_row = np.ones(numbers.size, dtype=bool)
    has_row[1::3] = False  # requests, between the acknowledgements of their answers
    beside = np.diff(np.cumsum(~has_row)[has_row], prepend=0)
    is_lost = np.arange(int(has_row.sum())) % 50 == 7
    columns = {"id": numbers[has_row].astype(np.uint16), "len": np.zeros(int(has_row.sum()), np.uint32), "beside": beside.astype(np.uint16)}
    known = {"id_counts": [True, True], "ack_stride": 1, "mss": [1460, 1460]}
    none = acks.lost(replace(flow(facts=known), vantage="sender", acks=columns))
    assert isinstance(none, Estimate)
    assert (none.value, none.low) == (0.0, 0.0)
    rest = {name: column[~is_lost] for name, column in columns.items()}
    rest["beside"] = np.diff(np.cumsum(beside)[~is_lost], prepend=0).astype(np.uint16)  # those passed all the same
    some = acks.lost(replace(flow(facts=known), vantage="sender", acks=rest))
    assert isinstance(some, Estimate)
    assert some.value == pytest.approx(100 * is_lost.sum() / numbers.size, rel=0.1)


def test_the_count_passes_0_and_that_is_no_loss() -> None:
    found = seen(np.arange(1, 270_000) % 2**16)
    assert isinstance(found, Estimate)
    assert (found.value, found.low) == (0.0, 0.0)


def test_an_outage_of_the_acknowledgements_is_not_told_as_none_lost() -> None:
    assert seen(np.delete(np.arange(1, 30_000), slice(10_000, 12_000))) == Reason("identification alike")


def test_losses_in_bursts_are_known_to_less_than_those_one_by_one() -> None:
    random = np.random.default_rng(3)
    apart, burst = random.random(20_000) < 0.05, np.repeat(random.random(100) < 0.05, 200)
    ends = np.zeros(20_000, dtype=bool)
    ends[[0, -1]] = True
    one, many = (seen(np.arange(1, 20_001)[~lost | ends]) for lost in (apart, burst))
    assert isinstance(one, Estimate)
    assert isinstance(many, Estimate)
    assert many.high - many.low > 3 * (one.high - one.low)
    assert many.low < 5 < many.high


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"vantage": "receiver"}, "seen where it is sent"),
        ({"id_counts": [True, False]}, "identification alike"),
        ({"ack_stride": 2}, "not all captured"),
        ({"not_captured_bytes": 10_000}, "not all captured"),
    ],
)
def test_what_does_not_count_them_says_nothing(fields: dict[str, Any], why: str) -> None:
    assert seen(np.arange(1, 3_000, 2), **fields) == Reason(why)  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_a_path_that_loses_acknowledgements_says_so(loss: float, tmp_path: Path) -> None:
    """Of a capture of the model, whose packets have no identification: each acknowledgement gets the one that Linux would count."""
    file = tmp_path / "a.pcapng"
    fields = {"forward": [{"at": "router", "delay": "10ms"}], "bottleneck": "tbf rate 10mbit burst 5000 limit 50000", "duration": "6s"}
    Model().write_pcap(Scenario.model_validate({**fields, "flows": [{"cca": "cubic"}]}), 5, file)
    whole = capture.read(file).flows[0]
    count = whole.acks["t"].size
    kept = np.random.default_rng(2).random(count) >= loss
    columns = {name: column[kept] for name, column in whole.acks.items()} | {"id": np.arange(100, 100 + count).astype(np.uint16)[kept]}
    path = fit(replace(whole, acks=columns, facts=whole.facts | {"id_counts": [True, True]}))
    assert path.ack_loss_pct is not None
    assert path.ack_loss_pct.low <= 100 * loss <= path.ack_loss_pct.high
    assert path.ack_loss_pct.high - path.ack_loss_pct.low < 4
    shown = [title for title, *_ in words._path_rows(observations.diagnosed(path=path), path)]
    assert ("ACKs lost" in shown) == (loss > 0), "a row where some are"
    assert fit(whole).reasons["ack_loss_pct"].why == "identification alike"
