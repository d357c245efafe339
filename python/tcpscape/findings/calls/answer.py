"""The advice for calls beside uploads. :mod:`tcpscape.words.calls` says it."""

from __future__ import annotations

from dataclasses import dataclass

from tcpscape.controls.deployment import DEFAULT
from tcpscape.findings.calls.choice import CallCase
from tcpscape.findings.calls.link import HomeLink
from tcpscape.text.table import ShownAsTable


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
    def commands(self) -> tuple[str, ...]:
        """What to type on the router, as root; nothing where its queue stays."""
        return self.choice.remedy.commands(self.link.shaped_bps) if self.choice.remedy else ()
