"""What a page has opened beside its state: a measurement, a result directory, a scenario or a campaign.

It comes from the command line (:func:`of_argument`: `tcpscape explore ARG`) or from the page by upload (`uploads`), never by a path that the page
names. `base` says what all of them have in common.
"""

from __future__ import annotations

from pathlib import Path

from tcpscape.campaign import source as campaigns
from tcpscape.interchange import observing
from tcpscape.reading import files as reading
from tcpscape.scenario import files as scenarios
from tcpscape.store.database import FILE
from tcpscape.studies import study as studies
from tcpscape.web.opened.base import Measurement, Opened
from tcpscape.web.opened.results import Results
from tcpscape.web.opened.setup import Setup

__all__ = ["Measurement", "Opened", "Results", "Setup", "of_argument"]


def of_argument(text: str) -> Opened:
    """What a word of the command line names: a name of the gallery, a study, a scenario's or campaign's file, a result directory, a measurement.

    :raises TcpscapeError: one line, where it is none of these.
    """
    path = Path(text)
    if path.suffix.lower() in campaigns.SUFFIXES or text in (*scenarios.gallery(), *campaigns.gallery()):
        return Setup.of_source(text)
    if text in studies.names() and not reading.exists(text, observing.SOURCE):
        return Setup.of_study(text)
    if reading.folder(text, observing.SOURCE):
        return Results(path, text)
    if path.name == FILE:
        return Results(path.parent, text)
    return Measurement(path, text)
