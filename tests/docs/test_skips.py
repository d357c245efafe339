"""Where skips are judged, a test that the machine could have run fails the run."""

import subprocess
import sys

import pytest

import skips
from conftest import ROOT


def test_a_lack_of_the_machine_is_no_mistake_and_a_missing_package_is_one():
    reasons = ["no kernel is built: make kernel", "zsh is not installed", "zsh is not installed", "this kernel has no netem"]
    assert skips.avoidable(reasons) == ["zsh is not installed"]


@pytest.mark.parametrize(("reason", "status"), [("chromium is not installed", 1), ("no kernel is built yet", 0)])
def test_an_avoidable_skip_fails_the_run(tmp_path, reason, status):
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text("utf-8"))
    (tmp_path / "test_one.py").write_text(f"import pytest\n\ndef test_one():\n    pytest.skip({reason!r})\n\ndef test_two():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    environment = {"TCPSCAPE_SKIPS": "strict", "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT / 'python'}", "PATH": "/usr/bin:/bin"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert ended.returncode == status, ended.stdout + ended.stderr
    assert (f"skipped although this machine could run it: {reason}" in ended.stdout) == bool(status)
