"""The two sides of a validation: an engine, under a kernel perhaps, or recorded results; and the numbers of their trials that are compared.

Unknown numbers are NaN or left out. Recorded results are the real kernel's runs of a set of conditions, as one side of a validation. A set is a stem
with two files, `STEM_conditions.csv` (or `.yaml`) and `STEM_results.csv`, or a directory that `tcpscape validate` wrote (`conditions.yaml`,
`results.csv`; its second engine's runs are the record).
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tcpscape import engines, metrics, writing
from tcpscape.campaign.execute import Runner, TrialsDone
from tcpscape.engines.base import Engine
from tcpscape.errors import StoreError, TcpscapeError, refuse
from tcpscape.reading import documents
from tcpscape.reading import files as reading
from tcpscape.reading.documents import cell_number
from tcpscape.reading.files import MIB, Kind, Origin
from tcpscape.scenario import host
from tcpscape.scenario.scenario import Kernel, Scenario
from tcpscape.store.results import Store
from tcpscape.trial import Capture, FlowResult, ProbeResult, Trial
from tcpscape.validate import conditions
from tcpscape.validate.conditions import NamedScenario

if TYPE_CHECKING:
    from pathlib import Path


COUNTERS = (
    "retransmits",
    "spurious_retransmits",
    "rtos",
    "fast_recoveries",
    "undos",
    "dsacks",
    "reord_seen",
    "data_segs_out",
    "segs_in",
    "delivered_ce",
    "ecn_reductions",
)
"""Counters of a flow that are summed over the flows."""
COLUMNS = ("id", "side", "seed", "goodput_mbps", "mean_rtt_ms", "min_rtt_ms")
"""Columns of `results.csv` before the counters. The last ones are `parts_mbps`, each group's goodput, where there are several, and `delays_ms`, each
probe's median and 95th percentile, where there are probes."""
LISTS = {"parts": ("parts_mbps", 2), "delays_ms": ("delays_ms", 1)}
"""Numbers of a trial that are lists → their column, and how many of them a trial needs for it."""
RECORDED = Kind("a table of recorded runs", "give a results.csv that validate wrote", most=64 * MIB, error=StoreError)
OTHER_NAMES = {"dsacks": "dsack_dups", "delivered_ce": "ce_delivered"}
"""Names of counters in older files."""


@dataclass(frozen=True)
class TrialNumbers:
    """The numbers of one trial that are compared."""

    goodput: float
    """All flows together, Mbit/s."""
    retransmits: float
    mean_rtt_ms: float = math.nan
    """Mean of the smoothed RTT, sampled at even times, over the flows."""
    min_rtt_ms: float = math.nan
    """The smallest that a flow saw."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """Sums over the flows, and `limited_by_…` as shares of one."""
    parts: tuple[float, ...] = ()
    """Goodput of each group of flows, Mbit/s, in the scenario's order; empty where it is unknown."""
    seed: int = 0
    caveats: tuple[str, ...] = ()
    delays_ms: tuple[float, ...] = ()
    """Median and 95th percentile of each probe's delays, ms, two numbers a probe, in the scenario's order; NaN where nothing arrived."""

    @classmethod
    def of(cls, trial: Trial, counts: Sequence[int] = ()) -> TrialNumbers:
        """From an engine's trial; `counts`: the flows of each group."""
        least = [f.min_rtt_ms for f in trial.flows if f.min_rtt_ms]
        return cls(
            trial.goodput_mbps,
            metrics.retransmits(trial),
            metrics.mean_rtt(trial),
            min(least, default=math.nan),
            _counters(trial.flows),
            _parts([f.goodput_mbps for f in trial.flows], counts),
            trial.seed,
            trial.caveats,
            _delays(trial.probes),
        )


def _parts(goodputs: Sequence[float], counts: Sequence[int]) -> tuple[float, ...]:
    """Sums over groups of so many flows."""
    ends = list(itertools.accumulate(counts))
    return tuple(sum(goodputs[end - n : end]) for n, end in zip(counts, ends, strict=True))


def _delays(probes: Sequence[ProbeResult]) -> tuple[float, ...]:
    """Two percentiles of each probe."""
    values = [ms for probe in probes for ms in (probe.delay_ms.p50, probe.delay_ms.p95)]
    return tuple(math.nan if ms is None else ms for ms in values)


def _counters(flows: Sequence[FlowResult]) -> dict[str, float]:
    counters: dict[str, float] = {}
    for name in COUNTERS:
        values = [getattr(f, name) for f in flows]
        if all(v is not None for v in values):
            counters[name] = float(sum(values))
    windows = [f.max_rwnd for f in flows if f.max_rwnd is not None]
    counters |= {"max_rwnd": float(max(windows))} if windows else {}
    for cause in sorted({c for f in flows for c in f.limited_by}):
        counters[f"limited_by_{cause}"] = sum(f.limited_by.get(cause, 0.0) for f in flows) / len(flows)
    return counters


@dataclass(frozen=True)
class SideRuns:
    """All trials of one condition on one side."""

    trials: tuple[TrialNumbers, ...]

    def __len__(self) -> int:
        return len(self.trials)

    @cached_property
    def goodput(self) -> tuple[float, ...]:
        """Mbit/s, one a trial."""
        return tuple(t.goodput for t in self.trials)

    def part(self, group: int) -> list[float]:
        """Goodput of one group of flows in each trial, Mbit/s; empty where it is unknown."""
        return [t.parts[group] for t in self.trials if group < len(t.parts)]

    def known(self, name: str) -> list[float]:
        """A field's values (`retransmits`, `mean_rtt_ms`, `min_rtt_ms`), those that are known."""
        return [v for t in self.trials if not math.isnan(v := getattr(t, name))]

    def counter(self, name: str) -> list[float]:
        """A counter's values, those that are known."""
        return [t.counters[name] for t in self.trials if name in t.counters]

    @property
    def counters(self) -> list[str]:
        """The counters that any trial has, in order."""
        return list(dict.fromkeys(name for t in self.trials for name in t.counters))


@dataclass(frozen=True)
class RecordedSet:
    """A set of conditions with results."""

    name: str
    conditions: list[NamedScenario]
    runs: dict[str, SideRuns]
    """By the condition's id."""


def load_recorded(where: str | Path) -> RecordedSet:
    """The set at a stem or in a directory."""
    place = Path(where)
    if os.path.isdir(place):
        listing, results, name = place / "conditions.yaml", place / "results.csv", place.resolve().name
    else:
        stem = place.with_name(place.name.removesuffix("_conditions.csv").removesuffix("_results.csv"))
        listing, results, name = stem.with_name(f"{stem.name}_conditions.csv"), stem.with_name(f"{stem.name}_results.csv"), stem.name
        listing = listing if os.path.exists(listing) else listing.with_suffix(".yaml")
    for file in (listing, results):
        if not os.path.exists(file):
            refuse("against", f"there is no {file}", "name STEM with STEM_conditions.csv and STEM_results.csv, or a directory of validate")
    runs = read_results(results)
    with_results = [c for c in conditions.read(listing) if c.id in runs]
    if not with_results:
        refuse("against", f"{results} has no result of a condition of {listing}", "name files that belong together")
    return RecordedSet(name, with_results, runs)


def read_results(file: Path) -> dict[str, SideRuns]:
    """Recorded runs by condition. Where the file tells sides apart, those of side `b`; rows without a goodput are left out.

    Mean RTTs may come from a file beside it (`X_rtt.csv` for `X_results.csv`), measured in runs of their own.
    """
    recorded = _rows(file)
    if not recorded or not {"id", *({"goodput_mbps", "first_mbps"} & recorded[0].keys() or {"goodput_mbps"})} <= recorded[0].keys():
        raise StoreError(f"against: {file} has no column id or goodput_mbps, or no row; {RECORDED.fix}")
    rows = [r for r in map(_whole, recorded) if r.get("goodput_mbps") and r.get("side", "b") == "b"]
    aside = file.with_name(file.name.replace("_results", "_rtt"))
    single = {r["id"] for r in rows if r.get("flows", "1") == "1"}
    rtts = [r for r in _rows(aside) if r.get("goodput_mbps") and r["id"] in single] if aside != file and os.path.exists(aside) else []
    by_id: dict[str, list[TrialNumbers]] = {}
    try:
        for r in rows:
            by_id.setdefault(r["id"], []).append(_measured(r))
        measured_apart: dict[str, list[float]] = {}
        for r in rtts:
            measured_apart.setdefault(r["id"], []).append(_mean_rtt(r))
    except (KeyError, ValueError) as e:
        raise StoreError(f"against: {file}: {e}; correct the file") from None
    return {id: SideRuns(tuple(_with_rtts(trials, measured_apart.get(id, [])))) for id, trials in by_id.items()}


def _rows(file: Path) -> list[dict[str, str]]:
    return documents.from_csv(reading.text(file, RECORDED, "against"), Origin(str(file), RECORDED, "against"))


def _whole(row: dict[str, str]) -> dict[str, str]:
    """A row of the shared bottlenecks' reference set, whose cells list the flows, as any other row."""
    if "first_mbps" not in row:
        return row
    parts = [row["first_mbps"], row["second_mbps"]]
    sums = {k: f"{sum(map(cell_number, row[k].split(';'))):g}" for k in ("retransmits", "ce_delivered", "data_segs_out") if row.get(k)}
    return row | sums | {"parts_mbps": ";".join(parts), "goodput_mbps": f"{sum(map(cell_number, parts)):.7g}", "flows": "2"}


def _cell(row: Mapping[str, str], name: str, scale: float = 1.0) -> float:
    return cell_number(row[name]) * scale if row.get(name) else math.nan


def _mean_rtt(row: Mapping[str, str]) -> float:
    """Mean smoothed RTT, ms. In the older files of single flows only: samples of several flows came through one file and lost lines."""
    if "mean_srtt_us" in row:
        return _cell(row, "mean_srtt_us", 1e-3) if row.get("flows", "1") == "1" else math.nan
    return _cell(row, "mean_rtt_ms")


def _measured(row: Mapping[str, str]) -> TrialNumbers:
    counters = {name: _cell(row, name if row.get(name) else OTHER_NAMES.get(name, name)) for name in COUNTERS}
    counters |= {k: _cell(row, k) for k in row if k == "max_rwnd" or k.startswith("limited_by_")}
    least = _cell(row, "min_rtt_us", 1e-3) if "min_rtt_us" in row else _cell(row, "min_rtt_ms")
    known_counters = {k: v for k, v in counters.items() if not math.isnan(v)}
    seed = int(row.get("seed") or row.get("repeat") or 0)
    parts, delays = _list(row, "parts_mbps"), _list(row, "delays_ms")
    return TrialNumbers(_cell(row, "goodput_mbps"), counters["retransmits"], _mean_rtt(row), least, known_counters, parts, seed, delays_ms=delays)


def _list(row: Mapping[str, str], name: str) -> tuple[float, ...]:
    """The numbers of a cell, NaN where one is empty; none without the cell."""
    return tuple(cell_number(cell) if cell else math.nan for cell in row[name].split(";")) if row.get(name) else ()


def _with_rtts(trials: Sequence[TrialNumbers], rtts: Sequence[float]) -> list[TrialNumbers]:
    """The trials, and where they know no mean RTT those of other runs beside them."""
    if not rtts or not all(math.isnan(t.mean_rtt_ms) for t in trials):
        return list(trials)
    return [replace(t, mean_rtt_ms=rtts[i] if i < len(rtts) else math.nan) for i, t in enumerate(trials)]


def write_results(sides: Mapping[str, Mapping[str, SideRuns]], file: Path) -> None:
    """Every run of each side (`a`, `b`) of each condition: what :func:`read_results` reads back."""
    everything = [runs for by_id in sides.values() for runs in by_id.values()]
    extra = list(dict.fromkeys(name for runs in everything for name in runs.counters))
    with io.StringIO(newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        lists = [name for name, (_, least) in LISTS.items() if any(len(getattr(t, name)) >= least for runs in everything for t in runs.trials)]
        out.writerow([*COLUMNS, *extra, *(LISTS[name][0] for name in lists)])
        for side, by_id in sides.items():
            for id, runs in by_id.items():
                for t in runs.trials:
                    numbers = [t.goodput, t.mean_rtt_ms, t.min_rtt_ms, *(t.counters.get(name, math.nan) for name in extra)]
                    listed = [";".join(map(_text, getattr(t, name))) for name in lists]
                    out.writerow([id, side, t.seed, *map(_text, numbers), *listed])
        writing.whole(file, f.getvalue())


def _text(x: float) -> str:
    """A number of a cell; an unknown one is empty."""
    return "" if math.isnan(x) else f"{x:.7g}"


SAMPLE_NS = 10_000_000
"""Interval of the samples of the smoothed RTT and of the traces, ns."""
EVERY_RTT_SAMPLE = ("model",)
"""Engines whose `rtt_ms` is of every RTT sample; the others' is of the smoothed RTT, sampled."""
SIMULATED = ("model", "mock")
"""Engines that take a kernel after the colon (`model:6.12`); for the others it belongs to the engine's name."""

LIVE = "live"
"""The engine that is this machine's own kernel, whatever kernel a condition names."""
TRACES = "traces"
"""Directory of the trials with samples, in that of the validation."""

Say = Callable[[str], TrialsDone | None]
"""Called with a line about the next step; returns the function that takes its progress, or None."""


class Smoothed(Engine):
    """An engine whose trials report the mean of the smoothed RTT, sampled every 10 ms: every engine can report it, so it can be compared."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self.name, self.about, self.repeatable = inner.name, inner.about, inner.repeatable

    @property
    def version(self) -> str:
        """The engine's, marked: these trials are not those of the engine itself."""
        return f"{self.inner.version}+srtt"

    def check(self, scenario: Scenario) -> None:
        """As the engine."""
        self.inner.check(scenario)

    def run(self, scenario: Scenario, seeds: Sequence[int], *, threads: int = 1, capture: Capture = Capture()) -> list[Trial]:
        """The engine's trials with another mean RTT; samples are kept only where `capture` has them."""
        trials = self.inner.run(scenario, seeds, threads=threads, capture=replace(capture, samples_ns=capture.samples_ns or SAMPLE_NS))
        return [self._smoothed(trial, scenario, keep=capture.samples_ns > 0) for trial in trials]

    def stop(self) -> None:
        """Ends the engine's trials."""
        self.inner.stop()

    def _smoothed(self, trial: Trial, scenario: Scenario, *, keep: bool) -> Trial:
        means = mean_srtt_ms(trial.samples)
        flows = [replace(f, rtt_ms=replace(f.rtt_ms, mean=means.get(i, f.rtt_ms.mean))) for i, f in enumerate(trial.flows)]
        return replace(
            trial, flows=tuple(flows), samples=trial.samples if keep else None, address=self.address(scenario, trial.seed), version=self.version
        )


def mean_srtt_ms(samples: pl.DataFrame | None) -> Mapping[int, float]:
    """Each flow's mean smoothed RTT over its samples, those before the first measurement left out, ms."""
    if samples is None or not {"flow", "srtt_us"} <= set(samples.columns):
        return {}
    known = samples.filter(pl.col("srtt_us") > 0).group_by("flow").agg(pl.col("srtt_us").cast(pl.Float64).mean() / 1e3)
    return {int(flow): float(mean) for flow, mean in known.iter_rows()}


class Side(ABC):
    """One side of a validation: its label, the conditions that it refuses, and its runs."""

    label: str

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of what ran."""

    @abstractmethod
    def refuses(self, condition: NamedScenario) -> str | None:
        """Why it cannot run a condition; None where it can."""

    @abstractmethod
    def measure(self, work: Sequence[tuple[NamedScenario, int]], progress: TrialsDone | None = None) -> list[SideRuns]:
        """The runs of each condition with its number of seeds; recorded results give all their runs, whatever the number."""

    @property
    def endless(self) -> bool:
        """Whether further runs are possible."""
        return True

    def traces(self, condition: NamedScenario, seeds: Sequence[int], progress: TrialsDone | None = None) -> list[Trial]:
        """Trials with samples every 10 ms; empty where a side has no traces."""
        return []


@dataclass
class EngineSide(Side):
    """An engine; `kernel` replaces the kernel of every condition."""

    label: str
    engine: Engine
    kernel: Kernel | None = None
    jobs: int = 0
    store: Store | None = None
    traced: Store | None = None
    """Where the trials with samples are kept: apart, since not every engine repeats a trial to the last bit."""

    @property
    def version(self) -> str:
        """The engine's, with the kernel that replaces the conditions' own."""
        return self.engine.version + (f", kernel {self.kernel.profile}" if self.kernel else "")

    def scenario(self, condition: NamedScenario) -> Scenario:
        """The scenario that is run for a condition."""
        return condition.scenario.model_copy(update={"kernel": self.kernel}) if self.kernel else condition.scenario

    def refuses(self, condition: NamedScenario) -> str | None:
        """The engine's refusal; None where it can run the condition."""
        try:
            self.engine.check(self.scenario(condition))
        except TcpscapeError as e:
            return str(e)
        return None

    def measure(self, work: Sequence[tuple[NamedScenario, int]], progress: TrialsDone | None = None) -> list[SideRuns]:
        """Runs what the store does not hold already."""
        runner = Runner(self.engine, self.jobs, store=self.store, progress=progress)
        trials_by_condition = runner.run_all([(self.scenario(c), range(n)) for c, n in work])
        counts = [[f.count for f in c.scenario.flows] for c, _ in work]
        return [SideRuns(tuple(TrialNumbers.of(t, n) for t in trials)) for trials, n in zip(trials_by_condition, counts, strict=True)]

    def traces(self, condition: NamedScenario, seeds: Sequence[int], progress: TrialsDone | None = None) -> list[Trial]:
        """The same trials again, with samples."""
        runner = Runner(self.engine, self.jobs, Capture(samples_ns=SAMPLE_NS), self.traced, progress)
        return runner.run(self.scenario(condition), seeds)


@dataclass
class RecordedSide(Side):
    """Recorded results: nothing runs."""

    record: RecordedSet
    label: str = "recorded"

    @property
    def version(self) -> str:
        """The set's name."""
        return self.record.name

    @property
    def endless(self) -> bool:
        """There are no more than were recorded."""
        return False

    def refuses(self, condition: NamedScenario) -> str | None:
        """Conditions that it has no results of."""
        return None if condition.id in self.record.runs else f"against: {self.record.name} has no results of {condition.id}; record it"

    def measure(self, work: Sequence[tuple[NamedScenario, int]], progress: TrialsDone | None = None) -> list[SideRuns]:
        """All that was recorded."""
        return [self.record.runs[c.id] for c, _ in work]


def with_host_kernel(specs: Sequence[str]) -> tuple[str, ...]:
    """The sides of a validation; a model beside this machine's own kernel gets that kernel's profile, unless it names one."""
    is_live = any(spec.partition(":")[0] == LIVE for spec in specs)
    return tuple(f"{spec}:{host.NAME}" if is_live and spec in SIMULATED else spec for spec in specs)


def make(spec: str, jobs: int, out: Path | None) -> EngineSide:
    """A side from `model`, `model:6.12,rmem_max=4MiB`, `virtual`, `virtual:NAME`; results are kept in `out`."""
    name, colon, words = spec.partition(":")
    if colon and not words:
        refuse("engine", f"{spec!r} names nothing after the colon", "write for example model:6.12")
    own_kernel = name in SIMULATED and bool(words)
    engine = engines.make(name if own_kernel else spec)
    if engine.name in EVERY_RTT_SAMPLE:
        engine = Smoothed(engine)
    stores = (Store(out), Store(out / TRACES)) if out else (None, None)
    return EngineSide(spec, engine, _kernel(words) if own_kernel else None, jobs, *stores)


def _kernel(words: str) -> Kernel:
    return Scenario.of({"kernel": words}, "engine").kernel
