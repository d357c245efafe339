"""The documents: commands in them run, files they name exist, nothing in them is stale."""

import dataclasses
import json
import re
import runpy
import shlex
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import click
import pytest

import forked
import skips
from conftest import ROOT, bench
from patience import PATIENCE_S
from tcpscape import engines
from tcpscape.cli.command import app
from tcpscape.controls import spelling
from tcpscape.studies import study

DOCUMENTS = [
    ROOT / "CONTRIBUTING.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if p.parent.name not in ("how-to", "tour") and p.name != "interchange.md"),
]
"""README.md, interchange.md, the tours and the recipes are carried out from top to bottom: tests/docs/test_how_to.py."""
TUTORIAL = "4-your-own-kernel.md"
"""Builds kernels: tests/docs/test_tutorial.py runs it from top to bottom."""
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def commands():
    """Every `tcpscape …` line in the blocks of what is to be typed and runs everywhere; those in `sh` build kernels or need files of yours."""
    for document in (d for d in DOCUMENTS if d.name != TUTORIAL):
        for language, text in BLOCK.findall(document.read_text("utf-8")):
            if language == "console":
                for line in text.replace("\\\n", " ").splitlines():
                    words = line.removeprefix("$ ").strip()
                    if words.startswith("tcpscape "):
                        yield pytest.param(words, id=f"{document.name}: {words[:60]}")


def scripts():
    for document in DOCUMENTS:
        for language, text in BLOCK.findall(document.read_text("utf-8")):
            if language == "python":
                yield pytest.param(text, id=f"{document.name}: {text.splitlines()[0][:50]}")


@pytest.mark.parametrize("words", list(commands()))
def test_commands_in_the_documents_run(words, cli, need_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    args = shlex.split(words, comments=True)[1:]
    if args[:2] == ["study", "run"]:
        args += ["--quick"]
    elif args[0] in ("run", "advise", "sweep") and "--seeds" not in args:
        args += ["--seeds", "2"]
    got = cli(*args)
    assert got.status == 0, got.err


@pytest.mark.parametrize("text", list(scripts()))
def test_python_in_the_documents_runs(text, need_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(text, "document", "exec"), {})


CODE = re.compile(r"`(tcpscape [^`]+)`")
"""A command in code type."""
ABBREVIATED = re.compile(r"[…|\[&>]|tcpscape (runn|COMMAND|name)\b|--seed N|--help")
"""What shows that a command is not written in full, or is none."""


def named():
    """Every command that a document names in full, also where nothing runs it: with a kernel that is yours, with files that you have."""
    for document in (ROOT / "README.md", ROOT / "docs" / "interchange.md", *DOCUMENTS, *sorted((ROOT / "docs" / "how-to").glob("*.md"))):
        text = document.read_text("utf-8").replace("\\\n", " ")
        shown = [line.removeprefix("$ ") for block in re.findall(r"```.*?\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
        for words in (*CODE.findall(text), *(line for line in shown if line.startswith("tcpscape "))):
            if not ABBREVIATED.search(words):
                yield document.name, words


@pytest.mark.parametrize(("document", "words"), dict.fromkeys(named()))
def test_commands_that_documents_name_have_these_options(document, words):
    """Their options exist and have values of the right kind; nothing runs. What a name in a text leaves out is no error."""
    command, context, args = app, click.Context(app, info_name="tcpscape"), shlex.split(words, comments=True)[1:]
    while isinstance(command, click.Group) and args:
        command = command.get_command(context, args.pop(0))
        context = click.Context(command, parent=context)
    if args:
        with suppress(click.MissingParameter):
            command.parse_args(context, args)


FILE = re.compile(r"`([\w./-]*\w\.(?:py|rs|md|csv|yaml|toml|jsonl))`")
"""A file in code type."""


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md", "benches/README.md"])
def test_files_that_developers_are_sent_to_exist(document):
    """Each is the end of a path in the repository; `name` stands for what a recipe adds."""
    folders = ("benches", "crates", "docs", "examples", "python", "scripts", "tests", "web/src", "web/tests")
    files = [*(p for f in folders for p in (ROOT / f).rglob("*.*")), *(ROOT / "web").glob("*.*"), *ROOT.glob("*.*")]
    paths = [str(p.relative_to(ROOT)) for p in files]
    names = {n for n in FILE.findall((ROOT / document).read_text("utf-8")) if Path(n).stem.lower() != "name"}
    assert len(names) > 10
    assert not [name for name in sorted(names) if not any(f"/{path}".endswith(f"/{name}") for path in paths)]


@pytest.mark.parametrize("document", [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda p: str(p.relative_to(ROOT)))
def test_no_conflict_was_left(document):
    assert not re.search(r"^(<<<<<<<|=======$|>>>>>>>)", document.read_text("utf-8"), re.MULTILINE)


LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
PATH = re.compile(r"\b(docs/[\w./-]*\w\.(?:md|csv|bib|png|svg))\b")
"""A file under docs/ named in prose or in a comment."""
INDEX = ROOT / "docs" / "README.md"
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def linked(document):
    return {(document.parent / target).resolve() for target in LINK.findall(document.read_text("utf-8"))}


@pytest.mark.parametrize("document", [*sorted(ROOT.glob("*.md")), *PAGES, ROOT / "benches" / "README.md"], ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    assert not [target for target in linked(document) if not target.exists()]


def test_the_index_links_every_page():
    """By itself, or by the page that lists the commands."""
    files = {p for p in (ROOT / "docs").rglob("*") if p.suffix in (".md", ".csv", ".bib")} - {INDEX}
    assert not files - linked(INDEX) - linked(ROOT / "docs" / "reference" / "commands.md")


def test_pages_named_in_the_code_exist():
    sources = [
        p
        for d in ("crates", "python", "tests", "benches", "docs", "examples")
        for p in (ROOT / d).rglob("*")
        if p.suffix in (".rs", ".py", ".md", ".yaml")
    ]
    sources += ROOT.glob("*.md")
    names = {(name, p) for p in sources for name in PATH.findall(p.read_text("utf-8")) if p.name != "test_show.py"}
    assert len(names) > 100
    assert not [(name, str(p.relative_to(ROOT))) for name, p in sorted(names) if not (ROOT / name).exists() and "/name." not in name.lower()]


def test_comments_of_the_crates_name_files_that_are_there():
    files = sorted((ROOT / "crates").rglob("*.rs"))
    there = {str(file) for file in files}
    comments = [(file, line) for file in files for line in file.read_text().splitlines() if line.lstrip().startswith("//")]
    named = [(str(file.relative_to(ROOT)), name) for file, line in comments for name in re.findall(r"`([a-z_0-9/]+\.rs)`", line)]
    assert len(named) > 20
    assert not [(file, name) for file, name in named if not any(path.endswith(f"/{name}") for path in there)]


def test_numbers_in_the_documents_are_counted():
    """How many studies, congestion controls and compared conditions there are, where a page says a number."""
    pages = {name: (ROOT / name).read_text("utf-8") for name in ("README.md", "docs/README.md", "docs/how-it-works.md")}
    written = [int(n) for text in pages.values() for n in re.findall(r"(\d+) studies", text)]
    assert written == [len(study.names())] * 2, "README.md and docs/how-it-works.md, in digits"
    assert f"All {len(spelling.LINUX)} congestion controls of Linux" in pages["README.md"]
    conditions = len((ROOT / "docs/fidelity.csv").read_text("utf-8").splitlines()) - 1
    assert f"over {conditions // 100 * 100:,} conditions" in pages["docs/how-it-works.md"]
    assert set(re.findall(r"^- The \*\*(\w+)", pages["docs/how-it-works.md"], re.MULTILINE)) == set(engines.REGISTRY)


def test_the_citation_is_of_this_version():
    import yaml

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert citation["version"] == project[1]
    assert (citation["cff-version"], citation["title"], citation["type"]) == ("1.2.0", "tcpscape", "software")
    assert citation["license"] == ["MIT", "Apache-2.0"]
    assert citation["authors"] == [{"name": "The tcpscape developers"}]


# Every file from outside is opened by one package: `scripts/doors.py` finds the others.


SCRIPTS = ROOT / "scripts"


@pytest.fixture
def doors(monkeypatch) -> dict:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield runpy.run_path(str(SCRIPTS / "doors.py"))
    sys.modules.pop("layers", None)


def test_no_module_opens_a_file_by_itself(doors, capsys):
    assert doors["main"]() == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    [
        "open('x')",
        "path.read_text('utf-8')",
        "Path(x).read_bytes()",
        "path.open('rb')",
        "os.open(x, 0)",
        "json.loads(x)",
        "pl.read_parquet(x)",
        "yaml.safe_load(x)",
        "sqlite3.connect(x)",
        "gzip.open(x)",
        "gzip.decompress(x)",
        "pickle.loads(x)",
        "csv.DictReader(f)",
        "from_json(x)",
        "np.load(x)",
        "tarfile.open(x)",
    ],
)
def test_a_call_that_opens_or_parses_is_found(doors, tmp_path, line):
    (tmp_path / "new.py").write_text(f"def f(x, path):\n    return {line}\n")
    assert sum(doors["calls"](tmp_path / "new.py").values()) == 1


def test_what_a_module_writes_or_computes_is_no_door(doors, tmp_path):
    (tmp_path / "new.py").write_text("json.dumps(x)\nfile.write_text(x)\nopened(x)\nzlib.compress(x)\nyaml.safe_dump(x)\n")
    assert not doors["calls"](tmp_path / "new.py")


# Where skips are judged, a test that the machine could have run fails the run.


def test_a_lack_of_the_machine_is_no_mistake_and_a_missing_package_is_one():
    reasons = ["no kernel is built: make kernel", "zsh is not installed", "zsh is not installed", "this kernel has no netem"]
    assert skips.avoidable(reasons) == ["zsh is not installed"]


@pytest.mark.parametrize(("reason", "status"), [("chromium is not installed", 1), ("no kernel is built yet", 0)])
def test_an_avoidable_skip_fails_the_run(tmp_path, reason, status):
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text("utf-8"))
    (tmp_path / "test_one.py").write_text(f"import pytest\n\ndef test_one():\n    pytest.skip({reason!r})\n\ndef test_two():\n    pass\n")
    words = ["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r}); import pytest; sys.exit(pytest.main({words}))"
    environment = {"TCPSCAPE_SKIPS": "strict", "PATH": "/usr/bin:/bin"}
    ended = subprocess.run(
        [*forked.python(), "-c", code], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=tmp_path
    )
    assert ended.returncode == status, ended.stdout + ended.stderr
    assert (f"skipped although this machine could run it: {reason}" in ended.stdout) == bool(status)


# The wheel: complete, and usable where there is nothing else of tcpscape.


WHEELS = sorted((ROOT / "dist").glob("tcpscape-*.whl"))


@pytest.fixture
def wheel():
    if not WHEELS:
        pytest.skip("no wheel is built: make wheel")
    return WHEELS[-1]


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(wheel):
    got = subprocess.run([sys.executable, str(ROOT / "scripts" / "wheel_test.py"), str(wheel)], capture_output=True, text=True, check=False)
    assert got.returncode == 0, got.stdout + got.stderr


@pytest.mark.slow
def test_its_tag_and_metadata_are_those_of_the_project(wheel):
    assert "-cp310-abi3-manylinux_2_" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        head = archive.read(name).decode().split("\n\n")[0]
    assert "License-Expression: MIT OR Apache-2.0" in head
    assert "Requires-Python: >=3.10" in head
    assert "example.invalid" not in head


def test_every_file_that_git_does_not_know_is_asked_for():
    """What is built or copied is ignored by git, and maturin leaves such files out unless pyproject.toml names them."""
    listed = (ROOT / "pyproject.toml").read_text("utf-8").partition("[tool.maturin]")[2].partition("\n[")[0]
    assert all(
        name in listed for name in ("engines/guest/init", "engines/guest/seed.so", "engines/host/live", "data/pages/**/*.md", 'data = "wheel.data"')
    )


# Every generated figure that users see was made with a model that has today's behaviour table, and is as it was written.


refresh = bench("refresh")
FIGURES = {figure.name: figure for figure in refresh.FIGURES}


@pytest.mark.parametrize("name", FIGURES)
def test_a_generated_figure_belongs_to_todays_model(name):
    reason = refresh.why_stale(FIGURES[name], refresh.read())
    assert reason is None, f"{name}: {reason}; `make refresh FIGURES={name}` makes it again"


@pytest.fixture
def behaviour_table(tmp_path, monkeypatch):
    """A behaviour table of three rows, and the root in which a figure is made."""
    table = tmp_path / "behaviour.csv"
    table.write_text("case,hash\na,1\nb,2\n")
    monkeypatch.setattr(refresh, "ROOT", tmp_path)
    monkeypatch.setattr(refresh, "RECORD", tmp_path / "figures.json")
    monkeypatch.setattr(refresh, "BEHAVIOUR", table)
    return table


def writes(name, text):
    """A figure of one file, whose command writes the text."""
    return refresh.Figure(name, (f"{name}.md",), (("-c", f"import pathlib; pathlib.Path('{name}.md').write_text({text!r})"),))


def test_a_figure_is_stale_when_a_row_of_the_behaviour_table_changes(behaviour_table):
    figure = writes("speed", "fast")
    assert refresh.why_stale(figure, refresh.read()) == "there is no record of how it was made"
    assert refresh.refresh([figure]) == 0
    assert refresh.why_stale(figure, refresh.read()) is None
    behaviour_table.write_text("case,hash\na,1\nb,2\nc,3\n")
    assert refresh.why_stale(figure, refresh.read()) is None  # a row more: what was measured is still true
    behaviour_table.write_text("case,hash\na,1\nb,7\n")
    assert refresh.why_stale(figure, refresh.read()).startswith("the model's results are others since")


def test_a_number_of_events_makes_figures_of_costs_stale_and_no_other(behaviour_table):
    by_results = writes("model", "right")
    by_costs = dataclasses.replace(writes("speed", "fast"), by_cost=True)
    behaviour_table.write_text("case,hash,events,bytes\na,1,50,9\n")
    refresh.refresh([by_results, by_costs])
    behaviour_table.write_text("case,hash,events,bytes\na,1,40,9\n")
    assert refresh.why_stale(by_results, refresh.read()) is None
    assert refresh.why_stale(by_costs, refresh.read()).startswith("the model's results are others since")
    behaviour_table.write_text("case,hash,events,bytes\na,1,50,8\n")
    assert all(refresh.why_stale(figure, refresh.read()) for figure in (by_results, by_costs))


def test_a_figure_is_stale_when_a_default_of_scenarios_changes(behaviour_table, monkeypatch):
    figure = writes("speed", "fast")
    refresh.refresh([figure])
    monkeypatch.setattr(refresh, "default_address", lambda: "another")
    assert refresh.why_stale(figure, refresh.read()).startswith("the model's results are others since")


def test_a_figure_that_was_edited_by_hand_is_stale(behaviour_table, tmp_path):
    figure = writes("speed", "fast")
    refresh.refresh([figure])
    (tmp_path / "speed.md").write_text("faster")
    assert refresh.why_stale(figure, refresh.read()) == "speed.md is not as it was written"


def test_a_part_of_a_page_is_a_figure_and_the_text_around_it_is_not(behaviour_table, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("By hand.\n<!-- from the benches: edges -->\n\n<!-- until here -->\nBy hand too.\n")
    figure = refresh.Figure("edges", ("page.md#edges",), (("-c", "pass"),))
    refresh.table.insert(page, "edges", "| a |")
    refresh.refresh([figure])
    assert page.read_text() == "By hand.\n<!-- from the benches: edges -->\n| a |\n<!-- until here -->\nBy hand too.\n"
    page.write_text(page.read_text().replace("By hand", "Written again"))
    assert refresh.why_stale(figure, refresh.read()) is None
    page.write_text(page.read_text().replace("| a |", "| b |"))
    assert refresh.why_stale(figure, refresh.read()) == "page.md#edges is not as it was written"


def test_a_figure_that_the_model_does_not_judge_says_how_old_it_is(behaviour_table):
    figure = dataclasses.replace(writes("speed", "fast"), by_model=False)
    assert refresh.why_stale(figure, {}) is None
    assert "nobody knows when it was made" in refresh.state(figure, None, {})
    refresh.refresh([figure])
    assert f"made on {refresh.read()['speed'].date}" in refresh.state(figure, None, refresh.read())


def test_what_was_made_stays_made_when_a_later_figure_fails(behaviour_table, tmp_path, capsys):
    broken = refresh.Figure("broken", ("broken.md",), (("-c", "raise SystemExit(3)"),))
    lacking = refresh.Figure("lacking", ("lacking.md",), (), unavailable=lambda: "no kernel: tcpscape kernel build")
    assert refresh.refresh([writes("speed", "fast"), broken, lacking]) == 2
    assert list(json.loads((tmp_path / "figures.json").read_text())) == ["speed"]
    printed = capsys.readouterr().out
    assert "ended with status 3" in printed
    assert "lacking: not made: no kernel: tcpscape kernel build" in printed


def test_the_errors_in_the_readme_are_those_of_the_last_measurement():
    errors = json.loads((refresh.ROOT / "python/tcpscape/data/fidelity.json").read_text("utf-8"))["controls"]["bbr"]["alone"]
    sentence = f"for BBR alone on a path the goodput is off by {100 * errors['median']:.2g} % in the median and by {100 * errors['p90']:.1g} % or"
    assert sentence in " ".join((refresh.ROOT / "README.md").read_text("utf-8").split())


def test_modules_that_docstrings_name_exist():
    """What a package lists (- `name`: …) is in it, and every :mod: is a module."""
    package = ROOT / "python" / "tcpscape"
    for file in package.rglob("*.py"):
        text = file.read_text("utf-8")
        listed = re.findall(r"^- `(\w+)`:", text, re.MULTILINE) if file.name == "__init__.py" else []
        paths = [file.parent / name for name in listed] + [
            package / name.replace(".", "/") for name in re.findall(r":mod:`~?tcpscape\.([\w.]+)`", text)
        ]
        assert not [path for path in paths if not (path.is_dir() or path.with_suffix(".py").exists())], file
