//! Proportional rate reduction, the end of recovery, and undo.

use super::*;

/// 20 segments out of 40; segments 1–3 SACKed at 100, 102 and 104 ms: segment 0 is lost.
fn one_loss() -> Script {
    let mut x = Script::full_window(20, 20);
    x.sack(100.0, 0, &[(1, 2)]);
    x.sack(102.0, 0, &[(1, 3)]);
    assert_eq!(x.sent_segs(), [20, 21]);
    x.sack(104.0, 0, &[(1, 4)]);
    assert_eq!((x.state(), x.ssthresh()), (CaState::Recovery, 10));
    x
}

#[test]
fn prr_sends_one_segment_for_two_delivered_when_the_window_halves() {
    let mut x = one_loss();
    // 22 out − 3 SACKed − 1 lost = 18; sndcnt = ⌈10 · 1/20⌉ = 1: window 19, the retransmission goes.
    assert_eq!((x.cwnd(), x.sent_segs()), (19, vec![0]));
    // k delivered, p sent: ⌈10 k/20⌉ − p, so every second SACK lets one out. In flight falls from 18 towards 10.
    let mut sent = vec![];
    for k in 4..=20u64 {
        x.sack(104.0 + k as f64 / 100.0, 0, &[(1, k + 1)]);
        sent.push(x.sent_segs().len());
    }
    // The 16th finds 19 − 16 + 7 = 10 in flight, the threshold: none; from then on one for one.
    assert_eq!(sent, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1]);
    // 1 + 8 sent for 18 delivered; 22 + 8 out, 20 SACKed: 10 in flight.
    assert_eq!((sent.iter().sum::<usize>(), x.s.info().in_flight), (8, 10));
}

#[test]
fn prr_slow_start_bound_refills_after_many_losses() {
    // 10 of 20 segments are lost at once; reno's threshold is 10. 4 in flight are less than that.
    let mut x = Script::full_window(20, 40);
    x.sack(100.0, 0, &[(14, 20)]);
    // 6 delivered of 20, 14 lost: in flight 0; grow by max(6 − 0, 6) up to the threshold: 6.
    assert_eq!((x.flight().lost(), x.cwnd(), x.sent_segs()), (14, 6, vec![0, 1, 2, 3, 4, 5]));
    // 2 retransmissions acknowledged in order, nothing newly lost: 4 in flight, max(8 − 6, 2) + 1 = 3 more.
    let mut a = x.plain(200.0, 2);
    a.tsecr = x.ts(100.0);
    a.push_sack((seg(14), seg(20)));
    x.give(200.0, a);
    assert_eq!((x.cwnd(), x.sent_segs()), (7, vec![6, 7, 8]));
}

#[test]
fn fast_recovery_ends_with_the_window_at_the_threshold() {
    let mut x = one_loss();
    x.sent_segs();
    let mut a = x.plain(204.0, 22);
    a.tsecr = x.ts(104.0);
    x.give(204.0, a);
    // Beyond the recovery point, and no sign that it was needless: the threshold, 10; and as the state is Open again, the 19 delivered by
    // this ACK count for congestion avoidance: 11 and 9/11.
    assert_eq!((x.state(), x.stats().undos), (CaState::Open, 0));
    assert_eq!((x.cwnd(), x.credit()), (11, 9));
}

#[test]
fn a_lost_retransmission_is_detected_by_rack() {
    let mut x = one_loss();
    assert_eq!(x.sent_segs(), [0]);
    // Segments 20 and 21 left before the retransmission of 0; new ones leave later. One of those is SACKed: 0 is lost again.
    x.sack(120.0, 0, &[(1, 12)]);
    let new = x.sent_segs();
    assert_eq!(new[0], 22);
    x.sack(220.0, 0, &[(1, 12), (22, 23)]);
    assert_eq!((x.sent_segs()[0], x.stats().fast_recoveries), (0, 1));
}

#[test]
fn undo_by_dsack_of_the_only_retransmission() {
    let mut x = one_loss();
    assert_eq!(x.sent_segs(), [0]);
    // The original was late: everything to 20 is acknowledged (echo of 104 ms, so timestamps do not tell), recovery goes on …
    let mut a = x.plain(150.0, 20);
    a.tsecr = x.ts(104.0);
    x.give(150.0, a);
    assert_eq!((x.state(), x.stats().undos), (CaState::Recovery, 0));
    // … until the copy is reported.
    let mut a = x.plain(200.0, 20);
    a.tsecr = x.ts(104.0);
    a.push_sack((seg(0), seg(1)));
    x.give(200.0, a);
    assert_eq!((x.state(), x.stats().undos, x.stats().dsack_dups), (CaState::Open, 1, 1));
    assert_eq!((x.cwnd(), x.ssthresh()), (20, cc::INFINITE_SSTHRESH));
}

#[test]
fn a_dsack_of_what_was_never_sent_again_is_the_networks() {
    let mut x = Script::full_window(10, 0);
    // Reordering was seen, so that a duplicate of a retransmission would widen RACK's window with the next round trip's delivery.
    x.see_reordering(1, 2);
    x.ack(100.0, 5);
    x.sack(101.0, 5, &[(1, 2)]);
    x.ack(102.0, 6);
    // One duplicate and no retransmission: the network made it.
    assert_eq!((x.stats().dsack_dups, x.stats().retransmits, x.s.info().reo_wnd_steps), (1, 0, 1));
    assert_eq!((x.undo_from(), x.state()), (None, CaState::Open));
}

/// RFC 4015 §3.2 restores the window; RFC 2861 §3.2 shrinks one that was not used for an RTO. The time before the undo does not count: the
/// window that was not used then was another one.
#[test]
fn a_restored_window_gets_an_rto_to_be_used() {
    let mut x = Script::full_window(20, 0);
    x.sack(100.0, 0, &[(1, 4)]);
    assert_eq!(x.sent_segs(), [0]);
    // The copy's ACK: recovery ends with 20/2 = 10 segments, and congestion avoidance counts the 17 delivered: 11.
    x.ack(200.0, 20);
    x.write_segs(200.0, 2);
    assert_eq!((x.state(), x.cwnd(), x.sent_segs()), (CaState::Open, 11, vec![20, 21]));
    // Two segments are out and the ACKs stop; a loss probe goes. At 520 ms a DSACK tells that the copy of segment 0 was needless.
    x.sack(520.0, 20, &[(0, 1)]);
    assert_eq!((x.stats().tlps, x.stats().undos, x.state(), x.cwnd()), (1, 1, CaState::Open, 20));
    // 3 of 20 are used. The last progress was 321 ms ago, the RTO is 300 ms, but the undo was 1 ms ago.
    assert_eq!(x.s.info().rto_us, 300_000);
    x.write_segs(521.0, 1);
    assert_eq!((x.s.info().unacked, x.cwnd()), (3, 20));
}

/// RFC 8985 §6.2 step 2: an ACK that echoes a time before the copy left was caused by the original. The copy is then not the newest
/// delivery, and nothing is late in comparison with it.
#[test]
fn a_copy_whose_original_was_acknowledged_is_not_the_newest_delivery() {
    let mut x = one_loss();
    assert_eq!(x.sent_segs(), [0]);
    // The copy left at 104 ms. At 210 ms 106 ms have passed, more than the smallest RTT of 100 ms, so that the copy could have been
    // answered; the echo of 0 ms says that it was not. The newest delivery stays segment 3, sent at 0 ms with segments 4 to 19, before
    // them. Were it the copy, they would be lost after 106 ms and a window of 100/4 = 25 ms: at 131 ms.
    let a = Segment { tsecr: x.ts(0.0), ..x.plain(210.0, 4) };
    x.give(210.0, a);
    assert_eq!((x.una(), x.flight().lost(), x.state()), (seg(4), 0, CaState::Open));
}

/// RFC 6675 §6 allows an RTO that runs from each retransmission in recovery; here it runs from that of the oldest segment.
#[test]
fn the_rto_runs_from_the_retransmission_of_the_oldest_segment() {
    let mut x = Script::full_window(10, 0);
    // A loss probe is due at 203 ms. Three SACKs at once: segment 0 is lost and goes again.
    assert_eq!(x.timer(), Some((Purpose::LossProbe, 203.0)));
    x.sack(100.0, 0, &[(1, 4)]);
    assert_eq!(x.sent_segs(), [0]);
    // 300 ticks from tick 10,201: 10,501 rounds up to 10,504 (unit 8), which is 403 ms.
    assert_eq!(x.timer(), Some((Purpose::Retransmit, 403.0)));
}

#[test]
fn undo_by_timestamps_full() {
    let mut x = one_loss();
    x.sent_segs();
    // All of it, and the echo is older than the retransmission (RFC 3522): the first copy came.
    let mut a = x.plain(110.0, 22);
    a.tsecr = x.ts(0.0);
    x.give(110.0, a);
    assert_eq!((x.state(), x.stats().undos, x.ssthresh()), (CaState::Open, 1, cc::INFINITE_SSTHRESH));
    // Back to 20; and one in slow start for each of the 19 now delivered, as the state is Open again: 39.
    assert_eq!(x.cwnd(), 39);
}

#[test]
fn undo_by_timestamps_partial() {
    let mut x = one_loss();
    x.sent_segs();
    // Only segments 0–3; the rest is out. Nothing retransmitted is out any more: back to the old window, and reordering is noted.
    let mut a = x.plain(110.0, 4);
    a.tsecr = x.ts(0.0);
    x.give(110.0, a);
    assert_eq!((x.state(), x.stats().undos, x.flight().lost()), (CaState::Open, 1, 0));
    assert!(x.cwnd() >= 20 && x.s.event_counts().reord_seen > 0);
}

#[test]
fn a_partial_undo_waits_while_other_retransmissions_are_out() {
    let mut x = Script::full_window(20, 0);
    x.sack(100.0, 0, &[(10, 20)]);
    let again = x.sent_segs();
    assert!(again.len() >= 2 && again[0] == 0, "{again:?}");
    let mut a = x.plain(110.0, 1);
    a.tsecr = x.ts(0.0);
    x.give(110.0, a);
    assert_eq!((x.state(), x.stats().undos, x.sent_segs()), (CaState::Recovery, 0, vec![]));
}

#[test]
fn a_retransmission_waits_while_the_original_is_in_the_hosts_queue() {
    let mut x = Script::with(SenderConfig { watch_host: true, ..config() }, 100);
    x.write_segs(0.0, 10);
    let first = x.s.poll_transmit().unwrap();
    assert_eq!((first.segs, first.burst), (2, 1));
    x.sent();
    x.sack(100.0, 0, &[(2, 6)]);
    assert_eq!((x.state(), x.flight().lost(), x.sent()), (CaState::Recovery, 2, vec![]));
    assert!(x.stats().held_in_host_queue > 0);
    x.s.on_departure(x.time(100.2), first.burst, 3_028);
    x.sack(100.3, 0, &[(2, 7)]);
    assert_eq!(x.sent(), [(0, 2_896)]);
}

/// docs/models/tcp/sender.md, "PSH": super-packets of two segments out of one write of twenty.
#[test]
fn a_part_of_a_super_packet_that_is_sent_again_alone_is_not_pushed() {
    let mut x = Script::full_window(20, 0);
    // 0 and 1 left together and are lost together: a super-packet again. Of 10 and 11 the second alone, and 19, where the write ends.
    x.sack(100.0, 0, &[(2, 11), (12, 19)]);
    x.set_cwnd(40);
    let repaired = |x: &mut Script| -> Vec<(u64, u32, bool)> {
        std::iter::from_fn(|| x.s.poll_transmit())
            .map(|t| ((t.segment.seq - 1) / u64::from(MSS), t.segment.len / MSS, t.segment.flags.has(Flags::PSH)))
            .collect()
    };
    x.sack(101.0, 0, &[(2, 11), (12, 19)]);
    assert_eq!(repaired(&mut x), [(0, 2, true), (11, 1, false)]);
    x.ack(202.0, 19);
    x.run(1_000.0);
    assert_eq!(repaired(&mut x)[0], (19, 1, true));
}
