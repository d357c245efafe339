"""The engine contract: what every engine must do, whatever is behind it."""

import pytest

from conftest import ROOT, need
from tcpscape import engines
from tcpscape.campaign.execute import Runner
from tcpscape.errors import TcpscapeError
from tcpscape.scenario import options
from tcpscape.store.results import Store
from tcpscape.trial import Capture
from tcpscape.validate import DivergenceSummary, ValidationOptions, prepare, validation
from tcpscape.validate.compare import groups
from tcpscape.words.divergence import summary_table

PATH = {"forward": "netem delay 10ms loss 1%", "bottleneck": "tbf rate 10mbit burst 6056 limit 62500", "reverse": "netem delay 10ms"}


@pytest.fixture
def scenario():
    return options.scenario(PATH, flows=2, duration="2s")


@pytest.fixture
def clean():
    """A path that leaves nothing to chance: a link of 10 Mbit/s is the limit, and its queue holds the receiver's whole window.

    Trials in real time differ in the RTT, which a busy machine makes longer; the rate of a full link does not depend on it.
    """
    path = {"forward": "netem delay 10ms limit 1000", "bottleneck": "tbf rate 10mbit burst 6056 limit 200000", "reverse": "netem delay 10ms"}
    return options.scenario(path, flow={"rcvbuf": "128KiB"}, duration="3s")


def test_trials_come_in_the_order_of_the_seeds(engine, scenario):
    trials = engine.run(scenario, [3, 1, 2], threads=2)
    assert [t.seed for t in trials] == [3, 1, 2]
    assert all((t.engine, t.version, t.cca) == (engine.name, engine.version, "cubic") for t in trials)


def test_same_seed_same_trial(engine, scenario, clean):
    if not engine.repeatable:
        one, two = engine.run(clean, [5, 5])
        assert one.goodput_mbps == pytest.approx(two.goodput_mbps, rel=0.01)
        return
    first, again, other = engine.run(scenario, [5])[0], engine.run(scenario, [4, 5], threads=2)[1], engine.run(scenario, [6])[0]
    assert (first, first.hash) == (again, again.hash)
    assert first.hash != other.hash


def test_numbers_add_up(engine, scenario):
    trial = engine.run(scenario, [0])[0]
    assert (trial.duration, len(trial.flows)) == (pytest.approx(2.0), 2)
    for flow in trial.flows:
        assert 0 < flow.goodput_mbps <= 10.0
        assert flow.goodput_mbps == pytest.approx(flow.bytes_received * 8 / flow.seconds / 1e6, rel=1e-3)
        assert 0 < flow.seconds <= 2.0
        assert flow.rtt_ms.min <= flow.rtt_ms.p50 <= flow.rtt_ms.p95 <= flow.rtt_ms.p99 <= flow.rtt_ms.max
        assert 0 < sum(flow.limited_by.values()) <= 1.001
    assert trial.goodput_mbps <= 10.0


def test_samples_only_when_asked(engine, scenario):
    assert engine.run(scenario, [0])[0].samples is None
    samples = engine.run(scenario, [0], capture=Capture(samples_ns=100_000_000))[0].samples
    assert samples.height >= 10
    assert "cwnd" in samples.columns


def test_capture_changes_nothing(engine, scenario, clean):
    watching = Capture(samples_ns=50_000_000)
    if not (engine.repeatable and engine.unobtrusive):
        rates = [engine.run(clean, [0], capture=capture)[0].goodput_mbps for capture in (Capture(), watching)]
        assert rates[0] == pytest.approx(rates[1], rel=0.01)
        return
    plain = engine.run(scenario, [0])[0]
    watched = engine.run(scenario, [0], capture=watching)[0]
    assert plain.flows == watched.flows


def test_a_path_that_carries_nothing_ends_and_says_so(engine):
    dead = options.scenario({"forward": "netem delay 10ms loss 100%"}, duration="5s")
    trial = engine.run(dead, [0])[0]
    assert trial.goodput_mbps == 0
    assert trial.caveats


@pytest.mark.parametrize("change", [{"cca": "nosuch"}, {"path": {"forward": "netem dalay 1ms"}}, {"path": {"forward": "netem delay 1ms loss 120%"}}])
def test_what_it_cannot_run_is_refused_before_anything_runs(engine, change):
    with pytest.raises(TcpscapeError):
        engine.check(options.scenario(change.get("path", PATH), cca=change.get("cca", "cubic")))


def test_engines_that_there_are_not_say_so():
    for name in ("virtual:no-such-kernel", "live:nosuch", "live:emulator+nosuch", "nosuch"):
        with pytest.raises(TcpscapeError, match=r"^engine: "):
            engines.make(name)


def test_a_store_is_resumed(engine, scenario, tmp_path):
    ran = []

    class Counting(type(engine)):
        def run(self, scenario, seeds, **options):
            ran.extend(seeds)
            return super().run(scenario, seeds, **options)

    store = Store(tmp_path)
    first = Runner(Counting(), store=store).run(scenario, range(3))
    again = Runner(Counting(), store=store).run(scenario, range(5))
    assert sorted(ran) == [0, 1, 2, 3, 4]
    assert again[:3] == first
    assert store.frame().height == 10  # 5 trials x 2 flows
    store.close()
    assert not list(tmp_path.rglob("*.part"))


def test_the_order_of_work_changes_nothing(engine, scenario):
    conditions = [(scenario, range(7)), (scenario.with_cca("bbr"), range(3))]
    alone, together = Runner(engine, jobs=1).run_all(conditions), Runner(engine, jobs=4).run_all(conditions)
    assert [[(t.cca, t.seed) for t in group] for group in alone] == [[(t.cca, t.seed) for t in group] for group in together]
    assert alone == together or not engine.repeatable


# The model against the real kernel in virtual time, on a fixed set of 40 conditions. On the ten of them with random loss and no bottleneck some 10 to 50
# losses decide a trial: 12 runs against 3, and up to 12 where these differ, were 0.21 apart at the 90th percentile by chance, where 40 against 20 are 0.09
# apart and 60 against 30 of these ten 0.09 (two equal kernels 0.11).


SET = ROOT / "tests" / "data" / "agreement.csv"
MEDIAN, P90, P90_UNEXPLAINED = 0.02, 0.15, 0.05


@pytest.mark.slow
def test_the_model_agrees_with_the_kernel_in_virtual_time(tmp_path, need_model):
    need("virtual")
    ready = prepare(ValidationOptions(tmp_path, engine=("model", "virtual"), conditions=str(SET), seeds="40/20"))
    outcome = validation.run(ready.plan)
    said = summary_table(outcome.divergences).markdown()
    print(said)
    assert not outcome.left_out
    assert len(outcome.divergences) == 40
    assert len(groups(outcome.divergences, lambda c: c.family)) == 6
    s = DivergenceSummary.of(outcome.divergences)
    assert s.median <= MEDIAN, said
    assert s.p90 <= max(P90, s.chance_p90_high), said
    assert s.chance_p90 <= P90, said
    assert s.p90_low <= P90_UNEXPLAINED, said
