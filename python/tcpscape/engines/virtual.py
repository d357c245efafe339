"""The virtual engine: the real Linux kernel's TCP and queues, unmodified, in virtual time (User-Mode Linux with `time-travel=inf-cpu`).

Kernels come from `tcpscape kernel build` (`virtual:NAME` names one); guests (`engines.guest`) run on as many cores as there are trials at
a time. Results come from TCP_INFO and the kernel's counters, so some of them differ from the model's in meaning:

- `rtt_ms` holds minimum, percentiles, maximum and mean of the **smoothed** RTT, sampled about 1,000 times a trial, not of single measurements;
- `undos` and `fast_recoveries` are counted for a whole namespace, so they are None where several flows share it;
- `events` is None.

Each trial has a guest of its own whose random numbers follow from the seed, so the same scenario, seed, kernel and guest program are the same
trial to the last bit, `hash` included. Recording changes a trial: samples are system calls in virtual time, so a trial with samples is another
trial; packets (those at the sender's host) cost it nothing but a connection that begins a microsecond later. With `TCPSCAPE_TRIALS_PER_GUEST=200`
a guest serves that many trials: this saves booting for each, and no trial can be repeated.

Parameters of congestion controls are written to `/sys/module/tcp_NAME/parameters`: one value for all connections of a trial.

Refused by name: what tc does not have (the `jitter` queue), congestion controls and parameters that only the model has, and what a running
kernel cannot change (`hz`, `window`, `skb_overhead`, `max_tcp_header`).
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import IO, TYPE_CHECKING, Any

from tcpscape import writing
from tcpscape.controls.spelling import name_of
from tcpscape.engines import guest, host, linux, plan, programs
from tcpscape.engines.base import INTERRUPTED, Engine, flow_results, frame, trial
from tcpscape.engines.guest import Place
from tcpscape.engines.model import core, needed, parameters
from tcpscape.errors import EngineError, TcpscapeError, refuse
from tcpscape.scenario import host as machine
from tcpscape.scenario import limits
from tcpscape.scenario.path import TracedLink
from tcpscape.scenario.scenario import Kernel as Profile
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture, FlowResult, Trial

if TYPE_CHECKING:
    import polars as pl

    from tcpscape.kernels import BuiltKernel

INIT = Path(guest.__file__).with_name("init")
"""The guest's program, a static executable built by `make setup` from crates/guest."""
SEEDS = INIT.with_name("seed.so")
"""The library that makes the kernel's random numbers follow from a seed, built by `make setup` from crates/seed."""
PER_GUEST = "TCPSCAPE_TRIALS_PER_GUEST"
"""Environment variable: trials that a guest serves. Only with 1, the default, can trials be repeated."""
PATIENCE = "TCPSCAPE_PATIENCE"
"""Environment variable: seconds that a guest may take for a trial, instead of the rule in :meth:`Virtual.timeout_s`."""
SAMPLES, MIN_INTERVAL, MAX_INTERVAL = 1000, 1_000_000, 100_000_000
"""TCP_INFO samples of a trial for its summary, and the bounds of their interval, ns."""
NOTHING: Mapping[Any, Any] = MappingProxyType({})
ARRIVALS = {"near": "reverse", "far": "forward"}
"""The access links of a pair of hosts → the way on which packets arrive at the host."""
PROGRAM_MEMORY_MB = 1024
"""Memory of a guest for programs of this machine; only what they touch is taken."""
PROGRAM_OPTIONS = ("seccomp=auto",)
"""Kernels from 6.16 on then follow the system calls of programs without ptrace where this machine lets them, twice as fast; older ones ignore it."""
HOST_PACKETS = 100_000
"""Packets that may be between the wire and TCP of a host: more than any rate brings in its time."""
MIN_TRACE_BIN = 10_000_000
"""ns: a link that follows a cellular trace of 2.4 Mbit/s carries 2.47 Mbit/s in bins of 10 ms and 1.29 Mbit/s when it follows each opportunity."""


def find(name: str | None) -> BuiltKernel:
    """The kernel with this name, or the default one. Raises a :class:`TcpscapeError` that names the command that builds it."""
    from tcpscape import kernels

    return kernels.find(name)


class Virtual(Engine):
    """A real kernel in virtual time."""

    name = "virtual"
    about = "the real Linux kernel in virtual time (virtual:NAME for a kernel of `tcpscape kernel list`)"
    unobtrusive = False

    def __init__(self, kernel: str | None = None, timeout_s: float | None = None) -> None:
        """`kernel` names one of `tcpscape kernel list` (None: the default); `timeout_s` is the most a trial may take, s (None: by its duration)."""
        self.kernel_name = kernel
        self._timeout_s = timeout_s
        self._stops = 0
        self._programs: set[guest.GuestProgram] = set()
        self.repeatable = self.per_guest == 1

    @classmethod
    def of_kernel(cls, kernel: BuiltKernel) -> Virtual:
        """The engine with a kernel that need not be in the cache."""
        engine = cls(kernel.name)
        engine.kernel = kernel
        return engine

    @property
    def per_guest(self) -> int:
        """Trials that a guest serves."""
        text = os.environ.get(PER_GUEST, "1")
        if not (text.isdigit() and int(text)):
            refuse(PER_GUEST, f"{text!r} is not a number of trials", "write for example 200", EngineError)
        return int(text)

    @classmethod
    def of(cls, variant: str | None) -> Virtual:
        return cls(variant)

    @property
    def spec(self) -> str:
        return f"{self.name}:{self.kernel_name}" if self.kernel_name else self.name

    def unavailable(self) -> str | None:
        if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
            return f"User-Mode Linux needs Linux on x86_64, this is {sys.platform} on {platform.machine()}; use --engine model"
        if core() is None:
            return "the extension module tcpscape._core is not built; run `make setup`"
        if not (INIT.exists() and SEEDS.exists()):
            return "the guest's program is not built; run `make setup`"
        try:
            path = self.kernel.path
        except TcpscapeError as e:
            return e.reason
        return None if os.access(path, os.X_OK) else f"{path} cannot be executed; build it again with `tcpscape kernel build`"

    @functools.cached_property
    def kernel(self) -> BuiltKernel:
        """The kernel that runs."""
        return find(self.kernel_name)

    @property
    def version(self) -> str:
        """Name and release of the kernel, digests of its executable and of the guest's program."""
        kernel = self.kernel
        suffix = "" if self.repeatable else " shared"
        return f"{kernel.name} {kernel.release} {kernel.digest[:12]}+guest-{linux.digest(INIT)}{suffix}"

    def ccas(self) -> list[str]:
        """Congestion controls that the kernel has."""
        return list(self.kernel.congestion_controls or self._pool.facts().ccas)

    def check(self, scenario: Scenario) -> None:
        self.refuse_python_controls(scenario)
        if scenario.programs:
            return programs.check(self, scenario)
        self._job_content(scenario, 0, Capture())

    def run(self, scenario: Scenario, seeds: Sequence[int], *, threads: int = 1, capture: Capture = Capture()) -> list[Trial]:
        stops = self._stops

        def one(seed: int) -> Trial:
            return self._run_one(scenario, seed, capture, stops)

        if threads <= 1 or len(seeds) <= 1:
            return [one(seed) for seed in seeds]
        with ThreadPoolExecutor(threads) as workers:
            futures = [workers.submit(one, seed) for seed in seeds]
            try:
                return [future.result() for future in futures]
            except BaseException:
                workers.shutdown(wait=False, cancel_futures=True)
                self.stop()
                raise

    def _run_one(self, scenario: Scenario, seed: int, capture: Capture, stops: int) -> Trial:
        if scenario.programs:
            return self._run_programs(scenario, seed, capture, stops)
        with tempfile.TemporaryDirectory(prefix="tcpscape-packets-") as folder:
            captures: dict[Place, Path] = {"sender": Path(folder) / "sender.pcap"} if capture.packets else {}
            return self._trial(scenario, seed, self._guest_job(scenario, seed, capture, captures, stops=stops), capture)

    def write_pcap(self, scenario: Scenario, seed: int, path: Path) -> None:
        """Runs the trial once more and writes the packets at the sender's interface as classic pcap."""
        with writing.replacing(path, "pcap") as part:
            self.record(scenario, seed, {"sender": part})

    def record(
        self, scenario: Scenario, seed: int, captures: Mapping[Place, Path], *, capture: Capture = Capture(), sysctls: Mapping[str, str] = NOTHING
    ) -> Trial:
        """Runs a trial and writes the packets of each place as classic pcap, with nanoseconds.

        :param captures: the file of each place; the router's is taken at its device towards the receiver.
        :param sysctls: further settings of the kernel, as `net.ipv4.tcp_timestamps`.
        """
        return self._trial(scenario, seed, self._guest_job(scenario, seed, capture, captures, sysctls), capture)

    def version_for(self, scenario: Scenario) -> str:
        if not scenario.programs:
            return self.version
        return f"{self.version} {linux.digest(host.PROGRAM)} {programs.digest(scenario)}"

    def _run_programs(self, scenario: Scenario, seed: int, capture: Capture, stops: int) -> Trial:
        def start(job: Mapping[str, Any], out: IO[bytes], errors: IO[bytes]) -> Mapping[str, Any]:
            with self.program("emulate", job, seed, stdout=out.fileno(), stderr=errors.fileno()) as program:
                self._programs.add(program)
                try:
                    if self._stops != stops:
                        raise EngineError(INTERRUPTED)
                    for _ in program.events():
                        pass
                except EngineError:
                    if self._stops != stops:
                        raise EngineError(INTERRUPTED) from None
                    raise
                finally:
                    self._programs.discard(program)
                return dict(program.result())

        more = {"root": True, "is_virtual": True, "live_ns": programs.VIRTUAL_LIVE_NS}
        return programs.run(self, needed(self), scenario, seed, capture, start, **more)

    def program(
        self, mode: str, job: Mapping[str, Any], seed: int, *, stdout: int = 1, stderr: int = 2, bind: Sequence[Path] = ()
    ) -> guest.GuestProgram:
        """A mode of the live engine's program in a guest of its own, with this machine's files (:class:`~tcpscape.engines.guest.GuestProgram`)."""
        boot = guest.Boot(Path(self.kernel.path), guest.initrd(INIT.read_bytes()), PROGRAM_MEMORY_MB, PROGRAM_OPTIONS, SEEDS)
        return guest.GuestProgram(boot, mode, job, seed=seed, streams=(stdout, stderr), bind=bind)

    def stop(self) -> None:
        self._stops += 1
        for program in list(self._programs):
            program.kill()
        self._pool.stop(self)

    @classmethod
    def close(cls) -> None:
        guest.close_all()

    def timeout_s(self, scenario: Scenario) -> float:
        """The most that a trial may take, s of the host's clock: 2 minutes, and 20 s for each simulated second and ten flows."""
        if self._timeout_s is not None:
            return self._timeout_s
        if text := os.environ.get(PATIENCE):
            try:
                return float(text)
            except ValueError:
                refuse(PATIENCE, f"{text!r} is not a number of seconds", "write for example 600", EngineError)
        return 120 + 20 * scenario.duration / 1e9 * (1 + scenario.flow_count // 10)

    @property
    def _pool(self) -> guest.GuestPool:
        key = (self.kernel.path, self.version)
        boot = functools.partial(guest.Boot, Path(self.kernel.path), seeds=SEEDS)
        return guest.shared_pool(key, lambda: boot(guest.initrd(INIT.read_bytes())), self.per_guest)

    def _job_content(self, scenario: Scenario, seed: int, capture: Capture) -> dict[str, Any]:
        """A trial as a guest reads it. Refuses, by name, what the kernel cannot do."""
        lib = needed(self)
        controls = self._controls(scenario, parameters(lib))
        fields = plan.build_checked(lib, scenario, controls, Capture(capture.samples_ns, capture.queue_samples_ns))
        linux.refuse_modelled(fields)
        self._add_host_time(lib, scenario, fields)
        profile = plan.profile(lib, self._profile(scenario))
        self._refuse_overrides(scenario.kernel)
        values = linux.settings(profile, scenario.kernel.plan()) | (linux.ECN if scenario.ecn else {}) | (linux.BACKLOG if scenario.transfers else {})
        return {"seed": seed, "plan": fields, "sysctls": values, "sample_ns": max(MIN_INTERVAL, min(MAX_INTERVAL, scenario.duration // SAMPLES))}

    def _add_host_time(self, lib: ModuleType, scenario: Scenario, fields: dict[str, Any]) -> None:
        """A host of a kernel in virtual time takes none; the time of a scenario's hosts is a delay of the last device before each of them."""
        if not scenario.kernel.host_time:
            return
        words = f"netem delay {scenario.kernel.host_time}ns limit {HOST_PACKETS}"
        places = fields.get("places", ())
        for way in [place[end][way] for place in places for end, way in ARRIVALS.items()] or [fields["forward"], fields["reverse"]]:
            way["stages"].append({"qdisc": json.loads(lib.parse_tc(words)), "at": "router"})

    def _controls(self, scenario: Scenario, modelled: plan.Controls) -> plan.Controls:
        """The kernel's congestion controls with their parameters. Refuses one that only the model has, and two settings of the same one."""
        names = self.ccas()
        settings: dict[str, str] = {}
        for field, label in linux.controls(scenario):
            name = name_of(label)
            if name not in names:
                reason = "is the model's alone" if name in modelled else f"is not in kernel {self.kernel.name}"
                refuse(field, f"{name!r} {reason}", f"choose {', '.join(names)}{', or use --engine model' * (name in modelled)}")
            if field != "listener" and settings.setdefault(name, label) != label:
                refuse(field, f"{settings[name]} and {label} in one trial, and a kernel has one setting for all", "use --engine model")
        return {name: (*modelled.get(name, ()), *linux.unmodelled(settings.get(name, name), modelled)) for name in names}

    def _profile(self, scenario: Scenario) -> str:
        """Name of the profile whose memory limits hold: the scenario's; where it names none, the latest that is not newer than the kernel."""
        if scenario.kernel.model_copy(update={"host_time": Profile().host_time}) != Profile():
            return scenario.kernel.profile
        profiles = sorted((machine.version(name), name) for name in needed(self).kernel_profiles())
        before: list[str] = [name for release, name in profiles if release <= machine.version(self.kernel.release)]
        return before[-1] if before else Profile().profile

    def _refuse_overrides(self, profile: Profile) -> None:
        for field in linux.MODEL_ONLY:
            if getattr(profile, field) is not None:
                refuse(f"kernel.{field}", "a running kernel has its own", "leave it out, or use --engine model")
        if profile.hz not in (None, self.kernel.hz):
            fix = "leave it out, or build a kernel with another CONFIG_HZ (`tcpscape kernel build --config`)"
            refuse("kernel.hz", f"kernel {self.kernel.name} was built with {self.kernel.hz}, not {profile.hz}", fix)

    def _guest_job(
        self,
        scenario: Scenario,
        seed: int,
        capture: Capture,
        captures: Mapping[Place, Path] = NOTHING,
        sysctls: Mapping[str, str] = NOTHING,
        stops: int | None = None,
    ) -> guest.GuestJob:
        """A trial for the pool. It is cancelled as soon as the number of stops differs from `stops` (None: the number now)."""
        expected = self._stops if stops is None else stops
        content, timeouts = self._job_content(scenario, seed, capture), guest.Timeouts(self.timeout_s(scenario))
        content |= {"sysctls": {**content["sysctls"], **sysctls}, "pcap": list(captures)}
        return guest.GuestJob(content, timeouts, captures, owner=self, is_cancelled=lambda: self._stops != expected)

    def _run_job(self, scenario: Scenario, job: guest.GuestJob) -> tuple[guest.GuestAnswer, list[str]]:
        """The guest's answer, and a caveat for each guest that died before."""
        answer, deaths = self._pool.run(job)
        if error := answer.summary.get("error"):
            raise EngineError(f"engine: kernel {self.kernel.name} refuses scenario {scenario.name!r}: {error}")
        return answer, [f"the guest died once: {death}; the trial was repeated in a fresh one" for death in deaths]

    def _trial(self, scenario: Scenario, seed: int, job: guest.GuestJob, capture: Capture) -> Trial:
        answer, death_caveats = self._run_job(scenario, job)
        summary, tables = answer.summary, answer.tables
        flows = flow_results(scenario, summary["flows"])
        built = trial(
            self,
            scenario,
            seed,
            summary,
            tables,
            capture,
            flows=flows,
            queues=_queues(scenario, summary),
            caveats=(*self._caveats(scenario, flows), *death_caveats),
            kernel=f"{self.kernel.name} ({self.kernel.release})",
            counters=summary.get("counters", {}),
            check=summary.get("proof") or {},
            hash=_hash(summary) if self.repeatable else None,
            packets=frame(needed(self).capture_packets(job.captures["sender"].read_bytes())) if capture.packets else None,
        )
        return replace(built, queue_samples=_queue_samples(scenario, built.queue_samples))

    def _caveats(self, scenario: Scenario, flows: Sequence[FlowResult]) -> Iterator[str]:
        """Caveats for flows without data, for capped buffers, for a closely followed trace, and for a kernel other than the scenario's."""
        profile = scenario.kernel.model_copy(update={"profile": self._profile(scenario)})
        yield from limits.caveats(scenario.model_copy(update={"kernel": profile}))
        yield from linux.carried(scenario, flows)
        if any(isinstance(hop, TracedLink) and hop.bin < MIN_TRACE_BIN for hop in scenario.hops):
            yield "tc's `change` leaves a waiting packet to its old timer: a trace followed this closely carries less here; write bin: 10ms"
        if scenario.kernel != Profile() and machine.version(scenario.kernel.profile) != machine.version(self.kernel.release):
            yield f"scenario names kernel {scenario.kernel.profile}, this is {self.kernel.release}"


def _hash(summary: Mapping[str, Any]) -> str:
    """Digest of a guest's whole summary, which has the counters of both hosts and of all queues."""
    return hashlib.sha256(json.dumps(summary, sort_keys=True).encode()).hexdigest()[:16]


def _queues(scenario: Scenario, summary: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The reports of the queues of the scenario: without those that give hosts their time, the last on each way to a host."""
    reports = summary.get("queues", ())
    if not scenario.kernel.host_time:
        return tuple(reports)
    ways = [(report.get("link", ""), report["where"]) for report in reports]
    arriving = {way for way in ways if not scenario.is_topology or ARRIVALS.get(way[0].partition("/")[0]) == way[1]}
    last = {way: report["stage"] for way, report in zip(ways, reports, strict=True) if way in arriving}
    return tuple(report for way, report in zip(ways, reports, strict=True) if report["stage"] != last.get(way))


def _queue_samples(scenario: Scenario, samples: pl.DataFrame | None) -> pl.DataFrame | None:
    """The samples of the same queues. Of a network, the chain's pipes come first, there and back; then those of each pair of hosts, near and far."""
    import polars as pl

    if samples is None or not scenario.kernel.host_time:
        return samples
    behind = pl.col("pipe").cast(pl.Int64) - 2 * len(scenario.chain)
    arrives = (behind > 0) & (behind % 4).is_in([2, 3]) if scenario.is_topology else pl.col("pipe").is_in([1, 2])
    return samples.filter(~arrives | (pl.col("stage") != pl.col("stage").max().over("pipe")))
