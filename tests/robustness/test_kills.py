"""Commands that are ended at random moments: nothing is lost, doubled, damaged or left over (benches/kills.py says what that is)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from conftest import ROOT
from tcpscape import engines

VIRTUAL = "virtual"


def kill(moments, only):
    words = [sys.executable, ROOT / "benches" / "kills.py", "--moments", str(moments), "--only", *only]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_commands_that_are_ended_go_on_as_if_nothing_had_happened(need_model):
    kill(5, ["small"])


@pytest.mark.slow
def test_sixty_moments_of_every_command(need_model):
    kill(60, ["sweep", "run", "study", "advise", "cliff", "report", "csv", "flent", "plot", "compare"])


@pytest.mark.slow
def test_a_real_kernel_that_is_ended_leaves_nothing():
    if reason := engines.REGISTRY[VIRTUAL]().unavailable():
        pytest.skip(f"engine {VIRTUAL}: {reason}")
    kill(12, [VIRTUAL])
