//! From segments of a frame to the bytes that leave: cut, marked, damaged.
//!
//! Source: RFC 791 and RFC 8200 (lengths, identification), RFC 9293 and RFC 3168 §6.1.2 (FIN and PSH with the last segment, CWR with the
//! first), tc-netem(8) (`corrupt` flips a random bit; the checksum is computed before, so that the receiver sees the damage).
//! How it differs: netem flips any bit of the first part, here one behind the Ethernet header that a checksum covers, so that each damaged
//! packet is refused as in the simulator.

use super::checksum;
use super::frame::{Cargo, Cut, Frame};
use super::header::{VnetHeader, VNET_HEADER};
use super::parse::{word, Inner, Ip, Transport, Version, ETHERNET};
use tcpscape_base::wire::{changed, sum};
use tcpscape_base::{Ecn, Packet, Stream};

const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;
/// Where IPv6's addresses begin: what stands before them is covered by no checksum.
const IPV6_ADDRESSES: usize = 8;

/// The bit of a packet that is flipped, counted from its first byte, eight to a byte.
pub(crate) type Bit = u32;

/// Writes the bytes of `cargo` over `out`, with a CE mark where it got one.
pub(crate) fn write(cargo: &Cargo, marked: bool, out: &mut Vec<u8>) {
    let frame = &*cargo.frame;
    out.clear();
    match (frame.cut, frame.ip, frame.ip.and_then(|ip| ip.inner)) {
        (Some(cut), Some(ip), Some(inner)) if !cargo.is_whole() => part(cargo, cut, &ip, inner, out),
        _ => out.extend_from_slice(&frame.bytes),
    }
    if let (true, Some(ip)) = (marked, &frame.ip) {
        mark(ip, &mut out[VNET_HEADER..]);
    }
}

/// Whether a packet leaves with the bytes with which it came.
#[inline]
pub(crate) fn untouched(p: &Packet<Cargo>) -> bool {
    p.body.is_whole() && !p.corrupt && p.ecn == p.body.frame.ecn()
}

/// Whether a packet got its CE mark on the path.
#[inline]
pub(crate) fn newly_marked(p: &Packet<Cargo>) -> bool {
    p.ecn == Ecn::Ce && p.body.frame.ecn() != Ecn::Ce
}

/// Some of a super-packet's segments, as a smaller super-packet or as a single packet.
fn part(cargo: &Cargo, cut: Cut, ip: &Ip, inner: Inner, out: &mut Vec<u8>) {
    let frame = &*cargo.frame;
    let payload = frame.payload(cargo.first, cargo.count);
    let mut header = if cargo.count == 1 { frame.header.single() } else { frame.header };
    if cargo.first > 0 {
        header = header.later();
    }
    if cargo.count > 1 {
        header.hdr_len = cut.headers as u16;
    }
    let packet = frame.packet();
    out.extend_from_slice(&header.bytes());
    out.extend_from_slice(&packet[..cut.headers]);
    // A capture may have kept the headers only.
    out.extend_from_slice(packet.get(payload.clone()).unwrap_or_default());
    let headers = &mut out[VNET_HEADER..VNET_HEADER + cut.headers];
    lengths(cargo, cut.headers + payload.len(), ip, inner, headers);
    if inner.transport == Transport::Tcp {
        let tcp = &mut headers[inner.at..];
        let offset = u32::from(cargo.first) * cut.size as u32;
        let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(offset);
        tcp[4..8].copy_from_slice(&seq.to_be_bytes());
        if payload.end < frame.len {
            tcp[13] &= !FIN_PSH;
        }
        if cargo.first > 0 && frame.header.signals_once() {
            tcp[13] &= !CWR;
        }
    }
}

/// Lengths, identification and checksums of a part of so many bytes. Several datagrams keep the length of all in UDP's header, as
/// super-packets have it.
fn lengths(cargo: &Cargo, bytes: usize, ip: &Ip, inner: Inner, headers: &mut [u8]) {
    let length = bytes - inner.at;
    let put = |headers: &mut [u8], at: usize, value: usize| headers[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
    match ip.version {
        Version::V4 => {
            put(headers, ip.at + 2, bytes - ip.at);
            let first = word(headers, ip.at + 4).unwrap_or(0);
            put(headers, ip.at + 4, usize::from(first.wrapping_add(cargo.first)));
            put(headers, ip.at + 10, 0);
            let check = !sum(&headers[ip.at..inner.at], 0);
            put(headers, ip.at + 10, usize::from(check));
        }
        Version::V6 => put(headers, ip.at + 4, length),
    }
    if inner.transport == Transport::Udp {
        put(headers, inner.at + 4, length);
    }
    let field = usize::from(cargo.frame.header.csum_start) + usize::from(cargo.frame.header.csum_offset);
    if field + 2 <= headers.len() {
        put(headers, field, usize::from(checksum::pseudo(ip, length)));
    }
}

/// Sets CE; IPv4's checksum follows.
fn mark(ip: &Ip, packet: &mut [u8]) {
    match ip.version {
        Version::V4 => {
            let old = word(packet, ip.at).unwrap_or(0);
            packet[ip.at + 1] |= 3;
            let check = word(packet, ip.at + 10).unwrap_or(0);
            let check = changed(check, old, old | 3);
            packet[ip.at + 10..ip.at + 12].copy_from_slice(&check.to_be_bytes());
        }
        Version::V6 => packet[ip.at + 1] |= 3 << 4,
    }
}

/// Flips a bit behind the Ethernet header of the packet in `out`, after the checksum that was still missing; `None` if the receiver could
/// not see it.
pub(crate) fn damage(frame: &Frame, bits: &mut Stream, out: &mut [u8]) -> Option<Bit> {
    if !complete(out) {
        return None;
    }
    let from = match &frame.ip {
        Some(ip) if ip.version == Version::V6 => ip.at + IPV6_ADDRESSES,
        _ => ETHERNET,
    };
    let room = out.len().checked_sub(VNET_HEADER + from).filter(|room| *room > 0)?;
    let bit = 8 * (from as u32 + bits.below(room as u32)) + bits.below(8);
    flip(bit, out);
    Some(bit)
}

/// Computes the checksum that is missing; false if it cannot be.
pub(crate) fn complete(out: &mut [u8]) -> bool {
    let (header, packet) = out.split_at_mut(VNET_HEADER);
    let Some((read, _)) = VnetHeader::read(header) else { return false };
    if read.gso_size > 0 || read.needs_checksum() && !checksum::complete(&read, packet) {
        return false;
    }
    header.copy_from_slice(&read.summed().bytes());
    true
}

/// Flips a bit of the packet in `out`, where it has so many.
pub(crate) fn flip(bit: Bit, out: &mut [u8]) {
    if let Some(byte) = out.get_mut(VNET_HEADER + bit as usize / 8) {
        *byte ^= 1 << (bit % 8);
    }
}
