"""Measures on made-up runs: what cannot be known is not told as a number, and runs are pairs only under the same seeds."""

import math
from dataclasses import replace

import pytest

from tcpscape import stats
from tcpscape.campaign.adaptive import widened
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.errors import StudyError
from tcpscape.studies import run as runs
from tcpscape.studies import spikes
from tcpscape.studies import study as studies
from tcpscape.studies.measures import flows
from tcpscape.studies.result import Result
from tcpscape.trial import FlowResult, Rtt, Trial

CLAIM = {"text": "x", "work": "tcpscape"}


def trial(seed, mbps, queues=()):
    flow = FlowResult("cubic", mbps, 10.0, 7, None, Rtt(), None, {})
    return Trial("t", "cubic", "a", seed, "model", "1", 10.0, (flow,), queues=tuple(queues))


def cell(cca, values, first=0, **fields):
    return Cell({}, cca, "model", (None,), (tuple(trial(first + i, v) for i, v in enumerate(values)),), **fields)


def judged(cells, **claim):
    said = {"name": "s", "title": "t", "source": "s", "about": "", "conditions": {"rtt": "50ms"}, "claims": [{**CLAIM, **claim}]}
    study = studies.of(said, "s")
    return runs.judge(Result(study, {"s": Outcome(study.parts[0], tuple(cells))})).claims[0]


def test_who_carries_nothing_is_the_last():
    cells = [cell("cubic", [5, 6, 5, 6, 5]), cell("dead", [0.0] * 5), cell("bbr", [9, 9, 8, 9, 9])]
    assert judged(cells, measure="rank", cca="dead", low=3, high=3).verdict == "reproduced"
    assert judged(cells, measure="rank", cca="bbr", low=1, high=1).measured == "1.00 [1.00, 1.00] (asked: 1.00–1.00)"


def test_less_is_better_where_the_metric_says_so():
    def with_rtts(cca, values):
        trials = [
            replace(t, flows=tuple(replace(f, rtt_ms=Rtt(mean=v)) for f in t.flows)) for t, v in zip(cell(cca, values).trials, values, strict=True)
        ]
        return Cell({}, cca, "model", (None,), (tuple(trials),))

    cells = [with_rtts("cubic", [50.0, 60.0, 50.0, 60.0, 50.0]), with_rtts("bbr", [22.0, 21.0, 22.0, 21.0, 22.0])]
    assert judged(cells, measure="rank", metric="rtt", cca="bbr", low=1, high=1).measured == "1.00 [1.00, 1.00] (asked: 1.00–1.00)"
    assert judged(cells, measure="rank", metric="rtt", cca="cubic", low=2, high=2).verdict == "reproduced"
    assert judged(cells, measure="near_best", metric="rtt", cca="cubic", low=2, high=3).measured.startswith("2.50 [")


def test_a_rank_among_what_is_not_known_is_open():
    cells = [cell("cubic", [5, 6, 5, 6, 5]), cell("bbr", [9, math.nan, 8, 9, 9])]
    assert judged(cells, measure="rank", cca="cubic", low=1, high=1).verdict == "not decidable"


def test_a_single_run_among_what_is_not_known_is_open():
    values = [float(v) for v in range(20)]
    assert judged([cell("cubic", values)], measure="one_run", cca="cubic", value="30").verdict == "not reproduced"
    assert judged([cell("cubic", [*values, math.nan])], measure="one_run", cca="cubic", value="30").verdict == "not decidable"


def test_runs_are_pairs_under_the_same_seeds_only():
    values = [5.0, 9.0, 4.0, 8.0, 6.0]
    one, twice, later = cell("a", values), cell("b", [2 * v for v in values]), cell("b", [2 * v for v in values], first=5)
    assert twice.paired(one)
    assert twice.over(one).low == pytest.approx(2)
    assert not later.paired(one)
    assert later.over(one).low < 1.5
    assert cell("b", [1.0] * 7).over(one).n == 5


def test_a_ratio_of_cells_that_were_looked_at_often_is_wider():
    above, below = [5.0, 9.0, 4.0, 8.0, 6.0], [4.0, 4.0, 5.0, 3.0, 4.0]
    got = cell("a", above, until_precise=True).over(cell("b", below, until_precise=True))
    assert got == widened(stats.ratio(above, below))
    assert got.high > stats.ratio(above, below).high


def test_what_a_kernels_queues_lost_is_not_known():
    model = [trial(i, 5.0, [{"direction": "forward", "drops": {"loss": 3, "overflow": 1}}]) for i in range(5)]
    kernel = [trial(i, 5.0, [{"where": "forward", "kind": "netem", "dropped": 4}]) for i in range(5)]
    share = [flows.needless(None, None, Cell({}, "cubic", "e", (None,), (tuple(some),))) for some in (model, kernel)]
    assert share[0].value == pytest.approx(3 / 7)
    assert math.isnan(share[1].value)


def test_who_starves_is_not_known_without_samples():
    assert math.isnan(flows.starved(None, None, cell("cubic", [5.0] * 5)).value)


def test_a_table_without_numbers_is_no_claim():
    with pytest.raises(StudyError, match="has no valid published number of goodput; correct the study"):
        judged([cell("cubic", [5.0] * 5)], measure="table", cca="cubic")


def test_a_link_that_is_not_used_has_no_bound_to_be_measured_by():
    assert math.isnan(spikes._over(lambda *_: 3.0, lambda *_: 0.0)(None, None))
    assert spikes._over(lambda *_: 3.0, lambda *_: 2.0)(None, None) == 1.5
