//! Westwood+: Reno, but after a loss the window is what the measured bandwidth needs.
//!
//! **What it is.** The bytes acknowledged in each round trip (at least 50 ms) give a bandwidth, smoothed twice. When a recovery ends
//! the window and the threshold are bandwidth · RTTmin, and so is the threshold after a timeout.
//! **Source.** Mascolo et al., "TCP Westwood: bandwidth estimation for enhanced transport over wireless links", MobiCom 2001 (what a
//! duplicate ACK counts for); Grieco, Mascolo, "Performance evaluation and comparison of Westwood+, New Reno and Vegas TCP congestion control",
//! Computer Communication Review 34(2), 2004 (one sample a round trip, smoothed with ⅞).
//! **How it differs.** From the papers, as Linux is seen to do (docs/models/controls/westwood.md): time is in jiffies (10 ms at HZ 100, RTTs rounded up),
//! the bandwidth in bytes a jiffy, smoothed twice; during recovery the threshold is Reno's; the end of a recovery sets the window even when
//! the recovery was undone. From Linux: nothing known.
//! **What it does not model.** Nothing: there are no parameters.

use super::{AckSample, CaEvent, CongestionController, InAck, PktsAcked, Reno, View, Window};

/// Westwood+.
#[derive(Clone, Debug, Default)]
pub struct Westwood {
    bandwidth: Bandwidth,
    /// Jiffy in which the measurement began, and the bytes acknowledged in it.
    began: u32,
    bytes: u32,
    acked: AckedBytes,
    /// The latest RTT, jiffies.
    rtt: u32,
    /// The smallest, jiffies; none: the next one counts.
    rtt_min: Option<u32>,
    /// The last value of `rtt_min` while there is none.
    rtt_min_before: u32,
}

/// The bandwidth in bytes a jiffy, smoothed once and twice.
#[derive(Clone, Copy, Debug, Default)]
struct Bandwidth {
    once: u32,
    twice: u32,
}

impl Bandwidth {
    /// Takes a measurement; the first as it is.
    fn take(&mut self, rate: u32) {
        if self.once == 0 && self.twice == 0 {
            *self = Bandwidth { once: rate, twice: rate };
        } else {
            self.once = smoothed(self.once, rate);
            self.twice = smoothed(self.twice, self.once);
        }
    }
}

/// Bytes that ACKs stand for.
#[derive(Clone, Copy, Debug, Default)]
struct AckedBytes {
    /// How far ACKs were counted; none before the first.
    until: Option<u64>,
    /// Bytes counted for duplicate ACKs, to be taken off what a later ACK covers.
    in_advance: u32,
}

impl AckedBytes {
    /// A duplicate ACK counts one segment, which a later ACK that covers more than a segment does not count again; though each counts one.
    fn count(&mut self, covered: u32, mss: u32) -> u32 {
        if covered == 0 {
            self.in_advance = self.in_advance.wrapping_add(mss);
            mss
        } else if covered <= mss {
            covered
        } else {
            let in_advance = self.in_advance;
            self.in_advance = in_advance.saturating_sub(covered);
            covered.checked_sub(in_advance).filter(|&new| new > 0).unwrap_or(mss)
        }
    }
}

impl Westwood {
    /// Ends a measurement that has taken more than a round trip and more than 50 ms.
    fn end_measurement_if_due(&mut self, v: &View) {
        let time = v.jiffies.wrapping_sub(self.began);
        if self.rtt > 0 && time > self.rtt.max(v.hz / SHORTEST_PER_SECOND) {
            self.bandwidth.take(self.bytes / time);
            (self.bytes, self.began) = (0, v.jiffies);
        }
    }

    fn smallest_rtt(&self) -> u32 {
        self.rtt_min.unwrap_or(self.rtt_min_before)
    }

    /// The bandwidth-delay product, bandwidth · RTTmin, in packets, two at least.
    fn pipe(&self, v: &View) -> u32 {
        (self.bandwidth.twice.wrapping_mul(self.smallest_rtt()) / v.mss.max(1)).max(2)
    }
}

/// ⅞ old + ⅛ new.
fn smoothed(old: u32, new: u32) -> u32 {
    old.wrapping_mul(7).wrapping_add(new) / 8
}

impl CongestionController for Westwood {
    fn init(&mut self, v: &View, _w: &mut Window) {
        let first = FIRST_RTT_SECONDS * v.hz;
        *self = Westwood { began: v.jiffies, rtt: first, rtt_min_before: first, ..Westwood::default() };
    }

    fn ssthresh(&mut self, v: &View, w: &Window) -> u32 {
        Reno.ssthresh(v, w)
    }

    fn wants_in_ack(&self) -> bool {
        true
    }

    // The measurement that this ACK may end is without its bytes.
    fn in_ack(&mut self, v: &View, _w: &mut Window, a: InAck) {
        let covered = (v.snd_una - self.acked.until.replace(v.snd_una).unwrap_or(v.snd_una)) as u32;
        self.end_measurement_if_due(v);
        let new = if a.slow_path { self.acked.count(covered, v.mss) } else { covered };
        self.bytes = self.bytes.wrapping_add(new);
        self.rtt_min = Some(self.rtt_min.map_or(self.rtt, |smallest| smallest.min(self.rtt)));
    }

    fn pkts_acked(&mut self, v: &View, _w: &mut Window, a: &PktsAcked) {
        if a.rtt_us > 0 {
            self.rtt = v.jiffies_of(a.rtt_us as u32);
        }
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        Reno.on_ack(v, w, s);
    }

    // The paper of 2001: after a loss the window is what the bandwidth needs.
    fn on_event(&mut self, v: &View, w: &mut Window, e: CaEvent) {
        match e {
            CaEvent::CompleteCwr => {
                w.ssthresh = self.pipe(v);
                w.cwnd = w.ssthresh.min(w.clamp);
            }
            CaEvent::Loss => {
                w.ssthresh = self.pipe(v);
                self.rtt_min_before = self.smallest_rtt();
                self.rtt_min = None;
            }
            CaEvent::TxStart | CaEvent::CwndRestart => {}
        }
    }
}

/// A measurement takes at least 1/20 s.
const SHORTEST_PER_SECOND: u32 = 20;
/// The RTT before the first sample, s.
const FIRST_RTT_SECONDS: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(jiffies: u32, snd_una: u64) -> View {
        View { is_cwnd_limited: true, hz: 100, mss: 1_000, jiffies, snd_una, ..View::default() }
    }

    fn rtt(w: &mut Westwood, ms: i64) {
        w.pkts_acked(&at(0, 0), &mut Window::default(), &PktsAcked { pkts_acked: 1, rtt_us: ms * 1_000, in_flight: 0 });
    }

    fn ack(w: &mut Westwood, jiffies: u32, snd_una: u64, slow_path: bool) {
        w.in_ack(&at(jiffies, snd_una), &mut Window::default(), InAck { slow_path, ..Default::default() });
    }

    #[test]
    fn bandwidth_is_measured_over_a_round_trip_or_50_ms() {
        let mut w = Westwood::default();
        w.init(&at(0, 1), &mut Window::default());
        rtt(&mut w, 21);
        ack(&mut w, 1, 1_001, false);
        ack(&mut w, 5, 61_001, false);
        assert_eq!((w.bytes, w.bandwidth.twice), (60_000, 0));
        // The sixth jiffy: 60,000 B / 6; this ACK's bytes belong to the next measurement.
        ack(&mut w, 6, 62_001, false);
        assert_eq!((w.bytes, w.bandwidth.once, w.bandwidth.twice), (1_000, 10_000, 10_000));
        // 18,000 B / 6 = 3,000: (7 · 10,000 + 3,000) / 8 = 9,125, then (70,000 + 9,125) / 8 = 9,890.
        ack(&mut w, 10, 79_001, false);
        ack(&mut w, 12, 79_001, false);
        assert_eq!((w.bandwidth.once, w.bandwidth.twice), (9_125, 9_890));
        // 9,890 B a jiffy times 3 jiffies are 29 packets.
        assert_eq!((w.rtt_min, w.pipe(&at(12, 0))), (Some(3), 29));
    }

    /// 10,000 and then 3,000 for ever: ⅞ · 10,000 + ⅛ · 3,000 = 9,125, and ⅞ of the way from that again.
    #[test]
    fn the_bandwidth_is_smoothed_twice() {
        let mut b = Bandwidth::default();
        let mut take = |rate| (b.take(rate), (b.once, b.twice)).1;
        assert_eq!([take(10_000), take(3_000), take(3_000)], [(10_000, 10_000), (9_125, 9_890), (8_359, 9_698)]);
    }

    #[test]
    fn duplicates_count_a_segment_and_are_taken_off_later() {
        let mut w = Westwood::default();
        w.init(&at(0, 1), &mut Window::default());
        ack(&mut w, 1, 1_001, true);
        // The first ACK only says where to begin: a duplicate, one segment.
        assert_eq!((w.bytes, w.acked.in_advance), (1_000, 1_000));
        ack(&mut w, 1, 1_001, true);
        ack(&mut w, 1, 1_001, true);
        // 3 segments counted; an ACK over 2 takes 2 of them off and counts as one, one over a single segment counts itself,
        // one over 4 counts 3.
        ack(&mut w, 1, 3_001, true);
        assert_eq!((w.bytes, w.acked.in_advance), (4_000, 1_000));
        ack(&mut w, 1, 4_001, true);
        ack(&mut w, 1, 8_001, true);
        assert_eq!((w.bytes, w.acked.in_advance), (8_000, 0));
        // On the fast path nothing is taken off, and a duplicate counts nothing.
        ack(&mut w, 1, 8_001, false);
        assert_eq!(w.bytes, 8_000);
    }

    #[test]
    fn the_end_of_a_recovery_and_a_timeout_use_the_bandwidth() {
        let (mut c, mut w) = (Westwood::default(), Window { cwnd: 50, ..Window::default() });
        c.init(&at(0, 1), &mut w);
        assert_eq!((c.ssthresh(&at(0, 1), &w), c.rtt), (25, 2_000));
        (c.bandwidth.twice, c.rtt_min) = (10_000, Some(4));
        c.on_event(&at(9, 1), &mut w, CaEvent::CompleteCwr);
        assert_eq!((w.cwnd, w.ssthresh), (40, 40));
        c.bandwidth.twice = 5_000;
        c.on_event(&at(9, 1), &mut w, CaEvent::Loss);
        assert_eq!((w.cwnd, w.ssthresh), (40, 20));
        // Until the next ACK the old smallest RTT stays, then the latest counts.
        assert_eq!(c.pipe(&at(9, 1)), 20);
        rtt(&mut c, 100);
        ack(&mut c, 10, 1, false);
        assert_eq!(c.rtt_min, Some(10));
    }

    #[test]
    fn without_a_measurement_two_packets_are_left() {
        let (mut c, mut w) = (Westwood::default(), Window { cwnd: 50, ..Window::default() });
        c.init(&at(0, 1), &mut w);
        c.on_event(&at(9, 1), &mut w, CaEvent::CompleteCwr);
        assert_eq!((w.cwnd, w.ssthresh), (2, 2));
    }
}
