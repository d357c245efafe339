"""Every kind of JSON document, and its schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tcpscape.campaign.campaign import Campaign
from tcpscape.emulation.summary import EmulationDocument
from tcpscape.formats import FIELD, FORMATS
from tcpscape.scenario.scenario import PARTS, Scenario
from tcpscape.schemas import answers, generator, kept, trials
from tcpscape.studies.study import Study
from tcpscape.words import advice, bound, calls, cliff, comparison, diagnosis, divergence

STAMP = "Format of the document; a reader that does not know the number must refuse it."
"""Description of the field `format` of what users write."""


@dataclass(frozen=True, slots=True)
class Document:
    """A kind of JSON document."""

    name: str
    about: str
    """What it is and where it comes from, one line."""
    kind: Any
    """The type whose fields it has."""
    is_written: bool = False
    """Whether users write it, as YAML, TOML or JSON; any other is printed."""
    finite: bool = False
    """Whether its numbers are null where they are not finite."""
    inherited: Any = None
    """The type of whose fields those at the top are shared by all `parts`, which may be left out then."""

    one_of: tuple[str, ...] = ()
    """Fields of which at least one must be there."""

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema (2020-12), which allows no fields besides those of this version."""
        schema = generator.of(self.kind, "validation" if self.is_written else "serialization", finite=self.finite)
        if self.inherited:
            shared = generator.of(self.inherited, "validation")
            schema["properties"] = shared["properties"] | schema["properties"]
            schema["$defs"] = shared.get("$defs", {}) | schema["$defs"]
            schema["required"] = [name for name in schema["required"] if name != "parts"]
        if self.one_of:
            schema["anyOf"] = [{"required": [name]} for name in self.one_of]
        if self.is_written:
            stamp = {FIELD: {"const": FORMATS[self.name], "description": STAMP}}
            schema["properties"] = {**stamp, **schema["properties"]}
        for part in (schema, *schema.get("$defs", {}).values()):
            if "properties" in part:
                part["additionalProperties"] = False
        body = {key: value for key, value in schema.items() if key not in ("title", "$defs")}
        head = {"$schema": generator.DIALECT, "$id": f"urn:tcpscape:schema:{self.name}:{FORMATS[self.name]}", "title": f"tcpscape {self.name}"}
        return {**head, **body, **({"$defs": schema["$defs"]} if "$defs" in schema else {})}


DOCUMENTS: Mapping[str, Document] = {
    document.name: document
    for document in (
        Document("scenario", "A scenario file: path, flows, kernel, duration.", Scenario, is_written=True, one_of=(*PARTS, "links")),
        Document("campaign", "A campaign file for tcpscape sweep: a path and its axes.", Campaign, is_written=True),
        Document("study", "The definition of a published study.", Study, is_written=True, inherited=Campaign),
        Document("trial", "A line of tcpscape run --json.", trials.TrialDocument),
        Document("cell", "A line of tcpscape sweep --json.", trials.CellDocument),
        Document("check", "A line on stderr for each --check, with --json.", trials.CheckDocument),
        Document("advice", "tcpscape advise --json, and advice.json.", advice.AdviceDocument, finite=True),
        Document("calls", "tcpscape advise --goal calls --json.", calls.CallsDocument, finite=True),
        Document("edge", "A line of tcpscape cliff --json.", cliff.EdgeDocument),
        Document("bound", "tcpscape bound --json.", bound.BoundDocument),
        Document("comparison", "tcpscape compare --json.", comparison.ComparisonDocument),
        Document("validation", "summary.json of tcpscape validate.", divergence.ValidationDocument, finite=True),
        Document("diagnosis", "tcpscape diagnose --json.", diagnosis.DiagnosisDocument, finite=True),
        Document("emulation", "tcpscape emulate --json.", EmulationDocument),
        Document("manifest", "What results.sqlite says of a campaign (table manifests).", kept.ManifestDocument),
        Document("kernel", "kernel.json of a kernel for the virtual engine.", kept.KernelDocument),
        Document("doctor", "tcpscape doctor --json.", answers.DoctorDocument),
    )
}
"""Name → the kind of document, in the order of the list that `tcpscape schema` prints."""
