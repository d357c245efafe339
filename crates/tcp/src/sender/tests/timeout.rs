//! Retransmission timeouts, F-RTO, the timer wheel, zero-window probes.

use super::*;
use crate::sender::repair::{Frto, Phase};

/// Ten segments, nothing comes back; where the timer stands after each timeout.
fn silent(x: &mut Script, n: usize) -> Vec<f64> {
    let mut at = vec![];
    while at.len() < n {
        let (what, when) = x.timer().unwrap();
        x.run(when);
        if what == Purpose::Retransmit {
            at.push(when);
        }
    }
    at
}

#[test]
fn rto_backs_off_by_doubling_on_a_wheel_of_ticks() {
    let mut x = Script::full_window(10, 0);
    // Probe at 203 ms (see the probe's test), then 300 ms from there: tick 10,404 + … up to a multiple of 8, later ones of 64 ticks.
    let at = silent(&mut x, 4);
    // Tick t ends at t − 1 ms, establishment at tick 10,101. 203 + 300: tick 10,604 → 10,608. + 600: 11,208 → 11,264 (64).
    // + 1,200: 12,464 → 12,480 (64). + 2,400: 14,880 → 14,912 (64).
    assert_eq!(at, [507.0, 1_163.0, 2_379.0, 4_811.0]);
    assert_eq!((x.stats().rtos, x.backoff(), x.s.info().rto_us), (4, 4, 4_800_000));
    assert_eq!((x.state(), x.cwnd(), x.ssthresh()), (CaState::Loss, 1, 5));
}

#[test]
fn rto_at_hz_100_comes_up_to_a_tick_late() {
    let kernel = Kernel { hz: 100, ..Kernel::V6_1 };
    let jiffies = Jiffies::new(100, Duration::millis(3));
    let mut x = Script::with(SenderConfig { kernel, jiffies, ..config() }, 100);
    x.write_segs(0.0, 2);
    // Ticks come 3 ms after each 10 ms. The probe: 202 ms are 21 ticks, the 21st tick boundary after the running one ends: 213 ms.
    assert_eq!(x.timer(), Some((Purpose::LossProbe, 213.0)));
    // The RTO: 30 ticks after that: 513 ms + one tick, as the timer was armed within a tick that had just begun.
    let at = silent(&mut x, 1);
    assert_eq!(at, [523.0]);
}

#[test]
fn a_timeout_marks_everything_lost_and_sends_the_head() {
    let mut x = Script::full_window(10, 0);
    silent(&mut x, 1);
    // The probe sent segment 9 again at 203 ms; the timeout marks it as well: it is older than the last RTT.
    assert_eq!((x.sent_segs(), x.flight().lost(), x.flight().copies_out()), (vec![9, 0], 10, 1));
    assert_eq!(x.cwnd(), 1);
}

#[test]
fn frto_ends_a_spurious_timeout_when_an_original_is_acknowledged() {
    let mut x = Script::full_window(10, 10);
    let t = silent(&mut x, 1)[0];
    x.sent_segs();
    assert_eq!(x.phase(), Phase::Loss(Frto::Watching));
    let out = x.s.info().unacked;
    let echo = x.ts(t);
    // Step 2.b: the left edge moves (the echo is the retransmission's, so Eifel is silent): new data instead of more copies.
    let a = Segment { tsecr: echo, ..x.plain(t + 100.0, 1) };
    x.give(t + 100.0, a);
    let new = x.sent_segs();
    assert_eq!((new.clone(), x.state()), (vec![u64::from(out), u64::from(out) + 1], CaState::Loss));
    // Step 3.b: segment 1 was never sent again, and is acknowledged: the timeout was spurious.
    let a = Segment { tsecr: echo, ..x.plain(t + 101.0, 2) };
    x.give(t + 101.0, a);
    assert_eq!((x.state(), x.stats().spurious_rtos, x.flight().lost()), (CaState::Open, 1, 0));
    assert!(x.cwnd() >= 10, "{}", x.cwnd());
    assert_eq!(x.ssthresh(), cc::INFINITE_SSTHRESH);
}

#[test]
fn frto_gives_way_to_retransmission_when_the_new_data_is_sacked() {
    let mut x = Script::full_window(10, 10);
    let t = silent(&mut x, 1)[0];
    x.sent_segs();
    let echo = x.ts(t);
    let a = Segment { tsecr: echo, ..x.plain(t + 100.0, 1) };
    x.give(t + 100.0, a);
    let new = x.sent_segs()[0];
    // Step 3.a: the new segment came, segment 1 did not: all that is marked lost is sent again.
    let mut a = Segment { tsecr: echo, ..x.plain(t + 200.0, 1) };
    a.push_sack((seg(new), seg(new + 1)));
    x.give(t + 200.0, a);
    assert_eq!((x.phase(), x.stats().spurious_rtos), (Phase::Loss(Frto::Off), 0));
    assert_eq!(x.sent_segs()[0], 1);
}

#[test]
fn frto_without_new_data_is_conventional() {
    let mut x = Script::full_window(10, 0);
    let t = silent(&mut x, 1)[0];
    x.sent_segs();
    let a = Segment { tsecr: x.ts(t), ..x.plain(t + 100.0, 1) };
    x.give(t + 100.0, a);
    // Step 2.a: slow start from 1: two segments.
    assert_eq!((x.phase(), x.sent_segs()), (Phase::Loss(Frto::Off), vec![1, 2]));
}

/// RFC 5682 §2.1 step 1 leaves a timeout during the repair of an earlier one to conventional recovery; here that holds for one during fast
/// recovery: what is lost is sent again.
#[test]
fn a_timeout_during_recovery_is_not_watched() {
    let mut x = Script::full_window(10, 10);
    x.sack(100.0, 0, &[(1, 4)]);
    assert_eq!(x.state(), CaState::Recovery);
    let t = silent(&mut x, 1)[0];
    x.sent_segs();
    assert_eq!(x.phase(), Phase::Loss(Frto::Off));
    // The next ACK brings no new data, although there are some, but segment 4, the lowest that is lost (1 to 3 were SACKed).
    let a = Segment { tsecr: x.ts(t), ..x.plain(t + 100.0, 4) };
    x.give(t + 100.0, a);
    assert_eq!((x.state(), x.sent_segs()[0]), (CaState::Loss, 4));
}

/// docs/models/tcp/rack.md: the degree of reordering never falls, except to 3 on a timeout from Disorder with three or more SACKed.
#[test]
fn a_timeout_in_spite_of_three_sacks_lowers_the_degree_of_reordering() {
    // Of n segments all but the first three are SACKed.
    for (n, sacked, degree) in [(10, 7, 3), (6, 3, 3), (5, 2, 7)] {
        let mut x = Script::full_window(n, 0);
        x.see_reordering(seg(0), seg(7));
        assert_eq!(x.s.info().reordering, 7);
        let t = silent(&mut x, 1)[0];
        let a = Segment { tsecr: x.ts(t), ..x.plain(t + 100.0, 1) };
        x.give(t + 100.0, a);
        // Segments 1 and 2 are sent again; then the original of 1 is acknowledged and the timeout undone. The copy of 2 is out: Disorder.
        let mut a = Segment { tsecr: x.ts(0.0), ..x.plain(t + 110.0, 2) };
        a.push_sack((seg(3), seg(u64::from(n))));
        x.give(t + 110.0, a);
        assert_eq!((x.state(), x.flight().sacked(), x.stats().undos), (CaState::Disorder, sacked, 1));
        // Nothing that was sent before a segment SACKed is missing, so that RACK waits for nothing. The copy is lost: the next timeout.
        silent(&mut x, 1);
        assert_eq!((x.stats().rtos, x.s.info().reordering), (2, degree), "{n}");
    }
}

/// docs/models/tcp/sender.md, "Undo clock": the first retransmission that an echo is compared with is one of the present repair (RFC 3522 §3.2).
#[test]
fn a_timeout_is_undone_by_timestamps_after_an_earlier_recovery() {
    let mut x = Script::full_window(20, 0);
    x.sack(100.0, 0, &[(1, 4)]);
    assert_eq!(x.sent_segs(), [0]);
    x.ack(200.0, 20);
    x.write_segs(200.0, 11);
    assert_eq!((x.state(), x.sent_segs().len()), (CaState::Open, 11));
    let t = silent(&mut x, 1)[0];
    // The ACK of segment 20 was late. Its echo, 200 ms, is older than the timeout's copy, but not than the copy of segment 0 at 100 ms.
    let a = Segment { tsecr: x.ts(200.0), ..x.plain(t + 1.0, 21) };
    x.give(t + 1.0, a);
    assert_eq!((x.stats().undos, x.stats().spurious_rtos, x.state()), (1, 0, CaState::Open));
}

#[test]
fn a_timeout_is_undone_by_timestamps() {
    let mut x = Script::full_window(10, 10);
    let t = silent(&mut x, 1)[0];
    x.sent_segs();
    // The echo is that of the original: every ACK was just late.
    let a = Segment { tsecr: x.ts(0.0), ..x.plain(t + 1.0, 1) };
    x.give(t + 1.0, a);
    assert_eq!((x.state(), x.stats().undos, x.ssthresh()), (CaState::Open, 1, cc::INFINITE_SSTHRESH));
    assert!(x.cwnd() >= 10);
}

#[test]
fn a_retransmission_left_by_an_undo_is_counted_twice_as_in_linux() {
    let mut x = Script::full_window(10, 0);
    let t = silent(&mut x, 1)[0];
    let a = Segment { tsecr: x.ts(t), ..x.plain(t + 100.0, 1) };
    x.give(t + 100.0, a);
    // Segments 1 and 2 are sent again; then it turns out that 1 was only late. The loss marks go, the copy of 2 stays
    // tagged; RACK then finds 3–9 lost, because they are older than what was delivered.
    let a = Segment { tsecr: x.ts(0.0), ..x.plain(t + 110.0, 2) };
    x.give(t + 110.0, a);
    assert_eq!((x.stats().undos, x.flight().lost(), x.flight().get(2).is(flight::Marks::LOST)), (1, 7, false));
    assert!(x.flight().get(2).is(flight::Marks::COPY_OUT));
    let before = x.flight().copies_out();
    // The next timeout takes the tags of 3–9 back, sends segment 2 again and counts it again.
    let t = silent(&mut x, 1)[0];
    assert_eq!((before, x.flight().lost(), x.flight().copies_out()), (2, 8, 2));
    x.ack(t + 100.0, 10);
    assert_eq!((x.s.info().unacked, x.flight().copies_out(), x.s.info().in_flight), (0, 1, 1));
}

#[test]
fn a_closed_window_is_probed_with_growing_pauses() {
    let mut x = Script::full_window(10, 10);
    let a = Segment { wnd: 0, ..x.plain(100.0, 10) };
    x.give(100.0, a);
    assert_eq!((x.sent(), x.s.info().unacked), (vec![], 0));
    let (mut at, mut seqs) = (vec![], vec![]);
    while at.len() < 4 {
        let (what, when) = x.timer().unwrap();
        assert_eq!(what, Purpose::WindowProbe);
        x.run(when);
        at.push(when - 100.0);
        let p = x.s.poll_transmit().unwrap().segment;
        seqs.push((p.seq, p.len));
    }
    // An old sequence number without data, after 1, 2, 4, 8 times the RTO (about 290 ms after ten samples of 100 ms).
    assert_eq!(seqs, [(seg(10) - 1, 0); 4]);
    for (k, w) in at.windows(2).enumerate() {
        let rto = x.s.info().rto_us as f64 / 1e3 * f64::from(2u32 << k);
        assert!((rto..rto * 1.13 + 8.0).contains(&(w[1] - w[0])), "{at:?}");
    }
    assert_eq!(x.stats().window_probes, 4);
    let ms = 100.0 + at[3] + 10.0;
    let a = Segment { wnd: 5_000, ..x.plain(ms, 10) };
    x.give(ms, a);
    // 5,000 = 2 · 1,448 + 2,104: with nodelay the rest goes as well. The back-off ends with the next RTT sample.
    assert_eq!((x.sent(), x.backoff()), (vec![(10, 2_896), (12, 2_104)], 4));
    x.ack(ms + 100.0, 12);
    assert_eq!(x.backoff(), 0);
}
