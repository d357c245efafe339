//! ECN at the sender: asking for it, marking packets as capable, and answering echoes of congestion.
//!
//! Source: RFC 3168 §6.1, RFC 8311, RFC 8257 (DCTCP asks for it by itself); Linux: `tcp_ecn_send_syn()`, `tcp_ecn_rcv_synack()`,
//! `tcp_ecn_send()`, `tcp_ecn_rcv_ecn_echo()`, `tcp_enter_cwr()`. How it differs: nothing known. Not modelled: ECN as the
//! route's feature, `tcp_ecn_fallback = 0`.

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
    /// The next new data carry CWR (`TCP_ECN_QUEUE_CWR`).
    pub queue_cwr: bool,
}

impl EcnState {
    /// `asked` is the system's will, `needed` the congestion control's.
    pub fn new(asked: bool, needed: bool) -> EcnState {
        EcnState { wanted: asked || needed, always: needed, ..EcnState::default() }
    }
    /// Flags and ECN field of a SYN, a retransmitted one not (RFC 3168 §6.1.1.1).
    pub fn syn(&self, again: bool) -> (Flags, Ecn) {
        if !self.wanted {
            return (Flags::SYN, Ecn::NotEct);
        }
        let flags = if again { Flags::SYN } else { Flags::SYN.with(Flags::ECE).with(Flags::CWR) };
        (flags, self.control())
    }
    /// The ECN field of packets without new data.
    pub fn control(&self) -> Ecn {
        if self.always {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        }
    }
    /// A SYN-ACK has come: agreed if it has ECE and not CWR (RFC 3168 §6.1.1).
    pub fn on_syn_ack(&mut self, flags: Flags) {
        self.ok = self.wanted && flags.has(Flags::ECE) && !flags.has(Flags::CWR);
        self.always &= self.ok;
    }
    /// Flags to add to new data, and their ECN field.
    #[inline]
    pub fn data(&mut self) -> (Flags, Ecn) {
        if !self.ok {
            return (Flags::default(), Ecn::NotEct);
        }
        let cwr = std::mem::take(&mut self.queue_cwr);
        (if cwr { Flags::CWR } else { Flags::default() }, Ecn::Ect0)
    }
    /// The window was reduced: the receiver is to learn of it (`tcp_ecn_queue_cwr()`).
    pub fn reduced(&mut self) {
        self.queue_cwr = self.ok;
    }
}

impl Sender {
    // Linux: tcp_ecn_rcv_ecn_echo()
    #[inline]
    pub(super) fn ecn_echo(&self, s: &Segment) -> u32 {
        if self.ecn.ok && s.flags.has(Flags::ECE) {
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
