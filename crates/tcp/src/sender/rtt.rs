//! Round-trip estimation, the smallest round trip, and the retransmission timeout.
//!
//! Source: RFC 6298 §2 and §5 with the departures of docs/models/tcp/rtt.md: the deviation rises slowly when the RTT falls fast, the RTO uses the
//! largest deviation of a round trip, at least 200 ms. How it differs: nothing known. Not modelled: a route's own minimum.

use crate::jiffies::Jiffies;
use crate::windowed::WindowedMin;
use std::ops::Range;

/// Smoothed RTT and its deviation, in scaled integers so that the gains of 1/8 and 1/4 lose nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimator {
    /// Smoothed RTT, µs × 8; 0 before the first sample.
    srtt8: u32,
    /// Mean deviation, µs × 4.
    deviation4: u32,
    margin: Margin,
}

/// What the RTO adds to the smoothed RTT: four mean deviations, the largest of a round trip, at least 200 ms.
#[derive(Clone, Copy, Debug, Default)]
struct Margin {
    /// The margin, µs.
    us: u32,
    /// The largest of the present round trip, µs.
    round_max: u32,
    /// The sequence number that ends the present round trip.
    round_end: u64,
}

impl Margin {
    /// The first sample's; `nxt` is the next new sequence number.
    fn begin(deviation4: u32, nxt: u64) -> Margin {
        let us = deviation4.max(RTO_MARGIN_MIN_US);
        Margin { us, round_max: us, round_end: nxt }
    }

    /// It rises at once. When a round trip is over, it falls a quarter of the way to the largest deviation seen in it.
    fn take(&mut self, deviation4: u32, una: u64, nxt: u64) {
        self.round_max = self.round_max.max(deviation4);
        self.us = self.us.max(self.round_max);
        if una > self.round_end {
            let us = self.us - (self.us - self.round_max) / 4;
            *self = Margin { us, round_max: RTO_MARGIN_MIN_US, round_end: nxt };
        }
    }
}

impl Estimator {
    /// Takes a sample of `rtt` µs; the data in flight are between `una` and `nxt`.
    fn sample(&mut self, rtt: u32, una: u64, nxt: u64) {
        if self.srtt8 == 0 {
            // RFC 6298 §2.2: SRTT = R, and four deviations of R/2.
            let deviation4 = rtt * 2;
            *self = Estimator { srtt8: (rtt * 8).max(1), deviation4, margin: Margin::begin(deviation4, nxt) };
        } else {
            let error = i64::from(rtt) - i64::from(self.srtt8 / 8);
            self.srtt8 = (i64::from(self.srtt8) + error).max(1) as u32;
            self.deviation4 = (i64::from(self.deviation4) + self.deviation_step(error)) as u32;
            self.margin.take(self.deviation4, una, nxt);
        }
    }

    /// RFC 6298 §2.3 with a gain of 1/4: a quarter of what the error exceeds the mean deviation by, in units of µs × 4. An RTT that falls by more
    /// than the deviation changes it by an eighth of that only.
    fn deviation_step(&self, error: i64) -> i64 {
        let excess = error.abs() - i64::from(self.deviation4 / 4);
        if error < 0 && excess > 0 {
            excess / 8
        } else {
            excess
        }
    }
}

/// RTT, minimum and timeout of a connection.
#[derive(Clone, Debug)]
pub(super) struct Rtt {
    estimator: Estimator,
    minimum: WindowedMin,
    /// Timeout, ticks.
    rto: u64,
    /// Times that the timeout, or the time between window probes, was doubled.
    backoff: u32,
    /// Timeouts since the left edge moved.
    timeouts: u32,
}

impl Rtt {
    /// Before the first sample: a timeout of 1 s (RFC 6298 §2.1).
    pub fn new(clock: &Jiffies) -> Rtt {
        let rto = clock.from_micros(RTO_INITIAL_US);
        Rtt { estimator: Estimator::default(), minimum: WindowedMin::new(), rto, backoff: 0, timeouts: 0 }
    }

    /// Takes a sample of `rtt` µs for the estimator and one of `least` µs for the minimum, which a possibly delayed ACK cannot raise.
    pub fn sample(&mut self, rtt: u32, least: u32, maybe_delayed: bool, flight: Range<u64>, clock: &Jiffies, tick: u64) {
        if !(maybe_delayed && least > self.min_us()) {
            // No time at all is one tick.
            let least = if least == 0 { clock.to_micros(1) as u32 } else { least };
            self.minimum.update(MIN_RTT_WINDOW_S * u64::from(clock.hz()), tick, least);
        }
        self.estimator.sample(rtt, flight.start, flight.end);
        self.rto = clock.from_micros(self.rto_us().min(RTO_MAX_US));
        self.backoff = 0;
    }

    /// The timeout before back-off, µs (RFC 6298 §2.3).
    fn rto_us(&self) -> u64 {
        u64::from(self.srtt_us()) + u64::from(self.estimator.margin.us)
    }

    /// Smoothed RTT, µs × 8; 0 before the first sample.
    #[inline]
    pub fn srtt8_us(&self) -> u32 {
        self.estimator.srtt8
    }
    /// Smoothed RTT, µs.
    #[inline]
    pub fn srtt_us(&self) -> u32 {
        self.estimator.srtt8 / 8
    }
    /// Smoothed RTT, ns.
    #[inline]
    pub fn srtt_ns(&self) -> u64 {
        u64::from(self.estimator.srtt8) * 1_000 / 8
    }
    /// Mean deviation, µs.
    pub fn deviation_us(&self) -> u32 {
        self.estimator.deviation4 / 4
    }
    /// Smallest RTT of the last 300 s, µs; `u32::MAX` before the first sample.
    #[inline]
    pub fn min_us(&self) -> u32 {
        self.minimum.get()
    }

    /// The timeout, ticks.
    #[inline]
    pub fn rto(&self) -> u64 {
        self.rto
    }
    /// Doubles the timeout (RFC 6298 §5.5).
    pub fn double(&mut self, clock: &Jiffies) {
        self.rto = (self.rto * 2).min(clock.from_micros(RTO_MAX_US));
    }
    /// A retransmission timeout has come.
    pub fn timed_out(&mut self, clock: &Jiffies) {
        self.backoff += 1;
        self.double(clock);
    }
    /// Takes the last timeout's doubling back.
    pub fn undo_doubling(&mut self) {
        self.backoff = self.backoff.saturating_sub(1);
        self.rto /= 2;
    }

    /// Another timeout without progress.
    pub fn count_timeout(&mut self) {
        self.timeouts += 1;
    }
    /// The left edge moved, or the timeouts were spurious.
    #[inline]
    pub fn progressed(&mut self) {
        self.timeouts = 0;
    }
    /// Whether the timer has expired since the left edge moved.
    #[inline]
    pub fn has_timed_out(&self) -> bool {
        self.timeouts > 0
    }

    /// The peer's window is open: window probes begin anew.
    pub fn reset_backoff(&mut self) {
        self.backoff = 0;
    }
    /// Another window probe was sent.
    pub fn count_probe(&mut self) {
        self.backoff += 1;
    }
    /// Ticks until the next window probe (RFC 9293 §3.8.6.1): doubled each time, up to 120 s.
    pub fn probe_interval(&self, clock: &Jiffies) -> u64 {
        (self.first_probe(clock) << self.backoff.min(10)).min(clock.from_micros(RTO_MAX_US))
    }
    /// Ticks until the first window probe: the timeout, at least 200 ms.
    pub fn first_probe(&self, clock: &Jiffies) -> u64 {
        self.rto.max(clock.hz_over(PROBES_A_SECOND))
    }

    /// Times that the timeout was doubled; for tests.
    #[cfg(test)]
    pub fn backoff(&self) -> u32 {
        self.backoff
    }
}

/// Least that the RTO adds to the smoothed RTT: 200 ms.
const RTO_MARGIN_MIN_US: u32 = 200_000;
/// Timeout before the first sample: 1 s (RFC 6298 §2.1).
const RTO_INITIAL_US: u64 = 1_000_000;
/// Largest timeout: 120 s.
pub(super) const RTO_MAX_US: u64 = 120_000_000;
/// Window of the smallest RTT: `net.ipv4.tcp_min_rtt_wlen`, 300 s.
const MIN_RTT_WINDOW_S: u64 = 300;
/// The least time between window probes is a fifth of a second.
const PROBES_A_SECOND: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6298 §2.2: R = 100.001 ms gives SRTT = R and RTO = R + 4 · R/2.
    #[test]
    fn the_first_sample_sets_everything() {
        let mut e = Estimator::default();
        e.sample(100_001, 0, 1);
        assert_eq!((e.srtt8 / 8, e.margin.us), (100_001, 200_002));
    }

    /// Recorded from Linux 6.1: a first sample of 100.001 ms, then ten of 50.001 ms give a smoothed RTT of 63,155 µs.
    #[test]
    fn follows_the_kernel_after_a_first_sample_of_two_rtts() {
        let mut e = Estimator::default();
        e.sample(100_001, 0, 1);
        for i in 0..10u64 {
            e.sample(50_001, 2 + i, 20 + i);
        }
        assert_eq!((e.srtt8 / 8, e.deviation4 / 4), (63_155, 23_492));
    }

    /// Four deviations of 300 ms, then round trips whose deviation is below the floor of 200 ms: the margin falls by a quarter of the difference,
    /// 300 → 300 (its own round trip) → 275 → 257 ms (rounded up to µs), and only when the left edge has passed the end of the round trip.
    #[test]
    fn the_margin_falls_by_a_quarter_each_round_trip() {
        let mut m = Margin::begin(300_000, 10);
        let falls: Vec<u32> = [(10, 20), (11, 20), (20, 30), (21, 30), (31, 40)]
            .iter()
            .map(|&(una, nxt)| {
                m.take(0, una, nxt);
                m.us
            })
            .collect();
        assert_eq!(falls, [300_000, 300_000, 300_000, 275_000, 256_250]);
    }

    /// A jump from 50 to 450 ms: error 400 ms, deviation 25 ms: it moves by a quarter of the 375 ms, four times that in the margin.
    #[test]
    fn a_rise_raises_the_margin_at_once() {
        let mut e = Estimator::default();
        e.sample(50_000, 0, 1);
        e.sample(450_000, 0, 1);
        assert_eq!((e.srtt8 / 8, e.deviation4, e.margin.us), (100_000, 100_000 + 375_000, 475_000));
    }
}
