"""What the first question would wait for: the modules that it computes with, imported while the page is being loaded."""

from __future__ import annotations

from tcpscape.errors import TcpscapeError
from tcpscape.web.questions import KINDS
from tcpscape.web.routes import Api
from tcpscape.web.state import State
from tcpscape.web.work import Cancelled, Pool, Work

FIRST = "answer"
"""The question that a page asks as soon as it is there."""
SHORT = {"duration": "100ms"}
"""The state of the question that is answered to nobody."""


def warm(pool: Pool, api: Api) -> None:
    """Answers a small question to nobody, and imports what the others and the requests need."""
    try:
        KINDS[FIRST].model_validate({"seeds": 3}).answer(State(**SHORT), Work(pool, lambda block: None), None)
        for name in KINDS:
            KINDS[name]
        api.load()
    except (Cancelled, TcpscapeError):  # whoever asks gets the same, and is told
        return
