use super::*;
use std::collections::BTreeMap;

fn htcp() -> Htcp {
    Htcp::new(&Options::default())
}

/// At HZ 100, held back by the window.
fn at(jiffies: u32) -> View {
    View { is_cwnd_limited: true, hz: 100, jiffies, ..View::default() }
}

fn acked(n: u32, rtt_us: i64) -> PktsAcked {
    PktsAcked { pkts_acked: n, rtt_us, in_flight: 0 }
}

fn ack(n: u32) -> AckSample {
    AckSample { acked: n, may_raise: true, ..Default::default() }
}

#[test]
fn increase_is_renos_for_a_second_and_then_quadratic() {
    let mut h = Htcp { rtt_min: 10, ..htcp() };
    let mut alpha = |age| (h.update_alpha(&at(age)), h.alpha).1;
    // RTT 0.1 s: scale 800/100 = 8 eighths. 2 · factor · 64 / 128 = factor.
    // 1 s: 1. 2 s: 1 + (1,000 + 50²/100)/100 = 11. 11 s: 1 + (10,000 + 500²/100)/100 = 126.
    assert_eq!([alpha(100), alpha(200), alpha(1_100)], [128, 11 * 128, 126 * 128]);
}

/// The draft's formula at 1,000 jiffies a second: rounded down, by less than a packet.
#[test]
fn the_increase_is_the_drafts_quadratic() {
    for ms in [0u32, 999, 1_000, 1_001, 1_099, 1_100, 2_500, 7_000, 30_000] {
        let late = (f64::from(ms) / 1e3 - 1.0).max(0.0);
        let off = 1.0 + 10.0 * late + (late / 2.0).powi(2) - f64::from(increase(ms, 1_000));
        assert!((0.0..1.01).contains(&off), "{ms} ms: off by {off}");
    }
}

#[test]
fn the_rtt_ratio_is_between_a_half_and_eight_tenths_and_needs_a_precise_rtt() {
    let ratio = |rtt_min, rtt_max| {
        let mut h = Htcp { rtt_min, ..htcp() };
        h.epoch.rtt_max = rtt_max;
        h.rtt_ratio(&at(0))
    };
    // 128 · 6/10 = 76.8; 128 · 0.8 = 102.4. One jiffy is 10 ms: not more than that.
    assert_eq!([ratio(6, 10), ratio(2, 10), ratio(9, 10), ratio(1, 2), ratio(5, 0)], [Some(76), Some(64), Some(102), None, None]);
}

#[test]
fn rtt_scaling_is_limited() {
    let alpha = |rtt_min, beta| {
        let mut h = Htcp { rtt_min, backoff: Backoff { beta, was_steady: false }, ..htcp() };
        h.update_alpha(&at(200));
        h.alpha
    };
    // Factor 11 after 2 s. RTT 20 ms: scale 40, 88/40 = 2. RTT 10 ms: 80, 1. RTT 1 s: 4 (1/2), 22.
    assert_eq!([alpha(2, 64), alpha(1, 64), alpha(100, 64)], [256, 128, 22 * 128]);
    // 2 · 11 · (1 − 0.8), the product in 1/128.
    assert_eq!(alpha(10, 102), 22 * 26);
    // Before the first RTT nothing is scaled.
    assert_eq!(alpha(0, 64), 11 * 128);
}

#[test]
fn scaling_can_be_turned_off() {
    let set: BTreeMap<String, i64> = [("use_rtt_scaling".into(), 0), ("use_bandwidth_switch".into(), 0)].into();
    let mut h = Htcp { rtt_min: 2, ..Htcp::new(&Options { seed: 0, set: Some(&set) }) };
    h.update_alpha(&at(200));
    assert_eq!(h.alpha, 11 * 128);
    // Without the switch the second loss uses the RTTs whatever the throughput: 20 · 128/29 = 88, as the
    // first has taken 5 % of the 10 jiffies between them.
    (h.rtt_min, h.epoch.rtt_max) = (20, 30);
    let mut beta = || (h.ssthresh(&at(0), &Window::default()), h.backoff.beta).1;
    assert_eq!([beta(), beta()], [64, 88]);
}

#[test]
fn a_loss_uses_the_rtts_when_two_before_it_had_the_same_throughput() {
    let mut h = Htcp { rtt_min: 10, ..htcp() };
    h.epoch.rtt_max = 16;
    h.throughput.peak = 1_000;
    let w = Window { cwnd: 100, ..Window::default() };
    // The first: 1,000 against 0 is a change. The second is steady: now adaptive. The third: 10·128/15 = 85 of 128; RTTmax, 16,
    // is 10 + 6·0.95 = 15 after the first, 10 + 5·0.95 = 14 after the second.
    assert_eq!((h.ssthresh(&at(0), &w), h.backoff.was_steady, h.epoch.rtt_max), (50, false, 15));
    assert_eq!((h.ssthresh(&at(0), &w), h.backoff.was_steady, h.epoch.rtt_max), (50, true, 14));
    assert_eq!((h.ssthresh(&at(0), &w), h.backoff.beta), (100 * 91 / 128, 10 * 128 / 14));
    h.throughput.peak = 1_201;
    assert_eq!((h.ssthresh(&at(0), &w), h.backoff.was_steady), (50, false));
}

#[test]
fn steady_is_within_a_fifth() {
    assert_eq!(
        [is_steady(799, 1_000), is_steady(800, 1_000), is_steady(1_200, 1_000), is_steady(1_201, 1_000)],
        [false, true, true, false]
    );
    assert!(is_steady(0, 0));
}

#[test]
fn rtts_are_jiffies_rounded_up_and_the_largest_rises_slowly() {
    let mut h = htcp();
    let mut see = |us| (h.pkts_acked(&at(0), &mut Window::default(), &acked(1, us)), (h.rtt_min, h.epoch.rtt_max)).1;
    assert_eq!([see(20_001), see(50_000), see(70_001), see(0), see(10_000)], [(3, 3), (3, 5), (3, 5), (3, 5), (1, 5)]);
}

#[test]
fn throughput_is_measured_over_a_window_and_a_round_trip() {
    let mut h = Htcp { rtt_min: 10, ..htcp() };
    let mut w = Window { cwnd: 51, ..Window::default() };
    h.count(&at(9), &w, 60);
    assert_eq!(h.throughput.peak, 0);
    // 110 packets in 0.2 s; less than four round trips after the start it is taken as it is.
    h.count(&at(20), &w, 50);
    assert_eq!((h.throughput.average, h.throughput.peak, h.throughput.packets), (550, 550, 0));
    // At 0.5 s: (3 · 550 + 1,000 · 100/30) / 4, 3,333 a second.
    h.count(&at(50), &w, 1_000);
    assert_eq!((h.throughput.average, h.throughput.peak), ((1_650 + 3_333) / 4, 1_245));
    // The window less a round trip's growth is enough.
    h.count(&at(60), &w, 50);
    assert_eq!((h.throughput.average, h.throughput.peak), ((3 * 1_245 + 500) / 4, 1_245));
    w.cwnd = 52;
    h.count(&at(70), &w, 50);
    assert_eq!(h.throughput.packets, 50);
    h.pkts_acked(&View { ca_state: CaState::Recovery, ..at(75) }, &mut w, &acked(5, -1));
    assert_eq!((h.throughput.packets, h.throughput.began), (0, 75));
}

#[test]
fn the_window_grows_by_alpha_a_round_trip() {
    let (mut h, mut w) = (Htcp { alpha: 4 * 128, rtt_min: 10, ..htcp() }, Window { cwnd: 40, ssthresh: 2, ..Window::default() });
    // 40/4 = 10 packets of credit: five ACKs of two packets, and a sixth that uses them.
    for _ in 0..5 {
        h.pkts_acked(&at(50), &mut w, &acked(2, -1));
        h.on_ack(&at(50), &mut w, &ack(2));
    }
    assert_eq!((w.cwnd, w.cwnd_cnt), (40, 10));
    h.on_ack(&at(50), &mut w, &ack(2));
    assert_eq!((w.cwnd, w.cwnd_cnt, h.alpha), (41, 0, 128));
}

#[test]
fn time_counts_from_the_end_of_recovery_and_undo_restores_it() {
    let mut h = htcp();
    h.init(&at(100), &mut Window::default());
    h.epoch.rtt_max = 30;
    let mut w = Window { cwnd: 20, prior_cwnd: 40, ..Window::default() };
    h.on_state(&at(500), &mut w, CaState::Recovery);
    h.epoch.rtt_max = 25;
    assert_eq!((h.elapsed(&at(510)), h.undo(&at(510), &w)), (10, 40));
    assert_eq!((h.elapsed(&at(510)), h.epoch.rtt_max), (410, 30));
    // Undone: opening changes nothing.
    h.on_state(&at(510), &mut w, CaState::Open);
    assert_eq!(h.elapsed(&at(510)), 410);
    h.on_state(&at(600), &mut w, CaState::Loss);
    h.on_state(&at(700), &mut w, CaState::Open);
    assert_eq!((h.elapsed(&at(700)), h.elapsed(&at(710))), (0, 10));
}

#[test]
fn slow_start_leaves_the_rest_of_an_ack() {
    let (mut h, mut w) = (htcp(), Window { cwnd: 10, ssthresh: 16, ..Window::default() });
    h.on_ack(&at(0), &mut w, &ack(10));
    assert_eq!((w.cwnd, w.cwnd_cnt), (16, 0));
}
