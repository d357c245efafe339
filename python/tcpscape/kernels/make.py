"""Calling the kernel's make: a clean environment, every line into the log, the first error found."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

Hear = Callable[[int, str], None]
"""Hears the number of each line and the line."""

FOREIGN = re.compile(r"(?:KBUILD|KCONFIG|MAKE|GNUMAKE|MFLAGS|LLVM|INSTALL_)\w*|ARCH|SUBARCH|CROSS_COMPILE|[OVWCM]|LOCALVERSION|K[CA]FLAGS")
"""Variables of the user's shell, or of a make that called us, that would change the kernel."""
SAME_EVERYWHERE = {
    "LC_ALL": "C", "LOCALVERSION": "", "KBUILD_BUILD_TIMESTAMP": "1970-01-01", "KBUILD_BUILD_USER": "tcpscape", "KBUILD_BUILD_HOST": "tcpscape",
    "KBUILD_BUILD_VERSION": "1",
}
"""So that the same sources give the same executable, byte for byte."""
ERRORS = (
    re.compile(r": (?:fatal )?error: |undefined reference|multiple definition|No rule to make target|No space left|: not found"),
    re.compile(r"syntax error|:\d+: .*(?:unknown|expected)|\*\*\* .*(?:Stop|not clean)"),
    re.compile(r"\*\*\*|rror"),
)
"""What tells an error, the most telling first."""
PATIENCE_S = 10.0
"""How long an interrupted make may take to clean up, s."""


class MakeFailed(Exception):
    """make failed; the message is the first line that says why."""


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """The environment for make, from the one that is given."""
    return {key: value for key, value in given.items() if not FOREIGN.fullmatch(key)} | SAME_EVERYWHERE


def make(words: tuple[str, ...], where: Path, log: IO[str], hear: Hear = lambda number, line: None) -> int:
    """Runs make in a directory; returns the number of lines it printed, raises MakeFailed. An interrupted make is stopped first."""
    log.write(f"$ make {' '.join(words)}\n")
    found: list[str | None] = [None] * len(ERRORS)
    number = 0
    process = subprocess.Popen(
        ("make", *words), cwd=where, env=environment(os.environ), text=True, errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        for line in process.stdout or ():
            log.write(line)
            number += 1
            hear(number, line.strip())
            found = [before or (line.strip() if sign.search(line) else None) for before, sign in zip(found, ERRORS, strict=True)]
        status = process.wait()
    except BaseException:
        _stop(process)
        raise
    finally:
        log.flush()
    if status:
        raise MakeFailed(next((line for line in found if line), f"make ended with status {status}"))
    return number


def _stop(process: subprocess.Popen[str]) -> None:
    """Lets make remove what is half made, which the next build would take for whole."""
    process.terminate()
    try:
        process.communicate(timeout=PATIENCE_S)
    except (subprocess.TimeoutExpired, ValueError):
        process.kill()
        process.wait()
