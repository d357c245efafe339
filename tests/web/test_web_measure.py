"""What the explorer opens, diagnoses, follows and checks; the browser's side is tested in tests/browser."""

import contextlib
import gzip
import json
import os
import re
import shutil
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import POOL, ask

import tcpscape
from conftest import TESTS
from patience import PATIENCE_S
from tcpscape import engines
from tcpscape.campaign import execute, record
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Execution
from tcpscape.engines import REGISTRY, Mock
from tcpscape.errors import StoreError, TcpscapeError
from tcpscape.findings.diagnosis.replay.lab import measure
from tcpscape.reading import files as reading
from tcpscape.reading.files import Kind
from tcpscape.reading.streams import Stream
from tcpscape.scenario import files as scenarios
from tcpscape.scenario.scenario import Scenario
from tcpscape.store.results import Store
from tcpscape.studies import study as studies
from tcpscape.trial import Capture
from tcpscape.web.opened import Follower, Measurement, Opened, Results, Setup, Uploads, of_argument
from tcpscape.web.pool import Cancelled, Work
from tcpscape.web.questions import KINDS
from tcpscape.web.questions.check import engines_here
from tcpscape.web.state import State
from tcpscape.web.stream import Block
from tcpscape.words import campaign as answer
from tcpscape.words import diagnosis as document

DATA = TESTS / "data"
PATH = Scenario.of(
    {"forward": "netem delay 10ms", "bottleneck": {"rate": "10mbit"}, "reverse": "netem delay 10ms", "duration": "2s", "flows": [{"cca": "cubic"}]}
)
SWEEP = Campaign.of(
    {
        "name": "grid",
        "conditions": {"rtt": "20ms", "rate": "5mbit", "duration": "500ms"},
        "axes": {"jitter": ["0ms", "2ms"]},
        "cca": ["cubic", "bbr"],
        "seeds": "3",
    }
)
KIND = Kind("a file", "name another")
HOSTILE = "<img src=x onerror=alert(1)>.pcap"


def last(blocks: list[Block], name: str) -> Block:
    return [block for block in blocks if block.name == name][-1]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of two seconds at 10 Mbit/s."""
    file = tmp_path_factory.mktemp("capture") / "a.pcap"
    engines.make("model").write_pcap(PATH, 0, file)
    return file


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results") / "kept"
    with Store(root) as store:
        record.measure("sweep", SWEEP, Execution(store=store), "tcpscape sweep")
    return root


# What the command line names


def test_every_kind_of_measurement_gives_the_document_of_diagnose(capture: Path, tmp_path: Path) -> None:
    packed, lines = tmp_path / "a.pcap.gz", tmp_path / "run.json"
    packed.write_bytes(gzip.compress(capture.read_bytes(), 1))
    trial = engines.make("model").run(PATH, [0])[0]
    lines.write_text(json.dumps(trial.to_dict()) + "\n")
    flent = next((DATA / "interchange").glob("*.flent.gz"))
    for file in (capture, packed, lines, flent, DATA / "interchange/iperf3-up-2.json", DATA / "ss/6.1-timed.txt"):
        opened = of_argument(str(file))
        assert isinstance(opened, Measurement)
        blocks = ask("measure", State(), opened, replay=False)
        expected = document.document(tcpscape.diagnose(file, flows=1, replay=False))
        assert last(blocks, "document").values == expected | {"source": {**expected["source"], "name": str(file)}}
        assert last(blocks, "flow").values["final"] is True


def test_a_replay_is_that_of_diagnose_and_stands_beside_the_observation(capture: Path) -> None:
    blocks = ask("measure", State(), of_argument(str(capture)), quick=True)
    names = [block.name for block in blocks if block.name != "progress"]
    assert names == ["source", "flow", "observed", "limits", "flow", "replay", "document"]
    expected = document.document(tcpscape.diagnose(capture, flows=1, quick=True))
    assert json.loads(json.dumps(last(blocks, "document").values)) == json.loads(json.dumps(expected))
    first, final = (block.values for block in blocks if block.name == "flow")
    assert (len(first["sentences"]), len(final["sentences"])) == (2, 3)
    assert " ".join(final["sentences"]) == expected["flows"][0]["answer"]
    observed, replay = last(blocks, "observed").columns, last(blocks, "replay").columns
    carried = [float(np.nanmean(columns["goodput"])) for columns in (observed, replay)]
    assert carried[1] == pytest.approx(carried[0], rel=0.1)
    assert carried[0] == pytest.approx(1e6 * expected["flows"][0]["goodput_mbps"], rel=0.1)
    assert (replay["rtt.low"] <= replay["rtt.high"] + 1e-12)[~np.isnan(replay["rtt.low"])].all()
    repeated = tcpscape.diagnose(capture, flows=1, quick=True).flows[0].repeated
    (run,) = engines.make("model").run(repeated.scenario, [0], capture=Capture(samples_ns=10_000_000))
    assert float(np.nanmedian(replay["rtt"])) == pytest.approx(measure(run, 0.0).rtt_ms / 1e3, rel=0.05)


def test_samples_show_rtt_and_flight_over_time(tmp_path: Path) -> None:
    with Store(tmp_path / "sampled") as store:
        record.measure("sweep", SWEEP.model_copy(update={"samples": 20_000_000}), Execution(store=store), "tcpscape sweep")
    for file in (tmp_path / "sampled", DATA / "ss/6.1-timed.txt"):
        observed = last(ask("measure", State(), of_argument(str(file)), replay=False), "observed").columns
        assert np.nanmax(observed["rtt"]) > 0
        assert file.suffix or {"goodput", "rtt", "flight"} <= set(observed)


def test_the_sliders_move_to_the_fitted_path(capture: Path) -> None:
    found = last(ask("measure", State(), of_argument(str(capture)), quick=True), "flow").values
    state = found["state"]
    assert state.rtt
    assert (state.rate, state.cca) == ("10mbit", ("cubic",))
    fitted = tcpscape.diagnose(capture, flows=1, quick=True).flows[0].repeated
    assert state.scenario("cubic").rtt_ns == fitted.scenario.rtt_ns
    assert state.campaign().cases()


def test_names_of_galleries_and_files_are_states(tmp_path: Path) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text("forward: {delay: 20ms, jitter: 2ms, at: router}\nreverse: {delay: 20ms, at: router}\nbottleneck: {rate: 8mbit}\nduration: 3s\n")
    opened = of_argument(str(own))
    assert isinstance(opened, Setup)
    values = opened.document()
    assert values["remarks"] == []
    said = {"rtt": "40ms", "jitter": "2ms", "jitter_on": "forward", "rate": "8mbit", "duration": "3s"}
    assert said.items() <= values["state"].model_dump(mode="json").items()
    with pytest.raises(TcpscapeError, match="which the explorer cannot show; run it with"):
        of_argument("spike-rtts")
    for name in sorted({*studies.names()} - {*scenarios.gallery(), "spike-rtts"}):
        study = of_argument(name)
        assert isinstance(study, Setup)
        assert study.document()["about"].startswith(f"the study {name}")


def test_what_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty.pcap").write_bytes(b"")
    (tmp_path / "noise").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "none").mkdir()
    os.mkfifo(tmp_path / "fifo")
    for name in ("empty.pcap", "noise", "none", "fifo", "not-there"):
        with pytest.raises(TcpscapeError):
            ask("measure", State(), of_argument(str(tmp_path / name)))
    for kind in ("measure", "kept"):
        with pytest.raises(TcpscapeError, match="open"):
            ask(kind, State())


def test_a_file_that_grows_is_diagnosed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcpscape.web.questions.measure.LOOK_S", 0.02)
    whole = (DATA / "ss/6.1-timed.txt").read_text()
    file, blocks = tmp_path / "ss.txt", list[Block]()
    file.write_text(whole[: len(whole) // 2].rpartition("\n")[0] + "\n")
    work, opened = Work(POOL, blocks.append), of_argument(str(file))

    def run() -> None:
        with contextlib.suppress(Cancelled):
            KINDS["measure"].model_validate({"replay": False, "follow": True}).answer(State(), work, opened)

    def documents(count: int) -> list[Block]:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if len(found := [block for block in blocks if block.name == "document"]) >= count:
                return found
            time.sleep(0.02)
        raise AssertionError(f"there are no {count} diagnoses: {[block.name for block in blocks]}")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    documents(1)
    file.write_text(whole)
    first, second = documents(2)
    work.cancel()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert first.values != second.values
    assert second.values == document.document(tcpscape.diagnose(file, flows=1, replay=False))


# Results that are kept


def test_a_directory_shows_the_answer_and_the_cells_of_its_command(directory: Path) -> None:
    opened = of_argument(str(directory))
    blocks = ask("kept", State(), opened)
    outcome = record.load(directory).parts[""]
    kept, cells = last(blocks, "kept").values, last(blocks, "cells").values
    assert kept["answer"] == answer.screen(outcome).answer
    assert kept["parts"] == [{"label": "", "done": 12, "total": 12, "state": "finished"}]
    assert [tuple(row) for row in cells["rows"]] == [tuple(map(str, row)) for row in outcome.table(wide=True).rows]
    points = last(blocks, "points").columns
    here = [outcome.cells[i].median().value * 1e6 for i in range(len(outcome.cells))]
    assert sorted(points["goodput"]) == pytest.approx(sorted(here))
    assert list(last(blocks, "axis").columns["x"]) == [0.0, 0.002]


def test_a_cell_moves_the_sliders_and_its_flows_are_diagnosed(directory: Path) -> None:
    values = last(ask("kept", State(), of_argument(str(directory)), cell=2), "state").values
    assert {"jitter": "2ms", "rtt": "20ms", "rate": "5mbit"}.items() <= values["state"].model_dump(mode="json").items()
    assert values["remarks"] == []
    with pytest.raises(TcpscapeError, match="cell"):
        ask("kept", State(), of_argument(str(directory)), cell=400)
    assert last(ask("measure", State(), of_argument(str(directory)), replay=False), "document").values["source"]["kind"] == "result"


def test_a_campaign_is_followed_while_its_trials_land(tmp_path: Path) -> None:
    model, blocks = engines.make("model"), list[Block]()
    writer = Store(tmp_path / "run")
    writer.announce({"campaign": SWEEP.to_dict(), "versions": {"model": model.version}})
    opened, cases = of_argument(str(tmp_path / "run")), SWEEP.cases()
    work = Work(POOL, blocks.append)
    thread = threading.Thread(target=lambda: KINDS["kept"].model_validate({}).answer(State(), work, opened), daemon=True)
    thread.start()

    def wait(done: int, running: bool) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            for block in reversed(blocks):
                if block.name == "kept" and block.values["parts"][0]["done"] == done and block.values["running"] == running:
                    return dict(block.values)
            time.sleep(0.02)
        raise AssertionError(f"{done} trials were never shown: {[b.values.get('parts') for b in blocks]}")

    assert wait(0, True)["parts"][0] | {"label": ""} == {"label": "", "done": 0, "total": 12, "state": "running"}
    for case in cases[:2]:
        writer.save_many(model.run(case.scenario, range(3)))
    assert "answer" in wait(6, True)
    writer.close()
    with Store(tmp_path / "run") as again:
        record.measure("sweep", SWEEP, Execution(store=again), "tcpscape sweep")
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert last(ask("kept", State(), opened), "kept").values["answer"] == answer.screen(record.load(tmp_path / "run").parts[""]).answer


def test_a_finished_campaign_whose_writer_stays_is_shown_once(tmp_path: Path) -> None:
    with Store(tmp_path / "run") as store:
        record.measure("sweep", SWEEP, Execution(store=store), "tcpscape sweep")
        values = last(ask("kept", State(), of_argument(str(tmp_path / "run"))), "kept").values
    assert values["parts"] == [{"label": "", "done": 12, "total": 12, "state": "finished"}]
    assert values["running"] is False


def test_an_interrupted_campaign_shows_what_is_there(tmp_path: Path) -> None:
    campaign = SWEEP.model_copy(update={"seeds": "100"})
    ran = []

    def stop(done: int, total: int) -> None:
        ran.append(done)
        if done >= 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Store(tmp_path / "run") as store:
        execute.run(campaign, Execution(jobs=1, store=store, progress=stop))
    (part,) = last(ask("kept", State(), of_argument(str(tmp_path / "run"))), "kept").values["parts"]
    assert part["state"] == "interrupted"
    assert 5 <= part["done"] < 400
    with Store(tmp_path / "run") as store:
        record.measure("sweep", campaign, Execution(store=store), "tcpscape sweep")
    (part,) = last(ask("kept", State(), of_argument(str(tmp_path / "run"))), "kept").values["parts"]
    assert (part["state"], part["done"]) == ("finished", 400)


def test_the_trials_of_a_followed_campaign_are_those_of_the_finished_one(tmp_path: Path) -> None:
    with Store(tmp_path / "run") as store:
        outcome = execute.run(SWEEP, Execution(store=store))
        with Store(tmp_path / "run", create=False) as reader:
            (one,) = Follower(reader).look()
        assert one.is_running
        assert (one.done, one.total) == (12, 12)
        assert one.outcome.cells == outcome.cells
    with Store(tmp_path / "run", create=False) as reader:
        assert Follower(reader).look() == []


# Hostile directories


READERS = (
    lambda path: reading.content(path, KIND),
    lambda path: reading.head(path, 4, KIND),
    lambda path: reading.expect_file(path, KIND),
    lambda path: reading.exists(path, KIND),
    lambda path: reading.version(path, KIND),
    lambda path: Stream(path, KIND),
)


@pytest.mark.parametrize("read", READERS)
def test_whoever_is_confined_reads_nothing_else(read: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("in/own", "out"):
        (tmp_path / name).write_text("text")
    (tmp_path / "in/link").symlink_to(tmp_path / "out")
    with reading.confined(tmp_path / "in"):
        read(tmp_path / "in/own")
        for name in ("out", "in/link", "in/../out", "nothing"):
            with pytest.raises(TcpscapeError, match="cannot be named here"):
                read(tmp_path / name)
        with pytest.raises(TcpscapeError, match="cannot be named here"):
            reading.listed(tmp_path, KIND)
    read(tmp_path / "out")


def _copy(directory: Path, to: Path) -> Path:
    shutil.copytree(directory, to)
    return to


def _changed(root: Path, statement: str, *parameters: object) -> Path:
    connection = sqlite3.connect(root / "results.sqlite")
    with connection:
        connection.execute(statement, parameters)
    connection.close()
    return root


def test_a_database_outside_of_the_directory_is_refused(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap/results.sqlite").symlink_to(directory / "results.sqlite")
    with pytest.raises(TcpscapeError, match="leads out"):
        of_argument(str(tmp_path / "trap"))


def test_a_result_cannot_name_another_file(directory: Path, tmp_path: Path) -> None:
    root, secret = _copy(directory, tmp_path / "r"), tmp_path / "secret"
    secret.write_text("the secret line\n")
    (text,) = sqlite3.connect(root / "results.sqlite").execute("SELECT document FROM manifests").fetchone()
    values = json.loads(text)
    for cell in values["cells"]:
        cell["scenarios"] = [{**cell["scenarios"][0], "bottleneck": [{"trace": str(secret)}]}]
    _changed(root, "UPDATE manifests SET document = ?", json.dumps(values))
    with pytest.raises(StoreError) as caught:
        ask("kept", State(), of_argument(str(root)))
    assert "the secret line" not in str(caught.value)
    assert "cannot be named here" in str(caught.value)


def test_a_damaged_database_is_one_line(directory: Path, tmp_path: Path) -> None:
    damaged = _copy(directory, tmp_path / "damaged")
    content = bytearray((damaged / "results.sqlite").read_bytes())
    content[200:8000] = b"\xff" * 7800
    (damaged / "results.sqlite").write_bytes(content)
    endless = "CREATE VIEW loop AS WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x FROM t) SELECT x FROM t"
    view = _changed(_copy(directory, tmp_path / "view"), endless)
    other = _changed(_copy(directory, tmp_path / "other"), "UPDATE manifests SET document = ?", '{"format": 1}')
    plan = _changed(_copy(directory, tmp_path / "plan"), "INSERT INTO plans VALUES ('x', '{\"campaign\": 5}')")
    for root in (damaged, view, other, plan):
        with pytest.raises(TcpscapeError):
            ask("kept", State(), of_argument(str(root)))


# Uploads


def take(files: Uploads, content: bytes, name: str, tmp_path: Path) -> Opened:
    """What an upload becomes; its temporary file goes, as the server's does."""
    file = tmp_path / "incoming"
    file.write_bytes(content)
    try:
        return files.take(file, name)
    finally:
        file.unlink()


def test_uploads_are_recognised_by_their_content_and_removed(capture: Path, directory: Path, tmp_path: Path) -> None:
    files = Uploads()
    measured = take(files, capture.read_bytes(), f"../../{HOSTILE}", tmp_path)
    assert isinstance(measured, Measurement)
    assert measured.name == HOSTILE
    assert last(ask("measure", State(), measured, replay=False), "source").values["name"] == HOSTILE
    with sqlite3.connect(directory / "results.sqlite") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    results = take(files, (directory / "results.sqlite").read_bytes(), "anything.pcap", tmp_path)
    assert isinstance(results, Results)
    assert last(ask("kept", State(), results), "kept").values["parts"][0]["done"] == 12
    spool = files._spool
    assert {path.name for path in spool.root.rglob("*") if path.is_file()} <= {"upload", "results.sqlite", "results.sqlite-wal", "results.sqlite-shm"}
    assert spool.root.stat().st_mode & 0o077 == 0
    measured.close()
    assert sum(1 for path in spool.root.rglob("upload")) == 0
    files.close()
    assert not spool.root.exists()


def test_a_database_that_is_none_is_called_as_the_user_calls_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "results.sqlite").write_bytes(b"SQLite format 3\0" + b"\0" * 50)
    with pytest.raises(TcpscapeError, match=r"^directory: mine\.sqlite is no database; "):
        take(Uploads(), (folder / "results.sqlite").read_bytes(), "mine.sqlite", tmp_path)
    monkeypatch.chdir(folder.parent)
    with pytest.raises(TcpscapeError, match=r"^directory: results/results\.sqlite is no database; move it away and run again"):
        of_argument("./results")
    for named in (folder, folder / "results.sqlite"):
        with pytest.raises(TcpscapeError, match=f"^directory: {re.escape(str(folder / 'results.sqlite'))} is no database; "):
            of_argument(str(named))


def test_an_upload_that_is_nothing_leaves_nothing(tmp_path: Path) -> None:
    files = Uploads()
    for content in (b"", b"hello", bytes(range(256)) * 40, b"SQLite format 3\0" + b"x" * 5000):
        with pytest.raises(TcpscapeError) as caught:
            ask("measure", State(), take(files, content, HOSTILE, tmp_path))
        assert "/tmp" not in str(caught.value)
        assert HOSTILE in str(caught.value)
    assert files._spool is not None
    assert len([path for path in files._spool.root.rglob("*") if path.is_file()]) <= 1, "what is damaged beyond its begin is open until it is closed"
    files.close()


def test_uploads_are_bounded(capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcpscape.web.opened.MOST_FILES", 2)
    files = Uploads()
    for _ in range(2):
        take(files, capture.read_bytes(), "a.pcap", tmp_path)
    with pytest.raises(TcpscapeError, match="2 uploads are open"):
        take(files, capture.read_bytes(), "a.pcap", tmp_path)
    files.close()
    monkeypatch.setattr("tcpscape.web.opened.MOST_OF_ALL", 1000)
    with pytest.raises(TcpscapeError, match="all uploads together"):
        take(files, capture.read_bytes(), "a.pcap", tmp_path)
    files.close()


@pytest.mark.parametrize(
    "text",
    [
        "forward: netem delay 10ms\nflows: [{cca: '/tmp/x.py:Evil'}]\n",
        "forward: netem delay 10ms\nflows: [{cca: {name: 'os:Evil'}}]\n",
        "forward: netem delay 10ms\nbottleneck: {trace: SECRET}\n",
        "scenario: SECRET.yaml\naxes: {rtt: [10ms]}\n",
        "scenario: baseline\nmix: 'cubic,/tmp/x.py:Evil@1s'\n",
        "a: &a [1, 2]\nb: [*a, *a\n",
        "- 1\n",
    ],
)
def test_an_uploaded_scenario_names_no_file_and_no_code(text: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret line\n")
    (tmp_path / "secret.yaml").write_text("forward: netem delay 10ms\n")
    with pytest.raises(TcpscapeError) as caught:
        take(Uploads(), text.replace("SECRET", str(secret)).encode(), "x.yaml", tmp_path)
    assert "the secret line" not in str(caught.value)


def test_an_uploaded_campaign_is_a_state(tmp_path: Path) -> None:
    text = b"conditions: {rtt: 30ms, rate: 5mbit}\naxes: {jitter: 0..4ms/2ms}\ncca: [bbr, reno]\n"
    opened = take(Uploads(), text, "x.yaml", tmp_path)
    assert opened.document()["axes"] == {"jitter": ["0ms", "2ms", "4ms"]}
    assert {"rtt": "30ms", "rate": "5mbit", "cca": ["bbr", "reno"]}.items() <= opened.document()["state"].model_dump(mode="json").items()


# Checks


SHORT = State(rtt="20ms", rate="5mbit", duration="500ms")


def test_a_check_shows_both_with_their_ratio() -> None:
    blocks = ask("check", SHORT, engine="mock", seeds=5)
    values = last(blocks, "check").values
    assert (values["done"], values["total"]) == (10, 10)
    campaign = SHORT.campaign(engines=["model", "mock"], seeds="5")
    outcome = execute.run(campaign)
    for row in values["rows"]:
        model, mock = (next(c for c in outcome.cells if c.cca == row["cca"] and c.engine == name) for name in ("model", "mock"))
        assert (row["model"]["value"], row["real"]["value"]) == (model.mean().value, mock.mean().value)
        ratio = mock.over(model)
        assert (row["ratio"]["value"], row["ratio"]["low"], row["ratio"]["high"]) == (ratio.value, ratio.low, ratio.high)
    assert "mock engine: the numbers mean nothing" in values["caveats"]


@pytest.mark.parametrize(
    ("state", "options", "line"),
    [
        (SHORT, {"engine": "model"}, "checked by itself"),
        (SHORT, {"engine": "virtual:none-of-this-name"}, "kernel"),
        (SHORT, {"engine": "nothing"}, "unknown"),
        (SHORT.replace(duration="10m"), {"engine": "mock"}, "duration"),
        (SHORT.replace(mix="cubic*60"), {"engine": "mock"}, "flows"),
        (SHORT.replace(cca=("vegas",)), {"engine": "mock"}, "vegas"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_one_line(state: State, options: dict[str, str], line: str) -> None:
    with pytest.raises(TcpscapeError, match=line):
        ask("check", state, **options)


class Slow(Mock):
    """An engine whose trials last until it is stopped."""

    ended = threading.Event()

    def run(self, scenario: Scenario, seeds: Any, *, threads: int = 1, capture: Capture = Capture()) -> Any:
        if not self.ended.wait(PATIENCE_S):
            raise AssertionError("nobody stopped the engine")
        raise TcpscapeError("stopped")

    def stop(self) -> None:
        self.ended.set()


def test_a_cancelled_check_stops_its_own_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "slow", Slow)
    blocks: list[Block] = []
    work = Work(POOL, blocks.append)
    over: list[type[BaseException]] = []

    def run() -> None:
        try:
            KINDS["check"].model_validate({"engine": "slow"}).answer(SHORT, work, None)
        except BaseException as e:
            over.append(type(e))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    end = time.monotonic() + PATIENCE_S
    while not blocks and time.monotonic() < end:
        time.sleep(0.01)
    with pytest.raises(TcpscapeError, match="another page"):
        ask("check", SHORT, engine="mock")
    work.cancel()
    thread.join(PATIENCE_S)
    assert over == [Cancelled]
    assert Slow.ended.is_set()
    assert last(ask("check", SHORT, engine="mock", seeds=1), "check").values["done"] == 2


def test_engines_that_are_missing_say_what_to_do() -> None:
    found = engines_here()
    assert {one["name"].partition(":")[0] for one in found} == {"virtual", "live"}
    assert all(one["missing"] == "" or ";" in one["missing"] or "`" in one["missing"] for one in found)


@pytest.mark.slow
def test_a_check_on_a_real_kernel() -> None:
    ready = [one["name"] for one in engines_here() if one["name"].startswith("virtual") and not one["missing"]]
    if not ready:
        pytest.skip("no kernel is built: `tcpscape kernel build`")
    values = last(ask("check", State(rtt="20ms", rate="5mbit", duration="3s"), engine=ready[0], seeds=2), "check").values
    assert values["done"] == 4
    assert all(row["ratio"]["value"] == pytest.approx(1, rel=0.15) for row in values["rows"])
