"""The store: what was saved is there once, whatever happens to who saved it."""

import errno
import fcntl
import json
import os
import pickle
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import forked
from conftest import TESTS
from patience import PATIENCE_S
from tcpscape import engines
from tcpscape.campaign.execute import Runner
from tcpscape.errors import StoreError
from tcpscape.queue_reports import QueueReports
from tcpscape.scenario import options
from tcpscape.store import database, rows, side_tables
from tcpscape.store.results import FILE, Store, flow_rows
from tcpscape.trial import Capture, Rtt

PATH = {"forward": "netem delay 10ms loss 1%", "bottleneck": "tbf rate 10mbit burst 6056 limit 62500", "reverse": "netem delay 10ms"}
EARLIER = TESTS / "data" / "earlier"
"""What `tcpscape run --engine mock --seeds 2 --out` of tcpscape before the database wrote."""


@pytest.fixture
def trials():
    return engines.make("mock").run(options.scenario(PATH, mix="cubic,bbr", duration="2s"), range(7))


def by_address(trials):
    return {t.address: t for t in trials}


def files(root):
    return sorted(path.name for path in root.iterdir())


def sql(root, statement, *parameters):
    """What another program does to the database."""
    connection = sqlite3.connect(root / FILE)
    with connection:
        answer = connection.execute(statement, parameters).fetchall()
    connection.close()
    return answer


def one_line(error):
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(("out: ", "directory: "))
    assert "; " in str(error.value)
    return str(error.value)


def test_a_trial_comes_back_as_it_was_before_and_after_the_store_is_closed(tmp_path, trials):
    store = Store(tmp_path)
    for trial in trials[:4]:
        store.save(trial)
    store.save_many(trials[4:])
    assert store.saved == 7
    for _ in range(2):
        for reader in (store, Store(tmp_path), Store(tmp_path, create=False)):
            assert list(reader.load_many([trials[3].address, "nosuch", trials[1].address])) == [trials[3].address, trials[1].address]
            assert reader.load_many(t.address for t in trials) == by_address(trials)
            assert reader.load(trials[2].address) == trials[2]
            assert reader.load("nosuch") is None
            assert (reader.load_many([]), reader.addresses()) == ({}, set(by_address(trials)))
            assert reader.frame().equals(flow_rows(sorted(trials, key=lambda t: t.address)))
        store.close()


def test_reports_of_queues_are_kept_as_the_engine_writes_them(need_model):
    for capture in (Capture(), Capture(samples_ns=10**9)):
        for trial in engines.make("model").run(options.scenario(PATH, mix="cubic,bbr", duration="2s"), range(5), capture=capture):
            assert isinstance(trial.queues, QueueReports)
            assert rows.encode(trial) == rows.encode(replace(trial, queues=tuple(trial.queues)))
            assert rows.encode(rows.decode(*rows.encode(trial)[1:])) == rows.encode(trial)


def test_a_trial_that_was_kept_is_a_plain_value(tmp_path, need_model):
    (trial,) = engines.make("model").run(options.scenario(PATH, mix="cubic,bbr", duration="2s"), [1])
    with Store(tmp_path) as store:
        store.save(trial)
        kept = store.load(trial.address)
    assert kept.queues
    for other in (kept, pickle.loads(pickle.dumps(kept))):
        assert other == trial
        assert trial == other
        assert other != replace(trial, queues=trial.queues[1:])
        assert (repr(other), other.to_dict()) == (repr(trial), trial.to_dict())
        assert json.dumps(other.to_dict()) == json.dumps(trial.to_dict())
        assert (len(other.queues), other.queues[0], other.queues[1:]) == (len(trial.queues), trial.queues[0], trial.queues[1:])
        assert replace(other, seed=2) == replace(trial, seed=2)
    with pytest.raises(AttributeError):
        kept.seed = 2


def test_columns_have_the_same_types_whatever_their_values(trials, need_model):
    bare = replace(
        trials[0], hash=None, events=None, flows=tuple(replace(f, srtt_ms=None, rtos=None, ecn=None, rtt_ms=Rtt()) for f in trials[0].flows)
    )
    full = engines.make("model").run(options.scenario(PATH, duration="2s"), [1])[0]
    schemas = [flow_rows([bare]).schema, flow_rows([full]).schema]
    both = set(schemas[0]) & set(schemas[1])
    assert {name: schemas[0][name] for name in both} == {name: schemas[1][name] for name in both}
    assert schemas[0]["rtos"] == schemas[0]["events"] == pl.Int64
    assert schemas[0]["srtt_ms"] == schemas[0]["rtt_ms_p50"] == schemas[0]["cwnd_max"] == pl.Float64
    assert schemas[0]["ecn"] == pl.Boolean
    assert flow_rows([bare, full]).equals(pl.concat([flow_rows([bare]), flow_rows([full])], how="diagonal"))


def test_a_trial_without_flows_has_a_row(trials):
    frame = flow_rows([replace(trials[0], flows=()), trials[1]])
    assert frame["cca"].to_list() == [None, *(f.cca for f in trials[1].flows)]
    assert flow_rows([]).is_empty()


def test_an_empty_store_is_empty(tmp_path):
    with Store(tmp_path) as store:
        assert store.frame().is_empty()
        assert (store.addresses(), store.manifests()) == (set(), [])
    assert files(tmp_path) == [FILE]


def test_a_forgotten_store_is_closed(tmp_path, trials):
    Store(tmp_path).save_many(trials)
    assert files(tmp_path) == [FILE]
    assert Store(tmp_path).addresses() == set(by_address(trials))


def test_a_reader_makes_nothing(tmp_path):
    with pytest.raises(StoreError, match=r"no results.sqlite in it; name a directory that run, sweep or study wrote with --out"):
        Store(tmp_path, create=False)
    assert files(tmp_path) == []


def test_manifests_are_plain_values_in_their_order(tmp_path):
    with Store(tmp_path) as store:
        store.change_manifests(lambda before: [*before, {"b": [1, 2.5, None, "x"], "a": {}}])
        store.change_manifests(lambda before: [*before, {"c": 1}])

        def interrupted(before):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.change_manifests(interrupted)
        for reader in (store, Store(tmp_path)):
            assert [list(d.items()) for d in reader.manifests()] == [[("b", [1, 2.5, None, "x"]), ("a", {})], [("c", 1)]]
    sql(tmp_path, "UPDATE manifests SET document = '{'")
    with pytest.raises(StoreError, match=r"^[^\n]*: a manifest in it is damaged; move[^\n]*$"):
        Store(tmp_path).manifests()


def test_side_tables_are_kept_where_there_are_some(tmp_path):
    case = options.scenario(PATH, duration="2s")
    with Store(tmp_path) as store:
        Runner(engines.make("mock"), store=store).run(case, range(2))
        address = engines.make("mock").address(case, 0)
        assert store.load(address, ["samples"]) is None
        seen = Runner(engines.make("mock"), capture=Capture(samples_ns=10_000_000), store=store).run(case, range(1))[0]
        assert store.load(address, ["samples"]).samples.equals(seen.samples)
        assert store.load(address).samples is None
        assert store.frame().height == 2
        (tmp_path / "samples" / f"{address}.parquet").write_bytes(b"no table")
        with pytest.raises(StoreError, match=r"is not Parquet, or its end is missing; delete it and run again") as e:
            store.load(address, ["samples"])
        one_line(e)


@pytest.mark.parametrize(
    "change", ["substr(trial, 1, length(trial) - 1)", "'{}'", "'[]'", "''", "x'00ff'", "replace(trial, 'goodput_mbps', 'speed')"]
)
def test_a_damaged_row_is_no_trial_and_is_run_again(tmp_path, trials, change):
    with Store(tmp_path) as store:
        store.save_many(trials)
    sql(tmp_path, f"UPDATE trials SET trial = {change} WHERE address = ?", trials[2].address)
    with Store(tmp_path) as store:
        assert set(store.load_many(t.address for t in trials)) == {t.address for i, t in enumerate(trials) if i != 2}
        store.save(trials[2])
        assert store.load_many(t.address for t in trials) == by_address(trials)


def test_what_is_saved_twice_is_there_once(tmp_path, trials):
    one, two = Store(tmp_path), Store(tmp_path)
    one.save_many(trials)
    two.save_many(trials[2:])
    two.save(replace(trials[2], events=7))
    for reader in (one, two, Store(tmp_path)):
        assert (reader.frame().height, reader.load(trials[2].address).events) == (14, 7)
    one.close()
    two.save(trials[2])
    assert one.load_many(t.address for t in trials) == by_address(trials)


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9, 0.99])
def test_a_truncated_database_is_one_line(tmp_path, trials, kept):
    with Store(tmp_path) as store:
        store.save_many([replace(t, address=f"{i:012d}{t.address[:12]}") for i in range(40) for t in trials])
    file = tmp_path / FILE
    file.write_bytes(file.read_bytes()[: int(kept * file.stat().st_size)])
    with pytest.raises(StoreError, match=r"results.sqlite is damaged; move it away and run again, or choose another directory") as e:
        Store(tmp_path).frame()
    one_line(e)


ENDLESS = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT count(*) FROM numbers"


def test_an_endless_query_ends_and_a_signal_during_a_query_is_no_damage(tmp_path, trials):
    with Store(tmp_path) as store:
        store.save_many(trials)
    with Store(tmp_path, create=False) as store:
        with pytest.raises(StoreError, match=r"^directory: .*is damaged: it has more rows than its size allows"):
            store.rows(ENDLESS)
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            with pytest.raises(KeyboardInterrupt):
                store.rows(ENDLESS)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def test_a_database_with_damaged_pages_is_one_line(tmp_path, trials):
    with Store(tmp_path) as store:
        store.save_many([replace(t, address=f"{i:012d}{t.address[:12]}") for i in range(40) for t in trials])
    file = tmp_path / FILE
    content = file.read_bytes()
    file.write_bytes(content[:4096] + random.Random(3).randbytes(len(content) - 4096))
    for use in (Store.frame, Store.addresses, lambda store: store.save(trials[0]), Store.manifests):
        with pytest.raises(StoreError, match=r"results.sqlite is damaged; move it away") as e:
            use(Store(tmp_path))
        one_line(e)


def test_a_file_that_is_no_store_is_one_line_and_stays(tmp_path):
    file = tmp_path / FILE
    for content, says in ((b"no database " * 100, "is no database; move it away"), (b"", "has no results of tcpscape; name a directory")):
        file.write_bytes(content)
        with pytest.raises(StoreError, match=says) as e:
            Store(tmp_path, create=False)
        one_line(e)
        assert file.read_bytes() == content
    sql(tmp_path, "CREATE TABLE mine (a)")
    with pytest.raises(StoreError, match="is a database of another program; choose another directory") as e:
        Store(tmp_path)
    one_line(e)
    assert sql(tmp_path, "SELECT name FROM sqlite_master") == [("mine",)]


def test_a_database_of_a_newer_version_is_one_line(tmp_path):
    Store(tmp_path).close()
    sql(tmp_path, f"PRAGMA user_version = {database.FORMAT + 1}")
    with pytest.raises(StoreError, match="was written by a newer tcpscape; use that one, or choose another directory") as e:
        Store(tmp_path)
    one_line(e)


@pytest.mark.parametrize("left", ["manifest.json", "trials", "journal"])
def test_a_directory_of_an_earlier_tcpscape_is_one_line_and_stays(tmp_path, cli, left):
    root = tmp_path / "d"
    root.mkdir()
    if left == "journal":  # what a killed process left
        (root / left).mkdir()
        (root / left / "1-2-3.journal").write_text("0 {}\n")
    else:
        (shutil.copytree if left == "trials" else shutil.copy)(EARLIER / left, root / left)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    run = ("run", "baseline", "--engine", "mock", "--out", root)
    for args in (run, ("sweep", "--rtt", "9ms", *run[2:]), ("report", root), ("export", root, "--to", "csv"), ("compare", root, root)):
        got = cli(*args)
        assert (got.status, got.out, got.err.count("\n")) == (2, "", 1), got
        assert got.err.startswith(f"error: out: {root} holds results of an earlier tcpscape (")
        assert got.err.endswith("), which this one does not read; run again with --out another directory\n")
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_a_full_disk_is_one_line_and_what_was_there_stays(tmp_path, trials):
    store = Store(tmp_path)
    store.save_many(trials[:2])
    with store._database._opened() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(StoreError, match="the disk is full; free some space, or choose another directory") as e:
            store.save_many([replace(t, address=f"{i:012d}{t.address[:12]}") for i in range(9) for t in trials])
        one_line(e)
        assert store.addresses() == {t.address for t in trials[:2]}
        connection.execute("PRAGMA max_page_count = 1000000")
    store.save(trials[3])
    assert store.saved == 3
    assert set(Store(tmp_path).load_many(t.address for t in trials)) == {t.address for t in (*trials[:2], trials[3])}


def test_a_write_that_fails_is_one_line_and_what_was_there_stays(tmp_path, trials):
    store = Store(tmp_path)
    store.save_many(trials[:2])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / f"{FILE}-wal").stat().st_size + 100, limits[1]))
    try:
        with pytest.raises(StoreError, match=r"disk I/O error.*; check the disk, or choose another directory") as e:
            store.save(trials[2])
        with pytest.raises(StoreError, match="File too large; free some space"):
            side_tables.write(pl.DataFrame({"a": range(100_000)}), tmp_path / "samples" / "a.parquet")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    one_line(e)
    assert list((tmp_path / "samples").iterdir()) == []
    store.save(trials[3])
    assert set(Store(tmp_path).load_many(t.address for t in trials)) == {t.address for t in (*trials[:2], trials[3])}


def test_a_directory_that_cannot_be_written_is_one_line():
    with pytest.raises(StoreError, match="out: cannot write to /proc/nosuch"):
        Store("/proc/nosuch")


def test_a_directory_that_is_read_only_is_read(request, trials):
    root = Path(tempfile.mkdtemp())  # a place that others may enter, unlike tmp_path
    request.addfinalizer(lambda: shutil.rmtree(root))
    with Store(root) as store:
        store.save_many(trials)
    root.chmod(0o555)
    (root / FILE).chmod(0o444)
    child = os.fork()
    if not child:
        status = 1
        try:
            if os.getuid() == 0:  # root may write everywhere
                os.setuid(65534)
            reader = Store(root, create=False)
            assert reader.load_many(t.address for t in trials) == by_address(trials)
            assert files(root) == [FILE]
            with pytest.raises(StoreError, match=r"cannot write to .*: it is read-only; choose another directory") as e:
                Store(root)
            one_line(e)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    root.chmod(0o755)


def test_another_process_that_keeps_it_locked_is_one_line(tmp_path, trials, monkeypatch):
    monkeypatch.setattr(database, "WAIT_S", 0.05)
    store = Store(tmp_path)
    other = sqlite3.connect(tmp_path / FILE)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match=r"another process has kept .* locked for .* s; try again when it has ended") as e:
        store.save(trials[0])
    one_line(e)
    other.close()
    store.save(trials[0])
    assert store.addresses() == {trials[0].address}


def test_a_file_system_without_locks_is_one_line(tmp_path, monkeypatch):
    with pytest.raises(StoreError, match=r"the file system of .* cannot lock files, which SQLite needs; choose a directory on a local disk"):
        raise database.refusal(sqlite3.OperationalError("locking protocol"), tmp_path / FILE)

    def refused(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    with monkeypatch.context() as m:
        m.setattr(fcntl, "lockf", refused)
        with pytest.raises(StoreError, match="cannot lock files, which SQLite needs") as e:
            Store(tmp_path)
        one_line(e)
        assert "cannot lock files" in str(database.refusal(sqlite3.OperationalError("database is locked"), tmp_path / FILE))
    assert files(tmp_path) == []
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR_SHMMAP"
    assert "cannot lock files" in str(database.refusal(error, tmp_path / FILE))


def test_threads_share_a_store(tmp_path):
    every = engines.make("mock").run(options.scenario(PATH, duration="2s"), range(96))
    with Store(tmp_path) as store:
        threads = [threading.Thread(target=lambda i=i: [store.save(t) for t in every[i::6]]) for i in range(6)]
        for t in threads:
            t.start()
        while any(t.is_alive() for t in threads):
            kept = store.load_many(t.address for t in every)
            assert all(kept[t.address] == t for t in every if t.address in kept)
        for t in threads:
            t.join()
    assert Store(tmp_path).load_many(t.address for t in every) == by_address(every)


def test_a_fork_has_its_own_connection(tmp_path, trials):
    store = Store(tmp_path)
    store.save_many(trials[:3])
    child = os.fork()
    if not child:
        store.save_many(trials[3:])
        store.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    store.save(trials[0])
    assert store.load_many(t.address for t in trials) == by_address(trials)
    store.close()
    assert files(tmp_path) == [FILE]
    assert Store(tmp_path).load_many(t.address for t in trials) == by_address(trials)


def test_a_journal_that_another_process_removes_meanwhile_is_no_obstacle(tmp_path, monkeypatch):
    Store(tmp_path).close()
    journal = tmp_path / f"{FILE}-journal"
    journal.write_bytes(b"a change of another process")
    there = os.open

    def gone(path, *rest):
        if Path(path) == journal:
            journal.unlink()
        return there(path, *rest)

    monkeypatch.setattr("tcpscape.store.database.os.open", gone)
    Store(tmp_path).close()
    assert files(tmp_path) == [FILE]


def test_processes_that_begin_at_the_same_time_share_a_store(tmp_path):
    every, children = engines.make("mock").run(options.scenario(PATH, duration="2s"), range(80)), []
    start = time.monotonic() + 0.1
    for i in range(8):
        children.append(os.fork())
        if not children[-1]:
            status = 1
            try:
                time.sleep(max(0.0, start - time.monotonic()))
                store = Store(tmp_path / "new")
                for trial in every[i::8]:
                    store.save(trial)
                store.change_manifests(lambda before: [*before, i])  # noqa: B023 (called at once)
                status = 0
            finally:
                os._exit(status)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
    store = Store(tmp_path / "new")
    assert store.load_many(t.address for t in every) == by_address(every)
    assert sorted(store.manifests()) == list(range(8))


CAMPAIGN = """
import os
from tcpscape import engines
from tcpscape.campaign.execute import Runner
from tcpscape.scenario import options
from tcpscape.store.results import Store
seeds = range({seeds})
cases = [(options.scenario({path!r}, duration="500ms", cca=cca), seeds) for cca in ("cubic", "bbr")]
class Telling(Store):
    def save_many(self, trials):
        super().save_many(trials)
        os.write(1, ''.join(t.address + chr(10) for t in trials).encode())
print("begin", flush=True)
with Telling({out!r}) as store:
    Runner(engines.make("model"), 2, store=store).run_all(cases)
print("end", flush=True)
"""


def undisturbed(seeds):
    """The trials of that campaign."""
    cases = [options.scenario(PATH, duration="500ms", cca=cca) for cca in ("cubic", "bbr")]
    return [t for group in Runner(engines.make("model")).run_all([(s, range(seeds)) for s in cases]) for t in group]


def start(out, seeds):
    """The campaign in a process of its own that has begun."""
    child = subprocess.Popen([*forked.python(), "-c", CAMPAIGN.format(path=PATH, out=str(out), seeds=seeds)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begin\n"
    return child


def test_a_campaign_that_is_killed_ten_times_loses_nothing_and_runs_nothing_twice(tmp_path, need_model):
    draw, out, seeds, runs = random.Random(5), tmp_path / "out", 600, []
    seen: set[str] = set()
    for left in range(10, -1, -1):
        child = start(out, seeds)
        if left:
            time.sleep(draw.uniform(0.0, 0.08))
            child.send_signal(signal.SIGKILL)
        *saved, _ = child.stdout.read().split("\n")
        child.wait(PATIENCE_S)
        runs.append((child.returncode, saved[-1:] == ["end"]))
        now = Store(out).addresses()
        assert set(saved) - {"end"} <= now  # saved is saved, even where the kill came right after
        assert not set(saved) & seen
        assert seen <= now
        seen = set(now)
    assert sum(code == -signal.SIGKILL for code, _ in runs) >= 8  # not over before it was killed
    assert runs[-1] == (0, True)
    every = undisturbed(seeds)
    assert Store(out).load_many(t.address for t in every) == by_address(every)
    assert Store(out).frame().equals(flow_rows(sorted(every, key=lambda t: t.address)))


def test_two_campaigns_in_one_directory_of_which_one_is_killed(tmp_path, need_model):
    draw, out, seeds = random.Random(6), tmp_path / "out", 300
    whole, said = start(out, seeds), set()
    for _ in range(4):
        child = start(out, seeds)
        time.sleep(draw.uniform(0.0, 0.08))
        child.send_signal(signal.SIGKILL)
        said |= set(child.stdout.read().split("\n")[:-1])
        child.wait(PATIENCE_S)
    said |= set(whole.stdout.read().split("\n")[:-1])
    assert whole.wait(PATIENCE_S) == 0
    every = undisturbed(seeds)
    assert said - {"end"} <= {t.address for t in every}
    assert Store(out).load_many(t.address for t in every) == by_address(every)


def test_conditions_that_differ_by_name_share_their_trials(tmp_path):
    ran = []

    class Counting(engines.REGISTRY["mock"]):
        def run(self, scenario, seeds, **how):
            ran.extend(seeds)
            return super().run(scenario, seeds, **how)

    one = options.scenario(PATH, duration="2s")
    two = one.model_copy(update={"name": "other"})
    told = []
    with Store(tmp_path) as store:
        first, second = Runner(Counting(), 1, store=store, progress=lambda *said: told.append(said)).run_all([(one, [3, 1, 1]), (two, range(4))])
    assert sorted(ran) == [0, 1, 2, 3]
    assert [t.seed for t in first] == [3, 1, 1]
    assert {t.scenario for t in second} == {"other"}
    assert [replace(t, scenario="words") for t in second[1:2]] == first[1:2]
    assert told[-1] == (4, 4)


def test_rows_are_what_they_say():
    trial = engines.make("mock").run(options.scenario(PATH, duration="2s"), [1])[0]
    address, text, queues = rows.encode(trial)
    assert json.loads(text) == {"address": address, **{k: v for k, v in trial.to_dict().items() if k != "queues"}}
    assert rows.decode(text, queues) == trial
    assert rows.decode(text[:-1], queues) is None
    (flow, *_), values = trial.to_dict()["flows"], json.loads(text)
    for wrong in ({"goodput_mbps": -1.0}, {"cca": "c" * 5000}):
        assert rows.decode(json.dumps({**values, "flows": [{**flow, **wrong}]}), queues) is None
    assert rows.decode(json.dumps({**json.loads(text), "later": 1}), queues) == trial


def test_samples_of_a_trial_without_flows_are_damaged(tmp_path):
    columns = {name: pl.Series([1, 2], dtype=pl.UInt32) for name in {*side_tables.COLUMNS["samples"], "flow"}}
    (tmp_path / "samples").mkdir()
    side_tables.write(pl.DataFrame(columns), side_tables.path(tmp_path, "a", "samples"))
    assert side_tables.read(tmp_path, "a", "samples", 3).height == 2
    for flows in (0, 2):
        with pytest.raises(StoreError, match="column flow holds other numbers"):
            side_tables.read(tmp_path, "a", "samples", flows)
