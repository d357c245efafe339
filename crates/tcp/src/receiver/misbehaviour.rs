//! A receiver that misbehaves: what it makes of a segment, and of its own acknowledgements.
//!
//! Source: Savage et al., TCP Congestion Control with a Misbehaving Receiver (CCR 1999) for acknowledging early and dividing; RFC 3540 §1 for concealing
//! marks. How it differs: it acknowledges no further than what has arrived, so that the sender always has a part of its data in flight; what a gap lacks is
//! readable, and counted apart. Not modelled: duplicate ACKs without a segment, acknowledgements ahead of everything that has arrived.

use super::buffer::Buffer;
use super::Receiver;
use tcpscape_base::{Ecn, Misbehaviour, Segment, Time};

impl Receiver {
    /// A segment comes to a receiver that misbehaves.
    #[cold]
    pub(super) fn take_misread(&mut self, now: Time, s: &Segment, buffer: &Buffer, how: Misbehaviour) {
        let next = self.stream.next();
        let is_ahead = how == Misbehaviour::Optimistic && self.handshake.is_open() && s.len > 0 && s.seq > next;
        if is_ahead {
            let gap = (s.seq - next) as u32;
            let whole = Segment { seq: next, len: s.len + gap, ..*s };
            self.take_segment(now, &whole, &Buffer::of(&whole, buffer.memory + gap));
            self.missing += if self.stream.next() > next { u64::from(gap) } else { 0 };
        } else if how == Misbehaviour::Concealing && s.ecn == Ecn::Ce {
            self.take_segment(now, &Segment { ecn: Ecn::Ect0, ..*s }, buffer);
        } else {
            self.take_segment(now, s, buffer);
        }
    }

    /// Bytes that count as received in order and had not arrived when they were acknowledged.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// The steps that lead to an acknowledgement leave before it.
    #[cold]
    pub(super) fn divide(&mut self, s: &Segment) {
        let before = self.divided;
        self.divided = before.max(s.ack);
        let bytes = s.ack.saturating_sub(before);
        for step in 1..PARTS {
            let part = bytes * step / PARTS;
            if part > bytes * (step - 1) / PARTS {
                self.stats.acks += 1;
                self.out.push_back(Segment { ack: before + part, nsack: 0, ..*s });
            }
        }
    }
}

/// Acknowledgements that one is divided into.
const PARTS: u64 = 8;
