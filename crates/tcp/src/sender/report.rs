//! What the parts of a sender tell one another. An ACK is read into an [`AckReport`]; repair answers with [`Actions`]; what was sent again comes
//! back as [`Copies`]. Each is written in one place and not changed after that.

use super::flight::{Delivery, Duplicate};
use tcpscape_base::CaState;

/// One acceptable ACK, once it has been applied to the segments in flight.
#[derive(Clone, Debug)]
pub(super) struct AckReport {
    /// Its number.
    pub ack: u64,
    /// The connection before it.
    pub prior: Prior,
    /// Nothing was in flight before it.
    pub was_idle: bool,
    /// What it said of the window.
    pub window: WindowNews,
    /// It echoes congestion.
    pub congestion: bool,
    /// What the segments that it delivered tell.
    pub delivery: Delivery,
    /// Packets that it delivered: acknowledged or SACKed for the first time, or reported as duplicates.
    pub delivered: u32,
    /// Its DSACK, if it has one that counts.
    pub duplicate: Option<Duplicate>,
    /// It reports a probe as a duplicate.
    pub probe_duplicate: bool,
    /// What it SACKed late.
    pub sacked_late: Option<Overtaken>,
    /// What it acknowledged late.
    pub acked_late: Option<Overtaken>,
    /// The segment at the left edge had been SACKed: the receiver has dropped it.
    pub reneged: bool,
    /// The timer of the oldest segment in flight starts anew.
    pub restarts_timer: bool,
    /// RTT of the last packet that it delivered, µs; negative if unknown.
    pub rtt_us: i64,
    /// The receiver may have delayed it.
    pub maybe_delayed: bool,
    /// Its number lies below the left edge: only its SACKs count.
    pub is_old: bool,
}

/// The connection just before an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prior {
    /// The left edge.
    pub una: u64,
    /// Packets in flight.
    pub in_flight: u32,
    /// End of the highest SACKed segment.
    pub sacked_end: u64,
    /// Count of packets delivered.
    pub delivered: u32,
    /// Count of packets marked lost.
    pub marked_lost: u32,
}

/// What an ACK says of the receiver's window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowNews {
    /// Its header was the expected one.
    pub predicted: bool,
    /// It spoke about the window.
    pub update: bool,
    /// The window is another one now.
    pub changed: bool,
}

/// A segment that begins at `low` was overtaken by data that end at `high`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overtaken {
    pub low: u64,
    pub high: u64,
}

/// What repair looks for in an ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    /// The highest sequence number sent when the present phase began.
    pub recovery_point: u64,
    /// The left edge when the reduction began that could be undone.
    pub undo_from: Option<u64>,
    /// Where the probe ends that is out.
    pub probe_end: Option<u64>,
}

impl AckReport {
    /// An ACK with this number, of which nothing more is known yet.
    #[inline]
    pub fn new(ack: u64, prior: Prior, was_idle: bool, window: WindowNews) -> AckReport {
        AckReport {
            ack,
            prior,
            was_idle,
            window,
            congestion: false,
            delivery: Delivery::default(),
            delivered: 0,
            duplicate: None,
            probe_duplicate: false,
            sacked_late: None,
            acked_late: None,
            reneged: false,
            restarts_timer: false,
            rtt_us: -1,
            maybe_delayed: false,
            is_old: false,
        }
    }
    /// Whether it moved the left edge.
    #[inline]
    pub fn advanced(&self) -> bool {
        self.ack > self.prior.una
    }
    /// Whether it gives a reason to look for losses: SACKs, duplicates, congestion, or nothing new at all.
    #[inline]
    pub fn is_alarming(&self) -> bool {
        self.delivery.sacked > 0 || self.congestion || self.duplicate.is_some() || !(self.window.update || self.delivery.acked > 0)
    }
    /// Whether it says nothing new (RFC 5681 §2, with SACK): neither its number, nor the window, nor a duplicate.
    pub fn is_duplicate(&self) -> bool {
        !self.is_old && !self.advanced() && !self.window.update && self.delivery.acked == 0 && self.duplicate.is_none()
    }
    /// Whether it says nothing but its number.
    pub fn is_empty(&self) -> bool {
        !self.advanced() && !self.window.update && self.delivery.acked == 0 && self.delivery.sacked == 0
    }
}

/// What follows from an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Actions {
    /// What becomes of the congestion window.
    pub window: WindowOrder,
    /// What becomes of the timer.
    pub timer: TimerOrder,
    /// What goes out again.
    pub resend: Resend,
    /// All was in order, and repair has changed nothing.
    pub orderly: bool,
}

/// What becomes of the congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowOrder {
    /// The congestion control is not asked.
    Keep,
    /// It is reduced packet by packet, to so many.
    Reduce(u32),
    /// The congestion control decides; whether the ACK made progress.
    Ask(bool),
}

/// What becomes of the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerOrder {
    /// Nothing.
    Keep,
    /// It starts anew: for a loss probe, if this state admits one, else for the retransmission timeout.
    Restart(CaState),
    /// Losses are looked for again after so many µs.
    LookAgain(u64),
    /// A retransmission timeout comes after so many µs.
    Timeout(u64),
}

/// What is to be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resend {
    /// Nothing.
    Nothing,
    /// What is lost.
    Lost,
    /// New data, as F-RTO asks; what is lost if there was none to send.
    NewFirst,
}

/// What repair tells who sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// The state of congestion avoidance.
    pub state: CaState,
    /// Degree of reordering, segments.
    pub reordering: u32,
}

/// What waits to leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// Data that were not sent yet.
    pub has_unsent: bool,
    /// Earliest departure of the next segment, ns; it may be past.
    pub next_departure_ns: u64,
}

/// Segments sent again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copies {
    /// Those that left.
    pub left: u32,
    /// Those that count as evidence for or against the reduction: also one that could not leave, and those still in the host's own queue.
    pub counted: u32,
    /// Timestamp of the first.
    pub first: Option<u32>,
}

impl Copies {
    /// Adds what followed.
    pub fn add(&mut self, next: &Copies) {
        self.left += next.left;
        self.counted += next.counted;
        self.first = self.first.or(next.first);
    }
}

/// What was taken back from the way out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TakenBack {
    /// Segments.
    pub segments: u32,
    /// A loss probe was among them.
    pub probe: bool,
}
