"""`tcpscape export` and `scenario show --tc`."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import polars as pl
import pytest

import forked
from conftest import ROOT
from patience import PATIENCE_S
from tcpscape import interchange
from tcpscape.cli.export import export
from tcpscape.errors import ScenarioError, StoreError
from tcpscape.interchange import sources, table, tc
from tcpscape.scenario import files, path
from tcpscape.scenario.scenario import Scenario
from tcpscape.store import rows
from tcpscape.store.results import Store
from tcpscape.text import latex
from tcpscape.text.table import Table

RICH = {
    "name": "rich",
    "forward": ["netem delay 10ms", "netem delay 5ms loss 1%"],
    "bottleneck": "htb rate 10mbit; fq_codel",
    "reverse": [{"delay": "10ms", "jitter": "2ms", "order": "clamp"}, "netem delay 1ms"],
    "ecn": True,
    "mtu": 1400,
    "flows": [{"cca": "cubic:hystart=off", "count": 2}, {"cca": "bbr", "start": "2s", "app": "1MB/s", "read": "16KiB/1ms"}],
    "changes": [{"where": "bottleneck", "at": "5s", "set": {"rate": "5mbit"}}],
}


@pytest.fixture
def results(cli, tmp_path):
    """A result directory: two congestion controls, three seeds."""
    assert cli("run", "baseline", "--engine", "mock", "--cca", "cubic,bbr", "--seeds", "3", "--out", tmp_path / "o").status == 0
    return tmp_path / "o"


def test_the_help_names_every_format_that_is_written():
    (option,) = (option for option in export.params if option.name == "to")
    assert [word for word in re.findall(r"\w+", option.help) if word != "or"] == list(interchange.writable())


def test_a_table_on_stdout(cli, results):
    got = cli("export", results, "--to", "csv")
    rows = list(csv.DictReader(io.StringIO(got.out)))
    assert (got.status, got.err, len(rows)) == (0, "", 6)
    assert {r["cca"] for r in rows} == {"cubic", "bbr"}
    assert all(float(r["goodput_mbps"]) > 0 for r in rows)


@pytest.mark.parametrize("to", ["csv", "parquet"])
def test_a_table_is_read_back_as_its_trials(to, cli, results, tmp_path):
    out = tmp_path / f"rows.{to}"
    assert cli("export", results, "--to", to, "--out", out).status == 0
    there, back = sources.load(results), sources.load(out)
    first, again = (sorted((i.trial for i in s.items), key=lambda t: t.address) for s in (there, back))
    assert [(t.address, t.seed, t.cca, t.caveats) for t in again] == [(t.address, t.seed, t.cca, t.caveats) for t in first]
    assert [t.goodput_mbps for t in again] == pytest.approx([t.goodput_mbps for t in first])
    assert [t.flows[0].rtt_ms for t in again] == [t.flows[0].rtt_ms for t in first]
    assert [dict(t.flows[0].limited_by) for t in again] == [dict(t.flows[0].limited_by) for t in first]


def test_a_table_in_parts_has_the_bytes_of_the_whole_one(results, monkeypatch, tmp_path):
    whole = table.write_parquet(sources.load(results).rows())
    monkeypatch.setattr(rows, "AT_A_TIME", 1)
    parts = list(sources.load(results).parts())
    assert len(parts) > 1
    assert table.write_parquet_parts(iter(parts)) == whole
    assert pl.read_parquet(table.write_parquet_parts(iter(()))).is_empty()
    other = parts[1].with_columns(pl.lit(7).alias("later")).drop("hash")  # parts of other columns
    together = pl.concat([parts[0], other], how="diagonal_relaxed")
    assert table.write_parquet_parts(iter([parts[0], other])) == table.write_parquet(together)
    (tmp_path / "parts").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "parts"))
    assert table.write_parquet_parts(iter(parts)) == whole
    assert not list((tmp_path / "parts").iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StoreError, match=r"^TMPDIR: cannot write .*; free some space"):
        table.write_parquet_parts(iter(parts))


def test_a_dash_is_stdout(cli, results, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for to in (("csv",), ("iperf3", "--cca", "bbr", "--seed", "1")):
        plain, dash = cli("export", results, "--to", *to), cli("export", results, "--to", *to, "--out", "-")
        assert (dash.status, dash.err, dash.out) == (0, "", plain.out)
    many = cli("export", results, "--to", "iperf3", "--out", "-")
    assert (many.status, many.err) == (
        2,
        "error: out: there are 6 iperf3 files to write; write --out DIR, or choose one trial with --seed and --cca\n",
    )
    assert not (tmp_path / "-").exists()


def test_what_is_not_text_goes_to_a_pipe_that_is_named_and_to_no_terminal(results, tmp_path):
    command = [*forked.python(), "-m", "tcpscape", "export", str(results), "--to", "parquet", "--out", "-"]
    piped = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False, cwd=tmp_path)
    assert (piped.returncode, piped.stderr) == (0, b"")
    assert len(pl.read_parquet(io.BytesIO(piped.stdout))) == 6
    near, far = os.openpty()
    shown = subprocess.run(command, stdout=far, stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False, cwd=tmp_path)
    os.close(far)
    os.close(near)
    assert shown.returncode == 2
    assert shown.stderr == b"error: out: parquet is not text, and standard output is a terminal; write --out FILE.parquet\n"
    assert not (tmp_path / "-").exists()


def test_a_table_is_exported_in_parts(cli, results, tmp_path, monkeypatch):
    monkeypatch.setattr(sources.ResultSource, "rows", None)  # of all trials together, which nobody asks for
    assert cli("export", results, "--to", "parquet", "--out", tmp_path / "t.parquet").status == 0


def test_a_file_for_each_trial(cli, results, tmp_path):
    got = cli("export", results, "--to", "iperf3", "--out", tmp_path / "i")
    assert got.status == 0
    assert sorted(f.name for f in (tmp_path / "i").iterdir())[:2] == ["baseline-bbr-seed0.json", "baseline-bbr-seed1.json"]
    again = sources.load(tmp_path / "i")
    assert {(g.cca, len(g.items)) for g in again.groups} == {("cubic", 3), ("bbr", 3)}


@pytest.mark.parametrize("to", ["iperf3", "flent"])
def test_a_trial_without_flows_is_refused_by_formats_of_flows(to, cli, tmp_path, need_model):
    (tmp_path / "s.yaml").write_text("{forward: netem delay 5ms, reverse: netem delay 5ms, flows: [], transfers: ['40/s,8kB'], duration: 200ms}")
    for samples in ((), ("--samples", "100ms")):
        assert cli("run", tmp_path / "s.yaml", "--seeds", "1", "--out", tmp_path / "r", *samples).status == 0
        said = cli("export", tmp_path / "r", "--to", to, "--out", tmp_path / "x")
        assert (said.status, said.err.count("\n"), said.err.startswith(f"error: {to}: the trial has no ")) == (2, 1, True)


def test_one_trial_on_stdout_is_one_document(cli, results):
    got = cli("export", results, "--to", "iperf3", "--cca", "bbr", "--seed", "1")
    said = json.loads(got.out)
    assert said["end"]["sender_tcp_congestion"] == "bbr"
    assert json.loads(said["extra_data"])["seed"] == 1


def test_the_recorded_file_of_one_tool_becomes_that_of_another(cli, tmp_path):
    from test_interchange import FLENT

    assert cli("export", FLENT, "--to", "iperf3", "--out", tmp_path / "a.json").status == 0
    (trial,) = interchange.read(tmp_path / "a.json").trials
    assert (trial.cca, trial.goodput_mbps) == ("cubic", pytest.approx(37.878, abs=0.001))


def test_the_path_of_a_result_is_that_of_its_scenario(cli, results, need_model):
    got, scenario = (cli("export", source, "--to", "tc").out for source in (results, "baseline"))
    assert [line for line in got.splitlines() if line.startswith("tc ")] == [line for line in scenario.splitlines() if line.startswith("tc ")]
    Store(results).change_manifests(lambda before: [])
    old = cli("export", results, "--to", "tc")
    assert (old.status, old.err.count("\n")) == (2, 1)
    assert "does not say its scenarios" in old.err


def test_a_store_without_a_manifest_is_read(cli, results):
    Store(results).change_manifests(lambda before: [])
    assert {(g.cca, len(g.items)) for g in sources.load(results).groups} == {("cubic", 3), ("bbr", 3)}


# ---- tc


def queues(script: str) -> list[str]:
    return [line for line in script.splitlines() if line.startswith(("tc ", "# tc "))]


@pytest.mark.usefixtures("need_model")
def test_tc_gets_every_queue_of_both_directions():
    said = queues(tc.write(Scenario.of(RICH)).decode())
    where = [line.removeprefix("# ").split()[2:7] for line in said]
    assert [(w[0], w[-1]) for w in where] == [
        ("tcpscape0", "right"),
        ("tcpscape1", "right"),
        ("tcpscape2", "right"),
        ("tcpscape2", "right"),
        ("tcpscape2", "right"),
        ("tcpscape3", "left"),
        ("tcpscape2", "left"),
    ]
    assert "class add dev right parent 1: classid 1:1 htb rate 10mbit" in said[3]
    assert "parent 1:1 handle 2: fq_codel" in said[4]


@pytest.mark.usefixtures("need_model")
@pytest.mark.parametrize("name", [*files.gallery(), "rich"])
def test_tcs_words_mean_what_the_scenario_means(name):
    """The words behind `handle` are read back to the same queues as the scenario's own."""
    from tcpscape import _core

    scenario = Scenario.of(RICH) if name == "rich" else files.load(name)
    if scenario.is_topology:
        with pytest.raises(ScenarioError, match=f"^scenario: {name} has .*, and a script of tc's is one link between two hosts; "):
            tc.write(scenario)
        return
    read: dict[tuple[str, str], list[str]] = {}
    for line in queues(tc.write(scenario).decode()):
        words = line.removeprefix("# ").split()
        if "class" in words or "htb" not in words:
            start = words.index("htb") if "htb" in words else words.index("handle") + 2
            read.setdefault((words[2], words[6]), []).append(" ".join(words[start:]))
    hops = (*scenario.forward, *scenario.bottleneck, *scenario.reverse)
    assert [_core.parse_tc("; ".join(q)) for q in read.values()] == [_core.parse_tc(w) for hop in hops for w in path.words(hop, scenario.rtt_ns)]


@pytest.mark.usefixtures("need_model")
def test_what_tc_cannot_do_is_named():
    said = tc.write(Scenario.of(RICH)).decode()
    missing = [line for line in said.splitlines() if line.startswith("# Not here")]
    for word in ("jitter is not tc's", "1 changes", "profile 6.1", "every 1ms", "cubic:hystart=0"):
        assert any(word in line for line in missing), word
    assert "mtu 1400" in said
    assert "tcp_ecn=1" in said
    assert "tso off" in said
    assert "# (sleep 2; ip netns exec tcpscape0 iperf3 -c 10.77.2.2 -J -C bbr -P 1 -l 8192 -t 8 -b 8000000 -N) &" in said


@pytest.mark.usefixtures("need_model")
def test_the_script_is_a_shell_script(tmp_path):
    script = tmp_path / "path.sh"
    script.write_bytes(tc.write(Scenario.of(RICH)))
    assert subprocess.run(["sh", "-n", script], check=False, timeout=PATIENCE_S).returncode == 0


@pytest.mark.slow
@pytest.mark.usefixtures("need_model")
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="needs root and iproute2")
def test_the_script_builds_a_path_that_carries_packets(tmp_path):
    """The namespaces and routes are real; a kernel without netem (or no ethtool) leaves its lines out."""
    said = tc.write(Scenario.of(RICH)).decode()
    kept = [line for line in said.splitlines() if not line.startswith("tc ") and "ethtool" not in line]
    try:
        subprocess.run(["sh", "-c", "\n".join(kept)], check=True, timeout=PATIENCE_S)
        for host, other in (("tcpscape0", "10.77.2.2"), ("tcpscape3", "10.77.0.1")):
            got = subprocess.run(["ip", "-n", host, "route", "get", other], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
            assert "via 10.77." in got.stdout
    finally:
        for i in range(4):
            subprocess.run(["ip", "netns", "del", f"tcpscape{i}"], check=False, capture_output=True, timeout=PATIENCE_S)


def test_scenario_show_tc_is_the_export(cli, need_model):
    assert cli("scenario", "show", "baseline", "--tc").out == cli("export", "baseline", "--to", "tc").out


@pytest.mark.parametrize("to", ["csv", "parquet"])
def test_samples_are_rows(to, cli, tmp_path, need_model):
    """1 s with a sample every 100 ms: at most 10 of each of the two flows of each trial."""
    import polars as pl

    words = (
        "sweep",
        "--rtt",
        "20,40ms",
        "--rate",
        "5mbit",
        "--flows",
        "2",
        "--duration",
        "1s",
        "--cca",
        "cubic,bbr",
        "--seeds",
        "2",
        "--samples",
        "100ms",
    )
    assert cli(*words, "--out", tmp_path / "o", "--quiet").status == 0
    assert cli("export", tmp_path / "o", "--to", to, "--samples", "--out", tmp_path / f"s.{to}").status == 0
    rows = pl.read_csv(tmp_path / "s.csv") if to == "csv" else pl.read_parquet(tmp_path / "s.parquet")
    assert rows.group_by("rtt", "cca", "seed", "flow").len()["len"].to_list() == [rows.height // 16] * 16
    assert 8 <= rows.height // 16 <= 10
    assert set(rows["rtt"]) == {"20ms", "40ms"}
    assert rows["cwnd"].min() > 0
    one = cli("export", tmp_path / "o", "--to", "csv", "--samples", "--cca", "bbr", "--seed", "1")
    assert {(r["cca"], r["seed"]) for r in csv.DictReader(io.StringIO(one.out))} == {("bbr", "1")}


def test_a_sample_is_of_its_flows_congestion_control(cli, tmp_path, need_model):
    words = (
        "run",
        "--mix",
        "cubic,bbr",
        "--bottleneck",
        "tbf rate 5mbit burst 6056 limit 30000",
        "--duration",
        "1s",
        "--seeds",
        "1",
        "--out",
        tmp_path,
    )
    assert cli(*words, "--samples", "100ms").status == 0
    rows = csv.DictReader(io.StringIO(cli("export", tmp_path, "--to", "csv", "--samples").out))
    assert {(r["flow"], r["cca"]) for r in rows} == {("0", "cubic"), ("1", "bbr")}


def test_markdown_is_the_screen_of_the_result(cli, results):
    text = cli("export", results, "--to", "markdown").out
    lines = [line for line in text.splitlines() if line]
    screen = cli("run", "baseline", "--engine", "mock", "--cca", "cubic,bbr", "--seeds", "3").out.splitlines()
    assert (lines[0], lines[1]) == (screen[0], f"**{screen[1].removeprefix('→ ')}**")
    assert lines[2].startswith("| cca | goodput Mbit/s, mean [95 %] |")
    assert [line.split(" | ")[0] for line in lines[4:6]] == ["| cubic", "| bbr"]
    assert lines[-1].startswith("- caveat: ")
    assert "| cubic" not in cli("export", results, "--to", "markdown", "--cca", "bbr").out


def test_markdown_has_the_columns_that_no_screen_has_room_for(cli, tmp_path, need_model):
    """The number of trials, and the interval of the added RTT: of a run that of its mean, of a sweep that of its median."""
    path = ("--cca", "cubic,bbr", "--seeds", "3", "--duration", "2s", "--quiet", "--out")
    cli("run", "--forward", "netem delay 25ms 8ms", *path, tmp_path / "run")
    cli("sweep", "--rtt", "20ms", "--jitter", "0ms,8ms", *path, tmp_path / "sweep")
    for name, heading in (("run", "added RTT p95 ms, mean [95 %]"), ("sweep", "added RTT p95 ms: median [95 %]")):
        rows = [
            [cell.strip() for cell in line.split("|")[1:-1]]
            for line in cli("export", tmp_path / name, "--to", "markdown").out.splitlines()
            if line[:1] == "|"
        ]
        columns = rows[0]
        assert columns[-1] == "n", name
        assert {row[-1] for row in rows[2:]} == {"3"}, name
        assert all(re.fullmatch(r"[\d.]+ \[[\d.]+, [\d.]+\]", row[columns.index(heading)]) for row in rows[2:]), name


def test_a_table_for_a_paper_has_its_units_intervals_and_conditions(cli, results, tmp_path):
    text = cli("export", results, "--to", "latex").out
    for line in (
        r"\toprule",
        r"\midrule",
        r"\bottomrule",
        r"\shortstack[r]{goodput Mbit/s, \\ mean [95~\%]}",
        r"\usepackage{booktabs}",
        r"\label{tab:baseline}",
    ):
        assert line in text
    rows = [line.strip() for line in text.splitlines() if line.endswith(r" \\")]
    assert [row.split(" & ")[0] for row in rows] == ["cca", "cubic", "bbr"]
    assert len({row.count("&") for row in rows}) == 1
    assert all(re.search(r"& \d[\d.]* \[[\d.]+, [\d.]+\] &", row) for row in rows[1:])
    assert not re.search(r"(?<!\\)%(?! )", text.replace("\n% ", "\n"))  # the rest of a line behind a bare % would be lost


def test_tables_of_several_sweeps_have_labels_of_their_own_that_more_seeds_leave(cli, tmp_path):
    def label(seeds: str, *words: str) -> str:
        out = tmp_path / f"{seeds}{''.join(words)}"
        cli("sweep", "--rtt", "20ms", "--cca", "cubic", "--engine", "mock", "--seeds", seeds, "--quiet", "--out", out, *words)
        return re.search(r"\\label\{(.+)\}", cli("export", out, "--to", "latex").out)[1]

    loss, more, rate = label("3", "--loss", "0,1%"), label("5", "--loss", "0,1%"), label("3", "--rate", "5,10mbit")
    assert loss == more != rate
    assert loss.startswith("tab:goodput-loss-")
    assert label("3", "--loss", "0,1%", "--duration", "3s") != loss


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a_b & 5 %", r"a\_b \& 5~\%"),
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("± 2 × ∞", r"$\pm$ 2 $\times$ $\infty$"),
        ("$x^2#", r"\$x\textasciicircum{}2\#"),
    ],
)
def test_no_text_is_a_command_of_latex(text, written):
    assert latex.escaped(text) == written


def test_no_line_of_a_table_begins_with_what_the_end_of_a_line_takes_for_its_own():
    text = latex.tabular(Table(["cca", "jain [95 %]"], [["*best", "1.0"], ["*b", "0.9"]]), "x", "x")
    assert r"\shortstack[r]{jain \\ {[95~\%]}}" in text
    assert "{*b} & 0.9" in text


def test_a_table_for_a_paper_compiles(cli, results, tmp_path):
    if not shutil.which("pdflatex"):
        pytest.skip("pdflatex is not installed")
    table = cli("export", results, "--to", "latex").out
    odd = latex.tabular(Table(["name", "value"], [['a_b$&%#{}~^\\<>|"`', "[1, 2]"], ["±×∞≥≤→≈√−Δσαβ–—…µ·§", "[3, 4]"]]), "Odd_&", "odd_1")
    page = "\n".join(
        [r"\documentclass[twocolumn]{article}\usepackage[T1]{fontenc}\usepackage{booktabs}\begin{document}", table, odd, r"\end{document}"]
    )
    (tmp_path / "page.tex").write_text(page, "utf-8")
    subprocess.run(["pdflatex", "-halt-on-error", "-no-shell-escape", "page.tex"], cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE_S)
    assert "Overfull" not in (tmp_path / "page.log").read_text("utf-8", "replace")


def test_the_paragraph_of_methods_is_about_what_ran(cli, results):
    text = cli("export", results, "--to", "methods").out
    trials = sources.load(results).items
    for fact in (
        "cubic and bbr",
        "2 conditions has 3 trials (6 in all)",
        "seeds 0 to 2",
        f"version {trials[0].trial.version}",
        "Repeated by: tcpscape run baseline",
    ):
        assert fact in text
    one = cli("export", results, "--to", "methods", "--cca", "bbr").out
    assert "The condition has 3 trials" in one
    assert "control bbr with" in one
    assert "(3 in all)" in one


@pytest.mark.parametrize(("seeds", "interval"), [("3", "Student's t"), ("5", "order statistics")])
def test_the_paragraph_of_methods_says_how_few_medians_have_their_intervals(cli, tmp_path, need_model, seeds, interval):
    path = ("--rtt", "20ms", "--loss", "0,1%", "--rate", "5mbit", "--cca", "cubic", "--duration", "1s")
    assert cli("sweep", *path, "--seeds", seeds, "--out", tmp_path / "o").status == 0
    text = cli("export", tmp_path / "o", "--to", "methods").out
    assert {name for name in ("Student's t", "order statistics") if name in text} == {interval}


def test_each_table_for_a_paper_says_what_it_is_of(cli, tmp_path, need_model):
    assert cli("run", "video-call", "--seeds", "2", "--duration", "11s", "--out", tmp_path / "o").status == 0
    captions = [line for line in cli("export", tmp_path / "o", "--to", "latex").out.splitlines() if "caption" in line]
    assert len(set(captions)) == len(captions) == 2
    assert r"\caption{Probes. RTT 100ms" in captions[1]


def _repeat(folder):
    command = [sys.executable, "repeat.py"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=os.environ | {"PYTHONPATH": str(ROOT / "python")}
    )
    return done.returncode, done.stdout, done.stderr


def test_a_bundle_repeats_its_result_elsewhere(cli, need_model, tmp_path):
    run = cli(
        "sweep",
        "--rtt",
        "20ms",
        "--loss",
        "0,1%",
        "--rate",
        "5mbit",
        "--cca",
        "cubic,bbr",
        "--duration",
        "2s",
        "--seeds",
        "2",
        "--out",
        tmp_path / "o",
    )
    assert run.status == 0
    bundle, elsewhere = tmp_path / "b.zip", tmp_path / "elsewhere"
    (tmp_path / "o" / "private.txt").write_text("not for others", "utf-8")
    assert cli("export", tmp_path / "o", "--to", "bundle", "--out", bundle).status == 0
    first = bundle.read_bytes()
    assert cli("export", tmp_path / "o", "--to", "bundle", "--out", bundle).status == 0
    assert bundle.read_bytes() == first
    shutil.unpack_archive(bundle, elsewhere)
    assert [file.name for file in (elsewhere / "results").rglob("*")] == ["results.sqlite"]
    shutil.rmtree(tmp_path / "o")
    assert _repeat(elsewhere) == (0, "8 of 8 trials are the same\n", "")
    again = cli("sweep", next((elsewhere / "campaigns").iterdir()), "--out", tmp_path / "again", "--quiet")
    assert again.status == 0
    both = json.loads(cli("compare", elsewhere / "results", tmp_path / "again", "--json").out)
    assert [one["same_runs"] for one in both["conditions"]] == [True] * 4
    readme = (elsewhere / "README.md").read_bytes()
    (elsewhere / "README.md").unlink()
    assert _repeat(elsewhere) == (2, "", "README.md is not what it was: unpack the archive again\n")
    (elsewhere / "README.md").write_bytes(readme)
    document = json.loads((elsewhere / "trials.json").read_text("utf-8"))
    document["work"][0]["goodput_mbps"][0] += 0.001
    (elsewhere / "trials.json").write_text(json.dumps(document), "utf-8")
    assert _repeat(elsewhere) == (2, "", "trials.json is not what it was: unpack the archive again\n")
    sums = elsewhere / "SHA256SUMS"
    sums.write_text("".join(line for line in sums.read_text("utf-8").splitlines(keepends=True) if "trials.json" not in line), "utf-8")
    status, out, _ = _repeat(elsewhere)
    assert status == 1
    assert out.endswith("7 of 8 trials are the same\n")


@pytest.mark.parametrize("place", ["path", "link", "access"])
def test_a_bundle_that_could_not_be_repeated_is_not_written(cli, need_model, tmp_path, place):
    (tmp_path / "rate.up").write_text("1\n2\n3\n", "utf-8")
    traced = {"trace": str(tmp_path / "rate.up"), "buffer": "20KB"}
    places = {"path": {"bottleneck": traced}, "link": {"links": [{"forward": [traced]}]}, "access": {"flows": [{"access": {"before": [traced]}}]}}
    path = {"forward": "netem delay 5ms", "duration": "1s", **places[place]}
    (tmp_path / "s.yaml").write_text(json.dumps(path), "utf-8")
    assert cli("run", tmp_path / "s.yaml", "--seeds", "1", "--out", tmp_path / "o").status == 0
    refused = cli("export", tmp_path / "o", "--to", "bundle", "--out", tmp_path / "b.zip")
    assert refused.status == 2
    assert "a bundle cannot repeat the trace" in refused.err
    assert len(refused.err.splitlines()) == 1
    assert not (tmp_path / "b.zip").exists()
