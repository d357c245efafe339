//! The data beyond a gap, by where they begin: RFC 9293 §3.10.7.4 (segments out of order are queued), RFC 2883 §4 (what of a segment is a duplicate).

use super::buffer::{Buffer, PAGE_MEMORY, PAGE_PAYLOAD};
use super::tree::{Id, Side, Tree};
use tcpscape_base::SackBlock;

/// A buffer that waits; its key is where it begins.
#[derive(Clone, Copy, Debug)]
struct Piece {
    end: u64,
    buffer: Buffer,
}

/// A buffer that has become in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Joined {
    /// Where it begins.
    pub start: u64,
    /// The byte after its last.
    pub end: u64,
    /// Its memory.
    pub buffer: Buffer,
}

/// How a segment was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queued {
    /// All of it was there.
    Nothing,
    /// Merged into the buffer before it, for so much memory.
    Merged(u32),
    /// In a buffer of its own; memory changes by so much, since other buffers may go.
    Alone(i64),
}

/// What queueing a segment did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Insertion {
    /// How it was queued.
    pub queued: Queued,
    /// The contiguous part of it that was there already (RFC 2883 §4).
    pub duplicate: Option<SackBlock>,
}

/// The buffers beyond the gap, by where they begin. They may overlap: a merge leaves the overlap with the next buffer for later.
#[derive(Default)]
pub(super) struct Reassembly {
    pieces: Tree<Piece>,
}

/// Where the search for a segment's place ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At a buffer that has all of it.
    Within,
    /// At a buffer that it continues and can be merged into, for so much memory.
    Continues(Id, u32),
    /// At a shorter buffer that begins where it does.
    Replaces(Id),
    /// At no buffer, but beside this one in the tree.
    Own(Option<(Id, Side)>),
}

impl Reassembly {
    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pieces.root().is_none()
    }
    /// The end of the last piece.
    pub fn end(&self) -> Option<u64> {
        self.pieces.last().map(|last| self.pieces.get(last).end)
    }

    /// Queues the bytes `start..end` in `buffer`, which merged with the one before costs `overhead` less. Segments of at most `head_room`
    /// bytes that are not are copied into their buffer's head, which costs `overhead`.
    pub fn insert(&mut self, start: u64, end: u64, buffer: Buffer, overhead: u32, head_room: u32) -> Insertion {
        let piece = Piece { end, buffer: buffer.condensed(overhead, head_room) };
        let (place, mut duplicate) = self.search(start, end, &buffer, overhead);
        let (id, mut freed) = match place {
            Place::Within => return Insertion { queued: Queued::Nothing, duplicate },
            Place::Continues(id, cost) => {
                let before = self.pieces.get_mut(id);
                before.end = end;
                before.buffer.merge(&buffer, cost);
                return Insertion { queued: Queued::Merged(cost), duplicate };
            }
            Place::Replaces(id) => (id, i64::from(std::mem::replace(self.pieces.get_mut(id), piece).buffer.memory)),
            Place::Own(below) => (self.pieces.insert_below(below, start, piece), 0),
        };
        freed += self.cover(id, end, &mut duplicate);
        Insertion { queued: Queued::Alone(i64::from(piece.buffer.memory) - freed), duplicate }
    }

    // The place of a segment, and what of it the buffers have that were met on the way. A segment at or beyond the end of the buffer that begins
    // last is compared with that alone; any other with those on the way from the root of the tree. The first one that it continues takes it, even
    // if one further down has it already.
    fn search(&self, start: u64, end: u64, buffer: &Buffer, overhead: u32) -> (Place, Option<SackBlock>) {
        let (mut duplicate, mut below) = (None, None);
        let mut at = self.pieces.last().filter(|&last| self.pieces.get(last).end <= start).or(self.pieces.root());
        while let Some(id) = at {
            let (first, piece) = (self.pieces.key(id), self.pieces.get(id));
            if (first..piece.end).contains(&start) {
                if piece.end >= end {
                    return (Place::Within, Some((start, end)));
                }
                if first == start {
                    extend(&mut duplicate, (first, piece.end));
                    return (Place::Replaces(id), duplicate);
                }
                duplicate = Some((start, piece.end));
            } else if piece.end == start {
                if let Some(cost) = piece.buffer.cost_of(buffer, overhead) {
                    return (Place::Continues(id, cost), duplicate);
                }
            }
            let side = if start < first { Side::Left } else { Side::Right };
            (below, at) = (Some((id, side)), self.pieces.child(id, side));
        }
        (Place::Own(below), duplicate)
    }

    // Buffers that begin within a new one: those that end in it go. Returns their memory.
    fn cover(&mut self, new: Id, end: u64, duplicate: &mut Option<SackBlock>) -> i64 {
        let mut freed = 0;
        while let Some(next) = self.pieces.next(new).filter(|&next| self.pieces.key(next) < end) {
            let (start, piece) = (self.pieces.key(next), *self.pieces.get(next));
            extend(duplicate, (start, piece.end.min(end)));
            if piece.end > end {
                break;
            }
            self.pieces.remove(next);
            freed += i64::from(piece.buffer.memory);
        }
        freed
    }

    /// Takes the first buffer if it begins at or below `next`.
    pub fn take_first(&mut self, next: u64) -> Option<Joined> {
        let first = self.pieces.first().filter(|&first| self.pieces.key(first) <= next)?;
        let start = self.pieces.key(first);
        let Piece { end, buffer } = self.pieces.remove(first);
        Some(Joined { start, end, buffer })
    }

    /// Drops buffers from the far end until `least` bytes of memory are free, none that begins at or below `spare`. Returns the memory
    /// freed and the number of buffers.
    pub fn cut(&mut self, least: u64, spare: u64) -> (u64, u64) {
        let (mut freed, mut dropped) = (0, 0);
        while freed < least {
            let Some(last) = self.pieces.last().filter(|&last| self.pieces.key(last) > spare) else { break };
            freed += u64::from(self.pieces.remove(last).buffer.memory);
            dropped += 1;
        }
        (freed, dropped)
    }
    /// Drops everything; returns the memory freed.
    pub fn clear(&mut self) -> u64 {
        let mut freed = 0;
        while let Some(first) = self.pieces.first() {
            freed += u64::from(self.pieces.remove(first).buffer.memory);
        }
        freed
    }

    /// Copies the payload of each contiguous range of several buffers into full pages, where that takes less memory and
    /// `saves(bytes, memory)`. Returns the memory freed.
    pub fn compact(&mut self, saves: impl Fn(u64, u64) -> bool) -> u64 {
        let (mut freed, mut from) = (0, self.pieces.first());
        while let Some(first) = from {
            let range = self.range_from(first);
            from = range.after;
            let bytes = range.end - range.start;
            let pages = bytes.div_ceil(u64::from(PAGE_PAYLOAD)) * u64::from(PAGE_MEMORY);
            if range.buffers < 2 || pages >= range.memory || !saves(bytes, range.memory) {
                continue;
            }
            freed += range.memory - pages;
            let mut old = Some(first);
            while let Some(id) = old.filter(|&id| Some(id) != range.after) {
                old = self.pieces.next(id);
                self.pieces.remove(id);
            }
            for start in (range.start..range.end).step_by(PAGE_PAYLOAD as usize) {
                let end = range.end.min(start + u64::from(PAGE_PAYLOAD));
                self.pieces.insert(start, Piece { end, buffer: Buffer::page((end - start) as u32) });
            }
        }
        freed
    }
    // The contiguous range of buffers that begins with this one.
    fn range_from(&self, first: Id) -> Range {
        let (start, piece) = (self.pieces.key(first), self.pieces.get(first));
        let mut range = Range { start, end: piece.end, memory: u64::from(piece.buffer.memory), buffers: 1, after: self.pieces.next(first) };
        while let Some(next) = range.after.filter(|&next| self.pieces.key(next) <= range.end) {
            let piece = self.pieces.get(next);
            range.end = range.end.max(piece.end);
            range.memory += u64::from(piece.buffer.memory);
            range.buffers += 1;
            range.after = self.pieces.next(next);
        }
        range
    }
}

/// A duplicate becomes longer by a range that it touches; another range is left out, since one is reported.
fn extend(duplicate: &mut Option<SackBlock>, more: SackBlock) {
    match duplicate {
        None => *duplicate = Some(more),
        Some(first) if more.0 <= first.1 => first.1 = first.1.max(more.1),
        Some(_) => {}
    }
}

/// A contiguous range of buffers.
struct Range {
    start: u64,
    end: u64,
    memory: u64,
    buffers: u32,
    /// The next buffer.
    after: Option<Id>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVERHEAD: u32 = 1_280;

    fn insert(r: &mut Reassembly, start: u64, end: u64) -> Insertion {
        let len = (end - start) as u32;
        r.insert(start, end, Buffer { len, memory: len + OVERHEAD, fragments: 1, room: 0, in_head: false }, OVERHEAD, 0)
    }
    /// A reassembly with one buffer for each range.
    fn with(ranges: &[SackBlock]) -> Reassembly {
        let mut r = Reassembly::default();
        for &(start, end) in ranges {
            assert!(matches!(insert(&mut r, start, end).queued, Queued::Alone(_)));
        }
        r
    }
    fn alone(memory: i64, duplicate: Option<SackBlock>) -> Insertion {
        Insertion { queued: Queued::Alone(memory), duplicate }
    }

    #[test]
    fn a_segment_that_continues_a_buffer_costs_its_payload() {
        let mut r = with(&[(5_500, 6_000)]);
        assert_eq!(insert(&mut r, 6_000, 6_500), Insertion { queued: Queued::Merged(500), duplicate: None });
        assert_eq!(insert(&mut r, 7_000, 7_500), alone(1_780, None));
        assert_eq!(r.clear(), 2 * 1_780 + 500);
    }

    /// Linux: 1, 2, 4, 3 wait beyond a gap, in units of 500 bytes, 3 in the buffer of 1 and 2, which a search for 4 meets before that of 4: a copy of 4
    /// joins it and is no duplicate. After 4 and 3 alone the search begins at 4.
    #[test]
    fn a_copy_joins_the_buffer_before_it() {
        let mut r = with(&[(500, 1_000)]);
        insert(&mut r, 1_000, 1_500);
        insert(&mut r, 2_000, 2_500);
        insert(&mut r, 1_500, 2_000);
        assert_eq!(insert(&mut r, 2_000, 2_500), Insertion { queued: Queued::Merged(500), duplicate: None });
        assert_eq!(r.take_first(500).map(|joined| joined.end), Some(2_500));
        assert_eq!(r.take_first(2_500).map(|joined| joined.start), Some(2_000), "what both have is left for later");
        let mut r = with(&[(2_000, 2_500), (1_500, 2_000)]);
        assert_eq!(insert(&mut r, 2_000, 2_500), Insertion { queued: Queued::Nothing, duplicate: Some((2_000, 2_500)) });
    }

    /// RFC 2883 §4.1.3: 5000–5500 comes again while 4500–5500 waits beyond a gap.
    #[test]
    fn rfc_2883_a_whole_duplicate() {
        let mut r = with(&[(4_500, 5_500)]);
        assert_eq!(insert(&mut r, 5_000, 5_500), Insertion { queued: Queued::Nothing, duplicate: Some((5_000, 5_500)) });
    }

    /// RFC 2883 §4.2: a segment of 1000 bytes of which parts wait already.
    #[test]
    fn rfc_2883_partial_duplicates() {
        // The first half is there.
        assert_eq!(insert(&mut with(&[(500, 1_500)]), 1_000, 2_000), alone(2_280, Some((1_000, 1_500))));
        // The second half is there, and goes, since the new buffer holds it too.
        assert_eq!(insert(&mut with(&[(1_500, 2_000)]), 1_000, 2_000), alone(2_280 - 1_780, Some((1_500, 2_000))));
        // Two parts are there, with a gap between them: the first is reported.
        let freed = 2 * (200 + 1_280);
        assert_eq!(insert(&mut with(&[(1_100, 1_300), (1_500, 1_700)]), 1_000, 2_000), alone(2_280 - freed, Some((1_100, 1_300))));
        // A longer segment takes the place of a shorter one.
        assert_eq!(insert(&mut with(&[(1_000, 1_500)]), 1_000, 2_000), alone(500, Some((1_000, 1_500))));
    }

    /// A short segment alone is copied into its buffer's head; what follows is copied there too while it fits, then merged as elsewhere.
    #[test]
    fn a_short_segment_costs_no_more_than_its_buffers_head() {
        let mut r = Reassembly::default();
        let of = |len: u32| Buffer { len, memory: len + 960, fragments: 1, room: 0, in_head: false };
        let merged = |cost| Insertion { queued: Queued::Merged(cost), duplicate: None };
        assert_eq!(r.insert(100, 164, of(64), 960, 128), alone(960, None));
        assert_eq!(r.insert(164, 228, of(64), 960, 128), merged(0));
        assert_eq!(r.insert(228, 292, of(64), 960, 128), merged(64));
        assert_eq!(r.insert(300, 364, of(64), 960, 128), alone(960, None));
    }

    #[test]
    fn buffers_leave_in_order_once_the_gap_is_filled() {
        let mut r = with(&[(300, 400), (100, 200)]);
        assert_eq!(r.take_first(99), None);
        let buffer = Buffer { len: 100, memory: 1_380, fragments: 1, room: 0, in_head: false };
        assert_eq!(r.take_first(150), Some(Joined { start: 100, end: 200, buffer }));
        assert_eq!(r.take_first(200), None);
    }

    #[test]
    fn the_far_end_is_cut_and_what_lies_below_is_spared() {
        let mut r = with(&[(100, 200), (300, 400), (500, 600)]);
        assert_eq!(r.cut(1, 0), (1_380, 1));
        assert_eq!(r.cut(u64::MAX, 100), (1_380, 1));
        assert!(!r.is_empty());
    }

    #[test]
    fn only_ranges_of_several_buffers_are_compacted() {
        let mut r = Reassembly::default();
        for start in [100, 200, 300, 400, 900] {
            let one = Buffer { len: 100, memory: 1_380, fragments: 17, room: 0, in_head: false };
            r.insert(start, start + 100, one, OVERHEAD, 0);
        }
        assert_eq!(r.compact(|bytes, memory| bytes < memory), 4 * 1_380 - 4_352);
        assert_eq!(r.take_first(100), Some(Joined { start: 100, end: 500, buffer: Buffer::page(400) }));
        assert_eq!(r.clear(), 1_380);
    }
}
