"""Generated and mutated inputs over every command and every file format, in this process: `make fuzz-python` runs many more in processes of their own.

A case that fails is made smaller by Hypothesis; the message has its command line, and `print_blob` what repeats it.
"""

import contextlib
import io
import os
import signal
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from robustness import commands, documents, formats, judge

EACH_COMMAND, EACH_FORMAT = 3, 20
"""Cases of each command and of each format."""
PROMPT_S, STALLED_S = 10, 120
"""Most processor time of a case, and most time in all, s: a busy machine fails no test, and what waits without end does."""
SLOW = {"plot", "report", "study run", "validate", "advise", "kernel build", "doctor"}
"""Draw figures, run many trials or look at the machine: fewer cases here."""
SLOW_FORMATS = {"validated/", "conditions.csv", "listed.yaml", "recorded_results.csv", "flow.flent.gz", "studied/"}


SETTINGS = settings(
    derandomize=True,
    phases=(Phase.generate, Phase.shrink),
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
SEARCHED = settings(SETTINGS, max_examples=10_000, phases=[Phase.generate])


class TooLongError(BaseException):
    """A case did not end."""


@contextlib.contextmanager
def bounded():
    """Raises in the block where it takes longer."""

    def end(*_: object) -> None:
        raise TooLongError

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, PROMPT_S), (signal.SIGALRM, signal.ITIMER_REAL, STALLED_S))
    before = [signal.signal(number, end) for number, _, _ in timers]
    try:
        for _, timer, seconds in timers:
            signal.setitimer(timer, seconds)
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def ended(case) -> tuple[int, str, str]:
    """Status, stdout and stderr of a case, in a directory of its own."""
    from tcpscape.cli.main import call

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, write_through=True) for errors in ("strict", "backslashreplace"))
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        os.chdir(folder)
        try:
            case.write(Path(folder))
            with bounded():
                status = call(list(case.words))
        except SystemExit as e:
            status = e.code if isinstance(e.code, int) else 1
        finally:
            os.chdir(before)
    return status, *(stream.buffer.getvalue().decode() for stream in (out, err))


def quick(case):
    """The case on the mock, which answers at once whatever the duration and the rate are."""
    runs = case.words[:1] in (("run",), ("sweep",), ("advise",), ("cliff",)) and case.group != "control.py"
    return replace(case, words=(*case.words, "--engine=mock")) if runs and not any(word.startswith("--en") for word in case.words) else case


@pytest.fixture(autouse=True)
def _home(monkeypatch, tmp_path, need_model):
    """No kernel and no cache but this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("COLUMNS", raising=False)
    documents.made()


def check(strategy: st.SearchStrategy, count: int) -> None:
    """Runs so many cases of a strategy, the same ones each time."""

    @settings(SETTINGS, max_examples=count)
    @given(strategy)
    def holds(case):
        status, out, err = ended(quick(case))
        said = f"{case.command()}\n{err[-1000:]}"
        assert status in (judge.EXIT_OK, judge.EXIT_REFUSED) or (status == judge.EXIT_CHECK and "--check" in said), said
        assert not judge.CONTROL.search(out), said
        if status == judge.EXIT_REFUSED:
            assert not list(judge.message(err)), said

    threads = threading.active_count()
    holds()
    assert threading.active_count() <= threads + 1


@pytest.mark.parametrize("name", list(commands.commands()))
def test_every_command_refuses_what_it_cannot_read_in_one_line(name):
    check(commands.lines(name), 1 if name in SLOW else EACH_COMMAND)


@pytest.mark.parametrize("name", list(formats.formats()))
def test_every_format_refuses_what_is_damaged_in_one_line(name):
    check(formats.formats()[name], 3 if name in SLOW_FORMATS else EACH_FORMAT)


def test_every_command_and_every_option_is_drawn_from():
    """A new option is covered without a change: its values come from its type, or from its name where that is known."""
    from tcpscape.cli.main import app

    assert {name.split()[0] for name in commands.commands()} == set(app.list_commands(None))
    cases = []

    @settings(SETTINGS, max_examples=400)
    @given(commands.lines("run"))
    def collect(case):
        cases.append(case)

    collect()
    typed = {word.partition("=")[0] for case in cases for word in case.words}
    options = [{*option.opts} for option in commands.commands()["run"].params if option.opts[0].startswith("-")]
    for names in (one for one in options if not one & typed):  # raises where a long search finds none either
        find(commands.lines("run"), lambda case, names=names: any(word.partition("=")[0] in names for word in case.words), settings=SEARCHED)
