"""`tcpscape bound`: the arithmetic of equations 2 and 3, the flow-weighted form, and what the command prints."""

import json
import math
import shlex

import pytest

from tcpscape.findings import spike
from tcpscape.findings.spike import Bound

MS = 1_000_000


def bound(to=20_000_000, d=50, **rest):
    return Bound(60_000_000, to, ((d * MS, 1.0),), **rest)


def test_the_papers_equations():
    """r = 3, d = 50 ms: Q = 2·50 = 100 ms; behind a queue of 20 ms, (100 − 20)/100 = 80 % of the excess."""
    assert (spike.spike(3, 50), spike.excess_lost(100, 20)) == (100, pytest.approx(0.8))
    assert (spike.spike(0.9, 50), spike.excess_lost(100, 150), spike.excess_lost(0, 10)) == (0, 0, 0)


def test_bytes_balance():
    """60 Mbit/s bring 375 kB in 50 ms, 20 Mbit/s take 125 kB: 250 kB queue; with 20 ms of queue (50 kB) 200 kB are lost, 53.3 % of 375."""
    whole = bound()
    assert (whole.spike_ns, whole.queued_bytes) == (100 * MS, pytest.approx(250_000))
    assert (whole.lost_bytes, whole.lost) == (0, 0)
    cut = bound(max_queue_ns=20 * MS)
    assert (cut.spike_ns, cut.queued_bytes) == (20 * MS, pytest.approx(50_000))
    assert (cut.lost_bytes, cut.lost) == (pytest.approx(200_000), pytest.approx(200 / 375))
    assert cut.queued_bytes + cut.lost_bytes == pytest.approx(whole.queued_bytes)


def test_a_queue_longer_than_the_spike_loses_nothing():
    result = bound(max_queue_ns=200 * MS)
    assert (result.spike_ns, result.excess_lost, result.lost_bytes) == (100 * MS, 0, 0)


def test_no_queue_loses_all_of_the_excess_but_not_all_that_arrives():
    result = bound(max_queue_ns=0)
    assert (result.excess_lost, result.lost) == (1, pytest.approx(2 / 3))


def test_windows_stay_below_the_sum_where_rtts_differ_much(cli):
    """r = 2: up to three times the shortest RTT windows make the sum, beyond it the answer says that they may not."""
    words = ("bound", "--from", "60mbit", "--to", "30mbit", "--flows")
    assert "more than (1 + r) times the shortest" in " ".join(cli(*words, "25ms:0.5,100ms:0.5").out.split())
    assert "more than (1 + r) times the shortest" not in " ".join(cli(*words, "25ms:0.5,75ms:0.5").out.split())


def test_flows_are_weighted_by_their_shares():
    """0.7·50 + 0.3·20 = 41 ms; 82 ms of spike; the sum of each flow's own excess: (0.7·50 + 0.3·20) ms at 60 − 20 Mbit/s = 205 kB."""
    result = Bound(60_000_000, 20_000_000, ((50 * MS, 0.7), (20 * MS, 0.3)))
    assert result.unlimited_ns == pytest.approx(82 * MS)
    own = sum(share * 40e6 / 8 * d / 1e9 for d, share in result.flows)
    assert result.queued_bytes == pytest.approx(own) == pytest.approx(205_000)


def test_the_queue_drains_with_what_the_load_leaves():
    """100 ms of queue: 20 % of the link left over empty it in 500 ms."""
    assert bound().drain_ns(0.8) == pytest.approx(500 * MS)
    assert bound().drain_ns(0) == 100 * MS
    assert math.isinf(bound().drain_ns(1))


def test_the_command_answers_in_words(cli):
    said = cli("bound", "--from", "60mbit", "--to", "20mbit", "--rtt", "50ms", "--max-queue", "20ms")
    assert said.status == 0
    path, answer, *rest = said.out.splitlines()
    assert path == "A full link drops from 60mbit to 20mbit: r = 3.00; d = 50.0 ms from the bottleneck to the sender and back"
    assert answer == "→ The delay rises by 20.0 ms, where the queue is full; without its limit at least 100 ms: 80.0 % of what would queue is lost."
    assert any("200 kB (132 packets of 1514 B), 53.3 % of all that arrives in the 50.0 ms after the drop" in line for line in rest)
    assert len(rest) <= 18
    assert cli("bound", "--from", "60mbit", "--to", "20mbit", "--rtt", "50ms", "--quiet").out == (
        "→ The delay rises by at least 100 ms, (r − 1)·d: the RTT peaks at 150 ms or more.\n"
    )


def test_a_queue_that_stands_is_said_and_shown(cli, need_model):
    """The command of the last line runs: CUBIC keeps a FIFO of 3 BDP full, 3 · 3 · 50 ms = 450 ms at the new rate, above the path's 50 ms."""
    out = " ".join(cli("bound", "--from", "60mbit", "--to", "20mbit", "--rtt", "50ms").out.split())
    assert "150 ms for 1 BDP, 450 ms for 3 BDP." in out
    command = out.partition("Next: tcpscape ")[2].partition(" (the column")[0]
    lines = cli(*shlex.split(command), "--seeds", "1", "--json").lines
    highest = {line["cca"]: line["flows"][0]["rtt_ms"]["max"] for line in lines}
    assert highest["cubic"] == pytest.approx(500, rel=0.02)
    assert highest["bbr"] > 150


def test_the_command_answers_in_json(cli):
    said = cli("bound", "--from", "60mbit", "--to", "30mbit", "--flows", "50ms:0.7,20ms:0.3", "--json")
    result = json.loads(said.out)
    assert result["spike_ms"] == pytest.approx(41)
    assert result["queued_bytes"] == pytest.approx(41e-3 * 30e6 / 8)
    assert result["drained_after_ms"]["0.5"] == pytest.approx(82)
    assert result["max_queue_ms"] is None
