"""How the fields of dataclasses become options, and how options come back as dataclasses."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

import click
import pytest
from click.testing import CliRunner

from tcpscape.cli.command import Argument, CommandGroup, Option, command
from tcpscape.errors import ScenarioError


@dataclass(frozen=True)
class Inner:
    """Every kind of option."""

    text: Annotated[str, Option("A text.")] = "t"
    max_runs: Annotated[int, Option("A number.", least=0, most=9)] = 3
    share: Annotated[float | None, Option("A share.")] = None
    levels: Annotated[tuple[str, ...], Option("Levels.", name="--level", metavar="NAME=VALUE")] = ()
    as_json: Annotated[bool, Option("JSON.", name="--json")] = False
    ecn: Annotated[bool | None, Option("ECN.", name="--ecn/--no-ecn")] = None


@dataclass(frozen=True, kw_only=True)
class Outer:
    """A dataclass in a dataclass, between options of its own."""

    file: Annotated[Path, Argument("A file.")]
    out: Annotated[Path | None, Option("A place.")] = None
    inner: Inner
    jobs: Annotated[int, Option("Cores.")] = 0


calls: list[tuple[Outer, int | None]] = []


def example(outer: Outer, seed: Annotated[int | None, Option("A seed.")] = None) -> int:
    """Does an example.

    In a second paragraph.
    """
    calls.append((outer, seed))
    return 7


def run(*args: str):
    calls.clear()
    with command()(example).make_context("example", list(args)) as context:
        status = context.command.invoke(context)
    return status, *calls


def test_without_options_the_defaults_come():
    assert run("a.txt") == (7, (Outer(file=Path("a.txt"), inner=Inner()), None))


def test_every_option_arrives_in_its_dataclass():
    words = "--out o --text x --max-runs 9 --share 0.5 --level a=1 --level b=2 --json --no-ecn --jobs 2 --seed 0 a.txt"
    inner = Inner("x", 9, 0.5, ("a=1", "b=2"), as_json=True, ecn=False)
    assert run(*words.split()) == (7, (Outer(file=Path("a.txt"), out=Path("o"), inner=inner, jobs=2), 0))


def test_help_has_the_options_in_the_order_of_the_fields():
    text = CliRunner().invoke(command()(example), ["--help"]).output
    typed = ["--out", "--text", "--max-runs", "--share", "--level", "--json", "--ecn", "--jobs", "--seed", "--help"]
    assert [line.split()[0] for line in text.partition("Options:")[2].splitlines() if line.startswith("  --")] == typed
    assert "Does an example." in text
    assert "A number.  [default: 3; 0<=x<=9]" in text
    assert "--level NAME=VALUE" in text
    assert text.startswith("Usage: example [OPTIONS] FILE\n")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("", click.MissingParameter),
        ("a.txt --max-runs 10", click.BadParameter),
        ("a.txt --max-runs x", ScenarioError),
        ("a.txt --text", click.BadOptionUsage),
        ("a.txt --test 1", click.NoSuchOption),
        ("a.txt b.txt", click.UsageError),
    ],
)
def test_what_does_not_fit_is_refused(words, error):
    with pytest.raises(error):
        run(*words.split())


def test_two_parameters_with_one_name_are_a_bug():
    def twice(outer: Outer, jobs: Annotated[int, Option("Cores.")] = 0) -> None:
        """Has --jobs twice."""

    with pytest.raises(TypeError, match="two parameters are called jobs"):
        command()(twice)


def test_a_parameter_without_a_help_text_is_a_bug():
    def plain(jobs: int = 0) -> None:
        """Has a parameter that is neither an option nor an argument."""

    with pytest.raises(TypeError, match="jobs: a parameter is a dataclass, or is annotated"):
        command()(plain)


def test_a_type_that_python_3_10_wraps_is_understood():
    """There, `Annotated[X, …] = None` of a function is Optional[Annotated[X, …]]."""

    def wrapped(text: Optional[Annotated[str | None, Option("A text.")]] = None) -> None:  # noqa: UP045
        """Has an option."""

    assert [option.opts for option in command()(wrapped).params] == [["--text"]]


def test_a_group_keeps_the_order_of_its_commands():
    group = CommandGroup("group", "Several commands.")

    @group.subcommand("show")
    def show(name: Annotated[str, Argument("A name.")]) -> None:
        """Shows."""
        click.echo(f"shown: {name}")

    @group.subcommand("list")
    def list_() -> None:
        """Lists."""

    assert group.list_commands(click.Context(group)) == ["show", "list"]
    assert CliRunner().invoke(group, ["show", "x"]).output == "shown: x\n"
    with pytest.raises(click.exceptions.NoArgsIsHelpError):
        group.make_context("group", [])


OWN = (("emulate", "duration"), ("diagnose", "duration"), ("conform", "rate"))
"""Options that mean something else than those of trials: of a command that ends by itself, of sockets that are watched, of a sample of cells."""


def test_commands_share_the_help_of_a_shared_option():
    from tcpscape.cli.main import COMMANDS, app

    context, texts = click.Context(app), {}
    for name in COMMANDS:
        entry = app.get_command(context, name)
        for each in entry.commands.values() if isinstance(entry, click.Group) else [entry]:
            for parameter in each.params:
                if isinstance(parameter, click.Option) and (name, parameter.name) not in OWN:
                    texts.setdefault(parameter.opts[0], []).append(parameter.help)
    shared = "rate", "buffer", "distribution", "jitter-on", "loss-on", "rcvbuf", "sndbuf", "app", "chunk", "read", "duration"
    for name in shared:
        several = texts[f"--{name}"]
        assert len(several) >= 2, name
        assert len(set(several)) == 1, name


def every_command() -> list[tuple[str, click.Command]]:
    """The command line itself, each command, each group and each command of a group, with what is typed for it."""
    from tcpscape.cli.main import COMMANDS, app

    context, entries = click.Context(app), [("", app)]
    for name in COMMANDS:
        entry = app.get_command(context, name)
        entries.append((name, entry))
        entries += [(f"{name} {sub}", each) for sub, each in entry.commands.items()] if isinstance(entry, click.Group) else []
    return entries


ENTRIES = every_command()
EXAMPLES = tuple(dict.fromkeys(example for _, entry in ENTRIES if not isinstance(entry, click.Group) for example in entry.examples))
LONG = (
    "emulate",
    "diagnose",
    "study run",
    "advise",
    "cliff",
    "validate",
    "kernel build",
    "kernel remove",
    "kernel info",
    "kernel diff",
    "run baseline --engine virtual",
    "cca load",
    "explore",
    "stress",
    "evaluate",
)
"""Examples that take seconds or do not end, a file of the user, a kernel or root begin with one of these; they are parsed and not run."""


def words_of(example: str) -> list[str]:
    """The words of an example without where its output goes (`> mine.yaml`)."""
    words = shlex.split(example)
    return words[: words.index(">")] if ">" in words else words


@pytest.mark.parametrize(("typed", "entry"), ENTRIES, ids=[typed or "tcpscape" for typed, _ in ENTRIES])
def test_every_help_ends_with_two_examples_within_80_columns(cli, typed, entry):
    helped = cli(*typed.split(), "--help")
    assert helped.status == 0
    assert cli(*typed.split(), "-h").out == helped.out
    assert [line for line in helped.out.splitlines() if len(line) > 80] == []
    ends = helped.out.partition("\nExamples:\n")[2]
    assert [line.split()[0] for line in ends.splitlines() if not line.startswith("    ")] == ["tcpscape", "tcpscape"]
    assert len(entry.examples) == 2


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_understood(example):
    from tcpscape.cli.main import app

    words = words_of(example)
    if words[0].startswith("-"):
        return
    _, entry, rest = app.resolve_command(click.Context(app), words)
    if isinstance(entry, click.Group):
        _, entry, rest = entry.resolve_command(click.Context(entry), rest)
    entry.make_context(words[0], list(rest), parent=click.Context(app))


@pytest.mark.slow
def test_every_quick_example_runs(cli, tmp_path, monkeypatch, need_model):
    """In the order of help, in one directory: `compare out/starlink …` reads what `run … --out out/starlink` wrote."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").symlink_to(Path(__file__).parent.parent)  # packetdrill's scripts
    for example in EXAMPLES:
        if not example.startswith(LONG):
            answer = cli(*words_of(example))
            assert answer.status == 0, (example, answer)


def test_the_option_version_prints_what_the_command_does(cli):
    assert cli("--version").out == cli("version").out


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("run", "--rtt", "50ms", "--cca", "qubic"), "cca: 'qubic' is not built; did you mean cubic or bic?"),
        (("run", "--rtt", "50ms", "--rate", "10mbit", "--queue", "fqcodel"), "queue: 'fqcodel' is no queue; did you mean fq_codel or codel?"),
        (("run", "--latency", "50ms"), "latency: no such option '--latency'; did you mean --rtt?"),
        (("run", "--rtt", "50ms", "--bandwidth", "9mbit"), "bandwidth: no such option '--bandwidth'; did you mean --rate?"),
        (("cliff", "--seeds", "5"), "seeds: no such option '--seeds'; did you mean --most?"),
        (
            ("advise", "--rate", "9mbit", "--rate", "up=1mbit"),
            "rate: it is given twice; say it once, or for a rate of each way take a scenario whose link has",
        ),
        (("advise", "--qdisc", "fq"), "qdisc: no such option '--qdisc'; did you mean --queue?"),
        (("diagnose", "--bandwidth", "9mbit", "x"), "bandwidth: no such option '--bandwidth'; see `tcpscape diagnose --help`"),
        (("run", "starlink"), "did you mean starlink-baseline? choose baseline"),
        (("study", "run", "jitter-clif"), "study: 'jitter-clif' is unknown; did you mean jitter-cliff?"),
        (("run", "--rtt", "5ms", "--engine", "virtal"), "engine: 'virtal' is unknown; did you mean virtual?"),
        (("run", "--rtt", "9h"), "rtt: half of 32400s is more than netem can wait; write at most 548s"),
        (("run", "--rtt", "100"), "rtt: '100' has no unit; write for example 50ms"),
    ],
)
def test_a_slip_is_answered_with_what_was_probably_meant(cli, typed, said):
    refused = cli(*typed)
    assert refused.status == 2
    assert said in refused.err
    assert len(refused.err.strip().splitlines()) == 1


def test_going_back_is_offered_only_where_something_is_to_be_changed(cli, need_model):
    path = ("advise", "--rtt", "40ms", "--rate", "20mbit", "--seeds", "2", "--duration", "5s")
    kept, changed = cli(*path, "--cca", "cubic,reno").out, cli(*path, "--loss", "2%", "--cca", "cubic,bbr").out
    assert "Nothing to change" in kept
    assert "add --verbose for the cliff" in " ".join(kept.split())
    assert "tcp_congestion_control=bbr" in changed
    assert "how to verify and go back" in changed


def test_where_to_write_a_rate_of_each_way_is_said_of_rates_alone(cli):
    refused = cli("advise", "--rtt", "up=10ms", "--rtt", "down=20ms")
    assert (refused.status, refused.err) == (2, "error: rtt: it is given twice; say it once\n")


@pytest.mark.parametrize(
    ("option", "meant"), [("--bandwith", "--rate"), ("--bandwidth", "--rate"), ("--latancy", "--rtt"), ("--runs", "--seeds"), ("--trials", "--seeds")]
)
def test_another_name_of_an_option_may_be_misspelt(cli, option, meant):
    assert cli("run", "--rtt", "50ms", option, "3").err.rstrip().endswith(f"did you mean {meant}?")
