//! A frame as it came, shared by the packets inside it.
//!
//! A super-packet is never copied into pieces: the packets that travel through the path are ranges of its segments, and share its bytes.

use super::header::{GsoType, VnetHeader, VNET_HEADER};
use super::parse::{self, Ip, Transport, Version};
use std::sync::Arc;
use tcpscape_base::{Ecn, Segment, Time};
use tcpscape_path::Body;

/// Bytes kept of a packet that is not understood, where headers are.
const UNKNOWN_HEADERS: usize = 96;

/// A frame: [`VnetHeader`] and packet.
#[derive(Debug)]
pub(crate) struct Frame {
    /// All bytes.
    pub bytes: Box<[u8]>,
    /// The bytes before the packet, as numbers.
    pub header: VnetHeader,
    /// Where the packet's parts are, where they are understood.
    pub ip: Option<Ip>,
    /// Bytes of the packet; more than are kept where only its headers are.
    pub len: usize,
    /// How it is cut, if it is a super-packet of a kind that is understood.
    pub cut: Option<Cut>,
    /// Number of its first segment among the packets of its direction.
    pub number: u64,
    /// The TCP segment, where a queue asks for it: the first packet's and that of the others.
    pub segments: Option<Box<[Segment; 2]>>,
}

/// How a super-packet is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Bytes before the payload, from the packet's first byte: each segment has them.
    pub headers: usize,
    /// Payload of each segment but the last.
    pub size: usize,
    /// Segments.
    pub count: u16,
}

impl Frame {
    /// Reads a frame; `None` if it is too short to have a header.
    pub fn new(frame: &[u8], number: u64) -> Option<Frame> {
        let (header, packet) = VnetHeader::read(frame)?;
        let ip = parse::parse(packet);
        let cut = ip.and_then(|ip| cut(&header, &ip, packet.len()));
        Some(Frame { bytes: frame.into(), header, ip, len: packet.len(), cut, number, segments: None })
    }

    /// The packet.
    #[inline]
    pub fn packet(&self) -> &[u8] {
        &self.bytes[VNET_HEADER..]
    }

    /// The same frame without its payload, for a capture.
    pub fn without_payload(&self) -> Frame {
        let packet = self.packet();
        let headers = self.ip.and_then(|ip| ip.inner).map_or(UNKNOWN_HEADERS.min(packet.len()), |inner| inner.payload);
        Frame { bytes: self.bytes[..VNET_HEADER + headers].into(), segments: None, ..*self }
    }

    /// Packets of MTU size inside.
    #[inline]
    pub fn count(&self) -> u16 {
        self.cut.map_or(1, |c| c.count)
    }

    /// Bytes that a qdisc counts for `count` segments from `first`: each with its own headers.
    #[inline]
    pub fn size(&self, first: u16, count: u16) -> u32 {
        match self.cut {
            None => self.len as u32,
            Some(cut) => u32::from(count) * cut.headers as u32 + self.payload(first, count).len() as u32,
        }
    }

    /// The payload of `count` segments from `first`, as a range of the packet; of a packet that cannot be cut all of it.
    #[inline]
    pub fn payload(&self, first: u16, count: u16) -> std::ops::Range<usize> {
        let end = self.len;
        match self.cut {
            None => self.ip.and_then(|ip| ip.inner).map_or(end, |inner| inner.payload)..end,
            Some(cut) => {
                let from = |n: u16| (cut.headers + usize::from(n) * cut.size).min(end);
                from(first)..from(first + count)
            }
        }
    }

    /// The ECN field that it came with.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        self.ip.map_or(Ecn::NotEct, |ip| ip.ecn)
    }
}

/// How a super-packet of this header is cut; `None` for a single packet, and for what is not understood.
fn cut(header: &VnetHeader, ip: &Ip, len: usize) -> Option<Cut> {
    let inner = ip.inner?;
    let fits = match header.gso() {
        GsoType::TcpV4 => (inner.transport, ip.version) == (Transport::Tcp, Version::V4),
        GsoType::TcpV6 => (inner.transport, ip.version) == (Transport::Tcp, Version::V6),
        GsoType::Udp => inner.transport == Transport::Udp,
        GsoType::None | GsoType::Other => false,
    };
    let (size, payload) = (usize::from(header.gso_size), len - inner.payload);
    if !fits || size == 0 || payload <= size || !header.needs_checksum() {
        return None;
    }
    let count = u16::try_from(payload.div_ceil(size)).ok()?;
    Some(Cut { headers: inner.payload, size, count })
}

/// Segments of a frame on their way.
#[derive(Clone, Debug)]
pub(crate) struct Cargo {
    /// The frame that they are part of.
    pub frame: Arc<Frame>,
    /// The first one's place in it.
    pub first: u16,
    /// How many.
    pub count: u16,
    /// When the frame came.
    pub arrived: Time,
}

impl Cargo {
    /// The number of the first segment among the packets of its direction.
    #[inline]
    pub fn number(&self) -> u64 {
        self.frame.number + u64::from(self.first)
    }
    /// Bytes that a qdisc counts.
    #[inline]
    pub fn size(&self) -> u32 {
        self.frame.size(self.first, self.count)
    }
    /// Whether it is all of its frame.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.first == 0 && self.count == self.frame.count()
    }
}

impl Body for Cargo {
    #[inline]
    fn payload(&self) -> u32 {
        self.frame.payload(self.first, self.count).len() as u32
    }
    #[inline]
    fn split(&self, index: u32, _of: u32) -> Cargo {
        Cargo { first: self.first + index as u16, count: 1, ..self.clone() }
    }
    #[inline]
    fn number(&self, _whole: u64) -> u64 {
        Cargo::number(self)
    }
    #[inline]
    fn segment(&self) -> Option<&Segment> {
        self.frame.segments.as_ref().map(|both| &both[usize::from(self.first > 0)])
    }
}
