"""The types of a manifest as it is in a database: what the disk gives back is judged before anything is made of it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tcpscape.reading.documents import field_problem


class _Stored(BaseModel):
    """Values of exactly the types that were written; fields of other versions are left alone."""

    model_config = ConfigDict(strict=True, extra="ignore")


Addresses = Annotated[list[str], Field(min_length=1)]
Fields = dict[str, Any]
"""Plain values of a scenario, a path or a campaign, which their own types judge."""


class StoredCell(_Stored):
    """A cell: where it stands, its command, and for each of its scenarios the addresses of the trials."""

    at: dict[str, str]
    cca: str
    engine: str
    until_precise: bool
    command: str
    scenarios: Annotated[list[Fields], Field(min_length=1)]
    runs: list[Addresses]

    @model_validator(mode="after")
    def _runs_of_each(self) -> StoredCell:
        if len(self.runs) != len(self.scenarios):
            raise ValueError(f"{len(self.runs)} lists of runs for {len(self.scenarios)} scenarios")
        return self


class StoredPart(_Stored):
    """A part of a study, of which only the name is read here."""

    name: str


class StoredStudy(_Stored):
    """A study's own fields, of which only the parts are read here."""

    parts: list[StoredPart]


class StoredCampaign(_Stored):
    """What was asked, of which only the axes are read here."""

    axes: dict[str, list[str]] = {}
    pool: list[str] = []


class StoredBase(_Stored):
    """The path's own values, of which only the flows are read here: of a scenario their fields, of conditions their number."""

    flows: list[Fields] | str | int = []


class StoredManifest(_Stored):
    """A manifest (:data:`tcpscape.campaign.manifest.Document`)."""

    kind: str
    name: str
    part: str
    study: StoredStudy | None
    tcpscape: str
    """The version that wrote it."""
    campaign: StoredCampaign
    base: StoredBase
    versions: dict[str, str]
    """Engine → its version."""
    cells: Annotated[list[StoredCell], Field(min_length=1)]


def problem(document: object) -> str:
    """What is wrong with the first field of a document that is; empty where it is a manifest."""
    try:
        StoredManifest.model_validate(document)
    except ValidationError as e:
        return field_problem(e)
    return ""
