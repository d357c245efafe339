"""The queue of a bottleneck: tc's words for it, or its name alone, and a limit in bytes as the unit in which that queue counts.

A FIFO in bytes needs no name. Any other queue is named as tc names it (`fq_codel`, `red limit 60000 avpkt 1500 ecn`); it becomes the child of a
token bucket, or shapes by itself where it can (`cake`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tcpscape import units
from tcpscape.errors import WordsError, refuse
from tcpscape.scenario.words import QueueDescription, describe

FRAME = 1514
"""Bytes of a full Ethernet frame: one packet of a limit in packets."""
MEMORY = 1448 + 1280
"""Bytes of memory of a full packet: its payload and the kernel's own (docs/models/queues/cake.md)."""
SHAPERS: Mapping[str, str] = {"cake": "bandwidth"}
"""Queues that have a shaper of their own → the word of its rate."""
NAMED: Mapping[str, str] = {"red": "red limit {bytes} avpkt 1500 bandwidth {rate}", "choke": "choke limit {packets} bandwidth {rate}"}
"""Queues whose name alone is too little for tc → the words that the name stands for."""
FIFO = "fifo"
"""The FIFO in bytes that a bottleneck without a named queue has, where it is named beside others."""
DELAYS = ("netem", "jitter")
"""Stages that delay packets on purpose: no queue of a bottleneck."""
EXAMPLE = "write for example fq_codel, or 'fq_codel limit 1000 target 10ms' (`tcpscape qdisc list` shows them all)"


def words(queue: str, rate_bps: int, limit: int, *, limited: bool) -> str:
    """tc's words of the queue `queue` of a link of `rate_bps` bit/s.

    :param limit: bytes.
    :param limited: whether a user said the limit; otherwise it is that of the queues in :data:`NAMED` alone, and any other has its own.
    :raises TcpscapeError: one line, for what tc does not take, and for a limit that is given twice.
    """
    name, rate, packets = queue.partition(" ")[0], units.format_rate(rate_bps), max(1, round(limit / FRAME))
    text = NAMED[name].format(bytes=limit, packets=packets, rate=rate) if queue in NAMED else queue
    if limited and queue not in NAMED:
        own = describe(text)[0]
        if queue != name and _limits(own) != _limits(describe(name)[0] if name not in NAMED else None):
            refuse("buffer", f"the words of the queue ({queue}) have a limit of their own", "leave one of them out")
        in_packets, in_bytes, _ = _limits(own)
        text += f" limit {packets}" if in_packets else f" limit {limit}" if in_bytes else f" memlimit {packets * MEMORY}"
    return f"{text} {SHAPERS[name]} {rate}" if name in SHAPERS else text


def check(queue: str) -> str:
    """`queue` with single spaces, if it is one that a bottleneck can have.

    :raises ScenarioError: one line, for what is none.
    """
    text = " ".join(queue.split())
    if text == FIFO:
        return text
    name = text.partition(" ")[0]
    if not name or name in DELAYS:
        refuse("queue", f"{name or 'an empty text'} is no queue of a bottleneck", EXAMPLE)
    try:
        described = describe(text if text not in NAMED else words(text, 10_000_000, 100 * FRAME, limited=False))
    except WordsError as e:
        refuse("queue", e.what, EXAMPLE)
    if described[0].rate_bps:
        refuse("queue", f"{text!r} limits the rate, which is the bottleneck's", "leave it out of the queue's words")
    if len(described) > 1:
        refuse("queue", f"{text!r} is more than one queue", "name one, or write the bottleneck in tc's words")
    return text


def _limits(queue: QueueDescription | None) -> tuple[int | None, int | None, int | None]:
    """Its limits in packets, in bytes and in memory."""
    return (queue.limit_packets, queue.limit_bytes, queue.limit_memory_bytes) if queue else (None, None, None)
