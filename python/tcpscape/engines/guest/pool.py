"""The guests of a process, one pool for each kernel.

Where a guest serves one trial, it is started with the trial's seed and the trial can be repeated bit for bit. Where it serves several, a
trial takes a waiting guest or starts one; those that wait stay until the process ends. There are as many guests as trials at a time.
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

from tcpscape.engines.guest.console import Died, Patience
from tcpscape.engines.guest.process import BOOT, Answer, Boot, Guest
from tcpscape.errors import EngineError

TRIES = 2
TELLING = re.compile(r"Kernel panic|BUG:|Oops|[Oo]ut of memory|[Ss]egfault|[Ff]ailed")
"""Marks the line of a kernel's last ones that says most."""


@dataclass(frozen=True, slots=True)
class Request:
    """A job, how long to wait for it, where its packets go, on whose behalf, and whether it is still wanted."""

    job: Mapping[str, Any]
    patience: Patience
    pcap: Path | None = None
    owner: object = None
    cancelled: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class Death:
    """How a guest died: why, and what it left on its console and in its log."""

    why: str
    left: str = field(repr=False)

    def __str__(self) -> str:
        """In one line."""
        lines = [line.strip() for line in self.left.splitlines() if line.strip()]
        telling = [line for line in lines if TELLING.search(line)] or lines
        return f"{self.why}; its last word: {telling[-1][:200]}" if telling else self.why


class Pool:
    """Guests of one kernel. Any thread."""

    def __init__(self, boot: Boot, recycle: int = 1) -> None:
        """`recycle`: trials after which a guest is replaced. With 1, each trial has a guest of its own that is started with its seed."""
        self._boot = boot
        self._recycle = recycle
        self._lock = threading.Lock()
        self._idle: list[Guest] = []
        self._busy: dict[Guest, object] = {}
        self._closed = False
        self._facts: dict[str, Any] | None = None

    def facts(self) -> dict[str, Any]:
        """What a guest says about its kernel: `release`, `cca`."""
        if self._facts is None:
            self._try(Request({}, BOOT), lambda guest: None)
        return self._facts or {}

    def run(self, request: Request) -> tuple[Answer, list[Death]]:
        """The answer to a job and the guests that died over it. EngineError where two did."""
        return self._try(request, lambda guest: guest.do(request.job, request.patience, request.pcap))

    def stop(self, owner: object) -> None:
        """Ends the guests that are busy for `owner`, whose requests are cancelled already."""
        with self._lock:
            mine = [guest for guest, whose in self._busy.items() if whose is owner]
        for guest in mine:
            guest.kill()

    def close(self) -> None:
        """Ends every guest."""
        with self._lock:
            idle, self._idle, busy = self._idle, [], list(self._busy)
            self._closed = True
        for guest in (*idle, *busy):
            guest.kill()
        for guest in idle:
            guest.close()

    def _try(self, request: Request, what: Callable[[Guest], Any]) -> tuple[Any, list[Death]]:
        deaths: list[Death] = []
        while len(deaths) < TRIES:
            guest = self._take(request)
            try:
                self._still_wanted(request)
                if not guest.facts:
                    guest.ready()
                    self._facts = guest.facts or self._facts
                answer = what(guest)
            except Died as e:
                deaths.append(Death(str(e), guest.testament()))
                self._drop(guest)
                self._still_wanted(request)
            except BaseException:
                self._drop(guest)
                raise
            else:
                self._give(guest)
                return answer, deaths
        raise EngineError(f"engine: two guests in a row died; {deaths[-1]}; see {_log(self._boot, deaths)}")

    def _still_wanted(self, request: Request) -> None:
        """Looks after a guest is taken, so that whoever cancels a request and then stops its guests misses none."""
        if self._closed or request.cancelled():
            raise EngineError("engine: the trial was interrupted; run it again")

    def _take(self, request: Request) -> Guest:
        owner, seed = request.owner, request.job.get("seed") if self._recycle == 1 else None
        while True:
            with self._lock:
                guest = self._idle.pop() if self._idle else None
                if guest:
                    self._busy[guest] = owner
            if guest is None:
                guest = Guest(self._boot, seed)
                with self._lock:
                    self._busy[guest] = owner
            if guest.idle() or not guest.facts:
                return guest
            self._drop(guest)  # it died while it waited: no trial is the worse for it

    def _give(self, guest: Guest) -> None:
        """A guest waits again, or ends where it has served enough or enough others wait."""
        with self._lock:
            del self._busy[guest]
            stays = not self._closed and 1 < self._recycle > guest.served and len(self._idle) < (os.cpu_count() or 1)
            if stays:
                self._idle.append(guest)
        if not stays:
            guest.close()

    def _drop(self, guest: Guest) -> None:
        guest.close()
        with self._lock:
            self._busy.pop(guest, None)


def _log(boot: Boot, deaths: list[Death]) -> Path:
    """Writes what dead guests left to a file that stays, and names it."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    name = f"guest-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{threading.get_ident() % 10_000}.log"
    text = "\n\n".join([f"kernel: {boot.linux}", *(f"{death}\n{death.left}" for death in deaths)])
    for directory in (Path(cache) / "tcpscape" / "logs", Path(tempfile.gettempdir())):
        with contextlib.suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text + "\n")
            return directory / name
    return Path(os.devnull)


_pools: dict[object, Pool] = {}
_lock = threading.Lock()


def pool_of(key: object, boot: Callable[[], Boot], recycle: int) -> Pool:
    """The process's pool for a kernel and guest program, named by `key`; `boot` and `recycle` say what it is when it is new."""
    with _lock:
        if key not in _pools:
            _pools[key] = Pool(boot(), recycle)
        return _pools[key]


@atexit.register
def close_all() -> None:
    """Ends every guest of this process."""
    with _lock:
        pools = list(_pools.values())
        _pools.clear()
    for pool in pools:
        pool.close()


def _forget() -> None:
    """In a forked child: the guests are the parent's."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    _pools.clear()
    for guest in Guest.alive:
        guest.forget()
    Guest.alive.clear()


os.register_at_fork(after_in_child=_forget)
