//! What a probe's packets tell: the account of one stream, which every engine keeps here.
//!
//! Source: RFC 3550 §6.4.1 and appendix A.8 (interarrival jitter), RFC 4737 §3.3 (reordering: a packet is reordered if one that was sent later has
//! arrived before it). How it differs: times are in ns and jitter is not rounded; of an echo it is the jitter of round trips.

use crate::results::{ProbeSummary, RttSummary};
use crate::transfers::rounded_us;
use tcpscape_base::{Duration, Histogram};

/// A probe's account.
#[derive(Clone, Debug, Default)]
pub struct ProbeMeter {
    /// When packet 0 is sent, and from one packet to the next, ns.
    start_ns: u64,
    interval_ns: u64,
    /// When each packet was sent where that is not even, ns.
    times_ns: Vec<u64>,
    sent: u64,
    delays: Histogram,
    /// The longest delay of all, ns.
    longest_ns: u64,
    /// Delay of the packet that arrived last, ns.
    last_ns: Option<u64>,
    jitter_ns: f64,
    /// The number after the largest that has arrived.
    next: u64,
    /// A bit for each number that has arrived.
    arrived: Vec<u64>,
    reordered: u64,
}

impl ProbeMeter {
    /// The account of a probe whose packet k is sent at `start_ns + k · interval_ns`; the interval is above 0.
    pub fn new(start_ns: u64, interval_ns: u64) -> ProbeMeter {
        ProbeMeter { start_ns, interval_ns, ..ProbeMeter::default() }
    }

    /// A packet is sent.
    pub fn sent(&mut self) {
        self.sent += 1;
    }

    /// A packet is sent at `t_ns`, of a stream whose packets are not sent at even intervals.
    pub fn sent_at(&mut self, t_ns: u64) {
        self.times_ns.push(t_ns);
        self.sent += 1;
    }

    /// Packet `number` (from 0, below what was sent) has arrived, or come back, so long after it was sent. False for a copy of one that already has,
    /// which does not count.
    pub fn received(&mut self, number: u64, delay: Duration) -> bool {
        if !self.is_new(number) {
            return false;
        }
        self.delays.add(rounded_us(delay));
        self.longest_ns = self.longest_ns.max(delay.0);
        if let Some(last) = self.last_ns.replace(delay.0) {
            self.jitter_ns += (delay.0.abs_diff(last) as f64 - self.jitter_ns) / 16.0;
        }
        if number < self.next {
            self.reordered += 1;
        } else {
            self.next = number + 1;
        }
        true
    }

    /// Notes the number; whether it had not come before.
    fn is_new(&mut self, number: u64) -> bool {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if self.arrived.len() <= word {
            self.arrived.resize(word + 1, 0);
        }
        let before = self.arrived[word];
        self.arrived[word] |= bit;
        before & bit == 0
    }

    /// Packets that had the time to arrive by `end_ns`: those sent more than the longest delay of the trial before it. All, where nothing arrived.
    fn due(&self, end_ns: u64) -> u64 {
        let before_ns = end_ns.saturating_sub(self.longest_ns);
        if !self.times_ns.is_empty() {
            return self.times_ns.partition_point(|&t| t < before_ns) as u64;
        }
        let since_first = before_ns.saturating_sub(self.start_ns);
        since_first.div_ceil(self.interval_ns.max(1)).min(self.sent)
    }

    /// How many of the first `count` packets have arrived.
    fn arrived_of(&self, count: u64) -> u64 {
        let (words, rest) = ((count / 64) as usize, count % 64);
        let whole: u64 = self.arrived.iter().take(words).map(|word| u64::from(word.count_ones())).sum();
        whole + self.arrived.get(words).map_or(0, |word| u64::from((word & ((1 << rest) - 1)).count_ones()))
    }

    /// The results of a trial that ended at `end_ns`.
    pub fn summary(&self, end_ns: u64) -> ProbeSummary {
        let due = self.due(end_ns);
        ProbeSummary {
            sent: self.sent,
            received: self.delays.count(),
            due,
            lost: due - self.arrived_of(due),
            delay_ms: RttSummary::of(&self.delays),
            jitter_ms: self.jitter_ns / 1e6,
            reordered: self.reordered,
            media_bytes: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays of 20, 36 and 36 ms: jitter 0, then 16 / 16 = 1 ms, then 1 − 1 / 16 = 0.9375 ms.
    #[test]
    fn jitter_is_that_of_the_rfc() {
        let mut meter = ProbeMeter::new(0, 20_000_000);
        for (number, delay) in [20, 36, 36].into_iter().enumerate() {
            meter.sent();
            meter.received(number as u64, Duration::millis(delay));
        }
        let s = meter.summary(76_000_000);
        assert_eq!((s.sent, s.received, s.jitter_ms, s.delay_ms.min, s.delay_ms.max), (3, 3, 0.9375, 20.0, 36.0));
    }

    /// Of 0, 3, 1, 2, 4, the packets 1 and 2 arrive after one that was sent later.
    #[test]
    fn a_packet_behind_a_later_one_is_reordered() {
        let mut meter = ProbeMeter::default();
        for number in [0, 3, 1, 2, 4] {
            assert!(meter.received(number, Duration::millis(1)));
        }
        assert_eq!(meter.summary(0).reordered, 2);
    }

    #[test]
    fn a_copy_does_not_count() {
        let mut meter = ProbeMeter::default();
        let news = [0, 64, 64, 0].map(|number| meter.received(number, Duration::millis(1)));
        assert_eq!((news, meter.summary(0).received), ([true, true, false, false], 2));
    }

    #[test]
    fn a_probe_that_gets_nothing_has_no_delay() {
        let mut meter = ProbeMeter::default();
        meter.sent();
        let s = meter.summary(1_000_000_000);
        assert!((s.sent, s.received, s.due, s.lost) == (1, 0, 1, 1) && s.delay_ms.p99.is_nan() && s.jitter_ms == 0.0);
    }

    /// The account at the end of 1 s of a probe that sends at 0, 10, … 990 ms, of which those arrive that have a delay, ms.
    fn account(delay_of: impl Fn(u64) -> Option<u64>) -> (u64, u64, u64, u64) {
        let mut meter = ProbeMeter::new(0, 10_000_000);
        for number in 0..100 {
            meter.sent();
            if let Some(delay) = delay_of(number).filter(|delay| number * 10 + delay < 1_000) {
                meter.received(number, Duration::millis(delay));
            }
        }
        let s = meter.summary(1_000_000_000);
        (s.sent, s.received, s.due, s.lost)
    }

    /// With a delay of 400 ms those of 0 to 590 ms arrive, and the others, under way at the end, are not lost.
    #[test]
    fn what_is_under_way_at_the_end_is_not_lost() {
        assert_eq!(account(|_| Some(400)), (100, 60, 60, 0));
    }

    /// Every fifth of those that had the time to arrive is lost: of the numbers 0 to 59 those are 0, 5, … 55.
    #[test]
    fn the_share_that_is_lost_is_of_those_that_had_the_time() {
        assert_eq!(account(|number| (number % 5 > 0).then_some(400)), (100, 48, 60, 12));
    }

    /// From 500 ms on nothing arrives, after delays of 100 ms: all that were sent from 500 to 890 ms are lost.
    #[test]
    fn a_path_that_dies_before_the_end_hides_no_loss() {
        assert_eq!(account(|number| (number < 50).then_some(100)), (100, 50, 90, 40));
    }

    /// Delays grow from 50 ms by 4 ms a packet: number 67 comes at 988 ms after 318 ms. Number 68, sent 320 ms before the end, would have been the slowest of
    /// all; it alone counts as lost, not the 31 after it.
    #[test]
    fn in_a_growing_queue_at_most_the_slowest_is_lost() {
        assert_eq!(account(|number| Some(50 + 4 * number)), (100, 68, 69, 1));
    }
}
