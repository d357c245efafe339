"""Every kind of JSON document, and its schema; docs/reference/formats.md is about all of them.

Here are the documents of trials and of what is computed of them, those in directories of results and of kernels, and those without a file in words/.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import NotRequired, TypedDict, is_typeddict

from tcpscape.campaign import checks
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.record import StoredManifest
from tcpscape.clauses import dossier
from tcpscape.emulation.summary import EmulationDocument
from tcpscape.engines.host.survey import Survey
from tcpscape.formats import FIELD, FORMATS
from tcpscape.kernels.cache import BuiltKernel
from tcpscape.scenario.scenario import PARTS, Scenario
from tcpscape.schemas import generator
from tcpscape.studies.study import Study
from tcpscape.trial import PRINTED, PRINTED_OF_SOME, Trial
from tcpscape.words import (
    advice,
    bound,
    calls,
    campaign,
    cliff,
    comparison,
    conformance,
    diagnosis,
    divergence,
    exact,
    hunks,
    kernel_diff,
    packetdrill,
    stress,
)


class Drops(TypedDict):
    """Packets that a queue dropped, by the reason."""

    loss: int
    """Packets lost at random."""
    limit: int
    """Packets that found the queue full."""
    oversize: int
    """Packets larger than the queue can ever send."""
    aqm: int
    """Packets that an active queue management dropped."""


class Delays(TypedDict):
    """How long packets stayed in a queue, ns."""

    count: int
    """Number of packets."""
    mean: float
    """Mean, ns."""
    sd: float
    """Standard deviation, ns."""
    min: int
    """Shortest, ns."""
    max: int
    """Longest, ns."""
    p50: int
    """Median, ns."""
    p95: int
    """95th percentile, ns."""
    p99: int
    """99th percentile, ns."""
    last: int
    """That of the last packet, ns."""


class QueueReport(TypedDict):
    """What a queue of the model's path did in a trial."""

    direction: Literal["forward", "reverse"]
    """Way of the data, or of the ACKs."""
    stage: int
    """Place on that way, from 0."""
    depth: int
    """0 is the hop's own queue, 1 its child, and so on."""
    at: str
    """The node whose egress it is: sender, router, receiver."""
    link: NotRequired[str]
    """The link whose queue it is, in a network: `chain/0` the first of the chain, `near/2` the access link at the left of the third pair of hosts."""
    pipe: NotRequired[int]
    """Its number in the samples of queues, in a network."""
    name: str
    """tc's name of the queue."""
    packets_in: int
    """Packets that arrived."""
    bytes_in: int
    """Bytes that arrived."""
    packets_out: int
    """Packets that left."""
    bytes_out: int
    """Bytes that left."""
    drops: Drops
    """Packets that it dropped, by the reason."""
    duplicated: int
    """Packets that it sent twice."""
    corrupted: int
    """Packets that it damaged."""
    marked: int
    """Packets that it marked with congestion experienced (ECN)."""
    reordered: int
    """Packets that it sent past others."""
    segmented: int
    """Super-packets that it cut into segments."""
    delay: Delays
    """How long packets stayed in it, ns."""
    backlog_packets: int
    """Packets in it at the end of the trial."""
    backlog_bytes: int
    """Bytes in it at the end of the trial."""
    peak_packets: int
    """Most packets that were in it at a time."""
    peak_bytes: int
    """Most bytes that were in it at a time."""


class KernelQueueReport(TypedDict):
    """What a qdisc of a real kernel counted in a trial, as `tc -s qdisc` shows it."""

    where: str
    """Way of the data or of the ACKs: forward, reverse."""
    stage: int
    """Place on that way, from 0."""
    kind: str
    """tc's name of the queue."""
    at: str
    """The node whose egress it is: sender, router, receiver."""
    link: NotRequired[str]
    """The link whose queue it is, in a network: `chain/0` the first of the chain, `near/2` the access link at the left of the third pair of hosts."""
    pipe: NotRequired[int]
    """Its number in the samples of queues, in a network."""
    sent_packets: int
    """Packets that left."""
    sent_bytes: int
    """Bytes that left."""
    dropped: int
    """Packets that it dropped."""
    marked: int
    """Packets that it marked with congestion experienced (ECN)."""
    overlimits: int
    """Times that it had to wait for its rate."""
    requeues: int
    """Packets that it put back."""
    backlog_packets: int
    """Packets in it at the end of the trial."""
    backlog_bytes: int
    """Bytes in it at the end of the trial."""


class HookCost(TypedDict, total=False):
    """What a congestion control in Python cost: real times, which differ from run to run."""

    acks: float
    """Calls of its `on_ack`."""
    hooks_s: float
    """Time in its hooks, s."""
    run_s: float
    """Time of the whole trial, s."""


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


TRIAL = generator.picked(Trial, (*PRINTED, *PRINTED_OF_SOME), PRINTED_OF_SOME, queues=list[QueueReport | KernelQueueReport], hook_cost=HookCost)
"""A line of `tcpscape run --json`."""
STAMP = "Format of the document; a reader that does not know the number must refuse it."
"""Description of the field `format` where a type does not have it: of what users write, and of a record with a format in front."""


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
        if FIELD not in schema["properties"]:
            schema["properties"] = {FIELD: {"const": FORMATS[self.name], "description": STAMP}, **schema["properties"]}
            there = schema["required"] if is_typeddict(self.kind) else [name for name in schema["properties"] if name != FIELD]
            schema |= {} if self.is_written else {"required": [FIELD, *there]}
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
        Document("trial", "A line of tcpscape run --json.", TRIAL),
        Document("cell", "A line of tcpscape sweep --json.", campaign.CellDocument),
        Document("check", "A line on stderr for each --check, with --json.", checks.CheckDocument),
        Document("advice", "tcpscape advise --json, and advice.json.", advice.AdviceDocument, finite=True),
        Document("calls", "tcpscape advise --goal calls --json.", calls.CallsDocument, finite=True),
        Document("edge", "A line of tcpscape cliff --json.", cliff.EdgeDocument),
        Document("conformance", "The JSON document of tcpscape conform --json.", conformance.ConformanceDocument),
        Document("stress", "The JSON document of tcpscape stress --json.", stress.StressDocument),
        Document("bound", "tcpscape bound --json.", bound.BoundDocument),
        Document("comparison", "tcpscape compare --json.", comparison.ComparisonDocument),
        Document("kernel-diff", "tcpscape kernel diff --json.", kernel_diff.KernelDiffDocument),
        Document("kernel-hunks", "tcpscape kernel diff --hunks --json.", hunks.KernelHunksDocument),
        Document("packetdrill", "tcpscape packetdrill --json.", packetdrill.DrillDocument),
        Document("validation", "summary.json of tcpscape validate.", divergence.ValidationDocument, finite=True),
        Document("exact", "tcpscape validate --exact --json.", exact.ExactDocument, finite=True),
        Document("dossier", "tcpscape evaluate --json, and dossier.json.", dossier.DossierDocument, finite=True),
        Document("diagnosis", "tcpscape diagnose --json.", diagnosis.DiagnosisDocument, finite=True),
        Document("emulation", "tcpscape emulate --json.", EmulationDocument),
        Document("manifest", "What results.sqlite says of a campaign (table manifests).", StoredManifest),
        Document("kernel", "kernel.json of a kernel for the virtual engine.", BuiltKernel),
        Document("doctor", "tcpscape doctor --json.", DoctorDocument),
    )
}
"""Name → the kind of document, in the order of the list that `tcpscape schema` prints."""
