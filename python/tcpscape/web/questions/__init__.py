"""What the views of the page ask: a file for each kind, which :data:`KINDS` registers.

Adding one: a subclass of :class:`~tcpscape.web.questions.base.Question` in its own file and a line here. Its options are fields of the class, as
text or plain values as the page sends them; `answer` runs in a thread of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from tcpscape.web.questions.base import Question


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


KINDS = Kinds({
    "answer": "answer.Answer", "curve": "curve.Curve", "map": "map.Map", "inside": "inside.Inside", "detail": "inside.Detail", "mix": "mix.Mix",
    "measure": "measure.Measure", "kept": "kept.KeptResults", "check": "check.Check",
})  # fmt: skip
"""Every kind of question by its name."""
