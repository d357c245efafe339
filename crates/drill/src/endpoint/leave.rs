//! Packets that leave: what sender and receiver say, put together in packets of a script.
//!
//! Source: RFC 9293 §3.10.7.4 (number and window of the receiver on the sender's segments), RFC 7323 §2 and §3 (options of SYN and SYN-ACK).

use super::offer::Offer;
use super::{Departed, Endpoint, Stage};
use crate::wire::{Packet, TcpOption};
use std::collections::VecDeque;
use tcpscape_base::{Ecn, Flags, Segment, Time};

impl Endpoint {
    // ---- resets ----

    /// RFC 9293 §3.10.7.1: a segment for a connection that is not there is answered by a reset.
    pub(super) fn reset_for(&mut self, now: Time, p: &Packet) {
        if p.flags.has(Flags::RST) {
            return;
        }
        let flags = if p.flags.has(Flags::ACK) { Flags::RST } else { Flags::RST.with(Flags::ACK) };
        let (seq, ack) = match p.ack.filter(|_| p.flags.has(Flags::ACK)) {
            Some(ack) => (ack, None),
            None => (0, Some(p.seq + u64::from(p.len) + u64::from(p.flags.has(Flags::SYN)))),
        };
        self.leave(now, Packet { flags, seq, ack, win: Some(0), ecn: Some(Ecn::NotEct), options: Some(Vec::new()), ..Packet::default() });
    }

    /// A reset leaves, and the connection is gone (RFC 9293 §3.10.4, §3.6.1).
    pub fn abort(&mut self, now: Time, in_answer: Option<&Packet>) {
        self.stage = Stage::Closed;
        if let Some(p) = in_answer {
            return self.reset_for(now, p);
        }
        let (seq, ack) = (self.sender.snd_nxt(), Some(self.receiver.rcv_nxt()));
        let options = self.stamped(self.tsval, now);
        let packet =
            Packet { flags: Flags::RST.with(Flags::ACK), seq, ack, ecn: Some(Ecn::NotEct), options: Some(options), ..Packet::default() };
        self.leave(now, packet);
    }

    // ---- what sender and receiver say ----

    /// Takes what the machines have to send and lets it leave.
    pub(super) fn collect(&mut self, now: Time) {
        let mut acks: VecDeque<Segment> = std::iter::from_fn(|| self.receiver.poll_transmit(now)).collect();
        let sent: Vec<(Segment, Time)> =
            std::iter::from_fn(|| self.sender.poll_transmit()).map(|t| (t.segment, t.departure.max(now))).collect();
        match self.stage {
            Stage::SynSent => sent.iter().for_each(|(s, _)| self.leave_syn(now, s)),
            Stage::SynReceived => acks.iter().for_each(|s| self.leave_syn(now, s)),
            Stage::Closed => {}
            Stage::Open => {
                let carries_data = sent.iter().any(|(s, _)| s.len > 0);
                let last = if carries_data { acks.pop_back() } else { None };
                let answered = !acks.is_empty();
                acks.iter().for_each(|a| self.leave_ack(now, self.sender.snd_nxt(), a));
                for (s, departure) in &sent {
                    // Both machines answer a segment that is not acceptable; one answer leaves.
                    if s.len == 0 && answered && s.seq > self.sender.bytes_acked() {
                        continue;
                    }
                    self.leave_data(now, *departure, s, last.as_ref());
                }
            }
        }
    }

    fn leave_syn(&mut self, now: Time, s: &Segment) {
        let is_syn = s.flags.has(Flags::SYN);
        if !is_syn {
            return self.leave_ack(now, 1, s);
        }
        let own = Offer { mss: self.own_mss(), ..self.agreed };
        let mut options = vec![TcpOption::Mss(own.mss)];
        let stamps = TcpOption::Timestamps { val: stamp(now), ecr: if self.stage == Stage::SynSent { 0 } else { s.tsecr } };
        if own.sack {
            options.push(TcpOption::SackOk);
        }
        if own.timestamps {
            options.push(stamps);
        }
        if own.scale.is_some() {
            options.push(TcpOption::WindowScale(self.receiver.wscale()));
        }
        let win = if self.stage == Stage::SynSent { self.receiver.window().min(MOST_WINDOW) } else { s.wnd };
        let ack = s.flags.has(Flags::ACK).then_some(s.ack);
        let packet =
            Packet { flags: s.flags, seq: s.seq, ack, win: Some(win), ecn: Some(s.ecn), options: Some(options), ..Packet::default() };
        self.leave(now, packet);
    }

    fn leave_ack(&mut self, now: Time, seq: u64, a: &Segment) {
        let packet = self.packet(now, &Segment { seq, len: 0, ..*a }, a);
        self.leave(now, packet);
    }

    /// A segment of the sender leaves at `departure`; `ack`, or what the receiver says now, is what it acknowledges.
    pub(super) fn leave_data(&mut self, now: Time, departure: Time, s: &Segment, ack: Option<&Segment>) {
        let own = match ack {
            Some(a) => *a,
            None => {
                self.receiver.write(now, 0);
                self.receiver.poll_transmit(now).unwrap_or_default()
            }
        };
        let echoes = own.flags.without(Flags::ACK.with(Flags::PSH));
        let packet = self.packet(departure, &Segment { flags: s.flags.with(echoes), ..*s }, &own);
        self.leave(departure, packet);
    }

    /// A packet of the bytes of `s`, with the acknowledgement of `a`.
    fn packet(&mut self, now: Time, s: &Segment, a: &Segment) -> Packet {
        let (mut flags, mut len) = (s.flags, s.len);
        if len > 0 && self.fin.is_some_and(|fin| s.seq + u64::from(len) == fin + 1) {
            len -= 1;
            flags = flags.with(Flags::FIN);
            if len == 0 {
                flags = flags.without(Flags::PSH);
            }
        }
        let mut options = self.stamped(a.tsecr, now);
        let blocks: Vec<(u64, u64)> = a.sacks().collect();
        if !blocks.is_empty() {
            options.push(TcpOption::Sacks(blocks));
        }
        let win = (a.wnd >> self.own_scale()).min(MOST_WINDOW);
        Packet { flags, seq: s.seq, len, ack: Some(a.ack), win: Some(win), ecn: Some(s.ecn), options: Some(options), ..Packet::default() }
    }

    fn stamped(&self, ecr: u32, now: Time) -> Vec<TcpOption> {
        let stamps = TcpOption::Timestamps { val: stamp(now), ecr };
        if self.agreed.timestamps {
            vec![stamps]
        } else {
            Vec::new()
        }
    }
    pub(super) fn own_scale(&self) -> u8 {
        self.agreed.scale.map_or(0, |_| self.receiver.wscale())
    }

    /// A packet leaves, not before those that wait in the host's queue.
    fn leave(&mut self, now: Time, packet: Packet) {
        let now = self.out.back().map_or(now, |last| last.at.max(now));
        let cut = if self.settings.offload { 0 } else { self.agreed.payload() };
        if cut == 0 || packet.len <= cut {
            return self.out.push_back(Departed { at: now, packet });
        }
        let mut start = 0;
        while start < packet.len {
            let len = cut.min(packet.len - start);
            let is_last = start + len == packet.len;
            let flags = if is_last { packet.flags } else { packet.flags.without(Flags::PSH.with(Flags::FIN)) };
            self.out.push_back(Departed { at: now, packet: Packet { seq: packet.seq + u64::from(start), len, flags, ..packet.clone() } });
            start += len;
        }
    }
}

/// The clock of outgoing timestamps: milliseconds, never 0.
fn stamp(now: Time) -> u32 {
    (now.0 / 1_000_000) as u32 + 1
}

/// The largest window that the header's field holds.
const MOST_WINDOW: u32 = 65_535;
