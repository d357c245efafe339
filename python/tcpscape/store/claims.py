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

from pydantic_core import to_json

from tcpscape.store.database import Database
from tcpscape.writing import Presence, is_present

NAME = "writer"
"""In the names of the writers' files."""
_CLAIM = "INSERT INTO claims VALUES (?, ?) ON CONFLICT (address) DO NOTHING"
_WHOSE = "SELECT writer FROM claims WHERE address = ?"
_WRITERS = "SELECT DISTINCT writer FROM claims WHERE address IN (SELECT value FROM json_each(?))"
_RELEASE = "DELETE FROM claims WHERE writer = ?"


class Claims:
    """The claims of one writer, which is there from its first claim on. Threads may share it; a forked process is another writer."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database, self._folder = database, folder
        self._presence: Presence | None = None
        self._pid = os.getpid()

    def take(self, address: str) -> bool:
        """Claims a trial; False where another writer has."""
        writer = self._writer()
        return self._database.write(_CLAIM, [(address, writer)]) > 0 or self._database.rows(_WHOSE, (address,)) == [(writer,)]

    def release_dead(self, addresses: Iterable[str]) -> None:
        """Releases what dead writers have claimed, where any of these trials is among it."""
        for (writer,) in self._database.rows(_WRITERS, (to_json(list(addresses)).decode(),)):
            if not is_present(self._folder / Path(str(writer)).name):
                self._database.write(_RELEASE, [(writer,)])

    def release(self) -> None:
        """Releases every claim of this writer: what it has run is kept."""
        if self._presence and self._pid == os.getpid():
            self._database.write(_RELEASE, [(self._presence.file.name,)])

    def end(self) -> None:
        """Releases every claim of this writer, which leaves."""
        try:
            self.release()
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
