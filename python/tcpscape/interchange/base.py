"""The type of a format and of what reading a file gives, refusals of bad files, and what several formats compute alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tcpscape.errors import TcpscapeError, printable
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl

    from tcpscape.campaign.record import Record
    from tcpscape.scenario.scenario import Scenario

HEADERS = 52
"""Bytes of an IPv4 (20) and a TCP header (20) with timestamps (12): RFC 791, RFC 9293, RFC 7323. MTU − this is the segment's payload."""
MTU = 1500
"""Bytes of an Ethernet payload, and the MTU of a trial whose scenario is not known."""
UNLIMITED = 2**63
"""B/s from which on a pacing rate means none (`~0` in the kernel)."""


class InterchangeError(TcpscapeError):
    """A file of another tool that cannot be read, or a result that a format cannot hold."""


LONGEST_TEXT = 200
"""Characters of a text from another tool's file (a title, the name of a congestion control): the rest is cut off."""
MOST_SEED = 2**63 - 1
"""Seeds and counts are columns of 64 bits."""


def refuse(path: Path | str, problem: str, fix: str) -> NoReturn:
    """Raises the one line for a file: `PATH: PROBLEM; FIX`."""
    raise InterchangeError(f"{path}: {problem}; {fix}")


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """The content of a file of another tool, as trials; `unknown` are columns of their rows that the file does not contain.

    A trial that was read has `engine` the tool's name (`iperf3`, `flent`), `version` the tool's version, and a seed only where the tool had one.
    """

    trials: tuple[Trial, ...]
    unknown: frozenset[str] = frozenset()
    table: pl.DataFrame | None = field(default=None, compare=False)
    """The rows themselves, where the file was a table and not trials."""

    def rows(self) -> pl.DataFrame:
        """One row for each flow of each trial, as `results.Store.frame` has them; values that are not known are null."""
        import polars as pl

        from tcpscape.store.results import flow_rows

        if self.table is not None:
            return self.table
        rows = flow_rows(self.trials)
        return rows.with_columns(pl.lit(None, dtype=rows[c].dtype).alias(c) for c in sorted(self.unknown & set(rows.columns)))


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: its name, the endings of its files, and the functions that read and write them."""

    name: str
    about: str
    suffixes: tuple[str, ...]
    """Endings; files are written with the first."""
    read: Callable[[Path], ImportedFile] | None = None
    write_trial: Callable[[Trial, int], bytes] | None = None
    """A trial, and the MTU of its path in bytes."""
    write_rows: Callable[[Any], bytes] | None = None
    """The rows of all trials (:class:`polars.DataFrame`)."""
    write_parts: Callable[[Iterable[Any]], bytes] | None = None
    """The same from rows in parts, which are never in memory together."""
    write_scenario: Callable[[Scenario], bytes] | None = None
    is_answer: bool = False
    """Whether it is a text about a campaign, or a part of a study; whoever has words for it writes it."""
    write_directory: Callable[[Record, Path], bytes] | None = None
    """A result directory, whole: what it holds, and where it is."""
    binary: bool = False
    """Whether its files are not text."""

    @property
    def writes(self) -> bool:
        """Whether the format can be written."""
        return any((self.write_trial, self.write_rows, self.write_scenario, self.write_directory, self.is_answer))


def by_flow(samples: pl.DataFrame | None) -> dict[int, pl.DataFrame]:
    """The samples of each flow, in order of time."""
    if samples is None or samples.is_empty():
        return {}
    return {int(str(flow)): rows.sort("t_ns") for (flow,), rows in samples.partition_by("flow", as_dict=True).items()}


def throughputs(samples: pl.DataFrame | None) -> dict[int, list[tuple[float, float, float]]]:
    """Each flow's throughput between its samples: begin s, end s, bytes a second.

    It is computed from the first of `bytes_received`, `bytes_acked` and `bytes_sent` that the samples have; empty where they have none.
    """
    column = next((c for c in ("bytes_received", "bytes_acked", "bytes_sent") if samples is not None and c in samples.columns), None)
    if samples is None or column is None:
        return {}
    flows = {flow: known for flow, rows in by_flow(samples).items() if (known := rows.select("t_ns", column).drop_nulls()).height}
    return {flow: _between(list(rows.iter_rows()), interval(samples)) for flow, rows in flows.items()}


def _between(rows: Sequence[tuple[int, int]], gap: int) -> list[tuple[float, float, float]]:
    """From times (ns) and bytes so far; the first stretch is as long as most."""
    begin, before, stretches = max(0, rows[0][0] - gap), 0, []
    for t_ns, so_far in rows:
        if t_ns > begin:
            stretches.append((begin / 1e9, t_ns / 1e9, (so_far - before) / (t_ns - begin) * 1e9))
        begin, before = t_ns, so_far
    return stretches


def interval(samples: pl.DataFrame) -> int:
    """The time between two samples of a flow, ns: the median of all, or the first time where no flow has two."""
    gaps = sorted(b - a for rows in by_flow(samples).values() for a, b in pairwise(rows["t_ns"].unique(maintain_order=True).to_list()))
    return max(1, int(gaps[len(gaps) // 2]) if gaps else int(samples["t_ns"].to_list()[0]))


def quantiles(values: Sequence[float]) -> dict[str, float | None]:
    """`min`, `p50`, `p95`, `p99`, `max` and `mean`; None of nothing."""
    import numpy as np

    if not values:
        return dict.fromkeys(("min", "p50", "p95", "p99", "max", "mean"))
    p50, p95, p99 = np.percentile(values, (50, 95, 99))
    return {"min": min(values), "p50": float(p50), "p95": float(p95), "p99": float(p99), "max": max(values), "mean": math.fsum(values) / len(values)}


def provenance(trial: Trial) -> dict[str, Any]:
    """The identity of a trial, for which other tools' formats have no field. Formats write it where the tool keeps free text."""
    from tcpscape import __version__

    return {
        "tool": f"tcpscape {__version__}",
        "scenario": trial.scenario,
        "seed": trial.seed,
        "engine": trial.engine,
        "version": trial.version,
        "address": trial.address,
        "cca": [f.cca for f in trial.flows],
        "caveats": list(trial.caveats),
    }


def read_provenance(value: object) -> dict[str, Any]:
    """The provenance that :func:`provenance` wrote; empty for any other value."""
    texts, lists = ("tool", "scenario", "engine", "version", "address"), ("cca", "caveats")
    if not isinstance(value, dict) or not all(isinstance(value.get(k), str) for k in texts) or not value["tool"].startswith("tcpscape"):
        return {}
    sound = all(isinstance(value.get(k), list) and all(isinstance(text, str) for text in value[k]) for k in lists)
    if not sound or type(value.get("seed")) is not int or not 0 <= value["seed"] <= MOST_SEED:
        return {}
    return value | {k: printable(value[k]) for k in texts} | {k: [printable(text) for text in value[k]] for k in lists}
