"""The language of conditions on a control's states and variables, on a record written by hand."""

from types import SimpleNamespace

import polars as pl
import pytest

from tcpscape.errors import ScenarioError
from tcpscape.findings.conditions import Expression, Record, Statement, Steps, Unknown

STATES = ("UP", "DOWN", "REST")
ROWS = pl.DataFrame(
    {
        "t_ns": [0, 100_000_000, 200_000_000, 300_000_000, 400_000_000],
        "flow": [0] * 5,
        "state": [0.0, 0.0, 1.0, 1.0, 2.0],
        "round": [0.0, 1.0, 2.0, 3.0, 5.0],
        "x": [1.0, 2.0, 4.0, 8.0, 16.0],
    }
)


@pytest.fixture
def record():
    trial = SimpleNamespace(control=ROWS, control_states={"state": STATES})
    return Record(trial, {"rtt": 0.1, "link": Steps([0.0, 0.25], [10.0, 20.0])}, {"MOVING": ("UP", "DOWN", "SIDEWAYS")})


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("x>=4", "00111"),
        ("state=UP", "11000"),
        ("state!=UP and x<16", "00110"),
        ("state in MOVING", "11110"),
        ("state in (UP, REST)", "11001"),
        ("entered(DOWN)", "00100"),
        ("entered(DOWN, REST)", "00101"),
        ("before=DOWN", "00001"),
        ("last(x)=x/2", "01111"),
        ("entry(x)=4", "00110"),
        ("leaving(x)=8", "00001"),
        ("ago(x)=x/2 and round=3", "00010"),
        ("begin(x>3, x)=4", "00111"),
        ("peak(x)=x and least(x)=1", "11111"),
        ("changed(state)", "00101"),
        ("since=100ms", "01010"),
        ("lasted=200ms", "00111"),
        ("lasted_rounds=3", "00001"),
        ("link=20", "00011"),
        ("x*50% >= 2", "00111"),
        ("max(x, 3)=3", "11000"),
        ("not (x>1 or state=UP)", "00000"),
    ],
)
def test_an_expression_holds_in_these_rows(record, text, rows):
    if text == "lasted=200ms":
        rows = "00001"  # DOWN lasted from 0.2 to 0.4 s; UP, which began the record, as long, but its rows come before
        text += " and state=REST"
    assert "".join(str(int(h)) for h in Expression(text).holds(record)) == rows


@pytest.mark.parametrize(
    ("text", "difference"),
    [
        ("when state=UP expect x<3", None),
        ("when state=DOWN expect x<8", 0.3),
        ("when state=UP expect state=DOWN within 2 rounds", None),
        ("when state=UP expect state=REST within 1 round", 0.1),
        ("when state=UP expect x>3 within 150ms", 0.1),
        ("when state=UP expect state=REST within 3 rtt", 0.3),
        ("when state=REST expect state=UP within 1 round", None),  # the record ends before
        ("when state=DOWN expect x<8 for 50ms", None),
        ("when state=DOWN expect x<8 for 1 rtt", 0.3),
        ("when state=UP expect x<8 until state=REST", 0.3),
        ("when state=UP expect x<8 until state=DOWN", None),
        ("if x>100 expect x=0", None),
        ("reach x=16 and state=REST", None),
        ("expect x>=1", None),
    ],
)
def test_a_statement_names_the_first_moment_that_differs(record, text, difference):
    result = Statement.read(text).judge(record)
    assert (result and round(result.time, 9)) == difference


def test_what_never_occurs_is_a_difference_without_a_time(record):
    never = Statement.read("when x>100 expect x=0").judge(record)
    assert never.time is None
    assert never.problem == "never: x>100"
    assert Statement.read("reach x=3").judge(record).problem == "never: x=3"


def test_a_difference_shows_the_state_and_the_variables(record):
    assert Statement.read("when state=DOWN expect x<link/4").judge(record).values == {"state": "DOWN", "x": 4.0, "link": 10.0}


@pytest.mark.parametrize(("text", "problem"), [("x>y", "it has no variable y"), ("state=SIDEWAYS", "it has no state SIDEWAYS")])
def test_what_the_control_does_not_show_is_said(record, text, problem):
    with pytest.raises(Unknown, match=problem):
        Expression(text).of(record)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("when x expect", "is no statement"),
        ("expect x > 3 within 3 parsecs", "is no expression"),
        ("expect __import__('os')", "'__import__' is no function"),
        ("expect x.y > 3", "Attribute is not part of the language"),
        ("expect [x for x in y]", "ListComp is not part of the language"),
        ("expect 'text' = x", "Constant is not part of the language"),
        ("expect x >", "is no expression"),
    ],
)
def test_what_is_no_condition_is_refused_in_one_line(text, message):
    with pytest.raises(ScenarioError, match=message) as e:
        Statement.read(text)
    assert "\n" not in str(e.value)


def test_an_expression_of_constants_is_a_number():
    assert Expression("4*rtt + 250ms").constant({"rtt": 0.5}) == 2.25
    with pytest.raises(ScenarioError, match="no constant round"):
        Expression("2*round").constant({"rtt": 0.5})
