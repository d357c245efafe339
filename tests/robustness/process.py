"""Runs a case in a process of its own and measures it: status, output, time, memory, what it left behind.

The process is forked from one that has imported tcpscape, in 10 ms instead of 1 s; :func:`exact` starts a new interpreter instead, to confirm.
"""

import contextlib
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from robustness.case import Case

LIMIT_S = 10.0
"""A case that takes longer is stopped. What does not get the processor is waited for longer, up to this:"""
STALLED_S = 20.0
GRACE_S = 3.0
"""Time to end after SIGINT."""
ADDRESS_SPACE = 6 << 30
"""Bytes of address space, so that a finding does not take the machine with it."""
DEVICES = ("/dev/full", "/dev/null", "/dev/tty", "/dev/zero")
"""What a command that runs as root could replace by a file of that name."""
DEPTH = "a/b/work"
"""The working directory inside the scratch directory: `../../x` is inside it too, and is found."""


@dataclass(frozen=True)
class Ended:
    status: int
    """Exit status; minus the signal's number where a signal ended it."""
    out: str
    err: str
    seconds: float
    cpu_s: float
    """Processor time, s."""
    peak_mb: float
    """Largest resident memory of its process, MB."""
    timed_out: bool
    strays: tuple[str, ...]
    """Files that appeared or changed where the command was not told to write."""
    orphans: bool
    """Whether processes of its group were left."""
    pages: Mapping[str, str]
    """HTML and SVG that it wrote, by name."""


def preload() -> None:
    """Imports what commands import, before the first fork."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot
    import polars
    import yaml

    import tcpscape.api.questions
    import tcpscape.api.trials
    import tcpscape.cli.main
    from tcpscape import interchange, plots, report, studies, validate

    _ = (matplotlib.pyplot, polars, yaml, tcpscape.api.questions, tcpscape.api.trials, interchange, plots, report, studies, validate)


def forked(words: tuple[str, ...]) -> NoReturn:
    """What the child does: the command line, as the installed program runs it."""
    from tcpscape.cli.main import main

    sys.argv = ["tcpscape", *words]
    status: object = 1
    try:
        main()
        status = 0
    except SystemExit as e:
        status = e.code
    except BaseException:
        import traceback

        traceback.print_exc()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status if isinstance(status, int) else 0 if status is None else 1)


def exact(words: tuple[str, ...]) -> NoReturn:
    """The same in a new interpreter."""
    os.execv(sys.executable, [sys.executable, "-m", "tcpscape", *words])


def run(case: Case, scratch: Path, start: Callable[[tuple[str, ...]], NoReturn] = forked) -> Ended:
    """Runs a case in a new scratch directory, which is removed afterwards."""
    work = scratch / DEPTH
    for directory in (work, scratch / "home", scratch / "tmp"):
        directory.mkdir(parents=True)
    case.write(work)
    before = _tree(scratch)
    out, err = scratch.with_suffix(".out"), scratch.with_suffix(".err")
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            _prepare(scratch, work, out, err)
            start(case.words)
        finally:
            os._exit(99)
    status, usage, timed_out = _wait(child, began)
    seconds = time.monotonic() - began
    orphans = _end_group(child)
    after = _tree(scratch)
    allowed = _allowed(case, work)
    strays = tuple(
        sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name) and not _inside(scratch / name, allowed))
    )
    texts = {p: p.read_bytes().decode("utf-8", "replace") for p in scratch.rglob("*") if p.suffix in (".html", ".svg") and p.is_file()}
    said = [path.read_bytes()[:2_000_000].decode("utf-8", "surrogateescape") for path in (out, err)]
    for path in (out, err):
        path.unlink()
    shutil.rmtree(scratch, ignore_errors=True)
    pages = {str(p.relative_to(scratch)): text for p, text in texts.items()}
    return Ended(status, said[0], said[1], seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, timed_out, strays, orphans, pages)


def _prepare(scratch: Path, work: Path, out: Path, err: Path) -> None:
    os.setsid()
    os.chdir(work)
    os.environ.update(HOME=str(scratch / "home"), XDG_CACHE_HOME=str(scratch / "home" / ".cache"), TMPDIR=str(scratch / "tmp"), MPLBACKEND="Agg")
    os.environ.pop("COLUMNS", None)
    import tempfile

    tempfile.tempdir = None
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    for path, number in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), number)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def _wait(child: int, began: float) -> tuple[int, resource.struct_rusage, bool]:
    """Waits for the child, and ends it where it takes too long."""
    pause, stopped_at = 0.002, 0.0
    while True:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status), usage, stopped_at > 0
        now = time.monotonic() - began
        if not stopped_at and (now > STALLED_S or (now > LIMIT_S and _cpu(child) > 0.8 * LIMIT_S)):
            os.kill(child, signal.SIGINT)
            stopped_at = now
        elif stopped_at and now > stopped_at + GRACE_S:
            os.killpg(child, signal.SIGKILL)
        time.sleep(pause)
        pause = min(0.05, pause * 1.5)


def _cpu(pid: int) -> float:
    """Processor time of a process and its ended children, s."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _end_group(child: int) -> bool:
    """Ends what is left of the child's group of processes; whether there was something."""
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _tree(scratch: Path) -> dict[str, tuple[int, int]]:
    """Every file below, with size and time of change, and every device with its kind and number."""
    found = {device: (status.st_mode, status.st_rdev) for device in DEVICES for status in (os.lstat(device),)}
    for folder, _, names in os.walk(scratch):
        for name in names:
            path = Path(folder, name)
            with contextlib.suppress(OSError):
                status = path.lstat()
                found[str(path.relative_to(scratch))] = (status.st_size, status.st_mtime_ns)
    return found


WRITES = ("--out", "--pcap", "--report", "--annotate", "--xplot")
"""Options that say where a command may write."""
SUFFIXED = ("results.sqlite-wal", "results.sqlite-shm")
"""Files that SQLite keeps beside a database that it reads."""


def _allowed(case: Case, work: Path) -> list[Path]:
    """Where the command may write: what it was told, `out`, its caches; `report` and `plot` the directory that they read."""
    words = case.words
    told = [words[i + 1] for i, word in enumerate(words[:-1]) if word in WRITES]
    told += [word.partition("=")[2] for word in words if word.partition("=")[0] in WRITES]
    if words[:1] in (("report",), ("plot",)):
        told += [word for word in words[1:] if not word.startswith("-") and os.path.isdir(work / word)]
    return [Path(os.path.normpath(work / name)) for name in (*told, "out")] + [work.parent.parent.parent / "home" / ".cache"]


def _inside(path: Path, allowed: list[Path]) -> bool:
    path = Path(os.path.normpath(path))
    if str(path) in DEVICES:
        return False
    known = path.name in SUFFIXED or "__pycache__" in path.parts
    return known or any(one in (path, *path.parents) or (path.parent == one.parent and path.name.startswith(one.name)) for one in allowed)
