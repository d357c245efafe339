"""The columns of every table that tcpscape writes: name, type, unit and what it is, as a Table Schema (specs.frictionlessdata.io/table-schema)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from tcpscape.formats import INTERVAL, Column, ColumnKind, TableFormat, columns
from tcpscape.schemas import generator
from tcpscape.store.rows import HEAD, NESTED
from tcpscape.studies.result import PUBLISHED
from tcpscape.trial import FlowResult, Rtt, Trial
from tcpscape.words import campaign, cliff, divergence

_KINDS: Mapping[object, ColumnKind] = {int: "integer", float: "number", bool: "boolean", str: "string"}
_UNITS = (
    ("_mbps", "Mbit/s"),
    ("_ms", "ms"),
    ("_us", "µs"),
    ("_ns", "ns"),
    ("_s", "s"),
    ("rtt_ms_", "ms"),
    ("responses_time_ms_", "ms"),
    ("bytes_", "bytes"),
    ("max_rwnd", "bytes"),
    ("cwnd_", "packets"),
    ("duration", "s"),
    ("seconds", "s"),
)
"""End or beginning of a column's name → its unit."""


def _unit(name: str) -> str:
    return next((unit for part, unit in _UNITS if name.endswith(part) or (part.endswith("_") and name.startswith(part))), "")


def _of_fields(kind: type, names: Sequence[str], prefix: str = "") -> tuple[Column, ...]:
    """Columns that are fields of a class, from its types and docstrings."""
    about = generator.of_fields(kind)
    hints = get_type_hints(kind) if kind is not Trial else _HEAD
    return tuple(Column(f"{prefix}{n}", _kind(hints[n]), _unit(f"{prefix}{n}"), about[n].replace("None", "null")) for n in names)


def _of_group(kind: type[Any], prefix: str) -> tuple[Column, ...]:
    """Columns of a group of numbers; percentiles within it are columns of their own."""
    hints, names = get_type_hints(kind), [f.name for f in fields(kind)]
    each = ((_of_group(Rtt, f"{prefix}{name}_") if hints[name] is Rtt else _of_fields(kind, [name], prefix)) for name in names)
    return tuple(column for group in each for column in group)


def _kind(hint: object) -> ColumnKind:
    """Type of a column with values of a type, which may be `float | None`."""
    return _KINDS[next(kind for kind in (hint, *get_args(hint)) if kind in _KINDS)]


_HEAD: Mapping[str, object] = {
    "scenario": str,
    "seed": int,
    "engine": str,
    "version": str,
    "duration": float,
    "address": str,
    "hash": str,
    "events": int,
}
"""Types of the columns of a trial."""


def _flows() -> tuple[Column, ...]:
    """The columns of :func:`tcpscape.store.rows.flow_rows`."""
    rows = [*_of_fields(Trial, HEAD), Column("caveats", "string", "", "What limits its validity; a line each, in CSV with | between them.")]
    rows.append(Column("flow", "integer", "", "Number of the flow in the trial, from 0."))
    for field in fields(FlowResult):
        if field.name == "limited_by":
            about = "Share of the sending time during which this limited the flow (app, rwnd, cwnd, pacing, sndbuf, tsq), a fraction."
            rows.append(Column("limited_by_{cause}", "number", "", about))
        elif field.name in NESTED:
            rows += _of_group(NESTED[field.name], f"{field.name}_")
        else:
            rows += _of_fields(FlowResult, [field.name])
    return (*rows, Column("{axis}", "string", "", "Where the trial stands on an axis, as it was written; only of results with axes."))


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
_PLACE = """
    engine string -: Engine that ran it
    cca string -: Congestion controls of the flows
    {axis} string -: Where the cell stands on an axis, as it was written
    n integer -: Number of trials
"""
_FRAME = (
    _PLACE
    + INTERVAL.format("{metric}_median", "(of the metric)", "Median over the trials")
    + INTERVAL.format("{metric}_mean", "(of the metric)", "Mean over the trials")
    + INTERVAL.format("{metric}_cv", "-", "Coefficient of variation over the trials, standard deviation / mean")
)
TABLES: Mapping[str, TableFormat] = {
    table.name: table
    for table in (
        TableFormat("flows", "A row for each flow of each trial: outcome.flows(), tcpscape export --to csv or parquet.", _flows()),
        *(
            TableFormat(name, about, columns(text))
            for name, about, text in (
                ("samples", "A row for each sample of each flow: samples/*.parquet; export --samples adds columns of the trial.", _SAMPLES),
                ("queue_samples", "A row for each sample of each queue: queue_samples/*.parquet.", _QUEUE_SAMPLES),
                ("probe_samples", "A row for each packet of each probe, where samples are kept: probe_samples/*.parquet.", _PROBE_SAMPLES),
                ("packets", "A row for each packet at the sender: packets/*.parquet.", _PACKETS),
                ("frame", "A row for each cell: outcome.frame() in Python.", _FRAME),
            )
        ),
        campaign.CELLS,
        cliff.EDGES,
        cliff.LEVELS,
        PUBLISHED,
        divergence.CONDITIONS,
    )
}
"""Name → the table, in the order of the list that `tcpscape schema` prints."""
