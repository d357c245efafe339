"""What a build needs of the machine (architecture, tools, free disk), and how it calls the kernel's make."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from tcpscape.errors import EngineError, refuse

LineHandler = Callable[[int, str], None]
"""Called for each line that make prints, with its number and its text."""

PACKAGES = {
    "make": "make",
    "gcc": "gcc",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "xz": "xz-utils",
    "awk": "mawk",
}
"""Tools that the kernel's make calls, and the Debian package of each."""
C_LIBRARY = "libc6-dev"
"""Debian's package with the headers of the C library."""
GIB = 2**30
FOREIGN = re.compile(r"(?:KBUILD|KCONFIG|MAKE|GNUMAKE|MFLAGS|LLVM|INSTALL_)\w*|ARCH|SUBARCH|CROSS_COMPILE|[OVWCM]|LOCALVERSION|K[CA]FLAGS")
"""Variables of the user's shell, or of a calling make, that would change the kernel."""
REPRODUCIBLE = {
    "LC_ALL": "C",
    "LOCALVERSION": "",
    "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
    "KBUILD_BUILD_USER": "tcpscape",
    "KBUILD_BUILD_HOST": "tcpscape",
    "KBUILD_BUILD_VERSION": "1",
}
"""Variables that make the same sources give the same executable, byte for byte."""
ERROR_PATTERNS = (
    re.compile(r": (?:fatal )?error: |undefined reference|multiple definition|No rule to make target|No space left|: not found"),
    re.compile(r"syntax error|:\d+: .*(?:unknown|expected)|\*\*\* .*(?:Stop|not clean)"),
    re.compile(r"\*\*\*|rror"),
)
"""What marks a line that reports an error, the most specific pattern first."""
CLEANUP_S = 10.0
"""How long an interrupted make may take to clean up, s."""


class BuildProgress:
    """Receives the stages of a build and their progress. This base class ignores them; the command line's shows a bar."""

    def stage(self, name: str, total: int | None = None) -> None:
        """A stage begins; `total` is its length in units of its own, None where it is not known."""

    def done(self, amount: int) -> None:
        """`amount` of the stage's `total` is done."""

    def say(self, line: str) -> None:
        """`line` describes the current step."""


class MakeFailed(Exception):
    """make failed; the message is the line of its output that best says why."""


def check_machine() -> None:
    """Raises EngineError where this is not Linux on x86-64: User-Mode Linux runs on nothing else."""
    system, architecture = platform.system(), platform.machine()
    if system != "Linux" or architecture not in ("x86_64", "amd64"):
        refuse("kernel", f"User-Mode Linux needs Linux on x86_64, this is {system} on {architecture}", "build it on such a machine", EngineError)


def check_tools() -> None:
    """Raises EngineError where a tool is missing, with the one command that installs all that are."""
    missing = [tool for tool in PACKAGES if shutil.which(tool) is None]
    packages = [PACKAGES[tool] for tool in missing]
    if "gcc" not in missing and not _has_headers():
        missing.append("the C library's headers")
        packages.append(C_LIBRARY)
    elif "gcc" in missing:
        packages.append(C_LIBRARY)
    if missing:
        refuse("tools", f"missing: {', '.join(missing)}", f"run `apt-get install {' '.join(packages)}`", EngineError)


def check_disk(directory: Path, required: int) -> None:
    """Raises EngineError where less than `required` bytes are free on the disk of `directory`, which need not exist yet."""
    while not directory.exists():
        directory = directory.parent
    free = shutil.disk_usage(directory).free
    if free < required:
        fix = "make room, or set XDG_CACHE_HOME to another disk"
        refuse("disk", f"{free / GIB:.1f} GiB are free at {directory}, the build needs {required / GIB:.1f} GiB", fix, EngineError)


def compiler_version() -> str:
    """The first line of `gcc --version`."""
    return subprocess.run(("gcc", "--version"), capture_output=True, text=True, check=False).stdout.partition("\n")[0]


def make_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for make: `environment` without the variables that would change the kernel."""
    return {key: value for key, value in environment.items() if not FOREIGN.fullmatch(key)} | REPRODUCIBLE


def run_make(arguments: tuple[str, ...], directory: Path, log: IO[str], on_line: LineHandler = lambda number, line: None) -> int:
    """Runs make in a directory, every line into `log`; returns the number of lines it printed. An interrupt stops make first.

    :raises MakeFailed: make ended with an error.
    """
    log.write(f"$ make {' '.join(arguments)}\n")
    first_errors: list[str | None] = [None] * len(ERROR_PATTERNS)
    number = 0
    process = subprocess.Popen(
        ("make", *arguments),
        cwd=directory,
        env=make_environment(os.environ),
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        for line in process.stdout or ():
            log.write(line)
            number += 1
            on_line(number, line.strip())
            first_errors = [
                earlier or (line.strip() if pattern.search(line) else None) for earlier, pattern in zip(first_errors, ERROR_PATTERNS, strict=True)
            ]
        status = process.wait()
    except BaseException:
        _stop(process)
        raise
    finally:
        log.flush()
    if status:
        raise MakeFailed(next((line for line in first_errors if line), f"make ended with status {status}"))
    return number


def _has_headers() -> bool:
    """Whether gcc has the headers of the C library."""
    command = ("gcc", "-E", "-x", "c", "-")
    return subprocess.run(command, input="#include <stdio.h>\n", capture_output=True, text=True, check=False).returncode == 0


def _stop(process: subprocess.Popen[str]) -> None:
    """Lets make remove incomplete files, which the next build would take for complete."""
    process.terminate()
    try:
        process.communicate(timeout=CLEANUP_S)
    except (subprocess.TimeoutExpired, ValueError):
        process.kill()
        process.wait()
