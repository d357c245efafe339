"""The replay: the flow's own congestion control on its fitted path, compared with what was observed.

An observation is one run, so it is compared with what one run may be: the interval of the replay is a prediction interval of single runs, whose
paths are drawn from the fit's intervals and whose chance is drawn by their seeds. Goodput and RTT each agree within that interval or within 25 %.
Where the replay differs, the fit, the model or what limited the flow is wrong, and nothing may be advised from it.

The RTT of both sides is the median over time of the smoothed RTT (RFC 6298): of the observation it is made from the round trips of its segments, or
is what the kernel reported. A capture far from the sender does not show it; then goodput alone is compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tcpscape import stats
from tcpscape.findings.diagnosis.bins import edges
from tcpscape.findings.diagnosis.fitted import Control, FittedPath, Replay, ReplaySettings
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.runs import Lab, open_lab
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import CONFIDENCE
from tcpscape.text.numbers import number
from tcpscape.units import NS_PER_S

WITHIN = 1.25
"""Factor within which a replay agrees, whatever its interval."""
RUNS = 12
"""Runs of a replay: of the path of the estimates, and as many of drawn ones."""
GAIN = 1 / 8
"""Weight of a new round trip in the smoothed RTT (RFC 6298)."""
GRID_S = 0.1
"""Interval at which the smoothed RTT is taken, s."""
LEAST_ROWS = 8
"""Fewest round trips from which a smoothed RTT is taken."""


def replay(flow: ObservedFlow, path: FittedPath | None, control: Control | None, settings: ReplaySettings) -> Replay:
    """The replay of a flow."""
    lab = open_lab(flow, path, control, settings)
    return impossible(flow, lab) if isinstance(lab, str) else of(lab)


def impossible(flow: ObservedFlow, reason: str) -> Replay:
    """What stands for a replay that cannot be."""
    return Replay(None, None, flow.goodput_mbps, observed_rtt(flow), "impossible", reason)


def of(lab: Lab) -> Replay:
    """The replay that the runs show."""
    lab.settings.say(f"{lab.own}: replaying the flow")
    seeds = range(RUNS)
    central, drawn = lab.central(lab.own, seeds), lab.drawn(lab.own, seeds, assumed=False)
    goodput = predicted([r.goodput_mbps for r in central], [r.goodput_mbps for r in drawn], "Mbit/s")
    rtt = predicted([r.rtt_ms for r in central], [r.rtt_ms for r in drawn], "ms")
    observed_goodput, observed = seen_goodput(lab), observed_rtt(lab.flow, lab.warmup_s if not lab.mid_connection else 0.0)
    misses = [text for text in (_miss("goodput", observed_goodput, goodput), _miss("RTT", observed, rtt)) if text]
    return Replay(goodput, rtt, observed_goodput, observed, "differs" if misses else "agrees", " ".join(misses))


def predicted(central: Sequence[float], drawn: Sequence[float], unit: str) -> Estimate:
    """The median of one run on the path of the estimates, with the interval in which one run is expected."""
    middle, every = stats.known(central), [v for v in stats.known([*central, *drawn]) if v > 0]
    if not middle:
        return Estimate(math.nan, math.nan, math.nan, 0, unit)
    value = float(np.median(middle))
    if len(every) < 3 or value <= 0:
        return Estimate(value, math.nan, math.nan, len(middle), unit)
    from scipy.special import stdtrit

    logs = np.log(every)
    reach = float(stdtrit(len(logs) - 1, (1 + CONFIDENCE) / 2)) * float(logs.std(ddof=1)) * math.sqrt(1 + 1 / len(logs))
    low, high = math.exp(logs.mean() - reach), math.exp(logs.mean() + reach)
    return Estimate(value, min(low, value), max(high, value), len(every), unit)


def seen_goodput(lab: Lab) -> float | None:
    """The observed goodput, Mbit/s: of the whole flow, or of its time after the beginning where a run's beginning does not count either."""
    flow = lab.flow
    if not lab.steady or lab.mid_connection or not len(flow.acks.get("t", ())):
        return flow.goodput_mbps
    t, ack = np.asarray(flow.acks["t"]) / NS_PER_S, np.asarray(flow.acks["ack"]).astype(float)
    after = np.flatnonzero(t >= t[0] + lab.warmup_s)
    if len(after) < 2 or t[after[-1]] <= t[after[0]]:
        return flow.goodput_mbps
    return float((ack[after].max() - ack[after[0]]) * 8 / (t[after[-1]] - t[after[0]]) / 1e6)


def observed_rtt(flow: ObservedFlow, after_s: float = 0.0) -> float | None:
    """The median over time of the smoothed RTT after the first `after_s`, ms; None where the source does not show it."""
    t, srtt = smoothed_rtt(flow)
    keep = t >= (t[0] if len(t) else 0.0) + after_s
    return float(np.median(srtt[keep])) if keep.any() else None


def smoothed_rtt(flow: ObservedFlow) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times, s, at :data:`GRID_S`, and the smoothed RTT then, ms; empty where the source does not show the sender's round trips."""
    nothing = np.array([]), np.array([])
    for name, scale in (("rtt", 1e-3), ("tcpi_rtt", 1e-3), ("srtt_us", 1e-3)):
        if len(flow.samples.get(name, ())) and "t_s" in flow.samples:
            values = np.asarray(flow.samples[name]).astype(float) * scale
            return np.asarray(flow.samples["t_s"], dtype=float)[values > 0], values[values > 0]
    if flow.vantage != "sender" or not len(flow.segments.get("rtt", ())):
        return nothing
    when, rtt = (np.asarray(flow.segments[name]).astype(float) for name in ("acked", "rtt"))
    known = (rtt > 0) & (when > 0)
    if known.sum() < LEAST_ROWS:
        return nothing
    times, values = _of_each_ack(when[known], rtt[known])
    grid = edges(times[0], times[-1], GRID_S)
    place = np.searchsorted(times, grid, "right") - 1
    return grid, _smooth(values)[place]


def _of_each_ack(when: NDArray[np.float64], rtt: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One round trip of each ACK, as a sender takes it: of the earliest segment that it acknowledged. Times in s, RTT in ms."""
    order = np.lexsort((-rtt, when))
    when, rtt = when[order], rtt[order]
    first = np.concatenate(([True], np.diff(when) > 0))
    return when[first] / NS_PER_S, rtt[first] / 1e6


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The smoothed RTT after each round trip."""
    from scipy.signal import lfilter

    smoothed, _ = lfilter([GAIN], [1, GAIN - 1], values, zi=[(1 - GAIN) * values[0]])
    return np.asarray(smoothed, dtype=float)


def _miss(what: str, observed: float | None, replayed: Estimate) -> str:
    """The sentence about what the replay misses; empty where it agrees or cannot be compared."""
    if observed is None or not observed > 0 or math.isnan(replayed.value):
        return ""
    if replayed.low <= observed <= replayed.high or (replayed.value > 0 and abs(math.log(observed / replayed.value)) <= math.log(WITHIN)):
        return ""
    unit = replayed.unit
    return f"The replay's {what} is {replayed.text(unit=unit)}, and {number(observed)} {unit} was observed."
