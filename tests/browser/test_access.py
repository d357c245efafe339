"""Who may use the server: only what came by the address that was printed, by its own name, from its own pages."""

from __future__ import annotations

import http.client
import json
import socket
import urllib.parse
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from browser.explorer import Explorer

CANCEL = {"page": "test-page", "kind": "answer", "generation": 1}
BODIES = {"/api/cancel": json.dumps(CANCEL), "/api/ask": json.dumps({**CANCEL, "state": {}, "options": {}})}
PLACES = [
    ("GET", "/"),
    ("GET", "/index.html"),
    ("GET", "/api/start"),
    ("GET", "/api/stream?page=test-page"),
    ("POST", "/api/ask"),
    ("POST", "/api/cancel"),
]
"""A page, the API, a stream, and what changes something."""
NAMES = [f"{method} {path}" for method, path in PLACES]


def request(server: Explorer, method: str, path: str, headers: dict[str, str], body: str | None = None) -> HTTPResponse:
    """The answer to a request whose headers are these and no others; of a stream only its beginning."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    data = (body or "").encode()
    for name, value in {**headers, **({"Content-Type": "application/json", "Content-Length": str(len(data))} if method == "POST" else {})}.items():
        connection.putheader(name, value)
    connection.endheaders(data or None)
    answer = connection.getresponse()
    answer.connection = connection  # type: ignore[attr-defined]
    return answer


@pytest.fixture(scope="module")
def cookie(explorer: Explorer) -> str:
    """What a browser gets for the address that was printed."""
    parts = urllib.parse.urlsplit(explorer.url)
    answer = request(explorer, "GET", f"{parts.path}?{parts.query}", {"Host": parts.netloc})
    assert answer.status in (200, 302, 303, 307), answer.read()
    text = answer.headers["Set-Cookie"]
    words = [word.strip().lower() for word in text.split(";")]
    assert "httponly" in words
    assert "samesite=strict" in words or "samesite=lax" in words
    assert not [word for word in words if word.startswith("domain")]
    return text.split(";")[0]


def own(server: Explorer, cookie: str) -> dict[str, str]:
    """The headers of the page's own requests."""
    host = f"127.0.0.1:{server.port}"
    return {"Host": host, "Origin": f"http://{host}", "Cookie": cookie}


@pytest.mark.parametrize(("method", "path"), PLACES, ids=NAMES)
def test_the_page_itself_may(explorer: Explorer, cookie: str, method: str, path: str):
    answer = request(explorer, method, path, own(explorer, cookie), BODIES.get(path))
    assert answer.status in (200, 202, 204), answer.read()
    assert answer.headers["Content-Security-Policy"].split(";")[0].strip() == "default-src 'self'"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(("method", "path"), PLACES, ids=NAMES)
def test_without_a_token_nobody_may(explorer: Explorer, method: str, path: str):
    headers = own(explorer, "")
    del headers["Cookie"]
    assert request(explorer, method, path, headers, BODIES.get(path)).status == 401


@pytest.mark.parametrize(("method", "path"), PLACES, ids=NAMES)
def test_a_wrong_token_is_none(explorer: Explorer, cookie: str, method: str, path: str):
    name, _, value = cookie.partition("=")
    for wrong in (f"{name}=", f"{name}={value[:-1]}", f"{name}={value}0", f"{name}={'0' * len(value)}", f"{name}=\xff\xfe", f"other={value}"):
        assert request(explorer, method, path, own(explorer, wrong), BODIES.get(path)).status == 401, wrong
    assert request(explorer, method, path + ("&" if "?" in path else "?") + "token=0", own(explorer, ""), BODIES.get(path)).status == 401


@pytest.mark.parametrize(("method", "path"), PLACES, ids=NAMES)
@pytest.mark.parametrize(
    "host", ["attacker.example", "attacker.example:PORT", "127.0.0.1.attacker.example:PORT", "127.0.0.1:1", "127.0.0.1@attacker.example", "", None]
)
def test_another_host_is_refused_whoever_asks(explorer: Explorer, cookie: str, method: str, path: str, host: str | None):
    """A page elsewhere whose name was made to point to this machine (DNS rebinding)."""
    headers = own(explorer, cookie)
    del headers["Host"]
    if host is not None:
        headers["Host"] = host.replace("PORT", str(explorer.port))
    assert request(explorer, method, path, headers, BODIES.get(path)).status == 400


@pytest.mark.parametrize(("method", "path"), [place for place in PLACES if place[0] == "POST" or "stream" in place[1]], ids=lambda x: x)
@pytest.mark.parametrize(
    "origin", ["http://attacker.example", "null", "https://127.0.0.1:PORT", "http://127.0.0.1", "http://127.0.0.1:1", "http://localhost:1"]
)
def test_another_origin_is_refused_with_a_good_cookie(explorer: Explorer, cookie: str, method: str, path: str, origin: str):
    headers = own(explorer, cookie) | {"Origin": origin.replace("PORT", str(explorer.port))}
    assert request(explorer, method, path, headers, BODIES.get(path)).status == 403


@pytest.mark.parametrize("path", ["/api/ask", "/api/cancel"])
def test_a_post_without_an_origin_is_refused(explorer: Explorer, cookie: str, path: str):
    headers = own(explorer, cookie)
    del headers["Origin"]
    assert request(explorer, "POST", path, headers, BODIES.get(path)).status == 403


FILES = [
    "/../app.py",
    "/..%2fapp.py",
    "/%2e%2e/app.py",
    "/assets/../../app.py",
    "/assets/..%5c..%5capp.py",
    "//etc/passwd",
    "/%2fetc%2fpasswd",
    "/etc/passwd",
    "/\x00",
    "/%00",
    "/assets/%c0%ae%c0%ae/app.py",
]


@pytest.mark.parametrize("path", FILES, ids=repr)
def test_no_file_of_the_machine_can_be_read(explorer: Explorer, cookie: str, path: str):
    with socket.create_connection(("127.0.0.1", explorer.port), timeout=30) as line:
        headers = "".join(f"{name}: {value}\r\n" for name, value in own(explorer, cookie).items())
        line.sendall(f"GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n".encode("latin-1"))
        answer = b"".join(iter(lambda: line.recv(65536), b""))
    status = int(answer.split(b" ", 2)[1])
    assert status in (400, 404, 405), answer[:300]
    assert b"root:" not in answer
    assert b"starlette" not in answer.lower()


def test_a_token_in_the_address_does_not_stay_there(visit, explorer: Explorer):
    """Nor is it sent on: it would be in the history, in screenshots and in what is copied."""
    page = visit(explorer, "rtt=80ms")
    token = urllib.parse.parse_qs(urllib.parse.urlsplit(explorer.url).query)
    assert token
    page.wait_for_function("() => !location.search")
    assert "rtt=80ms" in page.url


def test_it_listens_on_loopback_alone(explorer: Explorer):
    """Every address of this machine that is not loopback's refuses the port."""
    listening = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    ours = {fields[1].split(":")[0] for fields in listening if fields[3] == "0A" and int(fields[1].split(":")[1], 16) == explorer.port}
    assert ours == {"0100007F"}


def test_junk_does_not_end_it(explorer: Explorer, cookie: str):
    for junk in (
        b"\x16\x03\x01\x02\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"A" * 100_000,
        b"POST /api/ask HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"\r\n" * 5000,
    ):
        with socket.create_connection(("127.0.0.1", explorer.port), timeout=30) as line:
            line.sendall(junk)
            line.shutdown(socket.SHUT_WR)
            while line.recv(65536):
                pass
    assert request(explorer, "GET", "/api/start", own(explorer, cookie)).status == 200


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "null",
        "1e999",
        '{"page": 1}',
        json.dumps({"page": "test-page", "kind": "nonsense", "generation": 1, "state": {}}),
        '{"page": "test-page", "kind": "answer", "generation": "x", "state": {}}',
        '{"a":' * 3000,
        "\xff",
    ],
)
def test_a_bad_body_is_refused_in_one_line(explorer: Explorer, cookie: str, body: str):
    answer = request(explorer, "POST", "/api/ask", own(explorer, cookie), body)
    assert 400 <= answer.status < 500, answer.status
    said = json.loads(answer.read())
    assert said["text"]
    assert "\n" not in said["text"]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_do_nothing(explorer: Explorer, cookie: str, method: str):
    answer = request(explorer, method, "/api/ask", own(explorer, cookie))
    assert answer.status in (400, 403, 404, 405), answer.status
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_http_client_is_what_it_was() -> None:
    """A missing Host is sent as missing: the tests above rest on it."""
    sent: list[bytes] = []
    connection = http.client.HTTPConnection("127.0.0.1")
    connection.sock = type("Line", (), {"sendall": lambda _, data: sent.append(data)})()
    connection.putrequest("GET", "/", skip_host=True, skip_accept_encoding=True)
    connection.endheaders()
    assert b"Host" not in b"".join(sent)
