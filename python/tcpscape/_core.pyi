"""The extension module, built from crates/py. No logic here: conversions and the GIL released around heavy calls."""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any, final

from tcpscape.controls.hooks import CaState

__all__ = [
    "CaptureAnnotator",
    "CaptureReader",
    "HookError",
    "Plan",
    "QueueResidual",
    "Sample",
    "Stop",
    "Watch",
    "WatchedAcks",
    "Window",
    "capture_packets",
    "cca_registry",
    "check_plan",
    "describe",
    "hints",
    "kernel_profile",
    "kernel_profiles",
    "model_version",
    "packetdrill",
    "parse_tc",
    "qdisc_registry",
    "to_tc",
    "version",
]

@final
class CaptureAnnotator:
    """Writes a capture again, as pcapng with comments on its packets."""

    def __new__(
        cls, program: str, comments: Mapping[int, str], pseudonyms: Sequence[tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address]] | None,
        headers_only: bool,
    ) -> CaptureAnnotator:  # fmt: skip
        """Comments by frame, from 1; with pseudonyms every address gets one, those given or new ones, and payload is left out."""

    def feed(self, chunk: bytes) -> tuple[bytes, bool]:
        """Takes the next bytes; returns the next of the annotated file, and whether more are of use. ValueError, `problem; fix`."""

    def finish(self) -> bytes:
        """The last bytes. ValueError, `problem; fix`, where nothing could be read."""

@final
class CaptureReader:
    """Reads a capture whose bytes are fed to it in chunks of any size."""

    def __new__(cls) -> CaptureReader:
        """A reader at the begin of a file."""

    def feed(self, chunk: bytes) -> bool:
        """Takes the next bytes, without the GIL; returns whether more are of use. ValueError, `problem; fix`, where this is no capture."""

    def finish(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The report, and each direction of each connection that carries data, most bytes first; columns are `(dtype, bytes)`.

        ValueError, `problem; fix`, where nothing could be read.
        """

@final
class Plan:
    """What to simulate, without the seed: parsed and checked once, shared by threads."""

    def __new__(cls, json: str, controls: Mapping[str, Callable[[int], Any]] | None = None) -> Plan:
        """A plan from its JSON, with a function for each congestion control in Python that makes it from the flow's seed.

        With `controls` a trial holds the GIL. ValueError, of one line, for a plan that is not valid.
        """

    def run(self, seed: int, stop: Stop | None = None) -> dict[str, Any] | None:
        """Runs one trial; columns of samples are `(dtype, buffer)`, `queues` is JSON as bytes. None where `stop` was set before it was over.

        HookError for an exception of a hook; ValueError, of one line, for a trial that gets nowhere and was ended.
        """

    def run_all(self, seeds: Sequence[int], stop: Stop | None = None) -> list[dict[str, Any]] | None:
        """The same for each of the seeds, between which the GIL is taken now and then only. None where `stop` was set before they were over."""

    def most_packets(self) -> int:
        """Most packets of data that a trial carries; it takes about a microsecond of a CPU for each."""

    def watch(self, call_s: float, total_s: float, interrupt: Callable[[], None], last_words: str | None) -> Watch | None:
        """Watches the calls of hooks; seconds for each and for those of a trial together.

        `interrupt` is called when one is over; where that does not end the call, `last_words` are written to stderr, with the hook's name for HOOK,
        and the process ends with status 2, unless they are None. Without hooks, None.
        """

    def write_pcapng(self, path: str, seed: int) -> None:
        """Runs one trial and writes its packets as pcapng; the plan must record them."""

@final
class QueueResidual:
    """Measured delays whose bottleneck's queue is looked for: what one of a rate and a burst leaves of them."""

    def __new__(
        cls, arrivals: tuple[bytes, bytes], index: bytes, packets: tuple[bytes, bytes, bytes, bytes], windows: Sequence[int]
    ) -> QueueResidual:
        """Columns (`<f8`, finite) of :class:`tcpscape.findings.diagnosis.path.bottleneck.QueueDelays`; ValueError where they do not belong together.

        `arrivals`: when each packet came, the bytes before. `packets`, of those with a delay: when each came, when it was sent, the bytes up to its
        end, the delay; `index` (`<i8`) is the place of each among the arrivals. `windows` are the places at which each window ends.
        """

    def up_to(self, rate: float) -> QueueResidual:
        """The same for rates up to this one alone, Mbit/s, which takes less time."""

    def deviation(self, rate: float, burst: float, cap: float = ...) -> float:
        """Mean absolute deviation, ms, from the median of each window of what such a queue (Mbit/s, bytes) leaves; of each at most `cap`."""

@final
class Stop:
    """A flag by which a thread ends the trials of others."""

    def __new__(cls) -> Stop:
        """One that is not set."""

    def set(self) -> None:
        """Ends every trial that looks at it, for good."""

    def is_set(self) -> bool:
        """Whether it is set."""

@final
class Watch:
    """Watches the time of calls of user code until it is closed."""

    def __new__(cls, call_s: float, interrupt: Callable[[], None], last_words: str | None) -> Watch:
        """A watch for :meth:`call`; :meth:`Plan.watch` explains the arguments."""

    def call(self, function: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Calls a function, watched."""

    def close(self) -> None:
        """Ends watching."""

@final
class WatchedAcks:
    """ACKs that were captured at their receiver, which congestion controls watch."""

    def __new__(cls, rows: bytes) -> WatchedAcks:
        """Rows of 16 numbers (`<i8`); ValueError where they are not whole.

        Time (ns), left edge, next new sequence number, packets newly acknowledged, packets newly delivered, RTT (µs, 0 unknown), packets in flight
        before, packets delivered since the last one acknowledged was sent, state (0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss), whether it
        carries ECE, whether it takes the slow path, TSval, TSecr, the watched window (packets, 0 leaves the control's own), its growth (0 unknown,
        1 slow start, 2 avoidance), whether segments came far out of order before.
        """

    def watch(self, name: str, mss: int, hz: int, ecn: bool) -> tuple[bytes, list[tuple[int, int, int]]]:
        """What the congestion control `name` makes of them.

        `mss` in bytes, `hz` are the ticks a second of the sender's kernel. Returns the window after each ACK (`<u4`, packets), and for each
        reduction its ACK, the window before and after.
        """

class HookError(RuntimeError):
    """A hook raised an exception, its `__cause__`; the arguments are the name of the control and of the hook."""

@final
class Sample:
    """What a hook reads; :class:`tcpscape.controls.hooks.Sample` documents each field."""

    @property
    def acked(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def ce(self) -> int: ...
    @property
    def rtt_us(self) -> int | None: ...
    @property
    def may_raise(self) -> bool: ...
    @property
    def ack(self) -> int: ...
    @property
    def prior_in_flight(self) -> int: ...
    @property
    def flight_bytes(self) -> int: ...
    @property
    def tx_in_flight(self) -> int: ...
    @property
    def lost_since(self) -> int: ...
    @property
    def lost_range(self) -> tuple[int, int]: ...
    @property
    def is_retrans(self) -> bool: ...
    @property
    def is_ack_delayed(self) -> bool: ...
    @property
    def slow_path(self) -> bool: ...
    @property
    def win_update(self) -> bool: ...
    @property
    def ece(self) -> bool: ...
    @property
    def delivery_rate(self) -> float | None: ...
    @property
    def rate_delivered(self) -> int | None: ...
    @property
    def rate_interval_us(self) -> int | None: ...
    @property
    def prior_delivered(self) -> int: ...
    @property
    def prior_us(self) -> int: ...
    @property
    def app_limited(self) -> bool: ...
    @property
    def now_ns(self) -> int: ...
    @property
    def now_us(self) -> int: ...
    @property
    def jiffies(self) -> int: ...
    @property
    def hz(self) -> int: ...
    @property
    def mss(self) -> int: ...
    @property
    def snd_una(self) -> int: ...
    @property
    def snd_nxt(self) -> int: ...
    @property
    def srtt_us(self) -> float | None: ...
    @property
    def min_rtt_us(self) -> int | None: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def packets_out(self) -> int: ...
    @property
    def sacked_out(self) -> int: ...
    @property
    def delivered(self) -> int: ...
    @property
    def delivered_ce(self) -> int: ...
    @property
    def delivered_us(self) -> int: ...
    @property
    def lost_total(self) -> int: ...
    @property
    def app_limited_until(self) -> int: ...
    @property
    def ca_state(self) -> CaState: ...
    @property
    def is_cwnd_limited(self) -> bool: ...
    @property
    def max_packets_out(self) -> int: ...
    @property
    def lsndtime(self) -> int: ...
    @property
    def has_unsent(self) -> bool: ...
    @property
    def wstamp_ns(self) -> int: ...
    @property
    def rcv_tsval(self) -> int: ...
    @property
    def rcv_tsecr(self) -> int: ...
    @property
    def ecn_ok(self) -> bool: ...

@final
class Window:
    """What a hook writes; :class:`tcpscape.controls.hooks.Window` documents each field."""

    cwnd: int
    ssthresh: int
    cwnd_cnt: int
    prior_cwnd: int
    pacing_rate: float
    paced: bool
    enter_cwr: bool
    @property
    def clamp(self) -> int: ...
    @property
    def in_slow_start(self) -> bool: ...
    def slow_start(self, acked: int) -> int: ...
    def additive_increase(self, w: int, acked: int) -> None: ...

def packetdrill(script: str, profile: str) -> dict[str, Any]:
    """What became of a packetdrill script's text on a host with the kernel profile; ValueError, `LINE: problem; fix`, where it is no script.

    `outcome` has `outcome` (`passed`, `failed`, `not_applicable`) with `line` and `problem`, `expected`, `actual` or `reason`; `snapshots` have
    `line`, `code` and `info`, the fields of tcp_info by their names without `tcpi_`; `ignored` are settings that were not applied.
    """

def version() -> str:
    """Version of the crates."""

def model_version() -> str:
    """A tag that changes whenever the model's results may change."""

def capture_packets(capture: bytes) -> dict[str, tuple[str, bytes]]:
    """The packets of a capture at the host where all connections begin, as the columns of a trial's `packets`; ValueError, `problem; fix`."""

def parse_tc(words: str) -> str:
    """A queue with its children, as JSON, from tc's words; ValueError names the wrong word in one line."""

def hints(words: str) -> list[str]:
    """What reads otherwise in a queue's words than many expect (a time without a unit), a line each; ValueError as :func:`parse_tc`."""

def check_plan(json: str) -> None:
    """Checks all of a plan but its congestion controls, for engines that have their own; ValueError names the field and the fix in one line."""

def describe(words: str) -> list[dict[str, Any]]:
    """What a queue and its children do to packets, from the outside in.

    The fields of :class:`tcpscape.scenario.words.QueueDescription`; ValueError as :func:`parse_tc`.
    """

def jitter_deviation(distribution: str) -> float:
    """Standard deviation of netem's delays in units of the jitter that it is told, by its tables, without the cut at a delay of 0.

    ValueError where there is no such distribution.
    """

def to_tc(json: str) -> str:
    """Canonical tc words from the JSON of a queue."""

def cca_registry() -> list[tuple[str, str, str, list[tuple[str, str, int, int, int]]]]:
    """Congestion controls: name, about, source, parameters (name, about, default, smallest, largest)."""

def qdisc_registry() -> list[tuple[str, str]]:
    """Queues: name, example in tc's words."""

def kernel_profile(name: str) -> str:
    """A kernel profile as JSON; ValueError for an unknown name."""

def kernel_profiles() -> list[str]:
    """Names of the kernel profiles."""
