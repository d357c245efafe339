"""Every kind of file, damaged at random by fixed seeds: it is read, or refused in one line; nothing else happens."""

from __future__ import annotations

import gzip
import io
import json
import random
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from conftest import TESTS
from damage import content, document
from tcpscape import engines, interchange
from tcpscape.campaign import record, source
from tcpscape.errors import TcpscapeError
from tcpscape.findings.advice import kept
from tcpscape.interchange import compare, measured, sources
from tcpscape.kernels import config
from tcpscape.reading import packaged
from tcpscape.scenario import files, network, traces
from tcpscape.store.results import FILE
from tcpscape.validate import conditions, runs, validation

DATA = TESTS / "data"
PING = b"20 packets transmitted, 19 received, 5% packet loss, time 19024ms\nrtt min/avg/max/mdev = 24.301/26.112/31.990/1.771 ms\n"
TOML = b'duration = "100ms"\nforward = "netem delay 5ms"\n[bottleneck]\nrate = "5mbit"\nbuffer = "1bdp"\n[[flows]]\ncca = "cubic"\ncount = 2\n'
SCENARIO = yaml.safe_load("""
forward: {delay: 5ms, jitter: 1ms, loss: 0.1%, limit: 100}
bottleneck: [{rate: 10mbit, buffer: 1bdp}, {at: router, delay: 1ms}]
reverse: netem delay 5ms
flows: [{cca: cubic, count: 2, rcvbuf: 256KiB}, {cca: {name: bbr}, start: 20ms, app: 1MB/s, read: 16KiB/1ms}, {player: "1,2.5mbit", abr: bola}]
kernel: {profile: "6.12", rmem_max: 4MiB}
changes:
  - {where: bottleneck, at: 50ms, set: {rate: 5mbit}}
  - {where: forward, ramp: [20ms, 40ms], start: {delay: 5ms}, end: {delay: 8ms}}
duration: 100ms
""")
CAMPAIGN = yaml.safe_load("""
scenario: {forward: "netem delay ${d}", bottleneck: {rate: 10mbit, buffer: 1bdp}, duration: 100ms}
axes: {d: "5,10ms", r: [2, 3]}
derive: {after: 10mbit / r}
zip: [{cca: [cubic, dctcp], ecn: [false, true]}]
metric: queue_max
seeds: 1
""")


def read_or_refused(read: Callable[[], object]) -> str:
    """The message of the refusal, one printable line that says what to do; empty where it was read."""
    try:
        read()
    except TcpscapeError as e:
        message = str(e)
        assert message.isprintable(), message
        assert "; " in message, message
        return message
    return ""


def scenario(path: Path) -> None:
    loaded = files.load(path)
    engines.make("mock" if not network.kinds(loaded) else "model").check(loaded)
    files.dump(loaded)


def imported(path: Path) -> None:
    found = interchange.read(path)
    found.rows()
    for trial in found.trials:
        json.dumps(trial.to_dict(), allow_nan=False)


def as_yaml(value: Any) -> bytes:
    return yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "surrogatepass")


def as_json(value: Any) -> bytes:
    try:
        return json.dumps(value).encode()
    except ValueError:  # an integer that Python does not write
        return b"9" * 5000


def flent() -> dict[str, Any]:
    """A short one of Flent's data files."""
    data = json.loads(gzip.decompress(next((DATA / "interchange").glob("*.flent.gz")).read_bytes()))
    results = {name: values[20:50] for name, values in data["results"].items()}
    return {"metadata": data["metadata"], "version": 4, "x_values": data["x_values"][:30], "results": results}


def iperf3(name: str) -> dict[str, Any]:
    return json.loads((DATA / "interchange" / f"iperf3-{name}.json").read_text())


def gallery(folder: str) -> list[Any]:
    return [yaml.safe_load(packaged.text(f"{folder}/{name}.yaml")) for name in packaged.names(folder, ".yaml")]


DOCUMENTS: dict[str, tuple[Callable[[], list[Any]], Callable[[Any], bytes], str, Callable[[Path], object]]] = {
    "scenarios": (lambda: [SCENARIO, *gallery("scenarios")], as_yaml, ".yaml", scenario),
    "campaigns": (lambda: [CAMPAIGN, *gallery("campaigns")], as_yaml, ".yaml", lambda path: source.campaign(path, {}, {})),
    "listed scenarios": (
        lambda: [[{"id": "a", **SCENARIO}, {"id": "b", "forward": "netem delay 8ms"}], yaml.safe_load((DATA / "elsewhere.yaml").read_text())[:3]],
        as_yaml,
        ".yaml",
        conditions.read,
    ),
    "iperf3": (lambda: [iperf3("up-2"), iperf3("reverse"), iperf3("interrupted"), iperf3("bidir")], as_json, ".json", imported),
    "flent": (lambda: [flent()], as_json, ".flent", imported),
    "path of iperf3": (lambda: [iperf3("up-2")], as_json, ".json", lambda path: measured.conditions({}, path)),
    "path of flent": (lambda: [flent()], as_json, ".flent", lambda path: measured.conditions({}, path)),
}
"""Kind → good documents, how one is written, the ending, what reads it."""


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_damaged_documents(kind: str, tmp_path: Path) -> None:
    good, write, suffix, read = DOCUMENTS[kind]
    rng, refused, whole = random.Random(kind), 0, good()
    file = tmp_path / f"a{suffix}"
    for one in whole:
        file.write_bytes(write(one))
        assert not read_or_refused(lambda: read(file))
    for _ in range(250):
        one = rng.choice(whole)
        file.write_bytes(write(document(one, rng)) if rng.random() < 0.7 else content(write(one), rng))
        refused += bool(read_or_refused(lambda: read(file)))
    assert 50 < refused < 250


def table(folder: Path, suffix: str) -> Path:
    """A table of ours: an export of a few trials."""
    rows = record.load(folder).outcomes[0].flows()
    file = folder.parent / f"good{suffix}"
    rows.write_csv(file) if suffix == ".csv" else rows.write_parquet(file)
    return file


def first_lines(name: str, count: int = 12) -> bytes:
    return b"".join((DATA / "reference" / name).read_bytes().splitlines(keepends=True)[:count])


TEXTS: dict[str, tuple[bytes, str, Callable[[Path], object]]] = {
    "toml": (TOML, ".toml", scenario),
    "ping": (PING, ".txt", lambda path: measured.conditions({}, path)),
    "trace": (b"".join(b"%d\n" % (2 * i) for i in range(1, 100)), ".up", lambda path: traces.read(str(path))),
    "conditions": (first_lines("random_conditions.csv"), ".csv", conditions.read),
    "shared conditions": (first_lines("shared_conditions.csv"), ".csv", conditions.read),
    "recorded runs": (first_lines("random_results.csv"), ".csv", runs.read_results),
    "gzip": (gzip.compress(as_json(flent())), ".flent.gz", imported),
    "fragment": (b"CONFIG_HZ_1000=y\nCONFIG_HZ=1000\n", ".config", config.fragment_options),
}
"""Kind → a good file, its ending, what reads it."""


@pytest.mark.parametrize("kind", TEXTS)
def test_damaged_texts(kind: str, tmp_path: Path) -> None:
    good, suffix, read = TEXTS[kind]
    rng, refused = random.Random(kind), 0
    file = tmp_path / f"a{suffix}"
    file.write_bytes(good)
    assert not read_or_refused(lambda: read(file))
    for _ in range(150):
        file.write_bytes(content(good, rng))
        refused += bool(read_or_refused(lambda: read(file)))
    assert refused > 15


@pytest.fixture(scope="module")
def results(tmp_path_factory, cli_call) -> Path:
    """A result directory with samples."""
    folder = tmp_path_factory.mktemp("results") / "good"
    path = ("--bottleneck", "tbf rate 5mbit burst 6056 limit 15000", "--forward", "netem delay 5ms")
    assert cli_call("run", *path, "--cca", "cubic,bbr", "--duration", "300ms", "--seeds", "2", "--samples", "50ms", "--out", folder) == 0
    return folder


@pytest.fixture(scope="module")
def cli_call():
    """A command line in this process → its exit status."""
    from tcpscape.cli.main import call

    return lambda *words: call([str(word) for word in words])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_damaged_tables_of_ours(suffix: str, results: Path, tmp_path: Path, capfd) -> None:
    good, rng, refused = table(results, suffix), random.Random(suffix), 0
    file, other = tmp_path / f"a{suffix}", sources.load(results)
    capfd.readouterr()
    for _ in range(150):
        file.write_bytes(content(good.read_bytes(), rng))
        refused += bool(read_or_refused(lambda: compare.compare(sources.load(file), other)))
    assert refused > 50
    assert capfd.readouterr() == ("", "")


def test_a_table_of_ours_with_any_cell_of_another_kind(results: Path, tmp_path: Path) -> None:
    rows = pl.read_csv(table(results, ".csv"), infer_schema=False)
    file, other = tmp_path / "a.csv", sources.load(results)
    rng = random.Random(5)
    for name in rows.columns:
        for cell in rng.sample(["", "-1", "nan", "inf", "x", "1e400", "9" * 30, "true", "1.5", "\x1b[2J", "-0", "[]"], 3):
            damaged = rows.with_columns(pl.Series(name, [cell, *rows[name][1:]]))
            file.write_text(damaged.write_csv())
            read_or_refused(lambda: compare.compare(sources.load(file), other))
        file.write_text(rows.drop(name).write_csv())
        read_or_refused(lambda: compare.compare(sources.load(file), other))


STATEMENTS = (
    "DROP TABLE trials", "DROP TABLE manifests", "DELETE FROM trials WHERE rowid = 1", "UPDATE trials SET address = 5 WHERE rowid = 1",
    "UPDATE trials SET trial = x'ff00' WHERE rowid = 1", "UPDATE manifests SET document = x'ff00'", "UPDATE manifests SET document = 5",
    "PRAGMA user_version = 77", "PRAGMA user_version = -1", "PRAGMA application_id = 1", "UPDATE trials SET queues = 'text'", "DELETE FROM manifests",
    "ALTER TABLE trials RENAME COLUMN queues TO q", "UPDATE manifests SET document = CAST(x'ff' AS text)",
    "UPDATE trials SET trial = CAST(x'ff' AS text)", "UPDATE trials SET address = 'other' WHERE rowid = 1", "UPDATE trials SET queues = zeroblob(1000)",
)  # fmt: skip


def use(folder: Path) -> None:
    """Reads whatever a result directory holds, as reports, comparisons and exports do."""
    found = sources.load(folder, ("samples",))
    compare.compare(found, found, "queue_delay_p95" if len(found.items) % 2 else "goodput")
    found.rows()
    for item in found.items:
        json.dumps(item.trial.to_dict())
        _ = item.scenario
    read_or_refused(found.samples)


def changed(database: Path, rng: random.Random) -> None:
    """Damages one document in a database: a manifest, a trial or the reports of its queues."""
    with sqlite3.connect(database) as connection:
        column, table_name = rng.choice((("document", "manifests"), ("document", "manifests"), ("trial", "trials"), ("queues", "trials")))
        row, value = rng.choice(connection.execute(f"SELECT rowid, {column} FROM {table_name}").fetchall())
        if column == "queues":
            new: Any = zlib.compress(as_json(document(json.loads(zlib.decompress(value)), rng))) if rng.random() < 0.7 else content(value, rng)
        else:
            new = as_json(document(json.loads(value), rng)).decode()
        connection.execute(f"UPDATE {table_name} SET {column} = ? WHERE rowid = ?", (new, row))


@pytest.mark.parametrize("seed", range(4))
def test_damaged_documents_in_a_database(seed: int, results: Path, tmp_path: Path) -> None:
    rng, refused, folder = random.Random(seed), 0, tmp_path / "d"
    for _ in range(40):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(results, folder)
        changed(folder / FILE, rng)
        refused += bool(read_or_refused(lambda: use(folder)))
    assert refused > 10


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_database_that_was_changed(statement: str, results: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(results, tmp_path / "d"))
    connection = sqlite3.connect(folder / FILE, isolation_level=None)
    connection.execute(statement)
    connection.close()
    read_or_refused(lambda: use(folder))


def test_damaged_bytes_in_a_directory(results: Path, tmp_path: Path, capfd) -> None:
    rng, folder = random.Random(9), tmp_path / "d"
    for _ in range(60):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(results, folder)
        file = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
        file.write_bytes(content(file.read_bytes(), rng))
        read_or_refused(lambda: use(folder))
    assert capfd.readouterr() == ("", "")


def test_damaged_summaries_and_advice(tmp_path: Path) -> None:
    rng, origin = random.Random(2), tmp_path / "summary.json"
    summary = {"format": 1, "engines": ["model", "mock"], "against": None, "conditions": [{"id": "a", "runs": [3, 3]}]}
    for _ in range(100):
        origin.write_bytes(as_json(document(summary, rng)))
        read_or_refused(lambda: validation._summary(tmp_path))
        values = document({"goal": "throughput", "taken": ["x"]}, rng)
        stream = io.BytesIO(as_json(values))
        origin.with_name("advice.json").write_bytes(stream.getvalue())
        read_or_refused(lambda: kept.read(tmp_path / "advice.json"))
