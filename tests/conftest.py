"""What the tests share: the command line as a function, and which engines there are."""

import gc
import importlib
import json
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
from threadpoolctl import threadpool_limits

import forked
import skips
from patience import PATIENCE_S
from tcpscape import engines, kernels
from tcpscape.engines.mock import Mock
from tcpscape.kernels import config
from tcpscape.schemas.documents import DOCUMENTS

TESTS = Path(__file__).parent
ROOT = TESTS.parent


def bench(name: str) -> ModuleType:
    """A module of benches/, which is a directory of scripts and no package."""
    sys.path.insert(0, str(ROOT / "benches"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "benches"))


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(DOCUMENTS[name].schema())


def expect(name: str, document: Any) -> None:
    validator(name).validate(document)
    assert next(iter(document)) == "format"


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
    """Runs the command line as a process of its own (tests/forked.py)."""

    def run(*args: str, cwd: Path | None = None) -> Said:
        got = subprocess.run([*forked.python(), "-m", "tcpscape", *args], capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=cwd)
        return Said(got.returncode, got.stdout, got.stderr)

    return run


class Other(Mock):
    """Mock with another version, and half of its goodput in CUBIC's trials."""

    version = "mock-2"

    def run(self, scenario, seeds, **how):
        trials = super().run(scenario, seeds, **how)
        return [replace(t, flows=tuple(replace(f, goodput_mbps=f.goodput_mbps / 2) for f in t.flows)) if t.cca == "cubic" else t for t in trials]


def with_another_mock(name):
    """Engines by name, and `other`."""
    return Other() if name == "other" else engines.make(name)


def need(name: str) -> None:
    """Skips, with the reason, where an engine cannot run. (`engines.make` raises there: no module may call it while it is imported.)"""
    if reason := engines.REGISTRY[name]().unavailable():
        pytest.skip(f"engine {name}: {reason}")


def model() -> None:
    """Skips, with the reason, where the model is not built."""
    need("model")


@pytest.fixture
def need_model():
    need("model")


@pytest.fixture
def need_virtual():
    need("virtual")


@pytest.fixture
def need_programs(need_virtual):
    """A kernel that programs of this machine can run on."""
    if kernels.find(None).recipe != config.recipe():
        pytest.skip("no kernel is built with today's configuration; run `tcpscape kernel build`")


def pytest_sessionstart() -> None:
    """What is run in the background or by nohup ignores these signals, and so does what it starts; tests send them to processes."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Where every test module is imported: none of that is garbage to look for, and each worker computes on one core."""
    gc.freeze()
    threadpool_limits(1)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where skips are judged, one that the machine could have avoided fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if skips.strict() and reporter is not None and not hasattr(session.config, "workerinput"):
        reports = reporter.stats.get("skipped", [])
        session.config.stash[AVOIDABLE] = skips.avoidable(r.longrepr[2].removeprefix("Skipped: ") for r in reports if isinstance(r.longrepr, tuple))
        if session.config.stash[AVOIDABLE] and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Names the skips that failed the run."""
    for reason in config.stash.get(AVOIDABLE, []):
        terminalreporter.write_line(f"skipped although this machine could run it: {reason}", red=True)


AVOIDABLE = pytest.StashKey[list[str]]()

SLOW = {"virtual", "live"}
"""Engines that only `make test-all` waits for."""


@pytest.fixture(params=[pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in engines.REGISTRY])
def engine(request):
    """Every engine; those that cannot run here are skipped with their reason."""
    need(request.param)
    return engines.REGISTRY[request.param]()
