"""Programs of this machine behind the path of a scenario, on the engines that have a kernel: the job, and the trial that becomes of it.

What a trial has comes from three places: the packets on the path (the flows, read as `tcpscape diagnose` reads a capture), the command's standard
output (its numbers, :mod:`tcpscape.reading.numbers`), and the emulation's own account (status, time, caveats).

The engines' forward direction is from the sender; programs download from the far end. So a scenario's `forward` and `bottleneck` are on the way from
the far end to the command, and `reverse` on the way back.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

from tcpscape.engines import linux, plan
from tcpscape.engines.base import Engine, trial
from tcpscape.errors import EngineError, refuse, shown
from tcpscape.reading import numbers
from tcpscape.scenario.flows import Flow
from tcpscape.scenario.programs import placed, words
from tcpscape.scenario.scenario import Kernel, Scenario
from tcpscape.trial import Capture, Cwnd, FlowResult, ProgramResult, Rtt, Trial
from tcpscape.units import NS_PER_S

if TYPE_CHECKING:
    from tcpscape.scenario.programs import Programs

BESIDE = ("programs", "data that travel up", "requests", "pauses of applications")
"""What a scenario with programs may have besides a path."""
SMALL = 0.01
"""Share of the bytes of the command's largest connection below which one of its connections is left out: requests and their like."""
NOT_FOUND, NOT_STARTED = 127, 126
"""Exit statuses of a command that could not be run, and of scripts that say so of one of theirs."""
NOT_BEGUN = "tcpscape: "
"""How the line begins that says why a command could not be run. crates/live, `spaces::keeper`"""
CUT = "the capture has the first "
"""How the flag of a capture begins that does not have all packets. crates/live, `link::capture::missing`"""
FIRST_PORT = 9_000
"""Port of the first of the flows of ours beside programs, each has its own. crates/testbed, `flows::PORT`"""
MOST_READ = 256 << 20
"""Bytes of the largest file whose content is in a trial's address."""
LIVE_NS = 250_000_000
"""ns between two figures of a running command."""
VIRTUAL_LIVE_NS = NS_PER_S
"""The same in virtual time: always, so that nobody who looks changes a run, and seldom, since each costs as much as ten packets."""


def job(built: Mapping[str, Any], command: Sequence[str], seed: int, **more: Any) -> dict[str, Any]:
    """What the emulation's program reads, whose directions are `forward`, from the command, and `reverse`; `more`: what differs from nothing."""
    nothing: dict[str, Any] = {
        **dict.fromkeys(("cca", "duration_ns", "pcap", "live_ns", "router")),
        **dict.fromkeys(("root", "is_virtual", "outside"), False),
        **dict.fromkeys(("serve", "reach", "hosts"), ()),
    }
    return {"plan": built, "command": list(command), "seed": seed, **nothing, **more}


def hosts(serve: Sequence[str], host: Sequence[str], router_command: str | None) -> dict[str, Any]:
    """Members of the job: who there is besides the two ends, and the servers with the hosts at which they run."""
    served = [dict(zip(("host", "command"), placed(line, host), strict=True)) for line in serve]
    return {"serve": served, "hosts": list(host), "router": router_command}


def routed(lib: ModuleType, scenario: Scenario) -> dict[str, Any]:
    """The checked plan of a scenario's path with its flows; every hop is a router's. :raises ScenarioError: names the part that is wrong."""
    path = scenario.model_copy(update={"programs": None, "flows": scenario.flows or (Flow(),)})
    fields = plan.build_checked(lib, path, {flow.cca: () for flow in path.flows})
    for direction in ("forward", "reverse"):
        for stage in fields[direction]["stages"]:
            stage["at"] = "router"
    fields["arp"] = False  # each end knows the hardware address of the other
    return fields


def check(engine: Engine, scenario: Scenario) -> None:
    """Refuses, by name, what programs or the engine cannot do. :raises TcpscapeError: one line."""
    scenario.expect_plain("which programs do not meet", "leave them out", but=BESIDE)
    for name, default in (("kernel", Kernel()), ("ecn", False), ("tick_phase", None)):
        if getattr(scenario, name) != default:
            refuse(name, "programs have the engine's kernel with its settings", "leave it out")
    names = engine.ccas()
    if missing := next((cca for cca in scenario.controls if cca not in names), None):
        refuse("cca", f"{shown(missing)} is not in the {engine.name} engine's kernel", f"choose {', '.join(names)}")


def job_of(lib: ModuleType, scenario: Scenario, seed: int, **more: Any) -> dict[str, Any]:
    """The job of a scenario with programs."""
    programs, fields = _programs(scenario), routed(lib, scenario)
    fields["forward"], fields["reverse"] = fields["reverse"], fields["forward"]
    own = {"cca": programs.cca, "duration_ns": scenario.duration, **hosts(programs.serve, programs.host, programs.router_command)}
    own |= {"has_flows": True} if scenario.flows else {}
    return job(fields, words(programs.command), seed, **own, **more)


def _programs(scenario: Scenario) -> Programs:
    assert scenario.programs is not None
    return scenario.programs


Run = Callable[[Mapping[str, Any], IO[bytes], IO[bytes]], Mapping[str, Any]]
"""Runs a job whose command writes into these files, standard output and standard error; the emulation's account."""


def run(engine: Engine, lib: ModuleType, scenario: Scenario, seed: int, capture: Capture, start: Run, **more: Any) -> Trial:
    """The trial of a scenario with programs. `more`: members of the job that are the engine's.

    :raises EngineError: the command cannot be run, or the engine refuses it.
    """
    if capture.tables:
        refuse("samples", "programs have none: nobody asks their sockets", "choose another metric, or leave it out", EngineError)
    address = engine.address(scenario, seed)  # before the command can change a file that it names
    with tempfile.TemporaryDirectory(prefix="tcpscape-programs-") as folder, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        packets = Path(folder) / "packets.pcapng"
        result = start(job_of(lib, scenario, seed, pcap=str(packets), **more), out, errors)
        rows, unknown = _rows(lib, content := packets.read_bytes(), result["flags"])
        output = _whole(out)
        lines = [line.strip() for line in _whole(errors).decode("utf-8", "replace").splitlines() if line.strip()]
    program = _result(result, output)
    line = (lines or [""])[-1][:200]
    if program.status in (NOT_FOUND, NOT_STARTED) and not output and line.startswith(NOT_BEGUN):
        refuse("command", f"{_programs(scenario).command!r} cannot be run{f': {line}' if line else ''}", "correct it", EngineError)
    digest = hashlib.sha256(content + output).hexdigest()[:16] if engine.repeatable else None
    summary = {"duration_ns": result["elapsed_ns"], "caveats": [*_failure(program, line), *result["flags"], *unknown]}
    flows = tuple(_observed(scenario, rows))
    return trial(engine, scenario, seed, summary, {}, capture, address=address, flows=flows, program=program, hash=digest)


def _rows(lib: ModuleType, content: bytes, flags: Sequence[str]) -> tuple[Sequence[Mapping[str, Any]], Sequence[str]]:
    """The flows of a capture; where it does not have all of them, none, and a sentence that says so."""
    if any(flag.startswith(CUT) for flag in flags):
        return (), ("what its TCP connections carried is unknown: the capture does not have all of their packets",)
    reader = lib.CaptureReader()
    try:
        reader.feed(content)
        _, rows = reader.finish()
    except ValueError as e:
        return (), (f"what its TCP connections carried is unknown: the capture of their packets {e}",)
    return rows, ()


def _whole(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _result(result: Mapping[str, Any], output: bytes) -> ProgramResult:
    seconds = result["elapsed_ns"] / NS_PER_S
    passed: dict[str, Any] = {}
    for name, way in (("up", result["link"]["forward"]), ("down", result["link"]["reverse"])):
        passed[f"{name}_mbps"] = way["bytes_out"] * 8e-6 / seconds if seconds else 0.0
        passed[f"{name}_delay_ms"] = Rtt.of({k: ns * 1e-6 for k, ns in way["delay"].items()}) if way["packets_out"] else Rtt()
    values = numbers.named(output.decode("utf-8", "replace"))
    return ProgramResult(status=result["status"], timed_out=result["is_late"], seconds=seconds, values=values, **passed)


def _failure(program: ProgramResult, line: str) -> Iterator[str]:
    """What says that the command failed, a sentence."""
    if program.timed_out:
        yield f"the command was ended after {program.seconds:.3g} s, its `duration`: its time is no completion"
    elif program.status:
        yield f"the command ended with status {program.status}{f': {line}' if line else ''}"


def _observed(scenario: Scenario, rows: Sequence[Mapping[str, Any]]) -> Iterator[FlowResult]:
    """The flows of a capture as results, in the order in which they began: every flow of ours, and the command's connections but small ones."""
    every = [flow for flow in scenario.flows for _ in range(flow.count)]
    groups = [group for group, flow in enumerate(scenario.flows) for _ in range(flow.count)]
    places = [min({row["from"][1] - FIRST_PORT, row["to"][1] - FIRST_PORT} & set(range(len(every))), default=-1) for row in rows]
    least = SMALL * max((row["facts"]["bytes"] for row, own in zip(rows, places, strict=True) if own < 0), default=0)
    for row, own in sorted(zip(rows, places, strict=True), key=lambda one: (one[0]["facts"]["start_s"], one[0]["from"], one[0]["to"])):
        if own >= 0:
            yield _flow(row, every[own].cca, groups[own] + 1)
        elif row["facts"]["bytes"] >= least:
            yield _flow(row, _programs(scenario).cca, 0)


def _flow(row: Mapping[str, Any], cca: str, group: int) -> FlowResult:
    """A flow as its packets show it. Of the RTT the least and the mean, from the times on both sides of the place where packets were taken."""
    facts = row["facts"]
    here, beyond = (facts.get(name) or {} for name in ("rtt", "echo"))
    both = {name: here[f"{name}_ms"] + beyond[f"{name}_ms"] for name in ("min", "mean") if f"{name}_ms" in here and f"{name}_ms" in beyond}
    return FlowResult(
        cca=cca,
        goodput_mbps=facts.get("goodput_mbps") or 0.0,
        seconds=facts["seconds"],
        retransmits=facts.get("retransmissions", 0),
        spurious_retransmits=facts.get("spurious"),
        rtt_ms=Rtt(**both),
        cwnd=Cwnd(),
        limited_by={},
        start_s=facts["start_s"],
        stop_s=facts["start_s"] + facts["seconds"],
        bytes_received=facts["bytes"],
        rtos=facts.get("timeouts"),
        dsacks=facts.get("dsacks"),
        data_segs_out=facts.get("segments"),
        ecn=facts.get("ecn"),
        zero_windows=facts.get("zero_windows"),
        direction="up" if row["from"][0] in NEAR else "down",
        group=group,
    )


NEAR = ("10.77.1.2", "10.77.1.1")
"""Addresses of the command's end and of the router in front of it. crates/testbed, `network::wire`"""


def digest(scenario: Scenario) -> str:
    """Digest of the files that the command lines of a scenario name: programs, and those among their arguments."""
    paths = [path for line in _programs(scenario).lines() for word in words(line) for path in [_file(word)] if path]
    return hashlib.sha256("".join(map(_content, dict.fromkeys(paths))).encode()).hexdigest()[:12]


def _content(path: Path) -> str:
    """What stands for a file's content: its digest, of a very large one its size and its time."""
    status = path.stat()
    return linux.digest(path) if status.st_size <= MOST_READ else f"{status.st_size} {status.st_mtime_ns}"


def _file(word: str) -> Path | None:
    """The file that a word of a command line is, or names as a program."""
    path = Path(word if "/" in word else shutil.which(word) or word)
    try:
        return path if path.is_file() else None
    except OSError:
        return None
