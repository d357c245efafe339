//! The kernel's tick, for queues that do something every so often.
//!
//! What it is: the times of a periodic kernel timer. A queue looks at it whenever something happens to it and catches up on what
//! was due: between its events nothing changes that a timer could see, so nobody has to be woken.
//! Source: a timer armed for n jiffies fires at the end of the n-th full tick, n + 1 after the one it was armed on.
//! How it differs: the reference kernel's 100 Hz whatever the plan's kernel has, in phase with that kernel's ticks at 100 Hz.
//! What it does not model: the coarser grids of timers beyond 63 ticks.

use tcpscape_base::{Stream, Time};

/// A tick at 100 Hz, ns.
pub const TICK: u64 = 10_000_000;

/// A timer that arms itself again each time it fires.
#[derive(Clone, Debug)]
pub struct Ticker {
    next: u64,
    every: u64,
}

impl Ticker {
    /// Armed again and again for so many jiffies, since long before time zero; with 0 it has fired for the last time.
    pub fn new(seed: u64, jiffies: u64) -> Ticker {
        if jiffies == 0 {
            return Ticker { next: u64::MAX, every: u64::MAX };
        }
        // The same stream as the hosts' ticks: one machine, one clock.
        let mut clock = Stream::new(seed, "clock");
        let phase = u64::from(clock.below(TICK as u32));
        let ticks = jiffies + 1;
        let first = u64::from(clock.below(u32::try_from(ticks).unwrap_or(u32::MAX)));
        Ticker { next: phase + first * TICK, every: ticks * TICK }
    }
    /// The earliest firing at or before `now` that has not been given yet.
    #[inline]
    pub fn due(&mut self, now: Time) -> Option<Time> {
        if self.next > now.0 {
            return None;
        }
        let t = Time(self.next);
        self.next = self.next.saturating_add(self.every);
        Some(t)
    }
}

/// Microseconds as jiffies, rounded up.
pub fn jiffies(micros: u64) -> u64 {
    (micros * 1_000).div_ceil(TICK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_jiffies_are_thirty_milliseconds() {
        // Armed in the handler of tick n for n + 2: the wheel rounds up to n + 3.
        assert_eq!(jiffies(15_000), 2);
        let mut t = Ticker::new(7, 2);
        let fired: Vec<u64> = std::iter::from_fn(|| t.due(Time(600_000_000))).map(|t| t.0).collect();
        assert!(fired[0] < 30_000_000 && fired.len() == 20);
        assert!(fired.windows(2).all(|w| w[1] - w[0] == 30_000_000));
    }
}
