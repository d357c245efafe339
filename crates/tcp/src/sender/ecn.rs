//! ECN at the sender: asking for it, marking packets as capable, and answering echoes of congestion; of Accurate ECN, counting marks from three bits
//! of each ACK.
//!
//! Source: RFC 3168 §6.1, RFC 8311, RFC 8257 (DCTCP asks for it by itself). How it differs: nothing known. Not modelled: ECN as the
//! route's feature, `tcp_ecn_fallback = 0`.
//!
//! Accurate ECN at the sender: asking for it, and counting marks from three bits of each ACK.
//!
//! **What it is.** The SYN offers it, the SYN-ACK says yes and how the SYN arrived. From then on every segment carries a three-bit
//! count of the marked packets that its sender has received; ACKs may carry a count of marked bytes beside it.
//! **Source.** RFC 9768 §3.1 (handshake), §3.2.2 (ACE), §3.2.2.5.2 and appendix A.2 (wrapping); ECT(1) and marking of every packet as
//! RFC 9331 and draft-ietf-tcpm-generalized-ecn have it.
//! **How it differs.** An ACK is read when it delivers something; what others say is in the next one that does. Where both counts
//! came, the number of marks is the one that fits the three bits and lies nearest to the bytes. A peer that sends the option but had
//! no room for it in an ACK that may hide a wrap gets the benefit of the doubt until its next option: reordered ACKs with three SACK
//! blocks are no sign of marks.
//! **What it does not model.** Tests for fields that the path mangles or zeroes; a sender's own option.

use crate::cc::{CongestionController, EcnMode};
use tcpscape_base::{Ecn, Flags, Segment};

/// Where a connection stands with ECN.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EcnState {
    /// The application's system asks for it (`net.ipv4.tcp_ecn = 1`, or a congestion control that needs it).
    pub wanted: bool,
    /// Every packet is marked as capable, not only new data.
    pub always: bool,
    /// What both ends agreed on.
    pub mode: EcnMode,
    /// The next new data carry CWR.
    pub queue_cwr: bool,
    /// Accurate feedback.
    pub accurate: Accurate,
}

impl EcnState {
    /// `asked` is the system's will; the congestion control has its own.
    pub fn new(asked: bool, cc: &dyn CongestionController) -> EcnState {
        let needed = cc.needs_ecn();
        let accurate = Accurate::new(needed && cc.wants_accurate_ecn());
        EcnState { wanted: asked || needed, always: needed, accurate, ..EcnState::default() }
    }
    /// Flags and ECN field of a SYN, a retransmitted one not (RFC 3168 §6.1.1.1).
    pub fn syn(&self, again: bool) -> (Flags, Ecn) {
        if !self.wanted {
            return (Flags::SYN, Ecn::NotEct);
        }
        let flags = if again { Flags::SYN } else { Flags::SYN.with(Flags::ECE).with(Flags::CWR).with(self.accurate.syn()) };
        (flags, self.control())
    }
    /// The ECN field of packets without new data.
    pub fn control(&self) -> Ecn {
        if self.always {
            self.accurate.ect()
        } else {
            Ecn::NotEct
        }
    }
    /// A SYN-ACK has come: agreed if it has ECE and not CWR (RFC 3168 §6.1.1), or one of accurate ECN's answers.
    pub fn on_syn_ack(&mut self, s: &Segment) {
        // Who asked for accurate feedback and is given the classic kind marks as RFC 3168 does: data only.
        self.always &= !self.accurate.asked;
        if self.accurate.on_syn_ack(s) {
            self.mode = EcnMode::Accurate;
            self.always = true;
            return;
        }
        let is_classic = self.wanted && s.flags.has(Flags::ECE) && !s.flags.has(Flags::CWR);
        self.mode = if is_classic { EcnMode::Classic } else { EcnMode::Off };
        self.always &= is_classic;
    }
    /// Whether an ACK echoes congestion as RFC 3168 has it.
    #[inline]
    pub fn echoes(&self, s: &Segment) -> bool {
        self.mode == EcnMode::Classic && s.flags.has(Flags::ECE)
    }
    /// Flags of anything that acknowledges.
    #[inline]
    pub fn ack(&self) -> Flags {
        Flags::ACK.with(self.accurate.flags)
    }
    /// Flags to add to new data, and their ECN field.
    #[inline]
    pub fn data(&mut self) -> (Flags, Ecn) {
        if !self.mode.is_on() {
            return (Flags::default(), Ecn::NotEct);
        }
        let cwr = std::mem::take(&mut self.queue_cwr);
        (if cwr { Flags::CWR } else { Flags::default() }, self.accurate.ect())
    }
    /// The window was reduced: the receiver is to learn of it.
    pub fn reduced(&mut self) {
        self.queue_cwr = self.mode == EcnMode::Classic;
    }
}

/// First value of the counters of marked packets (RFC 9768 §3.2.1).
const CEP_INIT: u32 = 5;
/// Most that three bits tell apart.
const MOST: u32 = 7;
/// The option's counters have 24 bits (RFC 9768 §3.2.3).
const CEB_MASK: u32 = 0xff_ffff;

/// Accurate feedback of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Accurate {
    /// The congestion control wants it.
    pub asked: bool,
    /// Both ends agreed to it.
    pub on: bool,
    /// The SYN arrived with a mark.
    pub syn_was_marked: bool,
    /// The ACE field of what is sent.
    pub flags: Flags,
    /// How packets that may be marked are sent: ECT(1) unless the peer refused.
    ect: Ecn,
    /// Marked packets that the receiver has told of, and their bytes (`s.cep`, `s.ceb`).
    cep: u32,
    ceb: u32,
    /// The peer sends the option.
    has_option: bool,
    /// An ACK without it may have hidden a wrap.
    unsure: bool,
}

impl Accurate {
    /// Before the handshake.
    pub fn new(asked: bool) -> Accurate {
        Accurate { asked, ect: if asked { Ecn::Ect1 } else { Ecn::Ect0 }, cep: CEP_INIT, ..Accurate::default() }
    }
    /// The flag that it adds to a SYN that asks for ECN.
    pub fn syn(&self) -> Flags {
        if self.asked {
            Flags::AE
        } else {
            Flags::default()
        }
    }
    /// How packets are marked as capable.
    #[inline]
    pub fn ect(&self) -> Ecn {
        self.ect
    }
    /// A SYN-ACK has come: whether it agrees to accurate feedback (RFC 9768 §3.1.1, table 2).
    pub fn on_syn_ack(&mut self, s: &Segment) -> bool {
        self.on = self.asked && matches!(s.flags.ace(), 0b010 | 0b011 | 0b100 | 0b110);
        if !self.on {
            self.ect = Ecn::Ect0;
            return false;
        }
        self.syn_was_marked = s.flags.ace() == 0b110;
        self.flags = Flags::of_ace((CEP_INIT + u32::from(s.ecn == Ecn::Ce)) as u8);
        true
    }

    /// Marks that an ACK tells of which delivered `packets` (RFC 9768 appendix A.2): the three bits may have wrapped. `ceb` as in
    /// [`Segment::ceb`].
    pub fn read(&mut self, ace: u8, ceb: u32, packets: u32, mss: u32) -> u32 {
        let least = u32::from(ace).wrapping_sub(self.cep) & MOST;
        let may_wrap = packets > MOST;
        let marks = if ceb > 0 && (may_wrap || self.unsure) {
            let bytes = (ceb - 1).wrapping_sub(self.ceb) & CEB_MASK;
            // More bytes were counted here than there: short packets, marked.
            let bytes = if bytes > CEB_MASK / 2 { 0 } else { bytes };
            least + (bytes.div_ceil(mss).saturating_sub(least) + MOST / 2 + 1) / (MOST + 1) * (MOST + 1)
        } else if !may_wrap || self.has_option {
            least
        } else {
            // The most that the three bits allow: the safe side.
            packets - (packets.wrapping_sub(least) & MOST)
        };
        self.cep = self.cep.wrapping_add(marks);
        if ceb > 0 {
            (self.ceb, self.has_option, self.unsure) = (ceb - 1, true, false);
        } else {
            self.ceb = self.ceb.wrapping_add(marks.wrapping_mul(mss));
            self.unsure |= may_wrap;
        }
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed() -> Accurate {
        let mut a = Accurate::new(true);
        assert!(a.on_syn_ack(&Segment { flags: Flags::SYN.with(Flags::ACK).with(Flags::of_ace(0b011)), ..Segment::default() }));
        a
    }

    /// 5 → 7 are two marks, 7 → 1 two more across the wrap.
    #[test]
    fn three_bits_wrap() {
        let mut a = agreed();
        assert_eq!((a.read(7, 0, 2, 1448), a.read(1, 0, 2, 1448), a.read(1, 0, 2, 1448)), (2, 2, 0));
    }

    /// Ten packets at once and a difference of 2: without the option 10 marks are possible and are assumed (the example of appendix
    /// A.2); with 5 it can only be 5; the option tells 2 from 10.
    #[test]
    fn a_long_ack_may_hide_a_wrap() {
        let mut a = agreed();
        assert_eq!(a.read(7, 0, 10, 1448), 10);
        assert_eq!(agreed().read(2, 0, 10, 1448), 5);
        assert_eq!(agreed().read(7, 1 + 2 * 1448, 10, 1448), 2);
        assert_eq!(agreed().read(7, 1 + 10 * 1448, 10, 1448), 10);
        assert_eq!(agreed().read(7, 1 + 9 * 1448 + 700, 10, 1448), 10);
        // The byte count goes on from what the first ACK was taken to mean: 10 marks, so these are 11 more.
        assert_eq!(a.read(2, 1 + 21 * 1448, 12, 1448), 11);
    }

    /// With the option known, ten packets without it are taken at their least; the next option tells of the eight that were missed.
    #[test]
    fn the_next_option_settles_what_was_unsure() {
        let mut a = agreed();
        assert_eq!(a.read(5, 1, 2, 1448), 0);
        assert_eq!(a.read(6, 0, 10, 1448), 1);
        assert_eq!(a.read(6, 1 + 9 * 1448, 2, 1448), 8);
        assert_eq!(a.read(6, 0, 10, 1448), 0);
        assert_eq!(a.read(6, 1 + 9 * 1448, 2, 1448), 0);
    }

    #[test]
    fn other_answers_are_no_agreement() {
        for code in [0b000, 0b001, 0b101, 0b111] {
            let mut a = Accurate::new(true);
            let s = Segment { flags: Flags::SYN.with(Flags::ACK).with(Flags::of_ace(code)), ..Segment::default() };
            assert!(!a.on_syn_ack(&s) && a.ect() == Ecn::Ect0, "{code:03b}");
        }
    }
}
