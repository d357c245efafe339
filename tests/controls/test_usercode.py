"""What a user wrote can neither end the command, nor hold it up, nor spoil its output: whatever it does is one line and status 2."""

import json
import os
import subprocess

import pytest

import forked
from patience import PATIENCE_S
from tcpscape.controls import usercode

RUN = ["run", "--forward", "netem delay 5ms loss 2%", "--duration", "3s", "--seeds", "2", "--cca", "mine.py:Mine"]
CLASS = """
import ctypes, locale, os, random, sys, threading, time
class Odd(BaseException): pass
class PanicException(BaseException): pass
class Mute(Exception):
    def __str__(self): raise ValueError("no")
class Number:
    def __float__(self): raise Odd("f")
    def __int__(self): raise Odd("i")
    def __index__(self): raise Odd("x")
class Mine:
    def __init__(self):
        {start}
    def on_ack(self, sample, window):
        {ack}
    def ssthresh(self, sample, window):
        {threshold}
"""
GROW = "window.additive_increase(window.cwnd, sample.acked)"


@pytest.fixture(autouse=True)
def _model(need_model):
    pass


def mine(start="pass", ack=GROW, threshold="return 2"):
    return CLASS.format(start=start, ack=ack, threshold=threshold)


def command(tmp_path, text, *words, **environment):
    """The command line with a class of this text: its status, stdout and stderr."""
    (tmp_path / "mine.py").write_text(text)
    line = [*forked.python(), "-m", "tcpscape", *(words or RUN)]
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE_S, env={**os.environ, **environment}, check=False)
    return done.returncode, done.stdout, done.stderr


def refused(tmp_path, text, *words, said, **environment):
    expect_line(*command(tmp_path, text, *words, **environment), said)


@pytest.fixture
def refused_here(cli, tmp_path, monkeypatch):
    """The same in this process, which is quick."""

    def refused(text, *words, said):
        (tmp_path / "mine.py").write_text(text)
        got = cli(*(words or RUN))
        expect_line(got.status, got.out, got.err, said)

    monkeypatch.chdir(tmp_path)
    return refused


def expect_line(status, out, err, said):
    assert (status, out) == (2, ""), err
    assert err.startswith("error: cca: "), err
    assert err.count("\n") == 1, err
    assert said in err, err


RAISED = [
    ("sys.exit(0)", "SystemExit: 0"),
    ("sys.exit('bye')", "SystemExit: bye"),
    ("exit(3)", "SystemExit: 3"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ("raise GeneratorExit", "GeneratorExit"),
    ("raise Odd('x')", "Odd: x"),
    ("raise PanicException('x')", "PanicException: x"),
    ("raise Mute", "Mute: (it has no message)"),
    ("raise MemoryError", "MemoryError"),
    ("def again(): again()\n        again()", "RecursionError: "),
    ("raise StopIteration", "StopIteration"),
    ("raise BrokenPipeError", "BrokenPipeError"),
]


@pytest.mark.parametrize(("line", "said"), RAISED)
@pytest.mark.parametrize("place", ["ack", "threshold", "start"])
def test_whatever_a_hook_raises_is_its_failure(refused_here, line, said, place):
    hook = {"ack": "on_ack", "threshold": "ssthresh", "start": "__init__"}[place]
    refused_here(mine(**{place: line}), said=f"mine.py:Mine: {hook}, mine.py line ")
    refused_here(mine(**{place: line}), *RUN, "--check", "goodput_mbps.median > 1", said=said)


def test_an_exit_in_a_hook_is_no_success(tmp_path):
    refused(tmp_path, mine(ack="sys.exit(0)"), *RUN, "--check", "goodput_mbps.median > 1e6", said="on_ack, mine.py line 15: SystemExit: 0")


@pytest.mark.parametrize(
    ("line", "said"), [(line.replace("        ", ""), said) for line, said in RAISED if not any(own in line for own in ("Odd", "Panic", "Mute"))]
)
def test_whatever_an_import_raises_is_its_failure(tmp_path, line, said):
    refused(tmp_path, f"import sys\n{line}\n{mine()}", said=f"cannot import mine.py line 2: {said}" if "again" not in line else said)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("window.cwnd = float('nan')", "is not a whole number of packets"),
        ("window.cwnd = 10**400", "is not a whole number of packets"),
        ("window.cwnd = -1", "window.cwnd = -1 is not"),
        ("window.cwnd = Number()", "is not a whole number of packets"),
        ("window.pacing_rate = Number()", "Odd: f"),
        ("window.pacing_rate = 'fast'", "TypeError"),
        ("window.pacing_rate = -1", "is not a rate"),
        ("window.pacing_rate = float('-inf')", "is not a rate"),
        ("window.slow_start(-1)", "OverflowError"),
        ("window.additive_increase(1, 2**70)", "OverflowError"),
        ("window.cwnd += 0.5", "TypeError: window.cwnd = "),
        ("window.cwnd = 0", "TypeError: window.cwnd = 0 is not"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("window.cwnd = 'x'", "TypeError: window.cwnd = x is not"),
        ("window.pacing_rate = float('nan')", "ValueError: window.pacing_rate = "),
        ("sample.cwnd", "AttributeError: "),
        ("del window.cwnd", "AttributeError"),
        ("del sample.acked", "AttributeError"),
        ("window.cwmd = 1", "AttributeError"),
        ("sample.acked = 2", "AttributeError"),
        ("window.cwnd = [1] * 1000000", "is not a whole number"),
        ("del self.nothing", "AttributeError"),
    ],
)
def test_nonsense_is_refused(refused_here, line, said):
    refused_here(mine(ack=line), said=said)


@pytest.mark.parametrize("value", ["float('nan')", "-1", "0", "2**32", "'10'", "Number()", "None", "[]", "True + 0.5", "1e300"])
def test_a_threshold_that_is_no_number_of_packets_is_refused(refused_here, value):
    refused_here(mine(threshold=f"return {value}"), said="not a whole number of packets from 1")


@pytest.mark.parametrize(
    "line",
    [
        "window.cwnd = 2**20",
        "window.pacing_rate = 1e300",
        "window.pacing_rate = float('inf')",
        "window.cwnd_cnt = 2**32 - 1",
        "window.additive_increase(0, 1)",
    ],
)
def test_the_largest_values_are_values(cli, tmp_path, monkeypatch, line):
    (tmp_path / "mine.py").write_text(mine(ack=line))
    monkeypatch.chdir(tmp_path)
    got = cli(*RUN, "--quiet")
    assert (got.status, got.err) == (0, "")


LOOP = "while True: pass"
STUBBORN = "while True:\n            try:\n                while True: pass\n            except BaseException: pass"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (mine(ack=LOOP), "mine.py:Mine: on_ack, mine.py line "),
        (mine(start=LOOP), "mine.py:Mine: __init__, mine.py line "),
        (mine(threshold=LOOP), "ssthresh, "),
        (LOOP, "cannot import mine.py line 1: a call took more than 1 s"),
        (mine(ack=STUBBORN), "mine.py:Mine: on_ack"),
        (mine(ack="time.sleep(1e6)"), "on_ack does not come back"),
        (mine(ack="ctypes.PyDLL(None).sleep(1000)"), "mine.py:Mine: on_ack does not come back"),
        (f"import time\ntime.sleep(1e6)\n{mine()}", "the import of mine.py does not come back"),
        (mine(ack="threading.Lock().acquire() and threading.Event().wait()"), "does not come back"),
        (mine(ack=f"sys.setswitchinterval(1e6)\n        {LOOP}"), "on_ack"),
        (mine(ack="time.sleep(0.9)"), "the calls of the trial together more than their share"),
    ],
)
def test_what_does_not_end_is_ended(tmp_path, text, said):
    words = ["100ms" if word == "3s" and "0.9" in text else word for word in RUN]
    refused(tmp_path, text, *words, said=said, TCPSCAPE_HOOK_PATIENCE="1")


def test_patience_is_a_number_of_seconds(monkeypatch):
    for text, seconds in (("", 5.0), ("60", 60.0), ("0", float("inf"))):
        monkeypatch.setenv(usercode.PATIENCE, text)
        assert usercode.patience() == seconds
    for text in ("soon", "-1", "nan"):
        monkeypatch.setenv(usercode.PATIENCE, text)
        with pytest.raises(Exception, match=r"TCPSCAPE_HOOK_PATIENCE: .* is not a number of seconds; write for example 60"):
            usercode.patience()


GUEST = """print("imported"); sys.stdout.close()
        os.chdir("/"); random.seed(1); locale.setlocale(locale.LC_ALL, "C"); sys.setrecursionlimit(100)
        threading.Thread(target=time.sleep, args=(1000,)).start()"""


def test_what_it_changes_is_set_back(tmp_path):
    expected = command(tmp_path, mine(), *RUN, "--json", "--out", "out")
    status, out, err = command(tmp_path, mine(start=GUEST, ack=f"print('ack', flush=True); {GROW}"), *RUN, "--json", "--out", "other")
    assert (status, expected[0]) == (0, 0), err

    def without_cost(text):
        return [{k: v for k, v in json.loads(line).items() if k not in ("hook_cost", "address")} for line in text.splitlines()]

    assert without_cost(out) == without_cost(expected[1])
    assert "ack\n" in err
    assert sorted(p.name for p in (tmp_path / "other").iterdir()) == sorted(p.name for p in (tmp_path / "out").iterdir())
