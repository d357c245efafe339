"""Scenarios of several links, access links, directions, probes and transfers: as they are typed, written, read, planned and refused."""

import json
import pickle

import pytest
import yaml

import tcpscape
from conftest import ROOT
from tcpscape.campaign import groups
from tcpscape.campaign.source import campaign
from tcpscape.engines.mock import CONTROLS
from tcpscape.engines.plan import build
from tcpscape.errors import TcpscapeError
from tcpscape.report.diagram import PathView
from tcpscape.scenario import bottleneck, files, limits
from tcpscape.scenario.grammar import parse_link, parse_mix, parse_probe, parse_transfers
from tcpscape.scenario.options import ScenarioOptions
from tcpscape.scenario.scenario import COMPUTED, Scenario
from tcpscape.words import paths
from tcpscape.words.paths import differences

PATH = {"forward": "netem delay 5ms", "bottleneck": {"rate": "20mbit"}, "reverse": "netem delay 5ms"}
KNOWN = json.loads((ROOT / "tests/data/addresses.json").read_text())
WHOLE = {
    **PATH,
    "links": [
        {"name": "core", "delay": "5ms", "rate": "50mbit", "up_rate": "10mbit", "queue": "fq_codel"},
        "delay 1ms rate 9mbit",
        {"name": "odd", "forward": "netem delay 1ms", "reverse": [{"delay": "2ms"}, "pfifo limit 10"]},
    ],
    "flows": [
        {"cca": "bbr", "count": 2, "rtt": "90ms"},
        {"direction": "up", "access": {"delay": "1ms", "rate": "20mbit"}},
        {"enter": "r1", "leave": "r2", "access": {"before": {"delay": "3ms"}}},
        {"app": {"response": "64kB", "every": "100ms"}},
        {"app": {"on": "1s", "off": "500ms"}, "access": "netem delay 3ms"},
    ],
    "transfers": ["20/s,30kB~up", {"rate": 3, "size": "1MB", "cca": "reno", "enter": "r2"}],
    "probes": [
        "voice",
        "voice~up",
        {"preset": "ping", "interval": "100ms", "rtt": "200ms"},
        {"name": "own", "kind": "udp_echo", "size": "100B", "interval": "1s"},
    ],
    "changes": [
        {"where": "core", "at": "1s", "set": {"rate": "9mbit"}},
        {"where": "core.reverse", "hop": 1, "at": "2s", "set": {"delay": "9ms"}},
        {"where": "link 3", "at": "2s", "set": {"outage": True}},
    ],
}
"""A scenario with all of it."""


def test_scenarios_that_could_be_written_before_keep_their_addresses():
    """With hosts that take no time, as none did then."""

    def address(scenario):
        return scenario.model_copy(update={"kernel": scenario.kernel.model_copy(update={"host_time": 0})}).address()

    assert {name: address(files.load(name)) for name in KNOWN["gallery"]} == KNOWN["gallery"]
    assert [address(Scenario.of(row["scenario"])) for row in KNOWN["scenarios"]] == [row["address"] for row in KNOWN["scenarios"]]


@pytest.mark.parametrize(
    ("text", "flows"),
    [
        (
            "cubic*2~rtt=20ms,bbr~up@5s-8s",
            [{"cca": "cubic", "count": 2, "rtt": "20ms"}, {"cca": "bbr", "count": 1, "direction": "up", "start": "5s", "stop": "8s"}],
        ),
        ("reno~access=10ms~enter=r1~leave=r2", [{"cca": "reno", "count": 1, "access": {"delay": "10ms"}, "enter": "r1", "leave": "r2"}]),
        ("bbr~access=20mbit+10ms~down", [{"cca": "bbr", "count": 1, "access": {"rate": "20mbit", "delay": "10ms"}, "direction": "down"}]),
        ("cubic*4~rtt=20ms..160ms~up", [{"cca": "cubic", "count": 1, "rtt": f"{ms}ms", "direction": "up"} for ms in (20, 40, 80, 160)]),
        ("~/mine.py:Own:gain=2*3~up", [{"cca": "~/mine.py:Own:gain=2", "count": 3, "direction": "up"}]),
    ],
)
def test_a_mixture_says_where_its_flows_are(text, flows):
    assert parse_mix(text) == flows


def test_probes_transfers_and_links_in_words():
    assert parse_probe("ping~interval=100ms~up@1s-2s") == {"preset": "ping", "interval": "100ms", "direction": "up", "start": "1s", "stop": "2s"}
    assert parse_transfers("20/s,30kB~cca=bbr") == {"rate": "20/s", "size": "30kB", "cca": "bbr"}
    assert parse_link("delay 5ms rate 50mbit queue fq_codel limit 200 name core") == {
        "delay": "5ms",
        "rate": "50mbit",
        "queue": "fq_codel limit 200",
        "name": "core",
    }
    assert parse_link("between r1, r2 delay 5ms") == {"between": ["r1", "r2"], "delay": "5ms"}
    for text in ("a", "a b", "a,b,c", ",b", "a,"):
        with pytest.raises(TcpscapeError, match=f"^link: between '{text}' is not two routers; name both"):
            parse_link(f"delay 5ms between {text}")


def test_what_is_written_is_read_back():
    one = Scenario.of(WHOLE)
    again = Scenario.of(yaml.safe_load(files.dump(one)))
    assert (again, again.address()) == (one, one.address())
    assert files.dump(again) == files.dump(one)


@pytest.mark.parametrize("name", sorted(set(files.gallery()) - set(KNOWN["gallery"])))
def test_the_gallery_is_read_back_and_has_a_plan(name):
    one = files.load(name)
    assert Scenario.of(yaml.safe_load(files.dump(one))).address() == one.address()
    assert build(one, CONTROLS)["flows"]


def test_a_link_is_written_as_it_was():
    data = Scenario.of(WHOLE).to_dict()
    assert data["links"][0] == {"name": "core", "delay": "5ms", "rate": "50mbit", "queue": "fq_codel", "up_rate": "10mbit"}
    assert data["links"][1] == {"delay": "1ms", "rate": "9mbit"}
    assert set(data["links"][2]) == {"name", "forward", "reverse"}
    assert data["flows"][1]["access"] == {"delay": "1ms", "rate": "20mbit"}
    assert set(data["flows"][2]["access"]) == {"before"}


def test_the_plan_has_links_places_and_traffic():
    plan = build(Scenario.of(WHOLE), CONTROLS)
    assert [len(plan["links"]), len(plan["flows"]), len(plan["transfers"]), len(plan["probes"])] == [3, 6, 2, 4]
    core = plan["links"][0]
    assert [stage["at"] for stage in core["forward"]["stages"]] == ["router", "router"]
    assert core["reverse"]["stages"][1]["qdisc"]["rate"] == 10_000_000
    assert [(c["stage"], c["change"]["set"]) for c in core["forward"]["schedule"]] == [(1, {"rate": 9_000_000})]
    assert [c["stage"] for c in core["reverse"]["schedule"]] == [1]
    places = plan["places"]
    assert [places[flow["place"]]["enter"] for flow in plan["flows"]] == [0, 0, 0, 1, 0, 0]
    assert places[plan["flows"][0]["place"]] == places[plan["flows"][1]["place"]]
    up = places[plan["flows"][2]["place"]]
    assert (len(up["far"]["reverse"]["stages"]), len(up["far"]["forward"]["stages"])) == (2, 2)  # the hosts that send up are at the right end
    assert not up["near"]["forward"]["stages"]
    assert all(
        stage["at"] == "router"
        for place in places
        for link in ("near", "far")
        for way in ("forward", "reverse")
        for stage in place[link][way]["stages"]
    )


def test_an_own_rtt_is_what_the_path_lacks():
    one = Scenario.of({**PATH, "flows": [{"rtt": "10ms"}, {"rtt": "50ms"}, {"rtt": "50ms", "access": "netem delay 5ms"}]})
    assert [one.rtt_of(flow) for flow in one.flows] == [10**7, 5 * 10**7, 5 * 10**7]
    assert one.rtt_ns == 36_666_666


def test_options_add_to_a_scenario():
    base = files.load("upload-and-call")
    more = ScenarioOptions(
        mix="bbr,cubic*2~up", probes=("udp_ping",), transfers=("5/s,10kB",), links=("delay 1ms name far",), changes=("far@1s: delay 3ms",)
    ).over(base)
    assert [probe.name for probe in more.probes] == ["voice", "voice-up", "ping", "udp_ping"]
    assert [(flow.cca, flow.direction, flow.count) for flow in more.flows] == [("bbr", "up", 1), ("cubic", "up", 2)]  # as the scenario's first flow
    assert (len(more.chain), more.rtt_ns) == (2, 32_000_000)


def test_all_that_sends_has_the_congestion_control_that_is_compared():
    one = Scenario.of(WHOLE).with_cca("vegas")
    assert {entry.cca for entry in (*one.flows, *one.transfers)} == {"vegas"}


@pytest.mark.parametrize(
    ("axes", "fields", "values"),
    [
        ({"flows.0.rtt": "20ms,40ms"}, {"mix": "cubic,bbr~up"}, lambda s: s.flows[0].rtt),
        ({"x": "20ms,40ms"}, {"mix": "cubic,bbr~rtt=${x}"}, lambda s: s.flows[1].rtt),
        ({"links.0.delay": "20ms,40ms"}, {"links": ["delay 1ms rate 9mbit"]}, lambda s: s.links[0].forward[0].delay),
        ({"probes.interval": "20ms,40ms"}, {"probes": ["voice"]}, lambda s: s.probes[0].interval),
    ],
)
def test_axes_reach_what_options_added(axes, fields, values):
    cases = campaign(None, {"rtt": "10ms", "rate": "10mbit", **axes}, {"cca": ["cubic"], **fields} if "mix" not in fields else fields).cases()
    assert [values(case.scenario) for case in cases] == [20_000_000, 40_000_000]


def test_an_axis_over_a_link_of_a_gallery_scenario():
    cases = campaign("rrul", {"links.queue": ["fq_codel", "cake"]}, {}).cases()
    assert [(case.scenario.links[0].forward[1].queue, case.scenario.links[0].reverse[1].rate) for case in cases] == [
        ("fq_codel", 5_000_000),
        ("cake", 5_000_000),
    ]


def test_a_change_of_a_hop_that_is_not_there_is_refused():
    one = Scenario.of(
        {**PATH, "links": ["delay 1ms rate 9mbit name core"], "changes": [{"where": "core", "hop": 2, "at": "1s", "set": {"rate": "1mbit"}}]}
    )
    with pytest.raises(TcpscapeError, match="change: core has no hop 2; choose one from 0 to 1"):
        build(one, CONTROLS)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "rrul",
            "RTT 30ms, link home 20mbit down and 5mbit up with a FIFO of 250kB, 8 flows (4 cubic, 4 cubic up), probes ping, udp_ping, voice, kernel 6.1, 30s",
        ),
        (
            "dumbbell",
            "RTTs 20ms and 80ms, bottleneck 50mbit with a FIFO of 312kB (1 BDP), 4 flows (2 cubic at 20ms, 2 cubic at 80ms), kernel 6.1, 30s",
        ),
        (
            "parking-lot",
            "RTT 30ms, 3 links of 20mbit with a FIFO of 50kB, 4 flows (1 cubic, 1 cubic from a to b, 1 cubic from b to c, 1 cubic from c to d), 5 transfers a second of 20kB (cubic), kernel 6.1, 30s",
        ),
        ("web", "RTT 40ms, bottleneck 20mbit with a FIFO of 100kB (1 BDP), 1 flow, 20 transfers a second of 30kB (cubic), kernel 6.1, 30s"),
        (
            "incast",
            "RTT 100us, link switch 1gbit with a FIFO of 128kB (10 BDP), answers of 64kB every 100ms, 32 flows, kernel 6.1 (host_time=0s), 2s",
        ),
    ],
)
def test_a_network_in_words(name, words):
    assert paths.in_words(files.load(name)) == words


def test_the_rate_that_all_data_share():
    rates = {name: bottleneck.link_mbps(files.load(name)) for name in ("rrul", "dumbbell", "parking-lot", "upload-and-call")}
    assert rates == {"rrul": None, "dumbbell": 50.0, "parking-lot": None, "upload-and-call": 5.0}
    one = files.load("parking-lot")
    slow = Scenario.of({**one.to_dict(), "flows": [{"access": {"rate": "3mbit", "delay": "1ms"}}, {"leave": "b"}]})
    assert [bottleneck.of_flow(slow, flow).rate_bps for flow in slow.flows] == [3_000_000, 20_000_000]
    found = bottleneck.find(slow)
    assert (found.rate_bps, found.link, found.direction) == (20_000_000, "chain/0", "forward")


def test_what_two_networks_differ_in():
    one = files.load("rrul")
    assert differences(one, Scenario.of({**one.to_dict(), "probes": ["voice"]})) == ["probes ping, udp_ping, voice / probe voice"]
    longer = Scenario.of({**one.to_dict(), "links": [{"name": "home", "delay": "20ms", "rate": "20mbit", "up_rate": "5mbit", "buffer": "250KB"}]})
    assert differences(one, longer) == ["RTT 30ms / 40ms"]


def test_what_is_easily_overlooked_in_a_network():
    fast = ScenarioOptions(PATH, mix="cubic,cubic~up", transfers=("200/s,30kB",)).scenario()
    assert list(limits.caveats(fast)) == [
        "data that travel up meet no rate, and only windows limit these flows; to change it: a rate in reverse, such as {rate: 5mbit}",
        "transfers offer 240% of what their slowest link carries, 20mbit: they pile up as long as they arrive",
    ]
    networks = [files.load(name) for name in files.gallery() if name not in KNOWN["gallery"]]
    assert {scenario.name: caveats for scenario in networks if (caveats := list(limits.caveats(scenario)))} == {}


def test_what_knows_one_link_refuses_a_network_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a directory may be called web
    with pytest.raises(TcpscapeError, match=r"^scenario: rrul has links, data that travel up and probes, and the mock's closed forms know one link"):
        tcpscape.run("rrul", engine="mock", seeds=1)
    with pytest.raises(TcpscapeError, match=r"^scenario: web has transfers, and the conditions of a path say none of it; "):
        tcpscape.advise(source="web", engine="mock", seeds=2)


def test_the_diagram_of_a_network_has_each_link_and_both_directions():
    drawn = PathView.of("", [files.load("rrul")])
    for text in (
        ">Home<",
        ">down: 20 Mbit/s, 15 ms<",
        ">up: 5 Mbit/s, 15 ms, buffer 250 kB<",
        ">4 cubic<",
        ">4 cubic up<",
        ">probe voice<",
        ">r0<",
        ">r1<",
        "data that travel up",
    ):
        assert text in drawn.wide, text
        assert text in drawn.narrow, text
    chained = PathView.of("", [files.load("parking-lot")]).wide
    for text in (">West<", ">Middle<", ">East<", ">both ways: 20 Mbit/s, 5 ms<", ">buffer 50 kB<", ">1 cubic from b to c<", ">a<", ">d<"):
        assert text in chained, text


def test_files_of_links_are_beside_their_scenario(tmp_path):
    (tmp_path / "radio.up").write_text("1\n2\n3\n")
    (tmp_path / "s.yaml").write_text(
        "forward: netem delay 5ms\nreverse: netem delay 5ms\nlinks:\n- {forward: {trace: radio.up}, reverse: netem delay 1ms}\nflows:\n- {access: {before: [{trace: radio.up}]}}\n"
    )
    one = files.load(tmp_path / "s.yaml")
    assert one.links[0].forward[0].trace.file == one.flows[0].access.before[0].trace.file == str(tmp_path / "radio.up")
    assert "access links of a recorded rate down" in paths.in_words(one)
    assert [c["change"]["kind"] for c in build(one, CONTROLS)["links"][0]["forward"]["schedule"]] == ["rate_trace"]


def test_the_first_hop_of_uploads_is_where_it_says():
    """For ACKs the host and the router behind it are the same; data are super-packets at a host."""
    both = {"forward": {"at": "router", "delay": "5ms"}, "reverse": [{"at": "router", "delay": "5ms"}, {"rate": "5mbit"}]}
    plans = [build(Scenario.of({**both, "flows": [{"direction": way}]}), CONTROLS) for way in ("down", "up")]
    assert [[stage["at"] for stage in plan["reverse"]["stages"]] for plan in plans] == [["receiver", "router"], ["router", "router"]]
    assert "at" not in Scenario.of({**both, "flows": [{"direction": "up"}]}).to_dict()["flows"][0]
    found = bottleneck.find(Scenario.of({**both, "flows": [{"direction": "up"}]}))
    assert (found.rate_bps, found.pipe, found.stage, found.direction) == (5_000_000, 2, 1, "reverse")


def test_figures_show_the_queue_of_the_first_flows_where_data_share_none():
    assert (bottleneck.find(files.load("rrul")), bottleneck.shown(files.load("rrul")).rate_bps) == (None, 20_000_000)


def test_controls_are_not_compared_where_nothing_has_one():
    with pytest.raises(TcpscapeError, match=r"^cca: drawn has nothing that it could control; leave it out"):
        tcpscape.run({**PATH, "name": "drawn", "flows": [], "probes": ["voice"], "duration": "1s"}, cca="cubic,bbr", seeds=1)


def test_what_is_computed_of_a_scenario_is_no_part_of_it():
    one, other = files.load("dumbbell"), files.load("dumbbell")
    assert (one.rtt_ns, len(one.routers), len(one.chain)) == (50_000_000, 2, 1)
    assert one == other
    assert (files.dump(one), one.address(), hash(one)) == (files.dump(other), other.address(), hash(other))
    assert one.model_copy(update={"flows": one.flows[:1]}).rtt_ns == 20_000_000
    assert one.with_cca("reno").rtt_ns == 50_000_000
    assert (one.cca, one.with_cca("reno").cca, one.is_topology) == ("cubic", "reno", True)
    assert hash(one.with_cca("reno")) != hash(one)
    sent = pickle.loads(pickle.dumps(one))
    assert not {*COMPUTED} & sent.__dict__.keys()  # a hash is of its process
    assert (sent, hash(sent)) == (one, hash(one))


def test_many_round_trip_times_are_told_by_classes():
    outcome = tcpscape.run(None, **PATH, mix="cubic*12~rtt=20ms..160ms,bbr*12~rtt=20ms..160ms", duration="300ms", seeds=1)
    of = groups.of(outcome.cells[0])
    assert [group.title for group in of[:4]] == ["cubic×4 20–40 ms", "cubic×4 40–80 ms", "cubic×3 80–160 ms", "cubic 160–320 ms"]
    assert sorted(number for group in of for number in group.numbers) == list(range(24))
    few = tcpscape.run(None, **PATH, mix="cubic*3~rtt=20ms..80ms", duration="300ms", seeds=1)
    assert [group.name for group in groups.of(few.cells[0])] == ["cubic 20 ms", "cubic 40 ms", "cubic 80 ms"]
