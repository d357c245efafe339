"""A page's outbox: order, room, and what a newer question makes stale; and what the server imports before the page is there."""

import asyncio
import subprocess
import sys
import threading

import pytest

from tcpscape.web.stream import EventStream, Outbox

PATIENCE = 20
"""Seconds after which a test gives up."""
LATER = ("matplotlib", "scipy", "polars", "rich", "jinja2", "tcpscape.findings.diagnosis", "tcpscape.plots", "tcpscape.report")
"""What computes or draws; none of it is needed before the page is there."""


def put(outbox, data, kind="curve", generation=1, *, wanted=lambda: True):
    outbox.put(kind, generation, data, wanted)


def test_events_are_taken_in_order_and_once():
    outbox = Outbox()
    for data in (b"a", b"b", b"c"):
        put(outbox, data, kind=data.decode())
    assert outbox.size == 3
    assert (outbox.take(), outbox.take(), outbox.size) == (b"abc", b"", 0)


def test_what_is_stale_is_dropped():
    outbox = Outbox()
    put(outbox, b"old", generation=1)
    put(outbox, b"other", kind="map", generation=1)
    put(outbox, b"new", generation=2)
    outbox.drop("curve", 2)
    put(outbox, b"nobody's", wanted=lambda: False)
    assert outbox.take() == b"othernew"


@pytest.mark.parametrize("end", ["taken", "stale", "dropped", "closed"])
def test_a_question_waits_for_room(end):
    outbox, wanted = Outbox(most=10), threading.Event()
    wanted.set()
    put(outbox, b"x" * 20)  # one block may be larger than the room
    done = threading.Event()
    thread = threading.Thread(target=lambda: (put(outbox, b"y", generation=2, wanted=wanted.is_set), done.set()))
    thread.start()
    assert not done.wait(0.2)
    assert outbox.size == 20
    {"taken": outbox.take, "stale": wanted.clear, "dropped": lambda: outbox.drop("curve", 2), "closed": outbox.close}[end]()
    assert done.wait(PATIENCE)
    thread.join()
    assert outbox.take() == {"taken": b"y", "stale": b"x" * 20, "dropped": b"y", "closed": b""}[end]


def test_whoever_reads_is_woken_and_the_one_before_leaves():
    outbox, woken = Outbox(), []

    def first():
        woken.append("first")

    def second():
        woken.append("second")

    put(outbox, b"before")
    outbox.attach(first)
    put(outbox, b"a")
    assert (woken, outbox.is_attached(first)) == (["first", "first"], True)
    outbox.attach(second)
    assert woken[2:] == ["first", "second"]
    outbox.detach(first)
    assert outbox.is_attached(second)
    put(outbox, b"b")
    assert woken[4:] == ["second"]
    outbox.detach(second)
    put(outbox, b"c")
    assert len(woken) == 5
    assert outbox.take() == b"beforeabc"


@pytest.mark.parametrize("end", ["taken over", "left"])
def test_a_stream_that_is_over_takes_nothing_from_the_next(end):
    async def run() -> tuple[list[bytes], bytes]:
        outbox, sent, is_open, leaves = Outbox(), [], asyncio.Event(), asyncio.Event()

        async def receive():
            await leaves.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message.get("body", b""))

        stream = asyncio.create_task(EventStream(outbox, is_open.set, lambda: None)({}, receive, send))
        await asyncio.wait_for(is_open.wait(), PATIENCE)
        await asyncio.sleep(0)
        if end == "left":
            leaves.set()
            await asyncio.sleep(0)
        put(outbox, b"a block")
        if end == "taken over":
            outbox.attach(lambda: None)
        await asyncio.wait_for(stream, PATIENCE)
        return sent, outbox.take()

    sent, left = asyncio.run(run())
    assert b"a block" not in sent
    assert left == b"a block"


def test_what_computes_is_not_imported_before_the_page_is_there():
    code = f"""
import sys
import tcpscape.cli.explore, tcpscape.web.serve
from tcpscape.web.app import Application
app = Application()
assert "controls" in app.api.find("start").answer(app.pages)
print(*(name for name in {LATER!r} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE * 3, check=True)
    assert done.stdout.split() == []
