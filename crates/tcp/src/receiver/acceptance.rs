//! Whether a segment is acceptable at all, and how often an unacceptable one is answered.
//!
//! Source: RFC 9293 §3.10.7.4 (sequence number, RST, SYN), RFC 7323 §5.3 (PAWS before them), RFC 5961 §4.2 (an ACK answers a SYN) and §7
//! (limit to such ACKs).

use super::timestamps::Timestamps;
use crate::Jiffies;
use tcpscape_base::{Flags, Segment, Time};

/// What becomes of a segment that comes for an open connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acceptance {
    /// Its data are looked at.
    Acceptable,
    /// Its timestamp is old (PAWS): an ACK and no more.
    OldTimestamp,
    /// A SYN within the connection: an ACK and no more.
    Syn,
    /// Nothing of it lies in the window: an ACK and no more.
    OutsideWindow,
    /// A reset, which is not answered.
    Reset,
}

/// The receive window that segments are compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edges {
    /// The next byte expected when the last ACK was sent.
    pub last_ack: u64,
    /// The next byte expected.
    pub next: u64,
    /// The first byte after the window.
    pub right: u64,
}

/// Judges a segment, in the order of the RFCs: timestamp, then SYN, then sequence number, then RST.
#[inline]
pub(super) fn judge(s: &Segment, timestamps: Timestamps, edges: Edges) -> Acceptance {
    let end = s.end();
    let is_bare_ack_at_the_edge = end == s.seq && s.seq == edges.next;
    if timestamps.is_refused(s.tsval) && !is_bare_ack_at_the_edge {
        Acceptance::OldTimestamp
    } else if s.flags.has(Flags::SYN) {
        Acceptance::Syn
    } else if end < edges.last_ack || s.seq > edges.right {
        Acceptance::OutsideWindow
    } else if s.flags.has(Flags::RST) {
        Acceptance::Reset
    } else {
        Acceptance::Acceptable
    }
}

/// Limits the ACKs that answer what is neither data nor acceptable: one in half a second (RFC 5961 §7).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckLimiter {
    /// Tick of the last one, 0 for none.
    last: u64,
}

impl AckLimiter {
    /// Whether another such ACK may go now; if so, it is counted.
    pub fn allows(&mut self, now: Time, jiffies: &Jiffies) -> bool {
        let at = jiffies.at(now);
        let allowed = self.last == 0 || at - self.last >= jiffies.hz_over(2);
        if allowed {
            self.last = at;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::Duration;

    const EDGES: Edges = Edges { last_ack: 1_000, next: 2_000, right: 5_000 };

    fn recent(tsval: u32) -> Timestamps {
        let mut t = Timestamps::default();
        t.start(tsval);
        t
    }
    fn data(seq: u64, len: u32, tsval: u32) -> Segment {
        Segment { seq, len, tsval, flags: Flags::ACK, ..Segment::default() }
    }

    /// RFC 9293 §3.10.7.4, table 6; the left edge is that of the last ACK sent.
    #[test]
    fn the_window_decides() {
        let of = |seq, len| judge(&data(seq, len, 50), recent(50), EDGES);
        assert_eq!(of(900, 99), Acceptance::OutsideWindow);
        assert_eq!(of(900, 100), Acceptance::Acceptable);
        assert_eq!(of(5_000, 1), Acceptance::Acceptable, "a probe of a closed window begins at its edge");
        assert_eq!(of(5_001, 1), Acceptance::OutsideWindow);
    }

    /// RFC 7323 §5.3: PAWS comes first, and does not refuse an ACK at the edge.
    #[test]
    fn an_old_timestamp_is_refused_before_anything_else() {
        let of = |s: Segment| judge(&s, recent(50), EDGES);
        assert_eq!(of(data(9_000, 100, 48)), Acceptance::OldTimestamp);
        assert_eq!(of(data(2_000, 0, 48)), Acceptance::Acceptable);
        assert_eq!(of(data(2_100, 0, 48)), Acceptance::OldTimestamp);
        assert_eq!(of(data(2_000, 100, 49)), Acceptance::Acceptable);
    }

    /// RFC 5961 §4.2: a SYN is answered wherever it lies; RFC 9293: a reset counts only in the window.
    #[test]
    fn syn_and_reset() {
        let of = |seq, flags| judge(&Segment { flags, ..data(seq, 0, 50) }, recent(50), EDGES);
        assert_eq!(of(9_000, Flags::SYN), Acceptance::Syn);
        assert_eq!(of(2_000, Flags::RST), Acceptance::Reset);
        assert_eq!(of(9_000, Flags::RST), Acceptance::OutsideWindow);
    }

    #[test]
    fn one_answer_in_half_a_second() {
        let (j, mut limiter) = (Jiffies::new(100, Duration::ZERO), AckLimiter::default());
        let allowed: Vec<u64> = (100..1_700).step_by(10).filter(|&ms| limiter.allows(Time(ms * 1_000_000), &j)).collect();
        assert_eq!(allowed, [100, 600, 1_100, 1_600]);
    }
}
