//! Packets that come: what a connection does at each stage, and the segment of a packet, in the clocks of the sender and of the receiver.
//!
//! Source: RFC 9293 §3.10.7, RFC 5961 §5 (an ACK of what was not sent), RFC 7323 §3.2 (timestamps).

use super::offer::Offer;
use super::{make_sender, Endpoint, Stage};
use crate::wire::{Packet, TcpOption};
use tcpscape_base::{Flags, Segment, Time};

impl Endpoint {
    /// A packet of the peer.
    pub fn on_packet(&mut self, now: Time, p: &Packet) {
        let syn = p.flags.has(Flags::SYN);
        match self.stage {
            Stage::SynSent if p.flags.has(Flags::RST) => self.stage = Stage::Closed,
            Stage::SynSent if syn && !p.flags.has(Flags::ACK) => self.refusal = Some("a simultaneous open".into()),
            Stage::SynSent if syn && p.ack == Some(1) => self.on_syn_ack(now, p),
            Stage::SynSent => self.refusal = Some("a segment that is no answer to the SYN".into()),
            Stage::SynReceived if syn => {
                let segment = self.syn_for_receiver(p);
                self.receiver.on_segment(now, &segment, 0);
            }
            Stage::SynReceived if p.flags.has(Flags::RST) => self.stage = Stage::Closed,
            Stage::SynReceived => self.on_third(now, p),
            Stage::Open => self.on_segment(now, p),
            Stage::Closed => self.reset_for(now, p),
        }
        self.collect(now);
    }

    /// The SYN-ACK: what was not known when the SYN left is known now, so that a sender with the right segment size takes the place of the one
    /// that sent it, with the same past.
    fn on_syn_ack(&mut self, now: Time, p: &Packet) {
        self.agreed = Offer::of(p).and(Offer::own(&self.settings, self.buffers));
        let ecn = self.settings.ecn == 1;
        self.ecn = ecn && p.flags.has(Flags::ECE) && !p.flags.has(Flags::CWR);
        let Ok(sender) = make_sender(&self.settings, self.clock, self.buffers, self.agreed, ecn) else { return };
        self.sender = sender;
        self.sender.connect(self.began, self.began);
        while self.sender.next_event().is_some_and(|t| t <= now) {
            let due = self.sender.next_event().unwrap_or(now);
            self.sender.on_timer(due);
        }
        while self.sender.poll_transmit().is_some() {}
        let s = self.segment(p);
        self.sender.on_segment(now, &s);
        let mut ack = Segment { seq: 1, flags: Flags::ACK, ack: 1, tsval: s.tsval.max(1), ..Segment::default() };
        if !self.agreed.timestamps {
            ack.tsval = 1;
        }
        self.receiver.on_segment(now, &ack, 0);
        while self.receiver.poll_transmit(now).is_some() {}
        self.stage = Stage::Open;
    }

    /// What answers the SYN-ACK: the connection is open on both sides of the model.
    fn on_third(&mut self, now: Time, p: &Packet) {
        if !p.flags.has(Flags::ACK) {
            return;
        }
        if p.ack != Some(1) {
            self.refusal = Some("an ACK of what was not sent, during the handshake".into());
            return;
        }
        let s = self.segment(p);
        self.receiver.on_segment(now, &self.for_receiver(s), 0);
        if !self.receiver.is_open() {
            return;
        }
        let flags = Flags::SYN.with(Flags::ACK).with(if self.ecn { Flags::ECE } else { Flags::default() });
        self.sender.on_segment(now, &Segment { seq: 0, len: 0, flags, ..s });
        while self.sender.poll_transmit().is_some() {}
        self.data_segs_in += u64::from(s.len > 0);
        self.stage = Stage::Open;
    }

    fn on_segment(&mut self, now: Time, p: &Packet) {
        if p.flags.has(Flags::RST) {
            if p.seq == self.receiver.rcv_nxt() {
                self.stage = Stage::Closed;
            }
            return;
        }
        if !p.flags.has(Flags::ACK) && !p.flags.has(Flags::SYN) {
            return; // RFC 9293 §3.10.7.4: "if the ACK bit is off, drop the segment"
        }
        if p.ack.is_some_and(|ack| ack > self.sender.snd_nxt()) {
            // RFC 5961 §5: it acknowledges what was not sent; it is dropped and answered.
            let seq = self.sender.snd_nxt();
            return self.leave_data(now, now, &Segment { seq, flags: Flags::ACK, ..Segment::default() }, None);
        }
        let s = self.segment(p);
        let is_duplicate = s.len == 0 && s.ack == self.sender.bytes_acked() + 1 && self.sender.snd_nxt() > s.ack && s.nsack == 0;
        if is_duplicate && !self.agreed.sack && s.wnd == self.sender.info().rwnd && !s.flags.has(Flags::FIN) {
            self.refusal = Some("a duplicate ACK without SACK: the model's sender repairs by SACK alone".into());
            return;
        }
        self.data_segs_in += u64::from(s.len > 0);
        if s.seq <= self.receiver.rcv_nxt() + u64::from(self.receiver.window()) && !s.flags.has(Flags::SYN) {
            self.sender.on_segment(now, &s);
        }
        self.receiver.on_segment(now, &self.for_receiver(s), 0);
    }

    // ---- the segment of a packet ----

    /// The segment of a packet that came, for the sender.
    fn segment(&mut self, p: &Packet) -> Segment {
        let is_syn = p.flags.has(Flags::SYN);
        let scale = if is_syn { 0 } else { self.agreed.scale.unwrap_or(0) };
        let mut s = Segment {
            seq: p.seq,
            len: p.len,
            ack: p.ack.unwrap_or(0),
            wnd: p.win.unwrap_or(0) << scale,
            flags: p.flags,
            ecn: p.ecn.unwrap_or_default(),
            ..Segment::default()
        };
        if self.agreed.timestamps {
            // A segment without the option says nothing of time (RFC 7323 §3.2).
            let (val, ecr) = p.timestamps().unwrap_or((self.tsval, 0));
            self.tsval = val;
            (s.tsval, s.tsecr) = (val, self.live_echo(ecr));
        }
        if self.agreed.sack {
            let blocks = p.options().iter().find_map(|o| match o {
                TcpOption::Sacks(blocks) => Some(blocks.as_slice()),
                _ => None,
            });
            blocks.unwrap_or_default().iter().for_each(|&block| s.push_sack(block));
        }
        s
    }

    /// The same for the receiver, whose clock of timestamps is another one.
    fn for_receiver(&self, s: Segment) -> Segment {
        let ahead = (self.clock.since_tick(Time::ZERO) / 1_000_000) as u32 + RECEIVER_CLOCK;
        Segment { tsecr: if s.tsecr == 0 { 0 } else { s.tsecr.wrapping_add(ahead).wrapping_sub(1) }, ..s }
    }

    pub(super) fn syn_for_receiver(&mut self, syn: &Packet) -> Segment {
        let asks = Flags::ECE.with(Flags::CWR).with(Flags::AE);
        let s = self.segment(syn);
        let flags = if self.ecn { s.flags.without(Flags::AE) } else { s.flags.without(asks) };
        Segment { flags, ack: 0, ..s }
    }

    /// The timestamp that left for the one that a script's peer echoes.
    fn live_echo(&self, echo: u32) -> u32 {
        if echo == 0 {
            return 0;
        }
        let nearest = || self.echoes.iter().min_by_key(|(&script, _)| script.abs_diff(echo));
        match self.echoes.get(&echo) {
            Some(&live) => live,
            None => nearest().map_or(echo, |(&script, &live)| live.wrapping_add(echo.wrapping_sub(script))),
        }
    }
    /// A packet with this timestamp in the script left with that one.
    pub fn learn_timestamp(&mut self, script: u32, live: u32) {
        self.echoes.entry(script).or_insert(live);
    }
}

/// How far the receiver's clock of timestamps is ahead of the sender's, besides the phase of its ticks, ms.
const RECEIVER_CLOCK: u32 = 1_000_000;
