//! ECN at the receiver: agreeing to it, and echoing marks until the sender says that it has reacted, or packet by packet.
//!
//! Source: RFC 3168 §6.1.3, RFC 8257 §3.2 (DCTCP); Linux: `tcp_ecn_create_request()`, `tcp_ecn_check_ce()`, `tcp_ecn_accept_cwr()`,
//! `dctcp_ece_ack_update()`; accurate feedback in `accecn.rs`. Differs: nothing known. Does not model: a listener with
//! `net.ipv4.tcp_ecn = 0`.

use super::accecn::Accurate;
use super::Receiver;
use crate::cc::CongestionController;
use tcpscape_base::{Ecn, Flags, Segment, Time};

/// Segments acknowledged one by one after a mark.
const QUICK_ACKS_ON_CE: u32 = 2;

/// How a listening socket tells of marks, by its congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    /// ECE until CWR comes (RFC 3168).
    #[default]
    Classic,
    /// ECE as the acknowledged packets were marked (RFC 8257); agrees to any request.
    Dctcp,
    /// Counts (RFC 9768) if the sender asks for them, otherwise as RFC 3168 has it; agrees to any request.
    Accurate,
}

impl Feedback {
    /// What a listening socket with this congestion control does.
    pub fn of(cc: &dyn CongestionController) -> Feedback {
        match (cc.needs_ecn(), cc.wants_accurate_ecn()) {
            (false, _) => Feedback::Classic,
            (true, false) => Feedback::Dctcp,
            (true, true) => Feedback::Accurate,
        }
    }
}

/// Where a connection stands with ECN.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EcnState {
    /// The listener's congestion control needs ECN …
    needed: bool,
    /// … and echoes as DCTCP does.
    pub dctcp: bool,
    /// Counts instead of echoes.
    pub accurate: Accurate,
    /// Both ends agreed (`TCP_ECN_OK`).
    pub ok: bool,
    /// ACKs carry ECE (`TCP_ECN_DEMAND_CWR`).
    pub echo: bool,
    /// A packet came that could have been marked (`TCP_ECN_SEEN`).
    seen: bool,
    /// DCTCP: the last packet was marked, and what was next expected after it (`ce_state`, `prior_rcv_nxt`).
    ce: bool,
    prior_rcv_nxt: u64,
}

impl EcnState {
    /// Before any SYN.
    pub fn new(feedback: Feedback) -> EcnState {
        EcnState {
            needed: feedback != Feedback::Classic,
            dctcp: feedback == Feedback::Dctcp,
            accurate: Accurate::new(feedback == Feedback::Accurate),
            ..EcnState::default()
        }
    }
    /// A SYN asks for ECN or not. A SYN that is itself marked as capable is RFC 3168's no, but a yes where the listener needs ECN, and
    /// for one that asks for accurate feedback (`res1` in Linux's test).
    pub fn on_syn(&mut self, s: &Segment) {
        let asked = s.flags.has(Flags::ECE) && s.flags.has(Flags::CWR);
        self.ok = asked && (s.ecn == Ecn::NotEct || self.needed || s.flags.has(Flags::AE));
        self.accurate.on_syn(s);
        self.prior_rcv_nxt = 1;
    }
    /// Flags of the SYN-ACK, and its ECN field.
    pub fn syn_ack(&self) -> (Flags, Ecn) {
        if let Some(code) = self.accurate.syn_ack() {
            (Flags::of_ace(code), Ecn::Ect1)
        } else if self.ok {
            (Flags::ECE, Ecn::NotEct)
        } else {
            (Flags::default(), Ecn::NotEct)
        }
    }
    /// Flags and ECN field of an ACK.
    #[inline]
    pub fn ack(&self) -> (Flags, Ecn) {
        if !self.ok {
            return (Flags::default(), Ecn::NotEct);
        }
        if self.accurate.on {
            return (self.accurate.ace(), Ecn::Ect1);
        }
        (if self.echo { Flags::ECE } else { Flags::default() }, if self.dctcp { Ecn::Ect0 } else { Ecn::NotEct })
    }
}

impl Receiver {
    /// The sender has reduced its window: the echo ends, and the sender may wait for this ACK. Linux: tcp_ecn_accept_cwr()
    #[inline]
    pub(super) fn accept_cwr(&mut self, s: &Segment) {
        if self.ecn.accurate.on {
            return self.count_marks(s);
        }
        if s.flags.has(Flags::CWR) {
            self.ecn.echo = false;
            self.acks.at_once |= s.end() != s.seq;
        }
    }

    /// Looks for a mark on acceptable data. Linux: __tcp_ecn_check_ce()
    #[inline]
    pub(super) fn check_ce(&mut self, now: Time, s: &Segment) {
        if !self.ecn.ok || self.ecn.accurate.on {
            return;
        }
        match s.ecn {
            // A segment that cannot be marked after one that could is probably a retransmission.
            Ecn::NotEct if self.ecn.seen => self.acks.enter_quick_for(QUICK_ACKS_ON_CE, &self.jiffies, self.window.wnd),
            Ecn::NotEct => {}
            ecn => {
                let ce = ecn == Ecn::Ce;
                self.stats.ce_segments += u64::from(ce);
                if self.ecn.dctcp {
                    self.follow_ce(now, ce);
                }
                if ce && !self.ecn.echo {
                    self.acks.enter_quick_for(QUICK_ACKS_ON_CE, &self.jiffies, self.window.wnd);
                    self.ecn.echo = true;
                }
                self.ecn.seen = true;
            }
        }
    }

    // RFC 8257 §3.2: an ACK stands for packets that were all marked or all unmarked. Linux: dctcp_ece_ack_update()
    fn follow_ce(&mut self, now: Time, ce: bool) {
        if self.ecn.ce != ce {
            if self.acks.timer {
                self.ecn.echo = self.ecn.ce;
                self.send_ack_before(now, self.ecn.prior_rcv_nxt);
            }
            self.acks.at_once = true;
        }
        self.ecn.prior_rcv_nxt = self.rcv_nxt;
        self.ecn.ce = ce;
        self.ecn.echo = ce;
    }

    /// Acknowledges only up to `ack`: what came since is still to be acknowledged. Linux: __tcp_send_ack(), tcp_event_ack_sent()
    fn send_ack_before(&mut self, now: Time, ack: u64) {
        if ack == self.rcv_nxt {
            return self.send_ack(now);
        }
        let offer = self.offer();
        let wnd = self.window.advertise(offer, self.rcv_nxt);
        self.push_ack(now, wnd, ack);
        self.acks.uncompress();
    }
}
