//! The Internet checksum in headers.
//!
//! Source: RFC 768 (a UDP checksum of 0 is sent as 0xffff), RFC 8200 §8.1 and RFC 9293 §3.1
//! (pseudo-headers).

use super::header::VnetHeader;
use super::parse::{Ip, Version};
use tcpscape_base::wire::sum;

/// Sum of the pseudo-header for `length` bytes of transport header and payload: what the checksum field holds until the rest is computed.
pub fn pseudo(ip: &Ip, length: usize) -> u16 {
    let len = if ip.version == Version::V4 { 4 } else { 16 };
    let addresses = ip.ends.addresses.iter().fold(0, |s, a| sum(&a[..len], s));
    let [_, _, _, _, b @ ..] = (length as u64).to_be_bytes();
    sum(&[0, ip.ends.protocol], sum(&b, addresses))
}

/// Computes the transport checksum that `header` says is missing; false where its field lies outside of the packet.
pub fn complete(header: &VnetHeader, packet: &mut [u8]) -> bool {
    let start = usize::from(header.csum_start);
    let field = start + usize::from(header.csum_offset);
    if start >= packet.len() || field + 2 > packet.len() {
        return false;
    }
    let check = match !sum(&packet[start..], 0) {
        0 => 0xffff, // 0 would mean none in UDP; in TCP both are the same number
        check => check,
    };
    packet[field..field + 2].copy_from_slice(&check.to_be_bytes());
    true
}
