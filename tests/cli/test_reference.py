"""The reference of the commands: what it says is what Click knows, and the manual pages made of it read well."""

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

import tcpscape
from tcpscape import errors
from tcpscape.cli import completion, reference
from tcpscape.cli.main import COMMANDS, app

ENTRIES = list(reference.entries())
PAGES = {entry.page: entry for entry in ENTRIES}


def click_commands() -> dict[str, click.Command]:
    """Every command of Click's by its page."""
    context, found = click.Context(app), {"tcpscape": app}
    for name in COMMANDS:
        entry = app.get_command(context, name)
        found[f"tcpscape-{name}"] = entry
        found |= {f"tcpscape-{name}-{sub}": each for sub, each in entry.commands.items()} if isinstance(entry, click.Group) else {}
    return found


def test_every_command_has_an_entry_with_all_of_its_parameters():
    known = click_commands()
    assert list(PAGES) == list(known)
    for page, command in known.items():
        names = {name for p in command.params if isinstance(p, click.Option) for name in (*p.opts, *p.secondary_opts)}
        assert {n for option in PAGES[page].options for n in option.names} == names | {"-h", "--help"}
        assert len(PAGES[page].arguments) == sum(isinstance(p, click.Argument) for p in command.params)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.page)
def test_an_entry_is_complete(entry):
    assert entry.summary.endswith(".")
    assert "\n" not in entry.summary
    assert all(entry.paragraphs)
    assert len(entry.examples) == 2
    assert all(p.help for p in (*entry.arguments, *entry.options))
    assert not [p.help for p in (*entry.arguments, *entry.options) if "[default" in p.help]


def test_an_option_has_its_default_and_its_limits():
    options = {o.names[-1]: o for o in PAGES["tcpscape-run"].options}
    assert (options["--chunk"].default, options["--seeds"].default) == ("8192", "10")
    assert options["--jobs"].help == "Cores; 0 is all. At least 0."
    assert options["--no-ecn"].heading == "--ecn, --no-ecn"
    assert options["--check"].repeatable
    assert options["--quiet"].names == ("-q", "--quiet")
    assert next(o for o in PAGES["tcpscape-bound"].options if "--from" in o.names).required


def test_the_table_of_statuses_has_those_of_the_code():
    ours = {str(value) for name, value in vars(errors).items() if name.startswith("EXIT_")}
    of_others = {row.name for row in reference.EXIT_STATUSES if row.name == "other"}  # those of the command that runs
    assert {row.name for row in reference.EXIT_STATUSES} - of_others == {"0", "1", *ours}


def test_the_tables_name_real_commands():
    rows = (*reference.EXIT_STATUSES, *reference.ENVIRONMENT, *reference.FILES)
    assert {name for row in rows for name in row.commands} <= set(COMMANDS)
    assert all(row.about.endswith(".") for row in rows)


def test_the_table_of_the_environment_has_every_variable_of_ours():
    """A variable is a constant of its own in a module, so that its name is written once."""
    modules = [path.read_text("utf-8") for path in Path(tcpscape.__file__).parent.rglob("*.py")]
    constants = {name for text in modules for name in re.findall(r'^[A-Z_]+ = "(TCPSCAPE_[A-Z_]+)"$', text, re.MULTILINE)}
    assert len(constants) > 2
    assert constants == {row.name for row in reference.ENVIRONMENT if row.name.startswith("TCPSCAPE_")}


def test_every_kind_of_completion_exists():
    kinds = set()
    for command in click_commands().values():
        kinds |= {cell.cell_contents for p in command.params for cell in getattr(p._custom_shell_complete, "__closure__", None) or ()}
    named = {kind for kind in kinds if isinstance(kind, str) and "|" not in kind}
    assert named == set(completion.KINDS)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.page)
def test_a_page_is_rendered_without_a_warning_within_80_columns(entry, tmp_path):
    if not shutil.which("man"):
        pytest.skip("man is not installed: apt-get install man-db")
    file = tmp_path / f"{entry.page}.1"
    file.write_text(reference.text(entry, ENTRIES), "utf-8")
    shown = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", str(file)],
        capture_output=True,
        text=True,
        check=False,
        env={"MANWIDTH": "80", "PATH": "/usr/bin:/bin", "MANROFFOPT": "-c", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"},
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    text = re.sub(r".\x08", "", shown.stdout)
    assert max(map(len, text.splitlines())) <= 80
    headings = re.findall(r"^[A-Z][A-Z ]+$", text, re.MULTILINE)
    wanted = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]
    assert [h for h in headings if h in wanted] == wanted
    flat = " ".join(text.split())
    assert all(name in flat for option in entry.options for name in option.names)
    assert " ".join(entry.examples[0].replace("\\\n", "").split()) in flat.replace("\\ ", "")


def test_the_pages_refer_to_pages_that_there_are():
    for entry in ENTRIES:
        named = re.findall(r"\\fB([\w\\-]+)\\fR\(1\)", reference.text(entry, ENTRIES))
        assert named
        assert {name.replace("\\-", "-") for name in named} <= set(PAGES) - {entry.page}


def test_text_that_roff_would_take_for_itself_is_shown_as_it_is(tmp_path):
    if not shutil.which("man"):
        pytest.skip("man is not installed: apt-get install man-db")
    strange = "it's `--json`, C:\\n, ~/x, a^b, .SH NOT"
    entry = reference.Entry(("tcpscape", "x"), "'X.", (f".SH NOT {strange}",), (), (), (f"tcpscape x '{strange}'", ".so /etc/passwd"), ())
    file = tmp_path / "x.1"
    file.write_text(reference.text(entry, [*ENTRIES, entry]), "utf-8")
    shown = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", str(file)],
        capture_output=True,
        text=True,
        check=False,
        env={"MANWIDTH": "80", "PATH": "/usr/bin:/bin", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"},
    )
    text = re.sub(r".\x08", "", shown.stdout)
    assert shown.stderr == ""
    assert f"tcpscape x '{strange}'" in text
    assert ".so /etc/passwd" in text
    assert ".SH NOT it's --json, C:\\n, ~/x, a^b, .SH NOT" in " ".join(text.split())


def test_the_command_prints_a_page_or_writes_all(cli, tmp_path):
    assert cli("man").out.startswith('.TH "TCPSCAPE"')
    assert cli("man", "run").out == cli("man", "tcpscape-run").out == reference.text(PAGES["tcpscape-run"], ENTRIES)
    assert cli("man", "study run").out == cli("man", "study-run").out
    assert cli("man", "--out", tmp_path / "man1").out == f"wrote {len(ENTRIES)} pages: {tmp_path / 'man1'}\n"
    assert {p.name for p in (tmp_path / "man1").iterdir()} == {f"{page}.1" for page in PAGES}

    (tmp_path / "file").write_text("")
    assert cli("man", "--out", tmp_path / "file").status == 2
