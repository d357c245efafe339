"""What can be run: a scenario, a campaign or a study, as the state that it stands for and the axes along which it goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from tcpscape.campaign import source as campaigns
from tcpscape.campaign.campaign import Campaign
from tcpscape.controls import spelling
from tcpscape.errors import refuse
from tcpscape.reading import documents
from tcpscape.reading import files as reading
from tcpscape.reading.files import Origin
from tcpscape.scenario import files as scenarios
from tcpscape.studies import study as studies
from tcpscape.web.opened.base import Opened
from tcpscape.web.routes import OpenedDocument
from tcpscape.web.state import of_campaign, trusted

OWN_CODE = ("an uploaded file cannot bring code of its own", "name a congestion control of `tcpscape cca list`, or open the file on the command line")
"""Why a Python class is refused, and what to do."""


class Setup(Opened):
    """A scenario, a campaign or a study."""

    def __init__(self, name: str, about: str, campaign: Campaign) -> None:
        """:raises TcpscapeError: one line, for a campaign that makes no sense."""
        super().__init__(name)
        self._about, self.campaign = about, campaign
        cases = campaign.cases()
        self.state, self.remarks = of_campaign(campaign)
        self.controls = tuple(dict.fromkeys(flow.cca for case in cases for flow in case.scenario.flows))
        """Congestion controls of all its flows, those of mixtures too."""

    @classmethod
    def of_source(cls, text: str) -> Setup:
        """A scenario or a campaign: a file that the user named, or a name of the gallery. :raises TcpscapeError: one line, where it is none."""
        campaign = campaigns.campaign(text, {}, {})
        made = cls(text, campaign.about or f"the {'campaign' if _moves(campaign) else 'scenario'} {campaign.name}", campaign)
        trusted.update(cca for cca in made.controls if spelling.is_class(cca))
        return made

    @classmethod
    def of_study(cls, name: str) -> Setup:
        """The first part of a published study. :raises TcpscapeError: one line, where it cannot run."""
        study = studies.get(name)
        part = study.parts[0]
        return cls(name, f"the study {name}, part {part.name}" if len(study.parts) > 1 else f"the study {name}", part)

    @classmethod
    def of_text(cls, raw: bytes, name: str) -> Setup:
        """An uploaded YAML or TOML file, which may name no file of this machine and no code.

        :raises TcpscapeError: one line, where it is no scenario and no campaign, or names what it may not.
        """
        origin = Origin(name, scenarios.SCENARIO)
        text = reading.decoded(raw, origin)
        values = (documents.from_toml if name.lower().endswith(".toml") else documents.from_yaml)(text, origin)
        if not isinstance(values, dict):
            origin.refuse("is no mapping of fields")
        _refuse_code(values)
        with reading.confined():
            given = {"name": PurePath(name).stem or "upload", **values}
            campaign = Campaign.of(given if campaigns.is_campaign(values) else {"name": given["name"], "scenario": given}, name)
            made = cls(name, campaign.about or f"the {'campaign' if _moves(campaign) else 'scenario'} {campaign.name}", campaign)
        _refuse_code(list(made.controls))
        return made

    def document(self) -> OpenedDocument:
        """What the page shows of it at once."""
        axes = {name: list(levels) for name, levels in _moves(self.campaign).items()}
        return OpenedDocument(kind="setup", name=self.name, about=self._about, state=self.state, remarks=list(self.remarks), axes=axes)


def _moves(campaign: Campaign) -> dict[str, tuple[str, ...]]:
    """The axes of a campaign, those of its groups too, without the congestion controls."""
    axes = dict(campaign.axes)
    for group in campaign.zip:
        axes |= group
    return {name: levels for name, levels in axes.items() if name != "cca"}


def _refuse_code(values: Any) -> None:
    """Refuses a Python class anywhere in plain values. :raises TcpscapeError: one line."""
    for text in _texts(values):
        if any(spelling.is_class(part.strip()) for part in text.split(",")):
            refuse("cca", *OWN_CODE)


def _texts(values: Any) -> Iterator[str]:
    """Every text among plain values."""
    if isinstance(values, str):
        yield values
    elif isinstance(values, dict):
        for item in values.values():
            yield from _texts(item)
    elif isinstance(values, list):
        for item in values:
            yield from _texts(item)
