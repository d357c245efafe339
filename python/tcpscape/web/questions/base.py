"""What a question is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Any, ClassVar

from pydantic import Field

from tcpscape.scenario.fields import Spec
from tcpscape.web.state import State
from tcpscape.web.work import Work

Seed = Annotated[int, Field(ge=0, lt=2**53)]
"""The seed of a trial that the page names: a whole number that JavaScript has exactly."""


class Question(Spec, ABC):
    """What a view asks about the page's state; the fields of a subclass are its options.

    The page sees the blocks of :meth:`answer` in the order in which they are sent, then a block `end` (or `error` with `field`, `problem`, `fix` and
    `text`), which the caller sends.
    """

    kind: ClassVar[str]
    """Its name in requests and blocks; of each kind, a page has one question at a time."""

    @abstractmethod
    def answer(self, state: State, work: Work, opened: Any) -> None:
        """Runs what is needed and sends blocks, the coarse ones first.

        :param opened: what the page has opened (a capture, a directory), None where nothing is.
        :raises TcpscapeError: one line for the page, for a state or an option that makes no sense.
        """
