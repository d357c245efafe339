"""The explorer's question `inside`: its marks are as many as the trial counts, its series are those of `run --samples` at the same seed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from asking import ask

import tcpscape
from tcpscape import engines
from tcpscape.controls import palette
from tcpscape.errors import TcpscapeError
from tcpscape.plots import traces
from tcpscape.scenario.options import ScenarioOptions
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture, Trial
from tcpscape.web.questions import KINDS, inside
from tcpscape.web.questions.inside import Detail, Inside, median_seed
from tcpscape.web.state import State
from tcpscape.web.stream import Block

EVERY_MS = 1_000_000
SI = {"cwnd": 1.0, "ssthresh": 1.0, "in_flight": 1.0, "rtt": 1e-3, "min_rtt": 1e-3, "pacing_rate": 1e6, "delivery_rate": 1e6}
"""Quantities, and the factor from a figure's unit to the page's."""
BURSTS = "netem delay 25ms loss gemodel 2% 10%"


def built(forward: str, cca: str, change: Sequence[str] = (), **fields: Any) -> Scenario:
    path = {"forward": forward, "bottleneck": "tbf rate 20mbit burst 6056 limit 80000", "reverse": "netem delay 20ms"}
    return ScenarioOptions(path, None, None, {}, {"duration": "6s", **fields}, change).scenario(compared=True).with_cca(cca)


def run(scenario: Scenario, seed: int = 1, every_ns: int = EVERY_MS) -> Trial:
    return engines.make("model").run(scenario, [seed], capture=Capture(every_ns, every_ns, events=True))[0]


def one(blocks: list[Block], name: str, number: int = 0) -> Block:
    return next(block for block in blocks if block.name == name and block.values["run"] == number)


def counted(block: Block, name: str, flow: int = 0) -> int:
    place = next(i for i, kind in enumerate(inside.EVENTS) if kind.name == name)
    chosen = (block.columns["kind"] == place) & (block.columns["flow"] == flow)
    return int(block.columns["count"][chosen].sum())


@pytest.mark.parametrize("cca", ["cubic", "bbr", "reno", "dctcp"])
@pytest.mark.parametrize(
    ("where", "words"),
    [("loss", "netem delay 20ms 6ms loss 2%"), ("bursts", BURSTS), ("marks", "netem delay 20ms loss 1% ecn"), ("reordering", "netem delay 20ms 8ms")],
)
def test_marks_are_as_many_as_the_trial_counts(cca: str, where: str, words: str) -> None:
    trial = run(built(words, cca, ecn=where == "marks"))
    block, flow = inside.marks(0, trial), trial.flows[0]
    for kind in inside.EVENTS:
        if kind.counter:
            assert counted(block, kind.name) == getattr(flow, kind.counter), kind.name
    assert trial.samples is not None
    assert counted(block, "lost") >= trial.samples["lost"].max() > 0 or where in ("marks", "reordering")
    assert counted(block, {"loss": "fast_recoveries", "bursts": "rtos", "marks": "ecn_reductions", "reordering": "reord_seen"}[where])


def test_states_between_marks_are_those_of_the_samples() -> None:
    trial = run(built(BURSTS, "cubic"))
    block = inside.marks(0, trial)
    begins, ends, states = (block.columns[f"span.{name}"].astype(float) for name in ("from", "to", "state"))
    assert (begins[1:] >= ends[:-1] - 1e-5).all()
    assert (begins <= ends).all()
    assert set(states) >= {3.0, 4.0}
    times, sampled = trial.samples["t_ns"].to_numpy() / 1e9, trial.samples["ca_state"].to_numpy()
    near = 2e-6  # the columns are float32
    for begin, end, state in zip(begins, ends, states, strict=True):
        within = (times > begin + near) & (times < end - near)
        assert (sampled[within] == state).all()
    outside = ~np.any([(times >= a - near) & (times <= b + near) for a, b in zip(begins, ends, strict=True)], axis=0)
    assert outside.any()
    assert (sampled[outside] < inside.SHADED).all()


def test_series_are_those_of_run_at_the_same_seed() -> None:
    state = State(rtt="40ms", rate="20mbit", loss="0.5%", duration="5s", cca=("cubic", "bbr"))
    blocks = ask("inside", state, seed=3)
    for number, cca in enumerate(("cubic", "bbr")):
        said = one(blocks, "run", number).values
        assert (said["cca"], said["seed"], said["interval_s"]) == (cca, 3, 0.001)
        ran = tcpscape.run(state.scenario(cca), seeds=[3], samples="1ms", queue_samples="2ms")
        [trial], scenario = ran.cells[0].trials, ran.cells[0].scenarios[0]
        assert said["numbers"][0]["goodput_mbps"] == trial.flows[0].goodput_mbps
        block = one(blocks, "series", number)
        trace = traces.Trace("", palette.LOOKS[0], trial, 0, scenario)
        for name, factor in SI.items():
            times, values = traces.PANELS[name].read(trace) or pytest.fail(name)
            assert np.array_equal(block.columns["t"], times.astype(np.float32))
            known = ~np.isnan(block.columns[name])
            assert known.sum() > (0 if name == "ssthresh" else 4000)
            assert np.allclose(block.columns[name][known], values[known] * factor, rtol=1e-6)
        times, values = traces.PANELS["throughput"].read(trace) or pytest.fail("goodput")
        assert np.array_equal(block.columns["goodput"], (values * 1e6).astype(np.float32))
        times, values = traces.PANELS["queue"].read(trace) or pytest.fail("queue")
        assert np.array_equal(one(blocks, "queue", number).columns["packets"], values.astype(np.float32))


def test_a_detail_is_a_part_of_the_run_with_more_samples() -> None:
    state = State(rtt="40ms", rate="20mbit", loss="0.5%", duration="5s", cca=("cubic",))
    whole, part = ask("inside", state, seed=3), ask("detail", state, seed=3, start_s=2.0, stop_s=2.5)
    rough, fine = one(whole, "series").columns, one(part, "series").columns
    assert 5_000 <= len(fine["t"]) <= 5_002
    assert fine["t"][0] >= 1.999
    assert fine["t"][-1] <= 2.501
    within = (rough["t"] >= fine["t"][0]) & (rough["t"] <= fine["t"][-1])
    places = np.searchsorted(fine["t"], rough["t"][within] - 1e-5)
    assert within.sum() > 400
    assert np.array_equal(fine["cwnd"][places], rough["cwnd"][within])
    shown, all_marks = one(part, "marks").columns["t"], one(whole, "marks").columns["t"]
    assert np.array_equal(shown, all_marks[(all_marks >= 2.0) & (all_marks <= 2.5)])


def test_a_pinned_state_is_compared_at_the_same_seed() -> None:
    state = State(rtt="40ms", rate="20mbit", duration="2s", cca=("cubic", "bbr"))
    blocks = ask("inside", state, seed=2, controls=("cubic",), pinned=State(rtt="80ms", rate="20mbit", duration="2s"))
    runs = [block.values for block in blocks if block.name == "run"]
    assert sorted((r["run"], r["cca"], r["pinned"], r["seed"]) for r in runs) == [(0, "cubic", False, 2), (1, "cubic", True, 2)]
    least = {block.values["run"]: np.nanmin(block.columns["min_rtt"]) for block in blocks if block.name == "series"}
    assert least == {0: pytest.approx(0.04, rel=0.1), 1: pytest.approx(0.08, rel=0.1)}


def test_the_median_run_is_nearest_to_the_middle_of_all() -> None:
    assert median_seed([[5.0, 1.0, 3.0]]) == 2
    assert median_seed([[1.0, 2.0, 3.0, 4.0, 5.0], [3.0, 1.0, 5.0, 2.0, 4.0]]) == 3
    assert median_seed([[7.0, 7.0, 7.0]]) == 0
    state = State(rtt="20ms", rate="10mbit", loss="1%", duration="1s", cca=("cubic",))
    seed = one(ask("inside", state, median=True), "run").values["seed"]
    goodput = [t.goodput_mbps for t in tcpscape.run(state.scenario("cubic"), seeds=20).cells[0].trials]
    assert sorted(goodput)[9] == goodput[seed] or sorted(goodput)[10] == goodput[seed]


@pytest.mark.parametrize(
    ("duration", "least", "expected"),
    [(10_000_000_000, 5_000, 2_000_000), (10_000_000_000, 20_000, 500_000), (30_000_000_000, 5_000, 5_000_000), (999, 5_000, 1), (60, 7, 5)],
)
def test_the_interval_is_a_round_one_with_enough_samples(duration: int, least: int, expected: int) -> None:
    assert inside.interval_ns(duration, least) == expected


def test_a_drop_of_the_rate_has_its_bound() -> None:
    texts = ["bottleneck@8s: rate 5mbit", "bottleneck@4s: rate 16mbit", "forward@6s: delay 30ms", "bottleneck@10s: rate 20mbit"]
    scenario = built("netem delay 20ms", "bbr", texts, duration="12s")
    first, second = inside.spike_bounds(scenario)
    assert [(bound["at_s"], bound["d_s"]) for bound in (first, second)] == [(4.0, 0.04), (8.0, 0.04)]
    assert first["spike_s"] == pytest.approx(0.25 * 0.04)
    assert second["spike_s"] == pytest.approx(2.2 * 0.04)


@pytest.mark.parametrize(
    ("text", "at_ns", "values"),
    [
        ("bottleneck@8.25s: rate 20mbit", 8_250_000_000, {"rate": "20mbit"}),
        ("forward@250ms: outage", 250_000_000, {"outage": True}),
        ("forward@5s: delay 60ms outage", 5_000_000_000, {"delay": "60ms", "outage": True}),
        ("forward@5.15s: outage off", 5_150_000_000, {"outage": False}),
        ("reverse@0s: loss 1%", 0, {"loss": "1%"}),
        ("forward@12.346s: delay 50ms", 12_346_000_000, {"delay": "50ms"}),
    ],
)
def test_a_change_as_the_page_writes_it_is_the_change_of_the_trial(text: str, at_ns: int, values: dict[str, Any]) -> None:
    """The page's texts: web/tests/inside/changes.test.ts has the same."""
    [change] = State(rtt="40ms", rate="50mbit", duration="15s", changes=(text,)).scenario("cubic").changes
    assert (change.at, change.set and change.set.model_dump(exclude_none=True)) == (at_ns, values)


def test_a_change_acts_at_its_time() -> None:
    state = State(rtt="40ms", rate="50mbit", duration="4s", cca=("cubic",), changes=("bottleneck@2s: rate 10mbit",))
    blocks = ask("inside", state)
    columns = one(blocks, "series").columns
    before, after = columns["goodput"][columns["goodput.t"] < 1.9], columns["goodput"][columns["goodput.t"] > 2.5]
    assert before.max() > 40e6
    assert after.max() < 10e6


def test_every_kind_is_registered_and_bounded() -> None:
    assert (KINDS["inside"], KINDS["detail"]) == (Inside, Detail)
    with pytest.raises(ValueError, match="samples"):
        Inside(samples=10_000_000)
    with pytest.raises(ValueError, match="stop_s"):
        Detail(start_s=0.0, stop_s=-1.0)
    with pytest.raises(ValueError, match="less than or equal to 86400"):
        Detail(start_s=0.0, stop_s=1e300)


def test_a_pinned_state_names_no_file_of_the_server() -> None:
    for fields in ({"cca": ("/tmp/mine.py:Mine",)}, {"kernel": "host"}):
        with pytest.raises(TcpscapeError, match=next(iter(fields))):
            Inside.model_validate({"pinned": State(**fields).model_dump(mode="json")})


def test_only_controls_of_the_state_are_run() -> None:
    state = State(duration="1s", cca=("cubic", "bbr", "reno"))
    shown = {
        controls: sorted(block.values["cca"] for block in ask("inside", state, controls=controls) if block.name == "run")
        for controls in [(), ("reno", "cubic"), ("/tmp/mine.py:Mine", "reno"), ("/tmp/mine.py:Mine",)]
    }
    assert list(shown.values()) == [["bbr", "cubic"], ["cubic", "reno"], ["reno"], ["bbr", "cubic"]]
