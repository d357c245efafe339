//! What packets carry here: a segment, possibly a super-packet, and how it is cut.

use tcpscape_base::Segment;
use tcpscape_path::Body;

/// A segment, and the payload of each MTU-sized packet inside.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wire {
    pub segment: Segment,
    pub mss: u16,
}

impl Body for Wire {
    #[inline]
    fn segment(&self) -> Option<&Segment> {
        Some(&self.segment)
    }
    #[inline]
    fn payload(&self) -> u32 {
        self.segment.len
    }
    #[inline]
    fn split(&self, index: u32, _of: u32) -> Wire {
        Wire { segment: self.segment.part(index, u32::from(self.mss)), ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::{Flags, Packet};
    use tcpscape_path::segments;

    /// 4000 bytes in three packets are two full segments and the rest, each with 66 bytes of headers: a path cuts by the MSS.
    #[test]
    fn a_path_cuts_a_super_packet_into_full_segments() {
        let segment = Segment { seq: 1, len: 4_000, flags: Flags::ACK.with(Flags::PSH), ..Segment::default() };
        let p = Packet { size: 4_000 + 3 * 66, segs: 3, body: Wire { segment, mss: 1_448 }, ..Packet::default() };
        let parts: Vec<_> = segments(&p).map(|p| (p.body.segment.seq, p.size, p.body.segment.flags.has(Flags::PSH))).collect();
        assert_eq!(parts, [(1, 1_514, false), (1_449, 1_514, false), (2_897, 1_170, true)]);
    }
}
