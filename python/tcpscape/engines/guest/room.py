"""Where a guest's memory lies: a sparse file in a directory that has room and allows execution."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tcpscape.errors import EngineError

SHARED_MEMORY = Path("/dev/shm")


def directory(megabytes: int) -> Path:
    """A directory for a guest of that much memory: /dev/shm, or else $TMPDIR (/tmp); EngineError where neither will do."""
    candidates = list(dict.fromkeys((SHARED_MEMORY, Path(tempfile.gettempdir()))))
    for path in candidates:
        if _suits(path, megabytes << 20):
            return path
    named = " nor ".join(map(str, candidates))
    raise EngineError(
        f"TMPDIR: a guest needs {megabytes} MB for its memory in a directory that allows execution, and neither {named} is one; "
        "free some room or set TMPDIR to such a directory"
    )


def _suits(path: Path, size: int) -> bool:
    try:
        there = os.statvfs(path)
    except OSError:
        return False
    return there.f_bavail * there.f_frsize >= size and not there.f_flag & os.ST_NOEXEC and os.access(path, os.W_OK | os.X_OK)
