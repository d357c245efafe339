"""What another kernel changes: the model under two profiles of hosts stands for two kernels."""

import random

import pytest

from tcpscape import engines, kernels
from tcpscape.engines.base import Engine
from tcpscape.errors import TcpscapeError
from tcpscape.scenario import limits
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture
from tcpscape.validate import kernel_diff
from tcpscape.validate.conditions import NamedScenario
from tcpscape.validate.kernel_diff import KernelPair, StageRuns, difference, holm
from tcpscape.words import kernel_diff as words


class Changed(Engine):
    """The model, as another kernel: `change` makes the scenario that really runs."""

    name, about = "model", "the model as another kernel"

    def __init__(self, change=lambda scenario: scenario, version="other"):
        self.inner, self.change, self._version = engines.make("model"), change, version

    @property
    def version(self):
        return self._version

    def check(self, scenario):
        self.inner.check(self.change(scenario))

    def run(self, scenario, seeds, *, threads=1, capture=Capture()):
        return self.inner.run(self.change(scenario), seeds, threads=threads, capture=capture)


def path(id, loss, rate="10mbit"):
    return NamedScenario(
        id,
        Scenario.of(
            {
                "forward": f"netem delay 10ms{f' loss {loss}' if loss else ''}",
                "bottleneck": {"rate": rate, "buffer": "1bdp"},
                "reverse": "netem delay 10ms",
                "duration": "2s",
            }
        ),
    )


def with_more_loss(scenario):
    lossy = path("lossy", "3%").scenario
    return lossy if "loss" in scenario.to_dict()["forward"][0] else scenario


def pair(*versions, change=lambda scenario: scenario):
    first, second = versions
    return KernelPair((Changed(version=first), Changed(change, second)), versions, ("6.1.9", "6.12.3"), 1)


PATHS = [path("clean", ""), path("lossy", "1%")]
RUNS = StageRuns(5, 8)


def test_a_difference_is_told_where_it_is_and_nowhere_else():
    result = difference(pair("old", "new", change=with_more_loss), PATHS, runs=RUNS)
    assert {d.condition.id for d in result.told} == {"lossy"}
    first = result.told[0]
    assert first.metric.name == "goodput"
    assert first.change < -0.1
    assert first.is_worse
    assert first.comparison.ratio.high < 1
    assert first.means[0] > first.means[1]
    assert result.goodput[0].ratio.value == 1


def test_the_answer_says_where_how_much_and_which_changes_of_linux_lie_between():
    result = difference(pair("old", "new", change=with_more_loss), PATHS, runs=RUNS)
    screen = words.screen(result)
    assert screen.answer.startswith("new differs from old on 1 of 2 paths: on lossy, with new cubic carries ")
    assert " % [" in screen.answer
    assert "less (" in screen.answer
    assert "HyStart" not in screen.text(), "6.14 is not between 6.1 and 6.12"
    assert max(map(len, screen.text(80).splitlines())) <= 80
    document = words.document(result)
    assert document["text"] == screen.answer
    assert {d["path"] for d in document["differences"] if d["told"]} == {"lossy"}


def test_a_setting_of_the_kernel_is_named_as_a_scenario_has_it():
    large = path("large", "").scenario.to_dict() | {"flows": [{"cca": "cubic", "rcvbuf": "1MiB"}], "kernel": {"host_time": "0s"}}
    result = difference(pair("old", "new"), [NamedScenario("large", Scenario.of(large))], runs=RUNS)
    (caveat,) = (c for c in words.screen(result).caveats if "rmem_max" in c)
    assert caveat.endswith("to have it: kernel: {host_time: 0s, rmem_max: 4MiB} in a scenario of --paths")
    raised = Scenario.of(large | {"kernel": {"host_time": "0s", "rmem_max": "4MiB"}})
    assert not any("capped" in c for c in limits.caveats(raised))


@pytest.mark.parametrize(
    ("releases", "named", "unnamed"),
    [(("6.12.3", "6.18"), "6.14", "7.1"), (("6.18.2", "7.1.5"), "7.1", "6.18:"), (("7.1.5", "6.18.2"), "6.19", "6.14")],
)
def test_the_changes_between_two_releases_are_those_after_the_older_one(releases, named, unnamed):
    text = [f"{a}.{b}:" for (a, b), *_ in words.CHANGES if words._between((a, b), releases)]
    assert f"{named.rstrip(':')}:" in text
    assert f"{unnamed.rstrip(':')}:" not in text


def test_a_kernel_and_itself_run_other_seeds_and_raise_no_alarm():
    same = pair("old", "old")
    assert same.are_one
    first, second = same.run(PATHS[1:], range(2), None)[0]
    assert {t.seed for t in first}.isdisjoint(t.seed for t in second)
    assert difference(same, PATHS, runs=RUNS).told == ()


@pytest.mark.slow
def test_equal_kernels_raise_an_alarm_in_at_most_one_of_twenty_comparisons():
    """Of 200 comparisons of ten lists of equal random numbers; 95 % of the time at most 16 would be alarms at 5 %."""
    rng, alarms = random.Random(5), 0
    for _ in range(200):
        chances = holm([kernel_diff.chance_of(*([rng.lognormvariate(0, 1) for _ in range(6)] for _ in range(2))) for _ in range(10)])
        alarms += min(chances) <= kernel_diff.ALARM
    assert alarms <= 16


@pytest.mark.parametrize(("chances", "corrected"), [([], []), ([0.02], [0.02]), ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]), ([0.9, 0.8], [1.0, 1.0])])
def test_holms_correction(chances, corrected):
    """The published step-down rule by hand: the smallest times their number, the next times one fewer, never below the one before."""
    assert holm(chances) == pytest.approx(corrected)


def test_a_path_that_a_kernel_cannot_run_is_left_out_with_its_reason():
    class Refusing(Changed):
        def check(self, scenario):
            if "loss" in scenario.to_dict()["forward"][0]:
                raise TcpscapeError("queue: no such queue; name another")

    kernels_of = KernelPair((Refusing(version="a"), Changed(version="b")), ("a", "b"), ("6.1", "6.12"), 1)
    assert [id for id, _ in difference(kernels_of, PATHS, runs=RUNS).left_out] == ["lossy"]
    with pytest.raises(TcpscapeError, match="none can run on both"):
        difference(kernels_of, PATHS[1:], runs=RUNS)


def test_the_default_paths_are_24_that_the_model_runs_too():
    suite = kernel_diff.suite()
    assert len(suite) == 24
    for condition in suite:
        engines.make("model").check(condition.scenario)
        assert condition.scenario.about


@pytest.fixture
def two_kernels(monkeypatch):
    """Names `old` and `new` that stand for kernels which are built; they run in the model."""
    known = {"old": Changed(version="old"), "new": Changed(with_more_loss, "new")}
    monkeypatch.setattr(kernels, "find", lambda name: type("Kernel", (), {"release": "6.1.9" if name == "old" else "6.12.3"})())
    monkeypatch.setattr(engines, "make", lambda spec: known[spec.partition(":")[2]])


def test_the_command_gates_an_update(cli, two_kernels, tmp_path):
    words = (
        "kernel",
        "diff",
        "old",
        "new",
        "--rtt",
        "20ms",
        "--rate",
        "10mbit",
        "--loss",
        "1%",
        "--loss-on",
        "forward",
        "--duration",
        "2s",
        "--jobs",
        "1",
    )
    told = cli(*words, "--check", "--out", str(tmp_path / "kept"))
    assert told.status == 1
    assert "cubic carries" in told.out
    assert (tmp_path / "kept" / "report.md").read_text().startswith("old and new")
    again = cli(*words, "--out", str(tmp_path / "kept"), "--json")
    assert '"told": true' in again.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--rtt", "20ms", "--paths", "x.yaml"), "paths: the path is said besides"),
        (("--rate", "10mbit"), "rtt: missing"),
        (("--duration", "5s"), "rtt: missing"),
        (("--paths", "none.yaml"), "none.yaml"),
        (("--rtt", "20ms", "--least", "x"), "least"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(cli, two_kernels, options, said):
    refused = cli("kernel", "diff", "old", "new", *options)
    assert (refused.status, len(refused.err.strip().splitlines())) == (2, 1)
    assert said in refused.err
