//! What proves that the last reduction of the window was wrong, and what it is restored to; F-RTO asks it of a retransmission timeout.
//!
//! Source: RFC 3522 (Eifel: the timestamp echoed is older than the first retransmission), RFC 3708 and RFC 2883 (every retransmission was
//! reported as a duplicate), RFC 4015 §3.4 (response), RFC 5682 §3.1 (F-RTO, SACK-enhanced). How it differs: an original that the first ACK delivers
//! proves the timeout spurious already, and any SACK or duplicate ACK after new data were sent says that it was not (docs/models/tcp/recovery.md).
//! Not modelled: spurious SYN timeouts, the basic F-RTO of RFC 5682 §2.1, for connections without SACK.

use crate::sender::flight::echoes_before;
use crate::sender::report::Copies;

/// The evidence that a connection gathers about its last reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sender) struct Undo {
    /// The left edge when the reduction began; without one there is nothing to undo.
    left_edge: Option<u64>,
    /// Retransmissions since then that were not reported as duplicates; none if nothing was sent again.
    unproven: Option<u32>,
    /// Timestamp of the first retransmission.
    first_resent: Option<u32>,
    /// The threshold to return to; none if the reduction was due in any case.
    ssthresh: Option<u32>,
}

impl Undo {
    /// A reduction begins at the left edge `una` with `copies` already in flight; `ssthresh` is the threshold to restore, none if the reduction is
    /// due in any case.
    pub fn begin(&mut self, una: u64, copies: u32, ssthresh: Option<u32>) {
        *self = Undo { left_edge: Some(una), unproven: Some(copies).filter(|&n| n > 0), ssthresh, ..*self };
    }
    /// The reduction is due whatever becomes of the losses: congestion was signalled.
    pub fn keep_reduction(&mut self) {
        self.ssthresh = None;
    }
    /// There is nothing to undo any more.
    pub fn end(&mut self) {
        self.left_edge = None;
    }
    /// The reduction is undone; returns the threshold to restore, if it may be restored.
    pub fn take(&mut self) -> Option<u32> {
        self.end();
        self.ssthresh
    }
    /// The left edge when the reduction began.
    #[inline]
    pub fn left_edge(&self) -> Option<u64> {
        self.left_edge
    }

    /// Segments were sent again.
    pub fn resent(&mut self, copies: &Copies) {
        if copies.counted > 0 {
            self.unproven = Some(self.unproven.unwrap_or(0) + copies.counted);
        }
        self.first_resent = self.first_resent.or(copies.first);
    }
    /// Nothing that was sent again is left: the next retransmission is the first one again.
    pub fn forget_first(&mut self) {
        self.first_resent = None;
    }
    /// `n` retransmissions since the reduction were duplicates.
    pub fn duplicates(&mut self, n: u32) {
        self.unproven = self.unproven.map(|left| left.saturating_sub(n));
    }

    /// Whether every retransmission was needless (RFC 3708 §2).
    #[inline]
    pub fn by_duplicates(&self) -> bool {
        self.left_edge.is_some() && self.unproven == Some(0)
    }
    /// Whether the ACK was caused by an original (RFC 3522 §3.2): the echo is older than the first retransmission, or there was none.
    #[inline]
    pub fn by_timestamp(&self, echo: u32) -> bool {
        self.left_edge.is_some() && self.first_resent.map_or(true, |first| echoes_before(echo, first))
    }
    /// Whether either proves the reduction wrong.
    #[inline]
    pub fn proven(&self, echo: u32) -> bool {
        self.by_duplicates() || self.by_timestamp(echo)
    }
}

/// Whether the timeout's outcome is still watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) enum Frto {
    /// Not, or not any more: conventional recovery.
    Off,
    /// The first ACKs after the timeout decide.
    Watching,
}

/// What an ACK after a timeout shows.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sender) struct AfterTimeout {
    /// A segment from before the timeout was delivered that was never sent again.
    pub original: bool,
    /// It moved the left edge.
    pub advanced: bool,
    /// It SACKed something, or is a duplicate.
    pub sacked_or_duplicate: bool,
    /// New data were sent since the timeout.
    pub sent_new: bool,
    /// Everything sent before the timeout is acknowledged.
    pub recovered: bool,
}

/// What F-RTO concludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) enum Conclusion {
    /// Nothing yet.
    Open,
    /// Step 3.b: the timeout was spurious.
    Spurious,
    /// Step 2.b: send new data and see what they bring.
    TryNew,
    /// Step 3.a: it was not; recover as usual.
    Genuine,
}

impl Frto {
    /// Judges an ACK.
    pub fn judge(self, ack: &AfterTimeout) -> Conclusion {
        match self {
            Frto::Off => Conclusion::Open,
            Frto::Watching if ack.original => Conclusion::Spurious,
            Frto::Watching if ack.sent_new && ack.sacked_or_duplicate => Conclusion::Genuine,
            Frto::Watching if !ack.sent_new && ack.advanced && !ack.recovered => Conclusion::TryNew,
            Frto::Watching => Conclusion::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copies(n: u32, timestamp: u32) -> Copies {
        Copies { left: n, counted: n, first: Some(timestamp) }
    }

    /// RFC 3708 §2: two retransmissions, two duplicates.
    #[test]
    fn every_retransmission_must_be_reported() {
        let mut u = Undo::default();
        u.begin(1, 0, None);
        assert!(!u.by_duplicates(), "nothing was sent again");
        u.resent(&copies(2, 50));
        u.duplicates(1);
        assert!(!u.by_duplicates());
        u.duplicates(1);
        assert!(u.by_duplicates());
        u.end();
        assert!(!u.by_duplicates());
    }

    /// RFC 3522 §3.2: only an echo from before the first retransmission names the original.
    #[test]
    fn the_echo_names_the_original() {
        let mut u = Undo::default();
        u.begin(1, 0, None);
        u.resent(&copies(1, 50));
        u.resent(&copies(1, 60));
        assert!(u.by_timestamp(49) && !u.by_timestamp(50) && !u.by_timestamp(55) && !u.by_timestamp(0));
        u.forget_first();
        assert!(u.by_timestamp(55));
    }

    #[test]
    fn copies_in_flight_at_the_start_count() {
        let mut u = Undo::default();
        u.begin(1, 2, None);
        u.duplicates(2);
        assert!(u.by_duplicates());
    }

    /// §3.1 step by step: the first ACK moves the edge, new data leave; then an original arrives, or a SACK says otherwise.
    #[test]
    fn the_steps_of_the_rfc() {
        let advance = AfterTimeout { advanced: true, ..AfterTimeout::default() };
        assert_eq!(Frto::Watching.judge(&advance), Conclusion::TryNew);
        let original = AfterTimeout { original: true, sent_new: true, ..advance };
        assert_eq!(Frto::Watching.judge(&original), Conclusion::Spurious);
        assert_eq!(Frto::Watching.judge(&AfterTimeout { sent_new: false, ..original }), Conclusion::Spurious);
        let sack = AfterTimeout { sacked_or_duplicate: true, sent_new: true, ..AfterTimeout::default() };
        assert_eq!(Frto::Watching.judge(&sack), Conclusion::Genuine);
        assert_eq!(Frto::Off.judge(&original), Conclusion::Open);
        assert_eq!(Frto::Watching.judge(&AfterTimeout { recovered: true, ..advance }), Conclusion::Open);
    }
}
