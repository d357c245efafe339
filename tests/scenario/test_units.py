"""Quantities as people write them."""

import pytest

from tcpscape import units
from tcpscape.errors import UnitError


@pytest.mark.parametrize(
    ("text", "ns"), [("50ms", 50_000_000), ("1.5s", 1_500_000_000), ("2min", 120_000_000_000), ("10us", 10_000), ("7 ns", 7), (0, 0), ("0", 0)]
)
def test_times(text, ns):
    assert units.parse_time(text) == ns


@pytest.mark.parametrize(("text", "size"), [("256KiB", 262_144), ("262144", 262_144), (4096, 4096), ("1MB", 10**6), ("1.5k", 1536), ("10B", 10)])
def test_sizes(text, size):
    assert units.parse_size(text) == size


@pytest.mark.parametrize(("text", "rate"), [("10mbit", 10**7), ("1gbit", 10**9), ("1.25MB/s", 10**7), ("2.3Mbit/s", 2_300_000)])
def test_rates(text, rate):
    assert units.parse_rate(text) == rate


@pytest.mark.parametrize(("text", "rate"), [("1MB/s", 10**6), ("1MiB/s", 2**20), ("10mbit", 1_250_000), (0, 0), ("4940KiB/s", 4940 * 1024)])
def test_application_rates_are_bytes(text, rate):
    assert units.parse_byte_rate(text) == rate


def test_percent_is_a_fraction():
    assert units.parse_percent("0.1%") == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("parse", "bad", "word"),
    [
        (units.parse_time, "10", "unit"),
        (units.parse_time, 10, "unit"),
        (units.parse_time, "-1ms", "negative"),
        (units.parse_time, "2 years", "unit"),
        (units.parse_time, "400d", "day"),
        (units.parse_time, "fast", "quantity"),
        (units.parse_time, None, "quantity"),
        (units.parse_time, "1e999s", "finite"),
        (units.parse_rate, "0mbit", "rate 0"),
        (units.parse_rate, "10mbps", "bits or bytes"),
        (units.parse_percent, "120%", "100%"),
        (units.parse_percent, "0.1", "unit"),
        (units.parse_size, "-1KiB", "negative"),
        (units.parse_size, True, "quantity"),
    ],
)
def test_bad_quantities_name_field_problem_and_fix(parse, bad, word):
    with pytest.raises(UnitError) as e:
        parse(bad, "field")
    assert str(e.value).startswith("field: ")
    assert word in str(e.value)
    assert "; write" in str(e.value) or "; leave" in str(e.value)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("ns", [1, 999, 1_000, 50_000_000, 1_058_000, 10**9, 86_400 * 10**9])
def test_times_round_trip(ns):
    assert units.parse_time(units.format_time(ns)) == ns


@pytest.mark.parametrize("size", [1, 1023, 1024, 262_144, 10**6, 2**30 + 1])
def test_sizes_round_trip(size):
    assert units.parse_size(units.format_size(size)) == size


@pytest.mark.parametrize("rate", [1, 1000, 2_300_000, 10**7, 10**9 + 1])
def test_rates_round_trip(rate):
    assert units.parse_rate(units.format_rate(rate)) == rate


def test_bdp():
    # 10 Mbit/s x 50 ms = 62 500 B
    assert units.buffer_bytes("2bdp", 10**7, 50_000_000) == 125_000
    assert units.buffer_bytes("64KiB", 10**7, 0) == 65_536
    with pytest.raises(UnitError, match="needs a delay"):
        units.buffer_bytes("2bdp", 10**7, 0)
