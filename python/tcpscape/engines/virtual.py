"""The virtual engine: the real Linux kernel's TCP and queues, unmodified, in virtual time (User-Mode Linux with `time-travel=inf-cpu`).

Kernels come from `tcpscape kernel build` (`virtual:NAME` names one); guests (`engines.guest`) run on as many cores as there are trials at
a time. What is measured comes from TCP_INFO and the kernel's counters, so it differs from the model's here and there:

- `rtt_ms` holds minimum, percentiles, maximum and mean of the **smoothed** RTT, sampled about 1,000 times a trial, not of single measurements;
- `undos` and `fast_recoveries` are counted for a whole namespace, so they are None where several flows share it;
- `events` is None.

Each trial has a guest of its own whose random numbers follow from the seed, so the same scenario, seed, kernel and guest program are the same
trial to the last bit, `hash` included. Watching is not free: samples are system calls in virtual time, so a trial with samples is
another trial. With `TCPSCAPE_TRIALS_PER_GUEST=200` a guest serves that many trials: it saves the boot of each, and no trial can be repeated.

Parameters of congestion controls are written to `/sys/module/tcp_NAME/parameters`: one value for all connections of a trial.

Refused by name: what tc has not (the `jitter` queue), congestion controls and parameters that only the model has, and what a running
kernel cannot change (`hz`, `window`, `skb_overhead`, `max_tcp_header`).
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpscape.controls.spelling import Param, name_of, split
from tcpscape.engines import guest, plan
from tcpscape.engines.base import Capture, Engine
from tcpscape.engines.guest import initrd
from tcpscape.engines.model import core, frame, parameters, results
from tcpscape.errors import EngineError, ScenarioError, TcpscapeError, refuse
from tcpscape.scenario.kernel import Kernel as Profile
from tcpscape.scenario.path import TracedLink
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import FlowResult, Trial

if TYPE_CHECKING:
    import polars as pl

    from tcpscape.kernels import BuiltKernel

INIT = Path(guest.__file__).with_name("init")
"""The guest's program, a static executable built by `make setup` from crates/guest."""
SEEDS = INIT.with_name("seed.so")
"""The library that makes the kernel's random numbers follow from a seed, built by `make setup` from crates/seed."""
PER_GUEST = "TCPSCAPE_TRIALS_PER_GUEST"
"""Environment: trials that a guest serves; 1, the default, is the only number with which trials can be repeated."""
PATIENCE = "TCPSCAPE_PATIENCE"
"""Environment: s that a guest may take for a trial, instead of the rule in :meth:`Virtual.patience`."""
SAMPLES, SHORTEST, LONGEST = 1000, 1_000_000, 100_000_000
"""TCP_INFO samples of a trial for its summary, and the bounds of their interval, ns."""
SMALLEST = 4096
"""`tcp_rmem[0]`, `tcp_wmem[0]`: the kernel's default, bytes."""
FIXED = ("window", "skb_overhead", "max_tcp_header")
"""Overrides that are rules of the model, not sysctls."""
SYSCTLS = {
    "comp_sack_nr": "net.ipv4.tcp_comp_sack_nr", "comp_sack_delay_ns": "net.ipv4.tcp_comp_sack_delay_ns",
    "slow_start_after_idle": "net.ipv4.tcp_slow_start_after_idle",
}
"""Overrides that are sysctls of the same value; those of memory are always set, from the profile."""
SHORTEST_STRETCH = 10_000_000
"""ns: a cellular trace was carried whole in stretches of 10 ms, by half when each opportunity was followed (2.47 and 1.29 of 2.4 Mbit/s)."""
ECN = {"net.ipv4.tcp_ecn": "1"}
"""Both ends ask for ECN and agree to it; without, they agree when they are asked (the kernel's default, 2)."""


def find(name: str | None) -> BuiltKernel:
    """The kernel with this name, or the default one. Raises a :class:`TcpscapeError` that says how to build it."""
    from tcpscape import kernels

    return kernels.find(name)


@functools.cache
def _digest(path: Path, changed: int) -> str:
    """Digest of a file; `changed` (ns) keeps an old one from being remembered."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


class Virtual(Engine):
    """A real kernel in virtual time."""

    name = "virtual"
    about = "the real Linux kernel in virtual time (virtual:NAME for a kernel of `tcpscape kernel list`)"
    unobtrusive = False

    def __init__(self, kernel: str | None = None, patience: float | None = None) -> None:
        """`kernel` names one of `tcpscape kernel list` (None: the default); `patience` is the most a trial may take, s (None: by its length)."""
        self.kernel_name = kernel
        self._patience = patience
        self._stops = 0
        self.repeatable = self.per_guest == 1

    @property
    def per_guest(self) -> int:
        """Trials that a guest serves."""
        said = os.environ.get(PER_GUEST, "1")
        if not (said.isdigit() and int(said)):
            refuse(PER_GUEST, f"{said!r} is not a number of trials", "write for example 200", EngineError)
        return int(said)

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
            found = self.kernel.path
        except TcpscapeError as e:
            return str(e).removeprefix("engine: ")
        return None if os.access(found, os.X_OK) else f"{found} cannot be executed; build it again with `tcpscape kernel build`"

    @functools.cached_property
    def kernel(self) -> BuiltKernel:
        """The kernel that runs."""
        return find(self.kernel_name)

    @property
    def version(self) -> str:
        """Name and release of the kernel, digests of its executable and of the guest's program."""
        kernel = self.kernel
        shared = "" if self.repeatable else " shared"
        return f"{kernel.name} {kernel.release} {kernel.digest[:12]}+guest-{_digest(INIT, INIT.stat().st_mtime_ns)}{shared}"

    def ccas(self) -> list[str]:
        """Congestion controls that the kernel has."""
        return list(self.kernel.congestion_controls or self._pool.facts().get("cca", ()))

    def check(self, scenario: Scenario) -> None:
        self.refuse_own(scenario)
        self._job(scenario, 0, Capture())

    def run(self, scenario: Scenario, seeds: Sequence[int], *, threads: int = 1, capture: Capture = Capture()) -> list[Trial]:
        stops = self._stops

        def trial(seed: int) -> Trial:
            return self._trial(scenario, seed, capture, stops)

        if threads <= 1 or len(seeds) <= 1:
            return [trial(seed) for seed in seeds]
        with ThreadPoolExecutor(threads) as workers:
            futures = [workers.submit(trial, seed) for seed in seeds]
            try:
                return [future.result() for future in futures]
            except BaseException:
                workers.shutdown(wait=False, cancel_futures=True)
                self.stop()
                raise

    def write_pcap(self, scenario: Scenario, seed: int, path: Path) -> None:
        """Runs the trial once more and writes the packets at the sender's interface as classic pcap."""
        if path.is_dir() or not path.parent.is_dir():
            raise EngineError(f"pcap: cannot write {path}: it is a directory, or its directory is missing; choose another file")
        self._ask(scenario, self._request(scenario, seed, Capture(packets=True), path))

    def stop(self) -> None:
        self._stops += 1
        self._pool.stop(self)

    def patience(self, scenario: Scenario) -> float:
        """The most that a trial may take, s of the host's clock: 2 minutes, and 20 s for each simulated second and ten flows."""
        if self._patience is not None:
            return self._patience
        if said := os.environ.get(PATIENCE):
            try:
                return float(said)
            except ValueError:
                refuse(PATIENCE, f"{said!r} is not a number of seconds", "write for example 600", EngineError)
        return 120 + 20 * scenario.duration / 1e9 * (1 + scenario.flow_count // 10)

    @property
    def _pool(self) -> guest.Pool:
        key = (self.kernel.path, self.version)
        boot = functools.partial(guest.Boot, Path(self.kernel.path), seeds=SEEDS)
        return guest.pool_of(key, lambda: boot(initrd.archive(INIT.read_bytes())), self.per_guest)

    def _job(self, scenario: Scenario, seed: int, capture: Capture) -> dict[str, Any]:
        """What a guest reads. Refuses, by name, what the kernel cannot do."""
        lib = core()
        if lib is None:
            raise EngineError(f"engine: virtual cannot run here: {self.unavailable()}")
        said = plan.build(scenario, lib.parse_tc, self._controls(scenario, parameters(lib)), Capture(capture.samples_ns, capture.queue_samples_ns))
        _refuse_queues(said)
        try:
            profile = json.loads(lib.kernel_profile(self._profile(scenario)))
        except ValueError as e:
            raise ScenarioError(f"{e}; choose one of them") from None
        self._refuse_overrides(scenario.kernel)
        return {
            "seed": seed, "plan": said, "sysctls": sysctls(profile, scenario.kernel.plan()) | (ECN if scenario.ecn else {}), "pcap": capture.packets,
            "sample_ns": max(SHORTEST, min(LONGEST, scenario.duration // SAMPLES)),
        }

    def _controls(self, scenario: Scenario, modelled: plan.Controls) -> plan.Controls:
        """The kernel's congestion controls with their parameters. Refuses those that only the model has, and two settings of one."""
        known = self.ccas()
        settings: dict[str, str] = {}
        for field, said in [("cca", f.cca) for f in scenario.flows] + [("listener", f.listener) for f in scenario.flows if f.listener]:
            name = name_of(said)
            if name not in known:
                whose = "is the model's alone" if name in modelled else f"is not in kernel {self.kernel.name}"
                refuse(field, f"{name!r} {whose}", f"choose {', '.join(known)}{', or use --engine model' * (name in modelled)}")
            if field == "cca" and settings.setdefault(name, said) != said:
                refuse(field, f"{settings[name]} and {said} in one trial, and a kernel has one setting for all", "use --engine model")
        return {name: (*modelled.get(name, ()), *_unmodelled(settings.get(name, name), modelled)) for name in known}

    def _profile(self, scenario: Scenario) -> str:
        """The profile whose memory limits hold: the scenario's; where it has none of its own, that of the kernel that runs, or the last before it."""
        if scenario.kernel != Profile():
            return scenario.kernel.profile
        lib = core()
        known = sorted((_release(name), name) for name in (lib.kernel_profiles() if lib else ()))
        before: list[str] = [name for release, name in known if release <= _release(self.kernel.release)]
        return before[-1] if before else Profile().profile

    def _refuse_overrides(self, profile: Profile) -> None:
        for field in FIXED:
            if getattr(profile, field) is not None:
                refuse(f"kernel.{field}", "a running kernel has its own", "leave it out, or use --engine model")
        if profile.hz not in (None, self.kernel.hz):
            fix = "leave it out, or build a kernel with another CONFIG_HZ (`tcpscape kernel build --config`)"
            refuse("kernel.hz", f"kernel {self.kernel.name} was built with {self.kernel.hz}, not {profile.hz}", fix)

    def _request(self, scenario: Scenario, seed: int, capture: Capture, pcap: Path | None = None, stops: int | None = None) -> guest.Request:
        """A job for the pool; not wanted any more when there were other than `stops` stops."""
        since = self._stops if stops is None else stops
        job, patience = self._job(scenario, seed, capture), guest.Patience(self.patience(scenario))
        return guest.Request(job, patience, pcap, owner=self, cancelled=lambda: self._stops != since)

    def _ask(self, scenario: Scenario, request: guest.Request) -> tuple[guest.Answer, list[str]]:
        """The guest's answer, and what has to be said about how it came."""
        answer, deaths = self._pool.run(request)
        if error := answer.said.get("error"):
            raise EngineError(f"engine: kernel {self.kernel.name} refuses scenario {scenario.name!r}: {error}")
        return answer, [f"the guest died once: {death}; the trial was repeated in a fresh one" for death in deaths]

    def _trial(self, scenario: Scenario, seed: int, capture: Capture, stops: int) -> Trial:
        answer, caveats = self._ask(scenario, self._request(scenario, seed, capture, stops=stops))
        raw, tables = answer.said, answer.tables
        flows = results(scenario, raw["flows"])
        caveats = [*raw.get("caveats", ()), *self._caveats(scenario, flows), *caveats]
        return Trial(
            scenario=scenario.name, cca=scenario.cca, address=self.address(scenario, seed), seed=seed, engine=self.name, version=self.version,
            duration=raw["duration_ns"] / 1e9, flows=flows, queues=tuple(raw.get("queues", ())),
            caveats=tuple(dict.fromkeys(caveats)), kernel=f"{self.kernel.name} ({self.kernel.release})",
            counters=raw.get("counters", {}), check=raw.get("proof") or {}, hash=_hash(raw) if self.repeatable else None,
            samples=_frame(tables, "samples") if capture.samples_ns else None,
            queue_samples=_frame(tables, "queue_samples") if capture.queue_samples_ns else None,
        )

    def _caveats(self, scenario: Scenario, flows: Sequence[FlowResult]) -> Iterator[str]:
        """Flows without data, and a kernel other than the one that the scenario names."""
        if silent := sum(not f.bytes_received for f in flows):
            yield f"{silent} of {len(flows)} flows carried no data"
        if any(isinstance(hop, TracedLink) and hop.bin < SHORTEST_STRETCH for hop in (*scenario.forward, *scenario.bottleneck, *scenario.reverse)):
            yield "tc's `change` leaves a waiting packet to its old timer: a trace followed this closely carries less here; write bin: 10ms"
        if scenario.kernel != Profile() and _release(scenario.kernel.profile) != _release(self.kernel.release):
            yield f"scenario names kernel {scenario.kernel.profile}, this is {self.kernel.release}"


def _release(text: str) -> tuple[int, ...]:
    """`6.1` of 6.1, 6.1.192 and 6.1.0-rc1 as numbers that can be compared."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


def sysctls(profile: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, str]:
    """A profile and what differs from it as sysctls; those of memory always, so that the guest's own memory does not matter."""
    has = {**profile, **overrides}
    said = {
        "net.core.rmem_max": str(has["rmem_max"]), "net.core.wmem_max": str(has["wmem_max"]),
        "net.ipv4.tcp_rmem": f"{SMALLEST} {has['tcp_rmem_default']} {has['tcp_rmem_max']}",
        "net.ipv4.tcp_wmem": f"{SMALLEST} {has['tcp_wmem_default']} {has['tcp_wmem_max']}",
    }
    return said | {name: str(int(overrides[field])) for field, name in SYSCTLS.items() if field in overrides}


def _unmodelled(said: str, modelled: plan.Controls) -> Iterator[Param]:
    """Parameters that the model does not have: the kernel decides about them."""
    name, values = split(said)
    known = {p.name for p in modelled.get(name, ())}
    yield from (Param(key, "", 0, -(2**31), 2**31 - 1) for key in values if key not in known)


def _refuse_queues(said: Mapping[str, Any]) -> None:
    """Refuses queues that tc has not."""
    for direction in ("forward", "reverse"):
        for stage in said[direction]["stages"]:
            queue = stage["qdisc"]
            while queue:
                if queue["kind"] == "jitter":
                    refuse(direction, "the queue 'jitter' (order: clamp, correlated) is not tc's", "write order: reorder, or use --engine model")
                if queue["kind"] == "dualpi2":
                    refuse(direction, "the queue 'dualpi2' is in Linux since 6.17, not here", "write fq_codel with ecn, or use --engine model")
                queue = queue.get("child")


def _hash(said: Mapping[str, Any]) -> str:
    """Digest of everything that a guest reports: all counters of both hosts and all queues are in it."""
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def _frame(tables: Mapping[str, Any], name: str) -> pl.DataFrame | None:
    return frame(tables[name]) if name in tables else None
