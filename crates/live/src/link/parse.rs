//! Where the parts of a packet are: Ethernet, IPv4 or IPv6, TCP or UDP.
//!
//! Source: RFC 791 §3.1, RFC 8200 §3, RFC 9293 §3.1, RFC 768. Offsets rather than values, since parts are rewritten in place; lengths are
//! those of the frame where IP's own length cannot say them (a super-packet above 64 KiB has length 0). What is not understood (ARP,
//! fragments, extension headers of IPv6, tunnels) stays a packet without parts. No bytes make it fail.

use tcpscape_base::Ecn;

/// Bytes of an Ethernet header.
pub const ETHERNET: usize = 14;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
/// IPv4's flag "more fragments" and the offset of a fragment.
const FRAGMENT: u16 = 0x3fff;
const PROTO_TCP: u8 = 6;
const PROTO_UDP: u8 = 17;

/// Version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// The protocol in an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Who sends to whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ends {
    /// Protocol number of IP.
    pub protocol: u8,
    /// Addresses, of IPv4 in the first four bytes: from, to.
    pub addresses: [[u8; 16]; 2],
    /// Ports: from, to; 0 where there are none.
    pub ports: [u16; 2],
}

/// The IP part of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// Version.
    pub version: Version,
    /// Where its header begins, from the packet's first byte.
    pub at: usize,
    /// Who sends to whom.
    pub ends: Ends,
    /// Its ECN field.
    pub ecn: Ecn,
    /// The protocol inside, where it is understood.
    pub inner: Option<Inner>,
}

/// The TCP or UDP part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inner {
    /// Protocol.
    pub transport: Transport,
    /// Where its header begins.
    pub at: usize,
    /// Where its payload begins.
    pub payload: usize,
}

/// Finds the parts of `packet`, which begins with an Ethernet header; `None` where it is no IP packet.
pub fn parse(packet: &[u8]) -> Option<Ip> {
    if ![ETHERTYPE_IPV4, ETHERTYPE_IPV6].contains(&word(packet, 12)?) {
        return None;
    }
    let ip = packet.get(ETHERNET..)?;
    match ip.first()? >> 4 {
        4 => v4(ETHERNET, ip),
        6 => v6(ETHERNET, ip),
        _ => None,
    }
}

fn v4(at: usize, ip: &[u8]) -> Option<Ip> {
    let header = usize::from(ip.first()? & 15) * 4;
    if header < IPV4_HEADER || ip.len() < header {
        return None;
    }
    let mut ends = Ends { protocol: ip[9], ..Ends::default() };
    ends.addresses[0][..4].copy_from_slice(&ip[12..16]);
    ends.addresses[1][..4].copy_from_slice(&ip[16..20]);
    let whole = word(ip, 6)? & FRAGMENT == 0;
    let inner = if whole { inner(ends.protocol, at + header, &ip[header..]) } else { None };
    Some(with_ports(Ip { version: Version::V4, at, ends, ecn: Ecn::of_bits(ip[1]), inner }, &ip[header..]))
}

fn v6(at: usize, ip: &[u8]) -> Option<Ip> {
    let (header, rest) = ip.split_first_chunk::<IPV6_HEADER>()?;
    let mut ends = Ends { protocol: header[6], ..Ends::default() };
    ends.addresses[0].copy_from_slice(&header[8..24]);
    ends.addresses[1].copy_from_slice(&header[24..40]);
    let inner = inner(ends.protocol, at + IPV6_HEADER, rest);
    Some(with_ports(Ip { version: Version::V6, at, ends, ecn: Ecn::of_bits(header[1] >> 4), inner }, rest))
}

/// The transport header at `at`, whose bytes and those behind it are `bytes`.
fn inner(protocol: u8, at: usize, bytes: &[u8]) -> Option<Inner> {
    let (transport, header) = match protocol {
        PROTO_TCP => (Transport::Tcp, usize::from(bytes.get(12)? >> 4) * 4),
        PROTO_UDP => (Transport::Udp, UDP_HEADER),
        _ => return None,
    };
    let least = if transport == Transport::Tcp { TCP_HEADER } else { UDP_HEADER };
    (header >= least && bytes.len() >= header).then_some(Inner { transport, at, payload: at + header })
}

fn with_ports(mut ip: Ip, bytes: &[u8]) -> Ip {
    if let (Some(_), Some(from), Some(to)) = (ip.inner, word(bytes, 0), word(bytes, 2)) {
        ip.ends.ports = [from, to];
    }
    ip
}

/// Two bytes as a number, where there are two.
#[inline]
pub fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}
