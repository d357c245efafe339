"""Observations and diagnoses that tests make up: one for each situation that a path can be in."""

import numpy as np

from tcpscape.findings.diagnosis.diagnosis import FlowDiagnosis
from tcpscape.findings.diagnosis.fitted import Alternative, Assumption, FittedPath, PathChange, RecognisedControl, Replay, ReplayAdvice, Zone
from tcpscape.findings.diagnosis.observed import LimitInterval, Observation, ObservedFlow, SocketAddress
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.stats import Estimate

NOTHING = dict.fromkeys(FittedPath.__dataclass_fields__)
"""Every field of a fitted path, unknown."""


NARROW = 0.02
"""Of a round trip: one with a wider interval is told by its ends."""


def estimate(value, spread=0.05, unit=""):
    return Estimate(value, value * (1 - spread), value * (1 + spread), 100, unit)


def fitted(changes=(), reasons=None, **known):
    """A path of which these fields are known, by their values."""
    values = {name: estimate(value, NARROW if name == "rtt_ms" else 0.05) if isinstance(value, float) else value for name, value in known.items()}
    return FittedPath(**{**NOTHING, **values, "changes": tuple(changes), "reasons": reasons or {}})


def flow(port=5201, **fields):
    """30 s of a flow at 18 Mbit/s; `limits` may be a mapping of cause to share."""
    limits = fields.pop("limits", ())
    if isinstance(limits, dict):
        starts, at = [], 0.0
        for cause, share in limits.items():
            starts.append(LimitInterval(at, at + 30 * share, cause, (int(at) + 1, int(at) + 2)))
            at += 30 * share
        limits = tuple(starts)
    given = {
        "packets": 46_000,
        "bytes": 67_500_000,
        "seconds": 30.0,
        "start_s": 0.0,
        "vantage": "sender",
        "goodput_mbps": 18.0,
        "limits": limits,
        **fields,
    }
    return ObservedFlow(SocketAddress("10.0.0.1", 40000), SocketAddress("10.0.0.2", port), **given)


def observation(*flows, kind="pcap", name="slow.pcap", **fields):
    return Observation(kind, name, flows, **fields)


def traced(seconds=30.0, rate=18e6, seed=1, **fields):
    """A flow with rows: segments at a rate, RTTs around 50 ms, a loss every 5 s, a receive window."""
    random = np.random.default_rng(seed)
    t = np.arange(0, seconds, 1448 * 8 / rate)
    rtt = (50 + 4 * np.abs(np.sin(t)) + random.normal(0, 0.5, len(t))) * 1e6
    ns = (t * 1e9).astype(np.uint64)
    segments = {
        "t": ns,
        "frame": np.arange(1, 2 * len(t), 2, dtype=np.uint64),
        "len": np.full(len(t), 1448, np.uint32),
        "rtt": rtt.astype(np.uint64),
        "acked": ns + rtt.astype(np.uint64),
        "flight": (rate / 8 * rtt / 1e9).astype(np.uint32),
    }
    acks = {"t": ns[::2] + np.uint64(50_000_000), "window": np.full(len(ns[::2]), 3_000_000, np.uint32)}
    lost = np.arange(5, seconds, 5)
    events = {"t": (np.repeat(lost, 3) * 1e9).astype(np.uint64), "kind": np.tile(np.array([5, 1, 9], np.uint8), len(lost))}
    limits = {"application": 0.05, "congestion_window": 0.6, "recovery": 0.15, "timeout": 0.05, "receive_window": 0.15}
    return flow(segments=segments, acks=acks, events=events, seconds=seconds, **{"limits": limits, **fields})


PATH = fitted(
    rtt_ms=50.0,
    jitter_ms=0.0,
    jitter_on="none",
    order_kept=True,
    loss_pct=0.0,
    queue_loss_pct=0.0,
    rate_mbps=20.0,
    buffer_bytes=200_000.0,
    queue="self-induced",
)
"""A clean path."""
STABLE = Zone("stable", "stable", estimate(1.0), estimate(0.02), 2.0, 0.05, 0.04, "healthy", "neither")
SAME = ReplayAdvice("cubic", estimate(1.0), "as good", [Alternative("bbr", estimate(1.0), estimate(60.0), estimate(0.1))])
BBR = ReplayAdvice(
    "bbr", estimate(3.2), "better", [Alternative("bbr", estimate(3.2), estimate(60.0), estimate(0.5))], assumption=Assumption("unchanged path")
)
AGREES = Replay(estimate(17.5), estimate(56.0), 18.0, 55.0, "agrees")


def diagnosed(of=None, path=PATH, *, control="cubic", limited_by=None, zone=STABLE, replay=AGREES, advice=SAME, reasons=None):
    sure = (
        RecognisedControl("unknown", 0.4, {"cubic": 0.4, "htcp": 0.3}, Reason("few round trips"))
        if control == "unknown"
        else RecognisedControl(control, 0.97, {control: 0.97}, Reason("named by the source"))
    )
    return FlowDiagnosis(of or flow(), limited_by, path, sure, zone, replay, advice, reasons or {})


SITUATIONS = {
    "receive window": diagnosed(flow(goodput_mbps=5.0), limited_by={"receive_window": 0.82, "application": 0.18}),
    "application": diagnosed(flow(goodput_mbps=5.0), limited_by={"application": 0.95, "congestion_window": 0.05}, advice=None),
    "jitter cliff": diagnosed(
        flow(goodput_mbps=2.0),
        fitted(
            rtt_ms=50.0,
            jitter_ms=12.0,
            jitter_on="forward",
            order_kept=False,
            loss_pct=0.0,
            distribution="normal",
            reasons={"rate_mbps": Reason("no queue grew")},
        ),
        limited_by={"congestion_window": 0.7, "recovery": 0.3},
        zone=Zone("collapsed", "chaos zone", estimate(0.1), estimate(0.4), 60.0, 0.2, 0.3, "stressed", "network"),
        advice=BBR,
    ),
    "random loss": diagnosed(
        flow(goodput_mbps=4.0),
        fitted(rtt_ms=50.0, jitter_ms=0.5, jitter_on="forward", order_kept=False, loss_pct=0.5, queue_loss_pct=0.0, rate_mbps=20.0),
        limited_by={"congestion_window": 0.9, "recovery": 0.1},
        advice=BBR,
    ),
    "bufferbloat": diagnosed(
        flow(goodput_mbps=18.8),
        fitted(rtt_ms=30.0, jitter_ms=0.0, jitter_on="none", loss_pct=0.0, rate_mbps=20.0, buffer_bytes=1e6, queue="self-induced"),
        limited_by={"congestion_window": 1.0},
        replay=Replay(estimate(18.0), estimate(300.0), 18.8, 310.0, "agrees"),
    ),
    "healthy": diagnosed(flow(goodput_mbps=18.8), limited_by={"congestion_window": 0.97, "application": 0.03}),
    "nothing identifiable": diagnosed(
        flow(goodput_mbps=None),
        None,
        control="unknown",
        zone=None,
        replay=None,
        advice=None,
        reasons={"path": Reason("no packets"), "limited_by": Reason("limits unseen"), "advice": Reason("RTT of 0")},
    ),
    "unknown control": diagnosed(flow(goodput_mbps=8.0), control="unknown", limited_by={"congestion_window": 1.0}, replay=None, advice=None),
    "changes": diagnosed(
        flow(goodput_mbps=8.0),
        path=fitted(rtt_ms=50.0, rate_mbps=20.0, changes=[PathChange(8.0, "rate", 20.0, 5.0, 12_345), PathChange(12.0, "outage", None, 0.5)]),
        limited_by={"recovery": 1.0},
    ),
    "differs": diagnosed(
        flow(goodput_mbps=12.0),
        limited_by={"timeout": 0.6, "unknown": 0.4},
        replay=Replay(estimate(9.0), None, 18.0, 55.0, "differs", Reason("misses", {"misses": [("goodput", 18.0, estimate(9.0))]})),
        advice=None,
    ),
}
"""Situation → a diagnosis of it."""
