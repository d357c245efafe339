//! A probe's packets as bytes: a number, behind the header of an ICMP echo request where it is one.
//!
//! Source: RFC 792 (echo request and reply), RFC 1071 (checksum), raw(7): a raw socket gives what it receives with its IPv4 header.

use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use tcpscape_base::wire::sum;
use tcpscape_plan::ProbeKind;

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
        let check = !sum(packet, 0);
        packet[2..4].copy_from_slice(&check.to_be_bytes());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_known_by_its_type_and_its_probe() {
        let mut request = vec![0; HEADER + 10];
        fill(&mut request, ProbeKind::IcmpEcho, 3, 70_000);
        assert_eq!(!sum(&request, 0), 0, "a message with its checksum adds up to nothing");
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
