"""Random loss apart from what a full queue drops, and the buffer's size.

A full queue drops packets only when it is full, a lossy link at any time. The queue's length at each packet is known from the fit of the bottleneck:

- Loss of packets that met a queue well below the longest one is random; its share among such packets is the probability, whatever the queue does
  else.
- What a packet met is what was in the queue before it. Among the short lengths, losses that gather at the longest are the queue's too: its length at
  a drop is uncertain beside a jitter, in a burst, or where it holds few packets.
- If packets that met a nearly full queue were lost significantly more often, the rest of their losses is the queue's, and the length just before
  those is the buffer's size. If not, the queue never filled and its size is unknown.
- Where no queue was identified, the delays of the packets next to a lost one say the same: a drop beside delays near the least is random, one beside
  delays at which drops are more frequent is a queue's. Where nearly no packet had a short delay, or no delay was seen at all, the two cannot be told
  apart.
- A policer drops without a delay: when more was sent than its bucket of tokens holds. A bucket lacks as many tokens as a queue of the same rate would
  have bytes in it, so its level is computed as that queue for rates about the flow's own, and taken in the place of the delays where it explains the
  losses better. Where packets waited beside the drops as long as such a bucket lacked tokens, it is that queue.
- No packet waits longer than a full queue takes. A length at drops that is longer than that is none of the queue's: super-packets or an unseen burst
  are in it, and the delays beside the drops say how long it was.
- Independent losses are anywhere. Where the packets next after a lost one were lost far more often than others, and no queue that was seen explains
  it, they were dropped together: by a policer, by a queue that no packet shows, or in bursts. Where these are many, how many were lost at random is
  not identifiable.
- Without SACK, a sender repeats after a timeout all that it had sent: where it did so often, how many were lost is not identifiable.
- What few losses are is not shown: the interval of the random loss begins at 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path.bottleneck import PACKET, Arrivals, FittedBottleneck, QueueDelays, longest_busy, waits
from tcpscape.findings.diagnosis.path.columns import LOST, Ints, Wire, running_median
from tcpscape.findings.diagnosis.path.jitter import share
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.stats import Estimate, special
from tcpscape.stats.estimate import Flags, Floats

FULL = 0.75
"""Share of the longest queue below which no drop is the queue's."""

FEWEST = 200
"""Packets that must have met a short queue, for a random loss apart from the queue's."""
LEVEL = 1.0
"""ms over which delays must spread for a middle between the short and the long ones."""
SURE = 9.0
"""Logarithm of the likelihood ratio from which on two probabilities of loss are taken rather than one."""
FEW = 10
"""Losses below which their interval begins at 0."""
NEXT = 3
"""Segments next after a lost one that are lost with it where losses come in groups."""
RARE = 0.01
"""Probability of what is seen, by chance, below which it is taken for no chance."""
MISPLACED = 0.1
"""Share of a queue's drops that may seem to have met a short queue, since the queue's length at a packet that was lost is an estimate."""
MANY = 0.2
"""Share of the losses that were lost with another one from which on they are not taken for random ones."""
RATES = np.geomspace(0.8, 8.0, 24)
"""Rates of a policer that are tried, of the flow's own mean rate: a flow that it drops from is about as fast, and slower while it pauses."""
EMPTY = 0.02
"""Share of the packets that must have met a short queue, for a loss that depends on no delay to be the path's."""
SHORT_QUEUE = 3.0
"""Packets that a queue must hold for its length at a lost one to be more than a guess: each that leaves changes it by its own time."""
SIZE_PACKETS, SIZE_METHOD = 2.0, 0.06
"""Error of a buffer's size by the method itself, on development captures: packets, and a share."""
GUESSED = 0.6
"""Half of an interval, as a share of the size, above which none is given."""
LOST_TOGETHER = Reason("lost together")
POLICED = Reason("policed")
UNKNOWN_RATE = Reason("queue of unknown rate")
FULL_ALWAYS = Reason("queue always full")
MANY_LENGTHS = Reason("drops at many lengths")


@dataclass(frozen=True, slots=True)
class Losses:
    """Loss of data packets, and what it says about the buffer."""

    random: Estimate | None
    queue: Estimate | None
    buffer: Estimate | None
    reason: Reason | None = None
    """Why the random loss is not identifiable."""
    buffer_reason: Reason | None = None
    """Why the buffer is not."""


def are_guessed(facts: Mapping[str, Any]) -> bool:
    """Whether most of what was lost is not known: without SACK a sender repeats after a timeout all that it had sent, lost or not (RFC 2018 §5.1)."""
    return facts.get("sack") is False and (facts.get("after_timeout") or 0) > MANY * (facts.get("retransmissions") or 0)


def beside_others(random: Estimate, facts: Mapping[str, Any], acks_lost: Estimate | None) -> Estimate:
    """The random loss with the losses that may be none: the receiver discarded segments for their timestamp (RFC 7323 §5.3), or a DSACK was lost."""
    unsure = may_have_passed(facts) * (facts.get("segments") or 0) + unseen_needless(facts, acks_lost)
    return replace(random, low=max(0.0, random.low - 100 * unsure / max(1, random.n)))


def unseen_needless(facts: Mapping[str, Any], acks_lost: Estimate | None) -> float:
    """How many segments at the most were repeated though they had arrived, and seem lost because the DSACK that says so (RFC 2883) was lost.

    Where a share `a` of the ACKs is lost, `1 − a` of them come: the 97.5th percentile of how many others there are, as a negative binomial has it.
    """
    seen = facts.get("spurious_by_dsack") or 0
    share_lost = min(0.99, acks_lost.high / 100) if acks_lost is not None and seen else 0.0
    return (seen * share_lost + 1.96 * math.sqrt(seen * share_lost)) / (1 - share_lost)


def may_have_passed(facts: Mapping[str, Any]) -> float:
    """The share of the segments that seem lost and that the receiver may have discarded, where it surely did so with others."""
    return (facts.get("losses_uncertain") or 0) / max(1, facts.get("segments") or 0) if facts.get("discarded") else 0.0


ACK = 94
"""Bytes of an acknowledgement with timestamps and three SACK blocks in an Ethernet frame."""
MOST_UNSEEN = 0.9
"""Share of the bytes that a capture may lack, by which values are still widened."""


def not_captured(flow: ObservedFlow) -> float:
    """The share of the bytes that the capture lacks: acknowledged and never seen."""
    return min(MOST_UNSEEN, (flow.facts.get("not_captured_bytes") or 0) / max(1, flow.bytes or 0))


def with_unseen(found: Losses, unseen: float, served: float) -> Losses:
    """The losses, whose buffer may be larger by what the capture lacks of a busy time: that was in the queue, and counts in none of its lengths.

    What is missing all the time makes the bottleneck seem slower, and adds up to nothing; by how much more or less is missing by chance does.

    :param unseen: share of the bytes that the capture lacks. :param served: bytes of the longest time in which the queue was never empty.
    """
    packets = unseen * served / PACKET
    size = min(packets, 1.96 * math.sqrt(packets)) * PACKET
    if found.buffer is None or size <= 0:
        return found
    if size > GUESSED * found.buffer.value:
        return replace(found, buffer=None, buffer_reason=Reason("not all captured"))
    return replace(found, buffer=replace(found.buffer, high=found.buffer.high + size))


def beside_data(flow: ObservedFlow) -> float:
    """The largest share by which the sender's own acknowledgements, and SACK blocks in its data, add to the bytes that its bottleneck serves.

    It sends one for each segment of the receiver's data, and of other connections' from there, at the most, and they pass the same queue.
    """
    others = ACK * flow.others_back / max(1, flow.bytes or 0) if flow.others_load_back else 0.0
    if not flow.loads_back:
        return min(1.0, others)
    every = flow.facts.get("ack_stride") or 1
    segments = float(np.sum(flow.acks["len"], dtype=np.float64)) * every / max(1, flow.facts.get("segment_size") or PACKET)
    segments += float(np.sum(flow.acks["beside"], dtype=np.float64)) * every if "beside" in flow.acks else 0.0
    return min(1.0, ACK * segments / max(1, flow.bytes or 0) + others)


def of_path(w: Wire, skip: Flags, level: Floats | None = None) -> Losses:
    """Losses where no queue was identified: all are the path's, but those beside delays at which loss is more frequent.

    :param skip: segments whose loss may be another one (`arrivals.exposed`).
    :param level: the delay about each segment, ms (`levels`); None where there is none.
    """
    lost = (w.fate == LOST) & ~skip
    count, sent = int(lost.sum()), max(1, int(np.sum(~skip)))
    if count and level is None:
        return Losses(None, None, None, Reason("queue unseen"), Reason("queue unseen"))
    if not count or level is None:
        return all_random(count, sent)
    met, passed = level[lost], level[~lost & ~skip]
    if count < FEW:
        return of_few(met, passed, sent)
    threshold, gain = frequent_from(passed, met)
    by_bucket = bucket(w, lost)
    is_policed = by_bucket.gain > gain
    if is_policed and math.isfinite(threshold) and by_bucket.threshold <= float(np.median(met[met >= threshold]) - np.quantile(passed, 0.002)):
        if gain < by_bucket.gain / 2:
            return Losses(None, None, None, LOST_TOGETHER, UNKNOWN_RATE)
        is_policed = False
    if is_policed:
        threshold, passed, met = by_bucket.threshold, by_bucket.passed, by_bucket.met
    if math.isinf(threshold):
        return of_link(lost, sent) if is_once_short(passed) else Losses(None, None, None, FULL_ALWAYS, FULL_ALWAYS)
    packet_ms = float(w.t.max() - w.t.min()) / w.t.size
    return apart(sent, passed, met, threshold, "bucket" if is_policed else "delay" if by_bucket.gain == 0 else "either", packet_ms)


def apart(sent: int, passed: Floats, met: Floats, threshold: float, shown_by: Literal["delay", "bucket", "either"], packet_ms: float = 0.0) -> Losses:
    """Random losses apart from those of a queue or a policer, by the levels that packets met; from the threshold on loss is more frequent.

    :param shown_by: what the levels are of; `either` are delays where a bucket explains the losses too.
    :param packet_ms: from one packet of the flow to the next in the mean, which is at least what a packet takes at the queue.
    """
    count = met.size
    least, most = (float(x) for x in np.quantile(passed, (0.002, 0.98)))
    near_empty = int(np.sum(passed < min(least + (most - least) / 4, threshold)))
    middle = (least + most) / 2
    if most - least > LEVEL and middle < threshold and int(np.sum(passed < middle)) >= FEWEST:
        threshold = middle
    low_lost = int(np.sum(met < threshold))
    low = low_lost + int(np.sum(passed < threshold))
    queue = share(max(0, round(count - low_lost / max(1, low) * sent)), sent)
    if low < FEWEST or near_empty < max(FEWEST, 0.02 * sent):
        return Losses(None, None, None, FULL_ALWAYS, UNKNOWN_RATE)
    is_policed = shown_by == "bucket" or (shown_by == "either" and most - least <= LEVEL)  # a queue would have delayed something
    if is_policed and low_lost / low * sent > MISPLACED * count:
        return Losses(None, None, None, POLICED, UNKNOWN_RATE)
    if shown_by != "bucket" and most - least < SHORT_QUEUE * packet_ms:
        random, queue = of_uncertain(low_lost, low, count - low_lost, passed.size + count), replace(queue, low=0.0)
    else:
        random = of_uncertain(low_lost, low, count - low_lost)
    return Losses(random, queue, None, None, UNKNOWN_RATE)


def of_link(lost: Flags, sent: int) -> Losses:
    """Losses that depend on nothing: random, unless many come in groups."""
    count, together = int(lost.sum()), grouped(lost)
    return all_random(count - together, sent) if together < MANY * count else Losses(None, None, None, LOST_TOGETHER, LOST_TOGETHER)


def all_random(count: int, sent: int) -> Losses:
    """Every loss is the path's."""
    return Losses(share(count, sent), Estimate(0.0, 0.0, 300.0 / sent, sent, "%"), None, None, Reason("never filled a queue"))


def of_few(met: Floats, passed: Floats, sent: int) -> Losses:
    """Few losses: a queue's where all are beside the longest delays, which is no chance; otherwise random ones perhaps."""
    count = met.size
    if count > 1 and float(np.mean(passed >= met.min())) ** count < RARE:
        return Losses(of_uncertain(0, sent, count), share(count, sent), None, None, UNKNOWN_RATE)
    queue = Estimate(0.0, 0.0, share(count, sent).high, sent, "%")
    return Losses(of_uncertain(count, sent, 0), queue, None, None, Reason("few lost"))


def of_uncertain(count: int, sent: int, others: int, guessed_of: int = 0) -> Estimate:
    """The share of random losses; from 0 on where they are few, or may be some of a queue's `others` that seem to have met a short queue.

    :param guessed_of: packets in all, of a queue that holds so few that its length at a lost one is a guess: any loss may be a random one.
    """
    known = share(count, sent)
    low = 0.0 if guessed_of or count < max(FEW, MISPLACED * others) else known.low
    high = max(known.high, share(count + others, guessed_of).high) if guessed_of else known.high
    return replace(known, low=low, high=high)


def is_once_short(passed: Floats) -> bool:
    """Whether the delays of packets that passed were ever short: beside a queue that is full all the time, drops depend on no delay either."""
    least, most = (float(x) for x in np.quantile(passed, (0.002, 0.98)))
    return most - least < LEVEL or float(np.mean(passed < least + (most - least) / 4)) > EMPTY


def grouped(lost: Flags) -> int:
    """Losses next after another one, beyond those that independent losses have; segments in the order of sending. 0 where that may be chance."""
    at = np.flatnonzero(lost)
    if at.size < 2:
        return 0
    together = int(np.sum(np.diff(at) <= NEXT))
    share_alone = (1 - at.size / lost.size) ** NEXT
    if not together or float(special.bdtrc(together - 1, at.size - 1, 1 - share_alone)) >= RARE:
        return 0
    return round(together - (at.size - 1) * (1 - share_alone))


def frequent_from(passed: Floats, met: Floats, tried: int = 1) -> tuple[float, float]:
    """The level from which on loss is more frequent than below: where two probabilities explain the losses best; infinite where one does.

    With it, by how much they do, the logarithm of the likelihood ratio; `tried`: the best of so many accounts of the level.
    """
    all_ = np.sort(np.concatenate([passed, met]))
    edges = np.unique(quantiles(all_, np.linspace(0, 1, 21)[1:-1]))
    lost = np.searchsorted(np.sort(met), edges, side="left")
    got = np.searchsorted(all_, edges, side="left") - lost

    def fits(hits: Ints, misses: Ints) -> Floats:
        n = np.maximum(1, hits + misses)
        return np.asarray(special.xlogy(hits, hits / n) + special.xlogy(misses, misses / n), dtype=np.float64)

    gain = fits(lost, got) + fits(met.size - lost, passed.size - got) - fits(np.array([met.size]), np.array([passed.size]))
    rises = lost * (passed.size + met.size) < met.size * (got + lost)
    gain = np.where(rises, gain, 0.0)
    best = float(gain.max(initial=0.0))
    return (float(edges[int(np.argmax(gain))]) if best > SURE + math.log(tried) else math.inf), best


def quantiles(x: Floats, of: Floats) -> Floats:
    """Quantiles of values that are sorted, by the same arithmetic as NumPy's, which would sort them again; NaN where one is."""
    if not x.size or np.isnan(x[-1]):
        return np.full(of.size, np.nan)
    at = of * (x.size - 1)
    below = np.floor(at).astype(np.int64)
    part, low, high = at - below, x[below], x[np.minimum(below + 1, x.size - 1)]
    return np.asarray(np.where(part >= 0.5, high - (high - low) * (1 - part), low + (high - low) * part))


@dataclass(frozen=True, slots=True)
class Bucket:
    """What a bucket of tokens lacked when packets came to it, ms of its rate."""

    threshold: float = math.inf
    """From here on loss is more frequent; infinite where no bucket explains the losses."""
    gain: float = 0.0
    passed: Floats = field(default_factory=lambda: np.empty(0))
    """At packets that passed."""
    met: Floats = field(default_factory=lambda: np.empty(0))
    """At packets that were lost."""

    @property
    def left(self) -> float:
        """Share of the losses that the bucket does not explain."""
        return float(np.mean(self.met < self.threshold)) if self.met.size else 1.0


def bucket(w: Wire, lost: Flags) -> Bucket:
    """The bucket of tokens that explains the losses best, of those that explain most of them."""
    sent, size = np.concatenate([w.t[~lost], w.again_t]), np.concatenate([w.size[~lost], w.size[w.again_row]])
    row = np.concatenate([np.flatnonzero(~lost), w.again_row])
    order = np.lexsort((row, sent))
    sent, size, row = sent[order], size[order], row[order]
    if sent.size < FEWEST or sent[-1] <= sent[0]:
        return Bucket()
    at = np.interp(w.seq[lost], w.seq[~lost], w.t[~lost])  # what was lost before the capture came with its neighbours
    last = last_before(sent, row, at, np.flatnonzero(lost))
    best = Bucket()
    for rate in RATES * size.sum() * 8e-3 / (sent[-1] - sent[0]):
        service = size * 8e-3 / rate
        level = waits(sent, service, 0.0)
        packet = float(np.median(service))  # levels are told apart by packets, not by what is rounded
        passed, met = (np.round(np.maximum(0.0, x) / packet) * packet for x in (level - service, level[last] - (at - sent[last])))
        threshold, gain = frequent_from(passed, met, RATES.size)
        found = Bucket(threshold, gain, passed, met)
        if gain > best.gain and found.left < 0.5:
            best = found
    return best


def last_before(at: Floats, row: Ints, lost_at: Floats, lost_row: Ints) -> Ints:
    """The last of these packets before each lost one: of a burst with one time only what comes before it in the sequence was there.

    :param at: times of the packets, in their order. :param row: their places in the sequence.
    """
    order = np.lexsort((np.concatenate([row, lost_row]), np.concatenate([at, lost_at])))
    is_lost = order >= at.size
    before = np.empty(lost_at.size, dtype=np.int64)
    before[order[is_lost] - at.size] = (np.cumsum(~is_lost) - 1)[is_lost]
    return np.clip(before, 0, None)


def levels(w: Wire, row: Ints, delay: Floats) -> Floats | None:
    """The delay about each segment, ms: the median of the delays that are known of its neighbours; None of too few."""
    if row.size < 200:
        return None
    order = np.argsort(row, kind="stable")
    smooth = running_median(delay[order], 5)
    return np.asarray(np.interp(np.arange(w.t.size), row[order], smooth), dtype=np.float64)


def of_queue(w: Wire, skip: Flags, d: QueueDelays, b: FittedBottleneck, jitter: float, level: Floats | None = None) -> Losses:
    """Losses where the bottleneck is known.

    :param level: as of `of_path`, which answers where drops do not depend on the queue.
    :param jitter: standard deviation of the delay before the queue, ms: the queue's length at a packet is not known better than over this time.
    """
    arrivals, length = d.arrivals, b.queue * b.rate * 125.0
    lost = (w.fate == LOST) & ~skip
    if not lost.any() or length.size == 0:
        return of_path(w, skip, level)
    met, most_met = (lengths_at(arrivals, length, b.rate, at, np.flatnonzero(lost)) for at in sent_with(w, lost, arrivals.is_stamped))
    before = np.maximum(0.0, length - arrivals.size)  # a packet's time in the queue has its own service in it
    passed, longest = before[~skip[arrivals.row]], float(np.quantile(before, 0.9999))
    if longest < 3_000 or passed.size == 0:
        return of_path(w, skip, level)
    threshold = even_below(passed, met, min(quiet_below(passed, met), FULL * longest - 0.4 * jitter * b.rate * 125))
    low_lost, high_lost = int(np.sum(met < threshold)), int(np.sum(met >= threshold))
    low, high = int(np.sum(passed < threshold)) + low_lost, int(np.sum(passed >= threshold)) + high_lost
    p = low_lost / low if low else 0.0
    excess = float(special.bdtrc(high_lost - 1, high, min(1.0, max(p, (low_lost + 1) / (low + 2)))))
    if excess > 1e-3 or high_lost < 2:
        if int(lost.sum()) >= 10 and int(np.sum(passed < longest / 4)) < max(FEWEST, 0.02 * passed.size):
            return Losses(None, None, None, FULL_ALWAYS, Reason("drops at any length"))
        found = of_path(w, skip, level)  # of drops that the delays explain, but no one length: the rate is known
        return replace(found, buffer_reason=MANY_LENGTHS) if found.buffer_reason is UNKNOWN_RATE else found
    drops = np.sort(met[met >= threshold])[int(min(p * high, high_lost // 2)) :]
    queue = share(max(0, round(high_lost - p * high)), low + high)
    packet = max(float(PACKET), w.largest)
    unsure = (b.error * longest_busy(arrivals, b) + max(b.noise, jitter) * b.rate) * 125.0  # what a rate that is off a little adds up to, and jitter
    buffer, why = _size(drops, longest, packet, unsure)
    if buffer:
        buffer, why = _waited(buffer, _overlong(d, b) * b.rate * 125.0, packet + d.tick * b.rate * 125.0)
    early = np.isin(np.arange(lost.size), np.flatnonzero(lost)[met < threshold])
    is_grouped = grouped(early) >= MANY * max(1, low_lost)
    is_policed = low_lost >= FEW and bucket(w, lost).left < 0.5 * low_lost / (low_lost + high_lost)
    reason = FULL_ALWAYS if low < FEWEST else LOST_TOGETHER if is_grouped else POLICED if is_policed else None
    is_guess = longest < SHORT_QUEUE * PACKET
    random = None if reason else of_uncertain(low_lost, low, high_lost, low + high if is_guess else 0)
    if random is not None:  # what left with the one before it met a longer queue, and may be that queue's drop
        fewest = int(np.sum(most_met < threshold))
        random = replace(random, low=min(random.low, of_uncertain(fewest, low, high_lost + low_lost - fewest).low))
    if random is not None and why == MANY_LENGTHS:  # then those at short lengths and those at long ones may be of the same kind
        random = replace(random, low=0.0, high=max(random.high, share(low_lost + high_lost, low + high).high))
    queue = replace(queue, low=0.0) if is_guess else queue
    return Losses(random, None if reason is POLICED else queue, buffer, reason, why)


def sent_with(w: Wire, lost: Flags, is_stamped: bool) -> tuple[Floats, Floats]:
    """When each lost segment was sent, ms: between its neighbours, and at the earliest, with the one before it.

    What was lost before the capture is seen when it was sent again. Segments leave in bursts, of which a queue drops the end: what was sent
    with the one before seems to have met a shorter queue in the middle between two bursts.
    """
    clock, rows, others = w.stamp if is_stamped else w.t, np.flatnonzero(lost), np.flatnonzero(~lost)
    with_last = clock[others[np.maximum(np.searchsorted(others, rows) - 1, 0)]]
    between = np.interp(w.seq[rows], w.seq[others], clock[others])
    is_seen = (w.sends[rows] > 1) & (not is_stamped)
    return np.where(is_seen, w.t[rows], between), np.where(is_seen, w.t[rows], with_last)


def lengths_at(a: Arrivals, length: Floats, rate: float, at: Floats, rows: Ints) -> Floats:
    """The queue's length, bytes, at these times, of segments at these places in the sequence; `length`: with each of the arrivals."""
    last = last_before(a.at, a.row, at, rows)
    return np.asarray(np.maximum(0.0, length[last] - (at - a.at[last]) * rate * 125.0))


def quiet_below(passed: Floats, met: Floats) -> float:
    """The length of the queue from which on packets are lost more often than at shorter ones; infinite where there is none."""
    edges = np.quantile(np.concatenate([passed, met]), np.linspace(0, 1, 21))
    got, lost = (np.diff(np.searchsorted(np.sort(x), edges, side="left")) for x in (passed, met))
    seen = gone = 0
    for k in range(got.size):
        of = int(got[k] + lost[k])
        if seen and lost[k] >= 3 and special.bdtrc(int(lost[k]) - 1, of, min(1.0, (gone + 1) / (seen + 2) * 1.5)) < 1e-4:
            return float(edges[k])
        seen, gone = seen + of, gone + int(lost[k])
    return np.inf


def even_below(passed: Floats, met: Floats, threshold: float) -> float:
    """A length of the queue below which the lost packets met none that were longer than the others'; at most `threshold`.

    A queue drops some packets at lengths that seem shorter than they were: beside a jitter, in a burst, or where it holds but a few packets.
    """
    while True:
        others, own = passed[passed < threshold], met[met < threshold]
        if own.size < 2 or others.size < FEWEST or by_chance_longer(own, others) >= RARE:
            return threshold
        threshold = min(float(np.median(others)), float(np.nextafter(threshold, 0.0)))


def by_chance_longer(own: Floats, others: Floats) -> float:
    """The probability, by chance, that those are as much longer than these: of their ranks (Mann and Whitney 1947), as a normal distribution."""
    ordered = np.sort(others)
    below = (np.searchsorted(ordered, own, side="left") + np.searchsorted(ordered, own, side="right")) / 2
    n = own.size * others.size
    return float(special.ndtr((n / 2 - below.sum()) / math.sqrt(n * (own.size + others.size + 1) / 12)))


def _size(drops: Floats, longest: float, packet: float, unsure: float = 0.0) -> tuple[Estimate | None, Reason | None]:
    """Buffer, bytes, from the lengths that dropped packets met, or why it is not known: a packet is dropped that would exceed it.

    :param packet: bytes of large packets or super-packets as they are seen: no length is known better.
    :param unsure: standard error of a length, bytes.
    """
    middle = float(np.median(drops))
    if middle < 0.7 * longest or float(np.mean(np.abs(drops - middle) < 0.2 * middle + PACKET)) < 0.5:
        return None, MANY_LENGTHS
    value = middle + max(float(PACKET), packet / 2)  # the packet that did not fit, and of the one being sent the part that has left
    half = max(SIZE_PACKETS * packet, 2 * unsure, 1.25 * 2 * float(np.std(drops)) / np.sqrt(drops.size), SIZE_METHOD * value)
    if half > GUESSED * value:
        return None, Reason("length unsure")
    return Estimate(value, value - half, value + half, int(drops.size), "B"), None


def _overlong(d: QueueDelays, b: FittedBottleneck) -> float:
    """How much longer the queue would have kept the packets that waited longest than they were seen to wait, ms; as against those that waited least.

    A burst of a token bucket that the fit has too small makes all waits behind it too long by as much.
    """
    known, seen = b.wait[d.index], d.delay - d.delay.min()
    longest, least = known >= np.quantile(known, 0.9), seen <= np.quantile(seen, 0.01)
    return float(np.median((known - seen)[longest]) - np.median((known - seen)[least]))


def _waited(buffer: Estimate, over: float, packet: float) -> tuple[Estimate | None, Reason | None]:
    """The buffer without what no packet waited for; None where packets waited for more: others' were in the queue, and are not in the buffer.

    The fit's burst may be what is wrong, not the length at drops: the interval ends where it did.

    :param over: bytes by which the queue seems too long. :param packet: bytes that cannot be told from none.
    """
    if over < -packet and buffer.value - over > buffer.high:
        return None, Reason("waits longer")
    if over <= packet:
        return buffer, None
    if over > 0.5 * buffer.value:
        return None, Reason("waits shorter")
    half = max((buffer.high - buffer.low) / 2, over / 2)
    value = buffer.value - over
    return Estimate(value, value - half, max(value + half, buffer.high), buffer.n, "B"), None
