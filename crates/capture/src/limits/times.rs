//! Times that the packets show here: of the handshake, of round trips, between data packets.

use super::view::Moment;
use super::{Ack, Data};

/// A link that has a queue does not pause for so many times the mean time between segments.
const PAUSE: u64 = 8;

/// The handshake.
#[derive(Clone, Debug, Default)]
pub(super) struct Opening {
    begun: Option<Moment>,
    syn_ack: Option<u64>,
    /// Whether the data's receiver opened the connection.
    pub(super) is_accepted: bool,
}

impl Opening {
    /// Takes a packet; gives the first.
    pub(super) fn begin(&mut self, t: u64, frame: u64) -> Moment {
        *self.begun.get_or_insert(Moment { t, frame })
    }
    /// Takes the SYN-ACK.
    pub(super) fn asked(&mut self, t: u64) {
        self.syn_ack = Some(t);
    }
    /// The first packet, if the SYN-ACK has no answer yet.
    pub(super) fn unanswered(&self) -> Option<Moment> {
        self.begun.filter(|_| self.syn_ack.is_some())
    }
    /// The opening end answers the SYN-ACK: gives the times from the SYN to the SYN-ACK and from there to now.
    pub(super) fn answered(&mut self, t: u64) -> Option<[u64; 2]> {
        let (asked, begun) = (self.syn_ack.take()?, self.begun?);
        Some([asked - begun.t.min(asked), t - asked.min(t)])
    }
}

/// Round trips of the data's sender, ns.
#[derive(Clone, Debug)]
pub(super) struct RoundTrips {
    /// A segment under way to be timed: its end and when it passed.
    timed: Option<(u64, u64)>,
    /// Smoothed; 0 before a sample.
    pub(super) smoothed: u64,
    /// The least.
    pub(super) least: u64,
}

impl RoundTrips {
    pub(super) fn new() -> RoundTrips {
        RoundTrips { timed: None, smoothed: 0, least: u64::MAX }
    }
    /// An ACK passes that the sender answers after this time.
    pub(super) fn ack(&mut self, ack: &Ack, response: u64) {
        if let Some((_, sent)) = self.timed.filter(|(end, _)| ack.ack >= *end) {
            self.timed = None;
            let sample = ack.t - sent + response;
            self.smoothed = if self.smoothed == 0 { sample } else { self.smoothed - self.smoothed / 8 + sample / 8 };
            self.least = self.least.min(sample);
        }
    }
    /// A segment passes: one that repeats something times nothing (Karn's rule), and of the others one at a time is timed.
    pub(super) fn depart(&mut self, d: &Data, is_new: bool) {
        if d.repeat.is_some() {
            self.timed = None;
        } else if self.timed.is_none() && is_new {
            self.timed = Some((d.seq + u64::from(d.len), d.t));
        }
    }
}

/// The usual time between data packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Spacing {
    /// When the last one was seen, in or out of order.
    last: Option<u64>,
    /// Their mean, ns; a pause counts as two of the shortest.
    usual: u64,
}

impl Spacing {
    /// Takes a packet; gives whether a pause came before it.
    pub(super) fn data(&mut self, t: u64) -> bool {
        let gap = t - self.last.unwrap_or(t).min(t);
        self.last = Some(t);
        let is_pause = self.is_pause(gap);
        let counted = gap.min(2 * PAUSE * self.usual.max(1_000));
        self.usual = self.usual - self.usual / 32 + counted / 32;
        is_pause
    }
    /// Whether this time without data is longer than a link with a queue takes between two.
    pub(super) fn is_pause(&self, gap: u64) -> bool {
        gap > PAUSE * self.usual
    }
}
