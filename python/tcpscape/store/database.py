"""The database of a store: one SQLite file, opened by each process for itself; what SQLite reports becomes one line for the user."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tcpscape.errors import StoreError

FILE = "results.sqlite"
"""Its name in the directory."""
FORMAT = 1
"""Version of its layout, kept as SQLite's `user_version`."""
APPLICATION = 0x74637073
"""SQLite's `application_id` of our files: `tcps`."""
WAIT_S = 60
"""How long a writer waits for another one, s."""
CLAIMS = "CREATE TABLE IF NOT EXISTS claims (address TEXT PRIMARY KEY, writer TEXT NOT NULL) WITHOUT ROWID"
PLANS = "CREATE TABLE IF NOT EXISTS plans (writer TEXT NOT NULL, document TEXT NOT NULL)"
TABLES = {"trials", "manifests", "claims", "plans"}
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS trials (address TEXT NOT NULL UNIQUE, trial TEXT NOT NULL, queues BLOB)",
    "CREATE TABLE IF NOT EXISTS manifests (place INTEGER PRIMARY KEY, document TEXT NOT NULL)",
    CLAIMS,
    PLANS,
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
)

FOREIGN = "SELECT 1 FROM sqlite_master WHERE type IN ('view', 'trigger') OR sql LIKE 'CREATE VIRTUAL%' LIMIT 1"
"""What no store has: SQL that would run when a table is read. A file from somebody else may have it."""

_inherited: list[sqlite3.Connection | None] = []
"""Connections of the process that this one was forked from: SQLite forbids to use or close them here."""


class Database:
    """`results.sqlite` in a directory. Threads may share it; a forked process opens its own connection."""

    def __init__(self, folder: Path, *, create: bool) -> None:
        """`create`: whether the file is made where there is none. :raises StoreError: one line, where it cannot be opened."""
        self.path = folder / FILE
        self._place = Path(os.path.abspath(self.path))
        self._create = create
        self._connection: sqlite3.Connection | None = None
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._file: tuple[int, int] | None = None
        with self._opened():
            pass

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows that a query answers with."""
        with self._opened() as connection:
            return connection.execute(query, parameters).fetchall()

    def each(self, query: str, parameters: Sequence[Any], use: Callable[..., None]) -> None:
        """Calls `use` with the columns of each row: a large answer is never in memory as a whole."""
        with self._opened() as connection, closing(connection.execute(query, parameters)) as cursor:
            for row in cursor:
                use(*row)

    def write(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        """Executes a statement for each of `rows`: for all of them or for none. Returns how many rows of the table it changed."""
        if len(rows) == 1:  # SQLite's own transaction is cheaper than one that is begun and committed
            with self._opened() as connection:
                self._expect_file()
                return connection.execute(statement, rows[0]).rowcount
        with self.transaction() as connection:
            return connection.executemany(statement, rows).rowcount

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """No other thread uses this object meanwhile."""
        with self._opened():
            yield

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection whose statements all count or none does; other writers wait."""
        with self._opened() as connection:
            self._expect_file()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Closes the connection; the last process to do so merges SQLite's log into the file. The next use opens it again."""
        if self._pid != os.getpid():
            return
        with self._lock:
            connection, self._connection = self._connection, None
            if connection:
                connection.close()

    def _expect_file(self) -> None:
        """Refuses to write into a file that has been removed: SQLite would, and nobody would find it."""
        if _identity(self._place) != self._file:
            raise StoreError(f"out: {self.path} was removed or replaced while results were written to it; run again, or choose another directory")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """The connection of this process, for this thread alone."""
        if self._pid != os.getpid():
            _inherited.append(self._connection)
            self._connection, self._lock, self._pid = None, threading.RLock(), os.getpid()
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = _connect(self.path, create=self._create and self._file is None)
                    self._file = self._file or _identity(self._place)
                yield self._connection
            except sqlite3.Error as e:
                raise refusal(e, self.path) from None


def _connect(path: Path, *, create: bool) -> sqlite3.Connection:
    if create and not path.exists() and not _has_locks(path.parent):
        raise refusal(sqlite3.OperationalError(NO_LOCKS), path)  # SQLite itself would wait for another process
    _expect_file(path)
    connection = _open(path, "rwc" if create else "rw")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0 and create:
            _initialise(connection, path)
        elif version == 0:
            raise StoreError(f"out: {path} has no results of tcpscape; name a directory that run, sweep or study wrote with --out")
        elif version < 0 or connection.execute("PRAGMA application_id").fetchone() != (APPLICATION,):
            raise StoreError(f"out: {path} is a database of another program; choose another directory")
        elif connection.execute(FOREIGN).fetchone():
            raise StoreError(f"out: {path} is damaged: it has views or triggers; move it away and run again, or choose another directory")
        elif version > FORMAT:
            raise StoreError(f"out: {path} was written by a newer tcpscape; use that one, or choose another directory")
        connection.execute("PRAGMA synchronous = NORMAL")
        if create:
            connection.execute(CLAIMS)  # files of earlier versions have none
            connection.execute(PLANS)
    except BaseException:
        connection.close()
        raise
    return connection


def _expect_file(path: Path) -> None:
    """Refuses what is there and no regular file, which SQLite might wait for."""
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as e:
        raise StoreError(f"out: cannot open {path}: {getattr(e, 'strerror', None) or e}; check the path") from None
    if not is_file:
        raise StoreError(f"out: {path} is no regular file; move it away, or choose another directory")


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one of the same name; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _open(path: Path, mode: str) -> sqlite3.Connection:
    """A connection that can read; in a directory that cannot be written SQLite must know that nobody else writes."""
    connection = sqlite3.connect(_address(path, f"mode={mode}"), uri=True, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError as e:
        connection.close()
        if "locked" in str(e) and _has_locks(path.parent):
            raise
        log = path.with_name(f"{path.name}-wal")
        if mode == "rwc" or not path.is_file() or (log.exists() and log.stat().st_size):
            raise
        return sqlite3.connect(_address(path, "immutable=1"), uri=True, isolation_level=None, check_same_thread=False)
    return connection


def _has_locks(folder: Path) -> bool:
    """Whether files in a directory can be locked: some network file systems cannot. True where that is not known."""
    try:
        import fcntl

        with tempfile.TemporaryFile(dir=folder) as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return True
    except OSError as e:
        return e.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)
    return True


def _address(path: Path, option: str) -> str:
    return f"file:{quote(str(path.absolute()))}?{option}"


def _initialise(connection: sqlite3.Connection, path: Path) -> None:
    """Makes the tables, unless another process does so at the same time."""
    end = time.monotonic() + WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as e:  # SQLite does not wait where two processes change the mode
            if "locked" not in str(e) or time.monotonic() > end:
                raise
            time.sleep(0.01)
    connection.execute("BEGIN IMMEDIATE")
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables <= TABLES:
        raise StoreError(f"out: {path} is a database of another program; choose another directory")
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute("COMMIT")


NO_LOCKS = "locking protocol"
"""SQLite's message where locks do not work."""
PROBLEMS: tuple[tuple[str, str, str], ...] = (
    ("full", "cannot write {folder}: the disk is full", "free some space, or choose another directory"),
    ("not a database", "{path} is no database", "move it away and run again, or choose another directory"),
    ("no such", "{path} is damaged: a table or a column is missing", "move it away and run again, or choose another directory"),
    ("decode to UTF-8", "{path} is damaged", "move it away and run again, or choose another directory"),
    ("malformed", "{path} is damaged", "move it away and run again, or choose another directory"),
    (NO_LOCKS, "the file system of {folder} cannot lock files, which SQLite needs", "choose a directory on a local disk"),
    ("locked", f"another process has kept {{path}} locked for {WAIT_S} s", "try again when it has ended, or choose another directory"),
    ("readonly", "cannot write to {folder}: it is read-only", "choose another directory"),
    ("unable to open", "cannot open {path}", "check its permissions and those of its directory, or choose another directory"),
)
"""A word of SQLite's message, the problem and the fix."""
LOCKS = ("SHM", "LOCK")
"""In the names of SQLite's I/O errors that are about locks between processes."""


def refusal(error: sqlite3.Error, path: Path) -> StoreError:
    """One line for what SQLite reports."""
    text, name = str(error), getattr(error, "sqlite_errorname", "")  # the name from Python 3.11 on
    if name.startswith("SQLITE_IOERR") and any(word in name for word in LOCKS):
        text = NO_LOCKS
    if "locked" in text and not _has_locks(path.parent):
        text = NO_LOCKS
    for word, problem, fix in PROBLEMS:
        if word in text:
            return StoreError(f"out: {problem.format(path=path, folder=path.parent)}; {fix}")
    return StoreError(f"out: cannot use {path}: {text}{f' ({name})' if name else ''}; check the disk, or choose another directory")
