"""The standard streams: closed, full and narrow ones end no command halfway, and never look like a failed check."""

import contextlib
import io
import itertools
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

import forked
from conftest import with_another_mock
from patience import PATIENCE_S
from tcpscape import engines
from tcpscape.campaign import execute
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Execution, Runner
from tcpscape.cli import terminal
from tcpscape.cli.streams import PLAIN
from tcpscape.cli.terminal import ProgressLine
from tcpscape.errors import EXIT_OUTPUT
from tcpscape.findings.cliff import search
from tcpscape.scenario.fields import validate
from tcpscape.scenario.options import Conditions
from tcpscape.studies import run as studies_run
from tcpscape.studies import study as studies

COMMAND = "$PYTHON -m tcpscape"
RUN = f"{COMMAND} run --forward 'netem delay 5ms' --engine mock --seeds 2"
FAILING = "--check 'goodput_mbps.median > 100000'"
ASCII = ({"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})


def shell(line, **environment):
    """A line of bash: its status (of a pipe the one of its first command), stdout and stderr. An interpreter starts where variables are set."""
    script = f"{line}\nexit ${{PIPESTATUS[0]}}"
    env = {**os.environ, "PYTHON": sys.executable if environment else " ".join(forked.python()), **environment}
    done = subprocess.run(["bash", "-c", script], capture_output=True, env=env, timeout=PATIENCE_S, check=False)
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


@pytest.mark.slow
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
    with ProgressLine("sweep", clock=lambda: next(clock)) as progress:
        for done in range(60):
            progress.update(done, 60)
    return capsys.readouterr().err


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}, {}])
def test_where_the_cursor_stays_progress_is_lines(monkeypatch, capsys, environment):
    lines = watched(monkeypatch, capsys, **environment).splitlines()
    assert len(lines) == 6
    assert all(re.fullmatch(r"sweep: \d+ of 60 trials, \d+ s", line) for line in lines)


MINUTE = """
from tcpscape.cli.terminal import ProgressLine
clock = iter(float(s) for s in range(1000))
with ProgressLine("sweep", clock=lambda: next(clock)) as progress:
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
        assert child.wait(PATIENCE_S) == 0
    os.close(primary)
    assert b"sweep" in shown
    assert (b"\x1b" in shown) == has_bar


UNTIL_SEEN = """
import sys
from tcpscape.cli.terminal import ProgressLine
with ProgressLine("cliff", is_open=True):
    sys.stdin.readline()
"""


def test_a_line_is_shown_before_the_first_trial_is_over():
    primary, secondary = pty.openpty()
    env = {**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm"}
    with subprocess.Popen([*forked.python(), "-c", UNTIL_SEEN], stdin=subprocess.PIPE, stderr=secondary, env=env) as child:
        os.close(secondary)
        shown = b""
        while b"cliff" not in shown and select.select([primary], [], [], PATIENCE_S)[0]:
            shown += os.read(primary, 1 << 16)
        child.stdin.close()
        assert child.wait(PATIENCE_S) == 0
    os.close(primary)
    assert b"cliff" in shown


def test_an_open_total_is_at_work_behind_a_hundred_trials():
    screen = Console(file=io.StringIO(), force_terminal=True, width=100)
    clock = iter(float(s) for s in range(1000))
    with ProgressLine("cliff", is_open=True, clock=lambda: next(clock), screen=screen) as progress:
        for done in range(0, 300, 10):
            progress.update(done, 300)
    last = screen.file.getvalue().rpartition("cliff")
    assert "290 trials" in last[2]
    assert re.search("[\u2801-\u28ff]", last[0].rpartition("\n")[2])  # rich's spinner, which is gone where its clock stands still


def test_a_search_says_all_that_it_knows_at_80_columns():
    screen, clock = Console(file=io.StringIO(), force_terminal=True, width=80), iter(float(s) for s in range(1000))
    with ProgressLine("cliff", is_open=True, steps=1, clock=lambda: next(clock), screen=screen) as progress:
        progress.say("cubic, RTT 50ms: cliff")
        progress.now("cubic, RTT 50ms: cliff between 1.00ms and 2.50ms so far")
        progress.update(127, 127)
    assert "cliff between 1.00ms and 2.50ms so far 127 trials" in screen.file.getvalue()


# A process with too little address space says so in one line, instead of what its libraries do then.


COMMANDS = [
    "run baseline",
    "sweep --rtt 50ms --report",
    "advise --rtt 50ms",
    "cliff --rtt 50ms",
    "study run baseline --quick",
    "report out",
    "bound --rate 10mbit",
]


def limited(command, kilobytes):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (kilobytes << 10, kilobytes << 10))

    words = [sys.executable, "-m", "tcpscape", *command.split()]
    return subprocess.run(words, capture_output=True, text=True, preexec_fn=limit, timeout=PATIENCE_S, check=False)


@pytest.mark.parametrize("kilobytes", [300_000, 600_000, 1_000_000])
@pytest.mark.parametrize("command", COMMANDS)
def test_too_little_address_space_is_one_line(command, kilobytes):
    done = limited(command, kilobytes)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"error: memory: the process may have {kilobytes >> 10} MiB of address space, and {command.split()[0]} needs ")


@pytest.mark.parametrize("command", ["--help", "run --help", "cca list", "version"])
def test_what_computes_nothing_needs_little(command):
    done = limited(command, 300_000)
    assert (done.returncode, done.stderr) == (0, "")


def test_memory_that_a_python_object_does_not_get_is_one_line(cli, monkeypatch):
    def none(*_):
        raise MemoryError

    monkeypatch.setattr("tcpscape.campaign.execute.run", none)
    got = cli("run", "baseline", "--engine", "mock")
    assert (got.status, got.err.count("\n")) == (2, 1)
    assert got.err.startswith("error: memory: there is not enough of it; ")


# A process of the fork server is like one that an interpreter starts: streams, directory, environment, words, and how it ends.


STATE = """
import json, os, sys
print(json.dumps([sys.argv, os.getcwd(), sys.path[0] in ("", os.getcwd()), os.environ.get("MARK"), os.environ.get("HOME"), sys.stdin is None]))
print("to stderr", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""


def starts():
    """The words of either kind of process."""
    return [sys.executable], forked.python()


def ended(words, line, **options):
    done = subprocess.run(["sh", "-c", f'"$@" {line}', "sh", *words], capture_output=True, timeout=PATIENCE_S, check=False, **options)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("line", ["", "<&-", "</dev/null", ">&-", "2>&-", "<&- 2>&-", "| cat"])
def test_its_state_is_that_of_an_interpreter(tmp_path, line):
    env = {**os.environ, "MARK": "a\nb=c"}
    real, fork = (ended([*words, "-c", STATE, "7", "a b", ""], line, cwd=tmp_path, env=env) for words in starts())
    assert fork == real
    assert fork[0] == (0 if line == "| cat" else 7)


@pytest.mark.parametrize("code", ["raise SystemExit('words')", "1 / 0", "import os; os.abort()", "import os; os.kill(os.getpid(), 9)"])
def test_it_ends_like_an_interpreter(code):
    real, fork = (subprocess.run([*words, "-c", code], capture_output=True, timeout=PATIENCE_S, check=False) for words in starts())
    assert fork.returncode == real.returncode
    assert fork.stderr.splitlines()[-1:] == real.stderr.splitlines()[-1:]


def test_a_script_is_its_own_main(tmp_path):
    (tmp_path / "beside.py").write_text("A = 5\n")
    (tmp_path / "one.py").write_text("import beside, sys\nif __name__ == '__main__':\n    print(beside.A, sys.argv)\n")
    real, fork = (
        subprocess.run([*words, "one.py", "x"], capture_output=True, timeout=PATIENCE_S, check=True, cwd=tmp_path).stdout for words in starts()
    )
    assert fork == real == b"5 ['one.py', 'x']\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it(number):
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    with subprocess.Popen([*forked.python(), "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        pid = int(process.stdout.readline())
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == -number
        assert process.stdout.read() == b""  # it has ended, too
    end = time.monotonic() + PATIENCE_S
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{pid}")


# The line of progress: the part that is done never shrinks, whatever the work turns out to be.


BAR = re.compile(r"(\d+)/(\d+)")
COUNT = re.compile(r"(\d+) trials")


class Watched(ProgressLine):
    """Progress on a terminal whose clock moves on by a second with every look; keeps what is drawn after each update."""

    def __init__(self, what="running", *, is_open=False):
        self.drawn: list[str] = []
        super().__init__(
            what, is_open=is_open, clock=itertools.count(0.0, 1.0).__next__, screen=Console(file=io.StringIO(), force_terminal=True, width=100)
        )

    def update(self, done, total):
        super().update(done, total)
        if self._bar:
            page = Console(file=io.StringIO(), width=100, no_color=True)
            page.print(self._bar.get_renderable())
            self.drawn.append(page.file.getvalue().strip())

    def check(self):
        """Fails where a drawn fraction or count is less than the one before it, and where a bar comes back after a count."""
        fractions = [int(m[1]) / int(m[2]) for line in self.drawn if (m := BAR.search(line))]
        counts = [int(m[1]) for line in self.drawn if (m := COUNT.search(line) or BAR.search(line))]
        assert fractions == sorted(fractions), self.drawn
        assert counts == sorted(counts), self.drawn
        kinds = [bool(COUNT.search(line)) for line in self.drawn]
        assert kinds == sorted(kinds), self.drawn
        assert self.drawn
        return fractions, counts


def test_a_known_total_is_a_bar():
    with Watched("run") as progress:
        for done in range(6):
            progress.update(done, 5)
    fractions, _ = progress.check()
    assert (fractions[-1], len(fractions)) == (1, len(progress.drawn))


@pytest.mark.parametrize(
    ("steps", "counts"),
    [
        ([(1, 2), (2, 2), (1, 4), (2, 4), (4, 4), (1, 1)], [1, 2, 3, 4, 6, 7]),  # a second step
        ([(5, 10), (10, 10), (11, 30), (30, 30)], [5, 10, 11, 30]),
    ],
)
def test_a_total_that_grows_turns_the_bar_into_a_count(steps, counts):
    with Watched() as progress:
        for done, total in steps:
            progress.update(done, total)
    assert progress.check() == ([0.5, 1.0], counts)


def test_an_open_total_is_a_count_from_the_start():
    with Watched("cliff", is_open=True) as progress:
        progress.update(1, 2)
        progress.update(2, 2)
    assert progress.check() == ([], [1, 2])


def test_a_campaign_with_precision_never_goes_back():
    campaign = Campaign.of(
        {"conditions": {"rtt": "50ms"}, "axes": {"jitter": "0,10ms"}, "engines": ["mock"], "seeds": 5, "precision": "1%", "max_seeds": 40}
    )
    with Watched("sweep") as progress:
        execute.run(campaign, Execution(1, progress=progress.update))
    _, counts = progress.check()
    assert counts[-1] > 10  # more than the first round's 2 × 5


def test_a_search_never_goes_back():
    path = validate(Conditions, {"rtt": "50ms"}, "the options")
    with Watched("cliff", is_open=True) as progress:
        result = search.on_path(Runner(engines.make("mock"), 1, progress=progress.update), path, "cubic", "jitter", search.effort(0.5, 0))
    _, counts = progress.check()
    assert counts[-1] == result.runs


@pytest.mark.parametrize("other", [None, "other"])
def test_the_parts_and_engines_of_a_study_are_one_bar(other):
    study = studies.get("baseline").changed({"seeds": 2, "engines": ["mock"]})
    with Watched("study") as progress:
        execution = Execution(1, progress=progress.update, make=with_another_mock)
        if other:
            studies_run.contrast(study, "mock", other, execution)
        else:
            studies_run.run(study, execution)
    fractions, counts = progress.check()
    assert len(study.parts) > 1
    assert fractions[-1] == 1
    assert not progress.is_open
    assert counts[-1] == 2 * sum(len(part.cases()) for part in study.parts) * (2 if other else 1)
