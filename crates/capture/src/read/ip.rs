//! IP packets: where TCP begins, and what the header says. Headers are taken apart by the crate `etherparse`.
//!
//! Source: RFC 791, RFC 8200 (extension headers), RFC 2675 (IPv6 packets of more than 64 KiB).

use super::Skipped;
use etherparse::{Ipv4HeaderSlice, Ipv6HeaderSlice};
use std::net::IpAddr;
use tcpscape_base::Ecn;

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
pub fn read(bytes: &[u8], original: u32) -> Result<Ip<'_>, Skipped> {
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
