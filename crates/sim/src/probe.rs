//! What a probe's packets tell: the account of one stream, which every engine keeps here.
//!
//! Source: RFC 3550 §6.4.1 and appendix A.8 (interarrival jitter), RFC 4737 §3.3 (reordering: a packet is reordered if one that was sent later has
//! arrived before it). How it differs: times are in ns and jitter is not rounded; of an echo it is the jitter of round trips.

use crate::output::{ProbeSummary, RttSummary};
use crate::transfers::rounded_us;
use tcpscape_base::{Duration, Histogram};

/// A probe's account.
#[derive(Clone, Debug, Default)]
pub struct ProbeMeter {
    sent: u64,
    delays: Histogram,
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
    /// A packet is sent.
    pub fn sent(&mut self) {
        self.sent += 1;
    }

    /// Packet `number` (from 0, below what was sent) has arrived, or come back, so long after it was sent. False for a copy of one that already has,
    /// which does not count.
    pub fn received(&mut self, number: u64, delay: Duration) -> bool {
        if !self.is_new(number) {
            return false;
        }
        self.delays.add(rounded_us(delay));
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

    /// The results.
    pub fn summary(&self) -> ProbeSummary {
        ProbeSummary {
            sent: self.sent,
            received: self.delays.count(),
            delay_ms: RttSummary::of(&self.delays),
            jitter_ms: self.jitter_ns / 1e6,
            reordered: self.reordered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays of 20, 36 and 36 ms: jitter 0, then 16 / 16 = 1 ms, then 1 − 1 / 16 = 0.9375 ms.
    #[test]
    fn jitter_is_that_of_the_rfc() {
        let mut meter = ProbeMeter::default();
        for (number, delay) in [20, 36, 36].into_iter().enumerate() {
            meter.sent();
            meter.received(number as u64, Duration::millis(delay));
        }
        let s = meter.summary();
        assert_eq!((s.sent, s.received, s.jitter_ms, s.delay_ms.min, s.delay_ms.max), (3, 3, 0.9375, 20.0, 36.0));
    }

    /// Of 0, 3, 1, 2, 4, the packets 1 and 2 arrive after one that was sent later.
    #[test]
    fn a_packet_behind_a_later_one_is_reordered() {
        let mut meter = ProbeMeter::default();
        for number in [0, 3, 1, 2, 4] {
            assert!(meter.received(number, Duration::millis(1)));
        }
        assert_eq!(meter.summary().reordered, 2);
    }

    #[test]
    fn a_copy_does_not_count() {
        let mut meter = ProbeMeter::default();
        let news = [0, 64, 64, 0].map(|number| meter.received(number, Duration::millis(1)));
        assert_eq!((news, meter.summary().received), ([true, true, false, false], 2));
    }

    #[test]
    fn a_probe_that_gets_nothing_has_no_delay() {
        let mut meter = ProbeMeter::default();
        meter.sent();
        let s = meter.summary();
        assert!((s.sent, s.received) == (1, 0) && s.delay_ms.p99.is_nan() && s.jitter_ms == 0.0);
    }
}
