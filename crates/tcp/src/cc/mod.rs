//! Congestion controls: one file each, one line each in [`REGISTRY`].
//!
//! A controller reads the connection through [`View`] and writes [`Window`]; it never sees segments. For one ACK its hooks are called in
//! this order: `pkts_acked` → `in_ack` → (`ssthresh` → `on_state`) → `on_ack`. docs/models/control-hooks.md says which names Linux has for
//! them and for what they see.

use tcpscape_base::{CaState, Time};

mod bbr;
mod bbr3;
mod bic;
mod cdg;
mod cubic;
mod dctcp;
mod fixed;
mod highspeed;
mod htcp;
mod hybla;
mod illinois;
mod lp;
mod nv;
mod prague;
mod registry;
mod reno;
mod scalable;
mod vegas;
mod veno;
mod westwood;
mod yeah;

pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use bic::Bic;
pub use cdg::Cdg;
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use fixed::Fixed;
pub use highspeed::HighSpeed;
pub use htcp::Htcp;
pub use hybla::Hybla;
pub use illinois::Illinois;
pub use lp::Lp;
pub use nv::Nv;
pub use prague::Prague;
pub use registry::{check, find, make, Entry, Options, Param, REGISTRY};
pub use reno::Reno;
pub use scalable::Scalable;
pub use vegas::Vegas;
pub use veno::Veno;
pub use westwood::Westwood;
pub use yeah::Yeah;

/// The threshold before the first loss: slow start goes on until one (RFC 5681 §3.1, "arbitrarily high"), packets.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
/// The first window, packets (RFC 6928).
pub const INIT_CWND: u32 = 10;

/// What a controller may read of the connection at the moment of a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// Time of the event being processed; rules that count in µs take `now.micros()`.
    pub now: Time,
    /// The tick counter, wrapping.
    pub jiffies: u32,
    /// Ticks a second.
    pub hz: u32,
    /// Sender's maximum segment size, bytes.
    pub mss: u32,
    /// Oldest unacknowledged sequence number.
    pub snd_una: u64,
    /// Next sequence number to send.
    pub snd_nxt: u64,
    /// Smoothed RTT (RFC 6298) in µs << 3, 0 before the first sample.
    pub srtt_us: u32,
    /// Windowed minimum RTT, µs, `u32::MAX` before the first sample.
    pub min_rtt_us: u32,
    /// Packets in flight: sent and neither acknowledged, SACKed nor marked lost, and retransmissions under way (RFC 6675's pipe).
    pub in_flight: u32,
    /// Packets sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Of those, packets that were SACKed.
    pub sacked_out: u32,
    /// Packets ever delivered, SACKed ones included, wrapping (`C.delivered` of the delivery-rate draft).
    pub delivered: u32,
    /// Of those, packets whose delivery was reported with a congestion mark, wrapping.
    pub delivered_ce: u32,
    /// Packets ever marked lost, wrapping (`C.lost`).
    pub lost: u32,
    /// When `delivered` last grew, µs (`C.delivered_time`).
    pub delivered_mstamp: u64,
    /// `delivered` when the sender last ran out of data, 0 when it is not application-limited (`C.app_limited`).
    pub app_limited: u32,
    /// Congestion-avoidance state.
    pub ca_state: CaState,
    /// Whether sending was held back by the window when it was last judged (RFC 7661).
    pub is_cwnd_limited: bool,
    /// Largest `packets_out` in the last window judged.
    pub max_packets_out: u32,
    /// Time of the last data transmission in jiffies, wrapping.
    pub lsndtime: u32,
    /// Data is queued and not sent.
    pub has_unsent: bool,
    /// Earliest time at which the internal pacing timer allows a transmission, ns.
    pub wstamp_ns: u64,
    /// Timestamp value of the last acceptable segment, ms; the same clock as [`View::rcv_tsecr`], without the random offset that
    /// each connection of a host may have (RFC 7323).
    pub rcv_tsval: u32,
    /// Timestamp echo of the last acceptable segment, ms.
    pub rcv_tsecr: u32,
    /// Both ends agreed to use ECN (RFC 3168).
    pub ecn_ok: bool,
    /// ... and to accurate feedback: `delivered_ce` counts marks, and packets are ECT(1) (RFC 9768, RFC 9331).
    pub accurate_ecn: bool,
}

impl View {
    /// `us` in jiffies, rounded up, for `hz` that divide a million.
    #[inline]
    pub fn jiffies_of(&self, us: u32) -> u32 {
        us.div_ceil(1_000_000 / self.hz.clamp(1, 1_000_000))
    }
}

/// What a controller writes.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Slow-start threshold, packets.
    pub ssthresh: u32,
    /// Credit towards the next increase, packets acknowledged.
    pub cwnd_cnt: u32,
    /// Largest window, packets.
    pub clamp: u32,
    /// `cwnd` before the last reduction, for undo, packets.
    pub prior_cwnd: u32,
    /// Pacing rate, bytes per second.
    pub pacing_rate: u64,
    /// Whether transmissions are paced.
    pub paced: bool,
    /// Set in `on_ack`: reduce the window as after a congestion signal. The sender enters CWR at once, which calls `ssthresh` and
    /// `on_state`, and clears it.
    pub enter_cwr: bool,
}

impl Default for Window {
    fn default() -> Window {
        Window {
            cwnd: INIT_CWND,
            ssthresh: INFINITE_SSTHRESH,
            cwnd_cnt: 0,
            clamp: u32::MAX,
            prior_cwnd: 0,
            pacing_rate: u64::MAX,
            paced: false,
            enter_cwr: false,
        }
    }
}

impl Window {
    /// Whether slow start governs: `cwnd < ssthresh` (RFC 5681 §3.1).
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start: grows by `acked` packets up to `ssthresh`; returns what is left for congestion avoidance (RFC 5681 §3.1).
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = (self.cwnd.saturating_add(acked)).min(self.ssthresh);
        let left = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd.min(self.clamp);
        left
    }

    /// Additive increase: one packet for every `w` acknowledged (RFC 5681 §3.1, by counting: RFC 3465). Credit from when `w` was larger is
    /// worth one packet, however much it is.
    #[inline]
    pub fn additive_increase(&mut self, w: u32, acked: u32) {
        let (w, credit) = (w.max(1), self.cwnd_cnt.saturating_add(acked));
        self.cwnd = self.cwnd.min(self.clamp);
        if credit < w {
            self.cwnd_cnt = credit;
        } else {
            self.spend_credit(w, acked);
        }
    }

    /// The credit, with `acked` packets more, is worth a packet or more.
    fn spend_credit(&mut self, w: u32, acked: u32) {
        let is_old_credit = self.cwnd_cnt >= w;
        let credit = if is_old_credit { acked } else { self.cwnd_cnt.saturating_add(acked) };
        let packets = (credit / w).saturating_add(is_old_credit.into());
        self.cwnd_cnt = credit % w;
        self.cwnd = self.cwnd.saturating_add(packets).min(self.clamp);
    }
}

/// A delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// `delivered` when the sampled packet was sent.
    pub prior_delivered: u32,
    /// When `prior_delivered` was reached, µs; 0 when there is no sample.
    pub prior_mstamp: u64,
    /// Packets delivered over the interval; negative when the sample is invalid.
    pub delivered: i32,
    /// Interval over which they were delivered, µs; negative when the sample is invalid.
    pub interval_us: i64,
    /// RTT of the last packet (S)ACKed, µs; negative when unknown.
    pub rtt_us: i64,
    /// Packets newly marked lost by this ACK.
    pub losses: u32,
    /// Packets in flight just after the sampled packet was sent, itself included (`P.tx_in_flight`).
    pub tx_in_flight: u32,
    /// Packets marked lost between its transmission and now (`RS.lost`). Like `tx_in_flight` it means nothing without a sample.
    pub lost: u32,
    /// Packets newly acknowledged or SACKed by this ACK.
    pub acked_sacked: u32,
    /// Packets in flight before this ACK.
    pub prior_in_flight: u32,
    /// The sampled packet was sent while the application had nothing more to send.
    pub is_app_limited: bool,
    /// The sampled packet had been retransmitted.
    pub is_retrans: bool,
    /// The ACK was perhaps delayed by the receiver (a single packet acknowledged alone).
    pub is_ack_delayed: bool,
}

/// What a controller learns from one ACK when the window may grow.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSample {
    /// Packets newly acknowledged or SACKed.
    pub acked: u32,
    /// The ACK number (`snd_una` after the ACK).
    pub ack: u64,
    /// Whether this ACK may raise the window: not in CWR or Recovery, and it acknowledged something. Window-based
    /// controllers return at once when it is false; a controller that `owns_window` ignores it.
    pub may_raise: bool,
    /// The delivery-rate sample.
    pub rate: RateSample,
}

/// What a controller learns when the retransmission queue was cleaned.
#[derive(Clone, Copy, Debug, Default)]
pub struct PktsAcked {
    /// Packets newly cumulatively acknowledged.
    pub pkts_acked: u32,
    /// RTT of the latest packet acknowledged that was never retransmitted, µs; negative when unknown.
    pub rtt_us: i64,
    /// Bytes delivered since the last acknowledged packet was sent, what was in flight then included: packets in units of the MSS.
    pub in_flight: u32,
}

/// An acceptable ACK, once the retransmission queue is cleaned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InAck {
    /// It took the slow path: the header was not the predicted one, as it carried SACK blocks, another window, ECE or an older
    /// timestamp.
    pub slow_path: bool,
    /// It updated the window.
    pub win_update: bool,
    /// It carried ECE.
    pub ece: bool,
}

/// A packet that was just marked lost, as its last transmission left it (draft-ietf-ccwg-bbr §4.1.2.1.2, per-packet state).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostPacket {
    /// Its first sequence number, and the one after its last.
    pub seq: u64,
    /// See `seq`.
    pub end: u64,
    /// Packets in flight just after it was sent, itself included.
    pub tx_in_flight: u32,
    /// Packets marked lost since it was sent, itself included.
    pub lost: u32,
    /// It was sent while the application had nothing more to send.
    pub is_app_limited: bool,
}

/// Things that happen to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaEvent {
    /// First transmission when nothing was in flight.
    TxStart,
    /// The window was restarted after idling.
    CwndRestart,
    /// Recovery from CWR or fast recovery has ended.
    CompleteCwr,
    /// A loss timeout, after the state has changed.
    Loss,
}

/// What a controller shows in a trace: a few named numbers, in its own units.
pub type Snapshot = Vec<(&'static str, f64)>;

/// A congestion control.
pub trait CongestionController: Send {
    /// Its name, Linux's where Linux has it.
    fn name(&self) -> &'static str;
    /// The SYN was acknowledged after `rtt_us` µs, before `init`, in which most controllers forget it. For those that do
    /// not.
    fn syn_acked(&mut self, _v: &View, _rtt_us: i64) {}
    /// The connection is established. Sets `w.paced` if it needs pacing.
    fn init(&mut self, _v: &View, _w: &mut Window) {}
    /// The threshold after a loss, packets.
    fn ssthresh(&mut self, v: &View, w: &Window) -> u32;
    /// Whether [`CongestionController::in_ack`] is wanted; asked once.
    fn wants_in_ack(&self) -> bool {
        false
    }
    /// An acceptable ACK came; after `pkts_acked`, and alone when nothing was outstanding.
    fn in_ack(&mut self, _v: &View, _w: &mut Window, _a: InAck) {}
    /// Packets left the retransmission queue.
    fn pkts_acked(&mut self, _v: &View, _w: &mut Window, _a: &PktsAcked) {}
    /// Whether [`CongestionController::on_lost`] is wanted; asked once.
    fn wants_lost(&self) -> bool {
        false
    }
    /// A packet was marked lost; before the state changes because of it.
    fn on_lost(&mut self, _v: &View, _w: &mut Window, _p: &LostPacket) {}
    /// An ACK was processed: grow, or, of one that owns the window, do everything.
    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample);
    /// The state is about to change to `new`; `v.ca_state` is still the old one.
    fn on_state(&mut self, _v: &View, _w: &mut Window, _new: CaState) {}
    /// Something happened.
    fn on_event(&mut self, _v: &View, _w: &mut Window, _e: CaEvent) {}
    /// The window to return to after a spurious reduction, packets.
    fn undo(&mut self, _v: &View, w: &Window) -> u32 {
        w.cwnd.max(w.prior_cwnd)
    }
    /// Whether it sets the window and the rate itself on every ACK: no PRR, no cwnd validation. Asked once
    /// it is initialised.
    fn owns_window(&self) -> bool {
        false
    }
    /// Whether it wants ECN on every packet.
    fn needs_ecn(&self) -> bool {
        false
    }
    /// Whether the ECN it wants is accurate feedback for packets that are ECT(1) (RFC 9768, RFC 9331).
    fn wants_accurate_ecn(&self) -> bool {
        false
    }
    /// Whether it sends less after losses than it would without them, by a smaller window, a smaller threshold or a lower pacing rate.
    /// One that does not says so here and on its page; the laws of the registry hold it to its word.
    fn reacts_to_loss(&self) -> bool {
        true
    }
    /// Smallest burst in segments.
    fn min_tso_segs(&self, _w: &Window) -> u32 {
        2
    }
    /// Largest burst in segments, of one that owns the window; never more than TCP's own limits.
    fn max_tso_segs(&self, _w: &Window) -> u32 {
        u32::MAX
    }
    /// Send buffer in multiples of the window.
    fn sndbuf_expand(&self) -> u32 {
        2
    }
    /// Numbers for the trace.
    fn snapshot(&self) -> Snapshot {
        Vec::new()
    }
}
