"""Completion: what is offered, and that bash, zsh and fish take it as it is meant."""

import os
import pty
import select
import shlex
import shutil
import subprocess
import time

import pytest

import forked
from patience import PATIENCE_S
from tcpscape.cli import completion
from tcpscape.cli.main import COMMANDS, app


def offered(line: str) -> list[str]:
    return [item.value for item in completion.completions(app, line)]


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("tcpscape ", list(COMMANDS)),
        ("tcpscape sw", ["sweep"]),
        ("tcpscape study ", ["list", "show", "run"]),
        ("tcpscape run --pc", ["--pcap"]),
        ("tcpscape run star", ["starlink-baseline"]),
        ("tcpscape sweep buf", ["buffers"]),
        ("tcpscape study run jitter-c", ["jitter-cliff"]),
        ("tcpscape study run jitter-cliff --part e", ["edges"]),
        ("tcpscape run --engine mo", ["model", "mock"]),
        ("tcpscape run --engine=mo", ["--engine=model", "--engine=mock"]),
        ("tcpscape run --kernel 6.1", ["6.1", "6.12", "6.18", "6.19"]),
        ("tcpscape run --kernel h", ["host"]),
        ("tcpscape run --kernel 6.1,rmem", ["6.1,rmem_max="]),
        ("tcpscape advise --order ", ["reorder", "keep", "clamp"]),
        ("tcpscape plot out --what cw", ["cwnd"]),
        ("tcpscape plot out --what cwnd,stri", ["cwnd,strip"]),
        ("tcpscape export x --to ip", ["iperf3"]),
        ("tcpscape report x --figures svg,p", ["svg,png", "svg,pdf"]),
        ("tcpscape man study-s", ["study-show"]),
        ("tcpscape sweep --metric share", ["share_min", "share_max", "share:"]),
        ("tcpscape run --check goodput_1s_mi", ["goodput_1s_min"]),
        ("tcpscape completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_what_there_is_is_offered(line, some):
    assert offered(line)[: len(some)] == some


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("tcpscape run --cca cub", ["cubic"]),
        ("tcpscape run --cca cubic,bb", ["cubic,bbr", "cubic,bbr3"]),
        ("tcpscape run --cca cubic:hystart=", ["cubic:hystart=on", "cubic:hystart=off"]),
        ("tcpscape run --cca 'cubic,ren", ["cubic,reno"]),
        ("tcpscape run --cca reno,cubic:hystart=off:hystart_d", ["reno,cubic:hystart=off:hystart_detect="]),
        ("tcpscape run --cca al", ["all"]),
        ("tcpscape cca show west", ["westwood"]),
        ("tcpscape qdisc show fq_c", ["fq_codel"]),
        ("tcpscape advise --queue fq_c", ["fq_codel"]),
        ("tcpscape run --mix cubic*2,bb", ["cubic*2,bbr", "cubic*2,bbr3"]),
    ],
)
def test_names_of_the_model_are_offered(line, some, need_model):
    assert offered(line) == some


@pytest.mark.parametrize("line", ["tcpscape nonsense ", "tcpscape run --nonsense ", 'tcpscape run "', "tcpscape study run nonsense --part ", "", "x"])
def test_a_line_that_makes_no_sense_has_no_error(line, cli, monkeypatch):
    monkeypatch.setenv(completion.VARIABLE, "bash")
    monkeypatch.setenv(completion.LINE, line)
    answer = cli()
    assert (answer.status, answer.err) == (0, "")


def test_directories_with_results_are_offered(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli("run", "baseline", "--engine", "mock", "--seeds", "2", "--out", "out/mine").status == 0
    (tmp_path / "out" / "other").mkdir()
    assert offered("tcpscape report ou") == ["out/mine"]
    assert offered("tcpscape compare out/mine out/m") == ["out/mine"]
    assert [(i.type, i.value) for i in completion.completions(app, "tcpscape report elsewhere")] == [("file", "elsewhere")]


@pytest.mark.parametrize(
    ("line", "words", "typed"),
    [
        ("tcpscape run ", ["tcpscape", "run"], ""),
        ("tcpscape ru", ["tcpscape"], "ru"),
        ("tcpscape run 'a b", ["tcpscape", "run"], "a b"),
        ('tcpscape run "a b" ', ["tcpscape", "run", "a b"], ""),
        ("tcpscape run a\\ b", ["tcpscape", "run"], "a b"),
        ("", [], ""),
        ("tcpscape run '", ["tcpscape", "run"], ""),
    ],
)
def test_a_line_is_split_as_a_shell_does(line, words, typed):
    assert completion.split(line) == (words, typed)


@pytest.fixture
def scripts(tmp_path):
    """A directory with the scripts of all shells, and tcpscape on the PATH of the environment returned with it."""
    for shell, text in completion.SCRIPTS.items():
        (tmp_path / shell).write_text(text)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tcpscape").write_text(f'#!/bin/sh\nexec {shlex.join(forked.python())} -m tcpscape "$@"\n')
    (tmp_path / "bin" / "tcpscape").chmod(0o755)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return tmp_path, os.environ | {"PATH": path, "TERM": "dumb", "PS1": "$ ", "HOME": str(tmp_path)}


def typed_into(shell: list[str], setup: str, keys: str, ends: str, env: dict[str, str], cwd) -> str:
    """The line that a shell shows after keys, as soon as it ends so; otherwise what it shows after half a minute."""
    pid, terminal = pty.fork()
    if not pid:  # the shell
        os.chdir(cwd)
        os.execvpe(shell[0], shell, env)

    def shown_until(mark: str) -> str:
        shown, end = "", time.monotonic() + PATIENCE_S
        while mark not in shown and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 65_536).decode(errors="replace").replace("\x07", "")
        return shown

    try:
        os.write(terminal, f"{setup}; echo re''ady\n".encode())
        shown_until("ready\r\n")
        os.write(terminal, keys.encode())
        return shown_until(ends)
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


LINES = [
    ("tcpscape swe\t", "tcpscape sweep "),
    ("tcpscape study run jitter-c\t", "jitter-cliff "),
    ("tcpscape run --engine mode\t", "--engine model "),
    ("tcpscape run --engine=mode\t", "--engine=model "),
    ("tcpscape run --cca cubic:hystart_det\t", "--cca cubic:hystart_detect="),
    ("tcpscape run --cca bbr,cubic:hystart=of\t", "--cca bbr,cubic:hystart=off "),
    ("tcpscape run mine\t", "run mine.yaml "),
    ("tcpscape run --dur\t", "run --duration "),
]


@pytest.mark.parametrize(("keys", "line"), LINES, ids=[line.strip() for _, line in LINES])
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_completes_what_is_typed(shell, keys, line, scripts, need_model):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    folder, env = scripts
    (folder / "mine.yaml").write_text("duration: 1s\n")
    start = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}[shell]
    begin = {"bash": "source ./bash", "zsh": "PS1='$ '; autoload -U compinit; compinit -u -D; source ./zsh"}[shell]
    assert line in typed_into(start, begin, keys, line, env, folder)


@pytest.mark.parametrize(("keys", "line"), LINES, ids=[line.strip() for _, line in LINES])
def test_fish_completes_what_is_typed(keys, line, scripts, need_model):
    if not shutil.which("fish"):
        pytest.skip("fish is not installed")
    folder, env = scripts
    (folder / "mine.yaml").write_text("duration: 1s\n")
    asked = f"source fish; complete --do-complete '{keys.strip()}'"
    got = subprocess.run(["fish", "--no-config", "-c", asked], capture_output=True, text=True, env=env, cwd=folder, check=True, timeout=PATIENCE_S)
    assert [value.split("\t")[0] for value in got.stdout.splitlines()] == [line.split()[-1]]
    assert got.stderr == ""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_needs_no_preparation(cli, tmp_path):
    (tmp_path / "_tcpscape").write_text(cli("completion", "zsh").out)
    words = "source ./_tcpscape && print $_comps[tcpscape]"
    done = subprocess.run(
        ["zsh", "-f", "-c", words], capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)}, check=False
    )
    assert (done.stdout, done.stderr) == ("_tcpscape\n", "")
