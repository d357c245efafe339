//! tshark as the witness: it and the reader see the same packets in the same files.

mod support;

use etherparse::TcpOptionElement::{Noop, SelectiveAcknowledgement, Timestamp};
use std::path::Path;
use std::process::Command;
use support::*;
use tcpscape_base::Stream;
use tcpscape_capture::packet::Packet;

const FIELDS: [&str; 13] = [
    "frame.number",
    "tcp.srcport",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.len",
    "tcp.window_size_value",
    "tcp.flags",
    "tcp.options.timestamp.tsval",
    "tcp.options.timestamp.tsecr",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
    "ip.ttl",
    "frame.time_epoch",
];

/// What tshark says of every TCP packet, a row of fields each; None, with a line, where there is no tshark.
fn witness(file: &[u8], name: &str) -> Option<Vec<Vec<String>>> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, file).expect("a file");
    let mut command = Command::new("tshark");
    command.args(["-n", "-Y", "tcp", "-T", "fields", "-E", "occurrence=a", "-o", "tcp.relative_sequence_numbers:FALSE", "-r"]).arg(&path);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    match command.output() {
        Err(e) => {
            tcpscape_base::skip(format!("tshark cannot be run ({e})"));
            None
        }
        Ok(output) => {
            let text = String::from_utf8(output.stdout).expect("text");
            Some(text.lines().map(|l| l.split('\t').map(str::to_owned).collect()).collect())
        }
    }
}

/// A packet in tshark's words.
fn row(p: &Packet) -> Vec<String> {
    let blocks = &p.options.blocks[..usize::from(p.options.block_count)];
    let edges = |edge: fn(&(u32, u32)) -> u32| blocks.iter().map(|b| edge(b).to_string()).collect::<Vec<_>>().join(",");
    let stamp = |which: fn((u32, u32)) -> u32| p.options.timestamps.map(which).map_or(String::new(), |v| v.to_string());
    vec![
        p.frame.to_string(),
        p.from.port.to_string(),
        p.seq.to_string(),
        p.ack.to_string(),
        p.len.to_string(),
        p.window.to_string(),
        format!("0x{:04x}", p.flags.0),
        stamp(|t| t.0),
        stamp(|t| t.1),
        edges(|b| b.0),
        edges(|b| b.1),
        if p.from.address.is_ipv4() { p.ttl.to_string() } else { String::new() },
        format!("{}.{:09}", p.at.0 / 1_000_000_000, p.at.0 % 1_000_000_000),
    ]
}

/// Segments with and without options, over both versions of IP, whole and cut.
fn packets(seed: u64, layer: impl Fn(bool, &[u8]) -> Vec<u8>, units: impl Fn(u64) -> u64) -> Vec<Kept> {
    let mut random = Stream::new(seed, "tshark");
    let mut below = |n: u32| random.below(n);
    (0..300)
        .map(|i| {
            let edges = |k: u32| Some((10 * k, 10 * k + 5));
            let mut options = vec![];
            if below(4) > 0 {
                options.extend([Noop, Noop, Timestamp(below(u32::MAX), below(u32::MAX))]);
            }
            if below(2) == 0 {
                let more = below(3);
                let more = [1, 2].map(|k| (k <= more).then(|| edges(k)).flatten());
                options.extend([Noop, Noop, SelectiveAcknowledgement((7, 9), [more[0], more[1], None])]);
            }
            let mut header = tcp(below(u32::MAX), 1 + below(u32::MAX - 1), &options);
            (header.psh, header.fin, header.ece, header.cwr) = (below(2) == 0, below(9) == 0, below(5) == 0, below(9) == 0);
            header.window_size = below(65_536) as u16;
            let payload = vec![b'x'; below(1_400) as usize];
            let is_v6 = below(3) == 0;
            let ip = match below(3) {
                0 if is_v6 => ipv6(&header, 0, &[6, 0, 1, 4, 0, 0, 0, 0], &payload),
                _ if is_v6 => ipv6(&header, 6, &[], &payload),
                _ => ipv4(&header, &payload),
            };
            let bytes = layer(is_v6, &ip);
            let snap = if below(3) == 0 { 150 } else { 65_535 };
            cut(units(i), bytes, snap)
        })
        .collect()
}

fn agree(file: &[u8], name: &str) {
    let (seen, report) = read(file);
    assert_eq!((seen.len(), report.notes.len()), (300, 0), "{report:?}");
    let Some(rows) = witness(file, name) else { return };
    assert_eq!(rows.len(), seen.len());
    for (p, theirs) in seen.iter().zip(&rows) {
        assert_eq!(&row(p), theirs, "{name}");
    }
}

const SECOND: u64 = 1_700_000_000;

#[test]
fn pcap_with_ethernet_and_tags() {
    let tagged = |is_v6: bool, ip: &[u8]| {
        let kind: u16 = if is_v6 { 0x86dd } else { 0x0800 };
        ethernet(0x8100, &[&[0, 9][..], &kind.to_be_bytes(), ip].concat())
    };
    agree(&pcap(Order::Little, MICRO, 1, &packets(1, tagged, |i| SECOND * 1_000_000 + 333 * i)), "tags.pcap");
}

#[test]
fn big_endian_pcap_with_raw_ip() {
    agree(&pcap(Order::Big, NANO, 101, &packets(2, |_, ip| ip.to_vec(), |i| SECOND * 1_000_000_000 + 333 * i)), "raw.pcap");
}

#[test]
fn pcap_of_any() {
    let cooked = |is_v6: bool, ip: &[u8]| {
        let kind: u16 = if is_v6 { 0x86dd } else { 0x0800 };
        [&kind.to_be_bytes()[..], &[0, 0, 0, 0, 0, 5, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], ip].concat()
    };
    agree(&pcap(Order::Little, NANO, 276, &packets(3, cooked, |i| SECOND * 1_000_000_000 + 333 * i)), "any.pcap");
    let cooked = |is_v6: bool, ip: &[u8]| {
        let kind: u16 = if is_v6 { 0x86dd } else { 0x0800 };
        [&[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0][..], &kind.to_be_bytes(), ip].concat()
    };
    agree(&pcap(Order::Little, NANO, 113, &packets(4, cooked, |i| SECOND * 1_000_000_000 + 333 * i)), "any1.pcap");
}

/// Two sections in different orders; times in 2^-20 s and in 10^-8 s, with an offset.
#[test]
fn pcapng_with_sections_and_units() {
    let first = packets(5, |is_v6, ip| ethernet(if is_v6 { 0x86dd } else { 0x0800 }, ip), |i| (SECOND << 20) + 999 * i);
    let second = packets(6, |_, ip| ip.to_vec(), |i| SECOND * 100_000_000 + 999 * i);
    let mut file = [section(Order::Little), interface(Order::Little, 1, Some(0x80 | 20), 0)].concat();
    first[..150].iter().for_each(|p| file.extend(enhanced(Order::Little, 0, p)));
    file.extend([section(Order::Big), interface(Order::Big, 101, Some(8), 77)].concat());
    second[..150].iter().for_each(|p| file.extend(enhanced(Order::Big, 0, p)));
    agree(&file, "sections.pcapng");
}
