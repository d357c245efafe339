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
use super::Layer;
use tcpscape_base::{Ecn, Packet, Stream};

const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;
/// Where IPv6's addresses begin: what stands before them is covered by no checksum.
const IPV6_ADDRESSES: usize = 8;

/// Writes the bytes of `p` over `out`; false if its damage cannot be seen by the receiver, so that it is lost instead. A packet that leaves
/// as it came needs none of this: see [`untouched`].
pub(crate) fn write(p: &Packet<Cargo>, bits: &mut Stream, out: &mut Vec<u8>) -> bool {
    let frame = &*p.body.frame;
    out.clear();
    match (frame.cut, frame.ip, frame.ip.and_then(|ip| ip.inner)) {
        (Some(cut), Some(ip), Some(inner)) if !p.body.is_whole() => part(&p.body, cut, &ip, inner, out),
        _ => out.extend_from_slice(&frame.bytes),
    }
    if let (true, Some(ip)) = (newly_marked(p), &frame.ip) {
        mark(ip, &mut out[VNET_HEADER..]);
    }
    !p.corrupt || damage(frame, bits, out)
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
    let last = payload.end == frame.packet().len();
    let mut header = if cargo.count == 1 { frame.header.single() } else { frame.header };
    if cargo.first > 0 {
        header = header.later();
    }
    out.extend_from_slice(&header.bytes());
    out.extend_from_slice(&frame.packet()[..cut.headers]);
    out.extend_from_slice(&frame.packet()[payload.clone()]);
    let packet = &mut out[VNET_HEADER..];
    lengths(cargo, cut, ip, inner, packet);
    if inner.transport == Transport::Tcp {
        let tcp = &mut packet[inner.at..];
        let offset = u32::from(cargo.first) * cut.size as u32;
        let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(offset);
        tcp[4..8].copy_from_slice(&seq.to_be_bytes());
        if !last {
            tcp[13] &= !FIN_PSH;
        }
        if cargo.first > 0 && frame.header.signals_once() {
            tcp[13] &= !CWR;
        }
    }
}

/// Lengths, identification and checksums of a part. Several datagrams keep the length of all in UDP's header, as super-packets have it.
fn lengths(cargo: &Cargo, cut: Cut, ip: &Ip, inner: Inner, packet: &mut [u8]) {
    let length = packet.len() - inner.at;
    let put = |packet: &mut [u8], at: usize, value: usize| packet[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
    match ip.version {
        Version::V4 => {
            put(packet, ip.at + 2, packet.len() - ip.at);
            let first = word(packet, ip.at + 4).unwrap_or(0);
            put(packet, ip.at + 4, usize::from(first.wrapping_add(cargo.first)));
            put(packet, ip.at + 10, 0);
            let check = !checksum::sum(&packet[ip.at..inner.at], 0);
            put(packet, ip.at + 10, usize::from(check));
        }
        Version::V6 => put(packet, ip.at + 4, length),
    }
    if inner.transport == Transport::Udp {
        put(packet, inner.at + 4, length);
    }
    debug_assert_eq!(cut.headers, inner.payload);
    let field = usize::from(cargo.frame.header.csum_start) + usize::from(cargo.frame.header.csum_offset);
    if field + 2 <= packet.len() {
        put(packet, field, usize::from(checksum::pseudo(ip, length)));
    }
}

/// Sets CE; IPv4's checksum follows.
fn mark(ip: &Ip, packet: &mut [u8]) {
    match ip.version {
        Version::V4 => {
            let old = word(packet, ip.at).unwrap_or(0);
            packet[ip.at + 1] |= 3;
            let check = word(packet, ip.at + 10).unwrap_or(0);
            let check = checksum::changed(check, old, old | 3);
            packet[ip.at + 10..ip.at + 12].copy_from_slice(&check.to_be_bytes());
        }
        Version::V6 => packet[ip.at + 1] |= 3 << 4,
    }
}

/// Flips a bit behind the Ethernet header, after the checksum that was still missing.
fn damage(frame: &Frame, bits: &mut Stream, out: &mut [u8]) -> bool {
    let (header, packet) = out.split_at_mut(VNET_HEADER);
    let Some((read, _)) = VnetHeader::read(header) else { return false };
    if read.gso_size > 0 || read.needs_checksum() && !checksum::complete(&read, packet) {
        return false;
    }
    header.copy_from_slice(&read.summed().bytes());
    let from = match (&frame.ip, frame.layer) {
        (Some(ip), _) if ip.version == Version::V6 => ip.at + IPV6_ADDRESSES,
        (_, Layer::Ethernet) => ETHERNET.min(packet.len()),
        (_, Layer::Ip) => 0,
    };
    let room = packet.len() - from;
    if room == 0 {
        return false;
    }
    let place = from + bits.below(room as u32) as usize;
    packet[place] ^= 1 << bits.below(8);
    true
}
