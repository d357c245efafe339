//! One segment in flight: where it lies, what is known of it, and the state of the connection when it was last sent.
//!
//! Source: RFC 6675 §3 (scoreboard), RFC 8985 §5.2 (per-segment variables of RACK), draft-cheng-iccrg-delivery-rate-estimation §3.1.2 (per-packet state).

use std::ops::BitOr;

/// A set of facts about a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(u8);

impl Marks {
    /// No fact.
    pub const NONE: Marks = Marks(0);
    /// It was sent while the connection was limited by the application.
    pub const APP_LIMITED: Marks = Marks(1);
    /// It ends a write (PSH).
    pub const PUSH: Marks = Marks(1 << 1);
    /// It is the first of a buffer, which has one memory overhead: a super-packet, or a part that SACKs or retransmissions cut off.
    pub const BUFFER_START: Marks = Marks(1 << 2);
    /// It stands in the list that is ordered by time of transmission.
    pub const LISTED: Marks = Marks(1 << 3);
    /// The receiver has it, out of order.
    pub const SACKED: Marks = Marks(1 << 4);
    /// It is believed lost.
    pub const LOST: Marks = Marks(1 << 5);
    /// It was sent again, and that copy is believed in flight.
    pub const COPY_OUT: Marks = Marks(1 << 6);
    /// It was sent more than once.
    pub const EVER_RESENT: Marks = Marks(1 << 7);

    /// What decides whether segments of one burst are sent again together.
    pub const FATE: Marks = Marks(Marks::SACKED.0 | Marks::LOST.0 | Marks::COPY_OUT.0 | Marks::EVER_RESENT.0);

    /// Whether any of `other` is in the set.
    #[inline]
    pub fn any(self, other: Marks) -> bool {
        self.0 & other.0 != 0
    }
    /// The part of the set that is in `other` too.
    #[inline]
    pub fn only(self, other: Marks) -> Marks {
        Marks(self.0 & other.0)
    }
    /// Adds `other`.
    #[inline]
    pub fn set(&mut self, other: Marks) {
        self.0 |= other.0;
    }
    /// Takes `other` out.
    #[inline]
    pub fn clear(&mut self, other: Marks) {
        self.0 &= !other.0;
    }
}

impl BitOr for Marks {
    type Output = Marks;
    #[inline]
    fn bitor(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }
}

/// The state of the connection at a transmission, as delivery-rate samples need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    /// Time of the transmission, ns.
    pub sent_ns: u64,
    /// Packets delivered until then.
    pub delivered: u32,
    /// Packets marked lost until then.
    pub lost: u32,
    /// When `delivered` last grew, µs.
    pub delivered_us: u64,
    /// When the packet was sent whose delivery was last sampled, µs.
    pub first_sent_us: u64,
    /// Whether the application had nothing more to send.
    pub app_limited: bool,
}

/// One sent segment, in a line of the cache of its own: with many flows each line of it is a miss.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Sent {
    /// Its first sequence number.
    pub seq: u64,
    /// Its payload, bytes.
    pub len: u32,
    /// What is known of it.
    pub marks: Marks,
    /// Packets in flight once it had left; 24 bits, so that an entry stays 64 bytes long.
    in_flight_then: [u8; 3],
    /// Number of the burst (super-packet) of its last transmission.
    pub burst: u32,
    /// Time of its last transmission, ns.
    pub sent_ns: u64,
    /// Packets delivered when it was sent.
    pub delivered_then: u32,
    /// Packets marked lost when it was sent.
    pub lost_then: u32,
    /// When `delivered_then` was reached, µs; 0 once the segment has given its rate sample.
    pub delivered_then_us: u64,
    /// When the packet was sent that had been sampled last at that time, µs.
    pub first_sent_then_us: u64,
    /// Its neighbours in the list ordered by time of transmission.
    pub(super) prev: u32,
    pub(super) next: u32,
    /// Distance to a later segment that may not be SACKed, valid while this one is.
    pub(super) skip: u32,
}

impl Sent {
    /// A segment that has not left yet.
    pub fn new(seq: u64, len: u32) -> Sent {
        Sent {
            seq,
            len,
            marks: Marks::NONE,
            in_flight_then: [0; 3],
            burst: 0,
            sent_ns: 0,
            delivered_then: 0,
            lost_then: 0,
            delivered_then_us: 0,
            first_sent_then_us: 0,
            prev: 0,
            next: 0,
            skip: 1,
        }
    }
    /// The sequence number behind its last byte.
    #[inline]
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
    /// Time of its last transmission, µs.
    #[inline]
    pub fn sent_us(&self) -> u64 {
        self.sent_ns / 1_000
    }
    /// Its last transmission.
    #[inline]
    pub fn transmission(&self) -> Transmission {
        Transmission { us: self.sent_us(), end: self.end() }
    }
    /// Whether any of `marks` holds.
    #[inline]
    pub fn is(&self, marks: Marks) -> bool {
        self.marks.any(marks)
    }
    /// Whether it was ever sent again.
    #[inline]
    pub fn was_resent(&self) -> bool {
        self.is(Marks::COPY_OUT | Marks::EVER_RESENT)
    }
    /// Packets in flight just after its last transmission, itself included.
    #[inline]
    pub fn in_flight_then(&self) -> u32 {
        let [a, b, c] = self.in_flight_then;
        u32::from_le_bytes([a, b, c, 0])
    }
    /// It leaves as part of `burst`, with `in_flight` packets in flight once it has.
    #[inline]
    pub(super) fn leaves(&mut self, d: &Departure, burst: u32, in_flight: u32) {
        let [a, b, c, _] = in_flight.min(0xff_ffff).to_le_bytes();
        self.in_flight_then = [a, b, c];
        self.burst = burst;
        self.sent_ns = d.sent_ns;
        self.delivered_then = d.delivered;
        self.lost_then = d.lost;
        self.delivered_then_us = d.delivered_us;
        self.first_sent_then_us = d.first_sent_us;
        self.marks.clear(Marks::APP_LIMITED);
        if d.app_limited {
            self.marks.set(Marks::APP_LIMITED);
        }
    }
}

/// A transmission. One is greater than another that was earlier: by time, and by sequence number within one instant (RFC 8985 §6.2,
/// `RACK_sent_after`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Transmission {
    /// Its time, µs.
    pub us: u64,
    /// The end of its segment.
    pub end: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_one_cache_line() {
        assert_eq!(std::mem::size_of::<Sent>(), 64);
    }

    #[test]
    fn marks_are_a_set() {
        let mut m = Marks::SACKED | Marks::PUSH;
        m.set(Marks::LOST);
        m.clear(Marks::PUSH);
        assert!(m.any(Marks::LOST | Marks::PUSH) && !m.any(Marks::PUSH));
        assert_eq!(m.only(Marks::SACKED | Marks::COPY_OUT), Marks::SACKED);
    }

    #[test]
    fn ties_are_broken_by_sequence_number() {
        let sent = |us, end| Transmission { us, end };
        assert!(sent(5, 1) > sent(4, 9) && sent(5, 9) > sent(5, 1) && sent(4, 9) <= sent(5, 1));
        assert_eq!(sent(5, 1).cmp(&sent(5, 1)), std::cmp::Ordering::Equal);
    }
}
