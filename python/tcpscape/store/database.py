"""The database of a store: one SQLite file, opened by each process for itself; what SQLite reports becomes one line for the user.

The file may come from somebody else. A reader opens it read-only (`immutable` where no log says that a writer may be there), and nobody opens it
beside a rollback journal: SQLite would carry that out, and delete the file that it names. The tables must be those that tcpscape makes, word for
word, so that reading them runs no SQL of the file; what a reader may do, how long a value may be and how many steps a query may take are limited.
docs/decisions.md has the alternatives.
"""

from __future__ import annotations

import errno
import gc
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
from tcpscape.reading.files import MIB

FILE = "results.sqlite"
"""Its name in the directory."""
OPTION, READ = "out", "directory"
"""What errors call the directory that is written to, and one that is read."""
FORMAT = 1
"""Version of its layout, kept as SQLite's `user_version`."""
APPLICATION = 0x74637073
"""SQLite's `application_id` of our files: `tcps`."""
WAIT_S = 60
"""How long a writer waits for another one, s."""
TABLES = {
    "trials": "trials (address TEXT NOT NULL UNIQUE, trial TEXT NOT NULL, queues BLOB)",
    "manifests": "manifests (place INTEGER PRIMARY KEY, document TEXT NOT NULL)",
    "claims": "claims (address TEXT PRIMARY KEY, writer TEXT NOT NULL) WITHOUT ROWID",
    "plans": "plans (writer TEXT NOT NULL, document TEXT NOT NULL)",
}
"""Every table of a store, as SQLite keeps it behind `CREATE TABLE`. Files of the first versions have neither `claims` nor `plans`."""
LATER = ("claims", "plans")
HEADER = (f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {FORMAT}")
SQLITE_LIMIT_LENGTH = 0
"""SQLite's number of the limit on a value's length."""
LONGEST = 128 * MIB
"""Bytes of a value: the manifest of a million trials has 40 MB, a trial of 10,000 flows 10 MB. (Python 3.10 cannot tell SQLite; a value is no longer
than the file there.)"""
PARAMETERS = 10_000
"""Of a statement; SQLite takes 32,766."""
STEPS = 10_000
"""Steps of SQLite's machine between two looks at how many a query has taken."""
STEPS_PER_BYTE = 4
"""Steps that a query may take for each byte of the file: a row takes some twenty, and has at least eight bytes."""
LEAST_STEPS = 10_000_000
SIDES = ("-journal", "-wal", "-shm")
"""What SQLite may have beside the file: its rollback journal, its log, the index of the log."""
NAMES_A_FILE = bytes.fromhex("d9d505f920a163d7")
"""The end of a rollback journal that names another file (SQLite's file format, "The Rollback Journal")."""
FOR_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_PRAGMA, sqlite3.SQLITE_RECURSIVE}
"""What a reader may do (SQLite's authorizer)."""

_inherited: list[_Connection | None] = []
"""Connections of the process that this one was forked from: SQLite forbids to use or close them here."""


def batches(values: Sequence[Any], most: int = PARAMETERS) -> Iterator[Sequence[Any]]:
    """Values in parts of so many at most: as many as one statement can have as parameters."""
    return (values[begin : begin + most] for begin in range(0, len(values), most))


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the garbage collector, which would look at all that is read again and again while it becomes much."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Database:
    """`results.sqlite` in a directory. Threads may share it; a forked process opens its own connection."""

    def __init__(self, folder: Path, *, create: bool) -> None:
        """`create`: whether the file is made where there is none. :raises StoreError: one line, where it cannot be opened."""
        self.path = folder / FILE
        self._place = Path(os.path.abspath(self.path))
        self._create = create
        self._option = OPTION if create else READ
        self._connection: _Connection | None = None
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._file: tuple[int, int] | None = None
        self._is_immutable = False
        with self._opened():
            pass

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows that a query answers with."""
        with self._opened() as connection, self._limited(connection):
            return connection.execute(query, parameters).fetchall()

    def each(self, query: str, parameters: Sequence[Any], use: Callable[..., None]) -> None:
        """Calls `use` with the columns of each row: a large answer is never in memory as a whole."""
        with self._opened() as connection, self._limited(connection), closing(connection.execute(query, parameters)) as cursor:
            for row in cursor:
                use(*row)

    def each_part(self, query: str, parameters: Sequence[Any], use: Callable[[list[tuple[Any, ...]]], None]) -> None:
        """Calls `use` with :data:`PARAMETERS` rows at a time, for what goes through many rows at once."""
        with self._opened() as connection, self._limited(connection), closing(connection.execute(query, parameters)) as cursor:
            while rows := cursor.fetchmany(PARAMETERS):
                use(rows)

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
    def transaction(self) -> Iterator[_Connection]:
        """A connection whose statements all count or none does; other writers wait."""
        with self._opened() as connection, self._limited(connection):
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

    @contextmanager
    def _limited(self, connection: _Connection) -> Iterator[None]:
        """Ends a query that takes more steps than an honest file of this size needs: pages may form a circle."""
        _limit(connection, self.path)
        yield

    def _expect_file(self) -> None:
        """Refuses to write into a file that has been removed: SQLite would, and nobody would find it."""
        if _identity(self._place) != self._file:
            raise StoreError(f"out: {self.path} was removed or replaced while results were written to it; run again, or choose another directory")

    @contextmanager
    def _opened(self) -> Iterator[_Connection]:
        """The connection of this process, for this thread alone."""
        if self._pid != os.getpid():
            _inherited.append(self._connection)
            self._connection, self._lock, self._pid = None, threading.RLock(), os.getpid()
        with self._lock:
            try:
                if self._connection is not None and self._is_immutable and _log(self.path).exists():
                    self._connection.close()  # a writer has come
                    self._connection = None
                if self._connection is None:
                    self._is_immutable = not self._create and not _log(self.path).exists()
                    self._connection = _connect(self.path, create=self._create and self._file is None, writing=self._create)
                    self._file = self._file or _identity(self._place)
                yield self._connection
            except sqlite3.Error as e:
                if _is_signal(e, self._connection):
                    raise KeyboardInterrupt from None
                raise refusal(e, self.path, self._option) from None


def _connect(path: Path, *, create: bool, writing: bool) -> _Connection:
    """A connection to a store's file: made where there is none (`create`), and for writing at all (`writing`)."""
    if create and not path.exists() and not _has_locks(path.parent):
        raise refusal(sqlite3.OperationalError(NO_LOCKS), path)  # SQLite itself would wait for another process
    option = OPTION if writing else READ
    _expect_file(path, option)
    _expect_sides(path, option, writing=writing)
    connection = _open(path, "rwc" if create else "rw" if writing else "ro")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0 and create:
            _initialise(connection, path)
        elif version == 0:
            raise StoreError(f"{option}: {path} has no results of tcpscape; name a directory that run, sweep or study wrote with --out")
        elif version < 0 or connection.execute("PRAGMA application_id").fetchone() != (APPLICATION,):
            raise StoreError(f"{option}: {path} is a database of another program; choose another directory")
        elif version > FORMAT:
            raise StoreError(f"{option}: {path} was written by a newer tcpscape; use that one, or choose another directory")
        elif not _tables(connection).items() <= TABLES.items():
            raise StoreError(f"{option}: {path} has other tables than tcpscape makes; move it away and run again, or choose another directory")
        if writing:
            connection.execute("PRAGMA synchronous = NORMAL")
        else:
            connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in FOR_READING else sqlite3.SQLITE_DENY)
        for name in LATER if create else ():
            connection.execute(f"CREATE TABLE IF NOT EXISTS {TABLES[name]}")
    except BaseException:
        connection.close()
        raise
    return connection


def _tables(connection: _Connection) -> dict[str, str | None]:
    """What the file has, by name: of a table, what follows `CREATE TABLE`; None for all else, but for the indexes that SQLite makes itself."""
    content = connection.execute("SELECT type, name, sql FROM sqlite_master LIMIT 20").fetchall()
    own = [(kind, name, sql) for kind, name, sql in content if (kind, sql) != ("index", None)]
    return {str(name): str(sql).removeprefix("CREATE TABLE ") if kind == "table" else None for kind, name, sql in own}


def _expect_file(path: Path, option: str) -> None:
    """Refuses what is there and no regular file, which SQLite might wait for."""
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as e:
        raise StoreError(f"{option}: cannot open {path}: {getattr(e, 'strerror', None) or e}; check the path") from None
    if not is_file:
        raise StoreError(f"{option}: {path} is no regular file; move it away, or choose another directory")


def _expect_sides(path: Path, option: str, *, writing: bool) -> None:
    """Refuses what beside a file would make SQLite wait, or write or delete elsewhere. SQLite looks beside the file, not beside a link to it."""
    for end in SIDES:
        side = Path(f"{os.path.realpath(path)}{end}")
        try:
            status = side.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as e:
            raise StoreError(f"{option}: cannot open {side}: {e.strerror}; check the path") from None
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise StoreError(f"{option}: {side} is no regular file of its own; remove it, or choose another directory")
        if end == "-journal" and status.st_size and not (writing and not _names_a_file(side)):
            what = "a change that was interrupted is beside it"
            raise StoreError(f"{option}: {path} cannot be read as it is: {what}; remove {side.name}, or choose another directory")


def _names_a_file(journal: Path) -> bool:
    """Whether a rollback journal names another file, which SQLite would delete. True where that cannot be read; not where it has gone."""
    try:
        descriptor = os.open(journal, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False  # the process that wrote it has ended its change
    except OSError:
        return True
    try:
        return os.pread(descriptor, len(NAMES_A_FILE), max(0, os.fstat(descriptor).st_size - len(NAMES_A_FILE))) == NAMES_A_FILE
    finally:
        os.close(descriptor)


def _log(path: Path) -> Path:
    """SQLite's log, which is there while a writer is, and after one that was killed."""
    return Path(f"{os.path.realpath(path)}-wal")


class _Connection(sqlite3.Connection):
    """A connection that knows how many looks at its steps are left."""

    left: list[int]


def _limit(connection: _Connection, path: Path) -> None:
    """Ends what takes more steps from here on than a file of this size can need."""
    size = sum(file.stat().st_size for file in (path, _log(path)) if file.exists())
    left = connection.left = [(LEAST_STEPS + STEPS_PER_BYTE * size) // STEPS]

    def look() -> int:
        left[0] -= 1
        return left[0] < 0

    connection.set_progress_handler(look, STEPS)


def _is_signal(error: sqlite3.Error, connection: _Connection | None) -> bool:
    """Whether a signal ended a query: while SQLite works, Python's handlers run where it looks at its steps, and what they raise is dropped."""
    return connection is not None and "interrupted" in str(error) and connection.left[0] >= 0


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one of the same name; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _open(path: Path, mode: str) -> _Connection:
    """A connection that can read. Without a log nobody writes, so that a reader needs neither locks nor permission to make files."""
    if mode == "ro" and not _log(path).exists():
        connection = _opened_as(path, "mode=ro&immutable=1")
        connection.execute(FIRST)
        return connection
    connection = _opened_as(path, f"mode={mode}")
    try:
        connection.execute(FIRST)
    except sqlite3.OperationalError as e:
        connection.close()
        if "locked" in str(e) and _has_locks(path.parent):
            raise
        log = _log(path)
        if mode == "rwc" or not path.is_file() or (log.exists() and log.stat().st_size):
            raise
        return _opened_as(path, "mode=ro&immutable=1")  # in a directory that cannot be written, SQLite must know that nobody else writes
    return connection


FIRST = "SELECT 1 FROM sqlite_master LIMIT 1"
"""SQLite opens a file when it first reads from it."""


def _opened_as(path: Path, option: str) -> _Connection:
    """A connection with the limits of a file that somebody else may have made."""
    address = f"file:{quote(str(path.absolute()))}?{option}"
    connection = sqlite3.connect(address, uri=True, timeout=WAIT_S, isolation_level=None, check_same_thread=False, factory=_Connection)
    if hasattr(connection, "setlimit"):  # from Python 3.11 on
        connection.setlimit(SQLITE_LIMIT_LENGTH, LONGEST)
    if path.exists():
        _limit(connection, path)
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


def _initialise(connection: _Connection, path: Path) -> None:
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
    if not _tables(connection).items() <= TABLES.items():
        raise StoreError(f"out: {path} is a database of another program; choose another directory")
    for statement in (*(f"CREATE TABLE IF NOT EXISTS {table}" for table in TABLES.values()), *HEADER):
        connection.execute(statement)
    connection.execute("COMMIT")


NO_LOCKS = "locking protocol"
"""SQLite's message where locks do not work."""
PROBLEMS: tuple[tuple[str, str, str], ...] = (
    ("full", "cannot write {folder}: the disk is full", "free some space, or choose another directory"),
    ("not a database", "{path} is no database", "move it away and run again, or choose another directory"),
    ("no such", "{path} is damaged: a table or a column is missing", "move it away and run again, or choose another directory"),
    ("decode to UTF-8", "{path} is damaged", "move it away and run again, or choose another directory"),
    ("too big", "{path} is damaged: a value is longer than any of tcpscape", "move it away and run again, or choose another directory"),
    ("interrupted", "{path} is damaged: it has more rows than its size allows", "move it away and run again, or choose another directory"),
    ("malformed", "{path} is damaged", "move it away and run again, or choose another directory"),
    (NO_LOCKS, "the file system of {folder} cannot lock files, which SQLite needs", "choose a directory on a local disk"),
    ("locked", f"another process has kept {{path}} locked for {WAIT_S} s", "try again when it has ended, or choose another directory"),
    ("readonly", "cannot write to {folder}: it is read-only", "choose another directory"),
    ("unable to open", "cannot open {path}", "check its permissions and those of its directory, or choose another directory"),
)
"""A word of SQLite's message, the problem and the fix."""
LOCKS = ("SHM", "LOCK")
"""In the names of SQLite's I/O errors that are about locks between processes."""


def refusal(error: sqlite3.Error, path: Path, option: str = OPTION) -> StoreError:
    """One line for what SQLite reports of a file that `option` names."""
    text, name = str(error), getattr(error, "sqlite_errorname", "")  # the name from Python 3.11 on
    if name.startswith("SQLITE_IOERR") and any(word in name for word in LOCKS):
        text = NO_LOCKS
    if "locked" in text and not _has_locks(path.parent):
        text = NO_LOCKS
    for word, problem, fix in PROBLEMS:
        if word in text:
            return StoreError(f"{option}: {problem.format(path=path, folder=path.parent)}; {fix}")
    return StoreError(f"{option}: cannot use {path}: {text}{f' ({name})' if name else ''}; check the disk, or choose another directory")
