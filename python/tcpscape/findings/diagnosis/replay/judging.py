"""Replay, zone and advice of a flow from one set of runs: what they share runs once.

The replay is the flow's own congestion control on its fitted path. An observation is one run, so it is compared with what one run may be: the
interval of the replay is a prediction interval of single runs, whose paths are drawn from the fit's intervals and whose chance is drawn by their
seeds. Goodput and RTT each agree within that interval or within 25 %. Where the replay differs, the fit, the model or what limited the flow is wrong,
and nothing may be advised from it. Where the place of capture does not show the sender's RTT, goodput alone is compared.

What the packets leave open, settled by replays: the candidate whose runs have what was observed.

**Queue.** A FIFO that never overflowed has no size that losses would show, and a managed queue (AQM) drops by itself: such drops look like random
loss. Where the fit has a rate and no buffer, or where a first look at the replay misses the observation, two runs of each candidate are compared with
it by goodput, RTT and the share of segments sent again: FIFOs of some sizes, managed queues, each with the fitted random loss and without. The fit's
own values stay unless another candidate is clearly nearer, and what was settled so is an assumption that the advice names.

**Buffer.** The size of a socket's buffer that held the flow is the one whose run carries what was observed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tcpscape import stats
from tcpscape.findings.diagnosis.bursts import is_served
from tcpscape.findings.diagnosis.fitted import UNKNOWN, Assumption, FittedPath, RecognisedControl, Replay, ReplayAdvice, ReplaySettings, Zone
from tcpscape.findings.diagnosis.limits import paces, spaces
from tcpscape.findings.diagnosis.observed import Cause, ObservedFlow
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.findings.diagnosis.replay import advice, zone
from tcpscape.findings.diagnosis.replay.lab import RUNS, WITHIN, Lab, ReplayRun, open_lab, seen_goodput
from tcpscape.findings.diagnosis.replay.scenario import PathValues
from tcpscape.findings.diagnosis.sender_side import observed_rtt
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import CONFIDENCE

BDPS = (1.0, 0.5, 2.0, 4.0)
"""Sizes of a FIFO, in bandwidth-delay products; the first is the default."""
AQMS = ("fq_codel", "codel", "pie")
SEEDS = range(2)
NEARER, NEARER_GOODPUT = 0.03, 0.02
"""Difference of the distances, and of |ln goodput| of buffers' sizes, from which another one is nearer."""
LEAST_RESENT = 0.002
"""Added to shares of segments sent again before their logarithm."""
WEIGHT_RESENT = 0.25
"""Of |ln| of the shares sent again, against 1 of |ln goodput| and |ln RTT|: how often a burst is repeated depends on little things."""
HELD = 0.5
"""Share of its time for which the buffer must have held the flow."""
FACTORS = (1.0, 0.7, 0.8, 0.9, 1.1, 1.2, 1.35, 1.5)
"""Sizes that are tried, as multiples of the guess, which comes first."""
BUFFERS: tuple[tuple[str, Cause], ...] = (("sndbuf", "send_buffer"), ("rcvbuf", "receive_window"))
"""Field of a flow, and the cause that it is for."""


@dataclass(frozen=True, slots=True)
class Possible:
    """A queue at the bottleneck, and the random loss and the jitter beside it."""

    assumption: Assumption
    """What it assumes."""
    values: PathValues

    def without(self, what: Literal["random loss", "jitter"], values: PathValues) -> Possible:
        """The same, and this is assumed not to be there."""
        return Possible(replace(self.assumption, lacks=(*self.assumption.lacks, what)), values)


_AS_FITTED = Possible(Assumption("queue"), PathValues(rtt_ms=1.0))
"""Nothing else is assumed; its values are not used."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the replays are compared with; None is not known."""

    goodput_mbps: float | None
    rtt_ms: float | None
    resent: float | None
    """Segments sent again / segments."""

    def distance(self, runs: Sequence[ReplayRun]) -> float:
        """How far the medians of the runs are from it; infinite where nothing was carried."""
        goodput = _apart([r.goodput_mbps for r in runs], self.goodput_mbps)
        rtt = _apart([r.rtt_ms for r in runs], self.rtt_ms)
        resent = _apart([r.retransmits + LEAST_RESENT for r in runs], None if self.resent is None else self.resent + LEAST_RESENT)
        return goodput + rtt + WEIGHT_RESENT * resent


def _apart(values: Sequence[float], seen: float | None) -> float:
    """|ln| of the median over what was seen."""
    if not seen:
        return 0.0
    known = stats.known(values)
    middle = float(np.median(known)) if known else 0.0
    return abs(math.log(middle / seen)) if middle > 0 else math.inf


def settled(lab: Lab) -> Lab:
    """The same runs on the path, and with the ends, that repeat the observation best where the fit leaves them open."""
    return with_queue(with_buffer(lab))


def with_queue(lab: Lab) -> Lab:
    """The same runs with the queue that repeats the observation best, where the fit leaves one open or misses."""
    values, seen = lab.fitted.values, _seen(lab)
    is_open = bool(values.rate_mbps and not values.buffer_bytes and seen.rtt_ms)
    own = seen.distance(lab.central(lab.own, SEEDS))
    if not is_open and own <= math.log(WITHIN):
        return lab
    lab.settings.tell("queue", "")
    best, distance = None, math.inf if is_open else own
    lost = lab.fitted.path.loss_pct
    for one in _possible(values, is_sure=lost is not None and lost.low > 0):
        away = seen.distance(lab.with_values(one.values).central(lab.own, SEEDS))
        if away < distance - NEARER:
            best, distance = one, away
    return lab.with_values(best.values, best.assumption) if best else lab


def _seen(lab: Lab) -> Seen:
    """What was observed."""
    resent, packets = lab.flow.facts.get("retransmissions"), lab.flow.facts.get("segments") or lab.flow.packets
    share = resent / packets if resent is not None and packets and lab.flow.vantage == "sender" else None
    return Seen(seen_goodput(lab), observed_rtt(lab.flow), share)


def _possible(values: PathValues, *, is_sure: bool) -> list[Possible]:
    """Queues on the fitted path; then without a jitter that keeps the order, which may be the flow's own queue.

    :param is_sure: whether packets were lost while the queue was short: then only a queue that drops at short lengths stands for that.
    """
    found = _queues(values, is_sure=is_sure)
    if values.order == "reorder" or values.calm == values:
        return found
    return [*found, _AS_FITTED.without("jitter", values.calm), *(one.without("jitter", one.values.calm) for one in found)]


def _queues(values: PathValues, *, is_sure: bool) -> list[Possible]:
    """Queues with the fitted loss, then without it."""
    rate = values.rate_mbps
    if not rate:
        return [_AS_FITTED.without("random loss", replace(values, loss=0.0))] if values.loss else []
    bdp = rate * 1e3 / 8 * values.rtt_ms
    own = [Possible(Assumption("queue", "the fitted buffer"), replace(values, aqm=None))] if values.buffer_bytes else []
    sizes = [Possible(Assumption("queue", bdps=n), replace(values, buffer_bytes=n * bdp)) for n in BDPS]
    managed = [Possible(Assumption("queue", name), replace(values, buffer_bytes=None, aqm=name)) for name in AQMS]
    every = [*own, *sizes, *managed]
    early = managed if is_sure else every
    return [*every, *(one.without("random loss", replace(one.values, loss=0.0)) for one in early if values.loss)]


def with_buffer(lab: Lab) -> Lab:
    """The same runs with the buffer that carries what was observed."""
    hosts, seen = lab.fitted.hosts, seen_goodput(lab)
    held = [name for name, cause in BUFFERS if name in hosts.flow and hosts.shares.get(cause, 0.0) >= HELD]
    if not held or "read" in hosts.flow or not seen:
        return lab
    lab.settings.tell("buffer", "")
    best, distance = lab, math.inf
    for factor in FACTORS:
        trial = _with(lab, held[0], round(int(hosts.flow[held[0]]) * factor))
        goodput = trial.central(lab.own, [0])[0].goodput_mbps
        away = abs(math.log(goodput / seen)) if goodput > 0 else math.inf
        if away < distance - NEARER_GOODPUT:
            best, distance = trial, away
    return best


def _with(lab: Lab, name: str, size: int) -> Lab:
    """The same runs with this size of a buffer, which the kernel allows."""
    hosts = lab.fitted.hosts
    limit = "wmem_max" if name == "sndbuf" else "rmem_max"
    kernel = {**hosts.kernel, limit: max(size, int(hosts.kernel.get(limit, 0)))}
    return replace(lab, fitted=replace(lab.fitted, hosts=replace(hosts, flow={**hosts.flow, name: size}, kernel=kernel)))


@dataclass(frozen=True, slots=True)
class ReplayedRun:
    """What the replay ran on the path of the estimates: the same scenario and seed give the same run again, with whatever is recorded of it."""

    scenario: Scenario
    warmup_s: float
    """The beginning that was not compared, s; 0 where the run repeats the whole observation."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the runs of a flow's fitted path say."""

    zone: Zone
    replay: Replay
    advice: ReplayAdvice
    repeated: ReplayedRun | None = None
    """None where nothing was run."""


def judged(flow: ObservedFlow, path: FittedPath | None, control: RecognisedControl | None, settings: ReplaySettings) -> Judged:
    """Runs the flow's path. What cannot be has its reason in `zone.reasons`, `replay.reason` and `advice.verdict`.

    Where the flow's control is not known, likely ones are assumed, one after the other, until a replay agrees; then the advice rests on that
    assumption and says so. The zone is that of a known control alone.
    """
    if control is not None and control.name == UNKNOWN and flow.cca is None:
        return _assumed(flow, path, control, settings)
    return _judged(flow, path, control, settings)


def _judged(flow: ObservedFlow, path: FittedPath | None, control: RecognisedControl | None, settings: ReplaySettings) -> Judged:
    lab = open_lab(flow, path, control, settings)
    if isinstance(lab, Reason):
        return Judged(zone.unknown(flow, path, lab), impossible(flow, lab), advice.none("no replay", lab))
    lab, repeated = _repeated(lab)
    if repeated.verdict == "differs" or advice.is_far(repeated):
        return Judged(zone.unknown(flow, path, UNLIKE), repeated, advice.of(lab, repeated), _again(lab))
    return Judged(zone.of(lab), repeated, _advised(lab, path, repeated), _again(lab))


def _advised(lab: Lab, path: FittedPath | None, repeated: Replay) -> ReplayAdvice:
    """The advice, where nothing in the observation speaks against a gain."""
    return advice.none("served") if path and is_served(lab.flow, path) else advice.of(lab, repeated)


def _again(lab: Lab) -> ReplayedRun:
    return ReplayedRun(lab.scenario(lab.own), lab.warmup_s)


def _repeated(lab: Lab) -> tuple[Lab, Replay]:
    """The lab with what only replays settle, and the replay."""
    lab = settled(lab)
    return lab, replace(replay_of(lab), control=lab.own)


def _assumed(flow: ObservedFlow, path: FittedPath | None, control: RecognisedControl, settings: ReplaySettings) -> Judged:
    """The same for a flow whose control is not known; a replay that does not agree says nothing, because the control may be another one."""
    unknown = zone.unknown(flow, path, NOT_KNOWN)
    likely = _likely(control, is_paced=paces(flow, control) is True)
    for name in likely:
        lab = open_lab(flow, path, RecognisedControl(name, 0.0), settings)
        if isinstance(lab, Reason):
            return _judged(flow, path, RecognisedControl(name, 0.0), settings)
        lab, repeated = _repeated(lab)
        if repeated.verdict == "agrees" and not advice.is_far(repeated):
            advised = replace(_advised(lab, path, repeated), assumption=Assumption("control", name))
            return Judged(unknown, replace(repeated, is_assumed=True), advised, _again(lab))
    reason = Reason("none repeats", {"names": likely})
    return Judged(unknown, impossible(flow, reason), advice.none("no replay", reason))


def _likely(control: RecognisedControl, *, is_paced: bool) -> list[str]:
    """Names to assume: the most probable of the candidates, then the most common ones; of a flow that paces, those that do alone."""
    if is_paced:
        return [name for name in COMMON if spaces(name)]
    probable = [name for name, probability in control.candidates.items() if probability >= PROBABLE][:1]
    return list(dict.fromkeys([*probable, *COMMON]))[:TRIED]


PROBABLE, COMMON, TRIED = 0.3, ("cubic", "bbr"), 2
"""Probability from which a candidate is assumed first; Linux's default and the most common other control; most of them that are tried."""
NOT_KNOWN = Reason("no cliff of an unknown control")
"""Why there is no zone of an unknown control."""
UNLIKE = Reason("unlike the observation")
"""Why a zone is not judged."""


def impossible(flow: ObservedFlow, reason: Reason) -> Replay:
    """What stands for a replay that cannot be."""
    return Replay(None, None, flow.goodput_mbps, observed_rtt(flow), "impossible", reason)


def replay_of(lab: Lab) -> Replay:
    """The replay that the runs show."""
    lab.settings.tell("replay", lab.own)
    seeds = range(RUNS)
    central, drawn = lab.central(lab.own, seeds), lab.drawn(lab.own, seeds, assumed=False)
    goodput = predicted([r.goodput_mbps for r in central], [r.goodput_mbps for r in drawn], "Mbit/s")
    rtt = predicted([r.rtt_ms for r in central], [r.rtt_ms for r in drawn], "ms")
    observed_goodput, observed = seen_goodput(lab), observed_rtt(lab.flow, lab.warmup_s if not lab.mid_connection else 0.0)
    compared = (("goodput", observed_goodput, goodput), ("RTT", observed, rtt))
    misses = [(what, seen, replayed) for what, seen, replayed in compared if is_missed(seen, replayed)]
    reason = Reason("misses", {"misses": misses}) if misses else None
    return Replay(goodput, rtt, observed_goodput, observed, "differs" if misses else "agrees", reason)


def predicted(central: Sequence[float], drawn: Sequence[float], unit: str) -> Estimate:
    """The median of one run on the path of the estimates, with the interval in which one run is expected."""
    middle, every = stats.known(central), [v for v in stats.known([*central, *drawn]) if v > 0]
    if not middle:
        return Estimate(math.nan, math.nan, math.nan, 0, unit)
    value = float(np.median(middle))
    if len(every) < 3 or value <= 0:
        return Estimate(value, math.nan, math.nan, len(middle), unit)
    from tcpscape.stats.special import stdtrit

    logs = np.log(every)
    reach = float(stdtrit(len(logs) - 1, (1 + CONFIDENCE) / 2)) * float(logs.std(ddof=1)) * math.sqrt(1 + 1 / len(logs))
    low, high = math.exp(logs.mean() - reach), math.exp(logs.mean() + reach)
    return Estimate(value, min(low, value), max(high, value), len(every), unit)


def is_missed(observed: float | None, replayed: Estimate) -> bool:
    """Whether the replay misses what was observed; not where it cannot be compared."""
    if observed is None or not observed > 0 or math.isnan(replayed.value):
        return False
    is_near = replayed.value > 0 and abs(math.log(observed / replayed.value)) <= math.log(WITHIN)
    return not (replayed.low <= observed <= replayed.high or is_near)
