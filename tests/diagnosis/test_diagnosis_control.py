"""The congestion control of a capture: what it is on runs of the model, and where the answer must be "unknown"."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tcpscape import capture
from tcpscape.engines.model import Model
from tcpscape.findings.diagnosis.control import classify
from tcpscape.findings.diagnosis.control.classify import FILE, trained
from tcpscape.findings.diagnosis.control.features import features
from tcpscape.findings.diagnosis.control.shadows import CANDIDATES, compare
from tcpscape.findings.diagnosis.control.watched import LOSS, watch
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.scenario.scenario import Scenario


@functools.cache
def observed(cca: str, app: str = "") -> ObservedFlow:
    """30 s of a flow at 10 Mbit/s, 40 ms, a buffer of one BDP, as a capture at its sender shows it."""
    flow = {"cca": cca} | ({"app": app} if app else {})
    scenario = Scenario.model_validate({
        "forward": [{"at": "router", "delay": "20ms"}], "bottleneck": {"rate": "10mbit", "buffer": "50000"}, "reverse": {"delay": "20ms"},
        "flows": [flow], "duration": "30s",
    })  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.pcapng"
        Model().write_pcap(scenario, 7, file)
        return capture.read(file).flows[0]


@pytest.mark.parametrize("cca", ["bbr", "cubic"])
def test_a_control_whose_law_shows_is_named(cca: str) -> None:
    control = classify(observed(cca))
    assert control.name == cca, (control.candidates, control.reason)
    assert 0.8 < control.confidence <= 1
    assert next(iter(control.candidates)) == cca
    assert "round trips" in control.reason


@pytest.mark.parametrize("cca", ["highspeed", "hybla", "illinois", "reno", "scalable"])
def test_a_control_is_named_or_unknown_with_itself_among_the_candidates(cca: str) -> None:
    control = classify(observed(cca))
    assert control.name in (cca, "unknown"), (control.candidates, control.reason)
    assert cca in list(control.candidates)[:2]


@pytest.mark.parametrize("cca", ["cubic", "highspeed", "illinois", "reno", "scalable"])
def test_a_control_that_watches_its_own_flow_has_the_window_that_was_seen(cca: str) -> None:
    watched = watch(observed(cca))
    assert watched is not None
    measures = compare(watched)
    assert measures[cca]["close_short"] > 0.9
    assert measures[cca]["error_long"] < 1.0
    assert measures[cca]["backoff_error"] < 0.06


def test_windows_and_reductions_are_those_of_the_law() -> None:
    watched = watch(observed("cubic"))
    assert watched is not None
    ratios = [c.after / c.before for c in watched.cuts if c.state != LOSS and np.isfinite(c.after)]
    assert len(ratios) >= 3
    # RFC 9438 §4.6: β = 0.7; the first round trip after the reduction has grown by a packet or two.
    assert 0.67 < np.median(ratios) < 0.74
    assert watched.mss == 1448


def test_what_does_not_show_the_window_is_unknown_with_the_reason() -> None:
    flow = observed("cubic")
    for change, word in [
        ({"vantage": "receiver"}, "receiver"), ({"vantage": "middle"}, "on the way"), ({"seconds": 5.0}, "too short"), ({"segments": {}}, "no packets"),
    ]:  # fmt: skip
        control = classify(dataclasses.replace(flow, **change))
        assert control.name == "unknown"
        assert word in control.reason
    assert classify(dataclasses.replace(flow, cca="htcp")).name == "htcp"


def test_bbr_is_not_named_without_its_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    # A forest that takes everything for BBR.
    believer = SimpleNamespace(probabilities=lambda _: {"bbr": 0.99, "cubic": 0.01}, certainty=lambda _: 0.99, least={"bbr": 0.5})
    monkeypatch.setattr(importlib.import_module("tcpscape.findings.diagnosis.control.classify"), "trained", lambda: believer)
    assert classify(observed("bbr")).name == "bbr"
    control = classify(observed("cubic"))
    assert control.name == "unknown"
    assert "every 10 s" in control.reason


def test_an_application_that_sends_little_hides_the_control() -> None:
    assert classify(observed("cubic", "2mbit")).name == "unknown"


def test_a_capture_that_is_cut_shows_the_same_control() -> None:
    flow = observed("illinois")

    def late(columns):
        chosen = np.asarray(columns["t"]) > 8_000_000_000
        return {name: values[chosen] for name, values in columns.items()}

    cut = dataclasses.replace(flow, segments=late(flow.segments), acks=late(flow.acks), events=late(flow.events), seconds=flow.seconds - 8)
    assert classify(cut).name in ("illinois", "unknown")


def test_the_forest_is_plain_data_and_says_where_it_comes_from() -> None:
    forest = trained()
    assert set(CANDIDATES) | {"bbr"} <= set(forest.controls)
    assert forest.provenance["made_by"] == "benches/control.py train"
    assert FILE.stat().st_size < 4_000_000
    watched = watch(observed("cubic"))
    assert watched is not None
    values = features(watched)
    assert set(values) == set(forest.features)
    probabilities = forest.probabilities(values)
    assert sum(probabilities.values()) == pytest.approx(1)
    assert list(probabilities.values()) == sorted(probabilities.values(), reverse=True)
    assert 0 <= forest.certainty(0.1) <= forest.certainty(0.9) <= 1
