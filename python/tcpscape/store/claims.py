"""Claims: which writer of a directory runs which trial, so that several of them share the work.

A writer claims a trial before it runs it: a row of the table `claims` with the trial's address and the writer's name. The name is that of a file
in the directory that the writer keeps locked (:class:`tcpscape.writing.Presence`): the system gives the lock back when the process ends, however
it does, so that the claims of a dead writer are known and taken over. On a network file system that does not lock files between hosts, a claim of
another host looks dead: its trials may run twice, and are still kept once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tcpscape.store.database import Database, batches
from tcpscape.writing import Presence, is_present

NAME = "writer"
"""In the names of the writers' files."""
_CLAIM = "INSERT INTO claims VALUES (?, ?) ON CONFLICT (address) DO NOTHING"
_WHOSE = "SELECT writer FROM claims WHERE address = ?"
_WRITERS = "SELECT DISTINCT writer FROM claims WHERE address IN ({})"
_RELEASE = "DELETE FROM claims WHERE writer = ?"
_PLANS = "SELECT writer, document FROM plans ORDER BY rowid"
_FORGET = "DELETE FROM plans WHERE writer = ? AND document = ?"


class Claims:
    """The claims and plans of one writer, which is there from its first claim on. Threads may share it; a forked process is another writer."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database, self._folder = database, folder
        self._presence: Presence | None = None
        self._pid = os.getpid()

    def take(self, address: str) -> bool:
        """Claims a trial; False where another writer has."""
        writer = self._writer()
        return self._database.write(_CLAIM, [(address, writer)]) > 0 or self._database.rows(_WHOSE, (address,)) == [(writer,)]

    def announce(self, plan: str) -> None:
        """Says what this writer is about to run: a JSON document. An equal one of a dead writer is replaced."""
        writer = self._writer()
        known = [(owner,) for owner, text in self._database.rows(_PLANS) if text == plan and not self.is_there(owner)]
        if known:
            self._database.write(_FORGET, [(owner, plan) for (owner,) in known])
        self._database.write("INSERT INTO plans VALUES (?, ?)", [(writer, plan)])

    def announced(self) -> list[tuple[str, bool]]:
        """What writers have announced, and whether each is still there."""
        if not self._database.rows("SELECT 1 FROM sqlite_master WHERE name = 'plans'"):
            return []  # a file of an earlier version
        return [(str(text), self.is_there(owner)) for owner, text in self._database.rows(_PLANS)]

    def is_there(self, writer: object) -> bool:
        """Whether a writer is still there."""
        return is_present(self._folder / Path(str(writer)).name)

    def release_dead(self, addresses: Iterable[str]) -> None:
        """Releases what dead writers have claimed, where any of these trials is among it."""
        for some in batches(list(addresses)):
            for (writer,) in self._database.rows(_WRITERS.format(", ".join("?" * len(some))), some):
                if not self.is_there(writer):
                    self._database.write(_RELEASE, [(writer,)])

    def release(self) -> None:
        """Releases every claim of this writer: what it has run is kept."""
        if self._presence and self._pid == os.getpid():
            self._database.write(_RELEASE, [(self._presence.file.name,)])

    def end(self, *, interrupted: bool = False) -> None:
        """Releases every claim of this writer, which leaves, and takes its plans away, unless it was interrupted."""
        try:
            self.release()
            if self._presence and self._pid == os.getpid() and not interrupted:
                self._database.write("DELETE FROM plans WHERE writer = ?", [(self._presence.file.name,)])
        finally:
            if self._presence and self._pid == os.getpid():
                presence, self._presence = self._presence, None
                presence.end()

    def _writer(self) -> str:
        with self._database.exclusive():
            if self._pid != os.getpid():
                if self._presence:
                    self._presence.forget()
                self._presence, self._pid = None, os.getpid()
            if self._presence is None:
                self._presence = Presence(self._folder, NAME)
            return self._presence.file.name
