//! Cwnd validation, idle restart, the receiver's window, the send buffer.

use super::*;

#[test]
fn a_window_of_which_half_is_unused_does_not_grow_in_slow_start() {
    let mut x = Script::new();
    // 5 of 10: not more than half. 6 of 10: slow start may go on to 16.
    x.write_segs(0.0, 5);
    x.ack(100.0, 5);
    assert_eq!(x.cwnd(), 10);
    x.write_segs(100.1, 6);
    x.ack(200.1, 11);
    assert_eq!(x.cwnd(), 16);
}

#[test]
fn an_application_limited_window_falls_half_way_to_what_was_used() {
    // The threshold remembers three quarters of the window (RFC 2861 §3.2): max(20, 15), max(12, 15).
    for (before, after) in [(20, 20), (12, 15)] {
        let mut x = Script::new();
        x.set_cwnd(20);
        x.set_ssthresh(before);
        x.write_segs(0.0, 2);
        // No ACK for more than an RTO; 2 used count as the initial 10: (20 + 10)/2.
        x.run(310.0);
        x.write_segs(320.0, 1);
        assert_eq!((x.cwnd(), x.ssthresh()), (15, after));
    }
}

#[test]
fn an_idle_connection_halves_its_window_for_every_rto() {
    for (idle, cwnd) in [(290.0, 40), (500.0, 20), (800.0, 10), (5_000.0, 10)] {
        let mut x = Script::full_window(40, 0);
        x.set_ssthresh(40);
        x.ack(100.0, 40);
        assert_eq!(x.cwnd(), 41, "one congestion-avoidance step");
        x.set_cwnd(40);
        // Idle counts from the last transmission, at 0 ms. After the sample of 100 ms the RTO is still 300 ms.
        assert_eq!(x.s.info().rto_us, 300_000);
        x.write_segs(idle, 1);
        assert_eq!(x.cwnd(), cwnd, "idle {idle} ms");
    }
}

/// RFC 6928: the window of a new connection, which a route may raise, goes out at once.
#[test]
fn a_connection_begins_with_its_initial_window() {
    for initcwnd in [10, 32] {
        let kernel = Kernel { initcwnd, ..config().kernel };
        let mut x = Script::with(SenderConfig { kernel, ..config() }, 100);
        x.write_segs(0.0, 100);
        let segments: u32 = x.sent().iter().map(|&(_, bytes)| bytes / 1_448).sum();
        assert_eq!((x.cwnd(), segments), (initcwnd, initcwnd));
    }
}

#[test]
fn idle_restart_can_be_switched_off() {
    let kernel = Kernel { slow_start_after_idle: false, ..config().kernel };
    let mut x = Script::with(SenderConfig { kernel, ..config() }, 100);
    x.set_cwnd(40);
    x.write_segs(0.0, 40);
    x.ack(100.0, 40);
    let cwnd = x.cwnd();
    x.write_segs(5_000.0, 1);
    assert_eq!(x.cwnd(), cwnd);
}

#[test]
fn the_receivers_window_ends_with_a_short_segment_inside_a_super_packet() {
    let mut x = Script::new();
    x.set_cwnd(100);
    // 11 segments and 500 B: bursts of two; the last one is cut at the window's end.
    x.peer_window(0.0, 11 * 1_448 + 500);
    x.write_segs(0.0, 30);
    let sent = x.sent();
    assert_eq!(sent.len(), 6);
    assert_eq!(sent[5], (10, 1_448 + 500));
    // With 12 segments and 500 B, the last 500 B are less than a segment: they wait.
    let mut x = Script::new();
    x.set_cwnd(100);
    x.peer_window(0.0, 12 * 1_448 + 500);
    x.write_segs(0.0, 30);
    assert_eq!(x.sent().last(), Some(&(10, 2_896)));
}

#[test]
fn the_send_buffer_counts_overhead_and_wakes_at_a_third_free() {
    let mut x = Script::with(SenderConfig { sndbuf: 50_000, ..config() }, 100);
    // SO_SNDBUF doubles: 100,000. A buffer takes 45 segments and 1,280; full, it is pushed two segments at a time and filled again, until
    // the window is used: 55 segments. Then a second one is begun below the limit and filled: 100 segments.
    assert_eq!((x.buffer_size(), x.write(0.0, 200_000)), (100_000, 144_800));
    // Five bursts of two were cut off the first buffer, each with an overhead of its own.
    assert_eq!(x.memory(), 144_800 + 2 * 1_280 + 5 * 1_280);
    assert!(!x.s.take_wake());
    let (mut acked, mut ms) = (0, 0.0);
    loop {
        let out = x.sent_segs().len() as u64;
        (acked, ms) = (acked + out, ms + 100.0);
        x.ack(ms, acked);
        // Free memory must be half of what is used: 33,333 free, 66,666 used.
        assert_eq!(x.s.take_wake(), x.memory() <= 66_667, "{}", x.memory());
        if x.memory() <= 66_667 {
            break;
        }
    }
    assert!(x.write(ms, 200_000) > 0);
}

#[test]
fn the_send_buffer_grows_with_the_window_in_units_of_max_tcp_header() {
    // 2 · max(cwnd, 10, reordering + 1) · per_mss. 1448 + 12 + 320 + 320 is just above 2,048 and rounds up to 4,096, with a header area
    // of 256 to 2,048; and 256 for the bookkeeping of a buffer.
    for (max_tcp_header, per_mss) in [(320, 4_352), (256, 2_304)] {
        let mut x = Script::with(SenderConfig { kernel: Kernel { max_tcp_header, ..Kernel::V6_1 }, ..config() }, 100);
        assert_eq!(x.buffer_size(), 2 * 10 * per_mss);
        x.set_cwnd(100);
        x.expand_send_buffer();
        assert_eq!(x.buffer_size(), 2 * 100 * per_mss);
    }
}

/// The peer's first data are acknowledged at once, the next ones by what is sent; what came before is not taken again.
#[test]
fn only_the_first_message_of_the_peer_is_acknowledged_by_itself() {
    let mut x = Script::new();
    let message = |seq| Segment { seq, ack: 1, len: 400, wnd: 65_535, tsval: 20_000, flags: Flags::ACK, ..Segment::default() };
    let acks = |s: &mut Sender| std::iter::from_fn(|| s.poll_transmit()).map(|t| (t.segment.ack, t.segment.len)).collect::<Vec<_>>();
    acks(&mut x.s);
    assert!(x.s.receive(&message(1)));
    assert_eq!(acks(&mut x.s), [(401, 0)]);
    assert!(!x.s.receive(&message(1)), "a repeated message");
    assert!(x.s.receive(&message(401)));
    assert_eq!(acks(&mut x.s), []);
    x.write_segs(10.0, 1);
    assert_eq!(acks(&mut x.s), [(801, MSS)]);
}
