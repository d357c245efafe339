"""A sweep of many short trials, on the cores of this machine and on a cluster of it, undisturbed and with parts of the cluster killed."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import distributed

from tcpscape import engines
from tcpscape.campaign import executors
from tcpscape.campaign.execute import Runner
from tcpscape.errors import EngineError
from tcpscape.scenario.scenario import Scenario
from tcpscape.store.results import Store

FILL, FILL_FAR = 0.95, 0.9
"""Least share of the CPU time that the engine should have, on this machine and on a cluster of it."""
COLUMNS = ("sweep", "trials", "s", "engine, of the cores", "engine, of the CPU time", "kept", "saved")
UP_S = 60
"""How long a scheduler may take to come up, s."""
Cases = list[tuple[Scenario, range]]
Rows = dict[str, tuple[str, bytes]]


class Cluster:
    """A scheduler and two workers, each a process."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.scheduler = self._start("scheduler", "--scheduler-file", "scheduler.json", "--port", "0")
        file, end = home / "scheduler.json", time.monotonic() + UP_S
        while not (file.exists() and file.stat().st_size):
            if time.monotonic() > end:
                self.scheduler.kill()
                self.scheduler.wait(UP_S)
                raise RuntimeError("the scheduler does not come up")
            time.sleep(0.02)
        self.address: str = json.loads(file.read_text())["address"]
        self.workers = [self._start("worker", self.address, "--nthreads", "1", "--no-nanny", "--death-timeout", "30") for _ in range(2)]

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-m", "dask", *words, "--host", "127.0.0.1", "--no-dashboard"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, cwd=self._home)

    def cpu_s(self) -> float:
        """CPU seconds of its processes that are there."""
        files = [Path(f"/proc/{process.pid}/stat") for process in (self.scheduler, *self.workers) if process.poll() is None]
        ticks = [file.read_text().rpartition(")")[2].split()[11:13] for file in files]
        return sum(int(tick) for both in ticks for tick in both) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """Ends it."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait(UP_S)


@contextmanager
def cluster() -> Iterator[tuple[Cluster, executors.Dask]]:
    """A cluster whose workers are there, and the executor that uses it."""
    with tempfile.TemporaryDirectory() as home:
        started = Cluster(Path(home))
        try:
            with distributed.Client(started.address, set_as_default=False) as client:
                client.wait_for_workers(2, UP_S)
            place = executors.Dask(started.address)
            try:
                yield started, place
            finally:
                place.close()
        finally:
            started.stop()


def content(store: Store) -> Rows:
    """Every trial that is kept, as the database has it."""
    return {address: (trial, queues) for address, trial, queues in store.rows("SELECT address, trial, queues FROM trials")}


@dataclasses.dataclass(frozen=True)
class Sweep:
    """The same trials at several places."""

    here: Cases
    far: Cases
    """Those of them that run on a cluster."""
    of_each: float
    """CPU seconds of the engine alone for a trial."""

    def rows(self) -> tuple[list[tuple[str, ...]], bool]:
        """The rows, and whether the engine has its share, nothing is lost and nothing is doubled."""
        with tempfile.TemporaryDirectory() as root, Store(root) as store:
            began, busy = time.monotonic(), time.process_time()
            Runner(engines.make("model"), store=store).keep_all(self.here)
            row, share, whole = self._row("threads of one process", self.here, store, time.monotonic() - began, time.process_time() - busy, None)
            model = engines.make("model")
            expected = {address for scenario, seeds in self.far for address in model.addresses(scenario, seeds)}
            same = {address: kept for address, kept in content(store).items() if address in expected}
        far = [
            self._far("two workers", same),
            self._far("… a worker is killed", same, lambda c: c.workers[0].send_signal(signal.SIGKILL)),
            self._restarted(same),
        ]
        return [row, *(row for row, _, _ in far)], share >= FILL and far[0][1] >= FILL_FAR and whole and all(is_whole for *_, is_whole in far)

    def _far(self, what: str, same: Rows, disturb: Callable[[Cluster], None] | None = None) -> tuple[tuple[str, ...], float, bool]:
        """A row about a cluster that is disturbed after a third of the trials; the engine's share; whether all trials are kept once."""
        with tempfile.TemporaryDirectory() as root, Store(root) as store, cluster() as (started, place):
            began, busy = time.monotonic(), time.process_time() + started.cpu_s()
            Runner(engines.make("model"), store=store, executor=place, progress=self._after_a_third(started, disturb)).keep_all(self.far)
            spent = time.process_time() + started.cpu_s() - busy
            return self._row(what, self.far, store, time.monotonic() - began, None if disturb else spent, same)

    def _restarted(self, same: Rows) -> tuple[tuple[str, ...], float, bool]:
        """The row of a sweep whose scheduler is killed, and which goes on with another one."""
        with tempfile.TemporaryDirectory() as root:
            began, saved = time.monotonic(), 0
            with Store(root) as store, cluster() as (started, place):
                stop = self._after_a_third(started, lambda c: c.scheduler.send_signal(signal.SIGKILL))
                try:
                    Runner(engines.make("model"), store=store, executor=place, progress=stop).keep_all(self.far)
                except EngineError:
                    saved = store.saved
            with Store(root) as store, cluster() as (_, place):
                Runner(engines.make("model"), store=store, executor=place).keep_all(self.far)
                store.saved += saved
                return self._row(f"… the scheduler is killed ({saved:,} were kept)", self.far, store, time.monotonic() - began, None, same)

    def _after_a_third(self, started: Cluster, disturb: Callable[[Cluster], None] | None) -> Callable[[int, int], None]:
        due = [disturb] if disturb else []

        def progress(done: int, total: int) -> None:
            if due and done >= total / 3:
                due.pop()(started)

        return progress

    def _row(self, what: str, cases: Cases, store: Store, wall: float, spent: float | None, same: Rows | None) -> tuple[tuple[str, ...], float, bool]:
        """A row, the engine's share of the CPU time, and whether all trials are kept, each written once; `spent` is None where nobody measured it."""
        count, kept = sum(len(seeds) for _, seeds in cases), content(store)
        engine = count * self.of_each
        right = len(kept) if same is None else sum(same.get(address) == row for address, row in kept.items())
        share = engine / spent if spent else 0.0
        of = [f"{engine / ((os.cpu_count() or 1) * wall):.0%}", f"**{share:.0%}**"] if spent else ["", ""]
        is_whole = right == len(kept) == store.saved == count
        return (what, f"{count:,}", f"{wall:.1f}", *of, f"{right:,}", f"{store.saved:,}"), share, is_whole
