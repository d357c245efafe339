"""A case: one command line, and the files that it is to find."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FIFO, DIRECTORY, ENDLESS, LOOP, NOWHERE = "fifo", "directory", "endless", "loop", "nowhere"
"""What a file may be instead: a pipe without a writer, a directory, a link to /dev/zero, to itself, to nothing."""
EMPTY, LARGE = "empty", "large"
"""A file without a byte, and one of a tebibyte, all holes."""
LEADS_TO = {ENDLESS: "/dev/zero", NOWHERE: "no/such/file"}


@dataclass(frozen=True)
class Case:
    """One command line, and the files that it is to find in its working directory."""

    group: str
    """Row of the table: a command, or the format of the mutated file."""
    words: tuple[str, ...]
    """The command line without `tcpscape`."""
    files: Mapping[str, bytes | str] = field(default_factory=dict)
    """Name → content, or one of the constants above."""
    nonsense: bool = False
    """Whether it must be refused."""

    def write(self, directory: Path) -> None:
        for name, content in self.files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            elif content == FIFO:
                os.mkfifo(path)
            elif content == DIRECTORY:
                path.mkdir()
            elif content in (EMPTY, LARGE):
                with path.open("wb") as file:
                    file.truncate(2**40 if content == LARGE else 0)
            else:
                path.symlink_to(LEADS_TO.get(content, path.name))

    def command(self) -> str:
        """The command line as a shell takes it, long words shortened."""
        return shlex.join(["tcpscape", *(word if len(word) <= 300 else f"{word[:60]}…({len(word)} characters)" for word in self.words)])

    def __repr__(self) -> str:
        files = ", ".join(
            f"{name} ({len(content)} bytes: {content[:200]!r})" if isinstance(content, bytes) else f"{name} ({content})"
            for name, content in self.files.items()
        )
        return f"Case({self.group}: {self.command()}; {files[:2000]})"
