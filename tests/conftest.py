"""What the tests share: the command line as a function, and which engines there are."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from tcpscape import engines

ROOT = Path(__file__).parent.parent


def bench(name: str) -> ModuleType:
    """A module of benches/, which is a directory of scripts and no package."""
    sys.path.insert(0, str(ROOT / "benches"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "benches"))


@dataclass
class Said:
    """What a command printed."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict]:
        """stdout as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def cli(monkeypatch, capsys):
    """Runs the command line in this process, without the width that the tests' own runner has."""
    from tcpscape.cli.main import call

    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*args: str) -> Said:
        try:
            status = call([str(a) for a in args])
        except SystemExit as e:
            status = int(e.code or 0)
        got = capsys.readouterr()
        return Said(status, got.out, got.err)

    return run


@pytest.fixture
def shell():
    """Runs the command line as a process."""

    def run(*args: str, cwd: Path | None = None) -> Said:
        got = subprocess.run([sys.executable, "-m", "tcpscape", *args], capture_output=True, text=True, timeout=300, check=False, cwd=cwd)
        return Said(got.returncode, got.stdout, got.stderr)

    return run


def model() -> None:
    """Skips, with the reason, where the model is not built."""
    if reason := engines.REGISTRY["model"]().unavailable():
        pytest.skip(f"engine model: {reason}")


@pytest.fixture
def need_model():
    """A test that needs the model engine."""
    model()


SLOW = {"virtual", "live"}
"""Engines that only `make test-all` waits for."""


@pytest.fixture(params=[pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in engines.REGISTRY])
def engine(request):
    """Every engine; those that cannot run here are skipped with their reason."""
    made = engines.REGISTRY[request.param]()
    if reason := made.unavailable():
        pytest.skip(f"engine {request.param}: {reason}")
    return made
