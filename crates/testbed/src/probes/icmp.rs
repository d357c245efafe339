//! A probe's packets as bytes: a number, behind the header of an ICMP echo request where it is one.
//!
//! Source: RFC 792 (echo request and reply), RFC 1071 (checksum), raw(7): a raw socket gives what it receives with its IPv4 header.

use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use tcpscape_sim::ProbeKind;

/// Bytes of the header of an echo request.
const HEADER: usize = 8;
/// Types of messages.
const REQUEST: u8 = 8;
const REPLY: u8 = 0;
/// The identifier of the first probe.
const FIRST_ID: u16 = 0x7000;

/// A socket that sends ICMP and gets all that its host does.
pub fn socket() -> io::Result<Socket> {
    Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))
}

/// Bytes before the payload that the program writes itself.
pub fn header(kind: ProbeKind) -> usize {
    if kind == ProbeKind::IcmpEcho {
        HEADER
    } else {
        0
    }
}

/// Writes what packet `k` of probe `probe` says.
pub fn fill(packet: &mut [u8], kind: ProbeKind, probe: usize, k: u64) {
    let payload = header(kind);
    packet[payload..payload + 8].copy_from_slice(&k.to_be_bytes());
    if kind == ProbeKind::IcmpEcho {
        packet[..4].copy_from_slice(&[REQUEST, 0, 0, 0]);
        packet[4..6].copy_from_slice(&(FIRST_ID + probe as u16).to_be_bytes());
        packet[6..8].copy_from_slice(&(k as u16).to_be_bytes());
        let sum = checksum(packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The number of a packet that was received; None where it is not one of this probe.
pub fn number_of(packet: &[u8], kind: ProbeKind, probe: usize) -> Option<u64> {
    let mut message = packet;
    if kind == ProbeKind::IcmpEcho {
        let ip = usize::from(packet.first()? & 0x0f) * 4;
        message = packet.get(ip..)?;
        let id = u16::from_be_bytes(message.get(4..6)?.try_into().ok()?);
        if message[0] != REPLY || id != FIRST_ID + probe as u16 {
            return None;
        }
        message = message.get(HEADER..)?;
    }
    Some(u64::from_be_bytes(message.get(..8)?.try_into().ok()?))
}

/// The internet checksum of a message whose checksum is 0.
fn checksum(message: &[u8]) -> u16 {
    let words = message.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071 §3: 0001 f203 f4f5 f6f7 add up to ddf2.
    #[test]
    fn the_checksum_is_that_of_the_rfc() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(checksum(&[0xff, 0xff, 0x01]), !0x0100);
    }

    #[test]
    fn a_reply_is_known_by_its_type_and_its_probe() {
        let mut request = vec![0; HEADER + 10];
        fill(&mut request, ProbeKind::IcmpEcho, 3, 70_000);
        assert_eq!(checksum(&request), 0, "a message with its checksum adds up to nothing");
        let ip = [&[0x45][..], &[0; 19]].concat();
        let received = |kind: u8| [&ip[..], &[kind], &request[1..]].concat();
        assert_eq!(number_of(&received(REPLY), ProbeKind::IcmpEcho, 3), Some(70_000));
        assert_eq!(number_of(&received(REQUEST), ProbeKind::IcmpEcho, 3), None);
        assert_eq!(number_of(&received(REPLY), ProbeKind::IcmpEcho, 2), None);
        assert_eq!(number_of(&received(REPLY)[..30], ProbeKind::IcmpEcho, 3), None);
    }

    #[test]
    fn a_datagram_is_its_number_and_zeros() {
        let mut datagram = vec![0; 20];
        fill(&mut datagram, ProbeKind::Udp, 0, 258);
        assert_eq!(datagram[..10], [0, 0, 0, 0, 0, 0, 1, 2, 0, 0]);
        assert_eq!(number_of(&datagram, ProbeKind::Udp, 0), Some(258));
    }
}
