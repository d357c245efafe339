"""The page opens, and obeys its policy."""

from __future__ import annotations

from browser.driving import answered
from browser.explorer import Explorer


def test_the_page_opens_and_answers(visit, explorer: Explorer):
    page = visit(explorer)
    assert answered(page)


def test_no_request_leaves_the_machine(visit, explorer: Explorer):
    page = visit(explorer, "view=map")
    page.wait_for_timeout(500)
    assert page.watch.requests  # each is compared with the server's origin as it happens


def test_the_watch_sees_what_must_not_happen(visit, explorer: Explorer):
    """The other tests rest on it."""
    page = visit(explorer)
    for pattern in ("policy: script-src", "policy: img-src http", "Content Security Policy", "another place", "exception: .*planted", "net::ERR"):
        page.watch.allow(pattern)
    page.evaluate("() => { const s = document.createElement('script'); s.textContent = 'window.ran = true'; document.head.append(s); }")
    page.evaluate("() => { const i = new Image(); i.src = 'http://192.0.2.1/x.png'; document.body.append(i); }")
    page.evaluate("() => { setTimeout(() => { throw new Error('planted'); }); }")
    page.wait_for_timeout(300)
    seen = "\n".join(page.watch.problems)
    assert all(word in seen for word in ("policy: script-src", "another place", "planted")), seen
    assert page.evaluate("() => window.ran") is None
