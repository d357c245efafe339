"""Other simulators on the same path and the same machine: a section of docs/performance.md.

ns-3 comes from PyPI (an environment of its own), htsim from a checkout of its repository, which is compiled here; both are only run. They are kept in
`~/.cache/tcpscape/beside`, or where `TCPSCAPE_BESIDE` says: `ns3/` is the environment, made where the machine can reach PyPI, and `htsim/` the checkout
(`git clone https://github.com/Broadcom/csg-htsim htsim`), which whoever wants the row puts there. What is not there is quoted.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import subprocess
import venv
from collections.abc import Callable

from table import markdown

HERE = pathlib.Path(__file__).resolve().parent
NS3 = "ns3==3.44.post0"
CASES = (("1 flow, 42 Mbit/s", 42.0, 1, {"ns-3": 20.0, "htsim": 600.0}), ("10 flows, 100 Mbit/s", 100.0, 10, {"ns-3": 5.0, "htsim": 300.0}))
"""What it is called, Mbit/s, flows, and how long each simulator runs it, simulated seconds."""
QUOTED = {"ns-3": "0.024–0.047 (development tree of July 2026, -O3; quoted)", "htsim": "not there"}
MODELS = {
    "ns-3": "TCP with SACK and CUBIC (`TcpCubic`), IP, devices, applications; from PyPI",
    "htsim": "TCP NewReno without SACK, delayed ACKs, windows of receivers, hosts or applications; compiled with -O3",
}
MOST_S = 600
"""Longest that a run or a build of another simulator may take, s."""
Runner = Callable[[float, float, int], "Speed"]


@dataclasses.dataclass(frozen=True)
class Speed:
    """What a run of another simulator cost and carried."""

    cpu: float
    """CPU seconds of the run alone."""
    received: float
    """Bytes of payload."""
    seconds: float
    """Simulated."""

    def __str__(self) -> str:
        return f"{self.received / 1448 / self.cpu / 1e6:.3g} ({self.received * 8 / self.seconds / 1e6:,.0f} Mbit/s)"


def _run(command: list[str], mbit: float, seconds: float, flows: int) -> Speed:
    """The run in a process of its own; its last line is CPU seconds and bytes."""
    done = subprocess.run([*command, f"{mbit:g}", f"{seconds:g}", str(flows)], capture_output=True, text=True, check=True, timeout=MOST_S)
    cpu, received = done.stdout.split("\n")[-2].split()
    return Speed(float(cpu), float(received), seconds)


def ns3(root: pathlib.Path) -> Runner | None:
    """ns-3 in an environment of its own, made where it is not there yet; None where PyPI has it not for this machine, or is out of reach."""
    python = root / "ns3/bin/python"
    if not python.exists():
        venv.create(root / "ns3", with_pip=True)
        if subprocess.run([python, "-m", "pip", "install", "--quiet", NS3], check=False, capture_output=True).returncode:
            shutil.rmtree(root / "ns3")
            return None
    return lambda *case: _run([str(python), str(HERE / "beside_ns3.py"), "cubic"], *case)


def htsim(root: pathlib.Path) -> Runner | None:
    """htsim, compiled from its checkout; None without one, or without a compiler."""
    source, program = root / "htsim/sim", root / "htsim-run"
    if not (source / "tcp.cpp").exists() or not shutil.which("g++") or not shutil.which("make"):
        return None
    build = ["g++", "-std=c++11", "-O3", f"-I{source}", str(HERE / "beside_htsim.cpp"), str(source / "libhtsim.a"), "-o", str(program)]
    for command in (["make", "-C", str(source), "libhtsim.a"], build):
        subprocess.run(command, capture_output=True, check=True, timeout=MOST_S)
    return lambda *case: _run([str(program)], *case)


def _cell(name: str, runner: Runner | None, mbit: float, seconds: float, flows: int) -> str:
    """What a run gave; quoted where it cannot be made."""
    try:
        return str(runner(mbit, seconds, flows)) if runner else QUOTED[name]
    except subprocess.SubprocessError:
        return f"{QUOTED[name]}; it failed here"


def table(ours: list[tuple[float, float]]) -> str:
    """Million data packets a CPU second and Mbit/s of each simulator in each of CASES; `ours` has tcpscape's."""
    root = pathlib.Path(os.environ.get("TCPSCAPE_BESIDE", pathlib.Path.home() / ".cache/tcpscape/beside"))
    root.mkdir(parents=True, exist_ok=True)
    rows = [("tcpscape", *(f"{speed:.3g} ({mbit:,.0f} Mbit/s)" for speed, mbit in ours), "this page's runs")]
    for name, made in (("ns-3", ns3), ("htsim", htsim)):
        try:
            runner = made(root)
        except subprocess.SubprocessError:
            runner = None
        cells = [_cell(name, runner, mbit, seconds[name], flows) for _, mbit, flows, seconds in CASES]
        rows.append((name, *cells, MODELS[name]))
    return markdown(("simulator", *(case[0] for case in CASES), "what it models"), rows)
