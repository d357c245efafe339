"""Names and texts of users never become commands, paths, markup, formulas or control sequences."""

import io
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
import zlib
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import yaml

from conftest import ROOT
from patience import PATIENCE_S
from robustness import directories, judge
from robustness.directories import CONTENT, DATABASE, RESULTS, WITNESS
from tcpscape import engines, names, plots, report, writing
from tcpscape.campaign import execute, record
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Execution
from tcpscape.cli.main import call
from tcpscape.errors import ScenarioError, StoreError, is_plain, printable
from tcpscape.findings.advice import adviser as kept_advice
from tcpscape.interchange import tc
from tcpscape.plots import style as plot_files
from tcpscape.scenario.scenario import Scenario
from tcpscape.store.results import Store
from tcpscape.text.screen import Code, Lines, Screen
from tcpscape.text.table import Table, markdown_text

MARKUP = '"><img src=x onerror=alert(1)>'
NAMES = (
    MARKUP,
    "'><svg onload=alert(1)>",
    "<script>alert(1)<!--",
    "&quot; onmouseover=alert(1) x=&quot;",
    "[bold]",
    "[red",
    "$\\foo$".replace("\\", "_"),
    "$",
    "{{ 7*7 }}",
    "`id`",
    "{{ 1234567*10 }}",
    "$(touch PWNED)",
    "; touch PWNED",
    "javascript:alert(1)",
    "=1+1",
    "a|b",
    "](javascript:alert(1))",
    "🦄 ñ",
)
"""Names that are odd but printable: they are kept, and harmless everywhere."""
BROKEN = ("x\ntouch PWNED\n#", "\x1b[2J", "a\rb", "a\x00b", "\u202eabc", "\u2066x\u2069", "\ud800", "\x7f", "\x9b31m", "a\u2028b", "\u200b")
PATHS = ("--help", "-x", "/../../x", "[/x]", "..", ".", "a/b", "\\\\server\\x", "../x", "x" * 300, "", "   ")


class Page(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.inside = set(), [], []
        self.scripts = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if self.inside[-1:] == ["script"]:
            self.scripts.append(data)


def expect_harmless(text, allowed):
    """A page has no handler, no address but to itself and its files, and only the elements of a page without hostile names."""
    page = Page(text)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    addresses = [value for name, value in page.attributes if name in ("href", "src", "xlink:href", "action", "data", "formaction", "srcdoc")]
    assert not [a for a in addresses if not re.match(r"#|(figures|tables|scenarios)/|data:image/png", a)], addresses
    assert page.tags <= allowed
    assert len(page.scripts) == 1
    ids = [value for name, value in page.attributes if name == "id"]
    assert not [one for one in ids if not re.fullmatch(r"[\w.+%=-]+", one)]


def campaign(**fields):
    said = {"name": "plain", "conditions": {"rtt": "50ms"}, "axes": {"loss": "0,1,2%"}, "cca": "cubic,bbr", "engines": ["mock"], "seeds": 2}
    return Campaign.of({**said, **fields})


def kept_in(root, *campaigns):
    """The record of these campaigns, run into a directory."""
    with Store(root) as store:
        for one in campaigns:
            outcome = execute.run(one, Execution(store=store))
            record.save(record.Record("sweep", one.name, "tcpscape sweep x.yaml", {"": outcome}), root)
    return record.load(root)


@pytest.fixture(scope="module")
def allowed(tmp_path_factory):
    """Elements of a page whose names are plain."""
    root = tmp_path_factory.mktemp("plain")
    return Page(report.build(kept_in(root, campaign(), campaign(name="other", conditions={"rtt": "60ms"})), root, ("svg",))[0].read_text()).tags


@pytest.mark.parametrize("name", BROKEN + PATHS)
def test_a_name_is_one_printable_path_component(name):
    for make in (lambda: Scenario.of({"name": name}), lambda: Campaign.of({"name": name})):
        with pytest.raises(ScenarioError, match=r"^name: ") as e:
            make()
        assert is_plain(str(e.value))


@pytest.mark.parametrize("name", NAMES)
def test_an_odd_name_is_kept(name):
    assert Scenario.of({"name": name}).name == name


@pytest.mark.parametrize("text", BROKEN)
@pytest.mark.parametrize("place", ["about", "axis", "value", "cca", "trace", "kernel"])
def test_no_field_has_control_characters(text, place):
    fields = {
        "about": {"about": text},
        "axis": {"axes": {text: ["1", "2"]}},
        "value": {"axes": {"buffer": [text, "2bdp"]}},
        "cca": {"cca": [f"{text}.py:Mine"]},
        "trace": {"scenario": {"forward": {"trace": text}}},
        "kernel": {"conditions": {"rtt": "50ms", "kernel": text}},
    }[place]
    if place == "about" and not text.strip("\n\r abx#touchPWNED"):
        return  # a description may have lines
    with pytest.raises(ScenarioError) as e:
        campaign(**fields).cases()
    assert is_plain(str(e.value))


@pytest.mark.parametrize("text", [*NAMES, *BROKEN, *PATHS])
def test_a_file_name_stays_where_it_is_put(text, tmp_path):
    for keep in ("", "%="):
        made = names.component(text, keep)
        assert made
        assert not made.startswith((".", "-"))
        assert len(made.encode()) <= names.MOST_BYTES
        assert (tmp_path / made).resolve().parent == tmp_path.resolve()
        (tmp_path / made).write_text("")


def test_long_texts_give_different_file_names():
    assert names.component("x" * 300 + "a") != names.component("x" * 300 + "b")


def scenario(**fields):
    said = {"forward": "netem delay 25ms", "bottleneck": "htb rate 10mbit; fq_codel", "flows": [{"cca": "cubic:beta=819"}], "duration": "1s"}
    return Scenario.of({**said, **fields})


@pytest.mark.parametrize("text", [*BROKEN, *NAMES])
def test_an_exported_script_runs_nothing_of_a_name(text, tmp_path):
    """As a scenario from Python or from a damaged result may have it, too: the check of names is not all that protects a shell."""
    built = scenario()
    label = f"{text}.py:Mine" if not set(":*@,=") & set(text) else "a $(touch PWNED)\ntouch PWNED.py:Mine"
    flow = built.flows[0].model_copy(update={"cca": label, "start": 1})
    script = tc.write(built.model_copy(update={"name": text, "flows": (flow,)}))
    for tool in ("ip", "tc", "ethtool"):
        (tmp_path / tool).write_text("#!/bin/sh\n")
        (tmp_path / tool).chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    # the commands that are comments too, as someone would try them
    for source in (script, re.sub(rb"(?m)^# (?=ip netns|\(sleep)", b"", script)):
        subprocess.run(["sh"], input=source, cwd=tmp_path, env=path, capture_output=True, timeout=PATIENCE_S, check=False)
        assert {p.name for p in tmp_path.iterdir()} == {"ip", "tc", "ethtool"}


def test_lines_to_copy_are_quoted(cli, tmp_path):
    place = tmp_path / "a $(touch PWNED); b"
    for command in (
        ("run", "--forward", "netem delay 5ms", "--engine", "mock", "--seeds", "1", "--out", place),
        ("run", "--forward", "netem delay 5ms", "--engine", "mock", "--seeds", "1", "--out", place, "--report"),
        ("sweep", "--rtt", "5,6ms", "--engine", "mock", "--seeds", "1", "--out", tmp_path / "a $(touch PWNED); c"),
        ("report", place),
        ("cliff", "--rtt", "24ms", "--engine", "mock", "--most", "0", "--out", tmp_path / "a $(touch PWNED); d"),
    ):
        said = cli(*command)
        assert said.status == 0, said.err
        line = next(line for line in said.out.splitlines() if line.startswith("Next: "))
        for part in line.removeprefix("Next: ").split(", tcpscape"):
            assert "'" in part, line
            assert not {"touch", ";"} & set(shlex.split(part)), line


def test_a_path_to_copy_is_no_option(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = cli("run", "--forward", "netem delay 5ms", "--engine", "mock", "--seeds", "1", "--out", "-x")
    assert "Next: tcpscape plot ./-x --what cwnd,rtt (over time), tcpscape report ./-x (a page)" in run.out
    assert [names.argument(path) for path in ("-a b", "a b", "a")] == ["'./-a b'", "'a b'", "a"]
    assert names.with_options("tcpscape compare --seeds 2 -- -a", "--seeds 9") == "tcpscape compare --seeds 9 -- -a"


@pytest.mark.parametrize(
    "text",
    [
        "rm -rf ~",
        "tcpscape run x; touch PWNED",
        "tcpscape run $(touch PWNED)",
        "tcpscape 'x",
        "tcpscape run x\ntouch PWNED",
        "tcpscape.run(…, out='x'); touch PWNED",
        "tcpscape run \x1b[2J",
        "`touch PWNED`",
    ],
)
def test_a_command_from_a_result_is_one_command_of_tcpscape(text, tmp_path):
    shown = names.command(text)
    assert is_plain(shown)
    subprocess.run(["sh", "-c", f"tcpscape() {{ :; }}\n{shown}"], cwd=tmp_path, capture_output=True, timeout=PATIENCE_S, check=False)
    assert not list(tmp_path.iterdir())


def test_a_command_that_was_typed_stays_as_it_is():
    for text in (
        "tcpscape run starlink-baseline --cca cubic,bbr",
        "tcpscape run --forward 'netem delay 25ms'",
        "tcpscape.run(…, out='out/x') in Python",
    ):
        assert names.command(text) == text
    assert record.commands({"cells": [{"command": "reboot now"}]}) == ["'reboot now'"]


@pytest.mark.parametrize("text", [*NAMES[:4], "$x_$", "{{ 1234567*10 }}", "](javascript:alert(1))"])
def test_a_page_has_no_code_of_a_user(text, tmp_path, allowed):
    hostile = campaign(name=text, about=f"{text} `{text}`", axes={"loss": "0,1,2%"}, zip=[{"label": [text, "b"], "jitter": ["1ms", "2ms"]}])
    kept = kept_in(tmp_path, hostile, campaign(name="other", conditions={"rtt": "60ms"}))
    outcome = kept.outcomes[0]
    trials = [replace(t, scenario=text, caveats=(text, f"{text}: caveat")) for t in outcome.trials]
    cells = [replace(c, cca=text if c.cca == "bbr" else c.cca, at={**c.at, text: text}, runs=(tuple(trials[:2]),)) for c in outcome.cells]
    damaged = replace(outcome, cells=tuple(cells), versions={"mock": text})
    kept = replace(kept, parts={text: damaged, "other": kept.outcomes[1]}, name=text, command=text, commands={text: text}, version=text)
    written = report.build(kept, tmp_path, ("svg",))
    assert all(tmp_path.resolve() in file.resolve().parents for file in written)
    page = written[0].read_text("utf-8")
    expect_harmless(page, allowed)
    assert "12345670" not in page  # a template in a name is text
    for file in written:
        if file.suffix == ".svg":
            expect_svg(file.read_text("utf-8"))


def expect_svg(text):
    page = Page(text)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "script" not in page.tags


def test_an_inline_drawing_has_safe_ids():
    drawn = plot_files.inline('<?xml?><svg width="10pt" height="5pt"><g id="a"/><use xlink:href="#a"/></svg>', MARKUP, MARKUP)
    page = Page(drawn)
    assert page.tags == {"svg", "g", "use"}
    assert dict(page.attributes)["aria-label"] == MARKUP
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "src"]


def test_the_policy_allows_only_the_page_s_own_script_and_style(tmp_path):
    import base64
    import hashlib

    text = report.build(kept_in(tmp_path, campaign()), tmp_path, ("svg",))[0].read_text("utf-8")
    policy = next(v for k, v in Page(text).attributes if k == "content" and "default-src" in v)
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for element, rule in (("script", "script-src"), ("style", "style-src-elem")):
        contents = re.findall(rf"<{element}[^>]*>(.*?)</{element}>", text, re.DOTALL)
        assert [f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in contents] == [rules[rule]]


def test_parts_of_a_damaged_manifest_are_refused(cli, tmp_path):
    for field, value in (("name", "/../../x"), ("part", "../x"), ("part", "a\nb"), ("name", 7)):
        root = tmp_path / f"{field}{hash(value)}"
        kept_in(root, campaign())
        with Store(root) as store:
            store.change_manifests(lambda documents, field=field, value=value: [{**d, field: value} for d in documents])
        said = cli("report", root)
        assert (said.status, said.err.count("\n")) == (2, 1)
        assert f"{field}: " in said.err
        assert "damaged" in said.err
        assert {p.name for p in root.iterdir()} == {"results.sqlite"}
    assert all(p.name.startswith(("name", "part")) for p in tmp_path.iterdir())


def test_links_in_a_result_directory_lead_nowhere(tmp_path, cli):
    root, precious = tmp_path / "r", tmp_path / "precious"
    kept_in(root, campaign())
    precious.mkdir()
    (precious / "profile").write_text("mine")
    (root / "report.html").symlink_to(precious / "profile")
    assert cli("report", root, "--figures", "svg").status == 0
    assert (precious / "profile").read_text() == "mine"
    assert not (root / "report.html").is_symlink()
    for folder in ("figures", "tables", "scenarios"):
        shut = tmp_path / folder
        kept_in(shut, campaign())
        (precious / ".written").write_text("profile\n")
        (shut / folder).symlink_to(precious)
        said = cli("report", shut)
        assert said.status == 2
        assert "is a symbolic link" in said.err
        assert sorted(p.name for p in precious.iterdir()) == [".written", "profile"]


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    file = writing.whole(tmp_path / "x", "one \ud800")
    with pytest.raises(TypeError):
        writing.whole(file, 5)  # type: ignore[arg-type]
    assert file.read_text() == "one \\ud800"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(StoreError, match="symbolic link"):
        writing.folder(tmp_path, "link")


HOSTILE_TEXTS = (*NAMES, *BROKEN)


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_a_screen_prints_texts_as_they_are(text):
    table = Table((f"cca {text}", "n"), [(text, "1")], title=text, notes=[text])
    shown = Screen(text, text, (text,), (table, Lines(text, [text]), Code([text], text)), (text,), (text,), text, (text,)).text(verbose=True)
    assert all(is_plain(line) for line in shown.splitlines())
    assert shown.count(printable(text)) >= 12
    assert is_plain(table.text().replace("\n", ""))


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_markdown_has_no_html_and_no_links_of_a_user(text):
    page = Screen(text, text, (text,), (Table((text,), [(text,)], title=text, notes=[text]),), caveats=(text,)).markdown()
    assert not re.search(r"<[A-Za-z/!?]|(?<!\\)\]\((?!\\)", page.replace("]\\(", ""))
    assert all(is_plain(line) for line in page.splitlines())
    assert "\n" not in markdown_text(text)


@pytest.mark.parametrize("text", [MARKUP, "$\\foo$", "$x", "\\$_{", "\x1b[2J"])
def test_a_figure_shows_texts_as_they_are(text, tmp_path):
    outcome = kept_in(tmp_path, campaign(about="a")).outcomes[0]
    strange = replace(outcome, campaign=outcome.campaign.model_copy(update={"about": text, "name": text}))
    cells = tuple(replace(c, cca=text if c.cca == "bbr" else c.cca) for c in outcome.cells)
    for kind in plots.fitting(strange)[:3]:
        for file in plot_files.save(kind.draw(replace(strange, cells=cells), plots.Context(text)), tmp_path / kind.name, ("svg", "png")):
            assert file.stat().st_size
        drawing = (tmp_path / f"{kind.name}.svg").read_text("utf-8")
        expect_svg(drawing)
        assert "\x1b" not in drawing


def test_errors_are_one_printable_line(cli):
    for text in BROKEN:
        for args in (
            ("run", text),
            ("cca", "show", text),
            ("run", "--cca", text),
            (text,),
            ("run", f"--{text}"),
            ("export", "baseline", "--to", text),
        ):
            said = cli(*args)
            assert (said.status, said.err.count("\n")) == (2, 1), (args, said.err)
            assert is_plain(said.err.rstrip("\n")), (args, said.err)


def test_an_advice_is_kept_through_no_link(tmp_path):
    (tmp_path / "else").write_text("mine")
    (tmp_path / kept_advice.ANSWER).symlink_to(tmp_path / "else")
    kept_advice.save({"goal": "x"}, tmp_path)
    assert (tmp_path / "else").read_text() == "mine"
    assert json.loads((tmp_path / kept_advice.ANSWER).read_text()) == {"goal": "x"}


def test_the_page_of_a_validation_has_no_html_of_a_user(cli, tmp_path):
    hostile = [{"id": "a", "about": f"{MARKUP} [x](javascript:alert(1))", "forward": "netem delay 5ms", "duration": "1s"}]
    (tmp_path / f"{MARKUP}.yaml".replace("/", "")).write_text(yaml.safe_dump(hostile))
    said = cli(
        "validate", "--conditions", tmp_path / f"{MARKUP}.yaml", "--engine", "mock", "--engine", "model", "--seeds", "2", "--out", tmp_path / "v"
    )
    assert said.status == 0, said.err
    pages = list((tmp_path / "v").glob("*.md"))
    assert pages
    for page in pages:
        assert not re.search(r"<img|\]\(javascript", page.read_text("utf-8"))


# Commands that are ended at random moments: nothing is lost, doubled, damaged or left over (benches/kills.py says what that is).


VIRTUAL = "virtual"


def kill(moments, only):
    words = [sys.executable, ROOT / "benches" / "kills.py", "--moments", str(moments), "--only", *only]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_commands_that_are_ended_go_on_as_if_nothing_had_happened(need_model):
    kill(2, ["small"])


@pytest.mark.slow
def test_sixty_moments_of_every_command(need_model):
    kill(60, ["sweep", "run", "study", "advise", "cliff", "report", "csv", "flent", "plot", "compare"])


@pytest.mark.slow
def test_a_real_kernel_that_is_ended_leaves_nothing():
    if reason := engines.REGISTRY[VIRTUAL]().unavailable():
        pytest.skip(f"engine {VIRTUAL}: {reason}")
    kill(12, [VIRTUAL])


# A result directory of somebody else is data: nothing outside of it is deleted or written, nothing waits, and memory is bounded.


PROMPT_S = 10


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working directory of a case."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(case, folder):
    """Writes the case, and a directory beside it to which a link would lead."""
    case.write(folder)
    return {path: path.read_bytes() for path in folder.glob("*") if path.is_file()}


@pytest.mark.parametrize("words", directories.COMMANDS, ids=lambda words: words.partition(" ")[0])
@pytest.mark.parametrize("kind", directories.kinds(large=False))
def test_a_hostile_directory_harms_nothing(kind, words, here):
    case = directories.case(kind, words)
    before, out, err, began = written(case, here), io.StringIO(), io.StringIO(), time.process_time()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = call(list(case.words))
        except SystemExit as e:
            status = int(e.code or 0)
    assert (here / WITNESS).read_bytes() == CONTENT
    assert {path: path.read_bytes() for path in before} == before
    assert status in (0, 2), err.getvalue()
    assert status == 0 or not list(judge.message(err.getvalue()))
    assert time.process_time() - began < PROMPT_S


@pytest.mark.parametrize(
    "name", ["generated columns", "a trigger", "an index of an expression", "a further table", "a column more", "a view instead of a table"]
)
def test_other_tables_than_ours_are_refused(name, here):
    directories.Case("x", (), {**directories.good(), **directories.HOSTILE[name]()}).write(here)
    for create in (False, True):
        with pytest.raises(StoreError, match="has other tables than tcpscape makes"):
            Store(here / RESULTS, create=create)


@pytest.mark.parametrize("create", [False, True])
def test_a_journal_that_names_a_file_is_refused_by_readers_and_writers(here, create):
    files = {**directories.good(), WITNESS: CONTENT, f"{DATABASE}-journal": directories.journal(WITNESS)}
    directories.Case("x", (), files).write(here)
    with pytest.raises(StoreError, match=r"results\.sqlite-journal"):
        Store(here / RESULTS, create=create)
    assert (here / WITNESS).read_bytes() == CONTENT


def test_a_reader_changes_nothing_in_a_directory(here):
    directories.Case("x", (), directories.good()).write(here)
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    with Store(here / RESULTS, create=False) as store:
        assert len(store.load_many(store.addresses())) == 4
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


def test_what_a_killed_writer_left_in_the_log_is_read(here):
    directories.Case("x", (), directories.good()).write(here)
    writer = sqlite3.connect(here / DATABASE, isolation_level=None)
    writer.execute("DELETE FROM trials WHERE address = (SELECT min(address) FROM trials)")
    for end in ("", "-wal"):
        (here / "left").mkdir(exist_ok=True)
        shutil.copy(here / f"{DATABASE}{end}", here / "left" / f"results.sqlite{end}")
    with Store(here / "left", create=False) as store:
        assert len(store.addresses()) == 3
    writer.close()


def test_a_reader_sees_a_writer_that_comes_later(here):
    directories.Case("x", (), directories.good()).write(here)
    with Store(here / RESULTS, create=False) as reader:
        assert len(reader.addresses()) == 4
        writer = sqlite3.connect(here / DATABASE, isolation_level=None)
        writer.execute("DELETE FROM trials WHERE address = (SELECT min(address) FROM trials)")
        assert len(reader.addresses()) == 3
        writer.close()


def test_samples_are_not_written_through_a_link(here, tmp_path):
    (here / "elsewhere").mkdir()
    directories.Case("x", (), directories.good()).write(here)
    shutil.rmtree(here / RESULTS / "samples", ignore_errors=True)
    with Store(here / RESULTS, create=False) as store:
        (trial, *_) = store.load_many(store.addresses(), ["samples"]).values() or [None]
    assert trial is None, "the samples were removed"
    (here / RESULTS / "samples").symlink_to(here / "elsewhere")
    path = ["--forward", "netem delay 5ms", "--duration", "100ms", "--seeds", "1", "--samples", "50ms", "--out", RESULTS]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as err, pytest.raises(SystemExit):
        raise SystemExit(call(["run", *path]))
    assert "is a symbolic link" in err.getvalue()
    assert not list((here / "elsewhere").iterdir())


def test_plots_are_not_drawn_through_a_link(here):
    (here / "elsewhere").mkdir()
    directories.Case("x", (), directories.good()).write(here)
    (here / RESULTS / "plots").symlink_to(here / "elsewhere")
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as err:
        assert call(["plot", RESULTS]) == 2
    assert "is a symbolic link" in err.getvalue()
    assert not list((here / "elsewhere").iterdir())


def test_queues_that_inflate_are_refused():
    from tcpscape.queue_reports import QueueReports

    reports = QueueReports(zlib.compress(b"[" + b"[]," * 2_000_000 + b"0]"), is_packed=True)
    with pytest.raises(StoreError, match="reports of the queues"):
        len(reports)
