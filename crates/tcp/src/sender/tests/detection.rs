//! Limited transmit, RACK with its window and timer, reordering, tail loss probes, PAWS, reneging.

use super::*;

#[test]
fn disorder_sends_new_data_for_each_sacked_segment() {
    // RFC 3042: one SACKed segment lets one new one out; the window stays.
    let mut x = Script::full_window(10, 10);
    x.sack(100.0, 0, &[(1, 2)]);
    assert_eq!((x.state(), x.cwnd(), x.sent_segs()), (CaState::Disorder, 10, vec![10]));
    x.sack(101.5, 0, &[(1, 3)]);
    assert_eq!((x.state(), x.s.info().in_flight, x.sent_segs()), (CaState::Disorder, 10, vec![11]));
}

#[test]
fn rack_waits_a_quarter_of_the_minimum_rtt_with_its_timer() {
    let mut x = Script::full_window(10, 0);
    x.sack(100.0, 0, &[(1, 2)]);
    // Segment 0 left with segment 1 and is 1 RTT old; it may be min_rtt/4 = 25 ms late. The timer adds 2 ms, and
    // fires with the tick after: 128 ms.
    assert_eq!(x.timer(), Some((Purpose::Reordering, 128.0)));
    x.run(127.9);
    assert_eq!((x.flight().lost(), x.sent_segs()), (0, vec![]));
    x.run(128.0);
    assert_eq!((x.state(), x.flight().lost(), x.sent_segs()), (CaState::Recovery, 1, vec![0]));
    // Reno: 10 → 5; 8 are in flight and the fast retransmit always goes: 8 + 1.
    assert_eq!((x.ssthresh(), x.cwnd()), (5, 9));
}

#[test]
fn rack_judges_by_time_of_transmission() {
    // Segments 0–9 at 0 ms, 10–11 at 40 ms. A SACK for 10 at 140 ms says that 1–9 are 40 ms older than something delivered.
    let mut x = Script::new();
    x.write_segs(0.0, 8);
    x.write_segs(40.0, 2);
    x.sent_segs();
    x.sack(140.0, 0, &[(9, 10)]);
    // Segments 0–7: 0 + 100 + 25 < 140, all lost at once. Segment 8 left with 9: it has until 165 ms, + 2 ms and a tick.
    assert_eq!((x.flight().lost(), x.state()), (8, CaState::Recovery));
    assert!(!x.flight().get(8).is(flight::Marks::LOST));
    assert_eq!(x.timer(), Some((Purpose::Reordering, 168.0)));
}

#[test]
fn three_sacked_segments_need_no_window_before_reordering_was_seen() {
    let mut x = Script::full_window(10, 10);
    x.sack(100.0, 0, &[(1, 3)]);
    assert_eq!(x.state(), CaState::Disorder);
    x.sack(100.1, 0, &[(1, 4)]);
    assert_eq!((x.state(), x.flight().lost()), (CaState::Recovery, 1));
}

#[test]
fn three_sacked_segments_wait_once_reordering_was_seen() {
    let mut x = Script::full_window(10, 0);
    x.see_reordering(1, 2);
    x.sack(100.0, 0, &[(1, 5)]);
    assert_eq!((x.state(), x.timer()), (CaState::Disorder, Some((Purpose::Reordering, 128.0))));
}

#[test]
fn reordering_metric_is_the_distance_to_the_highest_sack() {
    let mut x = Script::full_window(20, 0);
    x.sack(100.0, 0, &[(8, 9)]);
    assert_eq!((x.s.info().reordering, x.s.event_counts().reord_seen), (3, 0));
    // Segment 2 comes late: the highest SACK ends at 9, so 9 − 2 = 7 segments.
    x.sack(101.0, 0, &[(2, 3), (8, 9)]);
    assert_eq!((x.s.info().reordering, x.s.event_counts().reord_seen), (7, 1));
    // Less does not lower it.
    x.sack(102.0, 0, &[(5, 6), (2, 3), (8, 9)]);
    assert_eq!((x.s.info().reordering, x.s.event_counts().reord_seen), (7, 2));
    // A cumulative ACK over originals below the highest SACK counts as well.
    x.ack(103.0, 3);
    assert_eq!((x.s.info().reordering, x.s.event_counts().reord_seen), (9, 3));
}

#[test]
fn reordering_metric_ends_at_300() {
    let mut x = Script::full_window(400, 0);
    x.sack(100.0, 0, &[(390, 391)]);
    x.sack(101.0, 0, &[(2, 3), (390, 391)]);
    assert_eq!(x.s.info().reordering, 300);
}

/// Loses segment `n` of the 10 out (really: it is late), sends it again, and lets a DSACK report that both came.
fn spurious(x: &mut Script, ms: f64, n: u64) {
    x.sack(ms, n, &[(n + 1, n + 9)]);
    assert_eq!(x.state(), CaState::Disorder);
    x.run(ms + 60.0);
    assert_eq!((x.state(), x.sent_segs()), (CaState::Recovery, vec![n]));
    x.sack(ms + 100.0, n + 10, &[(n, n + 1)]);
}

#[test]
fn a_dsack_widens_the_reordering_window_once_a_round_trip() {
    let mut x = Script::full_window(10, 0);
    x.see_reordering(1, 2);
    spurious(&mut x, 100.0, 0);
    assert_eq!((x.s.info().reo_wnd_steps, x.window_kept_for()), (2, 16));
    x.sent_segs();
    x.write_segs(300.0, 10);
    x.sent_segs();
    // Two steps: 2 · 25 ms, and the timer fires at 400 + 53 ms; see `spurious`, which waits 60 ms.
    spurious(&mut x, 400.0, 10);
    assert_eq!(x.s.info().reo_wnd_steps, 3);
}

#[test]
fn a_dsack_before_any_reordering_changes_nothing() {
    let mut x = Script::full_window(10, 0);
    x.sack(100.0, 0, &[(1, 4)]);
    assert_eq!(x.sent_segs(), [0]);
    x.sack(200.0, 10, &[(0, 1)]);
    assert_eq!((x.s.info().reo_wnd_steps, x.stats().dsack_dups), (1, 1));
}

#[test]
fn a_wide_reordering_window_lasts_sixteen_recoveries() {
    let mut x = Script::full_window(10, 0);
    x.widen_reordering_window(4);
    let (mut ms, mut n) = (0.0, 0);
    for round in 1..=16 {
        // A real loss: 3 SACKs, a retransmission, and an ACK for it an RTT later.
        x.sack(ms + 100.0, n, &[(n + 1, n + 4)]);
        assert_eq!(x.sent_segs(), [n], "round {round}");
        let mut a = x.plain(ms + 200.0, n + 10);
        a.tsecr = x.ts(ms + 100.0);
        x.give(ms + 200.0, a);
        assert_eq!((x.state(), x.window_kept_for()), (CaState::Open, 16 - round));
        assert_eq!(x.s.info().reo_wnd_steps, 4);
        (ms, n) = (ms + 200.0, n + 10);
        x.set_cwnd(10);
        x.write_segs(ms, 10);
        x.sent_segs();
    }
    x.ack(ms + 100.0, n + 1);
    assert_eq!(x.s.info().reo_wnd_steps, 1);
}

#[test]
fn tail_loss_probe_sends_new_data_when_there_is_some() {
    let mut x = Script::full_window(10, 3);
    // 2 · srtt + 2 ms, before the RTO of 300 ms. 202 ticks: the wheel's unit is 8; tick 10,101 + 202 rounds up to 10,304, which is 203 ms.
    assert_eq!(x.timer(), Some((Purpose::LossProbe, 203.0)));
    x.run(203.0);
    assert_eq!((x.sent_segs(), x.stats().tlps, x.stats().retransmits, x.cwnd()), (vec![10], 1, 0, 10));
    assert!(x.probe_ends_at(seg(11)));
    x.ack(303.0, 11);
    assert_eq!((x.state(), x.probe_is_out()), (CaState::Open, false));
}

/// RFC 8985 §7.2: the probe comes no later than the RTO of the oldest segment, as long as that lies ahead.
#[test]
fn tail_loss_probe_is_not_bounded_by_an_rto_that_has_passed() {
    for (ms, due) in [(290.0, 301.0), (310.0, 515.0)] {
        let mut x = Script::full_window(5, 0);
        x.set_cwnd(10);
        // The probe at 203 ms repeats segment 4, and the RTO runs anew from there. Segment 0's own 300 ms end at 300 ms.
        x.run(203.0);
        assert_eq!((x.sent_segs(), x.probe_is_out()), (vec![4], true));
        // New data at 290 ms: 202 ms would be too late; 10 ms are left, and a tick. At 310 ms nothing is left of the 300: 202 ticks from
        // tick 10,411 are 10,613, rounded up to 10,616 (unit 8), which is 515 ms.
        x.write_segs(ms, 1);
        assert_eq!((x.sent_segs(), x.timer()), (vec![5], Some((Purpose::LossProbe, due))));
    }
}

#[test]
fn tail_loss_probe_repeats_the_last_segment_and_repairs_it() {
    let mut x = Script::full_window(10, 0);
    x.ack(100.0, 9);
    x.set_ssthresh(20);
    // One segment is out: 2 · srtt + 200 ms for a delayed ACK, but no later than the RTO.
    let (what, when) = x.timer().unwrap();
    assert_eq!(what, Purpose::LossProbe);
    assert!((when - 100.0) > 200.0 && when - 100.0 <= 308.0, "{when}");
    x.run(when);
    assert_eq!((x.sent_segs(), x.stats().retransmits), (vec![9], 1));
    let cwnd = x.cwnd();
    // Acknowledged without a DSACK, and more: the original was lost. RFC 8985 §7.4.2: reduce as for a loss.
    x.write_segs(when + 1.0, 1);
    let mut a = x.plain(when + 101.0, 11);
    a.tsecr = x.ts(when);
    x.give(when + 101.0, a);
    assert_eq!((x.cwnd(), x.ssthresh(), x.state()), (cwnd / 2, cwnd / 2, CaState::Open));
}

#[test]
fn tail_loss_probe_that_a_dsack_reports_changes_nothing() {
    let mut x = Script::full_window(10, 0);
    x.run(203.0);
    assert_eq!((x.sent_segs(), x.probe_ends_at(seg(10))), (vec![9], true));
    x.ack(210.0, 10);
    let cwnd = x.cwnd();
    x.sack(303.0, 10, &[(9, 10)]);
    assert_eq!((x.probe_is_out(), x.cwnd(), x.stats().dsack_dups), (false, cwnd, 1));
}

#[test]
fn paws_rejects_an_ack_that_was_overtaken() {
    let mut x = Script::full_window(10, 10);
    x.ack(105.0, 2);
    x.sent_segs();
    // Sent 2 ms earlier: too old although it acknowledges more. One tick is tolerated.
    let late = Segment { tsval: x.ts(103.0), ..x.plain(105.1, 4) };
    x.give(105.1, late);
    assert_eq!((x.stats().paws_rejected, x.una(), x.sent_segs().len()), (1, seg(2), 0));
    let late = Segment { tsval: x.ts(104.0), ..x.plain(105.2, 4) };
    x.give(105.2, late);
    assert_eq!((x.stats().paws_rejected, x.una()), (1, seg(4)));
    // A repeated ACK that does not open the window may be late (it may carry SACKs).
    let mut late = Segment { tsval: x.ts(100.0), ..x.plain(105.3, 4) };
    late.push_sack((seg(5), seg(6)));
    x.give(105.3, late);
    assert_eq!((x.stats().paws_rejected, x.flight().sacked()), (1, 1));
}

#[test]
fn an_ack_below_the_left_edge_still_brings_its_sacks() {
    let mut x = Script::full_window(10, 0);
    x.ack(100.0, 2);
    x.sack(100.1, 1, &[(4, 6)]);
    assert_eq!((x.una(), x.flight().sacked(), x.state()), (seg(2), 2, CaState::Disorder));
}

/// RFC 5961 §5.2: an ACK older than SND.UNA less the largest window is not acceptable, and is answered.
#[test]
fn an_ack_older_than_a_window_is_answered_and_not_read() {
    let mut x = Script::new();
    x.set_cwnd(1_000);
    x.write_segs(0.0, 1_000);
    x.ack(100.0, 1_000);
    x.write_segs(100.0, 510);
    x.ack(200.0, 1_500);
    x.sent_segs();
    // SND.UNA = 1 + 1,500 · 1,448 = 2,172,001, and the largest window is 2,000,000 bytes. 172,001 is just recent enough: its SACK is read.
    let mut a = Segment { ack: 172_001, ..x.plain(201.0, 0) };
    a.push_sack((seg(1_502), seg(1_503)));
    x.give(201.0, a);
    assert_eq!((x.s.has_output(), x.flight().sacked()), (false, 1));
    // 172,000 is too old.
    let mut a = Segment { ack: 172_000, ..x.plain(202.0, 0) };
    a.push_sack((seg(1_504), seg(1_505)));
    x.give(202.0, a);
    let answer = x.s.poll_transmit().unwrap().segment;
    assert_eq!((answer.len, answer.seq, x.flight().sacked()), (0, seg(1_510), 1));
}

#[test]
fn reneging_is_answered_by_a_timeout_that_forgets_sacks() {
    let mut x = Script::full_window(10, 0);
    x.sack(100.0, 0, &[(1, 2), (5, 8)]);
    x.sent_segs();
    // The ACK reaches the SACKed segment 5 and says that it is missing: wait srtt/2 = 50 ms, not the RTO.
    x.ack(101.0, 5);
    let (what, when) = x.timer().unwrap();
    assert_eq!(what, Purpose::Retransmit);
    assert!((151.0..=152.0).contains(&when), "{when}");
    x.run(when);
    assert!(x.has_reneged());
    assert_eq!((x.flight().sacked(), x.flight().lost(), x.sent_segs()), (0, 5, vec![5]));
}

/// docs/models/tcp/recovery.md: the receiver gets max(srtt/2, 10 ms) to explain itself. With an RTT of 10 ms that is 10, not 5.
#[test]
fn a_reneging_receiver_gets_ten_milliseconds_at_least() {
    let mut x = Script::with(config(), 10);
    x.write_segs(0.0, 10);
    x.sack(10.0, 0, &[(1, 2), (5, 8)]);
    x.ack(11.0, 5);
    // At 11 ms; a timer fires with the tick after the 10 that it waits for: 11 + 10 + 1.
    assert_eq!((x.s.info().srtt_us, x.timer()), (10_000, Some((Purpose::Retransmit, 22.0))));
}
