//! The segments in flight, with what finds them: by sequence number, by time of transmission, and the lost ones.
//!
//! Source: RFC 6675 §3 (scoreboard), RFC 8985 §6.2 (segments in order of transmission). One entry per MSS-sized segment in a ring;
//! entries that left in one super-packet share a `burst`. Finding a segment is a guess plus a binary search, runs of SACKed segments
//! are skipped by path-compressed jumps, and lost segments wait in a heap: nothing costs O(window) per ACK.

use super::segment::{Marks, Sent};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The segments in flight with their indices. Entries are named by a wrapping 32-bit number that grows by one a segment.
#[derive(Debug, Default)]
pub(super) struct Board {
    ring: VecDeque<Sent>,
    /// Name of the first entry.
    base: u32,
    head: u32,
    tail: u32,
    listed: usize,
    /// Last entry of the time-ordered list that was sent no later than the most recently delivered one.
    cursor: Option<u32>,
    lost: BinaryHeap<Reverse<(u64, u32)>>,
    /// Entries that a timeout marked lost, in transmission order: off the list until they are sent again or the loss is undone.
    parked: Vec<u32>,
}

impl Board {
    #[inline]
    pub fn front(&self) -> Option<&Sent> {
        self.ring.front()
    }
    #[inline]
    pub fn back_id(&self) -> Option<u32> {
        (!self.ring.is_empty()).then(|| self.base.wrapping_add(self.ring.len() as u32 - 1))
    }
    #[inline]
    pub fn len(&self) -> usize {
        self.ring.len()
    }
    #[inline]
    fn idx(&self, id: u32) -> usize {
        id.wrapping_sub(self.base) as usize
    }
    #[inline]
    pub fn get(&self, id: u32) -> &Sent {
        &self.ring[id.wrapping_sub(self.base) as usize]
    }
    #[inline]
    pub fn get_mut(&mut self, id: u32) -> &mut Sent {
        let i = self.idx(id);
        &mut self.ring[i]
    }
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        self.idx(id) < self.ring.len()
    }
    #[inline]
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Appends `n` new segments, at least one, which are the latest transmissions; `segment` makes the one with that index.
    #[inline]
    pub fn push(&mut self, n: u32, segment: impl Fn(u32) -> Sent) {
        let first = self.base.wrapping_add(self.ring.len() as u32);
        let mut prev = self.append_to_order(first);
        for i in 0..n {
            let (id, mut s) = (first.wrapping_add(i), segment(i));
            s.prev = prev;
            s.next = id.wrapping_add(1); // of the last one it counts for nothing
            s.marks.set(Marks::LISTED);
            self.ring.push_back(s);
            prev = id;
        }
        self.tail = first.wrapping_add(n - 1);
        self.listed += n as usize - 1;
    }

    /// Removes the first segment, which has been acknowledged.
    pub fn pop_front(&mut self) {
        let Some(s) = self.ring.pop_front() else { return };
        let id = self.base;
        self.base = id.wrapping_add(1);
        if s.is(Marks::LISTED) {
            self.close_gap(id, s.prev, s.next);
        }
        if self.ring.is_empty() {
            self.lost.clear();
            self.parked.clear();
            if self.ring.capacity() > 4096 {
                self.ring.shrink_to(1024);
            }
        }
    }

    /// Removes the last segment, which has not left after all.
    pub fn pop_back(&mut self) {
        if let Some(id) = self.back_id() {
            self.unlink(id);
            self.ring.pop_back();
        }
    }

    /// Lets the rest of a buffer whose first segments are gone begin with what is now the first; false if a buffer begins there anyway.
    pub fn begin_at_front(&mut self) -> bool {
        let Some(s) = self.ring.front_mut().filter(|s| !s.is(Marks::BUFFER_START)) else { return false };
        s.marks.set(Marks::BUFFER_START);
        true
    }

    /// Shortens the first segment from the front by `bytes`.
    pub fn trim_front(&mut self, bytes: u32) {
        if let Some(s) = self.ring.front_mut() {
            s.seq += u64::from(bytes);
            s.len -= bytes;
        }
    }

    /// Name of the first segment whose sequence number is at least `seq`; may be one past the end.
    pub fn lower_bound(&self, seq: u64) -> u32 {
        let Some(first) = self.ring.front() else { return self.base };
        if seq <= first.seq {
            return self.base;
        }
        // Segments are mostly of one size: guess, then look nearby before a binary search.
        let n = self.ring.len();
        let guess = (((seq - first.seq) / u64::from(first.len.max(1))) as usize).min(n - 1);
        for i in guess..(guess + 2).min(n) {
            if self.ring[i].seq >= seq && (i == 0 || self.ring[i - 1].seq < seq) {
                return self.base.wrapping_add(i as u32);
            }
        }
        self.base.wrapping_add(self.ring.partition_point(|s| s.seq < seq) as u32)
    }

    /// Marks `id` SACKed and takes it off the time-ordered list.
    pub fn set_sacked(&mut self, id: u32) {
        self.unlink(id);
        let s = self.get_mut(id);
        s.marks.set(Marks::SACKED);
        s.skip = 1;
    }

    /// First entry from `id` on that is not SACKED; may be one past the end.
    pub fn next_unsacked(&mut self, id: u32) -> u32 {
        let n = self.ring.len();
        let start = self.idx(id);
        let mut i = start;
        while i < n && self.ring[i].is(Marks::SACKED) {
            i += self.ring[i].skip as usize;
        }
        let end = i.min(n);
        // Path compression over the entries just visited.
        let mut k = start;
        while k < n && k < end && self.ring[k].is(Marks::SACKED) {
            let step = self.ring[k].skip as usize;
            self.ring[k].skip = (end - k) as u32;
            k += step;
        }
        self.base.wrapping_add(end as u32)
    }

    /// Forgets every SACK mark (the receiver reneged); returns how many there were.
    pub fn clear_sacked(&mut self) -> u32 {
        let mut n = 0;
        for s in &mut self.ring {
            n += u32::from(s.is(Marks::SACKED));
            s.marks.clear(Marks::SACKED);
            s.skip = 1;
        }
        n
    }

    /// Puts `id` at the end of the time-ordered list: it was just sent again.
    pub fn sent_again(&mut self, id: u32) {
        self.unlink(id);
        let prev = self.append_to_order(id);
        let s = self.get_mut(id);
        s.prev = prev;
        s.marks.set(Marks::LISTED);
    }

    /// Makes `id` the tail of the time-ordered list; returns the one before it.
    #[inline]
    fn append_to_order(&mut self, id: u32) -> u32 {
        let prev = std::mem::replace(&mut self.tail, id);
        if self.listed == 0 {
            self.head = id;
        } else {
            self.get_mut(prev).next = id;
        }
        self.listed += 1;
        prev
    }

    fn unlink(&mut self, id: u32) {
        let s = self.get_mut(id);
        if !s.is(Marks::LISTED) {
            return;
        }
        s.marks.clear(Marks::LISTED);
        let (prev, next) = (s.prev, s.next);
        self.close_gap(id, prev, next);
    }

    /// `id`, which stood between `prev` and `next`, has left the time-ordered list.
    #[inline]
    fn close_gap(&mut self, id: u32, prev: u32, next: u32) {
        if self.cursor == Some(id) {
            self.cursor = (id != self.head).then_some(prev);
        }
        self.listed -= 1;
        if id == self.head {
            self.head = next; // what comes before the head counts for nothing
            return;
        }
        self.get_mut(prev).next = next;
        if id != self.tail {
            self.get_mut(next).prev = prev;
        } else {
            self.tail = prev;
        }
    }

    /// Oldest transmission still on the time-ordered list.
    #[inline]
    pub fn oldest(&self) -> Option<u32> {
        (self.listed > 0).then_some(self.head)
    }

    /// Moves the cursor over every listed entry for which `sent_before` holds, and returns it.
    pub fn advance_cursor(&mut self, sent_before: impl Fn(&Sent) -> bool) -> Option<u32> {
        loop {
            let next = match self.cursor {
                None if self.listed > 0 => self.head,
                Some(c) if c != self.tail => self.get(c).next,
                _ => break,
            };
            if !sent_before(self.get(next)) {
                break;
            }
            self.cursor = Some(next);
        }
        self.cursor
    }

    /// Takes `id` off the time-ordered list (RACK has judged it).
    pub fn delist(&mut self, id: u32) {
        self.unlink(id);
    }

    /// Takes `id` off the list until it is retransmitted or [`Board::unpark`] is called.
    pub fn park(&mut self, id: u32) {
        if self.get(id).is(Marks::LISTED) {
            self.unlink(id);
            self.parked.push(id);
        }
    }

    /// Forgets parked entries that have been sent again or acknowledged.
    pub fn prune_parked(&mut self) {
        let mut parked = std::mem::take(&mut self.parked);
        parked.retain(|&id| self.contains(id) && !self.get(id).is(Marks::LISTED | Marks::SACKED));
        self.parked = parked;
    }

    /// The loss is undone: parked entries that were not sent again since return to the head of the list, in order.
    pub fn unpark(&mut self) {
        let mut parked = std::mem::take(&mut self.parked);
        parked.retain(|&id| self.contains(id) && !self.get(id).is(Marks::LISTED | Marks::SACKED));
        // The cursor's meaning (a prefix of the list was sent before it) must be found again.
        if !parked.is_empty() {
            self.cursor = None;
        }
        parked.sort_by_key(|&id| (self.get(id).sent_ns, self.get(id).seq));
        parked.dedup();
        for &id in parked.iter().rev() {
            let head = self.head;
            if self.listed == 0 {
                self.tail = id;
            } else {
                self.get_mut(head).prev = id;
            }
            let s = self.get_mut(id);
            s.next = head;
            s.marks.set(Marks::LISTED);
            self.head = id;
            self.listed += 1;
        }
        parked.clear();
        self.parked = parked;
    }

    /// Notes that `id` is marked lost, so that [`Board::next_lost`] finds it.
    pub fn note_lost(&mut self, id: u32) {
        let seq = self.get(id).seq;
        self.lost.push(Reverse((seq, id)));
    }

    /// The lowest segment that is marked lost, neither SACKed nor retransmitted since.
    pub fn next_lost(&mut self) -> Option<u32> {
        while let Some(&Reverse((_, id))) = self.lost.peek() {
            if self.contains(id) {
                let s = self.get(id);
                if s.is(Marks::LOST) && !s.is(Marks::SACKED | Marks::COPY_OUT) {
                    return Some(id);
                }
            }
            self.lost.pop();
        }
        None
    }

    /// Takes every loss mark back.
    pub fn unmark_all_lost(&mut self) {
        let ids: Vec<u32> = self.lost.drain().map(|Reverse((_, id))| id).collect();
        for id in ids {
            if self.contains(id) {
                self.get_mut(id).marks.clear(Marks::LOST);
            }
        }
        // Those sent again have left the heap but keep their mark.
        for s in &mut self.ring {
            s.marks.clear(Marks::LOST);
        }
    }

    /// All entries in order, for rare walks (timeouts).
    pub fn iter_ids(&self) -> impl Iterator<Item = u32> + 'static {
        let (b, n) = (self.base, self.ring.len() as u32);
        (0..n).map(move |i| b.wrapping_add(i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(n: u64) -> Board {
        let mut b = Board::default();
        for i in 0..n {
            let mut s = Sent::new(1 + i * 1448, 1448);
            s.sent_ns = i;
            b.push(1, |_| s);
        }
        b
    }

    #[test]
    fn finds_segments_by_sequence_number() {
        let mut b = board(100);
        for i in 0..100u64 {
            assert_eq!(b.lower_bound(1 + i * 1448), i as u32);
            assert_eq!(b.lower_bound(2 + i * 1448), i as u32 + 1);
        }
        b.pop_front();
        assert_eq!(b.lower_bound(1 + 1448), 1);
    }

    #[test]
    fn skips_runs_of_sacked_segments() {
        let mut b = board(50);
        for i in (10..40).rev() {
            b.set_sacked(i);
        }
        assert_eq!(b.next_unsacked(10), 40);
        assert_eq!(b.next_unsacked(25), 40);
        assert_eq!(b.next_unsacked(9), 9);
        b.set_sacked(40);
        assert_eq!(b.next_unsacked(12), 41);
    }

    #[test]
    fn time_order_survives_retransmission_and_delivery() {
        let mut b = board(5);
        assert_eq!(b.advance_cursor(|s| s.sent_ns <= 2), Some(2));
        b.set_sacked(2);
        assert_eq!(b.cursor, Some(1));
        b.get_mut(0).sent_ns = 9;
        b.sent_again(0);
        assert_eq!(b.oldest(), Some(1));
        b.delist(1);
        assert_eq!(b.cursor, None);
        assert_eq!(b.oldest(), Some(3));
        assert_eq!(b.advance_cursor(|s| s.sent_ns <= 9), Some(0));
    }

    #[test]
    fn lost_segments_come_back_lowest_first_once() {
        let mut b = board(6);
        for id in [4, 1, 3] {
            b.get_mut(id).marks.set(Marks::LOST);
            b.note_lost(id);
        }
        assert_eq!(b.next_lost(), Some(1));
        b.get_mut(1).marks.set(Marks::COPY_OUT);
        assert_eq!(b.next_lost(), Some(3));
        b.unmark_all_lost();
        assert_eq!(b.next_lost(), None);
    }

    #[test]
    fn parked_segments_return_to_the_head() {
        let mut b = board(4);
        b.park(0);
        b.park(1);
        assert_eq!(b.oldest(), Some(2));
        b.unpark();
        assert_eq!(b.oldest(), Some(0));
        assert_eq!(b.advance_cursor(|_| true), Some(3));
    }
}
