//! When the next segment may leave.
//!
//! Source: draft-cardwell-iccrg-bbr-congestion-control-00 §4.2.1 (pacing), observed behaviour of Linux's internal pacing and of departure times
//! for fq (docs/models/tcp/pacing.md). How it differs: the timer fires exactly. Not modelled: `SO_MAX_PACING_RATE`.

use tcpscape_base::Time;

/// The clock of departures.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sender) struct Pacer {
    /// Earliest departure of the next segment, ns.
    next_ns: u64,
    /// When the timer fires, if data wait for it.
    timer: Option<Time>,
}

impl Pacer {
    /// Earliest departure of the next segment, ns; it may be past.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }
    /// Time until then, ns.
    #[inline]
    pub fn hold_ns(&self, now: Time) -> u64 {
        self.next_ns.saturating_sub(now.0)
    }
    /// Something leaves now that is not paced: the clock of departures moves up to it.
    #[inline]
    pub fn touch(&mut self, now: Time) {
        self.next_ns = self.next_ns.max(now.0);
    }
    /// A departure at `ns` was taken back: nothing waits for a time that followed from it.
    pub fn take_back(&mut self, ns: u64) {
        self.next_ns = ns;
        self.timer = self.timer.filter(|t| t.0 <= ns);
    }

    /// Whether the next segment has to wait; the timer runs then.
    #[inline]
    pub fn holds(&mut self, now: Time) -> bool {
        let waits = self.next_ns > now.0;
        if waits {
            self.timer.get_or_insert(Time(self.next_ns));
        }
        waits
    }
    /// When the timer fires.
    #[inline]
    pub fn timer(&self) -> Option<Time> {
        self.timer
    }
    /// Whether the timer has fired; it stops then.
    #[inline]
    pub fn take_due(&mut self, now: Time) -> bool {
        let due = self.timer.is_some_and(|t| t <= now);
        if due {
            self.timer = None;
        }
        due
    }

    /// `len` bytes leave at `rate` bytes a second, `None` if they are not paced; returns their departure, ns.
    ///
    /// The next departure is `len / rate` later. What leaves late earns up to half of its own length back.
    #[inline]
    pub fn depart(&mut self, now: Time, len: u32, rate: Option<u64>) -> u64 {
        let due = self.next_ns;
        let departure = due.max(now.0);
        self.next_ns = departure;
        if let Some(rate) = rate.filter(|&r| r > 0 && r != u64::MAX) {
            let length = u64::from(len) * 1_000_000_000 / rate;
            let late = departure - due;
            self.next_ns += length - late.min(length / 2);
        }
        departure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 bytes at 1 MB/s are 1 ms; 0.4 ms late leaves 0.6 ms, 5 ms late half a millisecond.
    #[test]
    fn late_segments_earn_up_to_half_of_their_length() {
        let mut p = Pacer::default();
        let rate = Some(1_000_000);
        assert_eq!((p.depart(Time(5_000_000), 1_000, rate), p.next_ns()), (5_000_000, 5_500_000));
        assert!(p.holds(Time(5_400_000)) && p.timer() == Some(Time(5_500_000)));
        assert!(!p.take_due(Time(5_499_999)) && p.take_due(Time(5_500_000)) && p.timer().is_none());
        assert_eq!((p.depart(Time(5_500_000), 1_000, rate), p.next_ns()), (5_500_000, 6_500_000));
        assert_eq!((p.depart(Time(6_900_000), 1_000, rate), p.next_ns()), (6_900_000, 7_500_000));
        assert_eq!((p.depart(Time(7_000_000), 1_000, None), p.next_ns()), (7_500_000, 7_500_000));
    }

    #[test]
    fn what_is_taken_back_leaves_no_timer_behind() {
        let mut p = Pacer::default();
        assert_eq!(p.depart(Time(5_000_000), 1_000, Some(1_000_000)), 5_000_000);
        assert!(p.holds(Time(5_000_000)));
        p.take_back(5_000_000);
        assert_eq!((p.next_ns(), p.timer()), (5_000_000, None));
        // A timer from before runs on: a probe did not wait for it.
        p.depart(Time(5_000_000), 1_000, Some(1_000_000));
        assert!(p.holds(Time(5_100_000)));
        let probe = p.depart(Time(5_100_000), 1_000, Some(1_000_000));
        p.take_back(probe);
        assert_eq!(p.timer(), Some(Time(probe)));
    }
}
