//! What was seen sent and is not yet acknowledged: the sender's scoreboard, rebuilt from its packets.
//!
//! Source: RFC 2018 (SACK), RFC 6675 §4 (what is in flight), RFC 8985 §6.2 (what is lost, by the time at which it was sent).
//! How it differs from a sender's own: what the sender holds for lost shows only when it repeats something. Super-packets are one entry
//! until a SACK or a retransmission cuts them.

use super::sequence::{Ranges, ORIGIN};
use std::collections::VecDeque;
use std::ops::Range;
use tcpscape_base::wire::ahead;

/// Entries among which a discarded segment is looked for.
const SEARCHED: usize = 512;

/// A range of bytes that was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// First byte.
    pub start: u64,
    /// Byte after the last.
    pub end: u64,
    /// When its first transmission was seen.
    pub first_t: u64,
    /// When its last was.
    pub last_t: u64,
    /// Number of its row.
    pub row: u64,
    /// When a SACK first covered what was seen sent later; 0 never.
    pub passed_t: u64,
    /// Place of that SACK in its end's order of sending, where that is known.
    pub passed_by: Option<u64>,
    /// TSval of its first transmission; 0 none.
    pub tsval: u32,
    /// TSval of its second; 0 none.
    pub again_tsval: u32,
    /// How often it was seen.
    pub sends: u16,
    /// How often a DSACK says that it came twice.
    pub twice: u16,
    /// How often the receiver discarded it on arrival.
    pub discarded: u16,
    /// Whether a SACK covers it.
    pub is_sacked: bool,
    /// Whether its last transmission counts as lost.
    pub is_lost: bool,
}

/// What an ACK did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acked {
    /// Bytes that it is the first to SACK.
    pub sacked: u64,
    /// Bytes that it is the first to cover by its number, not SACKed before.
    pub newly: u64,
    /// Whether its number is higher than any before.
    pub advances: bool,
}

/// The scoreboard of one direction.
#[derive(Debug, Default)]
pub struct Scoreboard {
    queue: VecDeque<Sent>,
    /// Highest acknowledgement number.
    una: u64,
    begun: u64,
    sacked: Ranges,
    /// End of the highest SACKed range.
    high: u64,
    /// Highest row number of what was SACKed or acknowledged.
    high_row: u64,
    /// Send time of the latest-sent delivered segment.
    newest_t: u64,
    /// Bytes in flight.
    flight: u64,
    /// Up to here lost entries have been looked for.
    searched: u64,
    /// Scratch: the parts of a block that are new.
    parts: Vec<(u64, u64)>,
}

impl Scoreboard {
    /// Bytes of memory beside its own.
    pub fn heap(&self) -> usize {
        self.queue.capacity() * size_of::<Sent>() + self.sacked.heap()
    }
    /// Highest acknowledgement number, 0 before there is one.
    pub fn una(&self) -> u64 {
        self.una
    }
    /// Bytes in flight.
    pub fn flight(&self) -> u64 {
        self.flight
    }
    /// Bytes acknowledged or SACKed since the connection's begin.
    pub fn delivered(&self) -> u64 {
        self.una.saturating_sub(ORIGIN) + self.sacked.bytes()
    }
    /// End of the highest SACKed range.
    pub fn high(&self) -> u64 {
        self.high
    }
    /// Highest row number that was covered.
    pub fn high_row(&self) -> u64 {
        self.high_row
    }
    /// Where the count of acknowledged bytes began.
    pub fn begun(&self) -> u64 {
        self.begun
    }
    /// Entries held.
    pub fn len(&self) -> usize {
        self.queue.len()
    }
    /// Whether nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
    /// The first entry that is not acknowledged.
    pub fn head(&self) -> Option<&Sent> {
        self.queue.front()
    }
    /// Without the ACKs from the connection's begin on, counting starts at the first that is seen.
    pub fn begin(&mut self, una: u64) {
        if self.una == 0 {
            (self.una, self.begun) = (una, una);
        }
    }
    /// Gives up the oldest entry.
    pub fn forget(&mut self) {
        self.flight -= self.queue.pop_front().map_or(0, |s| in_flight(&s));
    }

    /// Adds what was never seen before; it lies between the entries that there are.
    pub fn add(&mut self, s: Sent) {
        if s.end <= self.una {
            return; // it was acknowledged before it was seen
        }
        let at = if self.queue.back().map_or(true, |b| b.start < s.start) {
            self.queue.len()
        } else {
            self.queue.partition_point(|e| e.start < s.start)
        };
        self.flight += in_flight(&s);
        self.queue.insert(at, s);
    }

    /// Whether the whole range is held, as it was first sent with this TSval.
    pub fn has(&self, range: Range<u64>, tsval: u32) -> bool {
        let first = self.queue.partition_point(|e| e.end <= range.start);
        let within = || self.queue.range(first..).take_while(|e| e.start < range.end);
        let bytes: u64 = within().map(|e| e.end.min(range.end) - e.start.max(range.start)).sum();
        bytes == range.end - range.start && within().all(|e| e.tsval == tsval)
    }

    /// What was seen before is sent again; calls `each` with every entry concerned.
    pub fn again(&mut self, from: u64, to: u64, t: u64, tsval: u32, mut each: impl FnMut(&Sent)) {
        let mut i = self.cut(from);
        self.cut(to);
        while let Some(s) = self.queue.get_mut(i).filter(|s| s.start < to) {
            self.flight -= in_flight(s);
            s.sends = s.sends.saturating_add(1);
            if s.again_tsval == 0 {
                s.again_tsval = tsval;
            }
            s.last_t = t;
            s.is_lost = false;
            self.flight += in_flight(s);
            each(s);
            i += 1;
        }
    }

    /// Takes an acknowledgement number and SACK blocks; adds every entry that they are the first to cover
    /// to `covered`. `place` is the packet's in its end's order of sending; none where that is unknown.
    pub fn ack(&mut self, ack: u64, blocks: &[(u64, u64)], t: u64, place: Option<u64>, covered: &mut Vec<Sent>) -> Acked {
        let mut did = Acked { advances: ack > self.una, ..Acked::default() };
        let mut row = self.high_row;
        if did.advances {
            let known = self.sacked.remove_below(ack);
            did.newly = (ack - self.una).saturating_sub(known);
            self.una = ack;
            while let Some(&s) = self.queue.front().filter(|s| s.start < ack) {
                if s.end > ack {
                    self.cut(ack);
                    continue;
                }
                self.queue.pop_front();
                self.flight -= in_flight(&s);
                if !s.is_sacked {
                    row = row.max(s.row);
                    self.newest_t = self.newest_t.max(s.first_t);
                    covered.push(s);
                }
            }
        }
        for &(from, to) in blocks {
            did.sacked += self.sack(from.max(self.una), to, &mut row, covered);
        }
        self.high_row = row;
        self.pass(t, place);
        did
    }

    /// A duplicate ACK without SACK: something later than what it lacks has come. If that was never seen here, no entry is passed.
    pub fn duplicate(&mut self, t: u64) {
        let una = self.una;
        if let Some(s) = self.queue.front_mut().filter(|s| s.passed_t == 0 && s.start <= una) {
            s.passed_t = t;
        }
    }

    fn sack(&mut self, from: u64, to: u64, row: &mut u64, covered: &mut Vec<Sent>) -> u64 {
        let before = self.sacked.bytes();
        let mut parts = std::mem::take(&mut self.parts);
        self.sacked.add(from, to, |a, b| parts.push((a, b)));
        for (a, b) in parts.drain(..) {
            let mut i = self.cut(a);
            self.cut(b);
            while let Some(s) = self.queue.get_mut(i).filter(|s| s.start < b) {
                if !s.is_sacked {
                    self.flight -= in_flight(s);
                    s.is_sacked = true;
                    *row = (*row).max(s.row);
                    self.newest_t = self.newest_t.max(s.first_t);
                    covered.push(*s);
                }
                i += 1;
            }
        }
        self.parts = parts;
        self.sacked.bytes() - before
    }

    /// Marks what the highest SACK has newly passed.
    fn pass(&mut self, t: u64, place: Option<u64>) {
        let high = self.sacked.end().unwrap_or(0).max(self.una);
        if high <= self.high {
            return;
        }
        if high > self.una {
            let mut i = self.index(self.high.max(self.una));
            while let Some(s) = self.queue.get_mut(i).filter(|s| s.end <= high) {
                if !s.is_sacked && s.passed_t == 0 && s.row < self.high_row {
                    (s.passed_t, s.passed_by) = (t, place);
                }
                i += 1;
            }
        }
        self.high = high;
    }

    /// The sender repeats what it holds for lost: so is what it sent as early, `slack` ns earlier than the newest delivered, and below the highest SACK.
    pub fn presume_lost(&mut self, slack: u64) {
        let mut i = self.index(self.searched.max(self.una));
        while let Some(s) = self.queue.get_mut(i).filter(|s| s.end <= self.high && s.first_t + slack <= self.newest_t) {
            if s.sends == 1 {
                self.flight -= in_flight(s);
                s.is_lost = true;
            }
            self.searched = s.end;
            i += 1;
        }
    }

    /// A timeout: everything that is not SACKed counts as lost (RFC 6298 §5.4, RFC 2018 §8).
    pub fn lose_all(&mut self) {
        self.queue.iter_mut().filter(|s| !s.is_sacked).for_each(|s| s.is_lost = true);
        self.flight = 0;
    }

    /// Counts a DSACK for entries that are still held; gives how many of them had been repeated.
    pub fn twice(&mut self, from: u64, to: u64) -> usize {
        let mut i = self.index(from);
        let mut n = 0;
        while let Some(s) = self.queue.get_mut(i).filter(|s| s.start < to) {
            if s.sends > 1 && !s.is_sacked && s.twice + 1 < s.sends {
                s.twice += 1;
                n += 1;
            }
            i += 1;
        }
        n
    }

    /// The receiver discarded `from..to` on arrival.
    pub fn discard(&mut self, from: u64, to: u64) {
        let mut i = self.index(from);
        while let Some(s) = self.queue.get_mut(i).filter(|s| s.start < to) {
            s.discarded = s.discarded.saturating_add(u16::from(!s.is_sacked));
            i += 1;
        }
    }

    /// At `t` an ACK shows that the receiver discarded something on arrival, since its TSval was older than `recent`: of the segments that
    /// this can be true of, the one whose age is nearest to `rtt`.
    pub fn discard_one(&mut self, recent: u32, t: u64, rtt: u64) -> Option<(u64, u64)> {
        let may_be = |s: &&mut Sent| !s.is_sacked && s.discarded == 0 && s.tsval != 0 && ahead(recent, s.tsval) < 0;
        let s = self.queue.iter_mut().take(SEARCHED).filter(may_be).min_by_key(|s| t.saturating_sub(s.first_t).abs_diff(rtt))?;
        s.discarded += 1;
        Some((s.start, s.end))
    }

    /// Index of the entry that holds `at`, or of the next.
    fn index(&self, at: u64) -> usize {
        self.queue.partition_point(|s| s.end <= at)
    }

    /// Makes `at` an edge of entries; gives the index of the entry that begins there, or of the next.
    fn cut(&mut self, at: u64) -> usize {
        let i = self.index(at);
        let Some(s) = self.queue.get_mut(i).filter(|s| s.start < at) else { return i };
        let mut right = *s;
        s.end = at;
        right.start = at;
        self.queue.insert(i + 1, right);
        i + 1
    }
}

/// Bytes of an entry that are in flight.
fn in_flight(s: &Sent) -> u64 {
    if s.is_sacked || s.is_lost {
        0
    } else {
        s.end - s.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(n: u64) -> Scoreboard {
        let mut b = Scoreboard::default();
        b.begin(ORIGIN);
        for i in 0..n {
            let start = ORIGIN + 100 * i;
            b.add(Sent { start, end: start + 100, first_t: i, last_t: i, row: i, sends: 1, ..Sent::default() });
        }
        b
    }
    fn rows(b: &mut Scoreboard, ack: u64, blocks: &[(u64, u64)], t: u64) -> (Vec<u64>, u64) {
        let mut covered = Vec::new();
        let blocks: Vec<_> = blocks.iter().map(|b| (ORIGIN + b.0, ORIGIN + b.1)).collect();
        b.ack(ORIGIN + ack, &blocks, t, None, &mut covered);
        (covered.iter().map(|s| s.row).collect(), b.flight())
    }

    #[test]
    fn what_is_sacked_leaves_the_flight_once() {
        let mut b = board(6);
        assert_eq!(rows(&mut b, 100, &[], 10), (vec![0], 500));
        assert_eq!(rows(&mut b, 100, &[(300, 400)], 11), (vec![3], 400));
        assert_eq!(rows(&mut b, 100, &[(300, 500)], 12), (vec![4], 300));
        assert_eq!(b.delivered(), 300);
        assert_eq!(b.head().map(|s| s.passed_t), Some(11));
        assert_eq!(rows(&mut b, 500, &[], 13), (vec![1, 2], 100));
        assert_eq!((b.delivered(), b.len()), (500, 1));
    }

    #[test]
    fn a_block_that_ends_inside_a_super_packet_cuts_it() {
        let mut b = Scoreboard::default();
        b.begin(ORIGIN);
        b.add(Sent { start: ORIGIN, end: ORIGIN + 1000, sends: 1, ..Sent::default() });
        let mut covered = Vec::new();
        b.ack(ORIGIN, &[(ORIGIN + 300, ORIGIN + 600)], 5, None, &mut covered);
        assert_eq!((covered.len(), covered[0].end - covered[0].start, b.len(), b.flight()), (1, 300, 3, 700));
        let mut again = Vec::new();
        b.again(ORIGIN + 100, ORIGIN + 200, 9, 4, |s| again.push((s.start - ORIGIN, s.end - ORIGIN, s.sends)));
        assert_eq!((again, b.len(), b.flight()), (vec![(100, 200, 2)], 5, 700));
    }

    #[test]
    fn lost_bytes_leave_the_flight_and_come_back_with_their_retransmission() {
        let mut b = board(6);
        rows(&mut b, 0, &[(200, 500)], 10);
        b.again(ORIGIN, ORIGIN + 100, 11, 1, |_| ());
        b.presume_lost(1);
        assert_eq!(b.flight(), 200); // the repeated one and the last; the second is lost
        b.again(ORIGIN + 100, ORIGIN + 200, 12, 1, |_| ());
        assert_eq!(b.flight(), 300);
        b.lose_all();
        assert_eq!(b.flight(), 0);
    }
}
