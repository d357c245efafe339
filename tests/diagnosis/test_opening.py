"""The round trip where a handshake alone shows it: flights in slow start and repairs confirm it, or show a jitter that it had too."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from arriving import arriving
from tcpscape.findings.diagnosis import path
from tcpscape.findings.diagnosis.path import opening

WAYS = 60.0, 40.0
"""Of the data and of the ACKs, ms."""


def starting(file, late=(), sizes=(10, 20, 40, 80, 160)):
    """A receiver's capture without timestamps: flights in slow start, of which each leaves so much later than the ACK that releases it, ms."""
    moved = np.zeros(len(sizes)) + np.resize((*late, 0.0), len(sizes)) if late else np.zeros(len(sizes))
    begins = 1_000 + np.cumsum(np.concatenate(([0.0], np.full(len(sizes) - 1, sum(WAYS) + 0.021)))) + moved
    times = np.concatenate([at + 0.02 * np.arange(size) for at, size in zip(begins, sizes, strict=True)])
    return arriving(file, times, np.full(times.size, 1_460), WAYS, 0.001, is_stamped=False)


def test_flights_as_long_apart_as_the_handshake_took_confirm_it(tmp_path):
    seen = starting(tmp_path / "still.pcap")
    assert seen.facts["timestamps"] is False
    trip = path.fit(seen).rtt_ms
    assert trip.value == pytest.approx(100.0, abs=0.05)
    assert trip.high - trip.low < 0.5  # an unconfirmed one has 10 % to either side


def test_flights_that_differ_from_the_handshake_show_a_jitter_that_it_had_too(tmp_path):
    """Turns of 88, 108 and 110 ms beside the handshake's of 100: the middle of all four is told, with an interval that holds the path's."""
    trip = path.fit(starting(tmp_path / "varies.pcap", (0.0, -12.0, -4.0, 6.0, -2.0))).rtt_ms
    assert trip.low < 92
    assert trip.high > 140  # the first of a flight's ACKs was an early one: 1.5 deviations more than 104 and its error
    assert trip.value == pytest.approx(104.0, abs=0.1)  # the middle of 88, 100, 108 and 110


def test_writes_that_do_not_double_are_no_flights(tmp_path):
    """Ten segments each 70 ms by a clock, over a path of 100 ms: no turn is shorter than the handshake's, whose jitter nothing shows, for that."""
    times = np.repeat(1_000 + 70.0 * np.arange(60), 10)
    trip = path.fit(arriving(tmp_path / "clock.pcap", times, np.full(times.size, 1_460), WAYS, 0.001, is_stamped=False)).rtt_ms
    assert (trip.value, trip.low) == (pytest.approx(100.0, abs=0.05), pytest.approx(90.4, abs=0.2))


def repaired(rows):
    """What a receiver has of segments: time in ms, number, whether it came again."""
    t, number, again = (np.array(column, float) for column in zip(*rows, strict=True))
    order = np.argsort(number, kind="stable")
    wire = SimpleNamespace(t=t[order], seq=number[order].astype(np.int64), fate=np.where(again[order] > 0, 2, 0))
    return opening.repairs(SimpleNamespace(is_receiver=True, wire=wire))


def test_a_repair_alone_shows_a_turn_and_one_beside_others_none():
    one = [(0, 0, 0), (2, 2, 0), (3, 3, 0), (50, 1, 1), (51, 4, 0)]
    assert repaired(one) == pytest.approx([48.0])
    # The second hole is found by what was sent again after it (RFC 8985), before the receiver has a later segment.
    both = [(0, 0, 0), (2, 2, 0), (40, 1, 1), (41, 4, 0), (60, 3, 1)]
    assert repaired(both) == pytest.approx([38.0])


def test_a_busy_queue_hides_a_jitter_of_its_own_length_from_a_single_turn():
    evenly, unevenly = (SimpleNamespace(wire=SimpleNamespace(t=t)) for t in (np.arange(500) * 5.0, np.cumsum(np.arange(500) % 17)))
    assert opening.hidden(evenly, 20.0) == pytest.approx(10.1, abs=0.1)
    assert [opening.hidden(evenly, queue) for queue in (-3.0, np.inf)] == [0.0, 0.0]
    assert opening.hidden(unevenly, 20.0) == 0.0
