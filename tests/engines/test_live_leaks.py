"""Commands of the live engine that are killed at random moments: nothing is left of them (benches/leaks.py says what that is)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from conftest import ROOT
from tcpscape.engines import host

KILLED = [("nobody", "trial"), ("nobody", "emulate"), ("nobody", "doctor"), ("root", "trial"), ("root", "emulate"), ("self", "trial")]
"""As whom, and what; `self` is root in a user namespace here, where the kernel counts its namespaces."""


def kill(moments, only, user="self", grace=10):
    words = [sys.executable, ROOT / "benches" / "leaks.py", "--moments", str(moments), "--user", user, "--grace", str(grace), "--only", *only]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.stdout.startswith("skipped: "):
        pytest.skip(done.stdout.strip())
    return done


@pytest.fixture
def need_spaces():
    if reason := host.unavailable():
        pytest.skip(f"the live engine's program: {reason}")


def test_what_is_left_is_found(need_spaces):
    done = kill(1, ["leak"], grace=0.5)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "left the process" in done.stdout
    assert "left in TMPDIR left" in done.stdout


@pytest.mark.slow
def test_nothing_is_left_of_what_is_killed(need_spaces):
    done = kill(1, ["trial", "emulate"])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("user", "command"), KILLED)
def test_nothing_is_left_after_twenty_kills(need_spaces, user, command):
    if os.geteuid() and user != "self":
        pytest.skip(f"only root can become {user}; run `sudo make test-all`")
    done = kill(20, [command], user)
    assert done.returncode == 0, done.stdout + done.stderr
