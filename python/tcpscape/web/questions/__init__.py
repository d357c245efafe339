"""What the views of the page ask: a file for each kind, which :data:`KINDS` registers.

Adding one: a subclass of :class:`Question` in its own file and a line in :data:`KINDS`. Its options are fields of the class, as text or plain values
as the page sends them; `answer` runs in a thread of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any, ClassVar

from pydantic import Field
from typing_extensions import TypedDict

from tcpscape.scenario.fields import Spec
from tcpscape.web.pool import Work
from tcpscape.web.state import State

Seed = Annotated[int, Field(ge=0, lt=2**53)]
"""The seed of a trial that the page names: a whole number that JavaScript has exactly."""


class Progress(TypedDict):
    """How far a question is."""

    done: int
    """Trials."""
    total: int


class NoValues(TypedDict):
    """The values of a block that has columns alone."""


class Question(Spec, ABC):
    """What a view asks about the page's state; the fields of a subclass are its options.

    The page sees the blocks of :meth:`answer` in the order in which they are sent, then a block `end` (or `error` with `field`, `problem`, `fix` and
    `text`), which the caller sends.
    """

    kind: ClassVar[str]
    """Its name in requests and blocks; of each kind, a page has one question at a time."""
    blocks: ClassVar[Mapping[str, Any]]
    """Name of a block → the type of its values; the page's TypeScript is made of it (`scripts/page_contract.py`)."""

    @abstractmethod
    def answer(self, state: State, work: Work, opened: Any) -> None:
        """Runs what is needed and sends blocks, the coarse ones first.

        :param opened: what the page has opened (a capture, a directory), None where nothing is.
        :raises TcpscapeError: one line for the page, for a state or an option that makes no sense.
        """


class Kinds(Mapping[str, type[Question]]):
    """Kinds of questions by name, each imported when it is asked first: the page is there before what they compute with."""

    def __init__(self, places: Mapping[str, str]) -> None:
        """`places`: name → `module.Class` in this package."""
        self._places = places

    def __getitem__(self, name: str) -> type[Question]:
        module, _, kind = self._places[name].rpartition(".")
        found: type[Question] = getattr(import_module(f"{__name__}.{module}"), kind)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


KINDS = Kinds(
    {
        "answer": "answer.Answer",
        "curve": "curve.Curve",
        "map": "map.Map",
        "inside": "inside.Inside",
        "detail": "inside.Detail",
        "mix": "mix.Mix",
        "network": "network.Network",
        "measure": "measure.Measure",
        "kept": "kept.KeptResults",
        "check": "check.Check",
    }
)
"""Every kind of question by its name."""
