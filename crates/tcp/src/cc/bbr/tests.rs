use super::model::HIGH_GAIN;
use super::*;
use crate::cc::Counts;
use tcpscape_base::{Duration, Time};

/// A connection with 100 ms of RTT whose ACKs are written by hand.
struct Run {
    b: Bbr,
    w: Window,
    v: View,
}

impl Run {
    fn new() -> Run {
        let v =
            View { now: Time(1_000_000_000), hz: 100, jiffies: 5_000, mss: 1448, srtt_us: 800_000, min_rtt_us: 100_000, ..View::default() };
        let mut r = Run { b: Bbr::new(1), w: Window::default(), v };
        r.b.init(&r.v, &mut r.w);
        r
    }

    fn wait(&mut self, ms: u64) {
        self.v.now += Duration::millis(ms);
        self.v.jiffies = 5_000 + (self.v.now.millis() / 10) as u32 - 100;
    }

    /// `ms` later an ACK for `n` packets, the first of them sent `flight` deliveries ago.
    fn ack(&mut self, ms: u64, n: u32, flight: u32, change: impl Fn(&mut RateSample)) {
        self.wait(ms);
        let prior_delivered = self.v.counts.delivered + n - flight;
        self.v.counts.delivered += n;
        self.v.counts.delivered_us = self.v.now.micros();
        let mut rate = RateSample {
            prior_delivered,
            delivered: flight as i32,
            interval_us: 100_000,
            rtt_us: 100_000,
            acked_sacked: n,
            prior_in_flight: self.v.in_flight + n,
            ..RateSample::default()
        };
        change(&mut rate);
        self.v.counts.lost += rate.losses;
        self.b.on_ack(&self.v, &mut self.w, &AckSample { acked: n, ack: 0, may_raise: true, rate });
    }

    /// A whole round trip of `n` packets in one ACK.
    fn round(&mut self, n: u32) {
        self.ack(100, n, n, |_| {});
    }

    fn rounds(&mut self, n: &[u32]) {
        n.iter().for_each(|&n| self.round(n));
    }

    /// In PROBE_BW at 80 packets a round trip, in phase `phase`, which begins now.
    fn probing(phase: usize) -> Run {
        let mut r = Run::new();
        r.rounds(&[10, 20, 40, 80, 80, 80, 80]);
        r.b.mode = Mode::ProbeBw { phase, since: r.v.counts.delivered_us };
        r.b.update_gains();
        r
    }

    fn phase(&self) -> Option<usize> {
        match self.b.mode {
            Mode::ProbeBw { phase, .. } => Some(phase),
            _ => None,
        }
    }
}

/// 10 packets in 100 ms: 1,677/2^24 packets/µs, · 1,448 B · 739/256 · 0.99 = 413,638 B/s.
#[test]
fn the_first_rate_is_the_high_gain_on_the_first_window() {
    let r = Run::new();
    assert_eq!(HIGH_GAIN, 739);
    assert_eq!((r.w.pacing_rate, r.w.paced), (413_638, true));
    assert_eq!((r.b.min_tso_segs(&r.w), r.b.min_tso_segs(&Window { pacing_rate: 149_999, ..r.w })), (2, 1));
}

/// The pipe is full after three rounds at 80 packets. They are 80 in flight; with 3 · 2 for bursts 86.
#[test]
fn startup_finds_the_plateau_and_drain_the_bdp() {
    let mut r = Run::new();
    r.v.in_flight = 200;
    r.rounds(&[10, 20, 40, 80, 80, 80]);
    assert_eq!((r.b.mode, r.b.full.rounds, r.b.pacing_gain), (Mode::Startup, 2, HIGH_GAIN));
    // 800 packets/s · 1,448 B · 2.887 · 0.99 = 3.31 MB/s.
    assert!((3_305_000..3_315_000).contains(&r.w.pacing_rate), "{}", r.w.pacing_rate);
    r.round(80);
    assert_eq!((r.b.mode, r.w.ssthresh, r.b.pacing_gain), (Mode::Drain, 86, 88));
    r.v.in_flight = 87;
    r.ack(10, 1, 1, |s| s.interval_us = 10_000);
    assert_eq!(r.b.mode, Mode::Drain);
    r.v.in_flight = 86;
    r.ack(10, 1, 1, |s| s.interval_us = 10_000);
    assert!(r.phase().is_some_and(|p| p != 1));
}

#[test]
fn before_the_pipe_is_full_the_rate_does_not_fall_and_the_window_only_grows() {
    let mut r = Run::new();
    r.rounds(&[10, 20]);
    let (rate, cwnd) = (r.w.pacing_rate, r.w.cwnd);
    r.round(2);
    assert!(r.w.pacing_rate == rate && r.w.cwnd >= cwnd);
}

/// The gain of 5/4 lasts an RTT and until 80 · 5/4 + 6 + 2 = 108 packets are in flight, or a loss; 3/4 until 86 or an RTT.
#[test]
fn phases_end_by_time_loss_and_inflight() {
    let after = |phase, ms, in_flight: u32, losses| {
        let mut r = Run::probing(phase);
        r.v.in_flight = in_flight - 8;
        r.ack(ms, 8, 80, |s| s.losses = losses);
        r.phase().unwrap()
    };
    // With the packets of the next burst, 106 are 108.
    assert_eq!([after(0, 101, 105, 0), after(0, 101, 106, 0), after(0, 101, 90, 1), after(0, 100, 120, 1)], [0, 1, 1, 0]);
    assert_eq!([after(1, 10, 87, 0), after(1, 10, 86, 0), after(1, 101, 99, 0)], [1, 2, 2]);
    assert_eq!([after(5, 100, 80, 0), after(5, 101, 80, 0), after(7, 101, 80, 0)], [5, 6, 0]);
}

/// Two BDPs, what ACKs bring in lumps but at most 100 ms of it, 3 · 2 for bursts, made even: 160 + 79 + 6 + 1.
#[test]
fn the_window_is_two_bdps_and_the_aggregation() {
    let mut r = Run::probing(3);
    r.rounds(&[80, 80, 80]);
    assert!(r.b.aggregation.excess() >= 80);
    assert_eq!(r.w.cwnd, 246);
}

/// Packets that wait for their departure count less: 10 ms at 800/s are 8 packets (7.99 rounded down).
#[test]
fn inflight_is_that_at_the_next_departure() {
    let mut r = Run::probing(3);
    r.v.pacing_next_ns = r.v.now.0 + 10_000_000;
    assert_eq!(r.b.inflight_at_departure(&r.v, &r.w, 50), 43);
    r.b.pacing_gain = 320;
    assert_eq!(r.b.inflight_at_departure(&r.v, &r.w, 50), 45);
}

#[test]
fn probe_rtt_holds_four_packets_for_200_ms_and_a_round() {
    let mut r = Run::probing(3);
    r.round(80);
    let cwnd = r.w.cwnd + 10;
    r.b.recovery.cwnd = cwnd;
    r.wait(10_100);
    r.v.in_flight = 80;
    r.ack(0, 1, 80, |s| s.rtt_us = 120_000);
    assert!(matches!(r.b.mode, Mode::ProbeRtt { until: None, .. }));
    assert_eq!((r.w.cwnd, r.b.min_rtt.rtt), (4, 120_000));
    r.v.in_flight = 4;
    r.ack(50, 1, 80, |_| {});
    assert!(matches!(r.b.mode, Mode::ProbeRtt { until: Some(_), .. }));
    // 200 ms are 20 jiffies, to be exceeded; what was sent at this rate does not lower the bandwidth.
    let bw = r.b.bw();
    for _ in 0..2 {
        r.round(4);
        assert_eq!(r.w.cwnd, 4);
    }
    for _ in 0..12 {
        r.ack(0, 4, 4, |_| {});
    }
    r.ack(10, 4, 4, |_| {});
    // A larger window saved earlier is kept; the target caps it, less what aggregation has lost in the meantime.
    assert_eq!((r.b.recovery.cwnd, r.phase().is_some()), (cwnd, true));
    assert!((166..=cwnd).contains(&r.w.cwnd), "{}", r.w.cwnd);
    assert_eq!((r.b.bw(), r.b.min_rtt.rtt), (bw, 100_000));
}

#[test]
fn a_delayed_ack_does_not_replace_an_expired_minimum() {
    let mut r = Run::probing(3);
    r.wait(10_100);
    r.ack(0, 1, 80, |s| (s.rtt_us, s.is_ack_delayed) = (150_000, true));
    assert_eq!(r.b.min_rtt.rtt, 100_000);
}

/// One packet per ms expected: ten at once are ten more than none, twenty in the next 5 ms are 30 − 5.
#[test]
fn aggregation_is_the_excess_over_the_bandwidth() {
    let (mut a, bw) = (Aggregation::default(), (1 << BW_SCALE) / 1_000 + 1);
    let mut take = |ms: u64, n, round, cwnd| {
        let v = View { counts: Counts { delivered_us: ms * 1_000, ..Counts::default() }, ..View::default() };
        a.update(&v, &RateSample { acked_sacked: n, interval_us: 1, ..RateSample::default() }, round, bw, cwnd);
        a.excess()
    };
    assert_eq!([take(1_000, 10, false, 99), take(1_005, 20, false, 99), take(1_005, 60, false, 50)], [10, 25, 50]);
    // 90 packets take 90 ms: then a new epoch. The maximum is kept for five to ten round trips.
    let later: Vec<u32> = (1..=10).map(|i| take(1_005 + 1_000 * i, 1, true, 99)).collect();
    assert_eq!(later, [50, 50, 50, 50, 50, 50, 50, 50, 50, 1]);
}

/// Five round trips of 80 packets with 20 lost in each: twice the same rate, which is used for 48 round trips.
#[test]
fn a_policer_is_found_and_left() {
    let mut r = Run::probing(3);
    let lossy = |r: &mut Run| r.ack(100, 80, 80, |s| s.losses = 20);
    lossy(&mut r); // sampling begins; this round is the first
    for _ in 0..6 {
        assert_eq!(r.b.long_term.bw(), None);
        lossy(&mut r);
    }
    lossy(&mut r);
    // 4 rounds end the first interval, 4 more the second: 80 packets in 100 ms.
    assert_eq!((r.b.long_term.bw(), r.b.pacing_gain), (Some(13_421), UNIT));
    for _ in 0..47 {
        r.round(80);
        assert!(r.b.long_term.bw().is_some());
    }
    r.round(80);
    assert_eq!(r.b.long_term.bw(), None);
}

#[test]
fn recovery_conserves_packets_for_a_round_and_then_restores_the_window() {
    let mut r = Run::probing(3);
    r.round(80);
    let cwnd = r.w.cwnd;
    assert_eq!(r.b.ssthresh(&r.v, &r.w), r.w.ssthresh);
    (r.v.ca_state, r.v.in_flight) = (CaState::Recovery, 60);
    r.ack(1, 2, 80, |s| s.losses = 1);
    assert_eq!((r.w.cwnd, r.b.recovery.conserving), (62, true));
    r.round(60);
    assert!(!r.b.recovery.conserving);
    r.v.ca_state = CaState::Open;
    r.ack(1, 1, 40, |_| {});
    assert!(r.w.cwnd >= cwnd, "{} {cwnd}", r.w.cwnd);
}

#[test]
fn restart_from_idle_paces_at_the_bandwidth_and_waits_with_probe_rtt() {
    let mut r = Run::probing(0);
    r.v.counts.app_limited = 1;
    r.wait(11_000);
    r.b.on_event(&r.v, &mut r.w, CaEvent::TxStart);
    assert_eq!(r.w.pacing_rate, bytes_per_sec(1448, 13_421, UNIT));
    r.ack(0, 1, 1, |s| s.rtt_us = 110_000);
    assert!(r.phase().is_some() && r.b.min_rtt.rtt == 110_000 && !r.b.idle_restart);
}

#[test]
fn a_timeout_and_an_undo_restart_the_search_for_the_full_pipe() {
    let mut r = Run::new();
    r.rounds(&[10, 20, 40, 80, 80]);
    r.b.on_state(&r.v, &mut r.w, CaState::Loss);
    assert_eq!((r.b.full.bw, r.b.full.rounds, r.b.recovery.state), (0, 1, CaState::Loss));
    let cwnd = r.w.cwnd;
    assert_eq!((r.b.undo(&r.v, &r.w), r.b.full.rounds), (cwnd, 0));
}
