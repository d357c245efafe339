"""What tc's words mean for packets, as the engine's own parser reads them (`crates/path`). Nothing else in Python takes tc's words apart.

:func:`describe` gives a :class:`QueueDescription` for each queue in the words of a hop; `Scenario.queues` those of a path. :func:`parameters` are the
whole of a queue's parameters; canonical words are `_core.to_tc`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from tcpscape.errors import EngineError, WordsError

CACHED_TEXTS = 4096
"""Hops whose descriptions are cached."""


@dataclass(frozen=True, slots=True)
class QueueDescription:
    """What one queue does to packets; its child is a description of its own (crates/path, `discipline/description.rs`)."""

    kind: str
    """tc's name of the discipline: `netem`, `tbf`, `fq_codel`, …"""
    delay_ns: int
    """Constant part of the delay, ns. Waiting in the queue is no part of it."""
    jitter_ns: int
    """Spread of the delay as the words name it, ns: half-width of `uniform`, σ of the other distributions."""
    distribution: Literal["uniform", "normal", "pareto", "paretonormal"] | None
    """Distribution of the delay; None without jitter."""
    loss: float
    """Share of the packets that is lost at random: the probability in the words, the long-run average of `loss state` and `loss gemodel`.
    A correlation makes losses rarer than that (docs/models/queues/netem.md)."""
    duplicate: float
    """Probability of a second copy."""
    corrupt: float
    """Probability of a flipped bit."""
    reorder: float
    """Probability with which a packet that may overtake (`reorder`, `gap`) does."""
    slotted: bool
    """Whether packets leave only when a slot opens, which makes their delay vary without jitter."""
    rate_bps: int | None
    """Rate that all packets share, bit/s; None without one. fq's `maxrate`, red's and choke's `bandwidth` are none."""
    limit_packets: int | None
    """Most packets held."""
    limit_bytes: int | None
    """Most bytes held, frames with their Ethernet header."""
    limit_memory_bytes: int | None
    """Most memory for packets, bytes, the kernel's own for each packet included."""
    in_order: bool
    """Whether packets of one flow that carry the same ECN field leave in the order in which they came."""
    ecn: Literal["never", "enabled", "always"]
    """Whether packets that allow it are marked where others are dropped: `enabled` where the words or their defaults turn it on, `always` in
    disciplines that have no word for it (cake, dualpi2)."""


def queue_names() -> list[str]:
    """Names of the queues and impairments that the engine has. The extension module is there: words were read before."""
    import tcpscape._core as extension

    return [name for name, _ in extension.qdisc_registry()]


@functools.lru_cache(maxsize=CACHED_TEXTS)
def describe(text: str) -> tuple[QueueDescription, ...]:
    """The queues in the words of one hop, from the outside in: what stands before a `;`, then what stands after it.

    A shaper whose words name no child is followed by the queue that it has then (tbf's `bfifo`, htb's `pfifo`).

    :raises WordsError: names the wrong word and what would do instead.
    :raises EngineError: the extension module is not built.
    """
    try:
        import tcpscape._core as extension
    except ImportError:
        raise EngineError("engine: tc's words cannot be read here: the extension module tcpscape._core is not built; run `make setup`") from None
    try:
        return tuple(QueueDescription(**fields) for fields in extension.describe(text))
    except ValueError as e:
        raise WordsError(str(e)) from None


def parameters(text: str) -> dict[str, Any]:
    """The parameters of the queue in the words of one hop, as the engine's plan has them, its child among them: plain numbers in base units.

    :raises WordsError: names the wrong word and what would do instead.
    :raises EngineError: the extension module is not built.
    """
    describe(text)
    from tcpscape import _core

    queue: dict[str, Any] = json.loads(_core.parse_tc(text))
    return queue


@contextmanager
def within(part: str) -> Iterator[None]:
    """What is wrong with words read in this block names the part of the path (`forward`, `bottleneck`, `reverse`) and a fix.

    :raises WordsError: in place of the parser's ValueError or of :func:`describe`'s WordsError.
    """
    try:
        yield
    except (ValueError, WordsError) as e:
        fix = "" if "; " in str(e) else "; correct the word, `tcpscape qdisc list` shows what there is"
        raise WordsError(f"{part}: {e}{fix}") from None
