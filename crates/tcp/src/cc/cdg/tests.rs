use super::gradient::negative_exp;
use super::*;
use std::collections::BTreeMap;
use tcpscape_base::Time;

fn at(us: u64, snd_nxt: u64) -> View {
    View { now: Time(us * 1_000), snd_nxt, is_cwnd_limited: true, ..View::default() }
}

fn with(set: &[(&str, i64)]) -> (Cdg, Window) {
    let set: BTreeMap<String, i64> = set.iter().map(|&(k, v)| (k.to_string(), v)).collect();
    let (mut c, mut w) = (Cdg::new(&Options { seed: 3, set: Some(&set) }), Window { cwnd: 100, ssthresh: 50, ..Window::default() });
    c.init(&at(0, 0), &mut w);
    (c, w)
}

/// A round with RTTs from `min` to `max` µs, at its end an ACK.
fn round(c: &mut Cdg, w: &mut Window, min: i64, max: i64) {
    for rtt_us in [min, max] {
        c.pkts_acked(&at(0, 0), w, &PktsAcked { pkts_acked: 2, rtt_us, in_flight: 0 });
    }
    let end = c.round_end;
    c.on_ack(&at(0, end + 2), w, &AckSample { acked: 0, ack: end + 1, may_raise: true, ..AckSample::default() });
}

#[test]
fn the_exponential_is_right_within_ten_of_two_to_the_32() {
    assert_eq!((negative_exp(0), negative_exp(693_148), negative_exp(u32::MAX)), (u32::MAX, 2_147_481_889, 0));
    for micro in [1u32, 100, 256, 5_000, 100_000, 693_147, 1_000_000, 5_000_000] {
        let exact = (-f64::from(micro) / 1e6).exp() * f64::from(u32::MAX);
        let integer = f64::from(negative_exp(micro));
        assert!((integer - exact).abs() <= 10.0, "{micro}: {integer} {exact}");
    }
}

/// A rise of 16,503 µs over eight rounds, times 42: 0.693 = ln 2.
#[test]
fn back_offs_come_with_the_probability_of_the_rise() {
    let mut random = Stream::new(1, "test");
    let half = (0..10_000).filter(|_| is_drawn(&mut random, 16_503 * 42)).count();
    assert!((4_900..5_100).contains(&half), "{half}");
    assert!((0..1_000).all(|_| !is_drawn(&mut random, 0)));
}

#[test]
fn gradients_are_summed_and_extrapolated_until_the_window_is_full() {
    let mut g = Gradient::new(4);
    let r = |min, max| Range { min, max };
    assert_eq!(g.add(r(10, 0)), (r(10, 0), 40));
    assert_eq!(g.add(r(-10, 6)), (r(0, 6), 12), "the smallest does not rise: the largest counts");
    assert_eq!(g.add(r(5, 0)), (r(5, 6), 6), "5 · 4/3");
    assert_eq!(g.add(r(5, 0)), (r(10, 6), 10));
    assert_eq!(g.add(r(0, 0)), (r(0, 6), 6), "the first is gone");
}

#[test]
fn a_long_handshake_hides_the_first_rises() {
    let (mut c, mut w) = with(&[("backoff_factor", 1_000_000)]);
    c.syn_acked(&at(0, 0), 204_400);
    c.init(&at(0, 0), &mut w);
    round(&mut c, &mut w, 102_200, 102_200);
    assert_eq!(c.rtts.last, Range { min: 102_200, max: 204_400 });
    round(&mut c, &mut w, 102_200, 106_800);
    round(&mut c, &mut w, 102_200, 118_000);
    assert!(!w.enter_cwr, "both sums below zero: 106.8 − 204.4 ms, 118 − 204.4 ms");
    round(&mut c, &mut w, 102_201, 118_000);
    assert!(w.enter_cwr, "the smallest RTT rose by 1 µs, extrapolated 2 µs: two in e");
}

#[test]
fn a_certain_rise_backs_off_to_seven_tenths_five_times() {
    let (mut c, mut w) = with(&[("backoff_factor", 1_000)]);
    round(&mut c, &mut w, 10_000, 10_000);
    assert!(!w.enter_cwr, "one round has no gradient");
    for n in 1..=7 {
        round(&mut c, &mut w, 10_000 + 50_000 * n, 10_000 + 50_000 * n);
        assert_eq!(std::mem::take(&mut w.enter_cwr), n <= 5, "{n}");
    }
    assert_eq!((c.ssthresh(&at(0, 0), &w), c.shadow.0), (70, 100), "100 · 724/1024 = 70.7");
    // Falling RTTs: the back-offs had an effect.
    (0..9).for_each(|i| round(&mut c, &mut w, 300_000 - 30_000 * i, 300_000 - 30_000 * i));
    assert_eq!(c.backoffs, 0);
}

#[test]
fn after_a_loss_the_shadow_window_counts() {
    let (mut c, mut w) = with(&[]);
    let at = at(0, 0);
    c.shadow = Shadow(180);
    assert_eq!((c.ssthresh(&at, &w), c.shadow.0), (90, 90));
    c.shadow = Shadow(500);
    assert_eq!((c.ssthresh(&at, &w), c.shadow.0), (100, 100), "no more than the window");
    w.cwnd = 3;
    c.shadow = Shadow(1);
    assert_eq!(c.ssthresh(&at, &w), 2);
    let (mut c, w) = with(&[("use_shadow", 0)]);
    c.shadow = Shadow(180);
    assert_eq!(c.ssthresh(&at, &w), 50);
    let (mut c, w) = with(&[("use_tolerance", 1)]);
    c.cause = Cause::LinkError;
    assert_eq!(c.ssthresh(&at, &w), 100);
}

#[test]
fn the_shadow_grows_with_the_window_and_shrinks_with_an_idle_one() {
    let (mut c, mut w) = with(&[]);
    let s = AckSample { acked: 100, may_raise: true, ..AckSample::default() };
    c.on_ack(&at(0, 0), &mut w, &s);
    assert_eq!((w.cwnd, c.shadow.0), (101, 101));
    w.cwnd = 60;
    c.on_ack(&View::default(), &mut w, &s);
    assert_eq!(c.shadow.0, 60);
}

#[test]
fn acks_that_may_be_delayed_only_lower_the_minimum() {
    let (mut c, mut w) = with(&[]);
    let mut take = |c: &mut Cdg, n, rtt_us| c.pkts_acked(&at(0, 0), &mut w, &PktsAcked { pkts_acked: n, rtt_us, in_flight: 0 });
    take(&mut c, 2, 1_000);
    take(&mut c, 2, 2_000);
    assert_eq!(c.rtts.perhaps_delayed, 2);
    take(&mut c, 1, 40_000);
    take(&mut c, 1, 900);
    assert_eq!((c.rtts.current, c.rtts.perhaps_delayed), (Range { min: 900, max: 2_000 }, 0));
    take(&mut c, 1, 40_000);
    assert_eq!(c.rtts.current, Range { min: 900, max: 40_000 });
}

#[test]
fn the_end_of_a_reduction_begins_a_round_and_idling_forgets_all() {
    let (mut c, mut w) = with(&[]);
    round(&mut c, &mut w, 10_000, 20_000);
    c.rtts.current = Range { min: 1, max: 2 };
    c.cause = Cause::Gradient;
    c.on_event(&at(0, 77), &mut w, CaEvent::CompleteCwr);
    assert_eq!((c.cause, c.round_end, c.rtts.last, c.rtts.current), (Cause::Congestion, 77, Range { min: 1, max: 2 }, Range::NONE));
    c.on_event(&at(0, 99), &mut w, CaEvent::CwndRestart);
    assert_eq!((c.round_end, c.rtts.last, c.shadow.0, c.gradient.window()), (99, Range::NONE, 100, 8));
}

/// A smallest RTT of 20 ms: a train of ACKs 2.9 ms apart is longer than 10 ms with the fifth.
#[test]
fn an_ack_train_ends_slow_start_and_a_gap_ends_the_train() {
    let (mut h, mut w) = (HyStart::default(), Window { cwnd: 30, ..Window::default() });
    (0..4).for_each(|i| h.update(&at(1_000 + 2_900 * i, 0), &mut w, 20_000, 1));
    assert!(w.in_slow_start());
    h.update(&at(1_000 + 2_900 * 4, 0), &mut w, 20_000, 1);
    assert_eq!(w.ssthresh, 30);
    let (mut h, mut w) = (HyStart::default(), Window { cwnd: 30, ..Window::default() });
    (0..20).for_each(|i| h.update(&at(1_000 + 3_000 * i, 0), &mut w, 20_000, 1));
    assert!(w.in_slow_start());
}

/// The smallest RTT is 20 ms: after eight ACKs of a round more than 22.5 ms end slow start.
#[test]
fn a_rise_of_the_delay_ends_slow_start() {
    let (mut h, mut w) = (HyStart::default(), Window { cwnd: 30, ..Window::default() });
    h.smallest = 20_000;
    (0..9).for_each(|_| h.update(&at(0, 0), &mut w, 22_500, 2));
    assert!(w.in_slow_start());
    h.next_round();
    (0..8).for_each(|_| h.update(&at(0, 0), &mut w, 22_501, 2));
    assert!(w.in_slow_start());
    h.update(&at(0, 0), &mut w, 22_501, 2);
    assert_eq!(w.ssthresh, 30);
}
