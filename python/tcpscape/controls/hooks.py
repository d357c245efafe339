"""Your own congestion control, in Python.

A class with `on_ack(sample, window)` is enough; every other hook that it does not have behaves as in Reno:

>>> class Aimd:
...     def on_ack(self, sample, window):
...         if sample.may_raise:
...             window.cwnd += 1

`tcpscape run --cca mine.py:Aimd`, `tcpscape.run(scenario, cca=Aimd)` and `cca: mine.py:Aimd` in a scenario run it on the model engine. Each
flow of each trial gets an object of its own, so results follow from the seed as long as the class keeps its state in `self` and draws random
numbers from the `seed` that its constructor may take. The hooks are those of Linux's `struct tcp_congestion_ops`, in the kernel's order for
one ACK: `pkts_acked`, `in_ack`, `on_lost`, (`ssthresh`, `on_state`), `on_ack`.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Protocol


class CaState(IntEnum):
    """Congestion-avoidance state, in Linux's order (`enum tcp_ca_state`)."""

    OPEN = 0
    """Nothing unusual."""
    DISORDER = 1
    """SACKs or duplicate ACKs came; nothing is marked lost yet."""
    CWR = 2
    """The window was reduced after an echo of congestion (ECN) or because the sender's own queue was full."""
    RECOVERY = 3
    """Fast recovery."""
    LOSS = 4
    """After a retransmission timeout."""


class CaEvent(Enum):
    """Things that happen to a connection (`enum tcp_ca_event`)."""

    TX_START = "tx_start"
    """First transmission when nothing was in flight."""
    CWND_RESTART = "cwnd_restart"
    """The window was restarted after idling."""
    COMPLETE_CWR = "complete_cwr"
    """Recovery from CWR or fast recovery has ended."""
    LOSS = "loss"
    """A loss timeout."""


class Sample(Protocol):
    """What a hook reads: the state of the connection and, in `on_ack` and `pkts_acked`, what this ACK reports. Each call has a new object."""

    # ---- this ACK; 0, False or None in other hooks ----

    @property
    def acked(self) -> int:
        """Packets newly acknowledged: with SACKed ones in `on_ack`, cumulatively in `pkts_acked`."""

    @property
    def lost(self) -> int:
        """Packets newly marked lost."""

    @property
    def ce(self) -> int:
        """Packets newly delivered with a congestion mark (ECN), since the last `on_ack`."""

    @property
    def rtt_us(self) -> int | None:
        """RTT of the latest packet acknowledged, µs; None where it is unknown (all were retransmitted)."""

    @property
    def may_raise(self) -> bool:
        """Whether a window-based control may grow now: no recovery is on, and what was expected came (Linux would call `cong_avoid`)."""

    @property
    def ack(self) -> int:
        """The ACK number: bytes."""

    @property
    def prior_in_flight(self) -> int:
        """Packets in flight before this ACK."""

    @property
    def flight_bytes(self) -> int:
        """Only in `pkts_acked`: bytes delivered since the last acknowledged packet was sent, what was in flight then included."""

    @property
    def tx_in_flight(self) -> int:
        """Packets in flight just after the sampled packet, or in `on_lost` the lost one, was sent, itself included."""

    @property
    def lost_since(self) -> int:
        """Packets marked lost since then."""

    @property
    def lost_range(self) -> tuple[int, int]:
        """Only in `on_lost`: the lost packet's first sequence number, and the one after its last."""

    @property
    def is_retrans(self) -> bool:
        """The packet that the delivery rate is taken from had been retransmitted."""

    @property
    def is_ack_delayed(self) -> bool:
        """The ACK was perhaps delayed by the receiver: it acknowledges a single packet."""

    @property
    def slow_path(self) -> bool:
        """Only in `in_ack`: it carried more than a new ACK number (SACK blocks, another window, ECE), or was a duplicate."""

    @property
    def win_update(self) -> bool:
        """Only in `in_ack`: it updated the receive window."""

    @property
    def ece(self) -> bool:
        """Only in `in_ack`: it echoed congestion."""

    # ---- delivery rate of this ACK (draft-cheng-iccrg-delivery-rate-estimation) ----

    @property
    def delivery_rate(self) -> float | None:
        """Bytes/s delivered over the sample's interval; None where there is no valid sample."""

    @property
    def rate_delivered(self) -> int | None:
        """Packets delivered over that interval."""

    @property
    def rate_interval_us(self) -> int | None:
        """That interval, µs."""

    @property
    def prior_delivered(self) -> int:
        """`delivered` when the sampled packet was sent: a round trip is over when it reaches a `delivered` noted earlier."""

    @property
    def prior_us(self) -> int:
        """When `prior_delivered` was reached, µs."""

    @property
    def app_limited(self) -> bool:
        """The sampled packet was sent while the application had nothing more to send."""

    # ---- the connection ----

    @property
    def now_ns(self) -> int:
        """Time, ns."""

    @property
    def now_us(self) -> int:
        """Time, µs."""

    @property
    def jiffies(self) -> int:
        """The kernel's tick counter, 32 bits, wrapping."""

    @property
    def hz(self) -> int:
        """Ticks a second."""

    @property
    def mss(self) -> int:
        """Payload of a full packet, bytes."""

    @property
    def snd_una(self) -> int:
        """Oldest unacknowledged sequence number, bytes."""

    @property
    def snd_nxt(self) -> int:
        """Next sequence number to send, bytes."""

    @property
    def srtt_us(self) -> float | None:
        """Smoothed RTT, µs, exact to 1/8 (RFC 6298); None before the first sample."""

    @property
    def min_rtt_us(self) -> int | None:
        """Least RTT of the last 300 s, µs; None before the first sample."""

    @property
    def in_flight(self) -> int:
        """Packets in flight: sent, neither acknowledged nor SACKed nor marked lost."""

    @property
    def packets_out(self) -> int:
        """Packets sent and not cumulatively acknowledged."""

    @property
    def sacked_out(self) -> int:
        """Of those, packets that were SACKed."""

    @property
    def delivered(self) -> int:
        """Packets ever delivered, SACKed ones included."""

    @property
    def delivered_ce(self) -> int:
        """Of those, with a congestion mark."""

    @property
    def delivered_us(self) -> int:
        """When `delivered` last grew, µs."""

    @property
    def lost_total(self) -> int:
        """Packets ever marked lost."""

    @property
    def app_limited_until(self) -> int:
        """The `delivered` up to which samples are application-limited; 0 where nothing limits."""

    @property
    def ca_state(self) -> CaState:
        """Congestion-avoidance state; in `on_state` still the old one."""

    @property
    def is_cwnd_limited(self) -> bool:
        """Whether the window held sending back when it was last judged."""

    @property
    def max_packets_out(self) -> int:
        """Most `packets_out` in the last window judged."""

    @property
    def lsndtime(self) -> int:
        """When data was last sent, jiffies."""

    @property
    def has_unsent(self) -> bool:
        """Data is waiting to be sent."""

    @property
    def wstamp_ns(self) -> int:
        """Earliest time at which pacing allows the next transmission, ns."""

    @property
    def rcv_tsval(self) -> int:
        """The peer's timestamp in the last segment, ms."""

    @property
    def rcv_tsecr(self) -> int:
        """Our timestamp that it echoed, ms."""

    @property
    def ecn_ok(self) -> bool:
        """Both ends agreed to use ECN."""


class Window(Protocol):
    """What a hook writes. Packets are whole numbers; any other value is an error that names the line of the hook."""

    cwnd: int
    """Congestion window, packets, from 1; more than `clamp` becomes `clamp`."""
    ssthresh: int
    """Slow-start threshold, packets."""
    cwnd_cnt: int
    """Credit towards the next increase, packets acknowledged."""
    prior_cwnd: int
    """`cwnd` before the last reduction, for `undo`; 0 before the first."""
    pacing_rate: float
    """Bytes/s. The sender sets it from `cwnd` and the smoothed RTT after each ACK, unless the control `owns_window`."""
    paced: bool
    """Whether transmissions are paced at all."""
    enter_cwr: bool
    """Set in `on_ack`: reduce the window as after an echo of congestion (the sender asks `ssthresh` and enters CWR at once)."""

    @property
    def clamp(self) -> int:
        """Largest window, packets."""

    @property
    def in_slow_start(self) -> bool:
        """`cwnd < ssthresh`."""

    def slow_start(self, acked: int) -> int:
        """Adds `acked` packets to `cwnd`, up to `ssthresh`; returns those left for congestion avoidance."""

    def additive_increase(self, w: int, acked: int) -> None:
        """Adds one packet to `cwnd` for every `w` acknowledged."""


class Control:
    """A base class with the default of every hook. Deriving from it is optional.

    The constructor may take `seed` (an int, the flow's own) and the parameters of the label, which are numbers
    (`mine.py:MyControl:gain=2` is `MyControl(gain=2)`).
    """

    owns_window: bool = False
    """Whether it sets `cwnd` and `pacing_rate` itself on every ACK, also during recovery (Linux: `cong_control`): no proportional rate reduction."""
    paced: bool = False
    """Whether transmissions are paced."""
    needs_ecn: bool = False
    """Whether it needs ECN on every packet, and a receiver that echoes every mark (Linux: `TCP_CONG_NEEDS_ECN`)."""
    reacts_to_loss: bool = True
    """Whether it sends less after losses. This is information only."""
    min_tso_segs: int = 2
    """Smallest burst, packets."""
    sndbuf_expand: int = 2
    """Send buffer, in multiples of the window."""

    # observed: dict[str, str | int | float | None], an attribute or a property that a class may have: its state (text) and variables by name, for
    # the record of controls that `tcpscape conform` reads. It is read after each event of a connection that is recorded, never otherwise.

    def init(self, sample: Sample, window: Window) -> None:
        """The connection is established."""

    def pkts_acked(self, sample: Sample, window: Window) -> None:
        """Packets left the retransmission queue: `acked`, `rtt_us`, `tx_in_flight`."""

    def in_ack(self, sample: Sample, window: Window) -> None:
        """An acceptable ACK came: `slow_path`, `win_update`, `ece`. Losses have not been detected yet."""

    def on_lost(self, sample: Sample, window: Window) -> None:
        """A packet was marked lost: `lost_range`, `tx_in_flight`, `lost_since`; before the state changes because of it."""

    def ssthresh(self, sample: Sample, window: Window) -> int:
        """The threshold after a loss or an echo of congestion, packets from 1; the sender brings `cwnd` there. Reads the window only."""
        return max(window.cwnd // 2, 2)

    def on_ack(self, sample: Sample, window: Window) -> None:
        """An ACK was processed: grow the window, or with `owns_window` set everything. The only hook that a class must have."""
        raise NotImplementedError("a congestion control needs on_ack(sample, window)")

    def on_state(self, sample: Sample, window: Window, new: CaState) -> None:
        """The state is about to change to `new`."""

    def on_event(self, sample: Sample, window: Window, event: CaEvent) -> None:
        """`event` happened."""

    def undo(self, sample: Sample, window: Window) -> int:
        """The window to return to after a reduction that turned out to be spurious, packets from 1. Reads the window only."""
        return max(window.cwnd, window.prior_cwnd)
