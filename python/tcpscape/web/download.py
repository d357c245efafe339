"""One run of the page as a file for other tools: pcapng, a Perfetto trace, qlog, CSV."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from tcpscape import engines, interchange, names
from tcpscape.campaign.outcome import gather
from tcpscape.engines.model import PACKET_S
from tcpscape.errors import refuse
from tcpscape.interchange import sources
from tcpscape.reading import files as reading
from tcpscape.reading.files import MIB, Kind
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture, Trial
from tcpscape.units import NS_PER_S
from tcpscape.web.pool import FIRST, Cancelled, Job, Work
from tcpscape.web.routes import Asked, Context, Download, Post
from tcpscape.web.state import PageState, State

MOST_SECONDS, MOST_WITH_PACKETS = 20.0, 0.6
"""Seconds of a core that a trial may take, about, and one of which each packet is in the file: some 600,000 packets."""
MOST_SAMPLES = 20_000
"""Samples of all flows; a long trial, or one of many flows, is sampled less often."""
LEAST_INTERVAL = NS_PER_S // 1000
"""ns between two samples, at least."""
PACKETS = Kind("the run's packets", "watch it for a shorter time", most=512 * MIB)
ROUND = (1, 2, 5)
"""Leading digits of an interval."""


class Asking(Asked):
    """The run that is to be a file."""

    state: PageState
    cca: str
    """One of the state's congestion controls; of a mixture any."""
    seed: int = Field(default=0, ge=0, lt=2**32)


@dataclass(frozen=True)
class FileKind:
    """A kind of file that the page offers."""

    name: str
    title: str
    note: str
    """What it is for."""
    suffix: str
    media_type: str
    make: Callable[[Run], bytes]
    most_seconds: float = MOST_SECONDS
    """Of work for a trial."""


@dataclass(frozen=True)
class Run:
    """The run that becomes a file."""

    state: State
    scenario: Scenario
    seed: int
    work: Work

    def trial(self, *, packets: bool = False) -> Trial:
        """The run with its samples and events, and the packets where they are asked for.

        :raises TcpscapeError: one line, for a scenario that cannot run, and where the server ends.
        """
        interval = sampling(self.scenario.duration * self.scenario.flow_count)
        job = Job(self.scenario, self.seed, FIRST, Capture(interval, interval, packets, events=True))
        try:
            return next(trial for _, trial in self.work.trials([job]))
        except Cancelled:
            refuse("page", "the run was ended", "ask again")


def _answer(kind: FileKind, context: Context, asked: Asking) -> Download:
    """The file. :raises TcpscapeError: one line, for a state that makes no sense or a run that is too long to be recorded."""
    scenario = asked.state.scenario(asked.cca)
    seconds = engines.make("model").seconds(scenario)
    if seconds > kind.most_seconds:
        fix = "watch it for a shorter time, or lower the rate"
        refuse("duration", f"this run may have {seconds / PACKET_S / 1e6:.1f} million packets, too many for {kind.name}", fix)
    work = Work(context.pages.pool, lambda _: None, context.page)
    data = kind.make(Run(asked.state, scenario, asked.seed, work))
    return Download(f"{names.component(f'tcpscape-{scenario.cca}-seed{asked.seed}')}{kind.suffix}", kind.media_type, data)


def sampling(duration: int) -> int:
    """The interval of the samples of a trial whose flows take so long in all, ns: a round one."""
    least = max(LEAST_INTERVAL, -(-duration // MOST_SAMPLES))
    scale = LEAST_INTERVAL
    while True:
        for digit in ROUND:
            if digit * scale >= least:
                return digit * scale
        scale *= 10


def _pcapng(run: Run) -> bytes:
    with tempfile.TemporaryDirectory(prefix="tcpscape-") as folder:
        file = Path(folder) / "run.pcapng"
        engines.make("model").write_pcap(run.scenario, run.seed, file)
        return reading.content(file, PACKETS)


def _exported(name: str, *, packets: bool = False) -> Callable[[Run], bytes]:
    """Makes the file of a format of `tcpscape export`."""

    def make(run: Run) -> bytes:
        write = interchange.REGISTRY[name].write_trial
        return write(run.trial(packets=packets), run.scenario.mtu) if write else b""

    return make


def _csv(run: Run) -> bytes:
    """A row for each sample of each flow, as `tcpscape export --to csv --samples` writes them."""
    trial, write = run.trial(), interchange.REGISTRY["csv"].write_rows
    one = run.state if run.state.mix else run.state.replace(cca=(run.scenario.cca,))
    campaign = one.campaign(seeds=f"{run.seed}..{run.seed}")
    return write(sources.of_outcome(gather(campaign, campaign.cases(), [[trial]], {"model": trial.version})).samples()) if write else b""


KINDS: Mapping[str, FileKind] = {
    kind.name: kind
    for kind in (
        FileKind("pcapng", "pcapng", "every packet at the sender, for Wireshark", ".pcapng", "application/octet-stream", _pcapng, MOST_WITH_PACKETS),
        FileKind(
            "perfetto",
            "Perfetto trace",
            "windows, rates, queues and events over time, for ui.perfetto.dev",
            ".perfetto-trace",
            "application/octet-stream",
            _exported("perfetto"),
        ),
        FileKind(
            "qlog",
            "qlog",
            "the same as QUIC's events, with packets, for qvis",
            ".qlog",
            "application/qlog+json",
            _exported("qlog", packets=True),
            MOST_WITH_PACKETS,
        ),
        FileKind("csv", "CSV", "a row for each sample of each flow", ".csv", "text/csv", _csv),
    )
}
"""Every kind of file by its name."""
ROUTES = tuple(Post(f"file/{kind.name}", Asking, functools.partial(_answer, kind)) for kind in KINDS.values())
