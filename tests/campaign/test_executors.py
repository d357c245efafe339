"""Executors: wherever trials run, they are the same trials. The cluster here is a real one, on loopback."""

import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest

from conftest import ROOT
from patience import PATIENCE_S
from tcpscape import engines
from tcpscape.campaign import executors
from tcpscape.campaign.execute import Runner
from tcpscape.campaign.executors import Local, ScenarioTrials, Task, cut
from tcpscape.errors import EngineError, ScenarioError, TcpscapeError
from tcpscape.scenario import options
from tcpscape.store.results import Store
from tcpscape.trial import Capture

PATH = {"forward": "netem delay 10ms loss 1%", "bottleneck": "tbf rate 10mbit burst 6056 limit 62500", "reverse": "netem delay 10ms"}


def case(cca="cubic", duration="2s"):
    return options.scenario(PATH, cca=cca, duration=duration)


def test_local_takes_the_jobs():
    assert executors.make("local", 3) == Local(3)


def test_work_is_cut_in_order():
    work = [ScenarioTrials(case(), tuple(range(5))), ScenarioTrials(case("bbr"), (7,)), ScenarioTrials(case("reno"), ())]
    assert [(i, one.seeds) for i, one in cut(work, 2)] == [(0, (0, 1)), (0, (2, 3)), (0, (4,)), (1, (7,))]


def test_an_error_in_a_thread_ends_the_campaign_and_keeps_what_was_over(tmp_path):
    class Fussy(engines.REGISTRY["mock"]):
        def run(self, scenario, seeds, **options):
            if 5 in seeds:
                raise ScenarioError("seed: 5 is no seed; take another")
            return super().run(scenario, seeds, **options)

    with Store(tmp_path) as store, pytest.raises(ScenarioError, match="5 is no seed"):
        Runner(Fussy(), 1, store=store).run(case(), range(1000))
    assert {Fussy().address(case(), seed) for seed in range(5)} <= Store(tmp_path).addresses()
    assert len(Store(tmp_path).addresses()) < 20


def test_whatever_stops_a_campaign_stops_its_threads(tmp_path):
    class Slow(engines.REGISTRY["mock"]):
        def run(self, scenario, seeds, **options):
            time.sleep(0.01)
            return super().run(scenario, seeds, **options)

    def progress(done, total):
        raise RuntimeError

    with Store(tmp_path) as store, pytest.raises(RuntimeError):
        Runner(Slow(), 2, store=store, progress=progress).run(case(), range(1000))
    for thread in threading.enumerate():
        if thread.name.startswith("ThreadPoolExecutor"):
            thread.join(PATIENCE_S)
    assert len(Store(tmp_path).addresses()) < 500


def test_variants_of_engines_are_made_again_by_name():
    assert [e.spec for e in (engines.REGISTRY["virtual"]("mine"), engines.REGISTRY["virtual"](), engines.REGISTRY["model"]())] == [
        "virtual:mine",
        "virtual",
        "model",
    ]


def test_each_trial_is_saved_before_the_next_begins(tmp_path):
    begun = []

    class Watching(engines.REGISTRY["mock"]):
        def run(self, scenario, seeds, **options):
            begun.append(len(Store(tmp_path).addresses()))
            time.sleep(executors.BATCH_S)
            return super().run(scenario, seeds, **options)

    with Store(tmp_path) as store:
        Runner(Watching(), 1, store=store).run(case(), range(5))
    assert begun == [0, 1, 2, 3, 4]


def test_short_trials_are_saved_by_batches_and_none_is_claimed_for_long(tmp_path):
    sizes = []

    class Watched(Store):
        def save_many(self, trials):
            sizes.append(len(trials))
            super().save_many(trials)

    with Watched(tmp_path) as store:
        trials = Runner(engines.make("mock"), 1, store=store).run(case(), range(1000))
    assert [t.seed for t in trials] == [*range(1000)]
    assert sum(sizes) == 1000
    assert max(sizes) <= executors.BATCH_TRIALS
    assert len(sizes) < 500


def test_while_short_trials_run_together_nobody_looks_for_garbage(tmp_path):
    looks = {}

    class Watched(engines.REGISTRY["mock"]):
        def run(self, scenario, seeds, **options):
            looks[len(seeds)] = gc.isenabled()
            return super().run(scenario, seeds, **options)

    with Store(tmp_path) as store:
        Runner(Watched(), 1, store=store).run(case(), range(20))
    assert looks.pop(1)
    assert looks
    assert not any(looks.values())
    assert gc.isenabled()


def test_each_scenario_begins_with_one_trial_whatever_the_one_before_took():
    class Noted(engines.REGISTRY["mock"]):
        def run(self, scenario, seeds, **options):
            batches.append((scenario.cca, tuple(seeds)))
            return super().run(scenario, seeds, **options)

    batches = []
    Runner(Noted(), 1).run_all([(case(), range(20)), (case("bbr"), range(20))])
    for cca in ("cubic", "bbr"):
        sizes = [len(seeds) for of, seeds in batches if of == cca]
        assert (sizes[0], sum(sizes)) == (1, 20)


def test_trials_of_scenarios_that_take_no_longer_are_saved_together(tmp_path):
    sizes = []

    class Watched(Store):
        def save_many(self, trials):
            sizes.append(len({trial.address for trial in trials}))
            super().save_many(trials)

    class Timed(engines.REGISTRY["mock"]):
        def seconds(self, scenario):
            return 1.0 if scenario.cca == "bbr" else 0.1

    short = [(case(duration=f"{i + 1}s"), [0]) for i in range(40)]
    with Watched(tmp_path) as store:
        trials = Runner(Timed(), 1, store=store).run_all([*short, (case("bbr"), [0])])
    assert len(trials) == sum(sizes) == 41
    assert len(sizes) < 20, "forty scenarios, by batches"
    assert sizes[-1] == 1, "the long one by itself"


def test_a_trial_of_files_that_changed_is_kept_as_it_was_claimed_and_says_so(tmp_path):
    class Changing(engines.REGISTRY["mock"]):
        def version_for(self, scenario):
            return f"{self.version} {len(ran)}"

        def run(self, scenario, seeds, **options):
            trials = super().run(scenario, seeds, **options)
            ran.extend(seeds)
            return trials

    ran = []
    engine = Changing()
    addresses = engine.addresses(case(), range(3))
    with Store(tmp_path) as store:
        trials = Runner(engine, 1, store=store).run(case(), range(3))
        assert store.addresses() == set(addresses)
    assert [executors.CHANGED in trial.caveats for trial in trials] == [False, True, True]


def test_a_trial_that_fails_is_not_run_again():
    class Failing(engines.REGISTRY["mock"]):
        def run(self, scenario, seeds, **options):
            ran.append(tuple(seeds))
            raise ScenarioError("command: it cannot be run; correct it")

    ran = []
    with pytest.raises(ScenarioError, match="it cannot be run"):
        Runner(Failing(), 1).run(case(), range(5))
    assert ran == [(0,)]


def test_a_missing_package_names_the_fix(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(EngineError, match=r"executor: the package distributed is missing; install it with `pip install 'tcpscape\[dask\]'`"):
        executors.make("dask://127.0.0.1:1")


class Cluster:
    """A scheduler and two workers, each a process with one thread."""

    def __init__(self, home):
        self.home, self.processes = home, []
        file = home / "scheduler.json"
        self.start("scheduler", "--scheduler-file", str(file), "--port", "0")
        end = time.monotonic() + PATIENCE_S
        while not (file.exists() and file.stat().st_size):
            assert time.monotonic() < end, "the scheduler does not come up"
            time.sleep(0.02)
        self.address = json.loads(file.read_text())["address"]
        self.workers = [self.worker(), self.worker()]

    def worker(self):
        return self.start("worker", self.address, "--nthreads", "1", "--no-nanny", "--death-timeout", "30")

    def start(self, *said):
        env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        words = [sys.executable, "-m", "dask", *said, "--host", "127.0.0.1", "--no-dashboard"]
        log = (self.home / f"{len(self.processes)}.log").open("wb")
        self.processes.append(subprocess.Popen(words, stdout=log, stderr=log, env=env, cwd=self.home))
        return self.processes[-1]

    def stop(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    pytest.importorskip("distributed", reason="the package distributed is not installed")
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def dask(cluster):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executors, "CONNECT_S", PATIENCE_S)
        yield from connected(cluster)


def connected(cluster):
    made = executors.make(f"dask://{cluster.address.removeprefix('tcp://')}")
    yield made
    made.close()


def test_what_a_worker_sends_is_the_trial(need_model):
    capture = Capture(samples_ns=10**8, queue_samples_ns=10**8, packets=True, events=True, control_ns=10**8)
    model, scenario = engines.make("model"), case("bbr")
    here = model.run(scenario, range(3), capture=capture)
    answer = pickle.dumps(executors.run_remote(executors.RemoteTask("model", model.version, scenario, tuple(range(3)), capture)))
    there = [executors.received(one) for one in pickle.loads(answer)]
    assert there == here
    for one, other in zip(there, here, strict=True):
        assert one.control_states == other.control_states != {}
        for table in ("samples", "queue_samples", "packets", "sender_events", "control"):
            assert getattr(one, table).equals(getattr(other, table))
    assert there[0].probe_samples is None


def test_a_task_of_short_trials_has_more_of_them(need_model):
    def first(duration, engine="model", seeds=100_000):
        task = Task(engines.make(engine), Capture(), lambda trials: None)
        ((_, piece),) = executors._Pieces(task, [ScenarioTrials(case(duration=duration), tuple(range(seeds)))], lambda: 1).next(0)
        return len(piece.seeds)

    assert first("10ms") == executors.MOST_TRIALS
    assert executors.TASK_TRIALS < first("1s") < executors.MOST_TRIALS
    assert first("600s") == first("10ms", "mock") == executors.TASK_TRIALS
    assert first("1s", seeds=10) == 5


def test_what_a_cluster_cannot_run_is_refused_by_name(dask, need_model):
    class Mine(engines.REGISTRY["mock"]):
        pass

    own = case(f"{ROOT / 'examples' / 'python' / 'reno.py'}:Reno")
    for engine, scenario, said in ((Mine(), case(), "executor: engine mock-1"), (engines.make("model"), own, "cca: .*reno.py:Reno is Python code")):
        with pytest.raises(TcpscapeError, match=said):
            Runner(engine, executor=dask).run(scenario, range(2))


def test_another_version_on_a_worker_is_refused(dask, need_model, monkeypatch):
    class Newer(engines.REGISTRY["model"]):
        version = "model-9"

    monkeypatch.setitem(engines.REGISTRY, "model", Newer)
    with pytest.raises(EngineError, match=r"a worker's engine model is .*, here it is model-9; install the same"):
        Runner(Newer(), executor=dask).run(case(), range(2))


def test_an_answer_that_is_no_trial_is_one_line():
    with pytest.raises(EngineError, match=r"^executor: a worker's answer is damaged; see its log, and run again"):
        executors.received(('{"scenario": 1}', None, {}))


def test_errors_of_a_trial_come_back(dask, need_model, monkeypatch):
    monkeypatch.setattr(engines.REGISTRY["model"], "check", lambda *_: None)
    with pytest.raises(ScenarioError, match="nosuch"):
        Runner(engines.make("model"), executor=dask).run(case("nosuch"), range(2))


def test_samples_travel(dask, need_model):
    capture = Capture(samples_ns=100_000_000)
    here, there = (Runner(engines.make("model"), capture=capture, executor=e).run(case(), range(3)) for e in (Local(1), dask))
    assert here == there
    assert all(a.samples.equals(b.samples) for a, b in zip(here, there, strict=True))


def test_a_worker_that_dies_costs_nothing_but_time(cluster, dask, need_model, tmp_path):
    conditions = [(case(cca, "10s"), range(60)) for cca in ("cubic", "bbr")]
    model, told = engines.make("model"), []
    here = Runner(model, 2).run_all(conditions)
    with Store(tmp_path) as store:

        def progress(done, total):
            told.append(done)
            if done >= 20 and cluster.workers[0].poll() is None:
                cluster.workers[0].send_signal(signal.SIGKILL)
                cluster.workers[0].wait(PATIENCE_S)

        there = Runner(model, store=store, progress=progress, executor=dask).run_all(conditions)
        assert there == here
        assert cluster.workers[0].returncode == -signal.SIGKILL
        assert told == list(range(1, 121))
        assert len(store.addresses()) == 120
        cluster.workers[1].kill()
        cluster.workers[1].wait(PATIENCE_S)
        late = threading.Timer(0.5, lambda: cluster.workers.append(cluster.worker()))
        late.start()
        assert Runner(model, store=store, executor=dask).run_all([*conditions, (case("reno"), range(4))])[:2] == here
        late.join()


def test_a_cluster_whose_workers_are_all_gone_says_so_and_goes_on(cluster, need_model, monkeypatch):
    monkeypatch.setattr(executors, "CONNECT_S", PATIENCE_S)
    told, model = [], engines.make("model")

    def tell(text):
        told.append(text)
        if len(told) == 1:
            cluster.workers.append(cluster.worker())

    def progress(done, total):
        if done >= 5 and not gone:
            for worker in cluster.workers:
                worker.kill()
                worker.wait(PATIENCE_S)
            gone.append(True)

    gone: list[bool] = []
    place = executors.make(f"dask://{cluster.address.removeprefix('tcp://')}", tell=tell)
    trials = Runner(model, progress=progress, executor=place).run(case("cubic", "10s"), range(40))
    place.close()
    assert trials == Runner(model, 2).run(case("cubic", "10s"), range(40))
    assert told == [
        f"no worker is left: `dask worker {cluster.address}` starts one; the trials go on then, and Ctrl-C keeps those that are over",
        "there are workers again: the trials go on",
    ]


def test_a_cluster_that_is_not_there_is_one_line(monkeypatch):
    pytest.importorskip("distributed", reason="the package distributed is not installed")
    from tcpscape.campaign import executors as cluster

    monkeypatch.setattr(cluster, "CONNECT_S", 0.5)
    with pytest.raises(EngineError, match=r"executor: no dask scheduler answers at tcp://127.0.0.1:9; start one with `dask scheduler`"):
        executors.make("dask://127.0.0.1:9")


def test_a_scheduler_that_dies_is_one_line_and_what_was_over_is_kept(cluster, dask, need_model, tmp_path):
    def progress(done, total):
        if done == 5:
            cluster.processes[0].kill()

    with Store(tmp_path) as store, pytest.raises(EngineError, match=r"executor: the dask scheduler at tcp:\S+ is gone; start it and its") as e:
        Runner(engines.make("model"), store=store, progress=progress, executor=dask).run(case(duration="10s"), range(2000))
    assert "\n" not in str(e.value)
    assert 5 <= len(Store(tmp_path).addresses()) < 2000
