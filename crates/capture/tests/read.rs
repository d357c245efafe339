//! Files made in memory, read whole and in pieces.

mod support;

use etherparse::TcpOptionElement::{
    MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted, Timestamp, WindowScale,
};
use std::collections::BTreeMap;
use support::*;
use tcpscape_base::{Ecn, Flags};
use tcpscape_capture::packet::Packet;

const ORDERS: [Order; 2] = [Order::Little, Order::Big];
/// 2026-01-02 03:04:05.678901 in µs.
const US: u64 = 1_767_323_045_678_901;

fn segment(seq: u32) -> Vec<u8> {
    ipv4(&tcp(seq, 9, &[Noop, Noop, Timestamp(5, 6)]), &[7; 100])
}

fn only(file: &[u8]) -> Packet {
    let (packets, report) = read(file);
    assert_eq!((packets.len(), report.packets, report.is_whole), (1, 1, true), "{report:?}");
    packets[0]
}

fn skipped(file: &[u8]) -> BTreeMap<&'static str, u64> {
    let (packets, report) = read(file);
    assert_eq!(packets.len() as u64, report.packets);
    report.skipped
}

#[test]
fn pcap_of_both_orders_and_both_units() {
    for order in ORDERS {
        for (magic, units, ns) in [(MICRO, US, US * 1_000), (NANO, US * 1_000 + 23, US * 1_000 + 23)] {
            let p = only(&pcap(order, magic, 101, &[kept(units, segment(3))]));
            assert_eq!((p.frame, p.at.0, p.seq, p.ack, p.len, p.size), (1, ns, 3, 9, 100, 152));
            let ends = [p.from, p.to].map(|e| format!("{}:{}", e.address, e.port));
            assert_eq!(ends, ["192.0.2.1:40000", "192.0.2.2:443"]);
            assert_eq!((p.ttl, p.id, p.window, p.flags, p.ecn), (57, 77, 1_000, Flags::ACK, Ecn::NotEct));
            assert_eq!((p.options.timestamps, p.options.is_cut), (Some((5, 6)), false));
        }
    }
}

#[test]
fn the_modified_format_has_longer_headers() {
    let mut file = pcap(Order::Little, 0xa1b2_cd34, 101, &[]);
    let bytes = segment(8);
    for v in [5, 6, bytes.len() as u32, bytes.len() as u32, 1, 0] {
        file.extend(u32::to_le_bytes(v));
    }
    file.extend(&bytes);
    assert_eq!((only(&file).at.0, only(&file).seq), (5_000_006_000, 8));
}

/// Two sections of different byte order, with interfaces whose clocks count in µs (not said), ns, 2^-20 s, ms and 10^-12 s.
#[test]
fn pcapng_has_sections_interfaces_and_units() {
    let (l, b) = (Order::Little, Order::Big);
    let file = [
        section(l),
        interface(l, 101, None, 0),
        interface(l, 1, Some(9), 100),
        enhanced(l, 0, &kept(1_000_001, segment(1))),
        enhanced(l, 1, &kept(7, ethernet(0x0800, &segment(2)))),
        section(b),
        interface(b, 228, Some(0x80 | 20), 0),
        interface(b, 101, Some(3), -2),
        interface(b, 101, Some(12), 0),
        enhanced(b, 0, &kept(3 << 19, segment(3))),
        enhanced(b, 1, &kept(2_345, segment(4))),
        enhanced(b, 2, &kept(4_000_000_500_000, segment(5))),
    ]
    .concat();
    let (packets, report) = read(&file);
    let seen: Vec<_> = packets.iter().map(|p| (p.frame, p.interface, p.at.0, p.seq)).collect();
    let expected =
        [(1, 0, 1_000_001_000, 1), (2, 1, 100_000_000_007, 2), (3, 2, 1_500_000_000, 3), (4, 3, 345_000_000, 4), (5, 4, 4_000_000_500, 5)];
    assert_eq!(seen, expected);
    assert_eq!((report.format.as_str(), report.frames, report.interfaces.len(), report.notes.len()), ("pcapng", 5, 5, 0));
    assert_eq!((report.interfaces[1].name.as_str(), report.interfaces[1].link_type.as_str()), ("if1", "Ethernet"));
}

#[test]
fn any_chunks_give_the_same() {
    let packets: Vec<Kept> = (0..40).map(|i| kept(US + u64::from(i), segment(i))).collect();
    let blocks = packets.iter().flat_map(|p| enhanced(Order::Big, 0, p)).collect::<Vec<u8>>();
    let unknown = block(Order::Big, 0x4000_0bad, &[1; 333]);
    let ng = [section(Order::Big), interface(Order::Big, 101, None, 0), unknown, blocks].concat();
    for file in [pcap(Order::Little, MICRO, 101, &packets), ng] {
        let whole = read(&file);
        assert_eq!(whole.1.bytes, file.len() as u64);
        for chunk in [1, 2, 3, 7, 16, 100, 1_000] {
            assert_eq!(read_in(&file, chunk).expect("a capture"), whole, "in chunks of {chunk}");
        }
    }
}

#[test]
fn old_and_simple_packet_blocks() {
    let l = Order::Little;
    let bytes = segment(6);
    let old = [&l.u16(0)[..], &l.u16(3), &l.u32(0), &l.u32(9), &l.u32(bytes.len() as u32), &l.u32(bytes.len() as u32), &bytes].concat();
    let simple = [&l.u32(bytes.len() as u32)[..], &bytes].concat();
    let (packets, report) = read(&[section(l), interface(l, 101, None, 0), block(l, 3, &simple), block(l, 2, &old)].concat());
    assert_eq!((packets.len(), packets[0].at.0, packets[0].frame), (1, 9_000, 2));
    assert_eq!(report.skipped, BTreeMap::from([("no_time", 1)]));
    assert!(report.notes[0].contains("without a time (simple packet blocks), not read: 1."), "{:?}", report.notes);
}

#[test]
fn drops_of_the_capture_are_told() {
    for order in ORDERS {
        let statistics =
            [order.u32(0).to_vec(), vec![0; 8], option(order, 5, &order.u64(12)), option(order, 7, &order.u64(30)), vec![0; 4]].concat();
        let file = [section(order), interface(order, 101, None, 0), enhanced(order, 0, &kept(1, segment(1))), block(order, 5, &statistics)]
            .concat();
        let report = read(&file).1;
        assert_eq!(report.interfaces[0].drops, 42);
        assert!(report.notes[0].contains("by its own count: 42."), "{:?}", report.notes);
    }
}

#[test]
fn link_layers() {
    let (v4, v6) = (segment(1), ipv6(&tcp(1, 9, &[]), 6, &[], &[0; 100]));
    let vlan = |inner: &[u8]| [&[0x00, 0x07][..], inner].concat();
    let typed = |kind: u16, bytes: &[u8]| [&kind.to_be_bytes()[..], bytes].concat();
    let qinq = ethernet(0x88a8, &vlan(&typed(0x8100, &vlan(&typed(0x86dd, &v6)))));
    let pppoe = ethernet(0x8864, &[&[0x11, 0, 0, 1, 0, 9, 0x00, 0x21][..], &v4].concat());
    let sll = |kind: u16, bytes: &[u8]| [&[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0][..], &typed(kind, bytes)].concat();
    let sll2 = |kind: u16, bytes: &[u8]| [&typed(kind, &[0, 0, 0, 0, 0, 5, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0])[..], bytes].concat();
    let family = |number: [u8; 4], bytes: &[u8]| [&number[..], bytes].concat();
    let cases = [
        (1, ethernet(0x0800, &v4)),
        (1, ethernet(0x86dd, &v6)),
        (1, ethernet(0x8100, &vlan(&typed(0x0800, &v4)))),
        (1, qinq),
        (1, pppoe),
        (113, sll(0x0800, &v4)),
        (113, sll(0x8100, &vlan(&typed(0x86dd, &v6)))),
        (276, sll2(0x86dd, &v6)),
        (12, v4.clone()),
        (14, v6.clone()),
        (101, v6.clone()),
        (228, v4.clone()),
        (229, v6.clone()),
        (0, family([2, 0, 0, 0], &v4)),
        (0, family([0, 0, 0, 30], &v6)),
        (108, family([0, 0, 0, 2], &v4)),
        (0x0400_0001, ethernet(0x0800, &v4)), // with a frame check sequence, as the highest bits say
    ];
    for (link, bytes) in cases {
        let p = only(&pcap(Order::Little, MICRO, link, &[kept(1, bytes)]));
        assert_eq!((p.seq, p.len, p.from.port), (1, 100, 40_000), "link type {link}");
    }
    let none = [(1, ethernet(0x0806, &[0; 40])), (113, sll(0x0806, &[0; 40])), (0, family([0, 0, 0, 7], &v4)), (101, vec![0x50; 40])];
    for (link, bytes) in none {
        assert_eq!(skipped(&pcap(Order::Little, MICRO, link, &[kept(1, bytes)])), BTreeMap::from([("not_ip", 1)]), "link type {link}");
    }
}

/// Linux's second header of `any` names the interface, so a forwarded packet is on two.
#[test]
fn a_capture_on_any_tells_its_interfaces_apart() {
    let on = |index: u8| [&[0x08, 0x00, 0, 0, 0, 0, 0, index, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0][..], &segment(1)].concat();
    let (packets, _) = read(&pcap(Order::Little, MICRO, 276, &[kept(1, on(2)), kept(2, on(3)), kept(3, on(2))]));
    let interfaces: Vec<u32> = packets.iter().map(|p| p.interface).collect();
    assert!(interfaces[0] == interfaces[2] && interfaces[0] != interfaces[1], "{interfaces:?}");
}

#[test]
fn padding_is_no_payload_and_a_length_of_zero_is_that_of_the_frame() {
    let short = ipv4(&tcp(1, 2, &[]), &[]);
    let mut padded = ethernet(0x0800, &short);
    padded.resize(60, 0);
    assert_eq!(only(&pcap(Order::Little, MICRO, 1, &[kept(1, padded)])).len, 0);

    let mut offloaded = ethernet(0x0800, &ipv4(&tcp(1, 2, &[]), &[1; 60_000]));
    offloaded[16..18].fill(0);
    let (packets, report) = read(&pcap(Order::Little, MICRO, 1, &[cut(1, offloaded, 96)]));
    assert_eq!((packets[0].len, packets[0].size, report.without_length), (60_000, 60_040, 1));

    // IPv6 of more than 64 KiB (RFC 2675): a length of 0, and hop-by-hop options with the jumbo payload.
    let jumbo = [6, 0, 0xc2, 4, 0, 1, 0x11, 0x78];
    let mut large = ipv6(&tcp(1, 2, &[]), 0, &jumbo, &[0; 50]);
    large[4..6].fill(0);
    let p = Kept { units: 1, original: 40 + 8 + 20 + 70_000, bytes: large };
    assert_eq!(only(&pcap(Order::Little, MICRO, 101, &[p])).len, 70_000);
}

#[test]
fn extension_headers_lead_to_tcp() {
    let (hop, destination) = ([60, 0, 1, 4, 0, 0, 0, 0], [6, 0, 1, 4, 0, 0, 0, 0]);
    let p = only(&pcap(Order::Little, MICRO, 229, &[kept(1, ipv6(&tcp(1, 2, &[]), 0, &[hop, destination].concat(), &[0; 33]))]));
    assert_eq!((p.len, p.ttl, p.ecn, p.id, p.from.address.to_string()), (33, 61, Ecn::Ce, 0, "2001:db8::1".to_owned()));
    let udp = ipv6(&tcp(1, 2, &[]), 0, &[17, 0, 1, 4, 0, 0, 0, 0], &[0; 33]);
    assert_eq!(skipped(&pcap(Order::Little, MICRO, 229, &[kept(1, udp)])), BTreeMap::from([("not_tcp", 1)]));
}

#[test]
fn of_fragments_the_first_is_read() {
    let mut first = segment(1);
    first[6] = 0x20; // more fragments
    let mut later = segment(1);
    later[7] = 10;
    #[allow(clippy::precedence)]
    let six = |offset: u8, more: u8| kept(1, ipv6(&tcp(1, 2, &[]), 44, &[6, 0, 0, offset << 3 | more, 0, 0, 0, 1], &[0; 10]));
    let (packets, report) = read(&pcap(Order::Little, MICRO, 101, &[kept(1, first), kept(1, later), six(0, 1), six(5, 1), six(0, 0)]));
    assert_eq!((packets.len(), report.fragmented, &report.skipped), (3, 2, &BTreeMap::from([("fragment", 2)])));
    assert!(report.notes[0].ends_with("the first of each was read: 4."), "{:?}", report.notes);
}

#[test]
fn options_of_a_handshake_and_of_an_ack() {
    let mut syn = tcp(1, 0, &[MaximumSegmentSize(1_460), SelectiveAcknowledgementPermitted, Timestamp(41, 0), Noop, WindowScale(9)]);
    (syn.syn, syn.ack) = (true, false);
    let p = only(&pcap(Order::Little, MICRO, 101, &[kept(1, ipv4(&syn, &[]))]));
    assert_eq!(
        (p.flags, p.ack, p.options.mss, p.options.window_scale, p.options.sack_permitted),
        (Flags::SYN, 0, Some(1_460), Some(9), true)
    );

    let blocks = [Some((30, 40)), Some((50, 60)), Some((70, 80))];
    let p = only(&pcap(Order::Little, MICRO, 101, &[kept(1, ipv4(&tcp(1, 2, &[SelectiveAcknowledgement((10, 20), blocks)]), &[]))]));
    assert_eq!((p.options.block_count, p.options.blocks), (4, [(10, 20), (30, 40), (50, 60), (70, 80)]));

    // Options that nobody reads here (MPTCP, accurate ECN) do not hide those after them.
    let mut other = tcp(1, 2, &[]);
    other.set_options_raw(&[30, 4, 0, 0, 172, 5, 1, 2, 3, 8, 10, 0, 0, 0, 7, 0, 0, 0, 8, 0]).expect("options that fit");
    other.ns = true;
    let p = only(&pcap(Order::Little, MICRO, 101, &[kept(1, ipv4(&other, &[]))]));
    assert_eq!((p.options.timestamps, p.flags), (Some((7, 8)), Flags::ACK.with(Flags::AE)));
}

#[test]
fn a_snap_length_cuts_options_or_headers() {
    let ack = ipv4(&tcp(1, 2, &[Noop, Noop, Timestamp(5, 6), Noop, Noop, SelectiveAcknowledgement((10, 20), [None; 3])]), &[]);
    for (snap, timestamps, blocks, is_cut) in
        [(64, Some((5, 6)), 1, false), (60, Some((5, 6)), 0, true), (45, None, 0, true), (36, None, 0, true)]
    {
        let p = only(&pcap(Order::Little, MICRO, 101, &[cut(1, ack.clone(), snap)]));
        assert_eq!(
            (p.options.timestamps, p.options.block_count, p.options.is_cut, p.len),
            (timestamps, blocks, is_cut, 0),
            "snap length {snap}"
        );
    }
    // Of blocks that are cut, the whole ones are read: the first is what came last.
    let blocks = [Some((30, 40)), Some((50, 60)), None];
    let three = ipv4(&tcp(1, 2, &[Noop, Noop, Timestamp(5, 6), Noop, Noop, SelectiveAcknowledgement((10, 20), blocks)]), &[]);
    for (snap, count, is_cut) in [(80, 3, false), (76, 2, true), (64, 1, true), (63, 0, true)] {
        let p = only(&pcap(Order::Little, MICRO, 101, &[cut(1, three.clone(), snap)]));
        assert_eq!((p.options.timestamps, p.options.block_count, p.options.is_cut), (Some((5, 6)), count, is_cut), "snap length {snap}");
        assert!(count == 0 || p.options.blocks[0] == (10, 20));
    }
    for snap in [0, 10, 19, 20, 35] {
        let (packets, report) = read(&pcap(Order::Little, MICRO, 101, &[cut(1, ack.clone(), snap)]));
        assert_eq!((packets.len(), report.skipped), (0, BTreeMap::from([("cut", 1)])), "snap length {snap}");
    }
}

#[test]
fn lengths_that_contradict_each_other_are_damage() {
    let mut offset = segment(1);
    offset[32] = 0x10; // a TCP header of 4 bytes
    let mut beyond = ipv4(&tcp(1, 2, &[]), &[]);
    beyond[32] = 0xf0; // one that is longer than the packet
    let mut header = segment(1);
    header[0] = 0x43; // an IP header of 12 bytes
    let mut small = segment(1);
    small[2..4].copy_from_slice(&[0, 15]); // an IP packet shorter than its header
    for bytes in [offset, beyond, header, small] {
        assert_eq!(skipped(&pcap(Order::Little, MICRO, 101, &[kept(1, bytes)])), BTreeMap::from([("damaged", 1)]));
    }
    // Options with a length of 0 or beyond the header: the rest of them is unknown.
    for raw in [[8, 0, 1, 1], [8, 10, 1, 1], [1, 1, 1, 8]] {
        let mut header = tcp(1, 2, &[]);
        header.set_options_raw(&raw).expect("options that fit");
        assert_eq!(only(&pcap(Order::Little, MICRO, 101, &[kept(1, ipv4(&header, &[]))])).options.timestamps, None);
    }
}

/// A clock that is set back 5 s once, and packets that came 1 ms late.
#[test]
fn time_never_runs_backwards() {
    let at = [10_000_000, 10_020_000, 10_019_000, 10_030_000, 5_030_000, 5_040_000, 6_000_000];
    let packets: Vec<Kept> = at.iter().map(|&t| kept(t, segment(1))).collect();
    let (packets, report) = read(&pcap(Order::Little, MICRO, 101, &packets));
    let ms: Vec<u64> = packets.iter().map(|p| p.at.0 / 1_000_000).collect();
    assert_eq!(ms, [10_000, 10_020, 10_020, 10_030, 10_030, 10_040, 11_000]);
    assert_eq!((report.clock_steps.count, report.clock_steps.longest_ns, report.clock_steps.disordered), (1, 5_000_000_000, 1));
    assert!(report.notes[0].starts_with("The capture's clock was set back once, by up to 5.000 s"), "{:?}", report.notes);
}

#[test]
fn what_ends_early_gives_what_came_before() {
    let packets: Vec<Kept> = (0..3).map(|i| kept(US, segment(i))).collect();
    let ng: Vec<u8> = [section(Order::Little), interface(Order::Little, 101, None, 0)].concat();
    let ng = packets.iter().fold(ng, |file, p| [file, enhanced(Order::Little, 0, p)].concat());
    for file in [pcap(Order::Little, MICRO, 101, &packets), ng] {
        for missing in [1, 50, 150] {
            let (packets, report) = read(&file[..file.len() - missing]);
            assert_eq!((packets.len(), report.is_whole), (2, false));
            assert!(report.notes[0].contains("ends in the middle of a record, after frame 2"), "{:?}", report.notes);
        }
    }
    // A header alone is a capture without packets.
    assert_eq!(read(&pcap(Order::Little, MICRO, 101, &[])).1.frames, 0);
}

#[test]
fn damage_ends_the_reading_and_is_told() {
    let l = Order::Little;
    let begin = [section(l), interface(l, 101, None, 0), enhanced(l, 0, &kept(1, segment(1)))].concat();
    let mut other_length = enhanced(l, 0, &kept(1, segment(1)));
    let last = other_length.len() - 4;
    other_length[last] ^= 4;
    let mut claims = enhanced(l, 0, &kept(1, segment(1)));
    claims[20..24].copy_from_slice(&[0xff, 0xff, 0, 0]);
    let damaged: [(Vec<u8>, &str); 7] = [
        (enhanced(l, 4, &kept(1, segment(1))), "names interface 4"),
        (other_length, "two lengths of a block differ"),
        (claims, "claims more bytes than its block has"),
        ([&l.u32(6)[..], &l.u32(0xffff_fff0), &[0; 20]].concat(), "claims 4294967280 bytes"),
        ([&l.u32(6)[..], &l.u32(8), &[0; 20]].concat(), "which no block has"),
        ([&l.u32(6)[..], &l.u32(33), &[0; 40]].concat(), "which no block has"),
        (interface(l, 101, Some(0xff), 0), "resolution of 255"),
    ];
    for (damage, why) in damaged {
        let (packets, report) = read(&[&begin[..], &damage, &begin].concat());
        assert_eq!((packets.len(), report.is_whole), (1, false), "{why}");
        assert!(report.notes[0].contains(why) && report.notes[0].contains("after frame 1"), "{:?}", report.notes);
    }
    let file = [pcap(Order::Big, MICRO, 101, &[kept(1, segment(1))]), vec![0xff; 100]].concat();
    assert!(read(&file).1.notes[0].contains("a record claims 4294967295 bytes"));
}

/// An unknown block of 4 GB is passed over without being held, however it comes.
#[test]
fn unknown_blocks_are_passed_over() {
    let l = Order::Little;
    let mut reader = tcpscape_capture::read::Reader::new();
    let mut count = 0;
    let length = 0xffff_fff0_u32;
    reader
        .feed(&[section(l), interface(l, 101, None, 0), l.u32(0xbad).to_vec(), l.u32(length).to_vec()].concat(), &mut |_| count += 1)
        .unwrap();
    let chunk = vec![0; 1 << 24];
    let mut rest = u64::from(length) - 8;
    while rest > 0 {
        let n = rest.min(chunk.len() as u64);
        reader.feed(&chunk[..n as usize], &mut |_| count += 1).unwrap();
        rest -= n;
    }
    reader.feed(&enhanced(l, 0, &kept(1, segment(1))), &mut |_| count += 1).unwrap();
    let report = reader.finish().unwrap();
    assert_eq!((count, report.is_whole), (1, true), "{report:?}");
}

#[test]
fn what_is_no_capture_is_said() {
    let cases: [(&[u8], &str); 9] = [
        (b"", "is empty; capture again"),
        (b"ab", "is too short"),
        (b"{\"log\": {\"version\": \"1.2\"}}", "is JSON, not a capture; give the packets"),
        (b"12:00:00.1 IP 10.0.0.1 > 10.0.0.2: Flags [S]", "is text, not a capture"),
        (b"snoop\0\0\0\0\0\0\x02", "editcap FILE out.pcapng"),
        (b"PK\x03\x04....", "is a zip archive"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "is neither pcap nor pcapng"),
        (&[0; 100], "is neither pcap nor pcapng"),
        (b"\x0a\x0d\x0d\x0a", "is too short"),
    ];
    for (bytes, said) in cases {
        let refusal = read_in(bytes, usize::MAX).expect_err("no capture").to_string();
        assert!(refusal.contains(said), "{refusal}");
    }
}

#[test]
fn link_types_that_are_not_read_are_named() {
    let refusal = read_in(&pcap(Order::Little, MICRO, 127, &[kept(1, vec![0; 100])]), 64).expect_err("Wi-Fi").to_string();
    assert!(
        refusal.starts_with(
            "its packets have the link type 127 (Wi-Fi with radiotap headers), which is not read; capture without monitor mode"
        ),
        "{refusal}"
    );
    let l = Order::Little;
    let both = [
        section(l),
        interface(l, 127, None, 0),
        interface(l, 101, None, 0),
        enhanced(l, 0, &kept(1, segment(1))),
        enhanced(l, 1, &kept(1, segment(1))),
    ];
    let (packets, report) = read(&both.concat());
    assert_eq!((packets.len(), &report.skipped), (1, &BTreeMap::from([("link_type", 1)])));
}
