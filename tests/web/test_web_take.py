"""What the page hands out: commands, files and Python that run the very same trials, and one run as other tools' files."""

import os
import random
import shlex
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
from asking import ask

import tcpscape
from tcpscape.errors import TcpscapeError
from tcpscape.findings import fairness
from tcpscape.metrics.flows import jain_index
from tcpscape.web.questions import mix as sharing
from tcpscape.web.state import State

pytest.importorskip("starlette", reason="tcpscape[web] is not installed")

from tcpscape import engines
from tcpscape.store.results import Store
from tcpscape.trial import Capture
from tcpscape.web import download, start, take
from tcpscape.web.pool import Pool
from tcpscape.web.routes import Context

STATES = {
    "defaults": {},
    "jitter": {"rtt": "60ms", "jitter": "6ms", "order": "keep", "cca": ("cubic", "bbr", "cubic:hystart=0")},
    "lossy": {"rtt": "30ms", "loss": "0.5%", "loss_on": "forward", "rate": "10mbit", "buffer": "2bdp", "cca": ("reno",)},
    "aqm": {"rate": "12mbit", "queue": "fq_codel", "ecn": True, "cca": ("cubic", "dctcp")},
    "no limit": {"rate": "", "buffer": "2bdp", "rtt": "10ms"},
    "slow reader": {"rcvbuf": "64KiB", "read": "16KiB/1ms", "app": "1MB/s"},
    "kernel": {"kernel": "6.12,rmem_max=4MiB"},
    "changes": {"rate": "20mbit", "changes": ("bottleneck@1s: rate 5mbit", "forward@1500ms: delay 40ms")},
    "mixture": {"rate": "20mbit", "mix": "cubic*2,bbr@500ms"},
    "words": {"words": {"forward": "netem delay 20ms 2ms", "bottleneck": "tbf rate 10mbit burst 6056 limit 62500", "reverse": "netem delay 20ms"}},
    "awkward": {"rate": "10mbit", "queue": "pie limit 100 target 15ms", "distribution": "pareto", "jitter": "2ms", "jitter_on": "reverse"},
}


def hashes(trials):
    return {(t.cca, t.seed, t.hash, t.address) for t in trials}


def of_page(state: State, seeds: str, axes=None):
    model = engines.make("model")
    numbers = take.levels.parse_seeds(seeds)
    return [t for case in take.Copies(state, seeds, axes).campaign.cases() for t in model.run(case.scenario, numbers)]


def kept(root):
    with Store(root, create=False) as store:
        return list(store.load_many(store.addresses()).values())


def typed(command: str, cli, folder) -> list:
    """The trials of a copied command: a file that it writes is written by a shell, tcpscape runs in this process."""
    *before, last = command.replace(" \\\n", " ").split("\ntcpscape ")
    words = shlex.split(last)
    if before:
        subprocess.run(["/bin/sh", "-c", before[0]], cwd=folder, check=True)
    elif words[0] == "tcpscape":
        words = words[1:]
    assert words[0] in ("sweep", "run")
    got = cli(*words, "--out", folder / "out", "--quiet")
    assert got.status == 0, got.err
    return kept(folder / "out")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


CURVES = {"jitter": {"jitter": ("0ms", "3ms")}, "kernel": {"duration": ("500ms", "1s")}, "words": {"duration": ("500ms", "1s")}}


@pytest.mark.usefixtures("need_model")
@pytest.mark.parametrize(
    ("name", "duration", "seeds", "axes"),
    [*((name, "2s", "2", None) for name in STATES), *((name, "1s", "3..4", axes) for name, axes in CURVES.items())],
)
def test_each_copy_runs_the_trials_of_the_page(name, duration, seeds, axes, cli, here):
    state = State.model_validate({"duration": duration, **STATES[name]})
    copies, expected = take.Copies(state, seeds, axes), hashes(of_page(state, seeds, axes))
    assert hashes(typed(copies.command, cli, here)) == expected
    assert hashes(program(copies.python)) == expected
    (here / "again").mkdir()
    os.chdir(here / "again")
    assert hashes(of_file(copies.file("http://127.0.0.1/#rtt=1ms"), cli, here / "again")) == expected


def program(text: str) -> list:
    names: dict = {}
    exec(compile(text, "copied.py", "exec"), names)
    return [trial for cell in names["outcome"].cells for trial in cell.trials]


def of_file(text: str, cli, folder) -> list:
    """The trials of a copied file, run as its own comment says."""
    (folder / take.FILE).write_text(text)
    comment = next(line.removeprefix("# ") for line in text.splitlines() if line.startswith("# tcpscape "))
    return typed(comment, cli, folder)


PRESETS = {preset.id: preset for preset in start.document()["presets"]}


@pytest.mark.usefixtures("need_model")
@pytest.mark.parametrize("name", PRESETS)
def test_copies_of_a_preset_run_its_trials(name, cli, here):
    """One trial of each; what differs between the three languages is tested above."""
    state = State.model_validate({**PRESETS[name].state, "duration": "6s" if PRESETS[name].state.get("mix") else "1s", "changes": ()})
    copies, expected = take.Copies(state, "1"), hashes(of_page(state, "1"))
    assert hashes(typed(copies.command, cli, here)) == expected
    in_words = "words" in PRESETS[name].state
    assert ("cat >" in copies.command) == in_words, "every preset without changes and words is said by options"
    assert hashes(program(copies.python)) == expected
    whole = take.Copies(State.model_validate(PRESETS[name].state), "1")
    whole.expect_sense()
    assert ("cat >" in whole.command) == (in_words or "changes" in PRESETS[name].state)


CHOICES = {
    "rtt": ("10ms", "50ms", "0.08s"),
    "jitter": ("", "1ms", "8ms"),
    "jitter_on": ("", "both", "forward", "reverse"),
    "loss": ("", "0.1%", "2%"),
    "loss_on": ("", "forward", "both"),
    "order": ("", "reorder", "keep", "clamp"),
    "rate": ("", "10mbit", "42mbit"),
    "buffer": ("", "0.5bdp", "64KB", "2bdp"),
    "queue": ("", "fq_codel", "codel limit 200", "pfifo limit 50"),
    "rcvbuf": ("", "256KiB"),
    "app": ("", "0", "500KB/s"),
    "read": ("", "16KiB/2ms"),
    "ecn": (False, True),
    "kernel": ("", "6.1", "6.12,rmem_max=4MiB"),
    "cca": (("cubic",), ("bbr", "cubic:hystart=0"), ("reno", "cubic", "bbr")),
    "loss_burst": ("", "", "3"),
    "limit": ("", "", "1000"),
    "reverse_at": ("", "sender"),
    "mix": ("", "", "", "cubic,bbr"),
    "changes": ((), (), ("bottleneck@100ms: rate 5mbit",)),
    "duration": ("200ms",),
}


@pytest.mark.usefixtures("need_model")
@pytest.mark.parametrize("seed", range(40))
def test_copies_of_any_state_mean_its_scenarios(seed):
    """What a copy stands for is compared without running it; a state that makes no sense has no copies, in one line."""
    rng = random.Random(seed)
    state = State.model_validate({name: rng.choice(values) for name, values in CHOICES.items()})
    copies = take.Copies(state, "1")
    try:
        copies.expect_sense()
    except TcpscapeError:
        with pytest.raises(TcpscapeError, match=r"^[^\n]+$"):
            take.take(None, take.Take.model_validate({"page": "0" * 8, "state": state.model_dump(mode="json")}))
        return
    assert hashes(program(copies.python)) == hashes(of_page(state, "1"))
    assert "sweep" in copies.command
    if copies.options is not None:
        assert "cat >" not in copies.command
        plain = {name: value for name, value in copies.options.items() if name in take.PLAIN}
        assert all(getattr(state, name) == value for name, value in plain.items())
    assert len(copies.campaign.cases()) == (1 if state.mix else len(state.cca))


def test_what_is_hostile_stays_a_word():
    """Shell, YAML and Python get the texts of a state as data."""
    state = State.model_validate({"rate": "10mbit", "queue": "pfifo limit 50 '; touch /tmp/x; '"})
    with pytest.raises(TcpscapeError):
        take.Copies(state).expect_sense()
    copies = take.Copies(State(), "2")
    text = copies.file("http://127.0.0.1/#\nflows: [{cca: reno}]\n\x1b[2J")
    assert [line for line in text.splitlines() if line.startswith("flows") and "reno" in line] == []
    assert "\x1b" not in text


@pytest.mark.usefixtures("need_model")
def test_the_route_gives_the_three_texts():
    asked = take.Take.model_validate(
        {"page": "0" * 8, "state": {"rtt": "60ms"}, "seeds": "5", "axes": {"jitter": ["0ms", "2ms"]}, "address": "http://x/#a"}
    )
    texts = take.take(None, asked)
    assert set(texts) == {"command", "yaml", "python"}
    assert "--jitter 0ms,2ms" in texts["command"]
    assert texts["yaml"].startswith("# Taken from tcpscape explore")
    listed = take.take(None, take.Take.model_validate({"page": "0" * 8, "state": {}, "axes": {"rtt": []}}))
    assert "--rtt " in listed["command"]


# ---- files


@pytest.fixture
def context():
    """What a request may use, with a pool of its own."""
    pool = Pool(1)
    yield Context(None, SimpleNamespace(pool=pool))
    pool.close()


def asking(**fields):
    return download.Asking.model_validate({"page": "0" * 8, **fields})


@pytest.mark.usefixtures("need_model")
@pytest.mark.parametrize("kind", download.KINDS)
def test_a_run_is_a_file(kind, tmp_path, context):
    asked = asking(state={"rate": "10mbit", "duration": "2s"}, cca="bbr", seed=3)
    file = download._answer(download.KINDS[kind], context, asked)
    assert file.name == f"tcpscape-bbr-seed3{download.KINDS[kind].suffix}"
    scenario = asked.state.scenario("bbr")
    trial = engines.make("model").run(scenario, [3], capture=Capture(10**6, 10**6))[0]
    if kind == "csv":
        header, *rows = file.data.decode().splitlines()
        assert len(rows) == trial.samples.height
        assert {"cwnd", "seed", "cca"} <= set(header.split(","))
    if kind == "pcapng":
        out = tmp_path / "same.pcapng"
        engines.make("model").write_pcap(scenario, 3, out)
        assert file.data == out.read_bytes()
    if kind == "qlog":
        assert b'"transport:packet_sent"' in file.data
        assert trial.address.encode() in file.data
    if kind == "perfetto":
        messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="the perfetto package is not installed")
        assert len(messages.Trace.FromString(file.data).packet) > trial.samples.height


@pytest.mark.usefixtures("need_model")
def test_a_mixture_is_a_file_with_all_of_its_flows(context):
    asked = asking(state={"rate": "10mbit", "duration": "1s", "mix": "cubic,bbr"}, cca="anything")
    rows = download._answer(download.KINDS["csv"], context, asked).data.decode().splitlines()
    assert {row.split(",")[rows[0].split(",").index("cca")] for row in rows[1:]} == {"cubic", "bbr"}


@pytest.mark.usefixtures("need_model")
@pytest.mark.parametrize("kind", download.KINDS)
def test_a_run_that_is_too_long_is_refused_at_once(kind, context):
    asked = asking(state={"rate": "10gbit", "rtt": "1ms", "duration": "1h"}, cca="cubic")
    with pytest.raises(TcpscapeError, match=r"^duration: [^\n]+; [^\n]+$"):
        download._answer(download.KINDS[kind], context, asked)


@pytest.mark.parametrize(("seconds", "ms"), [(1, 1), (10, 1), (20, 1), (21, 2), (45, 5), (150, 10), (3600, 200)])
def test_a_long_run_is_sampled_less_often(seconds, ms):
    assert download.sampling(seconds * 10**9) == ms * 10**6


# The explorer's question `mix`: shares over time and over seeds are those of `tcpscape run --mix`.


STATE = State(rtt="40ms", rate="20mbit", duration="8s", mix="cubic*2,bbr@2s-6s")


def test_the_verdict_is_that_of_a_run_with_the_same_seeds() -> None:
    last = ask("mix", STATE, seeds=5, seed=3)[-1]
    ran = tcpscape.run(STATE.scenario("cubic"), seeds=5, samples="10ms")
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
    [trial] = tcpscape.run(STATE.scenario("cubic"), seeds=1, samples="20ms").cells[0].trials
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
    [trial] = tcpscape.run(state.scenario("cubic"), seeds=1, samples=f"{shares.values['every_s'] / 5 * 1e3:g}ms").cells[0].trials
    acked = trial.samples.group_by("flow").max()["delivered"].sum() * 1448
    assert carried * shares.values["every_s"] / 8 == pytest.approx(acked, rel=1e-5)


def test_a_mixture_that_makes_no_sense_is_one_line() -> None:
    for mix in ("", "cubic*0", "cubic@5s-2s", "nobody", "cubic;bbr"):
        with pytest.raises(TcpscapeError):
            ask("mix", STATE.model_copy(update={"mix": mix}))


@pytest.mark.parametrize(
    ("duration", "rtt", "expected"),
    [
        (10_000_000_000, 50_000_000, 100_000_000),
        (8_000_000_000, 40_000_000, 100_000_000),
        (60_000_000_000, 600_000_000, 2_000_000_000),
        (100, 400, 50),
    ],
)
def test_intervals_are_round_and_some_round_trips_long(duration: int, rtt: int, expected: int) -> None:
    assert sharing.bin_ns(duration, rtt) == expected
