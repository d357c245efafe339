//! SACK compression: ACKs of data beyond a gap are held back for a while, so that one reports many segments.
//!
//! Source: `Documentation/networking/ip-sysctl.rst` (`tcp_comp_sack_nr`, `_delay_ns`, `_slack_ns`); docs/models/tcp/receiver.md, "Out of
//! order". RFC 5681 §4.2 would have each acknowledged at once.

use tcpscape_base::{Kernel, Time};

/// Duplicate ACKs that go out at once before compression starts: fast retransmit needs as many (RFC 5681 §3.2).
const AT_ONCE: u8 = 3;

/// What bounds the ACKs held back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Most ACKs.
    pub acks: u32,
    /// Longest time.
    pub delay_ns: u64,
    /// … and that share of the round-trip time, %.
    pub percent: u64,
    /// How much later than its delay a compressed ACK goes: what is seen of the slack (`net.ipv4.tcp_comp_sack_slack_ns`).
    pub slack_ns: u64,
}

impl Limits {
    /// Those of a kernel.
    #[inline]
    pub fn of(kernel: &Kernel) -> Limits {
        let rules = kernel.rules();
        Limits {
            acks: kernel.comp_sack_nr,
            delay_ns: kernel.comp_sack_delay_ns.into(),
            percent: rules.compresses_for_percent,
            slack_ns: rules.compression_slack_ns,
        }
    }
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
    /// Holds one back, from now on for the delay but no more than a share of the round-trip time (in 1/8 µs).
    pub fn hold(&mut self, now: Time, limits: Limits, round_trip: u32) {
        if !self.is_active() {
            let nanos = u64::from(round_trip) * 125; // of 1/8 µs
            self.until = Time(now.0 + limits.delay_ns.min(nanos * limits.percent / 100) + limits.slack_ns);
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

    const LIMITS: Limits = Limits { acks: 2, delay_ns: 1_000_000, percent: 5, slack_ns: 100_000 };

    #[test]
    fn three_go_at_once_for_each_number() {
        let mut c = Compression::default();
        assert_eq!([1, 1, 1, 1, 2].map(|n| c.holds(n, LIMITS)), [false, false, false, true, false]);
    }

    /// At a round trip of 10 ms: 5 % of it and the slack; at 50 ms: 1 ms and the slack. The first one's time holds for all. In 6.19 and later it is a
    /// third, the slack is 10 µs in 6.19, and in 7.1 nothing of it is seen (kernel: 1,000 µs at 50 ms).
    #[test]
    fn the_delay_is_a_share_of_the_round_trip_or_1_ms() {
        let [in_6_19, in_7_1] = [Kernel::V6_19, Kernel::V7_1].map(|kernel| Limits { acks: 2, ..Limits::of(&kernel) });
        for (limits, rtt_us, delay) in [
            (LIMITS, 10_000, 600_000),
            (LIMITS, 50_000, 1_100_000),
            (in_6_19, 10_000, 1_010_000),
            (in_7_1, 10_000, 1_000_000),
            (in_7_1, 2_000, 660_000),
        ] {
            let mut c = Compression::default();
            c.hold(Time(5), limits, 8 * rtt_us);
            c.hold(Time(400_000), limits, 8 * rtt_us);
            assert_eq!((c.until(), c.last()), (Some(Time(5 + delay)), Time(400_000)));
            assert!(!c.holds(0, LIMITS), "two are held already");
            assert_eq!((c.end(), c.is_active(), c.until()), (2, false, None));
        }
    }
}
