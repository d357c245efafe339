//! A writer that pauses: periods since connect() returned, each with a time to write and a time to sleep.
//!
//! Source: docs/models/methods/traffic.md. A write that has begun ends in the pause, as a blocking write(2) does. How it differs from a loop of
//! writes and clock_gettime(2): not at all; bytes written in one turn cost a system call for each chunk.

use super::{Clock, Flow};
use crate::sys;

/// How long a writer writes and how long its periods are, ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    on: u64,
    period: u64,
}

impl Turns {
    /// Writes for `on`, sleeps for `off`.
    pub fn new(on: u64, off: u64) -> Turns {
        Turns { on, period: on.saturating_add(off) }
    }

    /// How long the pause lasts still, `since` ns after the first period began; None while there is writing to do.
    fn pause(self, since: u64) -> Option<u64> {
        let into = since % self.period;
        (self.on < self.period && into >= self.on).then(|| self.period - into)
    }
}

impl Flow {
    /// Writes a chunk while it is time to, sleeps otherwise; with a rate also sleeps chunk/rate after each.
    pub(super) fn write_by_turns(&self, chunk: usize, turns: Turns, clock: Clock) {
        let (begin, gap) = (self.span().0, self.plan.gap().0);
        self.write_each(chunk, || {
            let ready = sys::now() + gap;
            let wake = ready + turns.pause(ready - begin).unwrap_or(0);
            if wake > ready || gap > 0 {
                sys::nap_until(wake + self.oversleep(clock) - clock.slack);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Periods of 300 of which 100 are written in.
    #[test]
    fn a_pause_lasts_to_the_next_period() {
        let turns = Turns::new(100, 200);
        assert_eq!([0, 99, 100, 299, 300, 650].map(|since| turns.pause(since)), [None, None, Some(200), Some(1), None, None]);
        assert_eq!([700, 899].map(|since| turns.pause(since)), [Some(200), Some(1)]);
        assert_eq!(Turns::new(100, 0).pause(100), None);
    }
}
