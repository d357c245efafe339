"""Changes of an emulated path while it runs, from a Unix socket or from standard input, and its figures for whoever asks.

A request is one line, in words or as JSON, and its answer one line of JSON:

    down: rate 5mbit                     {"ok": true, "at_ns": 1234}
    {"down": {"rate": "5mbit"}}          {"ok": true, "at_ns": 1234}
    figures                              {"ok": true, "figures": {…}}
    end                                  {"ok": true}, and the command is asked to end
    down: rate fast                      {"ok": false, "error": "rate: …; …"}
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from tcpscape.emulation.path import BOTH, DIRECTIONS, EmulatedPath, parse_change
from tcpscape.errors import TcpscapeError, refuse, shown
from tcpscape.reading.documents import from_json
from tcpscape.reading.files import Kind, Origin

MOST_LINE = 64 << 10
"""Most bytes of a request."""
MOST_PATH = 100
"""Most bytes of a Unix socket's path. Linux: unix(7)."""
Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Sends a message to the emulation's program and returns its answer."""


def answer(line: str, path: EmulatedPath, ask: Ask) -> dict[str, Any]:
    """What a request line does, and the answer to it; what is wrong with it is in the answer."""
    try:
        request = _read(line)
        if request == "figures":
            return {"ok": True, "figures": ask({"figures": True})}
        if request == "end":
            ask({"end": "term"})
            return {"ok": True}
        assert not isinstance(request, str)
        changes = [change for each in request for change in path.patches(each["where"], each["set"], each.get("hop"))]
        return {"ok": True, **ask({"change": changes})}
    except TcpscapeError as e:
        return {"ok": False, "error": str(e)}


def _read(line: str) -> str | list[dict[str, Any]]:
    """`figures`, `end`, or changes.

    :raises ScenarioError: it is none of them.
    """
    text = line.strip()
    if text in ("figures", "end"):
        return text
    if not text.startswith("{"):
        return [parse_change(text)]
    fields = from_json(text, Origin("control", REQUEST))
    if not isinstance(fields, dict) or not fields or not all(isinstance(v, dict) and v for v in fields.values()):
        refuse("control", f"{shown(text)} is not DIRECTION → values", f"write for example {EXAMPLE}")
    if unknown := next((name for name in fields if name not in (*DIRECTIONS, BOTH)), None):
        refuse("control", f"{shown(unknown)} is no direction", f"choose up, down or both: {EXAMPLE}")
    return [{"where": where, "set": values} for where, values in fields.items()]


EXAMPLE = '{"down": {"rate": "5mbit"}}'
REQUEST = Kind("a request", f"write for example {EXAMPLE}", MOST_LINE)


def follow(lines: Iterable[str], path: EmulatedPath, ask: Ask, say: Callable[[dict[str, Any]], None]) -> None:
    """Answers each line that is not empty."""
    for line in lines:
        if line.strip():
            say(answer(line, path, ask))


class ControlSocket:
    """A Unix socket whose clients steer the path; it goes with the context. Only its owner may connect."""

    def __init__(self, place: Path, path: EmulatedPath, ask: Ask) -> None:
        """:raises ScenarioError: the place cannot have a socket."""
        self._place, self._path, self._ask = place, path, ask
        if len(os.fsencode(place)) > MOST_PATH:
            refuse("control", f"the path of a socket has at most {MOST_PATH} bytes", "choose a shorter one, for example /tmp/path.sock")
        _remove_stale(place)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # It takes its place when it listens, so that whoever sees it can connect.
        early = place.with_name(f".{os.getpid()}")
        mask = os.umask(0o177)
        try:
            self._listener.bind(os.fspath(early))
            self._listener.listen()
            early.rename(place)
        except OSError as e:
            self._listener.close()
            early.unlink(missing_ok=True)
            refuse("control", f"{place}: {e.strerror or e}", "choose a place that can be written")
        finally:
            os.umask(mask)
        threading.Thread(target=self._accept, name="control", daemon=True).start()

    def __enter__(self) -> ControlSocket:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with contextlib.suppress(OSError):
            self._place.unlink()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, client.makefile("rwb") as stream:  # the end of the stream writes too
            while line := stream.readline(MOST_LINE):
                if not line.strip():
                    continue
                reply = answer(line.decode("utf-8", "replace"), self._path, self._ask)
                stream.write(json.dumps(reply, allow_nan=False).encode() + b"\n")
                stream.flush()


def _remove_stale(place: Path) -> None:
    """Removes a socket at which nobody listens any more.

    :raises ScenarioError: there is anything else.
    """
    try:
        kind = place.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(kind):
        refuse("control", f"{place} is there, and is no socket", "choose another place")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        try:
            other.connect(os.fspath(place))
        except OSError:
            place.unlink()
            return
    refuse("control", f"another emulation listens at {place}", "choose another place")
