"""The store: what was saved is there once, whatever happens to who saved it."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import polars as pl
import pytest

from tcpscape import engines
from tcpscape.campaign import Runner
from tcpscape.engines import Capture
from tcpscape.errors import StoreError
from tcpscape.scenario import options
from tcpscape.store import journal, results, rows
from tcpscape.store.results import Store, flow_rows
from tcpscape.trial import Rtt

PATH = {"forward": "netem delay 10ms loss 1%", "bottleneck": "tbf rate 10mbit burst 6056 limit 62500", "reverse": "netem delay 10ms"}


@pytest.fixture
def trials():
    return engines.make("mock").run(options.scenario(PATH, mix="cubic,bbr", duration="2s"), range(7))


def by_address(trials):
    return {t.address: t for t in trials}


def journals(store):
    return list(store.root.glob("journal/*"))


def segments(store):
    return list(store.root.glob("trials/*.parquet"))


def test_a_trial_comes_back_as_it_was_before_and_after_the_fold(tmp_path, trials):
    store = Store(tmp_path)
    for trial in trials[:4]:
        store.save(trial)
    store.save_many(trials[4:])
    assert not segments(store)
    for reader in (store, Store(tmp_path)):
        assert reader.load_many([t.address for t in trials]) == by_address(trials)
    store.close()
    assert len(segments(store)) == 1
    assert not journals(store)
    for reader in (store, Store(tmp_path)):
        assert list(reader.load_many([trials[3].address, "nosuch", trials[1].address])) == [trials[3].address, trials[1].address]
        assert reader.load(trials[2].address) == trials[2]
        assert reader.load("nosuch") is None
        assert reader.addresses() == set(by_address(trials))
        assert reader.frame().equals(flow_rows(sorted(trials, key=lambda t: t.address)))


def test_segments_can_be_read_together(tmp_path, trials, need_model):
    bare = replace(trials[0], hash=None, events=None, flows=tuple(replace(f, srtt_ms=None, rtos=None, ecn=None, rtt_ms=Rtt()) for f in trials[0].flows))
    full = engines.make("model").run(options.scenario(PATH, duration="2s"), [1])[0]
    for trial in (bare, full):
        with Store(tmp_path) as store:
            store.save(trial)
    schemas = [pl.read_parquet_schema(path) for path in segments(store)]
    assert len(schemas) == 2
    both = set(schemas[0]) & set(schemas[1])
    assert {name: schemas[0][name] for name in both} == {name: schemas[1][name] for name in both}
    assert schemas[0]["rtos"] == schemas[0]["events"] == pl.Int64
    assert schemas[0]["srtt_ms"] == schemas[0]["rtt_ms_p50"] == schemas[0]["cwnd_max"] == pl.Float64
    assert schemas[0]["ecn"] == pl.Boolean


def test_an_empty_store_is_empty_and_leaves_nothing(tmp_path):
    with Store(tmp_path) as store:
        assert store.frame().is_empty()
        assert store.addresses() == set()
    assert [p.name for p in tmp_path.iterdir()] == ["trials"]


def test_a_forgotten_store_is_folded(tmp_path, trials):
    Store(tmp_path).save_many(trials)
    assert len(segments(Store(tmp_path))) == 1


def test_a_journal_that_grows_is_folded_meanwhile(tmp_path, trials, monkeypatch):
    monkeypatch.setattr(results, "FOLD_AT", 3)
    store = Store(tmp_path)
    for trial in trials:
        store.save(trial)
    assert (len(segments(store)), len(journals(store))) == (2, 1)
    assert store.load_many([t.address for t in trials]) == by_address(trials)
    assert store.frame().height == 14


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


def test_damaged_lines_are_no_trials(tmp_path, trials):
    store = Store(tmp_path)
    store.save_many(trials)
    store._writer._leave()  # as if killed
    path = journals(store)[0]
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for torn in (1, 24, 25, 300, len(lines[-1]) - 1):
        path.write_bytes(b"".join(lines[:-1]) + lines[-1][:torn])
        assert Store(tmp_path).addresses() == {t.address for t in trials[:-1]}
    path.write_bytes(b"".join([*lines[:2], lines[2].replace(b"{", b"\0", 1), b"\n", b"\0\0\0\n", *lines[3:]]))
    assert set(Store(tmp_path).load_many(t.address for t in trials)) == {t.address for i, t in enumerate(trials) if i != 2}
    with Store(tmp_path) as again:
        again.save(trials[2])
    assert not journals(again)
    assert Store(tmp_path).load_many(t.address for t in trials) == by_address(trials)


def test_what_is_there_twice_is_read_once(tmp_path, trials):
    one, two = Store(tmp_path), Store(tmp_path)
    one.save_many(trials)
    two.save_many(trials[2:])
    two.save(trials[2])
    for _ in range(2):
        assert Store(tmp_path).frame().equals(flow_rows(sorted(trials, key=lambda t: t.address)))
        assert Store(tmp_path).load_many(t.address for t in trials) == by_address(trials)
        one.close()
        two.close()
    assert len(segments(one)) == 2


def test_a_fold_that_was_killed_before_the_journal_was_deleted(tmp_path, trials):
    store = Store(tmp_path)
    store.save_many(trials)
    path = store._writer._leave()
    kept = path.read_bytes()
    results.fold(path, tmp_path)
    path.write_bytes(kept)
    assert Store(tmp_path).frame().height == 14
    with Store(tmp_path) as again:
        again.save(replace(trials[0], address="0" * 24))
    assert (len(journals(again)), len(segments(again))) == (0, 2)


def test_a_writers_journal_is_left_alone_by_others(tmp_path, trials):
    busy = Store(tmp_path)
    busy.save_many(trials[:3])
    with Store(tmp_path) as other:
        other.save_many(trials[3:])
    assert [p.name for p in journals(other)] == [busy._writer._journal.path.name]
    busy.save(trials[5])
    assert other.load_many(t.address for t in trials) == by_address(trials)
    busy.close()
    assert other.load_many(t.address for t in trials) == by_address(trials)  # its index names a journal that is folded now


def test_stores_of_one_file_a_trial_are_read(tmp_path, trials):
    (tmp_path / "trials").mkdir()
    for trial in trials[:3]:  # as it was written at first: the JSON in each row, with spaces
        said = json.dumps(trial.to_dict())
        flow_rows([trial]).with_columns(trial_json=pl.lit(said)).write_parquet(tmp_path / "trials" / f"{trial.address}.parquet")
    with Store(tmp_path) as store:
        store.save_many(trials[3:])
        assert store.load_many(t.address for t in trials) == by_address(trials)
        assert store.frame().height == 14
        assert set(store.addresses()) == set(by_address(trials))


def test_a_segment_that_cannot_be_read_is_one_line(tmp_path, trials):
    (tmp_path / "trials").mkdir()
    (tmp_path / "trials" / f"{trials[0].address}.parquet").write_bytes(b"no table")
    with pytest.raises(StoreError, match=r"out: .*cannot be read.*; delete it") as e:
        Store(tmp_path).load(trials[0].address)
    assert "\n" not in str(e.value)


def test_a_full_disk_is_one_line_and_what_was_there_stays(tmp_path, trials, monkeypatch):
    store = Store(tmp_path)
    store.save_many(trials[:2])
    write, left = os.write, [100]

    def full(fd, text):
        if not left[0]:
            raise OSError(28, "No space left on device")
        n = write(fd, bytes(text)[: left[0]])
        left[0] -= n
        return n

    with monkeypatch.context() as m:
        m.setattr(journal.os, "write", full)
        with pytest.raises(StoreError, match="No space left on device; free some space, or choose another directory"):
            store.save(trials[2])
    store.save(trials[3])
    assert set(Store(tmp_path).load_many(t.address for t in trials)) == {t.address for t in (*trials[:2], trials[3])}


def test_a_table_that_does_not_fit_is_one_line_and_leaves_nothing(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
    try:
        with pytest.raises(StoreError, match="File too large; free some space") as e:
            results._write(pl.DataFrame({"a": range(1000)}), tmp_path / "samples" / "a.parquet")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "\n" not in str(e.value)
    assert list((tmp_path / "samples").iterdir()) == []


def test_a_directory_that_cannot_be_written_is_one_line():
    with pytest.raises(StoreError, match="out: cannot write to /proc/nosuch"):
        Store("/proc/nosuch")


def test_threads_share_a_store(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLD_AT", 20)
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


def test_a_fork_writes_its_own_journal(tmp_path, trials):
    store = Store(tmp_path)
    store.save_many(trials[:3])
    child = os.fork()
    if not child:
        store.save_many(trials[3:])
        store.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    store.save(trials[0])
    assert Store(tmp_path).load_many(t.address for t in trials) == by_address(trials)


CAMPAIGN = """
import os
from tcpscape import engines
from tcpscape.scenario import options
from tcpscape.store import results
from tcpscape.campaign import Runner
from tcpscape.store.results import Store
results.FOLD_AT = 40
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


def on_disk(root):
    """How often each trial stands in journals and segments; a journal whose fold was cut short counts once."""
    count: dict[str, int] = {}
    for path in root.glob("trials/*.parquet"):
        for address in pl.read_parquet(path).filter(pl.col("trial_json").is_not_null())["address"]:
            count[address] = count.get(address, 0) + 1
    for path in root.glob("journal/*"):
        if not (root / "trials" / f"{path.stem}.parquet").exists():
            for line in journal.lines(path)[0]:
                count[line.address] = count.get(line.address, 0) + 1
    return count


def test_a_campaign_that_is_killed_ten_times_loses_nothing_and_runs_nothing_twice(tmp_path, need_model):
    draw, out, seeds, runs = random.Random(5), tmp_path / "out", 300, []
    seen: set[str] = set()
    for left in range(10, -1, -1):
        text = CAMPAIGN.format(path=PATH, out=str(out), seeds=seeds)
        child = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "begin\n"
        if left:
            time.sleep(draw.uniform(0.0, 0.08))
            child.send_signal(signal.SIGKILL)
        *saved, _ = child.stdout.read().split("\n")
        child.wait(60)
        runs.append((child.returncode, saved[-1:] == ["end"]))
        before = on_disk(out)
        assert set(saved) - {"end"} <= set(before)  # saved is saved, even where the kill came right after
        assert set(before.values()) <= {1}
        assert seen <= set(before)
        assert set(before) == set(Store(out).addresses())
        seen = set(before)
    assert sum(code == -signal.SIGKILL for code, _ in runs) >= 8  # not over before it was killed
    assert runs[-1] == (0, True)
    cases = [options.scenario(PATH, duration="500ms", cca=cca) for cca in ("cubic", "bbr")]
    undisturbed = [t for some in Runner(engines.make("model")).run_all([(s, range(seeds)) for s in cases]) for t in some]
    assert Store(out).load_many(t.address for t in undisturbed) == by_address(undisturbed)
    assert Store(out).frame().equals(flow_rows(sorted(undisturbed, key=lambda t: t.address)))


def test_conditions_that_differ_by_name_share_their_trials(tmp_path):
    ran = []

    class Counting(engines.REGISTRY["mock"]):
        def run(self, scenario, seeds, **options):
            ran.extend(seeds)
            return super().run(scenario, seeds, **options)

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


def test_lines_are_what_they_say():
    trial = engines.make("mock").run(options.scenario(PATH, duration="2s"), [1])[0]
    text = rows.encode(trial)
    assert b"\n" not in text
    assert rows.decode(trial.address, text, {}) == trial
    assert rows.decode(trial.address, text[:-1], {}) is None
