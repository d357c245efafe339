"""The Python door: the command line's nouns as functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpscape import engines
from tcpscape.campaign import Runner
from tcpscape.controls import classes
from tcpscape.scenario.files import load
from tcpscape.scenario.scenario import Scenario
from tcpscape.store import results
from tcpscape.trial import Trial

if TYPE_CHECKING:
    import polars as pl

OneCca = str | Mapping[str, Any] | type[Any]
"""A congestion control: `cubic:hystart=off`, `{"name": "cubic", "hystart": False}`, or a class that is one (:mod:`tcpscape.controls.hooks`)."""
Cca = Sequence[OneCca] | OneCca | None


def trials(
    scenario: Scenario | str | Path | dict[str, Any], *, cca: Cca = None, seeds: Iterable[int] = range(10),
    engine: str = "model", jobs: int = 0, out: str | Path | None = None, samples_ns: int = 0, ecn: bool | None = None,
) -> list[Trial]:
    """Runs a scenario (a noun, a file, a gallery name or plain values) once for each congestion control and seed.

    `cca` replaces every flow's congestion control: names, with parameters perhaps, or classes like those of :mod:`tcpscape.controls.hooks`; `jobs` is
    cores (0: all); `out` keeps results there and resumes from there; `samples_ns` is the interval of per-flow samples in ns (0: none); `ecn`
    replaces the scenario's.
    """
    runner = Runner(
        engines.make(engine), jobs, engines.Capture(samples_ns=samples_ns), results.Store(out) if out is not None else None
    )
    some = list(seeds)
    base = as_scenario(scenario)
    cases = [(s, some) for s in variants(base if ecn is None else base.model_copy(update={"ecn": ecn}), cca)]
    return [t for group in runner.run_all(cases) for t in group]


def run(scenario: Scenario | str | Path | dict[str, Any], **options: Any) -> pl.DataFrame:
    """Like :func:`trials`, as a frame: one row for each flow of each trial, `goodput_mbps`, `rtt_ms_p50`, `limited_by_cwnd`, …"""
    return results.flow_rows(trials(scenario, **options))


def as_scenario(said: Scenario | str | Path | dict[str, Any]) -> Scenario:
    """A scenario from whatever names one."""
    if isinstance(said, Scenario):
        return said
    return Scenario.of(said) if isinstance(said, dict) else load(said)


def variants(scenario: Scenario, cca: Cca) -> list[Scenario]:
    """The scenario under each congestion control, or as it is."""
    if not cca:
        return [scenario]
    some = [cca] if isinstance(cca, (str, type, Mapping)) else cca
    return [scenario.with_cca(classes.give(one) if isinstance(one, type) else one) for one in some]
