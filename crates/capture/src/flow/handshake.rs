//! What a connection's first packets agree on, and how long they took.
//!
//! Source: RFC 9293 §3.5, RFC 7323 §2 and §3 (options), RFC 2018 §2 (SACK-permitted), RFC 3168 §6.1.1 (ECN).

use crate::limits;
use crate::packet::Packet;
use tcpscape_base::Flags;

/// One end's SYN.
#[derive(Clone, Copy, Debug, Default)]
pub struct Syn {
    /// When it was first seen; `None` if it was not.
    pub t: Option<u64>,
    /// Its number in the capture.
    pub frame: u64,
    /// Times seen.
    pub times: u32,
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale shift.
    pub shift: Option<u8>,
    /// SACK permitted.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// ECN asked for, or agreed to.
    pub ecn: bool,
    /// Whether its options were cut off.
    pub is_cut: bool,
}

/// The handshake of a connection, by the ends' numbers (0 and 1) in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handshake {
    /// The SYNs of both ends.
    pub syn: [Syn; 2],
    /// Which end opened the connection; `None` where no SYN shows it.
    pub client: Option<usize>,
    /// When the ACK that completes it was seen.
    pub ack_t: Option<u64>,
    /// Its number in the capture.
    pub ack_frame: u64,
}

impl Handshake {
    /// Takes a packet with SYN.
    pub fn syn(&mut self, side: usize, t: u64, p: &Packet) {
        let is_answer = p.flags.has(Flags::ACK);
        self.client = self.client.or(Some(if is_answer { 1 - side } else { side }));
        let times = self.syn[side].times + 1;
        let frame = self.syn[side].t.map_or(p.frame, |_| self.syn[side].frame);
        let asked = Flags::ECE.with(Flags::CWR);
        self.syn[side] = Syn {
            t: self.syn[side].t.or(Some(t)),
            frame,
            times,
            mss: p.options.mss,
            shift: p.options.window_scale,
            sack: p.options.sack_permitted,
            timestamps: p.options.timestamps.is_some(),
            ecn: if is_answer { p.flags.has(Flags::ECE) } else { p.flags.has(asked) },
            is_cut: p.options.is_cut,
        };
    }
    /// Takes an ACK without SYN.
    pub fn ack(&mut self, side: usize, t: u64, frame: u64) {
        if self.ack_t.is_none() && self.client == Some(side) && self.syn[1 - side].t.is_some() {
            (self.ack_t, self.ack_frame) = (Some(t), frame);
        }
    }
    /// Its packets, in order.
    pub fn packets(&self) -> impl Iterator<Item = (u64, u64, limits::Handshake)> {
        use limits::Handshake::{Ack, Syn, SynAck};
        let of = |side: Option<usize>| side.and_then(|s| self.syn[s].t.map(|t| (t, self.syn[s].frame)));
        let (syn, answer) = (of(self.client), of(self.client.map(|c| 1 - c)));
        let ack = self.ack_t.map(|t| (t, self.ack_frame));
        [(syn, Syn), (answer, SynAck), (ack, Ack)].into_iter().filter_map(|(p, what)| p.map(|(t, frame)| (t, frame, what)))
    }
    /// Both SYNs, if they were seen with all of their options.
    pub fn both(&self) -> Option<&[Syn; 2]> {
        self.syn.iter().all(|s| s.t.is_some() && !s.is_cut).then_some(&self.syn)
    }
    /// Shift of the windows that `side` advertises (RFC 7323 §2.2: both SYNs carry the option, or none is scaled).
    pub fn shift(&self, side: usize) -> Option<u8> {
        let both = self.both()?;
        Some(if both.iter().all(|s| s.shift.is_some()) { both[side].shift.unwrap_or(0).min(14) } else { 0 })
    }
    /// Payload of a full segment.
    pub fn payload(&self) -> Option<u32> {
        let both = self.both()?;
        let mss = both.iter().filter_map(|s| s.mss).min()?;
        let options = if both.iter().all(|s| s.timestamps) { 12 } else { 0 };
        Some(u32::from(mss).saturating_sub(options).max(1))
    }
    /// Time from here to `side` and back, ns: what the handshake took on that part of the path, if none of its packets was repeated.
    pub fn part(&self, side: usize) -> Option<u64> {
        let client = self.client?;
        if self.syn.iter().any(|s| s.times != 1) {
            return None;
        }
        let (syn, answer) = (self.syn[client].t?, self.syn[1 - client].t?);
        if side == client {
            Some(self.ack_t?.saturating_sub(answer))
        } else {
            Some(answer.saturating_sub(syn))
        }
    }
}
