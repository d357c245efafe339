//! Captures made in memory, in both formats and byte orders, and packets to put into them.
#![allow(dead_code, reason = "each test file uses a part of it")]

use etherparse::{IpNumber, Ipv4Header, Ipv6Header, PacketBuilder, TcpHeader, TcpOptionElement};
use tcpscape_capture::packet::Packet;
use tcpscape_capture::read::{ReadReport, Reader, Unreadable};

/// Numbers in one of the two byte orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Little,
    Big,
}

impl Order {
    pub fn u16(self, v: u16) -> [u8; 2] {
        if self == Order::Big {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        }
    }
    pub fn u32(self, v: u32) -> [u8; 4] {
        if self == Order::Big {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        }
    }
    pub fn u64(self, v: u64) -> [u8; 8] {
        if self == Order::Big {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        }
    }
}

/// A packet of a file: when, and its bytes of which the last may not be captured.
#[derive(Clone, Debug)]
pub struct Kept {
    pub units: u64,
    pub bytes: Vec<u8>,
    pub original: u32,
}

pub fn kept(units: u64, bytes: Vec<u8>) -> Kept {
    Kept { units, original: bytes.len() as u32, bytes }
}

/// Cut to a snap length.
pub fn cut(units: u64, mut bytes: Vec<u8>, snap: usize) -> Kept {
    let original = bytes.len() as u32;
    bytes.truncate(snap);
    Kept { units, bytes, original }
}

pub const MICRO: u32 = 0xa1b2_c3d4;
pub const NANO: u32 = 0xa1b2_3c4d;

/// A pcap file; times in units of the magic.
pub fn pcap(order: Order, magic: u32, link: u32, packets: &[Kept]) -> Vec<u8> {
    let per_second = if magic == NANO { 1_000_000_000 } else { 1_000_000 };
    let mut file = [&order.u32(magic)[..], &order.u16(2), &order.u16(4), &[0; 8], &order.u32(262_144), &order.u32(link)].concat();
    for p in packets {
        for v in [(p.units / per_second) as u32, (p.units % per_second) as u32, p.bytes.len() as u32, p.original] {
            file.extend(order.u32(v));
        }
        file.extend(&p.bytes);
    }
    file
}

pub fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let mut out = [&order.u16(code)[..], &order.u16(value.len() as u16), value].concat();
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = order.u32(body.len() as u32 + 12);
    [&order.u32(kind)[..], &length, &body, &length].concat()
}

pub fn section(order: Order) -> Vec<u8> {
    block(order, 0x0a0d_0d0a, &[&order.u32(0x1a2b_3c4d)[..], &order.u16(1), &order.u16(0), &[0xff; 8]].concat())
}

/// An interface with `if_tsresol` and `if_tsoffset`.
pub fn interface(order: Order, link: u16, resolution: Option<u8>, offset_s: i64) -> Vec<u8> {
    let mut body = [&order.u16(link)[..], &[0; 2], &order.u32(0)].concat();
    body.extend(option(order, 2, format!("if{link}").as_bytes()));
    if let Some(resolution) = resolution {
        body.extend(option(order, 9, &[resolution]));
    }
    if offset_s != 0 {
        body.extend(option(order, 14, &order.u64(offset_s as u64)));
    }
    body.extend([0; 4]);
    block(order, 1, &body)
}

pub fn enhanced(order: Order, interface: u32, p: &Kept) -> Vec<u8> {
    let mut body = [interface, (p.units >> 32) as u32, p.units as u32, p.bytes.len() as u32, p.original].map(|v| order.u32(v)).concat();
    body.extend(&p.bytes);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(option(order, 1, b"a comment"));
    body.extend([0; 4]);
    block(order, 6, &body)
}

/// A TCP header with options.
pub fn tcp(seq: u32, ack: u32, options: &[TcpOptionElement]) -> TcpHeader {
    let mut header = TcpHeader::new(40_000, 443, seq, 1_000);
    header.ack = true;
    header.acknowledgment_number = ack;
    header.set_options(options).expect("options that fit");
    header
}

/// The IPv4 packet of this segment: 192.0.2.1 → 192.0.2.2.
pub fn ipv4(header: &TcpHeader, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut ip = Ipv4Header::new(0, 57, IpNumber::TCP, [192, 0, 2, 1], [192, 0, 2, 2]).expect("a header");
    ip.identification = 77;
    PacketBuilder::ip(etherparse::IpHeaders::Ipv4(ip, etherparse::Ipv4Extensions::default()))
        .tcp_header(header.clone())
        .write(&mut out, payload)
        .expect("a packet");
    out
}

/// The IPv6 packet of this segment: 2001:db8::1 → 2001:db8::2, with extension headers as bytes that begin with number `first`.
pub fn ipv6(header: &TcpHeader, first: u8, extensions: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = (extensions.len() + header.header_len() + payload.len()) as u16;
    let ip = Ipv6Header {
        traffic_class: 0b0000_0011,
        payload_length: length,
        next_header: IpNumber(first),
        hop_limit: 61,
        source: [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        destination: [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2],
        ..Ipv6Header::default()
    };
    [&ip.to_bytes()[..], extensions, &header.to_bytes(), payload].concat()
}

/// An Ethernet frame of this type with what it carries.
pub fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &kind.to_be_bytes(), payload].concat()
}

/// The packets and the report of a file, fed in chunks of this size.
pub fn read_in(file: &[u8], chunk: usize) -> Result<(Vec<Packet>, ReadReport), Unreadable> {
    let mut packets = Vec::new();
    let mut reader = Reader::new();
    for part in file.chunks(chunk) {
        reader.feed(part, &mut |p| packets.push(*p))?;
    }
    reader.finish().map(|report| (packets, report))
}

pub fn read(file: &[u8]) -> (Vec<Packet>, ReadReport) {
    read_in(file, usize::MAX).expect("a capture")
}
