//! How fast the path delivers: one sample for each ACK.
//!
//! Source: draft-cheng-iccrg-delivery-rate-estimation §3 (send rate and ACK rate, whichever is lower; application-limited phases).
//! How it differs: nothing known. Not modelled: the estimate in bytes.

use super::flight::{Departure, Sampled};
use crate::cc::RateSample;

/// The rate estimator of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveryRate {
    /// Packets delivered so far, on a counter that wraps.
    delivered: u32,
    /// Of those, packets whose ACK echoed congestion, or packets said to be marked where feedback is accurate.
    delivered_ce: u32,
    /// When `delivered` last grew, µs.
    delivered_us: u64,
    /// When the packet that was sampled last had been sent, µs.
    first_sent_us: u64,
    /// The count of deliveries that ends the phase limited by the application.
    app_limited_until: Option<u32>,
    /// The last sample that shows what the path can do.
    rate: Rate,
}

/// So many packets in so many µs; nothing in none before the first sample.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    packets: u32,
    us: u32,
}

impl DeliveryRate {
    /// Before the handshake. Until something was sampled, the connection counts as limited by the application.
    pub fn new() -> DeliveryRate {
        let app_limited_until = Some(u32::MAX);
        DeliveryRate { delivered: 0, delivered_ce: 0, delivered_us: 0, first_sent_us: 0, app_limited_until, rate: Rate::default() }
    }

    /// The handshake has delivered the SYN, at `now_us`.
    pub fn established(&mut self, now_us: u64, syn_was_marked: bool) {
        *self = DeliveryRate { delivered: 1, delivered_ce: u32::from(syn_was_marked), delivered_us: now_us, ..*self };
    }

    /// Packets delivered so far.
    #[inline]
    pub fn delivered(&self) -> u32 {
        self.delivered
    }
    /// Packets delivered under congestion.
    #[inline]
    pub fn delivered_ce(&self) -> u32 {
        self.delivered_ce
    }
    /// When `delivered` last grew, µs.
    #[inline]
    pub fn delivered_us(&self) -> u64 {
        self.delivered_us
    }
    /// The count of deliveries that ends the present application-limited phase, 0 outside one.
    #[inline]
    pub fn app_limited_until(&self) -> u32 {
        self.app_limited_until.unwrap_or(0)
    }
    /// The latest estimate, bytes a second for packets of `mss`.
    pub fn bytes_per_second(&self, mss: u32) -> u64 {
        let Rate { packets, us } = self.rate;
        (u64::from(packets) * u64::from(mss) * 1_000_000).checked_div(us.into()).unwrap_or(0)
    }

    /// `n` packets were delivered.
    #[inline]
    pub fn count(&mut self, n: u32, congested: bool) {
        self.delivered = self.delivered.wrapping_add(n);
        if congested {
            self.delivered_ce = self.delivered_ce.wrapping_add(n);
        }
    }
    /// Accurate feedback tells of `n` marked packets.
    #[inline]
    pub fn count_marks(&mut self, n: u32) {
        self.delivered_ce = self.delivered_ce.wrapping_add(n);
    }

    /// The application has nothing more to send while `in_flight` packets are in the network (§3.4).
    pub fn limit_by_application(&mut self, in_flight: u32) {
        self.app_limited_until = Some(self.delivered.wrapping_add(in_flight).max(1));
    }

    /// What a packet that leaves at `sent_ns` notes (§3.2); `idle` if nothing else is in flight, which begins new intervals.
    #[inline]
    pub fn depart(&mut self, sent_ns: u64, idle: bool, lost: u32) -> Departure {
        if idle {
            self.first_sent_us = sent_ns / 1_000;
            self.delivered_us = sent_ns / 1_000;
        }
        Departure {
            sent_ns,
            delivered: self.delivered,
            lost,
            delivered_us: self.delivered_us,
            first_sent_us: self.first_sent_us,
            app_limited: self.app_limited_until.is_some(),
        }
    }

    /// The packet that gives this ACK's sample: later packets measure their sending interval from it.
    #[inline]
    pub fn sampled(&mut self, s: &Sampled) {
        self.first_sent_us = s.sent.us;
    }

    /// The sample of an ACK at `now_us` (§3.3). `grown` packets were delivered by it; `usable` is false after SACKs were forgotten.
    /// Counts of losses and of packets in flight are the caller's.
    #[inline]
    pub fn sample(&mut self, sampled: Option<&Sampled>, grown: u32, now_us: u64, min_rtt_us: u32, usable: bool) -> RateSample {
        if self.app_limited_until.is_some_and(|end| (end.wrapping_sub(self.delivered) as i32) < 0) {
            self.app_limited_until = None;
        }
        if grown > 0 {
            self.delivered_us = now_us;
        }
        let mut sample = RateSample { delivered: -1, interval_us: -1, acked_sacked: grown, ..RateSample::default() };
        let Some(p) = sampled else { return sample };
        sample.prior_delivered = p.delivered_then;
        sample.prior_mstamp = p.delivered_then_us;
        sample.tx_in_flight = p.in_flight_then;
        sample.is_app_limited = p.app_limited;
        sample.is_retrans = p.resent;
        if !usable {
            return sample;
        }
        let packets = self.delivered.wrapping_sub(p.delivered_then);
        sample.delivered = packets as i32;
        let interval_us = p.send_interval_us.max(now_us.saturating_sub(p.delivered_then_us));
        // Faster than the path can answer: the packet had been marked lost too early (§3.3), and there is no interval.
        if interval_us >= u64::from(min_rtt_us) {
            sample.interval_us = interval_us as i64;
            let best = self.rate;
            if !p.app_limited || u64::from(packets) * u64::from(best.us) >= u64::from(best.packets) * interval_us {
                self.rate = Rate { packets, us: interval_us as u32 };
            }
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::super::flight::Transmission;
    use super::*;

    fn sampled(d: &Departure, send_interval_us: u64) -> Sampled {
        Sampled {
            sent: Transmission { us: d.sent_ns / 1_000, end: 0 },
            delivered_then: d.delivered,
            delivered_then_us: d.delivered_us,
            send_interval_us,
            in_flight_then: 0,
            lost_then: 0,
            app_limited: d.app_limited,
            resent: false,
        }
    }

    /// §3.3: ten packets, sent over 2 ms, delivered over 5 ms: the slower side, 10 packets in 5 ms. Sent over 8 ms: 10 packets in 8 ms.
    #[test]
    fn the_slower_of_sending_and_delivering_is_the_rate() {
        let mut r = DeliveryRate::new();
        r.established(1_000, false);
        let d = r.depart(10_000_000, true, 0);
        r.count(10, false);
        let s = r.sample(Some(&sampled(&d, 2_000)), 10, 15_000, 1_000, true);
        assert_eq!((s.delivered, s.interval_us), (10, 5_000));
        assert_eq!(r.bytes_per_second(1_000), 2_000_000);
        let s = r.sample(Some(&sampled(&d, 8_000)), 10, 15_000, 1_000, true);
        assert_eq!((s.delivered, s.interval_us), (10, 8_000));
    }

    #[test]
    fn an_interval_below_the_smallest_rtt_is_no_sample() {
        let mut r = DeliveryRate::new();
        let d = r.depart(10_000_000, true, 0);
        r.count(1, false);
        assert_eq!(r.sample(Some(&sampled(&d, 0)), 1, 10_500, 1_000, true).interval_us, -1);
        assert_eq!(r.bytes_per_second(1_000), 0);
    }

    /// §3.4: the phase ends when what was in flight then has been delivered; until then only a higher rate counts.
    #[test]
    fn application_limited_samples_count_only_upwards() {
        let mut r = DeliveryRate::new();
        r.established(0, false);
        let d = r.depart(1_000_000, true, 0);
        r.count(10, false);
        r.sample(Some(&sampled(&d, 0)), 10, 2_000, 1, true);
        r.limit_by_application(2);
        let slow = r.depart(10_000_000, true, 0);
        assert!(slow.app_limited && r.app_limited_until() == 13);
        r.count(2, false);
        r.sample(Some(&sampled(&slow, 0)), 2, 20_000, 1, true);
        assert_eq!(r.bytes_per_second(1), 10_000);
        r.count(1, false);
        r.sample(None, 1, 21_000, 1, true);
        assert_eq!(r.app_limited_until(), 0);
    }
}
