//! Super-packets: cut, joined, marked, damaged.

use super::frames::{read, Build, Read};
use super::*;

/// What leaves of these frames, all of which arrive at 0, as a receiver reads it; `None` is what it refuses.
fn through(words: &[&str], options: &LinkOptions, frames: &[Vec<u8>]) -> Vec<(Time, Option<Read>)> {
    let mut link = link(words, options);
    for f in frames {
        link.arrive(Time(0), Direction::Forward, f);
    }
    departures(&mut link, END).into_iter().map(|(_, due, frame)| (due, read(&frame))).collect()
}

fn merging() -> LinkOptions {
    LinkOptions { merge: true, ..LinkOptions::default() }
}

fn kinds() -> impl Iterator<Item = Build> {
    (0..4).map(|n| {
        let (v6, udp) = (n & 1 != 0, n & 2 != 0);
        let mut b = Build { v6, udp, payload: 4_000, gso: 1_448, ecn: 2, ..Build::default() };
        (b.tcp.psh, b.tcp.fin, b.tcp.cwr) = (true, true, !udp);
        b
    })
}

/// 4000 bytes are 1448, 1448 and 1104: numbers, lengths, flags and checksums as if three packets had been sent.
#[test]
fn a_super_packet_is_cut_into_packets_that_a_receiver_takes() {
    for b in kinds() {
        let out = through(&["netem delay 5ms"], &LinkOptions::default(), &[b.frame()]);
        assert!(out.iter().all(|o| o.0 == Time(5 * MS)));
        let parts: Vec<Read> = out.into_iter().map(|o| o.1.expect("a good packet")).collect();
        assert_eq!(parts.iter().map(|p| p.payload.len()).collect::<Vec<_>>(), [1_448, 1_448, 1_104], "{b:?}");
        assert_eq!(parts.iter().flat_map(|p| p.payload.clone()).collect::<Vec<_>>(), b.bytes());
        assert!(parts.iter().all(|p| p.ecn == 2 && p.header.gso_type == 0 && p.header.gso_size == 0));
        if !b.v6 {
            assert_eq!(parts.iter().map(|p| p.id).collect::<Vec<_>>(), [u16::MAX - 1, u16::MAX, 0]);
        }
        if !b.udp {
            let start = b.tcp.sequence_number;
            let offsets: Vec<u32> = parts.iter().map(|p| p.seq.wrapping_sub(start)).collect();
            let flags: Vec<_> = parts.iter().map(|p| p.flags).collect();
            assert_eq!(offsets, [0, 1_448, 2_896]);
            assert_eq!(flags, [(true, false, false), (false, false, false), (false, true, true)]);
        }
    }
}

/// With one delay for all the super-packet leaves as it came.
#[test]
fn segments_that_are_due_together_leave_together_unchanged() {
    for b in kinds() {
        let mut link = link(&["netem delay 5ms"], &merging());
        link.arrive(Time(0), Direction::Forward, &b.frame());
        let out = departures(&mut link, END);
        assert_eq!(out, [(Direction::Forward, Time(5 * MS), b.frame())]);
        let t = link.totals(Direction::Forward);
        assert_eq!((t.packets_in, t.packets_out, t.reordered), (3, 3, 0));
    }
}

/// A rate gives each segment a due time of its own.
#[test]
fn a_rate_spreads_the_segments() {
    let out = through(&["netem delay 5ms rate 10mbit"], &merging(), &[Build::full(3).frame()]);
    let due: Vec<u64> = out.iter().map(|o| o.0 .0 - 5 * MS).collect();
    assert_eq!(due, [1_211_200, 2_422_400, 3_633_600]);
}

/// What is due when the link is asked leaves together, each counted with its own delay.
#[test]
fn segments_that_are_due_leave_together() {
    let b = Build::full(3);
    let mut link = link(&["netem delay 5ms rate 10mbit"], &LinkOptions { capture: Some(0), ..merging() });
    link.arrive(Time(0), Direction::Forward, &b.frame());
    let now = Time(5 * MS + 2_422_400);
    let first = link.depart(now).map(|d| (d.due, d.packets, read(d.frame).expect("a good packet").payload.len()));
    assert_eq!(first, Some((Time(5 * MS + 1_211_200), 2, 2 * 1_448)));
    assert!(link.depart(now).is_none());
    let last = departures(&mut link, END);
    assert_eq!((last.len(), last[0].1), (1, Time(5 * MS + 3_633_600)));
    let delay = link.totals(Direction::Forward).delay;
    assert_eq!((delay.count, delay.min, delay.max), (3, 5 * MS + 1_211_200, 5 * MS + 3_633_600));
}

/// The packets around a lost one leave as two smaller super-packets with the bytes between missing.
#[test]
fn a_loss_splits_a_super_packet_in_two() {
    for b in kinds().filter(|b| !b.udp).map(|b| Build { payload: 1_448 * 44, gso: 1_448, ..b }) {
        let options = LinkOptions { seed: 3, ..merging() };
        let mut link = link(&["netem loss 3%"], &options);
        link.arrive(Time(0), Direction::Forward, &b.frame());
        let sent = b.bytes();
        let out: Vec<Read> = departures(&mut link, END).iter().map(|d| read(&d.2).expect("a good packet")).collect();
        let lost = link.totals(Direction::Forward).drops.loss;
        assert!(lost > 0 && out.len() as u64 <= lost + 1 && out.len() > 1, "{lost} lost, {} left", out.len());
        let mut bytes = 0;
        for p in &out {
            let from = p.seq.wrapping_sub(b.tcp.sequence_number) as usize;
            assert_eq!(p.payload, sent[from..from + p.payload.len()]);
            assert_eq!(p.flags.0, from == 0, "CWR with the first only");
            assert_eq!((p.flags.1, p.flags.2), if from + p.payload.len() == sent.len() { (true, true) } else { (false, false) });
            assert_eq!(p.header.gso_size, if p.payload.len() > 1_448 { 1_448 } else { 0 });
            bytes += p.payload.len();
        }
        assert_eq!(bytes as u64, sent.len() as u64 - 1_448 * lost);
    }
}

/// netem's `ecn` marks what it would lose: some segments get CE, the checksum of IPv4 with it, and leave apart from the others.
#[test]
fn marks_are_written_into_single_packets() {
    for b in kinds().map(|b| Build { payload: 1_448 * 20, gso: 1_448, ..b }) {
        let options = LinkOptions { seed: 5, ..merging() };
        let out = through(&["netem loss 20% ecn"], &options, &[b.frame()]);
        let read: Vec<Read> = out.into_iter().map(|o| o.1.expect("a good packet")).collect();
        let payload = |ecn: u8| read.iter().filter(|r| r.ecn == ecn).map(|r| r.payload.len()).sum::<usize>();
        assert!(payload(3) > 0 && payload(2) > 0, "{b:?}");
        assert_eq!(payload(3) + payload(2), b.payload);
    }
}

/// A flipped bit is refused by whoever computes the checksums: also where the sender had left them to its device.
#[test]
fn a_receiver_refuses_damaged_packets() {
    for b in kinds() {
        for b in [b.clone(), Build { payload: 300, gso: 0, partial: true, ..b.clone() }, Build { payload: 300, gso: 0, ..b }] {
            let options = LinkOptions { ..merging() };
            let out = through(&["netem corrupt 100%"], &options, &vec![b.frame(); 50]);
            assert_eq!(out.len(), 50 * if b.gso > 0 { 3 } else { 1 });
            assert!(out.iter().all(|o| o.1.is_none()), "{b:?}");
        }
    }
}

/// Copies of the segments of a super-packet are packets of their own.
#[test]
fn copies_are_whole_packets() {
    let out = through(&["netem duplicate 100%"], &merging(), &[Build::full(3).frame()]);
    let read: Vec<Read> = out.into_iter().map(|o| o.1.expect("a good packet")).collect();
    let bytes: usize = read.iter().map(|r| r.payload.len()).sum();
    assert_eq!(bytes, 6 * 1_448);
}

/// A super-packet of a kind that is not understood is one packet, and leaves as it came.
#[test]
fn what_is_not_understood_is_not_cut() {
    let mut frame = Build::full(3).frame();
    frame[1] = 3; // fragments of UDP, long gone from Linux
    let mut link = link(&["netem delay 5ms"], &LinkOptions::default());
    link.arrive(Time(0), Direction::Forward, &frame);
    assert_eq!(departures(&mut link, END), [(Direction::Forward, Time(5 * MS), frame)]);
    let t = link.totals(Direction::Forward);
    assert_eq!((t.packets_in, t.uncut, t.unasked(Direction::Forward).len()), (1, 1, 1));
}
