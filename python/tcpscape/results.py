"""The result store: one Parquet file for each trial, written as soon as it is there, named by its content address.

An interrupted campaign started again finds what it has and runs only the rest. Results of another model version have other
addresses, so they are never mixed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpscape.errors import StoreError
from tcpscape.trial import FlowResult, Trial

if TYPE_CHECKING:
    import polars as pl

SIDE_TABLES = ("samples", "queue_samples", "packets")


def flow_rows(trials: Iterable[Trial]) -> pl.DataFrame:
    """One row for each flow of each trial; nested values become `rtt_ms_p50`, `limited_by_app`, …"""
    import polars as pl

    rows = [row for trial in trials for row in _rows(trial)]
    return pl.DataFrame(rows, infer_schema_length=None)


def _rows(trial: Trial) -> list[dict[str, Any]]:
    head = {
        "scenario": trial.scenario, "seed": trial.seed, "engine": trial.engine, "version": trial.version, "duration": trial.duration,
        "address": trial.address, "hash": trial.hash, "events": trial.events, "caveats": "\n".join(trial.caveats),
    }
    return [{**head, "flow": i, **_flat(flow.to_dict())} for i, flow in enumerate(trial.flows)]


def _flat(said: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in said.items():
        if isinstance(value, dict):
            flat |= {f"{key}_{k}": v for k, v in value.items()}
        else:
            flat[key] = value
    return flat


class Store:
    """A directory of trials."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        try:
            (self.root / "trials").mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise StoreError(f"out: cannot write to {self.root}: {e.strerror}; choose another directory") from None

    def save(self, trial: Trial) -> None:
        """Writes a trial; a reader sees all of it or nothing."""
        import polars as pl

        summary = {k: v for k, v in trial.to_dict().items() if k != "queues"}
        frame = flow_rows([trial]).with_columns(trial_json=pl.lit(json.dumps({**summary, "queues": [dict(q) for q in trial.queues]})))
        for table in SIDE_TABLES:
            side = getattr(trial, table)
            if side is not None:
                self._write(side, self._path(trial.address, table))
        self._write(frame, self._path(trial.address))

    def load(self, address: str, tables: Iterable[str] = ()) -> Trial | None:
        """The trial with this address and its `tables`, None where it (or one of them) is missing."""
        import polars as pl

        path = self._path(address)
        if not path.exists() or any(not self._path(address, t).exists() for t in tables):
            return None
        try:
            said = json.loads(pl.read_parquet(path, columns=["trial_json"])["trial_json"][0])
            sides = {t: pl.read_parquet(self._path(address, t)) for t in tables}
        except (OSError, pl.exceptions.PolarsError) as e:
            raise StoreError(f"out: {path} cannot be read ({e}); delete it and run again") from None
        return Trial(
            scenario=said["scenario"], cca=said["cca"], address=address, seed=said["seed"], engine=said["engine"], version=said["version"],
            duration=said["duration"], flows=tuple(FlowResult.of(f) for f in said["flows"]), caveats=tuple(said["caveats"]),
            hash=said["hash"], events=said["events"], queues=tuple(said["queues"]),
            kernel=said.get("kernel"), counters=said.get("counters", {}), check=said.get("check", {}), hook_cost=said.get("hook_cost", {}), **sides,
        )

    def frame(self) -> pl.DataFrame:
        """Every trial in the store, one row for each flow."""
        import polars as pl

        files = sorted((self.root / "trials").glob("*.parquet"))
        if not files:
            return pl.DataFrame()
        return pl.concat([pl.read_parquet(f).drop("trial_json") for f in files], how="diagonal_relaxed")

    def _path(self, address: str, table: str = "trials") -> Path:
        return self.root / table / f"{address}.parquet"

    def _write(self, frame: pl.DataFrame, path: Path) -> None:
        part = path.with_suffix(f".{os.getpid()}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            frame.write_parquet(part)
            part.replace(path)
        except OSError as e:
            raise StoreError(f"out: cannot write {path}: {e.strerror}; choose another directory") from None
