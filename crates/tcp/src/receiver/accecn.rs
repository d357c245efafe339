//! Accurate ECN at the receiver: counting marked packets and bytes, and saying so on every ACK.
//!
//! **What it is.** Once the handshake has agreed, three bits of every ACK are the count of marked packets, and an option counts their
//! bytes where it has room. A mark after packets without one is acknowledged at once, and so is every second mark.
//! **Source.** RFC 9768 §3.1.1 and §3.2.2 (handshake, ACE), §3.2.2.5.1 (when ACKs are sent), §3.2.3 (option). Every packet is ECT(1)
//! (RFC 9331, draft-ietf-tcpm-generalized-ecn).
//! **How it differs.** The option is the one with ECT(1) and CE counts, on every ACK with at most two SACK blocks; the RFC also allows
//! it less often.
//! **What it does not model.** The counts of unmarked bytes; ACKs of marked pure ACKs; several ACKs for one merged segment.

use super::Receiver;
use tcpscape_base::{Ecn, Flags, Segment};

/// First value of the count of marked packets (RFC 9768 §3.2.1).
const CEP_INIT: u32 = 5;
/// Marks after which an ACK is due (`n` of RFC 9768 §3.2.2.5.1).
const MARKS_PER_ACK: u32 = 2;
/// SACK blocks beside which the option has room: 40 bytes − 12 of timestamps − 8 of its own.
const MOST_SACKS: u8 = 2;
/// Width of the option's counter.
const CEB_MASK: u32 = 0xff_ffff;

/// Accurate feedback of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Accurate {
    /// The listener can.
    able: bool,
    /// Both ends agreed.
    pub on: bool,
    /// How the SYN arrived.
    syn: Ecn,
    /// Marked packets and their payload bytes (`r.cep`, `r.ceb`).
    cep: u32,
    ceb: u32,
    /// Marks since the last ACK.
    since_ack: u32,
    /// The last packet was marked.
    ce: bool,
}

impl Accurate {
    /// Before any SYN.
    pub fn new(able: bool) -> Accurate {
        Accurate { able, cep: CEP_INIT, ..Accurate::default() }
    }
    /// A SYN came. A mark on it is told in the SYN-ACK, and not counted (RFC 9768 §3.2.2.2).
    pub fn on_syn(&mut self, s: &Segment) {
        self.on = self.able && s.flags.ace() == 0b111;
        self.syn = s.ecn;
    }
    /// The answer to the SYN, if it agrees.
    pub fn syn_ack(&self) -> Option<u8> {
        self.on.then(|| self.syn.handshake_code())
    }
    /// The ACE field.
    #[inline]
    pub fn ace(&self) -> Flags {
        Flags::of_ace(self.cep as u8)
    }
    /// An ACK leaves: adds the option if there is room.
    pub fn put_option(&mut self, s: &mut Segment) {
        self.since_ack = 0;
        if s.nsack <= MOST_SACKS {
            s.ceb = 1 + (self.ceb & CEB_MASK);
        }
    }
}

impl Receiver {
    /// An acceptable segment: counts its mark, and asks for an ACK where the sender should know at once.
    pub(super) fn count_marks(&mut self, s: &Segment) {
        let a = &mut self.ecn.accurate;
        let was = std::mem::replace(&mut a.ce, s.ecn == Ecn::Ce);
        if s.ecn != Ecn::Ce {
            return;
        }
        // A merged segment stands for the packets that it was made of.
        let packets = s.len.div_ceil(self.mss).max(1);
        a.cep = a.cep.wrapping_add(packets);
        a.ceb = a.ceb.wrapping_add(s.len);
        a.since_ack += packets;
        self.stats.ce_segments += u64::from(packets);
        self.acks.at_once |= s.len > 0 && (!was || a.since_ack >= MARKS_PER_ACK);
    }
}
