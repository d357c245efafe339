"""The guarded reader: every file is a regular one of bounded size, every document of bounded depth, and every error one line."""

import bz2
import gzip
import io
import lzma
import os
import random
import socket
import zlib
from pathlib import Path

import polars as pl
import pytest

from tcpscape.errors import ScenarioError
from tcpscape.reading import documents, files, tables
from tcpscape.reading.files import MIB, Kind, Origin

KIND = Kind("a scenario", "see the docs", most=1000, most_unpacked=MIB)
ORIGIN = Origin("a.yaml", KIND)
LEVELS = list(zip("abcdef", "bcdefg", strict=True))
LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(f"{c}: &{c} [{','.join([f'*{p}'] * 10)}]\n" for p, c in LEVELS)
MERGES = "a: &a {k: 1}\n" + "".join(f"{c}: &{c} {{<<: [{','.join([f'*{p}'] * 10)}]}}\n" for p, c in LEVELS)


def refusal(read, *args) -> str:
    """The message of the refusal, which is one printable line that ends in what to do."""
    with pytest.raises(ScenarioError) as e:
        read(*args)
    message = str(e.value)
    assert message.isprintable()
    assert len(message) < 400
    assert "; " in message
    return message


# ---- files


def test_a_regular_file_and_a_link_to_one_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"\xef\xbb\xbfa: 1\n")
    (tmp_path / "b").symlink_to(file)
    assert files.text(file, KIND) == files.text(tmp_path / "b", KIND) == "a: 1\n"


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "s"))
    for path, what in ((tmp_path / "pipe", "a pipe"), (tmp_path / "s", "a socket"), (tmp_path, "a directory"), ("/dev/zero", "a device")):
        assert f"{path}: is {what}, not a scenario" in refusal(files.content, path, KIND)
        assert refusal(files.content, path, KIND, "from").startswith(f"from: {path} is {what}")
    server.close()


@pytest.mark.parametrize("path", ["nosuch", "a/b\0c", "x" * 5000, "\ud800", "/etc/passwd/x"])
def test_what_cannot_be_opened_is_refused(path: str) -> None:
    assert refusal(files.content, path, KIND).endswith("; check the path")


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "symbolic links" in refusal(files.content, tmp_path / "loop", KIND)


def test_the_size_is_judged_before_reading(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**40)
    message = refusal(files.content, tmp_path / "large", KIND)
    assert "has 1.02e+03 GiB, and a scenario has at most 1000 bytes" in message
    (tmp_path / "full").write_bytes(b"x" * 1000)
    assert len(files.content(tmp_path / "full", KIND)) == 1000


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, files.zstd().compress])
def test_compressed_files_are_unpacked_within_bounds(tmp_path: Path, compress) -> None:
    file = tmp_path / "packed"
    for content in (b"", b"abc" * 1000, b"x" * (MIB // 2)):
        file.write_bytes(compress(content))
        assert file.stat().st_size < 1000
        assert files.content(file, KIND) == content
    file.write_bytes(compress(b"abc") + compress(b"def"))
    assert files.content(file, KIND) == b"abcdef"
    large = Kind("a scenario", "see the docs", most=MIB, most_unpacked=MIB)
    file.write_bytes(compress(bytes(20 * MIB)))
    assert "has more than 1 MiB when it is unpacked" in refusal(files.content, file, large)
    for damaged in (compress(b"abc" * 100)[:-5], compress(b"abc") + b"rest", compress(b"abc")[:8], compress(b"abc" * 100)[:20] + b"\xff" * 30):
        file.write_bytes(damaged)
        assert "is damaged" in refusal(files.content, file, KIND)


def test_zlib_is_inflated_within_bounds() -> None:
    assert files.inflated(zlib.compress(b"abc" * 1000), 3000) == b"abc" * 1000
    for raw in (zlib.compress(b"abc" * 1001), zlib.compress(b"abc")[:-1], b"nonsense", zlib.compress(b"a") + b"rest"):
        with pytest.raises(ValueError):  # noqa: PT011
            files.inflated(raw, 3000)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ("name: é".encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
        ("a: 1\nb: é".encode("latin-1"), "byte 0xe9 in line 2; save it as UTF-8"),
        (b"a: 1\nb: \0", "there is a NUL byte in line 2"),
        (bytes(range(128, 256)), "is not UTF-8 text: byte 0x80 in line 1"),
    ],
)
def test_other_encodings_are_refused(raw: bytes, says: str) -> None:
    assert says in refusal(files.decoded, raw, ORIGIN)


# ---- documents


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LAUGHS, "line 6: more than 300000 values"),
        (MERGES, "line 6: more than 300000 values"),
        ("[" * 20_000, "line 1: more than 64 mappings and lists within each other"),
        ("{a: " * 20_000, "line 1: more than 64"),
        ("- " * 20_000, "line 1: more than 64"),
        ("- a\n" * 400_000, "more than 300000 values"),
        ("a: &a [*a]", "the alias *a stands within the value that it names"),
        ("a: *b", "the alias *b has no anchor before it"),
        ("a: 1\nb:\n  c: 2\n  c: 3", "line 4: 'c' is there twice, first in line 3; remove one of both"),
        ("a: !!python/object/apply:os.system [id]", "line 1: the tag"),
        ("a: !!int five", "line 1: the tag"),
        ("a: 1\nb: 010", "line 2: '010' is no decimal number"),
        ("a: 0x_", "'0x_' is no decimal number"),
        ("a: 1:30", "'1:30' is no decimal number"),
        ("a: 1_000", "'1_000' is no decimal number"),
        (f"a: {'9' * 5000}", "a number of 5000 digits"),
        ("? [a]\n: b", "a key that is no word"),
        ("a: 1\nb: \x1b", r"line 2: a character that YAML does not allow, '\x1b'"),
        ("a: {<<: 5}", "not YAML at line 1: expected a mapping"),
        ("a\n---\nb", "not YAML at line 2"),
        ("a: 'x", "not YAML at line 1"),
        ("a: b: c", "not YAML at line 1"),
    ],
)
def test_malformed_yaml_is_one_line(text: str, says: str) -> None:
    assert says in refusal(documents.from_yaml, text, ORIGIN)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("kernel: 6.10", {"kernel": "6.10"}),
        ("at: 2001-01-01", {"at": "2001-01-01"}),
        ("on: yes\n1: 2\n~: 3", {"on": True, "1": 2, "~": 3}),
        ("a: 18446744073709551615", {"a": 2**64 - 1}),
        ("a: '010'", {"a": "010"}),
        ("a: .nan\n=: =", {"a": ".nan", "=": "="}),
        ("base: &b {x: 1, y: 5}\nd: {<<: *b, x: 2}\nf: {<<: *b}", {"base": {"x": 1, "y": 5}, "d": {"x": 2, "y": 5}, "f": {"x": 1, "y": 5}}),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
        ("", None),
    ],
)
def test_yaml_gives_plain_values(text: str, value: object) -> None:
    assert documents.from_yaml(text, ORIGIN) == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"a={'[' * 900}{']' * 900}", "within each other"),
        (f"a={'[' * 90_000}", "within each other"),
        (f"[a{'.a' * 150}]", "within each other"),
        (".".join("a" * 100_000) + "=1", "line 1: a key with more than 200 dots"),
        (f"a={'9' * 5000}", "digits"),
        (f"a={'9' * 30}", "digits"),
        ("[a]\n[a]", "not TOML: Cannot declare ('a',) twice (at line 2"),
        ("a=2001-01-01", "2001-01-01 is a date or a time"),
        ("a='", "not TOML"),
    ],
)
def test_malformed_toml_is_one_line(text: str, says: str) -> None:
    assert says in refusal(documents.from_toml, text, ORIGIN)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 100_000, "within each other"),
        ("[" * 900 + "]" * 900, "within each other"),
        ("9" * 5000, "digits"),
        ("9" * 30, "digits"),
        ('{"a": 1,\n"a": 2}', "'a' is there twice in one object"),
        ('{"a": 1}\n{"a": 2}', "has 2 JSON values instead of one"),
        ("", "has 0 JSON values"),
        ('{"a": 1,\n"b": }', "is not JSON at line 2"),
        ("[1,\n2", "is not JSON at line 2"),
        ('{"a": "\\ud800"}', "holds half of a character"),
        ('{"\\uDC00": 1}', "holds half of a character"),
        ("[" + "{}," * 3_000_001, "has about 6000003 values"),
    ],
)
def test_malformed_json_is_one_line(text: str, says: str) -> None:
    assert says in refusal(documents.from_json, text, ORIGIN)


def test_json_gives_plain_values() -> None:
    assert documents.from_json('{"a": "\\ud83d\\ude00", "b": [1, 2.5, null, true]}', ORIGIN) == {"a": "😀", "b": [1, 2.5, None, True]}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no header"),
        (",\n", "has no header"),
        ("a,a\n1,2", "has two columns 'a'"),
        ("a,b\n1,2\n1,2,3", "row 2: ['1', '2', '3'] are not as many values as columns"),
        (f"a\n{'x' * 200_000}", "is not a CSV at line 2"),
        ("a\n" + "," * 4_000_000, "has more than 3000000 cells"),
    ],
)
def test_malformed_csv_is_one_line(text: str, says: str) -> None:
    assert says in refusal(documents.from_csv, text, ORIGIN)


def test_a_csv_may_have_comments_and_empty_lines() -> None:
    assert documents.from_csv('a,b\n1,"2\n3"\n\n#x\n4,5', ORIGIN) == [{"a": "1", "b": "2\n3"}, {"a": "4", "b": "5"}]


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "1e999", "x", "1e19"])
def test_a_cell_is_a_number_from_zero_on(text: str) -> None:
    assert documents.cell_number("1e3") == 1000
    assert documents.cell_number("") == documents.cell_number(None) == 0
    with pytest.raises(ValueError, match="is no number from 0"):
        documents.cell_number(text)


# ---- tables

TYPES = {"n": pl.Int64(), "x": pl.Float64(), "b": pl.Boolean(), "s": pl.String()}


def typed(raw: bytes, signed: frozenset[str] = frozenset()) -> pl.DataFrame:
    """A CSV whose columns are those of `TYPES`."""
    return tables.typed(tables.from_csv(raw, ORIGIN, lambda _: True), TYPES, ORIGIN, signed)


def test_typed_columns() -> None:
    assert typed(b"n,x,b,s\n1,2.5,true,a\n,,,\n").rows() == [(1, 2.5, True, "a"), (None, None, None, None)]
    assert typed(b"x\n-1\n", frozenset("x"))["x"].to_list() == [-1]


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        *(("n", cell) for cell in ("1.5", "-1", "1e3", "9" * 20, "0x10", " 1", "x")),
        *(("x", cell) for cell in ("nan", "inf", "-1", "1e400", "1,5", "x")),
        *(("b", cell) for cell in ("yes", "1", "TRUE")),
    ],
)
def test_a_cell_of_another_kind_is_named(column: str, cell: str) -> None:
    assert f"row 2, column {column!r}: {cell!r} is not" in refusal(typed, f'{column}\n\n"{cell}"\n'.encode())


@pytest.mark.parametrize("raw", [b"", b"\n", b"n\n", b"n\n1,2", b'n\n"1', b"\xff\xfe", b"\0" * 100, b"n" + b"," * 11_000_000])
def test_what_is_no_table_is_refused(raw: bytes) -> None:
    refusal(typed, raw)
    refusal(tables.from_csv, raw, ORIGIN)


def test_damaged_parquet_is_refused_and_nothing_else_is_printed(capfd) -> None:
    stream = io.BytesIO()
    pl.DataFrame({"t_ns": range(500), "cwnd": [float(i) for i in range(500)], "s": ["ab"] * 500}).write_parquet(stream)
    whole, rng, refused = stream.getvalue(), random.Random(1), 0
    for _ in range(300):
        raw = bytearray(whole)
        for _ in range(rng.choice((1, 2, 5))):
            raw[rng.randrange(max(0, len(raw) - 700), len(raw))] = rng.choice((0, 127, 128, 255))
        try:
            tables.from_parquet(bytes(raw[: rng.randrange(len(raw))] if rng.random() < 0.1 else raw), ORIGIN)
        except ScenarioError as e:
            refused += "; " in str(e)
    assert refused > 100
    assert capfd.readouterr() == ("", "")


def test_a_small_parquet_with_many_values_is_refused() -> None:
    stream = io.BytesIO()
    pl.DataFrame({"a": pl.zeros(6_000_000, pl.Int8(), eager=True), **{f"c{i}": None for i in range(9)}}).write_parquet(stream)
    assert len(stream.getvalue()) < MIB
    assert "has 60000000 values" in refusal(tables.from_parquet, stream.getvalue(), ORIGIN)
