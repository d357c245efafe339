"""The documents of single answers: edges of cliffs, bounds on latency spikes, comparisons, validations, an advice, and what a machine can run."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from tcpscape.engines.host.survey import Survey


class FindingDocument(TypedDict):
    """A line of what a machine can run."""

    what: str
    """What was looked at."""
    found: str
    """What is there, or what is wrong."""
    to_do: str
    """What to do about it; empty where nothing is needed."""


class DoctorDocument(TypedDict):
    """What a machine can run, and why not. The document of `tcpscape doctor --json`."""

    format: Literal[1]
    """Format of this document."""
    version: str
    """Version of tcpscape."""
    findings: list[FindingDocument]
    """The lines that the command prints."""
    live: Survey
    """What this machine allows the live engine, and how well, as measured."""
