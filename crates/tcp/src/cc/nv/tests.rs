use super::*;
use crate::cc::INFINITE_SSTHRESH;

const MSS: u32 = 1_000;

/// The connection when `acked` packets were acknowledged and `flight` more were sent.
fn at(acked: u64, flight: u64) -> View {
    let mss = u64::from(MSS);
    View { snd_una: acked * mss, snd_nxt: (acked + flight) * mss, mss: MSS, hz: 100, is_cwnd_limited: true, ..View::default() }
}

fn nv(cwnd: u32, ssthresh: u32) -> (Nv, Window) {
    let (mut c, mut w) = (Nv::new(&Options::default()), Window { cwnd, ssthresh, ..Window::default() });
    c.init(&at(0, 0), &mut w);
    (c, w)
}

/// An ACK when `acked` packets were acknowledged in all: a window was in flight when the last of them was sent.
fn ack(c: &mut Nv, w: &mut Window, acked: u64, rtt_us: i64) {
    let v = at(acked, u64::from(w.cwnd));
    c.pkts_acked(&v, w, &PktsAcked { pkts_acked: 1, rtt_us, in_flight: w.cwnd * MSS });
    c.on_ack(&v, w, &AckSample { acked: 1, may_raise: true, ..AckSample::default() });
}

/// 40 packets of 1,000 bytes in 10 ms are 32 Mbit/s, 320,000 units; at a smallest RTT of 5 ms they need 20 packets, and with
/// 10 in the queue 30.
#[test]
fn a_window_above_what_the_rate_needs_shrinks_by_thirty_percent_of_the_excess() {
    let (mut c, mut w) = nv(40, 40);
    c.rtt = RttFilter { average: 10_000, min: 5_000, min_next: 5_000, switch_at: 1_000, ..c.rtt };
    (c.evidence.rtts, c.evidence.rounds) = (60, 1);
    c.evidence.max_rate = 320_000;
    c.end_round(&at(1, 40), &mut w, 1);
    // 10 · 38/128 = 2.97.
    assert_eq!((w.cwnd, w.ssthresh, c.growth.allowed, c.evidence.rtts, c.evidence.rounds), (38, 30, false, 0, 0));
}

/// 1,250 units are 125 kbit/s, 15,625 bytes a second: in 64 ms one packet of 1,000 bytes.
#[test]
fn what_a_rate_needs_and_what_an_excess_costs() {
    assert_eq!([needed(1_250, 64_000, 1_000), needed(1_250, 63_999, 1_000), needed(320_000, 5_000, 1_000)], [1, 0, 20]);
    // 38/128 of 3 is 0.9, of 10 2.97, of 100 29.7.
    assert_eq!([1, 2, 3, 10, 100].map(cut), [1, 2, 2, 2, 29]);
}

#[test]
fn it_waits_for_rounds_and_for_samples() {
    let (mut c, mut w) = nv(40, 40);
    (c.rtt.min, c.evidence.max_rate) = (5_000, 320_000);
    c.evidence.rtts = 60;
    c.end_round(&at(1, 40), &mut w, 1);
    assert_eq!((w.cwnd, c.evidence.rounds), (40, 1), "one round");
    c.evidence.rtts = 59;
    c.end_round(&at(1, 40), &mut w, 1);
    assert_eq!((w.cwnd, c.growth.allowed), (40, true), "59 samples");
    (0..9).for_each(|_| c.end_round(&at(1, 40), &mut w, 1));
    assert_eq!((w.cwnd, c.evidence.rounds, c.growth.allowed), (40, 11, false), "growth ends all the same after ten");
    w.ssthresh = INFINITE_SSTHRESH;
    c.evidence.rtts = 30;
    c.end_round(&at(1, 40), &mut w, 1);
    assert_eq!(w.cwnd, 38, "slow start ends after thirty");
}

#[test]
fn an_excess_of_two_is_taken_at_once_and_one_below_two_changes_nothing() {
    let (mut c, mut w) = nv(32, 20);
    (c.rtt.min, c.evidence.max_rate, c.evidence.rtts, c.evidence.rounds) = (5_000, 320_000, 60, 5);
    c.end_round(&at(1, 32), &mut w, 1);
    assert_eq!(w.cwnd, 30);
    (c.evidence.max_rate, c.evidence.rtts, w.cwnd) = (320_000, 60, 29);
    c.end_round(&at(1, 29), &mut w, 1);
    assert_eq!((w.cwnd, c.growth.allowed, c.evidence.rtts), (29, false, 60));
    w.cwnd = 28;
    c.end_round(&at(1, 28), &mut w, 1);
    assert_eq!((c.growth.allowed, c.evidence.rtts), (true, 0), "two below: growth");
}

#[test]
fn grows_as_reno_from_twenty_samples_on() {
    let (mut c, mut w) = nv(20, 20);
    for i in 1..=40 {
        ack(&mut c, &mut w, i, 10_000);
    }
    // 40 ACKs: a window of 20, and 20 of the next 21.
    assert_eq!((w.cwnd, w.cwnd_cnt), (21, 20));
    (w.cwnd, w.ssthresh, w.cwnd_cnt) = (2, 2, 0);
    (41..45).for_each(|i| ack(&mut c, &mut w, i, 10_000));
    assert_eq!(w.cwnd, 3, "at most one packet for four");
}

#[test]
fn the_rtt_is_averaged_and_its_minimum_replaced_each_period() {
    let (mut c, mut w) = nv(20, 20);
    ack(&mut c, &mut w, 1, 10_000);
    assert_eq!((c.rtt.average, c.rtt.min, c.rtt.min_next), (10_000, 10_000, 10_000));
    ack(&mut c, &mut w, 2, 6_000);
    assert_eq!((c.rtt.average, c.rtt.min), (8_000, 8_000));
    let v = View { jiffies: 200, ..at(3, 20) };
    c.rtt.min_next = 9_000;
    c.batch = 20;
    c.pkts_acked(&v, &mut w, &PktsAcked { pkts_acked: 1, rtt_us: 20_000, in_flight: 20 * MSS });
    // Two seconds are over: 9 ms is the minimum now. 5 s · (384 … 639)/512.
    assert_eq!((c.rtt.min, c.rtt.min_next, c.batch), (9_000, u32::MAX, 10));
    assert!((200 + 375..200 + 625).contains(&c.rtt.switch_at));
}

#[test]
fn a_loss_costs_a_fifth_and_a_timeout_slows_growth_down() {
    let (mut c, mut w) = nv(100, 50);
    assert_eq!(c.ssthresh(&at(0, 100), &w), 79, "100 · 819/1024");
    c.on_state(&at(0, 100), &mut w, CaState::Loss);
    assert!(!c.growth.allowed && c.forget_at_open && c.growth.slowness == 1);
    c.rtt.average = 7;
    c.on_state(&at(5, 100), &mut w, CaState::Open);
    assert_eq!((c.rtt.average, c.round_end, c.forget_at_open), (0, 5_000, false));
    (c.growth.allowed, w.cwnd) = (true, 4);
    w.ssthresh = 4;
    let s = AckSample { acked: 1, may_raise: true, ..AckSample::default() };
    (0..8).for_each(|_| c.on_ack(&at(5, 4), &mut w, &s));
    assert_eq!(w.cwnd, 5, "one packet for two windows of four");
    c.evidence.rtts = 20;
    (0..8).for_each(|_| c.growth.allow());
    assert_eq!(c.growth.slowness, 1);
    c.growth.allow();
    assert_eq!((c.growth.slowness, c.growth.uncongested), (0, 0), "nine decisions quicken it");
    (0..20).for_each(|_| c.on_state(&at(5, 4), &mut w, CaState::Loss));
    assert_eq!(c.growth.slowness, 8);
}

#[test]
fn a_lone_ack_of_a_round_makes_the_round_longer() {
    let (mut c, mut w) = nv(20, 20);
    c.growth.allowed = false;
    ack(&mut c, &mut w, 3, 10_000);
    assert_eq!((c.batch, c.evidence.rtts, c.growth.allowed), (6, 0, true));
    assert_eq!(c.round_end, 23_000 + 6_000);
}
