"""mahimahi's packet-delivery traces as a link's rate, and back."""

import itertools
import random
import re

import pytest

import tcpscape
from tcpscape.errors import ScenarioError
from tcpscape.interchange import mahimahi
from tcpscape.scenario import files, limits, options, traces
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.traces import FRAME, MS


def trace(tmp_path, ms):
    path = tmp_path / "link.up"
    path.write_text(traces.dump(ms))
    return traces.read(str(path))


def cellular(seed: int) -> list[int]:
    """Bursts of packets in a millisecond, gaps of some, fades of hundreds."""
    rng = random.Random(seed)
    at, ms = 0, []
    while at < 3000:
        at += rng.choices([0, 1, 2, 7, rng.randint(20, 400)], [40, 30, 15, 10, 5])[0]
        ms.append(at)
    return ms


def departures(link, count):
    """When a bucket that follows the rates has paid for each packet of a queue that is never empty, ms."""
    points, whole, carried, k = link.rates(), link.period, 0.0, 1
    for cycle in itertools.count():
        for (begin, rate), until in zip(points, [*(t for t, _ in points[1:]), whole], strict=True):
            after = carried + rate * (until - begin) / 8e9
            while after + 0.01 >= k * FRAME:  # bytes; the rates are whole ones
                yield (cycle * whole + begin + max(0.0, k * FRAME - carried) / rate * 8e9) / MS
                k += 1
                if k > count:
                    return
            carried = after


def test_a_steady_trace_is_one_rate(tmp_path):
    link = trace(tmp_path, range(1, 101))
    assert link.rates() == [(0, FRAME * 8 * 1000)]  # 12.112 Mbit/s of frames are mahimahi's 12.032 Mbit/s
    assert (link.period, link.mean_rate) == (100 * MS, 12_112_000)


def test_one_packet_after_a_gap_takes_the_whole_gap(tmp_path):
    assert trace(tmp_path, [10]).rates() == [(0, FRAME * 8 * 100)]


def test_several_packets_after_a_gap_come_in_its_last_millisecond(tmp_path):
    (zero, one), (first, slow), (last, two) = trace(tmp_path, [1, 11, 11, 11]).rates()
    assert (zero, first, last) == (0, MS, 10 * MS)
    assert (one, slow, two) == pytest.approx((FRAME * 8e3, FRAME * 8e3 / 9, 2 * FRAME * 8e3), rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_a_busy_link_sends_at_the_opportunity_or_a_millisecond_before(seed, tmp_path):
    ms = cellular(seed)
    link = trace(tmp_path, ms)
    count = 2 * len(ms)
    said = [*sorted(t or ms[-1] for t in ms), *(t + ms[-1] for t in sorted(t or ms[-1] for t in ms))]
    early = [due - left for due, left in zip(said, departures(link, count), strict=True)]
    gap = max(b - a for a, b in itertools.pairwise([0, *ms])) / 1e3
    assert max(early) <= 1 + 2 * gap / (FRAME / gap) * 1e3  # rates are whole bytes a second, in this gap and the one before
    assert min(early) >= -0.01


def test_stretches_have_the_trace_s_mean_and_none_is_an_outage(tmp_path):
    link = trace(tmp_path, [0, 1, 2, 20, 21, 45])
    points = link.means(10 * MS)
    assert points == [(0, 3 * FRAME * 800), (10 * MS, FRAME * 800), (30 * MS, 0), (40 * MS, FRAME * 1600)]
    for seed in range(3):
        ms = cellular(seed)
        link = trace(tmp_path, ms)
        points = link.means(50 * MS)
        carried = sum(rate / 8e9 * (end - begin) for (begin, rate), (end, _) in itertools.pairwise([*points, (link.period, 0)]))
        assert carried / FRAME == pytest.approx(len(ms), abs=0.1)


@pytest.mark.parametrize("each", ["0ms", "50ms"])
def test_the_engine_sends_what_the_trace_lets_through(each, tmp_path, need_model):
    ms, window = cellular(1), 150
    link = trace(tmp_path, ms)
    outages = 10 * sum(rate == 0 for _, rate in link.means(50 * MS)) if each != "0ms" else 0
    hop = {"trace": str(tmp_path / "link.up"), "buffer": "1MB", "bin": each}
    flow = {"cca": f"fixed:cwnd={window}", "app": {"chunk": 144_800}, "rcvbuf": "8MB", "sndbuf": "8MB"}  # chunks of full segments
    path = {"forward": "netem delay 5ms limit 10000", "bottleneck": hop, "reverse": "netem delay 5ms limit 10000"}
    (trial,) = tcpscape.run({**path, "flows": [flow], "duration": f"{10 * ms[-1]}ms"}, seeds=[0]).trials
    link = next(q for q in trial.queues if q["name"] == "tbf")
    sent = link["bytes_out"] / FRAME
    assert sent <= 10 * len(ms) + window + outages  # what the queue holds at the end still arrives; a bucket fills in an outage
    assert sent >= 10 * len(ms) - 40  # opportunities in the handshake and slow start's idle milliseconds


def test_the_content_is_in_the_scenarios_address(tmp_path):
    one = Scenario.of({"bottleneck": {"trace": trace(tmp_path, [5, 6, 9]).file}, "forward": "netem delay 5ms"})
    (tmp_path / "copy").write_text("5\n6\n9\n")
    same = Scenario.of({"bottleneck": {"trace": str(tmp_path / "copy")}, "forward": "netem delay 5ms"})
    (tmp_path / "copy").write_text("5\n6\n10\n")
    other = Scenario.of({"bottleneck": {"trace": str(tmp_path / "copy")}, "forward": "netem delay 5ms"})
    assert one.address() == same.address() != other.address()
    assert one == same
    assert same.model_copy(update={"name": "elsewhere"}).address() == one.address(), "not what was remembered of an equal one"
    assert Scenario.of(one.to_dict()) == one


def test_a_scenario_is_read_back_from_anywhere_but_not_with_another_trace(tmp_path, monkeypatch):
    trace(tmp_path, [5, 6, 9])
    monkeypatch.chdir(tmp_path)
    said = Scenario.of({"bottleneck": {"trace": "link.up"}, "forward": "netem delay 5ms"}).to_dict()
    monkeypatch.chdir("/")
    assert Scenario.of(said).bottleneck[0].trace.ms == (5, 6, 9)
    trace(tmp_path, [5, 6, 10])
    with pytest.raises(ScenarioError, match="is not what it was"):
        Scenario.of(said)


def test_a_trace_is_found_beside_its_scenario(tmp_path):
    trace(tmp_path, [5, 6, 9])
    (tmp_path / "s.yaml").write_text("bottleneck: {trace: link.up, buffer: 64KB}\nforward: netem delay 5ms\n")
    hop = files.load(tmp_path / "s.yaml").bottleneck[0]
    assert hop.trace.ms == (5, 6, 9)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no delivery opportunity"),
        ("1\n2\nx\n", "line 3: 'x' is not a time in ms"),
        ("5\n4\n", "line 2: 4 is before the 5"),
        ("0\n0\n", "lasts no time"),
        ("1.5\n", "line 1: '1.5'"),
        ("-1\n", "line 1: '-1'"),
        ("99999999999999999999\n", "line 1"),
        ("1\n\n2\n", "line 2: ''"),
        ("1\n90000000\n", "more than a day"),
    ],
)
def test_a_wrong_line_is_named(text, says, tmp_path):
    (tmp_path / "bad.up").write_text(text)
    with pytest.raises(ScenarioError, match=re.escape(says)):
        Scenario.of({"bottleneck": {"trace": str(tmp_path / "bad.up")}})


def test_a_binary_trace_is_one_line(tmp_path):
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    with pytest.raises(ScenarioError, match="is not text: there is a NUL byte in line 1"):
        traces.read(str(tmp_path / "binary"))


def test_rates_become_a_trace_that_carries_as_much(tmp_path):
    ms = traces.from_rates([(0, 10e6), (1, 0), (2, 3e6)], 5)
    assert len(ms) == int((10e6 + 3 * 3e6) / FRAME / 8)
    assert not [t for t in ms if 1000 < t <= 2000]
    assert ms[0] == 2  # 1514 · 8 / 10^7 s = 1.2 ms
    assert ms == sorted(ms)


def test_a_trace_of_a_trials_throughput(need_model):
    path = {"forward": "netem delay 5ms limit 1000", "bottleneck": "tbf rate 8mbit burst 6056 limit 60000", "reverse": "netem delay 5ms limit 1000"}
    (trial,) = tcpscape.run({**path, "duration": "5s"}, seeds=[0], samples="100ms").trials
    ms = [int(t) for t in mahimahi.write(trial).split()]
    steady = [t for t in ms if 1000 < t <= 4000]
    assert len(steady) * FRAME * 8 / 3 == pytest.approx(8e6, rel=0.02)


def replayed(tmp_path, **fields):
    """The caveats of a trial over a trace of two seconds."""
    file = tmp_path / "cell.trace"
    file.write_text(traces.dump(traces.from_rates([(0, 5e6), (1, 2e6)], 2)))
    return list(limits.caveats(options.scenario({"bottleneck": {"trace": str(file)}, "reverse": "netem delay 20ms"}, **fields)))


def test_a_trace_is_of_the_load_that_it_was_recorded_with(tmp_path):
    assert replayed(tmp_path, duration="1900ms") == []
    (longer,) = replayed(tmp_path, duration="10s")
    assert longer.startswith("trace cell.trace lasts 1995ms and begins again: the trial of 10s sees it 5.01 times")
    (limited,) = replayed(tmp_path, duration="1s", flow={"app": "1mbit"})
    assert "here every flow is limited by its application" in limited
