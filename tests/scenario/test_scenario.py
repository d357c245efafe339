"""Scenarios: in, out and refused."""

import json
import platform
import re
from pathlib import Path

import pytest

from conftest import ROOT
from tcpscape import _core, engines
from tcpscape.campaign.axes import parse_seeds
from tcpscape.engines.mock import CONTROLS
from tcpscape.engines.plan import build as plan
from tcpscape.errors import ScenarioError, TcpscapeError
from tcpscape.scenario import changes, files, limits, path
from tcpscape.scenario.grammar import parse_mix
from tcpscape.scenario.options import ScenarioOptions
from tcpscape.scenario.scenario import Scenario
from tcpscape.words.paths import differences

FULL = {
    "name": "full",
    "forward": [{"delay": "25ms", "jitter": "8ms", "distribution": "normal", "loss": "0.1%"}, "netem delay 1ms"],
    "bottleneck": {"rate": "10mbit", "buffer": "2bdp"},
    "reverse": "netem delay 24ms",
    "flows": [{"cca": "bbr", "count": 2, "start": "1s", "app": "1MB/s", "read": "16KiB/1ms", "rcvbuf": "256KiB", "nodelay": False}],
    "kernel": {"profile": "6.12", "hz": 250, "rmem_max": "4MiB"},
    "duration": "20s",
    "changes": [{"at": "5s", "where": "bottleneck", "set": {"rate": "5mbit"}}],
}


def test_yaml_round_trip(tmp_path):
    one = Scenario.of(FULL)
    file = tmp_path / "full.yaml"
    file.write_text(files.dump(one))
    assert (files.load(file), files.load(file).address()) == (one, one.address())


def test_toml_is_read(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text('forward = "netem delay 5ms"\nkernel = "6.1"\nduration = "2s"\n[[flows]]\ncca = "reno"\n')
    got = files.load(file)
    assert (got.name, got.cca, got.rtt_ns, got.duration) == ("s", "reno", 5_000_000, 2_000_000_000)


def test_kernel_as_a_bare_number_in_yaml(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("forward: netem delay 5ms\nkernel: 6.12\n")
    assert files.load(file).kernel.profile == "6.12"


def test_structured_hops_have_the_words_of_what_engines_get():
    one = Scenario.of(FULL)
    stages = [s["qdisc"] for s in plan(one, CONTROLS)["forward"]["stages"]]
    words = ["netem delay 25ms 8ms distribution normal loss 0.1% limit 100000", "netem delay 1ms", "tbf rate 10mbit burst 6056 limit 125000"]
    assert [text for place in (one.forward, one.bottleneck) for hop in place for text in path.words(hop, one.rtt_ns)] == words
    assert [_core.to_tc(json.dumps(stage)) for stage in stages] == [_core.to_tc(_core.parse_tc(text)) for text in words]


def test_plan_places_and_expands():
    got = plan(Scenario.of(FULL), CONTROLS)
    assert [s["at"] for s in got["forward"]["stages"]] == ["sender", "router", "router"]
    assert len(got["flows"]) == 2
    assert got["flows"][0]["app"] == {"kind": "paced", "chunk": 8192, "rate_Bps": 10**6}
    assert got["flows"][0]["stop_ns"] == 20 * 10**9
    assert got["kernel"] == {"profile": "6.12", "hz": 250, "rmem_max": 4 << 20, "host_time": 15_000}
    assert got["forward"]["schedule"] == [{"stage": 2, "depth": 0, "change": {"kind": "set", "at": 5 * 10**9, "set": {"rate": 5 * 10**6}}}]


def test_order_and_floor_become_queues_in_a_row():
    jitter = {"delay": "25ms", "jitter": "8ms", "distribution": "normal", "loss": "1%", "limit": 1000}
    ordered = Scenario.of({"forward": {**jitter, "order": "correlated", "tau": "20ms"}}).forward[0]
    assert ordered.words() == ["netem loss 1% limit 1000", "jitter delay 25ms 8ms distribution normal order correlated tau 20ms limit 1000"]
    floored = Scenario.of({"forward": {**jitter, "floor": "10ms"}}).forward[0]
    assert floored.words() == ["netem delay 15ms 8ms distribution normal loss 1% limit 1000", "netem delay 10ms limit 1000"]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"at": "5s", "set": {"loss": "50%"}}, {"kind": "set", "at": 5 * 10**9, "set": {"loss": 0x8000_0000}}),
        (
            {"every": "15s", "hold": "300ms", "set": {"outage": True}},
            {"kind": "periodic", "first": 15 * 10**9, "period": 15 * 10**9, "hold": 300 * 10**6, "set": {"outage": True}},
        ),
        (
            {"ramp": ["2s", "4s"], "start": {"delay": "10ms"}, "end": {"delay": "40ms"}},
            {"kind": "ramp", "from": 2 * 10**9, "until": 4 * 10**9, "every": 20 * 10**6, "start": {"delay": 10**7}, "end": {"delay": 4 * 10**7}},
        ),
        ({"trace": [["0s", "10mbit"], ["1s", "0"]], "repeat": "2s"}, {"kind": "rate_trace", "points": [[0, 10**7], [10**9, 0]], "repeat": 2 * 10**9}),
    ],
)
def test_changes(change, kind):
    one = Scenario.of({**FULL, "changes": [change]})
    assert Scenario.of(one.to_dict()) == one
    assert plan(one, CONTROLS)["forward"]["schedule"][0]["change"] == kind


@pytest.mark.parametrize(
    ("kernel", "sizes", "caveats"),
    [
        ("6.1", {"rcvbuf": "208KiB", "sndbuf": "208KiB"}, []),  # the kernel's 212992 bytes are 208 KiB
        ("6.1", {"rcvbuf": "256KiB"}, ["SO_RCVBUF of 256KiB is capped at net.core.rmem_max, 208KiB; to have it: --kernel 6.1,rmem_max=4MiB"]),
        (
            "6.12,hz=100",
            {"sndbuf": "8MiB"},
            ["SO_SNDBUF of 8MiB is capped at net.core.wmem_max, 208KiB; to have it: --kernel 6.12,hz=100,wmem_max=8MiB"],
        ),
        ("6.12,rmem_max=4MiB", {"rcvbuf": "256KiB"}, []),
        ("6.1", {}, []),
    ],
)
def test_capped_buffers_are_a_caveat(need_model, kernel, sizes, caveats):
    one = Scenario.of({"forward": "netem delay 5ms", "flows": [sizes], "kernel": kernel, "duration": "100ms"})
    assert list(limits.caveats(one)) == caveats
    assert [c for c in engines.make("model").run(one, [0])[0].caveats if "capped" in c] == caveats


def test_the_address_forgets_the_name_and_nothing_else():
    one = Scenario.of(FULL)
    assert one.address() == Scenario.of({**FULL, "name": "other"}).address()
    assert one.address() != Scenario.of({**FULL, "duration": "21s"}).address()
    assert one.address() != one.with_cca("reno").address()


def test_a_number_is_no_name_of_a_kernel():
    with pytest.raises(TcpscapeError, match=r"^kernel: .*; [^\n]*$"):
        Scenario.of({**FULL, "kernel": 6.1})


def test_mix_and_seeds():
    assert parse_mix("cubic*2,bbr@5s-8s") == [{"cca": "cubic", "count": 2}, {"cca": "bbr", "count": 1, "start": "5s", "stop": "8s"}]
    assert parse_seeds("3") == [0, 1, 2]
    assert parse_seeds("5..7") == [5, 6, 7]
    assert parse_seeds("1,4,7") == [1, 4, 7]
    for bad in ("0", "x", "9..5", "-1", "1..99999999", str(2**70)):
        with pytest.raises(TcpscapeError):
            parse_seeds(bad)


OF_NO_KERNEL = {"jitter-in-order": "not tc's", "misbehaving-receivers": "no kernel's receiver"}
"""Scenarios with a queue or a receiver that no kernel has, and what is said of it."""


@pytest.mark.parametrize("name", files.gallery())
def test_the_gallery_runs(name, engine):
    scenario = files.load(name)
    last = max(
        (*(change.at or change.first or change.every or 0 for change in scenario.changes), *(flow.start for flow in scenario.flows)), default=0
    )
    scenario = scenario.model_copy(update={"duration": min(last + 6_000_000_000, scenario.duration)})
    if engine.name == "virtual" and name in OF_NO_KERNEL:
        with pytest.raises(ScenarioError, match=OF_NO_KERNEL[name]):
            engine.check(scenario)
        return
    is_network = scenario.is_topology or scenario.transfers or scenario.probes
    if is_network and engine.name != "model" and (refusal := _refusal(engine, scenario)):
        assert re.fullmatch(r"[\w.]+: .+; .+", refusal), "one line: the field, the problem, the fix"
        return
    assert engine.run(scenario, [0])[0].goodput_mbps > 0


def _refusal(engine, scenario):
    """Why an engine cannot run a network, one line; empty where it can."""
    try:
        engine.check(scenario)
    except ScenarioError as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("bottleneck@8s: rate 20mbit", {"where": "bottleneck", "at": "8s", "set": {"rate": "20mbit"}}),
        ("forward.1 @ 500ms : delay 40ms, loss 1%", {"where": "forward", "hop": 1, "at": "500ms", "set": {"delay": "40ms", "loss": "1%"}}),
        ("bottleneck@5s: outage", {"where": "bottleneck", "at": "5s", "set": {"outage": True}}),
    ],
)
def test_a_change_in_words(text, change):
    assert changes.parse(text) == change


def test_changes_are_added_to_those_of_a_scenario():
    both = ScenarioOptions(changes=("bottleneck@20s: rate 5mbit",)).over(files.load("rate-drop"))
    assert [(c.at, c.set.rate) for c in both.changes] == [(15_000_000_000, 20_000_000), (20_000_000_000, 5_000_000)]


def test_a_drop_of_rate_has_the_spike_of_the_bound(need_model):
    """60 to 20 Mbit/s at 50 ms: (3 − 1) · 50 ms = 100 ms above the 50 ms of the path, with an empty queue before; CUBIC's is not empty."""
    from tcpscape.engines.model import Model

    (trial,) = Model().run(files.load("rate-drop").with_cca("bbr"), [0])
    assert 150 <= trial.flows[0].rtt_ms.max <= 215  # 1 BDP at 60 Mbit/s is 150 ms at 20 Mbit/s: 50 + 150 and a burst


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"at": "1s", "child": 99, "set": {"rate": "2mbit"}}, "change at 1s: child: tbf has no child queue; leave"),
        ({"at": "1s", "set": {"delay": "20ms"}}, "change at 1s: delay: tbf has no delay, it has rate, burst, limit; set one of those"),
        ({"at": "1s", "set": {}}, "change at 1s: set: names no value to change; give one"),
        ({"at": "3s", "set": {"rate": "2mbit"}}, "change at 3s: comes after the end of the trial at 3 s; change earlier"),
        ({"every": "15s", "hold": "1s", "set": {"outage": True}}, "periodic change from 15s: comes after the end"),
        ({"ramp": ["1s", "2s"], "start": {"outage": True}, "end": {"outage": True}}, "ramp from 1s: outage: is either on or off"),
        ({"ramp": ["1s", "2s"], "step": "1ns", "start": {"rate": "2mbit"}, "end": {"rate": "3mbit"}}, "ramp from 1s: makes 1000000002 changes"),
    ],
)
def test_every_engine_refuses_a_change_that_cannot_apply(engine, fields, problem):
    change = {"where": "bottleneck"} | fields
    scenario = Scenario.of({"bottleneck": "tbf rate 5mbit burst 6056 limit 30000", "duration": "3s", "changes": [change]})
    with pytest.raises(ScenarioError, match=re.escape(problem)):
        engine.check(scenario)


@pytest.mark.parametrize(
    ("mix", "goodputs", "said"),
    [
        ("cubic*2", (4.7, 4.8), ()),
        ("cubic*2", (5.1, 5.0), ("goodput above the link's 10mbit: it counts what a bucket held",)),
        ("cubic,bbr*1@5s", (9.0, 4.0), ("the flows do not run at the same time: their goodputs",)),
        ("cubic,bbr*1@5s", (11.0, 4.0), ("goodput above the link's 10mbit",)),
    ],
)
def test_goodput_above_the_link_is_explained(mix, goodputs, said):
    scenario = Scenario.of({"bottleneck": "tbf rate 10mbit burst 6056 limit 30000", "flows": parse_mix(mix)})
    caveats = tuple(limits.above_link(scenario, goodputs))
    assert len(caveats) == len(said)
    assert all(caveat.startswith(part) for caveat, part in zip(caveats, said, strict=True))


def test_goodput_has_no_bound_without_a_rate():
    assert not list(limits.above_link(Scenario.of({"forward": "netem delay 5ms"}), [1e6]))


def test_a_time_without_a_unit_is_explained():
    scenario = Scenario.of(
        {"forward": ["netem delay 25", "netem delay 25ms"], "bottleneck": "tbf rate 10mbit burst 6056 latency 50000", "duration": "100ms"}
    )
    explained = [
        "netem: 25 after delay is 25 µs in tc's words; write 25ms for milliseconds",
        "tbf: 50000 after latency is 50000 µs in tc's words; write 50000ms for milliseconds",
    ]
    assert [caveat for caveat in engines.make("model").run(scenario, [0])[0].caveats if "after" in caveat] == explained


def test_an_empty_path_is_refused(engine):
    with pytest.raises(ScenarioError, match="path: it is empty: no delay, no rate, no queue; give it one, for example forward: netem delay 25ms"):
        engine.check(Scenario.of({}))


def test_the_changes_in_the_page_of_schedules_are_a_scenario():
    page = (ROOT / "docs" / "models" / "queues" / "schedule.md").read_text("utf-8")
    scenario = Scenario.of(files.read_yaml(page.partition("```yaml\n")[2].partition("```")[0], "page"), "page")
    assert [bool(kind) for c in scenario.changes for kind in (c.at, c.ramp, c.every, c.trace)] == [i % 5 == 0 for i in range(16)]
    assert scenario.changes[0] == files.load("rate-drop").changes[0]


@pytest.mark.skipif(platform.system() != "Linux", reason="this machine does not run Linux")
def test_the_kernel_of_this_machine_is_named_by_its_values(need_model):
    kernel = Scenario.of({"kernel": "host,hz=123"}, "test").kernel
    assert kernel.profile in _core.kernel_profiles()
    assert kernel.hz == 123
    usual = json.loads(_core.kernel_profile(kernel.profile))
    least, default, most = Path("/proc/sys/net/ipv4/tcp_rmem").read_text().split()
    assert (kernel.tcp_rmem_default or usual["tcp_rmem_default"], kernel.tcp_rmem_max or usual["tcp_rmem_max"]) == (int(default), int(most))
    assert int(least) > 0


# In what two scenarios differ, in words.


BASE = {"forward": [{"delay": "25ms", "jitter": "8ms"}], "reverse": [{"delay": "25ms"}], "bottleneck": [{"rate": "10mbit"}]}


@pytest.mark.parametrize(
    ("change", "texts"),
    [
        ({"name": "other", "about": "other"}, []),
        ({"flows": [{"cca": "bbr"}]}, []),
        ({"forward": [{"delay": "25ms", "jitter": "4ms"}]}, ["jitter 8ms / 4ms normal of the data"]),
        ({"forward": [{"delay": "25ms"}]}, ["jitter 8ms normal of the data / none"]),
        ({"forward": [{"delay": "25ms", "jitter": "8ms", "limit": 1000}]}, ["forward limit 100000 / 1000"]),
        ({"bottleneck": []}, ["bottleneck 10mbit / none", "queue a FIFO of 62.5kB (1 BDP) / none"]),
        ({"bottleneck": [{"rate": "10mbit", "queue": "fq_codel"}]}, ["queue a FIFO of 62.5kB (1 BDP) / fq_codel"]),
        ({"ecn": True}, ["none / ECN"]),
        ({"mtu": 9000}, ["mtu 1500 / 9000"]),
        ({"kernel": "6.12,wmem_max=4MiB"}, ["kernel profile 6.1 / 6.12", "kernel wmem_max default / 4MiB"]),
        ({"duration": "20s"}, ["duration 10s / 20s"]),
        ({"flows": [{"count": 3}]}, ["1 flow / 3 flows"]),
        ({"changes": [{"where": "forward", "at": "3s", "set": {"loss": "1%"}}]}, ["changes none / forward loss 1% from 3s on"]),
    ],
)
def test_each_difference_has_both_values(change, texts):
    assert differences(Scenario.of(BASE), Scenario.of({**BASE, **change})) == texts


def test_the_place_of_a_netem_is_a_difference_of_its_own():
    at_sender, at_router = ({**BASE, "forward": [{"at": place, "delay": "25ms", "jitter": "8ms"}]} for place in ("sender", "router"))
    assert differences(Scenario.of(at_sender), Scenario.of(at_router)) == ["netem at the sender (it treats super-packets as one) / none"]


def test_hops_of_another_kind_are_written_out():
    """The same delay as fields at a router and as tc's words at the sender: no phrase differs, the hops do."""
    fields, words = ({**BASE, "forward": [hop]} for hop in ({"at": "router", "delay": "25ms"}, "netem delay 25ms"))
    assert differences(Scenario.of(fields), Scenario.of(words)) == ["forward at router delay 25ms / netem delay 25ms"]
