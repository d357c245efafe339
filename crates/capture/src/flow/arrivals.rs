//! Which bytes were seen, and why those that come late come late: the network changed their order, or they were lost before this place and
//! are repeated.
//!
//! Source: RFC 4737 (reordering: a packet that arrives after one sent later), RFC 5236 (its extent). The evidence, the first that speaks
//! decides: the IP identification and the TSval against those of the packet that made the hole, which was sent after what is missing; the
//! time, if it is less than a retransmission could take.
//! How it differs from Wireshark's rule (3 ms, or the initial RTT): no constant decides where the packet itself shows it.

use super::order::{Order, Stamp};
use std::collections::VecDeque;
use std::ops::Range;

/// Most holes remembered.
const MOST: usize = 4096;

/// Bytes missing below the highest seen.
#[derive(Clone, Copy, Debug)]
pub struct Hole {
    /// First byte.
    pub start: u64,
    /// Byte after the last.
    pub end: u64,
    /// When it arose.
    pub t: u64,
    /// Of the packet that made it.
    pub stamp: Stamp,
}

/// Why bytes came late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The original, out of order.
    Reordered,
    /// A retransmission: the original was lost before this place.
    Repeated,
    /// Nothing shows it.
    Unknown,
}

/// A part of an arriving segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Above everything seen.
    New,
    /// It fills a hole that arose then.
    Fill(Cause, u64),
    /// Seen before.
    Again,
}

/// Bytes of a segment of which the same is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First byte.
    pub start: u64,
    /// Byte after the last.
    pub end: u64,
    /// What is known.
    pub part: Part,
}

/// What shows why a segment came late.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// When it came.
    pub t: u64,
    /// When it was sent.
    pub stamp: Stamp,
    /// In which order its end sends.
    pub order: &'a Order,
    /// The least time that a retransmission takes, if known.
    pub least: Option<u64>,
}

/// The bytes of one direction that were seen.
#[derive(Debug, Default)]
pub struct Arrivals {
    high: Option<u64>,
    holes: VecDeque<Hole>,
    missing: u64,
    first: u64,
}

impl Arrivals {
    /// Bytes of memory beside its own.
    pub fn heap(&self) -> usize {
        self.holes.capacity() * size_of::<Hole>()
    }
    /// Byte after the highest seen.
    pub fn high(&self) -> Option<u64> {
        self.high
    }
    /// The connection's first byte is known to be this: what is missing from here on is a hole.
    pub fn begin(&mut self, first: u64) {
        if self.high.is_none() {
            (self.high, self.first) = (Some(first), first);
        }
    }
    /// The first byte seen, or known to be the connection's first.
    pub fn first(&self) -> Option<u64> {
        self.high.map(|_| self.first)
    }
    /// Bytes missing.
    #[cfg(test)]
    pub fn missing(&self) -> u64 {
        self.missing
    }
    /// Bytes seen, each once.
    pub fn bytes(&self) -> u64 {
        self.high.map_or(0, |h| (h - self.first).saturating_sub(self.missing))
    }

    /// Takes a segment; calls `each` with every piece of it, in ascending order.
    pub fn take(&mut self, range: Range<u64>, evidence: &Evidence<'_>, mut each: impl FnMut(Piece)) {
        let (from, to) = (range.start, range.end);
        let Some(high) = self.high else {
            (self.high, self.first) = (Some(to), from);
            return each(Piece { start: from, end: to, part: Part::New });
        };
        let mut at = from;
        if from < high {
            at = self.fill(from, to.min(high), evidence, &mut each);
        } else if from > high {
            self.missing += from - high;
            if self.holes.len() == MOST {
                self.holes.pop_front();
            }
            self.holes.push_back(Hole { start: high, end: from, t: evidence.t, stamp: evidence.stamp });
        }
        if to > at {
            each(Piece { start: at, end: to, part: Part::New });
        }
        self.high = Some(high.max(to));
    }

    fn fill(&mut self, from: u64, to: u64, evidence: &Evidence<'_>, each: &mut impl FnMut(Piece)) -> u64 {
        let mut at = from;
        let mut i = self.holes.partition_point(|h| h.end <= from);
        while let Some(&hole) = self.holes.get(i).filter(|h| h.start < to) {
            let (a, b) = (hole.start.max(at), hole.end.min(to));
            if at < a {
                each(Piece { start: at, end: a, part: Part::Again });
            }
            each(Piece { start: a, end: b, part: Part::Fill(evidence.why(&hole), hole.t) });
            self.missing -= b - a;
            at = b;
            match (hole.start < a, b < hole.end) {
                (false, false) => {
                    self.holes.remove(i);
                    continue;
                }
                (true, true) => {
                    self.holes[i].end = a;
                    self.holes.insert(i + 1, Hole { start: b, ..hole });
                    if self.holes.len() > MOST {
                        self.holes.pop_front(); // the segment ends in this hole: no other is looked at
                    }
                }
                (true, false) => self.holes[i].end = a,
                (false, true) => self.holes[i].start = b,
            }
            i += 1;
        }
        if at < to {
            each(Piece { start: at, end: to, part: Part::Again });
        }
        to
    }

    /// Bytes below `ack` were acknowledged; gives how many of them were never seen, and forgets their holes.
    pub fn acknowledged(&mut self, ack: u64) -> u64 {
        let mut unseen = 0;
        while let Some(h) = self.holes.front_mut().filter(|h| h.start < ack) {
            let end = h.end.min(ack);
            unseen += end - h.start;
            h.start = end;
            if h.start == h.end {
                self.holes.pop_front();
            }
        }
        self.missing -= unseen.min(self.missing);
        match self.high {
            Some(high) if ack > high => {
                self.high = Some(ack);
                unseen + (ack - high)
            }
            _ => unseen,
        }
    }
}

impl Evidence<'_> {
    fn why(&self, hole: &Hole) -> Cause {
        match self.order.is_after(self.stamp, hole.stamp) {
            Some(true) => Cause::Repeated,
            Some(false) => Cause::Reordered,
            None => match self.least {
                Some(least) if self.t.saturating_sub(hole.t) < least => Cause::Reordered,
                Some(_) => Cause::Repeated,
                None => Cause::Unknown,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(a: &mut Arrivals, from: u64, to: u64, t: u64, tsval: Option<u32>, least: Option<u64>) -> Vec<(u64, u64, Part)> {
        let mut out = Vec::new();
        let evidence = Evidence { t, stamp: Stamp { id: 0, tsval }, order: &Order::default(), least };
        a.take(from..to, &evidence, |p| out.push((p.start, p.end, p.part)));
        out
    }

    #[test]
    fn a_hole_is_filled_by_the_original_or_by_a_retransmission() {
        let mut a = Arrivals::default();
        assert_eq!(parts(&mut a, 0, 100, 1, Some(5), None), [(0, 100, Part::New)]);
        assert_eq!(parts(&mut a, 200, 300, 2, Some(6), None), [(200, 300, Part::New)]);
        assert_eq!(parts(&mut a, 400, 500, 3, Some(7), None), [(400, 500, Part::New)]);
        assert_eq!((a.missing(), a.bytes()), (200, 300));
        assert_eq!(parts(&mut a, 300, 400, 4, Some(6), None), [(300, 400, Part::Fill(Cause::Reordered, 3))]);
        assert_eq!(parts(&mut a, 100, 200, 9, Some(8), None), [(100, 200, Part::Fill(Cause::Repeated, 2))]);
        assert_eq!(parts(&mut a, 100, 600, 10, Some(9), None), [(100, 500, Part::Again), (500, 600, Part::New)]);
        assert_eq!((a.missing(), a.bytes()), (0, 600));
    }

    #[test]
    fn without_stamps_the_time_decides_and_without_an_rtt_nothing_does() {
        for (t, least, cause) in [(19, Some(10), Cause::Reordered), (20, Some(10), Cause::Repeated), (11, None, Cause::Unknown)] {
            let mut a = Arrivals::default();
            parts(&mut a, 0, 100, 1, None, least);
            parts(&mut a, 200, 300, 10, None, least);
            assert_eq!(parts(&mut a, 120, 150, t, None, least), [(120, 150, Part::Fill(cause, 10))]);
            assert_eq!(a.missing(), 70);
        }
    }

    #[test]
    fn a_hole_that_is_cut_again_and_again_leaves_no_more_of_them_than_are_remembered() {
        let mut a = Arrivals::default();
        parts(&mut a, 0, 1, 1, None, None);
        parts(&mut a, 100_000, 100_001, 2, None, None);
        let n = MOST as u64 + 100;
        for i in 1..=n {
            assert_eq!(parts(&mut a, 3 * i, 3 * i + 1, 3, None, Some(5)), [(3 * i, 3 * i + 1, Part::Fill(Cause::Reordered, 2))]);
        }
        assert_eq!((a.holes.len(), a.missing(), a.bytes()), (MOST, 99_999 - n, n + 2));
    }

    #[test]
    fn what_was_acknowledged_and_never_seen_is_counted_once() {
        let mut a = Arrivals::default();
        parts(&mut a, 0, 100, 1, None, None);
        parts(&mut a, 200, 300, 2, None, None);
        assert_eq!((a.acknowledged(150), a.acknowledged(150), a.acknowledged(400)), (50, 0, 150));
        assert_eq!(a.missing(), 0);
    }
}
