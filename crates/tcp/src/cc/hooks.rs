//! The hooks of a congestion control and what each of them is told.
//!
//! Source: RFC 5681 for what has to be decided, draft-cheng-iccrg-delivery-rate-estimation for the rate sample, draft-ietf-ccwg-bbr for lost packets;
//! docs/models/controls/control-hooks.md says what Linux calls them. How it differs: nothing known. Not modelled: see that page.

use super::observation::Observation;
use super::view::View;
use super::window::Window;
use tcpscape_base::CaState;

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

/// A congestion control.
pub trait CongestionController: Send {
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
    /// Of one that owns the window: whether PRR bounds it all the same while losses are repaired (RFC 6937), after which `on_ack` is asked.
    fn repairs_by_prr(&self) -> bool {
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
    /// Shows its state and its variables to whoever records them. Asked after each event of a connection that is recorded, never otherwise.
    fn observe(&self, _v: &View, _w: &Window, _out: &mut Observation) {}
    /// Send buffer in multiples of the window.
    fn sndbuf_expand(&self) -> u32 {
        2
    }
}
