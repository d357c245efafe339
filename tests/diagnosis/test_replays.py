"""Zone, replay, advice and fitted scenario of a diagnosis, on flows that the model itself made, so that the truth is known."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tcpscape import engines
from tcpscape.campaign.execute import Runner
from tcpscape.findings.diagnosis.fitted import Assumption, FittedPath, PathChange, RecognisedControl, Replay, ReplaySettings, Withheld
from tcpscape.findings.diagnosis.observed import LimitInterval, ObservedFlow, SocketAddress
from tcpscape.findings.diagnosis.reasons import Reason
from tcpscape.findings.diagnosis.replay import advice, hosts, judging, scenario, zone
from tcpscape.findings.diagnosis.replay.lab import MOST_EVENTS, open_lab
from tcpscape.findings.diagnosis.sender_side import observed_rtt, smoothed_rtt
from tcpscape.scenario import files
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.trial import Capture, Trial
from tcpscape.words import reasons
from tcpscape.words.diagnosis import guidance
from tcpscape.words.fitted_path import assumption
from tcpscape.words.fitted_path import text as text_of
from tcpscape.words.flow import no_advice

ENDS = (SocketAddress("192.0.2.1", 1), SocketAddress("192.0.2.2", 2))
NOTHING = FittedPath(None, None, None, None, None, None, None, None, None, None, None, None, None)
SECONDS = 8.0


def known(value: float, unit: str = "", share: float = 0.02) -> Estimate:
    return Estimate(value, value * (1 - share), value * (1 + share), 100, unit)


def path(**fields: Any) -> FittedPath:
    """A path with an RTT of 40 ms and no loss, and what is given."""
    given = {k: known(v) if isinstance(v, float) and k != "order_kept" else v for k, v in fields.items()}
    return replace(NOTHING, **({"rtt_ms": known(40.0, "ms"), "loss_pct": Estimate(0.0, 0.0, 0.01, 100, "%")} | given))


def observed(plain: Mapping[str, Any], seed: int = 77) -> ObservedFlow:
    """What a perfect analysis at the sender would say of a run of the model."""
    trial = engines.make("model").run(Scenario.of({"duration": f"{SECONDS}s", **plain}), [seed], capture=Capture(samples_ns=20_000_000))[0]
    flow, samples = trial.flows[0], trial.samples
    share = flow.limited_by
    causes = {"receive_window": share["rwnd"], "application": share["app"], "send_buffer": share["sndbuf"], "congestion_window": share["cwnd"]}
    at, limits = 0.0, []
    for cause, part in causes.items():
        limits.append(LimitInterval(at, at + part * flow.seconds, cause))  # type: ignore[arg-type]
        at += part * flow.seconds
    facts = {"window_max": flow.max_rwnd, "flight_max": int(samples["in_flight"].max()) * 1448, "zero_windows": flow.zero_windows}
    facts |= {"retransmissions": flow.retransmits, "lost_pct": 100 * lost(trial)}
    series = {"t_s": samples["t_ns"].to_numpy() / 1e9, "srtt_us": samples["srtt_us"].to_numpy()}
    seconds = flow.seconds + (trial.path_rtt_ms or 0.0) / 1e3
    return ObservedFlow(*ENDS, None, None, seconds, 0.0, "sender", flow.goodput_mbps, facts, samples=series, limits=limits)


def lost(trial: Trial) -> float:
    """The share of the data that the random loss took in this run."""
    first = next(q for q in trial.queues if q["name"] == "netem" and q["direction"] == "forward")
    return float(first["drops"]["loss"] / max(1, first["packets_in"]))


def fitted_loss(flow: ObservedFlow) -> Estimate:
    return known(flow.facts["lost_pct"], "%", 0.2)


def hops(rtt_ms: float = 40.0, jitter_ms: float = 0.0, loss: float = 0.0, rate: str = "6mbit") -> dict[str, Any]:
    each = {"at": "router", "delay": f"{rtt_ms / 2}ms", **({"jitter": f"{jitter_ms}ms"} if jitter_ms else {})}
    return {"forward": {**each, **({"loss": f"{loss}%"} if loss else {})}, "reverse": each, "bottleneck": {"rate": rate, "buffer": "60kB"}}


LINK = {"rate_mbps": 6.0, "buffer_bytes": 60_000.0}


@pytest.fixture(scope="module")
def settings() -> ReplaySettings:
    return ReplaySettings(Runner(engines.make("model"), 1), quick=True)


def cubic() -> RecognisedControl:
    return RecognisedControl("cubic", 1.0)


def test_loss_is_repeated_and_a_control_that_stands_it_is_advised(settings: ReplaySettings) -> None:
    flow = observed({**hops(loss=1.0), "flows": [{"cca": "reno"}]})
    found = judging.judged(flow, path(loss_pct=fitted_loss(flow), **LINK), RecognisedControl("reno", 1.0), settings)
    assert found.replay.verdict == "agrees", found.replay.reason
    assert found.replay.goodput_mbps.value == pytest.approx(flow.goodput_mbps, rel=0.25)
    assert (found.zone.side, found.zone.retention.value) == ("stable", 1.0)
    advised = found.advice
    assert advised.verdict == "better"
    assert advised.choice is not None
    truth = [observed({**hops(loss=1.0), "flows": [{"cca": advised.choice}]}, seed).goodput_mbps or 0.0 for seed in range(50, 55)]
    own = [observed({**hops(loss=1.0), "flows": [{"cca": "reno"}]}, seed).goodput_mbps or 0.0 for seed in range(50, 55)]
    assert advised.gain.value == pytest.approx(np.mean(truth) / np.mean(own), rel=0.25)
    assert advised.gain.low > 1
    assert advised.gain.low <= advised.gain.value <= advised.gain.high
    names = {a.name for a in advised.controls}
    assert "fixed" not in names
    assert "bbr3" not in names
    assert "prague" not in names
    assert len(names) == 16
    assert advised.assumption is not None


def test_nothing_is_advised_where_the_replay_differs(settings: ReplaySettings) -> None:
    flow = observed({**hops(loss=3.0), "flows": [{"cca": "reno"}]})
    found = judging.judged(flow, path(**LINK), RecognisedControl("reno", 1.0), settings)
    assert found.replay.verdict == "differs"
    assert found.zone.side is None
    assert found.zone.reasons["side"] == judging.UNLIKE
    assert found.replay.reason.values["misses"][0] == ("goodput", found.replay.observed_goodput_mbps, found.replay.goodput_mbps)
    assert "Mbit/s was observed" in reasons.text(found.replay.reason)
    assert found.advice.choice is None
    assert found.advice.gain is None
    assert found.advice.verdict == Withheld("differs", found.replay.reason)


def test_a_replay_that_agrees_by_a_wide_interval_alone_advises_nothing() -> None:
    wide = Estimate(6.0, 1.0, 30.0, 24, "Mbit/s")
    assert advice.is_far(Replay(wide, None, 2.0, None, "agrees"))
    assert not advice.is_far(Replay(wide, None, 5.0, None, "agrees"))


def test_an_unknown_control_is_assumed_where_its_replay_agrees(settings: ReplaySettings) -> None:
    flow = observed({**hops(loss=1.0), "flows": [{"cca": "cubic"}]})
    found = judging.judged(flow, path(loss_pct=fitted_loss(flow), **LINK), RecognisedControl("unknown", 0.3), settings)
    assert (found.replay.verdict, found.replay.control, found.replay.is_assumed) == ("agrees", "cubic", True)
    assert found.advice.choice is not None
    assert found.advice.assumption == Assumption("control", "cubic")
    assert found.zone.side is None
    assert found.zone.reasons["side"] == judging.NOT_KNOWN


def test_what_is_assumed_does_not_contradict_what_was_seen() -> None:
    """A flow that paces is none of a control that does not; packets lost beside a short queue were not lost by a long one."""
    unknown = RecognisedControl("unknown", 0.0, {"cubic": 0.6, "bbr": 0.4})
    assert judging._likely(unknown, is_paced=True) == ["bbr"]
    assert judging._likely(unknown, is_paced=False) == ["cubic", "bbr"]
    values = scenario.PathValues(rtt_ms=40.0, rate_mbps=20.0, buffer_bytes=100_000.0, loss=0.01)
    without = [one for one in judging._possible(values, is_sure=True) if "random loss" in one.assumption.lacks]
    assert {one.values.aqm for one in without} == set(judging.AQMS)
    assert None in {one.values.aqm for one in judging._possible(values, is_sure=False) if "random loss" in one.assumption.lacks}


def test_an_unknown_control_or_path_is_said_not_guessed(settings: ReplaySettings) -> None:
    flow = observed({**hops(loss=3.0), "flows": [{"cca": "cubic"}]})
    unknown = judging.judged(flow, path(**LINK), RecognisedControl("unknown", 0.3), settings)
    assert unknown.replay.verdict == "impossible"
    assert unknown.replay.reason == Reason("none repeats", {"names": ["cubic", "bbr"]})
    assert unknown.zone.side is None
    assert unknown.advice.choice is None
    assert unknown.advice.verdict == Withheld("no replay", unknown.replay.reason)
    for nowhere in (None, NOTHING, replace(NOTHING, reasons={"rtt_ms": Reason("few packets")})):
        found = judging.judged(flow, nowhere, cubic(), settings)
        assert found.replay.verdict == "impossible"
        assert found.replay.reason.why == "no RTT of the path"
    assert found.replay.reason.values == {"reason": Reason("few packets")}


def test_the_zone_is_that_of_the_control_and_the_order_not_of_jitter_by_rtt(settings: ReplaySettings) -> None:
    """Jitter of 15 % of the RTT: reordered, CUBIC collapses; with the order kept, it does not. The published rule says the same of both."""
    jittery = {**hops(jitter_ms=7.0, rate="40mbit"), "bottleneck": {"rate": "40mbit", "buffer": "400kB"}, "flows": [{"cca": "cubic"}]}
    wide = {"rate_mbps": 40.0, "buffer_bytes": 400_000.0, "jitter_ms": 7.0, "jitter_on": "both", "distribution": "normal"}
    flow = observed(jittery)
    reordered = open_lab(flow, path(order_kept=False, **wide), cubic(), settings)
    assert not isinstance(reordered, str)
    fallen = zone.of(reordered)
    kept = open_lab(flow, path(order_kept=True, **wide), cubic(), settings)
    assert not isinstance(kept, str)
    calm = zone.of(kept)
    assert fallen.side in ("collapsed", "chaos zone")
    assert calm.side == "stable"
    assert fallen.published == calm.published == "chaos zone"
    assert fallen.retention.value < calm.retention.value
    assert guidance(fallen)
    assert fallen.runs_needed
    assert fallen.runs_needed >= 2


def test_more_runs_are_made_where_the_side_is_in_doubt() -> None:
    rng = np.random.default_rng(3)
    calm = list(10 + 0.1 * rng.standard_normal(20))
    assert not zone.is_in_doubt(list(9 + 0.1 * rng.standard_normal(20)), calm)
    assert not zone.is_in_doubt(list(1 + 0.1 * rng.standard_normal(20)), calm)
    assert zone.is_in_doubt([9.0] * 17 + [4.0] * 3, calm)
    assert not zone.is_in_doubt([0.0] * 20, calm)


def test_an_application_a_receiver_and_a_send_buffer_that_limit_are_repeated(settings: ReplaySettings) -> None:
    cases = {"app": {"app": "250kB/s"}, "rcvbuf": {"rcvbuf": 20_000}, "sndbuf": {"sndbuf": 16_384}}
    for name, fields in cases.items():
        flow = observed({**hops(rate="30mbit"), "flows": [{"cca": "cubic", **fields}]})
        found = hosts.of(flow, "6.1")
        assert name in found.flow, name
        lab = open_lab(flow, path(rate_mbps=30.0, buffer_bytes=60_000.0), cubic(), settings)
        assert not isinstance(lab, str)
        replayed = judging.replay_of(lab)
        assert replayed.verdict == "agrees", f"{name}: {replayed.reason}"
        helped = [h.name for h in advice.helps(lab)]
        assert any(h.startswith({"app": "fq_codel", "rcvbuf": "receive buffer", "sndbuf": "send buffer"}[name]) for h in helped), helped


def test_the_size_of_a_buffer_is_the_one_that_carries_what_was_seen(settings: ReplaySettings) -> None:
    flow = observed({**hops(rate="30mbit"), "flows": [{"cca": "cubic", "sndbuf": 40_000}]})
    lab = open_lab(flow, path(rate_mbps=30.0, buffer_bytes=60_000.0), cubic(), settings)
    assert not isinstance(lab, str)
    found = judging.with_buffer(lab)
    assert judging.replay_of(found).goodput_mbps.value == pytest.approx(flow.goodput_mbps, rel=0.05)  # type: ignore[union-attr]
    assert found.fitted.hosts.flow["sndbuf"] == pytest.approx(40_000, rel=0.3)
    bulk = open_lab(replace(flow, limits=()), path(rate_mbps=30.0, buffer_bytes=60_000.0), cubic(), settings)
    assert not isinstance(bulk, str)
    assert judging.with_buffer(bulk) is bulk


def test_a_larger_receive_buffer_is_found_to_help(settings: ReplaySettings) -> None:
    flow = observed({**hops(rate="30mbit"), "flows": [{"cca": "cubic", "rcvbuf": 20_000}]})
    found = judging.judged(flow, path(rate_mbps=30.0, buffer_bytes=60_000.0), cubic(), settings)
    best = max(found.advice.settings, key=lambda s: s.gain.value)
    assert best.name.startswith("receive buffer")
    assert best.gain.low > 2


def test_a_capture_from_mid_connection_is_compared_with_the_steady_state(settings: ReplaySettings) -> None:
    flow = observed({**hops(loss=0.5), "flows": [{"cca": "cubic"}]})
    late = replace(flow, facts={**flow.facts, "begins_in_mid_connection": True})
    lab = open_lab(late, path(loss_pct=fitted_loss(flow), **LINK), cubic(), settings)
    assert lab.steady
    assert lab.mid_connection
    assert lab.seconds - lab.warmup_s == pytest.approx(late.seconds)
    assert judging.replay_of(lab).verdict == "agrees"


def test_a_long_fast_flow_is_replayed_in_fewer_events(settings: ReplaySettings) -> None:
    flow = replace(observed({**hops(), "flows": [{"cca": "cubic"}]}), seconds=3600.0, goodput_mbps=5.7)
    lab = open_lab(flow, path(**LINK), cubic(), settings)
    assert lab.steady
    assert lab.seconds < 3600
    assert lab.central("cubic", [3])[0].events < 1.5 * MOST_EVENTS


def test_the_scenario_is_a_valid_file_with_each_interval(tmp_path: Any) -> None:
    flow = observed({**hops(jitter_ms=2.0), "flows": [{"cca": "cubic"}]})
    changes = [PathChange(3.0, "rate", 6.0, 3.0), PathChange(5.0, "rtt", 40.0, 60.0), PathChange(6.0, "outage", None, 0.5)]
    fitted = path(jitter_ms=2.0, jitter_on="both", distribution="normal", order_kept=True, rate_mbps=6.0, changes=changes)
    fit = scenario.fitted(flow, fitted)
    text = text_of(fit, "cubic")
    file = tmp_path / "path.yaml"
    file.write_text(text, "utf-8")
    assert files.load(file) == fit.scenario("cubic")
    assert "[39.2, 40.8]" in text
    assert "not identifiable" in text
    assert "order: correlated" in text
    assert "one bandwidth-delay product" in text
    assert len(fit.scenario("cubic").changes) == 5
    assert engines.make("model").run(fit.scenario("cubic"), [1])[0].goodput_mbps > 0


def test_a_buffer_that_never_overflowed_is_the_one_whose_replay_has_the_rtt(settings: ReplaySettings) -> None:
    """BBR does not fill 4 bandwidth-delay products, CUBIC does; a managed queue is told from any FIFO by the RTT."""
    plain = {**hops(loss=0.02, rate="12mbit"), "flows": [{"cca": "cubic"}]}
    for queue, expected in (({"queue": "fq_codel"}, ("fq_codel", "codel", "pie")), ({"buffer": "4bdp"}, ("FIFO of 4",))):
        flow = observed({**plain, "bottleneck": {"rate": "12mbit", **queue}})
        lab = open_lab(flow, path(loss_pct=fitted_loss(flow), rate_mbps=12.0), cubic(), settings)
        assert not isinstance(lab, str)
        found = judging.with_queue(lab)
        assert any(name in assumption(found.fitted.assumptions[0]) for name in expected), found.fitted.assumptions
        assert judging.replay_of(found).verdict == "agrees"
    flow = observed({**plain, "bottleneck": {"rate": "12mbit", "buffer": 60_000}})
    known_buffer = open_lab(flow, path(loss_pct=fitted_loss(flow), rate_mbps=12.0, buffer_bytes=60_000.0), cubic(), settings)
    assert not isinstance(known_buffer, str)
    assert judging.with_queue(known_buffer) is known_buffer


def test_drops_of_a_managed_queue_that_were_taken_for_random_loss_are_told_by_the_replay(settings: ReplaySettings) -> None:
    flow = observed({**hops(rate="12mbit"), "bottleneck": {"rate": "12mbit", "queue": "pie"}, "flows": [{"cca": "scalable"}]})
    lab = open_lab(flow, path(loss_pct=4.0, rate_mbps=12.0, buffer_bytes=60_000.0), RecognisedControl("scalable", 1.0), settings)
    assert not isinstance(lab, str)
    assert judging.replay_of(lab).verdict == "differs"
    found = judging.with_queue(lab)
    assert found.fitted.assumptions[0].lacks == ("random loss",)
    assert judging.replay_of(found).verdict == "agrees"


def test_a_bottleneck_that_was_never_filled_is_assumed_and_said(settings: ReplaySettings) -> None:
    flow = observed({**hops(loss=2.0, rate="30mbit"), "flows": [{"cca": "reno"}]})
    found = judging.judged(flow, path(loss_pct=fitted_loss(flow)), RecognisedControl("reno", 1.0), settings)
    assert found.replay.verdict == "agrees", found.replay.reason
    assert found.advice.assumption == Assumption("unseen rate")
    # Packets that come at equal distances elsewhere than at the sender may be those of a bottleneck that is full: a gain of 4.4 was promised of one.
    even = replace(flow, vantage="receiver", segments={"t": np.arange(4_000) * np.uint64(2_000_000), "len": np.full(4_000, 1_448)})
    withheld = judging.judged(even, path(loss_pct=fitted_loss(flow)), RecognisedControl("reno", 1.0), settings).advice
    assert withheld is not None
    assert withheld.verdict == Withheld("served")
    assert no_advice(Withheld("served")).endswith("as from a bottleneck that is full, and its rate does not show")
    fit = scenario.fitted(flow, path(loss_pct=fitted_loss(flow)))
    assert fit is not None
    assert flow.goodput_mbps is not None
    rates = [fit.drawn(seed).unseen_rate_mbps or 0.0 for seed in range(50)]
    assert min(rates) >= flow.goodput_mbps
    assert max(rates) > 5 * min(rates)


def test_a_slow_reader_is_told_from_a_small_buffer() -> None:
    """The window held the flow for most of its time: full, it is small; far from full and without losses, nobody reads."""
    limits = [LimitInterval(0.0, 8.0, "receive_window"), LimitInterval(8.0, 10.0, "congestion_window")]
    facts = {"window_max": 200_000, "flight_max": 190_000, "retransmissions": 0, "rtt": {"p50_ms": 40.0}}
    flow = ObservedFlow(*ENDS, 10_000, None, 10.0, 0.0, "sender", 2.0, facts, limits=limits)
    slow = hosts.of(flow, "6.1").flow
    assert slow["read"]["size"] / float(slow["read"]["delay"].removesuffix("us")) == pytest.approx(0.25, rel=0.01)
    full = hosts.of(replace(flow, goodput_mbps=36.0), "6.1").flow
    assert "read" not in full
    assert full["rcvbuf"] == pytest.approx(200_000, rel=0.05)
    assert "rcvbuf" not in hosts.of(replace(flow, facts={**facts, "syn_seen": [False, False]}), "6.1").flow
    lossy = hosts.of(replace(flow, facts={**facts, "retransmissions": 500}), "6.1").flow
    assert "read" not in lossy


def test_drawn_paths_spread_as_the_intervals_say() -> None:
    fitted = path(jitter_ms=Estimate(2.0, 1.0, 3.0, 10, "ms"), jitter_on="forward", order_kept=False, **LINK)
    fit = scenario.fitted(observed({**hops(), "flows": [{"cca": "cubic"}]}), fitted)
    drawn = [fit.drawn(seed) for seed in range(400)]
    for name, low, high in (("rtt_ms", 39.2, 40.8), ("jitter_forward_ms", 1.0, 3.0), ("rate_mbps", 5.88, 6.12)):
        inside = [low <= getattr(values, name) <= high for values in drawn]
        assert 0.9 <= np.mean(inside) <= 0.99, name
    assert fit.drawn(3) == fit.drawn(3)
    assert all(values.jitter_reverse_ms == 0 for values in drawn)
    exact = scenario.values_of(path(**LINK))
    assert exact.loss == 0


def test_the_smoothed_rtt_of_segments_is_that_of_the_sender() -> None:
    """Round trips of 40 ms and then of 80 ms, a segment every ms and an ACK for every second one."""
    acked = np.repeat(np.arange(2, 4002, 2), 2) * 1_000_000 + 80_000_000
    rtt = np.where(acked < 2_000_000_000, 40_000_000, 80_000_000)
    flow = ObservedFlow(*ENDS, 4000, None, 4.0, 0.0, "sender", 1.0, segments={"acked": acked, "rtt": rtt, "t": acked - rtt})
    times, smoothed = smoothed_rtt(flow)
    assert (smoothed[0], smoothed[-1]) == (40, pytest.approx(80, abs=0.01))
    just_after = smoothed[np.searchsorted(times, 2.0)]
    assert 40 < just_after <= 80
    assert observed_rtt(flow, after_s=2.5) == pytest.approx(80, abs=0.01)
    assert observed_rtt(replace(flow, vantage="receiver")) is None


def test_indicators_of_the_observation_alone() -> None:
    seconds = np.arange(0, 20, 0.01)
    ack = np.cumsum(np.where((seconds % 2) < 1, 2000, 1000))
    facts = {"zero_windows": 40, "retransmissions": 1, "window_max": 65_536}
    acks = {"t": (seconds * 1e9).astype(np.int64), "ack": ack}
    flow = ObservedFlow(*ENDS, None, None, 20.0, 0.0, "receiver", 1.0, facts, acks=acks)
    found = zone.unknown(flow, path(jitter_ms=20.0), "nobody knows")
    assert (found.problem, found.published) == ("receiver", "collapsed")
    assert found.side is None
    assert found.throughput_cv == pytest.approx(0.34, abs=0.02)
    assert found.rtt_cv is None
    assert found.health is None
    both = replace(flow, facts={**facts, "retransmissions": 500})
    assert zone.problem(both) == "both"
    assert zone.problem(replace(flow, facts={})) is None


def test_a_prediction_interval_holds_single_runs() -> None:
    rng = np.random.default_rng(5)
    held = []
    for _ in range(200):
        values = np.exp(rng.normal(2, 0.3, 25))
        interval = judging.predicted(list(values[:12]), list(values[12:24]), "Mbit/s")
        held.append(interval.low <= values[24] <= interval.high)
    assert 0.9 <= np.mean(held) <= 1.0
    assert math.isnan(judging.predicted([], [], "ms").value)
