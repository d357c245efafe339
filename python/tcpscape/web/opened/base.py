"""What everything that can be opened has in common; and a measurement: a capture, or another tool's file, as `tcpscape diagnose` reads them."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tcpscape.errors import TcpscapeError
from tcpscape.findings.diagnosis.observed import Observation
from tcpscape.interchange import observing
from tcpscape.reading import files as reading
from tcpscape.web.routes import OpenedDocument


class Opened(ABC):
    """Something that a page, or the command line, has opened. Several threads may read it."""

    def __init__(self, name: str) -> None:
        """`name`: what people call it, as typed or as the uploaded file was called; never used as a path."""
        self.name = name
        self._after: Callable[[], None] | None = None

    @abstractmethod
    def document(self) -> OpenedDocument:
        """What the page shows of it at once."""

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


class Measurement(Opened):
    """A file that shows flows."""

    def __init__(self, path: Path, name: str) -> None:
        """:raises TcpscapeError: one line, where the first bytes show that it is of no kind."""
        super().__init__(name)
        self._path, self._lock = path, threading.Lock()
        self._observation: Observation | None = None
        self._read_at: tuple[int, int] | None = None
        with naming(path, name):
            observing.expect(path)

    def document(self) -> OpenedDocument:
        """What the page shows of it at once."""
        return OpenedDocument(kind="measurement", name=self.name, about="a measurement")

    def observation(self, progress: observing.Progress) -> Observation:
        """What it shows; read once, and again where the file has changed.

        :raises TcpscapeError: one line, where it cannot be read.
        """
        with self._lock, naming(self._path, self.name):
            version = reading.version(self._path, observing.SOURCE)
            if self._observation is None or version != self._read_at:
                self._observation = replace(observing.observe(self._path, progress), name=self.name)
                self._read_at = version
            return self._observation

    def has_grown(self) -> bool:
        """Whether the file has changed since it was read. :raises TcpscapeError: one line, where it is gone."""
        return self._observation is not None and reading.version(self._path, observing.SOURCE) != self._read_at
