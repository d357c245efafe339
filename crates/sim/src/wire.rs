//! What packets carry here: a segment, possibly a super-packet, and how it is cut; or what a probe sends, which is no segment.

use crate::engine::ProbePacket;
use tcpscape_base::Segment;
use tcpscape_path::Body;

/// A segment, and the payload of each MTU-sized packet inside; 0 where it is no TCP segment, as of neighbour discovery and probes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wire {
    pub segment: Segment,
    pub mss: u16,
    /// What comes next on its way: a place in the network's list of hops.
    pub next: u32,
}

impl Wire {
    /// What a probe sends: its packet's number stands where segments have their sequence number, so that packets do not grow.
    pub fn probe(packet: ProbePacket, next: u32) -> Wire {
        let (seq, ack) = (packet.number, u64::from(packet.is_answer));
        Wire { segment: Segment { seq, ack, ..Segment::default() }, mss: 0, next }
    }

    /// The number of the probe's packet that it is, and whether it is an answer.
    #[inline]
    pub fn probe_packet(&self) -> (u64, bool) {
        (self.segment.seq, self.segment.ack > 0)
    }
}

impl Body for Wire {
    #[inline]
    fn segment(&self) -> Option<&Segment> {
        (self.mss > 0).then_some(&self.segment)
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

    #[test]
    fn a_probes_packet_is_no_segment_and_comes_out_as_it_went_in() {
        let packet = ProbePacket { probe: 3, number: 7, is_answer: true };
        let wire = Wire::probe(packet, 0);
        assert!(wire.segment().is_none() && wire.payload() == 0);
        assert_eq!(wire.probe_packet(), (7, true));
    }

    /// 4000 bytes in three packets are two full segments and the rest, each with 66 bytes of headers: a path cuts by the MSS.
    #[test]
    fn a_path_cuts_a_super_packet_into_full_segments() {
        let segment = Segment { seq: 1, len: 4_000, flags: Flags::ACK.with(Flags::PSH), ..Segment::default() };
        let p = Packet { size: 4_000 + 3 * 66, segs: 3, body: Wire { segment, mss: 1_448, next: 0 }, ..Packet::default() };
        let parts: Vec<_> = segments(&p).map(|p| (p.body.segment.seq, p.size, p.body.segment.flags.has(Flags::PSH))).collect();
        assert_eq!(parts, [(1, 1_514, false), (1_449, 1_514, false), (2_897, 1_170, true)]);
    }

    #[test]
    fn a_packet_is_no_larger_for_knowing_its_way() {
        assert_eq!(std::mem::size_of::<Wire>(), 72);
    }
}
