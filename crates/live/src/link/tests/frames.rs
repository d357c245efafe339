//! Frames as a kernel gives them: virtio_net_hdr and packet, built by etherparse.

use super::super::header::{VnetHeader, VNET_HEADER};
use etherparse::{PacketBuilder, TcpHeader};

/// A question of ARP behind an empty header.
pub const ETHERNET_ARP: [u8; 52] = {
    let mut f = [0; 52];
    f[VNET_HEADER + 12] = 8;
    f[VNET_HEADER + 13] = 6;
    f
};

/// A TCP packet over IPv4 and Ethernet.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// IPv6 in the place of IPv4.
    pub v6: bool,
    /// Bytes of payload.
    pub payload: usize,
    /// MSS of a super-packet; 0 is none.
    pub gso: u16,
    /// ECN field.
    pub ecn: u8,
    /// Ports.
    pub ports: (u16, u16),
    /// The TCP header.
    pub tcp: TcpHeader,
    /// IP identification.
    pub id: u16,
}

impl Default for Tcp {
    fn default() -> Tcp {
        let mut tcp = TcpHeader::new(0, 0, 1_000, 64_000);
        tcp.ack = true;
        Tcp { v6: false, payload: 100, gso: 0, ecn: 0, ports: (40_000, 5_001), tcp, id: 7 }
    }
}

impl Tcp {
    /// Its bytes: the checksum is left to the device where it is a super-packet, and computed elsewhere.
    pub fn frame(&self) -> Vec<u8> {
        let payload: Vec<u8> = (0..self.payload).map(|i| (i * 7) as u8).collect();
        let mut tcp = self.tcp.clone();
        (tcp.source_port, tcp.destination_port) = self.ports;
        let head = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let head = if self.v6 { head.ipv6([1; 16], [2; 16], 64) } else { head.ipv4([10, 77, 1, 2], [10, 77, 1, 3], 64) };
        let mut packet = Vec::new();
        head.tcp_header(tcp).write(&mut packet, &payload).expect("a packet");
        let mut frame = VnetHeader::default().bytes().to_vec();
        frame.extend(packet);
        frame
    }
}
