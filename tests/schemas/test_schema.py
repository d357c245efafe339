"""Schemas: what every command prints is as its schema says, with no field besides, and a scenario's schema agrees with what reads scenarios."""

import copy
import json
import sqlite3
from typing import Any

import jsonschema
import polars as pl
import pytest
import yaml

import tcpscape
from conftest import ROOT, expect, validator
from tcpscape import formats
from tcpscape.campaign.campaign import Campaign
from tcpscape.engines.model import Model
from tcpscape.errors import EngineError, ScenarioError, StoreError, TcpscapeError
from tcpscape.formats import FORMATS
from tcpscape.kernels import cache
from tcpscape.reading import packaged
from tcpscape.scenario import files
from tcpscape.scenario.scenario import Scenario
from tcpscape.schemas.documents import DOCUMENTS
from tcpscape.schemas.tables import TABLES
from tcpscape.store.results import Store
from tcpscape.studies import study
from tcpscape.trial import Capture, Trial


def parts(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(name, value) for part in (schema, *schema.get("$defs", {}).values()) for name, value in part.get("properties", {}).items()]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_is_valid_and_describes_every_property(name):
    schema = DOCUMENTS[name].schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:tcpscape:schema:{name}:{FORMATS[name]}"
    assert schema["title"] == f"tcpscape {name}"
    assert schema["description"]
    assert not [field for field, value in parts(schema) if not value.get("description") or ":class:" in value["description"]]
    assert "format" in schema["properties"]
    assert not [part for part in (schema, *schema.get("$defs", {}).values()) if "properties" in part and part["additionalProperties"] is not False]


def test_every_kind_with_a_format_has_a_schema():
    assert set(DOCUMENTS) == set(FORMATS)


def test_the_command_lists_prints_and_writes_them(cli, tmp_path):
    listed = cli("schema").out
    assert [line.split()[0] for line in listed.splitlines()[1:]] == [*DOCUMENTS, *TABLES]
    assert json.loads(cli("schema", "trial").out) == DOCUMENTS["trial"].schema()
    assert json.loads(cli("schema", "flows").out) == TABLES["flows"].schema()
    assert cli("schema", "--out", tmp_path).status == 0
    assert {p.name for p in tmp_path.iterdir()} == {f"{name}.schema.json" for name in (*DOCUMENTS, *TABLES)}


LONG = {"shared-bottleneck": "6s", "rate-drop": "16s"}
"""Scenarios in which something begins late."""


@pytest.mark.parametrize(
    "path",
    [
        ("baseline",),
        ("starlink-baseline", "--cca", "cubic,bbr"),
        ("lossy-dsl", "--mix", "cubic*2,bbr@500ms"),
        ("shared-bottleneck",),
        ("rate-drop",),
        ("--forward", "netem delay 20ms", "--bottleneck", "tbf rate 10mbit burst 6056 limit 62500; fq_codel limit 100", "--cca", "dctcp", "--ecn"),
        ("--forward", "netem delay 20ms", "--player", "1,2.5,5mbit"),
        ("--forward", "netem delay 20ms", "--engine", "mock"),
        ("rrul",),
        ("web",),
        ("dumbbell",),
        ("incast",),
    ],
    ids=" ".join,
)
def test_trials(cli, need_model, path):
    answer = cli("run", *path, "--duration", LONG.get(path[0], "1s"), "--seeds", "2", "--json", "--check", "goodput > 0", "--check", "rtt_p95 < 9s")
    assert answer.lines, answer.err
    for line in answer.lines:
        expect("trial", line)
    verdicts = [json.loads(line) for line in answer.err.splitlines()]
    assert verdicts
    for verdict in verdicts:
        expect("check", verdict)


def test_trials_under_a_control_in_python(cli, need_model, tmp_path):
    (tmp_path / "mine.py").write_text("import tcpscape\n\n\nclass Mine(tcpscape.Control):\n    def on_ack(self, sample, window):\n        pass\n")
    answer = cli("run", "baseline", "--duration", "500ms", "--seeds", "1", "--cca", f"{tmp_path / 'mine.py'}:Mine", "--json")
    expect("trial", answer.lines[0])
    assert answer.lines[0]["hook_cost"]["acks"] > 0


@pytest.mark.slow
def test_trials_of_a_real_kernel(cli):
    from tcpscape.engines.virtual import Virtual

    if why := Virtual().unavailable():
        pytest.skip(why)
    for line in cli("run", "lossy-dsl", "--duration", "2s", "--seeds", "1", "--engine", "virtual", "--json").lines:
        expect("trial", line)


def test_cells_and_manifests(cli, need_model, tmp_path):
    out = tmp_path / "swept"
    answer = cli(
        "sweep", "--rtt", "20,40ms", "--jitter", "0,2ms", "--cca", "cubic,bbr", "--duration", "500ms", "--seeds", "3", "--out", out, "--json"
    )
    assert len(answer.lines) == 8
    for line in answer.lines:
        expect("cell", line)
    assert cli("study", "run", "baseline", "--quick", "--seeds", "1", "--engine", "mock", "--no-report", "--out", tmp_path).status == 0
    for directory in (out, tmp_path / "baseline"):
        with sqlite3.connect(directory / "results.sqlite") as database:
            manifests = [json.loads(text) for (text,) in database.execute("SELECT document FROM manifests")]
        assert manifests
        for manifest in manifests:
            expect("manifest", manifest)
            validator("campaign").validate(manifest["campaign"])
            for cell in manifest["cells"]:
                for scenario in cell["scenarios"]:
                    validator("scenario").validate(scenario)
            if manifest["study"]:
                validator("study").validate(manifest["study"])


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(("--rtt", "20ms"), marks=pytest.mark.slow),
        ("--rtt", "20ms", "--jitter", "4ms", "--loss", "0.5%", "--rate", "10mbit"),
        ("--rtt", "20ms", "--jitter", "4ms", "--rate", "10mbit", "--player", "1,2.5,5mbit"),
        pytest.param(("--rtt", "20ms", "--jitter", "6ms", "--order", "keep", "--cca", "cubic,bbr"), marks=pytest.mark.slow),
        ("--rtt", "20ms", "--rate", "10mbit", "--queue", "fq_codel", "--goal", "delay", "--cca", "cubic,bbr"),
        ("--rtt", "20ms", "--rate", "10mbit", "--cca", "bbr3,prague"),
    ],
    ids=" ".join,
)
def test_advice(cli, need_model, tmp_path, path):
    answer = cli("advise", *path, "--duration", "1s", "--seeds", "3", "--out", tmp_path, "--json")
    expect("advice", answer.lines[0])
    expect("advice", json.loads((tmp_path / "advice.json").read_text("utf-8")))


def test_edges(cli, need_model):
    for along in ("jitter", "loss"):
        (line,) = cli("cliff", "--rtt", "20ms", "--cca", "cubic", "--along", along, "--most", "0", "--duration", "500ms", "--json").lines
        expect("edge", line)
        validator("scenario").validate(line["scenario"])


def test_bounds(cli):
    for more in ((), ("--max-queue", "20ms")):
        expect("bound", cli("bound", "--from", "60mbit", "--to", "20mbit", "--rtt", "50ms", *more, "--json").lines[0])
    expect("bound", cli("bound", "--from", "60mbit", "--to", "20mbit", "--flows", "50ms:0.7,20ms:0.3", "--json").lines[0])


def test_comparisons(cli, need_model, tmp_path):
    for name, seeds in (("a", "3"), ("b", "5..8"), ("one", "1")):
        assert cli("run", "lossy-dsl", "--cca", "cubic,bbr", "--duration", "1s", "--seeds", seeds, "--out", tmp_path / name).status == 0
    for a, b, more in (("a", "b", ()), ("a", "a", ("--cca", "cubic:bbr")), ("one", "one", ("--metric", "retransmits")), ("a", "a", ())):
        expect("comparison", cli("compare", tmp_path / a, tmp_path / b, *more, "--json").lines[0])


def test_validations(cli, need_model, tmp_path):
    for more in (
        ("--random", "2", "--worst", "1"),
        ("--random", "2", "--paired", "--worst", "0"),
        ("--shared", "1", "--worst", "0", "--check", "median<=9"),
    ):
        out = tmp_path / more[0] / more[-1].replace("<", "")
        words = ("--cca", "cubic,bbr", "--engine", "model", "--engine", "mock", "--seeds", "2", "--out", out)
        assert cli("validate", *words, *more).status == 0
        expect("validation", json.loads((out / "summary.json").read_text("utf-8")))


def test_kernels():
    from tcpscape import kernels

    built = kernels.built_kernels()
    if not built:
        pytest.skip("no kernel is built: make kernel")
    record = json.loads((kernels.place(built[0].name) / "kernel.json").read_text("utf-8"))
    validator("kernel").validate({"format": 1, **record})


SCENARIOS = [f"scenarios/{name}.yaml" for name in packaged.names("scenarios", ".yaml")]
EXAMPLES = [str(p.relative_to(ROOT)) for p in sorted((ROOT / "examples").rglob("*.yaml"))]


@pytest.mark.parametrize("file", SCENARIOS)
def test_the_gallery_is_valid(file):
    validator("scenario").validate(files.read_yaml(packaged.text(file), file))


@pytest.mark.parametrize("name", packaged.names("campaigns", ".yaml"))
def test_the_campaigns_are_valid(name):
    values = files.read_yaml(packaged.text(f"campaigns/{name}.yaml"), name)
    validator("campaign").validate(values)
    assert Campaign.of({"name": name, **values})


@pytest.mark.parametrize("name", study.names())
def test_the_studies_are_valid(name):
    validator("study").validate(study.read(name))


def test_scenarios_in_the_documents_are_valid():
    found = 0
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.yaml")):
        text = page.read_text("utf-8")
        for block in [text] if page.suffix == ".yaml" else [b.partition("```")[0] for b in text.split("```yaml\n")[1:]]:
            values = files.read_yaml(block, page.name)
            if isinstance(values, dict) and {"forward", "bottleneck", "flows"} & set(values):
                validator("scenario").validate({"forward": "netem delay 5ms", **values})  # some show the flows alone
                found += 1
    assert found >= 3


WRONG = {
    "scenario": [
        {},
        {"forwards": []},
        {"duration": "10"},
        {"duration": 10},
        {"flows": [{"cca": 5}]},
        {"forward": {"delay": "5 parsecs"}},
        {"format": 2},
        [],
    ],
    "trial": [{}, {"format": 2}],
    "advice": [{"format": 1, "choice": 5}],
    "bound": [{"format": 1, "ratio": "3"}],
}


@pytest.mark.parametrize(("name", "document"), [(name, document) for name, documents in WRONG.items() for document in documents], ids=str)
def test_a_wrong_document_is_refused(name, document):
    assert not validator(name).is_valid(document)


FULL = {
    "name": "x",
    "about": "y",
    "mtu": 1500,
    "offload": True,
    "ecn": False,
    "timer_slack": "50us",
    "duration": "5s",
    "kernel": {
        "profile": "6.12",
        "rmem_max": "4MiB",
        "hz": 250,
        "slow_start_after_idle": True,
        "window": "half",
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
    },
    "forward": [
        {"at": "router", "delay": "13ms", "jitter": "7ms", "distribution": "normal", "loss": "0.125%", "order": "keep", "tau": "5ms", "limit": 1000},
        "netem delay 5ms",
    ],
    "bottleneck": {"rate": "50mbit", "buffer": "2bdp", "queue": "fq_codel", "burst": 6056},
    "reverse": {"delay": "13ms", "correlation": "10%"},
    "flows": [
        {"cca": "bbr", "rcvbuf": "256KiB", "app": "10MiB/s", "read": "16KiB/1ms", "count": 2, "start": "1s", "stop": "4s", "nodelay": False},
        {
            "cca": {"name": "cubic", "hystart": False},
            "app": {"rate": "1MB/s", "chunk": 8192},
            "read": {"size": "4KiB", "delay": "1ms"},
            "listener": "cubic",
        },
        {"player": {"ladder": "1,2.5,5mbit", "segment": "4s", "abr": "bola", "buffer": "30s"}},
        {"player": "1,2mbit"},
    ],
    "changes": [
        {"where": "bottleneck", "at": "2s", "set": {"rate": "25mbit", "limit": 5}},
        {"every": "2s", "hold": "100ms", "set": {"outage": True}},
        {"ramp": ["1s", "2s"], "start": {"delay": "10ms"}, "end": {"delay": "20ms"}, "step": "10ms"},
        {"where": "bottleneck", "trace": [["0s", "10mbit"], ["1s", "5mbit"]], "repeat": "2s"},
    ],
}
"""A scenario with every field, whose values the test below exchanges."""
VALUES = (
    None,
    True,
    False,
    0,
    1,
    5,
    -1,
    2.5,
    10**6,
    "",
    " ",
    "x",
    "5",
    "-5",
    "5ms",
    "5 MS",
    "1.5s",
    "-5ms",
    "0",
    "0s",
    "10mbit",
    "10 Mbit",
    "1MB/s",
    "64KB",
    "2bdp",
    "0.5%",
    "150%",
    "50%",
    "router",
    "keep",
    "normal",
    "cubic",
    "yes",
    "off",
    [],
    {},
    [1],
    ["5ms"],
    {"a": 1},
    {"delay": "5ms"},
    ["1s", "2s"],
    "1e3ms",
    "½s",
    "٥ms",
    "../x",
    "1_000",
    "5.0",
    "nan",
    "inf",
    "1e999ms",
    "16KiB/1ms",
    "/",
    "netem delay 5ms",
    {"name": "bbr"},
    {"rate": "5mbit"},
    "\n5ms\n",
)


def places(value: Any, path: tuple = ()) -> list[tuple]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*([path] if path else []), *(place for key, child in children for place in places(child, (*path, key)))]


def exchanged(path: tuple, value: Any) -> dict[str, Any]:
    """The full scenario with another value at a place."""
    document = copy.deepcopy(FULL)
    inner: Any = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


def is_read(document: dict[str, Any]) -> bool:
    try:
        Scenario.of(copy.deepcopy(document))
    except TcpscapeError:
        return False
    return True


def test_the_full_scenario_is_read_and_valid():
    assert is_read(FULL)
    validator("scenario").validate(FULL)


CANNOT = {"kernel", "cca", "forward", "bottleneck", "reverse", "changes", "mtu", "listener", "player", "read", "app", "name"}
"""Where a schema cannot say all: what tc's words and fields mean together, which names there are, what is too much."""
TIMES = {("duration",), ("flows", 0, "start"), ("flows", 0, "stop"), ("flows", 0, "count"), ("flows",), ("timer_slack",)}
"""Places of values that may be too large, or too late beside others."""


@pytest.mark.parametrize("share", [pytest.param(9, id="a ninth"), pytest.param(1, id="all", marks=pytest.mark.slow)])
def test_the_schema_and_the_reader_of_scenarios_agree(share):
    """Every value of the full scenario is exchanged for those of VALUES (of each place another ninth of them): what the schema refuses is not read,
    and what is not read is refused by the schema wherever it can say so."""
    chosen = [(place, value) for i, place in enumerate(places(FULL)) for j, value in enumerate(VALUES) if (i + j) % share == 0]
    verdicts = [(place, value, validator("scenario").is_valid(d), is_read(d)) for place, value in chosen for d in [exchanged(place, value)]]
    assert [(place, value) for place, value, valid, read in verdicts if read and not valid] == []
    unsaid = [(place, value) for place, value, valid, read in verdicts if valid and not read]
    assert [(place, value) for place, value in unsaid if not CANNOT & set(place) and place not in TIMES] == []
    assert min(sum(valid for *_, valid, _ in verdicts), sum(not valid for *_, valid, _ in verdicts)) > 1000 / share


def test_a_scenario_needs_a_path(cli, tmp_path):
    (tmp_path / "mine.yaml").write_text("duration: 1s\n")
    assert not validator("scenario").is_valid({"duration": "1s"})
    assert cli("run", tmp_path / "mine.yaml", "--engine", "mock").err.startswith("error: scenario: it has no path")


def test_a_field_that_there_is_not_is_refused_by_both():
    mappings = [place for place in places(FULL) if isinstance(at(place), dict) and place[-1] != "cca"]
    for place in [(), *mappings]:
        document = exchanged((*place, "nonsense"), 1)
        assert not validator("scenario").is_valid(document)
        assert not is_read(document)


def at(path: tuple) -> Any:
    value: Any = FULL
    for key in path:
        value = value[key]
    return value


def test_the_tables_have_the_columns_that_are_written(cli, need_model, tmp_path):
    out = tmp_path / "kept"
    words = ("--duration", "500ms", "--seeds", "2", "--samples", "100ms", "--out", out)
    assert cli("run", "lossy-dsl", "--cca", "cubic,bbr", *words).status == 0
    assert cli("run", "--forward", "netem delay 5ms", "--player", "1,2mbit", *words).status == 0
    flows = pl.concat([outcome.flows() for outcome in tcpscape.load(out).parts.values()], how="diagonal_relaxed")
    has("flows", flows, without=NETWORKS)
    assert cli("export", out, "--to", "csv", "--cca", "bbr", "--out", tmp_path / "flows.csv").status == 0
    has("flows", pl.read_csv(tmp_path / "flows.csv", infer_schema_length=None), typed=False, axis=("part",), without=OPTIONAL)
    for name in ("samples", "queue_samples"):
        has(name, pl.read_parquet(next((out / name).iterdir())), without=KERNELS)
    scenario = tcpscape.load("lossy-dsl").model_copy(update={"duration": 10**9})
    has("packets", Model().run(scenario, [1], capture=Capture(packets=True))[0].packets)
    has("frame", next(iter(tcpscape.load(out).parts.values())).frame(), metric="goodput")


def test_the_tables_of_answers_have_the_columns_that_are_written(cli, need_model, tmp_path):
    assert (
        cli("sweep", "--rtt", "20ms", "--jitter", "0,2ms", "--cca", "cubic", "--duration", "500ms", "--seeds", "2", "--out", tmp_path / "s").status
        == 0
    )
    has("cells", pl.read_csv(tmp_path / "s" / "cells.csv"), axis=("rtt", "jitter"), without=("campaign",))
    assert cli("cliff", "--rtt", "20ms", "--cca", "cubic", "--most", "0", "--duration", "500ms", "--out", tmp_path / "c").status == 0
    has("edges", pl.read_csv(tmp_path / "c" / "edges.csv"))
    has("levels", pl.read_csv(tmp_path / "c" / "levels.csv"))
    assert cli("study", "run", "baseline", "--quick", "--seeds", "1", "--engine", "mock", "--no-report", "--out", tmp_path).status == 0
    has("published", pl.read_csv(tmp_path / "baseline" / "baseline.csv", infer_schema_length=None), axis=("rtt", "app"), typed=False)
    assert cli("validate", "--random", "2", "--engine", "model", "--engine", "mock", "--worst", "0", "--out", tmp_path / "v").status == 0
    has("conditions", pl.read_csv(tmp_path / "v" / "conditions.csv", infer_schema_length=None), typed=False)


NETWORKS = [c.name for c in TABLES["flows"].columns if c.name.startswith(("responses_", "path_rtt_")) or c.name in ("direction", "group")]
"""Columns that only results of requests and of several groups have."""
OPTIONAL = [*NETWORKS, *(c.name for c in TABLES["flows"].columns if c.name.startswith("player_"))]
"""The same, and those that only results of video players have."""
KERNELS = [c.name for c in TABLES["samples"].columns if "real kernels alone" in c.about]
"""Columns that only real kernels fill."""
KINDS = {
    "string": lambda kind: kind == pl.String,
    "integer": lambda kind: kind.is_integer(),
    "number": lambda kind: kind.is_numeric(),
    "boolean": lambda kind: kind == pl.Boolean,
}
"""Type of Table Schema → whether a column of a frame has it."""


def has(name: str, frame: pl.DataFrame, *, typed: bool = True, axis: tuple = (), metric: str = "", without: tuple = ()) -> None:
    """A frame has the columns of a table, and no others; `typed`: of its types."""
    columns = {c.name.replace("{metric}", metric): c for c in TABLES[name].columns if c.name not in ("{axis}", "limited_by_{cause}", *without)}
    rest = [c for c in frame.columns if not c.startswith("limited_by_") and c not in axis]
    assert sorted(rest) == sorted(columns)
    if typed:
        assert not [c for c in rest if frame[c].dtype != pl.Null and not KINDS[columns[c].kind](frame[c].dtype)]


@pytest.mark.parametrize("name", TABLES)
def test_every_column_has_a_type_and_a_description(name):
    for field in TABLES[name].schema()["fields"]:
        assert field["type"] in KINDS
        assert field["description"].endswith(".")
        assert field.get("unit") != ""


def test_an_editor_finds_the_schema_by_the_first_line_of_a_scenario(cli, tmp_path, need_model):
    """What `tcpscape schema --help` says: the comment is no part of the scenario, and the schema is the file beside it."""
    (tmp_path / "scenario.schema.json").write_text(cli("schema", "scenario").out)
    text = "# yaml-language-server: $schema=scenario.schema.json\nforward: {delay: 5ms}\nduration: 500ms\n"
    (tmp_path / "mine.yaml").write_text(text)
    assert cli("run", tmp_path / "mine.yaml", "--seeds", "1").status == 0
    jsonschema.validate(yaml.safe_load(text), json.loads((tmp_path / "scenario.schema.json").read_text("utf-8")))


# Format numbers: every document says its own, an unknown newer one is refused in one line, and what was kept without a number is read.


NEWER = 99


@pytest.fixture
def kept(cli, tmp_path):
    assert cli("run", "baseline", "--engine", "mock", "--seeds", "2", "--out", tmp_path / "kept").status == 0
    return tmp_path / "kept"


def rewrite(root, table: str, column: str, change) -> None:
    """Changes the JSON documents in a column of a store's database."""
    with sqlite3.connect(root / "results.sqlite") as database:
        for rowid, text in database.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
            database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (json.dumps(change(json.loads(text)), separators=(",", ":")), rowid))


@pytest.mark.parametrize("kind", formats.FORMATS)
def test_the_number_comes_first_and_is_known(kind):
    document = formats.stamped(kind, {"a": 1})
    assert list(document) == ["format", "a"]
    assert formats.expect(kind, document, "file") == formats.FORMATS[kind]
    assert formats.expect(kind, {"a": 1}, "file") == 1


@pytest.mark.parametrize("number", [NEWER, 0, -1, "1", 1.0, True, None, [1]])
def test_another_number_is_refused_in_one_line(number):
    with pytest.raises(StoreError, match=r"^file: [^\n]+; [^\n]+$"):
        formats.expect("trial", {"format": number}, "file")


@pytest.mark.parametrize("table", ["trials", "manifests"])
def test_a_directory_of_a_newer_format_is_refused(cli, kept, table):
    rewrite(kept, table, {"trials": "trial", "manifests": "document"}[table], lambda document: {**document, "format": NEWER})
    answer = cli("report", kept)
    kind = {"trials": "trial", "manifests": "manifest"}[table]
    assert answer.status == 2
    assert f"{kind} of format {NEWER}, and this tcpscape reads formats up to {formats.FORMATS[kind]}" in answer.err
    assert answer.err.count("\n") == 1


def test_trials_that_were_kept_without_a_number_are_read_and_not_run_again(cli, tmp_path, need_model):
    kept, again = tmp_path / "kept", ("run", "baseline", "--duration", "1s", "--seeds", "2", "--out", tmp_path / "kept", "--json")
    before = cli(*again).out

    def without(document):
        return {name: value for name, value in document.items() if name != "format"}

    rewrite(kept, "trials", "trial", without)
    with Store(kept) as store:
        assert len(store.load_many(store.addresses())) == 2
    assert cli(*again).out == before
    with sqlite3.connect(kept / "results.sqlite") as database:
        assert [text for (text,) in database.execute("SELECT trial FROM trials") if "format" in json.loads(text)] == []


def test_an_answer_and_a_validation_of_a_newer_format_are_refused(cli, tmp_path, need_model):
    out = tmp_path / "advised"
    assert cli("advise", "--rtt", "20ms", "--rate", "5mbit", "--duration", "1s", "--seeds", "2", "--cca", "cubic,reno", "--out", out).status == 0
    (out / "advice.json").write_text(json.dumps({**json.loads((out / "advice.json").read_text()), "format": NEWER}))
    assert f"advice of format {NEWER}" in cli("report", out).err
    validated = tmp_path / "validated"
    assert cli("validate", "--random", "1", "--engine", "model", "--engine", "mock", "--worst", "0", "--out", validated).status == 0
    (validated / "summary.json").write_text(json.dumps({**json.loads((validated / "summary.json").read_text()), "format": NEWER}))
    answer = cli("validate", "--explain", "r0", "--out", validated)
    assert (answer.status, f"validation of format {NEWER}" in answer.err) == (2, True)


def test_a_kernel_of_a_newer_format_is_named_and_hides_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name, number in (("old", None), ("newer", NEWER)):
        record = {
            "name": name,
            "path": "",
            "release": "6.1",
            "digest": "d",
            "hz": 250,
            "source": "s",
            "source_digest": None,
            "describe": None,
            "config_digest": "c",
            "compiler": "gcc",
            "created": "",
            "built": "",
            "seconds": 1.0,
            "size": 1,
        }
        cache.place(name).mkdir(parents=True)
        (cache.place(name) / "linux").write_text("")
        (cache.place(name) / "kernel.json").write_text(json.dumps(record | ({"format": number} if number else {})))
    assert [kernel.name for kernel in cache.built_kernels()] == ["old"]
    with pytest.raises(EngineError, match=f"kernel of format {NEWER}"):
        cache.find("newer")


def test_what_a_user_writes_may_have_its_number():
    assert Scenario.of({"format": 1, "duration": "1s"}) == Scenario.of({"duration": "1s"})
    assert Scenario.of({"format": 1}).address() == Scenario.of({}).address()
    assert study.of({**study.read("baseline"), "format": 1}, "x") == study.get("baseline")
    with pytest.raises(ScenarioError, match=f"format: scenario of format {NEWER}"):
        Scenario.of({"format": NEWER})


def test_a_trial_is_read_back_from_its_row(kept):
    with Store(kept) as store:
        trials = store.load_many(store.addresses()).values()
    assert all(isinstance(trial, Trial) and trial.to_dict()["format"] == 1 for trial in trials)
