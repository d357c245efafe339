"""The bound of a drop of rate as a screen, and as a document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from typing_extensions import TypedDict

from tcpscape import units
from tcpscape.findings.spike import NS_PER_MS, Bound
from tcpscape.text.numbers import Number, number, percent
from tcpscape.text.screen import Screen
from tcpscape.text.table import Table, table_of

LOADS = (0.0, 0.5, 0.8, 0.9, 0.95)
"""Loads of the new link for which the time to drain is given."""
BDPS = (1, 3)
"""Buffers, in bandwidth-delay products of the old rate, that a flow may keep full."""
HOLDS = "holds for a full link, an empty queue at the drop, and senders that send at the new rate as soon as they can know it: real ones do worse"
EVENED = (
    "The longest RTT is more than (1 + r) times the shortest: windows may stay below the sum, since the short flow gives way before the long one's "
    "packets have all come."
)
BURST = 6056
"""Bytes of the token bucket in the command that shows the spike."""


class BoundDocument(TypedDict):
    """The latency spike that a drop of a full link's rate must make. What `tcpscape bound --json` prints."""

    format: Literal[1]
    """Format of a bound."""
    from_bps: int
    """Rate before the drop, bit/s."""
    to_bps: int
    """Rate after the drop, bit/s."""
    ratio: float
    """Rate before / rate after."""
    rtt_ms: float
    """Round trip from the bottleneck to the sender and back, ms; of several flows the mean by their shares."""
    max_queue_ms: float | None
    """Longest delay that the queue lets a packet wait, ms; null is no limit."""
    spike_ms: float
    """Least rise of the delay, ms."""
    unlimited_spike_ms: float
    """Least rise of the delay where the queue has no limit, ms."""
    queued_bytes: float
    """Bytes in the queue at the peak."""
    queued_packets: float
    """The same in packets."""
    lost_of_excess: float
    """Share of what would queue that is lost, a fraction."""
    lost_of_arrivals: float
    """Share of what arrives that is lost, a fraction."""
    lost_bytes: float
    """Bytes lost."""
    drained_after_ms: dict[str, float]
    """Load of the new link (0 to 0.95) → after how long the queue is empty again, ms."""
    full_buffer_ms: dict[str, float]
    """Buffer that stands full before the drop (`1bdp`, `3bdp`) → delay at the peak, ms."""


def screen(bound: Bound) -> Screen:
    """The screen of a bound."""
    mean = "" if len(bound.flows) == 1 else f", the mean of {len(bound.flows)} flows by their shares"
    rates = f"{units.format_rate(bound.before_bps)} to {units.format_rate(bound.after_bps)}"
    path = f"A full link drops from {rates}: r = {number(bound.ratio)}; d = {_ms(bound.d_ns)} from the bottleneck to the sender and back{mean}"
    drained = Table(("after the drop", "at least"), list(_rows(bound)), words=("at least",))
    remarks = (*(() if bound.excess_lost else (standing(bound),)), *((EVENED,) if bound.is_evened else ()))
    return Screen(path, answer(bound), remarks=remarks, tables=(drained,), caveats=(HOLDS,), next=(show(bound),))


@table_of.register
def table(bound: Bound) -> Table:
    """One row: the drop, the round trip, the least spike, and what queues and is lost."""
    columns = ("drop", "r", "d, ms", "spike, ms: at least", "queued, kB", "lost of the excess")
    drop = f"{units.format_rate(bound.before_bps)} to {units.format_rate(bound.after_bps)}"
    numbers = (bound.ratio, bound.d_ns / NS_PER_MS, bound.spike_ns / NS_PER_MS, bound.queued_bytes / 1000)
    return Table(columns, [(drop, *map(Number.of, numbers), Number.percent(bound.excess_lost))])


def answer(bound: Bound) -> str:
    """The answer as a sentence."""
    if bound.excess_lost and bound.max_queue_ns is not None:
        limit = f"The delay rises by {_ms(bound.spike_ns)}, where the queue is full; without its limit at least {_ms(bound.unlimited_ns)}"
        return f"{limit}: {percent(bound.excess_lost, 1)} of what would queue is lost."
    rtt = f": the RTT peaks at {_ms(bound.d_ns + bound.spike_ns)} or more" if len(bound.flows) == 1 else ""
    return f"The delay rises by at least {_ms(bound.spike_ns)}, (r − 1)·d{rtt}."


def standing(bound: Bound) -> str:
    """What a queue adds that stands before the drop."""
    full = ", ".join(f"{_ms(bound.ratio * bdps * bound.d_ns)} for {bdps} BDP" for bdps in BDPS)
    return (
        f"A queue that stands before the drop raises the peak: q ms of waiting become r·q, up to r times the buffer. A loss-based control that keeps "
        f"its buffer full: {full}."
    )


def show(bound: Bound) -> str:
    """The command that shows the spike: of one flow a run, of several a study."""
    if len(bound.flows) > 1:
        return "tcpscape study run spike-rtts (measured spikes of several flows against their bounds)"
    d_ns = bound.flows[0][0]
    limit = bound.before_bps * BDPS[-1] * d_ns if bound.max_queue_ns is None else bound.after_bps * bound.max_queue_ns
    delay = f"netem delay {units.format_time(d_ns // 2)}"
    words = f"tbf rate {units.format_rate(bound.before_bps)} burst {BURST} limit {max(BURST, limit // 8 // units.NS_PER_S)}"
    change = f"bottleneck@15s: rate {units.format_rate(bound.after_bps)}"
    return (
        f'tcpscape run --forward "{delay}" --reverse "{delay}" --bottleneck "{words}" --change "{change}" --duration 30s --cca cubic,bbr '
        '(the column "highest RTT")'
    )


def document(bound: Bound) -> BoundDocument:
    """Every number, with its unit in its name."""
    return BoundDocument(
        format=1,
        from_bps=bound.before_bps,
        to_bps=bound.after_bps,
        ratio=bound.ratio,
        rtt_ms=bound.d_ns / NS_PER_MS,
        max_queue_ms=None if bound.max_queue_ns is None else bound.max_queue_ns / NS_PER_MS,
        spike_ms=bound.spike_ns / NS_PER_MS,
        unlimited_spike_ms=bound.unlimited_ns / NS_PER_MS,
        queued_bytes=bound.queued_bytes,
        queued_packets=bound.queued_bytes / bound.packet,
        lost_of_excess=bound.excess_lost,
        lost_of_arrivals=bound.lost,
        lost_bytes=bound.lost_bytes,
        drained_after_ms={f"{load:g}": bound.drain_ns(load) / NS_PER_MS for load in LOADS},
        full_buffer_ms={f"{bdps}bdp": bound.ratio * bdps * bound.d_ns / NS_PER_MS for bdps in BDPS},
    )


def _rows(bound: Bound) -> Iterator[tuple[str, str]]:
    """What queues, what is lost, and when the queue is empty again."""
    yield "queued at the peak", _size(bound.queued_bytes, bound.packet)
    if bound.max_queue_ns is None:
        yield "lost", "nothing, if the queue holds that much"
    elif not bound.excess_lost:
        yield "lost", f"nothing, the spike stays below {_ms(bound.max_queue_ns)}"
    else:
        when = f"the {_ms(bound.d_ns)} after the drop" if len(bound.flows) == 1 else "the round trip of each flow after the drop"
        yield "lost", f"{_size(bound.lost_bytes, bound.packet)}, {percent(bound.lost, 1)} of all that arrives in {when}"
    for load in LOADS:
        yield f"empty again at {percent(load)} load", _ms(bound.drain_ns(load))


def _ms(ns: float) -> str:
    return f"{number(ns / NS_PER_MS)} ms"


def _size(size: float, packet: int) -> str:
    """`250 kB (165 packets of 1514 B)`."""
    return f"{number(size / 1000)} kB ({size / packet:.0f} packets of {packet} B)"
