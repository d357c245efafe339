//! Files read back block by block, frames by etherparse.

use super::*;
use etherparse::{NetSlice, SlicedPacket, TcpOptionElement, TcpSlice, TransportSlice};
use tcpscape_base::Flags;

/// A packet as read back.
struct Read {
    t_ns: u64,
    length: u32,
    direction: u32,
    bytes: Vec<u8>,
}

fn meta(wscale: &[u8], whole: u64) -> Meta<'_> {
    Meta { seed: 7, mtu: 1500, wscale, program: "test", comment: "five", whole }
}

fn written(meta: &Meta<'_>, events: &[Event]) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, meta, events.iter().copied()).expect("writing to memory");
    out
}

fn word(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(b[at..at + 4].try_into().unwrap())
}

/// The blocks' types and bodies. Lengths stand on both sides and are multiples of four.
fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
    let mut found = Vec::new();
    while !file.is_empty() {
        let len = word(file, 4) as usize;
        assert_eq!((len % 4, word(file, len - 4) as usize), (0, len));
        found.push((word(file, 0), &file[8..len - 4]));
        file = &file[len..];
    }
    found
}

fn packets(file: &[u8]) -> Vec<Read> {
    blocks(file)
        .into_iter()
        .filter(|b| b.0 == 6)
        .map(|(_, b)| {
            let kept = word(b, 12) as usize;
            let options = 20 + kept.next_multiple_of(4);
            assert_eq!(b[options..options + 4], [2, 0, 4, 0]);
            Read {
                t_ns: u64::from(word(b, 4)) << 32 | u64::from(word(b, 8)),
                length: word(b, 16),
                direction: word(b, options + 4),
                bytes: b[20..20 + kept].to_vec(),
            }
        })
        .collect()
}

/// Source, destination, identification and the TCP part of a frame whose checksums are right.
fn parse(frame: &[u8]) -> ([u8; 4], [u8; 4], u16, TcpSlice<'_>) {
    let p = SlicedPacket::from_ethernet(frame).expect("a frame");
    let Some(NetSlice::Ipv4(ip)) = p.net else { panic!("no IPv4") };
    let Some(TransportSlice::Tcp(tcp)) = p.transport else { panic!("no TCP") };
    let h = ip.header();
    assert_eq!(h.header_checksum(), h.to_header().calc_header_checksum());
    assert_eq!(tcp.checksum(), tcp.calc_checksum_ipv4(h.source(), h.destination()).expect("a length"));
    assert!(h.dont_fragment());
    (h.source(), h.destination(), h.identification(), tcp)
}

fn event(t: u64, flow: u32, received: bool, seg: Segment) -> Event {
    Event { at: Time(t), flow, received, seg }
}

#[test]
fn a_file_starts_with_a_section_and_an_interface_in_nanoseconds() {
    let file = written(&meta(&[], WHOLE), &[]);
    let b = blocks(&file);
    assert_eq!(b.iter().map(|b| b.0).collect::<Vec<_>>(), [0x0a0d_0d0a, 1]);
    assert_eq!(&b[0].1[16..24], b"\x01\0\x04\0five");
    assert!(b[1].1.windows(5).any(|w| w == [9, 0, 1, 0, 9]));
}

#[test]
fn a_comment_that_does_not_fit_is_left_out() {
    let long = "x".repeat(70_000);
    let file = written(&Meta { comment: &long, ..meta(&[], WHOLE) }, &[]);
    assert_eq!(&blocks(&file)[0].1[16..24], b"\x04\0\x04\0test");
}

#[test]
fn the_handshake_says_what_linux_says() {
    let syn = Segment { flags: Flags::SYN, wnd: 64_240, tsval: 41, ..Segment::default() };
    let synack = Segment { flags: Flags::SYN.with(Flags::ACK), ack: 1, wnd: 65_160, tsval: 1_000, tsecr: 41, ..Segment::default() };
    let file = written(&meta(&[9], WHOLE), &[event(5_000_000_001, 0, false, syn), event(5_040_000_001, 0, true, synack)]);
    let p = packets(&file);
    assert_eq!((p[0].t_ns, p[0].direction, p[0].length), (5_000_000_001, 2, 74));
    assert_eq!((p[1].t_ns, p[1].direction, p[1].length), (5_040_000_001, 1, 74));
    let (s, d, _, a) = parse(&p[0].bytes);
    let (d2, s2, _, b) = parse(&p[1].bytes);
    assert_eq!((s, d, a.source_port(), a.destination_port()), (s2, d2, b.destination_port(), b.source_port()));
    assert!(a.syn() && !a.ack() && b.syn() && b.ack());
    assert_eq!((a.window_size(), b.window_size()), (64_240, 65_160));
    assert_eq!(b.acknowledgment_number(), a.sequence_number().wrapping_add(1));
    use TcpOptionElement::{MaximumSegmentSize, Noop, SelectiveAcknowledgementPermitted, Timestamp, WindowScale};
    let head = [MaximumSegmentSize(1460), SelectiveAcknowledgementPermitted];
    let options = |t: &TcpSlice<'_>| t.options_iterator().map(|o| o.expect("an option")).collect::<Vec<_>>();
    assert_eq!(options(&a), [&head[..], &[Timestamp(41, 0), Noop, WindowScale(7)]].concat());
    assert_eq!(options(&b), [&head[..], &[Timestamp(1_000, 41), Noop, WindowScale(9)]].concat());
}

#[test]
fn an_ack_has_its_window_scaled_and_its_sack_blocks_in_the_senders_numbers() {
    let mut ack = Segment { flags: Flags::ACK, seq: 1, ack: 10_000, wnd: 3 << 9, tsval: 9, tsecr: 8, ..Segment::default() };
    let edges = [(9_000, 9_500), (20_000, 21_448), (30_000, 31_448)];
    for b in edges {
        ack.push_sack(b);
    }
    let file = written(&meta(&[7, 9], WHOLE), &[event(1, 1, true, ack)]);
    let p = packets(&file);
    let (_, _, id, t) = parse(&p[0].bytes);
    let isn = Connection::new(7, 1, 9, 1500).isn;
    assert_eq!((t.window_size(), id, p[0].length), (3, 0, ack.frame_len()));
    assert_eq!((t.sequence_number(), t.acknowledgment_number()), (isn[1].wrapping_add(1), isn[0].wrapping_add(10_000)));
    let at = |x: u64| isn[0].wrapping_add(x as u32);
    let sack = TcpOptionElement::SelectiveAcknowledgement(
        (at(edges[0].0), at(edges[0].1)),
        [Some((at(edges[1].0), at(edges[1].1))), Some((at(edges[2].0), at(edges[2].1))), None],
    );
    assert_eq!(t.options_iterator().last(), Some(Ok(sack)));
}

#[test]
fn a_super_packet_is_cut_and_numbers_wrap() {
    let start = (1u64 << 32) - 2_000;
    let seg = Segment { flags: Flags::ACK, seq: start, ack: 1, len: 3_001, wnd: 64_256, tsval: 9, tsecr: 8, ..Segment::default() };
    let file = written(&meta(&[9], WHOLE), &[event(1, 0, false, seg), event(2, 0, false, seg)]);
    let p = packets(&file);
    let isn = Connection::new(7, 0, 9, 1500).isn[0];
    let mut ids = Vec::new();
    for (k, (read, len)) in p.iter().zip([1_448, 1_448, 105, 1_448, 1_448, 105]).enumerate() {
        let (_, _, id, t) = parse(&read.bytes);
        ids.push(id);
        assert_eq!(t.payload().len(), len);
        assert_eq!(t.sequence_number(), isn.wrapping_add((start + 1_448 * (k as u64 % 3)) as u32));
        assert_eq!((read.t_ns, t.window_size()), (1 + k as u64 / 3, 502));
    }
    assert_eq!(p.len(), 6);
    assert!(ids.windows(2).all(|w| w[1] == w[0].wrapping_add(1)));
}

#[test]
fn a_large_capture_keeps_the_headers() {
    let seg = Segment { flags: Flags::ACK, seq: 1, ack: 1, len: 1_448, tsval: 9, ..Segment::default() };
    let events = [event(1, 0, false, seg)];
    let frame = u64::from(seg.frame_len());
    let (all, some) = (written(&meta(&[9], frame), &events), written(&meta(&[9], frame - 1), &events));
    let (all, some) = (packets(&all), packets(&some));
    assert_eq!((all[0].length, all[0].bytes.len(), some[0].length, some[0].bytes.len()), (1514, 1514, 1514, 96));
    assert_eq!(all[0].bytes[..96], some[0].bytes);
}

#[test]
fn a_reset_without_an_ack_has_neither_options_nor_an_acknowledgement_number() {
    let rst = Segment { flags: Flags::RST, seq: 5, ..Segment::default() };
    let file = written(&meta(&[9], WHOLE), &[event(1, 0, false, rst)]);
    let p = packets(&file);
    let (_, _, _, t) = parse(&p[0].bytes);
    assert_eq!((t.rst(), t.ack(), t.acknowledgment_number(), t.data_offset(), p[0].length), (true, false, 0, 5, 54));
}

#[test]
fn every_flow_has_its_own_addresses() {
    let seg = Segment { flags: Flags::ACK, ..Segment::default() };
    let flows = [0, 1, 4_999, 5_000, 99_999];
    let wscale = vec![7; 100_000];
    let file = written(&meta(&wscale, WHOLE), &flows.map(|f| event(1, f, false, seg)));
    let ends: std::collections::BTreeSet<_> = packets(&file)
        .iter()
        .map(|p| {
            let (_, to, _, t) = parse(&p.bytes);
            (to, t.source_port())
        })
        .collect();
    assert_eq!(ends.len(), flows.len());
}

/// The ninth flag stands beside the header's length.
#[test]
fn accurate_ecn_has_three_flags() {
    let seg = Segment { flags: Flags::ACK.with(Flags::of_ace(0b110)), seq: 1, ack: 1, tsval: 9, ..Segment::default() };
    let file = written(&meta(&[7], WHOLE), &[event(0, 0, false, seg)]);
    let p = packets(&file);
    let tcp = parse(&p[0].bytes).3;
    assert_eq!((tcp.ns(), tcp.cwr(), tcp.ece(), tcp.urg(), tcp.header_len()), (true, true, false, false, 32));
}
