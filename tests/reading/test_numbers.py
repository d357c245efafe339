"""Numbers in the output of programs."""

import json
import time

import pytest

from tcpscape.reading import numbers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12.5\n", {"output": 12.5}),
        ("", {}),
        ("no number here\n", {}),
        ('{"end": {"sum": [{"bps": 1e6}, true, null, "7"]}}', {"end.sum.0.bps": 1e6, "end.sum.1": 1.0}),
        ('progress 1\n{"a": 1}\nlast words', {"a": 1.0}),
        ('{"a": 1}\n{"a": 2}\n', {"a": 2.0}),
        ('{"a": 1e400, "b": NaN, "c": 1}', {"c": 1.0}),
        ("{broken", {}),
        ("connecting\n" + json.dumps({"end": {"bps": 7}, "last": {"n": 2}}, indent=2) + "\nbye\n", {"end.bps": 7.0, "last.n": 2.0}),
        (json.dumps({"end": [{"a": 1}]}, indent=2)[:-2], {}),
        ("[info] started\n{\n}\nx=1", {}),
        ("time=1.5 size: 2e3 name=x7 v=1.2.3\n", {"time": 1.5, "size": 2000.0}),
        ("finished in 1.02s, 97.72 req/s, 1.20MB/s\nrequests: 100 total, 98 succeeded\n", {"req/s": 97.72, "MB/s": 1.2, "requests": 100.0}),
    ],
)
def test_numbers_have_the_names_that_the_output_gives_them(text, expected):
    assert numbers.named(text) == expected


def test_an_output_of_any_size_gives_a_bounded_number():
    assert len(numbers.named(json.dumps({str(i): i for i in range(5000)}))) == numbers.MOST
    assert numbers.named(json.dumps({"long": list(range(100)), "short": [1]})) == {"short.0": 1.0}
    assert numbers.named("[" * 100_000) == {}


@pytest.mark.parametrize("text", ["a" * 100_000, "1" * 100_000, "a=" + "1" * 100_000, " " * 100_000, "x" + " " * 100_000, "[\n" * 100_000])
def test_an_output_of_any_shape_is_read_at_once(text):
    begin = time.process_time()
    assert numbers.named(text) == {}
    assert time.process_time() - begin < 2


def test_of_a_long_output_the_end_is_read():
    assert numbers.named("a=1\n" + "words\n" * 300_000 + "b=2\n") == {"b": 2.0}
    assert numbers.named("words\n" * 300_000 + '{"b": 2}\n') == {"b": 2.0}
