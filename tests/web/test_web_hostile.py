"""What a page may send that is no page's: odd values in every request and every question, and names of code and files."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tcpscape import engines
from tcpscape.errors import TcpscapeError
from tcpscape.scenario.fields import validate
from tcpscape.web import download, routes, take
from tcpscape.web.pool import Cancelled, Pool, Work
from tcpscape.web.questions import KINDS
from tcpscape.web.routes import Api, Context, Download, Post
from tcpscape.web.state import State, of_page
from tcpscape.web.stream import Block, finite

pytestmark = pytest.mark.skipif(engines.make("model").unavailable() is not None, reason="the extension module is not built")
PAGE = "page-0000"
ODD = (
    None,
    True,
    0,
    -1,
    3,
    10**9,
    2**63,
    2**64,
    10**19,
    0.5,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "0",
    "-1",
    "1",
    "nan",
    "inf",
    "1e400",
    "1e-400",
    "0ms",
    "1ns",
    "10ms",
    "1e400ms",
    "1e-320s",
    "9999999999s",
    "24h",
    "1bit",
    "1tbit",
    "10%",
    "1e300bdp",
    "0bdp",
    "64KiB",
    "cubic",
    "cubic,bbr",
    "cubic*3,bbr",
    "cubic*1000000000",
    "bbr@1e9s",
    "0..5ms/1ms",
    "0..9999999ms/1ns",
    "1..1000000000",
    "a|b",
    "jitter",
    "cv",
    "netem delay 5ms",
    "none",
    "then",
    "٥ms",
    "x" * 3000,
    "\x00",
    "a\nb",
    "../../etc/passwd",
    "${x}",
    "ratio",
    "virtual",
    [],
    {},
    [1],
    ["cubic"],
    ["1ms", "1ms"],
    ["10ms", "5ms", "fast"],
    ["0..9999ms/1ms"],
    ["1ms", "1000us"],
    ["x"] * 60,
    {"a": 1},
    {"forward": "netem delay 10ms"},
    {"bottleneck": "tbf rate 1mbit burst 1 limit 1"},
    {"jitter": []},
    {"jitter": ["0ms", "1ms"], "rtt": ["10ms"]},
    [[[[]]]],
    {"rtt": "20ms", "duration": "100ms"},
)
"""Values that some field would not expect."""
TYPES: dict[str, Any] = {"tuple": list, "dict": dict, "int": int, "float": (int, float), "Literal": str, "str": str}
"""What belongs to a field whose annotation has a word."""
SHORT = {"rtt": "20ms", "rate": "5mbit", "duration": "100ms"}
ROUNDS = 40
"""Requests of each kind."""


class Enough(Cancelled):
    """A question has said enough."""


class Holder:
    """A page that opens nothing."""

    def hold(self, opened: Any) -> None:
        """Takes what is opened."""


def some(model: Any, dice: random.Random, known: dict[str, Any]) -> dict[str, Any]:
    """Values for a body: what is known, and odd ones for a few of its fields, most of them of the field's type."""
    fields = {name: field for name, field in model.model_fields.items() if name not in ("page", "kind")}
    chosen = dice.sample(sorted(fields), min(len(fields), dice.randrange(1, 4)))
    return {**known, **{name: odd(str(fields[name].annotation), dice) for name in chosen}}


def odd(annotation: str, dice: random.Random) -> Any:
    kinds = next((of for word, of in TYPES.items() if word in annotation), object) if dice.random() < 0.8 else object
    return dice.choice([value for value in ODD if isinstance(value, kinds)])


def odd_state(dice: random.Random) -> Any:
    return some(State, dice, SHORT) if dice.random() < 0.8 else dice.choice(ODD)


def expect_a_line_at_most(answer: Callable[[], None], asked: str) -> None:
    """Fails where answering ends in anything but nothing or a line for the user."""
    line = ""
    try:
        answer()
    except TcpscapeError as e:
        line = str(e)
    except Exception as e:
        pytest.fail(f"{type(e).__name__}: {e}: {asked}")
    assert not line or line.isprintable(), (line, asked)


@pytest.fixture
def pool():
    made = Pool(2)
    yield made
    made.close()


@pytest.mark.parametrize("kind", KINDS)
def test_questions_with_odd_options_are_answered_or_refused_in_a_line(kind, pool):
    dice = random.Random(kind)
    for _ in range(ROUNDS):
        options, state = some(KINDS[kind], dice, {}), odd_state(dice) if dice.random() < 0.5 else SHORT
        sent: list[Block] = []

        def send(block: Block, sent: list[Block] = sent) -> None:
            block.encode("kind", 1)
            sent.append(block)
            if len(sent) > 3:
                raise Enough

        def answer(options: Any = options, state: Any = state, send: Any = send) -> None:
            work = Work(pool, send)
            try:
                validate(KINDS[kind], options, "the options").answer(of_page(state), work, None)
            except Enough:
                pass
            finally:
                work.cancel()

        expect_a_line_at_most(answer, f"{options!r} about {state!r}")


def posts() -> list[Post]:
    api = Api((), routes.MODULES)
    api.load()
    return [route for route in api._known.values() if isinstance(route, Post) and route.name not in ("ask", "cancel")]


@pytest.mark.parametrize("route", posts(), ids=lambda route: route.name)
def test_requests_with_odd_values_are_answered_or_refused_in_a_line(route, pool):
    dice = random.Random(route.name)
    context = Context(Holder(), SimpleNamespace(pool=pool, opened=None))
    for _ in range(ROUNDS):
        body = {"page": PAGE, **some(route.body, dice, {"state": SHORT, "cca": "cubic"} if "state" in route.body.model_fields else {})}
        if "state" in body and dice.random() < 0.5:
            body["state"] = odd_state(dice)

        def answer(body: Any = body) -> None:
            result = route.answer(context, validate(route.body, body, "the request"))
            json.dumps(finite(result) if not isinstance(result, Download) else result.name, allow_nan=False)

        expect_a_line_at_most(answer, repr(body))


@pytest.fixture
def own_code(tmp_path: Path) -> str:
    """The name of a class in a file; it is there for whoever imports it."""
    file = tmp_path / "own.py"
    file.write_text("raise SystemError('this file was run')\nclass Own:\n    def on_ack(self, sample, window): ...\n")
    return f"{file}:Own"


WAYS = {
    "the state": lambda own: ("answer", {}, {"cca": [own]}),
    "the mixture": lambda own: ("mix", {}, {"mix": f"{own}*2,bbr"}),
    "a map's first": lambda own: ("map", {"first": own, "quantity": "goodput"}, {}),
    "a map's second": lambda own: ("map", {"second": own}, {}),
    "a pinned state": lambda own: ("inside", {"pinned": {"cca": [own]}}, {}),
    "a level": lambda own: ("curve", {"axis": "cca", "levels": [own]}, {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_question_runs_code_that_the_command_line_did_not_name(way, own_code, pool):
    kind, options, state = WAYS[way](own_code)
    with pytest.raises(TcpscapeError, match=r"is Python code|is unknown"):
        validate(KINDS[kind], options, "the options").answer(of_page({**SHORT, **state}), Work(pool, lambda _: None), None)


@pytest.mark.parametrize("kind", download.KINDS.values(), ids=lambda kind: kind.name)
@pytest.mark.parametrize("where", ["cca", "state", "mix"])
def test_no_file_of_a_run_needs_code_that_the_command_line_did_not_name(kind, where, own_code, pool):
    state, cca = {"cca": (SHORT, own_code), "state": ({**SHORT, "cca": [own_code]}, own_code), "mix": ({**SHORT, "mix": own_code}, "cubic")}[where]
    with pytest.raises(TcpscapeError, match="is Python code"):
        download._answer(
            kind, Context(Holder(), SimpleNamespace(pool=pool)), validate(download.Asking, {"page": PAGE, "state": state, "cca": cca}, "the request")
        )


def test_no_copy_has_code_that_the_command_line_did_not_name(own_code):
    with pytest.raises(TcpscapeError, match="is Python code"):
        take.take(None, validate(take.Take, {"page": PAGE, "state": {"cca": [own_code]}}, "the request"))


@pytest.mark.parametrize("axis", ["cca", "kernel", "engine", "queue", "words", "flow.cca"])
def test_only_the_page_s_axes_are_taken_along(axis):
    with pytest.raises(TcpscapeError, match=f"axis: '{axis}' is unknown"):
        take.take(None, validate(take.Take, {"page": PAGE, "state": SHORT, "axes": {axis: ["host"]}}, "the request"))


@pytest.mark.parametrize(("mix", "rows"), [("cubic", 20_000), ("cubic*50", 20_000), ("cubic*1000", 1_000), ("cubic*3000,bbr", 333)])
def test_runs_of_many_flows_are_sampled_less_often(mix, rows):
    scenario = of_page({**SHORT, "duration": "2s", "mix": mix}).scenario("cubic")
    for kind, window in (("inside", {}), ("detail", {"start_s": 0, "stop_s": 2})):
        question = validate(KINDS[kind], {"samples": 20_000, **window}, "the options")
        assert scenario.duration // question._interval_ns(scenario) == rows


def test_shares_of_too_many_flows_are_refused(pool):
    with pytest.raises(TcpscapeError, match="mix: 20 runs of 1000 flows"):
        KINDS["mix"]().answer(of_page({**SHORT, "mix": "cubic*1000"}), Work(pool, lambda _: None), None)


@pytest.mark.parametrize("engine", ["live:netem+root", "live:emulator+root"])
def test_a_page_does_not_leave_the_namespaces(engine, pool):
    with pytest.raises(TcpscapeError, match="engine: "):
        KINDS["check"](engine=engine).answer(of_page(SHORT), Work(pool, lambda _: None), None)
