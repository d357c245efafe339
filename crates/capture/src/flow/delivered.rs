//! What was acknowledged of late, and by which ACK: an ACK that comes after later ones still says what the receiver lacked when it sent it.
//!
//! Source: RFC 2018 §3 and §4 (an ACK's blocks are what had come beyond its number); RFC 9293 §3.4 (a receiver's numbers never fall, so an ACK
//! with a lower number was sent earlier).
//! What it does not know: a SACK has room for three or four blocks, so a receiver with more holes may have had what a single ACK does not list.

use super::scoreboard::Sent;
use std::collections::VecDeque;

/// Most ranges remembered: a round trip of some 100 Mbit/s over 200 ms.
const MOST: usize = 2048;

/// An ACK's place in the receiver's order of sending.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Its acknowledgement number.
    pub ack: u64,
    /// Its place by the IP identification; none where that does not count.
    pub place: Option<u64>,
}

impl Order {
    /// Whether it was surely sent before the other.
    fn is_before(self, other: Self) -> bool {
        self.place.zip(other.place).map_or(self.ack < other.ack, |(own, others)| own < others)
    }
}

/// A range that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// Byte after the last.
    pub end: u64,
    /// Number of its row.
    pub row: u64,
    /// The earliest ACK known to cover it.
    by: Order,
    /// Whether it may still turn out to be reordered: it was sent once, and nothing showed it yet.
    is_open: bool,
}

/// The ranges that were acknowledged of late, by their first byte.
#[derive(Debug, Default)]
pub struct Delivered {
    ranges: VecDeque<Range>,
}

impl Delivered {
    /// Bytes of memory beside its own.
    pub fn heap(&self) -> usize {
        self.ranges.capacity() * size_of::<Range>()
    }

    /// Remembers what an ACK is the first to cover; `is_reordered` where that shows that it was overtaken.
    pub fn add(&mut self, s: &Sent, by: Order, is_reordered: bool) {
        let range = Range { start: s.start, end: s.end, row: s.row, by, is_open: s.sends == 1 && !is_reordered };
        let at = self.ranges.iter().rposition(|r| r.start < s.start).map_or(0, |i| i + 1);
        self.ranges.insert(at, range);
        if self.ranges.len() > MOST {
            self.ranges.pop_front();
        }
    }

    /// An ACK comes after later ones: calls `overtaken` with what the receiver lacked when it sent this, of what was sent before something that it had.
    pub fn late(&mut self, ack: Order, blocks: &[(u64, u64)], mut overtaken: impl FnMut(&Range)) {
        let Some(end) = blocks.iter().map(|b| b.1).max() else { return };
        let first = self.ranges.partition_point(|r| r.start < ack.ack);
        let within = |r: &&mut Range| r.start < end;
        let mut newest = 0;
        for r in self.ranges.range_mut(first..).take_while(within).filter(|r| blocks.iter().any(|b| b.0 <= r.start && r.end <= b.1)) {
            newest = newest.max(r.row);
            if ack.is_before(r.by) {
                r.by = ack;
            }
        }
        let lacked =
            |r: &&mut Range| r.row < newest && r.is_open && ack.is_before(r.by) && !blocks.iter().any(|b| b.0 < r.end && r.start < b.1);
        for r in self.ranges.range_mut(first..).take_while(within).filter(lacked) {
            r.is_open = false;
            overtaken(r);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [u64; 0] = [];

    /// Ten segments of ten bytes, covered by the ACK at `place` with number 100.
    fn delivered(place: Option<u64>) -> Delivered {
        let mut d = Delivered::default();
        for row in [0, 2, 1, 3, 4, 5, 6, 7, 8, 9] {
            let s = Sent { start: 10 * row, end: 10 * row + 10, row, sends: if row == 4 { 2 } else { 1 }, ..Sent::default() };
            d.add(&s, Order { ack: 100, place }, row == 5);
        }
        d
    }
    fn overtaken(d: &mut Delivered, ack: u64, place: Option<u64>, blocks: &[(u64, u64)]) -> Vec<u64> {
        let mut rows = Vec::new();
        d.late(Order { ack, place }, blocks, |r| rows.push(r.row));
        rows
    }

    #[test]
    fn a_late_ack_shows_what_was_overtaken_once() {
        for place in [None, Some(7)] {
            let mut d = delivered(place);
            let earlier = place.map(|p| p - 1);
            assert_eq!(overtaken(&mut d, 20, earlier, &[(60, 80), (30, 40)]), [2]); // 4 was repeated, 5 is known, 8 is not below
            assert_eq!(overtaken(&mut d, 20, earlier, &[(60, 80)]), NONE); // 3 was there by then
            assert_eq!(overtaken(&mut d, 20, earlier, &[(90, 100)]), [8]);
        }
    }

    #[test]
    fn what_came_before_the_ack_was_sent_is_not_overtaken() {
        let mut d = delivered(Some(7));
        assert_eq!(overtaken(&mut d, 20, Some(8), &[(60, 80)]), NONE);
        let mut d = delivered(None);
        assert_eq!(overtaken(&mut d, 100, None, &[(110, 120)]), NONE);
    }

    #[test]
    fn the_oldest_are_given_up() {
        let mut d = Delivered::default();
        for row in 0..=MOST as u64 {
            d.add(&Sent { start: row, end: row + 1, row, sends: 1, ..Sent::default() }, Order { ack: 9_999, place: None }, false);
        }
        assert_eq!((d.ranges.len(), d.ranges[0].row), (MOST, 1));
    }
}
