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
from tcpscape.engines import Capture
from tcpscape.engines.model import PACKET_S
from tcpscape.errors import refuse
from tcpscape.interchange import sources
from tcpscape.reading import files as reading
from tcpscape.reading.files import MIB, Kind
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Trial
from tcpscape.units import NS_PER_S
from tcpscape.web.routes import Asked, Context, Download, Post
from tcpscape.web.state import State

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

    state: State
    cca: str
    """One of the state's congestion controls; of a mixture any."""
    seed: int = Field(default=0, ge=0, lt=2**32)


@dataclass(frozen=True)
class FileKind:
    """A kind of file that the page offers."""

    name: str
    suffix: str
    media_type: str
    make: Callable[[State, Scenario, int], bytes]
    most_seconds: float = MOST_SECONDS
    """Of work for a trial."""


def _answer(kind: FileKind, _: Context, asked: Asking) -> Download:
    """The file.

    :raises TcpscapeError: one line, for a state that makes no sense or a run that is too long to be recorded.
    """
    scenario = asked.state.scenario(asked.cca)
    seconds = engines.make("model").seconds(scenario)
    if seconds > kind.most_seconds:
        fix = "watch it for a shorter time, or lower the rate"
        refuse("duration", f"this run may have {seconds / PACKET_S / 1e6:.1f} million packets, too many for {kind.name}", fix)
    data = kind.make(asked.state, scenario, asked.seed)
    return Download(f"{names.component(f'tcpscape-{scenario.cca}-seed{asked.seed}')}{kind.suffix}", kind.media_type, data)


def _trial(scenario: Scenario, seed: int, *, packets: bool = False) -> Trial:
    """The run with its samples and events, and the packets where they are asked for."""
    interval = sampling(scenario.duration * scenario.flow_count)
    return engines.make("model").run(scenario, [seed], capture=Capture(interval, interval, packets, events=True))[0]


def sampling(duration: int) -> int:
    """The interval of the samples of a trial whose flows take so long in all, ns: a round one."""
    least = max(LEAST_INTERVAL, -(-duration // MOST_SAMPLES))
    scale = LEAST_INTERVAL
    while True:
        for digit in ROUND:
            if digit * scale >= least:
                return digit * scale
        scale *= 10


def _pcapng(_: State, scenario: Scenario, seed: int) -> bytes:
    with tempfile.TemporaryDirectory(prefix="tcpscape-") as folder:
        file = Path(folder) / "run.pcapng"
        engines.make("model").write_pcap(scenario, seed, file)
        return reading.content(file, PACKETS)


def _exported(name: str, *, packets: bool = False) -> Callable[[State, Scenario, int], bytes]:
    """Makes the file of a format of `tcpscape export`."""

    def make(_: State, scenario: Scenario, seed: int) -> bytes:
        write = interchange.REGISTRY[name].write_trial
        return write(_trial(scenario, seed, packets=packets), scenario.mtu) if write else b""

    return make


def _csv(state: State, scenario: Scenario, seed: int) -> bytes:
    """A row for each sample of each flow, as `tcpscape export --to csv --samples` writes them."""
    trial, write = _trial(scenario, seed), interchange.REGISTRY["csv"].write_rows
    one = (state if state.mix else state.model_copy(update={"cca": (scenario.cca,)})).campaign(seeds=f"{seed}..{seed}")
    return write(sources.of_outcome(gather(one, one.cases(), [[trial]], {"model": trial.version})).samples()) if write else b""


KINDS: Mapping[str, FileKind] = {
    kind.name: kind
    for kind in (
        FileKind("pcapng", ".pcapng", "application/octet-stream", _pcapng, MOST_WITH_PACKETS),
        FileKind("perfetto", ".perfetto-trace", "application/octet-stream", _exported("perfetto")),
        FileKind("qlog", ".qlog", "application/qlog+json", _exported("qlog", packets=True), MOST_WITH_PACKETS),
        FileKind("csv", ".csv", "text/csv", _csv),
    )
}
"""Every kind of file by its name."""
ROUTES = tuple(Post(f"file/{kind.name}", Asking, functools.partial(_answer, kind)) for kind in KINDS.values())
