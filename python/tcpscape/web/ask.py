"""Asking a question, and ending one: the requests `ask` and `cancel`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tcpscape.errors import refuse, shown
from tcpscape.scenario.fields import validate
from tcpscape.web.problems import MissingError
from tcpscape.web.questions import KINDS
from tcpscape.web.questions.base import Question
from tcpscape.web.routes import Asked, Context, Post
from tcpscape.web.state import of_page

Generation = Annotated[int, Field(ge=0, lt=2**53)]
"""A page's counter of the questions of a kind."""


class Ask(Asked):
    """A question about the page's state."""

    kind: str
    generation: Generation
    """How often the page has asked this kind of question: it comes back in every block."""
    state: dict[str, Any]
    options: dict[str, Any] = Field(default_factory=dict)


class Cancel(Asked):
    """The end of questions whose answers nobody looks at any more."""

    kind: str
    generation: Generation
    """Those that were asked before it are ended; they may come after this request."""


def ask(context: Context, asked: Ask) -> None:
    """Begins to answer; the blocks go over the page's stream."""
    question = validate(_kind(asked.kind), asked.options, "the options")
    context.page.ask(question, asked.generation, of_page(asked.state))


def cancel(context: Context, asked: Cancel) -> None:
    """Ends the question of this kind, unless it was asked after that."""
    context.page.cancel(_kind(asked.kind).kind, asked.generation)


def _kind(name: str) -> type[Question]:
    if name not in KINDS:
        refuse("kind", f"{shown(name)} is no question", f"choose {', '.join(KINDS)}", MissingError)
    return KINDS[name]


ROUTES = (Post("ask", Ask, ask), Post("cancel", Cancel, cancel))
