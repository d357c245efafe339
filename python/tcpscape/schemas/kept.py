"""The documents in directories of results and of kernels."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict


class CellRecord(TypedDict):
    """A cell of a manifest."""

    at: dict[str, str]
    """Axis → value as it was written."""
    cca: str
    """Congestion controls of the flows."""
    engine: str
    """Engine that ran it."""
    until_precise: bool
    """Whether trials were added until an interval was narrow enough."""
    command: str
    """The command line that measured it."""
    scenarios: list[dict[str, Any]]
    """The scenario of each value of what is pooled, as `tcpscape schema scenario` describes it."""
    runs: list[list[str]]
    """Of each of these scenarios the addresses of its trials, by their seeds."""


class ManifestDocument(TypedDict):
    """What a result directory holds of one campaign, or of one part of a study: a row of the table `manifests` of `results.sqlite`."""

    format: Literal[2]
    """Format of a manifest. In the first one jitter without a distribution is uniform."""
    kind: Literal["run", "sweep", "study", "advise"]
    """The command that measured it."""
    name: str
    """Name of the study or of the campaign."""
    part: str
    """Part of the study; empty for a campaign."""
    study: dict[str, Any] | None
    """The study's own fields, as `tcpscape schema study` describes them; null for a campaign."""
    tcpscape: str
    """Version of tcpscape."""
    campaign: dict[str, Any]
    """The campaign, as `tcpscape schema campaign` describes it."""
    base: dict[str, Any]
    """The values of its path, with ${axis} in them."""
    versions: dict[str, str]
    """Engine → its version."""
    cells: list[CellRecord]
    """Every cell, with the addresses of its trials."""


class KernelDocument(TypedDict):
    """A kernel that is built: `kernel.json` in its directory."""

    format: Literal[1]
    """Format of a kernel's record."""
    name: str
    """What it is called, virtual:NAME."""
    path: str
    """The executable."""
    release: str
    """The release, as `uname -r` prints it."""
    digest: str
    """SHA-256 of the executable."""
    hz: int
    """Ticks a second."""
    source: str
    """The tree or tarball that it was built from."""
    source_digest: str | None
    """SHA-256 of the tarball; null for a tree."""
    describe: str | None
    """`git describe` of the tree; null where there is none."""
    config_digest: str
    """SHA-256 of the configuration."""
    compiler: str
    """The compiler with its version."""
    created: str
    """When the first build under this name was ready, UTC."""
    built: str
    """When this executable was built, UTC."""
    seconds: float
    """How long that took, s."""
    size: int
    """Bytes of the executable."""
    congestion_controls: list[str]
    """Congestion controls that it has."""
    qdiscs: list[str]
    """Queues that it has."""
    recipe: str
    """Digest of tcpscape's own part of the configuration."""
