"""Metrics of probes, requests and transfers: latency under load, responsiveness, the quality of a call, times of answers and of transfers.

Responsiveness follows draft-ietf-ippm-responsiveness; what differs is in docs/models/methods/responsiveness.md. The quality of a call follows the
E-model (ITU-T G.107, 06/2015) for G.711 with packet loss concealment, R = Ro − Is − Id − Ie-eff: all parameters but the delay and the loss have
their default values (G.107 table 2), so that Ro − Is is a constant and a call without delay and loss has R = 93.2. Not modelled: bursts of losses
(BurstR = 1), noise, echo beyond the default loss of 65 dB, an advantage of mobile users.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from tcpscape.metrics.base import UNKNOWN
from tcpscape.trial import ProbeResult, Rtt, SizeClass, Trial

Percentile = Literal["p50", "p95", "p99", "max"]
TRIMMED = 0.95
"""Share of the measurements that a trimmed mean is of, the lowest ones (draft-ietf-ippm-responsiveness: TM)."""
MS_PER_MINUTE = 60_000
PACKET_MS = 20.0
"""How long a packet of a call collects voice before it is sent, ms (RFC 3551: G.711's default)."""
CLASSES: Mapping[str, str] = {"10kB": "up to 10 kB", "100kB": "of 10 to 100 kB", "1MB": "of 100 kB to 1 MB", "more": "above 1 MB"}
"""Size class of transfers as it is written, in the order of a trial's → in words."""
PLAYOUT: Sequence[tuple[Percentile, float]] = (("p50", 0.5), ("p95", 0.05), ("p99", 0.01), ("max", 0.0))
"""Delays that a jitter buffer may wait for, each with the share of the packets that arrive later and are of no use."""


def latency(percentile: Percentile) -> Callable[[Trial], float]:
    """A metric: a percentile of the probes' delays, ms, mean over the probes: round trips where any probe measures them, else one-way delays."""

    def of(trial: Trial) -> float:
        echoes = [probe for probe in trial.probes if probe.is_echo]
        return _mean(getattr(probe.delay_ms, percentile) for probe in echoes or trial.probes)

    return of


def probe_jitter(trial: Trial) -> float:
    """Interarrival jitter (RFC 3550 §6.4.1) of the probes, ms, mean over them."""
    return _mean(probe.jitter_ms for probe in trial.probes)


def probe_loss(trial: Trial) -> float:
    """Share of the probes' packets with the time to arrive, or to come back, that did not."""
    judged = [probe.judged for probe in trial.probes]
    due = sum(due for due, _ in judged)
    return sum(lost for _, lost in judged) / due if due else UNKNOWN


def media_rate(trial: Trial) -> float:
    """What arrived of the media flows, Mbit/s, mean over them."""
    return _mean(probe.media_mbps for probe in trial.probes)


def rpm(trial: Trial) -> float:
    """Round trips a minute: 60,000 / the mean of the probes' trimmed round trips and of the trimmed RTTs of the flows that carry the load, ms.

    Unknown without a probe that measures round trips; without flows, of the probes alone.
    """
    foreign = _mean(trimmed_mean(probe.delay_ms) for probe in trial.probes if probe.is_echo)
    loaded = _mean(trimmed_mean(flow.rtt_ms) for flow in trial.flows if flow.goodput_mbps > 0)
    terms = [value for value in (foreign, loaded) if not math.isnan(value)]
    return UNKNOWN if math.isnan(foreign) or sum(terms) <= 0 else MS_PER_MINUTE * len(terms) / sum(terms)


def trimmed_mean(times: Rtt) -> float | None:
    """The mean of the lowest 95 % of the times, ms, from their summary: the rest is taken to lie evenly between p95, p99 and the largest."""
    if times.mean is None or times.p95 is None or times.p99 is None or times.max is None:
        return times.mean
    above = 0.04 * (times.p95 + times.p99) / 2 + 0.01 * (times.p99 + times.max) / 2
    return min(times.p95, max(times.min or 0.0, (times.mean - above) / TRIMMED))


def r_factor(trial: Trial) -> float:
    """The E-model's rating of the worst call (ITU-T G.107, G.711 with loss concealment); each one-way probe counts as one."""
    return min((rating(probe) for probe in trial.probes if probe.kind == "udp" and probe.sent), default=UNKNOWN)


def voice_mos(trial: Trial) -> float:
    """The mean opinion score of the worst call, 1 to 4.5."""
    r = r_factor(trial)
    return UNKNOWN if math.isnan(r) else opinion_score(r)


def rating(call: ProbeResult) -> float:
    """The rating of a call with the best jitter buffer of a fixed length: it waits for one of :data:`PLAYOUT`, what is later is lost too."""
    if not call.received:
        return 0.0
    arrived = 1 - call.loss
    waits = ((getattr(call.delay_ms, name), 1 - arrived * (1 - late)) for name, late in PLAYOUT)
    return max((e_model_rating(PACKET_MS + delay, lost) for delay, lost in waits if delay is not None), default=0.0)


def response(percentile: Percentile) -> Callable[[Trial], float]:
    """A metric: a percentile of the times from a request to the last byte of its answer, ms, mean over the flows that are asked."""

    def of(trial: Trial) -> float:
        return _mean(getattr(flow.responses.time_ms, percentile) for flow in trial.flows if flow.responses)

    return of


def response_max(trial: Trial) -> float:
    """The slowest answer to a request of any flow, ms."""
    return max((t for flow in trial.flows if flow.responses and (t := flow.responses.time_ms.max) is not None), default=UNKNOWN)


def fct(percentile: Percentile, name: str | None = None) -> Callable[[Trial], float]:
    """A metric: a percentile of the completion times of the transfers of a size class of :data:`CLASSES`, ms.

    None: of the smallest class that has any. Of several entries of transfers the mean, each by how many were complete.
    """

    def of(trial: Trial) -> float:
        each = [(place, size) for entry in trial.transfers for place, size in enumerate(entry.classes) if size.completed]
        chosen = min((place for place, _ in each), default=0) if name is None else [*CLASSES].index(name)
        return _weighted((getattr(size.completion_ms, percentile), size.completed) for place, size in each if place == chosen)

    return of


def fct_mean(trial: Trial) -> float:
    """Mean completion time of all transfers that were complete, ms."""
    return _weighted((size.completion_ms.mean, size.completed) for size in _classes(trial))


def unfinished(trial: Trial) -> float:
    """Share of the transfers that were not complete at the end."""
    started = sum(size.started for size in _classes(trial))
    return 1 - sum(size.completed for size in _classes(trial)) / started if started else UNKNOWN


def transfer_goodput(trial: Trial) -> float:
    """Bytes that the transfers' receivers got / the whole trial, Mbit/s."""
    return sum(entry.bytes_received for entry in trial.transfers) * 8e-6 / trial.duration if trial.transfers else UNKNOWN


def _classes(trial: Trial) -> list[SizeClass]:
    return [size for entry in trial.transfers for size in entry.classes]


def _mean(values: Iterable[float | None]) -> float:
    return _weighted((value, 1) for value in values)


def _weighted(values: Iterable[tuple[float | None, int]]) -> float:
    """The mean of the values that are known, each with its weight."""
    known = [(value, weight) for value, weight in values if value is not None]
    return sum(value * weight for value, weight in known) / sum(weight for _, weight in known) if known else UNKNOWN


RO, IS = 94.7688, 1.4136
"""Signal-to-noise ratio, and impairments together with the voice, of the default values."""
TELR, RLR, NO = 65.0, 2.0, -61.1790
"""Loudness of the talker's echo, dB; receive loudness, dB; all noise together, dBm0p: of the default values."""
WEPL = 110.0
"""Weighted echo path loss, dB."""
IE, BPL = 0.0, 25.1
"""Impairment and robustness against random loss of G.711 with packet loss concealment (G.113 appendix I)."""
BEARABLE_DELAY_MS = 100.0
"""Absolute delay up to which a conversation suffers from echo alone."""


def e_model_rating(delay_ms: float, loss: float) -> float:
    """The rating factor R, 0 to 100, of a call whose mouth-to-ear delay is `delay_ms` (one way, ms), with a fraction `loss` of its packets lost."""
    return max(0.0, RO - IS - delay_impairment(delay_ms) - loss_impairment(loss))


def opinion_score(r: float) -> float:
    """The mean opinion score of a rating factor, 1 to 4.5 (G.107 annex B, whose polynomial is a little below 1 for ratings under 6.5)."""
    if r <= 0:
        return 1.0
    return 4.5 if r >= 100 else max(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6)


def loss_impairment(loss: float) -> float:
    """Ie-eff of G.711 with packet loss concealment, where a fraction `loss` of the packets is lost at random (G.107 §7.5)."""
    percent = 100 * loss
    return IE + (95 - IE) * percent / (percent + BPL)


def delay_impairment(delay_ms: float) -> float:
    """Id of a one-way delay, ms: the talker's echo, the listener's echo, and the delay itself (G.107 §7.4)."""
    return _talker_echo(delay_ms) + _listener_echo(2 * delay_ms) + _absolute(delay_ms)


def _talker_echo(delay_ms: float) -> float:
    rating_of_noise = -1.5 * (NO - RLR)
    heard = TELR - 40 * math.log10((1 + delay_ms / 10) / (1 + delay_ms / 150)) + 6 * math.exp(-0.3 * delay_ms**2)
    half = (rating_of_noise - (80 + 2.5 * (heard - 14))) / 2
    return (half + math.sqrt(half**2 + 100) - 1) * (1 - math.exp(-delay_ms))


def _listener_echo(round_trip_ms: float) -> float:
    half = (RO - 10.5 * (WEPL + 7) * math.pow(round_trip_ms + 1, -0.25)) / 2
    return half + math.sqrt(half**2 + 169)


def _absolute(delay_ms: float) -> float:
    if delay_ms <= BEARABLE_DELAY_MS:
        return 0.0
    octaves = math.log2(delay_ms / BEARABLE_DELAY_MS)
    return 25 * (math.pow(1 + octaves**6, 1 / 6) - 3 * math.pow(1 + (octaves / 3) ** 6, 1 / 6) + 2)
