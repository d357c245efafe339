"""Rate and burst of the bottleneck, by the delay that its queue gives.

For a rate, the queue's delay of every packet follows from the times of sending alone (:class:`Arrivals`). With the true rate, what is left of the
measured delays does not depend on the queue. A rate too low lets the computed queue grow without end, a rate too high leaves the delays as they
are; between them the absolute deviations have one sharp minimum, which is looked for near the rates at which the flow was delivered.

- **Errors of the accounting** (a packet too many or too few in the queue until it drains) shift all later delays by its time of service. So
  deviations are taken from the median of each of some windows in time: such a shift costs one window, not the whole flow.
- **Jitter before the queue** changes the order of packets; the order in which they arrived is known. `jittered` simulates what a
  jitter does to the delays: a busy queue hides most of it.

How the packets that entered the queue are found, and the delay that it gave each of them:

**Accounting.** What the receiver acknowledged arrived exactly once, except for copies that were not needed. So each acknowledged segment is one
arrival, at the last time it was sent that leaves room for the round trip; copies of segments that were repeated needlessly are further arrivals.
It does not matter which packets were lost, and where: those that a queue or a lossy link dropped never took the bottleneck's time.

**Order.** Jitter before the queue changes the order of packets, at the extreme of all those sent at once. The acknowledgements show the order in
which they arrived; so the k-th packet to arrive takes the k-th time of sending.

**Queue.** A bottleneck that serves `rate` with a burst of `burst` bytes (a token bucket; 0 is a plain link without a serialisation of its own)
lets packet i leave at max(aᵢ, cᵢ − burst / rate), where cᵢ = max(cᵢ₋₁, aᵢ) + sizeᵢ / rate is when a server would finish that starts empty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tcpscape import _core
from tcpscape.findings.diagnosis.path.columns import NEEDLESS, Ints, Wire
from tcpscape.stats.estimate import Flags, Floats


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Packets that passed the bottleneck, in the order in which the receiver got them."""

    at: Floats
    """Times of sending in their own order, ms: when a packet of that place came to the queue, less the delay before it."""
    sent: Floats
    """When the packet itself was sent."""
    size: Floats
    """Bytes with all headers, as tc counts them."""
    row: Ints
    """Its segment."""
    is_stamped: bool = False
    """Whether times are by the sender's clock."""
    before: Floats = field(init=False)
    """Bytes that came before each packet."""

    def __post_init__(self) -> None:
        """Adds up what came before each packet."""
        object.__setattr__(self, "before", np.cumsum(self.size) - self.size)

    def queue(self, rate: float, burst: float) -> Floats:
        """Time in the queue of a bottleneck of `rate` Mbit/s and `burst` bytes at each place, ms."""
        return waits(self.at, self.size * 8e-3 / rate, burst * 8e-3 / rate)

    def waits(self, rate: float, burst: float) -> Floats:
        """From the sending of each packet to its leaving the queue, less a constant, ms; jitter may have changed its place."""
        return self.queue(rate, burst) + self.at - self.sent

    def places(self, rows: Ints, count: int) -> Ints:
        """The place of each segment's first arrival; −1 none. `count`: of all segments."""
        place = np.full(count, -1)
        place[self.row[::-1]] = np.arange(self.row.size)[::-1]
        return place[rows].astype(np.int64)


def waits(at: Floats, service: Floats, credit: float) -> Floats:
    """Time in a queue of packets that arrive at `at`, take `service` each, with a credit of `credit`; one unit of time for all."""
    done = np.cumsum(service)
    finish = done + np.maximum.accumulate(at - (done - service))
    return np.asarray(np.maximum(finish - credit - at, 0.0))


def before_bottleneck(w: Wire, cover: Ints, least_rtt: float) -> Arrivals:
    """The packets that arrived, by the times at which they passed a capture that lies before the bottleneck.

    :param cover: for each segment the ACK that first covers it, in the receiver's order.
    :param least_rtt: ms; a transmission later than 0.8 of it before the acknowledgement was not what it acknowledges.
    """
    at = w.t.copy()
    arrived = (w.seen > 0) | (w.sends == 1)
    row = w.again_row
    needless = w.fate[row] == NEEDLESS
    fits = ~needless & ((w.seen[row] == 0) | (w.again_t <= w.seen[row] - 0.8 * least_rtt))
    np.maximum.at(at, row[fits], w.again_t[fits])
    more = np.flatnonzero(w.discarded & (w.sends > 1))  # these passed it twice
    sent = np.concatenate([at[arrived], w.again_t[needless], w.t[more]])
    rows = np.concatenate([np.flatnonzero(arrived), row[needless], more]).astype(np.int64)
    known = int(arrived.sum())
    place = np.empty(rows.size)
    place[:known] = cover[arrived]
    if rows.size > known:  # copies: among those that were sent with them
        by_time = np.argsort(sent[:known], kind="stable")
        beside = np.clip(np.searchsorted(sent[:known][by_time], sent[known:]), 0, known - 1)
        place[known:] = place[:known][by_time][beside]
    within = rows if w.sack_right.any() else sent  # what one ACK covers without SACK has a hole first that was filled last
    order = np.lexsort((within, place))
    return Arrivals(np.sort(sent), sent[order], w.size[rows[order]], rows[order])


def behind_bottleneck(w: Wire) -> Arrivals:
    """The packets that were seen at a capture behind the bottleneck, by the sender's stamps."""
    order = np.argsort(w.t, kind="stable")
    return Arrivals(np.sort(w.stamp), w.stamp[order], w.size[order], order.astype(np.int64), True)


def exposed(t: Floats, again: Floats, span: float) -> Flags:
    """Whether a retransmission followed within `span` ms."""
    if again.size == 0 or span <= 0:
        return np.zeros(t.size, dtype=bool)
    following = np.searchsorted(again, t, side="right")
    return np.asarray((following < again.size) & (again[np.minimum(following, again.size - 1)] - t < span))


NEAR = 1.03
"""Above a rate, how far rates reach that are near it, as a factor."""
WINDOWS = 24
"""Windows in time, each with a level of its own."""
PACKET = 1514
"""Bytes of a packet."""
FEW, OFF = 3.0, 0.05
"""Packets up to which a queue may be that of bursts of which one waited; how far off, as a share, a rate is tried there."""
BOUND = 1e100
"""Times and sizes that stay finite whatever is worked out of them; clocks that are set can give others."""
YOUNG = 64
"""Packets since the queue was empty within which a burst shows: more than tc's usual bursts."""


@dataclass(frozen=True)
class QueueDelays:
    """What the bottleneck is fitted to: packets that arrived, and the delays of some of them."""

    arrivals: Arrivals
    index: Ints
    """Place in `arrivals` of each delay."""
    delay: Floats
    """ms, plus any constant."""
    window: Ints
    """Window in time of each."""
    tick: float = 0.0
    """ms by whose multiples they are rounded; 0 none."""
    most: float = math.inf
    """Rate that is not exceeded, Mbit/s."""
    whole: QueueDelays | None = None
    """The same without such a rate."""

    def up_to(self, rate: float) -> QueueDelays:
        """The same for rates up to `rate` alone: packets that wait for others at that rate do at any lower one, and begin no busy time."""
        return replace(self, most=rate, whole=self.whole or self)

    @cached_property
    def _begins(self) -> tuple[Floats, Floats, Ints]:
        """Of the places at which the queue may have been empty: when packets came, the bytes before; and the last of these places for each delay."""
        a = self.arrivals
        if self.whole is None:
            return a.at, a.before, self.index
        level = a.at - a.before * (8e-3 / self.most)
        level[1:] -= np.maximum.accumulate(level)[:-1]
        level[0] = 0.0
        begins = np.flatnonzero(level >= 0)
        return a.at[begins], a.before[begins], np.searchsorted(begins, self.index, side="right") - 1

    @cached_property
    def _delayed(self) -> tuple[Floats, Floats, Floats]:
        """Of the packets whose delays these are: when each came, when it was sent, and the bytes up to its end."""
        a, at = self.arrivals, self.index
        return a.at[at], a.sent[at], a.before[at] + a.size[at]

    @cached_property
    def _alike(self) -> tuple[Ints, ...]:
        """Places of the delays of each window, a row for each; windows of one length together."""
        bounds = np.searchsorted(self.window, np.arange(int(self.window[-1]) + 2)) if self.window.size else np.zeros(1, dtype=int)
        sizes = np.diff(bounds)
        return tuple(bounds[:-1][sizes == size][:, None] + np.arange(size) for size in np.unique(sizes) if size)

    @cached_property
    def residual(self) -> _core.QueueResidual | None:
        """The same for :func:`deviation`, which is asked a thousand times; None of numbers that have no bound."""
        if self.whole is not None:
            return self.whole.residual.up_to(self.most) if self.whole.residual else None
        columns = (self.arrivals.at, self.arrivals.before, *self._delayed, self.delay)
        if not all(np.abs(x).max(initial=0.0) < BOUND for x in columns):
            return None
        ends = np.flatnonzero(np.diff(self.window, append=-1)) + 1
        came, before, at, sent, end, delay = (x.tobytes() for x in columns)
        return _core.QueueResidual((came, before), self.index.tobytes(), (at, sent, end, delay), ends.tolist())

    @cached_property
    def noise(self) -> Floats:
        """Delays before the queue to simulate, of each arrival, in standard deviations (normal, independent)."""
        return np.random.default_rng(1).standard_normal(self.arrivals.at.size)

    def waits(self, rate: float, burst: float) -> Floats:
        """The queue's delays at these packets: the same as :meth:`Arrivals.waits`, worked out at these alone."""
        (begin_at, before, last), (at, sent, end) = self._begins, self._delayed
        per_byte = 8e-3 / rate
        begin = np.maximum.accumulate(begin_at - before * per_byte)[last]  # of the busy time of each, at a rate without an end
        finish = begin + end * per_byte
        return np.asarray(np.maximum(finish - burst * per_byte - at, 0.0) + at - sent)

    def centred(self, x: Floats) -> Floats:
        """Values of these packets, each less the median of its window."""
        y = np.empty_like(x)
        for rows in self._alike:
            part = x[rows]
            y[rows] = part - medians(part)[:, None]
        return y


@dataclass(frozen=True, slots=True)
class FittedBottleneck:
    """A bottleneck that explains the delays."""

    rate: float
    """Mbit/s."""
    burst: float
    """Bytes."""
    error: float
    """Standard error of the rate, Mbit/s."""
    burst_error: float
    """Of the burst, bytes."""
    explained: float
    """Share of the delays' variance (inside windows) that its queue explains."""
    wait: Floats
    """Of each arrival: from its sending to its leaving the queue, less a constant (`Arrivals.waits`), ms."""
    queue: Floats
    """Of each arrival: its time in the queue, ms."""
    noise: float
    """Standard deviation of what is left, ms, robust."""


def delays_of(arrivals: Arrivals, place: Ints, at: Floats, delay: Floats, tick: float = 0.0) -> QueueDelays:
    """Delays of packets at these places of the arrivals, which were sent `at`."""
    return QueueDelays(arrivals, place, delay, windows_of(at), tick)


def windows_of(at: Floats, count: int = WINDOWS, least: int = 30) -> Ints:
    """A number for each time: windows of equal numbers of samples, at least `least` in each."""
    count = max(1, min(count, at.size // least))
    return np.asarray(np.arange(at.size) * count // max(1, at.size), dtype=np.int64)


def medians(x: Floats) -> Floats:
    """The median of each row, as NumPy's, without what that costs for a few values."""
    middle = ((x.shape[-1] - 1) // 2, x.shape[-1] // 2)
    parts = np.partition(x, middle, axis=-1)
    return np.asarray((parts[..., middle[0]] + parts[..., middle[1]]) / 2)


def deviation(d: QueueDelays, rate: float, burst: float, cap: float = math.inf) -> float:
    """Mean absolute deviation of what is left of the delays, ms, of each at most `cap`."""
    if d.residual is not None:
        return d.residual.deviation(rate, burst, cap)
    return float(np.mean(np.minimum(np.abs(d.centred(d.delay - d.waits(rate, burst))), cap)))


def centred_mean(x: Floats, window: Ints) -> Floats:
    """Values less the mean of their window."""
    return np.asarray(x - (np.bincount(window, x) / np.maximum(1, np.bincount(window)))[window])


def fit(d: QueueDelays) -> FittedBottleneck | None:
    """The bottleneck whose queue explains the delays best; None of too few packets."""
    few = thinned(d)
    rate, burst = first_rate(few), 0.0
    if not rate:
        return None
    for _ in range(3):
        burst = best_burst(few, rate)
        rate = best_rate(few, rate, burst)
    rate, burst = together(few, rate, burst)
    found = judged(d, over_all(few, rate, burst), burst)
    return replace(found, error=max(found.error, OFF * found.rate)) if is_made_up_for(few, found) else found


def is_made_up_for(d: QueueDelays, b: FittedBottleneck) -> bool:
    """Whether another rate, with another burst, explains the delays as well: where of each burst of packets just one waited, and all waited alike."""
    waited = b.queue[b.queue > 0]
    if not waited.size or float(np.quantile(b.queue, 0.98)) > FEW * PACKET * 8e-3 / b.rate:
        return False
    most, usual = deviation(d, b.rate, b.burst) + 1e-3, float(np.median(waited))
    others = [b.rate * (1 - OFF), b.rate * (1 + OFF)]
    return any(deviation(d, rate, max(0.0, b.burst + usual * (b.rate - rate) * 125)) < most for rate in others)


def together(d: QueueDelays, rate: float, burst: float) -> tuple[float, float]:
    """The least deviations beside a rate and a burst, both varied: where bursts queue for a short time only, one makes up for the other."""
    most = rate * NEAR
    near = d.up_to(most)

    def cost(x: Floats) -> float:
        tried = rate * float(np.exp(x[0]))
        return deviation(near if tried <= most else d, tried, max(0.0, burst + 3_000 * float(x[1])))

    start = np.array([[0.0, 0.0], [0.01, 0.0], [0.0, 1.0]])
    x, least = lowest(cost, start)
    if least > 0.98 * cost(start[0]):
        return rate, burst
    return rate * float(np.exp(x[0])), max(0.0, burst + 3_000 * float(x[1]))


def lowest(cost: Callable[[Floats], float], simplex: Floats, most: int = 80) -> tuple[Floats, float]:
    """Where a function is least, and how low, by the simplex method (Nelder and Mead, The Computer Journal 7, 1965) with about `most` evaluations.

    :param simplex: the points from which it begins, a row each. SciPy's optimizers cost more to load than all of this.
    """
    points = [(cost(x), x) for x in simplex]
    while most > len(points):
        points.sort(key=lambda point: point[0])
        (best, at), (second, _), (worst, far) = points[0], points[-2], points[-1]
        if worst - best <= 1e-6 and max(float(np.abs(x - at).max()) for _, x in points) <= 1e-5:
            break
        centre = np.mean([x for _, x in points[:-1]], axis=0)

        def at_step(step: float, centre: Floats = centre, far: Floats = far) -> tuple[float, Floats]:
            x: Floats = centre + step * (centre - far)
            return cost(x), x

        most -= 2
        tried = at_step(1.0)
        if tried[0] < best:
            tried = min(tried, at_step(2.0), key=lambda point: point[0])
        elif tried[0] >= second:
            tried = min(tried, at_step(0.5 if tried[0] < worst else -0.5), key=lambda point: point[0])
        else:
            most += 1
        if tried[0] < worst:
            points[-1] = tried
        else:
            points[1:] = [(cost(x), x) for x in ((at + x) / 2 for _, x in points[1:])]
            most -= len(points) - 1
    return min(points, key=lambda point: point[0])[::-1]


def over_all(d: QueueDelays, rate: float, burst: float) -> float:
    """The rate that leaves one level for the whole flow, if there is one beside this rate: then nothing was counted wrongly, and it is more exact."""
    whole = QueueDelays(d.arrivals, d.index, d.delay, np.zeros(d.index.size, dtype=np.int64))
    whole = whole.up_to(rate * NEAR)
    best = refined(whole, rate, burst, 1e-3, (11,) * 5)
    return best if deviation(whole, best, burst) < 1.2 * deviation(d, rate, burst) + 1e-3 else rate


def thinned(d: QueueDelays, most: int = 20_000) -> QueueDelays:
    """At most so many of the delays, every k-th."""
    keep = slice(None, None, max(1, -(-d.index.size // most)))
    return QueueDelays(d.arrivals, d.index[keep], d.delay[keep], d.window[keep])


def first_rate(d: QueueDelays) -> float:
    """A rate to begin from: the one with the least deviations among two sets.

    On a saturated bottleneck the flow is delivered at its rate; over which time, is not known. A rate too high leaves the delays as they are, so only
    the close neighbourhood of the right one shows: a fine grid about each delivered rate. Where the queue fills and drains with each burst, nothing
    accumulates and any rate near the right one shows: a coarse grid over all rates.
    """
    delivered = delivered_rates(d)
    if delivered.size == 0:
        return 0.0
    fine = np.linspace(-0.02, 0.02, 17)
    coarse = np.geomspace(delivered[0], delivered[-1] * 30, 50)
    tried = {float(r): deviation(d, float(r), 0.0) for r in coarse}
    for rate in delivered:
        about = d.up_to(float(rate) * NEAR)
        tried |= {float(r): deviation(about, float(r), 0.0) for r in rate * np.exp(fine)}
    best = min(tried, key=lambda rate: tried[rate])
    if best in coarse:
        for width in (0.06, 0.02):
            tried |= {float(r): deviation(d, float(r), 0.0) for r in best * np.exp(np.linspace(-width, width, 9))}
            best = min(tried, key=lambda rate: tried[rate])
    return best


def delivered_rates(d: QueueDelays) -> Floats:
    """Rates at which the flow was delivered, over several times and at several quantiles, Mbit/s; apart by at least 1 %."""
    out = d.arrivals.at[d.index] + d.delay
    order = np.argsort(out, kind="stable")
    out = out[order]
    count = np.cumsum(d.arrivals.size)[d.index]
    count = np.maximum.accumulate(count[order]) if count.size else count
    rates = []
    for span in (100.0, 300.0, 1_000.0, 3_000.0, 10_000.0):
        end = np.searchsorted(out, out + span)
        ok = np.flatnonzero(end < out.size)
        ok = ok[out[end[ok]] > out[ok]]  # delays that overflow, of clocks that are set, leave no distance
        if ok.size < 10:
            continue
        r = (count[end[ok]] - count[ok]) * 8e-3 / (out[end[ok]] - out[ok])
        rates += [float(x) for x in np.quantile(r[r > 0], (0.25, 0.5, 0.75, 0.9, 0.97, 1.0))] if (r > 0).any() else []
    distinct: list[float] = []
    for rate in sorted(rates):
        if not distinct or rate > distinct[-1] * 1.01:
            distinct.append(rate)
    return np.array(distinct)


def best_rate(d: QueueDelays, near: float, burst: float) -> float:
    """The rate near another one with the least deviations."""
    return refined(d.up_to(near * NEAR), near, burst, 0.02, (13,) * 6)


def refined(d: QueueDelays, rate: float, burst: float, width: float, points: Sequence[int]) -> float:
    """The rate with the least deviations: on a grid of so many points, in logarithms `width` to both sides, then on finer ones about the best."""
    known: dict[float, float] = {}
    for count in points:
        rates = (rate * np.exp(np.linspace(-width, width, count))).tolist()
        known |= {r: deviation(d, r, burst) for r in rates if r not in known}
        rate = min(rates, key=known.__getitem__)
        width /= 3.5
    return rate


def best_burst(d: QueueDelays, rate: float) -> float:
    """The burst with the least deviations, bytes, among packets soon after the queue was empty: only they tell it from a longer path."""
    young = soon_after_empty(d, rate)
    if young.sum() < 20:
        return 0.0
    soon = QueueDelays(d.arrivals, d.index[young], d.delay[young], np.zeros_like(d.window[young])).up_to(rate)
    rest = d.centred(d.delay - d.waits(rate, 0.0))
    cap = 3 * max(1.4826 * float(np.median(np.abs(rest))), 12.0 / rate)

    most = max(64_000.0, rate * 125 * 20)  # 20 ms
    grid = np.concatenate([[0.0], np.geomspace(1_500, most, 14)])
    k = int(np.argmin([deviation(soon, rate, b, cap) for b in grid]))
    low, high = float(grid[max(0, k - 1)]), float(grid[min(grid.size - 1, k + 1)])
    for _ in range(4):
        inner = np.linspace(low, high, 7)
        k = int(np.argmin([deviation(soon, rate, b, cap) for b in inner]))
        low, high = float(inner[max(0, k - 1)]), float(inner[min(6, k + 1)])
    return (low + high) / 2


def met_idle(d: QueueDelays, rate: float, gap: float) -> Flags:
    """Which delays are of packets sent when the bottleneck had been idle for `gap` ms or more, or next after: no burst and no queue changes them."""
    a = d.arrivals
    service = a.size * 8e-3 / rate
    sojourn = waits(a.at, service, 0.0)
    idle = np.concatenate([[np.inf], a.at[1:] - (a.at + sojourn)[:-1]]) >= gap
    idle |= np.concatenate([[False], idle[:-1]])
    sent_as = np.empty(a.at.size, dtype=np.int64)
    sent_as[np.lexsort((a.row, a.sent))] = np.arange(a.at.size)
    return np.asarray(idle[sent_as[d.index]])


def met_empty(a: Arrivals, b: FittedBottleneck) -> Flags:
    """Which packets were in the queue for no longer than their own service."""
    return np.asarray(b.queue <= a.size * 8e-3 / b.rate + 1e-6)


def longest_busy(a: Arrivals, b: FittedBottleneck) -> float:
    """The longest time in which the queue was never empty, ms."""
    empty = np.flatnonzero(met_empty(a, b))
    times = np.concatenate([[a.at[0]], a.at[empty], [a.at[-1]]])
    return float(np.diff(times).max())


def soon_after_empty(d: QueueDelays, rate: float) -> Flags:
    """Which delays are of packets at most `YOUNG` after one that met a bottleneck with nothing to do and a full bucket."""
    service = d.arrivals.size * 8e-3 / rate
    idle = waits(d.arrivals.at, service, 0.0) <= service + 1e-6
    number = np.arange(idle.size)
    last = np.maximum.accumulate(np.where(idle, number, -1))
    return np.asarray((last >= 0) & (number - last <= YOUNG))[d.index]


def judged(d: QueueDelays, rate: float, burst: float) -> FittedBottleneck:
    """The fit with its errors: by windows in time, whose residuals may be correlated inside but not from window to window."""
    wait = d.arrivals.waits(rate, burst)
    left = d.centred(d.delay - wait[d.index])
    noise = 1.4826 * float(np.median(np.abs(left)))
    by_rate = (d.waits(rate * 1.001, burst) - d.waits(rate * 0.999, burst)) / (0.002 * rate)
    by_burst = (d.waits(rate, burst + 500) - d.waits(rate, max(0.0, burst - 500))) / (500 + min(500.0, burst))
    gradient = np.stack([centred_mean(g, d.window) for g in (by_rate, by_burst)])
    limited = np.clip(left, -3 * max(noise, 1e-3), 3 * max(noise, 1e-3))
    scores = np.stack([np.bincount(d.window, g * limited) for g in gradient])
    k = scores.shape[1]
    inverse = np.linalg.pinv(gradient @ gradient.T, rcond=1e-12, hermitian=True)
    covariance = inverse @ (scores @ scores.T * k / max(1, k - 2)) @ inverse
    errors = np.sqrt(np.maximum(np.diag(covariance), 0))
    if not np.any(gradient[0]):
        errors[0] = np.inf
    raw = d.centred(d.delay - (d.arrivals.at - d.arrivals.sent)[d.index])
    cap = 10 * 1.4826 * max(float(np.median(np.abs(raw))), 1e-6)
    before, after = (float(np.var(np.clip(x, -cap, cap))) for x in (raw, left))
    return FittedBottleneck(
        rate, burst, float(errors[0]), float(errors[1]), 1 - after / before if before > 0 else 0.0, wait, d.arrivals.queue(rate, burst), noise
    )


def jittered(d: QueueDelays, b: FittedBottleneck, jitter: float) -> Floats:
    """Delays less the queue's at their places, ms, if delays of this standard deviation (normal, independent) came before the queue: a simulation."""
    a = d.arrivals
    service, credit = a.size * 8e-3 / b.rate, b.burst * 8e-3 / b.rate
    due = a.at + jitter * d.noise
    order = np.argsort(due, kind="stable")
    leaves = due[order] + waits(due[order], service, credit)
    return np.asarray((leaves - b.queue - a.at[order])[d.index])
