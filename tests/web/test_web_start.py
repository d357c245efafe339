"""What the page begins with: presets are what they say, and every field, choice and axis is one of the state's."""

from __future__ import annotations

import pytest

from tcpscape import engines
from tcpscape.engines.model import Model
from tcpscape.scenario import files
from tcpscape.scenario import queue as queues
from tcpscape.web import axes, start
from tcpscape.web.presets import IN_GALLERY, PRESETS, Preset
from tcpscape.web.state import State, of_page

MODEL = engines.make("model")
pytestmark = pytest.mark.skipif(MODEL.unavailable() is not None, reason="the extension module is not built")
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
    if known.is_topology or known.transfers or known.probes:  # no sliders say these
        assert name not in {preset.id for preset in PRESETS}
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
        assert State(**{"loss": "1%" if name != "loss" else "", name: ""}).scenario("reno").address() == State(
            **{"loss": "1%" if name != "loss" else "", name: field.standard}).scenario("reno").address() or name == "buffer"  # fmt: skip


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
        assert queues.check(name) == name


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
    assert cells == sorted(set(cells))
    assert len(cells) == 20
