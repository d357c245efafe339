"""What of a trial is too large for a row: one Parquet file for each trial and table, `samples/ADDRESS.parquet`, written whole or not at all.

Engines fill them column by column (`crates/plan/src/samples.rs`); their columns are declared here.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tcpscape import writing
from tcpscape.errors import StoreError, shown
from tcpscape.formats import TableFormat, columns
from tcpscape.names import component
from tcpscape.reading import files
from tcpscape.reading import tables as parquet
from tcpscape.reading.files import MIB, Kind, Origin
from tcpscape.trial import Trial
from tcpscape.units import counted

if TYPE_CHECKING:
    import polars as pl

_SAMPLES = """
    t_ns integer ns: Time from the start of the trial
    flow integer -: Number of the flow in the trial, from 0
    cwnd integer packets: Congestion window
    ssthresh integer packets: Slow-start threshold
    srtt_us integer µs: Smoothed RTT
    rttvar_us integer µs: Deviation of the RTT
    min_rtt_us integer µs: Least RTT
    rto_us integer µs: Retransmission timeout
    in_flight integer packets: Packets in flight
    unacked integer packets: Packets that are not acknowledged
    pacing_rate integer bytes/s: Pacing rate
    delivery_rate integer bytes/s: Delivery rate
    ca_state integer -: Congestion-avoidance state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss
    retransmits integer segments: Retransmissions so far
    spurious_retransmits integer segments: Retransmissions reported as needless so far
    reordering integer packets: Reordering metric
    reo_wnd_steps integer -: Steps of RACK's reordering window
    rwnd integer bytes: Receive window
    bytes_acked integer bytes: Bytes acknowledged so far
    delivered integer packets: Packets delivered so far
    lost integer packets: Packets marked lost so far
    delivered_ce integer packets: Packets delivered so far whose ACK echoed a congestion mark
    busy_us integer µs: Time with data to send so far (real kernels alone)
    rwnd_limited_us integer µs: Of it, time stopped by the receive window so far (real kernels alone)
    sndbuf_limited_us integer µs: Of it, time stopped by the send buffer so far (real kernels alone)
    notsent integer bytes: Bytes written by the application and not sent yet (real kernels alone)
    app_limited integer -: Whether the last delivery rate was measured while the application did not keep the window full (real kernels alone)
"""
_QUEUE_SAMPLES = """
    t_ns integer ns: Time from the start of the trial
    pipe integer -: Where the queue is: 0 the sender's host, 1 the network forward, 2 the way of the ACKs; in a network as `pipe` of its report
    stage integer -: Place there, from 0
    depth integer -: 0 is the stage's own queue, 1 its child, and so on
    packets integer packets: Packets held, those of its children included
    bytes integer bytes: Bytes held
    sojourn_ns integer ns: Delay of the packet that left last, in the queue and its children
    drops integer packets: Packets dropped so far
    marks integer packets: Packets marked so far
"""
_PROBE_SAMPLES = """
    t_ns integer ns: When the packet was sent, from the start of the trial
    probe integer -: Number of the probe in the scenario, from 0
    delay_ns integer ns: One-way delay, or round trip of an echo; 18446744073709551615 where it did not arrive
"""
_PACKETS = """
    t_ns integer ns: Time from the start of the trial
    flow integer -: Number of the flow in the trial, from 0
    received integer -: 0 sent, 1 received
    seq integer -: Sequence number, as an offset of 64 bits
    ack integer -: Acknowledgement number, as an offset of 64 bits
    len integer bytes: Payload
    wnd integer bytes: Window
    flags integer -: TCP flags
    tsval integer -: Value of the timestamp option
    tsecr integer -: Echo of the timestamp option
    nsack integer -: Number of SACK blocks
    sack0_start integer -: Begin of the first SACK block, 0 where there is none
    sack0_end integer -: End of the first SACK block
    sack1_start integer -: Begin of the second SACK block
    sack1_end integer -: End of the second SACK block
    sack2_start integer -: Begin of the third SACK block
    sack2_end integer -: End of the third SACK block
"""
SIDE_TABLES: Mapping[str, TableFormat] = {
    name: TableFormat(name, about, columns(text))
    for name, about, text in (
        ("samples", "A row for each sample of each flow: samples/*.parquet; export --samples adds columns of the trial.", _SAMPLES),
        ("queue_samples", "A row for each sample of each queue: queue_samples/*.parquet.", _QUEUE_SAMPLES),
        ("probe_samples", "A row for each packet of each probe, where samples are kept: probe_samples/*.parquet.", _PROBE_SAMPLES),
        ("packets", "A row for each packet at the sender: packets/*.parquet.", _PACKETS),
    )
}
"""Fields of a trial that are kept here, and the names of their directories."""
KIND = Kind("a table of samples", "delete it and run again", most=512 * MIB, error=StoreError)
COLUMNS = {
    "samples": ("t_ns", "flow"),
    "queue_samples": ("t_ns", "pipe", "stage", "depth", "packets"),
    "packets": ("t_ns", "flow", "received", "seq", "ack", "len"),
    "probe_samples": ("t_ns", "probe", "delay_ns"),
}
"""Columns of whole numbers that each side table has whatever the engine; all others are numbers too."""
BESIDE = {"samples": "probe_samples"}
"""Table → the one that comes with it where the trial has that: only trials with probes do."""


def keep(trial: Trial, root: Path) -> None:
    """Writes the side tables that the trial has."""
    for table in SIDE_TABLES:
        frame = getattr(trial, table)
        if frame is not None:
            write(frame, writing.folder(root, table) / path(root, trial.address, table).name)


def path(root: Path, address: str, table: str) -> Path:
    """The file of a trial's side table."""
    return root / table / f"{component(address)}.parquet"


def complete(root: Path, address: str, tables: Iterable[str]) -> bool:
    """Whether all of these side tables of a trial are kept."""
    return all(os.path.exists(f"{root}/{table}/{address}.parquet") for table in tables)


def read_all(root: Path, trial: Trial, tables: Iterable[str]) -> dict[str, pl.DataFrame]:
    """These side tables of a trial, and those that come with them."""
    asked = list(tables)
    asked += [other for table in asked if (other := BESIDE.get(table)) and trial.probes and complete(root, trial.address, [other])]
    return {table: read(root, trial.address, table, len(trial.flows), len(trial.probes)) for table in asked}


def read(root: Path, address: str, table: str, flows: int, probes: int = 0) -> pl.DataFrame:
    """A side table of a trial with so many flows and probes.

    :raises StoreError: one line, where it is damaged: a column that all have is missing, or there is something else than numbers.
    """
    file = path(root, address, table)
    origin = Origin(str(file), KIND, "out")
    frame = parquet.from_parquet(files.content(file, KIND, "out"), origin)
    if missing := [name for name in COLUMNS[table] if name not in frame.columns]:
        origin.refuse(f"is damaged: there is no column {missing[0]}")
    if wrong := [name for name in frame.columns if not frame[name].dtype.is_numeric() or frame[name].dtype.is_decimal()]:
        origin.refuse(f"is damaged: column {shown(wrong[0])} holds {frame[wrong[0]].dtype} instead of numbers")
    if keys := [name for name in COLUMNS[table] if not frame[name].dtype.is_integer() or frame[name].null_count()]:
        origin.refuse(f"is damaged: column {keys[0]} holds something else than whole numbers")
    for column, count in (("flow", flows), ("probe", probes)):
        if column in frame.columns and not {*frame[column].unique().to_list()} <= {*range(count)}:
            origin.refuse(f"is damaged: column {column} holds other numbers than those of the trial's {counted(count, column)}")
    return frame


def write(frame: pl.DataFrame, file: Path) -> None:
    """Writes a table; a reader sees all of it or nothing."""
    content = io.BytesIO()
    frame.write_parquet(content)
    writing.whole(file, content.getbuffer())
