"""A measurement that is open: a capture, or another tool's file, as `tcpscape diagnose` reads them."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from tcpscape.findings.diagnosis.observed import Observation
from tcpscape.interchange import observing
from tcpscape.reading import files as reading
from tcpscape.web.opened.base import Opened, naming


class Measurement(Opened):
    """A file that shows flows."""

    kind: ClassVar[str] = "measurement"

    def __init__(self, path: Path, name: str) -> None:
        """:raises TcpscapeError: one line, where the first bytes show that it is of no kind."""
        super().__init__(name)
        self._path, self._lock = path, threading.Lock()
        self._observation: Observation | None = None
        self._read_at: tuple[int, int] | None = None
        with naming(path, name):
            observing.expect(path)

    def document(self) -> dict[str, Any]:
        """What the page shows of it at once."""
        return {"kind": self.kind, "name": self.name, "about": "a measurement"}

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
