"""The columns of every table that tcpscape writes: name, type, unit and what it is, as a Table Schema (specs.frictionlessdata.io/table-schema)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_type_hints

from tcpscape.schemas import generator
from tcpscape.store.rows import HEAD, NESTED
from tcpscape.trial import FlowResult, Rtt, Trial

Kind = Literal["string", "integer", "number", "boolean"]
"""Types of Table Schema."""
_KINDS: Mapping[object, Kind] = {int: "integer", float: "number", bool: "boolean", str: "string"}
_UNITS = (
    ("_mbps", "Mbit/s"), ("_ms", "ms"), ("_us", "µs"), ("_ns", "ns"), ("_s", "s"), ("rtt_ms_", "ms"), ("responses_time_ms_", "ms"),
    ("bytes_", "bytes"), ("max_rwnd", "bytes"), ("cwnd_", "packets"), ("duration", "s"), ("seconds", "s"),
)  # fmt: skip
"""End or beginning of a column's name → its unit."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    """`{axis}` stands for as many columns as there are names."""
    kind: Kind
    unit: str
    """Empty where it has none."""
    about: str

    def field(self) -> dict[str, str]:
        """As Table Schema has it."""
        return {"name": self.name, "type": self.kind, **({"unit": self.unit} if self.unit else {}), "description": self.about}


@dataclass(frozen=True, slots=True)
class TableFormat:
    """A table that tcpscape writes."""

    name: str
    about: str
    """What a row is, and where the table comes from; one line."""
    columns: tuple[Column, ...]

    def schema(self) -> dict[str, Any]:
        """Its Table Schema."""
        return {"name": self.name, "title": f"tcpscape {self.name}", "description": self.about, "fields": [c.field() for c in self.columns]}


def _read(text: str) -> tuple[Column, ...]:
    """Columns from lines `name type unit: what it is`; a unit of - is none."""
    columns = []
    for line in text.strip().splitlines():
        head, _, about = line.strip().partition(": ")
        name, kind, *unit = head.split(maxsplit=2)
        columns.append(Column(name, kind, "".join(unit).replace("-", "", 1) if unit == ["-"] else "".join(unit), f"{about}."))  # type: ignore[arg-type]
    return tuple(columns)


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
    return tuple(column for columns in each for column in columns)


def _kind(hint: object) -> Kind:
    """Type of a column with values of a type, which may be `float | None`."""
    return _KINDS[next(kind for kind in (hint, *get_args(hint)) if kind in _KINDS)]


_HEAD: Mapping[str, object] = {
    "scenario": str, "seed": int, "engine": str, "version": str, "duration": float, "address": str, "hash": str, "events": int,
}  # fmt: skip
"""Types of the columns of a trial."""


def _flows() -> tuple[Column, ...]:
    """The columns of :func:`tcpscape.store.rows.flow_rows`."""
    columns = [*_of_fields(Trial, HEAD), Column("caveats", "string", "", "What limits its validity; a line each, in CSV with | between them.")]
    columns.append(Column("flow", "integer", "", "Number of the flow in the trial, from 0."))
    for field in fields(FlowResult):
        if field.name == "limited_by":
            about = "Share of the sending time during which this limited the flow (app, rwnd, cwnd, pacing, sndbuf, tsq), a fraction."
            columns.append(Column("limited_by_{cause}", "number", "", about))
        elif field.name in NESTED:
            columns += _of_group(NESTED[field.name], f"{field.name}_")
        else:
            columns += _of_fields(FlowResult, [field.name])
    return (*columns, Column("{axis}", "string", "", "Where the trial stands on an axis, as it was written; only of results with axes."))


_INTERVAL = """
    {0} number {1}: {2}
    {0}_low number {1}: Lower end of its 95 % interval
    {0}_high number {1}: Upper end of its 95 % interval
"""

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
    + _INTERVAL.format("{metric}_median", "(of the metric)", "Median over the trials")
    + _INTERVAL.format("{metric}_mean", "(of the metric)", "Mean over the trials")
    + _INTERVAL.format("{metric}_cv", "-", "Coefficient of variation over the trials, standard deviation / mean")
)
_CELLS = (
    """
    campaign string -: Campaign, where a directory holds several
    engine string -: Engine that ran it
    version string -: Version of the model or of the engine
    {axis} string -: Where the cell stands on an axis, as it was written
    cca string -: Congestion controls of the flows
    metric string -: What was measured
    unit string -: Unit of the metric
    n integer -: Number of trials
"""
    + _INTERVAL.format("median", "(column unit)", "Median over the trials")
    + _INTERVAL.format("cv", "-", "Coefficient of variation over the trials, standard deviation / mean")
    + "    reached boolean -: Whether the interval is as narrow as --precision asks; true without it\n"
)
_EDGES = (
    """
    cca string -: Congestion control
    rtt_ns integer ns: Round-trip time without jitter
    along string -: What gets worse: jitter, loss
    unit string -: Unit of the edge and of the chaos zone: ns or fraction
    threshold number -: Share of the unimpaired goodput that counts as fallen, a fraction
    statistic string -: Statistic of the goodput: mean
"""
    + _INTERVAL.format("edge", "(column unit)", "Where goodput falls through the threshold; empty where it does not")
    + """
    chaos_low number (column unit): Lower end of the chaos zone; empty where there is none
    chaos_high number (column unit): Upper end of the chaos zone
    unimpaired_mbps number Mbit/s: Mean goodput without the impairment
    runs integer -: Number of trials of the search
    first_seed integer -: First seed of each level
    tcpscape string -: Version of tcpscape
    engine string -: Engine that ran the trials
    engine_version string -: Version of the model or of the engine
    scenario string -: The path without the impairment, as JSON
"""
)
_LEVELS = """
    cca string -: Congestion control
    rtt_ns integer ns: Round-trip time without jitter
    along string -: What gets worse: jitter, loss
    at number (ns or a fraction): The level
    retention number -: Mean goodput / unimpaired mean goodput
    low number -: Lower end of its 95 % interval
    high number -: Upper end of its 95 % interval
    n integer -: Number of trials at this level
    cv number -: Coefficient of variation of the goodput
    below number -: Share of the trials below the threshold, a fraction
    chaotic boolean -: Whether the level is in the chaos zone
"""
_STUDY = (
    """
    part string -: Part of the study
    cca string -: Congestion controls of the flows
    {axis} string -: Where the cell stands on an axis, as it was written
    metric string -: What was measured
    stat string -: Statistic over the trials
    n integer -: Number of our trials
"""
    + _INTERVAL.format("ours", "(of the metric)", "Our number")
    + """
    published number (of the metric): The published number; empty where there is none
    published_n integer -: Runs behind it
    raw number (of the metric): The same number from the work's raw data
    raw_n integer -: Runs behind it
    ratio number -: Our number / the published one
    valid boolean -: Whether the published numbers are free of known errors
    note string -: What is known about the published number
"""
)
_CONDITIONS = (
    """
    id string -: The condition
    cca string -: Congestion control
    family string -: Family of conditions
    combination string -: Combination of impairments
    condition string -: The condition in words
"""
    + "".join(
        f"""
    {side}_mbps number Mbit/s: Median goodput of {side.upper()}
    {side}_low number Mbit/s: Lower end of its 95 % interval
    {side}_high number Mbit/s: Upper end of its 95 % interval
"""
        for side in ("a", "b")
    )
    + """
    ln_ratio number -: ln(A / B) of the medians
    ln_low number -: Lower end of its 95 % interval
    ln_high number -: Upper end of its 95 % interval
    error number -: |ln(A / B)|
    unexplained number -: The end of the interval nearest to 0, as an error
    at_most number -: The far end of the interval, as an error
    chance number -: Error that a perfect model would show in the median
    overlap boolean -: Whether the intervals of the medians overlap or are less than 1 % apart
    a_cv number -: Coefficient of variation of A's goodput
    b_cv number -: Coefficient of variation of B's goodput
    a_runs integer -: Trials of A
    b_runs integer -: Trials of B
    a_retransmits number segments: Median of A's retransmissions
    b_retransmits number segments: Median of B's retransmissions
    retransmit_factor number -: A's retransmissions / B's; empty where B has few
    a_rtt_ms number ms: Median of A's mean RTT
    b_rtt_ms number ms: Median of B's mean RTT
    rtt_ratio number -: A's RTT / B's
    min_rtt_ratio number -: A's least RTT / B's
    queue string -: Queue of the bottleneck; of a chain of links, those of all links with + between them
    group_ln_ratios string -: ln(A / B) of each group of flows, with ; between them
    larger_alike boolean -: Whether the same of two groups has the larger share
    winner_alike boolean -: Whether the same group gets most per flow; empty where B's runs do not agree which one
    delay_ratios string -: A / B of the median and of the 95th percentile of each probe's delays, with ; between them
"""
)


def _without_blank(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.strip())


TABLES: Mapping[str, TableFormat] = {
    table.name: table
    for table in (
        TableFormat("flows", "A row for each flow of each trial: outcome.flows(), tcpscape export --to csv or parquet.", _flows()),
        *(
            TableFormat(name, about, _read(_without_blank(text)))
            for name, about, text in (
                ("samples", "A row for each sample of each flow: samples/*.parquet; export --samples adds columns of the trial.", _SAMPLES),
                ("queue_samples", "A row for each sample of each queue: queue_samples/*.parquet.", _QUEUE_SAMPLES),
                ("probe_samples", "A row for each packet of each probe, where samples are kept: probe_samples/*.parquet.", _PROBE_SAMPLES),
                ("packets", "A row for each packet at the sender: packets/*.parquet.", _PACKETS),
                ("frame", "A row for each cell: outcome.frame() in Python.", _FRAME),
                ("cells", "A row for each cell of a sweep: cells.csv.", _CELLS),
                ("edges", "A row for each edge that cliff found: edges.csv.", _EDGES),
                ("levels", "A row for each level that cliff measured: levels.csv.", _LEVELS),
                ("published", "A row for each number of a study beside the published one: NAME.csv of study run NAME.", _STUDY),
                ("conditions", "A row for each condition of a validation: conditions.csv.", _CONDITIONS),
            )
        ),
    )
}
"""Name → the table, in the order of the list that `tcpscape schema` prints."""
