"""The path that samples of TCP_INFO show, on simulated paths that are known."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import forked
from tcpscape.findings.diagnosis import diagnosis, from_samples
from tcpscape.findings.diagnosis.fitted import FittedPath
from tcpscape.findings.diagnosis.observed import Endpoint, Observation, ObservedFlow
from tcpscape.interchange import observing


@cache
def seen(*words: str) -> ObservedFlow:
    """A simulated transfer of 30 s, sampled each 10 ms."""
    with TemporaryDirectory() as place:
        out = str(Path(place) / "out")
        command = [*forked.python(), "-m", "tcpscape", "run", *words, "--duration", "30s", "--seeds", "1", "--samples", "10ms", "--out", out]
        subprocess.run(command, capture_output=True, check=True, timeout=120)
        return observing.observe(Path(out)).flows[0]


def fitted(*words: str) -> FittedPath:
    """What its samples show."""
    return from_samples.fit(seen(*words))


FULL = ("--forward", "netem delay 20ms", "--reverse", "netem delay 20ms", "--bottleneck", "tbf rate 20mbit burst 10kb limit 150kb", "--cca", "cubic")
LOSSY = ("--forward", "netem delay 20ms loss 1%", "--reverse", "netem delay 20ms", "--cca", "reno")
SHAKEN = (
    "--forward", "netem delay 40ms 4ms", "--reverse", "netem delay 40ms", "--bottleneck", "tbf rate 30mbit burst 10kb limit 300kb", "--cca", "cubic",
)  # fmt: skip
FAST = ("--forward", "netem delay 40ms 4ms", "--reverse", "netem delay 40ms", "--cca", "cubic")


class TestPaths:
    """Against the path that was simulated."""

    def test_a_full_bottleneck_shows_rtt_rate_and_buffer(self) -> None:
        path = fitted(*FULL)
        assert path.rtt_ms
        assert path.rate_mbps
        assert path.buffer_bytes
        assert path.rtt_ms.low <= 40 <= path.rtt_ms.high
        assert path.rtt_ms.value == pytest.approx(40, rel=0.02)
        assert path.rate_mbps.low <= 20 <= path.rate_mbps.high
        assert path.rate_mbps.value == pytest.approx(20, rel=0.02)
        assert path.buffer_bytes.value == pytest.approx(150_000, rel=0.2)
        assert path.queue == "self-induced"
        assert path.jitter_ms is None
        assert "jitter_ms" in path.reasons

    def test_random_loss_without_a_bottleneck_is_told_and_the_rate_is_not(self) -> None:
        path = fitted(*LOSSY)
        assert path.loss_pct
        assert path.loss_pct.low <= 1 <= path.loss_pct.high
        assert path.rate_mbps is None
        assert path.buffer_bytes is None
        assert {"rate_mbps", "buffer_bytes", "queue_loss_pct"} <= path.reasons.keys()

    def test_jitter_widens_the_rtt_and_hides_losses(self) -> None:
        path = fitted(*SHAKEN)
        assert path.order_kept is False
        assert path.rtt_ms
        assert path.jitter_ms
        assert path.rtt_ms.low <= 80 <= path.rtt_ms.high
        assert path.jitter_ms.low <= 4 <= path.jitter_ms.high
        fast = fitted(*FAST).rtt_ms
        assert fast
        assert fast.low <= 80 <= fast.high
        assert path.loss_pct is None
        assert "needlessly" in path.reasons["loss_pct"]

    def test_every_field_without_a_value_has_a_reason(self) -> None:
        for words in (FULL, LOSSY, SHAKEN):
            path = fitted(*words)
            missing = {name for name in (*from_samples.MEASURED, *from_samples.PER_PACKET) if getattr(path, name) is None}
            assert missing == path.reasons.keys()

    def test_the_whole_diagnosis_takes_such_a_flow(self) -> None:
        result = diagnosis.diagnose(Observation("sockets", "test", [seen(*FULL)]))
        assert result.flows[0].path
        assert result.flows[0].path.rate_mbps
        assert result.flows[0].control.name == "cubic"


def flow(columns: dict[str, list[float]], **facts: object) -> ObservedFlow:
    """A flow with these samples."""
    samples = {name: np.array(values) for name, values in columns.items()}
    return ObservedFlow(Endpoint("10.0.0.1", 1), Endpoint("10.0.0.2", 2), 500, 10**6, 1.0, 0.0, "sender", 8.0, facts, samples=samples)


class TestLittle:
    """Sources that show little."""

    def test_one_sample_bounds_the_rtt_alone(self) -> None:
        path = from_samples.fit(flow({"t_s": [0.0], "rtt": [60e3], "rttvar": [5e3], "min_rtt": [41.5e3]}))
        assert path.rtt_ms
        assert (path.rtt_ms.value, path.rtt_ms.high) == (41.5, 60)
        assert path.rate_mbps is None
        assert "there is 1" in path.reasons["rate_mbps"]

    def test_smoothed_rtts_alone_bound_the_base_rtt_from_above(self) -> None:
        path = from_samples.fit(flow({"t_s": [0.0, 1.0, 2.0], "rtt": [76e3, 80e3, 88e3], "snd_cwnd": [10, 20, 30]}))
        assert path.rtt_ms is None
        assert "at most 76 ms" in path.reasons["rtt_ms"]

    def test_one_sample_a_second_shows_a_full_bottleneck_too(self) -> None:
        every = {name: values[::100] for name, values in seen(*FULL).samples.items()}
        path = from_samples.fit(replace(seen(*FULL), samples=every))
        assert path.rate_mbps
        assert path.rate_mbps.value == pytest.approx(20, rel=0.02)

    def test_a_smallest_rtt_of_whole_milliseconds_was_rounded_down(self) -> None:
        later = {"t_s": [0.0, 5.0, 10.0], "rtt": [42e3, 43e3, 43e3], "rttvar": [1e3] * 3}
        finer = from_samples.fit(flow({**later, "min_rtt": [41.6e3, 41.6e3, 41e3]})).rtt_ms
        assert finer
        assert finer.value == 41.6
        coarse = from_samples.fit(flow({**later, "min_rtt": [41e3] * 3})).rtt_ms
        assert coarse
        assert coarse.value == 41.5
        assert coarse.high > 42

    def test_no_samples_are_no_path(self) -> None:
        path = from_samples.fit(flow({}))
        assert path.rtt_ms is None
        assert set(from_samples.MEASURED) <= path.reasons.keys()

    def test_pings_of_the_idle_path_are_its_rtt_and_its_spread(self) -> None:
        draw = np.random.default_rng(2)
        path = from_samples.fit(flow({}, idle_pings_ms=tuple(50 + 3 * draw.standard_normal(100))))
        assert path.rtt_ms
        assert path.jitter_ms
        assert path.rtt_ms.low < 50 < path.rtt_ms.high
        assert path.jitter_ms.low < 3 < path.jitter_ms.high
        assert "rtt_ms" not in path.reasons

    def test_a_held_sender_never_shows_the_rate(self) -> None:
        n = 500
        path = from_samples.fit(flow({
            "t_s": list(np.arange(n) / 100), "rtt": [30e3] * n, "rttvar": [100.0] * n, "min_rtt": [30e3] * n, "delivery_rate": [1e6] * n,
            "unacked": [20.0] * n, "rwnd_limited": list(np.arange(n) * 1e4),
        }))  # fmt: skip
        assert path.rate_mbps is None
        assert "held the sender" in path.reasons["rate_mbps"]
