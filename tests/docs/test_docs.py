"""The documents: commands in them run, files they name exist, nothing in them is stale."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from pathlib import Path

import click
import pytest

from conftest import ROOT
from tcpscape import engines
from tcpscape.cli.commands import app
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
    """Every Python block."""
    for document in DOCUMENTS:
        for language, text in BLOCK.findall(document.read_text("utf-8")):
            if language == "python":
                yield pytest.param(text, id=f"{document.name}: {text.splitlines()[0][:50]}")


@pytest.mark.parametrize("words", list(commands()))
def test_commands_in_the_documents_run(words, cli, need_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
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
