//! Packet scripts: segments and times in, ACKs out. Numbers marked "kernel" were recorded from Linux 6.1 in virtual time.

mod accecn;
mod ecn;

use super::*;
use tcpscape_base::{Duration, Flags, SackBlock, WindowRule};

const MS: u64 = 1_000_000;

/// A receiver and a sender's view of it.
struct Script {
    r: Receiver,
    /// ms
    now: u64,
    out: Vec<(u64, Segment)>,
}

fn config(kernel: Kernel, rcvbuf: u32) -> ReceiverConfig {
    ReceiverConfig {
        kernel,
        jiffies: Jiffies::new(kernel.hz, Duration::ZERO),
        mss: 1448,
        advmss: 1460,
        rcvbuf,
        sack: true,
        feedback: Feedback::Classic,
        misbehaves: None,
    }
}

fn seg(seq: u64, len: u32, tsval: u32, flags: Flags) -> Segment {
    Segment { seq, ack: 1, len, wnd: 65_535, tsval, flags, ..Segment::default() }
}

impl Script {
    /// Handshake: SYN at 0, ACK at 50 ms.
    fn new(kernel: Kernel, rcvbuf: u32) -> Script {
        let mut s = Script { r: Receiver::new(&config(kernel, rcvbuf)), now: 0, out: Vec::new() };
        s.give(seg(0, 0, 1_000, Flags::SYN));
        s.at(50);
        s.give(seg(1, 0, 1_050, Flags::ACK));
        s.out.clear();
        s
    }
    fn drain(&mut self, t: u64) {
        while let Some(x) = self.r.poll_transmit(Time(t)) {
            self.out.push((t, x));
        }
    }
    /// Lets time pass until `ms`.
    fn at(&mut self, ms: u64) {
        while let Some(t) = self.r.next_event().filter(|t| t.0 <= ms * MS) {
            self.r.on_timer(t);
            self.drain(t.0);
        }
        self.now = ms;
    }
    fn give(&mut self, s: Segment) {
        self.r.on_segment(Time(self.now * MS), &s, 0);
        self.drain(self.now * MS);
    }
    /// Full segment number `n`, sent at this very moment.
    fn data(&mut self, n: u64) {
        let mut x = seg(1 + n * 1448, 1448, 1_000 + self.now as u32, Flags::ACK);
        x.tsecr = timestamps::clock(&self.r.jiffies, Time((self.now - 50) * MS));
        self.give(x);
    }
    /// Full segments from number 0 on, one each millisecond from 100 ms, each read at once.
    fn stream(&mut self, count: u64) {
        for n in 0..count {
            self.at(100 + n);
            self.data(n);
            self.read(u64::MAX);
        }
    }
    fn read(&mut self, max: u64) -> u64 {
        let n = self.r.read(Time(self.now * MS), max);
        self.drain(self.now * MS);
        n
    }
    fn acks(&mut self) -> Vec<u64> {
        self.out.drain(..).map(|(_, s)| s.ack).collect()
    }
    fn windows(&mut self) -> Vec<u32> {
        self.out.drain(..).map(|(_, s)| s.wnd).collect()
    }
    fn last_sacks(&self) -> Vec<SackBlock> {
        self.out.last().map(|(_, s)| s.sacks().collect()).unwrap_or_default()
    }
}

fn at(n: u64) -> u64 {
    1 + n * 1448
}

#[test]
fn an_idle_receiver_is_small() {
    assert!(std::mem::size_of::<Receiver>() <= 840, "{}", std::mem::size_of::<Receiver>());
}

#[test]
fn the_syn_ack_offers_at_most_65535_and_is_repeated_with_back_off() {
    for (rcvbuf, wnd) in [(0, 65_160), (65_536, 65_160), (262_144, 65_535)] {
        let mut r = Receiver::new(&config(Kernel::V6_1, rcvbuf));
        r.on_segment(Time::ZERO, &seg(0, 0, 1, Flags::SYN), 0);
        let s = r.poll_transmit(Time::ZERO).unwrap();
        assert_eq!((s.wnd, s.ack, s.seq, s.tsecr), (wnd, 1, 0, 1)); // kernel
        let mut times = Vec::new();
        while let Some(t) = r.next_event() {
            r.on_timer(t);
            if r.poll_transmit(t).is_some() {
                times.push(t.millis());
            }
        }
        assert_eq!(times.len(), 5);
        for (t, ideal) in times.iter().zip([1_000, 3_000, 7_000, 15_000, 31_000]) {
            assert!((ideal..ideal + ideal / 8).contains(t), "{times:?}");
        }
    }
}

#[test]
fn a_small_buffer_shrinks_with_each_unread_segment() {
    let mut s = Script::new(Kernel::V6_1, 65_536);
    s.at(100);
    for n in 0..5 {
        s.data(n);
    }
    s.give(seg(at(5), 952, 1_100, Flags::ACK.with(Flags::PSH)));
    assert_eq!(s.windows(), [64_088, 63_448, 62_724, 62_000, 61_276, 60_800]); // kernel
}

#[test]
fn the_window_opens_by_two_segments_for_each_one_received() {
    let mut s = Script::new(Kernel::V6_1, 262_144);
    s.at(100);
    for n in 0..10 {
        s.data(n);
        s.read(u64::MAX);
    }
    // 65,535 + 2 · 1,448 each, rounded up to the scale of 4; kernel: 94,496 after the initial window of 10
    assert_eq!(s.windows(), (1..=10).map(|k| (65_535 + 2_896 * k + 3) & !3).collect::<Vec<u32>>());
    for n in 10..80 {
        s.data(n);
        s.read(u64::MAX);
    }
    assert_eq!(s.windows().last(), Some(&211_544)); // kernel: 212,992 less one segment
}

#[test]
fn a_newer_kernel_measures_what_the_buffer_is_worth() {
    let kernel = Kernel { rmem_max: 4 << 20, ..Kernel::V6_12 };
    assert_eq!(kernel.window, WindowRule::ScalingRatio);
    let mut s = Script::new(kernel, 262_144);
    s.at(100);
    for n in 0..120 {
        s.data(n);
        s.read(u64::MAX);
    }
    // 524,288 · ⌊256 · 1448/2408⌋/256 = 313,344; in order, one segment occupies the buffer while the window grows.
    assert_eq!(s.windows().last(), Some(&311_904));
    s.data(121);
    assert_eq!((s.r.window.ceiling(), s.r.window.grown()), (313_344, 313_344));
}

#[test]
fn after_quick_acks_every_second_segment_is_acknowledged_and_a_single_one_late() {
    let mut s = Script::new(Kernel::V6_1, 65_536);
    s.stream(60);
    let mut n = 60;
    s.acks();
    for k in 0..10 {
        s.at(200 + k);
        s.data(n);
        n += 1;
        s.read(u64::MAX);
    }
    assert_eq!(s.acks().len(), 5);
    s.at(300);
    s.data(n);
    s.read(u64::MAX);
    assert!(s.out.is_empty());
    s.at(1_000);
    let late: Vec<u64> = s.out.iter().map(|(t, _)| t / MS - 300).collect();
    assert_eq!(late.len(), 1);
    assert!((40..=60).contains(&late[0]), "{late:?}");
    assert_eq!(s.r.stats().delayed_acks, 1);
}

#[test]
fn the_end_of_a_write_is_acknowledged_when_it_is_read() {
    let mut s = Script::new(Kernel::V6_1, 65_536);
    s.stream(40);
    s.acks();
    s.at(150);
    s.give(seg(at(40), 700, 1_150, Flags::ACK.with(Flags::PSH)));
    assert!(s.out.is_empty());
    s.read(u64::MAX);
    assert_eq!(s.acks(), [at(40) + 700]);
}

#[test]
fn duplicates_are_reported_once_and_first() {
    let mut s = Script::new(Kernel::V6_1, 0);
    s.at(100);
    s.data(0);
    s.data(1);
    s.data(0);
    assert_eq!(s.last_sacks(), [(at(0), at(1))]);
    s.data(3);
    assert_eq!(s.last_sacks(), [(at(3), at(4))]);
    s.data(3);
    assert_eq!(s.last_sacks(), [(at(3), at(4)), (at(3), at(4))]); // RFC 2883 §4
                                                                  // Half old, half new.
    s.give(seg(at(1) + 448, 1448, 1_100, Flags::ACK));
    assert_eq!(s.out.last().unwrap().1.ack, at(2) + 448);
    assert_eq!(s.last_sacks(), [(at(1) + 448, at(2)), (at(3), at(4))]);
    assert_eq!((s.r.stats().dsacks, s.r.stats().duplicates), (3, 2));
}

#[test]
fn sack_blocks_come_newest_first_and_merge() {
    let mut s = Script::new(Kernel::V6_1, 0);
    s.at(100);
    for n in [2, 4, 6, 8] {
        s.data(n);
        s.at(s.now + 5);
    }
    assert_eq!(s.last_sacks(), [(at(8), at(9)), (at(6), at(7)), (at(4), at(5))]);
    s.data(3);
    s.at(s.now + 5);
    assert_eq!(s.last_sacks(), [(at(2), at(5)), (at(8), at(9)), (at(6), at(7))]);
    s.data(0);
    s.data(1);
    assert_eq!(s.out.last().unwrap().1.ack, at(5));
    assert_eq!(s.last_sacks(), [(at(8), at(9)), (at(6), at(7))]);
    s.data(5);
    s.data(7);
    assert_eq!((s.out.last().unwrap().1.ack, s.last_sacks().len()), (at(9), 0));
    assert_eq!(s.r.stats().max_reorder_extent, 9 * 1448);
}

#[test]
fn three_duplicate_acks_go_at_once_and_the_others_are_compressed() {
    // A window that does not grow any more: growth asks for quick ACKs.
    let mut s = Script::new(Kernel::V6_1, 65_536);
    s.stream(30);
    s.at(200);
    s.acks();
    for n in 31..36 {
        s.data(n);
    }
    s.at(210);
    let t: Vec<u64> = s.out.drain(..).map(|(t, x)| (t / 1_000, x.ack)).inspect(|x| assert_eq!(x.1, at(30))).map(|x| x.0).collect();
    // The RTT is 50 ms, so 1 ms and 100 µs of slack.
    assert_eq!(t, [200_000, 200_000, 200_000, 201_100]);
    assert_eq!(s.r.stats().compressed_acks, 1);
    // The 45th ACK held back goes at once: 44 are saved.
    s.r.kernel.comp_sack_nr = 4;
    for n in 36..41 {
        s.data(n);
    }
    assert_eq!(s.out.len(), 1);
    assert_eq!(s.r.stats().compressed_acks, 5);
    // The hole is filled: one ACK for everything.
    s.out.clear();
    s.data(30);
    assert_eq!(s.acks(), [at(41)]);
}

/// In 6.1 an ACK that compression held back has the timestamp of the last segment's arrival (kernel: of 398 duplicate ACKs on 3.3 Mbit/s 289 have
/// one that is over by their departure, of 1,358 others none), in 6.18 that of its departure (kernel: none of 236 on the same path).
#[test]
fn the_timestamp_of_a_compressed_ack() {
    for (kernel, later) in [(Kernel::V6_1, 0), (Kernel::V6_12, 0), (Kernel::V6_18, 1)] {
        let mut s = Script::new(kernel, 65_536);
        s.stream(200);
        s.at(400);
        s.acks();
        for n in 201..231 {
            s.data(n);
        }
        s.at(410);
        let first = s.out[0].1.tsval;
        let last = s.out.last().map(|(t, x)| (t / 1_000, x.tsval - first));
        assert_eq!(last, Some((401_100, later)));
    }
}

#[test]
fn paws_refuses_old_segments_overtaken_by_a_retransmission() {
    let mut s = Script::new(Kernel::V6_1, 0);
    s.at(100);
    s.give(seg(at(0), 1448, 1_050, Flags::ACK));
    s.acks();
    // The hole at 1 is filled by a retransmission stamped 1,100 …
    s.give(seg(at(2), 1448, 1_060, Flags::ACK));
    s.give(seg(at(1), 1448, 1_100, Flags::ACK));
    s.acks();
    assert_eq!(s.r.rcv_nxt(), at(3));
    // … so later data sent before it is refused, with an ACK, but one tick is forgiven.
    s.give(seg(at(4), 1448, 1_098, Flags::ACK));
    assert_eq!((s.acks(), s.r.stats().dropped_paws), (vec![at(3)], 1));
    s.give(seg(at(4), 1448, 1_099, Flags::ACK));
    assert_eq!((s.r.stats().dropped_paws, s.r.stats().ooo_segments), (1, 2));
    // The original of the retransmission is old data: a DSACK.
    s.give(seg(at(1), 1448, 1_060, Flags::ACK));
    assert_eq!(s.last_sacks()[0], (at(1), at(2)));
    assert_eq!(s.r.stats().dropped_paws, 2);
}

#[test]
fn a_full_buffer_closes_the_window_and_probes_are_answered_twice_a_second() {
    let mut s = Script::new(Kernel::V6_1, 65_536);
    for t in 100..900 {
        s.at(t);
        let left = s.r.window.left(s.r.rcv_nxt());
        if left > 0 {
            s.give(seg(s.r.rcv_nxt(), left.min(1448), 1_000 + t as u32, Flags::ACK));
        }
    }
    assert_eq!(s.windows().last(), Some(&0));
    assert!(s.r.store.memory() <= u64::from(s.r.window.capacity().buffer()));
    let edge = s.r.rcv_nxt();
    s.at(1_000);
    let before = s.r.stats().acks;
    for _ in 0..3 {
        s.give(seg(edge - 1, 0, 2_000, Flags::ACK));
    }
    assert_eq!(s.r.stats().acks, before + 1);
    s.at(1_501);
    s.give(seg(edge - 1, 0, 2_501, Flags::ACK));
    assert_eq!(s.r.stats().acks, before + 2);
    // One byte beyond the edge is refused.
    s.give(seg(edge, 1, 2_501, Flags::ACK));
    assert_eq!((s.r.rcv_nxt(), s.r.stats().dropped_window), (edge, 1));
    s.out.clear();
    // Reading opens it.
    let all = s.r.readable();
    assert_eq!(s.read(u64::MAX), all);
    assert!(s.windows().last().is_some_and(|&w| w > 30_000));
}

#[test]
fn an_autotuned_buffer_follows_the_reader() {
    let mut s = Script::new(Kernel::V6_1, 0);
    let (mut n, mut size) = (0, 10);
    for round in 0..8 {
        s.at(100 + 50 * round);
        for _ in 0..size {
            s.data(n);
            n += 1;
            s.read(u64::MAX);
        }
        size *= 2;
    }
    assert!(s.r.window.capacity().buffer() > 2_000_000 && s.r.window() > 1_000_000, "{} {}", s.r.window.capacity().buffer(), s.r.window());
    assert_eq!(s.r.round_trip.micros(), Some(50_000));
}

#[test]
fn a_fin_ends_the_stream_in_and_out_of_order() {
    let mut s = Script::new(Kernel::V6_1, 0);
    s.at(100);
    s.data(0);
    s.give(seg(at(2), 100, 1_100, Flags::ACK.with(Flags::FIN)));
    assert!(!s.r.fin_received());
    s.data(1);
    assert!(s.r.fin_received());
    assert_eq!(s.out.last().unwrap().1.ack, at(2) + 101);
    assert_eq!(s.read(u64::MAX), 2 * 1448 + 100);
    s.give(seg(at(2), 100, 1_100, Flags::ACK.with(Flags::FIN)));
    assert_eq!((s.out.last().unwrap().1.ack, s.last_sacks()[0]), (at(2) + 101, (at(2), at(2) + 101)));

    let mut s = Script::new(Kernel::V6_1, 0);
    s.give(seg(1, 0, 1_050, Flags::ACK.with(Flags::FIN)));
    assert!(s.r.fin_received() && s.r.readable() == 0);
    assert_eq!(s.acks(), [2]);
}

#[test]
fn memory_is_bounded_whatever_comes() {
    for kernel in [Kernel::V6_1, Kernel::V6_12] {
        let mut s = Script::new(kernel, 8_192);
        s.at(100);
        for n in (1..400).rev() {
            s.give(seg(1 + n * 30, 10, 1_100, Flags::ACK));
            assert!(s.r.store.memory() <= u64::from(s.r.window.capacity().buffer()) + 1_448 + u64::from(kernel.skb_overhead));
        }
        assert!(s.r.stats().pruned + s.r.stats().dropped_memory > 0, "{:?}", s.r.stats());
        s.r.store.drop_ahead();
        assert_eq!(s.r.store.memory(), 0);
    }
}

/// Segments in any order, some twice, some cut differently: everything arrives, the window's right edge never moves back,
/// memory returns to nothing.
#[test]
fn any_order_of_segments_delivers_the_stream_once() {
    let mut rng = tcpscape_base::Stream::new(7, "test/order");
    for round in 0..200 {
        let mut s = Script::new(if round % 2 == 0 { Kernel::V6_1 } else { Kernel::V6_12 }, 0);
        let total = 40 * 1448u64;
        let mut segs: Vec<(u64, u64)> = (0..40).map(|n| (at(n), at(n + 1))).collect();
        for _ in 0..20 {
            let a = u64::from(rng.below(total as u32 - 2_000));
            segs.push((1 + a, 1 + a + 1 + u64::from(rng.below(1_448))));
        }
        for i in (1..segs.len()).rev() {
            segs.swap(i, rng.below(i as u32 + 1) as usize);
        }
        let (mut edge, mut got) = (0, 0);
        for (i, &(a, b)) in segs.iter().enumerate() {
            s.at(100 + i as u64);
            s.give(seg(a, (b - a) as u32, 2_000, Flags::ACK));
            if rng.below(3) == 0 {
                got += s.read(u64::from(rng.below(5_000)));
            }
            for (_, x) in s.out.drain(..) {
                assert!(x.ack + u64::from(x.wnd) >= edge);
                edge = x.ack + u64::from(x.wnd);
                for (a, b) in x.sacks() {
                    assert!(a < b && b <= 1 + total);
                }
            }
        }
        got += s.read(u64::MAX);
        assert_eq!((got, s.r.rcv_nxt(), s.r.store.memory()), (total, 1 + total, 0), "round {round}");
        assert_eq!(s.r.stats().bytes, total);
    }
}

mod v6_12;
mod v6_18;
mod v6_6;

/// A message of 400 bytes acknowledges the segment that waits for its ACK; ACKs after it have the next sequence number, and repeated it has its own.
#[test]
fn a_message_carries_the_ack_that_is_owed() {
    let mut s = Script::new(Kernel::V6_1, 0);
    s.r.write(Time(s.now * MS), 400);
    s.drain(s.now * MS);
    s.at(100);
    s.data(0);
    s.r.write(Time(s.now * MS), 400);
    s.r.rewrite(Time(s.now * MS), 400);
    s.drain(s.now * MS);
    let seen: Vec<_> = s.out.iter().map(|(_, x)| (x.seq, x.len, x.ack, x.flags.has(Flags::PSH))).collect();
    assert_eq!(seen, [(1, 400, 1, true), (401, 0, 1_449, false), (401, 400, 1_449, true), (401, 400, 1_449, true)]);
}

/// What Linux reported as a duplicate, and its memory, after each of 300 crafted segments: copies, overlaps, gaps that are filled.
#[test]
fn a_kernels_queue_of_segments_out_of_order() {
    let memory = |units: u64| [0, 1_024, 1_344, 1_600, 1_920][units as usize]; // kernel: of one such packet
    let kernel = Kernel { skb_overhead: 256, comp_sack_nr: 0, ..Kernel::V6_1 };
    follow(include_str!("tests/out_of_order.txt"), kernel, 300, memory);
}

/// 300 others, short ones among them, which wait in the heads of their buffers.
#[test]
fn a_kernels_queue_of_short_segments() {
    let kernel = Kernel { skb_overhead: 832, max_tcp_header: 118, comp_sack_nr: 0, ..Kernel::V6_1 };
    assert_eq!(kernel.head_room(), 138); // kernel: 138 bytes fit, 139 do not
    follow(include_str!("tests/short_segments.txt"), kernel, 60, |_| 0);
}

/// A receiver gets the segments of a recorded script, whose lengths are whole numbers of `unit` bytes, and does what is recorded.
fn follow(script: &str, kernel: Kernel, unit: u64, memory: impl Fn(u64) -> u32) {
    let range = |text: &str| text.split_once('-').and_then(|(a, b)| Some((a.parse::<u64>().ok()?, b.parse::<u64>().ok()?)));
    let mut s = Script::new(kernel, 262_144);
    for line in script.lines() {
        if line.starts_with('#') {
            s = Script::new(kernel, 262_144);
            continue;
        }
        let fields: Vec<&str> = line.split(' ').collect();
        let (a, b) = range(fields[0]).unwrap();
        let x = seg(1 + a * unit, ((b - a) * unit) as u32, 1_050, Flags::ACK);
        s.r.on_segment(Time(s.now * MS), &x, memory(b - a));
        s.drain(s.now * MS);
        let ack = s.out.drain(..).next_back().map(|(_, ack)| ack);
        assert!(ack.is_some() || range(fields[2]).is_none(), "{line}: no ACK with its DSACK");
        assert_eq!((s.r.stream.next() - 1) / unit, fields[1].parse().unwrap(), "{line}");
        if let Some(ack) = ack.filter(|_| fields[2] != "?") {
            let blocks: Vec<_> = ack.sacks().map(|(from, to)| ((from - 1) / unit, (to - 1) / unit)).collect();
            let is_duplicate = |d: &(u64, u64)| d.1 <= (ack.ack - 1) / unit || blocks[1..].iter().any(|b| b.0 <= d.0 && d.1 <= b.1);
            assert_eq!(blocks.first().copied().filter(is_duplicate), range(fields[2]), "{line}");
        }
        assert_eq!(s.r.store.memory(), fields[3].parse().unwrap(), "{line}");
    }
}
