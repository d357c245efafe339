"""The answer of a diagnosis as people read it: three sentences, a table for each flow, what weakens them, what to do next; and its document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar

import numpy as np
from typing_extensions import TypedDict

from tcpscape.findings.advice.choice import ChoiceVerdict
from tcpscape.findings.cliff.levels import Side
from tcpscape.findings.diagnosis import limits
from tcpscape.findings.diagnosis.diagnosis import Diagnosis, FlowDiagnosis
from tcpscape.findings.diagnosis.fitted import UNKNOWN, Alternative, FittedPath, RecognisedControl, Replay, ReplayAdvice, Withheld, Zone
from tcpscape.findings.diagnosis.observed import Attempt, Cause, FlowCounts, FlowEnds, LimitInterval, ObservedFlow, Vantage
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.formats import printed
from tcpscape.interchange import observing
from tcpscape.stats import Estimate
from tcpscape.text.numbers import UNKNOWN as NOT_KNOWN
from tcpscape.text.numbers import Number, number, percent
from tcpscape.text.screen import Deferred, Screen
from tcpscape.text.table import Table, TableRow, table_of
from tcpscape.units import counted
from tcpscape.words import fitted_path, handshakes, path_words, reasons
from tcpscape.words import flow as words
from tcpscape.words.terms import glossed

Document = TypeVar("Document")
PLACES: dict[Vantage, str] = {
    "sender": "at the sender",
    "receiver": "at the receiver",
    "middle": "between the two",
    "unknown": "at a place that is not known",
}
"""Vantage point in words."""
QUEUES: Mapping[str, str] = {"self-induced": "its queue is this flow's own", "none": "no queue in it"}
"""What fills the queue of a bottleneck, in words."""
SIDES: Mapping[Side, str] = {"stable": "stable", "chaos zone": "in the chaos zone", "collapsed": "collapsed"}
"""Side of the jitter cliff, in words."""
REPLAYS: Mapping[str, str] = {"agrees": "agrees", "differs": "differs", "impossible": "not possible"}
"""Whether a replay repeats the observation, in words."""
COMPARED: Mapping[ChoiceVerdict, str] = {
    "better": "as much as {own}",
    "as good": "as good as {own}",
    "undecided": "undecided, against {own}",
    "only": "no other that can be deployed comes near; against {own}",
    "nothing carried": "no congestion control carried anything",
    "none deployable": "no congestion control of this kernel can be compared",
}
"""Verdict on the congestion controls, as a remark in a table."""
MOST_INTERVALS = 60
"""Most intervals that the table of limits has."""
LEAST_S = 0.0005
"""Length of an interval from which that table has it, s."""
MOST_FRAMES = 3
"""Most frames that a line of it names."""
SMALL = 0.02
"""Share of the time below which a cause has no row."""
LEAST_QUEUE_MS = 0.1
"""Queueing delay below which none is told, ms."""
UNKNOWN_FIELD = "not identifiable"
NO_PATH = FittedPath()
"""What a document has where no path was fitted."""


@dataclass(frozen=True)
class FlowTuple:
    """Who talks to whom."""

    tuple: tuple[str, int, str, int]
    """Address and port of the sender of the data, or of who asked for the connection, then of the other end; empty and 0 where not known."""


class OtherFlowsDocument(TypedDict):
    """The flows of a source that were not diagnosed."""

    flows: int
    """Their number."""
    bytes: int
    """Payload that they delivered, bytes."""


@dataclass(frozen=True)
class AttemptDocument(FlowTuple):
    """A connection that was asked for and, as far as the source shows, not established."""

    syns: int
    """SYNs that were seen."""
    answers: int
    """SYN-ACKs that were seen."""
    is_reset: bool
    """Whether a reset ended it."""
    seconds: float
    """From its first packet to its last, s."""


class SourceDocument(TypedDict):
    """What was read."""

    kind: str
    """Its kind: pcap, pcapng, sockets, ss, iperf3, flent, result."""
    name: str
    """The file, `-` for standard input, or what was asked of the sockets."""
    facts: Mapping[str, Any]
    """Counters of the source as a whole; docs/diagnosis.md lists them."""
    notes: Sequence[str]
    """What could not be read or is not in it, a sentence each."""
    flows: int
    """Number of flows in it."""
    attempt: AttemptDocument | None
    """Of the connections that were not established the one with most SYNs."""
    others: OtherFlowsDocument
    """Those of them that were not diagnosed."""


@dataclass(frozen=True)
class ControlDocument(RecognisedControl):
    """The congestion control, as the packets show it."""

    reason: str = ""  # type: ignore[assignment]
    """What it rests on, or why it is unknown; a sentence."""


@dataclass(frozen=True)
class ZoneDocument(Zone):
    """The indicators of a flow, and what to do."""

    guidance: str = ""
    """What to do, a sentence."""


@dataclass(frozen=True)
class ReplayDocument(Replay):
    """The same control on the fitted path, by the model."""

    reason: str = ""  # type: ignore[assignment]
    """Why it does not; empty where it does."""


@dataclass(frozen=True)
class ReplayAdviceDocument(ReplayAdvice):
    """What would be better."""

    verdict: str  # type: ignore[assignment]
    """better, as good, undecided, or why there is no advice."""
    assumption: str = ""  # type: ignore[assignment]
    """The largest assumption."""


@dataclass(frozen=True)
class DiagnosedFlowDocument(FlowCounts, FlowTuple):
    """One direction of one connection: the data and what acknowledges it."""

    answer: str
    """The diagnosis in three sentences."""
    cca: ControlDocument
    """The congestion control."""
    limited_by: Mapping[Cause, float] | None
    """Cause → share of the time during which it held the flow, a fraction; the largest first."""
    limits: Sequence[LimitInterval]
    """What held the flow when."""
    path: FittedPath
    """The path."""
    zone: ZoneDocument | None
    """Its zone and the published indicators."""
    replay: ReplayDocument | None
    """The replay on the model."""
    advice: ReplayAdviceDocument | None
    """What would be better."""
    not_identifiable: Mapping[str, str]
    """Part or field that is null, `advice` or `path.buffer_bytes` → why; `limited_by` also where a part of its time is `unknown`."""
    facts: Mapping[str, Any]
    """Counters and handshake; docs/diagnosis.md lists them."""


class DiagnosisDocument(TypedDict):
    """What a capture, a socket or a result says of its flows. What `tcpscape diagnose --json` prints.

    A number that is infinite or not known is null.
    """

    format: Literal[1]
    """Format of a diagnosis."""
    source: SourceDocument
    """What was read."""
    flows: list[DiagnosedFlowDocument]
    """The flows that were diagnosed, the largest first."""


def screen(diagnosis: Diagnosis, next_: Sequence[str] = (), kept: str = "") -> Screen:
    """The screen of a diagnosis: the answer is of the largest flow."""
    observation = diagnosis.observation
    source = f"{observation.name}: {observing.TITLES.get(observation.kind, observation.kind)}, {counted(len(observation.flows), 'flow')}"
    if not diagnosis.flows:
        return Screen(
            source, handshakes.without_flows(observation), caveats=[*observation.notes, *filter(None, [handshakes.unread(observation)])], next=next_
        )
    first = diagnosis.flows[0]
    tables = [of_flow(first), *([summary(diagnosis)] if len(diagnosis.flows) + len(diagnosis.others) > 1 else [])]
    details = Deferred(lambda: (table for one in diagnosis.flows for table in _details(one, is_first=one is first)))
    return Screen(
        f"{source}{_subject(diagnosis)}", words.answer(first), tables=tables, details=details, caveats=what_weakens(diagnosis), next=next_, kept=kept
    )


@table_of.register
def table(diagnosis: Diagnosis) -> Table:
    """All that is known of a single flow, or a row for each of several."""
    return of_flow(diagnosis.flows[0]) if len(diagnosis.flows) == 1 and not diagnosis.others else summary(diagnosis)


def of_flow(diagnosis: FlowDiagnosis) -> Table:
    """Everything about one flow, a row each."""
    flow = diagnosis.flow
    title = f"{flow.name}: {_volume(flow)} in {number(flow.seconds)} s, seen {PLACES[flow.vantage]}"
    rows, zone = list(_rows(diagnosis)), diagnosis.zone
    chaotic = zone is not None and "chaos zone" in (zone.side, zone.published)
    unknown = any(UNKNOWN_FIELD in row for row in rows)
    terms = ["zone", "cliff"] * (zone is not None) + ["chaos zone"] * chaotic + [UNKNOWN_FIELD] * unknown
    return Table(("what", "value [95 %]", "remark"), rows, left=1, title=title, notes=glossed(terms), words=("value [95 %]", "remark"))


def summary(diagnosis: Diagnosis) -> Table:
    """A row for each flow that was diagnosed, and one for all others."""
    rows: list[TableRow] = [_summary_row(one) for one in diagnosis.flows]
    if diagnosis.others:
        size = sum(flow.bytes or 0 for flow in diagnosis.others)
        title = f"{counted(len(diagnosis.others), 'other flow')}, not diagnosed"
        rows.append((title, Number.of(size / 1e6), NOT_KNOWN, "–", "–", NOT_KNOWN, NOT_KNOWN, "–"))
    columns = ("flow", "MB", "Mbit/s", "control", "limited by", "RTT ms", "loss %", "better")
    return Table(columns, rows, title="Flows", drop=("MB", "loss %", "RTT ms", "better", "control"), words=("limited by", "control", "better"))


def _summary_row(one: FlowDiagnosis) -> TableRow:
    flow, path = one.flow, one.path
    return (
        flow.name,
        NOT_KNOWN if flow.bytes is None else Number.of(flow.bytes / 1e6),
        Number.of(flow.goodput_mbps),
        one.control.name,
        _top(one),
        _value(path.rtt_ms if path else None),
        _value(path.loss_pct if path else None),
        (not words.is_applications_to_change(one) and one.advice and one.advice.choice) or "–",
    )


def _subject(diagnosis: Diagnosis) -> str:
    """Which flow the answer is about, where there are several."""
    flows = [*(one.flow for one in diagnosis.flows), *diagnosis.others]
    if len(flows) < 2:
        return ""
    total, largest = sum(flow.bytes or 0 for flow in flows), diagnosis.flows[0].flow
    share = f", with {percent((largest.bytes or 0) / total)} of the bytes" if total else ""
    return f"; the answer is of {largest.name}{share}"


def _rows(diagnosis: FlowDiagnosis) -> Iterator[tuple[str, str, str]]:
    """The rows of a flow's table: what, value, remark."""
    flow, control, path = diagnosis.flow, diagnosis.control, diagnosis.path
    is_single = flow.packets == 1
    rate = f"{number(flow.goodput_mbps)} Mbit/s" if flow.goodput_mbps is not None and not is_single else UNKNOWN_FIELD
    yield "goodput", rate, "a single packet has no rate" if is_single else ""
    sure = f"{percent(control.confidence)} sure" if control.name != UNKNOWN and control.confidence < 1 else ""
    yield "congestion control", control.name, "; ".join(part for part in (sure, reasons.text(control.reason)) if part)
    yield from _limits(diagnosis)
    if path is not None:
        yield from _path_rows(diagnosis, path)
    else:
        yield "path", UNKNOWN_FIELD, reasons.text(diagnosis.reasons.get("path"))
    if diagnosis.zone:
        zone = diagnosis.zone
        side = SIDES[zone.side] if zone.side else UNKNOWN_FIELD
        yield (
            "zone",
            side,
            f"by jitter / RTT alone: {SIDES[zone.published]}" if zone.published else words.clause(reasons.brief(zone.reasons.get("side"))),
        )
    if diagnosis.replay:
        replay = diagnosis.replay
        reason = f": {words.clause(reasons.brief(replay.reason))}" if replay.reason else ""
        yield "replay", replay.goodput_mbps.text(unit="Mbit/s") if replay.goodput_mbps else "–", f"{REPLAYS[replay.verdict]}{reason}"
    yield "better", *_better(diagnosis)


def _limits(diagnosis: FlowDiagnosis) -> Iterator[tuple[str, str, str]]:
    """A row for each cause that matters, with its longest interval and the frames that prove it."""
    if not diagnosis.limited_by:
        yield "limited by", UNKNOWN_FIELD, reasons.text(diagnosis.reasons.get("limited_by"))
        return
    shares = [(cause, share) for cause, share in diagnosis.limited_by.items() if share >= SMALL]
    for place, (cause, share) in enumerate(shares):
        remark = reasons.text(Reason(diagnosis.doubt)) if cause == "unknown" and diagnosis.doubt else _longest(diagnosis.flow, cause)
        yield "" if place else "limited by", f"{words.NAMES[cause]} {percent(share)}", remark


def _longest(flow: ObservedFlow, cause: Cause) -> str:
    """`longest 4.50 s at 19.5 s, frames 20, 21`."""
    intervals = [one for one in flow.limits if one.cause == cause]
    if not intervals:
        return ""
    one = max(intervals, key=lambda interval: interval.end_s - interval.start_s)
    frames = f", frames {', '.join(map(str, one.frames[:MOST_FRAMES]))}" if one.frames else ""
    return f"longest {number(one.end_s - one.start_s)} s, at {one.start_s:.2f} s{frames}"


def _path_rows(diagnosis: FlowDiagnosis, path: FittedPath) -> Iterator[tuple[str, str, str]]:
    """The rows of a fitted path."""
    queued = words.queueing_ms(diagnosis)
    added = "the queue adds {} ms" if path.rate_mbps else "the flow's median is {} ms longer"
    yield _row(path, "RTT of the path", "rtt_ms", "ms", added.format(number(queued, 2)) if queued and queued >= LEAST_QUEUE_MS else "")
    about = [path_words.jittered(path), {True: "keeps the order", False: "reorders", None: ""}[path.order_kept], path.distribution or ""]
    yield _row(path, "jitter (σ)", "jitter_ms", "ms", ", ".join(part for part in about if part))
    lost = path.queue_loss_pct
    dropped = f"{words.dropping(path)} dropped {number(lost.value, 2)} % besides" if lost and lost.value > 0 else ""
    yield _row(path, "random loss", "loss_pct", "%", dropped)
    if path.ack_loss_pct is not None and path.ack_loss_pct.low > 0:
        yield _row(path, "ACKs lost", "ack_loss_pct", "%", "between the receiver and the capture, or by it")
    yield _row(path, "bottleneck", "rate_mbps", "Mbit/s", _queue(path, diagnosis.beside))
    yield _row(path, "its buffer", "buffer_bytes", "kB", "", 1e-3)
    for change in path.changes[:3]:
        yield "change", f"at {change.at_s:.2f} s", f"{path_words.change_text(change)}{f', frame {change.frame}' if change.frame else ''}"
    if len(path.changes) > 3:
        yield "", f"{len(path.changes) - 3} more changes", "--json has them"


def _queue(path: FittedPath, beside: int) -> str:
    """What fills the queue of the bottleneck, and which flows of the source went the same way."""
    if path.queue == "self-induced" and beside:
        return f"its queue grows with this flow, and {counted(beside, 'other flow')} went this way too"
    return QUEUES[path.queue] if path.queue else ""


def _row(path: FittedPath, title: str, field: str, unit: str, remark: str, factor: float = 1.0) -> tuple[str, str, str]:
    estimate: Estimate | None = getattr(path, field)
    if estimate is None:
        return title, UNKNOWN_FIELD, reasons.text(path.reasons.get(field))
    scaled = Estimate(estimate.value * factor, estimate.low * factor, estimate.high * factor, max(estimate.n, 2), unit)
    return title, scaled.text(unit=unit), remark


def _better(diagnosis: FlowDiagnosis) -> tuple[str, str]:
    """What carries more, and by how much."""
    advice = diagnosis.advice
    if advice is None:
        return UNKNOWN_FIELD, reasons.text(diagnosis.reasons.get("advice"))
    if isinstance(advice.verdict, Withheld):
        return "–", words.no_advice(replace(advice.verdict, reason=None))  # the replay's row has it
    if words.is_applications_to_change(diagnosis):
        return "–", "only the application could make it faster"
    if advice.choice is None or advice.gain is None:
        return "–", COMPARED[advice.verdict]
    own, setting = words.in_use(diagnosis), words.best_setting(diagnosis, advice)
    more = f"{setting.name}, {words.setting_gain(setting, words.hangs_on_rate(diagnosis))}" if setting else ""
    if advice.choice in (diagnosis.control.name, diagnosis.replay and diagnosis.replay.control):
        return more or "–", f"no other congestion control carries clearly more than {own}"
    return f"{advice.choice}, {advice.gain.text()} ×", f"{COMPARED[advice.verdict].format(own=own)}{f'; {more}' if more else ''}"


def _details(diagnosis: FlowDiagnosis, *, is_first: bool) -> Iterator[Table]:
    """What `verbose` shows of a flow: its table, what held it when, the other congestion controls and settings, what is not identifiable."""
    name = diagnosis.flow.name
    if not is_first:
        yield of_flow(diagnosis)
    if diagnosis.flow.limits:
        yield _timeline(diagnosis.flow)
    advice = diagnosis.advice
    if advice and (advice.controls or advice.settings):
        yield Table(
            ("instead", "goodput × [95 %]", "RTT ms", "retransmits %"),
            [_alternative(one) for one in (*advice.controls, *advice.settings)],
            title=f"{name}: what else would carry, against the replay",
            notes=[fitted_path.assumption(advice.assumption)] if advice.assumption else [],
        )
    if diagnosis.control.name == UNKNOWN and diagnosis.control.candidates:
        rows = [(control, Number.percent(share)) for control, share in diagnosis.control.candidates.items()]
        yield Table(("congestion control", "probability"), rows, title=f"{name}: candidates")
    if missing := list(not_identifiable(diagnosis).items()):
        yield Table(("not identifiable", "why"), missing, title=name, words=("why",))


def _timeline(flow: ObservedFlow) -> Table:
    """What held the flow when, with the frames that prove it."""
    shown = [one for one in limits.readable(flow.limits, MOST_INTERVALS) if one.end_s - one.start_s >= LEAST_S]
    rows = [
        (_seconds(one.start_s), _seconds(one.end_s - one.start_s), words.NAMES[one.cause], ", ".join(str(f) for f in one.frames[:MOST_FRAMES] if f))
        for one in shown
    ]
    notes = [f"{len(flow.limits)} intervals, shorter ones within these: --json has them"] if len(shown) < len(flow.limits) else []
    columns, title = ("from s", "for s", "limited by", "frames"), f"{flow.name}: limits over time"
    return Table(columns, rows, left=0, title=title, notes=notes, words=("limited by", "frames"))


def _seconds(value: float) -> Number:
    return Number(value, f"{value:.3f}")


def _alternative(one: Alternative) -> TableRow:
    return one.name, one.gain.cell(), _value(one.rtt_ms), _value(one.retransmits_pct)


def what_weakens(diagnosis: Diagnosis) -> list[str]:
    """What weakens the answer: what could not be read, what is not identifiable, what the replay says, what is assumed."""
    first = diagnosis.flows[0]
    observation = diagnosis.observation
    caveats = [note.removesuffix(".") for note in observation.notes] + list(filter(None, [handshakes.caveat(observation)]))
    if first.zone and first.zone.side in ("chaos zone", "collapsed"):
        caveats.append(guidance(first.zone).removesuffix("."))
    if first.advice and first.advice.assumption:
        caveats.append(fitted_path.assumption(first.advice.assumption).removesuffix("."))
    return list(dict.fromkeys(caveats))


def guidance(zone: Zone) -> str:
    """What to do about the zone, a sentence; empty where nothing was run."""
    if zone.side is None or zone.retention is None or zone.cv is None or zone.runs_needed is None:
        return ""
    kept = f"{100 * zone.retention.value:.0f} % of the goodput that it would have without its jitter"
    if zone.side == "collapsed":
        return f"The flow keeps {kept}: another congestion control, or a path that keeps the order of packets, is worth more than tuning this one."
    if zone.side == "chaos zone":
        spread = f"runs vary by {100 * zone.cv.value:.0f} %"
        return f"One measurement of this path says little ({spread}): measure {zone.runs_needed:.0f} times for ± 10 %, and compare medians."
    return f"The flow keeps {kept}; {zone.runs_needed:.0f} measurements give ± 10 %."


def _top(diagnosis: FlowDiagnosis) -> str:
    """The cause that held the flow longest."""
    if not diagnosis.limited_by:
        return "–"
    cause, share = next(iter(diagnosis.limited_by.items()))
    return f"{words.NAMES[cause]} {percent(share)}"


def _volume(flow: ObservedFlow) -> str:
    return "data" if flow.bytes is None else f"{number(flow.bytes / 1e6)} MB"


def _value(estimate: Estimate | None) -> Number:
    return NOT_KNOWN if estimate is None else Number.of(estimate.value)


def document(diagnosis: Diagnosis) -> dict[str, Any]:
    """What `--json` prints of a diagnosis; what is infinite or not known is None."""
    observation, others = diagnosis.observation, diagnosis.others
    source = SourceDocument(
        kind=observation.kind,
        name=observation.name,
        facts=_plain(observation.facts),
        notes=list(observation.notes),
        flows=len(observation.flows),
        attempt=_attempt_document(observation.attempt) if observation.attempt else None,
        others=OtherFlowsDocument(flows=len(others), bytes=sum(flow.bytes or 0 for flow in others)),
    )
    return printed(DiagnosisDocument, DiagnosisDocument(format=1, source=source, flows=[_flow_document(one) for one in diagnosis.flows]))


def _attempt_document(attempt: Attempt) -> AttemptDocument:
    return AttemptDocument(_tuple(attempt), attempt.syns, attempt.answers, attempt.is_reset, attempt.seconds)


def _tuple(ends: FlowEnds) -> tuple[str, int, str, int]:
    return ends.source.address, ends.source.port, ends.destination.address, ends.destination.port


def _flow_document(one: FlowDiagnosis) -> DiagnosedFlowDocument:
    flow = one.flow
    return DiagnosedFlowDocument(
        tuple=_tuple(flow),
        **{field.name: getattr(flow, field.name) for field in fields(FlowCounts)},
        answer=words.answer(one),
        cca=_with(ControlDocument, one.control, reason=reasons.text(one.control.reason)),
        limited_by=one.limited_by,
        limits=flow.limits,
        path=one.path or NO_PATH,
        zone=_with(ZoneDocument, one.zone, guidance=guidance(one.zone)) if one.zone else None,
        replay=_with(ReplayDocument, one.replay, reason=reasons.text(one.replay.reason)) if one.replay else None,
        advice=_advice_document(one.advice) if one.advice else None,
        not_identifiable=not_identifiable(one),
        facts=_plain(flow.facts),
    )


def not_identifiable(one: FlowDiagnosis) -> dict[str, str]:
    """Part or field of a flow's diagnosis that is missing → why."""
    return {part: reasons.text(reason) for part, reason in one.not_identifiable.items()}


def _advice_document(advice: ReplayAdvice) -> ReplayAdviceDocument:
    verdict = words.no_advice(advice.verdict) if isinstance(advice.verdict, Withheld) else advice.verdict
    assumption = fitted_path.assumption(advice.assumption) if advice.assumption else ""
    return _with(ReplayAdviceDocument, advice, verdict=verdict, assumption=assumption)


def _with(kind: Callable[..., Document], part: Any, **texts: str) -> Document:
    """A part of a diagnosis as its document: with texts in place of what they say, or beside it."""
    return kind(**{field.name: getattr(part, field.name) for field in fields(part)} | texts)


def _plain(value: Any) -> Any:
    """Facts of a source as JSON's own types."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
