"""The standard streams: closed, full and narrow ones end no command halfway, and never look like a failed check."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys

import pytest

import forked
from tcpscape.cli import terminal
from tcpscape.cli.streams import PLAIN
from tcpscape.cli.terminal import Progress
from tcpscape.errors import EXIT_OUTPUT

COMMAND = "$PYTHON -m tcpscape"
RUN = f"{COMMAND} run --forward 'netem delay 5ms' --engine mock --seeds 2"
FAILING = "--check 'goodput_mbps.median > 100000'"
ASCII = ({"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})


def shell(line, **environment):
    """A line of bash: its status (of a pipe the one of its first command), stdout and stderr. An interpreter starts where variables are set."""
    script = f"{line}\nexit ${{PIPESTATUS[0]}}"
    env = {**os.environ, "PYTHON": sys.executable if environment else " ".join(forked.python()), **environment}
    done = subprocess.run(["bash", "-c", script], capture_output=True, env=env, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr.decode()


def one_line(text):
    return len(text.splitlines()) == 1 and text.startswith("error: ") and "; " in text


@pytest.mark.parametrize("command", [f"{RUN} | head -0", f"{RUN} --json | head -0", f"{COMMAND} --help | head -1", f"{COMMAND} cca list | head -1"])
def test_a_reader_that_leaves_is_no_error(command):
    status, _, err = shell(command)
    assert (status, err) == (0, "")


def test_a_check_fails_whether_or_not_its_line_is_read():
    for reader in ("| head -0", ">/dev/full", ">&-"):
        assert shell(f"{RUN} {FAILING} {reader}")[0] == 1
    assert shell(f"{RUN} --json {FAILING} 2>/dev/full")[0] == 1


@pytest.mark.parametrize(
    "command", [RUN, f"{RUN} --json", f"{COMMAND} --help", f"{COMMAND} run --help", f"{COMMAND} --version", f"{COMMAND} cca show cubic"]
)
def test_a_full_stdout_is_one_line_and_a_status_of_its_own(command):
    status, _, err = shell(f"{command} >/dev/full")
    assert status == EXIT_OUTPUT
    assert one_line(err)


def test_what_was_run_is_kept_although_stdout_is_full(tmp_path):
    status, _, _ = shell(f"{RUN} --out {tmp_path}/a >/dev/full")
    assert status == EXIT_OUTPUT
    assert shell(f"{COMMAND} export {tmp_path}/a --to csv")[1].count(b"\n") == 3


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "2>/dev/full", "<&- 2>&-"])
def test_a_stream_that_nobody_needs_may_be_closed_or_full(closed, tmp_path):
    assert shell(f"{RUN} --out {tmp_path}/a {closed}")[:2] == shell(f"{RUN} --out {tmp_path}/a")[:2]


def test_every_stream_may_be_closed(tmp_path):
    assert shell(f"{RUN} --out {tmp_path}/a <&- >&- 2>&-") == (0, b"", "")
    assert shell(f"{COMMAND} export {tmp_path}/a --to csv")[1].count(b"\n") == 3


@pytest.mark.parametrize("environment", ASCII)
@pytest.mark.parametrize("command", [RUN, f"{COMMAND} run --help", f"{COMMAND} --help", f"{COMMAND} cca show cubic", f"{COMMAND} sweep --rtt '× →'"])
def test_a_terminal_without_unicode_gets_plain_letters(command, environment, tmp_path):
    status, out, err = shell(f"cd {tmp_path}; {command}", **environment)
    usual = shell(f"cd {tmp_path}; {command}")
    assert status == usual[0]
    assert out.isascii()
    assert err.isascii()
    assert "Traceback" not in err
    assert len(out.splitlines()) == len(usual[1].splitlines())
    if "→" in usual[1].decode():
        assert b"->" in out


def test_files_are_utf_8_whatever_the_locale(tmp_path):
    status, _, err = shell(f"{RUN} --out {tmp_path}/a --report", **ASCII[1])
    assert (status, err) == (0, "")
    assert "→" in (tmp_path / "a" / "report.html").read_text("utf-8")
    there, here = (shell(f"{COMMAND} export {tmp_path}/a --to markdown", **e)[1] for e in (ASCII[0], {}))
    assert there == here


def test_every_plain_spelling_is_ascii():
    assert all(spelling.isascii() and not character.isascii() for character, spelling in PLAIN.items())


@pytest.mark.parametrize("environment", [{"MPLBACKEND": "nonsense"}, {"POLARS_MAX_THREADS": "0"}, {"POLARS_MAX_THREADS": "x"}])
def test_variables_of_libraries_end_no_command(environment, tmp_path):
    assert shell(f"{RUN} --out {tmp_path}/a {'--report' if 'MPLBACKEND' in environment else ''}", **environment)[::2] == (0, "")


def test_an_end_in_the_middle_of_an_import_is_no_error():
    script = "import sys, types; sys.modules['yaml'] = types.ModuleType('yaml'); from tcpscape.cli import streams; streams.leave(130)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def watched(monkeypatch, capsys, **environment):
    """What a progress of a minute writes on a terminal."""
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    clock = iter(float(s) for s in range(1000))
    monkeypatch.setattr(terminal.sys.stderr, "isatty", lambda: True)
    with Progress("sweep", clock=lambda: next(clock)) as progress:
        for done in range(60):
            progress.update(done, 60)
    return capsys.readouterr().err


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}, {}])
def test_where_the_cursor_stays_progress_is_lines(monkeypatch, capsys, environment):
    lines = watched(monkeypatch, capsys, **environment).splitlines()
    assert len(lines) == 6
    assert all(re.fullmatch(r"sweep: \d+ of 60 trials, \d+ s", line) for line in lines)


MINUTE = """
from tcpscape.cli.terminal import Progress
clock = iter(float(s) for s in range(1000))
with Progress("sweep", clock=lambda: next(clock)) as progress:
    for done in range(60):
        progress.update(done, 60)
"""


@pytest.mark.parametrize(("term", "has_bar"), [("dumb", False), ("xterm", True)])
def test_a_terminal_that_moves_its_cursor_has_a_bar(term, has_bar):
    primary, secondary = pty.openpty()
    env = {**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": term}
    with subprocess.Popen([*forked.python(), "-c", MINUTE], stderr=secondary, stdout=subprocess.DEVNULL, env=env) as child:
        os.close(secondary)
        shown = b""
        with contextlib.suppress(OSError):  # the terminal's other end is closed
            while part := os.read(primary, 1 << 16):
                shown += part
        assert child.wait(60) == 0
    os.close(primary)
    assert b"sweep" in shown
    assert (b"\x1b" in shown) == has_bar
