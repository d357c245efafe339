//! Packet scripts: short connections, packet by packet, and what must be said of them.

use super::*;
use crate::limits;
use crate::packet::{Endpoint, Options, Packet};
use tcpscape_base::{Ecn, Flags, Time};

const MS: u64 = 1_000_000;
const MSS: u32 = 1_000;
/// Initial sequence numbers near the wrap, so that every script crosses it.
const ISN: [u32; 2] = [u32::MAX - 2_500, 77];

/// Which evidence the packets carry.
#[derive(Clone, Copy, Default)]
struct Has {
    timestamps: bool,
    ids: bool,
}

/// A script: what the capture sees, in order.
struct Script {
    packets: Vec<Packet>,
    has: Has,
    ids: [u16; 2],
}

fn end(i: u8) -> Endpoint {
    Endpoint { address: [10, 0, 0, i].into(), port: 5_000 + u16::from(i) }
}

impl Script {
    fn new(timestamps: bool, ids: bool) -> Script {
        Script { packets: Vec::new(), has: Has { timestamps, ids }, ids: [65_530, 10] }
    }
    /// A packet of `side` at `ms`; its timestamp says `ms` and echoes `echo` ms.
    #[allow(clippy::too_many_arguments)] // the fields of a packet
    fn push(&mut self, side: usize, ms: u64, flags: Flags, seq: u32, ack: u32, len: u32, echo: u64) -> &mut Packet {
        let id = if self.has.ids { self.ids[side] } else { 0 };
        self.ids[side] = self.ids[side].wrapping_add(1);
        let tsval = |ms: u64| 4_294_967_000u32.wrapping_add(ms as u32);
        let options = Options { timestamps: self.has.timestamps.then(|| (tsval(ms), tsval(echo))), ..Options::default() };
        let (from, to) = (end(side as u8), end(1 - side as u8));
        self.packets.push(Packet {
            frame: self.packets.len() as u64 + 1,
            at: Time(1_000_000_000_000 + ms * MS),
            from,
            to,
            interface: 0,
            seq: ISN[side].wrapping_add(seq),
            ack: if flags.has(Flags::ACK) { ISN[1 - side].wrapping_add(ack) } else { 0 },
            len,
            flags,
            window: 1_000,
            ecn: Ecn::NotEct,
            ttl: 64,
            id,
            size: 52 + len,
            options,
        });
        self.packets.last_mut().expect("just pushed")
    }
    /// The handshake as the sender's host sees it, with this RTT.
    fn handshake(&mut self, rtt: u64) {
        let syn = Options {
            mss: Some(if self.has.timestamps { 1_012 } else { 1_000 }),
            window_scale: Some(7),
            sack_permitted: true,
            ..Options::default()
        };
        let p = self.push(0, 0, Flags::SYN, 0, 0, 0, 0);
        p.options = Options { timestamps: p.options.timestamps, ..syn };
        let p = self.push(1, rtt, Flags::SYN.with(Flags::ACK), 0, 1, 0, 0);
        p.options = Options { timestamps: p.options.timestamps, ..syn };
        self.push(0, rtt, Flags::ACK, 1, 1, 0, rtt);
    }
    /// Segment `n` (from 0) of the data.
    fn data(&mut self, ms: u64, n: u32) -> &mut Packet {
        self.push(0, ms, Flags::ACK, 1 + n * MSS, 1, MSS, ms.saturating_sub(1))
    }
    /// The receiver waits for segment `n`; it holds the segments of `blocks` (first, after the last).
    fn ack(&mut self, ms: u64, n: u32, blocks: &[(u32, u32)], echo: u64) -> &mut Packet {
        let p = self.push(1, ms, Flags::ACK, 1, 1 + n * MSS, 0, echo);
        for (i, b) in blocks.iter().enumerate() {
            p.options.blocks[i] = (ISN[0].wrapping_add(1 + b.0 * MSS), ISN[0].wrapping_add(1 + b.1 * MSS));
        }
        p.options.block_count = blocks.len() as u8;
        p
    }
    fn analysed(&self) -> Vec<FlowRecord> {
        let mut a = Analyzer::new(Budget::default());
        self.packets.iter().for_each(|p| a.packet(p));
        a.finish().0
    }
    /// The record of the data.
    fn flow(&self) -> FlowRecord {
        let flows = self.analysed();
        assert_eq!(flows.len(), 1, "one direction carries data");
        let flow = flows.into_iter().next().expect("one");
        laws(&flow);
        flow
    }
}

#[test]
fn syns_without_a_connection_are_told() {
    let attempted = |s: &Script| {
        let mut a = Analyzer::new(Budget::default());
        s.packets.iter().for_each(|p| a.packet(p));
        let (flows, totals) = a.finish();
        assert!(flows.is_empty());
        totals
    };
    let mut s = Script::new(false, true);
    for ms in [0, 1_000, 3_000, 7_000] {
        s.push(0, ms, Flags::SYN, 0, 0, 0, 0);
    }
    let silent = attempted(&s);
    let asked = silent.attempt.expect("an attempt");
    assert_eq!((silent.unanswered, silent.refused, silent.half_open), (1, 0, 0));
    assert_eq!((asked.from.1, asked.to.1, asked.syns, asked.answers, asked.over_ns), (5_000, 5_001, 4, 0, 7_000 * MS));
    s.push(1, 7_020, Flags::RST.with(Flags::ACK), 0, 1, 0, 0);
    let refused = attempted(&s);
    assert_eq!((refused.unanswered, refused.refused, refused.half_open), (0, 1, 0));
    assert!(refused.attempt.is_some_and(|asked| asked.is_reset));
    let mut s = Script::new(false, true);
    s.handshake(20);
    let established = s.packets.pop();
    s.push(1, 1_020, Flags::SYN.with(Flags::ACK), 0, 1, 0, 0);
    let half = attempted(&s);
    assert_eq!((half.unanswered, half.refused, half.half_open), (0, 0, 1));
    assert_eq!(half.attempt.map(|asked| (asked.syns, asked.answers)), Some((1, 2)));
    s.packets.extend(established);
    assert_eq!(attempted(&s).attempt, None, "what acknowledges the answer is a connection without data");
}

/// What every record obeys.
fn laws(f: &FlowRecord) {
    let c = &f.facts.counts;
    assert!(c.losses_before <= c.losses && c.reordered_before <= c.reordered);
    assert!(c.spurious_by_time + c.spurious_by_timestamp <= c.spurious);
    let by_kind = c.fast_retransmissions + c.timeouts + c.after_timeout + c.tail_probes;
    assert_eq!(by_kind, c.retransmissions, "each retransmission has one kind");
    let delivered: u64 = f.acks.iter().map(|a| u64::from(a.newly) + u64::from(a.sacked)).sum();
    if f.facts.ack_stride == 1 && !f.facts.data_missing && !f.facts.acks_missing {
        assert!(delivered >= f.facts.bytes, "{delivered} delivered, {} bytes", f.facts.bytes);
    }
    assert!(f.segments.windows(2).all(|w| w[0].t <= w[1].t) && f.acks.windows(2).all(|w| w[0].t <= w[1].t));
    for s in &f.segments {
        assert!(s.acked == 0 || s.acked >= s.t, "an acknowledgement follows what it covers");
        assert!(s.rtt == 0 || s.rtt == s.acked - s.t);
    }
}

fn fates(f: &FlowRecord) -> Vec<u8> {
    f.segments.iter().map(|s| s.fate).collect()
}
fn kinds(f: &FlowRecord) -> Vec<u8> {
    f.events.iter().map(|e| e.kind).collect()
}

/// A download of 40 segments, each pair of them 50 ms after the ACK before it, at the client or at the server.
fn download(at_client: bool, timestamps: bool) -> FlowRecord {
    let mut s = Script::new(timestamps, true);
    let (here, there) = if at_client { (0, 50) } else { (50, 0) };
    s.push(0, 0, Flags::SYN, 0, 0, 0, 0);
    s.push(1, there, Flags::SYN.with(Flags::ACK), 0, 1, 0, 0);
    s.push(0, there + here, Flags::ACK, 1, 1, 0, there);
    for n in 0..20u32 {
        let ms = 60 + 50 * u64::from(n);
        s.push(1, ms, Flags::ACK, 1 + 2 * n * MSS, 1, MSS, ms - there);
        s.push(1, ms, Flags::ACK, 1 + (2 * n + 1) * MSS, 1, MSS, ms - there);
        s.push(0, ms + here, Flags::ACK, 1, 1 + 2 * (n + 1) * MSS, 0, ms);
    }
    s.flow()
}

#[test]
fn both_records_of_a_connection_know_both_ends() {
    let mut s = Script::new(true, true);
    s.handshake(10);
    s.data(11, 0);
    s.push(1, 21, Flags::ACK, 1, 1 + MSS, 500, 11);
    s.push(0, 31, Flags::ACK, 1 + MSS, 501, 0, 21);
    s.packets.iter_mut().filter(|p| p.from == end(1)).for_each(|p| p.ttl = 128);
    let ttl: Vec<_> = s.analysed().iter().map(|f| f.facts.ttl).collect();
    assert_eq!(ttl, [[Some(64), Some(128)], [Some(128), Some(64)]]);
}

#[test]
fn what_held_a_download_is_in_doubt_at_the_client_alone_and_without_timestamps() {
    let (client, server) = (download(true, false), download(false, true));
    let has = |f: &FlowRecord, cause| f.limits.iter().any(|i| i.cause == cause);
    assert_eq!((client.facts.sender_opened, client.facts.limits_doubt), (Some(false), Some(limits::Doubt::FarFromSender)));
    assert!(has(&client, limits::Cause::Unknown) && !has(&client, limits::Cause::Application), "{:?}", client.limits);
    assert_eq!(server.facts.limits_doubt, None);
    assert!(!has(&server, limits::Cause::Unknown), "{:?}", server.limits);
    let timed = download(true, true);
    assert_eq!(timed.facts.limits_doubt, None);
    let causes = |f: &FlowRecord| f.limits.iter().map(|i| i.cause).collect::<Vec<_>>();
    assert!(causes(&server).starts_with(&causes(&timed)), "{:?} {:?}", timed.limits, server.limits);
    let json = client.facts.json();
    assert_eq!(json["limits_doubt"], "far_from_sender");
    assert!(server.facts.json().get("limits_doubt").is_none());
}

#[test]
fn a_quiet_transfer_has_handshake_facts_rtts_and_no_events() {
    let mut s = Script::new(true, true);
    s.handshake(50);
    (0..4).for_each(|n| {
        s.data(50 + u64::from(n), n);
    });
    s.ack(100, 2, &[], 50);
    s.ack(102, 4, &[], 52);
    let f = s.flow();
    assert_eq!(fates(&f), [0; 4]);
    assert_eq!(f.segments.iter().map(|s| s.seq).collect::<Vec<_>>(), [0, 1_000, 2_000, 3_000]);
    assert_eq!(f.segments.iter().map(|s| s.rtt / MS).collect::<Vec<_>>(), [50, 49, 50, 49]);
    assert_eq!(f.segments.iter().map(|s| s.flight).collect::<Vec<_>>(), [1_000, 2_000, 3_000, 4_000]);
    assert_eq!(f.acks.iter().map(|a| (a.ack, a.newly, a.window)).collect::<Vec<_>>(), [(2_000, 2_000, 128_000), (4_000, 2_000, 128_000)]);
    assert!(f.events.is_empty());
    let x = &f.facts;
    assert_eq!((x.mss, x.window_scale, x.sack, x.timestamps), ([Some(1_012); 2], [Some(7); 2], Some(true), Some(true)));
    assert_eq!((x.bytes, x.segment_size, x.vantage.place), (4_000, Some(1_000), Place::Sender));
    assert_eq!((x.handshake_receiver_part_ms, x.handshake_sender_part_ms), (Some(50.0), Some(0.0)));
    assert!(x.not_identifiable.is_empty() && !x.begins_in_mid_connection);
}

/// Segment 0 lost, repeated on SACKs.
fn loss(s: &mut Script) {
    s.handshake(50);
    (0..4).for_each(|n| {
        s.data(50, n);
    });
    s.ack(100, 0, &[(1, 2)], 50);
    s.ack(101, 0, &[(1, 3)], 50);
    s.ack(102, 0, &[(1, 4)], 50);
    s.data(103, 0);
}

#[test]
fn a_loss_is_repeated_by_fast_retransmission_and_its_rtt_is_no_sample() {
    let mut s = Script::new(true, true);
    loss(&mut s);
    s.ack(153, 4, &[], 103);
    let f = s.flow();
    assert_eq!(fates(&f), [2, 0, 0, 0]);
    assert_eq!(kinds(&f), [Kind::FastRetransmission as u8, Kind::Loss as u8]);
    assert_eq!(f.segments.iter().map(|s| s.rtt / MS).collect::<Vec<_>>(), [0, 50, 51, 52]);
    let c = f.facts.counts;
    assert_eq!((c.losses, c.losses_before, c.spurious, c.reordered, c.dup_acks), (1, 0, 0, 0, 3));
    assert_eq!(f.segments[0].sends, 2);
}

#[test]
fn eifel_detection_takes_a_loss_back() {
    let mut s = Script::new(true, true);
    loss(&mut s);
    s.ack(104, 4, &[], 50); // echoes the original
    let f = s.flow();
    assert_eq!(fates(&f), [3, 0, 0, 0]);
    let c = f.facts.counts;
    assert_eq!((c.losses, c.spurious, c.spurious_by_timestamp, c.reordered), (0, 1, 1, 1));
}

#[test]
fn without_timestamps_an_ack_sooner_than_any_rtt_takes_a_loss_back() {
    let mut s = Script::new(false, true);
    loss(&mut s);
    s.ack(106, 4, &[], 0);
    let c = s.flow().facts.counts;
    assert_eq!((c.losses, c.spurious, c.spurious_by_time), (0, 1, 1));
}

#[test]
fn a_dsack_takes_a_loss_back_once() {
    let mut s = Script::new(false, true);
    loss(&mut s);
    s.ack(153, 4, &[], 0);
    let with = |s: &Script| s.flow().facts.counts;
    assert_eq!((with(&s).losses, with(&s).spurious), (1, 0));
    s.ack(155, 4, &[(0, 1)], 0);
    let f = s.flow();
    let c = f.facts.counts;
    assert_eq!((c.losses, c.spurious, c.spurious_by_dsack, c.dsacks, c.dsack_bytes, c.duplicates), (0, 1, 1, 1, 1_000, 0));
    assert_eq!(fates(&f), [3, 0, 0, 0]);
    assert!(!kinds(&f).contains(&(Kind::Loss as u8)));
    // A second one for the same bytes is a copy by the network.
    s.ack(157, 4, &[(0, 1)], 0);
    assert_eq!((with(&s).spurious, with(&s).duplicates), (1, 1));
}

#[test]
fn sacks_out_of_order_without_a_retransmission_are_reordering() {
    let mut s = Script::new(true, true);
    s.handshake(50);
    (0..4).for_each(|n| {
        s.data(50, n);
    });
    s.ack(100, 0, &[(1, 2)], 50);
    s.ack(101, 0, &[(1, 3)], 50);
    s.ack(103, 3, &[], 50);
    s.ack(104, 4, &[], 50);
    let f = s.flow();
    assert_eq!(fates(&f), [1, 0, 0, 0]);
    let c = f.facts.counts;
    assert_eq!((c.reordered, c.reordered_before, c.losses, c.reordering_ns_max, c.reordering_segments_max), (1, 0, 0, 3 * MS, 2));
    assert_eq!(f.segments[0].late, 3 * MS);
    assert_eq!(f.events[0].side, Side::After as u8);
}

/// Segments 1 and 5 are lost. One ACK has the blocks of what came between and behind them, and the capture the first of them alone.
#[test]
fn what_a_block_that_was_cut_off_may_have_said_is_no_reordering() {
    for (is_cut, late) in [(false, 3), (true, 0)] {
        let mut s = Script::new(true, true);
        s.handshake(50);
        (0..8).for_each(|n| {
            s.data(50, n);
        });
        s.ack(100, 1, &[], 50);
        s.ack(101, 1, &[(6, 8)], 50).options.is_cut = is_cut;
        s.data(102, 1);
        s.ack(152, 5, &[(6, 8)], 102);
        s.data(153, 5);
        s.ack(203, 8, &[], 153);
        let f = s.flow();
        assert_eq!((f.facts.counts.reordered, f.facts.counts.losses), (late, 2), "{is_cut}");
    }
}

/// Segments 5, 7 and 9 lack while 6, 8 and 10 are SACKed, then 7 and 5 come.
#[test]
fn what_an_ack_that_is_missing_may_have_said_is_no_reordering() {
    let cases = [(false, false, 0, 2, (1, 1)), (true, false, 0, 1, (1, 0)), (true, true, 0, 2, (1, 1)), (true, true, 2, 1, (1, 0))];
    for (is_missing, is_late, lost, late, fates_of) in cases {
        let mut s = Script::new(true, true);
        s.handshake(50);
        (0..11).for_each(|n| {
            s.data(50, n);
        });
        (1..=5).for_each(|n| {
            s.ack(100, n, &[], 50);
        });
        if is_late {
            let n = s.packets.len();
            s.packets.swap(n - 2, n - 1); // ACKs that come late are known of this flow: what is missing may be one of them
        }
        (0..4).for_each(|n| s.ack(100, 5, &[], 50).window += n);
        let n = s.packets.len();
        s.packets.drain(n - 3..n - 3 + lost); // unless most of what is missing never comes
        s.ack(101, 5, &[(6, 7)], 50);
        s.ack(102, 5, &[(8, 9), (6, 7)], 50);
        s.ack(103, 5, &[(10, 11), (8, 9), (6, 7)], 50);
        s.ack(104, 5, &[(6, 9), (10, 11)], 50);
        if is_missing {
            s.packets.pop();
        }
        s.ack(105, 9, &[(10, 11)], 50);
        let f = s.flow();
        assert_eq!((f.facts.counts.reordered, (f.segments[5].fate, f.segments[7].fate)), (late, fates_of), "{is_missing} {is_late} {lost}");
    }
}

#[test]
fn a_handshake_that_waited_makes_no_part_of_the_path_too_small_for_one() {
    // 2 ms to the sender, 4 ms to the receiver, before which others' queue kept the SYN for 166 ms.
    for syn_ack in [4, 170] {
        let mut s = Script::new(true, true);
        s.push(0, 0, Flags::SYN, 0, 0, 0, 0);
        s.push(1, syn_ack, Flags::SYN.with(Flags::ACK), 0, 1, 0, 0);
        s.push(0, syn_ack + 2, Flags::ACK, 1, 1, 0, syn_ack);
        (0..10).for_each(|n| {
            s.data(200 + 10 * u64::from(n), n);
            s.ack(204 + 10 * u64::from(n), n + 1, &[], 200 + 10 * u64::from(n));
        });
        assert_eq!(s.flow().facts.vantage.place, Place::Middle, "{syn_ack}");
    }
}

#[test]
fn at_the_receiver_duplicate_acks_of_what_never_came_pass_nothing() {
    let mut s = Script::new(false, true);
    s.handshake(50);
    (0..6).for_each(|n| {
        s.data(51, n);
        s.ack(51, n + 1, &[], 51);
    });
    s.data(60, 7); // 6 was lost before
    s.ack(60, 6, &[], 60);
    s.data(61, 8);
    s.ack(61, 6, &[], 60);
    s.data(111, 6);
    s.ack(111, 9, &[], 60);
    let c = s.flow().facts.counts;
    assert_eq!((c.reordered, c.losses, c.retransmissions), (0, 1, 1));
}

#[test]
fn an_ack_that_comes_after_later_ones_still_says_what_the_receiver_lacked() {
    for ids in [true, false] {
        let mut s = Script::new(true, ids);
        s.handshake(50);
        (0..12).for_each(|n| {
            s.data(50, n);
        });
        (1..=5).for_each(|n| {
            s.ack(100, n, &[], 50);
        });
        let early = [*s.ack(101, 5, &[(6, 8)], 50), *s.ack(102, 6, &[(6, 8), (10, 11)], 50)];
        s.packets.truncate(s.packets.len() - 2);
        s.ack(103, 12, &[], 50);
        // The first late ACK shows that ACKs are late; from the second on what they covered is remembered.
        s.ack(104, 4, &[], 50);
        (12..24).for_each(|n| {
            s.data(110, n);
        });
        let [a, b] = [*s.ack(161, 12, &[(13, 15)], 110), *s.ack(162, 13, &[(13, 15), (20, 21)], 110)];
        s.packets.truncate(s.packets.len() - 2);
        s.ack(163, 24, &[], 110);
        for (ms, p) in [(164, a), (165, b), (166, early[0])] {
            let frame = s.packets.len() as u64 + 1;
            s.packets.push(Packet { frame, at: Time(1_000_000_000_000 + ms * MS), ..p });
        }
        let f = s.flow();
        let reordered: Vec<_> = f.events.iter().filter(|e| e.kind == Kind::Reordering as u8).map(|e| e.seq / u64::from(MSS)).collect();
        // The first lacked segment 12; the second had it, and lacked 15 to 19.
        assert_eq!(reordered, [12, 15, 16, 17, 18, 19], "{ids}");
        assert_eq!((f.facts.counts.reordered, f.facts.counts.losses, f.segments[12].fate), (6, 0, 1));
    }
}

#[test]
fn acks_out_of_order_are_no_reordering_of_data() {
    let mut s = Script::new(true, true);
    s.handshake(50);
    (0..8).for_each(|n| {
        s.data(50, n);
    });
    // A counted identification is recognised after a few packets.
    (1..=5).for_each(|n| {
        s.ack(100, n, &[], 50);
    });
    let early = *s.ack(101, 7, &[], 50);
    s.packets.pop();
    s.ack(102, 8, &[], 50);
    let frame = s.packets.len() as u64 + 1;
    s.packets.push(Packet { frame, at: Time(1_000_000_000_000 + 103 * MS), ..early });
    let c = s.flow().facts.counts;
    assert_eq!((c.acks_reordered, c.reordered, c.losses, c.dup_acks), (1, 0, 0, 0));
}

/// At the receiver: segments 0 and 2 come, then 1; by its original, or by a retransmission.
fn hole(timestamps: bool, ids: bool, is_repeated: bool) -> Script {
    let mut s = Script::new(timestamps, ids);
    s.handshake(50);
    (0..6).for_each(|n| {
        s.data(51 + u64::from(n), n);
        s.ack(51 + u64::from(n), n + 1, &[], 51 + u64::from(n));
    });
    s.data(100, 6);
    let missing = *s.data(101, 7);
    s.packets.pop();
    s.data(102, 8);
    s.ack(102, 7, &[(8, 9)], 100);
    if is_repeated {
        s.data(160, 7);
    } else {
        let frame = s.packets.len() as u64 + 1;
        s.packets.push(Packet { frame, at: Time(1_000_000_000_000 + 105 * MS), ..missing });
    }
    s.ack(160, 9, &[], 101);
    s
}

#[test]
fn at_the_receiver_identification_or_timestamp_tell_the_original_from_a_retransmission() {
    for (timestamps, ids) in [(true, true), (false, true), (true, false)] {
        let f = hole(timestamps, ids, false).flow();
        let c = f.facts.counts;
        assert_eq!((c.reordered, c.reordered_before, c.losses, c.retransmissions), (1, 1, 0, 0), "{timestamps} {ids}");
        assert_eq!((f.segments.last().map(|s| (s.seq, s.fate, s.late))), Some((7_000, 1, 3 * MS)));
        let c = hole(timestamps, ids, true).flow().facts.counts;
        assert_eq!((c.reordered, c.losses, c.losses_before, c.retransmissions), (0, 1, 1, 1), "{timestamps} {ids}");
    }
}

#[test]
fn without_either_the_time_of_a_round_trip_tells_them_apart() {
    let c = hole(false, false, false).flow().facts.counts;
    assert_eq!((c.reordered, c.losses), (1, 0));
    let c = hole(false, false, true).flow().facts.counts;
    assert_eq!((c.reordered, c.losses), (0, 1));
    // Without the handshake there is no round trip, and nothing is said.
    let mut s = hole(false, false, true);
    s.packets.drain(..3);
    let c = s.flow().facts.counts;
    assert_eq!((c.reordered, c.losses, c.late_unexplained), (0, 0, 1));
}

#[test]
fn the_receiver_discards_what_is_older_than_its_newest_timestamp() {
    let mut s = hole(true, true, false);
    // The late original comes again, after the receiver echoed a newer timestamp.
    let late = s.packets[s.packets.len() - 2];
    s.ack(170, 9, &[], 102);
    let frame = s.packets.len() as u64 + 1;
    s.packets.push(Packet { frame, at: Time(1_000_000_000_000 + 171 * MS), ..late });
    let f = s.flow();
    assert_eq!((f.facts.counts.discarded, f.facts.counts.losses), (1, 0));
}

#[test]
fn silence_and_a_repeated_head_are_a_timeout_and_what_follows_is_its_slow_start() {
    let mut s = Script::new(true, true);
    s.handshake(50);
    (0..3).for_each(|n| {
        s.data(50, n);
    });
    s.ack(100, 1, &[], 50);
    s.data(360, 1);
    s.ack(410, 2, &[], 360);
    s.data(410, 2);
    s.ack(460, 3, &[], 410);
    let f = s.flow();
    let c = f.facts.counts;
    assert_eq!((c.timeouts, c.after_timeout, c.fast_retransmissions, c.losses), (1, 1, 0, 2));
    assert_eq!(kinds(&f), [2, 5, 15, 5]);
}

#[test]
fn the_last_segment_repeated_after_two_round_trips_is_a_tail_probe() {
    let mut s = Script::new(true, true);
    s.handshake(50);
    (0..3).for_each(|n| {
        s.data(50, n);
    });
    s.data(152, 2);
    s.ack(202, 3, &[(2, 3)], 50); // all had come
    let f = s.flow();
    let c = f.facts.counts;
    assert_eq!((c.tail_probes, c.timeouts, c.retransmissions), (1, 0, 1));
    assert_eq!((c.losses, c.spurious), (0, 1));
}

#[test]
fn a_copy_by_the_network_is_no_retransmission() {
    let mut s = Script::new(true, true);
    s.handshake(50);
    s.data(50, 0);
    let copy = Packet { frame: 5, ..s.packets[3] };
    s.packets.push(copy);
    s.ack(100, 1, &[], 50);
    let c = s.flow().facts.counts;
    assert_eq!((c.duplicates, c.retransmissions, c.packets, c.losses), (1, 0, 2, 0));
}

#[test]
fn captures_of_both_ends_in_one_file_repeat_nothing() {
    // The sender's capture has super-packets of two segments, the receiver's, 10 ms later, single ones.
    let mut seen = Script::new(true, true);
    seen.handshake(20);
    for k in 0..40 {
        let ms = 20 + k as u64;
        let id = seen.ids[0];
        let p = seen.data(ms, 2 * k);
        p.len = 2 * MSS;
        p.size = 52 + 2 * MSS;
        seen.ids[0] = id.wrapping_add(2);
        if k >= 10 {
            for part in 0..2 {
                let (n, own) = (2 * (k - 10) + part, seen.ids[0]);
                let p = seen.data(ms - 10, n);
                p.at = Time(1_000_000_000_000 + ms * MS + 1);
                p.id = id.wrapping_sub(20).wrapping_add(part as u16);
                seen.ids[0] = own;
            }
            for late in 0..2 {
                let own = seen.ids[1];
                let p = seen.ack(ms, 2 * (k - 10) + 2, &[], ms - 10);
                p.at = Time(1_000_000_000_000 + (ms + 10 * late) * MS + 2);
                p.id = own;
                seen.ids[1] = own.wrapping_add(late as u16);
            }
        }
    }
    seen.packets.sort_by_key(|p| p.at);
    (1..).zip(&mut seen.packets).for_each(|(frame, p)| p.frame = frame);
    let flow = seen.flow();
    assert_eq!((flow.facts.counts.retransmissions, flow.facts.counts.losses), (0, 0), "{:?}", flow.facts.counts);
    assert_eq!(flow.facts.counts.acks_reordered, 0);
}

#[test]
fn a_forwarded_packet_counts_once() {
    let mut s = Script::new(true, true);
    s.handshake(50);
    (0..4).for_each(|n| {
        s.data(50, n);
    });
    s.ack(100, 4, &[], 50);
    let twice: Vec<Packet> =
        s.packets.iter().flat_map(|p| [*p, Packet { interface: 1, ttl: 63, at: Time(p.at.0 + 9_000), ..*p }]).collect();
    s.packets = twice;
    let f = s.flow();
    assert_eq!((f.facts.counts.packets, f.facts.counts.duplicates, f.facts.counts.retransmissions, f.facts.forwarded), (4, 0, 0, 8));
}

#[test]
fn window_states_and_probes() {
    let mut s = Script::new(true, true);
    s.handshake(50);
    s.data(50, 0);
    s.ack(100, 1, &[], 50).window = 0;
    s.push(0, 300, Flags::ACK, MSS, 1, 0, 100); // Linux probes with a byte that is old
    s.ack(350, 1, &[], 50).window = 0;
    s.ack(400, 1, &[], 50).window = 9;
    s.push(0, 9_000, Flags::ACK, MSS, 1, 0, 400);
    let f = s.flow();
    assert_eq!(kinds(&f), [9, 10, 11, 13]);
    let c = f.facts.counts;
    assert_eq!((c.zero_windows, c.window_probes, c.keep_alives, c.zero_window_ns), (1, 1, 1, 300 * MS));
    assert_eq!((f.facts.window_max, f.facts.window_min), (Some(1_152), Some(0)));
}

#[test]
fn a_segment_far_outside_of_the_window_changes_nothing() {
    let mut s = Script::new(true, true);
    s.handshake(50);
    s.data(50, 0);
    s.push(0, 51, Flags::ACK, 900_000, 1, MSS, 50);
    s.data(52, 1);
    s.ack(100, 2, &[], 50);
    let f = s.flow();
    assert_eq!((f.facts.counts.out_of_window, f.facts.bytes, f.facts.counts.losses_before, f.segments.len()), (1, 2_000, 0, 2));
}

#[test]
fn both_directions_carry_data() {
    let mut s = Script::new(true, true);
    s.handshake(50);
    s.data(50, 0);
    s.push(1, 100, Flags::ACK, 1, 1_001, 500, 50);
    s.push(0, 101, Flags::ACK, 1_001, 501, 0, 100);
    let flows = s.analysed();
    assert_eq!(flows.iter().map(|f| (f.from, f.facts.bytes)).collect::<Vec<_>>(), [(end(0), 1_000), (end(1), 500)]);
    assert_eq!((flows[0].acks.last().map(|a| a.len), flows[1].segments[0].rtt), (Some(500), MS));
    flows.iter().for_each(laws);
}

#[test]
fn what_the_receiver_sends_beside_its_acknowledgements_is_counted_before_the_next_one() {
    let mut s = Script::new(true, true);
    s.handshake(20);
    for k in 0..4 {
        let ms = 30 + 30 * u64::from(k);
        s.data(ms, k);
        s.ack(ms + 20, k + 1, &[], ms);
        s.push(1, ms + 22, Flags::ACK, 1 + 50 * k, 1 + (k + 1) * MSS, 50, ms); // acknowledges nothing new
    }
    let flow = s.analysed().into_iter().find(|f| f.from == end(0)).expect("the data");
    assert_eq!(flow.acks.iter().map(|a| a.beside).collect::<Vec<_>>(), [0, 1, 1, 1]);
}

#[test]
fn one_direction_alone_says_what_it_cannot_show() {
    let mut s = Script::new(true, true);
    loss(&mut s);
    s.ack(153, 4, &[], 103);
    let all = s.packets.clone();
    s.packets.retain(|p| p.from == end(0));
    let f = s.flow();
    let json = f.facts.json();
    assert!(f.facts.acks_missing && !f.facts.data_missing);
    assert_eq!((json.get("losses"), json.get("retransmissions"), json.get("goodput_mbps")), (None, Some(&1.into()), None));
    assert_eq!((f.facts.bytes, f.facts.vantage.place), (4_000, Place::Unknown));
    assert!(json["not_identifiable"].get("losses").is_some());
    s.packets = all.into_iter().filter(|p| p.from == end(1)).collect();
    let f = s.flow();
    assert!(f.facts.data_missing && !f.facts.acks_missing);
    assert_eq!((f.facts.bytes, f.facts.json().get("losses"), f.segments.len()), (4_000, None, 0));
}

#[test]
fn a_capture_from_mid_connection_has_no_window_scale_and_counts_from_its_first_byte() {
    let mut s = Script::new(true, true);
    s.handshake(50);
    (0..6).for_each(|n| {
        s.data(50 + u64::from(n), n);
    });
    (1..=6).for_each(|n| {
        s.ack(100 + u64::from(n), n, &[], 50);
    });
    s.packets.drain(..5);
    let f = s.flow();
    let json = f.facts.json();
    assert!(f.facts.begins_in_mid_connection);
    assert_eq!((f.segments[0].seq, f.facts.bytes, f.facts.counts.not_captured_bytes), (0, 4_000, 0));
    assert_eq!((json.get("ecn"), json["window_scale"].as_array()), (None, None));
    assert!(json["not_identifiable"].get("window_scale").is_some());
}

#[test]
fn a_fin_counts_as_a_byte_of_the_numbers_and_is_none_of_the_data() {
    let fin = Flags::FIN.with(Flags::ACK);
    for (with_data, opened) in [(false, true), (true, true), (false, false), (true, false)] {
        let mut s = Script::new(true, true);
        s.handshake(50);
        (0..3).for_each(|n| {
            s.data(50, n);
        });
        if with_data {
            s.packets.last_mut().expect("a segment").flags = fin;
        } else {
            s.push(0, 51, fin, 1 + 3 * MSS, 1, 0, 50);
        }
        s.push(1, 101, fin, 1, 2 + 3 * MSS, 0, 51);
        s.push(0, 101, Flags::ACK, 2 + 3 * MSS, 2, 0, 101);
        if !opened {
            s.packets.drain(..3);
        }
        let counts = &s.flow().facts;
        assert_eq!((counts.bytes, counts.counts.not_captured_bytes), (3_000, 0), "{with_data} {opened}");
    }
}

#[test]
fn a_connection_that_ends_long_after_its_data_is_no_slow_transfer() {
    for sack in [true, false] {
        let mut s = Script::new(true, sack);
        s.handshake(50);
        (0..4).for_each(|n| {
            s.data(50, n);
        });
        s.ack(100, 4, &[], 50);
        let fin = Flags::FIN.with(Flags::ACK);
        s.push(0, 75_000, fin, 1 + 4 * MSS, 1, 0, 100);
        s.push(1, 75_050, fin, 1, 2 + 4 * MSS, 0, 75_000);
        s.push(0, 75_050, Flags::ACK, 2 + 4 * MSS, 2, 0, 75_050);
        let x = s.flow().facts;
        assert_eq!((x.seconds, x.goodput_mbps), (0.1, Some(4_000.0 * 8.0 / 50e3)));
    }
}

#[test]
fn what_was_acknowledged_and_never_seen_is_stated() {
    let mut s = Script::new(true, true);
    s.handshake(50);
    s.data(50, 0);
    s.data(51, 1);
    s.packets.pop();
    s.data(52, 2);
    s.ack(100, 3, &[], 50);
    let f = s.flow();
    assert_eq!((f.facts.counts.not_captured_bytes, f.facts.counts.losses, kinds(&f)), (1_000, 0, vec![16]));
}

#[test]
fn jumbo_frames_are_segments_also_without_the_syns() {
    // 7,948 bytes are no sum of segments that an Ethernet takes, as 5,792 are; the end of a write may have any length.
    for (len, flags, size) in [(7_948, Flags::ACK, Some(7_948)), (5_792, Flags::ACK, None), (7_948, Flags::ACK.with(Flags::PSH), None)] {
        let mut s = Script::new(true, true);
        for n in 0..8 {
            s.push(0, u64::from(n), flags, 1 + n * len, 1, len, 0);
        }
        s.push(1, 50, Flags::ACK, 1, 1 + 8 * len, 0, 7);
        assert_eq!(s.flow().facts.segment_size, size, "{len}");
    }
}

#[test]
fn what_a_senders_capture_lacks_was_not_lost_before_it() {
    // Segments 3, 5 and 6 are lost. Of the first and of segment 8, which arrives, the capture has no first transmission.
    for (lacks, place) in [(&[3, 8][..], Place::Sender), (&[3], Place::Middle)] {
        let mut s = Script::new(true, true);
        s.handshake(50);
        (0..20).for_each(|n| {
            s.data(50, n);
        });
        s.packets.retain(|p| !lacks.iter().any(|n| p.len > 0 && p.seq == ISN[0].wrapping_add(1 + n * MSS)));
        s.ack(100, 3, &[(4, 5)], 50);
        s.ack(101, 3, &[(7, 20)], 50);
        for n in [3, 5, 6] {
            s.data(102, n).id += 100;
        }
        s.ack(152, 20, &[], 102);
        let f = s.flow();
        let counts = f.facts.counts;
        assert_eq!((counts.losses, counts.losses_before, f.facts.vantage.place), (3, 1, place), "{lacks:?}");
    }
}

/// At the receiver: 40 segments in super-packets of four. The acknowledgement of every second one comes first, and the data `late` ns after it, with a
/// timestamp that is `newer` ms newer than the one that the acknowledgement echoes.
fn acknowledged_first(timestamps: bool, ids: bool, late: u64, newer: u64) -> Script {
    let mut s = Script::new(timestamps, ids);
    s.handshake(50);
    for k in 0..10u32 {
        let (ms, is_first) = (60 + 50 * u64::from(k), k % 2 == 1);
        if is_first {
            s.ack(ms, 4 * (k + 1), &[], ms);
        }
        let p = s.data(if is_first { ms + newer } else { ms }, 4 * k);
        (p.len, p.size) = (4_000, 4_052);
        if is_first {
            p.at = Time(p.at.0 - newer * MS + late);
        } else {
            s.ack(ms, 4 * (k + 1), &[], ms).at.0 += 30_000;
        }
    }
    s
}

#[test]
fn data_captured_after_their_acknowledgement_are_no_retransmission() {
    for (timestamps, ids) in [(true, true), (true, false), (false, true), (false, false)] {
        let f = acknowledged_first(timestamps, ids, 2_000, 0).flow();
        let c = f.facts.counts;
        assert_eq!((c.retransmissions, c.spurious, c.losses, c.not_captured_bytes, c.captured_late_bytes), (0, 0, 0, 0, 20_000));
        assert_eq!((c.packets, f.facts.bytes, kinds(&f)), (10, 40_000, vec![Kind::CapturedLate as u8; 5]), "{timestamps} {ids}");
        assert_eq!(fates(&f), [0; 10]);
    }
    // However long the capture held it back, what the acknowledgement echoes was sent no earlier.
    let c = acknowledged_first(true, false, 9 * MS, 0).flow().facts.counts;
    assert_eq!((c.retransmissions, c.captured_late_bytes), (0, 20_000));
}

#[test]
fn what_comes_long_after_its_acknowledgement_and_was_sent_later_than_what_that_answers_is_repeated() {
    // The originals are not in the capture, and their retransmissions met the acknowledgements on the way.
    for timestamps in [true, false] {
        let f = acknowledged_first(timestamps, true, 20 * MS, 20).flow();
        let c = f.facts.counts;
        assert_eq!((c.retransmissions, c.spurious, c.not_captured_bytes, c.captured_late_bytes), (20, 20, 20_000, 0), "{timestamps}");
    }
}

#[test]
fn a_super_packet_is_one_row_whose_segments_are_judged_alone() {
    let mut s = Script::new(true, true);
    s.handshake(50);
    let p = s.data(50, 0);
    (p.len, p.size) = (4_000, 4_052);
    s.ack(100, 1, &[(2, 4)], 50);
    s.data(101, 1);
    s.ack(151, 4, &[], 101);
    let f = s.flow();
    assert_eq!(f.segments.iter().map(|s| (s.len, s.segs, s.fate)).collect::<Vec<_>>(), [(4_000, 4, 2)]);
    let c = f.facts.counts;
    assert_eq!((c.segments, c.super_packets, c.losses, c.retransmissions), (5, 1, 1, 1));
}

#[test]
fn the_same_ports_again_are_another_connection() {
    let mut s = Script::new(true, true);
    s.handshake(50);
    s.data(50, 0);
    s.ack(100, 1, &[], 50);
    s.push(0, 110, Flags::RST, 1_001, 0, 0, 0);
    let first = s.packets.len();
    s.handshake(50);
    s.data(60, 0);
    s.ack(120, 1, &[], 60);
    for p in &mut s.packets[first..] {
        p.at = Time(p.at.0 + 5_000 * MS);
        let (a, b) = (&mut p.seq, &mut p.ack);
        if p.from == end(0) {
            *a = a.wrapping_add(123_456_789);
        } else {
            *b = b.wrapping_add(123_456_789);
        }
    }
    let flows = s.analysed();
    assert_eq!(flows.iter().map(|f| (f.facts.bytes, f.facts.counts.not_captured_bytes)).collect::<Vec<_>>(), [(1_000, 0); 2]);
}

#[test]
fn rows_and_connections_stay_within_the_budget_and_counters_stay_exact() {
    let budget = Budget { rows: 1 << 10, connections: 16, flows: 8, outstanding: 1 << 12, ..Budget::default() };
    let mut a = Analyzer::new(budget);
    let mut frame = 0;
    for port in 0..40u16 {
        let mut s = Script::new(true, true);
        s.handshake(50);
        let n = if port == 39 { 5_000 } else { 20 };
        for i in 0..n {
            s.data(50 + u64::from(i), i);
            s.ack(50 + u64::from(i), i + 1, &[], 50 + u64::from(i));
        }
        for p in &mut s.packets {
            frame += 1;
            p.frame = frame;
            p.at = Time(p.at.0 + u64::from(port) * MS);
            for e in [&mut p.from, &mut p.to] {
                e.port += if e.port == 5_000 { 1_000 + port } else { 0 };
            }
            a.packet(p);
        }
    }
    let (flows, totals) = a.finish();
    assert_eq!((flows.len(), totals.connections, totals.left_out, totals.packets), (8, 40, 32, frame));
    let large = &flows[0];
    assert_eq!((large.facts.counts.packets, large.facts.bytes), (5_000, 5_000_000));
    assert!(large.facts.segment_stride >= 8 && large.segments.len() as u64 == 5_000u64.div_ceil(large.facts.segment_stride));
    assert!(large.segments.windows(2).all(|w| w[1].seq - w[0].seq == 1_000 * large.facts.segment_stride));
    assert!(flows.iter().map(|f| f.segments.len() + f.acks.len()).sum::<usize>() <= budget.rows);
}

#[test]
fn a_clock_that_goes_back_breaks_nothing() {
    let mut s = Script::new(true, true);
    loss(&mut s);
    s.ack(153, 4, &[], 103);
    for (i, p) in s.packets.iter_mut().enumerate() {
        p.at = Time(p.at.0 - (i as u64 % 3) * 2_000 * MS);
    }
    s.flow();
}
