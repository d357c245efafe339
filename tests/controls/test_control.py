"""Congestion controls with parameters, ECN and listeners: from the words to the plan and back into the results."""

import pytest

import tcpscape
from tcpscape import engines
from tcpscape.controls import spelling
from tcpscape.controls.spelling import Param
from tcpscape.engines.mock import CONTROLS
from tcpscape.engines.plan import build as plan
from tcpscape.errors import TcpscapeError
from tcpscape.scenario import files
from tcpscape.scenario.grammar import parse_mix
from tcpscape.scenario.scenario import Scenario

PARAMS = (
    Param("hystart", "Whether slow start ends at rising delays", 1, 0, 1),
    Param("beta", "Window after a loss, of 1024", 717, 1, 1023),
    Param("delta", "Rise of the delay, µs, that ends it", 4000, 0, 1_000_000),
    Param("rate", "Pacing rate, bytes/s; 0 for none", 0, 0, 10**12),
    Param("window", "Constant window (bytes)", 0, 0, 1 << 30),
    Param("share", "Of the rate, %", 100, 0, 100),
)
PATH = {"forward": "netem delay 10ms", "reverse": "netem delay 10ms"}


@pytest.mark.parametrize(
    ("said", "label"),
    [
        ("cubic", "cubic"),
        (" cubic : hystart = off ", "cubic:hystart=0"),
        ("cubic:hystart=True", "cubic:hystart=1"),
        ("cubic:hystart=no:beta=819", "cubic:beta=819:hystart=0"),
        ({"name": "cubic", "hystart": False, "beta": 819}, "cubic:beta=819:hystart=0"),
        ({"name": "bbr"}, "bbr"),
        ("fixed:rate=10mbit", "fixed:rate=10mbit"),
        ("x:y=-3", "x:y=-3"),
        ("x:share=50%", "x:share=50%"),
    ],
)
def test_one_spelling(said, label):
    assert (spelling.label(said), spelling.label(label)) == (label, label)


@pytest.mark.parametrize("value", [7, None, {"hystart": 1}])
def test_what_is_neither_a_label_nor_a_name_with_parameters_is_one_line(value):
    with pytest.raises(TcpscapeError, match=r"^cca.*; [^\n]*$"):
        spelling.label(value)


@pytest.mark.parametrize(
    ("said", "values"),
    [
        ("x", {}),
        ("x:hystart=0", {"hystart": 0}),
        ("x:delta=2ms", {"delta": 2000}),
        ("x:delta=2000", {"delta": 2000}),
        ("x:rate=8mbit", {"rate": 10**6}),
        ("x:rate=1MB/s", {"rate": 10**6}),
        ("x:window=64KiB", {"window": 1 << 16}),
        ("x:share=50%", {"share": 50}),
    ],
)
def test_values_in_the_parameters_own_unit(said, values):
    assert spelling.resolve(said, PARAMS) == values


@pytest.mark.parametrize(
    "said", ["x:nosuch=1", "x:hystart=2", "x:beta=0", "x:beta=1ms", "x:delta=1mbit", "x:delta=1ns", "x:hystart=1.5", "x:share=0.5%"]
)
def test_bad_values_name_the_parameter(said):
    with pytest.raises(TcpscapeError, match=r"^cca\.[a-z]+: .*; "):
        spelling.resolve(said, PARAMS)


def test_lists_and_mixtures():
    assert spelling.parse_labels("cubic:hystart=off,cubic,bbr") == ["cubic:hystart=0", "cubic", "bbr"]
    with pytest.raises(TcpscapeError, match="twice"):
        spelling.parse_labels("cubic:hystart=off,cubic:hystart=0")
    assert parse_mix("cubic:hystart=off:beta=819*2,bbr@5s-8s")[0] == {"cca": "cubic:hystart=off:beta=819", "count": 2}
    assert parse_mix("cubic:hystart=off@5s")[0] == {"cca": "cubic:hystart=off", "count": 1, "start": "5s"}


def test_a_scenario_keeps_them(tmp_path):
    flows = [{"cca": {"name": "cubic", "hystart": False}, "count": 2, "listener": "reno"}, {"cca": "bbr"}]
    one = Scenario.of({**PATH, "ecn": True, "flows": flows})
    assert (one.cca, one.ccas) == ("bbr+cubic:hystart=0", ("cubic:hystart=0", "cubic:hystart=0", "bbr"))
    (tmp_path / "s.yaml").write_text(files.dump(one))
    again = files.load(tmp_path / "s.yaml")
    assert (again.model_copy(update={"name": one.name}), again.address()) == (one, one.address())
    assert len({s.address() for s in (one, one.with_cca("cubic"), one.with_cca("cubic:hystart=off"), one.model_copy(update={"ecn": False}))}) == 4
    assert one.with_cca("cubic:hystart=off").address() == one.with_cca("cubic:hystart=0").address()


def test_the_plan_says_them():
    flows = [{"cca": "cubic:hystart=off", "listener": "reno"}, {"cca": "cubic"}]
    said = plan(Scenario.of({**PATH, "ecn": True, "flows": flows}), CONTROLS)
    assert said["ecn"] is True
    assert (said["flows"][0]["cca"], said["flows"][0]["cca_params"], said["flows"][0]["listener"]) == ("cubic", {"hystart": 0}, "reno")
    assert not {"cca_params", "listener"} & set(said["flows"][1])


@pytest.mark.parametrize("name", ["mock", "model"])
def test_results_tell_variants_apart(name, cli):
    engine = engines.REGISTRY[name]()
    if engine.unavailable():
        pytest.skip(f"engine {name}: {engine.unavailable()}")
    if name == "model" and not any(p.name == "hystart" for c in engine.registry() for p in c.params if c.name == "cubic"):
        pytest.skip("the model's cubic has no parameter hystart")
    words = ("run", "--forward", "netem delay 10ms", "--duration", "1s", "--seeds", "2", "--engine", name)
    got = cli(*words, "--cca", "cubic:hystart=off,cubic", "--json")
    assert [(line["cca"], line["flows"][0]["cca"]) for line in got.lines] == [("cubic:hystart=0",) * 2] * 2 + [("cubic",) * 2] * 2
    table = cli(*words, "--mix", "cubic:hystart=off*2,cubic").out
    assert "cubic:hystart=0      2" in table
    assert "cubic                1" in table
    frame = tcpscape.run({**PATH, "duration": "1s"}, cca=["cubic", "cubic:hystart=off"], seeds=[0], engine=name).flows()
    assert frame["cca"].to_list() == ["cubic", "cubic:hystart=0"]


def test_ecn_and_listener_are_options(cli):
    got = cli("run", "--forward", "netem delay 10ms", "--engine", "mock", "--ecn", "--listener", "reno", "--seeds", "1", "--json")
    assert (got.status, len(got.lines)) == (0, 1)


def test_python_takes_mappings_and_ecn():
    path = {**PATH, "duration": "1s"}
    frame = tcpscape.run(path, cca={"name": "cubic", "hystart": False}, seeds=[0], engine="mock").flows()
    assert frame["cca"].to_list() == ["cubic:hystart=0"]
    plain, marked = (tcpscape.run(path, seeds=[0], engine="mock", ecn=on).trials[0].address for on in (None, True))
    assert plain != marked
