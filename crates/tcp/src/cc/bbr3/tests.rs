//! Worked arithmetic, and the draft's example test cases (its appendix A) that one controller can show by itself.

use super::control::STARTUP_GAIN;
use super::states::Acks;
use super::*;
use crate::cc::{EcnMode, RateSample};
use tcpscape_base::{Duration, Time};

/// A connection with 100 ms of RTT whose ACKs are written by hand.
struct Run {
    b: Bbr3,
    w: Window,
    v: View,
}

/// 80 packets in 100 ms, in packets/µs · 2^24.
const BW80: Bw = 13_421;

impl Run {
    fn new() -> Run {
        Run::seeded(1)
    }

    fn seeded(seed: u64) -> Run {
        let v = View { now: Time(1_000_000_000), hz: 100, mss: 1448, srtt_us: 800_000, min_rtt_us: 100_000, ..View::default() };
        let mut r = Run { b: Bbr3::new(&Options { seed, set: None }), w: Window::default(), v };
        r.b.init(&r.v, &mut r.w);
        r
    }

    /// `ms` later an ACK for `n` packets, the first of them sent `flight` deliveries ago.
    fn ack(&mut self, ms: u64, n: u32, flight: u32, change: impl Fn(&mut RateSample)) {
        self.v.now += Duration::millis(ms);
        let prior_delivered = (self.v.counts.delivered + n).saturating_sub(flight);
        self.v.counts.delivered += n;
        self.v.counts.delivered_us = self.v.now.micros();
        let mut rate = RateSample {
            prior_delivered,
            prior_mstamp: 1,
            delivered: flight as i32,
            interval_us: 100_000,
            rtt_us: 100_000,
            tx_in_flight: flight,
            acked_sacked: n,
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

    /// A packet is lost that was sent with `in_flight` packets; `lost` are by now.
    fn lose(&mut self, seq: u64, in_flight: u32, lost: u32) {
        let p = LostPacket { seq, end: seq + 1, tx_in_flight: in_flight, lost, is_app_limited: false };
        self.b.on_lost(&self.v, &mut self.w, &p);
    }

    fn state(&mut self, new: CaState) {
        if new >= CaState::Recovery {
            self.w.ssthresh = self.b.ssthresh(&self.v, &self.w);
        }
        self.b.on_state(&self.v, &mut self.w, new);
        self.v.ca_state = new;
    }

    /// In CRUISE at 80 packets a round trip, whose feedback from the first probe is over.
    fn cruising() -> Run {
        let mut r = Run::new();
        r.rounds(&[10, 20, 40, 80, 80, 80, 80]);
        r.v.in_flight = 80;
        r.ack(1, 1, 1, |s| s.interval_us = -1);
        assert_eq!(r.b.state, State::Cruise);
        r.round(80);
        assert_eq!(r.b.probe.acks, Acks::Nothing);
        r
    }

    /// In UP, one ACK after its start.
    fn up() -> Run {
        let mut r = Run::cruising();
        r.b.start_refill(&r.v);
        r.round(80);
        assert_eq!((r.b.state, r.b.probe.is_sample, r.b.gains()), (State::Up, true, (320, 576)));
        r
    }
}

/// 10 packets in 100 ms: 1,677/2^24 packets/µs, · 1,448 B · 710/256 · 0.99 = 397,406 B/s.
#[test]
fn the_first_rate_is_the_startup_gain_on_the_first_window() {
    let r = Run::new();
    assert_eq!((STARTUP_GAIN, r.w.pacing_rate, r.w.paced), (710, 397_406, true));
    assert_eq!((r.b.min_rtt.rtt, r.b.min_tso_segs(&r.w)), (100_000, 2));
}

/// Appendix A.1, A.3, A.8: the third round at 80 packets ends STARTUP; DRAIN paces at a half until 80 are in flight.
#[test]
fn startup_ends_on_a_plateau_and_drain_at_the_bdp() {
    let mut r = Run::new();
    r.v.in_flight = 160;
    r.rounds(&[10, 20, 40, 80, 80, 80]);
    assert_eq!((r.b.state, r.b.full.rounds, r.b.gains()), (State::Startup, 2, (710, 512)));
    r.round(80);
    assert!(r.b.full.now && r.b.full.reached);
    assert_eq!((r.b.state, r.b.gains(), r.b.long.max_bw()), (State::Drain { since: 7 }, (128, 512), BW80));
    // 800 packets/s · 1,448 B · 0.5 · 0.99.
    assert!((573_000..=573_500).contains(&r.w.pacing_rate), "{}", r.w.pacing_rate);
    r.v.in_flight = 81;
    r.ack(10, 1, 1, |s| s.interval_us = 10_000);
    assert!(matches!(r.b.state, State::Drain { .. }));
    r.v.in_flight = 80;
    r.ack(10, 1, 1, |s| s.interval_us = 10_000);
    // Through DOWN, whose end is the same, in one ACK.
    assert_eq!((r.b.state, r.b.gains()), (State::Cruise, (256, 512)));
}

/// Appendix A.4.
#[test]
fn drain_ends_after_three_round_trips_whatever_is_in_flight() {
    let mut r = Run::new();
    r.v.in_flight = 200;
    r.rounds(&[10, 20, 40, 80, 80, 80, 80, 80, 80, 80]);
    assert!(matches!(r.b.state, State::Drain { .. }));
    r.round(80);
    assert_eq!((r.b.state, r.b.gains()), (State::Down, (230, 512)));
}

/// Appendix A.7: rounds limited by the application are no plateau.
#[test]
fn an_application_limited_startup_goes_on() {
    let mut r = Run::new();
    r.rounds(&[10, 20]);
    let rate = r.w.pacing_rate;
    for _ in 0..10 {
        r.ack(100, 5, 5, |s| s.is_app_limited = true);
    }
    assert_eq!((r.b.state, r.w.pacing_rate), (State::Startup, rate));
}

/// §5.3.1.3: six separate ranges and more than 2 % in a round trip of recovery; 3 of 100 are, 2 of 100 are not.
#[test]
fn startup_ends_on_loss_after_a_round_trip_of_recovery() {
    let run = |ranges: u64, apart: u64, lost: u32, state: CaState| {
        let mut r = Run::new();
        r.rounds(&[10, 20, 40, 80]);
        (0..ranges).for_each(|i| r.lose(1 + i * apart, 100, 1));
        r.state(state);
        r.v.in_flight = 120;
        r.ack(50, 40, 80, |_| {}); // still of the round trip in which the loss was seen
        assert_eq!(r.b.state, State::Startup);
        r.ack(50, 40, 40, |s| (s.tx_in_flight, s.lost, s.delivered) = (100, lost, 120));
        (r.b.full.reached, r.b.long.inflight)
    };
    // What was delivered in that round trip, 120 packets, is more than the BDP.
    assert_eq!(run(6, 2, 3, CaState::Recovery), (true, 120));
    assert_eq!(run(6, 2, 2, CaState::Recovery), (false, u32::MAX));
    assert_eq!(run(5, 2, 3, CaState::Recovery), (false, u32::MAX));
    assert_eq!(run(6, 1, 3, CaState::Recovery), (false, u32::MAX)); // one range of six packets
    assert_eq!(run(6, 2, 3, CaState::Disorder), (false, u32::MAX));
}

/// §5.3.3.8: 2 to 3 s, or as many round trips as there are packets in the BDP, 63 at most, less the 0 or 1 that were drawn.
#[test]
fn the_next_probe_comes_after_seconds_or_renos_round_trips() {
    let mut waits = vec![];
    for seed in 0..20 {
        let mut r = Run::seeded(seed);
        r.rounds(&[10, 20, 40, 80, 80, 80, 80]);
        let down = r.v.now;
        r.v.in_flight = 80;
        while r.b.state != State::Refill {
            r.round(80);
        }
        waits.push(r.v.now.since(down).0 / 1_000_000);
    }
    // Rounds of 100 ms: the first after 2 to 3 s.
    assert!(waits.iter().all(|w| (2_000..=3_100).contains(w)), "{waits:?}");
    assert!(waits.iter().min() < waits.iter().max());
    // 10 packets in flight: the ninth or tenth round trip.
    let mut r = Run::new();
    r.rounds(&[10; 4]);
    r.v.in_flight = 10;
    let before = (0..99).take_while(|_| (r.round(10), r.b.state != State::Refill).1).count();
    assert!((8..=9).contains(&before), "{before}");
}

/// Appendix A.5: REFILL lasts a round trip, UP three without growth; then one more cycle of the bandwidth filter.
#[test]
fn up_ends_on_a_plateau() {
    let mut r = Run::up();
    r.rounds(&[80, 80]);
    assert_eq!((r.b.state, r.b.full.rounds), (State::Up, 2));
    r.round(80);
    assert_eq!((r.b.state, r.b.probe.too_high), (State::Down, false));
}

/// Two cycles at 40 packets forget the 80.
#[test]
fn the_bandwidth_is_the_largest_of_two_cycles() {
    let mut r = Run::cruising();
    for (i, bw) in [(0, BW80), (1, BW80 / 2)] {
        r.b.start_down(&r.v);
        r.round(40);
        assert_eq!(r.b.long.max_bw(), if i == 0 { BW80 } else { bw }, "{i}");
        r.ack(100, 40, 40, |_| {});
    }
    // A cycle whose samples were all the application's keeps what is known.
    r.b.start_down(&r.v);
    r.ack(100, 5, 5, |s| s.is_app_limited = true);
    assert_eq!(r.b.long.max_bw(), BW80 / 2);
}

/// §5.5.10.2: in UP the third of 130 packets is too much: 3 > 2 % of 130. The bound is the 129 before it. Then DOWN (A.21).
#[test]
fn a_probe_that_loses_too_much_sets_the_long_term_volume() {
    let mut r = Run::up();
    r.lose(1, 130, 2);
    assert_eq!((r.b.state, r.b.long.inflight), (State::Up, u32::MAX));
    r.lose(2, 130, 3);
    assert_eq!((r.b.state, r.b.long.inflight, r.b.probe.too_high), (State::Down, 129, true));
    // Only once a probe.
    r.lose(3, 100, 50);
    assert_eq!(r.b.long.inflight, 129);
    // Not below what CUBIC would keep: 0.7 of the 80 in a BDP.
    let mut r = Run::up();
    r.lose(1, 20, 3);
    assert_eq!(r.b.long.inflight, 56);
}

/// §5.3.3.6: after such a probe the next one stops where it went wrong; if that goes well, another follows at once.
#[test]
fn a_careful_probe_follows_one_that_lost_too_much() {
    let mut r = Run::up();
    r.lose(1, 101, 3);
    r.v.in_flight = 80;
    r.rounds(&[80, 80]);
    assert_eq!((r.b.state, r.b.long.inflight), (State::Cruise, 100));
    // 15 % are left to others.
    assert_eq!(r.w.cwnd, 85);
    r.b.start_refill(&r.v);
    r.round(80);
    r.v.in_flight = 99;
    r.ack(10, 1, 1, |_| {});
    assert_eq!((r.b.state, r.b.probe.precautionary), (State::Up, false));
    r.v.in_flight = 100;
    r.ack(10, 1, 1, |_| {});
    assert_eq!((r.b.state, r.b.probe.precautionary, r.b.probe.too_high), (State::Down, true, false));
    r.round(80);
    assert_eq!(r.b.state, State::Refill);
    // This one does not stop there.
    r.round(80);
    r.ack(10, 1, 1, |_| {});
    assert_eq!((r.b.state, r.b.probe.precautionary), (State::Up, false));
}

/// Appendix A.15: held by the long-term volume, UP raises it by 1, 2, 4, … packets a round trip.
#[test]
fn the_long_term_volume_grows_twice_as_fast_each_round_trip() {
    let mut r = Run::up();
    (r.b.long.inflight, r.v.is_cwnd_limited) = (80, true);
    let mut seen = vec![];
    for _ in 0..5 {
        for _ in 0..80 {
            r.ack(1, 1, 80, |s| s.tx_in_flight = 0);
        }
        seen.push(r.b.long.inflight);
    }
    assert_eq!(r.b.state, State::Up);
    let steps: Vec<u32> = seen.windows(2).map(|p| p[1] - p[0]).collect();
    assert!(seen[0] <= 82 && steps.iter().zip([2, 4, 8, 16]).all(|(s, want)| s.abs_diff(want) <= want / 2 + 1), "{seen:?}");
}

/// §5.5.10.3: a lossy round with 40 delivered: 0.7 · 13,421 = 9,394 is more than the bandwidth seen; then 0.7 of that is not.
#[test]
fn cruising_follows_what_was_delivered_by_30_per_cent_a_round_at_most() {
    let mut r = Run::cruising();
    let cwnd = r.w.cwnd;
    r.round(80);
    r.lose(1, 80, 1);
    r.b.latest.forget();
    r.b.latest.lossy = true;
    r.ack(100, 40, 40, |_| {});
    assert_eq!((r.b.short.bw, r.b.short.inflight), (9_394, cwnd * 7 / 10));
    assert_eq!((r.b.bw, r.b.long.max_bw()), (9_394, BW80));
    r.lose(2, 40, 1);
    r.ack(100, 60, 60, |_| {});
    // The best of the last two: 60 packets in 100 ms.
    assert_eq!(r.b.short.bw, 10_066);
    r.b.start_refill(&r.v);
    r.round(80);
    assert_eq!((r.b.short, r.b.bw), (ShortTerm::default(), BW80));
}

/// Appendix A.10: 5 s without a smaller RTT. Half a BDP in flight for 200 ms and a round trip; its rates are not the path's.
#[test]
fn probe_rtt_halves_what_is_in_flight() {
    let mut r = Run::cruising();
    let cwnd = r.w.cwnd;
    r.v.in_flight = 80;
    let from = r.v.now;
    while !r.b.state.is_probe_rtt() {
        r.ack(20, 16, 80, |s| s.rtt_us = 101_000);
    }
    let after = r.v.now.since(from).0 / 1_000_000;
    assert!((4_200..=5_200).contains(&after), "{after}");
    assert_eq!((r.w.cwnd, r.b.gains()), (40, (256, 128)));
    r.v.in_flight = 40;
    for _ in 0..11 {
        r.ack(20, 8, 40, |s| (s.rtt_us, s.interval_us) = (100_500, 100_000));
        assert!(r.b.state.is_probe_rtt() && r.b.long.max_bw() == BW80);
    }
    r.ack(20, 8, 40, |s| s.rtt_us = 100_500);
    assert_eq!(r.b.state, State::Cruise);
    assert!(r.w.cwnd >= cwnd.min(160), "{} {cwnd}", r.w.cwnd);
    assert_eq!(r.b.min_rtt.rtt, 100_000);
}

/// §5.3.4.3: the 5-s minimum replaces the 10-s one when that has expired.
#[test]
fn the_smallest_rtt_is_forgotten_after_ten_seconds() {
    let (mut m, mut v) = (MinRtt::new(&View { srtt_us: 400_000, ..View::default() }), View::default());
    let mut take = |s: u64, rtt_us: i64| {
        v.now = Time(s * 1_000_000_000);
        m.update(&v, &Sample { rtt_us, ..Sample::default() });
        (m.rtt, m.expired)
    };
    let seen = [take(1, 60_000), take(5, 60_000), take(6, 61_000), take(7, 60_500), take(11, 62_000), take(12, 70_000)];
    assert_eq!(seen, [(50_000, false), (50_000, false), (50_000, true), (50_000, false), (60_500, false), (60_500, false)]);
    assert_eq!([take(13, 70_000), take(18, 71_000)], [(60_500, true), (70_000, false)]);
}

/// Appendix A.11, A.20.
#[test]
fn idleness_is_as_good_as_probe_rtt_and_startup_comes_back_after_it() {
    let mut r = Run::cruising();
    (r.v.counts.app_limited, r.v.in_flight) = (1, 0);
    r.v.now += Duration::millis(6_000);
    r.b.on_event(&r.v, &mut r.w, CaEvent::TxStart);
    // 800 packets/s · 1,448 B · 0.99.
    assert!(r.b.idle_restart && (1_146_000..=1_147_000).contains(&r.w.pacing_rate), "{}", r.w.pacing_rate);
    r.ack(0, 1, 1, |s| s.rtt_us = 101_000);
    assert!(!r.b.state.is_probe_rtt() && !r.b.idle_restart);

    let mut r = Run::new();
    r.rounds(&[10, 20]);
    r.v.now += Duration::millis(6_000);
    r.ack(0, 1, 20, |s| s.rtt_us = 101_000);
    assert!(r.b.state.is_probe_rtt());
    r.v.in_flight = 4;
    r.ack(10, 1, 1, |_| {});
    r.ack(250, 4, 4, |_| {});
    assert_eq!(r.b.state, State::Startup);
}

/// Appendix A.18, A.19: the bounds and the state from before the recovery return, and with them the window.
#[test]
fn a_spurious_recovery_is_taken_back() {
    let mut r = Run::up();
    let cwnd = r.w.cwnd;
    r.lose(1, 130, 3);
    r.state(CaState::Recovery);
    assert_eq!((r.b.state, r.b.long.inflight), (State::Down, 129));
    // A later loss of the same recovery changes nothing of what was saved.
    r.round(60);
    r.lose(2, 130, 4);
    r.w.cwnd = 50;
    assert_eq!(r.b.undo(&r.v, &r.w), cwnd);
    assert_eq!((r.b.state, r.b.long.inflight, r.b.short), (State::Refill, u32::MAX, ShortTerm::default()));
    r.state(CaState::Open);
    assert_eq!(r.w.cwnd, cwnd);

    let mut r = Run::new();
    r.rounds(&[10, 20, 40, 80]);
    r.v.in_flight = 200;
    (0..6).for_each(|i| r.lose(1 + 2 * i, 100, 1));
    r.state(CaState::Recovery);
    r.ack(100, 40, 40, |s| (s.tx_in_flight, s.lost) = (100, 6));
    assert!(matches!(r.b.state, State::Drain { .. }));
    r.b.undo(&r.v, &r.w);
    assert_eq!((r.b.state, r.b.full.reached, r.b.long.inflight), (State::Startup, false, u32::MAX));
}

/// §5.6.4.4: after a timeout the window grows from what is in flight; its end brings the old one back. The short-term volume starts
/// from the window before it.
#[test]
fn a_timeout_does_not_make_the_model_forget() {
    let mut r = Run::cruising();
    let cwnd = r.w.cwnd;
    r.lose(1, 80, 1);
    r.state(CaState::Loss);
    (r.w.cwnd, r.v.in_flight) = (20, 19);
    r.ack(300, 1, 1, |s| s.interval_us = -1);
    assert_eq!((r.w.cwnd, r.b.short.inflight, r.b.long.max_bw()), (21, cwnd * 7 / 10, BW80));
    r.state(CaState::Open);
    assert_eq!(r.w.cwnd, cwnd);
}

/// Appendix A.12, A.13: 30 packets at once where 8 are expected in 10 ms.
#[test]
fn aggregation_widens_the_window() {
    let mut a = Aggregation::default();
    let mut take = |ms: u64, n, count, cwnd| {
        let v = View { now: Time(ms * 1_000_000), ..View::default() };
        a.update(&v, n, count, true, BW80, cwnd);
        a.extra()
    };
    // 800 packets/s: 30 − 0, then 30 + 30 − 8, then no more than the window.
    assert_eq!([take(1_000, 30, 0, 99), take(1_010, 30, 0, 99), take(1_010, 90, 0, 70)], [30, 53, 70]);
    // Remembered for ten round trips.
    assert_eq!([take(9_000, 1, 10, 99), take(9_500, 1, 11, 99)], [70, 1]);
}

/// Appendix A.14: a BDP below a packet.
#[test]
fn four_packets_are_the_least() {
    let mut r = Run::new();
    r.rounds(&[1; 9]);
    r.v.in_flight = 1;
    r.rounds(&[1; 5]);
    // 2 BDP + 1 aggregated are less than three bursts of two packets.
    assert_eq!((r.b.state.is_probe_bw(), r.w.cwnd), (true, 6));
    r.b.long.inflight = 1;
    r.round(1);
    assert_eq!(r.w.cwnd, MIN);
}

fn marked(min_rtt: u32) -> Run {
    let mut r = Run::new();
    r.v.ecn = EcnMode::Classic;
    (r.b.min_rtt.rtt, r.v.in_flight) = (min_rtt, 80);
    r
}

/// Two round trips in a row with half of the packets marked end STARTUP; one does not.
#[test]
fn marks_on_a_short_path_end_startup() {
    let mut r = marked(4_000);
    r.rounds(&[10, 20]);
    for n in [20, 19, 20] {
        r.v.counts.delivered_ce += n;
        r.round(40);
        assert_eq!(r.b.state, State::Startup, "{n}");
    }
    r.v.counts.delivered_ce += 20;
    r.round(40);
    assert!(r.b.full.reached && r.b.long.inflight == 40);
}

/// The average share begins at 1. A round with a quarter marked makes it 1 − 1/16 + 1/64 = 0.953; the volume falls by a third of it.
#[test]
fn marks_on_a_short_path_lower_the_short_term_volume_by_their_share() {
    let mut r = Run::cruising();
    (r.v.ecn, r.b.ecn.max_rtt) = (EcnMode::Classic, 100_000);
    r.b.ecn.restart(&r.v);
    let cwnd = r.w.cwnd;
    r.v.counts.delivered_ce += 20;
    r.round(80);
    assert_eq!(r.b.short.inflight, cwnd - (f64::from(cwnd) * 0.953_125 / 3.0) as u32);
    assert_eq!(r.b.short.bw, Bw::MAX);
}

/// draft §3.7: on a longer path a marked round counts as one with a loss.
#[test]
fn marks_on_a_long_path_count_as_a_loss() {
    let mut r = Run::cruising();
    r.v.ecn = EcnMode::Classic;
    r.b.ecn.restart(&r.v);
    r.v.counts.delivered_ce += 1;
    r.ack(50, 40, 80, |_| {});
    assert!(r.b.latest.lossy);
    r.ack(100, 80, 80, |_| {});
    assert_ne!(r.b.short.inflight, u32::MAX);
}

use crate::cc::bbr::MIN_CWND as MIN;
