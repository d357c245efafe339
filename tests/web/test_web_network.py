"""The view *Network*: links, transfers and probes of the state as texts, its drawing, and what each of them gets."""

import re
from typing import Any

import pytest
from asking import ask

import tcpscape
from tcpscape import engines
from tcpscape.errors import TcpscapeError
from tcpscape.scenario.scenario import Scenario
from tcpscape.web import entries
from tcpscape.web.diagram import DiagramAsked, diagram
from tcpscape.web.state import State, of_page
from tcpscape.web.take import Copies
from tcpscape.words import campaign as words

pytestmark = pytest.mark.skipif(engines.make("model").unavailable() is not None, reason="the extension module is not built")
NETWORK: dict[str, Any] = {
    "rtt": "20ms",
    "rate": "10mbit",
    "duration": "2s",
    "links": ("name home between r1,r2 delay 5ms rate 5mbit up_rate 1mbit",),
    "transfers": ("5/s,20kB~up",),
    "probes": ("ping", "voice~up@500ms"),
    "cca": ("cubic",),
}


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("links", ("delay 5ms rate 50mbit", "name a between r2,y delay 5ms loss 1% rate 1mbit queue fq_codel target 10ms")),
        ("transfers", ("20/s", "0.5/s,100kB~up~cca=bbr~shape=2@1s-2s")),
        ("probes", ("voice", "ping~interval=100ms", "voice~up", "scream~most=1mbit", "udp_ping~name=near~access=10ms+20mbit")),
    ],
)
def test_what_is_said_of_an_entry_is_read_as_the_same(kind: str, texts: tuple[str, ...]) -> None:
    path = {part: {"delay": "10ms", "at": "router"} for part in ("forward", "reverse")}
    scenario = Scenario.of({**path, kind: texts})
    say = {"links": entries.link, "transfers": entries.transfers, "probes": entries.probe}[kind]
    for entry, text in zip(getattr(scenario, kind), texts, strict=True):
        said = say(entry)
        assert said is not None
        assert len(said) <= len(text) + len("100000B")
    again = Scenario.of({**path, kind: [say(entry) for entry in getattr(scenario, kind)]})
    assert getattr(again, kind) == getattr(scenario, kind)


def test_a_link_that_differs_each_way_in_more_than_its_rate_is_not_said() -> None:
    scenario = Scenario.of({"links": [{"forward": {"delay": "5ms"}, "reverse": {"delay": "6ms", "loss": "1%"}}]})
    assert entries.link(scenario.links[0]) is None


def test_its_trials_are_those_of_the_command() -> None:
    """The numbers of the tables are those of a sweep with the same options, which is what is taken along."""
    state = State(**NETWORK)
    last = ask("network", state, seeds=3)[-1].values
    outcome = tcpscape.sweep(
        rtt="20ms", rate="10mbit", duration="2s", link=NETWORK["links"], transfers=NETWORK["transfers"], probe=NETWORK["probes"], cca="cubic", seeds=3
    )
    screen = words.run_screen(outcome, wide=True)
    assert (last["n"], last["wanted"], last["sentences"]) == (3, 3, list(screen.remarks))
    assert [table["rows"] for table in last["tables"]] == [[[str(cell) for cell in row] for row in table.rows] for table in screen.tables]
    command = Copies(state, "3").command
    assert "--link 'name home between r1,r2 delay 5ms rate 5mbit up_rate 1mbit'" in command
    assert "--transfers '5/s,20kB~up'" in command
    assert "--probe ping --probe 'voice~up@500ms'" in command
    assert [case.scenario.address() for case in state.campaign().cases()] == [cell.scenarios[0].address() for cell in outcome.cells]


def test_the_drawing_names_the_field_of_each_part() -> None:
    drawn = diagram(None, DiagramAsked(page="0123456789", state=State(**NETWORK)))  # type: ignore[arg-type]
    assert re.findall(r'data-field="([^"]+)"', drawn["wide"]) == ["rate", "links.0", "transfers.0", "probes.0", "probes.1"]
    assert 'data-field="links.0"' in drawn["narrow"]
    assert "style=" not in drawn["wide"] + drawn["narrow"], "the page's policy allows none"


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"links": ("dely 5ms",)}, r"^link: 'dely' is no field of a link; choose name, between, delay"),
        ({"links": ("between a delay 5ms",)}, "between"),
        ({"transfers": ("5/s~cca=mine.py:Own",)}, "cca: .* is Python code"),
        ({"probes": ("voice",) * 51}, "^probes: 51 of them; choose 50 at most"),
        ({"probes": ("call",)}, "^probes.*: no probe 'call'; choose voice"),
    ],
)
def test_what_makes_no_sense_is_one_line(fields: dict[str, Any], line: str) -> None:
    with pytest.raises(TcpscapeError, match=line) as refused:
        of_page({**NETWORK, **fields}).scenario("cubic")
    assert "\n" not in str(refused.value)
