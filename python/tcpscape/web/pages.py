"""The pages that are open: each has a stream of events, and at most one question of each kind that is being answered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

from tcpscape.errors import TcpscapeError
from tcpscape.web import blocks
from tcpscape.web.blocks import Block
from tcpscape.web.questions.base import Question
from tcpscape.web.state import State
from tcpscape.web.work import Cancelled, Pool, Work


class Page:
    """One open page (a tab)."""

    def __init__(self, pool: Pool, loop: asyncio.AbstractEventLoop) -> None:
        self._pool, self._loop = pool, loop
        self._events: asyncio.Queue[str] = asyncio.Queue()
        self._asked: dict[str, Work] = {}
        self.opened: Any = None
        """What the page has opened; None where nothing is."""

    def ask(self, question: Question, generation: int, state: State) -> None:
        """Begins to answer a question; an older one of its kind ends."""
        kind = question.kind
        if older := self._asked.pop(kind, None):
            older.cancel()
        work = self._asked[kind] = Work(self._pool, lambda block: self._send(kind, generation, block))
        threading.Thread(target=self._answer, args=(question, generation, state, work), daemon=True).start()

    def _answer(self, question: Question, generation: int, state: State, work: Work) -> None:
        try:
            question.answer(state, work, self.opened)
            work.send(Block("end"))
        except Cancelled:
            return
        except TcpscapeError as e:
            self._send(question.kind, generation, Block("error", {"text": str(e)}))

    def _send(self, kind: str, generation: int, block: Block) -> None:
        self._loop.call_soon_threadsafe(self._events.put_nowait, blocks.event(block.encode(kind, generation)))

    async def events(self) -> AsyncIterator[str]:
        """The page's events as they come."""
        yield "retry: 500\n\n"
        while True:
            yield await self._events.get()
