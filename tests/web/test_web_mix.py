"""The explorer's question `mix`: shares over time and over seeds are those of `tcpscape run --mix`."""

from __future__ import annotations

import numpy as np
import pytest
from asking import ask

from tcpscape import api
from tcpscape.errors import TcpscapeError
from tcpscape.findings import fairness
from tcpscape.metrics.flows import jain_index
from tcpscape.web.questions import mix as sharing
from tcpscape.web.state import State

STATE = State(rtt="40ms", rate="20mbit", duration="8s", mix="cubic*2,bbr@2s-6s")


def test_the_verdict_is_that_of_a_run_with_the_same_seeds() -> None:
    last = ask("mix", STATE, seeds=5, seed=3)[-1]
    ran = api.run(STATE.scenario("cubic"), seeds=5, samples="10ms")
    [cell] = ran.cells
    assert (last.name, last.values["n"], last.values["wanted"]) == ("verdict", 5, 5)
    assert last.values["jain"]["value"] == cell.mean("jain").value
    assert (last.values["jain"]["low"], last.values["jain"]["high"]) == (cell.mean("jain").low, cell.mean("jain").high)
    judged = fairness.judge([fairness.measure(trial) for trial in cell.trials])
    groups = last.values["groups"]
    assert [group["name"] for group in groups] == ["cubic", "bbr"]
    assert [group["equal"] for group in groups] == pytest.approx([2 / 3, 1 / 3])
    for group, whole, overlap in zip(groups, judged.whole, judged.overlap, strict=True):
        assert group["whole"]["value"] == whole.value
        assert group["overlap"]["value"] == pytest.approx(overlap.value, abs=0.002)  # by samples at other times
        assert group["whole"]["value"] == pytest.approx(cell.mean(f"share:{group['name']}").value)


def test_shares_over_time_add_up_to_what_the_flows_carried() -> None:
    [shares] = [block for block in ask("mix", STATE, seeds=1) if block.name == "shares"]
    every, columns = shares.values["every_s"], shares.columns
    assert every == 0.1
    assert len(columns["t"]) == 80
    [trial] = api.run(STATE.scenario("cubic"), seeds=1, samples="20ms").cells[0].trials
    assert [flow["cca"] for flow in shares.values["flows"]] == ["cubic", "cubic", "bbr"]
    assert trial.samples is not None
    for number, flow in enumerate(shares.values["flows"]):
        row = columns[f"flow.{number}"]
        assert np.isnan(row[columns["t"] <= flow["start_s"] - 1e-4]).all()
        acked = trial.samples.filter(trial.samples["flow"] == number)["delivered"].max() * 1448
        assert np.nansum(row) * every / 8 == pytest.approx(acked, rel=1e-5)
    assert max(np.nansum([columns[f"flow.{i}"] for i in range(3)], axis=0)) <= 20e6
    alone, together = columns["jain"][columns["t"] < 1.9], columns["jain"][(columns["t"] > 2.2) & (columns["t"] < 6.0)]
    rates = np.array([columns[f"flow.{i}"] for i in range(3)])
    place = int(np.searchsorted(columns["t"], 4.0))
    assert columns["jain"][place] == pytest.approx(jain_index([float(x) for x in rates[:, place]]), rel=1e-5)
    first = int(np.searchsorted(columns["t"], 1.5))
    assert columns["jain"][first] == pytest.approx(jain_index([float(x) for x in rates[:2, first]]), rel=1e-5)
    assert np.isfinite(alone[10:]).all()
    assert np.isfinite(together).all()


def test_many_flows_are_summed() -> None:
    state = STATE.model_copy(update={"mix": "cubic*20,bbr*20", "duration": "2s"})
    blocks = ask("mix", state, seeds=1)
    shares = blocks[0]
    assert (shares.values["others"], len(shares.values["flows"])) == (40 - sharing.MOST_COLUMNS, sharing.MOST_COLUMNS)
    carried = sum(np.nansum(column) for name, column in shares.columns.items() if name == "others" or name.startswith("flow."))
    [trial] = api.run(state.scenario("cubic"), seeds=1, samples=f"{shares.values['every_s'] / 5 * 1e3:g}ms").cells[0].trials
    assert trial.samples is not None
    acked = trial.samples.group_by("flow").max()["delivered"].sum() * 1448
    assert carried * shares.values["every_s"] / 8 == pytest.approx(acked, rel=1e-5)


def test_a_mixture_that_makes_no_sense_is_one_line() -> None:
    for mix in ("", "cubic*0", "cubic@5s-2s", "nobody", "cubic;bbr"):
        with pytest.raises(TcpscapeError) as caught:
            ask("mix", STATE.model_copy(update={"mix": mix}))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("duration", "rtt", "expected"), [
    (10_000_000_000, 50_000_000, 100_000_000), (8_000_000_000, 40_000_000, 100_000_000),
    (60_000_000_000, 600_000_000, 2_000_000_000), (100, 400, 50),
])  # fmt: skip
def test_intervals_are_round_and_some_round_trips_long(duration: int, rtt: int, expected: int) -> None:
    assert sharing.bin_ns(duration, rtt) == expected
