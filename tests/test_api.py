"""The Python interface: the commands as functions, complete, documented, with results that show themselves."""

import inspect
import json
import pickle
import re

import polars as pl
import pytest

import tcpscape
from tcpscape.campaign import record
from tcpscape.errors import MOST_MESSAGE, MOST_SHOWN, StoreError, TcpscapeError, printable, refuse, shown
from tcpscape.words.advice import reason

FUNCTIONS = ("run", "sweep", "advise", "advise_calls", "cliff", "bound", "diagnose", "emulate", "compare", "plot", "load")
PATH = {"forward": "netem delay 20ms loss 0.2%", "bottleneck": {"rate": "20mbit", "buffer": "2bdp"}, "reverse": "netem delay 20ms"}


def quick(**options):
    return tcpscape.run(**{**PATH, "duration": "2s", "seeds": 3, "engine": "mock", **options})


@pytest.mark.parametrize("name", tcpscape.__all__)
def test_every_public_name_is_there_and_documented(name):
    thing = getattr(tcpscape, name)
    assert name in dir(tcpscape)
    assert name == "__version__" or inspect.getdoc(thing)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_suffices(name):
    function = getattr(tcpscape, name)
    text, parameters = inspect.getdoc(function), inspect.signature(function).parameters
    assert ":raises TcpscapeError:" in text
    assert not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    assert [p for p in parameters if f":param {p}:" not in text] == []
    assert all(p.annotation is not inspect.Parameter.empty for p in parameters.values())


@pytest.mark.parametrize("command", ["run", "sweep", "advise", "cliff", "emulate"])
def test_the_functions_have_the_options_of_the_commands(cli, command):
    """Whatever the command line says, Python can say by the same name."""
    options = {
        {"from": "source"}.get(option, option.replace("-", "_"))
        for option in re.findall(r"^  --([a-z][a-z-]*)", cli(command, "--help").out, re.MULTILINE)
    }
    on_a_terminal_alone = (
        {"help", "json", "check", "report", "pcap"} if command != "emulate" else {"help", "json", "live", "control", "verbose", "quiet"}
    )
    on_a_terminal_alone |= {"upload", "router", "device", "link"} if command == "advise" else set()  # in Python a function of its own, advise_calls
    assert len(options) > 10
    assert options - on_a_terminal_alone - {"axis"} <= set(inspect.signature(getattr(tcpscape, command)).parameters)


def test_the_same_numbers_as_the_command_line(cli, need_model):
    words = ("--forward", PATH["forward"], "--reverse", PATH["reverse"], "--duration", "2s", "--seeds", "2", "--cca", "cubic,bbr", "--json")
    lines = cli("run", *words).lines
    outcome = tcpscape.run(forward=PATH["forward"], reverse=PATH["reverse"], duration="2s", seeds=2, cca=["cubic", "bbr"])
    assert [json.loads(json.dumps(t.to_dict())) for t in outcome.trials] == lines


def test_an_outcome_gives_frames_and_cells():
    outcome = quick(cca="cubic,bbr", flows=2)
    assert isinstance(outcome.frame(), pl.DataFrame)
    assert (outcome.frame().height, outcome.flows().height) == (2, 2 * 3 * 2)
    assert outcome.find("bbr").median().n == 3
    assert (len(outcome.trials), outcome.trial_count) == (6, 6)
    assert pickle.loads(pickle.dumps(outcome)).trials == outcome.trials


def test_an_outcome_shows_itself():
    outcome = quick(cca=["cubic", "bbr"])
    text, page = repr(outcome), outcome._repr_html_()
    assert text.splitlines()[0].startswith("words: goodput")
    assert len(text.splitlines()) == 6  # a title, the columns, two rows, two caveats
    assert page.count("<tr>") == 3
    assert "caveat: mock engine" in page
    assert "<script" not in quick(cca=["cubic"])._repr_html_()


@pytest.mark.parametrize(
    ("seeds", "numbers"), [(2, [0, 1]), (range(5, 8), [5, 6, 7]), ([1, 4, 7], [1, 4, 7]), ("5..6", [5, 6]), ([0], [0]), ((3,), [3])]
)
def test_seeds_in_every_form(seeds, numbers):
    assert [t.seed for t in quick(seeds=seeds).trials] == numbers


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"seeds": []}, "seeds: no trial measures nothing"),
        ({"cca": "nosuch"}, "cca: 'nosuch' is not built"),
        ({"duration": "10"}, "duration: "),
        ({"mix": "cubic,bbr", "cca": "reno"}, "mix: it says congestion controls"),
        ({"engine": "nosuch"}, "engine: 'nosuch' is unknown"),
        ({"executor": "nosuch"}, "executor: 'nosuch' is unknown"),
        ({"flows": 0}, "flows: "),
        ({"app": "fast"}, "rate: "),
    ],
)
def test_what_makes_no_sense_is_one_line(options, line):
    with pytest.raises(TcpscapeError, match="^" + re.escape(line)):
        quick(**options)


def test_nothing_to_run_is_refused():
    with pytest.raises(TcpscapeError, match="scenario: none given"):
        tcpscape.run(seeds=1)


def test_a_scenario_is_changed_by_options():
    changed = tcpscape.run("baseline", duration="2s", rcvbuf="64KiB", seeds=1, engine="mock").cells[0].scenarios[0]
    plain = tcpscape.load("baseline")
    assert (changed.duration, changed.flows[0].rcvbuf) == (2 * 10**9, 65536)
    assert changed.forward == plain.forward


def test_what_is_kept_is_loaded_and_not_run_again(tmp_path):
    first = quick(out=tmp_path / "out", cca=["cubic", "bbr"])
    calls = []
    again = quick(out=tmp_path / "out", cca=["cubic", "bbr"], progress=lambda done, total: calls.append((done, total)))
    assert again.trials == first.trials
    assert calls == [(6, 6)]
    kept = tcpscape.load(tmp_path / "out")
    assert isinstance(kept, record.Record)
    assert [cell.cca for outcome in kept.outcomes for cell in outcome.cells] == ["cubic", "bbr"]


def test_a_sweep_has_its_axes(tmp_path):
    outcome = tcpscape.sweep(rtt="40ms", jitter=["0ms", "4ms"], loss="0%,1%", cca="cubic", seeds=2, engine="mock", out=tmp_path)
    assert (outcome.axes, len(outcome.cells)) == (("jitter", "loss"), 4)
    assert [cell.at["jitter"] for cell in outcome.curve("jitter", "cubic", loss="1%")] == ["0ms", "4ms"]
    assert tcpscape.sweep({"conditions": {"rtt": "40ms"}}, jitter="0..4ms/4ms", seeds=1, engine="mock").axes == ("jitter",)
    with pytest.raises(TcpscapeError, match="rtt: missing"):
        tcpscape.sweep(jitter="0..4ms/4ms")


def test_advice_and_cliffs_are_those_of_the_commands(cli):
    options = {"rtt": "26ms", "jitter": "7ms", "cca": "cubic,bbr", "engine": "mock"}
    words = [w for k, v in options.items() for w in (f"--{k}", v)]
    line = json.loads(cli("advise", *words, "--json").out)
    advice = tcpscape.advise(**options)
    assert (advice.choice, reason(advice)) == (line["choice"], line["why"])
    lines = cli("cliff", "--rtt", "26ms", "--cca", "cubic", "--engine", "mock", "--most", "0", "--json").lines
    cliffs = tcpscape.cliff(rtt="26ms", cca="cubic", engine="mock", most=0)
    assert [c.edge.value for c in cliffs.values()] == [x["edge"] for x in lines]
    with pytest.raises(TcpscapeError, match="jitter: it is what the search varies"):
        tcpscape.cliff(rtt="26ms", jitter="1ms", engine="mock")


def test_the_bound(cli):
    line = json.loads(cli("bound", "--from", "60mbit", "--to", "20mbit", "--rtt", "50ms", "--json").out)
    assert tcpscape.bound("60mbit", "20mbit", rtt="50ms").spike_ns / 1e6 == line["spike_ms"] == 100
    assert tcpscape.bound("60mbit", "20mbit", flows={"50ms": 0.5, "30ms": 0.5}).d_ns == 40e6
    with pytest.raises(TcpscapeError, match="rtt: none given"):
        tcpscape.bound("60mbit", "20mbit")


def test_results_are_compared(tmp_path):
    one, other = quick(cca="cubic"), quick(cca="cubic", seeds=range(10, 20), out=tmp_path)
    answer = tcpscape.compare(one, tmp_path)
    assert len(answer.rows) == 1
    assert tcpscape.compare(one, other).rows[0].medians == answer.rows[0].medians


def test_a_result_is_drawn(tmp_path):
    outcome = tcpscape.sweep(rtt="40ms", jitter="0..8ms/4ms", cca="cubic,bbr", seeds=3, engine="mock")
    figure = tcpscape.plot(outcome, "curve", file=tmp_path / "curve.png")
    assert figure.axes
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(TcpscapeError, match="figures: 'nosuch' is unknown"):
        tcpscape.plot(outcome, "nosuch")
    with pytest.raises(TcpscapeError, match="figure: 'spike' needs data that the result lacks"):
        tcpscape.plot(outcome, "spike")


def test_every_answer_shows_itself(tmp_path):
    advice = tcpscape.advise(rtt="26ms", jitter="7ms", cca="cubic,bbr", engine="mock", seeds=4)
    assert repr(advice).startswith(f"Keep {advice.choice}: ")
    cliffs = tcpscape.cliff(rtt="26ms", cca="cubic", engine="mock", most=0)
    assert "edge, jitter [95 %]" in repr(cliffs["cubic"])
    quick(out=tmp_path)
    comparison = tcpscape.compare(quick(seeds=5), tmp_path)
    assert comparison.rows[0].verdict in repr(comparison)
    kept = tcpscape.load(tmp_path)
    assert repr(kept) == repr(kept.outcomes[0])
    assert len(repr(kept.outcomes[0].cells[0])) < 150
    assert len(repr(comparison.rows[0])) < 1500
    assert tcpscape.compare(kept, kept).differs == 0
    assert tcpscape.plot(kept, "bars").axes
    quick(reverse="netem delay 99ms", out=tmp_path)
    with pytest.raises(TcpscapeError, match=r"result: the directory has 2 parts; choose one of \.parts: "):
        tcpscape.plot(tcpscape.load(tmp_path))
    spike = tcpscape.bound("60mbit", "20mbit", rtt="50ms")
    assert "60mbit to 20mbit" in repr(spike)
    for answer in (advice, cliffs["cubic"], comparison, kept, spike):
        page = answer._repr_html_()
        assert "<table>" in page
        assert page.count("<td") == page.count("</td>") > 0


def test_a_table_escapes_what_it_shows():
    from tcpscape.text.table import Table

    page = Table(("a<b>",), [("<script>",)], notes=["x & y"]).html()
    assert "a&lt;b&gt;" in page
    assert "&lt;script&gt;" in page
    assert "x &amp; y" in page


def test_what_runs_in_no_real_time_has_nothing_to_verify():
    with pytest.raises(TcpscapeError, match="verify: the mock engine does not run in real time"):
        tcpscape.run(forward=PATH["forward"], engine="mock", verify=True)


# Messages for the user: one line, no control characters, whatever they are made of.


WILD = [
    "50\x1b[2J",
    "x" * 10**6,
    10**6000,
    -(10**6000),
    [10**6000],
    [[[[[[[[1]]]]]]]],
    {"a": ["x" * 1000] * 1000},
    b"\0" * 5000,
    "\ud800",
    "é\u202e",
    "two\nlines",
    float("nan"),
    None,
    True,
    {1: {2: {3: {4: {5: 6}}}}},
    "\u2028",
]


@pytest.mark.parametrize("value", WILD, ids=range(len(WILD)))
def test_a_shown_value_is_short_and_printable(value: object) -> None:
    text = shown(value)
    assert len(text) < 3 * MOST_SHOWN
    assert text.isprintable()


def test_plain_values_are_shown_as_python_writes_them() -> None:
    assert [shown(v) for v in ("10 parsecs", 5, 1.5, True, [1, "a"], {"a": 1})] == ["'10 parsecs'", "5", "1.5", "True", "[1, 'a']", "{'a': 1}"]
    assert shown("x" * 1000).endswith("… (1000 characters)")


@pytest.mark.parametrize("value", WILD, ids=range(len(WILD)))
def test_every_message_is_one_printable_line(value: object) -> None:
    text = value if isinstance(value, str) else shown(value)
    message = str(StoreError(f"name: {text} is wrong; correct it"))
    assert len(message) < MOST_MESSAGE + 10
    assert message.isprintable()
    assert message.encode()


def test_harmless_characters_stay() -> None:
    assert printable("50 µs – é\u202f%") == "50 µs – é\u202f%"
    assert str(TcpscapeError("a\tb\nc")) == "a b c"


@pytest.mark.parametrize("value", ["9" * 5000, "word " * 2000, "/tmp/" + "a" * 3000 + "/mine.yaml", "[" * 10_000])
def test_a_message_is_short_and_keeps_its_field_and_its_fix(value):
    message = str(TcpscapeError(f"field: {value} is wrong; do this instead"))
    assert len(message) <= MOST_MESSAGE
    assert message.startswith("field: ")
    assert message.endswith(" is wrong; do this instead")


def test_a_long_field_is_cut_and_the_fix_stays():
    with pytest.raises(TcpscapeError, match="is wrong; correct it") as e:
        refuse("x" * 10_000, "is wrong", "correct it")
    assert len(str(e.value)) < 200
    assert str(e.value).endswith("x…: is wrong; correct it")


@pytest.mark.parametrize("words", [("man",), ("schema", "--all")])
def test_a_directory_with_control_characters_is_named_without_them(words, cli, tmp_path):
    said = cli(*words, "--out", f"{tmp_path}/a\x1b[31m")
    assert "\x1b" not in said.out + said.err
