//! The packets of one end of a connection: with numbers that do not wrap, in the order in which it sent them, and what they echo.

use super::echo::{Echoed, Echoes};
use super::order::{Order, Stamp};
use super::sequence::Unwrapped;
use crate::packet::Packet;
use std::ops::Range;
use tcpscape_base::{Ecn, Flags};

/// A packet, with numbers that do not wrap.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// When, ns since the capture's first packet.
    pub t: u64,
    /// Its number in the capture.
    pub frame: u64,
    /// Its first byte.
    pub start: u64,
    /// Bytes of payload.
    pub len: u32,
    /// Bytes of the IP packet.
    pub size: u32,
    /// Its flags.
    pub flags: Flags,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Order of sending.
    pub stamp: Stamp,
    /// TSecr; none where it echoes nothing, as on a SYN.
    pub tsecr: Option<u32>,
    /// Whether it was sent before one of its end that came earlier.
    pub is_late: Option<bool>,
    /// Its place in its end's order of sending, where the identification counts.
    pub place: Option<u64>,
    /// What its TSecr answers.
    pub echo: Option<Echoed>,
}

impl Seen {
    /// Its TSval; 0 none.
    pub fn tsval(&self) -> u32 {
        self.stamp.tsval.unwrap_or(0)
    }
    /// Its bytes of payload.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start + u64::from(self.len)
    }
    /// Time since what its TSecr answers; 0 unknown.
    pub fn echo_after(&self) -> u64 {
        self.echo.and_then(|e| e.after).unwrap_or(0)
    }
}

/// One end of a connection.
#[derive(Debug, Default)]
pub struct End {
    /// Its sequence numbers.
    pub seq: Unwrapped,
    order: Order,
    echoes: Echoes,
    ttl: Option<u8>,
}

impl End {
    /// Bytes of memory beside its own.
    pub fn heap(&self) -> usize {
        self.echoes.heap()
    }
    /// In which order its packets were sent.
    pub fn order(&self) -> &Order {
        &self.order
    }
    /// Time to live of its first packet.
    pub fn ttl(&self) -> Option<u8> {
        self.ttl
    }
    /// Takes its next packet, which may answer one of the other end.
    pub fn packet(&mut self, p: &Packet, t: u64, other: &mut End) -> Seen {
        let timestamps = p.options.timestamps;
        let stamp = Stamp { id: p.id, tsval: timestamps.map(|t| t.0) };
        let tsecr = timestamps.map(|t| t.1).filter(|&echo| echo != 0);
        let is_syn = p.flags.has(Flags::SYN);
        // Closed sockets and SYN queues number their packets apart.
        let is_apart = is_syn || p.flags.has(Flags::RST);
        self.ttl = self.ttl.or(Some(p.ttl));
        Seen {
            t,
            frame: p.frame,
            start: self.seq.near(if is_syn { p.seq.wrapping_add(1) } else { p.seq }),
            len: p.len,
            size: p.size,
            flags: p.flags,
            ecn: p.ecn,
            stamp,
            tsecr,
            is_late: if is_apart { None } else { self.order.is_late(stamp) },
            place: if is_apart { None } else { self.order.place(p.id) },
            echo: tsecr.and_then(|echo| other.echoes.echoed(echo, t)),
        }
    }
    /// Remembers the TSval of its packet, sent when it knew so many bytes of the other's to be delivered.
    pub fn mark(&mut self, seen: &Seen, delivered: u64) {
        if let Some(tsval) = seen.stamp.tsval {
            self.echoes.sent(tsval, seen.t, delivered);
        }
    }
}
