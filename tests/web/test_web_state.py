"""The page's state: its fields and the scenario that they make, tc's words and back, and what a page may not ask for."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcpscape import engines
from tcpscape.campaign.source import campaign
from tcpscape.engines.model import Model
from tcpscape.errors import ScenarioError, TcpscapeError
from tcpscape.scenario import files
from tcpscape.scenario import path as queues
from tcpscape.scenario.scenario import PARTS, Scenario
from tcpscape.scenario.words import describe
from tcpscape.web import axes, start, texts
from tcpscape.web import state as states
from tcpscape.web.start import IN_GALLERY, PRESETS, Preset
from tcpscape.web.state import State, of_campaign, of_page, of_scenario
from tcpscape.web.take import described

MODEL = engines.make("model")
pytestmark = pytest.mark.skipif(MODEL.unavailable() is not None, reason="the extension module is not built")
STANDARD = State()


def differing(state: State) -> dict[str, Any]:
    return {name: value for name in State.model_fields if (value := getattr(state, name)) != getattr(STANDARD, name)}


def times(least: int, most: int) -> st.SearchStrategy[str]:
    return st.integers(least, most).map(lambda ms: f"{ms}ms" if ms % 1000 else f"{ms // 1000}s")


@st.composite
def paths(draw: st.DrawFn) -> State:
    """States whose texts are written in the shortest way, and in which no field is without effect."""
    fields: dict[str, Any] = {"rtt": times_even(draw)}
    if draw(st.booleans()):
        fields |= {"jitter": draw(times(1, 40)), "jitter_on": draw(st.sampled_from(["", "forward", "reverse"]))}
        fields["order"] = draw(st.sampled_from(["", "keep", "clamp"]))
        if fields["order"] != "keep":
            fields["distribution"] = draw(st.sampled_from(["", "uniform", "pareto", "paretonormal"]))
    if draw(st.booleans()):
        fields |= {
            "loss": draw(st.sampled_from(["0.01%", "0.125%", "1%", "3.7%", "20%"])),
            "loss_on": draw(st.sampled_from(["", "forward", "reverse"])),
        }
        fields["loss_burst"] = draw(st.sampled_from(["", "2", "3", "7.5", "50"]))
    fields["limit"] = draw(st.sampled_from(["", "1000", "77"]))
    fields |= {name: draw(st.sampled_from(["", "sender"])) for name in ("forward_at", "reverse_at")}
    fields["rate"] = draw(st.sampled_from(["", "1mbit", "42mbit", "1gbit"]))
    if fields["rate"]:
        fields["buffer"] = draw(st.sampled_from(["", "2bdp", "64KiB"]))
        fields["queue"] = draw(st.sampled_from(["", "fq_codel", "codel target 10ms", "pie", "cake"]))
    fields |= {
        "rcvbuf": draw(st.sampled_from(["", "256KiB"])),
        "app": draw(st.sampled_from(["", "10MiB/s"])),
        "read": draw(st.sampled_from(["", "16KiB/1ms"])),
    }
    fields |= {"ecn": draw(st.booleans()), "duration": draw(st.sampled_from(["", "3s"])), "kernel": draw(st.sampled_from(["", "6.12,rmem_max=4MiB"]))}
    if fields["rate"] and draw(st.booleans()):
        fields["changes"] = ("bottleneck@1s: rate 5mbit", "forward@2s: delay 40ms", "bottleneck@2500ms: outage on")[: draw(st.integers(1, 2))]
    if draw(st.booleans()):
        fields |= {
            "mix": draw(st.sampled_from(["cubic*2,bbr@1s", "reno,cubic*3@500ms-2s", "cubic*2~up,bbr~rtt=2s@1s", "reno~up~access=10ms+20mbit,cubic"]))
        }
    return State(**fields)


def times_even(draw: st.DrawFn) -> str:
    return draw(st.integers(1, 300).map(lambda ms: f"{2 * ms}ms"))


@given(paths())
@settings(max_examples=80, deadline=None, derandomize=True, database=None)
def test_fields_make_a_scenario_that_says_the_same_fields(state: State) -> None:
    scenario = state.scenario("cubic")
    again, notes = of_scenario(scenario, state.cca)
    assert notes == ()
    assert differing(again) == differing(state)
    assert again.scenario("cubic").address() == scenario.address()


@given(paths())
@settings(max_examples=80, deadline=None, derandomize=True, database=None)
def test_the_words_of_fields_say_the_same_fields(state: State) -> None:
    """What is shown as tc's words and typed back as it is says the same path; a buffer in bandwidth-delay products becomes bytes."""
    plain = state.replace(queue="", mix="" if "~" in state.mix else state.mix)
    scenario = plain.scenario("cubic")
    typed = plain.replace(
        words={part: texts.words(scenario, part) for part in PARTS if getattr(scenario, part)}, rtt="50ms", jitter="", loss="", limit=""
    )
    again = State.model_validate(described(typed)["state"])
    assert again.words == {}
    said = {k: v for k, v in differing(again).items() if k != "buffer"}
    assert said == {k: v for k, v in differing(plain).items() if k != "buffer"}
    assert [q for part in PARTS for q in again.scenario("cubic").queues(part)] == [q for part in PARTS for q in scenario.queues(part)]
    assert (
        MODEL.plan(again.replace(duration="1ms", changes=(), mix="").scenario("cubic")).run(7)["hash"]
        == MODEL.plan(plain.replace(duration="1ms", changes=(), mix="").scenario("cubic")).run(7)["hash"]
    )


UNSAID = {"incast": "requests", "misbehaving-receivers": "receivers that misbehave"}
"""Scenarios of the gallery that no fields say, and what they have."""
NETWORKS = {"parking-lot": ("links", "transfers"), "rrul": ("links", "probes"), "upload-and-call": ("links", "probes"), "web": ("transfers",)}
"""Scenarios of the gallery with links, transfers or probes, and which."""


@pytest.mark.parametrize("name", files.gallery())
def test_a_scenario_of_the_gallery_can_be_said(name: str) -> None:
    scenario = files.load(name)
    if name in UNSAID:
        with pytest.raises(ScenarioError, match=f"^scenario: {name} has {UNSAID[name]}.*, which the explorer cannot show; "):
            of_scenario(scenario)
        return
    state, notes = of_scenario(scenario)
    assert notes == ()
    again = state.scenario(scenario.flows[0].cca)
    if name == "jitter-cliff":  # its words of one direction and its fields of the other hold different numbers of packets
        assert set(state.words) == {"forward", "reverse"}
        assert MODEL.run(again, [3])[0].hash == MODEL.run(scenario, [3])[0].hash
    else:
        assert tuple(state.network) == NETWORKS.get(name, tuple(state.network))
        assert state.words == ({"forward": "none", "reverse": "none"} if state.links else {})
        assert again.address() == scenario.address()


@pytest.mark.parametrize(
    "scenario",
    [
        {"forward": ["netem delay 5ms", "netem delay 20ms"], "bottleneck": "htb rate 10mbit; codel", "reverse": "netem delay 25ms"},
        {"forward": "netem delay 25ms loss state 1%", "bottleneck": {"rate": "10mbit", "burst": 9000}},
        {"forward": {"delay": "25ms", "duplicate": "1%", "at": "router"}, "reverse": {"delay": "5ms"}},
        {"bottleneck": "tbf rate 10mbit burst 6056 limit 60000"},
        {"forward": {"delay": "25ms", "jitter": "5ms", "floor": "22ms"}, "reverse": {"delay": "25ms"}},
    ],
)
def test_what_fields_cannot_say_stays_in_words_and_runs_the_same(scenario: dict[str, Any]) -> None:
    made = Scenario.of({"duration": "500ms", **scenario})
    state, notes = of_scenario(made)
    assert state.words
    assert notes == ()
    assert MODEL.run(state.scenario("cubic"), [5])[0].hash == MODEL.run(made, [5])[0].hash


@pytest.mark.parametrize(
    "words",
    [
        "netem loss gemodel 100% 50%",
        "netem loss gemodel 99.9999% 0.0001%",
        "netem loss gemodel 1% 100%",
        "netem delay 0ms 5ms",
        "netem loss 100%",
        "netem delay 5ms 1ms 25% distribution pareto",
        "netem delay 5ms loss 1% 25%",
        "netem slot 5ms 10ms",
        "jitter delay 5ms 2ms order clamp",
        "netem delay 5ms; red limit 100000 min 6000 max 18000 avpkt 1000 probability 0.1",
    ],
)
def test_whatever_words_tc_takes_are_a_path_that_says_itself(words: str) -> None:
    """Words become fields, or stay words; either way the queues are those that were typed."""
    typed = State(words={"forward": words})
    answer = described(typed)
    again = State.model_validate(answer["state"]).scenario("cubic")
    known = [queue for described_ in [describe(words)] for queue in described_]
    found = [queue for described_ in again.queues("forward") for queue in described_]
    assert [(q.kind, q.delay_ns, q.jitter_ns, q.limit_packets) for q in found] == [(q.kind, q.delay_ns, q.jitter_ns, q.limit_packets) for q in known]
    assert [q.loss for q in found] == pytest.approx([q.loss for q in known], rel=1e-7)


def test_a_recorded_link_has_its_mean_rate(tmp_path: Path) -> None:
    trace = tmp_path / "link.up"
    trace.write_text("".join(f"{ms}\n" for ms in range(1, 1001)))
    state, notes = of_scenario(Scenario.of({"forward": "netem delay 5ms", "bottleneck": {"trace": str(trace)}, "reverse": "netem delay 5ms"}))
    assert notes == ("the trace of the link left out: it has its mean rate here",)
    assert described(state)["says"]["rate"] == "12112kbit"  # a frame of 1514 bytes each millisecond


def test_what_a_state_cannot_say_is_told() -> None:
    scenario = Scenario.of(
        {
            "forward": {"delay": "25ms"},
            "reverse": {"delay": "25ms"},
            "mtu": 9000,
            "flows": [{"sndbuf": "64KiB", "app": {"size": "1MB"}}],
            "changes": [{"where": "forward", "every": "2s", "hold": "100ms", "set": {"outage": True}}],
        }
    )
    _, notes = of_scenario(scenario)
    assert notes == (
        "of the flows left out: sndbuf, app.size",
        "1 change on the way left out: only steps at a time can be said here",
        "mtu left out: it stays at its default here",
    )


def test_a_campaign_is_said_by_its_first_point_and_all_its_controls() -> None:
    state, _ = of_campaign(campaign(None, {"rtt": "40ms", "jitter": "2ms,4ms", "rate": "10mbit"}, {"cca": ["reno", "bbr"]}))
    assert differing(state) == {"rtt": "40ms", "jitter": "2ms", "rate": "10mbit", "cca": ("reno", "bbr")}


def test_words_that_fields_can_say_become_fields() -> None:
    answer = described(State(words={"forward": "netem delay 30ms 3ms loss 1% limit 500", "reverse": "netem delay 30ms limit 500"}))
    assert not answer["state"].words
    said = differing(answer["state"])
    assert said == {
        "rtt": "60ms",
        "jitter": "3ms",
        "jitter_on": "forward",
        "distribution": "uniform",
        "loss": "1%",
        "loss_on": "forward",
        "limit": "500",
    }


def test_words_that_fields_cannot_say_are_kept_and_the_fields_read_from_them() -> None:
    words = {"forward": "netem delay 30ms 3ms", "reverse": "netem delay 20ms", "bottleneck": "htb rate 10mbit; codel"}
    answer = described(State(words=words, loss="1%"))
    assert answer["state"].words == words
    assert answer["says"] == {"rtt": "50ms", "jitter": "3ms", "distribution": "uniform", "loss": "0%", "rate": "10mbit"}
    assert {"rtt", "jitter", "loss", "rate", "queue"} <= set(answer["fixed"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"words": {"forward": "netem dlay 3ms"}}, 'forward: netem: "dlay" is not understood'),
        ({"words": {"x": "netem"}}, "words: 'x' is no part of a path; choose"),
        ({"words": {"bottleneck": "tbf rate 10mbit"}}, "bottleneck: tbf: burst is missing"),
        ({"buffer": "x"}, "buffer: 'x' is not a quantity; write"),
        ({"changes": ["foo"]}, "change: 'foo' is not WHERE@TIME"),
        ({"cca": ["nonsense"]}, "cca: 'nonsense' is not built; choose"),
        ({"words": {"forward": "none", "reverse": "none", "bottleneck": "none"}}, "scenario: it has no path"),
        ({"kernel": "7.7"}, "kernel: no profile '7.7'"),
        ({"loss": "90%", "loss_burst": "2"}, "loss_burst: bursts of 2 packets"),
        ({"words": {"forward": "netem delay ${x}"}}, 'forward: netem: "${x}"'),
        ({"limit": "0"}, "limit: input should be greater"),
        ({"words": {"forward": "netem delay 1ms then"}}, "forward: "),
    ],
)
def test_a_wrong_state_is_one_line_that_names_its_field(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(TcpscapeError) as refusal:
        described(State.model_validate(fields))
    assert str(refusal.value).startswith(message)
    assert "; " in str(refusal.value) or ": add" in str(refusal.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cca": ["/tmp/own.py:Own"]}, "cca: '/tmp/own.py:Own' is Python code"),
        ({"mix": "cubic,/tmp/own.py:Own"}, "cca: "),
        ({"kernel": "host"}, "kernel: host"),
        ({"kernel": " host ,rmem_max=4MiB"}, "kernel: host"),
        ({"rtt": 5}, "rtt: "),
        ({"cca": [f"cubic:beta={n}" for n in range(51)]}, "cca: 51 of them"),
        ({"changes": ["forward@1s: outage"] * 51}, "changes: 51 of them"),
        ({"colour": "red"}, "colour: no such field"),
        ([], "the state: not a mapping"),
    ],
)
def test_a_page_asks_for_no_file_and_nothing_of_this_machine(fields: Any, message: str) -> None:
    with pytest.raises(TcpscapeError, match="^" + re.escape(message)):
        states.of_page(fields)


def test_a_control_that_the_command_line_named_may_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "trusted", {"/tmp/own.py:Own"})
    assert states.of_page({"cca": ["/tmp/own.py:Own"]}).cca == ("/tmp/own.py:Own",)


WILD = (
    "",
    "0",
    "1ns",
    "24h",
    "1e300bdp",
    "1e-300bdp",
    "1e400ms",
    "-5ms",
    "50",
    "nan",
    "1TiB",
    "10tbit",
    "1bit",
    "99.9%",
    "100%",
    "1e300",
    "${x}",
    "<b>",
    "\x00",
    "netem delay 5ms",
    "a|b",
    "1,2",
    "0..5ms/1ms",
    "fq_codel",
    "\u202e5ms",
    "5 ms",
    "٥ms",
    "x" * 5000,
)


@given(st.data())
@settings(max_examples=80, deadline=None, derandomize=True, database=None)
def test_whatever_a_field_holds_there_is_an_answer_or_one_line(data: st.DataObject) -> None:
    texts_ = st.sampled_from(WILD)
    names = [name for name in State.model_fields if isinstance(getattr(STANDARD, name), str)]
    fields: dict[str, Any] = data.draw(st.dictionaries(st.sampled_from(names), texts_, max_size=4))
    fields |= data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "cca": st.lists(texts_, max_size=2),
                "changes": st.lists(texts_, max_size=2),
                "words": st.dictionaries(st.sampled_from([*PARTS, "x"]), texts_, max_size=3),
            },
        )
    )
    for ask in (described, *(lambda state, axis=axis: _along(state, axis) for axis in axes.AXES)):
        try:
            ask(states.of_page(fields))
        except TcpscapeError as refusal:
            assert "\n" not in str(refusal)  # noqa: PT017


def _along(state: State, name: str) -> None:
    """What a curve and a map make of an axis before anything runs."""
    axis = axes.find(name, state)
    axis.document(state, ())
    if any(axis.missing(state)):
        return
    levels = axis.levels(state)
    assert len(levels) < 3000
    if len(levels) > 1:
        state.campaign(axes={name: list(levels)}).cases()
    axis.cells(state, 20)


# What the page begins with: presets are what they say, and every field, choice and axis is one of the state's.


DOCUMENT = start.document()


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.id)
def test_a_preset_is_a_path_that_runs(preset: Preset) -> None:
    state = of_page(preset.state)
    for cca in state.cca:
        MODEL.check(state.scenario(cca))
        assert MODEL.seconds(state.scenario(cca)) < 2, "a trial of a preset takes no longer than a moment"
    assert preset.note.endswith(".")
    assert preset.source


def test_presets_have_names_of_their_own_and_hold_only_what_differs() -> None:
    assert len({preset.id for preset in PRESETS}) == len(PRESETS)
    standard = State()
    for preset in PRESETS:
        assert [name for name, value in preset.state.items() if value == getattr(standard, name)] == []


@pytest.mark.parametrize("name", files.gallery())
def test_a_preset_of_the_gallery_is_the_very_scenario(name: str) -> None:
    known = files.load(name)
    if name not in {preset.id for preset in PRESETS}:
        assert known.is_topology or name in (*UNSAID, "upload-and-call", "video-call")  # no sliders say these
        return
    (preset,) = (preset for preset in PRESETS if preset.group == IN_GALLERY and preset.id == name)
    scenario = preset.whole().scenario(known.flows[0].cca)
    if (
        name == "jitter-cliff"
    ):  # the file says one direction in words, which the page's sliders could not move; netem's limit differs, and is never reached
        assert [trial.hash for trial in MODEL.run(scenario, range(3))] == [trial.hash for trial in MODEL.run(known, range(3))]
    else:
        assert scenario.address() == known.address()


def test_fields_and_choices_are_those_of_the_state() -> None:
    names = set(State.model_fields)
    assert set(DOCUMENT["fields"]) <= names
    assert {axis["axis"] for axis in DOCUMENT["axes"]} <= names
    assert DOCUMENT["state"] == State()


@pytest.mark.parametrize("name", [name for name, field in start.FIELDS.items() if field.low])
def test_the_ends_of_a_slider_are_values_of_its_field(name: str) -> None:
    field = start.FIELDS[name]
    for end in ("low", "high"):
        state = State(**{"loss": "1%", name: getattr(field, end)})
        MODEL.check(state.scenario("cubic"))
    assert 0 < axes.place(field.low) < axes.place(field.high)
    if field.standard:
        assert (
            State(**{"loss": "1%" if name != "loss" else "", name: ""}).scenario("reno").address()
            == State(**{"loss": "1%" if name != "loss" else "", name: field.standard}).scenario("reno").address()
            or name == "buffer"
        )


@pytest.mark.parametrize(("name", "value"), [(name, choice.value) for name, field in DOCUMENT["fields"].items() for choice in field.choices])
def test_every_choice_runs(name: str, value: str) -> None:
    state = State(jitter="1ms", loss="1%", duration="100ms", **{name: value})
    assert MODEL.run(state.scenario("cubic"), [0])[0].flows


def test_every_queue_of_the_registry_has_a_title_or_is_none_of_a_bottleneck() -> None:
    offered = {choice.value for choice in DOCUMENT["fields"]["queue"].choices} - {""}
    for name, _ in Model().queues():
        assert (name in offered) != (name in start.NO_QUEUES)
        assert name in start.NO_QUEUES or name in start.QUEUES
    for name in offered:
        assert queues.check_queue(name) == name


def test_every_control_is_there_with_a_look_of_its_own() -> None:
    controls = DOCUMENT["controls"]
    assert {control["name"] for control in controls} == set(MODEL.ccas())
    assert len({(c["colour"], c["dash"], c["marker"]) for c in controls}) == len(controls)
    assert all(control["about"] for control in controls)


@pytest.mark.parametrize("axis", list(axes.AXES))
@pytest.mark.parametrize("preset", PRESETS[::3], ids=lambda preset: preset.id)
def test_the_levels_of_an_axis_hold_the_own_value_and_rise(axis: str, preset: Preset) -> None:
    state = preset.whole()
    found = axes.find(axis, state)
    if any(found.missing(state)):
        return
    levels = found.levels(state)
    numbers = [axes.place(text) for text in levels]
    assert numbers == sorted(set(numbers))
    assert 7 <= len(levels) <= 18
    assert found.here(state) in levels or not found.here(state)
    for text in (*levels, *found.cells(state, 12)):
        state.replace(**{axis: text}).scenario("cubic")
    cells = [axes.place(text) for text in found.cells(state, 20)]
    assert (cells, len(cells)) == (sorted(set(cells)), 20)
