//! ECN at the sender: asking for it, marking packets as capable, and answering echoes of congestion.
//!
//! Source: RFC 3168 §6.1, RFC 8311, RFC 8257 (DCTCP asks for it by itself). How it differs: nothing known. Not modelled: ECN as the
//! route's feature, `tcp_ecn_fallback = 0`.

use super::accecn::Accurate;
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
