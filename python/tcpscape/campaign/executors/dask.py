"""Trials on a cluster: `dask://HOST:PORT` names a running `dask scheduler`, whose workers have the same tcpscape installed.

A task is a few trials of one scenario; a worker answers after about :data:`ANSWER_S` with those that are over and the rest goes out again, so
that little is lost with a worker: the scheduler gives its tasks to others, and the results are those of the local executor to the last bit. What
workers answer is saved here. Without workers a campaign waits for some. Source: the documentation of dask.distributed, "Futures" and "Resilience".
"""

from __future__ import annotations

import functools
import itertools
import logging
import secrets
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from tcpscape import engines
from tcpscape.campaign.executors.local import Executor, Task, Trials, Work, cut
from tcpscape.controls import spelling
from tcpscape.engines.base import Capture, Engine
from tcpscape.errors import EngineError, TcpscapeError, refuse
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Trial

if TYPE_CHECKING:
    from distributed import Future

ANSWER_S = 0.5
"""A worker answers after the trial during which so much time has passed, s: hundreds of times what a task costs dask (about a millisecond)."""
TASK_TRIALS = 64
"""Most trials of a task."""
CONNECT_S = 10
"""How long the scheduler, and then its first worker, is waited for, s."""
LOOK_S = 2.0
"""How often the workers are counted, s."""
AHEAD = 2
"""Tasks for each thread of a worker, so that none waits for the next."""


@dataclass(frozen=True)
class RemoteTask:
    """A task, as it travels: an engine's name and version, and the trials."""

    engine: str
    version: str
    scenario: Scenario
    seeds: tuple[int, ...]
    capture: Capture


@functools.cache
def _engine(spec: str) -> Engine:
    return engines.make(spec)


def run_remote(task: RemoteTask) -> list[Trial]:
    """On a worker: runs the first of the trials, at least one. Refuses where another model is installed there."""
    engine = _engine(task.engine)
    if engine.version != task.version:
        fix = "install the same tcpscape on every worker"
        refuse("executor", f"a worker's engine {task.engine} is {engine.version}, here it is {task.version}", fix, EngineError)
    began, trials = time.monotonic(), []
    for seed in task.seeds:
        trials += engine.run(task.scenario, [seed], threads=1, capture=task.capture)
        if time.monotonic() - began > ANSWER_S:
            break
    return trials


class Dask(Executor):
    """A cluster behind a scheduler's address."""

    def __init__(self, address: str) -> None:
        """`address` is tcp://HOST:PORT. Connects at once, and refuses where nobody answers."""
        self.address = address
        self._distributed = _package()
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # its messages are given in one line here
        try:
            self._client = self._distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError):
            refuse("executor", f"no dask scheduler answers at {address}", "start one with `dask scheduler`, or use --executor local", EngineError)

    def close(self) -> None:
        """Leaves the cluster; its workers go on without us."""
        self._client.close()

    def check(self, engine: Engine, scenarios: Sequence[Scenario]) -> None:
        """Refuses Python congestion controls and engines that exist in this process only, and a cluster without workers."""
        if engines.REGISTRY.get(engine.name) is not type(engine):
            refuse("executor", f"engine {engine.version} is made in this process, and workers cannot make it", "use --executor local", EngineError)
        for cca in sorted({cca for s in scenarios for cca in s.controls}):
            if spelling.is_class(cca):
                refuse("cca", f"{cca} is Python code, which dask's workers do not have", "use --executor local", EngineError)
        try:
            self._client.wait_for_workers(1, timeout=CONNECT_S)
        except (TimeoutError, OSError):
            refuse("executor", f"the scheduler at {self.address} has no workers", f"start one with `dask worker {self.address}`", EngineError)

    def run(self, task: Task, work: Sequence[Work]) -> Trials:
        """Each trial as its worker answers, saved here."""
        pieces = _Pieces(task, work, self._lanes())
        out: dict[Future[list[Trial]], tuple[int, Work]] = {}
        arriving = self._distributed.as_completed(loop=self._client.loop)
        looked = time.monotonic()
        try:
            while True:
                if time.monotonic() - looked > LOOK_S:
                    pieces.lanes, looked = self._lanes(), time.monotonic()
                for i, piece in self._claimed(task, pieces, len(out)):
                    future = self._client.submit(run_remote, pieces.remote(piece), key=f"tcpscape-{secrets.token_hex(8)}", pure=False)
                    out[future] = (i, piece)
                    arriving.add(future)
                if not out:
                    return
                future = next(arriving)
                i, piece = out.pop(future)
                trials = self._answer(future)
                task.keep(trials)
                pieces.again(i, piece, len(trials))
                yield from ((i, trial) for trial in trials)
        finally:
            self._client.cancel(list(out))

    @staticmethod
    def _claimed(task: Task, pieces: _Pieces, out: int) -> Iterator[tuple[int, Work]]:
        """The next pieces, without trials that other processes run."""
        for i, piece in pieces.next(out):
            if seeds := tuple(seed for seed in piece.seeds if task.claim(i, seed)):
                yield i, Work(piece.scenario, seeds)

    def _lanes(self) -> int:
        """Tasks to have out at a time."""
        threads: int = sum(self._client.nthreads().values())
        return AHEAD * max(1, threads)

    def _answer(self, future: Future[list[Trial]]) -> list[Trial]:
        """A task's trials; whatever dask minds is one line."""
        try:
            trials: list[Trial] = future.result()
        except TcpscapeError:
            raise
        except ModuleNotFoundError as e:
            refuse("executor", f"a worker cannot import {e.name}", "install the same tcpscape on every worker", EngineError)
        except (self._distributed.KilledWorker, self._distributed.CancelledError, OSError, TimeoutError) as e:
            why = " ".join(str(e).split())[:200].rstrip(".")
            refuse("executor", f"dask gave up: {type(e).__name__}: {why}", "see its workers' logs, and run again: what is over is kept", EngineError)
        return trials


class _Pieces:
    """What is still to be sent out."""

    def __init__(self, task: Task, work: Sequence[Work], lanes: int) -> None:
        self._task = task
        self.lanes = lanes
        count = sum(len(w.seeds) for w in work)
        self._pieces = cut(work, max(1, min(TASK_TRIALS, count // (AHEAD * lanes))))
        self._back: deque[tuple[int, Work]] = deque()

    def next(self, out: int) -> Iterator[tuple[int, Work]]:
        """Pieces to send where `out` are out: what came back first."""
        while self._back and out < self.lanes:
            yield self._back.popleft()
            out += 1
        yield from itertools.islice(self._pieces, max(0, self.lanes - out))

    def again(self, i: int, piece: Work, done: int) -> None:
        """Takes back what a worker did not come to."""
        if piece.seeds[done:]:
            self._back.append((i, Work(piece.scenario, piece.seeds[done:])))

    def remote(self, piece: Work) -> RemoteTask:
        """A piece as it travels."""
        return RemoteTask(self._task.engine.spec, self._task.engine.version, piece.scenario, piece.seeds, self._task.capture)


def _package() -> ModuleType:
    try:
        import distributed
    except ImportError:
        refuse("executor", "the package distributed is missing", "install it with `pip install 'tcpscape[dask]'`", EngineError)
    return distributed
