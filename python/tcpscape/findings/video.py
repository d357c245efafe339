"""The value of a transfer to a viewer: the rung of an H.264 ladder that it carries, and how a player with a buffer stalls.

The rungs are YouTube's recommended bit rates for SDR video at 24–30 frames/s (support.google.com/youtube/answer/1722171); those of 480p and
720p are the ones that "The Jitter Cliff: When TCP Goes Chaotic" judges by (2.5 and 5 Mbit/s).

The player is a fluid: bytes that arrive are media at the rung's rate, played at one second a second. It starts once `startup_s` seconds
are there, stops when none is left and goes on once `resume_s` are there again. Between two samples bytes arrive evenly; with that the
times of stalls are exact. Its store has no limit: a limit would slow the sender down, which a finished transfer cannot show.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcpscape import stats
from tcpscape.errors import refuse
from tcpscape.metrics import samples
from tcpscape.stats import Estimate
from tcpscape.trial import Trial

Array = NDArray[np.float64]
STARTUP_S = 2.0
"""Seconds of media with which a player starts by default."""
NOTHING = "below 360p"
"""Name of the rates below the lowest rung."""


@dataclass(frozen=True, slots=True)
class Rung:
    """A quality of video and the rate that it takes."""

    name: str
    mbps: float


LADDER = (Rung("360p", 1.0), Rung("480p", 2.5), Rung("720p", 5.0), Rung("1080p", 8.0), Rung("1440p", 16.0), Rung("2160p", 35.0))
"""From the lowest; of a range of rates its lower end."""


def carried(mbps: float, ladder: Sequence[Rung] = LADDER) -> Rung | None:
    """The highest rung that a steady `mbps` carries; None where the lowest takes more."""
    carried_rungs = [r for r in ladder if r.mbps <= mbps]
    return max(carried_rungs, key=lambda r: r.mbps, default=None)


@dataclass(frozen=True, slots=True)
class Player:
    """How a player buffers, s of media."""

    startup_s: float = STARTUP_S
    """Media with which it starts."""
    resume_s: float | None = None
    """Media with which it goes on after a stall; None is the same."""

    def __post_init__(self) -> None:
        for name, value in (("startup", self.startup_s), ("resume", self.resume_s)):
            if value is not None and not (value > 0 and math.isfinite(value)):
                refuse(name, f"a player that waits for {value:g} s of media never knows when to play", "write for example 2s")


@dataclass(frozen=True, slots=True)
class Playback:
    """One transfer as a viewer sees it at one rung."""

    rung: Rung
    startup_s: float
    """From the first byte's request to the first picture; all of the time where it never came, NaN where nothing was sampled."""
    stalls: tuple[tuple[float, float], ...]
    """Begin and end of each stop, s; one that lasts until the end of the transfer ends there."""
    played_s: float
    """Media played, s."""

    @property
    def stalled_s(self) -> float:
        """Time stopped after the start, s."""
        return sum(stop - start for start, stop in self.stalls)

    @property
    def stalled_share(self) -> float:
        """Of the time from the first picture on; NaN where there was none."""
        whole = self.played_s + self.stalled_s
        return self.stalled_s / whole if whole > 0 else math.nan

    @property
    def smooth(self) -> bool:
        """Whether it began and never stopped."""
        return self.played_s > 0 and not self.stalls


def play(times_s: Array, arrived_bytes: Array, rung: Rung, player: Player = Player()) -> Playback:
    """Plays what arrives: `arrived_bytes` in total by `times_s`, both rising."""
    if len(times_s) < 2:
        return Playback(rung, math.nan, (), 0.0)
    media, end = arrived_bytes * 8 / (rung.mbps * 1e6), float(times_s[-1])
    now = _arrival(times_s, media, player.startup_s)
    if now is None:
        return Playback(rung, end - float(times_s[0]), (), 0.0)
    startup, played, stalls = now - float(times_s[0]), 0.0, []
    again = player.startup_s if player.resume_s is None else player.resume_s
    while (empty := _empty(times_s, media, now, played)) is not None:
        played += empty - now
        resumed = _arrival(times_s, media, played + again)
        stalls.append((empty, end if resumed is None else resumed))
        if resumed is None:
            return Playback(rung, startup, tuple(stalls), played)
        now = resumed
    return Playback(rung, startup, tuple(stalls), played + end - now)


def _arrival(times: Array, media: Array, level: float) -> float | None:
    """When `level` seconds of media are there; None where they never are."""
    at = int(np.searchsorted(media, level - 1e-12))
    if at >= len(media):
        return None
    if at == 0:
        return float(times[0])
    part = (level - media[at - 1]) / (media[at] - media[at - 1])
    return float(times[at - 1] + part * (times[at] - times[at - 1]))


def _empty(times: Array, media: Array, since: float, played: float) -> float | None:
    """When playing on from `since` catches up with what is there; None where it does not."""
    later = times > since
    t = np.concatenate(([since], times[later]))
    left = np.concatenate(([float(np.interp(since, times, media))], media[later])) - played - (t - since)
    short = np.flatnonzero(left < -1e-12)
    if not len(short):
        return None
    at = int(short[0])
    part = left[at - 1] / (left[at - 1] - left[at])
    return float(t[at - 1] + part * (t[at] - t[at - 1]))


def watch(trial: Trial, rung: Rung, player: Player = Player(), flow: int = 0) -> Playback:
    """Plays what a trial's flow delivered; the trial needs samples."""
    if trial.samples is None:
        refuse("samples", f"{trial.scenario} was run without them", "add samples (every 100ms)")
    return play(*samples.delivered(trial, flow), rung, player)


@dataclass(frozen=True, slots=True)
class ViewingSummary:
    """Many trials of one condition, watched at one rung."""

    rung: Rung
    carried: Mapping[str, Estimate]
    """Share of the trials whose mean goodput carries each rung (the highest)."""
    smooth: Mapping[str, Estimate]
    """Share of the trials that play each rung without a stop (the highest)."""
    startup_s: Estimate
    """Median until the first picture."""
    stalls: Estimate
    """Mean number of stops."""
    stalled_share: Estimate
    """Mean share of the time stopped, of the trials that began to play."""
    began: Estimate
    """Share of the trials that began to play."""


def judge(trials: Sequence[Trial], rung: Rung, player: Player = Player(), flow: int = 0) -> ViewingSummary:
    """The trials of one condition together, one flow of each."""
    playbacks = [watch(t, rung, player, flow) for t in trials]
    began = [p for p in playbacks if p.played_s > 0]
    return ViewingSummary(
        rung, _shares([carried(t.flows[flow].goodput_mbps) for t in trials]), _shares([_smoothest(t, player, flow) for t in trials]),
        stats.median([p.startup_s for p in playbacks], "s"), stats.mean([float(len(p.stalls)) for p in playbacks], "1"),
        stats.mean([p.stalled_share for p in began], "1"), stats.share(len(began), len(playbacks)),
    )  # fmt: skip


def _smoothest(trial: Trial, player: Player, flow: int) -> Rung | None:
    """The highest rung that plays without a stop."""
    return next((r for r in reversed(LADDER) if watch(trial, r, player, flow).smooth), None)


def _shares(rungs: Sequence[Rung | None]) -> dict[str, Estimate]:
    """Share of each rung that occurs, the lowest first."""
    counts = Counter(r.name if r else NOTHING for r in rungs)
    return {name: stats.share(counts[name], len(rungs)) for name in (NOTHING, *(r.name for r in LADDER)) if counts[name]}
