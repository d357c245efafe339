//! The ten bytes before each packet that say what its checksums and its segmentation still need: `struct virtio_net_hdr`.
//!
//! Source: uapi linux/virtio_net.h, virtio 1.2 §5.1.6. Packet sockets (`PACKET_VNET_HDR`) give and take it in the
//! byte order of the machine.

/// Bytes of the header.
pub const VNET_HEADER: usize = 10;

/// The transport checksum is still to be computed, from `csum_start`, into `csum_start + csum_offset` (`VIRTIO_NET_HDR_F_NEEDS_CSUM`).
pub const NEEDS_CSUM: u8 = 1;

/// What a super-packet is cut into (`gso_type`), without the bit for ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoType {
    /// None: not a super-packet.
    None,
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP datagrams, each with a header of its own.
    Udp,
    /// Something that is not cut here.
    Other,
}

const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// CWR stands in the first segment only (RFC 3168 §6.1.2).
const GSO_ECN: u8 = 0x80;

/// `struct virtio_net_hdr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// Bit 0: the transport checksum is still to be computed; the others are passed on.
    pub flags: u8,
    /// Kind of super-packet, see [`VnetHeader::gso`].
    pub gso_type: u8,
    /// Bytes of headers, a hint.
    pub hdr_len: u16,
    /// Payload of each segment of a super-packet.
    pub gso_size: u16,
    /// Where the sum begins, from the packet's first byte.
    pub csum_start: u16,
    /// Where it goes, from there.
    pub csum_offset: u16,
}

impl VnetHeader {
    /// The header and the packet behind it; `None` if there are fewer bytes than a header has.
    pub fn read(frame: &[u8]) -> Option<(VnetHeader, &[u8])> {
        let (h, packet) = frame.split_first_chunk::<VNET_HEADER>()?;
        let word = |i: usize| u16::from_ne_bytes([h[i], h[i + 1]]);
        let header =
            VnetHeader { flags: h[0], gso_type: h[1], hdr_len: word(2), gso_size: word(4), csum_start: word(6), csum_offset: word(8) };
        Some((header, packet))
    }

    /// Its bytes.
    pub fn bytes(&self) -> [u8; VNET_HEADER] {
        let mut b = [0; VNET_HEADER];
        (b[0], b[1]) = (self.flags, self.gso_type);
        for (i, word) in [self.hdr_len, self.gso_size, self.csum_start, self.csum_offset].into_iter().enumerate() {
            b[2 + 2 * i..4 + 2 * i].copy_from_slice(&word.to_ne_bytes());
        }
        b
    }

    /// Kind of super-packet.
    pub fn gso(&self) -> GsoType {
        match self.gso_type & !GSO_ECN {
            GSO_NONE => GsoType::None,
            GSO_TCPV4 => GsoType::TcpV4,
            GSO_TCPV6 => GsoType::TcpV6,
            GSO_UDP_L4 => GsoType::Udp,
            _ => GsoType::Other,
        }
    }

    /// Whether the transport checksum is still to be computed.
    #[inline]
    pub fn needs_checksum(&self) -> bool {
        self.flags & NEEDS_CSUM != 0
    }

    /// Whether CWR belongs to the first segment only.
    #[inline]
    pub fn signals_once(&self) -> bool {
        self.gso_type & GSO_ECN != 0
    }

    /// The header of a single packet cut out of this super-packet.
    #[must_use]
    pub fn single(&self) -> VnetHeader {
        VnetHeader { gso_type: GSO_NONE, hdr_len: 0, gso_size: 0, ..*self }
    }

    /// The header of a later part of this super-packet, which has no CWR.
    #[must_use]
    pub fn later(&self) -> VnetHeader {
        VnetHeader { gso_type: self.gso_type & !GSO_ECN, ..*self }
    }

    /// The header when the checksum has been computed.
    #[must_use]
    pub fn summed(&self) -> VnetHeader {
        VnetHeader { flags: self.flags & !NEEDS_CSUM, csum_start: 0, csum_offset: 0, ..*self }
    }
}
