"""A result as Markdown: path, answer, table and caveats, as the screen of the command has them."""

from __future__ import annotations

from tcpscape.campaign import answer
from tcpscape.campaign.outcome import Outcome


def write(outcome: Outcome) -> bytes:
    """The screen of an outcome as Markdown."""
    return answer.screen(outcome).markdown().encode()
