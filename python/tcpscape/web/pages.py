"""The pages that are open: each has a stream of events, and at most one question of each kind that is being answered.

A page whose stream is closed for some seconds is taken for gone: its questions end. It is remembered longer, with what it has opened, for when it
comes back: a machine that slept, a browser that put the tab aside.
"""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from typing import Any

from tcpscape.errors import TcpscapeError, refuse
from tcpscape.web.page import BusyError, bug_document, problem_document
from tcpscape.web.pool import Cancelled, Pool, Work
from tcpscape.web.questions import Question
from tcpscape.web.state import State
from tcpscape.web.stream import Block, Outbox, event

MOST_PAGES = 32
"""Pages that are remembered at a time."""
MOST_QUESTIONS = 96
"""Questions that are answered at a time, of all pages; one that was cancelled counts until it has noticed."""
GONE_S = 5.0
"""From here on after its stream was closed, a page is gone and its questions end, s."""
FORGOTTEN_S = 900.0
"""From here on it is forgotten, with what it has opened, s."""


class Page:
    """One open page (a tab)."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._lock = threading.Lock()
        self._asked: dict[str, tuple[int, Work | None]] = {}
        """Kind → the generation before which nothing is answered any more, and the work of the newest question."""
        self._timer: asyncio.TimerHandle | None = None
        self.outbox = Outbox()
        """The blocks on their way to the page."""
        self.opened = pages.opened
        """What the page has opened; None where nothing is."""
        self.gone_since: float | None = time.monotonic()
        """Since when it has no stream, by the monotonic clock, s; None where it has one."""

    def ask(self, question: Question, generation: int, state: State) -> None:
        """Begins to answer a question; an older one of its kind ends. One that is older than what is asked already comes too late and is dropped.

        :raises BusyError: too many are being answered.
        """
        kind = question.kind
        with self._lock:
            newest, older = self._asked.get(kind, (-1, None))
            if generation < newest:
                return
            work = Work(self._pages.pool, lambda block: self._send(kind, generation, there(), block), self)
            there = weakref.ref(work)  # a work that held itself would stay, with what its question knows, until garbage is next collected
            self._pages.begin_question()
            self._asked[kind] = generation, work
        if older:
            older.cancel()
        self.outbox.drop(kind, generation)
        threading.Thread(target=self._answer, args=(question, generation, state, work), daemon=True).start()

    def cancel(self, kind: str, before: int | None = None) -> None:
        """Ends the question of this kind, if there is one.

        :param before: questions of earlier generations alone, those too that are still on their way and come after this; None: the newest one.
        """
        with self._lock:
            newest, work = self._asked.get(kind, (-1, None))
            if before is not None:
                if before <= newest:
                    return
                self._asked[kind] = before, work
        if work:
            work.cancel()
        self.outbox.drop(kind, newest + 1)

    def _answer(self, question: Question, generation: int, state: State, work: Work) -> None:
        """Answers, and sends what ends an answer, unless nobody wants it any more."""
        try:
            question.answer(state, work, self.opened)
            last = Block("end")
        except Cancelled:
            return
        except TcpscapeError as e:
            last = Block("error", problem_document(e))
        except Exception as e:
            last = Block("error", bug_document(e))
        finally:
            self._pages.end_question()
        if not work.is_over:
            self._send(question.kind, generation, work, last)

    def _send(self, kind: str, generation: int, work: Work | None, block: Block) -> None:
        """Puts a block into the outbox; waits where it is full."""
        data = event(block.encode(kind, generation)).encode()
        self.outbox.put(kind, generation, data, lambda: self._asked[kind][0] == generation and work is not None and not work.is_over)

    def hold(self, opened: Any) -> None:
        """Takes what the page has opened now, None for nothing; what it had before is closed, unless the command line named it."""
        with self._lock:
            before, self.opened = self.opened, opened
        if before is not None and before is not self._pages.opened and before is not opened:
            before.close()

    def arrive(self) -> None:
        """The page's stream is open; called in the loop."""
        self.gone_since = None
        self._wait(None)

    def leave(self) -> None:
        """Its stream is closed, or has not been opened yet; called in the loop."""
        self.gone_since = time.monotonic()
        self._wait(GONE_S)

    def _wait(self, seconds: float | None) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.end_questions) if seconds is not None else None

    def end_questions(self) -> None:
        """Ends what is being answered, and drops what is on its way."""
        for kind in list(self._asked):
            self.cancel(kind)

    def close(self) -> None:
        """Ends the page: its questions, its stream, and what it has opened."""
        if self._timer:
            self._timer.cancel()
        self.end_questions()
        self.outbox.close()
        self.hold(None)


class Pages:
    """All pages of this process, and what they share."""

    def __init__(self, opened: Any = None) -> None:
        """`opened`: what the command line named, which every page begins with."""
        self.opened = opened
        self.pool = Pool()
        self._pages: dict[str, Page] = {}
        self._questions = 0
        self._lock = threading.Lock()

    def page(self, name: str) -> Page:
        """The page of this name, a new one where there is none; called in the loop. :raises BusyError: there are too many."""
        if name not in self._pages:
            self._forget()
            if len(self._pages) >= MOST_PAGES:
                refuse("page", f"{MOST_PAGES} pages are open", "close some of them", BusyError)
            self._pages[name] = Page(self)
        page = self._pages[name]
        if page.gone_since is not None:  # it has no stream, and asks: that is as good as one that it has just left
            page.leave()
        return page

    def __len__(self) -> int:
        return len(self._pages)

    def _forget(self) -> None:
        """Forgets pages that are gone for good, and where there are too many, the one that is gone longest."""
        now = time.monotonic()
        gone = sorted((page.gone_since, name) for name, page in self._pages.items() if page.gone_since is not None)
        spare = len(self._pages) + 1 - MOST_PAGES
        for place, (since, name) in enumerate(gone):
            if now - since > FORGOTTEN_S or (place < spare and now - since > GONE_S):
                self._pages.pop(name).close()

    def begin_question(self) -> None:
        """Counts a question. :raises BusyError: there are too many."""
        with self._lock:
            if self._questions >= MOST_QUESTIONS:
                refuse("page", f"{MOST_QUESTIONS} questions are being answered", "close some pages, or wait a moment", BusyError)
            self._questions += 1

    def end_question(self) -> None:
        """Counts it no more."""
        with self._lock:
            self._questions -= 1

    @property
    def questions(self) -> int:
        """Questions that are being answered."""
        return self._questions

    def close(self) -> None:
        """Ends every question, every stream and the threads; called in the loop."""
        for page in self._pages.values():
            page.close()
        self._pages.clear()
        self.pool.close()
