"""Changes of the path: found where captures of the model have one, and not where only the flow changes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcpscape import capture
from tcpscape.engines.model import Model
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path import fit
from tcpscape.findings.diagnosis.path.changes import parted, two_plateaus
from tcpscape.findings.diagnosis.path.losses import frequent_from
from tcpscape.scenario.scenario import Scenario

PATH: dict[str, Any] = {
    "forward": [{"at": "router", "delay": "5ms"}, {"at": "router", "delay": "10ms"}], "bottleneck": "tbf rate 8mbit burst 6056 limit 40000",
    "reverse": {"at": "router", "delay": "10ms"}, "flows": [{"cca": "cubic"}], "duration": "16s",
}  # fmt: skip


def found(tmp_path: Path, **fields: Any) -> Any:
    """The path that is fitted to a capture of the model."""
    file = tmp_path / "a.pcapng"
    Model().write_pcap(Scenario.model_validate(PATH | fields), 1, file)
    return fit(capture.read(file).flows[0])


def test_plateaus() -> None:
    """Two steady levels are a step; a ramp, a sawtooth and one level are none."""
    noise = np.random.default_rng(1).normal(0, 0.02, 40)
    step = two_plateaus(np.concatenate([np.zeros(18), [0.4], np.ones(21)]) + noise)
    assert step is not None
    assert step.place in (17, 18)
    assert step.after - step.before == pytest.approx(1, abs=0.03)
    assert two_plateaus(noise) is None
    assert two_plateaus(np.linspace(0, 1, 40)) is None
    assert two_plateaus(np.tile(np.linspace(0, 1, 8), 5)) is None
    assert two_plateaus(np.ones(5)) is None
    assert parted(np.array([1.0, 1, 1, 1, 5, 5, 5]), 2, 1, 5) == 4


def test_step_of_the_rate(tmp_path: Path) -> None:
    """A bottleneck that halves its rate."""
    p = found(tmp_path, changes=[{"where": "bottleneck", "at": "8s", "set": {"rate": "4mbit"}}])
    (change,) = p.changes
    assert change.kind == "rate"
    assert change.at_s == pytest.approx(8, abs=0.4)
    assert change.before == pytest.approx(8, rel=0.03)
    assert change.after == pytest.approx(4, rel=0.03)
    assert change.frame is not None
    assert "changed at" in p.reasons["rate_mbps"]


@pytest.mark.parametrize("start_s", [0.0, 20.3])
def test_a_transfer_shorter_than_a_bin_has_no_step_and_one_that_begins_late_has_its_own_bins(tmp_path: Path, start_s: float) -> None:
    """A transfer that is over within half a second, and a step of a flow that begins in the middle of what would be a bin of the capture."""
    file = tmp_path / "short.pcapng"
    fast = PATH | {"bottleneck": "tbf rate 400mbit burst 60056 limit 4000000", "flows": [{"cca": "cubic", "app": {"size": "1MB"}}], "duration": "3s"}
    Model().write_pcap(Scenario.model_validate(fast), 1, file)
    flow = later(capture.read(file).flows[0], start_s)
    assert flow.seconds < 0.5
    assert list(fit(flow).changes) == []
    changed = PATH | {"changes": [{"where": "bottleneck", "at": "8s", "set": {"rate": "4mbit"}}]}
    Model().write_pcap(Scenario.model_validate(changed), 1, file)
    flow = capture.read(file).flows[0]
    (here,), (there,) = fit(flow).changes, fit(later(flow, start_s)).changes
    assert (there.at_s, there.before, there.after) == (pytest.approx(here.at_s + start_s), pytest.approx(here.before), pytest.approx(here.after))


def later(flow: ObservedFlow, seconds: float) -> ObservedFlow:
    """The same flow so many seconds later in its capture."""
    ns = np.uint64(seconds * 1e9)

    def moved(columns: Any) -> dict[str, Any]:
        return {name: np.where(x > 0, x + ns, x) if name in ("t", "acked") else x for name, x in columns.items()}

    return replace(flow, start_s=flow.start_s + seconds, segments=moved(flow.segments), acks=moved(flow.acks), events=moved(flow.events))


def test_step_of_the_round_trip(tmp_path: Path) -> None:
    """A path that becomes longer by more than its queue."""
    p = found(tmp_path, changes=[{"where": "forward", "hop": 1, "at": "8s", "set": {"delay": "80ms"}}])
    (change,) = p.changes
    assert change.kind == "rtt"
    assert change.at_s == pytest.approx(8, abs=0.7)
    assert change.after - change.before == pytest.approx(70, rel=0.35)


def test_outage(tmp_path: Path) -> None:
    """A bottleneck that holds everything for 0.8 s."""
    steps = [{"where": "bottleneck", "at": f"{t}s", "set": {"outage": on}} for t, on in ((8.0, True), (8.8, False))]
    (change,) = found(tmp_path, changes=steps).changes
    assert change.kind == "outage"
    assert change.at_s == pytest.approx(8, abs=0.1)
    assert change.after == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize("fields", [{}, {"bottleneck": "tbf rate 8mbit burst 6056 limit 300000"}, {"forward": {"at": "router", "delay": "15ms", "loss": "1%"}},
                                    {"flows": [{"cca": "bbr"}]}])  # fmt: skip
def test_no_change(fields: dict[str, Any], tmp_path: Path) -> None:
    """Sawtooth, deep buffer, random loss, probing: the flow's own swings are no change of the path."""
    assert found(tmp_path, **fields).changes == ()


def test_loss_beside_delays() -> None:
    """Loss that is more frequent from a delay on; none where it is the same at all."""
    random = np.random.default_rng(2)
    delay = random.uniform(20, 40, 20_000)
    lost = random.random(delay.size) < np.where(delay > 36, 0.08, 0.01)
    assert frequent_from(delay[~lost], delay[lost]) == pytest.approx(36, abs=1.1)
    assert math.isinf(frequent_from(delay[~lost & (delay < 36)], delay[lost & (delay < 36)]))
    falls = random.random(delay.size) < np.where(delay < 24, 0.08, 0.01)
    assert math.isinf(frequent_from(delay[~falls], delay[falls]))


def test_random_loss_beside_an_overflowing_queue(tmp_path: Path) -> None:
    """A shallow queue and a lossy link: within three standard errors of the 49 packets that 0.3 % of 16,000 are."""
    forward = [{"at": "router", "delay": "5ms", "loss": "0.3%"}, {"at": "router", "delay": "10ms"}]
    p = found(tmp_path, forward=forward, bottleneck="tbf rate 20mbit burst 6056 limit 30000", duration="20s")
    assert p.loss_pct is not None
    assert abs(math.log(p.loss_pct.value / 0.3)) < 3 / math.sqrt(49)
