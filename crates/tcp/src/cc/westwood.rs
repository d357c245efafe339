//! Westwood+: Reno, but after a loss the window is what the measured bandwidth needs.
//!
//! **What it is.** The bytes acknowledged in each round trip (at least 50 ms) give a bandwidth, smoothed twice. When a recovery ends
//! the window and the threshold are bandwidth · RTTmin, and so is the threshold after a timeout.
//! **Source.** Mascolo et al., "TCP Westwood: bandwidth estimation for enhanced transport over wireless links", MobiCom 2001;
//! Grieco, Mascolo, "Performance evaluation and comparison of Westwood+, New Reno and Vegas TCP congestion control",
//! Computer Communication Review 34(2), 2004; Linux 6.1's `tcp_westwood.c`: `westwood_update_window()`,
//! `westwood_acked_count()`, `tcp_westwood_event()`.
//! **How it differs.** From the papers, as Linux does: time is in jiffies (10 ms at HZ 100, RTTs rounded up), the bandwidth in
//! bytes a jiffy; during recovery the threshold is Reno's; the end of a recovery sets the window even when the recovery
//! was undone. From Linux: nothing known.
//! **What it does not model.** Nothing: Linux's has no parameters.

use super::{AckSample, CaEvent, CongestionController, InAck, PktsAcked, Reno, Snapshot, View, Window};

/// Westwood+.
#[derive(Clone, Debug, Default)]
pub struct Westwood {
    /// Bandwidth smoothed once and twice, bytes a jiffy (`bw_ns_est`, `bw_est`).
    once: u32,
    bandwidth: u32,
    /// Jiffy in which the measurement began (`rtt_win_sx`).
    began: u32,
    /// Bytes acknowledged in it (`bk`).
    bytes: u32,
    /// How far ACKs were counted; none before the first (`snd_una`, `first_ack`).
    counted: Option<u64>,
    /// Bytes counted for duplicate ACKs, to be taken off what a later ACK covers (`accounted`).
    advanced: u32,
    /// The latest RTT, jiffies.
    rtt: u32,
    /// The smallest, jiffies; none: the next one counts (`rtt_min`, `reset_rtt_min`).
    rtt_min: Option<u32>,
    /// The last value of `rtt_min` while there is none.
    rtt_min_before: u32,
}

impl Westwood {
    /// A new one.
    pub fn new() -> Westwood {
        Westwood::default()
    }

    /// Ends a measurement whose time has come (`westwood_update_window()`).
    fn measure(&mut self, v: &View) {
        let time = v.jiffies.wrapping_sub(self.began);
        if self.rtt == 0 || time <= self.rtt.max(v.hz / SHORTEST_PER_SECOND) {
            return;
        }
        let rate = self.bytes / time;
        if self.once == 0 && self.bandwidth == 0 {
            (self.once, self.bandwidth) = (rate, rate);
        } else {
            self.once = smoothed(self.once, rate);
            self.bandwidth = smoothed(self.bandwidth, self.once);
        }
        (self.bytes, self.began) = (0, v.jiffies);
    }

    /// Bytes that an ACK of the slow path stands for: a duplicate one segment, which a later ACK over more than a segment does not
    /// count again (`westwood_acked_count()`).
    fn acked(&mut self, v: &View, covered: u32) -> u32 {
        if covered == 0 {
            self.advanced = self.advanced.wrapping_add(v.mss);
            return v.mss;
        }
        if covered <= v.mss {
            return covered;
        }
        if self.advanced >= covered {
            self.advanced -= covered;
            v.mss
        } else {
            covered - std::mem::take(&mut self.advanced)
        }
    }

    /// bandwidth · RTTmin in packets (`tcp_westwood_bw_rttmin()`).
    fn pipe(&self, v: &View) -> u32 {
        let rtt = self.rtt_min.unwrap_or(self.rtt_min_before);
        (self.bandwidth.wrapping_mul(rtt) / v.mss.max(1)).max(2)
    }
}

/// ⅞ old + ⅛ new.
fn smoothed(old: u32, new: u32) -> u32 {
    old.wrapping_mul(7).wrapping_add(new) >> 3
}

impl CongestionController for Westwood {
    fn name(&self) -> &'static str {
        "westwood"
    }

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

    // Linux: tcp_westwood_ack()
    fn in_ack(&mut self, v: &View, _w: &mut Window, a: InAck) {
        let counted = *self.counted.get_or_insert(v.snd_una);
        self.measure(v);
        let covered = (v.snd_una - counted) as u32;
        let n = if a.slow_path { self.acked(v, covered) } else { covered };
        self.bytes = self.bytes.wrapping_add(n);
        self.counted = Some(v.snd_una);
        self.rtt_min = Some(self.rtt_min.map_or(self.rtt, |r| r.min(self.rtt)));
    }

    fn pkts_acked(&mut self, v: &View, _w: &mut Window, a: &PktsAcked) {
        if a.rtt_us > 0 {
            self.rtt = v.jiffies_of(a.rtt_us as u32);
        }
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        Reno.on_ack(v, w, s);
    }

    // Linux: tcp_westwood_event()
    fn on_event(&mut self, v: &View, w: &mut Window, e: CaEvent) {
        match e {
            CaEvent::CompleteCwr => {
                w.ssthresh = self.pipe(v);
                w.cwnd = w.ssthresh.min(w.clamp);
            }
            CaEvent::Loss => {
                w.ssthresh = self.pipe(v);
                if let Some(r) = self.rtt_min.take() {
                    self.rtt_min_before = r;
                }
            }
            CaEvent::TxStart | CaEvent::CwndRestart => {}
        }
    }

    fn snapshot(&self) -> Snapshot {
        let rtt_min = self.rtt_min.unwrap_or(self.rtt_min_before);
        vec![("bytes_per_jiffy", self.bandwidth.into()), ("rtt_min_jiffies", rtt_min.into())]
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
        let mut w = Westwood::new();
        w.init(&at(0, 1), &mut Window::default());
        rtt(&mut w, 21);
        ack(&mut w, 1, 1_001, false);
        ack(&mut w, 5, 61_001, false);
        assert_eq!((w.bytes, w.bandwidth), (60_000, 0));
        // The sixth jiffy: 60,000 B / 6; this ACK's bytes belong to the next measurement.
        ack(&mut w, 6, 62_001, false);
        assert_eq!((w.bytes, w.once, w.bandwidth), (1_000, 10_000, 10_000));
        // 18,000 B / 6 = 3,000: (7 · 10,000 + 3,000) / 8 = 9,125, then (70,000 + 9,125) / 8 = 9,890.
        ack(&mut w, 10, 79_001, false);
        ack(&mut w, 12, 79_001, false);
        assert_eq!((w.once, w.bandwidth), (9_125, 9_890));
        // 9,890 B a jiffy times 3 jiffies are 29 packets.
        assert_eq!((w.rtt_min, w.pipe(&at(12, 0))), (Some(3), 29));
    }

    #[test]
    fn duplicates_count_a_segment_and_are_taken_off_later() {
        let mut w = Westwood::new();
        w.init(&at(0, 1), &mut Window::default());
        ack(&mut w, 1, 1_001, true);
        // The first ACK only says where to begin: a duplicate, one segment.
        assert_eq!((w.bytes, w.advanced), (1_000, 1_000));
        ack(&mut w, 1, 1_001, true);
        ack(&mut w, 1, 1_001, true);
        // 3 segments counted; an ACK over 2 takes 2 of them off and counts as one, one over a single segment counts itself,
        // one over 4 counts 3.
        ack(&mut w, 1, 3_001, true);
        assert_eq!((w.bytes, w.advanced), (4_000, 1_000));
        ack(&mut w, 1, 4_001, true);
        ack(&mut w, 1, 8_001, true);
        assert_eq!((w.bytes, w.advanced), (8_000, 0));
        // On the fast path nothing is taken off, and a duplicate counts nothing.
        ack(&mut w, 1, 8_001, false);
        assert_eq!(w.bytes, 8_000);
    }

    #[test]
    fn the_end_of_a_recovery_and_a_timeout_use_the_bandwidth() {
        let (mut c, mut w) = (Westwood::new(), Window { cwnd: 50, ..Window::default() });
        c.init(&at(0, 1), &mut w);
        assert_eq!((c.ssthresh(&at(0, 1), &w), c.rtt), (25, 2_000));
        (c.bandwidth, c.rtt_min) = (10_000, Some(4));
        c.on_event(&at(9, 1), &mut w, CaEvent::CompleteCwr);
        assert_eq!((w.cwnd, w.ssthresh), (40, 40));
        c.bandwidth = 5_000;
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
        let (mut c, mut w) = (Westwood::new(), Window { cwnd: 50, ..Window::default() });
        c.init(&at(0, 1), &mut w);
        c.on_event(&at(9, 1), &mut w, CaEvent::CompleteCwr);
        assert_eq!((w.cwnd, w.ssthresh), (2, 2));
    }
}
