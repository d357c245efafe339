"""The model engine: Linux's TCP and tc's impairments in virtual time (the Rust crates, through `tcpscape._core`)."""

from __future__ import annotations

import functools
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tcpscape import writing
from tcpscape.controls import classes, spelling, usercode
from tcpscape.controls.spelling import Param
from tcpscape.engines import plan
from tcpscape.engines.base import INTERRUPTED, Engine, flow_results, frame, trial
from tcpscape.errors import EngineError, ScenarioError, TcpscapeError
from tcpscape.queue_reports import NONE, QueueReports
from tcpscape.scenario import bottleneck, limits
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture, Trial

if TYPE_CHECKING:
    from tcpscape._core import Plan, Stop, Watch


def core() -> ModuleType | None:
    """The extension module, None where it is not built."""
    try:
        import tcpscape._core as extension
    except ImportError:
        return None
    return extension


def needed(engine: Engine) -> ModuleType:
    """The extension module for an engine. :raises EngineError: it is not built."""
    if (lib := core()) is None:
        raise EngineError(f"engine: {engine.name} cannot run here: {engine.unavailable()}")
    return lib


@dataclass(frozen=True, slots=True)
class CcaEntry:
    """A row of the registry of congestion controls."""

    name: str
    about: str
    source: str
    """RFC, draft or paper."""
    params: tuple[Param, ...]


def cca_entries(lib: ModuleType) -> list[CcaEntry]:
    """The congestion controls that the model has, in the order of their names."""
    rows = lib.cca_registry()
    return [CcaEntry(name, about, source, tuple(Param(*p) for p in params)) for name, about, source, params in rows]


@functools.lru_cache(maxsize=8)
def parameters(lib: ModuleType) -> plan.Controls:
    """The parameters of each congestion control, by its name."""
    return {c.name: c.params for c in cca_entries(lib)}


@functools.lru_cache(maxsize=8)
def _version(lib: ModuleType) -> str:
    """The version of the program and of the model."""
    return f"{lib.version()}+{lib.model_version()}"


class _Common:
    """What all trials of a scenario have in common, worked out once: a campaign runs them seed by seed, on many threads."""

    def __init__(self, scenario: Scenario) -> None:
        self.python_controls = [cca for cca in scenario.controls if spelling.is_class(cca)]
        """Its congestion controls that are Python classes."""
        self.plans: dict[tuple[Any, ...], Plan] = {}
        """Plans that the engine has checked."""
        self.caveats = tuple(limits.caveats(scenario))
        """What limits the validity of each trial."""
        self.link_mbps = bottleneck.link_mbps(scenario)
        """The rate of its link."""


_COMMON: WeakKeyDictionary[Scenario, _Common] = WeakKeyDictionary()
"""Kept as long as their scenario."""
_PLANS_LOCK = threading.Lock()


def _common(scenario: Scenario) -> _Common:
    """What is known of a scenario."""
    common = _COMMON.get(scenario)
    return _COMMON.setdefault(scenario, _Common(scenario)) if common is None else common


def checked_plan(lib: ModuleType, scenario: Scenario, capture: Capture, host: Mapping[str, Any] = MappingProxyType({})) -> Plan:
    """The engine's own plan of a scenario, parsed and checked once for all seeds, and again where a Python control's class changed.

    `host` are the host's fields that are not the plan's defaults.
    """
    common = _common(scenario)
    controls = {name: classes.find(name) for name in common.python_controls}
    key = (
        lib,
        capture,
        json.dumps(dict(host), sort_keys=True) if host else "",
        *(id(control.cls) for control in controls.values()),
    )  # which a plan keeps alive; a metaclass may have a hash of its own
    with _PLANS_LOCK:
        if key not in common.plans:
            text = json.dumps(plan.build(scenario, parameters(lib), capture, host), separators=(",", ":"))
            try:
                common.plans[key] = lib.Plan(text, {name: control.factory() for name, control in controls.items()} or None)
            except ValueError as e:
                raise ScenarioError(str(e)) from None
        return common.plans[key]


PACKET_S = 1e-6
"""Seconds of a core that a packet of data takes with its ACK, about: 53 million packets were measured to take 48 s."""

_PYTHON_TRIALS = threading.Lock()
"""Held during a trial with Python code. Such trials share the interpreter's lock; run one at a time, each measures its own cost only."""


PANICS = "pyo3_runtime"
"""The module from which PyO3 says that the exception for a panic of Rust code comes: a bug of ours."""


def _failure(e: Exception) -> TcpscapeError:
    """The one-line error for an exception that a hook raised; an interrupt, and a panic of the model, are raised again."""
    name, hook = e.args
    cause = e.__cause__ or e
    if usercode.is_interrupt(cause) or usercode.class_module(cause) == PANICS:
        raise cause
    return classes.failure(name, hook, cause)


def _run(plan: Plan, stop: Stop | None, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Trials. One that gets nowhere is a scenario that cannot run. :raises EngineError: they were stopped."""
    try:
        raw = plan.run_all(seeds, stop)
    except ValueError as e:
        raise ScenarioError(str(e)) from None
    if raw is None:
        raise EngineError(INTERRUPTED)
    return raw


class Model(Engine):
    """The simulator."""

    name = "model"
    about = "Linux's TCP and tc's impairments in virtual time (the default)"

    def __init__(self) -> None:
        self._core = core()
        self._stop: Stop | None = self._core.Stop() if self._core else None
        """Ends what runs now."""

    def unavailable(self) -> str | None:
        return None if self._core else "the extension module tcpscape._core is not built; run `make setup`"

    @property
    def version(self) -> str:
        return _version(self._lib)

    @property
    def _lib(self) -> ModuleType:
        if self._core is None:
            raise EngineError(f"engine: model cannot run here: {self.unavailable()}")
        return self._core

    def ccas(self) -> list[str]:
        """Names of the congestion controls in the registry."""
        return [c.name for c in self.registry()]

    def registry(self) -> list[CcaEntry]:
        """The registry of congestion controls."""
        return cca_entries(self._lib)

    def queues(self) -> list[tuple[str, str]]:
        """Queues and impairments: name, example."""
        return [(row[0], row[1]) for row in self._lib.qdisc_registry()]

    def kernels(self) -> list[str]:
        """Names of the kernel profiles, the oldest first."""
        return sorted(self._lib.kernel_profiles(), key=lambda name: [int(part) for part in name.split(".")])

    def full_words(self, name: str, example: str) -> str:
        """tc's words of a queue with every default written out; of `example` where the queue's name alone is not enough."""
        try:
            queue = self._lib.parse_tc(name)
        except ValueError:
            queue = self._lib.parse_tc(example)
        return str(self._lib.to_tc(queue))

    def plan(self, scenario: Scenario, capture: Capture = Capture()) -> Plan:
        """The engine's own plan of a scenario; its `run(seed)` runs a trial."""
        return checked_plan(self._lib, scenario, capture)

    def seconds(self, scenario: Scenario) -> float:
        return self.plan(scenario).most_packets() * PACKET_S

    def check(self, scenario: Scenario) -> None:
        self.refuse_programs(scenario)
        plan.profile(self._lib, scenario.kernel.profile)
        self.plan(scenario)

    def run(self, scenario: Scenario, seeds: Sequence[int], *, threads: int = 1, capture: Capture = Capture()) -> list[Trial]:
        common = _common(scenario)
        if common.python_controls:
            with _PYTHON_TRIALS:  # also while the class is looked up, since a hook may change the current directory
                return self._run(scenario, common, seeds, 1, capture)
        return self._run(scenario, common, seeds, threads, capture)

    def _run(self, scenario: Scenario, common: _Common, seeds: Sequence[int], threads: int, capture: Capture) -> list[Trial]:
        stop, plan = self._stop, self.plan(scenario, capture)
        with self._hooks(plan, scenario, common.python_controls):
            if threads <= 1 or len(seeds) <= 1:
                raw = _run(plan, stop, seeds)
            else:
                with ThreadPoolExecutor(threads) as workers:
                    raw = [row for rows in workers.map(lambda seed: _run(plan, stop, [seed]), seeds) for row in rows]
        addresses = self.addresses(scenario, seeds)
        return [self._trial(scenario, address, r, capture, common) for address, r in zip(addresses, raw, strict=True)]

    def stop(self) -> None:
        ended, self._stop = self._stop, self._lib.Stop()
        if ended:
            ended.set()

    def _hooks(self, plan: Plan, scenario: Scenario, names: Sequence[str]) -> AbstractContextManager[None]:
        """Stands around trials on this thread with Python code of these names; without any, it does nothing."""
        return self._watched(plan, scenario, names) if names else nullcontext()

    @contextmanager
    def _watched(self, plan: Plan, scenario: Scenario, names: Sequence[str]) -> Iterator[None]:
        """While trials run on this thread: the time of Python code in them is watched, what it changes is set back, what it raises is one line."""

        def start(interrupt: Callable[[], None], last_words: str | None) -> Watch | None:
            return plan.watch(usercode.patience(), usercode.trial_patience(scenario.duration / 1e9), interrupt, last_words)

        try:
            with usercode.undisturbed(), usercode.watched(start, f"{', '.join(names)}: HOOK"):
                yield
        except self._lib.HookError as e:
            raise _failure(e) from None

    def write_pcap(self, scenario: Scenario, seed: int, path: Path) -> None:
        plan_with_packets = self.plan(scenario, Capture(packets=True))
        with writing.replacing(path, "pcap") as part:
            try:
                with self._hooks(plan_with_packets, scenario, _common(scenario).python_controls):
                    plan_with_packets.write_pcapng(str(part), seed)
            except ValueError as e:
                raise EngineError(f"pcap: cannot write {path}: {e}; choose another file") from None

    def addresses(self, scenario: Scenario, seeds: Sequence[int]) -> list[str]:
        plain = super().addresses(scenario, seeds)
        digests = [classes.find(name).digest() for name in _common(scenario).python_controls]
        return [hashlib.sha256("|".join([a, *digests]).encode()).hexdigest()[:24] for a in plain] if digests else plain

    def _trial(self, scenario: Scenario, address: str, raw: Mapping[str, Any], capture: Capture, common: _Common) -> Trial:
        """The trial; `common`: what all of the scenario's have in common."""
        flows = flow_results(scenario, raw["flows"])
        return trial(
            self,
            scenario,
            raw["seed"],
            raw,
            raw,
            capture,
            address=address,
            flows=flows,
            queues=QueueReports(raw["queues"], is_packed=False) if raw["queues"] != NONE else (),
            caveats=(*common.caveats, *limits.above_rate(scenario, common.link_mbps, [flow.goodput_mbps for flow in flows])),
            hash=raw["hash"],
            events=raw["events"],
            hook_cost=raw.get("hook_cost", {}),
            packets=frame(raw["packets"]) if capture.packets else None,
            sender_events=frame(raw["sender_events"]) if capture.events else None,
            control=frame(raw["control"]) if capture.control_ns else None,
            control_states=raw.get("control_states", {}),
        )


class VirtualHostModel(Model):
    """The simulator, whose hosts have the clock of a kernel in virtual time and take as long as that (:data:`plan.VIRTUAL_HOST`).

    :param phases: a scenario's name → what has passed of a step of its clock when its trial begins, ns; 0 for others.
    """

    def __init__(self, phases: Mapping[str, int] = MappingProxyType({})) -> None:
        super().__init__()
        self._phases = phases

    def at(self, phases: Mapping[str, int]) -> VirtualHostModel:
        """The same with other phases."""
        return VirtualHostModel(phases)

    def host(self, scenario: Scenario) -> dict[str, Any]:
        """The fields of its plan that describe the host."""
        return {**plan.VIRTUAL_HOST, "clock": {**plan.VIRTUAL_HOST["clock"], "phase_ns": self._phases.get(scenario.name, 0)}}

    def version_for(self, scenario: Scenario) -> str:
        return f"{self.version}+{json.dumps(self.host(scenario), sort_keys=True)}"

    def plan(self, scenario: Scenario, capture: Capture = Capture()) -> Plan:
        return checked_plan(self._lib, scenario, capture, self.host(scenario))
