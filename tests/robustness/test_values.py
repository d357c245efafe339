"""Values that make no sense are refused where they are read, and what is too large before it is built: quantities, seeds, ranges, campaigns."""

import resource

import pytest

from tcpscape import units
from tcpscape.campaign import axes
from tcpscape.campaign.campaign import MEMORY, Campaign, Size, memory_limit
from tcpscape.errors import ScenarioError, TcpscapeError, UnitError

LONGEST = 400
"""Characters of a refusal."""
NUMBERS = (
    "",
    " ",
    "x",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "9" * 5000,
    "0x10",
    "1_0",
    "٣",
    "３",
    "²",
    "½",
    "1.2.3",
    "--1",
    "+-1",
    "1e",
    "e5",
    "0x_",
    "1,000",
    "१",
    "1e309",
    "-1e400",
)
"""What is no number, or none that a float holds."""
PARSERS = (
    (units.parse_time, "ms"),
    (units.parse_size, "KiB"),
    (units.parse_rate, "mbit"),
    (units.parse_byte_rate, "MB/s"),
    (units.parse_percent, "%"),
    (units.parse_buffer, "bdp"),
    (units.parse_buffer, "KB"),
)


@pytest.mark.parametrize("text", NUMBERS)
@pytest.mark.parametrize(("parse", "unit"), PARSERS)
def test_what_is_no_number_is_no_quantity(text, parse, unit):
    for written in (f"{text}{unit}", f" {text} {unit} "):
        with pytest.raises(UnitError, match=r"^rate: .*; ") as e:
            parse(written, "rate")
        assert len(str(e.value)) <= LONGEST


@pytest.mark.parametrize(("parse", "unit"), PARSERS)
@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -1, 10**400, True, None, [], {}, b"5ms", "-5", "-5ms", "5 parsecs", "5\nms\x00", "1e300", "1e308"]
)
def test_what_is_no_quantity_is_refused(parse, unit, value):
    with pytest.raises(UnitError, match=r"^field: "):
        parse(f"{value}{unit}" if value in ("1e300", "1e308", "-5") else value, "field")


@pytest.mark.parametrize(("field", "example"), [("duration", "10s"), ("samples", "10ms"), ("segment", "4s"), ("rtt", "50ms"), ("hold", "300ms")])
def test_the_example_fits_the_field(field, example):
    with pytest.raises(UnitError, match=rf"; write for example {example}$"):
        units.parse_time("10", field)
    assert units.parse_time(example, field)


@pytest.mark.parametrize(
    "text", ["1,1", "0", "00", "٣", "5..3", "1..1000000000", "1000001", "1,,2", "-3", "1.5", "1..", "9" * 5000, "1_0", "0x5", ",".join(["1"] * 3)]
)
def test_seeds_that_make_no_sense(text):
    with pytest.raises(ScenarioError, match=r"^seeds: ") as e:
        axes.parse_seeds(text)
    assert len(str(e.value)) <= LONGEST


@pytest.mark.parametrize(
    "text",
    [
        "1..1e300ms/x1.0000001",
        "0..1e300ms/1ms",
        "1..1e999ms/x2",
        "0..1e999ms/1ms",
        "1..10ms/x1e999",
        "1..10ms/1e-300",
        "0..24ms/0",
        "0..24ms/-1",
        "1..10ms/x1",
        "24..0ms/4ms",
        "1.2.3..5ms/1ms",
        ",".join(["0..9999/1"] * 3),
        "1,,2",
        "",
        ",",
        "1..5/",
        "1../1",
        "٣..٩/1",
    ],
)
def test_ranges_that_make_no_sense(text):
    with pytest.raises(TcpscapeError, match=r"^jitter: ") as e:
        Campaign.of({"conditions": {"rtt": "50ms"}, "axes": {"jitter": text}}).cases()
    assert len(str(e.value)) <= LONGEST


def campaign(**fields):
    return Campaign.of({"name": "c", "conditions": {"rtt": "50ms"}, "engines": ["mock"], **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"axes": {"jitter": "0..99ms/1ms"}, "seeds": 1_000_000},
        {"axes": {"jitter": "0..99ms/0.01ms", "loss": "0..99%/0.01%"}, "seeds": 1},
        {"samples": "1us"},
        {"queue_samples": "1ns", "seeds": 1},
        {"conditions": {"rtt": "50ms", "flows": 100_000}, "seeds": 1000},
        {"axes": {"jitter": "0..99ms/0.01ms", "loss": "0..99%/0.01%"}, "precision": "5%"},
        {"scenario": {"forward": "netem delay 1ms", "duration": "24h"}, "conditions": {}, "samples": "1ms", "seeds": 100},
    ],
)
def test_counts_come_before_lists(fields, monkeypatch):
    """What is too large is refused before more than two of its scenarios are built."""
    built = []
    case = "tcpscape.campaign.campaign._Cases._case"
    from tcpscape.campaign.campaign import _Cases

    original = _Cases._case
    monkeypatch.setattr(case, lambda self, *args: built.append(1) or original(self, *args))
    with pytest.raises(
        TcpscapeError, match=r"^c: [\d,]+ trials.* would take about [\d.e+]+GB of memory.* \(limit 2.15GB\); .*, or raise TCPSCAPE_MEMORY$"
    ):
        campaign(**fields).cases()
    assert len(built) <= 2


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"engines": []}, "engines"),
        ({"engines": ["mock", "mock"]}, "engines"),
        ({"cca": ["cubic", "cubic"]}, "cca"),
        ({"zip": [{}]}, "zip"),
        ({"axes": {"jitter": "1ms,1ms"}}, "jitter"),
        ({"axes": {"jitter": ["0", "0ms"]}}, "jitter"),
        ({"axes": {"jitter": []}}, "jitter"),
        ({"axes": {"jitter": [""]}}, "jitter"),
        ({"axes": {"jitter": "1ms,1000us"}}, "jitter"),
        ({"precision": "0%"}, "precision"),
        ({"max_seeds": 10**9}, "max_seeds"),
        ({"conditions": {"rtt": "50ms", "flows": 0}}, "flows"),
        ({"seeds": "1,1"}, "seeds"),
        ({"seeds": 0}, "seeds"),
    ],
)
def test_a_campaign_has_no_empty_or_doubled_parts(fields, field):
    with pytest.raises(ScenarioError, match=rf"^{field}: "):
        campaign(**fields).cases()


def test_the_limit_can_be_raised(monkeypatch):
    large = campaign(axes={"jitter": "0..9ms/1ms"}, seeds=1_000_000)
    with pytest.raises(TcpscapeError, match="TCPSCAPE_MEMORY"):
        large.cases()
    monkeypatch.setenv("TCPSCAPE_MEMORY", "64GiB")
    assert len(large.cases()) == 10
    monkeypatch.setenv("TCPSCAPE_MEMORY", "much")
    with pytest.raises(TcpscapeError, match=r"^TCPSCAPE_MEMORY: 'much' is not a quantity; write for example 16GiB"):
        large.cases()


def test_the_estimate_of_memory_is_not_below_what_is_taken():
    """By trials of the mock, the smallest there are."""
    from tcpscape.campaign import execute

    one = campaign(axes={"jitter": "0..9ms/1ms"}, seeds=200)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = execute.run(one)
    taken = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert outcome.trial_count == 2000
    assert taken <= 10 * Size(10, 2000).memory
    assert memory_limit() == MEMORY


def test_a_trace_is_counted_before_it_is_written_out():
    from tcpscape.scenario import traces

    for points, end in (([(0, 1e13)], 86_400), ([(0, 1e9), (1, float("inf"))], 2), ([(0, 1e308)], 1e308)):
        with pytest.raises(ScenarioError, match=r"^trace: "):
            traces.from_rates(points, end)
