//! The data of one end, as its packets came here: which bytes were seen, and why those that come late come late: the network changed their order,
//! or they were lost before this place and are repeated.
//!
//! Source: RFC 4737 (reordering: a packet that arrives after one sent later), RFC 5236 (its extent). The evidence, the first that speaks
//! decides: the IP identification and the TSval against those of the packet that made the hole, which was sent after what is missing; the
//! time, if it is less than a retransmission could take.
//! How it differs from Wireshark's rule (3 ms, or the initial RTT): no constant decides where the packet itself shows it.
//!
//! A host that hands the packets of both directions to its capture from several queues may put an acknowledgement before the data that it
//! acknowledges. Such data are the original if the acknowledgement echoes a TSval that is not older (RFC 7323 §4.3: what it answers was sent no
//! earlier), or if they come so soon after it that only the capture can have held them back.

use super::end::{Order, Seen, Stamp};
use super::rtt::Times;
use super::sequence::shown;
use super::window::Window;
use std::collections::VecDeque;
use std::ops::Range;
use tcpscape_base::wire::ahead;

/// Copies that the network makes are looked for among so many packets.
const COPIES: usize = 64;
/// Bytes beyond the window that no sender's mistake explains.
const FAR: u64 = 1 << 30;
/// A packet without identification that looks the same is a copy if it comes so soon, ns.
const AT_ONCE: u64 = 1_000_000;

/// What of a packet a copy of it has too: identification, first byte and TSval.
type Digest = (u16, u32, u32);

/// The data as sent.
#[derive(Debug, Default)]
pub struct Data {
    arrivals: Arrivals,
    upstream: Times,
    span: Option<(u64, u64)>,
    last_t: u64,
    copies: Option<Box<[Digest; COPIES]>>,
    fin: Option<u64>,
}

impl Data {
    /// Bytes of memory beside its own.
    pub fn heap(&self) -> usize {
        self.arrivals.heap() + self.copies.as_ref().map_or(0, |c| size_of_val(&**c))
    }
    /// What was seen.
    pub fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }
    /// From the other end's packets to data that echo them.
    pub fn upstream(&self) -> &Times {
        &self.upstream
    }
    /// First and last data packet.
    pub fn span(&self) -> Option<(u64, u64)> {
        self.span
    }
    /// When the last packet came that is no copy, ns; 0 before one.
    pub fn last_t(&self) -> u64 {
        self.last_t
    }
    /// The connection's first byte is known to be this.
    pub fn begin(&mut self, first: u64) {
        self.arrivals.begin(first);
    }
    /// A FIN has this number, which counts as a byte and is none of the data.
    pub fn ends(&mut self, fin: u64) {
        self.fin = Some(fin);
    }
    /// An acknowledgement number without the FIN, where it covers that.
    pub fn without_fin(&self, ack: u64) -> u64 {
        let fin = self.fin.filter(|&fin| self.arrivals.high().map_or(true, |high| fin >= high));
        fin.map_or(ack, |fin| ack.min(fin))
    }
    /// A packet acknowledges the bytes below `ack`; gives how many of them had not been seen.
    pub fn acknowledged(&mut self, ack: u64, by: &Seen) -> u64 {
        let ack = self.without_fin(ack);
        self.span.map_or(0, |_| self.arrivals.acknowledged(ack, by.t, by.frame, by.tsecr))
    }

    /// Whether it lies so far from all others that it is none of the connection's.
    pub fn is_out_of_window(&self, s: &Seen, window: &Window) -> bool {
        let Some(high) = self.arrivals.high() else { return false };
        let is_beyond = window.edge().is_some_and(|edge| s.start > edge.max(high) + window.most().max(1 << 16));
        is_beyond || s.start > high + FAR || s.range().end + FAR < high
    }

    /// Takes the times of a packet.
    pub fn timed(&mut self, s: &Seen) {
        self.span = Some((self.span.map_or(s.t, |x| x.0), s.t));
        if let Some(after) = s.echo.and_then(|e| e.after) {
            self.upstream.add(after);
        }
    }

    /// Whether the same packet has just been seen: the network made a copy (a retransmission has another identification, or another TSval).
    pub fn is_copy(&mut self, s: &Seen) -> bool {
        if s.stamp.id == 0 && s.stamp.tsval.is_none() {
            return false;
        }
        let copies = self.copies.get_or_insert_with(|| Box::new([(0, 0, 0); COPIES]));
        let place = if s.stamp.id == 0 { (s.start >> 8) as usize } else { usize::from(s.stamp.id) } % COPIES;
        let this = (s.stamp.id, s.start as u32, s.tsval());
        let is_same = std::mem::replace(&mut copies[place], this) == this;
        let is_at_once = s.stamp.id != 0 || s.t.saturating_sub(self.last_t) < AT_ONCE;
        is_same && is_at_once && self.arrivals.high().is_some_and(|h| s.start < h)
    }

    /// Takes its bytes; calls `each` with every piece of it, in ascending order.
    pub fn take(&mut self, s: &Seen, evidence: &Evidence<'_>, each: impl FnMut(Piece)) {
        self.arrivals.take(s.range(), evidence, each);
        self.last_t = s.t;
    }

    /// What the sender had in flight when it sent this, by the ACK that it echoes; 0 unknown.
    pub fn flight_by_echo(&self, s: &Seen) -> u32 {
        let (Some(echo), Some(high)) = (s.echo, self.arrivals.high()) else { return 0 };
        u32::try_from(shown(high).saturating_sub(echo.delivered)).unwrap_or(u32::MAX)
    }
}

/// Most holes remembered.
const MOST: usize = 4096;
/// Most of them that were acknowledged.
const MOST_ACKNOWLEDGED: usize = 64;
/// A host's capture holds packets back for less, ns: the time that a processor takes to empty a queue of its network card.
const HELD_BACK: u64 = 1_000_000;

/// Bytes missing below the highest seen.
#[derive(Clone, Copy, Debug)]
pub struct Hole {
    /// First byte.
    pub start: u64,
    /// Byte after the last.
    pub end: u64,
    /// When it arose, or was acknowledged.
    pub t: u64,
    /// Of the packet that made it; of one that was acknowledged what the acknowledgement echoes.
    pub stamp: Stamp,
    /// The frame that acknowledged it; 0 none.
    pub by: u64,
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
    /// The original, which the capture has after its acknowledgement, this frame.
    Late(u64),
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
    /// The least time from a segment here to its acknowledgement, if known.
    pub answer: Option<u64>,
}

/// The bytes of one direction that were seen.
#[derive(Debug, Default)]
pub struct Arrivals {
    high: Option<u64>,
    holes: VecDeque<Hole>,
    /// So many of the first holes were acknowledged.
    acknowledged: usize,
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
                self.forget();
            }
            self.holes.push_back(Hole { start: high, end: from, t: evidence.t, stamp: evidence.stamp, by: 0 });
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
            each(Piece { start: a, end: b, part: evidence.part(&hole) });
            let is_acknowledged = i < self.acknowledged;
            self.missing -= if is_acknowledged { 0 } else { b - a };
            at = b;
            match (hole.start < a, b < hole.end) {
                (false, false) => {
                    self.holes.remove(i);
                    self.acknowledged -= usize::from(is_acknowledged);
                    continue;
                }
                (true, true) => {
                    self.holes[i].end = a;
                    self.holes.insert(i + 1, Hole { start: b, ..hole });
                    self.acknowledged += usize::from(is_acknowledged);
                    if self.holes.len() > MOST {
                        self.forget(); // the segment ends in this hole: no other is looked at
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

    /// Forgets the first hole.
    fn forget(&mut self) {
        self.holes.pop_front();
        self.acknowledged = self.acknowledged.saturating_sub(1);
    }

    /// Frame `by` acknowledged the bytes below `ack` at `t`, and echoed `tsecr`; gives how many of them had not been seen.
    pub fn acknowledged(&mut self, ack: u64, t: u64, by: u64, tsecr: Option<u32>) -> u64 {
        let stamp = Stamp { id: 0, tsval: tsecr };
        let mut unseen = 0;
        while let Some(h) = self.holes.get_mut(self.acknowledged).filter(|h| h.start < ack) {
            let rest = Hole { start: ack, ..*h };
            *h = Hole { end: h.end.min(ack), t, stamp, by, ..*h };
            unseen += h.end - h.start;
            self.acknowledged += 1;
            if ack < rest.end {
                self.holes.insert(self.acknowledged, rest);
            }
        }
        self.missing -= unseen.min(self.missing);
        if let Some(high) = self.high.filter(|&high| ack > high) {
            self.holes.push_back(Hole { start: high, end: ack, t, stamp, by });
            self.acknowledged += 1;
            self.high = Some(ack);
            unseen += ack - high;
        }
        while self.acknowledged > MOST_ACKNOWLEDGED || self.holes.len() > MOST {
            self.forget();
        }
        unseen
    }
}

impl Evidence<'_> {
    fn part(&self, hole: &Hole) -> Part {
        match hole.by {
            0 => Part::Fill(self.why(hole), hole.t),
            by if self.is_held_back(hole) => Part::Late(by),
            _ => Part::Again,
        }
    }

    /// Whether bytes that had been acknowledged before they came are the original.
    fn is_held_back(&self, acknowledged: &Hole) -> bool {
        let is_answered = self.stamp.tsval.zip(acknowledged.stamp.tsval).is_some_and(|(own, echo)| ahead(own, echo) >= 0);
        is_answered || self.t.saturating_sub(acknowledged.t) + self.answer.unwrap_or(0) < HELD_BACK
    }

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
        let evidence = Evidence { t, stamp: Stamp { id: 0, tsval }, order: &Order::default(), least, answer: None };
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
        let mut acknowledged = |ack| a.acknowledged(ack, 3, 9, None);
        assert_eq!((acknowledged(150), acknowledged(150), acknowledged(400)), (50, 0, 150));
        assert_eq!(a.missing(), 0);
    }

    #[test]
    fn what_comes_after_its_acknowledgement_is_the_original_if_that_answers_it_or_has_just_passed() {
        const LATE: u64 = 7 * HELD_BACK;
        // The time after the acknowledgement, TSval, TSecr of the acknowledgement.
        for (after, tsval, tsecr, is_original) in [
            (LATE, Some(5), Some(5), true),
            (LATE, Some(5), Some(6), true),
            (LATE, Some(6), Some(5), false),
            (LATE, None, None, false),
            (2_000, Some(6), Some(5), true),
            (2_000, None, None, true),
        ] {
            let mut a = Arrivals::default();
            parts(&mut a, 0, 100, 1, Some(4), None);
            parts(&mut a, 200, 300, 1, Some(5), None);
            assert_eq!(a.acknowledged(400, 10, 77, tsecr), 200);
            let part = if is_original { Part::Late(77) } else { Part::Again };
            assert_eq!(parts(&mut a, 120, 160, 10 + after, tsval, None), [(120, 160, part)]);
            let whole = [
                (100, 120, part),
                (120, 160, Part::Again),
                (160, 200, part),
                (200, 300, Part::Again),
                (300, 400, part),
                (400, 500, Part::New),
            ];
            assert_eq!(parts(&mut a, 100, 500, 10 + after, tsval, None), whole, "{after} {tsval:?} {tsecr:?}");
            assert_eq!((a.missing(), a.bytes(), a.acknowledged), (0, 500, 0));
        }
    }

    #[test]
    fn of_what_was_acknowledged_and_never_seen_the_last_is_remembered() {
        let mut a = Arrivals::default();
        parts(&mut a, 0, 1, 1, None, None);
        let n = 3 * MOST as u64;
        for i in 1..=n {
            parts(&mut a, 10 * i, 10 * i + 1, i, None, None);
            a.acknowledged(10 * i + 1 - i % 7, i, i, None);
        }
        assert!(a.acknowledged <= MOST_ACKNOWLEDGED && a.holes.len() <= MOST);
        assert_eq!(parts(&mut a, 10 * n - 5, 10 * n - 4, n, None, None), [(10 * n - 5, 10 * n - 4, Part::Late(n))]);
    }
}
