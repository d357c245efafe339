"""The explorer's server, over real connections on loopback: who may use it, what it refuses, and how it ends."""

import asyncio
import base64
import contextlib
import itertools
import json
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import httpx
import pytest
import uvicorn

from patience import PATIENCE_S
from tcpscape.errors import EngineError, TcpscapeError, refuse
from tcpscape.web import page, pages, routes, security, serve
from tcpscape.web.pool import Job
from tcpscape.web.questions import Question
from tcpscape.web.security import HEADERS, Keys
from tcpscape.web.stream import Block

OWN_SITE = {"Sec-Fetch-Site": "same-origin"}
LONG = {"rate": "1gbit", "duration": "600s"}
"""The state of a trial of half a minute of a core."""


class Fake(Question):
    """A question that does what its option says."""

    kind: ClassVar[str] = "fake"
    do: str = "count"
    blocks: int = 3
    held: ClassVar[threading.Event] = threading.Event()
    ended: ClassVar[list[str]] = []

    def answer(self, state, work, opened: Any) -> None:
        try:
            if self.do == "break":
                raise RuntimeError("a bug of a question")
            if self.do == "refuse":
                refuse("rate", "it is too slow", "make it faster")
            if self.do == "run":
                work.send(Block("begun"))
                list(work.trials([Job(state.scenario("cubic"), 1)]))
            for n in range(self.blocks):
                work.send(Block("count", {"n": n}))
            while self.do == "wait":
                work.expect_wanted()
                time.sleep(0.01)
        finally:
            self.ended.append(self.do)


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    monkeypatch.setattr(routes, "KINDS", {"fake": Fake})
    Fake.ended.clear()


class Running:
    """A server in a thread."""

    def __init__(self) -> None:
        self.door = serve.listening(0)
        self.keys = Keys(self.door.getsockname()[1])
        self.server = serve.Server(None, self.keys)
        self.base = f"http://127.0.0.1:{self.keys.port}"
        self.page = "page-0000"
        """The page of a test."""
        self.thread = threading.Thread(target=self.server.run, args=([self.door],), daemon=True)
        self.thread.start()

    @property
    def pages(self):
        return self.server.served.pages

    def client(self, **headers: str) -> httpx.Client:
        """A browser that has been to the address."""
        client = httpx.Client(base_url=self.base, headers=headers, timeout=PATIENCE_S)
        assert client.get(self.keys.url).status_code == 303
        return client

    def post(self, client: httpx.Client, name: str, **asked: Any) -> httpx.Response:
        return client.post(f"/api/{name}", json={"page": self.page, **asked}, headers={"Origin": self.base})

    def raw(self, request: bytes) -> bytes:
        """What is answered to these bytes."""
        with socket.create_connection(("127.0.0.1", self.keys.port), PATIENCE_S) as there:
            there.sendall(request)
            answer = b""
            while chunk := there.recv(65536):
                answer += chunk
        return answer

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    static = tmp_path_factory.mktemp("static")
    (static / "assets").mkdir()
    (static / "index.html").write_text("<!doctype html><title>the page</title>")
    (static / "assets" / "app-1.js").write_text("1")
    (static / "secret.key").write_text("not a file of a page")
    (static.parent / "outside.html").write_text("outside")
    patch = pytest.MonkeyPatch()
    patch.setattr(page, "root", lambda: static)
    patch.setattr(pages, "MOST_PAGES", 1000)
    patch.setattr("tcpscape.web.serve.warm", lambda pool, api: None)
    running = Running()
    yield running
    running.close()
    patch.undo()


@pytest.fixture
def client(server, request):
    server.page = f"page-{zlib.crc32(request.node.nodeid.encode()):08x}"
    made = server.client()
    yield made
    made.close()


class Stream:
    """A page's stream, read in a thread."""

    def __init__(self, server: Running, name: str = "") -> None:
        self.blocks: list[dict] = []
        self.changed = threading.Condition()
        self.is_open = self.is_over = False
        self.client = server.client(**OWN_SITE)
        self.thread = threading.Thread(target=self._read, args=(name or server.page,), daemon=True)
        self.thread.start()
        self.until(lambda: self.is_open)

    def _read(self, name: str) -> None:
        try:
            with self.client.stream("GET", "/api/stream", params={"page": name}) as answer:
                self.answer = answer
                for line in answer.iter_lines():
                    self._take(line)
        except httpx.HTTPError:
            pass
        self._change(lambda: setattr(self, "is_over", True))

    def _take(self, line: str) -> None:
        if line.startswith("data: "):
            data = base64.b64decode(line.removeprefix("data: "))
            (length,) = struct.unpack_from("<I", data)
            self._change(lambda: self.blocks.append(json.loads(data[4 : 4 + length])))
        elif line.startswith("retry: "):
            self._change(lambda: setattr(self, "is_open", True))

    def _change(self, change) -> None:
        with self.changed:
            change()
            self.changed.notify_all()

    def until(self, holds) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: holds() or self.is_over, PATIENCE_S), self.blocks
        assert holds(), self.blocks

    def names(self, generation: int) -> list[str]:
        return [block["name"] for block in self.blocks if block["generation"] == generation]

    def close(self) -> None:
        """Breaks the connection, as a browser whose tab is closed."""
        self.answer.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self.thread.join(PATIENCE_S)
        self.client.close()


@pytest.fixture
def stream(server, client):
    made = Stream(server)
    yield made
    made.close()


def wait_until(holds) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


# Who may use it


EVERYWHERE = ("/", "/assets/app-1.js", "/api/start", "/api/stream?page=page-0001", "/api/nosuch")


@pytest.mark.parametrize("request_line", [*(f"GET {path}" for path in EVERYWHERE), "POST /api/ask", "POST /api/cancel"])
def test_another_host_is_400(server, client, request_line):
    """A page elsewhere whose name was made to point to this machine (DNS rebinding)."""
    others = ("127.0.0.1", "127.0.0.1:1", "127.0.0.1@evil.example", "")
    names = ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.2", "0.0.0.0")
    for host in ("evil.example", *others, *(f"{name}:{server.keys.port}" for name in names)):
        answer = client.request(*request_line.split(), headers={"Host": host, "Origin": server.base, **OWN_SITE}, content=b"{}")
        assert answer.status_code == 400, host


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_names_of_loopback_are_hosts(server, client, host):
    assert client.get("/", headers={"Host": f"{host}:{server.keys.port}"}).status_code == 200


def test_two_hosts_or_none_are_400(server):
    good = f"Host: 127.0.0.1:{server.keys.port}\r\n".encode()
    for hosts in (b"", good + b"Host: evil.example\r\n", good * 2):
        answer = server.raw(b"GET / HTTP/1.1\r\n" + hosts + b"Connection: close\r\n\r\n")
        assert answer.split()[1] == b"400", hosts


@pytest.mark.parametrize("path", EVERYWHERE)
def test_without_the_cookie_it_is_401(server, path):
    cookie, value = server.keys.cookie, server.keys.value
    wrong = ({cookie: text} for text in ("", "0" * 64, value[:-1], f"{value}0", "\xff\xfe", server.keys.token, server.keys.key))
    for cookies in ({}, *wrong, {"other": value}, {f"tcpscape-{server.keys.port + 1}": value}):
        headers = {"Cookie": "; ".join(f"{k}={v}" for k, v in cookies.items()).encode("latin-1"), **OWN_SITE}
        answer = httpx.get(server.base + path, headers=headers)
        assert answer.status_code == 401, cookies
        assert value not in answer.text
        assert server.keys.token not in answer.text
    for name in ("ask", "cancel"):
        assert httpx.post(f"{server.base}/api/{name}", headers={"Origin": server.base}, json={}).status_code == 401


@pytest.mark.parametrize(
    "query", ["token=", "token=0", "token={token}0", "Token={token}", "token=%00", "token=é", "x={token}", "token=x&token={token}"]
)
def test_a_wrong_token_is_401_and_sets_nothing(server, query):
    answer = httpx.get(f"{server.base}/?{query.format(token=server.keys.token)}")
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_the_token_leads_to_the_page_with_a_cookie_of_this_port(server):
    for _ in range(2):  # a second tab, another browser
        answer = httpx.get(f"{server.keys.url}&x=1%262")
        assert (answer.status_code, answer.headers["location"]) == (303, "/?x=1%262")
        name, *attributes = answer.headers["set-cookie"].split("; ")
        assert name == f"tcpscape-{server.keys.port}={server.keys.value}"
        assert {a.lower() for a in attributes} == {"httponly", "samesite=strict", "path=/"}
        assert server.keys.token not in answer.headers["location"]
    assert httpx.get(f"{server.base}/api/start?token={server.keys.token}").status_code == 401, "the token is for the page's address alone"


def test_a_link_of_another_page_leads_on_by_a_page_of_ours(server):
    """A browser does not follow a redirect with a Strict cookie where another site began it."""
    answer = httpx.get(f"{server.keys.url}&x=%22%3E%3Cscript%3E", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert "set-cookie" in answer.headers
    assert '<meta http-equiv="refresh" content="0;url=/?x=' in answer.text
    assert "<script" not in answer.text


def test_other_origins_are_403(server, client):
    ours = f"https://127.0.0.1:{server.keys.port}"
    near = ("http://127.0.0.1:1", "http://127.0.0.1", "http://localhost:1", f"{server.base}.evil.example")
    foreign = ("https://evil.example", "null", ours, *near, "")
    requests = ("POST /api/ask", "POST /api/cancel", "POST /api/nosuch", "POST /", "PUT /", "DELETE /api/start", "GET /api/stream?page=page-0001")
    for origin, request in itertools.product(foreign, requests):
        answer = client.request(*request.split(), headers={"Origin": origin, **OWN_SITE}, content=b"{}")
        assert answer.status_code == 403, (origin, request)
    assert client.post("/api/ask", json={}).status_code == client.post("/api/cancel", json={}).status_code == 403, "no origin at all"
    assert client.get("/api/stream?page=page-0001").status_code == 403, "a stream that nobody says to be of this server"


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
def test_streams_and_documents_are_for_pages_of_this_port(client, site):
    assert client.get("/api/stream?page=page-0001", headers={"Sec-Fetch-Site": site}).status_code == 403
    assert client.get("/api/start", headers={"Sec-Fetch-Site": site}).status_code == (200 if site == "none" else 403)


def test_every_response_has_the_policy(server, client):
    answers = [client.get(path, headers=OWN_SITE) for path in ("/", "/assets/app-1.js", "/api/start", "/api/nosuch", "/nosuch")]
    answers += [httpx.get(server.base), httpx.get(server.keys.url), client.get("/", headers={"Host": "evil.example"}), client.post("/api/ask")]
    assert {answer.status_code for answer in answers} == {200, 303, 400, 401, 403, 404}
    for answer in answers:
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert "server" not in answer.headers
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'self';")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


# What it refuses


@pytest.mark.parametrize(
    "path",
    [
        "/../outside.html",
        "/..%2foutside.html",
        "/%2e%2e/outside.html",
        "/assets/../../outside.html",
        "//etc/passwd",
        "/etc/passwd",
        "/secret.key",
        "/assets",
        "/assets/",
        "/assets/app-1.js%00.html",
        "/file:///etc/passwd",
        "/index.html/..",
        "/%ff",
        "/assets\\..\\index.html",
        "/.",
        "/~root",
        "/assets/..%5c..%5coutside.html",
        "/%2fetc%2fpasswd",
        "/\x00",
        "/%00",
        "/assets/%c0%ae%c0%ae/outside.html",
    ],
)
def test_no_other_file_can_be_read(server, path):
    cookie = f"Cookie: {server.keys.cookie}={server.keys.value}\r\n"
    answer = server.raw(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.keys.port}\r\n{cookie}Connection: close\r\n\r\n".encode("latin-1"))
    assert answer.split()[1] in (b"404", b"400"), answer
    assert b"outside" not in answer
    assert b"root:" not in answer


@pytest.mark.parametrize(
    "junk",
    [
        b"\x16\x03\x01\x02\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"A" * 100_000,
        b"POST /api/ask HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"\r\n" * 5000,
    ],
)
def test_junk_does_not_end_it(server, client, junk):
    with socket.create_connection(("127.0.0.1", server.keys.port), PATIENCE_S) as there:
        there.sendall(junk)
        there.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while there.recv(65536):
                pass
    assert client.get("/").status_code == 200


def test_files_have_their_types(client):
    assert client.get("/").headers["content-type"] == "text/html; charset=utf-8"
    script = client.get("/assets/app-1.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in script.headers["cache-control"]
    assert client.get("/").headers["cache-control"] == "no-cache"


DEEP = "[" * 200 + "]" * 200
BODIES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the request"),
    "no JSON": (b"{", "the request"),
    "not UTF-8": (b'{"page": "\xff"}', "the request"),
    "two": (b"{} {}", "the request"),
    "a list": (b"[]", "the request"),
    "a number": (b"1", "the request"),
    "deep": (f'{{"page": "page-0001", "kind": {DEEP}}}'.encode(), "the request"),
    "too large": (b'{"page": "page-0001", "kind": "' + b"x" * routes.MOST_BODY + b'"}', "the request"),
    "a key twice": (b'{"page": "page-0001", "page": "page-0002"}', "the request"),
    "half a character": (b'{"page": "page-0001", "kind": "\\ud800"}', "the request"),
    "many digits": (b'{"page": "page-0001", "generation": ' + b"9" * 5000 + b"}", "the request"),
    "no page": (b'{"kind": "fake"}', "page"),
    "a path as page": (b'{"page": "../../../etc", "kind": "fake"}', "page"),
    "a long page": (b'{"page": "' + b"a" * 65 + b'"}', "page"),
    "no kind": (b'{"page": "page-0001", "generation": 1, "state": {}}', "kind"),
    "an unknown field": (b'{"page": "page-0001", "kind": "fake", "generation": 1, "state": {}, "evil": 1}', "evil"),
    "a negative generation": (b'{"page": "page-0001", "kind": "fake", "generation": -1, "state": {}}', "generation"),
    "not a number": (b'{"page": "page-0001", "kind": "fake", "generation": NaN, "state": {}}', "generation"),
    "a state that is a list": (b'{"page": "page-0001", "kind": "fake", "generation": 1, "state": []}', "state"),
    "an unknown field of the state": (b'{"page": "page-0001", "kind": "fake", "generation": 1, "state": {"evil": "1"}}', "evil"),
    "an unknown option": (b'{"page": "page-0001", "kind": "fake", "generation": 1, "state": {}, "options": {"evil": "1"}}', "evil"),
    "a wrong option": (b'{"page": "page-0001", "kind": "fake", "generation": 1, "state": {}, "options": {"blocks": "many"}}', "blocks"),
}


@pytest.mark.parametrize("name", BODIES)
def test_hostile_bodies_are_one_line(server, client, name):
    body, field = BODIES[name]
    answer = client.post("/api/ask", content=body, headers={"Origin": server.base, "Content-Type": "application/json"})
    assert answer.status_code == 400
    said = answer.json()
    assert set(said) == {"field", "problem", "fix", "text"}
    assert said["field"].startswith(field)
    assert "\n" not in said["text"]
    assert len(said["text"]) < 400
    assert said["fix"]
    assert server.pages.questions == 0


def test_other_contents_and_methods_are_refused(server, client):
    origin = {"Origin": server.base}
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        assert client.post("/api/ask", content=b"{}", headers={**origin, "Content-Type": kind}).status_code == 400
    assert client.post("/api/start", json={}, headers=origin).status_code == 405
    assert client.get("/api/ask").status_code == 405
    assert client.head("/api/stream", params={"page": "page-0001"}, headers=OWN_SITE).status_code == 405
    assert client.options("/api/stream", headers=origin).status_code == 405
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        answer = client.request(method, "/api/ask", headers=origin)
        assert answer.status_code in (400, 405), method
        assert "Access-Control-Allow-Origin" not in answer.headers
    assert client.post("/", headers=origin).status_code == 405
    for path in ("/api/nosuch", "/api/", "/api/../start", "/api/__class__"):
        answer = client.get(path)
        assert answer.status_code == 404, path
    assert server.post(client, "ask", kind="nosuch", generation=1, state={}).status_code == 404
    assert server.post(client, "cancel", kind="nosuch", generation=1).status_code == 404


def test_a_body_without_end_is_refused_before_it_ends(server):
    head = f"POST /api/ask HTTP/1.1\r\nHost: 127.0.0.1:{server.keys.port}\r\nOrigin: {server.base}\r\nCookie: {server.keys.cookie}={server.keys.value}\r\n"
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.keys.port), PATIENCE_S) as there:
        there.sendall(head.encode())
        for _ in range(routes.MOST_BODY // 0x10000 + 1):
            there.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        assert b" 400 " in there.recv(1000)


def test_answers_that_nobody_meant_are_a_bug_with_its_traceback(server, client, stream, capfd):
    assert server.post(client, "ask", kind="fake", generation=1, state={}, options={"do": "break"}).status_code == 202
    stream.until(lambda: stream.names(1) == ["error"])
    assert "bug" in stream.blocks[-1]["values"]["text"]
    assert "a bug of a question" not in stream.blocks[-1]["values"]["text"]
    printed = capfd.readouterr().err
    assert "RuntimeError: a bug of a question" in printed
    assert "Traceback" in printed
    server.post(client, "ask", kind="fake", generation=2, state={})
    stream.until(lambda: stream.names(2) == ["count"] * 3 + ["end"])


def test_a_request_that_breaks_is_500_and_the_server_lives(server, client, monkeypatch, capfd):
    def broken(context, asked):
        raise ZeroDivisionError("a bug of a request")

    client.get("/api/nosuch")
    monkeypatch.setitem(server.server.served.api._known, "broken", routes.Post("broken", routes.Asked, broken))
    answer = server.post(client, "broken")
    assert answer.status_code == 500
    assert "bug" in answer.json()["text"]
    assert "ZeroDivisionError" in capfd.readouterr().err
    assert client.get("/").status_code == 200


def test_an_upload_is_bounded_and_gone_after_it(server, client, monkeypatch):
    seen = []

    def read(context, path, name):
        seen.append((path, path.read_bytes(), name))
        return {"bytes": path.stat().st_size}

    client.get("/api/nosuch")
    monkeypatch.setitem(server.server.served.api._known, "reading", routes.Upload("reading", read, 1000))
    post = {"params": {"page": "page-0001", "name": "../../etc/<b>.pcap"}, "headers": {"Origin": server.base}}
    assert client.post("/api/reading", content=b"x" * 1000, **post).json() == {"bytes": 1000}
    assert client.post("/api/reading", content=b"x" * 1001, **post).status_code == 400
    ((path, data, name),) = seen
    assert (data, name) == (b"x" * 1000, "../../etc/<b>.pcap")
    assert not path.exists()
    assert "etc" not in str(path)


# Questions, streams and pages


def test_a_question_is_answered_in_order_and_a_newer_one_ends_it(server, client, stream):
    server.post(client, "ask", kind="fake", generation=1, state={}, options={"do": "wait"})
    stream.until(lambda: stream.names(1) == ["count"] * 3)
    server.post(client, "ask", kind="fake", generation=2, state={}, options={"blocks": 2})
    stream.until(lambda: stream.names(2) == ["count", "count", "end"])
    assert [block["values"]["n"] for block in stream.blocks if block["generation"] == 2 and block["name"] == "count"] == [0, 1]
    wait_until(lambda: server.pages.questions == 0)
    assert sorted(Fake.ended) == ["count", "wait"]
    server.post(client, "ask", kind="fake", generation=1, state={})  # late on its way
    server.post(client, "ask", kind="fake", generation=3, state={})
    stream.until(lambda: stream.names(3)[-1:] == ["end"])
    assert stream.names(1) == ["count"] * 3, "what is stale is neither answered nor ended"


def test_what_a_user_can_mend_comes_as_a_line(server, client, stream):
    server.post(client, "ask", kind="fake", generation=1, state={}, options={"do": "refuse"})
    stream.until(lambda: stream.names(1) == ["error"])
    values = ("rate", "it is too slow", "make it faster", "rate: it is too slow; make it faster")
    assert stream.blocks[-1]["values"] == dict(zip(("field", "problem", "fix", "text"), values, strict=True))


@pytest.mark.parametrize("state", [{"rate": "100gbit", "duration": "1h"}, {"cca": ["cubic"], "rate": "not a rate"}, {"rtt": "x" * 100_000}])
def test_absurd_states_are_one_line_and_the_server_answers_on(server, client, stream, state):
    asked = server.post(client, "ask", kind="fake", generation=1, state=state, options={"do": "run"})
    if asked.status_code == 202:
        stream.until(lambda: stream.names(1)[-1:] == ["error"])
        said = stream.blocks[-1]["values"]
    else:
        assert asked.status_code == 400
        said = asked.json()
    assert said["field"] in ("duration", "rate", "rtt")
    assert said["fix"]
    assert "bug" not in said["text"]
    server.post(client, "ask", kind="fake", generation=2, state={})
    stream.until(lambda: stream.names(2)[-1:] == ["end"])


def test_cancel_ends_a_trial_that_runs(server, client, stream):
    server.post(client, "ask", kind="fake", generation=1, state=LONG, options={"do": "run"})
    stream.until(lambda: stream.names(1) == ["begun"])
    assert server.post(client, "cancel", kind="fake", generation=2).status_code == 202
    wait_until(lambda: server.pages.questions == 0)
    assert Fake.ended == ["run"]
    server.post(client, "ask", kind="fake", generation=3, state={"duration": "100ms", "rate": "5mbit"}, options={"do": "run"})
    stream.until(lambda: stream.names(3)[-1:] == ["end"])
    assert stream.names(1) == ["begun"]


def test_a_cancel_and_a_question_may_overtake_each_other(server, client, stream):
    server.post(client, "ask", kind="fake", generation=5, state={}, options={"do": "wait"})
    stream.until(lambda: stream.names(5) == ["count"] * 3)
    server.post(client, "cancel", kind="fake", generation=4)  # of an earlier one, late on its way
    server.post(client, "cancel", kind="fake", generation=5)
    assert server.pages.questions == 1
    server.post(client, "cancel", kind="fake", generation=8)
    wait_until(lambda: server.pages.questions == 0)
    server.post(client, "ask", kind="fake", generation=7, state={})  # its end was here before it
    server.post(client, "ask", kind="fake", generation=9, state={})
    stream.until(lambda: stream.names(9)[-1:] == ["end"])
    assert stream.names(7) == []


def test_a_question_of_a_page_without_a_stream_ends(server, client, monkeypatch):
    monkeypatch.setattr(pages, "GONE_S", 0.05)
    first = Stream(server, "page-away")
    first.close()
    time.sleep(0.2)
    asked = {"page": "page-away", "kind": "fake", "generation": 1, "state": {}, "options": {"do": "wait"}}
    client.post("/api/ask", json=asked, headers={"Origin": server.base})
    wait_until(lambda: Fake.ended == ["wait"])


def test_a_page_that_is_gone_has_no_questions(server, client, monkeypatch):
    monkeypatch.setattr(pages, "GONE_S", 0.05)
    stream = Stream(server, "page-gone")
    asked = {"page": "page-gone", "kind": "fake", "generation": 1, "state": LONG, "options": {"do": "run"}}
    client.post("/api/ask", json=asked, headers={"Origin": server.base})
    stream.until(lambda: stream.names(1) == ["begun"])
    stream.close()
    wait_until(lambda: Fake.ended == ["run"])
    again = Stream(server, "page-gone")
    client.post("/api/ask", json={**asked, "generation": 2, "options": {}}, headers={"Origin": server.base})
    again.until(lambda: again.names(2)[-1:] == ["end"])
    again.close()


def test_two_pages_get_their_own_answers(server, client, stream):
    other = Stream(server, "page-0002")
    server.post(client, "ask", kind="fake", generation=1, state={})
    server.post(client, "ask", page="page-0002", kind="fake", generation=7, state={}, options={"blocks": 1})
    stream.until(lambda: stream.names(1)[-1:] == ["end"])
    other.until(lambda: other.names(7) == ["count", "end"])
    assert {block["generation"] for block in stream.blocks} == {1}
    assert {block["generation"] for block in other.blocks} == {7}
    other.close()


def test_a_page_that_comes_back_takes_the_stream_over(server, client, stream):
    again = Stream(server)
    stream.until(lambda: True)
    wait_until(lambda: stream.is_over)
    server.post(client, "ask", kind="fake", generation=9, state={})
    again.until(lambda: again.names(9)[-1:] == ["end"])
    assert stream.names(9) == []
    again.close()


def test_pages_and_questions_are_counted(server, client, monkeypatch):
    monkeypatch.setattr(pages, "MOST_PAGES", len(server.pages) + 1)
    monkeypatch.setattr(pages, "GONE_S", 1000)
    one = Stream(server, "page-last-one")
    answer = server.post(client, "ask", page="page-too-many", kind="fake", generation=1, state={})
    assert (answer.status_code, answer.json()["field"]) == (429, "page")
    monkeypatch.setattr(pages, "MOST_QUESTIONS", 0)
    assert server.post(client, "ask", page="page-last-one", kind="fake", generation=1, state={}).status_code == 429
    one.close()


# Its life


def test_the_socket_is_on_loopback_alone_and_a_port_that_is_taken_is_one_line(server):
    with pytest.raises(EngineError, match=rf"^port: {server.keys.port} cannot be used: .*; choose another one; 0 is any free one$"):
        serve.listening(server.keys.port)
    assert server.door.getsockname()[0] == "127.0.0.1"


def test_what_is_not_built_or_not_installed_is_one_line(cli, monkeypatch, tmp_path):
    monkeypatch.setattr(page, "root", lambda: tmp_path)
    said = cli("explore", "--no-browser")
    assert said.status == 2
    assert "run `make web`" in said.err
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    said = cli("explore", "--no-browser")
    assert said.status == 2
    assert said.err == "error: explore: the package uvicorn is not installed; run `pip install 'tcpscape[web]'`\n"


def test_the_browser_gets_the_address_by_a_file_of_the_user_alone(monkeypatch):
    from tcpscape.cli import explore

    opened = []

    def browse(address):
        file = Path(address.removeprefix("file://"))
        opened.append((file, file.parent.stat().st_mode & 0o777, file.read_text()))

    monkeypatch.setenv("BROWSER", "x")
    monkeypatch.setattr("webbrowser.open", browse)
    monkeypatch.setattr(explore, "FORGOTTEN_S", 0)
    explore._open("http://127.0.0.1:1/?token=abc")
    ((file, mode, text),) = opened
    assert mode == 0o700
    assert "abc" not in str(file)
    assert 'content="0;url=http://127.0.0.1:1/?token=abc"' in text
    assert not file.parent.exists()
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    explore._open("http://127.0.0.1:1/?token=abc")
    assert len(opened) == 1 or not sys.platform.startswith("linux"), "where there is no window, the printed address is all"


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["Ctrl-C", "SIGTERM", "SIGHUP"]
)
def test_a_signal_ends_it_with_streams_open_and_trials_running(number, status):
    if not page.is_built():
        pytest.skip("the explorer's page is not built: make web")
    command = [sys.executable, "-m", "tcpscape", "explore", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "DISPLAY": ""}) as process:
        url = process.stdout.readline().strip()
        base = url.partition("/?token=")[0]
        with httpx.Client(base_url=base, timeout=PATIENCE_S) as client:
            client.get(url)
            with client.stream("GET", "/api/stream?page=page-0001", headers=OWN_SITE) as stream:
                assert stream.status_code == 200
                asked = {"page": "page-0001", "kind": "answer", "generation": 1, "state": LONG}
                assert client.post("/api/ask", json=asked, headers={"Origin": base}).status_code == 202
                process.send_signal(number)
                assert process.wait(PATIENCE_S) == status
        assert (process.stdout.read(), process.stderr.read()) == ("", "")


def test_errors_have_their_parts():
    whole = {"field": "rate", "problem": "1 is bad; or not", "fix": "take 2", "text": "rate: 1 is bad; or not; take 2"}
    assert page.problem_document(TcpscapeError("rate: 1 is bad; or not; take 2")) == whole
    assert page.problem_document(TcpscapeError("nothing to split")) == {
        "field": "",
        "problem": "nothing to split",
        "fix": "",
        "text": "nothing to split",
    }
    with pytest.raises(TcpscapeError) as refused:
        refuse("rate", "1: is; bad", "take 2; or 3")
    assert (refused.value.field, refused.value.problem, refused.value.fix) == ("rate", "1: is; bad", "take 2; or 3")
    assert (refused.value.what, refused.value.reason) == ("rate: 1: is; bad", "1: is; bad; take 2; or 3")
    again = pickle.loads(pickle.dumps(refused.value))
    assert (again.field, again.fix, str(again)) == ("rate", "take 2; or 3", str(refused.value))
    assert page.status(TcpscapeError("x")) == 400


def test_connections_without_the_token_keep_nobody_out(server):
    """300 of them with half a request each: the oldest are closed, and the owner is answered."""
    owner = server.client()
    strangers = [socket.create_connection(("127.0.0.1", server.keys.port), PATIENCE_S) for _ in range(300)]
    try:
        for stranger in strangers:
            stranger.sendall(b"GET / HTTP/1.1\r\nHost: 127")
        assert owner.get("/").status_code == 200
        assert server.client().get("/").status_code == 200
        strangers[0].settimeout(PATIENCE_S)
        with contextlib.suppress(ConnectionResetError):
            assert strangers[0].recv(1) == b""
    finally:
        for stranger in strangers:
            stranger.close()
        owner.close()


def test_strangers_that_come_in_one_turn_of_the_event_loop_do_not_fill_the_server():
    """Those that are turned away count no more, although the loop has not ended them yet."""
    keys = Keys(1)
    doorway = security.Doorway()
    config = uvicorn.Config(security.Guard(lambda *_: None, keys, doorway), http=security.protocol(doorway), lifespan="off", log_config=None)
    config.load()
    state = uvicorn.server.ServerState()

    async def come() -> int:
        for port in range(300):
            transport = mock.Mock(asyncio.Transport)
            transport.get_extra_info.side_effect = {"socket": None, "peername": ("127.0.0.1", port), "sockname": ("127.0.0.1", 1)}.get
            config.http_protocol_class(config, state, {}).connection_made(transport)
        return len(state.connections)

    assert asyncio.run(come()) == security.MOST_STRANGERS


def test_a_connection_that_does_not_end_its_headers_is_closed(server, monkeypatch):
    monkeypatch.setattr(security, "PATIENCE_S", 0.1)
    owner = server.client()
    with socket.create_connection(("127.0.0.1", server.keys.port), PATIENCE_S) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: 127")
        with contextlib.suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
        time.sleep(0.2)
        assert owner.get("/").status_code == 200
