//! Opening the connection.
//!
//! Source: RFC 9293 §3.5 and §3.10.7.3, RFC 6298 §5.5, RFC 5681 §3.1 (a window of one segment after a lost SYN). How it differs: Linux 6.12
//! doubles the timeout only after some timeouts (docs/models/tcp/kernel-profiles.md); a lost SYN does not set the timeout of data to 3 s (RFC 6298 §5.7). Not modelled: Fast Open, simultaneous open, giving up.

use super::connection::Connection;
use super::outbound::Purpose;
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
    /// The RTT that the SYN-ACK shows, µs: by the clock, or by the echoed timestamp if there were several SYNs (Karn's rule).
    fn rtt_us(&self, s: &Segment, c: &Connection) -> u64 {
        if self.repeated == 0 {
            (c.now.time.0 - self.began_ns) / 1_000
        } else {
            u64::from(c.timestamp().wrapping_sub(s.tsecr).max(1)) * 1_000
        }
    }
}

impl Sender {
    /// Opens the connection: queues a SYN. `since` is when the application called connect(), earlier than `now` if the
    /// first packet had to wait for the neighbour's address.
    pub fn connect(&mut self, now: Time, since: Time) {
        self.c.set_now(now);
        self.handshake = Handshake { state: State::SynSent, began_ns: since.0, repeated: 0 };
        self.send_syn();
    }

    fn send_syn(&mut self) {
        let (flags, ecn) = self.c.ecn.syn(self.handshake.repeated > 0);
        self.outbound.give(Segment { flags, ecn, wnd: SYN_WINDOW, tsval: self.c.timestamp(), ..Segment::default() });
        self.outbound.arm(Purpose::Retransmit, self.c.rtt.rto(), &self.c);
    }

    /// The SYN was not answered in time: it goes again, the timeout doubles (RFC 6298 §5.5).
    pub(super) fn on_syn_timeout(&mut self) {
        self.handshake.repeated += 1;
        if self.handshake.repeated > self.c.cfg.kernel.rules().syn_linear_timeouts {
            self.c.rtt.double(&self.c.cfg.jiffies);
        }
        self.send_syn();
    }

    // RFC 9293 §3.10.7.3.
    pub(super) fn on_syn_ack(&mut self, s: &Segment) {
        if !s.flags.has(Flags::SYN) || !s.flags.has(Flags::ACK) || s.ack != 1 {
            return;
        }
        let c = &mut self.c;
        c.ecn.on_syn_ack(s);
        c.peer.on_syn_ack(s);
        c.stats.max_rwnd = s.wnd;
        c.rate.established(c.now.time.micros(), c.ecn.accurate.syn_was_marked);
        self.outbound.stop_timer();
        c.rtt.progressed();
        let rtt_us = self.handshake.rtt_us(s, c);
        c.take_rtt(rtt_us as u32, rtt_us as u32, false);
        self.handshake.state = State::Established;
        self.governor.start(c, rtt_us, self.handshake.repeated > 1, self.outbound.waiting());
        self.outbound.expand_send_buffer(c, &self.governor, self.repair.standing());
        self.outbound.send_ack(c.third_ack(s.ecn), c.now.time);
        self.outbound.wake_writer();
        self.begin_account();
    }
}

/// Window of a SYN, bytes.
const SYN_WINDOW: u32 = 64_240;
