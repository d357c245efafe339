//! ECN at the sender: asking for it, marking packets as capable, and answering echoes of congestion.
//!
//! Source: RFC 3168 §6.1, RFC 8311, RFC 8257 (DCTCP asks for it by itself); Linux: `tcp_ecn_send_syn()`, `tcp_ecn_rcv_synack()`,
//! `tcp_ecn_send()`, `tcp_ecn_rcv_ecn_echo()`, `tcp_enter_cwr()`. How it differs: nothing known. Not modelled: ECN as the
//! route's feature, `tcp_ecn_fallback = 0`.

use super::accecn::Accurate;
use super::ack::flag;
use super::*;
use tcpscape_base::Ecn;

/// Where a connection stands with ECN.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EcnState {
    /// The application's system asks for it (`net.ipv4.tcp_ecn = 1`, or a congestion control that needs it).
    pub wanted: bool,
    /// Every packet is marked as capable, not only new data (`TCP_CONG_NEEDS_ECN`).
    pub always: bool,
    /// Both ends agreed (`TCP_ECN_OK`).
    pub ok: bool,
    /// Agreed to feedback as in RFC 3168: ECE until CWR.
    classic: bool,
    /// The next new data carry CWR (`TCP_ECN_QUEUE_CWR`).
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
        self.classic = self.wanted && s.flags.has(Flags::ECE) && !s.flags.has(Flags::CWR);
        // Who asked for accurate feedback and is given the classic kind marks as RFC 3168 does: data only.
        self.always &= !self.accurate.asked;
        if self.accurate.on_syn_ack(s) {
            self.classic = false;
            self.always = true;
        }
        self.ok = self.classic || self.accurate.on;
        self.always &= self.ok;
    }
    /// Flags of anything that acknowledges.
    #[inline]
    pub fn ack(&self) -> Flags {
        Flags::ACK.with(self.accurate.flags)
    }
    /// Flags to add to new data, and their ECN field.
    #[inline]
    pub fn data(&mut self) -> (Flags, Ecn) {
        if !self.ok {
            return (Flags::default(), Ecn::NotEct);
        }
        let cwr = std::mem::take(&mut self.queue_cwr);
        (if cwr { Flags::CWR } else { Flags::default() }, self.accurate.ect())
    }
    /// The window was reduced: the receiver is to learn of it (`tcp_ecn_queue_cwr()`).
    pub fn reduced(&mut self) {
        self.queue_cwr = self.classic;
    }
}

impl Sender {
    // Linux: tcp_ecn_rcv_ecn_echo()
    #[inline]
    pub(super) fn ecn_echo(&self, s: &Segment) -> u32 {
        if self.ecn.classic && s.flags.has(Flags::ECE) {
            flag::ECE
        } else {
            0
        }
    }

    // Linux: tcp_count_delivered()
    #[inline]
    pub(super) fn count_delivered(&mut self, n: u32, flags: u32) {
        self.delivered = self.delivered.wrapping_add(n);
        if flags & flag::ECE != 0 {
            self.delivered_ce = self.delivered_ce.wrapping_add(n);
        }
    }

    /// The window shrinks without a loss: ECN, or a refusal by the sender's own queue (RFC 3168 §6.1.2). Linux: tcp_enter_cwr()
    pub(super) fn enter_cwr(&mut self) {
        self.prior_ssthresh = 0;
        if self.ca_state < CaState::Cwr {
            self.undo_marker = 0;
            self.init_cwnd_reduction();
            self.set_ca_state(CaState::Cwr);
        }
    }
}
