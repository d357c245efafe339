"""Connections that have not shown the token: few at a time, and none for long, so that nobody on this machine keeps the explorer's owner out.

A connection is a stranger until one of its requests has the cookie, or opens the address with the token. Strangers do not count against the owner's
connections: when there are :data:`MOST_STRANGERS`, the oldest of them is closed for a new one. One that has not been admitted after
:data:`PATIENCE_S` is closed too, also in the middle of a request's headers.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_STRANGERS = 64
"""Connections at a time that have not shown the token."""
PATIENCE_S = 10.0
"""How long a connection may take to show it, s."""
Client = tuple[str, int]
"""The address of a connection's other end."""


class Doorway:
    """The strangers, in the order in which they came."""

    def __init__(self) -> None:
        self._strangers: dict[Client, asyncio.Transport] = {}

    def come(self, client: Client, transport: asyncio.Transport) -> None:
        """A connection has come."""
        while len(self._strangers) >= MOST_STRANGERS:
            self._strangers.pop(next(iter(self._strangers))).abort()
        self._strangers[client] = transport

    def admit(self, client: Client) -> None:
        """A connection has shown the token."""
        self._strangers.pop(client, None)

    def leave(self, client: Client, transport: asyncio.Transport) -> None:
        """A connection has ended, or has taken too long. (Another one may have its address by then.)"""
        if self._strangers.get(client) is transport:
            self._strangers.pop(client).abort()


def protocol(doorway: Doorway) -> type[asyncio.Protocol]:
    """HTTP for a server whose connections come through this doorway."""

    class Protocol(H11Protocol):
        """uvicorn's, which tells the doorway of each connection."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if self.client is not None:
                doorway.come(self.client, transport)
                self.loop.call_later(PATIENCE_S, doorway.leave, self.client, transport)

        def connection_lost(self, exc: Exception | None) -> None:
            if self.client is not None:
                doorway.leave(self.client, self.transport)
            super().connection_lost(exc)

    return Protocol
