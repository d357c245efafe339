"""Starvation, convergence, self-inflicted loss, backoff and circuit breakers: by hand, and on the model."""

import math

import polars as pl
import pytest

from tcpscape import metrics
from tcpscape.campaign.execute import Runner
from tcpscape.engines import make
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture, Cwnd, FlowResult, Rtt, Trial


def trial(*series, seconds=20.0, starts=(), **columns):
    """Flows whose goodput in each second, Mbit/s, is given; further columns are of the first flow."""
    rows = []
    for number, rates in enumerate(series):
        total = 0.0
        for second, rate in enumerate(rates, 1):
            total += rate * 1e6 / 8
            own = {name: float(values[second - 1]) for name, values in columns.items()} if number == 0 else dict.fromkeys(columns, 0.0)
            rows.append({"t_ns": second * 1_000_000_000, "flow": number, "bytes_acked": total, **own})
    starts = starts or [0.0] * len(series)
    flows = [FlowResult("cubic", 1.0, seconds, 0, None, Rtt(), Cwnd(), {}, start_s=start, stop_s=seconds, group=i) for i, start in enumerate(starts)]
    return Trial("t", "cubic", "a", 0, "model", "v", seconds, tuple(flows), samples=pl.DataFrame(rows))


def test_starvation_of_some_flows_is_beside_all_others():
    result = trial([9.9] * 10 + [5] * 10, [0.1] * 10 + [5] * 10)
    assert metrics.find("starvation:group1").of(result) == pytest.approx(0.5)
    assert metrics.find("starvation:group0").of(result) == 0
    assert metrics.find("starved").of(result) == pytest.approx(0.25)


def test_convergence_is_until_shares_stay_fair():
    assert metrics.find("convergence").of(trial([9] * 8 + [5] * 12, [1] * 8 + [5] * 12)) == pytest.approx(8)
    assert metrics.find("convergence").of(trial([5] * 20, [5] * 20)) == 0
    assert metrics.find("convergence").of(trial([9] * 20, [1] * 20)) == pytest.approx(20)
    assert math.isnan(metrics.find("convergence").of(trial([5] * 20)))


def test_backoff_compares_with_a_timer_that_doubles():
    silent = {"delivered": [10] * 2 + [10] * 16, "rto_us": [1e6] * 18}
    patient = trial([0.0] * 18, seconds=18.0, retransmits=[0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4], **silent)
    hasty = trial([0.0] * 18, seconds=18.0, retransmits=[5.0 * second for second in range(18)], **silent)
    assert metrics.find("backoff").of(patient) == pytest.approx(4 / (2 + math.log2(18)))
    assert metrics.find("backoff").of(hasty) == pytest.approx(85 / (2 + math.log2(18)))


def test_a_breaker_trips_after_three_bad_intervals_in_a_row():
    def of(lost):
        sums = [sum(lost[: i + 1]) for i in range(len(lost))]
        return metrics.find("breaker").of(trial([1] * 18, seconds=18.0, delivered=[100.0 * i for i in range(1, 19)], retransmits=sums))

    assert of([20] * 18) == 1
    assert of([20] * 6 + [0] * 6 + [20] * 6) == 0
    assert of([5] * 18) == 0


def run(cca, **fields):
    path = {"forward": [{"at": "router", "delay": "20ms"}], "bottleneck": {"rate": "10mbit", "buffer": "0.5bdp"}, "reverse": "netem delay 20ms"}
    said = Scenario.of({**path, "duration": "20s", "flows": [{"cca": cca, "count": 4}], **fields})
    capture = Capture.union([metrics.find(name).needs for name in ("self_loss", "backoff")])
    return Runner(make("model"), 1, capture).run(said, [0])[0]


def test_self_inflicted_loss_is_that_of_full_queues_alone(need_model):
    assert metrics.find("self_loss").of(run("bbr")) > 3 * metrics.find("self_loss").of(run("reno")) > 0
    lossy = run("reno", forward=[{"at": "router", "delay": "20ms", "loss": "2%"}], bottleneck={"rate": "1gbit", "buffer": "4bdp"})
    assert metrics.find("self_loss").of(lossy) == 0
    assert metrics.find("retransmit_rate").of(lossy) > 0.01


def test_linux_backs_off_in_a_black_hole(need_model):
    hole = run("cubic", flows=[{"cca": "cubic"}], duration="60s", changes=[{"where": "bottleneck", "at": "10s", "set": {"outage": True}}])
    assert 0.3 < metrics.find("backoff").of(hole) <= 1
