"""The live engine: this machine's own kernel, unmodified, in network namespaces that end with the trial, in real time.

A trial is a process of its own (`engines.host`): sender and receiver with real sockets, and between them the path, either

- `live:emulator`, the model's own queues and impairments driven by the wall clock, on any kernel; with a seed the decisions are the model's, or
- `live:netem`, the kernel's own queues (tc).

`live` is the emulator. `+root` (`live:emulator+root`) leaves out the user namespace, which needs root.

Names and units of a result are those of the virtual engine: `rtt_ms` is of the smoothed RTT, sampled. No trial can be repeated to the last bit.
Trials run one at a time, in this process and beside other processes, whatever `--jobs` says: two at once would measure each other.

Each trial checks itself (docs/live.md, "What each trial checks"): what differs from what was asked is a caveat, and `Trial.check` has the numbers.
Before its first trial a process measures a path without impairments, the control cell: its RTT, and the rate that this machine carries at most.

Refused by name: parameters of congestion controls (they are settings of the whole machine), controls that this kernel has not, rules of the model
(`window`, `skb_overhead`, `max_tcp_header`), with `live:netem` queues that tc does not have, and with the emulator access links and flows that
cross a part of a chain (`plan.flatten`).
"""

from __future__ import annotations

import base64
import functools
import platform
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from tcpscape import units, writing
from tcpscape.controls.spelling import LINUX, name_of
from tcpscape.engines import host, linux, plan, programs
from tcpscape.engines.base import INTERRUPTED, Columns, Engine, flow_results, trial
from tcpscape.engines.guest.process import WIDTHS
from tcpscape.engines.model import core, needed, parameters
from tcpscape.errors import EngineError, refuse, shown
from tcpscape.scenario import host as machine
from tcpscape.scenario import limits
from tcpscape.scenario.scenario import Kernel as Profile
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture, FlowResult, Trial

BACKENDS = ("emulator", "netem")
"""What impairs the path; the first is the default."""
ROOT = "root"
"""Suffix of a variant without a user namespace."""
SYSTEM = Path("/proc/sys")
SAMPLES, MIN_INTERVAL, MAX_INTERVAL = 1000, 1_000_000, 100_000_000
"""TCP_INFO samples of a trial for its summary, and the bounds of their interval, ns."""
MAX_FLOWS = 2_000
"""Most connections of a trial: each has two threads."""
SETUP_S, SETUP_FLOW_S, END_S = 1.0, 0.01, 0.2
"""What a trial takes beside its duration, s: namespaces and devices, each flow, the end; about."""
PATIENCE_S, PATIENCE_SHARE = 60.0, 0.5
"""How long a trial may take beyond its duration, s, and as a share of it."""
CONTROL_S = 0.7
"""Length of a trial of the control cell, s."""
CONTROL_RTT_MS = 1.0
"""Median RTT of the control cell, ms, above which it is not good enough: what the machine adds to each path."""
CONTROL_SHARE = 0.5
"""Share of the control cell's rate above which the machine may be the bottleneck of a trial."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What follows the colon of the engine's name."""

    backend: str = BACKENDS[0]
    root: bool = False
    text: str | None = None
    """As written."""

    @classmethod
    def of(cls, text: str | None) -> Variant:
        """From `emulator`, `netem`, `emulator+root`; None is the default."""
        backend, plus, suffix = (text or BACKENDS[0]).partition("+")
        if backend not in BACKENDS or (plus and suffix != ROOT):
            choice = ", ".join(f"live:{name}" for name in (*BACKENDS, *(f"{name}+{ROOT}" for name in BACKENDS)))
            refuse("engine", f"live has no variant {shown(text)}", f"choose live, {choice}", EngineError)
        return cls(backend, bool(plus), text)


@dataclass(frozen=True, slots=True)
class ControlCell:
    """The control cell: one bulk flow on a path without delay, loss or rate. What it measures is what the machine adds and carries at most."""

    rtt_ms: float | None
    """Median of the smoothed RTT with a paced flow, ms; None where nothing came through."""
    rate_mbps: float
    """Goodput of a bulk flow, Mbit/s."""
    flags: tuple[str, ...] = ()
    """What its own self-checks found."""

    @property
    def problems(self) -> Iterator[str]:
        """Why trials should not run now, a sentence each; none where all is well."""
        yield from self.flags
        if self.rtt_ms is None or not self.rate_mbps > 0:
            yield "a path without impairments carries nothing"
        elif self.rtt_ms > CONTROL_RTT_MS:
            yield f"a path without delay has a median RTT of {self.rtt_ms:.3g} ms: this machine is busy"

    def plain(self) -> dict[str, Any]:
        """Plain values."""
        return {"rtt_ms": self.rtt_ms, "rate_mbps": self.rate_mbps, "flags": list(self.flags)}


class Live(Engine):
    """The kernel of this machine."""

    name = "live"
    about = "this machine's kernel, in network namespaces, in real time (live:emulator, live:netem; +root without a user namespace)"
    repeatable = False
    unobtrusive = False
    at_once = 1

    def __init__(self, variant: str | None = None) -> None:
        """`variant`: `emulator` (None) or `netem`, with `+root` where the user namespace is to be left out."""
        self.variant = Variant.of(variant)
        self._stops = 0
        self._running: set[host.HostProcess] = set()
        self._lock = threading.Lock()

    @classmethod
    def of(cls, variant: str | None) -> Live:
        return cls(variant)

    @property
    def spec(self) -> str:
        return f"{self.name}:{self.variant.text}" if self.variant.text else self.name

    def unavailable(self) -> str | None:
        if not sys.platform.startswith("linux"):
            return f"it needs Linux, this is {sys.platform}; use --engine model"
        if core() is None:
            return "the extension module tcpscape._core is not built; run `make setup`"
        reason = host.unavailable(self.variant.root)
        if reason is None and self.variant.backend == "netem" and (problem := _netem_problem(self.variant.root)):
            return f"{problem}; or use --engine live, whose emulator needs none"
        return reason

    @property
    def version(self) -> str:
        """Release of the kernel, the backend, digest of the program."""
        root = f"+{ROOT}" if self.variant.root else ""
        return f"{platform.release()} {self.variant.backend}{root}+live-{linux.digest(host.PROGRAM)}"

    def seconds(self, scenario: Scenario) -> float:
        if scenario.programs:
            return 0.0  # nobody knows when a command ends
        return scenario.duration / units.NS_PER_S + SETUP_S + SETUP_FLOW_S * scenario.flow_count + END_S

    def ccas(self) -> list[str]:
        """Congestion controls that this kernel has ready."""
        return _setting("net/ipv4/tcp_available_congestion_control").split()

    def check(self, scenario: Scenario) -> None:
        self.refuse_python_controls(scenario)
        if scenario.tick_phase is not None:
            refuse("tick_phase", "nobody chooses when this machine's ticks fall", "leave it out, or use --engine model")
        if scenario.programs:
            if self.variant.backend != "emulator":
                refuse("engine", "a command's path is the emulator's", "choose live, or live:emulator+root", EngineError)
            return programs.check(self, scenario)
        self._job(scenario, 0, Capture())

    def run(self, scenario: Scenario, seeds: Sequence[int], *, threads: int = 1, capture: Capture = Capture()) -> list[Trial]:
        """The trials of a scenario, one after the other, whatever `threads` says."""
        stops = self._stops
        if scenario.programs:
            return [self._run_programs(scenario, seed, capture, stops) for seed in seeds]
        control = self.control(stops)
        return [self._trial(scenario, seed, capture, control, stops) for seed in seeds]

    def version_for(self, scenario: Scenario) -> str:
        return f"{self.version} {programs.digest(scenario)}" if scenario.programs else self.version

    def _run_programs(self, scenario: Scenario, seed: int, capture: Capture, stops: int) -> Trial:
        def start(job: Mapping[str, Any], out: IO[bytes], errors: IO[bytes]) -> Mapping[str, Any]:
            descriptors, job = [out.fileno()], {**job, "stdout": out.fileno()}
            with (
                host.alone(lambda: self._stops != stops),
                host.HostProcess("emulate", job, descriptors=descriptors) as process,
                self._stoppable(process, stops),
            ):
                result = process.result()
                errors.write(process.last_output().encode())
            return dict(result)

        return programs.run(self, needed(self), scenario, seed, capture, start, root=self.variant.root)

    def verify(self, scenarios: Sequence[Scenario]) -> list[str]:
        for scenario in scenarios:
            self.check(scenario)
        _controls.pop(self.version, None)
        control = self.control(self._stops)
        if problems := list(control.problems):
            fix = "end what else runs here and try again, or leave out --verify: each trial flags itself"
            refuse("verify", f"the control cell is bad: {'; '.join(problems)}", fix, EngineError)
        return [f"control cell: RTT {(control.rtt_ms or 0) * 1e3:.0f} us, {control.rate_mbps:.0f} Mbit/s on a path without impairments; no flags"]

    def write_pcap(self, scenario: Scenario, seed: int, path: Path) -> None:
        """Runs the trial once more; writes the emulator's view of its packets as pcapng, decisions in comments (netem: the sender's, as pcap)."""
        with writing.replacing(path, "pcap") as part:
            self._answer(scenario, self._job(scenario, seed, Capture(packets=True), part), self._stops)

    def stop(self) -> None:
        self._stops += 1
        with self._lock:
            running = list(self._running)
        for process in running:
            process.kill()

    def control(self, stops: int) -> ControlCell:
        """The control cell of this process, measured where it has not been yet."""
        with _CONTROL_LOCK:
            if self.version not in _controls:
                _controls[self.version] = self._measure_control(stops)
            return _controls[self.version]

    def _measure_control(self, stops: int) -> ControlCell:
        flags: list[str] = []
        cells = []
        for app in ({"kind": "paced", "chunk": 1000, "rate_Bps": 500_000.0}, {"kind": "bulk", "chunk": 65_536}):
            fields = {"duration_ns": round(CONTROL_S * units.NS_PER_S), "forward": {}, "reverse": {}, "flows": [{"cca": "cubic", "app": app}]}
            job = {"seed": 0, "plan": fields, "backend": self.variant.backend, "sample_ns": MIN_INTERVAL}
            summary, _ = self._run_job(job, CONTROL_S, stops)
            cells.append(summary["flows"][0])
            if app["kind"] == "paced":  # a bulk flow takes all that the machine has
                flags = list(summary.get("caveats", ()))
        return ControlCell((cells[0].get("rtt_ms") or {}).get("p50"), cells[1]["goodput_mbps"], tuple(flags))

    def _job(self, scenario: Scenario, seed: int, capture: Capture, pcap: Path | None = None) -> dict[str, Any]:
        """A trial as the program reads it. Refuses, by name, what this kernel or the backend cannot do."""
        lib = needed(self)
        if scenario.flow_count > MAX_FLOWS:
            fix = f"write at most {MAX_FLOWS}, or use --engine model"
            refuse("flows", f"{scenario.flow_count} flows are too many for one machine in real time", fix)
        self._refuse_controls(scenario, parameters(lib))
        fields = self._plan(lib, scenario, capture)
        fields = plan.checked(lib, plan.flatten(fields) if self.variant.backend == "emulator" else fields)
        fields["wake_noise_ns"] = 0  # this machine has its own
        fields["sample_interval_ns"] = capture.samples_ns and max(MIN_INTERVAL, capture.samples_ns)
        fields["queue_sample_interval_ns"] = capture.queue_samples_ns and max(MIN_INTERVAL, capture.queue_samples_ns)
        if self.variant.backend == "netem":
            linux.refuse_modelled(fields)
        for flow in (*fields["flows"], *(entry["flow"] for entry in fields.get("transfers", ()))):
            for field, most in self._caps(scenario).items():
                flow[field] = min(flow[field], most)
        return {
            "seed": seed,
            "plan": fields,
            "sysctls": self._sysctls(scenario),
            "backend": self.variant.backend,
            "force_buffers": self.variant.root,
            "sample_ns": max(MIN_INTERVAL, min(MAX_INTERVAL, scenario.duration // SAMPLES)),
            **({"pcap": str(pcap)} if pcap else {}),
        }

    def _plan(self, lib: ModuleType, scenario: Scenario, capture: Capture) -> dict[str, Any]:
        """The plan of a trial, before a chain becomes one path."""
        return plan.build(scenario, dict.fromkeys(self.ccas(), ()), Capture(capture.samples_ns, capture.queue_samples_ns))

    def _refuse_controls(self, scenario: Scenario, modelled: plan.Controls) -> None:
        names = self.ccas()
        for field, label in linux.controls(scenario):
            name = name_of(label)
            if name not in names:
                known = name in LINUX or name not in modelled
                reason = f"is not ready in this kernel ({platform.release()})" if known else "is the model's alone"
                fix = f"choose {', '.join(names)}, or as root: modprobe tcp_{name}" if name in LINUX else f"choose {', '.join(names)}"
                refuse(field, f"{shown(name)} {reason}", f"{fix}, or use --engine model" if name in modelled else fix)
            if name != label:
                refuse(field, f"{shown(label)} sets a parameter, and this machine has one value for everybody", "use --engine model or virtual")

    def _profile(self, scenario: Scenario) -> Mapping[str, Any]:
        """The settings of the kernel that the scenario names; none where it names none."""
        if scenario.kernel == Profile():
            return {}
        for field in linux.MODEL_ONLY:
            if getattr(scenario.kernel, field) is not None:
                refuse(f"kernel.{field}", "this kernel has its own", "leave it out, or use --engine model")
        return {**plan.profile(needed(self), scenario.kernel.profile), **scenario.kernel.plan()}

    def _sysctls(self, scenario: Scenario) -> dict[str, str]:
        """Settings of the two hosts' namespaces: memory of TCP where the scenario names a kernel, otherwise this machine's own."""
        profile = self._profile(scenario)
        named = linux.memory(profile, {}) | linux.others(scenario.kernel.plan()) if profile else {}
        return named | (linux.ECN if scenario.ecn else {}) | (linux.BACKLOG if scenario.transfers else {})

    def _caps(self, scenario: Scenario) -> dict[str, int]:
        """The caps of socket buffers in the kernel that the scenario names, by the flow's field; none where it names none."""
        profile = self._profile(scenario)
        return {field: profile[sysctl] for field, _, sysctl in limits.BUFFERS} if profile else {}

    def _trial(self, scenario: Scenario, seed: int, capture: Capture, control: ControlCell, stops: int) -> Trial:
        summary, tables = self._answer(scenario, self._job(scenario, seed, capture), stops)
        flows = flow_results(scenario, summary["flows"])
        built = trial(
            self,
            scenario,
            seed,
            summary,
            tables,
            capture,
            flows=flows,
            caveats=self._caveats(scenario, flows, control, capture),
            kernel=f"this machine ({platform.release()})",
            counters=summary.get("counters", {}),
            check={**(summary.get("check") or {}), "control": control.plain()},
        )
        if not scenario.is_topology or self.variant.backend != "emulator":
            return built
        fields, samples = self._plan(needed(self), scenario, Capture()), built.queue_samples  # the emulator ran a chain as one path
        named = None if samples is None else plan.named_samples(fields, samples)
        return replace(built, queues=plan.named_queues(fields, built.queues), queue_samples=named)

    def _answer(self, scenario: Scenario, job: Mapping[str, Any], stops: int) -> tuple[Mapping[str, Any], Mapping[str, Columns]]:
        return self._run_job(job, scenario.duration / units.NS_PER_S, stops)

    def _run_job(self, job: Mapping[str, Any], seconds: float, stops: int) -> tuple[Mapping[str, Any], Mapping[str, Columns]]:
        """Summary and tables of one job, which runs alone on this machine."""
        tables: dict[str, dict[str, tuple[str, bytes]]] = {}
        job = {**job, "root": self.variant.root}
        with host.alone(lambda: self._stops != stops), host.HostProcess("trial", job) as process, self._stoppable(process, stops):
            for event in process.events(seconds * (1 + PATIENCE_SHARE) + PATIENCE_S):
                if event.get("event") == "column":
                    tables.setdefault(event["table"], {})[event["name"]] = (WIDTHS[event["type"]][0], base64.b64decode(event["data"]))
            return process.result(), tables

    @contextmanager
    def _stoppable(self, process: host.HostProcess, stops: int) -> Iterator[None]:
        """Within it :meth:`stop` ends the process. :raises EngineError: it was called since there were `stops` of them."""
        with self._lock:
            self._running.add(process)
        try:
            if self._stops != stops:
                raise EngineError(INTERRUPTED)
            yield
        finally:
            with self._lock:
                self._running.discard(process)

    def _caveats(self, scenario: Scenario, flows: Sequence[FlowResult], control: ControlCell, capture: Capture) -> Iterator[str]:
        """What is known of the scenario, the machine and the control cell beside what the trial itself found."""
        own = scenario.kernel == Profile()
        yield from limits.hints(scenario) if own else limits.caveats(scenario, simulated=False)
        yield from self._capped(scenario)
        yield from linux.carried(scenario, flows)
        if not own and machine.version(scenario.kernel.profile) != machine.version(platform.release()):
            yield f"scenario names kernel {scenario.kernel.profile}, this is {platform.release()}"
        if scenario.kernel.hz not in (None, machine.ticks()):
            yield f"scenario names {scenario.kernel.hz} ticks a second; this kernel has {machine.ticks() or 'its own'}"
        if 0 < min(filter(None, (capture.samples_ns, capture.queue_samples_ns)), default=0) < MIN_INTERVAL:
            yield f"samples are {units.format_time(MIN_INTERVAL)} apart: the live engine takes no more"
        for problem in control.problems:
            yield f"control cell: {problem}"
        if (total := sum(f.goodput_mbps for f in flows)) > CONTROL_SHARE * (most := control.rate_mbps):
            yield f"the flows carried {total:.0f} Mbit/s; without impairments this machine carries {most:.0f}, so it may be the bottleneck"

    def _capped(self, scenario: Scenario) -> Iterator[str]:
        """A sentence for each socket buffer that this machine caps below what the scenario asks for."""
        if self.variant.root:
            return
        caps = self._caps(scenario)
        for field, option, sysctl in limits.BUFFERS:
            asked = max(getattr(flow, field) for flow in scenario.flows)
            size, most = min(asked, caps.get(field, asked)), int(_setting(f"net/core/{sysctl}"))
            if size > most:
                yield (
                    f"{option} of {units.format_size(size)} is capped at this machine's net.core.{sysctl}, {units.format_size(most)}; "
                    f"to have it: sudo sysctl -w net.core.{sysctl}={size}, or as root --engine live:{self.variant.backend}+{ROOT}"
                )


_controls: dict[str, ControlCell] = {}
"""The control cells of this process, by the engine's version."""
_CONTROL_LOCK = threading.RLock()


@functools.cache
def _netem_problem(root: bool) -> str | None:
    """Why this kernel's netem is not to be used, and the fix; measured once per process, in about a second."""
    from tcpscape.engines.host import survey

    try:
        return survey.netem(root).problem
    except EngineError as e:
        return host.reason(e)


def _setting(name: str) -> str:
    """A setting of this machine's kernel, from /proc/sys."""
    try:
        return (SYSTEM / name).read_text("utf-8").strip()
    except OSError as e:
        raise EngineError(f"engine: live cannot read {SYSTEM / name}: {e.strerror or e}; is /proc mounted?") from None
