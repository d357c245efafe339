"""Impairments done again: fates from captures on both sides of netem, what cannot be replayed, the model with recorded fates, a kernel's trial."""

import json
import struct
from dataclasses import replace

import polars as pl
import pytest

from tcpscape import engines
from tcpscape.engines.model import VirtualHostModel
from tcpscape.errors import TcpscapeError
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture
from tcpscape.validate import exact, replay, validation
from tcpscape.validate.draw import IMPAIRED, ExactDraw, ImpairedDraw

A, B = bytes([10, 0, 0, 1]), bytes([10, 0, 1, 2])
ROUTER = {"forward": [{"at": "router", "delay": "10ms"}], "reverse": "netem delay 10ms", "kernel": {"host_time": "0s"}}
COPIES = {"forward": [{"at": "router", "delay": "10ms", "duplicate": "5%"}], "flows": [{"cca": "reno"}]}


def packet(t_ns, ident, payload=0, flags=0x10, source=A, ttl=64):
    tcp = struct.pack(">HHIIBBHHH", 1, 2, 1000 * ident, 7, 5 << 4, flags, 99, ident, 0)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + payload, ident, 0, ttl, 6, ttl, source, B if source == A else A)
    whole = (ip + tcp + bytes(payload))[:160]
    return struct.pack("<4I", t_ns // 10**9, t_ns % 10**9, len(whole), 40 + payload) + whole


def capture(*packets):
    return bytes(24) + b"".join(packets)


def test_fates_are_matched_by_content_and_a_super_packet_has_one_for_each_segment():
    syn = {"flags": 2}
    before = capture(
        packet(0, 1, **syn), packet(500, 9, source=B), packet(1000, 2, 200), packet(1100, 3, 100), packet(1200, 4, 100), packet(1300, 5, 100)
    )
    behind = capture(
        packet(100, 1, ttl=63, **syn), packet(450, 9, source=B, ttl=63), packet(1210, 4, 100, ttl=63), packet(3000, 2, 200, ttl=63),
        packet(3300, 5, 100, ttl=63), packet(4300, 5, 100, ttl=63),
    )  # fmt: skip
    assert replay.fates(before, behind, "forward", 100) == [((0, 100),), ((2, 2000),), ((2, 2000),), (), ((1, 10),), ((3, 2000), (4, 3000))]


def test_what_left_before_it_came_is_no_copy_of_it():
    assert replay.fates(capture(packet(50, 1, flags=2)), capture(packet(10, 1, flags=2)), "forward", 100) == [()]


def test_the_same_content_again_after_all_others_have_left_is_another_packet():
    twice = capture(packet(0, 1, flags=2), packet(1000, 2, 100), packet(5000, 2, 100))
    behind = capture(packet(2000, 1, flags=2), packet(2900, 2, 100), packet(3000, 2, 100), packet(7000, 2, 100))
    assert replay.fates(twice, behind, "forward", 100) == [((0, 2000),), ((1, 1900), (2, 2000)), ((3, 2000),)]


def test_packets_that_cannot_be_told_apart_have_no_fates():
    """The first may have been lost, or been copied: three left, of two that came one after the other."""
    syn, resets = packet(0, 1, flags=2), [packet(1600, 8, flags=4), packet(1700, 8, flags=4)]
    left = [packet(2000, 1, flags=2, ttl=63), packet(3500, 8, flags=4), packet(3600, 8, flags=4)]
    behind = capture(left[0], packet(3000, 2, 100), packet(3000, 2, 100), packet(3500, 2, 100), *left[1:])
    assert replay.fates(capture(syn, packet(1000, 2, 100), packet(1500, 2, 100), *resets), behind, "forward", 100) is None
    resets_alone = replay.fates(capture(syn, *resets), capture(*left), "forward", 100)
    assert resets_alone == [((0, 2000),), (), ((1, 1800), (2, 1900))], "after the end of the connection nothing is compared"


def test_a_draw_impairs_the_same_paths_in_every_way():
    drawn, plain = ImpairedDraw(24, 2).conditions(), ExactDraw(24, 2).conditions()
    assert {(c.cca, kind) for c in drawn for kind in IMPAIRED if c.describe().endswith(f", {kind}")} == {
        (cca, kind) for cca in ("cubic", "reno", "bbr") for kind in IMPAIRED
    }
    for impaired, own in zip(drawn, plain, strict=True):
        assert (impaired.scenario.rtt_ns, impaired.scenario.bottleneck) == (own.scenario.rtt_ns, own.scenario.bottleneck)
        assert replay.impaired(impaired.scenario)
        assert replay.refusal(impaired.scenario) is None
        assert not replay.impaired(own.scenario)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"forward": "netem delay 10ms loss 1%"}, "forward: impairments are recorded in one netem, at the first router"),
        ({"forward": [{"at": "router", "delay": "10ms", "loss": "1%"}], "kernel": "6.1"}, "kernel.host_time: "),
        ({"forward": [{"at": "router", "delay": "10ms", "corrupt": "1%"}]}, "forward: damaged and marked packets"),
        ({"forward": [{"at": "router", "delay": "10ms", "jitter": "1ms", "order": "clamp"}]}, "forward: damaged and marked packets"),
        ({"reverse": "netem delay 10ms 1ms"}, "reverse: impairments are recorded in one netem"),
        ({"reverse": ["pfifo", "netem delay 10ms 1ms", "netem delay 1ms"]}, "reverse: impairments are recorded in the only queue"),
        ({"reverse": ["pfifo", "netem delay 10ms 1ms"]}, None),
    ],
)
def test_what_cannot_be_replayed_is_named(fields, problem):
    why = replay.refusal(Scenario.of({**ROUTER, **fields}))
    assert why is None if problem is None else why.startswith(problem)


def test_other_sides_draw_their_own(tmp_path):
    options = validation.ValidationOptions(tmp_path, ("model", "model:6.12"), exact=True, impaired=True, n=2)
    with pytest.raises(TcpscapeError, match="write --engine model --engine virtual, whose netem the model replays"):
        exact.run(validation.prepare(options), (), tmp_path, validation.quiet)
    with pytest.raises(TcpscapeError, match="impaired: the paths are not those that --exact draws"):
        validation.prepare(replace(options, exact=False, random=2, n=None))


def test_where_no_condition_has_fates_nothing_is_compared(monkeypatch, tmp_path):
    class Kernel(VirtualHostModel):
        """In the place of a kernel whose captures leave open which packet a copy is of."""

        name = "virtual"

        def __init__(self, *_):
            super().__init__()

        def fates(self, scenario, seed):
            return None

    monkeypatch.setattr(exact, "Virtual", Kernel)
    monkeypatch.setattr(replay, "RecordingKernel", Kernel)
    session = validation.prepare(validation.ValidationOptions(tmp_path, ("model", "model:6.12"), exact=True, impaired=True, n=1))
    path = validation.NamedScenario("copies", Scenario.of({**ROUTER, **COPIES, "duration": "1s"}))
    sides = replace(session.plan, conditions=[path], b=replace(session.plan.a, engine=Kernel()))
    with pytest.raises(TcpscapeError, match=r"^conditions: no condition can be compared \(forward: two packets with the same content"):
        exact.run(replace(session, plan=sides), (), tmp_path, validation.quiet)


def packets(model, scenario):
    return model.run(scenario, [0], capture=Capture(packets=True))[0].packets


def test_the_model_does_to_each_segment_what_is_recorded():
    """The segment that is lost is sent again; without fates nothing is; a trial with others has another address."""
    scenario = Scenario.of({**ROUTER, "name": "lossy", "duration": "1s", "forward": [{"at": "router", "delay": "10ms", "loss": "1%"}]})
    delayed = [((i, 10_000_000),) for i in range(40)]
    lost = [*delayed[:30], (), *delayed[31:]]
    models = [replay.ReplayingModel({"lossy": {"forward": fates}}) for fates in (delayed, lost)]
    sent = [packets(m, scenario).filter((pl.col("received") == 0) & (pl.col("len") > 0)) for m in models]
    again = [s.height - s["seq"].n_unique() for s in sent]
    assert again[0] == 0 < again[1]
    assert models[0].address(scenario, 0) != models[1].address(scenario, 0)


def test_a_kernels_impairments_are_replayed(need_virtual, tmp_path):
    """Loss, and jitter on both ways: the segments are the same for longer than they could be by chance."""
    engine = engines.make("virtual")
    path = {
        **ROUTER,
        "name": "all",
        "duration": "2s",
        "tick_phase": "3ms",
        "forward": [{"at": "router", "delay": "10ms", "jitter": "1ms", "loss": "2%"}],
        "bottleneck": ["tbf rate 5mbit burst 6056 limit 60000; bfifo limit 60000"],
        "reverse": ["pfifo limit 100000", {"delay": "10ms", "jitter": "300us"}],
        "flows": [{"cca": "reno"}],
    }
    session = validation.prepare(validation.ValidationOptions(tmp_path, ("model", "virtual"), exact=True, impaired=True, n=1))
    condition = validation.NamedScenario("all", Scenario.of(path))
    session = replace(session, plan=replace(session.plan, conditions=[condition]))
    (twin,) = exact.run(session, (), tmp_path, validation.quiet).twins
    (file,) = (tmp_path / exact.FATES).glob("*.json")
    counts = [len(fate) for fate in json.loads(file.read_text())["forward"]]
    assert counts.count(0) > 0 < counts.count(1)
    (drawn,) = engines.make("model").run(condition.scenario, [0], capture=Capture(packets=True))
    (reference,) = engine.run(condition.scenario, [0], capture=Capture(packets=True))
    unlike = exact.compared(condition, *(exact.recording(trial, condition) for trial in (drawn, reference)))
    assert twin.same >= 300 > unlike.same


def test_copies_join_the_kernels_buffers_as_they_do_the_models(need_virtual, tmp_path):
    """Loss, jitter and copies: every segment is the same, SACK blocks among them. (Searched in other order, the queue beyond a gap parts after 105.)"""
    path = {
        **ROUTER,
        "name": "copies",
        "duration": "2s",
        "tick_phase": "3ms",
        "forward": [{"at": "router", "delay": "10ms", "jitter": "1ms", "loss": "2%", "duplicate": "2%"}],
        "bottleneck": ["tbf rate 5mbit burst 32kb limit 100000; bfifo limit 100000"],
        "reverse": ["pfifo limit 100000", {"delay": "10ms"}],
        "flows": [{"cca": "cubic"}],
    }
    session = validation.prepare(validation.ValidationOptions(tmp_path, ("model", "virtual"), exact=True, impaired=True, n=1))
    session = replace(session, plan=replace(session.plan, conditions=[validation.NamedScenario("copies", Scenario.of(path))]))
    (twin,) = exact.run(session, (), tmp_path, validation.quiet).twins
    assert twin.is_same
    assert twin.same > 1000
