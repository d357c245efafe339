//! Accurate ECN at the receiver: counting marked packets and bytes, and saying so on every ACK.
//!
//! **What it is.** Once the handshake has agreed, three bits of every ACK are the count of marked packets, and an option counts their
//! bytes where it has room. A mark after packets without one is acknowledged at once, and so is every second mark.
//! **Source.** RFC 9768 §3.1.1 and §3.2.2 (handshake, ACE), §3.2.2.5.1 (when ACKs are sent), §3.2.3 (option). Every packet is ECT(1)
//! (RFC 9331, draft-ietf-tcpm-generalized-ecn).
//! **How it differs.** The option is the one with ECT(1) and CE counts, on every ACK with at most two SACK blocks; the RFC also allows
//! it less often.
//! **What it does not model.** The counts of unmarked bytes; ACKs of marked pure ACKs; several ACKs for one merged segment.

use tcpscape_base::{Ecn, Flags, Segment};

/// First value of the count of marked packets (RFC 9768 §3.2.1).
const CEP_INIT: u32 = 5;
/// Marks after which an ACK is due (`n` of RFC 9768 §3.2.2.5.1).
const MARKS_PER_ACK: u32 = 2;
/// SACK blocks beside which the option has room: 40 bytes − 12 of timestamps − 8 of its own.
const MOST_SACKS: u8 = 2;
/// Width of the option's counter.
const CEB_MASK: u32 = 0xff_ffff;

/// Counts of one connection that has agreed to accurate feedback.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkCounts {
    /// Marked packets (`r.cep`).
    packets: u32,
    /// Their payload bytes (`r.ceb`).
    bytes: u32,
    /// Marks since the last ACK.
    since_ack: u32,
    /// The last packet was marked.
    last_marked: bool,
}

/// What a segment added to the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Marked packets.
    pub packets: u32,
    /// An ACK should go at once.
    pub at_once: bool,
}

/// Whether a SYN asks for accurate feedback (RFC 9768 §3.1.1).
pub(super) fn is_request(syn: &Segment) -> bool {
    syn.flags.ace() == 0b111
}

impl MarkCounts {
    /// Nothing was counted. A mark on the SYN is told in the SYN-ACK, and not counted (RFC 9768 §3.2.2.2).
    pub fn new() -> MarkCounts {
        MarkCounts { packets: CEP_INIT, bytes: 0, since_ack: 0, last_marked: false }
    }
    /// The ACE field.
    #[inline]
    pub fn ace(&self) -> Flags {
        Flags::of_ace(self.packets as u8)
    }
    /// An acceptable segment; a merged one stands for the packets of `mss` bytes that it was made of.
    pub fn count(&mut self, s: &Segment, mss: u32) -> Counted {
        let is_marked = s.ecn == Ecn::Ce;
        let is_new = is_marked && !self.last_marked;
        self.last_marked = is_marked;
        if !is_marked {
            return Counted::default();
        }
        let packets = s.len.div_ceil(mss).max(1);
        self.packets = self.packets.wrapping_add(packets);
        self.bytes = self.bytes.wrapping_add(s.len);
        self.since_ack += packets;
        Counted { packets, at_once: s.len > 0 && (is_new || self.since_ack >= MARKS_PER_ACK) }
    }
    /// An ACK leaves: adds the option if there is room.
    pub fn write(&mut self, ack: &mut Segment) {
        self.since_ack = 0;
        if ack.nsack <= MOST_SACKS {
            ack.ceb = 1 + (self.bytes & CEB_MASK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(len: u32, ecn: Ecn) -> Segment {
        Segment { len, ecn, ..Segment::default() }
    }

    /// RFC 9768 §3.2.2.5.1: at once on the first mark after none, then on every second one.
    #[test]
    fn new_marks_and_every_second_one_are_told_at_once() {
        let mut c = MarkCounts::new();
        let mut at_once = |ecn| c.count(&packet(1_448, ecn), 1_448).at_once;
        let sequence = [Ecn::Ect1, Ecn::Ce, Ecn::Ce, Ecn::Ect1, Ecn::Ce];
        assert_eq!(sequence.map(&mut at_once), [false, true, true, false, true], "no ACK was sent in between");
    }

    /// RFC 9768 §3.2.2: 5 at first, modulo 8; a merged segment counts its packets.
    #[test]
    fn packets_and_bytes() {
        let mut c = MarkCounts::new();
        assert_eq!(c.count(&packet(3 * 1_448 + 1, Ecn::Ce), 1_448).packets, 4);
        assert_eq!(c.count(&packet(0, Ecn::Ce), 1_448), Counted { packets: 1, at_once: false });
        let mut ack = Segment::default();
        c.write(&mut ack);
        assert_eq!((c.ace().ace(), ack.ceb), (2, 1 + 4_345));
    }
}
