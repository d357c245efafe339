"""The spike of several flows against the weighted sum of their bounds: worked arithmetic on made samples, and the study's parts on the model."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from tcpscape.findings.spike.bound import Step, goodput_of
from tcpscape.scenario.scenario import Scenario
from tcpscape.studies import several, spikes
from tcpscape.trial import Cwnd, FlowResult, Rtt, Trial

STEP = Step(6.0, 60_000_000, 30_000_000, 25.0)
"""60 to 30 Mbit/s at 6 s."""


def made(shares, d_ms, standing_bytes=0, peak_bytes=0):
    """Flows that fill the link before the drop in these shares; the queue stands at the drop and peaks 0.1 s after it."""
    t = np.arange(0, 11, 0.005)
    frames, flows = [], []
    for number, (share, d) in enumerate(zip(shares, d_ms, strict=True)):
        acked = np.round(share * goodput_of(60_000_000) * 1e6 / 8 * t)
        delivered = np.round(acked / 1448)
        columns = {"t_ns": (t * 1e9).round().astype(np.uint64), "bytes_acked": acked.astype(np.uint64), "delivered": delivered.astype(np.uint64)}
        columns |= {"flow": np.full(len(t), number, np.uint32), "srtt_us": np.full(len(t), int(d * 1000 * (1 + number)), np.uint32)}
        columns |= {"delivery_rate": np.full(len(t), 10_000, np.uint64), "cwnd": np.full(len(t), 10, np.uint32)}
        frames.append(pl.DataFrame(columns))
        flows.append(FlowResult("cubic", 1.0, 11.0, 0, 0, Rtt(), Cwnd(), {}, stop_s=11.0, path_rtt_ms=d))
    backlog = np.where(t < 6, standing_bytes, np.where(np.abs(t - 6.1) < 0.01, peak_bytes, standing_bytes))
    queue = {"t_ns": (t * 1e9).round().astype(np.uint64), "pipe": np.ones(len(t), np.uint32), "stage": np.zeros(len(t), np.uint32)}
    queue |= {"depth": np.zeros(len(t), np.uint32), "bytes": backlog.astype(np.uint64), "packets": np.zeros(len(t), np.uint64)}
    return Trial(
        scenario="s", cca="cubic", address=f"{shares}{d_ms}{standing_bytes}{peak_bytes}", seed=0, engine="model", version="1", duration=11.0,
        flows=tuple(flows), samples=pl.concat(frames).sort("t_ns"), queue_samples=pl.DataFrame(queue),
        queues=({"direction": "forward", "at": "router", "stage": 0, "depth": 0, "name": "htb", "kind": "htb", "drops": {}, "bytes_out": 1, "delay": {"count": 0}},),
    )  # fmt: skip


def test_the_bound_is_weighted_with_shares():
    """(r − 1) = 1; 25 and 100 ms: halves make 62.5 ms, a quarter near 81.25 ms."""
    assert several.bound(made((0.5, 0.5), (25.0, 100.0)), STEP) == pytest.approx(62.5, rel=1e-3)
    assert several.bound(made((0.25, 0.75), (25.0, 100.0)), STEP) == pytest.approx(81.25, rel=1e-3)
    assert several.share(made((0.25, 0.75), (25.0, 100.0)), STEP) == pytest.approx(0.25, rel=1e-3)


def test_what_was_in_flight_counts():
    """Two flows that use three quarters of the link: r is 1.5, and half of the spike is left."""
    assert several.flight(made((0.5, 0.5), (25.0, 100.0)), STEP) == pytest.approx(62.5, rel=0.01)
    assert several.flight(made((0.375, 0.375), (25.0, 100.0)), STEP) == pytest.approx(31.25, rel=0.02)


def test_the_queue_that_stands_is_told_from_its_rise():
    """At 30 Mbit/s 37,500 bytes are 10 ms and 375,000 are 100 ms."""
    trial = made((0.5, 0.5), (25.0, 100.0), 37_500, 375_000)
    assert several.standing(trial, STEP) == pytest.approx(10)
    assert several.queue(trial, STEP) == pytest.approx(100)
    assert several.risen(trial, STEP) == pytest.approx(90)
    assert spikes.find("risen_of_weighted").of(trial, STEP) == pytest.approx(90 / 62.5, rel=1e-3)


def test_each_flow_has_a_peak_of_its_own():
    """The smoothed RTT is d, and 2 d of the second flow: halves of 0 and 100 ms."""
    assert several.peaks(made((0.5, 0.5), (25.0, 100.0)), STEP) == pytest.approx(50, rel=1e-3)


def test_flows_that_come_later_are_not_in_the_bound():
    trial = made((0.5, 0.5), (25.0, 100.0))
    late = Trial(**{f: getattr(trial, f) for f in trial.__slots__} | {
        "flows": (trial.flows[0], FlowResult("cubic", 1.0, 5.0, 0, 0, Rtt(), Cwnd(), {}, start_s=6.0, stop_s=11.0, path_rtt_ms=100.0)), "address": "late",
    })  # fmt: skip
    assert several.bound(late, STEP) == pytest.approx(25, rel=1e-3)


def test_without_a_queue_nothing_is_known_of_it():
    trial = made((0.5, 0.5), (25.0, 100.0))
    bare = Trial(**{f: getattr(trial, f) for f in trial.__slots__} | {"queue_samples": None, "address": "bare"})
    assert math.isnan(several.queue(bare, STEP))
    assert math.isnan(several.standing(bare, STEP))


def test_the_drop_of_those_that_came_first():
    """Two flows, then two more: r is 2; one flow, then two more: 3."""
    path = {"bottleneck": "htb rate 60mbit; fq_codel", "reverse": "netem delay 25ms", "duration": "9s"}
    two = Scenario.of({**path, "flows": [{"count": 2}, {"count": 2, "start": "6s"}]})
    one = Scenario.of({**path, "flows": [{}, {"count": 2, "start": "6s"}]})
    assert (spikes.step_of(two).ratio, spikes.step_of(one).ratio) == (2, 3)
