"""Every command that measures something, at several widths, without colours and on a dumb terminal: nothing is wider than the screen, the answer
is the second thing on it, and no congestion control's name is cut."""

import fcntl
import os
import pty
import shlex
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from conftest import ROOT

WIDTHS = (60, 80, 100, 150)
CCAS = ("cubic:hystart=off", "bbr")
MOCK = ("--engine", "mock")
PATH = (
    "--forward",
    "netem delay 25ms 8ms distribution normal loss 0.1%",
    "--reverse",
    "netem delay 25ms",
    "--bottleneck",
    "tbf rate 10mbit burst 6056 limit 62500",
)
COMMANDS = {
    "run": ("run", *PATH, "--cca", ",".join(CCAS), *MOCK, "--seeds", "3"),
    "run --mix": ("run", *PATH, "--mix", "cubic:hystart=off*2,bbr@5s", *MOCK, "--seeds", "3"),
    "sweep": ("sweep", "--rtt", "24,50ms", "--jitter", "0..8ms/4ms", "--cca", ",".join(CCAS), *MOCK, "--seeds", "3", "--out", "{tmp}/sweep"),
    "advise": ("advise", "--rtt", "26ms", "--jitter", "7ms", "--loss", "0.125%", "--cca", ",".join(CCAS), *MOCK, "--seeds", "3"),
    "cliff": ("cliff", "--rtt", "24,50ms", "--cca", ",".join(CCAS), *MOCK, "--most", "0"),
    "study": ("study", "run", "baseline", "--quick", *MOCK, "--no-report", "--out", "{tmp}/study"),
    "validate": ("validate", *MOCK, "--engine", "mock:6.12", "--random", "12", "--cca", "cubic,bbr", "--worst", "0", "--out", "{tmp}/validate"),
    "compare": ("compare", "{tmp}/a", "{tmp}/b"),
}
"""What is run by its name; `{tmp}` is a directory."""
NAMES = {"study": ("cubic", "bbr"), "validate": ("cubic", "bbr")}
"""Congestion controls that a screen names; of others those that were asked for."""
MOST_LINES = {60: 60, 80: 45, 100: 40, 150: 40}
"""Most lines of a screen, by its width."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A directory with two results to compare, in which the other commands keep theirs; what ran at one width does not run again at the next."""
    from tcpscape.cli.main import call

    root = tmp_path_factory.mktemp("screens")
    for name, seeds in (("a", "0..5"), ("b", "6..11")):
        call(["run", *PATH, "--cca", ",".join(CCAS), *MOCK, "--seeds", seeds, "--out", str(root / name)])
    return root


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_screen_fits(name, width, kept, cli, monkeypatch):
    for variable, value in {"COLUMNS": str(width), "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(variable, value)
    result = cli(*(word.format(tmp=kept) for word in COMMANDS[name]))
    assert result.status in (0, 1), result.err
    lines = [line for line in result.out.splitlines() if not line.startswith("Next: ")]  # a command to copy is one line
    too_wide = [line for line in lines if len(line) > width and max(map(len, line.split())) < width - 10]  # a path is not broken
    assert not too_wide
    assert len(lines) <= MOST_LINES[width]
    arrows = [i for i, line in enumerate(lines) if line.startswith("→ ")]
    assert len(arrows) == 1
    before = " ".join(lines[: arrows[0]])
    assert 1 <= arrows[0] <= 1 + len(before) // (width - 25)  # the path alone stands before the answer
    shown = NAMES.get(name, ("cubic:hystart=", "bbr"))
    assert all(any(cca in line for line in lines) for cca in shown)
    assert "\x1b" not in result.out


@pytest.mark.parametrize("name", ["run", "cliff"])
def test_quiet_is_the_answer_alone(name, kept, cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    result = cli(*(word.format(tmp=kept) for word in COMMANDS[name]), "--quiet")
    assert result.out.startswith("→ ")
    assert result.out.count("\n") == 1


def test_a_dumb_terminal_gets_plain_text(tmp_path):
    """On a terminal, whose width is its own, whose colours are not wanted, and which understands no escape sequences."""
    columns = 60
    own, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    env = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | {"TERM": "dumb", "NO_COLOR": "1"}
    process = subprocess.Popen([sys.executable, "-m", "tcpscape", *COMMANDS["run"]], stdout=other, stderr=subprocess.PIPE, env=env, cwd=tmp_path)
    os.close(other)
    text = b""
    while True:
        try:
            part = os.read(own, 65536)
        except OSError:  # Linux: the other end is closed
            break
        if not part:
            break
        text += part
    assert process.wait() == 0
    os.close(own)
    lines = text.decode().replace("\r\n", "\n").splitlines()
    assert b"\x1b" not in text
    assert max(len(line) for line in lines if not line.startswith("Next: ")) <= columns
    assert sum(line.startswith("→ ") for line in lines) == 1


def test_the_demo_is_two_answers_and_two_pages_in_forty_lines(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    recipe = (ROOT / "Makefile").read_text("utf-8").partition("\ndemo:")[2].partition("\n\n")[0].splitlines()[1:]
    printed: list[str] = []
    places = []
    for line in recipe:
        words = shlex.split(line.strip().removeprefix("@").replace("$$", "$"))
        if words[0] == "$(BIN)/tcpscape":
            is_study = words[1] == "study"
            assert is_study or "--report" in words  # a study writes its report unasked; drawing it takes seconds, its path does not
            few = [] if "--seeds" in words else ["--seeds", "2"]
            result = cli(*(word for word in words[1:] if word != "--report"), *MOCK, *few, *(["--no-report"] if is_study else []))
            assert result.status == 0, result.err
            places.append(Path(words[words.index("--out") + 1], *(words[3:4] if is_study else [])))
            printed += result.out.splitlines()
        else:
            assert words[0] == "echo", words
            printed += words[1:] or [""]
    assert len(printed) <= 40
    assert sum(line.startswith("→ ") for line in printed) == 2
    assert printed[-1].partition(": open ")[2].split() == [str(place / "report.html") for place in places]
    assert all((tmp_path / place).is_dir() for place in places)
