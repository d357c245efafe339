//! What packets carry here: a segment, possibly a super-packet, and how it is cut; or what a probe sends, which is no segment.

use crate::engine::ProbePacket;
use tcpscape_base::Segment;
use tcpscape_path::Body;

/// What a packet carries, and what comes next on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    pub load: Load,
    /// A place in the network's list of hops.
    pub next: u32,
    /// Payload of each MTU-sized packet inside a segment.
    pub mss: u16,
}

/// What is carried.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// A segment, or several in one.
    Segment(Segment),
    /// What a probe sends.
    Probe(ProbePacket),
    /// Neighbour discovery: a question that travels up the chain or down, or its answer, at the end of the way back.
    Discovery { up: bool },
}

impl Body for Wire {
    #[inline]
    fn segment(&self) -> Option<&Segment> {
        match &self.load {
            Load::Segment(segment) => Some(segment),
            Load::Probe(_) | Load::Discovery { .. } => None,
        }
    }
    #[inline]
    fn payload(&self) -> u32 {
        self.segment().map_or(0, |s| s.len)
    }
    #[inline]
    fn split(&self, index: u32, _of: u32) -> Wire {
        let load = self.segment().map_or(self.load, |s| Load::Segment(s.part(index, u32::from(self.mss))));
        Wire { load, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::{Ecn, Flags, Packet};
    use tcpscape_path::segments;

    #[test]
    fn a_probes_packet_is_no_segment_and_comes_out_as_it_went_in() {
        let packet = ProbePacket { probe: 3, number: 7, is_answer: true };
        let wire = Wire { load: Load::Probe(packet), next: 0, mss: 1_448 };
        assert!(wire.segment().is_none() && wire.payload() == 0);
        assert!(matches!(wire.split(0, 1).load, Load::Probe(p) if p == packet));
    }

    /// 4000 bytes in three packets are two full segments and the rest, each with 66 bytes of headers: a path cuts by the MSS.
    #[test]
    fn a_path_cuts_a_super_packet_into_full_segments() {
        let segment = Segment { seq: 1, len: 4_000, flags: Flags::ACK.with(Flags::PSH), ..Segment::default() };
        let body = Wire { load: Load::Segment(segment), mss: 1_448, next: 0 };
        let (id, flow, hosts, size) = (0, 0, 0, 4_000 + 3 * 66);
        let p = Packet { id, flow, hosts, size, segs: 3, ecn: Ecn::NotEct, edt: None, corrupt: false, body };
        let part = |p: Packet<Wire>| p.body.segment().map(|s| (s.seq, p.size, s.flags.has(Flags::PSH)));
        let parts: Vec<_> = segments(&p).filter_map(part).collect();
        assert_eq!(parts, [(1, 1_514, false), (1_449, 1_514, false), (2_897, 1_170, true)]);
    }

    #[test]
    fn a_packet_is_no_larger_for_knowing_its_way() {
        assert_eq!(std::mem::size_of::<Wire>(), 72);
    }
}
