"""The test cases of documents about congestion controls: which control passes what, and why not."""

import re

import pytest

from tcpscape.findings import conformance
from tcpscape.findings.conformance import Cell

BBR = conformance.suite("bbr")
ONE = Cell(20_000_000, 40_000_000)


def result(control: str, name: str, cell: Cell = ONE):
    (only,) = conformance.run(control, BBR, {name: [cell]})
    return only


def test_the_22_cases_of_the_draft_are_there_in_its_order():
    assert [case.ref for case in BBR.cases.values()] == [f"A.{n}" for n in range(1, 23)]


def test_every_case_has_cells_in_its_range_from_less_than_a_millisecond_and_64_kbit():
    cells = {name: conformance.cells(BBR, case) for name, case in BBR.cases.items()}
    assert all(cells.values())
    every = {cell for group in cells.values() for cell in group}
    assert min(c.rtt for c in every) < 1e6
    assert max(c.rtt for c in every) == 1e9
    assert min(c.rate for c in every) == 64_000
    assert max(c.rate for c in every) == 10**10


@pytest.mark.parametrize("name", ["startup-plateau", "drain-by-time", "spurious-recovery", "up-loss-after-longterm", "policer"])
def test_bbr3_passes(name):
    assert result("bbr3", name).verdict == "passed"


@pytest.mark.parametrize(
    ("name", "cell", "verdict", "problem"),
    [
        ("drain-by-inflight", ONE, "failed", "not pacing_gain=0.5 and cwnd_gain=2"),
        ("probe-rtt", ONE, "failed", "never: entered(PROBE_RTT)"),  # version 1 waits for 10 s
        ("policer", Cell(20_000_000, 20_000_000), "failed", "not (lost"),
        ("probe-rtt-skipped", ONE, "passed", ""),
        ("up-plateau", ONE, "not applicable", "it has no state PROBE_"),
    ],
)
def test_version_1_differs_where_the_draft_does(name, cell, verdict, problem):
    r = result("bbr", name, cell)
    assert r.verdict == verdict
    assert (r.failures[0].first.problem if r.failures else r.reason).startswith(problem)


def test_a_control_that_shows_nothing_cannot_be_judged():
    r = result("cubic", "startup-plateau")
    assert (r.verdict, r.reason) == ("not applicable", "it shows no states and variables")


def test_an_event_leaves_what_came_before_it_as_it_was():
    rig = conformance._Rig(conformance.Model(), "bbr3", BBR, BBR.cases["drain-by-time"], ONE, 1)
    before = rig._run()
    after = rig.record()
    (event,) = rig.events
    assert 0 < event < rig.seconds
    assert after.rows > 100
    assert (before.values["cwnd"][before.time < event] == after.values["cwnd"][after.time < event]).all()


def test_a_python_control_shows_what_it_observes(tmp_path):
    from tcpscape.engines.model import Model
    from tcpscape.trial import Capture

    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    acks = 0\n"
        "    def on_ack(self, sample, window):\n"
        "        self.acks += 1\n"
        "        window.cwnd = 20\n"
        "    @property\n"
        "    def observed(self):\n"
        '        return {"state": "EARLY" if self.acks < 50 else "LATE", "acks": self.acks, "share": self.acks / 2, "bound": None}\n'
    )
    rig = conformance._Rig(Model(), f"{tmp_path}/mine.py:Mine", BBR, BBR.cases["policer"], ONE, 1)
    trial = Model().run(rig.scenario(), [1], capture=Capture(control_ns=10**9))[0]
    assert trial.control_states == {"state": ["EARLY", "LATE"]}
    assert (trial.control["share"] == trial.control["acks"] / 2).all()
    assert trial.control.filter(pl_state(trial) == 1)["acks"][0] == 50


def pl_state(trial):
    return trial.control["state"]


def test_the_command_says_how_many_pass_and_why_others_fail(cli, tmp_path):
    got = cli("conform", "bbr", "bbr", "--case", "drain-by-inflight,up-plateau", "--rate", "20mbit", "--rtt", "40ms", "--check")
    assert got.status == 1
    assert "bbr passes 0 of 2 cases." in got.out
    assert "it has no state PROBE_" in got.out
    assert re.search(r"20mbit, 40ms: 0\.\d+ s, DRAIN, pacing_gain 0\.344", " ".join(got.out.split()))
    file = tmp_path / "bbr3.json"
    got = cli("conform", "bbr", "--case", "drain-by-inflight", "--rate", "20mbit", "--rtt", "40ms", "--check", "--json", "--out", file)
    assert got.status == 0
    assert got.lines[0]["passed"] == 1
    assert got.lines[0]["cases"][0]["cells"][0]["differences"] == []
    assert file.read_text().startswith("{")


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (("reno",), "document: no cases of 'reno'; "),
        (("bbr", "--case", "drain-by-inflite"), "case: no case 'drain-by-inflite'; did you mean drain-by-inflight or"),
        (("bbr", "nosuch"), "nosuch"),
        (("bbr", "--rate", "fast"), "rate:"),
    ],
)
def test_bad_input_is_one_line_with_status_2(cli, args, line):
    got = cli("conform", *args)
    assert got.status == 2
    assert line in got.err
    assert got.err.count("\n") == 1
