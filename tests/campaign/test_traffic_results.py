"""Results of probes, requests and transfers: what is kept of them, how they are printed, and the metrics with worked numbers."""

import dataclasses
import math
import random
from types import SimpleNamespace

import polars as pl
import pytest

from tcpscape import engines, metrics
from tcpscape.campaign import groups
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.errors import ScenarioError, StoreError
from tcpscape.metrics import traffic
from tcpscape.scenario import options
from tcpscape.scenario.scenario import Scenario
from tcpscape.store.results import Store, flow_rows
from tcpscape.trial import LOST, Capture, Cwnd, FlowResult, ProbeResult, ResponseResult, Rtt, SizeClass, TransfersResult, Trial
from tcpscape.words import campaign as answer
from tcpscape.words import sentences
from tcpscape.words import traffic as traffic_words

PATH = {"forward": "netem delay 10ms", "bottleneck": "tbf rate 10mbit burst 6056 limit 62500", "reverse": "netem delay 10ms"}
PING = ProbeResult("ping", "icmp_echo", "down", 100, 98, Rtt(20.0, 40.0, 80.0, 90.0, 100.0, 45.0), 1.5, 2, 20.0)
CALL = ProbeResult("voice", "udp", "up", 500, 495, Rtt(10.0, 30.0, 60.0, 100.0, 120.0, 32.0), 4.0, 0, 20.0)
WEB = TransfersResult(
    "cubic",
    (SizeClass(10_000, 60, 60, Rtt(41.0, 50.0, 90.0, 100.0, 110.0, 55.0)), SizeClass(100_000, 30, 20, Rtt(61.0, 100.0, 150.0, 160.0, 170.0, 110.0))),
    2_400_000,
    7,
)


def flow(cca="cubic", mbps=4.0, **fields):
    rtt = Rtt(20.0, 50.0, 60.0, 65.0, 70.0, 52.0)
    known = {"seconds": 10.0, "retransmits": 0, "spurious_retransmits": 0, "rtt_ms": rtt, "cwnd": Cwnd(10.0, 20.0), "limited_by": {"cwnd": 1.0}}
    return FlowResult(cca=cca, goodput_mbps=mbps, stop_s=10.0, bytes_received=int(mbps * 1.25e6), **known | fields)


def trial(*flows, **fields):
    named = {
        "scenario": "s",
        "cca": "cubic",
        "address": "a" * 24,
        "seed": 1,
        "engine": "model",
        "version": "1",
        "duration": 10.0,
        "path_rtt_ms": 20.0,
    }
    return Trial(flows=flows or (flow(),), **named | fields)


FULL = trial(
    flow(responses=ResponseResult(9, Rtt(21.0, 30.0, 40.0, 50.0, 60.0, 31.0))),
    flow("bbr", 2.0, direction="up", group=1, path_rtt_ms=80.0),
    probes=(PING, CALL),
    transfers=(WEB,),
)


def test_all_of_a_trial_comes_back_from_the_store(tmp_path):
    samples = pl.DataFrame({"t_ns": [0, 10], "flow": [0, 1], "cwnd": [1, 2]})
    probed = pl.DataFrame(
        {"t_ns": [0, 5], "probe": [0, 1], "delay_ns": [20_000_000, LOST]}, schema={"t_ns": pl.UInt64, "probe": pl.UInt32, "delay_ns": pl.UInt64}
    )
    kept = dataclasses.replace(FULL, samples=samples, probe_samples=probed)
    with Store(tmp_path) as store:
        store.save(kept)
        assert store.load(FULL.address) == FULL
        again = store.load(FULL.address, ("samples",))
    assert again.probe_samples.equals(probed)
    assert again.probes[1].loss == pytest.approx(0.01)
    probed.with_columns(probe=pl.lit(7)).write_parquet(tmp_path / "probe_samples" / f"{FULL.address}.parquet")
    with Store(tmp_path) as store, pytest.raises(StoreError, match="column probe holds other numbers than those of the trial's 2 probes"):
        store.load(FULL.address, ("samples",))


def test_a_document_names_what_is_there_and_nothing_else():
    plain, full = trial().to_dict(), FULL.to_dict()
    assert not {"probes", "transfers"} & set(plain)
    assert not {"responses", "direction", "group", "path_rtt_ms"} & set(plain["flows"][0])
    assert full["probes"][0]["delay_ms"]["p95"] == 80.0
    assert full["transfers"][0]["classes"][1] == {
        "most": 100_000,
        "started": 30,
        "completed": 20,
        "completion_ms": {"min": 61.0, "p50": 100.0, "p95": 150.0, "p99": 160.0, "max": 170.0, "mean": 110.0},
    }
    assert [FlowResult.of(f) for f in full["flows"]] == list(FULL.flows)


def test_rows_of_flows_have_columns_of_what_is_there():
    assert not {"group", "direction", "path_rtt_ms", "responses_count"} & set(flow_rows([trial()]).columns)
    rows = flow_rows([FULL])
    assert rows["responses_time_ms_p95"].to_list() == [40.0, None]
    assert (rows["direction"].to_list(), rows["group"].to_list()) == (["down", "up"], [0, 1])
    assert rows["path_rtt_ms"].to_list() == [None, 80.0]


def test_trials_of_before_are_read_as_they_were(tmp_path):
    scenario = options.scenario(PATH, duration="1s")
    (old,) = engines.make("mock").run(scenario, [1], capture=Capture(samples_ns=10**8))
    with Store(tmp_path) as store:
        store.save(old)
        assert store.load(old.address, ("samples",)).probe_samples is None


def value(name, of=FULL):
    return metrics.find(name).of(of)


def test_latency_under_load_is_that_of_the_round_trips():
    """The ping's percentiles; the call's, which are one way, only by its name, or where nothing measures round trips."""
    assert [value(f"latency_{p}") for p in ("p50", "p95", "p99", "max")] == [40.0, 80.0, 90.0, 100.0]
    assert value("latency_p95:voice") == 60.0
    assert value("latency_p95", trial(probes=(CALL,))) == 60.0
    assert value("probe_loss") == pytest.approx(7 / 600)
    assert value("probe_loss:voice") == pytest.approx(0.01)
    late = dataclasses.replace(CALL, received=480, due=480, lost=0)  # the rest was under way at the end
    assert late.loss == value("probe_loss", trial(probes=(late,))) == 0
    assert traffic.rating(late) > traffic.rating(dataclasses.replace(late, due=None, lost=None))
    assert math.isnan(value("latency_p95", trial()))


def test_a_trimmed_mean_leaves_out_the_slowest_twentieth():
    """mean 45, p95 80, p99 90, max 100: (45 − 0.04 · 85 − 0.01 · 95) / 0.95 = 42.7895."""
    assert traffic.trimmed_mean(PING.delay_ms) == pytest.approx(42.7895, abs=1e-4)


@pytest.mark.parametrize("shape", [0.1, 0.5, 1.0])
def test_the_trimmed_mean_of_a_summary_is_near_that_of_the_values(shape):
    values = sorted(random.Random(7).lognormvariate(3, shape) for _ in range(5000))
    summary = Rtt(values[0], values[2500], values[4750], values[4950], values[-1], sum(values) / 5000)
    assert traffic.trimmed_mean(summary) == pytest.approx(sum(values[:4750]) / 4750, rel=0.03)


def test_responsiveness_is_round_trips_a_minute():
    """The ping's trimmed mean is 42.7895 ms, that of both flows (52 − 0.04 · 62.5 − 0.01 · 67.5) / 0.95 = 51.3947: 60000 / 47.0921 = 1274.1."""
    assert value("rpm") == pytest.approx(60_000 / ((42.7895 + 51.3947) / 2), rel=1e-5)
    assert math.isnan(value("rpm", trial(probes=(CALL,))))


def test_the_e_model_has_the_values_of_its_recommendation():
    """Without delay and loss 93.2 and 4.41 (G.107 table 2 and annex B); 1 % of random loss costs 95 / 26.1 = 3.64 (§7.5 with Bpl 25.1)."""
    assert traffic.e_model_rating(0, 0) == pytest.approx(93.2, abs=0.05)
    assert traffic.opinion_score(traffic.e_model_rating(0, 0)) == pytest.approx(4.41, abs=0.005)
    assert traffic.loss_impairment(0.01) == pytest.approx(95 / 26.1)
    assert [round(traffic.opinion_score(r), 1) for r in (0, 50, 60, 70, 80, 90, 100)] == [1.0, 2.6, 3.1, 3.6, 4.0, 4.3, 4.5]
    assert traffic.opinion_score(3) == 1.0  # the polynomial has 0.99 there
    rates = [traffic.e_model_rating(delay, 0) for delay in range(0, 1000, 10)]
    assert rates == sorted(rates, reverse=True)
    assert (rates[15] > 89, rates[40] < 65) == (True, True)  # 150 ms hurt little (G.114), 400 ms much


def test_the_absolute_delay_of_the_e_model():
    """At 200 ms X is 1: 25 · (2^(1/6) − 3 · (1 + 3^−6)^(1/6) + 2) = 3.044."""
    assert traffic.delay_impairment(200) == pytest.approx(3.044 + traffic._talker_echo(200) + traffic._listener_echo(400), abs=1e-3)


def test_a_call_has_the_best_jitter_buffer():
    """p50 30 ms loses half of the packets, p95 60 ms 5.95 %, p99 100 ms 1.99 %, 120 ms the 1 % that never came: waiting for all is the best."""
    waits = {30.0: 1 - 0.99 * 0.5, 60.0: 1 - 0.99 * 0.95, 100.0: 1 - 0.99 * 0.99, 120.0: 0.01}
    assert value("voice_r") == pytest.approx(max(traffic.e_model_rating(20 + delay, lost) for delay, lost in waits.items()))
    assert value("voice_r") == pytest.approx(traffic.e_model_rating(140, 0.01))
    assert value("voice_mos") == pytest.approx(traffic.opinion_score(value("voice_r")))
    assert value("voice_mos", trial(probes=(dataclasses.replace(CALL, received=0, delay_ms=Rtt()),))) == 1.0
    assert math.isnan(value("voice_mos", trial(probes=(PING,))))


def test_directions_and_groups_restrict_metrics():
    assert (value("goodput_down"), value("goodput_up"), value("goodput:up"), value("goodput:group0")) == (4.0, 2.0, 2.0, 4.0)
    assert value("share:up") == pytest.approx(1 / 3)
    assert math.isnan(value("goodput_up", trial()))


def test_the_added_rtt_is_that_of_each_flows_own_path():
    """60 − 20 of the first flow, 60 − 80 of the second one: −20 (its path_rtt_ms is made up); mean 10."""
    assert (value("added_rtt:group0"), value("added_rtt:group1"), value("added_rtt")) == (40.0, -20.0, 10.0)
    assert value("added_rtt", trial()) == 40.0


def test_answers_and_transfers():
    """60 transfers of up to 10 kB took 55 ms on average, 20 of 30 larger ones 110: (60 · 55 + 20 · 110) / 80 = 68.75; 10 of 90 did not end."""
    assert (value("response_p50"), value("response_p95"), value("response_max")) == (30.0, 40.0, 60.0)
    assert (value("fct_p50"), value("fct_p95"), value("fct_p95:100kB"), value("fct_mean")) == (50.0, 90.0, 150.0, 68.75)
    assert value("unfinished") == pytest.approx(1 / 9)
    assert value("transfer_goodput") == pytest.approx(2.4e6 * 8 / 1e6 / 10)
    assert math.isnan(value("fct_p95:more"))
    with pytest.raises(ScenarioError, match="metric: no size class '5kB'; choose 10kB, 100kB, 1MB, more"):
        metrics.find("fct_p95:5kB")


def cell(scenario, *trials):
    return Cell({}, "cubic", "model", (Scenario.of({"forward": "netem delay 10ms", "reverse": "netem delay 10ms", **scenario}),), (trials,))


def outcome(scenario, *trials):
    of = cell(scenario, *trials)
    return Outcome(Campaign.of({"name": "x", "scenario": of.scenarios[0].to_dict(), "seeds": 1}), (of,), {"model": "1"})


BOTH = {"flows": [{"cca": "cubic", "count": 2}, {"cca": "bbr", "direction": "up"}], "links": [{"rate": "10mbit"}]}


def test_groups_are_told_apart_by_what_differs():
    flows = (flow(), flow(), flow("bbr", 2.0, direction="up"))
    assert [(g.title, g.numbers) for g in groups.of(cell(BOTH, trial(*flows)))] == [("cubic×2 down", (0, 1)), ("bbr up", (2,))]
    rtts = {"flows": [{"cca": "cubic"}, {"cca": "cubic", "rtt": "80ms"}, {"cca": "cubic", "start": "1s"}], "links": [{"rate": "10mbit"}]}
    assert [(g.title, g.numbers) for g in groups.of(cell(rtts, trial(flow(), flow(), flow())))] == [("cubic×2 20 ms", (0, 2)), ("cubic 80 ms", (1,))]
    places = {"flows": [{"cca": "cubic"}, {"cca": "cubic", "enter": "r1"}], "links": [{"rate": "10mbit"}, {"rate": "10mbit"}]}
    assert [g.title for g in groups.of(cell(places, trial(flow(), flow())))] == ["cubic r0–r3", "cubic r1–r3"]
    plain = {"flows": [{"cca": "cubic"}, {"cca": "cubic", "start": "1s"}, {"cca": "bbr"}]}
    assert [g.title for g in groups.of(cell(plain, trial(flow(), flow(), flow("bbr"))))] == ["cubic×2", "bbr"]
    receivers = {"flows": [{"cca": "cubic"}, {"cca": "cubic", "misbehaves": "dividing", "count": 2}, {"cca": "cubic", "misbehaves": "concealing"}]}
    of = groups.of(cell(receivers, trial(flow(), flow(), flow(), flow())))
    assert [(g.title, g.numbers) for g in of] == [("cubic", (0,)), ("cubic×2 dividing", (1, 2)), ("cubic concealing", (3,))]


def test_a_run_in_both_directions_says_what_each_carries():
    """4 + 4 Mbit/s down and 2 up; 95th percentiles of 60 ms on 20 ms add 40."""
    flows = (flow(), flow(), flow("bbr", 2.0, direction="up"))
    said = answer.run_screen(outcome(BOTH, trial(*flows, probes=(PING, CALL), transfers=(WEB,)))).text(100)
    lines = said.splitlines()
    assert "→ The flows carry down cubic×2 8.00 Mbit/s; up bbr 2.00 Mbit/s. The flows add 40 ms to the RTT" in said.replace("\n", " ")
    assert [line.split()[:2] for line in lines if line.startswith(("cubic down", "bbr up"))] == [["cubic", "down"], ["bbr", "up"]]
    assert "each over its own time; the answer and 'all' are over the whole trial." in " ".join(said.split())
    assert "Latency under load: 80.0 ms (95th percentile of round trips)" in said
    assert [line.split()[0] for line in lines[lines.index("Probes") + 2 :][:2]] == ["ping", "voice"]
    assert "up to 10 kB" in said
    assert "11 % of the transfers were under way at the end" in said.replace("\n", " ")


def test_shares_of_groups_with_their_own_rtt_are_said():
    rtts = {"flows": [{"cca": "cubic"}, {"cca": "cubic", "rtt": "80ms"}], "links": [{"rate": "10mbit"}]}
    said = sentences.run_answer(outcome(rtts, trial(flow(mbps=6.0, path_rtt_ms=20.0), flow(mbps=2.0, path_rtt_ms=80.0))))
    assert said.startswith("cubic 20 ms gets 1.5 × its equal share: cubic 20 ms 75 % of 8.00 Mbit/s, cubic 80 ms 25 %; Jain's index 0.80.")


def test_a_trial_without_flows_has_an_answer():
    alone = outcome({"flows": [], "probes": ["ping"]}, dataclasses.replace(trial(probes=(PING,)), flows=()))
    said = answer.run_screen(alone)
    assert said.answer.startswith("Latency under load: 80.0 ms")
    assert [table.title for table in said.tables] == ["Probes"]


def test_two_controls_both_ways_are_compared_in_each_direction():
    """5 over 4 Mbit/s down, 1 over 2 up; one trial has no interval."""
    ways = {"flows": [{"cca": "cubic"}, {"cca": "cubic", "direction": "up"}], "links": [{"rate": "10mbit"}]}
    first = outcome(ways, trial(flow(mbps=4.0), flow(mbps=2.0, direction="up")))
    second = dataclasses.replace(cell(ways, trial(flow("bbr", 5.0), flow("bbr", 1.5, direction="up"))), cca="bbr")
    said = sentences.run_answer(dataclasses.replace(first, cells=(*first.cells, second)))
    assert said.startswith("bbr carries 1.25 × cubic down and 0.750 × cubic up, and adds 40 ms to the RTT (95th percentile; cubic 40 ms).")


@pytest.mark.parametrize(
    ("probes", "loads", "call"),
    [
        (["down"], ["down", "up"], "a call's way down"),
        (["down", "up"], ["down", "up"], "a call"),
        (["down"], ["down"], "a call"),
        (["up"], ["down"], "a call's way up"),
    ],
)
def test_a_sentence_says_which_way_of_a_call_was_measured(probes, loads, call):
    measured = [SimpleNamespace(direction=way, is_echo=False) for way in probes]
    assert traffic_words._call(SimpleNamespace(probes=measured, flows=[SimpleNamespace(direction=way) for way in loads])) == call
