"""docs/tour/4-your-own-kernel.md from top to bottom: a stock kernel, a patched one, the study that compares them."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl
import pytest
from test_docs import BLOCK, TUTORIAL

from conftest import ROOT
from tcpscape import kernels
from tcpscape.errors import EngineError
from tcpscape.kernels import build

pytestmark = pytest.mark.slow
PAGE = ROOT / "docs" / "tour" / TUTORIAL
NAME = f"tutorial-{os.getpid()}"
INTERVAL = r"[\d.]+ \[[\d.]+, [\d.]+\]"


def commands():
    blocks = (text for language, text in BLOCK.findall(PAGE.read_text("utf-8")) if language == "console")
    return [line.removeprefix("$ ") for text in blocks for line in text.splitlines() if line.startswith("$ ")]


@pytest.fixture
def tree():
    """A place for the patched sources on the cache's own file system, where a copy can be links; the kernel built from it goes too."""
    try:
        build.check_machine(), build.check_tools()
    except EngineError as e:
        pytest.skip(str(e))
    kernels.home().mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix="tutorial-", dir=kernels.home().parent))
    yield made / "my-linux"
    shutil.rmtree(made)
    if NAME in kernels.names():
        kernels.remove(NAME)


def run(words, tree, cwd):
    """A command of the page, with the test's names; the copy of the sources is made of links (sed -i puts a new file in place of one)."""
    swaps = (
        ("make setup && source .venv/bin/activate", f"make -n -C '{ROOT}' setup"),
        ("cp -r", "cp -al"),
        ("~/.cache/tcpscape/kernels/6.1/src", str(kernels.place("6.1") / "src")),
        ("~/my-linux", str(tree)),
        ("--name mine", f"--name {NAME}"),
        ("virtual:mine", f"virtual:{NAME}"),
    )
    for old, new in swaps:
        words = words.replace(old, new)
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "160"}
    got = subprocess.run(["bash", "-c", words], cwd=cwd, env=env, capture_output=True, text=True, timeout=3600, check=False)
    assert got.returncode == 0, f"{words}\n{got.stdout}\n{got.stderr}"
    return got.stdout


def test_a_patched_kernel_against_the_stock_one(tree, tmp_path, need_model):
    page = commands()
    assert [w.split()[0] for w in page] == ["make", "tcpscape", "cp", "sed", "tcpscape", "tcpscape"]
    said = [run(words, tree, tmp_path) for words in page]

    line = "static int beta __read_mostly = {};"
    stock, patched = (Path(at, "net/ipv4/tcp_cubic.c").read_text("utf-8") for at in (kernels.place("6.1") / "src", tree))
    assert line.format(717) in stock
    assert patched == stock.replace(line.format(717), line.format(900)) != stock
    assert f"kernel {NAME}: Linux 6.1." in said[-2]

    table = said[-1].split(f"virtual {NAME} (6.1")[-1]
    rows = re.findall(rf"^(cubic|bbr) +(\w+) +80 +{INTERVAL} +{INTERVAL} +{INTERVAL}(?: +(\*|same runs))?$", table, re.MULTILINE)
    assert sorted({(cca, profile) for cca, profile, _ in rows}) == [(c, p) for c in ("bbr", "cubic") for p in ("baseline", "degraded", "handover")]
    # BBR does not run CUBIC's code: every run is the same.
    assert all(mark == "same runs" for cca, _, mark in rows if cca == "bbr"), rows

    frame = pl.read_csv(tmp_path / "out" / "starlink" / "starlink-against.csv")
    cubic = {row["profile"]: row for row in frame.filter(cca="cubic").iter_rows(named=True)}
    # Measured with 80 runs a cell: a cut of 12 % instead of 30 % carries 0.92 [0.90, 0.95] in handover and 1.11 [1.04, 1.16] in degraded.
    assert cubic["handover"]["ratio_high"] < 1, cubic
    assert cubic["degraded"]["ratio_low"] > 1, cubic
    assert {"baseline", "degraded", "handover"} == set(cubic)
    assert not any(row["same"] for row in cubic.values())
