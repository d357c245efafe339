//! Kernel receive timestamps (CLOCK_REALTIME) as times of the emulator (CLOCK_MONOTONIC), whatever happens to the wall clock.
//!
//! The offset between the clocks is read at each wake-up. An arrival lies between the last moment up to which its direction is decided
//! and now: a timestamp that says otherwise is taken to the nearer end, so a step of the wall clock cannot delay or hasten a packet
//! beyond that, and at the wake-up that sees a step the timestamps do not count at all.

use serde::Serialize;

/// A change of the offset that is not the slewing of a disciplined clock, ns: and what is added to it for each 1,000 ns since the last reading.
const STEP: u64 = 500_000;
/// How fast an offset may change, per mille of the time between two looks.
const SLEW_PER_MILLE: u64 = 1;
/// Between the two readings of a pair of clocks no more than this may pass, ns; otherwise the thread was interrupted between them.
const CLOSE: u64 = 20_000;
/// Most steps that a report lists.
const LISTED: usize = 32;

/// The wall clock was set while the emulator ran.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClockStep {
    /// When the emulator saw it, s since its zero.
    pub at_s: f64,
    /// By how much, s; positive is forward.
    pub by_s: f64,
}

/// Both clocks, read one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// CLOCK_MONOTONIC before, ns.
    pub before: u64,
    /// CLOCK_REALTIME, ns.
    pub wall: u64,
    /// CLOCK_MONOTONIC after, ns.
    pub after: u64,
}

/// What is known about the clocks.
#[derive(Debug)]
pub struct Clocks {
    zero: u64,
    /// CLOCK_REALTIME − CLOCK_MONOTONIC, ns.
    offset: i128,
    seen_at: u64,
    /// Whether timestamps count at this wake-up.
    trusted: bool,
    /// Whether a reading that was not interrupted has told the offset.
    known: bool,
    steps: Vec<ClockStep>,
    stepped: u64,
}

impl Clocks {
    /// Clocks of an emulator whose zero is `zero` on CLOCK_MONOTONIC, ns.
    pub fn new(zero: u64, first: Reading) -> Clocks {
        let offset = i128::from(first.wall) - i128::from(first.after);
        let known = first.after.saturating_sub(first.before) <= CLOSE;
        Clocks { zero, offset, seen_at: first.after, trusted: known, known, steps: Vec::new(), stepped: 0 }
    }

    /// Takes a reading at the beginning of a wake-up.
    pub fn look(&mut self, reading: Reading) {
        if reading.after.saturating_sub(reading.before) > CLOSE {
            return;
        }
        let offset = i128::from(reading.wall) - i128::from(reading.after);
        let slewed = STEP + reading.after.saturating_sub(self.seen_at) / 1000 * SLEW_PER_MILLE;
        let change = offset - self.offset;
        self.trusted = !self.known || change.unsigned_abs() <= u128::from(slewed);
        self.known = true;
        if !self.trusted {
            self.stepped += 1;
            if self.steps.len() < LISTED {
                let at_s = reading.after.saturating_sub(self.zero) as f64 * 1e-9;
                self.steps.push(ClockStep { at_s, by_s: change as f64 * 1e-9 });
            }
        }
        self.offset = offset;
        self.seen_at = reading.after;
    }

    /// The emulator's time of a receive timestamp, ns since zero, between `floor` and `now` (ns since zero).
    pub fn arrival(&self, stamp: u64, floor: u64, now: u64) -> u64 {
        if !self.trusted || stamp == 0 {
            return now;
        }
        let at = i128::from(stamp) - self.offset - i128::from(self.zero);
        at.clamp(i128::from(floor.min(now)), i128::from(now)) as u64
    }

    /// The steps that were seen, the first 32 of them, and their number.
    pub fn steps(&self) -> (&[ClockStep], u64) {
        (&self.steps, self.stepped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: u64 = 1_000_000_000;
    const EPOCH: u64 = 1_700_000_000_000_000_000;

    fn at(monotonic: u64, wall: u64) -> Reading {
        Reading { before: monotonic, wall, after: monotonic }
    }

    #[test]
    fn a_timestamp_becomes_the_time_since_zero() {
        let c = Clocks::new(ZERO, at(ZERO, EPOCH));
        assert_eq!(c.arrival(EPOCH + 700, 0, 1_000), 700);
    }

    #[test]
    fn an_arrival_is_never_before_what_is_decided_nor_in_the_future() {
        let c = Clocks::new(ZERO, at(ZERO, EPOCH));
        assert_eq!(c.arrival(EPOCH + 700, 800, 1_000), 800);
        assert_eq!(c.arrival(EPOCH + 2_000, 800, 1_000), 1_000);
        assert_eq!(c.arrival(0, 800, 1_000), 1_000);
    }

    #[test]
    fn steps_are_reported_and_do_not_disturb() {
        let mut c = Clocks::new(ZERO, at(ZERO, EPOCH));
        for (i, jump) in [3_600_000_000_000i64, -7_200_000_000_000].into_iter().enumerate() {
            let now = (i as u64 + 1) * 1_000_000;
            let wall = (EPOCH as i64 + jump) as u64 + now;
            c.look(at(ZERO + now, wall));
            // A packet that was stamped before the step arrives now, not an hour ago.
            assert_eq!(c.arrival(EPOCH + now - 50, now - 900, now), now);
            // From the next wake-up on, timestamps of the new wall clock count.
            c.look(at(ZERO + now + 10, wall + 10));
            assert_eq!(c.arrival(wall + 4, now, now + 10), now + 4);
        }
        let (steps, n) = c.steps();
        assert_eq!((steps.len(), n), (2, 2));
        assert!((steps[0].by_s - 3600.0).abs() < 1e-6 && (steps[0].at_s - 0.001).abs() < 1e-6);
    }

    #[test]
    fn slewing_and_interrupted_readings_are_no_steps() {
        let mut c = Clocks::new(ZERO, at(ZERO, EPOCH));
        // 500 ppm for 10 s: 5 ms.
        c.look(at(ZERO + 10_000_000_000, EPOCH + 10_005_000_000));
        // The thread lost the CPU for 3 ms between the two clocks.
        c.look(Reading { before: ZERO + 10_000_000_000, wall: EPOCH + 10_005_000_000, after: ZERO + 10_003_000_000 });
        assert_eq!(c.steps().1, 0);
    }

    /// The thread lost the CPU for 3 ms within the first reading, so that the offset is that much too small.
    #[test]
    fn an_interrupted_first_reading_makes_no_step() {
        let mut c = Clocks::new(ZERO, Reading { before: ZERO, wall: EPOCH, after: ZERO + 3_000_000 });
        assert_eq!(c.arrival(EPOCH + 1, 0, 77), 77, "no timestamp is believed before the offset is known");
        c.look(at(ZERO + 4_000_000, EPOCH + 4_000_000));
        assert_eq!((c.steps().1, c.arrival(EPOCH + 4_000_000, 0, 9_000_000)), (0, 4_000_000));
    }
}
