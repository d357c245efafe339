"""The pages that are open: each has a stream of events, and at most one question of each kind that is being answered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

from tcpscape.errors import TcpscapeError, refuse
from tcpscape.web import blocks, problems
from tcpscape.web.blocks import Block
from tcpscape.web.problems import BusyError
from tcpscape.web.questions.base import Question
from tcpscape.web.state import State
from tcpscape.web.work import Cancelled, Pool, Work

MOST_PAGES = 32
"""Pages that are open at a time."""


class Page:
    """One open page (a tab)."""

    def __init__(self, pool: Pool, loop: asyncio.AbstractEventLoop, opened: Any = None) -> None:
        self._pool, self._loop, self._named = pool, loop, opened
        self._events: asyncio.Queue[str | None] = asyncio.Queue()
        self._asked: dict[str, Work] = {}
        self.opened = opened
        """What the page has opened; None where nothing is."""

    def ask(self, question: Question, generation: int, state: State) -> None:
        """Begins to answer a question; an older one of its kind ends."""
        kind = question.kind
        self.cancel(kind)
        work = self._asked[kind] = Work(self._pool, lambda block: self._send(kind, generation, block))
        threading.Thread(target=self._answer, args=(question, generation, state, work), daemon=True).start()

    def cancel(self, kind: str) -> None:
        """Ends the question of this kind, if there is one."""
        if older := self._asked.pop(kind, None):
            older.cancel()

    def _answer(self, question: Question, generation: int, state: State, work: Work) -> None:
        try:
            question.answer(state, work, self.opened)
            work.send(Block("end"))
        except Cancelled:
            return
        except TcpscapeError as e:
            self._send(question.kind, generation, Block("error", problems.document(str(e))))
        except Exception as e:
            self._send(question.kind, generation, Block("error", problems.report(e)))

    def _send(self, kind: str, generation: int, block: Block) -> None:
        self._loop.call_soon_threadsafe(self._events.put_nowait, blocks.event(block.encode(kind, generation)))

    def hold(self, opened: Any) -> None:
        """Takes what the page has opened now, None for nothing; what it had before is closed, unless the command line named it."""
        before, self.opened = self.opened, opened
        if before is not None and before is not self._named and before is not opened:
            before.close()

    async def events(self) -> AsyncIterator[str]:
        """The page's events as they come."""
        yield "retry: 500\n\n"
        while (event := await self._events.get()) is not None:
            yield event

    def close(self) -> None:
        """Ends its questions and its stream."""
        for kind in list(self._asked):
            self.cancel(kind)
        self.hold(None)
        self._events.put_nowait(None)


class Pages:
    """All open pages of this process, and what they share."""

    def __init__(self, opened: Any = None) -> None:
        """`opened`: what the command line named, which every page begins with."""
        self.opened = opened
        self.pool = Pool()
        self._pages: dict[str, Page] = {}
        self._lock = threading.Lock()

    def page(self, name: str) -> Page:
        """The page of this name, a new one where there is none.

        :raises BusyError: there are too many.
        """
        with self._lock:
            if name not in self._pages and len(self._pages) >= MOST_PAGES:
                refuse("page", f"{MOST_PAGES} pages are open", "close some of them", BusyError)
            return self._pages.setdefault(name, Page(self.pool, asyncio.get_running_loop(), self.opened))

    def close(self) -> None:
        """Ends every question and every stream; called in the loop."""
        with self._lock:
            for page in self._pages.values():
                page.close()
            self._pages.clear()
