//! The segments that a receiver sends: SYN-ACKs, ACKs and its application's messages.
//!
//! Source: RFC 9293 §3.10.7 (what an ACK says), RFC 7323 §3.2 (timestamps on every segment), RFC 2018 §4 (SACK option).

use super::ecn::{EarlyAck, Marking};
use super::timestamps::clock;
use super::window::UNSCALED;
use super::Receiver;
use tcpscape_base::{Flags, Misbehaviour, Segment, Time};

impl Receiver {
    /// What could be offered now. A buffer that is more than half full ends quick ACKs.
    #[inline]
    pub(super) fn offer(&mut self) -> u32 {
        let offer = self.window.offer(self.store.memory(), self.acks.segment());
        if offer.is_tight {
            self.acks.end_quick();
        }
        offer.window
    }

    /// Acknowledges everything.
    #[inline]
    pub(super) fn send_ack(&mut self, now: Time) {
        self.acknowledge_all(now, self.ecn.ack());
    }
    #[inline]
    fn acknowledge_all(&mut self, now: Time, marking: Marking) {
        let next = self.stream.next();
        let window = if self.acks.closes_window() {
            self.window.close(next)
        } else {
            let offer = self.offer();
            self.window.advertise(offer, next)
        };
        self.stats.zero_window_acks += u64::from(window == 0);
        self.push_ack(now, next, window, marking);
        self.stats.compressed_acks += u64::from(self.acks.on_sent(&self.jiffies));
    }
    /// Sends the application's message of `len` bytes with an ACK of everything.
    pub(super) fn send_message(&mut self, now: Time, len: u32) {
        self.send_ack(now);
        if let Some(s) = self.out.back_mut() {
            (s.len, s.flags) = (len, s.flags.with(Flags::PSH));
        }
    }
    /// Acknowledges what came before the segment at hand: the rest is still owed.
    #[cold]
    pub(super) fn send_early_ack(&mut self, now: Time, early: EarlyAck) {
        let next = self.stream.next();
        if early.number == next {
            return self.acknowledge_all(now, early.marking);
        }
        let offer = self.offer();
        let window = self.window.advertise(offer, next);
        self.push_ack(now, early.number, window, early.marking);
        self.acks.on_part_sent();
    }
    /// Acknowledges a segment that is not acceptable before the connection is open: the window is not scaled yet.
    pub(super) fn send_handshake_ack(&mut self, now: Time) {
        let window = self.window.advertised().min(UNSCALED);
        self.push_ack(now, self.stream.next(), window, self.ecn.ack());
    }
    /// Answers the SYN.
    pub(super) fn send_syn_ack(&mut self, now: Time) {
        self.handshake.on_syn_ack(now, &self.jiffies);
        let Marking { flags, ecn } = self.ecn.syn_ack();
        let mut s = self.segment(now, self.stream.next(), self.window.advertised().min(UNSCALED));
        s.flags = Flags::SYN.with(Flags::ACK).with(flags);
        s.ecn = ecn;
        self.out.push_back(s);
    }
    /// Sends one of the ACKs that SACK compression holds back, if there are any. In 6.1 its timestamp is that of the last segment's arrival
    /// (docs/models/tcp/receiver.md, "Timestamps").
    pub(super) fn flush_compressed(&mut self, now: Time) {
        let stamped = if self.kernel.rules().stamps_compressed_acks_anew { now } else { self.acks.held_last() };
        if self.acks.release_compressed() {
            self.send_ack(stamped);
        }
    }

    #[inline]
    fn push_ack(&mut self, now: Time, number: u64, window: u32, marking: Marking) {
        let mut s = self.segment(now, number, window);
        s.seq = 1 + u64::from(self.written);
        s.flags = Flags::ACK.with(marking.flags);
        s.ecn = marking.ecn;
        self.stats.dsacks += u64::from(self.sack.write(&mut s));
        self.ecn.write(&mut s);
        self.stats.acks += 1;
        if self.misbehaves == Some(Misbehaviour::Dividing) {
            self.divide(&s);
        }
        self.out.push_back(s);
    }
    // A segment without flags.
    #[inline]
    #[allow(clippy::field_reassign_with_default)]
    fn segment(&self, now: Time, ack: u64, window: u32) -> Segment {
        let mut s = Segment::default();
        s.ack = ack;
        s.wnd = window;
        s.tsval = clock(&self.jiffies, now);
        s.tsecr = self.timestamps.echo();
        s
    }
}
