//! Congestion controls: one file each, one line each in [`REGISTRY`].
//!
//! A controller reads the connection through [`View`] and writes [`Window`]; it never sees segments. The hooks are those of
//! Linux's `struct tcp_congestion_ops`, in the order in which the kernel calls them for one ACK:
//! `pkts_acked` → `in_ack` → (`ssthresh` → `on_state`) → `on_ack`.

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

/// Slow start until the first loss: `TCP_INFINITE_SSTHRESH`.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
/// `TCP_INIT_CWND` (RFC 6928).
pub const INIT_CWND: u32 = 10;

/// What a controller may read of the connection at the moment of a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// Time of the event being processed (`tcp_mstamp`, µs precision where a rule needs it: `now.micros()`).
    pub now: Time,
    /// The tick counter (`tcp_jiffies32`), wrapping.
    pub jiffies: u32,
    /// Ticks a second.
    pub hz: u32,
    /// Sender's maximum segment size, bytes (`mss_cache`).
    pub mss: u32,
    /// Oldest unacknowledged sequence number.
    pub snd_una: u64,
    /// Next sequence number to send.
    pub snd_nxt: u64,
    /// Smoothed RTT in µs << 3 (`srtt_us`), 0 before the first sample.
    pub srtt_us: u32,
    /// Windowed minimum RTT, µs (`tcp_min_rtt()`), `u32::MAX` before the first sample.
    pub min_rtt_us: u32,
    /// Packets in flight: `packets_out − (sacked_out + lost_out) + retrans_out`.
    pub in_flight: u32,
    /// Packets sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Of those, packets that were SACKed (`sacked_out`).
    pub sacked_out: u32,
    /// Packets ever delivered, SACKed ones included (`tp->delivered`).
    pub delivered: u32,
    /// Of those, packets whose delivery was reported with a congestion mark (`tp->delivered_ce`).
    pub delivered_ce: u32,
    /// Packets ever marked lost (`tp->lost`).
    pub lost: u32,
    /// When `delivered` last grew, µs (`delivered_mstamp`).
    pub delivered_mstamp: u64,
    /// `delivered` when the sender last ran out of data, 0 when it is not application-limited (`app_limited`).
    pub app_limited: u32,
    /// Congestion-avoidance state.
    pub ca_state: CaState,
    /// Whether sending was held back by the window when it was last judged (`is_cwnd_limited`).
    pub is_cwnd_limited: bool,
    /// Largest `packets_out` in the last window judged (`max_packets_out`).
    pub max_packets_out: u32,
    /// Time of the last data transmission in jiffies (`lsndtime`), wrapping.
    pub lsndtime: u32,
    /// Data is queued and not sent (`tcp_write_queue` is not empty).
    pub has_unsent: bool,
    /// Earliest time at which the internal pacing timer allows a transmission, ns (`tcp_wstamp_ns`).
    pub wstamp_ns: u64,
    /// Timestamp value of the last acceptable segment, ms; the same clock as [`View::rcv_tsecr`], without the random offset that
    /// Linux gives each connection (`rx_opt.rcv_tsval`).
    pub rcv_tsval: u32,
    /// Timestamp echo of the last acceptable segment, ms (`rx_opt.rcv_tsecr`).
    pub rcv_tsecr: u32,
    /// Both ends agreed to use ECN (`TCP_ECN_OK`).
    pub ecn_ok: bool,
    /// ... and to accurate feedback: `delivered_ce` counts marks, and packets are ECT(1) (RFC 9768, RFC 9331).
    pub accurate_ecn: bool,
}

impl View {
    /// `us` in jiffies, rounded up (`usecs_to_jiffies()`, for `hz` that divide a million).
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
    /// Credit towards the next increase (`snd_cwnd_cnt`).
    pub cwnd_cnt: u32,
    /// Largest window (`snd_cwnd_clamp`).
    pub clamp: u32,
    /// `cwnd` before the last reduction (`prior_cwnd`), for undo.
    pub prior_cwnd: u32,
    /// `sk_pacing_rate`, bytes per second.
    pub pacing_rate: u64,
    /// Whether transmissions are paced (`sk_pacing_status != SK_PACING_NONE`).
    pub paced: bool,
    /// Set in `on_ack`: reduce the window as after a congestion signal. The sender enters CWR at once, which calls `ssthresh` and
    /// `on_state`, and clears it (`tcp_enter_cwr()`).
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
    /// Whether slow start governs: `cwnd < ssthresh` (`tcp_in_slow_start()`).
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start: grows by `acked` packets up to `ssthresh`; returns what is left for congestion avoidance (`tcp_slow_start()`).
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = (self.cwnd.saturating_add(acked)).min(self.ssthresh);
        let left = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd.min(self.clamp);
        left
    }

    /// Additive increase of one packet for every `w` acknowledged (`tcp_cong_avoid_ai()`).
    pub fn additive_increase(&mut self, w: u32, acked: u32) {
        let w = w.max(1);
        // A credit left from a larger `w` is given before new ones are counted.
        if self.cwnd_cnt >= w {
            self.cwnd_cnt = 0;
            self.cwnd = self.cwnd.saturating_add(1);
        }
        self.cwnd_cnt = self.cwnd_cnt.saturating_add(acked);
        if self.cwnd_cnt >= w {
            let d = self.cwnd_cnt / w;
            self.cwnd_cnt -= d * w;
            self.cwnd = self.cwnd.saturating_add(d);
        }
        self.cwnd = self.cwnd.min(self.clamp);
    }
}

/// A delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation; `struct rate_sample`).
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

/// What a controller learns from one ACK when the window may grow (`cong_avoid`, `cong_control`).
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSample {
    /// Packets newly acknowledged or SACKed.
    pub acked: u32,
    /// The ACK number (`snd_una` after the ACK).
    pub ack: u64,
    /// Whether Linux would call `cong_avoid` for this ACK (`tcp_may_raise_cwnd()`, and not in CWR or Recovery): window-based
    /// controllers return at once when it is false; a controller that `owns_window` ignores it.
    pub may_raise: bool,
    /// The delivery-rate sample.
    pub rate: RateSample,
}

/// What a controller learns when the retransmission queue was cleaned (`struct ack_sample` of `pkts_acked`).
#[derive(Clone, Copy, Debug, Default)]
pub struct PktsAcked {
    /// Packets newly cumulatively acknowledged.
    pub pkts_acked: u32,
    /// RTT of the latest packet acknowledged that was never retransmitted, µs; negative when unknown.
    pub rtt_us: i64,
    /// Bytes delivered since the last acknowledged packet was sent, what was in flight then included: packets in units of the MSS.
    pub in_flight: u32,
}

/// An acceptable ACK, once the retransmission queue is cleaned (`in_ack_event`; in older stable releases it came before that).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InAck {
    /// It took the slow path: the header was not the predicted one, as it carried SACK blocks, another window, ECE or an older
    /// timestamp (`CA_ACK_SLOWPATH`).
    pub slow_path: bool,
    /// It updated the window (`CA_ACK_WIN_UPDATE`).
    pub win_update: bool,
    /// It carried ECE (`CA_ACK_ECE`).
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

/// Things that happen to a connection (`enum tcp_ca_event`).
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

/// A congestion control, with Linux's hooks.
pub trait CongestionController: Send {
    /// Linux's name.
    fn name(&self) -> &'static str;
    /// The SYN was acknowledged after `rtt_us` µs, before `init`: Linux calls `pkts_acked` with one packet, which most controllers
    /// forget in `init`. For those that do not.
    fn syn_acked(&mut self, _v: &View, _rtt_us: i64) {}
    /// The connection is established (`init`). Sets `w.paced` if it needs pacing.
    fn init(&mut self, _v: &View, _w: &mut Window) {}
    /// The threshold after a loss (`ssthresh`).
    fn ssthresh(&mut self, v: &View, w: &Window) -> u32;
    /// Whether [`CongestionController::in_ack`] is wanted; asked once.
    fn wants_in_ack(&self) -> bool {
        false
    }
    /// An acceptable ACK came; after `pkts_acked`, and alone when nothing was outstanding (`in_ack_event`).
    fn in_ack(&mut self, _v: &View, _w: &mut Window, _a: InAck) {}
    /// Packets left the retransmission queue (`pkts_acked`).
    fn pkts_acked(&mut self, _v: &View, _w: &mut Window, _a: &PktsAcked) {}
    /// Whether [`CongestionController::on_lost`] is wanted; asked once.
    fn wants_lost(&self) -> bool {
        false
    }
    /// A packet was marked lost; before the state changes because of it (`skb_marked_lost` of BBR v3's kernel).
    fn on_lost(&mut self, _v: &View, _w: &mut Window, _p: &LostPacket) {}
    /// An ACK was processed: grow (`cong_avoid`), or do everything (`cong_control`).
    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample);
    /// The state is about to change to `new`; `v.ca_state` is still the old one (`set_state`).
    fn on_state(&mut self, _v: &View, _w: &mut Window, _new: CaState) {}
    /// Something happened (`cwnd_event`).
    fn on_event(&mut self, _v: &View, _w: &mut Window, _e: CaEvent) {}
    /// The window to return to after a spurious reduction (`undo_cwnd`).
    fn undo(&mut self, _v: &View, w: &Window) -> u32 {
        w.cwnd.max(w.prior_cwnd)
    }
    /// Whether it sets the window and the rate itself on every ACK (`cong_control` exists): no PRR, no cwnd validation. Asked once
    /// it is initialised.
    fn owns_window(&self) -> bool {
        false
    }
    /// Whether it wants ECN on every packet (`TCP_CONG_NEEDS_ECN`).
    fn needs_ecn(&self) -> bool {
        false
    }
    /// Whether the ECN it wants is accurate feedback for packets that are ECT(1) (RFC 9768, RFC 9331; `TCP_CONG_NEEDS_ACCECN`).
    fn wants_accurate_ecn(&self) -> bool {
        false
    }
    /// Whether it sends less after losses than it would without them, by a smaller window, a smaller threshold or a lower pacing rate.
    /// One that does not says so here and on its page; the laws of the registry hold it to its word.
    fn reacts_to_loss(&self) -> bool {
        true
    }
    /// Smallest burst in segments (`min_tso_segs`).
    fn min_tso_segs(&self, _w: &Window) -> u32 {
        2
    }
    /// Largest burst in segments, of one that owns the window (`tso_segs` of the L4S kernels); never more than TCP's own limits.
    fn max_tso_segs(&self, _w: &Window) -> u32 {
        u32::MAX
    }
    /// Send buffer in multiples of the window (`sndbuf_expand`).
    fn sndbuf_expand(&self) -> u32 {
        2
    }
    /// Numbers for the trace.
    fn snapshot(&self) -> Snapshot {
        Vec::new()
    }
}
