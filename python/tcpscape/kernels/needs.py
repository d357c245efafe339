"""What a build needs of the machine: architecture, tools, free disk. Asked before anything is written."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

from tcpscape.errors import EngineError, refuse

PACKAGES = {
    "make": "make", "gcc": "gcc", "ld": "binutils", "flex": "flex", "bison": "bison", "bc": "bc", "xz": "xz-utils", "awk": "mawk",
}
"""Tools that the kernel's make calls, and the Debian packages that have them."""
C_LIBRARY = "libc6-dev"
GIB = 2**30


def machine() -> None:
    """Raises EngineError where this is not Linux on x86-64: User-Mode Linux runs on nothing else."""
    system, architecture = platform.system(), platform.machine()
    if system != "Linux" or architecture not in ("x86_64", "amd64"):
        refuse("kernel", f"User-Mode Linux needs Linux on x86_64, this is {system} on {architecture}", "build it on such a machine", EngineError)


def tools() -> None:
    """Raises EngineError with one line that installs whatever is missing."""
    missing = [tool for tool in PACKAGES if shutil.which(tool) is None]
    packages = [PACKAGES[tool] for tool in missing]
    if "gcc" not in missing and not _headers():
        missing.append("the C library's headers")
        packages.append(C_LIBRARY)
    elif "gcc" in missing:
        packages.append(C_LIBRARY)
    if missing:
        refuse("tools", f"missing: {', '.join(missing)}", f"run `apt-get install {' '.join(packages)}`", EngineError)


def disk(where: Path, needed: int) -> None:
    """Raises EngineError where less than `needed` bytes are free around `where`, which need not exist yet."""
    while not where.exists():
        where = where.parent
    free = shutil.disk_usage(where).free
    if free < needed:
        fix = "make room, or set XDG_CACHE_HOME to another disk"
        refuse("disk", f"{free / GIB:.1f} GiB are free at {where}, the build needs {needed / GIB:.1f} GiB", fix, EngineError)


def compiler() -> str:
    """The compiler's first line about itself."""
    return subprocess.run(("gcc", "--version"), capture_output=True, text=True, check=False).stdout.partition("\n")[0]


def _headers() -> bool:
    got = subprocess.run(("gcc", "-E", "-x", "c", "-"), input="#include <stdio.h>\n", capture_output=True, text=True, check=False)
    return got.returncode == 0
