"""The command line: what it prints, what it refuses."""

import json
import math
import os
import platform
import re
import subprocess
import sys

import pytest

from patience import PATIENCE_S
from tcpscape.cli.terminal import ProgressLine
from tcpscape.errors import INTERRUPTED
from tcpscape.store.results import Store
from tcpscape.text import numbers

WORDS = (
    "run",
    "--forward",
    "netem delay 25ms 8ms distribution normal loss 0.1% limit 100000",
    "--bottleneck",
    "tbf rate 10mbit burst 6056 limit 62500",
    "--reverse",
    "netem delay 25ms limit 100000",
    "--rcvbuf",
    "262144",
    "--app",
    "1MB/s",
    "--duration",
    "10s",
    "--kernel",
    "6.1",
    "--engine",
    "mock",
)


def test_json_lines_have_the_promised_keys(cli):
    got = cli(*WORDS, "--cca", "cubic", "--flows", "2", "--seeds", "3", "--json")
    assert (got.status, got.err) == (0, "")
    assert [line["seed"] for line in got.lines] == [0, 1, 2]
    flows = [flow for line in got.lines for flow in line["flows"]]
    assert len(flows) == 6
    for flow in flows:
        assert set(flow["rtt_ms"]) == {"min", "p50", "p95", "p99", "max", "mean"}
        assert set(flow["cwnd"]) == {"mean", "max"}


def test_a_list_compares_one_trial_each(cli):
    got = cli(*WORDS, "--cca", "cubic,bbr", "--seeds", "2", "--json")
    assert [(line["cca"], line["seed"]) for line in got.lines] == [("cubic", 0), ("cubic", 1), ("bbr", 0), ("bbr", 1)]


def test_a_mixture_is_one_trial(cli):
    got = cli(*WORDS, "--mix", "cubic*2,bbr*1@5s", "--seeds", "1", "--json")
    flows = got.lines[0]["flows"]
    assert [f["cca"] for f in flows] == ["cubic", "cubic", "bbr"]
    assert flows[2]["seconds"] == pytest.approx(5)


def test_a_table_says_interval_cv_and_limit(cli):
    got = cli("run", "baseline", "--cca", "cubic,bbr", "--engine", "mock", "--seeds", "5")
    assert got.status == 0
    assert "mean [95 %]" in got.out
    assert "CV" in got.out
    assert "limited by" in got.out
    assert re.search(r"^→ (bbr|cubic) and (bbr|cubic) carry (nearly )?the same, ", got.out, re.M)
    assert "caveat: mock engine" in got.out


def test_out_keeps_and_resumes(cli, tmp_path):
    args = ("run", "baseline", "--engine", "mock", "--seeds", "3", "--out", tmp_path / "o")
    first, again = cli(*args), cli(*args)
    assert first.out == again.out
    assert len(Store(tmp_path / "o").addresses()) == 3
    assert len(list((tmp_path / "o" / "samples").glob("*.parquet"))) == 3


def test_an_interrupted_run_says_what_it_kept(cli, tmp_path, monkeypatch):
    def interrupted(self, now, total):
        raise KeyboardInterrupt

    monkeypatch.setattr(ProgressLine, "update", interrupted)
    got = cli("run", "baseline", "--engine", "mock", "--jobs", "1", "--seeds", "3", "--out", tmp_path)
    assert (got.status, got.out) == (130, "")
    assert re.fullmatch(r"interrupted: [1-3] trials? ran, kept in .*; the same command goes on from here\n", got.err)
    assert len(Store(tmp_path).addresses()) >= 1
    got = cli("run", "baseline", "--engine", "mock", "--seeds", "3")
    assert (got.status, got.out, got.err) == (130, "", f"{INTERRUPTED}\n")
    got = cli("cliff", "--rtt", "50ms", "--engine", "mock", f"--out={tmp_path / 'edges'}")
    assert (got.status, got.out, got.err) == (130, "", f"{INTERRUPTED}\n")  # it writes its files at the end
    got = cli("validate", "--engine", "mock", "--engine", "mock:6.12", "--random", "2", "--out", tmp_path / "v")
    kept = f"interrupted; what is kept in {tmp_path / 'v'} stays, and the same command goes on from there\n"
    assert (got.status, got.out, got.err) == (130, "", kept)


@pytest.mark.parametrize("closed", [">&-", "| head -c 0"])
def test_a_closed_stdout_is_no_traceback(closed):
    words = f"{sys.executable} -m tcpscape export baseline --to tc"
    got = subprocess.run(["bash", "-c", f"{words} {closed}"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (got.returncode, got.stderr) == (0, "")


@pytest.mark.parametrize("args", [(), ("study",), ("cca",)])
def test_a_group_without_a_command_prints_its_help(cli, args):
    got = cli(*args)
    assert (got.status, got.out) == (2, "")
    assert got.err.startswith(f"Usage: {' '.join(('tcpscape', *args))} [OPTIONS] COMMAND")
    assert got.err.count("\n") > 5


def test_help_lists_every_command_on_one_line(cli):
    from tcpscape.cli.main import COMMANDS

    said = cli("--help").out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in said] == list(COMMANDS)
    assert not [line for line in said if line.endswith("...")]


def test_lists_and_doctor(cli):
    assert "starlink-baseline" in cli("scenario", "list").out
    assert "rmem_max: 4MiB" in cli("scenario", "show", "starlink-baseline").out
    assert "tcpscape 0." in cli("version").out
    assert "engine live" in cli("doctor").out


def test_every_congestion_control(cli, need_model):
    from tcpscape import engines

    got = cli("run", "--cca", "all", "--bottleneck", "tbf rate 2mbit burst 6056 limit 20000", "--duration", "300ms", "--seeds", "1", "--json")
    assert [json.loads(line)["cca"] for line in got.out.splitlines()] == engines.make("model").ccas()


def test_advice_as_json(cli):
    got = cli("advise", "--rtt", "26ms", "--jitter", "7ms", "--seeds", "4", "--engine", "mock", "--cca", "cubic,bbr", "--json")
    answer = json.loads(got.out)
    assert answer["choice"] in ("cubic", "bbr")
    assert answer["ranking"][0]["cliff"]["jitter_ns"] > 0
    assert answer["ranking"][0]["side"] in ("stable", "chaos zone", "collapsed")


def test_nothing_but_json_on_stdout_and_no_traceback(shell):
    got = shell(*WORDS, "--cca", "bbr", "--seeds", "1", "--json")
    assert (got.status, got.err, len(got.lines)) == (0, "", 1)
    bad = shell("run", "nosuch")
    assert bad.status == 2
    assert "Traceback" not in bad.err


def test_the_command_line_starts_without_what_only_commands_need():
    heavy = {"hashlib", "matplotlib", "numpy", "polars", "pydantic", "rich", "scipy", "tcpscape.scenario.vocabulary", "yaml"}
    said = f"import sys, tcpscape.cli.main; print(sorted({heavy} & sys.modules.keys()))"
    got = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert got.stdout.strip() == "[]"


@pytest.mark.parametrize("asked", ["-h", "--help"])
def test_help_comes_without_click_as_click_writes_it(asked):
    from tcpscape.cli import overview
    from tcpscape.cli.main import app

    with app.make_context("tcpscape", [], resilient_parsing=True, terminal_width=overview.WIDTH - 2) as context:
        of_click = context.get_help()
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-X", "importtime", "-m", "tcpscape", asked]
    wide = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert (wide.stdout, "click" in wide.stderr) == (of_click + "\n", False)
    narrow = subprocess.run(command, capture_output=True, text=True, check=True, env={**environment, "COLUMNS": "52"})
    assert max(map(len, narrow.stdout.partition("Examples:")[0].splitlines())) <= 52
    assert "click" in narrow.stderr


def test_shares_without_a_bound_or_a_value_are_no_numbers():
    assert [numbers.percent(x) for x in (0.124, math.inf, math.nan, None)] == ["12 %", "∞", "–", "–"]


def test_results_of_another_path_in_the_same_directory_are_said(cli, tmp_path):
    path = ("--forward", "netem delay 10ms", "--reverse", "netem delay 10ms", "--engine", "mock", "--seeds", "2", "--out", tmp_path / "o")
    first, again = cli("run", *path), cli("run", *path)
    assert "beside" not in first.out + again.out
    assert "beside results of other commands" in cli("run", *path, "--kernel", "6.12").out


@pytest.mark.parametrize(
    ("release", "sentence"),
    [
        ("6.1.0-39-amd64", "in the model, profile 6.1 stands for this machine's 6.1.0-39-amd64; held against kernel 6.1."),
        ("6.17.2", "in the model, profile 6.12 stands"),
    ],
)
def test_the_machines_own_kernel_says_how_near_its_profile_is(cli, monkeypatch, release, sentence):
    monkeypatch.setattr(platform, "release", lambda: release)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    path = ("run", "--rtt", "20ms", "--rate", "5mbit", "--duration", "1s", "--engine", "mock", "--seeds", "2")
    command = cli(*path, "--kernel", "host")
    assert command.status == 0, command.err
    assert f"note: --kernel host: {sentence}" in command.err
    assert "note: --kernel" not in cli(*path).err
