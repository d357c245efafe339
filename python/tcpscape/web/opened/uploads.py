"""What pages upload: files in a temporary directory of this process, bounded in size and number, recognised by their content; and its requests."""

from __future__ import annotations

import threading
from pathlib import Path, PurePath

from tcpscape import writing
from tcpscape.campaign import source as campaigns
from tcpscape.errors import StoreError, refuse
from tcpscape.reading import files as reading
from tcpscape.reading.files import MIB, Kind
from tcpscape.scenario.files import SCENARIO
from tcpscape.store.database import FILE
from tcpscape.web.opened.base import Measurement, Opened
from tcpscape.web.opened.results import Results
from tcpscape.web.opened.setup import Setup
from tcpscape.web.routes import Asked, Context, OpenedDocument, Post, Upload

MOST = 256 * MIB
"""Bytes of one upload."""
MOST_OF_ALL = 1024 * MIB
"""Bytes of all uploads that are open."""
MOST_FILES = 16
"""Uploads that are open at a time."""
MOST_NAME = 120
"""Characters of an upload's name that are kept, its end."""
UPLOAD = Kind("an upload", "drop a capture, another measurement, a scenario or a results.sqlite", most=MOST)
SQLITE = b"SQLite format 3\0"
"""First bytes of a database."""
NAME = "upload"
"""Name of the file of every upload but a database's: what the page calls it is never a path."""


class Uploads:
    """The uploads of this process."""

    def __init__(self) -> None:
        self._spool: writing.Spool | None = None
        self._sizes: dict[Path, int] = {}
        self._lock = threading.Lock()

    def take(self, file: Path, name: str) -> Opened:
        """What a file is that a page has sent, by its content; of a text the end of its name decides. It is kept until it is closed.

        :raises TcpscapeError: one line, where it is nothing that can be opened, or there is no room.
        """
        is_database = reading.head(file, len(SQLITE), UPLOAD) == SQLITE
        if not is_database and PurePath(label(name)).suffix.lower() in campaigns.SUFFIXES:
            return Setup.of_text(reading.content(file, SCENARIO), label(name))
        kept = self._keep(file, FILE if is_database else NAME)
        try:
            opened: Opened = Results(kept.parent, label(name)) if is_database else Measurement(kept, label(name))
        except BaseException:
            self.remove(kept)
            raise
        opened.when_closed(lambda: self.remove(kept))
        return opened

    def remove(self, file: Path) -> None:
        """Removes an upload."""
        with self._lock:
            if self._sizes.pop(file, None) is not None and self._spool:
                self._spool.remove(file)

    def close(self) -> None:
        """Removes all of them."""
        with self._lock:
            self._sizes.clear()
            spool, self._spool = self._spool, None
        if spool:
            spool.close()

    def _keep(self, file: Path, name: str) -> Path:
        size, _ = reading.version(file, UPLOAD)
        with self._lock:
            if len(self._sizes) >= MOST_FILES:
                refuse("upload", f"{MOST_FILES} uploads are open", "close a page that has one", StoreError)
            if size + sum(self._sizes.values()) > MOST_OF_ALL:
                refuse("upload", f"all uploads together have more than {reading.size_text(MOST_OF_ALL)}", "close a page that has one", StoreError)
            self._spool = self._spool or writing.Spool()
            kept = self._spool.adopt(file, name)
            self._sizes[kept] = size
            return kept


def label(name: str) -> str:
    """The name of an upload as messages and the page have it: without directories, never used as a path."""
    return name.replace("\\", "/").rpartition("/")[2][-MOST_NAME:] or NAME


UPLOADS = Uploads()
"""Those of all pages."""


def upload(context: Context, file: Path, name: str) -> OpenedDocument:
    """Opens a file that the page has sent; answers with the document of what it is."""
    opened = UPLOADS.take(file, name)
    context.page.hold(opened)
    return opened.document()


def close(context: Context, asked: Asked) -> None:
    """Closes what the page has opened."""
    context.page.hold(None)


ROUTES = (Upload("upload", upload, MOST), Post("close", Asked, close))
