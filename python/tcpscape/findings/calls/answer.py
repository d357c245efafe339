"""The advice for calls beside uploads: as a screen, as a table and as plain values."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from tcpscape import units
from tcpscape.controls.deployment import DEFAULT
from tcpscape.findings.calls.choice import BEARABLE, WORTH, CallCase, satisfaction, without_queue
from tcpscape.findings.calls.link import DEVICE, SHAPED, HomeLink
from tcpscape.formats import stamped
from tcpscape.stats import Estimate
from tcpscape.text.numbers import number, percent
from tcpscape.text.screen import Code, Screen
from tcpscape.text.table import ShownAsTable, Table


@dataclass(frozen=True, slots=True, repr=False)
class CallAdvice(ShownAsTable):
    """Which queue to put before a link, and which congestion control to upload with, so that calls stay good. A notebook shows its table."""

    link: HomeLink
    quiet: CallCase
    """The call without uploads."""
    cases: tuple[CallCase, ...]
    """The link as it is under each congestion control, then behind each queue."""
    choice: CallCase
    seeds: int
    """Trials of each case."""
    engine: str
    caveats: tuple[str, ...] = ()

    @property
    def before(self) -> CallCase:
        """The link as it is, under Linux's default where that is among those compared."""
        as_it_is = [case for case in self.cases if case.remedy is None]
        return next((case for case in as_it_is if case.cca == DEFAULT), as_it_is[0])

    @property
    def sentence(self) -> str:
        """The answer."""
        before, after = self.before, self.choice
        if after is before and self.quiet.score.value < BEARABLE:
            return (
                f"No queue mends this link: without an upload the call's score is {_score(self.quiet)}, {satisfaction(self.quiet.score.value)}, "
                f"and beside {_uploads(self.link, before.cca)} {_score(before)}."
            )
        if after is before:
            return (
                f"Change nothing: beside {_uploads(self.link, before.cca)} the call's score is {_score(before)}, {satisfaction(before.score.value)}, "
                "and no queue raises it by as much as anybody hears."
            )
        what = f"Put {after.queue} before the link's way up" if after.remedy else f"Upload under {after.cca}"
        also = f", and upload under {after.cca}" if after.remedy and after.cca != before.cca else ""
        return (
            f"{what}{also}: the call's score goes from {_score(before)} ({satisfaction(before.score.value)}) to {_score(after)} "
            f"({satisfaction(after.score.value)}), and {self._kept()}."
        )

    def _kept(self) -> str:
        """What is left of the uploads behind the queue that is recommended."""
        before, after = self.before.upload.value, self.choice.upload.value
        several = self.link.uploads > 1
        if before <= 0:
            carry = "uploads, which carried nothing, carry" if several else "upload, which carried nothing, carries"
            return f"the {carry} {number(after)} Mbit/s"
        share = percent(after / before)
        return f"the uploads keep {share} of their rate" if several else f"the upload keeps {share} of its rate"

    @property
    def commands(self) -> tuple[str, ...]:
        """What to type on the router, as root; nothing where its queue stays."""
        return self.choice.remedy.commands(self.link.shaped_bps) if self.choice.remedy else ()

    def table(self) -> Table:
        """A row for each case, the link without uploads first."""
        columns = ("queue of the way up", "upload", "call's score [95 %]", "delay up p95 ms", "lost", "upload Mbit/s")
        rows = [("without an upload", "–", *_numbers(self.quiet)[:3], "–"), *((c.queue, c.cca, *_numbers(c)) for c in self.cases)]
        return Table(columns, rows, 2, drop=("lost", "upload Mbit/s"))

    def screen(self) -> Screen:
        """The answer as the command shows it."""
        link, alone = self.link, without_queue(self.cases)
        path = (
            f"{units.format_rate(link.down_bps)} down, {units.format_rate(link.up_bps)} up, RTT {units.format_time(link.rtt_ns)}, a FIFO of "
            f"{number(link.buffer / 1000)} kB ({number(link.buffer_ms)} ms) in the modem, {_uploads(link, '')} and a call, "
            f"{units.format_time(link.duration_ns)}; {self.seeds} trials each, {self.engine}"
        )
        remarks = [f"Without an upload the score is {_score(self.quiet)}; the worse of the call's two ways counts (E-model, ITU-T G.107)."]
        if self.choice.remedy and alone.cca != self.before.cca and alone.score.value > self.before.score.value + WORTH:
            remarks.append(f"Without touching the router: under {alone.cca} the score is {_score(alone)}, {satisfaction(alone.score.value)}.")
        title = f"As root on the router, {DEVICE} towards the modem ({percent(SHAPED)} of the rate, so that the modem's queue stays empty):"
        typed = (Code(self.commands, title),) if self.commands else ()
        return Screen(path, self.sentence, remarks=remarks, tables=(self.table(), *typed), caveats=self.caveats)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        link = self.link
        return stamped("calls", {
            "down_bps": link.down_bps, "up_bps": link.up_bps, "rtt_ms": link.rtt_ns / 1e6, "buffer_bytes": link.buffer, "uploads": link.uploads,
            "answer": self.sentence, "queue": self.choice.remedy.name if self.choice.remedy else None, "cca": self.choice.cca,
            "shaped_bps": link.shaped_bps if self.choice.remedy else None, "commands": list(self.commands), "quiet": _plain(self.quiet),
            "cases": [_plain(c) for c in self.cases], "trials": self.seeds, "engine": self.engine, "caveats": list(self.caveats),
        })  # fmt: skip


def _score(case: CallCase) -> str:
    return f"MOS {case.score.text(2)}"


def _uploads(link: HomeLink, cca: str) -> str:
    """`an upload under cubic`, `3 uploads`."""
    return ("an upload" if link.uploads == 1 else f"{link.uploads} uploads") + (f" under {cca}" if cca else "")


def _numbers(case: CallCase) -> tuple[str, str, str, str]:
    """Score, delay, loss and goodput of a case."""
    return case.score.text(2), number(case.delay.value), percent(case.lost.value, 1), number(case.upload.value)


def _plain(case: CallCase) -> dict[str, Any]:
    values: dict[str, Any] = {name: _estimate(getattr(case, name)) for name in ("score", "delay", "lost", "upload")}
    return {"queue": case.remedy.name if case.remedy else None, "cca": case.cca or None, **values}


def _estimate(estimate: Estimate) -> dict[str, Any]:
    """An estimate with None for what is infinite or not known."""
    return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in asdict(estimate).items()}
