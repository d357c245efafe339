"""The page opens, and obeys its policy."""

import signal
import urllib.parse

import pytest

from browser.driving import answer, answered, write
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


def test_a_token_in_the_address_does_not_stay_there(visit, explorer: Explorer):
    """Nor is it sent on: it would be in the history, in screenshots and in what is copied."""
    assert "token" in urllib.parse.parse_qs(urllib.parse.urlsplit(explorer.url).query)
    page = visit(explorer, "rtt=80ms")
    page.wait_for_function("() => !location.search")
    assert "rtt=80ms" in page.url


# A server that ends, comes back, has two pages at once, or is ended in the middle of its work.


LOST = r"ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|ERR_ABORTED|status of 401|status of 403"
"""What Chromium itself writes on the console about requests to a server that is not there, or has forgotten this page."""


def test_a_killed_server_is_told_and_the_page_goes_on_with_the_next(visit, built):
    from playwright.sync_api import expect

    with Explorer() as first:
        page = visit(first, "rtt=50ms")
        page.watch.allow(LOST)
        answered(page)
        first.stop(signal.SIGKILL)
    expect(page.get_by_role("alert")).to_contain_text("tcpscape explore")
    before = answer(page).inner_text()
    write(page, "RTT", "150ms")
    with Explorer(port=first.port) as second:
        expect(page.get_by_role("alert")).to_contain_text("started again")
        other = page.context.new_page()
        other.goto(second.url)
        answered(other)
        expect(page.get_by_role("alert")).to_have_count(0)
        expect(answer(page)).not_to_have_text(before)
        answered(page)
        page.context.close()


def test_two_tabs_have_their_own_paths_and_answers(visit, explorer: Explorer):
    one = visit(explorer, "rtt=20ms&rate=5mbit&cca=cubic|reno")
    two = one.context.new_page()
    two.goto(f"{explorer.url}#rtt=200ms&rate=100mbit&cca=bbr|vegas")
    for page, own, other in ((one, ("cubic", "reno"), ("bbr", "vegas")), (two, ("bbr", "vegas"), ("cubic", "reno"))):
        said = answered(page)
        assert any(name in said for name in own)
        assert not any(name in said for name in other)
    write(one, "RTT", "21ms")
    write(two, "RTT", "201ms")
    assert any(name in answered(one) for name in ("cubic", "reno"))
    assert any(name in answered(two) for name in ("bbr", "vegas"))


@pytest.mark.parametrize("how", [signal.SIGINT, *(pytest.param(how, marks=pytest.mark.slow) for how in (signal.SIGTERM, signal.SIGHUP))])
def test_it_ends_in_the_middle_of_its_work_without_a_word(visit, built, how: signal.Signals):
    with Explorer() as server:
        page = visit(server, "rtt=300ms&rate=200mbit&duration=120s")
        page.watch.allow(LOST)
        page.wait_for_function("() => document.querySelector('main')")
        page.wait_for_timeout(500)
        status = server.stop(how)
        assert status in (128 + how, -how)
        assert not server.errors()
        page.context.close()
