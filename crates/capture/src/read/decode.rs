//! A record → a TCP packet: the link's header is taken off by `link.rs`, IP's and TCP's here.
//!
//! Source: RFC 791, RFC 8200 (extension headers), RFC 2675 (IPv6 packets of more than 64 KiB); RFC 9293 §3.1 and §3.2, RFC 7323 (window scale,
//! timestamps), RFC 2018 (SACK), RFC 9768 (the ninth flag). IP headers are taken apart by the crate `etherparse`.

use super::record::Record;
use super::Skipped;
use crate::packet::{Endpoint, Options, Packet, MOST_BLOCKS};
use etherparse::{Ipv4HeaderSlice, Ipv6HeaderSlice};
use std::collections::HashMap;
use std::net::IpAddr;
use tcpscape_base::{wire, Ecn, Flags};

/// Makes packets of records.
#[derive(Debug, Default)]
pub struct Decoder {
    /// First fragments.
    pub fragmented: u64,
    /// IP packets whose length field was 0.
    pub without_length: u64,
    /// Interfaces of a capture on `any`: those of the file and the one that each packet names → number.
    named: HashMap<(u32, u32), u32>,
}

impl Decoder {
    /// The packet in record number `frame`.
    #[inline]
    pub fn packet(&mut self, frame: u64, record: &Record<'_>) -> Result<Packet, Skipped> {
        let (payload, named) = record.link.payload(record.bytes)?;
        let header = (record.bytes.len() - payload.len()) as u32;
        let ip = read_ip(payload, record.original.saturating_sub(header))?;
        let tcp = read_tcp(ip.tcp, ip.rest)?;
        let at = record.at.ok_or(Skipped::NoTime)?;
        self.fragmented += u64::from(ip.is_fragment);
        self.without_length += u64::from(ip.without_length);
        Ok(Packet {
            frame,
            at,
            from: Endpoint { address: ip.from, port: tcp.ports[0] },
            to: Endpoint { address: ip.to, port: tcp.ports[1] },
            interface: named.map_or(record.interface, |n| self.number(record.interface, n)),
            seq: tcp.seq,
            ack: tcp.ack,
            len: tcp.len,
            flags: tcp.flags,
            window: tcp.window,
            ecn: ip.ecn,
            ttl: ip.ttl,
            id: ip.id,
            size: ip.size,
            options: tcp.options,
        })
    }

    /// A number for an interface that packets name, apart from those of the file.
    fn number(&mut self, interface: u32, named: u32) -> u32 {
        let next = NAMED + self.named.len() as u32;
        if self.named.len() == MOST_NAMED {
            return self.named.get(&(interface, named)).copied().unwrap_or(interface);
        }
        *self.named.entry((interface, named)).or_insert(next)
    }
}

/// Numbers of interfaces that packets name begin here.
const NAMED: u32 = 1 << 24;
/// Most of them; packets of others keep the number of the capture's interface.
const MOST_NAMED: usize = 1 << 12;

/// An IP packet with TCP in it.
#[derive(Debug)]
pub struct Ip<'a> {
    /// From whom.
    pub from: IpAddr,
    /// To whom.
    pub to: IpAddr,
    /// Code point.
    pub ecn: Ecn,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Identification; 0 for IPv6.
    pub id: u16,
    /// Bytes of the packet.
    pub size: u32,
    /// Bytes of TCP header and payload.
    pub rest: u32,
    /// Those of them that were captured.
    pub tcp: &'a [u8],
    /// Whether more fragments follow.
    pub is_fragment: bool,
    /// Whether its length field was 0.
    pub without_length: bool,
}

/// Reads an IP packet that had `original` bytes, padding of the link included.
#[inline]
pub fn read_ip(bytes: &[u8], original: u32) -> Result<Ip<'_>, Skipped> {
    match bytes.first().ok_or(Skipped::Cut)? >> 4 {
        4 => version_4(bytes, original),
        6 => version_6(bytes, original),
        _ => Err(Skipped::NotIp),
    }
}

#[inline]
fn version_4(bytes: &[u8], original: u32) -> Result<Ip<'_>, Skipped> {
    if bytes.len() < 20 {
        return Err(Skipped::Cut);
    }
    let protocol = bytes[9];
    let header = Ipv4HeaderSlice::from_slice(bytes).map_err(|_| if bytes[0] & 15 < 5 { Skipped::Damaged } else { Skipped::Cut })?;
    if protocol != TCP {
        return Err(Skipped::NotTcp);
    }
    if header.fragments_offset().value() != 0 {
        return Err(Skipped::Fragment);
    }
    // The card's driver fills in the length of what it segments: until then it is 0.
    let size = if header.total_len() == 0 { original } else { u32::from(header.total_len()) };
    let length = header.slice().len();
    Ok(Ip {
        from: IpAddr::V4(header.source_addr()),
        to: IpAddr::V4(header.destination_addr()),
        ecn: Ecn::of_bits(header.ecn().value()),
        ttl: header.ttl(),
        id: header.identification(),
        size,
        rest: size.checked_sub(length as u32).ok_or(Skipped::Damaged)?,
        tcp: within(&bytes[length..], size - length as u32),
        is_fragment: header.more_fragments(),
        without_length: header.total_len() == 0,
    })
}

#[inline]
fn version_6(bytes: &[u8], original: u32) -> Result<Ip<'_>, Skipped> {
    let header = Ipv6HeaderSlice::from_slice(bytes).map_err(|_| Skipped::Cut)?;
    let payload =
        if header.payload_length() == 0 { original.checked_sub(40).ok_or(Skipped::Damaged)? } else { u32::from(header.payload_length()) };
    let after = within(&bytes[40..], payload);
    let (tcp, is_fragment) = if header.next_header().0 == TCP { (after, false) } else { extensions(header.next_header().0, after)? };
    Ok(Ip {
        from: IpAddr::V6(header.source_addr()),
        to: IpAddr::V6(header.destination_addr()),
        ecn: Ecn::of_bits(header.traffic_class()),
        ttl: header.hop_limit(),
        id: 0,
        size: payload + 40,
        rest: payload - (after.len() - tcp.len()) as u32,
        tcp,
        is_fragment,
        without_length: header.payload_length() == 0,
    })
}

/// What follows the extension headers, and whether it is a first fragment. RFC 8200 §4, RFC 4302 §2 (authentication)
///
/// Not by `etherparse`: of damaged headers its version 0.16 reads beyond their end, and it takes a fragment's fields from other bits.
fn extensions(first: u8, mut bytes: &[u8]) -> Result<(&[u8], bool), Skipped> {
    let (mut next, mut is_fragment) = (first, false);
    for _ in 0..MOST_EXTENSIONS {
        let header = bytes.first_chunk::<8>();
        let length = match (next, header) {
            (TCP, _) => return Ok((bytes, is_fragment)),
            (HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY, Some(h)) => 8 + 8 * usize::from(h[1]),
            (AUTHENTICATION, Some(h)) => 8 + 4 * usize::from(h[1]),
            (FRAGMENT, Some(h)) => {
                // 13 bits of offset, two reserved, and M.
                let field = u16::from_be_bytes([h[2], h[3]]);
                if field >> 3 != 0 {
                    return Err(if h[0] == TCP { Skipped::Fragment } else { Skipped::NotTcp });
                }
                is_fragment = field & 1 != 0;
                8
            }
            (HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY | AUTHENTICATION | FRAGMENT, None) => return Err(Skipped::Cut),
            _ => return Err(Skipped::NotTcp),
        };
        next = header.map_or(0, |h| h[0]);
        bytes = bytes.get(length..).ok_or(Skipped::Cut)?;
    }
    Err(Skipped::NotTcp)
}

/// Numbers of extension headers and of TCP (IANA's protocol numbers).
const HOP_BY_HOP: u8 = 0;
const TCP: u8 = 6;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
/// Most extension headers of a packet.
const MOST_EXTENSIONS: usize = 16;

/// Without the padding of short frames.
fn within(bytes: &[u8], length: u32) -> &[u8] {
    &bytes[..bytes.len().min(length as usize)]
}

/// What a TCP header says.
#[derive(Debug)]
struct Header {
    /// Ports of source and destination.
    ports: [u16; 2],
    /// Sequence number.
    seq: u32,
    /// Acknowledgement number; 0 without the ACK flag.
    ack: u32,
    /// Flags.
    flags: Flags,
    /// Window field.
    window: u16,
    /// Bytes of payload.
    len: u32,
    /// Options.
    options: Options,
}

/// Bytes without which a header is of no use: up to the window.
const LEAST: usize = 16;
/// Bytes without options.
const FIXED: usize = 20;
/// Largest shift of a window (RFC 7323 §2.3).
const LARGEST_SHIFT: u8 = 14;

/// Reads the header at the begin of a segment of `total` bytes.
#[inline]
fn read_tcp(bytes: &[u8], total: u32) -> Result<Header, Skipped> {
    let Some(fixed) = bytes.first_chunk::<LEAST>() else {
        return Err(if (total as usize) < FIXED { Skipped::Damaged } else { Skipped::Cut });
    };
    let word = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let length = usize::from(fixed[12] >> 4) * 4;
    let len = total.checked_sub(length as u32).filter(|_| length >= FIXED).ok_or(Skipped::Damaged)?;
    let flags = Flags((fixed[13] & !Flags::AE.0) | ((fixed[12] & 1) * Flags::AE.0));
    let known = bytes.get(FIXED..length.min(bytes.len())).unwrap_or_default();
    let mut options = read_options(known, flags.has(Flags::SYN));
    options.is_cut |= bytes.len() < length;
    if options.is_cut && options.block_count == 0 {
        read_cut_blocks(known, &mut options);
    }
    Ok(Header {
        ports: [half(0), half(2)],
        seq: word(4),
        ack: if flags.has(Flags::ACK) { word(8) } else { 0 },
        flags,
        window: half(14),
        len,
        options,
    })
}

#[inline]
fn read_options(mut bytes: &[u8], is_syn: bool) -> Options {
    let mut options = Options::default();
    // What Linux writes on every segment after the handshake: NOP NOP timestamps.
    if let [1, 1, 8, 10, value @ ..] = bytes {
        if let Some((value, rest)) = value.split_first_chunk::<8>() {
            options.timestamps = Some((word(value, 0), word(value, 4)));
            bytes = rest;
        }
    }
    wire::options(bytes).for_each(|(kind, value)| read_option(kind, value, is_syn, &mut options));
    options
}

/// The whole blocks of a SACK option that the capture cut: the first one, which holds what came last (RFC 2018 §4), is nearly always there.
#[cold]
fn read_cut_blocks(mut bytes: &[u8], options: &mut Options) {
    loop {
        bytes = match *bytes {
            [1, ref rest @ ..] => rest,
            [5, _, ref edges @ ..] => return read_option(5, edges, false, options),
            [kind, length, ..] if kind > 1 && length >= 2 && usize::from(length) <= bytes.len() => &bytes[usize::from(length)..],
            _ => return,
        };
    }
}

fn read_option(kind: u8, value: &[u8], is_syn: bool, options: &mut Options) {
    match (kind, value) {
        (2, &[high, low]) if is_syn => options.mss = Some(u16::from_be_bytes([high, low])),
        (3, &[shift]) if is_syn => options.window_scale = Some(shift.min(LARGEST_SHIFT)),
        (4, []) if is_syn => options.sack_permitted = true,
        (5, edges) => {
            for (block, edges) in options.blocks.iter_mut().zip(edges.chunks_exact(8)) {
                *block = (word(edges, 0), word(edges, 4));
            }
            options.block_count = (edges.len() / 8).min(MOST_BLOCKS) as u8;
        }
        (8, value) if value.len() == 8 => options.timestamps = Some((word(value, 0), word(value, 4))),
        _ => {}
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
