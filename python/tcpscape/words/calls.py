"""The advice for calls beside uploads in words: its screen, its table and its document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from typing_extensions import TypedDict

from tcpscape import units
from tcpscape.controls.deployment import Deployment
from tcpscape.findings.calls import BEARABLE, WORTH, CallAdvice, CallCase, HomeLink, satisfaction, without_queue
from tcpscape.formats import printed
from tcpscape.stats import Estimate
from tcpscape.text.numbers import number, percent
from tcpscape.text.screen import Code, Screen
from tcpscape.text.table import Table, table_of
from tcpscape.words.sentences import caveat


class CallCaseDocument(TypedDict):
    """A call beside uploads under one congestion control, behind one queue."""

    queue: str | None
    """The queue before the link's way up; null is the link as it is."""
    cca: str | None
    """Congestion control of the uploads; null without uploads."""
    score: Estimate
    """Mean opinion score of the worse of the call's two ways, 1 to 4.5 (E-model, ITU-T G.107)."""
    delay: Estimate
    """95th percentile of the one-way delay of the call's packets on the way up, ms."""
    lost: Estimate
    """Share of the call's packets that were lost, the worse way."""
    upload: Estimate
    """The uploads' goodput, Mbit/s."""


class MarginDocument(TypedDict):
    """The call behind the recommended queue, shaped to a share of the link's rate."""

    share: float
    """Share of the rate, a fraction."""
    score: Estimate
    """Mean opinion score of the worse of the call's two ways."""
    upload: Estimate
    """The uploads' goodput, Mbit/s."""


class CallsDocument(TypedDict):
    """Which queue and which congestion control keep calls good beside uploads. What `tcpscape advise --goal calls --json` prints."""

    format: Literal[1]
    """Format of an advice for calls."""
    down_bps: int
    """Rate of the link's way down, bit/s."""
    up_bps: int
    """Rate of its way up, bit/s."""
    rtt_ms: float
    """Round trip without queues, ms."""
    buffer_bytes: int
    """The modem's buffer of the way up, bytes."""
    uploads: int
    """Uploads at the same time."""
    answer: str
    """The answer as a sentence."""
    queue: str | None
    """The queue to put before the way up; null where none is needed."""
    cca: str
    """The congestion control to upload with."""
    shaped_bps: int | None
    """Rate to which the router shapes, bit/s; null without a queue."""
    commands: list[str]
    """What to type on the router as root, until the next start."""
    deployment: Deployment | None
    """All that is to type there: before, now, permanently, verify, go back; null where its queue stays."""
    margins: list[MarginDocument]
    """The recommended queue at other shares of the rate, the largest first; empty where none is recommended."""
    quiet: CallCaseDocument
    """The call without uploads."""
    cases: list[CallCaseDocument]
    """Every case that was compared."""
    trials: int
    """Trials of each case."""
    engine: str
    """The engine that ran them."""
    caveats: list[str]
    """What limits the validity, a sentence each."""


def screen(advice: CallAdvice) -> Screen:
    """The answer as the command shows it."""
    link, alone = advice.link, without_queue(advice.cases)
    path = (
        f"{units.format_rate(link.down_bps)} down, {units.format_rate(link.up_bps)} up, RTT {units.format_time(link.rtt_ns)}, a FIFO of "
        f"{number(link.buffer / 1000)} kB ({number(link.buffer_ms)} ms) in the modem, {_uploads(link, '')} and a call, "
        f"{units.format_time(link.duration_ns)}; {advice.seeds} trials each, {advice.engine}"
    )
    remarks = [f"Without an upload the score is {_score(advice.quiet)}; the worse of the call's two ways counts (E-model, ITU-T G.107)."]
    if advice.choice.remedy and alone.cca != advice.before.cca and alone.score.value > advice.before.score.value + WORTH:
        remarks.append(f"Without touching the router: under {alone.cca} the score is {_score(alone)}, {satisfaction(alone.score.value)}.")
    remarks += [*_about_buffer(advice), *_about_share(advice)]
    deploy, router = advice.deployment, advice.router
    title = f"As root on the router ({router.system}), {router.device} towards the modem (permanently, verify, go back: --verbose):"
    typed = (Code(deploy.now, title),) if deploy else ()
    details: list[Table | Code | str] = [" ".join(("What to type.", *deploy.notes)), Code(deploy.lines())] if deploy else []
    return Screen(path, sentence(advice), remarks=remarks, tables=(table(advice), *typed), details=details, caveats=advice.caveats)


def _about_buffer(advice: CallAdvice) -> Iterator[str]:
    """Where the modem's buffer is known from, with what to type to measure one that is assumed."""
    link = advice.link
    if advice.measured_ms is not None:
        yield f"The modem's buffer is from the file: {number(advice.measured_ms)} ms during an upload, {units.format_time(link.rtt_ns)} without."
    elif link.is_assumed:
        yield "The modem's buffer is assumed. Measure it: ping -c 60 HOST > ping.txt while an upload runs, then add --from ping.txt."


def _about_share(advice: CallAdvice) -> Iterator[str]:
    """The share of the rate that has to be left, between two that were tried, and the one that is typed."""
    if advice.needed is None:
        return
    share, above = advice.needed
    typed = f"{percent(advice.typed_share)} is typed, since a link's rate varies and its packets are longer than the router's."
    worse = next((margin for margin in advice.margins if margin.share == above), None)
    if share == above or worse is None:
        yield f"In the model the whole rate can be used ({_mos(advice, share)}); {typed}"
    else:
        enough, little = (
            f"{percent(1 - part)} of the rate left free is {what} ({_mos(advice, part)})" for part, what in ((share, "enough"), (above, "too little"))
        )
        yield f"In the model {little} and {enough}; {typed}"


def _mos(advice: CallAdvice, share: float) -> str:
    """The score at a share of the rate."""
    return next(f"MOS {margin.score.text(2)}" for margin in advice.margins if margin.share == share)


def sentence(advice: CallAdvice) -> str:
    """The answer."""
    before, after = advice.before, advice.choice
    if after is before and advice.quiet.score.value < BEARABLE:
        return (
            f"No queue mends this link: without an upload the call's score is {_score(advice.quiet)}, {satisfaction(advice.quiet.score.value)}, "
            f"and beside {_uploads(advice.link, before.cca)} {_score(before)}."
        )
    if after is before:
        return (
            f"Change nothing: beside {_uploads(advice.link, before.cca)} the call's score is {_score(before)}, {satisfaction(before.score.value)}, "
            "and no queue raises it by as much as anybody hears."
        )
    what = f"Put {after.queue} before the link's way up" if after.remedy else f"Upload under {after.cca}"
    also = f", and upload under {after.cca}" if after.remedy and after.cca != before.cca else ""
    return (
        f"{what}{also}: the call's score goes from {_score(before)} ({satisfaction(before.score.value)}) to {_score(after)} "
        f"({satisfaction(after.score.value)}), and {_kept(advice)}."
    )


def _kept(advice: CallAdvice) -> str:
    """What is left of the uploads behind the queue that is recommended."""
    before, after = advice.before.upload.value, advice.choice.upload.value
    several = advice.link.uploads > 1
    if before <= 0:
        carry = "uploads, which carried nothing, carry" if several else "upload, which carried nothing, carries"
        return f"the {carry} {number(after)} Mbit/s"
    share = percent(after / before)
    return f"the uploads keep {share} of their rate" if several else f"the upload keeps {share} of its rate"


@table_of.register
def table(advice: CallAdvice) -> Table:
    """A row for each case, the link without uploads first."""
    columns = ("queue of the way up", "upload", "call's score [95 %]", "delay up p95 ms", "lost", "upload Mbit/s")
    rows = [("without an upload", "–", *_numbers(advice.quiet)[:3], "–"), *((c.queue, c.cca, *_numbers(c)) for c in advice.cases)]
    return Table(columns, rows, 2, drop=("lost", "upload Mbit/s"))


def document(advice: CallAdvice) -> dict[str, Any]:
    """What `--json` prints of an advice for calls."""
    link, choice = advice.link, advice.choice
    values = CallsDocument(
        format=1,
        down_bps=link.down_bps,
        up_bps=link.up_bps,
        rtt_ms=link.rtt_ns / 1e6,
        buffer_bytes=link.buffer,
        uploads=link.uploads,
        answer=sentence(advice),
        queue=choice.remedy.name if choice.remedy else None,
        cca=choice.cca,
        shaped_bps=int(advice.typed_share * link.up_bps) if choice.remedy else None,
        commands=list(advice.commands),
        deployment=advice.deployment,
        margins=[MarginDocument(share=m.share, score=m.score, upload=m.upload) for m in advice.margins],
        quiet=_case(advice.quiet),
        cases=[_case(case) for case in advice.cases],
        trials=advice.seeds,
        engine=advice.engine,
        caveats=list(advice.caveats),
    )
    return printed(CallsDocument, values, caveat=caveat)


def _case(case: CallCase) -> CallCaseDocument:
    return CallCaseDocument(
        queue=case.remedy.name if case.remedy else None, cca=case.cca or None, score=case.score, delay=case.delay, lost=case.lost, upload=case.upload
    )


def _score(case: CallCase) -> str:
    return f"MOS {case.score.text(2)}"


def _uploads(link: HomeLink, cca: str) -> str:
    """`an upload under cubic`, `3 uploads`."""
    return ("an upload" if link.uploads == 1 else f"{link.uploads} uploads") + (f" under {cca}" if cca else "")


def _numbers(case: CallCase) -> tuple[str, str, str, str]:
    """Score, delay, loss and goodput of a case."""
    return case.score.text(2), number(case.delay.value), percent(case.lost.value, 1), number(case.upload.value)
