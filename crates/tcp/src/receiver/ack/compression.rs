//! SACK compression: ACKs of data beyond a gap are held back for a while, so that one reports many segments.
//!
//! Source: `Documentation/networking/ip-sysctl.rst` (`tcp_comp_sack_nr`, `_delay_ns`, `_slack_ns`); docs/models/tcp/receiver.md, "Out of
//! order". RFC 5681 §4.2 would have each acknowledged at once.

use tcpscape_base::Time;

/// Duplicate ACKs that go out at once before compression starts: fast retransmit needs as many (RFC 5681 §3.2).
const AT_ONCE: u8 = 3;
/// How much later than its delay a compressed ACK goes: the slack is always used up (`net.ipv4.tcp_comp_sack_slack_ns`).
const SLACK_NS: u64 = 100_000;

/// What bounds the ACKs held back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Most ACKs.
    pub acks: u32,
    /// Longest time.
    pub delay_ns: u64,
}

/// ACKs held back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Compression {
    held: u32,
    /// Duplicate ACKs that have gone out at once …
    sent: u8,
    /// … for this ACK number.
    number: u64,
    /// When it ends, if any are held back.
    until: Time,
    /// When the last one was held back.
    last: Time,
}

impl Compression {
    /// Whether ACKs are held back.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.held > 0
    }
    /// When it ends, if it has begun.
    #[inline]
    pub fn until(&self) -> Option<Time> {
        self.is_active().then_some(self.until)
    }
    /// When the last one was held back.
    pub fn last(&self) -> Time {
        self.last
    }

    /// Whether one more ACK of `number` is held back; if not, it is counted as sent.
    pub fn holds(&mut self, number: u64, limits: Limits) -> bool {
        if self.held >= limits.acks {
            return false;
        }
        if self.number != number {
            self.number = number;
            self.sent = 0;
        }
        if self.sent < AT_ONCE {
            self.sent += 1;
            return false;
        }
        true
    }
    /// Holds one back, from now on for the delay but no more than 5 % of the round-trip time (in 1/8 µs).
    pub fn hold(&mut self, now: Time, limits: Limits, round_trip: u32) {
        if !self.is_active() {
            let nanos = u64::from(round_trip) * 125; // of 1/8 µs
            self.until = Time(now.0 + limits.delay_ns.min(nanos / 20) + SLACK_NS);
        }
        self.held += 1;
        self.last = now;
    }

    /// An ACK leaves that stands for all that were held back. Returns how many those were.
    #[inline]
    pub fn end(&mut self) -> u32 {
        std::mem::take(&mut self.held)
    }
    /// One of those held back is sent after all.
    pub fn release(&mut self) {
        self.held -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { acks: 2, delay_ns: 1_000_000 };

    #[test]
    fn three_go_at_once_for_each_number() {
        let mut c = Compression::default();
        assert_eq!([1, 1, 1, 1, 2].map(|n| c.holds(n, LIMITS)), [false, false, false, true, false]);
    }

    /// At a round trip of 10 ms: 5 % of it and the slack; at 50 ms: 1 ms and the slack. The first one's time holds for all.
    #[test]
    fn the_delay_is_5_percent_of_the_round_trip_or_1_ms() {
        for (rtt_us, delay) in [(10_000, 600_000), (50_000, 1_100_000)] {
            let mut c = Compression::default();
            c.hold(Time(5), LIMITS, 8 * rtt_us);
            c.hold(Time(400_000), LIMITS, 8 * rtt_us);
            assert_eq!((c.until(), c.last()), (Some(Time(5 + delay)), Time(400_000)));
            assert!(!c.holds(0, LIMITS), "two are held already");
            assert_eq!((c.end(), c.is_active(), c.until()), (2, false, None));
        }
    }
}
