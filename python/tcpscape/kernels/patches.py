"""What differs between two source trees, cut into hunks, and a file of the first tree with some of them applied.

The programs diff(1) and patch(1) do both. A file that only one tree has is one hunk, as is one that diff cannot compare line by line. Only files
that a build of User-Mode Linux can need are compared (:func:`~tcpscape.kernels.source.is_needed`).
"""

from __future__ import annotations

import filecmp
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tcpscape.errors import EngineError, refuse
from tcpscape.kernels import source

HEADER = re.compile(r"^@@ -(\d+)", re.M)
"""The beginning of a hunk in a unified diff; its group is the line in the first file."""
WHOLE_FILE = 0
"""The line of a hunk that is a whole file."""


@dataclass(frozen=True, order=True)
class Hunk:
    """A place where two trees differ."""

    file: str
    """Path below the top of the tree, with slashes."""
    line: int
    """Its first line in the first tree's file, with the lines around it; :data:`WHOLE_FILE` for a file that is added, removed or binary."""
    number: int = 1
    """Of the file's hunks, from 1."""
    text: str = ""
    """The hunk of the unified diff; for a whole file a digest of the second tree's."""

    @property
    def place(self) -> str:
        """`net/ipv4/tcp_output.c:210`; the file alone where it is a whole one."""
        return self.file if self.line == WHOLE_FILE else f"{self.file}:{self.line}"


class HunkRefused(Exception):
    """patch(1) does not apply a hunk; the message names file and line."""


def check_programs() -> None:
    """:raises EngineError: where diff or patch is missing, with the command that installs it."""
    packages = {"diff": "diffutils", "patch": "patch"}
    missing = [program for program in packages if shutil.which(program) is None]
    if missing:
        fix = f"run `apt-get install {' '.join(packages[program] for program in missing)}`"
        refuse("hunks", f"missing: {', '.join(missing)}", fix, EngineError)


def differing_files(first: Path, second: Path) -> list[str]:
    """The files that the trees do not have alike, sorted."""
    names = {name for tree in (first, second) for name in source.source_files(tree) if source.is_needed(name)}
    return sorted(name for name in names if not _same(first / name, second / name))


def hunks_of(first: Path, second: Path, file: str) -> list[Hunk]:
    """The hunks of one file, in its order."""
    whole = [Hunk(file, WHOLE_FILE, text=source.sha256(second / file) if (second / file).is_file() else "")]
    if not ((first / file).is_file() and (second / file).is_file()):
        return whole
    run = subprocess.run(("diff", "-u", str(first / file), str(second / file)), capture_output=True, check=False)
    text = run.stdout.decode("utf-8", "surrogateescape")
    starts = [match.start() for match in HEADER.finditer(text)]
    if not starts:
        return whole
    parts = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    return [Hunk(file, int(HEADER.findall(part)[0]), number, part) for number, part in enumerate(parts, 1)]


def patched(first: Path, second: Path, file: str, hunks: Sequence[Hunk], total: int) -> bytes | None:
    """The content of a file with some of its `total` hunks; None where there is no such file then.

    :raises HunkRefused: where one does not apply without the others.
    """
    if len(hunks) == total:
        return _content(second / file)
    if not hunks:
        return _content(first / file)
    with tempfile.TemporaryDirectory(prefix="tcpscape-hunks-") as folder:
        target, rejects = Path(folder) / "file", Path(folder) / "rejects"
        command = ("patch", "--silent", "--force", "--fuzz=0", f"--output={target}", f"--reject-file={rejects}", str((first / file).resolve()))
        text = f"--- a/{file}\n+++ b/{file}\n" + "".join(hunk.text for hunk in sorted(hunks))
        run = subprocess.run(command, input=text.encode("utf-8", "surrogateescape"), capture_output=True, cwd=folder, check=False)
        if run.returncode:
            line = HEADER.findall(rejects.read_text("utf-8", "replace")) if rejects.is_file() else []
            raise HunkRefused(f"{file}:{line[0] if line else hunks[0].line}: the hunk does not apply without the others of the file")
        return target.read_bytes()


def _content(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


def _same(one: Path, other: Path) -> bool:
    """Whether two files have the same content; missing ones are alike, and what is a directory in the first tree is no file of it."""
    if one.is_file() and other.is_file():
        return filecmp.cmp(one, other, shallow=False)
    return (one.is_dir() and other.exists()) or not (one.exists() or other.exists())
