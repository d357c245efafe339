"""Blocks, the pieces of an answer on their way to the page, and a page's stream of events, which carries them.

A block is a JSON header with columns of numbers behind it. In the stream it is one event named `block` whose data are the base64 of: the header's
length (32 bit, little endian), the header (JSON in UTF-8, padded with spaces so that the columns begin at a multiple of 8), and the columns, float64
or float32, little endian, each padded to a multiple of 8. The header's `columns` has the name, type and length of each.

Between the threads that answer and the stream is an :class:`Outbox`. It holds so many bytes; a question that sends more waits until the page has
taken some, so that a page that is slow, or hidden, slows its own questions and nothing else. What a newer question makes stale is dropped from it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import math
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

if TYPE_CHECKING:
    import numpy as np

ALIGNED = 8
"""Bytes to whose multiple header and columns are padded."""
TYPES = {"<f8": "f64", "<f4": "f32"}
"""numpy's types of columns, and their names in the header."""


@dataclass(frozen=True)
class Block:
    """A piece of an answer."""

    name: str
    """What it is: each question says which blocks it sends."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Plain values; what is not finite becomes null."""
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Arrays of float64 or float32, one-dimensional."""

    def encode(self, kind: str, generation: int) -> bytes:
        """The block as bytes, for the question `kind` as it was asked the `generation`-th time."""
        described = [{"name": name, "type": TYPES[column.dtype.str], "length": len(column)} for name, column in self.columns.items()]
        header = {"kind": kind, "generation": generation, "name": self.name, "values": finite(self.values), "columns": described}
        text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
        text += b" " * (-(len(text) + 4) % ALIGNED)
        return b"".join([struct.pack("<I", len(text)), text, *(_padded(column.tobytes()) for column in self.columns.values())])


def event(data: bytes) -> str:
    """The server-sent event of an encoded block."""
    return f"event: block\ndata: {base64.b64encode(data).decode()}\n\n"


def finite(value: Any) -> Any:
    """Plain values, models and data classes as mappings, in which every number that is not finite is None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, BaseModel):
        return finite(value.model_dump(mode="json"))
    if is_dataclass(value) and not isinstance(value, type):
        return finite(asdict(value))
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % ALIGNED)


MOST_BYTES = 16 << 20
"""Bytes on their way to a page before its questions wait."""
BEAT_S = 15.0
"""After so long without a block, a comment shows whether the page is still there, s."""
BEAT = b": \n\n"
BEGIN = b"retry: 500\n\n"
"""What the stream begins with: the browser opens it again half a second after it broke."""
LOOK_S = 0.05
"""How often a question that waits for room looks whether it is still wanted, s."""


@dataclass(frozen=True)
class _Event:
    kind: str
    generation: int
    data: bytes


class Outbox:
    """Blocks on their way to a page, in order."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        """`most`: bytes; one block may be larger."""
        self._most = most
        self._events: deque[_Event] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._wake: Callable[[], None] | None = None
        self.is_closed = False
        """Whether the page has ended."""

    @property
    def size(self) -> int:
        """Bytes that wait."""
        return self._bytes

    def put(self, kind: str, generation: int, data: bytes, is_wanted: Callable[[], bool]) -> None:
        """Puts an event behind the others; waits for room. One that is not wanted (any more) is dropped."""
        with self._changed:
            while is_wanted() and not self.is_closed and self._bytes and self._bytes + len(data) > self._most:
                self._changed.wait(LOOK_S)
            if self.is_closed or not is_wanted():
                return
            self._events.append(_Event(kind, generation, data))
            self._bytes += len(data)
            wake = self._wake
        if wake:
            wake()

    def drop(self, kind: str, generation: int) -> None:
        """Drops the events of a kind that are older than this generation."""
        with self._changed:
            self._set([event for event in self._events if event.kind != kind or event.generation >= generation])

    def take(self) -> bytes:
        """Every event that waits, as the stream carries them; empty where none does."""
        with self._changed:
            data = b"".join(event.data for event in self._events)
            self._set([])
            return data

    def attach(self, wake: Callable[[], None]) -> None:
        """Calls `wake`, from any thread, whenever there is something to take; whoever was called before is called once more and leaves."""
        with self._changed:
            before, self._wake = self._wake, wake
        if before:
            before()
        wake()

    def detach(self, wake: Callable[[], None]) -> None:
        """Ends that, unless another stream has come meanwhile."""
        with self._changed:
            self._wake = None if self._wake is wake else self._wake

    def is_attached(self, wake: Callable[[], None]) -> bool:
        """Whether `wake` is who is called."""
        return self._wake is wake

    def close(self) -> None:
        """Ends the stream and whoever waits for room."""
        with self._changed:
            self.is_closed = True
            self._set([])
            wake = self._wake
        if wake:
            wake()

    def _set(self, events: list[_Event]) -> None:
        self._events = deque(events)
        self._bytes = sum(len(event.data) for event in events)
        self._changed.notify_all()


class EventStream(Response):
    """The response that carries an outbox, until the page leaves, opens another stream, or ends."""

    media_type = "text/event-stream"

    def __init__(self, outbox: Outbox, arrive: Callable[[], None], leave: Callable[[], None]) -> None:
        """`arrive` is called when the stream begins, `leave` when it has ended and no other has taken its place."""
        super().__init__(headers={"Cache-Control": "no-store"})
        del self.headers["content-length"]
        self._outbox, self._arrive, self._leave = outbox, arrive, leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends what there is as soon as it is there."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(ready.set)

        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send(_body(BEGIN))
        self._outbox.attach(wake)
        self._arrive()
        left = asyncio.ensure_future(_disconnected(receive, ready))

        def is_open() -> bool:
            return not left.done() and self._outbox.is_attached(wake) and not self._outbox.is_closed

        try:
            while is_open():
                await send(_body(await self._next(ready, is_open)))
            if not left.done():
                await send({"type": "http.response.body", "body": b""})
        except OSError:  # the browser is gone
            return
        finally:
            left.cancel()
            if self._outbox.is_attached(wake):
                self._outbox.detach(wake)
                self._leave()

    async def _next(self, ready: asyncio.Event, is_open: Callable[[], bool]) -> bytes:
        """What is to be sent next: events, which are the next stream's once this one is over, or after a while without any a comment."""
        try:
            await asyncio.wait_for(ready.wait(), BEAT_S)
        except asyncio.TimeoutError:
            return BEAT
        ready.clear()
        return self._outbox.take() if is_open() else b""


async def _disconnected(receive: Receive, ready: asyncio.Event) -> None:
    """Waits until the browser closes the connection; wakes the stream then."""
    while (await receive())["type"] != "http.disconnect":
        pass
    ready.set()


def _body(data: bytes) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": True}
