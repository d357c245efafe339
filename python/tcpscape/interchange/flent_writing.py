"""Flent's data files, written (format version 4): a trial with samples becomes a test whose plots Flent draws as of its own.

Flent waits 5 s before and after its flows, and its plots cut those off; so the flows start at 5 s here, and nothing is known before. Pings are there
where the trial has probes that measure round trips and kept their samples. The time is 1970 plus the trial's: a trial has no date.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tcpscape.controls import spelling
from tcpscape.interchange import base, flent_series
from tcpscape.interchange.base import InterchangeError
from tcpscape.interchange.flent_series import DELAY, FlowSeries, Grid, Test
from tcpscape.trial import FlowResult, Trial

VERSION = 4
"""Of the file format."""
MOST_STEPS = 1_000_000
"""A day in steps of 0.1 s."""
EPOCH = "1970-01-01T00:00:00.000000Z"


def write(trial: Trial, mtu: int = base.MTU) -> bytes:
    """The file, compressed; `mtu` is the path's, bytes. Refuses a trial without samples: a data file is its series."""
    samples = trial.samples
    rates, known = base.throughputs(samples), base.by_flow(samples)
    if samples is None or not rates:
        raise InterchangeError("flent: the trial has no samples, and a Flent file is made of them; run with --samples 100ms --out DIR")
    grid, test = _grid(trial, base.interval(samples) / 1e9), flent_series.test_of(trial.flows)
    flows = [flent_series.flow(name, rates.get(i, []), known.get(i), grid) for i, name in enumerate(test.flows)]
    pings, raw_pings = flent_series.pings(trial, grid)
    results = {s.name if key == "val" else f"{s.name}::{key}": v for s in flows for key, v in s.values.items()}
    results |= flent_series.computed(test, flows) | pings
    raw: dict[str, Any] = {s.name: _raw_values(s, grid) for s in flows} | raw_pings
    document = {
        "metadata": _metadata(trial, test, mtu, grid, results),
        "version": VERSION,
        "x_values": grid.times,
        "results": results,
        "raw_values": raw,
    }
    return gzip.compress(json.dumps(document, indent=1, sort_keys=True, allow_nan=False).encode(), mtime=0)


def _grid(trial: Trial, step: float) -> Grid:
    steps = round((trial.duration + 2 * DELAY) / step)
    if steps > MOST_STEPS:
        raise InterchangeError(f"flent: {steps} steps of {step:g} s are more than {MOST_STEPS}; sample less often")
    return Grid(steps + 1, step)


def _raw_values(series: FlowSeries, grid: Grid) -> list[dict[str, float]]:
    """The measurements at each step that has any."""
    steps = []
    for i, t in enumerate(grid.times):
        known = {key: v for key, values in series.values.items() if (v := values[i]) is not None}
        if known:
            steps.append({"t": t, "dur": grid.step, **known})
    return steps


def _metadata(trial: Trial, test: Test, mtu: int, grid: Grid, results: Mapping[str, Sequence[float | None]]) -> Mapping[str, Any]:
    from tcpscape import __version__

    name, title = test.name, f"{trial.scenario} {trial.cca} seed {trial.seed}"
    series = {s: _flow_meta(f, mtu, i) for i, (s, f) in enumerate(zip(test.flows, trial.flows, strict=True))}
    computed = flent_series.units(s for s in results if s not in test.flows)
    return {
        "NAME": name,
        "TITLE": title,
        "HOST": "receiver",
        "HOSTS": ["receiver"],
        "LOCAL_HOST": "sender",
        "IP_VERSION": 4,
        "TIME": EPOCH,
        "T0": EPOCH,
        "LENGTH": trial.duration,
        "TOTAL_LENGTH": trial.duration + 2 * DELAY,
        "STEP_SIZE": grid.step,
        "DATA_FILENAME": f"{name}-{trial.address}.flent.gz",
        "TEST_PARAMETERS": dict(test.parameters),
        "FLENT_VERSION": f"tcpscape {__version__}",
        "FAILED_RUNNERS": 0,
        "BATCH_NAME": None,
        "BATCH_TIME": None,
        "BATCH_TITLE": None,
        "BATCH_UUID": None,
        "HTTP_GETTER_DNS": None,
        "HTTP_GETTER_URLLIST": None,
        "HTTP_GETTER_WORKERS": 4,
        "REMOTE_METADATA": {},
        "KERNEL_NAME": "Linux" if trial.kernel else trial.engine,
        "KERNEL_RELEASE": trial.kernel or trial.version,
        "NOTE": "; ".join(trial.caveats) or None,
        "SERIES_META": {**computed, **series},
        "TCPSCAPE": base.provenance(trial),
    }


def _flow_meta(f: FlowResult, mtu: int, place: int) -> Mapping[str, Any]:
    """What netperf says of a flow at its end."""
    return {
        "UNITS": "Mbits/s",
        "RUNNER": "tcpscape",
        "IDX": place,
        "CONG_CONTROL": spelling.name_of(f.cca),
        "MEAN_VALUE": f.goodput_mbps,
        "BYTES_RECVD": f.bytes_received,
        "BYTES_SENT": f.bytes_sent,
        "ELAPSED_TIME": f.seconds,
        "START_TIME": f.start_s,
        "TCP_MSS": mtu - base.HEADERS,
        "TCPI_PMTU": mtu,
        "TCPI_TOTAL_RETRANS": f.retransmits,
        "TCP_RETRANSMIT": str(f.retransmits),
    }
