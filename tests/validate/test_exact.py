"""Two engines segment by segment: the deterministic draw, what is the same, the first difference with the senders' states, the command."""

import csv
from dataclasses import replace

import polars as pl
import pytest
from pydantic import TypeAdapter

from tcpscape import engines
from tcpscape.engines import plan
from tcpscape.engines.model import VirtualHostModel
from tcpscape.errors import TcpscapeError
from tcpscape.trial import Capture
from tcpscape.validate import exact, sides, validation
from tcpscape.validate.draw import ExactDraw
from tcpscape.validate.exact import Kind, Recording, Segment
from tcpscape.words.exact import ExactDocument, exact_screen

CONDITION = ExactDraw(1, 3, ("reno",)).conditions()[0]


def sent(seq, t_ns=0, length=1448, flags=0x10):
    return Segment(t_ns, False, seq, 1, length, flags, ())


def got(ack, t_ns=0, sack=()):
    return Segment(t_ns, True, 1, ack, 0, 0x10, sack)


def of(*segments):
    return Recording(segments, len(segments), 0)


def test_a_draw_has_nothing_random_in_it_and_its_first_host_no_queue():
    drawn = ExactDraw(48, 2).conditions()
    assert [c.scenario for c in ExactDraw(10, 2).conditions()] == [c.scenario for c in drawn[:10]]
    for c in drawn:
        assert not any(c.impairments[1:])
        assert c.scenario.forward[0].at == "router"
        assert 0 <= c.scenario.tick_phase < 10_000_000
    queues = {c.queue for c in drawn}
    assert queues == {"none", "bfifo", "pfifo", "codel", "codel ecn", "fq_codel", "fq_codel ecn"}
    assert {c.cca for c in drawn} == {"cubic", "reno", "bbr"}


@pytest.mark.parametrize(
    ("kind", "a", "b"),
    [
        (Kind.TURN, sent(1), got(1449)),
        (Kind.PLACE, sent(1), sent(1449)),
        (Kind.LENGTH, sent(1), sent(1, length=952)),
        (Kind.PUSH, sent(1), sent(1, flags=0x18)),
        (Kind.FLAGS, sent(1), sent(1, flags=0x90)),
        (Kind.ACK, got(1449), got(2897)),
        (Kind.SACK, got(1449, sack=((2897, 4345),)), got(1449)),
    ],
)
def test_the_first_difference_is_named(kind, a, b):
    twin = exact.compared(CONDITION, of(sent(1), a, sent(99)), of(sent(1, 700), b, sent(99)))
    assert (twin.same, twin.compared, twin.apart_ns, twin.first.kind) == (1, 3, 700, kind)
    assert (twin.first.a, twin.first.b) == (a, b)


def test_one_that_ends_earlier_differs_there_and_equal_ones_do_not():
    ends = exact.compared(CONDITION, of(sent(1), sent(1449, 5)), of(sent(1)))
    assert (ends.same, ends.first.kind, ends.first.b, ends.first.t_ns) == (1, Kind.ENDS, None, 5)
    same = exact.compared(CONDITION, of(sent(1), got(1449)), of(sent(1, 256), got(1449)))
    assert (same.is_same, same.same_times, same.apart_ns) == (True, False, 256)
    assert exact.compared(CONDITION, of(sent(1, 3)), of(sent(1, 3))).same_times


def test_super_packets_are_compared_as_what_they_are_cut_into():
    trial = engines.make("model").run(CONDITION.scenario, [0], capture=Capture(packets=True))[0]
    longest = trial.packets["len"].max()
    cut = exact.recording(trial, CONDITION)
    data = [s for s in cut.segments if s.length and not s.received]
    assert longest > 1448 >= max(s.length for s in data)
    assert sum(s.length for s in data) == trial.packets.filter(trial.packets["received"] == 0)["len"].sum()
    assert data[0].flags == 0x10
    assert data[1].flags == 0x18
    assert next(s.t_ns for s in cut.segments if s.received) == 0
    assert exact.compared(CONDITION, cut, cut).same_times


def test_two_kernels_are_compared_and_the_states_before_are_told(tmp_path):
    options = validation.ValidationOptions(tmp_path, ("model", "model:6.12"), exact=True, n=2, seed=3, cca=("reno",))
    session = validation.prepare(options)
    conditions = [replace(c, scenario=c.scenario.model_copy(update={"duration": 1_000_000_000})) for c in session.plan.conditions]
    session = replace(session, plan=replace(session.plan, conditions=conditions))
    result = exact.run(session, exact.read_bounds("same>=1,share<=0.5"), tmp_path, validation.quiet)
    parted = [t for t in result.twins if t.first]
    assert parted
    for t in parted:
        columns = {q.column for q, *_ in t.first.states}
        assert {"cwnd", "ssthresh", "srtt_us", "in_flight", "pacing_rate"} <= columns
        assert all(a is not None and b is not None for _, a, b in t.first.states)
    text = exact_screen(result).text(verbose=True)
    count = len(result.same)
    assert (f"{count} of 2 conditions: the same" if count else "none of 2 conditions has the same segments to the end; they part first at") in text
    assert "the sender before" in text
    rows = list(csv.DictReader((tmp_path / exact.RESULTS).open()))
    assert [r["kind"] for r in rows] == [t.first.kind.value if t.first else "" for t in result.twins]
    again = exact.run(session, (), tmp_path, validation.quiet)
    assert again.twins == result.twins


def test_the_tick_is_as_far_from_the_syn_ack_on_both_sides(tmp_path):
    session = validation.prepare(validation.ValidationOptions(tmp_path, ("model", "model:6.1"), exact=True, n=4, seed=5, cca=("reno",)))
    a, b = session.plan.a, session.plan.b

    class Later(type(b)):
        """Connects 5.5 ms later, half a tick and half a millisecond."""

        def scenario(self, condition):
            plain = super().scenario(condition)
            return plain.model_copy(update={"flows": tuple(f.model_copy(update={"start": 5_500_000}) for f in plain.flows)})

    session = replace(session, plan=replace(session.plan, b=Later(**vars(b))))
    result = exact.run(session, (), tmp_path, validation.quiet)
    assert [t.condition for t in result.twins] == session.plan.conditions
    parted_unaligned = 0
    for c, twin in zip(session.plan.conditions, result.twins, strict=True):
        (one,), (other,) = (side.engine.run(side.scenario(c), [0], capture=Capture(packets=True)) for side in (a, session.plan.b))
        assert exact.recording(other, c).zero_ns - exact.recording(one, c).zero_ns == 5_500_000
        unaligned = exact.compared(c, exact.recording(one, c), exact.recording(other, c))
        parted_unaligned += not unaligned.same_times
        assert twin.same >= unaligned.same
        assert twin.first is None or twin.first.kind == Kind.ENDS
        assert twin.apart_ns == 0
    assert parted_unaligned > 0


@pytest.mark.parametrize("hz", [100, 250, 1000])
@pytest.mark.parametrize("by_ns", [-9_999_000, -300, 700, 9_999_000])
def test_a_tick_that_falls_later_is_that_of_every_kernel(hz, by_ns):
    c = replace(CONDITION, scenario=CONDITION.scenario.model_copy(update={"tick_phase": 5_000_000}))
    phase = exact._shifted(c, by_ns).scenario.tick_phase
    assert phase >= 0
    assert (phase - 5_000_000 - by_ns) % (1_000_000_000 // hz) == 0


def test_the_model_beside_a_kernel_in_virtual_time_has_its_clock():
    path = {"forward": "netem delay 10ms", "reverse": "netem delay 10ms"}
    pacing = type(CONDITION.scenario).of({**path, "flows": [{"cca": "reno", "app": "1MB/s"}]})
    alike, usual = VirtualHostModel(), engines.make("model")
    assert alike.addresses(pacing, [0]) != usual.addresses(pacing, [0])
    packets = [e.run(pacing, [0], capture=Capture(packets=True))[0].packets for e in (alike, usual)]
    steps = [p.filter(pl.col("t_ns") % plan.READING_NS != 0).height for p in packets]
    assert steps[0] == 0 < steps[1]
    sends = [p.filter(pl.col("received") == 0)["t_ns"].to_list() for p in packets]
    # 250 sleeps that end one to two steps late
    assert 0 < sends[0][500] - sends[1][500] < 250 * 2 * plan.READING_NS


def test_the_clock_stands_where_the_times_of_the_first_segments_say(tmp_path):
    """The model beside itself, whose clock has gone 104 of 256 ns of a step when its trial begins."""
    drawn = [exact._named(c) for c in ExactDraw(3, 1, ("reno",)).conditions()[:1]]
    other = VirtualHostModel({c.id: 104 for c in drawn})
    references = [exact.recording(t, c) for c in drawn for t in other.run(c.scenario, [0], capture=Capture(packets=True))]
    found = exact._in_phase(drawn, references, sides.EngineSide("model", VirtualHostModel()), tmp_path, validation.quiet)
    for c, reference in zip(drawn, references, strict=True):
        apart = [
            exact.compared(c, exact.recording(t, c), reference)
            for engine in (VirtualHostModel(), found.engine)
            for t in engine.run(c.scenario, [0], capture=Capture(packets=True))
        ]
        assert apart[0].apart_ns > 0
        assert apart[1].same_times


def test_json_has_the_first_difference_of_each_condition(tmp_path, cli):
    sides = ("--engine", "model", "--engine", "model:6.12")
    got = cli("validate", "--exact", "--n", "2", "--seed", "3", "--cca", "reno", *sides, "--json", "--out", tmp_path)
    document = TypeAdapter(ExactDocument).validate_json(got.out, strict=True)
    rows = list(csv.DictReader((tmp_path / exact.RESULTS).open()))
    assert [(c["condition"], c["same"]) for c in document["conditions"]] == [(r["id"], int(r["same"])) for r in rows]
    assert document["same"] == sum(c["difference"] is None for c in document["conditions"])
    parted = [c for c in document["conditions"] if c["difference"]]
    assert parted
    assert all(c["a"] != c["b"] and c["states"] and c["same"] < c["compared"] for c in parted)
    assert all(c["a"] is c["b"] is None for c in document["conditions"] if not c["difference"])
    refused = cli("validate", "--explain", "e000", "--json", "--out", tmp_path)
    assert (refused.status, refused.out) == (2, "")
    assert "json: " in refused.err


def test_what_cannot_be_compared_is_refused_or_left_out(tmp_path, cli):
    got = cli(
        "validate", "--exact", "--n", "1", "--seed", "3", "--engine", "model", "--engine", "model:6.12", "--check", "same>=2", "--out", tmp_path
    )
    assert got.status == 1
    assert "1 of 1 bounds missed" in got.out
    for options, what in (
        (["--n", "3"], "n:"),
        (["--exact", "--random", "3"], "random:"),
        (["--exact", "--paired", "--cca", "reno,cubic"], "paired:"),
        (["--exact", "--check", "median<=1"], "check:"),
        (["--exact", "--explain", "e000"], "explain:"),
        (["--exact", "--seeds", "3"], "seeds:"),
        (["--exact", "--most-seeds", "24"], "most_seeds:"),
        (["--exact", "--impaired", "--worst", "0"], "worst:"),
        (["--exact", "--precision", "0.1"], "precision:"),
        (["--impaired"], "impaired:"),
    ):
        refused = cli("validate", *options, "--engine", "model", "--engine", "model:6.12", "--out", tmp_path / "no")
        assert refused.status == 2
        assert what in refused.err
    jitter = CONDITION.scenario.model_copy(update={"reverse": type(CONDITION.scenario).of({"forward": "netem delay 9ms 1ms"}).forward})
    session = validation.prepare(validation.ValidationOptions(tmp_path, ("model", "model:6.12"), exact=True, n=1))
    with pytest.raises(TcpscapeError, match="each side draws loss and jitter by itself"):
        exact.run(replace(session, plan=replace(session.plan, conditions=[replace(CONDITION, scenario=jitter)])), (), tmp_path, validation.quiet)
