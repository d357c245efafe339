"""Hostile result directories: what somebody else may send. SQLite's files are written by hand where SQLite would not write them so.

The format is that of https://www.sqlite.org/fileformat2.html. :data:`HOSTILE` makes each kind from a good directory; a case also has the file
:data:`WITNESS` beside the directory, which no command may change.
"""

import itertools
import sqlite3
import struct
import tempfile
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from robustness.case import DIRECTORY, ENDLESS, FIFO, LOOP, Case
from robustness.documents import RESULTS, made

DATABASE = f"{RESULTS}/results.sqlite"
WITNESS = "witness.txt"
"""A file beside the result directory, in the directory in which the command runs."""
CONTENT = b"this file is not part of the results\n"
COMMANDS = (
    f"report {RESULTS}",
    f"compare {RESULTS} {RESULTS}",
    f"export {RESULTS} --to csv --out rows.csv",
    f"plot {RESULTS}",
    f"advise --from {RESULTS}",
    f"diagnose {RESULTS}",
)
PAGE, MAGIC = 4096, bytes.fromhex("d9d505f920a163d7")
Files = dict[str, bytes | str]


def journal(name: str) -> bytes:
    """A rollback journal without pages that belongs to a transaction over several files, whose super-journal is the file `name`."""
    text = name.encode()
    header = MAGIC + struct.pack(">IIIII", 0, 1, 1, 512, PAGE)
    return header.ljust(512, b"\0") + struct.pack(">I", 0x40000000 // PAGE + 1) + text + struct.pack(">II", len(text), sum(text)) + MAGIC


def changed(*statements: str, parameters: tuple[object, ...] = ()) -> bytes:
    """The good database after these statements; the last one gets the parameters."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "x.sqlite")
        file.write_bytes(good()[DATABASE])
        base = sqlite3.connect(file, isolation_level=None)
        for k, statement in enumerate(statements):
            base.execute(statement, parameters if k == len(statements) - 1 else ())
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        base.close()
        return file.read_bytes()


@cache
def good() -> Mapping[str, bytes]:
    """A result directory of tcpscape."""
    return made()[RESULTS]


def with_rows_without_end(depth: int) -> bytes:
    """The database with a tree of `depth` further levels over the trials, whose pages all name one child 500 times: 500^depth times the rows."""
    data = bytearray(good()[DATABASE])
    (root,) = _one("SELECT rootpage FROM sqlite_master WHERE name = 'trials'")
    pages = len(data) // PAGE
    levels = [root, *range(pages + 1, pages + depth + 1)]
    data += bytes(PAGE * depth)
    data[(levels[-1] - 1) * PAGE : levels[-1] * PAGE] = data[(root - 1) * PAGE : root * PAGE]
    for page, child in itertools.pairwise(levels):
        data[(page - 1) * PAGE : page * PAGE] = _interior(child)
    data[28:32] = struct.pack(">I", pages + depth)
    return bytes(data)


def _interior(child: int) -> bytes:
    """A page inside a table's tree with 500 times the same child."""
    cells = 500
    begins = [PAGE - 5 * (k + 1) for k in range(cells)]
    page = bytearray(struct.pack(">BHHHBI", 5, 0, cells, begins[-1], 0, child) + b"".join(struct.pack(">H", b) for b in begins)).ljust(PAGE, b"\0")
    for begin in begins:
        page[begin : begin + 5] = struct.pack(">IB", child, 1)
    return bytes(page)


def _one(query: str) -> tuple[int]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "x.sqlite")
        file.write_bytes(good()[DATABASE])
        base = sqlite3.connect(file)
        row: tuple[int] = base.execute(query).fetchone()
        base.close()
        return row


def _generated(expression: str) -> bytes:
    return changed(
        "DROP TABLE manifests",
        f"CREATE TABLE manifests (place INTEGER PRIMARY KEY, document TEXT AS ({expression}))",
        "INSERT INTO manifests (place) VALUES (1)",
    )


def _beside(end: str, content: bytes | str) -> Callable[[], Files]:
    return lambda: {f"{DATABASE}{end}": content}


HOSTILE: Mapping[str, Callable[[], Files]] = {
    **{f"a journal that names {name}": _beside("-journal", journal(name)) for name in (WITNESS, f"{RESULTS}/../{WITNESS}")},
    "a journal without pages": _beside("-journal", journal(WITNESS)[:512]),
    "a journal of noise": _beside("-journal", MAGIC * 300),
    **{f"{end} is a {kind}": _beside(end, kind) for end in ("-journal", "-wal", "-shm") for kind in (FIFO, DIRECTORY, ENDLESS, LOOP)},
    "a log of noise": _beside("-wal", bytes.fromhex("377f0682") * 3000),
    "an index of noise": lambda: {f"{DATABASE}-wal": b"", f"{DATABASE}-shm": MAGIC * 4096},
    "generated columns": lambda: {DATABASE: _generated("hex(zeroblob(450000000))")},
    "a generated column that is short": lambda: {DATABASE: _generated("'{}'")},
    "a view instead of a table": lambda: {DATABASE: changed("ALTER TABLE trials RENAME TO t", "CREATE VIEW trials AS SELECT * FROM t")},
    "a trigger": lambda: {DATABASE: changed("CREATE TRIGGER x AFTER INSERT ON claims BEGIN DELETE FROM trials; END")},
    "an index of an expression": lambda: {DATABASE: changed("CREATE INDEX x ON trials (hex(trial))")},
    "a further table": lambda: {DATABASE: changed("CREATE TABLE further (x)")},
    "a column more": lambda: {DATABASE: changed("ALTER TABLE trials ADD COLUMN x TEXT DEFAULT (1)")},
    "a control's name of 5,000 characters": lambda: {
        DATABASE: changed("UPDATE manifests SET document = json_set(document, '$.cells[0].cca', ?)", parameters=("x" * 5000,))
    },
    "a trial of 200 MB": lambda: {DATABASE: changed("UPDATE trials SET trial = ?", parameters=("x" * 100_000_000,))},
    "a manifest of 100 MB": lambda: {DATABASE: changed("UPDATE manifests SET document = ?", parameters=("[" + "[]," * 33_000_000 + "0]",))},
    "queues of 1 GB": lambda: {
        DATABASE: changed("UPDATE trials SET queues = ?", parameters=(zlib.compress(b"[" + b"[]," * 300_000_000 + b"0]", 1),))
    },
    "queues of 50 MB": lambda: {
        DATABASE: changed("UPDATE trials SET queues = ?", parameters=(zlib.compress(b"[" + b"[]," * 17_000_000 + b"0]", 1),))
    },
    **{f"{depth} levels of one page": lambda depth=depth: {DATABASE: with_rows_without_end(depth)} for depth in (1, 2, 5)},
    "pages of 0 bytes": lambda: {DATABASE: b"SQLite format 3\0" + bytes(4080)},
    "plots is a link": lambda: {f"{RESULTS}/plots": LOOP},
}
"""What is wrong → the files that a good directory gets for it."""
LARGE = {"a trial of 200 MB", "a manifest of 100 MB", "queues of 1 GB"}
"""Kinds that take a while to make: the long form alone has them."""


def kinds(*, large: bool) -> list[str]:
    return [name for name in HOSTILE if large or name not in LARGE]


def case(kind: str, words: str) -> Case:
    """A hostile directory with a command that reads it."""
    return Case(f"{kind}/", tuple(words.split()), {**good(), WITNESS: CONTENT, **_files(kind)})


@cache
def _files(kind: str) -> Files:
    return HOSTILE[kind]()
