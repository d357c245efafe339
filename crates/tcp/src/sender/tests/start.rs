//! Handshake, initial window, super-packets, small segments.

use super::*;

#[test]
fn handshake_gives_the_first_rtt_sample() {
    let x = Script::new();
    let i = x.s.info();
    // srtt = m, rttvar = m/2, RTO = srtt + max(4 · rttvar, 200 ms) = 100 + 200 (RFC 6298 §2.2 with Linux's floor).
    assert_eq!((i.srtt_us, i.rttvar_us, i.rto_us, i.min_rtt_us), (100_000, 50_000, 300_000, 100_000));
    assert_eq!((i.cwnd, i.ssthresh, i.delivered), (10, cc::INFINITE_SSTHRESH, 1));
}

#[test]
fn handshake_sample_of_a_repeated_syn_comes_from_its_timestamp() {
    let mut s = Sender::new(config());
    let t0 = Time(SYN_AT * 1_000_000);
    s.connect(t0, t0);
    let mut sent = vec![];
    for _ in 0..2 {
        let t = s.next_event().unwrap();
        s.on_timer(t);
        sent.push(t.since(t0).0 / 1_000_000);
    }
    // From 504 ticks on the wheel's unit is 64. Tick 10,001 + 1,000 rounds up to 172 · 64 = 11,008, which is 11,007 ms.
    // From there 2,000 more: tick 13,008 rounds up to 204 · 64 = 13,056, 13,055 ms.
    assert_eq!(sent, [1_007, 3_055]);
    while s.poll_transmit().is_some() {}
    let now = Time(t0.0 + 3_085_000_000);
    let a = Segment { flags: Flags::SYN.with(Flags::ACK), ack: 1, wnd: 65_535, tsval: 1, tsecr: 13_056, ..Segment::default() };
    s.on_segment(now, &a);
    // The SYN of 13,055 ms carried 13,056; the clock says 13,086: 30 ms. Two lost SYNs leave a window of 1 (RFC 5681 §3.1).
    assert_eq!((s.info().srtt_us, s.info().cwnd), (30_000, 1));
}

#[test]
fn initial_window_is_ten_short_segments_with_nodelay() {
    let mut x = Script::new();
    for k in 0..12 {
        x.write(k as f64 / 100.0, 100);
    }
    assert_eq!(x.sent().iter().map(|s| s.1).collect::<Vec<_>>(), [100; 10]);
    // Two writes wait in one buffer. One short segment acknowledged: slow start opens the window to 11.
    let mut a = x.plain(100.0, 0);
    a.ack = 101;
    x.give(100.0, a);
    assert_eq!((x.sent(), x.cwnd()), (vec![(0, 200)], 11));
}

#[test]
fn nagle_holds_a_short_segment_while_another_one_is_out() {
    let mut x = Script::with(SenderConfig { nodelay: false, ..config() }, 100);
    x.write(0.0, 100);
    x.write(1.0, 100);
    assert_eq!(x.sent().len(), 1);
    // Minshall: a full segment goes; the rest of it waits.
    x.write(2.0, 1_348 + 50);
    assert_eq!(x.sent(), [(0, 1_448)]);
    let mut a = x.plain(100.0, 0);
    a.ack = 1 + 100;
    x.give(100.0, a);
    assert_eq!(x.sent(), [(1, 50)]);
}

#[test]
fn super_packets_hold_a_millisecond_of_the_rate_at_least_two_segments() {
    // 200 % · 10 · 1448 B / 100 ms = 289,600 B/s; >> 10 is 282 B: the minimum of 2. Half a segment goes with nodelay.
    let mut x = Script::new();
    x.write(0.0, 3_620);
    assert_eq!(x.sent(), [(0, 2_896), (2, 724)]);
    x.write(0.1, 60 * 1_448);
    // 7 segments of window are left; the tail of 724 B was sent as it was.
    assert_eq!(x.sent().iter().map(|s| s.1).collect::<Vec<_>>(), [2_896, 2_896, 2_896, 1_448]);
}

#[test]
fn super_packets_grow_on_short_paths() {
    // RTT 1 ms: 28,960,000 B/s >> 10 = 28,281 B, plus 65,343 >> (1,000 >> 9) = 32,671 B: 60,952 B, 42 segments.
    // The quota is half of the window: 5 of 10.
    let mut x = Script::with(config(), 1);
    assert_eq!(x.burst_segments(), 42);
    x.write_segs(0.0, 60);
    assert_eq!(x.sent(), [(0, 5 * 1_448), (5, 5 * 1_448)]);
}

/// As Linux 6.18 with an MTU of 65,535: one segment, although two are the least elsewhere.
#[test]
fn a_super_packet_has_no_more_segments_than_64_kib_hold() {
    let mss = |mss| Script::with(SenderConfig { mss, ..config() }, 100).burst_segments();
    assert_eq!((mss(65_483), mss(32_672), mss(32_671)), (1, 1, 2));
}

#[test]
fn without_gso_every_segment_leaves_alone() {
    let mut x = Script::with(SenderConfig { gso: false, ..config() }, 1);
    x.write_segs(0.0, 4);
    assert_eq!(x.sent(), [(0, 1_448), (1, 1_448), (2, 1_448), (3, 1_448)]);
}

#[test]
fn a_small_burst_waits_up_to_a_millisecond_for_a_fuller_one() {
    let mut x = Script::full_window(10, 20);
    x.set_ssthresh(5);
    // Nothing was sent for 100 ms: one segment goes alone.
    x.ack(100.0, 1);
    assert_eq!(x.sent(), [(10, 1_448)]);
    // Half a millisecond after a transmission, one free segment (less than a third of the window) waits: the next ACK is overdue.
    x.ack(100.5, 2);
    assert_eq!(x.sent(), []);
    assert!(x.is_window_limited());
    x.ack(100.6, 3);
    assert_eq!(x.sent(), [(11, 2_896)]);
    // More than a millisecond after: no waiting.
    x.ack(101.7, 4);
    assert_eq!(x.sent(), [(13, 1_448)]);
}

#[test]
fn nothing_waits_for_a_fuller_burst_when_the_ack_is_far() {
    let mut x = Script::full_window(10, 20);
    x.set_ssthresh(5);
    x.ack(100.0, 10);
    assert_eq!((x.sent_segs().len(), x.cwnd()), (11, 11));
    x.set_cwnd(12);
    // The head was sent at 100 ms, so its ACK comes at about 200 ms: not within half the RTT, not within 1 ms.
    x.write_segs(100.2, 1);
    assert_eq!(x.sent(), [(21, 1_448)]);
}
