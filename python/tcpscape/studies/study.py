"""The catalogue of published studies: one YAML each with its conditions, its published numbers and the claims they make.

A study is one or more campaigns (its parts). The fields at the top of the file are those of a campaign (:mod:`tcpscape.campaign.campaign`) and
hold for every part; a part has the fields that differ. `quick` has the fields that differ in a quick look.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import Field, field_validator, model_validator

from tcpscape.campaign.campaign import Campaign
from tcpscape.errors import StudyError, instead, refuse, shown
from tcpscape.formats import without
from tcpscape.reading import packaged
from tcpscape.scenario import files
from tcpscape.scenario.fields import Name, Spec, validate

WORKS: Mapping[str, str] = {
    "jitter-cliff": "The Jitter Cliff: When TCP Goes Chaotic (JitterTrap, part 2, December 2025)",
    "bbr-vs-cubic": "BBR vs CUBIC Congestion Control (JitterTrap, verified results, 29 December 2025)",
    "jittertrap-part-1": "Video over TCP: zero windows, retransmissions and the masking effect (JitterTrap, part 1, December 2025)",
    "jittertrap-ecn": "Pathological Porcupines, ECN presets (JitterTrap repository, 26 December 2025)",
    "fourteen-ccas": "TCP Congestion Control Performance under Starlink-like Impairments (Alzwai, Libyan Academy, 2025)",
    "one-percent-loss": "The Surprising Impact of 1% Packet Loss (Šanjta, Cisco ThousandEyes, RIPE)",
    "latency-spike-bound": "A Lower Bound on Latency Spikes for Capacity-Seeking Network Traffic (Teigen et al., 2022)",
    "lakshman-1997": "The Performance of TCP/IP for Networks with High Bandwidth-Delay Products and Random Loss (Lakshman, Madhow, 1997)",
    "bic-2004": "Binary Increase Congestion Control for Fast Long-Distance Networks (Xu, Harfoush, Rhee, 2004)",
    "hybla-2004": "TCP Hybla: a TCP Enhancement for Heterogeneous Networks (Caini, Firrincieli, 2004)",
    "rfc9438": "CUBIC for Fast and Long-Distance Networks (RFC 9438, 2023)",
    "bbr-2017": "Experimental Evaluation of BBR Congestion Control (Hock, Bless, Zitterbart, 2017)",
    "wifi-2015": "The Good, the Bad and the WiFi: Modern AQMs in a Residential Setting (Høiland-Jørgensen, Hurtig, Brunstrom, 2015)",
    "rfc3449": "TCP Performance Implications of Network Path Asymmetry (RFC 3449, 2002)",
    "dctcp-2010": "Data Center TCP (Alizadeh et al., 2010)",
    "dctcp-2011": "Analysis of DCTCP: Stability, Convergence, and Fairness (Alizadeh, Javanmard, Prabhakar, 2011)",
    "incast-2009": "Safe and Effective Fine-grained TCP Retransmissions for Datacenter Communication (Vasudevan et al., 2009)",
    "tcpscape": "What these works could not see (tcpscape)",
}
"""The published works whose claims are checked."""


class Claim(Spec):
    """A statement of a published work, as a check on our own runs."""

    text: str
    """The published text, quoted."""
    work: str
    """One of :data:`WORKS`."""
    measure: str
    """What is measured: a name of :mod:`tcpscape.studies.measures`."""
    part: str = ""
    """Part of the study; the first where it is left out."""
    metric: str = "goodput"
    """What is measured of a trial, a name of `tcpscape metric list`."""
    cca: str | None = None
    """Congestion control of the cells."""
    at: dict[str, str] = Field(default_factory=dict)
    """The cells: axis → value, or several values (`8ms, 10ms`, `8..12ms/2ms`)."""
    where: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """Of these only the cells where arithmetic over the axes is in a range: `{jitter / rtt: [0.3, inf]}`."""
    but: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Cells left out: axis → values."""
    over: dict[str, str] = Field(default_factory=dict)
    """What differs in the cell divided by: axis → value, `cca` and `part` among them."""
    every: bool = False
    """Whether the claim is about every cell at `cca` and `at`, not about a single one."""
    value: str | None = None
    """A level of an axis, where the claim names one."""
    low: float = float("-inf")
    """The least value that counts as reproduced, in `unit`."""
    high: float = float("inf")
    """The greatest value that counts as reproduced, in `unit`."""
    near: str = ""
    """Instead of a range: the one number that the work gives, as printed; :mod:`tcpscape.studies.result` defines how near is near enough."""
    runs: int = 10
    """Runs behind this number."""
    unit: str = ""
    """Unit of the range as published, where it is not the metric's (:data:`tcpscape.studies.known.FACTORS`)."""
    setup: str = ""
    """Why the published number is what it is, where the set-up explains it; for the reader."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Further options of the measure, see its docstring."""

    @field_validator("at", "over", mode="before", json_schema_input_type=dict[str, Any])
    @classmethod
    def _texts(cls, value: Any) -> Any:
        return {k: ", ".join(map(str, v)) if isinstance(v, list) else str(v) for k, v in value.items()} if isinstance(value, dict) else value

    @field_validator("near", mode="before", json_schema_input_type=str | float)
    @classmethod
    def _as_printed(cls, value: Any) -> Any:
        return str(value)

    @field_validator("but", mode="before", json_schema_input_type=dict[str, Any])
    @classmethod
    def _lists(cls, value: Any) -> Any:
        return {k: [str(x) for x in (v if isinstance(v, list) else [v])] for k, v in value.items()} if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _sensible(self) -> Claim:
        if self.work not in WORKS:
            refuse("work", f"{shown(self.work)} is unknown", f"choose {', '.join(WORKS)}", StudyError)
        if self.near and (self.low, self.high) != (float("-inf"), float("inf")):
            refuse("near", f"{shown(self.text)} has a range too", "leave one of them out", StudyError)
        return self


class Headline(Spec):
    """What the finding of a study and its matrix are about; :mod:`tcpscape.words.study` chooses what is left out here."""

    part: str = ""
    """Part of the study; the first where it is left out."""
    metric: str = ""
    """What is measured of a trial; goodput where it is left out."""
    statistic: str = ""
    """`retention` (mean over the mean at the lowest value of `across`), or a name of :data:`tcpscape.studies.known.STATISTICS`."""
    across: str = ""
    """The axis along the columns of the matrix, or `cca`."""
    at: dict[str, str] = Field(default_factory=dict)
    """Of the part only the cells at these values: axis → value."""
    of: str = ""
    """The axis that edges along `across` are a share of: `rtt`."""
    edges: str = ""
    """The part on a finer grid whose curves give these edges; without it they are read off the grid of `part`."""


class Study(Spec):
    """A published experiment."""

    name: Name
    """What it is called."""
    title: str
    """What it is about, one line."""
    source: str
    """The published work."""
    about: str
    """What was done, as prose."""
    pitfalls: tuple[str, ...] = ()
    """What a reader of the published numbers must know."""
    parts: tuple[Campaign, ...]
    """Its campaigns; without any, the fields at the top are one."""
    quick: dict[str, Any] = Field(default_factory=dict)
    """Fields of a campaign that differ in a quick look, for every part; under `parts`, for the part of each name."""
    published: tuple[str, ...] = ()
    """Files in `data/`."""
    shows: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Part → what its table shows besides the numbers published, `METRIC STATISTIC` (:data:`tcpscape.studies.known.STATISTICS`)."""
    figures: tuple[str, ...] = ()
    """Figures of the report, by their names in :mod:`tcpscape.plots`; none leaves the choice to the report."""
    headline: Headline = Headline()
    """What the finding and its matrix are about."""
    claims: tuple[Claim, ...]
    """What the work claims."""

    @model_validator(mode="before")
    @classmethod
    def _inherit(cls, data: Any) -> Any:
        """Gives the fields at the top of the file to every part."""
        if not isinstance(data, dict):
            return data
        data = without("study", data)
        shared = {k: v for k, v in data.items() if k in Campaign.model_fields and k not in ("name", "about")}
        own = {k: v for k, v in data.items() if k not in shared}
        parts = own.get("parts") or [{"name": data.get("name", "study")}]
        return {**own, "parts": [p if isinstance(p, Campaign) else {**shared, **p} for p in parts]}

    @model_validator(mode="after")
    def _parts_of_claims(self) -> Study:
        known = [p.name for p in self.parts]
        for claim in self.claims:
            for part in (claim.part, claim.over.get("part", "")):
                if part and part not in known:
                    refuse("claims", f"{shown(claim.text)} asks for part {shown(part)}", f"choose {', '.join(known)}", StudyError)
        for field, parts in (("shows", list(self.shows)), ("headline", [p for p in (self.headline.part, self.headline.edges) if p])):
            if stray := [part for part in parts if part not in known]:
                refuse(field, f"there is no part {shown(stray[0])}", f"choose {', '.join(known)}", StudyError)
        return self

    def changed(self, fields: Mapping[str, Any]) -> Study:
        """The same study with these fields of a campaign in every part, and those under `parts` in the part of each name."""
        own = fields.get("parts", {})
        shared = {k: v for k, v in fields.items() if k != "parts"}
        parts = tuple(Campaign.of({**p.to_dict(), **shared, **own.get(p.name, {})}, self.name) for p in self.parts)
        return self.model_copy(update={"parts": parts})

    def only(self, parts: Collection[str]) -> Study:
        """The same study with these parts, and the claims about them alone."""
        known = [p.name for p in self.parts]
        if unknown := [p for p in parts if p not in known]:
            refuse("part", f"{self.name} has no {shown(unknown[0])}", f"choose {', '.join(known)}", StudyError)
        about = [(c.part or known[0], c.over.get("part", c.part or known[0])) for c in self.claims]
        remaining = tuple(c for c, both in zip(self.claims, about, strict=True) if set(both) <= set(parts))
        claims = tuple(c if c.part else c.model_copy(update={"part": known[0]}) for c in remaining)
        headline = self.headline if (self.headline.part or known[0]) in parts else Headline()
        headline = headline if headline.edges in parts else headline.model_copy(update={"edges": ""})
        kept = tuple(p for p in self.parts if p.name in parts)
        return self.model_copy(update={"parts": kept, "claims": claims, "headline": headline})


def names() -> list[str]:
    """The names of all studies, in order."""
    return packaged.names("studies", ".yaml")


def get(name: str) -> Study:
    """The study called `name`. :raises StudyError: for an unknown name."""
    if name not in names():
        refuse("study", f"{shown(name)} is unknown", instead(name, names()), StudyError)
    return of(read(name), name)


def read(name: str) -> dict[str, Any]:
    """The fields of a study's YAML file, plain values."""
    fields: dict[str, Any] = files.read_yaml(packaged.text(f"studies/{name}.yaml"), name)
    return fields


def of(fields: Mapping[str, Any], source: str) -> Study:
    """A study from plain values; `source` is named in errors."""
    study: Study = validate(Study, dict(fields), source)
    return study
