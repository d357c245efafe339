"""A result directory that is open: finished, interrupted, or being written by another process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tcpscape.campaign import record
from tcpscape.campaign.following import Follower, Unfinished
from tcpscape.campaign.outcome import Outcome
from tcpscape.errors import refuse
from tcpscape.findings.diagnosis.observed import Observation
from tcpscape.interchange import trial_flows
from tcpscape.reading import files as reading
from tcpscape.store.database import FILE
from tcpscape.store.results import Store
from tcpscape.web.opened.base import Opened, naming
from tcpscape.web.routes import OpenedDocument


@dataclass(frozen=True)
class KeptPart:
    """A campaign of a directory, or a part of a study."""

    label: str
    """Empty where there is one alone."""
    outcome: Outcome | None
    """None before its first trial."""
    unfinished: Unfinished | None = None
    """How far it is, where it is not finished."""


@dataclass(frozen=True)
class Kept:
    """What a directory holds now."""

    kind: str
    """`run`, `sweep`, `study`, …; empty where nothing is finished."""
    commands: tuple[str, ...]
    version: str
    parts: tuple[KeptPart, ...]

    @property
    def is_running(self) -> bool:
        """Whether somebody writes to it."""
        return any(part.unfinished is not None and part.unfinished.is_running for part in self.parts)


class Results(Opened):
    """A directory that run, sweep, study or advise wrote with `--out`."""

    def __init__(self, root: Path, name: str) -> None:
        """:raises TcpscapeError: one line, where there are no results, or a database of somebody else."""
        super().__init__(name)
        self._root, self._lock = root, threading.Lock()
        if not reading.inside(root, root / FILE):
            refuse(FILE, f"leads out of the directory {name}", "copy the results themselves into it")
        with _naming(root, name):
            self._store = Store(root, create=False)
        self._follower = Follower(self._store)
        self._seen = ""
        self._finished: record.Record | None = None

    def document(self) -> OpenedDocument:
        """What the page shows of it at once."""
        return OpenedDocument(kind="results", name=self.name, about="results of tcpscape")

    def kept(self) -> Kept:
        """What is there now; what has not changed is not read again.

        :raises TcpscapeError: one line, where it is damaged.
        """
        with self._lock, self.confined():
            documents = self._store.manifests()
            if documents and (self._finished is None or repr(documents) != self._seen):
                self._finished, self._seen = record.load(self._root), repr(documents)
            following = self._follower.look()
        finished = self._finished
        parts = [KeptPart(label, outcome) for label, outcome in finished.parts.items()] if finished else []
        parts += [KeptPart(one.campaign.name, one.outcome, one) for one in following if not _is_kept(one, finished)]
        if not parts:
            refuse(self.name, "has no results, and nobody runs anything into it", "name a directory that run, sweep or study writes with --out")
        commands = tuple(finished.command.splitlines()) if finished else ()
        return Kept(finished.kind if finished else "", commands, finished.version if finished else "", tuple(parts))

    @contextmanager
    def confined(self) -> Iterator[None]:
        """Within it no file outside of the directory is read, whatever a scenario in it names."""
        with _naming(self._root, self.name), reading.confined(self._root):
            yield

    def observation(self) -> Observation:
        """Its trials as flows to diagnose. :raises TcpscapeError: one line, where they cannot be read."""
        with self._lock, self.confined():
            return trial_flows.observe_directory(self._root)

    def close(self) -> None:
        """Closes the database; an upload is removed."""
        self._store.close()
        super().close()


@contextmanager
def _naming(root: Path, name: str) -> Iterator[None]:
    """Within it, lines about an upload's database and its directory call them by its name; what the command line named is called so already."""
    if name.startswith(str(root)):
        yield
        return
    with naming(root, name), naming(root / FILE, name):
        yield


def _is_kept(one: Unfinished, finished: record.Record | None) -> bool:
    """Whether a campaign whose writer has not left yet is among what is finished."""
    known = [outcome.campaign for outcome in finished.outcomes] if finished else []
    return one.done >= one.total and one.campaign in known
