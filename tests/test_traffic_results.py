"""Results of probes, requests and transfers: what is kept of them, how they are printed, and the metrics with worked numbers."""

from __future__ import annotations

import dataclasses

import polars as pl
import pytest

from tcpscape import engines
from tcpscape.engines.base import Capture
from tcpscape.errors import StoreError
from tcpscape.scenario import options
from tcpscape.store.results import Store, flow_rows
from tcpscape.trial import LOST, Cwnd, FlowResult, ProbeResult, ResponseResult, Rtt, SizeClass, TransfersResult, Trial

PATH = {"forward": "netem delay 10ms", "bottleneck": "tbf rate 10mbit burst 6056 limit 62500", "reverse": "netem delay 10ms"}
PING = ProbeResult("ping", "icmp_echo", "down", 100, 98, Rtt(20.0, 40.0, 80.0, 90.0, 100.0, 45.0), 1.5, 2, 20.0)
CALL = ProbeResult("voice", "udp", "up", 500, 495, Rtt(10.0, 30.0, 60.0, 100.0, 120.0, 32.0), 4.0, 0, 20.0)
WEB = TransfersResult(
    "cubic",
    (SizeClass(10_000, 60, 60, Rtt(41.0, 50.0, 90.0, 100.0, 110.0, 55.0)), SizeClass(100_000, 30, 20, Rtt(61.0, 100.0, 150.0, 160.0, 170.0, 110.0))),
    2_400_000, 7,
)  # fmt: skip


def flow(cca="cubic", mbps=4.0, **fields):
    rtt = Rtt(20.0, 50.0, 60.0, 65.0, 70.0, 52.0)
    known = {"seconds": 10.0, "retransmits": 0, "spurious_retransmits": 0, "rtt_ms": rtt, "cwnd": Cwnd(10.0, 20.0), "limited_by": {"cwnd": 1.0}}
    return FlowResult(cca=cca, goodput_mbps=mbps, stop_s=10.0, bytes_received=int(mbps * 1.25e6), **known | fields)


def trial(*flows, **fields):
    named = {"scenario": "s", "cca": "cubic", "address": "a" * 24, "seed": 1, "engine": "model", "version": "1", "duration": 10.0, "path_rtt_ms": 20.0}
    return Trial(flows=flows or (flow(),), **named | fields)


FULL = trial(
    flow(responses=ResponseResult(9, Rtt(21.0, 30.0, 40.0, 50.0, 60.0, 31.0))), flow("bbr", 2.0, direction="up", group=1, path_rtt_ms=80.0),
    probes=(PING, CALL), transfers=(WEB,),
)  # fmt: skip


def test_all_of_a_trial_comes_back_from_the_store(tmp_path):
    samples = pl.DataFrame({"t_ns": [0, 10], "flow": [0, 1], "cwnd": [1, 2]})
    probed = pl.DataFrame({"t_ns": [0, 5], "probe": [0, 1], "delay_ns": [20_000_000, LOST]}, schema={"t_ns": pl.UInt64, "probe": pl.UInt32, "delay_ns": pl.UInt64})
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
        "most": 100_000, "started": 30, "completed": 20, "completion_ms": {"min": 61.0, "p50": 100.0, "p95": 150.0, "p99": 160.0, "max": 170.0, "mean": 110.0},
    }  # fmt: skip
    assert [FlowResult.of(f) for f in full["flows"]] == list(FULL.flows)


def test_rows_of_flows_have_columns_of_what_is_there():
    assert not {"group", "direction", "path_rtt_ms", "responses_count"} & set(flow_rows([trial()]).columns)
    rows = flow_rows([FULL])
    assert rows["responses_time_ms_p95"].to_list() == [40.0, None]
    assert rows["direction"].to_list() == ["down", "up"]
    assert rows["group"].to_list() == [0, 1]
    assert rows["path_rtt_ms"].to_list() == [None, 80.0]


def test_trials_of_before_are_read_as_they_were(tmp_path):
    scenario = options.scenario(PATH, duration="1s")
    (old,) = engines.make("mock").run(scenario, [1], capture=Capture(samples_ns=10**8))
    with Store(tmp_path) as store:
        store.save(old)
        assert store.load(old.address, ("samples",)).probe_samples is None
