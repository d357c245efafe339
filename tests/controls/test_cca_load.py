"""Congestion controls in BPF: what is registered is taken out again, whatever ends the command; refusals are one line."""

import math
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import types
from pathlib import Path
from statistics import fmean

import pytest

from conftest import ROOT, TESTS
from patience import PATIENCE_S
from tcpscape import engines, metrics, stats
from tcpscape.controls import bpf
from tcpscape.errors import EngineError
from tcpscape.scenario import options

EXAMPLES = ROOT / "examples"
COMMAND = (sys.executable, "-m", "tcpscape", "cca", "load")
ELF = b"\x7fELF and more"


class Kernel:
    """What the fake bpftool says is in the kernel."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def has(self, *structures: str) -> Path:
        """An object file with these structures, `NAME TYPE` each; `!NAME` is refused."""
        (self.directory / "object").write_text("".join(f"{s}\n" for s in structures))
        file = self.directory / "mine.bpf.o"
        file.write_bytes(ELF)
        return file

    @property
    def registered(self) -> list[str]:
        return (self.directory / "kernel").read_text().split("\n")[:-1]


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A machine that could, with a bpftool that keeps account in files."""
    monkeypatch.setenv("FAKE_BPF", str(tmp_path))
    monkeypatch.setenv("PATH", str(TESTS / "fake"), prepend=os.pathsep)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(bpf, "TYPES", Path("/"))
    return Kernel(tmp_path)


def test_controls_have_the_names_that_the_kernel_keeps(kernel):
    controls = bpf.register(kernel.has("one tcp_congestion_ops", "two tcp_congestion_ops"))
    assert [c.name for c in controls] == ["cc_one", "cc_two"]
    assert kernel.registered == ["101 one", "102 two"]
    bpf.unregister(controls)
    assert kernel.registered == []
    bpf.unregister(controls)  # somebody else took them out


def test_another_system_than_linux_is_named(cli, kernel, monkeypatch):
    from tcpscape.cli import lists

    monkeypatch.setattr(lists, "sys", types.SimpleNamespace(platform="darwin"))
    refused = cli("cca", "load", kernel.has("one tcp_congestion_ops"))
    assert refused.status == 2
    assert refused.err == "error: cca load: it needs Linux, this is darwin; use a machine with Linux\n"


@pytest.mark.parametrize(
    ("second", "line"),
    [
        ("!two tcp_congestion_ops", r"cca load: .*mine\.bpf\.o: bpftool: can't register struct_ops two: File exists; see what"),
        ("scheduler sched_ext_ops", "has a sched_ext_ops, which is no congestion control"),
    ],
)
def test_all_or_none(kernel, second, line):
    with pytest.raises(EngineError, match=line):
        bpf.register(kernel.has("one tcp_congestion_ops", second))
    assert kernel.registered == []


def test_a_name_that_the_kernel_has_is_named(kernel, monkeypatch, tmp_path):
    available = tmp_path / "available"
    available.write_text("reno cubic\n")
    monkeypatch.setattr(bpf, "AVAILABLE", available)
    file = kernel.has("!mine tcp_congestion_ops")
    file.write_bytes(ELF + b"cubic".ljust(bpf.NAME_SIZE, b"\0"))
    with pytest.raises(EngineError, match=r"has a congestion control 'cubic' already, the name that .*mine\.bpf\.o asks for; change \.name"):
        bpf.register(file)


def test_one_that_stays_is_said(kernel, tmp_path):
    controls = bpf.register(kernel.has("one tcp_congestion_ops"))
    (tmp_path / "stuck").touch()
    with pytest.raises(EngineError, match="see what `bpftool struct_ops unregister id 101` says"):
        bpf.unregister(controls)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"text", "is not an object file of BPF; compile it with clang"),
        (ELF + b".struct_ops.link\0", r'wants a BPF link, .* write SEC\("\.struct_ops"\)'),
    ],
)
def test_files_that_cannot_be_registered(kernel, content, message):
    file = kernel.has()
    file.write_bytes(content)
    with pytest.raises(EngineError, match=message):
        bpf.register(file)


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("root", "from root alone; run it with sudo"),
        ("types", "boot one with CONFIG_DEBUG_INFO_BTF=y"),
        ("tool", "bpftool is missing; apt-get install bpftool"),
    ],
)
def test_what_is_needed_is_named_with_the_fix(kernel, monkeypatch, missing, message):
    file = kernel.has("one tcp_congestion_ops")
    if missing == "root":
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
    elif missing == "types":
        monkeypatch.setattr(bpf, "TYPES", Path("/nonexistent"))
    else:
        monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(EngineError, match=message):
        bpf.register(file)


def impossible() -> str:
    """Why this machine can register no congestion control in BPF, in words; empty where it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "root on Linux is needed"
    if not bpf.TYPES.exists():
        return f"no {bpf.TYPES}"
    missing = [tool for tool in ("clang", "bpftool") if shutil.which(tool) is None]
    return f"apt-get install {' '.join(missing)}" if missing else ""


@pytest.fixture
def build(tmp_path):
    """A function that compiles an example, the smallest control, under a name of this process's own."""
    if why := impossible():
        pytest.skip(f"BPF: {why}")

    def compile_as(name: str, example: str = "ten") -> Path:
        file = tmp_path / f"{name}.bpf.o"
        source = EXAMPLES / "bpf" / f"{example}.bpf.c"
        arguments = ("clang", "-O2", "-g", "-Wall", "-Werror", "-target", "bpf", f'-DNAME="{name}"', "-c", source, "-o", file)
        subprocess.run(arguments, check=True, timeout=PATIENCE_S)
        return file

    return compile_as


def available() -> list[str]:
    return bpf.AVAILABLE.read_text().split()


def until(condition) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.slow
def test_a_command_has_it_and_nobody_afterwards(build):
    name = f"ten_{os.getpid()}"
    file = build(name)
    script = f"import socket, sys; s = socket.socket(); s.setsockopt(6, 13, b{name!r}); print(s.getsockopt(6, 13, 16)); sys.exit(7)"
    done = subprocess.run([*COMMAND, file, "--", sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, name in done.stdout) == (7, True), done
    assert done.stderr.startswith(f"{name}: in the kernel until {sys.executable} -c ")
    assert done.stderr.endswith(f" ends; --cca {name} uses it\n")
    assert name not in available()
    missing = subprocess.run([*COMMAND, file, "--", "/nonexistent"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert missing.returncode == 127
    assert name not in available()


@pytest.mark.slow
@pytest.mark.parametrize("command", [(), ("--", "sleep", "600")], ids=["alone", "with a command"])
@pytest.mark.parametrize(("number", "alone"), [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_takes_it_out(build, number, alone, command):
    name = f"ten_{os.getpid()}"
    process = subprocess.Popen([*COMMAND, build(name), *command], start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        until(lambda: name in available() or process.poll() is not None)
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == (128 + number if command else alone)
    finally:
        process.kill()
    assert name not in available()


@pytest.mark.slow
def test_a_taken_name_is_refused_and_stays_with_whoever_has_it(build):
    name = f"ten_{os.getpid()}"
    file = build(name)
    process = subprocess.Popen([*COMMAND, file], start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        until(lambda: name in available())
        second = subprocess.run([*COMMAND, file, "--", "true"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert second.returncode == 2
        assert f"the kernel has a congestion control {name!r} already" in second.stderr
        assert second.stderr.count("\n") == 1
        assert name in available()
        process.terminate()
        assert process.wait(PATIENCE_S) == 143
    finally:
        process.kill()
    assert name not in available()


@pytest.mark.slow
def test_its_window_is_what_the_program_says(build):
    name = f"ten_{os.getpid()}"
    controls = bpf.register(build(name))
    try:
        assert [c.name for c in controls] == [name]
        with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as sender:
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
            sender.connect(server.getsockname())
            receiver, _ = server.accept()
            with receiver:
                for _ in range(200):
                    sender.sendall(bytes(10_000))
                    while len(receiver.recv(10_000, socket.MSG_WAITALL)) < 10_000:
                        pytest.fail("the stream ended")
                window = int.from_bytes(sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 84)[80:84], sys.byteorder)
        assert window == 10
    finally:
        bpf.unregister(controls)
    assert name not in available()


TWIN = f"{EXAMPLES / 'python' / 'aimd.py'}:Aimd"
PATHS, TRIALS = 20, 4
INSIDE = 17
"""Intervals of 20 that contain 1 at least: of two controls that are equal, fewer do once in 60 tests (binomial, 95 % each)."""


def lossy_path(draw: random.Random) -> dict[str, object]:
    """A path whose random losses make the window decide, so that the goodput depends on how a control grows and reduces."""
    way = f"{draw.uniform(7, 40):.1f}ms"
    loss = f"{math.exp(draw.uniform(math.log(0.2), math.log(2))):.2f}%"
    bottleneck = {"rate": f"{draw.uniform(5, 20):.1f}mbit", "buffer": f"{draw.uniform(0.5, 2):.1f}bdp"}
    return {"forward": {"at": "router", "delay": way, "loss": loss}, "bottleneck": bottleneck, "reverse": {"delay": way}}


@pytest.mark.slow
def test_the_example_in_bpf_does_what_its_twin_in_python_does(build, need_model):
    draw = random.Random(1)
    paths = [lossy_path(draw) for _ in range(PATHS)]

    def goodputs(engine, cca: str) -> list[list[float]]:
        scenarios = [options.scenario(path, cca=cca, duration="5s") for path in paths]
        return [[trial.goodput_mbps for trial in engine.run(scenario, range(TRIALS))] for scenario in scenarios]

    if reason := engines.make("live").unavailable():
        pytest.skip(f"engine live: {reason}")
    name = f"aimd_{os.getpid()}"
    controls = bpf.register(build(name, "aimd"))
    try:
        kernel = goodputs(engines.make("live"), name)
    finally:
        bpf.unregister(controls)
    ratios = {cca: [stats.mean_ratio(a, b) for a, b in zip(kernel, goodputs(engines.make("model"), cca), strict=True)] for cca in (TWIN, "reno")}
    inside = {cca: sum(not ratio.excludes(1) for ratio in each) for cca, each in ratios.items()}
    assert inside[TWIN] >= INSIDE, ratios[TWIN]
    assert inside["reno"] < INSIDE, "another control passes as well, so this test shows nothing"


NEAR = 0.05
"""Difference of two means, a fraction, below which `advise` would not prefer one control to another."""


@pytest.mark.slow
@pytest.mark.parametrize(("example", "metric", "loss", "buffer"), [("delay", "rtt", (0, 0), (3, 6)), ("rate", "goodput", (0.2, 2), (0.5, 2))])
def test_delay_and_rate_in_bpf_do_what_their_twins_do(build, need_model, example, metric, loss, buffer):
    """On nine paths of ten: the round-trip time of what listens to delay in deep buffers, the goodput of what sets a rate under loss."""
    draw = random.Random(2)
    paths = []
    for _ in range(10):
        way = f"{draw.uniform(7, 40):.1f}ms"
        bottleneck = {"rate": f"{draw.uniform(5, 20):.1f}mbit", "buffer": f"{draw.uniform(*buffer):.1f}bdp"}
        paths.append(
            {"forward": {"at": "router", "delay": way, "loss": f"{draw.uniform(*loss):.2f}%"}, "bottleneck": bottleneck, "reverse": {"delay": way}}
        )

    def means(engine: str, cca: str) -> list[float]:
        scenarios = [options.scenario(path, cca=cca, duration="5s") for path in paths]
        return [fmean(metrics.find(metric).of(trial) for trial in engines.make(engine).run(scenario, range(2))) for scenario in scenarios]

    if reason := engines.make("live").unavailable():
        pytest.skip(f"engine live: {reason}")
    name = f"{example}_{os.getpid()}"
    controls = bpf.register(build(name, example))
    try:
        kernel = means("live", name)
    finally:
        bpf.unregister(controls)
    twin = f"{EXAMPLES / 'python' / example}.py:{example.capitalize()}"
    ratios = {cca: [a / b for a, b in zip(kernel, means("model", cca), strict=True)] for cca in (twin, "reno")}
    near = {cca: sum(abs(ratio - 1) < NEAR for ratio in each) for cca, each in ratios.items()}
    assert near[twin] >= 9, ratios[twin]
    assert near["reno"] < 9, "another control passes as well, so this test shows nothing"
