"""A process with too little address space says so in one line, instead of what its libraries do then."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

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
    return subprocess.run(words, capture_output=True, text=True, preexec_fn=limit, timeout=60, check=False)


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
