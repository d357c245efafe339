"""The guests of a process, one pool for each kernel.

Where a guest serves one trial, it is started with the trial's seed and the trial can be repeated bit for bit. Where it serves several, a
trial takes a waiting guest or starts one; waiting guests stay until the process ends. There are as many guests as trials run at a time.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tcpscape.engines.base import INTERRUPTED
from tcpscape.engines.guest.process import BOOT, Boot, Guest, GuestAnswer, GuestDied, GuestFacts, Place, Timeouts
from tcpscape.errors import EngineError

TRIES = 2
"""Guests that may die over one trial."""
ERROR_LINE = re.compile(r"Kernel panic|BUG:|Oops|[Oo]ut of memory|[Ss]egfault|[Ff]ailed")
"""Marks a line that names the reason of a kernel's end."""


@dataclass(frozen=True, slots=True)
class GuestJob:
    """A trial for a guest."""

    content: Mapping[str, Any]
    """What the guest reads, as JSON."""
    timeouts: Timeouts
    captures: Mapping[Place, Path] = field(default_factory=dict)
    """The file for the packets of each place."""
    owner: object = None
    """Whose jobs :meth:`GuestPool.stop` ends."""
    is_cancelled: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class GuestDeath:
    """Why a guest died, and its last output: lines of its console and its log."""

    reason: str
    output: str = field(repr=False)

    @property
    def last_word(self) -> str:
        """The last line that names a reason, otherwise the last line; empty where there is none."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        error_lines = [line for line in lines if ERROR_LINE.search(line)] or lines
        return error_lines[-1][:200] if error_lines else ""

    def __str__(self) -> str:
        """In one line."""
        return f"{self.reason}; its last word: {self.last_word}" if self.last_word else self.reason


class GuestPool:
    """Guests of one kernel. Any thread."""

    def __init__(self, boot: Boot, per_guest: int = 1) -> None:
        """`per_guest`: trials after which a guest is replaced. With 1, each trial has a guest of its own that is started with its seed."""
        self._boot = boot
        self._per_guest = per_guest
        self._lock = threading.Lock()
        self._idle: list[Guest] = []
        self._busy: dict[Guest, object] = {}
        self._closed = False
        self._facts: GuestFacts | None = None

    def facts(self) -> GuestFacts:
        """What a guest reports about its kernel."""
        if self._facts is None:
            self._try(GuestJob({}, BOOT), lambda guest: None)
        return self._facts or GuestFacts()

    def run(self, job: GuestJob) -> tuple[GuestAnswer, list[GuestDeath]]:
        """The answer to a job, and the deaths of guests before it. :raises EngineError: :data:`TRIES` guests died, or the job was cancelled."""
        return self._try(job, lambda guest: guest.run(job.content, job.timeouts, job.captures))

    def stop(self, owner: object) -> None:
        """Ends the guests that are busy for `owner`, whose jobs are cancelled already."""
        with self._lock:
            guests = [guest for guest, guest_owner in self._busy.items() if guest_owner is owner]
        for guest in guests:
            guest.kill()

    def close(self) -> None:
        """Ends every guest and removes what it left; when this returns, nothing is left of those that threads are closing, too."""
        with self._lock:
            guests, self._idle = [*self._idle, *self._busy], []
            self._closed = True
        for guest in guests:
            guest.kill()
        for guest in guests:
            guest.close()

    def _try(self, job: GuestJob, call: Callable[[Guest], Any]) -> tuple[Any, list[GuestDeath]]:
        """The result of `call` with a guest for `job`, and the deaths of the guests with which it failed."""
        deaths: list[GuestDeath] = []
        while len(deaths) < TRIES:
            guest = self._take(job)
            try:
                self._refuse_cancelled(job)
                if guest.facts is None:
                    guest.wait_until_ready()
                    self._facts = guest.facts or self._facts
                answer = call(guest)
            except GuestDied as e:
                deaths.append(GuestDeath(str(e), guest.last_output()))
                self._drop(guest)
                self._refuse_cancelled(job)
            except BaseException:
                self._drop(guest)
                raise
            else:
                self._release(guest)
                return answer, deaths
        raise EngineError(f"engine: two guests in a row died; {deaths[-1]}; see {_log(self._boot, deaths)}")

    def _refuse_cancelled(self, job: GuestJob) -> None:
        """Raises EngineError for a cancelled job. Called after a guest is taken, so that cancelling jobs and then stopping guests misses none."""
        if self._closed or job.is_cancelled():
            raise EngineError(INTERRUPTED)

    def _take(self, job: GuestJob) -> Guest:
        """A waiting guest or a new one, now busy."""
        owner, seed = job.owner, job.content.get("seed") if self._per_guest == 1 else None
        while True:
            with self._lock:
                guest = self._idle.pop() if self._idle else None
                if guest:
                    self._busy[guest] = owner
            if guest is None:
                guest = Guest(self._boot, seed)
                with self._lock:
                    self._busy[guest] = owner
            if guest.is_alive() or guest.facts is None:
                return guest
            self._drop(guest)  # it died while it waited, so no trial was affected

    def _release(self, guest: Guest) -> None:
        """Lets a guest wait again, or ends it where it has served its trials or enough others wait."""
        with self._lock:
            stays = not self._closed and 1 < self._per_guest > guest.served and len(self._idle) < (os.cpu_count() or 1)
            if stays:
                del self._busy[guest]
                self._idle.append(guest)
        if not stays:
            self._drop(guest)

    def _drop(self, guest: Guest) -> None:
        guest.close()
        with self._lock:
            self._busy.pop(guest, None)


def _log(boot: Boot, deaths: list[GuestDeath]) -> Path:
    """Writes the last output of dead guests to a log file; its path."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    name = f"guest-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{threading.get_ident() % 10_000}.log"
    text = "\n\n".join([f"kernel: {boot.linux}", *(f"{death}\n{death.output}" for death in deaths)])
    for directory in (Path(cache) / "tcpscape" / "logs", Path(tempfile.gettempdir())):
        with contextlib.suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text + "\n", "utf-8")
            return directory / name
    return Path(os.devnull)


_pools: dict[object, GuestPool] = {}
_lock = threading.Lock()


def shared_pool(key: object, boot: Callable[[], Boot], per_guest: int) -> GuestPool:
    """The pool of this process for the kernel and guest program that `key` identifies; a new one is made from `boot` and `per_guest`."""
    with _lock:
        if key not in _pools:
            _pools[key] = GuestPool(boot(), per_guest)
        return _pools[key]


@atexit.register
def close_all() -> None:
    """Ends every guest of this process."""
    with _lock:
        pools = list(_pools.values())
        _pools.clear()
    for pool in pools:
        pool.close()


def _abandon_guests() -> None:
    """In a forked child: the guests belong to the parent."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    _pools.clear()
    for guest in Guest.alive:
        guest.abandon()
    Guest.alive.clear()


os.register_at_fork(after_in_child=_abandon_guests)
