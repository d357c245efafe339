"""Messages for the user: one line, no control characters, whatever they are made of."""

from __future__ import annotations

import pytest

from tcpscape.errors import MOST_MESSAGE, MOST_SHOWN, StoreError, TcpscapeError, printable, refuse, shown

WILD = [
    "50\x1b[2J",
    "x" * 10**6,
    10**6000,
    -(10**6000),
    [10**6000],
    [[[[[[[[1]]]]]]]],
    {"a": ["x" * 1000] * 1000},
    b"\0" * 5000,
    "\ud800",
    "é\u202e",
    "two\nlines",
    float("nan"),
    None,
    True,
    {1: {2: {3: {4: {5: 6}}}}},
    "\u2028",
]


@pytest.mark.parametrize("value", WILD, ids=range(len(WILD)))
def test_a_shown_value_is_short_and_printable(value: object) -> None:
    text = shown(value)
    assert len(text) < 3 * MOST_SHOWN
    assert text.isprintable()


def test_plain_values_are_shown_as_python_writes_them() -> None:
    assert [shown(v) for v in ("10 parsecs", 5, 1.5, True, [1, "a"], {"a": 1})] == ["'10 parsecs'", "5", "1.5", "True", "[1, 'a']", "{'a': 1}"]
    assert shown("x" * 1000).endswith("… (1000 characters)")


@pytest.mark.parametrize("value", WILD, ids=range(len(WILD)))
def test_every_message_is_one_printable_line(value: object) -> None:
    text = value if isinstance(value, str) else shown(value)
    message = str(StoreError(f"name: {text} is wrong; correct it"))
    assert len(message) < MOST_MESSAGE + 10
    assert message.isprintable()
    assert message.encode()


def test_harmless_characters_stay() -> None:
    assert printable("50 µs – é\u202f%") == "50 µs – é\u202f%"
    assert str(TcpscapeError("a\tb\nc")) == "a b c"


@pytest.mark.parametrize("value", ["9" * 5000, "word " * 2000, "/tmp/" + "a" * 3000 + "/mine.yaml", "[" * 10_000])
def test_a_message_is_short_and_keeps_its_field_and_its_fix(value):
    message = str(TcpscapeError(f"field: {value} is wrong; do this instead"))
    assert len(message) <= MOST_MESSAGE
    assert message.startswith("field: ")
    assert message.endswith(" is wrong; do this instead")


def test_a_long_field_is_cut_and_the_fix_stays():
    with pytest.raises(TcpscapeError, match="is wrong; correct it") as e:
        refuse("x" * 10_000, "is wrong", "correct it")
    assert len(str(e.value)) < 200
    assert str(e.value).endswith("x…: is wrong; correct it")


@pytest.mark.parametrize("words", [("man",), ("schema", "--all")])
def test_a_directory_with_control_characters_is_named_without_them(words, cli, tmp_path):
    said = cli(*words, "--out", f"{tmp_path}/a\x1b[31m")
    assert "\x1b" not in said.out + said.err
