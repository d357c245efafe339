"""Several writers of one directory share the work: each trial runs once, whoever is killed, and each writer reports the whole."""

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import threading
import time

import pytest

import forked
from patience import PATIENCE_S
from tcpscape import engines, writing
from tcpscape.campaign.execute import Runner
from tcpscape.scenario import options
from tcpscape.store.results import FILE, Store
from tcpscape.trial import Capture

PATH = {"forward": "netem delay 10ms loss 1%", "reverse": "netem delay 10ms"}
SWEEP = "sweep --rtt 20ms --rate 20mbit --jitter 0,2ms --cca cubic,bbr --duration 10s --seeds 8"
TRIALS = 32


@pytest.fixture(autouse=True)
def _model(need_model):
    pass


def start(out, words=SWEEP):
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*forked.python(), "-m", "tcpscape", *words.split(), "--jobs", "1", "--out", str(out)], stdout=pipe, stderr=pipe, text=True
    )


def finish(child):
    """Trials that a writer ran, and what it printed but for that."""
    out, err = child.communicate(timeout=PATIENCE_S)
    assert (child.returncode, err) == (0, "")
    (kept,) = (line for line in out.splitlines() if "kept in" in line)
    return int(found[1]) if (found := re.search(r"(\d+) ran", kept)) else 0, [line for line in out.splitlines() if line != kept]


def addresses(out):
    with contextlib.closing(sqlite3.connect(out / FILE)) as connection:  # one that stays open keeps SQLite's files beside the database
        return [a for (a,) in connection.execute("SELECT address FROM trials")], connection.execute("SELECT * FROM claims").fetchall()


def test_writers_of_one_sweep_share_the_work_and_report_the_whole(tmp_path):
    out = tmp_path / "out"
    done = [finish(child) for child in [start(out) for _ in range(3)]]
    assert sum(ran for ran, _ in done) == TRIALS
    assert all(printed == done[0][1] for _, printed in done)
    kept, claims = addresses(out)
    assert (len(set(kept)), len(kept), claims) == (TRIALS, TRIALS, [])
    assert sorted(p.name for p in out.iterdir()) == ["cells.csv", FILE]


def test_what_a_killed_writer_has_claimed_is_taken_over(tmp_path):
    out = tmp_path / "out"
    children = [start(out) for _ in range(4)]
    for child, number in zip(children[:2], (signal.SIGKILL, signal.SIGTERM), strict=True):
        while not (out / FILE).exists() or not addresses_or_none(out):
            time.sleep(0.02)
        child.send_signal(number)
        child.communicate(timeout=PATIENCE_S)
    done = [finish(child) for child in children[2:]]
    assert done[0][1] == done[1][1]
    assert len(addresses(out)[0]) == TRIALS
    ran, printed = finish(start(out))
    assert (ran, printed) == (0, done[0][1])
    kept, claims = addresses(out)
    # Killed after it has kept a trial and before it releases it, a writer leaves a claim that holds nobody up: only missing trials are claimed.
    assert {address for address, _ in claims} <= set(kept)
    assert sorted(p.name for p in out.iterdir()) == ["cells.csv", FILE]


def addresses_or_none(out):
    try:
        return addresses(out)[0]
    except sqlite3.OperationalError:
        return []


def test_different_commands_in_one_directory_share_the_trials_that_both_need(tmp_path):
    out = tmp_path / "out"
    less = SWEEP.replace("--jitter 0,2ms", "--jitter 2ms,4ms")
    done = [finish(child) for child in (start(out), start(out, less))]
    assert sum(ran for ran, _ in done) == TRIALS * 3 // 2
    assert len(addresses(out)[0]) == TRIALS * 3 // 2


def scenario():
    return options.scenario(PATH, duration="1s")


def test_a_trial_that_another_one_has_claimed_is_waited_for(tmp_path):
    model, (one, two) = engines.make("model"), (Store(tmp_path), Store(tmp_path))
    (address,) = model.addresses(scenario(), [1])
    assert one.claim([address]) == {address}
    assert one.claim([address, "other"]) == {address, "other"}
    assert two.claim([address, "third"]) == {"third"}
    (trial,) = model.run(scenario(), [1])
    threading.Timer(0.5, lambda: one.save(trial)).start()
    assert Runner(model, store=two).run(scenario(), [1]) == [trial]
    assert two.saved == 0


def test_trials_that_are_kept_together_are_claimed_no_more(tmp_path):
    model, store = engines.make("model"), Store(tmp_path)
    trials = model.run(scenario(), range(3))
    assert len(store.claim([trial.address for trial in trials])) == 3
    store.save_many(trials[:2])
    assert store.rows("SELECT address FROM claims") == [(trials[2].address,)]
    store.close()
    assert store.rows("SELECT address FROM claims") == []


def test_who_keeps_less_does_not_hold_up_who_keeps_more(tmp_path):
    """Each of the two needs samples that the other does not keep, of trials that the other has claimed."""
    model, stores = engines.make("model"), [Store(tmp_path), Store(tmp_path)]
    captures = [Capture(samples_ns=10**8), Capture(queue_samples_ns=10**8)]
    results = {}

    def run(i):
        results[i] = Runner(model, 1, captures[i], stores[i]).run(scenario(), range(6))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert all(t.samples is not None for t in results[0])
    assert all(t.queue_samples is not None for t in results[1])


def test_a_forked_process_is_another_writer(tmp_path):
    store = Store(tmp_path)
    assert store.claim(["a"])
    child = os.fork()
    if not child:
        os._exit(0 if not store.claim(["a"]) and store.claim(["b"]) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not store.claim(["b"])
    store.release(["b"])
    assert store.claim(["b"])


def test_a_presence_ends_with_its_process(tmp_path):
    here = writing.Presence(tmp_path, "writer")
    assert writing.is_present(here.file)
    writing.clear(tmp_path)
    assert here.file.exists()
    here.end()
    assert not writing.is_present(here.file)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_of_an_earlier_version_has_claims_when_it_is_written(tmp_path):
    Store(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute("DROP TABLE claims")
    connection.close()
    assert Store(tmp_path, create=False).addresses() == set()
    assert Store(tmp_path).claim(["a"])
