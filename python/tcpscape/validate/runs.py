"""The runs of a condition: the numbers of a trial that a validation compares, from an engine's trial or from recorded results.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from tcpscape import metrics, writing
from tcpscape.errors import StoreError, refuse
from tcpscape.reading import documents
from tcpscape.reading import files as reading
from tcpscape.reading.documents import cell_number
from tcpscape.reading.files import MIB, Kind, Origin
from tcpscape.trial import FlowResult, ProbeResult, Trial
from tcpscape.validate import conditions
from tcpscape.validate.conditions import NamedScenario

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
            trial.goodput_mbps, metrics.retransmits(trial), metrics.mean_rtt(trial), min(least, default=math.nan), _counters(trial.flows),
            _parts([f.goodput_mbps for f in trial.flows], counts), trial.seed, trial.caveats, _delays(trial.probes),
        )  # fmt: skip


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
class Runs:
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
    runs: dict[str, Runs]
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


def read_results(file: Path) -> dict[str, Runs]:
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
    return {id: Runs(tuple(_with_rtts(trials, measured_apart.get(id, [])))) for id, trials in by_id.items()}


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


def write_results(sides: Mapping[str, Mapping[str, Runs]], file: Path) -> None:
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
