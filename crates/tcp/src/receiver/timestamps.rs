//! The timestamp option: the clock that stamps ACKs, the value to echo, and the protection against old segments (PAWS).
//!
//! Source: RFC 7323 §4.3 (which timestamp to echo), §5.3 (PAWS), §5.4 (the clock). Differs: a segment that is older by no more than one
//! tick of the peer's clock is not refused (docs/models/tcp/receiver.md).

use crate::Jiffies;
use tcpscape_base::Time;

/// Where the clock starts: any constant will do.
const CLOCK_OFFSET: u64 = 1_000_000;
/// Ticks of the peer's clock by which a segment may be older without being refused.
const TOLERANCE: i32 = 1;

/// The timestamp clock at `now`: milliseconds in phase with the host's timer tick.
#[inline]
pub(super) fn clock(jiffies: &Jiffies, now: Time) -> u32 {
    (jiffies.since_tick(now) / 1_000_000 + CLOCK_OFFSET) as u32
}

/// `TS.Recent` of RFC 7323: the timestamp to echo, 0 while there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timestamps {
    recent: u32,
}

impl Timestamps {
    /// The value to echo.
    #[inline]
    pub fn echo(self) -> u32 {
        self.recent
    }

    /// Ticks by which `tsval` is older than the value to echo; negative when it is newer. The 32-bit clock wraps (RFC 7323 §5.2).
    #[inline]
    fn age(self, tsval: u32) -> i32 {
        if self.recent == 0 {
            0
        } else {
            self.recent.wrapping_sub(tsval) as i32
        }
    }

    /// Whether `tsval` is older than the value to echo at all.
    #[inline]
    pub fn is_older(self, tsval: u32) -> bool {
        self.age(tsval) > 0
    }

    /// Whether PAWS refuses a segment with this timestamp (RFC 7323 §5.3, R1).
    #[inline]
    pub fn is_refused(self, tsval: u32) -> bool {
        self.age(tsval) > TOLERANCE
    }

    /// The segment at the left edge of the window, or one before it, carries `tsval` (RFC 7323 §4.3, rule 2).
    #[inline]
    pub fn follow(&mut self, tsval: u32) {
        if !self.is_older(tsval) {
            self.recent = tsval;
        }
    }

    /// Takes `tsval` whatever was echoed before: from a SYN, or from the segment that ends the handshake.
    pub fn start(&mut self, tsval: u32) {
        self.recent = tsval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::Duration;

    /// RFC 7323 §5.2: s is older than t when 0 < t − s < 2³¹ in unsigned arithmetic of 32 bits.
    #[test]
    fn ages_are_counted_modulo_2_to_the_32() {
        let t = Timestamps { recent: 5 };
        assert!(t.is_older(4) && !t.is_older(5) && !t.is_older(6));
        assert!(t.is_older(u32::MAX) && t.is_refused(u32::MAX));
        assert!(!t.is_older(5u32.wrapping_add(1 << 31) - 1));
    }

    #[test]
    fn one_tick_is_forgiven_and_two_are_not() {
        let t = Timestamps { recent: 100 };
        assert!(!t.is_refused(99) && t.is_refused(98));
        assert!(!Timestamps::default().is_refused(98), "nothing to compare with");
    }

    /// RFC 7323 §4.3: the echoed value never goes back.
    #[test]
    fn the_value_to_echo_only_rises() {
        let mut t = Timestamps::default();
        t.start(100);
        t.follow(99);
        assert_eq!(t.echo(), 100);
        t.follow(103);
        assert_eq!(t.echo(), 103);
    }

    #[test]
    fn the_clock_counts_milliseconds_from_the_tick_before_time_zero() {
        let j = Jiffies::new(100, Duration::millis(3));
        let c = |ns| clock(&j, Time(ns));
        assert_eq!(c(0), 1_000_007, "the next tick is in 3 ms, so the last one was 7 ms ago");
        assert_eq!((c(999_999), c(1_000_000)), (1_000_007, 1_000_008));
    }
}
