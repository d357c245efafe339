"""What everything that can be opened has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from tcpscape.errors import TcpscapeError


class Opened(ABC):
    """Something that a page, or the command line, has opened. Several threads may read it."""

    kind: ClassVar[str]
    """`measurement`, `results`, `setup`: which questions can be asked about it."""

    def __init__(self, name: str) -> None:
        """`name`: what people call it, as typed or as the uploaded file was called; never used as a path."""
        self.name = name
        self._after: Callable[[], None] | None = None

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """What the page shows of it at once, plain values: `kind`, `name`, `about`; of a setup the state that it stands for."""

    def when_closed(self, call: Callable[[], None]) -> None:
        """Calls this at the end, to remove what was kept for it alone."""
        self._after = call

    def close(self) -> None:
        """Ends it: what an upload kept is removed, what the command line named stays."""
        if self._after:
            self._after()


@contextmanager
def naming(path: Path, name: str) -> Iterator[None]:
    """Within it, lines about `path` call it `name`: where an upload is kept is nobody's business. A relative path is the command line's own."""
    try:
        yield
    except TcpscapeError as e:
        if path.is_absolute() and str(path) in str(e):
            raise type(e)(str(e).replace(str(path), name)) from None
        raise
