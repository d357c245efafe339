//! Frames as a kernel gives them, virtio_net_hdr and packet, built by etherparse; and frames read back by it.

use super::super::header::{VnetHeader, NEEDS_CSUM, VNET_HEADER};
use etherparse::checksum::Sum16BitWords;
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TcpHeader, TransportSlice};

/// What payloads repeat.
const PATTERN: [u8; 251] = {
    let mut bytes = [0; 251];
    let mut i = 0;
    while i < bytes.len() {
        bytes[i] = i as u8;
        i += 1;
    }
    bytes
};

/// A question of ARP behind an empty header.
pub const ETHERNET_ARP: [u8; 52] = {
    let mut f = [0; 52];
    f[VNET_HEADER + 12] = 8;
    f[VNET_HEADER + 13] = 6;
    f
};

/// What to build: TCP or UDP over IPv4 or IPv6, over Ethernet or nothing.
#[derive(Clone, Debug)]
pub struct Build {
    /// IPv6 in the place of IPv4.
    pub v6: bool,
    /// UDP in the place of TCP.
    pub udp: bool,
    /// From the receiver to the sender.
    pub back: bool,
    /// Bytes of payload.
    pub payload: usize,
    /// Payload of each segment of a super-packet; 0 is none.
    pub gso: u16,
    /// Whether the checksum is left to the device; of super-packets always.
    pub partial: bool,
    /// ECN field.
    pub ecn: u8,
    /// Ports.
    pub ports: (u16, u16),
    /// The TCP header.
    pub tcp: TcpHeader,
    /// IP identification.
    pub id: u16,
}

impl Default for Build {
    fn default() -> Build {
        let mut tcp = TcpHeader::new(0, 0, u32::MAX - 2_000, 64_000);
        (tcp.ack, tcp.acknowledgment_number) = (true, 77);
        tcp.set_options_raw(&[1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8]).expect("timestamps");
        let (ports, id) = ((40_000, 5_001), u16::MAX - 1);
        Build { v6: false, udp: false, back: false, payload: 100, gso: 0, partial: false, ecn: 0, ports, tcp, id }
    }
}

impl Build {
    /// A super-packet of full segments of an MTU of 1500.
    pub fn full(segments: usize) -> Build {
        Build { payload: 1_448 * segments, gso: 1_448, ..Build::default() }
    }

    /// The payload's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        PATTERN.repeat(self.payload.div_ceil(PATTERN.len()))[..self.payload].to_vec()
    }

    /// The frame.
    pub fn frame(&self) -> Vec<u8> {
        let mut packet = self.packet();
        let transport = 14 + if self.v6 { 40 } else { 20 };
        let mut header = VnetHeader::default();
        if self.partial || self.gso > 0 {
            let at = if self.udp { 6 } else { 16 };
            (header.flags, header.csum_start, header.csum_offset) = (NEEDS_CSUM, transport as u16, at as u16);
            let pseudo = self.pseudo(&packet[14..], packet.len() - transport);
            packet[transport + at..transport + at + 2].copy_from_slice(&pseudo.to_be_bytes());
        }
        if self.gso > 0 {
            let kind = if self.udp {
                5
            } else if self.v6 {
                4
            } else {
                1
            };
            header.gso_type = kind | if self.tcp.cwr { 0x80 } else { 0 };
            (header.gso_size, header.hdr_len) = (self.gso, (packet.len() - self.payload) as u16);
        }
        [&header.bytes()[..], &packet].concat()
    }

    fn packet(&self) -> Vec<u8> {
        let payload = self.bytes();
        let mut tcp = self.tcp.clone();
        (tcp.source_port, tcp.destination_port) = self.ports;
        let (from, to) = if self.back { (3, 2) } else { (2, 3) };
        let head = PacketBuilder::ethernet2([2, 0, 0, 0, 0, from], [2, 0, 0, 0, 0, to]);
        let head = if self.v6 { head.ipv6([from; 16], [to; 16], 64) } else { head.ipv4([10, 77, 1, from], [10, 77, 1, to], 64) };
        let mut out = Vec::new();
        if self.udp {
            head.udp(self.ports.0, self.ports.1).write(&mut out, &payload).expect("a packet");
        } else {
            head.tcp_header(tcp).write(&mut out, &payload).expect("a packet");
        }
        if self.v6 {
            out[15] |= self.ecn << 4;
        } else {
            out[15] |= self.ecn;
            out[18..20].copy_from_slice(&self.id.to_be_bytes());
            out[24..26].fill(0);
            let check = !sum(&out[14..34]);
            out[24..26].copy_from_slice(&check.to_be_bytes());
        }
        out
    }

    /// Sum of the pseudo-header, as a field that is still to be computed has it.
    fn pseudo(&self, ip: &[u8], length: usize) -> u16 {
        let mut b = if self.v6 { ip[8..40].to_vec() } else { ip[12..20].to_vec() };
        b.extend((length as u32).to_be_bytes());
        b.extend([0, if self.udp { 17 } else { 6 }]);
        sum(&b)
    }
}

/// The one's complement sum of RFC 1071, by another implementation than the link's.
fn sum(bytes: &[u8]) -> u16 {
    !u16::from_be(Sum16BitWords::new().add_slice(bytes).ones_complement())
}

/// A frame as a receiver reads it, with every length and checksum right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub header: VnetHeader,
    pub id: u16,
    pub ecn: u8,
    pub seq: u32,
    /// CWR, PSH, FIN.
    pub flags: (bool, bool, bool),
    pub payload: Vec<u8>,
}

/// Reads a frame back: a missing checksum is computed first. `None` where a receiver would refuse it.
pub fn read(frame: &[u8]) -> Option<Read> {
    let (header, packet) = VnetHeader::read(frame)?;
    let mut packet = packet.to_vec();
    if header.flags & NEEDS_CSUM != 0 {
        let start = usize::from(header.csum_start);
        let field = start + usize::from(header.csum_offset);
        let check = !sum(&packet[start..]);
        packet[field..field + 2].copy_from_slice(&check.to_be_bytes());
    }
    let p = SlicedPacket::from_ethernet(&packet).ok()?;
    let (id, ecn, end) = match p.net? {
        NetSlice::Ipv4(ip) => {
            let h = ip.header();
            // Over the bytes, as a kernel does: a flipped reserved bit counts.
            if sum(h.slice()) != 0xffff {
                return None;
            }
            (h.identification(), u8::from(h.ecn()), usize::from(h.total_len()))
        }
        NetSlice::Ipv6(ip) => (0, ip.header().traffic_class() & 3, 40 + usize::from(ip.header().payload_length())),
    };
    assert_eq!(end, packet.len() - 14, "IP's length is that of the frame");
    let v4 = packet[14] >> 4 == 4;
    let ip = &packet[14..];
    let addresses = |from: usize, to: usize| ip[from..to].to_vec();
    let b = if v4 { addresses(12, 20) } else { addresses(8, 40) };
    let transport = &ip[if v4 { 20 } else { 40 }..];
    let protocol = if v4 { ip[9] } else { ip[6] };
    let pseudo = [&b[..], &(transport.len() as u32).to_be_bytes(), &[0, protocol], transport].concat();
    if sum(&pseudo) != 0xffff {
        return None;
    }
    let (seq, flags, payload) = match p.transport? {
        TransportSlice::Tcp(t) => (t.sequence_number(), (t.cwr(), t.psh(), t.fin()), t.payload().to_vec()),
        TransportSlice::Udp(u) => {
            assert_eq!(usize::from(u.length()), transport.len(), "UDP's length is that of the frame");
            (0, (false, false, false), u.payload().to_vec())
        }
        _ => return None,
    };
    Some(Read { header, id, ecn, seq, flags, payload })
}
