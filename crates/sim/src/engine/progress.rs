//! Whether a trial gets anywhere: events must let time pass and bring packets, or it would go on (nearly) without end.

use super::observe::Observer;
use tcpscape_base::{Duration, Time};

/// A trial is judged whenever it has had so much more work: events and deliveries.
const WINDOW: u64 = 20_000_000;
/// Time that so many events must take at least. A path at 256 Gbit/s, the most that one CPU writes, has some 1.6 million in it.
const LEAST_TIME: Duration = Duration::millis(10);

/// What a trial had reached when it was judged last.
#[derive(Debug, Default)]
pub(super) struct Progress {
    work: u64,
    now: Time,
    arrivals: u64,
}

impl Progress {
    /// The work after which it is judged again.
    pub fn due(&self) -> u64 {
        self.work + WINDOW
    }

    /// What is missing since the last judgement, if it is due and anything is: one line with the fix.
    pub fn missing(&mut self, now: Time, seen: &Observer) -> Option<String> {
        if seen.work() < self.due() {
            return None;
        }
        self.judge(Progress { work: seen.work(), now, arrivals: seen.arrivals() })
    }

    fn judge(&mut self, reached: Progress) -> Option<String> {
        let before = std::mem::replace(self, reached);
        let (passed, at) = (self.now.since(before.now), self.now.secs_f64());
        let millions = (self.work - before.work) / 1_000_000;
        if passed < LEAST_TIME {
            let us = passed.0 as f64 / 1e3;
            return Some(format!(
                "path: time stands still at {at} s, {millions} million steps take {us} µs; give the path a delay or a rate, or take fewer flows"
            ));
        }
        if self.arrivals == before.arrivals {
            return Some(format!(
                "path: {millions} million steps until {at} s deliver no packet; make room for a packet of each flow in every queue (limit, burst)"
            ));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_must_let_time_pass_and_bring_packets() {
        let mut p = Progress::default();
        let mut judge = |work, ms: u64, arrivals| p.judge(Progress { work, now: Time(ms * 1_000_000), arrivals });
        assert_eq!(judge(WINDOW, 10, 1), None);
        let still = judge(2 * WINDOW, 19, 2_000_000).unwrap();
        assert!(still.starts_with("path: time stands still at 0.019 s, 20 million steps take 9000 µs; give"), "{still}");
        let idle = judge(3 * WINDOW, 5_019, 2_000_000).unwrap();
        assert!(idle.starts_with("path: 20 million steps until 5.019 s deliver no packet; make room"), "{idle}");
        assert_eq!(judge(4 * WINDOW, 9_000, 2_000_001), None);
    }
}
