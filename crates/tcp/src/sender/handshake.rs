//! Opening the connection.
//!
//! Source: RFC 9293 §3.5 and §3.10.7.3, RFC 6298 §5.5, RFC 5681 §3.1 (a window of one segment after a lost SYN). How it differs: Linux 6.12
//! doubles the timeout only after some timeouts (docs/models/tcp/kernel-profiles.md); a lost SYN does not set the timeout of data to 3 s (RFC 6298 §5.7). Not modelled: Fast Open, simultaneous open, giving up.

use super::timer::Purpose;
use super::Sender;
use tcpscape_base::{Flags, Segment, Time};

/// How far the handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Closed,
    SynSent,
    Established,
}

/// The handshake of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handshake {
    state: State,
    /// When the application called connect(), ns.
    began_ns: u64,
    /// SYNs sent again.
    repeated: u32,
}

impl Handshake {
    /// Not begun.
    pub fn new() -> Handshake {
        Handshake { state: State::Closed, began_ns: 0, repeated: 0 }
    }
    /// SYNs sent again.
    pub fn repeated(&self) -> u32 {
        self.repeated
    }
    /// How far it is.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }
    /// Whether the connection is there.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.state == State::Established
    }
}

impl Sender {
    /// Opens the connection: queues a SYN. `since` is when the application called connect(), earlier than `now` if the
    /// first packet had to wait for the neighbour's address.
    pub fn connect(&mut self, now: Time, since: Time) {
        self.set_now(now);
        self.handshake = Handshake { state: State::SynSent, began_ns: since.0, repeated: 0 };
        self.send_syn();
        self.arm(Purpose::Retransmit, self.rtt.rto());
    }

    fn send_syn(&mut self) {
        let (flags, ecn) = self.ecn.syn(self.handshake.repeated > 0);
        self.out.push_back((Segment { flags, ecn, wnd: SYN_WINDOW, tsval: self.timestamp(), ..Segment::default() }, 0));
    }

    /// The SYN was not answered in time: it goes again, the timeout doubles (RFC 6298 §5.5).
    pub(super) fn on_syn_timeout(&mut self) {
        self.handshake.repeated += 1;
        self.send_syn();
        if !self.cfg.kernel.is_6_12() || self.handshake.repeated > SYN_LINEAR_TIMEOUTS {
            self.rtt.double(&self.cfg.jiffies);
        }
        self.arm(Purpose::Retransmit, self.rtt.rto());
    }

    // RFC 9293 §3.10.7.3.
    pub(super) fn on_syn_ack(&mut self, s: &Segment) {
        if !s.flags.has(Flags::SYN) || !s.flags.has(Flags::ACK) || s.ack != 1 {
            return;
        }
        self.ecn.on_syn_ack(s);
        self.peer.on_syn_ack(s);
        self.stats.max_rwnd = s.wnd;
        self.delivery.established(self.now_us(), self.ecn.accurate.syn_was_marked);
        self.timer.stop();
        self.rtt.progressed();
        let rtt_us = self.handshake_rtt_us(s);
        self.take_rtt(rtt_us as u32, rtt_us as u32, false);
        self.handshake.state = State::Established;
        if self.handshake.repeated > 1 {
            self.w.cwnd = 1;
        }
        self.window_use.established(self.tick());
        self.start_control(rtt_us);
        self.expand_send_buffer();
        self.begin_account();
        self.send_ack();
        self.answer_syn_ack(s.ecn);
        self.buffer.wake();
    }

    /// The RTT of the handshake, µs: by the clock, or by the echoed timestamp if there were several SYNs (Karn's rule).
    fn handshake_rtt_us(&self, s: &Segment) -> u64 {
        if self.handshake.repeated == 0 {
            (self.now.time.0 - self.handshake.began_ns) / 1_000
        } else {
            u64::from(self.timestamp().wrapping_sub(s.tsecr).max(1)) * 1_000
        }
    }

    fn start_control(&mut self, rtt_us: u64) {
        let v = self.view();
        self.control.cc.syn_acked(&v, rtt_us as i64);
        self.w.paced = self.cfg.fq;
        self.control.cc.init(&v, &mut self.w);
        self.control.owns_window = self.control.cc.owns_window();
        self.w.paced |= self.cfg.fq;
        self.update_pacing_rate();
    }
}

/// Window of a SYN, bytes.
const SYN_WINDOW: u32 = 64_240;
/// Timeouts of a SYN without back-off in 6.12 (`net.ipv4.tcp_syn_linear_timeouts`).
const SYN_LINEAR_TIMEOUTS: u32 = 4;
