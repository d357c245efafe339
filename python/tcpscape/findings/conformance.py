"""Whether a congestion control does what a document asks of it: cases, each a path, an application, changes at events, and a script of conditions.

A case is declared in YAML (folder `conformance/`): what it is about, its path in multiples of the bandwidth-delay product, what changes when, and
statements of the language in :mod:`tcpscape.findings.conditions`. It runs once for each cell, a rate and a round-trip time. An event that follows
from what the control does (`when: entered(DRAIN)`) is found by a run without it: what comes before a change does not depend on it, so the next run is
the same until then. Source of the cases of BBR: draft-ietf-ccwg-bbr, appendix "BBR Example Test Cases".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from tcpscape.engines.model import Model
from tcpscape.errors import instead, refuse, shown
from tcpscape.findings.conditions import Difference, Expression, Record, Statement, Steps, Unknown
from tcpscape.reading import packaged
from tcpscape.reading.files import Kind
from tcpscape.scenario import files
from tcpscape.scenario.fields import Percent, Rate, Spec, Time, validate
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture
from tcpscape.units import NS_PER_S, format_rate, format_time

FOLDER = "conformance"
"""Folder of the package with a file for each document."""
FRAME = 1514
"""Bytes of a full packet on the link."""
KERNEL = {"profile": "6.1", "host_time": "0s", "rmem_max": "1GiB", "wmem_max": "1GiB", "tcp_wmem_max": "1GiB"}
"""Hosts that limit nothing: the cases are about the control."""
RCVBUF = "400MiB"
"""Receive buffer: more than any window of a case."""
LIMIT = 2_000_000
"""Packets that the delay on the way holds."""
LEAST_BUFFER = 20
"""Packets, where the buffer as a multiple of the bandwidth-delay product is less."""
MOST_PACKETS = 700_000
"""Packets of a cell of the sample, so that all cases together take minutes."""
ROWS_PER_RTT, MOST_SAMPLES = 50, 60_000
"""Rows of the record in a round trip, and in a trial, besides those of changes."""
WRITES_PER_RTT = 40
"""Writes of an application with a rate in a round trip, at most: each has to sleep."""

CASES = Kind("test cases of a congestion control", "write them as docs/how-to/conform.md does")
"""A file with a user's own cases."""
Verdict = Literal["passed", "failed", "not applicable"]


def _expression(value: Any) -> Any:
    return value if isinstance(value, Expression) else Expression(str(value))


def _statements(value: Any) -> Any:
    return tuple(map(Statement.read, value)) if isinstance(value, list) else value


ExpressionField = Annotated[Any, BeforeValidator(_expression)]
"""An expression of constants (`60*rtt + 1s`), or of the record."""


class Event(Spec):
    """Something that changes at the first moment of a condition after the event before it."""

    when: ExpressionField
    """The condition."""
    rate: float | None = None
    """The link's rate from then on, as a multiple of the one at the begin."""
    loss: Percent | None = None
    """Share of the data packets lost from then on."""
    delay: ExpressionField | None = None
    """Delay that is added on the way of the data, s: with a `length` of its own, packets that come later overtake."""
    pause: ExpressionField | None = None
    """How long the application writes nothing, s; what it has written is still sent. At most one in a case."""
    length: ExpressionField | None = None
    """How long the change lasts, s; without it, to the end."""


class Case(Spec):
    """What a control has to do on one kind of path."""

    ref: str
    """Section of the document."""
    title: str
    """The case in a few words, as the document has it."""
    about: str
    """What is checked, and how the words of the document became conditions."""
    bdp: tuple[float, float] = (8, math.inf)
    """Least and largest bandwidth-delay product of its cells, packets."""
    rtt: tuple[Time, Time] | None = None
    """Shortest and longest round-trip time of its cells, ns; None is any."""
    buffer: float = 8
    """Bottleneck's queue, bandwidth-delay products."""
    bucket: ExpressionField | None = None
    """Bytes of a policer's token bucket; without it, the link sends at its rate."""
    app: float = 0
    """Rate at which the application writes, as a share of the link's; 0 is as fast as it can."""
    slot: ExpressionField | None = None
    """Time between the moments at which ACKs pass, s: they arrive aggregated."""
    duration: ExpressionField
    """Length of a trial, s."""
    events: tuple[Event, ...] = ()
    """What changes, in the order of time."""
    expect: Annotated[tuple[Any, ...], BeforeValidator(_statements)] = Field(min_length=1)
    """The script."""


class Suite(Spec):
    """The cases of a document."""

    document: str
    """The document."""
    control: str
    """The congestion control that is tested where none is named."""
    rates: tuple[Rate, ...]
    """Rates of the document's range, bit/s."""
    rtts: tuple[Time, ...]
    """Round-trip times of its range, ns."""
    cells: int = Field(default=4, ge=2)
    """Most cells of a case, spread over the bandwidth-delay products."""
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """States under one name."""
    cases: dict[str, Case]
    """The cases by name."""


class Cell(NamedTuple):
    """A path without what the case adds."""

    rate: int
    """bit/s."""
    rtt: int
    """Propagation, ns."""

    @property
    def link(self) -> float:
        """Full packets a second."""
        return self.rate / 8 / FRAME

    @property
    def bdp(self) -> float:
        """Bandwidth-delay product, packets."""
        return self.link * self.rtt / 1e9

    @property
    def text(self) -> str:
        """`20mbit, 40ms`."""
        return f"{format_rate(self.rate)}, {format_time(self.rtt)}"


@dataclass(frozen=True)
class CellResult:
    """What a control did in one cell."""

    cell: Cell
    differences: tuple[Difference, ...] = ()
    """The first difference from each statement that does not hold, in the order of the script."""
    unknown: str = ""
    """What the control does not show, so that a statement cannot be judged."""
    seed: int = 1

    @property
    def first(self) -> Difference | None:
        """The first moment that is different; something that never happened comes last."""
        return min(self.differences, key=lambda d: math.inf if d.time is None else d.time, default=None)


@dataclass(frozen=True)
class CaseResult:
    """What a control did in a case."""

    name: str
    case: Case
    cells: tuple[CellResult, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        """Passed: every statement in every cell. What differs is a failure, whatever else the control does not show."""
        if self.failures:
            return "failed"
        return "not applicable" if self.reason else "passed"

    @property
    def reason(self) -> str:
        """Why not everything was judged; empty where it was."""
        return next((c.unknown for c in self.cells if c.unknown), "" if self.cells else f"no cell in its range of at most {MOST_PACKETS:,} packets")

    @property
    def failures(self) -> tuple[CellResult, ...]:
        """The cells in which something is different."""
        return tuple(c for c in self.cells if c.differences)


def suites() -> list[str]:
    """The documents there are cases of."""
    return packaged.names(FOLDER, ".yaml")


def suite(name: str) -> Suite:
    """The cases of a document, or of a `.yaml` file. :raises ScenarioError: one line, where there are none."""
    if (path := Path(name)).suffix in (".yaml", ".yml"):
        data = files.read(path, "document", CASES)
    elif name in (known := suites()):
        data = files.read_yaml(packaged.text(f"{FOLDER}/{name}.yaml"), name)
    else:
        refuse("document", f"no cases of {shown(name)}", f"{instead(name, known)}, or name a .yaml file")
    result: Suite = validate(Suite, data, name)
    return result


def cells(cases: Suite, case: Case, rates: Sequence[int] = (), rtts: Sequence[int] = ()) -> list[Cell]:
    """The cells of a case: those asked for that are in its range, or a sample of the document's range."""
    every = [Cell(rate, rtt) for rate in rates or cases.rates for rtt in rtts or cases.rtts]
    fitting = [c for c in every if case.bdp[0] <= c.bdp <= case.bdp[1] and (case.rtt is None or case.rtt[0] <= c.rtt <= case.rtt[1])]
    if rates and rtts:
        return fitting
    # Most of a trial comes after the changes of its rate.
    after = [event.rate for event in case.events if event.rate]
    most = max(0.2, *after) if after else 1.0
    cheap = sorted((c for c in fitting if _seconds(case, c) * c.link * most <= MOST_PACKETS), key=lambda c: (c.bdp, c.rate))
    if len(cheap) <= cases.cells:
        return cheap
    return [cheap[round(i * (len(cheap) - 1) / (cases.cells - 1))] for i in range(cases.cells)]


def run(
    control: str,
    cases: Suite,
    work: Mapping[str, Sequence[Cell]],
    *,
    jobs: int = 1,
    seed: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Generator[CaseResult, None, None]:
    """Each case in its cells, in the order of `work`. :raises TcpscapeError: one line, for a control that cannot run."""
    engine, total, done = Model(), sum(map(len, work.values())), itertools.count(1)
    pool = ThreadPoolExecutor(max(1, jobs))
    try:
        by_case = {name: [pool.submit(judge, engine, control, cases, name, cell, seed) for cell in each] for name, each in work.items()}
        if progress:
            for future in (f for each in by_case.values() for f in each):
                future.add_done_callback(lambda _: progress(next(done), total))
        for name, futures in by_case.items():
            yield CaseResult(name, cases.cases[name], tuple(f.result() for f in futures))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        engine.stop()


def judge(engine: Model, control: str, cases: Suite, name: str, cell: Cell, seed: int = 1) -> CellResult:
    """Runs a case in one cell and judges the record."""
    case = cases.cases[name]
    try:
        record = _Rig(engine, control, cases, case, cell, seed).record()
    except _NeverHappened as e:
        return CellResult(cell, (Difference(f"event when {e}", None, f"never: {e}", {}),), seed=seed)
    except Unknown as e:
        return CellResult(cell, unknown=str(e), seed=seed)
    differences, unknown = [], ""
    for statement in case.expect:
        try:
            if difference := statement.judge(record):
                differences.append(difference)
        except Unknown as e:
            unknown = unknown or str(e)
    return CellResult(cell, tuple(differences), unknown, seed)


class _NeverHappened(Exception):
    """The condition of an event never held."""


def _constants(cell: Cell) -> dict[str, float]:
    """Constants of a cell: `rtt` with the time of a packet on the link, s; `link`, packets/s."""
    return {"rtt": cell.rtt / 1e9 + 1 / cell.link, "link": cell.link}


def _seconds(case: Case, cell: Cell) -> float:
    return float(case.duration.constant(_constants(cell)))


class _Rig:
    """A case in a cell, and the runs that find its events."""

    def __init__(self, engine: Model, control: str, cases: Suite, case: Case, cell: Cell, seed: int) -> None:
        self.engine, self.control, self.case, self.cell, self.seed, self.groups = engine, control, case, cell, seed, cases.groups
        self.constants = _constants(cell)
        self.seconds = _seconds(case, cell)
        if case.slot is not None:
            self.constants["slot"] = case.slot.constant(self.constants)
        self.constants["end"] = self.seconds
        self.changes: list[dict[str, Any]] = []
        self.rates = [(0.0, cell.link)]
        self.events: list[float] = []
        self.pause: tuple[float, float] | None = None

    def record(self) -> Record:
        """The record of the run with every event."""
        record = self._run()
        for event in self.case.events:
            at = self._first(event, record)
            if event.pause is not None:
                self.pause = (at, at + event.pause.constant(self.constants))
            self.events.append(at)
            self._change(event, at)
            record = self._run()
        return record

    def _first(self, event: Event, record: Record) -> float:
        """When the event comes. :raises _NeverHappened: it does not."""
        moments = event.when.holds(record) & (record.time > (self.events[-1] if self.events else 0.0))
        if not moments.any():
            raise _NeverHappened(event.when.text)
        return float(record.time[moments.argmax()])

    def _change(self, event: Event, at: float) -> None:
        cell, ns = self.cell, round(at * NS_PER_S)
        half = cell.rtt // 2
        steps: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        if event.rate is not None:
            steps.append(("bottleneck", {"rate": f"{round(cell.rate * event.rate)}bit"}, {"rate": f"{cell.rate}bit"}))
            self.rates.append((at, cell.link * event.rate))
        if event.loss is not None:
            steps.append(("forward", {"loss": f"{event.loss * 100}%"}, {"loss": "0%"}))
        if event.delay is not None:
            more = round(event.delay.constant(self.constants) * NS_PER_S)
            steps.append(("forward", {"delay": f"{half + more}ns"}, {"delay": f"{half}ns"}))
        for where, values, back in steps:
            self.changes.append({"where": where, "at": f"{ns}ns", "set": values})
            if event.length is not None:
                end = at + event.length.constant(self.constants)
                self.changes.append({"where": where, "at": f"{round(end * NS_PER_S)}ns", "set": back})
                if event.rate is not None:
                    self.rates.append((end, cell.link))

    def scenario(self) -> Scenario:
        """The scenario with the events that are known."""
        case, cell = self.case, self.cell
        packets = max(math.ceil(case.buffer * cell.bdp), 1 if case.bucket is not None else LEAST_BUFFER)
        link: Any = f"netem rate {cell.rate}bit limit {packets}"
        if case.bucket is not None:
            burst = max(FRAME, round(case.bucket.constant(self.constants)))
            link = {"rate": f"{cell.rate}bit", "buffer": packets * FRAME, "burst": burst}
        way = f"netem delay {cell.rtt // 2}ns limit {LIMIT}"
        slot = f" slot {round(self.constants['slot'] * NS_PER_S)}ns" if case.slot is not None else ""
        chunk = max(1448, round(cell.rate * case.app / 8 * self.constants["rtt"] / WRITES_PER_RTT))
        app: dict[str, Any] = {"rate": f"{round(cell.rate * case.app / 8)}B/s", "chunk": chunk} if case.app else {}
        if self.pause:
            on, until = (round(t * NS_PER_S) for t in self.pause)
            app |= {"on": f"{on}ns", "off": f"{until - on}ns"}
        fields = {
            "forward": way,
            "bottleneck": link,
            "reverse": way + slot,
            "flows": [{"cca": self.control, "rcvbuf": RCVBUF, "app": app}],
            "duration": f"{round(self.seconds * NS_PER_S)}ns",
            "kernel": KERNEL,
            "timer_slack": "0s",
            "changes": sorted(self.changes, key=lambda c: int(c["at"].removesuffix("ns"))),
        }
        scenario: Scenario = validate(Scenario, fields, case.ref)
        return scenario

    def _run(self) -> Record:
        interval = max(self.constants["rtt"] / ROWS_PER_RTT, self.seconds / MOST_SAMPLES, 1e-9)
        trial = self.engine.run(self.scenario(), [self.seed], capture=Capture(control_ns=max(1, round(interval * NS_PER_S))))[0]
        link = Steps([t for t, _ in self.rates], [v for _, v in self.rates])
        events = {"event" if i == 0 else f"event{i + 1}": t for i, t in enumerate(self.events)}
        return Record(trial, {**self.constants, **events, "link": link}, self.groups)
