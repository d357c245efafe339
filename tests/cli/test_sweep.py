"""`tcpscape sweep`: what is asked becomes a campaign, what it prints, and that it goes on where it was stopped."""

import json
import re
import signal
import subprocess
import sys
import threading
import time

import polars as pl
import pytest

from patience import PATIENCE_S
from tcpscape.campaign import execute, record
from tcpscape.campaign import source as asked
from tcpscape.campaign.campaign import Campaign
from tcpscape.cli.terminal import ProgressLine
from tcpscape.engines import REGISTRY
from tcpscape.engines.mock import Mock
from tcpscape.errors import TcpscapeError
from tcpscape.store.results import FILE, Store

QUICK = ("--rtt", "24,50ms", "--jitter", "0..8ms/4ms", "--cca", "cubic,bbr", "--seeds", "3", "--engine", "mock")


# What is asked


def test_one_value_is_a_condition_and_several_are_an_axis():
    said = asked.campaign(None, {"rtt": "50ms", "jitter": "0..8ms/4ms", "app": "1MB/s", "rcvbuf": "64,128KiB", "mtu": "1500"}, {"seeds": "3"})
    assert said.to_dict() == {
        "name": "words",
        "conditions": {"rtt": "50ms", "flow": {"app": "1MB/s"}},
        "seeds": "3",
        "axes": {"jitter": ["0ms", "4ms", "8ms"], "rcvbuf": ["64KiB", "128KiB"], "mtu": ["1500"]},
    }
    flow = said.cases()[-1].scenario.flows[0]
    assert (flow.app.rate, flow.rcvbuf) == (1_000_000, 128 << 10)


def test_kernels_are_a_condition_or_an_axis(cli, tmp_path):
    one = asked.campaign(None, {"rtt": "50ms", "kernel": "6.12,rmem_max=4MiB", "loss": "0,1%"}, {})
    assert (one.conditions["kernel"], one.cases()[0].scenario.kernel.rmem_max) == ("6.12,rmem_max=4MiB", 4 << 20)
    two = cli("sweep", "--rtt", "50ms", "--kernel", "6.1|6.12,rmem_max=4MiB", "--engine", "mock", "--seeds", "1", "--out", tmp_path, "--json")
    assert [line["at"]["kernel"] for line in two.lines] == ["6.1", "6.12,rmem_max=4MiB"]


def test_options_override_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('conditions = {rtt = "50ms", loss = "1%"}\ncca = ["cubic"]\nseeds = 4\n[axes]\njitter = "0,4ms"\nrate = "5,10mbit"\n')
    plain = asked.campaign(str(file), {}, {})
    assert (plain.name, plain.seeds, len(plain.cases())) == ("mine", "4", 4)
    changed = asked.campaign(str(file), {"jitter": "8ms", "loss": "0,2%", "rtt": "20ms"}, {"seeds": "2", "cca": ("bbr", "reno")})
    assert changed.axes == {"jitter": ("8ms",), "rate": ("5mbit", "10mbit"), "loss": ("0", "2%")}
    assert (changed.conditions, changed.seeds, changed.cca) == ({"rtt": "20ms", "loss": "1%"}, "2", ("bbr", "reno"))
    assert {c.scenario.forward[0].loss for c in changed.cases()} == {0.0, 0.02}


@pytest.mark.parametrize("suffix", ["yaml", "toml"])
def test_a_scenario_is_varied(tmp_path, suffix):
    file = tmp_path / f"path.{suffix}"
    text = {"yaml": "forward: netem delay 5ms\nduration: 2s\n", "toml": 'forward = "netem delay 5ms"\nduration = "2s"\n'}
    file.write_text(text[suffix])
    for source in (str(file), "lossy-dsl"):
        said = asked.campaign(source, {"mtu": "576,1500"}, {})
        assert [c.scenario.mtu for c in said.cases()] == [576, 1500]
        assert said.scenario == source


@pytest.mark.parametrize("name", asked.gallery())
def test_campaigns_that_come_with_tcpscape_run(name, need_model):
    said = asked.campaign(name, {}, {"seeds": "1"})
    assert said.about
    few = said.model_copy(update={"axes": {k: v[:1] for k, v in said.axes.items()}})
    outcome = execute.run(few)
    assert outcome.trial_count == len(few.cases()) >= 2
    assert all(c.median(said.metric).value > 0 for c in outcome.cells)


def test_a_file_that_is_no_mapping_is_one_line(tmp_path):
    file = tmp_path / "list.yaml"
    file.write_text("- 1\n")
    with pytest.raises(TcpscapeError, match=r"list.yaml is no mapping of fields; write for example"):
        asked.campaign(str(file), {}, {})


# What it prints and keeps


def test_a_row_for_each_cell_and_nothing_runs_twice(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = cli("sweep", *QUICK)
    assert (first.status, first.err) == (0, "")
    rows = [line.split() for line in first.out.splitlines() if re.match(r"\d+ms ", line)]
    assert [r[:3] for r in rows] == [[rtt, jitter, cca] for rtt in ("24ms", "50ms") for jitter in ("0ms", "4ms", "8ms") for cca in ("cubic", "bbr")]
    assert "goodput Mbit/s: median [95 %]" in first.out
    [root] = (tmp_path / "out").iterdir()
    assert re.fullmatch(r"sweep-rtt-jitter-[0-9a-f]{6}", root.name)
    assert f"36 trials: 36 ran; kept in out/{root.name}" in first.out
    assert {p.name for p in root.iterdir()} == {FILE, "cells.csv"}
    again = cli("sweep", *QUICK)
    assert f"nothing ran: all 36 trials were kept in out/{root.name}" in again.out
    assert again.out.splitlines()[:-2] == first.out.splitlines()[:-2]
    more = cli("sweep", *[{"3": "5"}.get(a, a) for a in QUICK])
    assert f"60 trials: 24 ran, 36 were kept already; kept in out/{root.name}" in more.out
    other = cli("sweep", *QUICK, "--loss", "1%")
    assert "36 trials: 36 ran; kept in out/sweep-rtt-jitter-" in other.out
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_json_and_the_table_say_the_same(cli, tmp_path):
    got = cli("sweep", *QUICK, "--out", tmp_path, "--json")
    assert (got.status, got.err, len(got.lines)) == (0, "", 12)
    line = got.lines[3]
    assert (line["at"], line["cca"], line["engine"], line["metric"], line["unit"], line["n"]) == (
        {"rtt": "24ms", "jitter": "4ms"},
        "bbr",
        "mock",
        "goodput",
        "Mbit/s",
        3,
    )
    assert line["caveats"][-1] == "mock engine: the numbers mean nothing"
    row = pl.read_csv(tmp_path / "cells.csv").row(3, named=True)
    assert (row["rtt"], row["jitter"], row["cca"], row["n"]) == ("24ms", "4ms", "bbr", 3)
    assert row["median"] == line["median"]["value"]
    trials = Store(tmp_path).frame().filter(pl.col("cca") == "bbr")["goodput_mbps"].to_list()
    assert line["median"]["value"] in trials


def test_the_manifest_says_what_was_asked(cli, tmp_path):
    cli("sweep", *QUICK, "--out", tmp_path)
    kept = record.load(tmp_path)
    assert (kept.kind, kept.name) == ("sweep", "words")
    assert kept.command.split() == ["tcpscape", "sweep", *QUICK, "--out", str(tmp_path)]
    outcome = kept.outcomes[0]
    assert outcome.campaign == Campaign.of(
        {"name": "words", "axes": {"rtt": "24,50ms", "jitter": "0..8ms/4ms"}, "cca": "cubic,bbr", "engines": ("mock",), "seeds": "3"}
    )
    assert outcome.trial_count == 36


def test_a_report_is_written_beside_the_results(cli, tmp_path):
    got = cli("sweep", *QUICK, "--out", tmp_path, "--report")
    assert got.out.splitlines()[-1] == f"Next: open {tmp_path / 'report.html'}"
    assert "tcpscape sweep --rtt 24,50ms" in (tmp_path / "report.html").read_text("utf-8")


def test_several_engines_stand_side_by_side(cli, tmp_path, need_model):
    got = cli("sweep", "--rtt", "20ms", "--rate", "2,5mbit", "--duration", "500ms", "--seeds", "2", "--engine", "model,mock", "--out", tmp_path)
    assert got.status == 0, got.err
    rows = [line.split()[:3] for line in got.out.splitlines() if re.match(r"\dmbit", line)]
    assert rows == [["2mbit", "model", "cubic"], ["5mbit", "model", "cubic"], ["2mbit", "mock", "cubic"], ["5mbit", "mock", "cubic"]]


def test_a_metric_that_needs_samples_gets_them(cli, tmp_path, need_model):
    got = cli(
        "sweep", "--rtt", "20ms", "--rate", "2,5mbit", "--duration", "3s", "--seeds", "2", "--metric", "goodput_1s_max", "--out", tmp_path, "--json"
    )
    assert [1.5 < line["median"]["value"] < 2.01 for line in got.lines] == [True, False]
    assert len(list((tmp_path / "samples").iterdir())) == 4


# Precision


def test_quiet_cells_get_few_runs_and_noisy_ones_many(cli, tmp_path):
    args = (
        "sweep",
        "--rtt",
        "50ms",
        "--jitter",
        "0,10ms",
        "--seeds",
        "6",
        "--engine",
        "mock",
        "--precision",
        "4%",
        "--max-seeds",
        "40",
        "--out",
        tmp_path,
    )
    quiet, noisy = cli(*args, "--json").lines
    assert quiet["reached"]
    assert quiet["n"] < noisy["n"]
    assert not noisy["reached"]
    assert noisy["n"] == 40
    shown = cli(*args)
    assert "* 1 of 2 cells stopped at 40 runs, wider than ± 4.0 %" in shown.out
    assert f"nothing ran: all {quiet['n'] + 40} trials" in shown.out
    runs = record.load(tmp_path).outcomes[0].cells[1].runs[0]
    assert [t.seed for t in runs] == list(range(40))


def test_precision_in_pooled_cells_takes_turns():
    said = Campaign.of(
        {
            "conditions": {"rtt": "50ms"},
            "axes": {"jitter": "0,10ms", "app": "200,400kB/s"},
            "pool": ["app"],
            "engines": ["mock"],
            "seeds": 5,
            "precision": "1%",
            "max_seeds": 21,
        }
    )
    cells = execute.run(said).cells
    assert [len(c.trials) for c in cells] == [21, 21]
    assert [[[t.seed for t in some] for some in c.runs] for c in cells] == [[list(range(11)), list(range(10))]] * 2


def test_adding_runs_equals_having_asked_for_them():
    words = {"conditions": {"rtt": "50ms", "jitter": "10ms"}, "engines": ["mock"]}
    some = execute.run(Campaign.of({**words, "precision": "1%", "max_seeds": 50})).cells[0]
    assert some.trials == execute.run(Campaign.of({**words, "seeds": 50})).cells[0].trials


def test_progress_counts_every_engine_and_round():
    told = []
    said = Campaign.of(
        {"conditions": {"rtt": "50ms"}, "axes": {"jitter": "0,10ms"}, "engines": ["mock"], "seeds": 5, "precision": "1%", "max_seeds": 20}
    )
    outcome = execute.run(said, execute.Execution(progress=lambda *now: told.append(now)))
    assert [done for done, _ in told] == list(range(1, outcome.trial_count + 1))
    assert told[-1][0] == told[-1][1]

    class Second(REGISTRY["mock"]):
        version = "mock-2"

    told.clear()
    both = Campaign.of({"conditions": {"rtt": "50ms"}, "engines": ["mock", "second"], "seeds": 4})
    make = {"mock": REGISTRY["mock"], "second": Second}
    execute.run(both, execute.Execution(progress=lambda *now: told.append(now), make=lambda name: make[name]()))
    assert told == [(i, 8) for i in range(1, 9)]


# Stopped and continued


def test_an_interrupt_says_how_to_go_on(cli, tmp_path, monkeypatch):
    def interrupted(self, now, total):
        if now == 7:
            raise KeyboardInterrupt

    run = Mock.run
    with monkeypatch.context() as m:
        m.setattr(ProgressLine, "update", interrupted)
        m.setattr(Mock, "run", lambda *a, **k: time.sleep(0.05) or run(*a, **k))
        got = cli("sweep", *QUICK, "--jobs", "1", "--out", tmp_path)
    for thread in threading.enumerate():  # the trial that was running ends, and is kept too
        if thread.name.startswith("ThreadPoolExecutor"):
            thread.join(PATIENCE_S)
    ran = len(Store(tmp_path).addresses())
    assert (got.status, got.out) == (130, "")
    said = re.fullmatch(r"interrupted: (\d+) trials ran, kept in (.*); the same command goes on from here\n", got.err)
    assert said.group(2) == str(tmp_path)
    assert 7 <= int(said.group(1)) <= ran < 36
    assert f"36 trials: {36 - ran} ran, {ran} were kept already" in cli("sweep", *QUICK, "--out", tmp_path).out


def saved(root):
    """Trials in a directory that another process writes, which may have no database yet."""
    try:
        return len(Store(root, create=False).addresses())
    except TcpscapeError:
        return 0


def test_a_sweep_that_is_killed_goes_on_with_the_same_command(tmp_path, need_model):
    args = ("sweep", "--rtt", "20,40ms", "--loss", "0.1,1%", "--duration", "2s", "--seeds", "100", "--jobs", "2", "--json")
    words = [sys.executable, "-m", "tcpscape", *args, "--out"]
    child = subprocess.Popen([*words, str(tmp_path / "killed")], stdout=subprocess.PIPE)
    end = time.monotonic() + PATIENCE_S
    while child.poll() is None and saved(tmp_path / "killed") < 20 and time.monotonic() < end:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=PATIENCE_S)
    assert child.returncode == -signal.SIGKILL
    kept = Store(tmp_path / "killed").addresses()
    assert 20 <= len(kept) < 400
    again = subprocess.run([*words, str(tmp_path / "killed")], capture_output=True, timeout=PATIENCE_S, check=True)
    whole = subprocess.run([*words, str(tmp_path / "whole")], capture_output=True, timeout=PATIENCE_S, check=True)
    assert [json.loads(line) for line in again.stdout.splitlines()] == [json.loads(line) for line in whole.stdout.splitlines()]
    assert Store(tmp_path / "killed").frame().equals(Store(tmp_path / "whole").frame())
    assert {p.name for p in (tmp_path / "killed").iterdir()} == {FILE, "cells.csv"}


def scenarios_of(source, options, **fields):
    return [(dict(case.at), case.cca, case.scenario) for case in asked.campaign(source, options, fields).cases()]


def test_a_dotted_axis_sets_a_field_within_a_field():
    cases = scenarios_of("lossy-dsl", {"bottleneck.buffer": "0.5,1bdp", "forward.loss": "0%,1%"})
    assert [at for at, _, _ in cases] == [{"bottleneck.buffer": b, "forward.loss": p} for b in ("0.5bdp", "1bdp") for p in ("0%", "1%")]
    assert [(s.bottleneck[0].buffer, s.forward[0].loss) for _, _, s in cases] == [("0.5bdp", 0), ("0.5bdp", 0.01), ("1bdp", 0), ("1bdp", 0.01)]
    assert {s.bottleneck[0].rate for _, _, s in cases} == {10_000_000}  # what the axis does not name stays
    assert {s.forward[0].delay for _, _, s in cases} == {20_000_000}


def test_a_dotted_axis_adds_a_bottleneck():
    (_, _, first), (_, _, second) = scenarios_of("baseline", {"bottleneck.rate": "5..10mbit/5mbit", "kernel.rmem_max": "1MiB"})
    assert [s.bottleneck[0].rate for s in (first, second)] == [5_000_000, 10_000_000]
    assert first.kernel.plan()["rmem_max"] == 2**20
    kernels = [s.kernel for _, _, s in scenarios_of("lossy-dsl", {"kernel.rmem_max": "1,2MiB"})]  # a scenario that says nothing of its kernel
    assert [(k.profile, k.rmem_max) for k in kernels] == [("6.1", 2**20), ("6.1", 2**21)]


def test_a_dotted_axis_reaches_lists_by_number():
    changed = scenarios_of("rate-drop", {"changes.0.set.rate": "10,30mbit"})
    assert [s.changes[0].set.rate for _, _, s in changed] == [10_000_000, 30_000_000]
    assert [s.changes[0].at for _, _, s in scenarios_of("rate-drop", {"changes.at": "5s,6s"})] == [5_000_000_000, 6_000_000_000]
    two = {"scenario": {"forward": [{"delay": "5ms"}, {"delay": "6ms"}]}}
    assert [s.forward[1].jitter for _, _, s in scenarios_of(two, {"forward.1.jitter": "1,2ms"})] == [1_000_000, 2_000_000]


def test_a_mixture_at_every_point(cli, tmp_path, need_model):
    words = (
        "sweep",
        "--rtt",
        "20ms",
        "--rate",
        "5mbit",
        "--buffer",
        "1,2bdp",
        "--rcvbuf",
        "256KiB",
        "--duration",
        "1s",
        "--seeds",
        "2",
        "--mix",
        "cubic*2,bbr@500ms",
    )
    lines = cli(*words, "--metric", "share:bbr", "--out", tmp_path, "--json").lines
    assert [(line["cca"], line["at"]["buffer"], line["metric"]) for line in lines] == [
        ("bbr+cubic", "1bdp", "share:bbr"),
        ("bbr+cubic", "2bdp", "share:bbr"),
    ]
    (_, _, scenario), *_ = scenarios_of(None, {"rtt": "20ms", "rcvbuf": "256KiB"}, mix="cubic*2,bbr@500ms")
    assert [(f.cca, f.count, f.start, f.rcvbuf) for f in scenario.flows] == [("cubic", 2, 0, 2**18), ("bbr", 1, 500_000_000, 2**18)]


def test_the_queue_of_the_bottleneck_is_an_axis(cli, tmp_path, need_model):
    words = ("sweep", "--rtt", "20ms", "--rate", "5mbit", "--queue", "fq_codel,pie", "--cca", "cubic", "--duration", "1s", "--seeds", "1", "--json")
    assert [line["at"] for line in cli(*words, "--out", tmp_path).lines] == [{"queue": "fq_codel"}, {"queue": "pie"}]
    kinds = [s.queues("bottleneck")[0][-1].kind for _, _, s in scenarios_of(None, {"rtt": "20ms", "rate": "5mbit", "queue": "fq_codel,pie"})]
    assert kinds == ["fq_codel", "pie"]


def test_an_axis_adds_a_hop_at_the_router():
    from tcpscape.campaign.axes import set_dotted

    assert set_dotted({}, "forward.loss", "1%") == {"forward": {"at": "router", "loss": "1%"}}
