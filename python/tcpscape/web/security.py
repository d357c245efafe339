"""Who may use the explorer: the browser that was given its address, and nobody else on this machine or beyond it.

The server listens on loopback alone. :class:`Guard` stands before every request, in this order:

1. The header `Host` is a name of loopback with the server's port, or the status is 400. A page of another site whose name leads here (DNS rebinding)
   has that site's name in it.
2. The request has the cookie, or the status is 401. The cookie comes with the address that the command printed, whose `token` is random; it is
   HttpOnly and SameSite=Strict, so that no page of another site makes the browser send it. Cookies ignore ports, so its name has the port in it.
3. Whatever changes something, and the stream, comes from a page of this server, or the status is 403: `Origin` says so, which browsers send with
   everything but GET; of a GET without `Origin`, `Sec-Fetch-Site` must say `same-origin`. Other documents of the API are refused to pages of other
   sites and other ports where the browser says that one asks.

Every response has a policy by which the page loads nothing from elsewhere, runs no script that is not a file of ours, and is in nobody's frame.

Connections that have not shown the token are few at a time (:class:`Doorway`), and none stays for long, so that nobody on this machine keeps the
explorer's owner out. A connection is a stranger until one of its requests has the cookie, or opens the address with the token. Strangers do not
count against the owner's connections: when there are :data:`MOST_STRANGERS`, the oldest of them is closed for a new one. One that has not been
admitted after :data:`PATIENCE_S` is closed too, also in the middle of a request's headers.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import html
import secrets
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from tcpscape.errors import TcpscapeError
from tcpscape.web.page import problem_document

NAMES = ("127.0.0.1", "localhost", "[::1]")
"""Names of loopback in `Host` and `Origin`."""
WRONG_HOST, NO_TOKEN, WRONG_ORIGIN = 400, 401, 403
STREAM, API = "/api/stream", "/api/"
SAFE = ("GET", "HEAD")
OWN = "same-origin"
POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
"""The content security policy of every response."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": OWN,
    "Cross-Origin-Opener-Policy": OWN,
}
"""Headers of every response."""
NO_STORE = {"Cache-Control": "no-store"}
MOST_STRANGERS = 64
"""Connections at a time that have not shown the token."""
PATIENCE_S = 10.0
"""How long a connection may take to show it, s."""
Client = tuple[str, int]
"""The address of a connection's other end."""


def random_secret() -> str:
    """256 random bits as text."""
    return secrets.token_hex(32)


@dataclass(frozen=True)
class Keys:
    """What a server knows its users by."""

    port: int
    key: str = field(default_factory=random_secret)
    """What the cookie is made of: the address, which others may see on a screen, does not say it."""
    token: str = field(default_factory=random_secret)
    """In the address that is printed."""

    @property
    def cookie(self) -> str:
        """The cookie's name."""
        return f"tcpscape-{self.port}"

    @property
    def value(self) -> str:
        """The cookie's value."""
        return hmac.new(self.key.encode(), self.cookie.encode(), hashlib.sha256).hexdigest()

    @property
    def url(self) -> str:
        """The address with the token."""
        return f"http://{NAMES[0]}:{self.port}/?token={self.token}"


class Guard:
    """The application behind its checks."""

    def __init__(self, app: ASGIApp, keys: Keys, doorway: Doorway) -> None:
        self._app, self._keys, self._doorway = app, keys, doorway
        self._hosts = {f"{name}:{keys.port}" for name in NAMES} | ({*NAMES} if keys.port == 80 else set())
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or refuses it."""
        if scope["type"] != "http":  # no WebSocket, no lifespan
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await (self._refusal(scope) or self._app)(scope, receive, sent)

    def _refusal(self, scope: Scope) -> Response | None:
        """The response in place of the application's; None where the request may have that."""
        headers = Headers(scope=scope)
        if headers.getlist("host") != [headers.get("host")] or headers["host"].lower() not in self._hosts:
            return _refused(scope, WRONG_HOST, "host: this server answers on loopback alone; open the address that the command printed")
        arrival = self._arrival(scope, headers)
        if arrival is None and not self._has_cookie(headers):
            return _refused(scope, NO_TOKEN, "token: this address needs the one of the command's start; open the address that the command printed")
        if client := scope.get("client"):
            self._doorway.admit(tuple(client))
        if arrival is not None:
            return arrival
        if not self._is_own(scope, headers):
            return _refused(scope, WRONG_ORIGIN, "origin: another page asks; open the address that the command printed")
        return None

    def _arrival(self, scope: Scope, headers: Headers) -> Response | None:
        """What an address with the right token leads to: the page, with the cookie."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = next((value for name, value in query if name == "token"), None)
        if scope["path"] != "/" or scope["method"] not in SAFE or token is None or not _equal(token, self._keys.token):
            return None
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        place = f"/?{rest}" if rest else "/"
        # From a page of another site (a link in a web terminal), a redirect would go on without a Strict cookie: our own page leads on.
        from_own = headers.get("sec-fetch-site", "none") in ("none", OWN)
        lead = f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(place)}"><title>tcpscape</title>'
        response = RedirectResponse(place, 303, NO_STORE) if from_own else HTMLResponse(lead, headers=NO_STORE)
        response.set_cookie(self._keys.cookie, self._keys.value, httponly=True, samesite="strict", path="/")
        return response

    def _has_cookie(self, headers: Headers) -> bool:
        for line in headers.getlist("cookie"):
            for part in line.split(";"):
                name, _, value = part.strip().partition("=")
                if name == self._keys.cookie and _equal(value, self._keys.value):
                    return True
        return False

    def _is_own(self, scope: Scope, headers: Headers) -> bool:
        """Whether the request may come from where it says it comes from."""
        if origins := headers.getlist("origin"):
            return len(origins) == 1 and origins[0].lower() in self._origins
        site = headers.get("sec-fetch-site")
        if scope["method"] not in SAFE or scope["path"] == STREAM:
            return scope["method"] in SAFE and site == OWN
        return site in (None, OWN, "none") or not scope["path"].startswith(API)


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _refused(scope: Scope, status: int, text: str) -> Response:
    """The response in place of the application's: for the page a document, for whoever reads it in a browser's window a page."""
    if scope["path"].startswith(API):
        return JSONResponse(problem_document(TcpscapeError(text)), status, NO_STORE)
    return HTMLResponse(f"<!doctype html><title>tcpscape</title><p>{html.escape(text)}</p>", status, NO_STORE)


class Stranger(Protocol):
    """A connection that has not shown the token."""

    def turn_away(self) -> None:
        """Ends it; from now on it counts no more."""


class Doorway:
    """The strangers, in the order in which they came."""

    def __init__(self) -> None:
        self._strangers: dict[Client, Stranger] = {}

    def come(self, client: Client, stranger: Stranger) -> None:
        """A connection has come."""
        while len(self._strangers) >= MOST_STRANGERS:
            self._strangers.pop(next(iter(self._strangers))).turn_away()
        self._strangers[client] = stranger

    def admit(self, client: Client) -> None:
        """A connection has shown the token."""
        self._strangers.pop(client, None)

    def leave(self, client: Client, stranger: Stranger) -> None:
        """A connection has ended, or has taken too long. (Another one may have its address by then.)"""
        if self._strangers.get(client) is stranger:
            self._strangers.pop(client).turn_away()


def protocol(doorway: Doorway) -> type[asyncio.Protocol]:
    """HTTP for a server whose connections come through this doorway."""

    class Connection(H11Protocol):
        """uvicorn's, which tells the doorway of each connection."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if self.client is not None:
                doorway.come(self.client, self)
                self.loop.call_later(PATIENCE_S, doorway.leave, self.client, self)

        def connection_lost(self, exc: Exception | None) -> None:
            if self.client is not None:
                doorway.leave(self.client, self)
            super().connection_lost(exc)

        def turn_away(self) -> None:
            # uvicorn counts a connection until the event loop has ended it; of hundreds that come at once, those already turned away would make
            # it refuse the owner.
            self.connections.discard(self)
            self.transport.abort()

    return Connection
