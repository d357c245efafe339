//! The packets of one end of a connection: with numbers that do not wrap, in the order in which it sent them, and what they echo.
//!
//! Order: RFC 6864 §4 (the IP identification's use), RFC 7323 §5.3 (TSval never decreases). Linux counts the identification up by one for each
//! segment of a connected socket, also with DF set (`docs/diagnosis.md` has the packets that show it); ends that draw it at random are recognised.
//!
//! Echoes: the time from a packet to the other end's answer, also where the ACK number is ambiguous. RFC 7323 §3 (an ACK echoes the TSval of the
//! earliest segment that it acknowledges; data echo the newest ACK's) and §4.1. What is not modelled: a sender whose clock ticks more slowly than its
//! packets follow; only a tick's first packet is timed.

use super::sequence::Unwrapped;
use crate::packet::Packet;
use std::collections::VecDeque;
use std::ops::Range;
use tcpscape_base::wire::ahead;
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
    /// Bytes of options beside those that its end's data always have: of SACK blocks.
    pub sack_bytes: u32,
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
    /// The smallest headers of its data, bytes.
    headers: Option<u32>,
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
        let headers = p.size.saturating_sub(p.len);
        if p.len > 0 {
            self.headers = Some(self.headers.map_or(headers, |least| least.min(headers)));
        }
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
            sack_bytes: headers - self.headers.unwrap_or(headers).min(headers),
        }
    }
    /// Remembers the TSval of its packet, sent when it knew so many bytes of the other's to be delivered.
    pub fn mark(&mut self, seen: &Seen, delivered: u64) {
        if let Some(tsval) = seen.stamp.tsval {
            self.echoes.sent(tsval, seen.t, delivered);
        }
    }
}

/// A larger step than this is no count of one connection's packets.
const STEP: i16 = 4096;
/// Steps of a count that show that the field is one.
const SHOWN: i32 = 4;

/// The packets of one end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    id: Option<u16>,
    /// Steps that a counter makes, less those that it does not make.
    score: i32,
    tsval: Option<u32>,
    /// The highest identification as a number that does not wrap.
    high: u64,
}

/// When a packet was sent, by what it carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// IP identification.
    pub id: u16,
    /// TSval.
    pub tsval: Option<u32>,
}

impl Order {
    /// Takes the next packet seen; gives whether it was sent before one that came earlier; `None` where nothing shows it.
    pub fn is_late(&mut self, s: Stamp) -> Option<bool> {
        let by_id = self.by_id(s.id);
        let older = match (s.tsval, self.tsval) {
            (Some(new), Some(last)) => Some(ahead(last, new) < 0),
            _ => None,
        };
        if older != Some(true) {
            self.tsval = s.tsval.or(self.tsval);
        }
        by_id.or(older)
    }

    fn by_id(&mut self, id: u16) -> Option<bool> {
        let Some(last) = self.id else {
            self.id = Some(id);
            return None;
        };
        let step = id.wrapping_sub(last) as i16;
        match step {
            1..=STEP => {
                self.score = (self.score + 1).min(64);
                self.id = Some(id);
                self.high += step as u64;
            }
            0 if id == 0 => self.score = (self.score - 1).max(-64),
            0 => {}
            step if (-STEP..0).contains(&step) => self.score = (self.score + 1).min(64),
            _ => {
                self.score = (self.score - 4).max(-64);
                self.id = Some(id);
                self.high += 1 << 16;
            }
        }
        self.counts().then_some((-STEP..0).contains(&step))
    }

    /// The place of the packet with this identification among its end's, where the field shows it.
    pub fn place(&self, id: u16) -> Option<u64> {
        let behind = self.id.map_or(0, |high| high.wrapping_sub(id) as i16);
        self.counts().then(|| (self.high + (1 << 16)).saturating_add_signed(-i64::from(behind)))
    }

    /// Whether the field is a count of the packets.
    pub fn counts(&self) -> bool {
        self.score >= SHOWN
    }

    /// Whether `a` was sent after `b`; `None` where neither field shows it.
    pub fn is_after(&self, a: Stamp, b: Stamp) -> Option<bool> {
        if self.counts() {
            return Some((a.id.wrapping_sub(b.id) as i16) > 0);
        }
        match (a.tsval, b.tsval) {
            (Some(a), Some(b)) if a != b => Some(ahead(a, b) < 0),
            _ => None,
        }
    }
}

/// Most TSvals remembered of one end.
const MOST: usize = 1024;

/// A TSval and the packet that had it first.
#[derive(Clone, Copy, Debug)]
struct Mark {
    tsval: u32,
    t: u64,
    /// Bytes that the packets with this TSval had acknowledged and SACKed.
    delivered: u64,
    is_echoed: bool,
}

/// What the other end's echo says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echoed {
    /// Since the first packet with that TSval; `None` if it was echoed before.
    pub after: Option<u64>,
    /// What the answering end knew to be delivered.
    pub delivered: u64,
}

/// The TSvals of one end that are not yet echoed by the other.
#[derive(Clone, Debug, Default)]
pub struct Echoes {
    marks: VecDeque<Mark>,
}

impl Echoes {
    /// Bytes of memory beside its own.
    pub fn heap(&self) -> usize {
        self.marks.capacity() * size_of::<Mark>()
    }
    /// A packet of this end, which acknowledges and SACKs so many bytes of the other's data.
    pub fn sent(&mut self, tsval: u32, t: u64, delivered: u64) {
        match self.marks.back_mut() {
            Some(last) if last.tsval == tsval => last.delivered = last.delivered.max(delivered),
            Some(last) if ahead(last.tsval, tsval) < 0 => {}
            _ => {
                if self.marks.len() == MOST {
                    self.marks.pop_front();
                }
                self.marks.push_back(Mark { tsval, t, delivered, is_echoed: false });
            }
        }
    }
    /// A packet of the other end that echoes `tsecr`.
    pub fn echoed(&mut self, tsecr: u32, t: u64) -> Option<Echoed> {
        while self.marks.front().is_some_and(|m| ahead(tsecr, m.tsval) < 0) {
            self.marks.pop_front();
        }
        let mark = self.marks.front_mut().filter(|m| m.tsval == tsecr)?;
        let after = (!mark.is_echoed).then(|| t.saturating_sub(mark.t));
        mark.is_echoed = true;
        Some(Echoed { after, delivered: mark.delivered })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(id: u16, tsval: u32) -> Stamp {
        Stamp { id, tsval: Some(tsval) }
    }

    #[test]
    fn a_counted_field_shows_late_packets_over_its_wrap() {
        let mut o = Order::default();
        let late: Vec<_> = [65_531, 65_533, 65_532, 65_535, 1, 0, 2].map(|id| o.is_late(stamp(id, 7))).to_vec();
        assert_eq!(late, [None, Some(false), Some(false), Some(false), Some(false), Some(true), Some(false)]);
        assert_eq!(o.is_after(stamp(1, 9), stamp(65_530, 9)), Some(true));
    }

    #[test]
    fn without_a_count_timestamps_decide_and_equal_ones_decide_nothing() {
        let mut o = Order::default();
        let late: Vec<_> = [(9, 5), (4_000, 6), (77, 5), (60_000, 6)].map(|(id, v)| o.is_late(stamp(id, v))).to_vec();
        assert_eq!(late, [None, Some(false), Some(true), Some(false)]);
        assert_eq!((o.is_after(stamp(0, 6), stamp(0, 6)), o.is_after(stamp(0, 7), stamp(0, 6))), (None, Some(true)));
        let zeros: Vec<_> = (0..9).map(|_| o.is_late(Stamp::default())).collect();
        assert!(zeros.iter().all(Option::is_none));
    }

    #[test]
    fn the_first_echo_of_the_first_packet_of_a_tick_is_timed() {
        let mut e = Echoes::default();
        e.sent(u32::MAX, 100, 1);
        e.sent(u32::MAX, 150, 2);
        e.sent(3, 200, 3);
        e.sent(u32::MAX, 210, 4); // an old packet that came late
        assert_eq!(e.echoed(u32::MAX, 1_100), Some(Echoed { after: Some(1_000), delivered: 2 }));
        assert_eq!(e.echoed(u32::MAX, 1_200), Some(Echoed { after: None, delivered: 2 }));
        assert_eq!(e.echoed(3, 1_300), Some(Echoed { after: Some(1_100), delivered: 3 }));
        assert_eq!((e.echoed(u32::MAX, 1_400), e.echoed(9, 1_400)), (None, None));
    }
}
