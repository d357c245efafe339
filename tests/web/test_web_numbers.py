"""The numbers of the explorer's questions are those of the command line: the same seed, the same trial, the same estimate."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from asking import POOL, ask
from hypothesis import given, settings
from test_web_state import paths

import tcpscape
from tcpscape.campaign.campaign import Campaign, Case
from tcpscape.campaign.outcome import Outcome
from tcpscape.engines import Engine
from tcpscape.errors import TcpscapeError
from tcpscape.scenario import changes
from tcpscape.trial import Trial
from tcpscape.web import axes
from tcpscape.web.pool import Job, Pool, Work
from tcpscape.web.questions.answer import Answer
from tcpscape.web.questions.curve import Curve
from tcpscape.web.questions.runs import METRICS, SPREAD
from tcpscape.web.start import PRESETS, Preset
from tcpscape.web.state import OF_QUEUE, State
from tcpscape.web.stream import Block
from tcpscape.words import sentences

ONE = Pool(1)
SWEPT = (
    "rtt",
    "jitter",
    "jitter_on",
    "distribution",
    "order",
    "loss",
    "loss_on",
    "rate",
    "buffer",
    "queue",
    "duration",
    "kernel",
    "rcvbuf",
    "app",
    "read",
)
"""Fields of the state that are options of `tcpscape sweep`."""
OTHERS = ("loss_burst", "limit", "forward_at", "reverse_at")
"""Fields of the state that it has as `--axis NAME=VALUE`."""
SHORT = {"rtt": "20ms", "rate": "10mbit", "duration": "1s"}
"""A path whose trials take a millisecond."""


class Recording(Work):
    """Keeps the trials that a question runs."""

    def __init__(self, send: Callable[[Block], None]) -> None:
        super().__init__(POOL, send)
        self.ran: dict[tuple[str, int], str] = {}

    def trials(self, jobs: Sequence[Job], engine: Engine | None = None) -> Iterator[tuple[int, Trial]]:
        for place, trial in super().trials(jobs, engine):
            self.ran[jobs[place].scenario.address(), trial.seed] = trial.hash
            yield place, trial


def hashes(outcome: Outcome) -> dict[tuple[str, int], str]:
    return {(cell.scenarios[0].address(), trial.seed): trial.hash for cell in outcome.cells for trial in cell.trials}


def swept(state: State, seeds: int, **levels: Any) -> Outcome:
    """What `tcpscape sweep` makes of the same fields as options, `levels` instead of some of them."""
    options = {name: text for name in SWEPT if (text := getattr(state, name))}
    if not state.rate:
        options = {name: text for name, text in options.items() if name not in OF_QUEUE}
    others = {name: text for name in OTHERS if (text := getattr(state, name))}
    others |= {"ecn": "true"} if state.ecn else {}
    controls: dict[str, Any] = {"mix": state.mix} if state.mix else {"cca": list(state.cca)}
    base = {"conditions": {"changes": [changes.parse(text) for text in state.changes]}} if state.changes else None
    network = {"link": state.links, "transfers": state.transfers, "probe": state.probes}
    return tcpscape.sweep(base, **{**options, **levels}, axes=others, **controls, **network, seeds=seeds)


def rows(blocks: list[Block], name: str, key: tuple[str, ...]) -> dict[tuple[int, ...], Mapping[str, float]]:
    """The rows of the blocks `name` by these columns, later ones instead of earlier ones."""
    found = {}
    for block in (b for b in blocks if b.name == name):
        for k in range(len(next(iter(block.columns.values())))):
            row = {column: float(values[k]) for column, values in block.columns.items()}
            found[tuple(int(row[column]) for column in key)] = row
    return found


def same(value: float, other: float) -> bool:
    """Whether two numbers are the same, not known among them."""
    return value == other or (math.isnan(value) and math.isnan(other)) or math.isclose(value, other, rel_tol=1e-12)


STATES = [
    State(**SHORT),
    State(**SHORT, jitter="3ms", loss="1%", loss_on="forward"),
    State(**SHORT, ecn=True, queue="fq_codel", cca=("cubic", "dctcp")),
    State(**{**SHORT, "rate": ""}, rcvbuf="64KiB", app="2MB/s", read="16KiB/1ms", cca=("reno",)),
    State(**SHORT, jitter="2ms", order="keep", jitter_on="reverse", changes=("bottleneck@500ms: rate 5mbit",)),
]


@pytest.mark.parametrize("state", STATES)
def test_an_answer_is_the_sentence_of_a_sweep_of_the_same_path(state: State) -> None:
    last = ask("answer", state, seeds=5)[-1].values
    outcome = swept(state, 5)
    assert last["text"] == sentences.run_answer(outcome)
    for control, cell in zip(last["controls"], outcome.cells, strict=True):
        mean = cell.mean()
        assert (control["value"], control["low"], control["high"]) == (mean.value, mean.low, mean.high)


@given(paths())
@settings(max_examples=30, deadline=None, derandomize=True, database=None)
def test_the_trials_of_an_answer_are_those_of_a_sweep(state: State) -> None:
    state = state.replace(
        duration="300ms", mix=state.mix and "cubic*2,bbr@100ms", changes=tuple(text.replace("@1s", "@100ms") for text in state.changes[:1])
    )
    blocks: list[Block] = []
    work = Recording(blocks.append)
    Answer(seeds=2).answer(state, work, None)
    outcome = swept(state, 2)
    assert hashes(outcome).items() <= work.ran.items()
    assert blocks[-1].values["text"] == sentences.run_answer(outcome)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.id)
def test_the_trials_of_a_curve_from_a_preset_are_those_of_a_sweep(preset: Preset) -> None:
    whole = preset.whole()
    state = whole.replace(duration="300ms", changes=(), mix=whole.mix and "cubic*2,bbr@100ms")
    blocks: list[Block] = []
    work = Recording(blocks.append)
    levels = ("0ms", "1ms")
    Curve(axis="jitter", levels=levels, seeds=2).answer(state, work, None)
    if state.words:
        assert "tc's words fix the jitter" in str(blocks[0].values)
        assert work.ran == {}
    else:
        assert work.ran == hashes(swept(state, 2, jitter=list(levels)))


def test_the_first_points_of_a_curve_wait_for_no_other_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    made, cases, seen = [0], Campaign.cases, dict[str, int]()

    def counted(campaign: Campaign) -> list[Case]:
        every = cases(campaign)
        made[0] += len(every)
        return every

    monkeypatch.setattr(Campaign, "cases", counted)
    Curve(axis="jitter", seeds=1).answer(State(**SHORT, jitter="2ms"), Work(ONE, lambda block: seen.setdefault(block.name, made[0])), None)
    assert (seen["axis"], seen["points"]) == (2, 6), "the state's own value, and the two ends"
    assert made[0] > 6


def test_an_answer_of_a_mixture_is_that_of_a_sweep() -> None:
    last = ask("answer", State(**SHORT, mix="cubic*2,bbr@200ms"), seeds=5)[-1].values
    outcome = tcpscape.sweep(rtt="20ms", rate="10mbit", duration="1s", mix="cubic*2,bbr@200ms", seeds=5)
    assert last["text"] == sentences.run_answer(outcome)
    assert [c["label"] for c in last["controls"]] == ["cubic", "bbr"]
    for control in last["controls"]:
        assert control["value"] == outcome.cells[0].mean(f"goodput:{control['label']}").value


def test_the_first_answer_is_of_one_trial_of_each_and_the_last_one_of_all() -> None:
    blocks = ask("answer", State(**SHORT), pool=ONE, seeds=6)
    assert [b.values["n"] for b in blocks] == [1, 3, 5, 6, 6]
    assert [b.values["final"] for b in blocks] == [False] * 4 + [True]


def test_a_control_past_its_cliff_is_told() -> None:
    state = State(rtt="50ms", rate="42mbit", jitter="20ms", duration="4s", cca=("cubic",))
    (control,) = ask("answer", state, seeds=5)[-1].values["controls"]
    outcome = tcpscape.sweep(rtt="50ms", rate="42mbit", jitter=["0ms", "20ms"], duration="4s", cca="cubic", seeds=5)
    keeps = outcome.retention(outcome.cells[1], "jitter")
    assert control["side"] == "past"
    assert control["side_text"] == f"cubic is past its cliff; it keeps {keeps.percent()} of its goodput without jitter."


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("axis", ["jitter", "rtt"])
def test_a_curve_is_a_sweep_trial_by_trial(state: State, axis: str) -> None:
    here = axes.find(axis, state).here(state)
    levels = ("10ms", here) if axis == "rtt" else ("0ms", here) if here != "0ms" else ("0ms", "2ms")
    blocks = ask("curve", state, axis=axis, levels=levels, seeds=3)
    outcome = state.campaign(axes={axis: list(levels)}, seeds=3)
    done = tcpscape.sweep(outcome.to_dict())
    points = rows(blocks, "points", ("place", "control"))
    single = rows(blocks, "runs", ("place", "control", "seed"))
    assert len(points) == len(done.cells)
    assert len(single) == len(done.trials)
    for place, level in enumerate(levels):
        for control, cca in enumerate(done.ccas):
            cell = done.find(cca, **{axis: level})
            point = points[place, control]
            for name, metric in METRICS.items():
                if name == SPREAD:
                    continue
                median, factor = cell.median(metric.source), metric.factor
                assert same(point[name], factor * median.value)
                assert same(point[f"{name}.low"], factor * median.low)
                assert same(point[f"{name}.high"], factor * median.high)
                for trial, value in zip(cell.trials, cell.values(metric.source), strict=True):
                    assert same(single[place, control, trial.seed][name], factor * value)
            assert same(point["cv"], cell.cv().value)


def test_a_curve_has_the_states_own_value_and_begins_with_it_and_the_ends() -> None:
    blocks = ask("curve", State(**SHORT, jitter="1.7ms"), pool=Pool(1), seeds=2)  # a new pool: trials that it knows would come first
    axis = blocks[0]
    assert axis.name == "axis"
    here = list(axis.values["words"]).index("1.7ms")
    assert axis.columns["x"][here] == axis.values["here"] == 0.0017
    assert axis.columns["x"][0] == 0
    assert np.all(np.diff(axis.columns["x"]) > 0)
    first = [int(block.columns["place"][0]) for block in blocks if block.name == "points"][:6]
    assert first == [len(axis.columns["x"]) - 1] * 2 + [0] * 2 + [here] * 2


@pytest.mark.parametrize(
    ("axis", "state", "note"),
    [
        ("buffer", {"rate": ""}, "there is no bottleneck"),
        ("loss_burst", {}, "there is no loss"),
        ("rtt", {"words": {"forward": "netem delay 5ms", "reverse": "netem delay 9ms"}}, "tc's words fix the RTT"),
    ],
)
def test_an_axis_that_makes_no_sense_says_why(axis: str, state: dict[str, Any], note: str) -> None:
    (block,) = ask("curve", State(**{**SHORT, **state}), axis=axis)
    assert block.values["note"].startswith(note)
    assert not len(block.columns["x"])


@pytest.mark.parametrize("quantity", ["ratio", "retention", "cv", "goodput"])
def test_a_map_is_a_sweep_cell_by_cell(quantity: str) -> None:
    state = State(**SHORT)
    blocks = ask("map", state, quantity=quantity, resolution=4, seeds=3)
    words = {name: blocks[0].values[name]["words"] for name in ("x", "y")}
    cells = rows(blocks, "cells", ("i", "j"))
    assert len(cells) == 16
    done = tcpscape.sweep(state.campaign(axes={"rtt": list(words["y"]), "jitter": list(words["x"])}, seeds=3).to_dict())
    for (i, j), cell in cells.items():
        first, second = (done.find(cca, rtt=words["y"][j], jitter=words["x"][i]) for cca in ("cubic", "bbr"))
        assert second is not None
        known = {"ratio": first.over(second), "retention": done.retention(first, "jitter"), "cv": first.cv(), "goodput": first.median()}[quantity]
        factor = 1e6 if quantity == "goodput" else 1.0
        assert same(cell["value"], factor * known.value)
        assert same(cell["low"], factor * known.low)
        assert same(cell["high"], factor * known.high)
        assert cell["n"] == 3
    progress = [block.values for block in blocks if block.name == "progress"]
    assert progress[-1]["done"] == progress[-1]["total"]


@pytest.mark.parametrize(("x", "y", "state"), [("jitter", "loss", {}), ("rtt", "rate", {"jitter": "2ms"}), ("loss", "rtt", {})])
def test_a_maps_progress_ends_at_its_total(x: str, y: str, state: dict[str, str]) -> None:
    blocks = ask("map", State(**{**SHORT, "duration": "100ms", **state}), x=x, y=y, quantity="retention", resolution=4, seeds=2)
    last = [block.values for block in blocks if block.name == "progress"][-1]
    assert last["done"] == last["total"]


def test_the_coarse_grid_of_a_map_comes_first() -> None:
    blocks = ask("map", State(**{**SHORT, "duration": "100ms"}), resolution=10, seeds=1, quantity="goodput")
    first = next(b for b in blocks if b.name == "cells")
    assert set(first.columns["span"]) == {5}
    assert sorted(zip(first.columns["i"], first.columns["j"], strict=True)) == [(2, 2), (2, 7), (7, 2), (7, 7)]
    assert len(rows(blocks, "cells", ("i", "j"))) == 100


@pytest.mark.parametrize(
    ("kind", "options", "state", "field"),
    [
        ("curve", {"axis": "colour"}, {}, "axis: 'colour' is unknown"),
        ("map", {"x": "buffer"}, {"rate": ""}, "axis: there is no bottleneck"),
        ("curve", {}, {"rtt": "50"}, "rtt: '50' has no unit"),
        ("map", {"x": "rtt"}, {}, "y: 'rtt' is the other axis"),
        ("curve", {"levels": ("0ms", "0..5ms/1ns")}, {}, "levels: '0..5ms/1ns' is not a quantity"),
        ("answer", {}, {"mix": "cubic*50000"}, "seeds: the results of 1,000,000 flows"),
        ("curve", {"seeds": 200}, {"mix": "cubic*100"}, "seeds: the results of"),
        ("map", {"resolution": 40, "seeds": 50}, {}, "seeds: the results of 160,000"),
        ("map", {}, {"cca": ["cubic"]}, "second: a ratio needs two"),
        ("answer", {}, {"jitter": "-1ms"}, "jitter: '-1ms' is negative"),
        ("map", {}, {"mix": "cubic*2"}, "mix: a map compares"),
        ("answer", {}, {"queue": "fq_codell"}, "queue: "),
    ],
)
def test_what_makes_no_sense_is_one_line_that_names_the_field(kind: str, options: dict[str, Any], state: dict[str, Any], field: str) -> None:
    with pytest.raises(TcpscapeError, match="^" + re.escape(field)):
        ask(kind, State.model_validate({**SHORT, **state}), **options)


@pytest.mark.parametrize(("kind", "options"), [("curve", {"axis": "jitter"}), ("map", {"x": "jitter", "y": "rtt"})])
def test_a_field_that_is_no_quantity_is_told_as_the_answer_tells_it(kind: str, options: dict[str, str]) -> None:
    with pytest.raises(TcpscapeError, match=r"jitter: .*1__proto__.*write for example"):
        ask(kind, State(jitter="1__proto__"), **options)
