"""The wheel: complete, and usable where there is nothing else of tcpscape."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest

from conftest import ROOT

WHEELS = sorted((ROOT / "dist").glob("tcpscape-*.whl"))


@pytest.fixture
def wheel():
    """The wheel that `make wheel` has built."""
    if not WHEELS:
        pytest.skip("no wheel is built: make wheel")
    return WHEELS[-1]


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(wheel):
    got = subprocess.run([sys.executable, str(ROOT / "scripts" / "wheel_test.py"), str(wheel)], capture_output=True, text=True, check=False)
    assert got.returncode == 0, got.stdout + got.stderr


@pytest.mark.slow
def test_its_tag_and_metadata_are_those_of_the_project(wheel):
    assert "-cp310-abi3-manylinux_2_" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        head = archive.read(name).decode().split("\n\n")[0]
    assert "License-Expression: MIT OR Apache-2.0" in head
    assert "Requires-Python: >=3.10" in head
    assert "example.invalid" not in head


def test_every_file_that_git_does_not_know_is_asked_for():
    """What is built or copied is ignored by git, and maturin leaves such files out unless pyproject.toml names them."""
    listed = (ROOT / "pyproject.toml").read_text("utf-8").partition("[tool.maturin]")[2].partition("\n[")[0]
    assert all(
        name in listed for name in ("engines/guest/init", "engines/guest/seed.so", "engines/host/live", "data/pages/**/*.md", 'data = "wheel.data"')
    )
