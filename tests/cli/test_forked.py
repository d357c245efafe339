"""A process of the fork server is like one that an interpreter starts: streams, directory, environment, words, and how it ends."""

import os
import signal
import subprocess
import sys
import time

import pytest

import forked

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
    done = subprocess.run(["sh", "-c", f'"$@" {line}', "sh", *words], capture_output=True, timeout=60, check=False, **options)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("line", ["", "<&-", "</dev/null", ">&-", "2>&-", "<&- 2>&-", "| cat"])
def test_its_state_is_that_of_an_interpreter(tmp_path, line):
    env = {**os.environ, "MARK": "a\nb=c"}
    real, fork = (ended([*words, "-c", STATE, "7", "a b", ""], line, cwd=tmp_path, env=env) for words in starts())
    assert fork == real
    assert fork[0] == (0 if line == "| cat" else 7)


@pytest.mark.parametrize("code", ["raise SystemExit('words')", "1 / 0", "import os; os.abort()", "import os; os.kill(os.getpid(), 9)"])
def test_it_ends_like_an_interpreter(code):
    real, fork = (subprocess.run([*words, "-c", code], capture_output=True, timeout=60, check=False) for words in starts())
    assert fork.returncode == real.returncode
    assert fork.stderr.splitlines()[-1:] == real.stderr.splitlines()[-1:]


def test_a_script_is_its_own_main(tmp_path):
    (tmp_path / "beside.py").write_text("A = 5\n")
    (tmp_path / "one.py").write_text("import beside, sys\nif __name__ == '__main__':\n    print(beside.A, sys.argv)\n")
    real, fork = (subprocess.run([*words, "one.py", "x"], capture_output=True, timeout=60, check=True, cwd=tmp_path).stdout for words in starts())
    assert fork == real == b"5 ['one.py', 'x']\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it(number):
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    with subprocess.Popen([*forked.python(), "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        pid = int(process.stdout.readline())
        process.send_signal(number)
        assert process.wait(30) == -number
        assert process.stdout.read() == b""  # it has ended, too
    end = time.monotonic() + 10
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{pid}")
