"""A result as Markdown: path, answer, table and caveats, as the screen of the command has them, and with the columns that no screen has room for."""

from __future__ import annotations

from tcpscape.campaign import answer
from tcpscape.campaign.outcome import Outcome


def write(outcome: Outcome) -> bytes:
    """The screen of an outcome as Markdown, its table as wide as it can be."""
    return answer.screen(outcome, wide=True).markdown().encode()
