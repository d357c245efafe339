//! What one ACK says, once it has been applied to the segments in flight. It is written in `ack.rs`, read by everything that decides, and not
//! changed after that.

use super::flight::{Delivery, Duplicate};

/// One acceptable ACK.
#[derive(Clone, Debug)]
pub(super) struct AckReport {
    /// Its number.
    pub ack: u64,
    /// The connection before it.
    pub prior: Prior,
    /// Nothing was in flight before it.
    pub was_idle: bool,
    /// Its header was the expected one.
    pub predicted: bool,
    /// It spoke about the window.
    pub window_update: bool,
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
    /// The segment at the left edge had been SACKed: the receiver has dropped it.
    pub reneged: bool,
    /// The timer of the oldest segment in flight starts anew.
    pub restarts_timer: bool,
    /// RTT of the last packet that it delivered, µs; negative if unknown.
    pub rtt_us: i64,
    /// The receiver may have delayed it.
    pub maybe_delayed: bool,
    /// It says nothing new (RFC 5681 §2, with SACK): neither its number, nor the window, nor a duplicate.
    pub is_duplicate: bool,
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
    /// Whether delivery rates can be measured.
    pub rates_usable: bool,
}

impl AckReport {
    /// An ACK with this number, of which nothing more is known yet.
    #[inline]
    pub fn new(ack: u64, prior: Prior, was_idle: bool) -> AckReport {
        AckReport {
            ack,
            prior,
            was_idle,
            predicted: false,
            window_update: false,
            congestion: false,
            delivery: Delivery::default(),
            delivered: 0,
            duplicate: None,
            probe_duplicate: false,
            reneged: false,
            restarts_timer: false,
            rtt_us: -1,
            maybe_delayed: false,
            is_duplicate: false,
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
        self.delivery.sacked > 0 || self.congestion || self.duplicate.is_some() || !(self.window_update || self.delivery.acked > 0)
    }
    /// Whether it says nothing but its number.
    pub fn is_empty(&self) -> bool {
        !self.advanced() && !self.window_update && self.delivery.acked == 0 && self.delivery.sacked == 0
    }
}
