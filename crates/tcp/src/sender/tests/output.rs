//! Pacing, TCP small queues, delivery-rate samples.

use super::*;

fn spied(rate: u64) -> (Script, Arc<Mutex<Vec<AckSample>>>) {
    let spy = Spy { rate, ..Spy::default() };
    let samples = spy.samples.clone();
    (Script::with(SenderConfig { congestion: Box::new(spy), ..config() }, 100), samples)
}

#[test]
fn pacing_begins_with_the_tenth_segment_and_spaces_by_length_over_rate() {
    // 1,448,000 B/s: a segment a millisecond. Bursts of two (the rate's millisecond is less).
    let (mut x, _) = spied(1_448_000);
    x.set_cwnd(100);
    x.write_segs(0.0, 20);
    assert_eq!(x.sent_segs(), (0..10).collect::<Vec<_>>());
    // The burst with the tenth segment costs 2 ms.
    assert_eq!(x.s.next_event(), Some(x.time(2.0)));
    x.run(2.0);
    assert_eq!(x.sent(), [(10, 2_896)]);
    assert_eq!(x.s.next_event(), Some(x.time(4.0)));
}

#[test]
fn pacing_gives_late_transmissions_half_of_their_length_back() {
    let (mut x, _) = spied(1_448_000);
    x.set_cwnd(100);
    x.write_segs(0.0, 12);
    x.run(2.0);
    assert_eq!(x.sent_segs().len(), 12);
    assert_eq!(x.next_departure_ns(), x.time(4.0).0);
    // 0.6 ms late: the next burst of two costs 2 − 0.6 ms. 50 ms late: 1 ms.
    x.write_segs(4.6, 2);
    assert_eq!(x.next_departure_ns(), x.time(6.0).0);
    x.write_segs(56.0, 2);
    assert_eq!(x.next_departure_ns(), x.time(57.0).0);
}

#[test]
fn fq_is_given_departure_times_and_nothing_waits() {
    // The same as without it, but all at once: bursts of two, 2 ms apart from the one with the tenth segment on.
    let spy = Spy { rate: 1_448_000, ..Spy::default() };
    let mut x = Script::with(SenderConfig { congestion: Box::new(spy), fq: true, ..config() }, 100);
    x.set_cwnd(100);
    x.write_segs(0.0, 16);
    let sent: Vec<_> = std::iter::from_fn(|| x.s.poll_transmit()).map(|t| t.departure).collect();
    assert_eq!(sent, [0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 4.0, 6.0].map(|ms| x.time(ms)));
    assert_eq!(x.pacing_timer(), None);
}

#[test]
fn fq_paces_a_window_based_control_too() {
    let mut x = Script::with(SenderConfig { fq: true, ..config() }, 100);
    assert!(x.is_paced());
    x.write_segs(0.0, 10);
    assert!(x.next_departure_ns() > x.time(0.0).0, "the tenth segment moves the clock");
}

#[test]
fn pacing_of_window_based_control_is_only_computed() {
    let mut x = Script::new();
    // 200 % while cwnd < ssthresh/2, then 120 %, of cwnd · mss / srtt.
    assert_eq!(x.s.info().pacing_rate, 289_600);
    x.set_ssthresh(12);
    x.update_pacing_rate();
    assert_eq!(x.s.info().pacing_rate, 173_760);
    x.write_segs(0.0, 10);
    assert_eq!((x.sent_segs().len(), x.pacing_timer()), (10, None));
}

#[test]
fn pacing_with_bbr_starts_at_2_89_windows_an_rtt() {
    let mut x = Script::with(SenderConfig { congestion: cc::make("bbr", 1).unwrap(), ..config() }, 100);
    let rate = x.s.info().pacing_rate as f64;
    // 10 packets / 100 ms · 1448 · 739/256, less 1 %.
    let want = 10.0 * 1_448.0 / 0.1 * 739.0 / 256.0 * 0.99;
    assert!((rate / want - 1.0).abs() < 0.01, "{rate} {want}");
    x.write_segs(0.0, 10);
    assert_eq!(x.sent_segs().len(), 10);
    assert!(x.next_departure_ns() > x.time(0.0).0);
}

#[test]
fn rate_samples_of_an_idle_application_are_marked() {
    let (mut x, samples) = spied(0);
    x.write_segs(0.0, 2);
    x.ack(100.0, 2);
    let s = samples.lock().unwrap()[0].rate;
    // 2 packets in the 100 ms between their transmission and the ACK.
    assert!(s.is_app_limited);
    assert_eq!((s.delivered, s.interval_us, s.rtt_us, s.prior_delivered), (2, 100_000, 100_000, 1));
    // 30 packets of a window of 10: never without data.
    x.write_segs(101.0, 30);
    x.ack(201.0, 12);
    assert!(samples.lock().unwrap()[1].rate.is_app_limited, "it had been idle when they left");
    x.ack(301.0, 22);
    let s = samples.lock().unwrap()[2].rate;
    assert!(!s.is_app_limited);
    assert_eq!((s.delivered, s.interval_us), (10, 100_000));
    assert_eq!(x.s.info().delivery_rate, 144_800);
}

#[test]
fn rate_samples_take_the_slower_of_sending_and_acknowledging() {
    let (mut x, samples) = spied(0);
    for k in 0..4 {
        x.write_segs(f64::from(k) * 10.0, 1);
    }
    // Sent over 30 ms, acknowledged together. The ACK interval is 130 ms, the send interval 30 ms.
    x.ack(130.0, 4);
    let s = samples.lock().unwrap()[0].rate;
    assert_eq!((s.delivered, s.interval_us), (4, 130_000));
    assert_eq!(s.acked_sacked, 4);
    // The other way round: an ACK that comes late shortens the next ACK interval. Segment 0 leaves at 0 ms, 1 at 60 ms; the ACK of 0 comes
    // at 160 ms; 2 leaves at 161 ms. The ACK of 1 and 2 samples 2. Before 2 left, 0 had been delivered at 160 ms: the ACK interval is
    // 261 − 160 = 101 ms. Segment 0, sampled last, had left at 0 ms: the send interval is 161 − 0 = 161 ms.
    let (mut x, samples) = spied(0);
    x.write_segs(0.0, 1);
    x.write_segs(60.0, 1);
    x.ack(160.0, 1);
    x.write_segs(161.0, 1);
    x.ack(261.0, 3);
    let s = samples.lock().unwrap()[1].rate;
    assert_eq!((s.delivered, s.interval_us), (2, 161_000));
}

/// Lengths of what leaves.
fn lengths(x: &mut Script) -> Vec<u32> {
    x.sent().iter().map(|burst| burst.1).collect()
}

/// Page sender, "Size of a burst": at 100 ms and a window of ten a burst has two segments.
#[test]
fn a_burst_is_what_was_written_without_a_short_end_that_nagles_rule_holds() {
    for (nodelay, expected) in [(true, vec![2_896, 1_548]), (false, vec![2_896, 1_448])] {
        let mut x = Script::with(SenderConfig { nodelay, ..config() }, 100);
        x.write(0.0, 100);
        assert_eq!(lengths(&mut x), [100], "nothing short is in flight yet");
        x.write(10.0, 3 * u64::from(MSS) + 100);
        assert_eq!(lengths(&mut x), expected, "nodelay {nodelay}");
    }
    let mut x = Script::new();
    x.peer_window(0.0, 2 * MSS + 500);
    x.write_segs(1.0, 10);
    assert_eq!(lengths(&mut x), [2 * MSS], "the receiver's window has no room for a third segment");
}

/// Page sender, "Waiting for a fuller burst".
#[test]
fn a_segment_waits_for_the_next_ack_if_that_is_near() {
    let mut x = Script::full_window(10, 20);
    x.set_ssthresh(10);
    x.ack(100.0, 1);
    assert_eq!(x.sent(), [(10, MSS)], "nothing has left for 100 ms");
    x.ack(100.2, 2);
    assert_eq!(x.sent(), [], "the ACK of what was sent at 0 is due");
    x.ack(100.4, 3);
    assert_eq!(x.sent(), [(11, 2 * MSS)]);

    // Half of the window left 50 ms later: its ACKs are not near when those of the first half have come.
    let mut x = Script::new();
    x.set_ssthresh(10);
    x.write_segs(0.0, 5);
    x.write_segs(50.0, 25);
    assert_eq!(x.sent_segs().len(), 10);
    x.ack(100.0, 5);
    assert_eq!(lengths(&mut x), [2 * MSS, 2 * MSS, MSS]);
}

#[test]
fn small_queues_let_two_bursts_wait_in_the_host() {
    let mut x = Script::with(SenderConfig { tsq: true, watch_host: true, ..config() }, 100);
    x.write_segs(0.0, 10);
    // Two times the memory of a burst, 2 · (2,896 + 1,280) = 8,352 B, more than a millisecond of the rate: two bursts.
    let a = x.s.poll_transmit().unwrap();
    let b = x.s.poll_transmit().unwrap();
    assert!(x.s.poll_transmit().is_none());
    assert_eq!((a.segs, b.segs, x.host_memory()), (2, 2, 8_352));
    // A departure of 2 frames of 1514 B frees a burst's memory, and another one follows.
    x.s.on_departure(x.time(1.0), a.burst, 3_028);
    assert_eq!(x.sent(), [(4, 2_896)]);
    // Frame by frame: half of the memory is enough to go on as well.
    x.s.on_departure(x.time(2.0), b.burst, 1_514);
    assert_eq!(x.sent(), [(6, 2_896)]);
    x.s.on_departure(x.time(3.0), b.burst, 1_514);
    assert_eq!(x.host_memory(), 2 * 4_176);
}

/// What each packet carries of its departure (draft-ietf-ccwg-bbr §4.1.2.1.2): ten in flight, the first three of them lost, one of these
/// lost again.
#[test]
fn lost_packets_and_samples_know_what_was_in_flight_when_they_left() {
    let spy = Spy::default();
    let (samples, lost) = (spy.samples.clone(), spy.lost.clone());
    let mut x = Script::with(SenderConfig { congestion: Box::new(spy), ..config() }, 100);
    x.write_segs(0.0, 10);
    assert_eq!(x.sent_segs().len(), 10);
    x.sack(100.0, 0, &[(3, 10)]);
    let seen: Vec<_> = lost.lock().unwrap().iter().map(|p| (p.seq, p.tx_in_flight, p.lost)).collect();
    assert_eq!(seen, [(seg(0), 1, 1), (seg(1), 2, 2), (seg(2), 3, 3)]);
    let s = *samples.lock().unwrap().last().unwrap();
    assert_eq!((s.rate.tx_in_flight, s.rate.lost), (10, 3));
    // Sent again with none, one and two others in flight; nothing was lost since.
    assert_eq!(x.sent_segs(), [0, 1, 2]);
    x.ack(200.0, 3);
    let s = *samples.lock().unwrap().last().unwrap();
    assert_eq!((s.rate.tx_in_flight, s.rate.lost), (3, 0));
    assert_eq!(lost.lock().unwrap().len(), 3);
}

/// docs/models/tcp/sender.md, "PSH": ten segments fill the window; of what waits behind them three were pushed, and 45 more join them, as another
/// write or as the rest of the same one. The single segment that leaves is the last one of the super-packet that those three begin.
#[test]
fn the_rest_of_a_write_that_blocked_keeps_the_mark_of_its_beginning() {
    for (continues, marks) in [(false, [(54, false)]), (true, [(54, true)])] {
        let mut x = Script::new();
        x.set_cwnd(10);
        x.write_segs(0.0, 10);
        x.write_segs(0.0, 3);
        assert_eq!(x.sent_segs().len(), 10);
        let (now, rest) = (x.time(0.0), 45 * u64::from(MSS));
        let taken = if continues { x.s.continue_write(now, rest) } else { x.s.write(now, rest) };
        assert_eq!(taken, rest);
        x.set_cwnd(200);
        x.ack(100.0, 10);
        x.run(150.0);
        let singles: Vec<_> = std::iter::from_fn(|| x.s.poll_transmit())
            .filter(|t| t.segs == 1)
            .map(|t| ((t.segment.seq - 1) / u64::from(MSS), t.segment.flags.has(Flags::PSH)))
            .collect();
        assert_eq!(singles, marks);
    }
}
